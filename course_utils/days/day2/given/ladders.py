"""The ladders of day 2: the test inputs (rungs) of each exercise.

Every known mistake fails on some of them: sizes all differ, no d_k is 4 (where √d_k = d_k / 2), the axis is
not always the last one, and large entries are multiples of a quarter, which float32 holds exactly, except where the
type is what is tried.

Answers that draw random numbers are compared with a tolerance of at least five standard deviations, and more where q
and k may come from other distributions than the normal. Many calls with few samples decide what one call leaves open:
the spread of their figures shows how many samples there are, and whether they are independent. There are few samples,
so that an answer which draws a thousand of its own, or multiplies each with every other one, gets its verdict soon.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_utils.checks.kernel.forbidden import AUTOGRAD, LIBRARY_LOGSUMEXP, STABLE_SOFTMAX, WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import bytecodes_grow, changes
from course_utils.checks.kernel.small import Small, one_of, shares, whole
from course_utils.days.shared.given.draws import (
    K,
    Q,
    V,
    draw,
    draw_qkv,
    far_below_zero,
    named,
    only_in,
    rows_far_apart,
)

HALF = {part: (1e-2, 1e-2) for part in ("weights", "logsumexp")}  # float16 keeps about three decimals


def dot_product_stats(rng: np.random.Generator) -> list[Rung]:
    def run(d_k, samples):
        return d_k, samples, generator(rng)

    def chance(d_k, samples, off):
        """Return tolerances; off: the relative one of a std, large because entries may have long tails."""
        return {"mean": (0.0, 9 * math.sqrt(d_k / samples)), "std": (off, 0.0), "standard_error": (off, 0.0)}

    return [
        Rung("nine numbers in a query", run(9, 1500),
            "The mean is near 0, std near √d_k, and the standard error is std / √samples. Sum over the d_k products "
            "of a pair first, then take the statistics over the samples.",
            tolerance=chance(9, 1500, 0.6)),
        Rung("one number in a query", run(1, 1500),
            "With d_k = 1 a dot product is one product: mean near 0, std near 1. If one query or key serves all "
            "samples, std is its size instead: draw (samples, d_k) for both.",
            with_their_ratio, chance(1, 1500, 2.0) | {"std / standard_error": (0.1, 0.0)}),
        Rung("a hundred numbers in a query", run(100, 1500),
            "q and k are drawn apart, with mean 0 and variance 1 in each entry. std is near √100 = 10.",
            tolerance=chance(100, 1500, 0.2)),
        Rung("thirty-six numbers, 400 samples", run(36, 400),
            "std is near 6 whatever the number of samples; the standard error is std / √400.",
            tolerance=chance(36, 400, 0.5)),
        Rung("the standard error is std / √samples", run(7, 300),
            "Divide the std that you return by math.sqrt(samples), not a std or a root from elsewhere.",
            error_is_std_over_root),
        Rung("the same state of rng gives the same numbers", run(7, 300),
            "Two calls with generators in the same state gave different numbers. Draw with the rng that is "
            "passed in, not with np.random or torch.",
            same_state_same_figures),
        Rung("another state of rng gives other numbers", run(7, 300),
            "Generators in different states should give different numbers, all three. Take them from the samples, not "
            "from theory, and draw with the rng that is passed in, not with one made inside.",
            other_state_other_figures),
        Rung("queries and keys are drawn", run(64, 500),
            "What is taken from rng grows with the samples, and not with d_k, or nothing is taken from it. Draw "
            "queries and keys, (samples, d_k) numbers for each, and multiply: not the dot products themselves.",
            pairs_are_drawn),
        Rung("every sample is a pair of its own", run(1, 1000),
            "The std jumps about from call to call, far more than chance allows, or never changes. Each sample needs a "
            "query and a key of its own: two draws of shape (samples, d_k).",
            stds_agree),
        Rung("no loop over the samples", (run(3, 50), run(3, 1000)),
            "Draw all queries as one matrix (samples, d_k), and let NumPy multiply, add and take the statistics. A "
            "loop over the samples, or over small blocks of them, takes more Python steps for more samples.",
            without_a_loop, chance(3, 1000, 1.2)),
        Rung("one sample lies at its mean", run(2, 1),
            "With one sample the mean is that sample, so std is 0 (or has no value, over samples − 1). "
            "Here it is not: std is the distance from the mean of the samples, products.std(), and "
            "there are `samples` products, no more.",
            one_sample_does_not_spread),
        Rung("std over many calls, d_k = 9", run(9, 400),
            "Over 100 calls, the standard deviations differ from √9 = 3 by more than 7%. "
            "Entries need variance 1, which rounded or clipped ones do not have; a pair has exactly d_k "
            "products; and std is products.std() as it is.",
            stds_come_near_the_root),
        Rung("std over many calls, d_k = 1", run(1, 400),
            "Over 100 calls, the standard deviations are off by more than 20%. A pair has d_k "
            "products, here one, of two entries of variance 1, and std is products.std() as it is.",
            stds_come_near_the_root),
        Rung("as many pairs as samples", run(50, 2),
            "Over 1000 calls with two samples the means stray further than std / √samples, or less far, or the stds "
            "do. Are `samples` pairs drawn, each used once? Draw (samples, d_k) numbers for both.",
            means_stray_as_pairs_do),
        Rung("the mean is that of all samples", run(1, 400),
            "Over 400 calls the means should lie on both sides of 0, bell-shaped, and stray by std / √samples. Take "
            "the mean of all products, products.mean(), with its sign.",
            means_lie_around_zero),
        Rung("one sample", run(1, 1),
            "With one sample and d_k = 1 the mean is the product of two numbers. Over 500 calls it strays by another "
            "amount. Draw the queries and the keys with the rng that is passed in.",
            single_products_stray_by_one),
    ]  # fmt: skip


def stable_softmax(rng: np.random.Generator) -> list[Rung]:
    apart = quarters(rng, 3, 4) + np.array([[10_000.0], [0.0], [-10_000.0]])
    hidden = draw(rng, 3, 4)
    hidden[0, 1] = hidden[2, :3] = -np.inf
    # No two of these are equal: exp(x - logsumexp(x)), which is right too, would lose log 2 beside 10^12.
    far_below = np.array([[-np.inf, -1e12, -2e12], [-1e12, 5.0, -np.inf]])
    # Neighbours that float32 makes equal. exp(x - logsumexp(x)) is right beside 10^7, to the ninth decimal.
    close = np.array([[20_000_001.0, 20_000_000.0, 19_999_998.5], [-30_000_003.0, -30_000_001.5, -30_000_000.5]])
    return [
        Rung("one entry takes all the weight", (np.array([3.0]),), "e^x / e^x is 1, whatever x is."),
        Rung("equal entries share equally", (np.full(4, 2.0),), "Equal entries leave nothing to choose between."),
        Rung("a row of five, some negative", (draw(rng, 5),),
            "Exponential of each entry, over the sum of all of them."),
        Rung("a matrix: each row on its own", (draw(rng, 3, 4),),
            "axis is −1 unless told otherwise: each row sums to 1. Take the maximum "
            "and sum along axis, with keepdims=True."),
        Rung("a square matrix", (draw(rng, 4, 4),),
            "With a square matrix, a lost axis raises no error. Take the maximum and the sum with keepdims=True."),
        Rung("a matrix, down the columns", (draw(rng, 3, 4), 0),
            "axis=0: each column sums to 1. Use axis in the maximum and in the sum."),
        Rung("three axes, the middle one", (draw(rng, 2, 3, 5), 1),
            "Any axis of any shape: use axis in the maximum and in the sum."),
        Rung("four axes, the second from the end", (draw(rng, 2, 3, 4, 2), -2),
            "A negative axis counts from the end. NumPy understands it as it is."),
        Rung("four axes, the first", (draw(rng, 2, 3, 1, 2), 0),
            "Any axis of any shape: use axis in the maximum and in the sum."),
        Rung("three axes, the last", (draw(rng, 2, 3, 4),),
            "axis is −1 unless told otherwise: the last axis, however many there are."),
        Rung("four axes, the last", (draw(rng, 3, 2, 4, 3),),
            "axis is −1 unless told otherwise: the last axis, however many there are."),
        Rung("three axes, axis −1", (draw(rng, 3, 4, 2), -1),
            "A negative axis counts from the end: −1 is the last. NumPy understands it as it is."),
        Rung("four axes, axis −1", (draw(rng, 2, 2, 3, 5), -1),
            "A negative axis counts from the end: −1 is the last. NumPy understands it as it is."),
        Rung("a matrix, axis −2", (draw(rng, 3, 4), -2),
            "A negative axis counts from the end: −2 of two axes is the first. NumPy understands it as it is."),
        Rung("three axes, axis −2", (draw(rng, 2, 4, 3), -2),
            "A negative axis counts from the end: −2 of three axes is the middle one. NumPy understands it as it is."),
        Rung("the axis given by name", (draw(rng, 3, 2), 0), "The second parameter is called axis.",
            softmax_by_name),
        Rung("x stays as it was", (hidden,),
            "The function writes into the x that was passed in. Make a new array: x - peak in "
            "place of x -= peak, and no x[...] = value.",
            changes),
        Rung("one 8 beside fifty 1s", (one_among_many(),),
            "e^−7 is small, but there are fifty of them: together they take 4% from the 8. Leave no entry out."),
        Rung("whole numbers", (np.array([[3, 1, 2], [0, 5, 4]]),), "Entries may be ints; the weights are not."),
        Rung("large entries", (np.array([1000.0, 1001.0, 999.0]),),
            "exp overflows above 709. Subtract the largest entry first: the ratio stays."),
        Rung("very negative entries", (np.array([-1000.0, -1001.0, -999.0]),),
            "exp gives 0 below −745, and 0 / 0 is no weight. Subtract the largest entry first."),
        Rung("entries from −10 000 to 10 000", (np.array([[10_000.0, -10_000.0, 9_999.5], [-10_000.0, 0.0, -0.25]]),),
            "Subtract the largest entry of each row along axis, not that of the whole array and not another one."),
        Rung("the largest entry in the middle", (np.array([-5_000.0, 8_000.0, 8_001.0, 7_999.0, 3.0]),),
            "Subtract the largest entry, not another one."),
        Rung("rows of very different size", (apart,),
            "Subtract the largest entry of each row, not of the whole array."),
        Rung("columns of very different size", (np.ascontiguousarray(apart.T), 0),
            "The largest entry is that along axis, as the sum is."),
        Rung("−∞ beside finite entries", (hidden,),
            "exp(−∞) is 0: −∞ gets the weight 0 and changes nothing for the others."),
        Rung("−∞ down a column", (np.ascontiguousarray(hidden.T), 0),
            "exp(−∞) is 0: −∞ gets the weight 0, along any axis."),
        Rung("−∞ beside entries of −10 000",
            (np.array([[-np.inf, -10_000.0, -10_001.0], [-10_002.5, -np.inf, -10_000.0]]),),
            "−∞ is smaller than any entry: put no finite number in its place. exp(−∞) is 0."),
        Rung("−∞ beside entries of −10¹²", (far_below,),
            "−∞ is smaller than any entry, even than −10¹²: put no finite number in its place. exp(−∞) is 0."),
        Rung("large entries that lie close together", (close,),
            "Beyond 16 777 216, float32 holds even numbers only, so neighbours become equal. Subtract the largest "
            "entry in the type of x; after that you may change to float32."),
        Rung("half precision", (ordinary_in_half(),), HALF_OVERFLOWS, tolerance=HALF),
        Rung("half precision, entries of 60 000", (large_in_half(),), HALF_ENDS, tolerance=HALF),
    ]  # fmt: skip


HALF_OVERFLOWS = (
    "In float16, exp already overflows above 11.09. Subtract the largest entry along "
    "axis always, not only from some size on."
)
HALF_ENDS = (
    "float16 ends at 65 504, and anything larger is infinity. Subtract the largest entry of each row "
    "along axis; no entry may grow on the way."
)


def one_among_many() -> np.ndarray:
    return np.array([1.0] * 20 + [8.0] + [1.0] * 30)


def ordinary_in_half() -> np.ndarray:
    return np.array([[12.0, 11.0, 10.0], [-3.0, 60.0, 59.5]], dtype=np.float16)


def large_in_half() -> np.ndarray:
    return np.array([[60_000, -np.inf, 59_968], [-60_000, -59_968, -np.inf]], dtype=np.float16)


def softmax_by_name(softmax: Callable, x: np.ndarray, axis: int) -> dict[str, Any]:
    return {"weights": softmax(x, axis=axis)}


def logsumexp_by_name(logsumexp: Callable, x: np.ndarray, axis: int) -> dict[str, Any]:
    return {"logsumexp": logsumexp(x, axis=axis)}


def logsumexp(rng: np.random.Generator) -> list[Rung]:
    apart = quarters(rng, 3, 4) + np.array([[10_000.0], [0.0], [-10_000.0]])
    hidden = draw(rng, 3, 4)
    hidden[0, 1] = hidden[2, :3] = -np.inf
    far_below = np.array([[-np.inf, -1e12, -1e12], [-1e12, 5.0, -np.inf]])
    return [
        Rung("one entry", (np.array([3.0]),),
            "log e^x is x. One row gives one number, of no axes: the axis is summed away."),
        Rung("four zeros", (np.zeros(4),), "log(1 + 1 + 1 + 1) = log 4, the natural logarithm."),
        Rung("a row of five, some negative", (draw(rng, 5),),
            "Exponential of each entry, the sum of all, then the logarithm."),
        Rung("a matrix: one number for each row", (draw(rng, 3, 4),),
            "axis is −1 unless told otherwise, and it disappears: (3, 4) gives (3,)."),
        Rung("a matrix, down the columns", (draw(rng, 3, 4), 0),
            "axis=0 leaves one number for each column: (3, 4) gives (4,)."),
        Rung("a square matrix", (draw(rng, 4, 4),),
            "With a square matrix, a lost axis raises no error. Keep it with keepdims=True until the end."),
        Rung("three axes, the middle one", (draw(rng, 2, 3, 5), 1), "(2, 3, 5) along axis 1 gives (2, 5)."),
        Rung("four axes, the second from the end", (draw(rng, 2, 3, 4, 2), -2),
            "A negative axis counts from the end. NumPy understands it as it is."),
        Rung("three axes, the last", (draw(rng, 2, 3, 4),),
            "axis is −1 unless told otherwise: (2, 3, 4) gives (2, 3)."),
        Rung("four axes, the last", (draw(rng, 3, 2, 4, 3),),
            "axis is −1 unless told otherwise: (3, 2, 4, 3) gives (3, 2, 4)."),
        Rung("three axes, axis −1", (draw(rng, 3, 4, 2), -1),
            "A negative axis counts from the end: −1 is the last. NumPy understands it as it is."),
        Rung("four axes, axis −1", (draw(rng, 2, 2, 3, 5), -1),
            "A negative axis counts from the end: −1 is the last. NumPy understands it as it is."),
        Rung("a matrix, axis −2", (draw(rng, 3, 4), -2),
            "A negative axis counts from the end: −2 of two axes is the first. NumPy understands it as it is."),
        Rung("three axes, axis −2", (draw(rng, 2, 4, 3), -2),
            "A negative axis counts from the end: −2 of three axes is the middle one. NumPy understands it as it is."),
        Rung("other axes of length one stay", (draw(rng, 1, 4, 1), 1),
            "Only axis disappears: (1, 4, 1) along axis 1 gives (1, 1). Give np.squeeze the axis."),
        Rung("an axis of length one before the last", (draw(rng, 2, 1, 3),),
            "Only the last axis disappears: (2, 1, 3) gives (2, 1). squeeze() without an axis drops both."),
        Rung("an axis of length one after the middle", (draw(rng, 3, 4, 1), 1),
            "Only axis disappears: (3, 4, 1) along axis 1 gives (3, 1). Give squeeze the axis."),
        Rung("the axis given by name", (draw(rng, 3, 2), 0), "The second parameter is called axis.",
            logsumexp_by_name),
        Rung("x stays as it was", (hidden,),
            "The function writes into the x that was passed in. Make a new array: x - peak in "
            "place of x -= peak, and no x[...] = value.",
            changes),
        Rung("one 8 beside fifty 1s", (one_among_many(),),
            "e^−7 is small, but there are fifty of them: they add 0.045 to the 8. Leave no entry out."),
        Rung("whole numbers", (np.array([[3, 1, 2], [0, 5, 4]]),), "Entries may be ints; the results are not."),
        Rung("large entries", (np.array([1000.0, 1001.0, 999.0]),),
            "exp overflows above 709. Take the largest entry out of the sum first, and add it after the logarithm."),
        Rung("very negative entries", (np.array([-1000.0, -1001.0, -999.0]),),
            "exp gives 0 below −745, and log 0 is −∞. Take the largest entry out of the sum first."),
        Rung("entries from −10 000 to 10 000", (np.array([[10_000.0, -10_000.0, 9_999.5], [-10_000.0, 0.0, -0.25]]),),
            "Take out the largest entry of each row along axis, not that of the whole array and not another one."),
        Rung("the largest entry in the middle", (np.array([-5_000.0, 8_000.0, 8_001.0, 7_999.0, 3.0]),),
            "Take out the largest entry, not another one."),
        Rung("two groups far apart", (np.array([-500.0, 500.25, -499.5, 500.0]),),
            "Take out the largest entry, not another one."),
        Rung("equal entries of 10 000", (np.full((2, 5), 10_000.0),),
            "Five equal entries give the entry plus log 5, however large it is."),
        Rung("rows of very different size", (apart,),
            "Take out the largest entry of each row, not of the whole array."),
        Rung("columns of very different size", (np.ascontiguousarray(apart.T), 0),
            "The largest entry is that along axis, as the sum is."),
        Rung("−∞ beside finite entries", (hidden,), "exp(−∞) is 0 and adds nothing to the sum."),
        Rung("−∞ beside entries of −10 000",
            (np.array([[-np.inf, -10_000.0, -10_001.0], [-10_002.5, -np.inf, -10_000.0]]),),
            "−∞ is smaller than any entry: put no finite number in its place. exp(−∞) is 0."),
        Rung("−∞ beside entries of −10¹²", (far_below,),
            "−∞ is smaller than any entry, even than −10¹²: put no finite number in its place. exp(−∞) is 0."),
        Rung("half precision", (ordinary_in_half(),), HALF_OVERFLOWS, tolerance=HALF),
        Rung("half precision, entries of 60 000", (large_in_half(),), HALF_ENDS, tolerance=HALF),
    ]  # fmt: skip


def softmax_jacobian(rng: np.random.Generator) -> list[Rung]:
    def weights(*shape):
        exps = np.exp(draw(rng, *shape))
        return exps / exps.sum(axis=-1, keepdims=True)

    return [
        Rung("one key", (np.array([1.0]),), "With one key its weight is 1 and nothing moves it. The result is 1 × 1."),
        Rung("two equal weights", (np.array([0.5, 0.5]),),
            "p(1 − p) = 0.25 on the diagonal, −p_i p_j = −0.25 beside it."),
        Rung("three weights", (np.array([0.5, 0.3, 0.2]),),
            "p_i on the diagonal, minus the table of all products p_i p_j. p is what came out of the softmax."),
        Rung("one key has all the weight", (np.array([0.0, 1.0, 0.0, 0.0]),),
            "Products with 0 are 0 and 1 − 1 is 0: nothing moves."),
        Rung("a weight of 0", (np.array([0.25, 0.0, 0.75]),), "A weight of 0 has a row and a column of zeros."),
        Rung("a batch of 2 with 4 keys", (weights(2, 4),),
            "One matrix for each row of p: (2, 4) gives (2, 4, 4). Count axes from the "
            "end: p[..., :, None] and p[..., None, :]."),
        Rung("a batch of 3 with 3 keys", (weights(3, 3),),
            "With equal sizes, a wrong axis raises no error. One matrix for each row of p: (3, 3) gives (3, 3, 3)."),
        Rung("batch and heads", (weights(2, 3, 5),),
            "Count axes from the end: p[..., :, None] and p[..., None, :], never axis 0, 1 or 2."),
        Rung("three leading axes", (weights(2, 1, 3, 2),), "There may be any number of leading axes."),
        Rung("a batch of one", (weights(1, 3),), "A batch of one keeps its axis: (1, 3) gives (1, 3, 3)."),
        Rung("p stays as it was", (np.array([[0.25, 0.0, 0.75]]),),
            "The function writes into the p that was passed in. Make a new array: p.copy() first, "
            "or plain * and - instead of *= and -=.",
            changes),
    ]  # fmt: skip


def correlated(rng: np.random.Generator) -> list[Rung]:
    rho = round(float(rng.uniform(0.55, 0.85)), 2)
    return [
        Rung("no correlation", (7, 0.0), "With rho = 0 it is the lesson's case: mean 0, variance d_k."),
        Rung("one pair, correlation 1/2", (1, 0.5),
            "E[q k] is the correlation. Var(q k) is E[q²k²] − (E[q k])², with E[q²k²] = 1 + 2ρ²."),
        Rung("nine pairs, correlation 1/2", (9, 0.5), "Means add up over the d_k pairs, and so do variances."),
        Rung("equal: correlation 1", (16, 1.0), "q = k: the mean of q·q is d_k and its variance 2 d_k."),
        Rung("opposite: correlation −1", (16, -1.0), "k = −q: the mean is −d_k. The variance is that of q·q."),
        Rung("a negative correlation", (5, -0.3), "The sign of rho stays in the mean. The variance has rho squared."),
        Rung("a weak correlation", (100, 0.1), "Mean d_k times that of one pair, variance d_k times that of one pair."),
        Rung("a strong correlation", (int(rng.integers(20, 60)), rho),
            "Exact numbers, not rounded ones and not a simulation."),
        Rung("whole numbers", (64, 1), "rho may be an int."),
    ]  # fmt: skip


def attention_scale(rng: np.random.Generator) -> list[Rung]:
    def queries(*shape):
        return (rng.standard_normal(shape),)

    return [
        Rung("heads of width 128", queries(1, 2, 3, 128),
            "1/√128 = 0.0884. The scale depends on d_head, the last axis of q. Return the number itself."),
        Rung("heads of width 1", queries(2, 3, 5, 1), "1/√1 is 1."),
        Rung("heads of width 7", queries(2, 3, 5, 7), "1/√d_head, where d_head is the last axis of q."),
        Rung("eight heads of width 64", queries(1, 8, 3, 64),
            "d_head is the width of one head, not of all heads together."),
        Rung("one query, heads of width 6", queries(3, 4, 1, 6), "The number of queries does not matter."),
        Rung("many queries, heads of width 2", queries(1, 5, 33, 2), "The number of queries does not matter."),
        Rung("q stays as it was", queries(2, 3, 4, 5),
            "The function writes into the q that was passed in. Only its shape is needed; return the number.",
            changes),
    ]  # fmt: skip


def saturation(rng: np.random.Generator) -> list[Rung]:
    def run(d_k, n_keys, scaled, samples):
        return d_k, n_keys, scaled, samples, generator(rng)

    def case(name, d_k, n_keys, scaled, samples, spread, why):
        tolerance = {"largest": (0.0, 7.8 * spread / math.sqrt(CALLS * samples))}
        return Rung(name, run(d_k, n_keys, scaled, samples), why, mean_of_calls, tolerance)

    def once(name, d_k, n_keys, scaled, samples, spread, why):
        tolerance = {"largest": (0.0, 7.8 * spread / math.sqrt(samples))}
        return Rung(name, run(d_k, n_keys, scaled, samples), why, tolerance=tolerance)

    return [
        Rung("one key has all the weight", run(3, 1, True, 50),
            "With one key its weight is 1. The softmax runs over the keys of one sample: queries are (samples, 1, "
            "d_k), keys (samples, n_keys, d_k). Return one number, the mean over the samples."),
        Rung("every sample has a query and keys of its own", run(1, 5, False, 500),
            "The answer jumps about from call to call, far more than chance allows: one query, or one set of keys, "
            "serves all samples. Draw (samples, 1, d_k) and (samples, n_keys, d_k).",
            calls_agree),
        once("eight keys, d_k = 64, no scale", 64, 8, False, 300, 0.165,
            "The scores have a standard deviation of 8 here, and one key takes most of the weight. The softmax runs "
            "over the keys of a sample; take its maximum, then the mean over the samples."),
        once("eight keys, d_k = 64, scaled", 64, 8, True, 300, 0.119,
            "Divide the scores by √d_k before the softmax when scaled is True."),
        Rung("the same state of rng gives the same number", run(5, 3, True, 200),
            "Two calls with generators in the same state gave different numbers. Draw with the rng that is "
            "passed in, not with np.random or torch.",
            same_state_same_figures),
        Rung("another state of rng gives another number", run(5, 3, True, 200),
            "Generators in different states should give different numbers. Draw with the rng that "
            "is passed in, not with one made inside.",
            other_state_other_figures),
        case("three keys, d_k = 9, no scale", 9, 3, False, 100, 0.175, "The softmax runs over the keys of one sample."),
        case("three keys, d_k = 9, scaled", 9, 3, True, 100, 0.144, "Divide the scores by √d_k, before the softmax."),
        case("five keys, d_k = 3, scaled", 3, 5, True, 100, 0.153,
            "Divide the scores by √d_k, before the softmax. All entries of queries and keys are standard normal."),
        case("twenty keys, d_k = 5, scaled", 5, 20, True, 100, 0.108,
            "n_keys may be any number. All entries of queries and keys are standard normal."),
        case("eight keys, d_k = 2, no scale", 2, 8, False, 250, 0.193,
            "The entries of q or of k are not standard normal, or the scores are no dot products. At small d_k it "
            "shows, because the keys of a sample share one query. Draw one query and n_keys keys for each sample."),
        case("twelve keys, d_k = 1", 1, 12, True, 250, 0.161,
            "The entries of q or of k are not standard normal, or the scores are no dot products. At d_k = 1 scores "
            "are products of a shared query and a key. Draw one query and n_keys keys for each sample."),
        once("eight keys, d_k = 400, no scale", 400, 8, False, 60, 0.113,
            "The scores have a standard deviation of 20 here: almost all the weight is on one key."),
        Rung("two samples", run(16, 5, True, 2),
            "Over 1000 calls with two samples the answers spread too far or too little. Do you draw as many "
            "samples as asked? The query of a sample meets the keys of that sample only.",
            spread_is_that_of_two_samples),
        Rung("one sample", run(3, 2, False, 1),
            "Over 500 calls with one sample the answers are too large or too small on average. Draw the query and the "
            "keys with the rng that is passed in, at every call.",
            single_samples_average_out),
        Rung("scores in the millions", run(64, 8, False, 40),
            "Here rng draws entries a thousand times larger, and e^s is ∞ or 0. Subtract the largest score of each "
            "sample first. Clipped scores and filled-in NaNs do not help.",
            loud_entries_are_no_trouble),
    ]  # fmt: skip


def attention_backward(rng: np.random.Generator) -> list[Rung]:
    def of(n, m, d_k, d_v, lead=(), size=1.0):
        return *draw_qkv(rng, n, m, d_k, d_v, lead, size), draw(rng, *lead, n, d_v)

    # The scores over √2 are log 3 and 0, so the weights are 3/4 and 1/4.
    pencil = ([[1.0, 0.0]], [[math.sqrt(2) * math.log(3), 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 4.0]], [[1.0, 0.0]])
    q, k, v, do = of(3, 5, 3, 2)
    return [
        Rung("one key", of(2, 1, 3, 5),
            "With one key the weight is 1, whatever the score: dq and dk are 0. dv is the sum of do over the queries.",
            shape_hint="dk and dv have a row for each key. The weights and dS have a row for each query: swap their "
            "last two axes."),
        Rung("weights of 3/4 and 1/4", tuple(np.array(a) for a in pencil),
            "On paper: the weights are 3/4 and 1/4, and do · v is 4 and 0. The Jacobian of the softmax makes 3/4 "
            "and −3/4 of that, and the scale divides both by √2."),
        Rung("two queries, two keys", of(2, 2, 2, 3),
            "Path 1: dv = Aᵀ do. Path 2: dA = do vᵀ. Path 3: each row g of dA becomes p ∘ (g − p · g), then "
            "come the scale, k for dq and q for dk."),
        Rung("equal values", (q, k, np.ones_like(v), do),
            "All values are equal, so the output does not depend on the weights: dq and dk are 0. It is p · g that "
            "takes the common part out of a row g of dA."),
        Rung("3 queries, 5 keys, d_k = 6, d_v = 2", of(3, 5, 6, 2),
            shape_hint="dq has the shape of q, dk that of k, dv that of v. Return them in this order."),
        Rung("5 queries, 3 keys, d_k = 2, d_v = 6", of(5, 3, 2, 6),
            "n may be larger or smaller than m, and d_k than d_v. p · g is one number for each query."),
        Rung("all sizes equal", of(3, 3, 3, 3),
            "With equal sizes, a wrong transpose raises no error. dv and dk have a row for each key, so they need the "
            "transposed weights and the transposed dS."),
        Rung("d_k = 9, the scale", of(4, 5, 9, 3, size=1.5),
            "The scores are divided by √d_k before the softmax, and what comes "
            "back through it is divided by √d_k too."),
        Rung("a gradient of zeros", (q, k, v, np.zeros_like(do)), "Where do is 0 all gradients are 0."),
        Rung("a batch of 2", of(3, 4, 5, 2, (2,)),
            "Swap the last two axes only: np.swapaxes(k, -1, -2). k.T reverses all of them. Sums along "
            "an axis need axis=-1 and keepdims=True."),
        Rung("a batch of 3 with 3 tokens each", of(3, 3, 3, 3, (3,)),
            "With equal sizes, a wrong axis raises no error. Count axes from the end."),
        Rung("batch and heads", of(3, 4, 5, 2, (2, 3)),
            "There may be any number of leading axes: count axes from the end."),
        Rung("large scores", of(4, 6, 3, 2, size=40.0),
            "e^s is ∞ above 709, and 0 below −745. Your softmax of exercise 7 subtracts the largest of each row."),
        Rung("what it is given stays as it was", of(3, 4, 5, 2),
            "The numbers are right, but an array that was passed in is changed. "
            "Make new ones: a * b instead of a *= b.",
            changes),
    ]  # fmt: skip


def layer_backward(rng: np.random.Generator) -> list[Rung]:
    def of(n, d, d_k, d_v, lead=(), size=1.0):
        w_q, w_k, w_v = (draw(rng, d, width) for width in (d_k, d_k, d_v))
        return draw(rng, *lead, n, d), size * w_q, size * w_k, w_v, draw(rng, *lead, n, d_v)

    x, w_q, w_k, w_v, do = of(3, 4, 5, 2)
    return [
        Rung("one token", of(1, 2, 3, 5),
            "One token attends to itself alone, with the weight 1 whatever the score: dw_q and dw_k are 0. dw_v is "
            "xᵀ do, and dx is do w_vᵀ."),
        Rung("two tokens, three numbers each", of(2, 3, 2, 4),
            "q = x w_q, so dw_q = xᵀ dq, and the same for k and v. dx has a term from each of the three."),
        Rung("w_q is 0", (x, np.zeros_like(w_q), w_k, w_v, do),
            "All scores are 0 and the weights equal. Now q is 0, so dk and dw_k are 0. dw_q is not, because dq "
            "is not."),
        Rung("w_v is 0", (x, w_q, w_k, np.zeros_like(w_v), do),
            "All values are 0, so the weights do not matter: dq and dk are 0, and with them dw_q, dw_k and dx."),
        Rung("4 tokens, d = 3, d_k = 5, d_v = 2", of(4, 3, 5, 2),
            shape_hint="dx has the shape of x, and each dw that of its w. Return (dx, dw_q, dw_k, dw_v)."),
        Rung("2 tokens, d = 6, d_k = 3, d_v = 5", of(2, 6, 3, 5),
            "The three widths may all differ. dw_q is (d, d_k): xᵀ comes first."),
        Rung("all sizes equal", of(3, 3, 3, 3),
            "With equal sizes, a wrong transpose raises no error. dw_q = xᵀ dq, and dx holds dq w_qᵀ."),
        Rung("d_k = 9, the scale", of(4, 3, 9, 3),
            "The scale 1/√d_k acts on the scores, and on what comes back through them."),
        Rung("a gradient of zeros", (x, w_q, w_k, w_v, np.zeros_like(do)), "Where do is 0 all gradients are 0."),
        Rung("a batch of 2", of(3, 4, 5, 2, (2,)),
            "The same w_q serves both sequences, so their contributions add up: dw_q is (d, d_k), without a "
            "batch. dx keeps the batch, because each sequence has its own x."),
        Rung("a batch of 3 with 3 tokens each", of(3, 3, 3, 3, (3,)),
            "With equal sizes, a wrong axis raises no error. Add up over the batch, and keep the numbers of x apart."),
        Rung("a batch of one", of(3, 2, 4, 3, (1,)), "dw_q is (d, d_k) with a batch of one as well."),
        Rung("two leading axes", of(2, 3, 4, 2, (2, 3)),
            "There may be any number of leading axes: x.reshape(-1, d) puts all tokens under each other."),
        Rung("large scores", of(4, 3, 3, 2, size=30.0),
            "e^s is ∞ above 709, and 0 below −745. Your softmax of exercise 7 subtracts the largest of each row."),
        Rung("what it is given stays as it was", of(3, 4, 5, 2),
            "The numbers are right, but an array that was passed in is changed. "
            "Make new ones: a + b instead of a += b on what was passed in.",
            changes),
        Rung("all gradients in float64", of(3, 4, 5, 2),
            "All arrays are float64, and so are the gradients: nothing on the way may be rounded to float32.",
            gradients_in_float64),
        Rung("one number each", of(2, 2, 1, 1),
            shape_hint="A gradient has the shape of its array, also with axes of length 1."),
        Rung("large gradients", (*of(3, 2, 3, 2)[:4], 100 * draw(rng, 3, 2)), "do may be of any size: cut nothing."),
        Rung("large scores, all rows alike", (x + 0.0, 30 * np.abs(w_q), 30 * np.abs(w_k), w_v, do),
            "e^s is ∞ above 709, and 0 below −745. Your softmax of exercise 7 subtracts the largest of each row."),
        Rung("scores that float32 cannot tell apart",
            (np.array([[1000.0, 0.0], [1000.0 + 2**-15, 1.0]]), *[np.eye(2, 1)] * 2, np.eye(2)[:, 1:], np.eye(2, 1)),
            "All arrays are float64, and scores may be large: keep float64 on the way, too."),
    ]  # fmt: skip


def gradients_in_float64(function: Callable, *args: np.ndarray) -> dict[str, Any]:
    """The four gradients of a layer, if all are float64."""
    return only_in(named(function(*args), ("dx", "dw_q", "dw_k", "dw_v")), "float64")


def half_attention(rng: np.random.Generator) -> list[Rung]:
    def of(n, m, d_k, d_v, lead=(), size=1.0):
        return tuple(x.astype(np.float16) for x in draw_qkv(rng, n, m, d_k, d_v, lead, size))

    def halves(*arrays):
        return tuple(np.array(x, dtype=np.float16) for x in arrays)

    # q · k_j is 256 · 256 + g_j: beyond float16 before scaling, and 16 384 + g_j / 4 after it.
    far = np.zeros((1, 16))
    keys = np.zeros((4, 16))
    far[0, :2] = (256, 1)
    keys[:, 0] = 256
    keys[:, 1] = (0, 6, 2, 5)
    near = [[50.0], [50.03125], [50.0625], [49.96875]]  # neighbours in float16; times 40 they are 1.25 apart
    many = 70_000
    behind = np.full((5_001, 1), 3000.0)
    behind[0] = 0.0
    late = 1.0 * (np.arange(3_000)[:, None] == 2_999) - 1
    return [
        Rung("one key: the output is its value", of(2, 1, 3, 5), "With one key its weight is 1."),
        Rung("the worked example", halves(Q, K, V), "The three-token example of day 1, in float16."),
        Rung("2 queries, 4 keys, d_k = 3, d_v = 5", of(2, 4, 3, 5),
            shape_hint="Return the output alone, of shape (n, d_v)."),
        Rung("3 queries, 5 keys, d_k = 9, d_v = 2", of(3, 5, 9, 2), "The scale is 1/√d_k."),
        Rung("scores past 11.09", halves([[4.0], [-5.0]], [[4.0], [3.75], [-4.0]], draw(rng, 3, 2)),
            "In float16 exp overflows above 11.09. Subtract the largest score of each row first."),
        Rung("scores in the hundreds", of(3, 4, 5, 2, size=12.0),
            "In float32 exp overflows above 88.7. Subtract the largest score of each row first."),
        Rung("scores near 2000, 1.25 apart", halves([[40.0]], near, draw(rng, 4, 2)),
            "float16 keeps eleven binary digits: from 1024 to 2048 its numbers are 1 apart, so scores lose their "
            "quarters there. Turn q and k into float32 before they are multiplied."),
        Rung("scores near 2000 at d_k = 3", halves([[31.0] * 3], [[37.0] * 3, [37.0, 37.0, 37.03125]], [[2.0], [-2.0]]),
            "float16 holds neither 1/√3 nor k/√3 exactly, so scaling there loses the difference of the two scores. "
            "Turn q and k into float32 first."),
        Rung("scores past 65 504", halves(far, keys, draw(rng, 4, 3)),
            "The sum over d_k overflows float16 before it is scaled, and scaling q first leaves scores of 16 384, "
            "where numbers of float16 are 16 apart. Turn q and k into float32 before the product."),
        Rung("values of 30 000", halves([[0.0, 0.0]], np.zeros((3, 2)), [[30_000.0], [29_984.0], [20_000.0]]),
            "The output fits into float16, but a sum of exponentials times values does not. Divide by the sum "
            "first, or add up in float32."),
        Rung("values that nearly cancel", halves([[1.0, 0.0]], [[0.1, 0.0], [0.05, 0.0]], [[3000.0], [-2900.0]]),
            "Weights in float16 have three digits, and here the output loses two of them. Blend with weights in "
            "float32, and round at the end."),
        Rung("5 000 keys, none ahead", halves([[0.5, -0.5]], np.full((5_000, 2), 2.0), 1 + draw(rng, 5_000, 1) / 4),
            "2048 + 1 is 2048 in float16: a sum of many small terms stands still there. Add up in float32."),
        Rung("70 000 keys, none ahead", halves([[1.0]], np.zeros((many, 1)), 1 + draw(rng, many, 1) / 4),
            "The sum of 70 000 exponentials of 0 overflows float16. Add up in float32."),
        Rung("5 000 keys far behind one", halves([[1.0, 0.0]], np.eye(5_001, 2) * 20, behind),
            "Each of the many has a weight of less than a millionth, where float16 has hardly any numbers, and none of "
            "the gap of 14.14 either. Keep gaps and weights in float32."),
        Rung("a batch of 2", of(3, 4, 5, 2, (2,)), "Swap the last two axes only: np.swapaxes(k, -1, -2)."),
        Rung("batch and heads", of(3, 3, 3, 3, (2, 3)),
            "There may be any number of leading axes: count axes from the end."),
        Rung("q, k and v stay as they were", of(3, 4, 5, 2),
            "The function writes into an array that was passed in. Make a new one: q * scale instead of q *= scale.",
            changes),
        Rung("the output in float16 or float32", of(2, 4, 3, 5),
            "An output in float64 takes four times the memory. Compute in float32, where it matters.",
            output_in_half_or_single),
        Rung("a scaled score past 65 504", halves([[300.0]], [[300.0], [299.0]], [[1.0], [2.0]]),
            "With d_k = 1 the scale is 1, and scores are as large as products: no score fits into float16."),
        Rung("values of 60 000", halves([[1.0]], [[1.0], [0.5]], [[60_000.0], [59_968.0]]),
            "The output fits into float16, which ends at 65 504."),
        Rung("3 000 keys, the leader last", halves([[1.0]], 8.0 * (np.arange(3_000)[:, None] >= 2_999), late) ,
            "If you work block by block, keep the largest score so far, and rescale your sums when it grows."),
        Rung("3 000 keys, the leader first", halves([[10.0]], 10 * (np.arange(3_000)[:, None] == 0), late[::-1]),
            "Later blocks lie far below the largest score so far: their exponentials are nearly 0."),
    ]  # fmt: skip


def output_in_half_or_single(function: Callable, *args: np.ndarray) -> dict[str, Any]:
    """The output of attention, if it is float16 or float32."""
    return only_in({"output": function(*args)}, "float16", "float32")


def float32_is_enough(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> bool:
    """Return whether scores in float32 give nearly the same weights as scores in float64."""
    exps = []
    for dtype in (np.float32, np.float64):
        scores = q.astype(dtype) @ np.swapaxes(k, -1, -2).astype(dtype) / math.sqrt(q.shape[-1])
        exps.append(np.exp(scores - scores.max(axis=-1, keepdims=True)))
    single, double = exps
    return bool(np.allclose(single, double, atol=1e-4))


def find_the_bug(rng: np.random.Generator) -> list[Rung]:
    arrays = partial(draw_qkv, rng)
    far_apart = rows_far_apart(rng)
    return [
        Rung("one key: the output is its value", arrays(2, 1, 3, 5),
            "With one key its weight is 1, whatever the scale."),
        Rung("d_k = 1: a scale of 1", arrays(2, 4, 1, 3), "√1 is 1, so nothing is scaled here."),
        Rung("the worked example", tuple(np.array(a) for a in (Q, K, V)),
            "The three-token example of day 1. Each row of weights sums to 1."),
        Rung("d_k = 9: softer by the scale", arrays(3, 3, 9, 2, size=2.0),
            "Rows of weights sum to 1, and they are those of scores divided by √9 = 3."),
        Rung("2 queries, 4 keys, d_k = 3, d_v = 5", arrays(2, 4, 3, 5),
            shape_hint="Return the pair (output, weights), of shapes (n, d_v) and (n, m)."),
        Rung("a batch of 2", arrays(3, 4, 5, 2, (2,)), "The batch was right before: leave it alone."),
        Rung("a batch of 3 with 3 tokens each", arrays(3, 3, 3, 3, (3,)),
            "With equal sizes, a wrong axis raises no error."),
        Rung("batch and heads", arrays(3, 4, 5, 2, (2, 3)), "d_k is the last axis of q, whatever comes before it."),
        Rung("three leading axes", arrays(2, 3, 2, 4, (2, 1, 3)), "There may be any number of leading axes."),
        Rung("large scores", arrays(2, 3, 3, 2, (2,), size=60.0), "Subtract the largest score of each row before exp."),
        Rung("all scores far below zero", far_below_zero(rng),
            "All scores are below −745 here. Subtract the largest score of each row, whatever its sign."),
        Rung("rows of very different size", far_apart,
            "Here exp is 0 for a whole row unless the maximum subtracted is that of the row: axis −1, keepdims=True."),
        Rung("q, k and v stay as they were", arrays(3, 4, 5, 2, (2,)),
            "The function writes into an array that was passed in. Make a new one: q * scale instead of q *= scale.",
            changes),
    ]  # fmt: skip


AXIS_BY_NAME = "{f}(x, axis=axis)"
LADDERS = {
    "variance_by_hand": Ladder(
        ("var_raw_64", "var_scaled_64", "mean_if_equal_64"),
        by_hand=True,
        advice="Go through it again: one term first, then 64 of them, then the scale.",
    ),
    "dot_product_stats": Ladder(("dot_product_stats",), ("mean", "std", "standard_error"), dot_product_stats),
    "correlated": Ladder(
        ("dot_moments",), ("mean", "variance"), correlated, small=(Small((whole(), one_of(0.5, 1, -1, 0))),)
    ),
    "attention_scale": Ladder(
        ("attention_scale",), ("scale",), attention_scale, tensors=True, small=(Small(("B h n d",)),)
    ),
    "saturation": Ladder(("saturation",), ("largest",), saturation),
    "find_the_bug": Ladder(
        ("broken_attention",),
        ("output", "weights"),
        find_the_bug,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("… n d", "… m d", "… m e")),),
    ),
    "stable_softmax": Ladder(
        ("softmax",),
        ("weights",),
        stable_softmax,
        forbidden=STABLE_SOFTMAX,
        small=(Small(("…",), measures=(softmax_by_name,), names=("x", "axis"), code=AXIS_BY_NAME), Small(("…",))),
    ),
    "logsumexp": Ladder(
        ("logsumexp",),
        ("logsumexp",),
        logsumexp,
        forbidden=LIBRARY_LOGSUMEXP,
        small=(Small(("…",), measures=(logsumexp_by_name,), names=("x", "axis"), code=AXIS_BY_NAME), Small(("…",))),
    ),
    "half_attention": Ladder(
        ("half_attention",),
        ("output",),
        half_attention,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("… n d", "… m d", "… m e"), fits=float32_is_enough),),
    ),
    "softmax_jacobian": Ladder(
        ("softmax_jacobian",), ("jacobian",), softmax_jacobian, small=(Small((shares("… m"),)),)
    ),
    "attention_backward": Ladder(
        ("attention_backward",),
        ("dq", "dk", "dv"),
        attention_backward,
        forbidden=AUTOGRAD,
        small=(Small(("… n d", "… m d", "… m e", "… n e")),),
    ),
    "layer_backward": Ladder(
        ("layer_backward",),
        ("dx", "dw_q", "dw_k", "dw_v"),
        layer_backward,
        forbidden=AUTOGRAD,
        small=(Small(("… n d", "d k", "d k", "d e", "… n e")),),
    ),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
CALLS = 40
PCG64 = 0x2360ED051FC65DA44385DF649FCCF645  # the multiplier of the generator that default_rng makes


def generator(rng: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(int(rng.integers(2**62)))


def quarters(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return multiples of a quarter, exact in float32 even after adding ±10 000."""
    return (4 * draw(rng, *shape)).round() / 4


# Measures of a function that draws random numbers -------------------------------------------------------------------


def figures(result: Any) -> tuple[float, ...]:
    return tuple(float(x) for x in result) if isinstance(result, (tuple, list)) else (float(result),)


def error_is_std_over_root(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> float:
    """Return 1.0 if in five calls the standard error is std / √samples to a thousandth; std may be over n or n − 1."""
    calls = [figures(function(d_k, samples, rng)) for _ in range(5)]
    return float(all(abs(error * math.sqrt(samples) / std - 1) < 1e-3 for _, std, error in calls))


def with_their_ratio(function: Callable, *args: Any) -> dict[str, float]:
    """Return the figures and std / standard_error, of which chance takes no part: a wrong error shows in it alone."""
    mean, std, standard_error = figures(function(*args))
    ratio = std / standard_error if standard_error else math.nan
    return {"mean": mean, "std": std, "standard_error": standard_error, "std / standard_error": ratio}


def without_a_loop(function: Callable, few: tuple, many: tuple) -> dict[str, Any]:
    """Return whether more samples take more Python steps, with the figures for the many samples."""
    results = []
    growth = bytecodes_grow(lambda *args: results.append(figures(function(*args))), few, many)
    mean, std, standard_error = results[-1]
    return {"mean": mean, "std": std, "standard_error": standard_error, "growth of Python steps": growth}


def pairs_are_drawn(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> float:
    """Return 1.0 if the draws from rng grow with samples and with d_k, or if rng only seeds another one; else 0.0."""
    few, many, wide = (taken(function, *sizes, rng) for sizes in ((1, samples // 10), (1, samples), (d_k, samples)))
    if many == 0 and np.array_equal(*many_calls(2, function, d_k, samples, rng)):
        return 0.0  # nothing comes from rng, not even from generators that it spawns
    return float(many < few + 10 or wide > many * d_k / 4)


def taken(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> int:
    """Count the steps by which a call advances rng, a PCG64, whose state is a linear congruential generator."""
    state, inc = (rng.bit_generator.state["state"][part] for part in ("state", "inc"))
    function(d_k, samples, rng)
    target = rng.bit_generator.state["state"]["state"]
    # a step is state · factor + inc, and repeated squaring gives 2, 4, 8, … steps: the bits of the count, lowest first
    steps = 0
    bit = 1
    factor = PCG64
    while state != target and bit < 2**128:
        if (state ^ target) & bit:
            state = (state * factor + inc) % 2**128
            steps = steps + bit
        inc = (factor + 1) * inc % 2**128
        factor = factor**2 % 2**128
        bit = 2 * bit
    return steps


def one_sample_does_not_spread(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> float:
    """Return 0.0 if in five calls with one sample the std is 0 or undefined, 1.0 if it equals |mean|, else 2.0."""
    try:
        means, stds, _ = many_calls(5, function, d_k, samples, rng).T
    except (ZeroDivisionError, ValueError):
        return 0.0
    if all(math.isnan(std) or abs(std) < 1e-6 for std in stds):
        return 0.0
    return 1.0 if np.allclose(np.abs(means), stds) else 2.0


def stds_agree(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> float:
    """Return 1.0 if the middle half of 20 stds lies close together, as it does not with one query for all samples.

    Stds that are all the same are none of samples, and give 0.0.
    """
    stds = many_calls(20, function, d_k, samples, rng)[:, 1]
    low, high = np.quantile(stds, [0.25, 0.75])
    return float(high < 1.5 * low and np.ptp(stds) > 0)


def stds_come_near_the_root(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> float:
    """Return 0 if the median std of 100 calls is √d_k to 7%, or to 20% for d_k = 1 (see `side`)."""
    middle = np.median(many_calls(100, function, d_k, samples, rng)[:, 1]) / math.sqrt(d_k)
    margin = 0.07 if d_k > 1 else 0.2
    return side(middle, 1 - margin, 1 + margin)


def means_lie_around_zero(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> list[float]:
    """Return zeros if the means of 400 calls have the expected centre, spread and bell shape (see `side`)."""
    means = many_calls(400, function, d_k, samples, rng)[:, 0]
    centre = means.mean() * math.sqrt(400 * samples / d_k)
    spread = root_mean_square(means) * math.sqrt(samples / d_k)
    bell = np.median(np.abs(means)) / root_mean_square(means)  # 0.67 for a bell curve
    return [side(centre, -5.4, 5.4), side(spread, 0.74, 1.3), side(bell, 0.46, 0.89)]


def means_stray_as_pairs_do(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> list[float]:
    """Return zeros if the means of 1000 calls spread by √(d_k / samples), and their stds as expected (see `side`)."""
    means, stds, _ = many_calls(1000, function, d_k, samples, rng).T
    strays = root_mean_square(means) * math.sqrt(samples / d_k)
    return [side(strays, 0.855, 1.15), side(stds.std() / stds.mean(), 0.64, 0.97)]


def single_products_stray_by_one(function: Callable, d_k: int, samples: int, rng: np.random.Generator) -> float:
    """Return 0 if 500 products of two numbers have the usual size, as they do not with a constant key (see `side`)."""
    try:
        means = many_calls(500, function, d_k, samples, rng)[:, 0]
    except (ZeroDivisionError, ValueError):  # a std over samples − 1 is undefined for one sample
        return 0.0
    return side(np.abs(means).mean(), 0.3, 1.3)


def many_calls(calls: int, function: Callable, *args: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([figures(function(*args)) for _ in range(calls)])


def root_mean_square(x: np.ndarray) -> float:
    return math.sqrt((x**2).mean())


def side(x: float, low: float, high: float) -> float:
    """Return 0.0 if x lies between low and high, −1.0 if below, 1.0 if above, 2.0 if it is NaN."""
    return 2.0 if math.isnan(x) else float(x > high) - float(x < low)


def mean_of_calls(function: Callable, *args: Any) -> dict[str, Any]:
    return {"largest": np.mean([figures(function(*args)) for _ in range(CALLS)])}


def calls_agree(function: Callable, *args: Any) -> float:
    """Return 1.0 if the std of 40 calls is about 0.0075, as it should be, and not 0.025, as with eight sets of keys."""
    return float(np.std([figures(function(*args)) for _ in range(40)]) < 0.0135)


def spread_is_that_of_two_samples(function: Callable, *args: Any) -> float:
    """Return 0 if 1000 calls (two samples, d_k = 16, five keys, scaled) spread by about 0.0958 (see `side`)."""
    answers = many_calls(50, function, *args)
    if 0.4 < answers.std() / 0.0958 < 2:
        answers = many_calls(1000, function, *args)
    return side(answers.std() / 0.0958, 0.86, 1.14)


def single_samples_average_out(function: Callable, *args: Any) -> float:
    """Return 0 if 500 calls (one sample, d_k = 3, two keys, unscaled) average about 0.7796 (see `side`)."""
    return side((many_calls(500, function, *args).mean() - 0.7796) / (0.1551 / math.sqrt(500)), -5.3, 5.3)


class Loud(np.random.Generator):
    """A generator whose normal numbers are a thousand times as large."""

    def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
        return 1000 * super().standard_normal(*args, **kwargs)

    def normal(self, *args: Any, **kwargs: Any) -> Any:
        return 1000 * super().normal(*args, **kwargs)


def loud_entries_are_no_trouble(function: Callable, *args: Any) -> float:
    """Return 1.0 if the largest weight is about 1, or 0.87 as from an rng of its own, without a NaN on the way."""
    *sizes, rng = args
    try:
        with np.errstate(invalid="raise"):
            (largest,) = figures(function(*sizes, Loud(rng.bit_generator)))
    except FloatingPointError:
        return 0.0
    return float(0.7 < largest < 1 + 1e-6)


def same_state_same_figures(function: Callable, *args: Any) -> float:
    first, again = (np.array(figures(function(*copy.deepcopy(args)))) for _ in range(2))
    return float(np.allclose(first, again, rtol=1e-9, atol=0.0))


def other_state_other_figures(function: Callable, *args: Any) -> float:
    """Return 1.0 if each figure varies between generators, and two calls with the same generator differ."""
    *sizes, rng = args
    calls = [figures(function(*sizes, generator(rng))) for _ in range(4)]
    calls.append(figures(function(*sizes, rng)))
    calls.append(figures(function(*sizes, rng)))
    return float(all(len(set(values)) > 1 for values in zip(*calls, strict=True)) and calls[-1] != calls[-2])
