// RoPE as clocks: all arithmetic is here, so dragging needs no kernel.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { listen, make, makeRoot, minus, setTraits } from "../shared/dom.js";
import { makeSvg } from "../shared/svg.js";

const RADIUS = 44; // of a clock, in a box from −50 to 50
const [WIDE, TALL] = [640, 96]; // the chart
const HINT =
  "Both hands start at the right and rotate anticlockwise; the shaded angle is their difference. " +
  "Query and key are (1, 0) in each pair, so a pair adds the cosine of that angle to the score.";

const degrees = (angle) => ((Math.floor((angle * 180) / Math.PI + 0.5 + 1e-9) % 360) + 360) % 360;
const shown = (value) => {
  const text = (Math.round((value + 1e-9) * 100) / 100 + 0).toFixed(2);
  return minus(text === "-0.00" ? "0.00" : text);
};
// The tip of a hand of this length; up is negative on a page.
const tip = (angle, length) => [length * Math.cos(angle), -length * Math.sin(angle)].map((part) => part.toFixed(2));

// The slice between the two hands, the short way.
function slice(ofQuery, ofKey) {
  const turn = Math.atan2(Math.sin(ofQuery - ofKey), Math.cos(ofQuery - ofKey));
  const [from, to] = [tip(ofKey, 0.6 * RADIUS), tip(ofKey + turn, 0.6 * RADIUS)];
  return `M0 0 L${from} A${0.6 * RADIUS} ${0.6 * RADIUS} 0 0 ${turn > 0 ? 0 : 1} ${to} Z`;
}

class ClockView {
  constructor({ model, el }) {
    this.model = model;
    ({ last: this.last, bases: this.bases, pairs: this.pairs, chart: this.most } = model.get("_layout"));
    this.root = makeRoot(model, "course-bars course-clock", { role: "group", "aria-label": "clocks of RoPE" });
    this.message = make("div", "course-message course-clock-message", { role: "status" });
    this.root.append(
      this.drawControls(),
      this.drawClocks(),
      this.message,
      this.drawChart(),
      make("div", "course-faint course-bars-note", {}, HINT),
    );
    keepSliderKeys(this.root);
    el.append(this.root);
    this.show();
    this.stopListening = listen(model, {
      query: () => this.show(),
      key: () => this.show(),
      base: () => this.show(),
    });
  }

  drawControls() {
    const controls = make("div", "course-bars-controls");
    this.sliders = ["query", "key"].map((name) => {
      const slider = barsSlider({
        name: `position of the ${name}`,
        last: this.last,
        ticks: [0, 50, 100, 150, 200].map((place) => [place, place]),
        onInput: (place) => setTraits(this.model, { [name]: place }),
      });
      slider.node.classList.add(`course-clock-${name}`);
      controls.append(slider.node);
      return [name, slider];
    });
    const row = make("div", "course-clock-buttons");
    row.append(make("span", "", {}, "both"));
    this.moves = [-10, -1, 1, 10].map((by) => {
      const sign = by < 0 ? "−" : "+";
      const button = make(
        "button",
        "",
        { type: "button", "aria-label": `move both by ${sign}${Math.abs(by)}` },
        `${sign}${Math.abs(by)}`,
      );
      button.addEventListener("click", () => {
        if (this.canMove(by))
          setTraits(this.model, { query: this.model.get("query") + by, key: this.model.get("key") + by });
      });
      row.append(button);
      return [by, button];
    });
    row.append(make("span", "course-clock-base", {}, "base"));
    this.choices = this.bases.map((base) => {
      const name = base.toLocaleString("en");
      const button = make("button", "", { type: "button", "aria-label": `base ${name}` }, name);
      button.addEventListener("click", () => setTraits(this.model, { base }));
      row.append(button);
      return [base, button];
    });
    controls.append(row);
    return controls;
  }

  drawClocks() {
    const row = make("div", "course-clock-faces");
    this.clocks = Array.from({ length: this.pairs }, (_, p) => {
      const node = make("div", "course-clock-face");
      const svg = makeSvg("svg", "", { viewBox: "-50 -50 100 100", "aria-hidden": "true" });
      const wedge = makeSvg("path", "course-clock-slice");
      const ofKey = makeSvg("line", "course-clock-hand-key");
      const ofQuery = makeSvg("line", "course-clock-hand-query");
      svg.append(makeSvg("circle", "course-clock-rim", { r: RADIUS }), wedge, ofKey, ofQuery);
      const speed = make("div", "course-faint");
      const cosine = make("div", "course-clock-cos");
      node.append(make("div", "course-clock-name", {}, `pair ${p}`), svg, speed, cosine);
      row.append(node);
      return { node, wedge, ofKey, ofQuery, speed, cosine };
    });
    return row;
  }

  drawChart() {
    const box = make("div", "course-clock-chart");
    const svg = makeSvg("svg", "", { viewBox: `-6 -6 ${WIDE + 12} ${TALL + 12}`, "aria-hidden": "true" });
    this.line = makeSvg("polyline", "course-clock-line");
    this.dot = makeSvg("circle", "course-clock-dot", { r: 6 });
    svg.append(
      makeSvg("line", "course-clock-zero", { x1: 0, x2: WIDE, y1: this.y(0), y2: this.y(0) }),
      this.line,
      this.dot,
    );
    const ends = make("div", "course-faint course-clock-ends");
    ends.append(
      make("span", "", {}, "distance 0"),
      make("span", "", {}, "score at each distance"),
      make("span", "", {}, this.most),
    );
    box.append(svg, ends);
    return box;
  }

  y(score) {
    return (TALL / 2) * (1 - score / this.pairs);
  }

  canMove(by) {
    return ["query", "key"].every((name) => {
      const place = this.model.get(name) + by;
      return place >= 0 && place <= this.last;
    });
  }

  show() {
    const [query, key, base] = ["query", "key", "base"].map((name) => this.model.get(name));
    const speeds = this.clocks.map((_, p) => base ** (-p / this.pairs));
    const scoreAt = (apart) => speeds.reduce((sum, speed) => sum + Math.cos(apart * speed), 0);
    const apart = Math.abs(query - key);
    for (const [name, slider] of this.sliders) slider.show(this.model.get(name), `${this.model.get(name)}`);
    for (const [by, button] of this.moves) button.setAttribute("aria-disabled", !this.canMove(by));
    for (const [each, button] of this.choices) button.setAttribute("aria-pressed", each === base);
    this.clocks.forEach(({ wedge, ofKey, ofQuery, speed, cosine }, p) => {
      const angles = [query * speeds[p], key * speeds[p]];
      wedge.setAttribute("d", slice(...angles));
      [ofQuery, ofKey].forEach((hand, i) => {
        const [x, y] = tip(angles[i], RADIUS - 3);
        hand.setAttribute("x2", x);
        hand.setAttribute("y2", y);
      });
      speed.textContent = `${((speeds[p] * 180) / Math.PI).toFixed(2)}° per position`;
      cosine.textContent = `cos ${degrees((query - key) * speeds[p])}° = ${shown(Math.cos((query - key) * speeds[p]))}`;
    });
    const points = Array.from(
      { length: this.most + 1 },
      (_, i) => `${(WIDE * i) / this.most},${this.y(scoreAt(i)).toFixed(2)}`,
    );
    this.line.setAttribute("points", points.join(" "));
    this.dot.setAttribute("cx", (WIDE * Math.min(apart, this.most)) / this.most);
    this.dot.setAttribute("cy", this.y(scoreAt(apart)));
    this.dot.style.display = apart > this.most ? "none" : "";
    this.message.textContent = `${apart} apart: score ${shown(scoreAt(apart))}`;
    this.message.dataset.value = scoreAt(apart);
  }

  remove() {
    this.stopListening();
  }
}

function render(options) {
  const clock = new ClockView(options);
  return () => clock.remove();
}

export default { render };
