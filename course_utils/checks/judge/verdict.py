"""The verdict on an answer, and the comparison of its results with the right ones, rung by rung."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.checks.kernel.evidence import NOT_FILLED_IN, UNWRITTEN
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.result_numbers import Numbers

# How the errors begin that an overflow of exp raises, and all that a mistake in arithmetic or in an index may raise.
OVERFLOW_ERRORS = ("OverflowError", "ZeroDivisionError", "FloatingPointError", "ValueError: math domain error")
ARITHMETIC_ERRORS = (*OVERFLOW_ERRORS, "ValueError", "RuntimeError", "IndexError")
UNKNOWN_NAME = "NameError: name"  # how Python's error for an undefined name begins
JOINT = "; "  # between the names of two mistakes


@dataclass(frozen=True)
class Verdict:
    """The verdict on one answer.

    Attributes:
        status: passed, failed, error, missing, forbidden or timeout; from a grader also killed.
        share: the part of the points that the answer earns, 0 to 1.
        mistake: the name of the known mistake, relation or broken promise that was found; of two, with JOINT.
        rungs: (name, held) of each rung.
        unknown_name: whether the answer failed because a name is not defined.
    """

    status: str
    share: float
    message: str = ""
    mistake: str | None = None
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


def holds(outcome: Outcome, right: Outcome, tolerance: Tolerance) -> bool:
    """Return whether an outcome has the right parts, shapes and, within the tolerance, numbers; False for an error."""
    if outcome.error or not outcome.values or outcome.values.keys() != right.values.keys():
        return False
    return all(close(outcome.values[part], array, tolerance.of(part)) for part, array in right.values.items())


def close(actual: Numbers | None, expected: Numbers, tolerance: Tolerance) -> bool:
    """Return whether an array has the expected shape and, within the tolerance, the expected entries."""
    if actual is None or actual.shape != expected.shape:
        return False
    return all(map(tolerance.near, actual.entries, expected.entries))


def wrong_parts(outcome: Outcome, right: Outcome, tolerance: Tolerance) -> set[str]:
    """Return the wrong parts of an outcome that does not hold: {"result"} if no single part is wrong."""
    wrong = {
        part for part, array in right.values.items() if not close(outcome.values.get(part), array, tolerance.of(part))
    }
    return wrong or {"result"}


def explains(outcomes: Sequence[Outcome], known: Iterable[Outcome], tolerances: Sequence[Tolerance]) -> bool:
    """Return whether a known mistake explains the outcomes of an answer on the rungs on which it fails.

    On a rung that raised an error the mistake need only fail too, because it may raise one error with lists and another
    with NumPy. An error that arithmetic never raises, such as NameError, is no known mistake. If the answer
    gives finite values on any rung, the mistake must agree with it on at least one.

    Args:
        outcomes: the outcomes of the answer.
        known: the outcomes of the mistake on the same rungs.
    """
    has_agreed = False
    for outcome, mistaken, tolerance in zip(outcomes, known, tolerances, strict=True):
        if outcome.error:
            if is_finite(mistaken) or not outcome.error.startswith(ARITHMETIC_ERRORS):
                return False
            continue
        if mistaken.error and not is_finite(outcome):
            continue
        if not holds(outcome, mistaken, tolerance):
            return False
        has_agreed = True
    return has_agreed or not any(map(is_finite, outcomes))


def is_mask(part: str, entries: Iterable[float]) -> bool:
    """Return whether the 1 and 0 of a part of a result stand for True and False."""
    return "mask" in part and {*entries} <= {0.0, 1.0}


def gap(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> float:
    """Return the largest difference between two sets of outcomes, over arrays of equal shape."""
    differences = []
    for outcome, other in zip(outcomes, others, strict=True):
        for part, array in other.values.items():
            if part in outcome.values and outcome.values[part].shape == array.shape:
                entries = zip(outcome.values[part].entries, array.entries, strict=True)
                differences += [abs(a - b) for a, b in entries]
    return max(differences, default=math.inf)


def is_finite(outcome: Outcome) -> bool:
    """Return whether an outcome is no error and holds finite numbers alone."""
    return not outcome.error and all(math.isfinite(x) for array in outcome.values.values() for x in array.entries)


def is_unwritten(outcome: Outcome) -> bool:
    """Return whether an outcome is that of an unwritten stub; PyTorch raises NotImplementedError, too."""
    kind, _, text = outcome.error.partition(": ")
    return kind == "NotImplementedError" and (text in ("", UNWRITTEN) or text.endswith(NOT_FILLED_IN))
