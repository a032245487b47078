"""Linear attention and the delta rule in NumPy: parallel, step by step and in chunks, all with the same results.

Every form is causal: token t is read after it was written. The state S is (…, d_k, d_v): row i says what is read for
unit vector i as a query. Nothing here scales q, and nothing maps features: give φ(q) and φ(k) where a feature map is
wanted, such as `elu_plus_one`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from course_utils.attention.shapes import check_shapes, whole


def elu_plus_one(x: ArrayLike) -> np.ndarray:
    """Positive features: x + 1 where x is above 0, e^x elsewhere. Source: Katharopoulos et al. 2020, equation 7."""
    x = np.asarray(x, dtype=float)
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def parallel(q: ArrayLike, k: ArrayLike, v: ArrayLike, normalised: bool = False) -> np.ndarray:
    """Causal attention whose weights are the scores themselves: (q kᵀ, lower triangle) v, (…, T, d_v).

    q and k are (…, T, d_k), v (…, T, d_v). normalised divides each row by the sum of its scores, which positive
    features keep above 0. Raises ValueError for shapes that do not fit.
    """
    q, k, v = _arrays(q, k, v)
    scores = np.tril(q @ np.swapaxes(k, -1, -2))  # (…, T, T)
    if normalised:
        scores = scores / scores.sum(-1, keepdims=True)
    return scores @ v


def recurrent(q: ArrayLike, k: ArrayLike, v: ArrayLike, normalised: bool = False, decay: ArrayLike = 1.0) -> np.ndarray:
    """The same one token at a time, with a state of fixed size: S ← decay · S + kᵀv, then q S.

    decay is a number, or one for each token, (T,), and multiplies the state before the token is written.
    """
    q, k, v = _arrays(q, k, v)
    decay = np.broadcast_to(decay, q.shape[-2:-1])
    S = np.zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]))
    z = np.zeros(k[..., 0, :].shape)
    outputs = []
    for t in range(q.shape[-2]):
        S = decay[t] * S + k[..., t, :, None] * v[..., t, None, :]
        z = decay[t] * z + k[..., t, :]
        read = np.einsum("...d,...dv->...v", q[..., t, :], S)
        total = np.einsum("...d,...d->...", q[..., t, :], z)[..., None]
        outputs.append(read / total if normalised else read)
    return np.stack(outputs, axis=-2)


def chunked(q: ArrayLike, k: ArrayLike, v: ArrayLike, chunk: int) -> np.ndarray:
    """The same in pieces of `chunk` tokens: a state for what came before the piece, scores within it."""
    q, k, v = _arrays(q, k, v)
    S = np.zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]))
    outputs = []
    for start in range(0, q.shape[-2], whole("chunk", chunk)):
        piece = slice(start, start + chunk)
        q_c, k_c, v_c = q[..., piece, :], k[..., piece, :], v[..., piece, :]
        outputs.append(q_c @ S + parallel(q_c, k_c, v_c))  # what came before, and the piece itself
        S = S + np.swapaxes(k_c, -1, -2) @ v_c
    return np.concatenate(outputs, axis=-2)


def delta_recurrent(q: ArrayLike, k: ArrayLike, v: ArrayLike, beta: ArrayLike, decay: ArrayLike = 1.0) -> np.ndarray:
    """Write only what is missing: S ← αS, then S ← S + β kᵀ(v − kS), then read q S. (…, T, d_v).

    beta (…, T) is how much of the difference is written, and decay α, a number or (T,), is applied first. Keys of norm
    1 are replaced exactly where beta is 1. Source: Yang et al. 2024 (DeltaNet), equation 3; with the decay Yang et al.
    2025 (Gated DeltaNet), equation 10.
    """
    q, k, v = _arrays(q, k, v)
    beta = np.broadcast_to(np.asarray(beta, dtype=float), q.shape[:-1])
    decay = np.broadcast_to(decay, q.shape[-2:-1])
    S = np.zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]))
    outputs = []
    for t in range(q.shape[-2]):
        key = k[..., t, :]
        S = decay[t] * S
        missing = v[..., t, :] - np.einsum("...d,...dv->...v", key, S)
        S = S + beta[..., t, None, None] * key[..., :, None] * missing[..., None, :]
        outputs.append(np.einsum("...d,...dv->...v", q[..., t, :], S))
    return np.stack(outputs, axis=-2)


def delta_parallel(q: ArrayLike, k: ArrayLike, v: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """The delta rule for all tokens at once: what each token writes solves a triangular system, (…, T, d_v).

    Token t writes u_t = β_t (v_t − Σ (k_t · k_s) u_s), summed over s < t, so with the lower triangle L
    of β k kᵀ, its diagonal left out, (I + L) u = β v.
    Source: Yang et al. 2024 (DeltaNet), section 3.2.
    """
    q, k, v = _arrays(q, k, v)
    beta = np.broadcast_to(np.asarray(beta, dtype=float), q.shape[:-1])[..., None]
    system = np.eye(q.shape[-2]) + np.tril(beta * (k @ np.swapaxes(k, -1, -2)), -1)
    written = np.linalg.solve(system, beta * v)  # (…, T, d_v)
    return np.tril(q @ np.swapaxes(k, -1, -2)) @ written


def delta_chunked(q: ArrayLike, k: ArrayLike, v: ArrayLike, beta: ArrayLike, chunk: int) -> np.ndarray:
    """The delta rule in pieces: the system of each piece starts from what the state already gives for its keys."""
    q, k, v = _arrays(q, k, v)
    beta = np.broadcast_to(np.asarray(beta, dtype=float), q.shape[:-1])
    S = np.zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]))
    outputs = []
    for start in range(0, q.shape[-2], whole("chunk", chunk)):
        piece = slice(start, start + chunk)
        q_c, k_c, v_c, b_c = q[..., piece, :], k[..., piece, :], v[..., piece, :], beta[..., piece, None]
        k_across = np.swapaxes(k_c, -1, -2)
        system = np.eye(k_c.shape[-2]) + np.tril(b_c * (k_c @ k_across), -1)
        written = np.linalg.solve(system, b_c * (v_c - k_c @ S))
        outputs.append(q_c @ S + np.tril(q_c @ k_across) @ written)
        S = S + k_across @ written
    return np.concatenate(outputs, axis=-2)


def read_errors(counts: Sequence[int], d: int, draws: int = 200, seed: int = 8) -> dict[str, list[float]]:
    """How far reads from a state are off that holds so many pairs, beside the size of a value: by name, one a count.

    Keys are random, of length 1 and d numbers, and so are the d numbers of each value, N(0, 1). "added" is the error of
    all pairs in linear attention's state, "delta rule" that in the delta rule's with β = 1, and "delta rule, newest" of
    it that of the pair written last. Root mean squares over the draws.
    """
    rng = np.random.default_rng(seed)
    keys, values = rng.normal(size=(2, draws, max(counts), d))
    keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    states = dict.fromkeys(("added", "delta rule"), np.zeros((draws, d, d)))
    errors: dict[str, list[float]] = {"added": [], "delta rule": [], "delta rule, newest": []}
    for t in range(max(counts)):
        key, value = keys[:, t, :, None], values[:, t, None]  # (draws, d, 1), (draws, 1, d)
        states = {
            "added": states["added"] + key * value,
            "delta rule": states["delta rule"] + key * (value - np.swapaxes(key, -1, -2) @ states["delta rule"]),
        }
        if t + 1 not in counts:
            continue
        wrong = {name: keys[:, : t + 1] @ S - values[:, : t + 1] for name, S in states.items()}
        wrong["delta rule, newest"] = wrong["delta rule"][:, -1:]
        for name, each in wrong.items():
            errors[name].append(float(np.sqrt((each**2).mean())))
    return errors


def _arrays(q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    check_shapes(q.shape, k.shape, v.shape, None)
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(f"q is {q.shape} but k is {k.shape}: a causal form has a query for each key")
    return q, k, v
