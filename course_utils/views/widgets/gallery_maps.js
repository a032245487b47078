// The weights of every head, one of them enlarged, and the tokens as queries. Hover and focus stay here; the pinned row
// and the enlarged head go to Python.

import {
  clamp,
  keepKey,
  keepKeys,
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
import { headName, headTable, passes } from "../shared/heads.js";

const HINT =
  "Point at or tap a token, or a row of a map: every head shows that row. Tap a map to enlarge it. Enter on a " +
  "token pins its row, Escape unpins.";
const BAR = 24; // height of the bars under a map, in pixels

export class GalleryMaps {
  constructor({ model, el }) {
    this.model = model;
    this.tokens = model.get("_tokens");
    ({
      layers: this.layers,
      heads: this.heads,
      wide: this.wide,
      small: this.small,
      cell: this.cell,
      listed: this.listed,
    } = model.get("_layout"));
    this.n = this.tokens.length;
    this.uid = newId("course-gallery");
    this.ramp = makeRamp(model).parts;
    this.own = model.get("_palette")["--course-query"];
    this.drawRoot();
    this.title = make("div", "course-title course-heads-title", { id: `${this.uid}-title` }, model.get("title"));
    this.live = make("div", "course-live", { role: "status" });

    this.drawn = null;
    this.last = this.n - 1; // drawn: the rows that the bars and the band show; last: that of the bars
    this.hover = null;
    this.focused = null;
    this.over = null;
    this.column = null;
    this.cursor = [0, 0];

    this.read();
    this.strip = new TokenStrip(this);
    this.gallery = new SmallMaps(this);
    this.reading = make("div", "course-gallery-reading course-faint");
    this.panel = new LargeMap(this);
    const columns = make("div", "course-gallery-columns");
    const main = make("div", "course-gallery-main");
    const scroll = makeScroll("course-heads-scroll");
    scroll.append(this.gallery.node);
    main.append(scroll, this.reading);
    columns.append(main, this.panel.node);
    this.root.append(this.title, this.strip.node, columns, this.live);
    this.root.addEventListener("keydown", (event) => this.closeOnEscape(event));
    el.append(this.root);
    this.gallery.paintScores();
    this.paintAll();
    this.listenToModel();
  }

  drawRoot() {
    this.root = makeRoot(this.model, "course-heads-root course-gallery", {
      role: "group",
      "aria-labelledby": `${this.uid}-title`,
    });
    for (const [name, value] of Object.entries({
      n: this.n,
      heads: this.heads,
      wide: `${this.wide}px`,
      small: `${this.small}px`,
      large: `${this.n * this.cell}px`,
      cell: `${this.cell}px`,
    })) {
      this.root.style.setProperty(`--${name}`, value);
    }
  }

  listenToModel() {
    this.stopListening = listen(this.model, {
      row: () => this.show(),
      head: () => this.paintHead(),
      _thousandths: () => this.paintAll(),
      _scores: () => this.paintScores(),
      title: () => {
        this.title.textContent = this.model.get("title");
      },
    });
  }

  remove() {
    this.stopListening();
  }

  read() {
    this.weights = words(this.model.get("_thousandths"));
    this.scores = this.model.get("_scores");
  }

  weight(i, r, c) {
    return this.weights[(i * this.n + r) * this.n + c];
  }

  number(i, r, c) {
    return (this.weight(i, r, c) / 1000).toFixed(3);
  }

  opened() {
    const head = this.model.get("head");
    return head ? head[0] * this.heads + head[1] : null;
  }

  named(i) {
    return headName(Math.floor(i / this.heads), i % this.heads);
  }

  shownRow() {
    return this.hover ?? this.focused ?? this.model.get("row") ?? null;
  }

  query(r) {
    return `query ${r} “${this.tokens[r]}”`;
  }

  scoresOf(i) {
    return this.scores.map(({ name, values }) => `${name} ${values[i]}`).join(", ");
  }

  // A canvas with a pixel for each weight.
  mapOf() {
    const node = make("div", "course-gallery-map");
    const canvas = make("canvas", "course-ramp", { width: this.n, height: this.n, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    const image = context.createImageData(this.n, this.n);
    node.append(canvas);
    return {
      node,
      paint: (i) => {
        for (let at = 0; at < this.n * this.n; at++) {
          const level = 3 * Math.round(this.weights[i * this.n * this.n + at] * 0.255);
          image.data[4 * at] = this.ramp[level];
          image.data[4 * at + 1] = this.ramp[level + 1];
          image.data[4 * at + 2] = this.ramp[level + 2];
          image.data[4 * at + 3] = 255;
        }
        context.putImageData(image, 0, 0);
      },
    };
  }

  placeIn(map, event) {
    const box = map.getBoundingClientRect();
    return [
      clamp(Math.floor(((event.clientY - box.top) * this.n) / box.height), this.n),
      clamp(Math.floor(((event.clientX - box.left) * this.n) / box.width), this.n),
    ];
  }

  sentence(i, r, c) {
    return `${this.query(r)}, key ${c} “${this.tokens[c]}”: ${this.number(i, r, c)}`;
  }

  // ---- the row that the bars show, of the enlarged head in numbers
  rowList() {
    const node = make("div", "course-gallery-numbers");
    const state = make("div", "course-gallery-state course-gallery-line");
    const table = make("table", "", { "aria-label": `the ${this.listed} largest weights of the row` });
    const lines = Array.from({ length: this.listed }, () => {
      const row = table.insertRow();
      const name = make("td", "course-gallery-name");
      const track = make("td");
      const bar = make("div", "course-gallery-bar");
      const value = make("td", "course-gallery-number");
      track.append(bar);
      row.append(name, value, track);
      return { name, bar, value };
    });
    const point = make("div", "course-faint course-gallery-line");
    node.append(state, table, point);
    return {
      node,
      show: (i, r, c, pinned) => {
        state.textContent = `${this.query(r)}${r === pinned ? ", pinned" : ""}`;
        state.classList.toggle("course-gallery-pinned", r === pinned);
        node.dataset.row = r;
        const order = this.tokens
          .map((_, key) => key)
          .sort((a, b) => this.weight(i, r, b) - this.weight(i, r, a) || a - b);
        lines.forEach(({ name, bar, value }, place) => {
          const key = order[place];
          name.textContent = `${key} “${this.tokens[key]}”`;
          bar.style.transform = `scaleX(${this.weight(i, r, key) / 1000})`;
          value.textContent = this.number(i, r, key);
        });
        point.textContent = c === null ? "" : this.sentence(i, r, c);
      },
    };
  }

  show() {
    const r = this.shownRow();
    const pinned = this.model.get("row") ?? null;
    const holds = r !== null && r === pinned;
    if (holds !== this.root.classList.contains("course-gallery-holds"))
      this.root.classList.toggle("course-gallery-holds");
    this.root.dataset.row = r ?? "";
    this.last = r ?? this.last; // before any row is looked at, the bars show the last
    if (`${r} ${this.last}` !== this.drawn) {
      this.gallery.bars(this.last);
      this.gallery.mark(r);
    }
    this.drawn = `${r} ${this.last}`;
    this.strip.show(r, pinned);
    this.panel.show(r, pinned);
    this.reading.textContent = this.sayRow(r, this.over);
  }

  sayRow(r, i) {
    if (r === null) return HINT;
    if (i === null) return `Shown: the row of ${this.query(r)} in every head.`;
    let most = 0;
    for (let c = 1; c < this.n; c++) if (this.weight(i, r, c) > this.weight(i, r, most)) most = c;
    return (
      `${this.named(i)}: ${this.query(r)} attends most to key ${most} “${this.tokens[most]}”, ` +
      `${this.number(i, r, most)}`
    );
  }

  point(r, c, i) {
    if (r === this.hover && i === this.over && (c === this.column || r === null)) return;
    [this.hover, this.over] = [r, i];
    this.column = c ?? (r === null && this.root.querySelector(".course-gallery-large:focus") ? this.cursor[1] : null);
    this.show();
  }

  pin(r) {
    setTraits(this.model, { row: r === this.model.get("row") ? null : r });
  }

  closeOnEscape(event) {
    const [row, head] = ["row", "head"].map((name) => this.model.get(name) ?? null);
    if (event.key !== "Escape" || (row ?? head) === null) return;
    setTraits(this.model, row === null ? { head: null } : { row: null });
    keepKey(event);
  }

  paintHead() {
    this.gallery.open(this.opened());
    this.panel.paint();
    this.show();
  }

  paintAll() {
    this.read();
    this.drawn = undefined;
    this.gallery.paint();
    this.paintHead();
  }

  paintScores() {
    this.read();
    this.gallery.paintScores();
    this.paintHead();
  }
}

// ---- the tokens: one stop of the Tab key, arrow keys move in it
class TokenStrip {
  constructor(gallery) {
    this.gallery = gallery;
    this.node = make("div", "course-gallery-strip", { role: "toolbar", "aria-label": "tokens as queries" });
    this.chips = this.gallery.tokens.map((token, r) => {
      const chip = make(
        "button",
        "",
        { type: "button", "aria-pressed": "false", "aria-label": `query ${r}: ${token}`, tabindex: r ? -1 : 0 },
        token,
      );
      chip.addEventListener("focus", () => {
        this.moveStop(r);
        this.gallery.focused = r;
        this.gallery.show();
      });
      chip.addEventListener("blur", () => {
        this.gallery.focused = null;
        this.gallery.show();
      });
      chip.addEventListener("click", () => this.gallery.pin(r));
      chip.addEventListener("pointerenter", () => this.gallery.point(r, null, null));
      this.node.append(chip);
      return chip;
    });
    this.node.addEventListener("pointerleave", () => this.gallery.point(null, null, null));
    keepKeys(this.node, (event) => !passes(event));
    this.node.addEventListener("keydown", (event) => {
      const r = this.chips.indexOf(event.target);
      const target = {
        ArrowRight: r + 1,
        ArrowDown: r + 1,
        ArrowLeft: r - 1,
        ArrowUp: r - 1,
        Home: 0,
        End: this.gallery.n - 1,
      }[event.key];
      if (r < 0 || target === undefined || passes(event)) return;
      event.preventDefault();
      this.gallery.hover = this.gallery.over = this.gallery.column = null;
      this.chips[clamp(target, this.gallery.n)].focus();
    });
  }

  moveStop(r) {
    return this.chips.forEach((chip, i) => {
      chip.tabIndex = i === r ? 0 : -1;
    });
  }

  show(r, pinned) {
    return this.chips.forEach((chip, i) => {
      chip.classList.toggle("course-gallery-shown", i === r);
      if ((chip.getAttribute("aria-pressed") === "true") !== (i === pinned))
        chip.setAttribute("aria-pressed", i === pinned);
    });
  }
}

// ---- one head enlarged
class LargeMap {
  constructor(gallery) {
    this.gallery = gallery;
    this.node = make("div", "course-gallery-panel", { role: "group", "aria-label": "enlarged head" });
    const heading = make("div", "course-gallery-heading");
    this.name = make("b");
    this.score = make("div", "course-faint course-gallery-line");
    heading.append(this.name, this.score);
    const axes = this.drawAxes();
    this.wrap = make("div", "course-gallery-large", {
      role: "grid",
      "aria-label": "weights of the enlarged head",
      "aria-readonly": "true",
      tabindex: 0,
      "aria-rowcount": this.gallery.n,
      "aria-colcount": this.gallery.n,
      "aria-activedescendant": `${this.gallery.uid}-cell`,
    });
    this.map = this.gallery.mapOf();
    this.band = make("div", "course-gallery-band");
    this.box = make("div", "course-gallery-cell");
    this.line = make("div", "course-live", { role: "row" });
    this.at = make("div", "", { role: "gridcell", id: `${this.gallery.uid}-cell` });
    this.line.append(this.at);
    this.map.node.append(this.band, this.box);
    this.wrap.append(this.map.node, this.line);
    const frame = make("div", "course-gallery-frame");
    frame.append(this.wrap);
    axes.append(make("div"), this.across, this.down, frame);
    this.list = this.gallery.rowList();
    const body = make("div", "course-gallery-body");
    const scroll = makeScroll("course-gallery-scroll");
    scroll.append(axes);
    body.append(scroll, this.list.node);
    this.node.append(heading, body);
    this.bindPointer();
    this.bindKeys();
  }

  drawAxes() {
    const axes = make(
      "div",
      this.gallery.cell >= 10 ? "course-gallery-axes course-gallery-labelled" : "course-gallery-axes",
    );
    [this.across, this.down] = ["across", "down"].map((side) =>
      make("div", `course-gallery-${side}`, { "aria-hidden": "true" }),
    );
    for (const [side, text] of [
      [this.across, `keys 0 to ${this.gallery.n - 1} →`],
      [this.down, `queries 0 to ${this.gallery.n - 1} ↓`],
    ]) {
      side.append(
        ...(this.gallery.cell >= 10 ? this.gallery.tokens : [text]).map((label) =>
          make("span", "", { title: label }, label),
        ),
      );
    }
    return axes;
  }

  bindPointer() {
    this.map.node.addEventListener("pointermove", (event) => {
      if (this.gallery.opened() !== null)
        this.gallery.point(...this.gallery.placeIn(this.map.node, event), this.gallery.opened());
    });
    this.map.node.addEventListener("pointerleave", () => this.gallery.point(null, null, null));
    this.map.node.addEventListener("click", (event) => {
      if (this.gallery.opened() === null) return;
      this.gallery.cursor = this.gallery.placeIn(this.map.node, event);
      this.wrap.focus({ preventScroll: true });
      this.gallery.pin(this.gallery.cursor[0]);
    });
  }

  bindKeys() {
    this.wrap.addEventListener("focus", () => {
      [this.gallery.focused, this.gallery.column] = this.gallery.cursor;
      this.gallery.show();
    });
    this.wrap.addEventListener("blur", () => {
      this.gallery.focused = this.gallery.column = null;
      this.gallery.show();
    });
    this.wrap.addEventListener("keydown", (event) => {
      if (passes(event)) return;
      const [r, c] = this.gallery.cursor;
      const target = placeReached(event, [r, c], [this.gallery.n, this.gallery.n], 8);
      keepKey(event);
      this.gallery.hover = this.gallery.over = null;
      if (target) [this.gallery.focused, this.gallery.column] = this.gallery.cursor = target;
      else this.gallery.pin(r);
      this.gallery.show();
      this.gallery.live.textContent = this.gallery.sentence(this.gallery.opened(), ...this.gallery.cursor);
    });
  }

  paint() {
    const i = this.gallery.opened();
    this.node.hidden = i === null;
    if (i === null) return;
    this.name.textContent = this.gallery.named(i);
    this.score.textContent = this.score.title = this.gallery.scoresOf(i);
    this.map.paint(i);
  }

  show(r, pinned) {
    const i = this.gallery.opened();
    const c = r === null ? null : this.gallery.column;
    const inside = c !== null;
    if (i === null) return;
    markRow(this.band, r);
    this.box.hidden = !inside;
    if (inside) this.box.style.transform = `translate(${c * 100}%, ${r * 100}%)`;
    this.at.textContent = this.gallery.sentence(i, ...this.gallery.cursor);
    this.line.setAttribute("aria-rowindex", this.gallery.cursor[0] + 1);
    this.at.setAttribute("aria-colindex", this.gallery.cursor[1] + 1);
    this.at.setAttribute("aria-selected", this.gallery.cursor[0] === pinned);
    this.list.show(i, this.gallery.last, c, pinned);
  }
}

// ---- every head: its map, the shown row as bars, its scores
class SmallMaps {
  constructor(gallery) {
    this.gallery = gallery;
    this.parts = [];
    ({ node: this.node, buttons: this.buttons } = headTable({
      layers: this.gallery.layers,
      heads: this.gallery.heads,
      name: "heads: click one to enlarge it",
      labels: () => [
        make("div", "course-gallery-bars", {}, "shown row"),
        ...this.gallery.scores.map(({ name }) => make("div", "", {}, name)),
      ],
      makeButton: (l, h) => {
        const button = make("button", "course-gallery-head", {
          type: "button",
          "aria-pressed": "false",
          "data-place": l * this.gallery.heads + h,
        });
        const map = this.gallery.mapOf();
        const bars = make("canvas", "course-gallery-bars", {
          width: this.gallery.n,
          height: BAR,
          "aria-hidden": "true",
        });
        const lines = this.gallery.scores.map(() => make("div", "course-gallery-score"));
        button.append(map.node, bars, ...lines);
        this.parts.push({ map, pen: bars.getContext("2d"), lines });
        return button;
      },
      press: (l, h) => {
        const head = this.gallery.model.get("head");
        const same = head && head[0] === l && head[1] === h;
        setTraits(this.gallery.model, { head: same ? null : [l, h] });
        this.gallery.live.textContent = same ? "no head is enlarged" : `${headName(l, h)} is enlarged`;
      },
    }));
    // One band for all maps of a layer: a band for each of them takes the browser twice as long to draw.
    this.bands = Array.from({ length: this.gallery.layers }, (_, l) => {
      const across = make("div", "course-gallery-bands", { "aria-hidden": "true" });
      const one = make("div", "course-gallery-band");
      across.append(one);
      this.buttons[l * this.gallery.heads].after(across);
      return one;
    });
    this.node.addEventListener("pointermove", (event) => {
      const map = event.target.closest(".course-gallery-map");
      const button = event.target.closest(".course-gallery-head");
      if (!map) this.gallery.point(null, null, button ? +button.dataset.place : null);
      else this.gallery.point(this.gallery.placeIn(map, event)[0], null, +button.dataset.place);
    });
    this.node.addEventListener("pointerleave", () => this.gallery.point(null, null, null));
  }

  paint() {
    return this.parts.forEach(({ map }, i) => map.paint(i));
  }

  paintScores() {
    return this.parts.forEach(({ lines }, i) => {
      lines.forEach((line, s) => {
        line.textContent = this.gallery.scores[s].values[i];
        line.classList.toggle("course-gallery-most", this.gallery.scores[s].most === i);
      });
      this.buttons[i].setAttribute(
        "aria-label",
        this.gallery.scores.length ? `${this.gallery.named(i)}: ${this.gallery.scoresOf(i)}` : this.gallery.named(i),
      );
    });
  }

  mark(r) {
    return this.bands.forEach((band) => markRow(band, r));
  }

  bars(r) {
    return this.parts.forEach(({ pen }, i) => {
      pen.clearRect(0, 0, this.gallery.n, BAR);
      pen.fillStyle = this.gallery.own;
      for (let c = 0; c < this.gallery.n; c++) {
        const height = (this.gallery.weight(i, r, c) * BAR) / 1000;
        if (height >= 0.25) pen.fillRect(c, BAR - height, 1, height);
      }
    });
  }

  open(place) {
    return this.buttons.forEach((button, i) => {
      if ((button.getAttribute("aria-pressed") === "true") !== (i === place))
        button.setAttribute("aria-pressed", i === place);
    });
  }
}

// The band dims all but the shown row.
function markRow(band, r) {
  band.hidden = r === null;
  if (r !== null) band.style.transform = `translateY(${100 * r}%)`;
}
