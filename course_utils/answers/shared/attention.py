"""Attention in NumPy with one step wrong, and what to say to it: mistakes of days 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Mistake


def flawed(
    *,
    key: Callable | None = None,
    scores: Callable | None = None,
    scale: Callable | None = None,
    softmax: Callable | None = None,
    after: Callable | None = None,
    blend: Callable | None = None,
) -> Callable:
    """Attention in NumPy with one step exchanged for a wrong one; every step not named is right.

    key(q, k, v) -> (q, k, v); scores(q, k); scale(q, k, v) -> divisor; softmax(scaled); after(weights, q);
    blend(weights, v).
    """

    def attention(q, k, v):
        q, k, v = (np.asarray(a, dtype=np.float64) for a in (q, k, v))
        if key:
            q, k, v = key(q, k, v)
        with np.errstate(all="ignore"):
            s = scores(q, k) if scores else q @ np.swapaxes(k, -1, -2)
            s = s / (scale(q, k, v) if scale else math.sqrt(q.shape[-1]))
            weights = softmax(s) if softmax else arrays.softmax(s)
            weights = after(weights, q) if after else weights
            output = blend(weights, v) if blend else weights @ v
        return output, weights

    return attention


def share(s: np.ndarray, axis: int | None = -1, peak: float | np.ndarray = 0.0) -> np.ndarray:
    exps = np.exp(s - peak)
    return exps / exps.sum(axis=axis, keepdims=True)


def without_keepdims(s: np.ndarray) -> np.ndarray:
    exps = np.exp(s - s.max(axis=-1))
    return exps / exps.sum(axis=-1)


def hard_maximum(s: np.ndarray) -> np.ndarray:
    return (s == s.max(axis=-1, keepdims=True)) / 1.0


def never_below_zero(s: np.ndarray) -> np.ndarray:
    return s.max(axis=-1, keepdims=True, initial=0.0)


def best_values(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The right weights, and for an output the value of the best key."""
    _, weights = flawed()(q, k, v)
    return hard_maximum(weights) @ np.asarray(v, dtype=np.float64), weights


def causal(s: np.ndarray) -> np.ndarray:
    return arrays.softmax(np.where(np.tri(*s.shape[-2:]) > 0, s, -np.inf))


OVER_QUERIES = Mistake(
    "softmax over queries",
    flawed(softmax=lambda s: arrays.softmax(s, axis=-2)),
    "These are the weights you get when softmax runs over the queries, down each column (axis −2). Each query shares "
    "its attention among the keys: every row should sum to 1, so softmax along axis −1.",
)
ATTENTION_MISTAKES = (
    OVER_QUERIES,
    Mistake("scaling after softmax", flawed(scale=lambda q, k, v: 1.0, after=lambda w, q: w / math.sqrt(q.shape[-1])),
        "The weights are divided by √d_k after the softmax, so the rows no longer sum to 1. "
        "Divide the scores, before the softmax."),
    Mistake("K not transposed", flawed(scores=lambda q, k: q @ k),
        "These are the weights you get from q @ k without the transpose. With square matrices it raises no error, "
        "but it is not the dot product of rows: use the transpose of k."),
    Mistake("softmax without max-shift", flawed(softmax=share),
        "Right for small scores, but exp overflows on large ones. Subtract the largest score of each row before exp.",
        overflow=True),
    Mistake("one shift for the whole array", flawed(softmax=lambda s: share(s, peak=s.max())),
        "You subtract the largest score of the whole array. A row far below it turns into 0 / 0. Subtract the "
        "maximum of each row: axis=-1, keepdims=True."),
    Mistake("zero among the entries of the shift", flawed(softmax=lambda s: share(s, peak=never_below_zero(s))),
        "The maximum that you subtract is never below 0, as with initial=0, so rows of very negative scores are not "
        "shifted and become 0 / 0. Subtract the largest score of each row, whatever its sign."),
    Mistake("values weighted by columns", flawed(blend=lambda w, v: np.swapaxes(w, -1, -2) @ v),
        "The output blends the values with the columns of the weights. Output i is row "
        "i of the weights times V: weights @ v."),
    Mistake("values weighted by scores",
        lambda q, k, v: (flawed(softmax=lambda s: s)(q, k, v)[0], flawed()(q, k, v)[1]),
        "The weights are right, but the output blends the values with the scores. Blend with the "
        "weights, after the softmax: weights @ v."),
    Mistake("keys blended in place of values", flawed(key=lambda q, k, v: (q, k, k)),
        "The output blends the keys. The weights come from the keys; what is blended is V."),
    Mistake("queries and keys exchanged", flawed(key=lambda q, k, v: (k, q, v)),
        "Rows and columns of the scores are exchanged: rows are queries, columns are keys."),
    Mistake("queries against themselves", flawed(key=lambda q, k, v: (q, q, v)),
        "The scores are dot products of queries with queries. The second factor is the key."),
    Mistake("keys against themselves", flawed(key=lambda q, k, v: (k, k, v)),
        "The scores are dot products of keys with keys. The first factor is the query."),
    Mistake("no softmax", flawed(softmax=lambda s: s),
        "These weights are the scaled scores themselves. Put each row through the softmax."),
    Mistake("exponentials not normalised", flawed(softmax=lambda s: np.exp(s - s.max(axis=-1, keepdims=True))),
        "The exponentials are not divided by their sum: rows of weights sum to 1."),
    Mistake("hard maximum", flawed(softmax=hard_maximum),
        "Each query takes only the best key. Attention blends all values, with the softmax weights."),
    Mistake("the best key's value", best_values,
        "The weights are right, but the output is the value of the best key alone. Blend all values: weights @ v."),
    Mistake("logarithms of the weights", flawed(softmax=lambda s: s - arrays.logsumexp(s)[..., None]),
        "These weights are negative, the logarithms of the right ones: log_softmax, or a "
        "logarithm too many. Rows of weights sum to 1."),
    Mistake("softmax twice", flawed(softmax=lambda s: arrays.softmax(arrays.softmax(s))),
        "The weights have been through the softmax twice."),
    Mistake("one sigmoid each", flawed(softmax=lambda s: 1 / (1 + np.exp(-s))),
        "Each score goes through a sigmoid on its own. In a softmax the keys of a row share one sum."),
    Mistake("normalised over everything",
        flawed(softmax=lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum(axis=(-2, -1), keepdims=True)),
        "All weights of the matrix together sum to 1. Each row should: the sum runs along axis −1."),
    Mistake("causal mask", flawed(softmax=causal),
        "Later keys get no weight: that is a causal mask, which comes on day 3. Here every query sees every key."),
    Mistake("scores in place of weights",
        lambda q, k, v: (flawed()(q, k, v)[0], flawed(softmax=lambda s: s)(q, k, v)[1]),
        "The output is right, but what you return with it are the scaled scores. Return the weights, after the "
        "softmax."),
)  # fmt: skip


def over_axis(axis: int) -> Callable:
    """Softmax over an axis counted from the front, which is the keys only for one number of leading dimensions."""
    return lambda s: arrays.softmax(s, axis=min(axis, s.ndim - 1))


def all_axes_reversed(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.T


def by_einsum(weights: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The blend, which stretches an axis of one key where @ raises."""
    return np.einsum("...nm,...mv->...nv", weights, v)


LOST_AXIS = (
    "Without keepdims=True the maximum and the sum lose their axis. They are then applied to columns instead of "
    "rows, or do not fit at all. Write max(axis=-1, keepdims=True), and the same for sum."
)
BUG_MISTAKES = (
    *ATTENTION_MISTAKES,
    Mistake("keepdims left out", flawed(softmax=without_keepdims), LOST_AXIS),
    Mistake("keepdims left out, blended by einsum", flawed(softmax=without_keepdims, blend=by_einsum), LOST_AXIS),
    Mistake("all axes of k reversed", flawed(scores=all_axes_reversed),
        "Right for one matrix, but with leading dimensions k.T reverses all axes. Exchange the "
        "last two only: np.swapaxes(k, -1, -2)."),
    Mistake("softmax over axis 0", flawed(softmax=over_axis(0)),
        "The softmax runs over axis 0, which is the queries or, with a batch, the batch. The keys are axis −1."),
    Mistake("softmax over axis 1", flawed(softmax=over_axis(1)),
        "The softmax runs over axis 1. That axis holds the keys only if there is no batch; axis −1 always does."),
    Mistake("softmax over axis 2", flawed(softmax=over_axis(2)),
        "The softmax runs over axis 2. That axis holds the keys only if there is exactly one batch dimension; axis "
        "−1 always does."),
    Mistake("scaling by the root of the first size", flawed(scale=lambda q, k, v: math.sqrt(q.shape[0])),
        "The scale is the root of q.shape[0]. d_k is the last size: q.shape[-1]."),
    Mistake("scaling by the root of the second size", flawed(scale=lambda q, k, v: math.sqrt(q.shape[1])),
        "The scale is the root of q.shape[1]. That is d_k only without a batch; q.shape[-1] always is."),
)  # fmt: skip
