"""Run a learner's function on its test inputs and record the results as plain numbers, called evidence.

A grading kernel can import this package and the folder `given` of each day. They contain no answers: the kernel sends
evidence, and the grader, which has the answers, compares.
"""

from __future__ import annotations

import difflib
import random
import sys
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy  # bound here, before an answer runs that may replace it in its module
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import EllipsisType
from typing import Any

import numpy as np

from course_utils import loader
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.outcome import MIME, Evidence, Outcome, as_line
from course_utils.checks.kernel.recording import IN_A_CELL, Recording, install
from course_utils.checks.kernel.remote import Candidate, FailedInside, GraderConnection, offered_candidates
from course_utils.checks.kernel.result_numbers import NOTHING, BadResult, Numbers, as_numbers, describe, detach

BAD_RESULT = "unreadable"
UNWRITTEN = "your code goes here"  # the error text of an unwritten answer
IN_ITS_CELL = " of your cell"  # follows the line of an error
NOT_FILLED_IN = "is not filled in"
_LADDERS: dict[int, Mapping[str, Ladder]] = {}  # of the days whose modules `checks_for` has unloaded


@dataclass
class CheckProgress:
    """How far the check is that runs now.

    Attributes:
        rung: the name of the rung that the answer runs on, or ran on last.
        number: the number of this rung, from 1; 0 before the first check.
        count: the number of rungs.
        tell: called before each rung of a learner's answer.
    """

    rung: str = ""
    number: int = 0
    count: int = 0
    tell: Callable[[], None] = lambda: None


PROGRESS = CheckProgress()


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
    """Run the answer to an exercise on its ladder and return the evidence.

    Forbidden calls are recorded, unless `arrays` is set.

    Args:
        namespace: contains the names that the answer defines.
        hidden: whether to use the hidden inputs.
        arrays: whether to pass NumPy arrays even where the ladder says tensors. References and mistakes take both, so
            that a grader need not load torch.
        seed: see `draw_rungs`.
        rungs: test inputs to use in place of those that `draw_rungs` draws.

    Raises:
        KeyError: for an unknown exercise.
    """
    trials = attempts(day, grade_id, namespace, hidden=hidden, arrays=arrays, seed=seed, rungs=rungs)
    forbidden = find_ladder(day, grade_id).forbidden
    if arrays or not forbidden:
        return Evidence(grade_id, hidden, _run_all(trials, is_told=not arrays))
    with Recording(forbidden) as recording:
        outcomes = _run_all(trials)
    return Evidence(grade_id, hidden, outcomes, recording.calls)


def _run_all(trials: Sequence[Callable[[], Outcome]], is_told: bool = True) -> list[Outcome]:
    outcomes = []
    for number, trial in enumerate(trials, 1):
        PROGRESS.number = number
        PROGRESS.count = len(trials)
        if is_told:
            PROGRESS.tell()
        outcomes.append(trial())
    return outcomes


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
    """Return a function for each rung that, called once, runs the answer on it and returns the outcome."""
    ladder = find_ladder(day, grade_id)
    if ladder.by_hand:
        return [partial(_outcome, name, partial(_entry_as_numbers, name, namespace)) for name in ladder.names]
    if rungs is None:
        rungs = draw_rungs(day, grade_id, hidden=hidden, seed=seed)
    copies = [_with_copied_args(rung, ladder, arrays) for rung in rungs]
    by_name = {rung.name: rung for rung in copies}
    return [partial(_outcome, name, partial(_run_rung, rung, ladder, namespace)) for name, rung in by_name.items()]


def outcome_of(rung: Rung, ladder: Ladder, namespace: Mapping[str, Any], *, arrays: bool = False) -> Outcome:
    """Run an answer on a rung, which may be none of the ladder's, and return the outcome. arrays: see `gather`."""
    copied = _with_copied_args(rung, ladder, arrays)
    return _outcome(rung.name, partial(_run_rung, copied, ladder, namespace))


def checks_for(day: int) -> Callable[..., None]:
    """Return the `check` of a grading kernel, which displays evidence and knows no answer.

    seed: see `draw_rungs`; for `...` the check asks the grader for the seed, so that no cell contains it.

    Student code cannot reach our code through `check`: it is a C-level wrapper without __globals__, and a later import
    gets a fresh copy of this package.
    """
    show = _publisher()
    if any(ladder.forbidden for ladder in all_ladders(day).values()):
        install()  # before the first answer runs

    # The wrapper of lru_cache is written in C, so it has no __globals__ that student code could read; with maxsize=0 it
    # stores nothing. `del check.__wrapped__` below takes away its way to the Python function.
    @lru_cache(maxsize=0)
    def check(grade_id: str, *, hidden: bool = False, seed: str | EllipsisType = "") -> None:
        try:
            namespace = sys._getframe(1).f_globals
            seed = _grader_connection()("seed").strip() if seed is ... else seed
            if find_ladder(day, grade_id).duel:
                evidence = _gather_duel(day, grade_id, namespace)
            else:
                evidence = gather(day, grade_id, namespace, hidden=hidden, seed=seed)
        finally:
            seed = ""  # A traceback keeps the local variables, and an answer could read them.
        show({MIME: as_line(evidence), "text/plain": f"evidence of {grade_id}"})

    del check.__wrapped__
    _LADDERS[day] = loader.ladders(day)
    for name in [name for name in sys.modules if name.partition(".")[0] == "course_utils"]:
        del sys.modules[name]
    return check


def _publisher() -> Callable[[Mapping[str, str]], None]:
    """Return a function that displays data as the kernel does now, whatever cells do to its publisher later."""
    from IPython import get_ipython

    publisher = get_ipython().display_pub
    topic = publisher.topic
    make_message = publisher.session.msg
    serialize = publisher.session.serialize
    send = publisher.pub_socket.send_multipart

    def show(data: Mapping[str, str]) -> None:
        content = {"data": data, "metadata": {}, "transient": {}}
        send(serialize(make_message("display_data", content, parent=publisher.parent_header), ident=topic))

    return show


def _grader_connection() -> GraderConnection:
    """Return this kernel's connection to its grader."""
    from IPython import get_ipython

    return GraderConnection(get_ipython().kernel.parent.connection_file)


def _gather_duel(day: int, grade_id: str, namespace: Mapping[str, Any]) -> Evidence:
    """Run a learner's test on the implementations that the grader has; outcomes are named by place in its order."""
    (name,) = find_ladder(day, grade_id).names
    outcomes = []
    for i, (candidate, send_verdict) in enumerate(offered_candidates(_grader_connection())):
        outcome = _outcome(str(i), partial(_try_candidate, name, namespace, candidate))
        outcomes.append(outcome)
        send_verdict(None if outcome.error else outcome.values["verdict"].entries[0])
    return Evidence(grade_id, True, outcomes)


def _try_candidate(name: str, namespace: Mapping[str, Any], candidate: Candidate) -> dict[str, Numbers]:
    return _parts_as_numbers(verdict_of(_lookup(name, namespace), candidate))


def all_ladders(day: int) -> Mapping[str, Ladder]:
    """Return the ladders of one day's exercises, by grade_id, in the order of the notebook."""
    return _LADDERS.get(day) or loader.ladders(day)


def find_ladder(day: int, grade_id: str) -> Ladder:
    """Return the ladder of an exercise.

    Raises:
        KeyError: for an unknown exercise; the message lists the known ones.
    """
    ladders = all_ladders(day)
    if grade_id not in ladders:
        raise KeyError(f"day {day} has no exercise {grade_id!r}; it has {', '.join(ladders)}")
    return ladders[grade_id]


def draw_rungs(day: int, grade_id: str, *, hidden: bool = False, seed: str = "") -> list[Rung]:
    """Return the rungs of an exercise with their inputs, the same at every call.

    Args:
        hidden: whether to draw the hidden inputs in place of the visible ones.
        seed: hex text that the hidden inputs are drawn from; without it they are the public ones.

    Raises:
        ValueError: for a seed that is not hex text, and for a duel, whose rungs `judge.rungs` makes.
    """
    drawn_from = [day, zlib.crc32(grade_id.encode()), int(hidden)]
    if hidden and seed:
        drawn_from.append(int(f"1{seed}", 16))  # the 1, because a seed of 0 would draw the public inputs
    ladder = find_ladder(day, grade_id)
    if ladder.duel:
        raise ValueError(f"{grade_id} is a duel: its rungs are implementations, see judge.rungs")
    make = ladder.rungs
    return make(np.random.default_rng(drawn_from)) if make else []


def verdict_of(tells_right: Callable, candidate: Candidate) -> dict[str, float]:
    """Run a test on an implementation and return {"verdict": 1.0} for right, 0.0 for wrong.

    A failed assertion, or an error inside the implementation, means wrong. Other errors of the test pass through. Each
    implementation meets the same random numbers, also of a generator that the test's cell made.

    Raises:
        BadResult: if the test returns anything but True or False.
    """
    try:
        with _restored_generators(getattr(tells_right, "__globals__", {})):
            verdict = tells_right(candidate)
    except (AssertionError, FailedInside):
        return {"verdict": 0.0}
    if np.asarray(detach(verdict)).dtype.kind != "b" or np.ndim(verdict):
        raise BadResult(f"the test returned {describe(verdict)}; it should return True or False")
    return {"verdict": float(verdict)}


@contextmanager
def _restored_generators(namespace: Mapping[str, Any]) -> Iterator[None]:
    """Restore the generators of random numbers after a block: those of modules, and those named in a namespace."""
    states: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (np.random.set_state, np.random.get_state()),
    ]
    if torch := sys.modules.get("torch"):
        states.append((torch.set_rng_state, torch.get_rng_state()))
    for each in list(namespace.values()):
        if isinstance(each, np.random.Generator):
            states.append((partial(setattr, each.bit_generator, "state"), each.bit_generator.state))
        elif isinstance(each, random.Random):
            states.append((each.setstate, each.getstate()))
    try:
        yield
    finally:
        for restore, state in states:
            restore(state)


def _with_copied_args(rung: Rung, ladder: Ladder, arrays: bool) -> Rung:
    """Return a rung whose arguments are copies, into which an answer may write."""
    return replace(rung, args=_copies_of(rung.args, ladder.tensors and not arrays))


def _copies_of(args: tuple, tensors: bool) -> tuple:
    """Return copies of the arguments, with arrays turned into tensors if asked."""
    args = deepcopy(args)
    if not tensors:
        return args
    import torch

    return tuple(torch.from_numpy(arg) if isinstance(arg, np.ndarray) else arg for arg in args)


def _run_rung(rung: Rung, ladder: Ladder, namespace: Mapping[str, Any]) -> dict[str, Numbers]:
    """Call an answer with the arguments of a rung, and return the parts of its result, or its measure."""
    function = _lookup(rung.of or ladder.names[0], namespace)
    if rung.measure:
        try:
            measured = rung.measure(function, *rung.args)
        except (TypeError, ValueError) as error:
            if _comes_from_a_measure(error, function):
                raise BadResult(f"the check cannot read what the function returned: {error}") from None
            raise
        return _parts_as_numbers(measured if isinstance(measured, Mapping) else {"measure": measured})
    result = function(*rung.args)
    if len(ladder.returns) == 1:
        return {ladder.returns[0]: _part_as_numbers(result, ladder)}
    if result is None:
        raise BadResult(NOTHING)
    if not isinstance(result, (tuple, list)) or len(result) != len(ladder.returns):
        raise BadResult(f"the function returned {describe(result)}; it should return ({', '.join(ladder.returns)})")
    return {part: _part_as_numbers(value, ladder) for part, value in zip(ladder.returns, result, strict=True)}


def _comes_from_a_measure(error: Exception, function: Callable) -> bool:
    """Return whether a function of a notebook has returned, and the measure could not use what it returned."""
    code = getattr(function, "__code__", None)
    if code is None or not IN_A_CELL.search(code.co_filename) or str(error).startswith(f"{function.__qualname__}()"):
        return False
    return not any(IN_A_CELL.search(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def _parts_as_numbers(parts: Mapping[str, Any]) -> dict[str, Numbers]:
    return {part: as_numbers(value) for part, value in parts.items()}


def _part_as_numbers(result: Any, ladder: Ladder) -> Numbers:
    try:
        if ladder.convert:
            result = ladder.convert(result)
        if result is None:
            raise TypeError(NOTHING)
        return as_numbers(result)
    except TypeError as error:
        raise BadResult(str(error)) from None


def _outcome(rung: str, run: Callable[[], dict[str, Numbers]]) -> Outcome:
    """Run an answer and return its values, or the error that it raised, as the outcome of a rung."""
    PROGRESS.rung = rung
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an overflow shows in the result
        try:
            return Outcome(rung, run())
        except (Exception, SystemExit) as error:
            return Outcome(rung, error=describe_error(error))


def describe_error(error: BaseException) -> str:
    """Return an error as text to send: its type, the first line of its message and the notebook line it came from."""
    try:
        text = str(error).strip().partition("\n")[0]
    except Exception:
        text = ""
    if isinstance(error, BadResult):
        return f"{BAD_RESULT}: {text}"[:300]
    if isinstance(error, NameError) and (close := _close_name(error)):
        text = f"{text} (did you mean {close}?)"
    if isinstance(error, NotImplementedError) and text in ("", UNWRITTEN) and (called := _called_by_the_answer(error)):
        text = f"{called} is not written yet"
    description = f"{type(error).__name__}: {text}"[:300].rstrip(": ") + _line_of_cell(error)
    return description.encode("utf-8", "replace").decode()


def _called_by_the_answer(error: BaseException) -> str:
    """Return the notebook function in which an error arose, if another notebook function called it; else ""."""
    names = [each.name for each in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(each.filename)]
    return names[-1] if names and names[-1] != names[0] else ""


def _line_of_cell(error: BaseException) -> str:
    """Return at which line of a notebook cell an error arose, with the line itself; empty if it arose in no cell.

    An error in a function of another cell has that function's name and line first.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(frame.filename)]
    is_stub = isinstance(error, NotImplementedError) and str(error) in ("", UNWRITTEN)
    if is_stub or not frames or not frames[-1].line:
        return ""
    own, last = frames[0], frames[-1]
    code = (last.line or "")[:100]
    if own.filename == last.filename:
        return f", at line {last.lineno}{IN_ITS_CELL}: {code}"
    called = next(frame.name for frame in frames if frame.filename == last.filename)
    caller = [frame for frame in frames if frame.filename == own.filename][-1]
    where = f", in {called} at its line {last.lineno}, {code}, called"
    return f"{where} at line {caller.lineno}{IN_ITS_CELL}: {(caller.line or '')[:100]}"


def _close_name(error: NameError) -> str:
    """Return the name of a variable of the cell that resembles the one that is not defined; "" if none does."""
    frames = [*traceback.walk_tb(error.__traceback__)]
    frame = frames[-1][0] if frames else None
    if not error.name or frame is None or not IN_A_CELL.search(frame.f_code.co_filename):
        return ""
    known = [name for name in (*frame.f_locals, *frame.f_globals) if not name.startswith("_")]
    return next(iter(difflib.get_close_matches(error.name, known, 1, 0.8)), "")


def _lookup(name: str, namespace: Mapping[str, Any]) -> Any:
    if name not in namespace:
        raise NameError(f"{name} is not defined: define it in the answer cell, and run that cell")
    return namespace[name]


def _entry_as_numbers(name: str, namespace: Mapping[str, Any]) -> dict[str, Numbers]:
    if _lookup(name, namespace) is None:
        raise NotImplementedError(f"{name} {NOT_FILLED_IN}")
    return {name: as_numbers(namespace[name])}
