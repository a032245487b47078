// Shows the problem of practice.py; what is said of each step comes from there.

import { keepKeys, listen, make, makeRoot, newId, presses, setTraits, typeset } from "../shared/dom.js";
import { answerPractice } from "./practice_alone.js";

const NOTHING = "All fields are empty. Write a value into one of them, then check.";

// A text whose matrices, such as [2  0; −1  2], are grids; its brackets and semicolons are there for those who copy or
// listen.
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

class PracticeView {
  constructor({ model, el }) {
    this.model = model;
    this.uid = newId("course-practice");
    this.root = makeRoot(model, "course-practice", {
      role: "group",
      "aria-label": `pencil practice: ${model.get("kind")}`,
    });
    this.drawHead();
    this.message = make("pre", "course-practice-message");
    this.steps = make("div", "course-practice-steps");
    this.drawFoot();
    this.limitToStoredProblems();
    this.root.append(
      this.head,
      this.message,
      make("p", "course-faint course-practice-how", {}, model.get("_how")),
      this.steps,
      this.foot,
    );
    el.append(this.root);
    this.rows = [];
    this.checked = false;
    this.bindKeys();
    this.bindButtons();
    this.bindNumber();
    this.stopListening = listen(model, {
      _posed: () => this.pose(),
      _judged: () => this.mark(),
      _summary: () => this.mark(),
      entries: () => this.fill(),
      shown: () => this.reveal(),
    });
    this.stop = model.alone ? answerPractice(model) : () => {};
    this.pose();
  }

  drawHead() {
    this.head = make("div", "course-row course-practice-head");
    const title = make("label", "", { for: `${this.uid}-number` }, `${this.model.get("kind")}, number`);
    this.number = make("input", "course-practice-number", {
      id: `${this.uid}-number`,
      type: "number",
      min: 0,
      max: 1e9,
      step: 1,
    });
    this.another = make("button", "", { type: "button" }, "Another problem");
    this.head.append(title, this.number, this.another);
  }

  drawFoot() {
    this.foot = make("div", "course-row course-practice-foot");
    this.check = make("button", "", { type: "button" }, "Check");
    this.show = make("button", "", { type: "button", "aria-pressed": "false" }, "Show the right values");
    this.summary = make("div", "course-practice-summary", { role: "status" });
    this.foot.append(this.check, this.show, this.summary);
  }

  limitToStoredProblems() {
    if (this.model.alone) {
      const numbers = this.model.get("_alone").problems.map(({ number: each }) => each);
      const last = numbers.at(-1);
      const runs = numbers.every((each, i) => each === numbers[0] + i);
      const all = runs ? `${numbers[0]} to ${last}` : numbers.join(", ");
      Object.assign(this.number, { min: numbers[0], max: last });
      this.head.append(
        make(
          "span",
          "course-faint course-practice-few",
          {},
          `This page has ${numbers.length} problems, numbers ${all}; JupyterLab has ten thousand.`,
        ),
      );
    }
  }

  bindKeys() {
    keepKeys(this.root, (event) => presses(event) || event.target.tagName === "INPUT");
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.rows.some(({ input }) => input === event.target)) this.judge();
    });
  }

  bindButtons() {
    this.check.addEventListener("click", () => this.judge());
    this.show.addEventListener("click", () => {
      setTraits(this.model, { shown: !this.model.get("shown") });
    });
    this.another.addEventListener("click", () => {
      setTraits(this.model, { _another: this.model.get("_another") + 1 });
    });
  }

  bindNumber() {
    this.number.addEventListener("change", () => {
      const wanted = Number(this.number.value);
      const has = !this.model.alone || this.model.get("_alone").problems.some(({ number: each }) => each === wanted);
      if (this.number.value === "" || !this.number.checkValidity() || !has) {
        this.number.value = this.model.get("number");
        return;
      }
      setTraits(this.model, { number: wanted });
    });
  }

  judge() {
    this.checked = true;
    setTraits(this.model, { entries: this.rows.map(({ input }) => input.value) });
    this.mark();
  }

  pose() {
    this.checked = false;
    const posed = this.model.get("_posed");
    this.number.value = this.model.get("number");
    this.message.replaceChildren(...withGrids(posed.statement));
    this.rows = posed.steps.map((step, place) => {
      const id = `${this.uid}-${place}`;
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
    this.steps.replaceChildren(...this.rows.map(({ row }) => row));
    this.mark();
    this.fill();
    this.reveal();
  }

  mark() {
    this.model.get("_judged").forEach((judged, place) => {
      const { row, input, sign, said } = this.rows[place] ?? {};
      if (!row) return;
      row.dataset.status = judged.status;
      input.setAttribute("aria-invalid", String(["wrong", "unread"].includes(judged.status)));
      sign.textContent = judged.sign;
      said.textContent = judged.said;
    });
    const nothing = this.checked && this.model.get("entries").every((entry) => !entry.trim());
    this.summary.textContent = nothing ? NOTHING : this.model.get("_summary");
  }

  fill() {
    const entries = this.model.get("entries");
    this.rows.forEach(({ input }, place) => {
      if (document.activeElement !== input) input.value = entries[place] ?? "";
    });
  }

  reveal() {
    const shown = this.model.get("shown");
    this.show.setAttribute("aria-pressed", String(shown));
    this.rows.forEach(({ right }) => {
      right.hidden = !shown;
    });
  }

  remove() {
    this.stop();
    this.stopListening();
  }
}

function render(options) {
  const practice = new PracticeView(options);
  return () => practice.remove();
}

export default { render };
