"""What the checks of several days share: the worked example, draws, and the reading of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from course_utils.checks.kernel.numbers import BadResult

if TYPE_CHECKING:
    import torch

Array: TypeAlias = "np.ndarray | torch.Tensor"  # a reference is given arrays, a learner's answer tensors

Q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
K = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
V = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
UNTOUCHED = "what it is given stays as it was"
NEW_TENSORS = (
    "The answer is right but writes into its arguments, which the caller still needs. Make new tensors: x - m in place "
    "of x -= m, masked_fill in place of masked_fill_, or work on x.clone()."
)


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Standard normal entries rounded to two decimals, so that a learner can work a failing case out by hand."""
    return rng.standard_normal(shape).round(2) + 0.0


def draw_qkv(
    rng: np.random.Generator, n: int, m: int, d_k: int, d_v: int, lead: tuple[int, ...] = (), size: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (…, n, d_k), k (…, m, d_k) and v (…, m, d_v), with the axes `lead` in front; q and k times `size`."""
    return size * draw(rng, *lead, n, d_k), size * draw(rng, *lead, m, d_k), draw(rng, *lead, m, d_v)


def rows_far_apart(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k and v for which the scores of one query lie far above all of the other's."""
    q = np.array([[40.0, 0.0], [-40.0, 1.0]])
    k = np.array([[40.0, 1.0], [41.0, 0.5], [40.5, 2.0]])
    return q, k, draw(rng, 3, 2)


def far_below_zero(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k and v for which all scores lie near −1000."""
    q = np.array([[40.0, 1.0], [30.0, 2.0]])
    k = np.array([[-40.0, 1.0], [-41.0, 0.5], [-40.5, 2.0]])
    return q, k, draw(rng, 3, 2)


def draw_mask(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """A boolean (n, m) in which each query may attend to at least one key, and not to all."""
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
    """A result of several parts as a dict of them. Raises BadResult where it is something else."""
    if result is None:
        raise BadResult("the function returned None: is a return missing?")
    if not isinstance(result, (tuple, list)) or len(result) != len(names):
        size = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
        raise BadResult(f"the function returned a {type(result).__name__}{size}; it should return ({', '.join(names)})")
    for name, part in zip(names, result, strict=True):
        if part is None:
            raise BadResult(f"the function returned None for {name}")
    return dict(zip(names, result, strict=True))
