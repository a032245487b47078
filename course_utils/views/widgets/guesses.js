// Shows the guesses of a day; the words come from guesses.py, and without a kernel from guessing.js.

import { listen, make, makeRoot, makeSet, setTraits } from "../shared/dom.js";
import { brief, guessesOf, hearGuesses, judge, summedUp } from "../shared/guessing.js";

function render({ model, el }) {
  const root = makeRoot(model, "course-guesses", { role: "group", "aria-label": model.get("_shown").title });
  const title = make("div", "course-guesses-title");
  const note = make("div", "course-guesses-message", { role: "status" });
  const list = make("ol", "course-guesses-list");
  root.append(title, note, list);
  el.append(root);

  function show() {
    const { title: name, lines, rows } = model.get("_shown");
    title.textContent = name;
    note.textContent = lines.join(" ");
    list.replaceChildren(
      ...rows.map(([asked, guess, truth, near]) => {
        const row = make("li");
        const came = `${guess}; computed ${truth}: ${near}`;
        row.append(makeSet("div", "", {}, asked), make("div", "course-guesses-near", {}, came));
        return row;
      }),
    );
    list.hidden = rows.length === 0;
  }
  // Without a kernel: those that this browser keeps.
  function readHere() {
    const { title: name, day } = model.get("_shown");
    const kept = guessesOf(day);
    const rows = kept.map(({ asked, first }) => [
      asked.question,
      answer(asked, first),
      answer(asked, asked.truth),
      judge(asked, first).text,
    ]);
    model.set("_shown", { title: name, day, lines: summedUp(kept), rows });
  }
  const stop = model.alone ? hearGuesses(readHere) : () => {};
  const stopListening = listen(model, { _shown: show });
  show();
  if (model.alone) readHere();
  setTraits(model, { _asked: model.get("_asked") + 1 }); // with a kernel: read what is kept
  return () => {
    stop();
    stopListening();
  };
}

function answer({ kind, choices, unit }, values) {
  if (kind === "choice") return choices[values[0]];
  const ends = kind === "number" ? [values[0]] : [values[0], values.at(-1)];
  return `${ends.map((value) => brief(value)).join(" … ")}${["", "%"].includes(unit) ? unit : ` ${unit}`}`;
}

export default { render };
