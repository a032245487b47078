"""A class is graded: many submissions at once, each result kept as it comes, so that nothing is graded twice."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from course_utils.checks.judge.exercises import days_with_exercises
from course_utils.course import day_of
from course_utils.errors import CourseError, Unreadable
from course_utils.grading.intake.collect import Submission
from course_utils.grading.kept import KEPT, KeptResults, result_key
from course_utils.grading.reports.feedback import write_feedback
from course_utils.grading.results import Graded, Settings
from course_utils.grading.workers import Job, Kernels, Watcher, as_unreadable, grade_here, grade_job
from course_utils.sandbox.confinement import Confinement

Finished = Generator[tuple[Job, Graded], None, None]  # jobs with their results, as they finish


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

    def run(queue: Iterator[Job]) -> Finished:
        if settings.dask:
            from course_utils.grading.cluster import grade_there

            return grade_there(queue, settings, settings.dask)
        if len(submissions) == 1:
            return ((p, grade_job(p, kernels.settings(), partial(watcher.on_result, p))) for p in queue)
        return grade_here(queue, kernels, min(settings.jobs, len(submissions)), watcher)

    with ExitStack() as stack:
        stack.callback(kernels.close)
        folder = settings.out or Path(stack.enter_context(TemporaryDirectory(prefix="course_kept_")))
        class_run = ClassRun(submissions, settings, KeptResults(folder / KEPT, settings.again), watcher)
        copies: list[int] = []
        for queue in (class_run.queue(range(len(submissions)), copies), class_run.queue(copies)):
            with closing(run(queue)) as finished:
                for job, graded in finished:
                    class_run.finish(job, graded)
    return ClassResult(
        [class_run.graded[place] for place in range(len(submissions))], class_run.reused, kernels.confinement
    )


class ClassRun:
    """The submissions of a class on their way to results."""

    def __init__(self, submissions: Sequence[Submission], settings: Settings, kept: KeptResults, watcher: Watcher):
        self.submissions, self.settings, self.kept, self.watcher = submissions, settings, kept, watcher
        self.graded: dict[int, Graded] = {}
        self.reused = 0
        self.given: set[str] = set()

    def queue(self, places: Iterable[int], copies: list[int] | None = None) -> Iterator[Job]:
        """The submissions that must be run. Those with a kept result, or nothing to run, are finished on the way.

        copies: receives the places of those that equal one given out before, to be asked for once that is finished.
        """
        for place in places:
            job = self._read(place)
            if job is None:
                continue
            if kept := self.kept.get(job.key):
                self.reused += 1
                self._publish(place, replace(kept, student=job.student, notebook=job.name, lms_id=job.lms_id))
            elif copies is not None and job.key in self.given:
                copies.append(place)
            else:
                self.given.add(job.key)
                yield job

    def finish(self, job: Job, graded: Graded) -> None:
        """Take in the result of a job that was run."""
        self.kept.put(job.key, graded)
        self._publish(job.place, graded)

    def _read(self, place: int) -> Job | None:
        submission, day = self.submissions[place], self.submissions[place].day
        if day is None and (told := day_of(submission.name)) in days_with_exercises():
            day = told
        job = Job(place, submission.student, submission.name, day, lms_id=submission.lms_id)
        try:
            data = submission.read()
            return replace(job, data=data, key=result_key(data, day, self.settings))
        except Unreadable as why:
            self._publish(place, as_unreadable(job, self.settings, str(why)))
        except CourseError as why:
            self._publish(place, as_unreadable(job, self.settings, f"{job.name}: {why}"))
        return None

    def _publish(self, place: int, graded: Graded) -> None:
        self.graded[place] = replace(graded, answers={})
        if self.settings.out:
            write_feedback(graded, self.settings.official, self.settings.out)
        self.watcher.on_graded(graded)
