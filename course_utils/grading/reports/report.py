"""Write grades as JSON for programs, CSV for gradebooks, JUnit for CI, and Markdown and a table for people."""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.verdict import JOINT
from course_utils.errors import CourseError, one_line
from course_utils.files import write_all, write_whole
from course_utils.grading.intake import late
from course_utils.grading.intake.answers import LONG
from course_utils.grading.reports.canvas import canvas_csv
from course_utils.grading.reports.feedback import feedback_path, feedback_zips
from course_utils.grading.reports.gradebook import fill_gradebook, totals_csv
from course_utils.grading.reports.gradebook_rows import Filled, text_cell, write_csv
from course_utils.grading.reports.moodle import moodle_csv, worksheets
from course_utils.grading.reports.tasks import day_title, tasks
from course_utils.grading.results import Graded, Result, is_ungraded

MAX_SUMMARY_BYTES = 900_000  # bytes; GitHub drops a job summary of more than 1 MiB
HARDEST = 10
BINS = 10
GRADEBOOK = "gradebook.csv"
SENT = (GRADEBOOK, "moodle_day*.csv", "feedback_*.zip", "feedback/*/*.html")  # what a teacher sends or uploads
WATCHED = ("unreadable", "timeout", "killed", "forbidden")


def write_reports(
    graded: Sequence[Graded],
    folder: Path,
    *,
    notes: Sequence[str] = (),
    filled: Filled | None = None,
    answer_key: AnswerKey = COURSE,
    is_one_learner: bool = False,
    links_feedback: bool = True,
) -> list[str]:
    """Write grades.json, grades.csv, junit.xml, summary.md and the files for Canvas and Moodle into a folder.

    Args:
        graded: submissions; the feedback pages of those that came from Canvas or Moodle are in the folder already.
        notes: lines for the summary of a class, such as how student code was confined.
        filled: the teacher's gradebook, if one was filled in.
        is_one_learner: all notebooks are one learner's own: write a summary of the days, and no files for Canvas and
            Moodle.
        links_feedback: as for `own_summary`.

    Returns:
        the files for the class's platform and the pages of feedback in the folder that are of an earlier run.

    Raises:
        CourseError: if a file cannot be written in the folder.
    """
    open_folder(folder)
    reports: dict[str, str | bytes] = {
        "grades.json": as_json(graded),
        "grades.csv": as_csv(graded),
        "junit.xml": as_junit(graded),
    }
    if is_one_learner:
        reports["summary.md"] = own_summary(graded, answer_key, links_feedback)
    else:
        reports["summary.md"] = as_markdown(graded, notes, answer_key, filled.absent if filled else ())
        reports |= {"canvas.csv": canvas_csv(graded, answer_key), "moodle.csv": moodle_csv(graded, answer_key, filled)}
        reports["totals.csv"] = totals_csv(graded, answer_key, filled.handed_in_nothing if filled else ())
        reports |= worksheets(graded, answer_key)
        reports |= feedback_zips(graded, folder)
    for name, content in reports.items():
        write_all({folder / name: content})
    ours = {*reports, *(feedback_path(each).as_posix() for each in graded), *([GRADEBOOK] if filled else [])}
    there = (path.relative_to(folder).as_posix() for pattern in SENT for path in folder.glob(pattern))
    return [] if is_one_learner else sorted(set(there) - ours)


def write_gradebook(
    exported: Path, graded: Sequence[Graded], folder: Path, *, answer_key: AnswerKey = COURSE
) -> Filled:
    """Fill in a teacher's exported gradebook and write it as gradebook.csv.

    Raises:
        CourseError: as `fill_gradebook` and `open_folder` do.
    """
    filled = fill_gradebook(exported, graded, answer_key)
    open_folder(folder)
    write_whole(folder / GRADEBOOK, filled.text)
    return filled


def open_folder(folder: Path) -> None:
    """Make a folder for reports unless it exists.

    Raises:
        CourseError: if nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CourseError(f"{folder}: no reports can be written there ({error.strerror})") from None


def as_json(graded: Sequence[Graded]) -> str:
    """Return grades.json: {"schema": 1, "day", "submissions": [{"student", "notebook", "day", …, "exercises"}]}.

    The day at the top is the day of all submissions, or null if they belong to several days.
    """
    days = {submission.day for submission in graded}
    day = days.pop() if len(days) == 1 else None
    record = {"schema": 1, "day": day, "submissions": [submission.as_record() for submission in graded]}
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def as_csv(graded: Sequence[Graded]) -> str:
    """Return a CSV line for each submission: student, notebook, day, status, score, max_score, points of each exercise.

    With several days, the columns of exercises are called day1.softmax_row and so on, and a submission's cells under
    other days are empty.
    """
    several = len({submission.day for submission in graded}) > 1
    columns = sorted(
        {(each.day, result.id): None for each in graded for result in each.exercises}, key=lambda c: c[0] or 0
    )
    names = [f"day{day}.{grade_id}" if several else grade_id for day, grade_id in columns]
    rows = [["student", "notebook", "day", "status", "score", "max_score", *names]]
    for submission in graded:
        points = {result.id: f"{result.score:g}" for result in submission.exercises}
        day = "" if submission.day is None else str(submission.day)
        head = [text_cell(submission.student), text_cell(submission.notebook), day, submission.status]
        scores = [f"{submission.score:g}", f"{submission.max_score:g}"]
        own = [points.get(grade_id, "0") if day == submission.day else "" for day, grade_id in columns]
        rows.append([*head, *scores, *own])
    return write_csv(rows)


def as_junit(graded: Sequence[Graded]) -> str:
    """Return JUnit XML with a test suite for each submission and a test case for each exercise.

    Points are properties of the suite, such as `softmax_row.score`, because the schemas that Jenkins and GitLab read
    have no properties of a test case.
    """
    root = ElementTree.Element("testsuites")
    for submission in graded:
        cases = submission.exercises
        name = one_line(submission.student) or "?"
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=name if submission.day is None else f"{name}, day {submission.day}",
            tests=str(len(cases) or 1),
            failures=str(sum(result.status != "passed" for result in cases)),
            errors=str(int(submission.status == "unreadable")),
            time=f"{submission.seconds:.2f}",
        )
        properties = ElementTree.SubElement(suite, "properties")
        for key, value in _junit_properties(submission):
            ElementTree.SubElement(properties, "property", name=key, value=value)
        where = {"classname": name if submission.day is None else f"day{submission.day}.{name}"}
        if submission.status == "unreadable":
            case = ElementTree.SubElement(suite, "testcase", where, name="notebook")
            ElementTree.SubElement(case, "error", message=one_line(submission.message), type="unreadable")
        for result in cases:
            case = ElementTree.SubElement(suite, "testcase", where, name=result.id)
            if result.status != "passed":
                ElementTree.SubElement(case, "failure", message=one_line(result.message), type=result.status)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def as_markdown(
    graded: Sequence[Graded],
    notes: Sequence[str] = (),
    answer_key: AnswerKey = COURSE,
    absent: Sequence[tuple[int, str]] = (),
) -> str:
    """Return a section with a table of exercises for each submission of one student; for a class, `class_summary`."""
    if absent or len({submission.student for submission in graded}) > 1:
        return class_summary(graded, notes, answer_key, absent)
    lines = ["# Grades", ""]
    for submission in graded:
        lines += [f"## {_cell(submission.student)}: {_points(submission)}", "", *_exercises(submission)]
    return "\n".join(lines)


def own_summary(graded: Sequence[Graded], answer_key: AnswerKey = COURSE, links_feedback: bool = True) -> str:
    """Return a summary of a learner's own notebooks, with a section for each day that names its feedback page.

    Args:
        links_feedback: whether to link to the feedback page or, for a page on GitHub where links lead nowhere, only to
            name its file.
    """
    reached = sum(each.score for each in graded)
    full = sum(each.max_score for each in graded)
    lines = ["# Your grades", "", f"{reached:g} of {full:g} points in {_count(len(graded), 'notebook')}.", ""]
    for each in sorted(graded, key=lambda each: (each.day is None, each.day)):
        title = each.notebook if each.day is None else day_title(answer_key, each.day)
        lines += [f"## {_cell(title)}: {_points(each)}", ""]
        if is_untouched(each):
            lines += [f"Nothing is answered yet in {_cell(each.notebook)}.", ""]
            continue
        page = feedback_path(each).as_posix()
        what = "Feedback, with hints and your code"
        lines += [f"[{what}]({quote(page)})" if links_feedback else f"{what}: {_cell(page)}", "", *_exercises(each)]
    return "\n".join(lines)


def class_summary(
    graded: Sequence[Graded],
    notes: Sequence[str] = (),
    answer_key: AnswerKey = COURSE,
    absent: Sequence[tuple[int, str]] = (),
) -> str:
    """Summarise a class: scores by day, hardest exercises, mistakes, what a teacher should look at, students.

    The tables of students stop before the summary grows beyond what GitHub shows, and say so.

    Args:
        absent: the day and the name of each student who handed in nothing for it, if a gradebook tells; by default
            those who handed in another day.
    """
    students = len({submission.student for submission in graded})
    unread = sum(submission.status == "unreadable" for submission in graded)
    lines = ["# Grades of a class", "", f"{_count(students, 'student')}, {_count(len(graded), 'submission')}."]
    if unread:
        lines[-1] += f" {_count(unread, 'file')} could not be read."
    lines += ["", *_shared_names(graded)]
    for day in sorted({each.day for each in graded if each.day is not None}):
        lines += _distribution([each for each in graded if each.day == day], day_title(answer_key, day))
    lines += _hardest(graded, answer_key) + _mistakes(graded, answer_key)
    if notes:
        lines += ["## How it was graded", "", *(f"- {_cell(note)}" for note in notes), ""]
    tables = (
        _table_to_look_at(graded),
        _absent_table(graded, absent),
        _late_table(graded),
        _alike_table(graded),
        _students_table(graded),
    )
    for place, (head, rows) in enumerate(tables):
        room = MAX_SUMMARY_BYTES - len("\n".join(lines).encode())
        lines += _cap_table(head, rows, room if place == len(tables) - 1 else room // 3) if rows else []
    return "\n".join(lines)


def print_table(submission: Graded, console: Console) -> None:
    """Print one graded submission as a table, or as a line if nothing is answered."""
    title = f"Graded {escape(one_line(submission.notebook))}: {_points(submission)}"
    if is_untouched(submission):
        console.print(f"{title}, nothing is answered yet", emoji=False, soft_wrap=True)
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("exercise", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("what to look at", ratio=1)
    for result in submission.exercises:
        colour = {"passed": "green", "missing": "yellow"}.get(result.status, "red")
        points = f"{result.score:g} of {result.max_score:g}"
        table.add_row(result.id, f"[{colour}]{result.status}[/]", points, escape(one_line(_advice(result))))
    console.print(table)


def is_untouched(submission: Graded) -> bool:
    """Return whether no exercise of a notebook is answered."""
    return bool(submission.exercises) and all(result.status == "missing" for result in submission.exercises)


# The summary of a class ---------------------------------------------------------------------------------------------


def _shared_names(graded: Sequence[Graded]) -> list[str]:
    """Return a warning of the names that several students may have, with the rows that are kept apart."""
    rows: dict[str, dict[str, None]] = defaultdict(dict)
    for each in graded:
        if each.shared:
            rows[each.shared][each.student] = None
    if not rows:
        return []
    reason = "Moodle numbers students anew for each assignment. So nothing tells which of these rows are one student's:"
    names = [f"- {_cell(name)}: {_cell(', '.join(apart))}" for name, apart in rows.items()]
    return ["## WARNING: names of several students", "", f"{reason} they are kept apart by day.", "", *names, ""]


def _distribution(graded: Sequence[Graded], title: str) -> list[str]:
    """Return median, quartiles and a histogram of one day's scores, without files that could not be graded."""
    lines = [f"## {_cell(title)}", ""]
    counted = [each for each in graded if not is_ungraded(each)]
    if not counted:
        return [*lines, "Nothing could be graded.", ""]
    scores = sorted(each.score for each in counted)
    full = counted[0].max_score or 1
    first, median, third = statistics.quantiles(scores, n=4, method="inclusive") if len(scores) > 1 else scores * 3
    spread = f"median {median:g}, quartiles {first:g} and {third:g}, lowest {scores[0]:g}, highest {scores[-1]:g}"
    lines += [f"{_count(len(scores), 'submission')}, {full:g} points: {spread}.", "", "```text"]
    counts = [0] * BINS
    for score in scores:
        counts[min(int(score / full * BINS), BINS - 1)] += 1
    for number, count in enumerate(counts):
        bar = "█" * -(-40 * count // max(counts))
        lines.append(f"{number * 100 // BINS:3d} to {(number + 1) * 100 // BINS:3d} %  {count:4d}  {bar}".rstrip())
    return [*lines, "```", ""]


def _hardest(graded: Sequence[Graded], answer_key: AnswerKey) -> list[str]:
    """Return a table of the exercises that the fewest students passed, over all days."""
    results = defaultdict(list)
    for submission in graded:
        if not is_ungraded(submission):
            for result in submission.exercises:
                results[submission.day, result.id].append(result)
    if not results:
        return []
    rows = []
    for (day, grade_id), group in results.items():
        passed = sum(result.status == "passed" for result in group)
        share = sum(result.score for result in group) / (sum(result.max_score for result in group) or 1)
        title = tasks(answer_key, day)[grade_id].title if grade_id in tasks(answer_key, day) else grade_id
        line = f"| {day} | {_cell(title)} | {passed} of {len(group)} ({passed / len(group):.0%}) | {share:.0%} |"
        rows.append((passed / len(group), share, line))
    rows.sort(key=lambda row: row[:2])
    lines = ["## The hardest exercises", "", "| day | exercise | passed by | mean share of the points |"]
    return [*lines, "|---|---|---|---|", *(line for *_, line in rows[:HARDEST]), ""]


def _mistakes(graded: Sequence[Graded], answer_key: AnswerKey) -> list[str]:
    """Return a table of mistakes: how many students have each, and what the checks say about it."""
    students_with = defaultdict(set)
    for submission in graded:
        for result in submission.exercises:
            if result.mistake:
                students_with[submission.day, result.id, result.mistake].add(submission.student)
    if not students_with:
        return []
    lines = ["## Mistakes", "", "| day | exercise | mistake | students | what the checks say |"]
    lines.append("|---|---|---|---|---|")
    for (day, grade_id, name), students in sorted(students_with.items(), key=lambda item: -len(item[1])):
        known = None if day is None else all_exercises(day).get(grade_id)
        messages = " ".join(m.message for m in known.mistakes if m.name in name.split(JOINT)) if known else ""
        lines.append(f"| {day} | {grade_id} | {_cell(name)} | {len(students)} | {_cell(messages)} |")
    return [*lines, ""]


def _table_to_look_at(graded: Sequence[Graded]) -> tuple[list[str], list[str]]:
    """Return head and rows of what a teacher should look at: unreadable files, lost kernels, forbidden calls."""
    rows = []
    for submission in graded:
        events = [f"{each.status} in {each.id}" for each in submission.exercises if each.status in WATCHED]
        events += [f"{each.id}: {each.review}" for each in submission.exercises if each.review]
        if submission.status == "unreadable":
            events = [f"unreadable: {submission.message}"]
        elif is_ungraded(submission):
            events.append("not graded through no fault of the student's")
        if events:
            day = "?" if submission.day is None else submission.day
            rows.append(f"| {_cell(submission.student)} | {day} | {_cell('; '.join(events))} |")
    return ["## Needs your eye", "", "| student | day | what happened |", "|---|---|---|"], rows


def _absent_table(graded: Sequence[Graded], known: Sequence[tuple[int, str]]) -> tuple[list[str], list[str]]:
    """Return head and rows of a table of the students who handed in nothing for a day.

    Without a gradebook, nothing is concluded for a name that several students may have.
    """
    present = {(each.day, each.student) for each in graded}
    days = sorted({day for day, _ in present if day is not None})
    students = dict.fromkeys(each.student for each in graded if not each.shared)
    away = known or [
        (day, student) for day in days for student in students if not {(day, student), (None, student)} & present
    ]
    return ["## Not handed in", "", "| day | student |", "|---|---|"], [
        f"| {day} | {_cell(who)} |" for day, who in away
    ]


def _late_table(graded: Sequence[Graded]) -> tuple[list[str], list[str]]:
    """Return head and rows of a table of what the platform marked as late."""
    rows = [f"| {' | '.join(map(_cell, row))} |" for row in late.late_rows(graded)]
    return [f"## {late.TITLE}", "", f"| {' | '.join(late.COLUMNS)} |", "|" + "---|" * len(late.COLUMNS)], rows


def _alike_table(graded: Sequence[Graded]) -> tuple[list[str], list[str]]:
    """Return head and rows of a table of the students whose longer answers to a day are all equal."""
    groups = defaultdict(list)
    for each in graded:
        if each.alike:
            groups[each.day, each.alike].append(each.student)
    rows = [f"| {day} | {_cell(', '.join(names))} |" for (day, _), names in groups.items() if len(names) > 1]
    caveat = f"All answers of {LONG} lines and more are equal here, but for comments and spacing. Shorter ones are not"
    caveat += " compared, since equal short answers prove nothing. Ask before you conclude: some work in pairs."
    return ["## Equal answers", "", caveat, "", "| day | students |", "|---|---|"], rows


def _students_table(graded: Sequence[Graded]) -> tuple[list[str], list[str]]:
    """Return head and rows of a table with a row for each submission."""
    rows = [
        f"| {_cell(each.student)} | {'?' if each.day is None else each.day} | "
        + ("no grade" if is_ungraded(each) else f"{each.score:g} of {each.max_score:g}")
        + f" | {sum(result.status == 'passed' for result in each.exercises)} of {len(each.exercises)} |"
        for each in graded
    ]
    return ["## Students", "", "| student | day | points | exercises passed |", "|---|---|---|---|"], rows


def _cap_table(head: list[str], rows: list[str], room: int) -> list[str]:
    """Return a table of as many rows as fit into `room` bytes, and a line about the rows that are left out."""
    fitting = 0
    room = room - 300 - sum(len(line.encode("utf-8", "replace")) + 1 for line in head)
    for row in rows:
        room -= len(row.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        fitting += 1
    table = [*head, *rows[:fitting], ""]
    if fitting < len(rows):
        omitted = len(rows) - fitting
        table += [f"{omitted} more are left out here, to keep this short enough for GitHub; grades.csv has all.", ""]
    return table


# Parts --------------------------------------------------------------------------------------------------------------


def _points(submission: Graded) -> str:
    return f"{submission.score:g} of {submission.max_score:g} points"


def _exercises(submission: Graded) -> list[str]:
    """Return the exercises of a submission as a table, or why there are none."""
    lines = [f"{submission.status}: {_cell(submission.message)}", ""] if submission.message else []
    if submission.exercises:
        lines += ["| exercise | status | points | what to look at |", "|---|---|---|---|"]
        lines += [
            f"| {each.id} | {each.status} | {each.score:g} of {each.max_score:g} | {_cell(_advice(each))} |"
            for each in submission.exercises
        ]
        lines.append("")
    return lines


def _junit_properties(submission: Graded) -> list[tuple[str, str]]:
    properties = [("status", submission.status), ("score", submission.score), ("max_score", submission.max_score)]
    for result in submission.exercises:
        properties += [(f"{result.id}.score", result.score), (f"{result.id}.max_score", result.max_score)]
    return [(name, value if isinstance(value, str) else f"{value:g}") for name, value in properties]


def _advice(result: Result) -> str:
    return f"{result.message} [{result.mistake}]" if result.mistake else result.message


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _cell(text: str) -> str:
    """Return text escaped for a Markdown table, whatever a student put into a name or an error message."""
    line = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace("`", "'")
    line = re.sub(r"([\\|*_\[\]~$#])", r"\\\1", line)
    return re.sub(r"(?i)(https?|ftp|mailto)(?=:)|(?<=www)(?=\.)|(?=@)", lambda m: f"{m[0]}\u200b", line)
