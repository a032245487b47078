"""Where the course lies, which days it has, and where the files of a day lie.

Only this module defines these facts; it reads the table of days from `days/days.toml`. A day's notebook has the same
name in every folder, such as `day1_attention_by_hand`, and that name begins with the day's number.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]  # the folder that holds this package
IN_CHECKOUT = (ROOT / "pyproject.toml").exists()  # False if only the package is installed
WORK_FOLDER = (
    ROOT if IN_CHECKOUT else Path()
)  # for notebooks, guesses and grades: the checkout, or the current folder if only the package is installed
LESSONS, SOLUTIONS, EXERCISES = "notebooks", "solutions", "exercises"  # folders of built notebooks
# Built notebooks that belong to no day, beside the course map; a class gets them too.
TO_LOOK_UP = ("grading", "symbols", "masks", "variants", "references")
SOURCES = {LESSONS: "sources/lessons", SOLUTIONS: "sources/exercises"}  # folders of the sources of these notebooks


@dataclass(frozen=True)
class Sitting:
    """A part of a day that one does in one go.

    Attributes:
        question: the question that its lesson answers, as Markdown.
        minutes: minutes that its part of the lesson takes.
        last_part: the last part of the lesson that belongs to it.
    """

    question: str
    minutes: int
    last_part: int


@dataclass(frozen=True)
class Day:
    """A day of the course.

    Attributes:
        doing: a sentence that says what the learner does on this day.
        minutes: minutes that the lesson takes; 0 while the day is only planned.
        sittings: the sittings that the lesson is divided into; none if it is not.
    """

    number: int
    title: str
    doing: str
    minutes: int = 0
    sittings: tuple[Sitting, ...] = ()

    def sitting_of(self, part: int) -> int:
        """Return the number of the sitting that a part of the lesson belongs to, from 1; 0 without sittings."""
        earlier = [number for number, each in enumerate(self.sittings, 1) if part <= each.last_part]
        return earlier[0] if earlier else len(self.sittings)

    def notebook(self, folder: str, root: Path = WORK_FOLDER) -> Path | None:
        """Return the path of the day's notebook in a folder of the course, or None if it has none, as a planned day."""
        return find_notebook(root / folder, self.number)


_TABLE = Path(__file__).parent / "days" / "days.toml"


def _read_day(entry: dict[str, Any]) -> Day:
    sittings = tuple(Sitting(**each) for each in entry.pop("sittings", ()))
    minutes = sum(each.minutes for each in sittings) or entry.pop("minutes", 0)
    return Day(**entry, minutes=minutes, sittings=sittings)


DAYS = tuple(map(_read_day, tomllib.loads(_TABLE.read_text(encoding="utf-8"))["days"]))


def day_numbered(number: int) -> Day:
    """Return the day with a number, which the course has to have."""
    return next(day for day in DAYS if day.number == number)


NUMBERS = tuple(day.number for day in DAYS)
_DAY = re.compile(r"(?<![^\W\d_])day[ _-]?0*(\d{1,3})(?!\d)", re.IGNORECASE)


def version() -> str:
    """Return the version of the course, such as `0.3.0`; the tag of its commit is the same with a v before it.

    A checkout reads it from pyproject.toml, an installed course from its package metadata.
    """
    return _settings()["version"] if IN_CHECKOUT else metadata("course_utils")["Version"]


def repository() -> str:
    """Return the address of the course's repository, without a slash at its end.

    A checkout reads `[project.urls]` in pyproject.toml, an installed course its package metadata. A class's edition
    names no repository; then the address is empty.
    """
    if IN_CHECKOUT:
        return _settings().get("urls", {}).get("Repository", "").rstrip("/")
    urls = dict(line.split(", ", 1) for line in metadata("course_utils").get_all("Project-URL") or ())
    return urls.get("Repository", "").rstrip("/")


def is_published() -> bool:
    """Return whether the address of the course's repository is set. Until then its owner is called OWNER."""
    return bool(repository()) and "/OWNER/" not in repository()


def folder_advice() -> str:
    """Return the end of an error message: what to do when a folder is not one of the course's."""
    if IN_CHECKOUT or not is_published():
        return "run this in the course's folder"
    return f"the installed course has no notebooks: git clone {repository()} and run this in its folder"


def _settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def day_of(name: str) -> int | None:
    """Return the day number in a file's name, or None: 1 for day1_….ipynb, ada_day1.ipynb and Day 01.ipynb."""
    match = _DAY.search(name)
    return int(match[1]) if match else None


def is_there(number: int | None) -> bool:
    """Return False for a day that is only planned. It may have drafts, but they are neither built nor released."""
    return all(day.minutes for day in DAYS if day.number == number)


def tens(minutes: int) -> int:
    """Round to the nearest ten, with 5 always upwards, because `round` would turn 165 into 160 but 175 into 180."""
    return (minutes + 5) // 10 * 10


def duration(minutes: int) -> str:
    """Return minutes as `45 min` or `2 h 20 min`, rounded to the nearest five from an hour on, as a sitting is."""
    hours, rest = divmod((minutes + 2) // 5 * 5 if minutes >= 60 else minutes, 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))


def in_sittings(day: Day) -> str:
    """Return the minutes of a day's lesson, of each sitting by itself, as `65 + 60`."""
    return " + ".join(str(each.minutes) for each in day.sittings) or str(day.minutes)


LAST = 99  # in place of a part's number: an appendix


def last_part(line: str) -> int:
    """Return the last part of the lesson that a line such as `· lesson parts 3 and 6 · further` names.

    It is LAST for an appendix, and 0 if the line names no part.
    """
    match = re.search(r"· lesson (?:parts? ([\d, and to]+)|appendix)", line)
    if not match:
        return 0
    return max(map(int, re.findall(r"\d+", match[1]))) if match[1] else LAST


def around_day(name: str) -> tuple[str, str] | None:
    """Return the parts of a file's name before and after the day, or None if the name has no day in it."""
    match = _DAY.search(name)
    return (name[: match.start()], name[match.end() :]) if match else None


def notebook_paths(folder: Path) -> Iterator[tuple[int, Path]]:
    """Return (day number, path) of each day's notebooks in a folder, in order. A copy comes after the shorter name."""
    notebooks = [(int(match[1]), path) for path in folder.glob("day*_*.ipynb") if (match := _NOTEBOOK.match(path.name))]
    return iter(sorted(notebooks, key=lambda each: (each[0], len(each[1].name), each[1].name)))


def pages_to_look_up(root: Path) -> list[Path]:
    """Return the built notebooks of a course that belong to no day, without the course map."""
    return [path for name in TO_LOOK_UP if (path := root / LESSONS / f"{name}.ipynb").exists()]


def find_notebook(folder: Path, number: int) -> Path | None:
    """Return the notebook of a day in a folder, or None. If there are several, the shortest name counts."""
    return next((path for day, path in notebook_paths(folder) if day == number), None)


_NOTEBOOK = re.compile(r"day(\d+)_")
