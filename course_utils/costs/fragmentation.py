"""How much of a cache's memory holds tokens while requests come and go: contiguous reservations against pages.

A server has one store of slots, each for the keys and values of a token. Requests wait in line. Each needs slots for
its prompt at once, and one more for every token of its reply, whose length nobody knows beforehand. What a policy
reserves and no token ever fills is internal fragmentation; what is free in pieces too small to use is external
fragmentation. Nothing is timed: a step is one token for every running request.
Source: Kwon et al. 2023 (PagedAttention), sections 3 and 4, figures 2 and 3.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from course_utils.attention.cache import BlockPool
from course_utils.costs.sizes import whole

POLICIES = ("longest", "exact", "pages")


class Request(NamedTuple):
    """Tokens that a request brings, and tokens that its reply will have."""

    prompt: int
    reply: int

    @property
    def total(self) -> int:
        return self.prompt + self.reply


class MemoryAtStep(NamedTuple):
    """One moment of a server: slots that hold tokens, slots reserved (these among them), requests running, in line."""

    filled: int
    reserved: int
    running: int
    waiting: int


class Trace(NamedTuple):
    """What happened while all requests were served, step by step.

    again counts tokens that a request held when it was sent back into the line, and which are computed again later. The
    means are over the steps in which somebody waits, when there is work for all of the store; over all if nobody does.
    """

    policy: str
    n_slots: int
    steps: tuple
    again: int

    @property
    def mean_running(self) -> float:
        """Requests that run side by side."""
        return self._mean("running")

    @property
    def mean_filled(self) -> float:
        """The share of all slots that hold a token."""
        return self._mean("filled") / self.n_slots

    @property
    def mean_reserved(self) -> float:
        """The share of all slots that are reserved."""
        return self._mean("reserved") / self.n_slots

    def _mean(self, field: str) -> float:
        busy = [step for step in self.steps if step.waiting] or self.steps
        return sum(getattr(step, field) for step in busy) / len(busy)


def draw_requests(n: int, longest: int, seed: int = 0) -> list[Request]:
    """n requests, none with more than `longest` tokens in all: many short replies, and a few long ones.

    Prompts take up to a quarter of `longest`, all lengths alike. The same seed gives the same list everywhere.
    Raises ValueError when longest is below 8.
    """
    n, longest = whole(n=n, longest=longest)
    if longest < 8:
        raise ValueError(f"longest is {longest}: a prompt gets up to a quarter of it, so it must be at least 8")
    rng = random.Random(seed)
    quarter = longest // 4
    shares = [(rng.random(), rng.random()) for _ in range(n)]
    # The cube of a number between 0 and 1 is mostly small, and now and then near 1.
    return [Request(1 + int(quarter * a), 1 + int((longest - quarter - 1) * b * b * b)) for a, b in shares]


def serve(
    requests: Sequence[Request], n_slots: int, policy: str, longest: int | None = None, block_size: int = 16
) -> Trace:
    """Serve the requests in order, as many side by side as fit, and return the Trace.

    policy "longest" reserves `longest` slots in one piece for each (the longest request, when left out), since nobody
    knows how long a reply gets. "exact" reserves prompt + reply in one piece, as somebody who knew could. "pages" takes
    a block of block_size slots when the next token needs one; where none is free, the request that came last goes back
    into the line. To make that rare, a request is let in only while every running one could take one more block.
    Raises ValueError for an unknown policy, no requests, and a request that would not fit into an empty store.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy is {policy!r}: it must be one of {', '.join(POLICIES)}")
    if not requests:
        raise ValueError("requests is empty: give at least one")
    (slots,) = whole(n_slots=n_slots)
    memory = _memory(requests, slots, policy, longest, block_size)
    waiting = deque((number, request.prompt) for number, request in enumerate(requests))
    running: dict[int, int] = {}  # number -> tokens it holds, in order of admission
    steps = []
    again = 0
    while waiting or running:
        while waiting and memory.take(*waiting[0], spare=len(running)):
            number, tokens = waiting.popleft()
            running[number] = tokens
        steps.append(MemoryAtStep(sum(running.values()), memory.reserved, len(running), len(waiting)))
        for number in list(running):
            if number not in running:
                continue  # sent back a moment ago
            if running[number] == requests[number].total:
                memory.release(number)
                del running[number]
                continue
            while number in running and not memory.take(number, running[number] + 1):
                last = next(reversed(running))
                memory.release(last)
                again += running[last]
                waiting.appendleft((last, running.pop(last)))
            if number in running:
                running[number] += 1
    return Trace(policy, n_slots, tuple(steps), again)


def _memory(
    requests: Sequence[Request], n_slots: int, policy: str, longest: int | None, block_size: int
) -> _Pieces | _Pages:
    totals = [request.total for request in requests]
    longest = max(totals) if longest is None else longest
    if max(totals) > longest:
        raise ValueError(f"a request has {max(totals)} tokens but longest is {longest}: make that larger")
    sizes = [longest] * len(totals) if policy == "longest" else totals
    room = n_slots
    if policy == "pages":
        (block_size,) = whole(block_size=block_size)
        room = n_slots // block_size * block_size
    if max(sizes) > room:
        raise ValueError(f"a request needs {max(sizes)} slots but an empty store has {room}: make it larger")
    return _Pages(n_slots // block_size, block_size) if policy == "pages" else _Pieces(n_slots, sizes)


class _Pieces:
    """A store that gives each request one piece of sizes[number] slots, in the first gap that is wide enough."""

    def __init__(self, n_slots: int, sizes: Sequence[int]) -> None:
        self.n_slots = n_slots
        self.sizes = sizes
        self.starts: dict[int, int] = {}  # number -> where its piece starts

    @property
    def reserved(self) -> int:
        return sum(self.sizes[number] for number in self.starts)

    def take(self, number: int, tokens: int, spare: int = 0) -> bool:
        """Is there room for that many tokens of this request? Reserves its piece the first time."""
        if number not in self.starts:
            start = self._first_gap(self.sizes[number])
            if start is None:
                return False
            self.starts[number] = start
        return True

    def release(self, number: int) -> None:
        del self.starts[number]

    def _first_gap(self, size: int) -> int | None:
        end = 0
        for number in sorted(self.starts, key=self.starts.__getitem__):
            if self.starts[number] - end >= size:
                return end
            end = self.starts[number] + self.sizes[number]
        return end if self.n_slots - end >= size else None


class _Pages:
    """A store in blocks: each request has a table of those that it holds, anywhere."""

    def __init__(self, n_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.pool = BlockPool(n_blocks)
        self.tables: dict[int, list[int]] = {}

    @property
    def reserved(self) -> int:
        return (self.pool.n_blocks - self.pool.n_free) * self.block_size

    def take(self, number: int, tokens: int, spare: int = 0) -> bool:
        """Is there room for that many tokens of this request, `spare` blocks left over? Takes the missing blocks."""
        table = self.tables.get(number, [])
        missing = -(-tokens // self.block_size) - len(table)
        if missing + spare > self.pool.n_free:
            return False
        self.tables[number] = table + [self.pool.allocate() for _ in range(missing)]
        return True

    def release(self, number: int) -> None:
        for block in self.tables.pop(number):
            self.pool.release(block)
