// Stands in for painter.py on a page without a kernel: what was measured before of each row, put together, and told.

import { listen } from "../shared/dom.js";
import { shortText } from "../shared/number_text.js";

const HAIR = 1e-6;
const ENOUGH = 1e-3; // as SINGLE of number_text.py, and the tolerance of painter_verdict.py

export function answerPainter(model) {
  const { rows, crossed, name } = model.get("_alone");
  const tokens = model.get("_tokens");
  const keys = model.get("_keys");
  const follow = () => {
    if (rows) model.set("_result", resultOf(model.get("_mask"), rows, { tokens, keys, crossed, name }));
  };
  return listen(model, { _mask: follow });
}

// As `_result` of painter.py. signs: the mask; rows: what `rows_measured` of painter_verdict.py gave.
export function resultOf(signs, rows, { tokens, keys, crossed, name }) {
  const n = tokens.length;
  const m = keys.length;
  const queries = quoted(tokens);
  const mask = tokens.map((_, r) => [...signs.slice(r * m, r * m + m)].map((sign) => sign === "1"));
  const each = mask.map((_, r) => rows[parseInt(signs.slice(r * m, r * m + m), 2)]);
  const known = each.every(({ weights }) => weights);
  const weights = known ? each.map(({ weights: all }, r) => all[r].map(Number)) : null;
  const leak = crossed
    ? null
    : worstLeak(
        mask,
        each.map(({ changes }, r) => changes[r].map(Number)),
      );
  const finite = !weights || weights.flat().every(Number.isFinite);
  const kind = !leak ? "none" : leak.i !== null ? (mask[leak.i][leak.j] ? "ahead" : "leak") : finite ? "clean" : "nan";
  const lines = [
    ...messageOfVerdict(leak, mask, weights, queries, name),
    emptyRows(mask, weights, queries),
    oddities(
      mask,
      weights,
      each.every(({ follows }, r) => follows[r]),
      queries,
    ),
  ];
  return { mask: signs, kind, lines, ...cellsOf(mask, weights, n, m) };
}

function worstLeak(mask, changes) {
  const pairs = mask
    .flatMap((row, i) => row.map((may, j) => ({ i, j, may, amount: changes[i][j] })))
    .filter(({ i, j, amount }) => j > i && amount > 0);
  const past = pairs.filter(({ may }) => !may);
  const worst = (past.length ? past : pairs).reduce((a, b) => (b.amount > a.amount ? b : a), { amount: 0 });
  return { i: worst.i ?? null, j: worst.j ?? null, amount: worst.amount };
}

function cellsOf(mask, weights, n, m) {
  const rows = mask.map((row) => (row.some(Boolean) ? "-" : "e")).join("");
  if (!weights) return { text: Array(n * m).fill(""), levels: Array(n * m).fill(0), marks: "x".repeat(n * m), rows };
  const may = mask.flat();
  const all = weights.flat();
  const nothing = all.map((weight, i) => !may[i] && weight === 0);
  return {
    rows,
    text: all.map((weight, i) => (nothing[i] ? "–" : shortText(weight, HAIR))),
    levels: all.map((weight) => Math.round(255 * (Number.isFinite(weight) ? Math.max(0, Math.min(1, weight)) : 0))),
    marks: all.map((weight, i) => (!Number.isFinite(weight) ? "n" : may[i] ? "w" : nothing[i] ? "b" : "l")).join(""),
  };
}

export function messageOfVerdict(leak, mask, weights, queries, name) {
  if (!leak) {
    return [
      "no verdict: the queries and the keys are two sequences",
      "No key comes after a query, so the question of a leak has no meaning here.",
    ];
  }
  const ahead = mask.flatMap((row, r) => row.filter((may, c) => may && c > r)).length;
  const cells = `${ahead} cell${ahead > 1 ? "s" : ""}`;
  if (leak.i === null) {
    const wrong = (weights ?? []).flat().filter((weight) => !Number.isFinite(weight));
    const clean = wrong.length
      ? `no leak, but ${wrong.some(Number.isNaN) ? "NaN" : "infinity"} among the weights`
      : "no leak: no output sees a later token";
    return [
      clean,
      ahead
        ? `Yet the mask opens ${cells} above the diagonal. Does ${name} use the mask?`
        : "The mask blocks every cell above the diagonal.",
    ];
  }
  const [first, later] = [queries[leak.i], queries[leak.j]];
  const sentence =
    `the output of ${first} ${Number.isFinite(leak.amount) ? "changes" : "becomes NaN or infinite"} when ` +
    `${later} changes`;
  return mask[leak.i][leak.j]
    ? [`looks ahead: ${sentence}`, "That is a leak in a causal model, but harmless in an encoder, which only reads."]
    : [`leak: ${sentence}`, `The mask blocks ${later} for ${first}: it is ${name} that lets it through.`];
}

export function emptyRows(mask, weights, queries) {
  const empty = mask.flatMap((row, r) => (row.some(Boolean) ? [] : [r]));
  const whose = empty.length === 1 ? "its weights" : "their weights";
  if (!empty.length) return "Every query may attend to at least one key.";
  const names = empty.map((row) => queries[row]);
  const sentence =
    `${names.length > 2 ? `${names[0]}, ${names[1]} and ${names.length - 2} more` : names.join(" and ")} may ` +
    "attend to nothing";
  if (!weights) return `${sentence}.`;
  const theirs = empty.flatMap((row) => weights[row]);
  const share = 1 / mask[0].length;
  if (theirs.every(Number.isNaN)) return `${sentence}: ${whose} are NaN.`;
  if (!theirs.every(Number.isFinite)) return `${sentence}: some of ${whose} are NaN or infinite.`;
  if (theirs.every((weight) => weight === 0)) return `${sentence}: ${whose} are 0.`;
  if (theirs.every((weight) => Math.abs(weight - share) <= 1e-4 + 1e-5 * share))
    return `${sentence}: ${whose} are ${shortText(share, HAIR)} each, as a finite fill gives.`;
  return `${sentence}: ${whose} are not 0.`;
}

export function oddities(mask, weights, follows, queries) {
  if (!weights) return "No weights were returned to show.";
  const full = mask.flatMap((row, r) => (row.some(Boolean) ? [r] : []));
  const sentences = [];
  const through = full.flatMap((r) => weights[r].filter((weight, c) => !mask[r][c] && weight !== 0)).length;
  if (through) sentences.push(`${through} blocked cell${through > 1 ? "s have" : " has"} a weight.`);
  const sums = weights.map((row) => row.reduce((sum, weight) => sum + weight, 0));
  const off = full.find((r) => !(Math.abs(sums[r] - 1) <= ENOUGH));
  if (off !== undefined) sentences.push(`The weights of ${queries[off]} sum to ${shortText(sums[off], HAIR)}, not 1.`);
  if (!follows) sentences.push("The output is not weights · v.");
  return sentences.join(" ");
}

function quoted(labels) {
  const short = (label) => ([...label].length <= 16 ? label : `${[...label].slice(0, 15).join("")}…`);
  return labels.map(
    (label, place) =>
      `“${short(label)}”${labels.filter((other) => other === label).length > 1 ? ` (token ${place})` : ""}`,
  );
}
