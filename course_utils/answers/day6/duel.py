"""The duel of day 6 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

import numpy as np

from course_utils.answers.shared.duel import exercise, lost
from course_utils.answers.shared.weak_tests import first_part_only, numbers, test_of
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, only_if, right
from course_utils.days.day6 import duel as day6

UNSEEN: tuple[Implementation, ...] = (
    right("blocks of keys twice as large", lambda q, k, v, bq, bk, c: day6.TILES(q, k, v, bq, 2 * bk, c)),
    right("parts merged, all queries at once", lambda q, k, v, bq, bk, c: day6.merged(q, k, v, len(q), bk, c)),
    lost("three blocks of keys", only_if(lambda q, k, v, bq, bk, c: -(-len(k) // bk) == 3,
        day6.reversed_keys_of_last, day6.TILES)),
    lost("causal where n = m", only_if(lambda q, k, v, bq, bk, c: c and len(q) == len(k) > 1,
        lambda q, k, v, bq, bk, c: day6.TILES(q, k, v, bq, bk, False), day6.TILES)),
    lost("more queries than keys", only_if(lambda q, k, v, bq, bk, c: len(q) > len(k),
        lambda q, k, v, bq, bk, c: day6.TILES(q[::-1], k, v, bq, bk, c), day6.TILES)),
    lost("a maximum that begins at −100", day6.made_of(start=-100.0)),
    lost("no maximum", day6.made_of(start=0.0, peak=lambda old, tile: np.zeros_like(tile))),
    lost("blocks of one query", only_if(lambda q, k, v, bq, bk, c: bq == 1 and len(q) > 1,
        day6.reversed_keys_of_last, day6.TILES)),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""

    def truth(q, k, v, block_q, block_k, causal):
        mask = np.tri(len(q), len(k), k=len(k) - len(q), dtype=bool) if causal else None
        output = arrays.attention(q, k, v, mask)[0]
        s = q @ k.T / np.sqrt(q.shape[-1])
        return output, arrays.logsumexp(s if mask is None else np.where(mask, s, -np.inf))

    some = numbers(6)

    def case(n, m, d, e, block_q, block_k, causal, shift=0.0):
        return 2 * some(n, d) + 0.1, some(m, d) + shift, some(m, e) + 0.3, block_q, block_k, causal

    sizes = [
        (5, 7, 3, 2, 2, 3),
        (1, 1, 1, 1, 1, 1),
        (4, 4, 2, 3, 2, 2),
        (3, 8, 9, 2, 2, 3),
        (7, 5, 5, 1, 3, 2),
        (6, 6, 4, 4, 4, 2),
    ]
    sizes += [(2, 3, 2, 2, 8, 8), (3, 5, 2, 2, 1, 1), (3, 12, 3, 2, 3, 2), (9, 9, 2, 2, 2, 4)]
    cases = [case(*size, False) for size in sizes] + [case(*size, True) for size in sizes if size[0] <= size[1]]
    low = np.full((3, 2), 40.0), np.array([[-40.0, -40.0], [-40.1, -40.0], [-40.05, -40.0], [-40.2, -40.1]])
    cases += [(*low, some(4, 2) + 0.3, 2, 2, causal) for causal in (False, True)]
    steps = np.array([[0.0], [-3.0], [1.0], [6.0], [2.0]])
    cases += [(np.ones((2, 1)), keys, some(5, 2) + 0.3, 2, 2, False) for keys in (steps, steps[::-1].copy())]
    return exercise(
        truth,
        cases,
        (
            ("never causal", lambda q, k, v, bq, bk, causal: causal, "It never sets causal."),
            ("blocks that divide", lambda q, k, v, bq, bk, causal: len(q) % bq or len(k) % bk,
                "All its blocks divide n and m. Choose some that do not, of one, and larger than the text."),
            ("one tile", lambda q, k, v, bq, bk, causal: len(q) > bq or len(k) > bk,
                "In all its examples one tile holds everything. Let there be several, in both directions."),
        ),
        Mistake("output only", test_of(truth, cases, first_part_only),
            "It compares outputs only. Compare the log-sum-exps that come with them too."),
    )  # fmt: skip
