"""Practice problems on counting: a variance, the cost of a layer, a cache in bytes, the longest context on a card."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from .problem import Misstep, Step

Drawn = tuple[str, dict[str, np.ndarray], tuple[Step, ...]]
GIB = 2**30


def figures(**values: float) -> dict[str, np.ndarray]:
    """Return the figures of a problem as arrays of one number."""
    return {name: np.asarray(float(value)) for name, value in values.items()}


def list_figures(values: dict[str, str]) -> str:
    """Return the figures of a problem as text, one per line."""
    return "\n".join(f"{name}: {value}" for name, value in values.items())


def dot_variance(rng: random.Random) -> Drawn:
    a, b = rng.sample((1, 2, 3, 4, 5), 2)
    n = rng.choice((9, 16, 25, 36, 49, 64, 100))
    steps = (
        Step("product", "the variance of one product q_i k_i", lambda v: v["a"] * v["b"], (
            Misstep("added", lambda v: v["a"] + v["b"], "The variances of independent factors of mean 0 multiply."),
            Misstep("of a square", lambda v: (v["a"] * v["b"]) ** 2, "You squared the product of the variances."),
            Misstep("the root", lambda v: np.sqrt(v["a"] * v["b"]), "This is the standard deviation of one product."),
        )),
        Step("sum", "the variance of q · k", lambda v: v["n"] * v["product"], (
            Misstep("n squared", lambda v: v["n"] ** 2 * v["product"], "The variances of n terms add up: n times one."),
            Misstep("root of n", lambda v: np.sqrt(v["n"]) * v["product"],
                "The variance grows with n, its root with √n."),
        )),
        Step("std", "the standard deviation of q · k", lambda v: np.sqrt(v["sum"]), (
            Misstep("half", lambda v: v["sum"] / 2, "The standard deviation is the root of the variance."),
            Misstep("over the root of n", lambda v: np.sqrt(v["sum"]) / np.sqrt(v["n"]), "It is not scaled yet."),
        )),
        Step("scaled", "the variance of q · k / √d_k", lambda v: v["sum"] / v["n"], (
            Misstep("divided by the root", lambda v: v["sum"] / np.sqrt(v["n"]),
                "A factor of 1/√d_k divides the variance by d_k."),
            Misstep("the std", lambda v: v["std"] / v["n"], "Divide the variance by d_k, not the standard deviation."),
        )),
    )  # fmt: skip
    statement = "The entries of q and k are independent and have mean 0.\n" + list_figures(
        {"variance of an entry of q": str(a), "variance of an entry of k": str(b), "d_k": str(n)}
    )
    return statement, figures(a=a, b=b, n=n), steps


def layer_cost(rng: random.Random) -> Drawn:
    d = rng.choice((8, 16, 32, 64, 100, 128, 200, 256, 512))
    T = rng.choice([size for size in (10, 20, 50, 100, 200, 500, 1000, 2000) if size != d])
    widening = rng.choice((2, 3, 4, 5))
    h = rng.choice((2, 4, 8))
    steps = (
        Step("attention parameters", "the numbers in W_Q, W_K, W_V and W_O", lambda v: 4 * v["d"] ** 2, (
            Misstep("W_O forgotten", lambda v: 3 * v["d"] ** 2, "There are four matrices, W_O included."),
            Misstep("for each head", lambda v: 4 * v["d"] ** 2 * v["h"], "The heads share the width: no factor h."),
            Misstep("one head", lambda v: 4 * v["d"] ** 2 / v["h"], "All heads together have the full width."),
        ), count=True),
        Step("feed-forward parameters", "the numbers in its two matrices", lambda v: 2 * v["d"] * v["f"], (
            Misstep("one matrix", lambda v: v["d"] * v["f"], "There are two matrices: up and down."),
            Misstep("d_ff squared", lambda v: 2 * v["f"] ** 2, "Each matrix is d_model × d_ff."),
        ), count=True),
        Step("projection FLOPs", "of the four projections, a multiply-add being 2",
            lambda v: 2 * v["T"] * v["attention parameters"], (
                Misstep("multiply-adds", lambda v: v["T"] * v["attention parameters"], "A multiply-add counts as 2."),
                Misstep("one token", lambda v: 2 * v["attention parameters"], "This is for one token: there are T."),
            ), count=True),
        Step("core FLOPs", "of QKᵀ and of the weights times V, all heads", lambda v: 4 * v["T"] ** 2 * v["d"], (
            Misstep("QKᵀ alone", lambda v: 2 * v["T"] ** 2 * v["d"],
                "There are two products: QKᵀ and weights times V."),
            Misstep("for each head", lambda v: 4 * v["T"] ** 2 * v["d"] * v["h"],
                "A head has width d_model / h: all of them together have d_model."),
            Misstep("linear in T", lambda v: 4 * v["T"] * v["d"], "Every token meets every token: T², not T."),
        ), count=True),
        Step("feed-forward FLOPs", "of its two products", lambda v: 2 * v["T"] * v["feed-forward parameters"], (
            Misstep("multiply-adds", lambda v: v["T"] * v["feed-forward parameters"], "A multiply-add counts as 2."),
            Misstep("one token", lambda v: 2 * v["feed-forward parameters"], "This is for one token: there are T."),
        ), count=True),
    )  # fmt: skip
    statement = (
        "One block: multi-head attention without biases, and a feed-forward network of two matrices.\n"
        + list_figures({"T, tokens": str(T), "d_model": str(d), "h, heads": str(h), "d_ff": str(widening * d)})
    )
    return statement, figures(T=T, d=d, h=h, f=widening * d), steps


def _cache_steps() -> tuple[Step, ...]:
    """Return the steps from the shape of a model to the bytes of one token in its cache."""
    return (
        Step("numbers a token", "keys and values of one token, all layers",
            lambda v: 2 * v["layers"] * v["kv_heads"] * v["d_head"], (
                Misstep("keys alone", lambda v: v["layers"] * v["kv_heads"] * v["d_head"],
                    "These are the keys alone: the values take as much again."),
                Misstep("one layer", lambda v: 2 * v["kv_heads"] * v["d_head"], "Every layer has a cache of its own."),
                Misstep("query heads", lambda v: 2 * v["layers"] * v["heads"] * v["d_head"],
                    "Only the heads of keys and values are kept, not the query heads."),
            ), count=True),
        Step("bytes a token", "that many numbers, in bytes", lambda v: v["numbers a token"] * v["bytes"], (
            Misstep("numbers", lambda v: v["numbers a token"], "These are numbers: each takes some bytes."),
            Misstep("bits", lambda v: v["numbers a token"] * v["bytes"] * 8, "These are bits. A byte has 8 of them."),
        ), count=True),
    )  # fmt: skip


def _model(rng: random.Random) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    heads = rng.choice((16, 32, 64))
    kv = rng.choice((2, 4, 8))
    inputs = figures(
        layers=rng.choice((16, 24, 32, 48)), heads=heads, kv_heads=kv, d_head=rng.choice((64, 128)), bytes=2
    )
    statement = {
        "layers": f"{inputs['layers']:.0f}",
        "query heads": str(heads),
        "heads of keys and values": str(kv),
        "d_head": f"{inputs['d_head']:.0f}",
        "bytes a number": "2",
    }
    return inputs, statement


def cache_bytes(rng: random.Random) -> Drawn:
    inputs, statement = _model(rng)
    tokens = rng.choice((1000, 2000, 4000, 8000, 16000))
    batch = rng.choice((2, 4, 5, 8, 10))
    inputs |= figures(tokens=tokens, batch=batch)
    statement |= {"tokens a sequence": f"{tokens:,}", "sequences": str(batch)}

    steps = (
        *_cache_steps(),
        Step("bytes", "of all sequences", lambda v: v["bytes a token"] * v["tokens"] * v["batch"], (
            Misstep("one sequence", lambda v: v["bytes a token"] * v["tokens"], "This is one sequence of the batch."),
            Misstep("one token each", lambda v: v["bytes a token"] * v["batch"], "Every token is kept, not one each."),
        ), count=True),
        Step("GiB", "the same in GiB, 2³⁰ bytes", lambda v: v["bytes"] / GIB, (
            Misstep("GB", lambda v: v["bytes"] / 1e9, "This is GB, 10⁹ bytes. A GiB has 2³⁰."),
            Misstep("MiB", lambda v: v["bytes"] / 2**20, "These are MiB: divide by 1024 once more."),
        ), count=True),
    )  # fmt: skip
    return "The cache of keys and values of a batch.\n" + list_figures(statement), inputs, steps


def longest_context(rng: random.Random) -> Drawn:
    inputs, statement = _model(rng)
    card = rng.choice((24, 40, 48, 80))
    weights = rng.choice((2, 4, 6, 10, 14))
    batch = rng.choice((2, 4, 5, 8))
    inputs |= figures(card=card, weights=weights, batch=batch)
    statement |= {"memory of the card": f"{card} GiB", "weights": f"{weights} GiB", "sequences": str(batch)}
    steps = (
        Step("bytes left", "what the weights leave", lambda v: (v["card"] - v["weights"]) * GIB, (
            Misstep("weights not counted", lambda v: v["card"] * GIB, "The weights are on the card too."),
            Misstep("GB", lambda v: (v["card"] - v["weights"]) * 1e9, "A GiB has 2³⁰ bytes, a GB 10⁹."),
        ), count=True),
        *_cache_steps(),
        Step("tokens", "the most a sequence can have", lambda v: v["bytes left"] // (v["bytes a token"] * v["batch"]), (
            Misstep("one sequence", lambda v: v["bytes left"] // v["bytes a token"],
                "This many fit in all: they are shared by the sequences."),
            Misstep("multiplied", lambda v: v["bytes left"] // v["bytes a token"] * v["batch"],
                "The sequences share the room: divide by how many there are."),
        ), count=True),
    )  # fmt: skip
    return "The longest context that fits on a card.\n" + list_figures(statement), inputs, steps


KINDS: dict[str, Callable[[random.Random], Drawn]] = {
    "dot-variance": dot_variance,
    "layer-cost": layer_cost,
    "cache-bytes": cache_bytes,
    "longest-context": longest_context,
}
