"""What objects of day 7 promise: an allocator, a cache of prefixes, a scheduler, a window. No answer is here.

A watch records the choices that an answer is free to make: which block went where, how a budget was shared out. A
grading kernel gets no watch, or an answer could ask it which result keeps its promises.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from course_utils.checks.kernel.promises import Watch, raise_broken
from course_utils.days.day7.given.drawn_calls import LETTERS

MAX_NUMBERS = 32  # numbers of a list
KNOWN = "an unknown sequence is a KeyError"
NO_ROOM = "no room is a MemoryError"
VALID_CALL = "a valid call succeeds"


class AllocatorWatch(Watch):
    """What `BlockAllocator` promises. It knows the table of each sequence, as the calls so far gave it."""

    def __init__(self, n_blocks: int, block_size: int):
        self.block_size, self.n_blocks = block_size, n_blocks
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def observe(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Record what a call returned or raised. Raises BrokenPromise."""
        seq = args[0]
        if method != "append" and seq not in self.lengths:
            if error is not KeyError:
                raise_broken(KNOWN, f"{seq} is unknown, and {_not_raised(KeyError, error)}")
            return
        if method == "fork" and args[1] in self.lengths:
            if error is not ValueError:
                problem = f"{args[1]} is there already, and {_not_raised(ValueError, error)}"
                raise_broken("fork makes a new sequence", problem)
            return
        if error and not (method == "append" and error is MemoryError):
            self._check_error(method, seq, error)
        getattr(self, f"_{method}")(*args, result)

    def _check_error(self, method: str, seq: str, error: type[Exception]) -> NoReturn:
        """Break the promise that an unexpected error breaks."""
        holders = self._holders()
        if method == "append" and self._fresh(seq, holders) and len(holders) == self.n_blocks:
            raise_broken(NO_ROOM, f"{seq} needs a block and all are in tables, and {_not_raised(MemoryError, error)}")
        _breaks_by_error(error)

    def _holders(self) -> Counter[int]:
        """How many tables name each block that is in one."""
        return Counter(block for table in self.tables.values() for block in table)

    def _fresh(self, seq: str, holders: Mapping[int, int]) -> bool:
        """Whether the next token of a sequence needs a block: its last one is full, or shared, or there is none."""
        return self.lengths.get(seq, 0) % self.block_size == 0 or holders[self.tables[seq][-1]] > 1

    def _append(self, seq: str, result: Sequence[float] | None) -> None:
        # what has to happen, as the calls so far decide it
        table, length = self.tables.get(seq, []), self.lengths.get(seq, 0)
        holders = self._holders()
        offset = length % self.block_size  # where the token goes within its block
        fresh = self._fresh(seq, holders)  # whether it needs a new block
        free = self.n_blocks - len(holders)
        shared = offset > 0 and fresh  # a last block with room that a fork shares: the new one is its copy
        # a refusal is right only if a block is needed and none is free
        if result is None:
            if not fresh:
                raise_broken(
                    "an open block is filled first", f"{seq} was refused, though its last block has a free place"
                )
            if free:
                raise_broken(
                    "a free block is handed out", f"{seq} was refused, though {_blocks(free)} not in any table"
                )
            return
        # a new block has to be one that nobody holds; without need of one, the last block goes on
        block, got = map(int, result)
        if not 0 <= block < self.n_blocks:
            raise_broken("a block of the pool", f"block {block} is none of 0 to {self.n_blocks - 1}")
        if shared and block == table[-1]:
            raise_broken("a shared block is not written to", f"{seq} writes to block {block}, which a fork shares")
        if fresh and holders[block]:
            other = next(name for name, held in self.tables.items() if block in held)
            raise_broken("a block has one owner", f"block {block} was handed to {seq}, and {other} has it already")
        if fresh and not free:
            raise_broken(
                "no more blocks than there are", f"{seq} got a block, though all {self.n_blocks} are in tables"
            )
        if not fresh and block != table[-1]:
            raise_broken(
                "an open block is filled first", f"{seq} got block {block}, though block {table[-1]} has a free place"
            )
        if got != offset:
            raise_broken("places in order", f"token {length} of {seq} went to place {got} instead of place {offset}")
        # the choice of a block was free: it is recorded, and holds from now on
        self.tables[seq] = [*(table[:-1] if shared else table), *([block] if fresh else [])]
        self.lengths[seq] = 1 + length

    def _fork(self, seq: str, new: str, _: Sequence[float] | None) -> None:
        self.tables[new] = list(self.tables[seq])
        self.lengths[new] = self.lengths[seq]

    def _table(self, seq: str, result: Sequence[float] | None) -> None:
        returned = [int(block) for block in result or ()]
        known = self.tables[seq]
        if returned != known:
            raise_broken(
                "a table keeps its blocks",
                f"the table of {seq} is {_shorten(returned)}, and its tokens went to {known}",
            )

    def _free(self, seq: str, _: Sequence[float] | None) -> None:
        del self.tables[seq], self.lengths[seq]

    def picture(self) -> dict[str, object]:
        """Return the tables, for a player."""
        return {
            "n_blocks": self.n_blocks,
            "block_size": self.block_size,
            "tables": {name: list(table) for name, table in self.tables.items()},
            "lengths": dict(self.lengths),
        }


def _not_raised(expected: type[Exception], error: type[Exception] | None) -> str:
    return f"{error.__name__} was raised, not {expected.__name__}" if error else f"no {expected.__name__} was raised"


def _breaks_by_error(error: type[Exception]) -> NoReturn:
    raise_broken(VALID_CALL, f"it raised {error.__name__}, though the call was valid")


def _shorten(numbers: Sequence[int]) -> str:
    """A list, cut where it is long."""
    return str(list(numbers)) if len(numbers) <= MAX_NUMBERS else f"{list(numbers[:MAX_NUMBERS])} and more"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _blocks(count: int) -> str:
    return f"{count} block is" if count == 1 else f"{count} blocks are"


# A cache of prefixes --------------------------------------------------------------------------------------------------

ONE_LEFT = "a token is left to compute"
SAME_TEXT = "what is shared is the same text"
USED_AGAIN = "what is known is not computed again"
OWNER = "a block has one owner"
OLDEST = "the least recently used goes first"
EMPTY_FIRST = "an empty block goes first"
END_FIRST = "the end goes before the beginning"


class PrefixWatch(Watch):
    """What `PrefixCache` promises. It knows what text each block holds, as far as it was computed.

    `texts` has the tokens from the beginning up to the end of a full block, by block; `used` when its last table went.
    If two blocks hold the same text, a cache may know only one of them. So once one of the two is written to, the text
    and what follows it are no longer `sure` to be found, and which of the two goes first is free. A tree of texts may
    also keep both as long as one of their requests runs: it is `committed`.
    """

    def __init__(self, n_blocks: int, block_size: int):
        self.block_size, self.n_blocks = block_size, n_blocks
        self.clock = 0
        self.prompts: dict[str, tuple[int, ...]] = {}
        self.tables: dict[str, list[int]] = {}
        self.committed: set[str] = set()
        self.texts: dict[int, tuple[int, ...]] = {}
        self.sure: set[tuple[int, ...]] = set()
        self.used: dict[int, int] = {}

    def observe(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Record what a call returned or raised. Raises BrokenPromise."""
        name = args[0]
        self.clock = self.clock + 1
        known = name in self.tables
        expected = {"admit": ValueError}.get(method, KeyError)
        if known == (method == "admit"):
            if error is not expected:
                problem = "is there already" if known else "is unknown"
                raise_broken("names are told apart", f"{name} {problem}, and {_not_raised(expected, error)}")
            return
        if error and not (method == "admit" and error is MemoryError):
            if method == "admit":
                lacking, free = self._missing_and_free(tuple(args[1]))
                if lacking > free:
                    raise_broken(NO_ROOM, f"there is no room for {name}, and {_not_raised(MemoryError, error)}")
            _breaks_by_error(error)
        getattr(self, f"_{method}")(*args, result)

    def _admit(self, name: str, tokens: Sequence[int], result: Sequence[float] | None) -> None:
        text = tuple(tokens)
        size = self.block_size
        needed = -(-len(text) // size)  # blocks that the prompt takes, a last one in part
        held = self._held_blocks()
        hits = self._cached_blocks(text)  # blocks that have to be found for it
        # a refusal is right only if the new blocks that it needs are more than nobody holds
        if result is None:
            lacking, free = self._missing_and_free(text)
            if lacking <= free:
                problem = f"though it needs {_count(lacking, 'new block')} and {_blocks(free)} held by nobody"
                raise_broken("what nobody holds makes room", f"{name} was refused, {problem}")
            return
        # the count of cached tokens: whole blocks, at least one token left to compute, and a table for all of them
        cached = int(result[0])
        table = [int(block) for block in result[1:]]
        shared = cached // size  # the table's first blocks, which are reused and not written
        if cached >= len(text):
            raise_broken(
                ONE_LEFT,
                f"all of the {_count(len(text), 'token')} of {name} is said to be cached, so no query is left to run",
            )
        if len(table) != needed or cached % size or cached < 0:
            many = _count(len(text), "token")
            problem = f"{many} in blocks of {size} came back as {cached} cached in the table {_shorten(table)}"
            raise_broken("a block for each block_size tokens", problem)
        # each block: a reused one holds exactly this beginning of the prompt, a new one has no other owner
        for place, block in enumerate(table):
            if not 0 <= block < self.n_blocks:
                raise_broken("a block of the pool", f"block {block} is none of 0 to {self.n_blocks - 1}")
            if place < shared and self.texts.get(block) != text[: (place + 1) * size]:
                problem = f"block {block} is said to hold the end of {list(text[: (place + 1) * size])}"
                raise_broken(SAME_TEXT, f"{problem}, and it {self._describe_text(block)}")
            if place >= shared and (block in held or block in table[:place]):
                raise_broken(
                    OWNER, f"block {block} was handed to {name} to be written, and {self._owner(block, name)} has it"
                )
        # as much is reused as can be found, and what is evicted for the rest goes in the right order
        if shared < len(hits):
            reusable = f"{_count(len(hits) * size, 'token')} can be found in {_name_blocks(hits)}"
            raise_broken(USED_AGAIN, f"of {name}, {reusable}; {cached} are cached")
        self._check_evicted(table[shared:], set(table[:shared]) | held)
        # the texts of evicted blocks are gone, and nothing that follows them is sure to be found any more
        for block in table[shared:]:
            gone = self.texts.pop(block, None)
            self.sure = {text for text in self.sure if gone is None or text[: len(gone)] != gone}
        self.prompts[name] = text
        self.tables[name] = table

    def _missing_and_free(self, text: tuple[int, ...]) -> tuple[int, int]:
        """Return how many new blocks a prompt needs, and how many nobody holds."""
        hits = self._cached_blocks(text)
        own = [self.prompts[other] for other in self.committed]
        twice = {block for block, known in self.texts.items() if any(prompt[: len(known)] == known for prompt in own)}
        return -(-len(text) // self.block_size) - len(hits), self.n_blocks - len(
            self._held_blocks() | set(hits) | twice
        )

    def _check_evicted(self, new: Sequence[int], in_use: set[int]) -> None:
        """New blocks are empty ones first, then those used least recently; of a text the end before the beginning."""
        staying = set(range(self.n_blocks)) - in_use - set(new)
        for block in new:
            text = self.texts.get(block)
            if text is None or not self._sole_holder(block):
                continue
            for other in staying:
                others = self.texts.get(other)
                if others is None:
                    problem = f"block {block}, which {self._describe_text(block)}, went, and block {other} is empty"
                    raise_broken(EMPTY_FIRST, problem)
                if not self._sole_holder(other):
                    continue
                if self.used[other] < self.used[block]:
                    raise_broken(OLDEST, f"block {block} went, and block {other} was used longer ago")
                if others[: len(text)] == text and len(others) > len(text):
                    problem = f"block {block} went, and block {other} holds what follows it"
                    raise_broken(END_FIRST, problem)

    def _sole_holder(self, block: int) -> bool:
        """Whether a text is sure to be found, and in this block: no other one holds it."""
        text = self.texts[block]
        return text in self.sure and sum(held == text for held in self.texts.values()) == 1

    def _commit(self, name: str, _: Sequence[float] | None) -> None:
        text = self.prompts[name]
        size = self.block_size
        self.committed.add(name)
        for place in range(len(text) // size):
            self.texts[self.tables[name][place]] = text[: (place + 1) * size]
            self.sure.add(text[: (place + 1) * size])

    def _table(self, name: str, result: Sequence[float] | None) -> None:
        returned = [int(block) for block in result or ()]
        known = self.tables[name]
        if returned != known:
            raise_broken("a table keeps its blocks", f"the table of {name} is {_shorten(returned)}, and it was {known}")

    def _release(self, name: str, _: Sequence[float] | None) -> None:
        table = self.tables.pop(name)
        self.prompts.pop(name)
        self.committed.discard(name)
        self.used |= {block: self.clock for block in set(table) - self._held_blocks()}

    def _held_blocks(self) -> set[int]:
        return {block for table in self.tables.values() for block in table}

    def _cached_blocks(self, text: tuple[int, ...]) -> list[int]:
        """Blocks that hold the beginning of a text, one for each full block, but for its last token."""
        hits: list[int] = []
        held = self._held_blocks()
        while (end := (len(hits) + 1) * self.block_size) < len(text):
            same = [block for block, known in self.texts.items() if known == text[:end]]
            if not same or text[:end] not in self.sure:
                break
            hits.append(min(same, key=lambda block: (block in held, block)))  # the one that leaves the least room
        return hits

    def _owner(self, block: int, name: str) -> str:
        return next((other for other, table in self.tables.items() if block in table), f"{name} itself")

    def _describe_text(self, block: int) -> str:
        if block not in self.texts:
            return "holds nothing that was computed"
        return f"holds the end of {list(self.texts[block])}"

    def picture(self) -> dict[str, Any]:
        """Return the tables and the texts of the blocks, for a player."""
        return {
            "n_blocks": self.n_blocks,
            "block_size": self.block_size,
            "tables": {name: list(table) for name, table in self.tables.items()},
            "texts": {str(block): list(text) for block, text in self.texts.items()},
            "prompts": {name: list(text) for name, text in self.prompts.items()},
        }


def _name_blocks(blocks: Iterable[int]) -> str:
    numbers = list(blocks)
    return f"block {numbers[0]}" if len(numbers) == 1 else f"the blocks {', '.join(map(str, numbers))}"


# A scheduler ----------------------------------------------------------------------------------------------------------

IN_ORDER = "first come, first served"
IDLE = "no budget is left while there is work"
NEEDLESS = "nobody is preempted without need"


class SchedulerWatch(Watch):
    """What `Scheduler` promises. It knows what each request has computed and generated, in order of arrival."""

    def __init__(self, n_blocks: int, block_size: int, budget: int):
        self.n_blocks, self.block_size, self.budget = n_blocks, block_size, budget
        self.prompt: dict[str, int] = {}  # of those that are not finished
        self.new: dict[str, int] = {}
        self.computed: dict[str, int] = {}
        self.generated: dict[str, int] = {}

    def observe(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Record what a call returned or raised. Raises BrokenPromise."""
        if method == "add":
            name, prompt, new = args
            self._add(name, prompt, new, error)
        elif error or result is None:
            raise_broken("a step is planned", f"it raised {error.__name__ if error else 'an error'}")
        else:
            count = int(result[0])
            if not 0 <= 2 * count < len(result) or min(result) < 0:
                raise ValueError("no plan")
            pairs = result[1 : 1 + 2 * count]
            names = [LETTERS[int(place)] for place in pairs[::2]]
            plan = dict(zip(names, map(int, pairs[1::2]), strict=True))
            self._step(plan, [LETTERS[int(place)] for place in result[1 + 2 * count :]])

    def _add(self, name: str, prompt: int, new: int, error: type[Exception] | None) -> None:
        fits = self._blocks(prompt + new - 1) <= self.n_blocks
        if error and fits:
            raise_broken("who fits is taken", f"{name} was refused with {error.__name__}, though it fits alone")
        if not fits:
            if error is not ValueError:
                problem = f"{name} needs {self._blocks(prompt + new - 1)} blocks in the end, of {self.n_blocks}"
                raise_broken("who never fits is refused", f"{problem}, and {_not_raised(ValueError, error)}")
            return
        self.prompt[name] = prompt
        self.new[name] = new
        self.computed[name] = 0
        self.generated[name] = 0

    def _step(self, plan: Mapping[str, int], preempted: Sequence[str]) -> None:
        self._check_counts(plan, preempted)
        order = list(self.prompt)  # of arrival
        self._check_order(plan, order)
        self._check_preempted(plan, preempted, order)
        # a request with one token to compute is served before longer pieces of others
        waiting = [name for name in order if self._decodes(name) and name not in plan and name not in preempted]
        if waiting and any(count > 1 for count in plan.values()):
            raise_broken("no decode waits for a prefill", f"{waiting[0]} has one token to compute and is not planned")
        # take the step: who is preempted begins again, and what is planned is computed, if the blocks suffice
        for name in preempted:
            self.computed[name] = 0
        for name, count in plan.items():
            self.computed[name] += count
        used = sum(map(self._blocks, self.computed.values()))
        if used > self.n_blocks:
            raise_broken(
                "no more blocks than there are", f"this step needs {_count(used, 'block')}, of {self.n_blocks}"
            )
        self._check_idle(plan, preempted, order, self.n_blocks - used)
        # who has nothing left to compute generates a token, and leaves with the last one
        for name in plan:
            if self._tokens_to_compute(name) == 0:
                self.generated[name] = 1 + self.generated[name]
                if self.generated[name] == self.new[name]:
                    for record in (self.prompt, self.new, self.computed, self.generated):
                        del record[name]

    def _check_counts(self, plan: Mapping[str, int], preempted: Sequence[str]) -> None:
        """Hold a plan to requests that are there, to the tokens that they have left, and to the budget."""
        unknown = [name for name in (*plan, *preempted) if name not in self.prompt]
        if unknown:
            raise_broken("who is finished is not planned", f"{unknown[0]} is not there, or finished")
        for name, count in plan.items():
            if not 1 <= count <= self._tokens_to_compute(name):
                problem = f"{name} is to compute {_count(count, 'token')}, and has {self._tokens_to_compute(name)} left"
                raise_broken("no more than is left to compute", problem)
        if sum(plan.values()) > self.budget:
            raise_broken(
                "the budget is kept",
                f"{_count(sum(plan.values()), 'token')} in the plan, and the budget is {self.budget}",
            )

    def _check_order(self, plan: Mapping[str, int], order: Sequence[str]) -> None:
        """Hold a plan to the order of arrival; only a decode may pass a prefill that came earlier."""
        if order and not plan:
            raise_broken("no starvation", f"nothing is planned, and {order[0]} waits")
        for name in plan:
            for earlier in order[: order.index(name)]:
                if earlier not in plan and (not self._decodes(name) or self._decodes(earlier)):
                    raise_broken(IN_ORDER, f"{name} is planned, and {earlier}, which came earlier, is not")

    def _check_preempted(self, plan: Mapping[str, int], preempted: Sequence[str], order: Sequence[str]) -> None:
        if not preempted:
            return
        for name in preempted:
            if name in plan or not self.computed[name] or list(preempted).count(name) > 1:
                raise_broken(
                    "who is preempted held blocks, and waits", f"{name} is preempted, and it is planned or held none"
                )
        holding = [name for name in order if self.computed[name] and name not in preempted]
        first = min(preempted, key=order.index)
        for name in holding:
            if order.index(name) > order.index(first):
                raise_broken(
                    "who came last is preempted first", f"{first} is preempted, and {name} came later and stays"
                )
        staying = [name for name in order if (self.computed[name] or name in plan) and name not in preempted]
        after = [self.computed[name] + max(plan.get(name, 0), self._decodes(name)) for name in (*staying, first)]
        if sum(map(self._blocks, after)) <= self.n_blocks:
            raise_broken(NEEDLESS, f"{first} is preempted, and there are blocks enough for it and all that is planned")

    def _check_idle(self, plan: Mapping[str, int], preempted: Sequence[str], order: Sequence[str], free: int) -> None:
        """Let budget remain only if nobody can use it; `computed` is already that after the step."""
        if sum(plan.values()) == self.budget:
            return
        for name in order:
            if name in preempted:
                return  # nobody overtakes it
            if name in plan and self._tokens_to_compute(name) == 0:
                continue
            room = self._blocks(self.computed[name]) * self.block_size - self.computed[name]
            if room or free:
                raise_broken(
                    IDLE,
                    f"{_count(sum(plan.values()), 'token')} of {self.budget} in the plan, and {name} could use more",
                )
            if name not in plan:
                return

    def _decodes(self, name: str) -> bool:
        """Whether it holds blocks and has one token left to compute."""
        return self.computed[name] > 0 and self._tokens_to_compute(name) == 1

    def _tokens_to_compute(self, name: str) -> int:
        text = self.prompt[name] + self.generated[name]
        return text - self.computed[name]

    def _blocks(self, tokens: int) -> int:
        return math.ceil(tokens / self.block_size)

    def picture(self) -> dict[str, Any]:
        """Return what is computed and generated, for a player."""
        requests = {
            name: {
                "prompt": self.prompt[name],
                "new": self.new[name],
                "computed": self.computed[name],
                "generated": self.generated[name],
            }
            for name in self.prompt
        }
        sizes = {"n_blocks": self.n_blocks, "block_size": self.block_size, "budget": self.budget}
        return {**sizes, "requests": requests}


# A batch that refills -------------------------------------------------------------------------------------------------


class BatchWatch(Watch):
    """What `BatchScheduler` promises. It knows who waits and who runs, and what each has computed and generated."""

    def __init__(self, n_slots: int, n_blocks: int, block_size: int):
        self.n_slots, self.n_blocks, self.block_size = n_slots, n_blocks, block_size
        self.waiting: dict[str, tuple[int, int]] = {}  # name -> prompt, new
        self.running: dict[str, list[int]] = {}  # name -> prompt, new, computed, generated
        self.is_over = False

    def observe(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Record what a call returned or raised. Raises BrokenPromise."""
        if self.is_over:
            return  # nothing is promised any more
        if method == "add":
            name, prompt, new = args
            self._add(name, prompt, new, error)
            return
        after = sum(self._blocks(computed + 1) for _, _, computed, _ in self.running.values())
        if after > self.n_blocks:
            if error is not MemoryError:
                problem = f"those that run need {_count(after, 'block')} in this step, of {self.n_blocks}"
                raise_broken(NO_ROOM, f"{problem}, and {_not_raised(MemoryError, error)}")
            self.is_over = True
            return
        if error or result is None:
            raise_broken(VALID_CALL, f"it raised {error.__name__ if error else 'an error'}, though the call was valid")
        names = [LETTERS[int(place)] for place in result[::2]]
        self._step(dict(zip(names, map(int, result[1::2]), strict=True)))

    def _add(self, name: str, prompt: int, new: int, error: type[Exception] | None) -> None:
        needed = self._blocks(prompt + new - 1)
        if error and needed <= self.n_blocks:
            raise_broken("who fits is taken", f"{name} was refused with {error.__name__}, though it fits alone")
        if needed > self.n_blocks and error is not ValueError:
            problem = f"{name} needs {needed} blocks in the end, of {self.n_blocks}"
            raise_broken("who never fits is refused", f"{problem}, and {_not_raised(ValueError, error)}")
        if not error:
            self.waiting[name] = prompt, new

    def _step(self, plan: Mapping[str, int]) -> None:
        unknown = [name for name in plan if name not in self.running and name not in self.waiting]
        if unknown:
            raise_broken("who is finished is not planned", f"{unknown[0]} is not there, or finished")
        # who runs computes one token, and takes a block where its last one is full
        for name, state in self.running.items():
            if plan.get(name) != 1:
                raise_broken("who runs computes one token", f"{name} runs, and {_planned(plan, name)}")
            state[2] += 1
        # what is left of slots and blocks lets others in, in order of arrival, as far as they fit
        joined = [name for name in plan if name in self.waiting]
        for name, (prompt, new) in list(self.waiting.items()):
            free = self.n_blocks - sum(self._blocks(computed) for _, _, computed, _ in self.running.values())
            slots = self.n_slots - len(self.running)
            fits = slots > 0 and self._blocks(prompt) <= free
            if not fits:
                self._check_nobody_else(name, prompt, joined, slots, free)
                break
            if name not in plan:
                overtaken = [other for other in joined if other not in self.running]
                if overtaken:
                    raise_broken(IN_ORDER, f"{overtaken[0]} is planned, and {name}, which came earlier, is not")
                raise_broken(
                    "who fits comes in", f"{name} waits, though a slot is free, and {_blocks(free)} free for its prompt"
                )
            if plan[name] != prompt:
                raise_broken(
                    "a prompt is computed at once", f"{name} has a prompt of {prompt}, and {_planned(plan, name)}"
                )
            del self.waiting[name]
            self.running[name] = [prompt, new, prompt, 0]
        # each of them has generated a token, and leaves with its last one
        for name in plan:
            self.running[name][3] += 1
        self.running = {name: state for name, state in self.running.items() if state[3] < state[1]}

    def _check_nobody_else(self, name: str, prompt: int, joined: Sequence[str], slots: int, free: int) -> None:
        """Break a promise if anybody came in from here on: the first that does not fit ends the row."""
        later = [other for other in joined if other not in self.running]
        if not later:
            return
        if later[0] != name:
            raise_broken(IN_ORDER, f"{later[0]} is planned, and {name}, which came earlier, is not")
        if slots <= 0:
            raise_broken(
                "no more than there are slots", f"{name} comes in, and {_count(self.n_slots, 'slot')} in all are taken"
            )
        needed = _count(self._blocks(prompt), "block")
        raise_broken("no more blocks than there are", f"{name} comes in with {needed}, and {_blocks(free)} free")

    def _blocks(self, tokens: int) -> int:
        return math.ceil(tokens / self.block_size)

    def picture(self) -> dict[str, Any]:
        """Return what is computed and generated, for a player."""
        names = ("prompt", "new", "computed", "generated")
        requests = {name: dict(zip(names, state, strict=True)) for name, state in self.running.items()}
        requests |= {name: dict(zip(names, (*sizes, 0, 0), strict=True)) for name, sizes in self.waiting.items()}
        return {
            "n_blocks": self.n_blocks, "block_size": self.block_size, "n_slots": self.n_slots, "requests": requests,
        }  # fmt: skip


def _planned(plan: Mapping[str, int], name: str) -> str:
    return f"the plan gives it {_count(plan[name], 'token')}" if name in plan else "it is not in the plan"


# A window with drafts -------------------------------------------------------------------------------------------------


class WindowWatch(Watch):
    """What a sliding window promises that takes drafts and lets go of those that are rejected. It knows all tokens."""

    def __init__(self, window: int):
        self.window = window
        self.tokens: list[int] = []
        self.drafted: list[int] = []

    def observe(self, method: str, args: tuple, result: Sequence[float] | None, error: type[Exception] | None) -> None:
        """Record what a call returned or raised. Raises BrokenPromise."""
        if why := self._not_now(method, args):
            if error is not ValueError:
                raise_broken("what cannot be is refused", f"{why}, and {_not_raised(ValueError, error)}")
            return
        if error:
            _breaks_by_error(error)
        if method == "append":
            self.tokens.append(args[0])
        elif method == "draft":
            self.drafted = list(args[0])
        elif method == "keep":
            self.tokens += self.drafted[: args[0]]
            self.drafted = []
        else:
            returned = [int(token) for token in result or ()]
            visible = [*self.tokens, *self.drafted][-self.window :]
            if returned != visible:
                name = (
                    "the last tokens in their order" if len(returned) == len(visible) else "as many tokens as there are"
                )
                raise_broken(name, f"{_shorten(returned)} is visible, and not {_shorten(visible)}")

    def _not_now(self, method: str, args: tuple) -> str:
        """Return why a call has to be refused; "" if it must not be."""
        if method in ("append", "draft") and self.drafted:
            return "a draft is pending"
        if method == "keep" and not self.drafted:
            return "no draft is pending"
        if method == "keep" and not 0 <= args[0] <= len(self.drafted):
            return f"the draft has {_count(len(self.drafted), 'token')}"
        return ""
