"""The duel of day 3 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

import numpy as np

from course_utils.answers.shared.duel import exercise, lost
from course_utils.answers.shared.weak_tests import numbers, test_of
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, only_if, right
from course_utils.days.day3 import duel as day3
from course_utils.days.shared.attention_duel import PLAIN, in_blocks, made_of, swapped

UNSEEN: tuple[Implementation, ...] = (
    right("keys in blocks of three", in_blocks(3)),
    right("a mask of 0 and −∞, added", lambda q, k, v, mask: made_of(score=lambda q, k: q @ swapped(k) + np.where(
        mask, 0.0, -np.inf))(q, k, v)),
    lost("the second key", day3.with_mask(day3.sees(1))),
    lost("two axes in front", only_if(lambda q, k, v, mask: np.ndim(q) == 4, lambda q, k, v, mask: PLAIN(q, k, v),
        PLAIN)),
    lost("an empty row in a batch", only_if(lambda q, k, v, mask: np.ndim(q) > 2, day3.with_mask(day3.no_row_empty),
        PLAIN)),
    lost("one query", only_if(lambda q, k, v, mask: np.shape(q)[-2] == 1, lambda q, k, v, mask: PLAIN(q, k, v),
        PLAIN)),
    lost("−300 for −∞", day3.filled_with(-300.0)),
    lost("a lone key", day3.with_mask(lambda mask: mask | (mask.sum(-1, keepdims=True) == 1))),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""
    some = numbers(3)
    rng = np.random.default_rng(3)

    def case(n, m, d, e, *lead, mask=None):
        seen = rng.random((*lead, n, m)) < 0.5 if mask is None else mask
        return some(*lead, n, d), some(*lead, m, d), some(*lead, m, e) + 0.3, seen

    blind = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=bool)
    cases = [case(3, 4, 3, 2, mask=np.array([[1, 0, 1, 0], [0, 1, 1, 1], [0, 1, 0, 0]], dtype=bool))]
    cases += [case(*sizes) for sizes in [(4, 4, 2, 3), (5, 6, 3, 2), (2, 7, 2, 1), (6, 3, 4, 2), (1, 5, 3, 3)]]
    cases += [case(4, 4, 3, 2, mask=np.tri(4, dtype=bool)), case(6, 6, 2, 2, mask=~np.tri(6, k=-1, dtype=bool))]
    cases += [case(3, 4, 3, 2, mask=np.array([[1, 0, 1, 1]], dtype=bool)), case(3, 4, 2, 2, mask=blind)]
    cases += [case(3, 4, 2, 2, 3), case(3, 3, 2, 2, 2, 2), case(2, 4, 2, 2, 2, mask=blind[:2])]
    large = (
        100 * np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]),
        300 * np.array([[1.0, 1.0], [0.9, 1.0], [-1.0, 0.5]]),
    )
    cases += [
        (*large, some(3, 2) + 0.3, np.array(mask, dtype=bool))
        for mask in ([[0, 1, 1], [1, 0, 0], [1, 1, 0]], [[0, 0, 1], [1, 1, 0], [0, 1, 1]])
    ]
    truth = arrays.attention
    return exercise(
        truth,
        cases,
        (
            ("no query that sees nothing", lambda q, k, v, mask: not mask.any(-1).all(),
                "Each of its queries sees something. A query that sees nothing has to get zeros."),
            ("causal masks alone", lambda q, k, v, mask: mask.shape != (4, 4) or not np.array_equal(mask, np.tri(4)),
                "It tries only a causal mask. Masks can have holes, and can differ from query to query and from text "
                "to text."),
            ("small scores only", lambda q, k, v, mask: bool(np.abs(q).max() > 30),
                "Its scores are all small. Try thousands: a blocked key may have by far the largest."),
        ),
        Mistake("the weights of a single text", test_of(truth, [case for case in cases if case[0].ndim == 2]),
            "It never tries a batch. Add one leading axis, then two, with a different mask for each text."),
    )  # fmt: skip
