"""The Python that runs on the exercises' pages: Pyodide, NumPy, Hypothesis, and the part of the course that checks.

Everything comes from pinned sources: npm's lock file has the hash of Pyodide, Pyodide's own has that of the NumPy
wheel, and `requirements.lock` has those of the rest.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from course_utils.course import ROOT
from course_utils.errors import CourseError
from course_utils.files import make_zip

PYODIDE = ROOT / "node_modules" / "pyodide"
WHEELS = ROOT / "sources" / "site" / "python"
WORKER = Path(__file__).parent / "answers" / "python_worker.js"
RUNTIME = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
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
    "days/day7/promise_monitors.py",
    "models/__init__.py",
    "views/__init__.py",
    "views/drawing.py",
    "views/palette.py",
    "views/running_line.py",
    "views/verdict_card.py",
    "views/widgets/__init__.py",
)
LEFT_OUT = ("__main__.py", "cli.py", "doctor.py")


def python_files() -> tuple[str, dict[str, bytes]]:
    """Return the folder of the page's Python in the static folder, named by a hash of all of it, and its files by path.

    Raises:
        CourseError: a source is missing or is not the one that its lock file names.
    """
    files = _runtime()
    files |= _numpy(json.loads(files["pyodide-lock.json"]))
    files["packages.zip"] = _packages()
    files["course.zip"] = make_zip({f"course_utils/{name}": content for name, content in course_files().items()})
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


def _runtime() -> dict[str, bytes]:
    if not PYODIDE.exists():
        raise CourseError(f"{PYODIDE} is missing; run `make site ARGS=--python`, which brings it from npm")
    return {name: (PYODIDE / name).read_bytes() for name in RUNTIME}


def _numpy(lock: Mapping) -> dict[str, bytes]:
    """Return the NumPy wheel under the name that the worker asks for, if its hash is the one in Pyodide's lock file."""
    entry = lock["packages"]["numpy"]
    wheel = WHEELS / entry["file_name"]
    if not wheel.exists() or hashlib.sha256(wheel.read_bytes()).hexdigest() != entry["sha256"]:
        raise CourseError(f"{wheel} is missing or is not the file that Pyodide's lock file names; restore it")
    return {wheel.name: wheel.read_bytes()}


def _packages() -> bytes:
    """Return what Hypothesis needs, from PyPI by the hashes of requirements.lock, as one zip."""
    with tempfile.TemporaryDirectory(prefix="course-page-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--disable-pip-version-check", "-d", folder]
        command += ["-r", str(WHEELS / "requirements.lock")]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode:
            raise CourseError(f"pip could not bring the page's packages: {ended.stderr.strip()[-300:]}")
        files: dict[str, bytes] = {}
        for wheel in sorted(Path(folder).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                files |= {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    return make_zip({name: content for name, content in files.items() if not _is_unused(name)})


def _is_unused(name: str) -> bool:
    """Return whether no check needs a file of the packages."""
    return name.endswith((".pyi", "py.typed", "RECORD")) or name.startswith("hypothesis/vendor/tlds")
