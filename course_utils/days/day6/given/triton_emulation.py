"""The kernels around the learner's Triton loops.

Triton is loaded when it is first needed: there is none outside Linux, and the other exercises do without it.
"""

import functools
import math
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.kernel.numbers import BadResult
from course_utils.days.shared.given.draws import Array

if TYPE_CHECKING:
    import torch

LOG2_E = math.log2(math.e)
FAR = 1000.0  # what lies behind a row is so much larger than all of it
NO_TRITON = (
    "Triton is not installed here, and this exercise needs it: it has wheels for Linux only. Its points count on a "
    "Linux machine, in the interpreter if there is no GPU"
)
triton = tl = None  # the modules, or stand-ins, once they are loaded


class NoTriton:
    """Stands for `triton` and `triton.language` where there is none: cells that define kernels can still be run."""

    constexpr = None

    @staticmethod
    def jit(function: Any) -> Any:
        return function


def load_triton() -> tuple[Any, Any]:
    """(triton, triton.language): its interpreter where there is no GPU, and stand-ins where there is no Triton.

    TRITON_INTERPRET, when set to 0 or 1, decides about the interpreter instead.
    """
    global triton, tl
    if triton is None:
        _interpret_without_gpu()
        try:
            import triton
            import triton.language as tl
            from triton.runtime import interpreter

            # It gives a kernel's module all names of its own. With a __file__ a notebook would look like a script, and
            # no other process could be started from it.
            vars(interpreter).pop("__file__", None)
        except ImportError:
            triton = tl = NoTriton
    return triton, tl


def _interpret_without_gpu() -> None:
    import torch

    if "TRITON_INTERPRET" in os.environ or torch.cuda.is_available():
        return
    os.environ["TRITON_INTERPRET"] = "1"
    # Torch's optimizers import Triton, and its own functions were then prepared for a GPU: let it load again.
    for name in [name for name in sys.modules if name.split(".")[0] == "triton" and "._C" not in name]:
        del sys.modules[name]


def through_the_kernel(
    inner: Any, q: Array, k: Array, v: Array, causal: bool, block_q: int, block_k: int
) -> dict[str, Any]:
    """Attention by the kernel below with the given inner loop: o (heads, n, D_HEAD) and lse (heads, n).

    With tensors it is Triton that runs it. With arrays the same kernel runs in NumPy, for loops that were written in
    NumPy: those of whoever judges, and has no Triton.
    """
    if isinstance(q, np.ndarray):
        return _in_numpy(inner, q, k, v, causal, block_q, block_k)
    if load_triton()[0] is NoTriton:
        raise BadResult(NO_TRITON)
    if not isinstance(inner, triton.KernelInterface):
        raise BadResult("attend_to_keys is no Triton function: keep the line @triton.jit above it")
    o, lse = launch(inner, q, k, v, causal, block_q, block_k)
    return {"o": o, "lse": lse}


def launch(
    inner: Any,
    q: "torch.Tensor",
    k: "torch.Tensor",
    v: "torch.Tensor",
    causal: bool = False,
    block_q: int = 16,
    block_k: int = 16,
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Run `attention_kernel` around an inner loop: (o, lse) of q (heads, n, D_HEAD), k and v (heads, m, D_HEAD).

    D_HEAD and the blocks are powers of two, at least 16. The tensors move to the GPU unless Triton's interpreter runs.
    Raises RuntimeError where there is no Triton, and what the loop raises.
    """
    triton, _ = load_triton()
    if triton is NoTriton:
        raise RuntimeError(NO_TRITON)
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    q, k, v = (x.contiguous().to("cpu" if triton.knobs.runtime.interpret else "cuda") for x in (q, k, v))
    heads, n, D_HEAD = q.shape
    o, lse = torch.empty_like(q), q.new_empty(heads, n, dtype=torch.float32)

    def tiles(x, rows):
        return TensorDescriptor(x, list(x.shape), list(x.stride()), [1, rows, D_HEAD])

    try:
        attention_kernel()[(triton.cdiv(n, block_q), heads)](
            tiles(q, block_q), tiles(k, block_k), tiles(v, block_k), tiles(o, block_q), lse,
            n, k.shape[1], LOG2_E / math.sqrt(D_HEAD),
            attend_to_keys=inner, CAUSAL=causal, D_HEAD=D_HEAD, BLOCK_Q=block_q, BLOCK_K=block_k,
        )  # fmt: skip
    except Exception as error:
        raise _root(error, inner) from None
    return o, lse


@functools.cache
def attention_kernel() -> Any:
    """The forward kernel, without its inner loop: that one is an argument."""
    load_triton()

    @triton.jit(do_not_specialize=["n_queries", "n_keys"])
    def attention_kernel(
        queries, keys, values, outputs, lse, n_queries, n_keys, scale_log2,
        attend_to_keys: tl.constexpr, CAUSAL: tl.constexpr,
        D_HEAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    ):  # fmt: skip
        i, head = tl.program_id(0) * BLOCK_Q, tl.program_id(1)
        q = queries.load([head, i, 0]).reshape(BLOCK_Q, D_HEAD)
        rows = i + tl.arange(0, BLOCK_Q)
        if CAUSAL:
            last = rows + n_keys - n_queries  # the last key that each query sees
            # Every query sees all keys before `unmasked`, and none from `stop` on.
            unmasked = (i + n_keys - n_queries + 1) // BLOCK_K * BLOCK_K
            stop = tl.minimum(i + n_keys - n_queries + BLOCK_Q, n_keys)
        else:
            last = tl.zeros_like(rows) + n_keys - 1
            unmasked = n_keys // BLOCK_K * BLOCK_K
            stop = n_keys

        acc = tl.zeros([BLOCK_Q, D_HEAD], tl.float32)
        l = tl.zeros([BLOCK_Q], tl.float32)
        m = tl.full([BLOCK_Q], float("-inf"), tl.float32)
        acc, l, m = attend_to_keys(
            acc, l, m, q, keys, values, head, 0, unmasked, last,
            scale_log2, False, D_HEAD, BLOCK_K,
        )  # fmt: skip
        acc, l, m = attend_to_keys(
            acc, l, m, q, keys, values, head, unmasked, stop, last,
            scale_log2, True, D_HEAD, BLOCK_K,
        )  # fmt: skip

        o = (acc / l[:, None]).to(outputs.dtype)
        outputs.store([head, i, 0], o.reshape(1, BLOCK_Q, D_HEAD))
        row_lse = (m + tl.log2(l)) * 0.6931471805599453  # from 2^x to e^x
        tl.store(lse + head * n_queries + rows, row_lse, mask=rows < n_queries)

    return attention_kernel


def through_the_row_kernel(inner: Any, scores: Array, values: Array, block: int) -> dict[str, Any]:
    """The softmax of each row of scores (rows, n) and its blend of values (n,): o (rows,) and lse (rows,).

    Tensors go through Triton, arrays through the same kernel in NumPy, as in `through_the_kernel`.
    """
    if isinstance(scores, np.ndarray):
        return _rows_in_numpy(inner, scores, values, block)
    if load_triton()[0] is NoTriton:
        raise BadResult(NO_TRITON)
    if not isinstance(inner, triton.KernelInterface):
        raise BadResult("one_pass is no Triton function: keep the line @triton.jit above it")
    o, lse = launch_rows(inner, scores, values, block)
    return {"o": o, "lse": lse}


def launch_rows(
    inner: Any, scores: "torch.Tensor", values: "torch.Tensor", block: int = 4
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Run `row_kernel` around `one_pass`: (o, lse), each (rows,), of scores (rows, n) and values (n,) in float32.

    block is a power of two. Behind each row lie larger numbers, behind the values NaN: other memory holds anything.
    Raises RuntimeError where there is no Triton, and what the pass raises.
    """
    triton, _ = load_triton()
    if triton is NoTriton:
        raise RuntimeError(NO_TRITON)
    import torch

    rows, n = scores.shape
    device = "cpu" if triton.knobs.runtime.interpret else "cuda"
    wide = torch.full((rows, n + block), float(scores.max()) + FAR, device=device)
    long = torch.full((n + block,), math.nan, device=device)
    wide[:, :n], long[:n] = scores, values
    o, lse = wide.new_empty(rows), wide.new_empty(rows)
    try:
        row_kernel()[(rows,)](wide, long, o, lse, n, wide.stride(0), one_pass=inner, BLOCK=block)
    except Exception as error:
        raise _root(error, inner) from None
    return o, lse


@functools.cache
def row_kernel() -> Any:
    """The kernel of a row, without its pass: that one is an argument."""
    load_triton()

    @triton.jit(do_not_specialize=["n"])
    def row_kernel(
        scores, values, outputs, lse, n, stride,
        one_pass: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0)
        m, l, o = one_pass(scores + row * stride, values, n, BLOCK)
        tl.store(outputs + row, o / l)
        tl.store(lse + row, m + tl.log(l))

    return row_kernel


def _root(error: BaseException, inner: Any) -> BaseException:
    """What went wrong inside Triton, freed of what Triton wraps around it."""
    at = None
    while True:
        at = error if hasattr(error, "node") else at  # a compiler's error knows the place
        if error.__cause__ is None:
            break
        error = error.__cause__
    if "raise NotImplementedError" in getattr(inner, "src", ""):  # a compiler knows no raise
        return NotImplementedError()
    if at:
        said = str((error.error_message if error is at else error) or "Triton cannot compile this").strip()
        line = at.src.splitlines()[at.node.lineno - 1].strip()
        return RuntimeError(f"{said.splitlines()[0]}, at the line {line}")
    if isinstance(error, AssertionError) and not str(error):
        return AssertionError("Triton takes these arguments for wrong").with_traceback(error.__traceback__)
    return error


def _in_numpy(
    inner: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, block_q: int, block_k: int
) -> dict[str, Any]:
    """`attention_kernel` in NumPy, in float64."""
    heads, n, D_HEAD = q.shape
    n_keys, scale_log2 = k.shape[1], LOG2_E / math.sqrt(D_HEAD)
    o, lse = np.zeros((heads, n, D_HEAD)), np.zeros((heads, n))
    queries, keys, values = Tiles(q, block_q), Tiles(k, block_k), Tiles(v, block_k)
    for head in range(heads):
        for i in range(0, n, block_q):
            rows = i + np.arange(block_q)
            last = rows + n_keys - n if causal else 0 * rows + n_keys - 1
            unmasked = ((i + n_keys - n + 1) if causal else n_keys) // block_k * block_k
            stop = min(i + n_keys - n + block_q, n_keys) if causal else n_keys
            state = np.zeros((block_q, D_HEAD)), np.zeros(block_q), np.full(block_q, -math.inf)
            given = queries.load([head, i, 0]).reshape(block_q, D_HEAD), keys, values, head
            state = inner(*state, *given, 0, unmasked, last, scale_log2, False, D_HEAD, block_k)
            acc, l, m = inner(*state, *given, unmasked, stop, last, scale_log2, True, D_HEAD, block_k)
            with np.errstate(all="ignore"):
                o[head, i : i + block_q] = (acc / l[:, None])[: n - i]
                lse[head, i : i + block_q] = ((m + np.log2(l)) / LOG2_E)[: n - i]
    return {"o": o, "lse": lse}


class Tiles:
    """What a tensor descriptor is to Triton, for arrays (heads, T, D_HEAD): it reads tiles, and zeros past the end."""

    def __init__(self, array, rows):
        self.array, self.rows = array.astype(np.float64), rows

    def load(self, at: Any) -> Any:
        head, first, _ = at
        tile = np.zeros((1, self.rows, self.array.shape[2]))
        found = self.array[head, first : first + self.rows]
        tile[0, : len(found)] = found
        return tile


def _rows_in_numpy(inner: Any, scores: np.ndarray, values: np.ndarray, block: int) -> dict[str, Any]:
    """`row_kernel` in NumPy, in float64."""
    behind = np.full(block, scores.max() + FAR, dtype=np.float64)
    long = np.append(values.astype(np.float64), np.full(block, math.nan))
    o, lse = np.zeros(len(scores)), np.zeros(len(scores))
    for row, own in enumerate(scores):
        m, l, blend = inner(np.append(own.astype(np.float64), behind), long, len(own), block)
        with np.errstate(all="ignore"):
            o[row], lse[row] = np.divide(blend, l), m + np.log(l)
    return {"o": o, "lse": lse}
