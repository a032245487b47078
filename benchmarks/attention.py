"""Attention on a CPU: naive, tiled and the library's, in time and in peak memory, over the number of tokens T.

One thread, float32, eight heads of 64. Times are CPU time, which on one thread is what the wall clock shows when nobody
else uses the machine; full and causal attention are timed in the same rounds, and told as ratios to naive of the same
rounds and mask. Peak memory is what a fresh process grows by, inputs not counted. The result is written as JSON beside
those that ship with the course; one in which causal naive beats full naive is refused (costs/records.py).
usage: python benchmarks/attention.py [--quick] [--out DIR | --record]
"""

import itertools
import os
import time
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded, here and in the fresh processes

import torch

from course_utils.attention import tiled
from course_utils.costs import records
from course_utils.costs.baselines import library, naive
from course_utils.costs.measure import environment, growth_exponent, overtakes_from, peak_memory, ratio, time_together
from course_utils.costs.memory import in_decimal_units

HEADS = 8
D_HEAD = 64
LENGTHS = {256: 9, 512: 9, 1024: 7, 2048: 5, 4096: 3, 8192: 3}  # T: rounds
MEMORY_LENGTHS = (1024, 2048, 4096, 8192, 16384)
NAIVE_UP_TO = 8192  # at 16,384 its scores and weights would take 17 GB


def tiled_64(q, k, v, causal):
    return tiled.forward(q, k, v, causal, block_q=64, block_k=64)[0]


def tiled_256(q, k, v, causal):
    return tiled.forward(q, k, v, causal, block_q=256, block_k=256)[0]


IMPLEMENTATIONS = {"naive": naive, "tiled 64": tiled_64, "tiled 256": tiled_256, "library": library}
TILED = [name for name in IMPLEMENTATIONS if name.startswith("tiled")]


def random_inputs(T):
    return torch.randn(3, 1, HEADS, T, D_HEAD, generator=torch.Generator().manual_seed(0)).unbind()


def measure_times(lengths):
    """One row for each mask, T and implementation: seconds, and how many times faster than naive with that mask."""
    settle_allocator()
    rows = []
    for T, rounds in lengths.items():
        q, k, v = random_inputs(T)
        functions = {}
        for causal in (False, True):
            check_equal(q, k, v, causal)  # and a warm-up
            functions |= {(name, causal): partial(f, q, k, v, causal) for name, f in IMPLEMENTATIONS.items()}
        timings = time_together(functions, repeats=rounds, warmup=0, clock=time.process_time)
        for (name, causal), timing in timings.items():
            faster = ratio(timings["naive", causal], timing)
            row = {"causal": causal, "T": T, "implementation": name}
            row |= {"seconds": timing.median, "seconds_low": timing.low, "seconds_high": timing.high}
            row |= {"faster": faster.median, "faster_low": faster.low, "faster_high": faster.high, "rounds": rounds}
            rows.append(row)
    return sorted(rows, key=lambda row: row["causal"])  # full first


def settle_allocator():
    """Free one block of 30 MiB, so that what is timed first gets its memory as what is timed last.

    In a fresh process glibc maps each large block anew, page by page, and gives it back when it is freed. Once a block
    of up to 32 MiB was freed, blocks smaller than that one come from memory that the process keeps.
    """
    torch.empty(30 * 2**20, dtype=torch.uint8)


def check_equal(q, k, v, causal):
    """A benchmark of a wrong answer says nothing."""
    expected = naive(q, k, v, causal)
    for name, function in IMPLEMENTATIONS.items():
        torch.testing.assert_close(function(q, k, v, causal), expected, atol=1e-4, rtol=1e-4, msg=f"{name} is wrong")


def measure_memory(lengths, names):
    """One row for each T and implementation: the bytes by which a fresh process grows. Causal; full takes as much."""
    rows = []
    for T in lengths:
        for name in names:
            if name == "naive" and T > NAIVE_UP_TO:
                continue
            grown = peak_memory(attend, name, T, prepare=with_inputs, rehearse=(name, 64))
            rows.append({"causal": True, "T": T, "implementation": name, "peak_bytes": grown})
    return rows


def with_inputs(name, T):
    return (IMPLEMENTATIONS[name], *random_inputs(T))


def attend(function, q, k, v):
    return function(q, k, v, causal=True)


def time_table(rows):
    """Return a line for each T: naive's milliseconds, and how many times faster each other one is."""
    columns = {"T": "T", "naive": "naive, ms"} | {name: f"{name}, ×" for name in IMPLEMENTATIONS if name != "naive"}
    lines = {}
    for row in rows:
        line = lines.setdefault(row["T"], {"T": row["T"]})
        line[row["implementation"]] = row["seconds"] * 1e3 if row["implementation"] == "naive" else row["faster"]
    return records.table(list(lines.values()), columns)


def memory_table(rows):
    lines = {}
    for row in rows:
        lines.setdefault(row["T"], {"T": row["T"]})[row["implementation"]] = row["peak_bytes"] / 1e6
    return records.table(list(lines.values()), {"T": "T"} | {name: f"{name}, MB" for name in IMPLEMENTATIONS})


def time_finding(rows, causal):
    """Return one sentence, computed from the rows of one table. "Faster" means in three rounds of four."""
    parts = []
    for name in [*TILED, "library"]:
        mine = [row for row in rows if row["implementation"] == name]
        sizes = [row["T"] for row in mine]
        last = mine[-1]
        start = overtakes_from(sizes, [1 / row["faster_low"] for row in mine], [1] * len(mine))
        verdict = "is not faster than naive" if start is None else f"is faster than naive from T = {start:,} on"
        parts.append(f"{name} {verdict} ({last['faster']:.1f}× at T = {last['T']:,})")
    return f"{'Causal' if causal else 'Full'} attention: {'; '.join(parts)}."


def memory_findings(rows):
    """Return one sentence, or none. A peak of 0 is below a page and says nothing of growth; growth needs two sizes."""
    parts = []
    for name in dict.fromkeys(row["implementation"] for row in rows):
        mine = [row for row in rows if row["implementation"] == name and row["peak_bytes"]]
        if len(mine) < 2:
            continue
        power = growth_exponent([row["T"] for row in mine], [row["peak_bytes"] for row in mine])
        last = mine[-1]
        parts.append(f"T^{power:.2f} for {name} ({in_decimal_units(last['peak_bytes'])} at T = {last['T']:,})")
    if not parts:
        return []
    T = rows[-1]["T"]
    output = in_decimal_units(4 * HEADS * T * D_HEAD)
    return [f"Peak memory grows as {', '.join(parts)}. The output alone is {output} at T = {T:,}."]


def main(quick=False, folder=records.LOCAL):
    torch.set_num_threads(1)
    lengths, memory_lengths = ({32: 2, 64: 2}, (64, 256)) if quick else (LENGTHS, MEMORY_LENGTHS)
    where = environment()
    print(f"{where['device']}, one thread, torch {where['torch']}, {HEADS} heads of {D_HEAD}, float32")
    rows = []
    findings = []
    for causal, group in itertools.groupby(measure_times(lengths), key=lambda row: row["causal"]):
        times = list(group)
        rows += [{"measured": "time"} | row for row in times]
        findings.append(time_finding(times, causal))
        kind = "causal" if causal else "full"
        print(
            f"\n{kind} attention, × is how many times faster than naive\n{time_table(times)}\n{findings[-1]}",
            flush=True,
        )
    memory = measure_memory(memory_lengths, ["naive"] if quick else IMPLEMENTATIONS)
    rows += [{"measured": "memory"} | row for row in memory]
    grown = memory_findings(memory)
    findings += grown
    print("\ncausal attention, peak memory over the inputs", memory_table(memory), *grown, sep="\n")
    settings = {
        "batch": 1,
        "heads": HEADS,
        "d_head": D_HEAD,
        "dtype": "float32",
        "quick": quick,
        "clock": "process time",
        "spread": "quartiles",
    }
    print(f"\nwritten: {records.write('attention-cpu', where, settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__)
