// Draws what saturation.py drew by lot: it sends scores for every d_k, this does the softmax, so dragging needs no
// kernel.

import { barsReadouts, barsSlider, entropy, jacobianTrace, keepSliderKeys, softmax } from "../shared/bars.js";
import { listen, make, makeRoot, makeSet, minus, setTraits } from "../shared/dom.js";
import { makeSvg } from "../shared/svg.js";

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

const ALONE = [COLUMNS[0], { key: "unscaled", name: "mean of\nmany draws", mark: "above" }, COLUMNS[3]];

const HINT = "Make d_k larger and watch one key take all; then tick the box.";
const HINT_ALONE = "Make d_k larger and watch one key take all.";

const floats = (view) => new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
const exponent = (power) => Math.round(Math.log2(power));

class SaturationView {
  draws;
  table;
  constructor({ model, el }) {
    this.model = model;
    ({ steps: this.steps, sizes: this.sizes, note: this.note } = model.get("_layout"));
    this.most = this.sizes[this.sizes.length - 1];
    this.means = floats(model.get("_mean_table")); // (2, sizes, steps, 3): without and with the scale
    this.root = makeRoot(model, "course-bars course-saturation", {
      role: "group",
      "aria-label": "saturation explorer",
    });
    this.compare = model.get("compare") !== false; // whether the scale is shown beside
    this.root.classList.toggle("course-saturation-alone", !this.compare);
    const controls = this.drawControls();
    this.drawBars();
    this.message = make("div", "course-message course-bars-message", { role: "status" });
    this.curves = MEASURES.map((measure) => curve(measure, this.steps, this.compare));
    const drawn = make("div", "course-saturation-curves");
    drawn.append(...this.curves.map(({ node }) => node));
    this.readouts = barsReadouts({
      name: "how sharp the weights are",
      measures: MEASURES,
      columns: this.compare ? COLUMNS : ALONE,
      tracks: false,
    });
    this.root.append(
      controls,
      this.chart,
      this.message,
      drawn,
      this.readouts.node,
      this.trace.label,
      makeSet("div", "course-faint course-bars-note", {}, `${this.compare ? HINT : HINT_ALONE} ${this.note}`),
    );
    keepSliderKeys(this.root);
    el.append(this.root);
    this.read();
    this.show();
    this.stopListening = listen(model, {
      d_k: () => this.show(),
      n_keys: () => this.show(),
      scaled: () => this.show(),
      seed: () => this.show(),
      trace: () => this.show(),
      _draws: () => this.redraw(),
    });
  }

  drawControls() {
    this.width = barsSlider({
      name: "d_k, numbers in q and in each k",
      last: this.steps.length - 1,
      ticks: this.steps.flatMap((step, i) => (i % 2 ? [] : [[i, step]])),
      onInput: (i) => setTraits(this.model, { d_k: this.steps[i] }),
    });
    this.count = barsSlider({
      name: "number of keys",
      last: this.sizes.length - 1,
      ticks: this.sizes.map((size, i) => [i, size]),
      onInput: (i) => setTraits(this.model, { n_keys: this.sizes[i] }),
    });
    this.scale = this.checkbox("scaled", "divide the scores by √d_k");
    this.trace = this.checkbox("trace", "show the trace of the Jacobian");
    const again = make("button", "", { type: "button" }, "Draw again");
    this.seed = make("span", "course-saturation-seed");
    again.addEventListener("click", () =>
      setTraits(this.model, {
        seed: this.draws.first + ((this.model.get("seed") + 1 - this.draws.first) % this.draws.count),
      }),
    );
    const controls = make("div", "course-bars-controls");
    const lot = make("div", "course-saturation-lot");
    lot.append(again, this.seed);
    controls.append(this.width.node, this.count.node, ...(this.compare ? [this.scale.label] : []), lot);
    return controls;
  }

  drawBars() {
    this.chart = make("div", "course-saturation-chart", { role: "img" });
    const side = make("div", "course-saturation-side");
    side.append(...["weight", "", "key", "score"].map((text) => make("span", "", {}, text)));
    this.chart.append(side);
    this.bars = Array.from({ length: this.most }, (_, i) => {
      const node = make("div", "course-saturation-key");
      const plot = make("div", "course-saturation-plot");
      const [weight, bar, score] = ["weight", "bar", "score"].map((part) => make("div", `course-saturation-${part}`));
      plot.append(bar);
      node.append(weight, plot, make("div", "course-saturation-name", {}, i + 1), score);
      this.chart.append(node);
      return { node, bar, weight, score };
    });
  }

  // (draws, steps, most)
  read() {
    this.draws = this.model.get("_draws");
    this.table = floats(this.draws.scores);
  }

  checkbox(name, text) {
    const box = make("input", "", { type: "checkbox" });
    const label = make("label", "course-saturation-scale");
    label.append(box, makeSet("span", "", {}, text));
    box.addEventListener("change", () => setTraits(this.model, { [name]: box.checked }));
    return { box, label };
  }

  show() {
    const d = this.model.get("d_k");
    const m = this.model.get("n_keys");
    const scaled = this.model.get("scaled");
    const place = this.model.get("seed") - this.draws.first;
    if (place < 0 || place >= this.draws.count) return; // Python is about to send the draws of this seed
    const step = exponent(d);
    const size = this.sizes.indexOf(m);
    const start = (place * this.steps.length + step) * this.most;
    const scores = this.table.slice(start, start + m).map((score) => (scaled ? score / Math.sqrt(d) : score));
    const weights = softmax(scores);
    const largest = weights.indexOf(Math.max(...weights));
    this.width.show(step, `${d}`);
    this.count.show(size, `${m}`);
    this.scale.box.checked = scaled;
    this.trace.box.checked = this.model.get("trace");
    this.root.classList.toggle("course-saturation-traced", this.model.get("trace"));
    this.seed.textContent = `seed ${this.model.get("seed")}`;
    this.chart.dataset.keys = m;
    this.root.classList.toggle("course-saturation-scaled", scaled);
    this.bars.forEach(({ node, bar, weight, score }, i) => {
      node.hidden = i >= m;
      if (i >= m) return;
      bar.style.transform = `scaleY(${weights[i]})`;
      weight.textContent = weights[i].toFixed(2);
      weight.dataset.value = weights[i];
      score.textContent = minus(scores[i].toFixed(1));
      node.classList.toggle("course-saturation-largest", i === largest);
    });
    this.chart.setAttribute(
      "aria-label",
      `weights of ${m} keys: ${weights.map((weight) => weight.toFixed(2)).join(", ")}`,
    );
    this.showMeasures(m, step, size, weights, largest);
    const [low, high] = [Math.min(...scores), Math.max(...scores)].map((score) => minus(score.toFixed(1)));
    this.message.textContent =
      `The scores run from ${low} to ${high}. Key ${largest + 1} gets ${weights[largest].toFixed(2)} of the ` +
      "weight.";
  }

  // The measures of this draw, and their means with and without the scale, in numbers and as curves.
  showMeasures(m, step, size, weights, largest) {
    const here = [weights[largest], entropy(weights), jacobianTrace(weights)];
    const ends = [1, Math.log(m), 1 - 1 / m];
    const mean = (on, r, at = step) => this.means[((on * this.sizes.length + size) * this.steps.length + at) * 3 + r];
    this.readouts.show(
      here.map((value, r) => [value, mean(0, r), ...(this.compare ? [mean(1, r)] : []), ends[r]]),
      ends,
      this.model.get("scaled") ? "scaled" : "unscaled",
    );
    this.curves.forEach((each, r) =>
      each.show(
        this.steps.map((_, at) => [mean(0, r, at), mean(1, r, at)]),
        here[r],
        ends[r],
        step,
      ),
    );
  }

  redraw() {
    this.read();
    this.show();
  }

  remove() {
    this.stopListening();
  }
}

function render(options) {
  const saturation = new SaturationView(options);
  return () => saturation.remove();
}

// A measure over d_k: two lines of means, and at the d_k of the slider a mark on each and a dot for this draw.
function curve(measure, steps, compare) {
  const node = make("div", "course-saturation-curve");
  const plot = make("div", "course-saturation-field", { role: "img" });
  node.dataset.row = measure.key;
  const last = steps.length - 1;
  const svg = makeSvg("svg", "", { viewBox: `0 0 ${last} 1`, preserveAspectRatio: "none" });
  const lines = ["unscaled", "scaled"].map((name) => makeSvg("polyline", `course-saturation-line-${name}`));
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
          (compare ? `${ends[0]} without the scale, ${ends[1]} with it` : ends[0]),
      );
    },
  };
}

export default { render };
