"""The delays of part 7: the promise of its server, who gets it kept, and its table of budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from course_utils.serving.latency import gaps, keeps, summary, ttft
from course_utils.serving.simulate import Log, Served


class Promise(NamedTuple):
    """The most seconds that a user waits for the first token, and for each token after it."""

    first_token: float
    gap: float


PROMISE = Promise(first_token=1.0, gap=0.1)
_LONG = 0.02  # seconds: a gap that a prompt has lengthened
_HEAD = """\
                     gaps                         first token          promise
per second  budget     p95  largest  above 20 ms     median  after 1 s    kept"""


def share_kept(served: Iterable[Served]) -> float:
    """The share of requests for which `PROMISE` was kept, 0 to 1; at least one request."""
    return float(np.mean([keeps(each, *PROMISE) for each in served]))


def table(logs: Mapping[int, Mapping[str, Log]]) -> str:
    """A line for each budget, and a sentence for each rate: whose first token a budget of 512 makes later.

    logs: requests per second -> budget -> Log of the same requests; with the budgets "none" and "512".
    """
    lines = [_HEAD]
    lines += [f"{rate:10}  {name:>6}  {_waits(log)}" for rate, each in logs.items() for name, log in each.items()]
    for rate, each in logs.items():
        pairs = zip(each["512"].served, each["none"].served, strict=True)
        share = np.mean([cut.first > whole.first + 1e-6 for cut, whole in pairs])
        lines.append(f"{rate} per second: with 512, {share:.0%} of the first tokens come later than without a budget")
    return "\n".join(lines)


def _waits(log: Log) -> str:
    figures = summary(log)
    assert figures.gap is not None and figures.largest_gap is not None  # every request writes more than one token
    long = np.mean([gap > _LONG for each in log.served for gap in gaps(each.times)])
    late = np.mean([ttft(each.arrival, each.times) > PROMISE.first_token for each in log.served])
    return (
        f"{figures.gap.p95 * 1e3:3.0f} ms  {figures.largest_gap * 1e3:4.0f} ms  {long:11.1%}  "
        f"{figures.ttft.p50 * 1e3:6.0f} ms  {late:9.1%}  {share_kept(log.served):6.1%}"
    )
