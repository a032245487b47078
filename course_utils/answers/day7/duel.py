"""The duel of day 7 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.answers.shared.duel import POINTS, lost
from course_utils.answers.shared.weak_tests import ALWAYS_NO, ALWAYS_YES
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, right
from course_utils.checks.kernel.promises import BrokenPromise
from course_utils.days.day7.duel import Pool
from course_utils.days.day7.watches import AllocatorWatch


class SetOfBlocks(Pool):
    def begin(self, blocks):
        self.idle = set(blocks)

    def give(self, block):
        self.idle.add(block)


class FreedLongestAgo(Pool):
    def take(self):
        return self.idle.pop(0) if self.idle else None


class BeyondTheFifth(Pool):
    """The sixth of the sequences that are there at once writes into the blocks of the first."""

    def append(self, seq):
        if seq not in self.lists and len(self.lists) >= 5:
            self.fork(next(iter(self.lists)), seq)
        return super().append(seq)


class ThirdFork(Pool):
    forks = 0

    def fork(self, seq, new):
        super().fork(seq, new)
        self.forks += 1
        if self.forks % 3 == 0:
            for block in self.lists[new]:
                self.held[block] -= 1


class FreedWhenFull(Pool):
    def free(self, seq):
        full = not self.idle
        last = self.lists[seq][-1]
        super().free(seq)
        if full and not self.held[last]:
            self.idle.remove(last)


class BlocksOfThree(Pool):
    def needs(self, table, slot):
        return slot == 0 or (self.size == 3 and slot == 2)


class AfterFifty(Pool):
    tokens = 0

    def moves(self, table, slot):
        self.tokens += 1
        return self.tokens <= 50 and super().moves(table, slot)


UNSEEN: tuple[Implementation, ...] = (
    right("a set of free blocks", SetOfBlocks),
    right("the one freed longest ago", FreedLongestAgo),
    lost("sequences beyond the fifth", BeyondTheFifth),
    lost("the third fork", ThirdFork),
    lost("freed in a pool that is full", FreedWhenFull),
    lost("blocks of three slots", BlocksOfThree),
    lost("after the fiftieth token", AfterFifty),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""

    def plays(
        games: tuple = ((1, 1), (2, 1), (4, 2), (3, 5), (12, 3), (20, 2), (7, 6)),
        steps: int = 160,
        forks: bool = True,
        frees: bool = True,
        tables: bool = True,
        two: bool = True,
        pinned: bool = False,
    ) -> Callable:
        """A test that plays these games, (n_blocks, block_size), with random calls, and keeps books of its own."""

        def tells_right(f):
            for n_blocks, block_size in games:
                books = [Book(f(n_blocks, block_size), n_blocks, block_size, pinned) for _ in range(1 + two)]
                rng = np.random.default_rng(n_blocks)
                for step in range(steps):
                    seq, new, kind = int(rng.integers(7)), int(rng.integers(7)), rng.random()
                    for book in books:
                        if forks and kind < 0.15:
                            book.fork(seq, new)
                        elif frees and kind > 0.88:
                            book.free(seq)
                        elif not book.append(seq):
                            return False
                    if tables and step % 4 == 0 and not all(book.agrees() for book in books):
                        return False
            return True

        return tells_right

    return Exercise(POINTS, {"tells_right": plays()}, (
        ALWAYS_YES,
        ALWAYS_NO,
        Mistake("a certain block", plays(pinned=True),
            "It expects a certain block. Which of the free ones is handed out is not promised: look only whether it is "
            "free."),
        Mistake("one example", plays(games=((4, 2),), steps=6, two=False),
            "It plays one short game. Many slips show in longer ones, with other sizes."),
        Mistake("never forks", plays(forks=False), "It never forks. Sharing is where most slips are."),
        Mistake("never frees", plays(frees=False), "It never frees. Look what becomes of blocks that come back."),
        Mistake("never looks at a table", plays(tables=False),
            "It never asks for a table. That shows what the places of tokens do not."),
        Mistake("never full", plays(games=((500, 3),)), "Its pool is so large that nothing is ever refused."),
        Mistake("never two allocators", plays(two=False), "It never makes two allocators and uses them in turns."),
    ))  # fmt: skip


class Book:
    """An allocator, and beside it the watch that knows what it promised."""

    def __init__(self, made: Any, n_blocks: int, block_size: int, pinned: bool = False):
        self.made, self.watch, self.pinned = made, AllocatorWatch(n_blocks, block_size), pinned

    def append(self, seq: int) -> bool:
        """Append, and say whether what came back was promised."""
        held = {block for table in self.watch.tables.values() for block in table}
        lowest = min(set(range(self.watch.n_blocks)) - held, default=None)
        place = self.made.append(seq)
        if self.pinned and place is not None and place[0] not in {*held, lowest}:
            return False
        return self._keeps("append", (seq,), place, None if place is not None else MemoryError)

    def fork(self, seq: int, new: int) -> None:
        if seq in self.watch.tables and new not in self.watch.tables:
            self.made.fork(seq, new)
            self._keeps("fork", (seq, new))

    def free(self, seq: int) -> None:
        if seq in self.watch.tables:
            self.made.free(seq)
            self._keeps("free", (seq,))

    def agrees(self) -> bool:
        """Whether the tables are those that were heard of."""
        return all(self._keeps("table", (seq,), list(self.made.table(seq))) for seq in self.watch.tables)

    def _keeps(self, method: str, args: tuple, result: Any = (), error: type[Exception] | None = None) -> bool:
        try:
            self.watch.observe(method, args, result, error)
        except BrokenPromise:
            return False
        return True
