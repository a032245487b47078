// Shows a round of speculative decoding; all arithmetic is in speculative_round.js, so nothing here needs a kernel.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { listen, make, makeRoot, setTraits } from "../shared/dom.js";
import { shortText } from "../shared/number_text.js";
import { makeMessage, Player } from "../shared/player.js";
import { expectedTokens, messageOf, movedTowards, overlapOf, remainderOf, roundOf } from "./speculative_round.js";

const HINT = "Step through the round; then move q towards p, or throw new coins, and see how many tokens it yields.";

class SpeculativeView {
  round;
  q;
  tells;
  constructor({ model, el }) {
    this.model = model;
    this.given = model.get("_given");
    this.words = model.get("words");
    ({ last_seed: this.lastSeed, stops: this.stops } = model.get("_limits"));
    ({
      p: this.p,
      drafted: { length: this.gamma },
    } = this.given);
    this.rest = remainderOf(this.p, this.given.q);
    const root = makeRoot(model, "course-bars course-spec", {
      role: "group",
      "aria-label": "a round of speculative decoding",
    });
    this.player = new Player(model, "steps of the round", "step");
    const controls = this.drawControls();

    this.chips = make("ol", "course-spec-chips", { "aria-label": "tokens of the round" });
    this.message = makeMessage("course-message course-spec-message");
    this.table = this.makeTable();
    this.scale = makeScale();
    this.sums = make("div", "course-spec-sums");
    root.append(
      this.player.node,
      this.chips,
      this.message.node,
      this.table.node,
      this.table.legend,
      this.scale.node,
      this.sums,
      controls,
      make("div", "course-faint", {}, HINT),
    );
    this.player.keys(root);
    keepSliderKeys(root);
    el.append(root);
    this.follow();
    this.stopListening = listen(model, {
      step: () => this.show(),
      nearness: () => this.follow(),
      seed: () => this.follow(),
    });
  }

  drawControls() {
    const controls = make("div", "course-bars-controls");
    const lot = make("div", "course-row course-spec-lot");
    this.slider = barsSlider({
      name: "q moved towards p",
      last: this.stops,
      ticks: [
        [0, "as given"],
        [this.stops / 2, "half"],
        [this.stops, "q = p"],
      ],
      onInput: (position) => {
        const nearness = position / this.stops;
        this.player.stop();
        setTraits(this.model, {
          nearness,
          step: Math.min(
            this.model.get("step"),
            roundOf(this.given, this.model.get("seed"), nearness).coins.length + 1,
          ),
        });
      },
    });
    const again = make("button", "", { type: "button" }, "New coins");
    this.back = make("button", "", { type: "button" }, "As given");
    this.seed = make("span", "course-faint course-spec-seed", { role: "status" });
    again.addEventListener("click", () => {
      const at = this.model.get("seed");
      this.start(at === null ? 0 : (at + 1) % (this.lastSeed + 1));
    });
    this.back.addEventListener("click", () => {
      if (this.back.getAttribute("aria-disabled") !== "true") this.start(null);
    });
    lot.append(again, this.back, this.seed);
    controls.append(this.slider.node, lot);
    return controls;
  }

  start(number) {
    this.player.stop();
    setTraits(this.model, { seed: number, step: 0 });
  }

  // A row for each token: the bars of p and q, or of the remainder under p, and below them a band as wide as min(p, q).
  makeTable() {
    const node = make("table", "course-spec-words", { "aria-label": "probabilities" });
    const head = node.createTHead().insertRow();
    const heads = ["token", "p", "q", "min", ""].map((text) =>
      head.appendChild(make(text ? "th" : "td", "", text ? { scope: "col" } : {}, text)),
    );
    const body = node.createTBody();
    const legend = make("div", "course-legend course-spec-legend", { "aria-hidden": "true" });
    const rows = this.words.map((word) => {
      const row = body.insertRow();
      const name = make("th", "", { scope: "row", title: word });
      const mark = make("span", "course-spec-mark");
      const track = make("div", "course-spec-track");
      const [band, upper, lower] = ["band", "p", "q"].map((kind) => make("div", `course-spec-bar course-spec-${kind}`));
      name.append(mark, make("span", "", {}, word));
      track.append(band, upper, lower);
      row.append(name);
      const cells = Array.from({ length: 3 }, () => row.insertCell());
      row.insertCell().append(track);
      return { row, mark, band, upper, lower, cells };
    });
    return {
      node,
      legend,
      show: (at, marked, sign, most) => {
        const other = at === "remainder" ? this.rest : this.q;
        heads[2].textContent = at === "remainder" ? "rest" : "q";
        legend.replaceChildren(
          key("p", "p"),
          at === "remainder" ? key("rest", "(p − q)₊, scaled to sum to 1") : key("q", "q"),
          key("band", "both: min(p, q)"),
        );
        rows.forEach(({ row, mark, band, upper, lower, cells }, i) => {
          row.classList.toggle("course-spec-marked", i === marked);
          mark.textContent = i === marked ? sign : "";
          const shared = Math.min(this.p[i], this.q[i]);
          for (const [bar, value] of [
            [band, shared],
            [upper, this.p[i]],
            [lower, other[i]],
          ])
            bar.style.transform = `scaleX(${value / most})`;
          lower.className = `course-spec-bar course-spec-${at === "remainder" ? "rest" : "q"}`;
          [this.p[i], other[i], shared].forEach((value, c) => {
            cells[c].textContent = shortText(value);
            cells[c].dataset.value = value;
          });
        });
      },
    };
  }

  showChips(step) {
    const looked = this.round.coins.slice(0, Math.max(0, step));
    const rejected = looked.some((coin) => !coin.kept);
    const end = step > this.round.coins.length;
    const states = this.round.drafted.map((token, i) => {
      const coin = looked[i];
      const state = coin ? (coin.kept ? "kept" : "rejected") : rejected ? "dropped" : "waits";
      return {
        token,
        state,
        sign: { kept: "✓ ", rejected: "✗ ", dropped: "– ", waits: "" }[state],
        here: !end && i === step - 1,
      };
    });
    if (end) states.push({ token: this.round.tokens.at(-1), state: "added", sign: "+ ", here: true });
    this.chips.replaceChildren(
      ...states.map(({ token, state, sign, here }) => {
        const chip = make("li", `course-spec-chip course-spec-${state}${here ? " course-spec-here" : ""}`);
        chip.append(
          make("span", "", {}, `${sign}${this.words[token]}`),
          make(
            "span",
            "course-spec-state",
            {},
            { waits: "drafted", added: `from ${this.round.source === "p" ? "p" : "the rest"}` }[state] ?? state,
          ),
        );
        return chip;
      }),
    );
  }

  showSums(end) {
    const alpha = overlapOf(this.p, this.q);
    const mean = expectedTokens(alpha, this.gamma);
    this.sums.replaceChildren(
      sumOf("alpha", "α = Σ min(p, q)", alpha),
      sumOf("expected", `tokens a round expected, (1 − α${"⁰¹²³⁴⁵⁶⁷⁸⁹"[this.gamma + 1]}) / (1 − α)`, mean),
      sumOf("got", `of this round, at most ${this.gamma + 1}`, end ? this.round.tokens.length : null),
    );
  }

  follow() {
    const nearness = this.model.get("nearness");
    const at = this.model.get("seed");
    this.round = roundOf(this.given, at, nearness);
    this.q = movedTowards(this.p, this.given.q, nearness);
    this.tells = messageOf(this.round, this.words);
    this.message.rooms(this.tells);
    this.slider.show(
      Math.round(this.stops * nearness),
      nearness === 1 ? "all the way" : `${Math.round(100 * nearness)}%`,
    );
    this.seed.textContent = at === null ? "drafted tokens and coins as given" : `seed ${at}`;
    this.back.setAttribute("aria-disabled", at === null);
    this.show();
  }

  show() {
    const last = this.round.coins.length + 1;
    const step = Math.min(this.model.get("step"), last);
    const end = step === last;
    const coin = this.round.coins[step - 1];
    this.player.show(step, last);
    this.message.show(this.tells[step]);
    this.showChips(step);
    this.showSums(end);
    const most = Math.max(...this.p, ...this.given.q, ...(this.rest ?? [0]));
    const marked = end ? this.round.tokens.at(-1) : (coin?.token ?? -1);
    this.table.show(end && this.round.source === "remainder" ? "remainder" : "both", marked, end ? "+" : "▸", most);
    if (end) {
      const from = this.round.source === "p" ? this.p : this.rest;
      const parts = from
        .map((size, i) => ({ size, text: this.words[i], kind: i === marked ? "hit" : "part" }))
        .filter(({ size }) => size > 0);
      const name = this.round.source === "p" ? "p" : "the remainder";
      this.scale.show(
        `coin u = ${shortText(this.round.lastCoin)} on ${name}, laid out from 0 to 1`,
        this.tells[step],
        parts,
        this.round.lastCoin,
      );
    } else if (coin) {
      const bound = Math.min(1, coin.ratio);
      const parts = [
        { size: bound, text: "kept", kind: "yes" },
        { size: 1 - bound, text: "rejected", kind: "no" },
      ].filter(({ size }) => size > 0);
      this.scale.show(
        `coin u = ${shortText(coin.u)}, kept below p/q = ${shortText(this.p[coin.token])} / ` +
          `${shortText(this.q[coin.token])} = ${shortText(coin.ratio)}`,
        this.tells[step],
        parts,
        coin.u,
      );
    } else this.scale.show("", "", [], 0);
  }

  remove() {
    this.player.stop();
    this.stopListening();
  }
}

function key(kind, text) {
  const node = make("span");
  node.append(make("span", `course-spec-sample course-spec-${kind}`), make("span", "", {}, text));
  return node;
}

// The scale from 0 to 1 on which a coin falls: below p/q it keeps a token; at the end the part that it hits is drawn.
function makeScale() {
  const node = make("div", "course-spec-scale", { role: "img" });
  const head = make("div", "course-spec-head");
  const line = make("div", "course-spec-line");
  const needle = make("div", "course-spec-needle");
  const ends = make("div", "course-spec-ends");
  ends.append(make("span", "", {}, "0"), make("span", "", {}, "1"));
  node.append(head, line, ends);
  return {
    node,
    show: (title, label, parts, u) => {
      node.hidden = !parts.length;
      node.setAttribute("aria-label", label);
      head.textContent = title;
      let start = 0;
      line.replaceChildren(
        ...parts.map(({ size, text, kind }) => {
          const inside = (u - start) / size; // where the needle stands in it: the text keeps out of its way
          const side = inside < 0 || inside >= 1 ? "center" : inside < 0.5 ? "end" : "start";
          const part = make("div", `course-spec-part course-spec-${kind}`, {
            style: `width:${100 * size}%; justify-items:${side}`,
          });
          start += size;
          part.append(make("span", "", {}, size > 0.07 ? text : ""));
          return part;
        }),
        needle,
      );
      needle.style.left = `${100 * u}%`;
    },
  };
}

function sumOf(name, text, value) {
  const node = make("div", `course-spec-sum course-spec-${name}`);
  node.dataset.value = value;
  const number = make("b", "", {}, value === null ? "–" : name === "got" ? String(value) : shortText(value));
  node.append(number, make("span", "course-faint", {}, text));
  return node;
}

function render(options) {
  const stepper = new SpeculativeView(options);
  return () => stepper.remove();
}

export default { render };
