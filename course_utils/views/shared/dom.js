// Used by every widget: nodes, colours, keys, text with raised and lowered letters.

export const fillNode = (node, name, attributes, text) => {
  if (name) node.setAttribute("class", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};
export const make = (tag, name, attributes = {}, text) => fillNode(document.createElement(tag), name, attributes, text);

// The outermost node of a widget, with the course's colours.
export const makeRoot = (model, name, attributes) => {
  const root = make("div", `course-widget ${name}`, attributes);
  for (const [variable, colour] of Object.entries(model.get("_palette"))) root.style.setProperty(variable, colour);
  return root;
};

// A box for what may be wider than the page: it scrolls sideways, and says so.
export function makeScroll(name, attributes) {
  const node = make("div", `course-scroll ${name}`, attributes);
  const seen = new ResizeObserver(() =>
    requestAnimationFrame(() => node.toggleAttribute("data-wide", node.scrollWidth > node.clientWidth + 1)),
  );
  queueMicrotask(() => [node, ...node.children].forEach((each) => seen.observe(each)));
  return node;
}

// What Python sends as bytes, as numbers: a view that travelled may begin anywhere.
export const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
export const words = (view) => new Uint16Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
export const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
export const minus = (text) => text.replace("-", "−");

// The colours of weights, from the trait _ramp: `parts` for a canvas, red green blue red …; `colour` of a level 0 to
// 255 and `ink`, in which text on it can be read, of either theme. On a dark ground they run from dark to bright, as
// the filter of .course-ramp in widget.css makes of a canvas.
export function makeRamp(model) {
  const { colours, light_ink_from } = model.get("_ramp");
  const parts = bytes(colours);
  const levels = [...Array(256).keys()];
  const turned = (level) => {
    const [r, g, b] = [0, 1, 2].map((i) => 255 - parts[3 * level + i]);
    const mixed = [
      -0.574 * r + 1.43 * g + 0.144 * b,
      0.426 * r + 0.43 * g + 0.144 * b,
      0.426 * r + 1.43 * g - 0.856 * b,
    ];
    return mixed.map((part) => Math.max(0, Math.min(255, Math.round(part))));
  };
  const linear = (part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const dim = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) < 0.179;
  const ink = (white) => (white ? "#fff" : "#000");
  const drawn = levels.map(
    (level) => `light-dark(rgb(${parts.slice(3 * level, 3 * level + 3)}), rgb(${turned(level)}))`,
  );
  const inks = levels.map((level) => `light-dark(${ink(level >= light_ink_from)}, ${ink(dim(turned(level)))})`);
  return { parts, colour: (level) => drawn[level], ink: (level) => inks[level] };
}

// Sets traits in this order, and sends them together to Python where a kernel runs.
export function setTraits(model, values) {
  for (const name in values) model.set(name, values[name]);
  model.save_changes();
}

// Calls the function of each name when the trait of that name changes. What is returned ends this.
export function listen(model, handlers) {
  for (const name in handlers) model.on(`change:${name}`, handlers[name]);
  return () => {
    for (const name in handlers) model.off(`change:${name}`, handlers[name]);
  };
}

// JupyterLab binds arrows, Enter and others to its cells: what a widget does with a key itself goes no further.
export const keepKey = (event) => {
  event.preventDefault();
  event.stopPropagation();
};
export const keepKeys = (node, uses) =>
  node.addEventListener("keydown", (event) => {
    if (uses(event)) event.stopPropagation();
  });
// The place in a grid of n rows and m columns to which a key moves from row r and column c: arrows, Home and End in the
// row, with Ctrl in the grid, and as many rows as `page` says. Undefined for other keys.
export function placeReached(event, [r, c], [n, m], page = null) {
  const target = event.ctrlKey
    ? { Home: [0, 0], End: [n - 1, m - 1] }[event.key]
    : {
        ArrowDown: [r + 1, c],
        ArrowUp: [r - 1, c],
        ArrowRight: [r, c + 1],
        ArrowLeft: [r, c - 1],
        Home: [r, 0],
        End: [r, m - 1],
        ...(page && { PageDown: [r + page, c], PageUp: [r - page, c] }),
      }[event.key];
  return target && [clamp(target[0], n), clamp(target[1], m)];
}

export const presses = (event) => ["Enter", " "].includes(event.key);

// Every widget is a module of its own, so a counter would give two of them the same ids.
export const newId = (name) => `${name}-${Math.random().toString(36).slice(2)}`;

// Text as nodes in which powers of e stand raised and letters have subscripts, roman where they are words. The signs
// that plain text needs for that, ^ and _ and brackets around a power, stay in it without a size, for screen readers
// and for copying.
const SET_HIGHER_OR_LOWER =
  /\be\^(\((?:[^()]|\([^()]*\))*\)|[−-]?[\p{L}\d]+(?:\.\d+)?)|(?<![\p{L}\d_])(\p{L})_([\p{L}\d]+)(?![\p{L}\d_])/gu;
export function typeset(text) {
  const nodes = [];
  const unseen = (sign) => make("span", "", { style: "font-size: 0" }, sign);
  const moved = (tag, parts) => {
    const node = make(tag);
    node.append(...parts);
    return node;
  };
  const letter = (name) => (/^\p{L}$/u.test(name) ? make("i", "", {}, name) : name);
  let end = 0;
  for (const found of text.matchAll(SET_HIGHER_OR_LOWER)) {
    const [all, power, symbol, below] = found;
    const inner = power?.startsWith("(") ? power.slice(1, -1) : null;
    nodes.push(text.slice(end, found.index));
    if (symbol) nodes.push(letter(symbol), unseen("_"), moved("sub", [letter(below)]));
    else
      nodes.push(
        all[0],
        unseen("^"),
        moved("sup", inner === null ? [power] : [unseen("("), ...typeset(inner), unseen(")")]),
      );
    end = found.index + all.length;
  }
  return [...nodes, text.slice(end)];
}

// A node with such a text.
export const makeSet = (tag, name, attributes, text) => {
  const node = make(tag, name, attributes);
  node.append(...typeset(text));
  return node;
};
