"""The exercises of each day, read from the answers or, in a student's edition, from stored results."""

from __future__ import annotations

import inspect
from functools import cache

from course_utils import loader
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.stored_results import load_stored_results, stored_days
from course_utils.course import is_there
from course_utils.loader import has_answers


def parameters(day: int, grade_id: str) -> tuple[str, ...]:
    """Return the names of an answer's parameters; empty where the answer is not a function."""
    if not has_answers():
        return tuple(load_stored_results(day)[grade_id]["parameters"])
    try:
        return tuple(inspect.signature(next(iter(all_exercises(day)[grade_id].reference.values()))).parameters)
    except TypeError:
        return ()


def all_exercises(day: int) -> dict[str, Exercise]:
    """Return the exercises of a day by grade_id, in the order of the notebook."""
    if not has_answers():
        return _stored_exercises(day)
    return dict(loader.exercises(day))


def days_with_exercises() -> list[int]:
    """Return the days that this edition holds and that have exercises."""
    if not has_answers():
        return stored_days()
    return [day for day in loader.days_with_answers() if is_there(day)]


@cache
def _stored_exercises(day: int) -> dict[str, Exercise]:
    exercises = {}
    for grade_id, record in load_stored_results(day).items():
        mistakes = [Mistake(each["name"], None, each["message"], each["overflow"]) for each in record["mistakes"]]
        exercises[grade_id] = Exercise(
            record["points"],
            dict.fromkeys(record["names"]),
            tuple(mistakes),
            tuple(record["uses"]),
            record["rtol"],
            record["atol"],
        )
    return exercises
