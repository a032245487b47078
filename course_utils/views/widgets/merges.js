// Shows the merges of a short text; all arithmetic is in merges_steps.js, so typing and stepping need no kernel.

import { keepKeys, listen, make, makeRoot, newId, setTraits } from "../shared/dom.js";
import { shortText } from "../shared/number_text.js";
import { makeMessage, Player } from "../shared/player.js";
import { messageOf, namesOf, placesOf, problemOf, several, statesOf } from "./merges_steps.js";

const NOTE =
  "Step until merging ends, then type a text of your own: a word said twice, a name with an accent, an emoji. " +
  "Words are not cut here, so a token may run across a space.";
const SUMS = ["bytes", "tokens", "bytes per token", "tokens in the vocabulary"];

class MergesView {
  constructor({ model, el }) {
    this.model = model;
    ({ most: this.most, shown: this.shown } = model.get("_layout"));
    const root = makeRoot(model, "course-merges", { role: "group", "aria-label": "byte-pair encoding by steps" });
    this.player = new Player(model, "merges", "merge");
    this.end = this.player.button("end", "to the end", () => this.player.walk(Infinity));
    this.player.next.after(this.end);
    this.message = makeMessage("course-message course-merges-message", (node, text) => node.replaceChildren(text));
    this.tokens = make("div", "course-merges-tokens", { role: "img", tabindex: 0 });
    const tables = make("div", "course-merges-tables");
    tables.append(this.drawPairs(), this.drawMerges());
    root.append(
      this.drawField(),
      this.player.node,
      this.message.node,
      this.drawSums(),
      this.tokens,
      drawLegend(),
      tables,
      make("div", "course-faint", {}, NOTE),
    );
    this.player.keys(root);
    el.append(root);
    this.stopListening = listen(model, { text: () => this.rebuild(), step: () => this.show() });
    this.rebuild();
  }

  drawField() {
    const node = make("div", "course-merges-typed");
    const id = newId("course-merges-problem");
    const label = make("label");
    this.field = make("textarea", "", { rows: 2, autocomplete: "off", spellcheck: "false", "aria-describedby": id });
    this.problem = make("div", "course-merges-problem", { role: "status", id });
    label.append(make("span", "", {}, `text, at most ${this.most} characters`), this.field);
    node.append(label, this.problem);
    this.field.addEventListener("input", () => this.take(this.field.value.toWellFormed()));
    keepKeys(this.field, (event) => {
      const changed = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      return !["Tab", "Escape"].includes(event.key) && !(changed && ["Enter", "s"].includes(event.key));
    });
    return node;
  }

  take(text) {
    const problem = problemOf(text, this.most);
    this.problem.textContent = problem && `${problem} Shown is the text before.`;
    this.field.setAttribute("aria-invalid", problem !== "");
    if (problem || text === this.model.get("text")) return;
    this.player.stop();
    setTraits(this.model, { step: 0, text });
  }

  drawSums() {
    const node = make("div", "course-merges-sums");
    this.sums = SUMS.map((name) => {
      const sum = make("div");
      const number = make("b");
      sum.append(number, make("span", "course-faint", {}, ` ${name}`));
      node.append(sum);
      return number;
    });
    return node;
  }

  drawPairs() {
    const table = make("table", "course-merges-pairs");
    table.append(make("caption", "", {}, "most frequent pairs"));
    const head = table.createTHead().insertRow();
    for (const text of ["pair", "numbers", "times"]) head.append(make("th", "", { scope: "col" }, text));
    this.pairs = table.createTBody();
    return table;
  }

  drawMerges() {
    const node = make("div", "course-merges-list", { tabindex: 0, role: "group", "aria-label": "merges so far" });
    const table = make("table");
    this.caption = table.createCaption();
    this.heads = table.createTHead().insertRow();
    for (const text of ["token", "merge"]) this.heads.append(make("th", "", { scope: "col" }, text));
    this.merges = table.createTBody();
    node.append(table);
    this.list = node;
    return node;
  }

  rebuild() {
    const text = this.model.get("text");
    this.states = statesOf(text, this.shown);
    this.names = namesOf(this.states);
    this.last = this.states.length - 1;
    this.message.rooms(this.states.map((_, step) => messageOf(this.states, step, this.names)));
    if (this.field.value !== text) this.field.value = text;
    this.problem.textContent = "";
    this.field.setAttribute("aria-invalid", false);
    this.show();
  }

  show() {
    const step = Math.min(this.model.get("step"), this.last);
    const { tokens, pairs } = this.states[step];
    const bytes = this.states[0].tokens.length;
    this.player.show(step, this.last);
    this.end.setAttribute("aria-disabled", step === this.last);
    this.message.show(messageOf(this.states, step, this.names));
    [bytes, tokens.length, shortText(bytes / tokens.length), 256 + step].forEach((sum, i) => {
      this.sums[i].textContent = sum;
    });
    this.showTokens(tokens, step);
    const most = pairs[0]?.[2];
    this.pairs.replaceChildren(...pairs.map((pair, i) => this.pairRow(pair, most, i === 0 && step < this.last)));
    this.merges.replaceChildren(
      ...this.states.slice(0, step).map(({ pairs: [pair] }, i) => this.mergeRow(pair, 256 + i, i === step - 1)),
    );
    this.caption.textContent = step ? "merges so far" : "no merges yet";
    this.heads.hidden = step === 0;
    this.list.scrollTop = this.list.scrollHeight;
  }

  showTokens(tokens, step) {
    const next = new Set(step < this.last ? placesOf(tokens, this.states[step].pairs[0]) : []);
    this.tokens.replaceChildren(
      ...tokens.map((token, i) => {
        const chip = this.chip(token);
        chip.classList.toggle("course-merges-made", token === 255 + step);
        chip.classList.toggle("course-merges-left", next.has(i));
        chip.classList.toggle("course-merges-right", next.has(i - 1));
        return chip;
      }),
    );
    const names = tokens.map((token) => this.names[token]).join(" ");
    this.tokens.setAttribute("aria-label", `${several(tokens.length, "token")}: ${names}`);
  }

  chip(token) {
    return make("span", "course-merges-chip", {}, this.names[token]);
  }

  pairRow([left, right, count], most, next) {
    const row = make("tr", next ? "course-merges-next" : "");
    const pair = make("th", "", { scope: "row" });
    const times = make("td", "course-merges-times");
    const bar = make("span", "course-merges-bar", { style: `width:calc(${count / most} * (100% - 32px))` });
    pair.append(this.chip(left), " ", this.chip(right));
    times.append(bar, make("span", "", {}, count));
    row.append(pair, make("td", "course-merges-numbers", {}, `${left}, ${right}`), times);
    return row;
  }

  mergeRow([left, right], made, newest) {
    const row = make("tr");
    const merge = make("td");
    const chip = this.chip(made);
    chip.classList.toggle("course-merges-made", newest);
    merge.append(this.chip(left), " + ", this.chip(right), " → ", chip);
    row.append(make("th", "", { scope: "row" }, made), merge);
    return row;
  }

  remove() {
    this.player.stop();
    this.stopListening();
  }
}

function drawLegend() {
  const legend = make("div", "course-legend");
  for (const [names, text] of [
    [["left", "right"], "the pair that is merged next"],
    [["made"], "made by the last merge"],
  ]) {
    const entry = make("span");
    const sample = make("span", "course-merges-sample", { "aria-hidden": "true" });
    sample.append(...names.map((name) => make("span", `course-merges-chip course-merges-${name}`, {}, "")));
    entry.append(sample, make("span", "", {}, text));
    legend.append(entry);
  }
  return legend;
}

function render(options) {
  const view = new MergesView(options);
  return () => view.remove();
}

export default { render };
