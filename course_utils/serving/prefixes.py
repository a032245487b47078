"""Prompts that begin alike share the blocks, or the slots, that hold their beginning.

`PrefixCache` names full blocks by a chain of hashes, as vLLM does. `RadixTree` keeps token sequences in a tree whose
edges are as long as possible, as SGLang does, and shares to the token. Both know numbers only, no keys or values.
Both leave at least one token of a prompt to compute: the next token is told from the output at the last one, and an
output is never stored.
Sources: Kwon et al. 2023 (PagedAttention), section 4.4; vLLM's design document "Automatic Prefix Caching"; Zheng et al.
2024 (SGLang), section 3.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from course_utils.attention.blocks import BlockPool, CacheFull
from course_utils.attention.shapes import whole

# --- blocks named by a chain of hashes ------------------------------------------------------------------------------


def chain_hashes(tokens: Sequence[int], block_size: int) -> list[str]:
    """Return the names of the full blocks of `tokens`, in order: each a hash of its tokens and of the name before it.

    So equal names mean equal tokens from the beginning on, not only within the block. A last block that is not full has
    no name. They are SHA-256, so that the same tokens have the same names in every process; Python's hash() has not.
    """
    block_size = whole("block_size", block_size)
    names = []
    before = ""
    for start in range(0, len(tokens) - block_size + 1, block_size):
        text = before + ":" + ",".join(str(int(token)) for token in tokens[start : start + block_size])
        before = hashlib.sha256(text.encode()).hexdigest()
        names.append(before)
    return names


class PrefixCache:
    """A pool of blocks in which full blocks keep their tokens after the last table let them go, until room is needed.

    The cache itself holds each block that has a name, besides the tables. A block that only the cache holds counts as
    free: `allocate` takes it when no other is left, the least recently used one first.
    """

    def __init__(self, n_blocks: int, block_size: int) -> None:
        self._pool = BlockPool(n_blocks)
        self.block_size = whole("block_size", block_size)
        self._blocks: OrderedDict[str, int] = OrderedDict()  # name -> block, the least recently used first
        self._names: dict[int, str] = {}  # block -> name

    @property
    def n_blocks(self) -> int:
        return self._pool.n_blocks

    @property
    def n_cached(self) -> int:
        """Blocks that have a name."""
        return len(self._blocks)

    @property
    def n_free(self) -> int:
        """Blocks that no table holds: empty ones, and named ones that may be evicted."""
        return self._pool.n_free + sum(self.references(block) == 0 for block in self._names)

    def references(self, block: int) -> int:
        """Return how many tables hold the block."""
        return self._pool.references(block) - (block in self._names)

    def lookup(self, tokens: Sequence[int]) -> list[int]:
        """Return the blocks of the longest cached prefix of `tokens`, in order. They are not held yet: `share` them.

        At least one token is left over, even if all of them are cached.
        """
        blocks: list[int] = []
        for name in chain_hashes(tokens[: max(0, len(tokens) - 1)], self.block_size):
            if name not in self._blocks:
                break
            blocks.append(self._blocks[name])
        return blocks

    def allocate(self) -> int:
        """A block to write to, held once. Evicts where no block is empty; raises CacheFull where tables hold all."""
        if not self._pool.n_free:
            self._evict()
        return self._pool.allocate()

    def share(self, block: int) -> None:
        """One more table holds the block. Raises ValueError for one that is neither held nor named."""
        self._pool.share(block)
        self._use(block)

    def release(self, block: int) -> None:
        """One table fewer holds the block. With a name it stays cached, without one it is empty after the last table.

        Release the blocks of a table from its end, so that the end of a prefix is evicted before its beginning.
        Raises ValueError for a block that no table holds.
        """
        if self.references(block) == 0:
            raise ValueError(f"block {block} is held by no table: it was released more often than held")
        self._pool.release(block)
        self._use(block)

    def keep(self, tokens: Sequence[int], table: Sequence[int]) -> None:
        """Name the full blocks of `tokens`, whose keys and values are in the blocks of `table`, in order.

        Where another block has the name already, the table's own one stays nameless: the table goes on reading it, and
        it is empty once the table lets it go. Raises ValueError for a table that is too short or does not hold them.
        """
        names = chain_hashes(tokens, self.block_size)
        if len(names) > len(table):
            raise ValueError(f"tokens fill {len(names)} blocks but the table has {len(table)}: give the whole table")
        for name, block in zip(names, table, strict=False):
            if self.references(block) == 0:
                raise ValueError(f"block {block} is held by no table: keep what a table holds, before it lets go")
            if name not in self._blocks and block not in self._names:
                self._pool.share(block)
                self._blocks[name] = block
                self._names[block] = name

    def serve(self, tokens: Sequence[int]) -> int:
        """One request by itself: look up, hold, compute the rest, keep, let go. Returns how many tokens were cached.

        Raises CacheFull where the prompt has more blocks than tables leave over; nothing is held then.
        """
        table = self.lookup(tokens)
        for block in table:
            self.share(block)
        n_cached = len(table) * self.block_size
        try:
            while len(table) * self.block_size < len(tokens):
                table.append(self.allocate())
            self.keep(tokens, table)
        finally:
            for block in reversed(table):
                self.release(block)
        return n_cached

    def _use(self, block: int) -> None:
        if block in self._names:
            self._blocks.move_to_end(self._names[block])

    def _evict(self) -> None:
        for name, block in self._blocks.items():
            if self.references(block) == 0:
                del self._blocks[name], self._names[block]
                self._pool.release(block)
                return
        raise CacheFull(f"a block is needed but tables hold all {self.n_blocks}: release one, or make a larger pool")


# --- a radix tree of token sequences --------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A run of tokens that follows its parent's: the slot of each token, children by their first token, locks.

    locks counts the requests that read this node or one below it. used is the tree's clock when it was last read.
    """

    tokens: tuple[int, ...] = ()
    slots: list[int] = field(default_factory=list)
    parent: "Node | None" = None
    children: dict[int, "Node"] = field(default_factory=dict)
    locks: int = 0
    used: int = 0


class RadixTree:
    """n_slots slots, each for the keys and values of one token, and a tree of the sequences that are cached in them.

    A slot belongs to the free ones, to a request that allocated it, or to the tree.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = whole("n_slots", n_slots)
        self.root = Node()
        self._free = list(reversed(range(self.n_slots)))  # a stack: slot 0 goes first
        self._clock = 0

    @property
    def n_free(self) -> int:
        """Slots that neither the tree nor a request has."""
        return len(self._free)

    @property
    def n_cached(self) -> int:
        """Slots that the tree has, one for each token in it."""
        return sum(len(node.tokens) for node in self._nodes())

    @property
    def n_locked(self) -> int:
        """Slots of the tree that a request reads and that cannot be evicted."""
        return sum(len(node.tokens) for node in self._nodes() if node.locks)

    def match(self, tokens: Sequence[int]) -> tuple[list[int], Node]:
        """The slots of the longest prefix of `tokens` in the tree, and the node where it ends: lock that to read them.

        At least one token is left over, also where all of them are cached. A node that matches in part is split.
        """
        return self._walk(tokens[: max(0, len(tokens) - 1)])

    def insert(self, tokens: Sequence[int], slots: Sequence[int]) -> list[int]:
        """Cache `tokens`, whose keys and values are in `slots`, one a token. Returns the slots the tree has for them.

        Where the tree had a beginning already, the slots that come back are the tree's. The caller reads those from now
        on, and then releases its own ones that differ: released first, they would be given away while still read.
        Raises ValueError unless there is one slot a token.
        """
        if len(tokens) != len(slots):
            raise ValueError(f"{len(tokens)} tokens and {len(slots)} slots: give one slot for each token")
        slots_known, node = self._walk(tokens)
        rest = tuple(tokens[len(slots_known) :])
        if rest:
            leaf = Node(rest, list(slots[len(slots_known) :]), node, used=self._clock)
            node.children[rest[0]] = leaf
        return slots_known + list(slots[len(slots_known) :])

    def lock(self, node: Node) -> None:
        """One more request reads the path from the root to the node, so that it cannot be evicted."""
        for each in _path(node):
            each.locks += 1

    def unlock(self, node: Node) -> None:
        """One request fewer reads the path from the root to the node. Raises ValueError where none does."""
        if node.parent is not None and not node.locks:
            raise ValueError("the node is not locked: it was unlocked more often than locked")
        for each in _path(node):
            each.locks -= 1

    def evict(self, n: int) -> list[int]:
        """Drop leaves that nobody reads, the least recently used first, until n slots or more are freed: returns them.

        A leaf goes as a whole; its parent may be the next leaf. Fewer than n come back where locks keep the rest.
        """
        n = whole("n", n, least=0)
        freed: list[int] = []
        while len(freed) < n:
            leaves = [node for node in self._nodes() if not node.children and not node.locks]
            if not leaves:
                break
            oldest = min(leaves, key=lambda node: node.used)
            freed += oldest.slots
            assert oldest.parent is not None
            del oldest.parent.children[oldest.tokens[0]]
        self._free += freed
        return freed

    def allocate(self, n: int) -> list[int]:
        """n slots to write to, evicting where too few are free. Raises CacheFull where locks keep too many."""
        n = whole("n", n, least=0)
        room = self.n_free + self.n_cached - self.n_locked
        if n > room:
            raise CacheFull(f"{n} slots are needed but {room} can be had: unlock a node, or make a larger store")
        self.evict(n - self.n_free if n > self.n_free else 0)
        return [self._free.pop() for _ in range(n)]

    def release(self, slots: Sequence[int]) -> None:
        """Give back slots that were allocated and not inserted. ValueError for one that is free or in the tree."""
        taken = set(self._free).union(*(node.slots for node in self._nodes()))
        for slot in slots:
            if slot in taken or not 0 <= slot < self.n_slots:
                raise ValueError(f"slot {slot} is free, in the tree or unknown: release what was allocated")
            taken.add(slot)
        self._free += slots

    def serve(self, tokens: Sequence[int]) -> int:
        """One request by itself: match, lock, compute the rest, insert, unlock. Returns how many tokens were cached.

        Raises CacheFull where the prompt has more tokens than locks leave over; nothing is locked then.
        """
        cached, node = self.match(tokens)
        self.lock(node)
        try:
            slots = cached + self.allocate(len(tokens) - len(cached))
            in_tree = self.insert(tokens, slots)
            self.release([own for own, tree in zip(slots, in_tree, strict=True) if own != tree])
        finally:
            self.unlock(node)
        return len(cached)

    def _walk(self, tokens: Sequence[int]) -> tuple[list[int], Node]:
        """The slots of all leading tokens that are in the tree, and the node that ends with the last of them."""
        self._clock += 1
        slots: list[int] = []
        node = self.root
        while len(slots) < len(tokens) and tokens[len(slots)] in node.children:
            node = node.children[tokens[len(slots)]]
            alike = _alike(node.tokens, tokens[len(slots) : len(slots) + len(node.tokens)])
            if alike < len(node.tokens):
                node = self._split(node, alike)
            node.used = self._clock
            slots += node.slots
        return slots, node

    def _split(self, node: Node, at: int) -> Node:
        """Cut the node after `at` tokens. Returns a new node with these, which stands above it and is locked alike.

        The old one keeps its end, so that whoever locked it unlocks both.
        """
        assert node.parent is not None
        upper = Node(node.tokens[:at], node.slots[:at], node.parent, {node.tokens[at]: node}, node.locks, node.used)
        node.parent.children[node.tokens[0]] = upper
        node.tokens = node.tokens[at:]
        node.slots = node.slots[at:]
        node.parent = upper
        return upper

    def _nodes(self) -> Iterator[Node]:
        """All nodes below the root."""
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            stack += node.children.values()
            yield node


def _path(node: Node) -> Iterator[Node]:
    """The node and those above it, without the root."""
    while node.parent is not None:
        yield node
        node = node.parent


def _alike(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens at the beginning are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
