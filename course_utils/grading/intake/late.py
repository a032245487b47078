"""What counts as late: what the platform marked as late. The course itself knows no due dates.

Canvas writes LATE into the names of the files of a late submission. Moodle's names do not say, but the column Status of
its grading worksheet does, and how late, as in "Submitted for grading - 21 hours 10 mins late".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from course_utils.errors import one_line
from course_utils.grading.results import Graded

CANVAS_MARK = "LATE"  # after the student's name, or before that of an anonymous one; `names.py` reads both
TITLE = "Late"  # of the list in the summary of a class
COLUMNS = ("day", "student", "how late")


def how_late(column_of: Mapping[str, int], row: Sequence[str]) -> str:
    """Return what a Moodle worksheet says about late work and when it was handed in; "" if it was not late.

    Args:
        column_of: index of each column, by its name in lower case.
    """
    cells = {name: one_line(row[number]) for name, number in column_of.items()}
    match = re.search(r"[^-]*\blate\b", cells.get("status", ""))
    if not match:
        return ""
    handed_in = cells.get("last modified (submission)")
    return f"{match[0].strip()}, {handed_in}" if handed_in else match[0].strip()


def with_lateness(graded: Sequence[Graded], late: Mapping[tuple[int, str], str]) -> list[Graded]:
    """Return the submissions with what a gradebook says about late ones, by day and student."""
    lateness = [late.get((each.day or 0, each.student), "") for each in graded]
    return [replace(each, late=True, how_late=how) if how else each for each, how in zip(graded, lateness, strict=True)]


def late_rows(graded: Sequence[Graded]) -> list[tuple[str, str, str]]:
    """Return the rows of the list of late submissions, in COLUMNS."""
    return [("?" if each.day is None else str(each.day), each.student, each.how_late) for each in graded if each.late]
