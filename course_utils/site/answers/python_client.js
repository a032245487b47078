// The worker in which Python runs, seen from the page. It starts at the first task, and again after it had to end.

const MAX_BYTES = 600 * 2 ** 20; // bytes of memory after which a new worker takes over
let worker = null;
let seconds = 0; // a task may take so long; 0 until the worker has loaded Python and says it
let running = null; // the task that is under way: { id, listen, timer }
let count = 0;
let stage = null; // what is being loaded
let listenToStages = () => {};

const OTHER = "Stopped, because another exercise was started. Only one runs at a time. Your code is unchanged.";

export const NOT_HERE =
  "This browser does not let the page run Python here. Open the page from a server, such as the one that " +
  'make site ARGS="--python --serve" starts, or do this exercise in JupyterLab.';

// Return why Python cannot run on this page, or "".
export function reasonAgainst() {
  if (self.origin === "null" || !window.Worker) return NOT_HERE;
  if (!window.WebAssembly) return "This browser has no WebAssembly, which Python needs here. Open it in JupyterLab.";
  if (!window.DecompressionStream) return "This browser is too old to run Python. Use a newer one, or JupyterLab.";
  return "";
}

// Call `listener` with what is being loaded: { done (0 to 1), text }, and with null once Python is there.
export function onStage(listener) {
  listenToStages = listener;
  listener(stage);
}

function tellStage(current) {
  stage = current;
  listenToStages(stage);
}

export function warmUp() {
  if (worker || reasonAgainst()) return;
  seconds = 0;
  worker = new Worker(`${course.base}${course.python}/python_worker.js`);
  worker.onmessage = ({ data }) => hear(data);
  worker.onerror = (event) => hear({ kind: "broken", text: event.message || "a file is missing" });
}

// Keep the page and its Python for the time without a network.
let keeping = false;
function keepOffline(python) {
  if (keeping || !navigator.serviceWorker) return;
  keeping = true;
  const page = performance.getEntriesByType("resource").map(({ name }) => name);
  const here = new URL("../", course.base).href;
  const mine = [location.href.split("#")[0], ...page, ...python].filter((address) => address.startsWith(here));
  const register = async () => {
    await navigator.serviceWorker.register(`${here}service_worker.js`);
    (await navigator.serviceWorker.ready).active.postMessage(mine);
  };
  register().catch(() => {}); // without it the page works as long as there is a network
}

function hear(data) {
  if (data.kind === "stage") return tellStage(data);
  if (data.kind === "ready") {
    seconds = data.seconds;
    tellStage(null);
    keepOffline(data.loaded);
    return startClock();
  }
  if (data.kind === "broken") {
    tellStage(null);
    const text = `Python could not be loaded (${data.text}). Are you online? Press Check to try again.`;
    return end({ kind: "failed", text }, false);
  }
  if (!running || data.id !== running.id) return undefined;
  if (data.kind !== "done") return running.listen(data);
  finish();
  if (data.bytes > MAX_BYTES) end(null);
  return undefined;
}

function startClock() {
  if (!running || !seconds) return;
  const text = "Stopped: one call took too long, for example a power with a huge exponent.";
  running.timer = setTimeout(() => end({ kind: "failed", text }), 1000 * seconds);
}

// Give a task to Python; `listen` is called with each message, the last one being { kind: "done" }.
export function give(task, listen) {
  if (running) end({ kind: "failed", text: OTHER });
  warmUp();
  count += 1;
  running = { id: count, listen, timer: 0 };
  startClock();
  worker.postMessage({ ...task, id: count });
}

// End what runs. The text stays, and a new worker is warm soon.
export const stop = () => end({ kind: "failed", text: "Stopped. Your code is unchanged." });

function end(message, again = true) {
  worker?.terminate();
  worker = null;
  if (again) warmUp();
  if (!running) return;
  running.listen(message);
  finish();
}

function finish() {
  clearTimeout(running.timer);
  const { listen } = running;
  running = null;
  listen({ kind: "done" });
}
