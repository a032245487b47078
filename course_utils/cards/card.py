"""A card, before anything is set."""

from __future__ import annotations

import re
from dataclasses import dataclass

from course_utils.errors import CourseError

KINDS = ("symbol", "quiz", "mistake", "defend")  # in the order in which a day's cards are met


class NoCards(CourseError):
    """Cards that cannot be made."""


@dataclass(frozen=True)
class Card:
    """A question and its answer, in Markdown with formulas between dollars.

    key: what the card is called within its day and kind. An id is made of these three and of nothing else, so that the
    rest of a text may be mended, and Anki still knows the card by which somebody has learned.
    """

    day: int
    kind: str
    key: str
    front: str
    back: str

    @property
    def id(self) -> str:
        """`day1-quiz-in-the-matrix-of-weights`; capitals count, since M and m are two symbols."""
        return "-".join([f"day{self.day}", self.kind, *_words(self.key)])

    @property
    def tags(self) -> tuple[str, str]:
        """`day1` and `quiz`."""
        return f"day{self.day}", self.kind


def literal(text: str) -> str:
    """Text that is no Markdown, apart from code between backticks, as Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", part) for part in parts)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)
