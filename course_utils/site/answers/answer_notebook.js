// The work on a page as a notebook, which opens in JupyterLab and which `make grade` grades, and back.

const isAnswer = (cell) => cell?.metadata?.nbgrader?.solution === true;

// Give the browser a notebook with these answers, by exercise, in place of the stubs.
export function downloadNotebook(data, sources) {
  const notebook = structuredClone(data.notebook);
  for (const cell of notebook.cells.filter(isAnswer)) {
    cell.source = sources[cell.metadata.nbgrader.grade_id] ?? cell.source;
  }
  const address = URL.createObjectURL(
    new Blob([`${JSON.stringify(notebook, null, 1)}\n`], { type: "application/json" }),
  );
  const link = Object.assign(document.createElement("a"), { href: address, download: data.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Return the answers in the text of a notebook, by exercise. Throws an error with a sentence for another file.
export function openNotebook(text, data) {
  let notebook = null;
  try {
    notebook = JSON.parse(text);
  } catch {
    throw new Error("This file is not a notebook.");
  }
  const sources = {};
  const cells = Array.isArray(notebook?.cells) ? notebook.cells : [];
  for (const cell of cells.filter(isAnswer)) {
    const { grade_id: exercise } = cell.metadata.nbgrader;
    if (Object.hasOwn(data.stubs, exercise)) sources[exercise] = [cell.source].flat().join("");
  }
  if (!Object.keys(sources).length) throw new Error(`This file has no answers to ${data.file}.`);
  return sources;
}
