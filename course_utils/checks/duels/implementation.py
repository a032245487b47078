"""One implementation of a duel, and how they are told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ..evidence import Rung, verdict_of
from ..remote import Calls, Local, Tried


@dataclass(frozen=True)
class Implementation:
    """name: unique in its day. function: what a test may call. said: how a right one is written, or what is wrong with
    a wrong one. hint: what to try, for one that got away. gross: whether it is wrong on nearly every input.
    """

    name: str
    function: Callable
    right: bool
    said: str
    hint: str = ""
    gross: bool = False
    anew: bool = False  # the function makes what is called: its slip is what several calls share

    def line(self, day: int) -> Local:
        """A line to it that knows of no earlier one."""
        return Local(self.function() if self.anew else self.function, calls_of(day))


def right(name: str, function: Callable, said: str = "") -> Implementation:
    """A right implementation."""
    return Implementation(name, function, True, said or f"It is right: {name}.")


def wrong(
    name: str, function: Callable, said: str, hint: str, gross: bool = False, anew: bool = False
) -> Implementation:
    """A wrong one."""
    return Implementation(name, function, False, said, hint, gross, anew)


def only_if(condition: Callable[..., bool], slip: Callable, honest: Callable) -> Callable:
    """A function that makes its slip on some inputs only."""
    return lambda *args, **kwargs: (slip if condition(*args, **kwargs) else honest)(*args, **kwargs)


@cache
def shown(day: int) -> tuple[Implementation, ...]:
    """The implementations of a day that a learner meets in the notebook."""
    return import_module(f"course_utils.checks.duels.day{day}").IMPLEMENTATIONS


@cache
def unseen(day: int) -> tuple[Implementation, ...]:
    """Those that grading adds; none in a student's edition."""
    if find_spec("course_utils.checks.answers") is None:
        return ()
    return import_module("course_utils.checks.answers.unseen").UNSEEN[day]


def calls_of(day: int) -> Calls:
    """What a test of this day may call, with its parameters."""
    return import_module(f"course_utils.checks.duels.day{day}").CALLS


def implementations(day: int, hidden: bool = False) -> tuple[Implementation, ...]:
    """Those that a test is tried on: hidden ones as well, or those alone that a learner meets."""
    return (*shown(day), *unseen(day)) if hidden else shown(day)


def duel_rungs(day: int, hidden: bool = False) -> list[Rung]:
    """A rung for each implementation; none keeps anything of an earlier try."""
    return [Rung(each.name, (Tried(each.line(day)),), each.said, verdict_of) for each in implementations(day, hidden)]
