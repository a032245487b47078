// Blocks, tables and the calls on them. The page computes what the calls lead to, as `done` of page_table.py does.

import { keepKeys, listen, make, makeRoot, makeScroll, newId, presses, setTraits } from "../shared/dom.js";

const countedAs = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

// What the calls lead to: tables, lengths, references and slots, the blocks that the last call changed, and a sentence.
export function pagesOf(calls, n_blocks, block_size) {
  const pool = new PagePool(n_blocks, block_size);
  for (const [kind, ...names] of calls) pool[kind](...names);
  const { tables, lengths, references, slots, changed, message } = pool;
  return { tables, lengths, references, slots, changed, message };
}

class PagePool {
  constructor(n_blocks, block_size) {
    this.block_size = block_size;
    this.references = Array(n_blocks).fill(0);
    this.unused = Array.from({ length: n_blocks }, (_, i) => n_blocks - 1 - i);
    this.slots = this.references.map(() => []);
    this.tables = {};
    this.lengths = {};
    this.changed = [];
    this.message = "Nothing is stored yet.";
  }

  append(name) {
    let table = this.tables[name] ?? [];
    const length = this.lengths[name] ?? 0;
    const slot = length % this.block_size;
    const last = table.at(-1);
    let how = `place ${slot} of block ${last}`;
    if ((!slot || this.references[last] > 1) && !this.unused.length) {
      this.changed = [];
      this.message = `append ${name}: no block is free. Nothing changes.`;
      return;
    }
    if (!slot) {
      table = [...table, this.allocate()];
      this.slots[table.at(-1)] = [];
      how = `place 0 of block ${table.at(-1)}, which was free`;
    } else if (this.references[last] > 1) {
      const own = this.allocate();
      this.release(last);
      table = [...table.slice(0, -1), own];
      this.slots[own] = [...this.slots[last]];
      how = `place ${slot} of block ${own}, a copy of block ${last}, which others also hold: copy on write`;
    }
    this.slots[table.at(-1)].push(`${name}${length}`);
    this.tables[name] = table;
    this.lengths[name] = length + 1;
    this.changed = [table.at(-1)];
    this.message = `append ${name}: token ${length} goes to ${how}.`;
  }

  fork(name, other) {
    for (const block of this.tables[name]) this.references[block]++;
    this.tables[other] = [...this.tables[name]];
    this.lengths[other] = this.lengths[name];
    this.changed = [...this.tables[name]];
    const are = this.changed.length === 1 ? "is" : "are";
    const shared = `${countedAs(this.changed.length, "block")} ${are} shared`;
    this.message = `fork ${name}: ${other} has the same table, so ${shared}. Nothing is copied.`;
  }

  free(name) {
    this.changed = this.tables[name];
    delete this.tables[name];
    delete this.lengths[name];
    for (const block of this.changed) this.release(block);
    const gone = this.changed.filter((block) => !this.references[block]);
    const kept = this.changed.length - gone.length;
    for (const block of gone) this.slots[block] = [];
    const also = kept ? ` ${countedAs(kept, "block")} that others hold ${kept === 1 ? "stays" : "stay"}.` : "";
    const are = gone.length === 1 ? "is" : "are";
    this.message = `free ${name}: ${countedAs(gone.length, "block")} ${are} free again.${also}`;
  }

  allocate() {
    const block = this.unused.pop();
    this.references[block] = 1;
    return block;
  }

  release(block) {
    if (--this.references[block] === 0) this.unused.push(block);
  }
}

class PageTableView {
  pages;
  constructor({ model, el }) {
    this.model = model;
    ({
      n_blocks: this.n_blocks,
      block_size: this.block_size,
      names: this.names,
      most: this.most,
    } = model.get("_layout"));
    const uid = newId("course-pages");
    const root = makeRoot(model, "course-pages", { role: "group", "aria-labelledby": `${uid}-title` });
    this.message = make("div", "course-message course-pages-message", { role: "status" });
    this.sums = make("div", "course-pages-sums");
    this.pool = make("ol", "course-pages-pool", { "aria-label": "blocks of the pool" });
    const table = make("table", "", { "aria-label": "tables of the sequences" });
    const head = table.createTHead().insertRow();
    this.body = table.createTBody();
    for (const text of ["sequence", "table", "tokens", ""])
      head.append(make(text ? "th" : "td", "", text ? { scope: "col" } : {}, text));
    const lot = this.drawButtons();
    const bound = makeScroll("course-pages-scroll");
    bound.append(table);
    root.append(
      make("div", "course-title course-pages-title", { id: `${uid}-title` }, model.get("title")),
      this.message,
      this.pool,
      bound,
      lot,
      this.sums,
    );
    keepKeys(root, presses);
    el.append(root);
    this.drawRows();
    this.drawBlocks();
    this.show();
    this.stopListening = listen(model, { calls: () => this.show() });
  }

  drawButtons() {
    const lot = make("div", "course-row course-pages-lot");
    this.begin = act("new sequence", "new sequence", () => this.call("append", this.unused()));
    this.back = act("← back", "back", () => this.set(this.model.get("calls").slice(0, -1)));
    this.given = this.model.get("calls");
    this.again = act("as given", "as given", () => this.set(this.given));

    lot.append(this.begin, this.back, this.again);
    return lot;
  }

  drawRows() {
    // Rows stay where they are, a to f, so that a button keeps the focus while it is pressed again and again.
    this.rows = [...this.names].map((name) => {
      const row = this.body.insertRow();
      const cells = [make("th", "", { scope: "row" }, name), ...[0, 1, 2].map(() => make("td"))];
      const buttons = {
        append: act("append", `append a token to ${name}`, () => this.call("append", name)),
        fork: act("fork", `fork ${name}`, () => this.call("fork", name, this.unused())),
        free: act("free", `free ${name}`, () => {
          this.call("free", name);
          this.begin.focus();
        }),
      };
      cells[3].append(...Object.values(buttons));
      row.append(...cells);
      return { name, row, cells, buttons };
    });
  }

  drawBlocks() {
    this.blocks = Array.from({ length: this.n_blocks }, (_, block) => {
      const node = make("li", "course-pages-block");
      const title = make("div", "course-pages-head");
      const held = make("span");
      const line = make("div", "course-pages-slots");
      const owners = make("div", "course-pages-owners");
      const cells = Array.from({ length: this.block_size }, () => make("span", "course-pages-slot"));
      title.append(make("b", "", {}, `block ${block}`), held);
      line.append(...cells);
      node.append(title, line, owners);
      this.pool.append(node);
      return { node, held, cells, owners };
    });
  }

  set(calls) {
    setTraits(this.model, { calls });
  }

  call(...made) {
    return this.set([...this.model.get("calls"), made]);
  }

  unused() {
    return [...this.names].find((name) => !(name in this.pages.tables));
  }

  show() {
    const calls = this.model.get("calls");
    const full = calls.length >= this.most;
    const off = (node, is) => node.setAttribute("aria-disabled", is);
    this.pages = pagesOf(calls, this.n_blocks, this.block_size);
    const { tables, lengths, references, slots, changed } = this.pages;
    this.message.textContent = full
      ? `${this.pages.message} These are ${this.most} calls, and no more are possible: go back.`
      : this.pages.message;
    this.blocks.forEach(({ node, held, cells, owners }, block) => {
      node.dataset.held = references[block];
      node.classList.toggle("course-pages-changed", changed.includes(block));
      held.textContent =
        references[block] > 1 ? `held ${references[block]} times` : references[block] ? "held once" : "";
      cells.forEach((cell, slot) => {
        cell.textContent = slots[block][slot] ?? "";
      });
      const whose = Object.keys(tables).filter((name) => tables[name].includes(block));
      owners.replaceChildren(
        ...(whose.length ? whose : ["free"]).map((name) =>
          make("span", whose.length ? "course-pages-tag" : "", {}, name),
        ),
      );
    });
    for (const { name, row, cells, buttons } of this.rows) {
      const here = name in tables;
      row.hidden = !here;
      cells[1].textContent = here ? tables[name].join(", ") : "";
      cells[2].textContent = here ? lengths[name] : "";
      off(buttons.append, full);
      off(buttons.fork, full || !this.unused());
      off(buttons.free, full);
    }
    off(this.begin, full || !this.unused());
    off(this.back, !calls.length);
    off(this.again, JSON.stringify(calls) === JSON.stringify(this.given));
    const used = references.filter((count) => count).length;
    const all = Object.values(tables).reduce((sum, each) => sum + each.length, 0);
    const filled = slots.reduce((sum, each, block) => sum + (references[block] ? each.length : 0), 0);
    const sum = (key, number, text) => {
      const node = make("div", "course-pages-sum", { "data-sum": key });
      node.append(make("b", "", {}, number), make("span", "", {}, text));
      return node;
    };
    this.sums.replaceChildren(
      sum("used", `${used} of ${this.n_blocks}`, "blocks in use"),
      sum("alone", all, "without sharing"),
      sum("empty", used * this.block_size - filled, "of their places empty"),
    );
  }

  remove() {
    this.stopListening();
  }
}

const act = (text, label, does) => {
  const node = make("button", "", { type: "button", "aria-label": label }, text);
  node.addEventListener("click", () => {
    if (node.getAttribute("aria-disabled") !== "true") does();
  });
  return node;
};

function render(options) {
  const table = new PageTableView(options);
  return () => table.remove();
}

export default { render };
