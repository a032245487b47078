// The search: suggestions below a field while one types, and the page of results. Results are the sections that hold
// all words of a query, the best first, each with where it says them. The words are read and stemmed as Sphinx does it.

const MOST = 40; // places that are shown
const AROUND = 220; // characters of an excerpt
const SUGGESTED = 8; // suggestions
const MARK = "\u2063"; // before and behind a formula
const WORD = /[\p{Letter}\p{Number}_]+/gu;
let places = [];
let formulas = {};
course.titles = (pages) => {
  places = Object.entries(pages).flatMap(([page, sections]) =>
    sections.map(([anchor, title]) => ({
      page,
      anchor,
      title,
      plain: title.replaceAll(MARK, ""),
      of: anchor && sections[0][1],
      glossary: page === "glossary",
    })),
  );
};
course.texts = (pages) => {
  const texts = Object.values(pages).flat();
  places.forEach((place, at) => {
    place.text = texts[at];
  });
};
course.formulas = (texts) => {
  formulas = texts;
};

let stemmer;
const stems = new Map();
const level = (word) => word.normalize("NFKC").replaceAll("_", ""); // who looks for d_k finds dₖ
const stem = (word) => stems.get(word) ?? stems.set(word, level(stemmer.stemWord(word))).get(word);
const wordsOf = (text) => text.toLowerCase().match(WORD) ?? [];
const stemmed = (text) => wordsOf(text).map(stem);
const is = (word) => (other) => other === word || (word.length > 2 && other.startsWith(word));
const beside = (wanted, words) => words.some((_, at) => wanted.every((word, i) => words[at + i] === word));
const address = ({ page, anchor }) => new URL(`../${page}.html${anchor && `#${anchor}`}`, course.base).href;

// How well a place fits; 0 where it lacks a word. A title counts most, then words that stand beside one another.
function score(place, wanted) {
  place.titled ??= stemmed(place.title);
  place.words ??= stemmed(place.text);
  let sum = 0;
  for (const word of wanted) {
    const titled = place.titled.some(is(word));
    const times = place.words.filter(is(word)).length;
    if (!titled && !times) return 0;
    sum += (titled ? 10 : 0) + Math.log2(1 + times);
  }
  if (place.titled.join() === wanted.join()) sum += place.glossary ? 100 : 50;
  return sum + (beside(wanted, place.titled) ? 15 : 0) + (wanted.length > 1 && beside(wanted, place.words) ? 10 : 0);
}

// Text as nodes, with formulas set and the words of a query marked.
function* typeset(text, matches = () => false) {
  for (const [at, piece] of text.split(MARK).entries()) {
    let done = 0;
    const found = [...piece.matchAll(WORD)].filter(matches);
    if (at % 2) {
      const formula = document.createElement(found.length ? "mark" : "span");
      formula.className = "formula";
      formula.innerHTML = formulas[piece];
      yield formula;
      continue;
    }
    for (const { 0: word, index } of found) {
      const mark = document.createElement("mark");
      mark.textContent = word;
      yield piece.slice(done, index);
      yield mark;
      done = index + word.length;
    }
    yield piece.slice(done);
  }
}

// The text about the first of the words; no formula is cut.
function excerpt(text, wanted) {
  const shown = document.createElement("p");
  const matches = ({ 0: word }) => wanted.some((each) => is(each)(stem(word.toLowerCase())));
  const inside = (at) => text.slice(0, at).split(MARK).length % 2 === 0;
  const first = [...text.matchAll(WORD)].find(matches)?.index ?? 0;
  let from = first < AROUND / 2 ? 0 : text.indexOf(" ", first - AROUND / 2) + 1;
  if (inside(from)) from = text.lastIndexOf(MARK, from - 1);
  let until = from + AROUND < text.length ? Math.max(text.lastIndexOf(" ", from + AROUND), first) : text.length;
  if (inside(until)) until = text.indexOf(MARK, until) + 1;
  shown.append(from ? "… " : "", ...typeset(text.slice(from, until), matches), until < text.length ? " …" : "");
  return shown;
}

// What a section says, or the first of its parts where it has no words of its own.
function saidAt(place) {
  const page = places.filter((other) => other.page === place.page);
  const at = page.indexOf(place);
  return [...page.slice(at), ...page].find(({ text }) => text).text;
}

function listed(place, wanted) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  const of = document.createElement("span");
  link.href = address(place);
  link.append(...typeset(place.title));
  of.append(...typeset(place.of));
  of.className = "course-found-in";
  item.append(link, of, excerpt(saidAt(place), wanted));
  return item;
}

function describeCount(count) {
  if (!count) return "No section has all of these words.";
  if (count === 1) return "One section has all of these words.";
  return `${count} sections have all of these words${count > MOST ? `; these are the ${MOST} that fit best` : ""}.`;
}

async function search(query) {
  const wanted = [...Search._parseQuery(query)[1]].map(level);
  const scored = wanted.length ? places.map((place) => [score(place, wanted), place]).filter(([fit]) => fit) : [];
  scored.sort(([a], [b]) => b - a);
  const heading = document.createElement("h2");
  const said = document.createElement("p");
  const list = document.createElement("ul");
  heading.textContent = "Search Results";
  said.textContent = describeCount(scored.length);
  said.setAttribute("role", "status");
  list.className = "search";
  if (scored.length) await course.load("formulas.js");
  list.append(...scored.slice(0, MOST).map(([, place]) => listed(place, wanted)));
  document.getElementById("search-results").replaceChildren(heading, said, list);
  course.fit();
}

// The places whose titles have all words that were typed, the last perhaps in part: terms first, then short titles.
function suggested(typed) {
  const wanted = wordsOf(typed).map(level);
  const fits = ({ plain }) => wanted.every((word) => wordsOf(plain).some((other) => level(other).startsWith(word)));
  const begins = ({ plain }) => plain.toLowerCase().startsWith(typed.trim().toLowerCase());
  const order = (one, other) =>
    begins(other) - begins(one) || other.glossary - one.glossary || one.plain.length - other.plain.length;
  return wanted.length ? places.filter(fits).sort(order).slice(0, SUGGESTED) : [];
}

// A list below a field, where arrow keys choose and Enter goes; without a choice Enter searches, as always.
class Suggestions {
  constructor(field) {
    this.field = field;
    this.at = -1; // the place in the list that is chosen
    this.list = document.createElement("ul");
    this.list.id = `course-suggested-${document.querySelectorAll(".course-suggested").length}`;
    Object.assign(this.list, {
      className: "course-suggested",
      role: "listbox",
      ariaLabel: "Suggestions",
      hidden: true,
    });
    Object.assign(field, { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false" });
    field.setAttribute("aria-controls", this.list.id);
    field.form.append(this.list);
  }

  choose(next) {
    this.at = next;
    const options = [...this.list.children];
    options.forEach((option, place) => {
      option.ariaSelected = String(place === this.at);
    });
    this.field.setAttribute("aria-activedescendant", options[this.at]?.id ?? "");
    options[this.at]?.scrollIntoView({ block: "nearest" });
  }

  show(found) {
    this.list.replaceChildren(...found.map((place, number) => this.option(place, number)));
    this.list.hidden = !found.length;
    this.field.ariaExpanded = String(!this.list.hidden);
    this.choose(-1);
  }

  option(place, number) {
    const option = document.createElement("li");
    const of = document.createElement("span");
    Object.assign(option, { id: `${this.list.id}-${number}`, role: "option", textContent: place.plain });
    of.className = "course-found-in";
    of.textContent = place.of;
    option.append(of);
    option.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    option.addEventListener("click", () => {
      location.href = address(place);
    });
    return option;
  }

  bindKeys() {
    this.field.addEventListener("input", () => this.show(suggested(this.field.value)));
    this.field.addEventListener("blur", () => this.show([]));
    this.field.addEventListener("keydown", (event) => {
      const count = this.list.children.length + 1;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (this.list.hidden) return;
      if (step) this.choose(((this.at + 1 + step + count) % count) - 1);
      else if (event.key === "Enter" && this.at >= 0) this.list.children[this.at].click();
      else if (event.key === "Escape") this.show([]);
      else return;
      event.preventDefault();
    });
  }
}

course.suggest = async (field) => {
  if (field.role) return;
  const suggestions = new Suggestions(field);
  await course.load("titles.js");
  suggestions.bindKeys();
  if (field.value && field === document.activeElement) suggestions.show(suggested(field.value));
};

document.addEventListener("DOMContentLoaded", () => {
  if (!document.getElementById("search-results")) return;
  stemmer = new Stemmer();
  Search.performSearch = search;
});
