// Stands in for serving/scheduler.py on a page without a kernel, as timeline_run.py walks through it: first come, first
// served; decodes before prompts, prompts in chunks; who came last is preempted; a static batch runs to its end.

import { listen } from "../shared/dom.js";

function scheduledRun(requests, block_size, { rule, budget, blocks }, most = 200) {
  const fixed = rule === "static";
  const steps = [];
  const blocksFor = (tokens) => Math.ceil(tokens / block_size);
  const all = requests.map((request) => ({
    ...request,
    arrival: Math.ceil(request.arrival),
    computed: 0,
    generated: 0,
    held: 0,
    end: "",
  }));
  const known = (one) => one.prompt + one.generated;
  const left = (one) => known(one) - one.computed;
  const decodes = (one) => one.generated > 0 && left(one) === 1;
  const used = `the budget of ${budget} tokens is used`;
  const waiting = [];
  let running = [];
  let free = blocks;
  let rest;
  let notes;
  let plan;
  let problem = "";
  const note = (one, did, why) => {
    if (!notes.has(one)) notes.set(one, [did, 0, false, why]);
  };
  const letGo = (one) => {
    free += one.held;
    one.held = 0;
  };

  function compute(one) {
    const count = Math.min(left(one), rest);
    const did = decodes(one) ? "decode" : "prefill";
    const why =
      did === "decode" ? "decodes go first" : `tokens ${one.computed + 1} to ${one.computed + count} of ${known(one)}`;
    plan.push([one, count]);
    note(one, did, why);
    notes.get(one)[1] = count;
    rest -= count;
  }
  function hasBudget(one) {
    if (rest <= 0) note(one, "wait", used);
    return rest > 0;
  }
  function findBlock(one) {
    while (one.held < blocksFor(known(one))) {
      if (free) {
        one.held++;
        free--;
        continue;
      }
      const latest = running.pop();
      waiting.unshift(latest);
      note(latest, "preempted", `${one.name} needs a block, none is free, and it arrived last`);
      latest.computed = 0;
      letGo(latest);
      if (latest === one) return false;
    }
    return true;
  }
  function whyNot(one) {
    if (rest <= 0 && !fixed) return used;
    const missing = blocksFor(fixed ? one.prompt + one.new - 1 : known(one));
    if (missing > free) return `blocks that it needs: ${missing}, that are free: ${free}`;
    free -= missing;
    one.held = missing;
    return "";
  }
  function planStep() {
    const before = running.length;
    plan = [];
    rest = budget;
    for (const one of [...running.filter(decodes), ...running.filter((other) => !decodes(other))]) {
      if (running.includes(one) && hasBudget(one) && findBlock(one)) compute(one);
    }
    let shut = running.length < before ? "blocks ran out in this step" : "";
    if (fixed && before) shut = "the batch is not over";
    while (waiting.length) {
      shut = shut || whyNot(waiting[0]);
      if (shut) break;
      const first = waiting.shift();
      running.push(first);
      if (hasBudget(first)) compute(first);
    }
    waiting.forEach((one, place) => note(one, "wait", place ? `${waiting[0].name} is before it` : shut));
  }
  function cellOf(one) {
    if (one.arrival > steps.length) return ["", 0, false, ""];
    return one.end ? [one.end, 0, false, one.why ?? ""] : notes.get(one);
  }

  while (all.some((one) => !one.end)) {
    if (steps.length === most) {
      problem = `After ${most} steps ${all.find((one) => !one.end && one.arrival <= most).name} is not finished.`;
      break;
    }
    for (const one of all) {
      if (one.arrival !== steps.length) continue;
      const needs = blocksFor(one.prompt + one.new - 1);
      if (needs > blocks)
        Object.assign(one, {
          end: "refused",
          why: `blocks that it needs in the end: ${needs}, that there are: ${blocks}`,
        });
      else waiting.push(one);
    }
    notes = new Map();
    planStep();
    const step = { used: budget - rest, held: blocks - free, cells: all.map(cellOf) };
    for (const [one, count] of plan) {
      one.computed += count;
      if (left(one)) continue;
      one.generated++;
      notes.get(one)[2] = true;
      if (one.generated < one.new) continue;
      one.end = "finished";
      running = running.filter((other) => other !== one);
      letGo(one);
    }
    steps.push(step);
  }
  return {
    requests: all.map(({ name, arrival, prompt, new: count }) => ({ name, arrival, prompt, new: count })),
    steps,
    problem,
  };
}

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
