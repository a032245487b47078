"""The page of all widgets and figures: a dozen widgets that live there, and small pictures of all else."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence

from PIL import Image

from course_utils import views
from course_utils.course import DAYS
from course_utils.errors import CourseError
from course_utils.site.pages import Page, Play, link_text
from course_utils.site.picture_cards import LISTED, card, grid, reduce_picture, small_picture
from course_utils.views.shared.base import InGallery

MOST = 6  # places that are named for one widget


def entry_of(play: Play) -> InGallery:
    """Return what the page says about a widget.

    Raises:
        CourseError: the class of the widget does not say it.
    """
    entry: InGallery | None = getattr(views, play.widget).in_gallery
    if entry is None:
        raise CourseError(f"{play.page}: the class {play.widget} has no `in_gallery`, its words for that page")
    return entry


def plays_page(plays: Sequence[Play], small: Mapping[str, bytes]) -> str:
    """Return the Markdown of the page: widgets that live there, the other widgets, then the figures of each day.

    Args:
        small: the result of `small_pictures`.

    Raises:
        CourseError: as `entry_of` does.
    """
    by_kind: dict[str, list[Play]] = {}
    for play in plays:
        by_kind.setdefault(play.widget, []).append(play)
    kinds = {kind: entry_of(group[0]) for kind, group in by_kind.items() if kind}
    kinds = dict(sorted(kinds.items(), key=lambda kind: kind[1].place))
    parts = [
        "# Widgets and figures",
        "What moves here needs nothing installed. In JupyterLab some widgets also take functions of your own.",
        "## Widgets",
    ]
    for kind, entry in kinds.items():
        if entry.question:
            where = f"{{.course-caption}}\nIn {_list_places(by_kind[kind])}. In a notebook it is called `{kind}`."
            parts += [f"### {entry.title}", lively(by_kind[kind][0], "plays"), where]
    cards = [
        card(
            f"**[{entry.title}]({_address(by_kind[kind][0])})**",
            entry.summary,
            picture=_picture(by_kind[kind][0], small),
        )
        for kind, entry in kinds.items()
        if not entry.question
    ]
    parts += ["## More widgets", grid(cards, "course-listed")] if cards else []
    for day in DAYS:
        figures = [play for play in by_kind.get("", ()) if play.day == day.number]
        listed = [card(f"**[{_title(play)}]({_address(play)})**", picture=_picture(play, small)) for play in figures]
        parts += [f"## Figures of day {day.number}", grid(listed, "course-listed")] if listed else []
    return "\n\n".join(parts) + "\n"


def lively(play: Play, page: str) -> str:
    """Return the Markdown of a widget that lives on the page of this name, below the question that it answers."""
    question = entry_of(play).question
    return "\n\n".join([*([f"{{.course-asked}}\n{question}"] if question else []), play.html(page)])


def small_pictures(pages: Iterable[Page]) -> dict[str, bytes]:
    """Return the small pictures that `plays_page` shows, by their path in the static folder."""
    pictures = {}
    widgets = set[str]()
    for page in pages:
        for play in page.plays:
            if not play.widget or (play.widget not in widgets and not entry_of(play).question):
                pictures[_small(play)] = reduce_picture(page.pictures[play.file], LISTED)
                widgets |= {play.widget} - {""}
    return pictures


def _small(play: Play) -> str:
    return f"small/{play.anchor}.png"


def _picture(play: Play, small: Mapping[str, bytes]) -> str:
    with Image.open(io.BytesIO(small[_small(play)])) as picture:
        return small_picture(play, _small(play), picture.size)


def _list_places(plays: Sequence[Play]) -> str:
    named = [f"[day {play.day}, {_title(play)}]({_address(play)})" for play in plays]
    return ", ".join(named[:MOST]) + (f" and {len(named) - MOST} other places" if len(named) > MOST else "")


def _title(play: Play) -> str:
    """Return the heading above a widget or a figure, without its number."""
    return link_text(re.sub(r"^\d+\. ", "", play.heading))


def _address(play: Play) -> str:
    return f"page:{play.page}.html#{play.anchor}"
