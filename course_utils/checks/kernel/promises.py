"""Objects with state, judged by what they promise: calls are made on one, and a watch hears what came back.

Which block an allocator hands out, which of two waiting requests gets what is left of a budget: such choices are free.
So nothing is compared with the results of a reference. A `Watch` keeps the promises of a statement beside the object:
it notes the choices it hears of, and says which promise was broken, at which call. No watch holds an answer: it never
decides what an object should do where that is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, NoReturn

import numpy as np

from course_utils.checks.kernel.numbers import BadResult
from course_utils.checks.kernel.small import Choose

Call = tuple[Any, ...]  # the name of a method and its arguments
_SHORT = Repr()
_SHORT.maxtuple = 20
LONGEST_LIST = 10_000  # numbers, far more than any pool has blocks
ANY_ORDER = "The promises hold in any order of calls."  # why a rung is there whose calls are drawn
Heard = list[float]  # 0 and the numbers of a result, or the place of an error among those that a machine knows, from 1


class BrokenPromise(Exception):
    """A promise that was not kept. name: of the promise. said: what happened, as the end of a sentence."""

    def __init__(self, name: str, said: str):
        super().__init__(said)
        self.name, self.said = name, said


@dataclass(frozen=True)
class Broken:
    """Where a promise was broken: at which call, from 0, which one, and what happened there, in words."""

    call: int
    name: str
    said: str


class Watch:
    """What an object promises, kept beside it. Made from the object's own arguments, like it."""

    def hear(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Take in what a call gave: numbers, or the kind of an error. Raises BrokenPromise."""
        raise NotImplementedError

    def picture(self) -> Mapping[str, Any]:
        """What there is to be seen after the calls so far, for a player: {} where there is nothing."""
        return {}


@dataclass(frozen=True)
class Machine:
    """How an exercise with state is tried.

    watch: the class that knows what it promises, as `day7.promise_monitors.AllocatorWatch`: a grading kernel has no
    watch, and needs none to make the calls.
    setup: draws the arguments that the object is made from. call: draws a call, given
    those and the calls before it. reads: for each method, what makes a list of numbers of its result, raising BadResult
    for what is none. errors: what a call may raise.
    """

    watch: str
    setup: Callable[[Choose], tuple]
    call: Callable[[Choose, tuple, Sequence[Call]], Call]
    reads: Mapping[str, Callable[[Any], Sequence[float]]]
    errors: tuple[type[Exception], ...] = (KeyError, MemoryError)

    def ask(self, thing: Any, call: Call) -> Heard:
        """Make one call on an object."""
        method, *args = call
        try:
            result = getattr(thing, method)(*args)
        except self.errors as error:
            kinds = [place for place, kind in enumerate(self.errors, start=1) if isinstance(error, kind)]
            return [float(kinds[0])]
        return [0.0, *map(float, self.reads[method](result))]

    def played(self, make: Callable, setup: tuple, calls: Sequence[Call]) -> dict[str, Heard]:
        """What each call gives, by its place: the measure of a rung."""
        thing = make(*setup)
        return {str(place): self.ask(thing, call) for place, call in enumerate(calls)}

    def played_beside(self, make: Callable, setup: tuple, calls: Sequence[Call]) -> dict[str, Heard]:
        """As `played`, while another object that was made from the same arguments hears the same calls in reverse."""
        thing, other, heard = make(*setup), make(*setup), {}
        for place, call in enumerate(calls):
            heard[str(place)] = self.ask(thing, call)
            with suppress(Exception):  # what happens to it is no part of this try
                self.ask(other, calls[-1 - place])
        return heard


def breaks(name: str, said: str) -> NoReturn:
    """Say that a promise was broken."""
    raise BrokenPromise(name, said)


def nothing(result: Any) -> list[float]:
    """Of a call that returns nothing."""
    if result is not None:
        raise BadResult(f"it returned {str(result)[:60]}; it should return nothing")
    return []


def whole_numbers(result: Any) -> list[float]:
    """Of a call that returns a list of whole numbers."""
    if not isinstance(result, (list, tuple, np.ndarray)):
        raise BadResult(f"it returned {type(result).__name__}; it should return a list")
    if len(result) > LONGEST_LIST:
        raise BadResult(f"it returned a list of {len(result):,} numbers")
    return [whole_number(each) for each in result]


def whole_number(result: Any) -> float:
    """A whole number as one. True and False are none."""
    if isinstance(result, bool) or not hasattr(result, "__index__"):
        raise BadResult(f"it returned {str(result)[:60]}, where a whole number belongs")
    return float(result.__index__())


def say_call(call: Call) -> str:
    """A call as code: append('a'); of long arguments the first entries."""
    method, *args = call
    return f"{method}({', '.join(map(_SHORT.repr, args))})"


def drawn_calls(machine: Machine, choose: Choose, setup: tuple, count: int) -> tuple[Call, ...]:
    """So many calls, each drawn after those before it."""
    calls: list[Call] = []
    for _ in range(count):
        calls.append(machine.call(choose, setup, calls))
    return tuple(calls)
