"""How much work a KV cache saves while N tokens are written, one at a time, each step one forward pass.

`rows` counts tokens that go through the layers: each is projected, makes one row of scores and passes the feed-forward
layer. `scores` counts entries of the score matrix. Wall-clock time falls by less than either: the weights are read at
every step, with or without a cache.
"""

from fractions import Fraction
from typing import NamedTuple

from course_utils.costs.counts import score_pairs
from course_utils.costs.sizes import as_number, whole


class Work(NamedTuple):
    """Rows (tokens through the layers) and entries of the score matrix, for each head and layer."""

    rows: int
    scores: int


def step_work(prefix: int, cached: bool, causal: bool = False) -> Work:
    """Return the work of the step that writes one token after `prefix` tokens, the newest of which it feeds in.

    Uncached it computes prefix rows and prefix² scores, of which only the last row is new; cached, that row alone.
    causal=True counts the uncached scores without those above the diagonal.
    """
    (prefix,) = whole(prefix=prefix)
    if cached:
        return Work(rows=1, scores=prefix)
    return Work(rows=prefix, scores=score_pairs(prefix, causal=causal))


def step_saving(prefix: int) -> int:
    """Return how many times more rows and scores one uncached step computes: `prefix` times, 512 at a prefix of 512."""
    return step_work(prefix, cached=False).scores // step_work(prefix, cached=True).scores


def generation_work(N: int, cached: bool) -> Work:
    """Return the work of N steps together, with prefixes of 1, 2, …, N tokens: exact sums, in closed form."""
    (N,) = whole(N=N)
    triangle = N * (N + 1) // 2
    squares = N * (N + 1) * (2 * N + 1) // 6
    return Work(rows=N, scores=triangle) if cached else Work(rows=triangle, scores=squares)


def generation_saving(N: int) -> float:
    """How many times more rows N uncached steps compute, together: (N + 1)/2, half of what the last step alone shows.

    An integer where the answer is whole, else a float.
    """
    return as_number(Fraction(generation_work(N, cached=False).rows, generation_work(N, cached=True).rows))
