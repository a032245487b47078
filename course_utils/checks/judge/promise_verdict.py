"""Judge an answer with state by the promises that it keeps over the calls of each rung.

A watch checks the results here, outside the process that ran the answer. They are never compared with those of a
reference. A known mistake is recognised by the promises that it breaks, rung by rung.
"""

from __future__ import annotations

from collections.abc import Sequence

from course_utils import loader
from course_utils.checks.judge.exercise import KnownMistakes, Mistake
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import BAD_RESULT
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.promises import (
    ANY_ORDER,
    Broken,
    BrokenPromise,
    Call,
    Machine,
    Watch,
    call_as_code,
    nothing,
)
from course_utils.checks.kernel.result_numbers import Numbers

SHARED = "objects share their state"
TWO_OBJECTS = (
    "Alone, an object keeps its promises in these calls. Here a second object gets the same calls in reverse order: "
    "give each object lists and dicts of its own, in `__init__`."
)
SAME_PROMISES = "This mistake breaks the same promises on the same calls, but other mistakes may, too."
FORGED = Broken(0, "results as the statement says", "there is no result that can be read")
MAX_LISTED_CALLS = 8  # most calls of a rung that a message lists
LARGEST = 1e15  # bound of the numbers that an answer with state may return
MAX_ERROR_LENGTH = 300  # characters, as in evidence


def judge_promises(
    machine: Machine, rungs: Sequence[Rung], outcomes: Sequence[Outcome], known: KnownMistakes, hidden: bool
) -> Verdict:
    """Return the verdict on the outcomes of an answer, one for each rung in order."""
    broken = [broken_on(machine, rung, outcome) for rung, outcome in zip(rungs, outcomes, strict=True)]
    held = tuple((rung.name, each is None) for rung, each in zip(rungs, broken, strict=True))
    failures = [(rung, each) for rung, each in zip(rungs, broken, strict=True) if each]
    if not failures:
        return Verdict("passed", 1.0, rungs=held)
    rung, first = failures[0]
    if hidden:
        message = f"Wrong on hidden calls (“{rung.name}”): the promises must hold for any calls. {rung.why}"
        return Verdict("failed", 0.0, message.strip(), first.name, held)
    mistake = recognise(machine, rungs, broken, known)
    if rung.measure == machine.played_beside:
        name, reason = SHARED, TWO_OBJECTS
    elif mistake:
        name, reason = mistake.name, f"{mistake.message} {SAME_PROMISES}"
    else:
        name, reason = first.name, ""
    return Verdict("failed", 0.0, f"{_describe_failure(rung, first)} {reason}".strip(), name, held)


def recognise(
    machine: Machine, rungs: Sequence[Rung], broken: Sequence[Broken | None], known: KnownMistakes
) -> Mistake | None:
    """Return the known mistake that breaks the same promises on the same rungs; None if there is none.

    Rungs with drawn calls are compared only if no other rung fails, because there the promise that breaks first depends
    on choices that an answer is free to make.
    """
    names = [_name_of(each) for each in broken]
    places = [place for place, rung in enumerate(rungs) if rung.why != ANY_ORDER]
    if not any(names[place] for place in places):
        places = list(range(len(rungs)))
    for mistake, evidence in known:
        if all(names[i] == _name_of(broken_on(machine, rungs[i], evidence.outcomes[i])) for i in places):
            return mistake
    return None


def broken_on(machine: Machine, rung: Rung, outcome: Outcome) -> Broken | None:
    """Return the promise that an outcome breaks, or None; an outcome that no check can have sent breaks FORGED."""
    setup, calls = rung.args
    if outcome.error:
        error = outcome.error[:MAX_ERROR_LENGTH]
        kind, _, text = error.partition(": ")
        if kind == BAD_RESULT:
            return Broken(len(calls), FORGED.name, text)
        return Broken(len(calls), "no other errors", f"it raised {error}")
    try:
        results = [_numbers_of_call(outcome.values[str(place)], len(machine.errors)) for place in range(len(calls))]
        return first_broken(machine, setup, calls, results)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return FORGED


def _name_of(broken: Broken | None) -> str:
    return "" if broken is None else broken.name


def _numbers_of_call(result: Numbers, errors: int) -> list[float]:
    """Return the numbers sent for a call. Raises LookupError or ValueError for numbers that no machine writes."""
    numbers = list(result.entries)
    if len(result.shape) != 1 or not all(abs(each) < LARGEST and each % 1 == 0 for each in numbers):
        raise ValueError("no whole numbers of a call")
    if numbers[0] not in range(errors + 1) or (numbers[0] and len(numbers) > 1):
        raise ValueError("no kind of result")
    return numbers


def _describe_failure(rung: Rung, broken: Broken) -> str:
    """Describe which promise was broken, and after which calls."""
    _, calls = rung.args
    if broken.call >= len(calls):
        return f"On “{rung.name}” {broken.description}."
    texts = [call_as_code(call) for call in calls[: broken.call + 1]]
    omitted = len(texts) - MAX_LISTED_CALLS
    before = f"… {omitted} {'call' if omitted == 1 else 'calls'}, then " if omitted > 0 else ""
    return f"On “{rung.name}”, after {before}{'; '.join(texts[-MAX_LISTED_CALLS:])}: {broken.description}."


def begin_watch(machine: Machine, setup: tuple) -> Watch:
    """Return a new watch for an object made from the arguments `setup`."""
    return loader.of_a_day(machine.watch)(*setup)


def first_broken(
    machine: Machine, setup: tuple, calls: Sequence[Call], results: Sequence[Sequence[float]]
) -> Broken | None:
    """Return the first promise that the results of these calls break, or None."""
    watch = begin_watch(machine, setup)
    for place, (call, numbers) in enumerate(zip(calls, results, strict=True)):
        if broken := observe_call(machine, watch, place, call, numbers):
            return broken
    return None


def observe_call(machine: Machine, watch: Watch, place: int, call: Call, numbers: Sequence[float]) -> Broken | None:
    """Give the result of one call to a watch, and return the promise that it breaks, or None.

    Args:
        place: the index of the call.
        numbers: the result, as `Machine.ask` returns it.

    Raises:
        ValueError: for numbers that no result gives; the watch may raise an ArithmeticError or LookupError for them.
    """
    method, *args = call
    if machine.reads[method] is nothing and len(numbers) > 1:
        raise ValueError("a result of a call that returns nothing")
    kind = int(numbers[0])
    error = machine.errors[kind - 1] if kind else None
    try:
        watch.observe(method, tuple(args), None if error else list(numbers[1:]), error)
    except BrokenPromise as broken:
        return Broken(place, broken.name, broken.description)
    return None
