"""What an answer is tried on: rungs that are drawn, and of a duel the implementations of its day."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from course_utils import loader
from course_utils.checks.judge.implementation import Implementation
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather, verdict_of
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Evidence
from course_utils.checks.kernel.remote import Calls, Tried


def rungs_of(day: int, grade_id: str, *, hidden: bool = False, seed: str = "") -> list[Rung]:
    """What an answer is tried on, as `draw_rungs` draws it; of a duel its implementations."""
    if find_ladder(day, grade_id).duel:
        return duel_rungs(day, hidden)
    return draw_rungs(day, grade_id, hidden=hidden, seed=seed)


def evidence_for(
    day: int, grade_id: str, namespace: Mapping[str, Any], *, hidden: bool = False, arrays: bool = False, seed: str = ""
) -> Evidence:
    """The evidence that an answer gives, as `gather` returns it; of a duel too."""
    rungs = rungs_of(day, grade_id, hidden=hidden, seed=seed)
    return gather(day, grade_id, namespace, hidden=hidden, arrays=arrays, rungs=rungs)


@cache
def shown(day: int) -> tuple[Implementation, ...]:
    """The implementations of a day that a learner meets in the notebook."""
    return loader.duel(day).IMPLEMENTATIONS


@cache
def unseen(day: int) -> tuple[Implementation, ...]:
    """Those that grading adds; none in a student's edition."""
    return tuple(loader.unseen(day))


def calls_of(day: int) -> Calls:
    """What a test of this day may call, with its parameters."""
    return loader.duel(day).CALLS


def implementations(day: int, hidden: bool = False) -> tuple[Implementation, ...]:
    """Those that a test is tried on: hidden ones as well, or those alone that a learner meets."""
    return (*shown(day), *unseen(day)) if hidden else shown(day)


def duel_rungs(day: int, hidden: bool = False) -> list[Rung]:
    """A rung for each implementation; none keeps anything of an earlier try."""
    return [
        Rung(each.name, (Tried(each.line(calls_of(day))),), each.said, verdict_of)
        for each in implementations(day, hidden)
    ]
