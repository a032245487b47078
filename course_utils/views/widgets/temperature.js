// Draws softmax(scores / temperature); all arithmetic is here, so dragging needs no kernel.

import { barsReadouts, barsSlider, entropy, keepSliderKeys, softmax } from "../shared/bars.js";
import { listen, make, makeRoot, makeSet, setTraits } from "../shared/dom.js";

const MEASURES = [
  { key: "largest", name: "largest weight" },
  { key: "entropy", name: "entropy H (nats)" },
  { key: "keys", name: "effective keys" },
];
const COLUMNS = [
  { key: "now", name: "now", mark: "dot" },
  { key: "one", name: "at\ntemperature 1", mark: "below" },
  { key: "most", name: "at most" },
];
const NOTE =
  "Drag the temperature down, then up, or type other scores. The upright mark on each bar is the weight at " +
  "temperature 1; effective keys are e^H, as many keys of equal weight as have this entropy.";
// positions of the slider from one temperature to its double, so that 2, 4, 8, … are among its stops
const DOUBLING = 16;
const DECADES = [0.01, 0.1, 1, 10, 100]; // so are these

class TemperatureView {
  constructor({ model, el }) {
    this.model = model;
    this.labels = model.get("labels");
    this.m = this.labels.length;
    ({ least: this.least, largest: this.largest, most: this.most } = model.get("_range"));
    const root = makeRoot(model, "course-bars course-temperature", {
      role: "group",
      "aria-label": "temperature explorer",
    });
    this.root = root;
    this.half = Math.ceil(DOUBLING * Math.log2(this.largest)); // positions on either side of temperature 1
    const controls = this.drawControls();
    const table = this.drawTable();
    this.readouts = barsReadouts({ name: "how sharp the weights are", measures: MEASURES, columns: COLUMNS });
    root.append(controls, table, this.readouts.node, makeSet("div", "course-faint course-bars-note", {}, NOTE));
    keepSliderKeys(root);
    el.append(root);

    this.show();
    this.stopListening = listen(model, { temperature: () => this.show(), scores: () => this.show() });
  }

  drawControls() {
    this.slider = barsSlider({
      name: "temperature",
      last: 2 * this.half,
      ticks: DECADES.map((temperature) => [this.place(temperature), temperature]),
      onInput: (position) => setTraits(this.model, { temperature: this.at(position) }),
    });
    const controls = make("div", "course-bars-controls");
    controls.append(this.slider.node);
    this.jumps = this.model.get("_jumps").map(([name, temperature]) => {
      const button = make("button", "", { type: "button" }, name);
      button.addEventListener("click", () => setTraits(this.model, { temperature }));
      return { button, temperature };
    });
    if (this.jumps.length) {
      const row = make("div", "course-temperature-jumps", { role: "group", "aria-label": "jump to a temperature" });
      row.append(make("span", "", {}, "jump to"), ...this.jumps.map(({ button }) => button));
      controls.append(row);
    }
    return controls;
  }

  drawTable() {
    const table = make("table", "course-temperature-keys", { "aria-label": "scores and weights" });
    const head = table.createTHead().insertRow();
    for (const [text, name] of [
      ["key", "name"],
      ["score", "score"],
      ["weight", "number"],
      ["", "plot"],
    ]) {
      head.append(make(text ? "th" : "td", `course-temperature-${name}`, text ? { scope: "col" } : {}, text));
    }
    const body = table.createTBody();
    this.rows = this.labels.map((label, i) => {
      const row = body.insertRow();
      const score = make("td", "course-temperature-score");
      const plot = make("td", "course-temperature-plot");
      const input = make("input", "", {
        type: "number",
        step: 0.5,
        min: -this.most,
        max: this.most,
        "aria-label": `score of ${label}`,
      });
      const track = make("div", "course-temperature-track");
      const bar = make("div", "course-temperature-bar");
      const tick = make("div", "course-temperature-tick");
      const number = make("td", "course-temperature-number");
      input.addEventListener("input", () => {
        const valid = Math.abs(input.valueAsNumber) <= this.most; // not so for NaN
        input.setAttribute("aria-invalid", !valid);
        if (valid)
          setTraits(this.model, {
            scores: this.model.get("scores").map((old, j) => (j === i ? input.valueAsNumber : old)),
          });
      });
      input.addEventListener("blur", () => {
        input.setAttribute("aria-invalid", false);
        this.show();
      });
      score.append(input);
      track.append(bar, tick);
      plot.append(track);
      row.append(make("th", "course-temperature-name", { scope: "row", title: label }, label), score, number, plot);
      return { row, input, bar, tick, number };
    });
    return table;
  }

  at(position) {
    return (
      DECADES.find((temperature) => this.place(temperature) === position) ??
      Number(Math.min(this.largest, Math.max(this.least, 2 ** ((position - this.half) / DOUBLING))).toPrecision(3))
    );
  }

  place(temperature) {
    return temperature === this.least
      ? 0
      : temperature === this.largest
        ? 2 * this.half
        : Math.round(this.half + DOUBLING * Math.log2(temperature));
  }

  show() {
    const temperature = this.model.get("temperature");
    const scores = this.model.get("scores");
    const weights = softmax(scores.map((score) => score / temperature));
    const plain = softmax(scores);
    const heaviest = Math.max(...weights);
    // Beside the roots of some d_k, the colour of weights would say "divided by √d_k".
    this.root.classList.toggle("course-temperature-raw", this.jumps.length > 0 && temperature === 1); // no scale
    this.root.classList.toggle("course-temperature-other", this.jumps.length > 0 && temperature !== 1);
    for (const jump of this.jumps) jump.button.setAttribute("aria-pressed", jump.temperature === temperature);
    this.slider.show(this.place(temperature), `${Number(temperature.toPrecision(3))}`);
    this.rows.forEach(({ row, input, bar, tick, number }, i) => {
      // What is being typed stays as it is; a score set in Python shows at once.
      const typed =
        document.activeElement === input &&
        (input.valueAsNumber === scores[i] || input.getAttribute("aria-invalid") === "true");
      if (!typed) input.value = Number(scores[i].toPrecision(4));
      bar.style.transform = `scaleX(${weights[i]})`;
      tick.style.left = `${100 * plain[i]}%`;
      number.textContent = weights[i].toFixed(2);
      number.dataset.value = weights[i];
      row.classList.toggle("course-temperature-largest", weights[i] === heaviest);
    });
    const now = measured(weights);
    const one = measured(plain);
    const ends = [1, Math.log(this.m), this.m];
    this.readouts.show(
      now.map((value, r) => [value, one[r], ends[r]]),
      ends,
      "now",
      [1 / this.m, 0, 1],
    );
  }

  remove() {
    this.stopListening();
  }
}

const measured = (weights) => {
  const H = entropy(weights);
  return [Math.max(...weights), H, Math.exp(H)];
};

function render(options) {
  const temperature = new TemperatureView(options);
  return () => temperature.remove();
}

export default { render };
