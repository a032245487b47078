"""A card in Markdown, before it becomes HTML or plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from course_utils.errors import CourseError

KINDS = ("symbol", "quiz", "mistake", "defend")  # in the order in which a day's cards are met


class NoCards(CourseError):
    """Error: the cards cannot be made."""


@dataclass(frozen=True)
class Card:
    """A question and its answer, in Markdown with formulas between dollars.

    The id is made of day, kind and key alone. So the other texts can be corrected, and Anki still recognises the card
    that somebody has learned.

    Attributes:
        kind: one of KINDS.
        key: the card's name within its day and kind.
    """

    day: int
    kind: str
    key: str
    front: str
    back: str

    @property
    def id(self) -> str:
        """Such as `day1-quiz-in-the-matrix-of-weights`. Capitals are kept, because M and m are two symbols."""
        return "-".join([f"day{self.day}", self.kind, *_words(self.key)])

    @property
    def tags(self) -> tuple[str, str]:
        """The day and the kind, such as `day1` and `quiz`."""
        return f"day{self.day}", self.kind


def literal(text: str) -> str:
    """Escape Markdown except for `code` spans."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", part) for part in parts)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)
