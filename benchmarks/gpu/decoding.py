"""Decoding one token on a GPU: ours with its keys split, ours unsplit, each backend of the library, naive, in one run.

What is timed is one query a sequence, 32 query heads on 8 key heads of width 128, bfloat16, against caches of 1k to
128k tokens in batches of 1, 8 and 64. Nearly all of the work is reading the cache, so bytes a second stand beside those
of a large copy measured in the same run. Each function is recorded as a CUDA graph and replayed, as servers do, so that
Python's time does not count, and the L2 cache is overwritten before each measurement, as the rest of a model would.
usage: python benchmarks/gpu/decoding.py [--quick] [--out DIR | --record]
--quick runs tiny shapes, on the CPU in Triton's interpreter where there is no GPU: it shows that all of it works.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

from course_utils.attention.flash import flash_attention
from course_utils.attention.flash_decode import PROCESSORS, flash_decode, splits_for
from course_utils.attention.multihead import grouped_attention
from course_utils.costs import records
from course_utils.costs.baselines import BACKENDS
from course_utils.costs.measure import environment, ratio, time_call, time_together
from course_utils.costs.roofline import attention_core

LENGTHS = (1024, 4096, 16384, 65536, 131072)
BATCHES = (1, 8, 64)
OTHERS = ("unsplit", "flash", "cuDNN", "efficient", "naive")


def with_heads(q, k, v, backend):
    """The library's own way to share a key head: enable_gqa."""
    with sdpa_kernel(BACKENDS[backend]):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def with_rows(q, k, v, backend):
    """Where a backend does not know groups, their one query each goes in as rows: the same numbers, and no copy."""
    B, h, _, d = q.shape
    with sdpa_kernel(BACKENDS[backend]):
        return F.scaled_dot_product_attention(q.view(B, k.shape[1], -1, d), k, v).view(B, h, 1, d)


def naive(q, k, v):
    return grouped_attention(q, k, v)[0]


# For each name the ways to run it, of which the first that runs is measured.
IMPLEMENTATIONS = {"ours": [flash_decode], "unsplit": [flash_attention]}
IMPLEMENTATIONS |= {
    name: [partial(with_heads, backend=name), partial(with_rows, backend=name)]
    for name in ("flash", "cuDNN", "efficient")
}
IMPLEMENTATIONS["naive"] = [naive]


def working(q, k, v):
    """{name: a function of no arguments} of what runs here with these inputs, replayed from a graph on a GPU."""
    usable = {}
    for name, ways in IMPLEMENTATIONS.items():
        for way in ways:
            function = partial(way, q, k, v)
            try:
                function()
                usable[name] = replayed(function) if q.is_cuda else function
                break
            except RuntimeError as error:
                refused = str(error).splitlines()[0][:100]
        else:
            print(f"  {name} does not run here: {refused}")
    return usable


def replayed(function):
    """Return the function's work on the GPU, recorded once. What it returned then is overwritten by each replay."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # libraries set themselves up in a stream's first calls, which cannot be recorded
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function()

    def replay():
        graph.replay()
        return output

    return replay


def random_inputs(B, heads, kv_heads, T, d, device, dtype):
    """Return one query a sequence, (B, heads, 1, d), and keys and values of T tokens, (B, kv_heads, T, d) each."""
    generator = torch.Generator(device).manual_seed(0)
    q = torch.randn(B, heads, 1, d, generator=generator, device=device, dtype=dtype)
    k, v = torch.randn(2, B, kv_heads, T, d, generator=generator, device=device, dtype=dtype).unbind()
    return q, k, v


def measure_errors(device, dtype, heads, kv_heads, T, d):
    """Error against float64 on the same rounded inputs, relative in norm; a row for each."""
    q, k, v = random_inputs(2, heads, kv_heads, T, d, device, dtype)
    expected = naive(q.double(), k.double(), v.double())
    rows = []
    for name, function in working(q, k, v).items():
        error = ((function().double() - expected).norm() / expected.norm()).item()
        rows.append({"measured": "error", "T": T, "implementation": name, "error": error})
    return rows


def measure_times(device, dtype, B, heads, kv_heads, T, d, rounds, copy_rate):
    """Seconds of one step, bytes a second and their share of a copy's, and how many times as long the others take."""
    inputs = random_inputs(B, heads, kv_heads, T, d, device, dtype)
    timings = time_together(working(*inputs), rounds, warmup=3, device=device, flush_l2=device == "cuda")
    n_bytes = attention_core(B, heads, 1, T, d_head=d, n_kv_heads=kv_heads, bytes_per_value=dtype).bytes
    processors = torch.cuda.get_device_properties(device).multi_processor_count if device == "cuda" else PROCESSORS
    parts = {"ours": splits_for(B * kv_heads, T, processors), "unsplit": 1}
    rows = []
    for name, timing in timings.items():
        row = {"measured": "time", "B": B, "heads": heads, "kv_heads": kv_heads, "d": d, "T": T, "implementation": name}
        row |= {"parts": parts.get(name), "seconds": timing.median, "seconds_low": timing.low}
        row |= {"seconds_high": timing.high, "rounds": rounds, "bytes_per_second": n_bytes / timing.median}
        row["of_copy"] = row["bytes_per_second"] / copy_rate
        for other in OTHERS:
            row[f"over_{other}"] = ratio(timings[other], timing).median if other in timings else None
        rows.append(row)
    return rows


def measure_copy(device, n_bytes, rounds):
    """Bytes a second, read and written, of a copy."""
    x = torch.empty(n_bytes, dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    return 2 * n_bytes / time_call(lambda: y.copy_(x), rounds, warmup=3, device=device).median


def fits(B, kv_heads, T, d, dtype, device):
    """Do keys and values leave a third of the card's memory to the rest?"""
    if device != "cuda":
        return True
    return 2 * B * kv_heads * T * d * dtype.itemsize < 2 / 3 * torch.cuda.get_device_properties(device).total_memory


def time_table(rows):
    columns = {"B": "B", "T": "T", "implementation": "implementation", "parts": "parts", "seconds": "seconds"}
    columns |= {"bytes_per_second": "bytes/s", "of_copy": "of copy"}
    return records.table(rows, columns | {f"over_{other}": f"over {other}" for other in OTHERS})


def finding(rows):
    """What ours reads of a copy's bandwidth, and the least and the largest of ours over each other, as a sentence."""
    ours = [row for row in rows if row["implementation"] == "ours"]
    parts = []
    for other in OTHERS:
        ratios = [row[f"over_{other}"] for row in ours if row[f"over_{other}"] is not None]
        if ratios:
            parts.append(f"{min(ratios):.2f} to {max(ratios):.2f} times as fast as {other}")
    shares = [row["of_copy"] for row in ours]
    sizes = f"{ours[0]['B']} sequences, {ours[0]['T']:,} to {ours[-1]['T']:,} keys"
    reads = f"reads at {min(shares):.0%} to {max(shares):.0%} of a copy's bandwidth"
    return f"One token, {sizes}: ours {reads} and is {', '.join(parts) or 'alone'}."


@torch.no_grad()
def main(quick=False, folder=records.LOCAL):
    gpu = torch.cuda.is_available()
    if not gpu and not quick:
        raise SystemExit("no GPU here: nothing to measure (--quick tries all of it on the CPU, in the interpreter)")
    device, dtype = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    batches, lengths, heads, kv_heads, d, rounds = (BATCHES, LENGTHS, 32, 8, 128, 30)
    if quick:
        batches, lengths, heads, kv_heads, d, rounds = ((1, 2), (40, 300), 4, 2, 64, 2)
    where = environment(device)
    copy_rate = measure_copy(device, 2**20 if quick else 2**31, rounds)
    print(f"{where['device']}, torch {where['torch']}, triton {where['triton']}, {dtype}", flush=True)
    print(f"copy {copy_rate / 1e12:.2f} TB/s, read and written", flush=True)

    rows = measure_errors(device, dtype, heads, kv_heads, 100 if quick else 5000, d)
    print(f"\nerror against float64\n{records.table(rows)}", flush=True)
    findings = []
    for B in batches:
        times = []
        for T in lengths:
            if fits(B, kv_heads, T, d, dtype, device):
                times += measure_times(device, dtype, B, heads, kv_heads, T, d, rounds, copy_rate)
        rows += times
        findings.append(finding(times))
        print(f"\n{B} sequences\n{time_table(times)}\n{findings[-1]}", flush=True)
    settings = {"dtype": str(dtype)[6:], "heads": heads, "kv_heads": kv_heads, "d": d, "quick": quick}
    settings |= {"spread": "quartiles", "copy_bytes_per_second": copy_rate, "l2": "overwritten", "graphs": gpu}
    settings |= {"bytes": "q, keys, values and output, each moved once"}
    print(f"\nwritten: {records.write('decoding-gpu', where, settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__)
