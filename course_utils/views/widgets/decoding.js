// Shows the forward passes that decoding.py counted; all of them are here, so stepping needs no kernel.

const STATES = { n: "now", m: "masked", r: "read", p: "past" };

function render({ model, el }) {
  const tokens = model.get("_tokens"), frames = model.get("_frames"), { counters, states } = model.get("_layout");
  const n = tokens.length, given = n - frames.length, last = frames.length - 1;
  const root = makeRoot(model, "course-decoding", { role: "group", "aria-label": model.get("title") });
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  const player = makePlayer(model, "passes", "pass", 1);
  const cached = make("input", "", { type: "checkbox" }), label = make("label", "course-decoding-cached");
  label.append(cached, make("span", "", {}, "keep keys and values (cache)"));
  cached.addEventListener("change", () => set("cached", cached.checked));
  const told = makeTold("course-decoding-told");
  told.rooms(frames.flatMap((frame) => Object.values(frame.told)));
  const wide = make("div", "course-decoding-wide", { tabindex: 0, role: "img" });
  const grid = make("table", "course-decoding-grid", { "aria-hidden": "true" });
  const head = grid.createTHead().insertRow();
  head.append(make("td"), ...["Q", "K", "V"].map((text) => make("th", "", {}, text)), make("td", "course-decoding-gap"));
  tokens.forEach((token) => { const cell = make("th", "course-decoding-key"); cell.append(make("span", "", {}, token)); head.append(cell); });
  const body = grid.createTBody();
  const rows = tokens.map((token) => {
    const row = body.insertRow(), name = make("th", "", {}, token);
    row.append(name);
    const cells = Array.from({ length: n + 3 }, (_, j) => {
      if (j === 3) row.append(make("td", "course-decoding-gap"));
      return row.appendChild(make("td", "course-decoding-cell"));
    });
    return { row, name, cells };
  });
  wide.append(grid);
  const legend = make("div", "course-decoding-legend");
  for (const state of Object.values(STATES)) {
    const entry = make("span");
    entry.append(make("span", `course-decoding-cell course-decoding-${state}`), make("span", "", {}, states[state]));
    legend.append(entry);
  }

  const table = make("table", "course-decoding-counters", { "aria-label": "what the passes cost" });
  const top = table.createTHead().insertRow(), second = table.tHead.insertRow();
  top.append(make("td"), make("th", "", { colspan: 2, scope: "colgroup" }, "this pass"),
    make("th", "", { colspan: 2, scope: "colgroup" }, "passes so far"));
  second.append(make("td"), ...["without", "with cache", "without", "with cache"].map((text) => make("th", "", { scope: "col" }, text)));
  const counts = counters.map((name) => {
    const row = (table.tBodies[0] || table.createTBody()).insertRow();
    row.append(make("th", "", { scope: "row" }, name));
    return Array.from({ length: 4 }, () => row.appendChild(make("td")));
  });
  root.append(player.node, label, told.node, wide, legend, table);
  player.keys(root);
  el.append(root);

  function show() {
    const step = model.get("step"), mode = model.get("cached") ? "with" : "without", frame = frames[step];
    player.show(step, last);
    cached.checked = mode === "with";
    told.show(frame.told[mode]);
    wide.setAttribute("aria-label", frame.told[mode]);
    rows.forEach(({ row, name, cells }, i) => {
      const kinds = frame.cells[mode][i];
      row.classList.toggle("course-decoding-absent", i >= given + step);
      name.classList.toggle("course-decoding-written", i >= given);
      cells.forEach((cell, j) => {
        const state = STATES[kinds[j]];
        cell.className = `course-decoding-cell${state ? ` course-decoding-${state}` : ""}`;
      });
    });
    head.querySelectorAll(".course-decoding-key").forEach((cell, i) => cell.classList.toggle("course-decoding-absent", i >= given + step));
    frame.table.forEach((texts, r) => texts.forEach((text, c) => {
      counts[r][c].textContent = text;
      counts[r][c].classList.toggle("course-decoding-current", (c % 2 === 1) === (mode === "with"));
    }));
  }
  model.on("change:step", show);
  model.on("change:cached", show);
  show();
  return () => {
    player.stop();
    model.off("change:step", show);
    model.off("change:cached", show);
  };
}

export default { render };
