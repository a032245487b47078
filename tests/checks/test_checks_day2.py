"""The checks of day 2: chance never fails a right answer, and the references are those of the library."""

import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from variants import RIGHT, WRONG, day2

from course_utils.answers.day2.exercises import BUG, SLIPS, in_type
from course_utils.attention import scaling
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather
from course_utils.checks.kernel.outcome import as_json, read_evidence
from course_utils.days.day2.given.ladders import Loud

REFERENCE = {name: answer for exercise in all_exercises(2).values() for name, answer in exercise.reference.items()}


assert day2.__doc__  # importing it registers its answers


def verdict_on(grade_id, function):
    (name,) = find_ladder(2, grade_id).names
    return judge_of(2, grade_id).judge(gather(2, grade_id, {name: function}))


def that_draws_first(function, numbers):
    """The same answer on other random numbers: some are drawn, and thrown away, before it begins."""

    def answer(*args):
        args[-1].random(numbers)
        return function(*args)

    return answer


# References ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_k", "rho"), [(1, 0.5), (64, 0.0), (64, 1.0), (9, -0.7)])
def test_the_moments_are_those_of_the_library(d_k, rho):
    theory = scaling.dot_product_theory(d_k, rho=rho)
    assert REFERENCE["dot_moments"](d_k, rho) == pytest.approx((theory.mean, theory.std**2))


def test_the_numbers_by_hand_are_those_of_the_library():
    raw, scaled, equal = (scaling.dot_product_theory(64, **case) for case in ({}, {"scale": None}, {"rho": 1.0}))
    expected = {"var_raw_64": raw.std**2, "var_scaled_64": scaled.std**2, "mean_if_equal_64": equal.mean}
    assert all_exercises(2)["variance_by_hand"].reference == pytest.approx(expected)


def test_the_jacobian_is_that_of_autograd():
    scores = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    by_autograd = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, dim=-1), scores)
    ours = REFERENCE["softmax_jacobian"](torch.softmax(scores, dim=-1).numpy())
    np.testing.assert_allclose(ours, by_autograd, atol=1e-12)


def gradients_of(rung):
    """Output gradients by autograd, on the arguments of a rung of attention_backward."""
    *leaves, do = (torch.tensor(x, dtype=torch.float64) for x in rung.args)
    output = F.scaled_dot_product_attention(*(leaf.requires_grad_() for leaf in leaves))
    return torch.autograd.grad(output, leaves, do)


@pytest.mark.parametrize("hidden", [False, True])
def test_the_gradients_are_those_of_autograd(hidden):
    for rung in draw_rungs(2, "attention_backward", hidden=hidden):
        ours = REFERENCE["attention_backward"](*rung.args)
        for mine, theirs in zip(ours, gradients_of(rung), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-9, err_msg=rung.name)


@pytest.mark.parametrize("hidden", [False, True])
def test_the_gradients_of_the_layer_are_those_of_autograd(hidden):
    for rung in draw_rungs(2, "layer_backward", hidden=hidden):
        *leaves, do = (torch.tensor(x, dtype=torch.float64) for x in rung.args)
        x, *matrices = (leaf.requires_grad_() for leaf in leaves)
        output = F.scaled_dot_product_attention(*(x @ w for w in matrices))
        expected = torch.autograd.grad(output, leaves, do)
        for mine, theirs in zip(REFERENCE["layer_backward"](*rung.args), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8, err_msg=rung.name)


@pytest.mark.parametrize("hidden", [False, True])
def test_attention_in_half_precision_is_the_librarys_in_float64_and_fits_into_float16(hidden):
    for rung in draw_rungs(2, "half_attention", hidden=hidden):
        assert {x.dtype for x in rung.args} == {np.dtype(np.float16)}
        expected = F.scaled_dot_product_attention(*(torch.from_numpy(x).double() for x in rung.args))
        np.testing.assert_allclose(REFERENCE["half_attention"](*rung.args), expected, rtol=1e-6, atol=1e-9)
        assert np.isfinite(expected.half().numpy()).all()


def test_each_step_that_needs_float32_has_a_rung_of_its_own():
    def failed(**how):
        rungs = verdict_on("half_attention", lambda q, k, v: in_type(q, k, v, **how)).rungs
        return {name for name, held in rungs if not held}

    half = np.float16
    assert failed() == set()
    assert {"scores near 2000, 1.25 apart", "scores past 65 504"} <= failed(scores=half)
    assert {"scores near 2000, 1.25 apart", "scores past 65 504"} <= failed(scores=half, first=True)
    behind, cancel = "5 000 keys far behind one", "values that nearly cancel"  # half has too few digits for a weight
    assert failed(exps=half) == {"70 000 keys, none ahead", behind, cancel}
    assert failed(exps=half, late=True) == {"70 000 keys, none ahead", "values of 30 000", "values of 60 000", behind}
    large = {
        "scores in the hundreds",
        "scores near 2000, 1.25 apart",
        "scores near 2000 at d_k = 3",
        "scores past 65 504",
        "a scaled score past 65 504",
        "3 000 keys, the leader first",
    }
    assert failed(shift=False) == large


@pytest.mark.parametrize("grade_id", ["stable_softmax", "logsumexp"])
def test_only_half_precision_finds_a_shift_that_float64_does_not_need(grade_id):
    function = getattr(day2, f"{grade_id.removeprefix('stable_')}_shifted_only_where_float64_needs_it")
    rungs = verdict_on(grade_id, function).rungs
    assert [name for name, held in rungs if not held] == ["half precision"]


def test_softmax_and_logsumexp_are_those_of_torch():
    x = np.random.default_rng(0).normal(scale=3000, size=(2, 3, 4))
    x[0, 1, 2] = -np.inf
    for axis in (-1, 0, 1):
        np.testing.assert_allclose(REFERENCE["softmax"](x, axis), torch.softmax(torch.tensor(x), axis), atol=1e-12)
        expected = torch.logsumexp(torch.tensor(x), axis)
        np.testing.assert_allclose(REFERENCE["logsumexp"](x, axis), expected, atol=1e-9)


@pytest.mark.parametrize(("d_k", "scaled"), [(2, False), (64, False), (64, True)])
def test_the_largest_weight_is_that_of_the_library(d_k, scaled):
    theirs = scaling.saturation(d_k, keys=8, samples=4000, scale=None if scaled else 1.0).largest
    ours = REFERENCE["saturation"](d_k, 8, scaled, 4000, np.random.default_rng(0))
    assert abs(ours - theirs.value) < 6 * math.sqrt(2) * theirs.error


# Chance -------------------------------------------------------------------------------------------------------------

FURTHER = pytest.mark.thorough("answers that draw are judged on further draws")
NUMBERS = pytest.mark.parametrize("numbers", [1, pytest.param(2, marks=FURTHER)])  # drawn before an answer draws


@FURTHER
@pytest.mark.parametrize("numbers", [1, 2])
@pytest.mark.parametrize("grade_id", ["dot_product_stats", "saturation"])
def test_a_right_answer_passes_whatever_it_draws(grade_id, numbers):
    for function in RIGHT[2, grade_id]:
        verdict = verdict_on(grade_id, that_draws_first(function, numbers))
        assert verdict.status == "passed", (function.__name__, verdict)


@NUMBERS
@pytest.mark.parametrize(
    "name", ["scores drawn, not made", "a query for each key", "one query or set of keys for all samples"]
)
def test_scores_that_are_not_real_ones_fail_whatever_is_drawn(name, numbers):
    (mistake,) = (m for m in all_exercises(2)["saturation"].mistakes if m.name == name)
    assert verdict_on("saturation", that_draws_first(mistake.answer, numbers)).status == "failed"


@NUMBERS
@pytest.mark.parametrize("name", ["all pairs", "one query or key for all samples"])
def test_samples_that_are_not_independent_fail_whatever_is_drawn(name, numbers):
    (mistake,) = (m for m in all_exercises(2)["dot_product_stats"].mistakes if m.name == name)
    assert verdict_on("dot_product_stats", that_draws_first(mistake.answer, numbers)).status == "failed"


@FURTHER
@pytest.mark.parametrize("numbers", [1, 2])
@pytest.mark.parametrize(
    ("grade_id", "names"),
    [
        (
            "dot_product_stats",
            "an_absolute_mean the_median one_product_in_place_of_the_mean four_fifths_of_the_samples more_samples "
            "half_the_samples a_thousand_samples without_dot_products std_a_little_too_large one_entry_more",
        ),
        ("saturation", "half_the_samples more_samples a_thousand_samples clipped_at_700 whole_array nans_made_one"),
    ],
)
def test_what_one_call_leaves_open_fails_whatever_is_drawn(grade_id, names, numbers):
    found = [f for f in WRONG[2, grade_id] if any(f.__name__.endswith(name) for name in names.split())]
    assert len(found) == len(names.split())
    for function in found:
        assert verdict_on(grade_id, that_draws_first(function, numbers)).status == "failed", function.__name__


@pytest.mark.parametrize(
    ("grade_id", "name", "message"),
    [
        ("dot_product_stats", "stats_of_half_the_samples", "Are `samples` pairs drawn, each used once?"),
        ("saturation", "saturation_of_half_the_samples", "Do you draw as many samples as asked?"),
        ("logsumexp", "logsumexp_that_changes_x", "x - peak in place of x -= peak"),
        ("layer_backward", "layer_for_one_sequence_only", "their contributions add up"),
        ("half_attention", "half_as_it_comes", "Turn q and k into float32 before they are multiplied"),
        ("half_attention", "half_with_products_added_one_by_one", "2048 + 1 is 2048 in float16"),
        ("find_the_bug", "mended_by_scaling_q_in_place", "q * scale instead of q *= scale"),
    ],
)
def test_the_message_names_the_remedy(grade_id, name, message):
    (function,) = (f for f in WRONG[2, grade_id] if f.__name__ == name)
    assert message in verdict_on(grade_id, function).message


def test_the_first_part_is_blamed_in_whatever_order_a_notebook_stores_the_parts():
    def narrow_entries(d_k, samples, rng):
        products = ((rng.random((samples, d_k)) - 0.5) * (rng.random((samples, d_k)) - 0.5)).sum(axis=1)
        return products.mean(), products.std(), products.std() / math.sqrt(samples)

    given = gather(2, "dot_product_stats", {"dot_product_stats": narrow_entries})
    stored = read_evidence(
        json.loads(json.dumps(as_json(judge_of(2, "dot_product_stats").reference()), sort_keys=True))
    )
    for expected in (None, stored):
        assert " std is 0.24" in judge_of(2, "dot_product_stats").judge(given, expected).message


def test_loud_numbers_are_a_thousand_times_those_of_the_same_state():
    plain, loud = np.random.default_rng(1), Loud(np.random.default_rng(1).bit_generator)
    np.testing.assert_array_equal(1000 * plain.standard_normal((2, 3)), loud.standard_normal((2, 3)))
    np.testing.assert_array_equal(1000 * plain.normal(size=4), loud.normal(size=4))


# By hand, the bug, library calls ------------------------------------------------------------------------------------


def test_two_slips_by_hand_are_both_explained():
    entries = {"var_raw_64": 8, "var_scaled_64": 1, "mean_if_equal_64": 0}
    verdict = judge_of(2, "variance_by_hand").judge(gather(2, "variance_by_hand", entries))
    assert verdict.share == pytest.approx(1 / 3)
    assert SLIPS["var_raw_64"][8.0] in verdict.message
    assert SLIPS["mean_if_equal_64"][0.0] in verdict.message


def test_an_unknown_number_by_hand_gets_advice():
    entries = {"var_raw_64": 65, "var_scaled_64": 1.0, "mean_if_equal_64": 64.0}
    verdict = judge_of(2, "variance_by_hand").judge(gather(2, "variance_by_hand", entries))
    assert (verdict.share, verdict.mistake) == (pytest.approx(2 / 3), "var_raw_64: a little off")
    assert "var_raw_64 is not right. Go through it again: one term first" in verdict.message


def test_the_bug_as_it_stands_is_not_given_away():
    verdict = verdict_on("find_the_bug", BUG.answer)
    assert verdict.mistake == BUG.name
    assert not any(word in verdict.message for word in ("scale", "√", "scores", "softmax", "before", "after"))


def test_a_softmax_that_fails_costs_the_later_exercises_nothing():
    namespace = {"np": np, "softmax": lambda x, axis=-1: x}
    exec(
        "def logsumexp(x, axis=-1):\n    return x.max(axis=axis) - np.log(softmax(x, axis).max(axis=axis))\n",
        namespace,
    )
    assert examine(2, "logsumexp", namespace)[1].status == "passed"


def test_a_way_back_that_fails_costs_the_way_back_to_the_weights_nothing():
    namespace = {"np": np, "math": math, "attention_backward": lambda q, k, v, do: (q, k, v)}
    exec(
        "def layer_backward(x, w_q, w_k, w_v, do):\n"
        "    dys = attention_backward(x @ w_q, x @ w_k, x @ w_v, do)\n"
        "    dx = sum(dy @ w.T for dy, w in zip(dys, (w_q, w_k, w_v)))\n"
        "    return dx, *(x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1]) for dy in dys)\n",
        namespace,
    )
    assert examine(2, "layer_backward", namespace)[1].status == "passed"
