"""A problem, its steps, and the judge that locates the first wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Mapping[str, np.ndarray]  # what is given and what was found so far, by name
ATOL, RTOL = 0.006, 0.005  # two decimals, and what rounding before an exponential makes of them
COUNT_RTOL = 0.01
APART = 3  # times the tolerance that any two numbers must differ by which are to be told apart


@dataclass(frozen=True)
class Slip:
    """A wrong way to take a step. said: one sentence to who took it."""

    name: str
    found: Callable[[Values], Any]
    said: str


@dataclass(frozen=True)
class Step:
    """One step of a problem. asked: what to write down. found: it, from what is given and the steps before.

    count: whether it is a count, of which one per cent suffices.
    """

    name: str
    asked: str
    found: Callable[[Values], Any]
    slips: tuple[Slip, ...] = ()
    count: bool = False


@dataclass(frozen=True)
class Mark:
    """What is said of one step. status: right, follows (from a wrong value, rightly), wrong or empty.

    slip: what is known to have gone wrong, None where it is not.
    """

    step: str
    status: str
    right: np.ndarray
    slip: Slip | None = None

    def __str__(self) -> str:
        said = {"right": "right", "follows": "correct from your value on", "wrong": "not right", "empty": "empty"}
        return f"{self.step}: {said[self.status]}" + (f". {self.slip.said}" if self.slip else "")


@dataclass(frozen=True)
class Problem:
    """One problem of a kind. given: its figures by name. told: the statement, plain text."""

    kind: str
    number: int
    told: str
    given: Mapping[str, np.ndarray]
    steps: tuple[Step, ...]

    def solution(self) -> dict[str, np.ndarray]:
        """The right value of each step, by name, as arrays in full precision."""
        return self._carried_on({})

    def judge(self, entered: Mapping[str, Any]) -> tuple[Mark, ...]:
        """A mark for each step. entered: numbers by the name of the step, nested lists or arrays; steps may be missing.

        A number counts as right when it is right to two decimals, also where the steps before were rounded to two.
        Raises ValueError for a step that there is not and for numbers of another shape.
        """
        mine = {name: self._checked(name, value) for name, value in entered.items() if value is not None}
        right, marks = self.solution(), []
        for step in self.steps:
            if step.name not in mine:
                marks.append(Mark(step.name, "empty", right[step.name]))
                continue
            before = self._values({**right, **mine}, step)
            astray = any(mark.status in ("wrong", "follows") for mark in marks)
            if near(mine[step.name], right[step.name], step):
                marks.append(Mark(step.name, "right", right[step.name]))
            elif near(mine[step.name], _array(step.found(before)), step):
                marks.append(Mark(step.name, "follows" if astray else "right", right[step.name]))
            else:
                ways = [before, self._values(right, step)]
                slip = next(
                    (s for s in step.slips for way in ways if near(mine[step.name], _found(s, way), step)), None
                )
                marks.append(Mark(step.name, "wrong", right[step.name], slip))
        return tuple(marks)

    def first_wrong(self, entered: Mapping[str, Any]) -> Mark | None:
        """The mark of the first step that is wrong; None where none is."""
        return next((mark for mark in self.judge(entered) if mark.status == "wrong"), None)

    def with_slip(self, name: str, slip: Slip) -> dict[str, np.ndarray]:
        """What somebody writes down who slips at one step and takes all others rightly, to two decimals."""
        return self.worked({name: slip})

    def worked(self, slips: Mapping[str, Slip] | None = None, decimals: int | None = 2) -> dict[str, np.ndarray]:
        """The steps one after the other, each from the rounded values before it, with slips by the names of steps.

        decimals: what all but counts are rounded to, None for full precision.
        """
        return self._carried_on(slips or {}, decimals)

    def is_degenerate(self) -> bool:
        """Whether a slip would give the right numbers, or a step those of the step before, or two rows are the same."""
        matrices = [np.asarray(each) for each in self.given.values() if np.ndim(each) == 2]
        if any(len(np.unique(matrix, axis=0)) < len(matrix) for matrix in matrices):
            return True
        right = self.solution()
        for step, earlier in zip(self.steps, (None, *self.steps[:-1]), strict=True):
            if not np.isfinite(right[step.name]).all():
                return True
            if earlier and near(right[step.name], right[earlier.name], step, APART):
                return True
            values = self._values(right, step)
            if any(near(_found(slip, values), right[step.name], step, APART) for slip in step.slips):
                return True
        return False

    def known_slips(self) -> list[tuple[Step, Slip]]:
        """The steps with the slips that can be taken here: those that give as many numbers as are asked for."""
        right = self.solution()
        pairs = [(step, slip) for step in self.steps for slip in step.slips]
        return [(s, slip) for s, slip in pairs if _found(slip, self._values(right, s)).shape == right[s.name].shape]

    def _carried_on(self, slips: Mapping[str, Slip], decimals: int | None = None) -> dict[str, np.ndarray]:
        """The steps one after the other, each from the values before it, some of them with a slip."""
        values: dict[str, np.ndarray] = {}
        for step in self.steps:
            way = slips[step.name].found if step.name in slips else step.found
            found = _array(way({**self.given, **values}))
            values[step.name] = found if decimals is None or step.count else found.round(decimals)
        return values

    def _values(self, found: Values, step: Step) -> dict[str, np.ndarray]:
        """What is known when a step is taken."""
        names = [each.name for each in self.steps]
        return {**self.given, **{name: found[name] for name in names[: names.index(step.name)]}}

    def _checked(self, name: str, value: Any) -> np.ndarray:
        shapes = {step: right.shape for step, right in self.solution().items()}
        if name not in shapes:
            raise ValueError(f"there is no step {name!r}; this problem has {', '.join(shapes)}")
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"{name}: {value!r} is no number and no rows of numbers") from None
        if array.squeeze().shape == np.empty(shapes[name]).squeeze().shape:
            array = array.reshape(shapes[name])  # a row may be written as a column
        if array.shape != shapes[name]:
            raise ValueError(f"{name}: {said_shape(array.shape)} here, {said_shape(shapes[name])} asked for")
        return array


def near(mine: np.ndarray, theirs: np.ndarray, step: Step, factor: float = 1) -> bool:
    """Whether numbers are the same, as far as the step asks for; a larger factor passes over more."""
    if mine.shape != theirs.shape:
        return False
    if step.count:
        return bool(np.allclose(mine, theirs, rtol=factor * COUNT_RTOL, atol=0))
    return bool(np.allclose(mine, theirs, rtol=factor * RTOL, atol=factor * ATOL))


def said_shape(shape: Sequence[int]) -> str:
    """A shape in words."""
    if not shape:
        return "one number"
    return f"{shape[0]} numbers" if len(shape) == 1 else f"{shape[0]} rows of {shape[1]}"


def _array(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=float)


def _found(slip: Slip, values: Values) -> np.ndarray:
    return _array(slip.found(values))
