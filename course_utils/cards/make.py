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
MADE_OF = ("notebooks", "course_utils/cards", "course_utils/answers", "course_utils/days")
EDITION = 1_795_478_400  # 2026-11-24 in Unix seconds: the date of this edition, for copies with too little git history


@dataclass(frozen=True)
class Made:
    """The files that were written, and the number of cards in each."""

    deck: Path
    table: Path
    cards: int


def make_cards(out: Path, root: Path = ROOT) -> Made:
    """Write both files into the folder `out`.

    Raises:
        NoCards: the cards cannot be made.
        CourseError: a file cannot be written.
    """
    cards = all_cards(root)
    made = Made(out / "attention.apkg", out / "attention.csv", len(cards))
    write_all({made.deck: as_apkg(cards, last_changed(root)), made.table: as_csv(cards)})
    return made


def as_csv(cards: Sequence[Card]) -> str:
    """Return the cards as CSV in plain text, one row per card under HEADER."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(HEADER)
    for card in cards:
        front, back = as_plain(card.front), as_plain(card.back)
        writer.writerow([card.id, card.day, card.kind, front, back, " ".join(card.tags)])
    return table.getvalue()


def last_changed(root: Path = ROOT) -> int:
    """Return the time of the last commit that touched a card source (Unix seconds), or EDITION where that is later.

    Anki replaces the text of a card that it has only if the new one has a later time. In a shallow clone, the first
    commit of the shortened history seems to have created every file, so its time is not used.
    """
    time, *parents = _git(root, "log", "-1", "--format=%ct %P", "--", *MADE_OF).split() or ["0"]
    if not parents and _git(root, "rev-parse", "--is-shallow-repository").strip() != "false":
        return EDITION
    return max(EDITION, int(time))


def _git(root: Path, *arguments: str) -> str:
    """Return what git prints about the repository in `root`; empty where it fails or is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
