"""What the answers of day 7 are tried on: an allocator of blocks, by the promises it keeps. No answer is here.

Its sequences are written as the words of a script: `a` appends a token to sequence a, `a>b` forks a into b, `?a` asks
for the table of a, `-a` frees it.
"""

from __future__ import annotations

import numpy as np

from ..evidence import Ladder, Rung
from .promises import Call, drawn_calls
from .small import Choose
from .watches import ALLOCATOR


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
