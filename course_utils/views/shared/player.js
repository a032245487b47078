// Shared by the widgets that walk through frames: buttons, a slider, a clock that plays, and keys. The trait is `step`,
// and the page counts it from `first`. Where `opening()`, nobody has moved yet, and play begins at the first frame.

import { make, setTraits, typeset } from "./dom.js";

export class Player {
  constructor(model, name, unit, first = 0, opening = () => false) {
    this.model = model;
    this.first = first;
    this.opening = opening;
    this.node = make("div", "course-player", { role: "group", "aria-label": name });
    this.last = 0;
    this.clock = null;
    this.reset = this.button("reset", "reset", () => this.walk(-Infinity));
    this.back = this.button("← back", "back", () => this.walk(-1));
    this.play = this.button("▶ play", "play", () => (this.clock ? this.stop() : this.start()));
    this.next = this.button("step →", "step", () => this.walk(1));
    const label = make("label", "course-player-slider");
    this.place = make("span", "course-player-place");
    this.slider = make("input", "", { type: "range", min: 0, step: 1 });
    this.slider.addEventListener("input", () => {
      this.stop();
      this.moveTo(+this.slider.value);
    });
    label.append(make("span", "", {}, unit), this.slider);
    this.node.append(label, this.place);
  }

  button(text, label, act) {
    const made = make("button", "", { type: "button", "aria-label": label }, text);
    made.addEventListener("click", () => {
      if (made.getAttribute("aria-disabled") !== "true") act();
    });
    this.node.append(made);
    return made;
  }

  moveTo(step) {
    const target = Math.max(0, Math.min(this.last, step));
    if (target === this.model.get("step")) return;
    setTraits(this.model, { step: target });
  }

  walk(by) {
    this.stop();
    this.moveTo(this.model.get("step") + by);
  }

  start() {
    if (this.opening() || this.model.get("step") >= this.last) this.moveTo(0);
    this.clock = setInterval(
      () => {
        if (!this.node.isConnected) return this.stop();
        this.moveTo(this.model.get("step") + 1);
        if (this.model.get("step") >= this.last) this.stop();
      },
      Math.max(150, Math.min(1000, 30000 / this.last)),
    );
    this.showPlay();
  }

  stop() {
    clearInterval(this.clock);
    this.clock = null;
    this.showPlay();
  }

  showPlay() {
    this.play.textContent = this.clock ? "❚❚ pause" : "▶ play";
    this.play.setAttribute("aria-label", this.clock ? "pause" : "play");
  }

  // Arrows step, Space plays. What a button, menu, box or slider does with its own keys, it keeps.
  keys(root) {
    root.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const { key, target } = event;
      const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
      const arrow = /^(Arrow|Home|End|Page)/.test(key);
      const owns = ["SELECT", "INPUT"].includes(target.tagName);
      if (!arrow && key !== " " && key !== "Enter") return;
      event.stopPropagation(); // JupyterLab binds these keys to its cells
      const free = target === this.slider || !(owns || target.tagName === "BUTTON");
      if (key === " " && free) this.play.click();
      else if (key in moves && !owns) this.walk(moves[key]);
      else return;
      event.preventDefault();
    });
  }

  go(step) {
    this.stop();
    this.moveTo(step);
  }

  focus() {
    this.slider.focus({ preventScroll: true });
  }

  show(step, end) {
    this.last = end;
    if (+this.slider.max !== this.last) this.slider.max = this.last;
    if (+this.slider.value !== step) this.slider.value = step;
    const text = `${step + this.first} of ${this.last + this.first}`;
    this.slider.setAttribute("aria-valuetext", text);
    this.place.textContent = text;
    for (const at of [this.reset, this.back]) at.setAttribute("aria-disabled", step === 0);
    this.next.setAttribute("aria-disabled", step === this.last);
  }
}

// Says in `place` that a walk of other settings than the chosen ones is still shown, after a moment in which the new
// one usually arrives. named: of its settings, what they are called.
export function makeLate(model, place, named) {
  let late = null;
  return {
    stop: () => clearTimeout(late),
    show: (settings) => {
      const is = () => Object.entries(settings).some(([name, value]) => model.get(name) !== value);
      clearTimeout(late);
      if (!is()) place.textContent = "";
      else
        late = setTimeout(() => {
          if (is()) place.textContent = `waiting for Python; still shown: ${named(settings)}`;
        }, 400);
    },
  };
}

// A line of text that changes with the step. The longest of them all, unseen, keeps its room, so that nothing moves.
export function makeMessage(name, show = (node, text) => node.replaceChildren(...typeset(text))) {
  const node = make("div", `course-player-message ${name}`);
  const room = make("div", "course-player-room", { "aria-hidden": "true" });
  const seen = make("div", "", { role: "status" });
  let shown;
  node.append(room, seen);
  return {
    node,
    seen,
    rooms: (all) =>
      show(
        room,
        all.reduce((a, b) => (String(b).length > String(a).length ? b : a), ""),
      ),
    show: (text) => {
      if (shown === String(text)) return;
      shown = String(text);
      show(seen, text);
    },
  };
}
