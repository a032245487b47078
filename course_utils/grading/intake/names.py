"""Tell which student a file or folder belongs to, by the name that Moodle, Canvas, a teacher or a student gave it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.course import EXERCISES, SOLUTIONS, WORK_FOLDER, around_day, day_of, notebook_paths
from course_utils.grading.intake.late import CANVAS_MARK


def safe_name(student: str) -> str:
    """Return a folder name for a student that is valid on every system and differs between students."""
    plain = "".join(c if c in " ()-_.,'" or unicodedata.category(c)[0] in "LMN" else "_" for c in student)
    short = plain.encode()[:80].decode(errors="ignore").strip(" .")
    reserved = re.match(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", short, re.IGNORECASE)
    if short and short == student and not reserved:
        return short
    digest = hashlib.sha256(student.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{'_' if reserved else ''}{short}-{digest}".lstrip("-")


_MOODLE = re.compile(r"(?P<name>[^_]*)_(?:(?P<id>\d{1,20})_)?assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.DOTALL)


_CANVAS = re.compile(
    rf"(?:(?P<name>.+?)(?P<late>_{CANVAS_MARK})?_(?P<id>\d{{1,20}})"
    rf"|(?P<late_anonymous>{CANVAS_MARK}_)?(?P<anonymous>anon_[A-Za-z0-9]+))"
    r"_(?P<file>\d{1,20})_(?P<rest>.+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Named:
    """Student and file that a name stands for.

    Attributes:
        student: the student's name; None if the name contains none.
        file: the file name that the student chose.
        lms_id: Moodle's participant number or Canvas's user id.
        order: Canvas's file number, which orders resubmissions.
        local: whether `lms_id` identifies the student in this assignment only.
        back: name of the folder (Moodle) or file (Canvas) in which the platform takes feedback back; empty if in none.
        late: whether the name says that the submission was late, see `intake.late`.
    """

    student: str | None
    file: str
    lms_id: str = ""
    order: int = 0
    local: bool = False
    back: str = ""
    late: bool = False


def read_name(name: str, folder: bool = False) -> Named:
    """Parse the name that Moodle, Canvas, a teacher or a student gave to a file or folder."""
    if match := _MOODLE.fullmatch(name):
        back = f"{match['name']}_{match['id']}_assignsubmission_file_" if match["id"] else ""
        return Named(match["name"], match["rest"] or "", match["id"] or "", local=True, back=back)
    if folder:
        return Named(None if without_day(name) == "" else name, "")
    if (match := _CANVAS.fullmatch(name)) and (match["anonymous"] or match["name"] == match["name"].lower()):
        clear = not re.match(r"\d+_", match["rest"])  # or else a name that ends in a number could pass for another's id
        lms_id = match["id"] if match["id"] and clear else ""
        back = name if lms_id or match["anonymous"] else ""
        late = bool(match["late"] or match["late_anonymous"])
        return Named(match["anonymous"] or match["name"], match["rest"], lms_id, int(match["file"]), False, back, late)
    return Named(without_day(name.rpartition(".")[0]) or None, name)


def without_day(stem: str) -> str:
    """Return a file name without the day and title of its notebook: the student's name, or an empty string.

    What JupyterLab, Windows, macOS and Google Drive add to the name of a copy is left out too.
    """
    parts = around_day(stem)
    if parts is None:
        return stem
    before = re.sub(r"^copy of(?![a-z])", "", parts[0].strip(" _-"), flags=re.IGNORECASE).strip(" _-")
    after = re.sub(r"(^|[ _-]+)copy[ _-]*\(?\d{0,2}\)?$", "", parts[1], flags=re.IGNORECASE)
    for title in _titles():
        after = re.sub(rf"^[ _-]*{title}(?![a-z])", "", after, flags=re.IGNORECASE)
    after = re.sub(r"^[ _-]*submissions?$|^[ _-]*\(?\d{0,2}\)?$", "", after, flags=re.IGNORECASE)
    return before or after.strip(" _-")


@cache
def _titles() -> list[str]:
    files = [path for folder in (SOLUTIONS, EXERCISES) for _, path in notebook_paths(WORK_FOLDER / folder)]
    return sorted({path.stem.partition("_")[2] for path in files})


def known_day(name: str) -> int | None:
    """Return the day in a name, or None if there is none or it has no exercises."""
    day = day_of(name)
    return day if day in days_with_exercises() else None
