// Shows the steps that timeline_run.py walked through, one column each. Other settings are scheduled by Python, or
// without a kernel by timeline_alone.js.

import { keepKey, listen, make, makeRoot, makeScroll, newId, placeReached, setTraits } from "../shared/dom.js";
import { fixedText } from "../shared/number_text.js";
import { makeLate, makeMessage, Player } from "../shared/player.js";
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

// As `describe_cell` and `measures` of timeline_run.py.
export function messageOfCell({ requests, steps }, step, row) {
  const { name, arrival, new: wanted } = requests[row];
  const cells = steps.slice(0, step + 1).map((each) => each.cells[row]);
  const [did, count, got, why] = cells.at(-1);
  const head = `Step ${step + 1}: ${name}`;
  const soFar = cells.filter((cell) => cell[2]).length;
  if (!did) return `${head} is not there yet. It arrives before step ${arrival + 1}.`;
  if (did === "finished") return `${head} is finished.`;
  if (!["prefill", "decode"].includes(did)) return `${head} ${did === "wait" ? "waits" : `is ${did}`}: ${why}.`;
  const named = got ? ` It gets token ${soFar} of ${wanted}.` : "";
  const end = got && soFar === wanted ? " It is finished." : "";
  return `${head} computes ${several(count, "token")}, ${did}: ${why}.${named}${end}`;
}
export function measuresOf({ requests, steps }, step, budget, blocks) {
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

class TimelineView {
  constructor({ model, el }) {
    this.model = model;
    ({
      block_size: this.block_size,
      rules: this.rules,
      sets: this.sets,
      budgets: this.budgets,
      blocks: this.pools,
    } = model.get("_layout"));
    const uid = newId("course-timeline");
    const root = makeRoot(model, "course-timeline", { role: "group", "aria-labelledby": `${uid}-title` });
    this.walk = model.get("_walk");
    this.last = 0;
    this.pointed = null;

    this.player = new Player(model, "steps", "step");
    this.settings = this.makeSettings();
    this.message = makeMessage("course-message course-timeline-message");
    this.grid = new StepGrid(this);
    this.sums = make("div", "course-timeline-sums");
    this.problem = make("div", "course-timeline-problem", { role: "status" });
    root.append(
      make("div", "course-title course-timeline-title", { id: `${uid}-title` }, model.get("title")),
      this.settings.node,
      this.player.node,
      this.message.node,
      this.grid.node,
      this.problem,
      this.sums,
      makeLegend(),
    );
    this.player.keys(root);
    el.append(root);

    this.late = makeLate(model, this.settings.waits, ({ rule, budget, blocks, arrivals }) => {
      const name = this.rules.find(([key]) => key === rule)[1];
      return `${name}, ${arrivals}, budget ${budget}, ${several(blocks, "block")}`;
    });

    this.stopListening = listen(model, {
      step: () => this.show(),
      rule: () => this.show(),
      budget: () => this.show(),
      blocks: () => this.show(),
      arrivals: () => this.show(),
      _walk: () => this.rebuild(),
    });
    this.stop = model.alone ? answerTimeline(model) : () => {};
    this.rebuild();
  }

  makeSettings() {
    const node = make("div", "course-row course-timeline-settings");
    const menus = {};
    for (const [name, text] of MENUS) {
      const around = make("label");
      const menu = make("select");
      menu.addEventListener("change", () => {
        const value = ["budget", "blocks"].includes(name) ? +menu.value : menu.value;
        this.player.stop();
        const others = name === "arrivals" ? this.sets[value] : {}; // that go with it
        setTraits(this.model, { step: 0, ...others, [name]: value });
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
          Object.keys(this.sets).map((name) => [name, name]),
          this.model.get("arrivals"),
        );
        fill(menus.rule, this.rules, this.model.get("rule"));
        fill(menus.budget, sized(this.budgets, this.model.get("budget")), this.model.get("budget"));
        fill(
          menus.blocks,
          sized(this.pools, this.model.get("blocks")).map(([size]) => [
            size,
            `${size} of ${several(this.block_size, "token")}`,
          ]),
          this.model.get("blocks"),
        );
      },
    };
  }

  words(row, column) {
    const { used, held } = this.walk.steps[column];
    const { budget, blocks } = this.walk.settings;
    if (row === 0) return `Step ${column + 1}: ${used} of ${several(budget, "token")} of the budget are used.`;
    if (row === 1) return `Step ${column + 1}: ${held} of ${several(blocks, "block")} are held.`;
    return messageOfCell(this.walk, column, row - 2);
  }

  summary(step) {
    if (!step)
      return this.last ? `${several(this.walk.requests.length, "request")}, no step yet.` : "There is no step.";
    const { used, held, cells } = this.walk.steps[step - 1];
    const { budget, blocks } = this.walk.settings;
    const who = (kinds) =>
      this.walk.requests
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
    return (
      `Step ${step}: ${said || "nobody is there"}. ${used} of ${several(budget, "token")} and ${held} of ` +
      `${several(blocks, "block")} are used.`
    );
  }

  tell() {
    const step = Math.min(this.model.get("step"), this.last);
    this.message.show(this.pointed && this.pointed[1] < step ? this.words(...this.pointed) : this.summary(step));
  }

  showSums(step) {
    const { budget, blocks } = this.walk.settings;
    const found = measuresOf(this.walk, step, budget, blocks);
    const each = this.walk.requests.map(({ name }, row) => `${name} ${found.first[row] ?? "–"}`).join(", ");
    const sum = (key, number, text) => {
      const node = make("div", "course-timeline-sum", { "data-sum": key });
      node.append(make("b", "", {}, number), make("span", "course-faint", {}, text));
      return node;
    };
    this.sums.replaceChildren(
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

  rebuild() {
    this.walk = this.model.get("_walk");
    this.last = this.walk.steps.length;
    this.pointed = null;
    this.grid.rebuild();
    this.message.rooms([
      this.summary(0),
      ...this.walk.steps.flatMap((_, step) => [
        this.summary(step + 1),
        ...this.walk.requests.map((_, row) => messageOfCell(this.walk, step, row)),
      ]),
    ]);
    this.show();
  }

  show() {
    const step = Math.min(this.model.get("step"), this.last);
    const atEnd = step === this.last;
    this.player.show(step, this.last);
    this.settings.show();
    this.grid.show(step);
    this.showSums(step);
    this.problem.textContent = atEnd ? this.walk.problem || this.walk.silent || "" : "";
    this.problem.classList.toggle("course-timeline-silent", !this.walk.problem);
    this.tell();
    this.late.show(this.walk.settings);
  }

  remove() {
    this.stop();
    this.player.stop();
    this.late.stop();
    this.stopListening();
  }
}

// A row for the tokens, one for the blocks and one for each request. One cell is in the order of Tab; arrows go on.
class StepGrid {
  constructor(timeline) {
    this.timeline = timeline;
    this.node = makeScroll("course-timeline-scroll");
    this.table = make("table", "", { role: "grid", "aria-readonly": "true", "aria-label": "steps and requests" });
    this.node.append(this.table);
    this.rows = [];
    this.heads = [];
    this.here = [2, 0];
    this.node.addEventListener("pointerover", (event) => this.point(this.at(event)));
    this.node.addEventListener("pointerleave", () =>
      this.point(this.node.contains(document.activeElement) ? this.here : null),
    );
    this.node.addEventListener("focusin", (event) => {
      if (this.at(event)) {
        this.reach(this.at(event));
        this.point(this.here);
      }
    });
    this.node.addEventListener("focusout", () => this.point(null));
    this.node.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !this.at(event)) return;
      const target = placeReached(event, this.here, [this.rows.length, this.timeline.last]);
      if (!target) return;
      keepKey(event);
      this.reach(target);
      this.rows[this.here[0]][this.here[1]].focus();
    });
  }

  at(event) {
    const cell = event.target.closest?.("td");
    return cell ? [+cell.dataset.row, +cell.dataset.column] : null;
  }

  point(place) {
    this.timeline.pointed = place;
    this.timeline.tell();
  }

  reach(place) {
    this.rows[this.here[0]]?.[this.here[1]]?.setAttribute("tabindex", -1);
    this.here = place;
    this.rows[this.here[0]]?.[this.here[1]]?.setAttribute("tabindex", 0);
  }

  rebuild() {
    const line = make("tr", "", { role: "row" });
    const lines = [];
    this.heads = this.timeline.walk.steps.map((_, column) =>
      make("th", "", { scope: "col", role: "columnheader" }, column + 1),
    );
    line.append(make("th", "", { scope: "col", role: "columnheader" }, "step"), ...this.heads);
    const names = [
      nameOf("tokens"),
      nameOf("blocks"),
      ...this.timeline.walk.requests.map(({ name, prompt, new: count }) => nameOf(name, `${prompt} + ${count}`)),
    ];
    this.rows = names.map((head, row) => {
      const cells = this.timeline.walk.steps.map((_, column) =>
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
    this.node.style.setProperty("--steps", this.timeline.walk.steps.length);
    this.table.replaceChildren(line, ...lines);
    this.reach([2, 0]);
  }

  show(step) {
    const most = [this.timeline.model.get("budget"), this.timeline.model.get("blocks")];
    this.heads.forEach((head, column) => head.classList.toggle("course-timeline-now", column === step - 1));
    this.rows.forEach((cells, row) =>
      cells.forEach((cell, column) => {
        const seen = column < step;
        const each = this.timeline.walk.steps[column];
        cell.classList.toggle("course-timeline-now", column === step - 1);
        cell.setAttribute(
          "aria-label",
          seen ? this.timeline.words(row, column) : `step ${column + 1} is not planned yet`,
        );
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
        // is marked once
        const again = did === "finished" && this.timeline.walk.steps[column - 1].cells[row - 2][0] === "finished";
        cell.textContent = seen && did && !again ? SIGNS[did](count) : "";
      }),
    );
    const head = this.heads[step - 1];
    const side = 74; // the column in view, right of the names, which stay
    if (!head) this.node.scrollLeft = 0;
    else if (head.offsetLeft < this.node.scrollLeft + side) this.node.scrollLeft = head.offsetLeft - side;
    else
      this.node.scrollLeft = Math.max(
        this.node.scrollLeft,
        head.offsetLeft + head.offsetWidth + 6 - this.node.clientWidth,
      );
  }
}

const nameOf = (text, small) => {
  const head = make("th", "", { scope: "row", role: "rowheader" }, text);
  if (small) head.append(make("small", "", {}, small));
  return head;
};

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
      "Point at or tap a cell, or go to it with arrow keys, to read why. Beside a name: tokens of the prompt " +
        "+ tokens to write.",
    ),
  );
  return legend;
}

function render(options) {
  const timeline = new TimelineView(options);
  return () => timeline.remove();
}

export default { render };
