"""Scaled dot-product attention in NumPy: any leading batch and head dimensions."""

import numpy as np
from numpy.typing import ArrayLike

from course_utils.attention.shapes import check_scale, check_shapes


def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Blend the values of v for each query, by how well the query matches each key: softmax(q kᵀ · scale) v.

    q is (…, n, d_k), k is (…, m, d_k), v is (…, m, d_v); the leading dimensions broadcast as in matmul. mask is boolean
    and broadcasts to (…, n, m); True means that the query may attend to the key. scale is 1/√d_k when left out.
    Returns (output, weights): (…, n, d_v) and (…, n, m), in the floating dtype of the input, or float64 for integers.
    A query that may attend to nothing gets zeros. Raises ValueError for shapes that do not fit or a scale that is not
    finite, TypeError for a mask that is not boolean. Source: Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    q, k, v = _floating(q), _floating(k), _floating(v)
    mask = _boolean(mask)
    check_shapes(q.shape, k.shape, v.shape, None if mask is None else mask.shape)
    scale = check_scale(scale, k.shape[-1])
    scores = np.einsum("...nd,...md->...nm", q, k) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    output = np.einsum("...nm,...mv->...nv", weights, v)
    return output, weights


def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """Turn scores into shares: e^x over the sum of e^x, along `axis`.

    Large entries are safe. -inf gets 0, and a row of nothing but -inf gives zeros: nothing to attend to (other
    libraries give NaN there). +inf and NaN give NaN. Same shape as x; float64 for integers.
    """
    x = _floating(x)
    exps = np.exp(x - _peak(x, axis))
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)


def logsumexp(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """log of the sum of e^x along `axis`, which disappears. Large entries are safe; nothing but -inf gives -inf."""
    x = _floating(x)
    peak = _peak(x, axis)
    total = np.exp(x - peak).sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.squeeze(peak + np.log(total), axis=axis)


def _peak(x: np.ndarray, axis: int) -> np.ndarray:
    """The largest entry, or 0 where every entry is -inf: the shift that keeps exp from overflowing."""
    largest = x.max(axis=axis, keepdims=True, initial=-np.inf)
    return np.where(largest == -np.inf, 0, largest)


def _floating(x: ArrayLike) -> np.ndarray:
    x = np.asarray(x)
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def _boolean(mask: ArrayLike | None) -> np.ndarray | None:
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.dtype != np.bool_:
        raise TypeError(f"mask is {mask.dtype}, not boolean: True means that the query may attend to the key")
    return mask
