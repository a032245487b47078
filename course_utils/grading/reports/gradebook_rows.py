"""What gradebooks for Canvas and for Moodle share: students with their submissions, their rows, and cells.

A submission that could not be read, or that the machine failed to grade, has no grade here rather than a zero, because
a zero would count and nobody would ask again. The class summary lists such submissions.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.errors import one_line
from course_utils.grading.results import Graded, is_ungraded

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "−", "﹢", "﹣", "﹦", "﹫", "⁺", "⁻", "₊", "₋")


@dataclass(frozen=True)
class Person:
    """A student with their submissions by day.

    Attributes:
        lms_id: Moodle's or Canvas's number in the submissions' names; "" if they differ.
    """

    student: str
    lms_id: str
    days: Mapping[int, Graded]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A teacher's exported file with the grades filled in.

    Attributes:
        text: content of the file, to be written unchanged; "" until `fill_gradebook` has made it.
        students: number of students who got a grade in it.
        unmatched: students who have no row in it, or who share one.
        notes: sentences about what else a teacher should know.
        absent: the day and the name of each student in it who handed in nothing for that day and is not excused.
        identifier_column: the column of a Moodle worksheet, ID number or else Email address, that all students in it
            have; "" if there is none.
        identifiers: what that column holds, by student.
        handed_in_nothing: the names of those in `absent` who handed in nothing at all.
        late: by day and student, how late work was that came late, see `intake.late`.
    """

    text: str = ""
    students: int
    unmatched: tuple[str, ...]
    notes: tuple[str, ...] = ()
    absent: tuple[tuple[int, str], ...] = ()
    late: Mapping[tuple[int, str], str] = field(default_factory=dict)
    identifier_column: str = ""
    identifiers: Mapping[str, str] = field(default_factory=dict)
    handed_in_nothing: tuple[str, ...] = ()


def people(graded: Iterable[Graded]) -> list[Person]:
    """Group submissions by student, in order. If a student handed in a day several times, the last submission counts.

    Two students with the same name stay apart if they handed in the same day under different numbers.
    """
    by_name: dict[str, dict[int | None, dict[str, Graded]]] = defaultdict(lambda: defaultdict(dict))
    for each in graded:
        by_name[each.student][each.day][each.lms_id] = each
    persons = []
    for student, days in by_name.items():
        numbers = list(dict.fromkeys(lms_id for of_day in days.values() for lms_id in of_day))
        if any(len(of_day) > 1 for of_day in days.values()):
            # several students of one name: one person for each number
            for number in numbers:
                own = {day: of_day[number] for day, of_day in days.items() if day is not None and number in of_day}
                persons.append(Person(student, number, own))
        else:
            own = {day: next(iter(of_day.values())) for day, of_day in days.items() if day is not None}
            persons.append(Person(student, numbers[0] if len(numbers) == 1 else "", own))
    return persons


def match_rows(
    persons: list[Person], rows: list[list[str]], numbers: list[int], names: Sequence[tuple[int, ...]]
) -> tuple[list[tuple[Person, list[str]]], list[str]]:
    """Return pairs of a person and their row, and the names of the persons without a row.

    A person with a number is matched by it alone, another one by the first of the name columns (one column, or last and
    first name) in which exactly one row has their name. If two persons match the same row, neither of them gets it.
    """
    by_number = {re.sub(r"\D", "", row[column]): row for column in numbers for row in rows}
    by_name = [_rows_by_name(rows, columns) for columns in names]
    claims: dict[int, list[tuple[Person, list[str]]]] = defaultdict(list)
    unmatched = []
    for person in persons:
        namesakes = (rows_of.get(_plain_name(person.student), ()) for rows_of in by_name)
        row_of_name = next((each[0] for each in namesakes if len(each) == 1), None)
        row = by_number.get(person.lms_id) if person.lms_id else row_of_name
        if row is None:
            unmatched.append(person.student)
        else:
            claims[id(row)].append((person, row))
    matches = [claim[0] for claim in claims.values() if len(claim) == 1]
    unmatched += [person.student for claim in claims.values() if len(claim) > 1 for person, _ in claim]
    return matches, unmatched


def _rows_by_name(rows: list[list[str]], columns: tuple[int, ...]) -> dict[str, list[list[str]]]:
    """Return rows by the name in one column, or in last and first name; `Lovelace, Ada` is also Ada Lovelace."""
    by_name = defaultdict(list)
    for row in rows:
        whole = ", ".join(row[column] for column in columns)
        last, _, first = whole.partition(",")
        for name in {_plain_name(whole), _plain_name(f"{first} {last}")} - {"", ","}:
            by_name[name].append(row)
    return by_name


def _plain_name(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


# Cells --------------------------------------------------------------------------------------------------------------


def days_of(graded: Iterable[Graded]) -> list[int]:
    return sorted({each.day for each in graded if each.day is not None})


def full_points(graded: Iterable[Graded], day: int) -> float:
    return max(each.max_score for each in graded if each.day == day)


def points_cell(graded: Graded | None, out_of: float | None = None) -> str:
    """Return the points as an LMS reads them, scaled to `out_of`; empty if there is no grade."""
    if graded is None or is_ungraded(graded) or not graded.max_score:
        return ""
    scale = 1.0 if out_of is None else out_of / graded.max_score
    return f"{round(graded.score * scale, 2):g}"


def parse_number(cell: str) -> float | None:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return None


def text_cell(text: str) -> str:
    """Return text as one line that no spreadsheet reads as a formula: text that looks like one gets a quote before it.

    Matching does not suffer, because no name in an LMS begins like a formula, and numbers are matched before names.
    """
    line = one_line(text)
    return f"'{line}" if line.startswith(FORMULA) else line


def quoted_name(name: str) -> str:
    """Return a name from a teacher's file unchanged, or with a quote before it if it looks like a formula."""
    return f"'{name}" if name.lstrip().startswith(FORMULA) else name


def write_csv(rows: Iterable[Sequence[str]], delimiter: str = ",") -> str:
    """Return rows as CSV. Every cell is quoted, so that a spreadsheet with another delimiter does not split it."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()
