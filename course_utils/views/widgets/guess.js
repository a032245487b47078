// Poses the question of guess.py, takes a guess and shows what was computed.

import { clamp, keepKey, keepKeys, listen, make, makeRoot, makeSet, newId, presses } from "../shared/dom.js";
import { brief, guessAt, judge, keepGuess } from "../shared/guessing.js";

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

function render({ model, el }) {
  const posed = model.get("_posed");
  const uid = newId("course-guess");
  const log = posed.scale === "log";
  const unit = posed.unit && posed.unit !== "%" ? ` ${posed.unit}` : posed.unit;
  const written = (value) => `${brief(value)}${unit}`;
  const root = makeRoot(model, "course-guess", { role: "group", "aria-labelledby": `${uid}-asked` });
  const body = make("div", "course-guess-body");
  const foot = make("div", "course-guess-foot");
  const take = make("button", "course-guess-take", { type: "button" }, "Guess");
  const again = make("button", "", { type: "button" }, "Guess again");
  const lift = make("button", "course-guess-lift", { type: "button" }, "Show without a guess");
  const hint = make("span", "course-guess-hint", { id: `${uid}-how` }, HOW[posed.kind]);
  const told = make("div", "course-guess-told", { role: "status" });
  const kept = make("div", "course-guess-kept");
  root.append(makeSet("div", "course-guess-asked", { id: `${uid}-asked` }, posed.question), body, foot, told, kept);
  foot.append(take, again, lift, hint);
  el.append(root);

  const toPlace = (value) =>
    log
      ? Math.log(value / posed.low) / Math.log(posed.high / posed.low)
      : (value - posed.low) / (posed.high - posed.low);
  const toValue = (place) => {
    const exact = log ? posed.low * (posed.high / posed.low) ** place : posed.low + place * (posed.high - posed.low);
    const decimals = Math.max(0, Math.min(12, 3 - Math.ceil(Math.log10(posed.high - posed.low))));
    const round = log ? Number(exact.toPrecision(3)) : Number(exact.toFixed(decimals));
    return Math.min(posed.high, Math.max(posed.low, round));
  };
  const shared = { model, posed, uid, root, written, toPlace, toValue, change };
  const part = { number: numberPart, choice: choicePart, curve: curvePart }[posed.kind](shared);
  body.append(part.node);

  // What is being guessed is sent when a hand lets go, never while it moves.
  function change(draft, settled = true) {
    ready(draft);
    if (settled) {
      model.set("draft", draft);
      model.save_changes();
    }
  }
  function ready(draft) {
    const open = draft.filter((value) => value === null).length;
    take.setAttribute("aria-disabled", String(open > 0));
    const some = `${open} ${open === 1 ? "place" : "places"} left.`;
    hint.textContent = open && open < draft.length ? some : HOW[posed.kind];
  }
  take.addEventListener("click", () => {
    const draft = part.read?.() ?? model.get("draft");
    if (draft.some((value) => value === null)) return part.focus();
    if (!model.get("first").length) model.set("first", draft);
    model.set("guess", draft);
    model.save_changes();
    again.focus({ preventScroll: true });
  });
  const cover = makeRoot(model, "course-guess-cover", {});
  const toGuess = make("button", "", { type: "button" }, "Guess above to see this");
  cover.append(toGuess);
  toGuess.addEventListener("click", () => {
    root.scrollIntoView({ block: "center" });
    part.focus();
  });
  let veiled = null;
  let lifted = false;
  lift.addEventListener("click", () => {
    lifted = true;
    veilAnswer(false);
  });
  function veilAnswer(is) {
    if (is && !lifted) veiled ??= veil(root, cover);
    else if (veiled) {
      veiled();
      veiled = null;
    }
    lift.hidden = !veiled;
  }
  again.addEventListener("click", () => {
    model.set("guess", []);
    model.save_changes();
    part.focus();
  });
  const moves = /^(Arrow|Home|End|Page)/;
  keepKeys(root, (event) => presses(event) || moves.test(event.key) || event.target.type === "text");

  function show() {
    const guess = model.get("guess");
    const first = model.get("first");
    const shown = guess.length > 0;
    root.classList.toggle("course-guess-shown", shown);
    take.hidden = hint.hidden = shown;
    if (shown) lifted = true;
    veilAnswer(!shown);
    again.hidden = !shown;
    part.show(shown ? guess : null, model.get("draft"));
    if (!shown) ready(model.get("draft"));
    const lines = shown ? tell(posed, guess, first, written) : [];
    if (told.dataset.said !== lines.join("\n")) {
      told.dataset.said = lines.join("\n");
      told.replaceChildren(...lines.map((line) => makeSet("div", "", {}, line)));
    }
  }
  const say = () => {
    kept.textContent = model.get("_kept");
  };
  const stopListening = listen(model, { guess: show, first: show, draft: show, _kept: say });
  const stop = model.alone ? keepHere(model) : () => {};
  show();
  requestAnimationFrame(() => veilAnswer(!model.get("guess").length)); // the cell is there now
  say();
  model.set("_asked", model.get("_asked") + 1); // with a kernel: what was guessed before
  model.save_changes();
  return () => {
    stop();
    stopListening();
    veilAnswer(false);
    part.end?.();
  };
}

// Veils what the next cell below shows and the text after it, since the answer stands there, and what is to be tried with
// it. `cover` says so on the veil. Returns what lifts the veil; null if there is none.
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
    const parts = [...(each.querySelector(".jp-RenderedMarkdown")?.children ?? [each])]; // JupyterLab has them in one cell
    const end = parts.findIndex((part) => part.matches("h1, h2, h3") || tries(part)); // what a later widget asks for stays
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
function numberPart({ root, posed, uid, written, toPlace, toValue, change }) {
  const node = make("div", "course-guess-number");
  const entry = make("div", "course-guess-entry");
  const slider = make("input", "", {
    type: "range",
    min: 0,
    max: 200,
    step: 1,
    value: 100,
    "aria-labelledby": `${uid}-asked`,
  });
  const field = make("input", "", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    "aria-label": "your guess",
    "aria-describedby": `${uid}-wrong`,
  });
  const wrong = make("div", "course-guess-wrong", { id: `${uid}-wrong`, role: "status" });
  const line = make("div", "course-guess-line");
  const scale = make("div", "course-guess-ticks", { "aria-hidden": "true" });
  const at = (place) => `left:calc(8px + (100% - 16px) * ${place})`;
  for (const [place, text] of posed.ticks) {
    // a long number at an end stays within the widget
    const side = text.length < 4 ? "middle" : place < 0.02 ? "start" : place > 0.98 ? "end" : "middle";
    scale.append(make("span", `course-guess-tick-${side}`, { style: at(place) }, text));
  }
  entry.append(field, make("span", "", {}, posed.unit));
  node.append(slider, line, scale, entry, wrong);
  const name = (value) => slider.setAttribute("aria-valuetext", value === null ? "nothing yet" : written(value));
  const fill = (value) => {
    field.value = value === null ? "" : String(value);
    name(value);
  };
  slider.addEventListener("input", () => {
    const value = toValue(slider.value / 200);
    fill(value);
    wrong.textContent = "";
    change([value], false);
  });
  slider.addEventListener("change", () => change([toValue(slider.value / 200)]));
  field.addEventListener("input", () => {
    const { value, said } = typed();
    wrong.textContent = BEGUN.test(field.value.trim()) ? "" : said; // what may become a number is judged when it is complete
    change([value], false);
  });
  field.addEventListener("change", () => {
    const { value, said } = typed();
    wrong.textContent = said;
    change([value]);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // or the same key would press the button that gets the focus
    field.dispatchEvent(new Event("change"));
    root.querySelector(".course-guess-take").click();
  });
  function typed() {
    const text = field.value.trim();
    const thousands = /^\d{1,3}(,\d{3})+(\.\d*)?$/.test(text);
    const plain = thousands ? text.replaceAll(",", "") : text;
    const value = Number(plain.replace("−", "-"));
    if (text === "") return { value: null, said: "" };
    if (!Number.isFinite(value))
      return { value: null, said: `“${text}” is no number: give one such as 0.5, 1200, 0.0001 or 1e-4.` };
    if (value < posed.low || value > posed.high) {
      return { value: null, said: `The range is from ${brief(posed.low)} to ${written(posed.high)}.` };
    }
    return { value, said: "" };
  }
  return {
    node,
    focus: () => slider.focus({ preventScroll: true }),
    read: () => [typed().value],
    show: (guess, draft) => {
      slider.hidden = entry.hidden = wrong.hidden = guess !== null;
      line.hidden = guess === null;
      line.replaceChildren();
      if (guess !== null) {
        for (const [value, role, text] of [
          [guess[0], "mine", "your guess"],
          [posed.truth[0], "truth", "computed"],
        ]) {
          const place = toPlace(value);
          const mark = make("div", `course-guess-mark course-guess-${role}`, { style: at(place) });
          const side = place < 0.2 ? "start" : place > 0.8 ? "end" : "middle";
          mark.append(make("span", `course-guess-at-${side}`, {}, `${text} ${written(value)}`));
          line.append(mark);
        }
      } else if (document.activeElement !== field) {
        if (draft[0] !== null) slider.value = Math.round(200 * toPlace(draft[0]));
        if (draft[0] !== null || wrong.textContent === "") fill(draft[0]);
      } else if (draft[0] !== null) {
        slider.value = Math.round(200 * toPlace(draft[0]));
        name(draft[0]);
      }
    },
  };
}

function choicePart({ posed, uid, change }) {
  const node = make("div", "course-guess-choices", { role: "radiogroup", "aria-labelledby": `${uid}-asked` });
  const rows = posed.choices.map((text, place) => {
    const label = make("label", "course-guess-choice");
    const input = make("input", "", { type: "radio", name: `${uid}-choice`, value: place });
    const mark = make("span", "course-guess-sign");
    input.addEventListener("change", () => change([place]));
    label.append(input, makeSet("span", "", {}, text), mark);
    node.append(label);
    return { label, input, mark };
  });
  return {
    node,
    focus: () => (rows.find(({ input }) => input.checked) ?? rows[0]).input.focus({ preventScroll: true }),
    show: (guess, draft) =>
      rows.forEach(({ label, input, mark }, place) => {
        const right = guess !== null && posed.truth[0] === place;
        const mine = guess !== null && guess[0] === place;
        input.checked = (guess ?? draft)[0] === place;
        input.disabled = guess !== null;
        label.dataset.verdict = right ? "right" : mine ? "wrong" : "";
        mark.textContent = right ? "✓ it is this one" : mine ? "✗ your guess" : "";
      }),
  };
}

// Axes, a point a place that moves up and down, and a stroke that sets every place it passes.
function curvePart({ model, posed, written, toPlace, toValue, change }) {
  const node = make("div", "course-guess-curve");
  const details = make("details", "course-guess-numbers");
  const svg = draw("svg", "course-guess-plot", { role: "group", "aria-label": posed.y_label || "curve" });
  const table = make("table", "", {});
  const count = posed.places.length;
  const back = draw("g");
  const truth = draw("g", "course-guess-truth");
  const mine = draw("path", "course-guess-path");
  const points = posed.places.map((place, i) =>
    draw("g", "course-guess-point", {
      role: "slider",
      tabindex: i ? -1 : 0,
      "aria-label": `${posed.x_label ? `${posed.x_label} ` : ""}${place}`,
      "aria-orientation": "vertical",
      "aria-valuemin": posed.low,
      "aria-valuemax": posed.high,
    }),
  );
  for (const point of points)
    point.append(draw("circle", "course-guess-halo", { r: 14 }), draw("circle", "", { r: 6 }));
  svg.append(back, truth, mine, ...points);
  details.append(make("summary", "", {}, "The numbers"), table);
  node.append(
    makeSet("div", "course-guess-y", {}, posed.y_label + (posed.unit ? `, ${posed.unit}` : "")),
    svg,
    makeSet("div", "course-guess-x", {}, posed.x_label),
    make("div", "course-legend course-guess-legend"),
    details,
  );
  node.querySelector(".course-guess-legend").append(sample("mine", "your guess"), sample("truth", "computed"));
  const room = { left: 56, right: 18, top: 12, bottom: 26 };
  const height = 260;
  let width = 0;
  let values = model.get("draft");
  let fixed = false;
  let last = null;
  let at = 0;

  const inside = () => width - room.left - room.right;
  const tall = height - room.top - room.bottom;
  const x = (i) => room.left + posed.along[i] * inside();
  const y = (place) => room.top + (1 - place) * tall;
  const line = (numbers) =>
    numbers
      .map((value, i) => [value, i])
      .filter(([value]) => value !== null)
      .map(([value, i], n) => `${n ? "L" : "M"}${x(i).toFixed(1)} ${y(toPlace(value)).toFixed(1)}`)
      .join("");

  function layOut() {
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const grid = posed.ticks.map(([place, text]) => [
      draw("line", "", { x1: room.left - 8, x2: width - room.right + 8, y1: y(place), y2: y(place) }),
      draw("text", "", { x: room.left - 14, y: y(place) + 4, "text-anchor": "end" }, text),
    ]);
    let end = -Infinity;
    const stands = posed.places.map((text, i) => {
      const parts = [draw("line", "", { x1: x(i), x2: x(i), y1: room.top, y2: height - room.bottom })];
      const half = 3.6 * text.length + 3;
      if (x(i) - half > end) {
        // labels that would touch are left out; the points say them
        parts.push(draw("text", "", { x: x(i), y: height - 6, "text-anchor": "middle" }, text));
        end = x(i) + half;
      }
      return parts;
    });
    back.replaceChildren(...grid.flat(), ...stands.flat());
    const marks = posed.truth.map((value, i) => {
      const [cx, cy] = [x(i), y(toPlace(value))];
      return draw("path", "", { d: `M${cx} ${cy - 6}L${cx + 6} ${cy}L${cx} ${cy + 6}L${cx - 6} ${cy}Z` });
    });
    truth.replaceChildren(draw("path", "course-guess-path", { d: line(posed.truth) }), ...marks);
    points.forEach((_, i) => place(i));
    mine.setAttribute("d", line(values));
  }
  function place(i) {
    const value = values[i];
    const up = y(value === null ? 0.5 : toPlace(value));
    points[i].setAttribute("transform", `translate(${x(i).toFixed(1)} ${up.toFixed(1)})`);
    points[i].classList.toggle("course-guess-open", value === null);
    points[i].setAttribute("aria-valuenow", value ?? toValue(0.5));
    points[i].setAttribute("aria-valuetext", `${posed.places[i]}: ${value === null ? "nothing yet" : written(value)}`);
  }
  function put(i, value) {
    values[i] = value;
    place(i);
  }
  function pass(event) {
    const box = svg.getBoundingClientRect();
    const px = event.clientX - box.left;
    const up = (py) => toValue(Math.max(0, Math.min(1, 1 - (py - room.top) / tall)));
    const here = { px, py: event.clientY - box.top };
    const nearest = posed.along.map((_, i) => Math.abs(x(i) - px));
    const close = nearest.indexOf(Math.min(...nearest));
    if (last) {
      for (let i = 0; i < count; i++) {
        // what lies between two events is set by the line through them
        const share = (x(i) - last.px) / (here.px - last.px);
        if (share > 0 && share <= 1) put(i, up(last.py + share * (here.py - last.py)));
      }
    }
    if (!last || nearest[close] < CLOSE) put(close, up(here.py));
    last = here;
    mine.setAttribute("d", line(values));
  }
  svg.addEventListener("pointerdown", (event) => {
    if (fixed || event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    values = [...values];
    last = null;
    pass(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (last) pass(event);
  });
  const release = () => {
    if (last) {
      last = null;
      change([...values]);
    }
  };
  for (const ended of ["pointerup", "pointercancel", "lostpointercapture"]) svg.addEventListener(ended, release);
  points.forEach((point, i) => {
    point.addEventListener("focus", () => {
      points[at].setAttribute("tabindex", -1);
      at = i;
      point.setAttribute("tabindex", 0);
    });
    point.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: i - 1, ArrowRight: i + 1 }[event.key];
      const by = STEPS[event.key];
      if ((to ?? by) === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      keepKey(event);
      if (to !== undefined) return points[clamp(to, count)].focus();
      if (fixed) return;
      const now = values[i] === null ? 0.5 : toPlace(values[i]);
      values = [...values];
      put(i, toValue(Math.max(0, Math.min(1, now + by * (event.shiftKey ? 10 : 1)))));
      mine.setAttribute("d", line(values));
      change([...values]);
    });
  });
  const watch = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width && contentRect.width !== width) {
      width = contentRect.width;
      layOut();
    }
  });
  watch.observe(svg);
  return {
    node,
    focus: () => points[at].focus({ preventScroll: true }),
    end: () => watch.disconnect(),
    show: (guess, draft) => {
      fixed = guess !== null;
      if (!last) values = [...(guess ?? draft)];
      truth.style.display = fixed ? "" : "none";
      details.hidden = node.querySelector(".course-guess-legend").hidden = !fixed;
      points.forEach((point) => point.setAttribute("aria-readonly", String(fixed)));
      if (width) layOut();
      if (!fixed) return table.replaceChildren();
      const rows = posed.places.map((text, i) => cells("td", text, written(guess[i]), written(posed.truth[i])));
      table.replaceChildren(cells("th", posed.x_label, "your guess", "computed"), ...rows);
    },
  };
}

const draw = (tag, name, attributes = {}, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (name) node.setAttribute("class", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};
const cells = (tag, ...texts) => {
  const row = make("tr");
  row.append(...texts.map((text) => make(tag, "", tag === "th" ? { scope: "col" } : {}, text)));
  return row;
};
function sample(role, text) {
  const node = make("span", `course-guess-sample course-guess-${role}`);
  const picture = draw("svg", "", { width: 34, height: 14, "aria-hidden": "true" });
  const circle = () => draw("circle", "", { cx: 17, cy: 7, r: 5 });
  const mark = role === "mine" ? circle() : draw("path", "", { d: "M17 1L23 7L17 13L11 7Z" });
  picture.append(draw("path", "course-guess-path", { d: "M0 7L34 7" }), mark);
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
