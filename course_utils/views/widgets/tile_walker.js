// Shows the walk that tile_walker.py computed, one frame a step. Other blocks are walked by
// Python, or without a kernel by tile_walk_alone.js.

import { keepKeys, listen, make, makeRoot, makeScroll, makeSet, minus, newId, presses } from "../shared/dom.js";
import { makeLate, makePlayer, makeTold } from "../shared/player.js";
import { answerWalk } from "./tile_walk_alone.js";

const ROLES = ["query", "key", "value", "", "", "output"]; // colours of the parts in fast memory
const HEADS = ["query", "m", "new m", "factor", "l", "new l", "o", "o · factor", "new o"];
const NOTES = {
  load: "Press a query in the table to see its numbers.",
  tile: "The factor is e^(m − new m). It multiplies l and o; then the powers e^(score − new m) are added to l, and those times the values to o.",
  store: "One division a row, at the end of its block. Only the output and m + log l go back to slow memory.",
};
const inBytes = (count) => `${count.toLocaleString("en-US")} bytes`;
const decimals = (value) =>
  Math.abs(value) >= 1000 ? minus(value.toPrecision(4)) : minus(value.toFixed(2).replace(/^-0\.00$/, "0.00"));
const vector = (tag, attributes = {}) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  return node;
};

function render({ model, el }) {
  const { n, m, cell, naive, itemsize, blocks, parts } = model.get("_layout");
  const uid = newId("course-tiles");
  const root = makeRoot(model, "course-tiles", { role: "group", "aria-labelledby": `${uid}-title` });
  let walk = model.get("_walk");
  let frames = walk.frames;
  let last = frames.length - 1;
  let chosen = 0;

  const player = makePlayer(model, "steps", "step");
  const settings = makeSettings();
  const told = makeTold("course-told course-tiles-told");
  const map = makeMap();
  const memory = makeMemory();
  const bars = makeBars();
  const rows = makeRows();
  const detail = makeDetail();
  const middle = make("div", "course-tiles-middle");
  const side = make("div", "course-tiles-side");
  side.append(memory.node, bars.node);
  middle.append(map.node, side);
  const folded = make("details", "course-tiles-numbers");
  const opener = make("summary", "", {}, "numbers of this block");
  keepKeys(opener, presses); // they open it, and play nothing
  folded.append(opener, rows.node, detail.node);
  root.append(
    make("div", "course-title course-tiles-title", { id: `${uid}-title` }, model.get("title")),
    player.node,
    settings.node,
    told.node,
    middle,
    map.legend,
    folded,
  );
  player.keys(root);
  el.append(root);

  function makeSettings() {
    const node = make("div", "course-row course-tiles-settings");
    const menus = {};
    const set = (name, value) => {
      player.stop();
      model.set("step", 0);
      model.set(name, value);
      model.save_changes();
    };
    const label = make("label", "course-tiles-causal");
    const causal = make("input", "", { type: "checkbox" });
    causal.addEventListener("change", () => set("causal", causal.checked));
    label.append(causal, make("span", "", {}, "causal"));
    node.append(label);
    for (const [name, text] of [
      ["block_q", "queries in a block"],
      ["block_k", "keys in a block"],
    ]) {
      const around = make("label", "course-tiles-menu");
      const menu = make("select");
      menu.addEventListener("change", () => set(name, +menu.value));
      around.append(make("span", "", {}, text), menu);
      node.append(around);
      menus[name] = menu;
    }
    const waits = make("span", "course-tiles-waits", { role: "status" });
    node.append(waits);
    return {
      node,
      waits,
      show: () => {
        causal.checked = model.get("causal");
        for (const [name, menu] of Object.entries(menus)) {
          const here = model.get(name);
          const sizes = [...new Set([...blocks[name], here])].sort((a, b) => a - b);
          if ([...menu.options].map((option) => +option.value).join() !== sizes.join()) {
            menu.replaceChildren(...sizes.map((size) => make("option", "", { value: size }, size)));
          }
          menu.value = here;
        }
      },
    };
  }

  // The n × m scores as tiles, with strips for Q, K, V and o beside them.
  function makeMap() {
    const left = 42;
    const top = 42;
    const wide = m * cell;
    const high = n * cell;
    const node = vector("svg", {
      role: "img",
      class: "course-tiles-map",
      width: left + wide + 42,
      height: top + high + 6,
      viewBox: `0 0 ${left + wide + 42} ${top + high + 6}`,
    });
    const hatch = vector("pattern", {
      id: `${uid}-hatch`,
      width: 6,
      height: 6,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    hatch.append(vector("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "course-tiles-hatch" }));
    const defs = vector("defs");
    const layer = vector("g");
    const over = vector("g");
    defs.append(hatch);
    const write = (x, y, text, anchor) => {
      const label = vector("text", { x, y, "text-anchor": anchor, class: "course-tiles-text" });
      label.textContent = text;
      return label;
    };
    const strip = (name, x, y, width, height) => {
      const marked = vector("rect", { x, y, width: 0, height: 0, class: `course-tiles-${name}` });
      node.append(vector("rect", { x, y, width, height, class: "course-tiles-strip" }), marked);
      return (part) => {
        const [from, to] = part ?? [0, 0];
        const along = width > height ? ["x", "width", x] : ["y", "height", y];
        marked.setAttribute(along[0], along[2] + from * cell);
        marked.setAttribute(along[1], (to - from) * cell);
        marked.setAttribute(along[1] === "width" ? "height" : "width", 12);
      };
    };
    node.append(defs);
    const key = strip("key", left, 4, wide, 12);
    const value = strip("value", left, 22, wide, 12);
    const query = strip("query", left - 20, top, 12, high);
    const output = strip("output", left + wide + 8, top, 12, high);
    node.append(
      write(left - 6, 14, "K", "end"),
      write(left - 6, 32, "V", "end"),
      write(left - 25, top + high / 2 + 4, "Q", "end"),
      write(left + wide + 25, top + high / 2 + 4, "o", "start"),
      layer,
      over,
    );
    const place = ([r0, r1, c0, c1]) => ({
      x: left + c0 * cell,
      y: top + r0 * cell,
      width: (c1 - c0) * cell,
      height: (r1 - r0) * cell,
    });
    const now = vector("rect", { class: "course-tiles-now" });
    let tiles = [];
    let states = [];

    const legend = make("div", "course-legend course-tiles-legend");
    for (const [mark, text] of [
      ["todo", "to come"],
      ["now", "now"],
      ["done", "done, its scores forgotten"],
      ["skip", "skipped: never loaded"],
      ["mask", "masked in a tile"],
    ]) {
      const part = make("span");
      part.append(
        make("i", "course-tiles-swatch", { "data-mark": mark, "aria-hidden": "true" }, mark === "mask" ? "×" : ""),
        text,
      );
      legend.append(part);
    }
    legend.append(
      make("span", "course-tiles-hint", {}, "Step with → and ←, or click or tap a tile to go there; Space plays."),
    );
    return {
      node,
      legend,
      rebuild: () => {
        const steps = [];
        frames.forEach((frame, step) => {
          if (frame.tile !== null) steps[frame.tile] = step;
        });
        tiles = walk.tiles.map((tile, i) => {
          const rect = vector("rect", { ...place(tile), class: "course-tiles-tile" });
          rect.addEventListener("click", () => {
            player.go(steps[i]);
            player.focus();
          });
          return rect;
        });
        states = tiles.map(() => "");
        const skipped = walk.skipped.map((part) =>
          vector("rect", { ...place(part), class: "course-tiles-skip", fill: `url(#${uid}-hatch)` }),
        );
        const half = cell / 2;
        const arm = Math.min(4, cell / 4);
        const cross = ([r, first, end]) =>
          Array.from({ length: end - first }, (_, i) => {
            const x = left + (first + i) * cell + half;
            const y = top + r * cell + half;
            return `M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}M${x - arm} ${y + arm}l${2 * arm} ${-2 * arm}`;
          }).join("");
        layer.replaceChildren(...skipped, ...tiles);
        over.replaceChildren(vector("path", { d: walk.masked.map(cross).join(""), class: "course-tiles-mask" }), now);
      },
      show: (frame) => {
        tiles.forEach((rect, i) => {
          const state = i === frame.tile ? "now" : i < frame.done ? "done" : "todo";
          if (states[i] === state) return;
          states[i] = state;
          rect.dataset.state = state;
        });
        const here = frame.tile === null ? [0, 0, 0, 0] : walk.tiles[frame.tile];
        for (const [name, number] of Object.entries(place(here))) now.setAttribute(name, number);
        now.style.visibility = frame.tile === null ? "hidden" : "visible";
        key(frame.keys);
        value(frame.keys);
        query(frame.queries);
        output([0, frame.stored]);
        node.setAttribute(
          "aria-label",
          `${n} queries by ${m} keys: ${frame.done} of ${walk.tiles.length} tiles done` +
            `${walk.skipped.length ? ", those above the diagonal skipped" : ""}`,
        );
      },
    };
  }

  function makeMemory() {
    const node = make("div", "course-tiles-memory");
    const head = make("div", "course-tiles-head");
    const table = make("table", "", { "aria-label": "in fast memory" });
    const body = table.createTBody();
    const cells = parts.map((part, i) => {
      const row = body.insertRow();
      const name = make("th", "", { scope: "row" });
      const size = make("td");
      const swatch = make("i", "course-tiles-swatch", { "aria-hidden": "true" });
      if (ROLES[i]) swatch.style.background = `var(--course-${ROLES[i]})`;
      name.append(swatch, part);
      row.append(name, size);
      return { row, size };
    });
    node.append(head, table);
    return {
      node,
      show: (frame) => {
        head.textContent = `in fast memory: ${inBytes(frame.held_bytes)}`;
        cells.forEach(({ row, size }, i) => {
          if (size.textContent !== frame.held[i]) size.textContent = frame.held[i];
          row.classList.toggle("course-tiles-empty", frame.held[i] === "–");
        });
      },
    };
  }

  function makeBars() {
    const node = make("div", "course-tiles-bars");
    const bar = (name) => {
      const head = make("div");
      const track = make("div", "course-tiles-track", { "aria-hidden": "true" });
      const read = make("div", "course-tiles-read");
      const written = make("div", "course-tiles-written");
      const detail = make("div", "course-faint");
      track.append(read, written);
      node.append(head, track, detail);
      return (moved, most) => {
        head.textContent = `${name}: ${inBytes(moved.read + moved.written)}`;
        detail.textContent = `${moved.read.toLocaleString("en-US")} loaded + ${moved.written.toLocaleString("en-US")} stored`;
        read.style.width = `${(100 * moved.read) / most}%`;
        written.style.width = `${(100 * moved.written) / most}%`;
      };
    };
    const soFar = bar("moved so far");
    const inAll = bar("tiled in all");
    const plain = bar("naive, at least");
    const note = make("div", "course-faint", {}, `${itemsize} bytes a number`);
    node.append(note);
    return {
      node,
      show: (frame) => {
        const total = frames[last];
        const most = Math.max(total.read + total.written, naive.read + naive.written);
        soFar(frame, most);
        inAll(total, most);
        plain(naive, most);
      },
    };
  }

  // One line a query of the block; o as bars above and below a line, since d numbers do not fit.
  function makeRows() {
    const node = makeScroll("course-tiles-rows");
    const table = make("table", "", { "aria-label": "the queries of this block" });
    const head = table.createTHead().insertRow();
    const body = table.createTBody();
    head.append(...HEADS.map((name) => make("th", "", { scope: "col" }, name)));
    node.append(table);
    let lines = [];
    let scale = 1;
    let width = 0;
    let step = 6;
    const bars = (values, present) => {
      if (!present) return "";
      const draw = (value, i) => {
        const height = Math.max(-12, Math.min(12, (12 * value) / scale));
        return Math.abs(height) < 0.05 ? "" : `M${i * step + 0.5} 13h${step - 1}v${-height}h${1 - step}z`;
      };
      return values.map(draw).join("");
    };
    return {
      node,
      rebuild: () => {
        const shown = frames.flatMap((frame) => frame.rows);
        const size = Math.max(...frames.map((frame) => frame.rows.length));
        scale = Math.max(1e-9, ...shown.flatMap((row) => [...row.o, ...row.kept].map(Math.abs)));
        const d = shown[0].o.length;
        step = d > 8 ? 4 : d > 4 ? 7 : 10;
        width = d * step;
        lines = Array.from({ length: size }, (_, i) => {
          const row = make("tr");
          const name = make("th", "", { scope: "row" });
          const button = make("button", "", { type: "button" });
          button.addEventListener("click", () => {
            chosen = i;
            show();
          });
          name.append(button);
          const numbers = HEADS.slice(1, 6).map(() => make("td"));
          const strips = HEADS.slice(6).map(() => {
            const around = make("td", "course-tiles-o");
            const svg = vector("svg", { width, height: 26, viewBox: `0 0 ${width} 26`, "aria-hidden": "true" });
            const path = vector("path");
            svg.append(vector("line", { x1: 0, x2: width, y1: 13, y2: 13 }), path);
            around.append(svg);
            return path;
          });
          row.append(name, ...numbers, ...strips.map((path) => path.closest("td")));
          return { row, button, numbers, strips };
        });
        body.replaceChildren(...lines.map(({ row }) => row));
      },
      show: (frame, before) =>
        lines.forEach(({ row, button, numbers, strips }, i) => {
          const here = frame.rows[i];
          row.classList.toggle("course-tiles-absent", !here);
          button.disabled = !here;
          button.setAttribute("aria-pressed", Boolean(here) && i === chosen);
          row.classList.toggle("course-tiles-chosen", Boolean(here) && i === chosen);
          const name = here ? `query ${here.query}` : "–";
          if (button.textContent !== name) button.textContent = name;
          const texts = here ? [here.m[0], here.m[1], here.factor, here.l[0], here.l[1]] : ["", "", "", "", ""];
          numbers.forEach((node, c) => {
            if (node.textContent !== texts[c]) node.textContent = texts[c];
          });
          numbers[2].classList.toggle(
            "course-tiles-shrinks",
            Boolean(here) && frame.tile !== null && here.factor !== "1.000",
          );
          const old = before?.[i]?.o ?? here?.o;
          const middle = here && frame.tile !== null;
          [old, here?.kept, here?.o].forEach((values, c) =>
            strips[c].setAttribute("d", bars(values, here && (c !== 1 || middle))),
          );
        }),
    };
  }

  // The chosen query in numbers.
  function makeDetail() {
    const node = make("div", "course-tiles-detail");
    const head = make("div", "course-tiles-head");
    const why = makeTold("course-tiles-why", (node, lines) =>
      node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))),
    );
    const scroll = makeScroll("course-tiles-scroll", {
      tabindex: 0,
      role: "group",
      "aria-label": "o of the chosen query",
    });
    const table = make("table", "", { "aria-label": "o in numbers" });
    const body = table.createTBody();
    const note = make("div", "course-faint course-tiles-note"); // all notes lie upon each other, one is seen
    const notes = Object.entries(NOTES).map(([kind, text]) => makeSet("div", "", { "data-kind": kind }, text));
    note.append(...notes);
    scroll.append(table);
    node.append(head, why.node, scroll, note);
    let rows = [];
    return {
      node,
      rebuild: () => {
        const d = Math.max(...frames.map((frame) => frame.rows[0]?.o.length ?? 0));
        rows = [0, 1, 2].map(() => {
          const row = make("tr");
          const name = make("th", "", { scope: "row" });
          const cells = Array.from({ length: d }, () => make("td"));
          row.append(name, ...cells);
          return { name, cells, row };
        });
        why.rooms(frames.flatMap((frame) => frame.rows.map((row) => row.why)));
        body.replaceChildren(...rows.map(({ row }) => row));
      },
      show: (frame, before) => {
        const here = frame.rows[chosen];
        const kind = frame.tile !== null ? "tile" : before ? "store" : "load";
        head.textContent = here ? `query ${here.query}` : "no query is in fast memory yet";
        why.show(here?.why ?? []);
        const names = kind === "store" ? ["o", "÷ l", "o / l"] : ["o", "o · factor", "new o"];
        const values = [before?.[chosen]?.o ?? here?.o, kind === "tile" ? here?.kept : null, here?.o];
        rows.forEach(({ name, cells }, r) => {
          name.textContent = names[r];
          cells.forEach((node, c) => {
            node.textContent = here && values[r] ? decimals(values[r][c]) : "";
          });
        });
        for (const node of notes) node.style.visibility = node.dataset.kind === kind ? "visible" : "hidden";
      },
    };
  }

  function rebuild() {
    walk = model.get("_walk");
    frames = walk.frames;
    last = frames.length - 1;
    for (const part of [map, rows, detail]) part.rebuild();
    told.rooms(frames.map((frame) => frame.told));
    show();
  }

  function show() {
    const step = Math.min(model.get("step"), last);
    const frame = frames[step];
    const same = (part) => String(part) === String(frame.queries);
    const before = step && frame.rows.length && same(frames[step - 1].queries) ? frames[step - 1].rows : null;
    if (chosen >= frame.rows.length) chosen = 0;
    player.show(step, last);
    settings.show();
    told.show(frame.told);
    map.show(frame, step);
    memory.show(frame);
    bars.show(frame);
    rows.show(frame, before);
    detail.show(frame, before);
    late.show(walk.settings);
  }

  const late = makeLate(
    model,
    settings.waits,
    ({ causal, block_q, block_k }) => `${block_q} × ${block_k}${causal ? ", causal" : ""}`,
  );

  const stopListening = listen(model, { step: show, causal: show, block_q: show, block_k: show, _walk: rebuild });
  const stop = model.alone ? answerWalk(model) : () => {};
  rebuild();
  return () => {
    stop();
    player.stop();
    late.stop();
    stopListening();
  };
}

export default { render };
