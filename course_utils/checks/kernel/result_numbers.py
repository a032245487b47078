"""Turn the result of an answer into plain numbers, and reject what cannot be a result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_RESULT_NUMBERS = 10_000
RETURNED_NONE = "{} returned None. Did you forget the return statement?"
NOTHING = RETURNED_NONE.format("the function")


class BadResult(TypeError):
    """Raised for a result that is neither a number nor an array and cannot be made one; the text says what it is."""


@dataclass(frozen=True)
class Numbers:
    """An array: its shape, and its entries in row-major order.

    Every NaN is the object `math.nan`, so that arrays with the same NaNs compare equal. As JSON it is
    {"shape": [...], "numbers": [...]}, with NaN and the infinities as text.
    """

    shape: tuple[int, ...]
    entries: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the array as JSON data, which `read` takes."""
        return {"shape": list(self.shape), "numbers": [x if math.isfinite(x) else str(x) for x in self.entries]}

    @staticmethod
    def read(data: Any) -> Numbers | None:
        """Read what `as_json` wrote; return None for anything else."""
        try:
            sizes = data["shape"]
            numbers = data["numbers"]
            if not isinstance(sizes, list) or not isinstance(numbers, list):
                return None
            shape = tuple(map(_size, sizes))
            entries = tuple(map(_number, numbers))
        except (TypeError, ValueError, KeyError, OverflowError):
            return None
        return Numbers(shape, entries) if len(entries) == math.prod(shape) <= MAX_RESULT_NUMBERS else None

    def as_array(self) -> np.ndarray:
        """Return the numbers as a float64 array of their shape."""
        return np.array(self.entries, dtype=np.float64).reshape(self.shape)


def _size(data: Any) -> int:
    if type(data) is not int or data < 0:
        raise ValueError("no size of an axis")
    return data


def _number(data: Any) -> float:
    number = float(data)
    return number if number == number else math.nan


def as_numbers(value: Any) -> Numbers:
    """Return a number, nested list, NumPy array or tensor as its shape and entries.

    Entries keep eight significant digits, so that the last bits, which differ between machines, do not show.

    Raises:
        TypeError: for anything that is not an array of numbers, or is far too large.
    """
    value = detach(value)
    try:
        array = np.asarray(value)
        if value is None or array.dtype.kind not in "fiubO":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{describe(value)} is not a number or a rectangular array of numbers") from None
    if array.size > MAX_RESULT_NUMBERS:
        raise TypeError(f"an array of shape {array.shape} is far larger than the result should be")
    entries = [  # inlined, because a `Recording` examines each function call
        0.0 if -1e-12 <= x <= 1e-12 else float(f"{x:.8g}") if x == x else math.nan for x in array.ravel().tolist()
    ]
    return Numbers(array.shape, tuple(entries))


def boolean(value: Any) -> Any:
    """Return a boolean mask unchanged.

    Raises:
        TypeError: for None, and for a mask of numbers, where 0 and 1 mean something else.
    """
    if value is None:
        raise TypeError(NOTHING)
    if np.asarray(detach(value)).dtype.kind != "b":
        kind = getattr(value, "dtype", "numbers")
        raise TypeError(f"the mask is made of {kind}, not of True and False: return a boolean mask")
    return value


def detach(value: Any) -> Any:
    """Turn a tensor into an array, also inside lists and tuples."""
    if hasattr(value, "detach"):
        try:
            return value.numpy(force=True)
        except TypeError:  # NumPy has no bfloat16
            return value.detach().cpu().double().numpy()
    if isinstance(value, (list, tuple)):
        return [part if type(part) in (float, int) else detach(part) for part in value]
    return value


def describe(value: Any) -> str:
    """Return in a few words what a value is, such as "a list of 3"."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
