"""Attention while decoding, in Triton: a few new queries against a long cache, whose keys are split among programs.

With one new query a sequence, `flash_attention` runs one program a head, and most of the card stands idle. So the keys
are cut into parts, each part gathers a Partial (m, l, o) as in `tiled`, and a second kernel merges them. The query
heads of a group become rows of one tile, so their keys are read once.

Source: Dao, Haziza, Massa, Sizov 2023, Flash-Decoding for long-context inference.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.attention.flash import LOWEST
from course_utils.attention.shapes import check_causal, check_scale, whole
from course_utils.attention.tiled import Partial
from course_utils.attention.triton_setup import (
    LN_2,
    LOG2_E,
    check_inputs,
    config,
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

MAX_ROWS = 64  # of queries times heads in a group; with more, the parts are no longer bound by reading keys
MIN_PART_KEYS = 128  # keys; a part that is shorter takes longer to merge than it saves
PROCESSORS = 132  # what the interpreter pretends to have: a Hopper card

# Rows of keys, warps, stages: what is tried on a GPU, by head dimension. A part mostly waits for keys.
PARTS = {
    64: [config(None, 128, 4, 3), config(None, 64, 4, 4), config(None, 64, 4, 2)],
    128: [config(None, 64, 4, 3), config(None, 128, 8, 3), config(None, 64, 4, 2), config(None, 32, 4, 4)],
    256: [config(None, 32, 4, 3), config(None, 64, 8, 2), config(None, 32, 4, 2)],
    torch.float32: [config(None, 32, 8, 1), config(None, 16, 8, 1)],
}
INTERPRETER_CONFIG = config(None, 32, 4, 1)


def flash_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    scale: float | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    n_splits: int | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention of a few new queries to a long cache, its keys split into parts that are read side by side.

    q is (B, h, n, d_head), k and v (B, h_kv, m, d_head), with dtypes, widths, strides and devices as `flash_attention`
    takes them; n · h / h_kv is at most 64. Of sequence b only the first lengths[b] keys count, all m when lengths is
    left out; what k and v hold after them may be anything, NaN too. causal: the last query sees the last key that
    counts, each one before it one key less. scale is 1/√d_head when left out. n_splits is the number of parts, chosen
    by `splits_for` when left out. Returns the output (B, h, n, d_head) in q's dtype, with return_lse also the
    log-sum-exp of each row (B, h, n) in float32. A query that sees no key gets zeros and −inf.
    Raises what `flash_attention` raises, ValueError and TypeError for lengths and n_splits that do not fit, and
    RuntimeError where a gradient is asked for: there is none. Lengths on a GPU are not read, since that would wait for
    it: there a length past m counts as m, and one below 0 as 0.
    Source: Dao et al. 2023, Flash-Decoding for long-context inference.
    """
    parts = attend_to_parts(q, k, v, causal, scale, lengths, n_splits)
    output, lse = merge_parts(parts, q.dtype)
    return (output, lse) if return_lse else output


def splits_for(programs: int, n_keys: int, processors: int) -> int:
    """Into how many parts to cut the keys, so that the card is full and no part is too short.

    programs is how many there would be without a cut, B · h_kv, and two of them fit on a processor. They run in waves,
    and the last wave leaves places empty. The answer is the fewest parts that keep 85% as many places busy as the best
    number does. Raises ValueError for numbers below 1 (n_keys may be 0), TypeError for what is no whole number.
    Source: the rule of Flash-Decoding, `num_splits_heuristic` in its code.
    """
    programs = whole("programs", programs)
    n_keys = whole("n_keys", n_keys, least=0)
    places = 2 * whole("processors", processors)
    if programs >= 0.8 * places:
        return 1
    blocks = max(1, math.ceil(n_keys / MIN_PART_KEYS))
    busy = {}  # by number of parts: which share of the places has work, over all waves
    for parts in range(1, min(blocks, places) + 1):
        longest = math.ceil(blocks / parts)
        if math.ceil(blocks / longest) == parts:  # else some part would be empty
            waves = programs * parts / places
            busy[parts] = waves / math.ceil(waves)
    return next(parts for parts, share in busy.items() if share >= 0.85 * max(busy.values()))


def attend_to_parts(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    scale: float | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    n_splits: int | None = None,
) -> Partial:
    """Return what each part of the keys gives: m and l (parts, B, h, n), o (parts, B, h, n, d_head), all float32.

    Arguments and errors are those of `flash_decode`. `tiled.merge` of the parts, in any order, and then `tiled.finish`
    give the attention. A part without a key that counts is `tiled.nothing`.
    """
    check_inputs(q, k, v)
    B, h, n, d = q.shape
    h_kv, n_keys = k.shape[1:3]
    rows = h // h_kv * n
    if rows > MAX_ROWS:
        raise ValueError(
            f"{n} queries in groups of {h // h_kv} heads are {rows} rows, and {MAX_ROWS} fit: use flash_attention"
        )
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        raise RuntimeError("flash_decode has no derivative: call it inside torch.no_grad(), or use flash_attention")
    causal = check_causal(causal)
    q, scale = positive_scale(q, check_scale(scale, d))
    lengths = _as_lengths(lengths, B, n_keys, q.device)
    if n_splits is None:
        processors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else PROCESSORS
        n_splits = splits_for(max(1, B * h_kv), n_keys, processors)
    n_splits = whole("n_splits", n_splits)

    m, l = q.new_empty(2, n_splits, B, h, n, dtype=torch.float32).unbind()
    o = q.new_empty(n_splits, B, h, n, d, dtype=torch.float32)
    if 0 in (B, h, n, n_keys):  # nothing to attend from, or nothing to attend to
        return Partial(m.fill_(-torch.inf), l.zero_(), o.zero_())
    q = readable(q.reshape(B, h_kv, rows, d))  # the queries of a group below each other
    k, v = readable(k), readable(v)
    ROWS = max(16, pad_d_head(rows))  # tensor cores multiply 16 rows at a time
    options = {"CAUSAL": causal, "D": d, "D_HEAD": pad_d_head(d), "ROWS": ROWS, "enable_fp_fusion": True}
    run = tune(part_kernel, PARTS, q, INTERPRETER_CONFIG)
    with launch_lock(q):
        run[(n_splits, h_kv, B)](
            tiles(q, ROWS), tiles(k), tiles(v), m, l, o, lengths, n, n_keys, rows, scale * LOG2_E.value,
            situation=situation(q, k, causal), **options,
        )  # fmt: skip
    return Partial(m, l, o)


def merge_parts(parts: Partial, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The rule of `tiled.merge` and `tiled.finish` for many parts in one kernel, (parts, B, h, n) and (…, d_head).

    Returns (output, lse) of shapes (B, h, n, d_head) and (B, h, n), the output in `dtype`. In PyTorch it would take
    several kernels for each part, and starting one takes about as long as all of this.
    """
    m, l, o = parts
    n_splits, *shape, d = o.shape
    output = o.new_empty(*shape, d, dtype=dtype)
    lse = o.new_empty(shape)
    if lse.numel():
        with launch_lock(o):
            merge_kernel[(lse.numel(),)](
                m, l, o, output, lse, n_splits, D=d, D_HEAD=pad_d_head(d), BLOCK=16, num_warps=4
            )
    return output, lse


@triton.jit
def part_kernel(
    queries_of_group, keys, values, part_m, part_l, part_o, lengths, n_queries, n_keys, n_rows, scale_log2,
    CAUSAL: tl.constexpr, D: tl.constexpr, D_HEAD: tl.constexpr, ROWS: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """All queries of one group against one part of its keys.

    queries_of_group (B, h_kv, n_rows, D), keys and values are tensor descriptors; row r is query r mod n_queries of a
    head of the group. part_m, part_l (parts, B, h_kv, n_rows) and part_o (…, D) are pointers, lengths too, or None.
    """
    part, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = n_keys
    if lengths is not None:
        length = tl.minimum(tl.maximum(tl.load(lengths + batch), 0), n_keys)
    q = queries_of_group.load([batch, head, 0, 0]).reshape(ROWS, D_HEAD)  # (ROWS, D_HEAD)

    size = tl.cdiv(tl.cdiv(length, BLOCK_K), tl.num_programs(0)) * BLOCK_K  # keys in a part: whole blocks
    start = part * size
    stop = tl.minimum(start + size, length)  # before start where a part is empty
    rows = tl.arange(0, ROWS)
    if CAUSAL:
        last = rows % n_queries + length - n_queries  # the last query sees the last key
        seen_by_all = length - n_queries + 1
    else:
        last = tl.zeros_like(rows) + length - 1
        seen_by_all = length
    unmasked = tl.minimum(tl.maximum(seen_by_all // BLOCK_K * BLOCK_K, start), stop)

    acc = tl.zeros([ROWS, D_HEAD], tl.float32)
    l = tl.zeros([ROWS], tl.float32)
    m = tl.full([ROWS], LOWEST, tl.float32)
    acc, l, m = attend_to_part(
        acc, l, m, q, keys, values, batch, head, start, unmasked, last, length, scale_log2, False, D_HEAD, BLOCK_K
    )
    acc, l, m = attend_to_part(
        acc, l, m, q, keys, values, batch, head, unmasked, stop, last, length, scale_log2, True, D_HEAD, BLOCK_K
    )

    dims = tl.arange(0, D_HEAD)
    there = rows < n_rows
    at = ((part * tl.num_programs(2) + batch) * tl.num_programs(1) + head).to(tl.int64) * n_rows + rows
    tl.store(part_m + at, tl.where(l == 0, float("-inf"), m * LN_2), mask=there)  # in powers of e, as in tiled
    tl.store(part_l + at, l, mask=there)
    tl.store(part_o + at[:, None] * D + dims[None, :], acc, mask=there[:, None] & (dims < D)[None, :])


@triton.jit
def attend_to_part(
    acc, l, m, q, keys, values, batch, head, start, stop, last, length, scale_log2,
    MASKED: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """`flash.attend_to_keys`, but values past the sequence's length are not touched: a weight of 0 times NaN is NaN."""
    for j in tl.range(start, stop, BLOCK_K):
        k = keys.load([batch, head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
        v = values.load([batch, head, j, 0]).reshape(BLOCK_K, D_HEAD)  # (BLOCK_K, D_HEAD)
        s = tl.dot(q, k.T, input_precision="ieee")  # (ROWS, BLOCK_K)
        if MASKED:
            columns = j + tl.arange(0, BLOCK_K)
            s = tl.where(columns[None, :] <= last[:, None], s, float("-inf"))
            v = tl.where(columns[:, None] < length, v, 0.0)
        m_new = tl.maximum(m, tl.max(s, 1) * scale_log2)
        p = tl.exp2(s * scale_log2 - m_new[:, None])  # (ROWS, BLOCK_K), at most 1
        rescale = tl.exp2(m - m_new)
        l = l * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")  # (ROWS, D_HEAD)
        m = m_new
    return acc, l, m


@triton.jit
def merge_kernel(
    part_m, part_l, part_o, merged, lse, n_splits,
    D: tl.constexpr, D_HEAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One query of one head: `tiled.merge`, BLOCK parts at a time, then `tiled.finish`."""
    row, n_rows = tl.program_id(0), tl.num_programs(0)
    dims = tl.arange(0, D_HEAD)
    acc = tl.zeros([D_HEAD], tl.float32)
    l = 0.0
    m = LOWEST
    for first in tl.range(0, n_splits, BLOCK):
        parts = first + tl.arange(0, BLOCK)
        there = parts < n_splits
        at = parts.to(tl.int64) * n_rows + row
        m_part = tl.load(part_m + at, mask=there, other=float("-inf"))  # (BLOCK,)
        l_part = tl.load(part_l + at, mask=there, other=0.0)
        wanted = there[:, None] & (dims < D)[None, :]
        o_part = tl.load(part_o + at[:, None] * D + dims[None, :], mask=wanted, other=0.0)  # (BLOCK, D_HEAD)
        m_new = tl.maximum(m, tl.max(m_part, 0))
        keep = tl.exp2((m_part - m_new) * LOG2_E)  # of each part; 0 for an empty one
        rescale = tl.exp2((m - m_new) * LOG2_E)
        l = l * rescale + tl.sum(l_part * keep, 0)
        acc = acc * rescale + tl.sum(o_part * keep[:, None], 0)
        m = m_new
    nothing = l == 0
    l = tl.where(nothing, 1.0, l)
    tl.store(merged + row.to(tl.int64) * D + dims, (acc / l).to(merged.dtype.element_ty), mask=dims < D)
    tl.store(lse + row, tl.where(nothing, float("-inf"), m + tl.log2(l) * LN_2))


def _as_lengths(lengths: Tensor | Sequence[int] | None, B: int, n_keys: int, device: torch.device) -> Tensor | None:
    """Lengths as the kernel takes them, int32 on the device; checked, unless they lie on a GPU."""
    if lengths is None:
        return None
    lengths = torch.as_tensor(lengths)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"lengths are {lengths.dtype}: give whole numbers")
    if lengths.shape != (B,):
        raise ValueError(f"lengths are {tuple(lengths.shape)} but q has {B} sequences: give one for each, ({B},)")
    if not lengths.is_cuda and B and not 0 <= int(lengths.min()) <= int(lengths.max()) <= n_keys:
        raise ValueError(f"lengths are from {lengths.min()} to {lengths.max()}: from 0 to the {n_keys} keys of k")
    return lengths.to(device, torch.int32).contiguous()
