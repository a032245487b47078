"""The official side of grading: the solution notebooks, what they ask and what their hidden inputs are drawn from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat

import course_utils
from course_utils.authoring.strip_answers import HIDDEN, find_regions, stub_source
from course_utils.checks.judge.cells import statements
from course_utils.checks.judge.exercises import days_with_exercises
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.checks.kernel.outcome import is_hidden
from course_utils.course import SOLUTIONS, WORK_FOLDER, find_notebook, version, where_it_is
from course_utils.errors import CourseError

KEYS = "keys.json"
# Rooms whose code decides over grades, with those on which references stand.
DECISIVE = ("answers", "attention", "authoring", "checks", "costs", "days", "grading", "models", "sandbox", "serving")
UNGRADED = "ungraded"  # the tag of a given cell that grading leaves out


@dataclass(frozen=True)
class Question:
    """An exercise as the official notebook states it: what the answer defines, and what the student was given."""

    grade_id: str
    points: float
    names: tuple[str, ...]
    stub: str
    by_hand: bool = False  # the names are numbers, not functions


@dataclass(frozen=True)
class Official:
    """A folder that holds solutions/: the course's own, or a grader's bundle, where keys.json holds a class's seeds."""

    folder: Path

    def days(self) -> list[int]:
        """The days whose exercises are here: a bundle may hold some only. Raises CourseError for another edition's."""
        _seeds(self.folder)
        return [day for day in days_with_exercises() if find_notebook(self.folder / SOLUTIONS, day)]

    def path(self, day: int) -> Path:
        """The solution notebook of a day. Raises CourseError when there is none."""
        found = find_notebook(self.folder / SOLUTIONS, day)
        if found is None:
            todo = f"; {where_it_is()}" if self.folder == WORK_FOLDER else ""
            missing = f"{self.folder.resolve()}/{SOLUTIONS}/day{day}_*.ipynb"
            raise CourseError(f"no exercises for day {day}: there is no {missing}{todo}")
        return found

    def notebook(self, day: int) -> nbformat.NotebookNode:
        """The solution notebook of a day, read once. Raises CourseError when there is none."""
        return _notebook(self.path(day))

    def questions(self, day: int) -> list[Question]:
        """The exercises of a day."""
        return _questions(self, day)

    def given_names(self, day: int) -> frozenset[str]:
        """The names that the cells define that everybody is given and that are run for grading."""
        return frozenset(n for c in given_cells(self.notebook(day)) for s in statements(c.source) for n in s.binds)

    def seeds(self, day: int) -> Mapping[str, str]:
        """What the hidden inputs of a day's exercises are drawn from, by grade_id; empty for the public ones."""
        return _seeds(self.folder).get(str(day), {})

    def digest(self, day: int) -> str:
        """A hash of all that decides over a day's grades: the notebook, the seeds and the code that judges."""
        return _digest(self, day)


COURSE = Official(WORK_FOLDER)


def given_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The code cells that are neither answer nor check and that grading runs, in order."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and "nbgrader" not in cell.metadata]
    return [cell for cell in code if UNGRADED not in cell.metadata.get("tags", [])]


def checks_of(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    """The check cells of an official notebook by the grade_id of the answer they check."""
    return {
        cell.metadata.nbgrader.grade_id.removeprefix("check_"): cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }


def check_parts(cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """A check cell as one or two: what everybody sees, and the hidden tests, each with the evidence that it shows."""
    lines = cell.source.split("\n")
    regions = [region for region in find_regions(cell.source) if region.kind == HIDDEN]
    inside = [lines[region.begin + 1 : region.end] for region in regions]
    for region in reversed(regions):
        del lines[region.begin : region.end + 1]
    parts = [lines, [line for part in inside for line in part]]
    for hidden, part in enumerate(parts[: 1 + bool(regions)]):
        outputs = [each for each in cell.outputs if is_hidden(each) == hidden]
        yield nbformat.NotebookNode({**cell, "source": "\n".join(part), "outputs": outputs})


def keys_text(seeds: Mapping) -> str:
    """What `keys.json` holds: the edition, since ladders change from one to the next, and the seeds of each day."""
    return json.dumps({"edition": version(), **seeds}, indent=1) + "\n"


def with_seed(source: str, seed: str) -> str:
    """The source of a hidden check whose inputs are drawn from a seed; as it was without one."""
    return source.replace("hidden=True", f"hidden=True, seed={seed!r}") if seed else source


def reference_answers(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """The answer cells of an official notebook by grade_id."""
    graded = [(cell.metadata.get("nbgrader", {}), cell.source) for cell in notebook.cells]
    return {nbgrader.grade_id: source for nbgrader, source in graded if nbgrader.get("solution")}


@cache
def _notebook(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@cache
def _questions(official: Official, day: int) -> list[Question]:
    cells = official.notebook(day).cells
    answers = {c.metadata.nbgrader.grade_id: c for c in cells if c.metadata.get("nbgrader", {}).get("solution")}
    questions = []
    for grade_id, check in checks_of(official.notebook(day)).items():
        ladder = find_ladder(day, grade_id)
        points = float(check.metadata.nbgrader.points)
        questions.append(Question(grade_id, points, ladder.names, stub_source(answers[grade_id]), ladder.by_hand))
    return questions


@cache
def _seeds(folder: Path) -> Mapping[str, Mapping[str, str]]:
    path = folder / KEYS
    if not path.exists():
        return {}
    try:
        seeds = json.loads(path.read_text(encoding="utf-8"))
        edition = seeds.pop("edition", "0.2.1 or an earlier one")
    except (OSError, ValueError, AttributeError) as error:
        raise CourseError(f"{path}: not a file of keys ({error}); write the bundle anew with course release") from None
    if edition != version():
        todo = "grade with that one, or write the bundle anew with course release and the same secret"
        raise CourseError(f"{path.parent}: a bundle of edition {edition}, and this is {version()}: {todo}")
    return seeds


@cache
def _digest(official: Official, day: int) -> str:
    found = hashlib.sha256(official.path(day).read_bytes())
    found.update(json.dumps(official.seeds(day), sort_keys=True).encode())
    package = Path(course_utils.__file__).parent
    paths = [*package.glob("*.py"), *(path for room in DECISIVE for path in (package / room).rglob("*.*"))]
    for path in sorted(path for path in paths if path.suffix in (".py", ".json")):
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
