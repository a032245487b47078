"""Every lesson asks before it tells: how often, of which kinds, with what was computed, and with nothing given away."""

import ast
import functools
import json
import re
import subprocess
import sys

import nbformat
import pytest

from course_utils.course import DAYS, LESSONS, ROOT
from course_utils.guesses import brief
from course_utils.loader import PACKAGE

TAUGHT = [day.number for day in DAYS if day.minutes]
KINDS = ("number", "choice", "curve")
TODO = "Run this cell to guess; what was computed is shown after your guess."
ASKS = re.compile(r"guesses\.(\w+)\((.*)\)", re.DOTALL)


@functools.cache
def lesson(number):
    (day,) = (day for day in DAYS if day.number == number)
    return nbformat.read(day.notebook(LESSONS), as_version=4)


def asking(notebook, number):
    """The cells that ask, with their places and the call of `Guess` that each makes."""
    code = ast.parse((PACKAGE / f"days/day{number}/guesses.py").read_text(encoding="utf-8"))
    calls = {
        function.name: next(node for node in ast.walk(function) if isinstance(node, ast.Call) and is_guess(node))
        for function in code.body
        if isinstance(function, ast.FunctionDef)
    }
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and cell.source.startswith("guesses."):
            yield place, cell, calls[ASKS.fullmatch(cell.source)[1]]


def is_guess(call):
    return ast.unparse(call.func) in [f"Guess.{kind}" for kind in KINDS]


@pytest.mark.parametrize("number", TAUGHT)
def test_a_lesson_asks_four_times_or_more_for_a_curve_too_and_sums_up(number):
    notebook = lesson(number)
    calls = [call for _, _, call in asking(notebook, number)]
    assert len(calls) >= 4 and "Guess.curve" in [ast.unparse(call.func) for call in calls]
    assert {call.args[0].value for call in calls} == {number}
    names = [call.args[1].value for call in calls]
    assert len(set(names)) == len(names)
    (end,) = [place for place, cell in enumerate(notebook.cells) if cell.source == f"Guesses({number})"]
    assert end > max(place for place, _, _ in asking(notebook, number))


@pytest.mark.parametrize("number", TAUGHT)
def test_no_truth_is_typed_in(number):
    for _, cell, call in asking(lesson(number), number):
        assert not any(isinstance(arguments, ast.Constant) for arguments in ast.parse(cell.source).body[0].value.args)
        (truth,) = (each.value for each in call.keywords if each.arg == "truth")
        assert any(isinstance(node, ast.Name) for node in ast.walk(truth)), ast.unparse(call)


@pytest.mark.parametrize("number", TAUGHT)
def test_what_is_stored_is_the_question_alone_and_no_output_stands_right_below(number):
    notebook = lesson(number)
    places = {place for place, _, _ in asking(notebook, number)}
    for place in places:
        cell = notebook.cells[place]
        (output,) = cell.outputs
        assert set(output.data) == {"text/plain", "image/png"} and cell.metadata.jupyter.source_hidden
        assert output.data["text/plain"].startswith("Guess first: ") and output.data["text/plain"].endswith(TODO)
        assert " ".join(output.data["text/plain"].split()) == output.metadata["image/png"]["alt"]
        below = place + 1
        while notebook.cells[below].cell_type == "code" and not (notebook.cells[below].outputs and below not in places):
            below += 1  # another question, or a cell that shows nothing
        assert notebook.cells[below].cell_type == "markdown", f"the output of cell {below} stands right under a guess"


TOLD = """
import json
from course_utils.views.widgets import guess
print(json.dumps([[a.name, a.kind, a.truth] for a in guess._QUESTIONS_BY_NAME.values()]))
"""


@pytest.mark.thorough("lessons run again, to look for what they compute near the questions about it")
@pytest.mark.parametrize("number", TAUGHT)
def test_what_was_computed_is_not_told_around_the_question(number, tmp_path):
    notebook = lesson(number)
    last = max(place for place, _, _ in asking(notebook, number))
    code = "\n".join(cell.source for cell in notebook.cells[: last + 1] if cell.cell_type == "code")
    script = tmp_path / "lesson.py"
    script.write_text(code + TOLD, encoding="utf-8")
    ran = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr[-2000:]
    truths = {name: (kind, truth) for name, kind, truth in json.loads(ran.stdout.splitlines()[-1])}
    for place, _, call in asking(notebook, number):
        kind, truth = truths[call.args[1].value]
        if kind == "choice":
            continue
        around = [text_of(notebook.cells[near]) for near in (place - 2, place - 1, place + 1)]
        given_away = [value for value in truth if any(tells(text, value) for text in around)]
        assert len(given_away) <= (len(truth) / 3 if kind == "curve" else 0), (call.args[1].value, given_away)


def text_of(cell):
    """What a reader who runs nothing reads of a cell that answers: its text, or what it printed."""
    if cell.cell_type == "markdown":
        return cell.source
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def tells(text, value):
    """Whether a text holds a number, rounded in one of the usual ways; one digit alone may be anything."""
    shapes = {brief(value, digits) for digits in (2, 3, 4)} | {f"{value:.{places}f}" for places in range(4)}
    shapes |= {f"{value:,.0f}", f"{value:.1e}"}
    long = [shape for shape in shapes if len(re.sub(r"e.*|[^\d]", "", shape).lstrip("0")) >= 2]
    return any(re.search(rf"(?<![\d.,]){re.escape(shape)}(?![\d]|[.,]\d)", text) for shape in long)


def test_a_told_number_is_found_in_its_usual_roundings():
    assert tells("the largest is .87 or 0.87.", 0.8712) and tells("40 GB", 40.0) and tells("12,345 bytes", 12345)
    assert not tells("it is 0.9", 0.8712) and not tells("40.5 GB or 140 GB", 40.0) and not tells("9", 9.1)
