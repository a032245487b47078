// Draws what calculator.py counted: it sends bytes and sentences, this holds the controls and the bar. Without a kernel
// calculator_alone.js counts.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { keepKeys, listen, make, makeRoot, makeSet } from "../shared/dom.js";
import { answerCalculator } from "./calculator_alone.js";

const WORDS = { model: "model", card: "card", bytes_per_value: "numbers in the cache" };
const whole = (number) => number.toLocaleString("en");

const HINT = "Drag the context or the batch until it no longer fits; then take fewer heads of keys and values.";

function render({ model, el }) {
  const { models, own, fields, contexts, batches, widths, cards, groups } = model.get("_layout");
  const root = makeRoot(model, "course-bars course-calculator", { role: "group", "aria-label": "memory calculator" });
  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const menu = (name, options) => {
    const label = make("label", "course-calculator-menu");
    const select = make("select");
    for (const [value, text] of options) select.append(make("option", "", { value }, text));
    label.append(make("span", "", {}, WORDS[name]), select);
    select.addEventListener("change", () => set(name, name === "bytes_per_value" ? +select.value : select.value));
    return { node: label, select };
  };
  const scale = (name, text, values, named) =>
    barsSlider({
      name: text,
      last: values.length - 1,
      ticks: values.flatMap((value, i) =>
        named.includes(value) ? [[i, value >= 1024 ? `${value / 1024}k` : value]] : [],
      ),
      onInput: (i) => set(name, values[i]),
    });

  const choose = {
    model: menu(
      "model",
      models.map((name) => [name, name]),
    ),
    card: menu(
      "card",
      cards.map((name) => [name, name]),
    ),
    bytes_per_value: menu("bytes_per_value", widths),
  };
  const context = scale("context", "context, tokens", contexts, [256, 2048, 16384, 131072]);
  const batch = scale("batch", "batch, sequences", batches, [1, 16, 32, 256]);
  const heads = barsSlider({
    name: "heads of keys and values",
    last: 1,
    ticks: [],
    onInput: (i) => set("n_kv_heads", groups[model.get("model")][i]),
  });
  const menus = make("div", "course-bars-controls");
  const sliders = make("div", "course-bars-controls course-calculator-sliders");
  menus.append(choose.model.node, choose.bytes_per_value.node, choose.card.node);
  sliders.append(context.node, batch.node, heads.node);

  // One's own sizes: typed on the page, read by Python, which says what is wrong with them.
  const sizes = make("fieldset", "course-calculator-own");
  const problem = make("div", "course-calculator-problem", { role: "alert" });
  sizes.append(make("legend", "", {}, own));
  const typed = fields.map(([name, text]) => {
    const label = make("label");
    const input = make("input", "", { type: "text", inputmode: "decimal", autocomplete: "off", size: 8 });
    label.append(makeSet("span", "", {}, text), input);
    sizes.append(label);
    input.addEventListener("change", () =>
      set("_typed", Object.fromEntries(typed.map(([key, field]) => [key, field.value]))),
    );
    return [name, input];
  });
  sizes.append(problem);
  keepKeys(
    sizes,
    (event) =>
      !["Tab", "Escape"].includes(event.key) &&
      !((event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) && ["Enter", "s"].includes(event.key)),
  );

  const chart = make("div", "course-calculator-chart", { role: "img" });
  const track = make("div", "course-calculator-track");
  const [weights, cache, edge] = ["weights", "cache", "card"].map((part) => make("div", `course-calculator-${part}`));
  track.append(weights, cache, edge);
  chart.append(track);
  const legend = make("div", "course-legend course-calculator-legend");
  const words = [];
  for (const part of ["weights", "cache", "card"]) {
    const entry = make("span");
    const text = make("span");
    entry.append(make("span", `course-calculator-sample course-calculator-${part}`), text);
    words.push(text);
    legend.append(entry);
  }
  const lines = make("div", "course-told course-bars-told", { role: "status" });
  const [how, fit] = [make("div", "course-calculator-how"), make("div", "course-calculator-fit")];
  lines.append(how, fit);
  root.append(menus, sizes, sliders, chart, legend, lines, make("div", "course-faint", {}, HINT));
  keepSliderKeys(root);
  el.append(root);

  const nearest = (values, value) =>
    values.reduce(
      (best, each, i) => (Math.abs(Math.log2(each / value)) < Math.abs(Math.log2(values[best] / value)) ? i : best),
      0,
    );
  function show() {
    const shown = model.get("_shown");
    const total = (shown.weights ?? 0) + shown.cache;
    const end = Math.max(total, shown.card) * 1.03;
    for (const name in choose) choose[name].select.value = model.get(name);
    context.show(nearest(contexts, model.get("context")), whole(model.get("context")));
    batch.show(nearest(batches, model.get("batch")), whole(model.get("batch")));
    const choices = groups[model.get("model")];
    const input = heads.node.querySelector("input");
    input.max = Math.max(1, choices.length - 1);
    input.disabled = choices.length === 0;
    heads.show(Math.max(0, choices.indexOf(shown.heads)), shown.heads_told);
    weights.style.width = `${(100 * (shown.weights ?? 0)) / end}%`;
    cache.style.left = weights.style.width;
    cache.style.width = `${(100 * shown.cache) / end}%`;
    cache.dataset.value = shown.cache;
    weights.dataset.value = shown.weights ?? "";
    edge.style.left = `${(100 * shown.card) / end}%`;
    [...shown.parts, `card: ${model.get("card")}`].forEach((text, i) => {
      words[i].textContent = text;
    });
    [how.textContent, fit.textContent] = shown.lines;
    chart.setAttribute("aria-label", [...shown.parts, shown.lines[1]].join(". "));
    root.classList.toggle("course-calculator-over", shown.weights !== null && total > shown.card);
  }
  function showOwn() {
    sizes.hidden = choose.model.select.value !== own;
    problem.textContent = model.get("_problem");
    if (problem.textContent) return; // what is wrong stays, to be mended
    for (const [name, field] of typed) if (!field.matches(":focus")) field.value = model.get("_typed")[name] ?? ""; // not while one types
  }
  choose.model.select.addEventListener("change", showOwn);
  const stopListening = listen(model, {
    _shown: () => {
      show();
      showOwn();
    },
    _typed: showOwn,
    _problem: showOwn,
  });
  const stop = model.alone ? answerCalculator(model) : () => {};
  show();
  showOwn();
  return () => {
    stop();
    stopListening();
  };
}

export default { render };
