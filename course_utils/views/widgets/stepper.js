// Shows the stages that stepper.py computed; every number and sentence comes from there.

const HINT = "Choose a cell, by click or by arrow keys and Enter, to see the arithmetic that made it.";

function render({ model, el }) {
  const stages = model.get("_stages"), matrices = model.get("_matrices"), uid = newId("course-stepper"), ramp = makeRamp(model);
  const root = makeRoot(model, "course-stepper", { role: "group", "aria-label": "attention, stage by stage" });

  const problem = make("div", "course-stepper-problem", { role: "alert" });
  const bar = make("div", "course-stepper-bar");
  const back = make("button", "course-stepper-move", { type: "button", "aria-label": "previous stage" }, "← back");
  const next = make("button", "course-stepper-move", { type: "button", "aria-label": "next stage" }, "next →");
  const list = make("div", "course-stepper-tabs", { role: "tablist", "aria-label": "stages" });
  const main = make("div", "course-stepper-main");
  const why = make("div", "course-stepper-why", { role: "status" });
  bar.append(back, list, next);
  root.append(problem, bar, why, main);
  el.append(root);
  // Room for the longest explanation, so that choosing another cell moves nothing.
  const heights = Object.values(matrices).flatMap(({ why }) => why.flat())
    .map((lines) => lines.reduce((sum, line) => sum + Math.ceil(line.length / 100), 0));
  why.style.minHeight = `${Math.min(10, Math.max(...heights)) * 24}px`;

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
    panel.append(make("div", "course-stepper-formula", {}, stage.formula));
    const lines = stage.lines.map((items) => {
      const line = make("div", "course-stepper-line"), grids = [];
      const result = items.findLastIndex((item) => item.sign);
      let part;
      items.forEach((item, place) => {
        // A narrow page breaks the line before the sign of the result, and nowhere else.
        if (place === 0 || place === result) line.append(part = make("div", "course-stepper-part"));
        if (item.sign) part.append(make("div", "course-stepper-sign", {}, item.sign));
        else { const grid = matrixGrid(matrices[item.matrix]); grids.push(grid); part.append(grid.node); }
      });
      panel.append(line);
      return grids;
    });
    main.append(panel);
    return { node: panel, lines };
  });

  function matrixGrid(matrix) {
    const node = make("table", "course-stepper-matrix", { role: "grid", "aria-readonly": "true", "data-matrix": matrix.name });
    if (matrix.role) node.style.setProperty("--role", `var(--course-${matrix.role})`);
    const caption = node.createCaption();
    caption.append(make("b", "", {}, matrix.name), make("span", "", {}, ` ${matrix.shape}`));
    const head = node.createTHead().insertRow(), body = node.createTBody();
    head.append(make("td"), ...matrix.columns.map((label) => make("th", "", { scope: "col", title: label }, label)));
    let cursor = [0, 0];
    const cells = matrix.text.map((texts, r) => {
      const row = body.insertRow();
      row.append(make("th", "", { scope: "row", title: matrix.rows[r] }, matrix.rows[r]));
      return texts.map((text, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: r || c ? -1 : 0, "aria-selected": "false" }, text);
        if (matrix.levels.length) {
          cell.style.backgroundColor = ramp.colour(matrix.levels[r][c]);
          cell.style.color = ramp.ink(matrix.levels[r][c]);
        }
        if (matrix.differs[r][c]) {
          cell.classList.add("course-stepper-differs");
          cell.setAttribute("aria-label", `${text}, differs from the arithmetic`);
        }
        cell.addEventListener("click", () => { aim(r, c); choose([matrix.name, r, c]); });
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
      if (target) aim(...target);
      else if (event.key === "Enter" || event.key === " ") choose([matrix.name, r, c]);
      else if (event.key === "Escape" && model.get("cell")) choose(null);
      else return;
      keepKey(event);
    });
    return { node, name: matrix.name, cells };
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
    const lit = cell ? matrices[cell[0]].lit[cell[1]][cell[2]] : [];
    for (const line of panels[model.get("stage")].lines) {
      const here = cell && line.some((grid) => grid.name === cell[0]);
      for (const grid of line) {
        const parts = here ? lit.filter(([name]) => name === grid.name) : [];
        const chosen = here && grid.name === cell[0];
        grid.cells.forEach((row, r) => row.forEach((node, c) => {
          node.setAttribute("aria-selected", Boolean(chosen && r === cell[1] && c === cell[2]));
          node.classList.toggle("course-stepper-row", parts.some(([, kind, i]) => kind === "row" && i === r));
          node.classList.toggle("course-stepper-column", parts.some(([, kind, i]) => kind === "column" && i === c));
          node.classList.toggle("course-stepper-from", parts.some(([, kind, i, j]) => kind === "cell" && i === r && j === c));
        }));
      }
    }
    const lines = cell ? matrices[cell[0]].why[cell[1]][cell[2]] : [HINT];
    why.classList.toggle("course-stepper-hint", !cell);
    why.replaceChildren(...lines.map((line) => makeSet("div", "course-stepper-sentence", {}, line)));
  }
  function showProblem() {
    problem.textContent = model.get("problem");
    problem.hidden = !model.get("problem");
  }

  model.on("change:stage", showStage);
  model.on("change:cell", showCell);
  model.on("change:problem", showProblem);
  showProblem();
  showStage();
  return () => {
    model.off("change:stage", showStage);
    model.off("change:cell", showCell);
    model.off("change:problem", showProblem);
  };
}

export default { render };
