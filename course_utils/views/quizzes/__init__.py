"""The questions of the lessons' quizzes, kept out of the notebooks so that nobody reads the answers first."""

from course_utils.views.quizzes.day1 import DAY_1
from course_utils.views.quizzes.day2 import DAY_2
from course_utils.views.quizzes.day3 import DAY_3
from course_utils.views.quizzes.day4 import DAY_4
from course_utils.views.quizzes.day5 import DAY_5
from course_utils.views.quizzes.day6 import DAY_6

__all__ = ["DAY_1", "DAY_2", "DAY_3", "DAY_4", "DAY_5", "DAY_6"]
