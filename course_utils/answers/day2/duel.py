"""The duel of day 2 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

import numpy as np

from course_utils.answers.shared.duel import exercise, lost
from course_utils.answers.shared.weak_tests import first_part_only, numbers, test_of
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, only_if, right
from course_utils.days.day2 import duel as day2

UNSEEN: tuple[Implementation, ...] = (
    right("by shares of pairs",
        day2.made_of(lambda x: 1 / np.exp(np.minimum(x[..., None, :] - x[..., :, None], 700.0)
        ).sum(-1) if np.isfinite(x).all() else day2.shares(x))),
    right("the gradient in float32",
        day2.made_of(backward=lambda p, dp: day2.back(np.asarray(p, np.float32), np.asarray(dp, np.float32)))),
    lost("three entries", day2.made_of(backward=only_if(lambda p, dp: p.shape[-1] == 3, lambda p, dp: p * dp,
        day2.back))),
    lost("the last row", day2.made_of(backward=only_if(lambda p, dp: p.ndim > 1, lambda p, dp: np.concatenate(
        [day2.back(p[:-1], dp[:-1]), p[-1:] * dp[-1:]]), day2.back))),
    lost("entries clipped at 500", day2.made_of(lambda x: day2.shares(np.clip(x, -500, 500)))),
    lost("three axes", day2.made_of(only_if(lambda x: x.ndim == 3, lambda x: day2.shares(x[:, ::-1]),
        day2.shares))),
    lost("a small dp", day2.made_of(backward=lambda p, dp: day2.back(p, np.clip(dp, -1, 1)))),
    lost("the peak's own gradient", day2.made_of(backward=lambda p, dp: day2.back(p, dp) + (
        p == p.max(-1, keepdims=True)) * dp * 0.05)),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""

    def truth(x, dp):
        p = arrays.softmax(x)
        return p, p * dp - p * (p * dp).sum(-1, keepdims=True)

    some = numbers(2)
    shapes = [(3, 4), (1,), (2,), (3,), (5, 2), (3, 3), (4, 1), (2, 6), (2, 3, 5), (2, 2, 3), (7,)]
    cases = [(some(*shape), some(*shape) + 0.3) for shape in shapes]
    steep = np.array([[0.0, 3.5, -1.0, 0.5], [1.0, 1.0, 0.0, -2.0]])
    cases += [(steep, 4 * some(2, 4) + 0.3)]
    large = np.array([[3000.0, 3001.0, -3000.0], [-3000.0, -3002.0, -3001.0], [0.0, -2900.0, 2.0]])
    cases += [(large, some(3, 3) + 0.2), (large[:, ::-1], some(3, 3) + 0.2)]
    cases += [(np.array([[0.5, -np.inf, 1.0], [0.0, 2.0, -np.inf]]), some(2, 3) + 0.2)]
    cases += [
        (np.array([[2.0, 2.0, 0.0]]), np.array([[1.0, -2.0, 0.5]])),
        (np.array([[60.0, 10.0, 59.0]]), some(1, 3) + 0.1),
    ]
    return exercise(
        truth,
        cases,
        (
            ("one row only", lambda x, dp: x.ndim > 1, "It never tries several rows at once."),
            ("small entries only", lambda x, dp: bool(np.abs(x).max() > 30),
                "Its entries are all small. Try thousands, of both signs, and −∞."),
        ),
        Mistake("the weights alone", test_of(truth, cases, first_part_only),
            "It looks at p alone. The gradient dx is the second result: compare it with what you work out."),
    )  # fmt: skip
