// Poses the question of guess.py, takes a guess and shows what was computed.

import { clamp, keepKey, keepKeys, listen, make, makeRoot, makeSet, newId, presses, setTraits } from "../shared/dom.js";
import { brief, guessAt, judge, keepGuess } from "../shared/guessing.js";
import { makeSvg } from "../shared/svg.js";

const HOW = {
  number: "Move the slider or type a number.",
  choice: "Choose one.",
  curve:
    "Draw from left to right with the mouse or a finger. With the keyboard, up and down move a point, with Shift " +
    "further; left and right go to the next one.",
};
const STEPS = { ArrowUp: 0.01, ArrowDown: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -2, End: 2, Enter: 0, " ": 0 };
const CELL = ".jp-CodeCell, div.cell";
const SHOWS = ".jp-Cell-outputWrapper, .cell_output"; // in JupyterLab, on a page
const CODE = ".jp-Cell-inputWrapper, .cell_input";
const ASKS = /\bguesses\.|\bGuess\./; // a guess that has not run yet, too
const TRY = /^Try\b/; // what to do with the widget that is veiled
const BEGUN = /^[-−]?[\d.,]*(\de[-+−]?\d*)?$/i; // a number, or the beginning of one
const CLOSE = 14; // pixels on either side of a place in which its point follows the pointer

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
    this.message = make("div", "course-guess-told", { role: "status" });
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

// Axes, a point a place that moves up and down, and a stroke that sets every place it passes.
class CurvePart {
  constructor({ model, posed, written, toPlace, toValue, change }) {
    this.posed = posed;
    this.written = written;
    this.toPlace = toPlace;
    this.toValue = toValue;
    this.change = change;
    this.node = make("div", "course-guess-curve");
    this.details = make("details", "course-guess-numbers");
    this.svg = makeSvg("svg", "course-guess-plot", { role: "group", "aria-label": posed.y_label || "curve" });
    this.table = make("table", "", {});
    this.count = posed.places.length;
    this.back = makeSvg("g");
    this.truth = makeSvg("g", "course-guess-truth");
    this.mine = makeSvg("path", "course-guess-path");
    this.drawPoints();
    this.svg.append(this.back, this.truth, this.mine, ...this.points);
    this.details.append(make("summary", "", {}, "The numbers"), this.table);
    this.node.append(
      makeSet("div", "course-guess-y", {}, posed.y_label + (posed.unit ? `, ${posed.unit}` : "")),
      this.svg,
      makeSet("div", "course-guess-x", {}, posed.x_label),
      make("div", "course-legend course-guess-legend"),
      this.details,
    );
    this.node.querySelector(".course-guess-legend").append(sample("mine", "your guess"), sample("truth", "computed"));
    this.room = { left: 56, right: 18, top: 12, bottom: 26 };
    this.height = 260;
    this.width = 0;
    this.values = model.get("draft");
    this.fixed = false;
    this.last = null;
    this.at = 0;
    this.tall = this.height - this.room.top - this.room.bottom;
    this.bindPointer();
    this.bindKeys();
    this.watch = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width && contentRect.width !== this.width) {
        this.width = contentRect.width;
        this.layOut();
      }
    });
    this.watch.observe(this.svg);
  }

  drawPoints() {
    this.points = this.posed.places.map((place, i) =>
      makeSvg("g", "course-guess-point", {
        role: "slider",
        tabindex: i ? -1 : 0,
        "aria-label": `${this.posed.x_label ? `${this.posed.x_label} ` : ""}${place}`,
        "aria-orientation": "vertical",
        "aria-valuemin": this.posed.low,
        "aria-valuemax": this.posed.high,
      }),
    );
    for (const point of this.points)
      point.append(makeSvg("circle", "course-guess-halo", { r: 14 }), makeSvg("circle", "", { r: 6 }));
  }

  bindPointer() {
    this.svg.addEventListener("pointerdown", (event) => {
      if (this.fixed || event.button !== 0) return;
      event.preventDefault();
      this.svg.setPointerCapture(event.pointerId);
      this.values = [...this.values];
      this.last = null;
      this.pass(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.last) this.pass(event);
    });
    for (const ended of ["pointerup", "pointercancel", "lostpointercapture"])
      this.svg.addEventListener(ended, () => this.release());
  }

  bindKeys() {
    this.points.forEach((point, i) => {
      point.addEventListener("focus", () => {
        this.points[this.at].setAttribute("tabindex", -1);
        this.at = i;
        point.setAttribute("tabindex", 0);
      });
      point.addEventListener("keydown", (event) => {
        const to = { ArrowLeft: i - 1, ArrowRight: i + 1 }[event.key];
        const by = STEPS[event.key];
        if ((to ?? by) === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
        keepKey(event);
        if (to !== undefined) return this.points[clamp(to, this.count)].focus();
        if (this.fixed) return;
        const now = this.values[i] === null ? 0.5 : this.toPlace(this.values[i]);
        this.values = [...this.values];
        this.put(i, this.toValue(Math.max(0, Math.min(1, now + by * (event.shiftKey ? 10 : 1)))));
        this.mine.setAttribute("d", this.line(this.values));
        this.change([...this.values]);
      });
    });
  }

  inside() {
    return this.width - this.room.left - this.room.right;
  }

  x(i) {
    return this.room.left + this.posed.along[i] * this.inside();
  }

  y(place) {
    return this.room.top + (1 - place) * this.tall;
  }

  line(numbers) {
    return numbers
      .map((value, i) => [value, i])
      .filter(([value]) => value !== null)
      .map(([value, i], n) => `${n ? "L" : "M"}${this.x(i).toFixed(1)} ${this.y(this.toPlace(value)).toFixed(1)}`)
      .join("");
  }

  layOut() {
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    const grid = this.posed.ticks.map(([place, text]) => [
      makeSvg("line", "", {
        x1: this.room.left - 8,
        x2: this.width - this.room.right + 8,
        y1: this.y(place),
        y2: this.y(place),
      }),
      makeSvg("text", "", { x: this.room.left - 14, y: this.y(place) + 4, "text-anchor": "end" }, text),
    ]);
    let end = -Infinity;
    const stands = this.posed.places.map((text, i) => {
      const parts = [
        makeSvg("line", "", { x1: this.x(i), x2: this.x(i), y1: this.room.top, y2: this.height - this.room.bottom }),
      ];
      const half = 3.6 * text.length + 3;
      if (this.x(i) - half > end) {
        // labels that would touch are left out; the points say them
        parts.push(makeSvg("text", "", { x: this.x(i), y: this.height - 6, "text-anchor": "middle" }, text));
        end = this.x(i) + half;
      }
      return parts;
    });
    this.back.replaceChildren(...grid.flat(), ...stands.flat());
    const marks = this.posed.truth.map((value, i) => {
      const [cx, cy] = [this.x(i), this.y(this.toPlace(value))];
      return makeSvg("path", "", { d: `M${cx} ${cy - 6}L${cx + 6} ${cy}L${cx} ${cy + 6}L${cx - 6} ${cy}Z` });
    });
    this.truth.replaceChildren(makeSvg("path", "course-guess-path", { d: this.line(this.posed.truth) }), ...marks);
    this.points.forEach((_, i) => this.place(i));
    this.mine.setAttribute("d", this.line(this.values));
  }

  place(i) {
    const value = this.values[i];
    const up = this.y(value === null ? 0.5 : this.toPlace(value));
    this.points[i].setAttribute("transform", `translate(${this.x(i).toFixed(1)} ${up.toFixed(1)})`);
    this.points[i].classList.toggle("course-guess-open", value === null);
    this.points[i].setAttribute("aria-valuenow", value ?? this.toValue(0.5));
    this.points[i].setAttribute(
      "aria-valuetext",
      `${this.posed.places[i]}: ${value === null ? "nothing yet" : this.written(value)}`,
    );
  }

  put(i, value) {
    this.values[i] = value;
    this.place(i);
  }

  pass(event) {
    const box = this.svg.getBoundingClientRect();
    const px = event.clientX - box.left;
    const up = (py) => this.toValue(Math.max(0, Math.min(1, 1 - (py - this.room.top) / this.tall)));
    const here = { px, py: event.clientY - box.top };
    const nearest = this.posed.along.map((_, i) => Math.abs(this.x(i) - px));
    const close = nearest.indexOf(Math.min(...nearest));
    if (this.last) {
      for (let i = 0; i < this.count; i++) {
        // what lies between two events is set by the line through them
        const share = (this.x(i) - this.last.px) / (here.px - this.last.px);
        if (share > 0 && share <= 1) this.put(i, up(this.last.py + share * (here.py - this.last.py)));
      }
    }
    if (!this.last || nearest[close] < CLOSE) this.put(close, up(here.py));
    this.last = here;
    this.mine.setAttribute("d", this.line(this.values));
  }

  release() {
    if (this.last) {
      this.last = null;
      this.change([...this.values]);
    }
  }

  focus() {
    this.points[this.at].focus({ preventScroll: true });
  }

  end() {
    this.watch.disconnect();
  }

  show(guess, draft) {
    this.fixed = guess !== null;
    if (!this.last) this.values = [...(guess ?? draft)];
    this.truth.style.display = this.fixed ? "" : "none";
    this.details.hidden = this.node.querySelector(".course-guess-legend").hidden = !this.fixed;
    this.points.forEach((point) => point.setAttribute("aria-readonly", String(this.fixed)));
    if (this.width) this.layOut();
    if (!this.fixed) return this.table.replaceChildren();
    const rows = this.posed.places.map((text, i) =>
      cells("td", text, this.written(guess[i]), this.written(this.posed.truth[i])),
    );
    this.table.replaceChildren(cells("th", this.posed.x_label, "your guess", "computed"), ...rows);
  }
}

const cells = (tag, ...texts) => {
  const row = make("tr");
  row.append(...texts.map((text) => make(tag, "", tag === "th" ? { scope: "col" } : {}, text)));
  return row;
};
function sample(role, text) {
  const node = make("span", `course-guess-sample course-guess-${role}`);
  const picture = makeSvg("svg", "", { width: 34, height: 14, "aria-hidden": "true" });
  const circle = () => makeSvg("circle", "", { cx: 17, cy: 7, r: 5 });
  const mark = role === "mine" ? circle() : makeSvg("path", "", { d: "M17 1L23 7L17 13L11 7Z" });
  picture.append(makeSvg("path", "course-guess-path", { d: "M0 7L34 7" }), mark);
  node.append(picture, text);
  return node;
}

function tell(posed, guess, first, written) {
  const lines = [];
  const mine = `Your guess is ${judge(posed, guess).told}.`;
  if (posed.kind === "number") lines.push(`Computed: ${written(posed.truth[0])}. ${mine}`);
  else lines.push(mine);
  if (posed.why) lines.push(posed.why);
  if (first.length && first.some((value, i) => value !== guess[i])) {
    lines.push(`Your first guess counts. It was ${judge(posed, first).told}.`);
  }
  return lines;
}

export default { render };
