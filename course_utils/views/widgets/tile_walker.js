// Shows the walk that tile_walker.py computed, one frame a step. Other blocks are walked by
// Python, or without a kernel by tile_walk_alone.js.

import {
  keepKeys,
  listen,
  make,
  makeRoot,
  makeScroll,
  makeSet,
  minus,
  newId,
  presses,
  setTraits,
} from "../shared/dom.js";
import { makeLate, makeMessage, Player } from "../shared/player.js";
import { makeSvg } from "../shared/svg.js";
import { answerWalk } from "./tile_walk_alone.js";

const ROLES = ["query", "key", "value", "", "", "", "output"]; // colours of the parts in fast memory
const HEADS = ["query", "m", "new m", "factor", "l", "new l", "o", "o · factor", "new o"];
const NOTES = {
  load: "Press a query in the table to see its numbers.",
  tile:
    "The factor is e^(m − new m). It multiplies l and o; then the powers e^(score − new m) are added to l, and " +
    "those times the values to o.",
  store: "One division a row, at the end of its block. Only the output and m + log l go back to slow memory.",
};
const inBytes = (count) => `${count.toLocaleString("en-US")} bytes`;
const decimals = (value) =>
  Math.abs(value) >= 1000 ? minus(value.toPrecision(4)) : minus(value.toFixed(2).replace(/^-0\.00$/, "0.00"));

class TileWalkerView {
  constructor({ model, el }) {
    this.model = model;
    ({
      n: this.n,
      m: this.m,
      cell: this.cell,
      naive: this.naive,
      itemsize: this.itemsize,
      blocks: this.blocks,
      parts: this.parts,
    } = model.get("_layout"));
    this.uid = newId("course-tiles");
    this.root = makeRoot(model, "course-tiles", { role: "group", "aria-labelledby": `${this.uid}-title` });
    this.walk = model.get("_walk");
    this.frames = this.walk.frames;
    this.last = this.frames.length - 1;
    this.chosen = 0;

    this.player = new Player(model, "steps", "step");
    this.settings = this.makeSettings();
    this.message = makeMessage("course-message course-tiles-message");
    this.map = new TileMap(this);
    this.memory = this.makeMemory();
    this.bars = this.makeBars();
    this.rows = new StateRows(this);
    this.detail = this.makeDetail();
    this.layOut();
    this.player.keys(this.root);
    el.append(this.root);

    this.late = makeLate(
      model,
      this.settings.waits,
      ({ causal, block_q, block_k }) => `${block_q} × ${block_k}${causal ? ", causal" : ""}`,
    );

    this.stopListening = listen(model, {
      step: () => this.show(),
      causal: () => this.show(),
      block_q: () => this.show(),
      block_k: () => this.show(),
      _walk: () => this.rebuild(),
    });
    this.stop = model.alone ? answerWalk(model) : () => {};
    this.rebuild();
  }

  layOut() {
    const middle = make("div", "course-tiles-middle");
    const side = make("div", "course-tiles-side");
    side.append(this.memory.node, this.bars.node);
    middle.append(this.map.node, side);
    const folded = make("details", "course-tiles-numbers");
    const opener = make("summary", "", {}, "numbers of this block");
    keepKeys(opener, presses); // they open it, and play nothing
    folded.append(opener, this.rows.node, this.detail.node);
    this.root.append(
      make("div", "course-title course-tiles-title", { id: `${this.uid}-title` }, this.model.get("title")),
      this.player.node,
      this.settings.node,
      this.message.node,
      middle,
      this.map.legend,
      folded,
    );
  }

  makeSettings() {
    const node = make("div", "course-row course-tiles-settings");
    const menus = {};
    const set = (name, value) => {
      this.player.stop();
      setTraits(this.model, { step: 0, [name]: value });
    };
    const label = make("label", "course-tiles-causal");
    const causal = make("input", "", { type: "checkbox" });
    causal.addEventListener("change", () => set("causal", causal.checked));
    label.append(causal, make("span", "", {}, "causal"));
    node.append(label);
    for (const [name, text] of [
      ["block_q", "queries in a block"],
      ["block_k", "keys in a block"],
    ]) {
      const around = make("label", "course-tiles-menu");
      const menu = make("select");
      menu.addEventListener("change", () => set(name, +menu.value));
      around.append(make("span", "", {}, text), menu);
      node.append(around);
      menus[name] = menu;
    }
    const waits = make("span", "course-tiles-waits", { role: "status" });
    node.append(waits);
    return {
      node,
      waits,
      show: () => {
        causal.checked = this.model.get("causal");
        for (const [name, menu] of Object.entries(menus)) {
          const here = this.model.get(name);
          const sizes = [...new Set([...this.blocks[name], here])].sort((a, b) => a - b);
          if ([...menu.options].map((option) => +option.value).join() !== sizes.join()) {
            menu.replaceChildren(...sizes.map((size) => make("option", "", { value: size }, size)));
          }
          menu.value = here;
        }
      },
    };
  }

  makeMemory() {
    const node = make("div", "course-tiles-memory");
    const head = make("div", "course-tiles-head");
    const table = make("table", "", { "aria-label": "in fast memory" });
    const body = table.createTBody();
    const cells = this.parts.map((part, i) => {
      const row = body.insertRow();
      const name = make("th", "", { scope: "row" });
      const size = make("td");
      const swatch = make("i", "course-tiles-swatch", { "aria-hidden": "true" });
      if (ROLES[i]) swatch.style.background = `var(--course-${ROLES[i]})`;
      name.append(swatch, part);
      row.append(name, size);
      return { row, size };
    });
    node.append(head, table);
    return {
      node,
      show: (frame) => {
        head.textContent = `in fast memory: ${inBytes(frame.held_bytes)}`;
        cells.forEach(({ row, size }, i) => {
          if (size.textContent !== frame.held[i]) size.textContent = frame.held[i];
          row.classList.toggle("course-tiles-empty", frame.held[i] === "–");
        });
      },
    };
  }

  makeBars() {
    const node = make("div", "course-tiles-bars");
    const bar = (name) => {
      const head = make("div");
      const track = make("div", "course-tiles-track", { "aria-hidden": "true" });
      const read = make("div", "course-tiles-read");
      const written = make("div", "course-tiles-written");
      const detail = make("div", "course-faint");
      track.append(read, written);
      node.append(head, track, detail);
      return (moved, most) => {
        head.textContent = `${name}: ${inBytes(moved.read + moved.written)}`;
        detail.textContent =
          `${moved.read.toLocaleString("en-US")} loaded + ` + `${moved.written.toLocaleString("en-US")} stored`;
        read.style.width = `${(100 * moved.read) / most}%`;
        written.style.width = `${(100 * moved.written) / most}%`;
      };
    };
    const soFar = bar("moved so far");
    const inAll = bar("tiled in all");
    const plain = bar("naive, at least");
    const note = make("div", "course-faint", {}, `${this.itemsize} bytes a number`);
    node.append(note);
    return {
      node,
      show: (frame) => {
        const total = this.frames[this.last];
        const most = Math.max(total.read + total.written, this.naive.read + this.naive.written);
        soFar(frame, most);
        inAll(total, most);
        plain(this.naive, most);
      },
    };
  }

  // The chosen query in numbers.
  makeDetail() {
    const node = make("div", "course-tiles-detail");
    const head = make("div", "course-tiles-head");
    const why = makeMessage("course-tiles-why", (node, lines) =>
      node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))),
    );
    const scroll = makeScroll("course-tiles-scroll", {
      tabindex: 0,
      role: "group",
      "aria-label": "o of the chosen query",
    });
    const table = make("table", "", { "aria-label": "o in numbers" });
    const body = table.createTBody();
    const note = make("div", "course-faint course-tiles-note"); // all notes lie upon each other, one is seen
    const notes = Object.entries(NOTES).map(([kind, text]) => makeSet("div", "", { "data-kind": kind }, text));
    note.append(...notes);
    scroll.append(table);
    node.append(head, why.node, scroll, note);
    let rows = [];
    return {
      node,
      rebuild: () => {
        const d = Math.max(...this.frames.map((frame) => frame.rows[0]?.o.length ?? 0));
        rows = [0, 1, 2].map(() => {
          const row = make("tr");
          const name = make("th", "", { scope: "row" });
          const cells = Array.from({ length: d }, () => make("td"));
          row.append(name, ...cells);
          return { name, cells, row };
        });
        why.rooms(this.frames.flatMap((frame) => frame.rows.map((row) => row.why)));
        body.replaceChildren(...rows.map(({ row }) => row));
      },
      show: (frame, before) => {
        const here = frame.rows[this.chosen];
        const kind = frame.tile !== null ? "tile" : before ? "store" : "load";
        head.textContent = here ? `query ${here.query}` : "no query is in fast memory yet";
        why.show(here?.why ?? []);
        const names = kind === "store" ? ["o", "÷ l", "o / l"] : ["o", "o · factor", "new o"];
        const values = [before?.[this.chosen]?.o ?? here?.o, kind === "tile" ? here?.kept : null, here?.o];
        rows.forEach(({ name, cells }, r) => {
          name.textContent = names[r];
          cells.forEach((node, c) => {
            node.textContent = here && values[r] ? decimals(values[r][c]) : "";
          });
        });
        for (const node of notes) node.style.visibility = node.dataset.kind === kind ? "visible" : "hidden";
      },
    };
  }

  rebuild() {
    this.walk = this.model.get("_walk");
    this.frames = this.walk.frames;
    this.last = this.frames.length - 1;
    for (const part of [this.map, this.rows, this.detail]) part.rebuild();
    this.message.rooms(this.frames.map((frame) => frame.message));
    this.show();
  }

  show() {
    const step = Math.min(this.model.get("step"), this.last);
    const frame = this.frames[step];
    const same = (part) => String(part) === String(frame.queries);
    const before = step && frame.rows.length && same(this.frames[step - 1].queries) ? this.frames[step - 1].rows : null;
    if (this.chosen >= frame.rows.length) this.chosen = 0;
    this.player.show(step, this.last);
    this.settings.show();
    this.message.show(frame.message);
    this.map.show(frame, step);
    this.memory.show(frame);
    this.bars.show(frame);
    this.rows.show(frame, before);
    this.detail.show(frame, before);
    this.late.show(this.walk.settings);
  }

  remove() {
    this.stop();
    this.player.stop();
    this.late.stop();
    this.stopListening();
  }
}

// One line a query of the block; o as bars above and below a line, since d numbers do not fit.
class StateRows {
  constructor(walker) {
    this.walker = walker;
    this.node = makeScroll("course-tiles-rows");
    const table = make("table", "", { "aria-label": "the queries of this block" });
    const head = table.createTHead().insertRow();
    this.body = table.createTBody();
    head.append(...HEADS.map((name) => make("th", "", { scope: "col" }, name)));
    this.node.append(table);
    this.lines = [];
    this.scale = 1;
    this.width = 0;
    this.step = 6;
  }

  bars(values, present) {
    if (!present) return "";
    const draw = (value, i) => {
      const height = Math.max(-12, Math.min(12, (12 * value) / this.scale));
      return Math.abs(height) < 0.05 ? "" : `M${i * this.step + 0.5} 13h${this.step - 1}v${-height}h${1 - this.step}z`;
    };
    return values.map(draw).join("");
  }

  rebuild() {
    const shown = this.walker.frames.flatMap((frame) => frame.rows);
    const size = Math.max(...this.walker.frames.map((frame) => frame.rows.length));
    this.scale = Math.max(1e-9, ...shown.flatMap((row) => [...row.o, ...row.kept].map(Math.abs)));
    const d = shown[0].o.length;
    this.step = d > 8 ? 4 : d > 4 ? 7 : 10;
    this.width = d * this.step;
    this.lines = Array.from({ length: size }, (_, i) => {
      const row = make("tr");
      const name = make("th", "", { scope: "row" });
      const button = make("button", "", { type: "button" });
      button.addEventListener("click", () => {
        this.walker.chosen = i;
        this.walker.show();
      });
      name.append(button);
      const numbers = HEADS.slice(1, 6).map(() => make("td"));
      const strips = HEADS.slice(6).map(() => {
        const around = make("td", "course-tiles-o");
        const svg = makeSvg("svg", "", {
          width: this.width,
          height: 26,
          viewBox: `0 0 ${this.width} 26`,
          "aria-hidden": "true",
        });
        const path = makeSvg("path");
        svg.append(makeSvg("line", "", { x1: 0, x2: this.width, y1: 13, y2: 13 }), path);
        around.append(svg);
        return path;
      });
      row.append(name, ...numbers, ...strips.map((path) => path.closest("td")));
      return { row, button, numbers, strips };
    });
    this.body.replaceChildren(...this.lines.map(({ row }) => row));
  }

  show(frame, before) {
    this.lines.forEach(({ row, button, numbers, strips }, i) => {
      const here = frame.rows[i];
      row.classList.toggle("course-tiles-absent", !here);
      button.disabled = !here;
      button.setAttribute("aria-pressed", Boolean(here) && i === this.walker.chosen);
      row.classList.toggle("course-tiles-chosen", Boolean(here) && i === this.walker.chosen);
      const name = here ? `query ${here.query}` : "–";
      if (button.textContent !== name) button.textContent = name;
      const texts = here ? [here.m[0], here.m[1], here.factor, here.l[0], here.l[1]] : ["", "", "", "", ""];
      numbers.forEach((node, c) => {
        if (node.textContent !== texts[c]) node.textContent = texts[c];
      });
      numbers[2].classList.toggle(
        "course-tiles-shrinks",
        Boolean(here) && frame.tile !== null && here.factor !== "1.000",
      );
      const old = before?.[i]?.o ?? here?.o;
      const middle = here && frame.tile !== null;
      [old, here?.kept, here?.o].forEach((values, c) =>
        strips[c].setAttribute("d", this.bars(values, here && (c !== 1 || middle))),
      );
    });
  }
}

// The n × m scores as tiles, with strips for Q, K, V and o beside them.
class TileMap {
  constructor(walker) {
    this.walker = walker;
    this.left = 42;
    this.top = 42;
    this.wide = this.walker.m * this.walker.cell;
    this.high = this.walker.n * this.walker.cell;
    this.node = makeSvg("svg", "course-tiles-map", {
      role: "img",
      width: this.left + this.wide + 42,
      height: this.top + this.high + 6,
      viewBox: `0 0 ${this.left + this.wide + 42} ${this.top + this.high + 6}`,
    });
    this.drawHatch();
    this.layer = makeSvg("g");
    this.over = makeSvg("g");
    this.defs.append(this.hatch);
    this.node.append(this.defs);
    this.drawStrips();
    this.now = makeSvg("rect", "course-tiles-now");
    this.tiles = [];
    this.states = [];
    this.drawLegend();
  }

  drawHatch() {
    this.hatch = makeSvg("pattern", "", {
      id: `${this.walker.uid}-hatch`,
      width: 6,
      height: 6,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    this.hatch.append(makeSvg("line", "course-tiles-hatch", { x1: 0, y1: 0, x2: 0, y2: 6 }));
    this.defs = makeSvg("defs");
  }

  drawStrips() {
    this.key = this.strip("key", this.left, 4, this.wide, 12);
    this.value = this.strip("value", this.left, 22, this.wide, 12);
    this.query = this.strip("query", this.left - 20, this.top, 12, this.high);
    this.output = this.strip("output", this.left + this.wide + 8, this.top, 12, this.high);
    this.node.append(
      this.write(this.left - 6, 14, "K", "end"),
      this.write(this.left - 6, 32, "V", "end"),
      this.write(this.left - 25, this.top + this.high / 2 + 4, "Q", "end"),
      this.write(this.left + this.wide + 25, this.top + this.high / 2 + 4, "o", "start"),
      this.layer,
      this.over,
    );
  }

  drawLegend() {
    this.legend = make("div", "course-legend course-tiles-legend");
    for (const [mark, text] of [
      ["todo", "to come"],
      ["now", "now"],
      ["done", "done, its scores forgotten"],
      ["skip", "skipped: never loaded"],
      ["mask", "masked in a tile"],
    ]) {
      const part = make("span");
      part.append(
        make("i", "course-tiles-swatch", { "data-mark": mark, "aria-hidden": "true" }, mark === "mask" ? "×" : ""),
        text,
      );
      this.legend.append(part);
    }
    this.legend.append(
      make("span", "course-tiles-hint", {}, "Step with → and ←, or click or tap a tile to go there; Space plays."),
    );
  }

  write(x, y, text, anchor) {
    return makeSvg("text", "course-tiles-text", { x, y, "text-anchor": anchor }, text);
  }

  strip(name, x, y, width, height) {
    const marked = makeSvg("rect", `course-tiles-${name}`, { x, y, width: 0, height: 0 });
    this.node.append(makeSvg("rect", "course-tiles-strip", { x, y, width, height }), marked);
    return (part) => {
      const [from, to] = part ?? [0, 0];
      const along = width > height ? ["x", "width", x] : ["y", "height", y];
      marked.setAttribute(along[0], along[2] + from * this.walker.cell);
      marked.setAttribute(along[1], (to - from) * this.walker.cell);
      marked.setAttribute(along[1] === "width" ? "height" : "width", 12);
    };
  }

  place([r0, r1, c0, c1]) {
    return {
      x: this.left + c0 * this.walker.cell,
      y: this.top + r0 * this.walker.cell,
      width: (c1 - c0) * this.walker.cell,
      height: (r1 - r0) * this.walker.cell,
    };
  }

  rebuild() {
    const steps = [];
    this.walker.frames.forEach((frame, step) => {
      if (frame.tile !== null) steps[frame.tile] = step;
    });
    this.tiles = this.walker.walk.tiles.map((tile, i) => {
      const rect = makeSvg("rect", "course-tiles-tile", this.place(tile));
      rect.addEventListener("click", () => {
        this.walker.player.go(steps[i]);
        this.walker.player.focus();
      });
      return rect;
    });
    this.states = this.tiles.map(() => "");
    const skipped = this.walker.walk.skipped.map((part) =>
      makeSvg("rect", "course-tiles-skip", { ...this.place(part), fill: `url(#${this.walker.uid}-hatch)` }),
    );
    const half = this.walker.cell / 2;
    const arm = Math.min(4, this.walker.cell / 4);
    const cross = ([r, first, end]) =>
      Array.from({ length: end - first }, (_, i) => {
        const x = this.left + (first + i) * this.walker.cell + half;
        const y = this.top + r * this.walker.cell + half;
        return `M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}M${x - arm} ${y + arm}l${2 * arm} ${-2 * arm}`;
      }).join("");
    this.layer.replaceChildren(...skipped, ...this.tiles);
    this.over.replaceChildren(
      makeSvg("path", "course-tiles-mask", { d: this.walker.walk.masked.map(cross).join("") }),
      this.now,
    );
  }

  show(frame) {
    this.tiles.forEach((rect, i) => {
      const state = i === frame.tile ? "now" : i < frame.done ? "done" : "todo";
      if (this.states[i] === state) return;
      this.states[i] = state;
      rect.dataset.state = state;
    });
    const here = frame.tile === null ? [0, 0, 0, 0] : this.walker.walk.tiles[frame.tile];
    for (const [name, number] of Object.entries(this.place(here))) this.now.setAttribute(name, number);
    this.now.style.visibility = frame.tile === null ? "hidden" : "visible";
    this.key(frame.keys);
    this.value(frame.keys);
    this.query(frame.queries);
    this.output([0, frame.stored]);
    this.node.setAttribute(
      "aria-label",
      `${this.walker.n} queries by ${this.walker.m} keys: ${frame.done} of ${this.walker.walk.tiles.length} ` +
        "tiles done" +
        `${this.walker.walk.skipped.length ? ", those above the diagonal skipped" : ""}`,
    );
  }
}

function render(options) {
  const walker = new TileWalkerView(options);
  return () => walker.remove();
}

export default { render };
