"""Guesses at what a lesson computes: the questions, how near each guess came, and the files that keep the guesses.

A learner's guesses are stored in `guesses/` in the course's folder, one file per day, and are sent nowhere. Importing
this package loads nothing heavy.
"""

from course_utils.guesses.nearness import Nearness, brief, judge
from course_utils.guesses.question import Question
from course_utils.guesses.store import StoredGuess, keep, read
from course_utils.guesses.summary import in_a_line, summed_up, tendency

__all__ = [
    "Nearness",
    "Question",
    "StoredGuess",
    "brief",
    "in_a_line",
    "judge",
    "keep",
    "read",
    "summed_up",
    "tendency",
]
