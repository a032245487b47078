"""What an entry of the corpus is, and the makers of submissions that most entries share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from course_utils.answer_key.key import COURSE
from course_utils.checks.judge.exercise_tables import all_exercises

MARKER = f"hx{uuid.uuid4().hex[:8]}"  # in the name of every process and file that an attack tries to leave
PLACES = ".places"  # lies beside a submission: what to write for @MARKER@, with the entry's number, and for @PORT@
UNREADABLE = "unreadable"
DUEL = "tells_right"  # left out by who does not attack it: it takes as long as all others together


@dataclass(frozen=True)
class Entry:
    """A hostile submission and the grade that it deserves.

    write(folder): puts the submission there and returns its path; a source may hold @MARKER@, @FOLDER@ and @PORT@.
    deserves: the exercises that do not pass and their statuses, or "unreadable". partial: the points that such an
    exercise still earns. needs: what must be shut off for it to gain and leave nothing: files, network or processes.
    withheld: texts that no message to the student may hold. by_luck: what it is told hangs on the order that grading
    draws. listed: exercises whose points it earns, since nobody can hear all that its process does, and of which a
    teacher is shown the lines that do it.
    """

    name: str
    tries: str
    write: Callable[[Path], Path]
    deserves: Mapping[str, str] | str
    day: int = 1
    needs: str = ""
    withheld: tuple[str, ...] = ()
    by_luck: bool = False
    listed: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The points that the submission deserves."""
        if self.deserves == UNREADABLE:
            return 0.0
        exercises = all_exercises(self.day).items()
        return sum(each.points for grade_id, each in exercises if grade_id not in {DUEL, *self.deserves})


def in_answers(sources: Mapping[str, str], day: int = 1) -> Callable[[Path], Path]:
    """A writer of a notebook with all answers right but the given ones."""

    def write(folder: Path) -> Path:
        return save(official(day, fill(sources, folder)), folder / f"day{day}_ada.ipynb")

    return write


def in_notebook(change: Callable[[dict], object], sources: Mapping[str, str] = {}) -> Callable[[Path], Path]:
    """A writer of day 1's notebook after `change` was at work on it."""

    def write(folder: Path) -> Path:
        notebook = official(1, fill(sources, folder))
        change(notebook)
        return save(notebook, folder / "day1_ada.ipynb")

    return write


def in_file(content: bytes | Callable[[], bytes], name: str = "day1_ada.ipynb") -> Callable[[Path], Path]:
    """A writer of a file with the given bytes."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content() if callable(content) else content)
        return path

    return write


def official(day: int, sources: Mapping[str, str] = {}) -> dict:
    """A copy of the official notebook as plain JSON, with the given sources in its answer cells, and no test of
    implementations but a given one."""
    notebook = json.loads(json.dumps(COURSE.notebook(day)))
    answers = {DUEL: "def tells_right(f):\n    raise NotImplementedError\n", **sources}
    for cell in notebook["cells"]:
        if grade_id(cell) in answers:
            cell["source"] = answers[grade_id(cell)]
    return notebook


def solution(name: str, day: int) -> str:
    """The official answer to an exercise."""
    return next(cell["source"] for cell in COURSE.notebook(day)["cells"] if grade_id(cell) == name)


def save(notebook: Mapping, path: Path) -> Path:
    """Write a notebook as it is, valid or not."""
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def grade_id(cell: Mapping) -> str | None:
    """The nbgrader grade_id of a cell, None where there is none."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def fill(sources: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The sources with the marker, the submission's folder and the listener's port in their places."""
    places = {"@MARKER@": MARKER, "@FOLDER@": str(folder), "@PORT@": "9"}
    if (folder / PLACES).exists():
        places |= json.loads((folder / PLACES).read_text())
    filled = dict(sources)
    for name, source in filled.items():
        for place, value in places.items():
            source = source.replace(place, value)
        filled[name] = source
    return filled


# What goes into the answers -----------------------------------------------------------------------------------------

UNSHIFTED = """
def softmax_row(row):
    e = [math.exp(x) for x in row]
    return [x / sum(e) for x in e]
"""
UNSCALED = """
def self_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = torch.softmax(q @ k.T, dim=-1)
    return weights @ v, weights
"""
RIGHT_SCALE = "def scale_scores(S, d_k):\n    return [[s / math.sqrt(d_k) for s in row] for row in S]\n"
SLIPS = {"softmax_row": UNSHIFTED, "self_attention": UNSCALED}
FAILED = dict.fromkeys(SLIPS, "failed")

SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
"""
CHECKS = """
import gc
evidence = next(each for each in gc.get_referents(check) if hasattr(each, "__globals__")).__globals__
"""
KERNEL = """
from IPython.core.interactiveshell import InteractiveShell
kernel = InteractiveShell.instance().kernel
"""


def cheat(attack: str, **also: str) -> Callable[[Path], Path]:
    """A writer of a notebook with two slips, whose first answer also runs the attack."""
    return in_answers(SLIPS | {"softmax_row": attack + UNSHIFTED} | also)


def answer_entry(
    name: str, tries: str, grade_id: str, source: str, status: str = "failed", listed: bool = False, day: int = 1
) -> Entry:
    """An entry that is one answer. If it is listed, a teacher is shown its lines, and it loses no points."""
    deserves = {} if listed else {grade_id: status}
    return Entry(name, tries, in_answers({grade_id: source}, day), deserves, day, listed=(grade_id,) if listed else ())
