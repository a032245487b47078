"""A result as plain numbers, and what is no result."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST_RESULT = 10_000
NOTHING = "the function returned None: is a return missing?"


class BadResult(TypeError):
    """What a function returned is no number, no array and nothing that can be made one; the text says what it is."""


def as_numbers(value: Any) -> dict:
    """A number, nested list, NumPy array or tensor as {"shape": [...], "numbers": [...]}.

    Numbers keep eight significant digits, so that the last bits, which differ between machines, do not show.
    Raises TypeError for what is no array of numbers.
    """
    value = detached(value)
    try:
        array = np.asarray(value)
        if value is None or array.dtype.kind not in "fiubO":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{describe(value)} is not a number or a rectangular array of numbers") from None
    if array.size > LARGEST_RESULT:
        raise TypeError(f"an array of shape {array.shape} is far larger than the result should be")
    numbers = [  # without a function: a recording hears of each call
        0.0 if -1e-12 <= x <= 1e-12 else float(f"{x:.8g}") if x - x == 0 else str(x) for x in array.ravel().tolist()
    ]
    return {"shape": list(array.shape), "numbers": numbers}


def boolean(value: Any) -> Any:
    """A mask as it is, if it is made of True and False. Raises TypeError for numbers: 0 and 1 mean other things."""
    if value is None:
        raise TypeError(NOTHING)
    if np.asarray(detached(value)).dtype.kind != "b":
        kind = getattr(value, "dtype", "numbers")
        raise TypeError(f"the mask is made of {kind}, not of True and False: return a boolean mask")
    return value


def detached(value: Any) -> Any:
    """A tensor as an array, also inside lists."""
    if hasattr(value, "detach"):
        try:
            return value.numpy(force=True)
        except TypeError:  # NumPy has no bfloat16
            return value.detach().cpu().double().numpy()
    if isinstance(value, (list, tuple)):
        return [part if type(part) in (float, int) else detached(part) for part in value]
    return value


def describe(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
