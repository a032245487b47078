"""Day 2: implementations of the softmax of each row with its backward pass, f(x, dp) -> (p, dx)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.checks.judge.implementation import only_if, right, wrong

Array = np.ndarray


def shares(x: Array, peak: Callable = lambda x: x.max(axis=-1, keepdims=True)) -> Array:
    e = np.exp(x - peak(x))
    return e / e.sum(axis=-1, keepdims=True)


def back(p: Array, dp: Array) -> Array:
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def made_of(
    forward: Callable = shares, backward: Callable = back, result_of: Callable = lambda p, dx: (p, dx)
) -> Callable:
    """f(x, dp) -> (p, dx) of these two steps: forward(x), backward(p, dp)."""

    def f(x, dp):
        x, dp = np.asarray(x, dtype=float), np.asarray(dp, dtype=float)
        p = forward(x)
        return result_of(p, backward(p, dp))

    return f


PLAIN = made_of()


def by_jacobians(p, dp):
    jacobian = p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
    return np.einsum("...i,...ij->...j", dp, jacobian)


def in_lists(x, dp):
    x, dp = np.asarray(x, dtype=float), np.asarray(dp, dtype=float)
    p, dx = np.zeros(x.shape), np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        row = x[at].tolist()
        moved = dp[at].tolist()
        power = [math.exp(each - max(row)) for each in row]
        part = [each / math.fsum(power) for each in power]
        mean = math.fsum(a * b for a, b in zip(part, moved, strict=True))
        p[at] = part
        dx[at] = [a * (b - mean) for a, b in zip(part, moved, strict=True)]
    return p, dx


def in_single_precision(x, dp):
    x, dp = np.asarray(x, dtype=np.float32), np.asarray(dp, dtype=np.float32)
    p = shares(x)
    return p, back(p, dp)


def by_powers_of_two(x):
    e = np.exp2((x - x.max(-1, keepdims=True)) * math.log2(math.e))
    return e / e.sum(-1, keepdims=True)


def by_log_sum_exp(x):
    top = x.max(-1, keepdims=True)
    return np.exp(x - (top + np.log(np.exp(x - top).sum(-1, keepdims=True))))


def in_blocks_of_two(x):
    top, total = np.full((*x.shape[:-1], 1), -np.inf), np.zeros((*x.shape[:-1], 1))
    for j in range(0, x.shape[-1], 2):
        part = x[..., j : j + 2]
        new = np.maximum(top, part.max(-1, keepdims=True))
        safe = np.where(np.isinf(new), 0.0, new)
        total = total * np.exp(np.where(np.isinf(top), -np.inf, top - safe)) + np.exp(part - safe).sum(
            -1, keepdims=True
        )
        top = new
    return np.exp(x - top) / total


def backwards(x):
    return shares(x[..., ::-1])[..., ::-1]


def pair_by_pair(p, dp):
    """Each key against each other one: dx_j = Σ_l p_j p_l (dp_j − dp_l)."""
    return (p[..., :, None] * p[..., None, :] * (dp[..., :, None] - dp[..., None, :])).sum(-1)


def by_a_complex_step(x, dp):
    """Moves x along each axis by i·10⁻²⁰, and reads the slope from the imaginary part."""
    x, dp = np.asarray(x, dtype=float), np.asarray(dp, dtype=float)
    base = x - x.max(-1, keepdims=True)
    columns = []
    for j in range(x.shape[-1]):
        e = np.exp(base + 1e-20j * (np.arange(x.shape[-1]) == j))
        columns.append(((e / e.sum(-1, keepdims=True)).imag / 1e-20 * dp).sum(-1))
    return shares(x), np.stack(columns, -1)


def along_first(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


def over_all(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def last_left_out(p, dp):
    dx = back(p, dp)
    dx[..., -1] = 0
    return dx


def first_row_mean(p, dp):
    mean = (p * dp).sum(-1, keepdims=True)
    return p * (dp - mean[(slice(0, 1),) * (p.ndim - 1)])


def halved_where_equal(p, dp):
    peak = p.max(-1, keepdims=True)
    return back(p, dp) / (p == peak).sum(-1, keepdims=True)


def _rows(x, dp):
    return int(np.prod(np.shape(x)[:-1]))


BACKWARD = "Compare dx with differences of p, or with the Jacobian diag(p) − ppᵀ."
BOTH = "It has two results: look at both."

CALLS = {"": ("x", "dp")}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("as in the lesson", PLAIN),
    right("by Jacobians", made_of(backward=by_jacobians)),
    right("in lists and loops", in_lists),
    right("in float32", in_single_precision,
        "This one calculates in float32. It is right: leave room for rounding, 1e-3 say, and never ask for ==."),
    right("with powers of two", made_of(by_powers_of_two)),
    right("by log-sum-exp", made_of(by_log_sum_exp)),
    right("in blocks of two", made_of(in_blocks_of_two)),
    right("from the last entry to the first", made_of(backwards)),
    right("pair by pair", made_of(backward=pair_by_pair)),
    right("by a complex step", by_a_complex_step),
    right("gradients centred twice", made_of(backward=lambda p, dp: back(p, dp - dp.mean(-1, keepdims=True)))),
    right("a peak that is one too large", made_of(lambda x: shares(x, lambda x: x.max(-1, keepdims=True) + 1))),
    # the weights
    wrong("no peak subtracted", made_of(lambda x: shares(x, lambda x: 0.0)), "e^x overflows, or is 0 / 0, for large x.",
        "Try large entries, of both signs."),
    wrong("the mean for the peak", made_of(lambda x: shares(x, lambda x: np.mean(np.where(np.isinf(x), 0, x), -1,
        keepdims=True))), "It subtracts the mean, and the largest entry can be far above it.",
        "Try one entry that is far above the others."),
    wrong("the first entry for the peak", made_of(lambda x: shares(x, lambda x: x[..., :1])),
        "It subtracts the first entry, which need not be the largest.", "Try large entries in several places."),
    wrong("one peak for all rows", made_of(lambda x: shares(x, lambda x: x.max())),
        "It subtracts the largest entry of all rows.", "Try two rows that lie thousands apart."),
    wrong("entries clipped at 30", made_of(lambda x: shares(np.clip(x, -30, 30))),
        "Entries beyond ±30 are cut to that.",
        "Try large entries."),
    wrong("along the first axis", made_of(along_first), "Its softmax runs along the first axis, not the last.",
        "What does a row of p add up to? One row alone does not show it.", gross=True),
    wrong("over the whole array", made_of(over_all), "All of p together adds up to 1.",
        "What does a row of p add up to? One row alone does not show it."),
    wrong("exponentials not divided", made_of(lambda x: np.exp(x - x.max(-1, keepdims=True))),
        "Its exponentials are not divided by their sum.", "What does a row of p add up to?"),
    wrong("powers of two for e", made_of(lambda x: shares(x * math.log(2))), "It takes 2^x, not e^x.",
        "Its weights are a little too even: compare numbers.", gross=True),
    wrong("a temperature of two", made_of(lambda x: shares(x / 2)), "It halves all entries first.",
        "Compare numbers.", gross=True),
    wrong("a sigmoid", made_of(lambda x: 1 / (1 + np.exp(-x))), "It puts each entry through a sigmoid by itself.",
        "What does a row of p add up to?"),
    wrong("logarithms", made_of(result_of=lambda p, dx: (np.log(p), dx)), "It returns log p in place of p.", BOTH),
    wrong("two decimals", made_of(result_of=lambda p, dx: (p.round(2), dx)), "p is rounded to two decimals.",
        "Be a little stricter: 1e-3."),
    wrong("the largest takes all", made_of(lambda x: (np.arange(x.shape[-1]) == x.argmax(-1)[..., None]) / 1.0),
        "It gives all weight to the largest entry.", "How much weight has the second-largest entry?"),
    wrong("−∞ as the smallest entry", made_of(lambda x: shares(np.where(
        np.isinf(x), np.where(np.isinf(x), np.inf, x).min(axis=-1, keepdims=True), x))),
        "An entry of −∞ counts as the smallest finite one of its row.", "Try an entry of −∞."),
    wrong("−∞ leaves NaN behind", made_of(backward=lambda p, dp: back(p, dp) + 0 * np.log(p)),
        "Where a weight is 0, dx is NaN.", "Try an entry of −∞, and look at dx."),
    # the gradient
    wrong("nothing subtracted", made_of(backward=lambda p, dp: p * dp),
        "dx is p · dp: the weighted mean of dp is missing.",
        BACKWARD, gross=True),
    wrong("the diagonal alone", made_of(backward=lambda p, dp: p * (1 - p) * dp),
        "It takes only the diagonal of the Jacobian: how p_j moves with x_j.", BACKWARD),
    wrong("no factor p", made_of(backward=lambda p, dp: dp - (p * dp).sum(-1, keepdims=True)),
        "The factor p in front is missing.", BACKWARD),
    wrong("the plain mean", made_of(backward=lambda p, dp: p * (dp - dp.mean(-1, keepdims=True))),
        "It subtracts the mean of dp, not the mean weighted by p.", "Choose weights that are not level. " + BACKWARD),
    wrong("the plain sum", made_of(backward=lambda p, dp: p * (dp - dp.sum(-1, keepdims=True))),
        "It subtracts the sum of dp, not the mean weighted by p.", BACKWARD),
    wrong("a mean over all rows", made_of(backward=lambda p, dp: p * (dp - (p * dp).sum())),
        "It subtracts the sum over the whole array.", "One row alone does not show it. " + BACKWARD),
    wrong("the wrong sign", made_of(backward=lambda p, dp: -back(p, dp)), "dx has the wrong sign.", BACKWARD),
    wrong("backward of the logarithm", made_of(backward=lambda p, dp: dp - p * dp.sum(-1, keepdims=True)),
        "dx is that of log p.", BACKWARD),
    wrong("p counted twice", made_of(backward=lambda p, dp: p * back(p, dp)), "dx has a factor p too many.", BACKWARD),
    wrong("dx clipped at a quarter", made_of(backward=lambda p, dp: np.clip(back(p, dp), -0.25, 0.25)),
        "dx is cut to ±0.25.", "Try a larger dp."),
    wrong("no negative dp", made_of(backward=lambda p, dp: back(p, np.maximum(dp, 0))),
        "Negative entries of dp count as 0.",
        "Let dp have both signs."),
    # on some inputs
    wrong("odd lengths", made_of(backward=only_if(lambda p, dp: p.shape[-1] % 2 and p.shape[-1] > 1, last_left_out,
        back)),
        "With an odd number of entries the last one has no gradient.", "Try other lengths."),
    wrong("the first row's mean", made_of(backward=only_if(lambda p, dp: p.ndim > 1, first_row_mean, back)),
        "All rows subtract the weighted mean of the first.", "Try several rows that differ."),
    wrong("a square array", made_of(backward=only_if(lambda p, dp: p.ndim > 1 and p.shape[-1] == p.shape[-2],
        lambda p, dp: p * (dp - (p * dp).sum(-1)[..., None, :]), back)),
        "With as many rows as columns the means are subtracted along the wrong axis.", "Try a square array."),
    wrong("equal entries share the gradient", made_of(backward=only_if(
        lambda p, dp: p.shape[-1] > 1, halved_where_equal, back)),
        "Where the largest entries are equal, dx is divided by their number.", "Let two entries be equal."),
    wrong("one entry", made_of(backward=only_if(lambda p, dp: p.shape[-1] == 1, lambda p, dp: dp.copy(), back)),
        "Of a single entry, dx is dp. Its weight is always 1, so dx is 0.", "Try the shortest row."),
    wrong("saturated rows", made_of(backward=lambda p, dp: back(np.where(p > 0.95, 1.0, np.where(p < 0.05, 0.0, p)),
        dp)),
        "Weights near 0 and 1 are taken for 0 and 1 in the gradient.", "Try a row in which one entry leads by 3."),
)  # fmt: skip
