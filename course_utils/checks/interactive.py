"""The check cell of an exercise notebook: evidence, verdict and advice at once."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from course_utils.checks.cell_history import (
    cell_number,
    cells_run,
    note_elsewhere,
    other_cells,
    record_cells,
    why_undefined,
)
from course_utils.checks.cells import MAX_CELL_LENGTH, modules_not_graded
from course_utils.checks.complete_answer import complete_answer
from course_utils.checks.examination import examine, example_text, find_example, put_stage_first
from course_utils.checks.examples.adversary import Trace, as_data
from course_utils.checks.judge.duel_verdict import board_of
from course_utils.checks.judge.implementation import ONE_EXAMPLE
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.time_limit import TimeLimit, runs_answer
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import (
    PROGRESS,
    all_ladders,
    find_ladder,
)
from course_utils.checks.kernel.outcome import MIME, Evidence, as_line
from course_utils.checks.kernel.settings import usual_settings
from course_utils.loader import has_answers
from course_utils.views.running_line import RunningLine

SAME_ANSWER = "Its cell has not been run since the last check. If you changed it, run it first."
IS_RERUN: ContextVar[bool] = ContextVar("is_rerun", default=False)  # the cells of a passed answer run once more


class NotYet(Exception):
    """Raised by `check` for an answer that does not pass, with a `CheckMessage` or a text.

    Jupyter shows only the message, without a traceback.

    Attributes:
        drawn: the exercise whose card above says everything; "" for none.
    """

    drawn = ""

    def _render_traceback_(self) -> list[str]:
        if self.drawn:
            return [f"{self.drawn} has not passed yet; the card above says why."]
        return str(self).splitlines()


def checks_for(day: int) -> Callable[..., None]:
    """Return the function `check` for a day's exercises.

    check(grade_id) takes the answer from the notebook that calls it, shows the result on each test input (rung), and
    raises NotYet with advice when a rung does not hold. check(grade_id, hidden=True) does the same on hidden inputs,
    which need the answers, drawn from `seed` if one is given. `check` stops an answer that takes too long, and raises
    KeyError for an unknown exercise.
    """
    session = _Session(day)
    record_cells()

    def check(grade_id: str, *, hidden: bool = False, seed: str = "") -> None:
        if IS_RERUN.get():
            return  # a check in the cell of an answer
        if hidden and not has_answers():
            raise NotYet("Hidden inputs are tried when the notebook is graded.")
        with RunningLine(lambda: _describe_progress(find_ladder(day, grade_id).duel)), usual_settings():
            session.check(sys._getframe(1).f_globals, grade_id, hidden, seed)

    return check


@dataclass(frozen=True)
class _LastCheck:
    """What the last check of an exercise said, so that the same check need not search for an example again."""

    cell: int | None  # Jupyter's number of the answer's cell
    advice: str
    example: Trace | str


class _Session:
    """The checks of one day in one kernel, which remember what was checked before."""

    def __init__(self, day: int):
        self.day = day
        self.last: dict[tuple[str, bool], _LastCheck] = {}  # by exercise, and whether the inputs were hidden
        self.stopped: dict[str, tuple[int, CheckMessage]] = {}  # the message on a stopped answer, after so many cells
        self.passed: set[str] = set()  # exercises

    def check(self, namespace: MutableMapping[str, Any], grade_id: str, hidden: bool, seed: str) -> None:
        """Check the answer in `namespace` and show the result. Raises NotYet for an answer that does not pass."""
        # An answer that was never defined, or was stopped and not run since, needs no check.
        if message := self._message_without_a_check(grade_id, namespace):
            raise _draw_card(message)

        # An answer that passes here must pass in grading, too, where only the cells that it uses are run.
        evidence, verdict = examine(self.day, grade_id, namespace, hidden=hidden, seed=seed)
        if verdict.status == "passed" and (reason := why_not_reproducible(self.day, grade_id, namespace)):
            verdict = Verdict("failed", 0.0, f"Right here, but it would not count when graded: {reason}")
        note = note_elsewhere(self.day, grade_id, namespace, verdict)
        message = CheckMessage(self.day, grade_id, verdict, hidden, note=note)
        if verdict.status == "timeout":
            self.stopped[grade_id] = len(cells_run(namespace)), message

        # The same answer gets the same example, without a new search, and a remark that its cell was not run.
        example, is_same_answer = self._find_example(message, namespace)
        note = SAME_ANSWER if is_same_answer else message.note
        message = put_stage_first(replace(message, example=example_text(self.day, grade_id, example), note=note))

        if evidence is not None and verdict.status == "passed":
            self._show_success(message, evidence)
        else:
            self._show_failure(message, example)

    def _show_success(self, message: CheckMessage, evidence: Evidence) -> None:
        """Show the card of an answer that passes; a duel's board stands above it."""
        if not message.hidden:
            self.passed.add(message.exercise)
        _show_board(message)
        _show_passed(message, evidence, self.passed)

    def _show_failure(self, message: CheckMessage, example: Trace | str) -> NoReturn:
        """Show the card of an answer that does not pass, above a duel's board or a player of calls. Raises NotYet."""
        self.passed.discard(message.exercise)
        error = _draw_card(message)
        _show_board(message)
        if isinstance(example, Trace) and example.calls:
            _show_trace(self.day, message.exercise, example)
        raise error

    def _message_without_a_check(self, grade_id: str, namespace: Mapping[str, Any]) -> CheckMessage | None:
        """Return the message on an answer that need not run: it is undefined, or still the one that was stopped."""
        if reason := why_undefined(self.day, grade_id, namespace):
            return CheckMessage(self.day, grade_id, Verdict("error", 0.0, reason))
        message = self._message_if_still_stopped(grade_id, cells_run(namespace))
        return replace(message, note=SAME_ANSWER) if message else None

    def _message_if_still_stopped(self, grade_id: str, cells: Sequence) -> CheckMessage | None:
        """Return the message on an answer that was stopped, if only checks have run since; else None."""
        if grade_id not in self.stopped:
            return None
        count, message = self.stopped[grade_id]
        since = cells[count:]
        return message if since and all(str(cell).lstrip().startswith("check(") for cell in since) else None

    def _find_example(self, message: CheckMessage, namespace: MutableMapping[str, Any]) -> tuple[Trace | str, bool]:
        """Return an example on which the answer is wrong, and whether the last check of it said the same."""
        exercise = message.exercise
        key = exercise, message.hidden
        cell = cell_number(self.day, exercise, namespace)
        last = self.last.get(key)
        advice = message.advice()
        is_same = cell is not None and last is not None and (last.cell, last.advice) == (cell, advice)
        example: Trace | str = ""
        if is_same and last is not None:
            example = last.example
        elif not message.hidden:
            example = find_example(self.day, exercise, namespace, message.verdict)
        self.last[key] = _LastCheck(cell, advice, example)
        return example, is_same


def _show_passed(message: CheckMessage, evidence: Evidence, done: Collection[str]) -> None:
    """Show the card of an answer that passes, with its evidence, and what has been done in this session."""
    from IPython.display import display

    from course_utils.views.passed import describe_passed

    data = {MIME: as_line(evidence), "text/plain": str(message), "text/html": message.as_html()}
    display(data, raw=True, metadata={"course": {"hidden": message.hidden}})
    if not message.hidden:
        display(describe_passed(message.day, message.exercise, done), raw=True, metadata={"course": {"hidden": True}})


def _describe_progress(duel: bool) -> str:
    """Return at which rung the check is, for the line under it."""
    if not PROGRESS.count:
        return ""
    return f"{'implementation' if duel else 'step'} {PROGRESS.number} of {PROGRESS.count}"


def _draw_card(message: CheckMessage) -> NotYet:
    """Draw the card of a verdict if there is a notebook, and return the error to raise."""
    error = NotYet(message)
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        from IPython.display import display

        hidden = {"course": {"hidden": True}}  # it is left out of a student's edition
        display({"text/plain": str(message), "text/html": message.as_html()}, raw=True, metadata=hidden)
        error.drawn = message.exercise
    return error


def _show_board(message: CheckMessage) -> None:
    """Show on a board which implementations a test caught, if the exercise is a duel and the test ran on them.

    The board is left out of a student's edition.
    """
    day = message.day
    rungs = message.verdict.rungs
    if message.hidden or not find_ladder(day, message.exercise).duel or not rungs:
        return
    from IPython.display import display

    from course_utils.views import DuelBoard

    mistakes = judge_of(day, message.exercise).mistakes()
    one_example = next(evidence for mistake, evidence in mistakes if mistake.name == ONE_EXAMPLE)
    data, metadata = DuelBoard(board_of(day, rungs, one_example.outcomes))._repr_mimebundle_()
    display(data, raw=True, metadata={**metadata, "course": {"hidden": True}})


def _show_trace(day: int, grade_id: str, trace: Trace) -> None:
    """Show the calls that break a promise in a player, which is left out of a student's edition."""
    from IPython.display import display

    from course_utils.views import TracePlayer

    data, metadata = TracePlayer(as_data(trace, find_ladder(day, grade_id).names[0]))._repr_mimebundle_()
    display(data, raw=True, metadata={**metadata, "course": {"hidden": True}})


def why_not_reproducible(day: int, grade_id: str, namespace: Mapping[str, Any]) -> str:
    """Return why a grader would not reproduce the answer of this notebook, as the end of a sentence; "" if it would.

    A grader runs only the cell that defines the answer, with the code from other cells that it uses by name.
    """
    number = cell_number(day, grade_id, namespace)
    if number is None:
        return ""
    cells = cells_run(namespace)
    source = cells[number]
    if len(source) > MAX_CELL_LENGTH:
        return f"its cell has {len(source):,} characters, but only {MAX_CELL_LENGTH:,} are read."

    # The code that a grader would run: the answer's cell with what it uses from the cells around it. Earlier answers
    # are known by name, because the grader brings those along itself.
    names = find_ladder(day, grade_id).names
    known = {name for other, each in all_ladders(day).items() if other != grade_id for name in each.names}
    above = other_cells(cells[:number], source)
    after = other_cells(cells[number + 1 :], source)
    answer = complete_answer(source, above, after, names=names, known=known)
    if lost := sorted(name for name in answer.missing if name in namespace):
        return f"no cell of the notebook defines {lost[0]} by that name. Define it in a cell, with def, import or =."
    if modules := modules_not_graded(answer.source):
        return f"there is no {modules[0]} where answers are graded. Python's own modules, NumPy and PyTorch are there."
    if not answer.brought:
        return ""  # the cell alone was just examined

    # Run this code without what the cells have left in the notebook, and examine the answer that it defines.
    fresh = {name: value for name, value in namespace.items() if name not in answer.brought | set(names)}
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            with TimeLimit() as limit:
                _run_afresh(answer.source, fresh)
            if limit.message:
                return f"run afresh, the cells that it uses do not finish in time. {limit.message}"
            verdict = examine(day, grade_id, fresh)[1]
    except Exception as error:
        return f"run afresh, its cells raise {type(error).__name__}: {error}"
    if verdict.status == "passed":
        return ""
    return f"grading runs this cell and those that it uses in a fresh session, and there it fails. {verdict.message}"


@runs_answer("its cells, run afresh")
def _run_afresh(source: str, namespace: dict[str, Any]) -> None:
    token = IS_RERUN.set(True)
    try:
        exec(compile(source, "<graded>", "exec", dont_inherit=True), namespace)
    finally:
        IS_RERUN.reset(token)
