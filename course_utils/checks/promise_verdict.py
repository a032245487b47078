"""The verdict on an answer with state: which promises it kept, over the calls of each rung.

What came back is heard by a watch here, outside the process that ran the answer. Equality with a reference is nowhere
asked for. A known mistake is recognised by the promises that it breaks, rung by rung.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .evidence import BAD_RESULT, Rung
from .inputs.promises import Broken, Machine, say_call
from .verdict import Outcome, Verdict

if TYPE_CHECKING:
    from .judged import JudgedExercise

Signature = tuple[str, ...]  # for each rung the promise that was broken; empty where all were kept
FORGED = Broken(0, "results as the statement says", "there is no result that can be read")
SHOWN = 8  # calls of a rung that a message repeats


def judge_promises(judge: JudgedExercise, gave: Sequence[Outcome], hidden: bool) -> Verdict:
    """The verdict on what an answer gave on each rung, in their order."""
    rungs = judge.rungs(hidden)
    found = [broken_on(judge, rung, outcome) for rung, outcome in zip(rungs, gave, strict=True)]
    held = tuple((rung.name, broken is None) for rung, broken in zip(rungs, found, strict=True))
    first = next(((rung, broken) for rung, broken in zip(rungs, found, strict=True) if broken), None)
    if first is None:
        return Verdict("passed", 1.0, rungs=held)
    rung, broken = first
    if hidden:
        said = f"Wrong on hidden calls (“{rung.name}”): the promises must hold for any calls. {rung.why}"
        return Verdict("failed", 0.0, said.strip(), broken.name, held)
    signature = signature_of(found)
    for mistake, known in judge.mistakes():
        outcomes = zip(rungs, known["outcomes"], strict=True)
        if all(
            name == (each.name if (each := broken_on(judge, *outcome)) else "")
            for name, outcome in zip(signature, outcomes, strict=True)
        ):
            return Verdict("failed", 0.0, f"{_told(rung, broken)} {mistake.message}", mistake.name, held)
    return Verdict("failed", 0.0, f"{_told(rung, broken)} {rung.why}".strip(), broken.name, held)


def broken_on(judge: JudgedExercise, rung: Rung, outcome: Outcome) -> Broken | None:
    """The promise that an outcome breaks; None where all were kept. What no check sends keeps none."""
    machine: Machine | None = judge.ladder.machine
    assert machine is not None
    setup, calls = rung.args
    if "error" in outcome:
        kind, _, text = str(outcome["error"]).partition(": ")
        said = text if kind == BAD_RESULT else f"it raised {outcome['error']}"
        return Broken(len(calls), "no other errors" if kind != BAD_RESULT else FORGED.name, said)
    try:
        heard = [_numbers(outcome["values"][str(place)], len(machine.errors)) for place in range(len(calls))]
        return machine.broken(setup, calls, heard)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return FORGED


def signature_of(found: Sequence[Broken | None]) -> Signature:
    """The promises that were broken, rung by rung."""
    return tuple(broken.name if broken else "" for broken in found)


def _numbers(heard: Any, errors: int) -> list[float]:
    """What was heard of a call. Raises LookupError or ValueError for what no machine writes."""
    numbers = [float(each) for each in heard["numbers"]]
    if list(heard["shape"]) != [len(numbers)] or not all(abs(each) < 1e15 for each in numbers):
        raise ValueError("no numbers of a call")
    if numbers[0] not in range(errors + 1) or (numbers[0] and len(numbers) > 1):
        raise ValueError("no kind of result")
    return numbers


def _told(rung: Rung, broken: Broken) -> str:
    """What was broken, after which calls."""
    _, calls = rung.args
    if broken.call >= len(calls):
        return f"On “{rung.name}” {broken.said}."
    made = [say_call(call) for call in calls[: broken.call + 1]]
    before = "" if len(made) <= SHOWN else f"… {len(made) - SHOWN} calls, then "
    return f"On “{rung.name}”, after {before}{'; '.join(made[-SHOWN:])}: {broken.said}."
