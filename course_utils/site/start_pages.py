"""Fill in the hand-written pages of the site, such as the first, and list its contents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from course_utils.authoring.generated_tables import minutes_of_exercises
from course_utils.course import (
    DAYS,
    EXERCISES,
    LESSONS,
    ROOT,
    TO_LOOK_UP,
    Day,
    day_of,
    duration,
    in_sittings,
    is_published,
    repository,
)
from course_utils.errors import CourseError
from course_utils.site import flash_cards
from course_utils.site.exercise_pages import answer_html
from course_utils.site.pages import Page, Play
from course_utils.site.picture_cards import DAY, card, grid, reduce_picture, small_picture
from course_utils.site.widget_gallery import lively

_MARK = re.compile(r"<!-- (\w+)(?: ([\w/]+))? -->")
_ONLY_IF = re.compile(r"<!-- (published|python) -->\n(.*?)<!-- end -->\n\n", re.DOTALL)
_CAPTIONS = ("Days", "Look up", "About")
_LOOK_UP = ("notebooks/course_map", "glossary", "plays", *(f"notebooks/{name}" for name in TO_LOOK_UP), "cards")
_ORDER = (*_LOOK_UP, "start")
_EVERYWHERE = frozenset({"Guess", "Guesses", "Practice", "Quiz"})  # widgets that say nothing of their day


def fill_marks(text: str, pages: Sequence[Page], python: str = "") -> str:
    """Return a text in which marks are replaced.

    `<!-- begin -->` becomes the way to the first lesson, `<!-- days -->` the days as cards, `<!-- clone -->` the
    commands that get the course, `<!-- cards -->` the place where cards are turned, and `<!-- play QueryPlane -->` the
    first widget of this class below its question, and `<!-- answer day1/softmax_row -->` the place to write an answer.
    The text between `<!-- published -->` and `<!-- end -->` is left out until the address of the course is set, and
    that between `<!-- python -->` and `<!-- end -->` where no Python runs on the pages.

    Raises:
        CourseError: a mark is unknown, or no page has the widget.
    """

    def fill(match: re.Match[str]) -> str:
        if match[1] == "begin":
            return _begin(pages)
        if match[1] == "days":
            return _days(pages)
        if match[1] == "clone":
            if not is_published():
                return (
                    "This copy has no public address yet. Ask whoever gave you these pages for the course: an archive, "
                    "which you unpack, or the address of a repository, which you clone. In its folder,\n\n    make lab"
                )
            return (
                f"Without git, unpack the newest archive of [the releases]({repository()}/releases) and go to its "
                "folder, in place of the first two lines.\n\n"
                f"    git clone {repository()}\n    cd {repository().rpartition('/')[2]}\n    make lab"
            )
        if match[1] == "cards":
            return flash_cards.cards_html(page.day for page in pages)
        if match[1] == "play":
            return _play(match[2], pages)
        if match[1] == "answer":
            return answer_html(match[2], ROOT, python)
        raise CourseError(f"a page of the site has the mark {match[0]}, which means nothing")

    there = {"published": is_published(), "python": bool(python)}
    return _MARK.sub(fill, _ONLY_IF.sub(lambda match: f"{match[2]}\n" if there[match[1]] else "", text))


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


def day_pictures(pages: Sequence[Page]) -> dict[str, bytes]:
    """Return the pictures of the days' cards by their path in the static folder."""
    pictures = {name: picture for page in pages for name, picture in page.pictures.items()}
    faces = ((day, _face(pages, day)) for day in DAYS)
    return {_picture_of(day): reduce_picture(pictures[play.file], DAY) for day, play in faces if play}


def _face(pages: Sequence[Page], day: Day) -> Play | None:
    """Return what stands for a day in a picture: the first widget of its lesson that belongs to this day alone."""
    lesson = _name(pages, LESSONS, day)
    plays = (play for page in pages if page.name == lesson for play in page.plays)
    return next((play for play in plays if play.widget and play.widget not in _EVERYWHERE), None)


def _picture_of(day: Day) -> str:
    return f"days/day{day.number}.png"


def _caption(name: str) -> str:
    if day_of(name):
        return "Days"
    return "Look up" if name in _LOOK_UP else "About"


def _begin(pages: Sequence[Page]) -> str:
    number, lesson = next((day.number, name) for day in DAYS if (name := _name(pages, LESSONS, day)))
    return f"[Begin with day {number}](page:{lesson}.html#){{.course-begin}}"


def _days(pages: Sequence[Page]) -> str:
    """Return the cards of the days; those that are only planned share one."""
    cards = []
    planned = []
    for day in DAYS:
        lesson, exercises = (_name(pages, folder, day) for folder in (LESSONS, EXERCISES))
        if not lesson and not day.minutes:
            planned.append(f"{day.number}. {day.title}: {day.doing}")
        if not lesson:  # planned, or a class does not have it
            continue
        core, further = minutes_of_exercises(day, ROOT)
        lesson_takes = f"Two sittings, {in_sittings(day)} min" if day.sittings else f"Lesson {duration(day.minutes)}"
        time = [_unbroken(lesson_takes)]
        time += [f"[exercises](page:{exercises}.html#) {_unbroken(duration(core))}"] if exercises else []
        time += [_unbroken(f"further {duration(further)}")] if exercises and further else []
        play = _face(pages, day)
        picture = small_picture(play, _picture_of(day), DAY) if play else ""
        title = f"**[{day.number}. {day.title}](page:{lesson}.html#)**"
        cards.append(card(title, day.doing, ", ".join(time), picture=picture))
    return grid([*cards, *([card("**Planned**", *planned)] if planned else [])], "course-days")


def _unbroken(text: str) -> str:
    """Return Markdown for a text that stays on one line."""
    return f"[{text}]{{.course-kept}}"


def _name(pages: Sequence[Page], folder: str, day: Day) -> str:
    return next((page.name for page in pages if page.day == day.number and page.name.startswith(f"{folder}/")), "")


def _play(widget: str, pages: Sequence[Page]) -> str:
    """Return the first widget of a class, below its question, for a page at the top of the site."""
    for page in pages:
        for play in page.plays:
            if play.widget == widget:
                return lively(play, "index")
    raise CourseError(f"no page has a widget {widget}")
