"""`python -m course_utils` is `course`."""

from course_utils.cli import run

run()
