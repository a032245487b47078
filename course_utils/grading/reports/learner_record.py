"""Record a learner's progress when the notebooks in exercises/ are graded, and show it as a table."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from course_utils.course import NUMBERS, WORK_FOLDER, duration, folder_advice
from course_utils.errors import CourseError
from course_utils.files import write_whole
from course_utils.grading.reports.feedback import feedback_path
from course_utils.grading.reports.report import is_untouched
from course_utils.grading.results import Graded, is_ungraded
from course_utils.progress import RECORD, DayProgress, Progress, digest, notebook_name, read_progress, read_record


def own_exercises(paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Find the learner's own exercises among notebooks that are about to be graded.

    They lie in exercises/ beside the folder of grades, under the names that the course gave them; other notebooks count
    as nobody's progress. Call this before grading, so that an answer written meanwhile counts as changed.

    Args:
        paths: notebooks that are about to be graded.
        folder: folder of grades.

    Returns:
        a digest of the answers in each of them, by file name.
    """
    paths = list(paths)
    root = folder.absolute().parent.resolve()
    names = _names(root)
    times = Counter(path.name for path in paths)
    own = [path for path in paths if path.absolute().parent.resolve() == root / "exercises"]
    return {path.name: digest(path) for path in own if path.stem in names and times[path.name] == 1}


def are_one_learners(paths: Iterable[Path], folder: Path) -> bool:
    """Return whether these notebooks belong to one learner and not to a class.

    A learner's notebooks all lie in exercises/ beside the folder of grades, or in exercises/ of the current folder, as
    on a CI runner in a student's repository. There is at most one for each day, besides JupyterLab's copies of it.

    Args:
        folder: folder of grades.
    """
    paths = list(paths)
    stems = {path.stem for path in paths}
    homes = {path.absolute().parent.resolve() for path in paths}
    roots = folder.absolute().parent.resolve(), Path.cwd().resolve()
    root = next((root for root in roots if homes == {root / "exercises"}), None)
    own = stems & (_names(root) | _names(WORK_FOLDER)) if root else set()
    return bool(own) and {re.sub(r"-Copy\d+$", "", stem) for stem in stems} <= own


def note_progress(graded: Iterable[Graded], own_digests: Mapping[str, str], folder: Path) -> str:
    """Write the results of the learner's own exercises into the folder's progress.json; other days stay as they are.

    If a day was graded twice, the last result counts. A notebook that could not be read, or that the machine failed to
    grade, changes nothing.

    Args:
        own_digests: the learner's notebooks, as `own_exercises` returns them.
        folder: folder of grades.

    Returns:
        a sentence for the learner if the old file was damaged and put aside, else an empty string.
    """
    counted = [
        each for each in graded if each.notebook in own_digests and each.day in NUMBERS and not is_ungraded(each)
    ]
    new = {str(each.day): _record(each, own_digests[each.notebook]) for each in counted}
    if not new:
        return ""
    path = folder / RECORD
    warning = ""
    try:
        days = read_record(path)
    except ValueError as error:
        days = {}
        warning = f"{path} {error}; it is kept as {_put_aside(path).name}, and a new one was started"
    record = {"schema": 1, "days": dict(sorted((days | new).items()))}
    write_whole(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return warning


def show_outcome(graded: Iterable[Graded], folder: Path, console: Console) -> None:
    """Print what a learner wants to know after grading: all points, the next exercise, and the feedback pages."""
    progress = read_progress(folder.absolute().parent)
    there = _together(progress)
    console.print(
        f"Together {there.score:g} of {there.points:g} points, {there.done} of {len(there.exercises)} exercises"
    )
    _print_next(progress, console)
    begun = [each for each in graded if each.day is not None and each.exercises and not is_untouched(each)]
    for each in sorted(begun, key=lambda each: each.day or 0):
        console.print(f"Feedback on day {each.day}: {folder / feedback_path(each)}", markup=False, soft_wrap=True)


def show_progress(root: Path, console: Console) -> None:
    """Print the table of days.

    Raises:
        CourseError: if the folder has no exercises, or if the record of grades is damaged.
    """
    progress = read_progress(root)
    if not any(day.exercises for day in progress.days):
        raise CourseError(f"{root.resolve()}: no exercises in exercises/; {folder_advice()}")
    console.print(_table(progress))
    if progress.trouble:
        raise CourseError(progress.trouble)
    if progress.remark:
        console.print(progress.remark, soft_wrap=True)
    else:
        _print_next(progress, console)


def _names(root: Path) -> set[str]:
    """Return the names of the exercise notebooks of all days."""
    return {name for number in NUMBERS if (name := notebook_name(root, number))}


def _print_next(progress: Progress, console: Console) -> None:
    if progress.next is None:
        console.print("Every exercise is done.")
        return
    day, exercise = progress.next
    what = f"day {day.number}, {exercise.title} ({exercise.minutes} minutes)"
    console.print(f"Next: {what}, in exercises/{day.name}.ipynb", markup=False, soft_wrap=True)


def _record(graded: Graded, answers: str) -> dict:
    return {
        "notebook": graded.notebook,
        "answers": answers,
        "graded": datetime.now(UTC).isoformat(timespec="seconds"),
        "exercises": {
            each.id: {"status": each.status, "score": each.score, "max_score": each.max_score}
            for each in graded.exercises
        },
    }


def _put_aside(path: Path) -> Path:
    """Rename a damaged record to the first free name beside it."""
    for number in count(1):
        aside = path.with_name(f"{path.stem}-damaged-{number}{path.suffix}")
        if not os.path.lexists(aside):
            return path.rename(aside)
    raise AssertionError("there is always a free name")


def _table(progress: Progress) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True)
    done, points, *_ = _row(_together(progress))
    table.add_column("day", justify="right", no_wrap=True)
    table.add_column("", "together", no_wrap=True)
    for name, footer in (
        ("exercises", done),
        ("points", points),
        ("left, with\nthe lesson", duration(progress.minutes_left)),
    ):
        table.add_column(name, footer, justify="right", no_wrap=True)
    table.add_column("last graded")
    for day in progress.days:
        cells = _row(day) if day.exercises else ("", "", "", "planned" if not day.name else "no exercises here")
        table.add_row(f"{day.number}", day.title, *cells, style=None if day.exercises else "dim")
    return table


def _together(progress: Progress) -> DayProgress:
    """Return all exercises of the course as if they belonged to one day."""
    return DayProgress(0, "", exercises=tuple(each for day in progress.days for each in day.exercises))


def _row(day: DayProgress) -> tuple[str, str, str, str]:
    when = day.graded.astimezone().strftime("%Y-%m-%d %H:%M") if day.graded else "never"
    when += ", changed since" if day.changed else ""
    done = f"{day.done} of {len(day.exercises)}"
    points = f"{day.score:g} of {day.points:g}"
    return done, points, duration(sum(day.remaining.values())), when
