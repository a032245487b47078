"""Bytes moved between a slow and a fast memory: the count equals the formula, what is computed is attention."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention import tensors, tiled
from course_utils.attention.traffic import (
    FastMemory,
    blocks_that_fit,
    footprint,
    metered_forward,
    metered_naive,
    naive_traffic,
    tiled_traffic,
)

law = settings(deadline=None, max_examples=40, derandomize=True)


def counted(memory):
    return {"read": memory.read, "written": memory.written}


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def problem(n, m, d_k, d_v, dtype=torch.float64):
    return normal(0, n, d_k, dtype=dtype), normal(1, m, d_k, dtype=dtype), normal(2, m, d_v, dtype=dtype)


def expected(q, k, v, causal):
    mask = torch.ones(len(q), len(k), dtype=torch.bool).tril(len(k) - len(q)) if causal else None
    return tensors.attention(q, k, v, mask)[0]


def assert_attention(o, q, k, v, causal):
    allowed = 1e-12 if q.dtype == torch.float64 else 2e-6
    torch.testing.assert_close(o, expected(q, k, v, causal), atol=allowed, rtol=0)


LENGTHS, WIDTHS, BLOCKS = st.integers(0, 23), st.integers(1, 6), st.integers(1, 26)
DTYPES = st.sampled_from([torch.float32, torch.float64])

# --- counts equal formulas ------------------------------------------------------------------------------------------


@settings(law, max_examples=80)
@given(LENGTHS, LENGTHS, WIDTHS, WIDTHS, BLOCKS, BLOCKS, st.booleans(), DTYPES)
def test_the_tiled_forward_moves_the_bytes_of_the_formula(n, m, d_k, d_v, block_q, block_k, causal, dtype):
    q, k, v = problem(n, m, d_k, d_v, dtype)
    memory = FastMemory(footprint(block_q, block_k, d_k, d_v, dtype.itemsize))
    o, lse = metered_forward(q, k, v, memory, causal, block_q=block_q, block_k=block_k)
    assert counted(memory) == tiled_traffic(n, m, d_k, d_v, block_q, block_k, dtype.itemsize, causal)
    assert memory.held == 0 and memory.peak <= memory.capacity_bytes
    assert_attention(o, q, k, v, causal)
    torch.testing.assert_close(lse, tiled.forward(q, k, v, causal)[1], atol=1e-5, rtol=0)


@settings(law, max_examples=60)
@given(LENGTHS, LENGTHS, WIDTHS, WIDTHS, st.integers(0, 2000), st.booleans(), DTYPES)
def test_blocks_chosen_for_the_capacity_fit_and_move_the_bytes_of_the_formula(n, m, d_k, d_v, more, causal, dtype):
    q, k, v = problem(n, m, d_k, d_v, dtype)
    memory = FastMemory(footprint(1, 1, d_k, d_v, dtype.itemsize) + more)
    block_q, block_k = blocks_that_fit(memory.capacity_bytes, d_k, d_v, dtype.itemsize)
    o, _ = metered_forward(q, k, v, memory, causal)
    assert counted(memory) == tiled_traffic(n, m, d_k, d_v, block_q, block_k, dtype.itemsize, causal)
    assert memory.peak <= memory.capacity_bytes
    assert_attention(o, q, k, v, causal)


@settings(law, max_examples=60)
@given(LENGTHS, LENGTHS, WIDTHS, WIDTHS, BLOCKS, BLOCKS, st.booleans(), DTYPES)
def test_naive_attention_moves_the_bytes_of_the_formula(n, m, d_k, d_v, block_q, block_k, causal, dtype):
    q, k, v = problem(n, m, d_k, d_v, dtype)
    memory = FastMemory(footprint(block_q, block_k, d_k, d_v, dtype.itemsize) + 2 * m * dtype.itemsize)
    o = metered_naive(q, k, v, memory, causal, block_q=block_q, block_k=block_k)
    assert counted(memory) == naive_traffic(n, m, d_k, d_v, dtype.itemsize, block_q)
    assert memory.held == 0 and memory.peak <= memory.capacity_bytes
    assert_attention(o, q, k, v, causal)


@law
@given(LENGTHS, st.integers(1, 23), WIDTHS, WIDTHS, BLOCKS, BLOCKS)
def test_with_the_same_blocks_tiling_saves_four_passes_over_the_matrix_and_pays_for_lse(
    n, m, d_k, d_v, block_q, block_k
):
    naive = sum(naive_traffic(n, m, d_k, d_v, 4, block_q).values())
    tiled = sum(tiled_traffic(n, m, d_k, d_v, block_q, block_k, 4).values())
    assert naive - tiled == 4 * (4 * n * m - n)


def test_pencil_figures():
    # T = 4, d = 2, blocks of 2: q 8 + (k and v, 16) twice = 40 read; o 8 + lse 4 = 12 written
    assert tiled_traffic(4, 4, 2, 2, 2, 2, itemsize=1) == {"read": 40, "written": 12}
    # causal: the first block of queries reads 2 keys and values, 8, the second 4, 16
    assert tiled_traffic(4, 4, 2, 2, 2, 2, itemsize=1, causal=True) == {"read": 32, "written": 12}
    # naive: q, k, v 24 + S 16 + P 16 read; S 16 + P 16 + o 8 written
    assert naive_traffic(4, 4, 2, 2, itemsize=1) == {"read": 56, "written": 40}


# --- what follows from them -----------------------------------------------------------------------------------------


def tiled_total(tokens, d, numbers):
    block_q, block_k = blocks_that_fit(4 * numbers, d, d, 4)
    return sum(tiled_traffic(tokens, tokens, d, d, block_q, block_k, 1).values())


@pytest.mark.parametrize("d", [32, 64, 128])
def test_tiled_traffic_is_of_the_order_of_t_squared_d_squared_over_m(d):
    """Between 5 and 9 times T²d²/M for d² ≤ M ≤ T·d / 8: above that, reading q and writing o begin to count."""
    tokens = 2**17
    ratios = [tiled_total(tokens, d, 2**power) / (tokens**2 * d**2 / 2**power) for power in range(14, 20)]
    assert all(5 <= ratio <= 9 for ratio in ratios)


def test_sixteen_times_the_fast_memory_takes_tiled_traffic_to_a_sixteenth_and_leaves_naive_traffic():
    tokens, d = 2**16, 64
    assert tiled_total(tokens, d, 2**14) / tiled_total(tokens, d, 2**18) == pytest.approx(16, rel=0.1)
    naive = sum(naive_traffic(tokens, tokens, d, d, 1).values())
    assert naive / (4 * tokens**2) == pytest.approx(1, abs=0.01)


def test_only_block_q_saves_traffic():
    assert tiled_traffic(90, 90, 8, 8, 16, 4, 4) == tiled_traffic(90, 90, 8, 8, 16, 64, 4)
    assert tiled_traffic(90, 90, 8, 8, 32, 4, 4)["read"] < tiled_traffic(90, 90, 8, 8, 16, 4, 4)["read"]


def test_a_causal_mask_saves_almost_half_of_tiled_traffic_and_nothing_of_naive():
    full, causal = (sum(tiled_traffic(4096, 4096, 64, 64, 64, 64, 2, c).values()) for c in (False, True))
    assert causal / full == pytest.approx(0.5, abs=0.02)
    q, k, v = problem(16, 16, 2, 2)
    meters = FastMemory(4096), FastMemory(4096)
    for memory, masked in zip(meters, (False, True), strict=True):
        metered_naive(q, k, v, memory, causal=masked)
    assert counted(meters[0]) == counted(meters[1])


# --- the meter ------------------------------------------------------------------------------------------------------


@law
@given(BLOCKS, BLOCKS, WIDTHS, WIDTHS, DTYPES)
def test_full_blocks_fill_the_footprint_to_the_byte(block_q, block_k, d_k, d_v, dtype):
    q, k, v = problem(2 * block_q, 2 * block_k, d_k, d_v, dtype)
    needed = footprint(block_q, block_k, d_k, d_v, dtype.itemsize)
    memory = FastMemory(10 * needed)
    metered_forward(q, k, v, memory, block_q=block_q, block_k=block_k)
    assert memory.peak == needed


@settings(law, max_examples=200)
@given(st.integers(1, 200_000), st.integers(1, 130), st.integers(1, 130), st.sampled_from([2, 4, 8]))
def test_blocks_that_fit_fit_and_one_query_more_does_not(capacity, d_k, d_v, itemsize):
    least = footprint(1, 1, d_k, d_v, itemsize)
    if capacity < least:
        with pytest.raises(ValueError, match=f"{capacity} bytes are too few .* the least is {least}"):
            blocks_that_fit(capacity, d_k, d_v, itemsize)
        return
    block_q, block_k = blocks_that_fit(capacity, d_k, d_v, itemsize)
    assert block_q >= 1 and block_k >= 1
    assert footprint(block_q, block_k, d_k, d_v, itemsize) <= capacity
    assert footprint(block_q + 1, block_k, d_k, d_v, itemsize) > capacity


def test_the_meter_counts_each_direction_and_what_is_held():
    memory = FastMemory(64)
    slow = torch.arange(4.0)  # 16 bytes
    fast = memory.load(slow)
    made = memory.hold(fast + 1)
    assert (memory.read, memory.written, memory.held, memory.peak) == (16, 0, 32, 32)
    memory.store(made, slow)
    memory.release(fast)
    assert (memory.read, memory.written, memory.held, memory.peak) == (16, 16, 16, 32)
    memory.hold(torch.zeros(1))
    assert (memory.held, memory.peak) == (20, 32)  # the peak stays
    assert memory.traffic == 32 and slow.tolist() == [1, 2, 3, 4]


def test_what_is_loaded_is_a_copy():
    slow = torch.zeros(3)
    FastMemory(100).load(slow).add_(1)
    assert slow.tolist() == [0, 0, 0]


def test_what_does_not_fit_is_refused_and_changes_nothing():
    memory = FastMemory(40)
    memory.load(torch.zeros(8))
    for attempt in (memory.load, memory.hold):
        with pytest.raises(MemoryError, match="32 of 40 bytes are held and 12 more do not fit"):
            attempt(torch.zeros(3))
    assert (memory.read, memory.held, memory.peak) == (32, 32, 32)
    memory.load(torch.zeros(2))
    assert memory.held == memory.capacity_bytes


def test_only_what_is_in_fast_memory_can_be_stored_or_released():
    memory = FastMemory(40)
    inside, outside, slow = memory.load(torch.ones(2)), torch.ones(2), torch.zeros(2)
    for attempt in (lambda: memory.store(outside, slow), lambda: memory.release(inside, outside)):
        with pytest.raises(ValueError, match=r"a tensor of shape \(2,\) is not in fast memory"):
            attempt()
    assert memory.held == 8 and memory.written == 0 and slow.tolist() == [0, 0]


def test_holding_a_tensor_twice_counts_it_once():
    memory = FastMemory(40)
    fast = memory.load(torch.ones(4))
    assert memory.hold(fast) is fast and memory.held == 16


# --- errors ---------------------------------------------------------------------------------------------------------


def test_blocks_or_rows_too_large_for_the_memory_are_refused_before_anything_moves():
    q, k, v = problem(64, 64, 4, 4)
    memory = FastMemory(512)
    with pytest.raises(ValueError, match=r"blocks of 16 × 16 need \d+ bytes and 512 are free"):
        metered_forward(q, k, v, memory, block_q=16, block_k=16)
    with pytest.raises(ValueError, match="take 1024 bytes and 512 are free"):
        metered_naive(q, k, v, memory)
    with pytest.raises(ValueError, match="8 bytes are too few"):
        metered_forward(q, k, v, FastMemory(8))
    with pytest.raises(ValueError, match="block_q is 4 and block_k is None: give both"):
        metered_forward(q, k, v, memory, block_q=4)
    assert memory.traffic == memory.held == memory.peak == 0


def test_heads_and_half_precision_are_refused():
    x = torch.ones(2, 3, 4)
    with pytest.raises(ValueError, match=r"q is \(2, 3, 4\): traffic is counted for one head"):
        metered_forward(x, x, x, FastMemory(4096))
    for metered in (metered_naive, metered_forward):
        with pytest.raises(TypeError, match=r"q is torch.float16: the meter takes torch.float32 and torch.float64"):
            metered(x[0].half(), x[0].half(), x[0].half(), FastMemory(4096))
        with pytest.raises(TypeError, match=r"v is torch.float64 but q is torch.float32: convert them"):
            metered(x[0], x[0], x[0].double(), FastMemory(4096))
        with pytest.raises(TypeError, match="causal is Tensor, not a bool"):
            metered(x[0], x[0], x[0], FastMemory(4096), causal=torch.ones(3, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="same d_k"):
        metered_naive(x[0], x[0, :, :2], x[0], FastMemory(4096))
    with pytest.raises(ValueError, match="capacity_bytes is 0"):
        FastMemory(0)


SIZES = {"n": 9, "m": 8, "d_k": 4, "d_v": 3, "itemsize": 4, "block_q": 2}
FORMULAS = {
    naive_traffic: SIZES,
    tiled_traffic: SIZES | {"block_k": 2},
    footprint: {name: 4 for name in ("block_q", "block_k", "d_k", "d_v", "itemsize")},
    blocks_that_fit: {"capacity_bytes": 4096, "d_k": 4, "d_v": 3, "itemsize": 4},
}


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_formulas_take_whole_numbers_of_any_kind_and_nothing_else(formula):
    sizes = FORMULAS[formula]
    narrow = {name: np.int8(size) if size < 128 else np.int16(size) for name, size in sizes.items()}
    assert formula(**narrow) == formula(**sizes)
    for name, size in sizes.items():
        for wrong in (float(size), size + 0.5, True, "4"):
            with pytest.raises(TypeError, match=f"{name} is {wrong!r}: give a whole number"):
                formula(**sizes | {name: wrong})
        with pytest.raises(ValueError, match=f"{name} is -1: it must be at least"):
            formula(**sizes | {name: -1})


def test_a_capacity_or_a_block_that_is_no_whole_number_is_refused():
    q, k, v = problem(4, 4, 2, 2)
    with pytest.raises(TypeError, match=r"capacity_bytes is 100000.0: give a whole number"):
        FastMemory(1e5)
    with pytest.raises(TypeError, match=r"capacity_bytes is 100000.0: give a whole number"):
        blocks_that_fit(1e5, 64, 64, 4)
    for metered in (metered_naive, metered_forward):
        with pytest.raises(TypeError, match=r"block_k is 2.0: give a whole number"):
            metered(q, k, v, FastMemory(4096), block_q=2, block_k=2.0)
        with pytest.raises(ValueError, match="block_q is 0: it must be at least 1"):
            metered(q, k, v, FastMemory(4096), block_q=0, block_k=2)


@pytest.mark.parametrize("metered", [metered_naive, metered_forward])
def test_inputs_are_left_as_they_were(metered):
    q, k, v = problem(7, 9, 3, 2)
    before = [x.clone() for x in (q, k, v)]
    metered(q, k, v, FastMemory(1000), causal=True, scale=0.3)
    assert all(torch.equal(x, y) for x, y in zip((q, k, v), before, strict=True))


@pytest.mark.parametrize("metered", [metered_naive, metered_forward])
def test_the_scale_is_one_over_the_root_of_d_k_or_what_is_given(metered):
    q, k, v = problem(5, 6, 4, 2)
    for scale in (None, 0.3):
        got = metered(q, k, v, FastMemory(1000), scale=scale)
        o = got[0] if isinstance(got, tuple) else got
        torch.testing.assert_close(o, tensors.attention(q, k, v, scale=scale or 1 / math.sqrt(4))[0])
