"""Turn a widget's arguments into arrays, masks and labels, or raise an error that says what was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Numbers: TypeAlias = "npt.ArrayLike | Tensor"  # NumPy, torch or nested lists


def detach(values: Any) -> Any:
    """Return a tensor as a float64 array, and anything else as it is."""
    return values.detach().cpu().double().numpy() if hasattr(values, "detach") else values


def as_array(values: Any) -> np.ndarray:
    """Return a new float64 array from NumPy, a tensor, or lists of numbers or tensors.

    Raises:
        TypeError, ValueError: the values are ragged or not numeric.
    """
    if isinstance(values, (list, tuple)):
        values = [detach(part) for part in values]
    return np.array(detach(values), dtype=np.float64)


def as_matrix(name: str, values: Any) -> np.ndarray:
    """Return a float64 array (rows, columns) from NumPy, torch or nested lists.

    Args:
        name: the name of the argument in messages.

    Raises:
        ValueError: the values are ragged, not numeric, not two-dimensional, empty or not finite.
    """
    try:
        matrix = as_array(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a matrix of numbers: every row needs the same number of numbers") from None
    if matrix.ndim != 2:
        hint = "; pick one batch and head first" if matrix.ndim > 2 else ""
        raise ValueError(f"{name} has shape {matrix.shape}: two dimensions are needed, rows and columns{hint}")
    if 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}: there is nothing to show")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"{name}[{row}, {column}] is {matrix[row, column]}: every number has to be finite")
    return matrix


def as_row(name: str, values: Any, least: int, most: int) -> np.ndarray:
    """Return a float64 array of `least` to `most` numbers from NumPy, torch or a list; they need not be finite.

    Raises:
        ValueError: the values are something else.
    """
    try:
        row = as_array(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {values!r}: give a list of numbers") from None
    if row.ndim != 1 or not least <= len(row) <= most:
        raise ValueError(f"{name} has shape {row.shape}: give one row of {least} to {most} numbers")
    return row


def as_mask(mask: Any, n: int, m: int) -> np.ndarray:
    """Return an (n, m) array of booleans from NumPy, torch or nested lists of booleans, 0 and 1.

    Raises:
        ValueError: the mask holds other numbers or has another shape.
    """
    mask = as_matrix("mask", mask)
    if not np.isin(mask, (0, 1)).all():
        raise ValueError("mask holds other numbers than 0 and 1: give booleans, True means may attend")
    if mask.shape != (n, m):
        which = "one row per query" if mask.shape[0] != n else "one column per key"
        raise ValueError(f"mask is {mask.shape} but there are {n} queries and {m} keys: {which}")
    return mask.astype(bool)


def as_labels(name: str, labels: Iterable[Any]) -> list[str]:
    r"""Return the labels as strings in which white space can be seen: "\n" becomes ⏎, " " becomes ␣, "" becomes ∅.

    Raises:
        ValueError: a bare string was given, which is one label and not many.
    """
    if isinstance(labels, str):
        raise ValueError(f"{name} is one string, {labels!r}: give a list with one label each, e.g. {labels.split()!r}")
    try:
        return [_visible(str(label)) for label in labels]
    except TypeError:
        raise ValueError(f"{name} is {labels!r}: give a list with one label each") from None


def _visible(label):
    label = label.replace("\n", "⏎").replace("\t", "⇥")
    return label if label.strip() else label.replace(" ", "␣") or "∅"


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Return a float64 array from NumPy, torch or lists of them.

    Raises:
        ValueError: the values are ragged, not numeric or not finite.
    """
    try:
        numbers = as_array(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not hold numbers in equal rows") from None
    if not np.isfinite(numbers).all():
        place = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise ValueError(f"{name}{place} is {numbers[tuple(place)]}: every number has to be finite")
    return numbers


def as_head(name: str, head: Any, shape: Sequence[int]) -> tuple[int, int]:
    """Return the pair of ints (layer, head).

    Raises:
        ValueError: it is no pair of ints, or lies outside `shape`, which is (n_layers, h).
    """
    n_layers, h = shape
    try:
        layer, place = (part.__index__() for part in head)
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"{name} is {head!r}: give a pair (layer, head)") from None
    if not (0 <= layer < n_layers and 0 <= place < h):
        raise ValueError(f"{name} is ({layer}, {place}): layers go from 0 to {n_layers - 1}, heads from 0 to {h - 1}")
    return layer, place
