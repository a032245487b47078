// Shows the problem of practice.py; what is said of each step comes from there.

import { keepKeys, listen, make, makeRoot, newId, presses, typeset } from "../shared/dom.js";
import { answerPractice } from "./practice_alone.js";

const NOTHING = "All fields are empty. Write a value into one of them, then check.";

// A text whose matrices, such as [2  0; −1  2], are grids; its brackets and semicolons are there for those who copy or listen.
function withGrids(text) {
  return text.split(/(\[[^\]]*;[^\]]*\])/).flatMap((part, i) => (i % 2 ? [gridOf(part)] : typeset(part)));
}
function gridOf(text) {
  const unseen = (sign) => make("span", "", { style: "font-size: 0" }, sign);
  const rows = text
    .slice(1, -1)
    .split("; ")
    .map((row) => row.split("  "));
  const grid = make("span", "course-practice-grid", {
    style: `grid-template-columns: repeat(${rows[0].length}, auto)`,
  });
  rows.forEach((row, i) =>
    row.forEach((number, j) => {
      const cell = make("span");
      const isLast = j === row.length - 1;
      cell.append(unseen(i || j ? "" : "["), number, unseen(!isLast ? "  " : i < rows.length - 1 ? "; " : "]"));
      grid.append(cell);
    }),
  );
  return grid;
}

function render({ model, el }) {
  const uid = newId("course-practice");
  const root = makeRoot(model, "course-practice", {
    role: "group",
    "aria-label": `pencil practice: ${model.get("kind")}`,
  });
  const head = make("div", "course-row course-practice-head");
  const title = make("label", "", { for: `${uid}-number` }, `${model.get("kind")}, number`);
  const number = make("input", "course-practice-number", {
    id: `${uid}-number`,
    type: "number",
    min: 0,
    max: 1e9,
    step: 1,
  });
  const another = make("button", "", { type: "button" }, "Another problem");
  head.append(title, number, another);
  const told = make("pre", "course-practice-told");
  const steps = make("div", "course-practice-steps");
  const foot = make("div", "course-row course-practice-foot");
  const check = make("button", "", { type: "button" }, "Check");
  const show = make("button", "", { type: "button", "aria-pressed": "false" }, "Show the right values");
  const summary = make("div", "course-practice-summary", { role: "status" });
  foot.append(check, show, summary);
  if (model.alone) {
    const numbers = model.get("_alone").problems.map(({ number: each }) => each);
    const last = numbers.at(-1);
    const runs = numbers.every((each, i) => each === numbers[0] + i);
    const all = runs ? `${numbers[0]} to ${last}` : numbers.join(", ");
    Object.assign(number, { min: numbers[0], max: last });
    head.append(
      make(
        "span",
        "course-faint course-practice-few",
        {},
        `This page has ${numbers.length} problems, numbers ${all}; JupyterLab has ten thousand.`,
      ),
    );
  }
  root.append(head, told, make("p", "course-faint course-practice-how", {}, model.get("_how")), steps, foot);
  el.append(root);
  let rows = [];
  let checked = false;

  keepKeys(root, (event) => presses(event) || event.target.tagName === "INPUT");
  root.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && rows.some(({ input }) => input === event.target)) judge();
  });
  check.addEventListener("click", judge);
  show.addEventListener("click", () => {
    model.set("shown", !model.get("shown"));
    model.save_changes();
  });
  another.addEventListener("click", () => {
    model.set("_another", model.get("_another") + 1);
    model.save_changes();
  });
  number.addEventListener("change", () => {
    const wanted = Number(number.value);
    const has = !model.alone || model.get("_alone").problems.some(({ number: each }) => each === wanted);
    if (number.value === "" || !number.checkValidity() || !has) {
      number.value = model.get("number");
      return;
    }
    model.set("number", wanted);
    model.save_changes();
  });

  function judge() {
    checked = true;
    model.set(
      "entries",
      rows.map(({ input }) => input.value),
    );
    model.save_changes();
    mark();
  }
  function pose() {
    checked = false;
    const posed = model.get("_posed");
    number.value = model.get("number");
    told.replaceChildren(...withGrids(posed.told));
    rows = posed.steps.map((step, place) => {
      const id = `${uid}-${place}`;
      const label = make("label", "", { for: id });
      const input = make("input", "", {
        id,
        type: "text",
        autocomplete: "off",
        spellcheck: "false",
        "aria-describedby": `${id}-said`,
      });
      label.append(make("b", "", {}, step.name), ...typeset(`: ${step.asked} (${step.shape})`));
      const sign = make("span", "course-practice-sign", { "aria-hidden": "true" });
      const said = make("div", "course-practice-said", { id: `${id}-said` });
      const right = make("div", "course-practice-right", {}, `right: ${step.right}`);
      const row = make("div", "course-practice-step");
      row.append(label, input, sign, said, right);
      return { row, input, sign, said, right };
    });
    steps.replaceChildren(...rows.map(({ row }) => row));
    mark();
    fill();
    reveal();
  }
  function mark() {
    model.get("_judged").forEach((judged, place) => {
      const { row, input, sign, said } = rows[place] ?? {};
      if (!row) return;
      row.dataset.status = judged.status;
      input.setAttribute("aria-invalid", String(["wrong", "unread"].includes(judged.status)));
      sign.textContent = judged.sign;
      said.textContent = judged.said;
    });
    const nothing = checked && model.get("entries").every((entry) => !entry.trim());
    summary.textContent = nothing ? NOTHING : model.get("_summary");
  }
  function fill() {
    const entries = model.get("entries");
    rows.forEach(({ input }, place) => {
      if (document.activeElement !== input) input.value = entries[place] ?? "";
    });
  }
  function reveal() {
    const shown = model.get("shown");
    show.setAttribute("aria-pressed", String(shown));
    rows.forEach(({ right }) => {
      right.hidden = !shown;
    });
  }
  const stopListening = listen(model, { _posed: pose, _judged: mark, _summary: mark, entries: fill, shown: reveal });
  const stop = model.alone ? answerPractice(model) : () => {};
  pose();
  return () => {
    stop();
    stopListening();
  };
}

export default { render };
