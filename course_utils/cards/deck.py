"""Make a deck for Anki with genanki: an SQLite collection in a zip, with the same bytes each time."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from course_utils.course import DAYS, day_numbered

from .card import Card, NoCards
from .text import as_html

INSTALL = "writing an Anki deck needs genanki, which is not installed: pip install genanki"
NAME = "Attention, from pencil to kernel"
ABOUT = "From the course Attention, from pencil to kernel. Text under CC BY 4.0."
# Anki recognises a deck, a type of notes and a note by its number, so these numbers never change.
DECK_ID = 1_795_400_000  # of the whole course; the deck of day 1 has the next number, and so on
MODEL_ID = 1_795_300_000
FIELDS = ("Front", "Back", "About", "Id")
QUESTION = '<div class="about">{{About}}</div>\n<div class="front">{{Front}}</div>'
ANSWER = '{{FrontSide}}\n<hr id="answer">\n<div class="back">{{Back}}</div>\n<div class="id">{{Id}}</div>'
STYLE = Path(__file__).with_name("cards.css")
_FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)


def as_apkg(cards: Sequence[Card], changed: int) -> bytes:
    """Return the Anki package: a deck for each day that has cards, under a deck for the course.

    Args:
        changed: when the cards last changed, in Unix seconds.

    Raises:
        NoCards: genanki is not installed.
    """
    try:
        import genanki
    except ImportError:
        raise NoCards(INSTALL) from None
    package = genanki.Package([genanki.Deck(DECK_ID, NAME, ABOUT), *_decks(genanki, cards)])
    connection = sqlite3.connect(":memory:")
    package.write_to_db(connection.cursor(), changed, count(changed * 1000))
    connection.commit()
    collection = connection.serialize()
    connection.close()
    return _zip({"collection.anki2": collection, "media": b"{}"})


def note_fields(card: Card) -> tuple[str, str, str, str]:
    """Return the values of FIELDS for a card."""
    title = day_numbered(card.day).title
    return as_html(card.front), as_html(card.back), f"Day {card.day} · {title} · {card.kind}", card.id


def _decks(genanki: ModuleType, cards: Sequence[Card]) -> list[Any]:
    model = genanki.Model(
        MODEL_ID,
        NAME,
        fields=[{"name": name} for name in FIELDS],
        templates=[{"name": "Card", "qfmt": QUESTION, "afmt": ANSWER}],
        css=STYLE.read_text(encoding="utf-8"),
    )
    decks = []
    for day in DAYS:
        deck = genanki.Deck(DECK_ID + day.number, f"{NAME}::Day {day.number} · {day.title}")
        for place, card in enumerate(card for card in cards if card.day == day.number):
            guid = genanki.guid_for(NAME, card.id)
            # due is the order in which Anki shows new cards
            deck.add_note(genanki.Note(model, list(note_fields(card)), guid=guid, tags=card.tags, due=place))
        decks += [deck] if deck.notes else []
    return decks


def _zip(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST_DAY_OF_ZIP), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
