"""Find that exp overflows in an answer which is wrong in another way, too, so that both slips are told."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from course_utils.checks.judge.exercise import Mistake
from course_utils.checks.judge.verdict import Tolerance, holds, is_finite
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Evidence, Outcome

ERRORS = ("OverflowError", "ZeroDivisionError", "FloatingPointError", "ValueError: math domain error")


@dataclass(frozen=True)
class Overflow:
    """An overflow that was seen in an answer.

    Attributes:
        mistake: a known mistake that overflows on the same rungs, or on nearly the same.
        seen: the rungs on which the answer overflows.
        others: the other rungs.
        telling: those of the others on which the mistake is right.
        certain: whether the answer overflows wherever the mistake does, returns ∞, or raises OverflowError.
    """

    mistake: Mistake
    seen: Sequence[int]
    others: Sequence[int]
    telling: Sequence[int]
    certain: bool


def find_overflow(
    outcomes: Sequence[Outcome],
    rungs: Sequence[Rung],
    right: Sequence[Outcome],
    held: Sequence[bool],
    mistakes: Sequence[tuple[Mistake, Evidence]],
    tolerances: Sequence[Tolerance],
    returns: Collection[str],
) -> Overflow | None:
    """Return the overflow in an answer that is wrong on other rungs too; None where there is no sign of one.

    A second slip may make scores larger or smaller. So the answer must overflow only where a known mistake fails, or
    wherever the known mistake overflows.

    Args:
        returns: the parts of a result. One of them must hold ∞ or NaN, on inputs that are no float16, which overflows
            by itself: NaN in a gradient alone has other causes, and −∞ alone may be the logarithm of a weight.
    """
    seen = {i for i, ok in enumerate(held) if not ok and overflows(outcomes[i], right[i])}
    returned = {i: [x for part in returns for x in _entries(outcomes[i], part)] for i in seen}
    wide = {i for i in seen if not any(getattr(arg, "dtype", "") == "float16" for arg in rungs[i].args)}
    sure = {i for i in wide if outcomes[i].error or any(x != -math.inf for x in returned[i])}
    infinite = any(math.inf in returned[i] or outcomes[i].error.startswith("OverflowError") for i in seen)
    found: list[tuple[int, Overflow]] = []
    for mistake, known in mistakes:
        if not mistake.overflow or not sure:
            continue
        compared = zip(known.outcomes, right, tolerances, strict=True)
        failed = {i for i, each in enumerate(compared) if not holds(*each)}
        spilled = {i for i in failed if overflows(known.outcomes[i], right[i])}
        if spilled & sure and (seen <= failed or spilled <= seen):
            others = [i for i in range(len(held)) if i not in seen]
            if all("measure" in right[i].values for i in others):
                continue  # NaN on every rung has another cause
            telling = [i for i in others if i not in failed]
            overflow = Overflow(mistake, sorted(seen), others, telling, spilled <= seen or infinite)
            found.append((len(seen ^ spilled), overflow))
    return min(found, key=lambda each: each[0])[1] if found else None


def overflows(given: Outcome, right: Outcome) -> bool:
    """Return whether an outcome is what comes where exp overflows, or makes 0 of a whole row: ∞, NaN or an error."""
    return is_finite(right) and (given.error.startswith(ERRORS) if given.error else not is_finite(given))


def _entries(outcome: Outcome, part: str) -> Sequence[float]:
    """Return the entries of a part of an outcome that are not finite."""
    return [x for x in outcome.values[part].entries if not math.isfinite(x)] if part in outcome.values else ()
