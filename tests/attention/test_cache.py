"""The four caches against plain lists, whatever is done to them, and each against what it promises."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from course_utils.attention.cache import (
    BlockPool,
    CacheFull,
    ContiguousCache,
    PagedCache,
    QuantisedCache,
    SlidingWindowCache,
    quantise,
)
from course_utils.attention.masks import attendable, sliding_window
from course_utils.attention.tensors import attention

law = settings(deadline=None, max_examples=40, derandomize=True)

B, H, D = 3, 2, 4
CAPACITY, WINDOW, BLOCK, BLOCKS = 7, 3, 2, 9
SIZES = {
    ContiguousCache: {"capacity": CAPACITY},
    QuantisedCache: {"capacity": CAPACITY},
    SlidingWindowCache: {"window": WINDOW},
    PagedCache: {"block_size": BLOCK, "n_blocks": BLOCKS},
}
ALL_FOUR = pytest.mark.parametrize("kind", list(SIZES))


def make(kind, **changes):
    return kind(B, H, D, **{**SIZES[kind], "dtype": torch.float64, **changes})


def tokens(t, seed=0, dtype=torch.float64):
    """Keys and values (B, h_kv, t, d_head), drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, t, D, generator=generator, dtype=dtype) for _ in range(2)]


def contents(cache):
    """What the next queries would get: an update with no tokens changes nothing."""
    return cache.update(*tokens(0, dtype=cache.dtype))


def snapshot(cache):
    """All that a cache is, to compare: NaN equals NaN here."""
    state = [cache.lengths.tolist(), *(store.numpy().tobytes() for store in cache._storage())]
    if isinstance(cache, PagedCache):
        state += [cache.tables, list(cache.pool._free), list(cache.pool._ref_counts)]
    return state


# --- any sequence of steps, against plain lists ---------------------------------------------------------------------


class CacheMachine(RuleBasedStateMachine):
    """Drives one cache and, beside it, one list of (key, value) for each row."""

    def __init__(self, kind):
        super().__init__()
        self.cache = make(kind)
        self.rows = [[] for _ in range(B)]
        self.seed = 0

    @rule(t=st.integers(0, 5), lengths=st.none() | st.tuples(*[st.integers(0, 5)] * B), bad=st.booleans())
    def append(self, t, lengths, bad):
        self.seed += 1
        k, v = tokens(t, self.seed)
        added = [t] * B if lengths is None else [min(length, t) for length in lengths]
        for row, real in enumerate(added):
            k[row, :, real:] = v[row, :, real:] = math.nan  # padding must never be kept
            if bad and real:
                k[row, :, real - 1] = v[row, :, real - 1] = math.nan  # a real NaN is kept
        before = snapshot(self.cache)
        m = self.cache.columns(t, lengths if lengths is None else added)
        assert snapshot(self.cache) == before
        if not self.has_room(added):
            with pytest.raises(CacheFull):
                self.cache.update(k, v, added)
            assert snapshot(self.cache) == before
            return
        held = self.cache.update(k, v, None if lengths is None else added)
        assert [x.shape for x in held] == [(B, H, m, D), (B, H, m, D), (B, m)]
        oldest = [self.first_seen(row) for row in range(B)]
        for row, real in enumerate(added):
            self.rows[row] += [(k[row, :, j], v[row, :, j]) for j in range(real)]
        self.check_held(held, oldest)
        if self.cache.window:
            assert held[0].shape[2] <= self.cache.window - 1 + t

    @rule(source=st.integers(0, B - 1), to=st.integers(0, B - 1))
    def fork(self, source, to):
        self.cache.fork(source, to)
        self.rows[to] = list(self.rows[source])

    @rule(row=st.integers(0, B - 1))
    def free(self, row):
        self.cache.free(row)
        self.rows[row] = []

    @precondition(lambda self: any(self.rows))
    @rule()
    def reset(self):
        self.cache.reset()
        self.rows = [[] for _ in range(B)]

    @rule(which=st.sampled_from(["heads", "values", "lengths", "row"]))
    def refuse(self, which):
        before = snapshot(self.cache)
        k, v = tokens(2)
        with pytest.raises(ValueError):
            if which == "heads":
                self.cache.update(k[:, :1], v[:, :1])
            elif which == "values":
                self.cache.update(k, v[:, :, :1])
            elif which == "lengths":
                self.cache.update(k, v, [1, 2, 3])
            else:
                self.cache.fork(0, B)
        assert snapshot(self.cache) == before

    @invariant()
    def holds_what_the_lists_hold(self):
        assert self.cache.lengths.tolist() == [len(row) for row in self.rows]
        before = snapshot(self.cache)
        self.check_held(contents(self.cache), [self.first_seen(row) for row in range(B)])
        assert snapshot(self.cache) == before
        assert 0 <= self.cache.n_bytes_used <= self.cache.n_bytes
        if not isinstance(self.cache, PagedCache):
            stored = [min(len(row), self.cache.window or CAPACITY) for row in self.rows]
            assert self.cache.slots_wasted == B * (self.cache.window or CAPACITY) - sum(stored)

    @invariant()
    def every_block_is_free_or_held(self):
        if not isinstance(self.cache, PagedCache):
            return
        pool, tables = self.cache.pool, self.cache.tables
        holders = Counter(block for table in tables for block in table)
        assert [pool.references(block) for block in range(BLOCKS)] == [holders[block] for block in range(BLOCKS)]
        assert sorted([*pool._free, *holders]) == list(range(BLOCKS))
        assert self.cache.blocks_in_use == len(holders) and self.cache.free_blocks == BLOCKS - len(holders)
        assert [len(table) for table in tables] == [math.ceil(len(row) / BLOCK) for row in self.rows]
        filled = {(tables[row][p // BLOCK], p % BLOCK) for row in range(B) for p in range(len(self.rows[row]))}
        assert self.cache.slots_wasted == BLOCK * len(holders) - len(filled) <= B * (BLOCK - 1)

    def first_seen(self, row):
        window = self.cache.window
        return 0 if window is None else max(0, len(self.rows[row]) - window + 1)

    def has_room(self, added):
        if self.cache.window:
            return True
        if not isinstance(self.cache, PagedCache):
            return all(len(row) + new <= CAPACITY for row, new in zip(self.rows, added, strict=True))
        return blocks_taken_one_row_after_the_other(self.cache, added) <= self.cache.free_blocks

    def check_held(self, held, oldest):
        keys, values, key_positions = held
        assert keys.shape == values.shape == (B, H, key_positions.shape[1], D)
        assert keys.dtype == values.dtype == torch.float64 and key_positions.dtype == torch.int64
        for row, retained in enumerate(self.rows):
            slots = (key_positions[row] >= 0).nonzero()[:, 0]
            assert not keys[row, :, key_positions[row] < 0].any() and not values[row, :, key_positions[row] < 0].any()
            at = {int(key_positions[row, slot]): slot for slot in slots}
            assert len(at) == len(slots) and sorted(at) == list(range(oldest[row], len(retained)))
            for position, slot in at.items():
                for stored, given_token in zip((keys, values), retained[position], strict=True):
                    self.check_token(stored[row, :, slot], given_token)

    def check_token(self, stored, given_token):
        bound = 0.0
        if isinstance(self.cache, QuantisedCache):
            bound = given_token.abs().nan_to_num(0.0).max() / 127 / 2
        torch.testing.assert_close(stored, given_token, atol=bound, rtol=0.0, equal_nan=True)


def blocks_taken_one_row_after_the_other(cache, added):
    """Count by walking through the rows, where the cache counts by a formula."""
    holders = Counter(block for table in cache.tables for block in table)
    taken = 0
    for table, length, new in zip(cache.tables, cache.lengths.tolist(), added, strict=True):
        if new and length % BLOCK and holders[table[-1]] > 1:
            holders[table[-1]] -= 1
            taken += 1
        while new and len(table) * BLOCK < length + new:
            table.append(None)
            taken += 1
    return taken


@pytest.mark.parametrize("runs", [8, pytest.param(40, marks=pytest.mark.thorough("a cache takes many more steps"))])
@ALL_FOUR
def test_whatever_is_appended_forked_freed_and_reset_it_holds_what_lists_would(kind, runs):
    steps = settings(deadline=None, max_examples=runs, stateful_step_count=20, derandomize=True)
    run_state_machine_as_test(lambda: CacheMachine(kind), settings=steps)


# --- the interface --------------------------------------------------------------------------------------------------


@ALL_FOUR
def test_positions_go_on_where_each_row_stopped(kind):
    cache = make(kind)
    cache.update(*tokens(4), lengths=[4, 0, 2])
    assert cache.positions(3).tolist() == [[4, 5, 6], [0, 1, 2], [2, 3, 4]]
    assert cache.positions(3).dtype == cache.lengths.dtype == torch.int64
    cache.free(0)
    assert cache.positions(1).tolist() == [[0], [0], [2]]


@ALL_FOUR
def test_how_many_columns_a_mask_needs_is_known_before_anything_is_taken_in(kind):
    cache = make(kind)
    cache.update(*tokens(4), lengths=[4, 0, 2])
    ring = kind is SlidingWindowCache  # the window is 3: two older keys, then the new ones
    assert cache.columns(3) == (5 if ring else 7)
    assert cache.columns(3, [1, 0, 3]) == cache.columns(np.int64(3), torch.tensor([1, 0, 3])) == 5
    assert cache.columns(3, [0, 0, 0]) == cache.columns(0) == (2 if ring else 4)
    assert cache.columns(100) == (102 if ring else 104)  # no room for them, as `update` would say
    assert cache.lengths.tolist() == [4, 0, 2]


@ALL_FOUR
def test_columns_refuses_the_lengths_that_an_update_refuses(kind):
    cache, (k, v) = make(kind), tokens(2)
    for lengths in ([1, 3, 0], [0, 0, -1], [1, 1], [1.0, 1.0, 1.0], [True, True, False]):
        error = TypeError if not isinstance(lengths[0], int) or lengths[0] is True else ValueError
        message = refusal(lambda lengths=lengths: cache.update(k, v, lengths), error)
        assert refusal(lambda lengths=lengths: cache.columns(2, lengths), error) == message
    assert refusal(lambda: cache.columns(-1)) == "t is -1: it must be at least 0"
    assert refusal(lambda: cache.columns(2.0), TypeError) == "t is 2.0: give a whole number"


@ALL_FOUR
def test_the_lengths_that_it_gives_and_takes_are_not_its_own(kind):
    cache, given_lengths = make(kind), torch.tensor([2, 1, 0])
    cache.update(*tokens(2), given_lengths)
    given_lengths += 5
    cache.lengths.add_(5)
    assert cache.lengths.tolist() == [2, 1, 0]


@ALL_FOUR
def test_no_gradient_reaches_the_tokens(kind):
    cache = make(kind)
    k, v = (x.requires_grad_() for x in tokens(2))
    keys, values, _ = cache.update(k, v)
    assert not keys.requires_grad and not values.requires_grad
    assert not any(store.requires_grad for store in cache._storage())
    assert not contents(cache)[0].requires_grad


@ALL_FOUR
def test_a_nan_is_kept_and_goes_with_its_row(kind):
    cache = make(kind)
    k, v = tokens(3)
    k[0], v[0] = math.nan, math.nan
    keys, values, _ = cache.update(k, v)
    assert keys[0].isnan().all() and values[0].isnan().all()
    assert keys[1:].isfinite().all()
    cache.free(0)
    keys, values, key_positions = cache.update(*tokens(1), lengths=[0, 1, 1])
    assert (key_positions[0] == -1).all()
    assert not keys[0].any() and not values[0].any()


@ALL_FOUR
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_it_returns_its_own_dtype(kind, dtype):
    keys, values, _ = make(kind, dtype=dtype).update(*tokens(3, dtype=dtype))
    assert keys.dtype == values.dtype == dtype
    assert make(kind, dtype=None).dtype == torch.get_default_dtype()


@ALL_FOUR
@law
@given(data=st.data())
def test_how_a_sequence_is_cut_into_chunks_changes_nothing(kind, data):
    k, v = tokens(7, seed=1)
    one, cut = (make(kind, **({"n_blocks": 12} if kind is PagedCache else {})) for _ in range(2))
    one.update(k, v)
    start = 0
    while start < 7:
        end = data.draw(st.integers(start + 1, 7))
        cut.update(k[:, :, start:end], v[:, :, start:end])
        start = end
    for x, y in zip(contents(one), contents(cut), strict=True):
        assert torch.equal(x, y)


# --- contiguous -----------------------------------------------------------------------------------------------------


def test_a_contiguous_cache_copies_nothing_when_it_decodes():
    cache = make(ContiguousCache)
    cache.update(*tokens(3))
    keys, values, _ = cache.update(*tokens(1))
    stores = cache._storage()
    assert [keys.data_ptr(), values.data_ptr()] == [store.data_ptr() for store in stores]
    assert keys.shape == (B, H, 4, D) and keys.stride() == stores[0].stride()


def test_a_view_stays_right_through_later_updates_where_its_positions_are():
    cache = make(ContiguousCache)
    keys, _, key_positions = cache.update(*tokens(3), lengths=[3, 1, 0])
    held = key_positions >= 0
    before = keys.transpose(1, 2)[held].clone()
    cache.update(*tokens(4, seed=9), lengths=[4, 4, 2])
    assert torch.equal(keys.transpose(1, 2)[held], before)


def test_autograd_says_when_a_view_was_written_to_before_the_backward_pass():
    cache = make(ContiguousCache)
    q = torch.randn(B, H, 1, D, dtype=torch.float64, requires_grad=True)
    keys, values, _ = cache.update(*tokens(1))
    output, _ = attention(q, keys, values)
    cache.update(*tokens(1))
    with pytest.raises(RuntimeError, match="inplace operation"):
        output.sum().backward()


# --- bytes ----------------------------------------------------------------------------------------------------------


def test_bytes_are_those_of_the_formula():
    numbers = 2 * B * H * D  # keys and values, for one slot in each row
    assert make(ContiguousCache).n_bytes == numbers * CAPACITY * 8
    assert make(ContiguousCache, dtype=torch.bfloat16).n_bytes == numbers * CAPACITY * 2
    assert make(SlidingWindowCache).n_bytes == numbers * WINDOW * 8
    assert make(PagedCache).n_bytes == 2 * BLOCKS * H * BLOCK * D * 8
    assert make(QuantisedCache, dtype=torch.float16).n_bytes == 2 * B * H * CAPACITY * (D + 4)


@ALL_FOUR
def test_bytes_used_grow_with_the_tokens_and_bytes_do_not(kind):
    cache = make(kind)
    before, used = cache.n_bytes, []
    for _ in range(5):
        cache.update(*tokens(1))
        used.append(cache.n_bytes_used * cache.n_slots // cache.n_bytes)
    assert cache.n_bytes == before
    assert used == ([3, 6, 9, 9, 9] if kind is SlidingWindowCache else [3, 6, 9, 12, 15])


def test_int8_takes_about_half_the_bytes_of_fp16():
    sizes = {"capacity": 16, "dtype": torch.float16}
    assert QuantisedCache(1, 8, 128, **sizes).n_bytes / ContiguousCache(1, 8, 128, **sizes).n_bytes == 132 / 256


# --- the ring -------------------------------------------------------------------------------------------------------


@law
@given(window=st.integers(1, 9), data=st.data())
def test_chunked_prefill_through_a_ring_equals_the_sliding_window_over_the_whole(window, data):
    T = 12
    (q, _), (k, v) = tokens(T, seed=2), tokens(T, seed=3)
    expected, _ = attention(q, k, v, sliding_window(T, window))
    cache = make(SlidingWindowCache, window=window)
    outputs = []
    while sum(x.shape[2] for x in outputs) < T:
        start = int(cache.lengths[0])
        end = data.draw(st.integers(start + 1, T))
        positions = cache.positions(end - start)
        keys, values, key_positions = cache.update(k[:, :, start:end], v[:, :, start:end])
        mask = attendable(positions, key_positions, cache.window)[:, None]  # (B, 1, n, m)
        outputs.append(attention(q[:, :, start:end], keys, values, mask)[0])
        assert keys.shape[2] == min(start, window - 1) + end - start
    torch.testing.assert_close(torch.cat(outputs, dim=2), expected, atol=1e-12, rtol=0)


@law
@given(chunks=st.lists(st.integers(0, 9), max_size=4))
def test_a_ring_keeps_the_last_window_tokens_each_in_the_slot_of_its_position(chunks):
    cache, (k, _) = make(SlidingWindowCache), tokens(36)
    end = 0
    for t in chunks:
        cache.update(k[:, :, end : end + t], k[:, :, end : end + t])
        end += t
    for position in range(max(0, end - WINDOW), end):
        assert torch.equal(cache._keys[:, :, position % WINDOW], k[:, :, position])


# --- pages ----------------------------------------------------------------------------------------------------------


def paged(lengths, n_blocks=BLOCKS):
    cache = make(PagedCache, n_blocks=n_blocks)
    cache.update(*tokens(max(lengths)), lengths)
    return cache


def test_a_fork_of_full_blocks_takes_no_block():
    cache = paged([6, 0, 0])
    assert cache.blocks_in_use == 3
    cache.fork(0, 1)
    cache.fork(0, 2)
    assert cache.blocks_in_use == 3 and cache.tables == [[0, 1, 2]] * 3
    assert [cache.pool.references(block) for block in range(4)] == [3, 3, 3, 0]
    assert cache.slots_used == 6  # shared slots are counted once
    cache.update(*tokens(1))
    assert cache.blocks_in_use == 6  # one more for each, the prefix still shared
    assert [table[:3] for table in cache.tables] == [[0, 1, 2]] * 3


def test_of_those_who_share_an_open_block_all_but_the_last_writer_copy_it():
    cache = paged([3, 0, 0])
    cache.fork(0, 1)
    cache.fork(0, 2)
    assert cache.blocks_needed([1, 0, 0]) == 1
    assert cache.blocks_needed([1, 1, 0]) == 2
    assert cache.blocks_needed([1, 1, 1]) == cache.blocks_needed(torch.tensor([1, 1, 1])) == 2
    assert "(1,) but the cache has 3 rows" in refusal(lambda: cache.blocks_needed([1]))
    cache.update(*tokens(1))
    assert cache.tables == [[0, 2], [0, 3], [0, 1]]
    assert cache.pool.references(0) == 3 and cache.slots_used == 8 and cache.slots_wasted == 0


def test_a_prefix_outlives_the_row_that_wrote_it():
    cache = paged([3, 0, 0])
    k, v = tokens(3)
    cache.fork(0, 1)
    cache.free(0)
    assert cache.blocks_in_use == 2
    keys, values, _ = contents(cache)
    assert torch.equal(keys[1], k[0]) and torch.equal(values[1], v[0])


def test_a_fork_gives_back_what_the_target_held():
    cache = paged([2, 6, 0])
    assert cache.blocks_in_use == 4
    cache.fork(0, 1)
    assert cache.blocks_in_use == 1 and cache.free_blocks == BLOCKS - 1


def test_forking_again_over_a_sharing_row_keeps_the_shared_blocks():
    cache = paged([4, 0, 0])
    cache.fork(0, 1)
    cache.fork(1, 0)
    cache.fork(0, 0)
    assert cache.tables[0] == cache.tables[1] == [0, 1] and cache.pool.references(0) == 2


def test_a_row_wastes_less_than_one_block():
    cache = paged([3, 1, 2])
    assert cache.slots_wasted == 2
    cache.fork(0, 1)  # rows 0 and 1 share two blocks now, one of them half full: its empty slot counts once
    assert cache.slots_wasted == 1


def test_contiguous_rows_waste_what_they_reserved_and_did_not_fill():
    for kind in (ContiguousCache, QuantisedCache):
        cache = make(kind)
        assert cache.slots_wasted == 3 * CAPACITY
        cache.update(*tokens(3), [3, 1, 2])
        assert cache.slots_wasted == 3 * CAPACITY - 6
    ring = make(SlidingWindowCache)
    ring.update(*tokens(9), [9, 1, 2])
    assert ring.slots_wasted == 3 * WINDOW - 6  # the full ring wastes nothing


def test_out_of_blocks_says_how_many_are_needed_and_free():
    cache = paged([3, 0, 0], n_blocks=4)
    cache.fork(0, 1)
    before = snapshot(cache)
    with pytest.raises(CacheFull) as caught:
        cache.update(*tokens(2), [2, 2, 0])
    assert str(caught.value) == (
        "blocks needed: 3 (1 to copy shared ones), but free: 2 of 4; free a row, or make a larger pool"
    )
    assert snapshot(cache) == before
    cache.update(*tokens(1), [1, 1, 0])  # takes one block, for a copy
    assert cache.free_blocks == 1


def test_the_last_free_block_can_be_used():
    cache = paged([6, 6, 0], n_blocks=7)
    cache.update(*tokens(2), [0, 0, 2])
    assert cache.free_blocks == 0
    with pytest.raises(CacheFull, match=r"needed: 1 \(0 to copy"):
        cache.update(*tokens(1), [0, 0, 1])


@law
@given(steps=st.lists(st.tuples(st.sampled_from(["allocate", "share", "release"]), st.integers(0, 3)), max_size=30))
def test_a_pool_never_hands_out_a_block_twice(steps):
    pool, held = BlockPool(4), Counter()
    for step, block in steps:
        if step == "allocate" and len(+held) == 4:
            with pytest.raises(CacheFull, match="0 of 4 are free"):
                pool.allocate()
        elif step == "allocate":
            block = pool.allocate()
            assert not held[block]
            held[block] = 1
        elif not held[block]:
            with pytest.raises(ValueError, match=f"block {block} is free"):
                getattr(pool, step)(block)
        else:
            getattr(pool, step)(block)
            held[block] += 1 if step == "share" else -1
        assert [pool.references(block) for block in range(4)] == [held[block] for block in range(4)]
        assert pool.n_free == 4 - len(+held)


def test_a_pool_refuses_blocks_that_it_does_not_have():
    for block in (-1, 4):
        with pytest.raises(ValueError, match="the pool has blocks 0 to 3"):
            BlockPool(4).release(block)


# --- int8 -----------------------------------------------------------------------------------------------------------


@law
@given(
    rows=st.lists(st.lists(st.floats(-1, 1, width=32), min_size=D, max_size=D), min_size=1, max_size=CAPACITY),
    exponent=st.integers(-30, 30),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)
def test_int8_comes_back_within_half_a_scale_and_the_rounding_of_its_dtype(rows, exponent, dtype):
    info = torch.finfo(dtype)
    x = (torch.tensor(rows, dtype=torch.float64) * 2.0**exponent).clamp(-info.max, info.max).to(dtype)
    x = x.masked_fill(x.abs() < info.tiny, 0).expand(B, H, -1, -1)
    keys, values, _ = make(QuantisedCache, dtype=dtype).update(x, -x)
    assert torch.equal(values, -keys)
    x, keys = x.double(), keys.double()
    scale = x.abs().amax(dim=-1, keepdim=True) / 127
    rounding = (keys.abs() * info.eps / 2).clamp(min=info.smallest_normal * info.eps)
    assert ((keys - x).abs() <= scale * (0.5 + 1e-5) + rounding).all()  # 1e-5: rounding in float32


def test_int8_in_bfloat16_misses_half_a_scale_by_that_rounding():
    x = torch.linspace(1, 1.5, 4 * H * B, dtype=torch.bfloat16).reshape(B, H, 1, D)
    keys, _, _ = make(QuantisedCache, dtype=torch.bfloat16).update(x, x)
    half_scales = 2 * (keys - x).abs().double() / (x.double().abs().amax(dim=-1, keepdim=True) / 127)
    assert 1.1 < half_scales.max() < 2


def test_int8_error_is_really_there_and_each_token_and_head_has_a_scale_of_its_own():
    k, v = tokens(6)
    k[0, 0, 0] *= 1000  # one loud token in one head harms no other
    keys, _, _ = make(QuantisedCache).update(k, v)
    steps = (keys - k).abs() / (k.abs().amax(dim=-1, keepdim=True) / 127)
    assert steps.max() <= 0.5 + 1e-9
    assert steps.max() > 0.45 and 0.15 < steps.mean() < 0.3  # uniform over half a step would have mean 0.25
    integers, scales = quantise(k)
    assert integers.dtype == torch.int8 and scales.shape == (B, H, 6)
    assert (integers.abs().amax(dim=-1) == 127).all()


def test_int8_keeps_zeros_and_survives_half_precision_extremes():
    x = torch.tensor([[0.0, 0.0, 0.0, 0.0], [65504.0, -65504.0, 1.0, 0.0], [6e-8, 0.0, 0.0, -6e-8]])
    x = x.half().expand(B, H, 3, D)
    keys, _, _ = make(QuantisedCache, dtype=torch.float16).update(x, x)
    assert keys[0, 0].tolist() == [[0, 0, 0, 0], [65504, -65504, 0, 0], x[0, 0, 2].tolist()]


# --- errors ---------------------------------------------------------------------------------------------------------


def refusal(call, error=ValueError):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("kind", [ContiguousCache, QuantisedCache])
def test_an_overlong_row_is_named(kind):
    cache = make(kind)
    cache.update(*tokens(6), [2, 6, 0])
    before = snapshot(cache)
    assert refusal(lambda: cache.update(*tokens(3), [3, 2, 0]), CacheFull) == (
        "row 1 holds 6 tokens and 2 more make 8, but the capacity is 7: free the row, or make a longer cache"
    )
    assert snapshot(cache) == before
    cache.update(*tokens(3), [3, 1, 0])  # the last slot can be used
    assert cache.lengths.tolist() == [5, 7, 0]


@ALL_FOUR
def test_tensors_that_do_not_fit_are_refused_with_their_shapes(kind):
    cache, (k, v) = make(kind), tokens(2)
    before = snapshot(cache)
    for shape in ((2, H, 2, D), (B, 1, 2, D), (B, H, 2, 3), (B, H, D), (1, B, H, 2, D)):
        message = refusal(lambda shape=shape: cache.update(torch.zeros(shape, dtype=torch.float64), v))
        assert message == f"k is {shape}: this cache takes (B, h_kv, t, d_head) = (3, 2, t, 4)"
    assert refusal(lambda: cache.update(k, v[:, :1])).startswith("v is (3, 1, 2, 4): this cache takes")
    assert refusal(lambda: cache.update(k, v[:, :, :1])) == (
        "v is (3, 2, 1, 4) but k is (3, 2, 2, 4): one value for each key"
    )
    assert "v is torch.float32 but the cache is torch.float64" in refusal(lambda: cache.update(k, v.float()), TypeError)
    assert "k is on meta but the cache is on cpu" in refusal(lambda: cache.update(k.to("meta"), v))
    assert snapshot(cache) == before


@ALL_FOUR
def test_lengths_that_do_not_fit_are_refused(kind):
    cache, (k, v) = make(kind), tokens(2)
    before = snapshot(cache)
    assert refusal(lambda: cache.update(k, v, [1, 3, 0])) == (
        "lengths[1] is 3 but there are 2 tokens: it must be from 0 to 2"
    )
    assert "lengths[2] is -1" in refusal(lambda: cache.update(k, v, torch.tensor([0, 0, -1])))
    assert "lengths is (2,) but the cache has 3 rows" in refusal(lambda: cache.update(k, v, [1, 1]))
    assert "it counts tokens" in refusal(lambda: cache.update(k, v, [1.0, 1.0, 1.0]), TypeError)
    assert "it counts tokens" in refusal(lambda: cache.update(k, v, [True, True, False]), TypeError)
    assert snapshot(cache) == before


@ALL_FOUR
@pytest.mark.parametrize("row", [-1, B])
def test_rows_that_are_not_there_are_refused(kind, row):
    cache = make(kind)
    cache.update(*tokens(2))
    before = snapshot(cache)
    for call in (lambda: cache.fork(row, 0), lambda: cache.fork(0, row), lambda: cache.free(row)):
        assert refusal(call) == f"row is {row} but the cache has rows 0 to 2"
    assert "rows are numbered by integers" in refusal(lambda: cache.free("a"), TypeError)
    assert snapshot(cache) == before


@ALL_FOUR
def test_sizes_below_one_and_dtypes_without_fractions_are_refused(kind):
    for name in SIZES[kind]:
        for size in (0, -1):
            message = refusal(lambda name=name, size=size: make(kind, **{name: size}))
            assert message == f"{name} is {size}: it must be at least 1"
        for size in (2.0, True, "2"):
            message = refusal(lambda name=name, size=size: make(kind, **{name: size}), TypeError)
            assert message == f"{name} is {size!r}: give a whole number"
    for place, name in enumerate(("batch", "n_kv_heads", "d_head")):
        sizes = [B, H, D]
        sizes[place] = 0
        assert f"{name} is 0" in refusal(lambda sizes=sizes: kind(*sizes, **SIZES[kind]))
    for dtype in (torch.int8, "float16", np.float16):
        message = refusal(lambda dtype=dtype: make(kind, dtype=dtype), TypeError)
        assert message == f"dtype is {dtype!r}: give a floating dtype of PyTorch, such as torch.float32"


@ALL_FOUR
def test_sizes_may_be_numbers_of_numpy(kind):
    sizes = {name: np.int64(size) for name, size in SIZES[kind].items()}
    cache = kind(np.int64(B), np.int32(H), np.int64(D), **sizes)
    cache.update(*tokens(2, dtype=cache.dtype))
    assert cache.slots_used == 2 * B
    assert all(type(size) is int for size in (cache.batch, cache.n_kv_heads, cache.d_head))


def test_an_interrupted_update_is_forgotten_by_the_next_one(monkeypatch):
    cache = PagedCache(2, 1, 4, block_size=2, n_blocks=4)
    tokens = torch.ones(2, 1, 3, 4)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "_append", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            cache.update(tokens, tokens, lengths=[3, 0])
    assert cache.slots_used == 0 and cache.blocks_needed([0, 3]) == 2 and cache.blocks_needed([3, 0]) == 0
    keys, _, positions = cache.update(tokens, tokens)
    assert torch.equal(keys, tokens) and positions.tolist() == [[0, 1, 2]] * 2 and cache.free_blocks == 0


def test_asking_for_room_changes_nothing_and_says_what_an_update_would():
    for cache in (ContiguousCache(2, 1, 4, capacity=3), PagedCache(2, 1, 4, block_size=2, n_blocks=3)):
        tokens = torch.ones(2, 1, 3, 4)
        cache.check_room(3, lengths=[3, 1])
        with pytest.raises(CacheFull) as asked:
            cache.check_room(4, lengths=[4, 4])
        with pytest.raises(CacheFull) as attempts:
            cache.update(torch.ones(2, 1, 4, 4), torch.ones(2, 1, 4, 4), lengths=[4, 4])
        assert str(asked.value) == str(attempts.value) and cache.slots_used == 0
        cache.update(tokens, tokens, lengths=[3, 1])
    SlidingWindowCache(2, 1, 4, window=2).check_room(100)
