"""How the checks test the objects of day 7: which calls are drawn, and how results are read.

`watches` checks the promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_utils.checks.kernel.promises import Call, Machine, nothing, whole_number, whole_numbers
from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.checks.kernel.small import Choose

NAMES = "abcd"  # names of sequences and requests
LETTERS = "abcdefghijklmnopqrstuvwxyz"  # names of requests to a scheduler


def allocator_call(choose: Choose, _: tuple, __: Sequence[Call]) -> Call:
    """Draw a call on an allocator, preferably an append."""
    kind = choose(0, 9)
    seq = NAMES[choose(0, 2)]
    if kind < 5:
        return ("append", seq)
    if kind < 7:
        return ("free", seq)
    return ("fork", seq, NAMES[choose(0, 3)]) if kind < 9 else ("table", seq)


def place_of_a_token(result: object) -> list[float]:
    """Read the pair (block, place)."""
    return [whole_number(each) for each in _pair(result, "append returns (block, place)")]


def _pair(result: object, expected: str, first: type = object) -> Sequence:
    """Return a result that is a pair whose first part has type `first`. Raises BadResult with `expected` otherwise."""
    if not isinstance(result, (tuple, list)) or len(result) != 2 or not isinstance(result[0], first):
        came = "None" if result is None else type(result).__name__
        raise BadResult(f"it returned {came}; {expected}")
    return result


ALLOCATOR = Machine(
    "day7.watches.AllocatorWatch",
    setup=lambda choose: (choose(1, 4), choose(1, 3)),
    call=allocator_call,
    reads={"append": place_of_a_token, "fork": nothing, "table": whole_numbers, "free": nothing},
    errors=(KeyError, MemoryError, ValueError),
)


# A cache of prefixes --------------------------------------------------------------------------------------------------


def admitted(result: object) -> list[float]:
    """Read the number of cached tokens, and the table."""
    cached, table = _pair(result, "admit returns (cached, table)")
    return [whole_number(cached), *whole_numbers(table)]


def prefix_call(choose: Choose, setup: tuple, before: Sequence[Call]) -> Call:
    """Draw a call on a prefix cache, preferably a valid one; texts use few different tokens, so that prefixes agree."""
    alive = {call[1]: call[0] for call in before if call[0] in ("admit", "commit", "release")}
    here = [name for name, last in alive.items() if last != "release"]
    others = [name for name in NAMES[:3] if name not in here]
    kind = choose(0, 15)
    if kind == 15:  # with a name that may be unknown, or known already
        name = NAMES[choose(0, 2)]
        return [("commit", name), ("release", name), ("table", name), ("admit", name, (0,))][choose(0, 3)]
    if not here or (others and kind < 6):
        texts = [call[2] for call in before if call[0] == "admit"]
        text = texts[choose(0, min(3, len(texts) - 1))] if texts and choose(0, 3) < 3 else ()
        return ("admit", others[0], (*text, *(choose(0, 1) for _ in range(choose(0 if text else 1, setup[1] + 1)))))
    name = here[choose(0, len(here) - 1)]
    if kind < 10 and alive[name] == "admit":
        return ("commit", name)
    return ("release", name) if kind < 13 else ("table", name)


PREFIXES = Machine(
    "day7.watches.PrefixWatch",
    setup=lambda choose: (choose(1, 4), choose(1, 2)),
    call=prefix_call,
    reads={"admit": admitted, "commit": nothing, "release": nothing, "table": whole_numbers},
    errors=(KeyError, MemoryError, ValueError),
)


# A scheduler ----------------------------------------------------------------------------------------------------------


def planned(result: object) -> list[float]:
    """Read a plan: the number of requests, each with its tokens, then the preempted requests."""
    plan, preempted = _pair(result, "step returns (plan, preempted), a dict and a list", Mapping)
    numbers = [float(len(plan))]
    for name, count in plan.items():
        numbers += [_place(name), whole_number(count)]
    return numbers + [_place(name) for name in preempted]


def _place(name: object) -> float:
    if not isinstance(name, str) or len(name) != 1 or name not in LETTERS:
        raise BadResult(f"{str(name)[:20]} is no name of a request")
    return float(LETTERS.index(name))


def scheduler_call(choose: Choose, _: tuple, before: Sequence[Call]) -> Call:
    """Draw a call on a scheduler, preferably a step; names do not always come in order, and some requests are long."""
    there = {call[1] for call in before if call[0] == "add"}
    free = [letter for letter in LETTERS if letter not in there]
    if not free or (there and choose(0, 2) < 2):
        return ("step",)
    name = free[-choose(0, 1)]
    long = choose(0, 7) == 7
    return ("add", name, choose(1, 16), choose(1, 8)) if long else ("add", name, choose(1, 5), choose(1, 4))


SCHEDULER = Machine(
    "day7.watches.SchedulerWatch",
    setup=lambda choose: (choose(1, 6), choose(1, 3), choose(1, 5)),
    call=scheduler_call,
    reads={"add": nothing, "step": planned},
    errors=(ValueError,),
)


# A batch that refills -------------------------------------------------------------------------------------------------


def computed(result: object) -> list[float]:
    """Read a plan without preemption: each request with its tokens."""
    if not isinstance(result, Mapping):
        came = "None" if result is None else type(result).__name__
        raise BadResult(f"it returned {came}; step returns a dict: names and numbers of tokens")
    numbers: list[float] = []
    for name, count in result.items():
        numbers += [_place(name), whole_number(count)]
    return numbers


BATCHES = Machine(
    "day7.watches.BatchWatch",
    setup=lambda choose: (choose(1, 3), choose(1, 6), choose(1, 3)),
    call=scheduler_call,
    reads={"add": nothing, "step": computed},
    errors=(MemoryError, ValueError),
)


# A window with drafts -------------------------------------------------------------------------------------------------


def window_call(choose: Choose, _: tuple, before: Sequence[Call]) -> Call:
    """Draw a call on a window, preferably a valid one; each token has a number of its own."""
    count = sum(len(call[1]) if call[0] == "draft" else call[0] == "append" for call in before)
    last = next((call for call in reversed(before) if call[0] in ("draft", "keep")), ("keep",))
    kind = choose(0, 9)
    if last[0] == "draft":
        return ("visible",) if kind < 3 else ("append", count) if kind == 3 else ("keep", choose(0, 1 + len(last[1])))
    if kind < 5:
        return ("append", count)
    if kind < 8:
        return ("draft", tuple(range(count, count + choose(1, 4))))
    return ("visible",) if kind == 8 else ("keep", choose(0, 1))


WINDOW = Machine(
    "day7.watches.WindowWatch",
    setup=lambda choose: (choose(1, 5),),
    call=window_call,
    reads={"append": nothing, "draft": nothing, "keep": nothing, "visible": whole_numbers},
    errors=(ValueError,),
)
