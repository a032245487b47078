"""The cells that were run in a notebook: their texts, their ids and their errors, and which one defines an answer."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.checks.cells import defines
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import IN_A_CELL, UNWRITTEN, describe_error, find_ladder

ELSEWHERE = "It counts only if its cell is above the check that came with the exercise, and below its answer cell."
_ERRORS: dict[tuple[int, str], tuple[str, int]] = {}  # the error and its line, by number and text of a cell
_IDS: dict[tuple[int, str], str] = {}  # the id of a cell in its notebook, if Jupyter sent it, by the same


def record_cells() -> None:
    """Register a callback that records each cell's id and failure from now on, if there is a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell:
        shell.events.register("post_run_cell", _record_cell)


def _record_cell(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    if result.execution_count is None:
        return
    cell = result.execution_count, result.info.raw_cell.rstrip()
    _IDS[cell] = result.info.cell_id or ""
    if error is None:
        return
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if IN_A_CELL.search(each.filename)]
    message = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else describe_error(error)
    line = 0 if result.error_before_exec or not lines else lines[0] or 0
    _ERRORS[cell] = message, line


def cells_run(namespace: Mapping[str, Any]) -> Sequence:
    """Return the cells that were run, by Jupyter's number, and as typed if Jupyter's history is available."""
    cells = namespace.get("In", ())
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell.history_manager.input_hist_raw if shell and shell.user_ns.get("In") is cells else cells


def cell_number(day: int, grade_id: str, namespace: Mapping[str, Any]) -> int | None:
    """Return Jupyter's number of the cell that last defined the answer; None if no notebook cell did."""
    names = find_ladder(day, grade_id).names
    cells = cells_run(namespace)
    numbers = [number for number, cell in enumerate(cells) if isinstance(cell, str) and defines(cell, names[:1])]
    complete_ones = (number for number in reversed(numbers) if defines(cells[number], names))
    return next(complete_ones, max(numbers, default=None))


def why_undefined(day: int, grade_id: str, namespace: Mapping[str, Any]) -> str:
    """Return the message for an answer that no cell defined, or whose cell failed before it did so; "" for others."""
    names = find_ladder(day, grade_id).names
    name = re.escape(names[0])
    begins = re.compile(rf"^(?:(?:async +)?def|class) +{name}\b|^{name} *[:=]", re.MULTILINE)
    definitions = [(i, match) for i, cell in enumerate(cells_run(namespace)) if (match := begins.search(str(cell)))]
    if definitions:
        number, match = definitions[-1]
        error, line = _ERRORS.get((number, match.string.rstrip()), ("", 0))
        if error and line <= match.string.count("\n", 0, match.start()) + 1:
            return f"Its cell failed when it was last run, and defined nothing: {error}. Fix the cell and run it again."
    missing = [each for each in names if each not in namespace]
    if missing:
        return f"No cell that has run in this kernel defines {missing[0]}. Run the answer cell, then this check."
    return ""


def note_elsewhere(day: int, grade_id: str, namespace: Mapping[str, Any], verdict: Verdict) -> str:
    """Return ELSEWHERE if another cell replaces a passed answer in the exercise's own cell; else, or if unknown, ""."""
    if verdict.status != "passed":
        return ""
    cells = cells_run(namespace)
    numbers = {_IDS.get((i, str(cell).rstrip()), ""): i for i, cell in enumerate(cells)}  # by id, the last run
    number = cell_number(day, grade_id, namespace)
    if number not in numbers.values() or number in (numbers.get(""), numbers.get(grade_id)):
        return ""
    own_cell = str(cells[numbers[grade_id]]) if grade_id in numbers else UNWRITTEN
    if UNWRITTEN in own_cell or not defines(own_cell, find_ladder(day, grade_id).names):
        return ""
    return ELSEWHERE


def other_cells(cells: Sequence, answer: str) -> list[str]:
    """Return the cells but for the answer's, in order; of one that ran several times only the last run."""
    texts = dict.fromkeys(cell for cell in reversed(cells) if isinstance(cell, str) and cell != answer)
    return [*reversed(texts)]
