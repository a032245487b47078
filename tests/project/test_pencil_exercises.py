"""An exercise by pencil asks for no numbers that its lesson prints, in a day of two sittings."""

import html
import re

import nbformat
import numpy as np
import pytest

from course_utils import loader
from course_utils.course import DAYS, LESSONS, ROOT

NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?![\w.]*\d)")
ASKED = [
    (day, f"{grade_id} {name}", np.ravel(np.asarray(value, dtype=float)).tolist())
    for day in DAYS
    if day.sittings
    for grade_id, exercise in loader.exercises(day.number).items()
    if loader.ladders(day.number)[grade_id].by_hand
    for name, value in exercise.reference.items()
    if np.asarray(value).dtype.kind in "if" and np.any(np.mod(value, 1))  # whole numbers are everywhere
]


def texts(notebook):
    """What a reader of a notebook sees: its text, its code, and what the code prints or draws as tables."""
    for cell in notebook.cells:
        yield cell.source
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            yield re.sub(r"<[^>]*>", " ", html.unescape(data.get("text/html", ""))) or data.get("text/plain", "")
        yield from (output["text"] for output in cell.get("outputs", []) if "text" in output)


def prints(text, numbers):
    """Whether a text has these numbers one after another, each rounded to two decimals or more."""
    found = [match.replace("−", "-") for match in NUMBER.findall(text)]
    runs = (found[at : at + len(numbers)] for at in range(len(found) - len(numbers) + 1))
    return any(all(map(rounds_to, numbers, run)) for run in runs)


def rounds_to(number, written):
    decimals = len(written.partition(".")[2])
    return float(written) == round(number, decimals) and (decimals > 1 or number == round(number))


@pytest.mark.parametrize(("day", "name", "numbers"), ASKED, ids=[name for _, name, _ in ASKED])
def test_no_lesson_prints_what_an_exercise_by_pencil_asks_for(day, name, numbers):
    lesson = nbformat.read(day.notebook(LESSONS, ROOT), as_version=4)
    assert [text for text in texts(lesson) if prints(text, numbers)] == []


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("It is $(0.2483, 0.2483, 0.5035)$.", True),
        ("| 0.25 | 0.25 | 0.50 |", True),
        ("0.2483, 0.5035", False),
        ("0.2, 0.2, 0.5", False),
        ("0.2483, 0.2493, 0.5035", False),
    ],
)
def test_what_counts_as_printed(text, there):
    assert prints(text, [0.24826, 0.24826, 0.50348]) is there
