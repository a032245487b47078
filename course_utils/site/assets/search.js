// The page of the search: the sections that hold all words of a query, the best first, each with where it says them.
// The words are read and stemmed as Sphinx does it, and pages mark them as with Sphinx's own search.
(() => {
const MOST = 40, AROUND = 220; // places that are shown; characters of an excerpt
const WORD = /[\p{Letter}\p{Number}_]+/gu;
let places = [];
course.sections = (pages) => {
  places = Object.entries(pages).flatMap(([page, sections]) => sections.map(([anchor, title, text]) =>
    ({ page, anchor, title, text, of: sections[0][1], glossary: page === "glossary" })));
};

let stemmer;
const stems = new Map();
const level = (word) => word.normalize("NFKC").replaceAll("_", ""); // who looks for d_k finds dₖ
const stem = (word) => stems.get(word) ?? stems.set(word, level(stemmer.stemWord(word))).get(word);
const stemmed = (text) => (text.toLowerCase().match(WORD) ?? []).map(stem);
const is = (word) => (other) => other === word || (word.length > 2 && other.startsWith(word));
const beside = (wanted, words) => words.some((_, at) => wanted.every((word, i) => words[at + i] === word));

// How well a place fits; 0 where it lacks a word. A title counts most, then words that stand beside one another.
function score(place, wanted) {
  place.titled ??= stemmed(place.title);
  place.words ??= stemmed(place.text);
  let sum = 0;
  for (const word of wanted) {
    const titled = place.titled.some(is(word)), times = place.words.filter(is(word)).length;
    if (!titled && !times) return 0;
    sum += (titled ? 10 : 0) + Math.log2(1 + times);
  }
  if (place.titled.join() === wanted.join()) sum += place.glossary ? 100 : 50;
  return sum + (beside(wanted, place.titled) ? 15 : 0) + (wanted.length > 1 && beside(wanted, place.words) ? 10 : 0);
}

// The text about the first of the words, with all of them marked.
function excerpt(text, wanted) {
  const shown = document.createElement("p"), matches = ({ 0: word }) => wanted.some((each) => is(each)(stem(word.toLowerCase())));
  const first = [...text.matchAll(WORD)].find(matches)?.index ?? 0;
  const from = first < AROUND / 2 ? 0 : text.indexOf(" ", first - AROUND / 2) + 1;
  const until = from + AROUND < text.length ? text.lastIndexOf(" ", from + AROUND) : text.length;
  const part = text.slice(from, Math.max(until, first));
  let done = 0;
  shown.append(from ? "… " : "");
  for (const found of [...part.matchAll(WORD)].filter(matches)) {
    const mark = document.createElement("mark");
    mark.textContent = found[0];
    shown.append(part.slice(done, found.index), mark);
    done = found.index + found[0].length;
  }
  shown.append(part.slice(done), until < text.length ? " …" : "");
  return shown;
}

function listed(place, wanted) {
  const item = document.createElement("li"), link = document.createElement("a"), of = document.createElement("span");
  link.href = `${place.page}.html${place.anchor && `#${place.anchor}`}`;
  link.textContent = place.title;
  of.textContent = place.anchor ? place.of : "";
  of.className = "course-found-in";
  item.append(link, of, excerpt(place.text, wanted));
  return item;
}

function told(count) {
  if (!count) return "No section has all of these words.";
  if (count === 1) return "One section has all of these words.";
  return `${count} sections have all of these words${count > MOST ? `; these are the ${MOST} that fit best` : ""}.`;
}

function search(query) {
  const wanted = [...Search._parseQuery(query)[1]].map(level);
  const scored = wanted.length ? places.map((place) => [score(place, wanted), place]).filter(([fit]) => fit) : [];
  scored.sort(([a], [b]) => b - a);
  const heading = document.createElement("h2"), said = document.createElement("p"), list = document.createElement("ul");
  heading.textContent = "Search Results";
  said.textContent = told(scored.length);
  said.setAttribute("role", "status");
  list.className = "search";
  list.append(...scored.slice(0, MOST).map(([, place]) => listed(place, wanted)));
  document.getElementById("search-results").replaceChildren(heading, said, list);
}

document.addEventListener("DOMContentLoaded", () => {
  stemmer = new Stemmer();
  Search.performSearch = search;
});
})();
