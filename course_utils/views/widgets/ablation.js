// Switches heads at once; the losses come from ablation.py, which runs the model, one round trip later.

import { keepKey, keepKeys, listen, make, makeRoot, makeScroll, minus, newId, setTraits } from "../shared/dom.js";
import { headName, headTable, passes } from "../shared/heads.js";
import { answerAblation } from "./ablation_alone.js";

const WAITS = "waiting for Python, which answers while the kernel runs";

class AblationView {
  constructor({ model, el }) {
    this.model = model;
    this.tokens = model.get("_tokens");
    ({
      layers: this.layers,
      heads: this.heads,
      from: this.from,
      alone: this.alone,
      vocabulary: this.vocabulary,
    } = model.get("_layout"));
    this.T = this.tokens.length;
    this.uid = newId("course-ablation");
    this.root = makeRoot(model, "course-heads-root course-ablation", {
      role: "group",
      "aria-labelledby": `${this.uid}-title`,
    });
    this.title = make("div", "course-title course-heads-title", { id: `${this.uid}-title` }, model.get("title"));
    this.places = Array.from({ length: this.layers * this.heads }, (_, i) => [
      Math.floor(i / this.heads),
      i % this.heads,
    ]);
    this.late = null;
    this.unknown = "";
    this.at = this.from; // at: the token that the arrow keys have come to
    this.hover = null;
    this.focused = false;

    this.switches = this.headSwitches();
    this.drawButtons();
    const chooser = make("div", "course-ablation-chooser");
    const scroll = makeScroll("course-heads-scroll");
    scroll.append(this.switches.node);
    chooser.append(scroll, this.buttons);
    this.message = make("div", "course-message course-ablation-message", { role: "status" });
    this.waits = make("div", "course-faint course-ablation-waits", { "aria-live": "polite" });
    this.against = make("div", "course-ablation-against", { "aria-live": "polite" });
    this.means = this.meanBars();
    this.chart = new TokenBars(this);
    // what changes its height: last
    this.root.append(this.title, chooser, this.means.node, this.chart.node, this.against, this.waits, this.message);
    el.append(this.root);
    this.listenToModel();
  }

  drawButtons() {
    this.buttons = make("div", "course-ablation-buttons");
    for (const [text, off] of [
      ["all on", []],
      ["all off", this.places],
    ])
      this.addButton(text, () => setTraits(this.model, { off }));
    if (this.alone) this.addButton("each alone", () => setTraits(this.model, { _asked: this.model.get("_asked") + 1 }));
    this.addButton("keep as A", () => {
      const { off, losses, means } = this.model.get("_result");
      if (means[0] !== null) setTraits(this.model, { _kept: { off, losses, means } });
    });
    this.forget = this.addButton("forget A", () => setTraits(this.model, { _kept: null }));
  }

  listenToModel() {
    const handlers = {
      off: () => this.showSwitches(),
      _rises: () => this.showSwitches(),
      _asked: () => this.showLate(),
      _answered: () => this.showLate(),
      _result: () => this.showResult(),
      _kept: () => this.showResult(),
      title: () => {
        this.title.textContent = this.model.get("title");
      },
    };
    this.stop = this.model.alone
      ? answerAblation(this.model, this.heads, (text) => {
          this.unknown = text;
        })
      : () => {};
    this.showSwitches();
    this.showResult();
    this.stopListening = listen(this.model, handlers);
  }

  placesOff() {
    return new Set(this.model.get("off").map(([l, h]) => l * this.heads + h));
  }

  addButton(text, press) {
    const button = make("button", "course-ablation-button", { type: "button" }, text);
    button.addEventListener("click", press);
    keepKeys(button, (event) => !passes(event));
    this.buttons.append(button);
    return button;
  }

  // ---- a switch for each head
  headSwitches() {
    const rises = [];
    const { node, buttons } = headTable({
      layers: this.layers,
      heads: this.heads,
      name: "heads to switch off",
      labels: () => [make("div", "course-ablation-rise", {}, "rise, alone off")],
      makeButton: () => {
        const button = make("button", "course-ablation-switch", {
          type: "button",
          role: "switch",
          "aria-checked": "true",
        });
        const word = make("span", "course-ablation-word", {}, "on");
        const rise = make("span", "course-ablation-rise");
        button.append(word, rise);
        rises.push(rise);
        return button;
      },
      press: (l, h) => {
        const place = l * this.heads + h;
        const off = this.placesOff();
        if (!off.delete(place)) off.add(place);
        setTraits(this.model, { off: this.places.filter((_, i) => off.has(i)) });
      },
    });
    return {
      node,
      show: () => {
        const off = this.placesOff();
        const known = this.model.get("_rises");
        node.classList.toggle("course-ablation-known", Boolean(known));
        const numbers = (known ?? []).map((text) => parseFloat(text.replace("−", "-")));
        const most = numbers.indexOf(Math.max(...numbers.filter((number) => !Number.isNaN(number))));
        buttons.forEach((button, i) => {
          button.setAttribute("aria-checked", !off.has(i));
          button.firstChild.textContent = off.has(i) ? "off" : "on";
          rises[i].textContent = known?.[i] ?? "";
          rises[i].classList.toggle("course-ablation-most", i === most);
          button.setAttribute(
            "aria-label",
            headName(...this.places[i]) + (known ? `, loss ${known[i]} when it alone is off` : ""),
          );
        });
      },
    };
  }

  // ---- the mean of these heads above that of the whole model
  meanBars() {
    const node = make("div", "course-ablation-means", { role: "group", "aria-label": "mean loss, nats" });
    const rows = ["with these heads", "whole model", "A, kept"].map((name) => {
      const row = make("div", "course-ablation-mean");
      const bar = make("div", "course-ablation-meanbar");
      const value = make("div", "course-ablation-value");
      const track = make("div", "course-ablation-track");
      track.append(bar);
      row.append(make("div", "course-ablation-name", {}, name), value, track);
      node.append(row);
      return { row, bar, value };
    });
    return {
      node,
      show: ({ means, top }) =>
        rows.forEach(({ row, bar, value }, i) => {
          const kept = this.model.get("_kept");
          const mean = i < 2 ? means[i] : kept ? kept.means[0] : null;
          row.classList.toggle("course-ablation-unkept", i === 2 && !kept);
          bar.style.transform = `scaleX(${(mean ?? 0) / top})`;
          value.textContent = mean === null ? "–" : mean.toFixed(2);
          value.dataset.value = mean ?? "";
        }),
    };
  }

  sentence(place) {
    const { losses, whole } = this.model.get("_result");
    const said = (value) => (value === null ? "not known" : `${value.toFixed(2)} nats`);
    const counted = place < this.from ? ", not counted" : "";
    const kept = this.model.get("_kept");
    const there = kept ? `, A ${said(kept.losses[place - 1])}` : "";
    return (
      `token ${place} “${this.tokens[place]}”: ${said(losses[place - 1])}, whole model ` +
      `${said(whole[place - 1])}${there}${counted}`
    );
  }

  // Losses of other heads than those switched, and a question that nobody answers, are said to be so, after a moment in
  // which an answer usually arrives.
  showLate() {
    const lateLosses = () => JSON.stringify(this.model.get("_result").off) !== JSON.stringify(this.model.get("off"));
    const lateRises = () => this.model.get("_asked") !== this.model.get("_answered");
    const mark = () => {
      this.root.classList.toggle("course-ablation-late", lateLosses());
      this.waits.textContent = lateLosses()
        ? `of the heads before; ${WAITS}`
        : lateRises()
          ? `each alone: ${WAITS}`
          : "";
    };
    clearTimeout(this.late);
    if (this.model.alone) {
      // what is not known will not come
      this.root.classList.toggle("course-ablation-late", lateLosses());
      this.waits.textContent = lateLosses() ? `of the heads before; ${this.unknown}` : "";
    } else if (lateLosses() || lateRises()) this.late = setTimeout(mark, 400);
    else mark();
  }

  // The setting that was kept, and how far the present one is from it.
  showKept() {
    const kept = this.model.get("_kept");
    const mean = this.model.get("_result").means[0];
    this.root.classList.toggle("course-ablation-compares", Boolean(kept));
    this.forget.disabled = !kept;
    const off = kept?.off.map(([l, h]) => headName(l, h)).join("; ") || "no head";
    const rise = kept && mean !== null ? mean - kept.means[0] : null;
    this.against.textContent = !kept
      ? ""
      : `A: ${off} off, ${kept.means[0].toFixed(2)} nats. ` +
        (rise === null
          ? ""
          : `Now ${minus((rise >= 0.005 ? "+" : "") + (Math.abs(rise) < 0.005 ? "0.00" : rise.toFixed(2)))} ` +
            "against A.");
  }

  showSwitches() {
    this.switches.show();
    this.showLate();
  }

  showResult() {
    const result = this.model.get("_result");
    if (this.message.textContent !== result.line) this.message.textContent = result.line;
    this.message.classList.toggle("course-ablation-problem", Boolean(result.problem));
    this.means.show(result);
    this.chart.show(result);
    this.showKept();
    this.showLate();
  }

  remove() {
    clearTimeout(this.late);
    this.stop();
    this.chart.stop();
    this.stopListening();
  }
}

// ---- a bar for each token, the whole model's as an outline; hover, or arrow keys, read one
class TokenBars {
  constructor(ablation) {
    this.ablation = ablation;
    this.node = make("div", "course-ablation-chart");
    const head = this.drawLegend();
    this.plot = make("div", "course-ablation-plot", {
      role: "listbox",
      tabindex: 0,
      "aria-label": "loss of each token",
    });
    const side = make("div", "course-ablation-side", { "aria-hidden": "true" });
    this.highest = make("span");
    this.guess = make("div", "course-ablation-guess", { "aria-hidden": "true" });
    side.append(this.highest, make("span", "", {}, "0"));
    this.drawBars();
    this.reading = make("div", "course-ablation-reading course-faint");
    const area = make("div", "course-ablation-area");
    const right = make("div", "course-ablation-right");
    right.append(this.plot, this.names);
    if (this.ablation.vocabulary) right.append(this.guess);
    area.append(side, right);
    this.node.append(head, area, this.reading);
    this.fitNames();
    this.bindPointerAndKeys();
  }

  drawLegend() {
    const head = make("div", "course-legend course-ablation-legend", { "aria-hidden": "true" });
    for (const [mark, text] of [
      ["here", "loss with these heads"],
      ["before", "not counted in the mean"],
      ["whole", "whole model"],
      ["kept", "A, kept"],
      ["guess", `uniform guess, log ${this.ablation.vocabulary} = ${Math.log(this.ablation.vocabulary).toFixed(2)}`],
    ]) {
      if ((mark === "before" && this.ablation.from === 1) || (mark === "guess" && !this.ablation.vocabulary)) continue;
      const item = make("span");
      item.append(make("i", "", { "data-mark": mark }), text);
      head.append(item);
    }
    return head;
  }

  drawBars() {
    this.names = make("div", "course-ablation-names", { "aria-hidden": "true" });
    this.bars = this.ablation.tokens.slice(1).map((token, i) => {
      const place = i + 1;
      const column = make("div", "course-ablation-column", {
        role: "option",
        id: `${this.ablation.uid}-${place}`,
        "aria-selected": "false",
        "data-place": place,
      });
      const bar = make("div", "course-ablation-bar", { "data-mark": place < this.ablation.from ? "before" : "here" });
      const whole = make("div", "course-ablation-whole");
      const keptMark = make("div", "course-ablation-keptmark");
      column.append(bar, whole, keptMark);
      this.plot.append(column);
      const name = make("span", "", {}, token.length > 8 ? `${token.slice(0, 7)}…` : token);
      this.names.append(name);
      return { column, bar, whole, keptMark, name };
    });
  }

  // Names that are too wide for their bars are turned; where even that is too wide, some are left out.
  fitNames() {
    // Names that are too wide for their bars are turned; where even that is too wide, some are left out.
    const longest = Math.max(...this.ablation.tokens.map((token) => Math.min(8, token.length)));
    this.fit = new ResizeObserver(() => {
      const room = this.names.clientWidth / (this.ablation.T - 1);
      const turned = longest * 7.5 > room;
      this.names.classList.toggle("course-ablation-turned", turned);
      this.bars.forEach(({ name }, i) => {
        name.style.visibility = turned && i % Math.ceil(13 / room) ? "hidden" : "";
      });
    });
    this.fit.observe(this.names);
  }

  bindPointerAndKeys() {
    this.plot.addEventListener("pointermove", (event) => {
      const column = event.target.closest(".course-ablation-column");
      this.ablation.hover = column ? +column.dataset.place : null;
      this.read();
    });
    this.plot.addEventListener("pointerleave", () => {
      this.ablation.hover = null;
      this.read();
    });
    this.plot.addEventListener("focus", () => {
      this.ablation.focused = true;
      this.read();
    });
    this.plot.addEventListener("blur", () => {
      this.ablation.focused = false;
      this.read();
    });
    this.plot.addEventListener("keydown", (event) => {
      if (passes(event)) return;
      const target = {
        ArrowRight: this.ablation.at + 1,
        ArrowDown: this.ablation.at + 1,
        ArrowLeft: this.ablation.at - 1,
        ArrowUp: this.ablation.at - 1,
        Home: 1,
        End: this.ablation.T - 1,
        PageDown: this.ablation.at + 8,
        PageUp: this.ablation.at - 8,
      }[event.key];
      keepKey(event);
      if (target === undefined) return;
      this.ablation.at = Math.max(1, Math.min(this.ablation.T - 1, target));
      this.ablation.hover = null;
      this.read();
    });
  }

  read() {
    const place = this.ablation.hover ?? (this.ablation.focused ? this.ablation.at : null);
    this.plot.setAttribute("aria-activedescendant", `${this.ablation.uid}-${this.ablation.at}`);
    this.bars.forEach(({ column }, i) => {
      column.setAttribute("aria-selected", i + 1 === this.ablation.at);
      column.classList.toggle("course-ablation-shown", i + 1 === place);
    });
    this.reading.textContent =
      place === null
        ? "Switch a head off, or point at or tap a bar to read it; in the chart arrow keys do that."
        : this.ablation.sentence(place);
  }

  stop() {
    this.fit.disconnect();
  }

  show({ losses, whole, top }) {
    this.highest.textContent = `${top} nats`;
    this.guess.style.bottom = `${(100 * Math.log(this.ablation.vocabulary || 1)) / top}%`;
    this.bars.forEach((bar, i) => {
      bar.bar.style.transform = `scaleY(${(losses[i] ?? 0) / top})`;
      const there = this.ablation.model.get("_kept")?.losses[i] ?? null;
      bar.keptMark.hidden = there === null;
      bar.keptMark.style.bottom = `${100 * Math.min(1, (there ?? 0) / top)}%`;
      bar.whole.hidden = whole[i] === null;
      bar.whole.style.height = `${(100 * (whole[i] ?? 0)) / top}%`;
      bar.column.setAttribute("aria-label", this.ablation.sentence(i + 1));
    });
    this.read();
  }
}

function render(options) {
  const ablation = new AblationView(options);
  return () => ablation.remove();
}

export default { render };
