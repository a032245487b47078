"""Attention in tiles: the softmax computed while the scores stream past, so that no (n, m) matrix ever exists.

Letters are those of the FlashAttention papers: m is the running maximum of a query's scores, l the running sum of
e^(score − m), o the running blend of values (acc in `forward`), lse = m + log l. In shapes, n and m still count queries
and keys. From the top: the running softmax, its merge rule, the tiled forward, its backward, and autograd.
Sources: Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithms 1, 2 and 4; Dao 2023, algorithms 1 and 2.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from course_utils.attention.shapes import check_causal, check_grouped, check_scale, check_shapes, whole
from course_utils.attention.tensors import boolean

# --- the running softmax --------------------------------------------------------------------------------------------


class Partial(NamedTuple):
    """What a query has gathered from the keys seen so far: m (…, n), l (…, n) and o (…, n, d_v).

    o = Σ e^(score − m) · value is not divided by l until `finish`. So l and o shrink by the same factor when m grows.
    """

    m: Tensor
    l: Tensor
    o: Tensor


def online_softmax(scores: Tensor, block: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
    """Read scores (…, m) from left to right, `block` keys at a time; yield m and l, both (…), after each block.

    When the maximum grows from m to m_new, what was summed so far shrinks by e^(m − m_new). The last pair gives every
    weight, e^(score − m) / l, and log-sum-exp, m + log l. float32, or float64 for float64.
    Source: Milakov and Gimelshein 2018, algorithm 3.
    """
    scores = _wide(torch.as_tensor(scores))
    m = scores.new_full(scores.shape[:-1], -torch.inf)
    l = torch.zeros_like(m)
    block = whole("block", block)
    for start in range(0, scores.shape[-1], block):
        s = scores[..., start : start + block]
        m_new = torch.maximum(m, s.amax(dim=-1))
        l = l * _exp_below(m, m_new) + _exp_below(s, m_new[..., None]).sum(dim=-1)
        m = m_new
        yield m, l


def online_attention(scores: Tensor, v: Tensor, block: int = 1) -> Iterator[Partial]:
    """The same with the output carried along: yield a Partial after each block of keys.

    scores is (…, m) and v (…, m, d_v), multiplied as by matmul. `finish` turns any Partial into the attention over the
    keys read so far. float32, or float64 for float64. Raises ValueError when scores and v do not fit.
    """
    scores = _wide(torch.as_tensor(scores))
    v = _wide(torch.as_tensor(v))
    block = whole("block", block)
    _check_values(scores, v)
    partial = nothing(scores.shape[:-1], v.shape[-1], scores)
    for start in range(0, scores.shape[-1], block):
        keys = slice(start, start + block)
        partial = absorb(partial, scores[..., keys], v[..., keys, :])
        yield partial


def absorb(partial: Partial, scores: Tensor, v: Tensor) -> Partial:
    """Add one block of at least one key to a Partial: scores (…, n, block), v (…, block, d_v)."""
    m = torch.maximum(partial.m, scores.amax(dim=-1))
    rescale = _exp_below(partial.m, m)  # (…, n)
    p = _exp_below(scores, m[..., None])  # (…, n, block)
    return Partial(m, partial.l * rescale + p.sum(dim=-1), partial.o * rescale[..., None] + p @ v)


# --- merging --------------------------------------------------------------------------------------------------------


def partial_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None
) -> Partial:
    """Attend to some of the keys, and keep what is needed to merge with the others.

    q is (…, n, d_k), k (…, m, d_k) and v (…, m, d_v): any part of the keys, with the columns of the boolean mask
    (…, n, m) that belong to it. A part may be empty, or masked whole. float32, or float64 for float64.
    Raises ValueError for shapes or a scale that do not fit, TypeError for a mask that is not boolean.
    """
    mask = boolean(mask)
    check_shapes(tuple(q.shape), tuple(k.shape), tuple(v.shape), None if mask is None else tuple(mask.shape))
    scale = check_scale(scale, q.shape[-1])
    scores = _wide(q) @ _wide(k).mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    partial = nothing(scores.shape[:-1], v.shape[-1], scores)
    return absorb(partial, scores, _wide(v)) if k.shape[-2] else partial


def merge(a: Partial, b: Partial) -> Partial:
    """Join what was gathered from two disjoint sets of keys. Any order and any grouping give the same up to rounding.

    Key blocks merged one after another are tiling; parts computed side by side and then merged are split-K decoding
    (flash-decoding); parts that live on several machines are ring attention.
    """
    a, b = _three("a", a), _three("b", b)
    m = torch.maximum(a.m, b.m)
    keep_a, keep_b = _exp_below(a.m, m), _exp_below(b.m, m)
    return Partial(m, a.l * keep_a + b.l * keep_b, a.o * keep_a[..., None] + b.o * keep_b[..., None])


def nothing(shape: tuple[int, ...], d_v: int, like: Tensor) -> Partial:
    """Return the Partial of no keys at all, m = −inf, l = 0, o = 0: merging with it changes nothing."""
    return Partial(like.new_full(shape, -torch.inf), like.new_zeros(shape), like.new_zeros((*shape, d_v)))


def finish(partial: Partial) -> tuple[Tensor, Tensor]:
    """Divide once, at the end: (output, lse) of shapes (…, n, d_v) and (…, n). No keys give zeros and −inf."""
    m, l, o = _three("partial", partial)
    return o / l.masked_fill(l == 0, 1)[..., None], m + l.log()


def _exp_below(x: Tensor, m: Tensor) -> Tensor:
    """e^(x − m) for x ≤ m. Where both are −inf it is 0: nothing has been seen (−inf − −inf would be NaN)."""
    return torch.exp(x - m.masked_fill(m == -torch.inf, 0))


# --- forward --------------------------------------------------------------------------------------------------------


def _in_its_own_dtypes(function: Callable) -> Callable:
    """Inside torch.autocast too: the sums stay in the dtypes that the function chose."""

    @functools.wraps(function)
    def call(q: Tensor, *rest: Any, **options: Any) -> Any:
        with torch.autocast(q.device.type, enabled=False):
            return function(q, *rest, **options)

    return call


@torch.no_grad()
@_in_its_own_dtypes
def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    block_q: int = 64,
    block_k: int = 64,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention in memory linear in n and m: returns (o, lse), lse being the log-sum-exp of each query's scores.

    q is (…, h, n, d_k), k (…, h_kv, m, d_k), v (…, h_kv, m, d_v), with h a multiple of h_kv, or all without the head
    axis. causal is aligned lower-right: the last query sees the last key. scale is 1/√d_k when left out.
    o is (…, h, n, d_v) in the dtype of q; lse, (…, h, n), and all sums are float32, or float64 for float64. A query
    that may attend to nothing gets o = 0 and lse = −inf. Autograd does not see this function: use `tiled_attention`.
    Raises ValueError for shapes, block sizes or a scale that do not fit, TypeError for dtypes and for a causal that is
    not a bool.
    Source: Dao 2023, algorithm 1 (queries in the outer loop, keys in the inner one).
    """
    group, causal, block_q, block_k, scale = _check(q, k, v, causal, block_q, block_k, scale)
    q_heads = _by_key_head(q, group)  # (B·h_kv, g, n, d_k)
    k_heads, v_heads = _flat(k), _flat(v)  # (B·h_kv, m, d_k) and (B·h_kv, m, d_v)
    n_queries, n_keys = q.shape[-2], k.shape[-2]
    o = q_heads.new_zeros((*q_heads.shape[:-1], v.shape[-1]))  # (B·h_kv, g, n, d_v)
    lse = _wide(q_heads[..., :0]).new_full(q_heads.shape[:-1], -torch.inf)  # (B·h_kv, g, n)
    for queries in query_blocks(n_queries, n_keys, block_q, causal):
        q_block = _rows(q_heads, queries) * scale  # (B·h_kv, g·block_q, d_k)
        m, l, acc = nothing(q_block.shape[:-1], v.shape[-1], q_block)
        for keys, on_diagonal in key_blocks(queries, n_queries, n_keys, block_k, causal):
            s = q_block @ _wide(k_heads[:, keys]).mT  # (B·h_kv, g·block_q, block_k)
            if on_diagonal:
                mask_tile(s, queries, keys, n_queries, n_keys)
            m_new = torch.maximum(m, s.amax(dim=-1))  # finite from the first block on: every query here sees key 0
            p = s.sub_(m_new[..., None]).exp_()  # in place: the steps of `absorb`, with no new tensor for each
            rescale = m.sub_(m_new).exp_()
            l = l.mul_(rescale).add_(p.sum(dim=-1))
            acc = acc.mul_(rescale[..., None]).baddbmm_(p, _wide(v_heads[:, keys]))  # acc · rescale + p v
            m = m_new
        o[:, :, queries] = (acc / l[..., None]).unflatten(1, (group, -1)).to(o.dtype)  # (B·h_kv, g, block_q, d_v)
        lse[:, :, queries] = (m + l.log()).unflatten(1, (group, -1))  # (B·h_kv, g, block_q)
    return o.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1])  # (…, h, n, d_v) and (…, h, n)


def query_blocks(n: int, m: int, block_q: int, causal: bool = False) -> Iterator[slice]:
    """Slices of the n queries, block_q at a time. Those that see none of the m keys are in no block."""
    first = max(0, n - m) if causal else 0
    for start in range(first, n if m else 0, block_q):
        yield slice(start, min(start + block_q, n))


def key_blocks(queries: slice, n: int, m: int, block_k: int, causal: bool = False) -> Iterator[tuple[slice, bool]]:
    """For one block of queries, the slices of keys to visit, each with whether the causal diagonal runs through it.

    Keys ahead of the block's last query are in no slice. Query i sees keys 0 to i + m − n.
    """
    visible = queries.stop + m - n if causal else m
    seen_by_all = queries.start + m - n + 1 if causal else m
    for start in range(0, visible, block_k):
        keys = slice(start, min(start + block_k, visible))
        yield keys, keys.stop > seen_by_all


def mask_tile(s: Tensor, queries: slice, keys: slice, n: int, m: int) -> None:
    """Write −inf into the scores (…, g·block_q, block_k) of one tile, where the key is ahead of what the query sees."""
    last_seen = torch.arange(queries.start, queries.stop, device=s.device) + m - n
    ahead = torch.arange(keys.start, keys.stop, device=s.device) > last_seen[:, None]  # (block_q, block_k)
    s.unflatten(-2, (-1, len(ahead))).masked_fill_(ahead, -torch.inf)  # (…, g, block_q, block_k)


# --- backward -------------------------------------------------------------------------------------------------------


@torch.no_grad()
@_in_its_own_dtypes
def backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    do: Tensor,
    causal: bool = False,
    block_q: int = 64,
    block_k: int = 64,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients (dq, dk, dv) from the gradient do of the output: the weights are computed again, e^(score − lse).

    q, k, v and the options are those given to `forward`, o and lse what it returned; do is (…, h, n, d_v). Each
    gradient has the shape and dtype of its input; sums are float32, or float64 for float64. Raises as `forward` does.
    Source: Dao et al. 2022, appendix B.2 and algorithm 4, with the loops of `forward`.
    """
    group, causal, block_q, block_k, scale = _check(q, k, v, causal, block_q, block_k, scale)
    _check_saved(q, v, o, lse, do)
    k_heads, v_heads = _flat(k), _flat(v)  # (B·h_kv, m, d_k) and (B·h_kv, m, d_v)
    # Each (B·h_kv, g, n, …): the last axis is d_k for q, d_v for o and do, 1 for lse.
    q_heads, o_heads, lse_heads, do_heads = (_by_key_head(x, group) for x in (q, o, lse[..., None], do))
    n_queries, n_keys = q.shape[-2], k.shape[-2]
    dq = torch.zeros_like(q_heads)
    dk, dv = (torch.zeros_like(_wide(x)) for x in (k_heads, v_heads))
    for queries in query_blocks(n_queries, n_keys, block_q, causal):
        q_block = _rows(q_heads, queries) * scale  # (B·h_kv, g·block_q, d_k)
        do_block = _rows(do_heads, queries)  # (B·h_kv, g·block_q, d_v)
        delta = (do_block * _rows(o_heads, queries)).sum(dim=-1, keepdim=True)  # (B·h_kv, g·block_q, 1)
        dq_block = torch.zeros_like(q_block)
        for keys, on_diagonal in key_blocks(queries, n_queries, n_keys, block_k, causal):
            k_block, v_block = _wide(k_heads[:, keys]), _wide(v_heads[:, keys])
            s = q_block @ k_block.mT  # (B·h_kv, g·block_q, block_k)
            if on_diagonal:
                mask_tile(s, queries, keys, n_queries, n_keys)
            p = s.sub_(_rows(lse_heads, queries)).exp_()
            dv[:, keys] += p.mT @ do_block
            ds = (do_block @ v_block.mT).sub_(delta).mul_(p)  # dp − delta, times p: the softmax Jacobian
            dq_block.baddbmm_(ds, k_block)
            dk[:, keys] += ds.mT @ q_block  # q_block is scaled already
        dq[:, :, queries] = (dq_block * scale).unflatten(1, (group, -1)).to(dq.dtype)  # (B·h_kv, g, block_q, d_k)
    dk, dv = dk.to(k.dtype).reshape(k.shape), dv.to(v.dtype).reshape(v.shape)  # (…, h_kv, m, d_k) and (…, h_kv, m, d_v)
    return dq.reshape(q.shape), dk, dv  # (…, h, n, d_k)


# --- autograd -------------------------------------------------------------------------------------------------------


def tiled_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    block_q: int = 64,
    block_k: int = 64,
    scale: float | None = None,
) -> Tensor:
    """Tiled attention that autograd can differentiate (once): the output of `forward`, with `backward` behind it."""
    return TiledAttention.apply(q, k, v, causal, block_q, block_k, scale)


class TiledAttention(torch.autograd.Function):
    """Keeps q, k, v, o and lse for the backward pass: no weights, so memory stays linear in n and m."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, block_q: int, block_k: int, scale: float | None
    ) -> Tensor:
        o, lse = forward(q, k, v, causal, block_q, block_k, scale)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = causal, block_q, block_k, scale
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, do: Tensor) -> tuple[Tensor | None, ...]:
        return *backward(*ctx.saved_tensors, do, *ctx.options), None, None, None, None


# --- shapes and types -----------------------------------------------------------------------------------------------


def _by_key_head(x: Tensor, group: int) -> Tensor:
    """(…, h, n, d) with the g query heads that share a key head side by side."""
    return x.reshape(math.prod(x.shape[:-2]) // group, group, *x.shape[-2:])  # (B·h_kv, g, n, d)


def _flat(x: Tensor) -> Tensor:
    """(…, h_kv, m, d) with one axis for all key heads."""
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])  # (B·h_kv, m, d)


def _rows(x: Tensor, queries: slice) -> Tensor:
    """One block of queries; those of heads that share keys become rows of one matrix."""
    return _wide(x[:, :, queries]).flatten(1, 2)  # (B·h_kv, g·block_q, d)


def _wide(x: Tensor) -> Tensor:
    """Half precision and integers as float32; float32 and float64 as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _check(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, block_q: int, block_k: int, scale: float | None
) -> tuple[int, bool, int, int, float]:
    """The number of query heads for each key head, and the options as to be used; errors for what does not fit."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not x.dtype.is_floating_point:
            raise TypeError(f"{name} is {x.dtype}: tiled attention takes floating tensors")
        if x.dtype != q.dtype:
            raise TypeError(f"{name} is {x.dtype} but q is {q.dtype}: convert them to one dtype")
    group = check_grouped(tuple(q.shape), tuple(k.shape), tuple(v.shape))
    block_q, block_k = whole("block_q", block_q), whole("block_k", block_k)
    return group, check_causal(causal), block_q, block_k, check_scale(scale, q.shape[-1])


def _check_saved(q: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor) -> None:
    output = (*q.shape[:-1], v.shape[-1])
    for name, x, expected in (("o", o, output), ("lse", lse, tuple(q.shape[:-1])), ("do", do, output)):
        if tuple(x.shape) != expected:
            raise ValueError(f"{name} is {tuple(x.shape)} but q, k and v give {expected}: pass what forward returned")


def _check_values(scores: Tensor, v: Tensor) -> None:
    """ValueError unless scores (…, m) and v (…, m, d_v) can be multiplied."""
    shapes = f"scores are {tuple(scores.shape)} and v is {tuple(v.shape)}"
    if scores.ndim < 1 or v.ndim < 2 or scores.shape[-1] != v.shape[-2]:
        raise ValueError(f"{shapes}: one value for each key, so (…, m) and (…, m, d_v)")
    try:
        np.broadcast_shapes(scores.shape[:-2], v.shape[:-2])
    except ValueError:
        raise ValueError(f"{shapes}: their leading axes must be equal, or 1, or absent") from None


def _three(name: str, partial: Partial) -> Partial:
    """A Partial, of one or of a plain (m, l, o)."""
    if not isinstance(partial, (tuple, list)) or len(partial) != 3:
        size = f" of {len(partial)}" if isinstance(partial, (tuple, list)) else ""
        kind = type(partial).__name__
        raise TypeError(f"{name} is a {kind}{size}: give a Partial, (m, l, o), from before `finish` divides")
    return Partial(*partial)
