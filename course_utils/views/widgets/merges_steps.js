// The arithmetic of merges.py: a text's bytes, and what each merge of the most frequent pair makes of them.

const BYTES = 256;
const SIGNS = { 32: "␣", 10: "⏎", 9: "⇥" };

export const several = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

// The most frequent pairs of neighbours, [left, right, count] each; of those that are as frequent the smallest first.
function mostFrequent(tokens, shown) {
  const counts = new Map();
  for (let i = 1; i < tokens.length; i++) {
    const key = tokens[i - 1] * 65536 + tokens[i];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([key, count], [other, its]) => its - count || key - other);
  return sorted.slice(0, shown).map(([key, count]) => [Math.floor(key / 65536), key % 65536, count]);
}

// Where a pair is merged, from left to right and without overlap: the place of the left token of each.
export function placesOf(tokens, [left, right]) {
  const places = [];
  for (let i = 1; i < tokens.length; i++) {
    if (tokens[i - 1] === left && tokens[i] === right) places.push(i++ - 1);
  }
  return places;
}

function merged(tokens, pair, made) {
  const firsts = new Set(placesOf(tokens, pair));
  return tokens.flatMap((token, i) => (firsts.has(i) ? [made] : firsts.has(i - 1) ? [] : [token]));
}

// As `states_of` in merges.py: tokens and their most frequent pairs before each merge, and after the last.
export function statesOf(text, shown) {
  let tokens = [...new TextEncoder().encode(text)];
  const states = [];
  for (;;) {
    const pairs = mostFrequent(tokens, shown);
    states.push({ tokens, pairs });
    if (!pairs.length || pairs[0][2] < 2) return states;
    tokens = merged(tokens, pairs[0], BYTES + states.length - 1);
  }
}

// How each token is written: its bytes, with spaces that can be seen, and those outside ASCII as hex.
export function namesOf(states) {
  const names = Array.from({ length: BYTES }, (_, byte) => {
    const hex = byte.toString(16).toUpperCase().padStart(2, "0");
    return SIGNS[byte] ?? (byte > 32 && byte < 127 ? String.fromCharCode(byte) : `<${hex}>`);
  });
  for (const { pairs } of states.slice(0, -1)) names.push(names[pairs[0][0]] + names[pairs[0][1]]);
  return names;
}

// As `message_of` in merges.py.
export function messageOf(states, step, names) {
  const { tokens, pairs } = states[step];
  const plus = ([left, right]) => `“${names[left]}” + “${names[right]}”`;
  let did = `Each byte is a token: ${several(tokens.length, "token")}.`;
  if (step) {
    const before = states[step - 1];
    const places = several(before.tokens.length - tokens.length, "place");
    did = `Merge ${step}: ${plus(before.pairs[0])} became token ${BYTES + step - 1}, at ${places}.`;
  }
  if (step === states.length - 1) return `${did} No pair occurs twice now, so merging ends.`;
  const tie = pairs[1]?.[2] === pairs[0][2] ? ", the smallest in a tie" : "";
  return `${did} Most frequent now: ${plus(pairs[0])}, ${pairs[0][2]} times${tie}.`;
}

// What is wrong with a text that was typed; "" where nothing is.
export function problemOf(text, most) {
  const count = [...text].length;
  if (!count) return "Type at least one character.";
  return count > most ? `These are ${count} characters: at most ${most} fit.` : "";
}
