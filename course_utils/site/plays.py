"""The page that lists what there is to play with and to look at, with the place of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from course_utils import views
from course_utils.course import DAYS, day_of
from course_utils.site.pages import Play, link_text

MOST = 6  # places of a widget that are named
_SENTENCE = re.compile(r"(.+?[.?])(\s|$)", re.DOTALL)


def plays_page(plays: Sequence[Play]) -> str:
    """Markdown of the page: widgets by what they show, then the figures of each day."""
    widgets = [play for play in plays if play.widget]
    parts = [
        "# Widgets and figures",
        "Each can be played with on its page, with nothing installed. In JupyterLab they also take your own functions.",
        "## Widgets",
    ]
    for name in sorted({play.widget for play in widgets}):
        told = (getattr(views, name).__doc__ or "").strip().splitlines()[0].replace("*", r"\*")
        where = _listed(play for play in widgets if play.widget == name)
        parts += [f"### {name}", told, f"In {where}."]
    for day in DAYS:
        figures = [play for play in plays if not play.widget and day_of(play.page) == day.number]
        if figures:
            parts += [f"## Figures of day {day.number}", "\n".join(f"- {_figure(play)}" for play in figures)]
    return "\n\n".join(parts) + "\n"


def _listed(plays: Iterable[Play]) -> str:
    named = [f"[{_where(play)}]({_place(play)})" for play in plays]
    return ", ".join(named[:MOST]) + (f" and {len(named) - MOST} other places" if len(named) > MOST else "")


def _where(play: Play) -> str:
    day = day_of(play.page)
    return f"day {day}, {link_text(play.heading)}" if day else link_text(play.heading)


def _figure(play: Play) -> str:
    found = _SENTENCE.match(play.alt)
    told = found[1] if found else play.alt
    return f"[{link_text(play.heading)}]({_place(play)}): {_literal(told)}"


def _place(play: Play) -> str:
    return f"page:{play.page}.html#{play.anchor}"


def _literal(text: str) -> str:
    """Text in which nothing is Markdown."""
    return re.sub(r"([\\*_\[\]<>`$|])", r"\\\1", " ".join(text.split()))
