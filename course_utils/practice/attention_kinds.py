"""Practice problems on attention: softmax, attention, a causal row, a gradient, online softmax, merging two parts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from .problem import Misstep, Step, Values

Drawn = tuple[str, dict[str, np.ndarray], tuple[Step, ...]]


def matrix(rng: random.Random, rows: int, columns: int, entries: tuple[int, ...] = (-1, 0, 1, 2)) -> np.ndarray:
    """Return a matrix of whole numbers drawn from `entries`."""
    return np.array([[rng.choice(entries) for _ in range(columns)] for _ in range(rows)], dtype=float)


def write_values(name: str, values: Any) -> str:
    """Return numbers as the statement of a problem shows them."""
    rows = np.atleast_2d(np.asarray(values, dtype=float))
    text = "; ".join("  ".join(f"{x:g}".replace("-", "−") for x in row) for row in rows)
    return f"{name} = [{text}]"


def exponentials(name: str) -> Step:
    """Return the step that takes the exponentials of the step `name`."""
    return Step(
        "exponentials",
        "e to the power of each",
        lambda v: np.exp(v[name]),
        (
            Misstep("powers of two", lambda v: 2.0 ** v[name], "These are powers of 2. Softmax takes powers of e."),
            Misstep("sign turned", lambda v: np.exp(-v[name]), "The sign of the exponent is flipped."),
        ),
    )


def weights() -> Step:
    """Return the step that divides each exponential by the sum of its row."""
    return Step(
        "weights",
        "each exponential over the sum of its row",
        lambda v: v["exponentials"] / v["exponentials"].sum(axis=-1, keepdims=True),
        (
            Misstep("divided by the largest",
                lambda v: v["exponentials"] / v["exponentials"].max(axis=-1, keepdims=True),
                "You divided by the largest exponential. Divide by the sum of the row."),
            Misstep("divided by the number of keys", lambda v: v["exponentials"] / v["exponentials"].shape[-1],
                "You divided by how many there are. Divide by their sum."),
        ),
    )  # fmt: skip


def softmax_row(rng: random.Random) -> Drawn:
    row = np.array(rng.sample(range(-2, 4), 3), dtype=float)
    shifted = Step("shifted", "each entry minus the largest", lambda v: v["row"] - v["row"].max(), (
        Misstep("minus the smallest", lambda v: v["row"] - v["row"].min(), "You subtracted the smallest entry."),
        Misstep("plus the largest", lambda v: v["row"] + v["row"].max(), "You added the largest entry: subtract it."),
        Misstep("minus the mean", lambda v: v["row"] - v["row"].mean(), "You subtracted the mean: take the largest."),
    ))  # fmt: skip
    total = Step("sum", "the sum of the exponentials", lambda v: v["exponentials"].sum(), (
        Misstep("without the largest", lambda v: v["exponentials"].sum() - v["exponentials"].max(),
            "The largest exponential is left out of the sum."),
        Misstep("the mean", lambda v: v["exponentials"].mean(), "This is the mean of the exponentials, not their sum."),
    ))  # fmt: skip
    statement = f"The softmax of a row.\n{write_values('row', row)}"
    return statement, {"row": row}, (shifted, exponentials("shifted"), total, weights())


def attention(n: int, m: int) -> Callable[[random.Random], Drawn]:
    """Return a function that draws a problem: attention of n queries to m keys of width 2."""

    def draw(rng: random.Random) -> Drawn:
        Q, K, V = matrix(rng, n, 2), matrix(rng, m, 2), matrix(rng, m, 2, (-2, -1, 1, 2, 3))
        scores = Q @ K.T
        while (scores == 0).any() or any(len(set(row)) < m for row in scores.tolist()):  # all equally hard
            Q, K = matrix(rng, n, 2), matrix(rng, m, 2)
            scores = Q @ K.T
        statement = f"Attention of {n} queries to {m} keys, d_k = 2. Rows are queries, keys and values.\n" + "\n".join(
            write_values(name, x) for name, x in (("Q", Q), ("K", K), ("V", V))
        )
        return statement, {"Q": Q, "K": K, "V": V}, (SCORES, SCALED, exponentials("scaled"), WEIGHTS, OUTPUT)

    return draw


def _where_square(way: Callable[[Values], Any]) -> Callable[[Values], Any]:
    """Return a misstep's function that gives NaN, which nobody writes down, if the shapes rule the misstep out."""

    def way_or_nan(v: Values) -> Any:
        try:
            return way(v)
        except ValueError:
            return np.nan

    return way_or_nan


SCORES = Step("scores", "the dot product of each query with each key", lambda v: v["Q"] @ v["K"].T, (
    Misstep("K not transposed", _where_square(lambda v: v["Q"] @ v["K"]),
        "This is Q times K. Row i, column j is the dot product of query i and key j, two rows."),
    Misstep("queries with queries", lambda v: v["Q"] @ v["Q"].T, "These are dot products of queries with queries."),
    Misstep("rows and columns exchanged", lambda v: v["K"] @ v["Q"].T, "Rows and columns are exchanged."),
))  # fmt: skip
SCALED = Step("scaled", "the scores over √d_k", lambda v: v["scores"] / math.sqrt(2), (
    Misstep("not scaled", lambda v: v["scores"], "These are the scores. Divide them by √2."),
    Misstep("divided by d_k", lambda v: v["scores"] / 2, "You divided by d_k. Divide by its root, √2."),
    Misstep("multiplied", lambda v: v["scores"] * math.sqrt(2), "You multiplied by √2. Divide."),
))  # fmt: skip
WEIGHTS = Step("weights", "each exponential over the sum of its row", weights().compute, (
    *weights().missteps,
    Misstep("over the queries", lambda v: v["exponentials"] / v["exponentials"].sum(axis=0, keepdims=True),
        "You divided by the sum of the column. The sum runs over the keys, along the row."),
    Misstep("over all", lambda v: v["exponentials"] / v["exponentials"].sum(),
        "You divided by the sum of all. Each row has its own sum."),
))  # fmt: skip
OUTPUT = Step("output", "the values, each times its weight, added up", lambda v: v["weights"] @ v["V"], (
    Misstep("weights transposed", _where_square(lambda v: v["weights"].T @ v["V"]),
        "The weights are transposed: query i takes row i of them."),
    Misstep("keys for values", lambda v: v["weights"] @ v["K"], "You blended the keys. Blend the values."),
    Misstep("values transposed", _where_square(lambda v: v["weights"] @ v["V"].T),
        "You took the columns of V. A value is a row."),
    Misstep("the mean of the values", lambda v: np.tile(v["V"].mean(axis=0), (len(v["weights"]), 1)),
        "This is the plain mean of the values, but each has its own weight."),
))  # fmt: skip


def causal_row(rng: random.Random) -> Drawn:
    row = np.array([rng.choice((-4, -3, -2, -1, 1, 2, 3, 4)) for _ in range(4)], dtype=float)
    values = np.array(rng.sample(range(-3, 6), 4), dtype=float)
    blocked = np.array([False, False, False, True])
    scaled = Step("scaled", "the scores over √d_k, all four", lambda v: v["row"] / 2, (
        Misstep("not scaled", lambda v: v["row"], "These are the scores. Divide them by √4 = 2."),
        Misstep("divided by d_k", lambda v: v["row"] / 4, "You divided by d_k = 4. Divide by its root, 2."),
    ))  # fmt: skip
    powers = Step("exponentials", "e to the power of each, 0 where the mask blocks",
        lambda v: np.where(blocked, 0, np.exp(v["scaled"])), (
            Misstep("not masked", lambda v: np.exp(v["scaled"]),
                "The last key is not blocked: token 2 may not see token 3."),
            Misstep("a score of 0", lambda v: np.exp(np.where(blocked, 0, v["scaled"])),
                "You set the blocked score to 0, and e^0 is 1. It should be −∞, whose exponential is 0."),
            Misstep("itself blocked", lambda v: np.where([False, False, True, True], 0, np.exp(v["scaled"])),
                "Token 2 may see itself: only token 3 is blocked."),
        ))  # fmt: skip
    last = Step("weights", weights().task, weights().compute, (
        *weights().missteps,
        Misstep("masked after the softmax",
            lambda v: np.where(blocked, 0, np.exp(v["scaled"]) / np.exp(v["scaled"]).sum()),
            "The sum holds the blocked key too, so the weights do not add up to 1."),
    ))  # fmt: skip
    output = Step("output", "the values, each times its weight, added up", lambda v: v["weights"] @ v["values"], (
        Misstep("the mean", lambda v: v["values"].mean(),
            "This is the mean of all values."),
        Misstep("the largest", lambda v: v["values"][int(np.argmax(v["weights"]))],
            "This is the value of the best key."),
    ))  # fmt: skip
    statement = (
        "One row of causal attention: the query is token 2, the third of four, and d_k = 4.\n"
        f"{write_values('scores', row)}\n{write_values('values', values)}"
    )
    return statement, {"row": row, "values": values}, (scaled, powers, last, output)


def softmax_gradient(rng: random.Random) -> Drawn:
    p = np.array(rng.choice([(5, 3, 2), (6, 3, 1), (7, 2, 1), (4, 5, 1), (2, 6, 2)]), dtype=float) / 10
    p = np.array(rng.sample(p.tolist(), 3))
    g = np.array(rng.sample((-3, -2, -1, 1, 2, 3, 4), 3), dtype=float)
    steps = (
        Step("mean", "the sum of p times g", lambda v: v["p"] @ v["g"], (
            Misstep("not weighted", lambda v: v["g"].mean(), "This is the plain mean of g. Weight it with p."),
            Misstep("the sum of g", lambda v: v["g"].sum(), "This is the sum of g. Weight each with p."),
        )),
        Step("centred", "g minus that", lambda v: v["g"] - v["mean"], (
            Misstep("added", lambda v: v["g"] + v["mean"], "You added it: subtract it."),
            Misstep("turned", lambda v: v["mean"] - v["g"], "The sign is flipped: it is g minus the mean."),
        )),
        Step("gradient", "p times that, entry by entry", lambda v: v["p"] * v["centred"], (
            Misstep("the diagonal alone", lambda v: v["p"] * (1 - v["p"]) * v["g"],
                "You took the diagonal of the Jacobian alone: p (1 − p) g."),
            Misstep("not centred", lambda v: v["p"] * v["g"], "This is p times g: the mean is not subtracted."),
        )),
    )  # fmt: skip
    task = "The gradient of a softmax: p are its weights, g is the gradient with respect to them."
    statement = f"{task}\n{write_values('p', p)}\n{write_values('g', g)}"
    return statement, {"p": p, "g": g}, steps


def online_softmax(rng: random.Random) -> Drawn:
    low, middle, high = sorted(rng.sample(range(-2, 5), 3))
    scores = np.array([middle, low, high], dtype=float)  # the maximum rises once, at the last key
    values = np.array(rng.sample((-3, -2, -1, 1, 2, 3, 4, 5), 3), dtype=float)

    def after(i: int, rescaled_l: bool = True, rescaled_o: bool = True, turned: bool = False) -> Callable:
        """Return a function that gives (m, l, o) after key i, from their values after the key before."""

        def state(v: Values) -> Any:
            if i == 0:
                return np.array([v["scores"][0], 1.0, v["values"][0]])
            m_old, l, o = v[f"key {i - 1}"]
            x = v["scores"][i]
            m = max(m_old, x)
            factor, new = math.exp(m - m_old if turned else m_old - m), math.exp(x - m)
            return np.array(
                [m, l * (factor if rescaled_l else 1) + new, o * (factor if rescaled_o else 1) + new * v["values"][i]]
            )

        return state

    def unshifted(v: Values) -> Any:
        power = math.exp(v["scores"][0])
        return np.array([v["scores"][0], power, power * v["values"][0]])

    missteps = (
        (Misstep("not shifted", unshifted, "The first key has exponent 0 after the shift: l is 1, o is its value."),),
        (Misstep("counted fully", lambda v: v["key 0"] + np.array([0, 1, v["values"][1]]),
            "The new key counts e^(x − m), and m did not change."),),
        (
            Misstep("l not rescaled", after(2, rescaled_l=False), "The old l must be rescaled by e^(m_old − m)."),
            Misstep("o not rescaled", after(2, rescaled_o=False),
                "The old o must be rescaled by e^(m_old − m), as l is."),
            Misstep("neither rescaled", after(2, False, False), "The old l and o must be rescaled by e^(m_old − m)."),
            Misstep("factor turned", after(2, turned=True), "The factor is e^(m_old − m), which is below 1."),
        ),
    )  # fmt: skip
    steps = tuple(Step(f"key {i}", "m, l and o, not divided by l", after(i), missteps[i]) for i in range(3))
    output = Step("output", "o over l", lambda v: v["key 2"][2] / v["key 2"][1], (
        Misstep("not divided", lambda v: v["key 2"][2], "This is o. Divide it by l."),
    ))  # fmt: skip
    statement = (
        f"Online softmax, one key at a time.\n{write_values('scores', scores)}\n{write_values('values', values)}"
    )
    return statement, {"scores": scores, "values": values}, (*steps, output)


def merge(rng: random.Random) -> Drawn:
    m = np.array(rng.sample(range(-1, 4), 2), dtype=float)
    l = np.array([rng.choice((1.0, 1.5, 2.0, 2.5)) for _ in range(2)])
    o = np.array(rng.sample((-3, -2, -1, 1, 2, 3, 4), 2), dtype=float)
    steps = (
        Step("m", "the maximum of both", lambda v: v["m_ab"].max(), (
            Misstep("added", lambda v: v["m_ab"].sum(), "Take the maximum of both parts, not their sum."),
            Misstep("the smaller", lambda v: v["m_ab"].min(), "This is the smaller one."),
        )),
        Step("factors", "what each part is rescaled by", lambda v: np.exp(v["m_ab"] - v["m"]), (
            Misstep("exchanged", lambda v: np.exp(v["m_ab"] - v["m"])[::-1], "The two factors are exchanged."),
            Misstep("turned", lambda v: np.exp(v["m"] - v["m_ab"]), "The exponent is m_part − m, never above 0."),
        )),
        Step("l", "the sum of both, rescaled", lambda v: v["factors"] @ v["l_ab"], (
            Misstep("not rescaled", lambda v: v["l_ab"].sum(), "The sums are added without their factors."),
        )),
        Step("o", "the blend of both, rescaled, not divided", lambda v: v["factors"] @ v["o_ab"], (
            Misstep("not rescaled", lambda v: v["o_ab"].sum(), "The blends are added without their factors."),
        )),
        Step("output", "o over l", lambda v: v["o"] / v["l"], (
            Misstep("mean of both outputs", lambda v: (v["o_ab"] / v["l_ab"]).mean(),
                "This is the mean of both outputs: each counts as much as its exponentials."),
            Misstep("not divided", lambda v: v["o"], "This is o. Divide it by l."),
        )),
    )  # fmt: skip
    statement = (
        "Two parts of one attention are merged. Each has m, the maximum of its scores; l, the sum of e^(score − m);\n"
        "and o, the blend with these, not divided.\n"
        + "\n".join(f"part {'ab'[i]}: m = {m[i]:g}, l = {l[i]:g}, o = {o[i]:g}".replace("-", "−") for i in range(2))
    )
    return statement, {"m_ab": m, "l_ab": l, "o_ab": o}, steps


KINDS: dict[str, Callable[[random.Random], Drawn]] = {
    "softmax": softmax_row,
    "attention": attention(2, 2),
    "attention-3x2": attention(2, 3),
    "causal-row": causal_row,
    "softmax-gradient": softmax_gradient,
    "online-softmax": online_softmax,
    "merge": merge,
}
