"""What `course grade` does: find the submissions, grade them, write the reports, and say how it went."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from course_utils.authoring.official import COURSE, Official
from course_utils.errors import CourseError, TooFewPoints, Unreadable, one_line
from course_utils.grading.classroom import ClassResult
from course_utils.grading.grade import Settings
from course_utils.grading.intake.collect import Found, collect
from course_utils.grading.reports.gradebook import Filled
from course_utils.grading.reports.progress import is_alone, note_progress, own_exercises, show_outcome
from course_utils.grading.reports.report import open_folder, write_gradebook, write_reports
from course_utils.grading.watch import MOST_TABLES, watch_class
from course_utils.sandbox.confinement import open_kernels
from course_utils.sandbox.limits import NOTEBOOK_SECONDS, Limits, Start, cores
from course_utils.sandbox.log import begin_log


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    paths: Sequence[Path]
    """Notebooks, folders or zips of them."""
    day: int | None = None
    """The day they belong to; by default as their names or cells say."""
    out: Path | None = None
    """The folder for reports; without it results are shown and not kept."""
    jobs: int | None = None
    """Processes that grade; by default one a processor."""
    dask: str | None = None
    """The address of a Dask scheduler whose workers grade instead."""
    again: bool = False
    """Use nothing that an earlier run kept in `out`."""
    fail_under: float | None = None
    """The percentage of all points below which TooFewPoints is raised."""
    cell_seconds: float = Limits.cell_seconds
    """Of work, for a cell."""
    notebook_seconds: float = NOTEBOOK_SECONDS
    """Of work, for a notebook."""
    bundle: Path | None = None
    """A grader's bundle in place of the course's own exercises."""
    gradebook: Path | None = None
    """A gradebook that Canvas or Moodle exported, to be filled in."""
    require_confinement: bool = False
    """Grade only where student code can be confined fully."""
    cold: bool = False
    """Start each kernel afresh."""
    log: Path | None = None
    """A file for what each kernel was asked, what came back and how it ended."""


def run(request: Request) -> None:
    """Grade as asked: results go to standard output and into `out`, what a person should know to standard error.

    Raises CourseError where something given is not right, KeyboardInterrupt when it was stopped, Unreadable for the
    last of notebooks given one by one that cannot be read, TooFewPoints below `fail_under`.
    """
    settings = _settings(request)
    submissions = _find(request)
    paths = [each.path for each in submissions]
    own = own_exercises(paths, request.out) if request.out else {}
    alone = request.out is not None and not (request.bundle or request.gradebook) and is_alone(paths, request.out)
    for note in submissions.notes:
        _say(note)
    if not submissions:
        raise CourseError(f"{' '.join(map(str, request.paths))}: no notebooks there")
    one_by_one = all(path.suffix.lower() != ".zip" and not path.is_dir() for path in request.paths)
    result = watch_class(
        submissions,
        settings,
        one_by_one and len(submissions) <= MOST_TABLES,
        out=request.out,
        jobs=request.jobs or cores(),
        dask=request.dask,
        again=request.again,
    )
    if result.confinement and not result.confinement.full:
        _say(str(result.confinement))
    if request.out:
        _write(request, request.out, settings.official, result, own, alone)
    unreadable = [each.message for each in result.graded if each.status == "unreadable"]
    if one_by_one and unreadable:  # in a class it is a result like others
        for message in unreadable[:-1]:
            _say(message)
        raise Unreadable(unreadable[-1])
    _verify_points(request, result)


def _settings(request: Request) -> Settings:
    """How to grade; all that is wrong with what was asked for is raised here, before anything is read."""
    official = Official(request.bundle) if request.bundle else COURSE
    if request.bundle and not official.days():
        raise CourseError(
            f"{request.bundle}: not a grader's bundle; give the folder `grader` that `course release` wrote"
        )
    named = [path for path in request.paths if path.suffix.lower() == ".zip"]
    for path in [*named, *([request.gradebook] if request.gradebook else [])]:
        if not path.exists():
            raise CourseError(f"{path}: no such file")
    start = Start("full" if request.require_confinement else Start.confinement, warm=not request.cold)
    if request.require_confinement and request.cold and not request.dask:
        open_kernels("full", warm=False).close()  # raises here, not for each kernel
    if request.day is not None:
        official.path(request.day)  # raises where there is no such day
    if request.out:
        open_folder(request.out)
    settings = Settings(official, Limits(cell_seconds=request.cell_seconds), request.notebook_seconds, start)
    return replace(settings, log=begin_log(request.log)) if request.log else settings


def _find(request: Request) -> Found:
    with Console(stderr=True).status("reading the submissions") as status:

        def show(student: str) -> None:
            status.update(f"reading what {escape(one_line(student, 60))} handed in")

        return collect(list(request.paths), request.day, show)


def _write(
    request: Request, out: Path, official: Official, result: ClassResult, own: dict[str, str], alone: bool
) -> None:
    """The reports, and what is said of them."""
    graded = result.graded
    write_reports(graded, out, notes=result.notes, official=official, alone=alone, linked=bool(own))
    print(f"reports are in {out}")
    if request.gradebook:
        _tell_filled(write_gradebook(request.gradebook, graded, out, official=official), out)
    if said := note_progress(graded, own, out):
        _say(said)
    if alone and own:
        show_outcome(graded, out, Console(highlight=False))


def _tell_filled(filled: Filled, out: Path) -> None:
    """What became of an exported gradebook."""
    print(f"{out}/gradebook.csv: {filled.students} student{'' if filled.students == 1 else 's'} filled in")
    for student in filled.unmatched:
        _say(f"{student} is not in the gradebook")
    for note in filled.notes:
        _say(note)


def _verify_points(request: Request, result: ClassResult) -> None:
    full = sum(each.max_score for each in result.graded)
    reached = sum(each.score for each in result.graded)
    if request.fail_under is not None and not 100 * reached >= request.fail_under * full:
        raise TooFewPoints(f"{reached:g} of {full:g} points, below {request.fail_under:g} %")


def _say(text: str) -> None:
    print(f"course: {one_line(text, 4000)}", file=sys.stderr)
