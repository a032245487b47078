"""An engine that serves many requests on one decoder: token for token what each of them gets alone.

Keys and values of all requests lie in one store of blocks a layer. The `Scheduler` says what each request computes in a
step; then one pass of the model computes it for all of them, each row reading and writing through its block table.
Sources: Yu et al. 2022 (Orca); Kwon et al. 2023 (PagedAttention).
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from course_utils.attention.blocks import BlockPool
from course_utils.attention.cache import Cache, PagedCache
from course_utils.attention.multihead import MultiHeadAttention
from course_utils.attention.shapes import whole
from course_utils.models.decoder import Decoder
from course_utils.serving.events import Event
from course_utils.serving.prefixes import PrefixCache
from course_utils.serving.scheduler import RequestState, Scheduler
from course_utils.serving.traffic import Request


class TableCache(PagedCache):
    """One layer of an engine's store for one step: row b is the request that tables[b] belongs to.

    keys and values are (n_blocks, h_kv, block_size, d_head), and written to. tables[b] lists the blocks of row b, with
    room for what the step adds to the lengths[b] tokens in them. Who holds which block is not decided here.
    """

    def __init__(
        self, keys: Tensor, values: Tensor, tables: list[list[int]], lengths: list[int], window: int | None
    ) -> None:
        Cache.__init__(self, len(tables), keys.shape[1], keys.shape[3], keys.dtype, keys.device)  # no pool of its own
        self.block_size = keys.shape[2]
        self.window = window
        self._keys = keys
        self._values = values
        self._block_tables = tables
        self._lengths = torch.tensor(lengths)

    def _check_room(self, added: Tensor) -> None:
        """The scheduler saw to it."""

    def _make_room(self, added: Tensor) -> None:
        """The scheduler did."""


class Engine:
    """Serves requests on the model, greedily, with n_blocks blocks of block_size tokens and `budget` tokens a step.

    prefix_cache shares full blocks between requests that begin alike. The other options are the scheduler's: n_slots
    requests side by side at most, prompts in chunks or whole, static or continuous batching, preemption by swapping or
    by recomputation. Raises ValueError or TypeError for sizes that do not fit.
    """

    def __init__(
        self,
        model: Decoder,
        n_blocks: int,
        block_size: int,
        budget: int,
        prefix_cache: bool = True,
        n_slots: int | None = None,
        chunked: bool = True,
        static: bool = False,
        swap: bool = False,
    ) -> None:
        self.model = model
        self.prefixes = PrefixCache(n_blocks, block_size) if prefix_cache else None
        self.blocks: PrefixCache | BlockPool = self.prefixes or BlockPool(n_blocks)
        self.scheduler = Scheduler(
            n_blocks, block_size, budget, n_slots, chunked, static, swap, blocks=self.blocks, cached=self._share_prefix
        )
        layers = [cast(MultiHeadAttention, block.attention) for block in model.blocks]
        like = model.embedding.weight
        sizes = [(2, n_blocks, layer.n_kv_heads, block_size, layer.d_head) for layer in layers]
        self._store = [like.new_zeros(size) for size in sizes]  # keys, values of each layer
        self._prompts: dict[str, list[int]] = {}
        self._replies: dict[str, list[int]] = {}
        self._swapped: dict[str, list[Tensor]] = {}  # blocks of a request that was sent away, (2, blocks, …) a layer
        self.events: list[Event] = []
        self.n_computed = 0  # tokens that went through the model, those of a recomputation again

    @property
    def n_held(self) -> int:
        """Blocks that some request holds."""
        return self.blocks.n_blocks - self.blocks.n_free

    def submit(self, name: str, tokens: Sequence[int] | Tensor, n_new: int) -> None:
        """A request arrives: it wants n_new tokens after `tokens`, at least one number in the vocabulary.

        Raises ValueError for no tokens, unknown ones, a name that was used, and a request that the pool cannot hold.
        """
        prompt_tokens = tokens.tolist() if isinstance(tokens, Tensor) else tokens
        prompt = [whole("a token", token, least=0) for token in prompt_tokens]
        words = self.model.embedding.num_embeddings
        if not prompt or max(prompt) >= words:
            raise ValueError(f"tokens are {prompt}: give at least one, each from 0 to {words - 1}")
        self.scheduler.add(Request(name, self.scheduler.step, len(prompt), n_new))
        self._prompts[name] = prompt
        self._replies[name] = []
        self._log(name, "arrived", len(prompt))

    def run(self) -> dict[str, list[int]]:
        """Step until every request has its tokens: returns these by request, without the prompts."""
        while self.scheduler.unfinished:
            self.step()
        return {name: list(reply) for name, reply in self._replies.items()}

    @torch.no_grad()
    def step(self) -> list[str]:
        """One pass of the model for all requests that the scheduler picks: returns who got a token."""
        before = [(each, each.computed, list(each.table)) for each in self.scheduler.running]
        planned = self.scheduler.plan()
        self._follow(before)
        if not planned:
            return self.scheduler.advance(planned)
        running = {each.request.name: each for each in self.scheduler.running}
        rows = [running[name] for name, _ in planned]
        newest = self._compute(rows, [n for _, n in planned])
        self.n_computed += sum(n for _, n in planned)
        for each, (name, n), token in zip(rows, planned, newest, strict=True):
            if not each.decodes:
                self._log(name, "prefill", n)
            if self.prefixes:
                self.prefixes.keep(self._tokens(name)[: each.computed + n], each.table)
            if n == each.remaining:
                self._replies[name].append(token)
                self._log(name, "token")
                if len(self._replies[name]) == each.request.new:
                    self._log(name, "finished", each.request.new)
        return self.scheduler.advance(planned)

    def _compute(self, rows: list[RequestState], counts: list[int]) -> list[int]:
        """The likeliest token after the next counts[b] tokens of each row b, whose keys and values are stored."""
        tokens = torch.zeros(len(rows), max(counts), dtype=torch.int64)  # (B, T), padded on the right
        for b, (each, n) in enumerate(zip(rows, counts, strict=True)):
            tokens[b, :n] = torch.tensor(self._tokens(each.request.name)[each.computed : each.computed + n])
        tables = [each.table for each in rows]
        lengths = [each.computed for each in rows]
        caches = [TableCache(store[0], store[1], tables, lengths, self.model.window) for store in self._store]
        logits = self.model(tokens.to(self.model.embedding.weight.device), caches, counts)  # (B, T, vocabulary)
        return logits[torch.arange(len(rows)), torch.tensor(counts) - 1].argmax(dim=-1).tolist()

    def _tokens(self, name: str) -> list[int]:
        return self._prompts[name] + self._replies[name]

    def _share_prefix(self, name: str) -> list[int]:
        """The blocks that hold the beginning of a request's tokens already, from now on held for it too."""
        cached_blocks = self.prefixes.lookup(self._tokens(name)) if self.prefixes else []
        for block in cached_blocks:
            self.blocks.share(block)
        return cached_blocks

    def _follow(self, before: list[tuple[RequestState, int, list[int]]]) -> None:
        """Log who was sent away or let in by the plan, and move the blocks of those that are swapped.

        The blocks that the plan gave away are as they were until the pass writes to them: copies go out first.
        """
        running = self.scheduler.running
        for each, computed, table in before:
            if each not in running:
                self._log(each.request.name, "preempted", computed)
                if self.scheduler.swap and computed:
                    self._swapped[each.request.name] = [store[:, table] for store in self._store]  # copies
        known = [each for each, _, _ in before]
        for each in running:
            if each not in known:
                self._log(each.request.name, "admitted", each.computed)
                for store, blocks in zip(self._store, self._swapped.pop(each.request.name, ()), strict=False):
                    store[:, each.table[: blocks.shape[1]]] = blocks

    def _log(self, name: str, kind: str, n: int = 1) -> None:
        self.events.append(Event(self.scheduler.step, name, kind, n))
