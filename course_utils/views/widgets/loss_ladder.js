// Draws a recorded training loss and the texts written on its way; the page has all of them, so nothing needs a kernel.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { listen, make, makeRoot, setTraits } from "../shared/dom.js";
import { shortText } from "../shared/number_text.js";
import { makeMessage } from "../shared/player.js";
import { makeSvg } from "../shared/svg.js";

const NOTE = "Move the slider down the curve, and read what the model wrote at each loss.";

// As `message_of` in loss_ladder.py.
export function messageOfLoss(step, loss, floors) {
  const named = ([name, floor]) => `${name} (${shortText(floor)})`;
  const above = floors.filter(([, floor]) => loss < floor).map(named);
  const below = floors.filter(([, floor]) => loss >= floor).map(named);
  const places = [
    ...above.slice(-1).map((name) => `below ${name}`),
    ...below.slice(0, 1).map((name) => `above ${name}`),
  ];
  return `Step ${step}: loss ${shortText(loss)} nats per character, ${places.join(" and ")}.`;
}

// Round steps from 0 to the end, at most six.
function roundSteps(end) {
  const size = Math.max(1, 10 ** Math.floor(Math.log10(end / 5)));
  const by = [1, 2, 5, 10].map((factor) => factor * size).find((each) => end / each <= 5);
  return Array.from({ length: Math.floor(end / by) + 1 }, (_, i) => i * by);
}

class LadderView {
  constructor({ model, el }) {
    this.model = model;
    this.losses = model.get("_losses");
    this.floors = model.get("_floors");
    this.samples = model.get("_samples");
    const root = makeRoot(model, "course-bars course-ladder", { role: "group", "aria-label": "ladder of losses" });
    this.slider = barsSlider({
      name: "loss at which the model writes",
      last: this.samples.length - 1,
      ticks: this.samples.map(([, loss], i) => [i, shortText(loss)]),
      onInput: (rung) => setTraits(model, { rung }),
    });
    this.message = makeMessage("course-message course-ladder-message");
    this.message.rooms(this.samples.map(([step, loss]) => messageOfLoss(step, loss, this.floors)));
    const note = make("div", "course-faint course-bars-note", {}, NOTE);
    root.append(this.drawChart(), this.slider.node, this.message.node, this.drawTexts(), note);
    keepSliderKeys(root);
    el.append(root);
    this.show();
    this.stopListening = listen(model, { rung: () => this.show() });
  }

  // Lines and labels are placed in percent and only the curve is stretched, so that letters keep their size.
  drawChart() {
    const all = [...this.losses, ...this.floors].map(([, loss]) => loss);
    const [low, high] = [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))];
    const end = this.losses.at(-1)[0];
    const x = (step) => (97 * step) / end; // room for the last mark
    const y = (loss) => (100 * (high - loss)) / (high - low);
    const chart = make("div", "course-ladder-chart", { role: "img", "aria-label": this.messageOfCurve() });
    const plot = make("div", "course-ladder-plot");
    const put = (name, style, text) => plot.append(make("div", `course-ladder-${name}`, { style }, text));
    for (let loss = low; loss <= high; loss++) put("level", `top:${y(loss)}%`, loss);
    for (const step of roundSteps(end)) put("step", `left:${x(step)}%`, step.toLocaleString("en"));
    for (const [name, loss] of this.floors)
      put("floor", `top:${y(loss)}%`, `${name.replace("the ", "")} ${shortText(loss)}`);
    plot.append(drawCurve(this.losses.map(([step, loss]) => `${x(step)},${y(loss)}`)));
    this.dots = this.samples.map(([step, loss]) => {
      const dot = make("div", "course-ladder-dot", { style: `left:${x(step)}%; top:${y(loss)}%` });
      plot.append(dot);
      return dot;
    });
    chart.append(
      make("div", "course-ladder-axis", {}, "training loss, nats per character"),
      plot,
      make("div", "course-ladder-axis course-ladder-below", {}, "training step"),
    );
    return chart;
  }

  messageOfCurve() {
    const [[first, high], [last, low]] = [this.losses[0], this.losses.at(-1)];
    const floors = this.floors.map(([name, loss]) => `${name} ${shortText(loss)}`).join(", ");
    const fall = `from ${shortText(high)} at step ${first} to ${shortText(low)} at step ${last}`;
    return `training loss ${fall}; lines at ${floors}`;
  }

  // All in one place, so that the longest keeps its room.
  drawTexts() {
    const node = make("div", "course-ladder-texts");
    this.texts = this.samples.map(([, , text]) => make("div", "course-ladder-text", {}, text));
    node.append(...this.texts);
    return node;
  }

  show() {
    const rung = this.model.get("rung");
    const [step, loss] = this.samples[rung];
    this.slider.show(rung, shortText(loss));
    this.message.show(messageOfLoss(step, loss, this.floors));
    for (const parts of [this.dots, this.texts])
      parts.forEach((part, i) => part.classList.toggle("course-ladder-chosen", i === rung));
  }

  remove() {
    this.stopListening();
  }
}

function drawCurve(points) {
  const svg = makeSvg("svg", "", { viewBox: "0 0 100 100", preserveAspectRatio: "none" });
  svg.append(makeSvg("polyline", "", { points: points.join(" ") }));
  return svg;
}

function render(options) {
  const view = new LadderView(options);
  return () => view.remove();
}

export default { render };
