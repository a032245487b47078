// Poses the question of guess.py, takes a guess and shows what was computed.

import { keepKeys, listen, make, makeRoot, makeSet, newId, presses, setTraits } from "../shared/dom.js";
import { brief, guessAt, judge, keepGuess } from "../shared/guessing.js";
import { CurvePart } from "./guess_curve.js";

const HOW = {
  number: "Move the slider or type a number.",
  choice: "Choose one.",
  curve:
    "Draw from left to right with the mouse or a finger. With the keyboard, up and down move a point, with Shift " +
    "further; left and right go to the next one.",
};
const CELL = ".jp-CodeCell, div.cell";
const SHOWS = ".jp-Cell-outputWrapper, .cell_output"; // in JupyterLab, on a page
const CODE = ".jp-Cell-inputWrapper, .cell_input";
const ASKS = /\bguesses\.|\bGuess\./; // a guess that has not run yet, too
const TRY = /^Try\b/; // what to do with the widget that is veiled
const BEGUN = /^[-−]?[\d.,]*(\de[-+−]?\d*)?$/i; // a number, or the beginning of one

class GuessView {
  constructor({ model, el }) {
    this.model = model;
    this.posed = model.get("_posed");
    this.uid = newId("course-guess");
    this.log = this.posed.scale === "log";
    this.unit = this.posed.unit && this.posed.unit !== "%" ? ` ${this.posed.unit}` : this.posed.unit;
    this.root = makeRoot(model, "course-guess", { role: "group", "aria-labelledby": `${this.uid}-asked` });
    this.body = make("div", "course-guess-body");
    const foot = make("div", "course-guess-foot");
    this.take = make("button", "course-guess-take", { type: "button" }, "Guess");
    this.again = make("button", "", { type: "button" }, "Guess again");
    this.lift = make("button", "course-guess-lift", { type: "button" }, "Show without a guess");
    this.hint = make("span", "course-guess-hint", { id: `${this.uid}-how` }, HOW[this.posed.kind]);
    this.message = make("div", "course-guess-message", { role: "status" });
    this.kept = make("div", "course-guess-kept");
    this.root.append(
      makeSet("div", "course-guess-asked", { id: `${this.uid}-asked` }, this.posed.question),
      this.body,
      foot,
      this.message,
      this.kept,
    );
    foot.append(this.take, this.again, this.lift, this.hint);
    el.append(this.root);
    this.drawPart();
    this.bindButtons();
    this.stopListening = listen(model, {
      guess: () => this.show(),
      first: () => this.show(),
      draft: () => this.show(),
      _kept: () => this.say(),
    });
    this.stop = model.alone ? keepHere(model) : () => {};
    this.show();
    requestAnimationFrame(() => this.veilAnswer(!model.get("guess").length)); // the cell is there now
    this.say();
    setTraits(model, { _asked: model.get("_asked") + 1 }); // with a kernel: what was guessed before
  }

  // The part of its kind, which takes the guess and shows it beside what was computed.
  drawPart() {
    const shared = {
      model: this.model,
      posed: this.posed,
      uid: this.uid,
      root: this.root,
      written: (value) => this.written(value),
      toPlace: (value) => this.toPlace(value),
      toValue: (place) => this.toValue(place),
      change: (draft, settled) => this.change(draft, settled),
    };
    this.part = new { number: NumberPart, choice: ChoicePart, curve: CurvePart }[this.posed.kind](shared);
    this.body.append(this.part.node);
  }

  bindButtons() {
    this.take.addEventListener("click", () => {
      const draft = this.part.read?.() ?? this.model.get("draft");
      if (draft.some((value) => value === null)) return this.part.focus();
      if (!this.model.get("first").length) this.model.set("first", draft);
      setTraits(this.model, { guess: draft });
      this.again.focus({ preventScroll: true });
    });
    this.cover = makeRoot(this.model, "course-guess-cover", {});
    const toGuess = make("button", "", { type: "button" }, "Guess above to see this");
    this.cover.append(toGuess);
    toGuess.addEventListener("click", () => {
      this.root.scrollIntoView({ block: "center" });
      this.part.focus();
    });
    this.veiled = null;
    this.lifted = false;
    this.lift.addEventListener("click", () => {
      this.lifted = true;
      this.veilAnswer(false);
    });
    this.again.addEventListener("click", () => {
      setTraits(this.model, { guess: [] });
      this.part.focus();
    });
    const moves = /^(Arrow|Home|End|Page)/;
    keepKeys(this.root, (event) => presses(event) || moves.test(event.key) || event.target.type === "text");
  }

  written(value) {
    return `${brief(value)}${this.unit}`;
  }

  toPlace(value) {
    return this.log
      ? Math.log(value / this.posed.low) / Math.log(this.posed.high / this.posed.low)
      : (value - this.posed.low) / (this.posed.high - this.posed.low);
  }

  toValue(place) {
    const exact = this.log
      ? this.posed.low * (this.posed.high / this.posed.low) ** place
      : this.posed.low + place * (this.posed.high - this.posed.low);
    const decimals = Math.max(0, Math.min(12, 3 - Math.ceil(Math.log10(this.posed.high - this.posed.low))));
    const round = this.log ? Number(exact.toPrecision(3)) : Number(exact.toFixed(decimals));
    return Math.min(this.posed.high, Math.max(this.posed.low, round));
  }

  // What is being guessed is sent when a hand lets go, never while it moves.
  change(draft, settled = true) {
    this.ready(draft);
    if (settled) {
      setTraits(this.model, { draft });
    }
  }

  ready(draft) {
    const open = draft.filter((value) => value === null).length;
    this.take.setAttribute("aria-disabled", String(open > 0));
    const some = `${open} ${open === 1 ? "place" : "places"} left.`;
    this.hint.textContent = open && open < draft.length ? some : HOW[this.posed.kind];
  }

  veilAnswer(is) {
    if (is && !this.lifted) this.veiled ??= veil(this.root, this.cover);
    else if (this.veiled) {
      this.veiled();
      this.veiled = null;
    }
    this.lift.hidden = !this.veiled;
  }

  show() {
    const guess = this.model.get("guess");
    const first = this.model.get("first");
    const shown = guess.length > 0;
    this.root.classList.toggle("course-guess-shown", shown);
    this.take.hidden = this.hint.hidden = shown;
    if (shown) this.lifted = true;
    this.veilAnswer(!shown);
    this.again.hidden = !shown;
    this.part.show(shown ? guess : null, this.model.get("draft"));
    if (!shown) this.ready(this.model.get("draft"));
    const lines = shown ? tell(this.posed, guess, first, (value) => this.written(value)) : [];
    if (this.message.dataset.said !== lines.join("\n")) {
      this.message.dataset.said = lines.join("\n");
      this.message.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line)));
    }
  }

  say() {
    this.kept.textContent = this.model.get("_kept");
  }

  remove() {
    this.stop();
    this.stopListening();
    this.veilAnswer(false);
    this.part.end?.();
  }
}

function render(options) {
  const view = new GuessView(options);
  return () => view.remove();
}

// Veils what the next cell below shows and the text after it, since the answer stands there, and what is to be tried
// with it. `cover` says so on the veil. Returns what lifts the veil; null if there is none.
function veil(root, cover) {
  const own = root.closest(CELL);
  const tried = [];
  const tries = (part) => part.matches("p") && TRY.test(part.textContent);
  if (!own) return null;
  let found = null;
  for (
    let each = own.nextElementSibling;
    each && !each.matches("section") && !each.querySelector("h1, h2, h3");
    each = each.nextElementSibling
  ) {
    if (!found) tried.push(...[each, ...each.querySelectorAll(".jp-RenderedMarkdown > *")].filter(tries));
    if (!each.matches(CELL) || ASKS.test(each.querySelector(CODE)?.textContent)) continue;
    found ??= each;
    if (each.querySelector(".jp-OutputArea-output, .cell_output .output")) {
      found = each;
      break;
    }
  }
  const shows = found?.querySelector(SHOWS);
  if (!shows) return null;
  const over = [...tried, shows];
  for (let each = found.nextElementSibling; each && !each.matches(`section, ${CELL}`); each = each.nextElementSibling) {
    // JupyterLab has them in one cell
    const parts = [...(each.querySelector(".jp-RenderedMarkdown")?.children ?? [each])];
    // what a later widget asks for stays
    const end = parts.findIndex((part) => part.matches("h1, h2, h3") || tries(part));
    over.push(...(end < 0 ? [each] : parts.slice(0, end)));
    if (end >= 0) break;
  }
  over.forEach((each) => {
    each.dataset.courseVeils = Number(each.dataset.courseVeils ?? 0) + 1;
    each.inert = true;
  });
  shows.before(cover); // of several guesses, each has one; the last stands above the others
  return () => {
    cover.remove();
    over.forEach((each) => {
      if (each.dataset.courseVeils > 1) each.dataset.courseVeils -= 1;
      else {
        delete each.dataset.courseVeils;
        each.inert = false;
      }
    });
  };
}

// Without a kernel the browser keeps guesses, and says what was guessed before.
function keepHere(model) {
  const before = guessAt(model.get("_posed"));
  if (before) {
    model.set("first", before.first);
    model.set("guess", before.last);
    model.set("_kept", `Guessed on ${before.when}, kept in this browser.`);
  }
  const hear = () => {
    if (!model.get("guess").length) return;
    const { kept, lasts } = keepGuess(model.get("_posed"), model.get("guess"));
    model.set("first", kept.first);
    model.set(
      "_kept",
      lasts
        ? "Kept in this browser; it is sent nowhere."
        : "Kept until this page is left; this browser keeps no longer.",
    );
  };
  return listen(model, { guess: hear });
}

// A slider and a field that say the same; after the guess a line with both numbers on it.
class NumberPart {
  constructor({ root, posed, uid, written, toPlace, toValue, change }) {
    this.posed = posed;
    this.written = written;
    this.toPlace = toPlace;
    this.node = make("div", "course-guess-number");
    this.entry = make("div", "course-guess-entry");
    this.slider = make("input", "", {
      type: "range",
      min: 0,
      max: 200,
      step: 1,
      value: 100,
      "aria-labelledby": `${uid}-asked`,
    });
    this.field = make("input", "", {
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      "aria-label": "your guess",
      "aria-describedby": `${uid}-wrong`,
    });
    this.wrong = make("div", "course-guess-wrong", { id: `${uid}-wrong`, role: "status" });
    this.line = make("div", "course-guess-line");
    const scale = this.drawScale();
    this.entry.append(this.field, make("span", "", {}, posed.unit));
    this.node.append(this.slider, this.line, scale, this.entry, this.wrong);
    this.slider.addEventListener("input", () => {
      const value = toValue(this.slider.value / 200);
      this.fill(value);
      this.wrong.textContent = "";
      change([value], false);
    });
    this.slider.addEventListener("change", () => change([toValue(this.slider.value / 200)]));
    this.field.addEventListener("input", () => {
      const { value, said } = this.typed();
      // what may become a number is judged when it is complete
      this.wrong.textContent = BEGUN.test(this.field.value.trim()) ? "" : said;
      change([value], false);
    });
    this.field.addEventListener("change", () => {
      const { value, said } = this.typed();
      this.wrong.textContent = said;
      change([value]);
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // or the same key would press the button that gets the focus
      this.field.dispatchEvent(new Event("change"));
      root.querySelector(".course-guess-take").click();
    });
  }

  drawScale() {
    const scale = make("div", "course-guess-ticks", { "aria-hidden": "true" });
    for (const [place, text] of this.posed.ticks) {
      // a long number at an end stays within the widget
      const side = text.length < 4 ? "middle" : place < 0.02 ? "start" : place > 0.98 ? "end" : "middle";
      scale.append(make("span", `course-guess-tick-${side}`, { style: this.at(place) }, text));
    }
    return scale;
  }

  at(place) {
    return `left:calc(8px + (100% - 16px) * ${place})`;
  }

  name(value) {
    this.slider.setAttribute("aria-valuetext", value === null ? "nothing yet" : this.written(value));
  }

  fill(value) {
    this.field.value = value === null ? "" : String(value);
    this.name(value);
  }

  typed() {
    const text = this.field.value.trim();
    const thousands = /^\d{1,3}(,\d{3})+(\.\d*)?$/.test(text);
    const plain = thousands ? text.replaceAll(",", "") : text;
    const value = Number(plain.replace("−", "-"));
    if (text === "") return { value: null, said: "" };
    if (!Number.isFinite(value))
      return { value: null, said: `“${text}” is not a number: give one such as 0.5, 1200, 0.0001 or 1e-4.` };
    if (value < this.posed.low || value > this.posed.high) {
      return { value: null, said: `The range is from ${brief(this.posed.low)} to ${this.written(this.posed.high)}.` };
    }
    return { value, said: "" };
  }

  focus() {
    this.slider.focus({ preventScroll: true });
  }

  read() {
    return [this.typed().value];
  }

  show(guess, draft) {
    this.slider.hidden = this.entry.hidden = this.wrong.hidden = guess !== null;
    this.line.hidden = guess === null;
    this.line.replaceChildren();
    if (guess !== null) {
      for (const [value, role, text] of [
        [guess[0], "mine", "your guess"],
        [this.posed.truth[0], "truth", "computed"],
      ]) {
        const place = this.toPlace(value);
        const mark = make("div", `course-guess-mark course-guess-${role}`, { style: this.at(place) });
        const side = place < 0.2 ? "start" : place > 0.8 ? "end" : "middle";
        mark.append(make("span", `course-guess-at-${side}`, {}, `${text} ${this.written(value)}`));
        this.line.append(mark);
      }
    } else if (document.activeElement !== this.field) {
      if (draft[0] !== null) this.slider.value = Math.round(200 * this.toPlace(draft[0]));
      if (draft[0] !== null || this.wrong.textContent === "") this.fill(draft[0]);
    } else if (draft[0] !== null) {
      this.slider.value = Math.round(200 * this.toPlace(draft[0]));
      this.name(draft[0]);
    }
  }
}

class ChoicePart {
  constructor({ posed, uid, change }) {
    this.posed = posed;
    this.node = make("div", "course-guess-choices", { role: "radiogroup", "aria-labelledby": `${uid}-asked` });
    this.rows = posed.choices.map((text, place) => {
      const label = make("label", "course-guess-choice");
      const input = make("input", "", { type: "radio", name: `${uid}-choice`, value: place });
      const mark = make("span", "course-guess-sign");
      input.addEventListener("change", () => change([place]));
      label.append(input, makeSet("span", "", {}, text), mark);
      this.node.append(label);
      return { label, input, mark };
    });
  }

  focus() {
    return (this.rows.find(({ input }) => input.checked) ?? this.rows[0]).input.focus({ preventScroll: true });
  }

  show(guess, draft) {
    return this.rows.forEach(({ label, input, mark }, place) => {
      const right = guess !== null && this.posed.truth[0] === place;
      const mine = guess !== null && guess[0] === place;
      input.checked = (guess ?? draft)[0] === place;
      input.disabled = guess !== null;
      label.dataset.verdict = right ? "right" : mine ? "wrong" : "";
      mark.textContent = right ? "✓ it is this one" : mine ? "✗ your guess" : "";
    });
  }
}

function tell(posed, guess, first, written) {
  const lines = [];
  const mine = `Your guess is ${judge(posed, guess).text}.`;
  if (posed.kind === "number") lines.push(`Computed: ${written(posed.truth[0])}. ${mine}`);
  else lines.push(mine);
  if (posed.why) lines.push(posed.why);
  if (first.length && first.some((value, i) => value !== guess[i])) {
    lines.push(`Your first guess counts. It was ${judge(posed, first).text}.`);
  }
  return lines;
}

export default { render };
