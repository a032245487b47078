// Plays the stages of attention that stepper_story.js tells, and lets the given numbers be changed. A step fills a cell or a
// row of what a stage makes; the trait `stage` follows it.

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
  presses,
  typeset,
} from "../shared/dom.js";
import { numberText } from "../shared/number_text.js";
import { makePlayer, makeTold } from "../shared/player.js";
import { flyInto, settle, slideFrom } from "./stepper_motion.js";
import { tellStory } from "./stepper_story.js";

const HINT =
  "Play it, or step by the arrow keys. Click or tap a number, or choose it by Enter, to see the arithmetic that made it.";
const SOME = 4; // numbers of a row whose arithmetic is told
const STEP = 0.5;
const WAIT = 1500; // what − and + add; milliseconds to wait for an answer from Python
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function render({ model, el }) {
  const labels = model.get("_labels");
  const { start, most } = labels;
  const uid = newId("course-stepper");
  const ramp = makeRamp(model);
  let numbers;
  let stages;
  let matrices;
  let fresh;
  function tell() {
    numbers = model.get("_numbers");
    const theirs = model.get("_theirs") ?? null;
    fresh = Boolean(theirs) && JSON.stringify(theirs.numbers) === JSON.stringify(numbers);
    const read = (rows) => rows.map((row) => row.map(Number));
    const given = fresh ? { output: read(theirs.output), weights: read(theirs.weights) } : null;
    ({ stages, matrices } = tellStory(numbers, labels, given));
  }
  tell();
  const frames = stages.flatMap(({ fills }, stage) => fills.map((fill) => ({ stage, fill })));
  const last = frames.length - 1;
  const complete = (stage) => frames.findLastIndex((frame) => frame.stage === stage);
  const current = () => frames[model.get("step")].stage;
  const root = makeRoot(model, "course-stepper", { role: "group", "aria-label": "attention, stage by stage" });

  const problem = make("div", "course-stepper-problem", { role: "alert" });
  let opening = true;
  const player = makePlayer(
    { get: (name) => model.get(name), set: (_, step) => walk(step, null), save_changes: () => model.save_changes() },
    "steps from X to the output",
    "step",
    0,
    () => opening,
  );
  const list = make("div", "course-row course-stepper-tabs", { role: "tablist", "aria-label": "stages" });
  const main = make("div", "course-stepper-main");
  const why = makeTold("course-stepper-why", (node, lines) =>
    node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))),
  );
  const silent = make(
    "div",
    "course-stepper-silent",
    {},
    `${labels.function} has not answered for these numbers: that needs Python, in JupyterLab.`,
  );
  const change = changeBar();
  root.append(problem, silent, player.node, list, main, why.node, change.node);
  el.append(root);
  const tabs = stages.map((stage, i) => {
    const tab = make(
      "button",
      "course-stepper-tab",
      { type: "button", role: "tab", id: `${uid}-tab-${i}`, "aria-controls": `${uid}-panel-${i}` },
      stage.name,
    );
    tab.addEventListener("click", () => go(i));
    list.append(tab);
    return tab;
  });
  const panels = stages.map((stage, i) => {
    const panel = makeScroll("course-stepper-panel", {
      role: "tabpanel",
      id: `${uid}-panel-${i}`,
      "aria-labelledby": `${uid}-tab-${i}`,
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
      const matrix = matrices[item.matrix];
      const bare = matrix && String(matrix.rows) === rows;
      rows = matrix ? String(matrix.rows) : null;
      if (item.sign) part.append(make("div", "course-stepper-sign", {}, item.sign));
      else {
        const grid = matrixGrid(matrix, bare);
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
    main.append(panel);
    return { node: panel, formula, grids };
  });

  function matrixGrid(matrix, bare) {
    const { name } = matrix;
    const editable = name in numbers;
    const node = make("table", "course-stepper-matrix", {
      role: "grid",
      "aria-readonly": !editable,
      "data-matrix": name,
    });
    node.classList.toggle("course-stepper-bare", bare);
    if (matrix.role) node.style.setProperty("--role", `var(--course-${matrix.role})`);
    const caption = node.createCaption();
    caption.append(makeSet("b", "", {}, matrix.name), make("span", "", {}, ` ${matrix.shape}`));
    const head = node.createTHead().insertRow();
    const body = node.createTBody();
    head.append(make("td"), ...matrix.columns.map((label) => make("th", "", { scope: "col", title: label }, label)));
    let cursor = [0, 0];
    const cells = matrix.text.map((texts, r) => {
      const row = body.insertRow();
      row.append(make("th", "", { scope: "row", title: matrix.rows[r] }, matrix.rows[r]));
      return texts.map((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: r || c ? -1 : 0, "aria-selected": "false" });
        cell.append(make("span"));
        cell.addEventListener("click", () => {
          aim(r, c);
          choose([name, r, c]);
        });
        if (editable) cell.addEventListener("dblclick", () => change.open());
        row.append(cell);
        return cell;
      });
    });
    const aim = (r, c) => {
      cells[cursor[0]][cursor[1]].tabIndex = -1;
      cursor = [Math.max(0, Math.min(cells.length - 1, r)), Math.max(0, Math.min(cells[0].length - 1, c))];
      const cell = cells[cursor[0]][cursor[1]];
      cell.tabIndex = 0;
      cell.focus();
    };
    node.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const [r, c] = cursor;
      const last = cells[0].length - 1;
      const target = {
        ArrowDown: [r + 1, c],
        ArrowUp: [r - 1, c],
        ArrowRight: [r, c + 1],
        ArrowLeft: [r, c - 1],
        Home: [r, 0],
        End: [r, last],
      }[event.key];
      const chosen = String(model.get("cell")) === String([name, r, c]);
      if (target) aim(...target);
      else if (event.key === "Enter" && chosen && editable) change.open();
      else if (event.key === "Enter" || event.key === " ") choose([name, r, c]);
      else if (editable && /^[\d.−-]$/.test(event.key)) {
        choose([name, r, c]);
        change.open(event.key);
      } else if (event.key === "Escape" && model.get("cell")) choose(null);
      else return;
      keepKey(event);
    });
    const paint = () => {
      const { text, levels, differs } = matrices[name];
      cells.forEach((row, r) =>
        row.forEach((cell, c) => {
          const edited = editable && numbers[name][r][c] !== start[name][r][c];
          cell.firstChild.textContent = text[r][c];
          if (levels) shade(cell, levels[r][c]);
          cell.classList.toggle("course-stepper-differs", differs[r][c]);
          cell.classList.toggle("course-stepper-edited", edited);
          const more = differs[r][c]
            ? ", differs from the arithmetic"
            : edited
              ? `, was ${numberText(start[name][r][c])}`
              : "";
          if (more) cell.setAttribute("aria-label", text[r][c] + more);
          else cell.removeAttribute("aria-label");
        }),
      );
    };
    return { node, name, cells, bare, paint, focus: (r, c) => aim(r, c) };
  }
  function shade(cell, level) {
    cell.style.backgroundColor = level === undefined ? "" : ramp.colour(level);
    cell.style.color = level === undefined ? "" : ramp.ink(level);
  }

  // ---- the number that can be changed: the given one that was chosen last, in whatever stage one looks at
  function changeBar() {
    const node = make("div", "course-row course-stepper-change", {
      role: "group",
      "aria-label": "change a given number",
    });
    const where = make("button", "course-stepper-where", { type: "button" });
    const less = make("button", "", { type: "button" }, "−");
    const more = make("button", "", { type: "button" }, "+");
    const field = make("input", "", { type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
    const reset = make("button", "course-stepper-reset", { type: "button" }, "all as given");
    const refused = make("div", "course-stepper-refused", { role: "alert" });
    const first = Object.keys(start)[0];
    let target = [first, Math.min(2, start[first].length - 1), 0];
    let typing = false;
    const now = () => numbers[target[0]][target[1]][target[2]];
    const name = () => `${target[0]}[${target[1]}, ${target[2]}]`;
    const written = (value) => minus(String(Number(value.toPrecision(12))));
    node.append(
      make("span", "", {}, "change"),
      where,
      less,
      field,
      more,
      reset,
      makeSet(
        "span",
        "course-faint course-stepper-others",
        {},
        `Any number of ${Object.keys(start).join(", ")} that you choose there can be changed here.`,
      ),
      refused,
    );

    function put(value) {
      const [matrix, r, c] = target;
      const rows = numbers[matrix].map((row) => [...row]);
      rows[r][c] = value;
      refused.textContent = "";
      model.set("_numbers", { ...numbers, [matrix]: rows });
      model.save_changes();
    }
    function take() {
      typing = false;
      const text = field.value.trim().replace(/^−/, "-");
      const value = Number(text);
      if (text === written(now()).replace("−", "-")) refused.textContent = "";
      else if (!NUMBER.test(text)) refuse(text ? `“${field.value.trim()}” is no number` : "there is no number");
      else if (!(Math.abs(value) <= most))
        refuse(`${field.value.trim()} is too large: give a number from −${most} to ${most}`);
      else put(value);
      show();
    }
    const refuse = (reason) => {
      refused.textContent = `${reason}; ${written(now())} stays.`;
    };
    const step = (by) => {
      const value = Number((now() + by).toPrecision(12));
      if (Math.abs(value) <= most) put(value);
      else refuse(`${written(value)} is too large`);
    };
    function show() {
      where.replaceChildren(...typeset(name()));
      where.setAttribute("aria-label", `${name()}: show where it stands`);
      field.setAttribute("aria-label", name());
      less.setAttribute("aria-label", `${name()} less ${STEP}`);
      more.setAttribute("aria-label", `${name()} plus ${STEP}`);
      if (!typing) field.value = written(now());
      reset.setAttribute("aria-disabled", JSON.stringify(numbers) === JSON.stringify(start));
    }
    const place = (i) => panels[i].grids.find((grid) => grid.name === target[0]);
    const toCell = () => {
      if (!place(current())) walk(complete(panels.findIndex((_, i) => place(i))), null);
      choose([...target]);
      place(current()).focus(target[1], target[2]);
    };
    // Back to the cell, where it is in sight; elsewhere one looks at what follows from it, and stays in the field.
    const leave = () => {
      if (place(current())) toCell();
      else field.select();
    };
    less.addEventListener("click", () => step(-STEP));
    more.addEventListener("click", () => step(STEP));
    where.addEventListener("click", toCell);
    reset.addEventListener("click", () => {
      if (reset.getAttribute("aria-disabled") === "true") return;
      refused.textContent = "";
      model.set("_numbers", start);
      model.save_changes();
    });
    field.addEventListener("input", () => {
      typing = true;
    });
    field.addEventListener("blur", () => {
      if (typing) take();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !(event.shiftKey || event.ctrlKey || event.metaKey || event.altKey)) {
        take();
        leave();
      } else if (event.key === "Escape") {
        typing = false;
        show();
        leave();
      } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        if (typing) take();
        step(event.key === "ArrowUp" ? STEP : -STEP);
      } else {
        if (!(event.key === "Tab" || event.key === "Enter")) event.stopPropagation();
        return;
      }
      keepKey(event);
    });
    for (const button of [where, less, more, reset]) keepKeys(button, presses);
    return {
      node,
      show,
      aim: (cell) => {
        if (!(cell[0] in numbers) || String(cell) === String(target)) return;
        if (typing) take();
        target = [...cell];
        refused.textContent = "";
        show();
      },
      open: (text) => {
        field.focus();
        if (text === undefined) field.select();
        else {
          typing = true;
          field.value = text;
        }
      },
    };
  }

  function walk(step, cell) {
    opening = false;
    model.set("cell", cell);
    model.set("step", step);
    model.set("stage", frames[step].stage);
  }
  // A number that is not there yet comes when it is chosen.
  function choose(cell) {
    player.stop();
    walk(cell ? Math.max(model.get("step"), stepOf(...cell)) : model.get("step"), cell);
    model.save_changes();
  }
  const stepOf = (name, r, c) =>
    frames.findIndex(
      ({ stage, fill }) => stage === current() && fill?.[0] === name && fill[1] === r && (fill[2] ?? c) === c,
    );
  function go(i) {
    // A chosen pair of query and key stays chosen from scores to weights.
    const cell = model.get("cell");
    const pairs = ["scores", "scaled", "masked", "weights"];
    const to = stages[i].results[0];
    player.stop();
    walk(
      complete(i),
      cell && [...stages[current()].results, to].every((name) => pairs.includes(name)) ? [to, cell[1], cell[2]] : null,
    );
    model.save_changes();
  }
  list.addEventListener("keydown", (event) => {
    const i = current();
    const count = stages.length;
    const target = { ArrowRight: (i + 1) % count, ArrowLeft: (i + count - 1) % count, Home: 0, End: count - 1 }[
      event.key
    ];
    if (target === undefined) return;
    go(target);
    tabs[target].focus();
    keepKey(event);
  });
  keepKeys(list, presses);
  player.keys(root);

  // What is told of a step: the arithmetic of a cell, or that of the numbers of a row.
  function linesOf(fill) {
    if (!fill) return [HINT];
    const [name, r, c] = fill;
    const { rows, text, why } = matrices[name];
    if (c !== undefined) return why(r, c)[0];
    const told = text[r]
      .slice(0, SOME)
      .map((_, column) => why(r, column)[0])
      .map((lines) => lines[lines.length > 2 ? 1 : 0]);
    return [`${name}[${r}], the row of “${rows[r]}”`, ...told, ...(text[r].length > SOME ? ["…"] : [])];
  }
  let shown = null;
  function show() {
    const step = model.get("step");
    const stage = current();
    const { grids } = panels[stage];
    const { fill } = frames[step];
    const before = panels[frames[shown ?? step].stage].grids;
    const forward = step === shown + 1;
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === stage);
      tab.tabIndex = i === stage ? 0 : -1;
    });
    panels.forEach((panel, i) => panel.node.classList.toggle("course-stepper-current", i === stage));
    player.show(step, last);
    const cell = model.get("cell") ?? null;
    const here = cell && grids.some((grid) => grid.name === cell[0]);
    if (cell) change.aim(cell);
    const made = here ? cell : fill;
    const { columns } = made ? matrices[made[0]] : { columns: [] };
    const lit = (made?.[2] === undefined ? columns.map((_, c) => c) : [made[2]]).flatMap(
      (c) => matrices[made[0]].why(made[1], c)[1],
    );
    const blended = made?.[0] === "output" ? matrices.weights.levels[made[1]] : [];
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
          if (grid.name === "V") shade(node, blended[r]);
          node.setAttribute("aria-selected", Boolean(now && here));
          node.classList.toggle("course-stepper-now", now);
          node.classList.toggle("course-stepper-alone", made?.[2] === c);
          node.classList.toggle("course-stepper-later", stepOf(grid.name, r, c) > step);
          for (const kind of ["row", "column", "cell"])
            node.classList.toggle(
              `course-stepper-${kind}`,
              from.some((part) => part[1] === kind),
            );
        }),
      );
    }
    why.show(here ? matrices[cell[0]].why(cell[1], cell[2])[0] : linesOf(fill));
    if (shown !== null && before !== grids) slideFrom(before, grids);
    if (forward && !here && before === grids) flyInto(root, sources, targets);
    else if (step !== shown) settle(root);
    shown = step;
  }
  function showProblem() {
    problem.textContent = model.get("problem");
    problem.hidden = !model.get("problem");
  }

  let waiting;
  function follow() {
    tell();
    panels.forEach(({ formula, grids }, i) => {
      formula.replaceChildren(...typeset(stages[i].formula));
      for (const grid of grids) grid.paint();
    });
    change.show();
    why.rooms(frames.map(({ fill }) => linesOf(fill)));
    show();
    const silence = Boolean(labels.function && model.get("_theirs") && !fresh);
    clearTimeout(waiting);
    silent.hidden = true;
    if (silence)
      waiting = setTimeout(
        () => {
          silent.hidden = false;
        },
        model.alone ? 0 : WAIT,
      );
  }

  const stopListening = listen(model, {
    _numbers: follow,
    _theirs: follow,
    step: show,
    cell: show,
    problem: showProblem,
  });
  showProblem();
  follow();
  return () => {
    player.stop();
    clearTimeout(waiting);
    stopListening();
  };
}

export default { render };
