// Shows the questions of quiz.py; the explanations and the score lines come from there.

import { keepKeys, listen, make, makeRoot, newId, presses, setTraits, typeset } from "../shared/dom.js";

const write = (tag, name, attributes, text) => {
  const node = make(tag, name, attributes);
  if (text !== undefined) node.append(...rich(text));
  return node;
};
const rich = (text) => text.split("`").flatMap((part, i) => (i % 2 ? make("code", "", {}, part) : typeset(part)));

class QuizView {
  constructor({ model, el }) {
    this.model = model;
    this.questions = model.get("_questions");
    const uid = newId("course-quiz");
    const root = makeRoot(model, "course-quiz", { role: "group", "aria-label": "quiz" });

    this.items = this.questions.map((question, q) => {
      const item = write("fieldset", "course-quiz-question");
      const legend = write("legend", "", {}, `${question.number}. ${question.question}`);
      const feedback = write("div", "course-quiz-why");
      const note = write("div", "course-quiz-message", { role: "status" });
      const inputs = question.choices.map((choice, c) => {
        const label = write("label", "course-quiz-choice");
        const input = write("input", "", { type: "radio", name: `${uid}-${q}`, value: c });
        input.addEventListener("change", () => this.answer(q, c));
        label.append(input, write("span", "", {}, choice.text));
        item.append(label);
        return input;
      });
      item.prepend(legend);
      feedback.append(note);
      item.append(feedback);
      root.append(item);
      return { inputs, feedback, note };
    });
    const end = write("div", "course-quiz-end");
    this.score = write("div", "course-quiz-score", { role: "status" });
    const again = write("button", "course-quiz-again", { type: "button" }, "Start again");
    again.addEventListener("click", () => {
      setTraits(model, { answers: this.questions.map(() => null) });
      this.items[0].inputs[0].focus();
    });
    end.append(this.score, again);
    root.append(end);
    el.append(root);

    keepKeys(root, (event) => presses(event) || /^Arrow/.test(event.key));
    root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.type === "radio") event.target.click(); // as Space does by itself
    });
    this.show();
    this.stopListening = listen(model, { answers: () => this.show() });
  }

  answer(q, c) {
    setTraits(this.model, { answers: this.model.get("answers").map((old, i) => (i === q ? c : old)) });
  }

  show() {
    const answers = this.model.get("answers");
    let right = 0;
    this.items.forEach(({ inputs, feedback, note }, q) => {
      const chosen = answers[q];
      const choice = chosen === null ? null : this.questions[q].choices[chosen];
      inputs.forEach((input, c) => {
        input.checked = c === chosen;
      });
      feedback.dataset.verdict = choice === null ? "" : choice.right ? "right" : "wrong";
      const said = choice === null ? "" : `${choice.verdict} ${choice.why}`;
      if (note.dataset.said !== said) {
        note.dataset.said = said;
        note.replaceChildren(...rich(said));
      }
      right += choice?.right ? 1 : 0;
    });
    const done = answers.every((chosen) => chosen !== null);
    const open = answers.filter((chosen) => chosen === null).length;
    this.score.textContent = done ? this.model.get("_scores")[right] : `${open} of ${answers.length} still to answer`;
    this.score.classList.toggle("course-quiz-done", done);
  }

  remove() {
    this.stopListening();
  }
}

function render(options) {
  const quiz = new QuizView(options);
  return () => quiz.remove();
}

export default { render };
