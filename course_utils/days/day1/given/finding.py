"""Judge a learner's W_K in the example of day 1: to which token *arrived* attends with its keys."""

from __future__ import annotations

import math

import numpy as np

TOKENS = ("the", "parcel", "arrived")
X = ((1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 0))
W_Q = ((1, 0), (0, 1), (1, 1), (0, 0))
ENOUGH = 0.8  # the required weight of arrived on parcel
ROUNDING = 5e-4  # allowance for matrices computed to give exactly this weight
ALIKE = 5e-3


def weights_of_arrived(W_K: np.ndarray) -> np.ndarray:
    """Return the weights (3,) of the query *arrived*, with keys X @ W_K; NaN where a score is not finite.

    Args:
        W_K: (4, 2).
    """
    with np.errstate(all="ignore"):
        keys = np.array(X, dtype=float) @ W_K  # (3, 2)
        scores = keys @ (np.array(X[2]) @ np.array(W_Q)) / math.sqrt(2)  # (3,)
        exps = np.exp(scores - scores.max())
        return exps / exps.sum()


def whom_arrived_finds(W_K: np.ndarray) -> tuple[str, str] | None:
    """Return the name of the mistake in W_K and a sentence on what this W_K gives; None where it is right.

    Every W_K (4, 2) with which *arrived* gives *parcel* a weight of 0.8 or more is right.
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
    weights_text = ", ".join(f"{weight:.3f} to {token}" for token, weight in zip(TOKENS, row, strict=True))
    return _fault(row), f"With this W_K, arrived gives {weights_text}."


def _fault(row: np.ndarray) -> str:
    best = [token for token, weight in zip(TOKENS, row, strict=True) if row.max() - weight < ALIKE]
    if len(best) == 1:
        return {"the": "found the", "parcel": "parcel, not far enough", "arrived": "found itself"}[best[0]]
    if len(best) == 3:
        return "all alike"
    return f"{best[0]} and {best[1]} alike"
