"""Prompts as four kinds of users send them, and how much of them a prefix cache has already.

A prompt is a list of token numbers below `vocabulary`, drawn from a seed: the same seed gives the same prompts
everywhere. They come in the order in which a server would see them.
"""

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from course_utils.attention.shapes import whole

Prompts = list[list[int]]


def chat_turns(
    n_users: int = 8, n_turns: int = 6, first: int = 60, turn: int = 40, seed: int = 0, vocabulary: int = 1000
) -> Prompts:
    """n_users talk by turns: each prompt is the user's last one, then a reply and a question, `turn` tokens together.

    The first prompt has `first` tokens. In every round each user speaks once, in an order of its own.
    Raises ValueError or TypeError for numbers that are no sizes.
    """
    rng = _rng(seed, n_users=n_users, n_turns=n_turns, first=first, turn=turn, vocabulary=vocabulary)
    histories: Prompts = [[] for _ in range(n_users)]
    prompts = []
    for number in range(n_turns):
        for user in rng.sample(range(n_users), n_users):
            histories[user] = histories[user] + _tokens(rng, turn if number else first, vocabulary)
            prompts.append(histories[user])
    return prompts


def one_system_prompt(
    n: int = 48, system: int = 200, question: int = 40, seed: int = 0, vocabulary: int = 1000
) -> Prompts:
    """n prompts of one service: the same `system` tokens, then `question` tokens of their own.

    Raises ValueError or TypeError for numbers that are no sizes.
    """
    rng = _rng(seed, n=n, system=system, question=question, vocabulary=vocabulary)
    shared = _tokens(rng, system, vocabulary)
    return [shared + _tokens(rng, question, vocabulary) for _ in range(n)]


def few_shot(
    n_tasks: int = 4,
    n_questions: int = 12,
    examples: int = 200,
    question: int = 40,
    seed: int = 0,
    vocabulary: int = 1000,
) -> Prompts:
    """n_tasks tasks with n_questions questions each, shuffled: a task's `examples` tokens, then `question` new ones.

    Raises ValueError or TypeError for numbers that are no sizes.
    """
    sizes = {"n_tasks": n_tasks, "n_questions": n_questions, "examples": examples, "question": question}
    rng = _rng(seed, **sizes, vocabulary=vocabulary)
    prompts = []
    for _ in range(n_tasks):
        example_tokens = _tokens(rng, examples, vocabulary)
        prompts += [example_tokens + _tokens(rng, question, vocabulary) for _ in range(n_questions)]
    rng.shuffle(prompts)
    return prompts


def unrelated(n: int = 48, length: int = 240, seed: int = 0, vocabulary: int = 1000) -> Prompts:
    """n texts of `length` tokens that have nothing to do with each other.

    Raises ValueError or TypeError for numbers that are no sizes.
    """
    rng = _rng(seed, n=n, length=length, vocabulary=vocabulary)
    return [_tokens(rng, length, vocabulary) for _ in range(n)]


KINDS: dict[str, Callable[..., Prompts]] = {
    "chat turns": chat_turns,
    "one system prompt": one_system_prompt,
    "few-shot": few_shot,
    "unrelated texts": unrelated,
}


def changed_at_the_beginning(prompts: Sequence[Sequence[int]]) -> Prompts:
    """The same prompts with another token at position 0 of each, as the time of day would put there: all different.

    The new tokens are numbers that no prompt has, so that no two prompts have the same first token.
    """
    fresh = 1 + max((max(prompt) for prompt in prompts if prompt), default=0)
    return [[fresh + i, *prompt[1:]] if prompt else [] for i, prompt in enumerate(prompts)]


class Served(Protocol):
    """A cache that can serve one request by itself: a `PrefixCache` or a `RadixTree`."""

    def serve(self, tokens: Sequence[int]) -> int: ...


def hit_rate(cache: Served, prompts: Sequence[Sequence[int]]) -> float:
    """Return the share of all tokens of the prompts that the cache had when their prompt came; it serves them in order.

    The cache is used, so give a new one. PrefixCache(n_blocks, block_size) and RadixTree(n_blocks · block_size) have
    the same capacity. Raises ValueError for no tokens at all, CacheFull for a prompt that does not fit.
    """
    tokens = sum(len(prompt) for prompt in prompts)
    if not tokens:
        raise ValueError("prompts has no token: give at least one prompt of at least one token")
    return sum(cache.serve(prompt) for prompt in prompts) / tokens


def _rng(seed: int, **sizes: int) -> random.Random:
    """A generator; raises for numbers that are no sizes."""
    for name, size in sizes.items():
        whole(name, size)
    return random.Random(seed)


def _tokens(rng: random.Random, n: int, vocabulary: int) -> list[int]:
    return [rng.randrange(vocabulary) for _ in range(n)]
