// Shows the frames that online_softmax.py computed, one a step; every number and sentence comes from there, or
// for another order on a page without a kernel from online_softmax_alone.js.

import {
  keepKey,
  listen,
  make,
  makeRoot,
  makeScroll,
  makeSet,
  newId,
  placeReached,
  presses,
  setTraits,
  typeset,
} from "../shared/dom.js";
import { makeMessage, Player } from "../shared/player.js";
import { answerOrder } from "./online_softmax_alone.js";

const HINT = "Click or tap a number in the table, or go there by arrow keys and Enter, to see its arithmetic.";
const MOVE = "Drag a key by its name to change the order, or choose it and press ← or →.";
const MOVED = 12; // keys at most that can be moved: more leave no room for a finger

class OnlineSoftmaxView {
  constructor({ model, el }) {
    this.model = model;
    this.columns = model.get("_columns");
    this.keys = model.get("_keys");
    this.frames = model.get("_frames");
    this.ends = model.get("_ends");
    this.last = this.frames.length - 1;
    const uid = newId("course-online");
    const root = makeRoot(model, "course-online", { role: "group", "aria-labelledby": `${uid}-title` });
    const title = make("div", "course-title course-online-title", { id: `${uid}-title` }, model.get("title"));
    this.player = new Player(model, "steps", "step");
    this.message = makeMessage("course-message course-online-message");
    this.why = makeMessage("course-online-why", (node, lines) =>
      node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))),
    );
    this.chart = new KeyChart(this);
    this.table = new StateTable(this);
    this.end = this.makeEnd();
    root.append(
      title,
      this.player.node,
      this.message.node,
      this.chart.node,
      this.table.node,
      this.why.node,
      this.end.node,
    );
    this.player.keys(root);
    el.append(root);
    this.moved = null; // the place of the key that was moved last
    this.chosen = null; // [row, column] of the number whose arithmetic is shown
    // Another order needs Python: if it does not come soon, the page says what is still shown.
    this.late = null;

    this.stopListening = listen(model, {
      step: () => this.show(),
      order: () => this.wait(),
      _frames: () => this.rebuild(),
    });
    this.stop = model.alone ? answerOrder(model) : () => {};
    this.rebuild();
  }

  // The comparison shows itself when all keys are read.
  makeEnd() {
    const node = make("div", "course-online-end");
    const before = make(
      "div",
      "course-faint course-online-waits",
      {},
      "At the last key this is compared with softmax over all scores at once.",
    );
    const after = make("div", "course-online-compared");
    const scroll = makeScroll("course-online-scroll", { tabindex: 0, role: "group", "aria-label": "comparison" });
    const grid = make("table", "course-online-result", { "aria-label": "one pass and softmax compared" });
    const body = grid.createTBody();
    const sums = make("div");
    scroll.append(grid);
    after.append(sums, scroll);
    node.append(before, after);
    return {
      node,
      rebuild: () => {
        sums.replaceChildren(...typeset(this.ends.sums));
        body.replaceChildren(
          ...this.ends.heads.map((name, r) => {
            const row = make("tr");
            row.append(
              makeSet("th", "", { scope: "row" }, name),
              ...this.ends.rows[r].map((text) => make("td", "", {}, text)),
            );
            return row;
          }),
        );
      },
      show: (done) => {
        before.hidden = done;
        after.hidden = !done;
      },
    };
  }

  choose(r, c) {
    const same = this.chosen && this.chosen[0] === r && this.chosen[1] === c;
    this.chosen = r === undefined || same ? null : [r, c];
    this.show();
  }

  show() {
    const step = Math.min(this.model.get("step"), this.last);
    const frame = this.frames[step];
    if (this.chosen && this.chosen[0] > step) this.chosen = null;
    this.player.show(step, this.last);
    this.message.show(frame.message);
    this.chart.show(frame);
    this.table.show(step);
    this.end.show(step === this.last);
    this.why.node.classList.toggle("course-online-hint", !this.chosen);
    this.why.show(this.chosen ? explained(this.frames[this.chosen[0]].why[this.chosen[1]]) : [HINT]);
  }

  rebuild() {
    [this.keys, this.frames, this.ends] = [this.model.get("_keys"), this.model.get("_frames"), this.model.get("_ends")];
    this.chosen = null;
    this.message.rooms(this.frames.map((frame) => frame.message));
    for (const part of [this.chart, this.table, this.end]) part.rebuild();
    this.show();
    this.chart.say(
      this.moved === null ? MOVE : `${this.keys[this.moved].label} is in place ${this.moved + 1} now. ${MOVE}`,
    );
  }

  wait() {
    clearTimeout(this.late);
    this.late = setTimeout(() => {
      if (String(this.keys.map((key) => key.index)) !== String(this.model.get("order")))
        this.chart.say("waiting for Python; the order before is still shown");
    }, 400);
  }

  remove() {
    this.stop();
    this.player.stop();
    clearTimeout(this.late);
    this.stopListening();
  }
}

class StateTable {
  constructor(stepper) {
    this.stepper = stepper;
    this.node = makeScroll("course-online-scroll");
    this.grid = make("table", "course-online-table", {
      role: "grid",
      "aria-readonly": "true",
      "aria-label": "m, factor, l and o, step by step",
    });
    const head = this.grid.createTHead().insertRow();
    const body = this.grid.createTBody();
    for (const name of ["keys", "score", ...this.stepper.columns])
      head.append(makeSet("th", "", { scope: "col" }, name));
    this.cursor = [0, 0];
    this.rows = this.stepper.frames.map((frame, r) => {
      const row = body.insertRow();
      const name = make("th", "", { scope: "row" });
      const score = make("td", "course-online-score");
      row.append(name, score);
      const cells = frame.cells.map((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "aria-selected": "false" });
        cell.addEventListener("click", () => {
          if (r <= this.stepper.model.get("step")) {
            this.aim(r, c);
            this.stepper.choose(r, c);
          }
        });
        row.append(cell);
        return cell;
      });
      return { row, name, score, cells };
    });
    this.rows[0].cells[0].tabIndex = 0;
    this.grid.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const [r, c] = this.cursor;
      const target = placeReached(event, [r, c], [this.rows.length, this.stepper.columns.length]);
      if (target) this.aim(...target);
      else if (event.key === "Enter" || event.key === " ") this.stepper.choose(r, c);
      else if (event.key === "Escape" && this.stepper.chosen) this.stepper.choose();
      else return;
      keepKey(event); // the player takes arrows for steps
    });
    this.node.append(this.grid);
  }

  aim(r, c, focus = true) {
    this.rows[this.cursor[0]].cells[this.cursor[1]].tabIndex = -1;
    this.cursor = [
      Math.max(0, Math.min(this.stepper.model.get("step"), r)),
      Math.max(0, Math.min(this.stepper.columns.length - 1, c)),
    ];
    const cell = this.rows[this.cursor[0]].cells[this.cursor[1]];
    cell.tabIndex = 0;
    if (focus) cell.focus();
  }

  rebuild() {
    this.rows.forEach(({ name, score }, r) => {
      const here = this.stepper.keys.slice(this.stepper.frames[r].start, this.stepper.frames[r].stop);
      const ends = [here[0]?.label, here.at(-1)?.label];
      name.textContent = name.title = r === 0 ? "nothing yet" : here.length === 1 ? ends[0] : ends.join(" to ");
      score.textContent = r === 0 ? "" : here.map((key) => key.score).join(", ");
    });
  }

  show(step) {
    this.rows.forEach(({ row, cells }, r) => {
      row.dataset.state = r > step ? "next" : r === step ? "now" : "past";
      cells.forEach((cell, c) => {
        const text = r <= step ? this.stepper.frames[r].cells[c] : "·";
        if (cell.textContent !== text) cell.textContent = text;
        cell.classList.toggle("course-online-shrinks", c === 1 && r > 1 && r <= step && text !== "1.000");
        cell.setAttribute(
          "aria-selected",
          Boolean(this.stepper.chosen && this.stepper.chosen[0] === r && this.stepper.chosen[1] === c),
        );
      });
    });
    if (this.cursor[0] > step) this.aim(step, this.cursor[1], this.grid.contains(document.activeElement));
  }
}

// One bar a key: its power e^(score − m), with the m of this step. Under it its name, by which it is moved.
class KeyChart {
  constructor(stepper) {
    this.stepper = stepper;
    this.node = make("div");
    this.chart = make("div", "course-online-chart", { role: "img" });
    this.moves = this.stepper.keys.length <= MOVED;
    const row = make(
      "div",
      "course-online-names",
      this.moves ? { role: "group", "aria-label": "order of the keys" } : {},
    );
    this.status = make("div", "course-online-caption", { role: "status" });
    this.node.append(
      makeSet("div", "course-online-caption", {}, "e^(score − m) of each key read, with the m of this step"),
      this.chart,
      row,
    );
    if (this.moves) this.node.append(this.status);
    this.bars = this.stepper.keys.map((_, i) => {
      const part = make("div", "course-online-key");
      const plot = make("div", "course-online-plot");
      const bar = make("div", "course-online-bar");
      const name = this.moves
        ? make("button", "course-online-name", { type: "button" })
        : make("div", "course-online-name");
      plot.append(bar);
      part.append(plot);
      this.chart.append(part);
      row.append(name);
      if (this.moves) this.carry(name, i);
      return { part, bar, name };
    });
  }

  places() {
    return this.bars.map(({ name }) => name.getBoundingClientRect());
  }

  put(from, to) {
    if (to === from || to < 0 || to >= this.stepper.keys.length) return;
    const order = [...this.stepper.model.get("order")];
    order.splice(to, 0, ...order.splice(from, 1));
    this.stepper.player.stop();
    this.stepper.moved = to;
    setTraits(this.stepper.model, { order });
    this.bars[to].name.focus();
  }

  // A name follows the pointer, and its key goes where it is let go. Arrows move it by one.
  carry(name, i) {
    let start = null;
    let boxes = [];
    const target = (x) =>
      boxes.reduce(
        (best, box, place) =>
          Math.abs(box.x + box.width / 2 - x) < Math.abs(boxes[best].x + boxes[best].width / 2 - x) ? place : best,
        i,
      );
    const drop = () => {
      start = null;
      name.style.transform = "";
      for (const { name: each } of this.bars) delete each.dataset.target;
    };
    name.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      start = event.clientX;
      boxes = this.places();
      name.setPointerCapture(event.pointerId);
    });
    name.addEventListener("pointermove", (event) => {
      if (start === null) return;
      name.style.transform = `translateX(${event.clientX - start}px)`;
      this.bars.forEach(({ name: each }, place) => {
        each.dataset.target = place === target(event.clientX) && place !== i;
      });
    });
    name.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const dragged = Math.abs(event.clientX - start) > 4;
      drop();
      if (dragged) this.put(i, target(event.clientX));
    });
    name.addEventListener("pointercancel", drop);
    name.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: this.stepper.keys.length - 1 }[event.key];
      if (to === undefined && !presses(event)) return;
      keepKey(event); // the player takes arrows for steps
      if (to !== undefined) this.put(i, to);
    });
  }

  say(text) {
    this.status.textContent = text;
  }

  rebuild() {
    this.stepper.keys.forEach((key, i) => {
      const { name } = this.bars[i];
      const every = this.stepper.keys.length > 20 ? 4 : 2;
      name.textContent = this.moves ? key.label : i % every ? "" : i;
      name.title = key.label;
      if (this.moves)
        name.setAttribute(
          "aria-label",
          `${key.label}, place ${i + 1} of ${this.stepper.keys.length}: arrow keys move it`,
        );
    });
  }

  show(frame) {
    this.bars.forEach(({ part, bar, name }, i) => {
      name.dataset.state = part.dataset.state =
        i >= frame.stop ? "next" : i >= frame.start && this.stepper.model.get("step") ? "now" : "past";
      bar.style.transform = `scaleY(${frame.bars[i] ?? 0})`;
    });
    const powers = frame.bars.map((power) => power.toFixed(2)).join(", ");
    this.chart.setAttribute("aria-label", `e^(score − m) of the keys read so far: ${powers || "none yet"}`);
  }
}

function explained([name, sums, note]) {
  return [[name, sums].filter(Boolean).join(" = "), note];
}

function render(options) {
  const stepper = new OnlineSoftmaxView(options);
  return () => stepper.remove();
}

export default { render };
