"""One implementation of a duel, and how they are told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_utils.checks.kernel.remote import Calls, Local

ONE_EXAMPLE = "one example"  # the weak test that says which implementations are wrong nearly everywhere


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

    def line(self, calls: Calls) -> Local:
        """A line to it that knows of no earlier one. calls: what a test may call, with its parameters."""
        return Local(self.function() if self.anew else self.function, calls)


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
