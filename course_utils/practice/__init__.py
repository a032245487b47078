"""Problems for a pencil, without end: each has a number, simple figures, and steps that are judged one by one.

`problem(kind, number)` gives everybody the same problem. `Problem.judge` finds the first wrong step, names the misstep
where it is known, and accepts a step that follows correctly from a wrong earlier value.
"""

from __future__ import annotations

from .kinds import KINDS, problem
from .problem import Mark, Misstep, Problem, Step
from .reading import read_entry

__all__ = ["KINDS", "Mark", "Misstep", "Problem", "Step", "problem", "read_entry"]
