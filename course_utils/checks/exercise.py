"""An exercise as the one who holds the answers sees it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from ..course import is_there
from .expected import has_answers, stored, stored_days


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people give: a function, or the values of hand-worked entries, and what to say to them.

    answer: None in a student's edition, where only what it gives is stored.
    """

    name: str
    answer: Callable | Mapping[str, Any] | None
    message: str


@dataclass(frozen=True)
class Exercise:
    """points: full marks. reference: a right answer by name, None each in a student's edition. mistakes: wrong ones,
    the most telling first. uses: the earlier exercises that it builds on; where the learner's answer to one of them
    fails, the reference stands in for it.

    A number a holds for b when |a − b| ≤ atol + rtol·|b|, unless its rung is of another mind. scaled: makes the
    right answer with its scores times a factor; None in a student's edition.
    """

    points: int
    reference: Mapping[str, Any]
    mistakes: tuple[Mistake, ...]
    uses: tuple[str, ...] = ()
    rtol: float = 1e-6
    atol: float = 1e-6
    scaled: Callable[[float], Callable] | None = None


def parameters(day: int, grade_id: str) -> tuple[str, ...]:
    """What the arguments of an answer are called; empty where the answer is no function."""
    if not has_answers():
        return tuple(stored(day)[grade_id]["parameters"])
    try:
        return tuple(inspect.signature(next(iter(all_exercises(day)[grade_id].reference.values()))).parameters)
    except TypeError:
        return ()


def all_exercises(day: int) -> dict[str, Exercise]:
    """The exercises of a day by grade_id, in the order of the notebook."""
    if not has_answers():
        return _stored_exercises(day)
    return import_module(f"course_utils.checks.answers.day{day}").EXERCISES


def days_with_exercises() -> list[int]:
    """The days that have exercises and are there."""
    if not has_answers():
        return stored_days()
    from pkgutil import iter_modules

    answers = import_module("course_utils.checks.answers")
    names = [module.name for module in iter_modules(answers.__path__)]
    days = sorted(int(name.removeprefix("day")) for name in names if name.startswith("day"))
    return [day for day in days if is_there(day)]


@cache
def _stored_exercises(day: int) -> dict[str, Exercise]:
    return {
        grade_id: Exercise(
            kept["points"],
            dict.fromkeys(kept["names"]),
            tuple(Mistake(known["name"], None, known["message"]) for known in kept["mistakes"]),
            tuple(kept["uses"]),
            kept["rtol"],
            kept["atol"],
        )
        for grade_id, kept in stored(day).items()
    }
