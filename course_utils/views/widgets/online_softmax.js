// Shows the frames that online_softmax.py computed, one a step; every number and sentence comes from there.

const HINT = "Choose a number in the table, by click or by arrow keys and Enter, to see its arithmetic.";

function render({ model, el }) {
  const keys = model.get("_keys"), columns = model.get("_columns"), frames = model.get("_frames"), ends = model.get("_ends");
  const last = frames.length - 1, uid = newId("course-online");
  const root = makeRoot(model, "course-online", { role: "group", "aria-labelledby": `${uid}-title` });
  const title = make("div", "course-online-title", { id: `${uid}-title` }, model.get("title"));
  const player = makePlayer(model, "steps", "step");
  const told = makeTold("course-online-told");
  const why = makeTold("course-online-why", (node, lines) => node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))));
  const chart = makeChart(), table = makeTable(), end = makeEnd();
  root.append(title, player.node, told.node, chart.node, table.node, why.node, end.node);
  player.keys(root);
  el.append(root);
  let chosen = null; // [row, column] of the number whose arithmetic is shown
  told.rooms(frames.map((frame) => frame.told));
  why.rooms([[HINT, HINT], ...frames.flatMap((frame) => frame.why.map(explained))]);

  // One bar a key: its power e^(score − m), with the m of this step.
  function makeChart() {
    const node = make("div"), chart = make("div", "course-online-chart", { role: "img" });
    node.append(makeSet("div", "course-online-caption", {}, "e^(score − m) of each key read, with the m of this step"), chart);
    const bars = keys.map((key, i) => {
      const part = make("div", "course-online-key"), plot = make("div", "course-online-plot");
      const bar = make("div", "course-online-bar"), name = make("div", "course-online-name", { title: key.label }, key.label);
      if (keys.length > 12) name.textContent = i % (keys.length > 20 ? 4 : 2) ? "" : i;
      plot.append(bar);
      part.append(plot, name);
      chart.append(part);
      return { part, bar };
    });
    return { node, show: (frame) => {
      bars.forEach(({ part, bar }, i) => {
        part.dataset.state = i >= frame.stop ? "next" : i >= frame.start && model.get("step") ? "now" : "past";
        bar.style.transform = `scaleY(${frame.bars[i] ?? 0})`;
      });
      const said = frame.bars.map((power) => power.toFixed(2)).join(", ");
      chart.setAttribute("aria-label", `e^(score − m) of the keys read so far: ${said || "none yet"}`);
    } };
  }

  function makeTable() {
    const node = make("div", "course-online-scroll");
    const grid = make("table", "course-online-table", { role: "grid", "aria-readonly": "true", "aria-label": "m, factor, l and o, step by step" });
    const head = grid.createTHead().insertRow(), body = grid.createTBody();
    for (const name of ["keys", "score", ...columns]) head.append(makeSet("th", "", { scope: "col" }, name));
    let cursor = [0, 0];
    const rows = frames.map((frame, r) => {
      const row = body.insertRow(), here = keys.slice(frame.start, frame.stop);
      const name = r === 0 ? "nothing yet" : here.length === 1 ? here[0].label : `${here[0].label} to ${here.at(-1).label}`;
      row.append(make("th", "", { scope: "row", title: name }, name));
      row.append(make("td", "course-online-score", {}, r === 0 ? "" : here.map((key) => key.score).join(", ")));
      const cells = frame.cells.map((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "aria-selected": "false" });
        cell.addEventListener("click", () => { if (r <= model.get("step")) { aim(r, c); choose(r, c); } });
        row.append(cell);
        return cell;
      });
      return { row, cells };
    });
    rows[0].cells[0].tabIndex = 0;
    const aim = (r, c, focus = true) => {
      rows[cursor[0]].cells[cursor[1]].tabIndex = -1;
      cursor = [Math.max(0, Math.min(model.get("step"), r)), Math.max(0, Math.min(columns.length - 1, c))];
      const cell = rows[cursor[0]].cells[cursor[1]];
      cell.tabIndex = 0;
      if (focus) cell.focus();
    };
    grid.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const [r, c] = cursor, target = { ArrowDown: [r + 1, c], ArrowUp: [r - 1, c], ArrowRight: [r, c + 1],
        ArrowLeft: [r, c - 1], Home: [r, 0], End: [r, columns.length - 1] }[event.key];
      if (target) aim(...target);
      else if (event.key === "Enter" || event.key === " ") choose(r, c);
      else if (event.key === "Escape" && chosen) choose();
      else return;
      keepKey(event); // the player takes arrows for steps
    });
    node.append(grid);
    return { node, show: (step) => {
      rows.forEach(({ row, cells }, r) => {
        row.dataset.state = r > step ? "next" : r === step ? "now" : "past";
        cells.forEach((cell, c) => {
          const text = r <= step ? frames[r].cells[c] : "·";
          if (cell.textContent !== text) cell.textContent = text;
          cell.classList.toggle("course-online-shrinks", c === 1 && r > 1 && r <= step && text !== "1.000");
          cell.setAttribute("aria-selected", Boolean(chosen && chosen[0] === r && chosen[1] === c));
        });
      });
      if (cursor[0] > step) aim(step, cursor[1], grid.contains(document.activeElement));
    } };
  }

  // The comparison keeps its room from the start and shows itself when all keys are read.
  function makeEnd() {
    const node = make("div", "course-online-end"), before = make("div", "course-online-waits", {}, "At the last key this is compared with softmax over all scores at once.");
    const after = make("div", "course-online-compared"), scroll = make("div", "course-online-scroll", { tabindex: 0, role: "group", "aria-label": "comparison" });
    const grid = make("table", "course-online-result", { "aria-label": "one pass and softmax compared" }), body = grid.createTBody();
    ends.heads.forEach((name, r) => {
      const row = body.insertRow();
      row.append(makeSet("th", "", { scope: "row" }, name), ...ends.rows[r].map((text) => make("td", "", {}, text)));
    });
    scroll.append(grid);
    after.append(makeSet("div", "", {}, ends.sums), scroll);
    node.append(before, after);
    return { node, show: (done) => {
      before.style.visibility = done ? "hidden" : "visible";
      after.style.visibility = done ? "visible" : "hidden";
    } };
  }

  function explained([name, sums, note]) {
    return [[name, sums].filter(Boolean).join(" = "), note];
  }
  function choose(r, c) {
    const same = chosen && chosen[0] === r && chosen[1] === c;
    chosen = r === undefined || same ? null : [r, c];
    show();
  }

  function show() {
    const step = Math.min(model.get("step"), last), frame = frames[step];
    if (chosen && chosen[0] > step) chosen = null;
    player.show(step, last);
    told.show(frame.told);
    chart.show(frame);
    table.show(step);
    end.show(step === last);
    why.node.classList.toggle("course-online-hint", !chosen);
    why.show(chosen ? explained(frames[chosen[0]].why[chosen[1]]) : [HINT]);
  }

  model.on("change:step", show);
  show();
  return () => { player.stop(); model.off("change:step", show); };
}

export default { render };
