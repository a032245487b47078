"""Day 1: implementations of attention, f(q, k, v) -> (output, weights)."""

from __future__ import annotations

import math

import numpy as np

from course_utils.checks.judge.implementation import only_if, right, wrong
from course_utils.days.shared.attention_duel import (
    PLAIN,
    by_differences,
    by_log_sum_exp,
    by_powers_of_two,
    divided_last,
    hard,
    in_blocks,
    in_lists,
    in_single_precision,
    keys_backwards,
    made_of,
    one_query_at_a_time,
    over,
    swapped,
    weigh,
    with_inputs,
    without_peak,
)


def scaled_before(q, k, v):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    part = k.shape[-1] ** -0.25
    w = weigh(np.einsum("...id,...jd->...ij", part * q, part * k))
    return w @ v, w


def by_columns(w, v):
    return swapped(w) @ v if w.shape[-1] == w.shape[-2] else w @ v


def first_text_only(q, k, v):
    o, w = PLAIN(q, k, v)
    return np.broadcast_to(o[:1], o.shape).copy(), w


def values_of_the_first_text(q, k, v):
    return with_inputs(lambda q, k, v: (q, k, np.broadcast_to(v[:1], v.shape)))(q, k, v)


def heads_exchanged(q, k, v):
    o, w = PLAIN(q, k, v)
    return o[:, ::-1], w


def without_last_key(q, k, v):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    o, w = PLAIN(q, k[..., :-1, :], v[..., :-1, :])
    return o, np.concatenate([w, np.zeros_like(w[..., :1])], axis=-1)


def without_repeats(q, k, v):
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    first = [j for j in range(k.shape[-2]) if not any(np.array_equal(k[..., j, :], k[..., i, :]) for i in range(j))]
    w = np.zeros((*q.shape[:-1], k.shape[-2]))
    w[..., first] = weigh(q @ swapped(k[..., first, :]) / math.sqrt(k.shape[-1]))
    return w @ v, w


def last_blocks_dropped(size):
    """Keys in whole blocks; what does not fill one is left out."""

    def f(q, k, v):
        q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
        whole = max(k.shape[-2] // size * size, 1)
        o, w = PLAIN(q, k[..., :whole, :], v[..., :whole, :])
        return o, np.concatenate([w, np.zeros((*w.shape[:-1], k.shape[-2] - whole))], axis=-1)

    return f


CALLS = {"": ("q", "k", "v")}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("with matrix products", PLAIN),
    right("in lists and loops", in_lists),
    right("with einsum, divided last", divided_last),
    right("one query at a time", one_query_at_a_time),
    right("keys in blocks of two", in_blocks(2)),
    right("keys in blocks of five", in_blocks(5)),
    right("in float32", in_single_precision,
        "This one calculates in float32. It is right: allow for rounding, say 1e-3, and never compare with ==."),
    right("keys from the last to the first", keys_backwards),
    right("with powers of two", made_of(weigh=by_powers_of_two)),
    right("by log-sum-exp", made_of(weigh=by_log_sum_exp)),
    right("by differences of scores", made_of(weigh=by_differences)),
    right("queries and keys scaled before the product", scaled_before),
    # wrong on most inputs; the gross ones are repeated in grading, so their weights are shares all the same: no test of
    # that alone tells which of two frequent results is right
    wrong("no scale", made_of(divisor=lambda q, k, v: 1.0), "It leaves out the division by √d_k.",
        "Compare with weights that you work out yourself.", gross=True),
    wrong("scaled by d_k", made_of(divisor=lambda q, k, v: k.shape[-1]), "It divides by d_k, not by its root.",
        "Its scores shrink too much. d_k = 1 does not show that.", gross=True),
    wrong("multiplied by the root", made_of(divisor=lambda q, k, v: k.shape[-1] ** -0.5),
        "It multiplies by √d_k.", "Compare with weights that you work out yourself.", gross=True),
    wrong("scaled after the softmax", made_of(blend=lambda w, v: w @ v / math.sqrt(v.shape[-1]),
        divisor=lambda q, k, v: 1.0), "It divides the output, not the scores.", "Compare the output with a known one."),
    wrong("softmax over the queries", made_of(weigh=over(-2)), "Its softmax runs down the columns, over the queries.",
        "What does a row of weights add up to?"),
    wrong("softmax over the whole matrix", made_of(weigh=over((-1, -2))), "All weights together add up to 1.",
        "What does a row of weights add up to? One query alone does not show it."),
    wrong("shares of the scores", made_of(weigh=lambda s: s / s.sum(-1, keepdims=True)),
        "It divides scores by their sum and takes no exponential.", "Can a weight be negative?"),
    wrong("exponentials not divided", made_of(weigh=lambda s: np.exp(s - s.max(-1, keepdims=True))),
        "Its exponentials are not divided by their sum.", "What does a row of weights add up to?"),
    wrong("the largest score takes all", made_of(weigh=hard), "It gives all weight to the key with the largest score.",
        "How much weight has the second-best key?"),
    wrong("equal weights", made_of(weigh=lambda s: np.ones_like(s) / s.shape[-1]), "Each key has the same weight.",
        "Choose a query that is close to one key."),
    wrong("a minus sign", made_of(score=lambda q, k: -q @ swapped(k)), "Its scores have the wrong sign.",
        "Choose a query that is close to one key."),
    wrong("powers of two for e", made_of(weigh=lambda s: weigh(s * math.log(2))), "It uses powers of 2, not of e.",
        "Its weights are a little too even: compare the numbers."),
    wrong("a sigmoid", made_of(weigh=lambda s: 1 / (1 + np.exp(-s))), "It puts each score through a sigmoid on its "
                                                                      "own.",
        "What does a row of weights add up to?"),
    wrong("one more in the sum", made_of(weigh=lambda s: np.exp(s) / (1 + np.exp(s).sum(-1, keepdims=True))),
        "The sum that it divides by has one term too many.", "What does a row of weights add up to?"),
    wrong("queries and keys of length 1", with_inputs(lambda q, k, v: (
        q / np.linalg.norm(q, axis=-1, keepdims=True), k / np.linalg.norm(k, axis=-1, keepdims=True), v)),
        "It looks at directions only: queries and keys are divided by their lengths.",
        "A longer query has to concentrate its weight more."),
    wrong("no negative values", made_of(blend=lambda w, v: w @ np.maximum(v, 0)), "Negative values count as 0.",
        "Try values below 0."),
    wrong("weights of two decimals", made_of(weigh=lambda s: weigh(s).round(2)),
        "Its weights are rounded to two decimals.",
        "Be a little stricter: use 1e-3."),
    # on some inputs
    wrong("no peak subtracted", made_of(weigh=without_peak), "e^score overflows, or is 0 / 0, where scores are large.",
        "Try large scores, positive and negative."),
    wrong("scores clipped at 30", made_of(weigh=lambda s: weigh(np.clip(s, -30, 30))),
        "Scores beyond ±30 are clipped to ±30.",
        "Try large scores."),
    wrong("one peak for all queries", made_of(weigh=lambda s: without_peak(s - s.max())),
        "It subtracts the largest score of all queries, so a row far below the others becomes 0 / 0.",
        "Try two queries whose scores are hundreds apart."),
    wrong("a scale that is right for d_k = 4", made_of(divisor=lambda q, k, v: k.shape[-1] / 2),
        "It divides by d_k / 2.", "Try a different d_k."),
    wrong("scaled by the width of the values", made_of(divisor=lambda q, k, v: math.sqrt(v.shape[-1])),
        "It divides by √d_v.", "Let d_k and d_v differ."),
    wrong("scaled by the number of keys", made_of(divisor=lambda q, k, v: math.sqrt(k.shape[-2])),
        "It divides by √m.", "Let d_k and m differ."),
    wrong("values by columns of the weights", made_of(blend=by_columns),
        "With as many queries as keys, it blends with columns of the weights.",
        "The bug shows only where n = m and the weights are not symmetric."),
    wrong("as many keys as queries", only_if(lambda q, k, v: np.shape(k)[-2] > np.shape(q)[-2], without_last_key,
        PLAIN),
        "With more keys than queries, the last key is lost.", "Try more keys than queries."),
    wrong("odd numbers of keys", only_if(lambda q, k, v: np.shape(k)[-2] % 2 and np.shape(k)[-2] > 1, without_last_key,
        PLAIN), "With an odd number of keys, the last one is lost.", "Try other numbers of keys."),
    wrong("blocks of four", last_blocks_dropped(4), "Keys are taken four at a time, and those left over are lost.",
        "Try other numbers of keys."),
    wrong("the first text for all", only_if(lambda q, k, v: np.ndim(q) > 2 and len(q) > 1, first_text_only, PLAIN),
        "In a batch, every text gets the output of the first.", "Try a batch of texts that differ."),
    wrong("values of the first text", only_if(lambda q, k, v: np.ndim(v) > 2 and len(v) > 1, values_of_the_first_text,
        PLAIN), "In a batch, all texts blend the values of the first.", "Try a batch of texts that differ."),
    wrong("heads exchanged", only_if(lambda q, k, v: np.ndim(q) == 4 and np.shape(q)[1] > 1, heads_exchanged, PLAIN),
        "With a batch and heads, the outputs of the heads come in reverse order.", "Try two leading axes."),
    wrong("equal keys counted once", without_repeats, "Of several equal keys only the first takes part.",
        "Let two keys be the same."),
    wrong("weights before the scale", made_of(result_of=lambda o, w: (o, w * w / (w * w).sum(-1, keepdims=True))),
        "The output is right, but the weights that come with it are not.", "Look at both results."),
)  # fmt: skip
