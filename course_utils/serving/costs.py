"""What a step of a server costs: t = base + per_token · tokens + per_context · context, in seconds.

base is the weights that are read once and the launches, whoever is served; tokens are those that the step computes;
context is the tokens in the caches that it reads, summed over all requests. A decode step of B requests has B tokens
and a context of B · T; a chunk of a prompt has as many tokens as the chunk, and reads what was cached before it.
`fit` finds the three numbers from measured steps: `of_the_course` from the course's decoder on a CPU, `RECORDED` from
published measurements of a real GPU. `at_best` is what a data sheet promises.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_utils.costs import records
from course_utils.costs.configurations import Configuration, model
from course_utils.costs.roofline import MACHINES, Machine, decode_step


class StepCost(NamedTuple):
    """Seconds of a step, seconds for each token that it computes, and seconds for each cached token that it reads.

    Calling it gives the seconds of a step: cost(tokens, context). Raises ValueError for a negative count.
    """

    base: float
    per_token: float
    per_context: float

    def __call__(self, tokens: int, context: int = 0) -> float:
        if tokens < 0 or context < 0:
            raise ValueError(f"tokens is {tokens} and context {context}: neither may be below 0")
        return self.base + self.per_token * tokens + self.per_context * context


class SlowerOfTwo(NamedTuple):
    """Seconds of a step that waits for the slower of two: memory, or arithmetic, of so many seconds for each token.

    Calling it gives the seconds of a step, as a `StepCost` does, which `memory` is. On a card the two go on side by
    side, so a few tokens more are hidden behind the reading of weights and caches, up to `hidden` of them.
    """

    memory: StepCost
    per_token: float

    def __call__(self, tokens: int, context: int = 0) -> float:
        return max(self.memory(tokens, context), self.per_token * tokens)

    def hidden(self, context_of_each: int = 0) -> float:
        """Return the tokens from which on arithmetic is the slower one, each with a cache of its own to read.

        math.inf where it never is.
        """
        own = self.memory.per_token + self.memory.per_context * context_of_each
        return self.memory.base / (self.per_token - own) if own < self.per_token else math.inf


class SlowerOfMeasured(NamedTuple):
    """As `SlowerOfTwo`, but arithmetic takes as long as measured prompts: on a line from one of them to the next.

    `prompts` holds tokens and seconds of each, in order. Beyond the last one, arithmetic keeps its seconds per token.
    """

    memory: StepCost
    prompts: tuple[tuple[int, float], ...]

    def __call__(self, tokens: int, context: int = 0) -> float:
        longest, seconds = self.prompts[-1]
        arithmetic = float(np.interp(tokens, [n for n, _ in self.prompts], [took for _, took in self.prompts]))
        return max(self.memory(tokens, context), arithmetic, seconds / longest * tokens if tokens > longest else 0.0)


class Fit(NamedTuple):
    """A StepCost with how well it tells the measured steps: R² (1 is perfect) and the largest relative error."""

    cost: StepCost
    r_squared: float
    largest_error: float


def fit(tokens: Sequence[float], contexts: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Return the StepCost whose relative errors have the least sum of squares, none of its numbers below 0.

    All three are lists of as many numbers, one entry a step; relative errors, so that long steps do not drown short
    ones. R² is of the seconds themselves. A number that would come out negative is 0, and the others are fitted without
    it: the best solution is the best among all sets of numbers that stay positive (Lawson and Hanson 1974, chapter 23),
    and of three numbers there are seven sets. Raises ValueError for lists of different lengths, fewer than three
    steps, and seconds that are not above 0.
    """
    rows = np.column_stack([np.ones(len(tokens)), *_equally_long(tokens, contexts, seconds)])
    if len(rows) < 3:
        raise ValueError(f"{len(rows)} steps for three numbers: measure at least 3")
    design = rows[:, :3]
    measured = rows[:, 3]
    if not (np.isfinite(rows).all() and (measured > 0).all()):
        raise ValueError("seconds holds a number that is not above 0, or a number is not finite: leave those steps out")
    coefficients = _not_negative(design / measured[:, None], np.ones(len(rows)))
    predicted = design @ coefficients
    spread = float(((measured - measured.mean()) ** 2).sum())
    missed = float(((measured - predicted) ** 2).sum())
    r_squared = 1 - missed / spread if spread else float(missed == 0)
    return Fit(StepCost(*map(float, coefficients)), r_squared, float(np.abs(predicted / measured - 1).max()))


@functools.cache
def of_the_course() -> Fit:
    """The StepCost of the course's decoder on a CPU, fitted to the steps that `benchmarks/serving.py` recorded."""
    rows = records.recorded("serving steps")[0]["rows"]
    return fit(*([row[key] for row in rows] for key in ("tokens", "context", "seconds")))


def at_best(configuration: Configuration, machine: Machine, bytes_per_value: float = 2) -> StepCost:
    """What the data sheet promises: weights / bandwidth, FLOPs of a token / peak, bytes of a cached token / bandwidth.

    The three are added, as if memory and arithmetic took turns; the roofline, where they overlap, takes the larger.
    FLOPs are those of a token with no context: its attention is counted as bytes, which it waits for.
    """
    one, two = (decode_step(configuration, T, bytes_per_value=bytes_per_value) for T in (1, 2))
    per_context = two.bytes - one.bytes
    return StepCost(
        (one.bytes - per_context) / machine.bytes_per_second,
        (2 * one.flops - two.flops) / machine.flops_per_second,
        per_context / machine.bytes_per_second,
    )


def _equally_long(*columns: Sequence[float]) -> list[np.ndarray]:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(f"tokens, contexts and seconds have {lengths} entries: give one of each for every step")
    return [np.asarray(column, dtype=float) for column in columns]


def _not_negative(design: np.ndarray, aims: np.ndarray) -> np.ndarray:
    """The x ≥ 0 of least squares, design (n, k) @ x = aims (n,): the best over all subsets of columns."""
    best = np.zeros(design.shape[1])
    least = math.inf
    for size in range(1, design.shape[1] + 1):
        for columns in itertools.combinations(range(design.shape[1]), size):
            x = np.zeros(design.shape[1])
            x[list(columns)] = np.linalg.lstsq(design[:, columns], aims, rcond=None)[0]
            missed = float(((design @ x - aims) ** 2).sum())
            if (x >= 0).all() and missed < least:
                best = x
                least = missed
    return best


# --- a real GPU -----------------------------------------------------------------------------------------------------


class Published(NamedTuple):
    """One published measurement: seconds of a step of so many tokens which reads so many cached ones."""

    what: str
    tokens: int
    context: int
    seconds: float


SOURCE = (
    "InternLM, LMDeploy v0.1.0 (December 2023), docs/en/benchmark/a100_fp16.md, table llama2-7b: "
    "Llama 2 7B in fp16 on one A100 80GB, static batches"
)
# A prompt alone: the mean time to the first token at batch 1. A decode step: the median time of a token, which is that
# of the middle of the text, where each request has its prompt and half of its output in the cache. Left out are the
# three batches whose caches, at 512 KiB a token, do not fit beside the weights, so that requests waited.
_PROMPTS = ((1, 0.011), (128, 0.022), (2048, 0.139))  # tokens, seconds
_DECODES = (  # batch, tokens of the prompt, of the output, seconds
    (1, 1, 128, 0.009), (1, 128, 128, 0.010), (1, 128, 2048, 0.010), (1, 2048, 128, 0.010), (1, 2048, 2048, 0.011),
    (16, 1, 128, 0.010), (16, 128, 128, 0.011), (16, 128, 2048, 0.015), (16, 2048, 128, 0.020), (16, 2048, 2048, 0.025),
    (32, 1, 128, 0.011), (32, 128, 128, 0.012), (32, 128, 2048, 0.021), (32, 2048, 128, 0.031),
    (64, 1, 128, 0.012), (64, 128, 128, 0.014), (64, 128, 2048, 0.030),
)  # fmt: skip
PUBLISHED = tuple(Published(f"prompt of {n}", n, 0, seconds) for n, seconds in _PROMPTS) + tuple(
    Published(f"{batch} decode, {prompt} + {new}", batch, batch * (prompt + new // 2), seconds)
    for batch, prompt, new, seconds in _DECODES
)
RECORDED = fit(*zip(*(row[1:] for row in PUBLISHED), strict=True))
"""The StepCost of Llama 2 7B on an A100, fitted to `PUBLISHED`, whose seconds are rounded to 0.001. See `SOURCE`."""
DECODES = fit(*zip(*(row[1:] for row in PUBLISHED if "decode" in row.what), strict=True))
"""The StepCost of the decode steps of `PUBLISHED` alone, which wait for memory."""
A100 = SlowerOfTwo(DECODES.cost, PUBLISHED[len(_PROMPTS) - 1].seconds / PUBLISHED[len(_PROMPTS) - 1].tokens)
"""What a step of Llama 2 7B takes on an A100: memory as in `DECODES`, arithmetic as in the longest published prompt."""
A100_PROMPTS = SlowerOfMeasured(DECODES.cost, _PROMPTS)
"""The same with the arithmetic of all three published prompts: more for a few hundred tokens than `A100` says."""
THROUGHPUT = {1: 102.21, 16: 1272.47, 32: 2125.47, 64: 3024.07}
"""Output tokens per second of the published runs with 128 + 128 tokens, by batch: measured, with their prompts."""
MODEL = model("LLaMA 7B")  # Llama 2 7B has the same sizes, and changed the context only
AT_BEST = at_best(MODEL, MACHINES["NVIDIA A100 80GB SXM"])
"""The same GPU by its data sheet."""
