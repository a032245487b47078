"""Problems for a pencil without end: each has a number, friendly figures, and steps that are judged one by one.

`problem(kind, number)` is the same for everybody. `Problem.judge` finds the first wrong step, names the slip where it
is known, and counts what follows rightly from a wrong value as right.
"""

from __future__ import annotations

from .kinds import KINDS, problem
from .problem import Mark, Problem, Slip, Step
from .reading import read_entry

__all__ = ["KINDS", "Mark", "Problem", "Slip", "Step", "problem", "read_entry"]
