"""Rotary positions against complex numbers, and the laws that rotations obey."""

import cmath

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention.rotary import Rotary, frequencies, rotate

law = settings(deadline=None, max_examples=40, derandomize=True)
EITHER_PAIRING = pytest.mark.parametrize("pairs", ["neighbours", "halves"])
POSITIONS = st.integers(-3000, 3000)
WIDTHS = st.sampled_from([2, 4, 6, 16])


def randoms(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def by_complex_numbers(x, positions, base, pairs):
    """Each pair as one complex number, times e^(position · θ · √-1): lists of (T, d_head), one number at a time."""
    half = len(x[0]) // 2
    turned = [[0.0] * (2 * half) for _ in x]
    for row, position in enumerate(positions):
        for i in range(half):
            one, other = (2 * i, 2 * i + 1) if pairs == "neighbours" else (i, i + half)
            number = complex(x[row][one], x[row][other]) * cmath.exp(1j * position * base ** (-i / half))
            turned[row][one], turned[row][other] = number.real, number.imag
    return turned


# --- what the numbers are -------------------------------------------------------------------------------------------


@EITHER_PAIRING
@law
@given(d_head=WIDTHS, positions=st.lists(POSITIONS, min_size=1, max_size=5), base=st.sampled_from([10000.0, 500.0]))
def test_a_pair_turns_as_a_complex_number_does(pairs, d_head, positions, base):
    x = randoms(len(positions), d_head)
    expected = by_complex_numbers(x.tolist(), positions, base, pairs)
    turned = rotate(x, torch.tensor(positions), base, pairs)
    torch.testing.assert_close(turned, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=0)


def test_a_quarter_turn_by_hand():
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
    turned = rotate(x, torch.tensor([torch.pi / 2, torch.pi]))
    torch.testing.assert_close(turned, torch.tensor([[0.0, 1.0], [-3.0, -4.0]], dtype=torch.float64), atol=1e-6, rtol=0)


def test_frequencies_fall_from_one_by_equal_ratios():
    theta = frequencies(8, 10000.0)
    assert theta.dtype == torch.float64
    torch.testing.assert_close(theta, torch.tensor([1, 0.1, 0.01, 0.001], dtype=torch.float64))


@law
@given(d_head=WIDTHS, position=POSITIONS)
def test_the_two_pairings_are_the_same_up_to_a_permutation(d_head, position):
    x = randoms(1, d_head)
    order = torch.arange(d_head).view(-1, 2).T.flatten()  # 0, 2, 4, … then 1, 3, 5, …
    neighbours, halves = (rotate(one, [position], pairs=p) for one, p in ((x, "neighbours"), (x[:, order], "halves")))
    assert torch.equal(neighbours[:, order], halves)


def test_the_two_pairings_differ_without_the_permutation():
    x = randoms(1, 8)
    assert not torch.allclose(rotate(x, [3], pairs="neighbours"), rotate(x, [3], pairs="halves"), atol=0.1)


@EITHER_PAIRING
def test_each_row_of_a_batch_has_its_own_positions_and_heads_share_them(pairs):
    x, positions = randoms(2, 3, 4, 6), torch.tensor([[0, 1, 2, 3], [10, 12, 14, 90]])
    turned = rotate(x, positions, pairs=pairs)
    for row in range(2):
        for head in range(3):
            assert torch.equal(turned[row, head], rotate(x[row, head], positions[row], pairs=pairs))


def test_positions_of_one_row_serve_every_row():
    x, positions = randoms(2, 3, 4, 6), torch.tensor([5, 6, 7, 8])
    assert torch.equal(rotate(x, positions), rotate(x, positions.expand(2, 4)))
    assert torch.equal(rotate(x, positions), rotate(x, positions[None]))


# --- laws -----------------------------------------------------------------------------------------------------------


@EITHER_PAIRING
@law
@given(d_head=WIDTHS, i=POSITIONS, j=POSITIONS, shift=POSITIONS)
def test_a_score_depends_only_on_how_far_apart_query_and_key_are(pairs, d_head, i, j, shift):
    q, k = randoms(1, d_head, seed=1), randoms(1, d_head, seed=2)
    here = rotate(q, [i], pairs=pairs) @ rotate(k, [j], pairs=pairs).T
    there = rotate(q, [i + shift], pairs=pairs) @ rotate(k, [j + shift], pairs=pairs).T
    torch.testing.assert_close(here, there, atol=1e-9, rtol=0)


def test_a_score_does_depend_on_how_far_apart_they_are():
    q, k = randoms(1, 8, seed=1), randoms(1, 8, seed=2)
    scores = rotate(q, [7]) @ rotate(k.expand(5, 8), torch.arange(5)).T
    assert len(scores.flatten().round(decimals=6).unique()) == 5


@EITHER_PAIRING
@law
@given(d_head=WIDTHS, position=POSITIONS)
def test_the_length_of_every_pair_is_kept(pairs, d_head, position):
    x = randoms(3, d_head)
    turned = rotate(x, [position] * 3, pairs=pairs)
    sizes, axis = ((-1, 2), -1) if pairs == "neighbours" else ((2, -1), -2)
    lengths, turned_lengths = (one.unflatten(-1, sizes).norm(dim=axis) for one in (x, turned))
    torch.testing.assert_close(turned_lengths, lengths, atol=1e-12, rtol=0)


@EITHER_PAIRING
@law
@given(d_head=WIDTHS, a=POSITIONS, b=POSITIONS)
def test_turning_twice_is_turning_by_the_sum(pairs, d_head, a, b):
    x = randoms(1, d_head)
    twice = rotate(rotate(x, [a], pairs=pairs), [b], pairs=pairs)
    torch.testing.assert_close(twice, rotate(x, [a + b], pairs=pairs), atol=1e-9, rtol=0)


@EITHER_PAIRING
def test_position_0_changes_nothing(pairs):
    x = randoms(2, 3, 1, 8)
    assert torch.equal(rotate(x, [0], pairs=pairs), x)


def test_gradients_turn_back():
    x = randoms(2, 4).requires_grad_()
    probe = randoms(2, 4, seed=1)
    (rotate(x, [3, 50]) * probe).sum().backward()
    torch.testing.assert_close(x.grad, rotate(probe, [-3, -50]))


# --- precision and types --------------------------------------------------------------------------------------------


def test_position_100_000_is_as_accurate_as_position_0_in_float32():
    x, positions = randoms(1001, 128).clamp(-2, 2), torch.arange(99_000, 100_001)
    error = (rotate(x.float(), positions).double() - rotate(x, positions)).abs().max()
    assert error < 1e-6


@pytest.mark.parametrize("dtype, error", [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
def test_half_precision_comes_back_as_it_came_rounded_once(dtype, error):
    x, positions = randoms(64, 32).to(dtype), torch.arange(50_000, 50_064)
    turned = rotate(x, positions)
    assert turned.dtype == dtype
    exact = rotate(x.double(), positions)
    assert ((turned.double() - exact).abs() <= error * exact.abs() + 1e-6).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    assert rotate(randoms(3, 4, dtype=dtype), torch.arange(3)).dtype == dtype


def test_x_is_left_as_it_was():
    x = randoms(3, 4)
    before = x.clone()
    rotate(x, torch.arange(3))
    assert torch.equal(x, before)


@EITHER_PAIRING
def test_no_tokens_give_no_tokens(pairs):
    assert rotate(torch.zeros(2, 3, 0, 8), torch.arange(0), pairs=pairs).shape == (2, 3, 0, 8)
    assert rotate(torch.zeros(0, 3, 2, 8), torch.zeros(0, 2), pairs=pairs).shape == (0, 3, 2, 8)


# --- the settings as one thing, and errors --------------------------------------------------------------------------


def test_a_rotary_is_rotate_with_its_settings():
    x, positions = randoms(5, 6), torch.arange(5)
    assert torch.equal(Rotary(6)(x, positions), rotate(x, positions))
    ours = Rotary(6, base=500.0, pairs="halves")(x, positions)
    assert torch.equal(ours, rotate(x, positions, 500.0, "halves"))


@pytest.mark.parametrize("make", [Rotary, frequencies, lambda width: rotate(torch.zeros(2, width), [0, 1])])
@pytest.mark.parametrize("width", [0, 1, 7])
def test_an_odd_width_is_refused(make, width):
    with pytest.raises(ValueError, match=f"d_head is {width}: it must be even"):
        make(width)


def test_a_width_that_is_no_whole_number_is_refused():
    for make in (Rotary, frequencies):
        with pytest.raises(TypeError, match=r"d_head is 64\.0: give a whole number"):
            make(512 / 8)


def test_an_unknown_pairing_is_refused_with_the_known_ones():
    for make in (lambda: Rotary(4, pairs="both"), lambda: rotate(torch.zeros(1, 4), [0], pairs="both")):
        with pytest.raises(ValueError, match="pairs is 'both': choose one of 'neighbours', 'halves'"):
            make()


@pytest.mark.parametrize("base", [0, -1.0, float("nan")])
def test_a_base_that_is_not_positive_is_refused(base):
    with pytest.raises(ValueError, match="base is"):
        Rotary(4, base=base)


@pytest.mark.parametrize(
    "x, positions",
    [((2, 3, 4, 6), (3,)), ((2, 3, 4, 6), (3, 4)), ((4, 6), (2, 4)), ((2, 3, 4, 6), (2, 1, 4)), ((4, 6), ())],
)
def test_positions_that_do_not_fit_are_refused_with_both_shapes(x, positions):
    with pytest.raises(ValueError) as caught:
        rotate(torch.zeros(x), torch.zeros(positions))
    assert f"positions is {positions} but x is {x}" in str(caught.value)


def test_a_single_row_is_refused():
    with pytest.raises(ValueError, match="at least two axes"):
        rotate(torch.zeros(4), torch.zeros(1))


def test_another_width_than_it_was_made_for_is_refused():
    with pytest.raises(ValueError, match=r"x is \(2, 6\) but this Rotary is for d_head 4"):
        Rotary(4)(torch.zeros(2, 6), torch.arange(2))


def test_it_holds_nothing_that_a_change_of_dtype_could_round():
    assert not [value for value in vars(Rotary(8)).values() if isinstance(value, torch.Tensor)]
    assert not isinstance(Rotary(8), torch.nn.Module)


def test_what_cannot_be_turned_is_named():
    x = torch.ones(1, 1, 3, 4)
    with pytest.raises(TypeError, match=r"x is torch\.int64: queries and keys to turn are floating-point"):
        rotate(x.long(), torch.arange(3))
    with pytest.raises(TypeError, match=r"positions is torch\.bool"):
        rotate(x, torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="base is inf"):
        Rotary(4, base=float("inf"))
