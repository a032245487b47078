"""The rungs that an answer is tried on: drawn test inputs or, for a duel, the implementations of its day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, overload

from course_utils import loader
from course_utils.checks.judge.implementation import Implementation
from course_utils.checks.kernel.evidence import attempts, draw_rungs, find_ladder, gather, verdict_of
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Evidence, Outcome
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


def lazy_evidence_for(
    day: int, grade_id: str, namespace: Mapping[str, Any], *, hidden: bool = False, seed: str = ""
) -> Evidence:
    """Return the evidence of an answer that is tried with arrays; each rung runs when its outcome is first read."""
    rungs = rungs_of(day, grade_id, hidden=hidden, seed=seed)
    trials = attempts(day, grade_id, namespace, hidden=hidden, arrays=True, rungs=rungs)
    return Evidence(grade_id, hidden, _LazyOutcomes(trials))


class _LazyOutcomes(Sequence[Outcome]):
    """The outcomes of `attempts`, computed when first read, and in order, because an answer may keep state.

    That saves up to four processor seconds for each wrong answer, as in `tiled_attention` of day 6.
    """

    def __init__(self, attempts: list[Callable[[], Outcome]]):
        self._attempts = attempts
        self._outcomes: list[Outcome] = []

    @overload
    def __getitem__(self, i: int) -> Outcome: ...

    @overload
    def __getitem__(self, i: slice) -> Sequence[Outcome]: ...

    def __getitem__(self, i: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(i, slice):
            return [self[each] for each in range(*i.indices(len(self)))]
        while len(self._outcomes) <= i < len(self):
            self._outcomes.append(self._attempts[len(self._outcomes)]())
        return self._outcomes[i]

    def __len__(self) -> int:
        return len(self._attempts)


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
        Rung(each.name, (Candidate(each.caller(calls_of(day))),), each.explanation, verdict_of)
        for each in implementations(day, hidden)
    ]
