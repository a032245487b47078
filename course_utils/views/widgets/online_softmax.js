// Shows the frames that online_softmax.py computed, one a step; every number and sentence comes from there, or
// for another order on a page without a kernel from online_softmax_alone.js.

import { keepKey, listen, make, makeRoot, makeScroll, makeSet, newId, presses, typeset } from "../shared/dom.js";
import { makePlayer, makeTold } from "../shared/player.js";
import { answerOrder } from "./online_softmax_alone.js";

const HINT = "Click or tap a number in the table, or go there by arrow keys and Enter, to see its arithmetic.";
const MOVE = "Drag a key by its name to change the order, or choose it and press ← or →.";
const MOVED = 12; // keys at most that can be moved: more leave no room for a finger

function render({ model, el }) {
  const columns = model.get("_columns");
  let keys = model.get("_keys");
  let frames = model.get("_frames");
  let ends = model.get("_ends");
  const last = frames.length - 1;
  const uid = newId("course-online");
  const root = makeRoot(model, "course-online", { role: "group", "aria-labelledby": `${uid}-title` });
  const title = make("div", "course-title course-online-title", { id: `${uid}-title` }, model.get("title"));
  const player = makePlayer(model, "steps", "step");
  const told = makeTold("course-told course-online-told");
  const why = makeTold("course-online-why", (node, lines) =>
    node.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line))),
  );
  const chart = makeChart();
  const table = makeTable();
  const end = makeEnd();
  root.append(title, player.node, told.node, chart.node, table.node, why.node, end.node);
  player.keys(root);
  el.append(root);
  let moved = null; // the place of the key that was moved last
  let chosen = null; // [row, column] of the number whose arithmetic is shown

  // One bar a key: its power e^(score − m), with the m of this step. Under it its name, by which it is moved.
  function makeChart() {
    const node = make("div");
    const chart = make("div", "course-online-chart", { role: "img" });
    const moves = keys.length <= MOVED;
    const row = make("div", "course-online-names", moves ? { role: "group", "aria-label": "order of the keys" } : {});
    const said = make("div", "course-online-caption", { role: "status" });
    node.append(
      makeSet("div", "course-online-caption", {}, "e^(score − m) of each key read, with the m of this step"),
      chart,
      row,
    );
    if (moves) node.append(said);
    const bars = keys.map((_, i) => {
      const part = make("div", "course-online-key");
      const plot = make("div", "course-online-plot");
      const bar = make("div", "course-online-bar");
      const name = moves ? make("button", "course-online-name", { type: "button" }) : make("div", "course-online-name");
      plot.append(bar);
      part.append(plot);
      chart.append(part);
      row.append(name);
      if (moves) carry(name, i);
      return { part, bar, name };
    });
    const places = () => bars.map(({ name }) => name.getBoundingClientRect());

    function put(from, to) {
      if (to === from || to < 0 || to >= keys.length) return;
      const order = [...model.get("order")];
      order.splice(to, 0, ...order.splice(from, 1));
      player.stop();
      moved = to;
      model.set("order", order);
      model.save_changes();
      bars[to].name.focus();
    }
    // A name follows the pointer, and its key goes where it is let go. Arrows move it by one.
    function carry(name, i) {
      let start = null;
      let boxes = [];
      const target = (x) =>
        boxes.reduce(
          (best, box, place) =>
            Math.abs(box.x + box.width / 2 - x) < Math.abs(boxes[best].x + boxes[best].width / 2 - x) ? place : best,
          i,
        );
      const drop = () => {
        start = null;
        name.style.transform = "";
        for (const { name: each } of bars) delete each.dataset.target;
      };
      name.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        start = event.clientX;
        boxes = places();
        name.setPointerCapture(event.pointerId);
      });
      name.addEventListener("pointermove", (event) => {
        if (start === null) return;
        name.style.transform = `translateX(${event.clientX - start}px)`;
        bars.forEach(({ name: each }, place) => {
          each.dataset.target = place === target(event.clientX) && place !== i;
        });
      });
      name.addEventListener("pointerup", (event) => {
        if (start === null) return;
        const dragged = Math.abs(event.clientX - start) > 4;
        drop();
        if (dragged) put(i, target(event.clientX));
      });
      name.addEventListener("pointercancel", drop);
      name.addEventListener("keydown", (event) => {
        if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
        const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: keys.length - 1 }[event.key];
        if (to === undefined && !presses(event)) return;
        keepKey(event); // the player takes arrows for steps
        if (to !== undefined) put(i, to);
      });
    }

    return {
      node,
      say: (text) => {
        said.textContent = text;
      },
      rebuild: () =>
        keys.forEach((key, i) => {
          const { name } = bars[i];
          const every = keys.length > 20 ? 4 : 2;
          name.textContent = moves ? key.label : i % every ? "" : i;
          name.title = key.label;
          if (moves)
            name.setAttribute("aria-label", `${key.label}, place ${i + 1} of ${keys.length}: arrow keys move it`);
        }),
      show: (frame) => {
        bars.forEach(({ part, bar, name }, i) => {
          name.dataset.state = part.dataset.state =
            i >= frame.stop ? "next" : i >= frame.start && model.get("step") ? "now" : "past";
          bar.style.transform = `scaleY(${frame.bars[i] ?? 0})`;
        });
        const powers = frame.bars.map((power) => power.toFixed(2)).join(", ");
        chart.setAttribute("aria-label", `e^(score − m) of the keys read so far: ${powers || "none yet"}`);
      },
    };
  }

  function makeTable() {
    const node = makeScroll("course-online-scroll");
    const grid = make("table", "course-online-table", {
      role: "grid",
      "aria-readonly": "true",
      "aria-label": "m, factor, l and o, step by step",
    });
    const head = grid.createTHead().insertRow();
    const body = grid.createTBody();
    for (const name of ["keys", "score", ...columns]) head.append(makeSet("th", "", { scope: "col" }, name));
    let cursor = [0, 0];
    const rows = frames.map((frame, r) => {
      const row = body.insertRow();
      const name = make("th", "", { scope: "row" });
      const score = make("td", "course-online-score");
      row.append(name, score);
      const cells = frame.cells.map((_, c) => {
        const cell = make("td", "", { role: "gridcell", tabindex: -1, "aria-selected": "false" });
        cell.addEventListener("click", () => {
          if (r <= model.get("step")) {
            aim(r, c);
            choose(r, c);
          }
        });
        row.append(cell);
        return cell;
      });
      return { row, name, score, cells };
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
      const [r, c] = cursor;
      const target = {
        ArrowDown: [r + 1, c],
        ArrowUp: [r - 1, c],
        ArrowRight: [r, c + 1],
        ArrowLeft: [r, c - 1],
        Home: [r, 0],
        End: [r, columns.length - 1],
      }[event.key];
      if (target) aim(...target);
      else if (event.key === "Enter" || event.key === " ") choose(r, c);
      else if (event.key === "Escape" && chosen) choose();
      else return;
      keepKey(event); // the player takes arrows for steps
    });
    node.append(grid);
    return {
      node,
      rebuild: () =>
        rows.forEach(({ name, score }, r) => {
          const here = keys.slice(frames[r].start, frames[r].stop);
          const ends = [here[0]?.label, here.at(-1)?.label];
          name.textContent = name.title = r === 0 ? "nothing yet" : here.length === 1 ? ends[0] : ends.join(" to ");
          score.textContent = r === 0 ? "" : here.map((key) => key.score).join(", ");
        }),
      show: (step) => {
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
      },
    };
  }

  // The comparison shows itself when all keys are read.
  function makeEnd() {
    const node = make("div", "course-online-end");
    const before = make(
      "div",
      "course-faint course-online-waits",
      {},
      "At the last key this is compared with softmax over all scores at once.",
    );
    const after = make("div", "course-online-compared");
    const scroll = makeScroll("course-online-scroll", { tabindex: 0, role: "group", "aria-label": "comparison" });
    const grid = make("table", "course-online-result", { "aria-label": "one pass and softmax compared" });
    const body = grid.createTBody();
    const sums = make("div");
    scroll.append(grid);
    after.append(sums, scroll);
    node.append(before, after);
    return {
      node,
      rebuild: () => {
        sums.replaceChildren(...typeset(ends.sums));
        body.replaceChildren(
          ...ends.heads.map((name, r) => {
            const row = make("tr");
            row.append(
              makeSet("th", "", { scope: "row" }, name),
              ...ends.rows[r].map((text) => make("td", "", {}, text)),
            );
            return row;
          }),
        );
      },
      show: (done) => {
        before.hidden = done;
        after.hidden = !done;
      },
    };
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
    const step = Math.min(model.get("step"), last);
    const frame = frames[step];
    if (chosen && chosen[0] > step) chosen = null;
    player.show(step, last);
    told.show(frame.told);
    chart.show(frame);
    table.show(step);
    end.show(step === last);
    why.node.classList.toggle("course-online-hint", !chosen);
    why.show(chosen ? explained(frames[chosen[0]].why[chosen[1]]) : [HINT]);
  }

  function rebuild() {
    [keys, frames, ends] = [model.get("_keys"), model.get("_frames"), model.get("_ends")];
    chosen = null;
    told.rooms(frames.map((frame) => frame.told));
    for (const part of [chart, table, end]) part.rebuild();
    show();
    chart.say(moved === null ? MOVE : `${keys[moved].label} is in place ${moved + 1} now. ${MOVE}`);
  }
  // Another order needs Python: if it does not come soon, the page says what is still shown.
  let late = null;
  function wait() {
    clearTimeout(late);
    late = setTimeout(() => {
      if (String(keys.map((key) => key.index)) !== String(model.get("order")))
        chart.say("waiting for Python; the order before is still shown");
    }, 400);
  }

  const stopListening = listen(model, { step: show, order: wait, _frames: rebuild });
  const stop = model.alone ? answerOrder(model) : () => {};
  rebuild();
  return () => {
    stop();
    player.stop();
    clearTimeout(late);
    stopListening();
  };
}

export default { render };
