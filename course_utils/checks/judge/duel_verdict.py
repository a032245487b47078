"""What a test is worth: nothing if it condemns a right implementation, else by how many wrong ones it catches.

An outcome is what `evidence.gather` returns for an implementation. One that raised an error says no, as a test does
that fails: the wrong implementation is caught, the right one condemned.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checks.judge import time_limit
from course_utils.checks.judge.implementation import Implementation
from course_utils.checks.judge.rungs import shown
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.remote import LARGEST_WHOLE, MOST_CALLS, MOST_NUMBERS, MOST_SCORES, SECONDS

WIDTH = 88
OFTEN, SELDOM = "It is wrong on most inputs.", "It is right on most inputs, and wrong on some."


@dataclass(frozen=True)
class Standing:
    """An implementation and what a test said of it. held: whether the test is right about it. error: what the test
    raised, or nothing."""

    what: Implementation
    held: bool
    error: str = ""


def limits_told() -> str:
    """What a test may ask of an implementation, and how long it may take, as each statement says it."""
    return (
        f"`f` can be called, and nothing else. One implementation takes up to {MOST_CALLS:,} calls, those of what it "
        f"makes included. A call holds up to {MOST_NUMBERS:,} numbers and up to {MOST_SCORES:,} pairs of a query and a "
        f"key, and a whole number outside an array, such as a size, is at most {LARGEST_WHOLE:,}. The check here stops "
        f"after {time_limit.SECONDS:g} seconds of processor time. In grading, where the test meets more "
        f"implementations, it may work for {SECONDS:g} seconds, and all implementations together for as long. "
        "More than that is an error of the test."
    )


def standings(day: int, outcomes: Mapping[str, Outcome]) -> list[Standing]:
    """How a test stands to the implementations that a learner meets, in their order; of outcomes by name."""
    told = [(each, outcomes.get(each.name, Outcome(each.name))) for each in shown(day)]
    return [Standing(each, holds(outcome, each.right), outcome.error) for each, outcome in told]


def holds(outcome: Outcome, right: bool) -> bool:
    """Whether a test is right about an implementation. No outcome at all never is."""
    if outcome.error:
        return not right
    said = outcome.values.get("verdict")
    return said is not None and said.entries == (float(right),)


def judge_duel(day: int, gave: Sequence[Outcome], wanted: Sequence[Outcome], slip: tuple[str, str] | None) -> Verdict:
    """The verdict on a test. gave, wanted: outcomes of the same implementations, in the same order. slip: the name of a
    known weak test that says just the same of those that a learner meets, and what to say to it."""
    right = [bool(each.values["verdict"].entries[0]) for each in wanted]
    held = [holds(outcome, ok) for outcome, ok in zip(gave, right, strict=True)]
    rungs = tuple((each.rung, ok) for each, ok in zip(wanted, held, strict=True))
    if all(held):
        return Verdict("passed", 1.0, rungs=rungs)
    kept = [ok for ok, is_right in zip(held, right, strict=True) if is_right]
    caught = [ok for ok, is_right in zip(held, right, strict=True) if not is_right]
    share = (sum(caught) / len(caught)) ** 2 if all(kept) else 0.0  # squared: one example catches more than half
    if any(is_right and outcome.error for outcome, is_right in zip(gave, right, strict=True)):
        slip = None  # what it raised says more
    named = {wanted[i].rung: gave[i] for i in range(len(wanted))}
    message = _counted(kept, caught) + " " + (slip[1] if slip else _advice(standings(day, named)))
    return Verdict("failed", round(share, 4), message.strip(), slip[0] if slip else None, rungs)


def _counted(kept: Sequence[bool], caught: Sequence[bool]) -> str:
    condemned = len(kept) - sum(kept)
    found = f"The test catches {sum(caught)} of {len(caught)} wrong implementations"
    if condemned:
        return f"{found}, but it condemns {condemned} of {len(kept)} right ones, and then nothing counts."
    return f"{found} and keeps all {len(kept)} right ones."


def _advice(found: Sequence[Standing]) -> str:
    """What to say first: of a right one that was condemned, else a hint at a wrong one that got away."""
    for each in found:
        if each.what.right and not each.held:
            raised = f" On it the test raised {each.error}." if each.error else ""
            return f"Condemned: {each.what.said}{raised}"
    for each in found:
        if not each.held:
            return f"A hint at one that got away: {each.what.hint}"
    return "Those that got away are none of the notebook's: the test must hold for others too."


def tell_duel(day: int, rungs: Sequence[tuple[str, bool]]) -> str:
    """The board as lines of text: what was kept and caught by name, what got away by number alone."""
    held, found = dict(rungs), shown(day)
    right = [each for each in found if each.right]
    wrong = [each for each in found if not each.right]
    caught = [each.name for each in wrong if held.get(each.name)]
    away = [str(number) for number, each in enumerate(wrong, 1) if not held.get(each.name)]
    condemned = [each.name for each in right if not held.get(each.name)]
    lines = [f"{'✗' if condemned else '✓'} keeps {len(right)} right implementations"]
    lines[0] += f", but for: {', '.join(condemned)}" if condemned else ""
    lines.append(f"{'✗' if away else '✓'} catches {len(wrong)} wrong ones")
    lines[1] += f", but for number {', '.join(away)}" if away else ""
    if caught and away:
        lines.append(f"Caught: {', '.join(caught)}")
    return "\n".join(textwrap.fill(each, WIDTH, initial_indent="  ", subsequent_indent="    ") for each in lines)


def board_of(day: int, rungs: Sequence[tuple[str, bool]], one_example: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The tiles of `views.DuelBoard`. one_example: what a test with a single example says."""
    held, often = dict(rungs), {each.rung: each for each in one_example}
    return [
        {
            "right": each.right,
            "held": bool(held.get(each.name)),
            "name": each.name,
            "told": each.said,
            "hints": [] if each.right else [OFTEN if holds(often[each.name], False) else SELDOM, each.hint],
        }
        for each in shown(day)
    ]
