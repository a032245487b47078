"""A class is graded: many submissions at once, each result kept as it comes, so that nothing is graded twice."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from course_utils.checks.exercise import days_with_exercises

from .collect import Submission
from .confinement import Confinement
from .errors import CourseError
from .feedback import write_feedback
from .grade import Graded, Settings, day_in_name
from .gradebook import ungraded
from .plugin import Result
from .submission import Unreadable
from .workers import Kernels, Paper, Watcher, grade_here, grade_paper, unreadable
from .writing import write_whole

KEPT = ".results"


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
    submissions: Sequence[Submission],
    settings: Settings | None = None,
    *,
    out: Path | None = None,
    jobs: int = 1,
    dask: str | None = None,
    again: bool = False,
    on_graded: Callable[[Graded], None] | None = None,
    watcher: Watcher | None = None,
) -> ClassResult:
    """Grade many submissions. What one of them holds or does is its own result and no other's.

    out: a folder. Each result is kept there as it comes, so that a run that was interrupted is taken up again and an
    unchanged submission is not graded twice, and each student's page of feedback is written. again: use nothing that
    an earlier run kept. jobs: how many worker processes. dask: the address of a scheduler whose workers grade instead.
    on_graded: called with each result as it comes. watcher: hears what is done on the way, but not on a cluster.
    Raises CourseError when the cluster cannot be used.
    """
    settings, watcher = settings or Settings(), watcher or Watcher()
    kernels = Kernels(settings)

    def run(papers: Iterator[Paper]) -> Iterator[tuple[Paper, Graded]]:
        if dask:
            from .cluster import grade_there

            return grade_there(papers, settings, dask)
        if len(submissions) == 1:
            return ((p, grade_paper(p, kernels.settings(), partial(watcher.on_result, p))) for p in papers)
        return grade_here(papers, kernels, min(jobs, len(submissions)), watcher)

    with ExitStack() as stack:
        stack.callback(kernels.close)
        folder = out / KEPT if out else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="course_kept_")))
        room = _Room(submissions, settings, KeptResults(folder, again), out, on_graded)
        copies: list[int] = []
        for papers in (room.papers(range(len(submissions)), copies), room.papers(copies)):
            with closing(run(papers)) as finished:
                for paper, graded in finished:
                    room.finish(paper, graded)
    return ClassResult([room.graded[place] for place in range(len(submissions))], room.reused, kernels.confinement)


class KeptResults:
    """Results with the students' code, in a folder: a file each, named by its key. What else lies there is ignored."""

    def __init__(self, folder: Path, again: bool = False):
        self.folder, self.again = folder, again
        self.written: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Graded | None:
        """The result under a key, or None. With `again`, only what was put here since."""
        if self.again and key not in self.written:
            return None
        try:
            kept = json.loads((self.folder / f"{key}.json").read_bytes())
            record = kept["graded"]
            if kept["checksum"] != _checksum(key, record):
                return None
            return Graded(**record | {"exercises": tuple(Result(**each) for each in record["exercises"])})
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None

    def put(self, key: str, graded: Graded) -> None:
        """Keep a result, whole or not at all; but none that may be different next time."""
        if ungraded(graded):
            return
        record = graded.as_record() | {"answers": dict(graded.answers)}
        text = json.dumps({"checksum": _checksum(key, record), "graded": record})
        write_whole(self.folder / f"{key}.json", text)
        self.written.add(key)


def result_key(data: bytes, day: int | None, settings: Settings) -> str:
    """What decides over a result, as a hash: the submission, the official side of its day, the limits and the time.

    day: None when only the cells tell it; then every day's official side counts. Raises CourseError when there are no
    exercises for the day.
    """
    days = settings.official.days() if day is None else [day]
    official = {each: settings.official.digest(each) for each in days}
    decisive = [hashlib.sha256(data).hexdigest(), day, official, asdict(settings.limits), settings.seconds]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Room:
    """The submissions of a class on their way to results."""

    def __init__(self, submissions, settings, kept, out, on_graded):
        self.submissions, self.settings, self.kept, self.out = submissions, settings, kept, out
        self.on_graded = on_graded
        self.graded: dict[int, Graded] = {}
        self.reused = 0
        self.given: set[str] = set()

    def papers(self, places: Iterable[int], copies: list[int] | None = None) -> Iterator[Paper]:
        """The submissions that must be run. Those with a kept result, or nothing to run, are finished on the way.

        copies: receives the places of those that equal one given out before, to be asked for once that is finished.
        """
        for place in places:
            paper = self._read(place)
            if paper is None:
                continue
            if kept := self.kept.get(paper.key):
                self.reused += 1
                self._publish(place, replace(kept, student=paper.student, notebook=paper.name, lms_id=paper.lms_id))
            elif copies is not None and paper.key in self.given:
                copies.append(place)
            else:
                self.given.add(paper.key)
                yield paper

    def finish(self, paper: Paper, graded: Graded) -> None:
        """Take in the result of a paper that was run."""
        self.kept.put(paper.key, graded)
        self._publish(paper.place, graded)

    def _read(self, place: int) -> Paper | None:
        submission, day = self.submissions[place], self.submissions[place].day
        if day is None and (told := day_in_name(submission.name)) in days_with_exercises():
            day = told
        paper = Paper(place, submission.student, submission.name, day, lms_id=submission.lms_id)
        try:
            data = submission.read()
            return replace(paper, data=data, key=result_key(data, day, self.settings))
        except Unreadable as why:
            self._publish(place, unreadable(paper, self.settings, str(why)))
        except CourseError as why:
            self._publish(place, unreadable(paper, self.settings, f"{paper.name}: {why}"))
        return None

    def _publish(self, place: int, graded: Graded) -> None:
        self.graded[place] = replace(graded, answers={})
        if self.out:
            write_feedback(graded, self.settings.official, self.out)
        if self.on_graded:
            self.on_graded(graded)


def _checksum(key: str, record: dict) -> str:
    return hashlib.sha256((key + json.dumps(record, sort_keys=True)).encode()).hexdigest()
