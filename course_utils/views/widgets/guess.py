"""A question whose answer a cell computes: the page takes a guess, and then shows what was computed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.course import WORK_FOLDER
from course_utils.errors import CourseError
from course_utils.guesses import Nearness, Question, brief, judge, keep, read
from course_utils.guesses.nearness import as_places, ticks
from course_utils.views import palette
from course_utils.views.drawing import typeset
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import Numbers, as_array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TODO = "Run this cell to guess; what was computed is shown after your guess."
_QUESTIONS_BY_NAME: dict[tuple[Path, int, str], Question] = {}  # by the course's folder, the day and the name


class Guess(CourseWidget):
    """A question before its answer: `Guess.number`, `Guess.choice` and `Guess.curve` make one.

    What was computed is given to it and shown after a guess, with how near the guess came. Guesses are kept in
    `guesses/dayN.json` in the course's folder; the first at a question counts. Text and picture are the question
    alone, whatever was guessed. `.guess` is the latest, `.first` the first, each a list of numbers, empty without one:
    one number, the position of a choice, or a number for each place. `.verdict` says how near the latest came.
    A page without a kernel does the same, and keeps guesses in the browser: see `shared/guessing.js`.
    """

    in_gallery = InGallery(3, "Guess first", summary="Guess a number, a choice or a curve before its cell tells you.")
    plays = False
    minutes = 0

    _esm = script("guess.js")
    _css = style("guess.css")

    guess: traitlets.List[Any] = traitlets.List(traitlets.Float()).tag(sync=True)
    first: traitlets.List[Any] = traitlets.List(traitlets.Float()).tag(sync=True)
    draft: traitlets.List[Any] = traitlets.List(traitlets.Float(allow_none=True)).tag(sync=True)
    _posed = traitlets.Dict().tag(sync=True)
    _kept = traitlets.Unicode().tag(sync=True)
    _asked = traitlets.Int(0).tag(sync=True)  # the page counts it up when it is drawn, to hear of earlier guesses

    def __init__(self, question: Question, why: str, root: Path | str, axes: dict[str, Any] | None = None):
        """Use `Guess.number`, `Guess.choice` or `Guess.curve`."""
        self._question = question
        self._root = Path(root)
        self._reading = False
        before = _QUESTIONS_BY_NAME.setdefault((self._root, question.day, question.name), question)
        if not before.same_question(question) and before.question != question.question:
            raise ValueError(
                f"guess {question.name!r} of day {question.day} already asks {before.question!r}; give another "
                "question another name, or restart the kernel"
            )
        _QUESTIONS_BY_NAME[self._root, question.day, question.name] = question
        super().__init__(_posed=_describe_question(question, why) | (axes or {}), draft=[None] * len(question.truth))

    @classmethod
    def number(
        cls, day: int, name: str, question: str, *, truth: Any, low: float, high: float, scale: str = "linear",
        unit: str = "", why: str = "", root: Path | str = WORK_FOLDER,
    ) -> Guess:  # fmt: skip
        """Ask for a number.

        day, name: whose guess it is; a name is used once a day. truth: what a cell computed, or a function without
            arguments that computes it. low, high: ends of the range, which must hold the truth. scale: "linear", where
            the distance counts as a share of the range, or "log", where it counts as a factor. unit: stands behind
            each number. why: a sentence or two on the truth, shown with it.
        Raises ValueError for a range or a truth that does not fit, and for a name that asks something else already.
        """
        value = truth() if callable(truth) else truth
        low, high = _ends(name, low, high)
        truths = _numbers(name, [value])
        made = Question(day, name, question, "number", truths, low=low, high=high, scale=scale, unit=unit)
        return cls(made, why, root)

    @classmethod
    def choice(
        cls, day: int, name: str, question: str, *, choices: Iterable[str], truth: Any, why: str = "",
        root: Path | str = WORK_FOLDER,
    ) -> Guess:  # fmt: skip
        """Ask which of some texts it is. truth: the right one of them, or a function without arguments that finds it.

        The rest is as in `number`. Raises ValueError when truth is not one of the choices, or there are fewer than two.
        """
        texts = tuple(choices)
        right = truth() if callable(truth) else truth
        position = float(texts.index(right)) if right in texts else -1.0
        return cls(Question(day, name, question, "choice", (position,), choices=texts), why, root)

    @classmethod
    def curve(
        cls, day: int, name: str, question: str, x: Sequence[float | str], *, truth: Numbers | Callable[[Any], Any],
        low: float, high: float, x_label: str = "", y_label: str = "", scale: str = "linear", x_scale: str = "linear",
        unit: str = "", why: str = "", root: Path | str = WORK_FOLDER,
    ) -> Guess:  # fmt: skip
        """Ask for a curve, drawn with the mouse or set place by place.

        x: 2 to 24 places, numbers that grow or texts. truth: a number for each, or a function of one of them. x_label,
            y_label: what the axes show. scale: of the numbers, x_scale of the places, "linear" or "log".
        The rest is as in `number`. Raises ValueError for places, a range or a truth that do not fit.
        """
        x = [each if isinstance(each, str) else float(each) for each in x]
        values = [truth(each) for each in x] if callable(truth) else truth
        places = tuple(each if isinstance(each, str) else _format_place(each) for each in x)
        low, high = _ends(name, low, high)
        truths = _numbers(name, values)
        made = Question(day, name, question, "curve", truths, low=low, high=high, scale=scale, unit=unit, places=places)
        if x_scale not in ("linear", "log"):
            raise ValueError(f"guess {name!r}: there is no x_scale {x_scale!r}; there is linear and log")
        try:
            along = as_places(x, x_scale)
        except ValueError as error:
            raise ValueError(f"guess {name!r}: {error}") from None
        return cls(made, why, root, {"along": along, "x_label": x_label, "y_label": y_label})

    @property
    def question(self) -> Question:
        """The question, with what was computed."""
        return self._question

    @property
    def verdict(self) -> Nearness | None:
        """How near the latest guess came; None without one."""
        return judge(self._question, self.guess) if self.guess else None

    def take(self, guess: Any) -> None:
        """Guess from Python: a number, the text of a choice, or numbers for the places.

        Raises ValueError when it does not fit.
        """
        if self._question.kind == "choice":
            if guess not in self._question.choices:
                raise ValueError(f"{guess!r} is not one of the choices: {', '.join(self._question.choices)}")
            self.guess = [float(self._question.choices.index(guess))]
        else:
            self.guess = list(_numbers(self._question.name, guess if self._question.kind == "curve" else [guess]))

    @traitlets.validate("guess", "first")
    def _fits(self, proposal):
        return list(self._question.checked(proposal.value)) if proposal.value else []

    @traitlets.observe("guess")
    def _on_guess(self, change):
        if not change.new or self._reading:
            return
        if not self.first:
            self.first = change.new
        try:
            # While the kernel is busy, the page sends its newest state alone: the first guess comes with a later one.
            stored, remark = keep(self._question, change.new, self._root, first=self.first)
        except CourseError as error:
            self._kept = f"This guess is not kept: {error}."
        else:
            self.first = list(stored.first)
            self._kept = remark or f"Kept in guesses/day{self._question.day}.json on this machine."

    @traitlets.observe("_asked")
    def _on_asked(self, change):
        """Show what was guessed before: not sooner, so that a page made of this widget holds nobody's guesses."""
        try:
            stored = read(self._question.day, self._root).get(self._question.name)
        except CourseError as error:
            self._kept = f"{error}."
            return
        if stored is None or self.first or not stored.asked.same_question(self._question):
            return
        self._reading = True
        try:
            self.first = list(stored.first)
            self.guess = list(stored.last)
        finally:
            self._reading = False
        self._kept = f"Guessed on {stored.when}, kept in guesses/day{self._question.day}.json."

    def alone_state(self) -> dict[str, Any]:
        nothing = {"guess": [], "first": [], "draft": [None] * len(self._question.truth)}
        return {**nothing, "_kept": "", "_asked": 0}  # a page holds nobody's guesses

    def as_text(self) -> str:
        question = self._question
        lines = [f"Guess first: {question.question}"]
        if question.kind == "choice":
            lines += [f"  {_letter(place)}) {choice}" for place, choice in enumerate(question.choices)]
        else:
            ends = f"from {brief(question.low)} to {brief(question.high)}{_unit_text(question.unit)}"
            ends += ", logarithmic" if question.scale == "log" else ""
            lines.append(f"a number {ends}" if question.kind == "number" else self._describe_axes(ends))
        return "\n".join([*lines, _TODO])

    def alt(self) -> str:
        return " ".join(self.as_text().split())

    def figure(self) -> Figure:
        question = self._question
        width = 640
        line = 20
        question_lines = textwrap.wrap(question.question, 82)
        choices = [part for place, text in enumerate(question.choices) for part in textwrap.wrap(
            f"{_letter(place)}) {text}", 84, initial_indent="    ", subsequent_indent="        ")]  # fmt: skip
        room = {"number": 60, "curve": 290, "choice": line * len(choices) + 12}[question.kind]
        height = line * len(question_lines) + room + 34
        fig = new_figure(width, height)
        for place, text in enumerate([*question_lines, *choices]):
            y = 1 - (line * place + (22 if place < len(question_lines) else 30)) / height
            bold = "bold" if place < len(question_lines) else "normal"
            fig.text(16 / width, y, typeset(text), fontweight=bold)
        fig.text(16 / width, 12 / height, _TODO, fontsize=10)
        if question.kind == "number":
            self._draw_range(fig.add_axes((36 / width, 54 / height, 1 - 72 / width, 1e-6)))
        elif question.kind == "curve":
            self._draw_axes(fig.add_axes((70 / width, 84 / height, 1 - 100 / width, (room - 70) / height)))
        return fig

    def _describe_axes(self, ends):
        question = self._question
        posed = self._posed
        what = f"{posed['y_label']} against {posed['x_label']}" if posed["y_label"] and posed["x_label"] else "a curve"
        return f"a curve: {what} at {', '.join(question.places)}; {ends}"

    def _draw_range(self, ax):
        marks = self._posed["ticks"]
        ax.set(xlim=(0, 1), yticks=[])
        ax.set_xticks([place for place, _ in marks], [text for _, text in marks], fontsize=10)
        ax.tick_params(color=palette.INK)
        for side in ax.spines.values():
            side.set_color(palette.INK)

    def _draw_axes(self, ax):
        posed = self._posed
        question = self._question
        ax.set(xlim=(-0.03, 1.03), ylim=(0, 1))
        ax.set_yticks([place for place, _ in posed["ticks"]], [text for _, text in posed["ticks"]])
        ax.set_xticks(posed["along"], question.places)
        ax.tick_params(labelcolor=palette.INK)
        ax.grid()
        ax.set_axisbelow(True)
        ax.set_xlabel(typeset(posed["x_label"]))
        ax.set_ylabel(typeset(posed["y_label"] + (f", {question.unit}" if question.unit else "")))
        ax.text(0.5, 0.5, "?", fontsize=29, ha="center", va="center")
        for side in ax.spines.values():
            side.set_color(palette.INK)


def _describe_question(question: Question, why: str) -> dict[str, Any]:
    """What the page draws."""
    ranged = question.kind != "choice"
    return {
        "day": question.day,
        "name": question.name,
        "kind": question.kind,
        "question": question.question,
        "low": question.low,
        "high": question.high,
        "scale": question.scale,
        "unit": question.unit,
        "places": list(question.places),
        "choices": list(question.choices),
        "truth": list(question.truth),
        "why": why,
        "ticks": [[question.place(value), brief(value)] for value in ticks(question.low, question.high, question.scale)]
        if ranged
        else [],
    }


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    try:
        numbers = as_array(values)
        if numbers.ndim != 1:
            numbers = numbers.reshape(len(numbers))
    except (TypeError, ValueError):
        raise ValueError(f"guess {name!r}: {values!r} is not the numbers that are asked for") from None
    return tuple(numbers.tolist())


def _ends(name: str, low: Any, high: Any) -> tuple[float, float]:
    try:
        return float(low), float(high)
    except (TypeError, ValueError):
        raise ValueError(f"guess {name!r}: low is {low!r} and high is {high!r}: give two numbers") from None


def _format_place(value: float) -> str:
    """A number under an axis: whole ones with all their digits."""
    return f"{value:,.0f}".replace("-", "−") if value.is_integer() and abs(value) < 1e7 else brief(value, 4)


def _letter(place: int) -> str:
    return chr(ord("a") + place)


def _unit_text(unit: str) -> str:
    return unit if unit in ("", "%") else f" {unit}"
