"""The duel of day 8 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from course_utils.answers.shared.duel import POINTS, lost
from course_utils.answers.shared.weak_tests import ALWAYS_NO, ALWAYS_YES, numbers
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import ONE_EXAMPLE, Implementation, only_if, right
from course_utils.days.day8 import duel as day8

UNSEEN: tuple[Implementation, ...] = (
    right("a bias by the logarithm of the distance", day8.biased(lambda i, j: -float(np.log1p(abs(i - j))))),
    right("a window", day8.biased(lambda i, j: 0.0 if 0 <= i - j < 24 else -50.0)),
    lost("an odd query", day8.made_of(place_q=lambda i, j: i + (i % 2 == 1) * 0.25)),
    lost("vectors of four numbers", only_if(lambda q, k, i, j: len(q) == 4, day8.made_of(turn_k=day8.still),
        day8.ROPE)),
    lost("keys beyond 200", only_if(lambda q, k, i, j: j > 200, day8.made_of(place_k=lambda i, j: j - 1), day8.ROPE)),
    lost("the first query", only_if(lambda q, k, i, j: i == 0, day8.made_of(turn_k=day8.halves,
        bias=lambda i, j: 0.5), day8.ROPE)),
    lost("keys at their place in a block of 32", day8.made_of(place_k=lambda i, j: j % 32)),
    lost("a key far before the query", only_if(lambda q, k, i, j: i - j > 40, day8.biased(lambda i, j: i / 50),
        day8.ROPE)),
)  # fmt: skip


def moved(cases: Sequence[tuple], atol: float = 1e-3) -> Callable[[Callable], bool]:
    """Return a test: f(q, k, i, j) is the same for all places in a case, (q, k, [(i, j), (i, j), …])."""

    def tells_right(f: Callable) -> bool:
        for q, k, places in cases:
            scores = [float(f(q, k, i, j)) for i, j in places]
            if max(scores) - min(scores) > atol * max(1.0, max(map(abs, scores))):
                return False
        return True

    return tells_right


def cases_of(sizes: Sequence[int], pairs: Sequence[tuple[int, int]], shifts: Sequence[int]) -> list[tuple]:
    some = numbers(8)
    return [
        (some(d) + 0.3, some(d) - 0.2, [(i + shift, j + shift) for shift in shifts])
        for d in sizes
        for i, j in pairs
    ]  # fmt: skip


SIZES = (2, 4, 8, 16)
PAIRS = ((5, 0), (0, 0), (3, 2), (0, 4), (2, 9), (60, 3), (17, 0))
SHIFTS = (0, 1, 2, 3, 7, 30, 100, 251, 400, 517, 900)


def compares_with_rope(f: Callable) -> bool:
    return all(
        np.allclose(f(q, k, i, j), day8.ROPE(q, k, i, j), atol=1e-3)
        for q, k, places in cases_of(SIZES, PAIRS, SHIFTS)
        for i, j in places
    )


def duel() -> Exercise:
    """The exercise in which the answer is a test."""

    def weak(name, message, sizes=SIZES, pairs=PAIRS, shifts=SHIFTS, atol=1e-3):
        return Mistake(name, moved(cases_of(sizes, pairs, shifts), atol), message)

    return Exercise(
        POINTS,
        {"tells_right": moved(cases_of(SIZES, PAIRS, SHIFTS))},
        (
            ALWAYS_YES,
            ALWAYS_NO,
            Mistake("RoPE alone is right", compares_with_rope,
                "It compares with RoPE's own score. Others are right as well, such as ALiBi: ask only whether the "
                "score stays the same when both tokens move."),
            weak("no room for float32",
                "An implementation in float32 fails: the tolerance is too small for its rounding. That one is right "
                "too: 1e-3 tells rounding from bugs.", atol=1e-9),
            weak(ONE_EXAMPLE, "It looks at one example. Most bugs show on some inputs only: other sizes, other "
                "places.", sizes=(4,), pairs=((5, 2),), shifts=(0, 1)),
            weak("near the beginning only", "All its positions are small. Move both by some hundred places, too.",
                shifts=(0, 1, 2, 3, 7)),
            weak("two numbers only", "All its vectors have two numbers, which is one pair. Let there be several pairs.",
                sizes=(2,)),
            weak("never a later key", "Its keys never come after their query. Let j be larger than i, too.",
                pairs=tuple(pair for pair in PAIRS if pair[0] >= pair[1])),
            weak("the same place only", "In all its examples i and j are equal, so the difference is always 0.",
                pairs=((0, 0), (3, 3))),
        ),
    )  # fmt: skip
