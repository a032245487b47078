"""Cards to learn the course with: an Anki deck and a plain table, made from material that the course already has.

`course cards` calls `make_cards`. A `Card` is two short texts in Markdown. `collect` gathers the cards of all days:
the quizzes, the claims at the end of each lesson (`lessons.py`) with their reasons, the known mistakes that make sense
without their exercise (reasons and mistakes are in `cards.yaml` of a day's answers), and the tables of symbols. `text`
turns a card into HTML or plain text, and `deck` writes the file that Anki reads.
"""

from __future__ import annotations

from .card import KINDS, Card, NoCards
from .collect import all_cards
from .make import make_cards

__all__ = ["KINDS", "Card", "NoCards", "all_cards", "make_cards"]
