"""A class is graded: many submissions at once, each result kept as it comes, so that nothing is graded twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from course_utils.errors import CourseError, Unreadable
from course_utils.grading.intake.collect import Submission
from course_utils.grading.reports.feedback import write_feedback
from course_utils.grading.result_cache import KEPT, KeptResults, result_key
from course_utils.grading.results import Graded, Settings
from course_utils.grading.workers import Finished, Kernels, Watcher, as_unreadable, grade_here, grade_safely
from course_utils.sandbox.confinement import Confinement


@dataclass(frozen=True)
class ClassResult:
    """Results in the order of the submissions, without the students' code.

    reused: how many were kept from an earlier run, or are those of an identical submission. confinement: how student
    code was held, where it ran and this process knows; no part of a grade.
    """

    graded: list[Graded]
    reused: int
    confinement: Confinement | None = None

    @property
    def notes(self) -> list[str]:
        """What a report says of the run, a line each."""
        return [str(self.confinement)] if self.confinement else []


def grade_class(
    submissions: Sequence[Submission], settings: Settings | None = None, watcher: Watcher | None = None
) -> ClassResult:
    """Grade many submissions. What one of them holds or does is its own result and no other's.

    Args:
        submissions: As `collect` finds them.
        settings: How. In its folder `out` each result is kept as it comes, so that a run that was interrupted is taken
            up again and an unchanged submission is not graded twice, and each student's page of feedback is written.
        watcher: Hears what is done on the way.

    Returns:
        The results in the order of the submissions.

    Raises:
        CourseError: When the cluster cannot be used.
    """
    settings, watcher = settings or Settings(), watcher or Watcher()
    kernels = Kernels(settings)

    def run(queue: Iterator[Submission]) -> Finished:
        if settings.dask:
            from course_utils.grading.cluster import grade_there

            return grade_there(queue, settings, settings.dask)
        if len(submissions) == 1:
            return ((each, grade_safely(each, kernels.settings(), partial(watcher.on_result, each))) for each in queue)
        return grade_here(queue, kernels, min(settings.jobs, len(submissions)), watcher)

    with ExitStack() as stack:
        stack.callback(kernels.close)
        folder = settings.out or Path(stack.enter_context(TemporaryDirectory(prefix="course_kept_")))
        class_run = ClassRun(settings, KeptResults(folder / KEPT, settings.again), watcher)
        copies: list[Submission] = []
        placed = (replace(each, place=place) for place, each in enumerate(submissions))
        for queue in (class_run.queue(placed, copies), class_run.queue(copies)):
            with closing(run(queue)) as finished:
                for submission, graded in finished:
                    class_run.finish(submission, graded)
    graded_in_order = [class_run.graded[place] for place in range(len(submissions))]
    return ClassResult(graded_in_order, class_run.reused, kernels.confinement)


class ClassRun:
    """The submissions of a class on their way to results."""

    def __init__(self, settings: Settings, kept: KeptResults, watcher: Watcher):
        self.settings, self.kept, self.watcher = settings, kept, watcher
        self.graded: dict[int, Graded] = {}
        self.reused = 0
        self.given: set[str] = set()

    def queue(self, submissions: Iterable[Submission], copies: list[Submission] | None = None) -> Iterator[Submission]:
        """The submissions that must be run, as they were read. Those with a kept result, or that cannot be read, are
        finished on the way.

        copies: receives those that equal one given out before, to be asked for once that is finished.
        """
        for each in submissions:
            kept = self.kept.get(each.key) if each.key else None  # a copy has a key
            submission = each if kept else self._read(each)
            if submission is None:
                continue
            if kept := kept or self.kept.get(submission.key):
                self.reused += 1
                whose = replace(kept, student=submission.student, notebook=submission.name, lms_id=submission.lms_id)
                self._publish(submission, whose)
            elif copies is not None and submission.key in self.given:
                copies.append(replace(submission, data=None))
            else:
                self.given.add(submission.key)
                yield submission

    def finish(self, submission: Submission, graded: Graded) -> None:
        """Take in the result of a submission that was run."""
        self.kept.put(submission.key, graded)
        self._publish(submission, graded)

    def _read(self, submission: Submission) -> Submission | None:
        try:
            data = submission.read()
            return replace(submission, data=data, key=result_key(data, submission.day, self.settings))
        except Unreadable as why:
            self._publish(submission, as_unreadable(submission, self.settings, str(why)))
        except CourseError as why:
            self._publish(submission, as_unreadable(submission, self.settings, f"{submission.name}: {why}"))
        return None

    def _publish(self, submission: Submission, graded: Graded) -> None:
        self.graded[submission.place] = replace(graded, answers={})
        if self.settings.out:
            write_feedback(graded, self.settings.official, self.settings.out)
        self.watcher.on_graded(graded)
