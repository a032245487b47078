"""The check cell of an exercise notebook: evidence, verdict and advice at once."""

from __future__ import annotations

import io
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from course_utils.checks.cells import MAX_CELL_LENGTH, complete_answer, defines, modules_not_graded
from course_utils.checks.examples.adversary import Trace, as_data, describe_trace, find_trace
from course_utils.checks.examples.example_text import STAGE, STEPPER, describe_example
from course_utils.checks.examples.smallest import find_smallest
from course_utils.checks.judge.duel_verdict import board_of
from course_utils.checks.judge.exercises import all_exercises
from course_utils.checks.judge.implementation import ONE_EXAMPLE
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.lent import lent_functions
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.rungs import evidence_for
from course_utils.checks.judge.time_limit import TimeLimit, runs_answer
from course_utils.checks.judge.verdict import JOINT, Verdict
from course_utils.checks.judge.wording import is_about_parameters, with_full_stop
from course_utils.checks.kernel.evidence import (
    BAD_RESULT,
    IN_A_CELL,
    PROGRESS,
    UNWRITTEN,
    all_ladders,
    describe_error,
    find_ladder,
)
from course_utils.checks.kernel.outcome import MIME, Evidence, as_line
from course_utils.checks.kernel.settings import usual_settings
from course_utils.loader import has_answers
from course_utils.time_limits import RETRY_SECONDS
from course_utils.views.drawing import listed
from course_utils.views.running_line import RunningLine

SAME_ANSWER = "Its cell has not been run since the last check. If you changed it, run it first."
ELSEWHERE = "It counts only if its cell is above the check that came with the exercise, and below its answer cell."
_RUN_AFRESH: list[bool] = []  # has an item while `not_followed` runs the cells of an answer
_CELL_ERRORS: dict[tuple[int, str], tuple[str, int]] = {}  # error and its line, by number and text of a cell
_CELL_IDS: dict[tuple[int, str], str] = {}  # the id of a cell in its notebook, if Jupyter sent it


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
    _record_cells()

    def check(grade_id: str, *, hidden: bool = False, seed: str = "") -> None:
        if _RUN_AFRESH:
            return  # a check in the cell of an answer, which `not_followed` runs once more
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
        if verdict.status == "passed" and (reason := not_followed(self.day, grade_id, namespace)):
            verdict = Verdict("failed", 0.0, f"Right here, but it would not count when graded: {reason}")
        note = _note_elsewhere(self.day, grade_id, namespace, verdict)
        message = CheckMessage(self.day, grade_id, verdict, hidden, note=note)
        if verdict.status == "timeout":
            self.stopped[grade_id] = len(_cells_run(namespace)), message

        # The same answer gets the same example, without a new search, and a remark that its cell was not run.
        example, is_same_answer = self._find_example(message, namespace)
        note = SAME_ANSWER if is_same_answer else message.note
        message = stage_first(replace(message, example=_example_text(self.day, grade_id, example), note=note))

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
        if reason := _why_undefined(self.day, grade_id, namespace):
            return CheckMessage(self.day, grade_id, Verdict("error", 0.0, reason))
        message = self._message_if_still_stopped(grade_id, _cells_run(namespace))
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
        cell = _cell_number(self.day, exercise, namespace)
        last = self.last.get(key)
        advice = message.advice()
        is_same = cell is not None and last is not None and (last.cell, last.advice) == (cell, advice)
        example: Trace | str = ""
        if is_same and last is not None:
            example = last.example
        elif not message.hidden:
            example = _example(self.day, exercise, namespace, message.verdict)
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


def stage_first(message: CheckMessage) -> CheckMessage:
    """Put the stage at which the results part, which the example names, first, unless a known mistake is named."""
    known = {mistake.name for mistake in all_exercises(message.day)[message.exercise].mistakes}
    lines = message.example.splitlines()
    stage = next((line for line in lines if line.startswith(STAGE)), "")
    if not stage or known.intersection((message.verdict.mistake or "").split(JOINT)):
        return message
    first = f"On the smallest input below, your numbers and the right ones {stage.removeprefix('They ')}"
    verdict = replace(message.verdict, message=f"{first} {message.verdict.message}")
    return replace(message, verdict=verdict, example="\n".join(line for line in lines if line != stage))


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


def examine(
    day: int, grade_id: str, namespace: MutableMapping[str, Any], *, hidden: bool = False, seed: str = ""
) -> tuple[Evidence | None, Verdict]:
    """Return the evidence and the verdict for the answer that `namespace` holds.

    As in grading, an answer that fails gets a second try in which right answers replace the earlier answers that it
    uses and that do not pass, so that a mistake in one of those costs this exercise nothing. The message names them.

    Returns:
        (evidence, verdict). The evidence is None if the answer was stopped.
    """
    with usual_settings():
        return _examine(day, grade_id, namespace, hidden, seed)


def _examine(
    day: int, grade_id: str, namespace: MutableMapping[str, Any], hidden: bool, seed: str
) -> tuple[Evidence | None, Verdict]:
    evidence, verdict = _examine_once(day, grade_id, namespace, hidden, seed)
    uses = all_exercises(day)[grade_id].uses
    if verdict.status == "passed" or not uses:
        return evidence, verdict

    # A failed answer is tried once more, with right functions in place of the earlier answers.
    seconds = RETRY_SECONDS if verdict.status == "timeout" else None
    with _replace_values(namespace, _right_answers(day, uses)):
        evidence_with_lent, verdict_with_lent = _examine_once(day, grade_id, namespace, hidden, seed, seconds)
    is_worse_with_lent = verdict_with_lent.share < verdict.share
    if is_worse_with_lent or verdict.status == verdict_with_lent.status == "timeout":
        return evidence, verdict
    if _say_the_same(verdict, verdict_with_lent):
        return evidence_with_lent, verdict_with_lent

    # The verdicts differ. The second one counts if it passes, or if an earlier answer is wrong; it says what was lent.
    failing = [used for used in uses if _examine(day, used, namespace, hidden, seed)[1].status != "passed"]
    if 0 < len(failing) < len(uses):  # those that pass stay, as in grading
        with _replace_values(namespace, _right_answers(day, failing)):
            evidence_with_lent, verdict_with_lent = _examine_once(day, grade_id, namespace, hidden, seed, seconds)
    is_own_mistake = not failing and verdict_with_lent.status != "passed"
    if is_own_mistake:
        return evidence, verdict
    told = with_full_stop(verdict_with_lent.message) if verdict_with_lent.message else ""
    message = f"{told} {_why_lent(day, failing, uses)}".strip()
    return evidence_with_lent, replace(verdict_with_lent, message=message)


def _say_the_same(verdict: Verdict, other: Verdict) -> bool:
    """Return whether a learner reads the same in two verdicts."""
    return (verdict.status, verdict.message, verdict.rungs) == (other.status, other.message, other.rungs)


def _why_lent(day: int, failing: Sequence[str], uses: Sequence[str]) -> str:
    """Return a sentence that says in place of which earlier answers an exercise was tried with right ones."""
    names = [*_right_answers(day, failing or uses)]
    beginning = f"Tried with our {listed(names)}, since"
    if not failing:
        return f"{beginning} it goes wrong with yours."
    return f"{beginning} {'yours does' if len(names) == 1 else 'yours do'} not pass yet."


def _right_answers(day: int, exercises: Collection[str]) -> dict[str, Any]:
    """Return the functions, by name, that can be lent in place of the answers to these exercises."""
    right = lent_functions(day) if exercises else {}
    return {name: right[name] for each in exercises for name in find_ladder(day, each).names}


def smallest_example(
    day: int, grade_id: str, namespace: MutableMapping[str, Any], verdict: Verdict, *, with_widget: bool = True
) -> str:
    """Return, as text, the smallest input found on which the answer in `namespace` is wrong; "" if none is found.

    Right answers replace the earlier answers that it uses, so that the mistake shown is its own.

    Args:
        with_widget: whether code follows that draws the example in a notebook.
    """
    text = _example_text(day, grade_id, _example(day, grade_id, namespace, verdict))
    return text if with_widget else text.partition(f"\n{STEPPER}")[0]


def _example_text(day: int, grade_id: str, example: Trace | str) -> str:
    return describe_trace(example, find_ladder(day, grade_id).names[0]) if isinstance(example, Trace) else example


def _example(day: int, grade_id: str, namespace: MutableMapping[str, Any], verdict: Verdict) -> Trace | str:
    """Return what `smallest_example` does; for an answer with state, the sequence of calls itself."""
    judge = judge_of(day, grade_id)
    if verdict.status not in ("failed", "error") or judge.ladder.by_hand or verdict.unknown_name:
        return ""
    lent = _right_answers(day, judge.exercise.uses)
    with _replace_values(namespace, lent):
        if judge.ladder.machine:
            return find_trace(judge.ladder, namespace, rungs=judge.rungs()) or ""
        example = find_smallest(judge, namespace, dict(verdict.rungs))
    if example is None or _is_wrong_on_any_input(verdict, example.outcome.error):
        return ""
    return describe_example(example, judge, namespace.get(judge.ladder.names[0]))


def _is_wrong_on_any_input(verdict: Verdict, error: str) -> bool:
    """Return whether an error does not depend on the input: of parameters, or as the advice says it, unreadable."""
    kind, _, text = error.partition(": ")
    return is_about_parameters(error) or (kind == BAD_RESULT and text in verdict.message)


def not_followed(day: int, grade_id: str, namespace: Mapping[str, Any]) -> str:
    """Return why a grader would not reproduce the answer of this notebook, as the end of a sentence; "" if it would.

    A grader runs only the cell that defines the answer, with the code from other cells that it uses by name.
    """
    number = _cell_number(day, grade_id, namespace)
    if number is None:
        return ""
    cells = _cells_run(namespace)
    source = cells[number]
    if len(source) > MAX_CELL_LENGTH:
        return f"its cell has {len(source):,} characters, but only {MAX_CELL_LENGTH:,} are read."

    # The code that a grader would run: the answer's cell with what it uses from the cells around it. Earlier answers
    # are known by name, because the grader brings those along itself.
    names = find_ladder(day, grade_id).names
    known = {name for other, each in all_ladders(day).items() if other != grade_id for name in each.names}
    above = _other_cells(cells[:number], source)
    after = _other_cells(cells[number + 1 :], source)
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
            verdict = _examine(day, grade_id, fresh, hidden=False, seed="")[1]
    except Exception as error:
        return f"run afresh, its cells raise {type(error).__name__}: {error}"
    if verdict.status == "passed":
        return ""
    return f"grading runs this cell and those that it uses in a fresh session, and there it fails. {verdict.message}"


def _note_elsewhere(day: int, grade_id: str, namespace: Mapping[str, Any], verdict: Verdict) -> str:
    """Return ELSEWHERE if another cell replaces a passed answer in the exercise's own cell; else, or if unknown, ""."""
    if verdict.status != "passed":
        return ""
    cells = _cells_run(namespace)
    numbers = {_CELL_IDS.get((i, str(cell).rstrip()), ""): i for i, cell in enumerate(cells)}  # by id, the last run
    number = _cell_number(day, grade_id, namespace)
    if number not in numbers.values() or number in (numbers.get(""), numbers.get(grade_id)):
        return ""
    own_cell = str(cells[numbers[grade_id]]) if grade_id in numbers else UNWRITTEN
    if UNWRITTEN in own_cell or not defines(own_cell, find_ladder(day, grade_id).names):
        return ""
    return ELSEWHERE


@runs_answer("its cells, run afresh")
def _run_afresh(source: str, namespace: dict[str, Any]) -> None:
    _RUN_AFRESH.append(True)
    try:
        exec(compile(source, "<graded>", "exec", dont_inherit=True), namespace)
    finally:
        _RUN_AFRESH.clear()


def _record_cells() -> None:
    """Register a callback that records each cell's id and failure from now on, if there is a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell:
        shell.events.register("post_run_cell", _record_cell)


def _record_cell(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    if result.execution_count is None:
        return
    cell = result.execution_count, result.info.raw_cell.rstrip()
    _CELL_IDS[cell] = result.info.cell_id or ""
    if error is None:
        return
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(each.filename)]
    message = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else describe_error(error)
    line = 0 if result.error_before_exec or not lines else lines[0] or 0
    _CELL_ERRORS[cell] = message, line


def _why_undefined(day: int, grade_id: str, namespace: Mapping[str, Any]) -> str:
    """Return the message for an answer that no cell defined, or whose cell failed before it did so; "" for others."""
    names = find_ladder(day, grade_id).names
    name = re.escape(names[0])
    begins = re.compile(rf"^(?:(?:async +)?def|class) +{name}\b|^{name} *[:=]", re.MULTILINE)
    definitions = [(i, match) for i, cell in enumerate(_cells_run(namespace)) if (match := begins.search(str(cell)))]
    if definitions:
        number, match = definitions[-1]
        error, line = _CELL_ERRORS.get((number, match.string.rstrip()), ("", 0))
        if error and line <= match.string.count("\n", 0, match.start()) + 1:
            return f"Its cell failed when it was last run, and defined nothing: {error}. Fix the cell and run it again."
    missing = [each for each in names if each not in namespace]
    if missing:
        return f"No cell that has run in this kernel defines {missing[0]}. Run the answer cell, then this check."
    return ""


def _examine_once(
    day: int,
    grade_id: str,
    namespace: Mapping[str, Any],
    hidden: bool = False,
    seed: str = "",
    seconds: float | None = None,
) -> tuple[Evidence | None, Verdict]:
    """Return the evidence and the verdict for an answer, without a second try, within `seconds` or the usual time."""
    with TimeLimit(seconds) as limit:
        evidence = evidence_for(day, grade_id, namespace, hidden=hidden, seed=seed)
    if limit.message:
        return None, Verdict("timeout", 0.0, limit.message)
    return evidence, judge_of(day, grade_id, seed).judge(evidence)


@contextmanager
def _replace_values(namespace: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Replace the values of names in a namespace within a block."""
    before = dict(namespace)
    namespace.update(values)
    try:
        yield
    finally:
        for name in values:
            del namespace[name]
        namespace.update({name: before[name] for name in values if name in before})


def _other_cells(cells: Sequence, answer: str) -> list[str]:
    """Return the cells but for the answer's, in order; of one that ran several times only the last run."""
    texts = dict.fromkeys(cell for cell in reversed(cells) if isinstance(cell, str) and cell != answer)
    return [*reversed(texts)]


def _cells_run(namespace: Mapping[str, Any]) -> Sequence:
    """Return the cells that were run, by Jupyter's number, and as typed if Jupyter's history is available."""
    cells = namespace.get("In", ())
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell.history_manager.input_hist_raw if shell and shell.user_ns.get("In") is cells else cells


def _cell_number(day: int, grade_id: str, namespace: Mapping[str, Any]) -> int | None:
    """Return Jupyter's number of the cell that last defined the answer; None if no notebook cell did."""
    names = find_ladder(day, grade_id).names
    cells = _cells_run(namespace)
    numbers = [number for number, cell in enumerate(cells) if isinstance(cell, str) and defines(cell, names[:1])]
    complete_ones = (number for number in reversed(numbers) if defines(cells[number], names))
    return next(complete_ones, max(numbers, default=None))
