"""Test objects with state by the promises of their exercise: make calls on one, and give the results to a watch.

An object is free in some choices, such as which block an allocator hands out, or which of two waiting requests gets the
rest of a budget. So nothing is compared with the results of a reference. A `Watch` follows the object: it notes the
choices that the results show, and says which promise was broken, at which call. A watch holds no answer: where a choice
is free, it never decides what the object should do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, NoReturn

import numpy as np

from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.checks.kernel.small import Choose

Call = tuple[Any, ...]  # the name of a method and its arguments
_SHORT = Repr()
_SHORT.maxtuple = 20
MAX_LIST_LENGTH = 10_000  # numbers, far more than any pool has blocks
ANY_ORDER = "The promises hold in any order of calls."  # the `why` of a rung whose calls are drawn
CallResult = list[float]  # 0 and the numbers of a result, or the place, from 1, of an error in `Machine.errors`


class BrokenPromise(Exception):
    """Raised for a promise that was not kept.

    Attributes:
        name: the name of the promise.
        description: what happened, as the end of a sentence.
    """

    def __init__(self, name: str, description: str):
        super().__init__(description)
        self.name = name
        self.description = description


@dataclass(frozen=True)
class Broken:
    """A broken promise.

    Attributes:
        call: the index of the call that broke it, from 0.
        name: the name of the promise.
        description: what happened, as the end of a sentence.
    """

    call: int
    name: str
    description: str


class Watch:
    """An observer that follows one object and checks its promises; it is made from the same arguments as the object."""

    def observe(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Take in the result of a call, as numbers, or the type of the error that it raised.

        Raises:
            BrokenPromise: if the call broke a promise.
        """
        raise NotImplementedError

    def picture(self) -> Mapping[str, Any]:
        """Return what a player shows after the calls so far; {} if there is nothing to show."""
        return {}


@dataclass(frozen=True)
class Machine:
    """How to test an answer that is an object with state.

    Attributes:
        watch: the name of the class that knows the promises, such as `day7.watches.AllocatorWatch`. A grading
            kernel has no watch and needs none to make the calls.
        setup: draws the arguments that the object is made from.
        call: draws a call, given those arguments and the calls before it.
        reads: for each method, the function that turns its result into a list of numbers, or raises BadResult.
        errors: the errors that a call may raise.
    """

    watch: str
    setup: Callable[[Choose], tuple]
    call: Callable[[Choose, tuple, Sequence[Call]], Call]
    reads: Mapping[str, Callable[[Any], Sequence[float]]]
    errors: tuple[type[Exception], ...] = (KeyError, MemoryError)

    def make_call(self, thing: Any, call: Call) -> CallResult:
        """Make one call on an object and return its result as numbers (see `CallResult`)."""
        method, *args = call
        try:
            result = getattr(thing, method)(*args)
        except self.errors as error:
            kinds = [place for place, kind in enumerate(self.errors, start=1) if isinstance(error, kind)]
            return [float(kinds[0])]
        return [0.0, *map(float, self.reads[method](result))]

    def played(self, make: Callable, setup: tuple, calls: Sequence[Call]) -> dict[str, CallResult]:
        """Make all calls on a new object and return each result by its place, as the measure of a rung."""
        thing = make(*setup)
        return {str(place): self.make_call(thing, call) for place, call in enumerate(calls)}

    def played_beside(self, make: Callable, setup: tuple, calls: Sequence[Call]) -> dict[str, CallResult]:
        """As `played`, while another object that was made from the same arguments gets the same calls in reverse."""
        thing = make(*setup)
        other = make(*setup)
        results = {}
        for place, call in enumerate(calls):
            results[str(place)] = self.make_call(thing, call)
            with suppress(Exception):  # what the other object does is not examined
                self.make_call(other, calls[-1 - place])
        return results


def raise_broken(name: str, description: str) -> NoReturn:
    """Raise BrokenPromise."""
    raise BrokenPromise(name, description)


def nothing(result: Any) -> list[float]:
    """Read the result of a call that returns nothing. Raises BadResult for any other."""
    if result is not None:
        raise BadResult(f"it returned {str(result)[:60]}; it should return nothing")
    return []


def whole_numbers(result: Any) -> list[float]:
    """Read the result of a call that returns a list of whole numbers. Raises BadResult for any other."""
    if not isinstance(result, (list, tuple, np.ndarray)):
        raise BadResult(f"it returned {type(result).__name__}; it should return a list")
    if len(result) > MAX_LIST_LENGTH:
        raise BadResult(f"it returned a list of {len(result):,} numbers")
    return [whole_number(each) for each in result]


def whole_number(result: Any) -> float:
    """Return a whole number as a float. Raises BadResult for anything else, True and False included."""
    if isinstance(result, bool) or not hasattr(result, "__index__"):
        raise BadResult(f"it returned {str(result)[:60]}, where a whole number belongs")
    return float(result.__index__())


def call_as_code(call: Call) -> str:
    """Return a call as code, such as `append('a')`, with the first entries of long arguments."""
    method, *args = call
    return f"{method}({', '.join(map(_SHORT.repr, args))})"


def drawn_calls(machine: Machine, choose: Choose, setup: tuple, count: int) -> tuple[Call, ...]:
    """Draw `count` calls one after another, each given those before it."""
    calls: list[Call] = []
    for _ in range(count):
        calls.append(machine.call(choose, setup, calls))
    return tuple(calls)
