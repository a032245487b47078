"""Day 8: rotations, biases, masks and states, as people write them."""

import numpy as np

from . import right, wrong

# delta_step ---------------------------------------------------------------------------------------------------------


@right(8, "delta_step")
def delta_by_erasing_first(state, k, v, beta):
    erased = state - beta * np.outer(k, k) @ state
    return erased + beta * np.outer(k, v)


@right(8, "delta_step")
def delta_in_loops(state, k, v, beta):
    new = np.array(state, dtype=float)
    for column in range(state.shape[1]):
        old = sum(k[row] * state[row, column] for row in range(state.shape[0]))
        for row in range(state.shape[0]):
            new[row, column] += beta * k[row] * (v[column] - old)
    return new


@wrong(8, "delta_step")
def delta_of_a_state_that_it_keeps(state, k, v, beta, kept={}):  # noqa: B006  # the mistake
    old = kept.setdefault("state", state)
    kept["state"] = old + beta * np.outer(k, v - k @ old) if old.shape == state.shape else state
    return kept["state"]
