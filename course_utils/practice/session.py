"""One problem in the terminal, step by step."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from .kinds import KINDS, problem
from .problem import Mark, Problem, describe_shape
from .reading import read_entry

DRAWN_FROM = 10_000
HOW = "Two decimals are enough. Rows are separated by ; and fractions such as 1/3 are fine."
LEAVE_OUT = "Enter alone skips a step."
SIGNS = {"right": "✓", "follows": "✓", "wrong": "✗", "empty": "·"}


def practise(
    kind: str, number: int | None, ask: Callable[[str], str] = input, tell: Callable[[str], None] = print
) -> tuple[Mark, ...]:
    """Pose a problem, ask for each step, show which was the first wrong one, and return the marks.

    Args:
        number: which problem; None for a random one.
        ask: shows a prompt and returns the line that was typed; an EOFError leaves the step out.
        tell: shows a text.

    Raises:
        UnknownKind: as in `problem`.
    """
    posed = problem(kind, random.randrange(DRAWN_FROM) if number is None else number)
    tell(f"{kind}, number {posed.number}\n\n{posed.statement}\n\n{HOW} {LEAVE_OUT}\n")
    entered = {}
    for step, right in zip(posed.steps, posed.solution().values(), strict=True):
        prompt = f"{step.name}: {step.task} ({describe_shape(right.shape)})"
        entered[step.name] = _entry(posed, step.name, prompt, ask, tell)
    marks = posed.judge(entered)
    tell("")
    for mark in marks:
        tell(f"{SIGNS[mark.status]} {mark}")
    first = next((pair for pair in zip(posed.steps, marks, strict=True) if pair[1].status == "wrong"), None)
    if first is not None:
        step, mark = first
        tell(f"\nThe first wrong step is {step.name}. The right answer is {write_typed(mark.right, step.count)}.")
    tell(f"\nThe same again: course practice {kind} --number {posed.number}")
    return marks


def describe_kinds() -> str:
    """Return the kinds of practice as text, one per line, with what each asks for."""
    width = max(map(len, KINDS))
    lines = []
    for kind in KINDS:
        steps = ", ".join(step.name for step in problem(kind, 0).steps)
        lines.append(f"    course practice {kind:{width}}  {steps}")
    return "\n".join(["Kinds of practice, and the steps that each asks for:", *lines])


def write_typed(values: np.ndarray, count: bool = False) -> str:
    """Return numbers as they can be typed: to two decimals, and counts below 1 to three digits."""
    rows = np.atleast_2d(values)
    return "; ".join(" ".join(short(x, count) for x in row) for row in rows)


def _entry(posed: Problem, name: str, prompt: str, ask: Callable[[str], str], tell: Callable[[str], None]) -> Any:
    """Return the value that was typed for a step, asking again until it can be read."""
    while True:
        try:
            text = ask(f"{prompt}\n> ")
        except EOFError:
            return None
        try:
            value = read_entry(text)
            posed.judge({name: value})  # raises ValueError for a wrong shape
        except ValueError as error:
            tell(str(error))
        else:
            return value


def short(x: float, count: bool = False) -> str:
    """Return one number in the form of `write_typed`."""
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    decimals = 2 - math.floor(math.log10(abs(x))) if count and 0 < abs(x) < 1 else 2
    return f"{x:.{decimals}f}".rstrip("0").rstrip(".")
