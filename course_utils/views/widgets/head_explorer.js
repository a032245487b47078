// Shows the sentence that head_explorer.py sent. What is chosen is kept in the model, and all of it is drawn here.

import { clamp, keepKeys, listen, make, makeRamp, makeRoot, makeScroll, newId, presses } from "../shared/dom.js";
import { headName, headTable, passes } from "../shared/heads.js";
import { shortText } from "../shared/number_text.js";
import { answerExplorer, readingOf } from "./head_explorer_alone.js";

const LATE =
  "Waiting for Python, which loads the model at the first sentence. If nothing comes, start the kernel and run the cell.";
const NO_KERNEL =
  "A sentence of your own needs Python and the model: open this lesson in JupyterLab, by make lab, which brings both.";
const LEAST = 5; // the least level that has an arrow

function render({ model, el }) {
  const stopAlone = model.alone ? answerExplorer(model) : () => {};
  const uid = newId("course-explorer");
  const ramp = makeRamp(model);
  const root = makeRoot(model, "course-heads-root course-explorer", {
    role: "group",
    "aria-labelledby": `${uid}-title`,
  });
  const title = make("div", "course-title course-heads-title", { id: `${uid}-title` }, model.get("title"));
  const set = (values) => {
    for (const name in values) model.set(name, values[name]);
    model.save_changes();
  };
  const form = ownSentence();
  const place = make("div");
  root.append(title, form.node, place);
  el.append(root);

  let view = null;
  const draw = () => {
    view?.stop();
    view = drawSentence({ model, place, set, uid, ramp });
    form.show();
  };
  draw();
  const show = () => view.show();
  const stopListening = listen(model, {
    _shown: draw,
    head: show,
    query: show,
    key: show,
    measure: show,
    _said: () => form.say(),
    title: () => {
      title.textContent = model.get("title");
    },
  });
  return () => {
    stopListening();
    view.stop();
    form.stop();
    stopAlone();
  };

  // ---- the field for one's own sentence, and those that were read before
  function ownSentence() {
    const { missing, most, longest } = model.get("_field");
    const offered = model.get("_offered");
    const why = model.alone
      ? NO_KERNEL
      : missing && `A sentence of your own needs the model. ${missing[0].toUpperCase()}${missing.slice(1)}`;
    const node = make("div");
    const line = make("form", "course-explorer-form");
    const label = make("label", "", { for: uid }, "a sentence of your own");
    const field = make("input", "", {
      id: uid,
      type: "text",
      maxlength: longest,
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": `${uid}-hint`,
    });
    const look = make("button", "", { type: "submit" }, "look");
    const said = make("div", "course-explorer-said", { role: "status" });
    const hint = make(
      "div",
      "course-faint",
      { id: `${uid}-hint` },
      why || `2 to ${most} tokens, some more than words. Enter lets the model read it.`,
    );
    field.disabled = look.disabled = Boolean(why);
    line.append(label, field, look);
    const others = make("div", "course-explorer-offered", { role: "group", "aria-label": "recorded sentences" });
    const buttons = offered.map((text) => {
      const button = make("button", "", { type: "button", "aria-pressed": "false" }, text);
      button.addEventListener("click", () => ask(text, true));
      return button;
    });
    others.append(...buttons);
    node.append(
      line,
      hint,
      said,
      make("div", "course-faint course-explorer-or", {}, "or one that was recorded"),
      others,
    );
    let late = null;
    const ask = (text, recorded) => {
      set({ _typed: { text, recorded, number: model.get("_typed").number + 1 } });
      say();
    };
    const say = () => {
      const { text, number } = model.get("_said");
      clearTimeout(late);
      if (number !== model.get("_typed").number)
        late = setTimeout(() => {
          said.textContent = LATE;
        }, 400);
      else said.textContent = text;
    };
    line.addEventListener("submit", (event) => {
      event.preventDefault();
      ask(field.value, false);
    });
    field.addEventListener("keydown", (event) => event.stopPropagation());
    return {
      node,
      say,
      show: () => {
        const { text } = model.get("_shown");
        if (!why) field.value = text;
        buttons.forEach((button, i) => button.setAttribute("aria-pressed", offered[i] === text));
      },
      stop: () => clearTimeout(late),
    };
  }
}

// One sentence: its words with arrows, one head's weights, all heads. `show` draws what is chosen anew.
function drawSentence({ model, place, set, uid, ramp }) {
  const reading = readingOf(model.get("_shown"));
  const { tokens, layers, heads, level } = reading;
  const T = tokens.length;
  const named = (i) => `${i} “${tokens[i]}”`;
  const chosen = () => {
    const [l, h] = model.get("head");
    const query = clamp(model.get("query"), T);
    return {
      l: clamp(l, layers),
      h: clamp(h, heads),
      query,
      key: clamp(model.get("key"), query + 1),
      measure: model.get("measure"),
    };
  };
  const takeHead = (l, h) => set({ head: [clamp(l, layers), clamp(h, heads)] });
  const takePair = (query, key) => (key < model.get("query") ? set({ key, query }) : set({ query, key }));
  const takeQuery = (query) => takePair(query, reading.strongest(model.get("head"), query));

  const source = make("div", "course-faint", {}, `${T} tokens, ${reading.source}. Weights are rounded to 1/255.`);
  const words = wordsWithArrows();
  const told = make("div", "course-explorer-told", { role: "status" });
  const next = nextTokens();
  const weights = weightTable();
  const whole = wholeModel();
  const order = sortedHeads();
  const above = make("div", "course-explorer-above");
  const below = make("div", "course-explorer-below");
  const left = make("div");
  left.append(words.node, told);
  above.append(left, next.node);
  below.append(weights.node, whole.node, order.node);
  place.replaceChildren(source, above, below);

  const show = () => {
    const now = chosen();
    const row = tokens.map((_, key) => level(now.l, now.h, now.query, key));
    words.show(now, row);
    told.textContent = sentence(now, row);
    next.show(now);
    weights.show(now);
    whole.show(now);
    order.show(now);
  };
  show();
  return { show, stop: words.stop };

  function sentence({ l, h, query }, row) {
    const most = tokens
      .map((_, key) => key)
      .filter((key) => row[key] >= 2)
      .sort((a, b) => row[b] - row[a] || a - b)
      .slice(0, 3);
    const keys = most.map((key) => `${named(key)} ${shortText(row[key] / 255)}`).join(", ");
    return `${headName(l, h)}: ${named(query)} looks ${most.length > 1 ? "most " : ""}at ${keys}.`;
  }

  // Buttons or cells of which one is a stop of the Tab key; arrow keys go to others, and what they reach is taken.
  function oneStop(node, items, take) {
    keepKeys(node, (event) => !passes(event));
    node.addEventListener("keydown", (event) => {
      const at = items.indexOf(event.target);
      const last = items.length - 1;
      const to = {
        ArrowRight: at + 1,
        ArrowDown: at + 1,
        ArrowLeft: at - 1,
        ArrowUp: at - 1,
        Home: 0,
        End: last,
        PageDown: at + 10,
        PageUp: at - 10,
      }[event.key];
      if (at < 0 || passes(event) || event.ctrlKey) return;
      if (to === undefined && !presses(event)) return;
      event.preventDefault();
      const target = clamp(to ?? at, items.length);
      items[target].focus();
      take(target);
    });
    items.forEach((item, i) => item.addEventListener("click", () => take(i)));
    return (at) =>
      items.forEach((item, i) => {
        item.tabIndex = i === at ? 0 : -1;
      });
  }

  // ---- the words, in a line where they fit, smaller or not, else in a column, and arrows from the query to its keys
  function wordsWithArrows() {
    const node = make("div", "course-explorer-arcs");
    const line = make("div", "course-explorer-words", {
      role: "radiogroup",
      "aria-label": "query: the token that looks",
    });
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    const parts = tokens.map((token, i) => {
      const word = make("button", "course-explorer-word", {
        type: "button",
        role: "radio",
        "aria-label": `${i} ${token}`,
      });
      const share = make("span", "course-explorer-share");
      word.append(make("span", "", {}, token), share);
      line.append(word);
      return { word, share };
    });
    const stop = oneStop(
      line,
      parts.map(({ word }) => word),
      takeQuery,
    );
    node.append(line, svg);
    let last = null;
    const arrows = () => {
      if (!last) return;
      const { query, row } = last;
      const fits = ["", "course-explorer-small", "course-explorer-upright"].find((kind) => {
        node.className = `course-explorer-arcs ${kind}`;
        return line.offsetWidth <= place.clientWidth;
      });
      const upright = fits === "course-explorer-upright";
      left.style.flexBasis = `${upright ? 300 : Math.max(300, line.offsetWidth)}px`;
      const frame = node.getBoundingClientRect();
      const boxes = parts.map(({ word }) => word.getBoundingClientRect());
      const middle = boxes.map((box) =>
        upright ? box.top - frame.top + box.height / 2 : box.left - frame.left + box.width / 2,
      );
      const base = upright ? Math.max(...boxes.map((box) => box.right)) - frame.left + 4 : boxes[0].top - frame.top - 2;
      const room = upright ? frame.width - base - 8 : base - 8;
      const at = (along, away) => (upright ? `${base + away} ${along}` : `${along} ${base - away}`);
      const longest = Math.max(
        1,
        ...tokens.map((_, key) => (row[key] >= LEAST ? Math.abs(middle[query] - middle[key]) : 0)),
      );
      const drawn = [];
      for (let key = 0; key <= query; key++) {
        if (row[key] < LEAST) continue;
        const share = row[key] / 255;
        const far = Math.abs(middle[query] - middle[key]);
        const out = far ? 0 : 9;
        const tip = 5 + 5 * share;
        const away =
          (far ? Math.min(room, 22 + (room - 22) * Math.min(1, far / Math.max(longest, 2.2 * room))) : 22) / 0.75;
        const from = middle[query] + out;
        const to = middle[key] - out;
        const shape = (tag, attributes) => {
          const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
          for (const name in attributes) made.setAttribute(name, attributes[name]);
          return made;
        };
        const group = shape("g", { opacity: 0.35 + 0.65 * share });
        group.append(
          shape("path", {
            d: `M${at(from, 0)} C${at(from, away)} ${at(to, away)} ${at(to, tip)}`,
            fill: "none",
            stroke: "currentColor",
            "stroke-width": 1 + 8 * share,
          }),
          shape("path", {
            d: `M${at(to, 0)} L${at(to - 3 - 4 * share, tip + 1)} L${at(to + 3 + 4 * share, tip + 1)} Z`,
            fill: "currentColor",
          }),
        );
        drawn.push(group);
      }
      svg.replaceChildren(...drawn);
    };
    const watch = new ResizeObserver(arrows);
    watch.observe(place);
    return {
      node,
      stop: () => watch.disconnect(),
      show: ({ query, key }, row) => {
        parts.forEach(({ word, share }, i) => {
          word.setAttribute("aria-checked", i === query);
          word.classList.toggle("course-explorer-key", i === key);
          share.textContent = row[i] >= 2 ? shortText(row[i] / 255) : "";
        });
        stop(query);
        last = { query, row };
        arrows();
      },
    };
  }

  // ---- what may come next
  function nextTokens() {
    const node = make("div", "course-explorer-next");
    const heading = make("div", "course-explorer-heading");
    const table = make("table", "", { "aria-label": "likeliest next tokens" });
    const rows = reading.following[0].map(() => barRow(table.insertRow()));
    node.append(heading, table);
    return {
      node,
      show: ({ query }) => {
        heading.textContent = `after ${named(query)} the model expects`;
        rows.forEach((row, i) => {
          const [text, chance] = reading.following[query][i];
          row(`“${text}”`, chance / 1000);
        });
      },
    };
  }
  function barRow(row) {
    const name = make("th", "", { scope: "row" });
    const track = make("td");
    const bar = make("div", "course-explorer-bar");
    const value = make("td");
    track.append(bar);
    row.append(name, value, track);
    return (text, share) => {
      name.textContent = name.title = text;
      bar.style.transform = `scaleX(${share})`;
      value.textContent = shortText(share);
    };
  }

  // ---- the weights of the head, a grid in which a cell is a query and a key
  function weightTable() {
    const node = make("div", "course-explorer-weights");
    const heading = make("div", "course-explorer-heading", { id: `${uid}-weights` });
    const scroll = makeScroll("course-heads-scroll");
    const table = make("table", T > 12 ? "course-explorer-many" : "", {
      role: "grid",
      "aria-labelledby": `${uid}-weights`,
      "aria-readonly": "true",
    });
    table.style.setProperty("--n", T);
    const head = table.createTHead().insertRow();
    const body = table.createTBody();
    const label = (i) => {
      const cell = make("th", "", { title: named(i) });
      cell.append(make("span", "", {}, `${i} ${tokens[i]}`));
      return cell;
    };
    const keys = tokens.map((_, key) => label(key));
    keys.forEach((cell) => {
      cell.scope = "col";
    });
    head.append(make("th", "course-explorer-corner", {}, "query ↓ key →"), ...keys);
    const rows = tokens.map((_, query) => {
      const row = body.insertRow();
      const name = label(query);
      name.scope = "row";
      const cells = tokens.map((_, key) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "data-later": key > query });
        if (key > query) cell.setAttribute("aria-label", "masked, a later token");
        else
          cell.addEventListener("click", () => {
            cell.focus();
            takePair(query, key);
          });
        return cell;
      });
      row.append(name, ...cells);
      return { name, cells };
    });
    keepKeys(table, (event) => !passes(event));
    table.addEventListener("keydown", (event) => {
      const { query, key } = chosen();
      const to = event.ctrlKey
        ? { Home: [0, 0], End: [T - 1, T - 1] }[event.key]
        : {
            ArrowDown: [query + 1, key],
            ArrowUp: [query - 1, key],
            ArrowRight: [query, key + 1],
            ArrowLeft: [query, key - 1],
            Home: [query, 0],
            End: [query, query],
          }[event.key];
      if (!to || passes(event)) return;
      event.preventDefault();
      const row = clamp(to[0], T);
      const column = clamp(to[1], row + 1);
      takePair(row, column);
      rows[row].cells[column].focus();
    });
    scroll.append(table);
    node.append(heading, scroll);
    return {
      node,
      show: ({ l, h, query, key }) => {
        heading.textContent = `weights of ${headName(l, h)}`;
        rows.forEach(({ name, cells }, r) => {
          name.classList.toggle("course-explorer-query", r === query);
          cells.forEach((cell, c) => {
            const chosenCell = r === query && c === key;
            cell.tabIndex = chosenCell ? 0 : -1;
            cell.setAttribute("aria-selected", chosenCell);
            if (c > r) return;
            const value = level(l, h, r, c);
            const text = shortText(value / 255);
            cell.style.background = ramp.colour(value);
            cell.style.color = ramp.ink(value);
            cell.textContent = T > 12 || value < 2 ? "" : text.replace(/^0/, "").replace(/\.00$/, "");
            cell.setAttribute("aria-label", text);
          });
        });
        keys.forEach((cell, c) => cell.classList.toggle("course-explorer-key", c === key));
      },
    };
  }

  // ---- all heads, each in its place: from the tokens above through the layers to the next token
  function wholeModel() {
    const node = make("div", "course-explorer-whole");
    const grid = headTable({
      layers,
      heads,
      name: "all heads: layers in rows, heads in columns",
      labels: () => [],
      bare: true,
      press: takeHead,
      follows: true,
      makeButton: () => make("button", "course-explorer-head", { type: "button", "aria-pressed": "false" }),
    });
    const line = (text) => make("div", "course-faint course-explorer-flow", {}, text);
    const scale = make("div", "course-faint", {}, `${layers} layers of ${heads} heads; `);
    const more = ": a larger share, as sorted below";
    scale.append(
      make("span", "course-when-light", {}, "darker"),
      make("span", "course-when-dark", {}, "brighter"),
      more,
    );
    node.append(
      make("div", "course-explorer-heading", {}, "its place in the whole model"),
      scale,
      line(`↓ ${T} tokens`),
      grid.node,
      line("↓ the next token"),
    );
    const rows = [...grid.node.tBodies[0].rows];
    const [, ...columns] = grid.node.tHead.rows[0].cells;
    return {
      node,
      show: ({ l, h }) => {
        const at = l * heads + h;
        grid.stop(at);
        grid.buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === at));
        rows.forEach((row, i) => row.classList.toggle("course-explorer-here", i === l));
        columns.forEach((column, i) => column.classList.toggle("course-explorer-here", i === h));
      },
      shade: (shares) =>
        grid.buttons.forEach((button, i) => {
          const text = `${headName(Math.floor(i / heads), i % heads)}: ${shortText(shares[i])}`;
          button.style.background = ramp.colour(Math.round(255 * shares[i]));
          button.setAttribute("aria-label", text);
          button.title = text;
        }),
    };
  }

  // ---- all heads by what they do
  function sortedHeads() {
    const node = make("div", "course-explorer-order");
    const label = make("label", "course-explorer-by");
    const select = make("select");
    const options = Object.entries(model.get("_measures")).map(([name, text]) => {
      const option = make("option", "", { value: name }, text);
      option.disabled = name === "again" && !reading.repeats;
      select.append(option);
      return { name, option };
    });
    label.append(make("span", "", {}, "heads by their share of attention"), select);
    select.addEventListener("change", () => set({ measure: select.value }));
    keepKeys(select, (event) => !passes(event));
    const list = make("div", "course-explorer-list", {
      role: "listbox",
      "aria-label": "heads, the largest share first",
    });
    let ranked = [];
    const lines = Array.from({ length: layers * heads }, () => {
      const line = make("div", "course-explorer-line", { role: "option", tabindex: -1 });
      const name = make("span");
      const bar = make("span", "course-explorer-bar");
      const value = make("span");
      const track = make("span", "course-explorer-track");
      track.append(bar);
      line.append(name, value, track);
      list.append(line);
      return { line, name, bar, value };
    });
    const stop = oneStop(
      list,
      lines.map(({ line }) => line),
      (at) => takeHead(Math.floor(ranked[at] / heads), ranked[at] % heads),
    );
    const rank = make("div", "course-faint course-explorer-rank");
    node.append(label, rank, list);
    let before = "";
    return {
      node,
      show: ({ l, h, query, key, measure }) => {
        const at = l * heads + h;
        const known = `${measure} ${query} ${key}`;
        options[0].option.textContent = `from ${named(query)} to ${named(key)}`;
        select.value = measure;
        if (known !== before && !(before && measure !== "pair" && before.startsWith(measure))) {
          const shares = reading.shares(measure, query, key);
          ranked = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a] || a - b);
          ranked.forEach((head, i) => {
            const { name, bar, value } = lines[i];
            const text = shortText(shares[head]);
            name.textContent = headName(Math.floor(head / heads), head % heads);
            bar.style.transform = `scaleX(${shares[head]})`;
            value.textContent = text;
          });
          whole.shade(shares);
          list.scrollTop = 0;
        }
        before = known;
        const rankOf = ranked.indexOf(at);
        lines.forEach(({ line }, i) => line.setAttribute("aria-selected", i === rankOf));
        stop(rankOf);
        rank.textContent = `shown: number ${rankOf + 1} of ${lines.length}`;
      },
    };
  }
}

export default { render };
