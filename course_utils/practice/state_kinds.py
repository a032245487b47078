"""A practice problem on states of fixed size: one write by the delta rule, and what the key reads afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from .attention_kinds import Drawn, matrix, write_values
from .problem import Misstep, Step


def delta_write(rng: random.Random) -> Drawn:
    """Draw a problem: a state of two rows, a key of length 1, a value and a step size of a half."""
    state = matrix(rng, 2, 2, (-2, -1, 0, 1, 2, 3))
    key = np.array(rng.choice([(0.6, 0.8), (0.8, 0.6), (0.6, -0.8), (-0.6, 0.8), (0.8, -0.6)]))
    value = matrix(rng, 1, 2, (-3, -2, -1, 0, 1, 2, 3, 4))[0]
    steps = (
        Step("read", "what the key reads before the write", lambda v: v["k"] @ v["S"], (
            Misstep("other axis", lambda v: v["S"] @ v["k"],
                "You multiplied each row of S with the key. Row i is taken times the key's number i."),
            Misstep("sum of the rows", lambda v: v["S"].sum(axis=0), "The rows are weighted by the key's numbers."),
        )),
        Step("missing", "what is missing to the value", lambda v: v["v"] - v["read"], (
            Misstep("turned round", lambda v: v["read"] - v["v"], "It is the value minus what was read."),
            Misstep("added", lambda v: v["read"] + v["v"], "You added them. The delta rule writes the difference."),
        )),
        Step("new", "the new state, row by row", lambda v: v["S"] + v["beta"] * np.outer(v["k"], v["missing"]), (
            Misstep("a whole step", lambda v: v["S"] + np.outer(v["k"], v["missing"]),
                "You wrote all that is missing. Only the part β of it is written."),
            Misstep("without the old state", lambda v: v["beta"] * np.outer(v["k"], v["missing"]),
                "The change is added to the old state, which stays."),
            Misstep("added without reading", lambda v: v["S"] + np.outer(v["k"], v["v"]),
                "This adds the whole value, as linear attention does."),
            Misstep("key and value exchanged", lambda v: v["S"] + v["beta"] * np.outer(v["missing"], v["k"]),
                "Row i changes by the key's number i times what is missing."),
        )),
        Step("after", "what the key reads from the new state", lambda v: v["k"] @ v["new"], (
            Misstep("the value", lambda v: v["v"], "With half a step it reads the middle of old and new."),
            Misstep("as before", lambda v: v["read"], "This is what it read before the write."),
        )),
    )  # fmt: skip
    given = {"S": state, "k": key, "v": value}
    statement = "\n".join(write_values(name, numbers) for name, numbers in given.items())
    return (
        f"A write by the delta rule, rows of S from the top.\n{statement}\nbeta = 0.5",
        given | {"beta": np.asarray(0.5)},
        steps,
    )


KINDS: dict[str, Callable[[random.Random], Drawn]] = {"delta-write": delta_write}
