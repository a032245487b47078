"""Writing one token on a CPU, with a cache and without, over the prefix T; and with fewer key and value heads.

One thread, float32, six layers, d_model 384, six heads, random weights. Times are CPU time, which on one
thread is what the wall clock shows when nobody else uses the machine; what is compared is timed in turns, and told as
ratios of the same rounds. The result is written as JSON beside those that ship with the course.
usage: python benchmarks/generation.py [--quick] [--out DIR | --record]
"""

import os
import time
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded

import torch

from course_utils.attention.cache import ContiguousCache
from course_utils.costs import records
from course_utils.costs.generation import step_saving
from course_utils.costs.measure import environment, ratio, time_together
from course_utils.costs.memory import in_decimal_units, kv_cache_bytes
from course_utils.models.decoder import Decoder, new_caches

VOCABULARY = 256
LAYERS = 6
D_MODEL = 384
HEADS = 6
D_HEAD = D_MODEL // HEADS
KINDS = {"MHA": HEADS, "GQA": 2, "MQA": 1}  # key and value heads
PREFIXES = {64: 15, 128: 15, 256: 11, 512: 9, 1024: 7, 2048: 3}  # T: rounds
CONTEXTS = {256: 15, 1024: 15, 4096: 9}  # T: rounds, at the batch below
BATCH = 8
CHUNK = 256  # tokens that a prompt is fed at a time


def decoder(n_kv_heads=HEADS):
    torch.manual_seed(0)
    return Decoder(VOCABULARY, D_MODEL, LAYERS, HEADS, n_kv_heads).eval()


def filled_caches(model, tokens, room):
    """Return one cache a layer that holds the tokens (B, T), and has room for `room` more."""
    B, T = tokens.shape
    caches = new_caches(model, ContiguousCache, B, capacity=T + room)
    for start in range(0, T, CHUNK):
        model(tokens[:, start : start + CHUNK], caches)
    return caches


def random_tokens(B, T):
    return torch.randint(VOCABULARY, (B, T), generator=torch.Generator().manual_seed(T))


def measure_prefixes(prefixes):
    """Return one row for each T: seconds to write the next token after T, without a cache and with one.

    With a cache each round's token stays in it, so round i really has a prefix of T + i.
    """
    model = decoder()
    rows = []
    for T, rounds in prefixes.items():
        tokens = random_tokens(1, T)
        caches = filled_caches(model, tokens[:, :-1], room=rounds + 4)
        torch.testing.assert_close(model(tokens[:, -1:], caches)[:, -1], model(tokens)[:, -1], atol=1e-4, rtol=1e-4)
        ways = {"without": partial(model, tokens), "with": partial(model, tokens[:, -1:], caches)}
        timings = time_together(ways, repeats=rounds, warmup=1, clock=time.process_time)
        faster = ratio(timings["without"], timings["with"])
        row = {"T": T, "rounds": rounds, "fewer_rows": step_saving(T)}
        for name, timing in timings.items():
            row |= {f"{name}_seconds": timing.median, f"{name}_low": timing.low, f"{name}_high": timing.high}
        rows.append(row | {"faster": faster.median, "faster_low": faster.low, "faster_high": faster.high})
    return rows


def measure_kinds(contexts, batch):
    """One row for each T and kind of attention: seconds of a decode step of the batch, and bytes of the cache."""
    models = {kind: decoder(n_kv_heads) for kind, n_kv_heads in KINDS.items()}
    rows = []
    for T, rounds in contexts.items():
        newest = random_tokens(batch, 1)
        steps = {}
        sizes = {}
        for kind, n_kv_heads in KINDS.items():
            caches = new_caches(models[kind], ContiguousCache, batch, capacity=T + rounds + 2)
            for cache in caches:  # what the tokens before were changes no timing
                cache.update(*torch.randn(2, batch, n_kv_heads, T, D_HEAD))
            steps[kind] = partial(models[kind], newest, caches)
            sizes[kind] = sum(cache.n_bytes_used for cache in caches)
            assert sizes[kind] == kv_cache_bytes(LAYERS, n_kv_heads, D_HEAD, T, batch, "float32")
        timings = time_together(steps, repeats=rounds, warmup=2, clock=time.process_time)
        for kind, timing in timings.items():
            faster = ratio(timings["MHA"], timing)
            row = {"T": T, "kind": kind, "n_kv_heads": KINDS[kind], "batch": batch, "rounds": rounds}
            row |= {"seconds": timing.median, "seconds_low": timing.low, "seconds_high": timing.high}
            row |= {"faster": faster.median, "faster_low": faster.low, "faster_high": faster.high}
            row |= {"cache_bytes": sizes[kind], "smaller": sizes["MHA"] / sizes[kind]}
            rows.append(row | {"weight_bytes": sum(weight.nbytes for weight in models[kind].parameters())})
    return rows


def prefix_table(rows):
    titles = {"T": "T", "without": "without, ms", "with": "with, ms", "faster": "faster, ×", "fewer_rows": "rows, ×"}
    lines = [row | {way: row[f"{way}_seconds"] * 1e3 for way in ("without", "with")} for row in rows]
    return records.table(lines, titles)


def kinds_table(rows):
    titles = {
        "T": "T",
        "kind": "kind",
        "ms": "step, ms",
        "faster": "faster, ×",
        "cache": "cache",
        "smaller": "smaller, ×",
    }
    lines = [row | {"ms": row["seconds"] * 1e3, "cache": in_decimal_units(row["cache_bytes"])} for row in rows]
    return records.table(lines, titles)


def prefix_finding(rows):
    first, last = rows[0], rows[-1]
    grown = {way: last[f"{way}_seconds"] / first[f"{way}_seconds"] for way in ("without", "with")}
    return (
        f"From T = {first['T']:,} to {last['T']:,} a token takes {grown['without']:.1f} times as long without a cache "
        f"and {grown['with']:.1f} times as long with one; at T = {last['T']:,} the cache computes "
        f"{last['fewer_rows']:,} times fewer rows and is {last['faster']:.1f} times faster."
    )


def kinds_finding(rows):
    mha, *others = [row for row in rows if row["T"] == rows[-1]["T"]]
    parts = [
        f"{row['kind']}'s cache is {row['smaller']:.0f} times smaller and its step {row['faster']:.1f} times faster"
        for row in others
    ]
    return (
        f"At T = {mha['T']:,} and a batch of {mha['batch']}, MHA reads {in_decimal_units(mha['cache_bytes'])} of cache "
        f"and {in_decimal_units(mha['weight_bytes'])} of weights a step; {', '.join(parts)}."
    )


@torch.inference_mode()
def main(quick=False, folder=records.LOCAL):
    torch.set_num_threads(1)
    prefixes, contexts, batch = ({8: 2, 16: 2}, {16: 2}, 2) if quick else (PREFIXES, CONTEXTS, BATCH)
    where = environment()
    print(f"{where['device']}, one thread, torch {where['torch']}, {LAYERS} layers, d_model {D_MODEL}, {HEADS} heads")
    by_prefix = measure_prefixes(prefixes)
    print(f"\none token, without and with a cache\n{prefix_table(by_prefix)}\n{prefix_finding(by_prefix)}", flush=True)
    by_kind = measure_kinds(contexts, batch)
    print(f"\none decode step for a batch of {batch}\n{kinds_table(by_kind)}\n{kinds_finding(by_kind)}")
    rows = [{"measured": "prefix"} | row for row in by_prefix] + [{"measured": "kind"} | row for row in by_kind]
    settings = {"vocabulary": VOCABULARY, "layers": LAYERS, "d_model": D_MODEL, "heads": HEADS, "dtype": "float32"}
    settings |= {"quick": quick, "clock": "process time", "spread": "quartiles"}
    findings = [prefix_finding(by_prefix), kinds_finding(by_kind)]
    print(f"\nwritten: {records.write('generation-cpu', where, settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__)
