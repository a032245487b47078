// The stages of attention and their matrices, computed on the page, so that a changed number is followed without a
// kernel, and for each cell the arithmetic that made it. stepper_story.py has the stages too, for text and picture; a
// test sees to it that they agree. The `fills` of a stage are what its steps bring: [matrix, row], [matrix, row,
// column], or null for all that is given.

import { inBrackets, numberText, sevenDigits } from "../shared/number_text.js";

const times = (a, b) => a.map((row) => b[0].map((_, c) => row.reduce((sum, x, i) => sum + x * b[i][c], 0)));
const transpose = (a) => a[0].map((_, c) => a.map((row) => row[c]));
const near = (a, b) => a === b || Math.abs(a - b) <= 1e-5 + 1e-4 * Math.abs(b);
const softmaxRow = (row) => {
  const largest = Math.max(...row);
  const powers = row.map((x) => Math.exp(x - (Number.isFinite(largest) ? largest : 0)));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => (sum > 0 ? power / sum : 0));
};

// given: X, W_Q, W_K and W_V, or Q, K and V. labels: tokens, key_tokens and mask (rows of booleans, or null). theirs:
// output and weights that somebody's function returned, or null.
export function tellStory(given, labels, theirs) {
  const steps = attentionOf(given, labels.mask);
  const matrices = {};
  for (const matrix of [...givenMatrices(given, labels, steps), ...madeMatrices(labels, steps, theirs ?? steps)])
    matrices[matrix.name] = matrix;
  return { stages: stagesOf(given, labels, steps, matrices, theirs ? ", from your function" : ""), matrices };
}

// All that the stages compute, by name.
function attentionOf(given, mask) {
  const q = given.Q ?? times(given.X, given.W_Q);
  const k = given.K ?? times(given.X, given.W_K);
  const v = given.V ?? times(given.X, given.W_V);
  const d_k = q[0].length;
  const scores = times(q, transpose(k));
  const scaled = scores.map((row) => row.map((score) => score / Math.sqrt(d_k)));
  const masked = mask ? scaled.map((row, r) => row.map((score, c) => (mask[r][c] ? score : -Infinity))) : scaled;
  const weights = masked.map(softmaxRow);
  return {
    q,
    k,
    v,
    d_k,
    scores,
    scaled,
    masked,
    weights,
    output: times(weights, v),
    before: mask ? "masked" : "scaled",
  };
}

const features = (matrix) => matrix[0].map((_, c) => String(c));

// What the page shows of a matrix. why: the arithmetic of a cell; wanted: the numbers that it should have.
function described(name, values, rows, columns, why, { role = "", text, shade = false, wanted } = {}) {
  return {
    name,
    role,
    rows,
    columns,
    why,
    shape: `${values.length}×${values[0].length}`,
    text: text ?? values.map((row) => row.map(numberText)),
    differs: values.map((row, r) => row.map((value, c) => Boolean(wanted) && !near(value, wanted[r][c]))),
    levels: shade
      ? values.map((row) => row.map((value) => Math.round(Math.max(0, Math.min(1, value || 0)) * 255)))
      : null,
  };
}

// X and the W that are given, then Q, K and V, and K transposed.
function givenMatrices(given, { tokens, key_tokens }, { q, k, v }) {
  const first = Object.entries(given)
    .filter(() => given.X)
    .map(([name, values]) => {
      const rows = name === "X" ? tokens : values.map((_, r) => String(r));
      return described(name, values, rows, features(values), isGiven(name, values, rows));
    });
  const projected = [
    ["Q", q, tokens, "query"],
    ["K", k, key_tokens, "key"],
    ["V", v, key_tokens, "value"],
  ].map(([name, values, rows, role]) => {
    const why = given.X
      ? isProduct(name, "X", given.X, `W_${name}`, given[`W_${name}`], values)
      : isGiven(name, values, rows);
    return described(name, values, rows, features(values), why, { role });
  });
  const turned = described("Kᵀ", transpose(k), features(k), key_tokens, isTransposed(k), { role: "key" });
  return [...first, ...projected, turned];
}

// From the scores to the output. shown: the weights and the output to show, which somebody's function may have
// returned.
function madeMatrices({ tokens, key_tokens, mask }, steps, shown) {
  const { q, k, v, d_k, scores, scaled, masked, weights, output, before } = steps;
  const made = [
    described("scores", scores, tokens, key_tokens, isProduct("scores", "Q", q, "Kᵀ", transpose(k), scores)),
    described("scaled", scaled, tokens, key_tokens, isScaled(scores, scaled, d_k)),
  ];
  if (mask) {
    const text = mask.map((row) => row.map((may) => (may ? "✓" : "✗")));
    made.push(
      described("mask", mask, tokens, key_tokens, isAllowed(mask, tokens, key_tokens), { text }),
      described("masked", masked, tokens, key_tokens, isMasked(scaled, mask)),
    );
  }
  made.push(
    described("weights", shown.weights, tokens, key_tokens, isSoftmax(before, masked, weights, shown.weights), {
      shade: true,
      wanted: weights,
    }),
    described("output", shown.output, tokens, features(v), isBlend(shown.weights, v, shown.output, output), {
      role: "output",
      wanted: output,
    }),
  );
  return made;
}

// whose: what to add to the formulas of weights and output that somebody's function returned.
function stagesOf(given, { key_tokens, mask }, { d_k, before }, matrices, whose) {
  const line = (...items) => items.map((item) => (item in matrices ? { matrix: item } : { sign: item }));
  const rowsOf = (names) => names.flatMap((name) => matrices[name].rows.map((_, r) => [name, r]));
  const stage = (name, formula, results, items, fills = rowsOf(results)) => ({
    name,
    formula,
    results,
    items: line(...items),
    fills,
  });
  const cells = rowsOf(["scores"]).flatMap(([name, r]) => key_tokens.map((_, c) => [name, r, c]));
  const masked = "masked = scaled where the mask is True, −∞ where it is False";
  const softmaxed = `weights = softmax of ${before}, along each row${whose}`;
  return [
    ...(given.X ? projections(given, stage) : [stage("Q, K, V", "given: queries, keys and values", ...QKV, [null])]),
    stage("scores", "scores = Q · Kᵀ", ["scores"], ["Q", "·", "Kᵀ", "=", "scores"], cells),
    stage("scaled", `scaled = scores / √d_k, with d_k = ${d_k}`, ["scaled"], ["scores", `/ √${d_k} =`, "scaled"]),
    ...(mask ? [stage("masked", masked, ["masked"], ["scaled", "where", "mask", "=", "masked"])] : []),
    stage("weights", softmaxed, ["weights"], [before, "softmax →", "weights"]),
    stage("output", `output = weights · V${whose}`, ["output"], ["weights", "·", "V", "=", "output"]),
  ];
}

const QKV = [
  ["Q", "K", "V"],
  ["Q", "K", "V"],
];
const projections = (given, stage) => [
  stage("X", `X: one row per token, d_model = ${given.X[0].length} numbers each`, ["X"], ["X"], [null]),
  stage(
    "Q, K, V",
    "Q = X · W_Q,  K = X · W_K,  V = X · W_V",
    ["Q", "K", "V"],
    ["X", "·", "W_Q", "W_K", "W_V", "=", "Q", "K", "V"],
  ),
];

// ---- each of these gives, for a cell, the lines that explain it and the parts of other matrices that it came from
const dot = (a, b, result) =>
  `${a.map((x, i) => `${inBrackets(numberText(x))}·${inBrackets(numberText(b[i]))}`).join(" + ")} = ` +
  `${numberText(result)}`;
const column = (matrix, c) => matrix.map((row) => row[c]);

const isGiven = (name, values, rows) => (r, c) => {
  const whose = "XQKV".includes(name) ? `number ${c} of “${rows[r]}”` : "a number that training would find";
  return [[`${name}[${r}, ${c}] = ${numberText(values[r][c])}`, `given: ${whose}`], []];
};
const isTransposed = (k) => (r, c) => [
  [`Kᵀ[${r}, ${c}] = ${numberText(k[c][r])}`, `the transpose: Kᵀ[${r}, ${c}] is K[${c}, ${r}]`],
  [["K", "cell", c, r]],
];
const isProduct = (name, left, a, right, b, result) => (r, c) => [
  [`${name}[${r}, ${c}]`, dot(a[r], column(b, c), result[r][c]), `row ${r} of ${left} times column ${c} of ${right}`],
  [
    [left, "row", r],
    [right, "column", c],
  ],
];
const isScaled = (scores, scaled, d_k) => (r, c) => {
  const score = numberText(scores[r][c]);
  const step = Number.isInteger(Math.sqrt(d_k)) ? "" : ` = ${score} / ${numberText(Math.sqrt(d_k))}`;
  return [
    [
      `scaled[${r}, ${c}]`,
      `${score} / √${d_k}${step} = ${numberText(scaled[r][c])}`,
      `the score over √d_k, with d_k = ${d_k}`,
    ],
    [["scores", "cell", r, c]],
  ];
};
const isAllowed = (mask, tokens, key_tokens) => (r, c) => [
  [
    `mask[${r}, ${c}] is ${mask[r][c] ? "True" : "False"}`,
    `“${tokens[r]}” ${mask[r][c] ? "may attend" : "may not attend"} to “${key_tokens[c]}”`,
  ],
  [],
];
const isMasked = (scaled, mask) => (r, c) => [
  mask[r][c]
    ? [`masked[${r}, ${c}] = ${numberText(scaled[r][c])}`, "the mask is True here: the scaled score stays"]
    : [`masked[${r}, ${c}] = −∞`, "the mask is False here: e^(−∞) = 0, so the key gets no weight"],
  [
    ["scaled", "cell", r, c],
    ["mask", "cell", r, c],
  ],
];
const isSoftmax = (before, logits, weights, shown) => (r, c) => {
  const row = logits[r];
  const head = `weights[${r}, ${c}]`;
  const finite = row.filter(Number.isFinite);
  const lit = [[before, "row", r]];
  const said = difference(shown[r][c], weights[r][c]);
  if (!finite.length) {
    return [
      [head, "0", "every key is masked for this query: there is nothing to share, so its weights are 0", ...said],
      lit,
    ];
  }
  const largest = Math.max(...row);
  const shift = Math.max(...finite.map(Math.abs)) > 20 ? largest : 0;
  const powers = row.map((x) => Math.exp(x - shift));
  const exponents = row.map((x) => inBrackets(numberText(x - shift)));
  const below = exponents.map((exponent) => `e^${exponent}`).join(" + ");
  const sum = powers.reduce((a, b) => a + b, 0);
  const sums =
    `e^${exponents[c]} / (${below}) = ${numberText(powers[c])} / ${numberText(sum)} = ` +
    `${numberText(weights[r][c])}`;
  const note = shift
    ? `, with its largest number, ${numberText(largest)}, taken off first so that no power overflows`
    : "";
  return [[head, sums, `softmax along row ${r} of ${before}${note}`, ...said], lit];
};
const isBlend = (weights, v, shown, wanted) => (r, c) => {
  const follows = weights[r].reduce((sum, weight, i) => sum + weight * v[i][c], 0);
  const said = difference(shown[r][c], wanted[r][c]);
  const lines = [
    `output[${r}, ${c}]`,
    dot(weights[r], column(v, c), follows),
    `row ${r} of weights times column ${c} of V`,
  ];
  if (near(shown[r][c], follows)) lines.push(...said.map((line) => `${line}, with the right weights`));
  else if (said.length) lines.push(...said);
  else lines.push(`your function gives ${numberText(shown[r][c])}, which is right, though its weights are not`);
  return [
    lines,
    [
      ["weights", "row", r],
      ["V", "column", c],
    ],
  ];
};
function difference(shown, wanted) {
  if (near(shown, wanted)) return [];
  const texts = [shown, wanted].map(numberText);
  const [given, right] = texts[0] === texts[1] ? [shown, wanted].map(sevenDigits) : texts;
  return [`your function gives ${given}; the arithmetic gives ${right}`];
}
