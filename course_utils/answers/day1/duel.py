"""The duel of day 1 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course_utils.answers.shared.duel import exercise, in_halves, lost
from course_utils.answers.shared.weak_tests import first_part_only, numbers, test_of
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, only_if, right
from course_utils.days.shared.attention_duel import PLAIN, in_blocks, made_of, weigh, with_inputs


def one_key_forgotten(q, k, v):
    """The weight of the last key goes to the first."""
    w = PLAIN(q, k, v)[1].copy()
    w[..., 0] += w[..., -1]
    w[..., -1] = 0
    return w @ np.asarray(v, dtype=float), w


UNSEEN: tuple[Implementation, ...] = (
    right("in two halves", in_halves),
    right("keys in blocks of three", in_blocks(3)),
    lost("one query alone", only_if(lambda q, k, v: np.shape(q)[-2] == 1, made_of(weigh=np.ones_like), PLAIN)),
    lost("more queries than keys", only_if(lambda q, k, v: np.shape(q)[-2] > np.shape(k)[-2], with_inputs(
        lambda q, k, v: (q[..., ::-1, :], k, v)), PLAIN)),
    lost("three keys", only_if(lambda q, k, v: np.shape(k)[-2] == 3, one_key_forgotten, PLAIN)),
    lost("odd widths", made_of(divisor=lambda q, k, v: math.sqrt(k.shape[-1] + k.shape[-1] % 2))),
    lost("values of width one", only_if(lambda q, k, v: np.shape(v)[-1] == 1, with_inputs(
        lambda q, k, v: (q, k, np.round(v))), PLAIN)),
    lost("queries of the first text", only_if(lambda q, k, v: np.ndim(q) > 2, with_inputs(
        lambda q, k, v: (np.broadcast_to(q[:1], q.shape), k, v)), PLAIN)),
    lost("scores clipped at 100", made_of(weigh=lambda s: weigh(np.clip(s, -100, 100)))),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""
    some = numbers(1)
    sizes = [
        (3, 4, 3, 2),
        (1, 1, 1, 1),
        (1, 6, 5, 1),
        (5, 3, 2, 4),
        (4, 4, 4, 3),
        (2, 7, 9, 2),
        (6, 2, 3, 3),
        (3, 3, 2, 2),
    ]
    cases: list[tuple[Any, ...]] = [(some(n, d), some(m, d), some(m, e)) for n, m, d, e in sizes]
    cases += [tuple(some(*lead, *shape) for shape in ((2, 3), (4, 3), (4, 2))) for lead in ((2,), (2, 3))]
    q, k, v = some(2, 2), some(4, 2), some(4, 3) + 0.3
    near, far = (
        np.array([[40.0, 40.0], [1.0, 0.0]]),
        np.array([[30.0, 30.0], [30.0, 29.0], [-3.0, 1.0], [-30.0, -29.0]]),
    )
    cases += [(q, k[[0, 0, 1, 2]], v), (near, far, v), (-near, far, v)]
    return exercise(
        arrays.attention,
        cases,
        (
            ("square only", lambda q, k, v: q.shape[-2:] != k.shape[-2:] or k.shape != v.shape,
                "It only tries n = m and d_k = d_v. Make every size different from the others."),
            ("no leading axes", lambda q, k, v: q.ndim > 2, "It never tries a batch. Add one leading axis, then two."),
            ("small scores only", lambda q, k, v: bool(np.abs(q).max() > 30),
                "Its scores are all small. Try some in the hundreds, positive and negative, and rows that are far "
                "apart."),
        ),
        Mistake("output only", test_of(arrays.attention, cases, first_part_only),
            "It compares only the outputs. Compare the weights that come with them too."),
    )  # fmt: skip
