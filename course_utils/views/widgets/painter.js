// Paints the mask at once; the weights and the verdict come from painter.py, one round trip later, or
// without a kernel from painter_alone.js.

import { keepKey, keepKeys, listen, make, makeRamp, makeRoot, makeScroll, newId, presses } from "../shared/dom.js";
import { answerPainter } from "./painter_alone.js";

const HINT = "Click or tap a cell, or drag, to paint. Keys: arrows move, Space paints, Shift with an arrow paints on.";
const SETTINGS = { "sliding window": "window", "prefix-LM": "prefix", padding: "length" };
const SAID = { window: "places in the window", prefix: "tokens in the prefix", length: "real keys" };

function render({ model, el }) {
  const tokens = model.get("_tokens");
  const keys = model.get("_keys");
  const layout = model.get("_layout");
  const catalogue = model.get("_catalogue");
  const n = tokens.length;
  const m = keys.length;
  const ramp = makeRamp(model);
  const uid = newId("course-painter");
  const root = makeRoot(model, "course-painter", { role: "group", "aria-label": "mask painter" });
  root.style.setProperty("--cell", `${layout.cell}px`);
  root.style.setProperty("--cell-font", layout.cell < 30 ? "12px" : "13px");
  const turned = Math.max(...keys.map((key) => key.length)) * 8 > layout.cell;

  const chooser = familyChooser();
  const sliders = familySliders();
  const about = familyStory();
  const left = grid("mask", true);
  const right = grid("weights under this mask", false);
  const grids = make("div", "course-painter-grids");
  const verdict = verdictBox();
  const copier = codeCopier();
  const goal = make("div", "course-painter-goal", { role: "status" });
  grids.append(left.node, right.node);
  root.append(
    chooser.node,
    grids,
    about.node,
    sliders.node,
    ...(model.get("_target") ? [goal] : []),
    verdict.node,
    legend(),
    copier.node,
  ); // what changes its height: below
  el.append(root);
  let cursor = [0, 0];
  let drag = null;
  let late = null;
  let painted = null; // painted: the last mask of no family
  const states = []; // what each cell of the weights shows, so that only those that change are written
  paintOnPointer();
  left.node.addEventListener("keydown", press);

  function familyChooser() {
    const node = make("div", "course-row course-painter-families", {
      role: "radiogroup",
      "aria-label": "family of masks",
    });
    const radios = Object.keys(layout.about).map((family) => {
      const label = make("label", "course-painter-family");
      const radio = make("input", "", { type: "radio", name: `${uid}-family`, value: family });
      radio.addEventListener("change", () => choose(family, {}));
      label.append(radio, make("span", "", {}, family));
      node.append(label);
      return radio;
    });
    keepKeys(node, usesArrows);
    return {
      node,
      show: (family) =>
        radios.forEach((radio) => {
          radio.disabled = radio.value === "painted" && !painted;
          radio.checked = radio.value === family;
        }),
    };
  }

  function familyStory() {
    const node = make("div", "course-faint course-painter-about");
    const lines = Object.entries(layout.about).map(([family, text]) => {
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
  function familySliders() {
    const node = make("div", "course-painter-sliders");
    const sliders = [];
    for (const [family, name] of Object.entries(SETTINGS)) {
      const values = catalogue.filter((entry) => entry.family === family).map((entry) => entry.value);
      if (!values.length) continue;
      const label = make("label", "course-painter-slider");
      const output = make("output");
      const slider = make("input", "", { type: "range", min: values[0], max: values.at(-1), step: 1 });
      slider.addEventListener("input", () => choose(family, { [name]: +slider.value }));
      label.append(make("span", "", {}, SAID[name]), slider, output);
      node.append(label);
      sliders.push({ family, name, label, slider, output });
    }
    keepKeys(node, usesArrows);
    return {
      node,
      show: (chosen) =>
        sliders.forEach(({ family, name, label, slider, output }) => {
          slider.value = model.get(name);
          output.textContent = model.get(name);
          label.hidden = family !== chosen;
        }),
    };
  }
  function usesArrows(event) {
    return /^(Arrow|Home|End|Page| )/.test(event.key);
  }

  function grid(title, paints) {
    const node = make("div", "course-painter-grid");
    const id = `${uid}-${paints ? "mask" : "weights"}`;
    const told = make("span", "course-faint course-painter-late");
    const head = make("div", "course-painter-title", {}, "");
    head.append(make("b", "", { id }, title), told);
    const scroll = makeScroll("course-painter-scroll");
    const roles = paints ? { role: "grid", "aria-describedby": `${uid}-hint` } : { role: "table" };
    const table = make("table", turned ? "course-painter-turned" : "", { ...roles, "aria-labelledby": id });
    const top = table.createTHead().insertRow();
    const body = table.createTBody();
    const cells = [];
    const heads = [];
    top.append(make("th", "course-painter-corner", {}, "query ↓ key →"));
    for (const key of keys) {
      const th = make("th", "", { scope: "col", title: key });
      th.append(make("span", "", {}, key));
      top.append(th);
    }
    tokens.forEach((token, r) => {
      const row = body.insertRow();
      const th = make("th", "", { scope: "row", title: token }, token);
      heads.push(th);
      row.append(th);
      keys.forEach((key, c) => {
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
            cells[cursor[0] * m + cursor[1]].tabIndex = -1;
            cursor = [r, c];
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
    return { node, table, cells, heads, told };
  }

  function legend() {
    const node = make("div", "course-legend course-painter-legend");
    const item = (mark, text) => {
      const part = make("span");
      part.append(make("i", "course-painter-swatch", { "data-mark": mark, "aria-hidden": "true" }), text);
      node.append(part);
    };
    item("b", "blocked: may not attend");
    item("l", "a weight where blocked, or NaN");
    item("e", "may attend to nothing");
    node.append(make("span", "course-painter-hint", { id: `${uid}-hint` }, HINT));
    return node;
  }

  function verdictBox() {
    const node = make("div", "course-painter-verdict");
    const told = make("div", "", { role: "status" });
    const lines = model.get("_result").lines.map(() => make("div"));
    told.append(...lines);
    node.append(told);
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
  function codeCopier() {
    const node = make("div", "course-row course-painter-copy");
    const id = `${uid}-code`;
    const button = make("button", "course-painter-button", { type: "button", "aria-controls": id }, "Copy as code");
    const told = make("span", "course-faint course-painter-told", { "aria-live": "polite" });
    const code = make("textarea", "course-painter-code", {
      id,
      rows: n + 2,
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
      told.textContent = "Selected: copy it with Ctrl+C or ⌘C.";
      try {
        await navigator.clipboard.writeText(code.value);
        told.textContent = "Copied. It stands here, too:";
      } catch {
        /* no clipboard here, or no leave to write to it */
      }
    });
    keepKeys(button, presses);
    keepKeys(code, () => true);
    node.append(button, told, code);
    function show() {
      if (code.hidden || code.value === codeOf()) return;
      code.value = codeOf();
      told.textContent = "";
    }
    return { node, show };
  }
  function codeOf() {
    const mask = model.get("_mask");
    const family = model.get("family");
    if (family !== "painted" && entryOf(family).mask === mask) return entryOf(family).code;
    const rows = tokens.map((_, r) => `    [${[...mask.slice(r * m, r * m + m)].join(", ")}],`);
    return `mask = torch.tensor([\n${rows.join("\n")}\n], dtype=torch.bool)`;
  }

  // ---- painting
  const at = (r, c) => model.get("_mask")[r * m + c];
  function choose(family, settings) {
    for (const [name, value] of Object.entries(settings)) model.set(name, value);
    const mask = entryOf(family).mask; // before the family changes, for then what is shown counts as painted
    model.set("family", family);
    model.set("_mask", mask);
    model.save_changes();
  }
  function entryOf(family) {
    if (family === "painted") return { mask: painted };
    const name = SETTINGS[family];
    return catalogue.find((entry) => entry.family === family && (!name || entry.value === model.get(name)));
  }
  function paint(places, value) {
    const mask = [...model.get("_mask")];
    for (const [r, c] of places) mask[r * m + c] = value;
    const text = mask.join("");
    if (text === model.get("_mask")) return;
    // As in painter.py: the family stays while it fits, else the first that does is named.
    if (model.get("family") === "painted" || entryOf(model.get("family")).mask !== text) {
      const entry = catalogue.find((other) => other.mask === text);
      if (entry?.setting) model.set(entry.setting, entry.value);
      model.set("family", entry?.family ?? "painted");
    }
    model.set("_mask", text);
    model.save_changes(); // one message at a time is under way; the last state follows it
  }
  const other = (value) => (value === "1" ? "0" : "1");
  function focus(r, c) {
    left.cells[r * m + c].focus({ preventScroll: false });
  }

  function paintOnPointer() {
    const place = (event) => {
      const box = document.elementFromPoint(event.clientX, event.clientY)?.closest(".course-painter-box");
      return box && left.table.contains(box) ? [+box.dataset.row, +box.dataset.column] : null;
    };
    left.table.addEventListener("pointerdown", (event) => {
      const here = place(event);
      if (!here || event.button !== 0) return;
      event.preventDefault(); // no text gets selected
      left.table.setPointerCapture(event.pointerId);
      drag = { value: other(at(...here)), last: here };
      focus(...here);
      paint([here], drag.value);
    });
    left.table.addEventListener("pointermove", (event) => {
      const here = drag && place(event);
      if (!here || (here[0] === drag.last[0] && here[1] === drag.last[1])) return;
      paint(between(drag.last, here), drag.value);
      drag.last = here;
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      left.table.addEventListener(end, () => {
        drag = null;
      });
    }
  }
  function between([r0, c0], [r1, c1]) {
    // a quick hand skips cells: fill the line
    const steps = Math.max(Math.abs(r1 - r0), Math.abs(c1 - c0));
    return Array.from({ length: steps }, (_, i) => [
      Math.round(r0 + ((r1 - r0) * (i + 1)) / steps),
      Math.round(c0 + ((c1 - c0) * (i + 1)) / steps),
    ]);
  }

  function press(event) {
    if (event.altKey || event.metaKey || !event.target.classList.contains("course-painter-box")) return;
    const [r, c] = cursor;
    const target = event.ctrlKey
      ? { Home: [0, 0], End: [n - 1, m - 1] }[event.key]
      : {
          ArrowDown: [r + 1, c],
          ArrowUp: [r - 1, c],
          ArrowRight: [r, c + 1],
          ArrowLeft: [r, c - 1],
          Home: [r, 0],
          End: [r, m - 1],
        }[event.key];
    if (target) {
      const there = [Math.max(0, Math.min(n - 1, target[0])), Math.max(0, Math.min(m - 1, target[1]))];
      if (event.shiftKey) paint(between([r, c], there), at(r, c));
      focus(...there);
    } else if ((event.key === " " || event.key === "Enter") && !event.ctrlKey && !event.shiftKey) {
      paint([[r, c]], other(at(r, c)));
    } else return;
    keepKey(event);
  }

  // ---- showing
  function show() {
    const mask = model.get("_mask");
    const family = model.get("family");
    if (family === "painted") painted = mask;
    chooser.show(family);
    about.show(family);
    sliders.show(family);
    left.cells.forEach((box, i) => {
      if (box.getAttribute("aria-checked") === String(mask[i] === "1")) return;
      box.setAttribute("aria-checked", mask[i] === "1");
    });
    left.heads.forEach((head, r) => empty(head, !mask.slice(r * m, r * m + m).includes("1")));
    copier.show();
    showGoal();
    showLate();
  }
  function showGoal() {
    const mask = model.get("_mask");
    const left = [...model.get("_target")].filter((sign, i) => sign !== mask[i]).length;
    goal.textContent = left ? `Goal: ${left} cell${left > 1 ? "s" : ""} to go` : "Goal reached: this is the mask";
  }
  function showResult() {
    const { text, levels, marks, rows } = model.get("_result");
    right.cells.forEach((cell, i) => {
      const state = `${marks[i]} ${levels[i]} ${text[i]}`;
      if (states[i] === state) return;
      states[i] = state;
      const shown = marks[i] === "w" || marks[i] === "l";
      cell.dataset.mark = marks[i];
      cell.style.backgroundColor = shown ? ramp.colour(levels[i]) : "";
      cell.style.color = shown ? ramp.ink(levels[i]) : "";
      cell.textContent = text[i];
      cell.title = { b: "blocked", l: `${text[i]}, though blocked` }[marks[i]] ?? "";
    });
    right.heads.forEach((head, r) => empty(head, rows[r] === "e"));
    verdict.show(model.get("_result"));
    showLate();
  }
  function empty(head, is) {
    head.dataset.mark = is ? "e" : "";
    const token = tokens[head.parentNode.sectionRowIndex];
    head.title = is ? `${token} may attend to nothing` : token;
  }
  // Weights of another mask than the one painted are said to be so, after a moment in which they usually arrive.
  function showLate() {
    const isLate = model.get("_result").mask !== model.get("_mask");
    clearTimeout(late);
    if (!isLate || model.alone) setLate(isLate);
    else late = setTimeout(() => setLate(model.get("_result").mask !== model.get("_mask")), 400);
  }
  function setLate(is) {
    right.told.textContent = is
      ? ` of the mask before; ${model.alone ? "another needs Python, in JupyterLab" : "waiting for Python"}`
      : "";
    right.node.classList.toggle("course-painter-waits", is);
    verdict.node.classList.toggle("course-painter-waits", is);
  }

  const stopListening = listen(model, {
    _mask: show,
    family: show,
    window: show,
    prefix: show,
    length: show,
    _result: showResult,
  });
  const stop = model.alone ? answerPainter(model) : () => {};
  show();
  showResult();
  return () => {
    clearTimeout(late);
    stop();
    stopListening();
  };
}

export default { render };
