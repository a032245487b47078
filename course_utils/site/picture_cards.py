"""A grid of cards, each with a small picture: the days on the first page, and what there is to look at."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable

from PIL import Image

from course_utils.site.pages import Play

DAY = (540, 340)  # pixels of a day's picture, at most
LISTED = (240, 160)  # of one in a list
COLOURS = 32
_SENTENCE = re.compile(r"(.+?[.?])(\s|$)", re.DOTALL)


def grid(cards: Iterable[str], kind: str) -> str:
    """Return the Markdown of cards in a grid; `kind` is a second class of CSS for it."""
    return f"{{.course-cards .{kind}}}\n" + "\n".join(cards)


def card(title: str, *lines: str, picture: str = "") -> str:
    """Return the Markdown of a card: a picture, a title, and lines below it.

    Args:
        title: the first link in it leads wherever one clicks on the card.
    """
    return "- " + "\n\n  ".join(part for part in (picture, title, *lines) if part)


def small_picture(play: Play, file: str, size: tuple[int, int]) -> str:
    """Return the HTML of a small picture of a widget or a figure, for a page at the top of the site."""
    width, height = size
    return (
        f'<img class="course-small" src="_static/{file}" alt="{html.escape(first_sentence(play.alt))}" '
        f'width="{width}" height="{height}" loading="lazy">'
    )


def reduce_picture(png: bytes, size: tuple[int, int]) -> bytes:
    """Return a picture without its empty margins, in few colours, and at most as large as `size`."""
    made = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        small = picture.convert("RGBA")
    small = small.crop(small.getbbox())
    small.thumbnail(size, Image.Resampling.LANCZOS)
    small.quantize(COLOURS, Image.Quantize.FASTOCTREE).save(made, "PNG", optimize=True)
    return made.getvalue()


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, on one line."""
    match = _SENTENCE.match(text)
    return " ".join((match[1] if match else text).split())
