"""What a scheduler plans for a few requests, step by step: who computes how many tokens, who waits, and why."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from course_utils.attention.shapes import whole
from course_utils.serving.scheduler import Note, Scheduler
from course_utils.serving.traffic import THREE, Request
from course_utils.views.silence import hide_prints

MAX_STEPS = 200
_MAX_LINES = 200_000  # that one call of somebody's scheduler may run


class Arrivals(NamedTuple):
    """Requests, with the budget (tokens a step) and the number of blocks (of 2 tokens) that show what they are for."""

    requests: Sequence[Request]
    budget: int
    blocks: int


def _requests(*rows: tuple[int, int, int]) -> list[Request]:
    """Requests A, B, … of (arrival, prompt, new)."""
    return [Request("ABCDE"[place], float(arrival), prompt, new) for place, (arrival, prompt, new) in enumerate(rows)]


SETS = {
    "three at once": Arrivals(THREE, budget=4, blocks=5),
    "a long prompt": Arrivals(_requests((0, 2, 8), (0, 2, 6), (2, 12, 3)), budget=4, blocks=16),
    "too few blocks": Arrivals(_requests((0, 2, 7), (0, 2, 7), (1, 2, 5)), budget=4, blocks=6),
    "one after another": Arrivals(_requests((0, 3, 3), (1, 2, 6), (2, 5, 2), (4, 1, 3), (6, 3, 4)), budget=4, blocks=8),
}


class LibraryScheduler:
    """The course's `Scheduler`, called as the day's exercise calls one: `add`, and `step() -> (plan, preempted)`.

    static=True runs a batch until its last request ends. After a step, `held` is how many blocks were held in it, and
    `notes` what each request did and why.
    """

    def __init__(self, n_blocks: int, block_size: int, budget: int, static: bool = False) -> None:
        self._scheduler = Scheduler(n_blocks, block_size, budget, static=static)
        self.held = 0
        self.notes: list[Note] = []

    def add(self, name: str, prompt: int, new: int) -> None:
        """Put a request at the end of the line. Raises ValueError for one that never fits."""
        self._scheduler.add(Request(name, self._scheduler.step, prompt, new))

    def step(self) -> tuple[dict[str, int], list[str]]:
        """Plan a step and take it as computed: tokens by name, and who was preempted."""
        scheduler = self._scheduler
        before = len(self._scheduler.notes)
        plan = scheduler.plan()
        self.held = scheduler.blocks.n_blocks - scheduler.blocks.n_free
        self.notes = scheduler.notes[before:]
        scheduler.advance(plan)
        return dict(plan), [note.name for note in self.notes if note.did == "preempted"]


def run_scheduler(
    make: Callable[..., Any], requests: Sequence[Request], n_blocks: int, block_size: int, budget: int
) -> dict[str, Any]:
    """Return all steps of a scheduler, for a page: {"requests": …, "steps": …, "problem": …}.

    make(n_blocks, block_size, budget) gives the scheduler; a request is added before the first step that is not before
    its arrival. Each step is {"used": tokens, "held": blocks, "cells": [[did, tokens, got, why], …]}, a cell for each
    request: did is "prefill", "decode", "wait", "preempted", "finished", "refused", or "" before it is there, and got
    says whether it got a token. problem is "" or a sentence on what the scheduler did that ended the run.
    """
    return _Walk(make, requests, n_blocks, block_size, budget).walk()


class _Broken(Exception):
    """A sentence on what a scheduler did that ends its timeline."""


@dataclass
class _State:
    """How far a request is; `end` is "", "finished" or "refused"."""

    request: Request
    arrives: int
    computed: int = 0
    generated: int = 0
    end: str = ""
    why: str = ""

    @property
    def remaining(self) -> int:
        return self.request.prompt + self.generated - self.computed


class _Walk:
    def __init__(self, make, requests, n_blocks, block_size, budget):
        self.make = make
        self.name = str(getattr(make, "__name__", "Scheduler"))
        self.n_blocks, self.block_size, self.budget = n_blocks, block_size, budget
        self.states = [_State(request, ceil(request.arrival)) for request in requests]
        self.steps: list[dict[str, Any]] = []
        self.problem = ""

    def walk(self):
        try:
            self.scheduler = self._call("", self.make, self.n_blocks, self.block_size, self.budget)
            while not all(state.end for state in self.states):
                if len(self.steps) == MAX_STEPS:
                    raise _Broken(f"After {MAX_STEPS} steps {self._unfinished()[0].request.name} is not finished.")
                self._step()
        except _Broken as broken:
            self.problem = str(broken)
        requests = [state.request._asdict() | {"arrival": state.arrives} for state in self.states]
        return {"requests": requests, "steps": self.steps, "problem": self.problem}

    def _step(self):
        for state in self.states:
            if state.arrives == len(self.steps):
                self._add(state)
        here = self._unfinished()
        if not here:
            self._record({}, [])
            return
        plan, preempted = self._read_plan(self._call(".step", lambda: self.scheduler.step()), here)
        self._record(plan, preempted)
        self._check_limits(plan, here)

    def _add(self, state):
        name = state.request.name
        prompt = state.request.prompt
        new = state.request.new
        needs = self._blocks(prompt + new - 1)
        try:
            self._call(".add", lambda: self.scheduler.add(name, prompt, new), refuses=needs > self.n_blocks)
        except ValueError:
            state.end = "refused"
            verb = "is" if self.n_blocks == 1 else "are"
            state.why = f"it will need {needs} blocks, and there {verb} only {self.n_blocks}"

    def _unfinished(self):
        return [state for state in self.states if not state.end and state.arrives <= len(self.steps)]

    def _call(self, method, function, *args, refuses=False):
        """Call somebody's code silently and not for ever. refuses: whether a ValueError is expected."""
        try:
            with hide_prints(), _limit_lines():
                return function(*args)
        except NotImplementedError:
            raise _Broken(f"{self.name}{method} is not written yet.") from None
        except _TooLong:
            raise _Broken(f"{self.name}{method} does not come to an end{self._name_step(method)}.") from None
        except Exception as error:
            if refuses and isinstance(error, ValueError):
                raise
            error_text = f"{type(error).__name__}: {error}".rstrip(": .")
            raise _Broken(f"{self.name}{method} raised {error_text}{self._name_step(method)}.") from None

    def _name_step(self, method):
        return f", in step {len(self.steps) + 1}" if method else ""

    def _read_plan(self, returned, here):
        """Return (plan, preempted) as a dict and a list, of numbers and names that can be drawn."""
        if not isinstance(returned, (tuple, list)) or len(returned) != 2 or not isinstance(returned[0], Mapping):
            raise _Broken(f"{self.name}.step returned {_brief(returned)}: a pair (plan, preempted) was expected.")
        known = {state.request.name: state for state in here}
        plan = {}
        if not isinstance(returned[1], (tuple, list)):
            raise _Broken(f"{self.name}.step returned {_brief(returned)}: preempted has to be a list.")
        counts = dict(returned[0])
        preempted = list(returned[1])
        for name in (*counts, *preempted):
            if not isinstance(name, str) or name not in known:
                raise _Broken(f"Step {len(self.steps) + 1} names {_brief(name)}, which is not there or is finished.")
            if name in counts and name in preempted:
                raise _Broken(f"Step {len(self.steps) + 1} plans {name} and preempts it, too.")
        for name, count in counts.items():
            try:
                plan[name] = whole("count", count)
            except (TypeError, ValueError):
                plan[name] = 0
            if not 1 <= plan[name] <= known[name].remaining:
                problem = f"{_brief(count)} tokens for {name}, of which {known[name].remaining} can be computed"
                raise _Broken(f"Step {len(self.steps) + 1} plans {problem}.")
        return plan, preempted

    def _record(self, plan, preempted):
        notes = {note.name: note for note in getattr(self.scheduler, "notes", ())} if self._is_library() else {}
        cells = [self._cell(state, plan, preempted, notes) for state in self.states]
        held = sum(self._blocks(state.computed) for state in self.states if state.request.name in plan or not state.end)
        self.steps.append({
            "used": sum(plan.values()),
            "held": self.scheduler.held if self._is_library() and self._unfinished() else held,
            "cells": cells,
        })  # fmt: skip
        for state in self.states:
            if state.generated == state.request.new:
                state.end = state.end or "finished"

    def _cell(self, state, plan, preempted, notes):
        name = state.request.name
        if state.arrives > len(self.steps):
            return ["", 0, False, ""]
        if state.end:
            return [state.end, 0, False, state.why]
        reason = notes[name].why if name in notes else ""
        if name in preempted:
            state.computed = 0
            return ["preempted", 0, False, reason or "the scheduler says so"]
        if name not in plan:
            return ["wait", 0, False, reason or "it is not in the plan"]
        did = "decode" if state.generated and state.remaining == 1 else "prefill"
        first = state.computed + 1
        count = plan[name]
        known = state.request.prompt + state.generated
        state.computed += count
        got = state.remaining == 0
        state.generated += got
        return [did, count, got, reason or f"tokens {first} to {state.computed} of {known}"]

    def _check_limits(self, plan, here):
        """What a timeline can show, and no scheduler may do."""
        step = self.steps[-1]
        at = f"In step {len(self.steps)}"
        if not plan:
            raise _Broken(f"{at} nothing is planned, though {here[0].request.name} is not finished.")
        if step["used"] > self.budget:
            raise _Broken(f"{at} {step['used']} tokens are planned, of a budget of {self.budget}.")
        if step["held"] > self.n_blocks:
            raise _Broken(f"{at} {step['held']} blocks are needed, of {self.n_blocks}.")

    def _is_library(self):
        return isinstance(self.scheduler, LibraryScheduler)

    def _blocks(self, tokens):
        return math.ceil(tokens / self.block_size)


def _brief(value):
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


class _TooLong(BaseException):
    """Somebody's code ran more lines than one call may."""


@contextmanager
def _limit_lines():
    """Let code inside run a limited number of lines: an endless loop is stopped, in any thread."""
    before = sys.gettrace()
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        if lines > _MAX_LINES:
            raise _TooLong
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


# --- what is measured and described ---------------------------------------------------------------------------------


def measures(walk: Mapping[str, Any], step: int, budget: int, n_blocks: int) -> dict[str, Any]:
    """Return what the first `step` steps come to: shares of the budget and of the blocks, 0 to 1, None before a step;
    "first" has for each request the steps from its arrival to its first token, or None; "mean" is that of those known.
    """
    steps = walk["steps"][:step]
    first: list[int | None] = []
    for row, request in enumerate(walk["requests"]):
        got = [place for place, each in enumerate(steps) if each["cells"][row][2]]
        first.append(got[0] + 1 - request["arrival"] if got else None)
    known = [wait for wait in first if wait is not None]
    return {
        "steps": step,
        "budget": sum(each["used"] for each in steps) / (budget * step) if step else None,
        "blocks": sum(each["held"] for each in steps) / (n_blocks * step) if step else None,
        "first": first,
        "mean": sum(known) / len(known) if known else None,
    }


def describe_cell(walk: Mapping[str, Any], step: int, row: int) -> str:
    """Describe what request `row` did in step `step`, counted from 0, and why."""
    request = walk["requests"][row]
    cells = [each["cells"][row] for each in walk["steps"][: step + 1]]
    did, count, got, why = cells[-1]
    head = f"Step {step + 1}"
    name = request["name"]
    got_so_far = sum(cell[2] for cell in cells)
    if not did:
        return f"{head}: {name} is not there yet. It arrives before step {request['arrival'] + 1}."
    if did == "finished":
        return f"{head}: {name} is finished."
    if did in ("wait", "preempted", "refused"):
        return f"{head}: {name} {'waits' if did == 'wait' else f'is {did}'}: {why}."
    named = f" It gets token {got_so_far} of {request['new']}." if got else ""
    end = " It is finished." if got and got_so_far == request["new"] else ""
    return f"{head}: {name} computes {count} token{'' if count == 1 else 's'}, {did}: {why}.{named}{end}"
