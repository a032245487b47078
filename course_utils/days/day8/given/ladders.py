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
        Rung("more tokens", (some, some, 4, 2), "Row p, column j is True where j ≤ p, and j > p − window or j < sinks."),
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
            "What the key reads is kᵀS, d numbers times a d × e state. Row i changes by k[i] times the difference."),
        Rung("as many rows as columns", step(3, 3, 0.75),
            "When d = e, a transposed state raises no error. Keys belong to rows, values to columns."),
        Rung("one number each", step(1, 1, 0.5), "A state of one number: S + βk(v − kS)."),
        Rung("a long key", (draw(rng, 4, 3), 3 * draw(rng, 4), draw(rng, 3), 0.25),
            "The key need not have length 1: use it as it is."),
        Rung("more columns than rows", step(2, 6, 0.25), "e may be larger than d."),
        Rung(AS_IT_WAS, step(3, 2, 0.5), COPY, changes),
        Rung("a large state that nearly cancels", large, IN_FLOAT64),
    ]  # fmt: skip


SMALL_STEPS = (Small(("d e", "d", "e", one_of(1.0, 0.5, 0.0)), measures=(None,)),)
LADDERS = {
    "rotated_cache": Ladder(
        ("broken_steps",),
        ("output",),
        rotated_cache,
        small=(Small(("T p*2", "T p*2", "T e", some_parts), measures=(None,)),),
    ),
    "alibi_bias": Ladder(
        ("alibi_bias",),
        ("bias",),
        alibi_bias,
        small=(Small((whole(), whole(), whole()), fits=no_more_queries_than_keys),),
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
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
