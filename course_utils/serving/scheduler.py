"""Who computes what in the next step. Requests share a budget of tokens a step and a pool of blocks for what they hold.

The rules, all of which a reader can change: first come, first served; decodes first, one token each, so that nobody who
is being answered waits for a stranger's prompt; then prompts, in chunks, with what is left of the budget; a request is
let in when there are blocks for all the tokens that it has so far; where a decode then finds no block, the request that
arrived last gives back all of its own.
Sources: Yu et al. 2022 (Orca), iteration-level scheduling; Kwon et al. 2023 (PagedAttention), section 4.5, preemption;
Agrawal et al. 2024 (Sarathi-Serve), chunked prefill.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from course_utils.attention.blocks import BlockPool
from course_utils.attention.shapes import whole
from course_utils.serving.traffic import Request


class Note(NamedTuple):
    """What a request did in a step, "decode", "prefill", "wait" or "preempted", and why."""

    step: int
    name: str
    did: str
    why: str


class Blocks(Protocol):
    """What gives blocks: a `BlockPool`, or a `PrefixCache`."""

    @property
    def n_blocks(self) -> int: ...
    @property
    def n_free(self) -> int: ...
    def allocate(self) -> int: ...
    def release(self, block: int) -> None: ...


@dataclass(eq=False)
class RequestState:
    """How far a request is: tokens whose keys and values are stored, tokens it got, and the blocks that it holds."""

    request: Request
    computed: int = 0
    generated: int = 0
    table: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Tokens that are known: the prompt and what came after."""
        return self.request.prompt + self.generated

    @property
    def remaining(self) -> int:
        """Tokens to compute until the next one is known."""
        return self.tokens - self.computed

    @property
    def decodes(self) -> bool:
        """Is it beyond its prompt, with the newest token alone to compute?"""
        return self.generated > 0 and self.remaining == 1


class Scheduler:
    """Plans steps for requests: n_blocks blocks of block_size tokens, at most `budget` tokens in a step.

    n_slots limits the requests that run side by side. chunked=False computes a prompt in one step, however long: the
    budget then only says whether another may begin. static=True fills a batch, runs it until its last request ends, and
    only then fills the next; each reserves blocks for all its tokens, so none is preempted. A preempted request loses
    what is stored for it and computes it again, or with swap=True its blocks are moved away and back.
    blocks may be a `PrefixCache` of n_blocks blocks; `cached` then gives the blocks, already shared, that hold the
    beginning of a request's tokens by its name. explain=False keeps no notes, for long simulations.
    Raises ValueError or TypeError for sizes that do not fit.

        while scheduler.unfinished:
            planned = scheduler.plan()  # [(name, tokens to compute now), …]
            named = scheduler.advance(planned)  # those that got a token
    """

    def __init__(
        self,
        n_blocks: int,
        block_size: int,
        budget: int,
        n_slots: int | None = None,
        chunked: bool = True,
        static: bool = False,
        swap: bool = False,
        blocks: Blocks | None = None,
        cached: Callable[[str], list[int]] | None = None,
        explain: bool = True,
    ) -> None:
        self.blocks: Blocks = BlockPool(n_blocks) if blocks is None else blocks
        if self.blocks.n_blocks != n_blocks:
            raise ValueError(f"n_blocks is {n_blocks} but the pool has {self.blocks.n_blocks}: make them the same")
        self.block_size = whole("block_size", block_size)
        self.budget = whole("budget", budget)
        self.n_slots = None if n_slots is None else whole("n_slots", n_slots)
        self.chunked = chunked
        self.static = static
        self.swap = swap
        self.explain = explain
        self._cached = cached or (lambda name: [])
        self.step = 0
        self.waiting: deque[RequestState] = deque()  # both in order of arrival
        self.running: list[RequestState] = []
        self.notes: list[Note] = []  # one for each request and step
        self.again = 0  # tokens that were stored, and are lost by preemption
        self.moved = 0  # blocks that swapping moved, out and in
        self._names: set[str] = set()  # of all requests that ever came
        self._last = -math.inf  # when the last one came
        self._now: dict[str, Note] = {}  # the notes of this step

    @property
    def unfinished(self) -> list[RequestState]:
        """Requests that are not done, in order of arrival."""
        return [*self.running, *self.waiting]

    def add(self, request: Request) -> None:
        """Put a request that has arrived at the end of the line.

        Raises ValueError for a name that was used, an arrival before that of the last one added, and more tokens than
        the pool has room for.
        """
        request = Request(*request)
        most = whole("prompt", request.prompt) + whole("new", request.new) - 1
        if request.name in self._names:
            raise ValueError(f"there was a request {request.name!r} already: give each a name of its own")
        if request.arrival < self._last:
            raise ValueError(f"{request.name!r} came at {request.arrival}, before {self._last}: add by arrival")
        if self._blocks_for(most) > self.blocks.n_blocks:
            room = self.blocks.n_blocks * self.block_size
            raise ValueError(
                f"{request.name!r} has {request.prompt} + {request.new} tokens, all but the last to be stored, but "
                f"the pool has {room} slots: make it larger"
            )
        self._names.add(request.name)
        self._last = request.arrival
        self.waiting.append(RequestState(request))

    # --- the rules --------------------------------------------------------------------------------------------------

    def plan(self) -> list[tuple[str, int]]:
        """Return what to compute in this step, names and numbers of tokens. Takes blocks for it, and may preempt."""
        planned: list[tuple[str, int]] = []
        remaining = self.budget
        before = len(self.running)
        self._now = {}
        for each in sorted(self.running, key=lambda each: not each.decodes):  # decodes first, both by arrival
            if each in self.running and self._has_budget(each, remaining) and self._find_block(each):
                remaining -= self._compute(each, remaining, planned)
        shut = "blocks ran out in this step" if len(self.running) < before else ""
        if self.static and before:
            shut = "the batch is not over"
        self._admit(remaining, planned, shut)
        self.notes += self._now.values()
        return planned

    def advance(self, planned: list[tuple[str, int]]) -> list[str]:
        """Take a step as computed, and return who got a token; a request that has all of its tokens is finished."""
        named = []
        running = {each.request.name: each for each in self.running}
        for name, n in planned:
            each = running[name]
            each.computed += n
            if each.remaining == 0:
                each.generated += 1
                named.append(name)
                if each.generated == each.request.new:
                    self.finish(name)
        self.step += 1
        return named

    def finish(self, name: str) -> None:
        """End a running request, now or before it has all its tokens. Raises ValueError for one that is not running."""
        for each in self.running:
            if each.request.name == name:
                self.running.remove(each)
                self._drop_blocks(each)
                return
        raise ValueError(f"{name!r} is not running: running are {[each.request.name for each in self.running]}")

    def _admit(self, remaining: int, planned: list[tuple[str, int]], shut: str) -> None:
        """Let requests in from the front of the line, until one has to wait; those behind it wait, too."""
        while self.waiting:
            first = self.waiting[0]
            shut = shut or self._reason_to_wait(remaining) or self._take_blocks(first)
            if shut:
                break
            self.running.append(self.waiting.popleft())
            if self._has_budget(first, remaining):
                remaining -= self._compute(first, remaining, planned)
        for each in self.waiting if self.explain else ():
            first = self.waiting[0]
            self._note(each, "wait", shut if each is first else f"{first.request.name} is before it")

    def _reason_to_wait(self, remaining: int) -> str:
        """Return why no request can be let in, whatever blocks it needs; "" if one can."""
        if self.n_slots == len(self.running):
            return f"every slot is taken: {self.n_slots}"
        if remaining <= 0 and not self.static:
            return f"the budget of {self.budget} tokens is used"
        return ""

    def _take_blocks(self, each: RequestState) -> str:
        """Give a request the blocks that it needs, and return ""; if too few are free, return that reason to wait."""
        shared = [] if each.computed else self._cached(each.request.name)  # what was swapped comes back as it was
        most = each.request.prompt + each.request.new - 1 if self.static else each.tokens
        missing = self._blocks_for(most) - len(shared)
        free = self.blocks.n_free
        if missing > free:
            self._release(shared)
            return f"blocks that it needs: {missing}, that are free: {free}"
        self.moved += self._blocks_for(each.computed)
        each.computed = each.computed or len(shared) * self.block_size
        each.table = shared + [self.blocks.allocate() for _ in range(missing)]
        return ""

    def _has_budget(self, each: RequestState, remaining: int) -> bool:
        if remaining <= 0:
            self._note(each, "wait", f"the budget of {self.budget} tokens is used")
        return remaining > 0

    def _find_block(self, each: RequestState) -> bool:
        """A block for the next token, if it needs one: the latest arrived give theirs, and that may be itself."""
        while len(each.table) < self._blocks_for(each.tokens):
            if self.blocks.n_free:
                each.table.append(self.blocks.allocate())
                continue
            latest = self.running.pop()
            self.waiting.appendleft(latest)
            self._preempt(latest, each)
            if latest is each:
                return False
        return True

    def _preempt(self, latest: RequestState, needy: RequestState) -> None:
        self._note(latest, "preempted", f"{needy.request.name} needs a block, none is free, and it arrived last")
        if self.swap:
            self.moved += self._blocks_for(latest.computed)
        else:
            self.again += latest.computed
            latest.computed = 0
        self._drop_blocks(latest)

    def _compute(self, each: RequestState, remaining: int, planned: list[tuple[str, int]]) -> int:
        """Plan as many of its tokens as the budget allows, or all if prompts are not cut, and return how many."""
        n = min(each.remaining, remaining) if self.chunked else each.remaining
        planned.append((each.request.name, n))
        last = each.computed + n
        why = "decodes go first" if each.decodes else f"tokens {each.computed + 1} to {last} of {each.tokens}"
        self._note(each, "decode" if each.decodes else "prefill", why)
        return n

    # --- small things -----------------------------------------------------------------------------------------------

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _drop_blocks(self, each: RequestState) -> None:
        self._release(each.table)
        each.table = []

    def _release(self, table: list[int]) -> None:
        for block in reversed(table):  # a prefix cache evicts what was released first: the end before the beginning
            self.blocks.release(block)

    def _note(self, each: RequestState, did: str, why: str) -> None:
        """One note for each request and step: the first one stays."""
        if self.explain:
            self._now.setdefault(each.request.name, Note(self.step, each.request.name, did, why))
