"""Tiled attention: the running softmax, its merge rule, forward and backward against float64 and the library."""

import math
import weakref
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.attention import tensors, tiled
from course_utils.attention.tiled import Partial, finish, merge, nothing, online_attention, online_softmax

law = settings(deadline=None, max_examples=40, derandomize=True)

THREE = torch.tensor([[1.0, 0], [0, 1], [1, 1]], dtype=torch.float64)
THREE_VALUES = torch.tensor([[1.0, 0], [0, 1], [0, 0]], dtype=torch.float64)


def close(actual, expected, atol=1e-12):
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def lower_right(n, m):
    return torch.ones(n, m, dtype=torch.bool).tril(m - n)


def oracle(q, k, v, causal, scale=None):
    """Output and lse by `tensors`, every key head repeated for the queries that share it."""
    if q.ndim > 2:
        group = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(group, -3), v.repeat_interleave(group, -3)
    n, m = q.shape[-2], k.shape[-2]
    mask = lower_right(n, m) if causal else torch.ones(n, m, dtype=torch.bool)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return tensors.attention(q, k, v, mask, scale)[0], tensors.logsumexp(scores.masked_fill(~mask, -math.inf))


@st.composite
def problems(draw, least=0, most=13):
    """q, k, v in float64 with heads in groups, n and m apart from each other, and the options of forward."""
    batch, group, kv_heads = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    n, m = draw(st.integers(least, most)), draw(st.integers(least, most))
    d_k, d_v = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    seed = draw(st.integers(0, 2**31))
    q = normal(seed, batch, kv_heads * group, n, d_k)
    k, v = normal(seed + 1, batch, kv_heads, m, d_k), normal(seed + 2, batch, kv_heads, m, d_v)
    options = {
        "causal": draw(st.booleans()),
        "block_q": draw(st.integers(1, most + 3)),
        "block_k": draw(st.integers(1, most + 3)),
        "scale": draw(st.sampled_from([None, 0.3, -1.0, 0.0])),
    }
    return q, k, v, options


# --- the running softmax --------------------------------------------------------------------------------------------


def test_the_example_of_day_1_one_key_at_a_time():
    scores = THREE @ THREE.T / math.sqrt(2)
    steps = list(online_attention(scores, THREE_VALUES))
    third = [[step.m[2].item(), step.l[2].item(), *step.o[2].tolist()] for step in steps]
    low, high = 1 / math.sqrt(2), math.sqrt(2)
    shrink = math.exp(low - high)
    assert third[0] == pytest.approx([low, 1, 1, 0])
    assert third[1] == pytest.approx([low, 2, 1, 1])  # an equal score: nothing shrinks
    assert third[2] == pytest.approx([high, 2 * shrink + 1, shrink, shrink])  # a larger one: everything does
    output, lse = finish(steps[-1])
    close(output, torch.tensor([[0.4011, 0.1978], [0.1978, 0.4011], [0.2483, 0.2483]], dtype=torch.float64), 5e-5)
    close(lse.exp(), torch.tensor([5.0562, 5.0562, 8.1695], dtype=torch.float64), 1e-4)


def test_after_each_key_the_running_result_is_attention_over_the_keys_so_far():
    q, k, v = normal(0, 4, 3), normal(1, 7, 3), normal(2, 7, 2)
    for observed, partial in enumerate(online_attention(q @ k.T / math.sqrt(3), v), start=1):
        close(finish(partial)[0], tensors.attention(q, k[:observed], v[:observed])[0])
    assert observed == 7


SCORES = st.floats(-1e4, 1e4) | st.sampled_from([-math.inf, -1e4, 1e4])
ROWS = st.integers(1, 6).flatmap(lambda m: st.lists(st.lists(SCORES, min_size=m, max_size=m), min_size=1, max_size=3))


@law
@given(rows=ROWS, block=st.integers(1, 7))
def test_the_running_softmax_ends_at_the_softmax(rows, block):
    scores = torch.tensor(rows, dtype=torch.float64)
    steps = list(online_softmax(scores, block))
    assert len(steps) == math.ceil(scores.shape[-1] / block)
    m, l = steps[-1]
    assert torch.equal(m, scores.amax(-1))
    torch.testing.assert_close(m + l.log(), tensors.logsumexp(scores), atol=1e-12, rtol=1e-12)
    weights = (scores - m[:, None]).exp() / l[:, None]
    close(weights.nan_to_num(0.0), tensors.softmax(scores))


def test_no_scores_give_no_steps():
    assert list(online_softmax(torch.zeros(3, 0))) == []
    assert list(online_attention(torch.zeros(3, 0), torch.zeros(0, 2))) == []


# --- merging --------------------------------------------------------------------------------------------------------


@st.composite
def parts(draw, count=3):
    """Partials of `count` disjoint sets of keys, some of them empty or masked, some with scores of ±1e4."""
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    made = []
    for _ in range(count):
        m = draw(st.integers(0, 4))
        scores = torch.randn(3, m, generator=rng, dtype=torch.float64) * draw(st.sampled_from([1.0, 30.0, 1e4]))
        scores = scores.clamp(-1e4, 1e4).masked_fill(
            torch.rand(3, m, generator=rng) < draw(st.sampled_from([0.0, 0.5, 1.0])), -math.inf
        )
        v = torch.randn(m, 2, generator=rng, dtype=torch.float64)
        start = nothing((3,), 2, v)
        made.append(tiled.absorb(start, scores, v) if m else start)
    return made


def same(a, b):
    for x, y in zip(a, b, strict=True):
        assert not x.isnan().any()
        close(x, y)


@law
@given(parts=parts())
def test_merging_is_associative(parts):
    a, b, c = parts
    same(merge(merge(a, b), c), merge(a, merge(b, c)))


@law
@given(parts=parts(2))
def test_merging_is_commutative(parts):
    a, b = parts
    same(merge(a, b), merge(b, a))


@law
@given(parts=parts(1))
def test_merging_with_nothing_changes_nothing(parts):
    (a,) = parts
    none = nothing((3,), 2, a.o)
    assert none.m.tolist() == [-math.inf] * 3 and none.l.tolist() == [0] * 3
    for merged in (merge(a, none), merge(none, a)):
        assert all(torch.equal(x, y) for x, y in zip(merged, a, strict=True))
    output, lse = finish(merge(none, none))
    assert output.tolist() == [[0, 0]] * 3 and lse.tolist() == [-math.inf] * 3


@law
@given(problem=problems(most=9), cut=st.integers(1, 5), seed=st.integers(0, 1000))
def test_any_partition_of_the_keys_in_any_order_gives_the_same_attention(problem, cut, seed):
    q, k, v, options = problem
    group, n, m = q.shape[1] // k.shape[1], q.shape[2], k.shape[2]
    mask, scale = lower_right(n, m), options["scale"]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    order = torch.randperm(m, generator=torch.Generator().manual_seed(seed))
    total = nothing(q.shape[:-1], v.shape[-1], q)
    for keys in order.split(cut):
        total = merge(total, tiled.partial_attention(q, k[:, :, keys], v[:, :, keys], mask[:, keys], scale))
    expected, expected_lse = oracle(q, k, v, True, scale)
    output, lse = finish(total)
    close(output, expected)
    close(lse, expected_lse)


def test_tiling_merges_key_blocks_from_left_to_right():
    q, k, v = normal(0, 4, 3), normal(1, 10, 3), normal(2, 10, 2)
    total = nothing((4,), 2, q)
    for k_block, v_block in zip(k.split(3), v.split(3), strict=True):
        total = merge(total, tiled.partial_attention(q, k_block, v_block))
    same(finish(total), tiled.forward(q, k, v, block_k=3))


def test_split_k_decoding_merges_parts_computed_side_by_side():
    q, k, v = normal(0, 1, 3), normal(1, 16, 3), normal(2, 16, 2)
    k_splits, v_splits = k.unflatten(0, (4, 4)), v.unflatten(0, (4, 4))  # (split, m / split, d)
    side_by_side = tiled.partial_attention(q, k_splits, v_splits)  # one more axis, no loop
    a, b, c, d = (Partial(*(x[i] for x in side_by_side)) for i in range(4))
    same(finish(merge(merge(a, b), merge(c, d))), tiled.forward(q, k, v))


def test_ring_attention_passes_keys_round_and_every_machine_ends_with_its_rows():
    machines, rows = 4, 3
    q, k, v = normal(0, 12, 5), normal(1, 12, 5), normal(2, 12, 2)
    mask = lower_right(12, 12)
    blocks = [slice(i * rows, (i + 1) * rows) for i in range(machines)]
    gathered = [nothing((rows,), 2, q) for _ in range(machines)]
    for turn in range(machines):
        for machine, queries in enumerate(blocks):
            keys = blocks[(machine - turn) % machines]  # what the neighbour has just handed over, perhaps masked whole
            part = tiled.partial_attention(q[queries], k[keys], v[keys], mask[queries, keys])
            gathered[machine] = merge(gathered[machine], part)
    outputs, lses = zip(*map(finish, gathered), strict=True)
    same((torch.cat(outputs), torch.cat(lses)), tiled.forward(q, k, v, causal=True))


# --- forward --------------------------------------------------------------------------------------------------------


@settings(law, max_examples=100)
@given(problem=problems())
def test_forward_equals_attention_for_any_sizes_blocks_and_groups(problem):
    q, k, v, options = problem
    o, lse = tiled.forward(q, k, v, **options)
    expected, expected_lse = oracle(q, k, v, options["causal"], options["scale"])
    close(o, expected)
    close(lse, expected_lse)


@law
@given(problem=problems(least=1))
def test_forward_equals_the_library(problem):
    q, k, v, options = problem
    n, m, causal, scale = q.shape[2], k.shape[2], options["causal"], options["scale"]
    mask = lower_right(n, m) if causal else None
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    close(tiled.forward(q, k, v, **options)[0], expected, 1e-10)


@law
@given(problem=problems(), block_q=st.integers(1, 16), block_k=st.integers(1, 16))
def test_block_size_does_not_change_the_answer(problem, block_q, block_k):
    q, k, v, options = problem
    options |= {"scale": None}
    others = options | {"block_q": block_q, "block_k": block_k}
    o, lse = tiled.forward(q, k, v, **options)
    same((o, lse), tiled.forward(q, k, v, **others))
    do = normal(5, *o.shape)
    same(tiled.backward(q, k, v, o, lse, do, **options), tiled.backward(q, k, v, o, lse, do, **others))


def test_matrices_without_heads_and_many_leading_axes():
    q, k, v = normal(0, 3, 2, 4, 7, 5), normal(1, 3, 2, 2, 9, 5), normal(2, 3, 2, 2, 9, 3)
    o, lse = tiled.forward(q, k, v, True, 4, 4)
    close(o, oracle(q, k, v, True)[0])
    one, one_lse = tiled.forward(q[1, 1, 3], k[1, 1, 1], v[1, 1, 1], True, 2, 3)
    same((one, one_lse), (o[1, 1, 3], lse[1, 1, 3]))


def test_inputs_that_are_not_contiguous_are_left_as_they_were():
    q, k, v = (normal(i, 2, 9, 4, 5).transpose(1, 2) for i in range(3))  # (B, h, T, d)
    before = [x.clone() for x in (q, k, v)]
    o, lse = tiled.forward(q, k, v, True, 4, 3)
    tiled.backward(q, k, v, o, lse, torch.ones_like(o), True, 4, 3)
    assert all(torch.equal(x, y) for x, y in zip((q, k, v), before, strict=True))
    same(tiled.forward(*(x.contiguous() for x in (q, k, v)), True, 4, 3), (o, lse))


@pytest.mark.parametrize("causal", [False, True])
def test_one_query_and_one_key_give_the_value(causal):
    q, k, v = torch.tensor([[-2.0, 5.0]]), torch.tensor([[9.0, 1.0]]), torch.tensor([[4.0, -1.0, 2.0]])
    o, lse = tiled.forward(q, k, v, causal, scale=1.0)
    assert o.tolist() == v.tolist() and lse.tolist() == [-13.0]


def test_queries_that_see_no_key_give_zeros_and_zero_gradients():
    q, k, v = normal(0, 7, 3), normal(1, 4, 3), normal(2, 4, 2)  # lower-right: the first three queries see nothing
    o, lse = tiled.forward(q, k, v, causal=True, block_q=2, block_k=3)
    assert o[:3].eq(0).all() and lse[:3].eq(-math.inf).all()
    assert o[3].tolist() == pytest.approx(v[0].tolist()) and lse[3:].isfinite().all()
    dq, dk, dv = tiled.backward(q, k, v, o, lse, torch.ones_like(o), causal=True, block_q=2, block_k=3)
    assert dq[:3].eq(0).all() and dq[4:].ne(0).all()
    assert all(x.isfinite().all() for x in (dq, dk, dv))


@pytest.mark.parametrize("n, m", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("causal", [False, True])
def test_no_queries_or_no_keys(n, m, causal):
    q, k, v = torch.ones(2, n, 4), torch.ones(2, m, 4), torch.ones(2, m, 5)
    o, lse = tiled.forward(q, k, v, causal)
    assert o.shape == (2, n, 5) and o.eq(0).all()
    assert lse.shape == (2, n) and lse.eq(-math.inf).all()
    for gradient, x in zip(tiled.backward(q, k, v, o, lse, torch.ones_like(o), causal), (q, k, v), strict=True):
        assert gradient.shape == x.shape and gradient.eq(0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("causal", [False, True])
def test_scores_of_ten_thousand_stay_finite(dtype, causal):
    q, k, v, do = (normal(i, 2, 33, 4, dtype=dtype) for i in range(4))
    q = q.sign() * 1e4  # scores are sums of four numbers, each around ±1e4
    o, lse = tiled.forward(q, k.sign(), v, causal, 8, 8, scale=0.25)
    gradients = tiled.backward(q, k.sign(), v, o, lse, do, causal, 8, 8, scale=0.25)
    assert lse.max() >= 9999
    assert all(x.isfinite().all() for x in (o, lse, *gradients))
    close(o.double(), oracle(q.double(), k.double().sign(), v.double(), causal, 0.25)[0], 1e-6)


# --- precision ------------------------------------------------------------------------------------------------------


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def outcomes(q, k, v, do, causal):
    o, lse = tiled.forward(q, k, v, causal)
    return o, lse, *tiled.backward(q, k, v, o, lse, do, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, m, d", [(512, 512, 64), (509, 128, 32), (97, 512, 128), (1, 300, 16)])
def test_float32_is_within_a_millionth_of_float64(n, m, d, causal):
    q, k, v, do = normal(0, 2, n, d), normal(1, 1, m, d), normal(2, 1, m, d), normal(3, 2, n, d)
    expected = list(outcomes(q, k, v, do, causal))
    for x, y in zip(outcomes(*(x.float() for x in (q, k, v, do)), causal), expected, strict=True):
        assert x.dtype == torch.float32
        observed = y.isfinite()
        assert torch.equal(x.isfinite(), observed)
        assert relative_error(x[observed], y[observed]) <= 1e-6


@pytest.mark.parametrize("dtype, allowed", [(torch.float16, 5e-4), (torch.bfloat16, 4e-3)])
def test_half_precision_sums_in_float32(dtype, allowed):
    """Only the last rounding is in half precision: half a unit in the last place, 2^-11 or 2^-8 of each number."""
    q, k, v, do = (normal(i, 2, 300, 32, dtype=dtype) for i in range(4))
    o, lse, *gradients = outcomes(q, k, v, do, True)
    assert lse.dtype == torch.float32 and all(x.dtype == dtype for x in (o, *gradients))
    wide = [x.double() for x in (q, k, v, do)]
    expected_o, expected_lse = tiled.forward(*wide[:3], True)
    assert relative_error(o, expected_o) <= allowed
    assert relative_error(lse, expected_lse) <= 1e-6
    exact = tiled.backward(*wide[:3], o.double(), lse.double(), wide[3], True)
    for x, y in zip(gradients, exact, strict=True):
        assert relative_error(x, y) <= allowed


# --- backward and autograd ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, m", [(4, 4), (3, 5), (5, 3), (1, 4)])
def test_gradcheck(n, m, causal):
    q, k, v = normal(0, 1, 4, n, 3), normal(1, 1, 2, m, 3), normal(2, 1, 2, m, 2)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    assert torch.autograd.gradcheck(lambda *qkv: tiled.tiled_attention(*qkv, causal, 2, 3), inputs)


@law
@given(problem=problems())
def test_gradients_equal_those_of_attention_with_masks(problem):
    *qkv, options = problem
    ours, theirs = ([x.clone().requires_grad_() for x in qkv] for _ in range(2))
    output = tiled.tiled_attention(*ours, **options)
    expected, _ = oracle(*theirs, options["causal"], options["scale"])
    probe = normal(9, *output.shape)
    (output * probe).sum().backward()
    (expected * probe).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        close(mine.grad, other.grad, 1e-11)


def test_a_second_derivative_is_refused():
    q = normal(0, 3, 2).requires_grad_()
    (first,) = torch.autograd.grad(tiled.tiled_attention(q, q, q).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


# --- blocks and memory ----------------------------------------------------------------------------------------------


class Allocations(TorchDispatchMode):
    """Every operation, the largest tensor that any of them made, and the most bytes alive at one time."""

    def __init__(self):
        super().__init__()
        self.operations, self.largest, self.alive, self.peak = Counter(), 0, 0, 0
        self._known = weakref.WeakSet()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        self.operations[function.overloadpacket.__name__] += 1
        for x in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(x, torch.Tensor):
                self._seen(x)
        return made

    def _seen(self, x):
        self.largest = max(self.largest, x.numel() if x._base is None else 0)
        storage = x.untyped_storage()
        if storage not in self._known:
            self._known.add(storage)
            self.alive += storage.nbytes()
            self.peak = max(self.peak, self.alive)
            weakref.finalize(storage, self._gone, storage.nbytes())

    def _gone(self, size):
        self.alive -= size


def allocations(function, *args, **options):
    with Allocations() as observed:
        function(*args, **options)
    return observed


def both_ways(q, k, v, causal):
    o, lse = tiled.forward(q, k, v, causal, 16, 16)
    return tiled.backward(q, k, v, o, lse, o, causal, 16, 16)


def naive(q, k, v, causal):
    return tensors.attention(q, k, v, lower_right(q.shape[-2], k.shape[-2]))[0]


@pytest.mark.parametrize("causal", [False, True])
def test_no_tensor_of_n_by_m_ever_exists(causal):
    n, m, d = 256, 192, 8
    q, k, v = normal(0, 2, n, d), normal(1, 1, m, d), normal(2, 1, m, d)
    assert allocations(both_ways, q, k, v, causal).largest <= 2 * n * d  # dq, o: nothing is larger
    assert allocations(naive, q, k, v, causal).largest >= n * m  # the instrument sees one where there is one


@pytest.mark.parametrize("causal", [False, True])
def test_peak_memory_grows_with_t_and_not_with_its_square(causal):
    def peak(function, tokens):
        q, k, v = (normal(i, tokens, 8) for i in range(3))
        return allocations(function, q, k, v, causal).peak

    assert peak(both_ways, 256) <= 2 * peak(both_ways, 128)
    assert peak(naive, 256) >= 3.8 * peak(naive, 128)


@law
@given(n=st.integers(0, 40), m=st.integers(0, 40), block_q=st.integers(1, 12), block_k=st.integers(1, 12))
def test_causal_tiles_cover_what_may_be_attended_to_once_and_nothing_else_unmasked(n, m, block_q, block_k):
    visits = torch.zeros(n, m, dtype=torch.int64)
    allowed = lower_right(n, m)
    for queries in tiled.query_blocks(n, m, block_q, causal=True):
        for keys, on_diagonal in tiled.key_blocks(queries, n, m, block_k, causal=True):
            visits[queries, keys] += 1
            tile = allowed[queries, keys]
            assert tile.any(), "a tile wholly above the diagonal is skipped"
            assert on_diagonal == (not tile.all()), "only tiles on the diagonal are masked"
    assert (visits <= 1).all()
    assert visits[allowed].eq(1).all()


def tiles_by_formula(n, m, block_q, block_k, causal):
    """⌈n / block_q⌉ · ⌈m / block_k⌉ tiles; causal, a row of tiles ends where its last query does."""
    if not causal:
        return math.ceil(n / block_q) * math.ceil(m / block_k)
    r = min(n, m)
    return sum(math.ceil((m - r + min(r, (i + 1) * block_q)) / block_k) for i in range(math.ceil(r / block_q)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, m, block_q, block_k", [(64, 64, 16, 16), (50, 37, 8, 5), (37, 50, 5, 8), (5, 90, 16, 7)])
def test_forward_and_backward_visit_as_many_blocks_as_the_formula_says(n, m, block_q, block_k, causal):
    q, k, v = normal(0, n, 4), normal(1, m, 4), normal(2, m, 4)
    tiles = tiles_by_formula(n, m, block_q, block_k, causal)
    observed = allocations(tiled.forward, q, k, v, causal, block_q, block_k).operations
    assert observed["bmm"] == observed["baddbmm_"] == tiles  # q kᵀ and p v, once a tile
    o, lse = tiled.forward(q, k, v, causal)
    observed = allocations(tiled.backward, q, k, v, o, lse, o, causal, block_q, block_k).operations
    assert observed["bmm"] + observed["baddbmm_"] == 5 * tiles


def test_causal_skipping_saves_almost_half_and_masks_one_tile_a_row():
    q, k, v = (normal(i, 128, 4) for i in range(3))
    observed = allocations(tiled.forward, q, k, v, True, 16, 16).operations
    assert observed["bmm"] == 8 * 9 // 2
    assert observed["masked_fill_"] == 8


# --- errors ---------------------------------------------------------------------------------------------------------


BAD_SIZES = [
    (0, ValueError, "0: it must be at least 1"),
    (-1, ValueError, "-1: it must be at least 1"),
    (2.0, TypeError, "2.0: give a whole number"),
    (True, TypeError, "True: give a whole number"),
]


@pytest.mark.parametrize("size, error, message", BAD_SIZES)
@pytest.mark.parametrize("name", ["block_q", "block_k"])
def test_a_block_that_is_no_whole_number_of_rows_is_refused(name, size, error, message):
    with pytest.raises(error, match=f"{name} is {message}"):
        tiled.forward(THREE, THREE, THREE, **{name: size})
    for running in (online_softmax(THREE, size), online_attention(THREE, THREE, size)):
        with pytest.raises(error, match=f"block is {message}"):
            next(running)


def test_a_block_may_be_a_number_of_numpy_however_narrow():
    q, k, v = normal(0, 300, 3), normal(1, 300, 3), normal(2, 300, 2)
    same(tiled.forward(q, k, v, True, np.int8(100), np.int64(7)), tiled.forward(q, k, v, True, 100, 7))
    same(list(online_attention(q, v[:3], np.int8(2)))[-1], list(online_attention(q, v[:3], 2))[-1])


MASK = torch.ones(3, 3, dtype=torch.bool)


@pytest.mark.parametrize("causal", [MASK, 1, None, "yes"])
def test_a_causal_that_is_no_bool_is_refused(causal):
    o, lse = tiled.forward(THREE, THREE, THREE)
    message = f"causal is {type(causal).__name__}, not a bool"
    for call in (
        lambda: tiled.forward(THREE, THREE, THREE, causal),
        lambda: tiled.tiled_attention(THREE, THREE, THREE, causal),
        lambda: tiled.backward(THREE, THREE, THREE, o, lse, o, causal),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize(
    "scores, v, message",
    [
        ((3, 4), (5, 2), r"scores are \(3, 4\) and v is \(5, 2\): one value for each key"),
        ((3, 4), (3, 2), "one value for each key"),  # three queries are not three keys
        ((3, 5), (4, 2), "one value for each key"),  # fewer values than keys: the last block would be short
        ((4,), (4,), r"v is \(4,\): one value for each key, so \(…, m\) and \(…, m, d_v\)"),
        ((2, 3, 4), (5, 4, 2), "their leading axes must be equal, or 1, or absent"),
    ],
)
def test_scores_and_values_that_do_not_fit_are_refused(scores, v, message):
    with pytest.raises(ValueError, match=message):
        next(online_attention(torch.zeros(scores), torch.zeros(v)))


def test_part_of_the_keys_takes_masks_and_shapes_that_attention_takes():
    q, k, v = normal(0, 4, 3), normal(1, 5, 3), normal(2, 5, 2)
    with pytest.raises(TypeError, match=r"mask is torch.float32, not boolean"):
        tiled.partial_attention(q, k, v, torch.ones(4, 5))
    with pytest.raises(TypeError, match=r"mask is torch.int64, not boolean"):
        tiled.partial_attention(q, k, v, torch.ones(4, 5, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"mask is \(5, 4\) but scores are \(4, 5\)"):
        tiled.partial_attention(q, k, v, lower_right(5, 4))
    with pytest.raises(ValueError, match="same d_k"):
        tiled.partial_attention(q, k[:, :2], v)
    with pytest.raises(ValueError, match="one value for each key"):
        tiled.partial_attention(q, k, v[:4])


def test_plain_tuples_merge_and_what_is_finished_does_not():
    a, b = (tiled.partial_attention(THREE, THREE[part], THREE_VALUES[part]) for part in (slice(2), slice(2, 3)))
    same(merge(tuple(a), tuple(b)), merge(a, b))
    same(finish(tuple(a)), finish(a))
    with pytest.raises(TypeError, match=r"b is a tuple of 2: give a Partial, \(m, l, o\), from before `finish`"):
        merge(a, finish(b))
    with pytest.raises(TypeError, match="partial is a Tensor: give a Partial"):
        finish(a.o)


def test_integers_and_mixed_dtypes_are_refused():
    with pytest.raises(TypeError, match=r"q is torch.int64: tiled attention takes floating tensors"):
        tiled.forward(THREE.long(), THREE, THREE)
    with pytest.raises(TypeError, match=r"v is torch.float32 but q is torch.float64: convert them to one dtype"):
        tiled.forward(THREE, THREE, THREE.float())


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="same d_k"):
        tiled.forward(THREE, THREE[:, :1], THREE)
    with pytest.raises(ValueError, match="q has 3 heads and k has 2"):
        tiled.forward(torch.ones(3, 4, 2), torch.ones(2, 4, 2), torch.ones(2, 4, 2))
    with pytest.raises(ValueError, match="scale is nan"):
        tiled.tiled_attention(THREE, THREE, THREE, scale=math.nan)
    o, lse = tiled.forward(THREE, THREE, THREE_VALUES)
    with pytest.raises(ValueError, match=r"lse is \(2,\) but q, k and v give \(3,\)"):
        tiled.backward(THREE, THREE, THREE_VALUES, o, lse[:2], o)
    with pytest.raises(ValueError, match=r"do is \(3, 1\) but q, k and v give \(3, 2\)"):
        tiled.backward(THREE, THREE, THREE_VALUES, o, lse, o[:, :1])


def test_inside_autocast_sums_keep_their_dtypes():
    q, k, v, do = torch.randn(4, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0)).unbind()
    plain = tiled.forward(q, k, v, causal=True)
    gradients = tiled.backward(q, k, v, *plain, do, causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = tiled.forward(q, k, v, causal=True)
        cast_gradients = tiled.backward(q, k, v, *cast, do, causal=True)
    assert all(torch.equal(a, b) for a, b in zip((*plain, *gradients), (*cast, *cast_gradients), strict=True))
