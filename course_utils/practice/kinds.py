"""The kinds of practice problems, by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from difflib import get_close_matches

from course_utils.errors import CourseError

from . import attention_kinds, count_kinds, serving_kinds, state_kinds
from .problem import Problem

MOST_DRAWS = 2000
LEAST_LIKENESS = 0.7  # of a name that is suggested; difflib gives batching 0.67 for nothing
KINDS: dict[str, Callable[[random.Random], tuple]] = (
    attention_kinds.KINDS | count_kinds.KINDS | serving_kinds.KINDS | state_kinds.KINDS
)
LARGEST = 10**9


class UnknownKind(CourseError):
    """Error: there is no such kind of problem, or no problem can have this number."""


def problem(kind: str, number: int) -> Problem:
    """Return the problem of a kind that has this number: always the same, on every machine.

    Args:
        number: from 0 to 1,000,000,000.

    Raises:
        UnknownKind: there is no such kind (the message lists all), or the number is out of range.
    """
    if kind not in KINDS:
        near = "".join(f", did you mean {name}?" for name in get_close_matches(kind, KINDS, 1, LEAST_LIKENESS))
        raise UnknownKind(f"unknown kind: {kind!r}{near or '; the kinds are ' + ', '.join(KINDS)}")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= LARGEST:
        raise UnknownKind(f"the number of a problem is a whole number from 0 to {LARGEST:,}, not {number!r}")
    rng = random.Random(f"{kind}:{number}")
    for _ in range(MOST_DRAWS):
        statement, inputs, steps = KINDS[kind](rng)
        drawn = Problem(kind, number, statement, inputs, steps)
        if not drawn.is_degenerate():
            return drawn
    raise AssertionError(f"no problem of the kind {kind} in {MOST_DRAWS} draws")
