"""Grades as files: JSON for programs, CSV for gradebooks, JUnit for CI, Markdown and a terminal table for people."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .errors import CourseError, one_line
from .grade import Graded


def write_reports(graded: list[Graded], folder: Path) -> None:
    """Write grades.json, grades.csv, junit.xml and summary.md into a folder. Raises as `open_folder`."""
    open_folder(folder)
    reports = {
        "grades.json": as_json(graded),
        "grades.csv": as_csv(graded),
        "junit.xml": as_junit(graded),
        "summary.md": as_markdown(graded),
    }
    for name, text in reports.items():
        unfinished = folder / f".{name}.part"
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        os.replace(unfinished, folder / name)


def open_folder(folder: Path) -> None:
    """Make a folder for reports, if need be. Raises CourseError when nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CourseError(f"{folder}: no reports can be written there ({error.strerror})") from None


def as_json(graded: list[Graded]) -> str:
    """Schema 1: {"schema", "day", "submissions": [{"student", "notebook", "day", "status", …, "exercises"}]}.

    The day at the top is that of all submissions, null where they are of several.
    """
    days = {submission.day for submission in graded}
    day = days.pop() if len(days) == 1 else None
    record = {"schema": 1, "day": day, "submissions": [submission.as_record() for submission in graded]}
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def as_csv(graded: list[Graded]) -> str:
    """A line a submission: student, notebook, status, score, max_score, then the points of each exercise."""
    from io import StringIO

    ids = list(dict.fromkeys(result.id for submission in graded for result in submission.exercises))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "notebook", "day", "status", "score", "max_score", *ids])
    for submission in graded:
        points = {result.id: f"{result.score:g}" for result in submission.exercises}
        head = [submission.student, submission.notebook, submission.day, submission.status]
        scores = [f"{submission.score:g}", f"{submission.max_score:g}", *(points.get(each, "0") for each in ids)]
        writer.writerow([_no_formula(str(cell)) for cell in head] + scores)
    return text.getvalue()


def as_junit(graded: list[Graded]) -> str:
    """A test suite a submission and a test case an exercise, with its points as properties."""
    root = ElementTree.Element("testsuites")
    for submission in graded:
        cases = submission.exercises
        failures = sum(result.status != "passed" for result in cases)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=one_line(submission.student),
            tests=str(len(cases) or 1),
            failures=str(failures),
            errors=str(int(submission.status == "unreadable")),
            time=str(submission.seconds),
        )
        if submission.status == "unreadable":
            case = ElementTree.SubElement(suite, "testcase", classname=one_line(submission.student), name="notebook")
            ElementTree.SubElement(case, "error", message=one_line(submission.message), type="unreadable")
        for result in cases:
            case = ElementTree.SubElement(suite, "testcase", classname=one_line(submission.student), name=result.id)
            properties = ElementTree.SubElement(case, "properties")
            for name, value in (("score", f"{result.score:g}"), ("max_score", f"{result.max_score:g}")):
                ElementTree.SubElement(properties, "property", name=name, value=value)
            if result.status != "passed":
                ElementTree.SubElement(case, "failure", message=one_line(result.message), type=result.status)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def as_markdown(graded: list[Graded]) -> str:
    """A section a submission: its score, and a table of exercises with what to do."""
    lines = ["# Grades", ""]
    for submission in graded:
        lines += [f"## {_cell(submission.student)}: {submission.score:g} of {submission.max_score:g} points", ""]
        if submission.message:
            lines += [f"{submission.status}: {_cell(submission.message)}", ""]
        if submission.exercises:
            lines += ["| exercise | status | points | what to look at |", "|---|---|---|---|"]
            lines += [
                f"| {each.id} | {each.status} | {each.score:g} of {each.max_score:g} | {_cell(_advice(each))} |"
                for each in submission.exercises
            ]
            lines.append("")
    return "\n".join(lines)


def print_table(submission: Graded, console: Console) -> None:
    """One graded submission as a table in the terminal."""
    title = f"{escape(one_line(submission.notebook))}: {submission.score:g} of {submission.max_score:g} points"
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


def _advice(result) -> str:
    return f"{result.message} [{result.misconception}]" if result.misconception else result.message


def _cell(text: str) -> str:
    """Text that stays text in a Markdown table, whatever a student put into an error message."""
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("`", "'")


def _no_formula(cell: str) -> str:
    """A spreadsheet runs a cell that begins with one of these; a quote before it makes it text."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
