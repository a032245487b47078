"""Eight prompts in four slots, and the course's scheduler in the form in which day 7's exercise asks for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.serving.scheduler import Scheduler
from course_utils.serving.traffic import Request

PROMPTS = {  # what is asked, and how many tokens are to come
    "The capital of France is": 8,
    "Why is the sky blue?": 3,
    "Write a haiku about rain.": 5,
    "Count from one to five:": 4,
    "The opposite of hot is": 7,
    "Name three fruits.": 3,
    "A parcel arrived this morning, and": 6,
    "Water boils at": 4,
}
N_SLOTS = 4
BLOCK = 8
N_BLOCKS = 16
MAX_STEPS = 200


class LibraryBatches:
    """The course's `serving.Scheduler`, called as the exercise calls one: whole prompts, and a number of slots."""

    def __init__(self, n_slots: int, n_blocks: int, block_size: int) -> None:
        self._scheduler = Scheduler(n_blocks, block_size, n_blocks * block_size, n_slots)

    def add(self, name: str, prompt: int, new: int) -> None:
        self._scheduler.add(Request(name, self._scheduler.step, prompt, new))

    def step(self) -> dict[str, int]:
        planned = self._scheduler.plan()
        self._scheduler.advance(planned)
        return dict(planned)


def count_steps(make: Callable[..., Any] = LibraryBatches) -> int:
    """Return the steps that a scheduler takes for the eight prompts, as if each had six tokens; no model is needed."""
    scheduler = make(N_SLOTS, N_BLOCKS, BLOCK)
    left = dict(PROMPTS)
    for prompt, new in PROMPTS.items():
        scheduler.add(prompt, 6, new)
    steps = 0
    while left and steps < MAX_STEPS:
        for name in scheduler.step():
            left[name] -= 1
        left = {name: new for name, new in left.items() if new}
        steps += 1
    return steps
