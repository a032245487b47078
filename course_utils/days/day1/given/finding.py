"""Judge a learner's W_K in the example of day 1: how *arrived* and *the* attend with its keys."""

from __future__ import annotations

import math

import numpy as np

TOKENS = ("the", "parcel", "arrived")
X = ((1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 0))
W_Q = ((1, 0), (0, 1), (1, 1), (0, 0))
ENOUGH = 0.8  # the least weight that arrived should give to parcel
MOST = 0.2  # the largest weight that the may give to parcel
ROUNDING = 5e-4  # allowance for matrices computed to give exactly this weight
ALIKE = 5e-3


def scores_and_weights(W_K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and weights, (3, 3) each, with keys X @ W_K; weights are NaN where a score is not finite.

    Args:
        W_K: (4, 2).
    """
    with np.errstate(all="ignore"):
        x = np.array(X, dtype=float)
        scores = x @ np.array(W_Q) @ (x @ W_K).T
        exps = np.exp((scores - scores.max(axis=-1, keepdims=True)) / math.sqrt(2))
        return scores, exps / exps.sum(axis=-1, keepdims=True)


def whom_arrived_finds(W_K: np.ndarray) -> tuple[str, str] | None:
    """Return the name of the mistake in W_K and a sentence on what this W_K gives; None where it is right.

    Every W_K (4, 2) is right with which *arrived* gives *parcel* a weight of 0.8 or more, and *the* one of 0.2 or less.
    """
    size = " × ".join(map(str, W_K.shape))
    if W_K.shape != (4, 2):
        known = {(2, 4): "transposed", (3, 2): "keys in place of W_K"}
        return known.get(W_K.shape, "another shape"), f"W_K is {size}." if size else "W_K is one number."
    if not np.isfinite(W_K).all():
        return "no finite numbers", "W_K holds a number that is not finite."
    scores, weights = scores_and_weights(W_K)
    if not np.isfinite(weights).all():
        return "scores without bounds", "The numbers are so large that a score is not finite."
    if weights[2, 1] >= ENOUGH - ROUNDING:
        if weights[0, 1] <= MOST + ROUNDING:
            return None
        return "the finds parcel too", f"“arrived” finds “parcel”, but {_described(0, scores, weights)}"
    fault = _fault(weights[2])
    if fault == "parcel, not far enough" and sum(W_K[3]) > 0:
        fault = "the lifted too"
    return fault, f"With this W_K, {_described(2, scores, weights)}"


def _described(query: int, scores: np.ndarray, weights: np.ndarray) -> str:
    scored = ", ".join(f"{score:.4g} with “{token}”" for token, score in zip(TOKENS, scores[query], strict=True))
    given = ", ".join(f"{weight:.3f} to “{token}”" for token, weight in zip(TOKENS, weights[query], strict=True))
    return f"“{TOKENS[query]}” scores {scored}, so it gives {given}."


def _fault(row: np.ndarray) -> str:
    best = [token for token, weight in zip(TOKENS, row, strict=True) if row.max() - weight < ALIKE]
    if len(best) == 1:
        return {"the": "found the", "parcel": "parcel, not far enough", "arrived": "found itself"}[best[0]]
    if len(best) == 3:
        return "all alike"
    return f"{best[0]} and {best[1]} alike"
