"""What each trick of the forward kernel gives, measured apart: the kernel with one of them left out, over the whole.

The kernel here is `flash.forward_kernel` with switches, for lengths that the blocks divide and without log-sum-exp;
`flash_attention` itself, tuned, is measured beside it. All variants run in turns, in one run: a ratio of 1.2 says that
without the trick the kernel takes 1.2 times as long.
usage: python benchmarks/gpu/tricks.py [--quick] [--out DIR | --record]
--quick runs a tiny shape, on the CPU in Triton's interpreter where there is no GPU, and checks every variant's answer.
"""

import itertools
import math
from functools import partial

import torch
import torch.nn.functional as F

from course_utils.attention.flash import flash_attention
from course_utils.attention.triton_setup import LOG2_E, tiles, tl, triton
from course_utils.costs import records
from course_utils.costs.counts import attention_flops
from course_utils.costs.measure import environment, ratio, time_together

WHOLE = {"DESCRIPTORS": True, "EXP2": True, "SPLIT": True, "SKIP": True, "LONGEST_FIRST": True, "PERSISTENT": False}
# Rows of queries, rows of keys, warps, stages, and most registers a thread where that is limited.
BLOCKS = {64: (128, 64, 8, 3), 128: (128, 64, 8, 2)}
WITHOUT = {
    "the whole": {},
    "pointers instead of tensor descriptors": {"DESCRIPTORS": False},
    "exp instead of exp2 with the scale folded in": {"EXP2": False},
    "one causal loop, masked throughout": {"SPLIT": False},
    "blocks above the diagonal masked, not skipped": {"SPLIT": False, "SKIP": False},
    "shortest rows first": {"LONGEST_FIRST": False},
    "a persistent grid, one program a processor": {"PERSISTENT": True},
}
OTHER_BLOCKS = {
    64: [(128, 128, 8, 2), (64, 64, 4, 3), (128, 64, 4, 3), (128, 64, 8, 1), (128, 64, 8, 2), (128, 64, 8, 4)],
    128: [
        (128, 64, 8, 2, 128),
        (128, 128, 8, 2),
        (64, 64, 4, 2),
        (128, 64, 4, 2),
        (128, 64, 8, 1),
        (128, 64, 8, 3),
        (64, 128, 4, 2),
    ],
}


@triton.jit
def kernel(
    queries, keys, values, outputs, q_start, k_start, v_start, T, heads, scale,
    CAUSAL: tl.constexpr, D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, DESCRIPTORS: tl.constexpr,
    EXP2: tl.constexpr, SPLIT: tl.constexpr, SKIP: tl.constexpr, LONGEST_FIRST: tl.constexpr, PERSISTENT: tl.constexpr,
):  # fmt: skip
    """One block of queries, or with a persistent grid every so-manyeth, of all heads (1, heads, T, D_HEAD)."""
    blocks = T // BLOCK_Q
    step = tl.num_programs(0) if PERSISTENT else blocks * heads
    for work in range(tl.program_id(0), blocks * heads, step):
        head, i = work // blocks, work % blocks
        if LONGEST_FIRST:
            i = blocks - 1 - i
        rows = i * BLOCK_Q + tl.arange(0, BLOCK_Q)
        q = _tile(queries, q_start, head, i * BLOCK_Q, T, BLOCK_Q, D_HEAD, DESCRIPTORS)
        acc = tl.zeros([BLOCK_Q, D_HEAD], tl.float32)
        l = tl.zeros([BLOCK_Q], tl.float32)
        m = tl.full([BLOCK_Q], -1e38, tl.float32)
        unmasked = T
        stop = T
        if CAUSAL:
            unmasked = i * BLOCK_Q // BLOCK_K * BLOCK_K if SPLIT else 0
            stop = (i + 1) * BLOCK_Q if SKIP else T
        for j in tl.range(0, unmasked, BLOCK_K):
            k = _tile(keys, k_start, head, j, T, BLOCK_K, D_HEAD, DESCRIPTORS)
            v = _tile(values, v_start, head, j, T, BLOCK_K, D_HEAD, DESCRIPTORS)
            acc, l, m = _attend(acc, l, m, q, k, v, j, rows, scale, False, BLOCK_K, EXP2)
        for j in tl.range(unmasked, stop, BLOCK_K):
            k = _tile(keys, k_start, head, j, T, BLOCK_K, D_HEAD, DESCRIPTORS)
            v = _tile(values, v_start, head, j, T, BLOCK_K, D_HEAD, DESCRIPTORS)
            acc, l, m = _attend(acc, l, m, q, k, v, j, rows, scale, True, BLOCK_K, EXP2)
        out = (acc * (1 / l)[:, None]).to(outputs.dtype)
        outputs.store([0, head, i * BLOCK_Q, 0], out.reshape(1, 1, BLOCK_Q, D_HEAD))


@triton.jit
def _attend(acc, l, m, q, k, v, j, rows, scale, MASKED: tl.constexpr, BLOCK_K: tl.constexpr, EXP2: tl.constexpr):
    s = tl.dot(q, k.T, input_precision="ieee")
    if not EXP2:
        s = s * scale
    if MASKED:
        s = tl.where((j + tl.arange(0, BLOCK_K))[None, :] <= rows[:, None], s, float("-inf"))
    if EXP2:
        m_new = tl.maximum(m, tl.max(s, 1) * scale)
        p, rescale = tl.exp2(s * scale - m_new[:, None]), tl.exp2(m - m_new)
    else:
        m_new = tl.maximum(m, tl.max(s, 1))
        p, rescale = tl.exp(s - m_new[:, None]), tl.exp(m - m_new)
    acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
    return acc, l * rescale + tl.sum(p, 1), m_new


@triton.jit
def _tile(
    descriptor, start, head, row, T,
    BLOCK: tl.constexpr, D_HEAD: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """BLOCK tokens of one head, (BLOCK, D_HEAD): by the copy engine, or by a pointer for each number."""
    if DESCRIPTORS:
        tile = descriptor.load([0, head, row, 0]).reshape(BLOCK, D_HEAD)
    else:
        tokens = tl.cast(head, tl.int64) * T + row + tl.arange(0, BLOCK)
        tile = tl.load(start + tokens[:, None] * D_HEAD + tl.arange(0, D_HEAD)[None, :])
    return tile


def attend(q, k, v, causal, blocks, processors, **switches):
    """softmax(q kᵀ/√d) v for (1, heads, T, d_head), by the kernel with these switches set otherwise than in WHOLE."""
    block_q, block_k, warps, stages, *registers = blocks
    _, heads, T, d = q.shape
    o = torch.empty_like(q)
    switches = WHOLE | switches
    programs = T // block_q * heads
    grid = (min(processors, programs) if switches["PERSISTENT"] else programs,)
    kernel[grid](
        tiles(q, block_q), tiles(k, block_k), tiles(v, block_k), tiles(o, block_q), q, k, v, T, heads,
        LOG2_E.value / math.sqrt(d) if switches["EXP2"] else 1 / math.sqrt(d),
        CAUSAL=causal, D_HEAD=d, BLOCK_Q=block_q, BLOCK_K=block_k, **switches,
        num_warps=warps, num_stages=stages, maxnreg=registers[0] if registers else None, enable_fp_fusion=True,
    )  # fmt: skip
    return o


def variants(d, causal, quick):
    """{name: (blocks, switches)}: the whole, one trick less each time, then other blocks."""
    blocks = (32, 16, 4, 1) if quick else BLOCKS[d]
    others = [(64, 32, 4, 1)] if quick else OTHER_BLOCKS[d]
    causal_only = {"SPLIT", "SKIP", "LONGEST_FIRST"}
    tricks = {name: switches for name, switches in WITHOUT.items() if causal or not causal_only & set(switches)}
    kernels = {name: (blocks, switches) for name, switches in tricks.items()}
    return kernels | {described(*other): (other, {}) for other in others}


def described(block_q, block_k, warps, stages, registers=None):
    limit = "" if registers is None else f", at most {registers} registers"
    return f"{block_q} × {block_k}, {warps} warps, {stages} stages{limit}"


def measure(device, dtype, d, causal, heads, T, rounds, quick):
    """Each variant's time over the whole kernel's, a row each; one that the GPU cannot hold is named and left out."""
    q, k, v = torch.randn(3, 1, heads, T, d, device=device, dtype=dtype).unbind()
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    processors = 2 if quick else torch.cuda.get_device_properties(device).multi_processor_count
    functions = {"flash_attention": partial(flash_attention, q, k, v, causal)}
    for name, (blocks, switches) in variants(d, causal, quick).items():
        function = partial(attend, q, k, v, causal, blocks, processors, **switches)
        try:
            result = function()
        except triton.runtime.errors.OutOfResources as error:
            print(f"  {name}: {error}")
            continue
        torch.testing.assert_close(result, expected, atol=2e-2, rtol=2e-2, msg=f"{name} is wrong")
        functions[name] = function
    timings = time_together(functions, rounds, warmup=2, device=device)
    rows = []
    for name, timing in timings.items():
        slower = ratio(timing, timings["the whole"])
        tflops = attention_flops(1, heads, T, d_k=d, causal=causal) / timing.median / 1e12
        row = {"d": d, "causal": causal, "T": T, "variant": name, "tflops": tflops, "slower": slower.median}
        rows.append(row | {"slower_low": slower.low, "slower_high": slower.high, "rounds": rounds})
    return rows


def finding(rows):
    """Return what each trick gives, as a sentence."""
    parts = [f"{row['slower']:.2f} with {row['variant']}" for row in rows if row["variant"] in WITHOUT][1:]
    kind = "causal" if rows[0]["causal"] else "full"
    return f"d_head {rows[0]['d']}, {kind}: times as long as the whole kernel, {', '.join(parts)}."


def main(quick=False, folder=records.LOCAL):
    gpu = torch.cuda.is_available()
    if not gpu and not quick:
        raise SystemExit("no GPU here: nothing to measure (--quick tries all of it on the CPU, in the interpreter)")
    device, dtype = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    where = environment(device)
    rows = []
    findings = []
    for d, causal in itertools.product((64,) if quick else (64, 128), (False, True)):
        shape = (1, 64) if quick else (2 * 2048 // d, 8192)
        some = measure(device, dtype, d, causal, *shape, 2 if quick else 15, quick)
        rows += some
        findings.append(finding(some))
        print(f"\nd_head {d}, causal {causal}\n{records.table(some)}\n{findings[-1]}", flush=True)
    settings = {"dtype": str(dtype)[6:], "quick": quick, "spread": "quartiles"}
    print(f"\nwritten: {records.write('tricks-gpu', where, settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__)
