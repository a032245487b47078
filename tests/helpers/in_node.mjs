// Calls a function of a module for each list of arguments: {module, name, calls} on standard input, answers on standard
// output. JSON has no NaN and no infinity, so both sides write {"number": "NaN"} in place of such a number.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const ODD = ["NaN", "Infinity", "-Infinity"];

const read = (_, value) =>
  value && typeof value === "object" && ODD.includes(value.number) ? Number(value.number) : value;
const written = (_, value) =>
  typeof value === "number" && !Number.isFinite(value) ? { number: String(value) } : value;

const { module, name, calls } = JSON.parse(readFileSync(0, "utf8"), read);
const { [name]: run } = await import(pathToFileURL(module));
const answers = calls.map((call) => {
  try {
    return run(...call) ?? null;
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(answers, written));
