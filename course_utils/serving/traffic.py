"""Requests that arrive at a server: at random, from a seed, or three of them for a table by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_utils.attention.shapes import whole


class Request(NamedTuple):
    """A request: its name, when it arrives, the tokens of its prompt and the tokens that it wants written.

    `simulate` reads the arrival in seconds, the `Scheduler` in any unit of time, such as steps.
    """

    name: str
    arrival: float
    prompt: int
    new: int


class Lengths(NamedTuple):
    """Lengths whose logarithm is normal: half of them are below `median`, and spread is the σ of the logarithm.

    They are rounded, and cut at 1 and at `longest`. Measured lengths of chats look so: many short, a long tail.
    The mean without the cut is median · e^(spread² / 2).
    """

    median: float
    spread: float
    longest: int

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """n lengths, (n,) int64. Raises ValueError for a median or longest below 1 and a spread below 0."""
        if self.median < 1 or self.spread < 0 or self.longest < 1:
            raise ValueError(f"{self}: median and longest are at least 1 token, spread at least 0")
        drawn = rng.lognormal(math.log(self.median), self.spread, size=whole("n", n, least=0))
        return np.clip(np.rint(drawn), 1, self.longest).astype(np.int64)


# A chat: prompts of half a page, answers from a word to several pages. Chosen for the course, not measured.
PROMPTS = Lengths(median=200, spread=0.8, longest=2048)
ANSWERS = Lengths(median=80, spread=0.8, longest=1024)
DOCUMENTS = Lengths(median=1500, spread=0.6, longest=4096)  # prompts of several pages, to be summed up

THREE = (Request("A", 0.0, 2, 2), Request("B", 0.0, 2, 5), Request("C", 0.0, 2, 3))
"""Three requests for two slots, all there at 0: static batching takes 8 steps for them, continuous 5."""


def poisson(
    n: int,
    rate: float,
    seed: int | np.random.Generator = 0,
    prompts: Lengths = PROMPTS,
    answers: Lengths = ANSWERS,
) -> list[Request]:
    """n requests at `rate` a second on average, in order of arrival, named "0", "1", …: a Poisson process.

    The times between two arrivals are independent and exponential with mean 1 / rate, and so is the time to the first.
    Times, prompts and answers come from streams of their own: with the same seed and another rate the same requests
    arrive, in times that are stretched, and with another n more or fewer of them. rate=math.inf lets all arrive at 0.
    Raises ValueError for a rate that is not above 0.
    """
    if not rate > 0:
        raise ValueError(f"rate is {rate}: requests a second, above 0")
    times, read, written = np.random.default_rng(seed).spawn(3)
    arrivals = np.cumsum(times.exponential(1.0, size=whole("n", n, least=0))) / rate
    drawn = (prompts.draw(n, read), answers.draw(n, written))
    rows = zip(arrivals.tolist(), *(each.tolist() for each in drawn), strict=True)
    return [Request(str(i), *row) for i, row in enumerate(rows)]


def check(requests: Sequence[Request]) -> None:
    """Raise ValueError for requests that cannot be served: two of one name, no token to read or write, no such time."""
    if len({request.name for request in requests}) < len(requests):
        raise ValueError("two requests have one name: the log tells them apart by it")
    for request in requests:
        whole(f"prompt of {request.name}", request.prompt)
        whole(f"new of {request.name}", request.new)
        if not 0 <= request.arrival < math.inf:
            raise ValueError(f"arrival of {request.name} is {request.arrival}: seconds, finite and at least 0")


def work(requests: Sequence[Request]) -> tuple[int, int]:
    """Tokens of all prompts, and tokens to write."""
    return sum(request.prompt for request in requests), sum(request.new for request in requests)
