// Blocks, tables and the calls on them. The page computes what the calls lead to, as `done` of page_table.py does.

import { keepKeys, listen, make, makeRoot, makeScroll, newId, presses } from "../shared/dom.js";

const countedAs = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

function pagesOf(calls, n_blocks, block_size) {
  const references = Array(n_blocks).fill(0);
  const free = Array.from({ length: n_blocks }, (_, i) => n_blocks - 1 - i);
  const slots = references.map(() => []);
  const tables = {};
  const lengths = {};
  let changed = [];
  let told = "Nothing is stored yet.";
  const allocate = () => {
    const block = free.pop();
    references[block] = 1;
    return block;
  };
  const release = (block) => {
    if (--references[block] === 0) free.push(block);
  };
  const run = {
    append(name) {
      let table = tables[name] ?? [];
      const length = lengths[name] ?? 0;
      const slot = length % block_size;
      const last = table.at(-1);
      let how = `slot ${slot} of block ${last}`;
      if ((!slot || references[last] > 1) && !free.length) {
        changed = [];
        told = `append ${name}: no block is free. Nothing changes.`;
        return;
      }
      if (!slot) {
        table = [...table, allocate()];
        slots[table.at(-1)] = [];
        how = `slot 0 of block ${table.at(-1)}, which was free`;
      } else if (references[last] > 1) {
        const own = allocate();
        release(last);
        table = [...table.slice(0, -1), own];
        slots[own] = [...slots[last]];
        how = `slot ${slot} of block ${own}, a copy of block ${last}, which others hold, too: copy on write`;
      }
      slots[table.at(-1)].push(`${name}${length}`);
      tables[name] = table;
      lengths[name] = length + 1;
      changed = [table.at(-1)];
      told = `append ${name}: token ${length} goes to ${how}.`;
    },
    fork(name, other) {
      for (const block of tables[name]) references[block]++;
      tables[other] = [...tables[name]];
      lengths[other] = lengths[name];
      changed = [...tables[name]];
      told = `fork ${name}: ${other} has the same table, so ${countedAs(changed.length, "block")} ${changed.length === 1 ? "is" : "are"} shared. Nothing is copied.`;
    },
    free(name) {
      changed = tables[name];
      delete tables[name];
      delete lengths[name];
      changed.forEach(release);
      const gone = changed.filter((block) => !references[block]);
      const kept = changed.length - gone.length;
      for (const block of gone) slots[block] = [];
      const also = kept ? ` ${countedAs(kept, "block")} that others hold ${kept === 1 ? "stays" : "stay"}.` : "";
      told = `free ${name}: ${countedAs(gone.length, "block")} ${gone.length === 1 ? "is" : "are"} free again.${also}`;
    },
  };
  for (const [kind, ...names] of calls) run[kind](...names);
  return { tables, lengths, references, slots, changed, told };
}

function render({ model, el }) {
  const { n_blocks, block_size, names, most } = model.get("_layout");
  const uid = newId("course-pages");
  const root = makeRoot(model, "course-pages", { role: "group", "aria-labelledby": `${uid}-title` });
  const told = make("div", "course-told course-pages-told", { role: "status" });
  const sums = make("div", "course-pages-sums");
  const pool = make("ol", "course-pages-pool", { "aria-label": "blocks of the pool" });
  const table = make("table", "", { "aria-label": "tables of the sequences" });
  const head = table.createTHead().insertRow();
  const body = table.createTBody();
  for (const text of ["sequence", "table", "tokens", ""])
    head.append(make(text ? "th" : "td", "", text ? { scope: "col" } : {}, text));
  const lot = make("div", "course-row course-pages-lot");
  const act = (text, label, does) => {
    const node = make("button", "", { type: "button", "aria-label": label }, text);
    node.addEventListener("click", () => {
      if (node.getAttribute("aria-disabled") !== "true") does();
    });
    return node;
  };
  const set = (calls) => {
    model.set("calls", calls);
    model.save_changes();
  };
  const call = (...made) => set([...model.get("calls"), made]);
  const unused = () => [...names].find((name) => !(name in pages.tables));
  const begin = act("new sequence", "new sequence", () => call("append", unused()));
  const back = act("← back", "back", () => set(model.get("calls").slice(0, -1)));
  const given = model.get("calls");
  const again = act("as given", "as given", () => set(given));
  let pages;
  lot.append(begin, back, again);
  const bound = makeScroll("course-pages-scroll");
  bound.append(table);
  root.append(
    make("div", "course-title course-pages-title", { id: `${uid}-title` }, model.get("title")),
    told,
    pool,
    bound,
    lot,
    sums,
  );
  keepKeys(root, presses);
  el.append(root);

  // Rows stay where they are, a to f, so that a button keeps the focus while it is pressed again and again.
  const rows = [...names].map((name) => {
    const row = body.insertRow();
    const cells = [make("th", "", { scope: "row" }, name), ...[0, 1, 2].map(() => make("td"))];
    const buttons = {
      append: act("append", `append a token to ${name}`, () => call("append", name)),
      fork: act("fork", `fork ${name}`, () => call("fork", name, unused())),
      free: act("free", `free ${name}`, () => {
        call("free", name);
        begin.focus();
      }),
    };
    cells[3].append(...Object.values(buttons));
    row.append(...cells);
    return { name, row, cells, buttons };
  });
  const blocks = Array.from({ length: n_blocks }, (_, block) => {
    const node = make("li", "course-pages-block");
    const title = make("div", "course-pages-head");
    const held = make("span");
    const line = make("div", "course-pages-slots");
    const owners = make("div", "course-pages-owners");
    const cells = Array.from({ length: block_size }, () => make("span", "course-pages-slot"));
    title.append(make("b", "", {}, `block ${block}`), held);
    line.append(...cells);
    node.append(title, line, owners);
    pool.append(node);
    return { node, held, cells, owners };
  });

  function show() {
    const calls = model.get("calls");
    const full = calls.length >= most;
    const off = (node, is) => node.setAttribute("aria-disabled", is);
    pages = pagesOf(calls, n_blocks, block_size);
    const { tables, lengths, references, slots, changed } = pages;
    told.textContent = full ? `${pages.told} These are ${most} calls, and no more are possible: go back.` : pages.told;
    blocks.forEach(({ node, held, cells, owners }, block) => {
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
    for (const { name, row, cells, buttons } of rows) {
      const here = name in tables;
      row.hidden = !here;
      cells[1].textContent = here ? tables[name].join(", ") : "";
      cells[2].textContent = here ? lengths[name] : "";
      off(buttons.append, full);
      off(buttons.fork, full || !unused());
      off(buttons.free, full);
    }
    off(begin, full || !unused());
    off(back, !calls.length);
    off(again, JSON.stringify(calls) === JSON.stringify(given));
    const used = references.filter((count) => count).length;
    const all = Object.values(tables).reduce((sum, each) => sum + each.length, 0);
    const filled = slots.reduce((sum, each, block) => sum + (references[block] ? each.length : 0), 0);
    const sum = (key, number, text) => {
      const node = make("div", "course-pages-sum", { "data-sum": key });
      node.append(make("b", "", {}, number), make("span", "", {}, text));
      return node;
    };
    sums.replaceChildren(
      sum("used", `${used} of ${n_blocks}`, "blocks in use"),
      sum("alone", all, "without sharing"),
      sum("empty", used * block_size - filled, "of their slots empty"),
    );
  }
  show();
  return listen(model, { calls: show });
}

export default { render };
