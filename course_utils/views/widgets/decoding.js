// Shows the forward passes that decoding.py counted; all of them are here, so stepping needs no kernel.

import { keepKeys, listen, make, makeRoot, makeScroll, setTraits } from "../shared/dom.js";
import { makeMessage, Player } from "../shared/player.js";
import { answerDecoding } from "./decoding_alone.js";

const STATES = { n: "now", m: "masked", r: "read", p: "past" };

const HINT = "Step through the passes, then keep keys and values and step again; or take words of your own.";
const WAITS = "waiting for Python, which counts while the kernel runs";

class DecodeView {
  frames;
  given;
  last;
  head;
  rows;
  constructor({ model, el }) {
    this.model = model;
    ({ counters: this.counters, states: this.states } = model.get("_layout"));
    const root = makeRoot(model, "course-decoding", { role: "group", "aria-label": model.get("title") });
    this.player = new Player(model, "passes", "pass", 1);
    this.cached = make("input", "", { type: "checkbox" });
    const label = make("label", "course-decoding-cached");
    label.append(this.cached, make("span", "", {}, "keep keys and values (cache)"));
    this.cached.addEventListener("change", () => setTraits(this.model, { cached: this.cached.checked }));
    const form = this.drawForm();
    this.late = null;

    this.message = makeMessage("course-message course-decoding-message");
    this.wide = makeScroll("course-decoding-wide", { tabindex: 0, role: "img" });
    const legend = this.drawLegend();
    const table = this.drawCounters();
    root.append(
      this.player.node,
      label,
      this.message.node,
      this.wide,
      legend,
      table,
      form,
      make("div", "course-faint", {}, HINT),
    );
    this.player.keys(root);
    el.append(root);
    this.listenToModel();
  }

  drawForm() {
    // The fields for other words. Python counts anew; until it has, the old passes stay.
    const form = make("form", "course-decoding-words");
    this.problem = make("div", "course-decoding-problem", { role: "alert" });
    this.fields = ["prompt", "then it writes"].map((text) => {
      const named = make("label");
      const field = make("input", "", { type: "text", autocomplete: "off", spellcheck: "false" });
      named.append(make("span", "", {}, text), field);
      form.append(named);
      return field;
    });
    form.append(make("button", "", { type: "submit" }, "use these words"), this.problem);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      setTraits(this.model, { _typed: this.fields.map((field) => field.value.trim().split(/\s+/).join(" ")) });
      this.showProblem();
    });
    keepKeys(form, (event) => {
      const changed = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      return !["Tab", "Escape"].includes(event.key) && !(changed && ["Enter", "s"].includes(event.key));
    });
    return form;
  }

  drawLegend() {
    const legend = make("div", "course-legend course-decoding-legend");
    for (const state of Object.values(STATES)) {
      const entry = make("span");
      entry.append(
        make("span", `course-decoding-cell course-decoding-${state}`),
        make("span", "", {}, this.states[state]),
      );
      legend.append(entry);
    }
    return legend;
  }

  drawCounters() {
    const table = make("table", "course-decoding-counters", { "aria-label": "what the passes cost" });
    const top = table.createTHead().insertRow();
    const second = table.tHead.insertRow();
    top.append(
      make("td"),
      make("th", "", { colspan: 2, scope: "colgroup" }, "this pass"),
      make("th", "", { colspan: 2, scope: "colgroup" }, "passes so far"),
    );
    second.append(
      make("td"),
      ...["without", "with cache", "without", "with cache"].map((text) => make("th", "", { scope: "col" }, text)),
    );
    this.counts = this.counters.map((name) => {
      const row = (table.tBodies[0] || table.createTBody()).insertRow();
      row.append(make("th", "", { scope: "row" }, name));
      return Array.from({ length: 4 }, () => row.appendChild(make("td")));
    });
    return table;
  }

  listenToModel() {
    this.stopListening = listen(this.model, {
      step: () => this.show(),
      cached: () => this.show(),
      _frames: () => this.rebuild(),
      _answered: () => this.showProblem(),
      _problem: () => this.showProblem(),
    });
    this.stop = this.model.alone ? answerDecoding(this.model) : () => {};
    this.build();
    this.show();
    this.showProblem();
  }

  showProblem() {
    const waits = () => this.model.get("_typed").join("\n") !== this.model.get("_answered").join("\n");
    clearTimeout(this.late);
    if (waits())
      this.late = setTimeout(() => {
        if (waits()) this.problem.textContent = WAITS;
      }, 400);
    else this.problem.textContent = this.model.get("_problem");
  }

  build() {
    const tokens = this.model.get("_tokens");
    const n = tokens.length;
    this.frames = this.model.get("_frames");
    this.given = n - this.frames.length;
    this.last = this.frames.length - 1;
    this.message.rooms(this.frames.flatMap((frame) => Object.values(frame.message)));
    const grid = make("table", "course-decoding-grid", { "aria-hidden": "true" });
    this.head = grid.createTHead().insertRow();
    this.head.append(
      make("td"),
      ...["Q", "K", "V"].map((text) => make("th", "", {}, text)),
      make("td", "course-decoding-gap"),
    );
    tokens.forEach((token) => {
      const cell = make("th", "course-decoding-key");
      cell.append(make("span", "", {}, token));
      this.head.append(cell);
    });
    const body = grid.createTBody();
    this.rows = tokens.map((token) => {
      const row = body.insertRow();
      const name = make("th", "", {}, token);
      row.append(name);
      const cells = Array.from({ length: n + 3 }, (_, j) => {
        if (j === 3) row.append(make("td", "course-decoding-gap"));
        return row.appendChild(make("td", "course-decoding-cell"));
      });
      return { row, name, cells };
    });
    this.wide.style.setProperty("--columns", n + 5);
    this.wide.replaceChildren(grid);
    this.model.get("_typed").forEach((text, i) => {
      this.fields[i].value = text;
    });
  }

  show() {
    const step = Math.min(this.model.get("step"), this.last);
    const mode = this.model.get("cached") ? "with" : "without";
    const frame = this.frames[step];
    this.player.show(step, this.last);
    this.cached.checked = mode === "with";
    this.message.show(frame.message[mode]);
    this.wide.setAttribute("aria-label", frame.message[mode]);
    this.rows.forEach(({ row, name, cells }, i) => {
      const kinds = frame.cells[mode][i];
      row.classList.toggle("course-decoding-absent", i >= this.given + step);
      name.classList.toggle("course-decoding-written", i >= this.given);
      cells.forEach((cell, j) => {
        const state = STATES[kinds[j]];
        cell.className = `course-decoding-cell${state ? ` course-decoding-${state}` : ""}`;
      });
    });
    this.head
      .querySelectorAll(".course-decoding-key")
      .forEach((cell, i) => cell.classList.toggle("course-decoding-absent", i >= this.given + step));
    frame.table.forEach((texts, r) =>
      texts.forEach((text, c) => {
        this.counts[r][c].textContent = text;
        this.counts[r][c].classList.toggle("course-decoding-current", (c % 2 === 1) === (mode === "with"));
      }),
    );
  }

  rebuild() {
    this.player.stop();
    this.build();
    this.show();
  }

  remove() {
    this.stop();
    this.player.stop();
    clearTimeout(this.late);
    this.stopListening();
  }
}

function render(options) {
  const decoder = new DecodeView(options);
  return () => decoder.remove();
}

export default { render };
