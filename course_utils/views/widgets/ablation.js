// Switches heads at once; the losses come from ablation.py, which runs the model, one round trip later.

import { keepKey, keepKeys, listen, make, makeRoot, makeScroll, minus, newId } from "../shared/dom.js";
import { headName, headTable, passes } from "../shared/heads.js";
import { answerAblation } from "./ablation_alone.js";

const WAITS = "waiting for Python, which answers while the kernel runs";

function render({ model, el }) {
  const tokens = model.get("_tokens");
  const { layers, heads, from, alone, vocabulary } = model.get("_layout");
  const T = tokens.length;
  const uid = newId("course-ablation");
  const root = makeRoot(model, "course-heads-root course-ablation", {
    role: "group",
    "aria-labelledby": `${uid}-title`,
  });
  const title = make("div", "course-title course-heads-title", { id: `${uid}-title` }, model.get("title"));
  const places = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
  const places_off = () => new Set(model.get("off").map(([l, h]) => l * heads + h));
  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let late = null;
  let unknown = "";
  let at = from; // at: the token that the arrow keys have come to
  let hover = null;
  let focused = false;

  const switches = headSwitches();
  const buttons = make("div", "course-ablation-buttons");
  for (const [text, off] of [
    ["all on", []],
    ["all off", places],
  ])
    addButton(text, () => set("off", off));
  if (alone) addButton("each alone", () => set("_asked", model.get("_asked") + 1));
  addButton("keep as A", () => {
    const { off, losses, means } = model.get("_result");
    if (means[0] !== null) set("_kept", { off, losses, means });
  });
  const forget = addButton("forget A", () => set("_kept", null));
  const chooser = make("div", "course-ablation-chooser");
  const scroll = makeScroll("course-heads-scroll");
  scroll.append(switches.node);
  chooser.append(scroll, buttons);
  const told = make("div", "course-told course-ablation-told", { role: "status" });
  const waits = make("div", "course-faint course-ablation-waits", { "aria-live": "polite" });
  const against = make("div", "course-ablation-against", { "aria-live": "polite" });
  const means = meanBars();
  const chart = tokenBars();
  root.append(title, chooser, means.node, chart.node, against, waits, told); // what changes its height: last
  el.append(root);

  function addButton(text, press) {
    const button = make("button", "course-ablation-button", { type: "button" }, text);
    button.addEventListener("click", press);
    keepKeys(button, (event) => !passes(event));
    buttons.append(button);
    return button;
  }

  // ---- a switch for each head
  function headSwitches() {
    const rises = [];
    const { node, buttons } = headTable({
      layers,
      heads,
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
        const place = l * heads + h;
        const off = places_off();
        if (!off.delete(place)) off.add(place);
        set(
          "off",
          places.filter((_, i) => off.has(i)),
        );
      },
    });
    return {
      node,
      show: () => {
        const off = places_off();
        const known = model.get("_rises");
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
            headName(...places[i]) + (known ? `, loss ${known[i]} when it alone is off` : ""),
          );
        });
      },
    };
  }

  // ---- the mean of these heads above that of the whole model
  function meanBars() {
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
          const kept = model.get("_kept");
          const mean = i < 2 ? means[i] : kept ? kept.means[0] : null;
          row.classList.toggle("course-ablation-unkept", i === 2 && !kept);
          bar.style.transform = `scaleX(${(mean ?? 0) / top})`;
          value.textContent = mean === null ? "–" : mean.toFixed(2);
          value.dataset.value = mean ?? "";
        }),
    };
  }

  // ---- a bar for each token, the whole model's as an outline; hover, or arrow keys, read one
  function tokenBars() {
    const node = make("div", "course-ablation-chart");
    const head = make("div", "course-legend course-ablation-legend", { "aria-hidden": "true" });
    for (const [mark, text] of [
      ["here", "loss with these heads"],
      ["before", "not counted in the mean"],
      ["whole", "whole model"],
      ["kept", "A, kept"],
      ["guess", `uniform guess, log ${vocabulary} = ${Math.log(vocabulary).toFixed(2)}`],
    ]) {
      if ((mark === "before" && from === 1) || (mark === "guess" && !vocabulary)) continue;
      const item = make("span");
      item.append(make("i", "", { "data-mark": mark }), text);
      head.append(item);
    }
    const plot = make("div", "course-ablation-plot", {
      role: "listbox",
      tabindex: 0,
      "aria-label": "loss of each token",
    });
    const side = make("div", "course-ablation-side", { "aria-hidden": "true" });
    const highest = make("span");
    const guess = make("div", "course-ablation-guess", { "aria-hidden": "true" });
    side.append(highest, make("span", "", {}, "0"));
    const names = make("div", "course-ablation-names", { "aria-hidden": "true" });
    const bars = tokens.slice(1).map((token, i) => {
      const place = i + 1;
      const column = make("div", "course-ablation-column", {
        role: "option",
        id: `${uid}-${place}`,
        "aria-selected": "false",
        "data-place": place,
      });
      const bar = make("div", "course-ablation-bar", { "data-mark": place < from ? "before" : "here" });
      const whole = make("div", "course-ablation-whole");
      const keptMark = make("div", "course-ablation-keptmark");
      column.append(bar, whole, keptMark);
      plot.append(column);
      const name = make("span", "", {}, token.length > 8 ? `${token.slice(0, 7)}…` : token);
      names.append(name);
      return { column, bar, whole, keptMark, name };
    });
    const reading = make("div", "course-ablation-reading course-faint");
    const area = make("div", "course-ablation-area");
    const right = make("div", "course-ablation-right");
    right.append(plot, names);
    if (vocabulary) right.append(guess);
    area.append(side, right);
    node.append(head, area, reading);
    // Names that are too wide for their bars are turned; where even that is too wide, some are left out.
    const longest = Math.max(...tokens.map((token) => Math.min(8, token.length)));
    const fit = new ResizeObserver(() => {
      const room = names.clientWidth / (T - 1);
      const turned = longest * 7.5 > room;
      names.classList.toggle("course-ablation-turned", turned);
      bars.forEach(({ name }, i) => {
        name.style.visibility = turned && i % Math.ceil(13 / room) ? "hidden" : "";
      });
    });
    fit.observe(names);

    plot.addEventListener("pointermove", (event) => {
      const column = event.target.closest(".course-ablation-column");
      hover = column ? +column.dataset.place : null;
      read();
    });
    plot.addEventListener("pointerleave", () => {
      hover = null;
      read();
    });
    plot.addEventListener("focus", () => {
      focused = true;
      read();
    });
    plot.addEventListener("blur", () => {
      focused = false;
      read();
    });
    plot.addEventListener("keydown", (event) => {
      if (passes(event)) return;
      const target = {
        ArrowRight: at + 1,
        ArrowDown: at + 1,
        ArrowLeft: at - 1,
        ArrowUp: at - 1,
        Home: 1,
        End: T - 1,
        PageDown: at + 8,
        PageUp: at - 8,
      }[event.key];
      keepKey(event);
      if (target === undefined) return;
      at = Math.max(1, Math.min(T - 1, target));
      hover = null;
      read();
    });
    function read() {
      const place = hover ?? (focused ? at : null);
      plot.setAttribute("aria-activedescendant", `${uid}-${at}`);
      bars.forEach(({ column }, i) => {
        column.setAttribute("aria-selected", i + 1 === at);
        column.classList.toggle("course-ablation-shown", i + 1 === place);
      });
      reading.textContent =
        place === null
          ? "Switch a head off, or point at or tap a bar to read it; in the chart arrow keys do that."
          : sentence(place);
    }
    return {
      node,
      stop: () => fit.disconnect(),
      show: ({ losses, whole, top }) => {
        highest.textContent = `${top} nats`;
        guess.style.bottom = `${(100 * Math.log(vocabulary || 1)) / top}%`;
        bars.forEach((bar, i) => {
          bar.bar.style.transform = `scaleY(${(losses[i] ?? 0) / top})`;
          const there = model.get("_kept")?.losses[i] ?? null;
          bar.keptMark.hidden = there === null;
          bar.keptMark.style.bottom = `${100 * Math.min(1, (there ?? 0) / top)}%`;
          bar.whole.hidden = whole[i] === null;
          bar.whole.style.height = `${(100 * (whole[i] ?? 0)) / top}%`;
          bar.column.setAttribute("aria-label", sentence(i + 1));
        });
        read();
      },
    };
  }
  function sentence(place) {
    const { losses, whole } = model.get("_result");
    const said = (value) => (value === null ? "not known" : `${value.toFixed(2)} nats`);
    const counted = place < from ? ", not counted" : "";
    const kept = model.get("_kept");
    const there = kept ? `, A ${said(kept.losses[place - 1])}` : "";
    return `token ${place} “${tokens[place]}”: ${said(losses[place - 1])}, whole model ${said(whole[place - 1])}${there}${counted}`;
  }

  // Losses of other heads than those switched, and a question that nobody answers, are said to be so, after a moment in
  // which an answer usually arrives.
  function showLate() {
    const lateLosses = () => JSON.stringify(model.get("_result").off) !== JSON.stringify(model.get("off"));
    const lateRises = () => model.get("_asked") !== model.get("_answered");
    const mark = () => {
      root.classList.toggle("course-ablation-late", lateLosses());
      waits.textContent = lateLosses() ? `of the heads before; ${WAITS}` : lateRises() ? `each alone: ${WAITS}` : "";
    };
    clearTimeout(late);
    if (model.alone) {
      // what is not known will not come
      root.classList.toggle("course-ablation-late", lateLosses());
      waits.textContent = lateLosses() ? `of the heads before; ${unknown}` : "";
    } else if (lateLosses() || lateRises()) late = setTimeout(mark, 400);
    else mark();
  }
  // The setting that was kept, and how far the present one is from it.
  function showKept() {
    const kept = model.get("_kept");
    const mean = model.get("_result").means[0];
    root.classList.toggle("course-ablation-compares", Boolean(kept));
    forget.disabled = !kept;
    const off = kept?.off.map(([l, h]) => headName(l, h)).join("; ") || "no head";
    const rise = kept && mean !== null ? mean - kept.means[0] : null;
    against.textContent = !kept
      ? ""
      : `A: ${off} off, ${kept.means[0].toFixed(2)} nats. ` +
        (rise === null
          ? ""
          : `Now ${minus((rise >= 0.005 ? "+" : "") + (Math.abs(rise) < 0.005 ? "0.00" : rise.toFixed(2)))} against A.`);
  }
  const showSwitches = () => {
    switches.show();
    showLate();
  };
  const showResult = () => {
    const result = model.get("_result");
    if (told.textContent !== result.line) told.textContent = result.line;
    told.classList.toggle("course-ablation-problem", Boolean(result.problem));
    means.show(result);
    chart.show(result);
    showKept();
    showLate();
  };
  const heard = {
    off: showSwitches,
    _rises: showSwitches,
    _asked: showLate,
    _answered: showLate,
    _result: showResult,
    _kept: showResult,
    title: () => {
      title.textContent = model.get("title");
    },
  };
  const stop = model.alone
    ? answerAblation(model, heads, (text) => {
        unknown = text;
      })
    : () => {};
  showSwitches();
  showResult();
  const stopListening = listen(model, heard);
  return () => {
    clearTimeout(late);
    stop();
    chart.stop();
    stopListening();
  };
}

export default { render };
