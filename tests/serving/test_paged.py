"""Attention through a block table equals attention over the same keys side by side."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention.arrays import attention
from course_utils.serving.paged import Waste, paged_attention, paged_waste, reserved_waste

law = settings(deadline=None, max_examples=60, derandomize=True)


def store(length, block_size, h_kv=2, d=5, d_v=3, spare=3, dtype=np.float64, seed=0, size=1.0):
    """Keys and values of one sequence side by side, and the same in scattered blocks; unused slots hold NaN."""
    rng = np.random.default_rng(seed)
    k, v = (size * rng.standard_normal((h_kv, length, width)).astype(dtype) for width in (d, d_v))
    n_blocks = -(-length // block_size) + spare
    table = rng.permutation(n_blocks)[: n_blocks - spare].tolist()
    keys, values = (np.full((n_blocks, h_kv, block_size, width), np.nan, dtype) for width in (d, d_v))
    for p in range(length):
        keys[table[p // block_size], :, p % block_size] = k[:, p]
        values[table[p // block_size], :, p % block_size] = v[:, p]
    return k, v, keys, values, table


def side_by_side(q, k, v):
    """Causal attention of the last n tokens, with each key head copied for its group."""
    n = q.shape[1]
    m = k.shape[1]
    group = len(q) // len(k)
    mask = np.arange(m) <= np.arange(m - n, m)[:, None]
    return attention(q, k.repeat(group, 0), v.repeat(group, 0), mask)[0]


@law
@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from([1, 2, 4]), st.data())
def test_blocks_change_nothing(length, block_size, group, data):
    n = data.draw(st.integers(1, length))
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        k, v, keys, values, table = store(length, block_size, dtype=dtype, seed=length)
        q = np.random.default_rng(n).standard_normal((2 * group, n, 5)).astype(dtype)
        out = paged_attention(q, keys, values, table, length)
        assert out.dtype == dtype and out.shape == (2 * group, n, 3)
        np.testing.assert_allclose(out, side_by_side(q, k, v), rtol=0, atol=tolerance)


def test_it_is_stable_on_large_scores():
    k, v, keys, values, table = store(30, 4, size=100.0)
    q = 100 * np.random.default_rng(1).standard_normal((4, 7, 5))
    np.testing.assert_allclose(paged_attention(q, keys, values, table, 30), side_by_side(q, k, v), rtol=1e-12)


def test_the_table_may_go_on_and_name_a_block_twice():
    """Blocks behind the last token are reserved, not read; a shared block is read wherever it is named."""
    k, v, keys, values, table = store(8, 4)
    q = np.ones((2, 1, 5))
    np.testing.assert_array_equal(
        paged_attention(q, keys, values, [*table, 99], 8), paged_attention(q, keys, values, table, 8)
    )
    twice = paged_attention(q, keys, values, [table[0], table[0]], 8)
    np.testing.assert_allclose(twice, side_by_side(q, np.tile(k[:, :4], (1, 2, 1)), np.tile(v[:, :4], (1, 2, 1))))


def test_scale_is_the_one_that_is_given():
    k, v, keys, values, table = store(9, 4)
    q = np.random.default_rng(2).standard_normal((2, 3, 5))
    given_scale = paged_attention(q, keys, values, table, 9, scale=2.0)
    np.testing.assert_allclose(given_scale, side_by_side(q * 2 * np.sqrt(5), k, v), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"q": np.ones((2, 5))}, ValueError, r"expected \(h, n, d\)"),
        ({"q": np.ones((2, 1, 4))}, ValueError, "d 4 as in q"),
        ({"q": np.ones((3, 1, 5))}, ValueError, "multiple"),
        ({"q": np.ones((2, 10, 5))}, ValueError, "10 queries and length is 9"),
        ({"values": np.ones((6, 2, 3, 3))}, ValueError, "one value for each key"),
        ({"table": [0, 1]}, ValueError, "the table has 2 blocks but 9 tokens need 3"),
        ({"table": [0, 1, 77]}, ValueError, "names block 77"),
        ({"table": [0, 1, -1]}, ValueError, "must be at least 0"),
        ({"table": [0, 1, 1.5]}, TypeError, "whole number"),
        ({"length": 0}, ValueError, "must be at least 1"),
        ({"scale": np.inf}, ValueError, "finite"),
    ],
)
def test_what_does_not_fit_is_refused(change, error, words):
    _, _, keys, values, table = store(9, 4)
    fits = {"q": np.ones((2, 1, 5)), "keys": keys, "values": values, "table": table, "length": 9}
    with pytest.raises(error, match=words):
        paged_attention(**fits | change)


def test_waste_by_hand():
    assert reserved_waste([3, 8, 5], longest=16) == Waste(48, 16)
    assert paged_waste([3, 8, 5], block_size=4) == Waste(20, 16)
    assert reserved_waste([3, 8, 5], 16).share == 2 / 3 and paged_waste([3, 8, 5], 4).share == 0.2
    assert paged_waste([0], 4) == Waste(0, 0) and paged_waste([], 4).share == 0
    assert paged_waste([4, 8], 4).wasted == 0


@law
@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 9))
def test_pages_waste_less_than_a_block_each(lengths, block_size):
    assert 0 <= paged_waste(lengths, block_size).wasted <= len(lengths) * (block_size - 1)


def test_waste_refuses_what_is_no_length():
    with pytest.raises(ValueError, match="a length is 17 but longest is 16"):
        reserved_waste([3, 17], 16)
    with pytest.raises(ValueError, match="must be at least 0"):
        paged_waste([-1], 4)
    with pytest.raises(TypeError, match="whole number"):
        paged_waste([1.5], 4)
