"""Take a learner's answers out of their exercise notebooks, check them again, and make them parts of the real model."""

from __future__ import annotations

import ast
import io
import json
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

from course_utils.checks.cells import PARSE_ERRORS, as_python, defines
from course_utils.checks.complete_answer import complete_answer
from course_utils.checks.examination import examine
from course_utils.checks.judge.time_limit import TimeLimit, runs_answer
from course_utils.course import EXERCISES, WORK_FOLDER, find_notebook
from course_utils.errors import CourseError
from course_utils.parts.slots import Slot, slot_of

PASSED = "passed"
NOT_DONE, FAILED, TOO_SLOW = "not done", "failed", "too slow"
OUTCOMES = {"passed": PASSED, "missing": NOT_DONE, "timeout": TOO_SLOW}  # of a verdict's status; FAILED for all others


@dataclass(frozen=True)
class Row:
    """A slot of the model with the function that fills it.

    Attributes:
        own: the learner's answer; None if the model keeps its own part.
        report: the verdict of the answer's check, or the reason why the answer is not taken.
        hidden: the reason why the answer's mistake cannot show in this model; empty if none is known.
        outcome: PASSED, NOT_DONE, FAILED or TOO_SLOW.
    """

    slot: Slot
    own: Callable | None
    report: str
    hidden: str = ""
    outcome: str = NOT_DONE


@dataclass(frozen=True, repr=False)
class Parts(Mapping[str, Callable]):
    """Parts for `Real.with_parts`, by name. A notebook shows them as a table with the origin and check of each part."""

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
        return "\n".join(f"{name:34} {day}  {whose:9}  {report}" for name, day, whose, report in self._table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(("part", "day", "whose", "its check"), self._table())

    def _table(self) -> Iterator[tuple[str, str, str, str]]:
        for row in self.rows:
            yield row.slot.name, str(row.slot.day), "yours" if row.own else "reference", row.report


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return rows of words as a table for a notebook, escaped, with these names above the columns."""
    head = "".join(f"<th scope='col'>{each}</th>" for each in columns)
    lines = ("".join(f"<td>{escape(each)}</td>" for each in row) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def mine(*names: str, folder: Path = WORK_FOLDER / EXERCISES) -> Parts:
    """Return the learner's answers to these exercises, from the notebooks saved in `folder`, as parts of the model.

    Only the cell that defines an answer runs, with the code of other cells that it uses by name; then the check runs.
    An answer that does not pass is taken all the same, so that the learner sees its effect. If an answer is missing or
    cannot run, the model keeps its own part.

    Args:
        names: the grade_ids of the exercises (see `slots.SLOTS`), or the names of the answers.

    Raises:
        KeyError: a name is unknown.
        CourseError: two answers fill the same part, or a file is no notebook.
    """
    slots = [slot_of(name) for name in names]
    taken: dict[str, Slot] = {}
    for slot in slots:
        if (other := taken.setdefault(slot.part, slot)) is not slot:
            raise CourseError(f"{other.name} and {slot.name} are the same part of the model: take one of them")
    return Parts(tuple(take(slot, folder) for slot in slots))


def _undefined(slot: Slot, cells: Sequence[str], notebook: str) -> Row:
    """Return the row of an answer that no cell defines, or whose cell is not valid Python."""
    for cell in reversed(cells):
        if re.search(rf"^(?:def|class) +{re.escape(slot.name)}\b", cell, re.MULTILINE):
            try:
                ast.parse(as_python(cell))
            except PARSE_ERRORS as error:
                why = f"{error.msg}, at line {error.lineno}" if isinstance(error, SyntaxError) else str(error)
                return Row(slot, None, f"its cell is not valid Python: {why}", outcome=FAILED)
    return Row(slot, None, f"no cell of {notebook} defines {slot.name}")


def take(slot: Slot, folder: Path) -> Row:
    """Return the row of a slot, with the learner's answer if it can be run."""
    path = find_notebook(folder, slot.day)
    if path is None:
        return Row(slot, None, f"there is no notebook of day {slot.day} in {folder}")
    cells = _code_cells(path)
    own = [place for place, cell in enumerate(cells) if defines(cell, [slot.name])]
    if not own:
        return _undefined(slot, cells, path.name)
    place = own[-1]
    end = next((i for i in range(place + 1, len(cells)) if cells[i].startswith("check(")), place + 1)
    above, after, below = cells[:place], cells[place + 1 : end], cells[end:]
    source = complete_answer(cells[place], above, after, below, [slot.name]).source
    namespace: dict[str, Any] = {"__name__": "parts"}
    interrupts = list[int]()
    try:
        with _record_interrupts(interrupts):
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), TimeLimit() as limit:
                _run(source, namespace)
            if limit.message:
                return Row(slot, None, limit.message, outcome=TOO_SLOW)
            if slot.name not in namespace:
                return Row(slot, None, f"its cell runs, and does not define {slot.name}", outcome=FAILED)
            verdict = examine(slot.day, slot.grade_id, namespace)[1]
    except BaseException as error:  # the answer's own, such as SystemExit, but not the learner's Ctrl-C
        if interrupts:
            raise
        return Row(slot, None, f"its cell raises {type(error).__name__}: {error}".rstrip(": "), outcome=FAILED)
    if verdict.status == "missing":
        return Row(slot, None, verdict.message)
    outcome = OUTCOMES.get(verdict.status, FAILED)
    report = PASSED if outcome == PASSED else f"{verdict.status}: {verdict.message}"
    return Row(slot, namespace[slot.name], report, slot.hidden.get(verdict.mistake or "", ""), outcome)


@runs_answer("its cell")
def _run(source: str, namespace: dict[str, Any]) -> None:
    exec(compile(source, "<answer>", "exec", dont_inherit=True), namespace)


@contextmanager
def _record_interrupts(interrupts: list[int]) -> Iterator[None]:
    """Record the interrupts that come from outside within a block; outside the main thread one is recorded at once."""
    if threading.current_thread() is not threading.main_thread():
        interrupts.append(signal.SIGINT)
        yield
        return
    before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _code_cells(path: Path) -> list[str]:
    """Return the source of the code cells of a notebook. Raises CourseError if the file is no notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8-sig"))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise CourseError(f"{path.name}: not a notebook ({type(error).__name__})") from None
