// A query to drag; scores, weights and output are computed here, so dragging needs no kernel.

import { barsSlider, keepSliderKeys, softmax } from "../shared/bars.js";
import { keepKey, keepKeys, listen, make, makeRoot, minus, newId, presses } from "../shared/dom.js";

const SIDE = 300;
const PATH = 40;
const TAP = 12; // a path's steps; how far a finger may slip
const EDGE = 0.94; // where the tip of a query stands that leads beyond: its ring is still in the plane
const PATIENCE = 600;
const WAIT = 1500; // milliseconds: until what changed is said, and for an answer from Python
const TURNS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const HELP =
  "Drag the tip of the query, tap where it shall point, or move it with arrow keys; + and − change its length alone.";
const UNANSWERED = "has not answered for this query: that needs Python, in JupyterLab.";
const PATH_NOTE = "The dashed path is where the output goes as the query grows in its direction, from length 0 on.";

function render({ model, el }) {
  const scene = model.get("_scene");
  const { keys, values, names, most } = scene;
  const { queries, outputs } = scene;
  const reach = queries.reach;
  const uid = newId("course-plane");
  const root = makeRoot(model, "course-bars course-plane", { role: "group", "aria-label": "a query among keys" });

  // ---- arithmetic
  const scored = (query) => keys.map((key) => (key[0] * query[0] + key[1] * query[1]) / Math.SQRT2);
  const blend = (weights) =>
    [0, 1].map((axis) => weights.reduce((sum, weight, i) => sum + weight * values[i][axis], 0));
  const longest = Math.max(...keys.map((key) => Math.hypot(...key)));
  const largest = (longest * reach) / Math.SQRT2 || 1; // fills a bar: the score of the longest key, at the plane's edge
  let angle = 0; // of the query; a query of length 0 keeps the last one
  const digits = Math.min(100, 12 - Math.floor(Math.log10(reach)));
  const clean = (query) => query.map((part) => Number(part.toFixed(digits)));
  const polar = (length) => clean([length * Math.cos(angle), length * Math.sin(angle)]);
  const now = () => model.get("query");

  function put(query) {
    const length = Math.hypot(...query);
    const fits = length > most ? query.map((part) => (part * most) / length) : query;
    model.set(
      "query",
      fits.map((part) => part + 0),
    );
    model.save_changes();
  }
  const stretch = (length) => put(polar(Math.max(0, Math.min(most, length))));

  // ---- what stands there
  const problem = make("div", "course-plane-problem", { role: "alert" });
  const length = barsSlider({
    name: "length of the query",
    last: 200,
    onInput: (at) => stretch((at * most) / 200),
    ticks: [0, 1, 2, 3, 4].map((part) => [50 * part, round((part * most) / 4)]),
  });
  const turn = barsSlider({
    name: "direction",
    last: 360,
    onInput: (at) => {
      angle = ((at - 180) * Math.PI) / 180;
      stretch(Math.hypot(...now()));
    },
    ticks: [0, 90, 180, 270, 360].map((at) => [at, minus(`${at - 180}°`)]),
  });
  const sliders = make("div", "course-plane-sliders");
  const presets = make("div", "course-plane-presets");
  sliders.append(length.node, turn.node);
  const button = (text, act) => {
    const node = make("button", "", { type: "button" }, text);
    node.addEventListener("click", () => {
      if (node.getAttribute("aria-disabled") !== "true") act();
    });
    presets.append(node);
    return node;
  };
  const half = button("half as long", () => stretch(Math.hypot(...now()) / 2));
  const twice = button("twice as long", () => stretch(Math.hypot(...now()) * 2));
  const zero = button("zero", () => put([0, 0]));
  const again = button("as at first", () => put([...scene.start]));

  const left = plane(queries, "course-plane-queries");
  const right = plane(outputs, "course-plane-outputs");
  const arrows = keys.map((key) => arrow("key", key));
  const shaft = arrow("query", [0, 0]);
  const handle = draw("g", "course-plane-handle", {
    tabindex: 0,
    role: "slider",
    "aria-label": "query",
    "aria-roledescription": "point of a plane",
    "aria-valuemin": 0,
    "aria-valuemax": most,
  });
  const frame = draw("clipPath", "", { id: uid });
  const clipped = draw("g", "", { "clip-path": `url(#${uid})` });
  const halo = draw("circle", "course-plane-halo", { r: 24 });
  const ring = draw("circle", "", { r: 7 });
  frame.append(draw("rect", "", { width: SIDE, height: SIDE }));
  clipped.append(halo);
  handle.append(clipped, ring);
  const head = make("div", "course-plane-said");
  left.svg.append(frame, shaft.node, handle, ...arrows.map(({ node }) => node), ...labels(queries)); // a key shows on a query along it
  left.node.prepend(title("query and keys"), head);

  const hull = draw("polygon", "course-plane-hull", { points: outputs.hull.map((point) => point.join(",")).join(" ") });
  const springs = values.map(() => draw("line", "course-plane-spring"));
  const path = draw("polyline", "course-plane-path");
  const dots = values.map((value) => at(draw("circle", "course-plane-value", { r: 5 }), outputs, value));
  const theirs = draw("path", "course-plane-ring", { d: "M0 -10L10 0L0 10L-10 0Z" });
  const output = draw("circle", "course-plane-output", { r: 7 });
  const lands = make("div", "course-plane-said");
  right.svg.append(hull, ...springs, path, ...dots, ...labels(outputs), output, theirs);
  right.node.prepend(title("values and output"), lands);

  const table = make("table", "course-plane-table", { "aria-label": "scores and weights" });
  const heads = table.createTHead().insertRow();
  for (const [text, name] of [
    ["key", "name"],
    ["score", "score"],
    ["weight", "weight"],
  ]) {
    heads.append(make("th", `course-plane-${name}`, { scope: "col" }, text));
  }
  const body = table.createTBody();
  const rows = names.map((name, i) => {
    const row = body.insertRow();
    const first = make("th", "course-plane-name", { scope: "row" });
    const towards = make(
      "button",
      "",
      { type: "button", title: `turn the query towards ${name}`, "aria-label": `${name}: turn the query towards it` },
      name,
    );
    towards.addEventListener("click", () => {
      if (!Math.hypot(...keys[i])) return;
      angle = Math.atan2(keys[i][1], keys[i][0]);
      stretch(Math.hypot(...now()) || longest);
    });
    towards.setAttribute("aria-disabled", !Math.hypot(...keys[i]));
    first.append(towards);
    const score = make("td", "course-plane-score");
    const cell = make("td", "course-plane-weight");
    const line = make("div", "course-plane-line");
    const bar = make("div", "course-plane-bar");
    const tick = make("div", "course-plane-tick");
    const number = make("span", "course-plane-number");
    const scale = make("div", "course-plane-scale");
    const lean = make("div", "course-plane-lean");
    const digits = make("span", "course-plane-digits");
    scale.append(lean);
    score.append(digits, scale);
    line.append(bar, tick);
    cell.append(number, line);
    row.append(first, score, cell);
    return { row, digits, lean, bar, tick, number };
  });
  const middle = make("div", "course-plane-middle");
  const told = make("div", "course-told course-plane-told");
  const compared = make("div", "course-plane-compared");
  middle.append(title("scores q·k/√2, weights"), table);
  const columns = make("div", "course-plane-columns");
  columns.append(left.node, middle, right.node);
  const live = make("div", "course-live", { role: "status" });
  compared.hidden = !scene.function;
  root.append(
    problem,
    columns,
    told,
    compared,
    sliders,
    presets,
    make("div", "course-faint course-bars-note", {}, `${HELP} ${PATH_NOTE}`),
    live,
  );
  el.append(root);

  function title(text) {
    return make("div", "course-title course-plane-title", {}, text);
  }
  function plane(frame, name) {
    const node = make("div", name);
    const svg = draw("svg", "course-plane-plot", { viewBox: `0 0 ${SIDE} ${SIDE}` });
    for (const [axis, ticks] of frame.ticks.entries()) {
      for (const [value, text] of ticks) {
        const [x, y] = placed(frame, axis ? [frame.low[0], value] : [value, frame.low[1]]);
        svg.append(
          draw(
            "line",
            "course-plane-grid",
            axis ? { x1: 0, x2: SIDE, y1: y, y2: y } : { x1: x, x2: x, y1: 0, y2: SIDE },
          ),
          draw(
            "text",
            "course-plane-numbers",
            axis ? { x: 4, y: y + 4 } : { x, y: SIDE - 4, "text-anchor": "middle" },
            text,
          ),
        );
      }
    }
    if (frame === queries) {
      svg.append(draw("path", "course-plane-axes", { d: `M0 ${SIDE / 2}H${SIDE}M${SIDE / 2} 0V${SIDE}` }));
    } else svg.setAttribute("aria-hidden", "true");
    node.append(svg);
    return { node, svg };
  }
  function labels(frame) {
    return names.map((name, i) => {
      const [x, y] = frame.labels[i];
      const shown = name.length > 14 ? `${name.slice(0, 13)}…` : name;
      return draw("text", "course-plane-label", { x, y }, shown);
    });
  }
  function placed(frame, point) {
    return [((point[0] - frame.low[0]) / frame.span) * SIDE, SIDE - ((point[1] - frame.low[1]) / frame.span) * SIDE];
  }
  function at(node, frame, point) {
    node.setAttribute(
      "transform",
      `translate(${placed(frame, point)
        .map((part) => part.toFixed(2))
        .join(" ")})`,
    );
    return node;
  }
  function arrow(role, point) {
    const node = draw("g", `course-plane-${role}`);
    const line = draw("line");
    const tip = draw("path", "", { d: role === "key" ? "M0 0L-11 -5V5Z" : "M2 0L-17 -9V9Z" });
    node.append(line, tip, draw("circle", "", { cx: SIDE / 2, cy: SIDE / 2, r: 3 }));
    const show = (point) => {
      const [x, y] = placed(queries, point);
      const [dx, dy] = [x - SIDE / 2, y - SIDE / 2];
      const size = Math.hypot(dx, dy);
      tip.style.display = line.style.display = size < 1 ? "none" : "";
      if (size < 1) return;
      const short = Math.max(0, size - 9) / size;
      for (const [name, value] of [
        ["x1", SIDE / 2],
        ["y1", SIDE / 2],
        ["x2", SIDE / 2 + dx * short],
        ["y2", SIDE / 2 + dy * short],
      ]) {
        line.setAttribute(name, value.toFixed(2));
      }
      tip.setAttribute(
        "transform",
        `translate(${x.toFixed(2)} ${y.toFixed(2)}) rotate(${((Math.atan2(dy, dx) * 180) / Math.PI).toFixed(2)})`,
      );
    };
    show(point);
    return { node, show };
  }

  // ---- mouse, finger and keys
  let held = null;
  let tap = null;
  const pointed = (event) => {
    const box = left.svg.getBoundingClientRect();
    const part = [
      (event.clientX - box.left - (held?.dx ?? 0)) / box.width,
      1 - (event.clientY - box.top - (held?.dy ?? 0)) / box.height,
    ];
    return part.map((share) =>
      Number(((2 * share - 1) * reach).toFixed(Math.min(100, 4 - Math.floor(Math.log10(reach))))),
    );
  };
  left.svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (!handle.contains(event.target)) {
      tap = event.pointerType === "touch" ? [event.clientX, event.clientY] : null;
      if (tap) return; // a finger may be about to scroll: only when it leaves is it known to be a tap
      held = { id: event.pointerId };
      put(pointed(event));
    } else {
      const box = ring.getBoundingClientRect();
      held = {
        id: event.pointerId,
        dx: event.clientX - box.left - box.width / 2,
        dy: event.clientY - box.top - box.height / 2,
      };
    }
    event.preventDefault();
    handle.focus({ preventScroll: true });
    left.svg.setPointerCapture(event.pointerId);
  });
  left.svg.addEventListener("pointermove", (event) => {
    if (held?.id === event.pointerId) put(pointed(event));
  });
  for (const ended of ["pointerup", "pointercancel", "lostpointercapture"]) {
    left.svg.addEventListener(ended, () => {
      held = null;
    });
  }
  left.svg.addEventListener("pointercancel", () => {
    tap = null;
  });
  left.svg.addEventListener("pointerup", (event) => {
    if (tap && Math.hypot(event.clientX - tap[0], event.clientY - tap[1]) < TAP) put(pointed(event));
    tap = null;
  });
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // or the page scrolls
  handle.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const by = queries.step * (event.shiftKey ? 5 : 1);
    const [x, y] = now();
    const turned = TURNS[event.key];
    const longer = { "+": 1, "=": 1, "-": -1, "−": -1 }[event.key];
    if (turned) put(clean([x + by * turned[0], y + by * turned[1]]));
    else if (longer) stretch(Math.hypot(x, y) + longer * queries.step);
    else return;
    keepKey(event);
  });
  keepSliderKeys(sliders);
  for (const node of [presets, table]) keepKeys(node, presses);

  // ---- all that follows from the query
  function sentence(weights, size) {
    const top = weights.indexOf(Math.max(...weights));
    const name = names[top];
    const share = weights[top];
    if (!size)
      return "A query of length 0 asks for nothing: all scores are 0, all weights alike, and the output is the mean of the values.";
    if (share >= 0.95) return `Nearly all the weight is on “${name}”: the output sits on its value.`;
    if (Math.max(...weights) - Math.min(...weights) < 0.05)
      return "The weights are nearly alike: the output lies near the mean of the values.";
    const next = weights.findIndex(
      (weight, i) => i !== top && weight === Math.max(...weights.filter((_, j) => j !== top)),
    );
    if (share - weights[next] < 0.05)
      return `“${name}” and “${names[next]}” share the lead: the output is drawn to both of their values.`;
    return `“${name}” has most, ${share.toFixed(2)}: the output leans towards its value and is held back by the others.`;
  }
  // What their function said stays, faint, until it answers for this query; where no answer comes, that is said.
  let unanswered;
  function compare(fresh, answer) {
    compared.classList.toggle("course-plane-stale", !fresh);
    if (!answer || fresh) {
      clearTimeout(unanswered);
      unanswered = null;
    }
    if (fresh) compared.textContent = `◇ ${answer.told}`;
    else if (answer)
      unanswered ??= setTimeout(
        () => {
          compared.textContent = `◇ ${scene.function} ${UNANSWERED}`;
        },
        model.alone ? 0 : WAIT,
      );
  }
  let timer;
  function announce(text) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      live.textContent = text;
    }, PATIENCE);
  }
  function show() {
    const query = now();
    const size = Math.hypot(...query);
    const scores = scored(query);
    const weights = softmax(scores);
    const landed = blend(weights);
    if (size) angle = Math.atan2(query[1], query[0]);
    const outside = Math.max(1, ...query.map((part) => Math.abs(part) / reach));
    const within = outside > 1 ? EDGE / outside : 1;
    const seen = query.map((part) => part * within);
    shaft.show(seen);
    for (const node of [halo, ring]) at(node, queries, seen);
    root.classList.toggle("course-plane-beyond", outside > 1);
    const where = `(${query.map(two).join(", ")})`;
    head.textContent = `q = ${where}, length ${two(size)}${outside > 1 ? ", beyond the edge" : ""}`;
    handle.setAttribute("aria-valuenow", Number(size.toFixed(2)));
    handle.setAttribute("aria-valuetext", `${where}, length ${two(size)}`);
    length.show(Math.round((size / most) * 200), two(size));
    turn.show(Math.round((angle * 180) / Math.PI) + 180, minus(`${Math.round((angle * 180) / Math.PI)}°`));
    for (const node of [half, twice, zero]) node.setAttribute("aria-disabled", !size);
    twice.setAttribute("aria-disabled", !size || size >= most);
    again.setAttribute(
      "aria-disabled",
      query.every((part, i) => part === scene.start[i]),
    );

    const answer = model.get("_theirs");
    const fresh = answer?.query.every((part, i) => Math.abs(part - query[i]) < 1e-9);
    const peak = Math.max(...weights);
    const full = Math.max(largest, ...scores.map(Math.abs)); // beyond the edge the largest
    rows.forEach(({ row, digits, lean, bar, tick, number }, i) => {
      digits.textContent = two(scores[i]);
      digits.classList.toggle("course-plane-below", scores[i] < 0);
      lean.style.transform = `scaleX(${scores[i] / full})`;
      bar.style.transform = `scaleX(${weights[i]})`;
      number.textContent = weights[i].toFixed(2);
      number.dataset.value = weights[i];
      row.classList.toggle("course-plane-largest", weights[i] === peak);
      const given = fresh ? Number(answer.weights[i]) : NaN;
      tick.hidden = !(given >= 0 && given <= 1);
      if (!tick.hidden) tick.style.left = `${100 * given}%`;
      springs[i].setAttribute("stroke-width", (7 * weights[i]).toFixed(2));
    });
    const [x, y] = placed(outputs, landed);
    springs.forEach((spring, i) => {
      const [vx, vy] = placed(outputs, values[i]);
      for (const [name, value] of [
        ["x1", x],
        ["y1", y],
        ["x2", vx],
        ["y2", vy],
      ])
        spring.setAttribute(name, value.toFixed(2));
    });
    at(output, outputs, landed);
    const steps = Array.from({ length: PATH + 1 }, (_, i) =>
      placed(outputs, blend(softmax(scored(polar(most * (i / PATH) ** 2))))),
    );
    path.setAttribute("points", steps.map((step) => step.map((part) => part.toFixed(1)).join(",")).join(" "));
    lands.textContent = `output = (${landed.map(two).join(", ")})`;
    const mark = fresh ? answer.output.map(Number) : [];
    theirs.style.display = fresh && mark.every(Number.isFinite) ? "" : "none";
    if (fresh && mark.every(Number.isFinite)) at(theirs, outputs, mark);
    told.textContent = sentence(weights, size);
    compare(fresh, answer);
    announce(
      `${told.textContent} Weights: ${names.map((name, i) => `${name} ${weights[i].toFixed(2)}`).join(", ")}. Output ${landed.map(two).join(", ")}. ${fresh ? answer.told : ""}`,
    );
  }
  function showProblem() {
    problem.textContent = model.get("problem");
    problem.hidden = !model.get("problem");
  }
  const stopListening = listen(model, { query: show, _theirs: show, problem: showProblem });
  showProblem();
  show();
  return () => {
    clearTimeout(timer);
    clearTimeout(unanswered);
    stopListening();
  };
}

const round = (value) => minus(String(Number(value.toPrecision(3))));
const two = (value) => minus((Math.abs(value) < 0.005 ? 0 : value).toFixed(2));
const draw = (tag, name, attributes = {}, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (name) node.setAttribute("class", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};

export default { render };
