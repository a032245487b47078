"""Write the cards: `attention.apkg` for Anki, `attention.csv` for anything else. The same cards give the same bytes."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.course import ROOT
from course_utils.files import write_all

from .card import Card
from .collect import all_cards
from .deck import as_apkg
from .text import as_plain

HEADER = ("id", "day", "kind", "front", "back", "tags")
MADE_OF = ("notebooks", "course_utils/cards", "course_utils/checks/answers", "course_utils/views/quizzes")
EDITION = 1_795_478_400  # 2026-11-24, in seconds: the edition of a copy of which git knows nothing


@dataclass(frozen=True)
class Made:
    """The files that were written, and the number of cards in each."""

    deck: Path
    table: Path
    cards: int


def make_cards(out: Path, root: Path = ROOT) -> Made:
    """Write both files into the folder `out`. Raises NoCards, and CourseError where nothing can be written."""
    cards = all_cards(root)
    made = Made(out / "attention.apkg", out / "attention.csv", len(cards))
    write_all({made.deck: as_apkg(cards, last_changed(root)), made.table: as_csv(cards)})
    return made


def as_csv(cards: Sequence[Card]) -> str:
    """A row a card under HEADER, in plain text."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(HEADER)
    for card in cards:
        front, back = as_plain(card.front), as_plain(card.back)
        writer.writerow([card.id, card.day, card.kind, front, back, " ".join(card.tags)])
    return table.getvalue()


def last_changed(root: Path = ROOT) -> int:
    """When what the cards are made of last changed, in seconds since 1970: by git's log, or the edition's date.

    Anki takes a new text for a card that it has only if its time is later.
    """
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct", "--", *MADE_OF]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return EDITION
    return max(EDITION, int(done.stdout)) if done.returncode == 0 and done.stdout.strip() else EDITION
