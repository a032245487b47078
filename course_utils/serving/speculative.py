"""Speculative sampling: a drafter guesses several tokens, the target judges them in one pass, and its law is kept.

p is the target's distribution of the next token, q the drafter's, both (…, V) with rows that sum to 1. A drafted token
x is kept with probability min(1, p(x) / q(x)); else a token is drawn from the remainder (p − q)₊ / Σ (p − q)₊. Why the
result has the law p: a token x comes out as a kept draft with probability q(x) · min(1, p(x) / q(x)) = min(p(x), q(x)).
A draft is refused with probability 1 − Σ min(p, q) = Σ (p − q)₊. So x comes out of the remainder with probability
(p(x) − q(x))₊. The sum is min(p(x), q(x)) + (p(x) − q(x))₊ = p(x).
Source: Leviathan, Kalman and Matias 2022 (arXiv 2211.17192), algorithm 1 and appendix A.1; Chen et al. 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from course_utils.attention.shapes import whole

Drafter = Callable[[Sequence[int]], np.ndarray]  # tokens so far -> q, (V,)
Target = Callable[[Sequence[int], int], np.ndarray]  # tokens so far, n -> p after each of the last n prefixes, (n, V)


# --- one token ------------------------------------------------------------------------------------------------------


def accept(p: ArrayLike, q: ArrayLike, drafted: ArrayLike, coins: ArrayLike) -> np.ndarray:
    """Return which drafts are kept: coin < min(1, p(x) / q(x)). Bool, of the shape of drafted and coins.

    p and q are (…, V), drafted (…,) holds tokens and coins (…,) numbers in [0, 1); the leading axes are broadcast.
    Raises ValueError for p and q that are no distributions, and for a draft that q cannot have made.
    """
    p, q = _distributions(p, q)
    drafted = np.asarray(drafted)
    coins = np.asarray(coins, dtype=float)
    if drafted.dtype.kind not in "iu":
        raise TypeError(f"drafted is {drafted.dtype}: tokens are whole numbers")
    if ((drafted < 0) | (drafted >= p.shape[-1])).any():
        raise ValueError(f"drafted holds a token outside 0 to {p.shape[-1] - 1}")
    if not ((coins >= 0) & (coins < 1)).all():
        raise ValueError("coins holds a number outside [0, 1): draw them with rng.random()")
    shape = np.broadcast_shapes(p.shape[:-1], q.shape[:-1], drafted.shape, coins.shape)
    index = np.broadcast_to(drafted, shape)[..., None]
    p_drafted, q_drafted = (np.take_along_axis(_spread(x, shape), index, axis=-1)[..., 0] for x in (p, q))
    if (q_drafted == 0).any():
        raise ValueError("a drafted token has probability 0 in q: drafts are to be drawn from q")
    return coins * q_drafted < p_drafted


def residual(p: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return the remainder (p − q)₊ / Σ (p − q)₊, (…, V): what is drawn from where a draft was refused.

    Where p = q nothing is ever refused, and the row is p. Raises ValueError for what are no distributions.
    """
    p, q = _distributions(p, q)
    excess = np.maximum(p - q, 0.0)
    total = excess.sum(axis=-1, keepdims=True)
    return np.where(total > 0, excess / np.where(total > 0, total, 1.0), p)


def draw(p: ArrayLike, coins: ArrayLike) -> np.ndarray:
    """One token for each coin (…,) in [0, 1): the first whose cumulated probability in p (…, V) is above the coin."""
    cumulated = np.cumsum(np.asarray(p, dtype=float), axis=-1)
    total = cumulated[..., -1:]  # 1, but for rounding: no coin may fall behind the last token
    coins = np.minimum(np.asarray(coins, dtype=float)[..., None] * total, np.nextafter(total, 0))
    return (cumulated <= coins).sum(axis=-1)


def speculative_draws(
    p: ArrayLike, q: ArrayLike, n: int, rng: np.random.Generator, from_p: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """n tokens by the rule, each with a draft of its own: (tokens, kept), int64 and bool, both (n,).

    p and q are (V,). from_p=True is the popular mistake: after a refusal it draws from p, not from the remainder.
    """
    p, q = _distributions(p, q)
    coins = rng.random((3, whole("n", n)))
    drafted = draw(q, coins[0])
    accepted = accept(p, q, drafted, coins[1])
    return np.where(accepted, drafted, draw(p if from_p else residual(p, q), coins[2])), accepted


def overlap(p: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Σ min(p, q), (…,): the probability that a draft is kept, which is 1 − total_variation(p, q)."""
    return np.minimum(*_distributions(p, q)).sum(axis=-1)


def total_variation(p: ArrayLike, q: ArrayLike) -> np.ndarray:
    """½ Σ |p − q|, (…,): the most by which the probabilities of any event differ; 0 for equal laws, 1 for disjoint."""
    p, q = _distributions(p, q)
    return np.abs(p - q).sum(axis=-1) / 2


def resulting_law(p: ArrayLike, q: ArrayLike, from_p: bool = False) -> np.ndarray:
    """Return the law of what comes out, (…, V): min(p, q) + (1 − Σ min(p, q)) · what is drawn from after a refusal.

    It is p; with from_p=True, the popular mistake, it leans to what the drafter likes.
    """
    p, q = _distributions(p, q)
    refused = 1 - overlap(p, q)[..., None]
    return np.minimum(p, q) + refused * (p if from_p else residual(p, q))


def frequencies(tokens: ArrayLike, vocabulary: int) -> np.ndarray:
    """Return how often each token occurs, as shares that sum to 1: (vocabulary,)."""
    counts = np.bincount(np.asarray(tokens), minlength=whole("vocabulary", vocabulary))
    return counts / counts.sum()


# --- several tokens -------------------------------------------------------------------------------------------------


class Round(NamedTuple):
    """One round: the tokens that it wrote, what was drafted, how many drafts were kept, and the laws of both.

    p is (γ + 1, V) and q (γ, V), a row for each prefix.
    tokens are the kept drafts and one more: from the remainder after a refusal, from the last row of p if none was.
    """

    tokens: tuple[int, ...]
    drafted: tuple[int, ...]
    accepted: int
    p: np.ndarray
    q: np.ndarray


def speculate(p_of: Target, q_of: Drafter, context: Sequence[int], gamma: int, rng: np.random.Generator) -> Round:
    """One round after the context: draft gamma tokens, ask the target once, keep what it allows, and draw one more.

    q_of(tokens) is the drafter's distribution after the tokens, (V,). p_of(tokens, n) is the target's after each of the
    last n prefixes, (n, V): one pass of a causal model over the tokens gives all of them. Between 1 and gamma + 1
    tokens come out, with the law of the target alone. Raises ValueError for an empty context, a p or q that is no
    distribution, and a gamma below 0, which with 0 is plain decoding.
    """
    if not len(context):
        raise ValueError("context is empty: give at least one token to go on from")
    text = [int(token) for token in context]
    q = []
    for _ in range(whole("gamma", gamma, least=0)):
        q.append(np.asarray(q_of(text), dtype=float))
        text.append(int(draw(q[-1], rng.random())))
    drafted = text[len(context) :]
    p = np.asarray(p_of(text, gamma + 1), dtype=float)  # (gamma + 1, V)
    if p.ndim != 2 or len(p) != gamma + 1:
        raise ValueError(f"p_of gave {p.shape} for n = {gamma + 1}: expected (n, V), a row after each prefix")
    drafts = np.array(q).reshape(gamma, p.shape[-1])
    for i, token in enumerate(drafted):
        if not accept(p[i], drafts[i], token, rng.random()):
            last = draw(residual(p[i], drafts[i]), rng.random())
            return Round((*drafted[:i], int(last)), tuple(drafted), i, p, drafts)
    return Round((*drafted, int(draw(p[gamma], rng.random()))), tuple(drafted), gamma, p, drafts)


class Bigrams:
    """A drafter that counts which token followed which: q after a context depends on its last token alone.

    tokens is a text as numbers from 0 to vocabulary − 1, (n,), or several texts of one length, (…, n). `smoothing` is
    added to each count, so that every token has a chance. Calling it with a context gives q, (vocabulary,). Raises
    ValueError for an empty context, fewer than two tokens, a token outside the vocabulary and a smoothing that is not
    above 0.
    """

    def __init__(self, tokens: ArrayLike, vocabulary: int, smoothing: float = 0.1) -> None:
        text = np.asarray(tokens)
        vocabulary = whole("vocabulary", vocabulary)
        if not text.ndim or not text.size or text.shape[-1] < 2:
            raise ValueError(f"tokens is {text.shape}: give a text of at least two tokens, (n,), or several, (…, n)")
        if text.dtype.kind not in "iu" or text.min() < 0 or text.max() >= vocabulary:
            raise ValueError(f"tokens must be whole numbers from 0 to {vocabulary - 1}")
        if not smoothing > 0:
            raise ValueError(f"smoothing is {smoothing}: above 0, so that no token has probability 0")
        counts = np.full((vocabulary, vocabulary), float(smoothing))
        np.add.at(counts, (text[..., :-1], text[..., 1:]), 1)
        self.table = counts / counts.sum(axis=1, keepdims=True)  # (vocabulary, vocabulary), a row for each last token

    def __call__(self, context: Sequence[int]) -> np.ndarray:
        if not len(context):
            raise ValueError("context is empty: a bigram needs the token before")
        return self.table[context[-1]]


# --- is it worth it -------------------------------------------------------------------------------------------------


def expected_tokens(alpha: float, gamma: int) -> float:
    """Tokens that a round writes on average: 1 + α + α² + … + α^γ = (1 − α^(γ+1)) / (1 − α), γ + 1 at α = 1.

    alpha is the chance that a draft is kept, taken as the same for all and independent. Raises ValueError for an alpha
    outside [0, 1] and a gamma below 0. Source: Leviathan et al. 2022, equation 1.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}: it is a probability, from 0 to 1")
    return float(sum(alpha**i for i in range(whole("gamma", gamma, least=0) + 1)))  # the quotient is 0 / 0 at α = 1


def speed_up(
    cost: Callable[[int, int], float], alpha: float, gamma: int, batch: int = 1, T: int = 0, drafting: float = 0.0
) -> float:
    """How many times as many tokens a second as plain decoding: expected tokens · cost of a step / cost of a round.

    cost(tokens, context) is seconds of a step, such as a `StepCost`. All `batch` requests, each with T cached tokens,
    speculate: a step computes γ + 1 tokens of each in place of one. drafting is the seconds of one draft for the batch.
    Below 1 speculation loses. Source: Leviathan et al. 2022, theorem 3.8, with a step that costs more for more tokens.
    """
    batch = whole("batch", batch)
    T = whole("T", T, least=0)
    plain = cost(batch, batch * T)
    verified = cost(batch * (gamma + 1), batch * T)
    return expected_tokens(alpha, gamma) * plain / (verified + gamma * drafting)


class Length(NamedTuple):
    """How many drafts to verify, the tokens expected of the step, and tokens a second."""

    drafts: int
    tokens: float
    rate: float


def best_length(survival: ArrayLike, waiting: int, cost: Callable[[int], float]) -> Length:
    """Return how many drafts to verify in a step when the machine is busy: B* = argmax (N + Σ S) / cost(T + B).

    survival holds, for each draft of each request, the chance S that it and all drafts before it are kept, in any order
    and shape: a prefix is always likelier than what follows, so the B likeliest drafts are whole prefixes. waiting is
    the tokens that the step computes anyway, one for each request that decodes, each of which brings one token for
    sure: N and T alike. cost(tokens) is the step's seconds. It is an argmax over a cumulative sum of the sorted S.
    Of equals the fewest drafts win. Raises ValueError for a survival outside [0, 1] and for waiting below 1.
    Source: vLLM's manual, v0.32, adaptive verification.
    """
    chances = np.sort(np.asarray(survival, dtype=float).ravel())[::-1]
    waiting = whole("waiting", waiting)
    if chances.size and not (chances[-1] >= 0 and chances[0] <= 1):
        raise ValueError("survival holds a number outside [0, 1]: each is a probability")
    tokens = waiting + np.concatenate([[0.0], np.cumsum(chances)])  # (B + 1,)
    rates = tokens / np.array([cost(waiting + drafts) for drafts in range(len(tokens))])
    best = int(rates.argmax())
    return Length(best, float(tokens[best]), float(rates[best]))


def survivals(alpha: float, gamma: int) -> np.ndarray:
    """α, α², … α^γ, (γ,): the chance that a draft and all before it are kept, when each is kept with chance α."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}: it is a probability, from 0 to 1")
    return float(alpha) ** np.arange(1, whole("gamma", gamma, least=0) + 1)


# --- shapes ---------------------------------------------------------------------------------------------------------


def _distributions(p: ArrayLike, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    for name, x in (("p", p), ("q", q)):
        if not x.ndim or not x.shape[-1]:
            raise ValueError(f"{name} is {x.shape}: expected (…, V), a probability for each token")
        if not (x >= 0).all() or not np.allclose(x.sum(axis=-1), 1, rtol=0, atol=1e-6):
            raise ValueError(f"{name} is no distribution: nothing below 0, and each row sums to 1")
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p is {p.shape} and q is {q.shape}: they need the same vocabulary (last axis)")
    return p, q


def _spread(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(x, (*shape, x.shape[-1]))
