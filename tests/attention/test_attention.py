"""The three implementations against each other, PyTorch's own, float64, and the laws that attention obeys."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention import arrays, lists, tensors
from course_utils.attention.shapes import check_causal, check_grouped, whole

law = settings(deadline=None, max_examples=40, derandomize=True)

THREE = [[1, 0], [0, 1], [1, 1]]
THREE_VALUES = [[1, 0], [0, 1], [0, 0]]


def through_lists(q, k, v, mask=None, scale=None):
    output, weights = lists.attention(
        q.tolist(), k.tolist(), v.tolist(), None if mask is None else mask.tolist(), scale
    )
    return np.array(output).reshape(len(q), v.shape[-1]), np.array(weights).reshape(len(q), len(k))


def through_tensors(q, k, v, mask=None, scale=None):
    mask = None if mask is None else torch.from_numpy(mask)
    output, weights = tensors.attention(*map(torch.from_numpy, (q, k, v)), mask, scale)
    return output.numpy(), weights.numpy()


def library(q, k, v, mask=None, scale=None):
    if mask is not None:  # the library does not take a mask of one axis
        mask = torch.from_numpy(np.atleast_2d(mask))
    return F.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), attn_mask=mask, scale=scale).numpy()


ALL_THREE = pytest.mark.parametrize("attention", [through_lists, arrays.attention, through_tensors])
ANY_BATCH = pytest.mark.parametrize("attention", [arrays.attention, through_tensors])


@st.composite
def problems(draw, batched=False, largest=3.0, smallest_n=1):
    """q, k, v, mask in float64, with n, m, d_k and d_v drawn apart from each other."""
    n, m, d_k, d_v = (draw(st.integers(low, 6)) for low in (smallest_n, 1, 1, 1))
    batch = draw(st.sampled_from([(), (2,), (3, 1), (2, 3), (0,)])) if batched else ()
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q, k, v = (rng.uniform(-largest, largest, (*batch, *shape)) for shape in ((n, d_k), (m, d_k), (m, d_v)))
    mask = rng.random((n, m)) < draw(st.sampled_from([0.2, 0.6, 1.0]))
    return q, k, v, mask


# --- what the numbers are -------------------------------------------------------------------------------------------


@ALL_THREE
def test_the_worked_example_of_day_1(attention):
    output, weights = attention(np.array(THREE), np.array(THREE), np.array(THREE_VALUES))
    expected = [[0.4011, 0.1978, 0.4011], [0.1978, 0.4011, 0.4011], [0.2483, 0.2483, 0.5035]]
    np.testing.assert_allclose(weights, expected, atol=5e-5)
    np.testing.assert_allclose(output, np.array(expected)[:, :2], atol=5e-5)


@ALL_THREE
@law
@given(problem=problems(), scale=st.sampled_from([None, 0.0, 0.3, -1.0, 2.0]))
def test_it_equals_the_library_without_and_with_a_mask(attention, problem, scale):
    q, k, v, mask = problem
    np.testing.assert_allclose(attention(q, k, v, None, scale)[0], library(q, k, v, None, scale), atol=1e-10)
    np.testing.assert_allclose(attention(q, k, v, mask, scale)[0], library(q, k, v, mask, scale), atol=1e-10)


@ANY_BATCH
@law
@given(problem=problems(batched=True))
def test_it_equals_the_library_with_batch_and_heads_in_front(attention, problem):
    q, k, v, mask = problem
    output, weights = attention(q, k, v, mask)
    assert output.shape == (*q.shape[:-1], v.shape[-1])
    assert weights.shape == (*q.shape[:-1], k.shape[-2])
    np.testing.assert_allclose(output, library(q, k, v, mask), atol=1e-10)


@law
@given(problem=problems(), scale=st.sampled_from([None, 0.3]))
def test_the_three_implementations_agree(problem, scale):
    expected_output, expected_weights = through_lists(*problem, scale)
    for attention in (arrays.attention, through_tensors):
        output, weights = attention(*problem, scale)
        np.testing.assert_allclose(output, expected_output, atol=1e-12)
        np.testing.assert_allclose(weights, expected_weights, atol=1e-12)


@ANY_BATCH
@law
@given(problem=problems(batched=True))
def test_float32_stays_close_to_float64(attention, problem):
    q, k, v, mask = problem
    output, weights = attention(*(x.astype(np.float32) for x in (q, k, v)), mask)
    assert output.dtype == weights.dtype == np.float32
    np.testing.assert_allclose(output, arrays.attention(q, k, v, mask)[0], atol=2e-5)


@ANY_BATCH
def test_leading_dimensions_broadcast_as_in_matmul(attention):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(5, 1, 4, 3)), rng.normal(size=(2, 6, 3)), rng.normal(size=(6, 7))
    output, weights = attention(q, k, v)
    assert output.shape == (5, 2, 4, 7)
    assert weights.shape == (5, 2, 4, 6)
    np.testing.assert_allclose(output[3, 1], through_lists(q[3, 0], k[1], v)[0], atol=1e-12)


@ANY_BATCH
def test_a_mask_broadcasts_over_heads_queries_and_keys(attention):
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(2, 3, 6, 2))
    for shape in ((6,), (1, 6), (4, 1), (2, 1, 1, 6), (3, 4, 6)):
        mask = rng.random(shape) < 0.5
        np.testing.assert_allclose(attention(q, k, v, mask)[0], library(q, k, v, mask), atol=1e-12)


@pytest.mark.parametrize("mask", [[True, False], [[True, False]], [[True], [False], [True]]])
def test_a_mask_of_lists_broadcasts_too(mask):
    values = [[1, 2], [3, 4]]
    output, _ = lists.attention(THREE, THREE[:2], values, mask)
    expected, _ = arrays.attention(THREE, THREE[:2], values, mask)
    np.testing.assert_allclose(output, expected, atol=1e-12)


# --- laws -----------------------------------------------------------------------------------------------------------


@ALL_THREE
@law
@given(problem=problems())
def test_rows_sum_to_one_or_to_zero_where_all_is_masked(attention, problem):
    q, k, v, mask = problem
    _, weights = attention(q, k, v, mask)
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), mask.any(-1), atol=1e-12)


@ALL_THREE
@law
@given(problem=problems())
def test_outputs_stay_within_the_values(attention, problem):
    q, k, v, _ = problem
    output, _ = attention(q, k, v)
    assert (output <= v.max(axis=0) + 1e-12).all()
    assert (output >= v.min(axis=0) - 1e-12).all()


@ALL_THREE
@law
@given(problem=problems(), seed=st.integers(0, 1000))
def test_permuting_queries_permutes_outputs_and_permuting_keys_changes_nothing(attention, problem, seed):
    q, k, v, mask = problem
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(q)), rng.permutation(len(k))
    output, weights = attention(q, k, v, mask)
    moved_output, moved_weights = attention(q[rows], k[columns], v[columns], mask[rows][:, columns])
    np.testing.assert_allclose(moved_output, output[rows], atol=1e-12)
    np.testing.assert_allclose(moved_weights, weights[rows][:, columns], atol=1e-12)


@ALL_THREE
def test_equal_scores_give_the_mean_of_the_values(attention):
    v = np.arange(10.0).reshape(5, 2)
    output, _ = attention(np.zeros((3, 4)), np.ones((5, 4)), v)
    np.testing.assert_allclose(output, [v.mean(0)] * 3, atol=1e-12)


@ALL_THREE
@law
@given(problem=problems(largest=1e4))
def test_large_scores_do_not_overflow(attention, problem):
    q, k, v, _ = problem
    output, weights = attention(q, k, v)
    assert np.isfinite(output).all()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-12)


@ALL_THREE
def test_a_score_far_above_the_others_picks_one_value(attention):
    output, weights = attention(np.array([[1e4, 0.0]]), np.eye(2), np.array([[3.0], [7.0]]))
    assert weights.tolist() == [[1.0, 0.0]]
    assert output.tolist() == [[3.0]]


@ALL_THREE
def test_one_query_and_one_key_give_the_value(attention):
    output, weights = attention(np.array([[-2.0, 5.0]]), np.array([[9.0, 1.0]]), np.array([[4.0, -1.0, 2.0]]))
    assert weights.tolist() == [[1.0]]
    assert output.tolist() == [[4.0, -1.0, 2.0]]


# --- nothing there, nothing allowed ---------------------------------------------------------------------------------


@ALL_THREE
def test_a_fully_masked_row_gives_zeros(attention):
    mask = np.array([[True, True, False], [False, False, False], [True, True, True]])
    output, weights = attention(np.array(THREE), np.array(THREE), np.array(THREE_VALUES), mask)
    assert weights[1].tolist() == [0, 0, 0]
    assert output[1].tolist() == [0, 0]
    np.testing.assert_allclose(weights.sum(-1), [1, 0, 1], atol=1e-12)


@ALL_THREE
def test_no_queries_give_no_outputs(attention):
    output, weights = attention(np.zeros((0, 2)), np.ones((3, 2)), np.ones((3, 4)))
    assert output.shape == (0, 4)
    assert weights.shape == (0, 3)


@ANY_BATCH
def test_no_keys_give_zeros(attention):
    output, weights = attention(np.ones((2, 3)), np.ones((0, 3)), np.ones((0, 4)))
    assert weights.shape == (2, 0)
    assert output.tolist() == [[0.0] * 4] * 2


@law
@given(problem=problems(batched=True, largest=30.0))
def test_gradients_are_finite_and_equal_the_librarys(problem):
    *qkv, mask = (torch.from_numpy(x) for x in problem)
    ours, theirs = ([x.clone().requires_grad_() for x in qkv] for _ in range(2))
    probe = torch.linspace(-1, 2, qkv[2].shape[-1], dtype=torch.float64)
    (tensors.attention(*ours, mask)[0] * probe).sum().backward()
    (F.scaled_dot_product_attention(*theirs, attn_mask=mask) * probe).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.isfinite(mine.grad).all()
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-8, rtol=1e-8)


def test_a_fully_masked_row_has_zero_gradients():
    q, k, v = (torch.randn(2, 3, generator=torch.Generator().manual_seed(s)).requires_grad_() for s in range(3))
    output, weights = tensors.attention(q, k, v, torch.tensor([[True, True], [False, False]]))
    (output.sum() + weights.square().sum()).backward()
    assert q.grad[1].tolist() == [0, 0, 0]
    assert all(torch.isfinite(x.grad).all() for x in (q, k, v))


# --- softmax and logsumexp ------------------------------------------------------------------------------------------

ROWS = st.lists(st.lists(st.floats(-1e4, 1e4) | st.just(-math.inf), min_size=3, max_size=3), min_size=1, max_size=4)


@law
@given(rows=ROWS, axis=st.sampled_from([-2, -1, 0, 1]))
def test_softmax_and_logsumexp_equal_torchs_on_either_axis(rows, axis):
    x = torch.tensor(rows, dtype=torch.float64)
    expected = torch.softmax(x, axis).nan_to_num(0.0)  # torch gives NaN where everything is -inf
    for module, given_rows in ((lists, rows), (arrays, x.numpy()), (tensors, x)):
        np.testing.assert_allclose(np.asarray(module.softmax(given_rows, axis)), expected, atol=1e-12)
        np.testing.assert_allclose(np.asarray(module.logsumexp(given_rows, axis)), torch.logsumexp(x, axis), rtol=1e-12)


@pytest.mark.parametrize("module", [lists, arrays, tensors])
def test_softmax_of_one_row(module):
    shares = module.softmax([1000, 1001, 999])
    np.testing.assert_allclose(np.asarray(shares), [0.2447, 0.6652, 0.0900], atol=5e-5)
    assert float(module.logsumexp([1000, 1001, 999])) == pytest.approx(1001 - math.log(shares[1]), rel=1e-6)


@pytest.mark.parametrize("module", [lists, arrays, tensors])
def test_nothing_but_minus_infinity(module):
    assert np.asarray(module.softmax([-math.inf, -math.inf])).tolist() == [0, 0]
    assert float(module.logsumexp([-math.inf, -math.inf])) == -math.inf


def test_logsumexp_has_finite_gradients_where_everything_is_minus_infinity():
    x = torch.tensor([[-math.inf, -math.inf], [0.0, 1.0]], requires_grad=True)
    tensors.logsumexp(x)[1].backward()
    assert torch.isfinite(x.grad).all()


# --- types ----------------------------------------------------------------------------------------------------------


def test_integers_are_computed_as_floats():
    assert arrays.attention(THREE, THREE, THREE_VALUES)[0].dtype == np.float64
    assert tensors.attention(*map(torch.tensor, (THREE, THREE, THREE_VALUES)))[0].dtype == torch.get_default_dtype()
    assert all(type(x) is float for row in lists.attention(THREE, THREE, THREE_VALUES)[0] for x in row)


def test_a_numpy_scale_does_not_change_the_dtype():
    x = np.eye(3, dtype=np.float32)
    assert arrays.attention(x, x, x, scale=1 / np.sqrt(3))[0].dtype == np.float32


@ANY_BATCH
def test_inputs_are_left_as_they_were(attention):
    q, k, v = np.array(THREE, float), np.array(THREE, float), np.array(THREE_VALUES, float)
    mask = np.tri(3, dtype=bool)
    before = [x.copy() for x in (q, k, v, mask)]
    attention(q, k, v, mask)
    assert all((x == y).all() for x, y in zip((q, k, v, mask), before, strict=True))


# --- errors ---------------------------------------------------------------------------------------------------------

FIVE_BY_TWO, FOUR_BY_THREE, FOUR_BY_TWO = ([[1.0] * columns] * rows for rows, columns in ((5, 2), (4, 3), (4, 2)))
ALL_MODULES = pytest.mark.parametrize("module", [lists, arrays, tensors])


def refusal(module, q, k, v, mask=None, scale=None, error=ValueError):
    if module is tensors:
        q, k, v = torch.tensor(q), torch.tensor(k), torch.tensor(v)
        mask = None if mask is None else torch.tensor(mask)
    with pytest.raises(error) as caught:
        module.attention(q, k, v, mask, scale)
    return str(caught.value)


@ALL_MODULES
def test_keys_of_another_width_are_refused_with_both_shapes(module):
    assert refusal(module, FIVE_BY_TWO, FOUR_BY_THREE, FOUR_BY_TWO) == (
        "k is (4, 3) but q is (5, 2): keys and queries need the same d_k (last axis)"
    )


@ALL_MODULES
def test_too_few_values_are_refused_with_both_shapes(module):
    assert refusal(module, FIVE_BY_TWO, FIVE_BY_TWO, FOUR_BY_TWO) == (
        "v is (4, 2) but k is (5, 2): one value for each key (second-to-last axis)"
    )


@ALL_MODULES
def test_a_mask_that_does_not_fit_is_refused_with_both_shapes(module):
    mask = [[True] * 5] * 4
    assert refusal(module, FOUR_BY_TWO, FOUR_BY_TWO, FOUR_BY_TWO, mask) == (
        "mask is (4, 5) but scores are (4, 4): one row per query, one column per key"
    )


@pytest.mark.parametrize("module", [arrays, tensors])
def test_a_mask_with_more_axes_than_the_scores_is_refused(module):
    mask = np.ones((3, 4, 4), dtype=bool).tolist()
    message = refusal(module, FOUR_BY_TWO, FOUR_BY_TWO, FOUR_BY_TWO, mask)
    assert "mask is (3, 4, 4) but scores are (4, 4)" in message


@ALL_MODULES
def test_a_mask_of_numbers_is_refused_and_told_what_true_means(module):
    mask = [[1.0, 0.0, 1.0, 0.0]] * 4
    message = refusal(module, FOUR_BY_TWO, FOUR_BY_TWO, FOUR_BY_TWO, mask, error=TypeError)
    assert "boolean" in message
    assert "True means that the query may attend" in message


@ALL_MODULES
@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_a_scale_that_is_not_finite_is_refused(module, scale):
    assert f"scale is {scale}" in refusal(module, FOUR_BY_TWO, FOUR_BY_TWO, FOUR_BY_TWO, scale=scale)


@ALL_MODULES
def test_a_single_row_is_refused(module):
    assert "q is (2,): it needs" in refusal(module, [1.0, 2.0], FOUR_BY_TWO, FOUR_BY_TWO)


@pytest.mark.parametrize("module", [arrays, tensors])
def test_leading_dimensions_that_do_not_fit_are_refused(module):
    q, k = np.ones((2, 5, 3)).tolist(), np.ones((4, 5, 3)).tolist()
    assert refusal(module, q, k, k) == (
        "k is (4, 5, 3) but q is (2, 5, 3): their leading axes must be equal, or 1, or absent"
    )
    assert refusal(module, q, q, k) == (
        "v is (4, 5, 3) but q is (2, 5, 3) and k is (2, 5, 3): their leading axes must be equal, or 1, or absent"
    )


@pytest.mark.parametrize("module", [arrays, tensors])
def test_queries_of_no_width_are_refused(module):
    assert "d_k (last axis) must be at least 1" in refusal(module, [[]], [[]], [[1.0]])


def test_ragged_lists_are_refused_by_row():
    message = refusal(lists, THREE, [[1, 2], [3]], [[1], [2]])
    assert message == "k is ragged: row 0 has 2 numbers but row 1 has 1; all rows need as many"
    assert "mask is ragged" in refusal(lists, THREE, THREE, THREE, [[True] * 3, [True] * 2, [True] * 3])


def test_an_empty_list_of_keys_is_refused():
    assert refusal(lists, THREE, [], []) == "k is empty: it needs at least one row"


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="only axis"):
        lists.softmax([1, 2], axis=1)
    with pytest.raises(ValueError, match="two axes"):
        lists.softmax([[1, 2]], axis=2)


def test_importing_the_package_loads_neither_numpy_nor_torch():
    code = "import sys, course_utils.attention.lists; print([x for x in ('numpy', 'torch') if x in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads, kv_heads, group", [(4, 4, 1), (4, 2, 2), (6, 1, 6)])
def test_groups_of_query_heads_are_counted(heads, kv_heads, group):
    assert check_grouped((2, heads, 5, 8), (2, kv_heads, 7, 8), (2, kv_heads, 7, 3)) == group
    assert check_grouped((5, 8), (7, 8), (7, 3)) == 1


@pytest.mark.parametrize(
    "q, k, v, message",
    [
        ((2, 3, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), "q has 3 heads and k has 2"),
        ((2, 3, 5, 8), (2, 0, 7, 8), (2, 0, 7, 8), "k has 0"),
        ((2, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8), "the axes before the heads must be equal"),
        ((2, 2, 5, 8), (2, 2, 7, 8), (2, 1, 7, 8), "one value for each key, in each head"),
        ((2, 2, 5, 8), (2, 7, 8), (2, 7, 8), "as many axes"),
        ((2, 2, 5, 8), (2, 2, 7, 9), (2, 2, 7, 8), "same d_k"),
    ],
)
def test_heads_that_do_not_group_are_named(q, k, v, message):
    with pytest.raises(ValueError, match=message):
        check_grouped(q, k, v)


def test_whole_takes_integers_of_any_library_and_nothing_else():
    assert [whole("n", n) for n in (3, np.int64(3), torch.tensor(3))] == [3, 3, 3]
    assert type(whole("n", np.int8(3))) is int and whole("n", 0, least=0) == 0
    for odd in (3.0, "3", None, True):
        with pytest.raises(TypeError, match=r"n is .*: give a whole number"):
            whole("n", odd)
    with pytest.raises(ValueError, match="n is 0: it must be at least 1"):
        whole("n", 0)


def test_causal_is_yes_or_no():
    assert check_causal(np.True_) is True and check_causal(False) is False
    for odd in (1, "no", torch.ones(2, 2, dtype=torch.bool)):
        with pytest.raises(TypeError, match="not a bool: for other masks use"):
            check_causal(odd)
