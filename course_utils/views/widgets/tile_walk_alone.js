// Stands in for tile_walk.py on a page without a kernel: the walk through tiles of other sizes, or with the causal mask.

import { listen } from "../shared/dom.js";

import { inBrackets, threeDecimals } from "../shared/number_text.js";
import { absorb, NOTHING } from "../shared/running.js";

export function answerWalk(model) {
  const given = model.get("_alone");
  const { itemsize } = model.get("_layout");
  const follow = () => {
    const settings = Object.fromEntries(["causal", "block_q", "block_k"].map((name) => [name, model.get(name)]));
    if (JSON.stringify(settings) === JSON.stringify(model.get("_walk").settings)) return;
    model.set("step", 0);
    model.set("_walk", { settings, ...walkThrough(given, settings, itemsize) });
  };
  return listen(model, { causal: follow, block_q: follow, block_k: follow });
}

// As `Walk` of tile_walk.py. q, k and v are rows of numbers; the frames say what moves and what it does to each query.
function walkThrough({ q: given, k, v, parts: PARTS }, { causal, block_q, block_k }, itemsize) {
  const n = given.length;
  const m = k.length;
  const d_k = k[0].length;
  const d_v = v[0].length;
  const [Q, K, V, SCORES, ROW, O] = PARTS;
  const q = given.map((row) => row.map((part) => part * (1 / Math.sqrt(d_k))));
  const tiles = [];
  const skipped = [];
  const masked = [];
  const frames = [];
  const many = (count) => count.toLocaleString("en-US");
  let read = 0;
  let written = 0;
  let done = 0;
  const span = (one, more, from, to) => (to - from === 1 ? `${one} ${from}` : `${more} ${from} to ${to - 1}`);
  const load = (count) => {
    read += count * itemsize;
    return `${many(count * itemsize)} bytes`;
  };
  function add(told, { queries = null, rows = [], held = {}, keys = null, tile = null, stored = 0 } = {}) {
    const sizes = PARTS.map((part) => held[part] ?? [0, 0]);
    frames.push({
      told,
      rows,
      tile,
      done,
      stored: stored || (frames.at(-1)?.stored ?? 0),
      queries,
      keys,
      read,
      written,
      held: sizes.map(([r, c]) => (r ? `${r}×${c}` : "–")),
      held_bytes: sizes.reduce((sum, [r, c]) => sum + r * c, 0) * itemsize,
    });
  }

  const first = causal ? Math.max(0, n - m) : 0;
  add(
    `Q, K and V lie in slow memory. Nothing has moved.${first ? ` ${span("Query", "Queries", 0, first)} may attend to no key: nothing is loaded there.` : ""}`,
  );
  if (first) skipped.push([0, first, 0, m]);
  for (let from = first, place = 0; from < n; from += block_q, place++) {
    const to = Math.min(from + block_q, n);
    const size = to - from;
    const queries = [from, to];
    const all = Array.from({ length: size }, (_, i) => from + i);
    const held = { [Q]: [size, d_k], [ROW]: [size, 2], [O]: [size, d_v] };
    let partials = all.map(() => NOTHING(d_v));
    add(`Load Q block ${place} (${span("query", "queries", from, to)}): ${load(size * d_k)}. m = −∞, l = 0, o = 0.`, {
      queries,
      held,
      rows: all.map((query, i) => rowBefore(query, partials[i])),
    });
    const visible = causal ? to + m - n : m;
    const seen_by_all = causal ? from + m - n + 1 : m;
    for (let start = 0, number = 0; start < visible; start += block_k, number++) {
      const stop = Math.min(start + block_k, visible);
      const count = stop - start;
      const sees = (query) => (causal ? query + m - n + 1 : m);
      const scores = all.map((query) =>
        k
          .slice(start, stop)
          .map((key, i) =>
            start + i < sees(query) ? q[query].reduce((sum, part, c) => sum + part * key[c], 0) : -Infinity,
          ),
      );
      let told = `Load K and V block ${number} (${span("key", "keys", start, stop)}): ${load(count * (d_k + d_v))}. Scores ${size}×${count}. `;
      if (stop > seen_by_all) {
        const hidden = scores.flat().filter((score) => score === -Infinity).length;
        told += `The diagonal runs through: ${hidden} of them ${hidden === 1 ? "is" : "are"} masked. `;
        for (const query of all) if (sees(query) < stop) masked.push([query, Math.max(start, sees(query)), stop]);
      }
      const after = all.map((_, i) => absorb(partials[i], scores[i], v.slice(start, stop)));
      const grown = after.filter(({ factor }) => factor < 1).length;
      told +=
        number === 0
          ? "There was nothing to keep: the factor e^(−∞ − m) is 0."
          : grown
            ? `A new maximum for ${grown} of ${size} queries: their l and o shrink first.`
            : "No new maximum: every factor is 1.";
      tiles.push([from, to, start, stop]);
      add(told, {
        queries,
        keys: [start, stop],
        tile: tiles.length - 1,
        rows: all.map((query, i) => rowAt(query, partials[i], after[i], scores[i])),
        held: { ...held, [K]: [count, d_k], [V]: [count, d_v], [SCORES]: [size, count], [ROW]: [size, 4] },
      });
      done++;
      partials = after;
    }
    if (visible < m) {
      skipped.push([from, to, visible, m]);
      frames.at(-1).told += ` ${span("Key", "Keys", visible, m)}, above the diagonal: skipped, never loaded.`;
    }
    const cost = size * (d_v + 1) * itemsize;
    written += cost;
    add(
      `Divide o by l. Store ${size} ${size === 1 ? "output" : "outputs"} and m + log l of each: ${many(cost)} bytes. The scores were never stored.`,
      { queries, held, stored: to, rows: all.map((query, i) => rowStored(query, partials[i])) },
    );
  }
  const naive = (n * d_k + m * (d_k + d_v) + 2 * n * m + 2 * n * m + n * d_v) * itemsize;
  frames.at(-1).told +=
    ` All done: ${many(read + written)} bytes moved; naive attention moves at least ${many(naive)}.`;
  const blocks = frames
    .map(({ queries }) => queries)
    .filter((queries, i, every) => queries && String(queries) !== String(every[i - 1]));
  return { tiles, skipped, masked, blocks, frames };
}

const fourDecimals = (row) => row.map((value) => Number(value.toFixed(4)) + 0);
function rowBefore(query, { m, l, o }) {
  const [best, sum, kept] = [threeDecimals(m), threeDecimals(l), fourDecimals(o)];
  return {
    query: String(query),
    m: [best, best],
    l: [sum, sum],
    factor: "",
    o: kept,
    kept,
    why: ["m = −∞, l = 0, o = 0: no key has been seen yet.", "", ""],
  };
}
function rowAt(query, before, after, scores) {
  const three = threeDecimals;
  const [m, l, was, sum, factor] = [after.m, after.l, before.m, before.l, after.factor].map(three);
  const added = scores.reduce((total, score) => total + Math.exp(score - after.m), 0);
  return {
    query: String(query),
    m: [was, m],
    l: [sum, l],
    factor,
    o: fourDecimals(after.o),
    kept: fourDecimals(before.o.map((part) => part * after.factor)),
    why: [
      `new m = max(${was}, ${three(Math.max(...scores))}) = ${m}`,
      `factor = e^(${was} − ${inBrackets(m)}) = ${factor}`,
      `new l = ${factor} · ${sum} + ${three(added)} = ${l}`,
    ],
  };
}
function rowStored(query, { m: best, l: sum, o }) {
  const [m, l, lse] = [best, sum, best + Math.log(sum)].map(threeDecimals);
  return {
    query: String(query),
    m: [m, m],
    l: [l, l],
    factor: "÷ l",
    o: fourDecimals(o.map((part) => part / sum)),
    kept: fourDecimals(o),
    why: [
      `output = o / l, each number divided by ${l}`,
      `m + log l = ${m} + log ${l} = ${lse}`,
      "stored: the output and m + log l; m and l themselves are not needed any more",
    ],
  };
}
