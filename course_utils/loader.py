"""Finds what belongs to a day in its folders: the only module that imports by name, since nothing else knows a day.

    days/dayN/given/ladders.py    LADDERS, by exercise what is tried: a grading kernel gets `given`, and no more
    days/dayN/duel.py             CALLS and IMPLEMENTATIONS: what the learner's own test is tried on
    days/dayN/figures.py          the drawings of the lesson
    days/dayN/quiz.yaml           its questions
    days/dayN/wording.yaml        what its page says in place of what holds in JupyterLab alone
    answers/dayN/exercises.py     EXERCISES, by exercise its points, reference and known mistakes
    answers/dayN/duel.py          UNSEEN: implementations that only grading tries
    answers/dayN/cards.yaml       the reasons for its claims, and mistakes that cards are made of

A student's edition has no `answers`. `data/schemas/` has the form of each kind of YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).parent


def has_answers() -> bool:
    """Whether this is the full course; a student's edition holds expected results instead."""
    return (PACKAGE / "answers").is_dir()


def days_with_answers() -> list[int]:
    """The days that have exercises, drafts included; empty in a student's edition."""
    folders = (path.parent.name for path in PACKAGE.glob("answers/day*/exercises.py"))
    return sorted(int(name.removeprefix("day")) for name in folders)


def ladders(day: int) -> Mapping[str, Any]:
    """The ladders of a day's exercises, by grade_id: `checks.kernel.ladder.Ladder` each."""
    return import_module(f"course_utils.days.day{day}.given.ladders").LADDERS


def exercises(day: int) -> Mapping[str, Any]:
    """The exercises of a day, by grade_id: `checks.judge.exercise.Exercise` each. Not in a student's edition."""
    return import_module(f"course_utils.answers.day{day}.exercises").EXERCISES


def duel(day: int) -> ModuleType:
    """CALLS, what the test of a day may call, and IMPLEMENTATIONS, those that a learner meets in the notebook."""
    return import_module(f"course_utils.days.day{day}.duel")


def unseen(day: int) -> Sequence[Any]:
    """The implementations that grading adds; none in a student's edition."""
    return import_module(f"course_utils.answers.day{day}.duel").UNSEEN if has_answers() else ()


def figures(day: int) -> ModuleType:
    """The drawings of a day's lesson."""
    return import_module(f"course_utils.days.day{day}.figures")


def quiz(day: int) -> list[dict[str, Any]]:
    """The questions of a day, as `views.Quiz` takes them; none where the day has no quiz."""
    return _texts(f"days/day{day}/quiz.yaml", [])


def wording(folder: str) -> Any:
    """What pages say in place of what a lesson says, of a day or of several: {} where that is nothing."""
    return _texts(f"days/{folder}/wording.yaml", {})


def cards(day: int) -> dict[str, list[dict[str, str]]]:
    """The claims of a day with their reasons, and the mistakes of which there are cards, in two lists."""
    return _texts(f"answers/day{day}/cards.yaml", {"claims": [], "mistakes": []})


def of_a_day(path: str) -> Any:
    """An object in the folder of a day, as `day7.promise_monitors.AllocatorWatch`."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"course_utils.days.{module}"), name)


def _texts(name: str, nothing: Any) -> Any:
    import yaml  # which a grading kernel need not load

    path = PACKAGE / name
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else nothing
