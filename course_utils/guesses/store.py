"""Where guesses are kept: `guesses/dayN.json` in the course's folder, or where that is installed alone in the
current one. The first guess at a question counts."""

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
_ONE_AT_A_TIME = threading.Lock()  # JupyterLab may hear several widgets at once, each in a thread
_HEARERS: list[weakref.WeakMethod] = []


@dataclass(frozen=True)
class Kept:
    """The guesses at a question: the first, which counts, the last, how many, and the day of the first as a date.

    asked: the question as it was then, with what was computed then.
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
    """The file of a day."""
    return root / FOLDER / f"day{day}.json"


def read(day: int, root: Path = WORK_FOLDER) -> dict[str, Kept]:
    """The guesses of a day by their names, in the order in which they were first made; empty when there is no file.

    Raises CourseError when the file is something else.
    """
    kept, _ = _read(path_of(day, root), root)
    return kept


def keep(asked: Asked, guess: Sequence[float], root: Path = WORK_FOLDER) -> tuple[Kept, str]:
    """Add a guess to those of its day; what is kept of the question now, and what had to be done, "" for nothing.

    A file that cannot be read is put aside first, and a guess at a question that reads otherwise now stays in the
    file. Raises ValueError for a guess that does not fit, CourseError when nothing can be written.
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
    for _, call in calls:  # without the lock, as a hearer may keep a guess too
        call(asked.day)
    return kept[asked.name], remark


def hear(call: Callable[[int], None]) -> None:
    """Have a method called, with the number of the day, after each guess that this process keeps, while it lives."""
    with _ONE_AT_A_TIME:
        _HEARERS.append(weakref.WeakMethod(call))


def _read(path: Path, root: Path) -> tuple[dict[str, Kept], list[Any]]:
    """The guesses that count, and those at questions that read otherwise by now, as they are written."""
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
