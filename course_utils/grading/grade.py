"""Grade notebooks: read answers, settle what needs no kernel, run the rest with pytest and nbval, collect results."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from course_utils.answer_key.key import OfficialExercise, checks_of
from course_utils.checks.cells import MAX_CELL_LENGTH
from course_utils.checks.judge.review import lines_to_review
from course_utils.checks.judge.verdict import Verdict
from course_utils.errors import PutOff, Unreadable
from course_utils.grading.intake.answers import day_in_cells, read_answers
from course_utils.grading.intake.collect import Submission
from course_utils.grading.intake.names import known_day
from course_utils.grading.intake.submitted_notebook import SubmittedNotebook, read_notebook
from course_utils.grading.notebook.notebook_kernels import PATIENT
from course_utils.grading.notebook.plugin import GradePlugin
from course_utils.grading.results import Graded, Result, Settings


def grade_notebook(
    path: Path,
    *,
    day: int | None = None,
    student: str | None = None,
    settings: Settings | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Graded:
    """Grade one notebook file; see `grade_submission`.

    Args:
        day: by default the day that the file's name or its cells tell.
        student: by default the file's name without its ending.
    """
    submission = Submission(student or path.stem, path, day or known_day(path.name))
    return grade_submission(submission, settings, on_result)


def grade_submission(
    submission: Submission, settings: Settings | None = None, on_result: Callable[[Result], None] | None = None
) -> Graded:
    """Grade one submission. Its file is only read; its content can fail exercises but raises nothing here.

    Args:
        submission: if its day is None, its cells tell the day. The results in its `known` are not graded again.
        settings: how to grade.
        on_result: called with each result as it comes.

    Returns:
        the grade, with the student's answers.

    Raises:
        PutOff: if the settings defer slow notebooks and this one takes long. Pass its results as `known` later.
        CourseError: if there are no exercises for the day.
    """
    settings = settings or Settings()
    began = time.monotonic()
    answer_key = settings.answer_key
    name = submission.name
    day = submission.day
    graded = partial(Graded, student=submission.student, notebook=name, lms_id=submission.lms_id)
    official = list[OfficialExercise]()  # none as long as the day is not known
    # the answers; a file without readable ones gets no points, of as many as its day has if that is known
    try:
        if day is not None:
            official = answer_key.exercises(day)
        notebook = read_notebook(submission.read(), name)
        day = day_in_cells(notebook, answer_key) if day is None else day
        official = answer_key.exercises(day)
        answers = read_answers(notebook, official)
    except Unreadable as why:
        full = sum(exercise.points for exercise in official)
        seconds = _seconds_since(began)
        return graded(day=day, status="unreadable", score=0.0, max_score=full, seconds=seconds, message=str(why))
    # the exercises that need no kernel: those without an answer, and those that were graded before it was put off
    missing = [each.grade_id for each in official if each.grade_id not in answers]
    settled = _verdicts_on_missing(missing, notebook)
    for each in submission.known:
        share = each.score / each.max_score if each.max_score else 0.0
        settled[each.id] = Verdict(each.status, share, each.message, each.mistake)
    # all the others; a notebook that runs out of time again and again waits until the rest of the class is graded
    results = run_notebook(replace(submission, day=day, answers=answers), settings, settled, on_result)
    timeouts = sum(each.status == "timeout" for each in results.values())
    if settings.defer_slow and timeouts >= PATIENT and len(results) < len(official):
        raise PutOff(tuple(results.values()))
    # the grade, from one result for each exercise, with the lines to review; the machine failed where there was none
    graded_exercises = []
    for exercise in official:
        not_graded = Verdict("error", 0.0, "It was not graded.")
        ungraded = Result.of(exercise.grade_id, exercise.points, not_graded, machine_failed=True)
        review = lines_to_review(answers.get(exercise.grade_id, ""))
        graded_exercises.append(replace(results.get(exercise.grade_id, ungraded), review=review))
    status = "passed" if all(result.status == "passed" for result in graded_exercises) else "failed"
    score = round(sum(result.score for result in graded_exercises), 4)
    full = sum(exercise.points for exercise in official)
    return graded(
        day=day,
        status=status,
        score=score,
        max_score=full,
        seconds=_seconds_since(began),
        exercises=tuple(graded_exercises),
        answers=answers,
    )


def _verdicts_on_missing(missing: Sequence[str], notebook: SubmittedNotebook) -> dict[str, Verdict]:
    """Return the verdicts on exercises without an answer; a cell that is too long to be read is named as the reason."""
    verdicts = {}
    for grade_id in missing:
        size = notebook.too_long.get(grade_id, 0)
        message = f"Not read: its cell has {size:,} characters, but only {MAX_CELL_LENGTH:,} are read."
        verdicts[grade_id] = Verdict("missing", 0.0, message if size else "Not answered.")
    return verdicts


def run_notebook(
    submission: Submission,
    settings: Settings,
    settled: Mapping[str, Verdict],
    on_result: Callable[[Result], None] | None = None,
) -> dict[str, Result]:
    """Run the answers of a submission with pytest and nbval in this process.

    pytest sees one file in a temporary folder, so no conftest, plugin or setting from a submission's folder counts.

    Args:
        submission: with its day and its answers.
        settings: how to grade.
        settled: verdicts that need no kernel, by grade_id.
        on_result: called with each result as it comes.

    Returns:
        the results by grade_id.
    """
    plugin = GradePlugin(submission, settings, settled, on_result)
    checks = checks_of(plugin.notebook)
    if settled.keys() >= checks.keys():
        return {
            grade_id: Result.of(grade_id, float(check.metadata.nbgrader.points), settled[grade_id])
            for grade_id, check in checks.items()
        }
    with tempfile.TemporaryDirectory(prefix="course_pytest_") as folder, _hide_pytest():
        book = Path(folder, f"day{submission.day}.ipynb")
        book.touch()
        own = [f"--rootdir={folder}", f"--confcutdir={folder}"]  # so that pytest looks for nothing above the folder
        ended = pytest.main(
            [*PYTEST_OPTIONS, *own, f"--nbval-cell-timeout={settings.limits.cell_seconds}", str(book)],
            [plugin],
        )
    if ended == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return plugin.results


UNUSED = (  # plugins of pytest's own; registering them all would take a tenth of a notebook's time
    *("cacheprovider", "debugging", "doctest", "faulthandler", "junitxml", "logging", "monkeypatch", "pastebin"),
    *("recwarn", "setuponly", "setupplan", "skipping", "stepwise", "subtests", "threadexception"),
    *("tmpdir", "unittest", "unraisableexception", "warnings"),
)
PYTEST_OPTIONS = (
    "--disable-plugin-autoload",
    "--noconftest",
    "--capture=no",
    "--color=no",
    "-c",
    os.devnull,
    "-p",
    "nbval.plugin",
    *(f"-pno:{name}" for name in UNUSED),
)


@contextlib.contextmanager
def _hide_pytest() -> Iterator[None]:
    """Hide pytest's own report from the terminal, and hide settings in the environment from pytest."""
    hidden = {name: os.environ.pop(name) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if name in os.environ}
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.environ.update(hidden)


def _seconds_since(began: float) -> float:
    return round(time.monotonic() - began, 2)
