"""An exercise as the one who holds the answers sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


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
