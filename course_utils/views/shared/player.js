// Shared by the widgets that walk through frames: buttons, a slider, a clock that plays, and keys. The trait is `step`,
// and the page counts it from `first`. Where `opening()`, nobody has moved yet, and play begins at the first frame.

import { make, typeset } from "./dom.js";

export function makePlayer(model, name, unit, first = 0, opening = () => false) {
  const node = make("div", "course-player", { role: "group", "aria-label": name });
  const button = (text, label, act) => {
    const made = make("button", "", { type: "button", "aria-label": label }, text);
    made.addEventListener("click", () => {
      if (made.getAttribute("aria-disabled") !== "true") act();
    });
    node.append(made);
    return made;
  };
  let last = 0;
  let clock = null;
  const reset = button("reset", "reset", () => walk(-Infinity));
  const back = button("← back", "back", () => walk(-1));
  const play = button("▶ play", "play", () => (clock ? stop() : start()));
  const next = button("step →", "step", () => walk(1));
  const label = make("label", "course-player-slider");
  const place = make("span", "course-player-place");
  const slider = make("input", "", { type: "range", min: 0, step: 1 });
  slider.addEventListener("input", () => {
    stop();
    go(+slider.value);
  });
  label.append(make("span", "", {}, unit), slider);
  node.append(label, place);

  function go(step) {
    const target = Math.max(0, Math.min(last, step));
    if (target === model.get("step")) return;
    model.set("step", target);
    model.save_changes();
  }
  function walk(by) {
    stop();
    go(model.get("step") + by);
  }
  function start() {
    if (opening() || model.get("step") >= last) go(0);
    clock = setInterval(
      () => {
        if (!node.isConnected) return stop();
        go(model.get("step") + 1);
        if (model.get("step") >= last) stop();
      },
      Math.max(150, Math.min(1000, 30000 / last)),
    );
    showPlay();
  }
  function stop() {
    clearInterval(clock);
    clock = null;
    showPlay();
  }
  function showPlay() {
    play.textContent = clock ? "❚❚ pause" : "▶ play";
    play.setAttribute("aria-label", clock ? "pause" : "play");
  }

  // Arrows step, Space plays. What a button, menu, box or slider does with its own keys, it keeps.
  function keys(root) {
    root.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const { key, target } = event;
      const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
      const arrow = /^(Arrow|Home|End|Page)/.test(key);
      const owns = ["SELECT", "INPUT"].includes(target.tagName);
      if (!arrow && key !== " " && key !== "Enter") return;
      event.stopPropagation(); // JupyterLab binds these keys to its cells
      const free = target === slider || !(owns || target.tagName === "BUTTON");
      if (key === " " && free) play.click();
      else if (key in moves && !owns) walk(moves[key]);
      else return;
      event.preventDefault();
    });
  }

  return {
    node,
    keys,
    stop,
    go: (step) => {
      stop();
      go(step);
    },
    focus: () => slider.focus({ preventScroll: true }),
    show: (step, end) => {
      last = end;
      if (+slider.max !== last) slider.max = last;
      if (+slider.value !== step) slider.value = step;
      const text = `${step + first} of ${last + first}`;
      slider.setAttribute("aria-valuetext", text);
      place.textContent = text;
      for (const at of [reset, back]) at.setAttribute("aria-disabled", step === 0);
      next.setAttribute("aria-disabled", step === last);
    },
  };
}

// Says in `place` that a walk of other settings than the chosen ones is still shown, after a moment in which the new one
// usually arrives. named: of its settings, what they are called.
export function makeLate(model, place, named) {
  let late = null;
  return {
    stop: () => clearTimeout(late),
    show: (settings) => {
      const is = () => Object.entries(settings).some(([name, value]) => model.get(name) !== value);
      clearTimeout(late);
      if (!is()) place.textContent = "";
      else
        late = setTimeout(() => {
          if (is()) place.textContent = `waiting for Python; still shown: ${named(settings)}`;
        }, 400);
    },
  };
}

// A line of text that changes with the step. The longest of them all, unseen, keeps its room, so that nothing moves.
export function makeTold(name, show = (node, text) => node.replaceChildren(...typeset(text))) {
  const node = make("div", `course-player-told ${name}`);
  const room = make("div", "course-player-room", { "aria-hidden": "true" });
  const seen = make("div", "", { role: "status" });
  let shown;
  node.append(room, seen);
  return {
    node,
    seen,
    rooms: (all) =>
      show(
        room,
        all.reduce((a, b) => (String(b).length > String(a).length ? b : a), ""),
      ),
    show: (text) => {
      if (shown === String(text)) return;
      shown = String(text);
      show(seen, text);
    },
  };
}
