// The curve of a guess, drawn with a pointer or by keys, beside the one that was computed.

import { clamp, keepKey, make, makeSet } from "../shared/dom.js";
import { makeSvg } from "../shared/svg.js";

const STEPS = { ArrowUp: 0.01, ArrowDown: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -2, End: 2, Enter: 0, " ": 0 };
const CLOSE = 14; // pixels on either side of a place in which its point follows the pointer

// Axes, a point a place that moves up and down, and a stroke that sets every place it passes.
export class CurvePart {
  constructor({ model, posed, written, toPlace, toValue, change }) {
    this.posed = posed;
    this.written = written;
    this.toPlace = toPlace;
    this.toValue = toValue;
    this.change = change;
    this.node = make("div", "course-guess-curve");
    this.details = make("details", "course-guess-numbers");
    this.svg = makeSvg("svg", "course-guess-plot", { role: "group", "aria-label": posed.y_label || "curve" });
    this.table = make("table", "", {});
    this.count = posed.places.length;
    this.back = makeSvg("g");
    this.truth = makeSvg("g", "course-guess-truth");
    this.mine = makeSvg("path", "course-guess-path");
    this.drawPoints();
    this.svg.append(this.back, this.truth, this.mine, ...this.points);
    this.details.append(make("summary", "", {}, "The numbers"), this.table);
    this.node.append(
      makeSet("div", "course-guess-y", {}, posed.y_label + (posed.unit ? `, ${posed.unit}` : "")),
      this.svg,
      makeSet("div", "course-guess-x", {}, posed.x_label),
      make("div", "course-legend course-guess-legend"),
      this.details,
    );
    this.node.querySelector(".course-guess-legend").append(sample("mine", "your guess"), sample("truth", "computed"));
    this.room = { left: 56, right: 18, top: 12, bottom: 26 };
    this.height = 260;
    this.width = 0;
    this.values = model.get("draft");
    this.fixed = false;
    this.last = null;
    this.at = 0;
    this.tall = this.height - this.room.top - this.room.bottom;
    this.bindPointer();
    this.bindKeys();
    this.watch = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width && contentRect.width !== this.width) {
        this.width = contentRect.width;
        this.layOut();
      }
    });
    this.watch.observe(this.svg);
  }

  drawPoints() {
    this.points = this.posed.places.map((place, i) =>
      makeSvg("g", "course-guess-point", {
        role: "slider",
        tabindex: i ? -1 : 0,
        "aria-label": `${this.posed.x_label ? `${this.posed.x_label} ` : ""}${place}`,
        "aria-orientation": "vertical",
        "aria-valuemin": this.posed.low,
        "aria-valuemax": this.posed.high,
      }),
    );
    for (const point of this.points)
      point.append(makeSvg("circle", "course-guess-halo", { r: 14 }), makeSvg("circle", "", { r: 6 }));
  }

  bindPointer() {
    this.svg.addEventListener("pointerdown", (event) => {
      if (this.fixed || event.button !== 0) return;
      event.preventDefault();
      this.svg.setPointerCapture(event.pointerId);
      this.values = [...this.values];
      this.last = null;
      this.pass(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.last) this.pass(event);
    });
    for (const ended of ["pointerup", "pointercancel", "lostpointercapture"])
      this.svg.addEventListener(ended, () => this.release());
  }

  bindKeys() {
    this.points.forEach((point, i) => {
      point.addEventListener("focus", () => {
        this.points[this.at].setAttribute("tabindex", -1);
        this.at = i;
        point.setAttribute("tabindex", 0);
      });
      point.addEventListener("keydown", (event) => {
        const to = { ArrowLeft: i - 1, ArrowRight: i + 1 }[event.key];
        const by = STEPS[event.key];
        if ((to ?? by) === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
        keepKey(event);
        if (to !== undefined) return this.points[clamp(to, this.count)].focus();
        if (this.fixed) return;
        const now = this.values[i] === null ? 0.5 : this.toPlace(this.values[i]);
        this.values = [...this.values];
        this.put(i, this.toValue(Math.max(0, Math.min(1, now + by * (event.shiftKey ? 10 : 1)))));
        this.mine.setAttribute("d", this.line(this.values));
        this.change([...this.values]);
      });
    });
  }

  inside() {
    return this.width - this.room.left - this.room.right;
  }

  x(i) {
    return this.room.left + this.posed.along[i] * this.inside();
  }

  y(place) {
    return this.room.top + (1 - place) * this.tall;
  }

  line(numbers) {
    return numbers
      .map((value, i) => [value, i])
      .filter(([value]) => value !== null)
      .map(([value, i], n) => `${n ? "L" : "M"}${this.x(i).toFixed(1)} ${this.y(this.toPlace(value)).toFixed(1)}`)
      .join("");
  }

  layOut() {
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    const grid = this.posed.ticks.map(([place, text]) => [
      makeSvg("line", "", {
        x1: this.room.left - 8,
        x2: this.width - this.room.right + 8,
        y1: this.y(place),
        y2: this.y(place),
      }),
      makeSvg("text", "", { x: this.room.left - 14, y: this.y(place) + 4, "text-anchor": "end" }, text),
    ]);
    let end = -Infinity;
    const stands = this.posed.places.map((text, i) => {
      const parts = [
        makeSvg("line", "", { x1: this.x(i), x2: this.x(i), y1: this.room.top, y2: this.height - this.room.bottom }),
      ];
      const half = 3.6 * text.length + 3;
      if (this.x(i) - half > end) {
        // labels that would touch are left out; the points say them
        parts.push(makeSvg("text", "", { x: this.x(i), y: this.height - 6, "text-anchor": "middle" }, text));
        end = this.x(i) + half;
      }
      return parts;
    });
    this.back.replaceChildren(...grid.flat(), ...stands.flat());
    const marks = this.posed.truth.map((value, i) => {
      const [cx, cy] = [this.x(i), this.y(this.toPlace(value))];
      return makeSvg("path", "", { d: `M${cx} ${cy - 6}L${cx + 6} ${cy}L${cx} ${cy + 6}L${cx - 6} ${cy}Z` });
    });
    this.truth.replaceChildren(makeSvg("path", "course-guess-path", { d: this.line(this.posed.truth) }), ...marks);
    this.points.forEach((_, i) => this.place(i));
    this.mine.setAttribute("d", this.line(this.values));
  }

  place(i) {
    const value = this.values[i];
    const up = this.y(value === null ? 0.5 : this.toPlace(value));
    this.points[i].setAttribute("transform", `translate(${this.x(i).toFixed(1)} ${up.toFixed(1)})`);
    this.points[i].classList.toggle("course-guess-open", value === null);
    this.points[i].setAttribute("aria-valuenow", value ?? this.toValue(0.5));
    this.points[i].setAttribute(
      "aria-valuetext",
      `${this.posed.places[i]}: ${value === null ? "nothing yet" : this.written(value)}`,
    );
  }

  put(i, value) {
    this.values[i] = value;
    this.place(i);
  }

  pass(event) {
    const box = this.svg.getBoundingClientRect();
    const px = event.clientX - box.left;
    const up = (py) => this.toValue(Math.max(0, Math.min(1, 1 - (py - this.room.top) / this.tall)));
    const here = { px, py: event.clientY - box.top };
    const nearest = this.posed.along.map((_, i) => Math.abs(this.x(i) - px));
    const close = nearest.indexOf(Math.min(...nearest));
    if (this.last) {
      for (let i = 0; i < this.count; i++) {
        // what lies between two events is set by the line through them
        const share = (this.x(i) - this.last.px) / (here.px - this.last.px);
        if (share > 0 && share <= 1) this.put(i, up(this.last.py + share * (here.py - this.last.py)));
      }
    }
    if (!this.last || nearest[close] < CLOSE) this.put(close, up(here.py));
    this.last = here;
    this.mine.setAttribute("d", this.line(this.values));
  }

  release() {
    if (this.last) {
      this.last = null;
      this.change([...this.values]);
    }
  }

  focus() {
    this.points[this.at].focus({ preventScroll: true });
  }

  end() {
    this.watch.disconnect();
  }

  show(guess, draft) {
    this.fixed = guess !== null;
    if (!this.last) this.values = [...(guess ?? draft)];
    this.truth.style.display = this.fixed ? "" : "none";
    this.details.hidden = this.node.querySelector(".course-guess-legend").hidden = !this.fixed;
    this.points.forEach((point) => point.setAttribute("aria-readonly", String(this.fixed)));
    if (this.width) this.layOut();
    if (!this.fixed) return this.table.replaceChildren();
    const rows = this.posed.places.map((text, i) =>
      cells("td", text, this.written(guess[i]), this.written(this.posed.truth[i])),
    );
    this.table.replaceChildren(cells("th", this.posed.x_label, "your guess", "computed"), ...rows);
  }
}

const cells = (tag, ...texts) => {
  const row = make("tr");
  row.append(...texts.map((text) => make(tag, "", tag === "th" ? { scope: "col" } : {}, text)));
  return row;
};
function sample(role, text) {
  const node = make("span", `course-guess-sample course-guess-${role}`);
  const picture = makeSvg("svg", "", { width: 34, height: 14, "aria-hidden": "true" });
  const circle = () => makeSvg("circle", "", { cx: 17, cy: 7, r: 5 });
  const mark = role === "mine" ? circle() : makeSvg("path", "", { d: "M17 1L23 7L17 13L11 7Z" });
  picture.append(makeSvg("path", "course-guess-path", { d: "M0 7L34 7" }), mark);
  node.append(picture, text);
  return node;
}
