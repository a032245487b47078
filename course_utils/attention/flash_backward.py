"""The backward of FlashAttention in Triton: weights are made again from the saved log-sum-exp, tile by tile.

Three kernels: delta, one number a query; dQ, a block of queries against its keys; dK and dV, a block of keys against
its queries. No two programs write to one place, so gradients are the same in every run.

Sources: Dao et al. 2022 (FlashAttention), algorithm 4; Dao 2023 (FlashAttention-2), algorithm 2.
"""

import torch
from torch import Tensor

from course_utils.attention.triton_setup import (
    LN_2,
    LOG2_E,
    config,
    keys_to_visit,
    launch_lock,
    pad_d_head,
    situation,
    tiles,
    tl,
    triton,
    tune,
)

SMALL = config(32, 32, 4, 1)
D_QUERIES = {
    64: [config(128, 64, 8, 2), config(128, 128, 8, 2), config(64, 64, 4, 3), SMALL],
    128: [config(128, 64, 8, 2), config(64, 64, 4, 2), config(128, 32, 8, 2), SMALL],
    256: [config(64, 32, 4, 2), config(64, 64, 8, 2), SMALL],
    torch.float32: [config(32, 32, 8, 1), config(32, 16, 8, 1)],
}
D_KEYS_VALUES = {
    64: [config(64, 128, 8, 2), config(64, 128, 8, 3), config(64, 64, 4, 2), config(32, 128, 8, 2, 128), SMALL],
    128: [config(64, 128, 8, 2), config(32, 128, 8, 2), config(64, 64, 4, 2), config(64, 64, 8, 2), SMALL],
    256: [config(32, 64, 8, 2), SMALL],
    torch.float32: [config(32, 16, 8, 1), config(32, 32, 8, 1)],
}


def backward(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor, d_lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v from those of the output (B, h, n, d_head) and of the log-sum-exp (B, h, n)."""
    B, h, n, d = q.shape
    h_kv, n_keys = k.shape[1:3]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    if 0 in (B, h, n, n_keys):
        return dq.zero_(), dk.zero_(), dv.zero_()
    by_queries = lambda meta: (triton.cdiv(n, meta["BLOCK_Q"]), h, B)  # noqa: E731
    by_keys = lambda meta: (triton.cdiv(n_keys, meta["BLOCK_K"]), h_kv, B)  # noqa: E731

    delta = torch.empty_like(lse)
    inputs = tiles(q), tiles(k), tiles(v), tiles(do)
    rest = lse, delta, n, n_keys, h // h_kv, scale * LOG2_E.value
    options = {
        "CAUSAL": causal,
        "D_HEAD": pad_d_head(d),
        "enable_fp_fusion": True,
        "situation": situation(q, k, causal),
    }
    with launch_lock(q):
        blocks = triton.cdiv(n, 64), h, B
        delta_kernel[blocks](tiles(o, 64), tiles(do, 64), d_lse, delta, n, D_HEAD=pad_d_head(d), BLOCK_Q=64)
        run = tune(d_queries_kernel, D_QUERIES, q)
        run[by_queries](*inputs, tiles(dq), *rest, **options)
        run = tune(d_keys_values_kernel, D_KEYS_VALUES, q)
        run[by_keys](*inputs, tiles(dk), tiles(dv), *rest, **options)
    return dq, dk, dv


@triton.jit
def delta_kernel(outputs, d_outputs, d_lse, delta, n_queries, D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr):
    """delta = rowsum(dO ∘ O) − dLSE for one block of queries: the number that every dP of the row has subtracted."""
    i, head, batch = tl.program_id(0) * BLOCK_Q, tl.program_id(1), tl.program_id(2)
    o = outputs.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD).to(tl.float32)  # (BLOCK_Q, D_HEAD)
    do = d_outputs.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD).to(tl.float32)  # (BLOCK_Q, D_HEAD)
    rows = i + tl.arange(0, BLOCK_Q)
    at = (batch * tl.num_programs(1) + head).to(tl.int64) * n_queries + rows
    row_delta = tl.sum(o * do, 1) - tl.load(d_lse + at, mask=rows < n_queries, other=0.0)
    tl.store(delta + at, row_delta, mask=rows < n_queries)


@triton.jit
def d_queries_kernel(
    queries, keys, values, d_outputs, d_queries, lse, delta, n_queries, n_keys, group, scale_log2,
    CAUSAL: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """dQ of one block of queries: the forward's loop over keys again, with the weights made anew from lse."""
    i = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_Q
    head, batch = tl.program_id(1), tl.program_id(2)
    q = queries.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD)  # (BLOCK_Q, D_HEAD)
    do = d_outputs.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD)  # (BLOCK_Q, D_HEAD)
    rows = i + tl.arange(0, BLOCK_Q)
    at = (batch * tl.num_programs(1) + head).to(tl.int64) * n_queries + rows
    row_lse = tl.load(lse + at, mask=rows < n_queries, other=0.0) * LOG2_E
    row_delta = tl.load(delta + at, mask=rows < n_queries, other=0.0)
    last, unmasked, stop = keys_to_visit(i, n_queries, n_keys, CAUSAL, BLOCK_Q, BLOCK_K)

    dq = tl.zeros([BLOCK_Q, D_HEAD], tl.float32)
    kv_head = head // group
    dq = add_to_dq(
        dq, q, do, row_lse, row_delta, keys, values, batch, kv_head,
        0, unmasked, last, scale_log2, False, D_HEAD, BLOCK_K,
    )  # fmt: skip
    dq = add_to_dq(
        dq, q, do, row_lse, row_delta, keys, values, batch, kv_head,
        unmasked, stop, last, scale_log2, True, D_HEAD, BLOCK_K,
    )  # fmt: skip
    dq = (dq * (scale_log2 * LN_2)).to(d_queries.dtype)  # ln 2 takes the log2 e out again
    d_queries.store([batch, head, i, 0], dq.reshape(1, 1, BLOCK_Q, D_HEAD))


@triton.jit
def add_to_dq(
    dq, q, do, row_lse, row_delta, keys, values, batch, head, start, stop, last, scale_log2,
    MASKED: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Go through the keys from start to stop and add up dS K."""
    for j in tl.range(start, stop, BLOCK_K):
        k = keys.load([batch, head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
        v = values.load([batch, head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
        s = tl.dot(q, k.T, input_precision="ieee") * scale_log2 - row_lse[:, None]  # (BLOCK_Q, BLOCK_K)
        if MASKED:
            columns = j + tl.arange(0, BLOCK_K)
            s = tl.where(columns[None, :] <= last[:, None], s, float("-inf"))
        p = tl.exp2(s)
        dp = tl.dot(do, v.T, input_precision="ieee")  # (BLOCK_Q, BLOCK_K)
        ds = p * (dp - row_delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")  # (BLOCK_Q, D_HEAD)
    return dq


@triton.jit
def d_keys_values_kernel(
    queries, keys, values, d_outputs, d_keys, d_values, lse, delta, n_queries, n_keys, group, scale_log2,
    CAUSAL: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """dK and dV of one block of keys: a loop over the queries that see it, in each query head of its group.

    Scores are held transposed, keys down and queries across, so that Pᵀ and dSᵀ come out ready to multiply.
    """
    j, kv_head, batch = tl.program_id(0) * BLOCK_K, tl.program_id(1), tl.program_id(2)
    k = keys.load([batch, kv_head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
    v = values.load([batch, kv_head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)

    # Queries before `start` see none of these keys; from `unmasked` on they see all of them.
    first_query = j + tl.arange(0, BLOCK_K) - (n_keys - n_queries)  # the first query that sees each key
    start, unmasked = 0, 0
    if CAUSAL:
        start = tl.maximum(j - (n_keys - n_queries), 0) // BLOCK_Q * BLOCK_Q
        unmasked = tl.cdiv(tl.maximum(j + BLOCK_K - 1 - (n_keys - n_queries), 0), BLOCK_Q) * BLOCK_Q

    dk = tl.zeros([BLOCK_K, D_HEAD], tl.float32)
    dv = tl.zeros([BLOCK_K, D_HEAD], tl.float32)
    for head in range(kv_head * group, (kv_head + 1) * group):
        row = (batch * tl.num_programs(1) * group + head).to(tl.int64) * n_queries
        if CAUSAL:
            dk, dv = add_to_dk_dv(
                dk, dv, k, v, queries, d_outputs, lse + row, delta + row, batch, head,
                start, tl.minimum(unmasked, n_queries), n_queries, first_query, scale_log2, True, D_HEAD, BLOCK_Q,
            )  # fmt: skip
        dk, dv = add_to_dk_dv(
            dk, dv, k, v, queries, d_outputs, lse + row, delta + row, batch, head,
            unmasked, n_queries, n_queries, first_query, scale_log2, False, D_HEAD, BLOCK_Q,
        )  # fmt: skip

    dk = (dk * (scale_log2 * LN_2)).to(d_keys.dtype)
    d_keys.store([batch, kv_head, j, 0], dk.reshape(1, 1, BLOCK_K, D_HEAD))
    d_values.store([batch, kv_head, j, 0], dv.to(d_values.dtype).reshape(1, 1, BLOCK_K, D_HEAD))


@triton.jit
def add_to_dk_dv(
    dk, dv, k, v, queries, d_outputs, lse, delta, batch, head, start, stop, n_queries, first_query, scale_log2,
    MASKED: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr,
):  # fmt: skip
    """Go through the queries from start to stop and add up dSᵀ Q and Pᵀ dO."""
    for i in tl.range(start, stop, BLOCK_Q):
        rows = i + tl.arange(0, BLOCK_Q)
        q = queries.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD)  # (BLOCK_Q, D_HEAD)
        do = d_outputs.load([batch, head, i, 0]).reshape(BLOCK_Q, D_HEAD)  # (BLOCK_Q, D_HEAD)
        row_lse = tl.load(lse + rows, mask=rows < n_queries, other=0.0) * LOG2_E
        row_delta = tl.load(delta + rows, mask=rows < n_queries, other=0.0)
        s = tl.dot(k, q.T, input_precision="ieee") * scale_log2 - row_lse[None, :]  # (BLOCK_K, BLOCK_Q)
        if MASKED:
            s = tl.where(first_query[:, None] <= rows[None, :], s, float("-inf"))
        p = tl.exp2(s)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")  # (BLOCK_K, D_HEAD)
        dp = tl.dot(v, do.T, input_precision="ieee")  # (BLOCK_K, BLOCK_Q)
        ds = p * (dp - row_delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")  # (BLOCK_K, D_HEAD)
    return dk, dv
