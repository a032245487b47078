"""How many bytes attention moves between a slow memory and a fast one: counted while it runs, and by formula.

Slow memory is a GPU's device memory (HBM), fast memory the few hundred kilobytes beside the arithmetic units. q, k, v
and the results live in the slow one; arithmetic sees only what is in the fast one. One head, plain (n, d) matrices:
for B sequences of h heads, multiply by B·h.

Naive attention is three passes, each written out before the next: S = q kᵀ, P = softmax(S), o = P v. It moves the
n × m matrix four times: write S, read S, write P, read P (Dao et al. 2022, algorithm 0). Tiled attention never moves
it. Its loop has queries outside and keys inside, as in FlashAttention-2: q is read once, o and lse are written once,
and k and v are read again for every block of queries. So with the same blocks tiling saves those four passes, and pays
for lse. A fast memory of M numbers holds blocks of Θ(M/d) queries; there are Θ(T·d/M) blocks and each reads Θ(T·d).
That is Θ(T²d²/M) in all, against Θ(T·d + T²). Source: Dao et al. 2022, theorem 2, for d ≤ M ≤ T·d.
"""

import math

import torch
from torch import Tensor

from course_utils.attention.shapes import check_causal, check_scale, check_shapes, whole
from course_utils.attention.tensors import softmax
from course_utils.attention.tiled import key_blocks, mask_tile, nothing, query_blocks

# --- the meter ------------------------------------------------------------------------------------------------------


class FastMemory:
    """A small memory that counts: `read` and `written` are bytes moved from and to the slow memory since the start.

    `held` is how many bytes are in it now, `peak` the most there ever were. What would pass the capacity raises
    MemoryError and changes nothing. The capacity is a whole number, at least 1: else TypeError or ValueError.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = whole("capacity_bytes", capacity_bytes)
        self.read = self.written = self.held = self.peak = 0
        self._inside: dict[int, Tensor] = {}

    @property
    def traffic(self) -> int:
        """Bytes moved, both ways together."""
        return self.read + self.written

    def load(self, slow: Tensor) -> Tensor:
        """Copy a tensor from the slow memory; returns the copy to compute with."""
        self._check_room(slow)
        self.read += _size(slow)
        return self.hold(slow.clone())

    def hold(self, made: Tensor) -> Tensor:
        """Make room for a tensor that was computed here. Nothing moves."""
        if id(made) in self._inside:
            return made
        self._check_room(made)
        self._inside[id(made)] = made
        self.held += _size(made)
        self.peak = max(self.peak, self.held)
        return made

    def store(self, tensor: Tensor, slow: Tensor) -> None:
        """Copy a tensor that is here into a tensor of the slow memory, of the same shape."""
        self._check_inside(tensor)
        slow.copy_(tensor)
        self.written += _size(slow)

    def release(self, *tensors: Tensor) -> None:
        """Forget tensors that are here, to make room."""
        for tensor in tensors:
            self._check_inside(tensor)
        for tensor in tensors:
            del self._inside[id(tensor)]
            self.held -= _size(tensor)

    def _check_room(self, tensor: Tensor) -> None:
        if self.held + _size(tensor) > self.capacity_bytes:
            raise MemoryError(
                f"{self.held} of {self.capacity_bytes} bytes are held and {_size(tensor)} more do not fit: "
                "release something first, or use smaller blocks"
            )

    def _check_inside(self, tensor: Tensor) -> None:
        if id(tensor) not in self._inside:
            raise ValueError(f"a tensor of shape {tuple(tensor.shape)} is not in fast memory: load it or hold it first")


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


# --- attention through the meter ------------------------------------------------------------------------------------


@torch.no_grad()
def metered_naive(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    memory: FastMemory,
    causal: bool = False,
    scale: float | None = None,
    block_q: int | None = None,
    block_k: int | None = None,
) -> Tensor:
    """Attention in three passes, with S and P written to slow memory: returns o (n, d_v), while `memory` counts.

    q is (n, d_k), k (m, d_k), v (m, d_v), float32 or float64. Blocks are those of `metered_forward`. A causal mask is
    put on when the softmax runs, and saves no byte. Raises as `metered_forward` does, and ValueError where `memory`
    cannot hold one row of S and one of P.
    """
    block_q, block_k = _verified_block_sizes(q, k, v, memory, block_q, block_k)
    causal = check_causal(causal)
    scale = check_scale(scale, q.shape[-1])
    two_rows = 2 * q.element_size() * max(1, len(k))
    rows_at_once = _room(memory) // two_rows
    if rows_at_once == 0:
        raise ValueError(
            f"a row of S and one of P take {two_rows} bytes and {_room(memory)} are free: softmax needs both"
        )
    scores = q.new_empty(len(q), len(k))
    weights = q.new_empty(len(q), len(k))
    o = q.new_empty(len(q), v.shape[-1])
    _write_scores(q, k, scale, scores, memory, block_q, block_k)
    _write_weights(scores, causal, weights, memory, rows_at_once)
    _write_output(weights, v, o, memory, block_q, block_k)
    return o


def _write_scores(
    q: Tensor, k: Tensor, scale: float, scores: Tensor, memory: FastMemory, block_q: int, block_k: int
) -> None:
    """S = q kᵀ · scale: reads q once and k for each block of queries, writes S."""
    for queries in _blocks(len(q), block_q):
        q_block = memory.load(q[queries])
        for keys in _blocks(len(k), block_k):
            k_block = memory.load(k[keys])
            s = memory.hold((q_block @ k_block.T).mul_(scale))
            memory.store(s, scores[queries, keys])
            memory.release(k_block, s)
        memory.release(q_block)


def _write_weights(scores: Tensor, causal: bool, weights: Tensor, memory: FastMemory, rows_at_once: int) -> None:
    """P = softmax(S), whole rows at a time: reads S, writes P."""
    n, m = scores.shape
    for queries in _blocks(n, rows_at_once):
        s = memory.load(scores[queries])
        if causal:
            mask_tile(s, queries, slice(0, m), n, m)
        p = memory.hold(softmax(s))
        memory.store(p, weights[queries])
        memory.release(s, p)


def _write_output(weights: Tensor, v: Tensor, o: Tensor, memory: FastMemory, block_q: int, block_k: int) -> None:
    """o = P v: reads P once and v for each block of queries, writes o."""
    for queries in _blocks(len(o), block_q):
        acc = memory.hold(torch.zeros_like(o[queries]))
        for keys in _blocks(len(v), block_k):
            p = memory.load(weights[queries, keys])
            v_block = memory.load(v[keys])
            acc.addmm_(p, v_block)
            memory.release(p, v_block)
        memory.store(acc, o[queries])
        memory.release(acc)


@torch.no_grad()
def metered_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    memory: FastMemory,
    causal: bool = False,
    scale: float | None = None,
    block_q: int | None = None,
    block_k: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The tiled forward, one head: returns (o, lse), of shapes (n, d_v) and (n,), while `memory` counts.

    q is (n, d_k), k (m, d_k), v (m, d_v), float32 or float64. The blocks are the largest that `blocks_that_fit` in what
    is free of `memory`, unless given. Rows that attend to nothing stay 0 (−inf in lse) and move nothing. Raises
    ValueError for shapes or blocks that do not fit, TypeError for other dtypes, before anything moves.
    """
    block_q, block_k = _verified_block_sizes(q, k, v, memory, block_q, block_k)
    n = len(q)
    m = len(k)
    causal = check_causal(causal)
    scale = check_scale(scale, q.shape[-1])
    o, lse = q.new_zeros(n, v.shape[-1]), q.new_full((n,), -torch.inf)
    for queries in query_blocks(n, m, block_q, causal):
        q_block = memory.load(q[queries]).mul_(scale)
        m_run, l, acc = (memory.hold(x) for x in nothing((len(q_block),), v.shape[-1], q_block))
        for keys, on_diagonal in key_blocks(queries, n, m, block_k, causal):
            k_block, v_block = memory.load(k[keys]), memory.load(v[keys])
            p = memory.hold(q_block @ k_block.T)  # scores first, weights soon
            if on_diagonal:
                mask_tile(p, queries, keys, n, m)
            m_new = memory.hold(p.amax(dim=-1))
            torch.maximum(m_run, m_new, out=m_new)
            rescale = m_run.sub_(m_new).exp_()  # written over the old m, which is not needed again
            p.sub_(m_new[:, None]).exp_()
            row_sum = memory.hold(p.sum(dim=-1))
            l.mul_(rescale).add_(row_sum)
            acc.mul_(rescale[:, None]).addmm_(p, v_block)
            memory.release(k_block, v_block, p, row_sum, m_run)
            m_run = m_new
        memory.store(acc.div_(l[:, None]), o[queries])
        memory.store(m_run.add_(l.log_()), lse[queries])
        memory.release(q_block, acc, m_run, l)
    return o, lse


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


# --- by formula -----------------------------------------------------------------------------------------------------


def naive_traffic(n: int, m: int, d_k: int, d_v: int, itemsize: int, block_q: int | None = None) -> dict[str, int]:
    """Return the bytes that naive attention moves, {"read": …, "written": …}; equal to what `metered_naive` counts.

    Read: q, S, P, and k and v for each block of queries. Written: S, P and o. With block_q left out k and v are read
    once: the fewest bytes that three passes can move, those of Dao et al. 2022, algorithm 0.
    Raises TypeError for what is no whole number, ValueError for n or m below 0 or another number below 1.
    """
    n, m, itemsize = whole("n", n, least=0), whole("m", m, least=0), whole("itemsize", itemsize)
    d_k, d_v = whole("d_k", d_k), whole("d_v", d_v)
    block_q = None if block_q is None else whole("block_q", block_q)
    passes = 1 if block_q is None else math.ceil(n / block_q)
    numbers_read = n * d_k + passes * m * (d_k + d_v) + 2 * n * m
    written = 2 * n * m + n * d_v
    return {"read": numbers_read * itemsize, "written": written * itemsize}


def tiled_traffic(
    n: int, m: int, d_k: int, d_v: int, block_q: int, block_k: int, itemsize: int, causal: bool = False
) -> dict[str, int]:
    """Return the bytes that tiled attention moves, {"read": …, "written": …}; equal to what `metered_forward` counts.

    Read: q once, and for each block of queries the keys and values that its last query sees. Written: o and lse.
    block_k changes nothing: it is in the footprint only. Raises as `naive_traffic` does.
    """
    n, m, itemsize = whole("n", n, least=0), whole("m", m, least=0), whole("itemsize", itemsize)
    d_k = whole("d_k", d_k)
    d_v = whole("d_v", d_v)
    block_q = whole("block_q", block_q)
    whole("block_k", block_k)
    rows = min(n, m) if causal else (n if m else 0)  # queries that see a key
    passes = math.ceil(rows / block_q)
    keys_read = passes * m
    if causal:  # the last block sees all m keys, the one before it up to `rows` fewer, and so on up
        keys_read = sum(m - rows + min(rows, block_q * (i + 1)) for i in range(passes))
    numbers_read = rows * d_k + keys_read * (d_k + d_v)
    written = rows * (d_v + 1)
    return {"read": numbers_read * itemsize, "written": written * itemsize}


def footprint(block_q: int, block_k: int, d_k: int, d_v: int, itemsize: int) -> int:
    """Bytes of fast memory that tiled attention needs: blocks of q, k, v, the scores, acc, and four numbers a query.

    The four are m, the new m, l, and the sum of the block's weights.
    """
    block_q, block_k, itemsize = whole("block_q", block_q), whole("block_k", block_k), whole("itemsize", itemsize)
    d_k, d_v = whole("d_k", d_k), whole("d_v", d_v)
    return itemsize * (block_q * d_k + block_k * (d_k + d_v) + block_q * block_k + block_q * d_v + 4 * block_q)


def blocks_that_fit(capacity_bytes: int, d_k: int, d_v: int, itemsize: int) -> tuple[int, int]:
    """(block_q, block_k) for a fast memory: few keys and as many queries as fit, since only block_q saves traffic.

    With M = capacity_bytes / itemsize and d the mean of d_k and d_v: block_k = min(d, M / 8d), block_q = Θ(M/d).
    Raises ValueError where one query and one key do not fit, TypeError for what is no whole number.
    """
    capacity_bytes = whole("capacity_bytes", capacity_bytes, least=0)
    itemsize = whole("itemsize", itemsize)
    d_k, d_v = whole("d_k", d_k), whole("d_v", d_v)
    numbers = capacity_bytes // itemsize
    width = d_k + d_v
    block_k = max(1, min(width // 2, numbers // (4 * width)))
    block_q = (numbers - block_k * width) // (width + block_k + 4)
    if block_q < 1:
        least = footprint(1, 1, d_k, d_v, itemsize)
        raise ValueError(f"{capacity_bytes} bytes are too few for d_k = {d_k}, d_v = {d_v}: the least is {least}")
    return block_q, block_k


# --- checks ---------------------------------------------------------------------------------------------------------


def _room(memory: FastMemory) -> int:
    return memory.capacity_bytes - memory.held


def _verified_block_sizes(
    q: Tensor, k: Tensor, v: Tensor, memory: FastMemory, block_q: int | None, block_k: int | None
) -> tuple[int, int]:
    """Return the block sizes to use, after checking that everything fits."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 2:
            raise ValueError(f"{name} is {tuple(x.shape)}: traffic is counted for one head, a matrix of rows")
        if x.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"{name} is {x.dtype}: the meter takes torch.float32 and torch.float64 (for half precision, "
                "tiled_traffic and naive_traffic with itemsize=2)"
            )
        if x.dtype != q.dtype:
            raise TypeError(f"{name} is {x.dtype} but q is {q.dtype}: convert them to one dtype")
    check_shapes(tuple(q.shape), tuple(k.shape), tuple(v.shape))
    d_k = q.shape[-1]
    d_v = v.shape[-1]
    itemsize = q.element_size()
    if block_q is None and block_k is None:
        return blocks_that_fit(_room(memory), d_k, d_v, itemsize)
    if block_q is None or block_k is None:
        raise ValueError(f"block_q is {block_q} and block_k is {block_k}: give both, or neither")
    block_q, block_k = whole("block_q", block_q), whole("block_k", block_k)
    needed = footprint(block_q, block_k, d_k, d_v, itemsize)
    if needed > _room(memory):
        raise ValueError(f"blocks of {block_q} × {block_k} need {needed} bytes and {_room(memory)} are free")
    return block_q, block_k
