"""Attention on a GPU: ours in Triton, naive, and each backend of F.scaled_dot_product_attention, in one run.

What is timed is bfloat16, 16,384 tokens of width 2048 in every shape, as in the FlashAttention papers: d_head 64 and
128, causal and not, T from 1k to 16k. First come the errors against float64, then times taken in turns, forward and
backward, then peak memory; decoding has a benchmark of its own. FLOPs are counted as 4·B·h·T²·d_head, half of it when
causal, 2.5 times that for the backward; TFLOP/s stand beside the rate of a large matrix product of the same run.
usage: python benchmarks/gpu/attention.py [--quick] [--out DIR | --record]
--quick runs tiny shapes, on the CPU in Triton's interpreter where there is no GPU: it shows that all of it works.
"""

import itertools
from functools import partial

import torch

from course_utils.attention.flash import flash_attention
from course_utils.costs import records
from course_utils.costs.baselines import library, naive
from course_utils.costs.counts import attention_flops
from course_utils.costs.measure import environment, growth_exponent, peak_memory, ratio, time_call, time_together

TOKENS = 16384
WIDTH = 2048
LENGTHS = (1024, 2048, 4096, 8192, 16384)
NAIVE_UP_TO = 8192  # beyond, its scores and their copies take tens of gigabytes

IMPLEMENTATIONS = {"ours": flash_attention}
IMPLEMENTATIONS |= {name: partial(library, backend=name) for name in ("flash", "cuDNN", "efficient")}
IMPLEMENTATIONS["naive"] = naive


def random_inputs(B, T, d, device, dtype, width=WIDTH):
    """q, k, v and a gradient of the output, (B, width / d, T, d) each."""
    generator = torch.Generator(device).manual_seed(0)
    q, k, v, do = torch.randn(4, B, width // d, T, d, generator=generator, device=device, dtype=dtype).unbind()
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), do


def working(q, k, v, causal):
    """Return the implementations that take such inputs here, by name."""
    usable = {}
    for name, function in IMPLEMENTATIONS.items():
        if name == "naive" and q.shape[2] > NAIVE_UP_TO:
            continue
        try:
            function(q, k, v, causal)
        except RuntimeError as error:
            print(f"  {name} does not run here: {str(error).splitlines()[0][:100]}")
            continue
        usable[name] = function
    return usable


def measure_errors(device, dtype, T, widths):
    """Error of output and gradients against float64 on the same rounded inputs, relative in norm; a row for each."""
    rows = []
    for d, causal in itertools.product(widths, (False, True)):
        q, k, v, do = random_inputs(1, T, d, device, dtype, width=2 * d)
        exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
        expected = naive(*exact, causal)
        expected = (expected, *torch.autograd.grad(expected, exact, do.double()))
        for name, function in working(q, k, v, causal).items():
            o = function(q, k, v, causal)
            results = (o, *torch.autograd.grad(o, (q, k, v), do))
            errors = {
                f"error_{what}": ((a.double() - b).norm() / b.norm()).item()
                for what, a, b in zip(("o", "dq", "dk", "dv"), results, expected, strict=True)
            }
            rows.append({"measured": "error", "dtype": str(dtype)[6:], "d": d, "causal": causal, "T": T} | errors)
            rows[-1]["implementation"] = name
    return rows


def measure_times(device, dtype, d, causal, B, T, width, rounds, matmul_rate):
    """Forward alone, and with backward: seconds, TFLOP/s, share of the matrix product's rate, speed over the others."""
    q, k, v, do = random_inputs(B, T, d, device, dtype, width)
    h = width // d
    functions = working(q, k, v, causal)
    timings = {"forward": time_together(
        {name: no_grad(partial(function, q, k, v, causal)) for name, function in functions.items()},
        repeats=rounds, warmup=3, device=device,
    )}  # fmt: skip
    timings["both"] = time_together(
        {name: partial(forward_and_backward, function, q, k, v, do, causal) for name, function in functions.items()},
        repeats=rounds, warmup=3, device=device,
    )  # fmt: skip
    rows = []
    for direction, by_name in timings.items():
        flops = attention_flops(B, h, T, d_k=d, causal=causal)
        if direction == "both":
            flops += attention_flops(B, h, T, d_k=d, causal=causal, backward=True)
        for name, timing in by_name.items():
            row = {"measured": "time", "direction": direction, "d": d, "causal": causal, "T": T, "implementation": name}
            row |= {"seconds": timing.median, "seconds_low": timing.low, "seconds_high": timing.high, "rounds": rounds}
            row |= {"tflops": flops / timing.median / 1e12, "of_matmul": flops / timing.median / matmul_rate}
            for other in ("flash", "cuDNN", "naive"):
                row[f"over_{other}"] = ratio(by_name[other], timing).median if other in by_name else None
            rows.append(row)
    return rows


def no_grad(function):
    def call():
        with torch.no_grad():
            return function()

    return call


def forward_and_backward(function, q, k, v, do, causal):
    return torch.autograd.grad(function(q, k, v, causal), (q, k, v), do)


def measure_memory(device, dtype, d, lengths, width, names):
    """Bytes over the inputs at the peak of one causal forward and backward, for one sequence of each length."""
    rows = []
    for T in lengths:
        q, k, v, do = random_inputs(1, T, d, device, dtype, width)
        functions = working(q, k, v, True)
        for name in filter(functions.get, names):
            forward_and_backward(functions[name], q, k, v, do, True)  # what tunes itself has done so
            grown = peak_memory(forward_and_backward, functions[name], q, k, v, do, True, device=device)
            rows.append({"measured": "memory", "d": d, "T": T, "implementation": name, "peak_bytes": grown})
    return rows


def measure_matmul(device, dtype, size, rounds):
    """FLOPs a second of a square matrix product."""
    a, b = torch.randn(2, size, size, device=device, dtype=dtype).unbind()
    return 2 * size**3 / time_call(lambda: a @ b, rounds, warmup=3, device=device).median


def time_table(rows):
    columns = {"T": "T", "implementation": "implementation", "tflops": "TFLOP/s", "of_matmul": "of matmul"}
    columns |= {f"over_{other}": f"over {other}" for other in ("flash", "cuDNN", "naive")}
    return records.table(rows, columns)


def time_finding(rows, direction, d, causal):
    """Return the least and the largest of ours over each other one, for T of 2k or more, as a sentence."""
    ours = [row for row in rows if row["implementation"] == "ours"]
    ours = [row for row in ours if row["T"] >= 2048] or ours
    parts = []
    for other in ("flash", "cuDNN", "naive"):
        ratios = [row[f"over_{other}"] for row in ours if row[f"over_{other}"] is not None]
        if ratios:
            parts.append(f"{min(ratios):.2f} to {max(ratios):.2f} times as fast as {other}")
    kind = "causal" if causal else "full"
    what = "Forward" if direction == "forward" else "Forward and backward"
    return f"{what}, d_head {d}, {kind}, T from {ours[0]['T']:,}: ours is {', '.join(parts) or 'alone'}."


def memory_finding(rows):
    """Return how the peak of ours grows; nothing to say where fewer than two lengths took any memory."""
    ours = [row for row in rows if row["implementation"] == "ours" and row["peak_bytes"] > 0]
    if len(ours) < 2:
        return []
    power = growth_exponent([row["T"] for row in ours], [row["peak_bytes"] for row in ours])
    return [f"Peak memory of ours grows as T^{power:.2f}."]


def main(quick=False, folder=records.LOCAL):
    gpu = torch.cuda.is_available()
    if not gpu and not quick:
        raise SystemExit("no GPU here: nothing to measure (--quick tries all of it on the CPU, in the interpreter)")
    device, dtype = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    lengths, tokens, rounds, widths = ((16, 32), 32, 2, (64,)) if quick else (LENGTHS, TOKENS, 15, (64, 128))
    width = 64 if quick else WIDTH
    where = environment(device)
    print(f"{where['device']}, torch {where['torch']}, triton {where['triton']}, {dtype}", flush=True)
    matmul_rate = measure_matmul(device, dtype, 128 if quick else 8192, rounds)
    print(f"matrix product {matmul_rate / 1e12:.0f} TFLOP/s", flush=True)

    rows = []
    findings = []
    for one in (dtype,) if quick else (torch.bfloat16, torch.float16, torch.float32):
        errors = measure_errors(device, one, 40 if quick else 1000, widths)
        rows += errors
        print(f"\nerror against float64, {one}\n{records.table(errors)}", flush=True)
    for d, causal in itertools.product(widths, (False, True)):
        times = []
        for T in lengths:
            times += measure_times(device, dtype, d, causal, tokens // T, T, width, rounds, matmul_rate)
        rows += times
        for direction in ("forward", "both"):
            some = [row for row in times if row["direction"] == direction]
            findings.append(time_finding(some, direction, d, causal))
            print(f"\n{direction}, d_head {d}, causal {causal}\n{time_table(some)}\n{findings[-1]}", flush=True)
    measured = ("ours",) if quick else IMPLEMENTATIONS  # on a CPU each takes a fresh process
    memory = measure_memory(device, dtype, 64, lengths, width, measured)
    grown = memory_finding(memory)
    findings += grown
    print("\n".join(["\npeak memory, bytes", records.table(memory), *grown]), flush=True)
    settings = {"dtype": str(dtype)[6:], "tokens": tokens, "width": width, "quick": quick, "spread": "quartiles"}
    settings |= {"matmul_flops_per_second": matmul_rate}
    settings |= {"flops": "4·B·h·T²·d_head, half when causal, backward 2.5 times as many"}
    print(f"\nwritten: {records.write('attention-gpu', where, settings, [*rows, *memory], findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__)
