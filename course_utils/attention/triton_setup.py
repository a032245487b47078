"""What the Triton kernels stand on: the interpreter where there is no GPU, descriptors of tensors, tuned launches.

Import `triton` and `tl` from here, so that the interpreter is chosen before Triton loads.
"""

import contextlib
import functools
import math
import os
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from course_utils.attention.shapes import check_grouped


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


@contextlib.contextmanager
def launch_lock(x: Tensor) -> Iterator[None]:
    """To launch within, on the device of x. Neither Triton's interpreter nor its autotuner can serve two threads."""
    with _ONE_AT_A_TIME, torch.cuda.device_of(x):
        if x.is_cuda:
            torch.cuda.set_device(x.device)  # descriptors need a context, which a new thread does not have
        yield


def config(block_q: int | None, block_k: int, warps: int, stages: int, registers: int | None = None) -> triton.Config:
    """A way to run a kernel: rows of the blocks, warps, stages of loads in flight, most registers per thread.

    block_q is None for a kernel that is told its rows of queries.
    """
    blocks = {"BLOCK_Q": block_q} if block_q else {}
    blocks["BLOCK_K"] = block_k
    return triton.Config(blocks, num_warps=warps, num_stages=stages, maxnreg=registers)


# In the interpreter only the number of steps counts. The two sizes differ, so that none stands in for the other.
INTERPRETER_CONFIG = config(64, 32, 4, 1)


def tune(kernel: Any, configs: dict, x: Tensor, in_interpreter: triton.Config | None = None) -> Any:
    """The kernel, to be launched with the fastest of its configurations, and with `situation` as one more argument.

    configs maps 64, 128 and 256 (the head dimension, rounded up) and torch.float32 to lists of `config`; x, of any
    (B, h, T, d_head), says which list. The first launch in a situation measures the whole list, and Triton keeps the
    times in its cache on disk. The interpreter has one configuration, INTERPRETER_CONFIG where none is given.
    """
    if interpreted():
        return _autotune(kernel, (in_interpreter or INTERPRETER_CONFIG,))
    family = torch.float32 if x.dtype == torch.float32 else max(64, pad_d_head(x.shape[-1]))
    return _autotune(kernel, tuple(configs[family]))


@functools.cache
def _autotune(kernel: Any, configs: tuple) -> Any:
    return triton.autotune(list(configs), key=["situation"], cache_results=True)(_Prepared(kernel))


def situation(q: Tensor, k: Tensor, causal: bool) -> tuple[str | int, ...]:
    """What the fastest configuration depends on: launches of equal situations share one.

    q is (B, h, n, d_head), k (B, h_kv, m, d_head). The card, dtype, head dimension and mask count as they are; n, m and
    the number of heads in the batch, B · h, only roughly. So decoding, with n = 1, shares nothing with prefill.
    """
    B, h, n, d = q.shape
    card = torch.cuda.get_device_name(q.device) if q.is_cuda else q.device.type
    rough_n, rough_m = (_steps(length, (16, 512, 2048, 8192)) for length in (n, k.shape[2]))
    return card, str(q.dtype), pad_d_head(d), int(causal), rough_n, rough_m, _steps(B * h, (8, 32, 128, 512))


def _steps(number: int, bounds: tuple[int, ...]) -> int:
    return sum(number > bound for bound in bounds)


class _Prepared(triton.KernelInterface):
    """A kernel as the autotuner calls it: each descriptor gets the rows of the configuration, `situation` is dropped.

    A hook of the configurations could set the rows too, but Triton keeps no times of configurations that have one.
    """

    def __init__(self, kernel: Any) -> None:
        self.fn = kernel
        self.arg_names = [*kernel.arg_names, "situation"]

    def run(self, *args: Any, situation: Any = None, **options: Any) -> Any:
        arguments = dict(zip(self.arg_names, args, strict=False)) | options
        for name, block in TILES.items():
            if name in arguments:
                arguments[name].block_shape[2] = arguments[block]
        return self.fn.run(*args, **options)


def check_inputs(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise, and say why, unless the kernels can take q (B, h, n, d_head), k and v (B, h_kv, m, d_head)."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} is {type(x).__name__}, not a tensor: convert it with torch.as_tensor")
    if not q.ndim == k.ndim == v.ndim == 4:
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        raise ValueError(f"q, k, v are {shapes}: they need four axes, (B, heads, tokens, d_head)")
    check_grouped(tuple(q.shape), tuple(k.shape), tuple(v.shape))
    d = q.shape[-1]
    if v.shape[-1] != d or d % 8 or not 16 <= d <= 256:
        raise ValueError(f"d_head is {d} ({v.shape[-1]} in v): give one for all, a multiple of 8 from 16 to 256")
    if max(q.shape[:2]) > 65535:
        raise ValueError(f"q is {tuple(q.shape)}: a GPU's grid takes at most 65,535 sequences and as many heads")
    if not q.dtype == k.dtype == v.dtype or q.dtype not in DTYPES:
        raise TypeError(f"q, k, v are {q.dtype}, {k.dtype}, {v.dtype}: all must be float16, or bfloat16, or float32")
    if not q.device == k.device == v.device:
        raise RuntimeError(f"q, k, v are on {q.device}, {k.device}, {v.device}: they need to be on one device")
    if interpreted() and q.dtype == torch.bfloat16:
        raise TypeError("q is bfloat16, which Triton's interpreter multiplies wrongly: use float16 or float32")
    if not interpreted() and q.device.type != "cuda":
        raise RuntimeError(f"q is on {q.device}: move it to the GPU, or start Python with TRITON_INTERPRET=1")


def positive_scale(q: Tensor, scale: float) -> tuple[Tensor, float]:
    """The same scores with a positive scale: the kernels take the largest score before scaling."""
    if scale > 0:
        return q, scale
    return (-q, -scale) if scale else (q * 0, 1.0)


def pad_d_head(d_head: int) -> int:
    """The power of two in which a head's vector is held on the chip; descriptors fill it up with zeros."""
    return triton.next_power_of_2(d_head)


def tiles(x: Tensor, rows: int = 1) -> TensorDescriptor:
    """A descriptor of x (B, h, T, d_head): kernels read and write tiles of it, `rows` tokens of one head at a time.

    Past the end of a sequence or of a head's vector it reads zeros and writes nothing. A config sets the rows anew.
    """
    # An axis of size 1 may have any stride; here it gets a row's, which is a multiple of 16 bytes as it has to be.
    strides = [stride if size > 1 else x.shape[-1] for size, stride in zip(x.shape, x.stride(), strict=True)]
    return TensorDescriptor(x, list(x.shape), [*strides[:-1], 1], [1, 1, rows, pad_d_head(x.shape[-1])])


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
