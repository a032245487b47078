"""The settings for grading, and the results of a submission and of each exercise in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.checks.judge.verdict import Verdict
from course_utils.errors import one_line
from course_utils.sandbox.limits import Limits, Start
from course_utils.time_limits import NOTEBOOK_SECONDS, WORKER_SECONDS


@dataclass(frozen=True)
class Settings:
    """How to grade.

    Attributes:
        answer_key: the exercises and right answers: the course's own, or a grader's bundle.
        limits: limits of each kernel.
        seconds: seconds of work for a whole notebook.
        start: how kernels start, and how far they are confined.
        log: a file that records what each kernel was asked, what came back and how it ended; none by default.
        out: the folder for reports, where results are kept as they come. Without one they are shown and not kept.
        jobs: how many processes grade.
        dask: the address of a Dask scheduler whose workers grade instead.
        ignore_stored: whether to ignore the results that an earlier run kept in `out`.
        defer_slow: whether to put off a notebook in which PATIENT exercises ran out of time.
        worker_cpu_seconds: seconds of a worker's processor time for one submission, beside its kernels; most take one.
    """

    answer_key: AnswerKey = COURSE
    limits: Limits = field(default_factory=Limits)
    seconds: float = NOTEBOOK_SECONDS
    start: Start = field(default_factory=Start)
    log: str = ""
    out: Path | None = None
    jobs: int = 1
    dask: str | None = None
    ignore_stored: bool = False
    defer_slow: bool = False
    worker_cpu_seconds: int = int(WORKER_SECONDS)


@dataclass(frozen=True)
class Result:
    """The result of one exercise; its status is that of a `checks.judge.verdict.Verdict`."""

    id: str
    status: str
    score: float
    max_score: float
    message: str = ""
    mistake: str | None = None
    review: str = ""  # lines of the answer that a teacher should look at, see `checks.judge.review`
    machine_failed: bool = False  # no verdict, because the grading machine failed; not in grades.json

    @classmethod
    def of(cls, grade_id: str, points: float, verdict: Verdict, machine_failed: bool = False) -> Result:
        """Return the result of an exercise worth `points`: the verdict's share of them, rounded to hundredths."""
        score = round(points * min(max(verdict.share, 0.0), 1.0), 2)
        message = one_line(verdict.message)
        return cls(grade_id, verdict.status, score, points, message, verdict.mistake, machine_failed=machine_failed)

    def as_record(self) -> dict:
        """Return the exercise as it stands in `grades.json`, where its mistake is called a misconception."""
        optional = {"machine_failed"} if self.review else {"machine_failed", "review"}
        record = {name: value for name, value in asdict(self).items() if name not in optional}
        return {("misconception" if name == "mistake" else name): value for name, value in record.items()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Result:
        """Return the exercise that `as_record` wrote. Raises TypeError if it did not write it."""
        return cls(**{("mistake" if name == "misconception" else name): value for name, value in dict(record).items()})


@dataclass(frozen=True)
class Graded:
    """A graded submission.

    Attributes:
        status: "passed" if every exercise passed, else "failed"; "unreadable" if there was nothing to grade.
        seconds: time that the grading took.
        message: why it is unreadable.
        answers: the student's code by grade_id, for the feedback page.
        lms_id: Moodle's or Canvas's number, for the gradebook.
        back: where feedback goes back to, as in `intake.collect.Submission`; not in grades.json.
        late: whether the submission was late, see `intake.late`.
        how_late: what the gradebook says about it; not in grades.json.
        shared: as in `intake.collect.Submission`; not in grades.json.
        alike: what two submissions share whose longer answers are all equal; "" where it would say nothing, and not in
            grades.json.
    """

    student: str
    notebook: str
    day: int | None
    status: str
    score: float
    max_score: float
    seconds: float
    exercises: tuple[Result, ...] = ()
    message: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    lms_id: str = ""
    back: str = ""
    late: bool = False
    how_late: str = ""
    shared: str = ""
    alike: str = ""

    def as_record(self) -> dict:
        """Return the submission as it stands in `grades.json`."""
        optional = {"message", "lms_id", "late"}
        inner = {"answers", "back", "alike", "shared", "how_late"}
        record = {k: v for k, v in asdict(self).items() if k not in inner and (v or k not in optional)}
        record["exercises"] = [result.as_record() for result in self.exercises]
        return record


def is_ungraded(graded: Graded) -> bool:
    """Return whether an answer has no verdict, because the file could not be read or the grading machine failed."""
    return graded.status == "unreadable" or any(result.machine_failed for result in graded.exercises)
