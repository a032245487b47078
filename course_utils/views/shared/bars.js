// Shared by the widgets that turn scores into bars: softmax and its measures, sliders, readouts.

import { keepKeys, make, makeSet } from "./dom.js";

export const softmax = (scores) => {
  const peak = Math.max(...scores);
  const powers = Array.from(scores, (score) => Math.exp(score - peak));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
};
export const entropy = (weights) =>
  Math.max(
    0,
    weights.reduce((sum, p) => sum - (p ? p * Math.log(p) : 0), 0),
  );
export const jacobianTrace = (weights) => weights.reduce((sum, p) => sum + p * (1 - p), 0);

// In a field all keys are text, but for those that leave it or run the cell.
const SLIDER_KEYS = [
  "ArrowUp",
  "ArrowDown",
  "ArrowLeft",
  "ArrowRight",
  "Home",
  "End",
  "PageUp",
  "PageDown",
  "Enter",
  " ",
];
export function keepSliderKeys(node) {
  keepKeys(node, (event) => {
    const changed = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (event.target.type !== "number") return !changed && SLIDER_KEYS.includes(event.key);
    return !["Tab", "Escape"].includes(event.key) && !(changed && ["Enter", "s"].includes(event.key));
  });
}

// A slider over the positions 0 to `last`, with its value in words and labels under some positions. Its label is around
// it: every widget on a page has a module of its own, so a module cannot count up to an id that no other has.
export function barsSlider({ name, last, ticks, onInput }) {
  const node = make("div", "course-bars-slider");
  const label = make("label");
  const head = make("span", "course-bars-head");
  const value = make("span", "course-bars-value", { "aria-hidden": "true" });
  const input = make("input", "", { type: "range", min: 0, max: last, step: 1 });
  const scale = make("div", "course-bars-ticks", { "aria-hidden": "true" });
  for (const [position, text] of ticks) {
    scale.append(make("span", "", { style: `left:calc(8px + (100% - 16px) * ${position / last})` }, text));
  }
  input.addEventListener("input", () => onInput(+input.value));
  head.append(makeSet("span", "", {}, name), value);
  label.append(head, input);
  node.append(label, scale);
  return {
    node,
    show: (position, text) => {
      if (+input.value !== position) input.value = position;
      input.setAttribute("aria-valuetext", text);
      value.textContent = text;
    },
  };
}

// The row of a measure: its cells, each with its mark on the track, and what stands at the track's ends.
function measureRow(row, measure, columns, tracks) {
  const track = make("td", "course-bars-track");
  const line = make("div", "course-bars-line");
  track.append(line);
  row.dataset.row = measure.key;
  row.append(make("th", "", { scope: "row" }, measure.name), ...(tracks ? [track] : []));
  const ends = ["least", "most"].map((end) =>
    make("span", `course-bars-end course-bars-${end}`, { "aria-hidden": "true" }),
  );
  line.append(...ends);
  const cells = columns.map((column) => {
    const mark = tracks && column.mark ? make("div", `course-bars-mark course-bars-${column.mark}`) : null;
    if (mark) line.append(mark);
    const cell = make("td", "", { "data-measure": measure.key, "data-column": column.key });
    row.append(cell);
    return { cell, mark };
  });
  return { cells, ends };
}

// One row a measure: its name, a track from its least to its most with one mark a column, and a number a column.
// tracks: whether there are tracks; without them the marks in the head are the key to a drawing.
export function barsReadouts({ name, measures, columns, tracks = true }) {
  const table = make("table", "course-bars-readouts", { "aria-label": name });
  table.style.setProperty("--columns", columns.length);
  const head = table.createTHead().insertRow();
  head.append(make("td"), ...(tracks ? [make("td", "course-bars-track")] : []));
  const heads = columns.map((column) => {
    const cell = make("th", "", { scope: "col" }, column.name);
    if (column.mark) cell.append(make("span", `course-bars-sample course-bars-${column.mark}`));
    head.append(cell);
    return cell;
  });
  const body = table.createTBody();
  const rows = measures.map((measure) => measureRow(body.insertRow(), measure, columns, tracks));
  return {
    node: table,
    // values[r][c] belongs to measure r and column c; the track leads from least[r] to most[r]; current is a column's
    // key or none.
    show: (values, most, current, least = most.map(() => 0)) => {
      rows.forEach(({ cells, ends }, r) => {
        [least[r], most[r]].forEach((value, end) => {
          ends[end].textContent = Number(value.toFixed(2));
        });
        const share = (value) => (value - least[r]) / (most[r] - least[r] || 1);
        cells.forEach(({ cell, mark }, c) => {
          cell.textContent = values[r][c].toFixed(2);
          cell.dataset.value = values[r][c];
          cell.classList.toggle("course-bars-current", columns[c].key === current);
          if (mark) mark.style.left = `${100 * Math.max(0, Math.min(1, share(values[r][c])))}%`;
          mark?.classList.toggle("course-bars-current", columns[c].key === current);
        });
      });
      heads.forEach((cell, c) => cell.classList.toggle("course-bars-current", columns[c].key === current));
    },
  };
}
