// Draws what calculator.py counted: it sends bytes and sentences, this holds the controls and the bar. Without a kernel
// calculator_alone.js counts.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { keepKeys, listen, make, makeRoot, makeSet, setTraits } from "../shared/dom.js";
import { answerCalculator } from "./calculator_alone.js";

const WORDS = { model: "model", card: "card", bytes_per_value: "numbers in the cache" };
const whole = (number) => number.toLocaleString("en");

const HINT = "Drag the context or the batch until it no longer fits; then take fewer heads of keys and values.";

class CalculatorView {
  constructor({ model, el }) {
    this.model = model;
    ({
      models: this.models,
      own: this.own,
      fields: this.fields,
      contexts: this.contexts,
      batches: this.batches,
      widths: this.widths,
      cards: this.cards,
      groups: this.groups,
    } = model.get("_layout"));
    this.root = makeRoot(model, "course-bars course-calculator", { role: "group", "aria-label": "memory calculator" });
    this.drawMenus();
    this.drawSliders();
    const menus = make("div", "course-bars-controls");
    const sliders = make("div", "course-bars-controls course-calculator-sliders");
    menus.append(this.choose.model.node, this.choose.bytes_per_value.node, this.choose.card.node);
    sliders.append(this.context.node, this.batch.node, this.heads.node);
    this.drawOwnSizes();
    this.drawChart();
    const legend = this.drawLegend();
    const lines = make("div", "course-message course-bars-message", { role: "status" });
    [this.how, this.fit] = [make("div", "course-calculator-how"), make("div", "course-calculator-fit")];
    lines.append(this.how, this.fit);
    this.root.append(menus, this.sizes, sliders, this.chart, legend, lines, make("div", "course-faint", {}, HINT));
    keepSliderKeys(this.root);
    el.append(this.root);
    this.listenToModel();
  }

  drawMenus() {
    this.choose = {
      model: this.menu(
        "model",
        this.models.map((name) => [name, name]),
      ),
      card: this.menu(
        "card",
        this.cards.map((name) => [name, name]),
      ),
      bytes_per_value: this.menu("bytes_per_value", this.widths),
    };
  }

  drawSliders() {
    this.context = this.scale("context", "context, tokens", this.contexts, [256, 2048, 16384, 131072]);
    this.batch = this.scale("batch", "batch, sequences", this.batches, [1, 16, 32, 256]);
    this.heads = barsSlider({
      name: "heads of keys and values",
      last: 1,
      ticks: [],
      onInput: (i) => setTraits(this.model, { n_kv_heads: this.groups[this.model.get("model")][i] }),
    });
  }

  drawOwnSizes() {
    // One's own sizes: typed on the page, read by Python, which says what is wrong with them.
    this.sizes = make("fieldset", "course-calculator-own");
    this.problem = make("div", "course-calculator-problem", { role: "alert" });
    this.sizes.append(make("legend", "", {}, this.own));
    this.typed = this.fields.map(([name, text]) => {
      const label = make("label");
      const input = make("input", "", { type: "text", inputmode: "decimal", autocomplete: "off", size: 8 });
      label.append(makeSet("span", "", {}, text), input);
      this.sizes.append(label);
      input.addEventListener("change", () =>
        setTraits(this.model, { _typed: Object.fromEntries(this.typed.map(([key, field]) => [key, field.value])) }),
      );
      return [name, input];
    });
    this.sizes.append(this.problem);
    keepKeys(
      this.sizes,
      (event) =>
        !["Tab", "Escape"].includes(event.key) &&
        !((event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) && ["Enter", "s"].includes(event.key)),
    );
  }

  drawChart() {
    this.chart = make("div", "course-calculator-chart", { role: "img" });
    const track = make("div", "course-calculator-track");
    [this.weights, this.cache, this.edge] = ["weights", "cache", "card"].map((part) =>
      make("div", `course-calculator-${part}`),
    );
    track.append(this.weights, this.cache, this.edge);
    this.chart.append(track);
  }

  drawLegend() {
    const legend = make("div", "course-legend course-calculator-legend");
    this.words = [];
    for (const part of ["weights", "cache", "card"]) {
      const entry = make("span");
      const text = make("span");
      entry.append(make("span", `course-calculator-sample course-calculator-${part}`), text);
      this.words.push(text);
      legend.append(entry);
    }
    return legend;
  }

  listenToModel() {
    this.choose.model.select.addEventListener("change", () => this.showOwn());
    this.stopListening = listen(this.model, {
      _shown: () => {
        this.show();
        this.showOwn();
      },
      _typed: () => this.showOwn(),
      _problem: () => this.showOwn(),
    });
    this.stop = this.model.alone ? answerCalculator(this.model) : () => {};
    this.show();
    this.showOwn();
  }

  menu(name, options) {
    const label = make("label", "course-calculator-menu");
    const select = make("select");
    for (const [value, text] of options) select.append(make("option", "", { value }, text));
    label.append(make("span", "", {}, WORDS[name]), select);
    select.addEventListener("change", () =>
      setTraits(this.model, { [name]: name === "bytes_per_value" ? +select.value : select.value }),
    );
    return { node: label, select };
  }

  scale(name, text, values, named) {
    return barsSlider({
      name: text,
      last: values.length - 1,
      ticks: values.flatMap((value, i) =>
        named.includes(value) ? [[i, value >= 1024 ? `${value / 1024}k` : value]] : [],
      ),
      onInput: (i) => setTraits(this.model, { [name]: values[i] }),
    });
  }

  show() {
    const shown = this.model.get("_shown");
    const total = (shown.weights ?? 0) + shown.cache;
    const end = Math.max(total, shown.card) * 1.03;
    for (const name in this.choose) this.choose[name].select.value = this.model.get(name);
    this.context.show(nearest(this.contexts, this.model.get("context")), whole(this.model.get("context")));
    this.batch.show(nearest(this.batches, this.model.get("batch")), whole(this.model.get("batch")));
    const choices = this.groups[this.model.get("model")];
    const input = this.heads.node.querySelector("input");
    input.max = Math.max(1, choices.length - 1);
    input.disabled = choices.length === 0;
    this.heads.show(Math.max(0, choices.indexOf(shown.heads)), shown.heads_told);
    this.weights.style.width = `${(100 * (shown.weights ?? 0)) / end}%`;
    this.cache.style.left = this.weights.style.width;
    this.cache.style.width = `${(100 * shown.cache) / end}%`;
    this.cache.dataset.value = shown.cache;
    this.weights.dataset.value = shown.weights ?? "";
    this.edge.style.left = `${(100 * shown.card) / end}%`;
    [...shown.parts, `card: ${this.model.get("card")}`].forEach((text, i) => {
      this.words[i].textContent = text;
    });
    [this.how.textContent, this.fit.textContent] = shown.lines;
    this.chart.setAttribute("aria-label", [...shown.parts, shown.lines[1]].join(". "));
    this.root.classList.toggle("course-calculator-over", shown.weights !== null && total > shown.card);
  }

  showOwn() {
    this.sizes.hidden = this.choose.model.select.value !== this.own;
    this.problem.textContent = this.model.get("_problem");
    if (this.problem.textContent) return; // what is wrong stays, to be mended
    for (const [name, field] of this.typed)
      if (!field.matches(":focus")) field.value = this.model.get("_typed")[name] ?? ""; // not while one types
  }

  remove() {
    this.stop();
    this.stopListening();
  }
}

const nearest = (values, value) =>
  values.reduce(
    (best, each, i) => (Math.abs(Math.log2(each / value)) < Math.abs(Math.log2(values[best] / value)) ? i : best),
    0,
  );

function render(options) {
  const calculator = new CalculatorView(options);
  return () => calculator.remove();
}

export default { render };
