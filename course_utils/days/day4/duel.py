"""Day 4: implementations of multi-head attention with grouped queries, f(q, k, v, w_o, n_heads, n_kv_heads) -> output.

q (B, n, h·d), k and v (B, m, h_kv·d), w_o (h·d, D) -> (B, n, D).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.checks.judge.implementation import only_if, right, wrong
from course_utils.days.shared.attention_duel import (
    PLAIN,
    by_log_sum_exp,
    by_powers_of_two,
    in_blocks,
    in_lists,
    made_of,
    one_query_at_a_time,
    over,
    swapped,
    without_peak,
)


def split(x: np.ndarray, heads: int) -> np.ndarray:
    """(B, T, h·d) -> (B, h, T, d)"""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def merge(x: np.ndarray) -> np.ndarray:
    """(B, h, T, d) -> (B, T, h·d)"""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def straight(x: np.ndarray, heads: int) -> np.ndarray:
    """The right shape by the wrong way: tokens are cut into heads of other tokens."""
    return x.reshape(x.shape[0], heads, x.shape[1], -1)


def repeat(x: np.ndarray, h: int) -> np.ndarray:
    """Each head of keys for a group of neighbouring query heads."""
    return np.repeat(x, h // x.shape[1], axis=1)


def made_in(
    split_q: Callable = split,
    split_kv: Callable = split,
    repeat_k: Callable = repeat,
    repeat_v: Callable | None = None,
    attend: Callable = PLAIN,
    merge: Callable = merge,
    mix: Callable = lambda x, w_o: x @ w_o,
) -> Callable:
    """Multi-head attention made of these steps."""

    def f(q, k, v, w_o, n_heads, n_kv_heads):
        q, k, v, w_o = (np.asarray(x, dtype=float) for x in (q, k, v, w_o))
        heads = split_q(q, n_heads)
        keys = repeat_k(split_kv(k, n_kv_heads), n_heads)
        values = (repeat_v or repeat_k)(split_kv(v, n_kv_heads), n_heads)
        return mix(merge(attend(heads, keys, values)[0]), w_o)

    return f


RIGHT = made_in()


def by_groups(q, k, v, w_o, n_heads, n_kv_heads):
    """An axis of groups, and no copies of keys."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    B, n, _ = q.shape
    heads = q.reshape(B, n, n_kv_heads, n_heads // n_kv_heads, -1)
    k, v = (x.reshape(B, x.shape[1], n_kv_heads, -1) for x in (k, v))
    s = np.einsum("bngrd,bmgd->bgrnm", heads, k) / math.sqrt(heads.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    o = np.einsum("bgrnm,bmgd->bngrd", e / e.sum(-1, keepdims=True), v)
    return o.reshape(B, n, -1) @ np.asarray(w_o, dtype=float)


def head_by_head(q, k, v, w_o, n_heads, n_kv_heads):
    """Each head adds its part of the output."""
    q, k, v, w_o = (np.asarray(x, dtype=float) for x in (q, k, v, w_o))
    size = q.shape[-1] // n_heads
    output = 0.0
    for head in range(n_heads):
        own = slice(head * size, (head + 1) * size)
        shared = head * n_kv_heads // n_heads
        other = slice(shared * size, (shared + 1) * size)
        output = output + PLAIN(q[..., own], k[..., other], v[..., other])[0] @ w_o[own]
    return output


def text_by_text(q, k, v, w_o, n_heads, n_kv_heads):
    return np.concatenate([head_by_head(q[b : b + 1], k[b : b + 1], v[b : b + 1], w_o, n_heads, n_kv_heads)
        for b in range(len(q))])  # fmt: skip


def packed_queries(q, k, v, w_o, n_heads, n_kv_heads):
    """The queries of a group as rows of one matrix."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    B, n, width = q.shape
    group = n_heads // n_kv_heads
    size = width // n_heads
    rows = q.reshape(B, n, n_kv_heads, group, size).transpose(0, 2, 3, 1, 4).reshape(B, n_kv_heads, group * n, size)
    o = PLAIN(rows, split(k, n_kv_heads), split(v, n_kv_heads))[0]
    o = o.reshape(B, n_kv_heads, group, n, size).transpose(0, 3, 1, 2, 4).reshape(B, n, width)
    return o @ np.asarray(w_o, dtype=float)


def in_single_precision(q, k, v, w_o, n_heads, n_kv_heads):
    q, k, v, w_o = (np.asarray(x, dtype=np.float32) for x in (q, k, v, w_o))
    heads = split(q, n_heads)
    keys = repeat(split(k, n_kv_heads), n_heads)
    values = repeat(split(v, n_kv_heads), n_heads)
    s = heads @ swapped(keys) / np.float32(math.sqrt(heads.shape[-1]))
    e = np.exp(s - s.max(-1, keepdims=True))
    return merge(e / e.sum(-1, keepdims=True) @ values) @ w_o


def tiled(x, h):
    """Heads of keys in turns: 0 1 0 1 for four query heads, not 0 0 1 1."""
    return np.concatenate([x] * (h // x.shape[1]), axis=1)


def only_first(x, h):
    return np.repeat(x[:, :1], h, axis=1)


def mean_of_heads(x, h):
    return np.repeat(x.mean(axis=1, keepdims=True), h, axis=1)


def backwards(x, h):
    return repeat(x[:, ::-1], h)


def next_head(x, h):
    return np.roll(repeat(x, h), -1, axis=1)


def grouped_by_two(x, h):
    """A group has two query heads, whatever their numbers."""
    return x[:, [min(i // 2, x.shape[1] - 1) for i in range(h)]]


def heads_turned(x):
    return merge(x[:, ::-1])


def merged_straight(x):
    return x.reshape(x.shape[0], x.shape[2], -1)


def without_last_head(x):
    x = x.copy()
    x[:, -1] = 0
    return merge(x)


def mean_over_heads(x):
    return merge(np.repeat(x.mean(1, keepdims=True), x.shape[1], 1))


def full_width(q, k, v):
    """Scaled by the width of all heads of a group of four."""
    return made_of(divisor=lambda q, k, v: math.sqrt(q.shape[-1] * q.shape[1]))(q, k, v)


def after_first_text(q, k, v, w_o, n_heads, n_kv_heads):
    k = np.broadcast_to(np.asarray(k)[:1], np.shape(k))
    return RIGHT(q, k, v, w_o, n_heads, n_kv_heads)


def across_texts(q, k, v, w_o, n_heads, n_kv_heads):
    """Batch and heads are folded into one axis, and unfolded in the wrong order."""
    B = len(q)
    attended = PLAIN(split(np.asarray(q, dtype=float), n_heads), repeat(split(np.asarray(k, dtype=float), n_kv_heads),
        n_heads), repeat(split(np.asarray(v, dtype=float), n_kv_heads), n_heads))[0]  # fmt: skip
    folded = attended.reshape(B * n_heads, *attended.shape[2:])
    return merge(folded.reshape(n_heads, B, *attended.shape[2:]).swapaxes(0, 1)) @ np.asarray(w_o, dtype=float)


HEADS = "Give every head its own keys and values, and let h, h_kv and T all differ."

CALLS = {"": ("q", "k", "v", "w_o", "n_heads", "n_kv_heads")}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("split, repeat, attend, merge, mix", RIGHT),
    right("an axis of groups", by_groups),
    right("head by head", head_by_head),
    right("text by text", text_by_text),
    right("a group's queries as rows", packed_queries),
    right("in float32", in_single_precision,
        "This one calculates in float32. It is right: allow for rounding, say 1e-3, and never test with ==."),
    right("in lists and loops", made_in(attend=in_lists)),
    right("keys in blocks of two", made_in(attend=in_blocks(2))),
    right("one query at a time", made_in(attend=one_query_at_a_time)),
    right("with powers of two", made_in(attend=made_of(weigh=by_powers_of_two))),
    right("by log-sum-exp", made_in(attend=made_of(weigh=by_log_sum_exp))),
    right("heads by index", made_in(repeat_k=lambda x, h: x[:, [i * x.shape[1] // h for i in range(h)]])),
    # shapes that are right by the wrong way
    wrong("queries cut straight", made_in(split_q=straight), "It views (B, T, h·d) as (B, h, T, d) without moving an "
        "axis.",
        HEADS, gross=True),
    wrong("keys and values cut straight", made_in(split_kv=straight),
        "Keys and values are viewed as heads without moving an axis.",
        HEADS, gross=True),
    wrong("all cut straight", made_in(straight, straight), "It views (B, T, h·d) as (B, h, T, d) without moving an "
        "axis.",
        HEADS,
        gross=True),
    wrong("merged straight", made_in(merge=merged_straight), "It merges (B, h, T, d) without moving an axis back.",
        HEADS,
        gross=True),
    wrong("split into d heads of h", made_in(lambda x, h: x.reshape(*x.shape[:2], -1, h).transpose(0, 3, 1, 2)),
        "Head i takes every h-th number, not d numbers in a row.", HEADS),
    # groups
    wrong("key heads in turns", made_in(repeat_k=tiled), "Query heads take the key heads in turn, 0 1 0 1, not in "
        "groups.",
        "It needs h_kv above 1 and groups of several."),
    wrong("values in turns", made_in(repeat_v=tiled), "Values are repeated in turn, keys in groups.",
        "It needs h_kv above 1 and groups of several."),
    wrong("the first key head for all", made_in(repeat_k=only_first), "All query heads read key head 0.", HEADS),
    wrong("the first value head for all", made_in(repeat_v=only_first), "All query heads blend the values of head 0.",
        HEADS),
    wrong("the mean of the key heads", made_in(repeat_k=mean_of_heads),
        "All query heads read the mean of the key heads.",
        HEADS),
    wrong("key heads backwards", made_in(repeat_k=backwards), "The key heads come in reverse order.", HEADS),
    wrong("one key head further", made_in(repeat_k=next_head), "Each query head reads the key head of the next one.",
        HEADS),
    wrong("groups of two", made_in(repeat_k=grouped_by_two), "Every group has two query heads.",
        "Try groups of other sizes."),
    # the attention
    wrong("no scale", made_in(attend=made_of(divisor=lambda q, k, v: 1.0)), "It leaves out the division by √d.",
        "Compare with an output that you have worked out yourself."),
    wrong("scaled by the width of all heads", made_in(attend=full_width), "It divides by √(h·d), not by √d.",
        "With one head you will not see it."),
    wrong("scaled by d", made_in(attend=made_of(divisor=lambda q, k, v: q.shape[-1])),
        "It divides by d, not by its root.",
        "Let d be more than 1."),
    wrong("a scale that is right for d = 4", made_in(attend=made_of(divisor=lambda q, k, v: q.shape[-1] / 2)),
        "It divides by d / 2.", "Try another d."),
    wrong("softmax over the queries", made_in(attend=made_of(weigh=over(-2))), "Its softmax runs over the queries.",
        "If all values are equal, the output has to be that value.", gross=True),
    wrong("softmax over the heads", made_in(attend=made_of(weigh=over(1))), "Its softmax runs over the heads.",
        "If all values are equal, the output has to be that value."),
    wrong("no peak subtracted", made_in(attend=made_of(weigh=without_peak)), "e^score overflows, or is 0 / 0.",
        "Try large scores, of both signs."),
    # the mix
    wrong("nothing mixed", made_in(mix=lambda x, w_o: x if x.shape[-1] == w_o.shape[-1] else x @ w_o),
        "Where D = h·d, W_O is left out.", "Try a square W_O."),
    wrong("W_O turned", made_in(mix=lambda x, w_o: x @ (w_o.T if w_o.shape[0] == w_o.shape[1] else w_o)),
        "A square W_O is transposed.", "Try a square W_O that is not symmetric."),
    wrong("heads in reverse order", made_in(merge=heads_turned), "The heads are joined from the last to the first.",
        HEADS),
    wrong("the mean over heads", made_in(merge=mean_over_heads),
        "Each head is replaced by the mean of all heads.", HEADS),
    # on some inputs
    wrong("an odd number of heads", only_if(lambda q, k, v, w_o, h, g: h % 2 and h > 1,
        made_in(merge=without_last_head),
        RIGHT), "With an odd number of heads the last one is lost.", "Try other numbers of heads."),
    wrong("one key head", only_if(lambda q, k, v, w_o, h, g: g == 1 and h > 1, made_in(repeat_v=lambda x, h: np.roll(
        repeat(x, h), 1, 2)), RIGHT), "With a single key head its values are one token off.",
        "Let h_kv be 1, and h more than 1."),
    wrong("as many key heads as heads", only_if(lambda q, k, v, w_o, h, g: h == g > 1, made_in(repeat_k=backwards),
        RIGHT),
        "Where h_kv = h, the key heads come in reverse order.", "Let h_kv be h."),
    wrong("more keys than queries", only_if(lambda q, k, v, w_o, h, g: np.shape(k)[1] > np.shape(q)[1],
        lambda q, k, v, w_o, h, g: RIGHT(q, k[:, :-1], v[:, :-1], w_o, h, g), RIGHT),
        "With more keys than queries the last key is lost.", "Let n and m differ."),
    wrong("keys of the first text", only_if(lambda q, k, v, w_o, h, g: len(q) > 1, after_first_text, RIGHT),
        "In a batch all texts read the keys of the first.", "Try a batch of texts that differ."),
    wrong("heads of another text", only_if(lambda q, k, v, w_o, h, g: len(q) > 1 and h > 1, across_texts, RIGHT),
        "In a batch heads and texts are mixed up.", "Try a batch of texts that differ."),
)  # fmt: skip
