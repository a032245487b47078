"""Models that are healthy or ill, to be examined from outside: tokens in, logits out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Sees = Callable[[int, int], np.ndarray]  # sees(B, T): whether place [b, t] is told of place [c, s], (B, T, B, T)
Model = Callable[[np.ndarray], np.ndarray]  # tokens (B, T) -> logits (B, T, words)


def toy_model(
    words: int,
    sees: Sees,
    size: float = 0.04,
    own: float = 0.0,
    rounding: float = 0.0,
    offset: float = 0.0,
    seed: int = 0,
) -> Model:
    """Return a model whose logits add up what each token says to the places that see it.

    It is a plain function, so that an answer learns about it only what it asks.

    Args:
        words: the size of its output; a healthy one has the size of the vocabulary.
        sees: which places see which.
        size: how large the logits are.
        own: added to the logit of the token at each place itself.
        rounding: added to all logits, more or less for each batch, as another order of sums would.
        offset: added to all logits, which changes no probability.
        seed: of what the tokens say.
    """

    def model(tokens: np.ndarray) -> np.ndarray:
        B, T = tokens.shape
        says = np.random.default_rng(seed).normal(size=(words, words))[tokens]
        says = says * (1 + np.arange(T) / 4)[:, None]  # no two places say the same
        logits = size * np.einsum("btcs,csv->btv", sees(B, T), says) / T
        logits = logits + own * np.eye(words)[tokens]
        return logits + rounding * np.sin(tokens.sum()) + offset

    return model


def causal(B: int, T: int) -> np.ndarray:
    """Each token sees itself and the earlier ones of its row: healthy."""
    return np.einsum("bc,ts->btcs", np.eye(B), np.tri(T))


def later_tokens(B: int, T: int) -> np.ndarray:
    """Each token sees all of its row."""
    return np.einsum("bc,ts->btcs", np.eye(B), np.ones((T, T)))


def next_token(B: int, T: int) -> np.ndarray:
    """Each token also sees the next one."""
    return np.einsum("bc,ts->btcs", np.eye(B), np.tri(T, k=1))


def one_later_token(place: int, seen: int) -> Sees:
    """Return what a model sees of which one place sees one later token."""

    def sees(B: int, T: int) -> np.ndarray:
        places = causal(B, T)
        places[np.arange(B), place, np.arange(B), seen] = 1
        return places

    return sees


def in_row(row: int, sees: Sees) -> Sees:
    """Return what a model sees that is ill in one row and healthy in the others."""

    def only_there(B: int, T: int) -> np.ndarray:
        places = causal(B, T)
        places[row] = sees(B, T)[row]
        return places

    return only_there


def other_rows(B: int, T: int) -> np.ndarray:
    """Each token also sees the tokens of all rows at its place and before."""
    return np.einsum("bc,ts->btcs", np.ones((B, B)), np.tri(T))


def other_rows_here(B: int, T: int) -> np.ndarray:
    """Each token also sees the tokens of all rows at its own place, as with a mean over the batch."""
    return causal(B, T) + np.einsum("bc,ts->btcs", 1 - np.eye(B), np.eye(T))


def one_other_row(row: int, seen: int, place: int | None = None) -> Sees:
    """Return what a model sees of which one row sees another one, at all places or at one."""

    def sees(B: int, T: int) -> np.ndarray:
        places = causal(B, T)
        for t in range(T) if place is None else [place]:
            places[row, t, seen, t] = 1
        return places

    return sees


def both(one: Sees, other: Sees) -> Sees:
    """Return what a model sees that has two illnesses."""
    return lambda B, T: np.maximum(one(B, T), other(B, T))
