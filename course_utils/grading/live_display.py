"""Show a teacher the progress of grading: a bar with the time left, and each result as it comes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from course_utils.errors import one_line
from course_utils.grading.classroom import ClassResult, grade_class
from course_utils.grading.intake.collect import Submission
from course_utils.grading.reports.report import print_table
from course_utils.grading.results import Graded, Result, Settings, is_ungraded
from course_utils.grading.workers import Callbacks

MAX_TABLES = 10


def grade_and_show(submissions: Sequence[Submission], settings: Settings, tables: bool) -> ClassResult:
    """Grade submissions with `grade_class`, and show each result.

    Args:
        tables: print a table for each submission, in their order, in place of a line for each and a summary.

    Raises:
        KeyboardInterrupt: if the user stops the grading; by then a line has said how far it came.
    """
    order = [(each.student, each.name) for each in submissions] if tables else ()
    with ClassDisplay(len(submissions), order) as display:
        try:
            callbacks = Callbacks(display.on_begin, display.on_result, display.on_put_off, display.on_graded)
            result = grade_class(submissions, settings, callbacks)
        except KeyboardInterrupt:
            display.stopped(stored=settings.out is not None)
            raise
    if not tables:
        print(summary(result))
    return result


class ClassDisplay:
    """Shows results as tables in a given order, or as a line for each; the bar appears only in a terminal.

    Args:
        total: number of submissions.
        order: (student, notebook) of each table; without it, a line is printed as soon as a submission is finished.
    """

    def __init__(self, total: int, order: Sequence[tuple[str, str]] = ()):
        self.total = total
        self.done = 0
        self.console = Console(highlight=False)
        self.to_come = list(order)
        self.waiting: list[Graded] = []
        self.begun: dict[tuple[str, str], str] = {}  # submissions that are being graded, and how far each is
        on = self.console if self.console.is_terminal else Console(stderr=True, highlight=False)
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn()]
        columns += [MofNCompleteColumn(), TimeRemainingColumn()]
        self.bar = Progress(*columns, console=on, disable=not on.is_terminal, transient=True)
        self.task = self.bar.add_task("grading", total=total)

    def __enter__(self) -> ClassDisplay:
        self.bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.stop()

    def on_graded(self, graded: Graded) -> None:
        """Show a submission that is finished."""
        self.done += 1
        self.begun.pop((graded.student, graded.notebook), None)
        if self.to_come:
            self.waiting.append(graded)
            self._show_in_order()
        else:
            self._print_line(graded)
        self.bar.advance(self.task)

    def on_begin(self, submission: Submission) -> None:
        """Show that a submission is being graded."""
        self._show(submission, "begins")

    def on_result(self, submission: Submission, result: Result) -> None:
        """Show how far a submission is."""
        self._show(submission, f"{result.id} {result.status}")

    def on_put_off(self, submission: Submission) -> None:
        """Say that a submission is graded last, because it takes long."""
        self.begun.pop((submission.student, submission.name), None)
        student = one_line(submission.student, 60)
        line = f"put off: {student}: exercises run out of time, so the other submissions are graded first"
        self.console.print(line, markup=False, emoji=False, soft_wrap=True)

    def stopped(self, stored: bool) -> None:
        """Say how far the grading came, and how to go on."""
        self.bar.stop()
        how = "run the same command to continue" if stored else "with --out DIR their results would have been kept"
        print(f"course: stopped; {self.done} of {self.total} are graded, {how}", file=sys.stderr)

    def _show(self, submission: Submission, how_far: str) -> None:
        self.begun[submission.student, submission.name] = f"{one_line(submission.student, 30)}: {how_far}"
        self.bar.update(self.task, description="; ".join(self.begun.values()))

    def _show_in_order(self) -> None:
        """Print the waiting tables up to the first one that is still to come."""
        while self.to_come:
            finished = [each for each in self.waiting if (each.student, each.notebook) == self.to_come[0]]
            if not finished:
                return
            self.to_come.pop(0)
            self.waiting.remove(finished[0])
            if finished[0].status != "unreadable":
                print_table(finished[0], self.console)

    def _print_line(self, graded: Graded) -> None:
        day = "day ?" if graded.day is None else f"day {graded.day}"
        points = f"{graded.score:g} of {graded.max_score:g}"
        outcome = f"unreadable: {graded.message}" if graded.status == "unreadable" else f"{points} points"
        line = f"{self.done}/{self.total} {one_line(graded.student, 60)}, {day}: {one_line(outcome, 300)}"
        self.console.print(line, markup=False, emoji=False, soft_wrap=True)


def summary(result: ClassResult) -> str:
    """Return one line about a class: how many submissions there are, and how they did."""
    graded = result.graded
    noun = "submission" if len(graded) == 1 else "submissions"
    parts = [f"{len(graded)} {noun}", f"{_count(graded, 'passed')} with all points"]
    counted = [each for each in graded if not is_ungraded(each)]
    if full := sum(each.max_score for each in counted):
        parts.append(f"{100 * sum(each.score for each in counted) / full:.0f} % of the points on average")
    if unreadable := _count(graded, "unreadable"):
        parts.append(f"{unreadable} unreadable")
    if result.reused:
        parts.append(f"{result.reused} not run again, since they did not change or equal another")
    return "; ".join(parts)


def _count(graded: Sequence[Graded], status: str) -> int:
    return sum(each.status == status for each in graded)
