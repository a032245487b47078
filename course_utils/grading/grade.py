"""Grade notebooks: read, settle what needs no kernel, run the rest through pytest and nbval, collect the results."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from course_utils.authoring.official import Question, checks_of
from course_utils.checks.judge.exercises import days_with_exercises
from course_utils.checks.judge.verdict import Verdict
from course_utils.course import day_of
from course_utils.errors import PutOff, Unreadable
from course_utils.grading.intake.answers import day_in_cells, read_answers
from course_utils.grading.intake.collect import Submission
from course_utils.grading.plugin import PATIENT, GradePlugin, GradeRequest
from course_utils.grading.results import Graded, Handed, Result, Settings


def grade_notebook(
    path: Path,
    *,
    day: int | None = None,
    student: str | None = None,
    settings: Settings | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Graded:
    """Grade one notebook file; see `grade_submission`.

    day: by default the one that the file's name or cells tell. student: by default the file's name.
    """
    return grade_submission(Submission(student or path.stem, path, day), settings, on_result)


def grade_submission(
    submission: Handed,
    settings: Settings | None = None,
    on_result: Callable[[Result], None] | None = None,
    *,
    hurry: bool = False,
    known: Iterable[Result] = (),
) -> Graded:
    """Grade one submission. It is only read; what it holds can fail exercises but raises nothing here.

    hurry: raise PutOff when it takes long; the results that come with it may be given as `known` when it is graded on.
    Raises CourseError when there are no exercises for the day.
    """
    settings, began = settings or Settings(), time.monotonic()
    official = settings.official
    student, notebook, lms_id = submission.student, submission.name, submission.lms_id
    day, questions = submission.day, list[Question]()
    if day is None and (told := day_of(submission.name)) in days_with_exercises():
        day = told
    try:
        if day is not None:
            questions = official.questions(day)
        data = submission.read()
        day = day_in_cells(data, submission.name, official) if day is None else day
        questions = official.questions(day)
        answers = read_answers(data, submission.name, questions, official.given_names(day))
    except Unreadable as why:
        full = sum(question.points for question in questions)
        return Graded(student, notebook, day, "unreadable", 0.0, full, _since(began), message=str(why), lms_id=lms_id)
    missing = Verdict("missing", 0.0, "Not answered.")
    prejudged = {each.grade_id: missing for each in questions if each.grade_id not in answers}
    prejudged |= {each.id: _verdict(each) for each in known}
    request = GradeRequest(
        day,
        official.notebook(day),
        answers,
        prejudged,
        settings.limits,
        settings.seconds,
        settings.start,
        official.seeds(day),
        hurry,
        settings.log,
        submission.student,
    )
    found = run_request(request, on_result)
    if hurry and len(found) < len(questions) and sum(each.status == "timeout" for each in found.values()) >= PATIENT:
        raise PutOff(tuple(found.values()))
    results = tuple(
        found.get(q.grade_id) or Result(q.grade_id, "error", 0.0, q.points, "It was not graded.", machine_failed=True)
        for q in questions
    )
    status = "passed" if all(result.status == "passed" for result in results) else "failed"
    score = round(sum(result.score for result in results), 4)
    full = sum(question.points for question in questions)
    about = (student, notebook, day, status, score, full, _since(began))
    return Graded(*about, exercises=results, answers=answers, lms_id=lms_id)


def run_request(request: GradeRequest, on_result: Callable[[Result], None] | None = None) -> dict[str, Result]:
    """Run a request through pytest and nbval in this process, and return the results by grade_id.

    No conftest, plugin or setting from a submission's folder takes part: pytest sees one file in a folder of ours.
    """
    plugin = GradePlugin(request, on_result)
    if request.prejudged.keys() >= checks_of(request.official).keys():
        return {grade_id: _unrun(request, grade_id, verdict) for grade_id, verdict in request.prejudged.items()}
    with tempfile.TemporaryDirectory(prefix="course_pytest_") as folder, _quiet():
        book = Path(folder, f"day{request.day}.ipynb")
        book.touch()
        own = [f"--rootdir={folder}", f"--confcutdir={folder}"]  # nothing is looked for above it
        ended = pytest.main(
            [*PYTEST_OPTIONS, *own, f"--nbval-cell-timeout={request.limits.cell_seconds}", str(book)],
            [plugin],
        )
    if ended == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return plugin.results


UNUSED = (  # plugins of pytest's own: to register them all takes a tenth of a notebook's time
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


def _verdict(result: Result) -> Verdict:
    share = result.score / result.max_score if result.max_score else 0.0
    return Verdict(result.status, share, result.message, result.misconception)


def _unrun(request: GradeRequest, grade_id: str, verdict: Verdict) -> Result:
    points = float(checks_of(request.official)[grade_id].metadata.nbgrader.points)
    return Result(grade_id, verdict.status, 0.0, points, verdict.message, verdict.misconception)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep pytest's own report off the terminal, and settings in the environment away from it."""
    kept = {name: os.environ.pop(name) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if name in os.environ}
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.environ.update(kept)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 2)
