// The arithmetic of speculative.py, so that a coin, a slider and a new round need no kernel.

import { shortText } from "../shared/number_text.js";

export const movedTowards = (p, q, nearness) => q.map((theirs, i) => (1 - nearness) * theirs + nearness * p[i]);
export const overlapOf = (p, q) =>
  Math.min(
    1,
    p.reduce((sum, ours, i) => sum + Math.min(ours, q[i]), 0),
  );
export const expectedTokens = (alpha, gamma) => {
  let sum = 0;
  for (let power = 0; power <= gamma; power++) sum += alpha ** power;
  return sum;
};

// (p − q)₊ scaled to sum to 1; null where there is nothing of it.
export function remainderOf(p, q) {
  const left = p.map((ours, i) => Math.max(0, ours - q[i]));
  const total = left.reduce((sum, part) => sum + part, 0);
  return total > 1e-12 ? left.map((part) => part / total) : null;
}

// The token on whose part of the scale from 0 to 1 a coin falls.
function drawToken(weights, u) {
  let total = 0;
  for (let token = 0; token < weights.length; token++) {
    total += weights[token];
    if (u < total) return token;
  }
  return weights.findLastIndex((weight) => weight > 0);
}

// Mulberry32 (Tommy Ettinger, 2017), as `mulberry` in speculative.py.
function mulberry(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// A round as `Round` of speculative.py. seed: null for the drafted tokens and coins that were given.
export function roundOf(given, seed, nearness) {
  const { p } = given;
  const q = movedTowards(p, given.q, nearness);
  const rest = remainderOf(p, given.q);
  const chance = seed === null ? null : mulberry(seed);
  const drafted = chance ? given.drafted.map(() => drawToken(q, chance())) : given.drafted;
  const flips = chance ? given.coins.map(() => chance()) : given.coins;
  const coins = [];
  for (const [place, token] of drafted.entries()) {
    const u = flips[place];
    const ratio = p[token] && rest ? p[token] / q[token] : Number(p[token] > 0);
    const kept = u < ratio;
    coins.push({ token, u, ratio, kept });
    if (!kept) break;
  }
  const kept = coins.filter((coin) => coin.kept).map(({ token }) => token);
  const lastCoin = flips.at(-1);
  const source = kept.length === drafted.length || !rest ? "p" : "remainder";
  return { drafted, coins, source, lastCoin, tokens: [...kept, drawToken(source === "p" ? p : rest, lastCoin)] };
}

// What happens at each step, in words, as `describe` of speculative.py.
export function messageOf(round, words) {
  const { drafted, coins, source, lastCoin, tokens } = round;
  const gamma = drafted.length;
  const many = (count) => `${count} token${count === 1 ? "" : "s"}`;
  const named = (token) => `“${words[token]}”`;
  const looked = coins.map(({ token, u, ratio, kept }, i) => {
    const start = `Token ${i + 1}, ${named(token)}: p/q = ${shortText(ratio)}, `;
    const lost = gamma - i - 1;
    if (ratio >= 1) return `${start}which is at least 1: always kept, and the coin ${shortText(u)} is not needed.`;
    if (kept) return `${start}and the coin ${shortText(u)} is below it: kept.`;
    return (
      `${start}and the coin ${shortText(u)} is not below it: ` +
      `rejected.${["", " The one after it is dropped."][lost] ?? ` The ${lost} after it are dropped.`}`
    );
  });
  const end =
    `the coin ${shortText(lastCoin)} draws ${named(tokens.at(-1))}. ` + `This round gives ${many(tokens.length)}.`;
  return [
    `The drafter drew ${many(gamma)} from q: ${drafted.map(named).join(", ")}.`,
    ...looked,
    source === "p"
      ? `${gamma === 1 ? "It is" : `All ${gamma} are`} kept, so one more comes from p: ${end}`
      : `Its replacement comes from the remainder (p − q)₊, scaled to sum to 1: ${end}`,
  ];
}
