"""The learner's own functions as parts of the real model.

`mine` takes answers out of the exercise notebooks, `Real.with_parts` runs the model on them, `compare` says what they
change. `slots.SLOTS` lists what an exercise can fill.
"""

from course_utils.parts.compare import compare
from course_utils.parts.notebook import mine
from course_utils.parts.slots import SLOTS

__all__ = ["SLOTS", "compare", "mine"]
