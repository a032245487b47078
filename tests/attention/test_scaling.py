"""The figures of day 2: measurement beside theory, softmax beside autograd and finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention import tensors
from course_utils.attention.scaling import (
    dot_product_statistics,
    dot_product_theory,
    dot_products,
    entropy,
    exp_limit,
    jacobian_trace,
    mean_estimate,
    runner_up_gradient,
    saturation,
    softmax_jacobian,
    std_estimate,
)

law = settings(deadline=None, max_examples=40, derandomize=True)


def long(*values):
    return pytest.param(*values, marks=pytest.mark.thorough("the scores of long vectors are drawn and measured"))


def holds(estimate, truth, errors=4.0):
    """Is the truth within 4 standard errors? By chance it is not once in 16,000 times, and seeds are fixed."""
    assert estimate.error > 0
    return abs(estimate.value - truth) <= errors * estimate.error


def signs(rows, columns, generator, dtype):
    return 2 * torch.randint(0, 2, (rows, columns), generator=generator).to(dtype) - 1


def flat(rows, columns, generator, dtype):
    return math.sqrt(3) * (2 * torch.rand(rows, columns, generator=generator, dtype=dtype) - 1)


def skewed(rows, columns, generator, dtype):
    return -torch.rand(rows, columns, generator=generator, dtype=dtype).clamp_min(1e-300).log() - 1


# --- dot products: measured and derived -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "d_k, std",
    [(4, "2.0"), (16, "4.0"), (64, "8.0"), (128, "11.3"), long(512, "22.6"), long(4096, "64.0")],
)
def test_the_spread_of_dot_products_is_the_root_of_d_k(d_k, std):
    samples = 3000 if d_k > 1000 else 10_000
    assert f"{dot_product_theory(d_k).std:.1f}" == std
    raw = dot_product_statistics(d_k, samples)
    assert holds(raw.mean, 0) and holds(raw.std, math.sqrt(d_k))
    scaled = dot_product_statistics(d_k, samples, scale=None)
    assert holds(scaled.mean, 0) and holds(scaled.std, 1)
    assert dot_product_theory(d_k, scale=None).std == pytest.approx(1)


# The theory, worked out by hand for d_k = 10.
def test_entries_that_never_vary_have_one_product():
    for mean in (0.0, 0.3, 0.7, -1.1):
        theory = dot_product_theory(4, mean=mean, std=0.0)
        assert theory.mean == pytest.approx(4 * mean**2) and theory.std == 0


@pytest.mark.parametrize(
    "entries, mean, variance",
    [
        ({}, 0, 10),
        ({"std": 3.0}, 0, 810),
        ({"mean": 2.0}, 40, 90),
        ({"rho": 1.0}, 10, 20),  # q = k
        ({"rho": -1.0}, -10, 20),  # q = -k
        ({"rho": 0.5}, 5, 12.5),
        ({"mean": 1.0, "rho": 1.0}, 20, 60),  # Var of z² for z normal with mean 1: 2 + 4
        ({"mean": 1.0, "rho": -1.0}, 0, 20),  # (1 + z)(1 - z) = 1 - z²
        ({"mean": 3.0, "std": 0.0}, 90, 0),
        ({"scale": -0.5, "mean": 2.0}, -20, 22.5),
    ],
)
def test_the_theory_by_hand(entries, mean, variance):
    theory = dot_product_theory(10, **entries)
    assert theory.mean == pytest.approx(mean, abs=1e-12)
    assert theory.std == pytest.approx(math.sqrt(variance))


@law
@given(
    d_k=st.integers(1, 40),
    rho=st.sampled_from([0.0, 0.3, -0.8, 1.0]),
    mean=st.sampled_from([0.0, 0.5, -2.0]),
    std=st.sampled_from([0.5, 1.0, 3.0]),
    scale=st.sampled_from([1.0, None, -2.0]),
    seed=st.integers(0, 10_000),
)
def test_theory_and_measurement_agree_for_normal_entries(d_k, rho, mean, std, scale, seed):
    theory = dot_product_theory(d_k, scale, rho, mean, std)
    measured = dot_product_statistics(d_k, 20_000, scale, rho, mean, std, seed=seed)
    assert holds(measured.mean, theory.mean, errors=4.5) and holds(measured.std, theory.std, errors=4.5)


@pytest.mark.parametrize("draw", [signs, flat, skewed])
@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_without_correlation_no_distribution_need_be_named(draw, mean):
    theory = dot_product_theory(12, mean=mean, std=2.0)
    measured = dot_product_statistics(12, 40_000, mean=mean, std=2.0, draw=draw)
    assert holds(measured.mean, theory.mean) and holds(measured.std, theory.std)


def test_with_correlation_the_distribution_matters():
    equal = dot_product_statistics(16, 1000, rho=1.0, draw=signs)  # q = k of ±1: q·k is always d_k
    assert equal.mean == (16.0, 0.0) and equal.std == (0.0, 0.0)
    assert dot_product_theory(16, rho=1.0).std == pytest.approx(math.sqrt(32))


def test_every_sample_is_there_and_drawn_once_however_long_the_vectors():
    products = dot_products(4096, 600)  # more than fits in one block
    assert products.shape == (600,) and products.dtype == torch.float64
    assert len(products.unique()) == 600
    assert dot_products(3, 1).shape == (1,)


@pytest.mark.parametrize("measure", [dot_product_statistics, saturation, dot_products])
def test_the_seed_decides_and_the_global_random_state_is_left_alone(measure):
    state = torch.get_rng_state()
    first, again, other = measure(8, samples=50, seed=1), measure(8, samples=50, seed=1), measure(8, samples=50, seed=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(torch.as_tensor(first), torch.as_tensor(again))
    assert not torch.equal(torch.as_tensor(first), torch.as_tensor(other))


# --- standard errors ------------------------------------------------------------------------------------------------


def coverage(intervals, truth):
    return np.mean([abs(value - truth) <= 1.96 * error for value, error in intervals])


@pytest.mark.parametrize(("d_k", "samples"), [(1, 4000), (4, 4000), long(64, 500)])  # short vectors have long tails
def test_about_95_percent_of_the_intervals_hold_the_truth(d_k, samples):
    spreads = [dot_product_statistics(d_k, samples, seed=seed) for seed in range(400)]
    assert 0.92 <= coverage([spread.mean for spread in spreads], 0) <= 0.98
    assert 0.92 <= coverage([spread.std for spread in spreads], math.sqrt(d_k)) <= 0.98


def test_the_formula_for_normal_samples_is_too_sure_of_itself_at_small_d_k():
    spreads = [dot_product_statistics(1, 4000, seed=seed) for seed in range(400)]
    normal = [(spread.std.value, spread.std.value / math.sqrt(2 * 4000)) for spread in spreads]
    assert coverage(normal, 1) < 0.75  # a product of two normals has fourth moment 9: twice the error


def test_on_normal_samples_both_formulas_agree():
    samples = torch.randn(100_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    value, error = std_estimate(samples)
    assert error == pytest.approx(value / math.sqrt(2 * len(samples)), rel=0.02)


def test_estimates_by_hand():
    assert mean_estimate([1.0, 3.0]) == pytest.approx((2.0, 1.0))
    # Squared deviations 9, 1, 1, 9: s² = 20/3, fourth moment 41.
    value, error = std_estimate([0.0, 2.0, 4.0, 6.0])
    assert value == pytest.approx(math.sqrt(20 / 3))
    fourth, variance = 41, 20 / 3
    assert fourth < variance**2 and error == 0  # four samples are too few to tell
    # Deviations -1, -1, -1, -1, -1, 5: s² = 6, fourth moment 105.
    assert std_estimate([0.0] * 5 + [6.0])[1] == pytest.approx(math.sqrt((105 - 36) / 6) / (2 * math.sqrt(6)))
    assert std_estimate([2.0, 2.0, 2.0]) == (0.0, 0.0)


# --- saturation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "d_k, largest, trace, scaled_largest, scaled_trace",
    [
        (4, 0.5273, 0.6034, 0.3434, 0.7736),
        (64, 0.8748, 0.1776, 0.3599, 0.7682),
        long(512, 0.9562, 0.0629, 0.3611, 0.7677),
    ],
)
def test_softmax_hardens_without_the_scale_and_not_with_it(d_k, largest, trace, scaled_largest, scaled_trace):
    # What is expected was measured apart, on 4 million rows: known to 0.0001.
    raw, scaled = saturation(d_k, samples=8000), saturation(d_k, samples=8000, scale=None)
    assert holds(raw.largest, largest) and holds(raw.trace, trace)
    assert holds(scaled.largest, scaled_largest) and holds(scaled.trace, scaled_trace)
    assert max(estimate.error for estimate in (*raw, *scaled)) < 0.007
    assert raw.entropy.value < scaled.entropy.value < math.log(8)


def test_saturation_at_its_ends():
    alone = saturation(5, keys=1, samples=10)
    assert alone.largest == (1.0, 0.0) and alone.entropy == (0.0, 0.0) and alone.trace == (0.0, 0.0)
    level = saturation(5, keys=8, samples=10, scale=0.0)
    assert [estimate.value for estimate in level] == pytest.approx([1 / 8, math.log(8), 7 / 8])


def test_saturation_equals_scores_drawn_and_measured_one_by_one():
    generator = torch.Generator().manual_seed(5)
    q, k = (torch.randn(20, *rest, generator=generator, dtype=torch.float64) for rest in ((1, 3), (4, 3)))
    weights = [torch.softmax(0.7 * torch.tensor([q[i, 0] @ key for key in k[i]]).double(), 0) for i in range(20)]
    measured = saturation(3, keys=4, samples=20, scale=0.7, seed=5)
    assert measured.largest.value == pytest.approx(np.mean([float(p.max()) for p in weights]))
    assert measured.entropy.value == pytest.approx(
        np.mean([-sum(x * math.log(x) for x in p.tolist()) for p in weights])
    )
    assert measured.trace.value == pytest.approx(np.mean([sum(x * (1 - x) for x in p.tolist()) for p in weights]))


# --- softmax and its gradient ---------------------------------------------------------------------------------------


@st.composite
def score_rows(draw):
    """Scores (…, m) in float64, some masked by -inf, now and then a whole row."""
    shape = draw(st.sampled_from([(1,), (5,), (3, 4), (2, 3, 6), (2, 0)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    scores = draw(st.sampled_from([0.1, 1.0, 30.0])) * torch.randn(shape, generator=generator, dtype=torch.float64)
    hidden = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.0, 0.5]))
    return scores.masked_fill(hidden, -math.inf), torch.randn(shape, generator=generator, dtype=torch.float64)


@law
@given(drawn=score_rows())
def test_the_jacobian_is_symmetric_its_rows_add_up_to_zero_and_its_diagonal_to_the_trace(drawn):
    weights = tensors.softmax(drawn[0])
    jacobian = softmax_jacobian(weights)
    assert jacobian.shape == (*weights.shape, weights.shape[-1])
    assert torch.equal(jacobian, jacobian.mT)
    torch.testing.assert_close(jacobian.sum(-1), torch.zeros_like(weights), atol=1e-14, rtol=0)
    torch.testing.assert_close(jacobian.diagonal(dim1=-2, dim2=-1).sum(-1), jacobian_trace(weights))


def test_the_jacobian_is_what_autograd_finds():
    scores = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, 0), scores)
    torch.testing.assert_close(softmax_jacobian(torch.softmax(scores, 0)), result)


def test_weights_may_be_lists_and_arrays():
    p = [[0.5, 0.5], [0.25, 0.75]]
    for measure in (entropy, softmax_jacobian, jacobian_trace):
        expected = measure(torch.tensor(p))
        assert torch.equal(measure(p), expected) and expected.dtype == torch.float32
        measured = measure(np.array(p))
        assert measured.dtype == torch.float64
        torch.testing.assert_close(measured.float(), expected)
    assert entropy([0.5, 0.5]).item() == pytest.approx(math.log(2))
    assert entropy([1, 0]).item() == 0  # integers too


def test_sizes_may_be_numbers_of_numpy():
    assert torch.equal(dot_products(np.int64(3), np.int32(5)), dot_products(3, 5))
    assert dot_product_theory(np.int64(16)) == dot_product_theory(16)


def test_a_row_that_sees_nothing_gets_zeros_everywhere():
    zeros = torch.zeros(2, 3)
    assert entropy(zeros).tolist() == [0, 0]
    assert jacobian_trace(zeros).tolist() == [0, 0]
    assert softmax_jacobian(zeros).eq(0).all()


# --- entropy --------------------------------------------------------------------------------------------------------


@law
@given(drawn=score_rows())
def test_entropy_lies_between_0_and_log_m_and_is_shannons(drawn):
    weights = tensors.softmax(drawn[0])
    measured = entropy(weights)
    assert measured.shape == weights.shape[:-1]
    assert (measured >= 0).all() and (measured <= math.log(max(weights.shape[-1], 1)) + 1e-12).all()
    torch.testing.assert_close(measured, torch.special.entr(weights).sum(-1))


def test_entropy_of_equal_and_of_certain_weights():
    assert entropy(torch.full((8,), 1 / 8, dtype=torch.float64)).item() == pytest.approx(math.log(8))
    for certain in ([1.0, 0.0], [0.0, 0.0], [1.0]):
        assert str(entropy(torch.tensor(certain)).item()) == "0.0"  # not -0.0


def test_entropy_has_finite_gradients_where_a_weight_is_zero():
    scores = torch.tensor([1.0, 2.0, -math.inf], requires_grad=True)
    entropy(tensors.softmax(scores)).backward()
    assert scores.grad.isfinite().all() and scores.grad[:2].abs().min() > 0


# --- the last figures of day 2 --------------------------------------------------------------------------------------


def test_a_runner_up_gets_e_to_the_minus_gap():
    assert f"{runner_up_gradient(10).item():.1e}" == f"{math.exp(-10):.1e}" == "4.5e-05"
    assert runner_up_gradient(0).item() == 0.25
    gaps = torch.linspace(0, 40, 9, dtype=torch.float64)
    weights = torch.softmax(torch.stack([gaps, torch.zeros_like(gaps)], dim=-1), dim=-1)
    torch.testing.assert_close(
        runner_up_gradient(gaps), softmax_jacobian(weights)[:, 1, 1].abs(), atol=1e-17, rtol=1e-7
    )
    torch.testing.assert_close(runner_up_gradient(gaps[4:]), torch.exp(-gaps[4:]), atol=0, rtol=1e-8)
    assert runner_up_gradient(torch.tensor([800.0])).item() == 0


@pytest.mark.parametrize(
    "dtype, limit",
    [(torch.float16, 11.09), (torch.float32, 88.72), (torch.bfloat16, 88.72), (torch.float64, 709.78)],
)
def test_exp_overflows_just_past_its_limit(dtype, limit):
    assert round(exp_limit(dtype), 2) == limit
    below, above = (torch.tensor(exp_limit(dtype) * factor, dtype=dtype).exp() for factor in (0.99, 1.01))
    assert below.isfinite() and above.isinf()


def test_the_shift_keeps_softmax_from_overflowing():
    scores = torch.tensor([1000.0, 1001.0, 999.0])
    assert scores.exp().isinf().all()
    assert [round(x, 4) for x in tensors.softmax(scores).tolist()] == [0.2447, 0.6652, 0.0900]


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (lambda: dot_products(0, 5), ValueError, "d_k is 0: it must be at least 1"),
        (lambda: dot_products(2.5, 5), TypeError, "d_k is 2.5: give a whole number"),
        (lambda: dot_products(True, 5), TypeError, "d_k is True: give a whole number"),
        (lambda: saturation(4, keys=True), TypeError, "keys is True: give a whole number"),
        (lambda: dot_products(4, 0), ValueError, "samples is 0"),
        (lambda: dot_product_statistics(4, 1), ValueError, "samples is 1: it must be at least 2"),
        (lambda: dot_products(4, 5, rho=1.5), ValueError, "rho is 1.5: a correlation lies between -1 and 1"),
        (lambda: dot_product_theory(4, rho=-2), ValueError, "rho is -2"),
        (lambda: dot_product_theory(4, std=-1), ValueError, "std is -1: it must be finite and at least 0"),
        (lambda: dot_product_theory(4, std=math.nan), ValueError, "std is nan"),
        (lambda: dot_products(4, 5, mean=math.inf), ValueError, "mean is inf"),
        (lambda: dot_product_theory(4, scale=math.nan), ValueError, "scale is nan: it must be a finite number"),
        (lambda: dot_product_theory(0), ValueError, "d_k is 0"),
        (lambda: saturation(4, keys=0), ValueError, "keys is 0"),
        (lambda: saturation(4, samples=1), ValueError, "samples is 1"),
        (lambda: mean_estimate([1.0]), ValueError, "samples is (1,): give at least 2 numbers in one row"),
        (lambda: std_estimate([[1.0, 2.0]]), ValueError, "samples is (1, 2)"),
        (lambda: exp_limit(torch.int32), TypeError, "dtype is torch.int32: give a floating dtype of PyTorch"),
        (
            lambda: exp_limit("float16"),
            TypeError,
            "dtype is 'float16': give a floating dtype of PyTorch",
        ),
        (lambda: exp_limit(np.float16), TypeError, "dtype is <class 'numpy.float16'>: give a floating dtype of PyTor"),
        (lambda: exp_limit(np.dtype("float16")), TypeError, "dtype is dtype('float16'): give a floating dtype"),
    ],
)
def test_bad_input_is_named(wrong, error, message):
    with pytest.raises(error) as caught:
        wrong()
    assert message in str(caught.value)
