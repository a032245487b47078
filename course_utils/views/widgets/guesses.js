// Shows the guesses of a day; all words come from guesses.py.

function render({ model, el }) {
  const root = makeRoot(model, "course-guesses", { role: "group", "aria-label": model.get("_shown").title });
  const title = make("div", "course-guesses-title"), told = make("div", "course-guesses-told", { role: "status" });
  const list = make("ol", "course-guesses-list");
  root.append(title, told, list);
  el.append(root);

  function show() {
    const { title: name, told: lines, rows } = model.get("_shown");
    title.textContent = name;
    told.textContent = lines.join(" ");
    list.replaceChildren(...rows.map(([asked, guess, truth, near]) => {
      const row = make("li"), came = `${guess}; computed ${truth}: ${near}`;
      row.append(make("div", "", {}, asked), make("div", "course-guesses-near", {}, came));
      return row;
    }));
    list.hidden = rows.length === 0;
  }
  model.on("change:_shown", show);
  show();
  model.set("_asked", model.get("_asked") + 1); // with a kernel: read what is kept
  model.save_changes();
  return () => model.off("change:_shown", show);
}

export default { render };
