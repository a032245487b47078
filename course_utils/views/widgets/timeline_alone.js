// Stands in for serving/scheduler.py on a page without a kernel, as timeline_run.py walks through it: first come, first
// served; decodes before prompts, prompts in chunks; who came last is preempted; a static batch runs to its end.

import { listen } from "../shared/dom.js";

// The run of all requests, step by step. `requests`, `steps` and `problem` are what Python would have sent.
export function scheduledRun(requests, block_size, settings, most = 200) {
  const run = new ScheduledRun(requests, block_size, settings);
  const problem = run.toTheEnd(most);
  return {
    requests: run.all.map(({ name, arrival, prompt, new: count }) => ({ name, arrival, prompt, new: count })),
    steps: run.steps,
    problem,
  };
}

class ScheduledRun {
  constructor(requests, block_size, { rule, budget, blocks }) {
    this.block_size = block_size;
    this.budget = budget;
    this.blocks = blocks;
    this.fixed = rule === "static";
    this.all = requests.map((request) => ({
      ...request,
      arrival: Math.ceil(request.arrival),
      computed: 0,
      generated: 0,
      held: 0,
      end: "",
    }));
    this.used = `the budget of ${budget} tokens is used`;
    this.steps = [];
    this.waiting = [];
    this.running = [];
    this.free = blocks;
    this.rest = budget; // tokens of the step that are not planned yet
    this.plan = []; // of the step: requests, each with its number of tokens
    this.notes = new Map(); // of the step, by request: what happens, tokens, whether one is generated, why
  }

  // Steps until all requests have ended. Returns what is wrong if they have not after the most steps, else nothing.
  toTheEnd(most) {
    while (this.all.some((one) => !one.end)) {
      if (this.steps.length === most) {
        return `After ${most} steps ${this.all.find((one) => !one.end && one.arrival <= most).name} is not finished.`;
      }
      this.step();
    }
    return "";
  }

  step() {
    this.admit();
    this.notes = new Map();
    this.planStep();
    const step = {
      used: this.budget - this.rest,
      held: this.blocks - this.free,
      cells: this.all.map((one) => this.cellOf(one)),
    };
    this.carryOut();
    this.steps.push(step);
  }

  // Who arrives waits, or is refused if the pool can never hold all of it.
  admit() {
    for (const one of this.all) {
      if (one.arrival !== this.steps.length) continue;
      const needs = this.blocksFor(one.prompt + one.new - 1);
      if (needs > this.blocks)
        Object.assign(one, {
          end: "refused",
          why: `it will need ${needs} blocks, and there ${this.blocks === 1 ? "is" : "are"} only ${this.blocks}`,
        });
      else this.waiting.push(one);
    }
  }

  // The planned tokens are computed: who has computed all that is known generates the next, and ends with the last.
  carryOut() {
    for (const [one, count] of this.plan) {
      one.computed += count;
      if (left(one)) continue;
      one.generated++;
      this.notes.get(one)[2] = true;
      if (one.generated < one.new) continue;
      one.end = "finished";
      this.running = this.running.filter((other) => other !== one);
      this.letGo(one);
    }
  }

  blocksFor(tokens) {
    return Math.ceil(tokens / this.block_size);
  }

  note(one, did, why) {
    if (!this.notes.has(one)) this.notes.set(one, [did, 0, false, why]);
  }

  letGo(one) {
    this.free += one.held;
    one.held = 0;
  }

  compute(one) {
    const count = Math.min(left(one), this.rest);
    const did = decodes(one) ? "decode" : "prefill";
    const why =
      did === "decode" ? "decodes go first" : `tokens ${one.computed + 1} to ${one.computed + count} of ${known(one)}`;
    this.plan.push([one, count]);
    this.note(one, did, why);
    this.notes.get(one)[1] = count;
    this.rest -= count;
  }

  hasBudget(one) {
    if (this.rest <= 0) this.note(one, "wait", this.used);
    return this.rest > 0;
  }

  findBlock(one) {
    while (one.held < this.blocksFor(known(one))) {
      if (this.free) {
        one.held++;
        this.free--;
        continue;
      }
      const latest = this.running.pop();
      this.waiting.unshift(latest);
      this.note(latest, "preempted", `${one.name} needs a block, none is free, and it arrived last`);
      latest.computed = 0;
      this.letGo(latest);
      if (latest === one) return false;
    }
    return true;
  }

  // Take the blocks that a waiting request needs and return ""; or return why it has to go on waiting.
  admitOrExplain(one) {
    if (this.rest <= 0 && !this.fixed) return this.used;
    const missing = this.blocksFor(this.fixed ? one.prompt + one.new - 1 : known(one));
    if (missing > this.free) return `blocks that it needs: ${missing}, that are free: ${this.free}`;
    this.free -= missing;
    one.held = missing;
    return "";
  }

  planStep() {
    const before = this.running.length;
    this.plan = [];
    this.rest = this.budget;
    for (const one of [...this.running.filter(decodes), ...this.running.filter((other) => !decodes(other))]) {
      if (this.running.includes(one) && this.hasBudget(one) && this.findBlock(one)) this.compute(one);
    }
    let shut = this.running.length < before ? "blocks ran out in this step" : "";
    if (this.fixed && before) shut = "the batch is not over";
    while (this.waiting.length) {
      shut = shut || this.admitOrExplain(this.waiting[0]);
      if (shut) break;
      const first = this.waiting.shift();
      this.running.push(first);
      if (this.hasBudget(first)) this.compute(first);
    }
    this.waiting.forEach((one, place) => this.note(one, "wait", place ? `${this.waiting[0].name} is before it` : shut));
  }

  cellOf(one) {
    if (one.arrival > this.steps.length) return ["", 0, false, ""];
    return one.end ? [one.end, 0, false, one.why ?? ""] : this.notes.get(one);
  }
}

const known = (one) => one.prompt + one.generated;
const left = (one) => known(one) - one.computed;
const decodes = (one) => one.generated > 0 && left(one) === 1;

// Other settings are scheduled here; somebody's own scheduler needs Python for all but those that it came with.
export function answerTimeline(model) {
  const sets = model.get("_alone").sets;
  const given = model.get("_walk");
  const { block_size, rules } = model.get("_layout");
  const follow = () => {
    const settings = Object.fromEntries(
      ["rule", "budget", "blocks", "arrivals"].map((name) => [name, model.get(name)]),
    );
    const same = (walk) => JSON.stringify(walk.settings) === JSON.stringify(settings);
    if (same(model.get("_walk"))) return;
    const requests = sets[settings.arrivals];
    const name = rules.find(([key]) => key === settings.rule)[1];
    const silent = {
      requests,
      steps: [],
      problem: "",
      silent: `${name} has not planned this: that needs Python, in JupyterLab.`,
    };
    model.set("step", 0);
    if (same(given)) model.set("_walk", given);
    else
      model.set("_walk", {
        settings,
        ...(settings.rule === "yours" ? silent : scheduledRun(requests, block_size, settings)),
      });
  };
  return listen(model, { rule: follow, budget: follow, blocks: follow, arrivals: follow });
}
