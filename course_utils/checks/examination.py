"""Examine an answer in a namespace: evidence, verdict, and an example on which the answer is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from course_utils.checks.examples.adversary import Trace, describe_trace, find_trace
from course_utils.checks.examples.example_text import STAGE, STEPPER, describe_example
from course_utils.checks.examples.smallest import find_smallest
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.lent import lent_functions
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.rungs import evidence_for
from course_utils.checks.judge.time_limit import TimeLimit
from course_utils.checks.judge.verdict import JOINT, Verdict
from course_utils.checks.judge.wording import is_about_parameters, with_full_stop
from course_utils.checks.kernel.evidence import BAD_RESULT, find_ladder
from course_utils.checks.kernel.outcome import Evidence
from course_utils.checks.kernel.settings import usual_settings
from course_utils.time_limits import RETRY_SECONDS
from course_utils.views.drawing import listed


def examine(
    day: int, grade_id: str, namespace: MutableMapping[str, Any], *, hidden: bool = False, seed: str = ""
) -> tuple[Evidence | None, Verdict]:
    """Return the evidence and the verdict for the answer that `namespace` holds.

    As in grading, an answer that fails gets a second try in which right answers replace the earlier answers that it
    uses and that do not pass, so that a mistake in one of those costs this exercise nothing. The message names them.

    Returns:
        (evidence, verdict). The evidence is None if the answer was stopped.
    """
    with usual_settings():
        return _examine(day, grade_id, namespace, hidden, seed)


def _examine(
    day: int, grade_id: str, namespace: MutableMapping[str, Any], hidden: bool, seed: str
) -> tuple[Evidence | None, Verdict]:
    examine_once = partial(_examine_once, day, grade_id, namespace, hidden, seed)
    evidence, verdict = examine_once()
    uses = all_exercises(day)[grade_id].uses
    if verdict.status == "passed" or not uses:
        return evidence, verdict

    # A failed answer is tried once more, with right functions in place of the earlier answers.
    seconds = RETRY_SECONDS if verdict.status == "timeout" else None
    evidence_with_lent, verdict_with_lent = examine_once(uses, seconds)
    is_worse_with_lent = verdict_with_lent.share < verdict.share
    if is_worse_with_lent or verdict.status == verdict_with_lent.status == "timeout":
        return evidence, verdict
    if _say_the_same(verdict, verdict_with_lent):
        return evidence_with_lent, verdict_with_lent

    # The verdicts differ. The second one counts if it passes, or if an earlier answer is wrong; it says what was lent.
    # Earlier answers that pass stay, as in grading, unless the answer goes wrong with one of them.
    failing = [used for used in uses if _examine(day, used, namespace, hidden, seed)[1].status != "passed"]
    if 0 < len(failing) < len(uses):
        evidence_with_few, verdict_with_few = examine_once(failing, seconds)
        if verdict_with_few.status == "passed" or verdict_with_lent.status != "passed":
            evidence_with_lent, verdict_with_lent = evidence_with_few, verdict_with_few
        else:
            failing = []
    is_own_mistake = not failing and verdict_with_lent.status != "passed"
    if is_own_mistake:
        return evidence, verdict
    advice = with_full_stop(verdict_with_lent.message) if verdict_with_lent.message else ""
    message = f"{advice} {_why_lent(day, failing, uses)}".strip()
    return evidence_with_lent, replace(verdict_with_lent, message=message)


def _say_the_same(verdict: Verdict, other: Verdict) -> bool:
    """Return whether a learner reads the same in two verdicts."""
    return (verdict.status, verdict.message, verdict.rungs) == (other.status, other.message, other.rungs)


def _why_lent(day: int, failing: Sequence[str], uses: Sequence[str]) -> str:
    """Return a sentence that says in place of which earlier answers an exercise was tried with right ones."""
    names = [*_right_answers(day, failing or uses)]
    beginning = f"Tried with our {listed(names)}, since"
    if not failing:
        return f"{beginning} it goes wrong with yours."
    return f"{beginning} {'yours does' if len(names) == 1 else 'yours do'} not pass yet."


def _right_answers(day: int, exercises: Collection[str]) -> dict[str, Any]:
    """Return the functions, by name, that can be lent in place of the answers to these exercises."""
    right = lent_functions(day) if exercises else {}
    return {name: right[name] for each in exercises for name in find_ladder(day, each).names}


def smallest_example(
    day: int, grade_id: str, namespace: MutableMapping[str, Any], verdict: Verdict, *, with_widget: bool = True
) -> str:
    """Return, as text, the smallest input found on which the answer in `namespace` is wrong; "" if none is found.

    Right answers replace the earlier answers that it uses, so that the mistake shown is its own.

    Args:
        with_widget: whether code follows that draws the example in a notebook.
    """
    text = example_text(day, grade_id, find_example(day, grade_id, namespace, verdict))
    return text if with_widget else text.partition(f"\n{STEPPER}")[0]


def example_text(day: int, grade_id: str, example: Trace | str) -> str:
    return describe_trace(example, find_ladder(day, grade_id).names[0]) if isinstance(example, Trace) else example


def find_example(day: int, grade_id: str, namespace: MutableMapping[str, Any], verdict: Verdict) -> Trace | str:
    """Return what `smallest_example` does; for an answer with state, the sequence of calls itself."""
    judge = judge_of(day, grade_id)
    if verdict.status not in ("failed", "error") or judge.ladder.by_hand or verdict.unknown_name:
        return ""
    lent = _right_answers(day, judge.exercise.uses)
    with _replace_values(namespace, lent):
        if judge.ladder.machine:
            return find_trace(judge.ladder, namespace, rungs=judge.rungs()) or ""
        example = find_smallest(judge, namespace, dict(verdict.rungs))
    if example is None or _is_wrong_on_any_input(verdict, example.outcome.error):
        return ""
    return describe_example(example, judge, namespace.get(example.rung.of or judge.ladder.names[0]))


def _is_wrong_on_any_input(verdict: Verdict, error: str) -> bool:
    """Return whether an error does not depend on the input: of parameters, or as the advice says it, unreadable."""
    kind, _, text = error.partition(": ")
    return is_about_parameters(error) or (kind == BAD_RESULT and text in verdict.message)


def put_stage_first(message: CheckMessage) -> CheckMessage:
    """Put the stage at which the results part, which the example names, first, unless a known mistake is named."""
    known = {mistake.name for mistake in all_exercises(message.day)[message.exercise].mistakes}
    lines = message.example.splitlines()
    stage = next((line for line in lines if line.startswith(STAGE)), "")
    if not stage or known.intersection((message.verdict.mistake or "").split(JOINT)):
        return message
    first = f"On the smallest input below, your numbers and the right ones {stage.removeprefix('They ')}"
    verdict = replace(message.verdict, message=f"{first} {message.verdict.message}")
    return replace(message, verdict=verdict, example="\n".join(line for line in lines if line != stage))


def _examine_once(
    day: int,
    grade_id: str,
    namespace: MutableMapping[str, Any],
    hidden: bool,
    seed: str,
    lent: Collection[str] = (),
    seconds: float | None = None,
) -> tuple[Evidence | None, Verdict]:
    """Return the evidence and the verdict for an answer, without a second try, within `seconds` or the usual time.

    Args:
        lent: the earlier exercises in place of whose answers right functions are used.
    """
    with _replace_values(namespace, _right_answers(day, lent)), TimeLimit(seconds) as limit:
        evidence = evidence_for(day, grade_id, namespace, hidden=hidden, seed=seed)
    if limit.message:
        return None, Verdict("timeout", 0.0, limit.message)
    return evidence, judge_of(day, grade_id, seed).judge(evidence)


@contextmanager
def _replace_values(namespace: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Replace the values of names in a namespace within a block."""
    before = dict(namespace)
    namespace.update(values)
    try:
        yield
    finally:
        for name in values:
            del namespace[name]
        namespace.update({name: before[name] for name in values if name in before})
