"""What every implementation is compared with: the formula as it stands, and the library's own attention.

Benchmarks and lessons measure the same two, so that their numbers can be laid side by side. q is (…, h, n, d_k),
k (…, h, m, d_k), v (…, h, m, d_v), on any device and in any floating dtype; autograd sees both functions. causal is
aligned lower-right, so that the last query sees the last key.
"""

import contextlib
import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils.attention.shapes import check_causal, check_shapes

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def naive(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """softmax(q kᵀ/√d_k) v with every score stored, in the dtype of q; returns (…, h, n, d_v).

    Raises ValueError for shapes that do not fit, and for a causal query without a key (n > m).
    """
    causal = _check(q, k, v, causal)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (…, h, n, m)
    if causal:
        scores = scores.masked_fill(~_lower_right(q, k), -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def library(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, backend: str | None = None) -> Tensor:
    """F.scaled_dot_product_attention, by one of its backends: "flash", "cuDNN", "efficient" or "math".

    None leaves the choice to the library. Returns (…, h, n, d_v). Raises ValueError for an unknown name and as `naive`
    does; RuntimeError, the library's own, where a backend does not take these inputs.
    """
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}: it must be one of {', '.join(BACKENDS)}, or None")
    causal = _check(q, k, v, causal)
    square = q.shape[-2] == k.shape[-2]
    mask = _lower_right(q, k) if causal and not square else None  # is_causal would be aligned upper-left
    with contextlib.nullcontext() if backend is None else sdpa_kernel(BACKENDS[backend]):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal and square)


def _lower_right(q: Tensor, k: Tensor) -> Tensor:
    n, m = q.shape[-2], k.shape[-2]
    return torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)  # (n, m)


def _check(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> bool:
    check_shapes(tuple(q.shape), tuple(k.shape), tuple(v.shape))
    n, m = q.shape[-2], k.shape[-2]
    causal = check_causal(causal)
    if causal and n > m:
        raise ValueError(f"{n} causal queries and {m} keys: the first {n - m} would see no key; use tensors.attention")
    return causal
