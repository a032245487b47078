"""What happened to requests in an engine, step by step, and the times that follow from it."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple


class Event(NamedTuple):
    """What happened to a request in a step, and to how many tokens.

    kind is "arrived" (n: its prompt), "admitted" (n: tokens whose keys and values were there already), "prefill" (n
    tokens computed, of the prompt or again after a preemption), "token" (it got one), "preempted" (n: tokens that it
    had stored) or "finished" (n: tokens that it got).
    """

    step: int
    name: str
    kind: str
    n: int = 1


class Times(NamedTuple):
    """When a request arrived, and when each of its tokens came out."""

    arrival: float
    tokens: tuple[float, ...]


def token_times(events: Iterable[Event], seconds: Sequence[float] | None = None) -> dict[str, Times]:
    """Return the times of each request in a log, by name, in order of arrival.

    A request arrives when a step begins, and a token comes out when its step ends. seconds says how long each step
    took; left out, each takes 1, and times are counted in steps. Raises ValueError for a token of a request that never
    arrived, and for a step whose seconds are missing.
    """
    events = list(events)
    n_steps = max((event.step + (event.kind != "arrived") for event in events), default=0)  # that were computed
    if seconds is not None and len(seconds) < n_steps:
        raise ValueError(f"seconds has {len(seconds)} steps but the log has {n_steps}: give one number for each")
    begins = list(accumulate([1.0] * n_steps if seconds is None else seconds, initial=0.0))  # a step ends with the next
    arrivals: dict[str, float] = {}
    tokens: dict[str, list[float]] = {}
    for event in events:
        if event.kind == "arrived":
            arrivals[event.name] = begins[event.step]
            tokens[event.name] = []
        elif event.kind == "token":
            if event.name not in arrivals:
                raise ValueError(f"{event.name!r} got a token but never arrived: give the whole log")
            tokens[event.name].append(begins[event.step + 1])
    return {name: Times(arrival, tuple(tokens[name])) for name, arrival in arrivals.items()}
