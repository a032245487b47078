"""Day 1: the answers to its exercises, and the mistakes that people make in them."""

import math
from dataclasses import replace

import numpy as np

from course_utils.answers.day1.duel import duel
from course_utils.answers.shared.attention import (
    ATTENTION_MISTAKES,
    BUG_MISTAKES,
    LOST_AXIS,
    OVER_QUERIES,
    flawed,
    share,
    without_keepdims,
)
from course_utils.attention import arrays, lists
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.days.day1.given.ladders import TRACE_K, TRACE_Q, TRACE_V

# Softmax of a row ---------------------------------------------------------------------------------------------------


def softmax_shifted(row, shift):
    exps = [math.exp(x - shift) for x in row]
    return [e / sum(exps) for e in exps]


def softmax_clipped(row):
    return softmax_shifted([min(max(x, -700.0), 700.0) for x in row], 0.0)


def softmax_over(total):
    """Exponentials over total(row, shift): those of the entries as they are, and those after a shift."""

    def over(shift):
        return lambda row: [math.exp(x - shift(row)) / total(row, shift(row)) for x in row]

    return over(lambda row: 0.0), over(max)


SOFTMAX_MISTAKES = (
    Mistake("softmax without max-shift", lambda row: softmax_shifted(row, 0.0),
        "The formula is right, but math.exp overflows above 709 and gives 0 below −745. Subtract max(row) from every "
        "entry first: both halves of the fraction shrink by the same factor, so the weights stay the same.",
        overflow=True),
    Mistake("shift by the smallest entry", lambda row: softmax_shifted(row, min(row)),
        "You subtract min(row). The largest entry can still be far above it and overflow. Subtract "
        "max(row), so that every exponent is at most 0."),
    Mistake("shift by the mean", lambda row: softmax_shifted(row, sum(row) / len(row)),
        "You subtract the mean of the row. The largest entry can still be far above it. Subtract max(row)."),
    Mistake("shift by the first entry", lambda row: softmax_shifted(row, row[0]),
        "You subtract row[0], which need not be the largest. Subtract max(row)."),
    Mistake("shift by the last entry", lambda row: softmax_shifted(row, row[-1]),
        "You subtract row[-1], which need not be the largest. Subtract max(row)."),
    Mistake("shift by the largest absolute value", lambda row: softmax_shifted(row, max(abs(x) for x in row)),
        "You subtract the largest absolute value. In a row of very negative entries that pushes all "
        "of them further down. Subtract max(row)."),
    Mistake("zero among the entries of the shift", lambda row: softmax_shifted(row, max(0.0, *row)),
        "The number that you subtract is never below 0, so a row of very negative entries is not shifted and all its"
        " exponentials are 0. Subtract max(row), whatever its sign."),
    Mistake("entries clipped", softmax_clipped,
        "Clipping the entries avoids the overflow but changes the answer: 1000, 1001 and 999 "
        "all become the same. Subtract max(row)."),
    Mistake("not normalised", lambda row: [math.exp(x - max(row)) for x in row],
        "These are the exponentials before the division. Divide each one by their sum."),
    Mistake("no exponential", lambda row: [x / sum(row) for x in row],
        "These are the entries divided by their sum. The softmax divides exponentials: e^x over the sum of all e^x."),
    *(
        Mistake(f"{name}{after}", answer, message)
        for name, total, message in (
            ("divided by the number of entries", lambda row, shift: len(row),
                "You divide by the number of entries. Divide by the sum of the exponentials."),
            ("divided by the sum of the entries", lambda row, shift: sum(row),
                "You divide by the sum of the entries. Divide by the sum of their exponentials."),
            ("divided by the exponential of the sum", lambda row, shift: math.exp(sum(row) - shift),
                "You divide by the exponential of the sum. Take the exponential of each entry first, and then the "
                "sum of these."),
            ("divided by the largest exponential", lambda row, shift: math.exp(max(row) - shift),
                "You divide by the largest exponential. Divide by the sum of all of them."),
        )
        for after, answer in zip(("", ", after the shift"), softmax_over(total), strict=True)
        if (name, after) != ("divided by the largest exponential", ", after the shift")  # nothing is divided then
    ),
    Mistake("exponential of the shifted sum", lambda row: [
            math.exp(x - max(row)) / math.exp(sum(x - max(row) for x in row)) for x in row],
        "You divide by the exponential of the sum. Take the exponential of each entry first, and then the sum of "
        "these."),
    Mistake("shift above the line only", lambda row: [
            math.exp(x - max(row)) / sum(math.exp(y) for y in row) for x in row],
        "You subtract the maximum above the line only. Use the same exponentials in the sum."),
    Mistake("shift below the line only", lambda row: [
            math.exp(x) / sum(math.exp(y - max(row)) for y in row) for x in row],
        "You subtract the maximum below the line only. Use the same exponentials above it."),
    Mistake("powers of two", lambda row: [2.0 ** (x - max(row)) / sum(2.0 ** (y - max(row)) for y in row) for x in row],
        "This uses powers of 2. The softmax uses powers of e: math.exp."),
    Mistake("sign turned", lambda row: lists.softmax([-x for x in row]),
        "The smallest entry gets the largest weight, because there is a minus sign too many in the exponent."),
    Mistake("sign turned in the shift", lambda row: [
            math.exp(max(row) - x) / sum(math.exp(max(row) - y) for y in row) for x in row],
        "The smallest entry gets the largest weight: take the exponential of x - max(row), and not of max(row) - x."),
    Mistake("softmax twice", lambda row: lists.softmax(lists.softmax(row)),
        "This is the softmax of the softmax. Apply it once."),
    Mistake("log-softmax", lambda row: [x - lists.logsumexp(row) for x in row],
        "These are logarithms of the weights. Take the exponential."),
    Mistake("one sigmoid each", lambda row: [0.5 * (1 + math.tanh(x / 2)) for x in row],
        "Each entry goes through a sigmoid on its own. In a softmax the entries share one sum."),
    Mistake("rounded", lambda row: [round(w, 2) for w in lists.softmax(row)],
        "The weights are rounded to two decimals. Return them as they are."),
    Mistake("a generator used twice", lambda row: [],
        "Your function returns an empty list. A generator such as (math.exp(x) for x in row) can be used only once, "
        "and sum has used it up: write it with square brackets. Or perhaps nothing is ever appended to your list."),
)  # fmt: skip


# Scores and scale ---------------------------------------------------------------------------------------------------


def dot_products(Q, K):
    return [[lists.dot(query, key) for key in K] for query in Q]


def untransposed(Q, K):
    return (np.array(Q) @ np.array(K)).tolist()


def with_columns(Q, K):
    columns = list(zip(*K, strict=True))
    return [[sum(a * b for a, b in zip(q, column, strict=False)) for column in columns] for q in Q]


def running_totals(Q, K):
    """The total is set to 0 once, and not for each pair."""
    totals = np.cumsum(np.array(dot_products(Q, K)).ravel())
    return totals.reshape(len(Q), len(K)).tolist()


def along_rows(q, k, v):
    """The right weights, blended with `for column in V` in place of zip(*V)."""
    _, weights = lists.attention(q, k, v)
    return [[sum(w * x for w, x in zip(row, value, strict=False)) for value in v] for row in weights], weights


def of_pairs(make):
    """A matrix with make(query, key) for each pair of rows."""
    return lambda Q, K: [[make(q, k) for k in K] for q in Q]


def cosines(Q, K):
    return [[lists.dot(q, k) / (math.hypot(*q) * math.hypot(*k)) for k in K] for q in Q]


SCORES_MISTAKES = (
    Mistake("K not transposed", untransposed,
        "These are the entries of Q times K, without the transpose. Row i, column j should be the dot "
        "product of query i and key j, two rows."),
    Mistake("columns of K", with_columns,
        "You pair each query with the columns of K. A key is a row of K: loop over K itself."),
    Mistake("Q against itself", lambda Q, K: dot_products(Q, Q),
        "These are dot products of queries with queries. The second factor is the key."),
    Mistake("K against itself", lambda Q, K: dot_products(K, K),
        "These are dot products of keys with keys. The first factor is the query."),
    Mistake("products not summed",
        lambda Q, K: [[a * b for a, b in zip(q, k, strict=True)] for q, k in zip(Q, K, strict=True)],
        "These are entry-by-entry products of matching rows. A dot product adds "
        "them up, and every query meets every key."),
    Mistake("cosine similarity", cosines,
        "These are cosines: the dot products are divided by the lengths. Attention uses the plain dot product."),
    Mistake("squared distance",
        lambda Q, K: [[sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) for k in K] for q in Q],
        "These are squared distances. Attention scores are dot products."),
    Mistake("last dimension left out",
        lambda Q, K: [[sum(q[i] * k[i] for i in range(len(q) - 1)) for k in K] for q in Q],
        "The last of the d_k products is missing: check where the range ends."),
    Mistake("only the last product", of_pairs(lambda q, k: q[-1] * k[-1]),
        "Only the last of the d_k products is left: each one overwrites the one before. Add them up, with +=."),
    Mistake("only the first product", of_pairs(lambda q, k: q[0] * k[0]),
        "Only the first of the d_k products is there: the function returns, or the "
        "loop ends, before the others are added."),
    Mistake("absolute values", of_pairs(lambda q, k: abs(lists.dot(q, k))),
        "The scores have lost their signs. A dot product may be negative, when query and key point away from each "
        "other: leave out abs."),
    Mistake("absolute products", of_pairs(lambda q, k: sum(abs(a * b) for a, b in zip(q, k, strict=True))),
        "Each product has lost its sign before the sum. Positive and negative ones "
        "cancel in a dot product: leave out abs."),
    Mistake("averaged over d_k", of_pairs(lambda q, k: lists.dot(q, k) / len(q)),
        "The products of a pair are averaged, or their sum is divided by d_k. A dot product is just the sum."),
    Mistake("entries added, not multiplied", of_pairs(lambda q, k: sum(q) + sum(k)),
        "These are sums of all entries of query and key. A dot product multiplies them pair by pair before it adds."),
    Mistake("sums multiplied", of_pairs(lambda q, k: sum(q) * sum(k)),
        "These are the sum of the query times the sum of the key. A dot product first multiplies pair by pair and "
        "then adds."),
    Mistake("a total that is never reset", running_totals,
        "Each score includes all the scores before it, because the total is not reset to 0 for the next pair. Reset "
        "it inside the loop over the keys."),
    Mistake("one row in every place", lambda Q, K: [dot_products(Q, K)[-1]] * len(Q),
        "Every row is that of the last query. [[0] * m] * n holds the same list n times, so whatever you write into "
        "one row appears in all of them. Make a new list for each row: [[0] * m for _ in Q]."),
    Mistake("one row that all queries share", lambda Q, K: [np.sum(dot_products(Q, K), axis=0).tolist()] * len(Q),
        "All rows are one and the same list: [[0] * m] * n holds it n times, so what you add to one row is added to "
        "all. Make a new list for each row: [[0] * m for _ in Q]."),
    Mistake("first dimension left out",
        lambda Q, K: [[sum(q[i] * k[i] for i in range(1, len(q))) for k in K] for q in Q],
        "The first of the d_k products is missing: indices begin at 0."),
    Mistake("one flat list", lambda Q, K: [s for row in dot_products(Q, K) for s in row],
        "The scores are in one flat list. Return a list of rows instead, one for each query."),
    Mistake("softmax already", lambda Q, K: lists.softmax(dot_products(Q, K)),
        "These rows have been through the softmax. This exercise asks only for QKᵀ."),
)  # fmt: skip


def each(change):
    """A function of one score and d_k, applied to all scores."""
    return lambda S, d_k: [[change(s, d_k) for s in row] for row in S]


SCALE_MISTAKES = (
    Mistake("no scaling", each(lambda s, d_k: s), "The scores come back unchanged. Divide each one by math.sqrt(d_k)."),
    Mistake("half of d_k", each(lambda s, d_k: s / (d_k**1 / 2)),
        "You divide by d_k / 2. In Python d_k ** 1 / 2 is (d_k ** 1) / 2; write d_k ** 0.5 or math.sqrt(d_k)."),
    Mistake("twice d_k", each(lambda s, d_k: s / d_k**1 / 2),
        "You divide by 2·d_k. In Python s / d_k ** 1 / 2 is (s / d_k) / 2; write math.sqrt(d_k)."),
    Mistake("root rounded down", each(lambda s, d_k: s / int(math.sqrt(d_k))),
        "The root of d_k has been cut to a whole number. Keep math.sqrt(d_k) as it is."),
    Mistake("whole-number division", each(lambda s, d_k: s // math.sqrt(d_k)),
        "The results are rounded down: // should be /."),
    Mistake("square of d_k", each(lambda s, d_k: s / d_k**2), "You divide by d_k². Divide by its root."),
    Mistake("root of the number of keys", lambda S, d_k: [[s / math.sqrt(len(row)) for s in row] for row in S],
        "You divide by the root of the number of keys, the width of S. The scale depends on d_k only."),
    Mistake("softmax already", lambda S, d_k: lists.softmax(each(lambda s, d: s / math.sqrt(d))(S, d_k)),
        "These rows have been through the softmax. This exercise asks only for the scaled scores."),
)  # fmt: skip


# Attention ----------------------------------------------------------------------------------------------------------


def over_rows(exps):
    return exps / exps.sum(axis=-1, keepdims=True)


def over_columns(exps):
    return exps / exps.sum(axis=-2, keepdims=True)


def one_by_one(attention):
    """An attention, one matrix at a time."""

    def each(q, k, v):
        if q.ndim == 2:
            return attention(q, k, v)
        pairs = [each(*matrices) for matrices in zip(q, k, v, strict=True)]
        return np.array([output for output, _ in pairs]), np.array([weights for _, weights in pairs])

    return each


BATCHED_MISTAKES = (
    *BUG_MISTAKES,
    Mistake(
        "a loop over the batch",
        one_by_one(arrays.attention),
        "The values are right, but a Python loop goes through the matrices, one at a time or in groups. @ and "
        "axis=-1 handle all leading dimensions at once.",
    ),
)
AS_IT_STANDS = Mistake(
    OVER_QUERIES.name,
    OVER_QUERIES.answer,
    "Each column of these weights sums to 1, but the rows do not. Which is the attention of one query, a row or a "
    "column?",
)
FIND_THE_BUG_MISTAKES = (
    *(AS_IT_STANDS if mistake is OVER_QUERIES else mistake for mistake in BUG_MISTAKES),
    Mistake("only the sum mended", flawed(softmax=lambda s: over_rows(np.exp(s - s.max(axis=-2, keepdims=True)))),
        "The sum now runs along the row, but the largest score is still taken from the column. It cancels "
        "only if it is the same for the whole row."),
    Mistake("only the maximum mended",
        flawed(softmax=lambda s: over_columns(np.exp(s - s.max(axis=-1, keepdims=True)))),
        "The largest score is now that of the row, but the sum still runs down the column: the rows do not sum to 1."),
    Mistake("keepdims left out, one by one", one_by_one(flawed(softmax=without_keepdims)), LOST_AXIS),
)  # fmt: skip


# Soft look-up -------------------------------------------------------------------------------------------------------


def lookup(weights_of):
    """A look-up whose weights are `weights_of(query, keys, temperature)`."""

    def soft_lookup(query, keys, values, temperature):
        with np.errstate(all="ignore"):
            return weights_of(query, keys, temperature) @ values

    return soft_lookup


def nearest(query, keys, t):
    distances = ((keys - query) ** 2).sum(axis=-1)
    return arrays.softmax(-distances / t)


def best_only(query, keys, t):
    return np.eye(len(keys))[np.argmax(keys @ query)]


LOOKUP_MISTAKES = (
    Mistake("softmax without max-shift", lookup(lambda q, k, t: share(k @ q / t)),
        "This is right as long as the scores divided by the temperature are near 0. If one is far above 0, exp "
        "overflows. If all are far below 0, exp gives 0 for every key, and the weights are 0/0. Divide by the "
        "temperature, then subtract the largest, then take exp.", overflow=True),
    Mistake("shift before the temperature", lookup(lambda q, k, t: share(k @ q / t, peak=(k @ q).max())),
        "You subtract the largest dot product without dividing it by the temperature. Shift what goes into exp: "
        "scaled = scores / temperature, then scaled - scaled.max()."),
    Mistake("multiplied by the temperature", lookup(lambda q, k, t: arrays.softmax(k @ q * t)),
        "You multiply by the temperature, so a low one makes the look-up softer. Divide by it."),
    Mistake("temperature ignored", lookup(lambda q, k, t: arrays.softmax(k @ q)),
        "The temperature changes nothing here. Divide the dot products by it before the softmax."),
    Mistake("hard look-up", lookup(best_only),
        "You return only the value of the best key. The soft look-up blends all values by their weights."),
    Mistake("temperature after softmax", lookup(lambda q, k, t: arrays.softmax(k @ q) / t),
        "The weights are divided by the temperature after the softmax. Divide the scores, before it."),
    Mistake("scaled by the root of d_k as well",
        lookup(lambda q, k, t: arrays.softmax(k @ q / (t * math.sqrt(len(q))))),
        "You divide by √d_k too. In this look-up the temperature takes its place."),
    Mistake("scaled by the root of d_k only", lookup(lambda q, k, t: arrays.softmax(k @ q / math.sqrt(len(q)))),
        "You divide by √d_k instead of the temperature."),
    Mistake("temperature squared", lookup(lambda q, k, t: arrays.softmax(k @ q / t**2)),
        "You divide by the square of the temperature. Divide by it only once."),
    Mistake("powers of two", lookup(lambda q, k, t: arrays.softmax(k @ q / t * math.log(2))),
        "The weights are made from powers of 2. The softmax uses powers of e: np.exp."),
    Mistake("one minus the weights", lookup(lambda q, k, t: 1 - arrays.softmax(k @ q / t)),
        "Each value is multiplied by 1 minus its weight. Multiply it by the weight itself."),
    Mistake("root of the temperature", lookup(lambda q, k, t: arrays.softmax(k @ q / math.sqrt(t))),
        "You divide by the root of the temperature. Divide by the temperature itself."),
    Mistake("distance in place of dot product", lookup(nearest),
        "You compare by distance. The score of a key is its dot product with the query."),
    Mistake("temperature kept above a floor", lookup(lambda q, k, t: arrays.softmax(k @ q / max(t, 1e-2))),
        "Temperatures below a floor are raised to it. There is no need to: once the largest is subtracted, nothing "
        "overflows."),
    Mistake("not normalised", lookup(lambda q, k, t: np.exp(k @ q / t - (k @ q / t).max())),
        "The weights are not divided by their sum."),
    Mistake("weights returned", lambda q, k, v, t: arrays.softmax(k @ q / t),
        "These are the weights. Blend the values with them: weights @ values."),
    Mistake("keys blended", lambda q, k, v, t: arrays.softmax(k @ q / t) @ k,
        "This blends the keys. Blend the values."),
)  # fmt: skip


# Self-attention -----------------------------------------------------------------------------------------------------


def projected(attention=arrays.attention, project=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_v)):
    """Self-attention with another attention, or other projections, than the right ones."""

    def self_attention(x, W_q, W_k, W_v):
        return attention(*project(*(np.asarray(a, dtype=np.float64) for a in (x, W_q, W_k, W_v))))

    return self_attention


SAME_WHEN_PROJECTED = {
    "keys blended in place of values",
    "queries against themselves",
    "keys against themselves",
    "zero among the entries of the shift",
}
SELF_ATTENTION_MISTAKES = (
    Mistake("weight matrices transposed", projected(project=lambda x, W_q, W_k, W_v: (x @ W_q.T, x @ W_k.T, x @ W_v.T)),
        "You multiply by the transposed matrices, as torch.nn.Linear does. Here it is x @ W."),
    Mistake("one projection for queries and keys",
        projected(project=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_v)),
        "Keys are made with W_q. Use W_k for them."),
    Mistake("keys projected for queries too", projected(project=lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_k, x @ W_v)),
        "Queries are made with W_k. Use W_q for them."),
    Mistake("values not projected", projected(project=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x)),
        "The output blends x itself. Blend x @ W_v."),
    Mistake("nothing projected", projected(project=lambda x, W_q, W_k, W_v: (x, x, x)),
        "The weight matrices are not used. Make q, k and v first: x @ W_q, x @ W_k, x @ W_v."),
    Mistake("values made with W_k", projected(project=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_k)),
        "Values are made with W_k. Use W_v for them."),
    *(replace(m, answer=projected(m.answer)) for m in ATTENTION_MISTAKES if m.name not in SAME_WHEN_PROJECTED),
)  # fmt: skip


# By hand ------------------------------------------------------------------------------------------------------------

TWO_DECIMALS, THREE_DECIMALS = 5.5e-3, 5.5e-4  # half a unit of the last place, and a little for rounding on the way
THREE_Q = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]  # the, arrived, parcel
THREE_K = [[1.0, 0.0], [-2.0, 1.0], [1.0, 1.0]]
TWO = lists.attention(TRACE_Q, TRACE_K, TRACE_V)


def by_hand_three(scale=2**0.5, queries=THREE_Q, keys=THREE_K, row=2):
    raw = dot_products(queries, keys)[row]
    return {"score_33": 3.0, "weights_3": lists.softmax([score / scale for score in raw])}


def by_hand_two(**step):
    output, _ = flawed(**step)(TRACE_Q, TRACE_K, TRACE_V)
    return {"order_output": output[0].tolist(), "delayed_output": output[1].tolist()}


THREE_MISTAKES = (
    Mistake("no scaling", by_hand_three(scale=1.0),
        "These are the weights without the scale: divide 1, 0 and 3 by √2 before the exponentials."),
    Mistake("scaling by d_k", by_hand_three(scale=2.0),
        "These are the weights you get when the scores are divided by d_k = 2. Divide by √2."),
    Mistake("multiplied by the root", by_hand_three(scale=0.5**0.5),
        "The scores are multiplied by √2. Divide by it."),
    Mistake("the first row", by_hand_three(row=0),
        "These are the weights of the query of “the”. The question is about the query of “parcel”."),
    Mistake("the second row", by_hand_three(row=1),
        "These are the weights of the query of “arrived”. The question is about the query of “parcel”."),
    Mistake("queries and keys exchanged", by_hand_three(queries=THREE_K, keys=THREE_Q),
        "These come from the key of “parcel” with the three queries. Take its query, the last row of Q, with each "
        "key."),
    Mistake("the row of the worked example", {"score_33": 3.0, "weights_3": [0.2483, 0.2483, 0.5035]},
        "This is the row of “arrived” in the lesson's worked example. Here the query is that of “parcel”."),
    Mistake("scaled score", {**by_hand_three(), "score_33": 3 / math.sqrt(2)},
        "2.121 is the scaled score. score_33 is the dot product itself, before the division."),
    Mistake("scores in place of weights", {"score_33": 3.0, "weights_3": [1.0, 0.0, 3.0]},
        "These are the scores. Weights come after the softmax."),
    Mistake("scaled scores in place of weights", {"score_33": 3.0, "weights_3": [0.7071, 0.0, 2.1213]},
        "These are the scaled scores. Weights come after the softmax."),
    Mistake("exponentials not normalised", {"score_33": 3.0, "weights_3": [2.0281, 1.0, 8.3423]},
        "These are the exponentials. Divide each by their sum, 11.3704."),
    Mistake("a score of 0 without a weight", {"score_33": 3.0, "weights_3": [0.1956, 0.0, 0.8044]},
        "A score of 0 is a score like any other: its exponential is e^0 = 1, so its key gets a weight too."),
    Mistake("two decimals", {"score_33": 3.0, "weights_3": [0.18, 0.09, 0.73]},
        "These are right, but rounded to 2 decimals: give 3."),
)  # fmt: skip
ROUNDED = {"order_output": [1.5, 1.5], "delayed_output": [1.4, 1.6]}
TWO_MISTAKES = (
    Mistake("order rounded, or uniform weights", {**by_hand_two(), "order_output": ROUNDED["order_output"]},
        "1.5 and 1.5 are the output of “order” rounded to one decimal: give 2. They are also the plain mean of the "
        "two values, as if both keys had the same weight."),
    Mistake("one decimal", ROUNDED, "These are right, but rounded to one decimal. Give 2."),
    Mistake("no scaling", by_hand_two(scale=lambda q, k, v: 1.0),
        "These are the outputs without the scale: divide the scores by √2 before the softmax."),
    Mistake("scaling by d_k", by_hand_two(scale=lambda q, k, v: 2.0),
        "These are the outputs you get when the scores are divided by d_k = 2. Divide by √2."),
    Mistake("multiplied by the root", by_hand_two(scale=lambda q, k, v: 0.5**0.5),
        "The scores are multiplied by √2. Divide by it."),
    Mistake("softmax over queries", by_hand_two(softmax=lambda s: arrays.softmax(s, axis=-2)),
        "These are the outputs you get when softmax runs down the columns, or when K is not transposed: with these "
        "numbers, both mistakes give the same result. A score is a row of Q times a row of K, and the softmax runs "
        "along the row."),
    Mistake("no exponential", by_hand_two(softmax=lambda s: s / s.sum(axis=-1, keepdims=True)),
        "The weights are the scores over their sum. Take exponentials before you divide."),
    Mistake("values weighted by columns", by_hand_two(blend=lambda w, v: w.T @ v),
        "The values are blended with the columns of the weights. Use the row of the query."),
    Mistake("rows exchanged", {"order_output": TWO[0][1], "delayed_output": TWO[0][0]},
        "The two outputs are swapped: “order” is row 0 and “delayed” is row 1, counted from 0."),
    Mistake("weights in place of outputs", {"order_output": TWO[1][0], "delayed_output": TWO[1][1]},
        "These are the weights. The output is the blend of the values: first weight times "
        "[2, 1] plus second weight times [1, 2]."),
    Mistake("uniform weights", {"order_output": [1.5, 1.5], "delayed_output": [1.5, 1.5]},
        "This is the mean of the values, as if both keys had the same weight."),
)  # fmt: skip


LESSON_W_K = [[0, -1], [-1, 0], [1, 1], [1, 1]]
PARCEL_MISTAKES = (
    Mistake("found itself", {"my_W_K": LESSON_W_K},
        "“arrived” finds itself: its own key, which is row 2 of W_K, counted from 0, fits its query (1, 1) best. "
        "Which rows of W_K make the key of “parcel”?"),
    Mistake("found the", {"my_W_K": [[2, 2], [0, 0], [0, 0], [0, 0]]},
        "“arrived” finds “the”. Row 0 of W_K goes only into the key of “the”. Find the row that goes only into the "
        "key of “parcel”."),
    Mistake("the and parcel alike", {"my_W_K": [[0, 0], [0, 0], [0, 0], [2, 2]]},
        "The keys of “the” and “parcel” score the same. Counted from 0, row 3 of W_K goes into both keys, row 0 only"
        " into that of “the”, and row 1 only into that of “parcel”."),
    Mistake("the and arrived alike", {"my_W_K": [[2, 2], [0, 0], [2, 2], [0, 0]]},
        "The key of “parcel” is the sum of rows 1 and 3 of W_K, counted from 0. That is the key that has to fit the "
        "query (1, 1)."),
    Mistake("parcel and arrived alike", {"my_W_K": [[0, 0], [2, 2], [2, 2], [0, 0]]},
        "The key of “parcel” fits the query, but the key of “arrived”, row 2 of W_K counted from 0, fits it just as "
        "well. Only one should."),
    Mistake("all alike", {"my_W_K": [[0, 0], [0, 0], [0, 0], [0, 0]]},
        "All three have the same score with the query (1, 1), so “arrived” finds nothing in particular. A key scores"
        " the sum of its two numbers with this query: 0 if they cancel, and a lot if both are large."),
    Mistake("parcel, not far enough", {"my_W_K": [[0, 0], [1, 1], [0, 0], [0, 0]]},
        "“parcel” comes first, but with less than 0.8. Its weight depends on how far its score is above the other "
        "two: make the key of “parcel” longer, or make the other keys point away from the query."),
    Mistake("the lifted too", {"my_W_K": [[1, 0], [0, 2], [0, 0], [0, 5]]},
        "“parcel” comes first, but with less than 0.8. Row 3 of W_K, counted from 0, goes into the key of “the” as "
        "well, so it raises both scores. Use row 1, which goes only into the key of “parcel”."),
    Mistake("the finds parcel too", {"my_W_K": [[0, 0], [2, 2], [0, 0], [0, 0]]},
        "“the” should give “parcel” at most 0.2. Its query is (1, 0), so it sees only the first number of each key. "
        "The query of “arrived” is (1, 1) and sees the sum of both."),
    Mistake("transposed", {"my_W_K": [[0, 2, 0, 0], [0, 2, 0, 0]]},
        "It has to be 4 × 2: a row for each of the four numbers that describe a token, so that X @ W_K is possible."),
    Mistake("keys in place of W_K", {"my_W_K": [[0, 0], [2, 2], [0, 0]]},
        "Three rows would be the keys themselves. W_K makes the keys, as X @ W_K, so it has four rows, one for each "
        "column of X."),
    Mistake("another shape", {"my_W_K": [2, 2]},
        "It has to be 4 × 2, four rows of two numbers, as in the lesson: a list of four lists, or an array."),
    Mistake("no finite numbers", {"my_W_K": [[0, 0], [math.inf, math.inf], [0, 0], [0, 0]]},
        "Small whole numbers are enough."),
    Mistake("scores without bounds", {"my_W_K": [[0, 0], [1e308, 1e308], [0, 0], [0, 0]]},
        "Small whole numbers are enough."),
)  # fmt: skip


def reference_scale(S, d_k):
    return [[s / math.sqrt(d_k) for s in row] for row in S]


def reference_lookup(query, keys, values, temperature):
    return arrays.softmax(keys @ query / temperature) @ values


EXERCISES = {
    "softmax_row": Exercise(2, {"softmax_row": lists.softmax}, SOFTMAX_MISTAKES),
    "soft_lookup": Exercise(
        3,
        {"soft_lookup": reference_lookup},
        LOOKUP_MISTAKES,
        ("softmax_row",),
        scaled=lambda factor: lookup(lambda q, k, t: arrays.softmax(factor * (k @ q / t))),
    ),
    "by_hand_three": Exercise(2, by_hand_three(), THREE_MISTAKES, rtol=0.0, atol=THREE_DECIMALS),
    "by_hand_two": Exercise(2, by_hand_two(), TWO_MISTAKES, rtol=0.0, atol=TWO_DECIMALS),
    "find_the_parcel": Exercise(2, {"my_W_K": [[0, 0], [-1, 4], [0, 0], [0, 0]]}, PARCEL_MISTAKES),
    "scores": Exercise(2, {"scores": dot_products}, SCORES_MISTAKES),
    "scale_scores": Exercise(1, {"scale_scores": reference_scale}, SCALE_MISTAKES),
    "attention_lists": Exercise(
        3,
        {"attention_lists": lists.attention},
        (
            *ATTENTION_MISTAKES,
            Mistake(
                "rows of V in place of its columns",
                along_rows,
                "The weights are right, but the output blends along the rows of V. Each number of the output is a row "
                "of weights times a column of V, and zip(*V) gives the columns.",
            ),
        ),
        ("softmax_row", "scores", "scale_scores"),
    ),
    "self_attention": Exercise(4, {"self_attention": projected()}, SELF_ATTENTION_MISTAKES),
    "find_the_bug": Exercise(2, {"broken_attention": arrays.attention}, FIND_THE_BUG_MISTAKES),
    "attention_batched": Exercise(4, {"attention_batched": arrays.attention}, BATCHED_MISTAKES),
    "tells_right": duel(),
}
