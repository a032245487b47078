"""Load the parts of a day from its folders.

Only this module imports modules by name, because no other module knows the days by their numbers.

    days/dayN/given/ladders.py    LADDERS: the ladder of each exercise, which is all its test inputs ("rungs") and the
                                  names that its answer returns; a grading kernel gets only `given` of a day
    days/dayN/duel.py             CALLS and IMPLEMENTATIONS: what the learner's own test may call, and is tried on
    days/dayN/quiz.yaml           the questions of the quiz
    days/dayN/wording.yaml        replacements on the web page for text that is true only in JupyterLab
    days/dayN/NAME.py             what `of_a_day` finds: the watches of day 7's promises
    answers/dayN/exercises.py     EXERCISES: the points, reference answer and known mistakes of each exercise
    answers/dayN/duel.py          UNSEEN: more implementations, which only grading tries
    answers/dayN/cards.yaml       the reasons for the day's claims, and the mistakes that become flash cards

A lesson itself imports `days/dayN/guesses.py`, its guesses, and the build reads `days/dayN/references.md`, the sources
that it rests on. A student's edition has no `answers`. `data/schemas/` holds a schema for each kind of YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).parent


def has_answers() -> bool:
    """Return whether the answers are here. A student's edition holds stored results instead."""
    return (PACKAGE / "answers").is_dir()


def days_with_answers() -> list[int]:
    """Return the days that have exercises, drafts included; an empty list in a student's edition."""
    folders = (path.parent.name for path in PACKAGE.glob("answers/day*/exercises.py*"))  # .pyc on a page
    return sorted(int(name.removeprefix("day")) for name in folders)


def ladders(day: int) -> Mapping[str, Any]:
    """Return the ladder of each exercise of a day (a `checks.kernel.ladder.Ladder`), by grade_id."""
    return import_module(f"course_utils.days.day{day}.given.ladders").LADDERS


def exercises(day: int) -> Mapping[str, Any]:
    """Return the exercises of a day (`checks.judge.exercise.Exercise`), by grade_id. Not in a student's edition."""
    return import_module(f"course_utils.answers.day{day}.exercises").EXERCISES


def duel(day: int) -> ModuleType:
    """Return a day's duel module: CALLS (what a test may call) and IMPLEMENTATIONS (those shown in the notebook)."""
    return import_module(f"course_utils.days.day{day}.duel")


def unseen(day: int) -> Sequence[Any]:
    """Return the implementations that grading adds to a day's duel; none in a student's edition."""
    return import_module(f"course_utils.answers.day{day}.duel").UNSEEN if has_answers() else ()


def quiz(day: int) -> list[dict[str, Any]]:
    """Return the quiz questions of a day as `views.Quiz` takes them; an empty list if the day has no quiz."""
    return _texts(f"days/day{day}/quiz.yaml", [])


def wording(folder: str) -> Any:
    """Return the replacement texts for the web pages of a day, or of all days for `shared`; {} if there are none."""
    return _texts(f"days/{folder}/wording.yaml", {})


def cards(day: int) -> dict[str, list[dict[str, str]]]:
    """Return two lists of a day: "claims" with their reasons, and the "mistakes" that become flash cards."""
    return _texts(f"answers/day{day}/cards.yaml", {"claims": [], "mistakes": []})


def lazy(name: str) -> Any:
    """Return a stand-in for a module that is imported at the first use of one of its names.

    PyTorch is not everywhere: the exercises on the web pages run without it. Where the module cannot be imported, each
    of its names is a class that raises that error when it is called.
    """
    return _LazyModule(name)


class _LazyModule(ModuleType):
    """A module whose attributes are those of the module of its name; see `lazy`."""

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        try:
            return getattr(import_module(self.__name__), attribute)
        except ModuleNotFoundError as error:
            return type(attribute, (), {"__new__": partial(_raise, error)})


def _raise(error: Exception, *args: Any, **kwargs: Any) -> None:
    raise error


def of_a_day(path: str) -> Any:
    """Return an object from the folder of a day by its dotted name: `day7.watches.AllocatorWatch`."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"course_utils.days.{module}"), name)


def _texts(name: str, nothing: Any) -> Any:
    import yaml  # imported here, so that a grading kernel need not load it

    path = PACKAGE / name
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else nothing
