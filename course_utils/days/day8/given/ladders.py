"""The ladders of day 8: the test inputs of each exercise; no answers.

Sizes differ wherever they can, and coincide where a wrong axis would fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.result_numbers import boolean
from course_utils.checks.kernel.small import Draft, Drawn, Small, one_of, whole
from course_utils.days.shared.given.draws import draw, named

AS_IT_WAS = "what it is given stays as it was"
COPY = "The answer is right but writes into its arguments, which the caller still needs. Work on a copy."
IN_FLOAT64 = "The arrays are float64, and float32 keeps about seven digits: keep float64 in every step."


# A text in parts ----------------------------------------------------------------------------------------------------


def rotated_cache(rng: np.random.Generator) -> list[Rung]:
    def text(T: int, d: int, e: int, sizes: list[int], times: float = 1.0) -> tuple:
        return times * draw(rng, T, d), times * draw(rng, T, d), draw(rng, T, e), sizes

    return [
        Rung("a text that comes at once", text(4, 4, 3, [4]),
            "In one part it was right from the start, and should stay right."),
        Rung("one token", text(1, 4, 2, [1]), "One token takes all the weight: the output is its value."),
        Rung("two parts", text(4, 4, 3, [2, 2]), "The second part is wrong at first. Look at what happens to the "
            "keys of the first one when it comes."),
        Rung("one token at a time", text(5, 4, 2, [1, 1, 1, 1, 1]),
            "Each key is rotated by its own position, once, however many parts come after it."),
        Rung("a prompt, then its answer", text(7, 4, 3, [5, 1, 1]),
            "The two newest tokens are at positions 5 and 6."),
        Rung("parts of different sizes", text(9, 6, 2, [2, 4, 3]), "The last part begins at position 6."),
        Rung("three parts of one size", text(6, 2, 2, [2, 2, 2]),
            "With equal parts, positions that begin anew raise no error: they go on from part to part."),
        Rung("all sizes equal", text(4, 4, 4, [1, 3]), "With equal sizes, a wrong axis raises no error."),
        Rung("many tokens", text(40, 4, 2, [24, 8, 8]), "Any number of tokens, and of parts."),
        Rung("large scores", text(6, 4, 3, [3, 2, 1], 30.0), "The softmax was right: leave it as it is."),
        Rung(AS_IT_WAS, text(5, 4, 3, [3, 2]), COPY, changes),
    ]  # fmt: skip


def some_parts(draft: Draft) -> list[int]:
    """Draw the sizes of the parts of a text, one or more."""
    left = draft.sizes["T"]
    sizes = []
    while left:
        sizes.append(draft.choose(1, left))
        left -= sizes[-1]
    return sizes


# Two kinds of pairs -------------------------------------------------------------------------------------------------


def split_to_interleaved(rng: np.random.Generator) -> list[Rung]:
    def rows(heads: int, d: int, width: int) -> tuple[np.ndarray, int]:
        first = int(rng.integers(0, 50))
        return np.arange(first, first + heads * d * width, dtype=float).reshape(heads * d, width), heads

    def rung(name, args, why, measure=None):
        return Rung(name, args, why, measure, shape_hint="Return an array of the shape of W.")

    return [
        rung("one pair", rows(1, 2, 3), "With one pair both kinds are the same: nothing moves."),
        rung("two pairs", rows(1, 4, 3), "Rows 0 and 2 are a pair, so they become rows 0 and 1. Rows 1 and 3 become "
            "rows 2 and 3."),
        rung("three pairs", rows(1, 6, 2), "Row p becomes row 2p, and row p + 3 becomes row 2p + 1."),
        rung("two heads", rows(2, 4, 3), "Each head has its own rows, and pairs within it: no row leaves its head."),
        rung("three heads", rows(3, 6, 2), "Head 1 begins at row 6."),
        rung("more heads than pairs", rows(5, 4, 2), "The first axis of W is all heads, one after the other."),
        rung("all sizes equal", rows(4, 4, 16), "W is square here. Its rows move, and its columns stay."),
        rung("as many heads as numbers in one", rows(6, 6, 5), "With equal sizes, a wrong reshape raises no error."),
        rung("many rows", rows(9, 64, 1), "Any even number of rows in a head."),
        Rung(AS_IT_WAS, rows(2, 4, 3), COPY, changes),
    ]  # fmt: skip


# ALiBi --------------------------------------------------------------------------------------------------------------


def alibi_bias(rng: np.random.Generator) -> list[Rung]:
    some = int(rng.integers(4, 7))
    return [
        Rung("one head, one query, one key", (1, 1, 1), "A key at the query's own place has the distance 0: its bias "
            "is 0.", shape_hint="Return an array of shape (heads, queries, keys), here (1, 1, 1)."),
        Rung("one head", (1, 3, 3), "One head has the slope 2⁻⁸. Query 2 and key 0 are two places apart: −2 · 2⁻⁸."),
        Rung("two heads", (2, 4, 4), "Two heads have the slopes 2⁻⁴ and 2⁻⁸. Later keys get −∞."),
        Rung("eight heads", (8, some, some), "Eight heads have the slopes 2⁻¹ to 2⁻⁸."),
        Rung("sixteen heads", (16, 3, 3), "With 16 heads the exponents are −8k/16: −0.5, −1, −1.5 and so on."),
        Rung("three heads", (3, 3, 3), "The largest power of two below 3 is 2: first its two slopes, 2⁻⁴ and 2⁻⁸, and "
            "then one of those for 4 heads, the first: 2⁻²."),
        Rung("six heads", (6, 4, 4), "The four slopes for 4 heads come first, then two of those for 8 heads: numbers 0 "
            "and 2, 2⁻¹ and 2⁻³."),
        Rung("seven heads", (7, 3, 3), "The three that are missing are numbers 0, 2 and 4 of the slopes for 8 heads."),
        Rung("twelve heads", (12, 3, 3), "The four that are missing are numbers 0, 2, 4 and 6 of the slopes for 16 "
            "heads."),
        Rung("fewer queries than keys", (4, 2, 5), "The queries are the last tokens: query 0 is at position 3, and the "
            "first key is three places away."),
        Rung("one query", (2, 1, 6), "A step of a cache: the query is at position 5, and sees all keys."),
        Rung("all sizes equal", (4, 4, 4), "With equal sizes, a wrong axis raises no error: (heads, queries, keys)."),
        Rung("many keys", (2, some, 60), "Any number of keys: the bias falls by the slope for each place."),
        Rung("forty heads", (40, 2, 2), "The largest power of two below 40 is 32; eight of the slopes for 64 heads "
            "come after them."),
    ]  # fmt: skip


def no_more_queries_than_keys(heads: int, queries: int, keys: int) -> bool:
    """Return whether the queries can be the last tokens."""
    return queries <= keys


# YaRN ---------------------------------------------------------------------------------------------------------------


def yarn_frequencies(rng: np.random.Generator) -> list[Rung]:
    some = float(rng.integers(3, 12))
    return [
        Rung("a factor of 1", (16, 10_000.0, 256, 1.0), "With a factor of 1 the frequencies are RoPE's own, and the "
            "last number is 1."),
        Rung("sixteen numbers, twice as long", (16, 10_000.0, 256, 2.0), "The ramp goes from number low to number high "
            "of the pairs, here from 0 to 4. Beyond it a frequency is divided by the factor."),
        Rung("a head of 64, four times as long", (64, 10_000.0, 2048, 4.0), "Fast pairs stay, slow ones are divided "
            "by the factor, and on the ramp it is a bit of both."),
        Rung("a head of 64, another factor", (64, 10_000.0, 4096, some), "The last number is 0.1 ln(factor) + 1, "
            "once."),
        Rung("another base", (64, 500_000.0, 4096, 8.0), "The base is in the frequencies and in the two ends of the "
            "ramp."),
        Rung("a small base", (32, 100.0, 128, 4.0), "With a small base even the last pair turns once: it is on the "
            "ramp, and not beyond it."),
        Rung("a text so short that no pair turns 32 times", (32, 10_000.0, 64, 8.0), "The formula gives a low end "
            "below 0, where there is no pair: it begins at 0."),
        Rung("so small a base that all pairs turn often", (8, 10.0, 400, 3.0), "The formula gives a high end above "
            "d − 1: the ramp ends at d − 1."),
        Rung("two pairs", (4, 10_000.0, 64, 4.0), "Any even number of numbers."),
        Rung("one pair", (2, 10_000.0, 64, 4.0), "With one pair there is still an array, of one frequency."),
        Rung("a head of 128, 32 times as long", (128, 10_000.0, 8192, 32.0), "Any factor from 1."),
        Rung("a factor that is no whole number", (64, 10_000.0, 1024, 1.5), "The factor need not be a whole number."),
    ]  # fmt: skip


def evenly(d: int, base: float, trained: int, factor: float) -> bool:
    """Return whether there are pairs, and a text long enough for one turn of the first."""
    return d % 2 == 0 and trained >= 16


# A window and sinks -------------------------------------------------------------------------------------------------


def sink_window_mask(rng: np.random.Generator) -> list[Rung]:
    some = int(rng.integers(9, 13))
    return [
        Rung("one token", (1, 1, 1, 0), "A token sees itself.",
            shape_hint="Return a boolean array of shape (queries, keys)."),
        Rung("a window of one", (3, 3, 1, 0), "With a window of 1 and no sinks, each token sees only itself."),
        Rung("a window of two", (4, 4, 2, 0), "A window of 2 is the token itself and the one before it."),
        Rung("a window and one sink", (6, 6, 2, 1), "Key 0 is seen by all queries, besides the window."),
        Rung("a window and two sinks", (7, 7, 3, 2), "Keys 0 and 1 are seen besides the window, but query 0 does not "
            "see key 1: it comes later."),
        Rung("more sinks than the first queries see", (6, 6, 1, 4), "A sink is still a key: no query sees a later "
            "one."),
        Rung("a window longer than the text", (4, 4, 9, 2), "Then it is an ordinary causal mask."),
        Rung("more sinks than keys", (3, 3, 1, 5), "Then it is an ordinary causal mask, too."),
        Rung("fewer queries than keys", (2, 8, 3, 1), "The queries are the last tokens: query 0 is at position 6, and "
            "its window begins at key 4."),
        Rung("one query", (1, 9, 2, 2), "A step of a cache: the query is at position 8."),
        Rung("more tokens", (some, some, 4, 2), "True is where j ≤ p, and j > p − window or j < sinks."),
        Rung("many tokens", (40, 60, 16, 4), "Any number of queries and keys."),
    ]  # fmt: skip


def queries_fit(queries: int, keys: int, window: int, sinks: int) -> bool:
    """Return whether the queries can be the last tokens."""
    return queries <= keys


# Linear attention ---------------------------------------------------------------------------------------------------


def linear_attention(rng: np.random.Generator) -> list[Rung]:
    def text(n: int, d: int, e: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return draw(rng, n, d), draw(rng, n, d), draw(rng, n, e)

    def parallel(name, args, why, measure=None, **more):
        return Rung(name, args, why, measure, of="linear_parallel", **more)

    def recurrent(name, args, why, measure=of_two, **more):
        return Rung(name, args, why, measure, of="linear_recurrent", **more)

    ones = np.array([[1.0], [2.0], [0.5]]), np.array([[1.0], [1.0], [3.0]]), np.array([[2.0], [4.0], [1.0]])
    close = np.array([[1e4], [1e4]]), np.array([[1e4 + 0.01], [-1e4]]), np.array([[1.0], [1.0]])
    return [
        parallel("parallel, one token", text(1, 3, 2), "One token: its score q · k, as it is, times its value.",
            shape_hint="linear_parallel returns the output alone, (n, e)."),
        parallel("parallel, numbers in place of vectors", ones,
            "Row 1 is 2·1·2 + 2·1·4 = 12: no softmax, no scale, and nothing is divided by a sum."),
        parallel("parallel, four tokens", text(4, 3, 2), "Query i meets the keys 0 to i: scores of later keys are 0."),
        parallel("parallel, all sizes equal", text(3, 3, 3), "With equal sizes, a wrong axis raises no error."),
        parallel("parallel, more tokens", text(int(rng.integers(9, 14)), 4, 5), "Any number of tokens."),
        parallel("parallel, " + AS_IT_WAS, text(4, 3, 2), COPY, changes),
        parallel("parallel, scores that nearly cancel", close, IN_FLOAT64),
        recurrent("recurrent, one token", (*text(1, 3, 2), np.zeros((3, 2))),
            "The state starts as zeros, takes in k and v, and then the query reads it.",
            shape_hint="linear_recurrent returns two arrays: the output, (n, e), and the last state, (d, e)."),
        recurrent("recurrent, numbers in place of vectors", (*ones, np.zeros((1, 1))),
            "After two tokens the state is 1·2 + 1·4 = 6, and query 1 reads 2·6 = 12."),
        recurrent("recurrent, four tokens", (*text(4, 3, 2), np.zeros((3, 2))),
            "Each token adds the outer product of its key and its value, and what was there stays."),
        recurrent("recurrent, as many rows as columns", (*text(4, 3, 3), np.zeros((3, 3))),
            "When d = e, a transposed state raises no error. Keys belong to rows, values to columns."),
        recurrent("recurrent, from a state", (*text(4, 3, 2), draw(rng, 3, 2)),
            "The text goes on: begin with the state that is given."),
        recurrent("recurrent, more tokens", (*text(int(rng.integers(9, 14)), 4, 5), draw(rng, 4, 5)),
            "Any number of tokens."),
        recurrent("recurrent, in two parts", (*text(6, 3, 2), np.zeros((3, 2))),
            "The first half of a text, and then the other half from the state that is left: together they are the "
            "whole.", in_two_parts),
        recurrent("recurrent, a second text", (*text(5, 3, 2), draw(rng, 3, 2)),
            "Two texts come one after the other, each with a state of its own. Nothing may stay from the first.",
            after_another),
        recurrent("recurrent, " + AS_IT_WAS, (*text(4, 3, 2), draw(rng, 3, 2)),
            "The answer is right but writes into its arguments, such as the state that it is given. Work on a copy.",
            changes),
        recurrent("recurrent, a state that nearly cancels", (*close, np.zeros((1, 1))), IN_FLOAT64),
    ]  # fmt: skip


def of_two(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the output and the last state by name."""
    return named(function(*args), ("output", "state"))


def in_two_parts(function: Callable, q: np.ndarray, k: np.ndarray, v: np.ndarray, state: np.ndarray) -> dict[str, Any]:
    """Return the output and the last state of a text whose second half goes on from the state of the first."""
    half = len(q) // 2
    first = of_two(function, q[:half], k[:half], v[:half], state.copy())
    second = of_two(function, q[half:], k[half:], v[half:], np.array(first["state"]))
    return {"first half": first["output"], "second half": second["output"], "state": second["state"]}


def after_another(function: Callable, q: np.ndarray, k: np.ndarray, v: np.ndarray, state: np.ndarray) -> dict[str, Any]:
    """Return the output and the last state of a text that comes after another one."""
    function(k.copy(), q.copy(), v.copy(), np.zeros_like(state))
    return of_two(function, q, k, v, state)


# Steps of a state ---------------------------------------------------------------------------------------------------


def delta_step(rng: np.random.Generator) -> list[Rung]:
    def step(d: int, e: int, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return draw(rng, d, e), draw(rng, d), draw(rng, e), beta

    empty = np.zeros((3, 2)), np.array([0.0, 1.0, 0.0]), np.array([2.0, -1.0]), 1.0
    written = np.array([[5.0, 3.0], [7.0, 1.0]])
    large = np.array([[1e8 + 1], [-1e8]]), np.array([1000.0, 1000.0]), np.array([2000.0]), 1.0
    return [
        Rung("into an empty state", empty, "The state holds nothing, so all of v is new: row 1 becomes v.",
            shape_hint="Return the new state, an array of the shape of the old one."),
        Rung("over what is there", (written, np.array([1.0, 0.0]), np.array([2.0, -1.0]), 1.0),
            "Row 0 reads (5, 3) and should read (2, −1): what is written is the difference."),
        Rung("half a step", (written, np.array([1.0, 0.0]), np.array([2.0, -1.0]), 0.5),
            "With β = 0.5, row 0 moves half of the way to v."),
        Rung("no step", step(3, 2, 0.0), "With β = 0 the state stays as it is."),
        Rung("a key of several numbers", step(3, 2, 1.0),
            "What the key reads is kS, d numbers times a d × e state. Row i changes by k[i] times the difference."),
        Rung("as many rows as columns", step(3, 3, 0.75),
            "When d = e, a transposed state raises no error. Keys belong to rows, values to columns."),
        Rung("one number each", step(1, 1, 0.5), "A state of one number: S + βk(v − kS)."),
        Rung("a long key", (draw(rng, 4, 3), 3 * draw(rng, 4), draw(rng, 3), 0.25),
            "The key need not have length 1: use it as it is."),
        Rung("more columns than rows", step(2, 6, 0.25), "e may be larger than d."),
        Rung(AS_IT_WAS, step(3, 2, 0.5), COPY, changes),
        Rung("a large state that nearly cancels", large, IN_FLOAT64),
    ]  # fmt: skip


def gated_delta_step(rng: np.random.Generator) -> list[Rung]:
    def step(d: int, e: int, beta: float, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        return draw(rng, d, e), draw(rng, d), draw(rng, e), beta, alpha

    written, first = np.array([[5.0, 3.0], [7.0, 1.0]]), np.array([1.0, 0.0])
    return [
        Rung("nothing fades", step(3, 2, 0.5, 1.0), "With α = 1 it is the delta step of exercise 7.",
            shape_hint="Return the new state, an array of the shape of the old one."),
        Rung("nothing is written", step(3, 2, 0.0, 0.5), "With β = 0 the whole state is multiplied by α."),
        Rung("half of it fades", (written, first, np.array([2.0, -1.0]), 1.0, 0.5),
            "First all fades by half, then row 0 becomes v: the rows are (2, −1) and (3.5, 0.5)."),
        Rung("half a step", (written, first, np.array([2.0, -1.0]), 0.5, 0.5),
            "Row 0 fades to (2.5, 1.5), and then moves half of the way from there to v."),
        Rung("all fades", step(3, 2, 0.5, 0.0), "With α = 0 nothing is left to read: β kᵀv remains."),
        Rung("a key of several numbers", step(4, 3, 0.75, 0.25), "What is read is what has faded: k(αS)."),
        Rung("as many rows as columns", step(3, 3, 0.5, 0.75), "Keys belong to rows, values to columns."),
        Rung("one number each", step(1, 1, 0.5, 0.5), "αS + βk(v − kαS)."),
        Rung("more columns than rows", step(2, 5, 1.0, 0.25), "e may be larger than d."),
        Rung(AS_IT_WAS, step(3, 2, 0.5, 0.5), COPY, changes),
    ]  # fmt: skip


# Chosen keys --------------------------------------------------------------------------------------------------------


def top_k_attention(rng: np.random.Generator) -> list[Rung]:
    def text(n: int, d: int, e: int, top: int, times: float = 1.0, follows: float = 0.0) -> tuple:
        q, k = times * draw(rng, n, d), times * draw(rng, n, d)
        noise = rng.permutation(n * n).reshape(n, n) / n  # no two are equal
        return q, k, draw(rng, n, e), follows * (q @ k.T) + noise, top

    q = np.array([[1.0], [1.0], [1.0]])
    k = np.array([[0.5], [2.0], [1.0]])
    v = np.array([[10.0], [20.0], [30.0]])
    index = np.array([[0.3, 9.0, 9.5], [0.2, 0.1, 9.25], [0.5, 0.25, 0.75]])
    return [
        Rung("three tokens, one key each", (q, k, v, index, 1),
            "Query 1 sees keys 0 and 1, and the index chooses key 0, while the best by q · k is key 1: recall 0. "
            "Scores of later keys in the index do not count."),
        Rung("three tokens, two keys each", (q, k, v, index, 2),
            "Query 2 keeps keys 0 and 2; the best two are 1 and 2, so half of them are found."),
        Rung("as many as there are", text(4, 3, 2, 4), "With all keys chosen it is causal attention, and recall is 1."),
        Rung("more than there are", text(4, 3, 2, 9), "Where fewer than `top` keys are seen, all of them are kept."),
        Rung("one token", text(1, 3, 2, 1), "One token keeps its own key."),
        Rung("six tokens, two keys", text(6, 3, 2, 2), "Recall counts keys: how many of the best `top` are kept."),
        Rung("an index that agrees", text(7, 4, 2, 3, follows=1e3), "An index that orders keys as q · k does finds "
            "all: recall 1."),
        Rung("an index that is against it", text(7, 4, 2, 2, follows=-1e3), "An index that prefers the worst keys."),
        Rung("many tokens", text(20, 4, 3, 5), "Any number of tokens."),
        Rung("large scores", text(6, 4, 3, 3, times=30.0), "Take off the largest score of the keys that are kept "
            "before exp."),
        Rung("scores below those of later keys", (np.full((3, 1), 30.0), np.array([[-30.0], [-29.0], [40.0]]), v,
            index, 1), "A key that is not kept has the score −∞, however large it was."),
        Rung("all sizes equal", text(4, 4, 4, 2), "Rows of the index are queries, columns are keys."),
        Rung(AS_IT_WAS, text(5, 3, 2, 2), COPY, changes),
    ]  # fmt: skip


def distinct_scores(draft: Draft) -> np.ndarray:
    """Draw the scores of an index: different whole numbers."""
    n = draft.sizes["n"]
    return np.random.default_rng(draft.choose(0, 7)).permutation(n * n).reshape(n, n).astype(float)


def without_ties(q: np.ndarray, k: np.ndarray, v: np.ndarray, index: np.ndarray, top: int) -> bool:
    """Return whether no query scores two keys alike."""
    return all(len(set(row)) == len(row) for row in (q @ k.T).tolist())


# Latents and a key that rotates -------------------------------------------------------------------------------------


def mla_step(rng: np.random.Generator) -> list[Rung]:
    def step(h: int, T: int, c: int, d: int, r: int, e: int, times: float = 1.0) -> tuple[np.ndarray, ...]:
        return (times * draw(rng, h, d), times * draw(rng, h, r), draw(rng, T, c), times * draw(rng, T, r),
            draw(rng, h, c, d), draw(rng, h, c, e))  # fmt: skip

    one = [np.array(x) for x in ([[1.0]], [[2.0]], [[1.0], [0.0]], [[0.0], [1.0]], [[[1.0]]], [[[4.0]]])]
    return [
        Rung("one token", step(2, 1, 4, 3, 2, 5), "One token takes all the weight: the output of a head is its latent "
            "times W_UV of that head.", shape_hint="Return an array of shape (h, e)."),
        Rung("two tokens, one number each", tuple(one), "Token 0 scores 1 by its latent, token 1 scores 2 by its "
            "rotated key, and both are divided by √2."),
        Rung("two tokens, one head", step(1, 2, 4, 3, 2, 5), "A score is the sum of two parts: by the latent, and by "
            "the key that rotates."),
        Rung("three heads", step(3, 4, 5, 2, 6, 4), "Each head has queries and matrices of its own; latents and "
            "rotated keys are the same for all."),
        Rung("as many numbers that rotate as others", step(2, 5, 6, 4, 4, 3), "The scale is the root of both widths "
            "together, d + r."),
        Rung("all sizes equal", step(3, 3, 3, 3, 3, 3), "With equal sizes, a wrong axis raises no error."),
        Rung("latents narrower than a head", step(2, 4, 2, 6, 2, 5), "The latents may be narrower than the keys would "
            "be."),
        Rung("many tokens", step(4, 50, 6, 4, 2, 4), "Any number of tokens."),
        Rung("large scores", step(2, 5, 4, 3, 2, 2, 90.0), "Take off the largest score of each head before exp."),
        Rung(AS_IT_WAS, step(2, 3, 4, 3, 2, 5), COPY, changes),
        Rung("the two parts nearly cancel",
            tuple(np.array(x) for x in ([[1.0]], [[-1.0]], [[1e8 + 1], [1e8]], [[1e8], [1e8]], [[[1.0]]], [[[1.0]]])),
            IN_FLOAT64 + " Add the two parts first, and scale their sum."),
    ]  # fmt: skip


# Pictures -----------------------------------------------------------------------------------------------------------


def patches_and_back(rng: np.random.Generator) -> list[Rung]:
    def picture(height: int, width: int, channels: int) -> np.ndarray:
        first = int(rng.integers(0, 50))
        return np.arange(first, first + height * width * channels, dtype=float).reshape(height, width, channels)

    def there(name, args, why, measure=None, **more):
        return Rung(name, args, why, measure, of="patchify", **more)

    def back(name, args, why, measure=None, **more):
        return Rung(name, args, why, measure, of="unpatchify", **more)

    def patches(rows: int, columns: int, size: int, channels: int) -> tuple[np.ndarray, int, int, int]:
        numbers = picture(rows * columns, size * size, channels).reshape(rows * columns, -1)
        return numbers, size, rows * size, columns * size

    return [
        there("one patch", (picture(2, 2, 1), 2), "One patch is the whole picture: its rows, one after the other.",
            shape_hint="patchify returns an array (patches, size · size · channels)."),
        there("two patches side by side", (picture(2, 4, 1), 2), "The left patch comes first. Its rows are rows of the "
            "picture, cut in half."),
        there("two patches, one below the other", (picture(4, 2, 1), 2), "The upper patch comes first."),
        there("six patches", (picture(4, 6, 1), 2), "Patches go row by row through the picture, as one reads."),
        there("three channels", (picture(4, 6, 3), 2), "The channels of a pixel stay side by side."),
        there("patches of one pixel", (picture(2, 3, 2), 1), "Each pixel is a token."),
        there("all sizes equal", (picture(9, 9, 3), 3), "With equal sizes, a wrong axis raises no error."),
        there("a larger picture", (picture(12, 8, 1), 4), "Any height and width that the patches divide."),
        there(AS_IT_WAS, (picture(4, 6, 1), 2), COPY, changes),
        back("back from one patch", patches(1, 1, 2, 1), "One patch is the whole picture.",
            shape_hint="unpatchify returns an array (height, width, channels)."),
        back("back from six patches", patches(2, 3, 2, 1), "Patch 1 is to the right of patch 0, and patch 3 below it."),
        back("back from a tall picture", patches(3, 2, 2, 2), "There are width / size patches in a row."),
        back("back with three channels", patches(2, 3, 2, 3), "The channels of a pixel stay side by side."),
        back("back, all sizes equal", patches(3, 3, 3, 3), "With equal sizes, a wrong axis raises no error."),
        back("back from pixels", patches(2, 3, 1, 2), "Each patch is a pixel."),
        back("back, " + AS_IT_WAS, patches(2, 3, 2, 1), COPY, changes),
    ]  # fmt: skip


SMALL_YARN = (
    Small((one_of(2, 4, 16), one_of(10_000.0), one_of(64, 256), one_of(1.0, 2.0)), measures=(None,), fits=evenly),
)
SMALL_STEPS = (Small(("d e", "d", "e", one_of(1.0, 0.5, 0.0)), measures=(None,)),)
LADDERS = {
    "rotated_cache": Ladder(
        ("broken_steps",),
        ("output",),
        rotated_cache,
        small=(Small(("T p*2", "T p*2", "T e", some_parts), measures=(None,)),),
    ),
    "split_to_interleaved": Ladder(
        ("split_to_interleaved",),
        ("W",),
        split_to_interleaved,
        small=(Small(("h*p*2 m", "=h")),),
    ),
    "alibi_bias": Ladder(
        ("alibi_bias",),
        ("bias",),
        alibi_bias,
        small=(Small((whole(), whole(), whole()), fits=no_more_queries_than_keys),),
    ),
    "yarn_frequencies": Ladder(
        ("yarn_frequencies",), ("frequencies", "attention_factor"), yarn_frequencies, small=SMALL_YARN
    ),
    "sink_window_mask": Ladder(
        ("sink_window_mask",),
        ("mask",),
        sink_window_mask,
        convert=boolean,
        small=(Small((whole(), whole(), whole(), whole(0)), fits=queries_fit),),
    ),
    "linear_attention": Ladder(
        ("linear_parallel", "linear_recurrent"),
        ("output",),
        linear_attention,
        small=(
            Small(("n d", "n d", "n e"), measures=(None,)),
            Small(("n d", "n d", "n e", "d e"), measures=(of_two,)),
        ),
    ),
    "delta_step": Ladder(("delta_step",), ("state",), delta_step, small=SMALL_STEPS),
    "gated_delta_step": Ladder(
        ("gated_delta_step",),
        ("state",),
        gated_delta_step,
        small=(Small(("d e", "d", "e", one_of(1.0, 0.5), one_of(1.0, 0.5)), measures=(None,)),),
    ),
    "top_k_attention": Ladder(
        ("top_k_attention",),
        ("output", "recall"),
        top_k_attention,
        small=(
            Small(("n d", "n d", "n e", Drawn("n n", distinct_scores), whole()), measures=(None,), fits=without_ties),
        ),
    ),
    "mla_step": Ladder(
        ("mla_step",),
        ("output",),
        mla_step,
        small=(Small(("h d", "h r", "T c", "T r", "h c d", "h c e"), measures=(None,)),),
    ),
    "patches_and_back": Ladder(("patchify", "unpatchify"), ("array",), patches_and_back),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
