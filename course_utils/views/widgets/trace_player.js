// Plays the calls that trace_player.py was given. All of them are here, so playing needs no kernel.

import { listen, make, makeRoot } from "../shared/dom.js";
import { makeMessage, Player } from "../shared/player.js";

const tokensOf = (text) => text.join(" ") || "nothing";
const countOf = (number, name) => `${number} ${name}${number === 1 ? "" : "s"}`;
const ownersOf = (picture, block) => Object.keys(picture.tables).filter((name) => picture.tables[name].includes(block));
const usedBy = ({ requests, block_size }) =>
  Object.values(requests).reduce((sum, { computed }) => sum + Math.ceil(computed / block_size), 0);

class TracePlayerView {
  constructor({ model, el }) {
    this.model = model;
    ({
      name: this.name,
      made: this.made,
      calls: this.calls,
      pictures: this.pictures,
      promise: this.promise,
      said: this.said,
    } = model.get("_trace"));
    this.last = this.calls.length;
    const root = makeRoot(model, "course-trace", { role: "group", "aria-label": `calls on ${this.name}` });
    this.player = new Player(model, "calls", "call");
    this.code = this.makeCode();
    this.scene = makeScene(this.pictures);
    this.message = makeMessage("course-message course-trace-message", (node, text) =>
      node.replaceChildren(...messageNodes(text)),
    );
    const middle = make("div", "course-trace-middle");
    middle.append(this.code.node, this.scene.node);
    root.append(
      make(
        "div",
        "course-title course-trace-title",
        {},
        `${this.name}: ${countOf(this.last, "call")} to a broken promise`,
      ),
      this.player.node,
      this.message.node,
      middle,
    );
    this.player.keys(root);
    el.append(root);
    this.tells = Array.from({ length: this.last + 1 }, (_, step) => this.tell(step));
    this.message.rooms(this.tells);
    this.show();
    this.stopListening = listen(model, { step: () => this.show() });
  }

  tell(step) {
    if (!step) return "The object is made. No call yet.";
    const { gave } = this.calls[step - 1];
    const what = !gave ? "returns nothing" : gave.startsWith("raises ") ? gave : `returns ${gave}`;
    return step < this.last
      ? `Call ${step} of ${this.last} ${what}. All promises are kept.`
      : `✗ Broken promise: “${this.promise}”.\nAt the last call: ${this.said}.`;
  }

  makeCode() {
    const node = make("ol", "course-trace-code", { "aria-label": "calls" });
    const rows = [{ code: this.made, gave: "" }, ...this.calls].map(({ code: line, gave }, step) => {
      const item = make("li");
      const row = make("button", "course-trace-call", { type: "button" });
      const mark = make("span", "course-trace-mark", { "aria-hidden": "true" });
      const after = make("span", "course-trace-gave");
      row.append(mark, make("code", "", {}, line), after);
      row.addEventListener("click", () => this.player.go(step));
      item.append(row);
      node.append(item);
      return { row, mark, after, gave };
    });
    return {
      node,
      show: (step) =>
        rows.forEach(({ row, mark, after, gave }, place) => {
          const here = place === step;
          const wrong = here && step === this.last;
          if (here) row.setAttribute("aria-current", "step");
          else row.removeAttribute("aria-current");
          row.classList.toggle("course-trace-ahead", place > step);
          row.classList.toggle("course-trace-wrong", wrong);
          mark.textContent = wrong ? "✗" : here ? "▸" : "";
          after.textContent = place <= step && gave ? (gave.startsWith("raises ") ? gave : `→ ${gave}`) : "";
        }),
    };
  }

  show() {
    const step = Math.min(this.model.get("step"), this.last);
    this.player.show(step, this.last);
    this.message.show(this.tells[step]);
    this.code.show(step);
    this.scene.show(step);
  }

  remove() {
    this.player.stop();
    this.stopListening();
  }
}

function messageNodes(text) {
  const [head, rest] = String(text).split("\n");
  return rest === undefined ? [head] : [make("strong", "course-trace-wrong", {}, head), ` ${rest}`];
}

function render(options) {
  const player = new TracePlayerView(options);
  return () => player.remove();
}

// What the watch saw, beside the code. The picture that takes most room keeps it, so that nothing moves.
function makeScene(pictures) {
  const node = make("div", "course-trace-scene");
  const caption = make("div", "course-trace-caption");
  const body = make("div", "course-trace-body");
  const drawn = pictures.map((picture, place) => drawPicture(picture, pictures.slice(0, place)));
  node.append(caption, body);
  body.append(...drawn);
  node.hidden = drawn.every((each) => !each.childElementCount);
  return {
    node,
    show: (step) => {
      const place = Math.min(step, pictures.length - 1);
      caption.textContent =
        step === pictures.length
          ? "before the last call; what it does breaks the promise"
          : step
            ? `after call ${step}`
            : "before the first call";
      drawn.forEach((each, at) => {
        each.classList.toggle("course-trace-unseen", at !== place);
      });
    },
  };
}

function drawPicture(picture, before) {
  const node = make("div", "course-trace-picture");
  if (picture.requests) drawRequests(node, picture, before);
  else if (picture.tables) drawBlocks(node, picture, before.at(-1));
  return node;
}

// Physical blocks, each with who holds it and what it holds, then the table of each sequence.
function drawBlocks(node, picture, before) {
  const row = make("ul", "course-trace-blocks", { "aria-label": "physical blocks" });
  const { tables, texts, prompts, lengths } = picture;
  for (let block = 0; block < picture.n_blocks; block++) {
    const owners = ownersOf(picture, block);
    const box = make("li", "course-trace-block");
    const changed = before && String(ownersOf(before, block)) !== String(owners);
    box.classList.toggle("course-trace-held", owners.length > 0);
    box.classList.toggle("course-trace-changed", changed);
    const tags = make("span", "course-trace-owners");
    if (owners.length) tags.append(...owners.map((owner) => make("span", "course-trace-tag", {}, owner)));
    else tags.append(make("span", "course-trace-free", {}, "free"));
    box.append(make("span", "course-trace-number", {}, `block ${block}`), tags, slotsOf(picture, block));
    row.append(box);
  }
  node.append(row);
  const table = make("table", "course-trace-tables", { "aria-label": "tables of the sequences" });
  const heads = ["sequence", "table", prompts ? "tokens" : lengths ? "length" : ""].filter(Boolean);
  table
    .createTHead()
    .insertRow()
    .append(...heads.map((text) => make("th", "", { scope: "col" }, text)));
  const body = table.createTBody();
  for (const [name, blocks] of Object.entries(tables)) {
    const line = body.insertRow();
    const more = prompts ? tokensOf(prompts[name]) : lengths ? String(lengths[name]) : null;
    line.append(make("th", "", { scope: "row" }, name), make("td", "", {}, blocks.join(", ") || "–"));
    if (more !== null) line.append(make("td", "", {}, more));
  }
  if (!Object.keys(tables).length)
    body.insertRow().append(make("td", "course-trace-free", { colspan: heads.length }, "no sequence"));
  node.append(table);
  const legend = make("div", "course-legend course-trace-legend");
  if (texts)
    legend.append(
      legendOf("course-trace-slot course-trace-known", "computed"),
      legendOf("course-trace-slot course-trace-open", "not computed yet"),
    );
  else
    legend.append(
      legendOf("course-trace-slot course-trace-known", "a token"),
      legendOf("course-trace-slot", "an empty slot"),
    );
  legend.append(legendOf("course-trace-ring", "another owner than before"));
  node.append(legend);
}

// The slots of a block: tokens whose keys and values are computed, those that are to be written, and empty ones.
function slotsOf(picture, block) {
  const { tables, texts, prompts, lengths, block_size: size } = picture;
  const node = make("span", "course-trace-slots");
  const owner = ownersOf(picture, block)[0];
  const start = owner === undefined ? 0 : tables[owner].indexOf(block) * size;
  const known = texts?.[block];
  let own = [];
  let kind = "course-trace-known";
  let led = "";
  if (known) {
    own = known.slice(-size);
    led = known.length > size ? `after ${tokensOf(known.slice(0, -size))}` : "";
  } else if (owner !== undefined && prompts) {
    own = prompts[owner].slice(start, start + size);
    kind = "course-trace-open";
  } else if (owner !== undefined && lengths) {
    own = Array(
      Math.max(0, Math.min(size, Math.max(...ownersOf(picture, block).map((name) => lengths[name])) - start)),
    ).fill("•");
  }
  const slots = make("span", "course-trace-row");
  for (let slot = 0; slot < size; slot++)
    slots.append(make("span", `course-trace-slot${slot < own.length ? ` ${kind}` : ""}`, {}, own[slot] ?? ""));
  node.append(slots);
  if (texts) node.append(make("span", "course-trace-led", {}, led));
  return node;
}

// A bar for each request: positions that are computed, that can be computed now, and that follow with later tokens.
function drawRequests(node, picture, before) {
  const past = before.at(-1);
  const seen = {};
  for (const each of [...before, picture]) Object.assign(seen, each.requests);
  node.append(
    make(
      "div",
      "course-trace-head",
      {},
      `${usedBy(picture)} of ${countOf(picture.n_blocks, "block")} in use · ` +
        (picture.n_slots ? countOf(picture.n_slots, "slot") : `budget ${countOf(picture.budget, "token")} a step`),
    ),
  );
  const table = make("table", "course-trace-requests", { "aria-label": "requests" });
  table
    .createTHead()
    .insertRow()
    .append(...["request", "positions", "generated"].map((text) => make("th", "", { scope: "col" }, text)));
  const body = table.createTBody();
  for (const [name, request] of Object.entries(seen)) {
    body.insertRow().append(...requestCells(name, request, picture.requests[name], past?.requests[name]));
  }
  if (!Object.keys(seen).length) body.insertRow().append(make("td", "course-trace-free", { colspan: 3 }, "no request"));
  const legend = make("div", "course-legend course-trace-legend");
  legend.append(
    legendOf("course-trace-cell course-trace-done", "computed"),
    legendOf("course-trace-cell course-trace-done course-trace-now", "newly computed"),
    legendOf("course-trace-cell course-trace-left", "left"),
    legendOf("course-trace-cell course-trace-later", "after later tokens"),
  );
  node.append(table, legend);
}

// here, past: the request in this picture and in the one before; without `here` it has finished.
function requestCells(name, { prompt, new: fresh }, here, past) {
  const total = prompt + fresh - 1;
  const computed = here ? here.computed : total;
  const generated = here ? here.generated : fresh;
  const ready = prompt + generated;
  const was = past?.computed ?? (here ? 0 : total);
  const bar = make("div", "course-trace-bar", { "aria-hidden": "true" });
  for (let cell = 0; cell < total; cell++) {
    const kind = cell < computed ? "done" : cell < ready ? "left" : "later";
    const now = cell < computed && cell >= was;
    bar.append(make("span", `course-trace-cell course-trace-${kind}${now ? " course-trace-now" : ""}`));
  }
  const words = !here
    ? "finished"
    : was > computed
      ? `preempted: ${was} computed before, 0 now`
      : `${computed} computed, ${Math.max(0, ready - computed)} left`;
  const middle = make("td");
  middle.append(bar, make("span", "course-trace-words", {}, words));
  return [make("th", "", { scope: "row" }, name), middle, make("td", "", {}, `${generated} of ${fresh}`)];
}

function legendOf(name, text) {
  const entry = make("span", "course-trace-entry");
  entry.append(make("span", name, { "aria-hidden": "true" }), make("span", "", {}, text));
  return entry;
}

export default { render };
