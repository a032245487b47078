// Shows the forward passes that decoding.py counted; all of them are here, so stepping needs no kernel.

import { keepKeys, listen, make, makeRoot, makeScroll } from "../shared/dom.js";
import { makePlayer, makeTold } from "../shared/player.js";
import { answerDecoding } from "./decoding_alone.js";

const STATES = { n: "now", m: "masked", r: "read", p: "past" };

const HINT = "Step through the passes, then keep keys and values and step again; or take words of your own.";
const WAITS = "waiting for Python, which counts while the kernel runs";

function render({ model, el }) {
  const { counters, states } = model.get("_layout");
  const root = makeRoot(model, "course-decoding", { role: "group", "aria-label": model.get("title") });
  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const player = makePlayer(model, "passes", "pass", 1);
  const cached = make("input", "", { type: "checkbox" });
  const label = make("label", "course-decoding-cached");
  label.append(cached, make("span", "", {}, "keep keys and values (cache)"));
  cached.addEventListener("change", () => set("cached", cached.checked));

  // The fields for other words. Python counts anew; until it has, the old passes stay.
  const form = make("form", "course-decoding-words");
  const problem = make("div", "course-decoding-problem", { role: "alert" });
  const fields = ["prompt", "then it writes"].map((text) => {
    const named = make("label");
    const field = make("input", "", { type: "text", autocomplete: "off", spellcheck: "false" });
    named.append(make("span", "", {}, text), field);
    form.append(named);
    return field;
  });
  form.append(make("button", "", { type: "submit" }, "use these words"), problem);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    set(
      "_typed",
      fields.map((field) => field.value.trim().split(/\s+/).join(" ")),
    );
    showProblem();
  });
  keepKeys(form, (event) => {
    const changed = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    return !["Tab", "Escape"].includes(event.key) && !(changed && ["Enter", "s"].includes(event.key));
  });
  let late = null;
  function showProblem() {
    const waits = () => model.get("_typed").join("\n") !== model.get("_answered").join("\n");
    clearTimeout(late);
    if (waits())
      late = setTimeout(() => {
        if (waits()) problem.textContent = WAITS;
      }, 400);
    else problem.textContent = model.get("_problem");
  }

  const told = makeTold("course-told course-decoding-told");
  const wide = makeScroll("course-decoding-wide", { tabindex: 0, role: "img" });
  let frames;
  let given;
  let last;
  let head;
  let rows;
  function build() {
    const tokens = model.get("_tokens");
    const n = tokens.length;
    frames = model.get("_frames");
    given = n - frames.length;
    last = frames.length - 1;
    told.rooms(frames.flatMap((frame) => Object.values(frame.told)));
    const grid = make("table", "course-decoding-grid", { "aria-hidden": "true" });
    head = grid.createTHead().insertRow();
    head.append(
      make("td"),
      ...["Q", "K", "V"].map((text) => make("th", "", {}, text)),
      make("td", "course-decoding-gap"),
    );
    tokens.forEach((token) => {
      const cell = make("th", "course-decoding-key");
      cell.append(make("span", "", {}, token));
      head.append(cell);
    });
    const body = grid.createTBody();
    rows = tokens.map((token) => {
      const row = body.insertRow();
      const name = make("th", "", {}, token);
      row.append(name);
      const cells = Array.from({ length: n + 3 }, (_, j) => {
        if (j === 3) row.append(make("td", "course-decoding-gap"));
        return row.appendChild(make("td", "course-decoding-cell"));
      });
      return { row, name, cells };
    });
    wide.style.setProperty("--columns", n + 5);
    wide.replaceChildren(grid);
    model.get("_typed").forEach((text, i) => {
      fields[i].value = text;
    });
  }
  const legend = make("div", "course-legend course-decoding-legend");
  for (const state of Object.values(STATES)) {
    const entry = make("span");
    entry.append(make("span", `course-decoding-cell course-decoding-${state}`), make("span", "", {}, states[state]));
    legend.append(entry);
  }

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
  const counts = counters.map((name) => {
    const row = (table.tBodies[0] || table.createTBody()).insertRow();
    row.append(make("th", "", { scope: "row" }, name));
    return Array.from({ length: 4 }, () => row.appendChild(make("td")));
  });
  root.append(player.node, label, told.node, wide, legend, table, form, make("div", "course-faint", {}, HINT));
  player.keys(root);
  el.append(root);

  function show() {
    const step = Math.min(model.get("step"), last);
    const mode = model.get("cached") ? "with" : "without";
    const frame = frames[step];
    player.show(step, last);
    cached.checked = mode === "with";
    told.show(frame.told[mode]);
    wide.setAttribute("aria-label", frame.told[mode]);
    rows.forEach(({ row, name, cells }, i) => {
      const kinds = frame.cells[mode][i];
      row.classList.toggle("course-decoding-absent", i >= given + step);
      name.classList.toggle("course-decoding-written", i >= given);
      cells.forEach((cell, j) => {
        const state = STATES[kinds[j]];
        cell.className = `course-decoding-cell${state ? ` course-decoding-${state}` : ""}`;
      });
    });
    head
      .querySelectorAll(".course-decoding-key")
      .forEach((cell, i) => cell.classList.toggle("course-decoding-absent", i >= given + step));
    frame.table.forEach((texts, r) =>
      texts.forEach((text, c) => {
        counts[r][c].textContent = text;
        counts[r][c].classList.toggle("course-decoding-current", (c % 2 === 1) === (mode === "with"));
      }),
    );
  }
  const rebuild = () => {
    player.stop();
    build();
    show();
  };
  const stopListening = listen(model, {
    step: show,
    cached: show,
    _frames: rebuild,
    _answered: showProblem,
    _problem: showProblem,
  });
  const stop = model.alone ? answerDecoding(model) : () => {};
  build();
  show();
  showProblem();
  return () => {
    stop();
    player.stop();
    clearTimeout(late);
    stopListening();
  };
}

export default { render };
