"""Fill in a gradebook that a teacher exported, whichever platform it is from, and add up the days of each student."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.errors import CourseError
from course_utils.grading.reports.canvas import EXPORTED, fill_canvas
from course_utils.grading.reports.gradebook_rows import (
    Filled,
    days_of,
    full_points,
    people,
    points_cell,
    text_cell,
    write_csv,
)
from course_utils.grading.reports.moodle import fill_moodle
from course_utils.grading.reports.tasks import day_title
from course_utils.grading.results import Graded

MAX_GRADEBOOK_BYTES = 50 * 2**20


def fill_gradebook(exported: Path, graded: Sequence[Graded], answer_key: AnswerKey = COURSE) -> Filled:
    """Fill in a file that a teacher exported: a Canvas gradebook, or the Moodle worksheet of one day.

    All rows and columns stay. A grade is only set, never cleared, and is scaled to the points that the teacher gave the
    assignment. In a Canvas gradebook, a day without a column gets a new one at the end.

    Args:
        exported: path of the teacher's file.

    Raises:
        CourseError: if the file cannot be read as such an export, if two of its columns may be the same day, or if a
            Moodle worksheet would have to hold several days.
    """
    text, mark = _read_csv(exported)
    try:
        delimiter = max(",;", key=lambda sign: len(next(csv.reader(text.splitlines()[:1], delimiter=sign), ())))
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if any(row)]
    except csv.Error as error:
        raise CourseError(f"{exported}: not a CSV file ({error}); export it again") from None
    header = rows[0] if rows else []
    if any(header[: len(start)] == start for start in EXPORTED) and "Section" in header:
        fill = fill_canvas
    elif {"Identifier", "Grade", "Last modified (grade)"} <= set(header):
        fill = fill_moodle
    else:
        raise CourseError(
            f"{exported}: neither a Canvas gradebook (its columns begin with Student, ID or LastName, FirstName, ID)"
            " nor a Moodle grading worksheet in English (Identifier, Grade, Last modified (grade)); export one of these"
        )
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    filled = fill(exported, rows, graded, answer_key)
    return replace(filled, text=mark + write_csv(rows, delimiter))


def _read_csv(path: Path) -> tuple[str, str]:
    """Return the text of a CSV file, and its byte order mark if it begins with one."""
    try:
        if path.stat().st_size > MAX_GRADEBOOK_BYTES:
            raise CourseError(f"{path}: larger than any gradebook ({MAX_GRADEBOOK_BYTES >> 20} MiB)")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CourseError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise CourseError(f"{path}: not in UTF-8; export it again and do not save it from a spreadsheet") from None
    return (text[1:], "\ufeff") if text.startswith("\ufeff") else (text, "")


def totals_csv(graded: Sequence[Graded], answer_key: AnswerKey = COURSE, handed_in_nothing: Sequence[str] = ()) -> str:
    """Return a row for each student: points of each day, all points, the most there are, and their share in percent.

    A day that was not handed in is an empty cell, and counts as no points in the share. If something was handed in and
    has no grade, the points are those of the other days, and there is no share. The last column says so; it also says
    if a row may not be the whole of a student.

    Args:
        handed_in_nothing: names of students, for a row each.
    """
    days = days_of(graded)
    most = sum(full_points(graded, day) for day in days)
    rows = [["Student", *(day_title(answer_key, day) for day in days), "Points", "Of", "Share", "Note"]]
    for person in people(graded):
        cells = [points_cell(person.days.get(day)) for day in days]
        scores = [float(cell) for cell in cells if cell]
        notes = [f"no grade yet for day {day}" for day, one in person.days.items() if not points_cell(one)]
        notes += [] if person.days else ["no grade yet for a file that tells no day"]
        reached = f"{sum(scores):g}" if scores else ""
        share = "" if notes else f"{100 * sum(scores) / (most or 1):.0f}"
        shared = next((each.shared for each in person.days.values() if each.shared), "")
        notes += [f"may be several students called {shared}: days not joined"] if shared else []
        rows.append([text_cell(person.student), *cells, reached, f"{most:g}", share, text_cell("; ".join(notes))])
    empty = [""] * len(days)
    rows += [[text_cell(name), *empty, "0", f"{most:g}", "0", "handed in nothing"] for name in handed_in_nothing]
    return write_csv(rows)
