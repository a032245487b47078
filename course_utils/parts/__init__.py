"""Run the real model with the learner's own functions as its parts.

`mine` takes answers out of the exercise notebooks, `Real.with_parts` puts them into the model, and `compare` reports
what they change. `collect` takes all answers that pass, for the real model and for one to train, and `shares` says what
each does in the real one. `memory_of_tiles` counts what day 6's tiles take on a long text, and `eight_prompts` serves
eight prompts as day 7's scheduler plans. `slots.SLOTS` lists the exercises whose answers can be parts.
"""

from course_utils.parts.collect import collect
from course_utils.parts.compare import compare
from course_utils.parts.notebook import mine
from course_utils.parts.serve_prompts import eight_prompts
from course_utils.parts.shares import shares
from course_utils.parts.slots import SLOTS
from course_utils.parts.tiles import memory_of_tiles

__all__ = ["SLOTS", "collect", "compare", "eight_prompts", "memory_of_tiles", "mine", "shares"]
