"""Judge how near a guess came, in numbers and in words. `views/shared/guessing.js` does the same without a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from course_utils.guesses.question import Question

NEAR = 0.02  # share of the range; nobody can aim better with a mouse
NEAR_FACTOR = 1.05  # the same on a log scale


@dataclass(frozen=True)
class Nearness:
    """How near a guess came.

    Attributes:
        right: whether the choice is the right one; None for numbers and curves.
        off: the mean distance over the places; on a linear scale a share of the range, on a log scale the logarithm of
            a factor.
        lean: 1 for too high, −1 for too low, 0 for near or neither.
        text: the verdict in words, the end of a sentence that begins with "Your guess is".
    """

    right: bool | None
    off: float
    lean: int
    text: str


def judge(question: Question, guess: Sequence[float]) -> Nearness:
    """Judge how near a guess came.

    Raises:
        ValueError: the guess does not fit the question.
    """
    guess = question.checked(guess)
    if question.kind == "choice":
        right = guess == question.truth
        return Nearness(right, 0.0 if right else 1.0, 0, "right" if right else "not right")
    log = question.scale == "log"
    ends = question.high - question.low
    errors = [
        math.log(value / true) if log else (value - true) / ends
        for value, true in zip(guess, question.truth, strict=True)
    ]
    near = math.log(NEAR_FACTOR) if log else NEAR
    off = sum(map(abs, errors)) / len(errors)
    lean = _sign(sum(errors) / len(errors), near)
    is_curve = question.kind == "curve"
    text = _describe_curve(errors, off, near, log) if is_curve else _describe_number(off, lean, log)
    return Nearness(None, off, lean, text)


def distance(off: float, log: bool) -> str:
    """Return the distance `Nearness.off` in words, such as "12% of the range", or "a factor of 1.8" if `log`."""
    return f"a factor of {brief(math.exp(off), 2)}" if log else f"{max(1, round(100 * off))}% of the range"


def brief(value: float, digits: int = 3) -> str:
    """Return a number with a few significant digits, as people write it: 0.25, 12,300, 4.1e9."""
    value = float(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if not 1e-4 <= abs(rounded) < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"
    else:
        text = f"{rounded:,.10f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def ticks(low: float, high: float, scale: str) -> list[float]:
    """Return about five round numbers within a range, for its axis."""
    if scale == "log":
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        every = -(-len(powers) // 6)
        decades = [10.0**power for power in powers if power % every == 0 and low <= 10.0**power <= high * (1 + 1e-9)]
        if len(decades) >= 3:
            return decades
        finer = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [value for value in finer if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * place, 12) for place in range(first, last + 1)]


def as_places(x: Sequence[float | str], scale: str) -> list[float]:
    """Return the positions of the places of a curve, from 0 to 1: numbers by their scale, texts evenly spaced.

    Raises:
        ValueError: numbers are not finite, do not increase, or are not above 0 on a log scale.
    """
    last = len(x) - 1
    if any(isinstance(each, str) for each in x):
        return [place / last for place in range(len(x))]
    numbers = [float(each) for each in x]
    if not all(map(math.isfinite, numbers)) or any(not left < right for left, right in pairwise(numbers)):
        raise ValueError(f"x is {numbers}: each place has to be beyond the one before")
    if scale == "log":
        if numbers[0] <= 0:
            raise ValueError(f"x begins with {numbers[0]:g}: on a log scale it has to be above 0")
        numbers = [math.log(each) for each in numbers]
    return [(each - numbers[0]) / (numbers[-1] - numbers[0]) for each in numbers]


def _sign(error: float, near: float) -> int:
    if abs(error) <= near:
        return 0
    return 1 if error > 0 else -1


def _describe_number(off: float, lean: int, log: bool) -> str:
    if lean == 0:
        return f"near: within {_near(log)}"
    return f"too {'high' if lean > 0 else 'low'} by {distance(off, log)}"


def _describe_curve(errors: list[float], off: float, near: float, log: bool) -> str:
    signs = [_sign(error, near) for error in errors]
    count = len(errors)
    sides = [f"too {side} at {signs.count(sign)}" for side, sign in (("high", 1), ("low", -1)) if sign in signs]
    if not sides:
        return f"near: within {_near(log)} at all {count} places"
    sides[0] += f" of {count} places"
    return f"{distance(off, log)} away on average, {' and '.join(sides)}"


def _near(log: bool) -> str:
    return f"a factor of {NEAR_FACTOR:g}" if log else f"{100 * NEAR:g}% of the range"
