"""The command `course grade`: find the submissions, grade them, write the reports, and print a summary."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from course_utils.answer_key.key import COURSE
from course_utils.errors import CourseError, TooFewPoints, Unreadable, one_line
from course_utils.grading.classroom import ClassResult
from course_utils.grading.intake.collect import Submissions, collect
from course_utils.grading.intake.late import with_lateness
from course_utils.grading.live_display import MAX_TABLES, grade_and_show
from course_utils.grading.reports.gradebook_rows import Filled
from course_utils.grading.reports.learner_record import are_one_learners, note_progress, own_exercises, show_outcome
from course_utils.grading.reports.report import open_folder, write_gradebook, write_reports
from course_utils.grading.results import Settings
from course_utils.sandbox.confinement import open_kernels
from course_utils.sandbox.limits import Start
from course_utils.sandbox.log import begin_log


def run(
    paths: Sequence[Path],
    settings: Settings,
    *,
    day: int | None = None,
    gradebook: Path | None = None,
    fail_under: float | None = None,
) -> None:
    """Grade notebooks, print the results, and write reports into `settings.out`; messages go to standard error.

    Args:
        paths: notebooks, folders or zips of them.
        settings: how to grade.
        day: day that the notebooks belong to; by default taken from their names or cells.
        gradebook: gradebook exported by Canvas or Moodle, to fill in.
        fail_under: smallest percentage of all points with which grading succeeds.

    Raises:
        CourseError: an argument or a setting is wrong, or there are no notebooks.
        KeyboardInterrupt: the user stopped grading.
        Unreadable: a notebook given by its own path cannot be read; of several, the last one is named.
        TooFewPoints: the result is below `fail_under`.
    """
    settings = _verify(paths, settings, day, gradebook)
    submissions = _find(paths, day)
    files = [each.path for each in submissions]
    own_digests = own_exercises(files, settings.out) if settings.out else {}
    may_be_a_learner = settings.answer_key is COURSE and not gradebook
    is_one_learner = bool(settings.out and may_be_a_learner and are_one_learners(files, settings.out))
    one_by_one = all(path.suffix.lower() != ".zip" and not path.is_dir() for path in paths)
    result = grade_and_show(submissions, settings, tables=one_by_one and len(submissions) <= MAX_TABLES)
    _report(result, settings, gradebook, own_digests, is_one_learner)
    # in a class an unreadable notebook is a result like any other
    unreadable = [each.message for each in result.graded if each.status == "unreadable" and one_by_one]
    for message in unreadable[:-1]:
        _warn(message)
    if unreadable:
        raise Unreadable(unreadable[-1])
    full = sum(each.max_score for each in result.graded)
    reached = sum(each.score for each in result.graded)
    if fail_under is not None and not 100 * reached >= fail_under * full:
        raise TooFewPoints(f"{reached:g} of {full:g} points, below {fail_under:g} %")


def _verify(paths: Sequence[Path], settings: Settings, day: int | None, gradebook: Path | None) -> Settings:
    """Return the settings with the log started. Raises CourseError for wrong arguments before anything is read."""
    answer_key = settings.answer_key
    start = settings.start
    if answer_key is not COURSE and not answer_key.days():
        raise CourseError(
            f"{answer_key.folder}: not a grader's bundle; give the folder `grader` that `course release` wrote"
        )
    zips = [path for path in paths if path.suffix.lower() == ".zip"]
    for path in [*zips, *([gradebook] if gradebook else [])]:
        if not path.exists():
            raise CourseError(f"{path}: no such file")
    if gradebook and gradebook.is_dir():
        raise CourseError(f"{gradebook}: this is a folder, not a gradebook")
    if start == Start("full", warm=False) and not settings.dask:
        open_kernels("full", warm=False).close()  # raises here, not for each kernel
    if day is not None:
        answer_key.path(day)  # raises if there is no such day
    if settings.out:
        open_folder(settings.out)
    return replace(settings, log=begin_log(Path(settings.log))) if settings.log else settings


def _find(paths: Sequence[Path], day: int | None) -> Submissions:
    """Find the submissions and print which files are left out. Raises CourseError if there are none."""
    with Console(stderr=True).status("reading the submissions") as status:

        def show(student: str) -> None:
            status.update(f"reading the submission of {escape(one_line(student, 60))}")

        submissions = collect(list(paths), day, show)
    for note in submissions.notes:
        _warn(note)
    if not submissions:
        raise CourseError(f"{' '.join(map(str, paths))}: no notebooks there")
    return submissions


def _report(
    result: ClassResult,
    settings: Settings,
    gradebook: Path | None,
    own_digests: dict[str, str],
    is_one_learner: bool,
) -> None:
    """Write the reports, the gradebook and the learner's progress, and print where they are."""
    if result.confinement and not result.confinement.full:
        _warn(str(result.confinement))
    graded = result.graded
    out = settings.out
    answer_key = settings.answer_key
    if out is None:
        return
    filled = None
    try:
        filled = write_gradebook(gradebook, graded, out, answer_key=answer_key) if gradebook else None
    finally:  # grading may have taken an hour: whatever is wrong with the gradebook, its reports are written
        graded = with_lateness(graded, filled.late) if filled else graded
        old = write_reports(
            graded,
            out,
            notes=result.notes,
            filled=filled,
            answer_key=answer_key,
            is_one_learner=is_one_learner,
            links_feedback=bool(own_digests),
        )
        print(f"reports are in {out}")
    if filled:
        _print_filled(filled, out)
    if old:
        some = ", ".join(old[:3]) + (", …" if len(old) > 3 else "")
        warning = "do not send them out as results of this one"
        _warn(f"{out} still holds files of an earlier run; {warning} ({len(old)} in all): {some}")
    if warning := note_progress(graded, own_digests, out):
        _warn(warning)
    if is_one_learner and own_digests:
        show_outcome(graded, out, Console(highlight=False))


def _print_filled(filled: Filled, out: Path) -> None:
    """Print how many students a filled-in gradebook has, who is missing in it, and its notes."""
    print(f"{out}/gradebook.csv: {filled.students} student{'' if filled.students == 1 else 's'} filled in")
    for student in filled.unmatched:
        _warn(f"{student} is not in the gradebook")
    for note in filled.notes:
        _warn(note)


def _warn(text: str) -> None:
    print(f"course: {one_line(text, 4000)}", file=sys.stderr)
