"""Scaled dot-product attention in plain Python: lists of rows, no library."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from course_utils.attention.shapes import check_scale, check_shapes


def attention(
    q: Sequence[Sequence[float]],
    k: Sequence[Sequence[float]],
    v: Sequence[Sequence[float]],
    mask: Sequence | None = None,
    scale: float | None = None,
) -> tuple[list[list[float]], list[list[float]]]:
    """Blend the values of v for each query, by how well the query matches each key: softmax(q kᵀ · scale) v.

    q is n rows of d_k numbers, k is m rows of d_k, v is m rows of d_v. mask holds booleans, n rows of m (or what
    broadcasts to that); True means that the query may attend to the key. scale is 1/√d_k when left out.
    Returns (output, weights): n rows of d_v floats, n rows of m. A query that may attend to nothing gets zeros.
    Raises ValueError for shapes that do not fit, ragged rows or a scale that is not finite, TypeError for a mask that
    is not boolean. Source: Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    check_shapes(_shape(q, "q", like=k), _shape(k, "k"), _shape(v, "v"))
    scale = check_scale(scale, len(k[0]))
    scores = [[dot(query, key) * scale for key in k] for query in q]
    if mask is not None:
        may_attend = _mask_rows(mask, len(q), len(k))
        scores = [
            [score if allowed else -math.inf for score, allowed in zip(row, flags, strict=True)]
            for row, flags in zip(scores, may_attend, strict=True)
        ]
    weights = softmax(scores)
    output = [[dot(row, column) for column in zip(*v, strict=True)] for row in weights]
    return output, weights


def softmax(x: Sequence, axis: int = -1) -> list:
    """Turn scores into shares: e^x over the sum of e^x, along each row (axis -1) or each column (axis 0) of rows.

    x is one row of numbers, or a list of rows; floats of the same shape come back. Large entries are safe. -inf gets
    0, and a row of nothing but -inf gives zeros: nothing to attend to. +inf and NaN give NaN.
    """
    return _along(axis, x, _softmax_row)


def logsumexp(x: Sequence, axis: int = -1) -> float | list[float]:
    """log of the sum of e^x: a float for one row, one float per row (axis -1) or column (axis 0) of rows.

    Large entries are safe; a row of nothing but -inf gives -inf.
    """
    if _is_rows(x) and axis in (0, -2):
        x = _transpose(x)
        axis = -1
    return _along(axis, x, _logsumexp_row)


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the sum of the products, number by number, of two rows of one length."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def _softmax_row(row: Sequence[float]) -> list[float]:
    peak = _peak(row)
    exps = [math.exp(x - peak) for x in row]
    total = sum(exps)
    return [e / (total or 1.0) for e in exps]


def _logsumexp_row(row: Sequence[float]) -> float:
    peak = _peak(row)
    total = sum(math.exp(x - peak) for x in row)
    return peak + math.log(total) if total else -math.inf


def _peak(row: Sequence[float]) -> float:
    """The largest entry, or 0 where every entry is -inf: the shift that keeps exp from overflowing."""
    largest = max(row, default=-math.inf)
    return largest if largest != -math.inf else 0.0


def _along(axis: int, x: Sequence, of_row: Callable[[Sequence[float]], Any]) -> Any:
    if not _is_rows(x):
        if axis not in (0, -1):
            raise ValueError(f"axis is {axis} but x is one row: its only axis is 0 (or -1)")
        return of_row(x)
    if axis in (1, -1):
        return [of_row(row) for row in x]
    if axis in (0, -2):
        return _transpose([of_row(column) for column in _transpose(x)])
    raise ValueError(f"axis is {axis} but x has two axes: 0 (down the columns) or -1 (along the rows)")


def _is_rows(x: Sequence) -> bool:
    return len(x) > 0 and hasattr(x[0], "__len__")


def _transpose(rows: Sequence) -> list[list]:
    _shape(rows, "x")
    return [list(column) for column in zip(*rows, strict=True)]


def _shape(rows: Sequence, name: str, like: Sequence | None = None) -> tuple[int, int]:
    """(rows, columns) of a list of rows. An empty list has no columns to count, so it takes them from `like`."""
    if len(rows) == 0:
        if like is not None and len(like) > 0:
            return (0, len(like[0]))
        raise ValueError(f"{name} is empty: it needs at least one row")
    if not _is_rows(rows):
        raise ValueError(f"{name} is ({len(rows)},): it needs two axes, a list of rows")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{name} is ragged: row 0 has {len(rows[0])} numbers but row {i} has {len(row)}; all rows need as many"
            )
    return (len(rows), len(rows[0]))


def _mask_rows(mask: Sequence, n: int, m: int) -> list[Sequence[bool]]:
    """The mask as n rows of m booleans."""
    rows = mask if _is_rows(mask) else [mask]
    if any(not isinstance(flag, bool) for row in rows for flag in row):
        raise TypeError("mask holds something other than booleans: True means that the query may attend to the key")
    check_shapes((n, 1), (m, 1), (m, 1), mask=_shape(rows, "mask"))
    rows = [list(row) * m if len(row) == 1 else row for row in rows]
    return list(rows) * n if len(rows) == 1 else rows
