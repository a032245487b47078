"""The duel of day 4 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

import numpy as np

from course_utils.answers.shared.duel import exercise, in_halves, lost
from course_utils.answers.shared.weak_tests import numbers, test_of
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, only_if, right
from course_utils.days.day4 import duel as day4
from course_utils.days.shared.attention_duel import in_blocks, made_of, weigh

UNSEEN: tuple[Implementation, ...] = (
    right("keys in blocks of three", day4.made_in(attend=in_blocks(3))),
    right("in halves", day4.made_in(attend=in_halves)),
    lost("six heads and more", only_if(lambda q, k, v, w_o, h, g: h >= 6, day4.made_in(repeat_k=day4.next_head),
        day4.RIGHT)),
    lost("three key heads", only_if(lambda q, k, v, w_o, h, g: g == 3, day4.made_in(repeat_k=day4.backwards),
        day4.RIGHT)),
    lost("more queries than keys", only_if(lambda q, k, v, w_o, h, g: np.shape(q)[1] > np.shape(k)[1],
        lambda q, k, v, w_o, h, g: day4.RIGHT(q[:, ::-1], k, v, w_o, h, g), day4.RIGHT)),
    lost("the last text", only_if(lambda q, k, v, w_o, h, g: len(q) > 1, lambda q, k, v, w_o, h, g: day4.RIGHT(
        q, k, np.concatenate([v[:-1], v[:1]]), w_o, h, g), day4.RIGHT)),
    lost("scores clipped at 100", day4.made_in(attend=made_of(weigh=lambda s: weigh(np.clip(s, -100, 100))))),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""

    def truth(q, k, v, w_o, n_heads, n_kv_heads):
        width = q.shape[-1] // n_heads
        parts = []
        for head in range(n_heads):
            key_head = head // (n_heads // n_kv_heads)
            own, other = slice(head * width, (head + 1) * width), slice(key_head * width, (key_head + 1) * width)
            parts.append(arrays.attention(q[..., own], k[..., other], v[..., other])[0])
        return np.concatenate(parts, axis=-1) @ w_o

    some = numbers(4)

    def case(B, n, m, h, h_kv, d, D, size=1.0):
        k, v = some(B, m, h_kv * d), some(B, m, h_kv * d) + 0.3
        return size * some(B, n, h * d), k, v, some(h * d, D), h, h_kv

    sizes = [
        (1, 3, 3, 4, 2, 3, 5),
        (2, 3, 5, 6, 2, 3, 4),
        (1, 1, 1, 1, 1, 1, 1),
        (2, 4, 2, 3, 3, 2, 6),
        (2, 2, 3, 4, 1, 2, 8),
    ]
    sizes += [(3, 3, 4, 2, 2, 4, 5), (1, 2, 4, 6, 3, 1, 6), (2, 5, 5, 8, 2, 2, 3), (1, 4, 4, 3, 1, 5, 2)]
    cases = [case(*each) for each in sizes] + [
        case(1, 2, 4, 2, 1, 2, 3, size=1000.0),
        case(1, 3, 2, 2, 2, 3, 3, -1000.0),
    ]
    return exercise(
        truth,
        cases,
        (
            ("one key head for each head", lambda q, k, v, w_o, h, g: h != g,
                "In all its examples h_kv = h. Groups are what is hard: let h be two and three times h_kv."),
            ("one text only", lambda q, k, v, w_o, h, g: len(q) > 1, "It never tries a batch."),
            ("n = m only", lambda q, k, v, w_o, h, g: q.shape[1] != k.shape[1], "In all its examples n = m."),
        ),
        Mistake("groups of two only", test_of(truth, [case for case in cases if case[-2] == 2 * case[-1]]),
            "In all its examples a group has two query heads. Try other numbers of heads, and h_kv = 1 and h_kv = h."),
    )  # fmt: skip
