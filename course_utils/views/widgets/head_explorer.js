// Shows the sentence that head_explorer.py sent. What is chosen is kept in the model, and all of it is drawn here.

import {
  clamp,
  keepKeys,
  listen,
  make,
  makeRamp,
  makeRoot,
  makeScroll,
  newId,
  placeReached,
  presses,
  setTraits,
} from "../shared/dom.js";
import { headName, headTable, makeReplyStatus, passes } from "../shared/heads.js";
import { shortText } from "../shared/number_text.js";
import { makeSvg } from "../shared/svg.js";
import { answerExplorer, readingOf } from "./head_explorer_alone.js";

const LATE =
  "Waiting for Python, which loads the model at the first sentence. If nothing comes, start the kernel and " +
  "run the cell.";
const NO_KERNEL =
  "A sentence of your own needs Python and the model: open this lesson in JupyterLab, by make lab, which brings both.";
const LEAST = 5; // the least level that has an arrow

class ExplorerView {
  constructor({ model, el }) {
    this.model = model;
    this.stopAlone = model.alone ? answerExplorer(model) : () => {};
    this.uid = newId("course-explorer");
    this.ramp = makeRamp(model);
    const root = makeRoot(model, "course-heads-root course-explorer", {
      role: "group",
      "aria-labelledby": `${this.uid}-title`,
    });
    const title = make("div", "course-title course-heads-title", { id: `${this.uid}-title` }, model.get("title"));
    this.form = new OwnSentence(this);
    this.place = make("div");
    root.append(title, this.form.node, this.place);
    el.append(root);

    this.view = null;
    this.draw();
    this.stopListening = listen(model, {
      _shown: () => this.draw(),
      head: () => this.show(),
      query: () => this.show(),
      key: () => this.show(),
      measure: () => this.show(),
      _said: this.form.status.show,
      title: () => {
        title.textContent = model.get("title");
      },
    });
  }

  draw() {
    this.view?.stop();
    this.view = new SentenceView({
      model: this.model,
      place: this.place,
      uid: this.uid,
      ramp: this.ramp,
    });
    this.form.show();
  }

  show() {
    this.view.show();
  }

  remove() {
    this.stopListening();
    this.view.stop();
    this.form.stop();
    this.stopAlone();
  }
}

// ---- the field for one's own sentence, and those that were read before
class OwnSentence {
  constructor(explorer) {
    this.explorer = explorer;
    const { missing, most, longest } = this.explorer.model.get("_field");
    this.offered = this.explorer.model.get("_offered");
    this.why = this.explorer.model.alone
      ? NO_KERNEL
      : missing && `A sentence of your own needs the model. ${missing[0].toUpperCase()}${missing.slice(1)}`;
    this.node = make("div");
    const line = make("form", "course-explorer-form");
    const label = make("label", "", { for: this.explorer.uid }, "a sentence of your own");
    this.field = make("input", "", {
      id: this.explorer.uid,
      type: "text",
      maxlength: longest,
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": `${this.explorer.uid}-hint`,
    });
    const look = make("button", "", { type: "submit" }, "look");
    const said = make("div", "course-explorer-said", { role: "status" });
    this.status = makeReplyStatus(this.explorer.model, said, LATE);
    const hint = make(
      "div",
      "course-faint",
      { id: `${this.explorer.uid}-hint` },
      this.why || `2 to ${most} tokens, some more than words. Enter lets the model read it.`,
    );
    this.field.disabled = look.disabled = Boolean(this.why);
    line.append(label, this.field, look);
    const others = this.drawOffered();
    this.node.append(
      line,
      hint,
      said,
      make("div", "course-faint course-explorer-or", {}, "or one that was recorded"),
      others,
    );
    line.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(this.field.value, false);
    });
    this.field.addEventListener("keydown", (event) => event.stopPropagation());
  }

  drawOffered() {
    const others = make("div", "course-explorer-offered", { role: "group", "aria-label": "recorded sentences" });
    this.buttons = this.offered.map((text) => {
      const button = make("button", "", { type: "button", "aria-pressed": "false" }, text);
      button.addEventListener("click", () => this.ask(text, true));
      return button;
    });
    others.append(...this.buttons);
    return others;
  }

  ask(text, recorded) {
    setTraits(this.explorer.model, {
      _typed: { text, recorded, number: this.explorer.model.get("_typed").number + 1 },
    });
    this.status.show();
  }

  show() {
    const { text } = this.explorer.model.get("_shown");
    if (!this.why) this.field.value = text;
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", this.offered[i] === text));
  }

  stop() {
    this.status.stop();
  }
}

function render(options) {
  const explorer = new ExplorerView(options);
  return () => explorer.remove();
}

// One sentence: its words with arrows, one head's weights, all heads. `show` draws what is chosen anew.
class SentenceView {
  constructor({ model, place, uid, ramp }) {
    this.model = model;
    this.place = place;
    this.uid = uid;
    this.ramp = ramp;
    this.reading = readingOf(model.get("_shown"));
    this.tokens = this.reading.tokens;
    this.layers = this.reading.layers;
    this.heads = this.reading.heads;
    this.level = this.reading.level;
    this.T = this.tokens.length;

    const source = make(
      "div",
      "course-faint",
      {},
      `${this.T} tokens, ${this.reading.source}. Weights are rounded to 1/255.`,
    );
    this.words = new WordArcs(this);
    this.message = make("div", "course-explorer-message", { role: "status" });
    this.next = this.nextTokens();
    this.weights = new WeightTable(this);
    this.whole = this.wholeModel();
    this.order = new SortedHeads(this);
    const above = make("div", "course-explorer-above");
    const below = make("div", "course-explorer-below");
    this.left = make("div");
    this.left.append(this.words.node, this.message);
    above.append(this.left, this.next.node);
    below.append(this.weights.node, this.whole.node, this.order.node);
    place.replaceChildren(source, above, below);
    this.show();
  }

  stop() {
    this.words.stop();
  }

  named(i) {
    return `${i} “${this.tokens[i]}”`;
  }

  chosen() {
    const [l, h] = this.model.get("head");
    const query = clamp(this.model.get("query"), this.T);
    return {
      l: clamp(l, this.layers),
      h: clamp(h, this.heads),
      query,
      key: clamp(this.model.get("key"), query + 1),
      measure: this.model.get("measure"),
    };
  }

  takeHead(l, h) {
    setTraits(this.model, { head: [clamp(l, this.layers), clamp(h, this.heads)] });
  }

  takePair(query, key) {
    setTraits(this.model, key < this.model.get("query") ? { key, query } : { query, key });
  }

  takeQuery(query) {
    this.takePair(query, this.reading.strongest(this.model.get("head"), query));
  }

  show() {
    const now = this.chosen();
    const row = this.tokens.map((_, key) => this.level(now.l, now.h, now.query, key));
    this.words.show(now, row);
    this.message.textContent = this.sentence(now, row);
    this.next.show(now);
    this.weights.show(now);
    this.whole.show(now);
    this.order.show(now);
  }

  sentence({ l, h, query }, row) {
    const most = this.tokens
      .map((_, key) => key)
      .filter((key) => row[key] >= 2)
      .sort((a, b) => row[b] - row[a] || a - b)
      .slice(0, 3);
    const keys = most.map((key) => `${this.named(key)} ${shortText(row[key] / 255)}`).join(", ");
    return `${headName(l, h)}: ${this.named(query)} looks ${most.length > 1 ? "most " : ""}at ${keys}.`;
  }

  // ---- what may come next
  nextTokens() {
    const node = make("div", "course-explorer-next");
    const heading = make("div", "course-explorer-heading");
    const table = make("table", "", { "aria-label": "likeliest next tokens" });
    const rows = this.reading.following[0].map(() => barRow(table.insertRow()));
    node.append(heading, table);
    return {
      node,
      show: ({ query }) => {
        heading.textContent = `after ${this.named(query)} the model expects`;
        rows.forEach((row, i) => {
          const [text, chance] = this.reading.following[query][i];
          row(`“${text}”`, chance / 1000);
        });
      },
    };
  }

  // ---- all heads, each in its place: from the tokens above through the layers to the next token
  wholeModel() {
    const node = make("div", "course-explorer-whole");
    const grid = headTable({
      layers: this.layers,
      heads: this.heads,
      name: "all heads: layers in rows, heads in columns",
      labels: () => [],
      bare: true,
      press: (l, h) => this.takeHead(l, h),
      follows: true,
      makeButton: () => make("button", "course-explorer-head", { type: "button", "aria-pressed": "false" }),
    });
    const line = (text) => make("div", "course-faint course-explorer-flow", {}, text);
    const scale = make("div", "course-faint", {}, `${this.layers} layers of ${this.heads} heads; `);
    const more = ": a larger share, as sorted below";
    scale.append(
      make("span", "course-when-light", {}, "darker"),
      make("span", "course-when-dark", {}, "brighter"),
      more,
    );
    node.append(
      make("div", "course-explorer-heading", {}, "its place in the whole model"),
      scale,
      line(`↓ ${this.T} tokens`),
      grid.node,
      line("↓ the next token"),
    );
    const rows = [...grid.node.tBodies[0].rows];
    const [, ...columns] = grid.node.tHead.rows[0].cells;
    return {
      node,
      show: ({ l, h }) => {
        const at = l * this.heads + h;
        grid.stop(at);
        grid.buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === at));
        rows.forEach((row, i) => row.classList.toggle("course-explorer-here", i === l));
        columns.forEach((column, i) => column.classList.toggle("course-explorer-here", i === h));
      },
      shade: (shares) =>
        grid.buttons.forEach((button, i) => {
          const text = `${headName(Math.floor(i / this.heads), i % this.heads)}: ${shortText(shares[i])}`;
          button.style.background = this.ramp.colour(Math.round(255 * shares[i]));
          button.setAttribute("aria-label", text);
          button.title = text;
        }),
    };
  }
}

// ---- all heads by what they do
class SortedHeads {
  constructor(sentence) {
    this.sentence = sentence;
    this.node = make("div", "course-explorer-order");
    const label = make("label", "course-explorer-by");
    this.select = make("select");
    this.options = Object.entries(this.sentence.model.get("_measures")).map(([name, text]) => {
      const option = make("option", "", { value: name }, text);
      option.disabled = name === "again" && !this.sentence.reading.repeats;
      this.select.append(option);
      return { name, option };
    });
    label.append(make("span", "", {}, "heads by their share of attention"), this.select);
    this.select.addEventListener("change", () => setTraits(this.sentence.model, { measure: this.select.value }));
    keepKeys(this.select, (event) => !passes(event));
    this.list = make("div", "course-explorer-list", {
      role: "listbox",
      "aria-label": "heads, the largest share first",
    });
    this.ranked = [];
    this.lines = Array.from({ length: this.sentence.layers * this.sentence.heads }, () => {
      const line = make("div", "course-explorer-line", { role: "option", tabindex: -1 });
      const name = make("span");
      const bar = make("span", "course-explorer-bar");
      const value = make("span");
      const track = make("span", "course-explorer-track");
      track.append(bar);
      line.append(name, value, track);
      this.list.append(line);
      return { line, name, bar, value };
    });
    this.moveStop = oneStop(
      this.list,
      this.lines.map(({ line }) => line),
      (at) =>
        this.sentence.takeHead(
          Math.floor(this.ranked[at] / this.sentence.heads),
          this.ranked[at] % this.sentence.heads,
        ),
    );
    this.rank = make("div", "course-faint course-explorer-rank");
    this.node.append(label, this.rank, this.list);
    this.before = "";
  }

  show({ l, h, query, key, measure }) {
    const at = l * this.sentence.heads + h;
    const known = `${measure} ${query} ${key}`;
    this.options[0].option.textContent = `from ${this.sentence.named(query)} to ${this.sentence.named(key)}`;
    this.select.value = measure;
    if (known !== this.before && !(this.before && measure !== "pair" && this.before.startsWith(measure))) {
      const shares = this.sentence.reading.shares(measure, query, key);
      this.ranked = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a] || a - b);
      this.ranked.forEach((head, i) => {
        const { name, bar, value } = this.lines[i];
        const text = shortText(shares[head]);
        name.textContent = headName(Math.floor(head / this.sentence.heads), head % this.sentence.heads);
        bar.style.transform = `scaleX(${shares[head]})`;
        value.textContent = text;
      });
      this.sentence.whole.shade(shares);
      this.list.scrollTop = 0;
    }
    this.before = known;
    const rankOf = this.ranked.indexOf(at);
    this.lines.forEach(({ line }, i) => line.setAttribute("aria-selected", i === rankOf));
    this.moveStop(rankOf);
    this.rank.textContent = `shown: number ${rankOf + 1} of ${this.lines.length}`;
  }
}

// ---- the weights of the head, a grid in which a cell is a query and a key
class WeightTable {
  constructor(sentence) {
    this.sentence = sentence;
    this.node = make("div", "course-explorer-weights");
    this.heading = make("div", "course-explorer-heading", { id: `${this.sentence.uid}-weights` });
    const scroll = makeScroll("course-heads-scroll");
    this.table = make("table", this.sentence.T > 12 ? "course-explorer-many" : "", {
      role: "grid",
      "aria-labelledby": `${this.sentence.uid}-weights`,
      "aria-readonly": "true",
    });
    this.table.style.setProperty("--n", this.sentence.T);
    const head = this.table.createTHead().insertRow();
    const body = this.table.createTBody();
    this.keys = this.sentence.tokens.map((_, key) => this.label(key));
    this.keys.forEach((cell) => {
      cell.scope = "col";
    });
    head.append(make("th", "course-explorer-corner", {}, "query ↓ key →"), ...this.keys);
    this.rows = this.sentence.tokens.map((_, query) => {
      const row = body.insertRow();
      const name = this.label(query);
      name.scope = "row";
      const cells = this.sentence.tokens.map((_, key) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "data-later": key > query });
        if (key > query) cell.setAttribute("aria-label", "masked, a later token");
        else
          cell.addEventListener("click", () => {
            cell.focus();
            this.sentence.takePair(query, key);
          });
        return cell;
      });
      row.append(name, ...cells);
      return { name, cells };
    });
    this.bindKeys();
    scroll.append(this.table);
    this.node.append(this.heading, scroll);
  }

  bindKeys() {
    keepKeys(this.table, (event) => !passes(event));
    this.table.addEventListener("keydown", (event) => {
      const { query, key } = this.sentence.chosen();
      const target = placeReached(event, [query, key], [this.sentence.T, this.sentence.T]);
      if (!target || passes(event)) return;
      event.preventDefault();
      const row = target[0];
      const column = Math.min(target[1], row);
      this.sentence.takePair(row, column);
      this.rows[row].cells[column].focus();
    });
  }

  label(i) {
    const cell = make("th", "", { title: this.sentence.named(i) });
    cell.append(make("span", "", {}, `${i} ${this.sentence.tokens[i]}`));
    return cell;
  }

  show({ l, h, query, key }) {
    this.heading.textContent = `weights of ${headName(l, h)}`;
    this.rows.forEach(({ name, cells }, r) => {
      name.classList.toggle("course-explorer-query", r === query);
      cells.forEach((cell, c) => {
        const chosenCell = r === query && c === key;
        cell.tabIndex = chosenCell ? 0 : -1;
        cell.setAttribute("aria-selected", chosenCell);
        if (c > r) return;
        const value = this.sentence.level(l, h, r, c);
        const text = shortText(value / 255);
        cell.style.background = this.sentence.ramp.colour(value);
        cell.style.color = this.sentence.ramp.ink(value);
        cell.textContent = this.sentence.T > 12 || value < 2 ? "" : text.replace(/^0/, "").replace(/\.00$/, "");
        cell.setAttribute("aria-label", text);
      });
    });
    this.keys.forEach((cell, c) => cell.classList.toggle("course-explorer-key", c === key));
  }
}

// ---- the words, in a line where they fit, smaller or not, else in a column, and arrows from the query to its keys
class WordArcs {
  constructor(sentence) {
    this.sentence = sentence;
    this.node = make("div", "course-explorer-arcs");
    this.line = make("div", "course-explorer-words", {
      role: "radiogroup",
      "aria-label": "query: the token that looks",
    });
    this.svg = makeSvg("svg", "", { "aria-hidden": "true" });
    this.parts = this.sentence.tokens.map((token, i) => {
      const word = make("button", "course-explorer-word", {
        type: "button",
        role: "radio",
        "aria-label": `${i} ${token}`,
      });
      const share = make("span", "course-explorer-share");
      word.append(make("span", "", {}, token), share);
      this.line.append(word);
      return { word, share };
    });
    this.moveStop = oneStop(
      this.line,
      this.parts.map(({ word }) => word),
      (query) => this.sentence.takeQuery(query),
    );
    this.node.append(this.line, this.svg);
    this.last = null;
    this.watch = new ResizeObserver(() => this.arrows());
    this.watch.observe(this.sentence.place);
  }

  arrows() {
    if (!this.last) return;
    const { query, row } = this.last;
    const fits = ["", "course-explorer-small", "course-explorer-upright"].find((kind) => {
      this.node.className = `course-explorer-arcs ${kind}`;
      return this.line.offsetWidth <= this.sentence.place.clientWidth;
    });
    const upright = fits === "course-explorer-upright";
    this.sentence.left.style.flexBasis = `${upright ? 300 : Math.max(300, this.line.offsetWidth)}px`;
    const frame = this.node.getBoundingClientRect();
    const boxes = this.parts.map(({ word }) => word.getBoundingClientRect());
    const middle = boxes.map((box) =>
      upright ? box.top - frame.top + box.height / 2 : box.left - frame.left + box.width / 2,
    );
    const base = upright ? Math.max(...boxes.map((box) => box.right)) - frame.left + 4 : boxes[0].top - frame.top - 2;
    const room = upright ? frame.width - base - 8 : base - 8;
    const at = (along, away) => (upright ? `${base + away} ${along}` : `${along} ${base - away}`);
    const longest = Math.max(
      1,
      ...this.sentence.tokens.map((_, key) => (row[key] >= LEAST ? Math.abs(middle[query] - middle[key]) : 0)),
    );
    const drawn = [];
    for (let key = 0; key <= query; key++) {
      if (row[key] < LEAST) continue;
      const far = Math.abs(middle[query] - middle[key]);
      const out = far ? 0 : 9;
      const away =
        (far ? Math.min(room, 22 + (room - 22) * Math.min(1, far / Math.max(longest, 2.2 * room))) : 22) / 0.75;
      drawn.push(arrowOf(at, middle[query] + out, middle[key] - out, away, row[key] / 255));
    }
    this.svg.replaceChildren(...drawn);
  }

  stop() {
    return this.watch.disconnect();
  }

  show({ query, key }, row) {
    this.parts.forEach(({ word, share }, i) => {
      word.setAttribute("aria-checked", i === query);
      word.classList.toggle("course-explorer-key", i === key);
      share.textContent = row[i] >= 2 ? shortText(row[i] / 255) : "";
    });
    this.moveStop(query);
    this.last = { query, row };
    this.arrows();
  }
}

// An arrow from one place of the line to another, which leads `away` from it; `at` says where that is on the drawing.
function arrowOf(at, from, to, away, share) {
  const tip = 5 + 5 * share;
  const group = makeSvg("g", "", { opacity: 0.35 + 0.65 * share });
  group.append(
    makeSvg("path", "", {
      d: `M${at(from, 0)} C${at(from, away)} ${at(to, away)} ${at(to, tip)}`,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1 + 8 * share,
    }),
    makeSvg("path", "", {
      d: `M${at(to, 0)} L${at(to - 3 - 4 * share, tip + 1)} L${at(to + 3 + 4 * share, tip + 1)} Z`,
      fill: "currentColor",
    }),
  );
  return group;
}

// Buttons or cells of which one is a stop of the Tab key; arrow keys go to others, and what they reach is taken.
function oneStop(node, items, take) {
  keepKeys(node, (event) => !passes(event));
  node.addEventListener("keydown", (event) => {
    const at = items.indexOf(event.target);
    const last = items.length - 1;
    const to = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: last,
      PageDown: at + 10,
      PageUp: at - 10,
    }[event.key];
    if (at < 0 || passes(event) || event.ctrlKey) return;
    if (to === undefined && !presses(event)) return;
    event.preventDefault();
    const target = clamp(to ?? at, items.length);
    items[target].focus();
    take(target);
  });
  items.forEach((item, i) => item.addEventListener("click", () => take(i)));
  return (at) =>
    items.forEach((item, i) => {
      item.tabIndex = i === at ? 0 : -1;
    });
}

function barRow(row) {
  const name = make("th", "", { scope: "row" });
  const track = make("td");
  const bar = make("div", "course-explorer-bar");
  const value = make("td");
  track.append(bar);
  row.append(name, value, track);
  return (text, share) => {
    name.textContent = name.title = text;
    bar.style.transform = `scaleX(${share})`;
    value.textContent = shortText(share);
  };
}

export default { render };
