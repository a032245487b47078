"""Cards to learn the course with: an Anki deck and a plain table, made of what the course already has.

`course cards` calls `make_cards`. A `Card` is two short texts in Markdown. `collect` gathers the cards of all days:
the quizzes, the lists that end a lesson (`lessons.py`) with their reasons, known mistakes that say something without
their exercise (both in `cards.yaml` of a day's answers), and the tables of symbols. `text` sets a card as HTML or as
plain text, `deck` writes what Anki reads.
"""

from __future__ import annotations

from .card import KINDS, Card, NoCards
from .collect import all_cards
from .make import make_cards

__all__ = ["KINDS", "Card", "NoCards", "all_cards", "make_cards"]
