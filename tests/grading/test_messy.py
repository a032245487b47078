"""The notebook and the grade agree, however a student has treated the cells."""

import io
from contextlib import redirect_stderr, redirect_stdout

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from messy.cases import CASES, notebook_of

from course_utils.grading.grade import grade_notebook

MESSY = pytest.mark.thorough("every messy notebook checked in its cells and graded")
WANTED = [
    pytest.param(each, id=name, marks=[MESSY] * bool(place % 12)) for place, (name, each) in enumerate(CASES.items())
]


def checked(notebook):
    """What each check of a notebook said, first sentence first, when its cells are run from top to bottom."""
    InteractiveShell.clear_instance()
    shell, said = InteractiveShell.instance(), {}
    shell.enable_gui = lambda gui=None: None  # what a kernel has, and %matplotlib needs
    try:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            nbgrader = cell.metadata.get("nbgrader", {})
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
                result = shell.run_cell(cell.source.partition("\n### BEGIN HIDDEN")[0], store_history=True)
            if nbgrader.get("grade"):
                said[nbgrader["grade_id"].removeprefix("check_")] = str(result.error_in_exec or "") or out.getvalue()
    finally:
        InteractiveShell.clear_instance()
    return said


def passes(text):
    return ": passed, " in text


@pytest.mark.parametrize("case", WANTED)
def test_what_a_check_calls_passed_the_grader_passes(case, tmp_path):
    notebook = notebook_of(case)
    path = tmp_path / "day1_ada.ipynb"
    nbformat.write(notebook, path)
    graded = {each.id: each for each in grade_notebook(path).exercises}
    said = checked(notebook)
    assert {name: text for name, text in said.items() if not passes(text) and name not in case.refused} == {}
    assert {name: each.message for name, each in graded.items() if passes(said[name]) and each.status != "passed"} == {}
    for name, why in case.refused.items():
        advice = said[name].split("\n\n")[1]
        assert advice.startswith("Right here, but it would not count when graded:") and why in advice.replace("\n", " ")


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 6 + 20
