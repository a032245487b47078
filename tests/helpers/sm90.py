"""Compile the Triton kernels for a Hopper GPU (sm_90) on a machine without one, and print what came out as JSON.

Run as a script, in a process of its own: compiling needs Triton without its interpreter. It compiles every
configuration that is tried on a GPU, which takes minutes. With --tuning it runs the autotuner instead, on kernels that
do nothing.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from course_utils.attention import flash, flash_backward, flash_decode, triton_setup
from course_utils.attention.triton_setup import TILES

HOPPER = GPUTarget("cuda", 90, 32)
CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
TABLES = {
    "forward": (flash.forward_kernel, flash.FORWARD),
    "d_queries": (flash_backward.d_queries_kernel, flash_backward.D_QUERIES),
    "d_keys_values": (flash_backward.d_keys_values_kernel, flash_backward.D_KEYS_VALUES),
}
POINTERS = dict.fromkeys(("lse", "delta", "part_m", "part_l", "part_o"), "*fp32") | {"lengths": "*i32"}


def compiled(kernel, config, d, dtype, causal, ones=(), **more):
    """The compiled kernel for one configuration. `ones` are sizes that are 1, which Triton compiles apart."""
    options = config.all_kwargs() | {"enable_fp_fusion": True}
    constants = {"CAUSAL": causal, "D_HEAD": d} | more
    constants |= {name: options.pop(name) for name in ("BLOCK_Q", "BLOCK_K") if name in options}
    constants |= dict.fromkeys(ones, 1)
    names = [parameter.name for parameter in kernel.params]
    constants = {name: value for name, value in constants.items() if name in names}
    signature = {}
    for name in names:
        if name in constants:
            signature[name] = "constexpr"
        elif name in TILES:
            signature[name] = f"tensordesc<{dtype}[1, 1, {constants[TILES[name]]}, {d}]>"
        elif name == "queries_of_group":
            signature[name] = f"tensordesc<{dtype}[1, 1, {constants['ROWS']}, {d}]>"
        elif name == "merged":
            signature[name] = f"*{dtype}"
        else:
            signature[name] = POINTERS.get(name) or ("fp32" if name == "scale_log2" else "i32")
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if signature[name].startswith("*")}
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=aligned,
    )
    return triton.compile(source, target=HOPPER, options=options)


def inspected(kernel) -> dict:
    """Registers a thread, bytes of stack, and how often some machine instructions stand in the compiled kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(kernel.asm["cubin"])
        cubin.flush()
        usage, code = (
            subprocess.run([CUOBJDUMP, option, cubin.name], capture_output=True, text=True, check=True).stdout
            for option in ("-res-usage", "-sass")
        )
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", usage).groups()
    # Products on tensor cores, of a warp group and of a warp; ordinary multiply-adds; tile loads by the copy engine;
    # stores and loads of spilled registers.
    names = ("HGMMA", "HMMA", "FFMA", "UTMALDG", "STL", "LDL")
    counts = {name: len(re.findall(rf"\b{name}\b", code)) for name in names}
    return {"registers": int(registers), "stack": int(stack), "shared": kernel.metadata.shared} | counts


def decoding(d, config, dtype="bf16", rows=16, ones=(), lengths=True):
    """The compiled kernel for a part of the keys."""
    more = {"D": d, "ROWS": rows} | ({} if lengths else {"lengths": None})
    return compiled(flash_decode.part_kernel, config, d, dtype, True, ones, **more)


def merging(d, ones=()):
    """The compiled kernel that merges the parts."""
    config = triton.Config({}, num_warps=4)
    return compiled(flash_decode.merge_kernel, config, d, "bf16", False, ones, D=d, BLOCK=16)


def all_of_them():
    rows = []
    for name, (kernel, table) in TABLES.items():
        for d in (64, 128, 256):
            configs = table[d] if name == "forward" else table[d][:2]
            for number, config in enumerate(configs):
                for dtype in ("bf16", "fp16") if number == 0 else ("bf16",):
                    row = {"kernel": name, "d": d, "config": str(config), "dtype": dtype}
                    rows.append(row | inspected(compiled(kernel, config, d, dtype, causal=True)))
        for ones in (("group",), ("n_queries", "group"), ("n_keys", "group")):
            compiled(kernel, table[64][-1], 64, "bf16", causal=False, ones=ones)
    single = compiled(flash.forward_kernel, flash.FORWARD[torch.float32][-1], 64, "fp32", causal=False)
    rows.append({"kernel": "forward in float32"} | inspected(single))
    for d, tall in itertools.product((64, 128, 256), (16, flash_decode.MAX_ROWS)):
        for config in flash_decode.PARTS[d]:
            row = {"kernel": "decode", "d": d, "rows": tall, "config": str(config)}
            rows.append(row | inspected(decoding(d, config, rows=tall)))
    for ones in ((), ("n_queries",), ("n_keys",), ("n_queries", "n_keys", "n_rows")):
        decoding(64, flash_decode.PARTS[64][0], "fp16", ones=ones, lengths=not ones)
    decoding(64, flash_decode.PARTS[torch.float32][0], "fp32")
    rows += [
        {"kernel": "merge", "d": d} | inspected(merging(d, ones))
        for d in (64, 128, 256)
        for ones in ((), ("n_splits",))
    ]
    return rows


class NoDriver:
    """As much of a GPU's driver as the autotuner asks for. Each measurement gives a longer time than the one before."""

    def __init__(self):
        self.measured = 0

    def get_current_target(self):
        return HOPPER

    def get_benchmarker(self):
        def bench(call, quantiles):
            call()
            self.measured += 1
            return [float(self.measured)] * 3

        return bench


def tuning():
    """How many configurations are measured in which launch."""
    driver = NoDriver()
    triton.runtime.driver.set_active(driver)
    launched = []
    triton.runtime.JITFunction.run = lambda self, *args, **options: launched.append(args)
    counts = {}
    lengths = {"decode": 1, "decode again": 1, "prefill": 600, "by a new autotuner": 600}
    for name, n in lengths.items():
        if name == "by a new autotuner":
            triton_setup._autotune.cache_clear()
        driver.measured = 0
        q, k = (torch.zeros(1, 2, length, 64, dtype=torch.bfloat16) for length in (n, 600))
        flash.forward(q, k, k, True, 0.125)
        counts[name] = driver.measured
    config = flash.FORWARD[64][0]  # the first to be measured, and so the fastest
    queries, keys, *_ = launched[-1]
    assert [queries.block_shape[2], keys.block_shape[2]] == [config.kwargs["BLOCK_Q"], config.kwargs["BLOCK_K"]]
    return counts


if __name__ == "__main__":
    json.dump(tuning() if "--tuning" in sys.argv else all_of_them(), sys.stdout)
