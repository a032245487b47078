"""The course: where it lies, what its days are, and where the files of a day lie. Each is defined here alone, but for
the table of days, `days/days.toml`.

A day's notebooks have one name in all folders, `day1_attention_by_hand`: it begins with the day's number.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]  # the folder in which this package lies
IN_CHECKOUT = (ROOT / "pyproject.toml").exists()  # a clone or a class's edition; else the course was installed alone
WORK_FOLDER = (
    ROOT if IN_CHECKOUT else Path()
)  # of notebooks, guesses and grades; of an installed course the current folder
LESSONS, SOLUTIONS, EXERCISES = "notebooks", "solutions", "exercises"  # folders of built notebooks
SOURCES = {LESSONS: "sources/lessons", SOLUTIONS: "sources/exercises"}  # of what each is built from


@dataclass(frozen=True)
class Day:
    """A day of the course. doing: what one does in it, a sentence. minutes: of its lesson, 0 while it is planned."""

    number: int
    title: str
    doing: str
    minutes: int = 0

    def notebook(self, folder: str, root: Path = WORK_FOLDER) -> Path | None:
        """The day's notebook in one of the course's folders; None where there is none, as in a planned day."""
        return find_notebook(root / folder, self.number)


_TABLE = Path(__file__).parent / "days" / "days.toml"
DAYS = tuple(Day(**each) for each in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["days"])
NUMBERS = tuple(day.number for day in DAYS)
_DAY = re.compile(r"(?<![^\W\d_])day[ _-]?0*(\d{1,3})(?!\d)", re.IGNORECASE)


def version() -> str:
    """The version of the course, as `0.2.1`; the tag of its commit is this with a v before it.

    A checkout says it in pyproject.toml, an installed course in its metadata.
    """
    return _settings()["version"] if IN_CHECKOUT else metadata("course_utils")["Version"]


def repository() -> str:
    """The address of the course's repository, without a slash at its end: `[project.urls]` in pyproject.toml.

    A checkout says it in that file, an installed course in its metadata; a class's edition says none: empty.
    """
    if IN_CHECKOUT:
        return _settings().get("urls", {}).get("Repository", "").rstrip("/")
    urls = dict(line.split(", ", 1) for line in metadata("course_utils").get_all("Project-URL") or ())
    return urls.get("Repository", "").rstrip("/")


def is_published() -> bool:
    """Whether the address of the course's repository is set: until then its owner is called OWNER."""
    return bool(repository()) and "/OWNER/" not in repository()


def where_it_is() -> str:
    """What to do where a folder is none of the course's, as the end of a message."""
    if IN_CHECKOUT or not repository():
        return "run this in the course's folder"
    return f"the installed course has no notebooks: git clone {repository()} and run this in its folder"


def _settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def day_of(name: str) -> int | None:
    """The day that a file's name speaks of: day1_….ipynb is 1, and so are ada_day1.ipynb and Day 01.ipynb."""
    found = _DAY.search(name)
    return int(found[1]) if found else None


def is_there(number: int | None) -> bool:
    """Whether a day can be learnt. Of one that is planned there may be drafts: nothing is built or released of them."""
    return all(day.minutes for day in DAYS if day.number == number)


def around_day(name: str) -> tuple[str, str] | None:
    """What stands before and after the day in a file's name; None where it speaks of none."""
    found = _DAY.search(name)
    return (name[: found.start()], name[found.end() :]) if found else None


def notebook_paths(folder: Path) -> Iterator[tuple[int, Path]]:
    """The notebooks of days in a folder, each with the day's number, in order; a copy has the longer name."""
    found = [(int(named[1]), path) for path in folder.glob("day*_*.ipynb") if (named := _NOTEBOOK.match(path.name))]
    return iter(sorted(found, key=lambda each: (each[0], len(each[1].name), each[1].name)))


def find_notebook(folder: Path, number: int) -> Path | None:
    """The notebook of a day in a folder; of several the one with the shortest name."""
    return next((path for day, path in notebook_paths(folder) if day == number), None)


_NOTEBOOK = re.compile(r"day(\d+)_")
