"""Whose a file or a folder is, by the name that Moodle, Canvas, a teacher or a student gave it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from course_utils.checks.judge.exercises import days_with_exercises
from course_utils.course import EXERCISES, SOLUTIONS, WORK_FOLDER, around_day, day_of, notebook_paths


def safe_name(student: str) -> str:
    """A student's name as the name of a folder: one that every system can have, another for every student."""
    plain = "".join(c if c in " ()-_.,'" or unicodedata.category(c)[0] in "LMN" else "_" for c in student)
    kept = plain.encode()[:80].decode(errors="ignore").strip(" .")
    reserved = re.match(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", kept, re.IGNORECASE)
    if kept and kept == student and not reserved:
        return kept
    digest = hashlib.sha256(student.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{'_' if reserved else ''}{kept}-{digest}".lstrip("-")


_MOODLE = re.compile(r"(?P<name>[^_]*)_(?:(?P<id>\d{1,20})_)?assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.DOTALL)


_CANVAS = re.compile(
    r"(?:(?P<name>.+?)(?:_LATE)?_(?P<id>\d{1,20})|(?:LATE_)?(?P<anonymous>anon_[A-Za-z0-9]+))"
    r"_(?P<file>\d{1,20})_(?P<rest>.+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Named:
    """What a name says. student: None when it names nobody. file: as the student called it. order: of resubmissions.
    local: whether the id is one person's for this assignment only."""

    student: str | None
    file: str
    lms_id: str = ""
    order: int = 0
    local: bool = False


def read_name(name: str, folder: bool = False) -> Named:
    """Whose a file or folder is, by the name that Moodle, Canvas, a teacher or a student gave it."""
    if found := _MOODLE.fullmatch(name):
        return Named(found["name"], found["rest"] or "", found["id"] or "", local=True)
    if folder:
        return Named(None if without_day(name) == "" else name, "")
    if (found := _CANVAS.fullmatch(name)) and (found["anonymous"] or found["name"] == found["name"].lower()):
        clear = not re.match(r"\d+_", found["rest"])  # else a name that ends in a number could pass for another's id
        lms_id = found["id"] if found["id"] and clear else ""
        return Named(found["anonymous"] or found["name"], found["rest"], lms_id, int(found["file"]))
    return Named(without_day(name.rpartition(".")[0]) or None, name)


def without_day(stem: str) -> str:
    """A file's name without the day and the title of its notebook: the student, or nothing."""
    parts = around_day(stem)
    if parts is None:
        return stem
    before, after = parts[0].strip(" _-"), parts[1]
    for title in _titles():
        after = re.sub(rf"^[ _-]*{title}(?![a-z])", "", after, flags=re.IGNORECASE)
    after = re.sub(r"^[ _-]*submissions?$|^[ _-]*\(?\d{0,2}\)?$", "", after, flags=re.IGNORECASE)
    return before or after.strip(" _-")


@cache
def _titles() -> list[str]:
    files = [path for folder in (SOLUTIONS, EXERCISES) for _, path in notebook_paths(WORK_FOLDER / folder)]
    return sorted({path.stem.partition("_")[2] for path in files})


def known_day(name: str) -> int | None:
    """The day that a name speaks of, if it has exercises."""
    day = day_of(name)
    return day if day in days_with_exercises() else None
