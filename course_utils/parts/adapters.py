"""Adapters that give the answer to an exercise the signature with which the real model calls it.

Each adapter takes the answer and returns a function for `MultiHeadAttention.own` or `Real.writes`. The model calls
attention for one text as attend(q, k, v, mask, dropout, scale): q is (1, h, n, d), k and v are (1, h_kv, m, d), and the
queries belong to the last n of m tokens. attend returns (output, weights): (1, h, n, d) and None. If an answer returns
another shape than its exercise asks for, the adapter raises ValueError, so that no broadcasting hides the mistake.
The adapters of answers that a model can be trained with (`Slot.trains`) take batches, too, and let gradients through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.attention.cache import Cache, ContiguousCache
from course_utils.attention.masks import causal, sink_window, sliding_window
from course_utils.attention.multihead import grouped_attention
from course_utils.models.decoder import Block, Decoder, GatedFeedForward, new_caches

BLOCK = 4  # tokens per block, and keys per tile; other text lengths than multiples of it end with a partly filled block
QUERIES = 6  # queries per tile; unequal to BLOCK, so that tiles on the diagonal differ from each other
MAX_STEPS = 1000  # steps of a scheduler; three texts of 30 tokens take about 20
WINDOW = 8  # tokens in a ring
SINKS, LATEST = 2, 6  # keys that a mask keeps: the first and the latest
Attend = Callable[..., tuple[Tensor, None]]


def softmax_of_rows(answer: Callable) -> Attend:
    """Adapt softmax_row(row), lists of floats: it gets the scores of one query and head, without later keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        scores = _scores(q, k)
        v = _per_query_head(v, q)
        weights = torch.zeros_like(scores)
        for head, query, keys_up_to in _heads_and_queries(q, k):
            row = answer(scores[0, head, query, :keys_up_to].tolist())
            weights[0, head, query, :keys_up_to] = _fitting(row, (keys_up_to,), q)
        return weights @ v, None

    return attend


def softmax_of_arrays(answer: Callable) -> Attend:
    """Adapt softmax(x, axis), NumPy: it gets the scores (1, h, n, m) of all heads, −∞ for later keys, and no axis."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        scores = _scores(q, k).masked_fill(~causal(q.shape[2], k.shape[2]), -torch.inf)
        weights = answer(scores.numpy())
        return _fitting(weights, scores.shape, q) @ _per_query_head(v, q), None

    return attend


def softmax_under_mask(answer: Callable) -> Attend:
    """Adapt masked_softmax(scores, mask), tensors: it gets the scores (B, h, n, m) of all heads, and a mask (n, m)."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *_: object) -> tuple[Tensor, None]:
        scores = _scores(q, k)
        weights = answer(scores, _of_one_text(mask, q, k))
        return _fitting(weights, scores.shape, q) @ _per_query_head(v, q), None

    return attend


def attention_of_lists(answer: Callable) -> Attend:
    """Adapt attention_lists(q, k, v), lists of lists: it gets one query and head at a time, without later keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        keys, values = (_per_query_head(x, q)[0].tolist() for x in (k, v))
        output = torch.empty_like(q)
        for head, query, keys_up_to in _heads_and_queries(q, k):
            result, _weights = answer([q[0, head, query].tolist()], keys[head][:keys_up_to], values[head][:keys_up_to])
            output[0, head, query] = _fitting(result, (1, v.shape[-1]), q)[0]
        return output, None

    return attend


def attention_of_arrays(answer: Callable) -> Attend:
    """Adapt attention_batched(q, k, v), NumPy: it gets one query of all heads at a time, without later keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        rows, keys, values = (x.numpy() for x in (q, _per_query_head(k, q), _per_query_head(v, q)))
        output = torch.empty_like(q)
        for query, keys_up_to in _keys_up_to(q, k):
            result, _weights = answer(rows[:, :, query : query + 1], keys[:, :, :keys_up_to], values[:, :, :keys_up_to])
            output[:, :, query : query + 1] = _fitting(result, (*q.shape[:2], 1, v.shape[-1]), q)
        return output, None

    return attend


def attention_of_groups(answer: Callable) -> Attend:
    """Adapt grouped_query_attention(q, k, v, mask), tensors: it gets the model's own tensors, and its mask (n, m)."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *_: object) -> tuple[Tensor, None]:
        return _fitting(answer(q, k, v, _of_one_text(mask, q, k)), q.shape, q), None

    return attend


def attention_in_steps(answer: Callable) -> Attend:
    """Adapt cached_step(q_t, k_t, v_t, cache), tensors: it gets all tokens of the text, one after the other."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        k = _per_query_head(k, q)
        v = _per_query_head(v, q)
        n, m = q.shape[2], k.shape[2]
        queries = torch.cat([torch.zeros_like(k[:, :, : m - n]), q], dim=2)  # earlier tokens' outputs are not used
        cache = None
        outputs = []
        for t in range(m):
            here = slice(t, t + 1)
            output, cache = answer(queries[:, :, here], k[:, :, here], v[:, :, here], cache)
            outputs.append(_fitting(output, q[:, :, :1].shape, q))
        return torch.cat(outputs[m - n :], dim=2), None

    return attend


def attention_over_a_ring(answer: Callable) -> Attend:
    """Adapt RingCache(window): each key head has a ring of WINDOW tokens, and each query sees what its ring holds."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        rings = [answer(WINDOW) for _ in range(k.shape[1])]
        return _over_caches(q, k, v, [(ring.append, ring.view) for ring in rings], WINDOW), None

    return attend


def attention_over_a_window(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    """Attend to the last WINDOW tokens: the reference for answers that use a ring."""
    return grouped_attention(q, k, v, sliding_window(q.shape[2], WINDOW, k.shape[2]))


def attention_over_pages(answer: Callable) -> Attend:
    """Adapt PagedCache(n_blocks, block_size, d): the key heads of a layer share one pool, which has just enough room.

    First, another text of the same length is stored in the pool and freed.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        heads, m, d = k.shape[1:]
        pool = answer(heads * _blocks(m), BLOCK, d)
        for t in range(m):
            pool.append("before", v[0, 0, t], k[0, 0, t])
        pool.free("before")
        ways = [
            (lambda k, v, head=head: pool.append(head, k, v), lambda head=head: pool.gather(head))
            for head in range(heads)
        ]
        return _over_caches(q, k, v, ways, m), None

    return attend


def attention_through_a_table(answer: Callable) -> Attend:
    """Adapt paged_attention(q, keys, values, table, length), NumPy: it gets one query and head at a time.

    The blocks lie in the pool from the last to the first, and places that no token fills are NaN.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        heads, m, d = k.shape[1:]
        blocks = _blocks(m) + 1  # and one block of another text
        pools = np.full((2, heads, blocks * BLOCK, d), np.nan, np.float32)
        pools[:, :, :m] = torch.stack([k[0], v[0]]).numpy()
        pools = pools.reshape(2, heads, blocks, BLOCK, d)[:, :, ::-1]
        table = [blocks - 1 - place for place in range(blocks - 1)]
        output = torch.empty_like(q)
        group = q.shape[1] // heads
        for head, query, keys_up_to in _heads_and_queries(q, k):
            keys, values = pools[:, head // group]
            result = answer(q[0, head, query].numpy(), keys, values, np.array(table), keys_up_to)
            output[0, head, query] = _fitting(result, (d,), q)
        return output, None

    return attend


def attention_in_tiles(answer: Callable, block_q: int = QUERIES, block_k: int = BLOCK) -> Attend:
    """Adapt tiled_attention(q, k, v, block_q, block_k, causal), tensors: it gets one head at a time."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
        sharing = q.shape[1] // k.shape[1]  # heads of queries for each head of keys
        output = torch.empty_like(q)
        for head in range(q.shape[1]):
            keys, values = k[0, head // sharing], v[0, head // sharing]
            result, _lse = answer(q[0, head], keys, values, block_q, block_k, causal=True)
            output[0, head] = _fitting(result, q.shape[2:], q)
        return output, None

    return attend


def mask(answer: Callable) -> Callable[[int, int], Tensor]:
    """Adapt causal_mask(n), booleans: it makes a mask for all m tokens, and the model gets the rows of the last n."""
    return lambda n, m: _fitting(answer(m), (m, m), torch.empty((), dtype=torch.bool))[m - n :]


def mask_of_sinks(answer: Callable) -> Callable[[int, int], Tensor]:
    """Adapt sink_window_mask(queries, keys, window, sinks), booleans: each layer keeps SINKS first and LATEST keys."""
    return lambda n, m: _fitting(answer(n, m, LATEST, SINKS), (n, m), torch.empty((), dtype=torch.bool))


def window_with_sinks(n: int, m: int) -> Tensor:
    """Return the mask of a window of LATEST keys and SINKS first ones: the reference for answers that make one."""
    return sink_window(n, LATEST, SINKS, m)


def split(answer: Callable) -> Callable[[Tensor, int], Tensor]:
    """Adapt split_heads(x, n_heads), tensors: (1, T, h · d) -> (1, h, T, d)."""

    def split_heads(x: Tensor, n_heads: int) -> Tensor:
        return _fitting(answer(x, n_heads), (len(x), n_heads, x.shape[1], x.shape[2] // n_heads), x)

    return split_heads


def merge(answer: Callable) -> Callable[[Tensor], Tensor]:
    """Adapt merge_heads(x), tensors: (1, h, T, d) -> (1, T, h · d)."""
    return lambda x: _fitting(answer(x), (len(x), x.shape[2], x.shape[1] * x.shape[3]), x)


def rotate(answer: Callable) -> Callable[[Tensor, Tensor, float], Tensor]:
    """Adapt rotate(x, positions, base), tensors: it gets queries and keys of one text, (1, h + h_kv, T, d), at once."""

    def turn(x: Tensor, positions: Tensor, base: float) -> Tensor:
        return _fitting(answer(x, positions.reshape(-1), base), x.shape, x)

    return turn


def block(answer: Callable) -> Callable[[Block, Tensor, dict[str, Any]], tuple[Tensor, Tensor]]:
    """Adapt Block(attention, d_model, d_ff), a module: it gets the attention and the weights of a block of the model.

    The adapted function raises ValueError for a block without a gated feed-forward network.
    """
    made = WeakKeyDictionary[Block, tuple[_Attention, Any]]()

    def run(block: Block, x: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        network = block.feed_forward
        if not isinstance(network, GatedFeedForward):
            raise ValueError("the block has no gated feed-forward network, which the exercise asks for")
        if block not in made:
            with torch.random.fork_rng(devices=[]):  # the answer draws weights, which the model's own replace
                attention = _Attention()
                made[block] = attention, answer(attention, x.shape[-1], network.gate.out_features)
        attention, own = made[block]
        attention.call = partial(block.attention, **(options | {"return_weights": True}))
        own.norm_1.weight, own.norm_2.weight = block.attention_norm.weight, block.feed_forward_norm.weight
        for name in ("gate", "up", "down"):
            getattr(own, name).weight = getattr(network, name).weight
        return _fitting(own(x, options["mask"]), x.shape, x), attention.weights

    return run


class _Attention(nn.Module):
    """The attention of a block, as day 4 calls it: attention(x, mask) gives a tensor. It keeps the weights."""

    call: Callable[..., tuple[Tensor, Tensor]]
    weights: Tensor

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        output, self.weights = self.call(x, mask=mask)
        return output


def writes(answer: Callable) -> Callable[[Decoder, Sequence[int], int], list[int]]:
    """Adapt generate_cached(model, prompt, steps), tensors: the answer chooses the tokens and keeps the cache."""

    def write(model: Decoder, tokens: Sequence[int], most: int) -> list[int]:
        prompt = torch.tensor([list(tokens)])
        text = answer(_AsDayFive(model), prompt, most)
        return _fitting(text, (1, len(tokens) + most), prompt)[0, len(tokens) :].tolist()

    return write


def serves(answer: Callable) -> Callable[[Decoder, Sequence[int], int], list[int]]:
    """Adapt Scheduler(n_blocks, block_size, budget): the answer plans when the tokens of three requests are computed.

    The requests are the text, the text without its first token, and the text without its last. The pool has room for
    one and a half texts, so that the scheduler must preempt, and the budget of a step is half a text plus BLOCK tokens.
    The adapted function returns the tokens that the model writes after the whole text. It raises ValueError if a plan
    computes no tokens, more than the budget, or more than a request has left, if the requests hold more blocks than
    the pool has, and if requests are left after MAX_STEPS.
    """

    def write(model: Decoder, tokens: Sequence[int], most: int) -> list[int]:
        longest = len(tokens) + most
        budget = len(tokens) // 2 + BLOCK
        n_blocks = _blocks(longest) + _blocks(longest) // 2
        scheduler = answer(n_blocks, BLOCK, budget)
        requests = _add_three(scheduler, model, tokens, most)

        for _ in range(MAX_STEPS):
            if requests.are_done():
                return requests.texts["whole"][len(tokens) :]
            plan, preempted = scheduler.step()
            # A preempted request loses its cache, and its tokens have to be computed again.
            for name in preempted:
                requests.caches.pop(name, None)
            if not 0 < sum(plan.values()) <= budget:
                raise ValueError(f"{sum(plan.values())} tokens are planned, of 1 to {budget} in a step")
            for name, count in plan.items():
                requests.compute(name, count)
            # Blocks are counted while the requests that end with this step still hold theirs.
            taken = requests.count_blocks()
            if taken > n_blocks:
                raise ValueError(f"{taken} blocks are held, and there are {n_blocks}")
            requests.release_finished()
        if requests.are_done():
            return requests.texts["whole"][len(tokens) :]
        raise ValueError(f"requests are left after {MAX_STEPS} steps")

    return write


def serves_in_slots(answer: Callable) -> Callable[[Decoder, Sequence[int], int], list[int]]:
    """Adapt BatchScheduler(n_slots, n_blocks, block_size): the answer plans three requests in two slots.

    The requests are those of `serves`, and the pool has room for all three texts, so that only slots can be lacking.
    The adapted function returns the tokens that the model writes after the whole text. It raises ValueError if a plan
    computes more than a request has left, if more requests run than there are slots, and if requests are left after
    MAX_STEPS.
    """

    def write(model: Decoder, tokens: Sequence[int], most: int) -> list[int]:
        scheduler = answer(2, 3 * _blocks(len(tokens) + most), BLOCK)
        requests = _add_three(scheduler, model, tokens, most)
        for _ in range(MAX_STEPS):
            if requests.are_done():
                return requests.texts["whole"][len(tokens) :]
            for name, count in scheduler.step().items():
                requests.compute(name, count)
            if len(requests.caches) > 2:
                raise ValueError(f"{len(requests.caches)} requests run, and there are 2 slots")
            requests.release_finished()
        raise ValueError(f"requests are left after {MAX_STEPS} steps")

    return write


def _add_three(scheduler: Any, model: Decoder, tokens: Sequence[int], most: int) -> _Requests:
    """Add a text, the text without its first token, and the text without its last; those of no tokens are left out."""
    prompts = {"whole": list(tokens), "headless": list(tokens[1:]), "short": list(tokens[:-1])}
    requests = _Requests(model, {name: prompt for name, prompt in prompts.items() if prompt}, most, len(tokens) + most)
    for name, text in requests.texts.items():
        scheduler.add(name, len(text), most)
    return requests


class _Requests:
    """Requests whose tokens the real model computes as a scheduler plans.

    Attributes:
        texts: the tokens of each request so far, by name.
        caches: those of each layer, for the requests that hold some.
    """

    def __init__(self, model: Decoder, prompts: dict[str, list[int]], most: int, longest: int):
        self.model = model
        self.texts = prompts
        self.ends = {name: len(prompt) + most for name, prompt in prompts.items()}
        self.longest = longest
        self.caches: dict[str, list[Cache]] = {}

    def are_done(self) -> bool:
        """Return whether every request has all its tokens."""
        return not any(self._is_open(name) for name in self.texts)

    def compute(self, name: str, count: int) -> None:
        """Compute the next `count` tokens of a request; after the last known one the model writes another."""
        caches = self.caches.setdefault(name, new_caches(self.model, ContiguousCache, 1, capacity=self.longest))
        done = int(caches[0].lengths[0])
        text = self.texts[name]
        remaining = len(text) - done if self._is_open(name) else 0
        if not 0 < count <= remaining:
            raise ValueError(f"{name} has {remaining} tokens to compute, and {count} are planned")
        logits = self.model(torch.tensor([text[done : done + count]]), caches)
        if done + count == len(text):
            text.append(int(logits[0, -1].argmax()))

    def count_blocks(self) -> int:
        """Return the number of blocks that all requests hold."""
        return sum(_blocks(int(caches[0].lengths[0])) for caches in self.caches.values())

    def release_finished(self) -> None:
        """Drop the caches of the requests that have all their tokens."""
        self.caches = {name: caches for name, caches in self.caches.items() if self._is_open(name)}

    def _is_open(self, name: str) -> bool:
        return len(self.texts[name]) < self.ends[name]


def _blocks(tokens: int) -> int:
    """Return the number of blocks that this many tokens take."""
    return -(-tokens // BLOCK)


class _AsDayFive:
    """A decoder with the signature of day 5: logits, cache = model(tokens, positions, cache)."""

    def __init__(self, model: Decoder) -> None:
        self.model = model
        self.passed = 0  # tokens

    @torch.no_grad()
    def __call__(self, tokens: Tensor, positions: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        self.passed += tokens.shape[1]
        layers = new_caches(self.model, _Grown, len(tokens))
        for layer, held in zip(layers, cache or [None] * len(layers), strict=True):
            layer.follow(held, torch.as_tensor(positions))
        logits = self.model(tokens, layers)
        return logits, tuple(layer.held for layer in layers)


class _Grown(Cache):
    """A cache that grows by copying, so that a text can have two continuations; the caller sets the positions."""

    held: tuple[Tensor, Tensor, Tensor] | None  # keys and values (B, h_kv, m, d), their positions (m,)

    def follow(self, held: tuple[Tensor, Tensor, Tensor] | None, positions: Tensor) -> None:
        self.held, self._next = held, positions
        self._lengths[:] = 0 if held is None else held[0].shape[2]

    def positions(self, t: int) -> Tensor:
        return self._next.expand(self.batch, -1)

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        positions = self._next
        if self.held is not None:
            keys, values, before = self.held
            k = torch.cat((keys, k), dim=2)
            v = torch.cat((values, v), dim=2)
            positions = torch.cat((before, positions))
        self.held = k, v, positions
        return k, v, positions.expand(self.batch, -1)


def _over_caches(q: Tensor, k: Tensor, v: Tensor, caches: Sequence[tuple[Callable, Callable]], most: int) -> Tensor:
    """Return attention over caches of at most `most` tokens, one pair (append, view) for each key head."""
    n, m, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    output = torch.empty_like(q)
    for t in range(m):
        for head, (append, view) in enumerate(caches):
            append(k[0, head, t].clone(), v[0, head, t].clone())
            if t < m - n:
                continue
            keys, values = (_fitting(x, (min(t + 1, most), q.shape[-1]), q) for x in view())
            queries = q[0, head * group : (head + 1) * group, t - m + n]  # (group, d)
            weights = torch.softmax(queries @ keys.T / q.shape[-1] ** 0.5, dim=-1)
            output[0, head * group : (head + 1) * group, t - m + n] = weights @ values
    return output


def _per_query_head(x: Tensor, q: Tensor) -> Tensor:
    """Return keys or values with one head for each query head, (1, h, m, d)."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def _scores(q: Tensor, k: Tensor) -> Tensor:
    """Return the scaled scores of all heads, (1, h, n, m), later keys included."""
    return q @ _per_query_head(k, q).mT / q.shape[-1] ** 0.5


def _of_one_text(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor:
    """Return the mask (n, m) with which the model calls its attention; without one, the causal mask."""
    n, m = q.shape[2], k.shape[2]
    return causal(n, m) if mask is None else mask.expand(1, 1, n, m)[0, 0]


def _keys_up_to(q: Tensor, k: Tensor) -> Iterator[tuple[int, int]]:
    """Return the index of each query, with the number of keys up to the query's own position."""
    n, m = q.shape[2], k.shape[2]
    return ((query, m - n + query + 1) for query in range(n))


def _heads_and_queries(q: Tensor, k: Tensor) -> Iterator[tuple[int, int, int]]:
    """Return each head and query index, with the number of keys up to the query's own position."""
    return ((head, query, keys_up_to) for head in range(q.shape[1]) for query, keys_up_to in _keys_up_to(q, k))


def _fitting(result: Any, shape: Sequence[int], like: Tensor) -> Tensor:
    """Return an answer's result as a tensor with the dtype of `like`.

    Raises ValueError for a wrong shape, and TypeError for a boolean in place of a number or the reverse.
    """
    tensor = result if isinstance(result, Tensor) else torch.as_tensor(np.asarray(result))
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"it returned {tuple(tensor.shape)}, and {tuple(shape)} is asked for")
    if (tensor.dtype == torch.bool) != (like.dtype == torch.bool):
        raise TypeError(f"it returned {tensor.dtype}, and {like.dtype} is asked for")
    return tensor.to(like.dtype)
