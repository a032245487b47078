"""Attention that reads keys and values through a block table, and what pages save.

The keys of one sequence lie in blocks that may stand anywhere in the store. A server that copied them side by side
before every step would move them twice. So the loop goes over the table instead, one block at a time, and day 6's
online softmax joins what each block gives.
Source: Kwon et al. 2023 (PagedAttention), sections 4.1 and 4.3; Milakov and Gimelshein 2018, algorithm 3.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from course_utils.attention.shapes import check_scale, whole


def paged_attention(
    q: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    table: Sequence[int],
    length: int,
    scale: float | None = None,
) -> np.ndarray:
    """Causal attention of the last n tokens of a sequence whose keys and values are found through a block table.

    q is (h, n, d): the queries of positions length − n to length − 1. keys is (n_blocks, h_kv, block_size, d), values
    (n_blocks, h_kv, block_size, d_v), with h a multiple of h_kv. The token at position p is in slot p % block_size of
    block table[p // block_size]; slots behind the last token and blocks that the table does not name are never read.
    scale is 1/√d when left out. Returns (h, n, d_v) in the floating dtype of the input.
    Raises ValueError for shapes, a table or a length that do not fit, TypeError for block numbers that are no integers.
    """
    q = _floating(q)
    keys = _floating(keys)
    values = _floating(values)
    blocks, length = _check(q, keys, values, table, length)
    (h, n, d) = q.shape
    (h_kv, block_size, d_v) = values.shape[1:]
    rows = q.reshape(h_kv, h // h_kv * n, d) * q.dtype.type(check_scale(scale, d))  # (h_kv, g·n, d)
    query_positions = np.tile(np.arange(length - n, length), h // h_kv)  # (g·n,)
    m = np.full(rows.shape[:2], -np.inf, rows.dtype)  # (h_kv, g·n): the largest score so far
    l = np.zeros_like(m)  # (h_kv, g·n): the sum of e^(score − m)
    o = np.zeros((*rows.shape[:2], d_v), rows.dtype)  # (h_kv, g·n, d_v): the sum of e^(score − m) · value
    for i, block in enumerate(blocks):
        positions = np.arange(i * block_size, min((i + 1) * block_size, length))  # (filled,)
        k, v = keys[block, :, : len(positions)], values[block, :, : len(positions)]  # (h_kv, filled, d or d_v), views
        scores = rows @ k.swapaxes(1, 2)  # (h_kv, g·n, filled)
        scores = np.where(positions > query_positions[:, None], -np.inf, scores)
        m_new = np.maximum(m, scores.max(axis=2))  # finite from the first block on: every query sees position 0
        p, shrink = np.exp(scores - m_new[..., None]), np.exp(m - m_new)
        l = l * shrink + p.sum(axis=2)
        o = o * shrink[..., None] + p @ v
        m = m_new
    return (o / l[..., None]).reshape(h, n, d_v)


class Waste(NamedTuple):
    """Slots of a store: reserved ones, and those among them that hold a token."""

    reserved: int
    used: int

    @property
    def wasted(self) -> int:
        """Slots that are reserved and hold nothing."""
        return self.reserved - self.used

    @property
    def share(self) -> float:
        """The share of the reserved slots that hold nothing, 0 where none is reserved."""
        return self.wasted / self.reserved if self.reserved else 0.0


def reserved_waste(lengths: Sequence[int], longest: int) -> Waste:
    """Slots for sequences of these lengths, in tokens, where each reserves `longest` slots from the start.

    Raises ValueError for a length above longest or below 0, TypeError for numbers that are not whole.
    """
    lengths = _lengths(lengths)
    longest = whole("longest", longest)
    if max(lengths, default=0) > longest:
        raise ValueError(f"a length is {max(lengths)} but longest is {longest}: make longest larger")
    return Waste(longest * len(lengths), sum(lengths))


def paged_waste(lengths: Sequence[int], block_size: int) -> Waste:
    """Slots for sequences of these lengths, in tokens, where each takes a block of block_size slots when it needs one.

    Raises ValueError for a length below 0, TypeError for numbers that are not whole.
    """
    lengths = _lengths(lengths)
    block_size = whole("block_size", block_size)
    return Waste(sum(-(-length // block_size) * block_size for length in lengths), sum(lengths))


def _lengths(lengths: Sequence[int]) -> list[int]:
    return [whole("a length", length, least=0) for length in lengths]


def _check(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, table: Sequence[int], length: int
) -> tuple[list[int], int]:
    """The blocks that hold the sequence and its length; ValueError or TypeError for what does not fit."""
    if q.ndim != 3:
        raise ValueError(f"q is {q.shape}: expected (h, n, d)")
    if keys.ndim != 4 or keys.shape[3] != q.shape[2]:
        raise ValueError(f"keys are {keys.shape}: expected (n_blocks, h_kv, block_size, d), d {q.shape[2]} as in q")
    if values.ndim != 4 or values.shape[:3] != keys.shape[:3]:
        raise ValueError(f"values are {values.shape} but keys {keys.shape}: one value for each key")
    (h, n, _) = q.shape
    (n_blocks, h_kv, block_size, _) = keys.shape
    if not h_kv or h % h_kv:
        raise ValueError(f"q has {h} heads and keys {h_kv}: the first must be a multiple of the second")
    length = whole("length", length)
    if not 1 <= n <= length:
        raise ValueError(f"q has {n} queries and length is {length}: give those of the last tokens, at least 1")
    needed = -(-length // whole("block_size", block_size))
    if len(table) < needed:
        raise ValueError(f"the table has {len(table)} blocks but {length} tokens need {needed} of {block_size} slots")
    blocks = [whole("a block of the table", block, least=0) for block in table[:needed]]
    if max(blocks) >= n_blocks:
        raise ValueError(f"the table names block {max(blocks)} but the store has blocks 0 to {n_blocks - 1}")
    return blocks, length


def _floating(x: ArrayLike) -> np.ndarray:
    x = np.asarray(x)
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)
