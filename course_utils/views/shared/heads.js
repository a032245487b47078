// Shared by the widgets that show a model's heads: a table with a row for each layer and a button for each head, and
// what Python says to a text that was typed.

import { keepKeys, make, placeReached } from "./dom.js";

export const headName = (layer, head) => `layer ${layer}, head ${head}`;

// The table is one stop of the Tab key; arrow keys move in it. labels(layer) gives what stands under the layer's name,
// makeButton(layer, head) the button, press(layer, head) hears a click, Enter or Space. bare: numbers alone name layers
// and heads. follows: arrows press what they reach. What is returned has `stop`, which makes a button the stop.
export function headTable({ layers, heads, name, labels, makeButton, press, bare = false, follows = false }) {
  const table = make("table", "course-heads", { role: "grid", "aria-label": name });
  const top = table.createTHead().insertRow();
  const body = table.createTBody();
  const buttons = [];
  let at = 0;
  const stop = (place) => {
    buttons[at].tabIndex = -1;
    at = place;
    buttons[at].tabIndex = 0;
  };
  top.append(
    make("td"),
    ...Array.from({ length: heads }, (_, h) => make("th", "", { scope: "col" }, bare ? h : `head ${h}`)),
  );
  for (let l = 0; l < layers; l++) {
    const row = body.insertRow();
    const side = make("th", "course-heads-side", { scope: "row" });
    side.append(make("div", "course-heads-layer", {}, bare ? l : `layer ${l}`), ...labels(l));
    row.append(side);
    for (let h = 0; h < heads; h++) {
      const cell = make("td", "", { role: "gridcell" });
      const button = makeButton(l, h);
      const place = buttons.length;
      button.tabIndex = place ? -1 : 0;
      button.addEventListener("click", () => press(l, h));
      button.addEventListener("focus", () => stop(place));
      cell.append(button);
      row.append(cell);
      buttons.push(button);
    }
  }
  keepKeys(table, (event) => !passes(event));
  table.addEventListener("keydown", (event) => {
    const target = placeReached(event, [Math.floor(at / heads), at % heads], [layers, heads]);
    if (!target || event.altKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const [row, column] = target;
    buttons[row * heads + column].focus({ preventScroll: false });
    if (follows) press(row, column);
  });
  return { node: table, buttons, stop };
}

// Keys that are none of the widget's business: those with a modifier, but for Ctrl with Home or End, and all others.
export function passes(event) {
  if (event.altKey || event.metaKey || event.shiftKey) return true;
  return event.ctrlKey ? !["Home", "End"].includes(event.key) : !/^(Arrow.*|Home|End|Page.*|Enter| )$/.test(event.key);
}

// Shows in `node` what Python says to the text that was typed last, or `waiting` when no answer comes for a moment. The
// traits _typed and _said number the texts. What is returned has `show` and `stop`.
export function makeReplyStatus(model, node, waiting) {
  let late = null;
  return {
    stop: () => clearTimeout(late),
    show: () => {
      const { text, number } = model.get("_said");
      clearTimeout(late);
      if (number === model.get("_typed").number) node.textContent = text;
      else
        late = setTimeout(() => {
          node.textContent = waiting;
        }, 400);
    },
  };
}
