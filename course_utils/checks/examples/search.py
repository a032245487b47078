"""Search with Hypothesis for a small thing on which an answer is wrong: an input, or a sequence of calls."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from course_utils.checks.kernel.small import Choose

Drawn = TypeVar("Drawn")


class OutOfTime(BaseException):
    """Raised when the time is over. It is not an Exception, so that Hypothesis lets it through."""


def import_hypothesis() -> None:
    """Import Hypothesis before the time of a search begins, because the first import takes a while."""
    importlib.import_module("hypothesis")


def draw_and_shrink(draw_one: Callable[[Choose], Drawn], is_wrong: Callable[[Drawn], bool], tries: int) -> None:
    """Draw things until the answer is wrong on one, and shrink that one; `is_wrong` has to keep what it wants of them.

    The same answer gets the same things. An error other than Hypothesis's own comes through.

    Args:
        draw_one: returns a thing made of the numbers that it chooses.
        is_wrong: whether the answer is wrong on it.
        tries: the number of things drawn before the search gives up.
    """
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis.errors import HypothesisException
    from hypothesis.strategies import booleans, composite

    bit = booleans()  # not integers(), which depend on the constants in the learner's modules and store those

    @composite
    def things(draw: Callable) -> Drawn:
        def choose(least: int, most: int) -> int:
            number = 0
            span = most - least + 1
            for _ in range((span - 1).bit_length()):
                number = 2 * number + draw(bit)
            return least + number % span

        return draw_one(choose)

    limits = settings(
        max_examples=tries,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    with suppress(HypothesisException):  # none found, or the answer is wrong only now and then
        find(things(), is_wrong, settings=limits, random=random.Random(0))
