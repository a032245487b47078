"""What the judge compares: the outcomes of an answer and the right ones, rung by rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.checks.judge.verdict import Tolerance, wrong_parts
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.outcome import Evidence, Outcome


@dataclass(frozen=True)
class Comparison:
    """The outcomes of an answer beside the right ones. Each sequence has one entry for each right outcome, in order.

    Attributes:
        ladder: the ladder of the exercise.
        evidence: what the answer gave, as it was sent: it may lack rungs or have others.
        rungs: the visible rungs of these names, which have the same hints as the hidden ones. A rung that the ladder
            does not have, such as an entry worked by hand, has its name alone.
        outcomes: the outcomes of the answer; an error where it gave none.
        right: the right outcomes.
        tolerances: how far the numbers may be off.
        held: whether the outcome is right.
        is_current: whether these are all rungs of the ladder, in order. They are not for entries worked by hand, or if
            the right outcomes were stored before the ladder changed.
    """

    ladder: Ladder
    evidence: Evidence
    rungs: Sequence[Rung]
    outcomes: Sequence[Outcome]
    right: Sequence[Outcome]
    tolerances: Sequence[Tolerance]
    held: Sequence[bool]
    is_current: bool

    @property
    def hidden(self) -> bool:
        """Whether the inputs are hidden."""
        return self.evidence.hidden

    @property
    def all_raised(self) -> bool:
        """Whether every rung gave an error."""
        return all(outcome.error for outcome in self.outcomes)

    @property
    def share(self) -> float:
        """The share of the rungs that hold."""
        return sum(self.held) / len(self.held)

    @property
    def first_wrong(self) -> int:
        """The place of the first rung that does not hold. Raises ValueError if all hold."""
        return self.held.index(False)

    @property
    def wrong_parts(self) -> list[set[str]]:
        """The wrong parts of each outcome; none where it holds."""
        compared = zip(self.outcomes, self.right, self.tolerances, strict=True)
        return [set() if held else wrong_parts(*each) for held, each in zip(self.held, compared, strict=True)]

    @property
    def is_forged(self) -> bool:
        """Whether the evidence has other rungs than the right outcomes, as no check sends it."""
        return [each.rung for each in self.evidence.outcomes] != [each.rung for each in self.right]
