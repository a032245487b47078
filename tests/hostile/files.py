"""Files that are no submission, notebooks changed where nothing may be changed, and archives that lead astray."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from course_utils.answer_key.key import COURSE

from .entries import (
    FAILED,
    MARKER,
    SLIPS,
    UNREADABLE,
    Entry,
    grade_id,
    in_file,
    in_notebook,
    official,
    save,
)

NO_SLIPS: Mapping[str, str] = {}
MARKS = ("# NBVAL_SKIP", "nbval-skip", "nbval-ignore-output", "raises-exception")


def _answer(notebook: dict, name: str) -> dict:
    return next(cell for cell in notebook["cells"] if grade_id(cell) == name)


def _edit_checks(notebook: dict) -> None:
    for cell in notebook["cells"]:
        grading = cell["metadata"].get("nbgrader", {})
        if grading.get("grade"):
            grading["points"] = 1000
            cell["source"] = MARKS[0]
            cell["metadata"]["tags"] = list(MARKS[1:])
        cell.setdefault("outputs", [])
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "25 of 25 points"}]


def _delete_checks(notebook: dict) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not cell["metadata"].get("nbgrader", {}).get("grade")]


def _delete_answer(notebook: dict) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if grade_id(cell) != "scores"]


def _duplicate(notebook: dict) -> None:
    notebook["cells"].append({**_answer(notebook, "scores"), "source": "def scores(Q, K):\n    return 0"})


def _add_names(notebook: dict) -> None:
    for part in range(0, 9000, 1000):
        source = "".join(f"n{i}=n{i + 1}\n" for i in range(part, part + 1000))
        notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": source, "outputs": []})


def _retype(notebook: dict) -> None:
    _answer(notebook, "scores")["cell_type"] = "markdown"
    _answer(notebook, "find_the_bug")["cell_type"] = "raw"


def _rename(notebook: dict) -> None:
    for name, other in (("softmax_row", "scale_scores"), ("attention_batched", "../../solutions/day1")):
        cell = _answer(notebook, name)
        cell["metadata"]["nbgrader"]["grade_id"] = cell["id"] = other


def _claim_all(notebook: dict) -> None:
    """One right answer under the ids of all exercises."""
    source = _answer(notebook, "scale_scores")["source"]
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = source


def _insert_before(notebook: dict) -> None:
    attack = "import os\nos._exit(1)  # @MARKER@"
    notebook["cells"].insert(0, {"cell_type": "code", "metadata": {}, "source": attack, "outputs": []})
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": "%reset -f", "outputs": []})


def _foreign_kernel(notebook: dict) -> None:
    notebook["metadata"] = {
        "kernelspec": {"name": f"../../{MARKER}", "display_name": "Bash", "language": "bash"},
        "language_info": {"name": "R", "file_extension": ".r"},
    }


def _strange_metadata(notebook: dict) -> None:
    deep: list = []
    for _ in range(400):
        deep = [deep]
    notebook["metadata"]["deep"] = deep
    notebook["cells"][:0] = [
        None,
        7,
        {},
        {"cell_type": "code"},
        {"cell_type": "code", "source": {"a": 1}, "metadata": 3},
    ]
    notebook["cells"].append({"cell_type": "code", "id": ["softmax_row"], "metadata": {"nbgrader": []}, "source": []})


def _attachments(notebook: dict) -> None:
    notebook["cells"][0]["attachments"] = {"x.png": {"image/png": "A" * 10_000_000}}


def _surrogates(notebook: dict) -> None:
    _answer(notebook, "scores")["source"] = 'bad = "\ud800"\ndef scores(Q, K):\n    return bad'
    _answer(notebook, "find_the_bug")["source"] = (
        "# \x00\x1b[31m\u202e\ndef broken_attention(q, k, v):\n    return 1, 2"
    )


def _huge_file(folder: Path) -> Path:
    path = folder / "day1_ada.ipynb"
    with path.open("wb") as file:
        file.truncate(2**31)
    return path


def _linked(target: str | Path) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        inside = folder / "class"
        inside.mkdir()
        (inside / "day1_ada.ipynb").symlink_to(target)
        return inside

    return write


def _named(name: str) -> Callable[[Path], Path]:
    return lambda folder: save(official(1, SLIPS), folder / name)


def _zipped(*members: tuple[str, bytes | dict], outer: str = "class.zip") -> Callable[[Path], Path]:
    """A writer of a zip with the given members; a dict is day 1's notebook with those answers."""

    def write(folder: Path) -> Path:
        with zipfile.ZipFile(folder / outer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, json.dumps(official(1, content)) if isinstance(content, dict) else content)
        return folder / outer

    return write


def _zip_with_link(folder: Path) -> Path:
    info = zipfile.ZipInfo("ada/day1_ada.ipynb")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(folder / "class.zip", "w") as archive:
        archive.writestr(info, str(COURSE.path(1)))
    return folder / "class.zip"


def _nested_bomb() -> bytes:
    data = b"\0" * 40_000_000
    for depth in range(3):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(4):
                archive.writestr(f"day1_{depth}{number}.zip", data)
        data = made.getvalue()
    return data


def _slow_to_read(number: int) -> bytes:
    """A notebook of no day, in whose long cells stand the names that answers by hand have, to no effect."""
    names = [name for day in COURSE.days() for q in COURSE.exercises(day) if q.by_hand for name in q.names]
    source = f"# {number} {' '.join(names)}\n" + "x=1\n" * 4800
    cells = [{"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": f"# {i}\n{source}"} for i in range(15)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def _cut_zip(folder: Path) -> Path:
    path = _zipped(("ada/day1_ada.ipynb", {}))(folder)
    path.write_bytes(path.read_bytes()[:-40])
    return path


def _changed(name, tries, change, deserves, sources=NO_SLIPS):
    return Entry(name, tries, in_notebook(change, sources), deserves)


def _unreadable(name, tries, write):
    return Entry(name, tries, write if callable(write) else in_file(write), UNREADABLE)


ENTRIES = [
    _changed("edited checks", "gives itself points, tags and outputs", _edit_checks, FAILED, SLIPS),
    _changed("deleted checks", "has nothing left that could fail", _delete_checks, FAILED, SLIPS),
    _changed("a deleted answer", "has one answer cell less", _delete_answer, {"scores": "missing"}),
    _changed("moved cells", "has its cells in reverse order", lambda book: book["cells"].reverse(), FAILED, SLIPS),
    _changed("a duplicated answer", "answers twice, wrongly at last", _duplicate, {"scores": "failed"}),
    _changed(
        "retyped cells", "has answers in cells of text", _retype, {"scores": "missing", "find_the_bug": "missing"}
    ),
    _changed(
        "renamed ids",
        "gives one answer the id of another, and another that of a path",
        _rename,
        FAILED | {"scale_scores": "failed"},
        SLIPS | {"scale_scores": "def scale_scores(S, d_k):\n    return S"},
    ),
    _changed(
        "one right answer everywhere",
        "puts the easiest answer under every id",
        _claim_all,
        dict.fromkeys((q.grade_id for q in COURSE.exercises(1) if q.grade_id != "scale_scores"), "error"),
    ),
    _changed(
        "cells before and after", "ends the kernel before the first answer and empties it after", _insert_before, {}
    ),
    _changed("another kernel", "asks for a kernel by a path, in another language", _foreign_kernel, {}),
    _changed(
        "names in other cells",
        "uses thousands of names from other cells, each made of the next, for the grader to bring along",
        _add_names,
        {"scores": "error"},
        {"scores": "def scores(Q, K):\n    return n0"},
    ),
    _changed("strange cells", "has cells that are numbers, lists and 400 levels deep", _strange_metadata, {}),
    _changed("10 MB of pictures", "brings large attachments", _attachments, {}),
    _changed(
        "half a character",
        "has lone surrogates, a null byte and terminal codes in its sources",
        _surrogates,
        {"scores": "error", "find_the_bug": "error"},
    ),
    _unreadable("a huge file", "is two GiB of nothing", _huge_file),
    _unreadable("deep JSON", "is nested a million levels deep", b'{"nbformat": 4, "cells": ' + b"[" * 10**6),
    _unreadable(
        "deep JSON that ends",
        "is nested deeply and closed again",
        b'{"nbformat": 4, "cells": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    ),
    _unreadable(
        "a long number",
        "has an integer of a million digits",
        b'{"nbformat": 4, "n": ' + b"9" * 10**6 + b', "cells": []}',
    ),
    _unreadable("invalid Unicode", "is not text in UTF-8", b'{"nbformat": 4, "cells": ["\xff\xfe\xed\xa0\x80"]}'),
    _unreadable(
        "UTF-16",
        "is a notebook in another encoding",
        lambda folder: in_file(json.dumps(official(1)).encode("utf-16"))(folder),
    ),
    _unreadable("nbformat 3", "is a notebook of the old format", b'{"nbformat": 3, "worksheets": [{"cells": []}]}'),
    _unreadable("nbformat of words", "calls its format four", b'{"nbformat": "4", "cells": []}'),
    _unreadable("a pickle", "is a pickle that would run a program", b"cos\nsystem\n(S'touch @MARKER@'\ntR."),
    _unreadable("a link to the solutions", "is a symbolic link to the official notebook", _linked(COURSE.path(1))),
    _unreadable("a link without end", "is a symbolic link to itself", _linked("day1_ada.ipynb")),
    _unreadable("a link to a device", "is a symbolic link to zeros without end", _linked("/dev/zero")),
    Entry("a name with markup", "has markup and a formula in its name", _named("day1_=cmd()<script>.ipynb"), FAILED),
    Entry("a name with control codes", "has a line break in its name", _named("day1_a\n\x1b[31m\u202eb.ipynb"), FAILED),
    _unreadable("a zip that slips", "names a file above its folder", _zipped((f"../../{MARKER}/day1_ada.ipynb", {}))),
    _unreadable("a zip with an absolute name", "names a file from /", _zipped((f"/tmp/{MARKER}/day1_ada.ipynb", {}))),
    _unreadable(
        "a zip with backslashes", "names a file as Windows would", _zipped((f"..\\{MARKER}\\day1_ada.ipynb", {}))
    ),
    _unreadable("a zip bomb", "unpacks to 80 MB of one character", _zipped(("ada/day1_ada.ipynb", b" " * 80_000_000))),
    _unreadable(
        "a zip of zips of zips",
        "unpacks to gigabytes, level by level",
        lambda f: _zipped(("ada/day1.zip", _nested_bomb()))(f),
    ),
    _unreadable("a zip with a link", "holds a symbolic link to the official notebook", _zip_with_link),
    _unreadable("a zip cut off", "lacks its last bytes", _cut_zip),
    _unreadable(
        "a zip of files to look into",
        "has 40 notebooks of long cells, none of them of a day, for the grader to find the one that counts",
        lambda folder: _zipped(*((f"ada/n{i}.ipynb", _slow_to_read(i)) for i in range(40)))(folder),
    ),
    Entry(
        "a name with another minus", "begins its name like a formula, with U+2212", _named("−2+3_day1.ipynb"), FAILED
    ),
]
