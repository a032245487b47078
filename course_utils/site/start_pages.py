"""Fill in the hand-written first page of the site, and list its contents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from course_utils.authoring.generated_tables import minutes_of_exercises
from course_utils.course import DAYS, EXERCISES, LESSONS, ROOT, Day, day_of, duration, is_published, repository
from course_utils.errors import CourseError
from course_utils.site.pages import Page

_MARK = re.compile(r"<!-- (\w+)(?: (\w+))? -->")
_PUBLISHED = re.compile(r"<!-- published -->\n(.*?)<!-- end -->\n\n", re.DOTALL)
_CAPTIONS = ("Start", "Days", "Look up", "About")
_ORDER = ("start", "notebooks/course_map", "glossary", "plays", "notebooks/references", "cards")


def filled(text: str, pages: Sequence[Page]) -> str:
    """Return a text in which marks are replaced.

    `<!-- days -->` becomes the table of days, `<!-- clone -->` the commands that get the course, and
    `<!-- play QueryPlane -->` the first widget of this class. The text between `<!-- published -->` and `<!-- end -->`
    is left out until the address of the course is set.

    Raises:
        CourseError: a mark is unknown, or no page has the widget.
    """

    def fill(found: re.Match[str]) -> str:
        if found[1] == "days":
            return _days(pages)
        if found[1] == "clone":
            if not is_published():
                return "In the course's folder,\n\n    make lab"
            return f"    git clone {repository()}\n    cd {repository().rpartition('/')[2]}\n    make lab"
        if found[1] == "play":
            return _play(found[2], pages)
        raise CourseError(f"a page of the site has the mark {found[0]}, which means nothing")

    return _MARK.sub(fill, _PUBLISHED.sub(r"\1\n" if is_published() else "", text))


def contents(names: Iterable[str]) -> str:
    """Return the list of all pages for the sidebar, as Sphinx reads it."""
    groups: dict[str, list[str]] = {caption: [] for caption in _CAPTIONS}
    for name in (name for name in names if name != "index"):
        groups[_caption(name)].append(name)
    for group in groups.values():
        group.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    parts = [
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(group) + "\n```\n"
        for caption, group in groups.items()
        if group
    ]
    return "".join(parts)


def _caption(name: str) -> str:
    if name in ("start", "notebooks/course_map"):
        return "Start"
    if day_of(name):
        return "Days"
    return "Look up" if name in _ORDER else "About"


def _days(pages: Sequence[Page]) -> str:
    rows = []
    for day in DAYS:
        lesson, exercises = (_name(pages, folder, day) for folder in (LESSONS, EXERCISES))
        title = f"**[{day.title}](page:{lesson}.html#)**" if lesson else f"**{day.title}** (planned)"
        others = f" [Exercises](page:{exercises}.html#)." if exercises else ""
        core, further = minutes_of_exercises(day, ROOT)
        takes = [(lesson, "lesson", day.minutes), (exercises, "exercises", core), (exercises, "further", further)]
        time = "".join(f", {what} {duration(minutes)}" for there, what, minutes in takes if there and minutes)
        rows.append(f"{day.number}. {title}{time}. {day.doing}{others}")
    return "\n".join(rows)


def _name(pages: Sequence[Page], folder: str, day: Day) -> str:
    return next((page.name for page in pages if page.day == day.number and page.name.startswith(f"{folder}/")), "")


def _play(widget: str, pages: Sequence[Page]) -> str:
    """Return the HTML of the first widget of a class, for a page at the top of the site."""
    for page in pages:
        for play in page.plays:
            if play.widget == widget:
                return play.html("index")
    raise CourseError(f"no page has a widget {widget}")
