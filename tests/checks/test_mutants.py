"""Mutants of right answers: each that gives something else loses all its points and is told why."""

import contextlib
import io
from collections.abc import Mapping
from importlib import import_module

import numpy as np
import pytest
from variants import RIGHT, SLOW
from variants.mutants import mutants

from course_utils.checks.judge.exercises import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.time_limit import TimeLimit
from course_utils.checks.kernel.evidence import find_ladder, gather

for number in days_with_exercises():
    import_module(f"variants.day{number}")  # registers its answers
LONG = SLOW - {"multi_head", "first_leak"} | {"half_attention", "online_softmax"}  # a mutant of these takes long
MANY = 200  # mutants of an exercise that are judged with --all
FEW = 40  # by default one of so many of these
THOROUGH = pytest.mark.thorough("more mutants of right answers are judged")


def has_mutants(day, grade_id):
    """Whether its right answers all give the same: of a test and of a design with state there are many kinds."""
    ladder = find_ladder(day, grade_id)
    return not (ladder.by_hand or ladder.duel or ladder.machine or grade_id in LONG)


EXERCISES = [
    pytest.param(day, grade_id, few, id=f"day{day}-{grade_id}{'' if few else '-more'}", marks=() if few else THOROUGH)
    for day in days_with_exercises()
    for grade_id in all_exercises(day)
    if has_mutants(day, grade_id)
    for few in (True, False)
]


def some_mutants(day, grade_id, few):
    """(the slip, what makes the mutant), evenly spread over all mutants of the reference and of other right answers."""
    reference = all_exercises(day)[grade_id].reference
    (name, *others) = reference
    answers = [reference if others else reference[name], *RIGHT[day, grade_id]]
    found = [each for answer in answers for each in mutants(answer)]
    spread = found[:: len(found) // MANY + 1]
    return [each for place, each in enumerate(spread) if (place % FEW == 0) == few]


def gathered(day, grade_id, answer, hidden=False):
    """The evidence; None where the answer does not end."""
    namespace = answer if isinstance(answer, Mapping) else dict.fromkeys(find_ladder(day, grade_id).names, answer)
    with contextlib.redirect_stdout(io.StringIO()), TimeLimit(5):
        return gather(day, grade_id, namespace, hidden=hidden)


def same(judge, evidence, other):
    """Whether two answers give the same, as near as the exercise asks for: then the slip is none, or shows nowhere."""
    if evidence.called:
        return False
    for mine, right in zip(evidence.outcomes, other.outcomes, strict=True):
        tolerance = judge.tolerance(right.rung)
        if bool(mine.error) != bool(right.error) or mine.values.keys() != right.values.keys():
            return False
        for part in right.values:
            actual, expected, near = mine.array(part), right.array(part), tolerance.of(part)
            if actual.shape != expected.shape or not np.allclose(
                actual, expected, near.rtol, near.atol, equal_nan=True
            ):
                return False
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("day", "grade_id", "few"), EXERCISES)
def test_a_mutant_that_gives_something_else_loses_all_points_and_is_told_why(day, grade_id, few):
    judge, lost, passed = judge_of(day, grade_id), 0, []
    chosen = some_mutants(day, grade_id, few)
    for what, make in chosen:
        try:
            mutant = make()
        except SyntaxError:
            continue
        for hidden in (False, True):
            evidence = gathered(day, grade_id, mutant, hidden)
            if evidence is None:
                break
            if not same(judge, evidence, judge.reference(hidden)):
                verdict = judge.judge(evidence)
                if verdict.status not in {"failed", "error", "forbidden"} or verdict.share or not verdict.message:
                    passed.append((what, hidden, verdict))
                lost += 1
                break
    assert passed == [] and (lost or not chosen)
