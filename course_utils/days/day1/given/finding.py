"""Whom *arrived* finds, in the example of day 1, with keys that a learner's matrix makes."""

from __future__ import annotations

import math

import numpy as np

TOKENS = ("the", "parcel", "arrived")
X = ((1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 0))
W_Q = ((1, 0), (0, 1), (1, 1), (0, 0))
ENOUGH = 0.8  # the weight of arrived on parcel that is asked for
ROUNDING = 5e-4  # of numbers that were worked out to give just that
ALIKE = 5e-3


def weights_of_arrived(W_K: np.ndarray) -> np.ndarray:
    """The row of *arrived* among the weights, (3,), with keys X @ W_K; NaN where a score is no finite number.

    W_K: (4, 2).
    """
    with np.errstate(all="ignore"):
        keys = np.array(X, dtype=float) @ W_K  # (3, 2)
        scores = keys @ (np.array(X[2]) @ np.array(W_Q)) / math.sqrt(2)  # (3,)
        exps = np.exp(scores - scores.max())
        return exps / exps.sum()


def whom_arrived_finds(W_K: np.ndarray) -> tuple[str, str] | None:
    """What is wrong with a matrix of keys, by the name of the mistake, and what it gives; None where nothing is.

    Right is any (4, 2) with which *arrived* gives *parcel* a weight of 0.8 or more.
    """
    size = " × ".join(map(str, W_K.shape))
    if W_K.shape != (4, 2):
        known = {(2, 4): "transposed", (3, 2): "keys in place of W_K"}
        return known.get(W_K.shape, "another shape"), f"W_K is {size}." if size else "W_K is one number."
    if not np.isfinite(W_K).all():
        return "no finite numbers", "W_K holds a number that is not finite."
    row = weights_of_arrived(W_K)
    if not np.isfinite(row).all():
        return "scores without bounds", "The numbers are so large that a score is not finite."
    if row[1] >= ENOUGH - ROUNDING:
        return None
    told = ", ".join(f"{weight:.3f} to {token}" for token, weight in zip(TOKENS, row, strict=True))
    return _fault(row), f"With this W_K, arrived gives {told}."


def _fault(row: np.ndarray) -> str:
    best = [token for token, weight in zip(TOKENS, row, strict=True) if row.max() - weight < ALIKE]
    if len(best) == 1:
        return {"the": "found the", "parcel": "parcel, not far enough", "arrived": "found itself"}[best[0]]
    if len(best) == 3:
        return "all alike"
    return f"{best[0]} and {best[1]} alike"
