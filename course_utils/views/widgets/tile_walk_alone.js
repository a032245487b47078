// Stands in for tile_walk.py on a page without a kernel: the walk through tiles of other sizes, or with the causal
// mask.

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
export function walkThrough(given, settings, itemsize) {
  const walk = new TileWalk(given, settings, itemsize);
  const { tiles, skipped, masked, frames } = walk.toTheEnd();
  const blocks = frames
    .map(({ queries }) => queries)
    .filter((queries, i, every) => queries && String(queries) !== String(every[i - 1]));
  return { tiles, skipped, masked, blocks, frames };
}

class TileWalk {
  constructor({ q, k, v, parts }, { causal, block_q, block_k }, itemsize) {
    this.k = k;
    this.v = v;
    this.parts = parts;
    this.settings = { causal, block_q, block_k };
    this.itemsize = itemsize;
    this.n = q.length;
    this.m = k.length;
    this.d_k = k[0].length;
    this.d_v = v[0].length;
    this.q = q.map((row) => row.map((part) => part * (1 / Math.sqrt(this.d_k))));
    this.tiles = [];
    this.skipped = [];
    this.masked = [];
    this.frames = [];
    this.read = 0;
    this.written = 0;
    this.done = 0;
  }

  toTheEnd() {
    const { n, m, d_k, d_v } = this;
    const { causal, block_q } = this.settings;
    const first = causal ? Math.max(0, n - m) : 0;
    this.add(
      "Q, K and V lie in slow memory. Nothing has moved." +
        (first ? ` ${span("Query", "Queries", 0, first)} may attend to no key: nothing is loaded there.` : ""),
    );
    if (first) this.skipped.push([0, first, 0, m]);
    for (let from = first, place = 0; from < n; from += block_q, place++) {
      this.walkQueries(from, Math.min(from + block_q, n), place);
    }
    const naive = (n * d_k + m * (d_k + d_v) + 2 * n * m + 2 * n * m + n * d_v) * this.itemsize;
    this.frames.at(-1).message +=
      ` All done: ${many(this.read + this.written)} bytes moved; naive attention moves at least ${many(naive)}.`;
    return this;
  }

  // How many keys a query sees, from the first one on.
  sees(query) {
    return this.settings.causal ? query + this.m - this.n + 1 : this.m;
  }

  // A block of queries: loaded, led past all blocks of keys that it sees, stored.
  walkQueries(from, to, place) {
    const [Q, , , , KEPT, , O] = this.parts;
    const size = to - from;
    const all = Array.from({ length: size }, (_, i) => from + i);
    const block = {
      queries: [from, to],
      all,
      partials: all.map(() => NOTHING(this.d_v)),
      held: { [Q]: [size, this.d_k], [KEPT]: [size, 2], [O]: [size, this.d_v] },
    };
    const { queries, held } = block;
    const loaded = `Load Q block ${place} (${span("query", "queries", from, to)}): ${this.load(size * this.d_k)}.`;
    const rows = all.map((query, i) => rowBefore(query, block.partials[i]));
    this.add(`${loaded} m = −∞, l = 0, o = 0.`, { queries, held, rows });
    const visible = this.sees(to - 1);
    for (let start = 0, number = 0; start < visible; start += this.settings.block_k, number++) {
      this.walkTile(block, start, Math.min(start + this.settings.block_k, visible), number);
    }
    if (visible < this.m) {
      this.skipped.push([from, to, visible, this.m]);
      this.frames.at(-1).message +=
        ` ${span("Key", "Keys", visible, this.m)}, above the diagonal: skipped, never loaded.`;
    }
    this.store(block);
  }

  // A block of keys and values, taken into the running softmax of each query of the block.
  walkTile(block, start, stop, number) {
    const [, K, V, SCORES, , OF_A_TILE] = this.parts;
    const { queries, all, partials } = block;
    const size = all.length;
    const count = stop - start;
    const scores = all.map((query) => this.scoresOf(query, start, stop));
    const loaded =
      `Load K and V block ${number} (${span("key", "keys", start, stop)}): ` +
      `${this.load(count * (this.d_k + this.d_v))}. Scores ${size}×${count}. `;
    const hidden = this.maskTile(block, start, stop, scores);
    const after = all.map((_, i) => absorb(partials[i], scores[i], this.v.slice(start, stop)));
    this.tiles.push([...queries, start, stop]);
    this.add(loaded + hidden + grownOf(after, number), {
      queries,
      keys: [start, stop],
      tile: this.tiles.length - 1,
      rows: all.map((query, i) => rowAt(query, partials[i], after[i], scores[i])),
      held: {
        ...block.held,
        [K]: [count, this.d_k],
        [V]: [count, this.d_v],
        [SCORES]: [size, count],
        [OF_A_TILE]: [size, 2],
      },
    });
    this.done++;
    block.partials = after;
  }

  scoresOf(query, start, stop) {
    return this.k
      .slice(start, stop)
      .map((key, i) =>
        start + i < this.sees(query) ? this.q[query].reduce((sum, part, c) => sum + part * key[c], 0) : -Infinity,
      );
  }

  // Notes what the diagonal hides of a tile; returns a sentence on it, or nothing.
  maskTile({ queries: [from], all }, start, stop, scores) {
    if (stop <= this.sees(from)) return "";
    for (const query of all) {
      if (this.sees(query) < stop) this.masked.push([query, Math.max(start, this.sees(query)), stop]);
    }
    const hidden = scores.flat().filter((score) => score === -Infinity).length;
    return `The diagonal runs through: ${hidden} of them ${hidden === 1 ? "is" : "are"} masked. `;
  }

  store({ queries, all, partials, held }) {
    const size = all.length;
    const cost = size * (this.d_v + 1) * this.itemsize;
    this.written += cost;
    this.add(
      `Divide o by l. Store ${size} ${size === 1 ? "output" : "outputs"} and m + log l of each: ${many(cost)} bytes. ` +
        "The scores were never stored.",
      { queries, held, stored: queries[1], rows: all.map((query, i) => rowStored(query, partials[i])) },
    );
  }

  load(count) {
    this.read += count * this.itemsize;
    return `${many(count * this.itemsize)} bytes`;
  }

  add(message, { queries = null, rows = [], held = {}, keys = null, tile = null, stored = 0 } = {}) {
    const sizes = this.parts.map((part) => held[part] ?? [0, 0]);
    this.frames.push({
      message,
      rows,
      tile,
      done: this.done,
      stored: stored || (this.frames.at(-1)?.stored ?? 0),
      queries,
      keys,
      read: this.read,
      written: this.written,
      held: sizes.map(([r, c]) => (r ? `${r}×${c}` : "–")),
      held_bytes: sizes.reduce((sum, [r, c]) => sum + r * c, 0) * this.itemsize,
    });
  }
}

const many = (count) => count.toLocaleString("en-US");
const span = (one, more, from, to) => (to - from === 1 ? `${one} ${from}` : `${more} ${from} to ${to - 1}`);

// What a block of keys does to the maxima of the queries.
function grownOf(after, number) {
  if (number === 0) return "There was nothing to keep: the factor e^(−∞ − m) is 0.";
  const grown = after.filter(({ factor }) => factor < 1).length;
  return grown
    ? `A new maximum for ${grown} of ${after.length} queries: their l and o shrink first.`
    : "No new maximum: every factor is 1.";
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
