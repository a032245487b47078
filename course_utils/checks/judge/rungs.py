"""The rungs that an answer is tried on: drawn test inputs or, for a duel, the implementations of its day."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from course_utils import loader
from course_utils.checks.judge.implementation import Implementation
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather, verdict_of
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Evidence
from course_utils.checks.kernel.remote import Calls, Candidate


def rungs_of(day: int, grade_id: str, *, hidden: bool = False, seed: str = "") -> list[Rung]:
    """Return the rungs of an exercise, as `draw_rungs` draws them; for a duel, its implementations."""
    if find_ladder(day, grade_id).duel:
        return duel_rungs(day, hidden)
    return draw_rungs(day, grade_id, hidden=hidden, seed=seed)


def evidence_for(
    day: int, grade_id: str, namespace: Mapping[str, Any], *, hidden: bool = False, arrays: bool = False, seed: str = ""
) -> Evidence:
    """Run an answer on its rungs, also for a duel, and return the evidence as `gather` does."""
    rungs = rungs_of(day, grade_id, hidden=hidden, seed=seed)
    return gather(day, grade_id, namespace, hidden=hidden, arrays=arrays, rungs=rungs)


@cache
def visible_implementations(day: int) -> tuple[Implementation, ...]:
    """Return the implementations of a day that the check in the notebook uses, and whose mistakes it explains."""
    return loader.duel(day).IMPLEMENTATIONS


@cache
def added_implementations(day: int) -> tuple[Implementation, ...]:
    """Return the implementations that grading adds; none in a student's edition."""
    return tuple(loader.unseen(day))


def calls_of(day: int) -> Calls:
    """Return the calls that a test of this day may make, with their parameters."""
    return loader.duel(day).CALLS


def implementations(day: int, hidden: bool = False) -> tuple[Implementation, ...]:
    """Return the implementations that a test is tried on: those of the notebook, and with `hidden` those of grading."""
    visible = visible_implementations(day)
    return (*visible, *added_implementations(day)) if hidden else visible


def duel_rungs(day: int, hidden: bool = False) -> list[Rung]:
    """Return a rung for each implementation, which shares nothing with earlier trials."""
    return [
        Rung(each.name, (Candidate(each.line(calls_of(day))),), each.explanation, verdict_of)
        for each in implementations(day, hidden)
    ]
