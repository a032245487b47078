"""The result of a diagnosis, a relation between wrong and right numbers, and the data that is searched for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Outcome

NEAR = 2e-6  # relative to the largest number of an array: how well a relation must hold


@dataclass(frozen=True)
class Relation:
    """A relation between the wrong numbers of an answer and the right ones.

    Attributes:
        name: the name that a class report lists.
        message: a sentence or two for the learner.
        count: the number of pairs on which it holds; None for all.
        of_part: whether it is about the part of the result that is compared, such as the weights.
        is_last: whether it is said after the first wrong entry and its rule, without which it tells little.
    """

    name: str
    message: str
    count: int | None = None
    of_part: bool = True
    is_last: bool = False


@dataclass(frozen=True)
class JudgedRungs:
    """The rungs that an answer was tried on, and how each one went. Each sequence has one entry for each rung.

    Attributes:
        outcomes: the answer's outcomes.
        right: the right outcomes.
        wrong: the wrong parts of each rung; none where it holds.
    """

    rungs: Sequence[Rung]
    outcomes: Sequence[Outcome]
    right: Sequence[Outcome]
    wrong: Sequence[Collection[str]]

    @property
    def held(self) -> list[bool]:
        """Whether each rung holds."""
        return [not parts for parts in self.wrong]

    @property
    def failing(self) -> list[int]:
        """The places of the rungs that do not hold."""
        return [i for i, parts in enumerate(self.wrong) if parts]


@dataclass(frozen=True)
class NamedRung:
    """A rung with the names of its arguments.

    Attributes:
        arg_names: the names of the arguments.
        measured: whether the rung records a measure in place of the result.
        of: the name of the function that is tried.
        quantities: see `Ladder`.
        measure: see `Rung`.
    """

    name: str
    args: tuple
    arg_names: tuple[str, ...]
    measured: bool
    of: str = ""
    quantities: Mapping[str, float] | None = None
    measure: Callable | None = None


@dataclass(frozen=True)
class Pair:
    """One wrong part of one result: the rung, the answer's array and the right one."""

    rung: NamedRung
    actual: np.ndarray
    right: np.ndarray
    others: Mapping[str, np.ndarray] = field(default_factory=dict)  # the other parts of the right result
    mask: bool = False  # whether 1 and 0 stand for True and False

    @property
    def alike(self) -> bool:
        """Whether both arrays have the same shape."""
        return self.actual.shape == self.right.shape


def same(a: np.ndarray, b: np.ndarray, near: float = NEAR) -> bool:
    """Return whether two arrays have the same shape and the same numbers, up to rounding."""
    if a.shape != b.shape:
        return False
    if not a.size:
        return True
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return False
    scale = max(float(np.abs(b[finite]).max(initial=0.0)), 1e-9)
    return bool((np.abs(a[finite] - b[finite]) <= near * scale).all())


def telling(pairs: Sequence[Pair]) -> bool:
    """Return whether the right arrays hold enough different numbers for a relation to be no accident."""
    numbers = [np.unique(pair.right.round(9)) for pair in pairs]
    if sum(map(len, numbers)) < 3:
        return False
    # Small whole numbers agree by accident more easily.
    are_small = all((each == each.round()).all() and np.abs(each).max(initial=0) < 16 for each in numbers)
    return not are_small or len(np.unique(np.concatenate(numbers))) >= 4


def argument(rung: NamedRung, i: int) -> np.ndarray | None:
    """Return an argument of a rung as an array; None if it is missing, a single number or no array."""
    try:
        array = np.asarray(rung.args[i], dtype=float)
    except (TypeError, ValueError, IndexError):
        return None
    return array if array.ndim else None
