"""Grader-side data of one exercise: points, reference answer, known mistakes and tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checks.kernel.outcome import Evidence


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people are known to give, and the message for them.

    Attributes:
        answer: a function, or the values of hand-worked entries; None in a student's edition, which stores only the
            results.
        message: begins with the mistake, since a card prints its first sentence in bold. A check adds that another one
            may give the same results, unless the message ends in a question mark.
        overflow: whether its results are right until exp overflows, so that it may come on top of another mistake.
    """

    name: str
    answer: Callable | Mapping[str, Any] | None
    message: str
    overflow: bool = False


KnownMistakes = Sequence[tuple[Mistake, Evidence]]  # each with what it gives on the rungs


@dataclass(frozen=True)
class Exercise:
    """Points, reference answer, known mistakes and tolerances of one exercise.

    A number a counts as equal to b when |a − b| ≤ atol + rtol·|b|, unless the rung sets its own tolerance.

    Attributes:
        points: full marks.
        reference: the right answer, by name; every value is None in a student's edition.
        mistakes: the known mistakes, the most telling first.
        uses: the earlier exercises that this one builds on. If the learner's answer to one of them fails, the
            reference answer replaces it.
        scaled: makes the right answer with its scores multiplied by a factor; None in a student's edition.
    """

    points: int
    reference: Mapping[str, Any]
    mistakes: tuple[Mistake, ...]
    uses: tuple[str, ...] = ()
    rtol: float = 1e-6
    atol: float = 1e-6
    scaled: Callable[[float], Callable] | None = None
