// The exercises of a page: an editor for each answer, what Python says to it, and the points. Nothing typed leaves the
// browser. The editor and Python load when somebody begins to write.

import { downloadNotebook, openNotebook } from "./answer_notebook.js";
import { keepAnswer, onOtherTab, readAnswer, readDay } from "./answer_store.js";
import { give, onStage, reasonAgainst, stop, warmUp } from "./python_client.js";

const REFUSED = "Your browser keeps nothing of this page. Download your work as a notebook before you close it.";
// What is typed takes the place of this.
const TO_WRITE = /raise NotImplementedError\("your code goes here"\)|(?<=^\w+ = )None/m;
const NOT_CHECKED = "not checked yet";
const LONG = 8; // seconds after which one may have forgotten that Stop is there
const KEYS = "Shift+Enter checks. Tab indents; Escape, then Tab leaves the editor.";
const OTHER_TAB = "This answer was changed in another tab. ";
const OUT_OF_DATE = "You have changed the text since this check.";
const NOTHING_PRINTED =
  "It ran and printed nothing. To see a result, call your function below it, such as print(its_name(…)).";
const days = {};
const answers = [];

// Called by the data of a day: { given, stubs, notebook, file }.
course.exercises = (day, data) => {
  days[day] = data;
};

async function dataOf(day) {
  await course.load(`exercises/day${day}.js`);
  return days[day];
}

const element = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

const rounded = (points) => Number(points.toFixed(2));

class Answer {
  constructor(place) {
    this.place = place;
    this.day = Number(place.dataset.day);
    this.exercise = place.dataset.exercise;
    this.full = Number(place.dataset.points);
    this.kept = { points: 0, status: "" }; // with `source`, and with `passed`, the last text that passed
    this.version = 0; // of what this page knows to be kept; another tab may have kept more since
    this.saving = Promise.resolve(); // ends when all that was typed so far is kept
    this.checked = null; // what was kept at the last check, whose result is shown
    this.busy = null; // what runs: { doing, at, since, timer }
    this.editor = null;
    this.typed = ""; // while the editor loads
    this.taking = false; // whether a kept text comes into the editor
    this.draw();
  }

  draw() {
    this.buttons = this.makeButtons();
    this.buttons.check.className = "course-check";
    this.buttons.stop.hidden = true;
    this.points = element("span", { className: "course-points" });
    this.progress = element("div", { className: "course-loading", hidden: true });
    this.result = element("div", { className: "course-result" });
    this.warning = element("p", { className: "course-warning", textContent: REFUSED, hidden: true });
    this.outdated = element("p", { className: "course-outdated", textContent: OUT_OF_DATE, hidden: true });
    this.conflict = element("p", { className: "course-conflict", hidden: true });
    for (const each of [this.result, this.warning, this.conflict]) each.setAttribute("role", "status");
    this.code = this.place.querySelector(".course-code");
    Object.assign(this.code, { tabIndex: 0, role: "button", ariaLabel: `Write your answer to ${this.exercise}` });
    this.code.addEventListener("click", () => this.write());
    this.code.addEventListener("keydown", (event) => {
      const types = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (this.editor || !(types || event.key === "Enter")) return;
      event.preventDefault();
      if (types && (this.typed || event.key !== " ")) this.typed += event.key;
      this.write();
    });
    this.state = element("span", { className: "course-state" });
    const bar = element(
      "div",
      { className: "course-buttons" },
      ...Object.values(this.buttons),
      this.state,
      this.points,
    );
    this.keys = element("p", { className: "course-keys", textContent: KEYS, hidden: true });
    this.place.append(this.keys, bar, this.progress, this.warning, this.conflict, this.outdated, this.result);
    this.showPoints();
  }

  makeButtons() {
    const button = (text, title, onclick) => element("button", { type: "button", textContent: text, title, onclick });
    // With a mouse one goes on writing after a press; by keyboard one goes on with the buttons, and a phone's keyboard
    // would cover the result.
    const pressed = (act) => (event) => {
      if (event.pointerType === "mouse") this.write();
      act.call(this);
    };
    return {
      check: button("Check", "Shift+Enter", pressed(this.check)),
      run: button("Run", "Run the cell and show what it prints", pressed(this.run)),
      stop: button("Stop", "End what runs", stop),
      reset: button("Reset", "Restore the starting code", pressed(this.reset)),
    };
  }

  async restore() {
    try {
      const kept = await readAnswer(this.day, this.exercise);
      if (kept) this.take(kept);
    } catch {
      // Storage is refused; the first change says so.
    }
  }

  // Show a kept answer, which this page or another tab wrote.
  take(kept) {
    this.kept = kept;
    this.version = kept.version ?? 0;
    this.conflict.hidden = true;
    this.taking = true;
    if (this.editor) this.editor.setText(kept.source);
    else this.code.querySelector("pre").textContent = kept.source;
    this.taking = false;
    this.showPoints();
  }

  showPoints() {
    const passed = this.kept.status === "passed";
    const unit = this.full === 1 ? "point" : "points";
    this.points.textContent = `${passed ? "✓ " : ""}${this.kept.points} of ${this.full} ${unit}`;
    this.points.classList.toggle("course-passed", passed);
    this.showState();
    this.outdated.hidden = !this.checked || this.checked.source === this.kept.source;
    showTotal();
  }

  // Say what runs and for how long, or that the text was not checked.
  showState() {
    const isUnchecked = this.kept.source !== undefined && this.kept.status === "";
    const state = isUnchecked && this.kept.source !== this.data?.stubs[this.exercise] ? NOT_CHECKED : "";
    if (!this.busy) {
      this.state.textContent = state;
      return;
    }
    const { doing, at, since } = this.busy;
    const seconds = `${Math.floor((Date.now() - since) / 1000)} s`;
    const reminder = Date.now() - since > 1000 * LONG ? "; Stop ends it" : "";
    this.state.textContent = `${doing} … ${at ? `${at}, ` : ""}${seconds}${reminder}`;
  }

  // Keep a text that was typed or brought. One that was checked last, or that passed earlier, needs no new check.
  async change(source) {
    const passed = this.kept.passed;
    if (source === this.checked?.source) await this.keep(this.checked);
    else if (source === passed) await this.keep({ source, status: "passed", points: this.full });
    else await this.keep({ source, status: "", points: 0 });
  }

  async write() {
    await this.prepare();
    this.editor?.focus();
  }

  // Load the editor in place of the text, and Python beside it.
  async prepare() {
    const reason = reasonAgainst();
    if (reason) return this.say(reason);
    this.opening ??= this.open();
    return this.opening;
  }

  async open() {
    warmUp();
    this.data = await dataOf(this.day);
    await course.load("codemirror.js");
    const before = this.kept.source ?? this.data.stubs[this.exercise];
    const place = TO_WRITE.exec(before);
    const start = place ? place.index : before.length;
    const end = start + (place ? place[0].length : 0);
    const { typed } = this;
    const text = typed ? before.slice(0, start) + typed + before.slice(end) : before;
    this.code.replaceChildren();
    for (const name of ["tabindex", "role", "aria-label"]) this.code.removeAttribute(name);
    this.keys.hidden = false;
    this.editor = course.editor({
      parent: this.code,
      text,
      selection: typed ? { anchor: start + typed.length } : { anchor: start, head: end },
      label: `Your answer to ${this.exercise}`,
      onChange: (source) => {
        if (!this.taking) this.change(source);
      },
      onCheck: () => {
        this.check();
        return true;
      },
    });
    if (typed) this.change(text);
  }

  async keep({ source, status, points }) {
    this.kept = { source, status, points, passed: status === "passed" ? source : this.kept.passed };
    this.showPoints();
    this.saving = this.saving.then(() => this.save());
    await this.saving;
  }

  async save() {
    const mine = this.kept;
    try {
      const kept = await keepAnswer(this.day, this.exercise, mine, this.version);
      if (kept.source === mine.source) this.version = kept.version ?? 0;
      else this.offer(kept);
    } catch {
      this.warning.hidden = false;
    }
  }

  // Offer a text that another tab has kept. Until one of the two is chosen, this tab keeps nothing.
  offer(theirs) {
    const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
    const keepMine = () => {
      this.version = theirs.version ?? 0;
      this.conflict.hidden = true;
      return this.keep(this.kept);
    };
    const buttons = [button("Take that text", () => this.take(theirs)), " ", button("Keep this text", keepMine)];
    this.conflict.replaceChildren(OTHER_TAB, ...buttons);
    this.conflict.hidden = false;
  }

  async check() {
    await this.work("check", (message, cell) => {
      if (message.kind === "progress") return this.showStep(message.text);
      if (message.kind !== "record") return this.say(message.text);
      this.result.innerHTML = message.html;
      this.bringIntoView();
      if (message.searching) {
        this.busy = { ...this.busy, doing: "Searching", at: "" };
        this.result.append(
          element("p", { className: "course-search", textContent: "Looking for the smallest input…" }),
        );
      }
      const { status, points } = message;
      this.checked = { source: cell, status, points };
      if (this.editor.text === cell) return this.keep(this.checked);
      return this.showPoints(); // The text was changed during the check, so the card is out of date.
    });
  }

  async run() {
    let printed = "";
    await this.work("run", ({ kind, text }) => {
      if (kind === "printing") {
        printed = text; // so far
        this.say(printed);
      } else if (kind === "failed") this.say(printed ? `${printed.trimEnd()}\n\n${text}` : text);
      else this.say(text || NOTHING_PRINTED);
    });
  }

  // Send the answer to Python, with all that it may use, and pass on what comes back.
  async work(task, show) {
    await this.prepare();
    if (!this.editor) return;
    const [earlier, cell] = [await this.earlier(), this.editor.text];
    if (this.busy) return; // it runs already
    this.checked = null;
    this.outdated.hidden = true;
    this.result.replaceChildren();
    const { day, exercise, data } = this;
    give({ task, day, exercise, given: data.given, earlier, cell }, (message) => {
      if (message.kind === "done") this.setBusy(false);
      else show(message, cell);
    });
    this.setBusy(true, task); // after `give`, which ends another exercise's task and so calls that one's setBusy(false)
  }

  // Return the answers to earlier exercises, by exercise, without those that are still the stub.
  async earlier() {
    const names = Object.keys(this.data.stubs);
    const before = names.slice(0, names.indexOf(this.exercise));
    const kept = await keptOfDay(this.day);
    const written = before.filter((name) => kept[name] && kept[name].source !== this.data.stubs[name]);
    return Object.fromEntries(written.map((name) => [name, kept[name].source]));
  }

  setBusy(isBusy, task = "") {
    clearInterval(this.busy?.timer);
    const doing = task === "run" ? "Running" : "Checking";
    const timer = isBusy ? setInterval(() => this.showState(), 1000) : 0;
    this.busy = isBusy ? { doing, at: "", since: Date.now(), timer } : null;
    this.showState();
    if (!isBusy && document.activeElement === this.buttons.stop) this.buttons.check.focus();
    this.buttons.stop.hidden = !isBusy;
    for (const each of [this.buttons.check, this.buttons.run]) each.setAttribute("aria-disabled", isBusy);
    if (!isBusy) this.place.dataset.finished = Number(this.place.dataset.finished ?? 0) + 1;
    onStage((stage) => this.showStage(isBusy ? stage : null));
  }

  showStage(stage) {
    this.progress.hidden = !stage;
    if (!stage) return this.progress.replaceChildren();
    const bar = element("progress", { value: stage.done });
    bar.setAttribute("aria-label", "Loading Python");
    return this.progress.replaceChildren(bar, ` Loading ${stage.text}`);
  }

  showStep(at) {
    if (this.busy) this.busy.at = at;
    this.showState();
  }

  say(text) {
    this.result.replaceChildren(element("pre", { className: "course-printed", textContent: text }));
    this.bringIntoView();
  }

  // Scroll so far that the result's beginning can be read, if it lies below the window of somebody who is writing here.
  bringIntoView() {
    if (!this.place.contains(document.activeElement)) return;
    const { top, height } = this.result.getBoundingClientRect();
    const hidden = top + Math.min(height, innerHeight / 2) - innerHeight;
    if (hidden > 0) scrollBy({ top: hidden, behavior: "instant" });
  }

  async reset() {
    await this.prepare();
    if (!this.editor) return;
    if (this.editor.text !== this.data.stubs[this.exercise] && !confirm("Restore the starting code and discard yours?"))
      return;
    this.checked = null;
    this.editor.setText(this.data.stubs[this.exercise]);
    this.result.replaceChildren();
  }
}

// Return what is kept of all answers of a day, those on this page included, which may be all where storage is refused.
async function keptOfDay(day) {
  const kept = await readDay(day).catch(() => ({}));
  for (const answer of answers) if (answer.kept.source !== undefined) kept[answer.exercise] = answer.kept;
  return kept;
}

// The points of the page, and a way to take the work to JupyterLab and back.
function showTotal() {
  const line = document.querySelector(".course-total");
  if (!line) return;
  const earned = answers.reduce((sum, answer) => sum + answer.kept.points, 0);
  const full = answers.reduce((sum, answer) => sum + answer.full, 0);
  line.querySelector(".course-sum").textContent = `${rounded(earned)} of ${full} points`;
}

function offerNotebooks(line) {
  const file = element("input", { type: "file", accept: ".ipynb", hidden: true });
  const download = element("button", { type: "button", textContent: "Download as a notebook" });
  const take = element("button", { type: "button", textContent: "Open a notebook", onclick: () => file.click() });
  const news = element("p");
  news.setAttribute("role", "status");
  const day = () => answers[0].day;
  download.onclick = async () => {
    const kept = await keptOfDay(day());
    downloadNotebook(
      await dataOf(day()),
      Object.fromEntries(Object.entries(kept).map(([name, { source }]) => [name, source])),
    );
  };
  file.onchange = async () => {
    try {
      const data = await dataOf(day());
      news.textContent = await takeAll(day(), data, openNotebook(await file.files[0].text(), data));
    } catch (error) {
      news.textContent = error.message;
    }
    file.value = ""; // so that the same file can be chosen again
  };
  const points = element(
    "p",
    {},
    element("b", { className: "course-sum" }),
    " on this page. ",
    download,
    " ",
    take,
    file,
  );
  line.append(points, news);
}

// Take the answers of a notebook, and keep those to exercises that need PyTorch for the next download. Return the news.
async function takeAll(day, { stubs }, sources) {
  const written = Object.keys(sources).filter((name) => sources[name] !== stubs[name]);
  const mine = answers.filter(({ exercise }) => written.includes(exercise));
  const isSafe = ({ exercise, kept }) => [undefined, stubs[exercise], sources[exercise]].includes(kept.source);
  const lost = mine.filter((answer) => !isSafe(answer));
  const them = lost.length === 1 ? "it" : "them";
  const question = `Replace ${countAnswers(lost)} on this page? Download ${them} first to keep ${them}.`;
  if (lost.length && !confirm(question)) return "";
  for (const answer of mine) {
    await answer.change(sources[answer.exercise]);
    answer.take({ ...answer.kept, version: answer.version });
  }
  for (const name of written.filter((name) => !mine.some(({ exercise }) => exercise === name))) {
    await keepAnswer(day, name, { source: sources[name], status: "", points: 0 }).catch(() => {});
  }
  const loaded = mine.length === 1 ? "was loaded. Check it to get its" : "were loaded. Check them to get their";
  return `${countAnswers(mine)} ${loaded} points.`;
}

const countAnswers = ({ length }) => `${length} ${length === 1 ? "answer" : "answers"}`;

// On the course map: the points of each day.
async function showDay(line) {
  const kept = await readDay(Number(line.dataset.day)).catch(() => ({}));
  const earned = Object.values(kept).reduce((sum, { points }) => sum + points, 0);
  line.querySelector("span").textContent = String(rounded(earned));
}

course.python = document.querySelector(".course-answer")?.dataset.python;
document.querySelectorAll(".course-progress li").forEach(showDay);
document.querySelectorAll(".course-total").forEach(offerNotebooks);
answers.push(...[...document.querySelectorAll(".course-answer")].map((place) => new Answer(place)));
for (const answer of answers) answer.restore();
showTotal();
onOtherTab(({ day, exercise, answer }) => {
  const mine = answers.find((each) => each.day === day && each.exercise === exercise);
  if (!mine) return;
  if (!mine.editor || mine.editor.text === answer.source) {
    mine.take(answer);
    return;
  }
  mine.offer(answer);
});
