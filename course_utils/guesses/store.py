"""Store guesses in `guesses/dayN.json` in the course's folder, or in the current one if the package is installed alone.

The first guess at a question counts.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from course_utils.course import WORK_FOLDER
from course_utils.errors import CourseError
from course_utils.files import keep_copy, write_whole
from course_utils.guesses.asked import Asked
from course_utils.guesses.nearness import Verdict, judge

FOLDER = "guesses"
_SCHEMA = 1
_ONE_AT_A_TIME = threading.Lock()  # JupyterLab may serve several widgets at once, each in a thread
_HEARERS: list[weakref.WeakMethod] = []


@dataclass(frozen=True)
class Kept:
    """The guesses at one question.

    Attributes:
        asked: the question and its computed answer at the time of the first guess.
        first: the first guess, which counts.
        last: the latest guess.
        count: the number of guesses.
        when: the date of the first guess, in ISO format.
    """

    asked: Asked
    first: tuple[float, ...]
    last: tuple[float, ...]
    count: int
    when: str

    @property
    def verdict(self) -> Verdict:
        """How near the first guess came."""
        return judge(self.asked, self.first)


def path_of(day: int, root: Path = WORK_FOLDER) -> Path:
    """Return the path of a day's file."""
    return root / FOLDER / f"day{day}.json"


def read(day: int, root: Path = WORK_FOLDER) -> dict[str, Kept]:
    """Return the guesses of a day by name, in the order in which they were first made; empty when there is no file.

    Raises:
        CourseError: the file cannot be read, or is no record of guesses.
    """
    kept, _ = _read(path_of(day, root), root)
    return kept


def keep(asked: Asked, guess: Sequence[float], root: Path = WORK_FOLDER) -> tuple[Kept, str]:
    """Add a guess to the file of its day.

    A file that cannot be read is first put aside. Guesses at a question that has since changed stay in the file.

    Returns:
        The guesses at the question, now with this one, and a remark if a file was put aside, otherwise "".

    Raises:
        ValueError: the guess does not fit the question.
        CourseError: the file cannot be written.
    """
    guess, path = asked.checked(guess), path_of(asked.day, root)
    with _ONE_AT_A_TIME:
        try:
            kept, earlier = _read(path, root)
            remark = ""
        except CourseError:
            copy = keep_copy(path)
            kept, earlier = {}, []
            remark = f"{_named(path, root)} could not be read. It is in {_named(copy, root)} now, and a new one began."
        before = kept.get(asked.name)
        if before and before.asked.same_question(asked):
            kept[asked.name] = replace(before, last=guess, count=before.count + 1)
        else:
            if before:
                earlier.append(_written(kept.pop(asked.name)))
            kept[asked.name] = Kept(asked, guess, guess, 1, date.today().isoformat())
        record = {"schema": _SCHEMA, "guesses": [_written(each) for each in kept.values()], "earlier": earlier}
        write_whole(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        calls = [(hearer, call) for hearer in _HEARERS if (call := hearer())]
        _HEARERS[:] = [hearer for hearer, _ in calls]
    for _, call in calls:  # after the lock is released, because a hearer may keep a guess too
        call(asked.day)
    return kept[asked.name], remark


def hear(call: Callable[[int], None]) -> None:
    """Register a method to call after each guess that this process keeps.

    The method gets the number of the day. It is called for as long as its object lives.
    """
    with _ONE_AT_A_TIME:
        _HEARERS.append(weakref.WeakMethod(call))


def _read(path: Path, root: Path) -> tuple[dict[str, Kept], list[Any]]:
    """Return the current guesses, and the raw records of guesses whose question has since changed."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        raise CourseError(
            f"{_named(path, root)} cannot be read ({error.strerror}); give access, or delete it"
        ) from None
    except (ValueError, RecursionError):
        raise CourseError(_broken(path, root)) from None
    try:
        if record["schema"] != _SCHEMA:
            raise ValueError
        kept = [_read_one(each) for each in record["guesses"]]
        return {each.asked.name: each for each in kept}, list(record["earlier"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise CourseError(_broken(path, root)) from None


def _read_one(written: dict[str, Any]) -> Kept:
    lists = {name: tuple(value) for name, value in written["asked"].items() if isinstance(value, list)}
    asked = Asked(**written["asked"] | lists)
    first, last = (asked.checked(written[name]) for name in ("first", "last"))
    return Kept(asked, first, last, int(written["count"]), date.fromisoformat(written["when"]).isoformat())


def _written(kept: Kept) -> dict[str, Any]:
    return asdict(kept)


def _named(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _broken(path: Path, root: Path) -> str:
    return f"{_named(path, root)} is no record of guesses; the next guess puts it aside, or delete it"
