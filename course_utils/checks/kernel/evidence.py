"""What a learner's function does on chosen inputs, as plain numbers.

A grading kernel can import this room, and what is `given` of each day. They hold no answers: a kernel sends evidence,
and whoever holds the answers compares.
"""

from __future__ import annotations

import copy
import sys
import traceback
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from course_utils import loader
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.numbers import NOTHING, BadResult, Numbers, as_numbers, describe, detached
from course_utils.checks.kernel.outcome import MIME, Evidence, Outcome, as_line
from course_utils.checks.kernel.recording import IN_A_CELL, Recording, install
from course_utils.checks.kernel.remote import FailedInside, Tried, ask_for_all

BAD_RESULT = "unreadable"
UNWRITTEN = "your code goes here"  # what the stub of an answer says
NOT_FILLED_IN = "is not filled in"
_KEPT: dict[int, Mapping[str, Ladder]] = {}  # the ladders that can no longer be imported


def gather(
    day: int,
    grade_id: str,
    namespace: Mapping[str, Any],
    *,
    hidden: bool = False,
    arrays: bool = False,
    seed: str = "",
    rungs: Sequence[Rung] | None = None,
) -> Evidence:
    """Run the answer to an exercise on its ladder.

    namespace: where the answer's names are found. hidden: use the hidden inputs. arrays: give NumPy arrays also where
    the ladder says tensors; the references and mistakes take both, and a grader need not load torch. seed: see
    `draw_rungs`. rungs: what it is tried on in place of those.
    Forbidden calls are recorded unless arrays are given. Raises KeyError for an unknown exercise.
    """
    tries = attempts(day, grade_id, namespace, hidden=hidden, arrays=arrays, seed=seed, rungs=rungs)
    forbidden = find_ladder(day, grade_id).forbidden
    if arrays or not forbidden:
        return Evidence(grade_id, hidden, [attempt() for attempt in tries])
    with Recording(forbidden) as recording:
        outcomes = [attempt() for attempt in tries]
    return Evidence(grade_id, hidden, outcomes, recording.found)


def attempts(
    day: int,
    grade_id: str,
    namespace: Mapping[str, Any],
    *,
    hidden: bool = False,
    arrays: bool = False,
    seed: str = "",
    rungs: Sequence[Rung] | None = None,
) -> list[Callable[[], Outcome]]:
    """What `gather` does, as a function for each rung: called once, it runs the answer and returns the outcome."""
    ladder = find_ladder(day, grade_id)
    if ladder.by_hand:
        values = {name: lambda name=name: {name: as_numbers(_entry(name, namespace))} for name in ladder.names}
    else:
        rungs = draw_rungs(day, grade_id, hidden=hidden, seed=seed) if rungs is None else rungs
        given = [_given(rung, ladder, arrays) for rung in rungs]
        values = {rung.name: lambda rung=rung: _climb(rung, ladder, namespace) for rung in given}
    return [partial(_outcome, name, value) for name, value in values.items()]


def outcome_of(rung: Rung, ladder: Ladder, namespace: Mapping[str, Any], *, arrays: bool = False) -> Outcome:
    """What an answer gives on one rung, which need not be the ladder's own; arrays: as for `gather`."""
    given = _given(rung, ladder, arrays)
    return _outcome(rung.name, lambda: _climb(given, ladder, namespace))


def checks_for(day: int) -> Callable[..., None]:
    """The `check` of a grading kernel: it displays evidence and knows no answer. seed: see `draw_rungs`.

    An answer cannot come from it to the functions behind it: it is no function of Python's, and whoever imports this
    package from now on gets another one.
    """
    from IPython.display import display

    if any(ladder.forbidden for ladder in all_ladders(day).values()):
        install()  # before the first answer runs

    @lru_cache(maxsize=0)
    def check(grade_id: str, *, hidden: bool = False, seed: str = "") -> None:
        try:
            namespace = sys._getframe(1).f_globals
            if find_ladder(day, grade_id).duel:
                evidence = _duel(day, grade_id, namespace)
            else:
                evidence = gather(day, grade_id, namespace, hidden=hidden, seed=seed)
        finally:
            seed = ""  # a traceback keeps what is here
        display({MIME: as_line(evidence), "text/plain": f"evidence of {grade_id}"}, raw=True)

    del check.__wrapped__
    _KEPT[day] = loader.ladders(day)
    for name in [name for name in sys.modules if name.partition(".")[0] == "course_utils"]:
        del sys.modules[name]
    return check


def _duel(day: int, grade_id: str, namespace: Mapping[str, Any]) -> Evidence:
    """What a test says of the implementations that the grader holds, by their places in its order."""
    from IPython import get_ipython

    (name,), outcomes = find_ladder(day, grade_id).names, []
    for i, (tried, tell) in enumerate(ask_for_all(get_ipython().kernel.parent.connection_file)):
        outcomes.append(outcome := _outcome(str(i), partial(_tried, name, namespace, tried)))
        tell(None if outcome.error else outcome.values["verdict"].entries[0])
    return Evidence(grade_id, True, outcomes)


def _tried(name: str, namespace: Mapping[str, Any], tried: Tried) -> dict[str, Numbers]:
    return _numbered(verdict_of(_lookup(name, namespace), tried))


def all_ladders(day: int) -> Mapping[str, Ladder]:
    """The ladders of one day's exercises, by grade_id, in the order of the notebook."""
    return _KEPT.get(day) or loader.ladders(day)


def find_ladder(day: int, grade_id: str) -> Ladder:
    """The ladder of an exercise. Raises KeyError, with the known ids, for an unknown one."""
    ladders = all_ladders(day)
    if grade_id not in ladders:
        raise KeyError(f"day {day} has no exercise {grade_id!r}; it has {', '.join(ladders)}")
    return ladders[grade_id]


def draw_rungs(day: int, grade_id: str, *, hidden: bool = False, seed: str = "") -> list[Rung]:
    """The rungs of an exercise with their inputs: always the same ones, and others when hidden.

    seed: what the hidden inputs are drawn from, hex text; the public ones without it. Raises ValueError for another,
    and for a duel, of which whoever holds the implementations makes the rungs.
    """
    drawn_from = [day, zlib.crc32(grade_id.encode()), int(hidden)]
    if hidden and seed:
        drawn_from.append(int(f"1{seed}", 16))  # one that ends in 0 is the one without it
    ladder = find_ladder(day, grade_id)
    if ladder.duel:
        raise ValueError(f"{grade_id} is a duel: its rungs are implementations, see judge.rungs")
    make = ladder.rungs
    return make(np.random.default_rng(drawn_from)) if make else []


def verdict_of(tells_right: Callable, tried: Tried) -> dict[str, float]:
    """What a test says of an implementation: {"verdict": 1.0} for right, 0.0 for wrong.

    An assertion that does not hold, and what the implementation itself raised, say that it is wrong. Raises BadResult
    for anything but True or False, and what else the test raises.
    """
    try:
        said = tells_right(tried)
    except (AssertionError, FailedInside):
        return {"verdict": 0.0}
    if np.asarray(detached(said)).dtype.kind != "b" or np.ndim(said):
        raise BadResult(f"the test returned {describe(said)}; it should return True or False")
    return {"verdict": float(said)}


def _given(rung: Rung, ladder: Ladder, arrays: bool) -> Rung:
    """A rung with arguments that an answer may write into."""
    return replace(rung, args=_arguments(rung.args, ladder.tensors and not arrays))


def _arguments(args: tuple, tensors: bool) -> tuple:
    """Copies that an answer may write into, arrays as tensors if it is to have those."""
    args = copy.deepcopy(args)
    if not tensors:
        return args
    import torch

    return tuple(torch.from_numpy(arg) if isinstance(arg, np.ndarray) else arg for arg in args)


def _climb(rung: Rung, ladder: Ladder, namespace: Mapping[str, Any]) -> dict[str, Numbers]:
    function = _lookup(rung.of or ladder.names[0], namespace)
    if rung.measure:
        measured = rung.measure(function, *rung.args)
        return _numbered(measured if isinstance(measured, Mapping) else {"measure": measured})
    result = function(*rung.args)
    if len(ladder.returns) == 1:
        return {ladder.returns[0]: _read(result, ladder)}
    if result is None:
        raise BadResult(NOTHING)
    if not isinstance(result, (tuple, list)) or len(result) != len(ladder.returns):
        raise BadResult(f"the function returned {describe(result)}; it should return ({', '.join(ladder.returns)})")
    return {part: _read(value, ladder) for part, value in zip(ladder.returns, result, strict=True)}


def _numbered(parts: Mapping[str, Any]) -> dict[str, Numbers]:
    return {part: as_numbers(value) for part, value in parts.items()}


def _read(result: Any, ladder: Ladder) -> Numbers:
    try:
        if ladder.convert:
            result = ladder.convert(result)
        if result is None:
            raise TypeError(NOTHING)
        return as_numbers(result)
    except TypeError as error:
        raise BadResult(str(error)) from None


def _outcome(name: str, values: Callable[[], dict[str, Numbers]]) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an overflow shows in the result
        try:
            return Outcome(name, values())
        except (Exception, SystemExit) as error:
            return Outcome(name, error=say_error(error))


def say_error(error: BaseException) -> str:
    """The kind of an error, the first line of its text and the line of a cell it came from, to be sent."""
    try:
        text = str(error).strip().partition("\n")[0]
    except Exception:
        text = ""
    if isinstance(error, BadResult):
        return f"{BAD_RESULT}: {text}"[:300]
    if isinstance(error, NotImplementedError) and text in ("", UNWRITTEN) and (called := _called_by_the_answer(error)):
        text = f"{called} is not written yet"
    said = f"{type(error).__name__}: {text}"[:300].rstrip(": ") + _line_of(error)
    return said.encode("utf-8", "replace").decode()


def _called_by_the_answer(error: BaseException) -> str:
    """The function of a notebook's cell in which an error arose, if another one in a cell called it."""
    names = [each.name for each in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(each.filename)]
    return names[-1] if names and names[-1] != names[0] else ""


def _line_of(error: BaseException) -> str:
    """Where in a notebook's cell an error arose, with the line itself; nothing if it arose in no cell."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(frame.filename)]
    stub = isinstance(error, NotImplementedError) and str(error) in ("", UNWRITTEN)
    if stub or not frames or not frames[-1].line:
        return ""
    return f", at line {frames[-1].lineno} of its cell: {frames[-1].line[:100]}"


def _lookup(name: str, namespace: Mapping[str, Any]) -> Any:
    if name not in namespace:
        raise NameError(f"{name} is not defined: the answer cell must define it, and be run")
    return namespace[name]


def _entry(name: str, namespace: Mapping[str, Any]) -> Any:
    if _lookup(name, namespace) is None:
        raise NotImplementedError(f"{name} {NOT_FILLED_IN}")
    return namespace[name]
