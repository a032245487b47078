// Stands in for decoding.py on a page without a kernel: the passes over other words.

import { listen } from "../shared/dom.js";

import { counted, inBinaryUnits } from "../shared/units.js";

export function answerDecoding(model) {
  const { most, longest } = model.get("_layout");
  const read = () => {
    const typed = model.get("_typed");
    const problem = wrongWords(typed, most, longest);
    if (!problem) {
      const [prompt, written] = typed.map((text) => text.split(/\s+/));
      model.set("step", 0);
      model.set("_tokens", [...prompt, ...written]);
      model.set("_frames", passesOf(prompt, written, model.get("_layout").token));
    }
    model.set("_problem", problem);
    model.set("_answered", typed);
  };
  return listen(model, { _typed: read });
}

export function wrongWords(typed, most, longest) {
  const words = typed.map((text) => text.split(/\s+/).filter(Boolean));
  const count = (word) => [...word].length;
  if (words.some((part) => !part.length)) return "Type at least one word into each field.";
  const long = words.flat().find((word) => count(word) > longest);
  if (long) return `“${[...long].slice(0, longest).join("")}…” has ${count(long)} letters: at most ${longest} fit.`;
  if (words.flat().length > most)
    return `These are ${words.map((part) => part.length).join(" and ")} words: at most ${most} fit in all.`;
  return "";
}

// Every pass as `_frame` of decoding.py makes it. token: bytes of the cache that a token takes.
export function passesOf(prompt, written, token) {
  const tokens = [...prompt, ...written];
  const n = tokens.length;
  const given = prompt.length;
  const pass = (step, cached) => {
    const T = given + step;
    const rows = cached && step ? 1 : T;
    return { rows, scores: rows * T, read: cached ? (T - rows) * token : 0, written: cached ? rows * token : 0 };
  };
  const sum = (step, cached) =>
    Array.from({ length: step + 1 }, (_, i) => pass(i, cached)).reduce((all, each) =>
      Object.fromEntries(Object.keys(all).map((name) => [name, all[name] + each[name]])),
    );
  const table = (step) => {
    const columns = [pass(step, false), pass(step, true), sum(step, false), sum(step, true)];
    return ["rows", "scores", "read", "written"].map((name) =>
      columns.map(({ [name]: number }) =>
        ["rows", "scores"].includes(name) ? counted(number) : number ? inBinaryUnits(number) : "–",
      ),
    );
  };
  const cells = (step, cached) => {
    const T = given + step;
    const first = T - pass(step, cached).rows;
    return tokens.map((_, i) =>
      i >= T
        ? "b".repeat(n + 3)
        : i < first
          ? `prr${"p".repeat(i + 1)}${"b".repeat(n - i - 1)}`
          : "n".repeat(i + 4) + "m".repeat(T - i - 1) + "b".repeat(n - T),
    );
  };
  const message = (step, cached) => passMessage(tokens, given, step, cached);
  const both = (make) => (step) => ({ without: make(step, false), with: make(step, true) });
  return written.map((_, step) => ({ cells: both(cells)(step), message: both(message)(step), table: table(step) }));
}

// What a pass does, in a sentence or three.
function passMessage(tokens, given, step, cached) {
  const T = given + step;
  const next = tokens[T];
  const place = `Pass ${step + 1} of ${tokens.length - given}.`;
  if (!step) {
    const what = T === 1 ? "The prompt's token goes" : `All ${T} tokens of the prompt go`;
    return (
      `${place} ${what} through the layers.${cached ? " Their keys and values go into the cache." : ""} The ` +
      `last row of scores decides on “${next}”.`
    );
  }
  return cached
    ? `${place} Only “${tokens[T - 1]}” goes through the layers. Its query meets ${T} keys: ${T - 1} from the ` +
        `cache and its own. That row decides on “${next}”.`
    : `${place} All ${T} tokens go through the layers again, for ${T} × ${T} scores. Of these only the last ` +
        `row is new; it decides on “${next}”.`;
}
