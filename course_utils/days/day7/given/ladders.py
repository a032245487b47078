"""The ladders of day 7: the test inputs (rungs) of each exercise; no answers.

Calls on an object are written as the words of a script. For an allocator `a` appends a token to sequence a, `a>b` forks
a into b, `?a` asks for the table of a, `-a` frees it. For a prefix cache `a=011` admits a with the tokens 0, 1, 1, `+a`
commits it, `?a` asks for its table, `-a` releases it. For a scheduler `a=5+2` adds a request with a prompt of 5 tokens
and 2 new ones, `.` is a step, and `3.` is three steps. For a window `7` appends token 7, `7,8` drafts two tokens, `+1`
keeps the first drafted token, and `?` asks what is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.promises import ANY_ORDER, Call, Machine, drawn_calls
from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.checks.kernel.small import Choose, Draft, Drawn, Small
from course_utils.days.day7.given.drawn_calls import ALLOCATOR, BATCHES, PREFIXES, SCHEDULER, WINDOW
from course_utils.days.shared.given.draws import draw, named

OWN_STATE = "Each object has a state of its own: what another one holds is not seen."
AS_IT_WAS = "what it is given stays as it was"
COPY = "The answer is right but writes into its arguments, which the caller still needs. Work on a copy."


# Scripts ------------------------------------------------------------------------------------------------------------


def allocator_calls(script: str) -> tuple[Call, ...]:
    """Return the calls of a script for an allocator."""
    calls: list[Call] = []
    for word in script.split():
        if ">" in word:
            calls.append(("fork", *word.split(">")))
        else:
            calls.append(({"?": "table", "-": "free"}.get(word[0], "append"), word[-1]))
    return tuple(calls)


def prefix_calls(script: str) -> tuple[Call, ...]:
    """Return the calls of a script for a prefix cache."""
    calls: list[Call] = []
    for word in script.split():
        if "=" in word:
            name, tokens = word.split("=")
            calls.append(("admit", name, tuple(map(int, tokens))))
        else:
            calls.append(({"?": "table", "-": "release", "+": "commit"}[word[0]], word[1]))
    return tuple(calls)


def scheduler_calls(script: str) -> tuple[Call, ...]:
    """Return the calls of a script for a scheduler."""
    calls: list[Call] = []
    for word in script.split():
        if "=" in word:
            name, sizes = word.split("=")
            calls.append(("add", name, *map(int, sizes.split("+"))))
        else:
            calls += [("step",)] * int(word[:-1] or 1)
    return tuple(calls)


def window_calls(script: str) -> tuple[Call, ...]:
    """Return the calls of a script for a window; a draft of one token ends in a comma."""
    calls: list[Call] = []
    for word in script.split():
        if word == "?":
            calls.append(("visible",))
        elif word[0] == "+":
            calls.append(("keep", int(word)))
        elif "," in word:
            calls.append(("draft", tuple(map(int, filter(None, word.split(","))))))
        else:
            calls.append(("append", int(word)))
    return tuple(calls)


def choose_from(rng: np.random.Generator) -> Choose:
    """Return a `Choose` that draws whole numbers uniformly."""
    return lambda least, most: int(rng.integers(least, most + 1))


def on(machine: Machine, read: Callable[[str], tuple[Call, ...]]) -> Callable[..., Rung]:
    """Return the function rung(name, setup, script, why), which makes the rungs of a machine."""
    return lambda name, setup, script, why: Rung(name, (setup, read(script)), why, machine.played)


def drawn(machine: Machine, rng: np.random.Generator, name: str, setup: tuple, count: int) -> Rung:
    """Return a rung of `count` drawn calls."""
    calls = drawn_calls(machine, choose_from(rng), setup, count)
    return Rung(name, (setup, calls), ANY_ORDER, machine.played)


# Objects with state -------------------------------------------------------------------------------------------------


def block_allocator(rng: np.random.Generator) -> list[Rung]:
    rung = on(ALLOCATOR, allocator_calls)
    return [
        rung("one sequence", (3, 2), "a a a ?a", "A new block is taken only when the last one has no place left."),
        Rung("two allocators at once", ((3, 2), allocator_calls("a a a ?a")), OWN_STATE, ALLOCATOR.played_beside),
        rung("two sequences in turns", (4, 2), "a b a b b a ?a ?b", "Each sequence has a table of its own blocks."),
        rung("one token too many", (2, 2), "a a a a a ?a", "The fifth token needs a third block: MemoryError."),
        rung("refused, and nothing is lost", (2, 2), "a a b a a b ?a ?b",
            "After MemoryError everything is as before, and other sequences continue."),
        rung("refused at its first token", (1, 2), "a b a ?b", "A sequence that was refused its first "
            "token is still unknown."),
        rung("freed blocks are used again", (2, 1), "a a b -a b b ?b", "free gives back the blocks that "
            "no other sequence has."),
        rung("a name again", (2, 2), "a a a -a a ?a", "After free a sequence begins anew."),
        rung("unknown names", (2, 2), "?a -a a>b a -a ?a",
            "table, free and fork of an unknown sequence are KeyErrors."),
        rung("freed twice", (2, 2), "a -a -a a b", "A freed sequence is unknown: the second free is a KeyError."),
        rung("a fork shares", (3, 2), "a a a>b ?b a b ?a ?b",
            "A fork takes no block; later tokens belong to one sequence."),
        rung("a fork, then a token", (3, 2), "a a>b b ?b ?a a ?a",
            "The last block is partly filled and shared: the first to write takes a new block, and the "
            "other keeps the old one."),
        rung("two forks of one", (4, 2), "a a>b a>c a b c ?a ?b ?c", "The last sequence that has the "
            "block writes there."),
        rung("a fork of a full pool", (1, 2), "a a a>b ?b", "A fork takes no block, so it works where none is free."),
        rung("a fork, and no block for a copy", (1, 2), "a a>b b ?b ?a",
            "A copy needs a free block, or it is a MemoryError."),
        rung("no block for a copy, and again", (1, 2), "a a>b b a b ?a ?b",
            "A sequence that was refused a copy still shares the block: after MemoryError everything is as before."),
        rung("tables in the order of the text", (3, 1), "b a -b a ?a -a b a a ?a",
            "A table names the blocks in the order in which the tokens came."),
        rung("alone again", (1, 2), "a a>b -b a ?a",
            "A sequence that is alone in a block writes there, however many had it before."),
        rung("one of two is freed", (2, 2), "a a a>b -a c c d ?b", "A block is free when the last table "
            "that names it is gone."),
        rung("both are freed", (2, 2), "a a a>b -a -b c c c c ?c", "Freed twice, a block is free once."),
        rung("the copy is freed", (2, 2), "a a>b b -b c ?c ?a", "A sequence that took a copy no longer "
            "has the shared block."),
        rung("a fork onto a name", (3, 2), "a b a>b ?b", "fork makes a new sequence; for a known name it "
            "is a ValueError."),
        rung("a fork of a full block", (6, 2), "a a a>b a a ?a b ?b",
            "A block that was taken after the fork belongs to one sequence, which keeps writing there."),
        rung("no room, and a place of its own", (3, 2), "a a a>b a b a b a ?a ?b",
            "A sequence with a place left in a block of its own needs no other block."),
        rung("nine sequences, and large blocks", (10, 6), "a a a a a a a b c d e f g h i ?a ?i b j ?b",
            "Any number of sequences share the pool, and a block has block_size places."),
        rung("a long sequence", (9, 2), " ".join("a" * 17) + " ?a", "A sequence may have any number of blocks."),
        drawn(ALLOCATOR, rng, "sixty calls", (4, 2), 60),
        drawn(ALLOCATOR, rng, "calls on a large pool", (9, 3), 120),
        drawn(ALLOCATOR, rng, "calls on blocks of one token", (5, 1), 80),
        Rung("many forks of one", ((2, 2), MANY_FORKS), "Any number of sequences may share a block.", ALLOCATOR.played),
        rung("a copy of the last block alone", (8, 2), "a a a a>b b ?b ?a",
            "Only the last block is written to, so only that one is replaced: the full ones stay shared."),
    ]  # fmt: skip


MANY_FORKS = (("append", "a"), *(("fork", "a", f"f{i}") for i in range(140)), ("append", "a"), ("table", "f0"))


PREFIX_RUNGS = (
    ("one request", (4, 2), "a=01101 ?a", "Five tokens in blocks of two need three blocks, and none is known."),
    ("the same beginning", (6, 2), "a=0110 +a b=01101 ?b ?a",
        "What was committed is found: the blocks that hold the beginning come first in the table."),
    ("the same prompt again", (6, 2), "a=0110 +a b=0110 ?b",
        "One token at least is left to compute: its query gives the first new token."),
    ("one token alone", (3, 1), "a=0 +a b=0 ?b", "A prompt of one token has nothing cached: that token is computed."),
    ("part of a block", (6, 2), "a=011 +a b=0111", "Only full blocks are shared: the last one, half full, is not."),
    ("parted inside a block", (6, 2), "a=0101 +a b=01001",
        "The second block differs: only the first is found, and nothing behind a miss."),
    ("another end", (6, 2), "a=0101 +a b=0110 ?b", "What both begin with is found, wherever they part."),
    ("another beginning, the same block", (6, 2), "a=0011 +a b=1111 ?b",
        "A block is known by all the text up to its end, not by its own tokens alone."),
    ("another beginning, the same place", (8, 2), "a=0011 +a b=1001 +b c=00011 ?c",
        "A block is known by all the text up to its end, not by its own tokens and its place alone."),
    ("not committed yet", (6, 2), "a=0110 b=01101", "Keys and values are there once the request was committed."),
    ("held by two", (3, 2), "a=011 +a b=011 -a c=1 d=1 ?b",
        "A block is held until the last request that holds it goes."),
    ("nobody holds it", (4, 2), "a=0110 +a -a b=01101", "What nobody holds stays known until its room is needed."),
    ("no room", (2, 2), "a=01 b=011 ?a c=0 b=0", "MemoryError where blocks do not suffice, and nothing has changed."),
    ("no room, and nothing is lost", (3, 2), "a=01 +a b=00110 c=011 ?c ?a", "Who was refused holds nothing."),
    ("room beside what is known", (3, 2), "a=0110 +a b=01101 ?b",
        "Blocks that are found need no room: only the others do."),
    ("not its own", (3, 2), "a=0110 +a -a b=01100 c=1",
        "What a request finds is held by it at once: it is not evicted to make room for the rest."),
    ("room is made", (2, 2), "a=0110 +a -a b=1001 ?b", "What nobody holds goes where room is needed."),
    ("what went is not found", (2, 2), "a=0110 +a -a b=1001 +b -b c=0110", "A block that was given away is unknown."),
    ("empty ones first", (3, 2), "a=01 +a -a b=1001 -b c=011", "Blocks without a known text go before known ones."),
    ("the oldest goes first", (3, 1), "a=0 +a b=1 +b c=2 +c -b -a -c d=3 e=00",
        "Of known blocks that nobody holds, the one released longest ago goes first."),
    ("used again, so not the oldest", (3, 1), "a=0 +a -a b=1 +b -b c=00 -c d=22 ?d",
        "A block counts as used when the last request that held it is released, also where it was found."),
    ("used often, but long ago", (3, 1), "a=0 +a -a c=00 -c c=00 -c b=1 +b -b d=22 ?d",
        "What counts is when a block was used last, and not how often."),
    ("refused, and nothing went", (3, 1), "a=0 +a -a b=11 c=22 -b d=00 ?d",
        "Who is refused makes no room: what was known stays known."),
    ("refused, and no later used", (3, 1), "a=0 +a -a b=1 +b -b c=0000 d=22 ?d",
        "After MemoryError nothing has changed: what was found for it is no later used than before."),
    ("refused, and nothing is held", (2, 1), "a=0 +a -a b=1 c=011 -b d=22 ?d",
        "Who is refused holds nothing, not even what was found for it."),
    ("behind a miss", (4, 1), "a=0 b=01 +a +b -a -b c=555 -c d=012 ?d",
        "Nothing behind the first block that is not found can be used, known or not."),
    ("the end goes first", (3, 1), "a=012 +a -a b=3 -b c=012 ?c",
        "Of one request's blocks the end goes first: without the beginning, the rest cannot be found."),
    ("two of the same", (5, 2), "a=01 b=01 +a +b ?b -a c=11 d=11 ?b",
        "Both computed the same text. A table stays as it is, and its blocks are its own until it is released."),
    ("two of the same, and no room", (2, 2), "a=01 b=01 +a +b c=1 ?b",
        "Both blocks are in tables. A block that a table names is not given away, known twice or not."),
    ("two of the same, and one is longer", (8, 2), "a=01 b=0110 +a +b c=01101 ?b",
        "The second block of b is known nowhere else: commit makes it known."),
    ("two of the same, and one goes", (3, 2), "a=01 b=01 +a +b -b c=10 d=1 ?a", "What is released makes room, once."),
    ("two of the same, all go", (2, 2), "a=01 b=01 +a +b -a -b c=1001 ?c",
        "All blocks are free when all are released."),
    ("committed twice", (4, 2), "a=0110 +a +a b=01101 -a -b c=1 ?c", "commit changes nothing the second time."),
    ("a longer prompt", (8, 2), "a=01 +a b=0110 +b c=011011 +c d=01101101 ?d",
        "A conversation grows, and its beginning stays what it was: all full blocks of it are found."),
    ("unknown names", (3, 2), "?a +a -a a=01 -a -a ?a", "commit, table and release of an unknown name are KeyErrors."),
    ("a name that is there", (3, 2), "a=01 a=01 ?a",
        "A name can be admitted again after its release: else ValueError."),
)  # fmt: skip


LOOK_ALIKE = (
    ("admit", "a", (1, 11, 5)), ("commit", "a"), ("admit", "b", (11, 1, 5)), ("admit", "c", (1, 11, 7)), ("table", "c"),
)  # fmt: skip


DIGITS = (("admit", "a", (1, 10, 5)), ("commit", "a"), ("admit", "b", (2, 0, 5)), ("table", "b"))
LARGE = (("admit", "a", (3, 4, 5)), ("commit", "a"), ("admit", "b", (259, 260, 5)), ("table", "b"))
ROLLED = (
    *(call for base in (31, 33, 37, 131, 257) for call in (("admit", f"{base}", (0, base, 5)), ("commit", f"{base}"))),
    ("admit", "b", (1, 0, 5)),
    ("table", "b"),
)  # 0 · base + base is 1 · base + 0
HUNDRED = tuple(
    call
    for i in range(100)
    for name in [f"r{i}"]
    for call in (("admit", name, ((7919 * i * i + 104_729 * i) % 50_021, i % 5)), ("commit", name))
)  # each is found nowhere, because all begin differently
LATER_PREFIX_RUNGS = (
    ("the same first block, and the same last", (9, 1), "a=0110 +a c=00 +c b=0010 ?b",
        "A block is known by all the text up to its end: between the first block and the last lie others."),
    ("a known block whose beginning went", (5, 1), "a=0 b=01 e=33 +a +b -a c=2 +c -e d=215 ?d",
        "The block that held the beginning holds another text now, and what was known behind it is another text, too."),
    ("two of the same, and the first goes", (2, 1), "a=0 b=0 +a +b -a c=1 ?c",
        "Only the blocks of its table are held by a request: the known one of another request is not."),
    ("a known block whose own beginning went", (5, 1), "a=0 b=01 e=33 +a +b -b c=2 +c -e d=215 ?d",
        "The block before it in the table holds another text now: known is a text, and not the number of a block."),
    ("parted two blocks before", (12, 2), "a=001122 +a b=331144 +b c=3311220 ?c",
        "A block is known by all the text up to its end, not by the block before it and its own."),
    ("what a block held before", (9, 2),
        "a=11 +a -a b=00 +b -b c=0111 +c -c c=1000 +c -c a=01000 b=0111 c=1100 +c -c c=0 +b -c c=000 -c -b b=0",
        "A block that was given away holds another text, or none: forget what it held at that moment."),
    ("half a block, and no text", (8, 2), "a=00 b=01000 c=0000000 +a +b -a -b a=0",
        "Only full blocks are known. A half full one that nobody holds is empty, and goes before known ones."),
)  # fmt: skip


def on_prefixes(rng: np.random.Generator) -> list[Rung]:
    rung = on(PREFIXES, prefix_calls)
    return [
        rung(*PREFIX_RUNGS[0]),
        Rung("two caches at once", (PREFIX_RUNGS[0][1], prefix_calls(PREFIX_RUNGS[0][2])), OWN_STATE,
            PREFIXES.played_beside),
        *(rung(*each) for each in PREFIX_RUNGS[1:]),
        Rung("numbers that look alike", ((6, 2), LOOK_ALIKE), "1, 11 is another text than 11, 1.", PREFIXES.played),
        drawn(PREFIXES, rng, "sixty calls", (4, 2), 60),
        drawn(PREFIXES, rng, "calls on blocks of one token", (4, 1), 100),
        drawn(PREFIXES, rng, "calls on a large pool", (9, 2), 120),
        drawn(PREFIXES, rng, "calls where there is no room", (2, 1), 80),
        *(rung(*each) for each in LATER_PREFIX_RUNGS),
        Rung("digits that look alike", ((6, 2), DIGITS), "1, 10 is another text than 2, 0.", PREFIXES.played),
        Rung("large numbers", ((6, 2), LARGE), "Tokens may be numbers of any size: 259 is another than 3.",
            PREFIXES.played),
        Rung("sums that look alike", ((20, 2), ROLLED), "A rolling hash can be that of two texts: compare the texts.",
            PREFIXES.played),
        Rung("a hundred beginnings", ((201, 1), HUNDRED), "A hash can be that of two texts: compare the texts.",
            PREFIXES.played),
    ]  # fmt: skip


def on_windows(rng: np.random.Generator) -> list[Rung]:
    rung = on(WINDOW, window_calls)
    return [
        rung("tokens in order", (3,), "4 5 ? 6 ?", "The oldest token comes first."),
        Rung("two windows at once", ((3,), window_calls("4 5 ? 6 ?")), OWN_STATE, WINDOW.played_beside),
        rung("more than the window", (3,), "4 5 6 7 ? 8 ?", "The last tokens are visible, and no others."),
        rung("a window of one", (1,), "4 ? 5 ?", "The last token alone is visible."),
        rung("nothing yet", (2,), "?", "Before the first token nothing is visible: an empty list."),
        rung("a draft is visible", (3,), "4 5,6 ? +2 ?", "Drafted tokens are visible as if they had been appended."),
        rung("a draft is rejected", (4,), "4 5 6,7 +0 ? 8 ?", "Rejected tokens are gone."),
        rung("a part is kept", (4,), "4 5,6,7 +1 ? 8 ?", "The first ones are kept, and the others are gone."),
        rung("one token is rejected", (3,), "4 5 6 7, ? +0 ?", "What it pushed out is visible again."),
        rung("rejected where the window is full", (3,), "4 5 6 7,8 ? +0 ?",
            "What a rejected draft pushed out is visible again."),
        rung("a draft that repeats the text", (2,), "4 5 4, +0 ?", "A draft may say again what it pushes out."),
        rung("a draft that begins like the text", (2,), "5 5 5,6 +0 ?", "Rejected tokens are gone, and others stay."),
        rung("a part is kept where it is full", (3,), "4 5 6 7,8,9 +2 ?", "What is kept pushes out, and no more."),
        rung("where it came round", (3,), "1 2 3 4 5 6,7 +1 ? 8 ? 9, +0 ?",
            "The same holds when places were written many times."),
        rung("a draft as long as the window", (2,), "4 5 6,7 ? +0 ? 8,9 +2 ?",
            "A draft may push out all that was there, and be rejected."),
        rung("a draft longer than the window", (2,), "4 5 6,7,8,9 ? +0 ? 1,2,3 +2 ? 4,5,6 +1 ?",
            "A draft may be longer than the window, and be rejected."),
        rung("draft after draft", (3,), "4 5 6, +1 7,8 +0 9, +0 ? 1,2 +1 ?", "Each draft is decided by itself."),
        rung("what is not possible", (3,), "+0 4 5,6 7 8, +3 ? +1 +0 ?",
            "ValueError where a draft is pending or missing, or too short: and then nothing has changed."),
        rung("the same token again", (2,), "4 4 4, +0 ? 4,4 +1 ?", "A token is where it stands, not what it is."),
        drawn(WINDOW, rng, "sixty calls", (3,), 60),
        drawn(WINDOW, rng, "calls on a window of one", (1,), 60),
        drawn(WINDOW, rng, "calls on a large window", (8,), 150),
        rung("a draft much longer than the window", (2,), f"4 5 {','.join(map(str, range(10, 210)))} +0 ? 6 ?",
            "A draft of 200 tokens may be rejected as well: no number of places beyond the window is enough."),
        rung("drafts before the window is full", (8,), "1 2, +0 3 4, +0 5 6,7 +1 8 9, +0 ? 1 2 3 4,5 +0 ?",
            "What was there before this draft counts, not what was there before the first one."),
        rung("a draft comes round before the window is full", (2,), "4 5,6 +0 ? 7,8 +1 ?",
            "A draft may push out what was there before the window was full."),
        rung("a draft on an empty window of one", (1,), "2,0 +1 ?", "The first token is kept, the second is gone."),
        Rung("two windows at once, and drafts", ((3,), window_calls("4 5,6 ? +1 7, +0 ?")), OWN_STATE,
            WINDOW.played_beside),
    ]  # fmt: skip


def batch_scheduler(rng: np.random.Generator) -> list[Rung]:
    rung = on(BATCHES, scheduler_calls)
    everybody = " ".join(f"{name}=1+1" for name in "abcdefghijkl") + " ."
    return [
        rung("one request", (2, 4, 2), "a=3+2 2. .",
            "The prompt is computed in one step, which gives the first new token; the last new one is not computed."),
        Rung("two schedulers at once", ((2, 4, 2), scheduler_calls("a=3+2 2. .")), OWN_STATE, BATCHES.played_beside),
        rung("two at once", (2, 8, 2), "a=3+2 b=2+3 4.", "Both come in at the first step."),
        rung("a slot is free again", (2, 8, 2), "a=1+2 b=1+5 c=1+3 6.",
            "The slot of a request that is done is taken in the next step."),
        rung("names in any order", (1, 4, 2), "f=2+2 b=2+2 d=1+2 8.", "First come, first served, whatever the names."),
        rung("no more than there are slots", (2, 9, 3), "a=1+4 b=1+4 c=1+1 5.", "The third waits for a slot."),
        rung("no blocks for a prompt", (3, 3, 2), "a=3+2 b=4+1 4.", "b waits for blocks for its whole prompt."),
        rung("nobody overtakes", (3, 3, 2), "a=3+2 b=4+1 c=1+1 4.",
            "c would fit, but waits behind b, which came earlier."),
        rung("a text grows", (2, 3, 2), "a=2+4 b=2+1 5.", "Whenever its last block is full, a request takes another."),
        rung("those that run grow first", (2, 2, 2), "a=2+3 b=1+1 4.",
            "a needs a block in the second step, and b came in at the first; b waits if no block is left."),
        rung("growth before admission", (2, 2, 2), "a=2+3 . b=1+1 3.",
            "a takes the last block before b is looked at, so b waits."),
        rung("no block for one that runs", (2, 2, 1), "a=1+2 b=1+2 2.",
            "Both need a block and none is free: MemoryError."),
        rung("one block for two that run", (2, 3, 2), "a=2+2 b=2+2 2.",
            "Both need a block in the second step and only one is free: MemoryError."),
        rung("blocks for what comes later", (2, 4, 2), "a=2+5 b=2+5 .",
            "Blocks for its prompt are enough to let a request in."),
        rung("a prompt that never fits", (2, 2, 2), "a=5+1 b=1+1 .",
            "The prompt alone needs three blocks of the two that there are: a ValueError."),
        rung("who never fits", (2, 2, 2), "a=3+3 b=3+2 c=4+1 8.",
            "In the end prompt + new − 1 tokens need places: more blocks than there are is a ValueError."),
        rung("a prompt that fills the pool", (2, 2, 2), "a=4+1 b=1+2 4.", "a leaves at the end of its first step."),
        rung("nobody is there", (1, 1, 1), ". a=1+1 2.", "An empty plan."),
        rung("many at once", (12, 12, 1), everybody, "As many requests come in as there are slots and blocks for."),
        rung("more than slots", (5, 12, 1), everybody + " 2.", "Five at each step."),
        rung("half a block is a block", (3, 2, 3), "a=1+1 b=1+1 c=1+1 2.", "A block that is not full is held as well."),
        rung("freed blocks", (2, 2, 2), "a=2+1 b=2+1 c=3+1 3.", "Who is finished gives its blocks back."),
        rung("a long text", (1, 9, 4), "a=16+20 20.", "A request takes its last block in time."),
        drawn(BATCHES, rng, "forty calls", (2, 5, 2), 40),
        drawn(BATCHES, rng, "calls with one slot", (1, 4, 3), 50),
        drawn(BATCHES, rng, "calls on a large pool", (3, 30, 2), 70),
        drawn(BATCHES, rng, "calls where blocks are few", (3, 3, 1), 40),
    ]  # fmt: skip


def scheduler(rng: np.random.Generator) -> list[Rung]:
    rung = on(SCHEDULER, scheduler_calls)
    everybody = " ".join(f"{name}=1+1" for name in "abcdefghijkl") + " ."
    return [
        rung("one request", (4, 2, 8), "a=3+2 2. .",
            "The prompt is computed at once, its last token gives the first new one, and the last new one is not "
            "computed."),
        Rung("two schedulers at once", ((4, 2, 8), scheduler_calls("a=3+2 2. .")), OWN_STATE, SCHEDULER.played_beside),
        rung("names in any order", (4, 2, 3), "f=2+2 b=2+2 d=1+2 8.", "First come, first served, whatever the names."),
        rung("two prompts fill the pool", (2, 3, 5), "a=5+1 c=4+1 6.",
            "Where nobody can go on, the last one is preempted."),
        rung("a long prompt", (8, 2, 3), "a=8+2 4. .", "A prompt longer than the budget is computed in chunks."),
        rung("two at once", (8, 2, 8), "a=3+2 b=2+3 4.", "What is left of the budget goes to the next in order."),
        rung("a third one comes", (8, 2, 4), "a=2+4 b=2+2 . c=5+2 5.", "New requests join while others decode."),
        rung("a decode and a long prompt", (8, 2, 3), "a=1+5 . b=7+2 5.",
            "No decode waits while others compute prompts."),
        rung("many decodes", (9, 2, 2), "d=1+3 a=1+3 c=1+3 8.", "The budget counts all tokens: decodes too, in order."),
        rung("a prompt of many budgets", (3, 2, 1), "a=5+1 7.", "A prompt that fits is taken, however long it takes."),
        rung("many new tokens", (3, 3, 1), "a=1+8 9.", "A request goes on until it has all its new tokens."),
        rung("the rest goes to the next", (5, 1, 5), "c=3+1 b=3+1 a=5+1 3.",
            "Whoever has tokens left may use what is left of the budget."),
        rung("a place in its own block", (3, 4, 3), "e=6+1 . d=3+1 c=3+1 2.",
            "A place in its own last block is room for one more token."),
        rung("one is preempted, and its budget", (5, 1, 3), "c=1+2 d=3+1 b=1+2 3.",
            "What is not given to one that is preempted is left for others."),
        rung("a prompt that never fits", (2, 2, 4), "a=5+1 b=1+1 2.",
            "ValueError for a prompt that needs more blocks."),
        rung("it never fits in the end", (2, 2, 4), "a=4+2 b=1+1 2.",
            "prompt + new − 1 tokens are computed in all: ValueError if all blocks together cannot hold them."),
        rung("it just fits", (2, 2, 4), "a=4+1 b=2+3 6.", "The last new token is never computed, so it "
            "needs no place."),
        rung("blocks are given back", (2, 2, 4), "a=3+1 b=3+1 3.", "Who is finished gives its blocks back."),
        rung("the first blocks are taken", (2, 2, 8), "a=3+2 b=3+1 4.", "No more blocks are used than there are."),
        rung("there is room for a part", (3, 2, 8), "a=3+2 b=5+1 5.",
            "As much of a prompt is computed as there is room for."),
        rung("one is preempted", (2, 2, 4), "a=1+4 b=1+2 7.",
            "A decode needs a block and none is free: the last one goes."),
        rung("who came last goes first", (3, 2, 6), "a=2+4 b=2+4 c=2+4 16.",
            "Of those that hold blocks, the last to arrive is preempted first, and no more of them than need be."),
        rung("no more than need be", (3, 2, 6), "a=2+4 b=1+4 c=1+3 14.",
            "One block is wanted, and the last one has one: the others stay."),
        rung("the last one is the largest", (3, 2, 8), "a=2+3 b=3+2 8.",
            "Of those that hold blocks, the last to arrive is preempted first."),
        rung("the first one is the largest", (4, 1, 8), "a=2+3 b=1+2 c=1+2 9.",
            "Of those that hold blocks, the last to arrive is preempted first."),
        rung("one waits and all blocks are taken", (2, 2, 4), "a=3+2 b=2+1 5.",
            "Who runs is not preempted for one that waits to begin."),
        rung("the last one needs a block", (3, 2, 6), "a=3+2 b=2+2 6.",
            "Where the last one needs a block, it goes itself."),
        rung("computed again", (3, 1, 4), "a=1+3 b=1+3 9.",
            "Who was preempted computes its prompt and what it generated again, and then goes on."),
        rung("preempted within its prompt", (4, 3, 5), "a=5+4 b=5+1 6.",
            "Blocks of a prompt that is half computed are given back too: it begins again."),
        rung("computed again, bit by bit", (6, 1, 2), "a=1+6 b=1+4 14.",
            "Who was preempted computes its prompt and what it generated again, and then goes on."),
        rung("computed again beside a decode", (3, 4, 6), "a=2+5 b=8+2 8.",
            "Who is not in the plan generates nothing in that step."),
        rung("in order after all", (4, 1, 4), "a=1+3 b=2+2 c=1+1 9.",
            "Who was preempted keeps its place in the order."),
        rung("a long prompt first", (4, 2, 4), "a=6+1 b=1+3 c=4+2 9.", "First come, first served."),
        rung("nobody is there", (2, 2, 2), ". a=1+1 2.", "Without requests a step plans nothing."),
        drawn(SCHEDULER, rng, "sixty calls", (5, 2, 4), 60),
        drawn(SCHEDULER, rng, "few blocks", (5, 1, 6), 60),
        drawn(SCHEDULER, rng, "a small budget", (9, 2, 2), 60),
        drawn(SCHEDULER, rng, "a large budget", (8, 3, 12), 60),
        drawn(SCHEDULER, rng, "a budget of one", (6, 2, 1), 60),
        drawn(SCHEDULER, rng, "large blocks", (3, 5, 6), 60),
        drawn(SCHEDULER, rng, "blocks of one token", (12, 1, 5), 60),
        rung("twelve at once", (12, 1, 12), everybody, "As many run as there are blocks and tokens for."),
        rung("places left in its own block", (2, 2, 2), "a=1+2 b=3+1 2.",
            "Where no block is free, a request continues as far as its last block has places."),
    ]  # fmt: skip


# Attention through a table ------------------------------------------------------------------------------------------


def paged_attention(rng: np.random.Generator) -> list[Rung]:
    def pool(n_blocks: int, block_size: int, d: int, e: int) -> tuple[np.ndarray, np.ndarray]:
        return draw(rng, n_blocks, block_size, d), draw(rng, n_blocks, block_size, e)

    def rung(name, sizes, table, length, why, spoil=False, times=1.0):
        keys, values = pool(*sizes)
        if spoil:
            is_token = np.zeros(sizes[:2], dtype=bool)
            for place in range(length):
                is_token[table[place // sizes[1]], place % sizes[1]] = True
            keys[~is_token] = np.nan
            values[~is_token] = np.nan
        q = times * draw(rng, sizes[2])
        return Rung(name, (q, times * keys, values, np.array(table), length), why)

    def two_keys(name, q, keys, why):
        return Rung(
            name, (np.array([q]), np.reshape(keys, (1, 2, 1)), np.array([[[1.0], [4.0]]]), np.array([0]), 2), why
        )

    others = np.arange(3)[:, None, None] == 1  # a block that is not in the table
    spoiled = [np.where(others, np.nan, each) for each in pool(3, 2, 3, 2)]
    return [
        rung("one token", (2, 2, 3, 2), [1], 1, "One token takes all the weight: the output is its value."),
        rung("two blocks, in order", (2, 2, 4, 3), [0, 1], 4, "Without holes this is plain attention."),
        rung("blocks out of order", (5, 2, 4, 3), [3, 0, 4], 6, "The table says which block comes first."),
        rung("the last block is half full", (4, 3, 4, 2), [2, 0], 4,
            "Only length tokens are there: the rest is rubbish."),
        rung("rubbish is NaN", (5, 3, 2, 4), [4, 1], 5,
            "Slots after the end may hold anything. A weight of 0 times NaN is NaN: cut the rubbish off.", spoil=True),
        rung("a table that is longer", (6, 2, 3, 3), [5, 2, 0], 3, "A table may name blocks that are not filled yet.",
            spoil=True),
        rung("blocks of one token", (6, 1, 3, 2), [4, 2, 5, 0], 4, "Every token may lie elsewhere."),
        rung("one large block", (1, 8, 5, 2), [0], 6, "Only length tokens are there."),
        rung("shared by two rows of the table", (3, 2, 4, 2), [1, 1, 2], 5, "A table may name a block twice."),
        rung("large scores", (4, 2, 4, 3), [2, 3], 4, "e^s is ∞ or 0: take the largest score off first.", times=40.0),
        Rung(AS_IT_WAS, (draw(rng, 3), *spoiled, np.array([2, 0]), 3), COPY, changes),
        Rung("more tokens than places in the pool", (*ONES, np.array([0, 1, 1]), 3),
            "A block that the table names twice counts twice: length may be larger than the pool."),
        two_keys("keys of zeros", 1.0, [0.0, 2.0], "A key of zeros is a key like any other: length counts tokens."),
        two_keys("scores far below 0", 40.0, [-40.0, -41.0], "Take the largest score off, also where it is below 0."),
        two_keys("scores that float32 cannot tell apart", 1.0, [1e8, 1e8 + 1],
            "The arrays are float64, and scores may be large: keep float64 on the way, too."),
        two_keys("one score far above the other", 1.0, [0.0, 2000.0],
            "It is the largest score that is taken off: e^1000 overflows."),
        Rung("scores below −10 000, and room behind them",
            (np.ones(1), np.array([[[-5e4], [-5e4 - 1], [0.0]]]), np.array([[[1.0], [4.0], [9.0]]]), np.array([0]), 2),
            "What comes after the end is cut off, or its score is −∞: −10 000 is a score like any other."),
    ]  # fmt: skip


ONES = np.zeros(1), np.zeros((2, 1, 1)), np.array([[[0.0]], [[1.0]]])


def table_of(draft: Draft) -> np.ndarray:
    """Draw the table of a text: the numbers of its blocks, at least one."""
    blocks = draft.sizes["n"]
    return np.array([draft.choose(0, blocks - 1) for _ in range(draft.choose(1, min(3, len(draft.rung[3]))))])


def length_of(draft: Draft) -> int:
    """Draw a number of tokens with which the last block of the table is at least begun."""
    size = draft.sizes["s"]
    blocks = len(draft.args[3])
    return size * (blocks - 1) + draft.choose(1, size)


# Latencies ----------------------------------------------------------------------------------------------------------


def latencies(rng: np.random.Generator) -> list[Rung]:
    def log(counts: Sequence[int] | np.ndarray) -> tuple[np.ndarray, list[list[float]]]:
        arrival = np.cumsum(rng.integers(1, 8, len(counts))) / 4
        waits = [rng.integers(1, 20, count) / 8 for count in counts]
        return arrival, [(start + np.cumsum(wait)).tolist() for start, wait in zip(arrival, waits, strict=True)]

    def rung(name, args, why):
        return Rung(name, args, why, of_three)

    return [
        rung("one request", (np.array([0.0]), [[2.0, 3.0, 5.0, 6.0]]),
            "The first token after 2; three more in 4, so 4/3 each; the largest gap is 2."),
        rung("it arrives later", (np.array([1.5]), [[2.0, 2.5, 3.0]]), "TTFT counts from the arrival."),
        rung("two tokens", (np.array([0.25]), [[1.0, 1.75]]), "Between two tokens lies one gap."),
        rung("one token", (np.array([1.0]), [[4.0]]), "One token has no gap: TPOT and the largest gap are NaN."),
        rung("a long wait before the first token", (np.array([0.0]), [[9.0, 9.5, 10.5]]),
            "The wait for the first token is TTFT, and no gap between tokens."),
        rung("a pause", (np.array([0.0]), [[1.0, 1.5, 6.0, 6.25, 6.5]]), "The largest gap is between two neighbours."),
        rung("requests of different lengths", log((3, 1, 6, 2)), "Each request is counted by itself."),
        rung("many requests", log(rng.integers(1, 9, 12)), "One number for each request, in order."),
        Rung(AS_IT_WAS, log((2, 4)), COPY, changes),
        rung("the second arrived first", (np.array([3.0, 1.0]), [[4.0, 5.5], [2.0, 2.5]]),
            "arrival[i] belongs to times[i]: requests come in any order."),
        rung("arrivals in whole numbers", (np.array([0, 3]), [[0.5, 0.75], [3.25]]),
            "Times are no whole numbers, even where arrivals are."),
        rung("a clock that began long ago", (np.array([1.7e9]), [[1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 4]]),
            "Seconds since 1970 have ten digits before the point: float32 keeps seven."),
        rung("the second comes much later", (np.array([0.0, 10.0]), [[1.0, 2.0], [11.0, 12.0]]),
            "A gap lies between two tokens of one request."),
        rung("two tokens at one time", (np.array([0.0, 1.0]), [[1.0, 1.0], [2.0, 2.0, 3.0]]),
            "Two tokens may come at the same time: a gap of 0 is a gap."),
    ]  # fmt: skip


def of_three(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the three arrays by name."""
    return named(function(*args), ("ttft", "tpot", "largest_gap"))


def token_times(draft: Draft) -> list[list[float]]:
    """Draw, for each request, the times of its tokens after its arrival."""
    times = []
    for start in draft.args[0]:
        clock = float(start)
        each = []
        for _ in range(draft.choose(1, 3)):
            clock += draft.choose(1, 3)
            each.append(clock)
        times.append(each)
    return times


def arrivals(draft: Draft) -> np.ndarray:
    """Draw the arrival times of one or two requests."""
    times = [draft.choose(0, 2) for _ in range(draft.choose(1, min(2, len(draft.rung[0]))))]
    return np.array(times, dtype=draft.rung[0].dtype)


# Chunks -------------------------------------------------------------------------------------------------------------


def chunks(rng: np.random.Generator) -> list[Rung]:
    def rung(name, todo, budget, why):
        return Rung(name, (todo, budget), why, measure)

    def measure(function: Callable, *args: Any) -> dict[str, Any]:
        result = function(*args)
        if not isinstance(result, (list, tuple, np.ndarray)):
            raise BadResult(f"it returned {type(result).__name__}; it should return a list")
        return {"tokens": list(result)}

    several = [int(x) for x in rng.integers(1, 7, 6)]
    return [
        rung("all fit", [1, 4, 1], 9, "Where the budget suffices, each gets all that it has left."),
        rung("a prompt is cut", [1, 8], 5, "The decode takes one token of the budget, the prompt what is left."),
        rung("a decode behind a prompt", [8, 1], 4, "A decode never waits for a prefill, whoever came first."),
        rung("several decodes first", [6, 1, 5, 1, 1], 7, "All with one token left come first, then prompts in order."),
        rung("more decodes than budget", [1, 1, 1, 1], 2, "The budget is kept: the first two, in order."),
        rung("decodes take the whole budget", [5, 1, 1], 2, "Nothing is left for the prompt: it gets 0."),
        rung("the next prompt gets the rest", [3, 6, 2], 7, "3 tokens, and then 4 of the next prompt's 6."),
        rung("a small one does not overtake", [9, 2], 5, "The first prompt gets all of the budget that it can use."),
        rung("no budget", [1, 4], 0, "Nothing is planned."),
        rung("nobody is there", [], 4, "An empty list."),
        rung("several, a middle budget", several, sum(several) // 2, "First all with one token left, then in order."),
        rung("several, a large budget", several, sum(several) + 3, "No more than is left to compute."),
        Rung(AS_IT_WAS, ([5, 1, 3], 4), COPY, changes),
        rung("one token is left", [5], 1, "A prompt takes what is left of the budget, be it one token."),
        rung("long prompts", [20_000, 20_000, 45_000], 30_000, "Prompts may be of any length, and so may a budget."),
        rung("one token is left behind a decode", [4, 1, 3], 2, "The decode takes one token, the first prompt one."),
    ]  # fmt: skip


def few_todo(draft: Draft) -> list[int]:
    """Draw the tokens that a few requests have left to compute."""
    return [draft.choose(1, 4) for _ in range(draft.choose(1, 3))]


def a_budget(draft: Draft) -> int:
    """Draw a small number of tokens."""
    return draft.choose(0, 6)


# Speculation --------------------------------------------------------------------------------------------------------


def shares_of(rng: np.random.Generator, rows: int, words: int, parts: int = 16) -> np.ndarray:
    """Draw rows of nonzero probabilities in sixteenths."""
    counts = 1 + rng.multinomial(parts - words, np.full(words, 1 / words), size=rows)
    return counts / parts


def accept(rng: np.random.Generator) -> list[Rung]:
    def rung(name, gamma, words, until, why, measure=of_two, again=-1, least=16):
        """Return a rung in which the coins keep `until` tokens; the coin at the later place `again` rejects, too."""
        while True:
            p, q = shares_of(rng, gamma + 1, words, least), shares_of(rng, gamma, words, least)
            drafted = rng.integers(0, words, gamma)
            ratios = np.array([p[i, x] / q[i, x] for i, x in enumerate(drafted)])
            if (ratios[: max(until, again) + 1] < 1).all() and (ratios > 0).all():
                break
        rejected = np.isin(np.arange(gamma), (until, again))
        coins = np.where(rejected, (1 + ratios) / 2, ratios / 2)
        return Rung(name, (p, q, drafted, np.minimum(coins, 0.96875)), why, measure)

    p, q = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), np.array([[0.25, 0.5, 0.25]])
    rest = "After a rejection the next token comes from (p − q)₊ of that place, divided by its sum."
    return [
        Rung("a coin below p/q", (p, q, np.array([1]), np.array([0.25])),
            "p/q is 1/2, and the coin lies below: kept. The next token comes from p[1].", of_two),
        Rung("a coin above p/q", (p, q, np.array([1]), np.array([0.75])),
            "p/q is 1/2, and the coin lies above: rejected. The next token comes from (p − q)₊, all of it on token 0.",
            of_two),
        Rung("a coin that is p/q", (p, q, np.array([1]), np.array([0.5])),
            "A coin keeps a token when it lies below p/q: at p/q it rejects.", of_two),
        Rung("p above q", (p, q, np.array([0]), np.array([1 - 2**-10])), "p/q is 2, more than any coin: kept.", of_two),
        rung("the first is rejected", 3, 4, 0, rest),
        rung("the second is rejected", 3, 4, 1, f"{rest} No token behind it is kept."),
        rung("the last is rejected", 3, 5, 2, rest),
        rung("all are kept", 3, 4, 3, "No draft is left to judge: the next token comes from p[γ]."),
        rung("a long draft", 6, 5, 4, rest),
        rung("one token is drafted", 1, 6, 0, rest),
        rung(AS_IT_WAS, 3, 4, 1, COPY, changes),
        rung("a coin behind the rejection rejects again", 4, 4, 1,
            "The first rejection ends the draft: what the coins behind it say no longer matters.", again=3),
        Rung("a coin just below 1/3", (np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([[0.3, 0.7]]), np.array([0]),
            np.array([0.3333])), "p/q is 1/3, and 0.3333 lies below: float16 is too coarse for that.", of_two),
        rung("a vocabulary of 130", 2, 130, 0, rest, least=300),
    ]  # fmt: skip


def of_two(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the number of accepted tokens, and the distribution of the next one."""
    return named(function(*args), ("accepted", "following"))


def of_a_draft(rung: Rung) -> dict[str, float]:
    """Return what a wrong number of an answer to `accept` may be made of."""
    _, q, *_ = rung.args
    return {"γ": len(q), "γ + 1": len(q) + 1, "the number of tokens": q.shape[1]}


def quarters(axes: str, rows: str) -> Drawn:
    """Return an argument of nonzero probabilities in eighths: g rows, or g + 1 if `rows` is "g+1"."""

    def draw_rows(draft: Draft) -> np.ndarray:
        words = draft.sizes["V"]
        count = draft.sizes["g"] + (rows == "g+1")
        drawn_rows = np.ones((count, words))
        for row in drawn_rows:
            for _ in range(8 - words):
                row[draft.choose(0, words - 1)] += 1
        return drawn_rows / 8

    return Drawn(axes, draw_rows)


def drafted_tokens(draft: Draft) -> np.ndarray:
    """Draw a token for each row of q."""
    return np.array([draft.choose(0, draft.sizes["V"] - 1) for _ in range(draft.sizes["g"])])


def some_coins(draft: Draft) -> np.ndarray:
    """Draw coins from 0 to below 1, in eighths."""
    return np.array([draft.choose(0, 7) / 8 for _ in range(draft.sizes["g"])])


# How many to verify -------------------------------------------------------------------------------------------------


def how_many(rng: np.random.Generator) -> list[Rung]:
    def survival(requests: int, gamma: int) -> np.ndarray:
        chances = rng.integers(2, 8, (requests, gamma)) / 8
        return np.cumprod(chances, axis=1)

    def rung(name, chances, fixed, per_token, bend, why):
        """Return a rung whose costs are `fixed`, plus `per_token` for each token beyond `bend`."""
        tokens = np.arange(chances.shape[0] * (1 + chances.shape[1]) + 1)
        return Rung(name, (chances, fixed + per_token * np.maximum(tokens - bend, 0)), why)

    few = survival(1, 4)
    some = survival(3, 3)
    return [
        rung("a step costs the same", few, 1.0, 0.0, 0, "Where tokens cost nothing, all are verified."),
        rung("tokens cost", np.array([[0.5, 0.25, 0.125]]), 1.0, 0.25, 0,
            "With B = 0 1/1.25, with 1 1.5/1.5, with 2 1.75/1.75, with 3 1.875/2: 1 is the smallest B of the best."),
        rung("tokens cost a lot", few, 0.25, 1.0, 0, "Where a step takes as long as its tokens, nothing is verified."),
        rung("a busy machine", some, 4.0, 1.0, 6,
            "Up to 6 tokens are free here: beyond, only likely ones are worth it."),
        rung("likely ones of any request", np.array([[0.25, 0.125], [0.875, 0.75], [0.5, 0.25]]), 4.0, 0.5, 5,
            "The most likely tokens come first, whichever request they belong to."),
        rung("two of one request", np.array([[0.875, 0.75], [0.25, 0.125]]), 4.0, 0.5, 4,
            "The second token of one request may be likelier than the first one of another."),
        rung("more requests", survival(5, 2), 6.0, 0.75, 8, "N + B tokens go through the step, and N tokens are sure."),
        rung("all alike", np.full((2, 3), 0.5), 2.0, 0.5, 2, "Of equals the smallest B."),
        rung("one long draft", survival(1, 8), 3.0, 0.25, 3, "One request, and up to eight tokens."),
        rung("milliseconds", np.array([[0.75, 0.75, 0.5], [0.75, 0.25, 0.125]]), 40.0, 5.0, 4,
            "Tokens for each unit of time, whatever the unit: a quotient, and no difference."),
        Rung("a cost that jumps", (np.array([[0.75, 0.5, 0.5]]), np.array([1.0, 1.0, 2.0, 2.0, 2.0])),
            "The second token costs as much again, and the two behind it nothing: look at every B."),
        Rung(AS_IT_WAS, (some, 1.0 + np.arange(13.0) / 4), COPY, changes),
        Rung("nearly the same rates", (np.array([[0.5]]), np.array([1000.0, 1000.0, 1001.0])),
            "1.5/1001 is more than 1/1000: compare the rates as they are, without rounding."),
        Rung("two peaks", (np.array([[0.5, 0.5, 0.5]]), np.array([1.0, 1.0, 2.0, 2.0, 3.0])),
            "The rates are 1, 0.75, 1 and 0.83: look at every B, and take the smallest of the best."),
        Rung("an unlikely token for nothing", (np.array([[0.0004]]), np.array([1.0, 1.0, 1.0])),
            "Even an unlikely token is worth it where it costs nothing."),
    ]  # fmt: skip


def sure_to_fall(draft: Draft) -> np.ndarray:
    """Draw probabilities in eighths that do not rise along a row."""
    requests = draft.sizes["n"]
    gamma = draft.sizes["g"]
    rows = [sorted((draft.choose(1, 8) / 8 for _ in range(gamma)), reverse=True) for _ in range(requests)]
    return np.array(rows)


def some_costs(draft: Draft) -> np.ndarray:
    """Draw the costs of steps of 0, 1, … tokens: a fixed part, and a part for each token."""
    requests, gamma = draft.args[0].shape
    fixed = draft.choose(1, 4)
    each = draft.choose(0, 4) / 4
    return fixed + each * np.arange(requests * (1 + gamma) + 1)


# By pencil ----------------------------------------------------------------------------------------------------------

ENTRIES = ("static_steps", "continuous_ends", "place")
AGAIN = "Work it out again on paper, and write every step down: the hints say how."


SMALL_PAGED = (Small((Drawn("d", lambda draft: draft.numbers((draft.sizes["d"],), draft.rung[0])),
    "n s d", "n s e", table_of, length_of), measures=(None,)),)  # fmt: skip
LADDERS = {
    "by_hand": Ladder(ENTRIES, by_hand=True, advice=AGAIN),
    "block_allocator": Ladder(("BlockAllocator",), rungs=block_allocator, machine=ALLOCATOR),
    "paged_attention": Ladder(("paged_attention",), ("output",), paged_attention, small=SMALL_PAGED),
    "batch_scheduler": Ladder(("BatchScheduler",), rungs=batch_scheduler, machine=BATCHES),
    "prefix_cache": Ladder(("PrefixCache",), rungs=on_prefixes, machine=PREFIXES),
    "find_the_bug": Ladder(("BrokenPrefixCache",), rungs=on_prefixes, machine=PREFIXES),
    "latencies": Ladder(
        ("latencies",),
        ("ttft", "tpot", "largest_gap"),
        latencies,
        small=(Small((arrivals, token_times), measures=(of_three,)),),
    ),
    "chunks": Ladder(("chunks",), rungs=chunks, small=(Small((few_todo, a_budget)),)),
    "scheduler": Ladder(("Scheduler",), rungs=scheduler, machine=SCHEDULER),
    "by_hand_draft": Ladder(("following",), by_hand=True, advice=AGAIN),
    "accept": Ladder(
        ("accept",),
        ("accepted", "following"),
        accept,
        quantities=of_a_draft,
        small=(Small((quarters("g1 V", "g+1"), quarters("g V", "g"), drafted_tokens, some_coins), measures=(of_two,)),),
    ),
    "how_many": Ladder(
        ("how_many",), ("B",), how_many, small=(Small((Drawn("n g", sure_to_fall), some_costs), measures=(None,)),)
    ),
    "another_bug": Ladder(("BrokenWindow",), rungs=on_windows, machine=WINDOW),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
