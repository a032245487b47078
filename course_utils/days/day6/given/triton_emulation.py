"""The Triton kernels around the learner's loops, and the same kernels in NumPy.

Triton is loaded only when it is needed, because it exists on Linux only and the other exercises do without it.
"""

import functools
import math
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.days.shared.given.draws import Array

if TYPE_CHECKING:
    import torch

LOG2_E = math.log2(math.e)
FAR = 1000.0  # the numbers behind a row are this much larger than its scores
NO_TRITON = (
    "Triton is not installed here, and this exercise needs it: it has wheels for Linux only. Its points count on a "
    "Linux machine, in the interpreter if there is no GPU"
)
triton = tl = None  # the modules, or NoTriton, once loaded


class NoTriton:
    """Stand-in for `triton` and `triton.language` where Triton is missing: cells that define kernels still run."""

    constexpr = None

    @staticmethod
    def jit(function: Any) -> Any:
        return function


def load_triton() -> tuple[Any, Any]:
    """Return (triton, triton.language), or stand-ins where Triton is missing.

    Without a GPU Triton runs in its interpreter, unless TRITON_INTERPRET is set, which then decides.
    """
    global triton, tl
    if triton is None:
        _interpret_without_gpu()
        try:
            import triton
            import triton.language as tl
            from triton.runtime import interpreter

            # The interpreter copies all its names into a kernel's module. With a __file__ a notebook would look like a
            # script, and could start no other process.
            vars(interpreter).pop("__file__", None)
        except ImportError:
            triton = tl = NoTriton
    return triton, tl


def _interpret_without_gpu() -> None:
    import torch

    if "TRITON_INTERPRET" in os.environ or torch.cuda.is_available():
        return
    os.environ["TRITON_INTERPRET"] = "1"
    # Torch's optimizers have already imported Triton, and prepared its functions for a GPU: make it load again.
    for name in [name for name in sys.modules if name.split(".")[0] == "triton" and "._C" not in name]:
        del sys.modules[name]


def through_the_kernel(
    inner: Any, q: Array, k: Array, v: Array, causal: bool, block_q: int, block_k: int
) -> dict[str, Any]:
    """Run `attention_kernel` with the given inner loop: o (heads, n, D_HEAD) and lse (heads, n).

    Tensors run in Triton. Arrays run through the same kernel in NumPy, with an inner loop written in NumPy, because the
    grader has no Triton.

    Raises:
        BadResult: for tensors where Triton is missing, or if `inner` is not a Triton function.
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
    """Run `attention_kernel` in Triton with an inner loop and return (o, lse).

    The tensors move to the GPU unless Triton's interpreter runs. Errors of the loop come without Triton's wrapping.

    Args:
        q: (heads, n, D_HEAD); D_HEAD and both block sizes are powers of two, at least 16.
        k: (heads, m, D_HEAD).
        v: (heads, m, D_HEAD).

    Raises:
        RuntimeError: where Triton is missing.
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
    """Return the forward kernel, which takes its inner loop as an argument."""
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
            # There are at least as many keys as queries: every query sees all
            # keys before `unmasked`, and none from `stop` on.
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
    """Run `row_kernel`: for scores (rows, n) and values (n,), the softmax average o (rows,) and lse (rows,).

    Tensors run in Triton, arrays through the same kernel in NumPy, as in `through_the_kernel`.

    Raises:
        BadResult: for tensors where Triton is missing, or if `inner` is not a Triton function.
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
    """Run `row_kernel` in Triton around a pass and return (o, lse), each (rows,).

    In memory each row is followed by larger numbers and the values by NaN, so that a pass which reads beyond the end
    gives a wrong result. Errors of the pass come without Triton's wrapping.

    Args:
        scores: (rows, n) in float32.
        values: (n,) in float32.
        block: a power of two.

    Raises:
        RuntimeError: where Triton is missing.
    """
    triton, _ = load_triton()
    if triton is NoTriton:
        raise RuntimeError(NO_TRITON)
    import torch

    rows, n = scores.shape
    device = "cpu" if triton.knobs.runtime.interpret else "cuda"
    wide = torch.full((rows, n + block), float(scores.max()) + FAR, device=device)
    long = torch.full((n + block,), math.nan, device=device)
    wide[:, :n] = scores
    long[:n] = values
    o, lse = wide.new_empty(rows), wide.new_empty(rows)
    try:
        row_kernel()[(rows,)](wide, long, o, lse, n, wide.stride(0), one_pass=inner, BLOCK=block)
    except Exception as error:
        raise _root(error, inner) from None
    return o, lse


@functools.cache
def row_kernel() -> Any:
    """Return the kernel of a row, which takes its pass as an argument."""
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
    """Return the original error inside Triton, without the errors that Triton wraps around it."""
    at = None
    while True:
        at = error if hasattr(error, "node") else at  # an error of the compiler knows the place
        if error.__cause__ is None:
            break
        error = error.__cause__
    if "raise NotImplementedError" in getattr(inner, "src", ""):  # the compiler does not support raise
        return NotImplementedError()
    if at:
        message = str((error.error_message if error is at else error) or "Triton cannot compile this").strip()
        line = at.src.splitlines()[at.node.lineno - 1].strip()
        return RuntimeError(f"{message.splitlines()[0]}, at the line {line}")
    if isinstance(error, AssertionError) and not str(error):
        return AssertionError("Triton takes these arguments for wrong").with_traceback(error.__traceback__)
    return error


def _in_numpy(
    inner: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, block_q: int, block_k: int
) -> dict[str, Any]:
    """Run `attention_kernel` in NumPy, in float64."""
    heads, n, D_HEAD = q.shape
    n_keys = k.shape[1]
    scale_log2 = LOG2_E / math.sqrt(D_HEAD)
    o, lse = np.zeros((heads, n, D_HEAD)), np.zeros((heads, n))
    queries = Tiles(q, block_q)
    keys = Tiles(k, block_k)
    values = Tiles(v, block_k)
    for head in range(heads):
        for i in range(0, n, block_q):
            rows = i + np.arange(block_q)
            last = rows + n_keys - n if causal else 0 * rows + n_keys - 1
            unmasked = ((i + n_keys - n + 1) if causal else n_keys) // block_k * block_k
            stop = min(i + n_keys - n + block_q, n_keys) if causal else n_keys
            state = np.zeros((block_q, D_HEAD)), np.zeros(block_q), np.full(block_q, -math.inf)
            inputs = queries.load([head, i, 0]).reshape(block_q, D_HEAD), keys, values, head
            state = inner(*state, *inputs, 0, unmasked, last, scale_log2, False, D_HEAD, block_k)
            acc, l, m = inner(*state, *inputs, unmasked, stop, last, scale_log2, True, D_HEAD, block_k)
            with np.errstate(all="ignore"):
                o[head, i : i + block_q] = (acc / l[:, None])[: n - i]
                lse[head, i : i + block_q] = ((m + np.log2(l)) / LOG2_E)[: n - i]
    return {"o": o, "lse": lse}


class Tiles:
    """Tensor descriptor in NumPy for an array (heads, T, D_HEAD): it reads tiles, with zeros past the end."""

    def __init__(self, array, rows):
        self.array = array.astype(np.float64)
        self.rows = rows

    def load(self, at: Any) -> Any:
        head, first, _ = at
        tile = np.zeros((1, self.rows, self.array.shape[2]))
        rows = self.array[head, first : first + self.rows]
        tile[0, : len(rows)] = rows
        return tile


def _rows_in_numpy(inner: Any, scores: np.ndarray, values: np.ndarray, block: int) -> dict[str, Any]:
    """Run `row_kernel` in NumPy, in float64."""
    behind = np.full(block, scores.max() + FAR, dtype=np.float64)
    long = np.append(values.astype(np.float64), np.full(block, math.nan))
    o, lse = np.zeros(len(scores)), np.zeros(len(scores))
    for row, own in enumerate(scores):
        m, l, blend = inner(np.append(own.astype(np.float64), behind), long, len(own), block)
        with np.errstate(all="ignore"):
            o[row] = np.divide(blend, l)
            lse[row] = m + np.log(l)
    return {"o": o, "lse": lse}
