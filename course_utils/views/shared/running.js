// The running softmax of attention/tiled.py, for one query, where no Python computes it.

export const NOTHING = (width) => ({ m: -Infinity, l: 0, o: Array(width).fill(0) });
export const expBelow = (x, m) => (x === -Infinity ? 0 : Math.exp(x - m)); // for x ≤ m; 0 where both are −∞

// One more block of keys, its scores and values, into {m, l, o}; `factor` is what the old sums were multiplied by.
export function absorb({ m, l, o }, scores, values) {
  const after = Math.max(m, ...scores);
  const factor = expBelow(m, after);
  const powers = scores.map((score) => expBelow(score, after));
  return {
    m: after,
    factor,
    powers,
    l: l * factor + powers.reduce((sum, power) => sum + power, 0),
    o: o.map((part, c) => part * factor + powers.reduce((sum, power, i) => sum + power * values[i][c], 0)),
  };
}
