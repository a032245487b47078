"""A question whose answer a lesson computes, and the guesses that it accepts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from course_utils.course import NUMBERS

KINDS = ("number", "choice", "curve")
SCALES = ("linear", "log")
_MAX_PLACES = 24  # places of a curve; more cannot be told apart on a phone


@dataclass(frozen=True)
class Question:
    """A question of a lesson, and the answer that the lesson computed.

    Attributes:
        name: unique within the day.
        kind: "number", "choice" or "curve".
        truth: the answer: one number, the position of the right choice, or a number for each place of a curve.
        low, high: the ends of the range, for numbers and curves.
        scale: "linear", or "log" where factors count instead of differences.
        unit: the unit of the numbers.
        places: the labels under the places of a curve.
        choices: the texts to choose from.

    Raises:
        ValueError: the question cannot be asked or answered. The message names the guess.
    """

    day: int
    name: str
    question: str
    kind: str
    truth: tuple[float, ...]
    _: KW_ONLY
    low: float = 0.0
    high: float = 1.0
    scale: str = "linear"
    unit: str = ""
    places: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._verify_named()
        {"number": self._verify_number, "curve": self._verify_curve, "choice": self._verify_choice}[self.kind]()

    def same_question(self, other: Question) -> bool:
        """Whether a guess at the other question is a guess at this one.

        The computed answers may differ, because they may be measured.
        """
        parts = ("day", "name", "question", "kind", "low", "high", "scale", "unit", "places", "choices")
        return all(getattr(self, part) == getattr(other, part) for part in parts)

    def checked(self, guess: Sequence[float]) -> tuple[float, ...]:
        """Return a guess as floats: one number, the position of a choice, or a number for each place.

        Raises:
            ValueError: the guess does not fit the question.
        """
        values = tuple(float(value) for value in guess)
        if len(values) != len(self.truth):
            raise self._error(f"{len(values)} values were guessed, and {len(self.truth)} are asked for")
        for value in values:
            if self.kind == "choice" and value not in range(len(self.choices)):
                raise self._error(f"choice {value:g} was guessed; they count from 0 to {len(self.choices) - 1}")
            if self.kind != "choice" and not self.low <= value <= self.high:
                raise self._error(f"{value:g} was guessed; the range is from {self.low:g} to {self.high:g}")
        return values

    def place(self, value: float) -> float:
        """Return where a value lies on the scale of the range: 0 at `low`, 1 at `high`."""
        if self.scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def _verify_named(self) -> None:
        if self.day not in NUMBERS:
            raise ValueError(
                f"guess {self.name!r}: there is no day {self.day!r}; days are {NUMBERS[0]} to {NUMBERS[-1]}"
            )
        for part in ("name", "question"):
            value = getattr(self, part)
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"a guess of day {self.day} has no {part}: give it a text")
        if self.kind not in KINDS:
            raise self._error(f"there is no kind {self.kind!r}; there is {', '.join(KINDS)}")

    def _verify_range(self) -> None:
        if self.scale not in SCALES:
            raise self._error(f"there is no scale {self.scale!r}; there is {' and '.join(SCALES)}")
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise self._error(f"the range is from {self.low:g} to {self.high:g}: both ends have to be finite")
        if not self.low < self.high:
            raise self._error(f"low is {self.low:g} and high is {self.high:g}: low has to be below high")
        if self.scale == "log" and self.low <= 0:
            raise self._error(f"low is {self.low:g}: on a log scale it has to be above 0")
        for place, value in enumerate(self.truth):
            where = f" at {self.places[place]}" if self.kind == "curve" and place < len(self.places) else ""
            if not math.isfinite(value):
                raise self._error(f"truth{where} is {value}: it has to be finite")
            if not self.low <= value <= self.high:
                ends = f"from {self.low:g} to {self.high:g}"
                raise self._error(f"truth{where} is {value:g}, outside of the range {ends}; widen low and high")

    def _verify_number(self) -> None:
        if len(self.truth) != 1:
            raise self._error(f"truth has {len(self.truth)} values: a number has one")
        self._verify_range()

    def _verify_curve(self) -> None:
        count = len(self.places)
        if not 2 <= count <= _MAX_PLACES:
            raise self._error(f"x has {count} places: a curve needs 2 to {_MAX_PLACES}")
        if len(set(self.places)) != count:
            raise self._error("two places of x read the same")
        if len(self.truth) != count:
            raise self._error(f"truth has {len(self.truth)} values and x {count} places: one each")
        self._verify_range()

    def _verify_choice(self) -> None:
        if len(self.choices) < 2 or not all(isinstance(each, str) and each.strip() for each in self.choices):
            raise self._error("choices has to be two texts or more")
        if len(set(self.choices)) != len(self.choices):
            raise self._error("two choices read the same")
        if len(self.truth) != 1 or self.truth[0] not in range(len(self.choices)):
            raise self._error("truth is not one of the choices")

    def _error(self, what: str) -> ValueError:
        return ValueError(f"guess {self.name!r} of day {self.day}: {what}")
