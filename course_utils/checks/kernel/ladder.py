"""The checks of an exercise as a ladder of rungs: what an answer is tried on. It holds no answers and tries none."""

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
    """One step of a ladder of checks: a name that a person would say, the arguments, and what a failure hints at.

    measure(function, *args): numbers to record in place of the function's result, one array or a dict of them by part.
    tolerance: (rtol, atol) by part, for results that are random. of: which of the answer's names is tried, where it
    has several; the first when left out.
    """

    name: str
    args: tuple = ()
    why: str = ""
    measure: Callable | None = None
    tolerance: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    of: str = ""


@dataclass(frozen=True)
class Ladder:
    """The checks of one exercise.

    names: what the answer cell must define. returns: the parts of one result, in order. rungs: makes the rungs from
    a random generator. tensors: the answer is given its arrays as tensors. convert: makes an array of a part that is
    none, or raises TypeError. by_hand: the names are numbers worked out by hand, and each is a rung of its own.
    advice: what to say of an entry that is not right. cases: kinds of inputs that a slip may depend on, each as
    "with …", "without …" and a test of the rung's arguments. quantities: of what a wrong number may be made, by name,
    from a rung; its whole arguments when left out. called: the rungs' arguments, where they are not those of the
    function. forbidden: what an answer may not call, by a part of its name in lower case, or may not do
    (see `recording.DOORS`), and why. small: how the smallest input on which an answer is wrong is drawn, for each kind
    of rung that has one. duel: the answer is a test, and each rung is an implementation that it is tried on.
    decide: where many entries by hand are right, what is wrong with some: called by whoever judges, with an array each
    name, it returns None where they are right, else the name of the mistake and what they give, in a sentence.
    machine: the answer is an object with state, each rung calls on it, and what counts are the promises it keeps.
    """

    names: tuple[str, ...]
    returns: tuple[str, ...] = ()
    rungs: Callable[[np.random.Generator], list[Rung]] | None = None
    tensors: bool = False
    convert: Callable[[Any], Any] | None = None
    by_hand: bool = False
    advice: str = ""
    forbidden: Mapping[str, str] = field(default_factory=dict)
    cases: tuple[tuple[str, str, Callable[..., bool]], ...] = ()
    quantities: Callable[[Rung], Mapping[str, float]] | None = None
    called: tuple[str, ...] = ()
    small: tuple[Small, ...] = ()
    duel: bool = False
    decide: Callable[..., tuple[str, str] | None] | None = None
    machine: Machine | None = None
