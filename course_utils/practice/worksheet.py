"""Make worksheets for a class with Typst: a PDF with another problem for each student, and a key for the teacher."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from course_utils.errors import CourseError
from course_utils.files import write_all

from .kinds import LARGEST, problem
from .problem import Problem
from .session import short

TEMPLATE = Path(__file__).with_name("worksheet.typ")
MAX_COPIES = 1000
INSTALL = "making worksheets needs Typst, which is not installed: pip install typst"


class NoWorksheet(CourseError):
    """Error: the worksheets cannot be made as asked."""


def make_worksheets(kind: str, copies: int, seed_file: Path, out: Path) -> list[Path]:
    """Write `kind_01.pdf` and so on, one for each student, `kind_all.pdf` and `kind_key.pdf`.

    `kind_all.pdf` holds all of them to print: each student's begins on a front side. The key has every step.

    Args:
        copies: the number of students, from 1 to 1000.
        seed_file: a file with any text, which with the kind decides the problems; the same text gives the same bytes.

    Returns:
        the files, those of the students first, the key last.

    Raises:
        NoWorksheet: `copies` is out of range, the seed cannot be read or is empty, or Typst is not installed.
        UnknownKind: there is no such kind.
        CourseError: a file cannot be written.
    """
    if not 1 <= copies <= MAX_COPIES:
        raise NoWorksheet(f"{copies} copies: give a number from 1 to {MAX_COPIES:,}")
    try:
        seed = seed_file.read_bytes().strip()
    except OSError as error:
        raise NoWorksheet(f"the seed file {seed_file} cannot be read: {error.strerror}") from None
    if not seed:
        raise NoWorksheet(f"the seed file {seed_file} is empty: write any text into it, and keep it")
    posed = [problem(kind, number) for number in _numbers(seed, kind, copies)]
    sheets = [_sheet(each, copy) for copy, each in enumerate(posed, start=1)]
    width = max(2, len(str(copies)))
    files: dict[Path, str | bytes] = {
        out / f"{kind}_{sheet['copy']:0{width}}.pdf": _set([sheet], key=False) for sheet in sheets
    }
    files[out / f"{kind}_all.pdf"] = _set(sheets, key=False)
    files[out / f"{kind}_key.pdf"] = _set(sheets, key=True)
    write_all(files)
    return list(files)


def _numbers(seed: bytes, kind: str, copies: int) -> list[int]:
    """Return `copies` different problem numbers, which the seed and the kind decide."""
    numbers: dict[int, None] = {}
    count = 0
    while len(numbers) < copies:
        digest = hashlib.sha256(seed + f"\n{kind}\n{count}".encode()).digest()
        numbers[int.from_bytes(digest[:8], "big") % LARGEST] = None
        count += 1
    return list(numbers)


def _sheet(posed: Problem, copy: int) -> dict[str, Any]:
    """Return the data of a problem for the template."""
    lines = posed.statement.splitlines()
    names = [line.partition(" = [")[0] for line in lines if " = [" in line]
    arrays = [values for values in posed.inputs.values() if values.ndim]
    return {
        "kind": posed.kind,
        "title": posed.kind.replace("-", " ").capitalize(),
        "number": posed.number,
        "copy": copy,
        "statement": [line for line in lines if " = [" not in line],
        "inputs": [{"name": name, "rows": _rows(values)} for name, values in zip(names, arrays, strict=False)],
        "steps": [
            {"name": step.name, "task": step.task, "rows": _rows(right, step.count)}
            for step, right in zip(posed.steps, posed.solution().values(), strict=True)
        ],
    }


def _rows(values: np.ndarray, count: bool = False) -> list[list[str]]:
    return [[short(x, count).replace("-", "−") for x in row] for row in np.atleast_2d(values)]


def _set(sheets: Sequence[dict[str, Any]], *, key: bool) -> bytes:
    """Return the sheets as one PDF; the same sheets give the same bytes."""
    try:
        import typst
    except ImportError:
        raise NoWorksheet(INSTALL) from None
    first = sheets[0]
    if key:
        what = "key"
    elif len(sheets) > 1:
        what = f"{len(sheets)} sheets"
    else:
        what = f"sheet {first['copy']}"
    data = json.dumps({"title": f"{first['title']}, {what}", "key": key, "sheets": sheets})
    return typst.compile(TEMPLATE, sys_inputs={"data": data})
