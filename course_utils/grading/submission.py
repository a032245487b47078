"""What a submission answers: the source of its answer cells, and nothing else of it."""

from __future__ import annotations

import ast
import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course_utils.checks.source import defined_names

from .errors import one_line

LARGEST_FILE = 50 * 2**20
LARGEST_CELL = 20_000  # characters; an answer takes a few hundred
LARGEST_CODE = 2 * 2**20
MOST_PARTS = {b"[": 500_000, b"{": 500_000, b",": 5_000_000}  # a list of lists takes 50 times its length in memory


class Unreadable(Exception):
    """A submission that is no notebook of the day it should be. Its text is one line for people."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


@dataclass(frozen=True)
class Question:
    """An exercise as the official notebook states it: what the answer defines, and what the student was given."""

    grade_id: str
    points: float
    names: tuple[str, ...]
    stub: str
    entries: bool = False  # the names are numbers, not functions


def read_answers(data: bytes, name: str, questions: list[Question]) -> dict[str, str]:
    """The answer cells of a submission by grade_id; an exercise without an answer, or with the stub, is left out.

    data: the file's bytes. name: what the file is called in errors.

    A cell belongs to an exercise by its nbgrader grade_id or cell id; failing that, by the name it defines. Of several
    the last one counts. Raises Unreadable, also for a notebook with another day's exercises or none.
    """
    cells = _code_cells(parse_notebook(data, name))
    if sum(len(cell.source) for cell in cells) > LARGEST_CODE:
        raise Unreadable(f"{name}: more than {LARGEST_CODE >> 20} MiB of code")
    known = {question.grade_id for question in questions}
    _verify_day(name, cells, questions)
    answers = {}
    for question in questions:
        marked = [cell.source for cell in cells if question.grade_id in cell.ids]
        named = [cell.source for cell in cells if not cell.ids & known and _defines(cell.source, question)]
        for candidates in (marked, named):
            filled = [s for s in candidates if not same_code(s, question.stub) and not same_code(s, "")]
            if filled:
                answers[question.grade_id] = filled[-1]
                break
    return answers


def read_file(path: Path) -> bytes:
    """The bytes of a regular file that is not too large. Raises Unreadable."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path}: not a file")
        verify_size(path.name, status.st_size)
        return path.read_bytes()
    except FileNotFoundError:
        raise Unreadable(f"{path}: no such file") from None
    except OSError as error:
        raise Unreadable(f"{path.name}: {error.strerror}") from None


def verify_size(name: str, size: int) -> None:
    """Raise Unreadable for a file of more bytes than a notebook has."""
    if size > LARGEST_FILE:
        raise Unreadable(f"{name}: {size / 2**20:.0f} MiB, more than the {LARGEST_FILE >> 20} allowed")


def parse_notebook(data: bytes, name: str) -> Mapping:
    """The JSON of a notebook in nbformat 4. Raises Unreadable, in one line, for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{name}: not text in UTF-8, so not a notebook") from None
    if not text.strip():
        raise Unreadable(f"{name}: empty file")
    if any(data.count(sign) > most for sign, most in MOST_PARTS.items()):
        raise Unreadable(f"{name}: more parts than a notebook has")
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Unreadable(f"{name}: nested too deeply for a notebook") from None
    except ValueError as error:
        raise Unreadable(f"{name}: not JSON, or cut off ({str(error)[:80]})") from None
    return _checked(notebook, name)


def same_code(a: str, b: str) -> bool:
    """Whether two cells are the same program, whatever their comments and spacing."""
    try:
        return ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return a.strip() == b.strip()


def _checked(notebook: object, name: str) -> Mapping:
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        raise Unreadable(f"{name}: JSON, but not a notebook")
    version = notebook["nbformat"]
    if version != 4:
        raise Unreadable(f"{name}: notebook format {str(version)[:10]}; open it in JupyterLab and save it as format 4")
    if not isinstance(notebook.get("cells"), list):
        raise Unreadable(f"{name}: a notebook without cells")
    return notebook


@dataclass(frozen=True)
class _CodeCell:
    ids: frozenset[str]
    answers: str | None  # the grade_id of an nbgrader answer cell
    source: str


def _code_cells(notebook: Mapping) -> list[_CodeCell]:
    found = []
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str) or len(source) > LARGEST_CELL:
            continue
        metadata = cell.get("metadata")
        nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
        ids = frozenset(identity for identity in (cell.get("id"), grade_id) if isinstance(identity, str))
        answers = grade_id if isinstance(grade_id, str) and nbgrader.get("solution") is True else None
        found.append(_CodeCell(ids, answers, source))
    return found


def _verify_day(name: str, cells: list[_CodeCell], questions: list[Question]) -> None:
    known = {question.grade_id for question in questions}
    answered = {cell.answers for cell in cells if cell.answers}
    foreign = answered - known
    if len(foreign) > len(answered & known):
        raise Unreadable(f"{name}: the exercises of another day ({', '.join(sorted(foreign)[:3])}, …)")
    if not any(cell.ids & known or any(_defines(cell.source, q) for q in questions) for cell in cells):
        raise Unreadable(f"{name}: none of the day's exercises are in it ({', '.join(sorted(known)[:3])}, …)")


def _defines(source: str, question: Question) -> bool:
    if question.entries:
        return defined_names(source).issuperset(question.names)
    function = r"^(?:(?:def|class)[ \t]+{0}\b|{0}[ \t]*(?::[^=\n]*)?=[ \t]*lambda\b)"
    return all(re.search(function.format(name), source, re.MULTILINE) for name in question.names)
