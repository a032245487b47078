// Shows the weights that gallery.py sent. Hover and focus stay here; the pinned row and the enlarged head go to Python.

import { clamp, keepKey, keepKeys, listen, make, makeRamp, makeRoot, makeScroll, newId, words } from "../shared/dom.js";
import { headName, headTable, passes } from "../shared/heads.js";

const HINT =
  "Point at or tap a token, or a row of a map: every head shows that row. Tap a map to enlarge it. Enter on a token pins its row, Escape unpins.";
const BAR = 24; // height of the bars under a map, in pixels

const LATE = "Waiting for Python, which reads a text while the kernel runs: start it and run the cell.";

// The gallery, drawn anew for another text, and below it the field for a text of one's own where Python can read one.
function render({ model, el }) {
  const place = make("div");
  el.append(place);
  let stop = drawGallery({ model, el: place });
  const again = () => {
    stop();
    place.replaceChildren();
    stop = drawGallery({ model, el: place });
  };
  const stopListening = listen(model, { _tokens: again });
  const stopOwn = !model.get("_own")
    ? () => {}
    : model.alone
      ? otherTexts({ model, el, before: () => stop() })
      : ownText({ model, el });
  return () => {
    stopListening();
    stop();
    stopOwn();
  };
}

// Without a kernel: the texts that Python read before.
function otherTexts({ model, el, before }) {
  const root = makeRoot(model, "course-heads-root course-gallery-own", { role: "group", "aria-label": "other texts" });
  const { texts } = model.get("_alone");
  const form = make("div", "course-row course-gallery-form");
  const buttons = texts.map(({ text, tokens, thousandths, layout }, place) => {
    const button = make("button", "", { type: "button", "aria-pressed": String(!place) }, text || "the text at first");
    button.addEventListener("click", () => {
      before(); // what is drawn has another number of tokens
      for (const [name, value] of Object.entries({
        row: null,
        _layout: layout,
        _thousandths: thousandths,
        _tokens: [...tokens],
      }))
        model.set(name, value);
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    });
    return button;
  });
  if (buttons.length > 1) form.append(make("span", "", {}, "texts read before"), ...buttons);
  root.append(form, make("div", "course-faint", {}, "A text of your own needs Python: run this lesson in JupyterLab."));
  el.append(root);
  return () => {};
}

function ownText({ model, el }) {
  const { readable, most } = model.get("_own");
  const uid = newId("course-gallery-own");
  const root = makeRoot(model, "course-heads-root course-gallery-own", {
    role: "group",
    "aria-label": "a text of your own",
  });
  const form = make("form", "course-row course-gallery-form");
  const label = make("label", "", { for: uid }, "your own text");
  const field = make("input", "", {
    id: uid,
    type: "text",
    maxlength: 4 * most,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": `${uid}-hint`,
  });
  const hint = make(
    "div",
    "course-faint",
    { id: `${uid}-hint` },
    `${readable ? `It may have ${readable}, ` : ""}at most ${most} tokens.`,
  );
  const said = make("div", "course-gallery-said", { role: "status" });
  form.append(label, field, make("button", "", { type: "submit" }, "show"));
  root.append(form, hint, said);
  el.append(root);
  let late = null;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    model.set("_typed", { text: field.value, number: model.get("_typed").number + 1 });
    model.save_changes();
    say();
  });
  field.addEventListener("keydown", (event) => event.stopPropagation());
  function say() {
    const { text, number } = model.get("_said");
    const waits = number !== model.get("_typed").number;
    clearTimeout(late);
    if (waits)
      late = setTimeout(() => {
        said.textContent = LATE;
      }, 400);
    else said.textContent = text;
  }
  say();
  const stopListening = listen(model, { _said: say });
  return () => {
    clearTimeout(late);
    stopListening();
  };
}

function drawGallery({ model, el }) {
  const tokens = model.get("_tokens");
  const { layers, heads, wide, small, cell, listed } = model.get("_layout");
  const n = tokens.length;
  const uid = newId("course-gallery");
  const ramp = makeRamp(model).parts;
  const own = model.get("_palette")["--course-query"];
  const root = makeRoot(model, "course-heads-root course-gallery", {
    role: "group",
    "aria-labelledby": `${uid}-title`,
  });
  for (const [name, value] of Object.entries({
    n,
    heads,
    wide: `${wide}px`,
    small: `${small}px`,
    large: `${n * cell}px`,
    cell: `${cell}px`,
  })) {
    root.style.setProperty(`--${name}`, value);
  }
  const title = make("div", "course-title course-heads-title", { id: `${uid}-title` }, model.get("title"));
  const live = make("div", "course-live", { role: "status" });

  let weights;
  let scores;
  let drawn = null;
  let last = n - 1; // drawn: the rows that the bars and the band show; last: that of the bars
  let hover = null;
  let focused = null;
  let over = null;
  let column = null;
  let cursor = [0, 0];
  const read = () => {
    weights = words(model.get("_thousandths"));
    scores = model.get("_scores");
  };
  const weight = (i, r, c) => weights[(i * n + r) * n + c];
  const number = (i, r, c) => (weight(i, r, c) / 1000).toFixed(3);
  const opened = () => {
    const head = model.get("head");
    return head ? head[0] * heads + head[1] : null;
  };
  const named = (i) => headName(Math.floor(i / heads), i % heads);
  const shownRow = () => hover ?? focused ?? model.get("row") ?? null;
  const query = (r) => `query ${r} “${tokens[r]}”`;
  const told = (i) => scores.map(({ name, values }) => `${name} ${values[i]}`).join(", ");
  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };

  read();
  const strip = tokenStrip();
  const gallery = smallMaps();
  const reading = make("div", "course-gallery-reading course-faint");
  const panel = largeMap();
  const columns = make("div", "course-gallery-columns");
  const main = make("div", "course-gallery-main");
  const scroll = makeScroll("course-heads-scroll");
  scroll.append(gallery.node);
  main.append(scroll, reading);
  columns.append(main, panel.node);
  root.append(title, strip.node, columns, live);
  root.addEventListener("keydown", closeOnEscape);
  el.append(root);

  // ---- the tokens: one stop of the Tab key, arrow keys move in it
  function tokenStrip() {
    const node = make("div", "course-gallery-strip", { role: "toolbar", "aria-label": "tokens as queries" });
    const chips = tokens.map((token, r) => {
      const chip = make(
        "button",
        "",
        { type: "button", "aria-pressed": "false", "aria-label": `query ${r}: ${token}`, tabindex: r ? -1 : 0 },
        token,
      );
      chip.addEventListener("focus", () => {
        stop(r);
        focused = r;
        show();
      });
      chip.addEventListener("blur", () => {
        focused = null;
        show();
      });
      chip.addEventListener("click", () => pin(r));
      chip.addEventListener("pointerenter", () => point(r, null, null));
      node.append(chip);
      return chip;
    });
    const stop = (r) =>
      chips.forEach((chip, i) => {
        chip.tabIndex = i === r ? 0 : -1;
      });
    node.addEventListener("pointerleave", () => point(null, null, null));
    keepKeys(node, (event) => !passes(event));
    node.addEventListener("keydown", (event) => {
      const r = chips.indexOf(event.target);
      const target = { ArrowRight: r + 1, ArrowDown: r + 1, ArrowLeft: r - 1, ArrowUp: r - 1, Home: 0, End: n - 1 }[
        event.key
      ];
      if (r < 0 || target === undefined || passes(event)) return;
      event.preventDefault();
      hover = over = column = null;
      chips[clamp(target, n)].focus();
    });
    return {
      node,
      show: (r, pinned) =>
        chips.forEach((chip, i) => {
          chip.classList.toggle("course-gallery-shown", i === r);
          if ((chip.getAttribute("aria-pressed") === "true") !== (i === pinned))
            chip.setAttribute("aria-pressed", i === pinned);
        }),
    };
  }

  // ---- every head: its map, the shown row as bars, its scores
  function smallMaps() {
    const parts = [];
    const { node, buttons } = headTable({
      layers,
      heads,
      name: "heads: click one to enlarge it",
      labels: () => [
        make("div", "course-gallery-bars", {}, "shown row"),
        ...scores.map(({ name }) => make("div", "", {}, name)),
      ],
      makeButton: (l, h) => {
        const button = make("button", "course-gallery-head", {
          type: "button",
          "aria-pressed": "false",
          "data-place": l * heads + h,
        });
        const map = mapOf();
        const bars = make("canvas", "course-gallery-bars", { width: n, height: BAR, "aria-hidden": "true" });
        const lines = scores.map(() => make("div", "course-gallery-score"));
        button.append(map.node, bars, ...lines);
        parts.push({ map, pen: bars.getContext("2d"), lines });
        return button;
      },
      press: (l, h) => {
        const head = model.get("head");
        const same = head && head[0] === l && head[1] === h;
        set("head", same ? null : [l, h]);
        live.textContent = same ? "no head is enlarged" : `${headName(l, h)} is enlarged`;
      },
    });
    // One band for all maps of a layer: a band for each of them takes the browser twice as long to draw.
    const bands = Array.from({ length: layers }, (_, l) => {
      const across = make("div", "course-gallery-bands", { "aria-hidden": "true" });
      const one = make("div", "course-gallery-band");
      across.append(one);
      buttons[l * heads].after(across);
      return one;
    });
    node.addEventListener("pointermove", (event) => {
      const map = event.target.closest(".course-gallery-map");
      const button = event.target.closest(".course-gallery-head");
      if (!map) point(null, null, button ? +button.dataset.place : null);
      else point(placeIn(map, event)[0], null, +button.dataset.place);
    });
    node.addEventListener("pointerleave", () => point(null, null, null));
    return {
      node,
      paint: () => parts.forEach(({ map }, i) => map.paint(i)),
      paintScores: () =>
        parts.forEach(({ lines }, i) => {
          lines.forEach((line, s) => {
            line.textContent = scores[s].values[i];
            line.classList.toggle("course-gallery-most", scores[s].most === i);
          });
          buttons[i].setAttribute("aria-label", scores.length ? `${named(i)}: ${told(i)}` : named(i));
        }),
      mark: (r) => bands.forEach((band) => markRow(band, r)),
      bars: (r) =>
        parts.forEach(({ pen }, i) => {
          pen.clearRect(0, 0, n, BAR);
          pen.fillStyle = own;
          for (let c = 0; c < n; c++) {
            const height = (weight(i, r, c) * BAR) / 1000;
            if (height >= 0.25) pen.fillRect(c, BAR - height, 1, height);
          }
        }),
      open: (place) =>
        buttons.forEach((button, i) => {
          if ((button.getAttribute("aria-pressed") === "true") !== (i === place))
            button.setAttribute("aria-pressed", i === place);
        }),
    };
  }

  // A canvas with a pixel for each weight.
  function mapOf() {
    const node = make("div", "course-gallery-map");
    const canvas = make("canvas", "course-ramp", { width: n, height: n, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    const image = context.createImageData(n, n);
    node.append(canvas);
    return {
      node,
      paint: (i) => {
        for (let at = 0; at < n * n; at++) {
          const level = 3 * Math.round(weights[i * n * n + at] * 0.255);
          image.data[4 * at] = ramp[level];
          image.data[4 * at + 1] = ramp[level + 1];
          image.data[4 * at + 2] = ramp[level + 2];
          image.data[4 * at + 3] = 255;
        }
        context.putImageData(image, 0, 0);
      },
    };
  }
  // The band dims all but the shown row.
  function markRow(band, r) {
    band.hidden = r === null;
    if (r !== null) band.style.transform = `translateY(${100 * r}%)`;
  }
  function placeIn(map, event) {
    const box = map.getBoundingClientRect();
    return [
      clamp(Math.floor(((event.clientY - box.top) * n) / box.height), n),
      clamp(Math.floor(((event.clientX - box.left) * n) / box.width), n),
    ];
  }

  // ---- one head enlarged
  function largeMap() {
    const node = make("div", "course-gallery-panel", { role: "group", "aria-label": "enlarged head" });
    const heading = make("div", "course-gallery-heading");
    const name = make("b");
    const score = make("div", "course-faint course-gallery-line");
    heading.append(name, score);
    const axes = make("div", cell >= 10 ? "course-gallery-axes course-gallery-labelled" : "course-gallery-axes");
    const [across, down] = ["across", "down"].map((side) =>
      make("div", `course-gallery-${side}`, { "aria-hidden": "true" }),
    );
    for (const [side, text] of [
      [across, `keys 0 to ${n - 1} →`],
      [down, `queries 0 to ${n - 1} ↓`],
    ]) {
      side.append(...(cell >= 10 ? tokens : [text]).map((label) => make("span", "", { title: label }, label)));
    }
    const wrap = make("div", "course-gallery-large", {
      role: "grid",
      "aria-label": "weights of the enlarged head",
      "aria-readonly": "true",
      tabindex: 0,
      "aria-rowcount": n,
      "aria-colcount": n,
      "aria-activedescendant": `${uid}-cell`,
    });
    const map = mapOf();
    const band = make("div", "course-gallery-band");
    const box = make("div", "course-gallery-cell");
    const line = make("div", "course-live", { role: "row" });
    const at = make("div", "", { role: "gridcell", id: `${uid}-cell` });
    line.append(at);
    map.node.append(band, box);
    wrap.append(map.node, line);
    const frame = make("div", "course-gallery-frame");
    frame.append(wrap);
    axes.append(make("div"), across, down, frame);
    const list = rowList();
    const body = make("div", "course-gallery-body");
    const scroll = makeScroll("course-gallery-scroll");
    scroll.append(axes);
    body.append(scroll, list.node);
    node.append(heading, body);

    map.node.addEventListener("pointermove", (event) => {
      if (opened() !== null) point(...placeIn(map.node, event), opened());
    });
    map.node.addEventListener("pointerleave", () => point(null, null, null));
    map.node.addEventListener("click", (event) => {
      if (opened() === null) return;
      cursor = placeIn(map.node, event);
      wrap.focus({ preventScroll: true });
      pin(cursor[0]);
    });
    wrap.addEventListener("focus", () => {
      [focused, column] = cursor;
      show();
    });
    wrap.addEventListener("blur", () => {
      focused = column = null;
      show();
    });
    wrap.addEventListener("keydown", (event) => {
      if (passes(event)) return;
      const [r, c] = cursor;
      const target = event.ctrlKey
        ? { Home: [0, 0], End: [n - 1, n - 1] }[event.key]
        : {
            ArrowDown: [r + 1, c],
            ArrowUp: [r - 1, c],
            ArrowRight: [r, c + 1],
            ArrowLeft: [r, c - 1],
            Home: [r, 0],
            End: [r, n - 1],
            PageDown: [r + 8, c],
            PageUp: [r - 8, c],
          }[event.key];
      keepKey(event);
      hover = over = null;
      if (target) [focused, column] = cursor = target.map((place) => clamp(place, n));
      else pin(r);
      show();
      live.textContent = sentence(opened(), ...cursor);
    });
    return {
      node,
      paint: () => {
        const i = opened();
        node.hidden = i === null;
        if (i === null) return;
        name.textContent = named(i);
        score.textContent = score.title = told(i);
        map.paint(i);
      },
      show: (r, pinned) => {
        const i = opened();
        const c = r === null ? null : column;
        const inside = c !== null;
        if (i === null) return;
        markRow(band, r);
        box.hidden = !inside;
        if (inside) box.style.transform = `translate(${c * 100}%, ${r * 100}%)`;
        at.textContent = sentence(i, ...cursor);
        line.setAttribute("aria-rowindex", cursor[0] + 1);
        at.setAttribute("aria-colindex", cursor[1] + 1);
        at.setAttribute("aria-selected", cursor[0] === pinned);
        list.show(i, last, c, pinned);
      },
    };
  }
  const sentence = (i, r, c) => `${query(r)}, key ${c} “${tokens[c]}”: ${number(i, r, c)}`;

  // ---- the row that the bars show, of the enlarged head in numbers
  function rowList() {
    const node = make("div", "course-gallery-numbers");
    const state = make("div", "course-gallery-state course-gallery-line");
    const table = make("table", "", { "aria-label": `the ${listed} largest weights of the row` });
    const lines = Array.from({ length: listed }, () => {
      const row = table.insertRow();
      const name = make("td", "course-gallery-name");
      const track = make("td");
      const bar = make("div", "course-gallery-bar");
      const value = make("td", "course-gallery-number");
      track.append(bar);
      row.append(name, value, track);
      return { name, bar, value };
    });
    const point = make("div", "course-faint course-gallery-line");
    node.append(state, table, point);
    return {
      node,
      show: (i, r, c, pinned) => {
        state.textContent = `${query(r)}${r === pinned ? ", pinned" : ""}`;
        state.classList.toggle("course-gallery-pinned", r === pinned);
        node.dataset.row = r;
        const order = tokens.map((_, key) => key).sort((a, b) => weight(i, r, b) - weight(i, r, a) || a - b);
        lines.forEach(({ name, bar, value }, place) => {
          const key = order[place];
          name.textContent = `${key} “${tokens[key]}”`;
          bar.style.transform = `scaleX(${weight(i, r, key) / 1000})`;
          value.textContent = number(i, r, key);
        });
        point.textContent = c === null ? "" : sentence(i, r, c);
      },
    };
  }

  function show() {
    const r = shownRow();
    const pinned = model.get("row") ?? null;
    const holds = r !== null && r === pinned;
    if (holds !== root.classList.contains("course-gallery-holds")) root.classList.toggle("course-gallery-holds");
    root.dataset.row = r ?? "";
    last = r ?? last; // before any row is looked at, the bars show the last
    if (`${r} ${last}` !== drawn) {
      gallery.bars(last);
      gallery.mark(r);
    }
    drawn = `${r} ${last}`;
    strip.show(r, pinned);
    panel.show(r, pinned);
    reading.textContent = sayRow(r, over);
  }
  function sayRow(r, i) {
    if (r === null) return HINT;
    if (i === null) return `Shown: the row of ${query(r)} in every head.`;
    let most = 0;
    for (let c = 1; c < n; c++) if (weight(i, r, c) > weight(i, r, most)) most = c;
    return `${named(i)}: ${query(r)} attends most to key ${most} “${tokens[most]}”, ${number(i, r, most)}`;
  }
  function point(r, c, i) {
    if (r === hover && i === over && (c === column || r === null)) return;
    [hover, over] = [r, i];
    column = c ?? (r === null && root.querySelector(".course-gallery-large:focus") ? cursor[1] : null);
    show();
  }
  function pin(r) {
    set("row", r === model.get("row") ? null : r);
  }
  function closeOnEscape(event) {
    if (event.key !== "Escape" || (model.get("row") ?? model.get("head") ?? null) === null) return;
    set((model.get("row") ?? null) === null ? "head" : "row", null);
    keepKey(event);
  }

  const paintHead = () => {
    gallery.open(opened());
    panel.paint();
    show();
  };
  const paintAll = () => {
    read();
    drawn = undefined;
    gallery.paint();
    paintHead();
  };
  const paintScores = () => {
    read();
    gallery.paintScores();
    paintHead();
  };
  gallery.paintScores();
  paintAll();
  return listen(model, {
    row: show,
    head: paintHead,
    _thousandths: paintAll,
    _scores: paintScores,
    title: () => {
      title.textContent = model.get("title");
    },
  });
}

export default { render };
