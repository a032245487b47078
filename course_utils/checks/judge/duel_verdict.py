"""Grade a test that a learner wrote: 0 if it condemns a right implementation, else by the wrong ones it catches.

`evidence.gather` returns an outcome of the test for each implementation. An error counts as the verdict "wrong": it
catches a wrong implementation and condemns a right one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checks.judge.implementation import Implementation
from course_utils.checks.judge.rungs import shown
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.remote import LARGEST_WHOLE, MOST_CALLS, MOST_NUMBERS, MOST_SCORES
from course_utils.time_limits import ANSWER_SECONDS, DUEL_SECONDS

WIDTH = 88
OFTEN, SELDOM = "It is wrong on most inputs.", "It is right on most inputs, and wrong on some."


@dataclass(frozen=True)
class Standing:
    """The verdict of a test on one implementation.

    Attributes:
        what: the implementation.
        held: whether the test is right about it.
        error: the error that the test raised, or "".
    """

    what: Implementation
    held: bool
    error: str = ""


def limits_told() -> str:
    """Return the limits on a test's calls and time, in the words of the exercises' statements."""
    return (
        f"`f` can be called, and nothing else. One implementation takes up to {MOST_CALLS:,} calls, those of what it "
        f"makes included. The arguments of a call hold up to {MOST_NUMBERS:,} numbers together, a mask's entries "
        f"included, and up to {MOST_SCORES:,} pairs of a query and a key. A whole number outside an array, such as a "
        f"size, is at most {LARGEST_WHOLE:,}. The check here stops "
        f"after {ANSWER_SECONDS:g} seconds of processor time for all implementations together. In grading, where the "
        f"test meets more implementations, it may work for {DUEL_SECONDS:g} seconds, and all implementations together "
        "for as long. More than that is an error of the test."
    )


def standings(day: int, outcomes: Mapping[str, Outcome]) -> list[Standing]:
    """Return the verdict of the student's test on each visible implementation, in order.

    Args:
        outcomes: the test's outcomes, by name of the implementation.
    """
    told = [(each, outcomes.get(each.name, Outcome(each.name))) for each in shown(day)]
    return [Standing(each, holds(outcome, each.right), outcome.error) for each, outcome in told]


def holds(outcome: Outcome, right: bool) -> bool:
    """Return whether a test is right about an implementation; False where it gave neither a verdict nor an error."""
    if outcome.error:
        return not right
    said = outcome.values.get("verdict")
    return said is not None and said.entries == (float(right),)


def judge_duel(
    day: int, gave: Sequence[Outcome], wanted: Sequence[Outcome], find_slip: Callable[[], tuple[str, str] | None]
) -> Verdict:
    """Return the verdict on a test.

    Args:
        gave: the outcomes of the learner's test.
        wanted: the outcomes of the reference test, for the same implementations in the same order.
        find_slip: returns name and message of a known weak test that agrees with this one on every visible
            implementation, or None. It takes long, and is called only where the test is wrong about some.
    """
    right = [bool(each.values["verdict"].entries[0]) for each in wanted]
    held = [holds(outcome, ok) for outcome, ok in zip(gave, right, strict=True)]
    rungs = tuple((each.rung, ok) for each, ok in zip(wanted, held, strict=True))
    if all(held):
        return Verdict("passed", 1.0, rungs=rungs)
    kept = [ok for ok, is_right in zip(held, right, strict=True) if is_right]
    caught = [ok for ok, is_right in zip(held, right, strict=True) if not is_right]
    share = (sum(caught) / len(caught)) ** 2 if all(kept) else 0.0  # squared: a single example catches more than half
    raised = any(is_right and outcome.error for outcome, is_right in zip(gave, right, strict=True))
    slip = None if raised else find_slip()  # the error says more
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
    """Describe a right implementation that was condemned, by an error first, else hint at a wrong one that got away."""
    for each in sorted(found, key=lambda one: not one.error):
        if each.what.right and not each.held:
            raised = f" On it the test raised {each.error}." if each.error else ""
            return f"Condemned: {each.what.said}{raised}"
    for each in found:
        if not each.held:
            return f"A hint at one that got away: {each.what.hint}"
    return "Those that got away are none of the notebook's: the test must hold for others too."


def tell_duel(day: int, rungs: Sequence[tuple[str, bool]]) -> str:
    """Return the result as lines of text, in which the wrong implementations that got away have numbers, not names."""
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
    """Return the tiles of `views.DuelBoard`.

    Args:
        one_example: outcomes of the known weak test that tries a single example.
    """
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
