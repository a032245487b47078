// Shows what heatmap.py computed. Hover and focus stay here; only a pinned row goes to Python.

import {
  bytes,
  clamp,
  keepKey,
  listen,
  make,
  makeRamp,
  makeRoot,
  makeScroll,
  newId,
  placeReached,
  setTraits,
  words,
} from "../shared/dom.js";

const HINT = "Point at or tap a row to read its weights; a click or Enter pins it, and arrow keys move.";

class HeatmapView {
  constructor({ model, el }) {
    this.model = model;
    this.queries = model.get("_queries");
    this.keys = model.get("_keys");
    this.layout = model.get("_layout");
    this.n = this.queries.length;
    this.m = this.keys.length;
    this.uid = newId("course-heatmap");
    this.ramp = makeRamp(model);

    const root = makeRoot(model, "course-heatmap", { role: "group", "aria-labelledby": `${this.uid}-title` });
    this.title = make("div", "course-title course-heatmap-title", { id: `${this.uid}-title` }, model.get("title"));
    const columns = make("div", "course-heatmap-columns");
    const main = make("div", "course-heatmap-main");
    this.live = make("div", "course-live", { role: "status" });
    columns.append(main);
    this.legend = this.blockedLegend();
    root.append(this.title, columns, this.legend.node, make("div", "course-faint", {}, HINT), this.live);
    root.style.setProperty("--cell", `${Math.max(44, Math.min(72, Math.floor(300 / this.m)))}px`);
    root.style.setProperty("--tall", `${Math.max(32, Math.min(56, Math.floor(240 / this.n)))}px`);
    el.append(root);

    this.last = this.n - 1;
    this.hover = null;
    this.column = null;
    this.focused = false;
    this.cursor = [0, 0];

    this.read();
    this.grid = this.layout.canvas ? new CanvasGrid(this) : new TableGrid(this);
    this.panel = new SidePanel(this);
    main.append(this.grid.node);
    columns.append(this.panel.node);
    this.grid.paint();
    this.legend.show();
    this.show();
    this.stopListening = listen(model, {
      _frame: () => this.redraw(),
      row: () => this.show(),
      title: () => this.retitle(),
    });
  }

  read() {
    const { levels, thousandths, largest, short, captions, marks } = this.model.get("_frame");
    this.frame = {
      levels: bytes(levels),
      thousandths: words(thousandths),
      largest: words(largest),
      short,
      captions,
      marks,
    };
  }

  // b blocked, l blocked but not 0; nothing without a mask
  mark(r, c) {
    return this.frame.marks[r * this.m + c];
  }

  number(r, c) {
    return (this.frame.thousandths[r * this.m + c] / 1000).toFixed(3);
  }

  textOf(r, c) {
    return { b: "blocked", l: `${this.number(r, c)}, though blocked` }[this.mark(r, c)] ?? this.number(r, c);
  }

  sentence(r, c) {
    return `query ${this.queries[r]}, key ${this.keys[c]}: ${this.textOf(r, c)}`;
  }

  blockedLegend() {
    const node = make("div", "course-legend course-heatmap-legend");
    const items = {};
    for (const [name, text] of [
      ["b", "blocked: may not attend"],
      ["l", "blocked, but has a weight: a leak"],
    ]) {
      items[name] = make("span", "", { "data-mark": name });
      items[name].append(make("i", "", { "aria-hidden": "true" }), text);
      node.append(items[name]);
    }
    return {
      node,
      show: () => {
        node.hidden = !this.frame.marks;
        items.l.hidden = !this.frame.marks.includes("l");
      },
    };
  }

  show() {
    const pinned = this.model.get("row") ?? null;
    // at first the last row, then the one looked at last
    const shown = this.hover ?? (this.focused ? this.cursor[0] : (pinned ?? this.last));
    this.last = shown;
    const at = this.hover !== null ? this.column : this.focused ? this.cursor[1] : null;
    this.grid.mark(shown, pinned, at);
    this.panel.paint(shown, pinned, at);
  }

  point(r, c) {
    if (r === this.hover && c === this.column) return;
    [this.hover, this.column] = [r, c];
    this.show();
  }

  pin(r) {
    setTraits(this.model, { row: r === this.model.get("row") ? null : r });
  }

  moveTo(r, c) {
    this.grid.focus(clamp(r, this.n), clamp(c, this.m));
  }

  press(event) {
    if (event.altKey || event.metaKey || event.shiftKey) return;
    const [r, c] = this.cursor;
    const target = placeReached(event, [r, c], [this.n, this.m], 8);
    if (target) {
      this.hover = this.column = null;
      this.moveTo(...target);
    } else if (!event.ctrlKey && (event.key === "Enter" || event.key === " ")) this.pin(r);
    else if (event.key === "Escape" && this.model.get("row") !== null) this.pin(this.model.get("row"));
    else return;
    keepKey(event);
  }

  redraw() {
    this.read();
    this.grid.paint();
    this.legend.show();
    this.show();
  }

  retitle() {
    this.title.textContent = this.model.get("title");
  }

  remove() {
    this.stopListening();
  }
}

// ---- one row's distribution; every line has its place, so that it does not move from row to row
class SidePanel {
  constructor(heatmap) {
    this.heatmap = heatmap;
    this.node = make("div", "course-heatmap-side");
    this.state = make("div", "course-heatmap-state");
    this.caption = [make("div", "course-heatmap-caption"), make("div", "course-heatmap-caption")];
    const strip = this.heatmap.layout.listed
      ? null
      : make("canvas", "course-heatmap-strip", { width: this.heatmap.m, height: 48, "aria-hidden": "true" });
    const table = make("table", "course-heatmap-bars", { "aria-label": "weights of the row" });
    this.bars = Array.from({ length: this.heatmap.layout.bars }, () => {
      const row = table.insertRow();
      const name = make(
        this.heatmap.layout.listed ? "th" : "td",
        "course-heatmap-name",
        this.heatmap.layout.listed ? { scope: "row" } : {},
      );
      const track = make("td", "course-heatmap-track");
      const bar = make("div", "course-heatmap-bar");
      const value = make("td", "course-heatmap-number");
      track.append(bar);
      row.append(name, value, track);
      return { name, bar, value, row };
    });
    if (this.heatmap.layout.listed)
      this.bars.forEach((bar, c) => {
        bar.name.textContent = bar.name.title = this.heatmap.keys[c];
      });
    this.reading = make("div", "course-heatmap-reading");
    this.node.append(this.state, ...this.caption);
    this.scale = make("div", "course-heatmap-scale");
    if (strip) this.node.append(this.scale, strip);
    this.node.append(table, this.reading);
    this.pen = strip?.getContext("2d");
  }

  paint(r, pinned, at) {
    this.state.textContent = `row ${r}${r === pinned ? ", pinned" : ""}`;
    this.state.classList.toggle("course-heatmap-pinned", r === pinned);
    this.caption[0].textContent = this.heatmap.frame.captions[r][0];
    this.caption[1].textContent = this.heatmap.frame.captions[r][1] ?? "";
    this.reading.textContent = at === null ? "" : this.heatmap.sentence(r, at);
    this.node.dataset.row = r;
    const top = this.heatmap.frame.largest.length / this.heatmap.n;
    if (this.pen) {
      const most = Math.max(1, this.heatmap.frame.levels[r * this.heatmap.m + this.heatmap.frame.largest[r * top]]);
      this.scale.textContent =
        `all ${this.heatmap.m} keys; the tallest is ` +
        `${this.heatmap.number(r, this.heatmap.frame.largest[r * top])}`;
      this.pen.clearRect(0, 0, this.heatmap.m, 48);
      const { "--course-query": own, "--course-key": leaking } = this.heatmap.model.get("_palette");
      for (let c = 0; c < this.heatmap.m; c++) {
        this.pen.fillStyle = this.heatmap.mark(r, c) === "l" ? leaking : own;
        const height = (this.heatmap.frame.levels[r * this.heatmap.m + c] * 48) / most;
        this.pen.fillRect(c, 48 - height, 1, height);
      }
    }
    this.bars.forEach(({ name, bar, value, row }, i) => {
      const c = this.heatmap.layout.listed ? i : this.heatmap.frame.largest[r * top + i];
      const marked = this.heatmap.mark(r, c) ?? "";
      if (!this.heatmap.layout.listed) name.textContent = this.heatmap.keys[c];
      bar.style.transform = `scaleX(${this.heatmap.frame.levels[r * this.heatmap.m + c] / 255})`;
      bar.dataset.mark = marked;
      value.textContent = marked === "b" ? "–" : this.heatmap.number(r, c);
      row.classList.toggle("course-heatmap-largest", c === this.heatmap.frame.largest[r * top]);
    });
  }
}

// ---- above 400 cells: one canvas, drawn when the weights change; highlights are boxes moved above it
class CanvasGrid {
  constructor(heatmap) {
    this.heatmap = heatmap;
    this.side = Math.max(3, Math.min(18, Math.floor(512 / Math.max(this.heatmap.n, this.heatmap.m))));
    this.labelled = this.side >= 11;
    this.node = make("div", this.labelled ? "course-heatmap-axes course-heatmap-labelled" : "course-heatmap-axes");
    this.wrap = make("div", "course-heatmap-canvas", {
      role: "grid",
      tabindex: 0,
      "aria-labelledby": `${this.heatmap.uid}-title`,
      "aria-readonly": "true",
      "aria-rowcount": this.heatmap.n,
      "aria-colcount": this.heatmap.m,
      "aria-activedescendant": `${this.heatmap.uid}-cell`,
    });
    this.drawCanvas();
    this.drawBoxes();
    this.wrap.append(this.canvas, this.pinBox, this.showBox, this.cellBox, this.row);
    this.drawAxes();
    this.bindPointerAndKeys();
  }

  drawCanvas() {
    this.canvas = make("canvas", "course-ramp", {
      width: this.heatmap.m,
      height: this.heatmap.n,
      "aria-hidden": "true",
    });
    this.canvas.style.width = this.wrap.style.width = `${this.heatmap.m * this.side}px`;
    this.canvas.style.height = this.wrap.style.height = `${this.heatmap.n * this.side}px`;
    this.context = this.canvas.getContext("2d");
    this.image = this.context.createImageData(this.heatmap.m, this.heatmap.n);
    this.leak = [1, 3, 5].map((at) =>
      parseInt(this.heatmap.model.get("_palette")["--course-key"].slice(at, at + 2), 16),
    );
  }

  drawBoxes() {
    this.pinBox = make("div", "course-heatmap-box course-heatmap-pin");
    this.showBox = make("div", "course-heatmap-box course-heatmap-show");
    this.cellBox = make("div", "course-heatmap-box course-heatmap-cell");
    for (const box of [this.pinBox, this.showBox]) {
      box.style.width = `${this.heatmap.m * this.side}px`;
      box.style.height = `${this.side}px`;
    }
    this.cellBox.style.width = this.cellBox.style.height = `${this.side}px`;
    // Assistive technology gets the current row of the grid, as in a grid that is scrolled.
    this.row = make("div", "course-live", { role: "row" });
    this.cell = make("div", "", { role: "gridcell", id: `${this.heatmap.uid}-cell` });
    this.row.append(this.cell);
  }

  drawAxes() {
    const across = make("div", "course-heatmap-across", { "aria-hidden": "true" });
    const down = make("div", "course-heatmap-down", { "aria-hidden": "true" });
    if (this.labelled) {
      for (const key of this.heatmap.keys) across.append(make("span", "", { style: `width:${this.side}px` }, key));
      for (const query of this.heatmap.queries)
        down.append(make("span", "", { style: `height:${this.side}px;line-height:${this.side}px` }, query));
    } else {
      across.append(make("span", "", {}, `keys 0 to ${this.heatmap.m - 1} →`));
      down.append(make("span", "", {}, `queries 0 to ${this.heatmap.n - 1} ↓`));
    }
    this.node.append(make("div"), across, down, this.wrap);
  }

  bindPointerAndKeys() {
    this.wrap.addEventListener("pointermove", (event) => this.heatmap.point(...this.place(event)));
    this.wrap.addEventListener("pointerleave", () => this.heatmap.point(null, null));
    this.wrap.addEventListener("click", (event) => {
      this.heatmap.moveTo(...this.place(event));
      this.heatmap.pin(this.heatmap.cursor[0]);
    });
    this.wrap.addEventListener("focus", () => {
      this.heatmap.focused = true;
      this.heatmap.show();
    });
    this.wrap.addEventListener("blur", () => {
      this.heatmap.focused = false;
      this.heatmap.show();
    });
    this.wrap.addEventListener("keydown", (event) => this.heatmap.press(event));
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [
      clamp(Math.floor((event.clientY - box.top) / this.side), this.heatmap.n),
      clamp(Math.floor((event.clientX - box.left) / this.side), this.heatmap.m),
    ];
  }

  focus(r, c) {
    this.heatmap.cursor = [r, c];
    this.wrap.focus({ preventScroll: true });
    this.heatmap.live.textContent = this.heatmap.sentence(r, c);
    this.heatmap.show();
  }

  paint() {
    for (let i = 0; i < this.heatmap.n * this.heatmap.m; i++) {
      const at = 3 * this.heatmap.frame.levels[i];
      this.image.data[4 * i] = this.heatmap.ramp.parts[at];
      this.image.data[4 * i + 1] = this.heatmap.ramp.parts[at + 1];
      this.image.data[4 * i + 2] = this.heatmap.ramp.parts[at + 2];
      this.image.data[4 * i + 3] = this.heatmap.frame.marks[i] === "b" ? 0 : 255; // the hatching lies behind
      if (this.heatmap.frame.marks[i] === "l") this.image.data.set(this.leak, 4 * i);
    }
    this.context.putImageData(this.image, 0, 0);
  }

  mark(shown, pinned) {
    this.showBox.style.transform = `translateY(${shown * this.side}px)`;
    this.pinBox.hidden = pinned === null;
    this.pinBox.style.transform = `translateY(${pinned * this.side}px)`;
    this.cellBox.hidden = !this.heatmap.focused;
    this.cellBox.style.transform =
      `translate(${this.heatmap.cursor[1] * this.side}px, ` + `${this.heatmap.cursor[0] * this.side}px)`;
    this.row.setAttribute("aria-rowindex", this.heatmap.cursor[0] + 1);
    this.row.setAttribute("aria-selected", this.heatmap.cursor[0] === pinned);
    this.cell.setAttribute("aria-colindex", this.heatmap.cursor[1] + 1);
    this.cell.textContent = this.heatmap.sentence(...this.heatmap.cursor);
  }
}

// ---- up to 400 cells: a table that is a real ARIA grid
class TableGrid {
  constructor(heatmap) {
    this.heatmap = heatmap;
    this.node = makeScroll("course-heatmap-scroll");
    this.table = make("table", "course-heatmap-table", {
      role: "grid",
      "aria-labelledby": `${this.heatmap.uid}-title`,
      "aria-readonly": "true",
    });
    this.node.append(this.table);
    const head = this.table.createTHead().insertRow();
    this.cells = [];
    this.rows = [];
    head.append(make("th", "course-heatmap-corner", {}, "query ↓ key →"));
    this.heads = this.heatmap.keys.map((key) => make("th", "", { scope: "col", title: key }, key));
    head.append(...this.heads);
    const body = this.table.createTBody();
    this.heatmap.queries.forEach((query, r) => {
      const row = body.insertRow();
      row.dataset.row = r;
      this.rows.push(row);
      row.append(make("th", "", { scope: "row", title: query }, query));
      this.heatmap.keys.forEach((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "data-row": r, "data-column": c });
        this.cells.push(cell);
        row.append(cell);
      });
    });
    this.cells[0].tabIndex = 0;
    this.bindPointerAndKeys();
  }

  bindPointerAndKeys() {
    this.table.addEventListener("pointermove", (event) => {
      const row = place(event);
      const cell = event.target.closest("td[data-column]");
      this.heatmap.point(row ? +row.dataset.row : null, cell ? +cell.dataset.column : null);
    });
    this.table.addEventListener("pointerleave", () => this.heatmap.point(null, null));
    this.table.addEventListener("click", (event) => {
      const row = place(event);
      const cell = event.target.closest("td[data-column]");
      if (!row) return;
      this.heatmap.moveTo(+row.dataset.row, cell ? +cell.dataset.column : 0);
      this.heatmap.pin(+row.dataset.row);
    });
    this.table.addEventListener("focusin", (event) => {
      if (event.target.dataset.column === undefined) return;
      this.cells[this.heatmap.cursor[0] * this.heatmap.m + this.heatmap.cursor[1]].tabIndex = -1;
      this.heatmap.cursor = [+event.target.dataset.row, +event.target.dataset.column];
      event.target.tabIndex = 0;
      this.heatmap.focused = true;
      this.heatmap.show();
    });
    this.table.addEventListener("focusout", () => {
      this.heatmap.focused = false;
      this.heatmap.show();
    });
    this.table.addEventListener("keydown", (event) => this.heatmap.press(event));
  }

  focus(r, c) {
    return this.cells[r * this.heatmap.m + c].focus({ preventScroll: false });
  }

  paint() {
    this.cells.forEach((cell, i) => {
      const blocked = this.heatmap.frame.marks[i] === "b";
      cell.dataset.mark = this.heatmap.frame.marks[i] ?? "";
      cell.style.backgroundColor = blocked ? "" : this.heatmap.ramp.colour(this.heatmap.frame.levels[i]);
      cell.style.color = blocked ? "" : this.heatmap.ramp.ink(this.heatmap.frame.levels[i]);
      cell.textContent = this.heatmap.frame.short[i];
      if ("bl".includes(this.heatmap.frame.marks[i] ?? "-"))
        cell.setAttribute("aria-label", this.heatmap.textOf(Math.floor(i / this.heatmap.m), i % this.heatmap.m));
      else cell.removeAttribute("aria-label");
    });
  }

  mark(shown, pinned, at) {
    this.rows.forEach((row, r) => {
      row.classList.toggle("course-heatmap-shown", r === shown);
      row.setAttribute("aria-selected", r === pinned);
    });
    this.heads.forEach((head, c) => head.classList.toggle("course-heatmap-shown", c === at));
  }
}

const place = (event) => event.target.closest("tr[data-row]");

function render(options) {
  const heatmap = new HeatmapView(options);
  return () => heatmap.remove();
}

export default { render };
