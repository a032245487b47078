"""The page of all widgets and figures: a dozen widgets that live there, and small pictures of all else."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence

from PIL import Image

from course_utils.course import DAYS
from course_utils.errors import CourseError
from course_utils.site.pages import Page, Play, link_text
from course_utils.site.picture_cards import LISTED, card, grid, reduced, small_picture

MOST = 6  # places that are named for one widget
LIVE = {  # by class, in the order of the page: what a reader does with it, and the question of its lesson
    "QueryPlane": (
        "Drag a query",
        "When does the output sit on one value, and when in the middle of all three?",
    ),
    "TemperatureExplorer": ("Turn the temperature", "How cold must it be before honey has .99 of the weight?"),
    "AttentionStepper": ("Play attention", "Which numbers made one weight, all the way back to $X$?"),
    "SaturationExplorer": (
        "Make vectors longer",
        "From which $d_k$ on does one key take nearly everything, and what changes that?",
    ),
    "MaskPainter": ("Paint a mask", "The goal is that no output sees a later token. How many squares can stay open?"),
    "HeadExplorer": (
        "See where a real model looks",
        "Where does *it* look when the animal was too tired, and where when the street was too wide?",
    ),
    "HeadGallery": ("Look at all heads", "Which head always looks at the letter just before?"),
    "HeadAblation": ("Switch heads off", "Does a head cost the same whichever others are on?"),
    "DecodeStepper": (
        "Write token by token",
        "Which rows of $Q$, $K$ and $V$ does a pass compute, and which does it only read?",
    ),
    "MemoryCalculator": ("Fill a card", "At which batch does the cache outgrow the weights?"),
    "OnlineSoftmaxStepper": ("Softmax in one pass", "Does the order of the keys matter?"),
    "TileWalker": ("Walk through tiles", "How much of the square exists at any moment?"),
    "ServingTimeline": ("Serve many requests", "In which steps does the server have room while somebody waits?"),
    "PageTable": ("Share blocks of a cache", "When is a block copied, and when does it become free?"),
    "SpeculativeStepper": (
        "Let a drafter guess",
        "What comes in the place of a draft that is refused, and what becomes of the drafts behind it?",
    ),
}
OTHERS = {  # by class: what a reader does with it, and a sentence on that
    "AttentionHeatmap": ("Read the weights", "Go along the rows, and see how each query shares its weights."),
    "TracePlayer": ("Play what breaks a promise", "Step through the calls after which an object breaks a promise."),
    "Guess": ("Guess first", "Guess a number, a choice or a curve before its cell tells you."),
    "Guesses": ("Your guesses", "See how near the guesses of a day came, and on which side you err."),
    "Practice": ("Work with a pencil", "Solve a problem in steps, and see at which step you first went wrong."),
    "Quiz": ("Questions from memory", "Answer the questions of a day; each choice says why it is right or wrong."),
    "ProgressMap": ("The map of the days", "See all days, with links to their lessons and exercises."),
}


def plays_page(plays: Sequence[Play], small: Mapping[str, bytes]) -> str:
    """Return the Markdown of the page: widgets that live there, the other widgets, then the figures of each day.

    Args:
        small: the result of `small_pictures`.

    Raises:
        CourseError: neither `LIVE` nor `OTHERS` names a widget.
    """
    by_kind: dict[str, list[Play]] = {}
    for play in plays:
        if play.widget and play.widget not in LIVE | OTHERS:
            raise CourseError(
                f"{play.page}: course_utils/site/widget_gallery.py has no words for the widget {play.widget}"
            )
        by_kind.setdefault(play.widget, []).append(play)
    parts = [
        "# Widgets and figures",
        "What moves here needs nothing installed. In JupyterLab some widgets also take functions of your own.",
        "## Widgets",
    ]
    for kind, (name, _) in LIVE.items():
        if kind in by_kind:
            where = f"{{.course-caption}}\nIn {_listed(by_kind[kind])}. In a notebook it is called `{kind}`."
            parts += [f"### {name}", lively(by_kind[kind][0], "plays"), where]
    others = [(*words, by_kind[kind]) for kind, words in OTHERS.items() if kind in by_kind]
    told = [
        card(f"**[{name}]({_place(of_kind[0])})**", told, picture=_picture(of_kind[0], small))
        for name, told, of_kind in others
    ]
    parts += ["## More widgets", grid(told, "course-listed")] if told else []
    for day in DAYS:
        figures = [play for play in by_kind.get("", ()) if play.day == day.number]
        listed = [card(f"**[{_title(play)}]({_place(play)})**", picture=_picture(play, small)) for play in figures]
        parts += [f"## Figures of day {day.number}", grid(listed, "course-listed")] if listed else []
    return "\n\n".join(parts) + "\n"


def lively(play: Play, page: str) -> str:
    """Return the Markdown of a widget that lives on the page of this name, below the question that it answers."""
    question = LIVE.get(play.widget, ("", ""))[1]
    return "\n\n".join([*([f"{{.course-asked}}\n{question}"] if question else []), play.html(page)])


def small_pictures(pages: Iterable[Page]) -> dict[str, bytes]:
    """Return the small pictures that `plays_page` shows, by their path in the static folder."""
    pictures, seen = {}, set(LIVE)
    for page in pages:
        for play in page.plays:
            if play.widget not in seen:
                pictures[_small(play)] = reduced(page.pictures[play.file], LISTED)
                seen |= {play.widget} - {""}
    return pictures


def _small(play: Play) -> str:
    return f"small/{play.anchor}.png"


def _picture(play: Play, small: Mapping[str, bytes]) -> str:
    with Image.open(io.BytesIO(small[_small(play)])) as picture:
        return small_picture(play, _small(play), picture.size)


def _listed(plays: Sequence[Play]) -> str:
    named = [f"[day {play.day}, {_title(play)}]({_place(play)})" for play in plays]
    return ", ".join(named[:MOST]) + (f" and {len(named) - MOST} other places" if len(named) > MOST else "")


def _title(play: Play) -> str:
    """Return the heading above a widget or a figure, without its number."""
    return link_text(re.sub(r"^\d+\. ", "", play.heading))


def _place(play: Play) -> str:
    return f"page:{play.page}.html#{play.anchor}"
