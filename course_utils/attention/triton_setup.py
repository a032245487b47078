"""What the Triton kernels stand on: the interpreter where there is no GPU, descriptors of tensors, tuned launches.

Import `triton` and `tl` from here, so that the interpreter is chosen before Triton loads.
"""

import contextlib
import functools
import math
import os
import sys
import threading
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor


def _interpret_without_gpu() -> None:
    """Choose Triton's interpreter where there is no GPU. TRITON_INTERPRET, when set to 0 or 1, decides instead."""
    if "TRITON_INTERPRET" in os.environ or torch.cuda.is_available() or find_spec("triton") is None:
        return
    os.environ["TRITON_INTERPRET"] = "1"
    # Torch's optimizers import Triton, and its own functions were then prepared for a GPU: let it load again.
    for name in [name for name in sys.modules if name.split(".")[0] == "triton" and "._C" not in name]:
        del sys.modules[name]
    print("No GPU here: Triton's kernels run in its interpreter, right but slow. Keep T small.", file=sys.stderr)


_interpret_without_gpu()
try:
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError as missing:
    raise ImportError(f"these kernels need Triton, which has wheels for Linux only: {missing}") from missing

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
DTYPES = (torch.float16, torch.bfloat16, torch.float32)

# The block of each tensor that a kernel may take, by the name of its parameter there.
TILES = dict.fromkeys(("queries", "outputs", "d_outputs", "d_queries"), "BLOCK_Q")
TILES |= dict.fromkeys(("keys", "values", "d_keys", "d_values"), "BLOCK_K")


def interpreted() -> bool:
    """Do the kernels run in Triton's interpreter?"""
    return triton.knobs.runtime.interpret


_ONE_AT_A_TIME = threading.Lock()


def turn() -> contextlib.AbstractContextManager:
    """To launch within. The interpreter runs one kernel at a time: meanwhile it replaces functions of Triton itself."""
    return _ONE_AT_A_TIME if interpreted() else contextlib.nullcontext()


def config(block_q: int, block_k: int, warps: int, stages: int, registers: int | None = None) -> triton.Config:
    """A way to run a kernel: rows of the two blocks, warps, stages of loads in flight, most registers per thread."""
    blocks = {"BLOCK_Q": block_q, "BLOCK_K": block_k}
    return triton.Config(blocks, num_warps=warps, num_stages=stages, maxnreg=registers, pre_hook=_set_blocks)


def _set_blocks(arguments: dict[str, Any]) -> None:
    """Before each launch: give every descriptor the rows of this configuration."""
    for name, block in TILES.items():
        if name in arguments:
            arguments[name].block_shape[2] = arguments[block]


# In the interpreter only the number of steps counts. The two sizes differ, so that none stands in for the other.
INTERPRETER_CONFIG = config(64, 32, 4, 1)


def tuned(kernel: Any, configs: dict, x: Tensor, causal: bool, length: int) -> Any:
    """The kernel, to be launched with the fastest of its configurations for x (B, h, T, d_head) and that length.

    configs maps 64, 128 and 256 (the head dimension, rounded up) and torch.float32 to lists of `config`. The first call
    for a dtype, head dimension, mask and rough length measures the whole list. The interpreter has one of its own.
    """
    if interpreted():
        return _tuned(kernel, (INTERPRETER_CONFIG,))
    family = torch.float32 if x.dtype == torch.float32 else max(64, padded(x.shape[-1]))
    rough_length = sum(length > bound for bound in (512, 2048))
    return _tuned(kernel, tuple(configs[family]), x.device, x.dtype, padded(x.shape[-1]), causal, rough_length)


@functools.cache
def _tuned(kernel: Any, configs: tuple, *situation: Any) -> Any:
    return triton.autotune(list(configs), key=[])(kernel)


def padded(d_head: int) -> int:
    """The power of two in which a head's vector is held on the chip; descriptors fill it up with zeros."""
    return triton.next_power_of_2(d_head)


def tiles(x: Tensor, rows: int = 1) -> TensorDescriptor:
    """A descriptor of x (B, h, T, d_head): kernels read and write tiles of it, `rows` tokens of one head at a time.

    Past the end of a sequence or of a head's vector it reads zeros and writes nothing. A config sets the rows anew.
    """
    # An axis of size 1 may have any stride; here it gets a row's, which is a multiple of 16 bytes as it has to be.
    strides = [stride if size > 1 else x.shape[-1] for size, stride in zip(x.shape, x.stride(), strict=True)]
    return TensorDescriptor(x, list(x.shape), [*strides[:-1], 1], [1, 1, rows, padded(x.shape[-1])])


def readable(x: Tensor) -> Tensor:
    """x, or a copy where a descriptor cannot take it: it wants rows without gaps and strides of whole 16 bytes."""
    strides = [stride for size, stride in zip(x.shape[:-1], x.stride(), strict=False) if size > 1]
    whole = all(stride > 0 and stride * x.itemsize % 16 == 0 for stride in strides)
    fits = whole and x.stride(-1) == 1 and x.data_ptr() % 16 == 0
    return x if fits else x.clone(memory_format=torch.contiguous_format)


@triton.jit
def keys_to_visit(
    first, n_queries, n_keys,
    CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """For the BLOCK_Q queries from `first` on: the last key that each sees, and two ends, (last, unmasked, stop).

    Every query of the block sees all keys before `unmasked`, a whole number of blocks. From there up to `stop` only
    some do, so there the mask decides.
    """
    rows = first + tl.arange(0, BLOCK_Q)
    if CAUSAL:
        last = rows + n_keys - n_queries  # the last query sees the last key
        unmasked = first + n_keys - n_queries + 1  # as many as the block's first query sees
        stop = tl.minimum(unmasked + BLOCK_Q - 1, n_keys)
    else:
        last = tl.zeros_like(rows) + n_keys - 1
        unmasked, stop = n_keys, n_keys
    return last, tl.maximum(unmasked, 0) // BLOCK_K * BLOCK_K, stop
