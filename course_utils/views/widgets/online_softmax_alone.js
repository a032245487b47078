// Stands in for online_softmax.py on a page without a kernel: what the page shows of the keys in another order.

import { listen } from "../shared/dom.js";

import { inBrackets, threeDecimals } from "../shared/number_text.js";
import { absorb, expBelow, NOTHING } from "../shared/running.js";

export function answerOrder(model) {
  const follow = () => {
    const shown = arranged(model.get("_alone"), model.get("order"));
    // the frames last: with them the page follows
    for (const name of ["_keys", "_ends", "_frames"]) model.set(name, shown[name]);
  };
  return listen(model, { order: follow });
}

// As `_arranged` of online_softmax.py.
export function arranged(given, order) {
  const [scores, labels] = [given.scores.map(Number), given.labels].map((each) => order.map((i) => each[i]));
  const values = given.values && order.map((i) => given.values[i]);
  const { block } = given;
  const three = threeDecimals;
  const partials = [{ ...NOTHING(values ? values[0].length : 0), factor: 0 }];
  for (let start = 0; start < scores.length; start += block) {
    partials.push(
      absorb(partials.at(-1), scores.slice(start, start + block), values?.slice(start, start + block) ?? []),
    );
  }
  const frames = partials.map((partial, step) => {
    const start = Math.max(0, step - 1) * block;
    const stop = Math.min(step * block, scores.length);
    const before = partials[Math.max(0, step - 1)];
    const cells = [partial.m, partial.factor, partial.l, ...partial.o].map(three);
    const read = labels.slice(start, stop);
    if (!step) cells[1] = "";
    return {
      start,
      stop,
      cells,
      bars: scores.slice(0, stop).map((score) => Number(expBelow(score, partial.m).toFixed(4))),
      why: step
        ? whyRow(before, partial, scores.slice(start, stop), values?.slice(start, stop))
        : whyFirst(partial.o.length),
      message: step
        ? messageOfStep(read, before.m, partial, Boolean(values))
        : `No key has been read: m = −∞, l = 0${values ? ", o = 0." : "."}`,
    };
  });
  const keys = order.map((i, place) => ({ index: i, label: labels[place], score: three(scores[place]) }));
  return { _keys: keys, _frames: frames, _ends: endsOf(partials.at(-1), scores, values) };
}

function whyRow(before, after, scores, values) {
  const three = threeDecimals;
  const [was, is] = [three(before.m), three(after.m)];
  const factor = three(after.factor);
  const none = after.m === -Infinity;
  const noted =
    before.m === -Infinity
      ? "nothing was summed before, so there is nothing to keep"
      : after.factor === 1
        ? "no new maximum: what was summed so far stays as it is"
        : "a new maximum: what was summed so far is multiplied by this";
  const terms = none
    ? after.powers.map(three).join(" + ")
    : scores.map((score) => `e^(${three(score)} − ${inBrackets(is)})`).join(" + ");
  const lines = [
    ["m", `max(${[was, ...scores.map(three)].join(", ")}) = ${is}`, "the largest score so far"],
    [
      "e^(m_old − m_new)",
      none ? `e^(−∞ − (−∞)) is not a number; it counts as ${three(0)}` : `e^(${was} − ${inBrackets(is)}) = ${factor}`,
      noted,
    ],
    [
      "l",
      `${factor} · ${three(before.l)} + ${terms} = ${three(after.l)}`,
      none
        ? "every key so far is masked and adds nothing"
        : `l was ${three(before.l)}; the factor times that, and the new powers`,
    ],
  ];
  after.o.forEach((part, c) => {
    const added = after.powers.map((power, i) => `${three(power)} · ${inBrackets(three(values[i][c]))}`).join(" + ");
    lines.push([
      after.o.length === 1 ? "o" : `o[${c}]`,
      `${factor} · ${inBrackets(three(before.o[c]))} + ${added} = ${three(part)}`,
      "the factor times o, and power · value",
    ]);
  });
  return lines;
}
function whyFirst(width) {
  const lines = [
    ["m", "−∞", "no score has been read: every score is larger"],
    ["e^(m_old − m_new)", "", "no step yet"],
  ];
  return [...lines, ...["l", ...Array(width).fill("o")].map((name) => [name, "0", "nothing has been summed"])];
}
function messageOfStep(read, was, { m, factor }, has) {
  const opening = read.length === 1 ? `Read ${read[0]}.` : `Read ${read[0]} to ${read.at(-1)}.`;
  const sums = has ? "l and o" : "l";
  if (m === -Infinity) return `${opening} Masked: e^(−∞) = 0, so nothing changes.`;
  if (was === -Infinity)
    return `${opening} The first score that counts sets m. There was nothing to keep: the factor is 0.`;
  if (factor === 1) return `${opening} No new maximum: the factor is 1, and the new terms are added to ${sums}.`;
  return `${opening} A new maximum: ${sums} shrink${has ? "" : "s"} by ${threeDecimals(factor)} first.`;
}
function endsOf({ m, l, o }, scores, values) {
  const three = threeDecimals;
  const largest = Math.max(...scores);
  const powers = scores.map((score) => expBelow(score, largest));
  const total = powers.reduce((sum, power) => sum + power, 0) || 1;
  const weights = powers.map((power) => power / total);
  const sums = l
    ? `m = ${three(m)}, l = ${three(l)}; m + log l = ${three(m + Math.log(l))}, the log-sum-exp of the scores, ` +
      "in any order"
    : "Every key is masked: l is 0, and the weights and the output are 0 by convention.";
  const heads = values ? ["o / l", "softmax(scores) · values"] : ["e^(score − m) / l", "softmax(scores)"];
  const found = values ? o.map((part) => part / (l || 1)) : scores.map((score) => expBelow(score, m) / (l || 1));
  const wanted = values
    ? values[0].map((_, c) => weights.reduce((sum, weight, i) => sum + weight * values[i][c], 0))
    : weights;
  const rows = [found.map(three), wanted.map(three)];
  const wide = Math.max(...heads.map((name) => name.length));
  return {
    heads,
    rows,
    sums,
    lines: [sums, ...heads.map((name, r) => `${name.padEnd(wide)} = (${rows[r].join(", ")})`)],
  };
}
