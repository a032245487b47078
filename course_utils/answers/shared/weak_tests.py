"""Tests of implementations, as the duels ask for them: thorough ones, and those that people write first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_utils.checks.judge.exercise import Mistake
from course_utils.checks.judge.implementation import ONE_EXAMPLE

Compare = Callable[[Any, Any], bool]


def near(atol: float = 1e-3) -> Compare:
    """Whether results have the same shapes and, within `atol`, the same numbers; also in tuples."""

    def same(got: Any, wanted: Any) -> bool:
        if isinstance(wanted, tuple):
            return isinstance(got, tuple) and len(got) == len(wanted) and all(map(same, got, wanted))
        return np.shape(got) == np.shape(wanted) and bool(np.allclose(got, wanted, rtol=atol, atol=atol))

    return same


def first_part_only(got: Any, wanted: Any) -> bool:
    return near()(got[0], wanted[0])


def test_of(truth: Callable, cases: Sequence[tuple], same: Compare | None = None) -> Callable[[Callable], bool]:
    """A test that compares an implementation with another one, on these arguments."""
    same = same or near()
    return lambda f: all(same(f(*args), truth(*args)) for args in cases)


ALWAYS_YES = Mistake(
    "everything passes",
    lambda f: True,
    "It says right to everything. What it returns has to follow from the numbers that f gives: compare them with what "
    "is right, each of them, not their shapes alone.",
)
ALWAYS_NO = Mistake(
    "nothing passes",
    lambda f: False,
    "It says wrong to everything, to right implementations too. Try it on the lesson's own one, and look which demand "
    "fails there: right ones round differently, and choose differently where they may.",
)


def weak_tests(
    truth: Callable, cases: Sequence[tuple], kinds: Sequence[tuple[str, Callable[..., bool], str]]
) -> tuple[Mistake, ...]:
    """What people write first. kinds: a test that leaves out the cases for which this holds, and what to say to it."""
    return (
        ALWAYS_YES,
        ALWAYS_NO,
        Mistake("no room for float32", test_of(truth, cases, near(1e-9)),
            "An implementation in float32 fails: the tolerance is too small for its rounding, or the test asks for "
            "float64. That one is right too: 1e-3 tells rounding from bugs."),
        Mistake(ONE_EXAMPLE, test_of(truth, cases[:1]),
            "It looks at one example. Most bugs show on some inputs only: other sizes, other numbers."),
        *(
            Mistake(name, test_of(truth, [case for case in cases if not left_out(*case)]), message)
            for name, left_out, message in kinds
        ),
    )  # fmt: skip


def numbers(seed: int) -> Callable[..., np.ndarray]:
    """Draws arrays of halves between −2 and 2 in these shapes, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.integers(-4, 5, shape) / 2
