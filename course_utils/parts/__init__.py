"""Run the real model with the learner's own functions as its parts.

`mine` takes answers out of the exercise notebooks, `Real.with_parts` puts them into the model, and `compare` reports
what they change. `slots.SLOTS` lists the exercises whose answers can be parts.
"""

from course_utils.parts.compare import compare
from course_utils.parts.notebook import mine
from course_utils.parts.slots import SLOTS

__all__ = ["SLOTS", "compare", "mine"]
