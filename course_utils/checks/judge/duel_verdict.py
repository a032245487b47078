"""Grade a test that a learner wrote: 0 if it condemns a right implementation, else by the wrong ones it catches.

`evidence.gather` returns an outcome of the test for each implementation. An error counts as the verdict "wrong": it
catches a wrong implementation and condemns a right one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checks.judge.comparison import Comparison
from course_utils.checks.judge.exercise import KnownMistakes, Mistake
from course_utils.checks.judge.implementation import Implementation
from course_utils.checks.judge.rungs import calls_of, visible_implementations
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.outcome import Evidence, Outcome
from course_utils.checks.kernel.remote import MAX_CALLS, MAX_NUMBERS, MAX_SCORES, MAX_WHOLE_NUMBER
from course_utils.time_limits import ANSWER_SECONDS, DUEL_SECONDS

WIDTH = 88
OFTEN, SELDOM = "It is wrong on most inputs.", "It is right on most inputs, and wrong on some."


@dataclass(frozen=True)
class Standing:
    """The verdict of a test on one implementation.

    Attributes:
        held: whether the test is right about it.
        error: the error that the test raised, or "".
    """

    implementation: Implementation
    held: bool
    error: str = ""


ARRAYS = {"q", "k", "v", "w_o", "x", "dp", "mask"}  # the parameters of calls that are arrays; all others are whole


def describe_limits(day: int) -> str:
    """Return the limits on a test's calls and time, in the words of a statement; only those that a test can meet."""
    calls = calls_of(day)
    arguments = {name for names in calls.values() for name in names}
    methods = " and the methods of what it returns" if len(calls) > 1 else ""
    text = f"You can only call `f`{methods}, at most {MAX_CALLS:,} times per implementation."
    if arguments & ARRAYS:
        mask = ", including the entries of the mask" if "mask" in arguments else ""
        pairs = f"{mask and ','} and make at most {MAX_SCORES:,} query–key pairs" if {"q", "k"} <= arguments else ""
        text += f" The arguments of a call contain at most {MAX_NUMBERS:,} numbers in total{mask}{pairs}."
    if arguments - ARRAYS - {"causal"}:
        text += f" A size or another whole number that is not in an array is at most {MAX_WHOLE_NUMBER:,}."
    return (
        f"{text} The check here stops after {ANSWER_SECONDS:g} seconds of processor time for all implementations "
        f"together. Grading tries more implementations. There, your test may run for {DUEL_SECONDS:g} seconds in "
        f"total, and all the implementations together for another {DUEL_SECONDS:g}. If you exceed a limit, the test "
        "fails with an error."
    )


def standings(day: int, outcomes: Mapping[str, Outcome]) -> list[Standing]:
    """Return the verdict of the student's test on each visible implementation, in order.

    Args:
        outcomes: the test's outcomes, by name of the implementation.
    """
    rows = []
    for each in visible_implementations(day):
        outcome = outcomes.get(each.name, Outcome(each.name))
        rows.append(Standing(each, holds(outcome, each.right), outcome.error))
    return rows


def holds(outcome: Outcome, right: bool) -> bool:
    """Return whether a test is right about an implementation; False if it gave neither a verdict nor an error."""
    if outcome.error:
        return not right
    verdict = outcome.values.get("verdict")
    return verdict is not None and verdict.entries == (float(right),)


def judge_duel(day: int, comparison: Comparison, known: Callable[[], KnownMistakes]) -> Verdict:
    """Return the verdict on a test, whose outcomes are compared with those of the reference test.

    Args:
        known: returns the known weak tests; called only if the test is wrong about an implementation.
    """
    outcomes = comparison.outcomes
    right = comparison.right
    is_right = [bool(each.values["verdict"].entries[0]) for each in right]
    held = [holds(outcome, ok) for outcome, ok in zip(outcomes, is_right, strict=True)]
    rungs = tuple((each.rung, ok) for each, ok in zip(right, held, strict=True))
    if all(held):
        return Verdict("passed", 1.0, rungs=rungs)
    # Whether the test accepts each right implementation, and whether it catches each wrong one.
    accepted = [ok for ok, right_one in zip(held, is_right, strict=True) if right_one]
    caught = [ok for ok, right_one in zip(held, is_right, strict=True) if not right_one]
    share = (sum(caught) / len(caught)) ** 2 if all(accepted) else 0.0  # a single example catches more than half
    raised = any(right_one and outcome.error for outcome, right_one in zip(outcomes, is_right, strict=True))
    weak_test = None if raised else _find_weak_test(day, comparison.evidence, known())  # an error says more than a name
    by_name = {each.rung: outcome for each, outcome in zip(right, outcomes, strict=True)}
    advice = weak_test.message if weak_test else _advice(standings(day, by_name))
    message = f"{_describe_counts(accepted, caught)} {advice}".strip()
    return Verdict("failed", round(share, 4), message, weak_test.name if weak_test else None, rungs)


def _find_weak_test(day: int, evidence: Evidence, known: KnownMistakes) -> Mistake | None:
    """Return a known weak test that agrees with this one on every visible implementation; None if there is none."""
    mine = [each.held for each in standings(day, {each.rung: each for each in evidence.outcomes})]
    visible = visible_implementations(day)
    for weak_test, theirs in known:
        trials = zip(visible, theirs.outcomes, mine, strict=True)  # an outcome is computed when it is read
        if all(holds(outcome, each.right) == held for each, outcome, held in trials):
            return weak_test
    return None


def _describe_counts(accepted: Sequence[bool], caught: Sequence[bool]) -> str:
    condemned = len(accepted) - sum(accepted)
    catches = f"The test catches {sum(caught)} of {len(caught)} wrong implementations"
    if condemned:
        return f"{catches}, but it rejects {condemned} of {len(accepted)} right ones, and then nothing counts."
    return f"{catches} and keeps all {len(accepted)} right ones."


def _advice(rows: Sequence[Standing]) -> str:
    """Describe a right implementation that was condemned, by an error first, else hint at a wrong one that got away."""
    for each in sorted(rows, key=lambda row: not row.error):
        if each.implementation.right and not each.held:
            raised = f" On it the test raised {each.error}." if each.error else ""
            return f"Condemned: {each.implementation.explanation}{raised}"
    for each in rows:
        if not each.held:
            return f"A hint at one that got away: {each.implementation.hint}"
    return "The ones that got away are not in the notebook: the test must work for others too."


def describe_duel(day: int, rungs: Sequence[tuple[str, bool]]) -> str:
    """Return the result as lines of text, in which the wrong implementations that got away have numbers, not names."""
    held = dict(rungs)
    right = [each for each in visible_implementations(day) if each.right]
    wrong = [each for each in visible_implementations(day) if not each.right]
    caught = [each.name for each in wrong if held.get(each.name)]
    away = [str(number) for number, each in enumerate(wrong, 1) if not held.get(each.name)]
    condemned = [each.name for each in right if not held.get(each.name)]
    keeps = f"keeps all {len(right)} right implementations"
    if condemned:
        keeps = f"keeps {len(right) - len(condemned)} of {len(right)} right implementations, not {', '.join(condemned)}"
    if len(condemned) == len(right):
        keeps = f"keeps none of the {len(right)} right implementations"
    catches = f"catches all {len(wrong)} wrong ones"
    if away:
        catches = f"catches {len(wrong) - len(away)} of {len(wrong)} wrong ones, not number {', '.join(away)}"
    if len(away) == len(wrong):
        catches = f"catches none of the {len(wrong)} wrong ones"
    lines = [f"{'✗' if condemned else '✓'} {keeps}", f"{'✗' if away else '✓'} {catches}"]
    if caught and away:
        lines.append(f"Caught: {', '.join(caught)}")
    return "\n".join(textwrap.fill(each, WIDTH, initial_indent="  ", subsequent_indent="    ") for each in lines)


def board_of(day: int, rungs: Sequence[tuple[str, bool]], one_example: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the tiles of `views.DuelBoard`.

    Args:
        one_example: outcomes of the known weak test that tries a single example.
    """
    held = dict(rungs)
    on_one_example = {each.rung: each for each in one_example}
    return [
        {
            "right": each.right,
            "held": bool(held.get(each.name)),
            "name": each.name,
            "message": each.explanation,
            "hints": [] if each.right else [OFTEN if holds(on_one_example[each.name], False) else SELDOM, each.hint],
        }
        for each in visible_implementations(day)
    ]
