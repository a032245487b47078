"""Day 7: allocators, caches of prefixes, schedulers and what is counted of them, as people write them."""

import heapq
import itertools
import math
import random
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from . import RIGHT, right, wrong

# by_hand ------------------------------------------------------------------------------------------------------------
# block_allocator ----------------------------------------------------------------------------------------------------


@right(7, "block_allocator")
class AllocatorWithAStack:
    def __init__(self, n_blocks, block_size):
        self.size = block_size
        self.unused = list(range(n_blocks))
        self.count = Counter()
        self.seqs = {}

    def append(self, seq):
        table, length = self.seqs.get(seq, ((), 0))
        block, slot = length // self.size, length % self.size
        if slot == 0 or self.count[table[block]] > 1:
            if not self.unused:
                raise MemoryError(f"no block for {seq}")
            if slot:
                self.count[table[block]] -= 1
            fresh = self.unused.pop()
            self.count[fresh] = 1
            table = (*table[:block], fresh)
        self.seqs[seq] = table, length + 1
        return table[block], slot

    def fork(self, seq, new):
        table = self.seqs[seq]
        if new in self.seqs:
            raise ValueError(new)
        self.seqs[new] = table
        self.count.update(table[0])

    def table(self, seq):
        return list(self.seqs[seq][0])

    def free(self, seq):
        table, _ = self.seqs.pop(seq)
        self.count.subtract(table)
        self.unused.extend(block for block in table if not self.count[block])


@right(7, "block_allocator")
class AllocatorWithAQueue:
    """Blocks come back in the order in which they went."""

    def __init__(self, n_blocks, block_size):
        self.block_size = block_size
        self.queue = deque(range(n_blocks))
        self.refs = [0] * n_blocks
        self.tables = {}
        self.lengths = {}

    def _take(self):
        if len(self.queue) == 0:
            raise MemoryError
        block = self.queue.popleft()
        self.refs[block] = 1
        return block

    def _drop(self, block):
        self.refs[block] -= 1
        if self.refs[block] == 0:
            self.queue.append(block)

    def append(self, seq):
        n = self.lengths.get(seq, 0)
        if n % self.block_size == 0:
            block = self._take()
            self.tables.setdefault(seq, []).append(block)
        else:
            old = self.tables[seq][-1]
            if self.refs[old] > 1:
                block = self._take()
                self.tables[seq][-1] = block
                self._drop(old)
        self.lengths[seq] = n + 1
        return self.tables[seq][-1], n % self.block_size

    def fork(self, seq, new):
        if seq not in self.tables:
            raise KeyError(seq)
        if new in self.tables:
            raise ValueError(f"{new} exists")
        self.tables[new] = self.tables[seq].copy()
        self.lengths[new] = self.lengths[seq]
        for block in self.tables[new]:
            self.refs[block] += 1

    def table(self, seq):
        return tuple(self.tables[seq])

    def free(self, seq):
        if seq not in self.tables:
            raise KeyError(seq)
        for block in reversed(self.tables[seq]):
            self._drop(block)
        del self.tables[seq]
        del self.lengths[seq]


@right(7, "block_allocator")
class AllocatorWithAHeap:
    """The highest number comes first."""

    def __init__(self, n_blocks, block_size):
        self.heap = [-block for block in range(n_blocks)]
        heapq.heapify(self.heap)
        self.block_size = block_size
        self.owners = defaultdict(set)
        self.seqs = {}

    def append(self, seq):
        blocks, n = self.seqs.get(seq, ([], 0))
        slot = n % self.block_size
        if slot == 0 or len(self.owners[blocks[-1]]) > 1:
            if not self.heap:
                raise MemoryError("full")
            block = -heapq.heappop(self.heap)
            if slot:
                self.owners[blocks[-1]].remove(seq)
                blocks = blocks[:-1]
            self.owners[block] = {seq}
            blocks = [*blocks, block]
        self.seqs[seq] = (blocks, n + 1)
        return [blocks[-1], slot]

    def fork(self, seq, new):
        blocks, n = self.seqs[seq]
        if new in self.seqs:
            raise ValueError
        for block in blocks:
            self.owners[block].add(new)
        self.seqs[new] = (list(blocks), n)

    def table(self, seq):
        return self.seqs[seq][0]

    def free(self, seq):
        for block in self.seqs.pop(seq)[0]:
            self.owners[block].discard(seq)
            if not self.owners[block]:
                heapq.heappush(self.heap, -block)


@right(7, "block_allocator")
class AllocatorWithABitmap:
    def __init__(self, n_blocks, block_size):
        self.free_bits = (1 << n_blocks) - 1
        self.size = block_size
        self.refs = np.zeros(n_blocks, dtype=int)
        self.known = {}

    def _fresh(self):
        if self.free_bits == 0:
            raise MemoryError("all bits are 0")
        lowest = self.free_bits & -self.free_bits
        self.free_bits ^= lowest
        block = lowest.bit_length() - 1
        self.refs[block] += 1
        return block

    def _less(self, block):
        self.refs[block] -= 1
        if self.refs[block] == 0:
            self.free_bits |= 1 << block

    def append(self, seq):
        record = self.known.get(seq, {"table": [], "length": 0})
        slot = record["length"] % self.size
        if slot == 0:
            record["table"].append(self._fresh())
        elif self.refs[record["table"][-1]] > 1:
            fresh, old = self._fresh(), record["table"][-1]
            record["table"][-1] = fresh
            self._less(old)
        record["length"] += 1
        self.known[seq] = record
        return np.int64(record["table"][-1]), np.int64(slot)

    def fork(self, seq, new):
        record = self.known[seq]
        if new in self.known:
            raise ValueError("not twice")
        self.known[new] = {"table": record["table"][:], "length": record["length"]}
        np.add.at(self.refs, record["table"], 1)

    def table(self, seq):
        return [np.int64(block) for block in self.known[seq]["table"]]

    def free(self, seq):
        for block in self.known.pop(seq)["table"]:
            self._less(block)


@right(7, "block_allocator")
class AllocatorThatLooksAtTheTables:
    """Counts nothing: a block is free when no table names it."""

    def __init__(self, n_blocks, block_size):
        self.n_blocks, self.block_size = n_blocks, block_size
        self.tables, self.lengths = {}, {}

    def _free_block(self):
        named = set(itertools.chain.from_iterable(self.tables.values()))
        for block in range(self.n_blocks):
            if block not in named:
                return block
        raise MemoryError

    def _holders(self, block):
        return sum(block in table for table in self.tables.values())

    def append(self, seq):
        length = self.lengths.get(seq, 0)
        if length % self.block_size == 0:
            self.tables[seq] = [*self.tables.get(seq, []), self._free_block()]
        elif self._holders(self.tables[seq][-1]) > 1:
            self.tables[seq] = [*self.tables[seq][:-1], self._free_block()]
        self.lengths[seq] = length + 1
        return self.tables[seq][-1], length % self.block_size

    def fork(self, seq, new):
        if seq not in self.tables:
            raise KeyError
        if new in self.tables:
            raise ValueError
        self.tables[new], self.lengths[new] = self.tables[seq], self.lengths[seq]

    def table(self, seq):
        return self.tables[seq]

    def free(self, seq):
        del self.tables[seq]
        del self.lengths[seq]


@right(7, "block_allocator")
class AllocatorWithALinkedList:
    """Each free block names the next one, as in the memory of a C program."""

    def __init__(self, n_blocks, block_size):
        self.next = [*range(1, n_blocks), None]
        self.head = 0 if n_blocks else None
        self.refs = [0] * n_blocks
        self.block_size = block_size
        self.seqs = {}

    def _pop(self):
        if self.head is None:
            raise MemoryError
        block, self.head = self.head, self.next[self.head]
        self.refs[block] = 1
        return block

    def _release(self, block):
        self.refs[block] -= 1
        if not self.refs[block]:
            self.next[block], self.head = self.head, block

    def append(self, seq):
        table, used = self.seqs.get(seq, ([], self.block_size))
        if used == self.block_size:
            table = [*table, self._pop()]
            used = 0
        elif self.refs[table[-1]] > 1:
            fresh = self._pop()
            self._release(table[-1])
            table = [*table[:-1], fresh]
        self.seqs[seq] = table, used + 1
        return table[-1], used

    def fork(self, seq, new):
        entry = self.seqs[seq]
        if new in self.seqs:
            raise ValueError
        for block in entry[0]:
            self.refs[block] += 1
        self.seqs[new] = entry

    def table(self, seq):
        return self.seqs[seq][0].copy()

    def free(self, seq):
        for block in self.seqs.pop(seq)[0]:
            self._release(block)


@dataclass(eq=False)
class Page:
    """A block of a text, with the one before it: texts that were forked share their beginning."""

    number: int
    before: "Page | None"
    used: int = 0
    names: set = field(default_factory=set)


@right(7, "block_allocator")
class AllocatorOfPagesInAChain:
    def __init__(self, n_blocks, block_size):
        self.block_size = block_size
        self.unused = set(range(n_blocks))
        self.last = {}

    def _page(self, seq, before, used):
        if not self.unused:
            raise MemoryError
        return Page(self.unused.pop(), before, used, {seq})

    def append(self, seq):
        page = self.last.get(seq)
        if page is None or page.used == self.block_size:
            page = self._page(seq, page, 0)
        elif len(page.names) > 1:
            copy = self._page(seq, page.before, self.used[seq])
            page.names.discard(seq)
            page = copy
        slot, page.used = page.used, page.used + 1
        self.last[seq] = page
        self.used = {**getattr(self, "used", {}), seq: page.used}
        return page.number, slot

    def fork(self, seq, new):
        page = self.last[seq]
        if new in self.last:
            raise ValueError
        self.last[new] = page
        self.used[new] = self.used[seq]
        while page:
            page.names.add(new)
            page = page.before

    def table(self, seq):
        page, numbers = self.last[seq], []
        while page:
            numbers.insert(0, page.number)
            page = page.before
        return numbers

    def free(self, seq):
        page = self.last.pop(seq)
        while page:
            page.names.discard(seq)
            if not page.names:
                self.unused.add(page.number)
            page = page.before


@right(7, "block_allocator")
class AllocatorByChance(AllocatorWithAStack):
    """Any free block, drawn anew for each."""

    def append(self, seq):
        random.Random(len(self.seqs) + 7 * len(self.unused)).shuffle(self.unused)
        return super().append(seq)


class Plain:
    """What the wrong allocators below have in common."""

    def __init__(self, n_blocks, block_size):
        self.n, self.size = n_blocks, block_size
        self.refs, self.tables, self.lengths = [0] * n_blocks, {}, {}

    def fresh(self):
        if 0 not in self.refs:
            raise MemoryError
        block = self.refs.index(0)
        self.refs[block] = 1
        return block

    def append(self, seq):
        length, table = self.lengths.get(seq, 0), self.tables.get(seq, [])
        if length % self.size == 0:
            table = [*table, self.fresh()]
        elif self.refs[table[-1]] > 1:
            block = self.fresh()
            self.refs[table[-1]] -= 1
            table = [*table[:-1], block]
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.size

    def fork(self, seq, new):
        table = self.tables[seq]
        if new in self.tables:
            raise ValueError
        self.tables[new], self.lengths[new] = list(table), self.lengths[seq]
        for block in table:
            self.refs[block] += 1

    def table(self, seq):
        return list(self.tables[seq])

    def free(self, seq):
        for block in self.tables.pop(seq):
            self.refs[block] -= 1
        del self.lengths[seq]


right(7, "block_allocator")(Plain)


@wrong(7, "block_allocator")
class AllocatorThatLosesTheCopyOnRefusal(Plain):
    """Lets go of the shared block before it knows whether there is another one."""

    def append(self, seq):
        length, table = self.lengths.get(seq, 0), self.tables.get(seq, [])
        if length % self.size and self.refs[table[-1]] > 1:
            self.refs[table[-1]] -= 1
            table = [*table[:-1], self.fresh()]
        elif length % self.size == 0:
            table = [*table, self.fresh()]
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.size


@wrong(7, "block_allocator")
class AllocatorWithSharedRowsOfNumbers(Plain):
    def fork(self, seq, new):
        super().fork(seq, new)
        self.tables[new] = self.tables[seq]

    def append(self, seq):
        length = self.lengths.get(seq, 0)
        if length % self.size == 0:
            block = self.fresh()
            self.tables.setdefault(seq, []).append(block)
            self.lengths[seq] = length + 1
            return block, 0
        return super().append(seq)


@wrong(7, "block_allocator")
class AllocatorThatCopiesOnFullBlocksToo(Plain):
    def append(self, seq):
        table = self.tables.get(seq)
        if table and self.refs[table[-1]] > 1:
            block = self.fresh()
            self.refs[table[-1]] -= 1
            self.tables[seq] = [*table[:-1], block]
        return super().append(seq)


@wrong(7, "block_allocator")
class AllocatorThatCountsForksOnce(Plain):
    """Three tables of one block count as two."""

    def fork(self, seq, new):
        super().fork(seq, new)
        for block in self.tables[new]:
            self.refs[block] = min(self.refs[block], 2)


@wrong(7, "block_allocator")
class AllocatorWithOneTableForAll(Plain):
    """The tables belong to the class, as with a default that is a dict: a second pool finds those of the first."""

    kept: ClassVar[tuple] = ({}, {})

    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, block_size)
        self.tables, self.lengths = self.kept


@wrong(7, "block_allocator")
class AllocatorThatCountsFromOne(Plain):
    def append(self, seq):
        block, slot = super().append(seq)
        return block + 1, slot

    def table(self, seq):
        return [block + 1 for block in super().table(seq)]


@wrong(7, "block_allocator")
class AllocatorThatSortsItsTables(Plain):
    def table(self, seq):
        return sorted(super().table(seq))


# paged_attention ----------------------------------------------------------------------------------------------------


@right(7, "paged_attention")
def paged_by_index(q, keys, values, table, length):
    block_size, d = keys.shape[1:]
    positions = np.arange(length)
    blocks = np.asarray(table)[positions // block_size]
    k, v = keys[blocks, positions % block_size], values[blocks, positions % block_size]
    scores = k @ q / np.sqrt(d)
    weights = np.exp(scores - scores.max())
    return weights @ v / weights.sum()


@right(7, "paged_attention")
def paged_token_by_token(q, keys, values, table, length):
    size = keys.shape[1]
    rows = [(keys[table[t // size]][t % size], values[table[t // size]][t % size]) for t in range(length)]
    scores = [float(np.dot(q, k)) / math.sqrt(len(q)) for k, _ in rows]
    m = max(scores)
    e = [math.exp(s - m) for s in scores]
    return sum(w / sum(e) * v for w, (_, v) in zip(e, rows, strict=True))


@right(7, "paged_attention")
def paged_online(q, keys, values, table, length):
    """Block by block, as a kernel does it."""
    m, total, out = -math.inf, 0.0, np.zeros(values.shape[2])
    size = keys.shape[1]
    for i, block in enumerate(table):
        n = min(size, length - i * size)
        if n <= 0:
            break
        scores = keys[block, :n] @ q * len(q) ** -0.5
        new = max(m, scores.max())
        e = np.exp(scores - new)
        out = out * np.exp(m - new) + e @ values[block, :n]
        total = total * np.exp(m - new) + e.sum()
        m = new
    return out / total


@right(7, "paged_attention")
def paged_with_rubbish_cleared(q, keys, values, table, length):
    k = np.concatenate([keys[block] for block in table])
    v = np.concatenate([values[block] for block in table])
    there = np.arange(len(k)) < length
    scores = np.where(there, np.where(there[:, None], k, 0) @ q / math.sqrt(q.size), -np.inf)
    e = np.exp(scores - scores[there].max())
    return (e / e.sum()) @ np.where(there[:, None], v, 0)


@wrong(7, "paged_attention")
def paged_by_length_alone(q, keys, values, table, length):
    k, v = keys.reshape(-1, keys.shape[-1])[:length], values.reshape(-1, values.shape[-1])[:length]
    e = np.exp(k @ q / math.sqrt(len(q)) - (k @ q / math.sqrt(len(q))).max())
    return e / e.sum() @ v


@wrong(7, "paged_attention")
def paged_that_clears_the_pool(q, keys, values, table, length):
    size = keys.shape[1]
    for t in range(length, len(table) * size):
        if table[t // size] not in list(table)[: t // size]:
            keys[table[t // size], t % size] = 0
            values[table[t // size], t % size] = 0
    return paged_online(q, keys, values, table, length)


# prefix_cache -------------------------------------------------------------------------------------------------------


@right(7, "prefix_cache")
class PrefixesByAChainOfHashes:
    """Each full block is named by the name of the one before it and its own tokens; an OrderedDict keeps the age."""

    def __init__(self, n_blocks, block_size):
        self.size = block_size
        self.empty = list(range(n_blocks))
        self.idle = OrderedDict()  # known blocks that nobody holds, the oldest first
        self.refs = Counter()
        self.by_name, self.name_of = {}, {}
        self.running = {}

    def _names(self, tokens):
        name = 0
        for start in range(0, len(tokens) - self.size + 1, self.size):
            name = hash((name, tuple(tokens[start : start + self.size])))
            yield name

    def admit(self, who, tokens):
        if who in self.running:
            raise ValueError(who)
        hits = []
        for name in itertools.islice(self._names(tokens), (len(tokens) - 1) // self.size):
            if name not in self.by_name:
                break
            hits.append(self.by_name[name])
        need = math.ceil(len(tokens) / self.size) - len(hits)
        if need > len(self.empty) + sum(block not in hits for block in self.idle):
            raise MemoryError
        for block in hits:
            self.idle.pop(block, None)
            self.refs[block] += 1
        table = list(hits)
        for _ in range(need):
            if self.empty:
                block = self.empty.pop()
            else:
                block, _ = self.idle.popitem(last=False)
                del self.by_name[self.name_of.pop(block)]
            self.refs[block] = 1
            table.append(block)
        self.running[who] = (list(tokens), table)
        return len(hits) * self.size, list(table)

    def commit(self, who):
        tokens, table = self.running[who]
        for name, block in zip(self._names(tokens), table, strict=False):
            if name not in self.by_name:
                self.by_name[name], self.name_of[block] = block, name

    def table(self, who):
        return self.running[who][1]

    def release(self, who):
        _, table = self.running.pop(who)
        for block in table[::-1]:
            self.refs[block] -= 1
            if self.refs[block] == 0:
                if block in self.name_of:
                    self.idle[block] = True
                else:
                    self.empty.append(block)


@dataclass(eq=False)
class Node:
    """A block of a radix tree."""

    parent: "Node | None"
    tokens: tuple
    block: int | None = None
    children: dict = field(default_factory=dict)
    users: int = 0
    last: int = 0


@right(7, "prefix_cache")
class PrefixesInARadixTree:
    """Leaves go first, the one used least recently before others. What a request holds, its whole path holds."""

    def __init__(self, n_blocks, block_size):
        self.size, self.root, self.clock = block_size, Node(None, ()), 0
        self.free = set(range(n_blocks))
        self.running = {}

    def _pieces(self, tokens):
        return [tuple(tokens[i : i + self.size]) for i in range(0, len(tokens) // self.size * self.size, self.size)]

    def _walk(self, tokens):
        node, path = self.root, []
        for piece in self._pieces(tokens):
            node = node.children.get(piece)
            if node is None:
                break
            path.append(node)
        return path

    def _leaves(self, node):
        for child in node.children.values():
            if child.children:
                yield from self._leaves(child)
            elif not child.users:
                yield child

    def _idle(self, node, kept):
        """How many blocks below could go."""
        return sum(
            self._idle(child, kept) + (not child.users and child not in kept) for child in node.children.values()
        )

    def admit(self, name, tokens):
        if name in self.running:
            raise ValueError("there already")
        path = self._walk(tokens[: (len(tokens) - 1) // self.size * self.size])
        need = -(-len(tokens) // self.size) - len(path)
        if need > len(self.free) + self._idle(self.root, path):
            raise MemoryError("full")
        for node in path:
            node.users += 1
        while len(self.free) < need:
            leaf = min(self._leaves(self.root), key=lambda leaf: leaf.last)
            del leaf.parent.children[leaf.tokens]
            self.free.add(leaf.block)
        table = [node.block for node in path] + [self.free.pop() for _ in range(need)]
        self.running[name] = {"tokens": tuple(tokens), "table": table, "path": path, "own": table[len(path) :]}
        return len(path) * self.size, list(table)

    def commit(self, name):
        request = self.running[name]
        node = self.root
        for place, piece in enumerate(self._pieces(request["tokens"])):
            child = node.children.get(piece)
            block = request["table"][place]
            if child is None:
                child = Node(node, piece, block)
                node.children[piece] = child
                request["own"].remove(block)
            if child not in request["path"]:
                child.users += 1  # also where another block holds this text: the path below hangs on it
                request["path"].append(child)
            node = child

    def table(self, name):
        return tuple(self.running[name]["table"])

    def release(self, name):
        request = self.running.pop(name)
        self.clock += 1
        for node in request["path"]:
            node.users -= 1
            node.last = self.clock
        self.free |= set(request["own"])


@right(7, "prefix_cache")
class PrefixesByLooking:
    """No index: each block notes its text, and all are looked at."""

    def __init__(self, n_blocks, block_size):
        self.blocks = [{"text": None, "by": set(), "time": 0, "number": i} for i in range(n_blocks)]
        self.block_size = block_size
        self.now = 0
        self.requests = {}

    def admit(self, name, tokens):
        if name in self.requests:
            raise ValueError
        self.now += 1
        table = []
        for end in range(self.block_size, len(tokens), self.block_size):
            same = [b for b in self.blocks if b["text"] == tuple(tokens[:end])]
            if not same:
                break
            table.append(max(same, key=lambda b: len(b["by"])))
        cached = len(table) * self.block_size
        need = (len(tokens) + self.block_size - 1) // self.block_size - len(table)
        idle = [b for b in self.blocks if not b["by"] and not any(b is other for other in table)]
        idle.sort(key=lambda b: (b["text"] is not None, b["time"], -len(b["text"] or ())))
        if len(idle) < need:
            raise MemoryError
        for b in idle[:need]:
            b["text"] = None
        table += idle[:need]
        for b in table:
            b["by"].add(name)
        self.requests[name] = (tuple(tokens), table)
        return cached, [b["number"] for b in table]

    def commit(self, name):
        tokens, table = self.requests[name]
        for i in range(len(tokens) // self.block_size):
            table[i]["text"] = tokens[: (i + 1) * self.block_size]

    def table(self, name):
        return [b["number"] for b in self.requests[name][1]]

    def release(self, name):
        _, table = self.requests.pop(name)
        self.now += 1
        for b in table:
            b["by"].remove(name)
            b["time"] = self.now


@right(7, "prefix_cache")
class PrefixesWithAHeap:
    """Evicts lazily: the heap has old entries too, which are passed over when they come up."""

    def __init__(self, n_blocks, block_size):
        self.size = block_size
        self.stamp = [0] * n_blocks
        self.refs = [0] * n_blocks
        self.text = [()] * n_blocks
        self.index = {}
        self.ticks = itertools.count(1)
        self.heap = [(0, 0, block) for block in range(n_blocks)]
        self.live = {}

    def admit(self, name, tokens):
        tokens = tuple(tokens)
        if name in self.live:
            raise ValueError
        found = []
        for end in range(self.size, len(tokens), self.size):
            block = self.index.get(tokens[:end], -1)
            if block < 0 or self.text[block] != tokens[:end]:
                break
            found.append(block)
        need = -(-len(tokens) // self.size) - len(found)
        if need > sum(1 for block, count in enumerate(self.refs) if not count and block not in found):
            raise MemoryError
        for block in found:
            self.refs[block] += 1
        new = []
        while len(new) < need:
            stamp, _, block = heapq.heappop(self.heap)
            if self.refs[block] or stamp != self.stamp[block]:
                continue
            self.refs[block] = 1
            self.text[block] = ()
            new.append(block)
        self.live[name] = tokens, found + new
        return len(found) * self.size, found + new

    def commit(self, name):
        tokens, table = self.live[name]
        for i, block in enumerate(table[: len(tokens) // self.size], start=1):
            other = self.index.get(tokens[: i * self.size])
            if other is None or self.text[other] != tokens[: i * self.size]:
                self.index[tokens[: i * self.size]] = block
                self.text[block] = tokens[: i * self.size]

    def table(self, name):
        return list(self.live[name][1])

    def release(self, name):
        _, table = self.live.pop(name)
        now = next(self.ticks)
        for place, block in enumerate(table):
            self.refs[block] -= 1
            if not self.refs[block]:
                known = bool(self.text[block])
                self.stamp[block] = now if known else 0
                heapq.heappush(self.heap, (self.stamp[block], -place, block))


@right(7, "prefix_cache")
class PrefixesThatKnowTheNewest:
    """Of two blocks with the same text, the one committed last is found."""

    def __init__(self, n_blocks, block_size):
        self.size, self.n = block_size, n_blocks
        self.known, self.label = {}, {}
        self.count = [0] * n_blocks
        self.unknown = deque(range(n_blocks))
        self.aged = []
        self.requests = {}

    def admit(self, name, tokens):
        if name in self.requests:
            raise ValueError(name)
        tokens, hits = tuple(tokens), []
        while (len(hits) + 1) * self.size < len(tokens):
            block = self.known.get(tokens[: (len(hits) + 1) * self.size])
            if block is None:
                break
            hits.append(block)
        need = -(-len(tokens) // self.size) - len(hits)
        ready = [*self.unknown, *(block for block in self.aged if block not in hits)]
        if need > len(ready):
            raise MemoryError
        for block in hits:
            if block in self.aged:
                self.aged.remove(block)
            self.count[block] += 1
        for block in ready[:need]:
            (self.aged if block in self.aged else self.unknown).remove(block)
            if block in self.label:
                self.known.pop(self.label.pop(block))
            self.count[block] += 1
        self.requests[name] = tokens, [*hits, *ready[:need]]
        return len(hits) * self.size, [*hits, *ready[:need]]

    def commit(self, name):
        tokens, table = self.requests[name]
        for i in range(len(tokens) // self.size):
            text = tokens[: (i + 1) * self.size]
            old = self.known.get(text)
            if old is not None:
                del self.label[old]
                if old in self.aged:
                    self.aged.remove(old)
                    self.unknown.append(old)
            self.known[text], self.label[table[i]] = table[i], text

    def table(self, name):
        return self.requests[name][1]

    def release(self, name):
        _, table = self.requests.pop(name)
        for block in reversed(table):
            self.count[block] -= 1
            if not self.count[block]:
                (self.aged if block in self.label else self.unknown).append(block)


@right(7, "prefix_cache")
class PrefixesWithAllCopies:
    """Each text knows all blocks that hold it, and any of them will do."""

    def __init__(self, n_blocks, block_size):
        self.size = block_size
        self.copies = defaultdict(dict)
        self.text = {}
        self.refs = dict.fromkeys(range(n_blocks), 0)
        self.released = dict.fromkeys(range(n_blocks), (-1, 0))
        self.time = 0
        self.all = {}

    def admit(self, name, tokens):
        if name in self.all:
            raise ValueError
        tokens = tuple(tokens)
        table = []
        for end in range(self.size, len(tokens), self.size):
            if not self.copies.get(tokens[:end]):
                break
            table.append(max(self.copies[tokens[:end]], key=lambda block: (self.refs[block], block)))
        hits = len(table)
        spare = [block for block, count in self.refs.items() if not count and block not in table]
        spare.sort(key=lambda block: (block in self.text, *self.released[block]))
        need = -(-len(tokens) // self.size) - hits
        if len(spare) < need:
            raise MemoryError
        for block in spare[:need]:
            if block in self.text:
                del self.copies[self.text.pop(block)][block]
        table += spare[:need]
        for block in table:
            self.refs[block] += 1
        self.all[name] = tokens, table
        return hits * self.size, table.copy()

    def commit(self, name):
        tokens, table = self.all[name]
        for end in range(self.size, len(tokens) + 1, self.size):
            block = table[end // self.size - 1]
            self.copies[tokens[:end]][block] = True
            self.text[block] = tokens[:end]

    def table(self, name):
        return self.all[name][1].copy()

    def release(self, name):
        _, table = self.all.pop(name)
        self.time += 1
        for place, block in enumerate(table):
            self.refs[block] -= 1
            if self.refs[block] == 0:
                self.released[block] = self.time, -place


class Link:
    def __init__(self, block):
        self.block, self.before, self.after = block, self, self

    def put_before(self, other):
        self.leave()
        self.before, self.after = other.before, other
        other.before.after = other.before = self

    def leave(self):
        self.before.after, self.after.before = self.after, self.before
        self.before = self.after = self


@right(7, "prefix_cache")
class PrefixesInALinkedList:
    """Blocks that nobody holds in a doubly linked list: empty ones at its head, then known ones by age."""

    def __init__(self, n_blocks, block_size):
        self.size = block_size
        self.end, self.border = Link(None), Link(None)  # what stands before the border is empty
        self.border.put_before(self.end)
        self.links = [Link(block) for block in range(n_blocks)]
        for link in self.links:
            link.put_before(self.border)
        self.users = [0] * n_blocks
        self.ids, self.block_of, self.id_of = {}, {}, {}
        self.requests = {}

    def _id(self, parent, piece):
        return self.ids.setdefault((parent, piece), len(self.ids) + 1)

    def _path(self, tokens):
        parent = 0
        for i in range(len(tokens) // self.size):
            parent = self._id(parent, tuple(tokens[i * self.size : (i + 1) * self.size]))
            yield parent

    def _free(self):
        link, found = self.end.after, []
        while link is not self.end:
            if link is not self.border:
                found.append(link)
            link = link.after
        return found

    def admit(self, name, tokens):
        if name in self.requests:
            raise ValueError
        most = (len(tokens) - 1) // self.size
        path = list(self._path(tokens))[:most]
        hits = [self.block_of[i] for i in itertools.takewhile(self.block_of.__contains__, path)]
        spare = [link for link in self._free() if link.block not in hits]
        need = -(-len(tokens) // self.size) - len(hits)
        if need > len(spare):
            raise MemoryError
        table = hits + [link.block for link in spare[:need]]
        for block in table[len(hits) :]:
            if block in self.id_of:
                del self.block_of[self.id_of.pop(block)]
        for block in table:
            self.users[block] += 1
            self.links[block].leave()
        self.requests[name] = list(tokens), table
        return len(hits) * self.size, table

    def commit(self, name):
        tokens, table = self.requests[name]
        for i, block in zip(self._path(tokens), table, strict=False):
            if i not in self.block_of:
                self.block_of[i], self.id_of[block] = block, i

    def table(self, name):
        return self.requests[name][1]

    def release(self, name):
        _, table = self.requests.pop(name)
        for block in table[::-1]:
            self.users[block] -= 1
            if self.users[block] == 0:
                self.links[block].put_before(self.end if block in self.id_of else self.border)


class Prefixes:
    """What the wrong caches below have in common."""

    def __init__(self, n_blocks, block_size):
        self.size, self.refs = block_size, [0] * n_blocks
        self.index, self.text = {}, {}
        self.idle = list(range(n_blocks))
        self.live = {}

    def hits(self, tokens):
        found = []
        while (len(found) + 1) * self.size < len(tokens) and tokens[: (len(found) + 1) * self.size] in self.index:
            found.append(self.index[tokens[: (len(found) + 1) * self.size]])
        return found

    def evictable(self, hits):
        return sorted((b for b in self.idle if b not in hits), key=lambda b: b in self.text)

    def drop(self, block):
        if block in self.text:
            del self.index[self.text.pop(block)]

    def admit(self, name, tokens):
        if name in self.live:
            raise ValueError
        tokens = tuple(tokens)
        hits = self.hits(tokens)
        need, spare = -(-len(tokens) // self.size) - len(hits), self.evictable(hits)
        if need > len(spare):
            raise MemoryError
        for block in spare[:need]:
            self.drop(block)
        table = hits + spare[:need]
        for block in table:
            self.refs[block] += 1
            if block in self.idle:
                self.idle.remove(block)
        self.live[name] = tokens, table
        return len(hits) * self.size, list(table)

    def commit(self, name):
        tokens, table = self.live[name]
        for i in range(len(tokens) // self.size):
            key = tokens[: (i + 1) * self.size]
            if key not in self.index:
                self.index[key], self.text[table[i]] = table[i], key

    def table(self, name):
        return list(self.live[name][1])

    def release(self, name):
        for block in reversed(self.live.pop(name)[1]):
            self.refs[block] -= 1
            if not self.refs[block]:
                self.idle.append(block)


right(7, "prefix_cache")(Prefixes)


@wrong(7, "prefix_cache")
class PrefixesCachedToTheEnd(Prefixes):
    """Museum 1, nano-vllm #144: a prompt that is a multiple of the block size and fully cached leaves no query."""

    def hits(self, tokens):
        return super().hits((*tokens, None))


@wrong(7, "prefix_cache")
class PrefixesWithTwoMappings(Prefixes):
    """Museum 3, sglang #38140: what admit returned is one mapping, what the next step reads is another."""

    def table(self, name):
        tokens, table = self.live[name]
        keys = [tokens[: (i + 1) * self.size] for i in range(len(table))]
        return [self.index.get(key, block) for key, block in zip(keys, table, strict=True)]


@wrong(7, "prefix_cache")
class PrefixesInUnitsOfACommonMultiple(Prefixes):
    """Museum 4, vllm-ascend #16270: the unit is lcm(128, 4096, …), and no prompt is as long."""

    def hits(self, tokens):
        unit = math.lcm(self.size, 32)
        return super().hits(tokens)[: (len(tokens) - 1) // unit * unit // self.size]


@wrong(7, "prefix_cache")
class PrefixesThatSkipAMiss(Prefixes):
    """Goes on behind a block that is not known."""

    def hits(self, tokens):
        ends = range(self.size, len(tokens), self.size)
        known = [self.index[tokens[:end]] for end in ends if tokens[:end] in self.index]
        return known


@wrong(7, "prefix_cache")
class PrefixesByHowOften(Prefixes):
    """The least frequently used goes first."""

    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, block_size)
        self.often = Counter()

    def admit(self, name, tokens):
        cached, table = super().admit(name, tokens)
        self.often.update(table)
        return cached, table

    def drop(self, block):
        super().drop(block)
        self.often[block] = 0

    def evictable(self, hits):
        return sorted(super().evictable(hits), key=lambda b: (b in self.text, self.often[b]))


@wrong(7, "prefix_cache")
class PrefixesByAdmission(Prefixes):
    """Age counts from the admission, not from the release."""

    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, block_size)
        self.age, self.clock = Counter(), 0

    def admit(self, name, tokens):
        cached, table = super().admit(name, tokens)
        self.clock += 1
        for place, block in enumerate(table):
            self.age[block] = (self.clock, -place)
        return cached, table

    def evictable(self, hits):
        return sorted(super().evictable(hits), key=lambda b: (b in self.text, self.age[b] or (0, 0)))


@wrong(7, "prefix_cache")
class PrefixesThatLoseTheRefused(Prefixes):
    """Evicts first and counts afterwards."""

    def admit(self, name, tokens):
        if name in self.live:
            raise ValueError
        tokens = tuple(tokens)
        hits = self.hits(tokens)
        for block in self.evictable(hits)[: -(-len(tokens) // self.size) - len(hits)]:
            self.drop(block)
        return super().admit(name, tokens)


class PrefixesByKey(Prefixes):
    """Blocks are found by a key of their text that other texts may share."""

    def key(self, tokens, end):
        raise NotImplementedError

    def hits(self, tokens):
        found = []
        while (end := (len(found) + 1) * self.size) < len(tokens) and self.key(tokens, end) in self.index:
            found.append(self.index[self.key(tokens, end)])
        return found

    def commit(self, name):
        tokens, table = self.live[name]
        for i in range(len(tokens) // self.size):
            key = self.key(tokens, (i + 1) * self.size)
            if key not in self.index:
                self.index[key], self.text[table[i]] = table[i], key


@wrong(7, "prefix_cache")
class PrefixesByTheFirstBlockAndTheirOwn(PrefixesByKey):
    def key(self, tokens, end):
        return end, tokens[: self.size], tokens[end - self.size : end]


@wrong(7, "prefix_cache")
class PrefixesAsDecimalNumbers(PrefixesByKey):
    def key(self, tokens, end):
        number = 1
        for token in tokens[:end]:
            number = 10 * number + token
        return number


@wrong(7, "prefix_cache")
class PrefixesInSlotsOfAHash(PrefixesByKey):
    def key(self, tokens, end):
        return hash(tokens[:end]) % 64


@wrong(7, "prefix_cache")
class PrefixesByTheBlockBefore(Prefixes):
    """The key is the number of the block before and the block's own tokens, and numbers are given out again."""

    def hits(self, tokens):
        found = []
        while (end := (len(found) + 1) * self.size) < len(tokens):
            block = self.index.get((found[-1] if found else None, tokens[end - self.size : end]))
            if block is None:
                break
            found.append(block)
        return found

    def commit(self, name):
        tokens, table = self.live[name]
        before = None
        for i in range(len(tokens) // self.size):
            key = (before, tokens[i * self.size : (i + 1) * self.size])
            if key not in self.index:
                self.index[key], self.text[table[i]] = table[i], key
            before = self.index[key]


@wrong(7, "prefix_cache")
class PrefixesByTheBlockBeforeInTheTable(PrefixesByTheBlockBefore):
    """As above; the block before is the request's own, and not the one that was known first."""

    def commit(self, name):
        tokens, table = self.live[name]
        for i in range(len(tokens) // self.size):
            key = (table[i - 1] if i else None, tokens[i * self.size : (i + 1) * self.size])
            if key not in self.index:
                self.index[key], self.text[table[i]] = table[i], key


# latencies ----------------------------------------------------------------------------------------------------------


@right(7, "latencies")
def latencies_in_a_loop(arrival, times):
    first, each, gap = [], [], []
    for start, clock in zip(arrival, times, strict=True):
        first.append(clock[0] - start)
        gaps = [later - earlier for earlier, later in itertools.pairwise(clock)]
        each.append(sum(gaps) / len(gaps) if gaps else float("nan"))
        gap.append(max(gaps) if gaps else float("nan"))
    return np.array(first), np.array(each), np.array(gap)


@right(7, "latencies")
def latencies_in_arrays(arrival, times):
    first = np.array([clock[0] for clock in times])
    last = np.array([clock[-1] for clock in times])
    n = np.array([len(clock) for clock in times])
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(n > 1, (last - first) / (n - 1), np.nan)
    gap = [np.max(np.diff(clock), initial=-np.inf) for clock in times]
    return first - arrival, each, [np.nan if np.isinf(x) else x for x in gap]


@right(7, "latencies")
def latencies_as_lists(arrival, times):
    rows = []
    for a, t in zip(arrival, times, strict=True):
        gaps = np.diff(t)
        rows.append([t[0] - a, gaps.mean() if gaps.size else np.nan, gaps.max() if gaps.size else np.nan])
    return tuple(map(list, zip(*rows, strict=True)))


@wrong(7, "latencies")
def latencies_that_shift_the_log(arrival, times):
    for a, clock in zip(arrival, times, strict=True):
        clock[:] = [t - a for t in clock]
    return latencies_in_a_loop(np.zeros(len(times)), times)


@wrong(7, "latencies")
def latencies_of_sorted_arrivals(arrival, times):
    return latencies_in_a_loop(np.sort(arrival), times)


# chunks -------------------------------------------------------------------------------------------------------------


@right(7, "chunks")
def chunks_in_two_passes(todo, budget):
    planned = [0] * len(todo)
    for decode in (True, False):
        for i, tokens in enumerate(todo):
            if (tokens == 1) == decode:
                planned[i] = min(tokens, budget)
                budget -= planned[i]
    return planned


@right(7, "chunks")
def chunks_by_sums(todo, budget):
    order = sorted(range(len(todo)), key=lambda i: (todo[i] > 1, i))
    result, before = {}, 0
    for i in order:
        result[i] = max(0, min(todo[i], budget - before))
        before += todo[i]
    return [result[i] for i in range(len(todo))]


@right(7, "chunks")
def chunks_token_by_token(todo, budget):
    left, got = list(todo), [0 for _ in todo]
    while budget and any(left):
        decodes = [i for i, x in enumerate(todo) if x == 1 and left[i]]
        i = decodes[0] if decodes else next(i for i, x in enumerate(left) if x)
        left[i] -= 1
        got[i] += 1
        budget -= 1
    return tuple(got)


@wrong(7, "chunks")
def chunks_without_decodes_first(todo, budget):
    got = []
    for tokens in todo:
        got.append(min(tokens, budget))
        budget -= got[-1]
    return got


@wrong(7, "chunks")
def chunks_of_two_at_least(todo, budget):
    got = chunks_in_two_passes(todo, budget)
    return [0 if x > 1 and tokens == 1 else tokens for x, tokens in zip(todo, got, strict=True)]


# scheduler ----------------------------------------------------------------------------------------------------------


@dataclass
class Job:
    name: str
    prompt: int
    new: int
    computed: int = 0
    generated: int = 0

    @property
    def todo(self):
        return self.prompt + self.generated - self.computed


class JobsInOrder:
    """What the schedulers below have in common: jobs in order of arrival, and the end of a step."""

    def __init__(self, n_blocks, block_size, budget):
        self.n_blocks, self.block_size, self.budget = n_blocks, block_size, budget
        self.jobs = []

    def blocks(self, tokens):
        return math.ceil(tokens / self.block_size)

    def add(self, name, prompt, new):
        if self.blocks(prompt + new - 1) > self.n_blocks:
            raise ValueError(name)
        self.jobs.append(Job(name, prompt, new))

    def free_blocks(self):
        return self.n_blocks - sum(self.blocks(job.computed) for job in self.jobs)

    def room(self, job):
        return self.free_blocks() * self.block_size + self.blocks(job.computed) * self.block_size - job.computed

    def finish(self, plan):
        for job in self.jobs:
            if job.name in plan and job.todo == 0:
                job.generated += 1
        self.jobs = [job for job in self.jobs if job.generated < job.new]


@right(7, "scheduler")
class SchedulerByDemand(JobsInOrder):
    """Drops the last ones until all decodes fit; then shares out the budget."""

    def step(self):
        decodes = [job for job in self.jobs if job.computed and job.todo == 1][: self.budget]
        held = [job for job in self.jobs if job.computed]
        dropped = []

        def demand():
            return sum(self.blocks(job.computed + (job in decodes)) for job in held)

        while demand() > self.n_blocks:
            dropped.append(held.pop())
            decodes = [job for job in decodes if job not in dropped]
        for job in dropped:
            job.computed = 0
        plan = {job.name: 1 for job in decodes}
        for job in decodes:
            job.computed += 1
        left = self.budget - len(plan)
        for job in self.jobs:
            if job.name in plan:
                continue
            tokens = min(left, job.todo, self.room(job))
            if job in dropped or tokens <= 0:
                break
            job.computed += tokens
            plan[job.name] = tokens
            left -= tokens
        self.finish(plan)
        return plan, [job.name for job in dropped]


@right(7, "scheduler")
class SchedulerWithTwoQueues:
    """Waiting and running, as in an engine: who is preempted goes back to the front of those that wait."""

    def __init__(self, n_blocks, block_size, budget):
        self.pool = set(range(n_blocks))
        self.n_blocks, self.size, self.budget = n_blocks, block_size, budget
        self.waiting, self.running = deque(), []

    def add(self, name, prompt, new):
        if prompt + new - 1 > self.n_blocks * self.size:
            raise ValueError("too long")
        self.waiting.append({"name": name, "prompt": prompt, "new": new, "have": 0, "out": 0, "blocks": []})

    def _todo(self, r):
        return r["prompt"] + r["out"] - r["have"]

    def _grow(self, r, tokens):
        while len(r["blocks"]) * self.size < r["have"] + tokens:
            r["blocks"].append(self.pool.pop())
        r["have"] += tokens

    def _can(self, r):
        return (len(self.pool) + len(r["blocks"])) * self.size - r["have"]

    def step(self):
        plan, gone, left = OrderedDict(), [], self.budget
        for r in list(self.running):
            if r["name"] in gone or self._todo(r) != 1 or not left:
                continue
            while self._can(r) < 1:
                last = self.running.pop()
                self.pool |= set(last["blocks"])
                last["blocks"], last["have"] = [], 0
                gone.append(last["name"])
                self.waiting.appendleft(last)
                if last is r:
                    break
            if r["name"] not in gone:
                self._grow(r, 1)
                plan[r["name"]] = 1
                left -= 1
        stuck = False
        for r in self.running:
            if r["name"] in plan:
                continue
            tokens = min(left, self._todo(r), self._can(r))
            if tokens < 1:
                stuck = True
                break
            self._grow(r, tokens)
            plan[r["name"]] = tokens
            left -= tokens
        while not stuck and self.waiting and left and self.pool and self.waiting[0]["name"] not in gone:
            r = self.waiting.popleft()
            tokens = min(left, self._todo(r), self._can(r))
            self._grow(r, tokens)
            plan[r["name"]] = tokens
            left -= tokens
            self.running.append(r)
        for r in list(self.running):
            if r["name"] in plan and self._todo(r) == 0:
                r["out"] += 1
                if r["out"] == r["new"]:
                    self.running.remove(r)
                    self.pool |= set(r["blocks"])
        return plan, tuple(gone)


@right(7, "scheduler")
class SchedulerWithFairShares(JobsInOrder):
    """After the decodes the budget is dealt out token by token among those whose turn it is."""

    def step(self):
        plan, dropped, left = {}, [], self.budget
        for job in list(self.jobs):
            if not job.computed or job.todo != 1 or not left or job in dropped:
                continue
            while self.room(job) < 1:
                victim = [other for other in self.jobs if other.computed][-1]
                victim.computed = 0
                dropped.append(victim)
                if victim is job:
                    break
            if job not in dropped:
                job.computed += 1
                plan[job.name] = 1
                left -= 1
        decoded = set(plan)
        ready = []
        for job in self.jobs:  # those that can have a token at all, one block each at first
            if job.name in decoded:
                continue
            while job.computed and self.room(job) < 1:  # who came later may hold what it needs
                later = [other for other in self.jobs[self.jobs.index(job) + 1 :] if other.computed]
                if not later or later[-1].name in plan:
                    break
                later[-1].computed = 0
                dropped.append(later[-1])
            if job in dropped or len(ready) == left or self.room(job) < 1:
                break
            job.computed += 1
            plan[job.name] = 1
            ready.append(job)
        left -= len(ready)
        moved = True
        while left and moved:
            moved = False
            for job in ready:
                if left and job.todo and self.room(job) > 0:
                    job.computed += 1
                    plan[job.name] += 1
                    left -= 1
                    moved = True
        self.finish(plan)
        return plan, [job.name for job in reversed(dropped)]


@right(7, "scheduler")
class SchedulerInOnePass(JobsInOrder):
    """In order of arrival, but each prefill leaves a token of the budget for every decode behind it."""

    def step(self):
        plan, dropped, left = {}, [], self.budget
        decoding = [job for job in self.jobs if job.computed and job.todo == 1]
        keep = len(decoding)
        for job in list(self.jobs):
            if job in dropped:
                break
            if job in decoding:
                keep -= 1
                if not left:
                    break
                while self.room(job) < 1:
                    victim = [other for other in self.jobs if other.computed][-1]
                    dropped.append(victim)
                    victim.computed = 0
                    if victim in decoding and victim is not job:
                        keep -= 1
                    if victim is job:
                        break
                if job in dropped:
                    break
                tokens = 1
            else:
                ahead = sum(other in decoding and other not in dropped for other in self.jobs[self.jobs.index(job) :])
                needed = sum(
                    self.blocks(other.computed + 1) - self.blocks(other.computed)
                    for other in self.jobs[self.jobs.index(job) :]
                    if other in decoding and other not in dropped
                )
                room = self.room(job) - needed * self.block_size
                tokens = min(left - ahead, job.todo, room)
                if tokens < 1:
                    if ahead:
                        continue
                    break
            job.computed += tokens
            plan[job.name] = tokens
            left -= tokens
        self.finish(plan)
        return plan, [job.name for job in dropped]


@right(7, "scheduler")
class SchedulerWithAHeap:
    """Jobs in a heap by arrival, counters in dicts, block counts kept as they change."""

    def __init__(self, n_blocks, block_size, budget):
        self.free, self.total, self.size, self.budget = n_blocks, n_blocks, block_size, budget
        self.heap, self.tick = [], itertools.count()
        self.state = {}

    def add(self, name, prompt, new):
        if -(-(prompt + new - 1) // self.size) > self.total:
            raise ValueError
        heapq.heappush(self.heap, (next(self.tick), name))
        self.state[name] = [prompt, 0, new]  # the whole text so far, computed, new ones to come

    def _set(self, name, computed):
        before = -(-self.state[name][1] // self.size)
        self.free += before - -(-computed // self.size)
        self.state[name][1] = computed

    def _fits(self, name, more):
        computed = self.state[name][1]
        return -(-(computed + more) // self.size) - -(-computed // self.size) <= self.free

    def step(self):
        names = [name for _, name in sorted(self.heap) if name in self.state]
        plan, preempted, left = {}, [], self.budget
        for name in names:
            text, computed, _ = self.state[name]
            if computed == 0 or text - computed > 1 or left == 0:
                continue
            while not self._fits(name, 1) and name not in preempted:
                last = next(other for other in reversed(names) if self.state[other][1])
                self._set(last, 0)
                preempted.append(last)
            if name not in preempted:
                self._set(name, computed + 1)
                plan[name] = 1
                left -= 1
        for name in names:
            if name in plan:
                continue
            if name in preempted:
                break
            text, computed, _ = self.state[name]
            tokens = min(left, text - computed)
            while tokens and not self._fits(name, tokens):
                tokens -= 1
            if not tokens:
                break
            self._set(name, computed + tokens)
            plan[name] = tokens
            left -= tokens
        for name in list(plan):
            if self.state[name][0] == self.state[name][1]:
                self.state[name][0] += 1
                self.state[name][2] -= 1
                if not self.state[name][2]:
                    self._set(name, 0)
                    del self.state[name]
        self.heap = [entry for entry in self.heap if entry[1] in self.state]
        heapq.heapify(self.heap)
        return plan, preempted


@right(7, "scheduler")
class SchedulerWithBlocksOfItsOwn(JobsInOrder):
    """Keeps real block tables, with a stack of free blocks."""

    def __init__(self, n_blocks, block_size, budget):
        super().__init__(n_blocks, block_size, budget)
        self.stack = list(range(n_blocks))
        self.tables = defaultdict(list)

    def room(self, job):
        return (len(self.stack) + len(self.tables[job.name])) * self.block_size - job.computed

    def advance(self, job, tokens):
        job.computed += tokens
        table = self.tables[job.name]
        while len(table) * self.block_size < job.computed:
            table.append(self.stack.pop())

    def drop(self, job):
        self.stack += self.tables.pop(job.name)
        job.computed = 0

    def step(self):
        plan, preempted = {}, []
        decoding = [job for job in self.jobs if job.computed and job.todo == 1]
        for job in decoding[: self.budget]:
            while job.computed and self.room(job) == 0:
                victim = max((j for j in self.jobs if self.tables[j.name]), key=self.jobs.index)
                self.drop(victim)
                preempted.insert(0, victim.name)
            if job.computed:
                self.advance(job, 1)
                plan[job.name] = 1
        left = self.budget - len(plan)
        others = [job for job in self.jobs if job.name not in plan]
        for job in itertools.takewhile(lambda job: job.name not in preempted, others):
            tokens = min(left, job.todo, self.room(job))
            if not tokens:
                break
            self.advance(job, tokens)
            plan[job.name] = tokens
            left -= tokens
        self.finish(plan)
        for name in [name for name in self.tables if name not in {job.name for job in self.jobs}]:
            self.stack += self.tables.pop(name)
        return dict(sorted(plan.items())), preempted


@right(7, "scheduler")
class SchedulerByRecursion(JobsInOrder):
    """Tries to plan; where blocks are missing, preempts the last one and tries again from the beginning."""

    def step(self, gone=()):
        plan, left, free = {}, self.budget, self.free_blocks()
        for job in self.jobs:
            if job.computed and job.todo == 1 and left and job.name not in gone:
                needs = job.computed % self.block_size == 0
                if needs and not free:
                    victim = [other for other in self.jobs if other.computed][-1]
                    victim.computed = 0
                    return self.step((*gone, victim.name))
                free -= needs
                plan[job.name] = 1
                left -= 1
        for job in self.jobs:
            if job.name in plan:
                continue
            slots = free * self.block_size + (-job.computed) % self.block_size
            tokens = min(left, job.todo, slots)
            if job.name in gone or tokens < 1:
                break
            free -= self.blocks(job.computed + tokens) - self.blocks(job.computed)
            plan[job.name] = tokens
            left -= tokens
        for job in self.jobs:
            job.computed += plan.get(job.name, 0)
        self.finish(plan)
        return plan, list(gone)


class SchedulerOfParts(JobsInOrder):
    """What the wrong schedulers below have in common."""

    def is_decode(self, job):
        return job.computed > 0 and job.todo == 1

    def victims(self):
        return [job for job in self.jobs if job.computed]

    def amount(self, job, left):
        return min(left, job.todo, self.room(job))

    def step(self):
        plan, gone, left = {}, [], self.budget
        for job in [job for job in self.jobs if self.is_decode(job)]:
            if not left or job.name in gone:
                continue
            while self.room(job) < 1:
                victim = self.victims()[-1]
                self.preempt(victim)
                gone.append(victim.name)
                if victim is job:
                    break
            if job.name not in gone:
                job.computed += 1
                plan[job.name] = 1
                left -= 1
        for job in self.queue():
            if job.name in plan:
                continue
            tokens = self.amount(job, left)
            if job.name in gone or tokens < 1:
                break
            job.computed += tokens
            plan[job.name] = tokens
            left -= tokens
        self.finish(plan)
        return plan, gone

    def preempt(self, job):
        job.computed = 0

    def queue(self):
        return list(self.jobs)


right(7, "scheduler")(SchedulerOfParts)


@wrong(7, "scheduler")
class SchedulerThatAsksForCompletions(SchedulerOfParts):
    """Museum 7, nano-vllm #144: a request with completion tokens is never prefilled."""

    def is_decode(self, job):
        return job.generated > 0


@wrong(7, "scheduler")
class SchedulerThatPreemptsTheSmallest(SchedulerOfParts):
    def victims(self):
        return sorted(super().victims(), key=lambda job: -job.computed)


# batch_scheduler ----------------------------------------------------------------------------------------------------


@right(7, "batch_scheduler")
class BatchOfLists:
    def __init__(self, n_slots, n_blocks, block_size):
        self.n_slots, self.n_blocks, self.size = n_slots, n_blocks, block_size
        self.line, self.batch = [], []

    def add(self, name, prompt, new):
        if math.ceil((prompt + new - 1) / self.size) > self.n_blocks:
            raise ValueError(name)
        self.line.append([name, prompt, prompt + new - 1])

    def step(self):
        held = [math.ceil((tokens + 1) / self.size) for _, tokens, _ in self.batch]
        if sum(held) > self.n_blocks:
            raise MemoryError("no block is free")
        plan = {}
        for row in self.batch:
            row[1] += 1
            plan[row[0]] = 1
        free = self.n_blocks - sum(held)
        while self.line and len(self.batch) < self.n_slots and math.ceil(self.line[0][1] / self.size) <= free:
            row = self.line.pop(0)
            free -= math.ceil(row[1] / self.size)
            plan[row[0]] = row[1]
            self.batch.append(row)
        self.batch = [row for row in self.batch if row[1] < row[2]]
        return plan


@right(7, "batch_scheduler")
class BatchWithTables:
    """Hands out blocks by number, as an engine does."""

    def __init__(self, n_slots, n_blocks, block_size):
        self.pool, self.n_blocks, self.block_size = list(range(n_blocks)), n_blocks, block_size
        self.slots = [None] * n_slots
        self.queue = deque()
        self.table, self.length, self.left = {}, {}, {}

    def add(self, name, prompt, new):
        if prompt + new - 1 > self.n_blocks * self.block_size:
            raise ValueError(f"{name} never fits")
        self.queue.append((name, prompt, new))

    def step(self):
        here = [name for name in self.slots if name is not None]
        full = [name for name in here if self.length[name] % self.block_size == 0]
        if len(full) > len(self.pool):
            raise MemoryError
        plan = OrderedDict()
        for name in here:
            if name in full:
                self.table[name].append(self.pool.pop())
            self.length[name] += 1
            plan[name] = 1
        while self.queue and None in self.slots:
            name, prompt, new = self.queue[0]
            blocks = -(-prompt // self.block_size)
            if blocks > len(self.pool):
                break
            self.queue.popleft()
            self.slots[self.slots.index(None)] = name
            self.table[name] = [self.pool.pop() for _ in range(blocks)]
            self.length[name], self.left[name], plan[name] = prompt, new, prompt
        for name in plan:
            self.left[name] -= 1
            if not self.left[name]:
                self.slots[self.slots.index(name)] = None
                self.pool += self.table.pop(name)
        return plan


@right(7, "batch_scheduler")
class BatchInOneList:
    """One list in order of arrival; who has computed something runs."""

    def __init__(self, n_slots, n_blocks, block_size):
        self.sizes = n_slots, n_blocks, block_size
        self.jobs = []

    def add(self, name, prompt, new):
        if self.blocks(prompt + new - 1) > self.sizes[1]:
            raise ValueError(name)
        self.jobs.append({"name": name, "todo": prompt, "have": 0, "new": new})

    def blocks(self, tokens):
        return (tokens + self.sizes[2] - 1) // self.sizes[2]

    def step(self):
        n_slots, n_blocks, _ = self.sizes
        going, used, joined = {}, 0, 0
        for job in self.jobs:
            used += self.blocks(job["have"] + 1) if job["have"] else 0
            joined += job["have"] > 0
        if used > n_blocks:
            raise MemoryError
        for job in self.jobs:
            if not job["have"]:
                used += self.blocks(job["todo"])
                joined += 1
                if joined > n_slots or used > n_blocks:
                    break
            going[job["name"]] = job["todo"]
        for job in self.jobs:
            if job["name"] in going:
                job["have"] += job["todo"]
                job["todo"] = 1
                job["new"] -= 1
        self.jobs = [job for job in self.jobs if job["new"]]
        return going


@right(7, "batch_scheduler")
class BatchInAnotherOrder(BatchOfLists):
    """Returns NumPy's whole numbers, and its requests from the last to the first."""

    def step(self):
        return {name: np.int64(count) for name, count in reversed(super().step().items())}


@wrong(7, "batch_scheduler")
class BatchThatSharesALine(BatchOfLists):
    """All schedulers have one line."""

    everybody: ClassVar[list] = []

    def __init__(self, n_slots, n_blocks, block_size):
        super().__init__(n_slots, n_blocks, block_size)
        self.line = self.everybody


@wrong(7, "batch_scheduler")
class BatchThatReturnsAList(BatchOfLists):
    def step(self):
        return list(super().step().items())


@wrong(7, "batch_scheduler")
class BatchThatGrowsOneBlockEarly(BatchOfLists):
    """Takes the next block when the last one gets full, a step too early."""

    def step(self):
        if sum((row[1] + 1) // self.size + 1 for row in self.batch) > self.n_blocks:
            raise MemoryError
        return super().step()


@wrong(7, "batch_scheduler")
class BatchThatEndsWhereNoBlockIsFree(BatchOfLists):
    """Ends the request that came last, in place of a MemoryError."""

    def step(self):
        while sum(math.ceil((tokens + 1) / self.size) for _, tokens, _ in self.batch) > self.n_blocks:
            self.batch.pop()
        return super().step()


# accept -------------------------------------------------------------------------------------------------------------


@right(7, "accept")
def accept_in_a_loop(p, q, drafted, coins):
    for i, token in enumerate(drafted):
        if coins[i] >= p[i][token] / q[i][token]:
            rest = [max(a - b, 0.0) for a, b in zip(p[i], q[i], strict=True)]
            return i, [x / sum(rest) for x in rest]
    return len(drafted), p[len(drafted)]


@right(7, "accept")
def accept_in_arrays(p, q, drafted, coins):
    rows = np.arange(len(drafted))
    kept = coins * q[rows, drafted] < p[rows, drafted]
    n = int(np.cumprod(kept).sum())
    padded = np.vstack([q, np.zeros_like(p[:1])])
    rest = np.clip(p[n] - padded[n], 0, None)
    return n, rest / rest.sum()


@right(7, "accept")
def accept_with_min(p, q, drafted, coins):
    n = 0
    while n < len(drafted) and coins[n] < min(1.0, p[n, drafted[n]] / q[n, drafted[n]]):
        n += 1
    if n == len(drafted):
        return np.int64(n), p[n].copy()
    overlap = np.minimum(p[n], q[n])
    return np.int64(n), (p[n] - overlap) / (1 - overlap.sum())


@wrong(7, "accept")
def accept_that_writes_into_p(p, q, drafted, coins):
    n = accept_in_arrays(p, q, drafted, coins)[0]
    if n < len(q):
        p[n] = np.maximum(p[n] - q[n], 0)
        p[n] /= p[n].sum()
    return n, p[n]


@wrong(7, "accept")
def accept_up_to_the_last_rejection(p, q, drafted, coins):
    rejected = [i for i, x in enumerate(drafted) if coins[i] >= p[i, x] / q[i, x]]
    if not rejected:
        return len(drafted), p[-1]
    rest = np.maximum(p[rejected[-1]] - q[rejected[-1]], 0)
    return rejected[-1], rest / rest.sum()


# how_many -----------------------------------------------------------------------------------------------------------


@right(7, "how_many")
def how_many_by_argmax(survival, costs):
    n = survival.shape[0]
    gained = n + np.concatenate(([0], np.cumsum(-np.sort(-survival.ravel()))))
    return np.argmax(gained / costs[n : n + len(gained)])


@right(7, "how_many")
def how_many_in_a_loop(survival, costs):
    chances = sorted((x for row in survival for x in row), reverse=True)
    n = len(survival)
    best, rate, gained = 0, n / costs[n], n
    for b, chance in enumerate(chances, start=1):
        gained += chance
        if gained / costs[n + b] > rate:
            best, rate = b, gained / costs[n + b]
    return best


@right(7, "how_many")
def how_many_with_a_heap(survival, costs):
    heap = [-float(x) for x in np.ravel(survival)]
    heapq.heapify(heap)
    n, total = len(survival), float(len(survival))
    rates = [total / costs[n]]
    while heap:
        total -= heapq.heappop(heap)
        rates.append(total / costs[n + len(rates)])
    return rates.index(max(rates))


@wrong(7, "how_many")
def how_many_row_by_row(survival, costs):
    n = len(survival)
    gained = n + np.concatenate(([0], np.cumsum(survival)))
    return int(np.argmax(gained / costs[n : n + len(gained)]))


# find_the_bug -------------------------------------------------------------------------------------------------------

for prefix_answer in RIGHT[7, "prefix_cache"]:
    right(7, "find_the_bug")(prefix_answer)
for prefix_answer in (PrefixesWithTwoMappings, PrefixesThatSkipAMiss):
    wrong(7, "find_the_bug")(prefix_answer)


# another_bug --------------------------------------------------------------------------------------------------------


class Deciding:
    """What all of these refuse in the same way."""

    def __init__(self, window):
        self.window, self.open = window, []

    def append(self, token):
        if self.open:
            raise ValueError
        self.take(token)

    def draft(self, tokens):
        if self.open:
            raise ValueError
        self.open = list(tokens)
        self.begin(tokens)

    def keep(self, n):
        if not self.open or n not in range(len(self.open) + 1):
            raise ValueError
        tokens, self.open = self.open, []
        self.end(tokens, n)


@right(7, "another_bug")
class WindowOfTheWholeText(Deciding):
    def __init__(self, window):
        super().__init__(window)
        self.text = []

    def take(self, token):
        self.text.append(token)

    def begin(self, tokens):
        self.text += tokens

    def end(self, tokens, n):
        if n < len(tokens):
            del self.text[n - len(tokens) :]

    def visible(self):
        return self.text[-self.window :]


@right(7, "another_bug")
class WindowInADeque(Deciding):
    def __init__(self, window):
        super().__init__(window)
        self.last = deque(maxlen=window)

    def take(self, token):
        self.last.append(token)

    def begin(self, tokens):
        self.kept = self.last.copy()
        self.last.extend(tokens)

    def end(self, tokens, n):
        self.last = self.kept
        self.last.extend(tokens[:n])

    def visible(self):
        return list(self.last)


@right(7, "another_bug")
class WindowWithAnOverlay(Deciding):
    """Drafts lie beside the ring, and are written where they are kept (as mlx-swift-lm does since pull request 516)."""

    def __init__(self, window):
        super().__init__(window)
        self.ring, self.count = {}, 0

    def take(self, token):
        self.ring[self.count % self.window] = token
        self.count += 1

    def begin(self, tokens):
        pass

    def end(self, tokens, n):
        for token in tokens[:n]:
            self.take(token)

    def visible(self):
        ring = [self.ring[p % self.window] for p in range(max(0, self.count - self.window), self.count)]
        return tuple((ring + self.open)[-self.window :])


@right(7, "another_bug")
class WindowThatUndoes(Deciding):
    """Takes down each slot that it overwrites, and goes back one by one."""

    def __init__(self, window):
        super().__init__(window)
        self.slots, self.count, self.undo = np.zeros(window, dtype=int), 0, []

    def take(self, token):
        self.undo.append(int(self.slots[self.count % self.window]))
        self.slots[self.count % self.window] = token
        self.count += 1

    def begin(self, tokens):
        self.undo = []
        for token in tokens:
            self.take(token)

    def end(self, tokens, n):
        for _ in range(len(tokens) - n):
            self.count -= 1
            self.slots[self.count % self.window] = self.undo.pop()

    def visible(self):
        return [self.slots[p % self.window] for p in range(max(0, self.count - self.window), self.count)]


@right(7, "another_bug")
class WindowByPosition(Deciding):
    def __init__(self, window):
        super().__init__(window)
        self.at, self.end_of_text = {}, 0

    def take(self, token):
        self.at[self.end_of_text] = token
        self.end_of_text += 1

    def begin(self, tokens):
        for token in tokens:
            self.take(token)

    def end(self, tokens, n):
        self.end_of_text -= len(tokens) - n
        self.at = {p: token for p, token in self.at.items() if self.end_of_text - self.window <= p < self.end_of_text}

    def visible(self):
        return [self.at[p] for p in sorted(self.at)][-self.window :]


@right(7, "another_bug")
class WindowOfLinks(Deciding):
    """Each token knows the one before it, so that going back is to remember a link."""

    def __init__(self, window):
        super().__init__(window)
        self.last = None

    def take(self, token):
        self.last = (token, self.last)

    def begin(self, tokens):
        self.links = [self.last]
        for token in tokens:
            self.take(token)
            self.links.append(self.last)

    def end(self, tokens, n):
        self.last = self.links[n]

    def visible(self):
        found, link = [], self.last
        while link and len(found) < self.window:
            found.insert(0, link[0])
            link = link[1]
        return found


class RingOf(Deciding):
    """A ring of so many slots: what is pushed out of them is lost."""

    more = 0

    def __init__(self, window):
        super().__init__(window)
        self.slots, self.count = [None] * (window + self.more), 0

    def take(self, token):
        self.slots[self.count % len(self.slots)] = token
        self.count += 1

    def begin(self, tokens):
        for token in tokens:
            self.take(token)

    def end(self, tokens, n):
        self.count -= len(tokens) - n

    def visible(self):
        return [self.slots[p % len(self.slots)] for p in range(max(0, self.count - self.window), self.count)]


@wrong(7, "another_bug")
class WindowWithEightSlotsMore(RingOf):
    more = 8


@wrong(7, "another_bug")
class WindowThatCopiesOnce(RingOf):
    """The slots are copied for the first draft only, while the ring is not full."""

    def begin(self, tokens):
        if self.count >= self.window or not hasattr(self, "before"):
            self.before = list(self.slots), self.count
        super().begin(tokens)

    def end(self, tokens, n):
        self.slots, self.count = list(self.before[0]), self.before[1]
        for token in tokens[:n]:
            self.take(token)


@wrong(7, "another_bug")
class WindowsThatShareSlots(WindowThatUndoes):
    shared: ClassVar[dict] = {}

    def __init__(self, window):
        super().__init__(window)
        self.slots = self.shared.setdefault(window, np.zeros(window, dtype=int))


@wrong(7, "another_bug")
class WindowThatTellsApartByToken(WindowOfTheWholeText):
    def end(self, tokens, n):
        for token in tokens[n:]:
            self.text.remove(token)


# Small ones that stand alone, for a notebook --------------------------------------------------------------------------


@wrong(7, "block_allocator")
class AllocatorWithoutCopies:
    def __init__(self, n_blocks, block_size):
        self.size, self.free_blocks = block_size, list(range(n_blocks))
        self.rows, self.counts = {}, {}

    def append(self, seq):
        count = self.counts.get(seq, 0)
        if count % self.size == 0:
            if not self.free_blocks:
                raise MemoryError
            self.rows.setdefault(seq, []).append(self.free_blocks.pop())
        self.counts[seq] = count + 1
        return self.rows[seq][-1], count % self.size

    def fork(self, seq, new):
        row = self.rows[seq]
        if new in self.rows:
            raise ValueError
        self.rows[new], self.counts[new] = list(row), self.counts[seq]

    def table(self, seq):
        return list(self.rows[seq])

    def free(self, seq):
        self.free_blocks += self.rows.pop(seq)
        del self.counts[seq]


for asked in ("prefix_cache", "find_the_bug"):

    @wrong(7, asked)
    class PrefixesThatFindNothing:
        def __init__(self, n_blocks, block_size):
            self.size, self.idle, self.rows = block_size, list(range(n_blocks)), {}

        def admit(self, name, tokens):
            if name in self.rows:
                raise ValueError
            needed = -(-len(tokens) // self.size)
            if needed > len(self.idle):
                raise MemoryError
            self.rows[name] = [self.idle.pop() for _ in range(needed)]
            return 0, list(self.rows[name])

        def commit(self, name):
            if name not in self.rows:
                raise KeyError

        def table(self, name):
            return list(self.rows[name])

        def release(self, name):
            self.idle += self.rows.pop(name)


@wrong(7, "latencies")
def latencies_of_the_first_gap(arrival, times):
    first = np.array([each[0] for each in times]) - np.array(arrival)
    gap = np.array([each[1] - each[0] if len(each) > 1 else np.nan for each in times])
    return first, gap, gap


@wrong(7, "accept")
def accept_and_draw_from_p(p, q, drafted, coins):
    for i, token in enumerate(drafted):
        if coins[i] * q[i, token] >= p[i, token]:
            return i, p[i]
    return len(drafted), p[-1]


@wrong(7, "another_bug")
class WindowWithoutAMemory:
    def __init__(self, window):
        self.window, self.text, self.open = window, [], 0

    def append(self, token):
        if self.open:
            raise ValueError
        self.text = [*self.text, token][-self.window :]

    def draft(self, tokens):
        if self.open:
            raise ValueError
        self.text, self.open = [*self.text, *tokens][-self.window :], len(tokens)

    def keep(self, n):
        if not self.open or not 0 <= n <= self.open:
            raise ValueError
        self.text, self.open = self.text[: max(0, len(self.text) - self.open + n)], 0

    def visible(self):
        return list(self.text)
