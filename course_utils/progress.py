"""A learner's progress: the days, their exercises, and the result of each notebook's last grading.

The command line and the course map show it. It is read from files alone: the sources and notebooks say which exercises
there are, and `grades/progress.json`, which `course grade` writes, says which are done. This module imports nothing
heavy.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from course_utils.course import (
    DAYS,
    EXERCISES,
    LESSONS,
    SOLUTIONS,
    SOURCES,
    WORK_FOLDER,
    Day,
    find_notebook,
    folder_advice,
    last_part,
)

RECORD = "progress.json"
BY_HAND = "save the notebook, and run make grade"


@dataclass(frozen=True)
class ExerciseProgress:
    """An exercise, and the result of its last grading.

    Attributes:
        minutes: minutes that the notebook allows for it.
        part: the last part of the lesson that prepares it; 0 if it names none.
        status: status of the last verdict, such as "passed"; empty if it was never graded.
        score: points reached, of `points`.
    """

    id: str
    title: str
    points: float
    minutes: int
    part: int = 0
    status: str = ""
    score: float = 0.0

    @property
    def done(self) -> bool:
        """Whether the exercise passed when it was last graded."""
        return self.status == "passed"


@dataclass(frozen=True)
class DayProgress:
    """A learner's progress on one day of the course.

    Attributes:
        name: file name of the day's notebooks without its ending; empty while the day is planned.
        lesson: minutes that its lesson takes; 0 while the day is planned.
        graded: time of the last grading, None if there was none.
        changed: whether an answer in exercises/ differs from the one that was graded.
    """

    number: int
    title: str
    name: str = ""
    lesson: int = 0
    exercises: tuple[ExerciseProgress, ...] = ()
    graded: datetime | None = None
    changed: bool = False

    @property
    def done(self) -> int:
        """Number of exercises that passed."""
        return sum(exercise.done for exercise in self.exercises)

    @property
    def score(self) -> float:
        """Points reached in all exercises."""
        return round(sum(exercise.score for exercise in self.exercises), 4)

    @property
    def points(self) -> float:
        """Points of all exercises."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def minutes(self) -> int:
        """Minutes that all exercises take."""
        return sum(exercise.minutes for exercise in self.exercises)

    @property
    def remaining(self) -> dict[str, int]:
        """Minutes that are left of the lesson and of the exercises, without what is done.

        Nobody says when a lesson was read: it counts as read when at least a third of its day's exercises have passed.
        """
        exercises = sum(exercise.minutes for exercise in self.exercises if not exercise.done)
        lesson_read = self.done and 3 * self.done >= len(self.exercises)
        remaining = {"lesson": 0 if lesson_read else self.lesson, "exercises": exercises}
        return {what: minutes for what, minutes in remaining.items() if minutes}

    @property
    def next(self) -> ExerciseProgress | None:
        """The first exercise that has not passed."""
        return next((exercise for exercise in self.exercises if not exercise.done), None)


@dataclass(frozen=True)
class Progress:
    """A learner's progress on all days of the course.

    Attributes:
        trouble: why the record of grades could not be read; empty if it could.
        remark: what to do if nothing is graded yet, or if there are no exercises.
    """

    days: tuple[DayProgress, ...]
    trouble: str = ""
    remark: str = ""

    @property
    def minutes_left(self) -> int:
        """Minutes of all lessons and exercises that are left."""
        return sum(sum(day.remaining.values()) for day in self.days)

    @property
    def next(self) -> tuple[DayProgress, ExerciseProgress] | None:
        """The first exercise of the course that has not passed."""
        return next(((day, day.next) for day in self.days if day.next), None)


def read_progress(root: Path = WORK_FOLDER) -> Progress:
    """Return the progress of the learner whose course lies in `root`. Missing or damaged files raise no error."""
    graded = {}
    trouble = ""
    try:
        graded = read_record(root / "grades" / RECORD)
    except ValueError as error:
        trouble = f"grades/{RECORD} {error}; run make grade, which sets it aside and starts a new one"
    days = tuple(_progress_of_day(root, day, graded.get(str(day.number), {})) for day in DAYS)
    if not any(day.exercises for day in days):
        return Progress(days, trouble, f"There are no exercises here; {folder_advice()}.")
    return Progress(days, trouble, "" if graded or trouble else _remark(root))


def read_record(path: Path) -> dict[str, dict]:
    """Return the days in a record of grades; an empty dict if there is no file.

    Returns:
        {"1": {"notebook", "answers", "graded", "exercises": {id: {"status", "score", "max_score"}}}, …}

    Raises:
        ValueError: if the file is not such a record. The message continues a sentence that begins with its name.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ValueError("is not a record of grades") from None
    try:
        if record["schema"] != 1 or not all(_is_day(day) for day in record["days"].values()):
            raise ValueError
        return record["days"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is not a record of grades as this course writes it") from None


def digest(notebook: Path) -> str:
    """Return a hash of the answer cells of a notebook; an empty string if it has none or cannot be read."""
    answers = {grading["grade_id"]: source for _, source, grading in _cells(notebook) if grading.get("solution")}
    return hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest() if answers else ""


def plain_title(heading: str) -> str:
    """Return a heading without Markdown's stars: `Let *arrived* find` becomes `Let arrived find`."""
    return re.sub(r"(\*+)(.+?)\1", r"\2", heading)


def notebook_name(root: Path, number: int) -> str:
    """Return the file name of a day's exercises, without its ending; empty if the day has none in `root`."""
    return _first_notebook(root, number, SOLUTIONS, EXERCISES).stem


def _progress_of_day(root: Path, day: Day, graded: dict[str, Any]) -> DayProgress:
    number = day.number
    title = day.title
    name = notebook_name(root, number) or _first_notebook(root, number, LESSONS).stem
    lesson, exercises = (day.minutes, _exercises(root, name)) if name else (0, ())
    if not graded:
        return DayProgress(number, title, name, lesson, exercises)
    results = graded["exercises"]
    exercises = tuple(
        replace(each, status=results[each.id]["status"], score=results[each.id]["score"])
        if each.id in results
        else each
        for each in exercises
    )
    changed = digest(root / EXERCISES / f"{name}.ipynb") != graded["answers"]
    return DayProgress(number, title, name, lesson, exercises, datetime.fromisoformat(graded["graded"]), changed)


def exercises_of(number: int, root: Path = WORK_FOLDER) -> tuple[ExerciseProgress, ...]:
    """Return the exercises of a day in the order of its notebook, without grades; none for a planned day.

    A day that has not been built yet has no notebook, so its name comes from its source file.
    """
    name = notebook_name(root, number) or next(
        (source.stem for source in sorted((root / SOURCES[SOLUTIONS]).glob(f"day{number}_*.md"))), ""
    )
    return _exercises(root, name) if name else ()


def _exercises(root: Path, name: str) -> tuple[ExerciseProgress, ...]:
    """Read the exercises of a day from its source, or else from the first of its notebooks that has some."""
    if exercises := tuple(_exercises_in_source(root / SOURCES[SOLUTIONS] / f"{name}.md")):
        return exercises
    for folder in (SOLUTIONS, EXERCISES):
        if exercises := tuple(_exercises_in_notebook(root / folder / f"{name}.ipynb")):
            return exercises
    return ()


_HEAD = re.compile(r"^## (?:\d+\. )?(.+)\n+.*difficulty \d of 5 · (\d+) minutes?(.*)", re.MULTILINE)


_ID = re.compile(r"^  grade: true\n  grade_id: check_(\w+)$(?:\n  .*)*?\n  points: (\d+)$", re.MULTILINE)


def _exercises_in_source(source: Path) -> Iterator[ExerciseProgress]:
    """Yield the exercises in a source file, one for each section; none if the file cannot be read."""
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return
    heads = list(_HEAD.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        if check := _ID.search(text, head.end(), end):
            yield ExerciseProgress(check[1], plain_title(head[1]), int(check[2]), int(head[2]), last_part(head[3]))


def _exercises_in_notebook(notebook: Path) -> Iterator[ExerciseProgress]:
    """Yield a notebook's exercises: title and minutes from the text above an answer, points from its check cell."""
    cells = list(_cells(notebook))
    points = {g["grade_id"].removeprefix("check_"): g.get("points", 0) for _, _, g in cells if g.get("grade")}
    title, minutes, part = "", 0, 0
    for kind, source, grading in cells:
        if kind == "markdown" and (head := _HEAD.search(source)):
            title, minutes, part = plain_title(head[1]), int(head[2]), last_part(head[3])
        elif grading.get("solution"):
            name = grading["grade_id"]
            yield ExerciseProgress(name, title or name, points.get(name, 0), minutes, part)
            title, minutes, part = "", 0, 0


def _cells(notebook: Path) -> list[tuple[str, str, dict]]:
    """Return kind, text and nbgrader metadata of each cell; an empty list if the file is not a notebook."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        rows = [(cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("nbgrader") or {}) for cell in cells]
        return rows if all("grade_id" in grading for _, _, grading in rows if grading) else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _first_notebook(root: Path, number: int, *folders: str) -> Path:
    """Return a day's notebook from the first of these folders that has one; an empty path if none has."""
    notebooks = (find_notebook(root / folder, number) for folder in folders)
    return next((notebook for notebook in notebooks if notebook), Path())


def _is_day(day: dict) -> bool:
    datetime.fromisoformat(day["graded"])
    known = isinstance(day["answers"], str)
    for result in day["exercises"].values():
        known &= isinstance(result["status"], str) and 0 <= result["score"] <= result["max_score"] < math.inf
    return known


def _remark(root: Path) -> str:
    """Return what to do if nothing is graded yet, or if the grades in the folder belong to somebody else."""
    todo = f"Nothing of yours is graded yet. Solve an exercise, {BY_HAND}."
    try:
        record = json.loads((root / "grades" / "grades.json").read_text(encoding="utf-8"))
        count = len(record["submissions"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return todo
    held = f"{count} submissions" if count != 1 else "one submission"
    return (
        f"grades/grades.json holds {held}, and no notebook of exercises/ among them: that is not your progress. {todo}"
    )
