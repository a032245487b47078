// Draws what saturation.py drew by lot: it sends scores for every d_k, this does the softmax, so dragging needs no kernel.

import { barsReadouts, barsSlider, entropy, jacobianTrace, keepSliderKeys, softmax } from "../shared/bars.js";
import { listen, make, makeRoot, makeSet, minus } from "../shared/dom.js";

const MEASURES = [
  { key: "largest", name: "largest weight" },
  { key: "entropy", name: "entropy (nats)" },
  { key: "trace", name: "trace of Jacobian" },
];
const COLUMNS = [
  { key: "draw", name: "this\ndraw", mark: "dot" },
  { key: "unscaled", name: "mean,\nno scale", mark: "above" },
  { key: "scaled", name: "mean,\nscaled", mark: "below" },
  { key: "most", name: "at most" },
];

const HINT = "Make d_k larger and watch one key take all; then tick the box.";

const floats = (view) => new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
const exponent = (power) => Math.round(Math.log2(power));

function render({ model, el }) {
  const { steps, sizes, note } = model.get("_layout");
  const most = sizes[sizes.length - 1];
  const means = floats(model.get("_mean_table")); // (2, sizes, steps, 3): without and with the scale
  const root = makeRoot(model, "course-bars course-saturation", { role: "group", "aria-label": "saturation explorer" });
  let draws;
  let table;
  const read = () => {
    draws = model.get("_draws");
    table = floats(draws.scores);
  }; // (draws, steps, most)
  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };

  const width = barsSlider({
    name: "d_k, numbers in q and in each k",
    last: steps.length - 1,
    ticks: steps.flatMap((step, i) => (i % 2 ? [] : [[i, step]])),
    onInput: (i) => set("d_k", steps[i]),
  });
  const count = barsSlider({
    name: "number of keys",
    last: sizes.length - 1,
    ticks: sizes.map((size, i) => [i, size]),
    onInput: (i) => set("n_keys", sizes[i]),
  });
  const checkbox = (name, text) => {
    const box = make("input", "", { type: "checkbox" });
    const label = make("label", "course-saturation-scale");
    label.append(box, makeSet("span", "", {}, text));
    box.addEventListener("change", () => set(name, box.checked));
    return { box, label };
  };
  const scale = checkbox("scaled", "divide the scores by √d_k");
  const trace = checkbox("trace", "show the trace of the Jacobian");
  const again = make("button", "", { type: "button" }, "Draw again");
  const seed = make("span", "course-saturation-seed");
  again.addEventListener("click", () =>
    set("seed", draws.first + ((model.get("seed") + 1 - draws.first) % draws.count)),
  );
  const controls = make("div", "course-bars-controls");
  const lot = make("div", "course-saturation-lot");
  lot.append(again, seed);
  controls.append(width.node, count.node, scale.label, lot);

  const chart = make("div", "course-saturation-chart", { role: "img" });
  const side = make("div", "course-saturation-side");
  side.append(...["weight", "", "key", "score"].map((text) => make("span", "", {}, text)));
  chart.append(side);
  const bars = Array.from({ length: most }, (_, i) => {
    const node = make("div", "course-saturation-key");
    const plot = make("div", "course-saturation-plot");
    const [weight, bar, score] = ["weight", "bar", "score"].map((part) => make("div", `course-saturation-${part}`));
    plot.append(bar);
    node.append(weight, plot, make("div", "course-saturation-name", {}, i + 1), score);
    chart.append(node);
    return { node, bar, weight, score };
  });
  const told = make("div", "course-told course-bars-told", { role: "status" });
  const curves = MEASURES.map((measure) => curve(measure, steps));
  const drawn = make("div", "course-saturation-curves");
  drawn.append(...curves.map(({ node }) => node));
  const readouts = barsReadouts({
    name: "how sharp the weights are",
    measures: MEASURES,
    columns: COLUMNS,
    tracks: false,
  });
  root.append(
    controls,
    chart,
    told,
    drawn,
    readouts.node,
    trace.label,
    makeSet("div", "course-faint course-bars-note", {}, `${HINT} ${note}`),
  );
  keepSliderKeys(root);
  el.append(root);

  function show() {
    const d = model.get("d_k");
    const m = model.get("n_keys");
    const scaled = model.get("scaled");
    const place = model.get("seed") - draws.first;
    if (place < 0 || place >= draws.count) return; // Python is about to send the draws of this seed
    const step = exponent(d);
    const size = sizes.indexOf(m);
    const start = (place * steps.length + step) * most;
    const scores = table.slice(start, start + m).map((score) => (scaled ? score / Math.sqrt(d) : score));
    const weights = softmax(scores);
    const largest = weights.indexOf(Math.max(...weights));
    width.show(step, `${d}`);
    count.show(size, `${m}`);
    scale.box.checked = scaled;
    trace.box.checked = model.get("trace");
    root.classList.toggle("course-saturation-traced", model.get("trace"));
    seed.textContent = `seed ${model.get("seed")}`;
    chart.dataset.keys = m;
    root.classList.toggle("course-saturation-scaled", scaled);
    bars.forEach(({ node, bar, weight, score }, i) => {
      node.hidden = i >= m;
      if (i >= m) return;
      bar.style.transform = `scaleY(${weights[i]})`;
      weight.textContent = weights[i].toFixed(2);
      weight.dataset.value = weights[i];
      score.textContent = minus(scores[i].toFixed(1));
      node.classList.toggle("course-saturation-largest", i === largest);
    });
    chart.setAttribute("aria-label", `weights of ${m} keys: ${weights.map((weight) => weight.toFixed(2)).join(", ")}`);
    const [low, high] = [Math.min(...scores), Math.max(...scores)].map((score) => minus(score.toFixed(1)));
    told.textContent = `The scores run from ${low} to ${high}. Key ${largest + 1} gets ${weights[largest].toFixed(2)} of the weight.`;
    const here = [weights[largest], entropy(weights), jacobianTrace(weights)];
    const ends = [1, Math.log(m), 1 - 1 / m];
    const mean = (on, r, at = step) => means[((on * sizes.length + size) * steps.length + at) * 3 + r];
    readouts.show(
      here.map((value, r) => [value, mean(0, r), mean(1, r), ends[r]]),
      ends,
      scaled ? "scaled" : "unscaled",
    );
    curves.forEach((each, r) =>
      each.show(
        steps.map((_, at) => [mean(0, r, at), mean(1, r, at)]),
        here[r],
        ends[r],
        step,
      ),
    );
  }

  const redraw = () => {
    read();
    show();
  };
  read();
  show();
  return listen(model, { d_k: show, n_keys: show, scaled: show, seed: show, trace: show, _draws: redraw });
}

// A measure over d_k: two lines of means, and at the d_k of the slider a mark on each and a dot for this draw.
function curve(measure, steps) {
  const node = make("div", "course-saturation-curve");
  const plot = make("div", "course-saturation-field", { role: "img" });
  node.dataset.row = measure.key;
  const inSvg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    return made;
  };
  const last = steps.length - 1;
  const svg = inSvg("svg", { viewBox: `0 0 ${last} 1`, preserveAspectRatio: "none" });
  const lines = ["unscaled", "scaled"].map((name) => inSvg("polyline", { class: `course-saturation-line-${name}` }));
  svg.append(...lines);
  const here = make("div", "course-saturation-here");
  const ticks = make("div", "course-bars-ticks");
  const marks = ["above", "below", "dot"].map((mark) => make("div", `course-bars-mark course-bars-${mark}`));
  plot.append(here, svg, ...marks);
  for (const at of [0, last / 2, last])
    ticks.append(make("span", "", { style: `left:${(100 * at) / last}%` }, steps[at]));
  node.append(makeSet("div", "course-saturation-title", {}, `${measure.name} over d_k`), plot, ticks);
  return {
    node,
    show: (means, draw, most, step) => {
      lines.forEach((line, on) =>
        line.setAttribute("points", means.map((pair, x) => `${x},${1 - pair[on] / most}`).join(" ")),
      );
      here.style.left = `${(100 * step) / last}%`;
      [...means[step], draw].forEach((value, i) => {
        marks[i].style.left = `${(100 * step) / last}%`;
        marks[i].style.top = `${100 * (1 - Math.min(1, value / most))}%`;
      });
      const ends = [0, 1].map((on) => `${means[0][on].toFixed(2)} to ${means[last][on].toFixed(2)}`);
      plot.setAttribute(
        "aria-label",
        `mean ${measure.name} for d_k from ${steps[0]} to ${steps[last]}: ` +
          `${ends[0]} without the scale, ${ends[1]} with it`,
      );
    },
  };
}

export default { render };
