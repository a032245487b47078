// Shows the tiles of duel_board.py; what they say comes from there.

import { keepKeys, make, makeRoot, presses, typeset } from "../shared/dom.js";

class DuelBoardView {
  constructor({ model, el }) {
    const tiles = model.get("_tiles");
    const root = makeRoot(model, "course-duel", { role: "group", "aria-label": "board of your test" });
    this.detail = make("div", "course-duel-detail", { role: "status" });
    this.shown = new Map(); // how many hints were asked for, by tile

    this.nodes = tiles.map((tile) => {
      const state = tile.right ? (tile.held ? "kept" : "condemned") : tile.held ? "caught" : "got away";
      const kind = tile.right ? "right implementation" : "wrong implementation";
      const label = `${kind} ${tile.number}: ${state}${tile.name ? `, ${tile.name}` : ""}`;
      const node = make("button", `course-duel-tile course-duel-${state.replace(" ", "-")}`, {
        type: "button",
        "aria-label": label,
        "aria-pressed": "false",
        title: tile.name || state,
      });
      const mark = { kept: "✓", caught: "✓", condemned: "✗", "got away": "?" }[state];
      node.append(make("span", "course-duel-number", {}, `${tile.number}`), make("span", "course-duel-mark", {}, mark));
      node.addEventListener("click", () => this.choose(tile, node, state));
      return node;
    });
    for (const right of [true, false]) {
      const title = right ? "Right implementations, to be kept" : "Wrong implementations, to be caught";
      root.append(make("div", "course-duel-title", {}, title));
      const row = make("div", "course-duel-row");
      row.append(...this.nodes.filter((_, i) => tiles[i].right === right));
      root.append(row);
    }
    root.append(make("div", "course-duel-said", {}, model.get("_said")), this.detail);
    this.detail.append("Choose a tile to see what there is to know about it.");
    el.append(root);
    keepKeys(root, presses);
  }

  choose(tile, node, state) {
    this.nodes.forEach((each) => each.setAttribute("aria-pressed", String(each === node)));
    const head = tile.name ? `${tile.number}, ${state}: ${tile.name}. ` : `${tile.number} got away. `;
    this.detail.replaceChildren(make("strong", "", {}, head), ...typeset(tile.message));
    if (state === "got away") this.showHints(tile);
  }

  showHints(tile) {
    const count = this.shown.get(tile) ?? 0;
    this.detail.querySelectorAll(".course-duel-hint, .course-duel-more").forEach((node) => node.remove());
    this.detail.append(...tile.hints.slice(0, count).map((hint) => make("p", "course-duel-hint", {}, hint)));
    if (count === tile.hints.length) return;
    const more = make("button", "course-duel-more", { type: "button" }, count ? "Another hint" : "A hint");
    more.addEventListener("click", () => {
      this.shown.set(tile, count + 1);
      this.showHints(tile);
      this.detail.querySelector(".course-duel-more")?.focus();
    });
    this.detail.append(more);
  }
}

function render(options) {
  new DuelBoardView(options);
}

export default { render };
