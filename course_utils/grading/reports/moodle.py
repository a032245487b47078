"""Write grades in the forms that Moodle imports.

Moodle has two forms. In the grading worksheet of one assignment, it finds a student by the number in
`Participant 1234`; the worksheet needs the columns Identifier, Grade and Last modified (grade), and Moodle skips an
empty grade. (Source: importgradeslib.php of mod/assign/feedback/offline.) In the gradebook import, it finds a student
by a column that the teacher chooses: user name, ID number, email address or user id. There "-" means no grade, while an
empty cell would become a zero in a new column. (Source: grade/import/csv/classes/load_data.php, and docs.moodle.org,
"Grade import".)
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.errors import CourseError, one_line
from course_utils.grading.intake.late import how_late
from course_utils.grading.reports.gradebook_rows import (
    Filled,
    Person,
    days_of,
    full_points,
    match_rows,
    parse_number,
    people,
    points_cell,
    quoted_name,
    text_cell,
    write_csv,
)
from course_utils.grading.reports.tasks import day_title, tasks
from course_utils.grading.results import Graded

MOODLE = (
    "Identifier",
    "Full name",
    "Email address",
    "Status",
    "Grade",
    "Maximum Grade",
    "Grade can be changed",
    "Last modified (submission)",
    "Last modified (grade)",
    "Feedback comments",
)
NOT_GRADED = "This file could not be graded: "  # begins the comment on a file that could not be read


def moodle_csv(graded: Sequence[Graded], answer_key: AnswerKey = COURSE, filled: Filled | None = None) -> str:
    """Return a file for Moodle's gradebook import, with a row for each student and a column for each day.

    Moodle finds students by user name, ID number or email address, and asks the teacher which of them it is. A
    worksheet has the last two. Without one, students are named as in the download, which is by full name in Moodle's.

    Args:
        filled: the worksheet filled in; students who are not in it are left out.
    """
    days = days_of(graded)
    identifiers = filled.identifiers if filled and filled.identifier_column else None
    first = filled.identifier_column if filled and identifiers else "Student"
    rows = [[first, *(day_title(answer_key, day) for day in days)]]
    for person in people(graded):
        name = person.student if identifiers is None else identifiers.get(person.student)
        if name is not None:
            rows.append([text_cell(name), *(points_cell(person.days.get(day)) or "-" for day in days)])
    return write_csv(rows)


def moodle_worksheet(graded: Sequence[Graded], day: int, answer_key: AnswerKey = COURSE) -> str:
    """Return the grading worksheet of one Moodle assignment, with a comment for each student.

    The assignment's maximum grade must equal the day's points; `fill_gradebook` scales to any maximum.
    """
    rows: list[Sequence[str]] = [MOODLE]
    for person in people([each for each in graded if each.day == day]):
        one = person.days[day]
        who = f"Participant {person.lms_id}" if person.lms_id else ""
        grades = [points_cell(one), f"{one.max_score:g}", "Yes"]
        rows.append([who, text_cell(person.student), "", "", *grades, "-", "-", comment(one, answer_key)])
    return write_csv(rows)


def worksheets(graded: Sequence[Graded], answer_key: AnswerKey = COURSE) -> dict[str, str]:
    """Return, by file name, a Moodle worksheet for each day that has submissions with a participant's number."""
    days = sorted({each.day for each in graded if each.day is not None and each.lms_id})
    return {f"moodle_day{day}.csv": moodle_worksheet(graded, day, answer_key) for day in days}


def comment(graded: Graded, answer_key: AnswerKey = COURSE) -> str:
    """Return the comment that Moodle shows beside a grade, as HTML: the exercises that did not pass, and why."""
    if graded.status == "unreadable":
        return f"{NOT_GRADED}{html.escape(one_line(graded.message))}"
    known = tasks(answer_key, graded.day)
    lines = [
        f"{known[each.id].title if each.id in known else each.id}: {each.score:g} of {each.max_score:g}. {each.message}"
        for each in graded.exercises
        if each.status != "passed"
    ]
    return "<br>".join(html.escape(one_line(line)) for line in lines)


def _without_ours(text: str, answer_key: AnswerKey, day: int) -> str:
    """Return a comment of a worksheet without the lines that `comment` wrote in an earlier run."""
    titles = "|".join(re.escape(html.escape(task.title)) for task in tasks(answer_key, day).values())
    ours = re.compile(rf"\s*({NOT_GRADED}|({titles}): [\d.]+ of [\d.]+\. )")
    lines = re.split(r"<br\s*/?>", text)
    others = [line for line in lines if not ours.match(line)]
    return text if len(others) == len(lines) else "<br>".join(others)


def fill_moodle(exported: Path, rows: list[list[str]], graded: Sequence[Graded], answer_key: AnswerKey) -> Filled:
    """Write grades into the rows and return what to say about them, without the text."""
    days = days_of(graded)
    if len(days) > 1:
        raise CourseError(f"{exported}: a Moodle worksheet is of one assignment; grade one day at a time for it")
    header = rows[0]
    students = rows[1:]
    column_of = {name.casefold(): number for number, name in enumerate(header)}
    # whose row is whose: by Moodle's number, or else by the first of these columns in which a name occurs once
    name_columns = [(column_of[name],) for name in ("email address", "id number", "full name") if name in column_of]
    matches, unmatched = match_rows(people(graded), students, [column_of["identifier"]], name_columns)
    notes: set[str] = set()
    filled = set()  # rows that got a grade
    retained = 0  # comments that were there before
    for person, row in matches:
        for day, one in person.days.items():
            # the comment is written before the grade, because it depends on whether there was a grade before
            if "feedback comments" in column_of:
                retained += _write_comment(row, column_of, one, answer_key, day)
            # the grade, scaled to the maximum of the assignment
            full = full_points(graded, day)
            maximum = parse_number(row[column_of["maximum grade"]]) if "maximum grade" in column_of else None
            out_of = maximum or full
            if out_of != full:
                notes.add(f"The assignment is worth {out_of:g} points and {full:g} here: scaled.")
            if grade := points_cell(one, out_of):
                row[column_of["grade"]] = grade
                filled.add(id(row))
    # no name may be read as a formula; beside an identifier, Moodle ignores names
    for row in students:
        if "full name" in column_of and row[column_of["identifier"]].strip():
            row[column_of["full name"]] = quoted_name(row[column_of["full name"]])
    if retained:
        notes.add(f"Feedback comments that were there and stay, with ours below them: {retained}.")
    # who handed in nothing, and who was late
    present = {id(row) for _, row in matches}
    name = column_of.get("full name", column_of["identifier"])
    away = tuple(row[name] for row in students if id(row) not in present)
    absent = tuple((day, each) for day in days for each in away)
    late = {(day, who.student): how for who, row in matches for day in who.days if (how := how_late(column_of, row))}
    identifier_column, identifiers = _identifiers(header, column_of, matches)
    return Filled(
        students=len(filled),
        unmatched=tuple(unmatched),
        notes=tuple(sorted(notes)),
        absent=absent,
        late=late,
        identifier_column=identifier_column,
        identifiers=identifiers,
        handed_in_nothing=away,
    )


def _write_comment(
    row: list[str], column_of: Mapping[str, int], graded: Graded, answer_key: AnswerKey, day: int
) -> bool:
    """Write our comment below the teacher's in a row, and return whether there was one of the teacher's."""
    cell = column_of["feedback comments"]
    graded_by_hand = bool(row[column_of["grade"]].strip())
    ours = "" if graded.status == "unreadable" and graded_by_hand else comment(graded, answer_key)
    theirs = _without_ours(row[cell], answer_key, day)
    row[cell] = "<br>".join(part for part in (theirs, ours) if part)
    return bool(theirs)


def _identifiers(
    header: list[str], column_of: Mapping[str, int], matches: list[tuple[Person, list[str]]]
) -> tuple[str, dict[str, str]]:
    """Return the column by which Moodle's gradebook import can find these students, and what it holds by student."""
    columns = [column_of[name] for name in ("id number", "email address") if name in column_of]
    for column in columns:
        if matches and all(row[column].strip() for _, row in matches):
            return header[column], {person.student: row[column].strip() for person, row in matches}
    return "", {}
