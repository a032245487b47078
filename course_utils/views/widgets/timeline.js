// Shows the steps that timeline_run.py walked through, one column each. Other settings are scheduled by Python, or without
// a kernel by timeline_alone.js.

import { clamp, keepKey, listen, make, makeRoot, makeScroll, newId } from "../shared/dom.js";
import { fixedText } from "../shared/number_text.js";
import { makeLate, makePlayer, makeTold } from "../shared/player.js";
import { answerTimeline } from "./timeline_alone.js";

const SIGNS = {
  prefill: (count) => `P${count}`,
  decode: () => "D",
  wait: () => "·",
  preempted: () => "↺",
  refused: () => "×",
  finished: () => "✓",
};
const LEGEND = [
  ["prefill", "prefill, with its tokens"],
  ["decode", "decode, one token"],
  ["wait", "waits"],
  ["preempted", "preempted: gives its blocks back"],
  ["refused", "refused: never fits"],
  ["finished", "finished"],
];
const MENUS = [
  ["arrivals", "requests"],
  ["rule", "scheduler"],
  ["budget", "budget, tokens a step"],
  ["blocks", "blocks"],
];
const several = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;
const percent = (share) => (share === null ? "–" : `${fixedText(100 * share, 0)}%`);

// As `told` and `measures` of timeline_run.py.
function toldOfCell({ requests, steps }, step, row) {
  const { name, arrival, new: wanted } = requests[row];
  const cells = steps.slice(0, step + 1).map((each) => each.cells[row]);
  const [did, count, got, why] = cells.at(-1);
  const head = `Step ${step + 1}: ${name}`;
  const so_far = cells.filter((cell) => cell[2]).length;
  if (!did) return `${head} is not there yet. It arrives before step ${arrival + 1}.`;
  if (did === "finished") return `${head} is finished.`;
  if (!["prefill", "decode"].includes(did)) return `${head} ${did === "wait" ? "waits" : `is ${did}`}: ${why}.`;
  const named = got ? ` It gets token ${so_far} of ${wanted}.` : "";
  const end = got && so_far === wanted ? " It is finished." : "";
  return `${head} computes ${several(count, "token")}, ${did}: ${why}.${named}${end}`;
}
function measuresOf({ requests, steps }, step, budget, blocks) {
  const seen = steps.slice(0, step);
  const sum = (name) => seen.reduce((total, each) => total + each[name], 0);
  const first = requests.map(({ arrival }, row) => {
    const place = seen.findIndex((each) => each.cells[row][2]);
    return place < 0 ? null : place + 1 - arrival;
  });
  const known = first.filter((steps) => steps !== null);
  return {
    steps: step,
    budget: step ? sum("used") / (budget * step) : null,
    blocks: step ? sum("held") / (blocks * step) : null,
    first,
    mean: known.length ? known.reduce((total, steps) => total + steps, 0) / known.length : null,
  };
}

function render({ model, el }) {
  const { block_size, rules, sets, budgets, blocks: pools } = model.get("_layout");
  const uid = newId("course-timeline");
  const root = makeRoot(model, "course-timeline", { role: "group", "aria-labelledby": `${uid}-title` });
  let walk = model.get("_walk");
  let last = 0;
  let pointed = null;

  const player = makePlayer(model, "steps", "step");
  const settings = makeSettings();
  const told = makeTold("course-told course-timeline-told");
  const grid = makeGrid();
  const sums = make("div", "course-timeline-sums");
  const problem = make("div", "course-timeline-problem", { role: "status" });
  root.append(
    make("div", "course-title course-timeline-title", { id: `${uid}-title` }, model.get("title")),
    settings.node,
    player.node,
    told.node,
    grid.node,
    problem,
    sums,
    makeLegend(),
  );
  player.keys(root);
  el.append(root);

  function makeSettings() {
    const node = make("div", "course-row course-timeline-settings");
    const menus = {};
    for (const [name, text] of MENUS) {
      const around = make("label");
      const menu = make("select");
      menu.addEventListener("change", () => {
        const value = ["budget", "blocks"].includes(name) ? +menu.value : menu.value;
        player.stop();
        model.set("step", 0);
        for (const [other, its] of Object.entries(name === "arrivals" ? sets[value] : {})) model.set(other, its); // that go with it
        model.set(name, value);
        model.save_changes();
      });
      around.append(make("span", "", {}, text), menu);
      node.append(around);
      menus[name] = menu;
    }
    const waits = make("span", "course-timeline-waits", { role: "status" });
    node.append(waits);
    const fill = (menu, options, here) => {
      if ([...menu.options].map((option) => option.value).join() !== options.map(([value]) => String(value)).join()) {
        menu.replaceChildren(...options.map(([value, text]) => make("option", "", { value }, text)));
      }
      menu.value = here;
    };
    const sized = (all, here) => [...new Set([...all, here])].sort((a, b) => a - b).map((size) => [size, size]);
    return {
      node,
      waits,
      show: () => {
        fill(
          menus.arrivals,
          Object.keys(sets).map((name) => [name, name]),
          model.get("arrivals"),
        );
        fill(menus.rule, rules, model.get("rule"));
        fill(menus.budget, sized(budgets, model.get("budget")), model.get("budget"));
        fill(
          menus.blocks,
          sized(pools, model.get("blocks")).map(([size]) => [size, `${size} of ${several(block_size, "token")}`]),
          model.get("blocks"),
        );
      },
    };
  }

  // A row for the tokens, one for the blocks and one for each request. One cell is in the order of Tab; arrows go on.
  function makeGrid() {
    const node = makeScroll("course-timeline-scroll");
    const table = make("table", "", { role: "grid", "aria-readonly": "true", "aria-label": "steps and requests" });
    node.append(table);
    let rows = [];
    let heads = [];
    let here = [2, 0];
    const at = (event) => {
      const cell = event.target.closest?.("td");
      return cell ? [+cell.dataset.row, +cell.dataset.column] : null;
    };
    const point = (place) => {
      pointed = place;
      tell();
    };
    node.addEventListener("pointerover", (event) => point(at(event)));
    node.addEventListener("pointerleave", () => point(node.contains(document.activeElement) ? here : null));
    node.addEventListener("focusin", (event) => {
      if (at(event)) {
        reach(at(event));
        point(here);
      }
    });
    node.addEventListener("focusout", () => point(null));
    node.addEventListener("keydown", (event) => {
      const moves = {
        ArrowRight: [0, 1],
        ArrowLeft: [0, -1],
        ArrowDown: [1, 0],
        ArrowUp: [-1, 0],
        Home: [0, -Infinity],
        End: [0, Infinity],
      };
      if (!(event.key in moves) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !at(event))
        return;
      keepKey(event);
      const [down, right] = moves[event.key];
      reach([clamp(here[0] + down, rows.length), clamp(here[1] + right, last)]);
      rows[here[0]][here[1]].focus();
    });
    function reach(place) {
      rows[here[0]]?.[here[1]]?.setAttribute("tabindex", -1);
      here = place;
      rows[here[0]]?.[here[1]]?.setAttribute("tabindex", 0);
    }
    const nameOf = (text, small) => {
      const head = make("th", "", { scope: "row", role: "rowheader" }, text);
      if (small) head.append(make("small", "", {}, small));
      return head;
    };
    return {
      node,
      rebuild: () => {
        const line = make("tr", "", { role: "row" });
        const lines = [];
        heads = walk.steps.map((_, column) => make("th", "", { scope: "col", role: "columnheader" }, column + 1));
        line.append(make("th", "", { scope: "col", role: "columnheader" }, "step"), ...heads);
        const names = [
          nameOf("tokens"),
          nameOf("blocks"),
          ...walk.requests.map(({ name, prompt, new: count }) => nameOf(name, `${prompt} + ${count}`)),
        ];
        rows = names.map((head, row) => {
          const cells = walk.steps.map((_, column) =>
            make("td", row < 2 ? "course-timeline-full" : "course-timeline-cell", {
              role: "gridcell",
              tabindex: -1,
              "data-row": row,
              "data-column": column,
            }),
          );
          lines.push(make("tr", "", { role: "row" }));
          lines.at(-1).append(head, ...cells);
          return cells;
        });
        node.style.setProperty("--steps", walk.steps.length);
        table.replaceChildren(line, ...lines);
        reach([2, 0]);
      },
      show: (step) => {
        const most = [model.get("budget"), model.get("blocks")];
        heads.forEach((head, column) => head.classList.toggle("course-timeline-now", column === step - 1));
        rows.forEach((cells, row) =>
          cells.forEach((cell, column) => {
            const seen = column < step;
            const each = walk.steps[column];
            cell.classList.toggle("course-timeline-now", column === step - 1);
            cell.setAttribute("aria-label", seen ? words(row, column) : `step ${column + 1} is not planned yet`);
            if (row < 2) {
              const used = row ? each.held : each.used;
              cell.style.setProperty("--full", seen ? Math.min(1, used / most[row]) : 0);
              cell.textContent = seen ? used : "";
              cell.classList.toggle("course-timeline-over", seen && used > most[row]);
              return;
            }
            const [did, count, got] = each.cells[row - 2];
            cell.dataset.did = seen ? did : "ahead";
            cell.dataset.got = seen && got;
            const again = did === "finished" && walk.steps[column - 1].cells[row - 2][0] === "finished"; // is marked once
            cell.textContent = seen && did && !again ? SIGNS[did](count) : "";
          }),
        );
        const head = heads[step - 1];
        const side = 74; // the column in view, right of the names, which stay
        if (!head) node.scrollLeft = 0;
        else if (head.offsetLeft < node.scrollLeft + side) node.scrollLeft = head.offsetLeft - side;
        else node.scrollLeft = Math.max(node.scrollLeft, head.offsetLeft + head.offsetWidth + 6 - node.clientWidth);
      },
    };
  }

  function words(row, column) {
    const { used, held } = walk.steps[column];
    const { budget, blocks } = walk.settings;
    if (row === 0) return `Step ${column + 1}: ${used} of ${several(budget, "token")} of the budget are used.`;
    if (row === 1) return `Step ${column + 1}: ${held} of ${several(blocks, "block")} are held.`;
    return toldOfCell(walk, column, row - 2);
  }
  function summary(step) {
    if (!step) return last ? `${several(walk.requests.length, "request")}, no step yet.` : "There is no step.";
    const { used, held, cells } = walk.steps[step - 1];
    const { budget, blocks } = walk.settings;
    const who = (kinds) =>
      walk.requests
        .filter((_, row) => kinds.includes(cells[row][0]))
        .map(({ name }) => name)
        .join(", ");
    const parts = [
      ["prefill", "prefill"],
      ["decode", "decode"],
      ["wait", "waiting"],
      ["preempted", "preempted"],
    ].map(([did, text]) => [text, who([did])]);
    const said = parts
      .filter(([, names]) => names)
      .map(([text, names]) => `${text} ${names}`)
      .join("; ");
    return `Step ${step}: ${said || "nobody is there"}. ${used} of ${several(budget, "token")} and ${held} of ${several(blocks, "block")} are used.`;
  }
  function tell() {
    const step = Math.min(model.get("step"), last);
    told.show(pointed && pointed[1] < step ? words(...pointed) : summary(step));
  }

  function makeLegend() {
    const legend = make("div", "course-legend course-timeline-legend");
    for (const [did, text] of LEGEND) {
      const part = make("span");
      part.append(
        make(
          "i",
          "course-timeline-cell",
          { "data-did": did, "aria-hidden": "true" },
          did === "prefill" ? "P2" : SIGNS[did](),
        ),
        text,
      );
      legend.append(part);
    }
    const got = make("span");
    got.append(
      make("i", "course-timeline-cell", { "data-did": "decode", "data-got": "true", "aria-hidden": "true" }),
      "with a white line: it got a token",
    );
    legend.append(
      got,
      make(
        "span",
        "course-timeline-hint",
        {},
        "Point at or tap a cell, or go to it with arrow keys, to read why. Beside a name: tokens of the prompt + tokens to write.",
      ),
    );
    return legend;
  }

  function showSums(step) {
    const { budget, blocks } = walk.settings;
    const found = measuresOf(walk, step, budget, blocks);
    const each = walk.requests.map(({ name }, row) => `${name} ${found.first[row] ?? "–"}`).join(", ");
    const sum = (key, number, text) => {
      const node = make("div", "course-timeline-sum", { "data-sum": key });
      node.append(make("b", "", {}, number), make("span", "course-faint", {}, text));
      return node;
    };
    sums.replaceChildren(
      sum("steps", String(step), step === 1 ? "step" : "steps"),
      sum("budget", percent(found.budget), "of the budget used"),
      sum("blocks", percent(found.blocks), "of the blocks held"),
      sum(
        "first",
        found.mean === null ? "–" : fixedText(found.mean, 2),
        `steps to the first token on average: ${each}`,
      ),
    );
  }

  function rebuild() {
    walk = model.get("_walk");
    last = walk.steps.length;
    pointed = null;
    grid.rebuild();
    told.rooms([
      summary(0),
      ...walk.steps.flatMap((_, step) => [
        summary(step + 1),
        ...walk.requests.map((_, row) => toldOfCell(walk, step, row)),
      ]),
    ]);
    show();
  }
  function show() {
    const step = Math.min(model.get("step"), last);
    const at_end = step === last;
    player.show(step, last);
    settings.show();
    grid.show(step);
    showSums(step);
    problem.textContent = at_end ? walk.problem || walk.silent || "" : "";
    problem.classList.toggle("course-timeline-silent", !walk.problem);
    tell();
    late.show(walk.settings);
  }

  const late = makeLate(model, settings.waits, ({ rule, budget, blocks, arrivals }) => {
    const name = rules.find(([key]) => key === rule)[1];
    return `${name}, ${arrivals}, budget ${budget}, ${several(blocks, "block")}`;
  });

  const stopListening = listen(model, {
    step: show,
    rule: show,
    budget: show,
    blocks: show,
    arrivals: show,
    _walk: rebuild,
  });
  const stop = model.alone ? answerTimeline(model) : () => {};
  rebuild();
  return () => {
    stop();
    player.stop();
    late.stop();
    stopListening();
  };
}

export default { render };
