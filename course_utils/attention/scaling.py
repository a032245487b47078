"""Why 1/√d_k: how dot products spread, by measurement and by theory, and what that does to softmax and its gradient.

What is measured comes with its standard error. Everything random is drawn in float64 from a seed.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_utils.attention.shapes import check_scale, whole
from course_utils.attention.tensors import check_dtype, softmax


class Estimate(NamedTuple):
    """A measured value and its standard error: about 95% of the intervals value ± 1.96 · error hold the truth."""

    value: float
    error: float


class Spread(NamedTuple):
    """The mean and the standard deviation of dot products: two Estimates where measured, two numbers in theory."""

    mean: Estimate | float
    std: Estimate | float


class Saturation(NamedTuple):
    """How close softmax is to picking one key: mean largest weight, mean entropy (nats), mean trace of its Jacobian."""

    largest: Estimate
    entropy: Estimate
    trace: Estimate


# --- dot products ---------------------------------------------------------------------------------------------------


def dot_products(
    d_k: int,
    samples: int,
    scale: float | None = 1.0,
    rho: float = 0.0,
    mean: float = 0.0,
    std: float = 1.0,
    draw: Callable[..., Tensor] = torch.randn,
    seed: int = 0,
) -> Tensor:
    """Draw `samples` pairs of a query and a key and return scale · q·k for each: (samples,), float64.

    All entries have the given mean and standard deviation; q_i and k_i are correlated by rho, all else is independent.
    scale None is 1/√d_k, as in attention. draw(rows, columns, generator=, dtype=) gives independent entries of mean 0
    and variance 1, normal unless told otherwise. Raises ValueError for d_k or samples below 1, rho outside ±1, std
    below 0.
    """
    d_k = whole("d_k", d_k)
    samples = whole("samples", samples)
    scale = check_scale(scale, d_k)
    _check_entries(rho, mean, std)
    generator = torch.Generator().manual_seed(seed)
    products = []
    for rows in _blocks(samples, d_k):
        a, b = (draw(rows, d_k, generator=generator, dtype=torch.float64) for _ in range(2))  # (rows, d_k)
        q = mean + std * a
        k = mean + std * (rho * a + math.sqrt(1 - rho**2) * b)
        products.append(scale * (q * k).sum(dim=-1))  # (rows,)
    return torch.cat(products)  # (samples,)


def dot_product_statistics(
    d_k: int,
    samples: int = 10_000,
    scale: float | None = 1.0,
    rho: float = 0.0,
    mean: float = 0.0,
    std: float = 1.0,
    draw: Callable[..., Tensor] = torch.randn,
    seed: int = 0,
) -> Spread:
    """Measure the mean and standard deviation of scale · q·k: Spread(mean, std), each an Estimate.

    Arguments and errors as for `dot_products`, and at least 2 samples. The same seed gives the same figures.
    """
    products = dot_products(d_k, whole("samples", samples, least=2), scale, rho, mean, std, draw, seed)
    return Spread(mean_estimate(products), std_estimate(products))


def dot_product_theory(
    d_k: int, scale: float | None = 1.0, rho: float = 0.0, mean: float = 0.0, std: float = 1.0
) -> Spread:
    """Return the exact mean and standard deviation of scale · q·k, as Spread(mean, std) of two numbers.

    With μ and σ the mean and standard deviation of an entry, each of the d_k terms q_i k_i has
        mean      μ² + ρσ²
        variance  (σ² + μ²)² - μ⁴ + ρσ²(2μ² + ρσ²), where the first two make σ²(σ² + 2μ²)
    and means and variances of independent terms add up. For ρ = 0 this holds whatever the distribution, since
    E[q²k²] = E[q²]E[k²]. For ρ ≠ 0 the entries have to be normal: E[q²k²] = E[q²]E[k²] + 2 cov² + 4μ² cov, with
    cov = ρσ² (Isserlis 1918, for μ = 0). q = k is ρ = 1: mean d_k and variance 2 d_k. Same arguments and errors as
    `dot_products`. Source: Vaswani et al. 2017, section 3.2.1, footnote 4, for μ = 0, σ = 1, ρ = 0.
    """
    d_k = whole("d_k", d_k)
    scale = check_scale(scale, d_k)
    _check_entries(rho, mean, std)
    covariance = rho * std**2
    term_mean = mean**2 + covariance
    term_variance = std**2 * (std**2 + 2 * mean**2) + covariance * (2 * mean**2 + covariance)
    return Spread(scale * d_k * term_mean, abs(scale) * math.sqrt(d_k * term_variance))


def mean_estimate(samples: Sequence | np.ndarray | Tensor) -> Estimate:
    """Return the mean of independent samples, (n,), n at least 2, with its standard error s/√n."""
    samples = _row(samples)
    return Estimate(samples.mean().item(), (samples.std() / math.sqrt(len(samples))).item())


def std_estimate(samples: Sequence | np.ndarray | Tensor) -> Estimate:
    """Return the standard deviation s of independent samples, (n,), n at least 2, with its standard error.

    s² is nearly a mean of squared deviations, so its variance is (μ₄ - σ⁴)/n, with μ₄ the fourth central moment. The
    square root then divides the error by its slope, 2s: √((μ₄ - s⁴)/n) / 2s. This holds for large n and any
    distribution with a fourth moment. The shorter s/√(2n) is its value for normal samples (μ₄ = 3σ⁴), and dot products
    are not quite that: μ₄ = (3 + 6/d_k)σ⁴ for normal q and k. Source: Wasserman 2004, All of Statistics, section 5.5
    (delta method).
    """
    samples = _row(samples)
    variance = samples.var()
    if variance == 0:
        return Estimate(0.0, 0.0)
    fourth = (samples - samples.mean()).pow(4).mean()
    error_of_variance = ((fourth - variance**2).clamp(min=0) / len(samples)).sqrt()
    return Estimate(variance.sqrt().item(), (error_of_variance / (2 * variance.sqrt())).item())


# --- softmax: how sharp, and what gradient it lets through ----------------------------------------------------------
# Weights and gradients may be lists, NumPy arrays or tensors; what comes back is a tensor.


def saturation(d_k: int, keys: int = 8, samples: int = 10_000, scale: float | None = 1.0, seed: int = 0) -> Saturation:
    """Softmax over the scores of one query with `keys` keys, many times over: Saturation(largest, entropy, trace).

    The entries of q and k are independent standard normals; scale multiplies q·k, None is 1/√d_k. Without a scale the
    weights harden as d_k grows; with 1/√d_k they do not depend on it beyond d_k of a few dozen. Raises ValueError for
    d_k or keys below 1 and fewer than 2 samples.
    """
    d_k = whole("d_k", d_k)
    keys = whole("keys", keys)
    samples = whole("samples", samples, least=2)
    scale = check_scale(scale, d_k)
    generator = torch.Generator().manual_seed(seed)
    scores = []
    for rows in _blocks(samples, d_k * (keys + 1)):
        q = torch.randn(rows, 1, d_k, generator=generator, dtype=torch.float64)
        k = torch.randn(rows, keys, d_k, generator=generator, dtype=torch.float64)
        scores.append(scale * (q @ k.transpose(-2, -1)).squeeze(-2))  # (rows, keys)
    weights = softmax(torch.cat(scores))  # (samples, keys)
    measures = weights.amax(dim=-1), entropy(weights), jacobian_trace(weights)  # (samples,) each
    return Saturation(*map(mean_estimate, measures))


def entropy(weights: Sequence | np.ndarray | Tensor) -> Tensor:
    """Return how undecided a row of weights is, in nats: Σ -p log p, (…, m) -> (…). log m for equal weights, 0 for one.

    A weight of 0 adds 0, so a row of zeros has entropy 0; gradients stay finite. Source: Shannon 1948, section 6.
    """
    weights = torch.as_tensor(weights)
    logs = weights.masked_fill(weights == 0, 1).log()
    return 0 - (weights * logs).sum(dim=-1)  # a minus sign alone would make -0.0 of 0


def softmax_jacobian(weights: Sequence | np.ndarray | Tensor) -> Tensor:
    """How each weight moves with each score, diag(p) - p pᵀ: (…, m) -> (…, m, m), from the weights p = softmax(s).

    Entry [i, j] is ∂p_i/∂s_j. It is symmetric, and rows add up to 0: the same number on all scores changes nothing.
    """
    weights = torch.as_tensor(weights)
    return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]  # (…, m, m)


def jacobian_trace(weights: Sequence | np.ndarray | Tensor) -> Tensor:
    """How much gradient softmax lets through, as one number: the trace Σ p(1 - p) of its Jacobian, (…, m) -> (…)."""
    weights = torch.as_tensor(weights)
    return (weights * (1 - weights)).sum(dim=-1)


def runner_up_gradient(gap: float | Tensor) -> Tensor:
    """∂p/∂s for the second of two keys whose score is `gap` behind: p(1 - p), about e^-gap. A number or a tensor.

    Returns a tensor of the same shape, float64 for plain numbers. 1/4 when they are level, 4.5e-5 at a gap of 10.
    """
    gap = gap if isinstance(gap, torch.Tensor) else torch.as_tensor(gap, dtype=torch.float64)
    return torch.sigmoid(gap) * torch.sigmoid(-gap)


def exp_limit(dtype: torch.dtype) -> float:
    """The largest x with a finite e^x in this dtype, log of its largest number: 11.09 in float16, 88.7 in float32.

    bfloat16 has the exponents of float32, so the same limit. Raises TypeError for a dtype that is not a floating one of
    PyTorch.
    """
    return math.log(torch.finfo(check_dtype(dtype)).max)


# --- below: checks, and drawing in pieces ---------------------------------------------------------------------------


def _blocks(samples: int, numbers_each: int) -> list[int]:
    """How many samples to draw at a time, so that about a million numbers (8 MB) are in memory."""
    at_once = max(1, 2**20 // numbers_each)
    return [min(at_once, samples - start) for start in range(0, samples, at_once)]


def _row(samples: Sequence | np.ndarray | Tensor) -> Tensor:
    samples = torch.as_tensor(samples, dtype=torch.float64)
    if samples.ndim != 1 or len(samples) < 2:
        raise ValueError(f"samples is {tuple(samples.shape)}: give at least 2 numbers in one row")
    return samples


def _check_entries(rho: float, mean: float, std: float) -> None:
    if not -1 <= rho <= 1:
        raise ValueError(f"rho is {rho}: a correlation lies between -1 and 1")
    if not math.isfinite(mean):
        raise ValueError(f"mean is {mean}: it must be a finite number")
    if not 0 <= std < math.inf:
        raise ValueError(f"std is {std}: it must be finite and at least 0")
