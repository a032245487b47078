"""Linear attention and the delta rule: all forms agree, with each other and with two oracles of the definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.attention import linear

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(1, 5))


def drawn(seed, T=9, d=4, e=3, batch=()):
    """Return q, k of length 1, v and beta."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, *batch, T, d))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    return q, k, rng.normal(size=(*batch, T, e)), rng.random((*batch, T))


@given(SIZES, st.integers(1, 14), st.integers(0, 999))
def test_all_forms_of_the_sum_agree(sizes, chunk, seed):
    q, k, v, _ = drawn(seed, *sizes, batch=(2,))
    expected = linear.parallel(q, k, v)
    assert np.abs(linear.recurrent(q, k, v) - expected).max() < 1e-10
    assert np.abs(linear.chunked(q, k, v, chunk) - expected).max() < 1e-10


@given(SIZES, st.integers(1, 14), st.integers(0, 999))
def test_all_forms_of_the_delta_rule_agree(sizes, chunk, seed):
    q, k, v, beta = drawn(seed, *sizes, batch=(2,))
    expected = linear.delta_recurrent(q, k, v, beta)
    assert np.abs(linear.delta_parallel(q, k, v, beta) - expected).max() < 1e-10
    assert np.abs(linear.delta_chunked(q, k, v, beta, chunk) - expected).max() < 1e-10


def test_each_output_is_the_sum_of_the_values_so_far_by_their_scores():
    q, k, v, _ = drawn(1)
    for t, output in enumerate(linear.parallel(q, k, v)):
        assert np.allclose(output, sum((q[t] @ k[s]) * v[s] for s in range(t + 1)))


def test_a_step_of_the_delta_rule_is_a_step_down_the_slope_of_the_error():
    """The oracle by autograd: S − β · d/dS of half the squared error (Schlag et al. 2021; Yang et al. 2024)."""
    q, k, v, beta = (torch.from_numpy(x) for x in drawn(2))
    S = torch.zeros(4, 3, dtype=torch.float64)
    found = linear.delta_recurrent(q, k, v, beta)
    for t in range(len(q)):
        S.requires_grad_()
        (slope,) = torch.autograd.grad(((k[t] @ S - v[t]) ** 2).sum() / 2, S)
        S = (S - beta[t] * slope).detach()
        assert np.allclose(found[t], (q[t] @ S).numpy())


def test_the_delta_rule_is_a_product_of_matrices():
    """The second oracle: S ← (I − β kᵀk) S + β kᵀv."""
    q, k, v, beta = drawn(3)
    S = np.zeros((4, 3))
    for t, output in enumerate(linear.delta_recurrent(q, k, v, beta)):
        S = (np.eye(4) - beta[t] * np.outer(k[t], k[t])) @ S + beta[t] * np.outer(k[t], v[t])
        assert np.allclose(output, q[t] @ S)


def test_with_a_whole_step_the_newest_key_reads_its_value_whatever_the_decay():
    _, k, v, _ = drawn(4)
    assert np.allclose(linear.delta_recurrent(k, k, v, 1.0, decay=0.7), v)


def test_a_decay_multiplies_what_was_there_once_for_each_later_token():
    q, k, v, _ = drawn(5)
    ages = np.subtract.outer(np.arange(9), np.arange(9))
    factors = np.where(ages >= 0, 0.9 ** np.maximum(ages, 0), 0)
    assert np.allclose(linear.recurrent(q, k, v, decay=0.9), (q @ k.T * factors) @ v)


def test_normalised_rows_are_means_of_the_values():
    q, k, v, _ = drawn(6)
    q, k = linear.elu_plus_one(q), linear.elu_plus_one(k)
    found = linear.parallel(q, k, v, normalised=True)
    assert np.allclose(found, linear.recurrent(q, k, v, normalised=True))
    assert (found <= v.max(axis=0) + 1e-12).all() and (found >= v.min(axis=0) - 1e-12).all()


def test_the_features_are_positive_and_meet_at_0():
    assert np.allclose(linear.elu_plus_one([-1.0, 0.0, 2.0]), [np.exp(-1), 1, 3])


def test_a_key_is_needed_for_each_query():
    with pytest.raises(ValueError, match="a causal form has a query for each key"):
        linear.parallel(np.ones((2, 3)), np.ones((3, 3)), np.ones((3, 1)))


def test_errors_grow_with_the_root_of_the_pairs_and_the_newest_of_the_delta_rule_has_none():
    errors = linear.read_errors([1, 16, 64], 16)
    assert np.allclose(errors["added"], np.sqrt([0, 15 / 16, 63 / 16]), atol=0.1)
    assert np.allclose(errors["delta rule, newest"], 0)
    assert 0 < errors["delta rule"][1] < errors["added"][1] and errors["delta rule"][2] < errors["added"][2]
