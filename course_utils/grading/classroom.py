"""Grade many submissions at once, and keep each result as it comes, so that nothing is graded twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from course_utils.errors import CourseError, Unreadable
from course_utils.grading.intake.answers import longer_code
from course_utils.grading.intake.collect import Submission
from course_utils.grading.reports.feedback import write_feedback
from course_utils.grading.result_cache import STORE, StoredResults, result_key
from course_utils.grading.results import Graded, Settings
from course_utils.grading.workers import (
    Callbacks,
    Finished,
    SharedKernelServer,
    as_unreadable,
    grade_here,
    grade_safely,
)
from course_utils.sandbox.confinement import Confinement


@dataclass(frozen=True)
class ClassResult:
    """The results of a class, without the students' code.

    Attributes:
        graded: results in the order of the submissions.
        reused: number of results that come from an earlier run or from an identical submission.
        confinement: how student code was confined, if this process knows; not part of any grade.
    """

    graded: list[Graded]
    reused: int
    confinement: Confinement | None = None

    @property
    def notes(self) -> list[str]:
        """Lines about the run, for a report."""
        return [str(self.confinement)] if self.confinement else []


def grade_class(
    submissions: Sequence[Submission], settings: Settings | None = None, callbacks: Callbacks | None = None
) -> ClassResult:
    """Grade many submissions. Whatever one of them contains or does affects only its own result.

    Args:
        submissions: submissions as `collect` finds them.
        settings: how to grade. Each result and each student's feedback page is written into its folder `out` as soon
            as it is ready, so that an interrupted run can go on and an unchanged submission is not graded twice.
        callbacks: callbacks that report the progress.

    Returns:
        the results in the order of the submissions.

    Raises:
        CourseError: if the cluster cannot be used.
    """
    settings = settings or Settings()
    callbacks = callbacks or Callbacks()
    kernel_server = SharedKernelServer(settings)

    def run(queue: Iterator[Submission]) -> Finished:
        if settings.dask:
            from course_utils.grading.cluster import grade_there

            return grade_there(queue, settings, settings.dask)
        if len(submissions) == 1:
            return (
                (each, grade_safely(each, kernel_server.settings(), partial(callbacks.on_result, each)))
                for each in queue
            )
        return grade_here(queue, kernel_server, min(settings.jobs, len(submissions)), callbacks)

    with ExitStack() as stack:
        stack.callback(kernel_server.close)
        folder = settings.out or Path(stack.enter_context(TemporaryDirectory(prefix="course_kept_")))
        class_run = ClassRun(settings, StoredResults(folder / STORE, settings.ignore_stored), callbacks)
        # The first queue fills `copies` while `run` consumes it, with submissions that equal one still being graded.
        # The second queue is read only after that, when their results are stored.
        copies: list[Submission] = []
        placed = (replace(each, place=place) for place, each in enumerate(submissions))
        for queue in (class_run.queue(placed, copies), class_run.queue(copies)):
            with closing(run(queue)) as finished:
                for submission, graded in finished:
                    class_run.finish(submission, graded)
    graded_in_order = [class_run.graded[place] for place in range(len(submissions))]
    return ClassResult(graded_in_order, class_run.reused, kernel_server.confinement)


class ClassRun:
    """The state of one run: the submissions of a class on their way to results."""

    def __init__(self, settings: Settings, stored: StoredResults, callbacks: Callbacks):
        self.settings = settings
        self.stored = stored
        self.callbacks = callbacks
        self.graded: dict[int, Graded] = {}
        self.reused = 0
        self.queued: set[str] = set()

    def queue(self, submissions: Iterable[Submission], copies: list[Submission] | None = None) -> Iterator[Submission]:
        """Read the submissions and yield those that must be graded.

        A submission that has a kept result or cannot be read is finished here and not yielded.

        Args:
            copies: receives the submissions that equal one yielded before; queue them once that one is finished.
        """
        for each in submissions:
            stored = self.stored.get(each.key) if each.key else None  # only a copy has its key already
            submission = each if stored else self._with_key(each)
            if submission is None:
                continue
            if stored := stored or self.stored.get(submission.key):
                self.reused += 1
                self._publish(submission, stored)
            elif copies is not None and submission.key in self.queued:
                copies.append(replace(submission, data=None))
            else:
                self.queued.add(submission.key)
                yield submission

    def finish(self, submission: Submission, graded: Graded) -> None:
        """Keep and publish the result of a submission that was graded."""
        self.stored.put(submission.key, graded)
        self._publish(submission, graded)

    def _with_key(self, submission: Submission) -> Submission | None:
        """Return the submission with its content and its key; publish it and return None if it cannot be read."""
        try:
            data = submission.read()
            return replace(submission, data=data, key=result_key(data, submission.day, self.settings))
        except Unreadable as why:
            self._publish(submission, as_unreadable(submission, self.settings, str(why)))
        except CourseError as why:
            self._publish(submission, as_unreadable(submission, self.settings, f"{submission.name}: {why}"))
        return None

    def _publish(self, submission: Submission, graded: Graded) -> None:
        graded = replace(graded, student=submission.student, notebook=submission.name, lms_id=submission.lms_id)
        graded = replace(graded, back=submission.back, late=submission.late, shared=submission.shared)
        graded = replace(graded, alike=longer_code(graded.answers))
        self.graded[submission.place] = replace(graded, answers={})
        if self.settings.out:
            write_feedback(graded, self.settings.answer_key, self.settings.out)
        self.callbacks.on_graded(graded)
