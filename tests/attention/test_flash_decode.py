"""Decoding with split keys against float64: in Triton's interpreter on a CPU, on the GPU where there is one."""

import functools
import inspect
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention import flash_decode, tiled, triton_setup
from course_utils.attention.flash_decode import attend_to_parts, merge_parts, splits_for
from course_utils.attention.flash_decode import flash_decode as decode
from course_utils.attention.tiled import Partial

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
LONG = [1000, 20000] if GPU else [300]
HALF = [torch.float16, torch.bfloat16] if GPU else [torch.float16]
interpreter_only = pytest.mark.skipif(GPU, reason="the interpreter's own: this machine has a GPU")
MORE = pytest.mark.thorough("a Triton kernel is run in the interpreter in more configurations")
law = settings(max_examples=25, deadline=None, derandomize=True)


def some(*chosen, of):
    """Values of parameters: those chosen in every run, the others in that of everything."""
    return [pytest.param(*each, marks=() if each in chosen else MORE) for each in of]


def problem(h, h_kv, n, m, d, dtype=torch.float32, seed=0, largest=1.0, B=2):
    made = torch.Generator().manual_seed(seed)
    shapes = ((B, h, n, d), (B, h_kv, m, d), (B, h_kv, m, d))
    return [(torch.randn(x, generator=made, dtype=torch.float64) * largest).to(DEVICE, dtype) for x in shapes]


def oracle(q, k, v, causal=False, lengths=None, scale=None):
    """Output and log-sum-exp in float64, each sequence by itself with as many keys as count."""
    lengths = [k.shape[2]] * len(q) if lengths is None else lengths
    result = [
        tiled.forward(one.double(), keys[:, :m].double(), values[:, :m].double(), causal, scale=scale)
        for one, keys, values, m in zip(q, k, v, lengths, strict=True)
    ]
    return [torch.stack(x) for x in zip(*result, strict=True)]


def error(found, expected):
    """How far off in norm, relative to the size of what is expected (or 1 where that is nothing)."""
    found, expected = found.double(), expected.double()
    both = torch.isfinite(expected)
    assert torch.equal(found[~both], expected[~both])
    return ((found - expected)[both].norm() / expected[both].norm().clamp(min=1e-3)).item()


def compare(q, k, v, causal=False, lengths=None, n_splits=None, scale=None):
    """The larger error of output and log-sum-exp."""
    result = decode(q, k, v, causal, scale, lengths, n_splits, return_lse=True)
    return max(map(error, result, oracle(q, k, v, causal, lengths, scale)))


# --- the right numbers ----------------------------------------------------------------------------------------------


@MORE
@law
@given(
    heads=st.sampled_from([(1, 1), (4, 1), (8, 1), (8, 2), (3, 3)]),
    n=st.integers(1, 3),
    m=st.integers(1, 200),
    d=st.sampled_from([16, 24, 64, 80, 128]),
    n_splits=st.sampled_from([None, 1, 2, 3, 7, 20]),
    causal=st.booleans(),
    data=st.data(),
)
def test_it_equals_float64_for_any_lengths_heads_widths_and_splits(heads, n, m, d, n_splits, causal, data):
    lengths = data.draw(st.none() | st.lists(st.integers(0, m), min_size=2, max_size=2))
    q, k, v = problem(*heads, n, m, d, seed=m)
    assert compare(q, k, v, causal, lengths, n_splits) <= 1e-6


@pytest.mark.parametrize("n, group", some((1, 8), (3, 1), (3, 4), of=itertools.product([1, 3], [1, 4, 8])))
def test_the_heads_of_a_group_are_rows_that_keep_apart(n, group):
    q, k, v = problem(2 * group, 2, n, 100, 64)
    assert compare(q, k, v, causal=True) <= 1e-6
    one = decode(q[:, group - 1 : group], k[:, :1], v[:, :1], causal=True)
    assert error(decode(q, k, v, causal=True)[:, group - 1 : group], one) <= 1e-6


def test_one_key_gives_its_value():
    q, k, v = problem(8, 2, 1, 1, 32)
    o, lse = decode(q, k, v, causal=True, return_lse=True)
    assert torch.equal(o, v.repeat_interleave(4, 1))
    torch.testing.assert_close(lse[..., 0], (q * k.repeat_interleave(4, 1)).sum((2, 3)) / math.sqrt(32))


@pytest.mark.parametrize(
    "n_splits, m",
    some((1, 31), (2, 33), (6, 97), of=itertools.product([1, 2, 3, 6, 50], [1, 31, 32, 33, 64, 97, 200])),
)
def test_neither_the_block_nor_the_number_of_parts_has_to_divide_the_length(n_splits, m):
    """The interpreter's blocks hold 32 keys: 50 parts are more than there are blocks, so most are empty."""
    q, k, v = problem(4, 1, 3, m, 16)
    assert compare(q, k, v, causal=True, n_splits=n_splits) <= 1e-6


def test_causal_queries_see_up_to_the_last_key_and_one_less_each():
    q, k, v = problem(4, 2, 3, 70, 16)
    together = decode(q, k, v, causal=True, n_splits=3)
    for i in range(3):
        observed = 70 - 2 + i
        alone = decode(q[:, :, i : i + 1], k[:, :, :observed], v[:, :, :observed])
        assert error(together[:, :, i : i + 1], alone) <= 1e-6


@pytest.mark.parametrize("m, d", some((LONG[0], 64), of=itertools.product(LONG, [64, 128, 256])))
@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_as_close_as_the_library(dtype, m, d):
    q, k, v = problem(8, 2, 1, m, d, dtype)
    expected = oracle(q, k, v)[0]
    theirs = F.scaled_dot_product_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))
    for n_splits in (None, 3):
        o = decode(q, k, v, n_splits=n_splits)
        assert o.dtype == dtype and error(o, expected) <= 1.5 * error(theirs, expected)
    assert compare(q, k, v, lengths=[m - 7, 3]) <= 1e-2


@pytest.mark.parametrize("scale", [0.3, -0.5, 0.0])
def test_the_scale_may_be_any_finite_number(scale):
    assert compare(*problem(4, 2, 2, 70, 16), causal=True, n_splits=2, scale=scale) <= 1e-6


def test_scores_of_ten_thousand_stay_finite_and_right():
    q, k, v = problem(4, 2, 2, 90, 16, largest=50.0)
    assert (q[:, :1] @ k[:, :1].mT / 4).abs().max() > 5e3
    assert all(x.isfinite().all() for x in decode(q, k, v, n_splits=3, return_lse=True))
    # Single precision keeps such a score to about 10⁻³, so compare where one key has all the weight: the argmax.
    assert error(decode(q * 100, k, v, n_splits=3), oracle(q * 100, k, v)[0]) <= 1e-5


# --- lengths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n_splits, causal, lengths",
    some(
        (1, False, (0, 5)),
        (4, True, (1, 69)),
        (4, False, (33, 64)),
        of=itertools.product([1, 4], [False, True], [(70, 70), (1, 69), (33, 64), (0, 5), (0, 0)]),
    ),
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN slice")
def test_what_lies_past_a_length_may_be_anything(n_splits, causal, lengths):
    q, k, v = problem(8, 2, 2, 70, 16)
    clean = decode(q, k, v, causal, lengths=lengths, n_splits=n_splits, return_lse=True)
    for b, m in enumerate(lengths):
        k[b, :, m:] = v[b, :, m:] = torch.nan
    result = decode(q, k, v, causal, lengths=lengths, n_splits=n_splits, return_lse=True)
    assert all(torch.equal(a, b) for a, b in zip(result, clean, strict=True))
    assert compare(q, k, v, causal, lengths, n_splits) <= 1e-6


def test_a_query_without_a_key_gives_zeros():
    q, k, v = problem(4, 2, 3, 40, 16)
    o, lse = decode(q, k, v, causal=True, lengths=[0, 2], n_splits=2, return_lse=True)
    assert (o[0] == 0).all() and (lse[0] == -torch.inf).all()
    assert (o[1, :, 0] == 0).all() and (lse[1, :, 0] == -torch.inf).all()  # three queries and two keys
    assert lse[1, :, 1:].isfinite().all()


@pytest.mark.parametrize("B, n, m", [(1, 0, 5), (1, 2, 0), (0, 2, 5)])
def test_empty_sequences_are_taken(B, n, m):
    q, k, v = problem(2, 2, n, m, 16, B=B)
    o, lse = decode(q, k, v, return_lse=True)
    assert o.shape == q.shape and (o == 0).all() and (lse == -torch.inf).all()


@pytest.mark.parametrize("kind", [list, tuple, torch.tensor, lambda x: torch.tensor(x, dtype=torch.int32)])
def test_lengths_may_be_a_list_or_a_tensor(kind):
    q, k, v = problem(2, 1, 1, 50, 16)
    assert torch.equal(decode(q, k, v, lengths=kind([50, 20])), decode(q, k, v, lengths=[50, 20]))


# --- memory ---------------------------------------------------------------------------------------------------------


def test_a_view_of_a_reserved_cache_is_read_in_place():
    q, k, v = problem(8, 2, 1, 70, 64)
    reserved = k.new_full((2, 2, 2, 256, 64), torch.nan)  # (keys and values, B, h_kv, room, d_head)
    reserved[0, :, :, :70], reserved[1, :, :, :70] = k, v
    views = reserved[0, :, :, :70], reserved[1, :, :, :70]
    assert all(triton_setup.readable(x) is x and not x.is_contiguous() for x in views)
    assert torch.equal(decode(q, *views, n_splits=2), decode(q, k, v, n_splits=2))


def test_other_strides_give_the_same_bits():
    q, k, v = problem(4, 2, 2, 70, 24)
    expected = decode(q, k, v, causal=True, n_splits=2)
    tokens_first = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    width_not_last = [x.transpose(2, 3).contiguous().transpose(2, 3) for x in (q, k, v)]
    odd_gaps = [torch.cat([x, x[..., :1]], -1)[..., :24] for x in (q, k, v)]
    for views in (tokens_first, width_not_last, odd_gaps):
        assert torch.equal(decode(*views, causal=True, n_splits=2), expected)


def test_every_number_is_written_and_nothing_beside_it(monkeypatch):
    wholes = []

    empty = torch.Tensor.new_empty

    def poisoned(x, *shape, dtype=None, **options):
        if options:  # the interpreter's own
            return empty(x, *shape, dtype=dtype, **options)
        shape = shape[0] if isinstance(shape[0], tuple | list | torch.Size) else shape
        whole = torch.full((math.prod(shape) + 64,), torch.nan, dtype=dtype or x.dtype, device=x.device)
        wholes.append((whole, math.prod(shape)))
        return whole[: math.prod(shape)].view(*shape)

    q, k, v = problem(6, 2, 3, 70, 24)
    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    parts = attend_to_parts(q, k, v, causal=True, n_splits=5)
    o, lse = merge_parts(parts, q.dtype)
    assert not any(x.isnan().any() for x in (*parts, o, lse))
    assert len(wholes) == 4 and all(whole[size:].isnan().all() for whole, size in wholes)


# --- parts and their merge ------------------------------------------------------------------------------------------


def test_parts_merge_by_the_rule_of_the_lesson():
    q, k, v = problem(8, 2, 2, 150, 32)
    parts = attend_to_parts(q, k, v, causal=True, lengths=[150, 40], n_splits=4)
    assert parts.m.shape == parts.l.shape == (4, 2, 8, 2) and parts.o.shape == (4, 2, 8, 2, 32)
    one_by_one = [Partial(*part) for part in zip(*parts, strict=True)]
    for order in (one_by_one, one_by_one[::-1]):
        expected = tiled.finish(functools.reduce(tiled.merge, order))
        for actual, other in zip(merge_parts(parts, torch.float32), expected, strict=True):
            assert error(actual, other) <= 1e-6


@interpreter_only
def test_each_part_gathers_what_its_keys_give():
    """Four blocks of 32 keys, two a part."""
    q, k, v = problem(4, 2, 1, 120, 16)
    parts = attend_to_parts(q, k, v, n_splits=2)
    grouped = q.reshape(2, 2, 2, 16)
    for number, keys in enumerate((slice(0, 64), slice(64, 120))):
        expected = tiled.partial_attention(grouped, k[:, :, keys], v[:, :, keys])
        for actual, other in zip(parts, expected, strict=True):
            torch.testing.assert_close(actual[number].reshape(other.shape), other, atol=1e-5, rtol=1e-5)


@interpreter_only
def test_a_short_sequence_in_the_batch_is_cut_into_as_many_parts_as_a_long_one():
    q, k, v = problem(2, 1, 1, 200, 16)
    parts = attend_to_parts(q, k, v, lengths=[200, 64], n_splits=2)  # of the second, a block of 32 keys a part
    assert (parts.l > 0).all()


def test_a_part_without_keys_is_nothing():
    q, k, v = problem(4, 2, 1, 40, 16)
    parts = attend_to_parts(q, k, v, lengths=[1, 0], n_splits=3)
    for result, other in zip(parts, tiled.nothing((4, 1), 16, q), strict=True):
        assert all(torch.equal(result[part, b], other) for part, b in ((1, 0), (2, 0), (0, 1), (1, 1), (2, 1)))


def test_hundreds_of_parts_are_merged():
    made = torch.Generator().manual_seed(0)
    m, l = torch.randn(2, 300, 1, 2, 1, generator=made).to(DEVICE).mul(3).unbind()
    parts = Partial(m, l.exp(), torch.randn(300, 1, 2, 1, 16, generator=made).to(DEVICE))
    expected = tiled.finish(functools.reduce(tiled.merge, [Partial(*p) for p in zip(*parts, strict=True)]))
    assert max(map(error, merge_parts(parts, torch.float32), expected)) <= 1e-6


# --- how many parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("programs", [212, 264, 512, 10000])
def test_where_heads_fill_the_card_nothing_is_split(programs):
    assert splits_for(programs, 131072, processors=132) == 1


def test_one_sequence_fills_the_card_with_parts():
    parts = splits_for(8, 131072, processors=132)  # 8 key heads on a Hopper card, where 264 programs run at once
    assert 0.8 * 264 <= 8 * parts <= 264


@pytest.mark.parametrize("n_keys, most", [(0, 1), (1, 1), (128, 1), (129, 2), (1024, 8)])
def test_no_part_is_shorter_than_128_keys(n_keys, most):
    assert 1 <= splits_for(8, n_keys, processors=132) <= most


@law
@given(programs=st.integers(1, 400), n_keys=st.integers(0, 10**6), processors=st.integers(1, 200))
def test_all_parts_have_work_and_few_places_stay_empty(programs, n_keys, processors):
    parts = splits_for(programs, n_keys, processors)
    blocks = max(1, -(-n_keys // 128))
    longest = -(-blocks // parts)
    assert (parts - 1) * longest < blocks  # the last one starts before the end
    waves = programs * parts / (2 * processors)
    if blocks >= 2 * processors and programs < 1.6 * processors:
        assert waves / math.ceil(waves) >= 0.7


def test_numbers_that_make_no_sense_are_refused():
    for numbers in ((0, 10, 1), (1, -1, 1), (1, 10, 0)):
        with pytest.raises(ValueError, match="must be at least"):
            splits_for(*numbers)
    with pytest.raises(TypeError, match="give a whole number"):
        splits_for(1.5, 10, 1)


def test_left_out_the_number_of_parts_is_that_of_the_rule():
    q, k, v = problem(4, 2, 1, 300, 16)
    processors = torch.cuda.get_device_properties(0).multi_processor_count if GPU else flash_decode.PROCESSORS
    assert len(attend_to_parts(q, k, v).m) == splits_for(4, 300, processors) > 1


# --- what it cannot take --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((4, 16), (4, 16), (4, 16)), "four axes"),
        (((1, 2, 1, 20), (1, 2, 4, 20), (1, 2, 4, 20)), "d_head is 20"),
        (((1, 3, 1, 16), (1, 2, 4, 16), (1, 2, 4, 16)), "q has 3 heads and k has 2"),
        (((2, 2, 1, 16), (1, 2, 4, 16), (1, 2, 4, 16)), "axes before the heads"),
        (((1, 2, 1, 16), (1, 2, 5, 16), (1, 2, 4, 16)), "one value for each key"),
        (((1, 8, 9, 16), (1, 1, 9, 16), (1, 1, 9, 16)), "9 queries in groups of 8 heads are 72 rows, and 64 fit"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, message):
    with pytest.raises(ValueError, match=message):
        decode(*(torch.zeros(shape, device=DEVICE) for shape in shapes))


@pytest.mark.parametrize(
    "lengths, kind, message",
    [
        ([4], ValueError, r"lengths are \(1,\) but q has 2 sequences: give one for each, \(2,\)"),
        ([4, 5], ValueError, "lengths are from 4 to 5: from 0 to the 4 keys of k"),
        ([-1, 4], ValueError, "lengths are from -1 to 4"),
        ([1.0, 2.0], TypeError, "lengths are torch.float32: give whole numbers"),
        ([True, False], TypeError, "lengths are torch.bool: give whole numbers"),
    ],
)
def test_lengths_that_do_not_fit_are_named(lengths, kind, message):
    x = torch.zeros(2, 1, 4, 16, device=DEVICE)
    with pytest.raises(kind, match=message):
        decode(x, x, x, lengths=lengths)


def test_dtypes_and_options_that_do_not_fit_are_named():
    x = torch.zeros(1, 1, 4, 16, device=DEVICE)
    with pytest.raises(TypeError, match="float64"):
        decode(x.double(), x.double(), x.double())
    with pytest.raises(TypeError, match="causal is int, not a bool"):
        decode(x, x, x, 1)
    with pytest.raises(ValueError, match="scale is nan"):
        decode(x, x, x, scale=math.nan)
    with pytest.raises(ValueError, match="n_splits is 0: it must be at least 1"):
        decode(x, x, x, n_splits=0)
    with pytest.raises(TypeError, match=r"n_splits is 1\.5: give a whole number"):
        decode(x, x, x, n_splits=1.5)
    with pytest.raises(RuntimeError, match="one device"):
        decode(x, x.to("meta"), x)


def test_a_gradient_is_refused_not_forgotten():
    x = torch.zeros(1, 1, 4, 16, device=DEVICE, requires_grad=True)
    with pytest.raises(RuntimeError, match="flash_decode has no derivative"):
        decode(x, x, x)
    with torch.no_grad():
        assert decode(x, x, x).shape == x.shape


def test_its_docstring_names_its_source():
    assert "Flash-Decoding for long-context inference" in inspect.getdoc(decode)
