"""Guesses at what a lesson computes: what was asked, how near a guess came, and where guesses are kept.

A learner's guesses lie in `guesses/` in the course's folder, a file a day, and go nowhere else. Nothing heavy loads
here.
"""

from course_utils.guesses.asked import Asked
from course_utils.guesses.nearness import Verdict, brief, judge
from course_utils.guesses.store import Kept, keep, read
from course_utils.guesses.summary import in_a_line, summed_up, tendency

__all__ = ["Asked", "Kept", "Verdict", "brief", "in_a_line", "judge", "keep", "read", "summed_up", "tendency"]
