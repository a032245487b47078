"""Write grades in the forms that Canvas imports.

Canvas finds a student by the number in the column ID, then by SIS ids, then by the exact name. It reads a header
`Student, ID, SIS User ID, SIS Login ID, Section` and a row `Points Possible`. An export with split names begins with
`LastName, FirstName` in place of `Student`. In an exported gradebook, the name of an assignment is followed by its
number in brackets, and the cell of an excused student holds `EX`. (Source: lib/gradebook_importer.rb and
gradebook_exporter.rb of instructure/canvas-lms.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.errors import CourseError, one_line
from course_utils.grading.reports.gradebook_rows import (
    Filled,
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
from course_utils.grading.reports.tasks import day_title
from course_utils.grading.results import Graded

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
EXPORTED = (["Student", "ID"], ["LastName", "FirstName", "ID"])  # how the header of a Canvas export begins
EXCUSED = "ex"
POINTS_POSSIBLE = "Points Possible"


def canvas_csv(graded: Sequence[Graded], answer_key: AnswerKey = COURSE) -> str:
    """Return a new Canvas gradebook with a row for each student and a column for each day.

    An empty cell clears the grade that Canvas has. If there may be grades already, use `fill_gradebook` on an export.
    """
    days = days_of(graded)
    rows = [
        [*CANVAS, *(day_title(answer_key, day) for day in days)],
        [f"    {POINTS_POSSIBLE}", *[""] * 4, *(f"{full_points(graded, day):g}" for day in days)],
    ]
    for person in people(graded):
        scores = [points_cell(person.days.get(day)) for day in days]
        rows.append([_canvas_name(text_cell(person.student)), text_cell(person.lms_id), "", "", "", *scores])
    return write_csv(rows)


def fill_canvas(exported: Path, rows: list[list[str]], graded: Sequence[Graded], answer_key: AnswerKey) -> Filled:
    """Write grades into the rows and return what to say about them, without the text."""
    header = rows[0]
    column_of = {name: header.index(name) for name in CANVAS if name in header}
    possible = next((r for r in rows[1:4] if r[0].strip() == POINTS_POSSIBLE and not r[column_of["ID"]].strip()), None)
    if possible is None:
        raise CourseError(f"{exported}: a Canvas gradebook without its row {POINTS_POSSIBLE}; export it again")
    students = [row for row in rows[rows.index(possible) + 1 :] if any(cell.strip() for cell in row)]
    # whose row is whose: by Canvas's number, or else by a login or the name, in one column or two
    logins = [(column_of[name],) for name in ("SIS User ID", "SIS Login ID") if name in column_of]
    name_columns = tuple(range(column_of["ID"]))
    matches, unmatched = match_rows(people(graded), students, [column_of["ID"]], [*logins, name_columns])
    matched = {id(row) for _, row in matches}
    dayless = {each.student for each in graded if each.day is None}  # may have handed in any day
    notes = list[str]()
    filled = set()  # rows that got a grade
    absent = list[tuple[int, str]]()
    handed_in_nothing = dict[int, str]()  # names by row
    for day in days_of(graded):
        column = _canvas_column(exported, rows, possible, column_of["Section"], graded, day, answer_key)
        # the grades, scaled to the points that the teacher gave the assignment
        full = full_points(graded, day)
        out_of = parse_number(possible[column]) or full
        if out_of != full:
            notes.append(f"{header[column]} is worth {out_of:g} points there and {full:g} here: grades were scaled.")
        for person, row in matches:
            grade = points_cell(person.days.get(day), out_of)
            if grade and _is_excused(row[column]):
                notes.append(f"{one_line(person.student)} is excused from {header[column]}: left as it is.")
            elif grade:
                row[column] = grade
                filled.add(id(row))
        # the students who handed in nothing for this day
        present = {id(row) for person, row in matches if day in person.days or person.student in dayless}
        for row in students:
            if id(row) not in present and not _is_excused(row[column]):
                name = ", ".join(row[each] for each in name_columns if row[each])
                absent.append((day, name))
                if id(row) not in matched:
                    handed_in_nothing[id(row)] = name
    # no name may be read as a formula, or as the row of possible points; beside an ID, Canvas ignores names
    for row in students:
        if row[column_of["ID"]].strip():
            for each in name_columns:
                row[each] = _canvas_name(quoted_name(row[each]))
    return Filled(
        students=len(filled),
        unmatched=tuple(unmatched),
        notes=tuple(notes),
        absent=tuple(absent),
        handed_in_nothing=tuple(handed_in_nothing.values()),
    )


def _canvas_column(
    exported: Path,
    rows: list[list[str]],
    possible: list[str],
    section: int,
    graded: Sequence[Graded],
    day: int,
    answer_key: AnswerKey,
) -> int:
    """Return the index of a day's column, after adding it at the end if there is none."""
    header = rows[0]
    title = day_title(answer_key, day)
    column = _column_of_day(exported, header, possible, section, day, title)
    if column == len(header):
        for row in rows:
            row.append("")
        header[column] = title
        possible[column] = f"{full_points(graded, day):g}"
    return column


def _column_of_day(exported: Path, header: list[str], possible: list[str], section: int, day: int, title: str) -> int:
    """Return the index of the column for a day in a Canvas gradebook; one past the end if it has no such column."""
    named = {
        number: re.sub(r"\s\(\d+\)\Z", "", name).strip().casefold()
        for number, name in enumerate(header)
        if number > section and "read only" not in possible[number]
    }
    exact = [number for number, name in named.items() if name == title.casefold()]
    loose = [number for number, name in named.items() if re.match(rf"day\s*{day}\b", name)]
    fitting = exact or loose
    if len(fitting) > 1:
        several = " and ".join(one_line(header[number], 80) for number in fitting)
        raise CourseError(f"{exported}: {several} may both be day {day}; give one of them the name {title!r}")
    return fitting[0] if fitting else len(header)


def _is_excused(cell: str) -> bool:
    return cell.strip().casefold() == EXCUSED


def _canvas_name(name: str) -> str:
    """Return a name that Canvas does not read as its row Points Possible, which it knows by these two words."""
    return name.replace(POINTS_POSSIBLE, POINTS_POSSIBLE.replace(" ", "\u00a0"))
