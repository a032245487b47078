// Stands in for calculator.py on a page without a kernel: the bytes and the sentences, and sizes of one's own.

import { listen } from "../shared/dom.js";
import { counted, inBinaryUnits } from "../shared/units.js";

const SHOWN_FROM = ["context", "batch", "bytes_per_value", "n_kv_heads", "card"];

export function answerCalculator(model) {
  const known = model.get("_alone");
  const { own: OWN } = model.get("_layout");
  let own = known.start;
  const count = () => {
    const get = (name) => model.get(name);
    model.set(
      "_shown",
      memoryOf({
        ...Object.fromEntries(SHOWN_FROM.map((name) => [name, get(name)])),
        name: get("model"),
        own: get("model") === OWN ? own : null,
        ...known,
      }),
    );
  };
  const other = () => {
    model.set("n_kv_heads", null);
    count();
  };
  const read = () => {
    const { sizes, problem } = ownSizes(model.get("_typed"), known);
    model.set("_problem", problem);
    if (problem) return;
    own = sizes;
    count();
  };
  return listen(model, { ...Object.fromEntries(SHOWN_FROM.map((name) => [name, count])), model: other, _typed: read });
}

// As `_read` and `_verify_sizes` of calculator.py: the sizes that were typed, or what is wrong with them.
export function ownSizes(typed, { fields, largest }) {
  const sizes = {};
  const wrong = (problem) => ({ sizes: null, problem: `${problem}.` });
  for (const [name, text] of Object.entries(typed)) {
    if (!text.trim()) continue;
    const plain = name === "billions" ? text.trim() : text.replaceAll(",", "").trim();
    const fits = name === "billions" ? /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i : /^[+-]?\d+$/;
    if (!fits.test(plain))
      return wrong(`${fields[name]} is “${text}”: give ${name === "billions" ? "a number" : "a whole number"}`);
    sizes[name] = Number(plain);
  }
  const needed = "latent" in sizes ? ["layers", "latent", "rotary"] : ["layers", "n_kv_heads", "d_head"];
  const missing = needed.find((name) => !(name in sizes));
  if (missing) return wrong(`${fields[missing]} is missing`);
  const least = Object.keys(sizes).find((name) => name !== "billions" && sizes[name] < 1);
  if (least) return wrong(`${fields[least]} is ${sizes[least]}: it must be at least 1`);
  const outside = Object.keys(sizes).find((name) => !(sizes[name] > 0 && sizes[name] <= largest));
  if (outside)
    return wrong(
      `${fields[outside]} is ${sizes[outside].toLocaleString("en-US", { maximumFractionDigits: 9 })}: give a ` +
        `number above 0, up to ${counted(largest)}`,
    );
  return { sizes, problem: "" };
}

const many = (number, thing) => `${counted(number)} ${thing}${number === 1 ? "" : "s"}`;

// As `_count` of calculator.py. own: sizes of one's own, or null for the model of that name.
export function memoryOf({ name, own, context, batch, bytes_per_value: width, n_kv_heads, card, models, cards }) {
  const sizes = own ? sizesOfOnesOwn(own) : models[name];
  const heads = n_kv_heads || sizes.n_kv_heads;
  const perToken = sizes.d_latent ? sizes.d_latent + sizes.d_rope : 2 * heads * sizes.d_head;
  const kept = (T) => sizes.spans.reduce((sum, [layers, window]) => sum + layers * Math.min(T, window ?? T), 0);
  const cacheOf = (T) => perToken * kept(T) * batch * width;
  const cache = cacheOf(context);
  const weights = own ? (own.billions === undefined ? null : Math.round(2e9 * own.billions)) : weightsOf(sizes, heads);
  const size = cards[card];
  const parts = [
    `weights: ${weights === null ? "not counted here" : inBinaryUnits(weights)}`,
    `cache: ${inBinaryUnits(cache)}`,
  ];
  const how = `${factorsOf(sizes, heads, context)} × ${many(batch, "sequence")} × ${many(width, "byte")}`;
  return {
    weights,
    cache,
    card: size,
    heads,
    heads_told: sizes.d_latent ? "a latent" : String(heads),
    lines: [
      `cache = ${how} = ${inBinaryUnits(cache)}.`,
      fitOf(Boolean(own), weights, cache, size, card, sizes, cacheOf),
    ],
    parts,
  };
}

function sizesOfOnesOwn(own) {
  return {
    n_heads: own.n_kv_heads ?? 1,
    n_kv_heads: own.n_kv_heads ?? 1,
    d_head: own.d_head ?? 1,
    d_latent: own.latent ?? null,
    d_rope: own.rotary ?? null,
    spans: [[own.layers, own.window ?? null]],
    window: own.window ?? null,
    context: Infinity,
  };
}

// The numbers of a token times the layers and tokens that keep them, in words.
function factorsOf(sizes, heads, context) {
  const token = sizes.d_latent
    ? `(${sizes.d_latent} latent + ${sizes.d_rope} rotary)`
    : `2 × ${heads} heads × ${sizes.d_head}`;
  const terms = sizes.spans.map(
    ([layers, window]) =>
      `${layers} layers × ${
        window === null || context <= window
          ? `${counted(context)} tokens`
          : `${counted(window)} tokens (the window keeps the last ${counted(window)})`
      }`,
  );
  return `${token} × ${terms.length === 1 ? terms[0] : `(${terms.join(" + ")})`}`;
}

// Whether weights and cache fit a card, and how long a sequence may grow on it.
function fitOf(own, weights, cache, size, card, sizes, cacheOf) {
  if (weights === null) {
    return own
      ? "Without the number of parameters nothing can be said about the card."
      : "The course does not count the weights of this model, so nothing can be said about the card.";
  }
  if (weights > size) return `The weights alone are more than ${card}.`;
  const fits = weights + cache <= size ? "fits" : "does not fit";
  const together = `Together ${inBinaryUnits(weights + cache)} of ${card}: ${fits}.`;
  const most = longestContext(size - weights, sizes.window, cacheOf);
  if (most === Infinity) return `${together} At this batch the window fits, so the cache never grows beyond it.`;
  const beyond = most > sizes.context ? `, more than the ${counted(sizes.context)} that the model was made for` : "";
  return `${together} The card has room for ${many(most, "token")} a sequence${beyond}.`;
}

// How many tokens of a sequence the cache may hold in these bytes.
function longestContext(room, window, cacheOf) {
  const most = Math.max(0, Math.floor(room / cacheOf(1)));
  if (window === null || most < window) return most;
  const further = cacheOf(window + 1) - cacheOf(window);
  return further ? window + Math.floor((room - cacheOf(window)) / further) : Infinity;
}

// Bytes of the weights at 2 bytes each, as `parameters` of costs/configurations.py counts them; null with experts.
function weightsOf({ layers, d_model, n_heads, d_head, d_ff, gated, vocabulary, tied }, heads) {
  if (d_ff === null) return null;
  const queries = n_heads * d_head;
  const attention = d_model * (2 * queries + 2 * heads * d_head);
  return 2 * (layers * (attention + (gated ? 3 : 2) * d_model * d_ff) + vocabulary * d_model * (tied ? 1 : 2));
}
