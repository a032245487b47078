"""The backward of FlashAttention in Triton: weights are made again from the saved log-sum-exp, tile by tile.

Three kernels: delta, one number a query; dQ, a block of queries against its keys; dK and dV, a block of keys against
its queries. No two programs write to one place, so gradients are the same in every run.

Sources: Dao et al. 2022 (FlashAttention), algorithm 4; Dao 2023 (FlashAttention-2), algorithm 2.
"""

import torch

from course_utils.attention.triton_setup import LN_2, LOG2_E, config, padded, tiles, tl, triton, tuned

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


def backward(q, k, v, o, lse, do, d_lse, causal, scale):
    """Gradients of q, k and v from those of the output (B, h, n, d_head) and of the log-sum-exp (B, h, n)."""
    B, h, n, d = q.shape
    h_kv, m = k.shape[1:3]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    if 0 in (B, h, n, m):
        return dq.zero_(), dk.zero_(), dv.zero_()
    by_queries = lambda meta: (triton.cdiv(n, meta["BLOCK_Q"]), h, B)  # noqa: E731
    by_keys = lambda meta: (triton.cdiv(m, meta["BLOCK_K"]), h_kv, B)  # noqa: E731

    delta = torch.empty_like(lse)
    blocks = triton.cdiv(n, 64), h, B
    delta_kernel[blocks](tiles(o, 64), tiles(do, 64), d_lse, delta, n, D=padded(d), BLOCK_Q=64)
    given = tiles(q), tiles(k), tiles(v), tiles(do)
    sizes = lse, delta, n, m, h // h_kv, scale * LOG2_E.value
    run = tuned(d_queries_kernel, D_QUERIES, q, causal, max(n, m))
    run[by_queries](*given, tiles(dq), *sizes, CAUSAL=causal, D=padded(d), enable_fp_fusion=True)
    run = tuned(d_keys_values_kernel, D_KEYS_VALUES, q, causal, max(n, m))
    run[by_keys](*given, tiles(dk), tiles(dv), *sizes, CAUSAL=causal, D=padded(d), enable_fp_fusion=True)
    return dq, dk, dv


@triton.jit
def delta_kernel(outputs, d_outputs, d_lse, delta, n_queries, D: tl.constexpr, BLOCK_Q: tl.constexpr):
    """delta = rowsum(dO ∘ O) − dLSE for one block of queries: what every score of a row gets less in the backward."""
    i, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    o = outputs.load([batch, head, i * BLOCK_Q, 0]).reshape(BLOCK_Q, D).to(tl.float32)
    do = d_outputs.load([batch, head, i * BLOCK_Q, 0]).reshape(BLOCK_Q, D).to(tl.float32)
    rows = i * BLOCK_Q + tl.arange(0, BLOCK_Q)
    at = (batch * tl.num_programs(1) + head).to(tl.int64) * n_queries + rows
    lost = tl.sum(o * do, 1) - tl.load(d_lse + at, mask=rows < n_queries, other=0.0)
    tl.store(delta + at, lost, mask=rows < n_queries)


@triton.jit
def d_queries_kernel(
    queries, keys, values, d_outputs, d_queries, lse, delta, n_queries, n_keys, group, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """dQ of one block of queries: the forward's loop over keys again, with the weights made anew from lse."""
    i = tl.num_programs(0) - 1 - tl.program_id(0)
    head, batch = tl.program_id(1), tl.program_id(2)
    rows = i * BLOCK_Q + tl.arange(0, BLOCK_Q)
    q = queries.load([batch, head, i * BLOCK_Q, 0]).reshape(BLOCK_Q, D)
    do = d_outputs.load([batch, head, i * BLOCK_Q, 0]).reshape(BLOCK_Q, D)
    at = (batch * tl.num_programs(1) + head).to(tl.int64) * n_queries + rows
    row_lse = tl.load(lse + at, mask=rows < n_queries, other=0.0) * LOG2_E
    row_delta = tl.load(delta + at, mask=rows < n_queries, other=0.0)

    if CAUSAL:
        last = rows + n_keys - n_queries
        seen = i * BLOCK_Q + n_keys - n_queries + 1  # how many keys the first row sees
        unmasked, stop = seen, tl.minimum(seen + BLOCK_Q - 1, n_keys)
    else:
        last = tl.zeros_like(rows) + n_keys - 1
        unmasked, stop = n_keys, n_keys
    unmasked = tl.maximum(unmasked, 0) // BLOCK_K * BLOCK_K

    dq = tl.zeros([BLOCK_Q, D], tl.float32)
    dq = _add_to_dq(
        dq, q, do, row_lse, row_delta, keys, values, batch, head // group,
        0, unmasked, last, scale, False, D, BLOCK_K,
    )  # fmt: skip
    dq = _add_to_dq(
        dq, q, do, row_lse, row_delta, keys, values, batch, head // group,
        unmasked, stop, last, scale, True, D, BLOCK_K,
    )  # fmt: skip
    # The scores were in powers of two: scale holds log2 e, which ln 2 takes out again.
    dq = (dq * (scale * LN_2)).to(d_queries.dtype)
    d_queries.store([batch, head, i * BLOCK_Q, 0], dq.reshape(1, 1, BLOCK_Q, D))


@triton.jit
def _add_to_dq(
    dq, q, do, row_lse, row_delta, keys, values, batch, head, start, stop, last, scale,
    MASKED: tl.constexpr, D: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Go through the keys from start to stop and add up dS K."""
    for j in tl.range(start, stop, BLOCK_K):
        k = keys.load([batch, head, j, 0]).reshape(BLOCK_K, D)
        v = values.load([batch, head, j, 0]).reshape(BLOCK_K, D)
        s = tl.dot(q, k.T, input_precision="ieee") * scale - row_lse[:, None]  # (BLOCK_Q, BLOCK_K)
        if MASKED:
            columns = j + tl.arange(0, BLOCK_K)
            s = tl.where(columns[None, :] <= last[:, None], s, float("-inf"))
        p = tl.exp2(s)
        dp = tl.dot(do, v.T, input_precision="ieee")  # (BLOCK_Q, BLOCK_K)
        ds = p * (dp - row_delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")  # (BLOCK_Q, D)
    return dq


@triton.jit
def d_keys_values_kernel(
    queries, keys, values, d_outputs, d_keys, d_values, lse, delta, n_queries, n_keys, group, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """dK and dV of one block of keys: a loop over the queries that see it, in each query head of its group.

    Scores are held transposed, keys down and queries across, so that Pᵀ and dSᵀ come out ready to multiply.
    """
    j, kv_head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    columns = j * BLOCK_K + tl.arange(0, BLOCK_K)
    k = keys.load([batch, kv_head, j * BLOCK_K, 0]).reshape(BLOCK_K, D)
    v = values.load([batch, kv_head, j * BLOCK_K, 0]).reshape(BLOCK_K, D)

    # Queries before `first` see none of these keys; from `unmasked` on they see all of them.
    if CAUSAL:
        seen = columns - (n_keys - n_queries)  # the first query that sees each key
        first = tl.maximum(j * BLOCK_K - (n_keys - n_queries), 0) // BLOCK_Q * BLOCK_Q
        unmasked = tl.cdiv(tl.maximum((j + 1) * BLOCK_K - 1 - (n_keys - n_queries), 0), BLOCK_Q) * BLOCK_Q
    else:
        seen = tl.zeros_like(columns)
        first, unmasked = 0, 0

    dk = tl.zeros([BLOCK_K, D], tl.float32)
    dv = tl.zeros([BLOCK_K, D], tl.float32)
    for head in range(kv_head * group, (kv_head + 1) * group):
        row = (batch * tl.num_programs(1) * group + head).to(tl.int64) * n_queries
        if CAUSAL:
            dk, dv = _add_to_dk_dv(
                dk, dv, k, v, queries, d_outputs, lse + row, delta + row, batch, head,
                first, tl.minimum(unmasked, n_queries), n_queries, seen, scale, True, D, BLOCK_Q,
            )  # fmt: skip
        dk, dv = _add_to_dk_dv(
            dk, dv, k, v, queries, d_outputs, lse + row, delta + row, batch, head,
            unmasked, n_queries, n_queries, seen, scale, False, D, BLOCK_Q,
        )  # fmt: skip

    dk = (dk * (scale * LN_2)).to(d_keys.dtype)
    d_keys.store([batch, kv_head, j * BLOCK_K, 0], dk.reshape(1, 1, BLOCK_K, D))
    d_values.store([batch, kv_head, j * BLOCK_K, 0], dv.to(d_values.dtype).reshape(1, 1, BLOCK_K, D))


@triton.jit
def _add_to_dk_dv(
    dk, dv, k, v, queries, d_outputs, lse, delta, batch, head, start, stop, n_queries, seen, scale,
    MASKED: tl.constexpr, D: tl.constexpr, BLOCK_Q: tl.constexpr,
):  # fmt: skip
    """Go through the queries from start to stop and add up dSᵀ Q and Pᵀ dO."""
    for i in tl.range(start, stop, BLOCK_Q):
        rows = i + tl.arange(0, BLOCK_Q)
        q = queries.load([batch, head, i, 0]).reshape(BLOCK_Q, D)
        do = d_outputs.load([batch, head, i, 0]).reshape(BLOCK_Q, D)
        row_lse = tl.load(lse + rows, mask=rows < n_queries, other=0.0) * LOG2_E
        row_delta = tl.load(delta + rows, mask=rows < n_queries, other=0.0)
        s = tl.dot(k, q.T, input_precision="ieee") * scale - row_lse[None, :]  # (BLOCK_K, BLOCK_Q)
        if MASKED:
            s = tl.where(seen[:, None] <= rows[None, :], s, float("-inf"))
        p = tl.exp2(s)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")  # (BLOCK_K, D)
        dp = tl.dot(v, do.T, input_precision="ieee")  # (BLOCK_K, BLOCK_Q)
        ds = p * (dp - row_delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")  # (BLOCK_K, D)
    return dk, dv
