"""Test inputs of the exercises. A rung is one test input; a ladder is all rungs of an exercise and its return names.

Nothing here holds an answer or runs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from course_utils.checks.kernel.promises import Machine
    from course_utils.checks.kernel.small import Small


@dataclass(frozen=True)
class Rung:
    """One test input of an exercise.

    Attributes:
        name: what it tests, as a person would say it.
        args: the arguments of the call.
        why: what a failure hints at.
        measure: measure(function, *args) returns the numbers to record in place of the function's result: one array,
            or a dict of arrays by part.
        tolerance: (rtol, atol) by part, for random results.
        of: which of the answer's names is tried; the first one by default.
        shape_hint: what to return, for a result of another kind or shape; no help if only numbers are wrong.
    """

    name: str
    args: tuple = ()
    why: str = ""
    measure: Callable | None = None
    tolerance: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    of: str = ""
    shape_hint: str = ""

    @property
    def hint(self) -> str:
        """What a failure hints at, whatever is wrong."""
        return f"{self.shape_hint} {self.why}".strip()


@dataclass(frozen=True)
class Ladder:
    """All rungs of one exercise, with the names that its answer defines and returns.

    Attributes:
        names: what the answer cell must define.
        returns: the parts of one result, in order.
        rungs: makes the rungs from a random generator.
        tensors: whether the answer receives its arrays as tensors.
        convert: turns a part of a result into an array, or raises TypeError.
        by_hand: whether the names are numbers worked by hand; each is then a rung of its own.
        advice: the message for a wrong entry.
        advice_on: the message for a wrong entry of a name that needs one of its own.
        cases: kinds of inputs that a mistake may depend on, each as "with …", "without …" and a test of the rung's
            arguments.
        quantities: returns, for a rung, the named numbers of which a wrong number may be made; by default the
            positive numbers and the axis lengths among its arguments.
        arg_names: names of the rungs' arguments, where they differ from the function's own.
        forbidden: why an answer may not call a function, by a part of the function's name in lower case.
        small: how to draw the smallest input on which an answer is wrong, for each kind of rung that has one.
        duel: whether the answer is a test; each rung is then an implementation that it is tried on.
        decide: for entries that have many right answers. The judge calls it with one array per name; it returns None
            where they are right, else the name of the mistake and a sentence that says what they give.
        machine: for an answer that is an object with state. Each rung makes calls on it, and the verdict counts the
            promises that it keeps.
    """

    names: tuple[str, ...]
    returns: tuple[str, ...] = ()
    rungs: Callable[[np.random.Generator], list[Rung]] | None = None
    tensors: bool = False
    convert: Callable[[Any], Any] | None = None
    by_hand: bool = False
    advice: str = ""
    advice_on: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    cases: tuple[tuple[str, str, Callable[..., bool]], ...] = ()
    quantities: Callable[[Rung], Mapping[str, float]] | None = None
    arg_names: tuple[str, ...] = ()
    small: tuple[Small, ...] = ()
    duel: bool = False
    decide: Callable[..., tuple[str, str] | None] | None = None
    machine: Machine | None = None
