"""Masks against PyTorch's own and plain loops; leak tests against layers that are known to look ahead, or not to."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_utils.attention import tensors
from course_utils.attention.masks import (
    Leak,
    attendable,
    causal,
    combine,
    future_leak,
    jacobian_leak,
    padding,
    prefix_lm,
    sliding_window,
    to_additive,
)

law = settings(deadline=None, max_examples=40, derandomize=True)
SIZES = st.integers(0, 7)
NO_LEAK = Leak(None, None, 0.0)


def rows(mask):
    return mask.int().tolist()


# --- masks ----------------------------------------------------------------------------------------------------------


def test_causal_is_the_lower_triangle_with_its_diagonal():
    assert rows(causal(3)) == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_the_last_query_sees_the_last_key():
    assert rows(causal(2, 4)) == [[1, 1, 1, 0], [1, 1, 1, 1]]


def test_with_more_queries_than_keys_the_first_see_nothing():
    assert rows(causal(4, 2)) == [[0, 0], [0, 0], [1, 0], [1, 1]]


def test_upper_left_lets_the_first_query_see_the_first_key():
    assert rows(causal(2, 4, align="upper-left")) == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert rows(causal(4, 2, align="upper-left")) == [[1, 0], [1, 1], [1, 1], [1, 1]]


@law
@given(n=st.integers(1, 7), m=st.integers(1, 7))
def test_both_alignments_are_those_of_the_library(n, m):
    from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # takes two seconds

    q, k, v = (torch.randn(size, 4, generator=torch.Generator().manual_seed(0)) for size in (n, m, m))
    for align, theirs in (("lower-right", causal_lower_right), ("upper-left", causal_upper_left)):
        if align == "lower-right" and n > m:
            continue  # the library gives NaN to queries that see nothing
        output, _ = tensors.attention(q, k, v, causal(n, m, align))
        torch.testing.assert_close(output, F.scaled_dot_product_attention(q, k, v, attn_mask=theirs(n, m)))
    upper_left, _ = tensors.attention(q, k, v, causal(n, m, "upper-left"))
    torch.testing.assert_close(upper_left, F.scaled_dot_product_attention(q, k, v, is_causal=True))


@law
@given(n=SIZES, m=SIZES, window=st.integers(1, 9))
def test_a_window_hides_what_lies_too_far_back(n, m, window):
    mask = sliding_window(n, window, m)
    assert mask.shape == (n, m)
    for i in range(n):
        place = i + m - n
        assert rows(mask[i]) == [int(place - window < j <= place) for j in range(m)]


@law
@given(n=SIZES, m=SIZES)
def test_a_window_over_everything_is_causal(n, m):
    assert rows(sliding_window(n, max(n, m, 1), m)) == rows(causal(n, m))
    assert rows(sliding_window(n, 1)) == rows(torch.eye(n))


@law
@given(n=SIZES, prefix=SIZES)
def test_a_prefix_is_seen_by_all_and_the_rest_is_causal(n, prefix):
    assume(prefix <= n)
    assert rows(prefix_lm(n, prefix)) == [[int(j <= i or j < prefix) for j in range(n)] for i in range(n)]


def test_no_prefix_is_causal_and_all_prefix_sees_all():
    assert rows(prefix_lm(4, 0)) == rows(causal(4))
    assert prefix_lm(4, 4).all()


def test_padding_keeps_the_first_keys_of_each_sequence():
    mask = padding([3, 0, 2], 3)
    assert mask.shape == (3, 1, 1, 3)
    assert rows(mask.squeeze()) == [[1, 1, 1], [0, 0, 0], [1, 1, 0]]
    assert rows(padding(torch.tensor([1, 2], dtype=torch.int32), 2).squeeze()) == [[1, 0], [1, 1]]


def test_padding_on_the_left_keeps_the_last_keys_of_each_sequence():
    mask = padding([3, 0, 2], 3, side="left")
    assert mask.shape == (3, 1, 1, 3)
    assert rows(mask.squeeze()) == [[1, 1, 1], [0, 0, 0], [0, 1, 1]]


@law
@given(m=SIZES, data=st.data())
def test_both_sides_keep_as_many_keys_as_the_lengths_say(m, data):
    lengths = data.draw(st.lists(st.integers(0, m), max_size=4))
    right, left = padding(lengths, m), padding(lengths, m, side="left")
    assert right.shape == left.shape == (len(lengths), 1, 1, m)
    assert right.sum(-1).flatten().tolist() == left.sum(-1).flatten().tolist() == lengths
    for real, length in zip(left, lengths, strict=True):
        assert not real[..., : m - length].any()


def test_sizes_may_be_numbers_of_numpy():
    assert rows(causal(np.int64(2), np.int32(3))) == rows(causal(2, 3))
    assert rows(sliding_window(3, np.int64(2))) == rows(sliding_window(3, 2))
    assert rows(prefix_lm(np.int64(3), np.int64(2))) == rows(prefix_lm(3, 2))
    assert rows(padding(np.array([1, 2]), np.int64(2))) == rows(padding([1, 2], 2))


@pytest.mark.parametrize("mask", [causal(0), causal(0, 3), causal(3, 0), sliding_window(0, 2, 3), prefix_lm(0, 0)])
def test_nothing_to_mask_gives_an_empty_mask(mask):
    assert mask.dtype == torch.bool
    assert mask.numel() == 0


def test_empty_masks_have_the_shape_that_was_asked_for():
    assert causal(0, 3).shape == (0, 3)
    assert causal(3, 0).shape == (3, 0)
    assert padding([], 3).shape == (0, 1, 1, 3)
    assert padding([0, 0], 0).shape == (2, 1, 1, 0)


# --- the rule behind them -------------------------------------------------------------------------------------------


@law
@given(
    queries=st.lists(st.integers(-2, 9), max_size=5),
    keys=st.lists(st.integers(-2, 9), max_size=6),
    window=st.none() | st.integers(1, 4),
)
def test_a_query_sees_a_key_that_is_there_not_later_and_within_the_window(queries, keys, window):
    expected = [
        [int(key >= 0 and key <= query and (window is None or query - key < window)) for key in keys]
        for query in queries
    ]
    assert rows(attendable(queries, keys, window)) == expected


def test_positions_differ_by_sequence_and_broadcast():
    mask = attendable(torch.tensor([[1], [2]]), torch.tensor([[2, 1, -1], [0, 1, 2]]))
    assert rows(mask) == [[[0, 1, 0]], [[1, 1, 1]]]
    assert attendable(torch.zeros(5, 1, 4).long(), torch.zeros(2, 3).long()).shape == (5, 2, 4, 3)


def test_one_query_at_the_end_sees_what_the_last_row_of_causal_sees():
    ring = torch.tensor([4, 5, 2, 3])  # where the ring buffer of day 5 keeps positions 2 to 5
    by_place = attendable([5], ring, window=3)[0]
    assert rows(by_place[ring.argsort()]) == rows(sliding_window(6, 3)[-1, 2:])


# --- masks together, and as numbers ---------------------------------------------------------------------------------


def test_causal_and_padding_combine_by_broadcasting():
    mask = combine(causal(3), padding([3, 2], 3))
    assert mask.shape == (2, 1, 3, 3)
    assert rows(mask[0, 0]) == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert rows(mask[1, 0]) == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


def test_none_allows_everything():
    assert combine() is None
    assert combine(None, None) is None
    assert rows(combine(None, causal(2), None)) == rows(causal(2))


@law
@given(seed=st.integers(0, 1000))
def test_the_order_of_masks_does_not_matter(seed):
    generator = torch.Generator().manual_seed(seed)
    a, b, c = (torch.rand(shape, generator=generator) < 0.6 for shape in ((4, 5), (2, 1, 1, 5), (3, 4, 1)))
    together = combine(a, b, c)
    assert together.shape == (2, 3, 4, 5)
    assert torch.equal(together, combine(c, combine(b, a)))
    assert torch.equal(together, a & b & c)


def test_masks_may_be_lists_and_arrays():
    observed = [[True, False], [True, True]]
    for mask in (observed, np.array(observed)):
        assert rows(combine(mask, None)) == [[1, 0], [1, 1]]
        assert to_additive(mask).tolist() == [[0, -math.inf], [0, 0]]


def test_combining_leaves_the_masks_as_they_were():
    first, second = causal(3), torch.eye(3, dtype=torch.bool)
    combine(first, second)
    assert torch.equal(first, causal(3)) and torch.equal(second, torch.eye(3, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_added_to_the_scores_it_does_what_the_boolean_mask_does(dtype):
    additive = to_additive(causal(3, 2), dtype)
    assert additive.dtype == dtype
    assert additive.tolist() == [[-math.inf, -math.inf], [0, -math.inf], [0, 0]]
    scores = torch.randn(3, 2, generator=torch.Generator().manual_seed(0)).to(dtype)
    weights = tensors.softmax(scores.masked_fill(~causal(3, 2), -math.inf))
    assert torch.equal(tensors.softmax(scores + additive), weights)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (lambda: causal(3, align="left"), ValueError, 'align is \'left\': it must be "lower-right" or "upper-left"'),
        (lambda: causal(-1), ValueError, "n is -1: it must be at least 0"),
        (lambda: causal(2, -3), ValueError, "m is -3: it must be at least 0"),
        (lambda: causal(2.0), TypeError, "n is 2.0: give a whole number"),
        (lambda: causal(True), TypeError, "n is True: give a whole number"),
        (lambda: sliding_window(4, True), TypeError, "window is True: give a whole number"),
        (lambda: prefix_lm(4, True), TypeError, "prefix is True: give a whole number"),
        (lambda: padding([1], True), TypeError, "m is True: give a whole number"),
        (lambda: padding([1], 2, side="top"), ValueError, 'side is \'top\': it must be "left" or "right"'),
        (lambda: sliding_window(4, 0), ValueError, "window is 0: it must be at least 1"),
        (lambda: sliding_window(4, -2), ValueError, "window is -2"),
        (lambda: sliding_window(0, 0), ValueError, "window is 0"),
        (lambda: prefix_lm(3, 4), ValueError, "prefix is 4 but there are 3 tokens"),
        (lambda: prefix_lm(3, -1), ValueError, "prefix is -1"),
        (lambda: padding([1, 5], 4), ValueError, "lengths has 5 but there are 4 keys"),
        (lambda: padding([-1], 4), ValueError, "lengths has -1"),
        (lambda: padding([1.0], 4), TypeError, "lengths is torch.float32: give whole numbers"),
        (lambda: padding([True], 4), TypeError, "lengths is torch.bool"),
        (lambda: padding([[1, 2]], 4), ValueError, "lengths is (1, 2): give one length for each"),
        (lambda: attendable([0.5], [0]), TypeError, "query_positions is torch.float32"),
        (lambda: attendable([0], [True]), TypeError, "key_positions is torch.bool"),
        (lambda: attendable([[0]] * 2, [[0]] * 3), ValueError, "are (2, 1, 1) and (3, 1, 1)"),
        (lambda: combine(causal(4), padding([1, 2], 5)), ValueError, "masks are (4, 4) and (2, 1, 1, 5)"),
        (lambda: combine(causal(4), torch.ones(4)), TypeError, "mask is torch.float32, not boolean: True means that"),
        (lambda: to_additive(torch.ones(2, 2)), TypeError, "mask is torch.float32, not boolean: True means that"),
        (lambda: to_additive(None), TypeError, "mask is None: where there is no mask, there is nothing to add"),
        (lambda: to_additive(causal(2), torch.int64), TypeError, "dtype is torch.int64: give a floating dtype of PyT"),
        (lambda: to_additive(causal(2), "float16"), TypeError, "dtype is 'float16': give a floating dtype of PyTorch"),
        (lambda: to_additive(causal(2), np.float16), TypeError, "dtype is <class 'numpy.float16'>: give a floating"),
    ],
)
def test_bad_input_is_named(wrong, error, message):
    with pytest.raises(error) as caught:
        wrong()
    assert message in str(caught.value)


# --- layers that leak, and layers that do not -----------------------------------------------------------------------

T, D = 6, 8


def tokens(*batch, dtype=torch.float64, seed=1):
    return torch.randn(*batch, T, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def projections(x):
    w_q, w_k, w_v = torch.randn(3, D, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(x)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return q @ k.transpose(-2, -1) / D, v


def masked(mask, fill=-math.inf):
    def layer(x):
        scores, v = projections(x)
        return tensors.softmax(scores.masked_fill(~mask, fill)) @ v

    return layer


def additive(fill):
    def layer(x):
        scores, v = projections(x)
        return tensors.softmax(scores + fill * (~causal(T)).to(x)) @ v

    return layer


def masked_after_softmax(renormalised):
    def layer(x):
        scores, v = projections(x)
        weights = tensors.softmax(scores) * causal(T)
        return (weights / weights.sum(-1, keepdim=True) if renormalised else weights) @ v

    return layer


def library(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


def two_layers(x):
    return masked(causal(T))(x + torch.relu(masked(causal(T))(x)))


def running_mean(x):
    return x.cumsum(-2) / torch.arange(1, x.shape[-2] + 1).to(x)[:, None]


ONE_AHEAD = torch.ones(T, T).tril(1).bool()
LEAKING = {
    "no mask": masked(torch.ones(T, T).bool()),
    "upper triangle": masked(causal(T).T),
    "diagonal one too far": masked(ONE_AHEAD),
    "only the last query sees too much": masked(prefix_lm(T, 2)),
    "masked after softmax": masked_after_softmax(renormalised=False),
    "mean over all tokens": lambda x: x - x.mean(-2, keepdim=True),
    "next token": lambda x: x.roll(-1, dims=-2),
    "a feature of the last token": lambda x: x + 1e-3 * x[..., -1:, :1],
}
HONEST = {
    "causal": masked(causal(T)),
    "causal, itself left out": masked(torch.ones(T, T).tril(-1).bool()),
    "sliding window": masked(sliding_window(T, 3)),
    "two layers": two_layers,
    "the library's": library,
    "running mean": running_mean,
    "each token alone": lambda x: x.sin(),
}
SOME_BATCH = pytest.mark.parametrize("batch", [(), (2,), (2, 3)])


@SOME_BATCH
@pytest.mark.parametrize("name", LEAKING)
def test_both_tests_catch_a_layer_that_looks_ahead(name, batch):
    for leak in (future_leak(LEAKING[name], tokens(*batch)), jacobian_leak(LEAKING[name], tokens(*batch))):
        assert leak.amount > 1e-4
        assert 0 <= leak.i < leak.j < T


@SOME_BATCH
@pytest.mark.parametrize("name", HONEST)
def test_both_tests_let_an_honest_layer_pass(name, batch):
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert future_leak(HONEST[name], tokens(*batch, dtype=dtype)) == NO_LEAK
    assert jacobian_leak(HONEST[name], tokens(*batch)) == NO_LEAK


@pytest.mark.parametrize("i, j", [(0, 1), (0, 5), (2, 3), (4, 5)])
def test_the_pair_that_leaks_is_named(i, j):
    mask = causal(T)
    mask[i, j] = True
    for leak in (future_leak(masked(mask), tokens()), jacobian_leak(masked(mask), tokens())):
        assert (leak.i, leak.j) == (i, j)


def test_the_worst_of_two_leaks_is_named():
    def layer(x):
        observed = torch.zeros(T, T).to(x)
        observed[1, 4], observed[3, 5] = 0.25, 2.0
        return x + observed @ x

    assert jacobian_leak(layer, tokens()) == Leak(3, 5, 2.0)
    leak = future_leak(layer, tokens(), sizes=[10.0])
    assert (leak.i, leak.j) == (3, 5)
    assert 2 * 5 < leak.amount <= 2 * 10


@pytest.mark.parametrize("feature", range(D))
def test_a_leak_of_one_feature_into_one_feature_is_seen(feature):
    def layer(x):
        out = x.clone()
        out[..., 2, (feature + 3) % D] += x[..., 4, feature]
        return out

    assert jacobian_leak(layer, tokens(2)) == Leak(2, 4, 1.0)
    leak = future_leak(layer, tokens(2))
    assert (leak.i, leak.j) == (2, 4) and leak.amount > 1


def test_a_leak_in_one_row_of_the_batch_is_seen():
    def layer(x):
        return torch.cat([running_mean(x[:-1]), x[-1:].flip(-2)])

    assert future_leak(layer, tokens(3)).amount > 1
    assert jacobian_leak(layer, tokens(3)).amount == 1.0


def test_a_leak_that_cancels_over_the_batch_is_seen():
    def layer(x):
        ahead = x.roll(-1, dims=-2)
        return ahead - ahead.mean(0)

    assert jacobian_leak(layer, tokens(3)).amount == pytest.approx(2 / 3)
    assert future_leak(layer, tokens(3)).amount > 0.1


def test_masking_after_the_softmax_leaks_through_the_denominator_unless_renormalised():
    leaks = [future_leak(masked_after_softmax(renormalised), tokens(), sizes=[1.0]) for renormalised in (False, True)]
    assert leaks[0].amount > 0.01
    assert leaks[1].amount < 1e-14
    assert jacobian_leak(masked_after_softmax(True), tokens()).amount < 1e-14


def test_renormalising_leaks_when_a_later_score_drives_all_others_to_zero():
    assert future_leak(masked_after_softmax(renormalised=True), tokens()).amount == math.inf  # 0 / 0


@pytest.mark.parametrize("fill, size_that_opens", [(-1e4, 1e6), (-1e9, 1e11)])
def test_a_finite_fill_leaks_once_a_later_score_outgrows_it(fill, size_that_opens):
    assert future_leak(additive(fill), tokens(), sizes=[1.0, 1e2]) == NO_LEAK
    assert future_leak(additive(fill), tokens(), sizes=[size_that_opens]).amount > 1
    assert jacobian_leak(additive(fill), tokens()) == NO_LEAK


@pytest.mark.parametrize("sign", [1, -1])
def test_tokens_move_both_ways(sign):
    def layer(x):  # leaks only when the later token grows, or only when it shrinks
        return x + torch.relu(sign * x[..., -1:, :1] - 10)

    assert future_leak(layer, tokens()).amount > 100


def test_the_default_sizes_catch_a_fill_of_minus_ten_thousand():
    assert future_leak(additive(-1e4), tokens()).amount > 1
    assert future_leak(additive(-1e4), tokens(dtype=torch.float32)).amount > 1


def test_in_float16_the_sizes_have_to_be_given():
    layer, x = additive(-1e4), tokens(dtype=torch.float16)
    assert future_leak(layer, x) == NO_LEAK  # its steps stop at 16
    assert future_leak(layer, x, sizes=[4000.0]).amount > 1
    assert future_leak(masked(causal(T)), x, sizes=[4000.0]) == NO_LEAK


@pytest.mark.parametrize("sizes", [(), (0.0,), (-1.0,), (math.nan,), (1.0, math.inf)])
def test_sizes_that_test_nothing_are_refused(sizes):
    with pytest.raises(ValueError, match="give at least one, each positive and finite"):
        future_leak(masked(causal(T)), tokens(), sizes=sizes)


def test_a_layer_that_refuses_float64_is_asked_in_its_own_dtype():
    def picky(x):
        if x.dtype != torch.float32:
            raise AssertionError("float32 only")
        return x.flip(-2)

    assert jacobian_leak(picky, tokens(dtype=torch.float32)).amount == 1


def test_a_fill_in_place_of_scores_leaks_when_the_others_fall_below_it():
    layer = masked(causal(T), fill=-1e4)
    assert future_leak(layer, tokens()) == NO_LEAK
    assert future_leak(layer, 1e4 * tokens()).amount > 1


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_an_output_that_turns_nan_or_infinite_is_a_leak_of_inf(poison):
    def layer(x):
        out = x.clone()
        out[..., 1, 0] = torch.where(x[..., 4, :].abs().amax(-1) > 100, poison, out[..., 1, 0])
        return out

    assert future_leak(layer, tokens()) == Leak(1, 4, math.inf)
    assert future_leak(layer, tokens(), sizes=[1.0]) == NO_LEAK


def test_a_gradient_that_is_nan_is_a_leak_of_inf():
    def layer(x):  # the value of row 0 never changes, its gradient is 0 · inf
        return torch.cat([x[..., :1, :] + 0 * (0 * x[..., -1:, :]).sqrt(), x[..., 1:, :]], dim=-2)

    assert jacobian_leak(layer, tokens()) == Leak(0, T - 1, math.inf)


def test_one_token_has_nothing_to_leak():
    x = torch.ones(1, 4)
    assert future_leak(lambda x: 2 * x, x) == NO_LEAK
    assert jacobian_leak(lambda x: 2 * x, x) == NO_LEAK


NO_GRADIENT = "fn's output carries no gradient back to x (no_grad, detach, NumPy?): try future_leak, which needs none"


def test_where_autograd_finds_no_way_to_x_the_jacobian_does_not_say_that_all_is_well():
    weight = torch.ones(D, 2, dtype=torch.float64, requires_grad=True)  # a gradient of its own does not help
    leaking = [
        torch.no_grad()(LEAKING["no mask"]),
        torch.inference_mode()(LEAKING["no mask"]),
        lambda x: x.detach().flip(-2),
        lambda x: x.detach().flip(-2) @ weight,
        lambda x: torch.from_numpy(x.detach().numpy()[..., ::-1, :].copy()),
    ]
    for layer in leaking:
        assert future_leak(layer, tokens()).amount > 1
        with pytest.raises(ValueError) as caught:
            jacobian_leak(layer, tokens())
        assert str(caught.value) == NO_GRADIENT


def test_an_output_that_does_not_depend_on_x_does_not_leak_and_has_no_jacobian():
    fixed, unused = torch.ones(T, 2), torch.ones(T, 2, requires_grad=True)
    for layer in (lambda x: fixed, lambda x: 3 * unused):
        assert future_leak(layer, tokens()) == NO_LEAK
        with pytest.raises(ValueError, match="carries no gradient back to x"):
            jacobian_leak(layer, tokens())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_tests_work_where_gradients_are_switched_off(mode, dtype):
    with mode():
        x = tokens(dtype=dtype)
        for leak_test in (future_leak, jacobian_leak):
            assert leak_test(LEAKING["no mask"], x).amount > 1e-3
            assert leak_test(HONEST["causal"], x) == NO_LEAK
            assert leak_test(torch.nn.Linear(D, 2, dtype=dtype), x) == NO_LEAK
        assert torch.is_grad_enabled() is False and torch.is_inference_mode_enabled() == (mode is torch.inference_mode)


def test_what_autograd_cannot_follow_only_the_perturbation_sees():
    def layer(x):
        return x + x[..., -1:, :].detach()

    assert jacobian_leak(layer, tokens()) == NO_LEAK
    assert future_leak(layer, tokens()).amount > 1


def test_modules_are_tested_in_float64_and_left_as_they_were():
    attention = torch.nn.MultiheadAttention(D, 2, batch_first=True)
    layer = torch.nn.TransformerEncoderLayer(D, 2, 16, batch_first=True).eval()

    class Causal(torch.nn.Module):
        def __init__(self, mask, observed):
            super().__init__()
            self.attention, self.mask, self.seen = attention, mask, observed

        def forward(self, x):
            self.seen.add(x.dtype)
            return self.attention(x, x, x, attn_mask=~self.mask)[0]  # True means ignore there

    observed = set()
    module = Causal(causal(T), observed)
    x = tokens(2, dtype=torch.float32)
    assert jacobian_leak(module, x) == NO_LEAK
    assert jacobian_leak(Causal(ONE_AHEAD, observed), x).amount > 1e-3
    assert {p.dtype for p in module.parameters()} == {torch.float32}
    assert all(p.grad is None for p in module.parameters()) and not x.requires_grad
    assert future_leak(module, x) == NO_LEAK
    assert future_leak(layer, x).amount > 1e-3  # no mask was given to it


def test_a_float32_closure_is_tested_in_float32():
    weight = torch.randn(D, 3, generator=torch.Generator().manual_seed(0))
    x = tokens(dtype=torch.float32)
    assert jacobian_leak(lambda x: running_mean(x) @ weight, x) == NO_LEAK
    assert jacobian_leak(lambda x: x.flip(-2) @ weight, x).amount == weight.abs().max()


def test_a_module_is_differentiated_in_float64():
    class HalfStep(torch.nn.Module):
        """Lets the next token in and takes it out again, so that rounding of its dtype is what remains."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(0.1))

        def forward(self, x):
            ahead = x.roll(-1, -2)
            return x + ahead * (3 * self.weight) - ahead * self.weight - ahead * (2 * self.weight)

    assert jacobian_leak(HalfStep(), tokens(dtype=torch.float32)).amount < 1e-15


@pytest.mark.parametrize("leak_test", [future_leak, jacobian_leak])
def test_x_and_the_random_state_are_left_as_they_were(leak_test):
    def writes_into_its_input(x):
        return x.mul_(2)

    x = tokens(2).requires_grad_()
    before, state = x.detach().clone(), torch.get_rng_state()
    assert leak_test(writes_into_its_input, x) == NO_LEAK
    assert torch.equal(x.detach(), before) and x.grad is None
    assert torch.equal(torch.get_rng_state(), state)


def test_the_same_seed_gives_the_same_leak():
    layer = LEAKING["no mask"]
    assert future_leak(layer, tokens(), seed=3) == future_leak(layer, tokens(), seed=3)
    assert future_leak(layer, tokens(), seed=3) != future_leak(layer, tokens(), seed=4)


class Counts:
    """Answers differently from its third call on."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x + (self.calls > 3)


@pytest.mark.parametrize(
    "fn, x, error, message",
    [
        (torch.nn.Dropout(0.5), tokens(2), ValueError, "two answers to one x: switch dropout off (layer.eval())"),
        (lambda x: x / 0, tokens(), ValueError, "NaN or infinity before anything was changed"),
        (lambda x: (x, x), tokens(), TypeError, "fn returned tuple, not a tensor: wrap it"),
        (lambda x: x.sum(-2), tokens(2), ValueError, "fn made (2, 8) of (2, 6, 8): it must return one row for each"),
        (lambda x: x.sum(), tokens(), ValueError, "fn made () of (6, 8)"),
        (lambda x: x, torch.arange(6), TypeError, "x is torch.int64: give floating tokens"),
        (lambda x: x, torch.zeros(6), ValueError, "x is (6,): give at least one token"),
        (lambda x: x, torch.zeros(0, 6, 8), ValueError, "x is (0, 6, 8): give at least one token"),
    ],
)
def test_what_cannot_be_tested_is_refused(fn, x, error, message):
    for leak_test in (future_leak, jacobian_leak):
        with pytest.raises(error) as caught:
            leak_test(fn, x)
        assert message in str(caught.value)


def test_a_function_that_changes_its_mind_later_is_refused_too():
    with pytest.raises(ValueError, match="two answers"):
        future_leak(Counts(), tokens())
