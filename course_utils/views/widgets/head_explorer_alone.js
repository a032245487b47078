// Stands in for head_explorer.py on a page without a kernel: it gives the sentences that were read before.

import { bytes, listen } from "../shared/dom.js";

export function answerExplorer(model) {
  const { sentences, at } = model.get("_alone");
  sentences[at] = model.get("_shown");
  return listen(model, {
    _typed: () => {
      const found = sentences.find(({ text }) => text === model.get("_typed").text);
      const reading = readingOf(found);
      const { query } = found;
      const [layer, head] = model.get("head");
      const known = layer < found.layers && head < found.heads;
      if (!known) model.set("head", [0, 0]);
      model.set("_shown", found);
      model.set("key", 0);
      model.set("query", query);
      model.set("key", reading.strongest(known ? [layer, head] : [0, 0], query));
      model.set("_said", { text: "", number: model.get("_typed").number });
    },
  });
}

// A sentence as Python sends it, with its weights within reach; they are in steps of 1/255.
export function readingOf({ tokens, layers, heads, levels, again, ...more }) {
  const all = bytes(levels);
  const T = tokens.length;
  const size = (T * (T + 1)) / 2;
  const level = (l, h, query, key) => (key > query ? 0 : all[(l * heads + h) * size + (query * (query + 1)) / 2 + key]);
  const keysOf = { before: (i) => [i - 1], first: () => [0], itself: (i) => [i], again: (i) => again[i] };
  return {
    ...more,
    tokens,
    layers,
    heads,
    level,
    repeats: again.some((keys) => keys.length),
    strongest: ([l, h], query) => {
      let most = 0;
      for (let key = 1; key <= query; key++) if (level(l, h, query, key) > level(l, h, query, most)) most = key;
      return most;
    },
    // What `shares` of head_explorer.py gives: of each head the share of attention that a measure names.
    shares: (measure, query, key) => {
      const rows = tokens.map((_, i) => i).filter((i) => measure !== "pair" && i > 0 && keysOf[measure](i).length);
      return Array.from({ length: layers * heads }, (_, place) => {
        const l = Math.floor(place / heads);
        const h = place % heads;
        if (measure === "pair") return level(l, h, query, key) / 255;
        let sum = 0;
        for (const i of rows) for (const each of keysOf[measure](i)) sum += level(l, h, i, each);
        return sum / (255 * Math.max(1, rows.length));
      });
    },
  };
}
