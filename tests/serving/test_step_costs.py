"""The cost of a step: fits that give back what they were made of, and a real GPU's numbers beside its data sheet."""

import math

import numpy as np
import pytest

from course_utils.costs.configurations import model
from course_utils.costs.records import recorded
from course_utils.costs.roofline import MACHINES, decode_step, least_seconds
from course_utils.serving.costs import (
    A100,
    A100_PROMPTS,
    AT_BEST,
    DECODES,
    PUBLISHED,
    RECORDED,
    THROUGHPUT,
    SlowerOfMeasured,
    SlowerOfTwo,
    StepCost,
    at_best,
    fit,
    of_the_course,
)


def test_a_step_costs_its_base_its_tokens_and_what_it_reads():
    cost = StepCost(10.0, 2.0, 0.5)
    assert cost(0) == 10.0
    assert cost(3, 4) == 10 + 6 + 2
    with pytest.raises(ValueError, match="neither may be below 0"):
        cost(-1)
    with pytest.raises(ValueError, match="neither may be below 0"):
        cost(1, -1)


def test_a_fit_of_exact_steps_gives_back_the_cost():
    cost = StepCost(3e-3, 2e-5, 4e-7)
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 500, 12)
    contexts = rng.integers(0, 50000, 12)
    result = fit(tokens, contexts, [cost(int(n), int(c)) for n, c in zip(tokens, contexts, strict=True)])
    np.testing.assert_allclose(result.cost, cost, rtol=1e-9)
    assert result.r_squared == pytest.approx(1) and result.largest_error < 1e-9


def test_a_fit_meets_the_conditions_of_the_best_solution_that_is_not_negative():
    """Karush, Kuhn and Tucker: no slope where a number is above 0, and none that leads down where it is 0."""
    rng = np.random.default_rng(1)
    on_the_edge = 0
    for _ in range(60):
        tokens = rng.integers(1, 50, 8).astype(float)
        contexts = rng.integers(0, 50, 8).astype(float)
        seconds = rng.uniform(0.5, 2, 8) + 0.02 * tokens * rng.integers(-1, 2)
        seconds = np.abs(seconds) + 0.01
        result = np.array(fit(tokens, contexts, seconds).cost)
        design = np.column_stack([np.ones(8), tokens, contexts]) / seconds[:, None]
        slope = design.T @ (design @ result - 1)
        assert (result >= 0).all()
        np.testing.assert_allclose(slope[result > 0], 0, atol=1e-8)
        assert (slope[result == 0] >= -1e-8).all()
        on_the_edge += (result == 0).any()
    assert 5 < on_the_edge < 60  # both kinds were met


def test_a_fit_weighs_short_steps_as_long_ones():
    """Of 1000 and 2000 s it takes 1200, where (x / 1000 − 1)² + (x / 2000 − 1)² is least; 1500 without the weights."""
    result = fit([1, 1, 1000, 1000], [0, 0, 0, 0], [2.0, 2.0, 1000.0, 2000.0])
    assert result.cost(1) == pytest.approx(2)
    assert result.cost(1000) == pytest.approx(1200)


def test_r_squared_is_the_share_of_the_spread_that_the_fit_tells():
    tokens = [1, 2, 3, 4]
    seconds = [1.0, 2.2, 2.9, 4.1]
    result = fit(tokens, [0, 0, 0, 0], seconds)
    fitted = [result.cost(n) for n in tokens]
    missed = sum((a - b) ** 2 for a, b in zip(seconds, fitted, strict=True))
    assert result.r_squared == pytest.approx(1 - missed / sum((s - 2.55) ** 2 for s in seconds))
    assert result.largest_error == max(abs(a / b - 1) for a, b in zip(fitted, seconds, strict=True))


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ValueError, match=r"\[3, 2, 3\] entries"):
        fit([1, 2, 3], [1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="measure at least 3"):
        fit([1, 2], [1, 2], [1, 2])
    with pytest.raises(ValueError, match="not above 0"):
        fit([1, 2, 3], [1, 2, 3], [1, 0, 3])


def test_the_published_steps_are_those_of_the_table():
    rows = {row.what: row[1:] for row in PUBLISHED}
    assert rows["prompt of 2048"] == (2048, 0, 0.139)
    assert rows["64 decode, 128 + 2048"] == (64, 64 * (128 + 1024), 0.030)  # half of the output is there at the median
    held = 64 * (2048 + 128) * 2**19  # 512 KiB a token: what was left out does not fit beside 13.5 GB of weights
    assert held > 80 * 2**30 - 13.5e9
    assert max(row.context for row in PUBLISHED) * 2**19 < 60e9


def test_a_real_gpu_keeps_to_three_numbers():
    assert RECORDED.r_squared > 0.99
    assert RECORDED.largest_error < 0.24
    assert RECORDED.cost == pytest.approx((9.28e-3, 5.97e-5, 2.60e-7), rel=2e-3)


def test_a_step_waits_for_the_slower_of_two():
    cost = SlowerOfTwo(StepCost(8.0, 1.0, 0.5), 3.0)
    assert cost(1) == 9 and cost(1, 4) == 11 and cost(5) == 15
    assert cost.hidden() == 4 and cost(4) == 12 == cost.memory(4)
    assert cost.hidden(2) == 8 and cost.hidden(4) == math.inf
    with pytest.raises(ValueError, match="below 0"):
        cost(-1)


def test_decode_steps_of_the_gpu_wait_for_memory_and_its_longest_prompt_for_arithmetic():
    decodes = [row for row in PUBLISHED if "decode" in row.what]
    assert all(A100(row.tokens, row.context) == DECODES.cost(row.tokens, row.context) for row in decodes)
    assert max(abs(A100(row.tokens, row.context) / row.seconds - 1) for row in decodes) == DECODES.largest_error < 0.08
    assert A100(2048) == pytest.approx(0.139) and 180 < A100.hidden() < 190 and A100.hidden(500) == math.inf
    # at the peak of its data sheet the card could not do the arithmetic of a token so fast
    assert AT_BEST.per_token < A100.per_token and DECODES.cost.per_token < AT_BEST.per_token


def test_arithmetic_lies_on_a_line_through_the_measured_prompts():
    cost = SlowerOfMeasured(StepCost(1.0, 0.0, 1.0), ((1, 2.0), (11, 12.0), (20, 30.0)))
    assert cost(1) == 2 and cost(1, 4) == 5 and cost(6) == 7 and cost(20) == 30 and cost(40) == 60
    for tokens, seconds in ((128, 0.022), (2048, 0.139)):
        assert A100_PROMPTS(tokens) == pytest.approx(seconds)
        assert A100_PROMPTS(tokens) >= A100(tokens)


def test_the_published_rates_are_below_what_the_median_token_would_give():
    for batch, rate in THROUGHPUT.items():
        (row,) = (each for each in PUBLISHED if each.what == f"{batch} decode, 128 + 128")
        assert 0.6 * batch / row.seconds < rate < 1.05 * batch / row.seconds


def test_the_course_s_decoder_keeps_to_three_numbers_too():
    fitted = of_the_course()
    stored = recorded("serving steps")[0]
    np.testing.assert_allclose(fitted.cost, stored["settings"]["fit"], rtol=1e-3)
    assert fitted.r_squared > 0.97 and min(fitted.cost) > 0
    assert {row["kind"] for row in stored["rows"]} == {"decode", "prompt"}


def test_the_data_sheet_promises_less_and_reading_the_cache_reaches_it():
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096  # but for the norms
    assert AT_BEST.base == pytest.approx(2 * weights / 2.039e12, rel=1e-3)
    assert AT_BEST.per_token == pytest.approx(2 * weights / 312e12, rel=1e-6)
    assert AT_BEST.per_context == pytest.approx(2 * 32 * 4096 * 2 / 2.039e12)
    assert all(best <= real for best, real in zip(AT_BEST, RECORDED.cost, strict=True))
    assert RECORDED.cost.per_context < 1.02 * AT_BEST.per_context


@pytest.mark.parametrize("name", ["Llama 3 8B", "GPT-2 XL"])
def test_steps_at_best_lie_between_the_roofline_and_twice_it(name):
    configuration = model(name)
    machine = MACHINES["NVIDIA H100 SXM"]
    cost = at_best(configuration, machine)
    for B in (1, 16, 512):
        for T in (128, 1024):
            roof = least_seconds(machine, decode_step(configuration, T, B))
            assert 0.97 * roof < cost(B, B * T) < 2.01 * roof
