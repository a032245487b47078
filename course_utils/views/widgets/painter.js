// Paints the mask at once; the weights and the verdict come from painter.py, one round trip later, or
// without a kernel from painter_alone.js.

import {
  keepKey,
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
import { answerPainter } from "./painter_alone.js";

const HINT = "Click or tap a cell, or drag, to paint. Keys: arrows move, Space paints, Shift with an arrow paints on.";
const SETTINGS = { "sliding window": "window", "prefix-LM": "prefix", padding: "length" };
const SETTING_NAMES = { window: "places in the window", prefix: "tokens in the prefix", length: "real keys" };

class MaskPainterView {
  constructor({ model, el }) {
    this.model = model;
    this.tokens = model.get("_tokens");
    this.keys = model.get("_keys");
    this.layout = model.get("_layout");
    this.catalogue = model.get("_catalogue");
    this.n = this.tokens.length;
    this.m = this.keys.length;
    this.ramp = makeRamp(model);
    this.uid = newId("course-painter");
    const root = makeRoot(model, "course-painter", { role: "group", "aria-label": "mask painter" });
    root.style.setProperty("--cell", `${this.layout.cell}px`);
    root.style.setProperty("--cell-font", this.layout.cell < 30 ? "12px" : "13px");
    this.turned = Math.max(...this.keys.map((key) => key.length)) * 8 > this.layout.cell;

    this.chooser = this.familyChooser();
    this.sliders = this.familySliders();
    this.about = this.familyStory();
    this.left = this.grid("mask", true);
    this.right = this.grid("weights under this mask", false);
    const grids = make("div", "course-painter-grids");
    this.verdict = this.verdictBox();
    this.copier = this.codeCopier();
    this.goal = make("div", "course-painter-goal", { role: "status" });
    grids.append(this.left.node, this.right.node);
    root.append(
      this.chooser.node,
      grids,
      this.about.node,
      this.sliders.node,
      ...(model.get("_target") ? [this.goal] : []),
      this.verdict.node,
      this.legend(),
      this.copier.node,
    ); // what changes its height: below
    el.append(root);
    this.cursor = [0, 0];
    this.drag = null;
    this.late = null;
    this.painted = null; // painted: the last mask of no family
    this.states = []; // what each cell of the weights shows, so that only those that change are written
    this.paintOnPointer();
    this.left.node.addEventListener("keydown", (event) => this.press(event));
    this.listenToModel();
  }

  listenToModel() {
    this.stopListening = listen(this.model, {
      _mask: () => this.show(),
      family: () => this.show(),
      window: () => this.show(),
      prefix: () => this.show(),
      length: () => this.show(),
      _result: () => this.showResult(),
    });
    this.stop = this.model.alone ? answerPainter(this.model) : () => {};
    this.show();
    this.showResult();
  }

  familyChooser() {
    const node = make("div", "course-row course-painter-families", {
      role: "radiogroup",
      "aria-label": "family of masks",
    });
    const radios = Object.keys(this.layout.about).map((family) => {
      const label = make("label", "course-painter-family");
      const radio = make("input", "", { type: "radio", name: `${this.uid}-family`, value: family });
      radio.addEventListener("change", () => this.choose(family, {}));
      label.append(radio, make("span", "", {}, family));
      node.append(label);
      return radio;
    });
    keepKeys(node, usesArrows);
    return {
      node,
      show: (family) =>
        radios.forEach((radio) => {
          radio.disabled = radio.value === "painted" && !this.painted;
          radio.checked = radio.value === family;
        }),
    };
  }

  familyStory() {
    const node = make("div", "course-faint course-painter-about");
    const lines = Object.entries(this.layout.about).map(([family, text]) => {
      const line = make("div", "", { "data-family": family }, text);
      node.append(line);
      return line;
    });
    return {
      node,
      show: (family) =>
        lines.forEach((line) => {
          line.hidden = line.dataset.family !== family;
        }),
    };
  }

  familySliders() {
    const node = make("div", "course-painter-sliders");
    const sliders = [];
    for (const [family, name] of Object.entries(SETTINGS)) {
      const values = this.catalogue.filter((entry) => entry.family === family).map((entry) => entry.value);
      if (!values.length) continue;
      const label = make("label", "course-painter-slider");
      const output = make("output");
      const slider = make("input", "", { type: "range", min: values[0], max: values.at(-1), step: 1 });
      slider.addEventListener("input", () => this.choose(family, { [name]: +slider.value }));
      label.append(make("span", "", {}, SETTING_NAMES[name]), slider, output);
      node.append(label);
      sliders.push({ family, name, label, slider, output });
    }
    keepKeys(node, usesArrows);
    return {
      node,
      show: (chosen) =>
        sliders.forEach(({ family, name, label, slider, output }) => {
          slider.value = this.model.get(name);
          output.textContent = this.model.get(name);
          label.hidden = family !== chosen;
        }),
    };
  }

  grid(title, paints) {
    const node = make("div", "course-painter-grid");
    const id = `${this.uid}-${paints ? "mask" : "weights"}`;
    const note = make("span", "course-faint course-painter-late");
    const head = make("div", "course-painter-title", {}, "");
    head.append(make("b", "", { id }, title), note);
    const scroll = makeScroll("course-painter-scroll");
    const roles = paints ? { role: "grid", "aria-describedby": `${this.uid}-hint` } : { role: "table" };
    const table = make("table", this.turned ? "course-painter-turned" : "", { ...roles, "aria-labelledby": id });
    const top = table.createTHead().insertRow();
    const body = table.createTBody();
    const cells = [];
    const heads = [];
    top.append(make("th", "course-painter-corner", {}, "query ↓ key →"));
    for (const key of this.keys) {
      const th = make("th", "", { scope: "col", title: key });
      th.append(make("span", "", {}, key));
      top.append(th);
    }
    this.tokens.forEach((token, r) => {
      const row = body.insertRow();
      const th = make("th", "", { scope: "row", title: token }, token);
      heads.push(th);
      row.append(th);
      this.keys.forEach((key, c) => {
        const cell = make("td", "", paints ? { role: "gridcell" } : {});
        if (paints) {
          const box = make("div", "course-painter-box", {
            role: "checkbox",
            "aria-checked": "false",
            tabindex: -1,
            "data-row": r,
            "data-column": c,
            "aria-label": `${token} may attend to ${key}`,
          });
          box.addEventListener("focus", () => {
            cells[this.cursor[0] * this.m + this.cursor[1]].tabIndex = -1;
            this.cursor = [r, c];
            box.tabIndex = 0;
          });
          cell.append(box);
          cells.push(box);
        } else cells.push(cell);
        row.append(cell);
      });
    });
    if (paints) cells[0].tabIndex = 0;
    scroll.append(table);
    node.append(head, scroll);
    return { node, table, cells, heads, note };
  }

  legend() {
    const node = make("div", "course-legend course-painter-legend");
    const item = (mark, text) => {
      const part = make("span");
      part.append(make("i", "course-painter-swatch", { "data-mark": mark, "aria-hidden": "true" }), text);
      node.append(part);
    };
    item("b", "blocked: may not attend");
    item("l", "a weight where blocked, or NaN");
    item("e", "may attend to nothing");
    node.append(make("span", "course-painter-hint", { id: `${this.uid}-hint` }, HINT));
    return node;
  }

  verdictBox() {
    const node = make("div", "course-painter-verdict");
    const note = make("div", "", { role: "status" });
    const lines = this.model.get("_result").lines.map(() => make("div"));
    note.append(...lines);
    node.append(note);
    return {
      node,
      show: (result) => {
        node.dataset.kind = result.kind;
        lines.forEach((line, i) => {
          if (line.textContent !== result.lines[i]) line.textContent = result.lines[i];
        });
      },
    };
  }

  // The code is shown and selected as well, for pages that may not write to the clipboard.
  codeCopier() {
    const node = make("div", "course-row course-painter-copy");
    const id = `${this.uid}-code`;
    const button = make("button", "course-painter-button", { type: "button", "aria-controls": id }, "Copy as code");
    const note = make("span", "course-faint course-painter-message", { "aria-live": "polite" });
    const code = make("textarea", "course-painter-code", {
      id,
      rows: this.n + 2,
      cols: 10,
      readonly: "",
      wrap: "off",
      spellcheck: "false",
      "aria-label": "the mask as code",
    });
    code.hidden = true;
    button.addEventListener("click", async () => {
      code.hidden = false;
      show();
      code.focus();
      code.select();
      note.textContent = "Selected: copy it with Ctrl+C or ⌘C.";
      try {
        await navigator.clipboard.writeText(code.value);
        note.textContent = "Copied. It stands here, too:";
      } catch {
        /* no clipboard here, or no leave to write to it */
      }
    });
    keepKeys(button, presses);
    keepKeys(code, () => true);
    node.append(button, note, code);
    const show = () => {
      if (code.hidden || code.value === this.codeOf()) return;
      code.value = this.codeOf();
      note.textContent = "";
    };
    return { node, show };
  }

  codeOf() {
    const mask = this.model.get("_mask");
    const family = this.model.get("family");
    if (family !== "painted" && this.entryOf(family).mask === mask) return this.entryOf(family).code;
    const rows = this.tokens.map((_, r) => `    [${[...mask.slice(r * this.m, r * this.m + this.m)].join(", ")}],`);
    return `mask = torch.tensor([\n${rows.join("\n")}\n], dtype=torch.bool)`;
  }

  // ---- painting
  at(r, c) {
    return this.model.get("_mask")[r * this.m + c];
  }

  choose(family, settings) {
    for (const [name, value] of Object.entries(settings)) this.model.set(name, value);
    const mask = this.entryOf(family).mask; // before the family changes, for then what is shown counts as painted
    setTraits(this.model, { family, _mask: mask });
  }

  entryOf(family) {
    if (family === "painted") return { mask: this.painted };
    const name = SETTINGS[family];
    return this.catalogue.find((entry) => entry.family === family && (!name || entry.value === this.model.get(name)));
  }

  paint(places, value) {
    const mask = [...this.model.get("_mask")];
    for (const [r, c] of places) mask[r * this.m + c] = value;
    const text = mask.join("");
    if (text === this.model.get("_mask")) return;
    // As in painter.py: the family stays while it fits, else the first that does is named.
    if (this.model.get("family") === "painted" || this.entryOf(this.model.get("family")).mask !== text) {
      const entry = this.catalogue.find((other) => other.mask === text);
      if (entry?.setting) this.model.set(entry.setting, entry.value);
      this.model.set("family", entry?.family ?? "painted");
    }
    setTraits(this.model, { _mask: text }); // one message at a time is under way; the last state follows it
  }

  focus(r, c) {
    this.left.cells[r * this.m + c].focus({ preventScroll: false });
  }

  paintOnPointer() {
    const place = (event) => {
      const box = document.elementFromPoint(event.clientX, event.clientY)?.closest(".course-painter-box");
      return box && this.left.table.contains(box) ? [+box.dataset.row, +box.dataset.column] : null;
    };
    this.left.table.addEventListener("pointerdown", (event) => {
      const here = place(event);
      if (!here || event.button !== 0) return;
      event.preventDefault(); // no text gets selected
      this.left.table.setPointerCapture(event.pointerId);
      this.drag = { value: other(this.at(...here)), last: here };
      this.focus(...here);
      this.paint([here], this.drag.value);
    });
    this.left.table.addEventListener("pointermove", (event) => {
      const here = this.drag && place(event);
      if (!here || (here[0] === this.drag.last[0] && here[1] === this.drag.last[1])) return;
      this.paint(between(this.drag.last, here), this.drag.value);
      this.drag.last = here;
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      this.left.table.addEventListener(end, () => {
        this.drag = null;
      });
    }
  }

  press(event) {
    if (event.altKey || event.metaKey || !event.target.classList.contains("course-painter-box")) return;
    const [r, c] = this.cursor;
    const target = placeReached(event, [r, c], [this.n, this.m]);
    if (target) {
      if (event.shiftKey) this.paint(between([r, c], target), this.at(r, c));
      this.focus(...target);
    } else if ((event.key === " " || event.key === "Enter") && !event.ctrlKey && !event.shiftKey) {
      this.paint([[r, c]], other(this.at(r, c)));
    } else return;
    keepKey(event);
  }

  // ---- showing
  show() {
    const mask = this.model.get("_mask");
    const family = this.model.get("family");
    if (family === "painted") this.painted = mask;
    this.chooser.show(family);
    this.about.show(family);
    this.sliders.show(family);
    this.left.cells.forEach((box, i) => {
      if (box.getAttribute("aria-checked") === String(mask[i] === "1")) return;
      box.setAttribute("aria-checked", mask[i] === "1");
    });
    this.left.heads.forEach((head, r) => this.empty(head, !mask.slice(r * this.m, r * this.m + this.m).includes("1")));
    this.copier.show();
    this.showGoal();
    this.showLate();
  }

  showGoal() {
    const mask = this.model.get("_mask");
    const left = [...this.model.get("_target")].filter((sign, i) => sign !== mask[i]).length;
    this.goal.textContent = left ? `Goal: ${left} cell${left > 1 ? "s" : ""} to go` : "Goal reached: this is the mask";
  }

  showResult() {
    const { text, levels, marks, rows } = this.model.get("_result");
    this.right.cells.forEach((cell, i) => {
      const state = `${marks[i]} ${levels[i]} ${text[i]}`;
      if (this.states[i] === state) return;
      this.states[i] = state;
      const shown = marks[i] === "w" || marks[i] === "l";
      cell.dataset.mark = marks[i];
      cell.style.backgroundColor = shown ? this.ramp.colour(levels[i]) : "";
      cell.style.color = shown ? this.ramp.ink(levels[i]) : "";
      cell.textContent = text[i];
      cell.title = { b: "blocked", l: `${text[i]}, though blocked` }[marks[i]] ?? "";
    });
    this.right.heads.forEach((head, r) => this.empty(head, rows[r] === "e"));
    this.verdict.show(this.model.get("_result"));
    this.showLate();
  }

  empty(head, is) {
    head.dataset.mark = is ? "e" : "";
    const token = this.tokens[head.parentNode.sectionRowIndex];
    head.title = is ? `${token} may attend to nothing` : token;
  }

  // Weights of another mask than the one painted are said to be so, after a moment in which they usually arrive.
  showLate() {
    const isLate = this.model.get("_result").mask !== this.model.get("_mask");
    clearTimeout(this.late);
    if (!isLate || this.model.alone) this.setLate(isLate);
    else this.late = setTimeout(() => this.setLate(this.model.get("_result").mask !== this.model.get("_mask")), 400);
  }

  setLate(is) {
    this.right.note.textContent = is
      ? ` of the mask before; ${this.model.alone ? "another needs Python, in JupyterLab" : "waiting for Python"}`
      : "";
    this.right.node.classList.toggle("course-painter-waits", is);
    this.verdict.node.classList.toggle("course-painter-waits", is);
  }

  remove() {
    clearTimeout(this.late);
    this.stop();
    this.stopListening();
  }
}

function usesArrows(event) {
  return /^(Arrow|Home|End|Page| )/.test(event.key);
}

const other = (value) => (value === "1" ? "0" : "1");

function between([r0, c0], [r1, c1]) {
  // a quick hand skips cells: fill the line
  const steps = Math.max(Math.abs(r1 - r0), Math.abs(c1 - c0));
  return Array.from({ length: steps }, (_, i) => [
    Math.round(r0 + ((r1 - r0) * (i + 1)) / steps),
    Math.round(c0 + ((c1 - c0) * (i + 1)) / steps),
  ]);
}

function render(options) {
  const painter = new MaskPainterView(options);
  return () => painter.remove();
}

export default { render };
