"""Write grades in the forms that Canvas and Moodle import.

Canvas finds a student by the number in the column ID, then by SIS ids, then by the exact name. It reads a header
`Student, ID, SIS User ID, SIS Login ID, Section` and a row `Points Possible`. An export with split names begins with
`LastName, FirstName` in place of `Student`. In an exported gradebook, the name of an assignment is followed by its
number in brackets, and the cell of an excused student holds `EX`. (Source: lib/gradebook_importer.rb and
gradebook_exporter.rb of instructure/canvas-lms.)

Moodle has two forms. In the grading worksheet of one assignment, it finds a student by the number in
`Participant 1234`; the worksheet needs the columns Identifier, Grade and Last modified (grade), and Moodle skips an
empty grade. (Source: importgradeslib.php of mod/assign/feedback/offline.) In the gradebook import, it finds a student
by a column that the teacher chooses: user name, ID number, email address or user id. There "-" means no grade, while an
empty cell would become a zero in a new column. (Source: grade/import/csv/classes/load_data.php, and docs.moodle.org,
"Grade import".)

A submission that could not be read, or that the machine failed to grade, has no grade here rather than a zero, because
a zero would count and nobody would ask again. The class summary lists such submissions.
"""

from __future__ import annotations

import csv
import html
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.errors import CourseError, one_line
from course_utils.grading.intake.late import how_late
from course_utils.grading.reports.tasks import day_title, tasks
from course_utils.grading.results import Graded, is_ungraded

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
EXPORTED = (["Student", "ID"], ["LastName", "FirstName", "ID"])  # how the header of a Canvas export begins
EXCUSED = "ex"
POINTS_POSSIBLE = "Points Possible"
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
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "−", "﹢", "﹣", "﹦", "﹫", "⁺", "⁻", "₊", "₋")
NOT_GRADED = "This file could not be graded: "  # begins the comment on a file that could not be read
MAX_GRADEBOOK_BYTES = 50 * 2**20


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


def canvas_csv(graded: Sequence[Graded], answer_key: AnswerKey = COURSE) -> str:
    """Return a new Canvas gradebook with a row for each student and a column for each day.

    An empty cell clears the grade that Canvas has. If there may be grades already, use `fill_gradebook` on an export.
    """
    days = _days(graded)
    rows = [
        [*CANVAS, *(day_title(answer_key, day) for day in days)],
        [f"    {POINTS_POSSIBLE}", *[""] * 4, *(f"{_full_points(graded, day):g}" for day in days)],
    ]
    for person in people(graded):
        scores = [_points(person.days.get(day)) for day in days]
        rows.append([_canvas_name(text_cell(person.student)), text_cell(person.lms_id), "", "", "", *scores])
    return write_csv(rows)


def moodle_csv(graded: Sequence[Graded], answer_key: AnswerKey = COURSE, filled: Filled | None = None) -> str:
    """Return a file for Moodle's gradebook import, with a row for each student and a column for each day.

    Moodle finds students by user name, ID number or email address, and asks the teacher which of them it is. A
    worksheet has the last two. Without one, students are named as in the download, which is by full name in Moodle's.

    Args:
        filled: the worksheet filled in; students who are not in it are left out.
    """
    days = _days(graded)
    identifiers = filled.identifiers if filled and filled.identifier_column else None
    first = filled.identifier_column if filled and identifiers else "Student"
    rows = [[first, *(day_title(answer_key, day) for day in days)]]
    for person in people(graded):
        name = person.student if identifiers is None else identifiers.get(person.student)
        if name is not None:
            rows.append([text_cell(name), *(_points(person.days.get(day)) or "-" for day in days)])
    return write_csv(rows)


def moodle_worksheet(graded: Sequence[Graded], day: int, answer_key: AnswerKey = COURSE) -> str:
    """Return the grading worksheet of one Moodle assignment, with a comment for each student.

    The assignment's maximum grade must equal the day's points; `fill_gradebook` scales to any maximum.
    """
    rows: list[Sequence[str]] = [MOODLE]
    for person in people([each for each in graded if each.day == day]):
        one = person.days[day]
        who = f"Participant {person.lms_id}" if person.lms_id else ""
        grades = [_points(one), f"{one.max_score:g}", "Yes"]
        rows.append([who, text_cell(person.student), "", "", *grades, "-", "-", comment(one, answer_key)])
    return write_csv(rows)


def totals_csv(graded: Sequence[Graded], answer_key: AnswerKey = COURSE, handed_in_nothing: Sequence[str] = ()) -> str:
    """Return a row for each student: points of each day, all points, the most there are, and their share in percent.

    A day that was not handed in is an empty cell, and counts as no points in the share. If something was handed in and
    has no grade, the points are those of the other days, and there is no share. The last column says so; it also says
    if a row may not be the whole of a student.

    Args:
        handed_in_nothing: names of students, for a row each.
    """
    days = _days(graded)
    most = sum(_full_points(graded, day) for day in days)
    rows = [["Student", *(day_title(answer_key, day) for day in days), "Points", "Of", "Share", "Note"]]
    for person in people(graded):
        cells = [_points(person.days.get(day)) for day in days]
        scores = [float(cell) for cell in cells if cell]
        notes = [f"no grade yet for day {day}" for day, one in person.days.items() if not _points(one)]
        notes += [] if person.days else ["no grade yet for a file that tells no day"]
        reached = f"{sum(scores):g}" if scores else ""
        share = "" if notes else f"{100 * sum(scores) / (most or 1):.0f}"
        shared = next((each.shared for each in person.days.values() if each.shared), "")
        notes += [f"may be several students called {shared}: days not joined"] if shared else []
        rows.append([text_cell(person.student), *cells, reached, f"{most:g}", share, text_cell("; ".join(notes))])
    empty = [""] * len(days)
    rows += [[text_cell(name), *empty, "0", f"{most:g}", "0", "handed in nothing"] for name in handed_in_nothing]
    return write_csv(rows)


def worksheets(graded: Sequence[Graded], answer_key: AnswerKey = COURSE) -> dict[str, str]:
    """Return, by file name, a Moodle worksheet for each day that has submissions with a participant's number."""
    days = sorted({each.day for each in graded if each.day is not None and each.lms_id})
    return {f"moodle_day{day}.csv": moodle_worksheet(graded, day, answer_key) for day in days}


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
        fill = _fill_canvas
    elif {"Identifier", "Grade", "Last modified (grade)"} <= set(header):
        fill = _fill_moodle
    else:
        raise CourseError(
            f"{exported}: neither a Canvas gradebook (its columns begin with Student, ID or LastName, FirstName, ID)"
            " nor a Moodle grading worksheet in English (Identifier, Grade, Last modified (grade)); export one of these"
        )
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    filled = fill(exported, rows, graded, answer_key)
    return replace(filled, text=mark + write_csv(rows, delimiter))


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


def text_cell(text: str) -> str:
    """Return text as one line that no spreadsheet reads as a formula: text that looks like one gets a quote before it.

    Matching does not suffer, because no name in an LMS begins like a formula, and numbers are matched before names.
    """
    line = one_line(text)
    return f"'{line}" if line.startswith(FORMULA) else line


def write_csv(rows: Iterable[Sequence[str]], delimiter: str = ",") -> str:
    """Return rows as CSV. Every cell is quoted, so that a spreadsheet with another delimiter does not split it."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


# Filling in ---------------------------------------------------------------------------------------------------------


def _fill_canvas(exported: Path, rows: list[list[str]], graded: Sequence[Graded], answer_key: AnswerKey) -> Filled:
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
    matches, unmatched = _match_rows(people(graded), students, [column_of["ID"]], [*logins, name_columns])
    matched = {id(row) for _, row in matches}
    dayless = {each.student for each in graded if each.day is None}  # may have handed in any day
    notes = list[str]()
    filled = set()  # rows that got a grade
    absent = list[tuple[int, str]]()
    handed_in_nothing = dict[int, str]()  # names by row
    for day in _days(graded):
        column = _canvas_column(exported, rows, possible, column_of["Section"], graded, day, answer_key)
        # the grades, scaled to the points that the teacher gave the assignment
        full = _full_points(graded, day)
        out_of = _parse_number(possible[column]) or full
        if out_of != full:
            notes.append(f"{header[column]} is worth {out_of:g} points there and {full:g} here: grades were scaled.")
        for person, row in matches:
            grade = _points(person.days.get(day), out_of)
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
                row[each] = _canvas_name(_quoted_name(row[each]))
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
        possible[column] = f"{_full_points(graded, day):g}"
    return column


def _is_excused(cell: str) -> bool:
    return cell.strip().casefold() == EXCUSED


def _fill_moodle(exported: Path, rows: list[list[str]], graded: Sequence[Graded], answer_key: AnswerKey) -> Filled:
    """Write grades into the rows and return what to say about them, without the text."""
    days = _days(graded)
    if len(days) > 1:
        raise CourseError(f"{exported}: a Moodle worksheet is of one assignment; grade one day at a time for it")
    header = rows[0]
    students = rows[1:]
    column_of = {name.casefold(): number for number, name in enumerate(header)}
    # whose row is whose: by Moodle's number, or else by the first of these columns in which a name occurs once
    name_columns = [(column_of[name],) for name in ("email address", "id number", "full name") if name in column_of]
    matches, unmatched = _match_rows(people(graded), students, [column_of["identifier"]], name_columns)
    notes: set[str] = set()
    filled = set()  # rows that got a grade
    retained = 0  # comments that were there before
    for person, row in matches:
        for day, one in person.days.items():
            # the comment is written before the grade, because it depends on whether there was a grade before
            if "feedback comments" in column_of:
                retained += _write_comment(row, column_of, one, answer_key, day)
            # the grade, scaled to the maximum of the assignment
            full = _full_points(graded, day)
            maximum = _parse_number(row[column_of["maximum grade"]]) if "maximum grade" in column_of else None
            out_of = maximum or full
            if out_of != full:
                notes.add(f"The assignment is worth {out_of:g} points and {full:g} here: scaled.")
            if grade := _points(one, out_of):
                row[column_of["grade"]] = grade
                filled.add(id(row))
    # no name may be read as a formula; beside an identifier, Moodle ignores names
    for row in students:
        if "full name" in column_of and row[column_of["identifier"]].strip():
            row[column_of["full name"]] = _quoted_name(row[column_of["full name"]])
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


def _match_rows(
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


# Cells --------------------------------------------------------------------------------------------------------------


def _days(graded: Iterable[Graded]) -> list[int]:
    return sorted({each.day for each in graded if each.day is not None})


def _full_points(graded: Iterable[Graded], day: int) -> float:
    return max(each.max_score for each in graded if each.day == day)


def _points(graded: Graded | None, out_of: float | None = None) -> str:
    """Return the points as an LMS reads them, scaled to `out_of`; empty if there is no grade."""
    if graded is None or is_ungraded(graded) or not graded.max_score:
        return ""
    scale = 1.0 if out_of is None else out_of / graded.max_score
    return f"{round(graded.score * scale, 2):g}"


def _parse_number(cell: str) -> float | None:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return None


def _canvas_name(name: str) -> str:
    """Return a name that Canvas does not read as its row Points Possible, which it knows by these two words."""
    return name.replace(POINTS_POSSIBLE, POINTS_POSSIBLE.replace(" ", "\u00a0"))


def _quoted_name(name: str) -> str:
    """Return a name from a teacher's file unchanged, or with a quote before it if it looks like a formula."""
    return f"'{name}" if name.lstrip().startswith(FORMULA) else name
