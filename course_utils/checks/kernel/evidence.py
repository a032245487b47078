"""Run a learner's function on its test inputs and record the results as plain numbers, called evidence.

A grading kernel can import this package and the folder `given` of each day. They hold no answers: the kernel sends
evidence, and the grader, which holds the answers, compares.
"""

from __future__ import annotations

import random
import sys
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy  # bound here, before an answer runs that may replace it in its module
from dataclasses import replace
from functools import lru_cache, partial
from types import EllipsisType
from typing import Any

import numpy as np

from course_utils import loader
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.outcome import MIME, Evidence, Outcome, as_line
from course_utils.checks.kernel.recording import IN_A_CELL, Recording, install
from course_utils.checks.kernel.remote import Asking, FailedInside, Tried, ask_for_all
from course_utils.checks.kernel.result_numbers import NOTHING, BadResult, Numbers, as_numbers, describe, detached

BAD_RESULT = "unreadable"
UNWRITTEN = "your code goes here"  # the error text of an unwritten answer
NOT_FILLED_IN = "is not filled in"
HOW_FAR = [0, 0]  # at which rung the check that runs is, and how many rungs it has; for the line under it
_KEPT: dict[int, Mapping[str, Ladder]] = {}  # ladders of the days whose modules `checks_for` has unloaded


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
        namespace: holds the names that the answer defines.
        hidden: whether to use the hidden inputs.
        arrays: whether to pass NumPy arrays even where the ladder says tensors. References and mistakes take both, so
            that a grader need not load torch.
        seed: see `draw_rungs`.
        rungs: test inputs to use in place of those that `draw_rungs` draws.

    Raises:
        KeyError: for an unknown exercise.
    """
    tries = attempts(day, grade_id, namespace, hidden=hidden, arrays=arrays, seed=seed, rungs=rungs)
    forbidden = find_ladder(day, grade_id).forbidden
    if arrays or not forbidden:
        return Evidence(grade_id, hidden, _all_outcomes(tries))
    with Recording(forbidden) as recording:
        outcomes = _all_outcomes(tries)
    return Evidence(grade_id, hidden, outcomes, recording.found)


def _all_outcomes(tries: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    outcomes = []
    for number, attempt in enumerate(tries, 1):
        HOW_FAR[:] = number, len(tries)
        outcomes.append(attempt())
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
        values = {name: lambda name=name: {name: as_numbers(_entry(name, namespace))} for name in ladder.names}
    else:
        rungs = draw_rungs(day, grade_id, hidden=hidden, seed=seed) if rungs is None else rungs
        given = [_given(rung, ladder, arrays) for rung in rungs]
        values = {rung.name: lambda rung=rung: _climb(rung, ladder, namespace) for rung in given}
    return [partial(_outcome, name, value) for name, value in values.items()]


def outcome_of(rung: Rung, ladder: Ladder, namespace: Mapping[str, Any], *, arrays: bool = False) -> Outcome:
    """Run an answer on a rung, which need not be one of the ladder's, and return the outcome. arrays: see `gather`."""
    given = _given(rung, ladder, arrays)
    return _outcome(rung.name, lambda: _climb(given, ladder, namespace))


def checks_for(day: int) -> Callable[..., None]:
    """Return the `check` of a grading kernel, which displays evidence and knows no answer.

    seed: see `draw_rungs`; `...` stands for one that the grader tells when it is asked, so that no cell holds it.

    Student code cannot reach our code through `check`: it is a C-level wrapper without __globals__, and a later import
    gets a fresh copy of this package.
    """
    show = _publisher()
    if any(ladder.forbidden for ladder in all_ladders(day).values()):
        install()  # before the first answer runs

    @lru_cache(maxsize=0)
    def check(grade_id: str, *, hidden: bool = False, seed: str | EllipsisType = "") -> None:
        try:
            namespace = sys._getframe(1).f_globals
            seed = _asking()("seed").strip() if seed is ... else seed
            if find_ladder(day, grade_id).duel:
                evidence = _duel(day, grade_id, namespace)
            else:
                evidence = gather(day, grade_id, namespace, hidden=hidden, seed=seed)
        finally:
            seed = ""  # a traceback keeps the local variables
        show({MIME: as_line(evidence), "text/plain": f"evidence of {grade_id}"})

    del check.__wrapped__
    _KEPT[day] = loader.ladders(day)
    for name in [name for name in sys.modules if name.partition(".")[0] == "course_utils"]:
        del sys.modules[name]
    return check


def _publisher() -> Callable[[Mapping[str, str]], None]:
    """Return a function that displays data as the kernel does now, whatever cells do to its publisher later."""
    from IPython import get_ipython

    publisher = get_ipython().display_pub
    session, topic = publisher.session, publisher.topic
    message, serialize, send = session.msg, session.serialize, publisher.pub_socket.send_multipart

    def show(data: Mapping[str, str]) -> None:
        content = {"data": data, "metadata": {}, "transient": {}}
        send(serialize(message("display_data", content, parent=publisher.parent_header), ident=topic))

    return show


def _asking() -> Asking:
    """Return this kernel's connection to its grader."""
    from IPython import get_ipython

    return Asking(get_ipython().kernel.parent.connection_file)


def _duel(day: int, grade_id: str, namespace: Mapping[str, Any]) -> Evidence:
    """Run a learner's test on the implementations that the grader holds; outcomes are named by place in its order."""
    (name,), outcomes = find_ladder(day, grade_id).names, []
    for i, (tried, tell) in enumerate(ask_for_all(_asking())):
        outcomes.append(outcome := _outcome(str(i), partial(_tried, name, namespace, tried)))
        tell(None if outcome.error else outcome.values["verdict"].entries[0])
    return Evidence(grade_id, True, outcomes)


def _tried(name: str, namespace: Mapping[str, Any], tried: Tried) -> dict[str, Numbers]:
    return _numbered(verdict_of(_lookup(name, namespace), tried))


def all_ladders(day: int) -> Mapping[str, Ladder]:
    """Return the ladders of one day's exercises, by grade_id, in the order of the notebook."""
    return _KEPT.get(day) or loader.ladders(day)


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


def verdict_of(tells_right: Callable, tried: Tried) -> dict[str, float]:
    """Run a test on an implementation and return {"verdict": 1.0} for right, 0.0 for wrong.

    A failed assertion, or an error inside the implementation, means wrong. Other errors of the test pass through. Each
    implementation meets the same random numbers, also of a generator that the test's cell made.

    Raises:
        BadResult: if the test returns anything but True or False.
    """
    try:
        with _same_draws(getattr(tells_right, "__globals__", {})):
            said = tells_right(tried)
    except (AssertionError, FailedInside):
        return {"verdict": 0.0}
    if np.asarray(detached(said)).dtype.kind != "b" or np.ndim(said):
        raise BadResult(f"the test returned {describe(said)}; it should return True or False")
    return {"verdict": float(said)}


@contextmanager
def _same_draws(namespace: Mapping[str, Any]) -> Iterator[None]:
    """Leave the generators of random numbers as they were: those of modules, and those with a name in a namespace."""
    kept: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (np.random.set_state, np.random.get_state()),
    ]
    if torch := sys.modules.get("torch"):
        kept.append((torch.set_rng_state, torch.get_rng_state()))
    for each in list(namespace.values()):
        if isinstance(each, np.random.Generator):
            kept.append((partial(setattr, each.bit_generator, "state"), each.bit_generator.state))
        elif isinstance(each, random.Random):
            kept.append((each.setstate, each.getstate()))
    try:
        yield
    finally:
        for restore, state in kept:
            restore(state)


def _given(rung: Rung, ladder: Ladder, arrays: bool) -> Rung:
    """Return a rung whose arguments are copies, into which an answer may write."""
    return replace(rung, args=_arguments(rung.args, ladder.tensors and not arrays))


def _arguments(args: tuple, tensors: bool) -> tuple:
    """Return copies of the arguments, with arrays turned into tensors if asked."""
    args = deepcopy(args)
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
    """Return an error as text to send: its type, the first line of its message and the notebook line it came from."""
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
    """Return the notebook function in which an error arose, if another notebook function called it; else ""."""
    names = [each.name for each in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(each.filename)]
    return names[-1] if names and names[-1] != names[0] else ""


def _line_of(error: BaseException) -> str:
    """Say at which line of a notebook cell an error arose, with the line itself; empty if it arose in no cell."""
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
