// Shows what heatmap.py computed. Hover and focus stay here; only a pinned row goes to Python.

import { bytes, clamp, keepKey, listen, make, makeRamp, makeRoot, makeScroll, newId, words } from "../shared/dom.js";

const HINT = "Point at or tap a row to read its weights; a click or Enter pins it, and arrow keys move.";

function render({ model, el }) {
  const queries = model.get("_queries");
  const keys = model.get("_keys");
  const layout = model.get("_layout");
  const n = queries.length;
  const m = keys.length;
  const uid = newId("course-heatmap");
  const ramp = makeRamp(model);

  const root = makeRoot(model, "course-heatmap", { role: "group", "aria-labelledby": `${uid}-title` });
  const title = make("div", "course-title course-heatmap-title", { id: `${uid}-title` }, model.get("title"));
  const columns = make("div", "course-heatmap-columns");
  const main = make("div", "course-heatmap-main");
  const live = make("div", "course-live", { role: "status" });
  columns.append(main);
  const legend = blockedLegend();
  root.append(title, columns, legend.node, make("div", "course-faint", {}, HINT), live);
  root.style.setProperty("--cell", `${Math.max(44, Math.min(72, Math.floor(300 / m)))}px`);
  root.style.setProperty("--tall", `${Math.max(32, Math.min(56, Math.floor(240 / n)))}px`);
  el.append(root);

  let frame;
  let last = n - 1;
  let hover = null;
  let column = null;
  let focused = false;
  let cursor = [0, 0];
  const read = () => {
    const { levels, thousandths, largest, short, captions, marks } = model.get("_frame");
    frame = { levels: bytes(levels), thousandths: words(thousandths), largest: words(largest), short, captions, marks };
  };
  const mark = (r, c) => frame.marks[r * m + c]; // b blocked, l blocked but not 0; nothing without a mask
  const number = (r, c) => (frame.thousandths[r * m + c] / 1000).toFixed(3);
  const said = (r, c) => ({ b: "blocked", l: `${number(r, c)}, though blocked` })[mark(r, c)] ?? number(r, c);
  const sentence = (r, c) => `query ${queries[r]}, key ${keys[c]}: ${said(r, c)}`;

  read();
  const grid = layout.canvas ? canvasGrid() : tableGrid();
  const panel = sidePanel();
  main.append(grid.node);
  columns.append(panel.node);
  grid.paint();
  legend.show();
  show();

  // ---- up to 400 cells: a table that is a real ARIA grid
  function tableGrid() {
    const scroll = makeScroll("course-heatmap-scroll");
    const table = make("table", "course-heatmap-table", {
      role: "grid",
      "aria-labelledby": `${uid}-title`,
      "aria-readonly": "true",
    });
    scroll.append(table);
    const head = table.createTHead().insertRow();
    const cells = [];
    const rows = [];
    head.append(make("th", "course-heatmap-corner", {}, "query ↓ key →"));
    const heads = keys.map((key) => make("th", "", { scope: "col", title: key }, key));
    head.append(...heads);
    const body = table.createTBody();
    queries.forEach((query, r) => {
      const row = body.insertRow();
      row.dataset.row = r;
      rows.push(row);
      row.append(make("th", "", { scope: "row", title: query }, query));
      keys.forEach((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "data-row": r, "data-column": c });
        cells.push(cell);
        row.append(cell);
      });
    });
    cells[0].tabIndex = 0;
    const place = (event) => event.target.closest("tr[data-row]");
    table.addEventListener("pointermove", (event) => {
      const row = place(event);
      const cell = event.target.closest("td[data-column]");
      point(row ? +row.dataset.row : null, cell ? +cell.dataset.column : null);
    });
    table.addEventListener("pointerleave", () => point(null, null));
    table.addEventListener("click", (event) => {
      const row = place(event);
      const cell = event.target.closest("td[data-column]");
      if (!row) return;
      moveTo(+row.dataset.row, cell ? +cell.dataset.column : 0);
      pin(+row.dataset.row);
    });
    table.addEventListener("focusin", (event) => {
      if (event.target.dataset.column === undefined) return;
      cells[cursor[0] * m + cursor[1]].tabIndex = -1;
      cursor = [+event.target.dataset.row, +event.target.dataset.column];
      event.target.tabIndex = 0;
      focused = true;
      show();
    });
    table.addEventListener("focusout", () => {
      focused = false;
      show();
    });
    table.addEventListener("keydown", press);
    return {
      node: scroll,
      focus: (r, c) => cells[r * m + c].focus({ preventScroll: false }),
      paint: () =>
        cells.forEach((cell, i) => {
          const blocked = frame.marks[i] === "b";
          cell.dataset.mark = frame.marks[i] ?? "";
          cell.style.backgroundColor = blocked ? "" : ramp.colour(frame.levels[i]);
          cell.style.color = blocked ? "" : ramp.ink(frame.levels[i]);
          cell.textContent = frame.short[i];
          if ("bl".includes(frame.marks[i] ?? "-")) cell.setAttribute("aria-label", said(Math.floor(i / m), i % m));
          else cell.removeAttribute("aria-label");
        }),
      mark: (shown, pinned, at) => {
        rows.forEach((row, r) => {
          row.classList.toggle("course-heatmap-shown", r === shown);
          row.setAttribute("aria-selected", r === pinned);
        });
        heads.forEach((head, c) => head.classList.toggle("course-heatmap-shown", c === at));
      },
    };
  }

  // ---- above 400 cells: one canvas, drawn when the weights change; highlights are boxes moved above it
  function canvasGrid() {
    const side = Math.max(3, Math.min(18, Math.floor(512 / Math.max(n, m))));
    const labelled = side >= 11;
    const frameBox = make("div", labelled ? "course-heatmap-axes course-heatmap-labelled" : "course-heatmap-axes");
    const wrap = make("div", "course-heatmap-canvas", {
      role: "grid",
      tabindex: 0,
      "aria-labelledby": `${uid}-title`,
      "aria-readonly": "true",
      "aria-rowcount": n,
      "aria-colcount": m,
      "aria-activedescendant": `${uid}-cell`,
    });
    const canvas = make("canvas", "course-ramp", { width: m, height: n, "aria-hidden": "true" });
    canvas.style.width = wrap.style.width = `${m * side}px`;
    canvas.style.height = wrap.style.height = `${n * side}px`;
    const context = canvas.getContext("2d");
    const image = context.createImageData(m, n);
    const leak = [1, 3, 5].map((at) => parseInt(model.get("_palette")["--course-key"].slice(at, at + 2), 16));
    const pinBox = make("div", "course-heatmap-box course-heatmap-pin");
    const showBox = make("div", "course-heatmap-box course-heatmap-show");
    const cellBox = make("div", "course-heatmap-box course-heatmap-cell");
    for (const box of [pinBox, showBox]) {
      box.style.width = `${m * side}px`;
      box.style.height = `${side}px`;
    }
    cellBox.style.width = cellBox.style.height = `${side}px`;
    // Assistive technology gets the current row of the grid, as in a grid that is scrolled.
    const row = make("div", "course-live", { role: "row" });
    const cell = make("div", "", { role: "gridcell", id: `${uid}-cell` });
    row.append(cell);
    wrap.append(canvas, pinBox, showBox, cellBox, row);
    const across = make("div", "course-heatmap-across", { "aria-hidden": "true" });
    const down = make("div", "course-heatmap-down", { "aria-hidden": "true" });
    if (labelled) {
      for (const key of keys) across.append(make("span", "", { style: `width:${side}px` }, key));
      for (const query of queries)
        down.append(make("span", "", { style: `height:${side}px;line-height:${side}px` }, query));
    } else {
      across.append(make("span", "", {}, `keys 0 to ${m - 1} →`));
      down.append(make("span", "", {}, `queries 0 to ${n - 1} ↓`));
    }
    frameBox.append(make("div"), across, down, wrap);

    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [
        clamp(Math.floor((event.clientY - box.top) / side), n),
        clamp(Math.floor((event.clientX - box.left) / side), m),
      ];
    };
    wrap.addEventListener("pointermove", (event) => point(...place(event)));
    wrap.addEventListener("pointerleave", () => point(null, null));
    wrap.addEventListener("click", (event) => {
      moveTo(...place(event));
      pin(cursor[0]);
    });
    wrap.addEventListener("focus", () => {
      focused = true;
      show();
    });
    wrap.addEventListener("blur", () => {
      focused = false;
      show();
    });
    wrap.addEventListener("keydown", press);
    return {
      node: frameBox,
      focus: (r, c) => {
        cursor = [r, c];
        wrap.focus({ preventScroll: true });
        live.textContent = sentence(r, c);
        show();
      },
      paint: () => {
        for (let i = 0; i < n * m; i++) {
          const at = 3 * frame.levels[i];
          image.data[4 * i] = ramp.parts[at];
          image.data[4 * i + 1] = ramp.parts[at + 1];
          image.data[4 * i + 2] = ramp.parts[at + 2];
          image.data[4 * i + 3] = frame.marks[i] === "b" ? 0 : 255; // the hatching lies behind
          if (frame.marks[i] === "l") image.data.set(leak, 4 * i);
        }
        context.putImageData(image, 0, 0);
      },
      mark: (shown, pinned) => {
        showBox.style.transform = `translateY(${shown * side}px)`;
        pinBox.hidden = pinned === null;
        pinBox.style.transform = `translateY(${pinned * side}px)`;
        cellBox.hidden = !focused;
        cellBox.style.transform = `translate(${cursor[1] * side}px, ${cursor[0] * side}px)`;
        row.setAttribute("aria-rowindex", cursor[0] + 1);
        row.setAttribute("aria-selected", cursor[0] === pinned);
        cell.setAttribute("aria-colindex", cursor[1] + 1);
        cell.textContent = sentence(...cursor);
      },
    };
  }

  // ---- one row's distribution; every line has its place, so that it does not move from row to row
  function sidePanel() {
    const node = make("div", "course-heatmap-side");
    const state = make("div", "course-heatmap-state");
    const caption = [make("div", "course-heatmap-caption"), make("div", "course-heatmap-caption")];
    const strip = layout.listed
      ? null
      : make("canvas", "course-heatmap-strip", { width: m, height: 48, "aria-hidden": "true" });
    const table = make("table", "course-heatmap-bars", { "aria-label": "weights of the row" });
    const bars = Array.from({ length: layout.bars }, () => {
      const row = table.insertRow();
      const name = make(layout.listed ? "th" : "td", "course-heatmap-name", layout.listed ? { scope: "row" } : {});
      const track = make("td", "course-heatmap-track");
      const bar = make("div", "course-heatmap-bar");
      const value = make("td", "course-heatmap-number");
      track.append(bar);
      row.append(name, value, track);
      return { name, bar, value, row };
    });
    if (layout.listed)
      bars.forEach((bar, c) => {
        bar.name.textContent = bar.name.title = keys[c];
      });
    const reading = make("div", "course-heatmap-reading");
    node.append(state, ...caption);
    const scale = make("div", "course-heatmap-scale");
    if (strip) node.append(scale, strip);
    node.append(table, reading);
    const pen = strip?.getContext("2d");
    return {
      node,
      paint: (r, pinned, at) => {
        state.textContent = `row ${r}${r === pinned ? ", pinned" : ""}`;
        state.classList.toggle("course-heatmap-pinned", r === pinned);
        caption[0].textContent = frame.captions[r][0];
        caption[1].textContent = frame.captions[r][1] ?? "";
        reading.textContent = at === null ? "" : sentence(r, at);
        node.dataset.row = r;
        const top = frame.largest.length / n;
        if (pen) {
          const most = Math.max(1, frame.levels[r * m + frame.largest[r * top]]);
          scale.textContent = `all ${m} keys; the tallest is ${number(r, frame.largest[r * top])}`;
          pen.clearRect(0, 0, m, 48);
          const { "--course-query": own, "--course-key": leaking } = model.get("_palette");
          for (let c = 0; c < m; c++) {
            pen.fillStyle = mark(r, c) === "l" ? leaking : own;
            const height = (frame.levels[r * m + c] * 48) / most;
            pen.fillRect(c, 48 - height, 1, height);
          }
        }
        bars.forEach(({ name, bar, value, row }, i) => {
          const c = layout.listed ? i : frame.largest[r * top + i];
          const marked = mark(r, c) ?? "";
          if (!layout.listed) name.textContent = keys[c];
          bar.style.transform = `scaleX(${frame.levels[r * m + c] / 255})`;
          bar.dataset.mark = marked;
          value.textContent = marked === "b" ? "–" : number(r, c);
          row.classList.toggle("course-heatmap-largest", c === frame.largest[r * top]);
        });
      },
    };
  }

  function blockedLegend() {
    const node = make("div", "course-legend course-heatmap-legend");
    const items = {};
    for (const [name, text] of [
      ["b", "blocked: may not attend"],
      ["l", "blocked, but has a weight: a leak"],
    ]) {
      items[name] = make("span", "", { "data-mark": name });
      items[name].append(make("i", "", { "aria-hidden": "true" }), text);
      node.append(items[name]);
    }
    return {
      node,
      show: () => {
        node.hidden = !frame.marks;
        items.l.hidden = !frame.marks.includes("l");
      },
    };
  }

  function show() {
    const pinned = model.get("row") ?? null;
    const shown = hover ?? (focused ? cursor[0] : (pinned ?? last)); // at first the last row, then the one looked at last
    last = shown;
    const at = hover !== null ? column : focused ? cursor[1] : null;
    grid.mark(shown, pinned, at);
    panel.paint(shown, pinned, at);
  }
  function point(r, c) {
    if (r === hover && c === column) return;
    [hover, column] = [r, c];
    show();
  }
  function pin(r) {
    model.set("row", r === model.get("row") ? null : r);
    model.save_changes();
  }
  function moveTo(r, c) {
    grid.focus(clamp(r, n), clamp(c, m));
  }
  function press(event) {
    if (event.altKey || event.metaKey || event.shiftKey) return;
    const [r, c] = cursor;
    const page = 8;
    const target = event.ctrlKey
      ? { Home: [0, 0], End: [n - 1, m - 1] }[event.key]
      : {
          ArrowDown: [r + 1, c],
          ArrowUp: [r - 1, c],
          ArrowRight: [r, c + 1],
          ArrowLeft: [r, c - 1],
          Home: [r, 0],
          End: [r, m - 1],
          PageDown: [r + page, c],
          PageUp: [r - page, c],
        }[event.key];
    if (target) {
      hover = column = null;
      moveTo(...target);
    } else if (!event.ctrlKey && (event.key === "Enter" || event.key === " ")) pin(r);
    else if (event.key === "Escape" && model.get("row") !== null) pin(model.get("row"));
    else return;
    keepKey(event);
  }

  const redraw = () => {
    read();
    grid.paint();
    legend.show();
    show();
  };
  const retitle = () => {
    title.textContent = model.get("title");
  };
  return listen(model, { _frame: redraw, row: show, title: retitle });
}

export default { render };
