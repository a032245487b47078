"""Day 7: allocators of blocks. f(n_blocks, block_size) makes one; its sequences have whole numbers for names.

append(seq) gives (block, place), or None where no block is free; fork(seq, new), table(seq) and free(seq) are those of
the exercise `block_allocator`. Nobody asks for a sequence that is unknown.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque

from course_utils.checks.judge.implementation import right, wrong


class Pool:
    """Counts how many tables hold a block; free ones lie on a stack."""

    def __init__(self, n_blocks, block_size):
        self.n = n_blocks
        self.size = block_size
        self.held = Counter()
        self.lists = {}
        self.counts = {}
        self.begin(range(n_blocks))

    # Which block is next: each design has its own order.

    def begin(self, blocks):
        self.idle = list(blocks)

    def take(self):
        return self.idle.pop() if self.idle else None

    def give(self, block):
        self.idle.append(block)

    # What a sequence does.

    def append(self, seq):
        table = self.lists.get(seq, [])
        length = self.counts.get(seq, 0)
        at = self.slot(length)
        shared = self.moves(table, at)
        if self.needs(table, at) or shared:
            block = self.take()
            if block is None:
                return self.refused(seq)
            self.held[block] = 1
            if shared:
                self.leave(table[-1])
            table = [*(table[:-1] if shared else table), block]
        self.lists[seq] = table
        self.counts[seq] = length + 1
        return table[-1], at

    def slot(self, length):
        return length % self.size

    def needs(self, table, slot):
        return slot == 0

    def moves(self, table, slot):
        return slot > 0 and self.held[table[-1]] > 1

    def leave(self, block):
        self.held[block] -= 1

    def refused(self, seq):
        return None

    def fork(self, seq, new):
        for block in self.lists[seq]:
            self.held[block] += 1
        self.lists[new] = list(self.lists[seq])
        self.counts[new] = self.counts[seq]

    def table(self, seq):
        return list(self.lists[seq])

    def free(self, seq):
        for block in self.lists.pop(seq):
            self.held[block] -= 1
            if not self.held[block]:
                self.give(block)
        del self.counts[seq]


class Queue(Pool):
    def begin(self, blocks):
        self.idle = deque(blocks)

    def take(self):
        return self.idle.popleft() if self.idle else None


class LowestFirst(Pool):
    def take(self):
        return heapq.heappop(self.idle) if self.idle else None

    def give(self, block):
        heapq.heappush(self.idle, block)


class HighestFirst(Pool):
    def take(self):
        self.idle.sort()
        return super().take()


class AtRandom(Pool):
    def begin(self, blocks):
        super().begin(blocks)
        self.random = random.Random(len(self.idle))

    def take(self):
        self.random.shuffle(self.idle)
        return super().take()


class Bits(Pool):
    """A whole number whose bits are the free blocks."""

    def begin(self, blocks):
        self.bits = (1 << len(blocks)) - 1

    def take(self):
        lowest = self.bits & -self.bits
        self.bits -= lowest
        return lowest.bit_length() - 1 if lowest else None

    def give(self, block):
        self.bits |= 1 << block


class Looking(Pool):
    """Keeps no list of free blocks: it looks which one no table names."""

    def begin(self, blocks):
        self.blocks = blocks

    def take(self):
        named = {block for table in self.lists.values() for block in table}
        return next((block for block in self.blocks if block not in named), None)

    def give(self, block):
        pass


class Links(Pool):
    """Each free block knows the next one."""

    def begin(self, blocks):
        self.first = 0
        self.next = {block: block + 1 for block in blocks}
        self.next[len(blocks) - 1] = None

    def take(self):
        block = self.first
        if block is not None:
            self.first = self.next[block]
        return block

    def give(self, block):
        self.first, self.next[block] = block, self.first


class RoundAndRound(Pool):
    """Goes on from the block that it gave last."""

    last = -1

    def take(self):
        if not self.idle:
            return None
        self.last = min(self.idle, key=lambda block: (block - self.last - 1) % self.n)
        self.idle.remove(self.last)
        return self.last


class Swept(Pool):
    """Freed blocks are gathered only when there is no other."""

    def begin(self, blocks):
        super().begin(blocks)
        self.dropped = []

    def take(self):
        if not self.idle:
            self.idle = self.dropped
            self.dropped = []
        return super().take()

    def give(self, block):
        self.dropped.append(block)


class Owners(Pool):
    """Keeps for each block the names that have it."""

    def begin(self, blocks):
        self.owners = {block: set() for block in blocks}
        self.size_of = {}

    def append(self, seq):
        table = self.lists.get(seq, [])
        length = self.counts.get(seq, 0)
        at = length % self.size
        shared = at > 0 and len(self.owners[table[-1]]) > 1
        if at == 0 or shared:
            block = next((block for block, owners in self.owners.items() if not owners), None)
            if block is None:
                return None
            if shared:
                self.owners[table.pop()].discard(seq)
            table = [*table, block]
            self.owners[block].add(seq)
        self.lists[seq] = table
        self.counts[seq] = length + 1
        return table[-1], at

    def fork(self, seq, new):
        super().fork(seq, new)
        for block in self.lists[new]:
            self.owners[block].add(new)

    def free(self, seq):
        for block in self.lists.pop(seq):
            self.owners[block].discard(seq)
        del self.counts[seq]


class Places(Pool):
    """Keeps where each token lies; a table is read off that."""

    def table(self, seq):
        return [self.lists[seq][place // self.size] for place in range(0, self.counts[seq], self.size)]


# Wrong ones


class NoCopies(Pool):
    def moves(self, table, slot):
        return False


class BlockForEach(Pool):
    def slot(self, length):
        return 0


class SlotsFromOne(Pool):
    def append(self, seq):
        place = super().append(seq)
        return place and (place[0], place[1] + 1)


class OneBlock(Pool):
    def append(self, seq):
        place = super().append(seq)
        return place and (0, place[1])


class Exchanged(Pool):
    def append(self, seq):
        place = super().append(seq)
        return place and place[::-1]


class NeverFrees(Pool):
    def give(self, block):
        pass


class FreesShared(Pool):
    def free(self, seq):
        for block in self.lists.pop(seq):
            self.held[block] = 0
            if block not in self.idle:
                self.give(block)
        del self.counts[seq]


class FreesTwice(Pool):
    def free(self, seq):
        for block in self.lists.pop(seq):
            self.held[block] -= 1
            self.give(block)
        del self.counts[seq]


class KeepsTheLast(Pool):
    def free(self, seq):
        self.held[self.lists[seq].pop()] += 1
        super().free(seq)


class SharedForGood(Pool):
    """A block that was shared once never comes back."""

    def fork(self, seq, new):
        super().fork(seq, new)
        for block in self.lists[new]:
            self.held[block] += 1


class OneList(Pool):
    def fork(self, seq, new):
        super().fork(seq, new)
        self.lists[new] = self.lists[seq]

    def append(self, seq):
        before = self.lists.get(seq)
        place = super().append(seq)
        if before is not None:
            before[:] = self.lists[seq]
            self.lists[seq] = before
        return place


class ForkTakesBlocks(Pool):
    def fork(self, seq, new):
        taken = [self.take() for _ in self.lists[seq]]
        if None in taken:
            for block in filter(lambda block: block is not None, taken):
                self.give(block)
            super().fork(seq, new)
            return
        self.held.update(dict.fromkeys(taken, 1))
        self.lists[new] = taken
        self.counts[new] = self.counts[seq]


class ForkWithoutTheLast(Pool):
    def fork(self, seq, new):
        super().fork(seq, new)
        if len(self.lists[new]) > 1:
            self.held[self.lists[new].pop()] -= 1
            self.counts[new] = len(self.lists[new]) * self.size


class ForkCountsAnew(Pool):
    def fork(self, seq, new):
        super().fork(seq, new)
        self.counts[new] = 0


class CountsTheLastAlone(Pool):
    def fork(self, seq, new):
        super().fork(seq, new)
        for block in self.lists[new][:-1]:
            self.held[block] -= 1

    def free(self, seq):
        for block in self.lists.pop(seq):
            self.held[block] -= 1
            if self.held[block] <= 0 and block not in self.idle:
                self.give(block)
        del self.counts[seq]


class OldBlockStillHeld(Pool):
    def leave(self, block):
        pass


class OldBlockGivenBack(Pool):
    def leave(self, block):
        super().leave(block)
        self.give(block)


class CopyForAll(Pool):
    def append(self, seq):
        before = self.lists.get(seq, [])
        place = super().append(seq)
        after = self.lists.get(seq, [])
        if place and len(after) == len(before) and after != before:
            for table in self.lists.values():
                table[:] = [after[-1] if block == before[-1] else block for block in table]
            self.held[after[-1]] = 1 + self.held[before[-1]]
            self.held[before[-1]] = 0
            self.give(before[-1])
        return place


class FullBlocksCopied(Pool):
    def moves(self, table, slot):
        return bool(table) and self.held[table[-1]] > 1


class OneTokenLate(Pool):
    def needs(self, table, slot):
        return not table or (slot == 0 and self.held[table[-1]] > 1) or (slot == 1 < self.size and len(table) > 1)


class RefusedTooSoon(Pool):
    def append(self, seq):
        block = self.take()
        if block is None:
            return None
        self.give(block)
        return super().append(seq)


class LongerAlthoughRefused(Pool):
    def refused(self, seq):
        if seq in self.counts:
            self.counts[seq] += 1


class EmptiedWhenRefused(Pool):
    def refused(self, seq):
        if seq in self.lists:
            self.free(seq)
            self.lists[seq] = []
            self.counts[seq] = 0


class LeavesWhenRefused(Pool):
    """Lets go of the shared block before it knows that there is another."""

    def refused(self, seq):
        if self.counts.get(seq, 0) % self.size:
            self.held[self.lists[seq][-1]] -= 1


class OneKeptBack(Pool):
    def begin(self, blocks):
        super().begin(blocks[1:] if len(blocks) > 1 else blocks)


class OneTooMany(Pool):
    def begin(self, blocks):
        super().begin(range(len(blocks) + 1))


class SlotOfTheText(Pool):
    def append(self, seq):
        length = self.counts.get(seq, 0)
        place = super().append(seq)
        return place and (place[0], length)


class LengthOutlivesFree(Pool):
    def free(self, seq):
        length = self.counts[seq]
        super().free(seq)
        self.counts[seq] = length % self.size

    def append(self, seq):
        if seq not in self.lists and self.counts.get(seq):
            self.counts[seq] = 0
            place = super().append(seq)
            return place and (place[0], place[1] + 1)
        return super().append(seq)


class Sorted(Pool):
    def table(self, seq):
        return sorted(super().table(seq))


class Reversed(Pool):
    def table(self, seq):
        return super().table(seq)[::-1]


class BlocksOfFour(Pool):
    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, min(block_size, 4))


class SharedForEver(Pool):
    """Copies a block that was shared once, also where only one has it."""

    def begin(self, blocks):
        super().begin(blocks)
        self.once = set()

    def fork(self, seq, new):
        super().fork(seq, new)
        self.once.update(self.lists[seq])

    def moves(self, table, slot):
        return slot > 0 and table[-1] in self.once

    def append(self, seq):
        before = self.lists.get(seq, [])[-1:]
        place = super().append(seq)
        if place and before and before[0] != place[0] and not self.held[before[0]]:
            self.give(before[0])
        self.once.discard(place[0] if place and place[1] == 0 else None)
        return place


class AtMostEight(Pool):
    def begin(self, blocks):
        super().begin(blocks[:8])


class ForgetsAFork(Pool):
    """A fork of a fork shares nothing: its blocks are not counted."""

    def begin(self, blocks):
        super().begin(blocks)
        self.forks = set()

    def fork(self, seq, new):
        super().fork(seq, new)
        if seq in self.forks:
            for block in self.lists[new]:
                self.held[block] -= 1
        self.forks.add(new)


class TwoHolders(Pool):
    """Counts no further than to two."""

    def fork(self, seq, new):
        super().fork(seq, new)
        for block in self.lists[new]:
            self.held[block] = min(self.held[block], 2)

    def free(self, seq):
        for block in self.lists.pop(seq):
            self.held[block] -= 1
            if self.held[block] <= 0 and block not in self.idle:
                self.give(block)
        del self.counts[seq]


def together():
    """Allocators that keep in their class which blocks are free."""

    class Together(Pool):
        pools: dict = {}  # noqa: RUF012

        def begin(self, blocks):
            self.idle = self.pools.setdefault(len(blocks), list(blocks))

    return Together


FORKS = "Fork a sequence, then append to both."
FILL_THE_POOL = "Fill the pool, and see what is refused."

CALLS = {  # what a test may call, and how
    "": ("n_blocks", "block_size"),
    "append": ("seq",),
    "fork": ("seq", "new"),
    "table": ("seq",),
    "free": ("seq",),
}

IMPLEMENTATIONS = (
    right("a stack of free blocks", Pool),
    right("a queue", Queue),
    right("a heap", LowestFirst, "It gives the block with the lowest number. The choice is free."),
    right("the highest number first", HighestFirst),
    right("any free block", AtRandom, "It gives any free block. A test that expects a certain one condemns it."),
    right("bits of a number", Bits),
    right("looking through all tables", Looking),
    right("a linked list", Links),
    right("round and round", RoundAndRound),
    right("freed blocks gathered late", Swept, "It gives freed blocks again only when there is no other."),
    right("sets of owners", Owners),
    right("places of tokens", Places),
    wrong("no copy on write", NoCopies, "It writes into blocks that another sequence has too.", FORKS),
    wrong("a block for each token", BlockForEach, "Each token gets a block.", "Append twice.", gross=True),
    wrong("places from one", SlotsFromOne, "Places count from 1.", "Look at the first place.", gross=True),
    wrong("the same block", OneBlock, "It says block 0 for each token.", "Append to two sequences.", gross=True),
    wrong("place before block", Exchanged, "It returns (place, block).", "Let block and place differ.", gross=True),
    wrong("never freed", NeverFrees, "Freed blocks do not come back.", "Free, and use as many blocks again."),
    wrong("shared blocks freed", FreesShared, "free gives back what a fork still has.",
        "Free one of two that share, then fill the pool."),
    wrong("freed twice", FreesTwice, "A shared block comes back once for each table.",
        "Free two that share, then fill the pool."),
    wrong("the last one kept", KeepsTheLast, "free keeps the last block.", "Free, and use as many blocks again."),
    wrong("shared for good", SharedForGood, "A block that was shared once never comes back.",
        "Free two that share, and use as many blocks again."),
    wrong("one list for both", OneList, "A fork uses the other's table instead of its own.", FORKS),
    wrong("a fork that copies", ForkTakesBlocks, "fork takes blocks, as long as there are enough.",
        "Look at the table of a fork."),
    wrong("a fork without the last block", ForkWithoutTheLast, "A fork has the full blocks only.",
        "Look at the table of a fork."),
    wrong("a fork that counts anew", ForkCountsAnew, "A fork begins at place 0.", FORKS),
    wrong("only the last block counted", CountsTheLastAlone, "A fork counts as a holder of the last block alone.",
        "Free one of two that share several blocks, then fill the pool."),
    wrong("the old block still held", OldBlockStillHeld, "A sequence that makes a copy still counts for the old block.",
        FORKS + " Then append to both again."),
    wrong("the old block given back", OldBlockGivenBack,
        "A sequence that makes a copy gives the old block back, although others have it.",
        FORKS + " Then fill the pool."),
    wrong("the copy for all", CopyForAll, "A copy replaces the block in all tables.", FORKS),
    wrong("full blocks copied", FullBlocksCopied, "A shared block that is full is replaced.",
        "Fork where the last block is full."),
    wrong("one token late", OneTokenLate, "A new block comes one token late.", "Look at each place."),
    wrong("refused too soon", RefusedTooSoon, "It refuses while there is a place left.", FILL_THE_POOL),
    wrong("longer although refused", LongerAlthoughRefused, "A refused token counts.",
        "Go on after something was refused."),
    wrong("emptied when refused", EmptiedWhenRefused, "A sequence that is refused loses everything.",
        "Go on after something was refused."),
    wrong("leaves when refused", LeavesWhenRefused, "A sequence that is refused a copy no longer holds "
        "the shared block.",
        "Let a copy be refused, and append again."),
    wrong("one kept back", OneKeptBack, "One block is never given.", FILL_THE_POOL),
    wrong("one too many", OneTooMany, "There is a block that does not exist.", FILL_THE_POOL),
    wrong("place of the text", SlotOfTheText, "Places count on through the text.", "Fill more than a block."),
    wrong("a length that stays", LengthOutlivesFree, "A name that comes again begins at a different place.",
        "Use a name again."),
    wrong("sorted", Sorted, "A table is sorted by number.", "Let a sequence get blocks in another order."),
    wrong("reversed", Reversed, "A table begins at its end.", "Look at a table of two blocks."),
    wrong("blocks of four at most", BlocksOfFour, "A block has at most four places.", "Try other sizes."),
    wrong("a copy for ever", SharedForEver, "A block that was shared once is copied, even where only one has it.",
        "Free one of two that share, and append to the other."),
    wrong("eight blocks at most", AtMostEight, "It uses at most eight blocks.", "Try other sizes."),
    wrong("a fork of a fork", ForgetsAFork, "A fork of a fork is not counted.", "Fork a fork, and append to all."),
    wrong("no more than two", TwoHolders, "It counts at most two holders.", "Let three share."),
    wrong("two allocators in one", together, "All allocators of a size have the same free blocks.",
        "Make two, and use them alternately.", anew=True),
)  # fmt: skip
