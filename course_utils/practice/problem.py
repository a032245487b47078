"""A problem, its steps, and the judge that finds the first wrong step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Mapping[str, np.ndarray]  # the figures of a problem and the values of the steps so far, by name
ATOL, RTOL = 0.006, 0.005  # for two decimals, also where an exponential enlarges the rounding
COUNT_RTOL = 0.01
APART = 3  # numbers that a problem tells apart must differ by this many tolerances


@dataclass(frozen=True)
class Misstep:
    """A known wrong way to take a step.

    Attributes:
        compute: computes the wrong value.
        message: one sentence that tells the learner what went wrong.
    """

    name: str
    compute: Callable[[Values], Any]
    message: str


@dataclass(frozen=True)
class Step:
    """One step of a problem.

    Attributes:
        task: what the learner writes down.
        compute: computes the right value from the figures and the earlier steps.
        missteps: the known wrong ways.
        count: whether the value is a count, for which one per cent is near enough.
    """

    name: str
    task: str
    compute: Callable[[Values], Any]
    missteps: tuple[Misstep, ...] = ()
    count: bool = False


@dataclass(frozen=True)
class Mark:
    """The judgement of one step.

    Attributes:
        status: "right", "wrong", "empty", or "follows" for a value that is correct from a wrong earlier value on.
        misstep: the misstep that explains a wrong value; None if no known one does.
    """

    step: str
    status: str
    right: np.ndarray
    misstep: Misstep | None = None

    def __str__(self) -> str:
        texts = {"right": "right", "follows": "correct from your value on", "wrong": "not right", "empty": "empty"}
        return f"{self.step}: {texts[self.status]}" + (f". {self.misstep.message}" if self.misstep else "")


@dataclass(frozen=True)
class Problem:
    """One problem of a kind.

    Attributes:
        statement: the text that poses it, in plain text.
        inputs: its figures, by name.
    """

    kind: str
    number: int
    statement: str
    inputs: Mapping[str, np.ndarray]
    steps: tuple[Step, ...]

    def solution(self) -> dict[str, np.ndarray]:
        """Return the right value of each step by name, in full precision."""
        return self._carried_on({})

    def judge(self, entered: Mapping[str, Any]) -> tuple[Mark, ...]:
        """Return a mark for each step.

        A number counts as right when it is right to two decimals, also where the steps before were rounded to two.

        Args:
            entered: the learner's numbers by the name of the step, as nested lists or arrays; steps may be missing.

        Raises:
            ValueError: there is no such step, or its value is not numbers of the right shape.
        """
        mine = {name: self._checked(name, value) for name, value in entered.items() if value is not None}
        right = self.solution()
        marks: list[Mark] = []
        for step in self.steps:
            if step.name not in mine:
                marks.append(Mark(step.name, "empty", right[step.name]))
                continue
            before = self._values_before(step, {**right, **mine})
            is_off_course = any(mark.status in ("wrong", "follows") for mark in marks)
            if near(mine[step.name], right[step.name], step):
                marks.append(Mark(step.name, "right", right[step.name]))
            elif near(mine[step.name], _array(step.compute(before)), step):
                marks.append(Mark(step.name, "follows" if is_off_course else "right", right[step.name]))
            else:
                # A known misstep, made from the learner's own earlier values or from the right ones.
                starts = [before, self._values_before(step, right)]
                pairs = [(misstep, at) for misstep in step.missteps for at in starts]
                found = (misstep for misstep, at in pairs if near(mine[step.name], _wrong_value(misstep, at), step))
                marks.append(Mark(step.name, "wrong", right[step.name], next(found, None)))
        return tuple(marks)

    def first_wrong(self, entered: Mapping[str, Any]) -> Mark | None:
        """Return the mark of the first wrong step; None if no step is wrong."""
        return next((mark for mark in self.judge(entered) if mark.status == "wrong"), None)

    def worked(self, missteps: Mapping[str, Misstep] | None = None, decimals: int | None = 2) -> dict[str, np.ndarray]:
        """Return the value of each step, computed from the rounded values of the steps before it.

        Args:
            missteps: the missteps to make, by step name.
            decimals: rounding of values that are no counts; None for full precision.
        """
        return self._carried_on(missteps or {}, decimals)

    def is_degenerate(self) -> bool:
        """Whether the drawn figures are unfit for a problem.

        They are if two rows of a matrix are equal, a value is not finite, a step repeats the numbers of the step
        before, or a misstep gives the right numbers.
        """
        matrices = [np.asarray(each) for each in self.inputs.values() if np.ndim(each) == 2]
        if any(len(np.unique(matrix, axis=0)) < len(matrix) for matrix in matrices):
            return True
        right = self.solution()
        for step, earlier in zip(self.steps, (None, *self.steps[:-1]), strict=True):
            if not np.isfinite(right[step.name]).all():
                return True
            if earlier and near(right[step.name], right[earlier.name], step, APART):
                return True
            values = self._values_before(step, right)
            if any(near(_wrong_value(misstep, values), right[step.name], step, APART) for misstep in step.missteps):
                return True
        return False

    def known_missteps(self) -> list[tuple[Step, Misstep]]:
        """Return each step with each misstep that fits here: it gives as many numbers as the step asks for."""
        right = self.solution()
        pairs = [(step, misstep) for step in self.steps for misstep in step.missteps]
        return [
            (s, misstep)
            for s, misstep in pairs
            if _wrong_value(misstep, self._values_before(s, right)).shape == right[s.name].shape
        ]

    def _carried_on(self, missteps: Mapping[str, Misstep], decimals: int | None = None) -> dict[str, np.ndarray]:
        """Compute the steps in order, each from the values before it, with a misstep where `missteps` has one."""
        values: dict[str, np.ndarray] = {}
        for step in self.steps:
            compute = missteps[step.name].compute if step.name in missteps else step.compute
            value = _array(compute({**self.inputs, **values}))
            values[step.name] = value if decimals is None or step.count else value.round(decimals)
        return values

    def _values_before(self, step: Step, values: Values) -> dict[str, np.ndarray]:
        """Return the values that are known before a step: the figures, and of `values` those of the earlier steps."""
        names = [each.name for each in self.steps]
        return {**self.inputs, **{name: values[name] for name in names[: names.index(step.name)]}}

    def _checked(self, name: str, value: Any) -> np.ndarray:
        shapes = {step: right.shape for step, right in self.solution().items()}
        if name not in shapes:
            raise ValueError(f"there is no step {name!r}; this problem has {', '.join(shapes)}")
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"{name}: {value!r} is neither a number nor rows of numbers") from None
        if array.squeeze().shape == np.empty(shapes[name]).squeeze().shape:
            array = array.reshape(shapes[name])  # a row may be written as a column
        if array.shape != shapes[name]:
            raise ValueError(f"{name}: {describe_shape(array.shape)} here, {describe_shape(shapes[name])} asked for")
        return array


def near(mine: np.ndarray, theirs: np.ndarray, step: Step, factor: float = 1) -> bool:
    """Whether numbers agree within `factor` times the tolerance of the step."""
    if mine.shape != theirs.shape:
        return False
    if step.count:
        return bool(np.allclose(mine, theirs, rtol=factor * COUNT_RTOL, atol=0))
    return bool(np.allclose(mine, theirs, rtol=factor * RTOL, atol=factor * ATOL))


def describe_shape(shape: Sequence[int]) -> str:
    """Return a shape in words."""
    if not shape:
        return "one number"
    return f"{shape[0]} numbers" if len(shape) == 1 else f"{shape[0]} rows of {shape[1]}"


def _array(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=float)


def _wrong_value(misstep: Misstep, values: Values) -> np.ndarray:
    return _array(misstep.compute(values))
