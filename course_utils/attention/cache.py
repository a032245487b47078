"""What a decoder remembers: the keys and values of one layer, kept in four ways behind one interface.

A cache answers one question: where does the token at position p of a row live?

    ContiguousCache      in slot p of the row
    SlidingWindowCache   in slot p % window of the row, over the token that was there
    PagedCache           in slot p % block_size of the block that the row's table names for p // block_size
    QuantisedCache       in slot p of the row, rounded to eight bits
"""

import math
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.attention.shapes import whole
from course_utils.attention.tensors import check_dtype


class CacheFull(RuntimeError):
    """There is no room for the tokens. The cache is as it was: free a row, or try fewer tokens."""


class Cache:
    """What the four caches share: B sequences ("rows"), each with its own length, in one layer.

    Keys and values come in as (B, h_kv, t, d_head), in the dtype and on the device of the cache. They are stored
    detached: no gradient reaches the tokens of an update, neither through this call nor through later ones. An error
    leaves the whole batch as it was. NaN and infinities are stored like other numbers.

    Chunks of tokens are padded on the right, because positions start at 0 in every row: the first real token of a row
    is then its first column, whatever its neighbours hold. Padding itself is dropped and takes neither slot nor
    position.
    """

    window: int | None = None  # a query sees its last `window` keys, itself included; None: all of them

    _keys: Tensor  # (rows or blocks, h_kv, slots, d_head)
    _values: Tensor

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.batch, self.n_kv_heads = whole("batch", batch), whole("n_kv_heads", n_kv_heads)
        self.d_head = whole("d_head", d_head)
        self.dtype = torch.get_default_dtype() if dtype is None else check_dtype(dtype)
        self.device = torch.empty((), device=device).device  # with its number: cuda is cuda:0
        self._lengths = torch.zeros(batch, dtype=torch.int64)  # kept on the CPU: they decide shapes

    @property
    def lengths(self) -> Tensor:
        """(B,) int64: how many tokens each row has been given. The window drops tokens, but not from this count."""
        return self._lengths.to(self.device, copy=True)

    def positions(self, t: int) -> Tensor:
        """(B, t) int64: the positions that the next t tokens of each row get. They start at 0."""
        return self.lengths[:, None] + torch.arange(t, device=self.device)

    def columns(self, t: int, lengths: Sequence[int] | Tensor | None = None) -> int:
        """How many keys per row, m, an update of t tokens will return: the columns that its mask needs.

        lengths is that of `update`, and refused alike. Nothing changes, and nobody asks yet whether there is room.
        """
        return self._columns(self._check_lengths(lengths, whole("t", t, least=0)))

    def check_room(self, t: int, lengths: Sequence[int] | Tensor | None = None) -> None:
        """Raise CacheFull, as an update of t tokens would, unless there is room. Nothing changes.

        With one cache a layer, ask all of them before the first update: then no layer gets ahead of another.
        """
        self._check_room(self._check_lengths(lengths, whole("t", t, least=0)))

    def update(
        self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Append keys and values; return (keys, values, key_positions), all that the new queries may need.

        k and v are (B, h_kv, t, d_head). lengths (B,) says how many of the t tokens are real in each row, the rest
        being padding on the right; 0 lets a row sit out; left out, all are real. Returns keys and values
        (B, h_kv, m, d_head), and key_positions (B, m) int64: the position of each key, or -1 for a slot that holds
        nothing, whose key and value are 0. Use what is returned before the cache changes again, or copy it.
        Raises ValueError or TypeError for tensors or lengths that do not fit, CacheFull where there is no room.
        """
        added = self._check_update(k, v, lengths)
        self._check_room(added)
        self._make_room(added)
        held = self._append(k.detach(), v.detach(), added)
        self._lengths += added
        return held

    def fork(self, source: int, target: int) -> None:
        """Row `target` becomes a copy of row `source`, and from then on a sequence of its own."""
        source, target = self._check_row(source), self._check_row(target)
        if source != target:
            self._copy_row(source, target)
            self._lengths[target] = self._lengths[source]

    def free(self, row: int) -> None:
        """Forget what the row holds: its next token is at position 0 again."""
        row = self._check_row(row)
        self._clear_row(row)
        self._lengths[row] = 0

    def reset(self) -> None:
        """Forget every row."""
        for row in range(self.batch):
            self.free(row)

    @property
    def n_bytes(self) -> int:
        """Bytes that the storage takes, whether tokens fill it or not."""
        return sum(store.nbytes for store in self._storage())

    @property
    def n_bytes_used(self) -> int:
        """Bytes of the storage that hold tokens."""
        return self.n_bytes // self.n_slots * self.slots_used

    @property
    def n_slots(self) -> int:
        """Tokens that the storage has room for, over all rows."""
        first = self._storage()[0]  # (rows or blocks, h_kv, slots, d_head)
        return first.shape[0] * first.shape[2]

    @property
    def slots_used(self) -> int:
        """Slots that hold a token."""
        raise NotImplementedError

    @property
    def slots_wasted(self) -> int:
        """Slots that rows keep to themselves and that hold no token; here all slots are reserved from the start."""
        return self.n_slots - self.slots_used

    # What each cache has to say: where its bytes are, whether there is room, and how to append.

    def _storage(self) -> tuple[Tensor, ...]:
        """The tensors that hold tokens."""
        return (self._keys, self._values)

    def _check_room(self, added: Tensor) -> None:
        """Raise CacheFull unless each row b has room for added[b] more tokens."""

    def _make_room(self, added: Tensor) -> None:
        """Prepare the storage for added[b] more tokens in each row b."""

    def _columns(self, added: Tensor) -> int:
        return int((self._lengths + added).max())  # as far as the longest row reaches

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Store the tokens, which were checked and have room; return what `update` returns."""
        raise NotImplementedError

    def _copy_row(self, source: int, target: int) -> None:
        for store in self._storage():
            store[target] = store[source]

    def _clear_row(self, row: int) -> None:
        for store in self._storage():
            store[row] = 0  # zeros, so that a view over longer rows shows nothing stale here

    # Checks.

    def _check_update(self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None) -> Tensor:
        """The number of real tokens in each row, (B,) int64 on the CPU; raise unless k, v and lengths fit."""
        for name, x in (("k", k), ("v", v)):
            if x.ndim != 4 or (x.shape[0], x.shape[1], x.shape[3]) != (self.batch, self.n_kv_heads, self.d_head):
                expected = f"({self.batch}, {self.n_kv_heads}, t, {self.d_head})"
                raise ValueError(f"{name} is {tuple(x.shape)}: this cache takes (B, h_kv, t, d_head) = {expected}")
            if x.dtype != self.dtype:
                raise TypeError(f"{name} is {x.dtype} but the cache is {self.dtype}: convert it, or make the cache so")
            if x.device != self.device:
                raise ValueError(f"{name} is on {x.device} but the cache is on {self.device}: move one of them")
        if k.shape != v.shape:
            raise ValueError(f"v is {tuple(v.shape)} but k is {tuple(k.shape)}: one value for each key")
        return self._check_lengths(lengths, k.shape[2])

    def _check_lengths(self, lengths: Sequence[int] | Tensor | None, t: int) -> Tensor:
        if lengths is None:
            return torch.full((self.batch,), t)
        lengths = self._one_a_row(lengths)
        for row, length in enumerate(lengths.tolist()):
            if not 0 <= length <= t:
                raise ValueError(f"lengths[{row}] is {length} but there are {t} tokens: it must be from 0 to {t}")
        return lengths

    def _one_a_row(self, lengths: Sequence[int] | Tensor) -> Tensor:
        lengths = torch.as_tensor(lengths, device="cpu")
        if lengths.shape != (self.batch,):
            raise ValueError(f"lengths is {tuple(lengths.shape)} but the cache has {self.batch} rows: one for each")
        if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype == torch.bool:
            raise TypeError(f"lengths is {lengths.dtype}: it counts tokens, in integers")
        return lengths.to(torch.int64)

    def _check_row(self, row: Any) -> int:
        try:
            number = operator.index(row)
        except TypeError:
            raise TypeError(f"row is {row!r}: rows are numbered by integers, 0 to {self.batch - 1}") from None
        if not 0 <= number < self.batch:
            raise ValueError(f"row is {number} but the cache has rows 0 to {self.batch - 1}")
        return number


class ContiguousCache(Cache):
    """Every row has `capacity` slots side by side, reserved from the start; the token at position p is in slot p.

    The keys and values that `update` returns are views of the storage, cut to the longest row: nothing is copied. Later
    updates write only to slots that the earlier key_positions call empty, but `free`, `fork` and `reset` change the
    rest too. (autograd notices: going backward through a step after the next update raises its in-place error.)
    """

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        capacity: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(batch, n_kv_heads, d_head, dtype, device)
        self.capacity = whole("capacity", capacity)
        self._reserve()

    @property
    def slots_used(self) -> int:
        return int(self._lengths.sum())

    def _reserve(self) -> None:
        self._keys, self._values = _zeros(self, self.batch, self.capacity)  # (B, h_kv, capacity, d_head)

    def _check_room(self, added: Tensor) -> None:
        for row, (old, new) in enumerate(zip(self._lengths.tolist(), added.tolist(), strict=True)):
            if old + new > self.capacity:
                raise CacheFull(
                    f"row {row} holds {old} tokens and {new} more make {old + new}, but the capacity is "
                    f"{self.capacity}: free the row, or make a longer cache"
                )

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        start, t = int(self._lengths[0]), k.shape[2]
        if (self._lengths == start).all() and (added == t).all():  # an even batch: one slice for all rows
            self._write((slice(None), slice(None), slice(start, start + t)), k, v)
        else:
            rows, columns, positions = _real_tokens(self, added)  # (N,) each, N real tokens in all
            self._write((rows, slice(None), positions), k[rows, :, columns], v[rows, :, columns])  # (N, h_kv, d_head)
        lengths = self._lengths + added
        return *self._read(int(lengths.max())), _positions_up_to(lengths, self.device)

    def _write(self, place: tuple, k: Tensor, v: Tensor) -> None:
        self._keys[place] = k
        self._values[place] = v

    def _read(self, m: int) -> tuple[Tensor, Tensor]:
        return self._keys[:, :, :m], self._values[:, :, :m]  # (B, h_kv, m, d_head)


class QuantisedCache(ContiguousCache):
    """A contiguous cache in int8: each token and head has one scale, its largest |x| / 127, and 8-bit integers.

    A number comes back within scale / 2 of what it was, plus its rounding to the cache's dtype. It is rounded to eight
    bits when it is written, so the new tokens too are returned as they were stored, and how a sequence is cut into
    chunks changes nothing. A NaN or an infinity makes its token's head NaN. Scales are float32, or float64 in a float64
    cache: a slot takes d_head + 4 (or 8) bytes for its key and as many for its value, per head. What `update` returns
    is a dequantised copy; kernels made for such caches dequantise while they read.
    Source: Dettmers et al. 2022 (LLM.int8()), sections 2.1 (absmax) and 3.1 (a scale for each vector).
    """

    def _reserve(self) -> None:
        sizes = (self.batch, self.n_kv_heads, self.capacity)
        scales = torch.promote_types(self.dtype, torch.float32)
        self._keys, self._values = (
            torch.zeros(*sizes, self.d_head, dtype=torch.int8, device=self.device) for _ in range(2)
        )
        self._key_scales, self._value_scales = (torch.zeros(*sizes, dtype=scales, device=self.device) for _ in range(2))

    def _storage(self) -> tuple[Tensor, ...]:
        return (self._keys, self._values, self._key_scales, self._value_scales)

    def _write(self, place: tuple, k: Tensor, v: Tensor) -> None:
        self._keys[place], self._key_scales[place] = quantise(k)
        self._values[place], self._value_scales[place] = quantise(v)

    def _read(self, m: int) -> tuple[Tensor, Tensor]:
        keys = dequantise(self._keys[:, :, :m], self._key_scales[:, :, :m], self.dtype)
        values = dequantise(self._values[:, :, :m], self._value_scales[:, :, :m], self.dtype)
        return keys, values  # (B, h_kv, m, d_head)


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round x (…, d_head) to int8 with one scale for each vector: returns integers (…, d_head) and scales (…).

    The scale is the vector's largest |x| / 127, in float32 (float64 for float64). Zeros get the scale 0.
    """
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    scales = x.abs().amax(dim=-1) / 127
    steps = x / scales.masked_fill(scales == 0, 1)[..., None]
    return steps.round().clamp(-127, 127).to(torch.int8), scales


def dequantise(integers: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """The numbers that int8 integers (…, d_head) and their scales (…) stand for, in `dtype`."""
    return (integers * scales[..., None]).to(dtype)


class SlidingWindowCache(Cache):
    """Every row is a ring of `window` slots; the token at position p goes to slot p % window, over an older one.

    The first of t new queries looks back at window - 1 older keys, and the last of them overwrites what the first still
    needs when t is large. So `update` returns the older keys and the new ones side by side, a copy of up to
    window + t - 1, and only then writes. Chunks of any size are exact, also longer than the window. The bytes do not
    grow. Source: Jiang et al. 2023 (Mistral 7B), section 2, rolling buffer cache.
    """

    window: int

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        window: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(batch, n_kv_heads, d_head, dtype, device)
        self.window = whole("window", window)
        self._keys, self._values = _zeros(self, self.batch, self.window)  # (B, h_kv, window, d_head)

    @property
    def slots_used(self) -> int:
        return int(self._lengths.clamp(max=self.window).sum())

    def _columns(self, added: Tensor) -> int:
        return self._n_older() + int(added.max())

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        older = self._older_positions()  # (B, up to window - 1)
        newer = _new_positions(self._lengths, added).to(self.device)  # (B, t)
        key_positions = torch.cat([older, newer], dim=1).clamp(min=-1)  # (B, m)
        t, empty = newer.shape[1], (key_positions < 0)[:, None, :, None]  # empty is (B, 1, m, 1)
        keys = torch.cat([self._look_up(self._keys, older), k[:, :, :t]], dim=2).masked_fill_(empty, 0)
        values = torch.cat([self._look_up(self._values, older), v[:, :, :t]], dim=2).masked_fill_(empty, 0)
        self._write(k, v, added)
        return keys, values, key_positions  # (B, h_kv, m, d_head) twice, (B, m)

    def _older_positions(self) -> Tensor:
        """The last positions of each row, as far back as a new query looks; negative before the row's beginning."""
        kept = self._n_older()
        return self.lengths[:, None] - kept + torch.arange(kept, device=self.device)  # (B, kept)

    def _n_older(self) -> int:
        return min(int(self._lengths.max()), self.window - 1)

    def _look_up(self, store: Tensor, positions: Tensor) -> Tensor:
        slots = (positions % self.window)[:, None, :, None]  # (B, 1, kept, 1)
        return torch.take_along_dim(store, slots, dim=2)  # (B, h_kv, kept, d_head)

    def _write(self, k: Tensor, v: Tensor, added: Tensor) -> None:
        rows, columns, positions = _real_tokens(self, added)
        stays = columns >= (added.to(self.device) - self.window)[rows]  # of a long chunk, only the end stays
        rows, columns, slots = rows[stays], columns[stays], positions[stays] % self.window
        self._keys[rows, :, slots] = k[rows, :, columns]  # (N, h_kv, d_head)
        self._values[rows, :, slots] = v[rows, :, columns]


class BlockPool:
    """Blocks numbered 0 to n_blocks - 1, and for each how many tables hold it. A block that no table holds is free.

    It knows numbers only, no keys or values. Source: Kwon et al. 2023 (PagedAttention), sections 4.2 to 4.4.
    """

    def __init__(self, n_blocks: int) -> None:
        n_blocks = whole("n_blocks", n_blocks)
        self._references = [0] * n_blocks
        self._free = list(reversed(range(n_blocks)))  # a stack: block 0 goes first

    @property
    def n_blocks(self) -> int:
        return len(self._references)

    @property
    def n_free(self) -> int:
        return len(self._free)

    def references(self, block: int) -> int:
        """How many tables hold the block."""
        if not 0 <= block < self.n_blocks:
            raise ValueError(f"block is {block} but the pool has blocks 0 to {self.n_blocks - 1}")
        return self._references[block]

    def allocate(self) -> int:
        """A free block, from now on held once. Raises CacheFull where all are held."""
        if not self._free:
            raise CacheFull(f"a block is needed but 0 of {self.n_blocks} are free: release one, or make a larger pool")
        block = self._free.pop()
        self._references[block] = 1
        return block

    def share(self, block: int) -> None:
        """One more table holds the block."""
        if self.references(block) == 0:
            raise ValueError(f"block {block} is free: it cannot be shared before it is allocated")
        self._references[block] += 1

    def release(self, block: int) -> None:
        """One table fewer holds the block; after the last one it is free."""
        if self.references(block) == 0:
            raise ValueError(f"block {block} is free already: it was released more often than held")
        self._references[block] -= 1
        if self._references[block] == 0:
            self._free.append(block)


class PagedCache(Cache):
    """Blocks of block_size slots from one pool; each row has a table of the blocks that hold it, in order.

    A row takes a block when it needs one, so it wastes less than one block. `fork` shares the blocks instead of copying
    them. A row that writes to a block which others hold too copies that block first. What `update` returns is a copy
    gathered from the blocks; kernels made for such caches read through the tables.
    Source: Kwon et al. 2023 (PagedAttention), section 4.
    """

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        block_size: int,
        n_blocks: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(batch, n_kv_heads, d_head, dtype, device)
        self.block_size = whole("block_size", block_size)
        self.pool = BlockPool(n_blocks)
        self._tables: list[list[int]] = [[] for _ in range(self.batch)]
        self._keys, self._values = _zeros(self, n_blocks, self.block_size)  # (n_blocks, h_kv, block_size, d_head)

    @property
    def tables(self) -> list[list[int]]:
        """The blocks of each row, in order: a list of B lists."""
        return [list(table) for table in self._tables]

    @property
    def free_blocks(self) -> int:
        return self.pool.n_free

    @property
    def blocks_in_use(self) -> int:
        """Blocks that at least one row holds, each counted once."""
        return self.pool.n_blocks - self.pool.n_free

    @property
    def slots_used(self) -> int:
        filled = {}  # tokens in each block; rows that share a block agree on it, since a writer takes a copy
        for table, length in zip(self._tables, self._lengths.tolist(), strict=True):
            for i, block in enumerate(table):
                filled[block] = max(0, min(self.block_size, length - i * self.block_size))
        return sum(filled.values())

    @property
    def slots_wasted(self) -> int:
        """Slots of blocks in use that hold no token: the internal fragmentation. Free blocks are kept by nobody."""
        return self.blocks_in_use * self.block_size - self.slots_used

    def blocks_needed(self, lengths: Sequence[int] | Tensor) -> int:
        """How many free blocks an update with these lengths (B,) takes, copies of shared blocks included."""
        added = self._one_a_row(lengths)
        return self._new_blocks(added) + self._copies(added)

    def _new_blocks(self, added: Tensor) -> int:
        ends = (self._lengths + added).tolist()
        missing = [math.ceil(end / self.block_size) - len(table) for end, table in zip(ends, self._tables, strict=True)]
        return sum(max(0, blocks) for blocks in missing)  # an update that was interrupted may have left some over

    def _copies(self, added: Tensor) -> int:
        """Each row that writes to a shared block copies it, but the last row that still holds it need not."""
        writers = Counter(self._tables[row][-1] for row in range(self.batch) if added[row] and self._last_is_open(row))
        return sum(min(writing, self.pool.references(block) - 1) for block, writing in writers.items())

    def _last_is_open(self, row: int) -> bool:
        """Is the row's last block partly filled, so that the next token goes there?"""
        return int(self._lengths[row]) % self.block_size > 0

    def _check_room(self, added: Tensor) -> None:
        needed = self.blocks_needed(added)
        if needed > self.free_blocks:
            raise CacheFull(
                f"blocks needed: {needed} ({self._copies(added)} to copy shared ones), but free: {self.free_blocks} of "
                f"{self.pool.n_blocks}; free a row, or make a larger pool"
            )

    def _make_room(self, added: Tensor) -> None:
        for row, new in enumerate(added.tolist()):
            if new:
                self._own_last_block(row)
                table, end = self._tables[row], int(self._lengths[row]) + new
                while len(table) * self.block_size < end:
                    table.append(self.pool.allocate())

    def _own_last_block(self, row: int) -> None:
        """Copy on write: if the row's next token goes to a block that others hold too, take a copy of it first."""
        table = self._tables[row]
        if self._last_is_open(row) and self.pool.references(table[-1]) > 1:
            shared, own = table[-1], self.pool.allocate()
            for store in self._storage():
                store[own] = store[shared]
            self.pool.release(shared)
            table[-1] = own

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tables = self._tables_as_tensor()  # (B, blocks of the longest row)
        rows, columns, positions = _real_tokens(self, added)
        blocks, slots = tables[rows, positions // self.block_size], positions % self.block_size
        self._keys[blocks, :, slots] = k[rows, :, columns]  # (N, h_kv, d_head)
        self._values[blocks, :, slots] = v[rows, :, columns]
        key_positions = _positions_up_to(self._lengths + added, self.device)  # (B, m)
        keys, values = (self._gather(store, tables, key_positions) for store in self._storage())
        return keys, values, key_positions  # (B, h_kv, m, d_head) twice, (B, m)

    def _gather(self, store: Tensor, tables: Tensor, key_positions: Tensor) -> Tensor:
        x = store[tables]  # (B, blocks, h_kv, block_size, d_head)
        x = x.transpose(1, 2).flatten(2, 3)  # (B, h_kv, blocks · block_size, d_head)
        x = x[:, :, : key_positions.shape[1]]  # (B, h_kv, m, d_head)
        return x.masked_fill((key_positions < 0)[:, None, :, None], 0)  # whatever was in an empty slot goes

    def _tables_as_tensor(self) -> Tensor:
        longest = max(map(len, self._tables))
        filled = [table + [0] * (longest - len(table)) for table in self._tables]  # any block will do: it is not read
        return torch.tensor(filled, dtype=torch.int64, device=self.device).reshape(self.batch, longest)

    def _copy_row(self, source: int, target: int) -> None:
        for block in self._tables[source]:
            self.pool.share(block)
        self._clear_row(target)  # after the sharing, in case both rows already hold some of the same blocks
        self._tables[target] = list(self._tables[source])

    def _clear_row(self, row: int) -> None:
        for block in self._tables[row]:
            self.pool.release(block)
        self._tables[row] = []


def _zeros(cache: Cache, n: int, slots: int) -> tuple[Tensor, Tensor]:
    """Room for keys and for values, (n, h_kv, slots, d_head) each."""
    sizes = (n, cache.n_kv_heads, slots, cache.d_head)
    keys, values = (torch.zeros(sizes, dtype=cache.dtype, device=cache.device) for _ in range(2))
    return keys, values


def _positions_up_to(lengths: Tensor, device: torch.device | str | None) -> Tensor:
    """(B, m): 0, 1, 2, … in each row up to its length, then -1; m is the longest length."""
    return _new_positions(torch.zeros_like(lengths), lengths).to(device)


def _new_positions(lengths: Tensor, added: Tensor) -> Tensor:
    """(B, t): the positions of the tokens that a row of `lengths` gets, then -1; t is the most that a row gets."""
    columns = torch.arange(int(added.max()))  # (t,)
    return torch.where(columns < added[:, None], lengths[:, None] + columns, -1)


def _real_tokens(cache: Cache, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The row, the column in the chunk and the position in the row of each real token, (N,) each."""
    positions = _new_positions(cache._lengths, added).to(cache.device)  # (B, t)
    rows, columns = torch.nonzero(positions >= 0, as_tuple=True)
    return rows, columns, positions[rows, columns]
