"""What is said of an answer, and how what it gave is compared with what is right, rung by rung."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.checks.kernel.numbers import Numbers
from course_utils.checks.kernel.outcome import Outcome

ERRORS_OF_ARITHMETIC = (
    "OverflowError",
    "ZeroDivisionError",
    "FloatingPointError",
    "ValueError",
    "RuntimeError",
    "IndexError",
)


@dataclass(frozen=True)
class Verdict:
    """status: passed, failed, error, missing or forbidden; from a grader also timeout or killed.

    share: of the points, 0 to 1. rungs: (name, held). unknown_name: the answer failed for a name that nothing defines.
    """

    status: str
    share: float
    message: str = ""
    misconception: str | None = None
    rungs: tuple[tuple[str, bool], ...] = ()
    unknown_name: bool = False


@dataclass(frozen=True)
class Tolerance:
    """A number a holds for b when |a − b| ≤ atol + rtol·|b|; parts: (rtol, atol) of those that have their own."""

    rtol: float
    atol: float
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def of(self, part: str) -> Tolerance:
        """The tolerance of one part of a result."""
        return Tolerance(*self.parts.get(part, (self.rtol, self.atol)))

    def near(self, a: float, b: float) -> bool:
        """Whether a holds for b."""
        if not math.isfinite(b):
            return a == b or (math.isnan(a) and math.isnan(b))
        return abs(a - b) <= self.atol + self.rtol * abs(b)


def holds(given: Outcome, wanted: Outcome, tolerance: Tolerance) -> bool:
    """Whether an outcome is right: its parts, shapes and numbers, within the tolerance. Never true of an error."""
    if given.error or not given.values or given.values.keys() != wanted.values.keys():
        return False
    return all(close(given.values[part], array, tolerance.of(part)) for part, array in wanted.values.items())


def close(given: Numbers | None, wanted: Numbers, tolerance: Tolerance) -> bool:
    """Whether an array holds for another: its shape and its entries, within the tolerance."""
    if given is None or given.shape != wanted.shape:
        return False
    return all(map(tolerance.near, given.entries, wanted.entries))


def wrong_parts(given: Outcome, wanted: Outcome, tolerance: Tolerance) -> set[str]:
    """The parts of an outcome that do not hold: never none, for one that does not."""
    right = wanted.values.items()
    return {part for part, array in right if not close(given.values.get(part), array, tolerance.of(part))} or {"result"}


def explains(
    outcomes: Sequence[Outcome], known: Sequence[Outcome], held: Sequence[bool], tolerances: Sequence[Tolerance]
) -> bool:
    """Whether a mistake gives what was given, on the rungs that failed.

    On a rung that raised, the mistake need only fail too: the same slip raises one error in lists, another in NumPy.
    An error that no arithmetic gives, such as NameError, is no known mistake. Where any failing rung has finite values,
    at least one must agree in them.
    """
    agreed = False
    for given, mistaken, ok, tolerance in zip(outcomes, known, held, tolerances, strict=True):
        if given.error:
            if _finite(mistaken) or not given.error.startswith(ERRORS_OF_ARITHMETIC):
                return False
            continue
        if mistaken.error and not ok and not _finite(given):
            continue
        if not holds(given, mistaken, tolerance):
            return False
        agreed = agreed or not ok
    return agreed or not any(_finite(given) for given, ok in zip(outcomes, held, strict=True) if not ok)


def gap(outcomes: Sequence[Outcome], others: Sequence[Outcome], held: Sequence[bool]) -> float:
    """The largest difference between numbers on the rungs that failed and have the same shape."""
    pairs = [
        (a, b)
        for given, other, ok in zip(outcomes, others, held, strict=True)
        if not ok
        for part, array in other.values.items()
        if part in given.values and given.values[part].shape == array.shape
        for a, b in zip(given.values[part].entries, array.entries, strict=True)
    ]
    return max((abs(a - b) for a, b in pairs), default=math.inf)


def _finite(outcome: Outcome) -> bool:
    return not outcome.error and all(math.isfinite(x) for array in outcome.values.values() for x in array.entries)
