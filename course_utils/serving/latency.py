"""How long people wait, from a log of when tokens came: TTFT, TPOT, gaps, percentiles, goodput, and Little's law.

TTFT, the time to the first token, counts from the arrival. A gap is the time between two tokens of a request, and TPOT,
the time per output token, is the mean of its gaps. Percentiles are NumPy's linear ones. Throughput is tokens a second;
goodput counts only requests that kept a promise (Zhong et al. 2024, DistServe, section 1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from course_utils.serving.simulate import Log, Served, simulate
from course_utils.serving.traffic import ANSWERS, PROMPTS, Lengths, poisson

# --- one request ----------------------------------------------------------------------------------------------------


def ttft(arrival: float, times: Sequence[float]) -> float:
    """Seconds from the arrival to the first token. Raises ValueError if no token came, or one before the arrival."""
    if not times:
        raise ValueError("times is empty: no token came")
    if times[0] < arrival:
        raise ValueError(f"the first token came at {times[0]}, before the arrival at {arrival}")
    return times[0] - arrival


def gaps(times: Sequence[float]) -> list[float]:
    """Seconds between a token and the next: one number fewer than tokens. Raises ValueError for times that go back."""
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    if any(gap < 0 for gap in waits):
        raise ValueError("times go back: give them in order")
    return waits


def tpot(times: Sequence[float]) -> float | None:
    """Seconds per output token after the first: (last − first) / (tokens − 1), the mean gap. None for one token."""
    waits = gaps(times)
    return (times[-1] - times[0]) / len(waits) if waits else None


# --- many requests --------------------------------------------------------------------------------------------------


def percentile(values: Iterable[float], q: float) -> float:
    """Return the q-th percentile: of n sorted values, what stands at place (n − 1) · q / 100, counted from 0.

    Between two places it runs linearly from one value to the next, as numpy.percentile does by default (Hyndman and Fan
    1996, definition 7). Raises ValueError for no values and for a q outside [0, 100].
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("values is empty: a percentile needs at least one")
    if not 0 <= q <= 100:
        raise ValueError(f"q is {q}: it is in percent, from 0 to 100")
    place = (len(ordered) - 1) * q / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class Percentiles(NamedTuple):
    """Half of the values are below p50, 95 in 100 below p95, 99 in 100 below p99."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Percentiles:
        """Of at least one value, else ValueError."""
        ordered = sorted(values)
        return cls(*(percentile(ordered, q) for q in (50, 95, 99)))


class Summary(NamedTuple):
    """A log in numbers: requests, seconds from first arrival to last token, tokens written a second, and waiting times.

    ttft and tpot are over requests, gap over all gaps of all requests; largest_gap is the largest of these. tpot, gap
    and largest_gap are None where no request wrote two tokens.
    """

    requests: int
    seconds: float
    throughput: float
    ttft: Percentiles
    tpot: Percentiles | None
    gap: Percentiles | None
    largest_gap: float | None


def summary(log: Log) -> Summary:
    """Return the numbers of a log. Raises ValueError for a log of no requests."""
    first, last = window(log.served)
    every_gap = [gap for served in log.served for gap in gaps(served.times)]
    means = [mean for served in log.served if (mean := tpot(served.times)) is not None]
    return Summary(
        len(log.served),
        last - first,
        sum(len(served.times) for served in log.served) / (last - first),
        Percentiles.of(ttft(served.arrival, served.times) for served in log.served),
        Percentiles.of(means) if means else None,
        Percentiles.of(every_gap) if every_gap else None,
        max(every_gap, default=None),
    )


def window(served: Sequence[Served]) -> tuple[float, float]:
    """From the first arrival to the last token, seconds: nobody is in the system before or after."""
    if not served:
        raise ValueError("no request was served: there is nothing to count")
    return min(each.arrival for each in served), max(each.finish for each in served)


def keeps(served: Served, ttft_at_most: float, gap_at_most: float) -> bool:
    """Whether the first token and the largest gap kept the promise, in seconds, inclusive; one token has no gap."""
    return ttft(served.arrival, served.times) <= ttft_at_most and max(gaps(served.times), default=0) <= gap_at_most


def goodput(log: Log, ttft_at_most: float, gap_at_most: float) -> float:
    """Requests a second, from first arrival to last token, that kept the promise. ValueError for a log of none."""
    first, last = window(log.served)
    return sum(keeps(served, ttft_at_most, gap_at_most) for served in log.served) / (last - first)


# --- Little's law ---------------------------------------------------------------------------------------------------


class Little(NamedTuple):
    """The mean number in the system over time, arrivals a second, and the mean time that a request spends there."""

    number: float
    rate: float
    time: float


def little(arrivals: Sequence[float], finishes: Sequence[float]) -> Little:
    """L, λ and W over the window from the first arrival to the last finish, which begins and ends empty.

    L comes from the staircase of the number in the system, summed from one event to the next, and knows nothing of who
    left when; W from each request's own times. Then L = λ · W exactly: both sides are the same area, cut into columns
    of time and into rows of requests. Source: Little 1961; for finite windows Little and Graves 2008.
    arrivals and finishes are in the same order. Raises ValueError for none, for lists of different lengths and for a
    finish before its arrival.
    """
    if not arrivals or len(arrivals) != len(finishes):
        raise ValueError(f"{len(arrivals)} arrivals and {len(finishes)} finishes: give one of each for every request")
    if any(finish < arrival for arrival, finish in zip(arrivals, finishes, strict=True)):
        raise ValueError("a request finishes before it arrives: give both lists in the same order")
    events = sorted([(time, 1) for time in arrivals] + [(time, -1) for time in finishes])
    span = events[-1][0] - events[0][0]
    if not span > 0:
        raise ValueError("the window has no length: all arrivals and finishes are at one time")
    area = 0 * span
    present = 0
    before = events[0][0]
    for time, change in events:
        area += present * (time - before)
        present = present + change
        before = time
    time_in_system = sum(finish - arrival for arrival, finish in zip(arrivals, finishes, strict=True))
    return Little(area / span, len(arrivals) / span, time_in_system / len(arrivals))


# --- how much it bears ----------------------------------------------------------------------------------------------


class Mean(NamedTuple):
    """A mean over seeds and its standard error, s / √n with s² = Σ (x − mean)² / (n − 1); 0 for one seed."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of at least one value, else ValueError."""
        if not values:
            raise ValueError("values is empty: a mean needs at least one")
        mean = math.fsum(values) / len(values)
        n = len(values)
        squares = math.fsum((value - mean) ** 2 for value in values)
        return cls(mean, math.sqrt(squares / (n - 1) / n) if n > 1 else 0.0)


MEASURES = (
    "throughput", "goodput", "kept", "use", "ttft_p50", "ttft_p95", "tpot_p50", "gap_p95", "gap_p99", "largest_gap",
)  # fmt: skip


def measures(log: Log, ttft_at_most: float, gap_at_most: float) -> dict[str, float]:
    """Return the numbers of MEASURES for one log, as {name: number}: seconds, tokens or requests a second, a share.

    kept is the share of requests that kept the promise, which goodput counts a second.
    """
    totals = summary(log)
    if totals.tpot is None or totals.gap is None or totals.largest_gap is None:
        raise ValueError("no request wrote two tokens: there are no gaps to tell of")
    good = goodput(log, ttft_at_most, gap_at_most)
    values = (
        totals.throughput, good, good * totals.seconds / totals.requests, log.use, totals.ttft.p50, totals.ttft.p95,
        totals.tpot.p50, totals.gap.p95, totals.gap.p99, totals.largest_gap,
    )  # fmt: skip
    return dict(zip(MEASURES, values, strict=True))


def capacity(
    cost: Callable[[int, int], float],
    n_slots: int,
    n: int = 400,
    seed: int = 0,
    prompts: Lengths = PROMPTS,
    answers: Lengths = ANSWERS,
    **options: Any,
) -> float:
    """Requests a second when all n are there from the start: what the server bears at most. options as of `simulate`.

    The last requests leave slots empty, so it is a little low; the more requests, the less.
    """
    log = simulate(poisson(n, math.inf, seed, prompts, answers), cost, n_slots, **options)
    return n / log.steps[-1].end


def sweep(
    rates: Sequence[float],
    seeds: Sequence[int],
    cost: Callable[[int, int], float],
    n_slots: int,
    n: int = 400,
    promise: tuple[float, float] = (1.0, 0.1),
    prompts: Lengths = PROMPTS,
    answers: Lengths = ANSWERS,
    **options: Any,
) -> list[dict[str, Any]]:
    """Serve n requests at each rate (a second) with each seed: rows {"rate", and each of MEASURES as a `Mean`}.

    All rates see the same requests, closer together (see `traffic.poisson`), so that rows can be compared. promise is
    the most seconds of TTFT and of a gap that goodput allows. options go to `simulate`: budget, static. Near the
    capacity waiting grows without end, and with n: what a row says of it is of n requests.
    """
    rows = []
    for rate in rates:
        logs = (simulate(poisson(n, rate, seed, prompts, answers), cost, n_slots, **options) for seed in seeds)
        per_seed = [measures(log, *promise) for log in logs]
        rows.append({"rate": rate} | {name: Mean.of([each[name] for each in per_seed]) for name in MEASURES})
    return rows
