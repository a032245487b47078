"""What a check says about an answer, in parts that `verdict_card` draws; as a string it is the text for terminals."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from course_utils.checks.judge.duel_verdict import describe_duel
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import all_ladders, find_ladder
from course_utils.views.verdict_card import verdict_card

WIDTH = 88


@dataclass(frozen=True)
class CheckMessage:
    """The message of a check.

    Attributes:
        verdict: the status, the share of the points, the advice, the mistake that was found, and which steps passed.
        example: the smallest input on which the answer is wrong, as text to read and to paste; "" for none.
        note: a remark below the rest, such as that the cell was not run since the last check.
    """

    day: int
    exercise: str
    verdict: Verdict
    hidden: bool = False
    example: str = ""
    note: str = ""

    @property
    def points(self) -> tuple[float, float]:
        """The points that the answer earns, and those that it can earn."""
        full = all_exercises(self.day)[self.exercise].points
        return round(full * self.verdict.share, 2), full

    @property
    def steps(self) -> tuple[tuple[str, bool], ...]:
        """The names of the steps, and whether each holds; none for hidden inputs."""
        return () if self.hidden else self.verdict.rungs

    @property
    def next(self) -> str:
        """The exercise after this one; "" for the last of a day."""
        names = [*all_ladders(self.day), ""]
        return names[names.index(self.exercise) + 1]

    def head(self) -> str:
        """Return the line with the points, and with the number of steps that passed if only some did."""
        earned, full = self.points
        state = "passed" if self.verdict.status == "passed" else "not yet"
        possible = f"{full} point" if full == 1 else f"{full} points"
        held = sum(ok for _, ok in self.steps)
        steps = f" ({held} of {len(self.steps)} steps passed)" if 0 < held < len(self.steps) else ""
        inputs = " (hidden inputs)" if self.hidden else ""
        return f"{self.exercise}{inputs}: {state}, {earned:g} of {possible}{steps}"

    def advice(self) -> str:
        """Return the head, the advice and the steps."""
        message = textwrap.fill(self.verdict.message, WIDTH, break_on_hyphens=False, break_long_words=False)
        steps = self.caught()
        if not steps and any(held for _, held in self.steps):
            steps = "\n".join(f"  {'✓' if held else '✗'} {name}" for name, held in self.steps)
        return _paragraphs(self.head(), message, steps)

    def caught(self) -> str:
        """Return which implementations the test of a duel kept and caught, without the names of others; else ""."""
        is_duel = bool(self.steps) and find_ladder(self.day, self.exercise).duel
        return describe_duel(self.day, self.steps) if is_duel else ""

    def as_html(self) -> str:
        """Return the card that a notebook shows, in the same words."""
        caught = self.caught()
        return verdict_card(
            good=self.verdict.status == "passed",
            head=self.head(),
            message=self.verdict.message,
            names_mistake=self.verdict.mistake is not None,
            example=self.example,
            steps=() if caught else self.steps,
            note="\n".join(text for text in (caught, self.note) if text),
        )

    def __str__(self) -> str:
        return _paragraphs(self.advice(), self.example, self.note)


def _paragraphs(*texts: str) -> str:
    """Return the texts that are not empty as paragraphs."""
    return "\n\n".join(text for text in texts if text)
