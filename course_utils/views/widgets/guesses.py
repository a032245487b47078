"""How near the guesses of a day came."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.course import NUMBERS, WORK_FOLDER, day_numbered
from course_utils.errors import CourseError
from course_utils.guesses import StoredGuess, brief, read, summed_up
from course_utils.guesses.store import subscribe
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INVITATION = (
    "Run this cell: it shows how close today's guesses came, and whether you tend to guess too high or too low."
)


class Guesses(CourseWidget):
    """The guesses of a day: each with what was computed, how near it came, and what they have in common.

    day: which. root: the course's folder; guesses are read from its folder guesses/ when the page is shown, after each
    new guess, and by `read()`. `.kept` are those that count, by name. Text and picture say none of them, so a notebook
    with this widget holds nobody's guesses. A page without a kernel shows those that the browser keeps.
    Raises ValueError for a day that there is not.
    """

    in_gallery = InGallery(
        4, "Your guesses", summary="See how close the guesses of a day came, and whether they are too high or too low."
    )
    plays = False
    minutes = 0

    _esm = script("guesses.js")
    _css = style("guesses.css")

    _shown = traitlets.Dict().tag(sync=True)
    _asked = traitlets.Int(0).tag(sync=True)  # the page counts it up when it is drawn

    def __init__(self, day: int, root: Path | str = WORK_FOLDER):
        if day not in NUMBERS:
            raise ValueError(f"there is no day {day!r}; days are {NUMBERS[0]} to {NUMBERS[-1]}")
        self._day = day
        self._root = Path(root)
        self.kept: dict[str, StoredGuess] = {}
        super().__init__(_shown=_page(day, [], [_INVITATION]))
        subscribe(self._on_kept)

    def read(self) -> None:
        """Read the guesses of the day again."""
        try:
            self.kept = read(self._day, self._root)
            summary = summed_up(self.kept.values())
        except CourseError as error:
            self.kept = {}
            summary = [f"{error}."]
        self._shown = _page(self._day, list(self.kept.values()), summary)

    @traitlets.observe("_asked")
    def _on_asked(self, change):
        self.read()

    def _on_kept(self, day):
        if day == self._day:
            self.read()

    def alone_state(self) -> dict[str, Any]:
        return {"_shown": _page(self._day, [], [])}

    def as_text(self) -> str:
        return f"{_title(self._day)}\n{_INVITATION}"

    def alt(self) -> str:
        return self.as_text().replace("\n", ". ")

    def figure(self) -> Figure:
        fig = new_figure(720, 62)
        fig.text(16 / 720, 38 / 62, _title(self._day), fontweight="bold")
        fig.text(16 / 720, 14 / 62, _INVITATION, fontsize=10)
        return fig


def _title(day: int) -> str:
    return f"Your guesses of day {day}, {day_numbered(day).title}"


def _page(day: int, stored: list[StoredGuess], lines: list[str]) -> dict:
    return {"title": _title(day), "day": day, "lines": lines, "rows": [_row(each) for each in stored]}


def _row(stored: StoredGuess) -> list[str]:
    """The question, the guess, what was computed, and how near it came."""
    question = stored.asked
    return [
        question.question,
        _format_answer(stored, stored.first),
        _format_answer(stored, question.truth),
        stored.nearness.text,
    ]


def _format_answer(stored: StoredGuess, values: tuple[float, ...]) -> str:
    question = stored.asked
    if question.kind == "choice":
        return question.choices[int(values[0])]
    unit = question.unit if question.unit in ("", "%") else f" {question.unit}"
    if question.kind == "number":
        return f"{brief(values[0])}{unit}"
    return f"{brief(values[0])} … {brief(values[-1])}{unit}"
