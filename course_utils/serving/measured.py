"""What is measured on the course's own decoder: seconds of a step, and how often a drafter's token is kept.

The other modules of this room reckon with NumPy alone. Here torch is loaded, inside the functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.attention.shapes import whole
from course_utils.costs.measure import time_together
from course_utils.serving.speculative import Drafter, Target, overlap, speculate

if TYPE_CHECKING:
    from course_utils.models.decoder import Decoder


def measure_steps(
    model: Decoder,
    batches: Sequence[int],
    contexts: Sequence[int],
    prompts: Sequence[int] = (),
    repeats: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> list[dict[str, Any]]:
    """Time one step of the model: decode steps of each batch at each context, and each prompt alone.

    A decode step of B rows computes B tokens, and each reads a cache of T tokens, of random numbers: what the tokens
    were changes no time. A prompt of n tokens is one step that computes n and reads nothing cached. Returns rows, a
    dict each, with kind ("decode" or "prompt"), batch, T, tokens, context (B · T, or 0), and seconds, low and high: the
    median and the quartiles of `repeats` measurements, all steps taken in turns. A row's cache grows by a token a
    measurement, by less than the rows are apart. Raises ValueError or TypeError
    for sizes below 1.
    """
    import torch

    from course_utils.attention.cache import ContiguousCache
    from course_utils.models.decoder import new_caches

    warmup = 2
    generator = torch.Generator().manual_seed(0)
    words = model.embedding.num_embeddings
    rows: list[dict[str, Any]] = []
    steps: dict[str, Callable] = {}
    with torch.no_grad():
        for T in contexts:
            for B in batches:
                B, T = whole("batch", B), whole("context", T)
                caches = new_caches(model, ContiguousCache, B, capacity=T + repeats + warmup)
                for cache in caches:
                    shape = (2, B, cache.n_kv_heads, T, cache.d_head)
                    cache.update(*torch.randn(shape, generator=generator).to(cache.dtype).to(cache.device))
                newest = torch.randint(words, (B, 1), generator=generator).to(caches[0].device)
                steps[f"{len(rows)}"] = partial(model, newest, caches)
                rows.append({"kind": "decode", "batch": B, "T": T, "tokens": B, "context": B * T})
        for n in prompts:
            tokens = torch.randint(words, (1, whole("prompt", n)), generator=generator).to(
                model.embedding.weight.device
            )
            steps[f"{len(rows)}"] = partial(_prompt, model, tokens)
            rows.append({"kind": "prompt", "batch": 1, "T": n, "tokens": n, "context": 0})
        timings = time_together(steps, repeats=repeats, warmup=warmup, clock=clock)
    for row, timing in zip(rows, timings.values(), strict=True):
        row |= {"seconds": timing.median, "low": timing.low, "high": timing.high}
    return rows


def _prompt(model: Decoder, tokens: Any) -> None:
    from course_utils.attention.cache import ContiguousCache
    from course_utils.models.decoder import new_caches

    model(tokens, new_caches(model, ContiguousCache, 1, capacity=tokens.shape[1]))


def one_pass(model: Decoder, temperature: float = 1.0) -> Target:
    """The target that `speculate` asks: p_of(tokens, n), the distributions after the last n prefixes, in one pass.

    p_of gives (n, vocabulary) float64: row i is what follows tokens[: len(tokens) − n + 1 + i]. Raises ValueError for a
    temperature that is not above 0, and p_of for an n that is more than the tokens.
    """
    import torch

    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}: a distribution needs one above 0")

    def p_of(tokens: Sequence[int], n: int) -> np.ndarray:
        if not 1 <= n <= len(tokens):
            raise ValueError(f"n is {n} for {len(tokens)} tokens: ask for 1 to {len(tokens)} prefixes")
        with torch.no_grad():
            logits = model(torch.as_tensor([list(tokens)], device=model.embedding.weight.device))[0, -n:]
        return torch.softmax(logits.double() / temperature, dim=-1).cpu().numpy()

    return p_of


def own_text(
    model: Decoder, prompts: Sequence[Sequence[int]], n_new: int, temperature: float = 1.0, seed: int = 0
) -> np.ndarray:
    """What the model writes after each prompt, all of one length T: the prompts and n_new drawn tokens, (B, T + n_new).

    It is what a drafter's bigrams are counted in. The same seed gives the same text. Raises as `models.generate` does.
    """
    import torch

    from course_utils.attention.cache import ContiguousCache
    from course_utils.models.decoder import generate, new_caches

    tokens = torch.as_tensor([list(prompt) for prompt in prompts])  # (B, T)
    caches = new_caches(model, ContiguousCache, len(tokens), capacity=tokens.shape[1] + n_new)
    generator = torch.Generator().manual_seed(seed)
    new = generate(model, tokens, n_new, caches, temperature=temperature, generator=generator)
    return torch.cat([tokens, new], dim=1).numpy()


def measure_acceptance(
    p_of: Target, q_of: Drafter, prompts: Sequence[Sequence[int]], gamma: int, n_new: int, seed: int = 0
) -> dict[str, Any]:
    """Write n_new tokens after each prompt by speculation: what was drafted, what was kept, and passes of the target.

    Returns rounds (each is one pass of the target), tokens, drafted, alpha (the mean of Σ min(p, q) over the contexts
    that rounds began with: the chance that a draft is kept), accepted and its share of the drafts that were looked at,
    tokens_a_pass, and survival, whose entry i is the share of rounds that kept at least i + 1 drafts. Raises as
    `speculate` does.
    """
    rng = np.random.default_rng(seed)
    alphas = []
    accepted = []
    tokens = 0
    for prompt in prompts:
        text = list(prompt)
        while len(text) < len(prompt) + n_new:
            done = speculate(p_of, q_of, text, gamma, rng)
            alphas.append(overlap(done.p[0], done.q[0]))
            accepted.append(done.accepted)
            tokens += len(done.tokens)
            text.extend(done.tokens)
    looked_at = sum(min(each + 1, gamma) for each in accepted)
    return {
        "rounds": len(accepted), "tokens": tokens, "drafted": gamma * len(accepted), "alpha": float(np.mean(alphas)),
        "accepted": sum(accepted), "accepted_share": sum(accepted) / looked_at, "tokens_a_pass": tokens / len(accepted),
        "survival": [sum(each > i for each in accepted) / len(accepted) for i in range(gamma)],
    }  # fmt: skip
