"""Scaled dot-product attention in PyTorch: any leading batch and head dimensions, differentiable."""

from functools import reduce
from typing import overload

import torch
from torch import Tensor

from course_utils.attention.shapes import check_scale, check_shapes


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Blend the values of v for each query, by how well the query matches each key: softmax(q kᵀ · scale) v.

    q is (…, n, d_k), k is (…, m, d_k), v is (…, m, d_v); the leading dimensions broadcast as in matmul. mask is boolean
    and broadcasts to (…, n, m); True means that the query may attend to the key. scale is 1/√d_k when left out.
    Returns (output, weights): (…, n, d_v) and (…, n, m), in the floating dtype of the input, or torch's default for
    integers. A query that may attend to nothing gets zeros, and zero gradients. Raises ValueError for shapes that do
    not fit or a scale that is not finite, TypeError for a mask that is not boolean.
    Source: Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    q, k, v = _floating(q, k, v)
    mask = boolean(mask)
    mask_shape = None if mask is None else tuple(mask.shape)
    check_shapes(tuple(q.shape), tuple(k.shape), tuple(v.shape), mask_shape)
    scale = check_scale(scale, k.shape[-1])
    scores = q @ k.transpose(-2, -1) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = softmax(scores)
    output = weights @ v
    return output, weights


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Turn scores into shares: e^x over the sum of e^x, along `dim`.

    Large entries are safe. -inf gets 0, and a row of nothing but -inf gives zeros with zero gradients: nothing to
    attend to (torch.softmax gives NaN there). +inf and NaN give NaN. Same shape as x; default dtype for integers.
    """
    (x,) = _floating(x)
    exps = torch.exp(x - _peak(x, dim))
    total = exps.sum(dim=dim, keepdim=True)  # at least 1, the largest entry's; 0 where there is none
    return exps / total.clamp(min=1)


def logsumexp(x: Tensor, dim: int = -1) -> Tensor:
    """log of the sum of e^x along `dim`, which disappears. Large entries are safe; nothing but -inf gives -inf."""
    (x,) = _floating(x)
    peak = _peak(x, dim)
    total = torch.exp(x - peak).sum(dim=dim, keepdim=True)
    nothing = total == 0
    # log(0) would be right in value but has no gradient, so it is kept out of the graph.
    return (peak + total.masked_fill(nothing, 1).log()).masked_fill(nothing, -torch.inf).squeeze(dim)


@overload
def boolean(mask: Tensor) -> Tensor: ...


@overload
def boolean(mask: None) -> None: ...


def boolean(mask: Tensor | None) -> Tensor | None:
    """Return the mask as a boolean tensor, or None for None. Raises TypeError for a mask that is not boolean."""
    if mask is None:
        return None
    mask = torch.as_tensor(mask)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}, not boolean: True means that the query may attend to the key")
    return mask


def check_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself, if it is a floating dtype of PyTorch. Raises TypeError for anything else, names included."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype is {dtype!r}: give a floating dtype of PyTorch, such as torch.float32")
    return dtype


def _peak(x: Tensor, dim: int) -> Tensor:
    """The largest entry, or a finite one where every entry is -inf: the shift that keeps exp from overflowing."""
    if x.shape[dim] == 0:
        return x.new_zeros(())
    return x.detach().amax(dim=dim, keepdim=True).clamp(min=torch.finfo(x.dtype).min)


def _floating(*tensors: Tensor) -> list[Tensor]:
    tensors_given = [torch.as_tensor(x) for x in tensors]
    dtype = reduce(torch.promote_types, [x.dtype for x in tensors_given])
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    return [x.to(dtype) for x in tensors_given]
