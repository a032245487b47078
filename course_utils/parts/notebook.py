"""A learner's answers, taken out of their exercise notebooks and checked again, as parts of the real model."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from course_utils.checks.interactive import examine
from course_utils.checks.judge.cells import complete, defines
from course_utils.checks.judge.time_limit import Patience, tries_answers
from course_utils.course import EXERCISES, WORK_FOLDER, find_notebook
from course_utils.errors import CourseError
from course_utils.parts.slots import Slot, slot_of

PASSED = "passed"


@dataclass(frozen=True)
class Row:
    """A slot as it is filled.

    own: the learner's answer, None where the model's own part stays. said: what its check says of it, or why it is not
    taken. hidden: why it cannot show in this model that the answer is wrong, where that is known.
    """

    slot: Slot
    own: Callable | None
    said: str
    hidden: str = ""


@dataclass(frozen=True)
class Parts(Mapping[str, Callable]):
    """Parts for `Real.with_parts`, by name. Shown in a notebook it is a table of rows: whose each part is."""

    rows: tuple[Row, ...]

    def __getitem__(self, part: str) -> Callable:
        for row in self.rows:
            if row.own and row.slot.part == part:
                return row.slot.fits(row.own)
        raise KeyError(part)

    def __iter__(self) -> Iterator[str]:
        return (row.slot.part for row in self.rows if row.own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __str__(self) -> str:
        return "\n".join(f"{name:34} {day}  {whose:9}  {said}" for name, day, whose, said in self._table())

    def _repr_html_(self) -> str:
        head = "".join(f"<th scope='col'>{each}</th>" for each in ("part", "day", "whose", "its check"))
        rows = ("".join(f"<td>{escape(each)}</td>" for each in row) for row in self._table())
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _table(self) -> Iterator[tuple[str, str, str, str]]:
        for row in self.rows:
            yield row.slot.name, str(row.slot.day), "yours" if row.own else "reference", row.said


def mine(*names: str, folder: Path = WORK_FOLDER / EXERCISES) -> Parts:
    """The learner's answers to these exercises, out of the saved notebooks in a folder, as parts of the real model.

    names are those of the slots (see `slots.SLOTS`), or what the answers are called. Of a notebook the cell that
    defines the answer runs, with what it uses by name from other cells, and nothing else; then its check runs. An
    answer that does not pass is taken all the same, so that one sees what it does; one that is not written, or cannot
    be run, leaves the model's own part. Raises KeyError for an unknown name, CourseError for two answers to one part
    and for a file that is no notebook.
    """
    slots = [slot_of(name) for name in names]
    taken: dict[str, Slot] = {}
    for slot in slots:
        if (other := taken.setdefault(slot.part, slot)) is not slot:
            raise CourseError(f"{other.name} and {slot.name} are the same part of the model: take one of them")
    return Parts(tuple(_row(slot, folder) for slot in slots))


def _row(slot: Slot, folder: Path) -> Row:
    path = find_notebook(folder, slot.day)
    if path is None:
        return Row(slot, None, f"there is no notebook of day {slot.day} in {folder}")
    cells = _code(path)
    own = [place for place, cell in enumerate(cells) if defines(cell, [slot.name])]
    if not own:
        return Row(slot, None, f"no cell of {path.name} defines {slot.name}")
    others = [cell for cell in reversed(cells) if cell != cells[own[-1]]]
    source = complete(cells[own[-1]], others).source
    namespace: dict[str, Any] = {"__name__": "parts"}
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), Patience() as patience:
            _run(source, namespace)
    except Exception as error:
        return Row(slot, None, f"its cell raises {type(error).__name__}: {error}")
    if patience.said:
        return Row(slot, None, patience.said)
    verdict = examine(slot.day, slot.grade_id, namespace)[1]
    if verdict.status == "missing":
        return Row(slot, None, verdict.message)
    said = PASSED if verdict.status == "passed" else f"{verdict.status}: {verdict.message}"
    return Row(slot, namespace[slot.name], said, slot.hidden.get(verdict.misconception or "", ""))


@tries_answers
def _run(source: str, namespace: dict[str, Any]) -> None:
    name = "its cell"  # noqa: F841  # what `Patience` says was tried
    exec(compile(source, "<answer>", "exec"), namespace)


def _code(path: Path) -> list[str]:
    """The code cells of a notebook file. Raises CourseError where it is none."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CourseError(f"{path.name}: this is no notebook ({type(error).__name__})") from None
