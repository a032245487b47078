"""Day 7: the answers to its exercises, and the mistakes that people make in them.

Those marked with a source are bugs that were public in a server of language models.
"""

import math

import numpy as np

from course_utils.answers.day7.duel import duel
from course_utils.checks.judge.exercise import Exercise, Mistake

# By pencil ----------------------------------------------------------------------------------------------------------

BY_HAND = {"static_steps": 9, "continuous_ends": [2, 6, 5], "place": [4, 1]}
BY_HAND_DRAFT = {"following": [0.75, 0, 0.25]}


def slip(name, number, message):
    return Mistake(f"{name} {number}", {**(BY_HAND if name in BY_HAND else {}), name: number}, message)


BY_HAND_MISTAKES = (
    slip("static_steps", 6,
        "static_steps is that of continuous batching. Static batching starts c when the whole batch "
        "before it is done."),
    slip("static_steps", 11, "static_steps adds up all three requests. Two of them run side by side."),
    slip("static_steps", 5, "static_steps lets c start when a ends. A static batch ends with its longest request."),
    slip("continuous_ends", [2, 6, 9],
        "In continuous_ends c waits for b. With continuous batching it takes the slot of "
        "a, as soon as a ends."),
    slip("continuous_ends", [2, 6, 3], "In continuous_ends c starts at once. There are two slots, and both are taken "
        "until a ends."),
    slip("continuous_ends", [2, 6, 6], "In continuous_ends c starts one step late. The slot of a is free for the step "
        "after its last one."),
    slip("continuous_ends", [6, 6, 9],
        "continuous_ends has the steps of static batching, in which nobody leaves before "
        "the longest is done."),
    slip("place", [1, 1], "place names the row of the table. What stands in that row is the block."),
    slip("place", [7, 0], "place is one token too early: the last of 6 tokens is token 5, counted from 0."),
    slip("place", [4, 5],
        "The second number of place counts from the beginning of the text. It should count from the "
        "beginning of the block."),
    slip("place", [1, 4], "place has its two numbers exchanged. The block comes first."),
    slip("place", [2, 1], "place counts tokens from 1. Token 5, counted from 0, is the sixth."),
)  # fmt: skip

BY_HAND_DRAFT_MISTAKES = (
    slip("following", [0.5, 0.2, 0.3], "following is p itself. Token 1 was rejected: what q offered too often is taken "
        "off p first."),
    slip("following", [0.3, 0, 0.1], "following does not sum to 1 yet: divide (p − q)₊ by its sum."),
    slip("following", [0, 1, 0], "following is the drafted token. Its coin lies above p/q, so it is rejected."),
    slip("following", [0.625, 0, 0.375], "following is p without the rejected token. Take q off p at every token."),
    slip("following", [0.375, 0.5, 0.125], "following is made of |p − q|. Where q is larger than p, nothing is left."),
)  # fmt: skip


# Blocks to share ----------------------------------------------------------------------------------------------------


class BlockAllocator:
    """Right, in small steps, so that each mistake below can change one."""

    def __init__(self, n_blocks, block_size):
        self.n_blocks, self.block_size = n_blocks, block_size
        self.holders = [0] * n_blocks
        self.tables, self.lengths = {}, {}

    def take(self):
        for block, count in enumerate(self.holders):
            if count == 0:
                self.holders[block] = 1
                return block
        raise MemoryError("no block is free")

    def give(self, block):
        self.holders[block] -= 1

    def begin(self, seq):
        return self.tables.get(seq, []), self.lengths.get(seq, 0)

    def shared(self, block):
        return self.holders[block] > 1

    def copy(self, seq, table):
        """A fresh block in place of the last one, which others have too."""
        fresh = self.take()
        self.give(table[-1])
        return [*table[:-1], fresh]

    def append(self, seq):
        table, length = self.begin(seq)
        if length % self.block_size == 0:
            table = [*table, self.take()]
        elif self.shared(table[-1]):
            table = self.copy(seq, table)
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.block_size

    def fork(self, seq, new):
        table = self.tables[seq]
        if new in self.tables:
            raise ValueError(f"{new} is there already")
        for block in table:
            self.holders[block] += 1
        self.tables[new], self.lengths[new] = list(table), self.lengths[seq]

    def table(self, seq):
        return list(self.tables[seq])

    def free(self, seq):
        for block in self.tables.pop(seq):
            self.give(block)
        del self.lengths[seq]


class NeverCopies(BlockAllocator):
    def shared(self, block):
        return False


class FreesShared(BlockAllocator):
    def free(self, seq):
        for block in self.tables.pop(seq):
            self.holders[block] = 0
        del self.lengths[seq]


class GivesBackTwice(BlockAllocator):
    """A list of free blocks and no counts."""

    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, block_size)
        self.unused = list(range(n_blocks))

    def take(self):
        if not self.unused:
            raise MemoryError
        block = self.unused.pop()
        self.holders[block] += 1
        return block

    def give(self, block):
        self.holders[block] -= 1
        self.unused.append(block)


class NeverGivesBack(BlockAllocator):
    def free(self, seq):
        del self.tables[seq], self.lengths[seq]


class GivesBackAllButLast(BlockAllocator):
    def free(self, seq):
        for block in self.tables.pop(seq)[:-1]:
            self.give(block)
        del self.lengths[seq]


class GivesBackOnlyWhatNobodyShares(BlockAllocator):
    def free(self, seq):
        for block in self.tables.pop(seq):
            if self.holders[block] == 1:
                self.holders[block] = 0
        del self.lengths[seq]


class CopyKeepsTheOld(BlockAllocator):
    def copy(self, seq, table):
        return [*table[:-1], self.take()]


class CopyForAll(BlockAllocator):
    """The fresh block goes into every table that had the old one."""

    def copy(self, seq, table):
        fresh, old = self.take(), table[-1]
        self.holders[fresh], self.holders[old] = self.holders[old], 0
        for other in self.tables.values():
            other[:] = [fresh if block == old else block for block in other]
        return [fresh if block == old else block for block in table]


class CopyOfFullBlocks(BlockAllocator):
    """A shared last block is left behind even when it is full."""

    def append(self, seq):
        table, length = self.begin(seq)
        if table and self.shared(table[-1]):
            table = self.copy(seq, table)
        if length % self.block_size == 0:
            table = [*table, self.take()]
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.block_size


class OneListForBoth(BlockAllocator):
    def fork(self, seq, new):
        super().fork(seq, new)
        self.tables[new] = self.tables[seq]

    def append(self, seq):
        table, length = self.begin(seq)
        if length % self.block_size == 0:
            table.append(self.take())
        elif self.shared(table[-1]):
            table[-1] = self.copy(seq, table)[-1]
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.block_size


class KnownOnceRefused(BlockAllocator):
    def append(self, seq):
        self.tables.setdefault(seq, [])
        self.lengths.setdefault(seq, 0)
        return super().append(seq)


class LongerOnceRefused(BlockAllocator):
    """The length grows before a block is looked for."""

    def append(self, seq):
        table, length = self.begin(seq)
        if table:
            self.lengths[seq] = length + 1
        fresh = self.take() if length % self.block_size == 0 else None
        if fresh is not None:
            table = [*table, fresh]
        elif self.shared(table[-1]):
            table = self.copy(seq, table)
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.block_size


class ABlockForEachToken(BlockAllocator):
    def append(self, seq):
        table, length = self.begin(seq)
        self.tables[seq], self.lengths[seq] = [*table, self.take()], length + 1
        return self.tables[seq][-1], length % self.block_size


class OneTokenLate(BlockAllocator):
    """A block is taken one token too late: slot block_size of a block of block_size."""

    def append(self, seq):
        table, length = self.begin(seq)
        if not table or (length % self.block_size == 1 and length > 1):
            table = [*table, self.take()]
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], length % self.block_size


class AsksTooSoon(BlockAllocator):
    """MemoryError whenever no block is free, needed or not."""

    def append(self, seq):
        if all(self.holders):
            raise MemoryError
        return super().append(seq)


class SlotsOfTheText(BlockAllocator):
    def append(self, seq):
        block, _ = super().append(seq)
        return block, self.lengths[seq] - 1


class ForkWithoutLength(BlockAllocator):
    def fork(self, seq, new):
        super().fork(seq, new)
        self.lengths[new] = 0


class ForkCopiesAll(BlockAllocator):
    def fork(self, seq, new):
        if new in self.tables:
            raise ValueError
        length = self.lengths[seq]
        self.tables[new], self.lengths[new] = [self.take() for _ in self.tables[seq]], length


class ForkCopiesTheLast(BlockAllocator):
    """The block that is half full is copied at the fork, not at the first write."""

    def fork(self, seq, new):
        super().fork(seq, new)
        if self.lengths[new] % self.block_size:
            self.tables[new] = self.copy(new, self.tables[new])


class ForkOverwrites(BlockAllocator):
    def fork(self, seq, new):
        if seq in self.tables and new in self.tables and new != seq:
            self.free(new)
        if seq not in self.tables or new != seq:
            super().fork(seq, new)


class NoErrors(BlockAllocator):
    """What is unknown is empty."""

    def table(self, seq):
        return list(self.tables.get(seq, []))

    def free(self, seq):
        for block in self.tables.pop(seq, []):
            self.give(block)
        self.lengths.pop(seq, None)

    def fork(self, seq, new):
        if seq in self.tables:
            super().fork(seq, new)


class LengthOutlivesFree(BlockAllocator):
    def free(self, seq):
        length = self.lengths[seq]
        super().free(seq)
        self.lengths[seq] = length

    def append(self, seq):
        if seq in self.tables or self.lengths.get(seq, 0) % self.block_size == 0:
            return super().append(seq)
        length = self.lengths[seq]
        self.tables[seq], self.lengths[seq] = [self.take()], length + 1
        return self.tables[seq][-1], length % self.block_size


class PopsFromEmpty(BlockAllocator):
    def take(self):
        block = [block for block, count in enumerate(self.holders) if count == 0].pop()
        self.holders[block] = 1
        return block


class Grows(BlockAllocator):
    def take(self):
        try:
            return super().take()
        except MemoryError:
            self.holders.append(1)
            return len(self.holders) - 1


class KeepsOneBack(BlockAllocator):
    def take(self):
        if self.holders.count(0) < 2:
            raise MemoryError
        return super().take()


class CountsOneHolder(BlockAllocator):
    """Counts the holders of the last block of a fork only."""

    def fork(self, seq, new):
        super().fork(seq, new)
        for block in self.tables[seq][:-1]:
            self.holders[block] -= 1


class CopiesEvenIfAlone(BlockAllocator):
    """Once shared, a block counts as shared for ever."""

    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, block_size)
        self.once = set()

    def fork(self, seq, new):
        super().fork(seq, new)
        self.once |= set(self.tables[seq])

    def shared(self, block):
        return block in self.once

    def take(self):
        block = super().take()
        self.once.discard(block)
        return block


ALLOCATOR_MISTAKES = (
    Mistake("no copy on write", NeverCopies,
        "A token goes into a block that another sequence has too, and overwrites what that one wrote next. Before a "
        "write into a shared block, take a fresh one."),
    Mistake("shared blocks freed", FreesShared,
        "free gives back blocks that another sequence still has. Count for each block how many tables name it."),
    Mistake("given back twice", GivesBackTwice,
        "Each table that lets go of a block puts it among the free ones, so a shared block comes there more than once. "
        "Only the last one to let go may do that."),
    Mistake("never given back", NeverGivesBack, "free forgets the sequence, but its blocks stay taken."),
    Mistake("all but the last given back", GivesBackAllButLast,
        "free keeps one block back: the last one, half full or not, is a block of the sequence too."),
    Mistake("shared blocks never given back", GivesBackOnlyWhatNobodyShares,
        "A block that was shared when it was freed never comes back: its count must go down with every table that "
        "lets go of it."),
    Mistake("a copy that keeps the old block", CopyKeepsTheOld,
        "A sequence that makes a copy gives up the shared block. Its count must go down, or the last one "
        "to have it seems to "
        "share it still."),
    Mistake("the copy goes to all", CopyForAll,
        "The fresh block replaces the old one in the tables of others too. Only the one that writes moves."),
    Mistake("full blocks copied", CopyOfFullBlocks,
        "A shared block is left although it is full. Nothing is written there any more: both keep it, and the next "
        "token "
        "goes to a new block behind it."),
    Mistake("one list for both", OneListForBoth,
        "After a fork both names stand for one list, so a block that one of them takes appears in the table of the "
        "other. Give the fork a list of its own."),
    Mistake("known although refused", KnownOnceRefused,
        "A sequence that was refused its first token is known afterwards. Ask for the block first, and change anything "
        "only when you have it."),
    Mistake("longer although refused", LongerOnceRefused,
        "A token that was refused counts in the length. Ask for the block first, and change anything only when you "
        "have it."),
    Mistake("a block for each token", ABlockForEachToken,
        "Every token takes a new block. A new one is needed only when the last one is full."),
    Mistake("a block one token late", OneTokenLate,
        "A new block is taken one token too late: a block of n slots is full after n tokens, so the token at a "
        "multiple "
        "of n needs a new one."),
    Mistake("asks too soon", AsksTooSoon,
        "append refuses as soon as no block is free, though the token may still have a place. Only who needs a block "
        "can "
        "be refused."),
    Mistake("slots of the whole text", SlotsOfTheText,
        "The place counts from the beginning of the sequence. It should count from the beginning of its block."),
    Mistake("a fork without its length", ForkWithoutLength,
        "A fork begins to count at 0, though it has all the tokens of the other. Its length is a part of it."),
    Mistake("a fork that copies", ForkCopiesAll,
        "fork takes new blocks. It should take none: both share what is there, until one of them writes."),
    Mistake("a fork that copies the last block", ForkCopiesTheLast,
        "fork takes a new block for the half full one. Wait with the copy until one of both writes: many never do."),
    Mistake("a fork onto a name", ForkOverwrites,
        "fork replaces a sequence that is there already. That is a ValueError."),
    Mistake("what is unknown is empty", NoErrors,
        "An unknown sequence is treated as an empty one. table, fork and free raise KeyError for it."),
    Mistake("a length that outlives free", LengthOutlivesFree,
        "After free the name begins with its old length. free forgets that too."),
    Mistake("another error than MemoryError", PopsFromEmpty,
        "Where no block is free, append fails halfway with another error. Check first whether a block is free, and "
        "raise MemoryError if not."),
    Mistake("blocks that do not exist", Grows,
        "When all blocks are taken, one more is made up. There are n_blocks, from 0 to n_blocks − 1: MemoryError."),
    Mistake("one block kept back", KeepsOneBack, "One block is never handed out. All n_blocks can be in use."),
    Mistake("only the last block counted", CountsOneHolder,
        "fork counts a second holder for the last block only. It shares all blocks of the table."),
    Mistake("shared for ever", CopiesEvenIfAlone,
        "A block that was shared once is copied even when only one sequence has it. Whoever has it alone writes "
        "there."),
)  # fmt: skip


# Attention through a table ------------------------------------------------------------------------------------------


def paged(rows=None, scale=None, cut=None, weigh=None, blend=None):
    """Attention through a block table.

    rows(pool, table, length): the keys or values in order, scale(d): what scores are divided by, cut(rows, length),
    weigh(scores): the weights.
    """

    def paged_attention(q, keys, values, table, length):
        gather = rows or gathered
        trim = cut or (lambda x, length: x[:length])
        k, v = (trim(gather(pool, table, length), length) for pool in (keys, values))
        scores = k @ q / (math.sqrt(len(q)) if scale is None else scale(len(q), k))
        return (weigh or softmax)(scores) @ v

    return paged_attention


def gathered(pool, table, length):
    return pool[np.asarray(table)].reshape(-1, pool.shape[-1])


def softmax(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()


def masked_with_zeros(q, keys, values, table, length):
    k, v = gathered(keys, table, length), gathered(values, table, length)
    scores = k @ q / math.sqrt(len(q))
    scores[length:] = -np.inf
    return softmax(scores) @ v


def zero_keys(q, keys, values, table, length):
    k, v = gathered(keys, table, length), gathered(values, table, length)
    k[length:], v[length:] = 0, 0
    return softmax(k @ q / math.sqrt(len(q))) @ v


def whole_pool(pool, table, length):
    return pool.reshape(-1, pool.shape[-1])


def sorted_table(pool, table, length):
    return gathered(pool, np.sort(table), length)


def each_once(pool, table, length):
    return gathered(pool, np.array(list(dict.fromkeys(np.asarray(table).tolist()))), length)


def slots_first(pool, table, length):
    return pool[np.asarray(table)].swapaxes(0, 1).reshape(-1, pool.shape[-1])


def overflowing(scores):
    e = np.exp(scores)
    return e / e.sum()


def full_blocks(q, keys, values, table, length):
    size = keys.shape[1]
    return paged(cut=lambda x, n: x[: max(n // size * size, 1)])(q, keys, values, table, length)


def block_by_block(q, keys, values, table, length):
    """Each block by itself, and the outputs averaged by their tokens: the sums of weights are lost."""
    size, out = keys.shape[1], 0.0
    for start in range(0, length, size):
        n = min(size, length - start)
        block = np.asarray(table)[start // size : start // size + 1]
        out = out + n / length * paged()(q, keys, values, block, n)
    return out


PAGED_MISTAKES = (
    Mistake("the pool in its own order", paged(whole_pool),
        "The first tokens of the pool are taken, whatever the table says. Token p lies in the block that the table "
        "names "
        "at p // block_size."),
    Mistake("the table sorted", paged(sorted_table),
        "The blocks are taken in the order of their numbers. The table has the order of the text."),
    Mistake("each block once", paged(each_once), "A block that the table names twice is read once."),
    Mistake("slots before blocks", paged(slots_first),
        "All places 0 come first, then all places 1. A block holds block_size consecutive tokens."),
    Mistake("nothing cut off", paged(cut=lambda x, length: x),
        "All places in the blocks are attended to. The ones after the last token hold rubbish."),
    Mistake("rubbish with weight 0", masked_with_zeros,
        "The rubbish after the end gets weight 0, but 0 times NaN is NaN. Cut it off before the product."),
    Mistake("rubbish set to 0", zero_keys,
        "The rubbish after the end is set to 0, and a score of 0 still gets weight. Cut it off."),
    Mistake("full blocks only", full_blocks, "The block that is half full is left out. Its tokens belong to the text."),
    Mistake("one token too few", paged(cut=lambda x, length: x[: max(length - 1, 1)]),
        "The last token is left out: `length` counts all of them."),
    Mistake("one token too many", paged(cut=lambda x, length: x[: length + 1]),
        "One place after the end is attended to: there are only `length` tokens."),
    Mistake("no scaling", paged(scale=lambda d, k: 1.0), "The scores are not scaled. Divide by √d."),
    Mistake("scaled by d", paged(scale=lambda d, k: d), "The scores are divided by d. Divide by √d."),
    Mistake("scaled by the number of tokens", paged(scale=lambda d, k: math.sqrt(len(k))),
        "The scores are divided by the root of the number of tokens. Divide by √d, the width of a key."),
    Mistake("no maximum", paged(weigh=overflowing), "exp of large scores overflows. Take the largest off first.",
        overflow=True),
    Mistake("no softmax", paged(weigh=lambda scores: scores), "The scores become weights in a softmax first."),
    Mistake("blocks averaged", block_by_block,
        "Each block gets a softmax of its own, and their outputs are averaged. The softmax runs over all tokens: a "
        "block "
        "with high scores counts for more."),
)  # fmt: skip


# A cache of prefixes ------------------------------------------------------------------------------------------------


class PrefixCache:
    """Right, in small steps, so that each mistake below can change one."""

    def __init__(self, n_blocks, block_size):
        self.block_size = block_size
        self.holders = [0] * n_blocks
        self.text = [None] * n_blocks  # what a block is known to hold: all tokens up to its end
        self.known = {}  # the other way round
        self.line = list(range(n_blocks))  # blocks, the least recently used first
        self.prompts, self.tables = {}, {}

    def key(self, tokens, end):
        return tokens[:end]

    def least(self, tokens):
        """Tokens that are computed in any case."""
        return 1

    def find(self, tokens):
        blocks = []
        while (end := (len(blocks) + 1) * self.block_size) <= len(tokens) - self.least(tokens):
            block = self.known.get(self.key(tokens, end))
            if block is None:
                break
            blocks.append(block)
        return blocks

    def room(self, hits):
        """Blocks that may be taken, the next one first."""
        idle = [block for block in self.line if self.holders[block] == 0 and block not in hits]
        return sorted(idle, key=lambda block: self.text[block] is not None)

    def forget(self, block):
        if self.text[block] is not None:
            del self.known[self.text[block]]
            self.text[block] = None

    def hold(self, hits, new):
        for block in [*hits, *new]:
            self.holders[block] += 1

    def admit(self, name, tokens):
        if name in self.tables:
            raise ValueError(f"{name} is there already")
        tokens = tuple(tokens)
        hits = self.find(tokens)
        need, room = -(-len(tokens) // self.block_size) - len(hits), self.room(hits)
        if need > len(room):
            raise MemoryError("no room")
        new = room[:need]
        for block in new:
            self.forget(block)
        self.hold(hits, new)
        self.tables[name], self.prompts[name] = hits + new, tokens
        return len(hits) * self.block_size, list(hits + new)

    def commit(self, name):
        table, tokens = self.tables[name], self.prompts[name]
        for place in range(len(tokens) // self.block_size):
            self.learn(table, place, self.key(tokens, (place + 1) * self.block_size))

    def learn(self, table, place, key):
        if key not in self.known:
            self.known[key], self.text[table[place]] = table[place], key

    def table(self, name):
        return list(self.tables[name])

    def ended(self, block):
        """The last request that had it is gone."""
        self.line.remove(block)
        self.line.append(block)

    def order(self, table):
        """In which order blocks are let go: those that end the text first."""
        return table[::-1]

    def release(self, name):
        for block in self.order(self.tables.pop(name)):
            self.holders[block] -= 1
            if self.holders[block] == 0:
                self.ended(block)
        del self.prompts[name]


class AllCached(PrefixCache):
    """nano-vllm #144: a prompt that is found completely leaves no query to run."""

    def least(self, tokens):
        return 0


class DuplicateFreed(PrefixCache):
    """mini-sglang PR #142: at commit a block whose text is known already is freed, and a table names it still."""

    def learn(self, table, place, key):
        other = self.known.get(key, table[place])
        super().learn(table, place, key)
        if other != table[place]:
            self.holders[table[place]] = 0

    def release(self, name):
        for block in self.order(self.tables.pop(name)):
            self.holders[block] = max(self.holders[block] - 1, 0)
            if self.holders[block] == 0:
                self.ended(block)
        del self.prompts[name]


class Remapped(PrefixCache):
    """sglang #38140: a request has one block for a place in one step and another one in the next."""

    def learn(self, table, place, key):
        super().learn(table, place, key)
        block = self.known[key]
        if block != table[place]:
            self.holders[table[place]] -= 1
            self.holders[block] += 1
            table[place] = block


class LargeUnits(PrefixCache):
    """vllm-ascend #16270: prefixes are found in units of a common multiple of block sizes, longer than prompts are."""

    def find(self, tokens):
        hits = super().find(tokens)
        return hits[: len(hits) // 16 * 16]


class LengthInTheKey(PrefixCache):
    """sglang discussion #46590: what stands at the beginning changes from turn to turn. Here the length does."""

    def key(self, tokens, end):
        return (len(tokens), tokens[:end])


class BlockAlone(PrefixCache):
    def key(self, tokens, end):
        return (end, tokens[end - self.block_size : end])


class BlockAnywhere(PrefixCache):
    def key(self, tokens, end):
        return tokens[end - self.block_size : end]


class SortedText(PrefixCache):
    def key(self, tokens, end):
        return tuple(sorted(tokens[:end]))


class WholePrompts(PrefixCache):
    """Only a prompt that is known from beginning to end is found."""

    def commit(self, name):
        super().commit(name)
        self.complete = {*getattr(self, "complete", ()), self.prompts[name]}

    def find(self, tokens):
        hits = super().find(tokens)
        return hits if tokens in getattr(self, "complete", ()) else []


class KnownAtOnce(PrefixCache):
    def admit(self, name, tokens):
        found = super().admit(name, tokens)
        self.commit(name)
        return found


class HalfBlocks(PrefixCache):
    """The last block counts, full or not."""

    def commit(self, name):
        super().commit(name)
        table, tokens = self.tables[name], self.prompts[name]
        if len(tokens) % self.block_size:
            self.learn(table, len(table) - 1, tokens)

    def find(self, tokens):
        hits = super().find(tokens)
        for end in range(len(tokens) - 1, len(hits) * self.block_size, -1):
            if (block := self.known.get(tokens[:end])) is not None and end % self.block_size:
                self.part = end
                return [*hits, block]
        self.part = len(hits) * self.block_size
        return hits

    def admit(self, name, tokens):
        _, table = super().admit(name, tokens)
        return self.part, table


class CountsTokens(PrefixCache):
    """Says how many tokens agree with a known text, though a part of a block cannot be shared."""

    def admit(self, name, tokens):
        tokens = tuple(tokens)
        cached, table = super().admit(name, tokens)
        for text in self.known:
            if text[:cached] == tokens[:cached]:
                same = cached
                while same < min(len(text), len(tokens) - 1) and text[same] == tokens[same]:
                    same += 1
                cached = max(cached, same)
        return cached, table


class BeginningFirst(PrefixCache):
    def order(self, table):
        return table


class FirstInFirstOut(PrefixCache):
    """Blocks go in the order in which they were first taken."""

    def forget(self, block):
        super().forget(block)
        self.line.remove(block)
        self.line.append(block)

    def ended(self, block):
        pass


class NewestFirst(PrefixCache):
    def ended(self, block):
        self.line.remove(block)
        self.line.insert(0, block)

    def order(self, table):
        return table


class FoundIsNotUsed(PrefixCache):
    """A block that was found keeps its place in the line."""

    def __init__(self, n_blocks, block_size):
        super().__init__(n_blocks, block_size)
        self.seen = {}

    def admit(self, name, tokens):
        cached, table = super().admit(name, tokens)
        self.seen[name] = cached // self.block_size
        return cached, table

    def release(self, name):
        found = set(self.tables[name][: self.seen[name]])
        before = list(self.line)
        super().release(name)
        kept = [block for block in before if block in found]
        rest = [block for block in self.line if block not in found]
        for block in kept:
            rest.insert(min(before.index(block), len(rest)), block)
        self.line = rest


class StaysKnown(PrefixCache):
    """What was given away is still looked up."""

    def forget(self, block):
        self.text[block] = None

    def learn(self, table, place, key):
        self.known.setdefault(key, table[place])
        self.text[table[place]] = key


class OneHolder(PrefixCache):
    """The first to release a block lets it go."""

    def release(self, name):
        for block in self.order(self.tables.pop(name)):
            self.holders[block] = 0
            self.ended(block)
        del self.prompts[name]


class ForgetsAtRelease(PrefixCache):
    def ended(self, block):
        super().ended(block)
        self.forget(block)


class FoundNotHeld(PrefixCache):
    def hold(self, hits, new):
        for block in new:
            self.holders[block] += 1

    def release(self, name):
        for block in self.order(self.tables.pop(name)):
            self.holders[block] = max(self.holders[block] - 1, 0)
            if self.holders[block] == 0:
                self.ended(block)
        del self.prompts[name]


class EvictsWhatItFound(PrefixCache):
    def room(self, hits):
        return super().room([])


class CountsFoundAsNew(PrefixCache):
    """Refuses unless there is room for all blocks of the prompt."""

    def admit(self, name, tokens):
        if name not in self.tables and -(-len(tokens) // self.block_size) > self.holders.count(0):
            raise MemoryError
        return super().admit(name, tokens)


class HoldsWhatItRefuses(PrefixCache):
    """Holds the blocks that it found before it sees that there is no room."""

    def admit(self, name, tokens):
        hits = [] if name in self.tables else self.find(tuple(tokens))
        try:
            return super().admit(name, tokens)
        except MemoryError:
            for block in hits:
                self.holders[block] += 1
            raise


class TakesOneByOne(PrefixCache):
    """Takes blocks until there is none left, and does not give them back."""

    def admit(self, name, tokens):
        try:
            return super().admit(name, tokens)
        except MemoryError:
            for block in self.room(self.find(tuple(tokens))):
                self.forget(block)
                self.holders[block] += 1
            raise


class NeverEvicts(PrefixCache):
    def room(self, hits):
        return [block for block in super().room(hits) if self.text[block] is None]


class KnownBeforeEmpty(PrefixCache):
    def room(self, hits):
        return sorted(super().room(hits), key=lambda block: self.text[block] is None)


class AdmitsTwice(PrefixCache):
    def admit(self, name, tokens):
        if name in self.tables:
            self.release(name)
        return super().admit(name, tokens)


class UnknownIsNothing(PrefixCache):
    def commit(self, name):
        if name in self.tables:
            super().commit(name)

    def release(self, name):
        if name in self.tables:
            super().release(name)

    def table(self, name):
        return list(self.tables.get(name, ()))


class FreshBlocksFirst(PrefixCache):
    """The table names the new blocks first."""

    def admit(self, name, tokens):
        cached, table = super().admit(name, tokens)
        found = cached // self.block_size
        self.tables[name] = table[found:] + table[:found]
        return cached, list(self.tables[name])


class AlwaysOneBlockMore(PrefixCache):
    """Takes a block for the next token too."""

    def admit(self, name, tokens):
        if len(tokens) % self.block_size or name in self.tables:
            return super().admit(name, tokens)
        cached, table = super().admit(name, [*tokens, -1])
        self.prompts[name] = tuple(tokens)
        return cached, table


PREFIX_MISTAKES = (
    Mistake("nothing left to compute", AllCached,
        "A prompt that is known completely comes back as cached to its last token. The query of that token gives the "
        "first new one, so it has to be computed, and so has its block."),
    Mistake("duplicates freed", DuplicateFreed,
        "At commit a block is freed because its text is known elsewhere. The table of its request names it until it is "
        "released."),
    Mistake("a table that changes", Remapped,
        "commit puts another block into the table of a request. A kernel may be reading through that table: it stays "
        "as "
        "admit returned it."),
    Mistake("only long beginnings", LargeUnits,
        "Nothing is found in short prompts. Every full block that agrees from the beginning counts."),
    Mistake("a beginning that changes", LengthInTheKey,
        "A beginning is not found in a longer prompt: something else than its tokens decides over its name."),
    Mistake("a block known by its own tokens", BlockAlone,
        "A block is found by its own tokens and its place. Its keys and values also depend on all tokens before it."),
    Mistake("a block found anywhere", BlockAnywhere,
        "A block is found by its own tokens alone. Its keys and values also depend on all tokens before it."),
    Mistake("tokens in any order", SortedText, "The same tokens in another order are another text."),
    Mistake("whole prompts only", WholePrompts,
        "Only a prompt that is known as a whole is found. A common beginning counts, up to the first block that "
        "differs."),
    Mistake("known at admission", KnownAtOnce,
        "What a request is about to compute is found by others at once. It is there only after commit."),
    Mistake("half blocks shared", HalfBlocks,
        "A block that is not full is shared. Its owner goes on writing there: only full blocks are shared."),
    Mistake("tokens in place of blocks", CountsTokens,
        "cached counts tokens that agree inside a block. A part of a block cannot be shared: cached is a multiple of "
        "block_size."),
    Mistake("the beginning goes first", BeginningFirst,
        "Of one text the beginning is evicted before the end. Then the end still takes room, and cannot be found."),
    Mistake("first in, first out", FirstInFirstOut,
        "Blocks go in the order in which they were taken. What counts is when the last request let go of them."),
    Mistake("newest first", NewestFirst,
        "The block that was released last goes first. It is the likeliest to be used again."),
    Mistake("found is not used", FoundIsNotUsed,
        "A block that was found again keeps its old place in the line. It counts as used when the last request that "
        "held "
        "it is released."),
    Mistake("evicted, and still known", StaysKnown,
        "A text is found in a block that was given away and overwritten. What goes must be forgotten."),
    Mistake("one holder", OneHolder,
        "release frees blocks that another request holds too. Count for each block how many requests hold it."),
    Mistake("forgotten at release", ForgetsAtRelease,
        "What nobody holds is forgotten at once. It may stay until its room is needed: that is what the cache is for."),
    Mistake("found, but not held", FoundNotHeld,
        "Blocks that a request found are not counted as held by it, and others may overwrite them."),
    Mistake("evicts what it found", EvictsWhatItFound,
        "To make room for the rest of a prompt, a block goes that the same prompt was about to use. What was found is "
        "held first."),
    Mistake("found blocks need room", CountsFoundAsNew,
        "A request is refused though it needs few new blocks: those that were found need no room."),
    Mistake("holds what it refused", HoldsWhatItRefuses,
        "Who is refused still counts as a holder of what was found. After MemoryError all is as before."),
    Mistake("keeps blocks of the refused", TakesOneByOne,
        "Blocks that were taken before the room ran out are lost. After MemoryError all is as before."),
    Mistake("never evicts", NeverEvicts,
        "Known blocks are never given away, so the cache fills up for good. What nobody holds makes room."),
    Mistake("known ones first", KnownBeforeEmpty,
        "A known text goes although an empty block is there. Take blocks without a known text first."),
    Mistake("admitted twice", AdmitsTwice, "A name that is there is admitted again. That is a ValueError."),
    Mistake("unknown names", UnknownIsNothing, "commit, table and release of an unknown name are KeyErrors."),
    Mistake("new blocks in front", FreshBlocksFirst,
        "The new blocks stand before those that were found. The table has the order of the text."),
    Mistake("one block too many", AlwaysOneBlockMore,
        "Where a prompt ends with a block, one more is taken. A prompt of n tokens has ⌈n / block_size⌉ blocks."),
)  # fmt: skip


# Latencies ----------------------------------------------------------------------------------------------------------


def measured(first=None, per_token=None, gap=None, end=tuple):
    """Latencies. first(arrival, times), per_token(arrival, times) and gap(arrival, times): those of one request."""

    def latencies(arrival, times):
        rows = [
            (
                (first or ttft)(start, each),
                (per_token or tpot)(start, each) if len(each) > 1 or per_token else math.nan,
                (gap or largest)(start, each) if len(each) > 1 or gap else math.nan,
            )
            for start, each in zip(arrival, times, strict=True)
        ]
        return end(np.array(column, dtype=float) for column in zip(*rows, strict=True))

    return latencies


def ttft(arrival, times):
    return times[0] - arrival


def tpot(arrival, times):
    return (times[-1] - times[0]) / (len(times) - 1)


def largest(arrival, times):
    return max(np.diff(times))


def if_any(value, none=math.nan):
    return lambda arrival, times: value(arrival, times) if len(times) > 1 else none


def over_all(arrival, times):
    gaps = np.concatenate([np.diff(each) for each in times])
    first, each, _ = measured()(arrival, times)
    return first, each, np.where(np.isnan(each), np.nan, max(gaps, default=math.nan))


LATENCY_MISTAKES = (
    Mistake("the largest of no gaps", measured(gap=lambda a, t: max(np.diff(t))),
        "A request with one token has no gap: there is no largest one, and no mean. Both are NaN; TTFT is not."),
    Mistake("TTFT from the beginning", measured(first=lambda arrival, times: times[0]),
        "TTFT counts from time 0. It counts from the arrival of the request."),
    Mistake("all of the time as TTFT", measured(first=lambda arrival, times: times[-1] - arrival),
        "TTFT runs to the last token. It ends with the first one."),
    Mistake("TPOT over all tokens", measured(per_token=if_any(lambda a, t: (t[-1] - t[0]) / len(t))),
        "TPOT divides by the number of tokens. Between n tokens lie n − 1 gaps."),
    Mistake("TPOT from the arrival", measured(per_token=if_any(lambda a, t: (t[-1] - a) / len(t))),
        "TPOT holds the wait for the first token too. It counts from the first token to the last."),
    Mistake("TPOT from the arrival, over the gaps", measured(per_token=if_any(lambda a, t: (t[-1] - a) / (len(t) - 1))),
        "TPOT counts from the arrival. It counts from the first token to the last."),
    Mistake("the median gap", measured(per_token=if_any(lambda a, t: float(np.median(np.diff(t))))),
        "TPOT is the median of the gaps. It is their mean."),
    Mistake("0 for one token", measured(per_token=if_any(tpot, 0.0), gap=if_any(largest, 0.0)),
        "A request with one token gets 0. It has no gap at all: NaN, so that it does not make the others look better."),
    Mistake("the largest gap with the first wait", measured(gap=lambda a, t: max(np.diff([a, *t]))),
        "The largest gap holds the wait for the first token. Gaps lie between tokens."),
    Mistake("the last gap", measured(gap=if_any(lambda a, t: t[-1] - t[-2])),
        "The largest gap is the last one. Look at all of them."),
    Mistake("the whole span", measured(gap=if_any(lambda a, t: t[-1] - t[0])),
        "The largest gap is the time from the first token to the last. Take neighbours."),
    Mistake("the largest of all requests", over_all, "The largest gap is that of all requests. Each has its own."),
    Mistake("gap and TPOT exchanged", lambda arrival, times: tuple(measured()(arrival, times)[i] for i in (0, 2, 1)),
        "TPOT and the largest gap are exchanged."),
)  # fmt: skip


# Chunks -------------------------------------------------------------------------------------------------------------


def shared_out(order=None, amount=None, left_after=None, stop=None):
    """Shares of a budget. order(todo): who comes when, amount(todo, left): how much one gets."""

    def chunks(todo, budget):
        got, left = [0] * len(todo), budget
        for place in (order or decodes_first)(todo):
            got[place] = (amount or min)(todo[place], left)
            left = left - got[place] if left_after is None else left_after(left, todo[place], got[place])
            if stop and stop(todo[place], got[place]):
                break
        return got

    return chunks


def decodes_first(todo):
    return sorted(range(len(todo)), key=lambda place: todo[place] != 1)


def in_equal_parts(todo, budget):
    got, left = [int(each == 1) for each in todo], budget
    for place, each in enumerate(got):
        got[place] = min(each, left)
        left -= got[place]
    prompts = [place for place, each in enumerate(todo) if each > 1]
    for place in prompts:
        got[place] = min(todo[place], left // len(prompts))
    return got


def one_prompt(todo, budget):
    got = shared_out()(todo, budget)
    prompts = [place for place, each in enumerate(todo) if each > 1]
    for place in prompts[1:]:
        got[place] = 0
    return got


def those_planned(todo, budget):
    return [each for each in shared_out()(todo, budget) if each]


def sorted_answers(todo, budget):
    return [shared_out()(todo, budget)[place] for place in decodes_first(todo)]


CHUNK_MISTAKES = (
    Mistake("in order alone", shared_out(order=lambda todo: range(len(todo))),
        "A prompt that came earlier takes the budget, and a decode behind it waits. All with one token left come "
        "first."),
    Mistake("prompts first", shared_out(order=lambda todo: sorted(range(len(todo)), key=lambda i: todo[i] == 1)),
        "Prompts come before decodes. It is the other way round: a decode is one token, and somebody reads along."),
    Mistake("whole prompts only", shared_out(amount=lambda todo, left: todo if todo <= left else 0),
        "A prompt that does not fit gets nothing. It gets as much as the budget has left: that is a chunk."),
    Mistake("equal parts", in_equal_parts,
        "The budget is shared among the prompts in equal parts. The first one gets all it can use, then the next."),
    Mistake("one prompt a step", one_prompt,
        "Only one prompt is computed. What it leaves of the budget goes to the next."),
    Mistake("a budget for each", shared_out(left_after=lambda left, todo, got: left),
        "Each request has the whole budget for itself. It counts the tokens of all together."),
    Mistake("decodes for free", shared_out(left_after=lambda left, todo, got: left - got * (todo > 1)),
        "Decodes are not taken off the budget. It counts the tokens of all together."),
    Mistake("the budget counts requests", shared_out(amount=lambda todo, left: todo if left else 0,
            left_after=lambda left, todo, got: left - (got > 0)),
        "The budget counts requests. It counts their tokens."),
    Mistake("shortest first", shared_out(order=lambda todo: sorted(range(len(todo)), key=todo.__getitem__)),
        "Short prompts overtake long ones. Prompts are computed in order of arrival."),
    Mistake("only those planned", those_planned,
        "Who gets nothing is left out. There is a number for each request, also 0."),
    Mistake("in the order of the plan", sorted_answers,
        "The numbers come in the order of the plan. They belong in the order of `todo`."),
    Mistake("one token too many", shared_out(amount=lambda todo, left: min(todo, left + 1) if left > 0 else 0),
        "The budget is exceeded by a token."),
)  # fmt: skip


# The scheduler ------------------------------------------------------------------------------------------------------


class Request:
    def __init__(self, prompt, new):
        self.prompt, self.new, self.computed, self.generated = prompt, new, 0, 0

    @property
    def todo(self):
        return self.prompt + self.generated - self.computed


class Scheduler:
    """Right, in small steps, so that each mistake below can change one."""

    def __init__(self, n_blocks, block_size, budget):
        self.n_blocks, self.block_size, self.budget = n_blocks, block_size, budget
        self.requests = {}

    def blocks(self, tokens):
        return -(-tokens // self.block_size)

    def fits(self, prompt, new):
        return self.blocks(prompt + new - 1) <= self.n_blocks

    def add(self, name, prompt, new):
        if not self.fits(prompt, new):
            raise ValueError("it never fits")
        self.requests[name] = Request(prompt, new)

    def used(self):
        return sum(self.blocks(request.computed) for request in self.requests.values())

    def room(self, request):
        """Tokens for which it has slots, or could have."""
        open_slots = self.blocks(request.computed) * self.block_size - request.computed
        return max((self.n_blocks - self.used()) * self.block_size, 0) + open_slots

    def decodes(self, request):
        return request.computed > 0 and request.todo == 1

    def victim(self, name):
        return [other for other, request in self.requests.items() if request.computed][-1]

    def stop(self, name):
        """Preempt a request."""
        self.requests[name].computed = 0

    def chunk(self, request, left):
        return min(left, request.todo, self.room(request))

    def give(self, name, count):
        self.requests[name].computed += count
        self.plan[name] = count
        self.left -= count

    def decode_all(self):
        for name in [name for name, request in self.requests.items() if self.decodes(request)]:
            if name in self.preempted or not self.left:
                continue
            while self.room(self.requests[name]) < 1:
                victim = self.victim(name)
                self.preempted.append(victim)
                self.stop(victim)
                if victim == name:
                    break
            else:
                self.give(name, 1)

    def prefill_all(self):
        for name, request in list(self.requests.items()):
            if name in self.plan:
                continue
            count = self.chunk(request, self.left)
            if name in self.preempted or count < 1:
                break
            self.give(name, count)

    def step(self):
        self.plan, self.preempted, self.left = {}, [], self.budget
        self.decode_all()
        self.prefill_all()
        for name in self.plan:
            request = self.requests[name]
            if request.todo == 0:
                request.generated += 1
                if self.done(request):
                    del self.requests[name]
        return self.plan, self.preempted

    def done(self, request):
        return request.generated == request.new


class GeneratedMeansDecode(Scheduler):
    """nano-vllm #144: "no completion tokens" is taken to mean prefill, so who was preempted decodes."""

    def decodes(self, request):
        return request.generated > 0


class FirstGoes(Scheduler):
    def victim(self, name):
        names = [other for other, request in self.requests.items() if request.computed and other not in self.plan]
        return names[0]


class LargestGoes(Scheduler):
    def victim(self, name):
        held = {o: r.computed for o, r in self.requests.items() if r.computed and o not in self.plan}
        return max(held, key=lambda other: held[other])


class NoBlocks(Scheduler):
    def room(self, request):
        return self.budget


class WholePromptsOnly(Scheduler):
    def chunk(self, request, left):
        return request.todo if request.todo <= min(left, self.room(request)) else 0


class WholeIfItFits(Scheduler):
    """Chunks by the budget, but waits until there are blocks for the whole prompt."""

    def chunk(self, request, left):
        return min(left, request.todo) if request.todo <= self.room(request) else 0


class PrefillFirst(Scheduler):
    def step(self):
        self.plan, self.preempted, self.left = {}, [], self.budget
        for name, request in list(self.requests.items()):
            if not self.decodes(request):
                count = self.chunk(request, self.left)
                if count < 1:
                    break
                self.give(name, count)
        decode_all, self.decode_all = self.decode_all, lambda: None
        prefill_all, self.prefill_all = self.prefill_all, lambda: None
        for name in [n for n, r in self.requests.items() if n not in self.plan and self.decodes(r) and self.left]:
            if self.room(self.requests[name]) > 0 and self.left:
                self.give(name, 1)
        self.decode_all, self.prefill_all = decode_all, prefill_all
        return self.ended()

    def ended(self):
        for name in self.plan:
            request = self.requests[name]
            if request.todo == 0:
                request.generated += 1
                if self.done(request):
                    del self.requests[name]
        return self.plan, self.preempted


class Overtakes(Scheduler):
    """Whoever does not fit is passed over, and the next one is tried. Whole prompts."""

    def prefill_all(self):
        for name, request in list(self.requests.items()):
            count = request.todo if request.todo <= min(self.left, self.room(request)) else 0
            if name not in self.plan and name not in self.preempted and count:
                self.give(name, count)


class ShortestFirst(Scheduler):
    def prefill_all(self):
        for name in sorted(self.requests, key=lambda name: self.requests[name].todo):
            count = self.chunk(self.requests[name], self.left)
            if name not in self.plan and name not in self.preempted and count > 0:
                self.give(name, count)


class BackAtOnce(Scheduler):
    """Who was preempted is planned again in the same step."""

    def prefill_all(self):
        gone, self.preempted = self.preempted, []
        super().prefill_all()
        self.preempted = gone


class KeepsComputed(Scheduler):
    """Who is preempted gives its blocks back and goes on as if it had not."""

    def __init__(self, n_blocks, block_size, budget):
        super().__init__(n_blocks, block_size, budget)
        self.kept = {}

    def stop(self, name):
        self.kept[name] = self.requests[name].computed
        super().stop(name)

    def prefill_all(self):
        for name, request in list(self.requests.items()):
            if name in self.plan:
                continue
            if name in self.preempted:
                break
            if name in self.kept and self.left and self.room(request) >= self.kept[name] + 1:
                request.computed = self.kept.pop(name)
                self.give(name, 1)
            elif name not in self.kept and (count := self.chunk(request, self.left)) > 0:
                self.give(name, count)
            else:
                break


class ForgetsGenerated(Scheduler):
    def stop(self, name):
        super().stop(name)
        self.requests[name].generated = 0


class GeneratedIsPrompt(Scheduler):
    """The tokens generated so far become a part of the prompt, and count among the new ones once more."""

    def stop(self, name):
        request = self.requests[name]
        request.prompt, request.generated, request.computed = request.prompt + request.generated, 0, 0


class CountsRequests(Scheduler):
    """The budget is one of requests."""

    def chunk(self, request, left):
        return min(request.todo, self.room(request)) if left > 0 else 0

    def give(self, name, count):
        super().give(name, count)
        self.left += count - 1


class DecodesForFree(Scheduler):
    def decode_all(self):
        super().decode_all()
        self.left = self.budget


class StaticBatches(Scheduler):
    """New requests wait until all that run are finished."""

    def __init__(self, n_blocks, block_size, budget):
        super().__init__(n_blocks, block_size, budget)
        self.batch = []

    def prefill_all(self):
        if not any(name in self.requests for name in self.batch):
            self.batch = list(self.requests)
        for name in self.batch:
            request = self.requests.get(name)
            if request is None or name in self.plan:
                continue
            count = self.chunk(request, self.left)
            if name in self.preempted or count < 1:
                break
            self.give(name, count)


class OnePromptAStep(Scheduler):
    def prefill_all(self):
        for name, request in list(self.requests.items()):
            if name in self.plan:
                continue
            count = self.chunk(request, self.left)
            if name not in self.preempted and count > 0:
                self.give(name, count)
            break


class PrefillAlone(Scheduler):
    """Computes prompts or decodes in a step, never both."""

    def prefill_all(self):
        if not self.plan:
            super().prefill_all()


class OneTooMany(Scheduler):
    def done(self, request):
        return request.generated > request.new


class OneTooFew(Scheduler):
    def done(self, request):
        return request.generated >= max(request.new - 1, 1)


class TakesAll(Scheduler):
    def fits(self, prompt, new):
        return True

    def decode_all(self):
        """Who is alone and has no room waits for ever."""
        for name in [name for name, request in self.requests.items() if self.decodes(request)]:
            if self.left and name not in self.preempted:
                while self.room(self.requests[name]) < 1 and self.victim(name) != name:
                    self.preempted.append(self.victim(name))
                    self.stop(self.victim(name))
                if self.room(self.requests[name]) > 0:
                    self.give(name, 1)


class CountsTheLast(Scheduler):
    def fits(self, prompt, new):
        return self.blocks(prompt + new) <= self.n_blocks


class PromptOnly(Scheduler):
    def fits(self, prompt, new):
        return self.blocks(prompt) <= self.n_blocks


class RoundsDown(Scheduler):
    def blocks(self, tokens):
        return tokens // self.block_size


class ReservesAll(Scheduler):
    """Each request has blocks for its longest text from the beginning on: nobody is ever preempted."""

    def used(self):
        running = [request for request in self.requests.values() if request.computed]
        return sum(self.blocks(request.prompt + request.new - 1) for request in running)

    def room(self, request):
        need = self.blocks(request.prompt + request.new - 1)
        fits = request.computed or self.used() + need <= self.n_blocks
        return request.todo if fits else 0


class NeverPreempts(Scheduler):
    def decode_all(self):
        for name in [name for name, request in self.requests.items() if self.decodes(request)]:
            if self.left and self.room(self.requests[name]) > 0:
                self.give(name, 1)


class PreemptsAll(Scheduler):
    """Everybody behind goes, not only as many as need be."""

    def decode_all(self):
        for name in [name for name, request in self.requests.items() if self.decodes(request)]:
            if name in self.preempted or not self.left:
                continue
            if self.room(self.requests[name]) < 1:
                names = list(self.requests)
                behind = [other for other in names[names.index(name) + 1 :] if self.requests[other].computed]
                for other in reversed(behind or [name]):
                    self.preempted.append(other)
                    self.stop(other)
            if name not in self.preempted:
                self.give(name, 1)


class PreemptsForPrompts(Scheduler):
    """A request that finds no room to begin makes the last one go."""

    def decode_all(self):
        waiting = [name for name, request in self.requests.items() if not request.computed]
        running = [name for name, request in self.requests.items() if request.computed]
        if waiting and len(running) > 0 and self.used() == self.n_blocks and running[-1] != next(iter(self.requests)):
            self.preempted.append(running[-1])
            self.stop(running[-1])
        super().decode_all()


class BackToTheEnd(Scheduler):
    """Who is preempted goes to the end of the queue."""

    def step(self):
        plan, preempted = super().step()
        for name in preempted:
            self.requests[name] = self.requests.pop(name)
        return plan, preempted


class TellsNobody(Scheduler):
    def step(self):
        plan, _ = super().step()
        return plan, []


class FirstTokenLater(Scheduler):
    """The last token of a prompt gives no new one: that takes a step of its own, for a token that is not there."""

    def step(self):
        plan, preempted = super().step()
        return {name: count for name, count in plan.items()}, preempted

    def done(self, request):
        return request.generated == request.new + 1

    def fits(self, prompt, new):
        return self.blocks(prompt + new) <= self.n_blocks


class HoldsTheFinished(Scheduler):
    """Blocks of finished requests are never given back."""

    def __init__(self, n_blocks, block_size, budget):
        super().__init__(n_blocks, block_size, budget)
        self.lost = 0

    def used(self):
        return super().used() + self.lost

    def done(self, request):
        if super().done(request):
            self.lost += self.blocks(request.computed)
            return True
        return False

    def victim(self, name):
        return [*[other for other, request in self.requests.items() if request.computed], name][-1]


SCHEDULER_MISTAKES = (
    Mistake("who has generated decodes", GeneratedMeansDecode,
        "A request that has generated tokens is taken for one that decodes. After it was preempted it has nothing "
        "computed: it has to compute its whole text again."),
    Mistake("the first one goes", FirstGoes, "The request that came first is preempted. The last one to arrive goes."),
    Mistake("the largest goes", LargestGoes,
        "The request with the most blocks is preempted. The last one to arrive goes, however few blocks it has."),
    Mistake("blocks not counted", NoBlocks, "More blocks are used than there are. Count what each request holds."),
    Mistake("whole prompts only", WholePromptsOnly,
        "A prompt waits until it fits into one step. It can be computed in chunks: as much as budget and blocks "
        "allow."),
    Mistake("waits for all its blocks", WholeIfItFits,
        "A prompt waits until there are blocks for all of it. A part of it can be computed as soon as there is room."),
    Mistake("prompts before decodes", PrefillFirst,
        "Prompts take the budget, and a decode waits. Plan those first that have one token left to compute."),
    Mistake("overtaking", Overtakes,
        "A request that does not fit is passed over for a later one. It may be passed over for ever: stop there."),
    Mistake("shortest first", ShortestFirst,
        "Short prompts come before long ones. Where short ones keep coming, a long one waits for ever: keep the "
        "order."),
    Mistake("back at once", BackAtOnce,
        "A request is preempted and planned in the same step. It waits until the next one."),
    Mistake("nothing computed again", KeepsComputed,
        "Who was preempted goes on where it was. Its blocks are gone, and with them all its keys and values: "
        "everything is "
        "computed again."),
    Mistake("what was generated is lost", ForgetsGenerated,
        "Who was preempted generates again from its prompt. The tokens that it has generated are part of its text, "
        "and are "
        "computed with the prompt."),
    Mistake("new tokens counted again", GeneratedIsPrompt,
        "After a request was preempted it generates more tokens than it was to. Those that it had already still "
        "count."),
    Mistake("a budget of requests", CountsRequests, "The budget counts requests. It counts the tokens of a step."),
    Mistake("decodes for free", DecodesForFree,
        "Decodes are not taken off the budget. It counts all tokens of a step."),
    Mistake("static batches", StaticBatches,
        "A new request waits until all that run are finished. It joins as soon as budget and blocks allow."),
    Mistake("one prompt a step", OnePromptAStep,
        "Only one prompt is computed in a step. What it leaves of the budget goes to the next in order."),
    Mistake("prompts alone", PrefillAlone,
        "A step computes prompts or decodes, and never both. What decodes leave of the budget goes to prompts."),
    Mistake("one token too many", OneTooMany, "A request generates one token more than it was to."),
    Mistake("one token too few", OneTooFew, "A request ends one token too early."),
    Mistake("takes who never fits", TakesAll,
        "A request is taken that needs more blocks than there are. It could never end: ValueError at once."),
    Mistake("the last token counted", CountsTheLast,
        "A request is refused that fits: its last new token is never computed, so prompt + new − 1 "
        "tokens need places."),
    Mistake("the prompt alone counted", PromptOnly,
        "A request is taken whose prompt fits, but not what it generates. prompt + new − 1 tokens need places."),
    Mistake("blocks rounded down", RoundsDown, "A block that is half full is a block: round up."),
    Mistake("all reserved", ReservesAll,
        "Blocks are reserved for tokens that are not there yet, so others wait while blocks are free."),
    Mistake("never preempts", NeverPreempts,
        "A decode that finds no block waits, and those behind it hold theirs. Preempt the last one, so that the "
        "first can "
        "go on."),
    Mistake("all behind preempted", PreemptsAll,
        "More requests are preempted than need be. One after the other, from the end, until there is a block."),
    Mistake("preempts for prompts", PreemptsForPrompts,
        "A running request is preempted for a waiting one, which should wait for room."),
    Mistake("back to the end", BackToTheEnd, "Who was preempted goes to the end of the queue. It keeps its place."),
    Mistake("tells nobody", TellsNobody, "Requests are preempted, and the list that step returns does not name them."),
    Mistake("one step too many", FirstTokenLater,
        "The last token of the prompt gives the first new one, in the same step. There is no step for it beside that."),
    Mistake("blocks of the finished", HoldsTheFinished,
        "Who is finished keeps its blocks. They are free for the next step."),
)  # fmt: skip


# A batch that refills ------------------------------------------------------------------------------------------------


class BatchScheduler:
    """Right, in small steps, so that each mistake below can change one."""

    def __init__(self, n_slots, n_blocks, block_size):
        self.n_slots, self.n_blocks, self.block_size = n_slots, n_blocks, block_size
        self.waiting, self.running = {}, {}

    def blocks(self, tokens):
        return -(-tokens // self.block_size)

    def needs(self, prompt, new):
        return prompt + new - 1

    def add(self, name, prompt, new):
        if self.blocks(self.needs(prompt, new)) > self.n_blocks:
            raise ValueError("it never fits")
        self.waiting[name] = Request(prompt, new)

    def used(self):
        return sum(self.blocks(request.computed) for request in self.running.values())

    def may_join(self, name):
        full = len(self.running) >= self.n_slots
        return not full and self.used() + self.blocks(self.waiting[name].prompt) <= self.n_blocks

    def step(self):
        for request in self.running.values():
            request.computed += 1
        if self.used() > self.n_blocks:
            raise MemoryError("a request needs a block, and none is free")
        plan = dict.fromkeys(self.running, 1)
        self.let_in(plan)
        self.generate(plan)
        return plan

    def let_in(self, plan):
        for name in list(self.waiting):
            if not self.may_join(name):
                break
            self.join(name, plan)

    def join(self, name, plan):
        request = self.running[name] = self.waiting.pop(name)
        plan[name] = request.computed = request.prompt

    def generate(self, plan):
        for name in plan:
            request = self.running[name]
            request.generated += 1
            if request.generated == request.new:
                del self.running[name]


class WaitsForTheBatch(BatchScheduler):
    def let_in(self, plan):
        if not plan:
            super().let_in(plan)


class BatchPastTheFirst(BatchScheduler):
    def let_in(self, plan):
        for name in list(self.waiting):
            if self.may_join(name):
                self.join(name, plan)


class BatchOfTheLatest(BatchScheduler):
    def let_in(self, plan):
        for name in reversed(list(self.waiting)):
            if not self.may_join(name):
                break
            self.join(name, plan)


class BatchWithoutBlocks(BatchScheduler):
    def may_join(self, name):
        return len(self.running) < self.n_slots


class BatchWithoutSlots(BatchScheduler):
    def may_join(self, name):
        return self.used() + self.blocks(self.waiting[name].prompt) <= self.n_blocks


class BatchThatReserves(BatchScheduler):
    def may_join(self, name):
        request = self.waiting[name]
        held = sum(self.blocks(self.needs(each.prompt, each.new)) for each in self.running.values())
        needed = self.blocks(self.needs(request.prompt, request.new))
        return len(self.running) < self.n_slots and held + needed <= self.n_blocks


class BatchThatNeverGrows(BatchScheduler):
    def used(self):
        return sum(self.blocks(request.prompt) for request in self.running.values())


class BatchThatLetsInFirst(BatchScheduler):
    def step(self):
        before = dict(self.running)
        joined = {}
        self.let_in(joined)
        for request in before.values():
            request.computed += 1
        if self.used() > self.n_blocks:
            raise MemoryError("a request needs a block, and none is free")
        plan = {**dict.fromkeys(before, 1), **joined}
        self.generate(plan)
        return plan


class BatchWithOnePromptAStep(BatchScheduler):
    def let_in(self, plan):
        for name in list(self.waiting)[:1]:
            if self.may_join(name):
                self.join(name, plan)


class BatchOneTokenLater(BatchScheduler):
    """The step that computes a prompt gives no token."""

    def join(self, name, plan):
        super().join(name, plan)
        self.running[name].generated = -1


class BatchThatSkipsWhoFindsNone(BatchScheduler):
    def step(self):
        plan = {}
        for name, request in self.running.items():
            request.computed += 1
            if self.used() > self.n_blocks:
                request.computed -= 1
            else:
                plan[name] = 1
        self.let_in(plan)
        self.generate(plan)
        return plan


class BatchThatComparesEachAlone(BatchScheduler):
    def step(self):
        free = self.n_blocks - self.used()
        for request in self.running.values():
            if self.blocks(request.computed + 1) - self.blocks(request.computed) > free:
                raise MemoryError("a request needs a block, and none is free")
            request.computed += 1
        plan = dict.fromkeys(self.running, 1)
        self.let_in(plan)
        self.generate(plan)
        return plan


class BatchThatCountsTheLast(BatchScheduler):
    def needs(self, prompt, new):
        return prompt + new


class BatchThatCountsThePrompt(BatchScheduler):
    def needs(self, prompt, new):
        return prompt


class BatchThatTakesAll(BatchScheduler):
    def needs(self, prompt, new):
        return 0


class BatchThatRoundsDown(BatchScheduler):
    def blocks(self, tokens):
        return tokens // self.block_size


class BatchThatRefillsAtOnce(BatchScheduler):
    """Who ends with this step leaves its slot and blocks to somebody in the same step."""

    def step(self):
        plan = super().step()
        more = {}
        self.let_in(more)
        self.generate(more)
        return {**plan, **more}


BATCH_MISTAKES = (
    Mistake("waits for the batch", WaitsForTheBatch,
        "A request waits until the whole batch is done. It may come in as soon as a slot and blocks are free."),
    Mistake("overtaking", BatchPastTheFirst,
        "A request that does not fit is passed over for a later one. It may be passed over for ever: stop there."),
    Mistake("the latest first", BatchOfTheLatest, "The request that came last is let in first. Keep their order."),
    Mistake("blocks not counted", BatchWithoutBlocks,
        "A request is let in though there are no blocks for its prompt. Count what all that run hold."),
    Mistake("slots not counted", BatchWithoutSlots, "More requests run than there are slots."),
    Mistake("all reserved", BatchThatReserves,
        "A request waits until there are blocks for all that it may generate. Blocks for its prompt are enough to come "
        "in."),
    Mistake("blocks do not grow", BatchThatNeverGrows,
        "A request keeps the blocks of its prompt, however long its text gets. It needs another one whenever its last "
        "is full."),
    Mistake("let in before the others grow", BatchThatLetsInFirst,
        "A request is let in before those that run have taken their blocks. They come first, and what is left decides "
        "who comes in."),
    Mistake("one prompt a step", BatchWithOnePromptAStep,
        "Only one request is let in at a step. As many come in as there are slots and blocks for."),
    Mistake("one step too many", BatchOneTokenLater,
        "The last token of the prompt gives the first new one, in the same step. There is no step for it beside that."),
    Mistake("who finds no block waits", BatchThatSkipsWhoFindsNone,
        "A request that finds no block is left out of the step. That is a MemoryError here: nobody goes on alone."),
    Mistake("each compared alone", BatchThatComparesEachAlone,
        "Each running request is compared with the free blocks on its own. Two may need the same last block: count "
        "what all of them hold after the step."),
    Mistake("the last token counted", BatchThatCountsTheLast,
        "A request is refused that fits: its last new token is never computed, so prompt + new − 1 "
        "tokens need places."),
    Mistake("the prompt alone counted", BatchThatCountsThePrompt,
        "A request is taken whose prompt fits, but not what it generates. prompt + new − 1 tokens need places."),
    Mistake("takes who never fits", BatchThatTakesAll,
        "A request is taken that needs more blocks than there are. It could never end: ValueError at once."),
    Mistake("blocks rounded down", BatchThatRoundsDown, "A block that is half full is a block: round up."),
    Mistake("refilled in the same step", BatchThatRefillsAtOnce,
        "A slot is taken again in the step in which its request ends. It is free for the next step."),
)  # fmt: skip


# Speculation --------------------------------------------------------------------------------------------------------


def accepting(keep=None, rest=None, last=None, go_on=False):
    """Accept and resample. keep(p, q, coin): of the drafted token. rest(p, q): what is drawn from after a rejection."""

    def accept(p, q, drafted, coins):
        p, q = np.asarray(p), np.asarray(q)
        kept = [(keep or below_the_ratio)(p[i, x], q[i, x], coins[i]) for i, x in enumerate(drafted)]
        first = kept.index(False) if False in kept else len(kept)
        accepted = sum(kept) if go_on else first
        if first == len(kept):
            return accepted, p[-1] if last is None else last(p, q)
        return accepted, (rest or remainder)(p, q, first)

    return accept


def below_the_ratio(p, q, coin):
    return bool(coin < p / q)


def remainder(p, q, i):
    left = np.maximum(p[i] - q[i], 0)
    return left / left.sum()


def normalised(x):
    return x / x.sum()


def without(row, token):
    left = np.array(row)
    left[token] = 0
    return normalised(left)


def without_the_rejected(p, q, drafted, coins):
    accepted, following = accepting()(p, q, drafted, coins)
    if accepted < len(drafted):
        following = without(p[accepted], drafted[accepted])
    return accepted, following


def greedy(p, q, drafted, coins):
    best = [bool(np.argmax(p[i]) == x) for i, x in enumerate(drafted)]
    first = best.index(False) if False in best else len(best)
    return first, p[first] if first == len(best) else remainder(np.asarray(p), np.asarray(q), first)


ACCEPT_MISTAKES = (
    Mistake("from p after a rejection", accepting(rest=lambda p, q, i: p[i]),
        "After a rejection the next token is drawn from p. Then tokens that q likes come too often: it is drawn from "
        "(p − q)₊, divided by its sum."),
    Mistake("from q after a rejection", accepting(rest=lambda p, q, i: q[i]),
        "After a rejection the next token is drawn from q. It is drawn from what p has more than q."),
    Mistake("p without the rejected token", without_the_rejected,
        "After a rejection only the rejected token is taken out of p. At every token, q is taken off p."),
    Mistake("not normalised", accepting(rest=lambda p, q, i: np.maximum(p[i] - q[i], 0)),
        "(p − q)₊ does not sum to 1. Divide by its sum."),
    Mistake("distances", accepting(rest=lambda p, q, i: normalised(np.abs(p[i] - q[i]))),
        "The remainder is made of |p − q|. Where q is larger, nothing is left."),
    Mistake("the wrong way round", accepting(rest=lambda p, q, i: normalised(np.maximum(q[i] - p[i], 0))),
        "The remainder is (q − p)₊. It is what p has more than q."),
    Mistake("the first place", accepting(rest=lambda p, q, i: remainder(p, q, 0)),
        "The remainder is that of the first place. It belongs to the place of the rejected token."),
    Mistake("the place behind", accepting(rest=lambda p, q, i: p[i + 1]),
        "After a rejection the next token comes from the row behind. It stands in the place of the rejected one."),
    Mistake("p alone", accepting(keep=lambda p, q, coin: bool(coin < p)),
        "The coin is compared with p. A token that q drew is kept with min(1, p/q)."),
    Mistake("q/p", accepting(keep=lambda p, q, coin: bool(coin < q / p)), "The ratio is upside down: p/q."),
    Mistake("kept above the ratio", accepting(keep=lambda p, q, coin: bool(coin >= p / q)),
        "A token is kept when its coin lies above p/q. It is kept below."),
    Mistake("kept at the ratio", accepting(keep=lambda p, q, coin: bool(coin <= p / q)),
        "A coin that equals p/q keeps the token. With coins from 0 to below 1, it keeps it when it lies below."),
    Mistake("kept where p is above q", accepting(keep=lambda p, q, coin: bool(p >= q)),
        "A token is kept only where p is at least q, and the coins are not looked at. Below, it is kept with p/q."),
    Mistake("no token is ever rejected", accepting(keep=lambda p, q, coin: True), "All drafted tokens are kept."),
    Mistake("on after a rejection", accepting(go_on=True),
        "Tokens behind the first rejected one are counted. They follow a token that is not there: stop."),
    Mistake("greedy", greedy,
        "A token is kept if it is the likeliest. That is for greedy decoding: here the coins decide."),
    Mistake("the last draft's row", accepting(last=lambda p, q: p[-2]),
        "When all are kept, the next token comes from p[γ], the row behind the last draft."),
    Mistake("a remainder where none was rejected",
        accepting(last=lambda p, q: normalised(np.maximum(p[-1] - q[-1], 0))),
        "When all are kept nothing was rejected, and there is no q for the next place: p[γ] as it is."),
)  # fmt: skip


# How many to verify -------------------------------------------------------------------------------------------------


def verifying(order=None, sure=None, cost=None, pick=None):
    """How many drafted tokens to verify. order(survival): the tokens in the order in which they are verified."""

    def how_many(survival, costs):
        survival, costs = np.asarray(survival), np.asarray(costs)
        n = len(survival)
        gained = np.concatenate([[0.0], np.cumsum((order or likeliest_first)(survival))])
        gained = gained + (n if sure is None else sure(n))
        tokens = np.arange(len(gained)) + (n if cost is None else cost(n))
        return int((pick or np.argmax)(gained / costs[tokens]))

    return how_many


def likeliest_first(survival):
    return np.sort(survival, axis=None)[::-1]


def last_of_the_best(rates):
    return len(rates) - 1 - np.argmax(rates[::-1])


def first_fall(rates):
    """Stops at the first B that is not better than the one before."""
    best = 0
    while best + 1 < len(rates) and rates[best + 1] > rates[best]:
        best += 1
    return best


def in_columns(survival, costs):
    """The same number for each request."""
    n, gamma = np.shape(survival)
    gained = n + np.concatenate([[0.0], np.cumsum(np.sum(survival, axis=0))])
    return n * int(np.argmax(gained / np.asarray(costs)[n * np.arange(1, gamma + 2)]))


def cheapest_token(survival, costs):
    """Verifies each token whose chance is worth what it costs beside the step that is planned so far."""
    n, best = len(survival), 0
    for chance in likeliest_first(np.asarray(survival)):
        if chance > costs[n + best + 1] - costs[n + best]:
            best += 1
        else:
            break
    return best


HOW_MANY_MISTAKES = (
    Mistake("the sure tokens forgotten", verifying(sure=lambda n: 0),
        "Only drafted tokens are counted as gained. Each of the N requests gets one token in any case."),
    Mistake("one sure token", verifying(sure=lambda n: 1),
        "One sure token is counted. Each of the N requests has one."),
    Mistake("the cost of the drafts alone", verifying(cost=lambda n: 0),
        "The step is taken to have B tokens. N + B go through: one for each request, and the drafts."),
    Mistake("in the order of the requests", verifying(order=lambda s: s.ravel()),
        "The tokens are verified request by request. The likeliest come first, whichever request they belong to."),
    Mistake("place by place", verifying(order=lambda s: s.T.ravel()),
        "All first tokens come before all second ones. A second token of one request may be likelier than a first "
        "one of "
        "another."),
    Mistake("least likely first", verifying(order=lambda s: np.sort(s, axis=None)), "The least likely come first."),
    Mistake("the same for each", in_columns,
        "Each request gets as many as the others. A machine that is busy spends its tokens where they are likely to "
        "be kept."),
    Mistake("all of them", verifying(pick=lambda rates: len(rates) - 1),
        "All tokens are verified. On a busy machine that costs more than it gains."),
    Mistake("none", verifying(pick=lambda rates: 0), "Nothing is ever verified. Look for the best rate."),
    Mistake("the last of equals", verifying(pick=last_of_the_best),
        "Of equally good numbers the largest is taken. Take the smallest."),
    Mistake("the first fall", verifying(pick=first_fall),
        "The search ends where the rate falls for the first time. Costs can jump and then stay: look at every B."),
    Mistake("at least one", verifying(pick=lambda rates: 1 + np.argmax(rates[1:])), "B = 0 is allowed too."),
    Mistake("chance against cost", cheapest_token,
        "A token is verified if its chance is larger than the time that it adds. A rate is wanted: tokens for each "
        "second."),
)  # fmt: skip


# Find the bug -------------------------------------------------------------------------------------------------------


class LetGoTwice(PrefixCache):
    """The bug that is given, mini-sglang PR #142: a duplicate is let go at commit, and again at release."""

    def learn(self, table, place, key):
        other = self.known.get(key, table[place])
        super().learn(table, place, key)
        if other != table[place]:
            self.holders[table[place]] -= 1
            if self.holders[table[place]] == 0:
                self.ended(table[place])


class LeftForGood(PrefixCache):
    """The duplicate is never free again."""

    def learn(self, table, place, key):
        other = self.known.get(key, table[place])
        super().learn(table, place, key)
        if other != table[place]:
            self.holders[table[place]] += 1


class NotLearned(PrefixCache):
    """Who finds its text known stops: what follows is not known."""

    def commit(self, name):
        table, tokens = self.tables[name], self.prompts[name]
        for place in range(len(tokens) // self.block_size):
            key = self.key(tokens, (place + 1) * self.block_size)
            if self.known.get(key, table[place]) != table[place]:
                break
            self.learn(table, place, key)


class NeverCommits(PrefixCache):
    def commit(self, name):
        if name not in self.tables:
            raise KeyError(name)


class RemappedAndLeaked(PrefixCache):
    """The table gets the known block, and the other one is not given back."""

    def learn(self, table, place, key):
        super().learn(table, place, key)
        block = self.known[key]
        if block != table[place]:
            self.holders[block] += 1
            table[place] = block


BUG_MISTAKES = (
    Mistake("the bug as it stands", LetGoTwice,
        "Follow one block: who holds it after commit, and whose table names it? The two should agree."),
    Mistake("the table changed", Remapped,
        "Now the table names the block that is known, and not the one in which this request wrote. A table stays as "
        "admit "
        "returned it."),
    Mistake("the table changed, and a block lost", RemappedAndLeaked,
        "The table names another block now, and the old one is lost. A table stays as admit returned it."),
    Mistake("let go at commit alone", DuplicateFreed,
        "A duplicate is let go once now, but too early: the table of its request names it until its release."),
    Mistake("never freed", LeftForGood, "A duplicate is not freed any more, not even at release."),
    Mistake("the rest not committed", NotLearned,
        "Where a block is known already, commit stops. The blocks behind it are not known yet: go on."),
    Mistake("nothing committed", NeverCommits, "Now nothing is found any more: commit makes the full blocks known."),
)  # fmt: skip


# Another bug --------------------------------------------------------------------------------------------------------


class Window:
    """A ring of slots; what drafts write is taken down, and written anew where it is kept."""

    def __init__(self, window):
        self.window = window
        self.slots, self.count, self.drafted = [None] * window, 0, 0

    def write(self, token):
        self.slots[self.count % self.window] = token
        self.count += 1

    def pending(self, expected):
        if expected != bool(self.drafted):
            raise ValueError("a draft is pending" if self.drafted else "no draft is pending")

    def append(self, token):
        self.pending(False)
        self.write(token)

    def draft(self, tokens):
        self.pending(False)
        self.before = list(self.slots), self.count, list(tokens)
        for token in tokens:
            self.write(token)
        self.drafted = len(tokens)

    def keep(self, n):
        self.pending(True)
        self.within(n)
        self.decide(n)
        self.drafted = 0

    def within(self, n):
        if not 0 <= n <= self.drafted:
            raise ValueError(n)

    def decide(self, n):
        self.slots, self.count, tokens = self.before
        for token in tokens[:n]:
            self.write(token)

    def visible(self):
        first = max(0, self.count - self.window)
        return [self.slots[p % self.window] for p in range(first, self.count)]


class NotRewound(Window):
    """mlx-swift-lm, pull request 383 (2026), bug D: once a window came round, it is not rewound, and nobody is told."""

    def decide(self, n):
        if self.count <= self.window:
            self.count -= self.drafted - n


class CountedBack(Window):
    def decide(self, n):
        self.count -= self.drafted - n


class NeverRewound(Window):
    def decide(self, n):
        pass


class AllRejected(Window):
    def decide(self, n):
        super().decide(n if n == self.drafted else 0)


class RestoredAlone(Window):
    def decide(self, n):
        self.slots, self.count, _ = self.before


class OneMoreKept(Window):
    def decide(self, n):
        super().decide(n + 1)


class LastOnesKept(Window):
    def decide(self, n):
        self.slots, self.count, tokens = self.before
        for token in tokens[self.drafted - n :]:
            self.write(token)


class Emptied(Window):
    """Where the window came round, it begins anew with what is kept."""

    def decide(self, n):
        came_round = self.count > self.window
        super().decide(n)
        if came_round:
            kept = self.before[2][:n]
            self.slots, self.count = [None] * self.window, 0
            for token in kept:
                self.write(token)


class OneSaved(Window):
    """Takes down the slot of the first drafted token alone."""

    def decide(self, n):
        slots, count, _ = self.before
        self.slots[count % self.window] = slots[count % self.window]
        self.count = count
        for token in self.before[2][:n]:
            self.write(token)


class StillPending(Window):
    def keep(self, n):
        self.pending(True)
        self.within(n)
        self.decide(n)


class WindowWithoutErrors(Window):
    def pending(self, expected):
        pass

    def within(self, n):
        pass

    def keep(self, n):
        if self.drafted:
            self.decide(min(n, self.drafted))
            self.drafted = 0


class DraftNotSeen(Window):
    """Drafted tokens wait outside."""

    def draft(self, tokens):
        self.pending(False)
        self.tokens, self.drafted = list(tokens), len(tokens)

    def decide(self, n):
        for token in self.tokens[:n]:
            self.write(token)


class DraftsPushNothingOut(Window):
    """While a draft is pending, more is visible than the window."""

    def visible(self):
        if not self.drafted:
            return super().visible()
        slots, count, tokens = self.before
        return [slots[p % self.window] for p in range(max(0, count - self.window), count)] + tokens


WINDOW_MISTAKES = (
    Mistake("the bug as it stands", NotRewound,
        "Once the window has wrapped around, keep does nothing, and the rejected tokens stay. Look at what has to be "
        "undone: the count, and what was overwritten."),
    Mistake("counted back", CountedBack,
        "The count goes back, but the rejected tokens have overwritten others. Those cannot be read any more: they "
        "have to be kept somewhere until the draft is decided."),
    Mistake("never rewound", NeverRewound, "Rejected tokens are never taken back."),
    Mistake("all rejected", AllRejected, "When a part is rejected, all of the draft is. The first n tokens stay."),
    Mistake("restored alone", RestoredAlone,
        "What was there before the draft is back, but the first n tokens of it are lost."),
    Mistake("one more kept", OneMoreKept, "One token too many is kept."),
    Mistake("the last ones kept", LastOnesKept,
        "The last n tokens of a draft are kept. It is the first n: what comes behind a rejected token followed "
        "something that is not there."),
    Mistake("emptied", Emptied,
        "After a draft is decided the older tokens are gone. Those that are in the window stay."),
    Mistake("one slot saved", OneSaved, "The first overwritten token is kept. A draft of several overwrites several."),
    Mistake("still pending", StillPending, "A draft that was decided still counts as pending."),
    Mistake("no errors", WindowWithoutErrors,
        "An impossible request is carried out or ignored. Raise ValueError."),
    Mistake("a draft that is not seen", DraftNotSeen,
        "Drafted tokens are not visible before they are kept. The model verifies them: it has to see them."),
    Mistake("drafts push nothing out", DraftsPushNothingOut,
        "While a draft is pending, more than `window` tokens are visible."),
)  # fmt: skip


EXERCISES = {
    "by_hand": Exercise(1, BY_HAND, BY_HAND_MISTAKES, rtol=0.0, atol=1e-3),
    "block_allocator": Exercise(5, {"BlockAllocator": BlockAllocator}, ALLOCATOR_MISTAKES),
    "paged_attention": Exercise(3, {"paged_attention": paged()}, PAGED_MISTAKES),
    "batch_scheduler": Exercise(2, {"BatchScheduler": BatchScheduler}, BATCH_MISTAKES),
    "prefix_cache": Exercise(5, {"PrefixCache": PrefixCache}, PREFIX_MISTAKES),
    "find_the_bug": Exercise(3, {"BrokenPrefixCache": PrefixCache}, BUG_MISTAKES),
    "latencies": Exercise(3, {"latencies": measured()}, LATENCY_MISTAKES, rtol=1e-7),
    "chunks": Exercise(2, {"chunks": shared_out()}, CHUNK_MISTAKES),
    "scheduler": Exercise(3, {"Scheduler": Scheduler}, SCHEDULER_MISTAKES),
    "by_hand_draft": Exercise(1, BY_HAND_DRAFT, BY_HAND_DRAFT_MISTAKES, rtol=0.0, atol=1e-3),
    "accept": Exercise(3, {"accept": accepting()}, ACCEPT_MISTAKES),
    "how_many": Exercise(2, {"how_many": verifying()}, HOW_MANY_MISTAKES),
    "another_bug": Exercise(3, {"BrokenWindow": Window}, WINDOW_MISTAKES),
    "tells_right": duel(),
}
