// Shows a round of speculative decoding; all arithmetic is in speculative_round.js, so nothing here needs a kernel.

import { barsSlider, keepSliderKeys } from "../shared/bars.js";
import { listen, make, makeRoot } from "../shared/dom.js";
import { shortText } from "../shared/number_text.js";
import { makePlayer, makeTold } from "../shared/player.js";
import { expectedTokens, movedTowards, overlapOf, remainderOf, roundOf, toldOf } from "./speculative_round.js";

const HINT = "Step through the round; then move q towards p, or throw new coins, and see how many tokens it yields.";

function render({ model, el }) {
  const given = model.get("_given");
  const words = model.get("words");
  const { last_seed, stops } = model.get("_limits");
  const {
    p,
    drafted: { length: gamma },
  } = given;
  const rest = remainderOf(p, given.q);
  const root = makeRoot(model, "course-bars course-spec", {
    role: "group",
    "aria-label": "a round of speculative decoding",
  });
  const player = makePlayer(model, "steps of the round", "step");
  let round;
  let q;
  let tells;

  const controls = make("div", "course-bars-controls");
  const lot = make("div", "course-row course-spec-lot");
  const slider = barsSlider({
    name: "q moved towards p",
    last: stops,
    ticks: [
      [0, "as given"],
      [stops / 2, "half"],
      [stops, "q = p"],
    ],
    onInput: (position) => {
      const nearness = position / stops;
      player.stop();
      set({
        nearness,
        step: Math.min(model.get("step"), roundOf(given, model.get("seed"), nearness).coins.length + 1),
      });
    },
  });
  const again = make("button", "", { type: "button" }, "New coins");
  const back = make("button", "", { type: "button" }, "As given");
  const seed = make("span", "course-faint course-spec-seed", { role: "status" });
  again.addEventListener("click", () => {
    const at = model.get("seed");
    start(at === null ? 0 : (at + 1) % (last_seed + 1));
  });
  back.addEventListener("click", () => {
    if (back.getAttribute("aria-disabled") !== "true") start(null);
  });
  lot.append(again, back, seed);
  controls.append(slider.node, lot);
  function start(number) {
    player.stop();
    set({ seed: number, step: 0 });
  }
  function set(state) {
    for (const [name, value] of Object.entries(state)) model.set(name, value);
    model.save_changes();
  }

  const chips = make("ol", "course-spec-chips", { "aria-label": "tokens of the round" });
  const told = makeTold("course-told course-spec-told");
  const table = makeTable();
  const scale = makeScale();
  const sums = make("div", "course-spec-sums");
  root.append(
    player.node,
    chips,
    told.node,
    table.node,
    table.legend,
    scale.node,
    sums,
    controls,
    make("div", "course-faint", {}, HINT),
  );
  player.keys(root);
  keepSliderKeys(root);
  el.append(root);

  // A row for each token: the bars of p and q, or of the remainder under p, and below them a band as wide as min(p, q).
  function makeTable() {
    const node = make("table", "course-spec-words", { "aria-label": "probabilities" });
    const head = node.createTHead().insertRow();
    const heads = ["token", "p", "q", "min", ""].map((text) =>
      head.appendChild(make(text ? "th" : "td", "", text ? { scope: "col" } : {}, text)),
    );
    const body = node.createTBody();
    const legend = make("div", "course-legend course-spec-legend", { "aria-hidden": "true" });
    const rows = words.map((word) => {
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
        const other = at === "remainder" ? rest : q;
        heads[2].textContent = at === "remainder" ? "rest" : "q";
        legend.replaceChildren(
          key("p", "p"),
          at === "remainder" ? key("rest", "(p − q)₊, made to sum to 1") : key("q", "q"),
          key("band", "both: min(p, q)"),
        );
        rows.forEach(({ row, mark, band, upper, lower, cells }, i) => {
          row.classList.toggle("course-spec-marked", i === marked);
          mark.textContent = i === marked ? sign : "";
          const shared = Math.min(p[i], q[i]);
          for (const [bar, value] of [
            [band, shared],
            [upper, p[i]],
            [lower, other[i]],
          ])
            bar.style.transform = `scaleX(${value / most})`;
          lower.className = `course-spec-bar course-spec-${at === "remainder" ? "rest" : "q"}`;
          [p[i], other[i], shared].forEach((value, c) => {
            cells[c].textContent = shortText(value);
            cells[c].dataset.value = value;
          });
        });
      },
    };
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

  function showChips(step) {
    const looked = round.coins.slice(0, Math.max(0, step));
    const rejected = looked.some((coin) => !coin.kept);
    const end = step > round.coins.length;
    const states = round.drafted.map((token, i) => {
      const coin = looked[i];
      const state = coin ? (coin.kept ? "kept" : "rejected") : rejected ? "dropped" : "waits";
      return {
        token,
        state,
        sign: { kept: "✓ ", rejected: "✗ ", dropped: "– ", waits: "" }[state],
        here: !end && i === step - 1,
      };
    });
    if (end) states.push({ token: round.tokens.at(-1), state: "added", sign: "+ ", here: true });
    chips.replaceChildren(
      ...states.map(({ token, state, sign, here }) => {
        const chip = make("li", `course-spec-chip course-spec-${state}${here ? " course-spec-here" : ""}`);
        chip.append(
          make("span", "", {}, `${sign}${words[token]}`),
          make(
            "span",
            "course-spec-state",
            {},
            { waits: "drafted", added: `from ${round.source === "p" ? "p" : "the rest"}` }[state] ?? state,
          ),
        );
        return chip;
      }),
    );
  }

  function showSums(end) {
    const alpha = overlapOf(p, q);
    const mean = expectedTokens(alpha, gamma);
    sums.replaceChildren(
      sumOf("alpha", "α = Σ min(p, q)", alpha),
      sumOf("expected", `tokens a round expected, (1 − α${"⁰¹²³⁴⁵⁶⁷⁸⁹"[gamma + 1]}) / (1 − α)`, mean),
      sumOf("got", `of this round, at most ${gamma + 1}`, end ? round.tokens.length : null),
    );
  }
  function sumOf(name, text, value) {
    const node = make("div", `course-spec-sum course-spec-${name}`);
    node.dataset.value = value;
    const number = make("b", "", {}, value === null ? "–" : name === "got" ? String(value) : shortText(value));
    node.append(number, make("span", "course-faint", {}, text));
    return node;
  }

  function follow() {
    const nearness = model.get("nearness");
    const at = model.get("seed");
    round = roundOf(given, at, nearness);
    q = movedTowards(p, given.q, nearness);
    tells = toldOf(round, words);
    told.rooms(tells);
    slider.show(Math.round(stops * nearness), nearness === 1 ? "all the way" : `${Math.round(100 * nearness)}%`);
    seed.textContent = at === null ? "drafted tokens and coins as given" : `seed ${at}`;
    back.setAttribute("aria-disabled", at === null);
    show();
  }
  function show() {
    const last = round.coins.length + 1;
    const step = Math.min(model.get("step"), last);
    const end = step === last;
    const coin = round.coins[step - 1];
    player.show(step, last);
    told.show(tells[step]);
    showChips(step);
    showSums(end);
    const most = Math.max(...p, ...given.q, ...(rest ?? [0]));
    const marked = end ? round.tokens.at(-1) : (coin?.token ?? -1);
    table.show(end && round.source === "remainder" ? "remainder" : "both", marked, end ? "+" : "▸", most);
    if (end) {
      const from = round.source === "p" ? p : rest;
      const parts = from
        .map((size, i) => ({ size, text: words[i], kind: i === marked ? "hit" : "part" }))
        .filter(({ size }) => size > 0);
      const name = round.source === "p" ? "p" : "the remainder";
      scale.show(
        `coin u = ${shortText(round.last_coin)} on ${name}, laid out from 0 to 1`,
        tells[step],
        parts,
        round.last_coin,
      );
    } else if (coin) {
      const bound = Math.min(1, coin.ratio);
      const parts = [
        { size: bound, text: "kept", kind: "yes" },
        { size: 1 - bound, text: "rejected", kind: "no" },
      ].filter(({ size }) => size > 0);
      scale.show(
        `coin u = ${shortText(coin.u)}, kept below p/q = ${shortText(p[coin.token])} / ${shortText(q[coin.token])} = ${shortText(coin.ratio)}`,
        tells[step],
        parts,
        coin.u,
      );
    } else scale.show("", "", [], 0);
  }
  follow();
  const stopListening = listen(model, { step: show, nearness: follow, seed: follow });
  return () => {
    player.stop();
    stopListening();
  };
}

export default { render };
