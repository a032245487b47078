"""Grade notebooks: read, settle what needs no kernel, run the rest through pytest and nbval, collect the results."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from course_utils.checks.evidence import use_keys
from course_utils.checks.exercise import days_with_exercises
from course_utils.checks.verdict import Verdict

from .collect import Submission
from .kernel import Limits, Start
from .official import COURSE, Official, checks_of
from .plugin import PATIENT, GradePlugin, Job, Result
from .submission import Unreadable, days_of, read_answers


@dataclass(frozen=True)
class Graded:
    """A graded submission. status: passed when every exercise is, failed when not, unreadable when there was nothing
    to grade; then `message` says why."""

    student: str
    notebook: str
    day: int | None
    status: str
    score: float
    max_score: float
    seconds: float
    exercises: tuple[Result, ...] = ()
    message: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)  # the student's code, for the page of feedback
    lms_id: str = ""  # Moodle's or Canvas's number, for the gradebook

    def as_record(self) -> dict:
        """The submission as `grades.json` holds it."""
        optional = {"message", "lms_id"}
        record = {k: v for k, v in asdict(self).items() if k != "answers" and (v or k not in optional)}
        record["exercises"] = [asdict(result) for result in self.exercises]
        return record


@dataclass(frozen=True)
class Settings:
    """How to grade. seconds: of work, for a whole notebook. start: how kernels start, and how far they are confined."""

    official: Official = COURSE
    limits: Limits = field(default_factory=Limits)
    seconds: float = 300.0
    start: Start = field(default_factory=Start)


class PutOff(Exception):
    """A submission that is to wait until others are graded: PATIENT of its exercises ran out of time.

    results: of the exercises graded so far.
    """

    def __init__(self, results: tuple[Result, ...]):
        super().__init__(results)  # as it is sent from a worker
        self.results = results


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
    submission: Submission,
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
    about = {"student": submission.student, "notebook": submission.name, "status": "unreadable", "score": 0.0}
    about["lms_id"] = submission.lms_id
    day, questions = submission.day, []
    if day is None and (told := day_in_name(submission.name)) in days_with_exercises():
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
        return Graded(**about, day=day, max_score=full, seconds=_since(began), message=str(why))
    missing = Verdict("missing", 0.0, "Not answered.")
    settled = {each.grade_id: missing for each in questions if each.grade_id not in answers}
    settled |= {each.id: _verdict(each) for each in known}
    job = Job(
        day,
        official.notebook(day),
        answers,
        settled,
        settings.limits,
        settings.seconds,
        settings.start,
        official.keys(day),
        hurry,
    )
    use_keys(day, official.keys(day))  # what is compared here must be drawn as in the kernel
    try:
        found = run_job(job, on_result)
    finally:
        use_keys(day, {})
    if hurry and len(found) < len(questions) and sum(each.status == "timeout" for each in found.values()) >= PATIENT:
        raise PutOff(tuple(found.values()))
    results = tuple(
        found.get(q.grade_id) or Result(q.grade_id, "error", 0.0, q.points, "It was not graded.") for q in questions
    )
    status = "passed" if all(result.status == "passed" for result in results) else "failed"
    about |= {"status": status, "score": round(sum(result.score for result in results), 4), "day": day}
    full = sum(question.points for question in questions)
    return Graded(**about, max_score=full, seconds=_since(began), exercises=results, answers=answers)


def run_job(job: Job, on_result: Callable[[Result], None] | None = None) -> dict[str, Result]:
    """Run a job through pytest and nbval in this process, and return the results by grade_id.

    No conftest, plugin or setting from a submission's folder takes part: pytest sees one file in a folder of ours.
    """
    plugin = GradePlugin(job, on_result)
    if job.settled.keys() >= checks_of(job.official).keys():
        return {grade_id: _unrun(job, grade_id, verdict) for grade_id, verdict in job.settled.items()}
    with tempfile.TemporaryDirectory(prefix="course_pytest_") as folder, _quiet():
        book = Path(folder, f"day{job.day}.ipynb")
        book.touch()
        own = [f"--rootdir={folder}", f"--confcutdir={folder}"]  # nothing is looked for above it
        ended = pytest.main(
            [*PYTEST_OPTIONS, *own, f"--nbval-cell-timeout={job.limits.cell_seconds}", str(book)],
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


DAY_IN_NAME = re.compile(r"(?<![^\W\d_])day[ _-]?0*(\d{1,3})(?!\d)", re.IGNORECASE)


def day_in_name(name: str) -> int | None:
    """The day that a file's name speaks of: day1_….ipynb is 1, and so are ada_day1.ipynb and Day 01.ipynb."""
    found = DAY_IN_NAME.search(name)
    return int(found[1]) if found else None


def day_in_cells(data: bytes, name: str, official: Official = COURSE) -> int:
    """The day whose exercises are in a notebook. Raises Unreadable when it holds none."""
    if found := days_of(data, name, {day: official.questions(day) for day in official.days()}):
        return found[0]
    raise Unreadable(f"{name}: neither its name nor its cells say which day it is; pass --day")


def _verdict(result: Result) -> Verdict:
    share = result.score / result.max_score if result.max_score else 0.0
    return Verdict(result.status, share, result.message, result.misconception)


def _unrun(job: Job, grade_id: str, verdict: Verdict) -> Result:
    points = float(checks_of(job.official)[grade_id].metadata.nbgrader.points)
    return Result(grade_id, verdict.status, 0.0, points, verdict.message, verdict.misconception)


@contextlib.contextmanager
def _quiet():
    """Keep pytest's own report off the terminal, and settings in the environment away from it."""
    kept = {name: os.environ.pop(name) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if name in os.environ}
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.environ.update(kept)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 2)
