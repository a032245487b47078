"""Find that exp overflows in an answer that is wrong in another way too, so that the learner reads of both mistakes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.checks.judge.comparison import Comparison
from course_utils.checks.judge.exercise import KnownMistakes, Mistake
from course_utils.checks.judge.verdict import OVERFLOW_ERRORS, holds, is_finite
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Outcome


@dataclass(frozen=True)
class Overflow:
    """An overflow in an answer.

    Attributes:
        mistake: a known mistake that overflows on the same rungs, or on nearly the same.
        rungs: the rungs on which the answer overflows.
        others: the other rungs.
        telling: those of the others on which the mistake is right.
        certain: whether the answer overflows wherever the mistake does, returns ∞, or raises OverflowError.
    """

    mistake: Mistake
    rungs: Sequence[int]
    others: Sequence[int]
    telling: Sequence[int]
    certain: bool


def find_overflow(comparison: Comparison, known: KnownMistakes) -> Overflow | None:
    """Return the overflow in an answer that is wrong on other rungs too; None if there is no sign of one.

    A second mistake may make scores larger or smaller. So the answer must overflow only where a known mistake fails, or
    wherever the known mistake overflows. Of several such mistakes the one that overflows on the most similar rungs is
    returned.

    One of the parts that the exercise returns must hold ∞ or NaN, on inputs that are no float16, which overflows by
    itself: NaN in a gradient alone has other causes, and −∞ alone may be the logarithm of a weight.
    """
    outcomes = comparison.outcomes
    right = comparison.right
    # The rungs on which the answer overflows, and the entries that are not finite there.
    overflowed = {i for i, ok in enumerate(comparison.held) if not ok and overflows(outcomes[i], right[i])}
    entries = {
        i: [x for part in comparison.ladder.returns for x in _infinite_entries(outcomes[i], part)] for i in overflowed
    }
    # Of these the rungs that prove it: not float16, and an error or more than −∞.
    wide = {i for i in overflowed if not _has_float16(comparison.rungs[i])}
    sure = {i for i in wide if outcomes[i].error or any(x != -math.inf for x in entries[i])}
    if not sure:
        return None
    is_infinite = any(math.inf in entries[i] or outcomes[i].error.startswith("OverflowError") for i in overflowed)

    candidates: list[tuple[int, Overflow]] = []  # each with the number of rungs on which it differs from the answer
    for mistake, evidence in known:
        if not mistake.overflow:
            continue
        # Where the known mistake is wrong, and where of these rungs it overflows.
        compared = zip(evidence.outcomes, right, comparison.tolerances, strict=True)
        failed = {i for i, each in enumerate(compared) if not holds(*each)}
        mistake_overflowed = {i for i in failed if overflows(evidence.outcomes[i], right[i])}
        if not mistake_overflowed & sure:
            continue
        if not (overflowed <= failed or mistake_overflowed <= overflowed):
            continue
        others = [i for i in range(len(right)) if i not in overflowed]
        if all("measure" in right[i].values for i in others):
            continue  # NaN on every rung has another cause
        telling = [i for i in others if i not in failed]
        certain = mistake_overflowed <= overflowed or is_infinite
        overflow = Overflow(mistake, sorted(overflowed), others, telling, certain)
        candidates.append((len(overflowed ^ mistake_overflowed), overflow))
    return min(candidates, key=lambda each: each[0])[1] if candidates else None


def overflows(outcome: Outcome, right: Outcome) -> bool:
    """Return whether an outcome looks as if exp overflowed, or made 0 of a whole row: ∞, NaN or an error."""
    if not is_finite(right):
        return False
    return outcome.error.startswith(OVERFLOW_ERRORS) if outcome.error else not is_finite(outcome)


def _has_float16(rung: Rung) -> bool:
    return any(getattr(arg, "dtype", "") == "float16" for arg in rung.args)


def _infinite_entries(outcome: Outcome, part: str) -> Sequence[float]:
    """Return the entries of a part of an outcome that are not finite."""
    return [x for x in outcome.values[part].entries if not math.isfinite(x)] if part in outcome.values else ()
