"""The check cell of an exercise notebook: evidence, verdict and advice at once."""

from __future__ import annotations

import io
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import Any, TypeVar

from course_utils.checks.examples.adversary import Trace, as_data, find_trace, tell_trace
from course_utils.checks.examples.example_text import STAGE, tell_example
from course_utils.checks.examples.smallest import find_smallest
from course_utils.checks.judge.cells import LARGEST_CELL, complete, defines, modules_not_graded
from course_utils.checks.judge.duel_verdict import board_of
from course_utils.checks.judge.exercises import all_exercises
from course_utils.checks.judge.implementation import ONE_EXAMPLE
from course_utils.checks.judge.judge import JOINT, judge_of
from course_utils.checks.judge.lent import lent_functions
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.rungs import evidence_for
from course_utils.checks.judge.time_limit import Patience, tries_answers
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import (
    BAD_RESULT,
    HOW_FAR,
    IN_A_CELL,
    UNWRITTEN,
    all_ladders,
    find_ladder,
    say_error,
)
from course_utils.checks.kernel.outcome import MIME, Evidence, as_line
from course_utils.checks.kernel.settings import usual_settings
from course_utils.loader import has_answers
from course_utils.views.running_line import RunningLine

Found = TypeVar("Found")
SAME_ANSWER = "Its cell was not run since the last check. If you changed it, run it first."
ELSEWHERE = "It counts where its cell stands above the check that came with the exercise, and below its answer cell."
_RUN_AFRESH: list[bool] = []  # holds an item while `not_followed` runs the cells of an answer
_FAILED: dict[tuple[int, str], tuple[str, int]] = {}  # error and its line, by number and text of a cell
_IDS: dict[tuple[int, str], str] = {}  # the id of a cell in its notebook, where Jupyter told it


class NotYet(Exception):
    """Raised by `check` for an answer that does not pass, with a `CheckMessage` or a text.

    Jupyter shows only the message, without a traceback.

    Attributes:
        drawn: the exercise whose card above says it all; "" for none.
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
    last: dict[tuple[str, bool], tuple[int | None, str, Trace | str]] = {}  # cell, advice and example of the last check
    stopped: dict[str, tuple[int, CheckMessage]] = {}  # for a stopped answer: number of cells run, and what was said
    done: set[str] = set()  # exercises passed in this session
    _hear_of_cells()

    def check(grade_id: str, *, hidden: bool = False, seed: str = "") -> None:
        if _RUN_AFRESH:
            return  # a check in the cell of an answer, which `not_followed` runs once more
        if hidden and not has_answers():
            raise NotYet("Hidden inputs are tried when the notebook is graded.")
        with RunningLine(lambda: _how_far(find_ladder(day, grade_id).duel)), usual_settings():
            examined(sys._getframe(1).f_globals, grade_id, hidden, seed)

    def examined(namespace: MutableMapping[str, Any], grade_id: str, hidden: bool, seed: str) -> None:
        if why := _not_run(day, grade_id, namespace):
            raise _drawn(CheckMessage(day, grade_id, Verdict("error", 0.0, why)))
        cells, (until, told) = _inputs(namespace), stopped.get(grade_id, (0, None))
        if told and until < len(cells) and all(str(cell).lstrip().startswith("check(") for cell in cells[until:]):
            raise _drawn(replace(told, note=SAME_ANSWER))
        evidence, verdict = examine(day, grade_id, namespace, hidden=hidden, seed=seed)
        if verdict.status == "passed" and (why := not_followed(day, grade_id, namespace)):
            verdict = Verdict("failed", 0.0, f"Right here, but it would not count when graded: {why}")
        message = CheckMessage(day, grade_id, verdict, hidden, note=_elsewhere(day, grade_id, namespace, verdict))
        advice, cell = message.advice(), _cell_number(day, grade_id, namespace)
        same = cell is not None and last.get((grade_id, hidden), ())[:2] == (cell, advice)
        found = last[grade_id, hidden][2] if same else ""
        if not same and not hidden:
            found = _example(day, grade_id, namespace, verdict)
        last[grade_id, hidden] = cell, advice, found
        if verdict.status == "timeout":
            stopped[grade_id] = len(cells), message
        note = SAME_ANSWER if same else message.note
        message = stage_first(replace(message, example=_tell(day, grade_id, found), note=note))
        failed = _drawn(message) if evidence is None or verdict.status != "passed" else None
        if not hidden and find_ladder(day, grade_id).duel and verdict.rungs:
            _show_board(day, grade_id, verdict)
        if isinstance(found, Trace) and found.calls:
            _show_trace(day, grade_id, found)
        if failed is not None or evidence is None:
            done.discard(grade_id)
            raise failed or NotYet(message)
        if not hidden:
            done.add(grade_id)
        _show_passed(message, evidence, done)

    return check


def _show_passed(message: CheckMessage, evidence: Evidence, done: Collection[str]) -> None:
    """Show the card of an answer that passes, with its evidence, and what has been done in this session."""
    from IPython.display import display

    from course_utils.views.passed import passed

    data = {MIME: as_line(evidence), "text/plain": str(message), "text/html": message.as_html()}
    display(data, raw=True, metadata={"course": {"hidden": message.hidden}})
    if not message.hidden:
        display(passed(message.day, message.exercise, done), raw=True, metadata={"course": {"hidden": True}})


def _how_far(duel: bool) -> str:
    """Return at which rung the check is, for the line under it."""
    number, of = HOW_FAR
    return f"{'implementation' if duel else 'step'} {number} of {of}" if of else ""


def stage_first(message: CheckMessage) -> CheckMessage:
    """Begin with the stage at which the results part, which the example tells, where no known mistake is named."""
    known = {mistake.name for mistake in all_exercises(message.day)[message.exercise].mistakes}
    lines = message.example.splitlines()
    stage = next((line for line in lines if line.startswith(STAGE)), "")
    if not stage or known.intersection((message.verdict.misconception or "").split(JOINT)):
        return message
    where = f"On the smallest input below, your numbers and the right ones {stage.removeprefix('They ')}"
    text = f"{where} {message.verdict.message}"
    verdict = replace(message.verdict, message=text)
    return replace(message, verdict=verdict, example="\n".join(line for line in lines if line != stage))


def _drawn(message: CheckMessage) -> NotYet:
    """Draw the card of a verdict where there is a notebook, and return the error to raise."""
    failed = NotYet(message)
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        from IPython.display import display

        hidden = {"course": {"hidden": True}}  # a student's edition does not keep it
        display({"text/plain": str(message), "text/html": message.as_html()}, raw=True, metadata=hidden)
        failed.drawn = message.exercise
    return failed


def _show_board(day: int, grade_id: str, verdict: Verdict) -> None:
    """Show on a board which implementations a test caught. A student's edition of the notebook does not keep it."""
    from IPython.display import display

    from course_utils.views import DuelBoard

    first = next(known for mistake, known in judge_of(day, grade_id).mistakes() if mistake.name == ONE_EXAMPLE)
    data, metadata = DuelBoard(board_of(day, verdict.rungs, first.outcomes))._repr_mimebundle_()
    display(data, raw=True, metadata={**metadata, "course": {"hidden": True}})


def _show_trace(day: int, grade_id: str, trace: Trace) -> None:
    """Show the calls that break a promise in a player. A student's edition of the notebook does not keep it."""
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
    evidence, verdict = _try(day, grade_id, namespace, hidden, seed)
    uses = all_exercises(day)[grade_id].uses
    if verdict.status == "passed" or not uses:
        return evidence, verdict
    second, again = _beside(_right_answers(day, uses), namespace, lambda: _try(day, grade_id, namespace, hidden, seed))
    if again.share < verdict.share:
        return evidence, verdict
    if (again.status, again.message, again.rungs) == (verdict.status, verdict.message, verdict.rungs):
        return second, again
    failing = [used for used in uses if _examine(day, used, namespace, hidden, seed)[1].status != "passed"]
    if not failing and again.status != "passed":
        return evidence, verdict
    return second, replace(again, message=f"{again.message} {_why_lent(day, failing, uses)}".strip())


def _why_lent(day: int, failing: Sequence[str], uses: Sequence[str]) -> str:
    """Return a sentence that says in place of which earlier answers an exercise was tried with right ones."""
    names = [*_right_answers(day, failing or uses)]
    tried = f"Tried with our {' and '.join(names)}, since"
    if not failing:
        return f"{tried} it goes wrong with yours."
    return f"{tried} {'yours does' if len(names) == 1 else 'yours do'} not pass yet."


def _right_answers(day: int, exercises: Iterable[str]) -> dict[str, Any]:
    """Return the functions, by name, that can be lent in place of the answers to these exercises."""
    right = lent_functions(day)
    return {name: right[name] for each in exercises for name in find_ladder(day, each).names}


def smallest_example(day: int, grade_id: str, namespace: MutableMapping[str, Any], verdict: Verdict) -> str:
    """Return, as text, the smallest input found on which the answer in `namespace` is wrong; "" where none is found.

    Right answers replace the earlier answers that it uses, so that the mistake shown is its own.
    """
    return _tell(day, grade_id, _example(day, grade_id, namespace, verdict))


def _tell(day: int, grade_id: str, found: Trace | str) -> str:
    return tell_trace(found, find_ladder(day, grade_id).names[0]) if isinstance(found, Trace) else found


def _example(day: int, grade_id: str, namespace: MutableMapping[str, Any], verdict: Verdict) -> Trace | str:
    """Return what `smallest_example` does; for an answer with state, the sequence of calls itself."""
    judge = judge_of(day, grade_id)
    if verdict.status not in ("failed", "error") or judge.ladder.by_hand or verdict.unknown_name:
        return ""
    lent = _right_answers(day, judge.exercise.uses)
    if judge.ladder.machine:
        return _beside(lent, namespace, lambda: find_trace(judge.ladder, namespace, rungs=judge.rungs())) or ""
    held = dict(verdict.rungs)
    example = _beside(lent, namespace, lambda: find_smallest(judge, namespace, held))
    if example is None or _says_it_all(verdict, example.gave.error):
        return ""
    return tell_example(example, judge, namespace.get(judge.ladder.names[0]))


def _says_it_all(verdict: Verdict, error: str) -> bool:
    """Return whether the advice already says that the result is unreadable, which does not depend on the input."""
    kind, _, text = error.partition(": ")
    return kind == BAD_RESULT and text in verdict.message


def not_followed(day: int, grade_id: str, namespace: Mapping[str, Any]) -> str:
    """Return why a grader would not reproduce the answer of this notebook, as the end of a sentence; "" if it would.

    A grader runs only the cell that defines the answer, with the code from other cells that it uses by name.
    """
    number = _cell_number(day, grade_id, namespace)
    if number is None:
        return ""
    cells, ladder = _inputs(namespace), find_ladder(day, grade_id)
    source = cells[number]
    if len(source) > LARGEST_CELL:
        return f"its cell has {len(source):,} characters, and {LARGEST_CELL:,} are read."
    known = {name for other, each in all_ladders(day).items() if other != grade_id for name in each.names}
    above, after = _others(cells[:number], source), _others(cells[number + 1 :], source)
    found = complete(source, above, after, names=ladder.names, known=known)
    if lost := sorted(name for name in found.missing if name in namespace):
        return f"no cell of the notebook defines {lost[0]} by that name. Define it in a cell, with def, import or =."
    if modules := modules_not_graded(found.source):
        return f"there is no {modules[0]} where answers are graded. Python's own modules, NumPy and PyTorch are there."
    if not found.brought:
        return ""
    fresh = {name: value for name, value in namespace.items() if name not in found.brought | set(ladder.names)}
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            with Patience() as patience:
                _run_afresh(found.source, fresh)
            if patience.message:
                return f"run afresh, the cells that it uses do not end in time. {patience.message}"
            verdict = _examine(day, grade_id, fresh, hidden=False, seed="")[1]
    except Exception as error:
        return f"run afresh, its cells raise {type(error).__name__}: {error}"
    return "" if verdict.status == "passed" else f"run afresh with what it uses, it fails. {verdict.message}"


def _elsewhere(day: int, grade_id: str, namespace: Mapping[str, Any], verdict: Verdict) -> str:
    """Return ELSEWHERE if another cell replaces a passed answer in the exercise's own cell; else, or if unknown, ""."""
    number, cells, ids = _cell_number(day, grade_id, namespace), _inputs(namespace), dict[str, int]()
    for i, cell in enumerate(cells):
        ids[_IDS.get((i, str(cell).rstrip()), "")] = i
    if verdict.status != "passed" or number not in ids.values() or number in (ids.get(""), ids.get(grade_id)):
        return ""
    own = str(cells[ids[grade_id]]) if grade_id in ids else UNWRITTEN
    return ELSEWHERE if UNWRITTEN not in own and defines(own, find_ladder(day, grade_id).names) else ""


@tries_answers
def _run_afresh(source: str, namespace: dict[str, Any]) -> None:
    name = "its cells, run afresh"  # noqa: F841  # `Patience` reads it to say what was running
    _RUN_AFRESH.append(True)
    try:
        exec(compile(source, "<graded>", "exec", dont_inherit=True), namespace)
    finally:
        _RUN_AFRESH.clear()


def _hear_of_cells() -> None:
    """Register a callback that records each cell's id and failure from now on, if there is a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell:
        shell.events.register("post_run_cell", _keep_cell)


def _keep_cell(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    if result.execution_count is None:
        return
    _IDS[result.execution_count, result.info.raw_cell.rstrip()] = result.info.cell_id or ""
    if error is None:
        return
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(each.filename)]
    message = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else say_error(error)
    line = 0 if result.error_before_exec or not lines else lines[0] or 0
    _FAILED[result.execution_count, result.info.raw_cell.rstrip()] = message, line


def _not_run(day: int, grade_id: str, namespace: Mapping[str, Any]) -> str:
    """Return the message for an answer that no cell defined, or whose cell failed, when last run, before it did so; ""
    for others."""
    names = find_ladder(day, grade_id).names
    name = re.escape(names[0])
    begins = re.compile(rf"^(?:(?:async +)?def|class) +{name}\b|^{name} *[:=]", re.MULTILINE)
    cells = [(number, found) for number, cell in enumerate(_inputs(namespace)) if (found := begins.search(str(cell)))]
    number, found = cells[-1] if cells else (0, None)
    error, line = _FAILED.get((number, found.string.rstrip()), ("", 0)) if found else ("", 0)
    if found and error and line <= found.string.count("\n", 0, found.start()) + 1:
        return f"Its cell failed when it was last run, and defined nothing: {error}. Mend the cell and run it."
    missing = [each for each in names if each not in namespace]
    if missing:
        return f"No cell that has run in this kernel defines {missing[0]}. Run the answer cell, then this check."
    return ""


def _try(
    day: int, grade_id: str, namespace: Mapping[str, Any], hidden: bool = False, seed: str = ""
) -> tuple[Evidence | None, Verdict]:
    """Return the evidence and the verdict for an answer, without a second try."""
    with Patience() as patience:
        evidence = evidence_for(day, grade_id, namespace, hidden=hidden, seed=seed)
    if patience.message:
        return None, Verdict("timeout", 0.0, patience.message)
    return evidence, judge_of(day, grade_id, seed).judge(evidence)


def _beside(references: Mapping[str, Any], namespace: MutableMapping[str, Any], run: Callable[[], Found]) -> Found:
    """Return what `run` gives while the references replace the names of the namespace."""
    before = dict(namespace)
    namespace.update(references)
    try:
        return run()
    finally:
        for name in references:
            del namespace[name]
        namespace.update({name: before[name] for name in references if name in before})


def _others(cells: Sequence, answer: str) -> list[str]:
    """Return the cells but for the answer's, in order; of one that ran several times only the last run."""
    found = dict.fromkeys(cell for cell in reversed(cells) if isinstance(cell, str) and cell != answer)
    return [*reversed(found)]


def _inputs(namespace: Mapping[str, Any]) -> Sequence:
    """Return the cells that were run, by Jupyter's number, and as typed where Jupyter's history is available."""
    cells = namespace.get("In", ())
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell.history_manager.input_hist_raw if shell and shell.user_ns.get("In") is cells else cells


def _cell_number(day: int, grade_id: str, namespace: Mapping[str, Any]) -> int | None:
    """Return Jupyter's number of the cell that last defined the answer; None if no notebook cell did."""
    names, cells = find_ladder(day, grade_id).names, _inputs(namespace)
    found = [number for number, cell in enumerate(cells) if isinstance(cell, str) and defines(cell, names[:1])]
    return next((number for number in reversed(found) if defines(cells[number], names)), max(found, default=None))
