// How near a guess came, as nearness.py and summary.py say it, and the guesses that a page without a kernel keeps.

import { minus } from "./dom.js";
import { fixedText, scientific } from "./number_text.js";

const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

// As `judge` in nearness.py: asked is what guess.py poses or what guesses are kept with.
export function judge(asked, guess) {
  const { truth, kind } = asked;
  const log = asked.scale === "log";
  const near = log ? Math.log(NEAR_FACTOR) : NEAR;
  const right = guess[0] === truth[0];
  if (kind === "choice") return { right, off: right ? 0 : 1, lean: 0, text: right ? "right" : "not right" };
  const range = asked.high - asked.low;
  const within = log ? `a factor of ${NEAR_FACTOR}` : `${100 * NEAR}% of the range`;
  const errors = guess.map((value, i) => (log ? Math.log(value / truth[i]) : (value - truth[i]) / range));
  const sign = (error) => (Math.abs(error) <= near ? 0 : Math.sign(error));
  const off = mean(errors.map(Math.abs));
  const count = errors.length;
  const lean = sign(mean(errors));
  const found = { right: null, off, lean };
  if (kind === "number") {
    return {
      ...found,
      text: lean ? `too ${lean > 0 ? "high" : "low"} by ${distance(off, log)}` : `near: within ${within}`,
    };
  }
  const counted = (to) => errors.filter((error) => sign(error) === to).length;
  const sides = [
    ["high", 1],
    ["low", -1],
  ]
    .filter(([, to]) => counted(to))
    .map(([side, to]) => `too ${side} at ${counted(to)}`);
  if (!sides.length) return { ...found, text: `near: within ${within} at all ${count} places` };
  sides[0] += ` of ${count} places`;
  return { ...found, text: `${distance(off, log)} away on average, ${sides.join(" and ")}` };
}
const NEAR = 0.02;
const NEAR_FACTOR = 1.05;
const distance = (off, log) =>
  log ? `a factor of ${brief(Math.exp(off), 2)}` : `${Math.max(1, Number(fixedText(100 * off, 0)))}% of the range`;

// As `brief` in nearness.py.
export function brief(value, digits = 3) {
  if (value === 0) return "0";
  const sign = value < 0 ? "−" : "";
  const [mantissa, exponent] = scientific(Math.abs(value), digits - 1);
  const size = Number(`${mantissa}e${exponent}`);
  if (size >= 1e-4 && size < 1e7) return sign + size.toLocaleString("en-US", { maximumFractionDigits: 10 });
  return `${sign}${mantissa}e${minus(String(exponent))}`;
}

// ---- the guesses of a page without a kernel. They lie in the browser's localStorage under "course-guesses", in the
// form of guesses/dayN.json: {"schema": 1, "days": {"1": [{asked, first, last, count, when}, …], …}}. Where the browser
// keeps nothing, they last as long as the page. No request leaves the page. Other widgets on it hear of each by an
// event of the window, "course-guesses".
const KEY = "course-guesses";
const SAME = ["question", "kind", "low", "high", "scale", "unit", "places", "choices"];
const ASKED = ["day", "name", "truth", ...SAME];

export function readGuesses() {
  try {
    const { schema, days } = JSON.parse(localStorage.getItem(KEY)) ?? {};
    if (schema === 1 && days) return days;
  } catch {
    /* storage is blocked, or the key holds something else */
  }
  return globalThis[KEY] ?? {};
}
export const guessesOf = (day) =>
  [readGuesses()[day] ?? []].flat().filter((each) => each?.asked?.truth && each.first && each.last);
const sameQuestion = (asked, other) =>
  SAME.every((part) => JSON.stringify(asked[part]) === JSON.stringify(other[part]));
export const guessAt = (posed) =>
  guessesOf(posed.day).find(({ asked }) => asked.name === posed.name && sameQuestion(asked, posed));

// Adds a guess: the first at a question counts. What is kept of it now, and whether it outlives the page.
export function keepGuess(posed, guess) {
  const days = readGuesses();
  const before = guessAt(posed);
  const asked = Object.fromEntries(ASKED.map((name) => [name, posed[name]]));
  const kept = before
    ? { ...before, last: guess, count: before.count + 1 }
    : { asked, first: guess, last: guess, count: 1, when: new Date().toISOString().slice(0, 10) };
  const others = guessesOf(posed.day);
  const place = others.findIndex(({ asked: { name } }) => name === posed.name);
  days[posed.day] = place < 0 ? [...others, kept] : others.map((each, i) => (i === place ? kept : each));
  globalThis[KEY] = days;
  let lasts = true;
  try {
    localStorage.setItem(KEY, JSON.stringify({ schema: 1, days }));
  } catch {
    lasts = false;
  }
  window.dispatchEvent(new CustomEvent(KEY));
  return { kept, lasts };
}

// Calls `hear` after each guess on this page and, where the browser keeps them, in another of its windows.
export function hearGuesses(hear) {
  const other = (event) => {
    if (event.key === KEY) hear();
  };
  window.addEventListener(KEY, hear);
  window.addEventListener("storage", other);
  return () => {
    window.removeEventListener(KEY, hear);
    window.removeEventListener("storage", other);
  };
}

// ---- many guesses together, as summary.py sums them up
const FEW = 4;
const MAJORITY = 0.75;
const some = (count, thing, things = `${thing}s`) => `${count} ${count === 1 ? thing : things}`;

export function summedUp(kept) {
  if (!kept.length) return ["No guess yet."];
  const all = kept.map(({ asked, first }) => ({ asked, ...judge(asked, first) }));
  const lines = [`${some(kept.length, "guess", "guesses")}.`];
  const choices = all.filter(({ right }) => right !== null);
  const measured = all.filter(({ right }) => right === null);
  if (choices.length)
    lines.push(`${choices.filter(({ right }) => right).length} of ${some(choices.length, "choice")} right.`);
  if (!measured.length) return lines;
  const count = (to) => measured.filter(({ lean }) => lean === to).length;
  const parts = [
    [1, "too high"],
    [-1, "too low"],
    [0, "neither"],
  ].map(([to, word]) => `${count(to)} ${word}`);
  lines.push(`Of ${some(measured.length, "number or curve", "numbers and curves")}: ${parts.join(", ")}.`);
  const offs = ["linear", "log"].map((scale) => [
    scale,
    measured.filter(({ asked }) => asked.scale === scale).map(({ off }) => off),
  ]);
  const medians = offs
    .filter(([, each]) => each.length)
    .map(([scale, each]) => distance(median(each), scale === "log"));
  lines.push(
    "Their median error is " +
      `${medians.join(" on linear scales, and ")}${medians.length === 2 ? " on logarithmic ones" : ""}.`,
  );
  return [...lines, tendency(count(1), count(-1))];
}
function tendency(high, low) {
  const missed = high + low;
  if (missed < FEW) return "That is too few to show a tendency.";
  for (const [count, side] of [
    [high, "high"],
    [low, "low"],
  ]) {
    if (count >= MAJORITY * missed) return `Your guesses tend to be too ${side}: ${count} of ${missed} that missed.`;
  }
  return "Your guesses lean neither way.";
}
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2;
}
export function inALine(kept) {
  const leans = kept.filter(({ asked }) => asked.kind !== "choice").map(({ asked, first }) => judge(asked, first).lean);
  const parts = [
    [1, "high"],
    [-1, "low"],
  ]
    .filter(([lean]) => leans.includes(lean))
    .map(([lean, side]) => `${leans.filter((each) => each === lean).length} too ${side}`);
  const said = some(kept.length, "guess", "guesses");
  return !kept.length ? "" : parts.length ? `${said}: ${parts.join(", ")}` : said;
}
