"""Attention in NumPy, split into steps, so that an implementation only defines the step that it does differently."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Weigh = Callable[[np.ndarray], np.ndarray]


def swapped(x: np.ndarray) -> np.ndarray:
    """Return the array with its last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def weigh(s: np.ndarray) -> np.ndarray:
    """Return the softmax of each row; safe for large scores, and zeros for a row that is all −∞."""
    top = np.max(s, axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0.0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


def made_of(
    score: Callable = lambda q, k: q @ swapped(k),
    divisor: Callable = lambda q, k, v: math.sqrt(k.shape[-1]),
    weigh: Weigh = weigh,
    blend: Callable = lambda w, v: w @ v,
    result_of: Callable = lambda o, w: (o, w),
) -> Callable:
    """Return attention made of these steps: f(q, k, v, mask=None) -> (output, weights), mask True where allowed."""

    def f(q, k, v, mask=None):
        q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
        s = score(q, k) / divisor(q, k, v)
        if mask is not None:
            s = np.where(mask, s, -np.inf)
        w = weigh(s)
        return result_of(blend(w, v), w)

    return f


PLAIN = made_of()


def with_inputs(change: Callable, of: Callable = PLAIN) -> Callable:
    """Return the attention `of` applied to change(q, k, v) -> (q, k, v)."""

    def f(q, k, v, mask=None):
        q, k, v = change(*(np.asarray(x, dtype=float) for x in (q, k, v)))
        return of(q, k, v) if mask is None else of(q, k, v, mask)

    return f


def one_query_at_a_time(q, k, v, mask=None):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    rows = range(q.shape[-2])
    masks = [None] * len(rows) if mask is None else np.moveaxis(np.broadcast_to(mask, score_shape(q, k)), -2, 0)
    parts = [
        PLAIN(q[..., i : i + 1, :], k, v, m if m is None else m[..., None, :]) for i, m in zip(rows, masks, strict=True)
    ]
    return tuple(np.concatenate([part[each] for part in parts], axis=-2) for each in range(2))


def score_shape(q: np.ndarray, k: np.ndarray) -> tuple[int, ...]:
    """Return the shape of the scores of q and k."""
    return (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])


def in_blocks(size: int, later: Callable = lambda old, new: np.exp(old - new)) -> Callable:
    """Return attention that takes `size` keys at a time, with a running maximum and sum.

    Args:
        later: later(old, new) is the factor that rescales earlier sums when the maximum changes.
    """

    def f(q, k, v, mask=None):
        q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
        s = q @ swapped(k) / math.sqrt(k.shape[-1])
        if mask is not None:
            s = np.where(mask, s, -np.inf)
        top = np.full((*s.shape[:-1], 1), -np.inf)
        total = np.zeros_like(top)
        o = np.zeros((*s.shape[:-1], v.shape[-1]))
        for j in range(0, s.shape[-1], size):
            part = s[..., j : j + size]
            new = np.maximum(top, part.max(axis=-1, keepdims=True))
            safe = np.where(np.isinf(new), 0.0, new)
            e = np.exp(part - safe)
            factor = np.where(np.isinf(top), 0.0, later(np.where(np.isinf(top), safe, top), safe))
            total = total * factor + e.sum(axis=-1, keepdims=True)
            o = o * factor + e @ v[..., j : j + size, :]
            top = new
        total = np.where(total == 0, 1.0, total)
        return o / total, np.exp(s - np.where(np.isinf(top), 0.0, top)) / total

    return f


def in_lists(q, k, v, mask=None):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    sees = None if mask is None else np.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
    q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v))
    o = np.zeros((*lead, q.shape[-2], v.shape[-1]))
    w = np.zeros((*lead, q.shape[-2], k.shape[-2]))
    for at in np.ndindex(*lead, q.shape[-2]):
        keys, values = k[at[:-1]].tolist(), v[at[:-1]].tolist()
        allowed = [j for j in range(len(keys)) if sees is None or sees[at][j]]
        if not allowed:
            continue
        row = {
            j: sum(a * b for a, b in zip(q[at].tolist(), keys[j], strict=True)) / len(keys[j]) ** 0.5 for j in allowed
        }
        peak = max(row.values())
        power = {j: math.exp(x - peak) for j, x in row.items()}
        for j in allowed:
            w[at][j] = power[j] / math.fsum(power.values())
        o[at] = [math.fsum(w[at][j] * values[j][c] for j in allowed) for c in range(v.shape[-1])]
    return o, w


def in_single_precision(q, k, v, mask=None):
    q, k, v = (np.asarray(x, dtype=np.float32) for x in (q, k, v))
    s = q @ swapped(k) / np.float32(math.sqrt(k.shape[-1]))
    w = weigh(s if mask is None else np.where(mask, s, np.float32(-np.inf)))
    return w @ v, w


def keys_backwards(q, k, v, mask=None):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    turned = None if mask is None else np.broadcast_to(mask, score_shape(q, k))[..., ::-1]
    o, w = PLAIN(q, k[..., ::-1, :], v[..., ::-1, :], turned)
    return o, w[..., ::-1]


def divided_last(q, k, v, mask=None):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    s = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(k.shape[-1])
    s = s if mask is None else np.where(mask, s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0.0, top))
    total = e.sum(axis=-1, keepdims=True)
    total[total == 0] = 1.0
    return np.einsum("...ij,...jv->...iv", e, v) / total, e / total


def by_powers_of_two(s: np.ndarray) -> np.ndarray:
    s = s * math.log2(math.e)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp2(s - np.where(np.isinf(top), 0.0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


def by_log_sum_exp(s: np.ndarray) -> np.ndarray:
    top = s.max(axis=-1, keepdims=True)
    top = np.where(np.isinf(top), 0.0, top)
    log_total = top + np.log(np.exp(s - top).sum(axis=-1, keepdims=True))
    return np.where(np.isinf(log_total), 0.0, np.exp(s - np.where(np.isinf(log_total), 0.0, log_total)))


def by_differences(s: np.ndarray) -> np.ndarray:
    """Return 1 / Σ_l e^(s_l − s_j) for each key j, which needs no maximum."""
    w = np.zeros(s.shape)
    for j in range(s.shape[-1]):
        apart = s - s[..., j : j + 1]
        apart = np.where(np.isnan(apart), -np.inf, np.minimum(apart, 700.0))
        w[..., j] = 1 / np.maximum(np.exp(apart).sum(axis=-1), 1e-300)
    return np.where(np.isinf(s), 0.0, w)


def without_peak(s: np.ndarray) -> np.ndarray:
    e = np.exp(s)
    return e / e.sum(axis=-1, keepdims=True)


def over(axis: int | tuple[int, ...]) -> Weigh:
    """Return a softmax over `axis`, for axes other than the last."""

    def f(s: np.ndarray) -> np.ndarray:
        e = np.exp(s - s.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    return f


def hard(s: np.ndarray) -> np.ndarray:
    """Put all weight of a row on the first of its largest scores."""
    return (np.arange(s.shape[-1]) == s.argmax(axis=-1)[..., None]).astype(float)
