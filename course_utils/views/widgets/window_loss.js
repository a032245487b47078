// Draws recorded losses by position; the page has all curves, so the sliders need no kernel.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { listen, make, makeRoot, setTraits } from "../shared/dom.js";
import { makeSvg } from "../shared/svg.js";

const NOTE =
  "Drag both sliders. Grey: the model sees all tokens. Dashed: no first tokens. Violet: some of the room is kept for " +
  "the first tokens.";
const WIDE = 640;
const TALL = 220;

class WindowLossView {
  constructor({ model, el }) {
    this.model = model;
    this.record = model.get("_record");
    const root = makeRoot(model, "course-bars course-window", { role: "group", "aria-label": "loss with a window" });
    const controls = make("div", "course-bars-controls");
    this.sliders = [
      ["room", "room for keys", this.record.rooms],
      ["sinks", "of these, first tokens", this.record.sinks],
    ].map(([name, label, values]) => {
      const slider = barsSlider({
        name: label,
        last: values.length - 1,
        ticks: values.map((value, i) => [i, value]),
        onInput: (i) => setTraits(this.model, { [name]: values[i] }),
      });
      controls.append(slider.node);
      return { name, values, slider };
    });
    this.drawStrip();
    this.drawChart();
    this.message = make("div", "course-message course-bars-message", { role: "status" });
    root.append(controls, this.strip, this.chart, this.message, make("div", "course-faint course-bars-note", {}, NOTE));
    keepSliderKeys(root);
    el.append(root);
    this.show();
    this.stopListening = listen(model, { room: () => this.show(), sinks: () => this.show() });
  }

  // which keys the last query sees, as parts of the text
  drawStrip() {
    this.strip = make("div", "course-window-strip", { role: "img" });
    this.parts = ["first", "latest"].map((part) => make("div", `course-window-${part}`));
    this.strip.append(...this.parts);
  }

  drawChart() {
    const { curves, all, positions, length } = this.record;
    const losses = [all, ...Object.values(curves)].flat();
    this.low = Math.floor(Math.min(...losses));
    this.high = Math.ceil(Math.max(...losses));
    this.x = (position) => 40 + ((WIDE - 56) * position) / length;
    this.y = (loss) => 8 + ((TALL - 48) * (this.high - loss)) / (this.high - this.low);
    this.chart = make("div", "course-window-chart", { role: "img" });
    const svg = makeSvg("svg", "", { viewBox: `0 0 ${WIDE} ${TALL}`, "aria-hidden": "true" });
    for (let loss = this.low; loss <= this.high; loss += 1) {
      svg.append(
        makeSvg("line", "course-window-grid", { x1: 40, x2: WIDE - 10, y1: this.y(loss), y2: this.y(loss) }),
        makeSvg("text", "", { x: 32, y: this.y(loss) + 4, "text-anchor": "end" }, loss),
      );
    }
    for (let at = 0; at <= length; at += 128)
      svg.append(makeSvg("text", "", { x: this.x(at), y: TALL - 22, "text-anchor": "middle" }, at));
    svg.append(
      makeSvg(
        "text",
        "",
        { x: WIDE / 2, y: TALL - 4, "text-anchor": "middle" },
        "position in the text; upwards, the loss in nats per token",
      ),
    );
    this.lines = ["all", "none", "some"].map((name) => makeSvg("polyline", `course-window-line-${name}`));
    svg.append(...this.lines);
    this.path = (values) => values.map((loss, i) => `${this.x(positions[i])},${this.y(loss)}`).join(" ");
    this.lines[0].setAttribute("points", this.path(all));
    this.chart.append(svg);
  }

  show() {
    const room = this.model.get("room");
    const sinks = this.model.get("sinks");
    const { curves, losses, all_loss, length } = this.record;
    for (const { name, values, slider } of this.sliders) {
      const value = this.model.get(name);
      slider.show(values.indexOf(value), `${value}`);
    }
    const chosen = curves[`${room},${sinks}`];
    this.lines[1].setAttribute("points", this.path(curves[`${room},0`]));
    this.lines[2].setAttribute("points", sinks ? this.path(chosen) : "");
    const [first, latest] = this.parts;
    first.style.width = `${(100 * sinks) / length}%`;
    latest.style.width = `${(100 * (room - sinks)) / length}%`;
    const kept = sinks === 0 ? "none of the first" : sinks === 1 ? "the first" : `the first ${sinks}`;
    const seen = `${kept}, and the last ${room - sinks}`;
    this.strip.setAttribute("aria-label", `of ${length} tokens the last query sees ${seen}`);
    const loss = losses[`${room},${sinks}`].toFixed(2);
    this.chart.setAttribute("aria-label", `loss by position with ${seen}: ${loss} on average`);
    this.message.textContent =
      `Room for ${room} keys: ${seen}. Loss ${loss} nats per token; with all tokens ` + `${all_loss.toFixed(2)}.`;
  }

  remove() {
    this.stopListening();
  }
}

function render(options) {
  const view = new WindowLossView(options);
  return () => view.remove();
}

export default { render };
