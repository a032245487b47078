"""The implementations of a duel, right and wrong ones, which a learner's test must tell apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_utils.checks.kernel.remote import Calls, LocalCaller

ONE_EXAMPLE = "one example"  # the weak test that shows which implementations are wrong nearly everywhere


@dataclass(frozen=True)
class Implementation:
    """An implementation that a test has to judge.

    Attributes:
        name: unique within its day.
        function: what a test may call.
        explanation: how a right implementation is written, or what is wrong with a wrong one.
        hint: what to try when a wrong implementation got away.
        gross: whether it is wrong on nearly every input.
    """

    name: str
    function: Callable
    right: bool
    explanation: str
    hint: str = ""
    gross: bool = False
    anew: bool = False  # `function` is a factory, called once per trial, because the bug is shared state

    def caller(self, calls: Calls, grain: float = 0.0) -> LocalCaller:
        """Return a new caller of the implementation, which shares nothing with earlier ones.

        Args:
            calls: the calls that a test may make, with their parameters.
            grain: see `LocalCaller`.
        """
        return LocalCaller(self.function() if self.anew else self.function, calls, grain)


def right(name: str, function: Callable, explanation: str = "") -> Implementation:
    """Return a right implementation."""
    return Implementation(name, function, True, explanation or f"It is right: {name}.")


def wrong(
    name: str, function: Callable, explanation: str, hint: str, gross: bool = False, anew: bool = False
) -> Implementation:
    """Return a wrong implementation."""
    return Implementation(name, function, False, explanation, hint, gross, anew)


def only_if(condition: Callable[..., bool], wrong: Callable, honest: Callable) -> Callable:
    """Return a function that is wrong, like `wrong`, only on inputs that meet the condition."""
    return lambda *args, **kwargs: (wrong if condition(*args, **kwargs) else honest)(*args, **kwargs)
