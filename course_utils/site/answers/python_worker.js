// Python in a worker of the page: it loads once, and then checks and runs cells. What it finds it posts as it finds it.

const files = new URL("./", self.location.href).href;

// A page that asks for more memory than this gets Python's MemoryError, and the page starts a new worker after it.
const MAX_PAGES = 16384; // of 64 KiB: 1 GiB
WebAssembly.Memory = class extends WebAssembly.Memory {
  constructor(descriptor) {
    super({ ...descriptor, maximum: Math.min(descriptor.maximum ?? MAX_PAGES, MAX_PAGES) });
  }
};

const stage = (done, text) => postMessage({ kind: "stage", done, text });

// Return the zip in a pack, which the browser unpacks.
async function fetched(name) {
  const answer = await fetch(files + name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function start() {
  stage(0.05, "Python (6 MB)");
  const packages = fetched("packages.pack");
  packages.catch(() => {}); // it is awaited below
  const library = URL.createObjectURL(new Blob([await fetched("library.pack")]));
  importScripts(`${files}pyodide.js`);
  const python = await loadPyodide({ indexURL: files, stdLibURL: library });
  stage(0.6, "NumPy and the course's checks (4 MB)");
  const folder = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(await packages, "zip", { extractDir: folder });
  stage(0.9, "the first check");
  const module = python.pyimport("course_utils.checks.in_page");
  const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
  postMessage({ kind: "ready", seconds: module.MAX_SECONDS, loaded });
  return { python, module };
}

const started = start();
started.catch((error) => postMessage({ kind: "broken", text: String(error) }));

self.onmessage = async ({ data }) => {
  const { python, module } = await started;
  const { id, task, day, exercise, given, earlier, cell } = data;
  const [givenCells, earlierCells] = [python.toPy(given), python.toPy(earlier)];
  const progress = (text) => postMessage({ kind: "progress", id, text });
  const report = (record) => {
    const plain = record.toJs({ dict_converter: Object.fromEntries });
    postMessage({ kind: "record", id, ...plain });
  };
  try {
    if (task === "check") module.check(day, exercise, givenCells, earlierCells, cell, report, progress);
    else {
      const printing = (text) => postMessage({ kind: "printing", id, text });
      postMessage({ kind: "printed", id, text: module.run(day, givenCells, earlierCells, cell, printing) });
    }
  } catch (error) {
    postMessage({ kind: "failed", id, text: String(error) });
  }
  postMessage({ kind: "done", id, bytes: python._module.HEAP8.length });
};
