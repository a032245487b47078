"""What the answers of day 7 are tried on: an allocator of blocks, by the promises it keeps. No answer is here.

Its sequences are written as the words of a script: `a` appends a token to sequence a, `a>b` forks a into b, `?a` asks
for the table of a, `-a` frees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..evidence import BadResult, Ladder, Rung
from .promises import Call, Machine, Watch, breaks, drawn_calls, nothing, whole_number, whole_numbers
from .small import Choose

NAMES = "abcd"
KNOWN = "an unknown sequence is a KeyError"


class AllocatorWatch(Watch):
    """What `BlockAllocator` promises. It knows the table of each sequence, as it was heard."""

    def __init__(self, n_blocks: int, block_size: int):
        self.n_blocks, self.block_size = n_blocks, block_size
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def hear(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Take in what a call gave. Raises BrokenPromise."""
        seq = args[0]
        if method != "append" and seq not in self.lengths:
            if error is not KeyError:
                breaks(KNOWN, f"{seq} is unknown, and no KeyError was raised")
            return
        if method == "fork" and args[1] in self.lengths:
            if error is not ValueError:
                breaks("fork makes a new sequence", f"{args[1]} is there already, and no ValueError was raised")
            return
        if error and not (method == "append" and error is MemoryError):
            breaks("what is known is served", f"it raised {error.__name__}, though {seq} is known and nothing is amiss")
        getattr(self, f"_{method}")(*args, result)

    def _append(self, seq: str, result: Sequence[float] | None) -> None:
        table, length = self.tables.get(seq, []), self.lengths.get(seq, 0)
        holders = Counter(block for other in self.tables.values() for block in other)
        slot = length % self.block_size
        shared = slot > 0 and holders[table[-1]] > 1
        fresh, free = slot == 0 or shared, self.n_blocks - len(holders)
        if result is None:
            if not fresh:
                breaks("an open block is filled first", f"{seq} was refused, though its last block has a free slot")
            if free:
                breaks("what is freed can be used again", f"{seq} was refused, though {_blocks(free)} not in any table")
            return
        block, got = map(int, result)
        if not 0 <= block < self.n_blocks:
            breaks("a block of the pool", f"block {block} is none of 0 to {self.n_blocks - 1}")
        if shared and block == table[-1]:
            breaks("a shared block is not written to", f"{seq} writes to block {block}, which another sequence shares")
        if fresh and holders[block]:
            other = next(name for name, held in self.tables.items() if block in held)
            breaks("a block has one owner", f"block {block} was handed to {seq}, and {other} has it already")
        if fresh and not free:
            breaks("no more blocks than there are", f"{seq} got a block, though all {self.n_blocks} are in tables")
        if not fresh and block != table[-1]:
            breaks(
                "an open block is filled first", f"{seq} got block {block}, though block {table[-1]} has a free slot"
            )
        if got != slot:
            breaks("slots in order", f"token {length} of {seq} went to slot {got}, and not to slot {slot}")
        self.tables[seq] = [*(table[:-1] if shared else table), *([block] if fresh else [])]
        self.lengths[seq] = length + 1

    def _fork(self, seq: str, new: str, _: Sequence[float] | None) -> None:
        self.tables[new], self.lengths[new] = list(self.tables[seq]), self.lengths[seq]

    def _table(self, seq: str, result: Sequence[float] | None) -> None:
        heard, table = [int(block) for block in result or ()], self.tables[seq]
        if heard != table:
            breaks("a table keeps its blocks", f"the table of {seq} is {heard}, and its tokens went to {table}")

    def _free(self, seq: str, _: Sequence[float] | None) -> None:
        del self.tables[seq], self.lengths[seq]

    def picture(self) -> dict[str, object]:
        """The tables, for a player."""
        return {"tables": {name: list(table) for name, table in self.tables.items()}, "lengths": dict(self.lengths)}


def _blocks(count: int) -> str:
    return f"{count} block is" if count == 1 else f"{count} blocks are"


def allocator_call(choose: Choose, _: tuple, __: Sequence[Call]) -> Call:
    """A call on an allocator: rather an append."""
    kind, seq = choose(0, 9), NAMES[choose(0, 2)]
    if kind < 5:
        return ("append", seq)
    if kind < 7:
        return ("free", seq)
    return ("fork", seq, NAMES[choose(0, 3)]) if kind < 9 else ("table", seq)


def place_of_a_token(result: object) -> list[float]:
    """A block and a slot."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise BadResult("append returns (block, slot)")
    return [whole_number(each) for each in result]


ALLOCATOR = Machine(
    AllocatorWatch,
    setup=lambda choose: (choose(1, 4), choose(1, 3)),
    call=allocator_call,
    reads={"append": place_of_a_token, "fork": nothing, "table": whole_numbers, "free": nothing},
    errors=(KeyError, MemoryError, ValueError),
)


def allocator_calls(script: str) -> tuple[Call, ...]:
    """The calls of a script."""
    calls: list[Call] = []
    for word in script.split():
        if ">" in word:
            calls.append(("fork", *word.split(">")))
        else:
            calls.append(({"?": "table", "-": "free"}.get(word[0], "append"), word[-1]))
    return tuple(calls)


def choose_from(rng: np.random.Generator) -> Choose:
    """Whole numbers, each as likely as another."""
    return lambda least, most: int(rng.integers(least, most + 1))


def block_allocator(rng: np.random.Generator) -> list[Rung]:
    def rung(name: str, n_blocks: int, block_size: int, script: str, why: str) -> Rung:
        return Rung(name, ((n_blocks, block_size), allocator_calls(script)), why, ALLOCATOR.played)

    def drawn(name: str, n_blocks: int, block_size: int, count: int) -> Rung:
        setup = (n_blocks, block_size)
        calls = drawn_calls(ALLOCATOR, choose_from(rng), setup, count)
        return Rung(name, (setup, calls), "The promises hold in any order of calls.", ALLOCATOR.played)

    return [
        rung("one sequence", 3, 2, "a a a ?a", "A new block is taken only when the last one has no slot left."),
        rung("two sequences in turns", 4, 2, "a b a b b a ?a ?b", "Each sequence has a table of its own blocks."),
        rung("one token too many", 2, 2, "a a a a a ?a", "The fifth token needs a third block: MemoryError."),
        rung("refused, and nothing is lost", 2, 2, "a a b a a b ?a ?b",
            "After MemoryError all is as before, and other sequences go on."),
        rung("freed blocks are used again", 2, 1, "a a b -a b b ?b", "free gives back blocks that nobody else has."),
        rung("a name again", 2, 2, "a a a -a a ?a", "After free a sequence begins anew."),
        rung("unknown names", 2, 2, "?a -a a>b a -a ?a", "table, free and fork of an unknown sequence are KeyErrors."),
        rung("a fork shares", 3, 2, "a a a>b ?b a b ?a ?b", "A fork takes no block; later tokens are each one's own."),
        rung("a fork, then a token", 3, 2, "a a>b b ?a ?b a ?a",
            "The last block is partly filled and shared: who writes first takes a fresh block, the other keeps it."),
        rung("two forks of one", 4, 2, "a a>b a>c a b c ?a ?b ?c", "The last one that has the block writes there."),
        rung("a fork, and no block for a copy", 1, 2, "a a>b b ?b ?a", "A copy needs a free block; else MemoryError."),
        rung("one of two is freed", 2, 2, "a a a>b -a c c d ?b", "A block is free when the last table is gone."),
        rung("both are freed", 2, 2, "a a a>b -a -b c c c c ?c", "Freed twice, a block is free once."),
        rung("a fork onto a name", 3, 2, "a b a>b ?b", "fork makes a new sequence: else ValueError."),
        drawn("sixty calls", 4, 2, 60),
        drawn("calls on a large pool", 9, 3, 120),
        drawn("calls on blocks of one token", 5, 1, 80),
    ]  # fmt: skip


LADDERS = {
    "block_allocator": Ladder(("BlockAllocator",), rungs=block_allocator, machine=ALLOCATOR),
}
