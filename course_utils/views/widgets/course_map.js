// Draws the cards of course_map.py: all words come from there, this draws bars and opens notebooks.

import { keepKeys, listen, make, makeRoot, makeSet, presses, setTraits } from "../shared/dom.js";
import { guessesOf, hearGuesses, inALine, readGuesses, summedUp } from "../shared/guessing.js";

const SAVING = 1500;
const ANSWER = 5000; // milliseconds
const SAVED = "Saving.";

class ProgressMapView {
  constructor({ model, el }) {
    this.model = model;
    const root = makeRoot(model, "course-map", { role: "group", "aria-label": "course map" });
    this.message = make("div", "course-map-message", { role: "status" });
    this.list = make("ol", "course-map-days");
    this.again = make("button", "course-map-again", { type: "button" }, "Read grades and guesses again");
    const head = make("div", "course-map-head");
    this.again.addEventListener("click", () => {
      setTraits(model, { _asked: model.get("_asked") + 1 });
    });
    // JupyterLab saves what is open, by the attribute; grading begins when that has had its time.
    this.grade = make(
      "button",
      "course-map-grade",
      { type: "button", "data-commandlinker-command": "docmanager:save-all", "data-commandlinker-args": "{}" },
      "Save and grade",
    );
    this.grade.addEventListener("click", () => {
      if (this.grade.getAttribute("aria-disabled") === "true") return;
      this.grade.setAttribute("aria-disabled", "true");
      this.busy.textContent = SAVED;
      setTimeout(() => {
        setTraits(model, { _gradings: model.get("_gradings") + 1 });
        setTimeout(() => {
          if (this.busy.textContent !== SAVED) return;
          this.showGrading();
          this.busy.textContent = "No kernel answers. Run this map's cell, then press the button again.";
        }, ANSWER);
      }, SAVING);
    });
    this.busy = make("div", "course-map-busy", { role: "status" });
    const buttons = make("div", "course-map-buttons");
    keepKeys(root, presses);
    buttons.append(this.grade, this.again);
    head.append(this.message, buttons, this.busy);
    root.append(head, this.list);
    el.append(root);
    this.stop = model.alone ? hearGuesses(() => this.show()) : () => {};
    this.stopListening = listen(model, { _shown: () => this.show(), _grading: () => this.showGrading() });
    this.show();
    this.showGrading();
  }

  showGrading() {
    const text = this.model.get("_grading");
    this.busy.textContent = text;
    this.grade.setAttribute("aria-disabled", String(text !== ""));
  }

  show() {
    const { lines, cards, home, grades } = this.model.get("_shown");
    const toFile = (kind, name, file) =>
      this.model.alone ? toPage(this.model, kind, name, file) : link(kind, name, inLab(file, home));
    this.grade.hidden = !grades;
    this.again.hidden = Boolean(this.model.alone);
    const days = this.model.alone ? Object.keys(readGuesses()) : [];
    const kept = days.flatMap(guessesOf);
    const all = kept.length ? [...lines, `Your guesses in this browser: ${summedUp(kept).join(" ")}`] : lines;
    if (this.message.textContent !== all.join(""))
      this.message.replaceChildren(...all.map((line) => make("div", "", {}, line)));
    const focused = [...this.list.querySelectorAll("a")].indexOf(document.activeElement);
    const said = ({ name }) => (this.model.alone ? inALine(guessesOf(name.split(" ")[1])) : "");
    const shown = cards.map((each) => ({ ...each, lines: [...each.lines, said(each)].filter(Boolean) }));
    this.list.replaceChildren(...shown.map((each) => card(each, toFile)));
    if (focused >= 0) this.list.querySelectorAll("a")[focused]?.focus();
  }

  remove() {
    this.stop();
    this.stopListening();
  }
}

function render(options) {
  const map = new ProgressMapView(options);
  return () => map.remove();
}

function card({ name, title, planned, part, lines, next, links }, toFile) {
  const item = make("li", planned ? "course-map-day course-map-planned" : "course-map-day");
  const heading = make("div", "course-map-title");
  heading.append(make("span", "course-map-number", {}, name), makeSet("span", "", {}, title));
  item.append(heading);
  if (part !== null) {
    const bar = make("div", "course-map-bar", { "aria-hidden": "true" });
    bar.append(make("div", "", { style: `width:${100 * part}%` }));
    item.append(bar);
  }
  for (const line of lines) item.append(make("div", "course-map-line", {}, line));
  if (next) item.append(make("div", "course-map-next", {}, next));
  const row = make("div", "course-map-links");
  for (const [kind, file] of links) row.append(toFile(kind, name, file));
  if (links.length) item.append(row);
  return item;
}

// JupyterLab opens the notebook in place, by these attributes; the address is for another tab. Elsewhere it is a name.
function link(kind, name, path) {
  if (path === null) return make("span", "", {}, kind);
  const href = `${labConfig().baseUrl}lab/tree/${path.split("/").map(encodeURIComponent).join("/")}`;
  return make(
    "a",
    "",
    {
      href,
      "aria-label": `${kind} of ${name}`,
      "data-commandlinker-command": "docmanager:open",
      "data-commandlinker-args": JSON.stringify({ path }),
    },
    kind,
  );
}

// On a page without a kernel: the page of a notebook, which is given by its path in the course. The host may say where
// it is by `model.page(path)`; else the pages lie as the notebooks do, and the map among the lessons.
function toPage(model, kind, name, path) {
  const href = model.page?.(path) ?? `../${path.replace(/\.ipynb$/, ".html")}`;
  return make("a", "", { href, "aria-label": `${kind} of ${name}` }, kind);
}

// A file's path as JupyterLab counts it, from the folder that it serves, or null.
function inLab(file, home) {
  const root = labConfig().serverRoot?.replace(/^~/, home).replace(/\/$/, "");
  return root !== undefined && file.startsWith(`${root}/`) ? file.slice(root.length + 1) : null;
}

const labConfig = () => JSON.parse(document.getElementById("jupyter-config-data")?.textContent ?? "{}");

export default { render };
