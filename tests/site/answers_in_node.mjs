// The scripts of a page with exercises, run in Node with a stand-in for the browser. `node answers_in_node.mjs FOLDER`
// plays the scenes below with the scripts in FOLDER, and prints as JSON what a reader would see in each.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const folder = pathToFileURL(`${process.argv[2]}/`);
const tick = () => new Promise((resolve) => setTimeout(resolve, 5));

class Element {
  constructor() {
    Object.assign(this, { children: [], dataset: {}, hidden: false, classList: { toggle() {} } });
  }
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    Object.assign(this, { children, innerHTML: "" });
  }
  querySelector(selector) {
    this[selector] ??= new Element();
    return this[selector];
  }
  setAttribute() {}
  removeAttribute() {}
  addEventListener() {}
  click() {}
  contains() {
    return false;
  }
}

const workers = [];
class Worker {
  constructor() {
    this.tasks = [];
    workers.push(this);
  }
  postMessage(task) {
    this.tasks.push(task);
  }
  terminate() {}
  say(message) {
    this.onmessage({ data: { id: this.tasks.at(-1)?.id, ...message } });
  }
}

const places = ["first", "second"].map((exercise) => {
  const place = new Element();
  place.dataset = { day: "1", exercise, points: "2", python: "python" };
  return place;
});
const total = new Element();
const editors = {};
const stubs = { first: "the stub of first", second: "the stub of second" };
const questions = [];
const found = (selector) => ({ ".course-answer": places, ".course-total": [total] })[selector] ?? [];
Object.assign(globalThis, {
  self: globalThis,
  window: globalThis,
  origin: "http://localhost",
  Worker,
  BroadcastChannel: undefined,
  indexedDB: {
    open() {
      throw new Error("storage is refused");
    },
  },
  confirm: (question) => questions.push(question) > 0,
  document: {
    createElement: () => new Element(),
    querySelector: (selector) => found(selector)[0] ?? null,
    querySelectorAll: found,
  },
  course: {
    base: "",
    load: async () => {},
    editor({ text, label, onChange }) {
      const editor = { text, focus() {} };
      editor.setText = (changed) => {
        editor.text = changed;
        onChange(changed);
      };
      editors[label.split(" ").at(-1)] = editor;
      return editor;
    },
  },
});
await import(new URL("answers.js", folder));
globalThis.course.exercises(1, { given: [], stubs, notebook: { cells: [] }, file: "day1.ipynb" });

const part = (place, className) => place.children.find((child) => child.className === className);
const button = (place, text) => part(place, "course-buttons").children.find((child) => child.textContent === text);
const seen = (place) => ({
  card: part(place, "course-result").innerHTML,
  outdated: !part(place, "course-outdated").hidden,
  loading: !part(place, "course-loading").hidden,
});
const press = async (place, text) => {
  button(place, text).onclick({ pointerType: "mouse" });
  await tick();
};
const finish = async (record = {}) => {
  const worker = workers.at(-1);
  worker.say({ kind: "ready", seconds: 60, loaded: [] });
  worker.say({ kind: "record", html: "a card", status: "passed", points: 2, searching: false, ...record });
  worker.say({ kind: "done", bytes: 0 });
  await tick();
};
const [first, second] = places;
const news = {};

await press(first, "Check");
workers.at(-1).say({ kind: "progress", text: "step 3 of 19" });
const state = part(first, "course-buttons").children.find((child) => child.className === "course-state");
news.during = state.textContent;
await finish();
news.checked = seen(first);
news.after = state.textContent;

await press(first, "Check");
editors.first.setText("typed during the check");
await finish();
news.typed = seen(first);

await press(first, "Check");
await press(first, "Reset");
await finish();
news.reset = seen(first);

await press(first, "Check");
await press(second, "Check");
workers.at(-1).say({ kind: "stage", done: 0.05, text: "Python" });
news.loading = [seen(first).loading, seen(second).loading];
await finish();
news.loaded = seen(second).loading;

// A notebook is opened: what its text is, and what the page then says.
const opened = async (cells) => {
  const [points, status] = total.children;
  const input = points.children.find((child) => child.type === "file");
  input.files = [{ text: async () => JSON.stringify({ cells }) }];
  await input.onchange();
  return status.textContent;
};
const answerCell = (grade_id, source) => ({ source, metadata: { nbgrader: { solution: true, grade_id } } });
news.opened = [];
for (const cells of [
  [null],
  {},
  [{ metadata: null }],
  [answerCell("toString", "")],
  [answerCell("first", "brought")],
  [answerCell("first", "brought again")],
  [answerCell("first", "brought"), answerCell("second", "brought")],
]) {
  news.opened.push(await opened(cells));
}
news.questions = questions;

// The service worker answers a request while its cache takes nothing.
const handlers = {};
const caches = {
  open: async () => ({ match: async () => undefined, put: async () => Promise.reject(new Error("full")) }),
};
const response = { ok: true, clone: () => response };
const scope = {
  self: {
    addEventListener: (name, handler) => Object.assign(handlers, { [name]: handler }),
    registration: { scope: "" },
  },
  caches,
  fetch: async () => response,
};
vm.runInNewContext(readFileSync(new URL("service_worker.js", folder), "utf8"), scope);
let answered = null;
handlers.fetch({ request: { method: "GET", url: "page" }, respondWith: (promise) => (answered = promise) });
news.answered = (await answered.catch(() => null)) === response;

process.stdout.write(JSON.stringify(news));
process.exit(0);
