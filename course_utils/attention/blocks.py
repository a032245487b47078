"""The pool that blocks of a cache come from: numbers and reference counts, without keys or values and without torch."""

from course_utils.attention.shapes import whole


class CacheFull(RuntimeError):
    """There is no room for the tokens. The cache is as it was: free a row, or try fewer tokens."""


class BlockPool:
    """Blocks numbered 0 to n_blocks - 1, and for each how many tables hold it. A block that no table holds is free.

    It knows numbers only, no keys or values. Source: Kwon et al. 2023 (PagedAttention), sections 4.2 to 4.4.
    """

    def __init__(self, n_blocks: int) -> None:
        n_blocks = whole("n_blocks", n_blocks)
        self._ref_counts = [0] * n_blocks
        self._free = list(reversed(range(n_blocks)))  # a stack: block 0 goes first

    @property
    def n_blocks(self) -> int:
        return len(self._ref_counts)

    @property
    def n_free(self) -> int:
        return len(self._free)

    def references(self, block: int) -> int:
        """Return how many tables hold the block."""
        if not 0 <= block < self.n_blocks:
            raise ValueError(f"block is {block} but the pool has blocks 0 to {self.n_blocks - 1}")
        return self._ref_counts[block]

    def allocate(self) -> int:
        """Return a free block, from now on held once. Raises CacheFull where all are held."""
        if not self._free:
            raise CacheFull(f"a block is needed but 0 of {self.n_blocks} are free: release one, or make a larger pool")
        block = self._free.pop()
        self._ref_counts[block] = 1
        return block

    def share(self, block: int) -> None:
        """One more table holds the block."""
        if self.references(block) == 0:
            raise ValueError(f"block {block} is free: it cannot be shared before it is allocated")
        self._ref_counts[block] += 1

    def release(self, block: int) -> None:
        """One table fewer holds the block; after the last one it is free."""
        if self.references(block) == 0:
            raise ValueError(f"block {block} is free already: it was released more often than held")
        self._ref_counts[block] -= 1
        if self._ref_counts[block] == 0:
            self._free.append(block)
