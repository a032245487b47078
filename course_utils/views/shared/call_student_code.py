"""Call a student's attention with the container that it understands, and turn whatever goes wrong into a sentence."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.views.silence import hide_prints


def kind_of(values: Any) -> str:
    """Return the name of the container that holds these values: "tensors", "arrays" or "lists"."""
    if hasattr(values, "detach"):
        return "tensors"
    return "arrays" if isinstance(values, np.ndarray) else "lists"


def name_of(attention: Callable[..., Any]) -> str:
    """Return the name of a student's function for messages."""
    return str(getattr(attention, "__name__", "attention"))


def to_lists(numbers: np.ndarray) -> list[Any]:
    """Return a matrix or row as lists for the page.

    Numbers that are not finite become texts that JavaScript's Number reads.
    """
    if numbers.ndim > 1:
        return [to_lists(row) for row in numbers]
    return [
        value if np.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        for value in numbers.tolist()
    ]


def call_attention(
    attention: Callable[..., Any], q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, kind: str
) -> tuple[tuple[np.ndarray, np.ndarray] | None, str]:
    """Call a student's attention function, showing nothing that it prints.

    Args:
        q: (n, d_k).
        k: (m, d_k).
        v: (m, d_v).
        mask: (n, m) booleans, or None.
        kind: the container to try first, one of those that `kind_of` returns.

    Returns:
        ((output, weights), ""), or None and a sentence that says what was wrong.
    """
    name = name_of(attention)
    if mask is not None and not _takes_mask(attention):
        return None, f"{name} takes no mask, but there is one."
    kinds = [kind, *(other for other in ("arrays", "lists", "tensors") if other != kind)]
    first = None
    for kind in kinds:
        if kind == "tensors" and "torch" not in sys.modules:
            continue
        try:
            inputs = [_container(kind, value.copy()) for value in (q, k, v)]
            with hide_prints():
                returned = (
                    attention(*inputs) if mask is None else attention(*inputs, mask=_container(kind, mask.copy()))
                )
        except NotImplementedError:
            return None, f"{name} is not written yet."
        except Exception as error:
            first = first or f"{name} raised {type(error).__name__}: {error}".rstrip(": ")
            continue
        fitting, problem = _check_returned(name, returned, (len(q), v.shape[1]), (len(q), len(k)))
        return fitting, problem and f"{problem}."
    return None, f"{first}."


def _takes_mask(function):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return "mask" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _container(kind, matrix):
    if kind == "lists":
        return matrix.tolist()
    if kind == "arrays":
        return matrix
    torch = sys.modules["torch"]
    return torch.from_numpy(matrix) if matrix.dtype == bool else torch.from_numpy(matrix).float()


def _check_returned(name, returned, output_shape, weights_shape):
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        return None, f"{name} returned {type(returned).__name__}: the pair (output, weights) was expected"
    arrays = []
    for part, value, shape in zip(("output", "weights"), returned, (output_shape, weights_shape), strict=True):
        try:
            array = np.array(value.tolist() if hasattr(value, "detach") else value, dtype=np.float64)
        except (TypeError, ValueError):
            return None, f"{name} returned {part} that are not a matrix of numbers"
        if array.shape != shape:
            return None, f"{name} returned {part} of shape {array.shape}: {shape} was expected"
        arrays.append(array)
    return tuple(arrays), ""
