"""What the duels of several days share, as grading knows them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.answers.shared.weak_tests import test_of, weak_tests
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, wrong
from course_utils.days.shared.attention_duel import swapped

POINTS = 4
LATER = "It is one of those that only grading tries."


def exercise(truth: Callable, cases: list[tuple], kinds: tuple, *more: Mistake) -> Exercise:
    """truth: what is right, on each of the cases. kinds: see `weak_tests`."""
    return Exercise(POINTS, {"tells_right": test_of(truth, cases)}, (*weak_tests(truth, cases, kinds), *more))


def lost(name: str, function: Callable, anew: bool = False) -> Implementation:
    """A wrong implementation of which nothing is told."""
    return wrong(name, function, LATER, LATER, anew=anew)


def in_halves(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two parts of the keys, joined by their sums."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    s = q @ swapped(k) / math.sqrt(k.shape[-1])
    s = s - s.max(-1, keepdims=True)
    half = (k.shape[-2] + 1) // 2
    parts = [np.exp(s[..., at]) for at in (slice(half), slice(half, None))]
    total = sum(e.sum(-1, keepdims=True) for e in parts)
    o = parts[0] @ v[..., :half, :] + parts[1] @ v[..., half:, :]
    return o / total, np.concatenate(parts, -1) / total
