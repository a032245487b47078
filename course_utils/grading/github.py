"""The command that workflows on GitHub call: `python -m course_utils.grading.github`; see `reports.github`."""

import sys

from course_utils.errors import CourseError
from course_utils.grading.reports.github import main

if __name__ == "__main__":
    try:
        print(main(sys.argv[1:]))
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        sys.exit(2)
