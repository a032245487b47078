// The arithmetic of memory_board.py: a state, what was written to it, and what each key reads.

export function stateOf(pairs, writes, rule) {
  const { keys, values } = pairs;
  const S = keys[0].map(() => values[0].map(() => 0));
  const read = (key) => values[0].map((_, j) => key.reduce((sum, each, i) => sum + each * S[i][j], 0));
  const last = new Map();
  for (const pair of writes) {
    const there = rule === "delta" ? read(keys[pair]) : values[0].map(() => 0);
    keys[pair].forEach((each, i) => {
      values[pair].forEach((value, j) => {
        S[i][j] += each * (value - there[j]);
      });
    });
    last.set(keys[pair].join(), pair);
  }
  const reads = keys.map((key) => {
    const found = read(key);
    const written = last.get(key.join());
    const wanted = written === undefined ? null : values[written];
    const error = wanted ? Math.max(...found.map((each, j) => Math.abs(each - wanted[j]))) : 0;
    return [found, wanted, error];
  });
  return { S, reads };
}
