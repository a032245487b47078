"""The answer key: the solution notebooks, their exercises, and the seeds of their hidden inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import EllipsisType

import nbformat

import course_utils
from course_utils.answer_key.strip_answers import HIDDEN, UNGRADED, find_regions, stub_source
from course_utils.checks.cells import statements
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.checks.kernel.outcome import is_hidden
from course_utils.course import SOLUTIONS, WORK_FOLDER, find_notebook, folder_advice, version
from course_utils.errors import CourseError

KEYS = "keys.json"
# Folders whose code decides grades, and folders that the reference answers use.
DECISIVE = ("answer_key", "answers", "attention", "checks", "costs", "days", "grading", "models", "sandbox", "serving")


@dataclass(frozen=True)
class OfficialExercise:
    """An exercise as the official notebook states it.

    Attributes:
        names: the names that the answer defines.
        stub: the source of the answer's cell as the student gets it.
        known: the names that the course's cells and earlier answers define.
    """

    grade_id: str
    points: float
    names: tuple[str, ...]
    stub: str
    by_hand: bool = False  # the names are numbers, not functions
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class AnswerKey:
    """A folder that holds solutions/: the course, or a grader's bundle, whose keys.json holds a class's seeds."""

    folder: Path

    def days(self) -> list[int]:
        """Return the days whose solutions are in this folder; a bundle may hold only some days.

        Raises:
            CourseError: the bundle is of another edition, or its keys cannot be read.
        """
        _seeds(self.folder)
        return [day for day in days_with_exercises() if find_notebook(self.folder / SOLUTIONS, day)]

    def path(self, day: int) -> Path:
        """Return the path of a day's solution notebook.

        Raises:
            CourseError: there is none.
        """
        notebook = find_notebook(self.folder / SOLUTIONS, day)
        if notebook is None:
            todo = f"; {folder_advice()}" if self.folder == WORK_FOLDER else ""
            missing = f"{SOLUTIONS}/day{day}_*.ipynb in {self.folder.resolve().name or 'this folder'}"
            raise CourseError(f"no exercises for day {day}: there is no {missing}{todo}")
        return notebook

    def notebook(self, day: int) -> nbformat.NotebookNode:
        """Return the solution notebook of a day, which is read only once.

        Raises:
            CourseError: there is none.
        """
        return _notebook(self.path(day))

    def exercises(self, day: int) -> list[OfficialExercise]:
        """Return the exercises of a day."""
        return _exercises(self, day)

    def seeds(self, day: int) -> Mapping[str, str]:
        """Return the seeds of a day's hidden inputs, by grade_id; empty for the public inputs."""
        return _seeds(self.folder).get(str(day), {})

    def digest(self, day: int) -> str:
        """Return a hash of everything that decides a day's grades: the notebook, the seeds and the judging code."""
        return _digest(self, day)


COURSE = AnswerKey(WORK_FOLDER)


def provided_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return, in order, the code cells that are neither answer nor check and that grading runs."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and "nbgrader" not in cell.metadata]
    return [cell for cell in code if UNGRADED not in cell.metadata.get("tags", [])]


def checks_of(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    """Return the check cells of an official notebook, by the grade_id of the answer that each one checks."""
    return {
        cell.metadata.nbgrader.grade_id.removeprefix("check_"): cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }


def check_parts(cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """Split a check cell: yield the part that everybody sees and, where it has them, its hidden tests.

    Each part keeps only its own evidence among the outputs.
    """
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
    """Return the text of `keys.json`: the edition, and the seeds of each day.

    The edition is needed because the ladders, the test inputs of the exercises, change from one edition to the next.
    """
    return json.dumps({"edition": version(), **seeds}, indent=1) + "\n"


def with_seed(source: str, seed: str | EllipsisType) -> str:
    """Return the source of a hidden check with its inputs drawn from a seed; unchanged where the seed is empty.

    With `...` the check asks the grader for the seed.
    """
    seed_text = "..." if seed is ... else repr(seed)
    return source.replace("hidden=True", f"hidden=True, seed={seed_text}") if seed else source


def reference_answers(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Return the sources of the answer cells of an official notebook, by grade_id."""
    graded = [(cell.metadata.get("nbgrader", {}), cell.source) for cell in notebook.cells]
    return {nbgrader.grade_id: source for nbgrader, source in graded if nbgrader.get("solution")}


@cache
def _notebook(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@cache
def _exercises(answer_key: AnswerKey, day: int) -> list[OfficialExercise]:
    notebook = answer_key.notebook(day)
    graded = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    answers = {each.metadata.nbgrader.grade_id: each for each in graded if each.metadata.nbgrader.solution}
    checks = checks_of(notebook)
    known = frozenset(n for cell in provided_cells(notebook) for s in statements(cell.source) for n in s.binds)
    exercises = []
    for grade_id, check in checks.items():
        ladder = find_ladder(day, grade_id)
        points = float(check.metadata.nbgrader.points)
        stub = stub_source(answers[grade_id])
        exercises.append(OfficialExercise(grade_id, points, ladder.names, stub, ladder.by_hand, known))
        known |= set(ladder.names)
    return exercises


@cache
def _seeds(folder: Path) -> Mapping[str, Mapping[str, str]]:
    path = folder / KEYS
    if not path.exists():
        return {}
    try:
        seeds = json.loads(path.read_text(encoding="utf-8"))
        edition = seeds.pop("edition", "unknown")
    except (OSError, ValueError, AttributeError) as error:
        raise CourseError(f"{path}: not a file of keys ({error}); make a new bundle with course release") from None
    if edition != version():
        todo = "grade with that edition, or make a new bundle with course release and the same secret"
        raise CourseError(
            f"{path.parent}: a bundle of edition {edition}, but this course is edition {version()}: {todo}"
        )
    return seeds


@cache
def _digest(answer_key: AnswerKey, day: int) -> str:
    running_hash = hashlib.sha256(answer_key.path(day).read_bytes())
    running_hash.update(json.dumps(answer_key.seeds(day), sort_keys=True).encode())
    package = Path(course_utils.__file__).parent
    paths = [*package.glob("*.py"), *(path for room in DECISIVE for path in (package / room).rglob("*.*"))]
    for path in sorted(path for path in paths if path.suffix in (".py", ".json")):
        running_hash.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return running_hash.hexdigest()
