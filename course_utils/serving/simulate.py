"""A server in discrete steps: which requests run in which step, and when each token comes out.

A step computes tokens of several requests at once and takes what a cost says. A request first computes its prompt, and
the step that ends the prompt gives its first token; every later step gives one more, until it has `new` of them. So a
request whose prompt is done in one step holds its slot for `new` steps.

Static batching fills the slots and lets nobody in until the last of the batch is done. Continuous batching refills a
slot at the next step (Yu et al. 2022, Orca, section 3). With a budget of tokens a step, decodes go first, one token
each, and what is left goes to prompts in order of arrival, in chunks (Agrawal et al. 2024, Sarathi-Serve, algorithm 3).
Without one a prompt is one step's work, and all who decode beside it wait for that step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from course_utils.attention.shapes import whole
from course_utils.serving.traffic import Request, check


class Part(NamedTuple):
    """What a step did for one request: tokens computed, cached tokens read, and whether a token came out."""

    name: str
    tokens: int
    context: int
    wrote: bool


class ServerStep(NamedTuple):
    """A step: when it began, how long it took (seconds), and its parts, in the order in which they were chosen."""

    start: float
    duration: float
    parts: tuple[Part, ...]

    @property
    def end(self) -> float:
        return self.start + self.duration

    @property
    def tokens(self) -> int:
        """Tokens that the step computed."""
        return sum(part.tokens for part in self.parts)

    @property
    def context(self) -> int:
        """Cached tokens that the step read."""
        return sum(part.context for part in self.parts)


class Served(NamedTuple):
    """What a request met: when it arrived, when it got a slot, and the times at which its tokens came out (seconds)."""

    name: str
    arrival: float
    admitted: float
    times: tuple[float, ...]

    @property
    def first(self) -> float:
        return self.times[0]

    @property
    def finish(self) -> float:
        return self.times[-1]


class Log(NamedTuple):
    """All that happened: the slots that there were, the requests in the order given, and the steps."""

    n_slots: int
    served: tuple[Served, ...]
    steps: tuple[ServerStep, ...]

    @property
    def use(self) -> float:
        """The share of slots that had work, over all steps; 0 if there was no step."""
        return sum(len(step.parts) for step in self.steps) / (self.n_slots * len(self.steps)) if self.steps else 0.0


@dataclass
class _Slot:
    """A request that runs: tokens in its cache, and the times of those that it has written."""

    request: Request
    admitted: float
    cached: int = 0
    times: list[float] = field(default_factory=list)

    @property
    def decodes(self) -> bool:
        return self.cached >= self.request.prompt

    @property
    def done(self) -> bool:
        return len(self.times) == self.request.new


def simulate(
    requests: Sequence[Request],
    cost: Callable[[int, int], float],
    n_slots: int,
    budget: int | None = None,
    static: bool = False,
    prefilled: bool = False,
) -> Log:
    """Serve the requests, first come first served, and log what happens.

    cost(tokens, context) is the seconds of a step, such as a `StepCost`. At most n_slots requests run at once. budget:
    the most tokens of a step, for continuous batching. static=True is static batching; a slot whose request is done
    costs nothing then but its place. prefilled=True: the prompts are in the caches already, so that the first step of a
    request writes a token. When nothing runs, the clock goes on to the next arrival. Who arrives while a step runs may
    start with the next. Raises ValueError for a budget below n_slots, which could not give every request its token, for
    a budget with static batching, when a step takes no time, and as `traffic.check` does.
    """
    n_slots = whole("n_slots", n_slots)
    check(requests)
    _check_budget(budget, n_slots, static)
    waiting = deque(sorted(requests, key=lambda request: request.arrival))  # stable: of equals the first given
    running: list[_Slot] = []
    done: dict[str, Served] = {}
    steps: list[ServerStep] = []
    now = 0.0
    while waiting or running:
        # an idle server waits for the next arrival
        if not running:
            now = max(now, waiting[0].arrival)
        # who has arrived takes a free slot; a static batch lets nobody in until all of it is done
        if not (static and running):
            while waiting and len(running) < n_slots and waiting[0].arrival <= now:
                request = waiting.popleft()
                running.append(_Slot(request, now, cached=request.prompt if prefilled else 0))
        step, now = _step(running, cost, budget, now)
        steps.append(step)
        # who is done is logged once, and leaves its slot, in a static batch only with all others
        for slot in running:
            name = slot.request.name
            if slot.done and name not in done:
                done[name] = Served(name, slot.request.arrival, slot.admitted, tuple(slot.times))
        if not static or all(slot.done for slot in running):
            running = [slot for slot in running if not slot.done]
    return Log(n_slots, tuple(done[request.name] for request in requests), tuple(steps))


def _step(
    running: list[_Slot], cost: Callable[[int, int], float], budget: int | None, now: float
) -> tuple[ServerStep, float]:
    """Run one step: the Step, and the time at its end."""
    shares = [(slot, tokens) for slot, tokens in _shares(running, budget) if tokens]
    parts = []
    for slot, tokens in shares:
        context = slot.cached
        slot.cached += tokens
        parts.append(Part(slot.request.name, tokens, context, slot.decodes))
    duration = cost(sum(part.tokens for part in parts), sum(part.context for part in parts))
    if not duration > 0:
        raise ValueError(f"a step takes {duration} s by this cost: it must be above 0")
    step = ServerStep(now, duration, tuple(parts))
    for (slot, _), part in zip(shares, parts, strict=True):
        if part.wrote:
            slot.times.append(step.end)
    return step, step.end


def _shares(running: list[_Slot], budget: int | None) -> list[tuple[_Slot, int]]:
    """How many tokens of each request the step computes: first those who decode, then prompts, each by arrival."""
    active = [slot for slot in running if not slot.done]
    decoding = [(slot, 1) for slot in active if slot.decodes]
    prompts = [slot for slot in active if not slot.decodes]
    if budget is None:
        return decoding + [(slot, slot.request.prompt) for slot in prompts]
    remaining = budget - len(decoding)
    chunks = []
    for slot in prompts:
        chunk = min(remaining, slot.request.prompt - slot.cached)
        chunks.append((slot, chunk))
        remaining -= chunk
    return decoding + chunks


def _check_budget(budget: int | None, n_slots: int, static: bool) -> None:
    if budget is None:
        return
    if static:
        raise ValueError("budget with static=True: chunks belong to continuous batching, so leave one of them out")
    if whole("budget", budget) < n_slots:
        raise ValueError(f"budget is {budget} for {n_slots} slots: each request may need a token, so give {n_slots}")


# --- as text --------------------------------------------------------------------------------------------------------


def timeline(log: Log) -> str:
    """The steps as a table of letters, a line for each request and a column for each step.

    P is a part of the prompt that gives no token yet, a digit or letter how many tokens are out (from 10 on "+"), and a
    dot a step in which the request did not run.
    """
    width = max((len(served.name) for served in log.served), default=0)
    lines = []
    for served in log.served:
        written = 0
        cells = []
        for step in log.steps:
            part = next((part for part in step.parts if part.name == served.name), None)
            written += part is not None and part.wrote
            if part is None:
                cells.append(".")
            elif not part.wrote:
                cells.append("P")
            else:
                cells.append(str(written) if written < 10 else "+")
        lines.append(f"{served.name:<{width}}  {''.join(cells)}")
    return "\n".join(lines)
