// Draws a state of fixed size; all arithmetic is in memory_board_state.js, so writing needs no kernel.

import { keepKeys, listen, make, makeRoot, makeScroll, makeSet, minus, presses, setTraits } from "../shared/dom.js";
import { stateOf } from "./memory_board_state.js";

const NOTE = "Write all pairs, then read: red is an error. Undo, and try the other rule.";
const NAMES = { add: "add (linear attention)", delta: "delta rule" };

const short = (number) => minus(Number(number.toFixed(2)).toString());
const row = (numbers) => `(${numbers.map(short).join(", ")})`;

class MemoryBoardView {
  constructor({ model, el }) {
    this.model = model;
    this.pairs = model.get("_pairs");
    this.words = model.get("words");
    const root = makeRoot(model, "course-memory", { role: "group", "aria-label": "memory board" });
    root.append(this.drawControls(), this.drawState(), this.drawTable());
    this.message = make("div", "course-message course-memory-message", { role: "status" });
    root.append(this.message, make("div", "course-faint", {}, NOTE));
    keepKeys(root, presses);
    el.append(root);
    this.show();
    this.stopListening = listen(model, { rule: () => this.show(), writes: () => this.show() });
  }

  drawControls() {
    const controls = make("div", "course-memory-controls");
    this.rules = Object.entries(this.model.get("_rules")).map(([rule, formula]) => {
      const button = make("button", "course-memory-rule", { type: "button" });
      button.append(make("span", "", {}, `${NAMES[rule]}: `), make("span", "", {}, `S ← ${formula}`));
      button.addEventListener("click", () => setTraits(this.model, { rule }));
      controls.append(button);
      return { rule, button };
    });
    this.undo = this.button("Undo", () => setTraits(this.model, { writes: this.model.get("writes").slice(0, -1) }));
    this.clear = this.button("Clear", () => setTraits(this.model, { writes: [] }));
    controls.append(this.undo, this.clear);
    return controls;
  }

  button(text, act) {
    const node = make("button", "", { type: "button" }, text);
    node.addEventListener("click", () => node.getAttribute("aria-disabled") !== "true" && act());
    return node;
  }

  drawState() {
    const table = make("table", "course-memory-state", { "aria-label": "the state S" });
    const body = table.createTBody();
    this.cells = this.pairs.keys[0].map((_, i) => {
      const line = body.insertRow();
      if (i === 0) line.append(makeSet("th", "", { scope: "rowgroup", rowspan: this.pairs.keys[0].length }, "S ="));
      return this.pairs.values[0].map(() => {
        const cell = make("td");
        line.append(cell);
        return cell;
      });
    });
    return table;
  }

  drawTable() {
    const scroll = makeScroll("course-memory-scroll");
    const table = make("table", "course-memory-pairs", { "aria-label": "pairs, and what their keys read" });
    const head = table.createTHead().insertRow();
    for (const text of ["pair", "key k", "value v", "write", "read kS", "wanted"])
      head.append(make("th", "", { scope: "col" }, text));
    const body = table.createTBody();
    this.rows = this.words.map((word, i) => {
      const line = body.insertRow();
      const write = this.button("write", () => setTraits(this.model, { writes: [...this.model.get("writes"), i] }));
      write.setAttribute("aria-label", `write ${word}`);
      const [read, wanted] = ["course-memory-read", "course-memory-wanted"].map((name) => make("td", name));
      const holds = make("td");
      holds.append(write);
      line.append(
        make("th", "", { scope: "row" }, word),
        make("td", "", {}, row(this.pairs.keys[i])),
        make("td", "", {}, row(this.pairs.values[i])),
        holds,
        read,
        wanted,
      );
      return { write, read, wanted };
    });
    scroll.append(table);
    return scroll;
  }

  show() {
    const rule = this.model.get("rule");
    const writes = this.model.get("writes");
    const { S, reads } = stateOf(this.pairs, writes, rule);
    for (const each of this.rules) each.button.setAttribute("aria-pressed", each.rule === rule);
    this.undo.setAttribute("aria-disabled", writes.length === 0);
    this.clear.setAttribute("aria-disabled", writes.length === 0);
    S.forEach((line, i) => {
      line.forEach((number, j) => {
        this.cells[i][j].textContent = short(number);
      });
    });
    const wrong = [];
    this.rows.forEach(({ write, read, wanted }, i) => {
      const [found, value, error] = reads[i];
      write.setAttribute("aria-disabled", writes.length >= this.model.get("_most"));
      read.textContent = row(found);
      wanted.textContent = value ? row(value) : "not written";
      const part = value ? Math.min(1, error) : 0;
      read.style.setProperty("--error", `${Math.round(60 * part)}%`);
      if (value && error > 0.005) wrong.push(this.words[i]);
    });
    const last = this.words[writes[writes.length - 1]];
    this.message.textContent = !writes.length
      ? "Nothing is written yet: every key reads zeros."
      : `Written last: ${last}. ` +
        (wrong.length ? `Not read back as written: ${wrong.join(", ")}.` : "Every key reads what it last wrote.");
  }

  remove() {
    this.stopListening();
  }
}

function render(options) {
  const view = new MemoryBoardView(options);
  return () => view.remove();
}

export default { render };
