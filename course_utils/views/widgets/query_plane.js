// A query to drag; scores, weights and output are computed here, so dragging needs no kernel.

import { barsSlider, keepSliderKeys, softmax } from "../shared/bars.js";
import { keepKey, keepKeys, listen, make, makeRoot, minus, newId, presses, setTraits } from "../shared/dom.js";
import { makeSvg } from "../shared/svg.js";

const SIDE = 300;
const PATH = 40; // steps of a path
const TAP = 12; // how far a finger may slip
const EDGE = 0.94; // where the tip of a query stands that leads beyond: its ring is still in the plane
const PATIENCE = 600; // milliseconds until what changed is said
const WAIT = 1500; // milliseconds to wait for an answer from Python
const TURNS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const HELP =
  "Drag the tip of the query, tap where it should point, or move it with arrow keys; + and − change its length alone.";
const UNANSWERED = "has not answered for this query: that needs Python, in JupyterLab.";
const PATH_NOTE =
  "The heavier a value's weight, the thicker its line. The dashed arrow is where the output goes as the query grows.";

class QueryPlaneView {
  unanswered;
  timer;
  constructor({ model, el }) {
    this.model = model;
    this.scene = model.get("_scene");
    this.keys = this.scene.keys;
    this.values = this.scene.values;
    this.names = this.scene.names;
    this.most = this.scene.most;
    this.queries = this.scene.queries;
    this.outputs = this.scene.outputs;
    this.reach = this.queries.reach;
    this.uid = newId("course-plane");
    this.root = makeRoot(model, "course-bars course-plane", { role: "group", "aria-label": "a query among keys" });
    this.longest = Math.max(...this.keys.map((key) => Math.hypot(...key)));
    // fills a bar: the score of the longest key, at the plane's edge
    this.largest = (this.longest * this.reach) / Math.SQRT2 || 1;
    this.angle = 0; // of the query; a query of length 0 keeps the last one
    this.digits = Math.min(100, 12 - Math.floor(Math.log10(this.reach)));

    this.problem = make("div", "course-plane-problem", { role: "alert" });
    this.drawSliders();
    this.drawQueries();
    this.drawOutputs();
    this.drawTable();
    this.layOut();
    el.append(this.root);
    this.bindPointer();
    this.bindKeys();
    this.stopListening = listen(model, {
      query: () => this.show(),
      _theirs: () => this.show(),
      problem: () => this.showProblem(),
    });
    this.showProblem();
    this.show();
  }

  drawSliders() {
    this.length = barsSlider({
      name: "length of the query",
      last: 200,
      onInput: (at) => this.stretch((at * this.most) / 200),
      ticks: [0, 1, 2, 3, 4].map((part) => [50 * part, round((part * this.most) / 4)]),
    });
    this.turn = barsSlider({
      name: "direction",
      last: 360,
      onInput: (at) => {
        this.angle = ((at - 180) * Math.PI) / 180;
        this.stretch(Math.hypot(...this.now()));
      },
      ticks: [0, 90, 180, 270, 360].map((at) => [at, minus(`${at - 180}°`)]),
    });
    this.sliders = make("div", "course-plane-sliders");
    this.presets = make("div", "course-plane-presets");
    this.sliders.append(this.length.node, this.turn.node);
    this.half = this.button("half as long", () => this.stretch(Math.hypot(...this.now()) / 2));
    this.twice = this.button("twice as long", () => this.stretch(Math.hypot(...this.now()) * 2));
    this.zero = this.button("zero", () => this.put([0, 0]));
    this.again = this.button("as at first", () => this.put([...this.scene.start]));
  }

  drawQueries() {
    this.left = this.plane(this.queries, "course-plane-queries");
    this.right = this.plane(this.outputs, "course-plane-outputs");
    const arrows = this.keys.map((key) => this.arrow("key", key));
    this.shaft = this.arrow("query", [0, 0]);
    this.handle = makeSvg("g", "course-plane-handle", {
      tabindex: 0,
      role: "slider",
      "aria-label": "query",
      "aria-roledescription": "point of a plane",
      "aria-valuemin": 0,
      "aria-valuemax": this.most,
    });
    const frame = makeSvg("clipPath", "", { id: this.uid });
    const clipped = makeSvg("g", "", { "clip-path": `url(#${this.uid})` });
    this.halo = makeSvg("circle", "course-plane-halo", { r: 24 });
    this.ring = makeSvg("circle", "", { r: 7 });
    frame.append(makeSvg("rect", "", { width: SIDE, height: SIDE }));
    clipped.append(this.halo);
    this.handle.append(clipped, this.ring);
    this.head = make("div", "course-plane-said");
    this.left.svg.append(
      frame,
      this.shaft.node,
      this.handle,
      ...arrows.map(({ node }) => node),
      ...this.labels(this.queries),
    ); // a key shows on a query along it
    this.left.node.prepend(title("query and keys"), this.head);
  }

  drawOutputs() {
    const hull = makeSvg("polygon", "course-plane-hull", {
      points: this.outputs.hull.map((point) => point.join(",")).join(" "),
    });
    this.springs = this.values.map(() => makeSvg("line", "course-plane-spring"));
    this.path = makeSvg("polyline", "course-plane-path");
    this.tip = makeSvg("path", "course-plane-tip", { d: "M0 0L-10 -5V5Z" }); // of the path
    const dots = this.values.map((value) => at(makeSvg("circle", "course-plane-value", { r: 5 }), this.outputs, value));
    this.theirs = makeSvg("path", "course-plane-ring", { d: "M0 -10L10 0L0 10L-10 0Z" });
    this.output = makeSvg("circle", "course-plane-output", { r: 7 });
    this.lands = make("div", "course-plane-said");
    this.right.svg.append(
      hull,
      ...this.springs,
      this.path,
      ...dots,
      this.tip,
      ...this.labels(this.outputs),
      this.output,
      this.theirs,
    );
    this.right.node.prepend(title("values and output"), this.lands);
  }

  drawTable() {
    this.table = make("table", "course-plane-table", { "aria-label": "scaled scores and weights" });
    const heads = this.table.createTHead().insertRow();
    for (const [text, name] of [
      ["key", "name"],
      ["q·k/√2", "score"],
      ["weight", "weight"],
    ]) {
      heads.append(make("th", `course-plane-${name}`, { scope: "col" }, text));
    }
    const body = this.table.createTBody();
    this.rows = this.names.map((name, i) => {
      const row = body.insertRow();
      const first = make("th", "course-plane-name", { scope: "row" });
      const towards = make(
        "button",
        "",
        { type: "button", title: `turn the query towards ${name}`, "aria-label": `${name}: turn the query towards it` },
        name,
      );
      towards.addEventListener("click", () => {
        if (!Math.hypot(...this.keys[i])) return;
        this.angle = Math.atan2(this.keys[i][1], this.keys[i][0]);
        this.stretch(Math.hypot(...this.now()) || this.longest);
      });
      towards.setAttribute("aria-disabled", !Math.hypot(...this.keys[i]));
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
  }

  layOut() {
    const middle = make("div", "course-plane-middle");
    this.message = make("div", "course-message course-plane-message");
    this.compared = make("div", "course-plane-compared");
    middle.append(title("weights"), this.table);
    const columns = make("div", "course-plane-columns");
    columns.append(this.left.node, middle, this.right.node);
    this.live = make("div", "course-live", { role: "status" });
    this.compared.hidden = !this.scene.function;
    this.root.append(
      this.problem,
      columns,
      this.message,
      this.compared,
      this.sliders,
      this.presets,
      make("div", "course-faint course-bars-note", {}, `${HELP} ${PATH_NOTE}`),
      this.live,
    );
  }

  bindPointer() {
    this.held = null;
    let tap = null;
    this.left.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      if (!this.handle.contains(event.target)) {
        tap = event.pointerType === "touch" ? [event.clientX, event.clientY] : null;
        if (tap) return; // a finger may be about to scroll: only when it leaves is it known to be a tap
        this.held = { id: event.pointerId };
        this.put(this.pointed(event));
      } else {
        const box = this.ring.getBoundingClientRect();
        this.held = {
          id: event.pointerId,
          dx: event.clientX - box.left - box.width / 2,
          dy: event.clientY - box.top - box.height / 2,
        };
      }
      event.preventDefault();
      this.root.classList.add("course-plane-pointed"); // the ring of focus is for those who go by keys
      this.handle.focus({ preventScroll: true });
      this.left.svg.setPointerCapture(event.pointerId);
    });
    this.left.svg.addEventListener("pointermove", (event) => {
      if (this.held?.id === event.pointerId) this.put(this.pointed(event));
    });
    for (const ended of ["pointerup", "pointercancel", "lostpointercapture"]) {
      this.left.svg.addEventListener(ended, () => {
        this.held = null;
      });
    }
    this.left.svg.addEventListener("pointercancel", () => {
      tap = null;
    });
    this.left.svg.addEventListener("pointerup", (event) => {
      if (tap && Math.hypot(event.clientX - tap[0], event.clientY - tap[1]) < TAP) this.put(this.pointed(event));
      tap = null;
    });
  }

  bindKeys() {
    // or the page scrolls
    this.handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    this.root.addEventListener("keydown", () => this.root.classList.remove("course-plane-pointed"));
    this.handle.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const by = this.queries.step * (event.shiftKey ? 5 : 1);
      const [x, y] = this.now();
      const turned = TURNS[event.key];
      const longer = { "+": 1, "=": 1, "-": -1, "−": -1 }[event.key];
      if (turned) this.put(this.clean([x + by * turned[0], y + by * turned[1]]));
      else if (longer) this.stretch(Math.hypot(x, y) + longer * this.queries.step);
      else return;
      keepKey(event);
    });
    keepSliderKeys(this.sliders);
    for (const node of [this.presets, this.table]) keepKeys(node, presses);
  }

  // ---- arithmetic
  scored(query) {
    return this.keys.map((key) => (key[0] * query[0] + key[1] * query[1]) / Math.SQRT2);
  }

  blend(weights) {
    return [0, 1].map((axis) => weights.reduce((sum, weight, i) => sum + weight * this.values[i][axis], 0));
  }

  clean(query) {
    return query.map((part) => Number(part.toFixed(this.digits)));
  }

  polar(length) {
    return this.clean([length * Math.cos(this.angle), length * Math.sin(this.angle)]);
  }

  now() {
    return this.model.get("query");
  }

  put(query) {
    const length = Math.hypot(...query);
    const fits = length > this.most ? query.map((part) => (part * this.most) / length) : query;
    setTraits(this.model, { query: fits.map((part) => part + 0) });
  }

  stretch(length) {
    return this.put(this.polar(Math.max(0, Math.min(this.most, length))));
  }

  button(text, act) {
    const node = make("button", "", { type: "button" }, text);
    node.addEventListener("click", () => {
      if (node.getAttribute("aria-disabled") !== "true") act();
    });
    this.presets.append(node);
    return node;
  }

  plane(frame, name) {
    const node = make("div", name);
    const svg = makeSvg("svg", "course-plane-plot", { viewBox: `0 0 ${SIDE} ${SIDE}` });
    for (const [axis, ticks] of frame.ticks.entries()) {
      for (const [value, text] of ticks) {
        const [x, y] = placed(frame, axis ? [frame.low[0], value] : [value, frame.low[1]]);
        svg.append(
          makeSvg(
            "line",
            "course-plane-grid",
            axis ? { x1: 0, x2: SIDE, y1: y, y2: y } : { x1: x, x2: x, y1: 0, y2: SIDE },
          ),
          makeSvg(
            "text",
            "course-plane-numbers",
            axis ? { x: 4, y: y + 4 } : { x, y: SIDE - 4, "text-anchor": "middle" },
            text,
          ),
        );
      }
    }
    if (frame === this.queries) {
      svg.append(makeSvg("path", "course-plane-axes", { d: `M0 ${SIDE / 2}H${SIDE}M${SIDE / 2} 0V${SIDE}` }));
    } else svg.setAttribute("aria-hidden", "true");
    node.append(svg);
    return { node, svg };
  }

  labels(frame) {
    return this.names.map((name, i) => {
      const [x, y] = frame.labels[i];
      const shown = name.length > 14 ? `${name.slice(0, 13)}…` : name;
      return makeSvg("text", "course-plane-label", { x, y }, shown);
    });
  }

  arrow(role, point) {
    const node = makeSvg("g", `course-plane-${role}`);
    const line = makeSvg("line");
    const tip = makeSvg("path", "", { d: role === "key" ? "M0 0L-11 -5V5Z" : "M2 0L-17 -9V9Z" });
    node.append(line, tip, makeSvg("circle", "", { cx: SIDE / 2, cy: SIDE / 2, r: 3 }));
    const show = (point) => {
      const [x, y] = placed(this.queries, point);
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

  pointed(event) {
    const box = this.left.svg.getBoundingClientRect();
    const part = [
      (event.clientX - box.left - (this.held?.dx ?? 0)) / box.width,
      1 - (event.clientY - box.top - (this.held?.dy ?? 0)) / box.height,
    ];
    return part.map((share) =>
      Number(((2 * share - 1) * this.reach).toFixed(Math.min(100, 4 - Math.floor(Math.log10(this.reach))))),
    );
  }

  // ---- all that follows from the query
  sentence(weights, size) {
    const top = weights.indexOf(Math.max(...weights));
    const name = this.names[top];
    const share = weights[top];
    if (!size)
      return (
        "A query of length 0 asks for nothing: all scores are 0, all weights alike, and the output is the mean " +
        "of the values."
      );
    if (share >= 0.95) return `Nearly all the weight is on “${name}”: the output sits on its value.`;
    if (Math.max(...weights) - Math.min(...weights) < 0.05)
      return "The weights are nearly alike: the output lies near the mean of the values.";
    const next = weights.findIndex(
      (weight, i) => i !== top && weight === Math.max(...weights.filter((_, j) => j !== top)),
    );
    if (share - weights[next] < 0.05)
      return `“${name}” and “${this.names[next]}” share the lead: the output is drawn to both of their values.`;
    const most = `“${name}” has most, ${share.toFixed(2)}`;
    return `${most}: the output leans towards its value, and the other values pull it back.`;
  }

  // What their function said stays, faint, until it answers for this query; where no answer comes, that is said.
  compare(fresh, answer) {
    this.compared.classList.toggle("course-plane-stale", !fresh);
    if (!answer || fresh) {
      clearTimeout(this.unanswered);
      this.unanswered = null;
    }
    if (fresh) this.compared.textContent = `◇ ${answer.message}`;
    else if (answer)
      this.unanswered ??= setTimeout(
        () => {
          this.compared.textContent = `◇ ${this.scene.function} ${UNANSWERED}`;
        },
        this.model.alone ? 0 : WAIT,
      );
  }

  announce(text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.live.textContent = text;
    }, PATIENCE);
  }

  show() {
    const query = this.now();
    const size = Math.hypot(...query);
    const scores = this.scored(query);
    const weights = softmax(scores);
    const landed = this.blend(weights);
    if (size) this.angle = Math.atan2(query[1], query[0]);
    const answer = this.model.get("_theirs");
    const fresh = answer?.query.every((part, i) => Math.abs(part - query[i]) < 1e-9);
    this.showQuery(query, size);
    this.showWeights(scores, weights, fresh ? answer.weights : []);
    this.showOutput(landed, fresh ? answer.output.map(Number) : []);
    this.message.textContent = this.sentence(weights, size);
    this.compare(fresh, answer);
    const shares = this.names.map((name, i) => `${name} ${weights[i].toFixed(2)}`).join(", ");
    const output = landed.map(two).join(", ");
    this.announce(`${this.message.textContent} Weights: ${shares}. Output ${output}. ${fresh ? answer.message : ""}`);
  }

  showQuery(query, size) {
    const outside = Math.max(1, ...query.map((part) => Math.abs(part) / this.reach));
    const within = outside > 1 ? EDGE / outside : 1;
    const seen = query.map((part) => part * within);
    this.shaft.show(seen);
    for (const node of [this.halo, this.ring]) at(node, this.queries, seen);
    this.root.classList.toggle("course-plane-beyond", outside > 1);
    const where = `(${query.map(two).join(", ")})`;
    this.head.textContent = `q = ${where}, length ${two(size)}${outside > 1 ? ", beyond the edge" : ""}`;
    this.handle.setAttribute("aria-valuenow", Number(size.toFixed(2)));
    this.handle.setAttribute("aria-valuetext", `${where}, length ${two(size)}`);
    this.length.show(Math.round((size / this.most) * 200), two(size));
    const degrees = Math.round((this.angle * 180) / Math.PI);
    this.turn.show(degrees + 180, minus(`${degrees}°`));
    for (const node of [this.half, this.twice, this.zero]) node.setAttribute("aria-disabled", !size);
    this.twice.setAttribute("aria-disabled", !size || size >= this.most);
    this.again.setAttribute(
      "aria-disabled",
      query.every((part, i) => part === this.scene.start[i]),
    );
  }

  // theirs: the weights that somebody's function returned for this query, or none.
  showWeights(scores, weights, theirs) {
    const peak = Math.max(...weights);
    const full = Math.max(this.largest, ...scores.map(Math.abs)); // beyond the edge the largest
    this.rows.forEach(({ row, digits, lean, bar, tick, number }, i) => {
      digits.textContent = two(scores[i]);
      lean.style.transform = `scaleX(${scores[i] / full})`;
      bar.style.transform = `scaleX(${weights[i]})`;
      number.textContent = weights[i].toFixed(2);
      number.dataset.value = weights[i];
      row.classList.toggle("course-plane-largest", weights[i] === peak);
      const given = i in theirs ? Number(theirs[i]) : NaN;
      tick.hidden = !(given >= 0 && given <= 1);
      if (!tick.hidden) tick.style.left = `${100 * given}%`;
      this.springs[i].setAttribute("stroke-width", (7 * weights[i]).toFixed(2));
    });
  }

  // theirs: the output that somebody's function returned for this query, or nothing.
  showOutput(landed, theirs) {
    const [x, y] = placed(this.outputs, landed);
    this.springs.forEach((spring, i) => {
      const [vx, vy] = placed(this.outputs, this.values[i]);
      for (const [name, value] of [
        ["x1", x],
        ["y1", y],
        ["x2", vx],
        ["y2", vy],
      ])
        spring.setAttribute(name, value.toFixed(2));
    });
    at(this.output, this.outputs, landed);
    const steps = Array.from({ length: PATH + 1 }, (_, i) =>
      placed(this.outputs, this.blend(softmax(this.scored(this.polar(this.most * (i / PATH) ** 2))))),
    );
    this.path.setAttribute("points", steps.map((step) => step.map((part) => part.toFixed(1)).join(",")).join(" "));
    const last = steps.at(-1);
    const before = steps.findLast((step) => Math.hypot(last[0] - step[0], last[1] - step[1]) > 3);
    this.tip.style.display = before ? "" : "none";
    if (before) {
      const degrees = (Math.atan2(last[1] - before[1], last[0] - before[0]) * 180) / Math.PI;
      this.tip.setAttribute(
        "transform",
        `translate(${last.map((part) => part.toFixed(1)).join(" ")}) rotate(${degrees.toFixed(1)})`,
      );
    }
    this.lands.textContent = `output = (${landed.map(two).join(", ")})`;
    const known = theirs.length > 0 && theirs.every(Number.isFinite);
    this.theirs.style.display = known ? "" : "none";
    if (known) at(this.theirs, this.outputs, theirs);
  }

  showProblem() {
    this.problem.textContent = this.model.get("problem");
    this.problem.hidden = !this.model.get("problem");
  }

  remove() {
    clearTimeout(this.timer);
    clearTimeout(this.unanswered);
    this.stopListening();
  }
}

function title(text) {
  return make("div", "course-title course-plane-title", {}, text);
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

function render(options) {
  const plane = new QueryPlaneView(options);
  return () => plane.remove();
}

const round = (value) => minus(String(Number(value.toPrecision(3))));
const two = (value) => minus((Math.abs(value) < 0.005 ? 0 : value).toFixed(2));

export default { render };
