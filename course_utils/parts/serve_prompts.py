"""Serve eight prompts to the real model, planned by the learner's scheduler, and compare each text with that alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from course_utils.models.decoder import Decoder
from course_utils.models.real import Real
from course_utils.parts.notebook import Parts
from course_utils.serving.eight_prompts import BLOCK, MAX_STEPS, N_BLOCKS, N_SLOTS, PROMPTS, LibraryBatches
from course_utils.serving.engine import Engine
from course_utils.serving.scheduler import RequestState
from course_utils.serving.traffic import Request

EXERCISE = "batch_scheduler"


@dataclass(frozen=True)
class Eight:
    """What came of the eight prompts: steps side by side and alone, and whose texts agree, token for token.

    Attributes:
        yours: whether the learner's scheduler planned the steps.
        texts: prompt -> what the model wrote.
        error: what a plan or the scheduler did that ended the run; empty if nothing did.
    """

    yours: bool
    steps: int
    alone: int
    agree: int
    texts: dict[str, str]
    error: str = ""

    def __str__(self) -> str:
        whose = "your scheduler" if self.yours else "the course's scheduler"
        if self.error:
            return f"With {whose}, in step {self.steps}: {self.error}"
        lines = [
            f"{len(self.texts)} prompts in {N_SLOTS} slots, planned by {whose}: {self.steps} steps; "
            f"one after the other: {self.alone}.",
            f"{self.agree} of {len(self.texts)} texts are token for token those that the prompts get alone.",
        ]
        return "\n".join([*lines, *(f"  {prompt} …{text!r}" for prompt, text in list(self.texts.items())[:3])])

    __repr__ = __str__


def eight_prompts(real: Real, parts: Mapping[str, Callable]) -> Eight:
    """Serve the eight prompts in one batch a step, as the learner's `BatchScheduler` plans, and each of them alone.

    parts are those of `mine("batch_scheduler")`; where it has no answer, the course's scheduler plans.
    """
    rows = parts.rows if isinstance(parts, Parts) else ()
    answers = [row.own for row in rows if row.own and row.slot.grade_id == EXERCISE]
    make = answers[0] if answers else LibraryBatches
    alone = {}
    for prompt in PROMPTS:
        engine = _engine(real, LibraryBatches, [prompt])
        alone[prompt] = engine.run()[prompt]
    engine = _engine(real, make, PROMPTS)
    try:
        replies = engine.run()
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}".rstrip(": ")
        return Eight(bool(answers), engine.scheduler.step, sum(PROMPTS.values()), 0, {}, error)
    texts = {prompt: real.tokenizer.decode(reply) for prompt, reply in replies.items()}
    agree = sum(replies[prompt] == alone[prompt] for prompt in PROMPTS)
    return Eight(bool(answers), engine.scheduler.step, sum(PROMPTS.values()), agree, texts)


def _engine(real: Real, make: Callable[..., Any], prompts: Any) -> Engine:
    engine = _PlannedEngine(real.model, make)
    for prompt in prompts:
        engine.submit(prompt, real.encode(prompt).flatten(), PROMPTS[prompt])
    return engine


class _PlannedEngine(Engine):
    """An engine whose steps somebody's `BatchScheduler` plans."""

    def __init__(self, model: Decoder, make: Callable[..., Any]) -> None:
        super().__init__(model, N_BLOCKS, BLOCK, N_BLOCKS * BLOCK, prefix_cache=False)
        self.scheduler = _Planned(make(N_SLOTS, N_BLOCKS, BLOCK), self.blocks)  # type: ignore[assignment]


class _Planned:
    """Keeps blocks and tables for somebody's plans, as `serving.Scheduler` does for its own.

    Raises ValueError for a plan that no engine can follow.
    """

    swap = False

    def __init__(self, planner: Any, blocks: Any) -> None:
        self.planner = planner
        self.blocks = blocks
        self.step = 0
        self.running: list[RequestState] = []
        self._states: dict[str, RequestState] = {}

    @property
    def unfinished(self) -> list[RequestState]:
        return list(self._states.values())

    def add(self, request: Request) -> None:
        self.planner.add(request.name, request.prompt, request.new)
        self._states[request.name] = RequestState(request)

    def plan(self) -> list[tuple[str, int]]:
        if self.step == MAX_STEPS:
            raise ValueError(f"requests are left after {MAX_STEPS} steps")
        self.step += 1
        planned = {name: int(count) for name, count in self.planner.step().items()}
        self.running = [self._states[name] for name in planned if name in self._states]
        for name, count in planned.items():
            state = self._states.get(name)
            remaining = state.remaining if state else 0
            if state is None or not 0 < count <= remaining:
                raise ValueError(f"{name!r} has {remaining} tokens to compute, and {count} are planned")
            while len(state.table) * BLOCK < state.computed + count:
                state.table.append(self.blocks.allocate())
        holding = sum(bool(state.table) for state in self._states.values())
        if holding > N_SLOTS:
            raise ValueError(f"{holding} requests run, and there are {N_SLOTS} slots")
        return list(planned.items())

    def advance(self, planned: list[tuple[str, int]]) -> list[str]:
        named = []
        for name, count in planned:
            state = self._states[name]
            state.computed += count
            if state.remaining == 0:
                state.generated += 1
                named.append(name)
                if state.generated == state.request.new:
                    for block in self._states.pop(name).table:
                        self.blocks.release(block)
        return named
