// Plays the stages of attention that stepper_story.js tells, and lets the given numbers be changed. A step fills a cell
// or a row of what a stage makes; the trait `stage` follows it.

import {
  keepKey,
  keepKeys,
  listen,
  make,
  makeRamp,
  makeRoot,
  makeScroll,
  makeSet,
  minus,
  newId,
  placeReached,
  presses,
  setTraits,
  typeset,
} from "../shared/dom.js";
import { numberText } from "../shared/number_text.js";
import { makeMessage, Player } from "../shared/player.js";
import { flyInto, settle, slideFrom } from "./stepper_motion.js";
import { tellStory } from "./stepper_story.js";

const HINT =
  "Play it, or step by the arrow keys. Click or tap a number, or choose it by Enter, to see the arithmetic " +
  "that made it.";
const SOME = 4; // numbers of a row whose arithmetic is shown
const STEP = 0.5; // what − and + add
const WAIT = 1500; // milliseconds to wait for an answer from Python
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

class StepperView {
  numbers;
  stages;
  matrices;
  fresh;
  waiting;
  constructor({ model, el }) {
    this.model = model;
    this.labels = model.get("_labels");
    this.start = this.labels.start;
    this.most = this.labels.most;
    this.uid = newId("course-stepper");
    this.ramp = makeRamp(model);

    this.tell();
    this.frames = this.stages.flatMap(({ fills }, stage) => fills.map((fill) => ({ stage, fill })));
    this.last = this.frames.length - 1;
    this.root = makeRoot(model, "course-stepper", { role: "group", "aria-label": "attention, stage by stage" });

    this.problem = make("div", "course-stepper-problem", { role: "alert" });
    this.opening = true;
    this.drawPlayer();
    this.list = make("div", "course-row course-stepper-tabs", { role: "tablist", "aria-label": "stages" });
    this.main = make("div", "course-stepper-main");
    this.why = makeMessage("course-stepper-why", (node, lines) =>
      node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))),
    );
    this.silent = make(
      "div",
      "course-stepper-silent",
      {},
      `${this.labels.function} has not answered for these numbers: that needs Python, in JupyterLab.`,
    );
    this.change = new ChangeBar(this);
    this.root.append(
      this.problem,
      this.silent,
      this.player.node,
      this.list,
      this.main,
      this.why.node,
      this.change.node,
    );
    el.append(this.root);
    this.drawTabs();
    this.drawPanels();
    this.bindKeys();
    this.shown = null;
    this.listenToModel();
  }

  listenToModel() {
    this.stopListening = listen(this.model, {
      _numbers: () => this.follow(),
      _theirs: () => this.follow(),
      step: () => this.show(),
      cell: () => this.show(),
      problem: () => this.showProblem(),
    });
    this.showProblem();
    this.follow();
  }

  drawPlayer() {
    this.player = new Player(
      {
        get: (name) => this.model.get(name),
        set: (_, step) => this.walk(step, null),
        save_changes: () => this.model.save_changes(),
      },
      "steps from X to the output",
      "step",
      0,
      () => this.opening,
    );
  }

  drawTabs() {
    this.tabs = this.stages.map((stage, i) => {
      const tab = make(
        "button",
        "course-stepper-tab",
        { type: "button", role: "tab", id: `${this.uid}-tab-${i}`, "aria-controls": `${this.uid}-panel-${i}` },
        stage.name,
      );
      tab.addEventListener("click", () => this.go(i));
      this.list.append(tab);
      return tab;
    });
  }

  drawPanels() {
    this.panels = this.stages.map((stage, i) => {
      const panel = makeScroll("course-stepper-panel", {
        role: "tabpanel",
        id: `${this.uid}-panel-${i}`,
        "aria-labelledby": `${this.uid}-tab-${i}`,
      });
      const formula = make("div", "course-stepper-formula");
      const line = make("div", "course-stepper-line");
      const grids = [];
      let part;
      let rows = null; // the labels of the matrix that stands right before: the same ones are not written again
      stage.items.forEach((item, place) => {
        // A narrow page breaks the line before a sign, and nowhere else.
        if (place === 0 || item.sign) {
          part = make("div", "course-stepper-part");
          line.append(part);
        }
        const matrix = this.matrices[item.matrix];
        const bare = matrix && String(matrix.rows) === rows;
        rows = matrix ? String(matrix.rows) : null;
        if (item.sign) part.append(make("div", "course-stepper-sign", {}, item.sign));
        else {
          const grid = new MatrixGrid(this, matrix, bare);
          grids.push(grid);
          part.append(grid.node);
        }
      });
      const columns = grids.reduce((sum, { cells }) => sum + cells[0].length, 0);
      for (const [name, count] of [
        ["columns", columns],
        ["labels", grids.filter(({ bare }) => !bare).length],
      ])
        panel.style.setProperty(`--${name}`, count);
      panel.append(formula, line);
      this.main.append(panel);
      return { node: panel, formula, grids };
    });
  }

  bindKeys() {
    this.list.addEventListener("keydown", (event) => {
      const i = this.current();
      const count = this.stages.length;
      const target = { ArrowRight: (i + 1) % count, ArrowLeft: (i + count - 1) % count, Home: 0, End: count - 1 }[
        event.key
      ];
      if (target === undefined) return;
      this.go(target);
      this.tabs[target].focus();
      keepKey(event);
    });
    keepKeys(this.list, presses);
    this.player.keys(this.root);
  }

  tell() {
    this.numbers = this.model.get("_numbers");
    const theirs = this.model.get("_theirs") ?? null;
    this.fresh = Boolean(theirs) && JSON.stringify(theirs.numbers) === JSON.stringify(this.numbers);
    const read = (rows) => rows.map((row) => row.map(Number));
    const given = this.fresh ? { output: read(theirs.output), weights: read(theirs.weights) } : null;
    ({ stages: this.stages, matrices: this.matrices } = tellStory(this.numbers, this.labels, given));
  }

  complete(stage) {
    return this.frames.findLastIndex((frame) => frame.stage === stage);
  }

  current() {
    return this.frames[this.model.get("step")].stage;
  }

  shade(cell, level) {
    cell.style.backgroundColor = level === undefined ? "" : this.ramp.colour(level);
    cell.style.color = level === undefined ? "" : this.ramp.ink(level);
  }

  walk(step, cell) {
    this.opening = false;
    this.model.set("cell", cell);
    this.model.set("step", step);
    this.model.set("stage", this.frames[step].stage);
  }

  // A number that is not there yet comes when it is chosen.
  choose(cell) {
    this.player.stop();
    this.walk(cell ? Math.max(this.model.get("step"), this.stepOf(...cell)) : this.model.get("step"), cell);
    this.model.save_changes();
  }

  stepOf(name, r, c) {
    return this.frames.findIndex(
      ({ stage, fill }) => stage === this.current() && fill?.[0] === name && fill[1] === r && (fill[2] ?? c) === c,
    );
  }

  go(i) {
    // A chosen pair of query and key stays chosen from scores to weights.
    const cell = this.model.get("cell");
    const pairs = ["scores", "scaled", "masked", "weights"];
    const to = this.stages[i].results[0];
    this.player.stop();
    this.walk(
      this.complete(i),
      cell && [...this.stages[this.current()].results, to].every((name) => pairs.includes(name))
        ? [to, cell[1], cell[2]]
        : null,
    );
    this.model.save_changes();
  }

  // What a step shows: the arithmetic of a cell, or that of the numbers of a row.
  linesOf(fill) {
    if (!fill) return [HINT];
    const [name, r, c] = fill;
    const { rows, text, why } = this.matrices[name];
    if (c !== undefined) return why(r, c)[0];
    const lines = text[r]
      .slice(0, SOME)
      .map((_, column) => why(r, column)[0])
      .map((lines) => lines[lines.length > 2 ? 1 : 0]);
    return [`${name}[${r}], the row of “${rows[r]}”`, ...lines, ...(text[r].length > SOME ? ["…"] : [])];
  }

  show() {
    const step = this.model.get("step");
    const stage = this.current();
    const { grids } = this.panels[stage];
    const { fill } = this.frames[step];
    const before = this.panels[this.frames[this.shown ?? step].stage].grids;
    const forward = step === this.shown + 1;
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === stage);
      tab.tabIndex = i === stage ? 0 : -1;
    });
    this.panels.forEach((panel, i) => panel.node.classList.toggle("course-stepper-current", i === stage));
    this.player.show(step, this.last);
    const cell = this.model.get("cell") ?? null;
    const here = cell && grids.some((grid) => grid.name === cell[0]);
    if (cell) this.change.aim(cell);
    const made = here ? cell : fill;
    const { sources, targets } = this.lightUp(grids, made, here);
    this.why.show(here ? this.matrices[cell[0]].why(cell[1], cell[2])[0] : this.linesOf(fill));
    if (this.shown !== null && before !== grids) slideFrom(before, grids);
    if (forward && !here && before === grids) flyInto(this.root, sources, targets);
    else if (step !== this.shown) settle(this.root);
    this.shown = step;
  }

  // Marks the cell or row that is made, and what it is made from; returns the nodes of both.
  lightUp(grids, made, here) {
    const { columns } = made ? this.matrices[made[0]] : { columns: [] };
    const lit = (made?.[2] === undefined ? columns.map((_, c) => c) : [made[2]]).flatMap(
      (c) => this.matrices[made[0]].why(made[1], c)[1],
    );
    const blended = made?.[0] === "output" ? this.matrices.weights.levels[made[1]] : [];
    const sources = [];
    const targets = [];
    for (const grid of grids) {
      const parts = lit.filter(([name]) => name === grid.name);
      grid.cells.forEach((row, r) =>
        row.forEach((node, c) => {
          const now = made?.[0] === grid.name && made[1] === r && (made[2] ?? c) === c;
          const from = parts.filter(([, kind, i, j]) =>
            kind === "row" ? i === r : kind === "column" ? i === c : i === r && j === c,
          );
          if (now) targets.push(node);
          if (from.length) sources.push(node);
          if (grid.name === "V") this.shade(node, blended[r]);
          node.setAttribute("aria-selected", Boolean(now && here));
          node.classList.toggle("course-stepper-alone", made?.[2] === c);
          this.markCell(node, grid.name, r, c, now, from);
        }),
      );
    }
    return { sources, targets };
  }

  markCell(node, name, r, c, now, from) {
    node.classList.toggle("course-stepper-now", now);
    node.classList.toggle("course-stepper-later", this.stepOf(name, r, c) > this.model.get("step"));
    for (const kind of ["row", "column", "cell"])
      node.classList.toggle(
        `course-stepper-${kind}`,
        from.some((part) => part[1] === kind),
      );
  }

  showProblem() {
    this.problem.textContent = this.model.get("problem");
    this.problem.hidden = !this.model.get("problem");
  }

  follow() {
    this.tell();
    this.panels.forEach(({ formula, grids }, i) => {
      formula.replaceChildren(...typeset(this.stages[i].formula));
      for (const grid of grids) grid.paint();
    });
    this.change.show();
    this.why.rooms(this.frames.map(({ fill }) => this.linesOf(fill)));
    this.show();
    const silence = Boolean(this.labels.function && this.model.get("_theirs") && !this.fresh);
    clearTimeout(this.waiting);
    this.silent.hidden = true;
    if (silence)
      this.waiting = setTimeout(
        () => {
          this.silent.hidden = false;
        },
        this.model.alone ? 0 : WAIT,
      );
  }

  remove() {
    this.player.stop();
    clearTimeout(this.waiting);
    this.stopListening();
  }
}

class MatrixGrid {
  constructor(stepper, matrix, bare) {
    this.stepper = stepper;
    this.bare = bare;
    this.name = matrix.name;
    this.editable = this.name in this.stepper.numbers;
    this.node = make("table", "course-stepper-matrix", {
      role: "grid",
      "aria-readonly": !this.editable,
      "data-matrix": this.name,
    });
    this.node.classList.toggle("course-stepper-bare", bare);
    if (matrix.role) this.node.style.setProperty("--role", `var(--course-${matrix.role})`);
    const caption = this.node.createCaption();
    caption.append(makeSet("b", "", {}, matrix.name), make("span", "", {}, ` ${matrix.shape}`));
    const head = this.node.createTHead().insertRow();
    const body = this.node.createTBody();
    head.append(make("td"), ...matrix.columns.map((label) => make("th", "", { scope: "col", title: label }, label)));
    this.cursor = [0, 0];
    this.cells = matrix.text.map((texts, r) => {
      const row = body.insertRow();
      row.append(make("th", "", { scope: "row", title: matrix.rows[r] }, matrix.rows[r]));
      return texts.map((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: r || c ? -1 : 0, "aria-selected": "false" });
        cell.append(make("span"));
        cell.addEventListener("click", () => {
          this.aim(r, c);
          this.stepper.choose([this.name, r, c]);
        });
        if (this.editable) cell.addEventListener("dblclick", () => this.stepper.change.open());
        row.append(cell);
        return cell;
      });
    });
    this.bindKeys();
  }

  bindKeys() {
    this.node.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const [r, c] = this.cursor;
      const target = placeReached(event, [r, c], [this.cells.length, this.cells[0].length]);
      const chosen = String(this.stepper.model.get("cell")) === String([this.name, r, c]);
      if (target) this.aim(...target);
      else if (event.key === "Enter" && chosen && this.editable) this.stepper.change.open();
      else if (event.key === "Enter" || event.key === " ") this.stepper.choose([this.name, r, c]);
      else if (this.editable && /^[\d.−-]$/.test(event.key)) {
        this.stepper.choose([this.name, r, c]);
        this.stepper.change.open(event.key);
      } else if (event.key === "Escape" && this.stepper.model.get("cell")) this.stepper.choose(null);
      else return;
      keepKey(event);
    });
  }

  aim(r, c) {
    this.cells[this.cursor[0]][this.cursor[1]].tabIndex = -1;
    this.cursor = [Math.max(0, Math.min(this.cells.length - 1, r)), Math.max(0, Math.min(this.cells[0].length - 1, c))];
    const cell = this.cells[this.cursor[0]][this.cursor[1]];
    cell.tabIndex = 0;
    cell.focus();
  }

  paint() {
    const { text, levels, differs } = this.stepper.matrices[this.name];
    this.cells.forEach((row, r) =>
      row.forEach((cell, c) => {
        const edited = this.editable && this.stepper.numbers[this.name][r][c] !== this.stepper.start[this.name][r][c];
        cell.firstChild.textContent = text[r][c];
        if (levels) this.stepper.shade(cell, levels[r][c]);
        cell.classList.toggle("course-stepper-differs", differs[r][c]);
        cell.classList.toggle("course-stepper-edited", edited);
        const more = differs[r][c]
          ? ", differs from the arithmetic"
          : edited
            ? `, was ${numberText(this.stepper.start[this.name][r][c])}`
            : "";
        if (more) cell.setAttribute("aria-label", text[r][c] + more);
        else cell.removeAttribute("aria-label");
      }),
    );
  }

  focus(r, c) {
    this.aim(r, c);
  }
}

// ---- the number that can be changed: the given one that was chosen last, in whatever stage one looks at
class ChangeBar {
  constructor(stepper) {
    this.stepper = stepper;
    this.node = make("div", "course-row course-stepper-change", {
      role: "group",
      "aria-label": "change a given number",
    });
    this.where = make("button", "course-stepper-where", { type: "button" });
    this.less = make("button", "", { type: "button" }, "−");
    this.more = make("button", "", { type: "button" }, "+");
    this.field = make("input", "", { type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
    this.reset = make("button", "course-stepper-reset", { type: "button" }, "all as given");
    this.refused = make("div", "course-stepper-refused", { role: "alert" });
    const first = Object.keys(this.stepper.start)[0];
    this.target = [first, Math.min(2, this.stepper.start[first].length - 1), 0];
    this.typing = false;
    this.node.append(
      make("span", "", {}, "change"),
      this.where,
      this.less,
      this.field,
      this.more,
      this.reset,
      makeSet(
        "span",
        "course-faint course-stepper-others",
        {},
        `Any number of ${Object.keys(this.stepper.start).join(", ")} that you choose there can be changed here.`,
      ),
      this.refused,
    );
    this.bindButtons();
    this.bindField();
    for (const button of [this.where, this.less, this.more, this.reset]) keepKeys(button, presses);
  }

  bindButtons() {
    this.less.addEventListener("click", () => this.step(-STEP));
    this.more.addEventListener("click", () => this.step(STEP));
    this.where.addEventListener("click", () => this.toCell());
    this.reset.addEventListener("click", () => {
      if (this.reset.getAttribute("aria-disabled") === "true") return;
      this.refused.textContent = "";
      setTraits(this.stepper.model, { _numbers: this.stepper.start });
    });
  }

  bindField() {
    this.field.addEventListener("input", () => {
      this.typing = true;
    });
    this.field.addEventListener("blur", () => {
      if (this.typing) this.take();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !(event.shiftKey || event.ctrlKey || event.metaKey || event.altKey)) {
        this.take();
        this.leave();
      } else if (event.key === "Escape") {
        this.typing = false;
        this.show();
        this.leave();
      } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        if (this.typing) this.take();
        this.step(event.key === "ArrowUp" ? STEP : -STEP);
      } else {
        if (!(event.key === "Tab" || event.key === "Enter")) event.stopPropagation();
        return;
      }
      keepKey(event);
    });
  }

  now() {
    return this.stepper.numbers[this.target[0]][this.target[1]][this.target[2]];
  }

  name() {
    return `${this.target[0]}[${this.target[1]}, ${this.target[2]}]`;
  }

  put(value) {
    const [matrix, r, c] = this.target;
    const rows = this.stepper.numbers[matrix].map((row) => [...row]);
    rows[r][c] = value;
    this.refused.textContent = "";
    setTraits(this.stepper.model, { _numbers: { ...this.stepper.numbers, [matrix]: rows } });
  }

  take() {
    this.typing = false;
    const text = this.field.value.trim().replace(/^−/, "-");
    const value = Number(text);
    if (text === written(this.now()).replace("−", "-")) this.refused.textContent = "";
    else if (!NUMBER.test(text))
      this.refuse(text ? `“${this.field.value.trim()}” is not a number` : "there is no number");
    else if (!(Math.abs(value) <= this.stepper.most))
      this.refuse(
        `${this.field.value.trim()} is too large: give a number from −${this.stepper.most} to ${this.stepper.most}`,
      );
    else this.put(value);
    this.show();
  }

  refuse(reason) {
    this.refused.textContent = `${reason}; ${written(this.now())} stays.`;
  }

  step(by) {
    const value = Number((this.now() + by).toPrecision(12));
    if (Math.abs(value) <= this.stepper.most) this.put(value);
    else this.refuse(`${written(value)} is too large`);
  }

  show() {
    this.where.replaceChildren(...typeset(this.name()));
    this.where.setAttribute("aria-label", `${this.name()}: show where it stands`);
    this.field.setAttribute("aria-label", this.name());
    this.less.setAttribute("aria-label", `${this.name()} less ${STEP}`);
    this.more.setAttribute("aria-label", `${this.name()} plus ${STEP}`);
    if (!this.typing) this.field.value = written(this.now());
    this.reset.setAttribute(
      "aria-disabled",
      JSON.stringify(this.stepper.numbers) === JSON.stringify(this.stepper.start),
    );
  }

  place(i) {
    return this.stepper.panels[i].grids.find((grid) => grid.name === this.target[0]);
  }

  toCell() {
    if (!this.place(this.stepper.current()))
      this.stepper.walk(this.stepper.complete(this.stepper.panels.findIndex((_, i) => this.place(i))), null);
    this.stepper.choose([...this.target]);
    this.place(this.stepper.current()).focus(this.target[1], this.target[2]);
  }

  // Back to the cell, where it is in sight; elsewhere one looks at what follows from it, and stays in the field.
  leave() {
    if (this.place(this.stepper.current())) this.toCell();
    else this.field.select();
  }

  aim(cell) {
    if (!(cell[0] in this.stepper.numbers) || String(cell) === String(this.target)) return;
    if (this.typing) this.take();
    this.target = [...cell];
    this.refused.textContent = "";
    this.show();
  }

  open(text) {
    this.field.focus();
    if (text === undefined) this.field.select();
    else {
      this.typing = true;
      this.field.value = text;
    }
  }
}

const written = (value) => minus(String(Number(value.toPrecision(12))));

function render(options) {
  const stepper = new StepperView(options);
  return () => stepper.remove();
}

export default { render };
