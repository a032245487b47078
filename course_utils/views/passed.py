"""What stands under a check that passed: that it did, how far one is, and a link to the next exercise."""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from typing import Any

from course_utils.course import IN_CHECKOUT
from course_utils.progress import ExerciseProgress, exercises_of
from course_utils.views.verdict_card import frame


def describe_passed(day: int, grade_id: str, done: Collection[str]) -> dict[str, Any]:
    """Return a mimebundle in words and as HTML, for an exercise that has just passed.

    day: its number. done: the ids of all exercises of the day that passed since the kernel started, this one too.
    If only the package is installed, its notebooks are elsewhere, and the message does not say what comes next.
    KeyError for an id that the day's notebook does not have.
    """
    exercises = exercises_of(day)
    if not exercises and not IN_CHECKOUT:
        message = f"✓ Passed. In this session {len(done)} exercise{'' if len(done) == 1 else 's'}."
        return {"text/plain": message, "text/html": frame(message)}
    places = {exercise.id: place for place, exercise in enumerate(exercises)}
    here = exercises[places[grade_id]]
    reached = sum(exercise.points for exercise in exercises if exercise.id in done)
    points = sum(exercise.points for exercise in exercises)
    count = sum(exercise.id in done for exercise in exercises)
    head = f"✓ Passed: {here.title}."
    so_far = f"In this session {count} of {len(exercises)} exercises, {reached:g} of {points:g} points."
    order = [*range(places[grade_id] + 1, len(exercises)), *range(places[grade_id])]
    place = next((place for place in order if exercises[place].id not in done), None)
    if place is None:
        words = link = "That was the last one. Save the notebook and grade it: the course map has a button."
    else:
        heading = f"{place + 1}. {exercises[place].title}"
        minutes = f"({_minutes(exercises[place])})"
        words = f"Next: {heading} {minutes}."
        link = f'Next: <a href="#{html.escape(_anchor(heading))}">{html.escape(heading)}</a> {minutes}.'
    return {"text/plain": f"{head} {so_far} {words}", "text/html": frame(f"{html.escape(so_far)} {link}")}


def _anchor(heading: str) -> str:
    """The name under which JupyterLab finds a heading."""
    return re.sub(r"\s", "-", heading)


def _minutes(exercise: ExerciseProgress) -> str:
    return f"{exercise.minutes} minute{'' if exercise.minutes == 1 else 's'}"
