"""The verdict on an answer, and the comparison of its results with the right ones, rung by rung."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.result_numbers import Numbers

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
    """The verdict on one answer.

    Attributes:
        status: passed, failed, error, missing, forbidden or timeout; from a grader also killed.
        share: the part of the points that the answer earns, 0 to 1.
        misconception: the name of the known mistake, relation or broken promise that was found.
        rungs: (name, held) of each rung.
        unknown_name: whether the answer failed because a name is not defined.
    """

    status: str
    share: float
    message: str = ""
    misconception: str | None = None
    rungs: tuple[tuple[str, bool], ...] = ()
    unknown_name: bool = False


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be off: a number a counts as equal to b when |a − b| ≤ atol + rtol·|b|.

    Attributes:
        parts: (rtol, atol) of those parts of a result that have their own.
    """

    rtol: float
    atol: float
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def of(self, part: str) -> Tolerance:
        """Return the tolerance of one part of a result."""
        return Tolerance(*self.parts.get(part, (self.rtol, self.atol)))

    def near(self, a: float, b: float) -> bool:
        """Return whether a counts as equal to b."""
        if not math.isfinite(b):
            return a == b or (math.isnan(a) and math.isnan(b))
        return abs(a - b) <= self.atol + self.rtol * abs(b)


def holds(given: Outcome, wanted: Outcome, tolerance: Tolerance) -> bool:
    """Return whether an outcome has the right parts, shapes and, within the tolerance, numbers; False for an error."""
    if given.error or not given.values or given.values.keys() != wanted.values.keys():
        return False
    return all(close(given.values[part], array, tolerance.of(part)) for part, array in wanted.values.items())


def close(given: Numbers | None, wanted: Numbers, tolerance: Tolerance) -> bool:
    """Return whether an array has the wanted shape and, within the tolerance, the wanted entries."""
    if given is None or given.shape != wanted.shape:
        return False
    return all(map(tolerance.near, given.entries, wanted.entries))


def wrong_parts(given: Outcome, wanted: Outcome, tolerance: Tolerance) -> set[str]:
    """Return the wrong parts of an outcome that does not hold: {"result"} where no single part is wrong."""
    right = wanted.values.items()
    return {part for part, array in right if not close(given.values.get(part), array, tolerance.of(part))} or {"result"}


def explains(outcomes: Sequence[Outcome], known: Iterable[Outcome], tolerances: Sequence[Tolerance]) -> bool:
    """Return whether a known mistake explains the outcomes of an answer on the rungs on which it fails.

    On a rung that raised an error the mistake need only fail too, because the same slip raises one error with lists and
    another with NumPy. An error that arithmetic never raises, such as NameError, is no known mistake. If the answer
    gives finite values on any rung, the mistake must agree with it on at least one.

    Args:
        outcomes: the outcomes of the answer.
        known: the outcomes of the mistake on the same rungs.
    """
    agreed = False
    for given, mistaken, tolerance in zip(outcomes, known, tolerances, strict=True):
        if given.error:
            if is_finite(mistaken) or not given.error.startswith(ERRORS_OF_ARITHMETIC):
                return False
            continue
        if mistaken.error and not is_finite(given):
            continue
        if not holds(given, mistaken, tolerance):
            return False
        agreed = True
    return agreed or not any(map(is_finite, outcomes))


def gap(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> float:
    """Return the largest difference between two sets of outcomes, over arrays of equal shape."""
    pairs = [
        (a, b)
        for given, other in zip(outcomes, others, strict=True)
        for part, array in other.values.items()
        if part in given.values and given.values[part].shape == array.shape
        for a, b in zip(given.values[part].entries, array.entries, strict=True)
    ]
    return max((abs(a - b) for a, b in pairs), default=math.inf)


def is_finite(outcome: Outcome) -> bool:
    """Return whether an outcome is no error and holds finite numbers alone."""
    return not outcome.error and all(math.isfinite(x) for array in outcome.values.values() for x in array.entries)
