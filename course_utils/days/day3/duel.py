"""Day 3: implementations of attention under a mask, f(q, k, v, mask) -> (output, weights). True may attend."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.checks.judge.implementation import only_if, right, wrong
from course_utils.days.shared.attention_duel import (
    PLAIN,
    by_differences,
    by_log_sum_exp,
    by_powers_of_two,
    divided_last,
    in_blocks,
    in_lists,
    in_single_precision,
    keys_backwards,
    made_of,
    one_query_at_a_time,
    over,
    score_shape,
    swapped,
    weigh,
)


def with_mask(change: Callable, of: Callable = PLAIN) -> Callable:
    """The same under another mask: change(mask), of the mask as a (…, n, m)."""

    def f(q, k, v, mask):
        whole = np.array(np.broadcast_to(mask, score_shape(np.asarray(q), np.asarray(k))))
        return of(q, k, v, change(whole))

    return f


def filled_with(number: float, weigh: Callable = weigh) -> Callable:
    """Blocked scores are this number."""

    def f(q, k, v, mask):
        q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
        w = weigh(np.where(mask, q @ swapped(k) / math.sqrt(k.shape[-1]), number))
        return w @ v, w

    return f


def zeroed_after(weigh: Callable, again: bool) -> Callable:
    """The mask after the softmax; again: divided by the sum of what is left."""

    def f(q, k, v, mask):
        q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
        w = np.where(mask, weigh(q @ swapped(k) / math.sqrt(k.shape[-1])), 0.0)
        if again:
            w = w / w.sum(-1, keepdims=True)
        return w @ v, w

    return f


def keys_picked_out(q, k, v, mask):
    """Each query meets only the keys that it may see."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    sees = np.broadcast_to(mask, score_shape(q, k))
    o = np.zeros((*q.shape[:-1], v.shape[-1]))
    w = np.zeros(sees.shape)
    for at in np.ndindex(q.shape[:-1]):
        allowed = np.flatnonzero(sees[at])
        if len(allowed):
            lead = at[:-1]
            part, w[at][allowed] = PLAIN(q[at][None], k[lead][allowed], v[lead][allowed])
            o[at] = part[0]
    return o, w


def at_empty_rows(fill: Callable) -> Callable:
    """A query that sees nothing gets the weights fill(m)."""

    def f(q, k, v, mask):
        _, w = PLAIN(q, k, v, mask)
        none = ~np.broadcast_to(mask, w.shape).any(-1, keepdims=True)
        w = np.where(none, fill(w.shape[-1]), w)
        return w @ np.asarray(v, dtype=float), w

    return f


def output_of_all(q, k, v, mask):
    """The weights are masked, the output is that of another softmax, without the mask."""
    return PLAIN(q, k, v)[0], PLAIN(q, k, v, mask)[1]


def a_whiff_of_the_future(q, k, v, mask):
    """The mean of all values leaks in: one part in fifty."""
    o, w = PLAIN(q, k, v, mask)
    return o + 0.02 * (np.asarray(v, dtype=float).mean(-2, keepdims=True) - o), w


def sees(*places: int) -> Callable:
    """A change of a mask: these keys are always seen, where there are so many."""

    def f(mask):
        for j in places:
            if -mask.shape[-1] <= j < mask.shape[-1]:
                mask[..., j] = True
        return mask

    return f


def shifted(by: int) -> Callable:
    """A change of a mask: each query has the row of another."""

    def f(mask):
        return np.roll(mask, by, axis=-2)

    return f


def one_more(mask):
    """Behind the last key that is seen, the next one is seen too."""
    after = np.concatenate([np.zeros_like(mask[..., :1]), mask[..., :-1]], -1)
    later = np.cumsum(mask[..., ::-1], -1)[..., ::-1] == 0
    return mask | (after & later)


def with_its_own_key(mask):
    n = min(mask.shape[-2:])
    mask[..., range(n), range(n)] = True
    return mask


def no_row_empty(mask):
    """A query that sees nothing sees everything."""
    return mask | ~mask.any(-1, keepdims=True)


def causal_too(mask):
    return mask & np.tri(*mask.shape[-2:], dtype=bool)


def first_text(mask):
    return np.broadcast_to(mask[:1], mask.shape)


MASKED_BEFORE = "Check which keys are seen, one by one: when you change a blocked key, nothing may move."

CALLS = {"": ("q", "k", "v", "mask")}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("scores set to −∞", PLAIN),
    right("in lists and loops", in_lists),
    right("with einsum, divided last", divided_last),
    right("one query at a time", one_query_at_a_time),
    right("keys in blocks of two", in_blocks(2)),
    right("keys in blocks of five", in_blocks(5)),
    right("in float32", in_single_precision,
        "This one calculates in float32, and it is right. Leave room for rounding, say 1e-3, or 1e-2 where scores "
        "are beyond 1,000, and never compare with ==."),
    right("keys from the last to the first", keys_backwards),
    right("with powers of two", made_of(weigh=by_powers_of_two)),
    right("by log-sum-exp", made_of(weigh=by_log_sum_exp)),
    right("by differences of scores", made_of(weigh=by_differences)),
    right("only the keys that are seen", keys_picked_out),
    # gross
    wrong("no mask", lambda q, k, v, mask: PLAIN(q, k, v), "It ignores the mask.", MASKED_BEFORE,
        gross=True),
    wrong("True blocks", with_mask(lambda mask: ~mask), "It treats True as blocked.", MASKED_BEFORE, gross=True),
    wrong("blocked scores are 0", filled_with(0.0), "A blocked score becomes 0, and e^0 is 1.", MASKED_BEFORE,
        gross=True),
    wrong("zeros after the softmax", zeroed_after(weigh, again=False),
        "It masks after the softmax and does not divide again, so the sum still includes the blocked keys.",
        "What does a row of weights add up to?"),
    wrong("scores times the mask", lambda q, k, v, mask: made_of(score=lambda q, k: q @ swapped(k) * mask)(q, k, v),
        "It multiplies scores by 0 or 1: a blocked one becomes 0, and e^0 is 1.", MASKED_BEFORE),
    wrong("1 added to the scores that are seen", lambda q, k, v, mask: made_of(
        score=lambda q, k: q @ swapped(k) + np.asarray(mask, dtype=float))(q, k, v),
        "It adds the mask to the scores as 0 and 1.", MASKED_BEFORE),
    wrong("no scale", made_of(divisor=lambda q, k, v: 1.0), "It leaves out the division by √d_k.",
        "Compare with weights that you work out yourself."),
    wrong("softmax over the queries", lambda q, k, v, mask: made_of(weigh=lambda s: np.nan_to_num(
        over(-2)(np.where(np.isinf(s), -1e30, s))) * mask)(q, k, v, mask),
        "Its softmax runs down the columns.", "What does a row of weights add up to?"),
    wrong("the output sees all", output_of_all, "Its weights are masked, but its output is not.",
        "Look at both results."),
    wrong("a whiff of what is blocked", a_whiff_of_the_future, "It mixes 2% of the mean of all values into the output.",
        "Change a value that nobody may see. Be strict where scores are small: 1e-3."),
    # what is blocked, and how
    wrong("−10 for −∞", filled_with(-10.0), "A blocked score becomes −10, and e^−10 is still a weight.",
        "Try large scores, of both signs."),
    wrong("−10,000 for −∞", filled_with(-1e4), "A blocked score becomes −10⁴, and scores that are seen may be lower.",
        "Try scores in the tens of thousands, or a query that sees nothing."),
    wrong("the smallest float32", filled_with(float(np.finfo(np.float32).min)),
        "A blocked score becomes the lowest float32. A query that sees nothing then gives all keys the same weight.",
        "Try a query that sees nothing."),
    wrong("NaN for a query that sees nothing", at_empty_rows(lambda m: np.nan),
        "A query that sees nothing gets NaN.", "Try a query that sees nothing."),
    wrong("the first key for a query that sees nothing", at_empty_rows(lambda m: np.arange(m) == 0),
        "A query that sees nothing gets the first value.", "Try a query that sees nothing."),
    wrong("everything for a query that sees nothing", with_mask(no_row_empty),
        "A query that sees nothing gets the attention of one that sees everything.", "Try a query that sees nothing."),
    wrong("the peak of what is blocked", zeroed_after(weigh, again=True),
        "It subtracts the largest score of all keys. Where that is far above the allowed scores, 0 / 0 is left.",
        "Let a blocked key have by far the largest score."),
    wrong("no peak subtracted", made_of(weigh=lambda s: np.exp(s) / np.maximum(np.exp(s).sum(-1, keepdims=True),
        1e-300)),
        "e^score overflows, or leads to 0 / 0, where scores are large.", "Try large scores, of both signs."),
    # leaks
    wrong("the first key is always seen", with_mask(sees(0)), "Every query sees key 0.", MASKED_BEFORE),
    wrong("the last key is always seen", with_mask(sees(-1)), "Every query sees the last key.", MASKED_BEFORE),
    wrong("the fifth key is always seen", with_mask(sees(4)), "Every query sees key 4.",
        "Try more keys. " + MASKED_BEFORE),
    wrong("its own key is always seen", with_mask(with_its_own_key), "Query i always sees key i.", MASKED_BEFORE),
    wrong("one key further", with_mask(one_more), "Each query also sees the key right after the last one that it may "
        "see.",
        "Try a causal mask."),
    wrong("causal as well", with_mask(causal_too), "Later keys are blocked, whatever the mask says.",
        "Let a query see a later key."),
    wrong("the row before", with_mask(shifted(1)), "Query i has the mask of the query before it.",
        "Let each query see different keys."),
    # on some inputs
    wrong("a square mask turned", only_if(lambda q, k, v, mask: np.shape(mask)[-1] == np.shape(mask)[-2],
        lambda q, k, v, mask: PLAIN(q, k, v, swapped(np.asarray(mask))), PLAIN),
        "With as many queries as keys, the mask is transposed.", "Try a square mask that is not symmetric."),
    wrong("the first row for all", only_if(lambda q, k, v, mask: np.shape(q)[-2] > 3, with_mask(
        lambda mask: np.broadcast_to(mask[..., :1, :], mask.shape)), PLAIN),
        "With more than three queries, all of them get the mask of the first.", "Try other numbers of queries."),
    wrong("the mask of the first text", only_if(lambda q, k, v, mask: np.ndim(mask) > 2 and len(mask) > 1,
        with_mask(first_text), PLAIN), "In a batch, all texts get the mask of the first.",
        "Try a batch in which each text has a mask of its own."),
    wrong("a mask of two axes alone", only_if(lambda q, k, v, mask: np.ndim(mask) > 2,
        lambda q, k, v, mask: PLAIN(q, k, v), PLAIN), "A mask with leading axes is ignored.",
        "Try a mask with as many axes as the scores."),
    wrong("a mask of one row", only_if(lambda q, k, v, mask: np.shape(mask)[-2] == 1 and np.shape(q)[-2] > 1,
        lambda q, k, v, mask: PLAIN(q, k, v), PLAIN), "A mask of one row, for all queries, is ignored.",
        "A mask may have the shape (1, m), which broadcasts."),
    wrong("the last query of many", only_if(lambda q, k, v, mask: np.shape(q)[-2] > 4, with_mask(
        lambda mask: mask | (np.arange(mask.shape[-2]) == mask.shape[-2] - 1)[:, None]), PLAIN),
        "With more than four queries, the last one sees everything.", "Try other numbers of queries."),
    wrong("more keys than queries", only_if(lambda q, k, v, mask: np.shape(k)[-2] > np.shape(q)[-2], with_mask(
        lambda mask: np.roll(mask, 1, -1)), PLAIN), "With more keys than queries, the mask is one key off.",
        "Let n and m differ."),
)  # fmt: skip
