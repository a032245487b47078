"""Waves, ALiBi and stretched rotations: the properties that day 8 claims of them, and formulas from elsewhere."""

import math

import pytest
import torch

from course_utils.attention import positions, rotary


def test_a_row_of_the_waves_is_the_row_before_with_each_pair_rotated():
    table = positions.sinusoidal(50, 8)
    speeds = rotary.frequencies(8)
    sin, cos = table[:, ::2], table[:, 1::2]
    k = 7
    moved = sin[:-k] * (k * speeds).cos() + cos[:-k] * (k * speeds).sin()
    torch.testing.assert_close(moved, sin[k:], rtol=0, atol=1e-12)
    assert table[0].tolist() == [0, 1] * 4


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (8, [2**-p for p in range(1, 9)]),
    ],
)
def test_slopes_are_those_of_the_authors_code(heads, slopes):
    assert positions.alibi_slopes(heads).tolist() == pytest.approx(slopes, abs=0)


def test_what_alibi_adds_depends_on_the_distance_alone_and_blocks_the_keys_ahead():
    added = positions.alibi(4, 6)
    assert torch.equal(added[:, :-1, :-1], added[:, 1:, 1:])
    assert added[0, 5].tolist() == [-1.25, -1, -0.75, -0.5, -0.25, 0]
    assert (added.isinf() == torch.ones(6, 6).triu(1).bool()).all()
    assert torch.equal(positions.alibi(4, 2, 6), added[:, -2:])


@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
def test_rotating_at_ropes_own_speeds_is_rope(pairs):
    x = torch.randn(2, 3, 7, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = rotary.rotate(x, range(7), pairs=pairs)
    torch.testing.assert_close(positions.rotate_at(x, range(7), rotary.frequencies(16), pairs), expected)


@pytest.mark.parametrize("speeds", [positions.yarn(16, 1e4, 8, 64)[0], positions.ntk_aware(16, 1e4, 8)])
def test_scores_depend_on_the_distance_alone_however_the_rotation_is_stretched(speeds):
    q, k = torch.randn(2, 1, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def score(i, j):
        return (positions.rotate_at(q, [i], speeds) * positions.rotate_at(k, [j], speeds)).sum().item()

    assert score(1007, 1002) == pytest.approx(score(7, 2), abs=1e-12)


def test_how_far_each_recipe_slows_a_pair_down():
    own = rotary.frequencies(16)
    torch.testing.assert_close(positions.interpolated(16, 1e4, 8), own / 8)
    ntk = own / positions.ntk_aware(16, 1e4, 8)
    assert ntk[0] == 1 and ntk[-1].item() == pytest.approx(8) and (ntk.diff() > 0).all()
    speeds, times = positions.yarn(16, 1e4, 8, 64)
    assert times == pytest.approx(0.1 * math.log(8) + 1)
    assert speeds[0] == own[0] and torch.equal(speeds[3:], own[3:] / 8)
    assert (own[1:3] / 8 < speeds[1:3]).all() and (speeds[1:3] < own[1:3]).all()


def test_yarn_of_a_large_model_is_that_of_its_formula():
    """d_head 128, base 10,000, trained on 4,096 tokens: pairs up to 20 keep their speed, from 46 on they are slowed."""
    own = rotary.frequencies(128)
    speeds, _ = positions.yarn(128, 1e4, 16, 4096)
    assert torch.equal(speeds[:21], own[:21]) and torch.allclose(speeds[46:], own[46:] / 16)
    assert (speeds[21:46] < own[21:46]).all() and (speeds[21:46] > own[21:46] / 16).all()
