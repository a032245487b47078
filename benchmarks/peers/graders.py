"""The three graders as command lines: what each wants in its folder, how it is called, and where it leaves the scores.

Each works in a folder of its own, the place. `lay_out` fills it, `commands` grade what is there, `after` makes the
scores readable where the grader itself does not, and `scores` reads them from the text of the files named in `results`.
"""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from peers.conversion import nbgrader_source, otter_notebook, write_otter_tests
from peers.venvs import PINS, ROOT, ensure

DAY = 1
NOTEBOOK = "day1_attention_by_hand"
Files = Mapping[str, bytes]  # the file of each student, by name


@dataclass(frozen=True)
class Grader:
    """One grader. python: of the environment it is installed in."""

    python: Path
    name: ClassVar[str] = ""
    version: ClassVar[str] = ""
    results: ClassVar[tuple[str, ...]] = ()  # patterns

    def prepare(self, place: Path) -> None:
        """Do what a teacher does once for an assignment, in an empty folder."""

    def path_of(self, student: str) -> Path:
        """Where in the place the grader looks for a student's file."""
        return Path("submissions", f"{student}.ipynb")

    def convert(self, data: bytes) -> bytes:
        """Return a submission in the form that students of this grader send."""
        return data

    def lay_out(self, place: Path, files: Files) -> None:
        """Put submissions where the grader looks for them."""
        for student, data in files.items():
            _write(place / self.path_of(student), self.convert(data))

    def commands(self, students: list[str]) -> list[list[str]]:
        """Return the commands that grade, to be run in the place one after the other."""
        return []

    def after(self) -> list[str]:
        """Return a command that makes the scores readable, or nothing."""
        return []

    def scores(self, results: Mapping[str, str], students: list[str]) -> dict[str, float | None]:
        """The score of each student, None where there is no grade. results: the text of each file by its path."""
        return {}

    def environment(self, home: Path) -> dict[str, str]:
        """The environment its commands run in: its own Python first, one thread, and the course to be imported."""
        path = f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin"
        own = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(home), "OMP_NUM_THREADS": "1"}
        return own | {"LANG": "C.UTF-8"}

    def run(self, command: list[str], place: Path) -> subprocess.CompletedProcess:
        """Run one of its commands in the place, outside any sandbox."""
        environment = self.environment(place / "home")
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


@dataclass(frozen=True)
class Ours(Grader):
    """The course's own."""

    jobs: int = 2
    name = "course grade"
    version = "this checkout"
    results = ("out/grades.json",)

    def commands(self, students):
        return self.grade("submissions", "--day", str(DAY), "--jobs", str(self.jobs))

    def grade(self, *arguments: str) -> list[list[str]]:
        """Return the command with these arguments."""
        return [[str(self.python), "-m", "course_utils", "grade", "--out", "out", *arguments]]

    def scores(self, results, students):
        submissions = json.loads(results.get("out/grades.json", '{"submissions": []}'))["submissions"]
        return {student: None for student in students} | {each["student"]: each["score"] for each in submissions}


@dataclass(frozen=True)
class NbGrader(Grader):
    """nbgrader: the whole class in one command, scores from its own export."""

    name = "nbgrader autograde"
    version = PINS["nbgrader"].replace("==", " ")
    results = ("grades.csv", "autograded/*/*/*.ipynb")

    def prepare(self, place):
        _write(place / "source" / "day1" / f"{NOTEBOOK}.ipynb", nbgrader_source(DAY).encode())
        _write(place / "nbgrader_config.py", b'c = get_config()\nc.CourseDirectory.course_id = "attention"\n')
        made = self.run([str(self.python), "-m", "nbgrader", "generate_assignment", "day1", "--create"], place)
        made.check_returncode()

    def path_of(self, student):
        return Path("submitted", student, "day1", f"{NOTEBOOK}.ipynb")

    def commands(self, students):
        return [[str(self.python), "-m", "nbgrader", "autograde", "day1"]]

    def after(self):
        return [str(self.python), "-m", "nbgrader", "export", "--to", "grades.csv"]

    def scores(self, results, students):
        rows = csv.DictReader(io.StringIO(results.get("grades.csv", "")))
        exported = {row["student_id"]: float(row["score"]) for row in rows}  # 0 also for those who were not graded
        graded = {path.split("/")[1] for path in results if path.startswith("autograded/")}
        return {student: exported.get(student) if student in graded else None for student in students}


@dataclass(frozen=True)
class Otter(Grader):
    """otter run: one submission a command. (otter grade wants Docker, and starts a container for each.)"""

    name = "otter run"
    version = PINS["otter"].replace("==", " ")
    results = ("out/*/results.json",)

    def prepare(self, place):
        write_otter_tests(DAY, place / "tests")
        otter = [str(self.python.parent / "otter"), "generate", "-t", "tests", "-o", "autograder.zip"]
        self.run([*otter, "--no-config", "--no-requirements", "--no-environment"], place).check_returncode()

    def convert(self, data):
        return otter_notebook(data, DAY)

    def lay_out(self, place, files):
        super().lay_out(place, files)
        for student in files:
            (place / "out" / student).mkdir(parents=True)

    def commands(self, students):
        otter = [str(self.python.parent / "otter"), "run", "-a", "autograder.zip", "--no-logo"]
        return [[*otter, "-o", f"out/{student}", str(self.path_of(student))] for student in students]

    def scores(self, results, students):
        return {student: _otter_score(results.get(f"out/{student}/results.json")) for student in students}


GRADERS: dict[str, type[Grader]] = {"ours": Ours, "nbgrader": NbGrader, "otter": Otter}


def make_graders(names: Iterable[str], venvs: Path, jobs: int) -> dict[str, Grader]:
    """Return the graders of these names. The environment of a peer is made in the folder `venvs` if it is not there."""
    own = Ours(Path(sys.executable), jobs)
    return {name: own if name == "ours" else GRADERS[name](ensure(venvs, name)) for name in names}


def read_results(place: Path, patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the files in a place that hold the scores, as text by their path in it."""
    paths = [path for pattern in patterns for path in place.glob(pattern)]
    return {path.relative_to(place).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _otter_score(text: str | None) -> float | None:
    if text is None:
        return None
    return float(sum(test.get("score", 0.0) for test in json.loads(text)["tests"]))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
