"""The page that lists all widgets and figures, with a small picture and the places of each."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence

from PIL import Image

from course_utils.course import DAYS
from course_utils.errors import CourseError
from course_utils.site.pages import Page, Play, link_text
from course_utils.site.picture_cards import LISTED, first_sentence, reduced, small_picture

MOST = 6  # places that are named for one widget
WIDGETS = {  # by class, in the order of the page: what a reader does with it, and a sentence on that
    "QueryPlane": (
        "Drag a query",
        "Move a query among keys, and see its scores, its weights and its output move along.",
    ),
    "TemperatureExplorer": ("Turn the temperature", "Make a row of weights sharper or more even with a slider."),
    "AttentionStepper": (
        "Play attention",
        "See the output come from the tokens, step by step, and choose a number to see the arithmetic that made it.",
    ),
    "AttentionHeatmap": (
        "Read the weights",
        "Go along the rows of a grid of weights, and see how each query shares its own.",
    ),
    "SaturationExplorer": (
        "Make vectors longer",
        "Let $d_k$ grow with and without the scale, and watch a softmax decide.",
    ),
    "MaskPainter": (
        "Paint a mask",
        "Open and close cells, and see the weights and whether an output sees a later token.",
    ),
    "HeadExplorer": (
        "See where a real model looks",
        "Choose a sentence and any of the 270 heads of a language model, and see which words look at which.",
    ),
    "HeadGallery": ("Look at all heads", "See where each head of a trained model looks, for one token after another."),
    "HeadAblation": (
        "Switch heads off",
        "Switch heads of a trained model off, and see which tokens it then guesses worse.",
    ),
    "DecodeStepper": (
        "Write token by token",
        "Step through generation, and see what a cache of keys and values saves.",
    ),
    "MemoryCalculator": (
        "Fill a card",
        "Choose a model, a context and a batch, and see how much of a card's memory they take.",
    ),
    "OnlineSoftmaxStepper": (
        "Softmax in one pass",
        "Take scores block by block, in any order, and see that the result is the same.",
    ),
    "TileWalker": ("Walk through tiles", "Follow the loops of FlashAttention: what is loaded, computed and stored."),
    "ServingTimeline": (
        "Serve many requests",
        "Step through a server's schedule, change its budget and its blocks, and ask a cell why it is so.",
    ),
    "PageTable": (
        "Share blocks of a cache",
        "Append, fork and free sequences, and see which blocks they hold and which they share.",
    ),
    "SpeculativeStepper": (
        "Let a drafter guess",
        "Follow the drafts of one round: which are kept, which coin refuses one, and what comes in its place.",
    ),
    "TracePlayer": (
        "Play what breaks a promise",
        "Step through the shortest sequence of calls after which an object does what it promised not to do.",
    ),
    "Guess": ("Guess first", "Guess a number, a choice or a curve before its cell tells you."),
    "Guesses": ("Your guesses", "See how near the guesses of a day came, and on which side you err."),
    "Practice": ("Work with a pencil", "Solve a problem in steps, and see at which step you first went wrong."),
    "Quiz": ("Questions from memory", "Answer the questions of a day; each choice says why it is right or wrong."),
    "ProgressMap": ("The map of the days", "See all days, with links to their lessons and exercises."),
}


def plays_page(plays: Sequence[Play], small: Mapping[str, bytes]) -> str:
    """Return the Markdown of the page: the widgets by what a reader does with them, then the figures of each day.

    Args:
        small: the result of `small_pictures`.

    Raises:
        CourseError: `WIDGETS` does not name a widget.
    """
    widgets = [play for play in plays if play.widget]
    for play in widgets:
        if play.widget not in WIDGETS:
            raise CourseError(
                f"{play.page}: course_utils/site/widget_gallery.py has no words for the widget {play.widget}"
            )
    parts = [
        "# Widgets and figures",
        "What you can play with and look at, and where. It works here, with nothing installed. In JupyterLab some "
        "widgets also take functions of your own.",
        "## Widgets",
    ]
    for kind, (name, told) in WIDGETS.items():
        if of_kind := [play for play in widgets if play.widget == kind]:
            where = f"In {_listed(of_kind)}. In a notebook it is called `{kind}`."
            parts += [f"### {name}", _picture(of_kind[0], small), told, where]
    for day in DAYS:
        figures = [play for play in plays if not play.widget and play.day == day.number]
        if figures:
            parts += [f"## Figures of day {day.number}", "\n".join(f"- {_figure(play, small)}" for play in figures)]
    return "\n\n".join(parts) + "\n"


def small_pictures(pages: Iterable[Page]) -> dict[str, bytes]:
    """Return the small pictures that `plays_page` shows, by their path in the static folder."""
    pictures, seen = {}, set[str]()
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
        width, height = (pixels * 2 // 3 for pixels in picture.size)
    return small_picture(play, _small(play), (width, height))


def _listed(plays: Sequence[Play]) -> str:
    named = [f"[{_where(play)}]({_place(play)})" for play in plays]
    return ", ".join(named[:MOST]) + (f" and {len(named) - MOST} other places" if len(named) > MOST else "")


def _where(play: Play) -> str:
    return f"day {play.day}, {link_text(play.heading)}" if play.day else f"the {link_text(play.heading).lower()}"


def _figure(play: Play, small: Mapping[str, bytes]) -> str:
    told = _literal(first_sentence(play.alt))
    return f"{_picture(play, small)} [{link_text(play.heading)}]({_place(play)}): {told}"


def _place(play: Play) -> str:
    return f"page:{play.page}.html#{play.anchor}"


def _literal(text: str) -> str:
    """Escape Markdown."""
    return re.sub(r"([\\*_\[\]<>`$|])", r"\\\1", text)
