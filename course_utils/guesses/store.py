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
from course_utils.guesses.nearness import Nearness, judge
from course_utils.guesses.question import Question

FOLDER = "guesses"
_SCHEMA = 1
_ONE_AT_A_TIME = threading.Lock()  # JupyterLab may serve several widgets at once, each in a thread
_SUBSCRIBERS: list[weakref.WeakMethod] = []


@dataclass(frozen=True)
class StoredGuess:
    """The guesses at one question.

    Attributes:
        asked: the question and its computed answer at the time of the first guess.
        first: the first guess, which counts.
        last: the latest guess.
        count: the number of guesses.
        when: the date of the first guess, in ISO format.
    """

    asked: Question
    first: tuple[float, ...]
    last: tuple[float, ...]
    count: int
    when: str

    @property
    def nearness(self) -> Nearness:
        """How near the first guess came."""
        return judge(self.asked, self.first)


def path_of(day: int, root: Path = WORK_FOLDER) -> Path:
    """Return the path of a day's file."""
    return root / FOLDER / f"day{day}.json"


def read(day: int, root: Path = WORK_FOLDER) -> dict[str, StoredGuess]:
    """Return the guesses of a day by name, in the order in which they were first made; empty when there is no file.

    Raises:
        CourseError: the file cannot be read, or is no record of guesses.
    """
    stored, _ = _read(path_of(day, root), root)
    return stored


def keep(
    question: Question, guess: Sequence[float], root: Path = WORK_FOLDER, first: Sequence[float] | None = None
) -> tuple[StoredGuess, str]:
    """Add a guess to the file of its day.

    A file that cannot be read is first put aside. Guesses at a question that has since changed stay in the file.

    Args:
        first: the first guess, which is kept too if the file has none.

    Returns:
        the guesses at the question, now with this one, and a remark if a file was put aside, otherwise "".

    Raises:
        ValueError: a guess does not fit the question.
        CourseError: the file cannot be written.
    """
    guess = question.checked(guess)
    first = question.checked(first) if first else guess
    path = path_of(question.day, root)
    with _ONE_AT_A_TIME:
        try:
            stored, earlier = _read(path, root)
            remark = ""
        except CourseError:
            copy = keep_copy(path)
            stored, earlier = {}, []
            place = _name_of(copy, root)
            remark = f"{_name_of(path, root)} could not be read. It is now in {place}, and a new one was started."
        before = stored.get(question.name)
        if before and before.asked.same_question(question):
            stored[question.name] = replace(before, last=guess, count=before.count + 1)
        else:
            if before:
                earlier.append(_as_record(stored.pop(question.name)))
            stored[question.name] = StoredGuess(question, first, guess, 1 + (first != guess), date.today().isoformat())
        record = {"schema": _SCHEMA, "guesses": [_as_record(each) for each in stored.values()], "earlier": earlier}
        write_whole(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        calls = [(subscriber, call) for subscriber in _SUBSCRIBERS if (call := subscriber())]
        _SUBSCRIBERS[:] = [subscriber for subscriber, _ in calls]
    for _, call in calls:  # after the lock is released, because a subscriber may keep a guess too
        call(question.day)
    return stored[question.name], remark


def subscribe(call: Callable[[int], None]) -> None:
    """Register a method to call after each guess that this process keeps.

    The method gets the number of the day. It is called for as long as its object lives.
    """
    with _ONE_AT_A_TIME:
        _SUBSCRIBERS.append(weakref.WeakMethod(call))


def _read(path: Path, root: Path) -> tuple[dict[str, StoredGuess], list[Any]]:
    """Return the current guesses, and the raw records of guesses whose question has since changed."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        raise CourseError(
            f"{_name_of(path, root)} cannot be read ({error.strerror}); give access, or delete it"
        ) from None
    except (ValueError, RecursionError):
        raise CourseError(_broken(path, root)) from None
    try:
        if record["schema"] != _SCHEMA:
            raise ValueError
        stored = [_guess_from(each) for each in record["guesses"]]
        return {each.asked.name: each for each in stored}, list(record["earlier"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise CourseError(_broken(path, root)) from None


def _guess_from(record: dict[str, Any]) -> StoredGuess:
    lists = {name: tuple(value) for name, value in record["asked"].items() if isinstance(value, list)}
    question = Question(**record["asked"] | lists)
    first, last = (question.checked(record[name]) for name in ("first", "last"))
    return StoredGuess(question, first, last, int(record["count"]), date.fromisoformat(record["when"]).isoformat())


def _as_record(guess: StoredGuess) -> dict[str, Any]:
    return asdict(guess)


def _name_of(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _broken(path: Path, root: Path) -> str:
    return f"{_name_of(path, root)} is not a record of guesses; the next guess sets it aside, or you can delete it"
