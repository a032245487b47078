"""Two mistakes at once, one of them an overflow of exp: both are reported, and an overflow only where there is one."""

import math
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import torch

from course_utils.answers.day2 import exercises as day2
from course_utils.answers.day4 import exercises as day4
from course_utils.answers.day7 import exercises as day7
from course_utils.answers.shared import masked
from course_utils.attention import arrays, lists, tensors
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.overflow import overflows
from course_utils.checks.judge.rungs import evidence_for
from course_utils.checks.judge.verdict import JOINT
from course_utils.checks.kernel.evidence import find_ladder, gather

OVERFLOWING = [
    pytest.param(
        day,
        grade_id,
        id=f"day{day}-{grade_id}",
        marks=()
        if day == 1
        else pytest.mark.thorough("the known mistakes of more exercises are made without a maximum"),
    )
    for day in days_with_exercises()
    for grade_id, exercise in all_exercises(day).items()
    if any(mistake.overflow for mistake in exercise.mistakes)
]


# How many stay without the name of the overflow where these are more than a tenth: their numbers are those of neither.
UNNAMED = {(2, "stable_softmax"): 4, (3, "find_the_bug"): 3, (3, "masked_softmax"): 3, (7, "paged_attention"): 2}

# Known mistakes, made by somebody who subtracts no maximum -----------------------------------------------------------


def in_lists(row):
    exps = [math.exp(x) for x in row]
    total = sum(exps)
    return [e / total for e in exps]


def in_arrays(x, axis=-1):
    with np.errstate(all="ignore"):
        exps = np.exp(np.asarray(x))
        return exps / exps.sum(axis=axis, keepdims=True)


def in_tensors(x, dim=-1):
    """A row of nothing but -inf, whose keys are all blocked, gives zeros, as with the course's own softmax."""
    exps = torch.exp(x)
    total = exps.sum(dim=dim, keepdim=True)
    return exps / total.masked_fill(total == 0, 1)


def in_torch(x, dim=-1, dtype=None):
    exps = torch.exp(x if dtype is None else x.to(dtype))
    return exps / exps.sum(dim=dim, keepdim=True)


def in_torch_log(x, dim=-1):
    return torch.log(in_torch(x, dim))


def no_peak(x, axis):
    return 0.0


def no_peak_of_one(scores):
    e = np.exp(scores)
    return e / e.sum()


def no_amax(scores):
    return torch.exp(scores)


def no_highest(scores, mask):
    return 0.0


# A function keeps its identity and gets other code, because mistakes hold some of these as defaults.
PATCHED = (
    (lists._softmax_row, in_lists),
    (arrays.softmax, in_arrays),
    (tensors.softmax, in_tensors),
    (day2.largest, no_peak),
    (day4.exponentials, no_amax),
    (day7.softmax, no_peak_of_one),
    (masked.highest, no_highest),
)


@contextmanager
def no_maximum():
    """While its block runs, no softmax of the course's answers subtracts the largest score."""
    before = [(function, function.__code__) for function, _ in PATCHED]
    with mock.patch.object(torch, "softmax", in_torch), mock.patch.object(torch, "log_softmax", in_torch_log):
        try:
            for function, other in PATCHED:
                function.__code__ = other.__code__
            yield
        finally:
            for function, code in before:
                function.__code__ = code


def both_at_once(day, grade_id):
    """(the mistake, its evidence without a maximum) for each known mistake that then overflows where it did not."""
    judge = judge_of(day, grade_id)
    right = judge.reference().outcomes
    for mistake, known in judge.mistakes():
        alone = list(known.outcomes)  # they are computed when they are read
        if mistake.overflow:
            continue
        with no_maximum():
            evidence = evidence_for(day, grade_id, dict.fromkeys(judge.exercise.reference, mistake.answer), arrays=True)
        three = zip(evidence.outcomes, alone, right, strict=True)
        if any(overflows(both, r) and not overflows(one, r) for both, one, r in three):
            yield mistake, evidence


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("day", "grade_id"), OVERFLOWING)
def test_a_known_mistake_without_a_maximum_is_told_as_two_slips(day, grade_id):
    """Or as the overflow alone, where nothing else is wrong on the steps that do not overflow."""
    judge = judge_of(day, grade_id)
    overflowing = {mistake.name for mistake in judge.exercise.mistakes if mistake.overflow}
    count, missed = 0, []
    for mistake, evidence in both_at_once(day, grade_id):
        verdict = judge.judge(evidence)
        first, *second = (verdict.mistake or "").split(JOINT)
        if first in overflowing or overflowing.intersection(second):
            count += 1
            assert first in overflowing or "There is a second mistake: exp overflows" in verdict.message
        else:
            missed.append((mistake.name, verdict.mistake))
        assert verdict.share == 0
    assert len(missed) <= UNNAMED.get((day, grade_id), max(1, 0.1 * count)), missed


# By hand -------------------------------------------------------------------------------------------------------------


def softmax_down_the_columns(Q, K, V):
    """Attention of a beginner: the sum runs down the columns, and nothing is subtracted before exp."""
    scale = math.sqrt(len(K[0]))
    exps = [[math.exp(sum(a * b for a, b in zip(q, k, strict=True)) / scale) for k in K] for q in Q]
    sums = [sum(column) for column in zip(*exps, strict=True)]
    weights = [[e / total for e, total in zip(row, sums, strict=True)] for row in exps]
    output = [
        [sum(w * v for w, v in zip(row, column, strict=True)) for column in zip(*V, strict=True)] for row in weights
    ]
    return output, weights


def verdict_on(day, grade_id, answer):
    return judge_of(day, grade_id).judge(gather(day, grade_id, dict.fromkeys(find_ladder(day, grade_id).names, answer)))


def test_the_slip_of_the_readme_as_a_beginner_writes_it_is_told_with_its_overflow():
    verdict = verdict_on(1, "attention_lists", softmax_down_the_columns)
    assert verdict.mistake == "softmax over queries; softmax without max-shift"
    assert verdict.message.startswith("These are the weights you get when softmax runs over the queries")
    assert "There is a second mistake: exp overflows" in verdict.message and "“large scores”" in verdict.message
    assert "Return the pair" not in verdict.message


def attention_with(weights_of):
    def attention(q, k, v):
        with np.errstate(all="ignore"):
            weights = weights_of(q @ np.swapaxes(k, -1, -2) / q.shape[-1])
            return weights @ v, weights

    return attention


def test_where_the_other_slip_is_unknown_the_overflow_is_told_beside_what_the_numbers_have_in_common():
    verdict = verdict_on(1, "attention_batched", attention_with(np.exp))
    assert verdict.mistake.endswith(f"{JOINT}softmax without max-shift")


def down_the_columns_after_the_shift(scores):
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-2, keepdims=True)


def logarithms(scores):
    return np.log2(arrays.softmax(scores))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights_of", [down_the_columns_after_the_shift, logarithms])
def test_what_is_not_finite_for_another_reason_is_not_called_an_overflow(weights_of):
    verdict = verdict_on(1, "attention_batched", attention_with(weights_of))
    assert verdict.status == "failed" and "overflow" not in verdict.message
    assert "max-shift" not in (verdict.mistake or "")


@pytest.mark.filterwarnings("ignore")
def test_nan_in_a_gradient_alone_is_not_called_an_overflow():
    def renormalised(scores, mask):
        weights = torch.softmax(scores, dim=-1) * mask
        total = weights.sum(dim=-1, keepdim=True)
        return torch.where(total > 0, weights / total, 0.0)

    verdict = verdict_on(3, "masked_softmax", renormalised)
    assert verdict.status == "failed" and "max-shift" not in (verdict.mistake or "")
