"""The learner's own functions as parts of the real model.

`mine` takes answers out of the exercise notebooks, `Real.with_parts` runs the model with them, and `compare` says what
they change. `slots.SLOTS` lists the exercises whose answers can be parts.
"""

from course_utils.parts.compare import compare
from course_utils.parts.notebook import mine
from course_utils.parts.slots import SLOTS

__all__ = ["SLOTS", "compare", "mine"]
