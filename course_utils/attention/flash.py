"""FlashAttention in Triton: exact attention that never writes the scores to memory.

The forward kernel is the loop of `tiled.forward` for one block of queries, and the part to read first. Its backward is
in `flash_backward.py`. Without a GPU the same kernels run in Triton's interpreter: the same numbers, slowly.

Sources: Dao et al. 2022 (FlashAttention), algorithm 1; Dao 2023 (FlashAttention-2), algorithm 1.
"""

from typing import Any

import torch
from torch import Tensor

from course_utils.attention.flash_backward import backward
from course_utils.attention.shapes import check_causal, check_scale
from course_utils.attention.triton_setup import (
    LN_2,
    LOG2_E,
    check_inputs,
    config,
    keys_to_visit,
    launch_lock,
    pad_d_head,
    positive_scale,
    readable,
    situation,
    tiles,
    tl,
    triton,
    tune,
)

# Stands for "no score yet". With −inf, a row that sees no key would compute −inf − (−inf), which is NaN.
LOWEST = tl.constexpr(-1e38)

# Rows of queries, rows of keys, warps, stages, most registers: what is tried on a GPU, by head dimension.
SMALL = config(64, 32, 4, 2)  # fits into the smaller on-chip memory of desktop cards
FORWARD = {
    64: [
        config(128, 64, 8, 3),
        config(128, 128, 8, 2),
        config(128, 128, 8, 3),
        config(64, 64, 4, 3),
        config(64, 128, 4, 2),
        SMALL,
    ],
    128: [
        config(128, 64, 8, 2, registers=128),  # few enough that two programs share a processor: exps beside products
        config(128, 64, 8, 3),
        config(128, 128, 8, 2),
        config(128, 128, 8, 3),  # 230,400 bytes of on-chip memory, nearly all that a Hopper card has
        config(64, 64, 4, 3),
        config(64, 128, 4, 2),
        SMALL,
    ],
    256: [config(128, 64, 8, 2), config(64, 64, 4, 2), config(128, 32, 8, 2), SMALL],
    torch.float32: [config(32, 32, 8, 1), config(16, 32, 8, 1)],
}


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None, return_lse: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention without the (n, m) matrix in memory: softmax(q kᵀ · scale) v, tile by tile, differentiable once.

    q is (B, h, n, d_head), k and v are (B, h_kv, m, d_head): float16, bfloat16 or float32, on a GPU (or on the CPU in
    Triton's interpreter, without bfloat16). d_head is a multiple of 8 from 16 to 256; h is a multiple of h_kv, and
    query head i reads key head i // (h / h_kv). Any strides. causal: the last query sees the last key, each one before
    it one key less. scale is 1/√d_head when left out. Returns the output (B, h, n, d_head) in q's dtype, with
    return_lse also the log-sum-exp of each row (B, h, n) in float32. A query that sees no key gets zeros and −inf.
    Raises ValueError for shapes and scales that do not fit, TypeError for dtypes, RuntimeError for the wrong device.
    Source: Dao 2023, FlashAttention-2, algorithms 1 and 2.
    """
    check_inputs(q, k, v)
    causal = check_causal(causal)
    q, scale = positive_scale(q, check_scale(scale, q.shape[-1]))
    output, lse = FlashAttention.apply(q, k, v, causal, scale)
    return (output, lse) if return_lse else output


class FlashAttention(torch.autograd.Function):
    """The kernels as one differentiable operation. Use `flash_attention`, which checks what it is given."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
        q, k, v = readable(q), readable(k), readable(v)
        o, lse = forward(q, k, v, causal, scale)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal = causal
        ctx.scale = scale
        return o, lse

    @staticmethod
    def backward(ctx: Any, do: Tensor, d_lse: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError("flash_attention has a first derivative only: use tensors.attention for a second one")
        q, k, v, o, lse = ctx.saved_tensors
        gradients = backward(q, k, v, o, lse, readable(do), d_lse.contiguous(), ctx.causal, ctx.scale)
        return *gradients, None, None


def forward(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Launch the forward kernel: output (B, h, n, d_head) and log-sum-exp (B, h, n)."""
    B, h, n, d = q.shape
    h_kv, n_keys = k.shape[1:3]
    o = torch.empty_like(q)
    lse = q.new_empty(B, h, n, dtype=torch.float32)
    if 0 in (B, h, n, n_keys):  # nothing to attend from, or nothing to attend to
        return o.zero_(), lse.fill_(-torch.inf)
    blocks = lambda meta: (triton.cdiv(n, meta["BLOCK_Q"]), h, B)  # noqa: E731
    run = tune(forward_kernel, FORWARD, q)
    tensors = tiles(q), tiles(k), tiles(v), tiles(o)
    numbers = n, n_keys, h // h_kv, scale * LOG2_E.value
    options = {
        "CAUSAL": causal,
        "D_HEAD": pad_d_head(d),
        "enable_fp_fusion": True,
        "situation": situation(q, k, causal),
    }
    with launch_lock(q):
        run[blocks](*tensors, lse, *numbers, **options)
    return o, lse


@triton.jit
def forward_kernel(
    queries, keys, values, outputs, lse, n_queries, n_keys, group, scale_log2,
    CAUSAL: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One block of queries against all the keys it may see.

    queries, keys, values, outputs are tensor descriptors: they know sizes and strides, read zeros past the end and
    write nothing there. `group` query heads read one key head. lse (B, h, n) is a pointer. D_HEAD is d_head,
    padded to a power of two. m, l and acc are those of tiled.forward.
    """
    i = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_Q  # its first row; the longest start first
    head, batch = tl.program_id(1), tl.program_id(2)
    q = queries.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD)  # (BLOCK_Q, D_HEAD)
    last, unmasked, stop = keys_to_visit(i, n_queries, n_keys, CAUSAL, BLOCK_Q, BLOCK_K)

    acc = tl.zeros([BLOCK_Q, D_HEAD], tl.float32)
    l = tl.zeros([BLOCK_Q], tl.float32)
    m = tl.full([BLOCK_Q], LOWEST, tl.float32)
    kv_head = head // group
    acc, l, m = attend_to_keys(
        acc, l, m, q, keys, values, batch, kv_head, 0, unmasked, last, scale_log2, False, D_HEAD, BLOCK_K
    )
    acc, l, m = attend_to_keys(
        acc, l, m, q, keys, values, batch, kv_head, unmasked, stop, last, scale_log2, True, D_HEAD, BLOCK_K
    )

    nothing = l == 0  # a row that may see no key gets zeros, and log 0
    l = tl.where(nothing, 1.0, l)
    out = (acc * (1 / l)[:, None]).to(outputs.dtype)
    outputs.store([batch, head, i, 0], out.reshape(1, 1, BLOCK_Q, D_HEAD))
    row_lse = tl.where(nothing, float("-inf"), (m + tl.log2(l)) * LN_2)  # from powers of two to powers of e
    rows = i + tl.arange(0, BLOCK_Q)
    at = (batch * tl.num_programs(1) + head).to(tl.int64) * n_queries + rows
    tl.store(lse + at, row_lse, mask=rows < n_queries)


@triton.jit
def attend_to_keys(
    acc, l, m, q, keys, values, batch, head, start, stop, last, scale_log2,
    MASKED: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Go through the keys from start to stop, a block at a time, with online softmax in powers of two.

    The hardware has 2^x, and e^s = 2^(s log2 e): scale_log2 is the scale times log2 e, and m counts in its units.
    """
    for j in tl.range(start, stop, BLOCK_K):
        k = keys.load([batch, head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
        s = tl.dot(q, k.T, input_precision="ieee")  # (BLOCK_Q, BLOCK_K)
        if MASKED:
            columns = j + tl.arange(0, BLOCK_K)
            s = tl.where(columns[None, :] <= last[:, None], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1) * scale_log2)
        p = tl.exp2(s * scale_log2 - m_new[:, None])  # (BLOCK_Q, BLOCK_K), at most 1
        rescale = tl.exp2(m - m_new)  # what has been summed so far was relative to the old m
        l = l * rescale + tl.sum(p, 1)
        v = values.load([batch, head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")  # (BLOCK_Q, D_HEAD)
        m = m_new
    return acc, l, m
