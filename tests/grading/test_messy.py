"""The notebook and the grade agree, however a student has treated the cells."""

import contextlib
import io
from contextlib import redirect_stderr, redirect_stdout

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from messy.cases import CASES, SOFTMAX, notebook_of, place, put

from course_utils.checks.cell_history import ELSEWHERE
from course_utils.checks.cells import MAX_CELL_LENGTH
from course_utils.checks.kernel.settings import usual_settings
from course_utils.grading.grade import grade_notebook

MESSY = pytest.mark.thorough("every messy notebook checked in its cells and graded")
WANTED = [
    pytest.param(each, id=name, marks=[MESSY] * bool(place % 12)) for place, (name, each) in enumerate(CASES.items())
]


def checked(notebook):
    """What each check of a notebook said, first sentence first, when its cells are run from top to bottom."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    statuses = {}
    shell.enable_gui = lambda gui=None: None  # what a kernel has, and %matplotlib needs
    with contextlib.ExitStack() as stack:
        stack.callback(InteractiveShell.clear_instance)
        stack.enter_context(usual_settings())  # what a cell sets is set again as it was
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            nbgrader = cell.metadata.get("nbgrader", {})
            source = cell.source.partition("\n### BEGIN HIDDEN")[0]
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
                result = shell.run_cell(source, store_history=True, cell_id=cell.get("id"))
            if nbgrader.get("grade"):
                statuses[nbgrader["grade_id"].removeprefix("check_")] = (
                    str(result.error_in_exec or "") or out.getvalue()
                )
    return statuses


def passes(text):
    return ": passed, " in text


@pytest.mark.parametrize("case", WANTED)
def test_what_a_check_calls_passed_the_grader_passes(case, tmp_path):
    notebook = notebook_of(case)
    path = tmp_path / f"day{case.day}_ada.ipynb"
    nbformat.write(notebook, path)
    graded = {each.id: each for each in grade_notebook(path).exercises}
    statuses = checked(notebook)
    assert {name for name in case.unsolved if passes(statuses[name]) or graded[name].status == "passed"} == set()
    others = statuses.keys() - case.refused.keys() - set(case.unsolved)
    assert {name: statuses[name] for name in others if not passes(statuses[name])} == {}
    assert {
        name: each.message for name, each in graded.items() if passes(statuses[name]) and each.status != "passed"
    } == {}
    for name, why in case.refused.items():
        advice = statuses[name].split("\n\n")[1]
        assert advice.startswith("Right here, but it would not count when graded:") and why in advice.replace("\n", " ")


def test_where_a_second_try_counts_is_said():
    notebook = notebook_of(CASES["a second try in a new cell, the wrong one left above it"])
    notebook.cells = notebook.cells[: place(notebook.cells, "check_softmax_row") + 1]
    assert ELSEWHERE in " ".join(checked(notebook)["softmax_row"].split())
    put(notebook.cells, "softmax_row", SOFTMAX)
    del notebook.cells[place(notebook.cells, "softmax_row") + 1 : -1]
    assert "counts where" not in checked(notebook)["softmax_row"]


def test_a_cell_that_is_too_long_is_said_to_be_that(tmp_path):
    notebook = notebook_of(CASES["an answer below a long comment"])
    (cell,) = notebook.cells = [notebook.cells[place(notebook.cells, "softmax_row")]]
    cell.source = "#" * MAX_CELL_LENGTH + "\n" + cell.source
    notebook.cells.append(nbformat.v4.new_code_cell("def scores(Q, K):\n    raise NotImplementedError"))
    nbformat.write(notebook, tmp_path / "day1_ada.ipynb")
    results = {each.id: each for each in grade_notebook(tmp_path / "day1_ada.ipynb").exercises}
    assert (
        results["softmax_row"].message
        == f"Not read: its cell has {len(cell.source):,} characters, but only 100,000 are read."
    )
    assert (results["softmax_row"].status, results["scores"].message) == ("missing", "Not answered.")


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 6 + 20
