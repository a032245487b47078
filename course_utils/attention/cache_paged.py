"""Keys and values in blocks of one pool, which rows find through tables and may share."""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.attention.blocks import BlockPool, CacheFull
from course_utils.attention.cache_base import Cache, positions_up_to, real_tokens, zeros
from course_utils.attention.shapes import whole


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
        self._block_tables: list[list[int]] = [[] for _ in range(self.batch)]
        self._keys, self._values = zeros(self, n_blocks, self.block_size)  # (n_blocks, h_kv, block_size, d_head)

    @property
    def tables(self) -> list[list[int]]:
        """The blocks of each row, in order: a list of B lists."""
        return [list(table) for table in self._block_tables]

    @property
    def free_blocks(self) -> int:
        return self.pool.n_free

    @property
    def blocks_in_use(self) -> int:
        """Blocks that at least one row holds, each counted once."""
        return self.pool.n_blocks - self.pool.n_free

    @property
    def slots_used(self) -> int:
        filled = {}  # tokens in each block; rows that share a block agree on it, since a writer makes a copy
        for table, length in zip(self._block_tables, self._lengths.tolist(), strict=True):
            for i, block in enumerate(table):
                filled[block] = max(0, min(self.block_size, length - i * self.block_size))
        return sum(filled.values())

    @property
    def slots_wasted(self) -> int:
        """Slots of blocks in use that hold no token: the internal fragmentation. Free blocks are kept by nobody."""
        return self.blocks_in_use * self.block_size - self.slots_used

    def blocks_needed(self, lengths: Sequence[int] | Tensor) -> int:
        """Return how many free blocks an update with these lengths (B,) takes, copies of shared blocks included."""
        added = self._one_a_row(lengths)
        return self._new_blocks(added) + self._copies(added)

    def _new_blocks(self, added: Tensor) -> int:
        ends = (self._lengths + added).tolist()
        missing = [
            math.ceil(end / self.block_size) - len(table) for end, table in zip(ends, self._block_tables, strict=True)
        ]
        return sum(max(0, blocks) for blocks in missing)  # an update that was interrupted may have left some over

    def _copies(self, added: Tensor) -> int:
        """Each row that writes to a shared block copies it, but the last row that still holds it need not."""
        writers = Counter(
            self._block_tables[row][-1] for row in range(self.batch) if added[row] and self._last_is_open(row)
        )
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
                table = self._block_tables[row]
                end = int(self._lengths[row]) + new
                while len(table) * self.block_size < end:
                    table.append(self.pool.allocate())

    def _own_last_block(self, row: int) -> None:
        """Copy on write: if the row's next token goes to a block that others hold too, take a copy of it first."""
        table = self._block_tables[row]
        if self._last_is_open(row) and self.pool.references(table[-1]) > 1:
            shared = table[-1]
            own = self.pool.allocate()
            for store in self._storage():
                store[own] = store[shared]
            self.pool.release(shared)
            table[-1] = own

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        block_tables = self._block_tables_as_tensor()  # (B, blocks of the longest row)
        rows, columns, positions = real_tokens(self, added)
        blocks = block_tables[rows, positions // self.block_size]
        slots = positions % self.block_size
        self._keys[blocks, :, slots] = k[rows, :, columns]  # (N, h_kv, d_head)
        self._values[blocks, :, slots] = v[rows, :, columns]
        key_positions = positions_up_to(self._lengths + added, self.device)  # (B, m)
        keys, values = (self._gather(store, block_tables, key_positions) for store in self._storage())
        return keys, values, key_positions  # (B, h_kv, m, d_head) twice, (B, m)

    def _gather(self, store: Tensor, block_tables: Tensor, key_positions: Tensor) -> Tensor:
        x = store[block_tables]  # (B, blocks, h_kv, block_size, d_head)
        x = x.transpose(1, 2).flatten(2, 3)  # (B, h_kv, blocks · block_size, d_head)
        x = x[:, :, : key_positions.shape[1]]  # (B, h_kv, m, d_head)
        return x.masked_fill((key_positions < 0)[:, None, :, None], 0)  # whatever was in an empty slot goes

    def _block_tables_as_tensor(self) -> Tensor:
        longest = max(map(len, self._block_tables))
        # Any block will do behind the end of a table: it is not read.
        filled = [table + [0] * (longest - len(table)) for table in self._block_tables]
        return torch.tensor(filled, dtype=torch.int64, device=self.device).reshape(self.batch, longest)

    def _copy_row(self, source: int, target: int) -> None:
        for block in self._block_tables[source]:
            self.pool.share(block)
        self._clear_row(target)  # after the sharing, in case both rows already hold some of the same blocks
        self._block_tables[target] = list(self._block_tables[source])

    def _clear_row(self, row: int) -> None:
        for block in self._block_tables[row]:
            self.pool.release(block)
        self._block_tables[row] = []
