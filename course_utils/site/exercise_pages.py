"""Exercises that are answered on their page: an editor for each answer, and the data that its check needs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_utils import loader
from course_utils.answer_key.strip_answers import UNGRADED, is_answer, is_check, is_setup, needs_torch
from course_utils.course import DAYS, EXERCISES, Day, day_numbered
from course_utils.notebooks import read_notebook

SCRIPT = Path(__file__).parent / "answers" / "answers.js"
EDITOR = Path(__file__).parent / "answers" / "codemirror.js"
NEEDS_TORCH = (
    '<p class="course-needs-torch">This exercise needs PyTorch, which does not run on a web page. '
    'Do it in JupyterLab: <a href="../start.html">get the course</a>.</p>'
)
TORCH_MARK = ' <span class="course-needs-torch-mark">(PyTorch)</span>'
TOTAL = """<div class="course-here course-total"><p>Write your answers here, and press <b>Check</b>: nothing has to be
installed. {some} The checks run in this browser, which also keeps what you write; nothing that you type leaves it. The
answers can be found in the code of this page, so its points are for your own study.</p></div>"""
SOME = """{here} of the {all} exercises can be done on this page. The rest need PyTorch and are done in JupyterLab:
<a href="{up}start.html">get the course</a>."""
IMPORTS = "# Every answer on this page finds these."
FOR_JUPYTERLAB = "*The cell below is for JupyterLab, where it runs with your function.*"
PROGRESS = """<p>Answered on these pages, in this browser:</p>
<ul class="course-progress">{days}</ul>"""


@dataclass(frozen=True)
class Answer:
    """An exercise of a notebook: the cell to write in, and what its check is worth."""

    day: int
    grade_id: str
    stub: str
    points: float

    def as_html(self, python: str) -> str:
        """Return the place on a page where the answer is written. `python` is the folder of the page's Python."""
        return (
            f'<div class="course-answer" data-day="{self.day}" data-exercise="{self.grade_id}" '
            f'data-points="{self.points:g}" data-python="{python}">'
            f'<div class="course-code">{_typeset(self.stub)}</div></div>'
        )


def given_cells(notebook: NotebookNode) -> list[str]:
    """Return the code that an answer finds: without answers, checks, and cells that only try an answer out."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code" and not is_answer(cell) and not is_check(cell))
    return [cell.source for cell in code if UNGRADED not in cell.metadata.get("tags", [])]


def answers_of(day: int, notebook: NotebookNode) -> Iterator[Answer]:
    """Yield the exercises of a notebook that are answered on a page, in order."""
    checks = {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if is_check(cell)}
    for cell in filter(is_answer, notebook.cells):
        grade_id = cell.metadata.nbgrader.grade_id
        if not needs_torch(cell):
            yield Answer(day, grade_id, cell.source, checks[f"check_{grade_id}"].metadata.nbgrader.points)


def place_editors(day: int, notebook: NotebookNode, python: str) -> None:
    """Put an editor in place of each answer and its check; an exercise that needs PyTorch says so instead."""
    places = {answer.grade_id: answer for answer in answers_of(day, notebook)}
    _word_for_a_page(notebook)
    cells = []
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if is_answer(cell):
            if grade_id not in places:
                cells.append(cell)
            cells.append(_show_html(cell, places[grade_id].as_html(python) if grade_id in places else NEEDS_TORCH))
        elif not (is_check(cell) and grade_id.removeprefix("check_") in places):
            cells.append(cell)
    notebook.cells = cells


def _word_for_a_page(notebook: NotebookNode) -> None:
    """Replace what is said of notebook cells by what holds on a page."""
    for cell, following in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        if cell.cell_type == "markdown":
            for change in loader.wording("shared")["exercises"]:
                words = re.compile(r"\s+".join(map(re.escape, change["lesson"].split())))
                cell.source = change["page"].join(words.split(cell.source))
            is_tried = following is not None and UNGRADED in following.metadata.get("tags", [])
            if is_tried and not is_setup(following) and not cell.source.startswith("#"):
                cell.source = f"{FOR_JUPYTERLAB}\n\n{cell.source}"
        elif "checks_for(" in cell.source:
            is_there = re.compile(r"(import|from) (?!torch|course_utils)")
            cell.source = "\n".join([IMPORTS, *filter(is_there.match, cell.source.splitlines())])


def mark_contents(text: str) -> str:
    """Return a page's HTML with a mark, in its table of contents, at each exercise that needs PyTorch."""
    parts = re.split(r'<section id="([^"]+)">', text)
    marked = [name for name, section in zip(parts[1::2], parts[2::2], strict=True) if NEEDS_TORCH in section]
    for name in marked:
        entry = re.compile(rf'(<a class="reference internal nav-link" href="#{re.escape(name)}">[^<]*)</a>')
        text = entry.sub(rf"\1{TORCH_MARK}</a>", text)
    return text


def explain_page(day: int, notebook: NotebookNode, up: str) -> str:
    """Return what an exercise page says below its heading: how it works, and how much of the day can be done there."""
    here = len(list(answers_of(day, notebook)))
    of_all = sum(map(is_answer, notebook.cells))
    return TOTAL.format(some=SOME.format(here=here, all=of_all, up=up) if here < of_all else "")


def data_scripts(root: Path) -> dict[str, str]:
    """Return a script for each day, by its path in the static folder: what an answer finds, and the notebook itself."""
    files = {}
    for day in DAYS:
        name, notebook = _exercises(day, root)
        if notebook is not None and any(answers_of(day.number, notebook)):
            data = json.dumps(_data(name, notebook), ensure_ascii=False)
            files[f"exercises/day{day.number}.js"] = f"course.exercises({day.number}, {data});\n"
    return files


def _data(name: str, notebook: NotebookNode) -> dict[str, Any]:
    return {
        "given": given_cells(notebook),
        "stubs": {cell.metadata.nbgrader.grade_id: cell.source for cell in filter(is_answer, notebook.cells)},
        "notebook": notebook,
        "file": f"{name}.ipynb",
    }


def show_progress(notebook: NotebookNode, root: Path) -> None:
    """Put the points that this browser keeps below the heading of the course map, a line for each day."""
    lines = []
    for day in DAYS:
        name, exercises = _exercises(day, root)
        full = 0.0 if exercises is None else sum(answer.points for answer in answers_of(day.number, exercises))
        if full:
            link = f'<a href="../{EXERCISES}/{name}.html">Day {day.number}: {html.escape(day.title)}</a>'
            lines.append(f'<li data-day="{day.number}">{link}, <span>0</span> of {full:g} points</li>')
    notebook.cells.insert(1, nbformat.v4.new_markdown_cell(PROGRESS.format(days="".join(lines))))


def answer_html(exercise: str, root: Path, python: str) -> str:
    """Return the place of one answer, such as day1/softmax_row, for a page of its own."""
    number, _, grade_id = exercise.removeprefix("day").partition("/")
    _, notebook = _exercises(day_numbered(int(number)), root)
    answers = () if notebook is None else answers_of(int(number), notebook)
    return next((answer.as_html(python) for answer in answers if answer.grade_id == grade_id), "")


def _exercises(day: Day, root: Path) -> tuple[str, NotebookNode | None]:
    """Return the name of a day's exercise notebook and the notebook; None where it is missing or cannot be read."""
    path = day.notebook(EXERCISES, root)
    return (path.stem, read_notebook(path)[0]) if path else ("", None)


def _show_html(cell: NotebookNode, text: str) -> NotebookNode:
    """Return a cell that shows this HTML in place of its source, which has to be there for its output to be."""
    output = nbformat.v4.new_output("display_data", data={"text/html": text})
    return nbformat.v4.new_code_cell(cell.source, metadata={"tags": ["remove-input"]}, outputs=[output])


def _typeset(source: str) -> str:
    """Return Python as HTML, with the classes that the pages' style colours."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return f'<div class="highlight"><pre>{highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))}</pre></div>'
