// Compiles what a first check imports, in the folder of library.zip and packages.zip: see compiled.py.
// usage: node compile_python.mjs PYODIDE PROGRAM FOLDER
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const WRONG = "def softmax_row(row):\n    return [1.0 for x in row]\n"; // so that a smallest input is searched

const [pyodide, program, folder] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const env = { HOME: "/home/pyodide", PYTHONHASHSEED: "0" }; // the same sources give the same bytes
const python = await loadPyodide({ indexURL: pyodide, env });
const packages = python.runPython("import site; site.getsitepackages()[0]");
python.unpackArchive(new Uint8Array(readFileSync(`${folder}/packages.zip`)), "zip", { extractDir: packages });

const records = [];
const [given, earlier] = [python.toPy([]), python.toPy({})];
const report = (record) => records.push(record.toJs({ dict_converter: Object.fromEntries }));
python.pyimport("course_utils.checks.in_page").check(1, "softmax_row", given, earlier, WRONG, report);
if (records.length !== 2) throw new Error(`the first check did not go as on a page: ${JSON.stringify(records)}`);

python.FS.mkdirTree("/packs");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/packs");
python.runPython(readFileSync(program, "utf8"));
const library = python.runPython("import sys; next(path for path in sys.path if path.endswith('.zip'))");
const places = { library, packages };
python.globals.get("compile_packs")(python.runPython("Path('/packs')"), python.toPy(places));
