"""Mutants of right answers: each that gives something else loses all its points and is told why."""

import contextlib
import io
import random
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from variants import RIGHT, SLOW
from variants.mutants import mutants, squeezed

from course_utils.checks.examples.smallest import small_for
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.time_limit import TimeLimit
from course_utils.checks.judge.verdict import Tolerance, holds
from course_utils.checks.kernel.evidence import find_ladder, gather, outcome_of
from course_utils.checks.kernel.small import draw_args

for number in days_with_exercises():
    import_module(f"variants.day{number}")  # registers its answers
LONG = SLOW - {"multi_head", "first_leak"} | {"half_attention", "online_softmax"}  # a mutant of these takes long
MANY = 200  # mutants of an exercise that are judged with --all
OF_SLOW = {"assemble": 40}  # and of one whose mutants take seconds each
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
    spread = found[:: len(found) // OF_SLOW.get(grade_id, MANY) + 1]
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


# Here an axis of length 1 means a model of one number, a vocabulary of one token or no new token at all.
WITHOUT_ONES = {(1, "self_attention"), (4, "block"), (5, "generate_cached"), (5, "absorbed_step"), (7, "accept")}
WITH_AXES = [(2, "logsumexp"), (3, "packed_texts"), (3, "cross_attention"), (5, "quantise"), (6, "find_the_bug")]
REDUCED = [
    pytest.param(day, grade_id, id=f"day{day}-{grade_id}", marks=() if (day, grade_id) in WITH_AXES else THOROUGH)
    for day in days_with_exercises()
    for grade_id in all_exercises(day)
    if has_mutants(day, grade_id) and (day, grade_id) not in WITHOUT_ONES
]
ROUGH = Tolerance(1e-2, 1e-2)
ANSWERS = 4  # of an exercise


def inputs_with_axes_of_one(judge):
    """(a rung with short axes, many of length 1, the right outcome) for inputs like those of the ladder."""
    chosen = random.Random(0)
    for rung in judge.rungs():
        small = small_for(judge.ladder, rung)
        if small is None or any(getattr(each, "size", 0) > 400 for each in rung.args):
            continue
        for longest in (2, 3) * 8:
            drawn = replace(rung, args=draw_args(small, rung.args, chosen.randint, longest, False))
            if small.fits is None or small.fits(*drawn.args):
                right = outcome_of(drawn, judge.ladder, judge.exercise.reference, arrays=True)
                if not right.error and not any(np.isnan(part.entries).any() for part in right.values.values()):
                    yield drawn, right


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("day", "grade_id"), REDUCED)
def test_squeeze_without_an_axis_passes_nowhere_unless_it_is_right_everywhere(day, grade_id):
    """With an axis of length 1 beside the one that is summed, squeeze() drops both, and broadcasting may hide it."""
    judge, ladder = judge_of(day, grade_id), find_ladder(day, grade_id)
    reference = all_exercises(day)[grade_id].reference
    (name, *others) = reference
    answers = [reference if others else reference[name], *RIGHT[day, grade_id]][:ANSWERS]
    inputs, passed = [*inputs_with_axes_of_one(judge)], []
    for what, mutant in (each for answer in answers for each in squeezed(answer)):
        evidence = gathered(day, grade_id, mutant)
        if evidence is None or judge.judge(evidence).status != "passed":
            continue
        namespace = mutant if isinstance(mutant, Mapping) else dict.fromkeys(ladder.names, mutant)
        for rung, right in inputs:
            outcome = outcome_of(rung, ladder, namespace)
            shapes = {part: each.shape for part, each in outcome.values.items()}
            if not holds(outcome, right, ROUGH) and shapes != {part: each.shape for part, each in right.values.items()}:
                passed.append((what, rung.name, outcome.error or shapes))
                break
    assert passed == []
