"""The ladders of day 1: the test inputs (rungs) of each exercise.

Every known mistake fails on some of them: d_k, d_v, n, m and d_model all differ wherever they can, no d_k is
4 (where √d_k = d_k / 2), and large scores come in both signs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_utils.checks.kernel.forbidden import LIBRARY_SOFTMAX, WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import bytecodes_grow, changes
from course_utils.checks.kernel.small import BLANK, Small, one_of, whole
from course_utils.days.day1.given.finding import whom_arrived_finds
from course_utils.days.shared.given.draws import UNTOUCHED, K, Q, V, draw, draw_qkv, far_below_zero, rows_far_apart

TRACE_Q = [[1.0, 0.5], [0.5, 1.0]]
TRACE_K = [[0.8, 0.2], [0.3, 0.9]]
TRACE_V = [[2.0, 1.0], [1.0, 2.0]]


def untouched(*args: Any) -> Rung:
    """Return a rung that an answer fails if it writes into its arguments."""
    why = (
        "The result is right, but your function changes its argument, which the caller still needs. Make a new list or "
        "array."
    )
    return Rung(UNTOUCHED, args, why, changes)


def softmax_row(rng: np.random.Generator) -> list[Rung]:
    row = draw(rng, 5)
    return [
        Rung("one entry takes all the weight", ([3.0],), "e^x / e^x is 1, whatever x is."),
        Rung("equal entries share equally", ([2.0] * 4,), "Equal scores leave nothing to choose between."),
        Rung("two entries", (draw(rng, 2).tolist(),),
            "Divide the exponential of each entry by the sum of the exponentials."),
        Rung("a row of five, some negative", (row.tolist(),),
            "Divide the exponential of each entry by the sum of all exponentials."),
        Rung("whole numbers", ([3, 1, 2],), "Entries may be ints."),
        Rung("fifty entries", ((2 * draw(rng, 50)).tolist(),), "A row may have any length."),
        Rung("large entries", ([1000.0, 1001.0, 999.0],),
            "math.exp overflows above 709. Subtract the largest entry from all of them first: the weights stay "
            "the same."),
        Rung("very negative entries", ([-1000.0, -1001.0, -999.0],),
            "math.exp gives 0 below −745, and 0 / 0 is not a weight. Subtract the largest entry first."),
        Rung("one entry far below the others", ([3.0, -5000.0, 2.0],),
            "e^−5000 is 0, and the others share all the weight. Subtract the "
            "largest entry, here 3, and nothing larger."),
        Rung("the largest entry first", ([5000.0, 4000.0, -5000.0],), "Subtract the largest entry, not any other."),
        Rung("the largest entry last", ([-5000.0, 4000.0, 5000.0],), "Subtract the largest entry, not any other."),
        Rung("the largest entry in the middle", ([2.0, 801.0, -100.0, 800.0, 3.0],),
            "Subtract the largest entry, not any other."),
        Rung("the same row shifted by 50", ((row + 50).tolist(),),
            "Adding the same number to all entries does not change the weights."),
        Rung("a 0 among the entries", ([0.0, 1.0, -2.0],), "A score of 0 is a score like any other: e^0 is 1."),
        untouched([0.5, 2.0, -1.0]),
    ]  # fmt: skip


def scores(rng: np.random.Generator) -> list[Rung]:
    return [
        Rung("one query, one key", ([[2.0, 3.0]], [[4.0, 5.0]]), "One dot product: 2·4 + 3·5."),
        Rung("one query, one key, a minus sign", ([[2.0, -3.0]], [[4.0, 5.0]]),
            "Products keep their signs, and so does their sum: 2·4 − 3·5."),
        Rung("the worked example", (Q, K), "Row i, column j holds the dot product of query i and key j."),
        Rung("as many tokens as dimensions", (draw(rng, 3, 3).tolist(), draw(rng, 3, 3).tolist()),
            "Row i, column j is the dot product of row i of Q and row j of K: a sum of d_k "
            "products, here 3. That is Q times K transposed."),
        Rung("two queries, four keys", (draw(rng, 2, 3).tolist(), draw(rng, 4, 3).tolist()),
            shape_hint="The result has a row for each query and a column for each key."),
        Rung("four queries, two keys", (draw(rng, 4, 3).tolist(), draw(rng, 2, 3).tolist()),
            shape_hint="The result has a row for each query and a column for each key."),
        Rung("one dimension", (draw(rng, 2, 1).tolist(), draw(rng, 3, 1).tolist()), "d_k may be 1."),
        Rung("seven dimensions", (draw(rng, 3, 7).tolist(), draw(rng, 5, 7).tolist()), "Sum over all d_k entries."),
        Rung("large entries", ((100 * draw(rng, 2, 3)).tolist(), (100 * draw(rng, 3, 3)).tolist()),
            "Scores are not normalised."),
        Rung("equal rows, and a query of zeros",
            ([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]),
            "Each query has a row and each key has a column, even if two are equal or one is all zeros."),
        untouched(TRACE_Q, TRACE_K),
    ]  # fmt: skip


def scale_scores(rng: np.random.Generator) -> list[Rung]:
    return [
        Rung("d_k = 1 changes nothing", (draw(rng, 2, 3).tolist(), 1), "√1 is 1."),
        Rung("the worked example", ([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]], 2), "Divide by √2."),
        Rung("d_k = 3", (draw(rng, 2, 4).tolist(), 3), "Divide each score by √d_k."),
        Rung("d_k = 64", ((10 * draw(rng, 3, 2)).tolist(), 64), "Divide each score by √64 = 8."),
        Rung("d_k = 128, one score", ([[90.0]], 128), "The divisor is √d_k, whatever the shape of the scores."),
        Rung("whole numbers", ([[7, -3], [2, 5], [1, 0]], 8), "Scores may be ints; the results are not."),
        untouched(TRACE_Q, 3),
    ]


def attention_lists(rng: np.random.Generator) -> list[Rung]:
    def lists(*arrays):
        return tuple(a.tolist() for a in arrays)

    return [
        Rung("shapes with 3 queries, 4 keys, d_k = 2, d_v = 5",
            lists(draw(rng, 3, 2), draw(rng, 4, 2), draw(rng, 4, 5)),
            shape_hint="Return the pair (output, weights), of shapes n × d_v and n × m."),
        Rung("one key: the output is its value", lists(draw(rng, 2, 3), draw(rng, 1, 3), draw(rng, 1, 2)),
            "With one key its weight is 1."),
        Rung("two tokens", (TRACE_Q, TRACE_K, TRACE_V), "Scores, scale, softmax over each row, blend of the values."),
        Rung("the worked example", (Q, K, V), "The three-token example from the lesson."),
        Rung("scaled by √d_k", lists(2 * draw(rng, 3, 9), 2 * draw(rng, 3, 9), draw(rng, 3, 2)),
            "Divide the scores by √d_k, the length of a key, before the softmax."),
        Rung("large scores",
            ([[50.0, 0.0], [0.0, 50.0]], [[-30.0, -20.0], [32.0, -22.0], [31.0, -20.5], [-31.0, -21.0]],
                draw(rng, 4, 3).tolist()),
            "Use a softmax that subtracts the largest entry."),
        Rung("large negative scores", ([[30.0, 30.0]], [[-40.0, -40.0], [-40.0, -40.5]], [[1.0, 2.0], [3.0, 5.0]]),
            "All scores are far below −745 here: subtract the largest entry."),
        Rung("five queries, three keys", lists(draw(rng, 5, 6), draw(rng, 3, 6), draw(rng, 3, 2)),
            "n and m may differ."),
        Rung("one query, seven keys", lists(draw(rng, 1, 2), draw(rng, 7, 2), draw(rng, 7, 3)),
            "A single query is one row."),
        Rung("two equal keys with different values", ([[1.0], [2.0]], [[1.0], [1.0], [0.5]], [[0.0], [1.0], [4.0]]),
            "Equal keys get equal weights, and each has its own value."),
        untouched(TRACE_Q, TRACE_K, TRACE_V),
    ]  # fmt: skip


def attention_batched(rng: np.random.Generator) -> list[Rung]:
    arrays = partial(draw_qkv, rng)
    far_apart = rows_far_apart(rng)
    few = arrays(2, 3, 3, 2, (1, 1))
    many = arrays(2, 3, 3, 2, tuple(int(size) for size in rng.integers(8, 13, 2)))
    return [
        Rung("no leading dimension, 2 queries, 4 keys, d_k = 3, d_v = 5", arrays(2, 4, 3, 5),
            shape_hint="Return the pair (output, weights), of shapes (n, d_v) and (n, m)."),
        Rung("one key: the output is its value", arrays(2, 1, 3, 2), "With one key its weight is 1."),
        Rung("the worked example", tuple(np.array(a) for a in (Q, K, V)), "The three-token example from the lesson."),
        Rung("scaled by √d_k", arrays(3, 3, 9, 2, size=2.0),
            "Divide by √d_k, where d_k is the length of q's last axis, before the softmax."),
        Rung("a batch of 2", arrays(3, 4, 5, 2, (2,)),
            "Count axes from the end: transpose the last two axes of k with np.swapaxes(k, -1, -2), take d_k from the "
            "last axis of q, and the softmax along the last axis."),
        Rung("a batch of 3 with 3 tokens each", arrays(3, 3, 3, 3, (3,)),
            "With equal sizes, a wrong axis raises no error. The softmax runs over the last axis, the keys."),
        Rung("batch and heads", arrays(3, 4, 5, 2, (2, 3)), "Count axes from the end: −1 and −2, never 0, 1 or 2."),
        Rung("three leading dimensions", arrays(2, 3, 2, 4, (2, 1, 3)), "There may be any number of leading axes."),
        Rung("large scores", arrays(2, 3, 3, 2, (2,), size=60.0), "Subtract the largest score of each row before exp."),
        Rung("all scores far below zero", far_below_zero(rng),
            "All scores are below −745 here. Subtract the largest score of each row, whatever its sign."),
        Rung("rows of very different size", far_apart,
            "Here exp is 0 for a whole row unless you subtract the maximum of each row: axis −1, keepdims=True."),
        Rung("no loop over batch and heads", (few, many),
            "NumPy's @ and axis=-1 handle all matrices at once. A loop over them takes more Python steps for many "
            "than for one.",
            without_a_loop),
        Rung("5 queries, 2 keys, d_v = 1", arrays(5, 2, 3, 1), "n may be larger or smaller than m, and d_v may be 1."),
        Rung("one query, 6 keys", arrays(1, 6, 2, 3), "A single query is one row."),
        Rung("37 keys", arrays(2, 37, 3, 2), "There may be any number of keys."),
        Rung("q, k and v stay as they were", arrays(3, 4, 5, 2),
            "The function changes an array that was passed in, which the caller still needs. Make a new array.",
            changes),
    ]  # fmt: skip


def soft_lookup(rng: np.random.Generator) -> list[Rung]:
    def arrays(m, d_k, d_v):
        return draw(rng, d_k), draw(rng, m, d_k), draw(rng, m, d_v)

    usual = arrays(4, 3, 2)
    cold = arrays(5, 3, 2)
    close = (np.array([1.0, 2.0]), np.array([[2.0, 1.0], [0.0, 1.9995], [1.0, 0.0]]), draw(rng, 3, 2))
    tie = (np.array([1.0, 2.0]), np.array([[2.0, 1.0], [0.0, 2.0], [1.0, 0.0]]), draw(rng, 3, 4))
    closest = (np.array([0.5, 0.25]), np.array([[0.0, 0.25], [0.5, 0.0], [0.5 - 2e-9, 0.0]]), draw(rng, 3, 2))
    return [
        Rung("one key: its value", (*arrays(1, 3, 2), 1.0), "With one key its weight is 1."),
        Rung("temperature 1", (*usual, 1.0),
            "Weights are the softmax of the dot products; the result blends the values."),
        Rung("temperature 2: softer", (*usual, 2.0), "Divide the dot products by the temperature before the softmax."),
        Rung("temperature 0.5: harder", (*usual, 0.5),
            "Divide the dot products by the temperature before the softmax."),
        Rung("very hot: the mean of the values", (*arrays(4, 3, 2), 1e6),
            "At a high temperature all weights are equal."),
        Rung("cold: almost the best key's value", (*cold, 1e-3),
            "At a low temperature, one key takes nearly all the weight. Subtract the largest after dividing."),
        Rung("very cold: the best key's value", (*cold, 1e-9),
            "exp overflows unless the largest scaled score is subtracted after the division."),
        Rung("cold, and the second key almost as good", (*close, 1e-3),
            "A difference of 0.001 at temperature 0.001 is a difference of 1 in the softmax."),
        Rung("very cold, and the second key almost as good", (*closest, 1e-9),
            "Divide by the temperature as it is: add nothing to it, and set no lower limit. Once the largest is "
            "subtracted, nothing overflows."),
        Rung("large dot products",
            (np.array([30.0, 40.0]), np.array([[30.0, 1.0], [30.01, 1.0], [0.0, 16.0]]), draw(rng, 3, 2), 1.0),
            "exp overflows above 709, even at temperature 1: subtract the largest."),
        Rung("very cold, two best keys", (*tie, 1e-9),
            "Two best keys that tie share the weight: this is still a softmax."),
        Rung("all dot products far below zero, cold",
            (np.array([3.0, 4.0]), np.array([[-3.0, -4.0], [-3.0, -4.1]]), np.array([[1.0], [2.0]]), 0.01),
            "exp gives 0 for every key unless the largest is subtracted."),
        Rung("six keys, d_k = 2, d_v = 5", (*arrays(6, 2, 5), 0.7),
            "There is no √d_k here: the temperature takes its place."),
        untouched(np.array([1.0, 0.5]), np.array(TRACE_K), np.array(TRACE_V), 2.0),
    ]  # fmt: skip


def self_attention(rng: np.random.Generator) -> list[Rung]:
    def arrays(tokens, d_model, d_k, d_v, size=1.0):
        x = size * draw(rng, tokens, d_model)
        return x, draw(rng, d_model, d_k), draw(rng, d_model, d_k), draw(rng, d_model, d_v)

    return [
        Rung("shapes with 3 tokens, d_model = 4, d_k = 2, d_v = 5", arrays(3, 4, 2, 5),
            "q, k and v are x @ W_q, x @ W_k and x @ W_v; output is (T, d_v), weights are (T, T)."),
        Rung("one token: the output is its value", arrays(1, 4, 2, 3),
            "With one token the weight is 1 and the output is x @ W_v."),
        Rung("two tokens", arrays(2, 3, 5, 2), "Row i of the weights belongs to query i."),
        Rung("scaled by √d_k, not √d_model", arrays(4, 9, 2, 3),
            "The scale is √d_k, where d_k is the width of q and k, not of x."),
        Rung("all sizes equal", arrays(3, 3, 3, 3),
            "With square matrices, a wrong transpose raises no error. It is x @ W, and q @ k transposed."),
        Rung("large scores", arrays(3, 4, 3, 2, size=40.0),
            "torch.softmax is safe for large scores; exp alone is not."),
        Rung("six tokens", arrays(6, 5, 7, 3), "There may be any number of tokens."),
        untouched(*map(np.array, (TRACE_Q, TRACE_K, TRACE_Q, TRACE_V))),
    ]  # fmt: skip


def without_a_loop(function: Callable, few: tuple, many: tuple) -> dict[str, Any]:
    """Return whether more matrices take more Python steps, with the results for the many matrices."""
    results = []
    growth = bytecodes_grow(lambda *args: results.append(function(*args)), few, many)
    output, weights = results[-1]
    return {"output": output, "weights": weights, "growth of Python steps": growth}


def find_the_bug(rng: np.random.Generator) -> list[Rung]:
    return [rung for rung in attention_batched(rng) if rung.measure in (None, changes)]


def rows_of_numbers(result: Any) -> Any:
    """Return the result unchanged. Raises TypeError if later rows are empty, as they are from a used-up iterator."""
    if isinstance(result, (list, tuple)) and result and all(isinstance(row, (list, tuple)) for row in result):
        first, *later = map(len, result)
        if first and 0 in later:
            raise TypeError(
                f"row 0 has {first} numbers and row {later.index(0) + 1} has none: a zip or a generator can be used "
                "only once. Make it a list, or make a new one for each row"
            )
    return result


TEMPERATURES = (
    ("where the temperature is not 1", "where it is 1", lambda query, keys, values, temperature: temperature != 1),
    (
        "where the temperature is below 0.1",
        "where it is higher",
        lambda query, keys, values, temperature: temperature < 0.1,
    ),
    ("with several keys", "with one key", lambda query, keys, *_: len(keys) > 1),
)
BATCHED = (
    Small(("… n d", "… m d", "… m e"), measures=(None,)),
    Small((BLANK, BLANK), measures=(without_a_loop,), names=("few", "many"), code="{f}(*few)\n{f}(*many)"),
)
AGAIN = "Go through it again: score, scale, exponential, sum, division."
LADDERS = {
    "softmax_row": Ladder(
        ("softmax_row",),
        ("weights",),
        softmax_row,
        arg_names=("row",),
        forbidden=LIBRARY_SOFTMAX,
        small=(Small(("m",)),),
    ),
    "soft_lookup": Ladder(
        ("soft_lookup",),
        ("value",),
        soft_lookup,
        cases=TEMPERATURES,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("d", "m d", "m e", one_of(1.0, 2.0, 0.5))),),
    ),
    "by_hand_three": Ladder(
        ("score_33", "weights_3"),
        by_hand=True,
        advice=AGAIN,
        advice_on={"score_33": "It is the dot product of (1, 2) and (1, 1); nothing is scaled yet."},
    ),
    "by_hand_two": Ladder(
        ("order_output", "delayed_output"),
        by_hand=True,
        advice=AGAIN + " Then the blend: each weight times its value, added up. Round at the end, to 2 decimals.",
    ),
    "find_the_parcel": Ladder(
        ("my_W_K",), by_hand=True, decide=whom_arrived_finds, advice="my_W_K has four rows of two numbers."
    ),
    "scores": Ladder(("scores",), ("scores",), scores, convert=rows_of_numbers, small=(Small(("n d", "m d")),)),
    "scale_scores": Ladder(("scale_scores",), ("scaled",), scale_scores, small=(Small(("n m", whole())),)),
    "attention_lists": Ladder(
        ("attention_lists",),
        ("output", "weights"),
        attention_lists,
        arg_names=("Q", "K", "V"),
        convert=rows_of_numbers,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("n d", "m d", "m e")),),
    ),
    "self_attention": Ladder(
        ("self_attention",),
        ("output", "weights"),
        self_attention,
        tensors=True,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("T c", "c d", "c d", "c e")),),
    ),
    "find_the_bug": Ladder(
        ("broken_attention",), ("output", "weights"), find_the_bug, forbidden=WHOLE_ATTENTION, small=BATCHED
    ),
    "attention_batched": Ladder(
        ("attention_batched",),
        ("output", "weights"),
        attention_batched,
        forbidden=WHOLE_ATTENTION,
        small=BATCHED,
    ),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
