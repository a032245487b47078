// Shows the stages of attention that stepper_story.js tells, and lets the given numbers be changed.

const HINT = "Click or tap a number, or go there by arrow keys and Enter, to see the arithmetic that made it.";
const STEP = 0.5, WAIT = 1500; // what − and + add; milliseconds to wait for an answer from Python
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function render({ model, el }) {
  const labels = model.get("_labels"), { start, most } = labels, uid = newId("course-stepper"), ramp = makeRamp(model);
  let numbers, stages, matrices, fresh;
  function tell() {
    numbers = model.get("_numbers");
    const theirs = model.get("_theirs") ?? null;
    fresh = Boolean(theirs) && JSON.stringify(theirs.numbers) === JSON.stringify(numbers);
    const read = (rows) => rows.map((row) => row.map(Number));
    const given = fresh ? { output: read(theirs.output), weights: read(theirs.weights) } : null;
    ({ stages, matrices } = tellStory(numbers, labels, given));
  }
  tell();
  const root = makeRoot(model, "course-stepper", { role: "group", "aria-label": "attention, stage by stage" });

  const problem = make("div", "course-stepper-problem", { role: "alert" });
  const bar = make("div", "course-row course-stepper-bar");
  const back = make("button", "course-stepper-move", { type: "button", "aria-label": "previous stage" }, "← back");
  const next = make("button", "course-stepper-move", { type: "button", "aria-label": "next stage" }, "next →");
  const list = make("div", "course-stepper-tabs", { role: "tablist", "aria-label": "stages" });
  const main = makeScroll("course-stepper-main");
  const why = make("div", "course-stepper-why", { role: "status" });
  const silent = make("div", "course-stepper-silent", {}, `${labels.function} has not answered for these numbers: that needs Python, in JupyterLab.`);
  bar.append(back, list, next);
  const change = changeBar();
  root.append(problem, silent, bar, main, why, change.node);
  el.append(root);
  const tabs = stages.map((stage, i) => {
    const tab = make("button", "course-stepper-tab",
      { type: "button", role: "tab", id: `${uid}-tab-${i}`, "aria-controls": `${uid}-panel-${i}` }, stage.name);
    tab.addEventListener("click", () => go(i));
    list.append(tab);
    return tab;
  });
  const panels = stages.map((stage, i) => {
    const panel = make("div", "course-stepper-panel",
      { role: "tabpanel", id: `${uid}-panel-${i}`, "aria-labelledby": `${uid}-tab-${i}` });
    const formula = make("div", "course-stepper-formula"), line = make("div", "course-stepper-line"), grids = [];
    const result = stage.items.findLastIndex((item) => item.sign);
    let part;
    stage.items.forEach((item, place) => {
      // A narrow page breaks the line before the sign of the result, and nowhere else.
      if (place === 0 || place === result) line.append(part = make("div", "course-stepper-part"));
      if (item.sign) part.append(make("div", "course-stepper-sign", {}, item.sign));
      else { const grid = matrixGrid(matrices[item.matrix]); grids.push(grid); part.append(grid.node); }
    });
    for (const [name, count] of [["columns", grids.reduce((sum, { cells }) => sum + cells[0].length, 0)], ["grids", grids.length]]) panel.style.setProperty(`--${name}`, count);
    panel.append(formula, line);
    main.append(panel);
    return { node: panel, formula, grids };
  });

  function matrixGrid(matrix) {
    const { name } = matrix, editable = name in numbers;
    const node = make("table", "course-stepper-matrix", { role: "grid", "aria-readonly": !editable, "data-matrix": name });
    if (matrix.role) node.style.setProperty("--role", `var(--course-${matrix.role})`);
    const caption = node.createCaption();
    caption.append(makeSet("b", "", {}, matrix.name), make("span", "", {}, ` ${matrix.shape}`));
    const head = node.createTHead().insertRow(), body = node.createTBody();
    head.append(make("td"), ...matrix.columns.map((label) => make("th", "", { scope: "col", title: label }, label)));
    let cursor = [0, 0];
    const cells = matrix.text.map((texts, r) => {
      const row = body.insertRow();
      row.append(make("th", "", { scope: "row", title: matrix.rows[r] }, matrix.rows[r]));
      return texts.map((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: r || c ? -1 : 0, "aria-selected": "false" });
        cell.addEventListener("click", () => { aim(r, c); choose([name, r, c]); });
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
      const [r, c] = cursor, last = cells[0].length - 1;
      const target = { ArrowDown: [r + 1, c], ArrowUp: [r - 1, c], ArrowRight: [r, c + 1], ArrowLeft: [r, c - 1],
        Home: [r, 0], End: [r, last] }[event.key];
      const chosen = String(model.get("cell")) === String([name, r, c]);
      if (target) aim(...target);
      else if (event.key === "Enter" && chosen && editable) change.open();
      else if (event.key === "Enter" || event.key === " ") choose([name, r, c]);
      else if (editable && /^[\d.−-]$/.test(event.key)) { choose([name, r, c]); change.open(event.key); }
      else if (event.key === "Escape" && model.get("cell")) choose(null);
      else return;
      keepKey(event);
    });
    const paint = () => {
      const { text, levels, differs } = matrices[name];
      cells.forEach((row, r) => row.forEach((cell, c) => {
        const edited = editable && numbers[name][r][c] !== start[name][r][c];
        if (cell.textContent !== text[r][c]) cell.textContent = text[r][c];
        if (levels) { cell.style.backgroundColor = ramp.colour(levels[r][c]); cell.style.color = ramp.ink(levels[r][c]); }
        cell.classList.toggle("course-stepper-differs", differs[r][c]);
        cell.classList.toggle("course-stepper-edited", edited);
        const more = differs[r][c] ? ", differs from the arithmetic" : edited ? `, was ${numberText(start[name][r][c])}` : "";
        if (more) cell.setAttribute("aria-label", text[r][c] + more);
        else cell.removeAttribute("aria-label");
      }));
    };
    return { node, name, cells, paint, focus: (r, c) => aim(r, c) };
  }

  // ---- the number that can be changed: the given one that was chosen last, in whatever stage one looks at
  function changeBar() {
    const node = make("div", "course-row course-stepper-change", { role: "group", "aria-label": "change a given number" });
    const where = make("button", "course-stepper-where", { type: "button" });
    const less = make("button", "", { type: "button" }, "−"), more = make("button", "", { type: "button" }, "+");
    const field = make("input", "", { type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
    const reset = make("button", "course-stepper-reset", { type: "button" }, "all as given");
    const refused = make("div", "course-stepper-refused", { role: "alert" });
    const first = Object.keys(start)[0];
    let target = [first, Math.min(2, start[first].length - 1), 0], typing = false;
    const now = () => numbers[target[0]][target[1]][target[2]];
    const name = () => `${target[0]}[${target[1]}, ${target[2]}]`;
    const written = (value) => minus(String(Number(value.toPrecision(12))));
    node.append(make("span", "", {}, "change"), where, less, field, more, reset,
      makeSet("span", "course-faint course-stepper-others", {}, `Any number of ${Object.keys(start).join(", ")} that you choose there can be changed here.`), refused);

    function put(value) {
      const [matrix, r, c] = target, rows = numbers[matrix].map((row) => [...row]);
      rows[r][c] = value;
      refused.textContent = "";
      model.set("_numbers", { ...numbers, [matrix]: rows });
      model.save_changes();
    }
    function take() {
      typing = false;
      const text = field.value.trim().replace(/^−/, "-"), value = Number(text);
      if (text === written(now()).replace("−", "-")) refused.textContent = "";
      else if (!NUMBER.test(text)) refuse(text ? `“${field.value.trim()}” is no number` : "there is no number");
      else if (!(Math.abs(value) <= most)) refuse(`${field.value.trim()} is too large: give a number from −${most} to ${most}`);
      else put(value);
      show();
    }
    const refuse = (reason) => { refused.textContent = `${reason}; ${written(now())} stays.`; };
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
      const at = place(model.get("stage")) ? model.get("stage") : panels.findIndex((_, i) => place(i));
      model.set("stage", at);
      choose([...target]);
      place(at).focus(target[1], target[2]);
    };
    // Back to the cell, where it is in sight; elsewhere one looks at what follows from it, and stays in the field.
    const leave = () => { if (place(model.get("stage"))) toCell(); else field.select(); };
    less.addEventListener("click", () => step(-STEP));
    more.addEventListener("click", () => step(STEP));
    where.addEventListener("click", toCell);
    reset.addEventListener("click", () => {
      if (reset.getAttribute("aria-disabled") === "true") return;
      refused.textContent = "";
      model.set("_numbers", start);
      model.save_changes();
    });
    field.addEventListener("input", () => { typing = true; });
    field.addEventListener("blur", () => { if (typing) take(); });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !(event.shiftKey || event.ctrlKey || event.metaKey || event.altKey)) { take(); leave(); }
      else if (event.key === "Escape") { typing = false; show(); leave(); }
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        if (typing) take();
        step(event.key === "ArrowUp" ? STEP : -STEP);
      } else {
        if (!(event.key === "Tab" || (event.key === "Enter"))) event.stopPropagation();
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
        else { typing = true; field.value = text; }
      },
    };
  }

  function choose(cell) {
    model.set("cell", cell);
    model.save_changes();
  }
  function go(i) {
    if (i < 0 || i >= stages.length || i === model.get("stage")) return;
    // A chosen pair of query and key stays chosen from scores to weights.
    const cell = model.get("cell"), from = stages[model.get("stage")].results, to = stages[i].results;
    const pairs = ["scores", "scaled", "masked", "weights"];
    const follows = cell && from.includes(cell[0]) && pairs.includes(cell[0]) && pairs.includes(to[0]);
    model.set("cell", follows ? [to[0], cell[1], cell[2]] : null);
    model.set("stage", i);
    model.save_changes();
  }
  back.addEventListener("click", () => go(model.get("stage") - 1));
  next.addEventListener("click", () => go(model.get("stage") + 1));
  list.addEventListener("keydown", (event) => {
    const i = model.get("stage"), count = stages.length;
    const target = { ArrowRight: (i + 1) % count, ArrowLeft: (i + count - 1) % count, Home: 0, End: count - 1 }[event.key];
    if (target === undefined) return;
    go(target);
    tabs[target].focus();
    keepKey(event);
  });
  for (const node of [list, back, next]) keepKeys(node, presses);

  function showStage() {
    const current = model.get("stage");
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === current);
      tab.tabIndex = i === current ? 0 : -1;
    });
    panels.forEach((panel, i) => panel.node.classList.toggle("course-stepper-current", i === current));
    back.setAttribute("aria-disabled", current === 0);
    next.setAttribute("aria-disabled", current === stages.length - 1);
    showCell();
  }
  function showCell() {
    const cell = model.get("cell") ?? null;
    if (cell) change.aim(cell);
    const [lines, lit] = cell ? matrices[cell[0]].why(cell[1], cell[2]) : [[HINT], []];
    const { grids } = panels[model.get("stage")], here = cell && grids.some((grid) => grid.name === cell[0]);
    for (const grid of grids) {
      const parts = here ? lit.filter(([name]) => name === grid.name) : [];
      const chosen = here && grid.name === cell[0];
      grid.cells.forEach((row, r) => row.forEach((node, c) => {
        node.setAttribute("aria-selected", Boolean(chosen && r === cell[1] && c === cell[2]));
        node.classList.toggle("course-stepper-row", parts.some(([, kind, i]) => kind === "row" && i === r));
        node.classList.toggle("course-stepper-column", parts.some(([, kind, i]) => kind === "column" && i === c));
        node.classList.toggle("course-stepper-from", parts.some(([, kind, i, j]) => kind === "cell" && i === r && j === c));
      }));
    }
    why.classList.toggle("course-stepper-hint", !cell);
    why.replaceChildren(...lines.map((line) => makeSet("div", "course-stepper-sentence", {}, line)));
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
    showCell();
    const silence = Boolean(labels.function && model.get("_theirs") && !fresh);
    clearTimeout(waiting);
    silent.hidden = true;
    if (silence) waiting = setTimeout(() => { silent.hidden = false; }, model.alone ? 0 : WAIT);
  }

  const stopListening = listen(model, { _numbers: follow, _theirs: follow, stage: showStage, cell: showCell, problem: showProblem });
  showProblem();
  follow();
  showStage();
  return () => {
    clearTimeout(waiting);
    stopListening();
  };
}

export default { render };
