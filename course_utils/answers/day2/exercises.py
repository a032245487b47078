"""Day 2: the answers to its exercises, and the mistakes that people make in them."""

import math

import numpy as np

from course_utils.answers.day2.duel import duel
from course_utils.answers.shared.attention import BUG_MISTAKES, flawed
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake

# Dot products -------------------------------------------------------------------------------------------------------


def drawn(d_k, samples, rng):
    return rng.standard_normal((samples, d_k)), rng.standard_normal((samples, d_k))  # (samples, d_k) each


def products(q, k):
    return (q * k).sum(axis=-1)


def statistics(x, samples=None):
    """Mean, standard deviation and standard error of the mean of what was sampled."""
    return x.mean(), x.std(), x.std() / math.sqrt(samples or x.size)


def sampled(combine=products, draw=drawn):
    """dot_product_stats with other draws, or with another way to make numbers of them, than the right one."""
    return lambda d_k, samples, rng: statistics(combine(*draw(d_k, samples, rng)), samples)


def stats_seeded_inside(d_k, samples, rng):
    return sampled()(d_k, samples, np.random.default_rng(0))


def told(change):
    """dot_product_stats whose right figures are then changed: change(mean, std, error, d_k, samples)."""
    return lambda d_k, samples, rng: change(*sampled()(d_k, samples, rng), d_k, samples)


def entries(draw):
    """Queries and keys whose entries come from draw(rng, shape)."""
    return lambda d_k, samples, rng: (draw(rng, (samples, d_k)), draw(rng, (samples, d_k)))


def twice_the_same(d_k, samples, rng):
    return (rng.standard_normal((samples, d_k)),) * 2


def one_query(d_k, samples, rng):
    return rng.standard_normal((1, d_k)), rng.standard_normal((samples, d_k))


def scores_drawn(d_k, samples, rng):
    return statistics(math.sqrt(d_k) * rng.standard_normal(samples))


def about_zero(d_k, samples, rng):
    x = products(*drawn(d_k, samples, rng))
    std = math.sqrt((x**2).mean())
    return x.mean(), std, std / math.sqrt(samples)


def pair_by_pair(d_k, samples, rng):
    return statistics(np.array([rng.standard_normal(d_k) @ rng.standard_normal(d_k) for _ in range(samples)]))


STATS_MISTAKES = (
    Mistake("error over samples", told(lambda m, s, e, d, n: (m, s, s / n)),
        "The standard error is std / samples here. Independent errors partly cancel: divide by √samples."),
    Mistake("std as the error", told(lambda m, s, e, d, n: (m, s, s)),
        "The standard error is the std itself here. The std says how far one dot product lies from the "
        "mean; their mean is surer by √samples."),
    Mistake("variance for the error alone", told(lambda m, s, e, d, n: (m, s, s**2 / math.sqrt(n))),
        "The standard error is made from the variance. Divide the standard deviation by √samples."),
    Mistake("mean and std exchanged", told(lambda m, s, e, d, n: (s, m, e)),
        "The mean and the std are exchanged. Return (mean, std, standard_error), in this order."),
    Mistake("std and error exchanged", told(lambda m, s, e, d, n: (m, e, s)),
        "The std and the standard error are exchanged. Return (mean, std, standard_error), in this order."),
    Mistake("keys equal queries", sampled(draw=twice_the_same),
        "The mean is near d_k: the keys are the queries, drawn once. Draw twice from rng."),
    Mistake("products not summed", sampled(lambda q, k: (q * k).ravel()),
        "std is near 1 for every d_k: these are the statistics of single products q_i k_i. "
        "Add up the d_k products of a pair first."),
    Mistake("summed over the samples", sampled(lambda q, k: (q * k).sum(axis=0)),
        "The sum runs over the samples, axis 0. A dot product runs over d_k, the last axis."),
    Mistake("absolute values", sampled(lambda q, k: np.abs(products(q, k))),
        "The mean is far above 0: signs are lost. Take the statistics of the dot products as they are."),
    Mistake("all pairs", sampled(lambda q, k: q @ k.T),
        "q @ k.T multiplies every query with every key. These products are not independent, so their mean does not "
        "stray as std / √samples says. Multiply entry by entry and add along the last axis."),
    Mistake("one query or key for all samples", sampled(draw=one_query),
        "One query meets all keys, or one key all queries, so the std depends on that one. Each sample needs a query "
        "and a key of its own: draw (samples, d_k) for both."),
    Mistake("uniform from 0 to 1", sampled(draw=entries(lambda rng, shape: rng.random(shape))),
        "The mean is near d_k / 4: entries between 0 and 1 have mean 1/2. The exercise "
        "asks for entries of mean 0 and variance 1."),
    Mistake("uniform from −1 to 1", sampled(draw=entries(lambda rng, shape: rng.uniform(-1, 1, shape))),
        "std is near √d_k / 3: entries between −1 and 1 have variance 1/3. The exercise asks for variance 1, which "
        "a uniform draw has between −√3 and √3."),
    Mistake("theory in place of samples", lambda d_k, samples, rng: (0.0, math.sqrt(d_k), math.sqrt(d_k / samples)),
        "The figures do not depend on rng: they come from theory, or from a generator made inside the function. "
        "Measure them, on samples drawn with the rng that is passed in."),
    Mistake("theory for std", told(lambda m, s, e, d, n: (m, math.sqrt(d), math.sqrt(d / n))),
        "The mean is measured, but std is √d_k from theory. Measure it too: it should change with the samples."),
    Mistake("one dot product", sampled(lambda q, k: np.array([products(q, k)[0]])),
        "std is 0: there is one dot product only. There should be one for each sample."),
    Mistake("dot products drawn, not made", scores_drawn,
        "One number is drawn for each sample and stretched to the spread of a dot product. That takes the answer for "
        "granted: draw queries and keys, (samples, d_k) numbers for each, and multiply."),
    Mistake("std about 0", about_zero,
        "The std is the root of the mean square: the distance from 0. It is the distance from the mean of the "
        "samples, products.std(), which is 0 for a single one."),
    Mistake("a generator made inside", stats_seeded_inside,
        "The figures do not depend on rng, so every call draws the same samples. Use the rng that is passed in, not "
        "one made inside."),
    Mistake("a loop over the samples", pair_by_pair,
        "The figures are right, but a Python loop visits the samples, one at a time or in small "
        "blocks. Draw a matrix (samples, d_k) for the queries and one for the keys, multiply them "
        "entry by entry, add along the last axis."),
)  # fmt: skip


# By hand ------------------------------------------------------------------------------------------------------------

BY_HAND = {"var_raw_64": 64.0, "var_scaled_64": 1.0, "mean_if_equal_64": 64.0}
SLIPS = {
    "var_raw_64": {
        8.0: "8 is the standard deviation. The variance is its square.",
        1.0: "1 is the variance of one term q_i k_i. There are 64 of them, and variances of independent terms add up.",
        4096.0: "4096 is 64². Variances of independent terms add up: 64 times that of one term.",
        128.0: "128 is the variance of q·k when q and k are equal. Here they are independent.",
        0.0: "0 is the mean of q·k. The question is about the variance.",
    },
    "var_scaled_64": {
        8.0: "8 is 64 / 8. A number divided by 8 has its variance divided by 8².",
        64.0: "64 is the variance before scaling. Dividing by √64 divides it by 64.",
        1 / 64: "1/64 is the variance of q·k / 64. Here q·k is divided by √64.",
        0.125: "1/8 is 8 / 64, or 1 / √64: a root is left. The variance of q·k, 64, is divided by (√64)² = 64.",
        0.0: "0 is the mean. The question is about the variance.",
    },
    "mean_if_equal_64": {
        0.0: "0 is the mean for independent q and k. With k = q each term is a square, and its mean is not 0.",
        1.0: "1 is the mean of one term q_i². There are 64 of them.",
        8.0: "8 is √64, about the length of q. q·q is the square of that length.",
        128.0: "128 is the variance of q·q. The question is about its mean.",
        4096.0: "4096 is 64². The mean of each q_i² is 1, and 64 of them are added.",
    },
}


OF_HAND = tuple(
    Mistake(f"{entry} {value:g}", {entry: value}, f"{entry}: {message}")
    for entry, slips in SLIPS.items()
    for value, message in slips.items()
)


# Softmax and log-sum-exp --------------------------------------------------------------------------------------------


def largest(x, axis):
    return x.max(axis=axis, keepdims=True)


def nothing(x, axis):
    return 0.0


def largest_magnitude(x, axis):
    return np.abs(x).max(axis=axis, keepdims=True)


SHIFTS = (
    ("one shift for the whole array", lambda x, axis: x.max(),
        "You subtract the largest entry of the whole array. A row far below it turns into zeros. Subtract the "
        "largest of each row: x.max(axis=axis, keepdims=True)."),
    ("shift by the smallest entry", lambda x, axis: x.min(axis=axis, keepdims=True),
        "You subtract the smallest entry. The largest can still be far above it and overflow, and the "
        "smallest may be −∞. Subtract the largest."),
    ("shift by the mean", lambda x, axis: x.mean(axis=axis, keepdims=True),
        "You subtract the mean. The largest entry can still be far above it, and with −∞ the "
        "mean is −∞. Subtract the largest entry."),
    ("shift by the first entry", lambda x, axis: np.take(x, [0], axis),
        "The first entry of each row is subtracted, which need not be the largest."),
    ("shift by the last entry", lambda x, axis: np.take(x, [-1], axis),
        "You subtract the last entry of each row, which need not be the largest."),
    ("shift by the largest absolute value", largest_magnitude,
        "You subtract the largest absolute value. Very negative entries are pushed further down by it, and −∞ has "
        "the largest of all. Subtract the largest entry."),
    ("shift along the last axis only", lambda x, axis: largest(x, -1),
        "The sum runs along axis, but the largest entry is always that of the last axis. It cancels only if it is "
        "the same for all that are added up: take it along axis."),
    ("zero among the entries of the shift", lambda x, axis: np.maximum(largest(x, axis), 0),
        "The shift is never below 0, so rows of very negative entries are not moved. "
        "Subtract the largest entry, whatever its sign."),
)  # fmt: skip


def shifted_softmax(peak=largest, change=lambda x: x, exp=np.exp):
    """A softmax that subtracts peak(x, axis), from entries changed before, with another power than e^x."""

    def softmax(x, axis=-1):
        with np.errstate(all="ignore"):
            x = change(x)
            exps = exp(x - peak(x, axis))
            return exps / exps.sum(axis=axis, keepdims=True)

    return softmax


def quietly(function):
    """A function of x and axis, without NumPy's warnings."""

    def of_x(x, axis=-1):
        with np.errstate(all="ignore"):
            return function(x, axis)

    return of_x


def softmax_without_keepdims(x, axis):
    exps = np.exp(x - x.max(axis=axis))
    return exps / exps.sum(axis=axis)


def sum_without_keepdims(x, axis):
    exps = np.exp(x - largest(x, axis))
    return exps / exps.sum(axis=axis)


def softmax_in_place(x, axis):
    x -= largest(x, axis)
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def softmax_over_first(x, axis=0):
    return arrays.softmax(x, axis)


def softmax_in_the_type_of_x(x, axis):
    weights = np.zeros_like(x)
    weights[...] = arrays.softmax(x, axis)
    return weights


def axis_one_or_zero(x, axis=None):
    """The axis that a rule for one axis and for two takes for the last."""
    return (1 if x.ndim > 1 else 0) if axis is None else axis


def axis_one_for_the_last(x, axis):
    return (1 if x.ndim > 1 else 0) if axis == -1 else axis


def nan_made_zero(x, axis):
    return np.nan_to_num(shifted_softmax(nothing)(x, axis))


def without_small(x, axis):
    """The exponentials after the shift, those below a thousandth left out."""
    exps = np.exp(x - largest(x, axis))
    return np.where(exps < 1e-3, 0.0, exps)


def normalised_over_everything(x, axis):
    exps = np.exp(x - x.max())
    return exps / exps.sum()


def filled(value):
    return lambda x: np.where(np.isinf(x), value, x)


def clipped(x):
    return np.clip(x, -700, 700)


def in_single_precision(x):
    return x.astype(np.float32)


FILLS = (
    ("−∞ made 0", filled(0.0),
        "−∞ is replaced by a number, such as 0, and gets a share. Leave it as it is: exp(−∞) is 0."),
    ("−∞ made −10 000", filled(-1e4),
        "−∞ is replaced by −10 000, which other entries reach too, so it gets a "
        "share. Leave it as it is: exp(−∞) is 0."),
    ("−∞ made −1000", filled(-1e3),
        "−∞ is replaced by −1000, and other entries are smaller than that. Leave it as it is: exp(−∞) is 0."),
    ("−∞ made a large negative number", filled(-1e9),
        "−∞ is replaced by −1e9 or another finite number. Entries may be smaller still, and then it gets a "
        "share. Leave it as it is: exp(−∞) is 0."),
    ("entries clipped", clipped,
        "Clipping the entries avoids the overflow but changes the answer: 1000, 1001 and 999 all "
        "become the same. Subtract the largest entry."),
)  # fmt: skip
LAST_AXIS = (
    "Without an axis this runs along axis 1, or 0 for a single row. That is the last axis only of one axis or two: "
    "leave the default at axis=-1, which NumPy understands for any shape."
)
ONE_FOR_THE_LAST = (
    "For axis −1 this runs along axis 1, or 0 for a single row. That is the last axis only of one axis or two: pass −1 "
    "on to NumPy, which understands it for any shape."
)
SMALL_ONES = "Small exponentials are made 0. Each is small, but many of them add up: leave them all in the sum."
SOFTMAX_MISTAKES = (
    Mistake("softmax without max-shift", shifted_softmax(nothing),
        "Right for small entries, but exp overflows above 709 and gives 0 below −745. Subtract the largest entry "
        "along axis first: both halves of the fraction shrink by the same factor.", overflow=True),
    *(Mistake(name, shifted_softmax(peak), message) for name, peak, message in SHIFTS),
    *(Mistake(name, shifted_softmax(largest, change), message) for name, change, message in FILLS),
    Mistake("float32 before the shift", shifted_softmax(largest, in_single_precision),
        "x is turned into float32 before the largest entry is subtracted. Beyond 16 777 216 float32 holds even numbers "
        "only, so gaps are lost. Subtract first; after that float32 is precise enough."),
    Mistake("axis ignored", lambda x, axis=-1: arrays.softmax(x, -1),
        "The softmax runs along the last axis, whatever axis says. Use axis in the maximum and in the sum."),
    Mistake("always axis 0", lambda x, axis=-1: arrays.softmax(x, 0),
        "The softmax runs along axis 0, whatever axis says. Use axis in the maximum and in the sum."),
    Mistake("axis 0 unless told otherwise", softmax_over_first,
        "Without an axis the softmax runs along axis 0. The default is the last axis: axis=-1."),
    Mistake("axis 1 for the last", lambda x, axis=None: arrays.softmax(x, axis_one_or_zero(x, axis)), LAST_AXIS),
    Mistake("axis 1 for −1", lambda x, axis=-1: arrays.softmax(x, axis_one_for_the_last(x, axis)), ONE_FOR_THE_LAST),
    Mistake("small exponentials left out",
        quietly(lambda x, axis: without_small(x, axis) / without_small(x, axis).sum(axis=axis, keepdims=True)),
        SMALL_ONES),
    Mistake("NaN made 0", quietly(nan_made_zero),
        "Where exp overflows, or gives 0 / 0, NaN is turned into 0. No error shows, but the weights no longer sum to "
        "1. Subtract the largest entry along axis, and no NaN arises."),
    Mistake("normalised over everything", quietly(normalised_over_everything),
        "All weights of the array together sum to 1. Each row along axis should: exps.sum(axis=axis, keepdims=True)."),
    Mistake("keepdims left out", quietly(softmax_without_keepdims),
        "Without keepdims=True the maximum and the sum lose their axis. They then meet "
        "the wrong entries, or do not fit at all."),
    Mistake("keepdims left out of the sum", quietly(sum_without_keepdims),
        "The sum has lost its axis, so it meets the wrong entries or does not "
        "fit: exps.sum(axis=axis, keepdims=True)."),
    Mistake("x changed", quietly(softmax_in_place),
        "The weights are right, but x itself was changed: -= and x[...] = write into the "
        "caller's array. Make a new one: x - peak."),
    Mistake("weights cut to whole numbers", quietly(softmax_in_the_type_of_x),
        "With ints in x the weights are cut to 0 and 1: an array made by zeros_like(x) holds ints too. Give it "
        "dtype=float, or use the array that np.exp makes."),
    Mistake("not normalised", lambda x, axis=-1: np.exp(x - largest(x, axis)),
        "These are the exponentials before the division. Divide by their sum along axis."),
    Mistake("no exponential", quietly(lambda x, axis: x / x.sum(axis=axis, keepdims=True)),
        "These are the entries divided by their sum. The softmax divides exponentials."),
    Mistake("logarithms of the weights", quietly(lambda x, axis: np.log(arrays.softmax(x, axis))),
        "These are the logarithms of the weights. Return the weights."),
    Mistake("hard maximum", lambda x, axis=-1: (x == largest(x, axis)) / 1.0,
        "All the weight goes to the largest entry. That is the argmax; the softmax gives every finite entry a share."),
    Mistake("one sigmoid each", quietly(lambda x, axis: 1 / (1 + np.exp(-x))),
        "Each entry goes through a sigmoid alone. In a softmax the entries along axis share one sum."),
    Mistake("powers of two", shifted_softmax(exp=np.exp2),
        "This uses powers of 2. The softmax uses powers of e: np.exp."),
    Mistake("softmax twice", lambda x, axis=-1: arrays.softmax(arrays.softmax(x, axis), axis),
        "The entries have been through the softmax twice."),
    Mistake("rounded", lambda x, axis=-1: arrays.softmax(x, axis).round(3),
        "The weights are rounded. Return them as they are."),
)  # fmt: skip


def shifted_logsumexp(peak=largest, change=lambda x: x, add_back=True, log=np.log):
    """A log-sum-exp that takes peak(x, axis) out of the sum, from entries changed before, and adds it back or not."""

    def logsumexp(x, axis=-1):
        with np.errstate(all="ignore"):
            x = change(x)
            shift = peak(x, axis) + np.zeros_like(largest(x, axis), dtype=float)
            total = np.exp(x - shift).sum(axis=axis, keepdims=True)
            return np.squeeze(log(total) + (shift if add_back else 0), axis=axis)

    return logsumexp


def sum_meets_the_kept_axis(x, axis):
    peak = largest(x, axis)
    return peak + np.log(np.exp(x - peak).sum(axis=axis))


def logsumexp_without_keepdims(x, axis):
    peak = x.max(axis=axis)
    return peak + np.log(np.exp(x - peak).sum(axis=axis))


def peak_squeezed(x, axis):
    peak = largest(x, axis)
    return np.squeeze(peak) + np.log(np.exp(x - peak).sum(axis=axis))


def joined_by(operation):
    """log-sum-exp with the logarithm and the largest entry joined by an operation other than the sum."""

    def wrong_logsumexp(x, axis):
        peak = largest(x, axis)
        return np.squeeze(operation(np.log(np.exp(x - peak).sum(axis=axis, keepdims=True)), peak), axis=axis)

    return quietly(wrong_logsumexp)


def logsumexp_without_small(x, axis):
    logarithm = np.log(without_small(x, axis).sum(axis=axis, keepdims=True))
    return np.squeeze(largest(x, axis) + logarithm, axis=axis)


LOGSUMEXP_MISTAKES = (
    Mistake("no max-shift", shifted_logsumexp(nothing),
        "Right for small entries, but exp overflows above 709, and below −745 it gives 0, whose logarithm is −∞. "
        "Subtract the largest entry inside the sum, and add it after the logarithm.", overflow=True),
    *(
        Mistake(name, shifted_logsumexp(peak), message)
        for name, peak, message in SHIFTS
        if name != "shift along the last axis only"
    ),
    *(Mistake(name, shifted_logsumexp(largest, change), message) for name, change, message in FILLS),
    Mistake("shift not added back", shifted_logsumexp(add_back=False),
        "The largest entry is taken out of the sum but not added back after the logarithm."),
    Mistake("shift subtracted twice", joined_by(np.subtract),
        "After the logarithm the largest entry is subtracted once more. Add it back."),
    Mistake("shift multiplied back", joined_by(np.multiply),
        "The largest entry is a factor inside the logarithm's argument. The "
        "logarithm makes an added number of it: + peak."),
    Mistake("keepdims left out", quietly(logsumexp_without_keepdims),
        "Without keepdims=True the largest entries lose their axis before they meet x. They then meet "
        "the wrong entries, or do not fit at all."),
    Mistake("keepdims in the maximum only", quietly(sum_meets_the_kept_axis),
        "The largest entries still have axis, and the sum has lost it, so adding the two gives a wrong shape. Use "
        "keepdims=True in both and take axis away at the end, or take it from both."),
    Mistake("every axis of length one dropped", lambda x, axis=-1: np.squeeze(arrays.logsumexp(x, axis)),
        "np.squeeze without an axis drops every axis of length 1, also those of x. "
        "Name the one: np.squeeze(…, axis=axis)."),
    Mistake("every axis of length one dropped from one part", quietly(peak_squeezed),
        "squeeze() without an axis drops every axis of length 1 of the largest entries, or of the sum, so the two "
        "no longer fit together. Name the axis: np.squeeze(…, axis=axis)."),
    Mistake("axis ignored", lambda x, axis=-1: arrays.logsumexp(x, -1),
        "The sum runs along the last axis, whatever axis says."),
    Mistake("always axis 0", lambda x, axis=-1: arrays.logsumexp(x, 0),
        "The sum runs along axis 0, whatever axis says."),
    Mistake("axis 0 unless told otherwise", lambda x, axis=0: arrays.logsumexp(x, axis),
        "Without an axis the sum runs along axis 0. The default is the last axis: axis=-1."),
    Mistake("axis 1 for the last", lambda x, axis=None: arrays.logsumexp(x, axis_one_or_zero(x, axis)), LAST_AXIS),
    Mistake("axis 1 for −1", lambda x, axis=-1: arrays.logsumexp(x, axis_one_for_the_last(x, axis)), ONE_FOR_THE_LAST),
    Mistake("small exponentials left out", quietly(logsumexp_without_small), SMALL_ONES),
    Mistake("summed over everything", lambda x, axis=-1: arrays.logsumexp(x.ravel()),
        "The sum runs over the whole array and leaves one number. Sum along axis."),
    Mistake("the largest entry", lambda x, axis=-1: x.max(axis=axis),
        "This is the largest entry. log-sum-exp is close to it when one entry stands out, and always a little above."),
    Mistake("logarithm of the mean", quietly(lambda x, axis: arrays.logsumexp(x, axis) - math.log(x.shape[axis])),
        "This is the logarithm of the mean of the exponentials. Take that of their sum."),
    Mistake("sum of the logarithms", lambda x, axis=-1: x.sum(axis=axis),
        "This is the sum of the entries: each logarithm was taken before the sum, and undid its "
        "exponential. Sum first, then one logarithm."),
    Mistake("no logarithm", quietly(lambda x, axis: np.exp(arrays.logsumexp(x, axis))),
        "This is the sum of the exponentials, without the logarithm."),
    Mistake("log1p", shifted_logsumexp(log=np.log1p),
        "np.log1p is log(1 + x). The sum already holds the largest entry's 1."),
    Mistake("logarithm to base 2", shifted_logsumexp(log=np.log2),
        "This is the logarithm to base 2. Use the natural one, np.log."),
    Mistake("logarithm to base 10", shifted_logsumexp(log=np.log10),
        "This is the logarithm to base 10. Use the natural one, np.log."),
    Mistake("softmax", lambda x, axis=-1: arrays.softmax(x, axis),
        "These are the weights of the softmax. log-sum-exp gives one number along "
        "axis, the logarithm of their denominator."),
    Mistake("minus sign", lambda x, axis=-1: -arrays.logsumexp(x, axis), "The sign is turned around."),
)  # fmt: skip


# Jacobian -----------------------------------------------------------------------------------------------------------


def column(p):
    return p[..., :, None]


def row(p):
    return p[..., None, :]


def diagonal(p):
    return column(p) * np.eye(p.shape[-1])


def jacobian(p):
    return diagonal(p) - column(p) * row(p)


def for_one_row(p):
    return np.diag(p) - np.outer(p, p)


def through_matrices(p):
    return diagonal(p) - p.T @ p if p.ndim > 1 else for_one_row(p)


def over_rows(p):
    return diagonal(p) - p @ np.swapaxes(p, -1, -2) if p.ndim > 1 else for_one_row(p)


def batch_added_up(p):
    return jacobian(p).reshape(-1, p.shape[-1], p.shape[-1]).sum(axis=0)


def batch_flattened(p):
    return jacobian(p.ravel())


JACOBIAN_MISTAKES = (
    Mistake("for one row only", for_one_row,
        "Right for one row, but np.diag and np.outer do something else with a batch: np.diag picks a diagonal out of "
        "a matrix and np.outer flattens. Broadcast in their place: p[..., :, None] * p[..., None, :]."),
    Mistake("the diagonal only, as a row", lambda p: p * (1 - p),
        "This is p(1 − p), the diagonal alone. Every score moves every weight, "
        "so each row of p gives an m × m matrix."),
    Mistake("the diagonal only", lambda p: diagonal(p * (1 - p)),
        "The diagonal is right and all else is 0. A score also moves the weights of other keys: −p_i p_j."),
    Mistake("the diagonal not reduced", diagonal, "This is diag(p) alone. Subtract the table of all products p_i p_j."),
    Mistake("products only", lambda p: -column(p) * row(p),
        "These are the products −p_i p_j alone. Add p_i on the diagonal."),
    Mistake("products added", lambda p: diagonal(p) + column(p) * row(p), "The products are added. Subtract them."),
    Mistake("products with a plus beside the diagonal",
        lambda p: diagonal(p) + column(p) * row(p) * (1 - 2 * np.eye(p.shape[-1])),
        "The diagonal is right, but the entries beside it are positive. A larger score "
        "takes weight from the others: −p_i p_j."),
    Mistake("no delta", lambda p: column(p) * (1 - row(p)),
        "Every entry is p_i (1 − p_j). The 1 is there for i = j only; elsewhere it is 0."),
    Mistake("identity in place of diag(p)", lambda p: np.eye(p.shape[-1]) - column(p) * row(p),
        "The diagonal holds 1 in place of p_i before the products are subtracted. It is diag(p), not the identity."),
    Mistake("squares on the diagonal only", lambda p: diagonal(p) - column(p) * row(p) * (1 - np.eye(p.shape[-1])),
        "On the diagonal the product p_i p_i is not subtracted. It belongs to the table too."),
    Mistake("p subtracted", lambda p: diagonal(p) - row(p), "You subtract p where p_i p_j should be."),
    Mistake("softmax of p", lambda p: jacobian(arrays.softmax(p)),
        "p goes through a softmax once more. It holds weights already."),
    Mistake("log-softmax", lambda p: np.eye(p.shape[-1]) - row(p) + 0 * column(p),
        "These are the derivatives of the logarithms of the weights. Multiply row i by p_i."),
    Mistake("a column times a column", lambda p: column(p) * (np.eye(p.shape[-1]) - column(p)),
        "You multiply p_i by p_i: both factors are columns. The second has to be a row: p[..., None, :]."),
    Mistake("p p through matrices", through_matrices,
        "Right for one row, but with a batch p.T @ p adds up over the batch. Each row of p has a table of its "
        "own: p[..., :, None] * p[..., None, :]."),
    Mistake("one number in place of the table", lambda p: np.diag(p) - p @ p.T,
        "`p @ p.T` of one row is a single number, the sum of the squares: .T changes nothing in a row. For one row "
        "np.outer(p, p) is the table of all products; for any shape it is p[..., :, None] * p[..., None, :]."),
    Mistake("rows against rows", over_rows,
        "Right for one row, but with a batch p @ pᵀ multiplies rows of p with other rows. Each row has a table of "
        "its own: p[..., :, None] * p[..., None, :]."),
    Mistake("batch added up", batch_added_up,
        "The matrices of all rows are added up into one. Return one for each row."),
    Mistake("batch flattened", batch_flattened,
        "All rows of p are joined into one long row. Return one m × m matrix for each."),
    Mistake("trace", lambda p: (p * (1 - p)).sum(axis=-1),
        "This is the trace, one number for each row. Return the whole matrix."),
)  # fmt: skip


# Correlated ---------------------------------------------------------------------------------------------------------


def dot_moments(d_k, rho):
    return d_k * rho, d_k * (1 + rho**2)


def moments(mean=lambda d, r: d * r, variance=lambda d, r: d * (1 + r**2)):
    return lambda d_k, rho: (mean(d_k, rho), variance(d_k, rho))


MOMENTS_MISTAKES = (
    Mistake("rho ignored", moments(lambda d, r: 0.0, lambda d, r: d),
        "This is the answer for independent q and k. With a correlation the mean of a term q_i "
        "k_i is not 0, and its variance is not 1."),
    Mistake("mean 0", moments(mean=lambda d, r: 0.0),
        "The variance is right, but the mean is not 0: the mean of q_i k_i is the correlation."),
    Mistake("variance of the independent case", moments(variance=lambda d, r: d),
        "The mean is right, but the variance is that of independent q and k."),
    Mistake("square of the mean not subtracted", moments(variance=lambda d, r: d * (1 + 2 * r**2)),
        "1 + 2ρ² is E[q_i²k_i²]. The variance of a term is that minus the square of its mean."),
    Mistake("mean subtracted unsquared", moments(variance=lambda d, r: d * (1 + 2 * r**2 - r)),
        "From E[q_i²k_i²] you subtract the mean of a term. Subtract its square."),
    Mistake("square of the mean added", moments(variance=lambda d, r: d * (1 + 3 * r**2)),
        "The square of the mean is added. The variance is E[q_i²k_i²] minus it."),
    Mistake("square of the whole mean subtracted", moments(variance=lambda d, r: d * (1 + 2 * r**2) - (d * r) ** 2),
        "You subtract the square of the mean of q·k from a sum of E[q_i²k_i²]. Do it term by "
        "term: the variance of one term, times d_k."),
    Mistake("second moment of the whole", moments(variance=lambda d, r: d * (1 + r**2) + (d * r) ** 2),
        "This is E[(q·k)²]. The variance is that minus the square of the mean."),
    Mistake("variance smaller with correlation", moments(variance=lambda d, r: d * (1 - r**2)),
        "1 − ρ² is the variance of k that remains when q is known. The "
        "variance of the product q_i k_i grows with ρ²."),
    Mistake("rho not squared", moments(variance=lambda d, r: d * (1 + r)),
        "The variance has 1 + ρ. From 1 + 2ρ² subtract the square of the mean: ρ stays squared."),
    Mistake("squared sum", moments(variance=lambda d, r: d * (1 + r) ** 2),
        "The variance has (1 + ρ)². From 1 + 2ρ² subtract the square of the mean."),
    Mistake("variance as for q = k", moments(variance=lambda d, r: 2 * d), "2 d_k is the variance for ρ = ±1 only."),
    Mistake("absolute mean", moments(mean=lambda d, r: d * abs(r)),
        "The mean has lost its sign: a negative correlation makes it negative."),
    Mistake("rho squared in the mean", moments(mean=lambda d, r: d * r**2),
        "The mean has ρ². The mean of q_i k_i is ρ."),
    Mistake("std in place of variance", moments(variance=lambda d, r: math.sqrt(d * (1 + r**2))),
        "This is the standard deviation. Return the variance."),
    Mistake("exchanged", lambda d_k, rho: dot_moments(d_k, rho)[::-1],
        "The two numbers are exchanged. Return (mean, variance)."),
)  # fmt: skip


# Scale --------------------------------------------------------------------------------------------------------------


def from_shape(scale):
    """A scale from the four sizes of q."""
    return lambda q: scale(*(int(size) for size in q.shape))


SCALE_MISTAKES = (
    Mistake("the root itself", from_shape(lambda B, h, n, d: math.sqrt(d)),
        "This is √d_head. q·k is multiplied by the scale, so it should make the scores smaller: the inverse."),
    Mistake("the root of d_model", from_shape(lambda B, h, n, d: 1 / math.sqrt(h * d)),
        "This is 1/√(h · d_head), with the width of all heads together. A dot product runs over one head."),
    Mistake("half of d_head", from_shape(lambda B, h, n, d: 1 / (d / 2)),
        "This is 1 / (d_head / 2). In Python d ** 1 / 2 is (d ** 1) / 2; write d ** 0.5 or math.sqrt(d)."),
    Mistake("inverse, then halved", from_shape(lambda B, h, n, d: d**-1 / 2),
        "This is 1 / (2 d_head). In Python d ** -1 / 2 is (d ** -1) / 2; write d ** -0.5."),
    Mistake("minus the root", from_shape(lambda B, h, n, d: -math.sqrt(d)),
        "This is −√d_head. In Python the minus of -d ** 0.5 is taken last; one over the root is d ** -0.5."),
    Mistake("inverse square", from_shape(lambda B, h, n, d: d**-2.0),
        "This is 1/d_head². The spread of q·k is √d_head, so the scale is one over that."),
    Mistake("the root of all entries", from_shape(lambda B, h, n, d: 1 / math.sqrt(B * h * n * d)),
        "This is one over the root of the number of all entries of q. A dot product runs over its last axis alone."),
    Mistake("always 64", from_shape(lambda B, h, n, d: 1 / 8),
        "This is 1/√64, whatever q is. Take d_head from the shape of q."),
    Mistake("always 128", from_shape(lambda B, h, n, d: 128**-0.5),
        "This is 1/√128, whatever q is. Take d_head from the shape of q."),
    Mistake("root rounded", from_shape(lambda B, h, n, d: 1 / round(math.sqrt(d))),
        "The root of d_head is rounded to a whole number. Keep it as it is."),
    Mistake("root cut", from_shape(lambda B, h, n, d: 1 / int(math.sqrt(d))),
        "The root of d_head is cut to a whole number. Keep it as it is."),
)  # fmt: skip


# Saturation ---------------------------------------------------------------------------------------------------------


def pair_of_blocks(d_k, n_keys, samples, rng):
    return rng.standard_normal((samples, 1, d_k)), rng.standard_normal((samples, n_keys, d_k))


def real_scores(*sizes_and_rng):
    q, k = pair_of_blocks(*sizes_and_rng)
    return (q * k).sum(axis=-1)  # (samples, n_keys)


def peaked(
    scores=real_scores,
    scale=lambda s, d, scaled: s / math.sqrt(d) if scaled else s,
    softmax=arrays.softmax,
    summary=lambda w: w.max(axis=-1).mean(),
):
    """saturation with one step exchanged for a wrong one: how scores are drawn, scaled, softmaxed or summed up."""

    def saturation(d_k, n_keys, scaled, samples, rng):
        with np.errstate(all="ignore"):
            return summary(softmax(scale(scores(d_k, n_keys, samples, rng), d_k, scaled)))

    return saturation


def independent_scores(d_k, n_keys, samples, rng):
    return rng.standard_normal((samples, n_keys)) * math.sqrt(d_k)


def query_for_each_key(d_k, n_keys, samples, rng):
    return (rng.standard_normal((samples, n_keys, d_k)) * rng.standard_normal((samples, n_keys, d_k))).sum(axis=-1)


def shared_query(d_k, n_keys, samples, rng):
    return rng.standard_normal((samples, n_keys, d_k)) @ rng.standard_normal(d_k)


def query_without_an_axis(d_k, n_keys, samples, rng):
    return (rng.standard_normal((samples, d_k)) * rng.standard_normal((samples, n_keys, d_k))).sum(axis=-1)


def scaled_after_softmax(d_k, n_keys, scaled, samples, rng):
    return peaked(scale=lambda s, d, _: s)(d_k, n_keys, scaled, samples, rng) / (math.sqrt(d_k) if scaled else 1)


def seeded_inside(d_k, n_keys, scaled, samples, rng):
    return peaked()(d_k, n_keys, scaled, samples, np.random.default_rng(0))


def unshifted(s):
    return np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)


def averaged_first(w):
    return w.mean(axis=0).max()


PEAKED_MISTAKES = (
    Mistake("scaled ignored, never scaled", peaked(scale=lambda s, d, scaled: s),
        "Scaled or not, the answer is the one without the scale. Divide "
        "the scores by √d_k when scaled is True."),
    Mistake("scaled ignored, always scaled", peaked(scale=lambda s, d, scaled: s / math.sqrt(d)),
        "Scaled or not, the answer is the one with the scale. Leave the scores alone when scaled is False."),
    Mistake("the flag turned around", peaked(scale=lambda s, d, scaled: s if scaled else s / math.sqrt(d)),
        "The scale is applied when scaled is False. Turn the condition around."),
    Mistake("scaling by d_k", peaked(scale=lambda s, d, scaled: s / d if scaled else s),
        "You divide by d_k. The spread of the scores is √d_k."),
    Mistake("multiplied by the root", peaked(scale=lambda s, d, scaled: s * math.sqrt(d) if scaled else s),
        "You multiply by √d_k. Divide by it."),
    Mistake("scaling after softmax", scaled_after_softmax,
        "The largest weight is divided by √d_k after the softmax, so with one key it "
        "is not 1. Divide the scores, before it."),
    Mistake("softmax over the samples", peaked(softmax=lambda s: arrays.softmax(s, axis=0)),
        "The softmax runs over the samples, axis 0. The keys of one sample share its weight: the last axis."),
    Mistake("softmax over everything", peaked(softmax=lambda s: arrays.softmax(s.ravel()).reshape(s.shape)),
        "The softmax runs over the whole array, samples and keys together. The weights of one sample "
        "sum to 1: take it along the last axis."),
    Mistake("largest of all samples", peaked(summary=np.max),
        "This is the largest weight of all samples. Take the largest of each sample, max(axis=-1), then the mean."),
    Mistake("mean of all weights", peaked(summary=np.mean),
        "This is 1 / n_keys, the mean of all weights or of one fixed key. Take the largest "
        "weight of each sample first, then the mean."),
    Mistake("averaged before the maximum", peaked(summary=averaged_first),
        "You average the weights of each key over the samples, and then take the largest. "
        "Take the largest of each sample first."),
    Mistake("largest over the samples", peaked(summary=lambda w: w.max(axis=0).mean()),
        "The maximum runs over the samples, axis 0. Take it over the keys, the last axis."),
    Mistake("median", peaked(summary=lambda w: np.median(w.max(axis=-1))),
        "This is the median of the largest weights. The question is about their mean."),
    Mistake("smallest weight", peaked(summary=lambda w: w.min(axis=-1).mean()),
        "This is the smallest weight. Take the largest."),
    Mistake("largest score", peaked(softmax=lambda s: s),
        "This is the largest score. Put the scores through the softmax first."),
    Mistake("exponentials not normalised", peaked(softmax=lambda s: np.exp(s - s.max(axis=-1, keepdims=True))),
        "The largest weight is always 1: the exponentials are not divided by their sum."),
    Mistake("one sigmoid each", peaked(softmax=lambda s: 1 / (1 + np.exp(-s))),
        "Each score goes through a sigmoid alone. In a softmax the keys share one sum."),
    Mistake("softmax without max-shift", peaked(softmax=unshifted),
        "Right until the scores get into the hundreds. There an exponential is ∞, or, if you subtract the largest "
        "score of the whole array, all exponentials of a sample are 0. Subtract the largest score of each sample, "
        "along the keys, or use your softmax.", overflow=True),
    Mistake("scores drawn, not made", peaked(independent_scores),
        "Your figures are those of independent normal scores: the scores are drawn, or q has entries ±1 or always "
        "the same length. At small d_k real scores are not normal, because the keys of a sample share one query. Draw "
        "one query and n_keys keys for each sample, all entries standard normal, and multiply."),
    Mistake("a query for each key", peaked(query_for_each_key),
        "Each key has a query of its own. In a sample one query meets all n_keys "
        "keys: draw q with shape (samples, 1, d_k)."),
    Mistake("a query without an axis of its own", peaked(query_without_an_axis),
        "q of shape (samples, d_k) does not line up with k of shape (samples, n_keys, d_k): NumPy matches axes from "
        "the end, so the samples of q meet the keys. Draw q as (samples, 1, d_k)."),
    Mistake("one query or set of keys for all samples", peaked(shared_query),
        "One query, or one set of keys, serves all samples, so the answer depends on it. Draw both for each sample: "
        "(samples, 1, d_k) and (samples, n_keys, d_k)."),
    Mistake("a generator made inside", seeded_inside,
        "The figures do not depend on rng, so every call draws the same samples. Use the rng "
        "that is passed in, not one made inside."),
)  # fmt: skip


# Backward -----------------------------------------------------------------------------------------------------------


def swapped(x):
    return np.swapaxes(x, -1, -2)


def root(d):
    return d**-0.5


def common_part(a, da):
    """What the softmax takes off each row g of dA: p · g, one number for each query."""
    return (a * da).sum(axis=-1, keepdims=True)


def backwards(
    softmax=arrays.softmax,
    scale=root,
    jacobian=lambda a, da: a * (da - common_part(a, da)),
    after=root,
    values=lambda a, ds, do: swapped(a) @ do,
    result=lambda dq, dk, dv: (dq, dk, dv),
):
    """The backward of attention with one thing changed."""

    def three_paths(q, k, v, do):  # its name holds no "backward", which exercises that may call it rule out
        d = q.shape[-1]
        with np.errstate(all="ignore"):
            a = softmax(q @ swapped(k) * scale(d))  # (…, n, m)
            ds = jacobian(a, do @ swapped(v))  # (…, n, m)
            return result(ds @ k * after(d), swapped(ds) @ q * after(d), values(a, ds, do))

    return three_paths


def unscaled(d):
    return 1.0


def changing_do(q, k, v, do):
    gradients = backwards()(q, k, v, do)
    do *= 0.5
    return gradients


BACKWARD_MISTAKES = (
    Mistake("the softmax passed over", backwards(jacobian=lambda a, da: da),
        "dv is right, but dq and dk are made from dA = do vᵀ as it is. On the way to the scores it has to pass the "
        "softmax: p ∘ (g − p · g) for each row g of dA."),
    Mistake("p · g left out", backwards(jacobian=lambda a, da: a * da),
        "A row g of dA has become p ∘ g. The other half of the Jacobian is missing: a weight can only grow at the "
        "others' cost, so subtract p · g from g first."),
    Mistake("the diagonal of the Jacobian alone", backwards(jacobian=lambda a, da: a * (1 - a) * da),
        "Only the diagonal of the Jacobian is used, p(1 − p). A score moves the "
        "other weights of its row too, by −p_i p_j."),
    Mistake("p · g added", backwards(jacobian=lambda a, da: a * (da + common_part(a, da))),
        "p · g is added. Subtract it: p ∘ (g − p · g)."),
    Mistake("without p in front", backwards(jacobian=lambda a, da: da - common_part(a, da)),
        "This is g − p · g. It is multiplied by p: a key with little weight gets little gradient."),
    Mistake("p · g without p in front", backwards(jacobian=lambda a, da: a * da - common_part(a, da)),
        "This is p ∘ g − p · g. Both halves are multiplied by p: p ∘ (g − p · g)."),
    Mistake("the mean of p ∘ g", backwards(jacobian=lambda a, da: a * (da - (a * da).mean(axis=-1, keepdims=True))),
        "You subtract from g the mean of p ∘ g over the keys. Subtract the sum, p · g."),
    Mistake("the sum of g", backwards(jacobian=lambda a, da: a * (da - da.sum(axis=-1, keepdims=True))),
        "You subtract from g its sum. Weight each number first: subtract p · g."),
    Mistake("the mean of g", backwards(jacobian=lambda a, da: a * (da - da.mean(axis=-1, keepdims=True))),
        "You subtract from g its plain mean. Subtract the mean with the weights p: p · g."),
    Mistake("p · g down the columns", backwards(jacobian=lambda a, da: a * (da - (a * da).sum(axis=-2, keepdims=True))),
        "The products are added over the queries, axis −2. Each query has its own "
        "p · g: add along the keys, the last axis."),
    Mistake("one p · g for all", backwards(jacobian=lambda a, da: a * (da - (a * da).sum())),
        "p · g is one number for the whole array. Each query has its own: axis=-1 and keepdims=True."),
    Mistake("softmax over queries", backwards(softmax=lambda s: arrays.softmax(s, axis=-2)),
        "The weights come from a softmax over the queries, axis −2. Each query shares "
        "its attention among the keys, axis −1."),
    Mistake("softmax without max-shift", backwards(softmax=unshifted),
        "Right until the scores get into the hundreds. There e^s is ∞ or 0. Subtract the largest score "
        "of each row first, or use your softmax.", overflow=True),
    Mistake("dq and dk without the scale", backwards(after=unscaled),
        "dv is right, but dq and dk lack the scale: the scores are divided by √d_k on the way "
        "forward, so what flows back is divided too."),
    Mistake("weights without the scale", backwards(scale=unscaled),
        "The weights are those of scores without the scale. Divide them by √d_k before "
        "the softmax, and what comes back as well."),
    Mistake("no scale at all", backwards(scale=unscaled, after=unscaled),
        "The scale 1/√d_k is missing, both before the softmax and in the gradients."),
    Mistake("d_k for its root", backwards(scale=lambda d: 1 / d, after=lambda d: 1 / d),
        "You divide by d_k, forward and back. Divide by √d_k."),
    Mistake("dv from dS", backwards(values=lambda a, ds, do: swapped(ds) @ do),
        "dv is dSᵀ do. The output is A v, so dv = Aᵀ do."),
    Mistake("dq and dk exchanged", backwards(result=lambda dq, dk, dv: (dk, dq, dv)),
        "dq and dk are exchanged. Return (dq, dk, dv), each of the shape of its array."),
    Mistake("dv first", backwards(result=lambda dq, dk, dv: (dv, dq, dk)),
        "dv comes first. Return (dq, dk, dv), in this order."),
    Mistake("do changed", changing_do,
        "The numbers are right, but `do` was changed: *= and -= write into the caller's array. Make a new one."),
)  # fmt: skip


# Back to the weights -------------------------------------------------------------------------------------------------


def rows(x):
    """All tokens under each other, whatever axes are in front."""
    return x.reshape(-1, x.shape[-1])


def times(x, dy):
    """xᵀ dy, added up over everything in front."""
    return rows(x).T @ rows(dy)


def each_apart(x, dy):
    return swapped(x) @ dy


def to_weights(
    back=None,
    weight=times,
    to_x=lambda dq, dk, dv, ws: dq @ ws[0].T + dk @ ws[1].T + dv @ ws[2].T,
    values=lambda dv, do: dv,
    result=lambda dx, *dws: (dx, *dws),
):
    """The way back to x and the three matrices, with one thing changed; back: a way back through attention."""
    back = back or backwards()

    def through_the_layer(x, w_q, w_k, w_v, do):
        dq, dk, dv = back(x @ w_q, x @ w_k, x @ w_v, do)
        dv = values(dv, do)
        return result(to_x(dq, dk, dv, (w_q, w_k, w_v)), *(weight(x, dy) for dy in (dq, dk, dv)))

    return through_the_layer


def only_to_x(*which):
    return lambda dq, dk, dv, ws: sum((dq, dk, dv)[i] @ ws[i].T for i in which)


def changing_x(x, w_q, w_k, w_v, do):
    gradients = to_weights()(x, w_q, w_k, w_v, do)
    x += gradients[0]
    return gradients


LAYER_MISTAKES = (
    Mistake("a matrix for each sequence", to_weights(weight=each_apart),
        "Right for one sequence. With a batch each dw has a matrix for each sequence: the same weights serve them all, "
        "so add up over the leading axes."),
    Mistake("the mean over the batch", to_weights(weight=lambda x, dy: times(x, dy) / (len(rows(x)) / x.shape[-2])),
        "Each dw is the mean over the sequences. Every sequence adds its part to the loss, so it is their sum."),
    Mistake("the last sequence only", to_weights(weight=lambda x, dy: each_apart(x, dy)[(-1,) * (x.ndim - 2)]),
        "Each dw comes from one sequence of the batch. Add up over all of them."),
    Mistake("the mean over the tokens", to_weights(weight=lambda x, dy: times(x, dy) / x.shape[-2]),
        "Each dw is divided by the number of tokens. The contributions of the tokens add up: xᵀ dq, as it is."),
    Mistake("not multiplied by x", to_weights(weight=lambda x, dy: dy),
        "These are dq, dk and dv. One step is missing: q = x w_q, so dw_q = xᵀ dq."),
    Mistake("dx by way of q alone", to_weights(to_x=only_to_x(0)),
        "The three dw are right. dx holds the way through q alone; x is used for k and v as well, so three terms "
        "are added."),
    Mistake("dx by way of v alone", to_weights(to_x=only_to_x(2)),
        "The three dw are right. dx holds the way through v alone; x is used for q and k as well, so three terms "
        "are added."),
    Mistake("dx without the way through v", to_weights(to_x=only_to_x(0, 1)),
        "The three dw are right. dx lacks the way through v: dv w_vᵀ."),
    Mistake("dx without the way through k", to_weights(to_x=only_to_x(0, 2)),
        "The three dw are right. dx lacks the way through k: dk w_kᵀ."),
    Mistake("dx without the way through q", to_weights(to_x=only_to_x(1, 2)),
        "The three dw are right. dx lacks the way through q: dq w_qᵀ."),
    Mistake("the attention passed over", to_weights(values=lambda dv, do: do),
        "dw_q and dw_k are right. For the values you use do in place of dv, and dv = Aᵀ do."),
    Mistake("no scale", to_weights(back=backwards(scale=unscaled, after=unscaled)),
        "The scale 1/√d_k is missing, both before the softmax and in the gradients."),
    Mistake("the softmax passed over", to_weights(back=backwards(jacobian=lambda a, da: da)),
        "dw_v is right, but on the way to q and k the gradient has to pass the softmax: p ∘ (g − p · g)."),
    Mistake("softmax without max-shift", to_weights(back=backwards(softmax=unshifted)),
        "Right until the scores get into the hundreds. There e^s is ∞ or 0. Subtract the largest score "
        "of each row first, or use your softmax.", overflow=True),
    Mistake("dw_q and dw_k exchanged", to_weights(result=lambda dx, q, k, v: (dx, k, q, v)),
        "dw_q and dw_k are exchanged. Return (dx, dw_q, dw_k, dw_v)."),
    Mistake("dx last", to_weights(result=lambda dx, *dws: (*dws, dx)),
        "dx comes last. Return (dx, dw_q, dw_k, dw_v), in this order."),
    Mistake("x changed", changing_x,
        "The numbers are right, but x or do was changed: += writes into the caller's array. Make a new one."),
)  # fmt: skip


# Half precision ------------------------------------------------------------------------------------------------------

HALF, SINGLE = np.float16, np.float32


def root_scale(q):
    return 1 / math.sqrt(q.shape[-1])


def in_type(q, k, v, scores=SINGLE, first=False, exps=SINGLE, late=False, shift=True, scale=root_scale):
    """Attention in NumPy with the types of its steps chosen.

    scores: in which q and k are multiplied; first: whether q is scaled before that. exps: of the exponentials, their
    sum and what follows; late: whether the sum divides last. shift: whether the largest score is subtracted.
    """
    with np.errstate(all="ignore"):
        factor = scores(scale(q))
        q, k = q.astype(scores), swapped(k).astype(scores)
        s = (q * factor) @ k if first else q @ k * factor
        s = s.astype(np.promote_types(scores, exps))
        powers = np.exp(s - s.max(axis=-1, keepdims=True) if shift else s).astype(exps)
        total = powers.sum(axis=-1, keepdims=True)
        return (powers @ v.astype(exps)) / total if late else (powers / total) @ v.astype(exps)


def typed(**how):
    return lambda q, k, v: in_type(q, k, v, **how)


def half_attention(q, k, v):
    return arrays.attention(*(x.astype(np.float64) for x in (q, k, v)))[0].astype(SINGLE)


def scores_cut(most):
    """Attention in float32 whose scores are kept below `most` in place of a shift."""

    def with_scores_cut(q, k, v):
        with np.errstate(all="ignore"):
            s = np.clip(q.astype(SINGLE) @ swapped(k).astype(SINGLE) * SINGLE(root_scale(q)), -most, most)
            return np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True) @ v.astype(SINGLE)

    return with_scores_cut


def half_in_place(q, k, v):
    output = half_attention(q, k, v)
    q *= HALF(0.5)
    return output


UPCAST = "Turn q and k into float32 before they are multiplied: q.astype(np.float32)."
HALF_MISTAKES = (
    Mistake("everything in float16", typed(scores=HALF, exps=HALF),
        "Everything is computed in float16. Products past 65 504 are infinite, and scores near 2000 lose their "
        f"fractions. {UPCAST}"),
    Mistake("scaled first, everything in float16", typed(scores=HALF, exps=HALF, first=True),
        "q is scaled first, which takes large scores back into float16. But there its numbers lie 1 apart at 2000 and "
        f"16 apart at 16 384, so the gaps are lost. {UPCAST}"),
    Mistake("float32 after the scores", typed(scores=HALF),
        f"The softmax is in float32, but the scores were in float16 before it, which is too late. {UPCAST}"),
    Mistake("scaled first, float32 after the scores", typed(scores=HALF, first=True),
        "The softmax is in float32, but the scores were in float16 before it, where numbers lie 1 apart at 2000 "
        f"and 16 apart at 16 384. {UPCAST}"),
    Mistake("everything in float16, without a shift", typed(scores=HALF, exps=HALF, shift=False),
        "exp overflows above 11.09 in float16. Subtract the largest score of each row first, and compute the scores "
        "in float32."),
    Mistake("float32 without a shift", typed(shift=False),
        "float32 moves the overflow of exp from 11.09 to 88.7, and no further. Subtract the largest score of each row "
        "first."),
    Mistake("exponentials added up in float16", typed(exps=HALF),
        "The scores are fine, but the exponentials are added up in float16: with many keys the sum is infinite. Keep "
        "the sum in float32."),
    Mistake("divided last, in float16", typed(exps=HALF, late=True),
        "The scores are fine, but exponentials times values are added up in float16, and that sum can be infinite "
        "where the output is not. Keep it in float32, or divide by the sum first."),
    Mistake("NaN made 0", lambda q, k, v: np.nan_to_num(in_type(q, k, v, scores=HALF, exps=HALF)),
        f"Where float16 overflows, NaN is turned into 0: no error shows, but the output is wrong. {UPCAST}"),
    Mistake("scores cut at 11", scores_cut(11.0),
        "Scores are cut at 11, so that exp does not overflow. All that are larger then count alike. Subtract the "
        "largest score of the row instead."),
    Mistake("scores cut at 80", scores_cut(80.0),
        "Scores are cut, so that exp does not overflow. All that are larger then count alike. Subtract the largest "
        "score of the row instead."),
    Mistake("no scale", typed(scale=lambda q: 1.0), "The scores are not scaled. Multiply them by 1/√d_k."),
    Mistake("d_k for its root", typed(scale=lambda q: 1 / q.shape[-1]), "You divide by d_k. Divide by √d_k."),
    Mistake("q changed", half_in_place,
        "The output is right, but q itself was changed: *= writes into the caller's array. Make a new one."),
)  # fmt: skip


# Find the bug -------------------------------------------------------------------------------------------------------


def output_scaled(q, k, v):
    output, weights = flawed(scale=lambda q, k, v: 1.0)(q, k, v)
    return output / math.sqrt(q.shape[-1]), weights


BUG = next(mistake for mistake in BUG_MISTAKES if mistake.name == "scaling after softmax")
REPLACED = {BUG.name, "no scaling"}
FIND_THE_BUG_MISTAKES = (
    Mistake(BUG.name, BUG.answer,
        "The rows of these weights do not sum to 1. With one key the one weight should be "
        "1: which line makes it something else?"),
    Mistake("no scaling", flawed(scale=lambda q, k, v: 1.0),
        "Rows sum to 1 again, but now there is no scale: it was taken out, or dividing by the sum undoes it. It "
        "belongs on the scores, before the exponential."),
    Mistake("output scaled", output_scaled,
        "The weights have no scale now, and the output is divided by √d_k in its place. The scale belongs "
        "on the scores, before the exponential."),
    *(mistake for mistake in BUG_MISTAKES if mistake.name not in REPLACED),
)  # fmt: skip


def reference_scale(q):
    return 1 / math.sqrt(q.shape[-1])


EXERCISES = {
    "variance_by_hand": Exercise(2, BY_HAND, OF_HAND, rtol=0.0, atol=1e-3),
    "dot_product_stats": Exercise(3, {"dot_product_stats": sampled()}, STATS_MISTAKES),
    "correlated": Exercise(3, {"dot_moments": dot_moments}, MOMENTS_MISTAKES),
    "attention_scale": Exercise(1, {"attention_scale": reference_scale}, SCALE_MISTAKES),
    "saturation": Exercise(3, {"saturation": peaked()}, PEAKED_MISTAKES),
    "find_the_bug": Exercise(2, {"broken_attention": arrays.attention}, FIND_THE_BUG_MISTAKES),
    "stable_softmax": Exercise(3, {"softmax": shifted_softmax()}, SOFTMAX_MISTAKES),
    "logsumexp": Exercise(2, {"logsumexp": shifted_logsumexp()}, LOGSUMEXP_MISTAKES, ("stable_softmax",), rtol=2e-7),
    "half_attention": Exercise(
        2, {"half_attention": half_attention}, HALF_MISTAKES, ("stable_softmax",), rtol=1e-3, atol=1e-3
    ),
    "softmax_jacobian": Exercise(3, {"softmax_jacobian": jacobian}, JACOBIAN_MISTAKES),
    "attention_backward": Exercise(4, {"attention_backward": backwards()}, BACKWARD_MISTAKES, ("stable_softmax",)),
    "layer_backward": Exercise(
        4, {"layer_backward": to_weights()}, LAYER_MISTAKES, ("attention_backward", "stable_softmax")
    ),
    "tells_right": duel(),
}
