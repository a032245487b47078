// Stands in for practice.py on a page without a kernel: some problems, with the right values and the known slips.

import { listen } from "../shared/dom.js";

const NEAR_BY = 0.006;
const NEAR_SHARE = 0.005;
const COUNT_SHARE = 0.01; // as ATOL, RTOL and COUNT_RTOL of practice/problem.py
const SIGNS = { right: "✓", follows: "✓", wrong: "✗", unread: "?", empty: "" };
const OPEN = "Not the right value. Whether it follows from yours is judged in JupyterLab.";

export function answerPractice(model) {
  const { problems } = model.get("_alone");
  const numbers = problems.map(({ number }) => number);
  const here = () => problems.find(({ number }) => number === model.get("number"));
  const pose = () => {
    model.set("shown", false);
    model.set("_posed", { statement: here().statement, steps: here().steps });
    model.set(
      "entries",
      here().steps.map(() => ""),
    );
    judge();
  };
  const judge = () => {
    const { judged, summary } = judgeSteps(here().steps, model.get("entries"));
    model.set("_judged", judged);
    model.set("_summary", summary);
  };
  const another = () => model.set("number", numbers[(numbers.indexOf(model.get("number")) + 1) % numbers.length]);
  return listen(model, { number: pose, entries: judge, _another: another });
}

// As `judge` of practice/problem.py, as far as what was computed before goes. A value may come in several ways: from
// full precision and from steps rounded to two decimals; with a slip at a step, `then` are the right values after it.
export function judgeSteps(steps, entries) {
  let astray = false;
  const after = {};
  let wrong = null;
  let done = 0;
  let unknown = false; // after: what follows from slips taken so far
  const judged = steps.map((step, place) => {
    const mark = (status, said = "") => ({ status, sign: SIGNS[status], said });
    let mine;
    try {
      mine = shaped(step, readEntry(entries[place]));
    } catch (error) {
      return mark("unread", error.message);
    }
    if (mine === null) return mark("empty");
    const is = (value) => nearTo(mine, value, step.count);
    if (step.right_ways.some(is)) {
      done++;
      return mark("right", "right");
    }
    if (astray && (after[step.name] ?? []).some(is)) {
      done++;
      return mark("follows", "correct from your value on");
    }
    const slip = step.slips.find(({ values }) => values.some(is));
    if (!slip && astray && unknown) return { ...mark("unread", OPEN) };
    wrong ??= step.name;
    astray = true;
    unknown ||= !slip;
    for (const [name, values] of Object.entries(slip?.then ?? {})) after[name] = [...(after[name] ?? []), ...values];
    return mark("wrong", `not right${slip ? `. ${slip.said}` : ""}`);
  });
  const empty = judged.filter(({ status }) => status === "empty").length;
  const summary = wrong
    ? `The first wrong step is ${wrong}.`
    : done === steps.length
      ? "All steps are right."
      : done
        ? `${done} of ${steps.length} steps are ` +
          `right${empty ? `; ${empty} ${empty === 1 ? "field is" : "fields are"} empty` : ""}.`
        : "";
  return { judged, summary };
}

function nearTo(mine, value, count) {
  const [a, b] = [mine.flat(), [value].flat(2)];
  return (
    a.length === b.length &&
    a.every(
      (part, i) =>
        Math.abs(part - b[i]) <= (count ? COUNT_SHARE * Math.abs(b[i]) : NEAR_BY + NEAR_SHARE * Math.abs(b[i])),
    )
  );
}

// Rows of numbers in the shape that a step asks for, or null for nothing. As `_checked` of practice/problem.py.
function shaped({ name, dims, shape }, rows) {
  if (rows === null) return null;
  const given = [rows.length, rows[0].length];
  const plain = (sizes) => sizes.filter((size) => size !== 1);
  if (String(plain(given)) === String(plain(dims))) return rows;
  const [r, c] = given;
  const said = r > 1 ? `${r} rows of ${c}` : c > 1 ? `${c} numbers` : "one number";
  throw new Error(`${name}: ${said} here, ${shape} asked for`);
}

// As `read_entry` of practice/reading.py: rows parted by semicolons, numbers by spaces or commas, small sums for a
// number.
export function readEntry(text) {
  let plain = text
    .trim()
    .replace(/^[[\]]+|[[\]]+$/g, "")
    .replaceAll("−", "-")
    .replaceAll("], [", ";")
    .replaceAll("^", "**");
  plain = plain.replace(/(?<=\d),(?=\d{3}(?!\d))/g, "");
  if (!plain) return null;
  if (plain.length > 400) throw new Error(`${plain.length} characters are more than a step needs`);
  const rows = plain.split(";").map((row) =>
    row
      .trim()
      .replace(/^[ [\]]+|[ [\]]+$/g, "")
      .split(/[,\s]+/)
      .filter(Boolean)
      .map(readNumber),
  );
  const full = rows.filter((row) => row.length);
  if (!full.length) throw new Error(`'${plain}' is not a number`);
  if (new Set(full.map((row) => row.length)).size !== 1) throw new Error("the rows have different lengths");
  return full;
}
function readNumber(text) {
  const parts = text.match(/\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|\*\*|[-+*/()]|./gi) ?? [];
  let at = 0;
  const takes = (...signs) => signs.includes(parts[at]) && parts[at++];
  const fail = () => {
    throw new Error(`'${text}' is not a number`);
  };
  const sum = () => {
    let value = product();
    for (let sign = takes("+", "-"); sign; sign = takes("+", "-"))
      value = sign === "+" ? value + product() : value - product();
    return value;
  };
  const product = () => {
    let value = signed();
    for (let sign = takes("*", "/"); sign; sign = takes("*", "/")) {
      const by = signed();
      if (sign === "/" && by === 0) fail();
      value = sign === "*" ? value * by : value / by;
    }
    return value;
  };
  const signed = () => (takes("-") ? -signed() : power());
  const power = () => {
    const base = atom();
    return takes("**") ? base ** signed() : base;
  };
  const atom = () => {
    if (takes("(")) {
      const value = sum();
      return takes(")") ? value : fail();
    }
    return /^[\d.]+(e[+-]?\d+)?$/i.test(parts[at] ?? "") ? Number(parts[at++]) : fail();
  };
  const value = sum();
  return at === parts.length && Number.isFinite(value) ? value : fail();
}
