"""The roofline: a machine computes and moves bytes, and the slower of the two sets the time.

Intensity is FLOPs per byte moved between memory and chip. Below a machine's ridge point a task waits for memory, above
it for arithmetic. Bytes are counted as if each tensor crossed once, which is the best that any code can do.
Source: Williams, Waterman & Patterson 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from course_utils.costs.counts import FLOPS_PER_MULTIPLY_ADD, attention_flops, score_pairs
from course_utils.costs.memory import score_bytes, value_bytes
from course_utils.costs.sizes import whole

if TYPE_CHECKING:
    import torch

    from course_utils.costs.configurations import Configuration


class Machine(NamedTuple):
    """What a machine can do at best, by its data sheet or by your own measurement. memory_bytes is what it has."""

    name: str
    flops_per_second: float
    bytes_per_second: float
    memory_bytes: int | None = None
    source: str = ""

    @property
    def ridge_point(self) -> float:
        """The intensity, in FLOPs per byte, at which arithmetic and memory take equally long."""
        return self.flops_per_second / self.bytes_per_second


class Task(NamedTuple):
    """FLOPs to compute and bytes to move."""

    flops: int
    bytes: float

    @property
    def intensity(self) -> float:
        return arithmetic_intensity(self.flops, self.bytes)

    def __add__(self, other: Task) -> Task:  # type: ignore[override]  # tuples are joined by +, tasks are added
        """Both tasks, one after the other."""
        return Task(self.flops + other.flops, self.bytes + other.bytes)


def arithmetic_intensity(flops: float, bytes: float) -> float:
    """FLOPs per byte moved. Raises ValueError unless something is moved."""
    if bytes <= 0:
        raise ValueError(f"bytes is {bytes}: intensity needs at least one byte moved")
    return flops / bytes


def attainable(machine: Machine, intensity: float) -> float:
    """FLOP/s that the machine can reach at that intensity: the roofline itself, a slope and then a flat roof."""
    return min(machine.flops_per_second, intensity * machine.bytes_per_second)


def least_seconds(machine: Machine, task: Task) -> float:
    """Seconds below which the machine cannot do the task, with arithmetic and memory traffic overlapping perfectly."""
    return max(task.flops / machine.flops_per_second, task.bytes / machine.bytes_per_second)


def waits_for(machine: Machine, task: Task) -> str:
    """Return what the task waits for: "memory" left of the ridge point, else "arithmetic"."""
    return "memory" if task.intensity < machine.ridge_point else "arithmetic"


def matrix_product(rows: int, d_in: int, d_out: int, bytes_per_value: float | str | torch.dtype = 2) -> Task:
    """A (rows, d_in) activation times a (d_in, d_out) weight; rows is the tokens in flight, B in a decode step."""
    rows, d_in, d_out = whole(rows=rows, d_in=d_in, d_out=d_out)
    values = rows * d_in + d_in * d_out + rows * d_out
    return Task(FLOPS_PER_MULTIPLY_ADD * rows * d_in * d_out, values * value_bytes(bytes_per_value))


def attention_core(
    B: int,
    h: int,
    n: int,
    m: int | None = None,
    *,
    d_head: int,
    n_kv_heads: int | None = None,
    causal: bool = False,
    scores_stored: bool = False,
    bytes_per_value: float | str | torch.dtype = 2,
) -> Task:
    """softmax(QKᵀ)V for n queries and m keys: Q, K, V and O move once, as in FlashAttention.

    scores_stored=True is naive attention, which besides writes the scores, reads them for the softmax, writes the
    weights and reads them for the product with V. A decode step has n = 1. FLOPs as in counts.attention_flops.
    Raises ValueError when h is no multiple of n_kv_heads (h when left out).
    """
    n_kv_heads = h if n_kv_heads is None else n_kv_heads
    B, h, n, m = whole(B=B, h=h, n=n, m=n if m is None else m)
    d_head, n_kv_heads = whole(d_head=d_head, n_kv_heads=n_kv_heads)
    if h % n_kv_heads:
        raise ValueError(f"h is {h} and n_kv_heads {n_kv_heads}: the first must be a multiple of the second")
    width = value_bytes(bytes_per_value)
    moved = 2 * B * d_head * (h * n + n_kv_heads * m) * width
    if scores_stored:
        moved += 4 * score_bytes(B, h, n, m, width)
    return Task(attention_flops(B, h, n, m, d_k=d_head, causal=causal), moved)


def decode_step(model: Configuration, T: int, B: int = 1, bytes_per_value: float | str | torch.dtype = 2) -> Task:
    """One decode step of a whole model: every weight is read once for all B sequences, each sequence reads its cache.

    model is a configurations.Configuration, T the tokens attended to. The embedding of the input is one row and not
    counted; the output layer is. So the weights' intensity grows with B, and the cache's does not.
    """
    T, B = whole(T=T, B=B)
    output_layer = model.vocabulary * model.d_model
    in_layers = sum(layers * model.decode_flops(min(T, window or T)).total for layers, window in model.spans)
    per_token = in_layers + FLOPS_PER_MULTIPLY_ADD * output_layer
    weights = (model.layers * model.layer_parameters() + output_layer) * value_bytes(bytes_per_value)
    return Task(B * per_token, weights + model.cache_bytes(T, B, bytes_per_value))


def prefill(model: Configuration, T: int, B: int = 1, bytes_per_value: float | str | torch.dtype = 2) -> Task:
    """The pass over a prompt of T tokens: weights are read once, the cache is written; activations are not counted.

    The core is causal: token number i attends to i keys, or to the layer's window where that is less, so it takes as
    many FLOPs as T decode steps. The output layer is computed for the last token only.
    """
    T, B = whole(T=T, B=B)
    output_layer = model.vocabulary * model.d_model
    pairs = sum(layers * score_pairs(T, causal=True, window=window) for layers, window in model.spans)
    cores = 2 * FLOPS_PER_MULTIPLY_ADD * pairs * model.n_heads * model.d_head  # 2: scores, and their product with V
    beside = model.layer_flops(T)._replace(core=0).total  # what a layer does beside its core
    flops = model.layers * beside + cores + FLOPS_PER_MULTIPLY_ADD * output_layer
    weights = (model.layers * model.layer_parameters() + output_layer) * value_bytes(bytes_per_value)
    return Task(B * flops, weights + model.cache_bytes(T, B, bytes_per_value))


# The sheets write GB of memory, and mean 1024³ bytes (an H200 of "141 GB" tells torch of more than 139 GiB).
# Dense bf16 with fp32 accumulation; the data sheets of H100 and H200 print twice that, for matrices half of zeros.
MACHINES = {
    machine.name: machine
    for machine in (
        Machine("NVIDIA A100 80GB SXM", 312e12, 2.039e12, 80 * 2**30, "NVIDIA A100 data sheet"),
        Machine("NVIDIA H100 SXM", 989e12, 3.35e12, 80 * 2**30, "NVIDIA H100 data sheet"),
        Machine("NVIDIA H200 SXM", 989e12, 4.8e12, 141 * 2**30, "NVIDIA H200 data sheet"),
        Machine("GeForce RTX 4090", 165.2e12, 1.008e12, 24 * 2**30, "NVIDIA Ada architecture paper, appendix A"),
    )
}
