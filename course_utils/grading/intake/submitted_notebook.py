"""Read what grading needs of a submitted notebook, which may hold anything: its code cells, and whether it is a lesson.

A file is parsed once, by `read_notebook`; days and answers are looked for in what it returns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.checks.cells import MAX_CELL_LENGTH
from course_utils.errors import Unreadable

MAX_PARTS = {b"[": 500_000, b"{": 500_000, b",": 5_000_000}  # nested lists take 50 times their length in memory
MAX_CODE_LENGTH = 400_000  # characters; the notebooks of this course have 30,000


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a submitted notebook.

    Attributes:
        ids: its id and its grade_id, as far as it has them.
        answers: the grade_id of an nbgrader answer cell, else None.
        source: its code.
    """

    ids: frozenset[str]
    answers: str | None
    source: str


@dataclass(frozen=True)
class SubmittedNotebook:
    """A notebook that was handed in.

    Attributes:
        name: the file's name in messages.
        cells: the code cells, without those that are too long to be read.
        too_long: the characters of those, by cell id and by grade_id.
        is_lesson: whether it begins as the lesson of a day does.
    """

    name: str
    cells: tuple[CodeCell, ...]
    too_long: Mapping[str, int]
    is_lesson: bool


def read_notebook(data: bytes, name: str) -> SubmittedNotebook:
    """Read the content of a notebook file.

    Args:
        data: content of the file.
        name: file name for error messages.

    Raises:
        Unreadable: the file is no notebook, or has more than MAX_CODE_LENGTH characters of code.
    """
    notebook = _parse(data, name)
    cells = []
    too_long = dict[str, int]()
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        nbgrader = _nbgrader(cell)
        grade_id = nbgrader.get("grade_id")
        ids = frozenset(each for each in (cell.get("id"), grade_id) if isinstance(each, str))
        source = _source(cell)
        if len(source) > MAX_CELL_LENGTH:
            too_long |= dict.fromkeys(ids, len(source))
        else:
            answers = grade_id if isinstance(grade_id, str) and nbgrader.get("solution") is True else None
            cells.append(CodeCell(ids, answers, source))
    if sum(len(cell.source) for cell in cells) > MAX_CODE_LENGTH:
        raise Unreadable(f"{name}: more than {MAX_CODE_LENGTH // 1000} kB of code")
    return SubmittedNotebook(name, tuple(cells), too_long, _is_lesson(notebook))


def _parse(data: bytes, name: str) -> Mapping:
    """Return the JSON of a notebook in nbformat 4. Raises Unreadable with a one-line message for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{name}: not text in UTF-8, so not a notebook") from None
    if not text.strip():
        raise Unreadable(f"{name}: empty file")
    if any(data.count(sign) > most for sign, most in MAX_PARTS.items()):
        raise Unreadable(f"{name}: more parts than a notebook has")
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Unreadable(f"{name}: nested too deeply for a notebook") from None
    except ValueError as error:
        raise Unreadable(f"{name}: not JSON, or cut off ({str(error)[:80]})") from None
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        raise Unreadable(f"{name}: JSON, but not a notebook")
    version = notebook["nbformat"]
    if version != 4:
        raise Unreadable(f"{name}: notebook format {str(version)[:10]}; open it in JupyterLab and save it as format 4")
    if not isinstance(notebook.get("cells"), list):
        raise Unreadable(f"{name}: a notebook without cells")
    return notebook


def _source(cell: Mapping) -> str:
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source if isinstance(source, str) else ""


def _nbgrader(cell: Mapping) -> Mapping:
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return nbgrader if isinstance(nbgrader, dict) else {}


def _is_lesson(notebook: Mapping) -> bool:
    """Return whether a notebook begins as the lesson of a day does."""
    first = next((cell.get("source", "") for cell in notebook["cells"] if isinstance(cell, dict)), "")
    title = first[0] if isinstance(first, list) and first else first
    return isinstance(title, str) and bool(re.match(r"# Day \d+: ", title))
