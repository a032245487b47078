"""Parts that the checks of several days share: the worked example, random inputs, and the reading of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from course_utils.checks.kernel.result_numbers import NOTHING, BadResult

if TYPE_CHECKING:
    import torch

Array: TypeAlias = "np.ndarray | torch.Tensor"  # references receive arrays, a learner's answer tensors

Q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
K = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
V = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
UNTOUCHED = "what it is given stays as it was"
NEW_TENSORS = (
    "The answer is right but writes into its arguments, which the caller still needs. Make new tensors: x - m in place "
    "of x -= m, masked_fill in place of masked_fill_, or work on x.clone()."
)


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return standard normal entries rounded to two decimals, so that a learner can redo a failing case by hand."""
    return rng.standard_normal(shape).round(2) + 0.0


def draw_qkv(
    rng: np.random.Generator, n: int, m: int, d_k: int, d_v: int, lead: tuple[int, ...] = (), size: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q (*lead, n, d_k), k (*lead, m, d_k) and v (*lead, m, d_v), with q and k multiplied by `size`."""
    return size * draw(rng, *lead, n, d_k), size * draw(rng, *lead, m, d_k), draw(rng, *lead, m, d_v)


def rows_far_apart(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, k and v for which all scores of one query lie far above those of the other."""
    q = np.array([[40.0, 0.0], [-40.0, 1.0]])
    k = np.array([[40.0, 1.0], [41.0, 0.5], [40.5, 2.0]])
    return q, k, draw(rng, 3, 2)


def far_below_zero(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, k and v for which all scores lie far below zero, near −1000."""
    q = np.array([[40.0, 1.0], [30.0, 2.0]])
    k = np.array([[-40.0, 1.0], [-41.0, 0.5], [-40.5, 2.0]])
    return q, k, draw(rng, 3, 2)


def draw_mask(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Return a boolean mask (n, m) in which each query may attend to at least one key, but not to all."""
    mask = np.zeros((n, m), dtype=bool)
    for row in mask:
        row[rng.permutation(m)[: rng.integers(1, m)]] = True
    return mask


def only_in(result: dict[str, Any], *dtypes: str) -> dict[str, Any]:
    """The parts of a result. Raises BadResult where an array or a tensor among them has none of these dtypes."""
    for part, value in result.items():
        kind = str(getattr(value, "dtype", dtypes[0])).removeprefix("torch.")  # Python's own numbers have none
        if kind not in dtypes:
            raise BadResult(f"{part} is {kind}, and should be {' or '.join(dtypes)}")
    return result


def named(result: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a result of several parts as a dict by their names.

    Raises:
        BadResult: if the result does not have exactly these parts, or one of them is None.
    """
    if result is None:
        raise BadResult(NOTHING)
    if not isinstance(result, (tuple, list)) or len(result) != len(names):
        size = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
        raise BadResult(f"the function returned a {type(result).__name__}{size}; it should return ({', '.join(names)})")
    for name, part in zip(names, result, strict=True):
        if part is None:
            raise BadResult(f"the function returned None for {name}")
    return dict(zip(names, result, strict=True))
