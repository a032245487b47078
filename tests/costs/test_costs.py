"""The counts of days 4, 5 and 6, figure by figure, and the laws behind them."""

import contextlib
import dataclasses
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.attention import tensors
from course_utils.costs import baselines
from course_utils.costs.configurations import MODELS, model
from course_utils.costs.counts import (
    attention_flops,
    attention_parameters,
    crossover_length,
    decode_flops,
    feed_forward_parameters,
    layer_flops,
    score_pairs,
)
from course_utils.costs.generation import generation_saving, generation_work, step_saving, step_work
from course_utils.costs.memory import (
    in_binary_units,
    in_decimal_units,
    kv_cache_bytes,
    latent_cache_bytes,
    score_bytes,
    value_bytes,
)
from course_utils.costs.mixed import LATER
from course_utils.costs.roofline import (
    MACHINES,
    Machine,
    Task,
    arithmetic_intensity,
    attainable,
    attention_core,
    decode_step,
    least_seconds,
    matrix_product,
    prefill,
    waits_for,
)

law = settings(deadline=None, max_examples=60, derandomize=True)

LLAMA = {"n_heads": 32, "d_ff": 11008, "gated": True}


@st.composite
def layers(draw):
    """The arguments of layer_flops for some layer: heads in groups, narrow or wide, two or three matrices."""
    n_kv_heads = draw(st.integers(1, 8))
    group = draw(st.integers(1, 8))
    d_head = draw(st.integers(1, 64))
    return {
        "d_model": draw(st.integers(1, 512)),
        "n_heads": n_kv_heads * group,
        "n_kv_heads": n_kv_heads,
        "d_head": d_head,
        "d_ff": draw(st.integers(1, 2048)),
        "gated": draw(st.booleans()),
    }


# --- day 4: parameters and FLOPs ------------------------------------------------------------------------------------


def test_a_layer_has_four_d_squared_attention_parameters():
    assert attention_parameters(512, n_heads=8) == 4 * 512**2 == 1_048_576  # 1.05 M
    assert 32 * attention_parameters(4096, n_heads=32) == 2_147_483_648  # 2.147 G


def test_the_core_takes_as_many_multiply_adds_for_any_number_of_heads():
    for n_heads in (1, 2, 8, 64, 512):
        assert layer_flops(2048, 512, n_heads).core // 2 == 4_294_967_296


@law
@given(T=st.integers(1, 5000), d_model=st.integers(1, 5000))
def test_the_default_layer_is_8_4_and_16(T, d_model):
    assert layer_flops(T, d_model) == (8 * T * d_model**2, 4 * T**2 * d_model, 16 * T * d_model**2)
    assert layer_flops(T, d_model, causal=True).core == 2 * T**2 * d_model


def test_three_matrices_of_11008_are_about_two_of_16384():
    assert feed_forward_parameters(4096, 11008, gated=True) == 135_266_304
    assert feed_forward_parameters(4096, 11008, gated=True) / feed_forward_parameters(4096) == 1.0078125


def test_the_core_meets_the_others_at_4_2_and_6_times_d_model():
    assert crossover_length(4096) == 16_384
    assert crossover_length(4096, "projections") == 8192
    assert crossover_length(4096, "rest") == 24_576
    assert crossover_length(4096, causal=True) == 32_768
    assert crossover_length(4096, "projections", causal=True) == 16_384
    assert crossover_length(4096, "rest", causal=True) == 49_152
    assert crossover_length(4096, **LLAMA) == 16_512
    assert crossover_length(4096, "projections", n_heads=32, n_kv_heads=8) == 5120  # fewer key and value projections


def test_the_core_is_twice_the_feed_forward_at_32k_and_8_times_at_128k():
    for T, times in ((32_768, 2), (131_072, 8)):
        flops = layer_flops(T, 4096)
        assert flops.core == times * flops.feed_forward


@law
@given(layer=layers(), causal=st.booleans())
def test_at_the_crossover_the_parts_are_equal(layer, causal):
    for part in ("feed_forward", "projections", "rest"):
        T = crossover_length(against=part, causal=causal, **layer)
        one = layer_flops(1, causal=causal, **layer)
        other = one.total - one.core if part == "rest" else getattr(one, part)
        assert one.core * T == pytest.approx(other)
        if isinstance(T, int) and T >= 1:
            flops = layer_flops(T, causal=causal, **layer)
            assert flops.core == (flops.total - flops.core if part == "rest" else getattr(flops, part))


@law
@given(n=st.integers(1, 40), m=st.integers(1, 40))
def test_pairs_are_those_a_lower_right_mask_leaves(n, m):
    mask = np.tri(n, m, m - n, dtype=bool)
    assert score_pairs(n, m, causal=True) == mask.sum()
    assert score_pairs(n, m) == n * m


@law
@given(n=st.integers(1, 40), m=st.integers(1, 40), window=st.integers(1, 50))
def test_pairs_in_a_window_are_those_its_mask_leaves(n, m, window):
    below = np.tri(n, m, m - n, dtype=bool)
    beyond = np.tri(n, m, m - n - window, dtype=bool)
    assert score_pairs(n, m, causal=True, window=window) == (below & ~beyond).sum()
    with pytest.raises(ValueError, match=f"window is {window}: .* causal=True"):
        score_pairs(n, m, window=window)


def test_pairs_of_a_square_are_the_triangle_with_its_diagonal():
    assert score_pairs(512, causal=True) == 512 * 513 // 2


@law
@given(n=st.integers(1, 40), m=st.integers(1, 40), d=st.integers(1, 16))
def test_half_means_the_pairs_less_half_of_the_diagonal(n, m, d):
    exact = 2 * 2 * d * score_pairs(n, m, causal=True)  # two products, two FLOPs a multiply-add
    assert attention_flops(1, 1, n, m, d_k=d, causal=True) == exact - 2 * 2 * d * min(n, m) / 2


def test_a_width_is_never_taken_for_a_number_of_keys():
    for count in (attention_flops, attention_core):
        with pytest.raises(TypeError, match="required keyword-only argument"):
            count(1, 8, 2048, 64)
        with pytest.raises(TypeError, match="positional"):
            count(1, 8, 2048, 2048, 64)


def test_attention_flops_are_the_papers():
    B, h, T, d = 2, 16, 4096, 128
    assert attention_flops(B, h, T, d_k=d) == 4 * B * h * T**2 * d
    assert attention_flops(B, h, T, d_k=d, causal=True) == 4 * B * h * T**2 * d // 2
    assert attention_flops(B, h, T, d_k=d, backward=True) == 4 * B * h * T**2 * d * 5 // 2
    assert attention_flops(1, 1, 3, 5, d_k=2, d_v=7) == 2 * 3 * 5 * (2 + 7)


@law
@given(layer=layers(), T=st.integers(1, 300))
def test_decoding_token_by_token_takes_as_many_flops_as_one_exact_causal_pass(layer, T):
    steps = [decode_flops(t, **layer) for t in range(1, T + 1)]
    whole_pass = layer_flops(T, causal=True, **layer)
    assert sum(step.projections for step in steps) == whole_pass.projections
    assert sum(step.feed_forward for step in steps) == whole_pass.feed_forward
    width = 2 * layer["n_heads"] * layer["d_head"]
    assert sum(step.core for step in steps) == 2 * width * score_pairs(T, causal=True)


@pytest.mark.parametrize("bias", [False, True])
def test_parameters_equal_those_of_torchs_layers(bias):
    attention = torch.nn.MultiheadAttention(48, 4, bias=bias, device="meta")
    assert attention_parameters(48, 4, bias=bias) == sum(x.numel() for x in attention.parameters())
    linear = [torch.nn.Linear(*sizes, bias=bias, device="meta") for sizes in ((48, 100), (48, 100), (100, 48))]
    three = sum(x.numel() for layer in linear for x in layer.parameters())
    two = three - sum(x.numel() for x in linear[0].parameters())
    assert feed_forward_parameters(48, 100, gated=True, bias=bias) == three
    assert feed_forward_parameters(48, 100, bias=bias) == two
    grouped = [torch.nn.Linear(*sizes, bias=bias, device="meta") for sizes in ((48, 64), (48, 16), (48, 16), (64, 48))]
    expected = sum(x.numel() for layer in grouped for x in layer.parameters())
    assert attention_parameters(48, 8, n_kv_heads=2, d_head=8, bias=bias) == expected


def test_flops_equal_what_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    B, h, T, d = 2, 4, 24, 8
    q, k, v = torch.randn(3, B, h, T, d)
    with FlopCounterMode(display=False) as counter:
        torch.softmax(q @ k.transpose(-2, -1), -1) @ v
    assert counter.get_total_flops() == attention_flops(B, h, T, d_k=d)


# --- days 5 and 6: bytes --------------------------------------------------------------------------------------------


def test_the_cache_of_llama_7b_takes_512_kib_a_token_and_2_gib_at_4096():
    llama = model("LLaMA 7B")
    assert llama.cache_bytes(1) == 512 * 1024
    assert llama.cache_bytes(4096) == 2 * 1024**3
    assert in_binary_units(llama.cache_bytes(1)) == "512 KiB" and in_binary_units(llama.cache_bytes(4096)) == "2.00 GiB"


def test_fewer_key_value_heads_shrink_the_cache_in_proportion():
    sizes = [kv_cache_bytes(32, n_kv_heads, 128, 8192) / 1024**3 for n_kv_heads in (32, 8, 1)]
    assert sizes == [4, 1, 0.125]


def test_the_scores_of_day_6_in_decimal_units():
    lengths = (512, 2048, 8192, 32768, 128000)
    widget = [in_decimal_units(score_bytes(1, 32, T), "GB") for T in lengths]
    assert widget == ["0.0168 GB", "0.268 GB", "4.29 GB", "68.7 GB", "1049 GB"]
    assert in_decimal_units(score_bytes(1, 32, 128_000), "GB", digits=5) == "1048.6 GB"
    assert in_decimal_units(score_bytes(1, 32, 128_000)) == "1.05 TB"


def test_the_same_bytes_in_gb_and_in_binary_units():
    scores = score_bytes(8, 32, 8192)
    assert in_decimal_units(scores) == "34.4 GB" and in_binary_units(scores) == "32.0 GiB"
    assert score_bytes(1, 1, 100_000) == 20 * 10**9


@pytest.mark.parametrize(
    "number, gb, gib",
    [
        (0, "0 bytes", "0 bytes"),
        (999, "999 bytes", "999 bytes"),
        (1000, "1.00 kB", "1000 bytes"),
        (1024, "1.02 kB", "1.00 KiB"),
        (999_999, "1.00 MB", "977 KiB"),
        (1024**2 - 1, "1.05 MB", "1.00 MiB"),
        (10**9, "1.00 GB", "954 MiB"),
        (5 * 10**18, "5000 PB", "4441 PiB"),
    ],
)
def test_bytes_in_words_keep_three_digits_and_the_right_unit(number, gb, gib):
    assert (in_decimal_units(number), in_binary_units(number)) == (gb, gib)


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="unit is 'GB': it must be one of bytes, KiB"):
        in_binary_units(1, "GB")


def test_the_width_of_a_value_may_be_a_number_or_a_dtype():
    assert kv_cache_bytes(2, 3, 5, 7, 11) == 2 * 2 * 3 * 5 * 7 * 11 * 2
    assert kv_cache_bytes(1, 1, 8, 1, bytes_per_value="int8") == 16
    assert kv_cache_bytes(1, 1, 8, 1, bytes_per_value=torch.bfloat16) == 32
    assert kv_cache_bytes(1, 1, 8, 1, bytes_per_value="int4") == 8
    assert score_bytes(2, 3, 4, 5, bytes_per_value=4) == 480
    for width, names in {
        8: ("float64", "fp64", torch.float64, np.dtype("float64"), np.int64(8)),
        4: ("float32", "fp32", torch.float32, np.float32(4)),
        2: ("fp16", "bf16", torch.float16, np.int64(2), 2.0),
        1: ("fp8", "float8", "float8_e5m2", torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, np.int8(1)),
    }.items():
        for name in names:
            assert value_bytes(name) == width and type(value_bytes(name)) is int, name
    assert value_bytes(np.float32(0.5)) == 0.5 and type(value_bytes(np.float32(0.5))) is float
    for nonsense in ("float12", "fp12", "8", 0, -2, None, True, np.True_, np.int64(0), float("nan"), torch.zeros(2)):
        with pytest.raises(ValueError, match="bytes_per_value"):
            score_bytes(1, 1, 1, bytes_per_value=nonsense)


@law
@given(layer=layers(), T=st.integers(1, 64), B=st.integers(1, 4))
def test_the_cache_is_as_large_as_its_tensors(layer, T, B):
    keys = torch.empty(B, layer["n_kv_heads"], T, layer["d_head"], dtype=torch.float16, device="meta")
    assert kv_cache_bytes(6, layer["n_kv_heads"], layer["d_head"], T, B) == 6 * 2 * keys.nbytes


# --- generation -----------------------------------------------------------------------------------------------------


def test_one_step_at_a_prefix_of_512_saves_512_fold():
    assert step_saving(512) == 512
    uncached = step_work(512, cached=False)
    cached = step_work(512, cached=True)
    assert uncached.rows // cached.rows == uncached.scores // cached.scores == 512
    assert step_work(512, cached=False, causal=True).scores == 512 * 513 // 2


@law
@given(N=st.integers(1, 400))
def test_a_whole_generation_saves_half_of_what_its_last_step_does(N):
    assert generation_saving(N) == (N + 1) / 2
    for cached in (False, True):
        steps = [step_work(prefix, cached) for prefix in range(1, N + 1)]
        assert generation_work(N, cached) == tuple(sum(column) for column in zip(*steps, strict=True))


def test_attention_written_out_passes_twelve_times_over_its_table_and_a_feed_forward_network_four_times():
    """Each read and each write of a whole table counts, views left out."""

    class Passes(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, given=(), options=None):
            result = operation(*given, **options or {})
            moved = [x for x in (*given, result) if isinstance(x, torch.Tensor)]
            if len({x.data_ptr() for x in moved}) == len(moved):  # a view moves nothing
                self.number += sum(x.numel() == self.size for x in moved)
            return result

    def passes(size, function, *given):
        with torch.no_grad(), Passes() as mode:
            mode.number = 0
            mode.size = size
            function(*given)
        return mode.number

    q, k, v = torch.randn(3, 1, 4, 50, 8)
    up, down = (torch.nn.Linear(*widths, bias=False) for widths in ((32, 128), (128, 32)))
    assert passes(4 * 50 * 50, tensors.attention, q, k, v) == 12
    assert passes(50 * 128, lambda x: down(torch.relu(up(x))), torch.randn(1, 50, 32)) == 4


# --- real models ----------------------------------------------------------------------------------------------------

PUBLISHED = {  # parameters, as the papers and model cards round them
    "GPT-2 small": 124e6,
    "GPT-2 XL": 1.558e9,
    "GPT-3 175B": 175e9,
    "LLaMA 7B": 6.74e9,
    "Llama 2 70B": 69.0e9,
    "Llama 3 8B": 8.03e9,
    "Llama 3 70B": 70.6e9,
    "Mistral 7B": 7.24e9,
    "Falcon 7B": 6.92e9,
    "Qwen2.5 7B": 7.61e9,
    "Gemma 2B": 2.51e9,
    "Gemma 2 9B": 9.24e9,
    "Qwen3 4B": 4.02e9,
    "Qwen3 8B": 8.19e9,
    "Gemma 3 1B": 1.0e9,
    "Qwen3 0.6B": 0.6e9,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_sizes_of_a_model_add_up_to_its_published_parameters(name):
    assert model(name).parameters() == pytest.approx(PUBLISHED[name], rel=0.007)


def test_every_model_names_its_source_and_has_heads_that_fit():
    for one in MODELS.values():
        assert "et al." in one.source or "20" in one.source or "config.json" in one.source
        assert one.n_heads % one.n_kv_heads == 0
    assert {one.kind for one in MODELS.values()} == {"MHA", "GQA", "MQA", "MLA"}
    assert (model("Falcon 7B").kind, model("LLaMA 7B").kind, model("Mistral 7B").kind) == ("MQA", "MHA", "GQA")


def test_models_of_2026_name_their_source_and_none_has_heads_as_wide_as_the_model_in_all():
    for one in LATER:
        assert "config.json" in one.source and "2026" in one.source
        assert one.n_heads % one.n_kv_heads == 0
        assert one.n_heads * one.d_head > one.d_model
        assert one.name not in MODELS


def test_a_sliding_window_stops_the_cache_from_growing():
    mistral = model("Mistral 7B")
    assert mistral.cache_bytes(4096) == mistral.cache_bytes(100_000) == 4096 * mistral.cache_bytes(1)
    assert mistral.cache_bytes(4095) < mistral.cache_bytes(4096)


def test_a_head_need_not_be_the_width_of_the_model_over_the_number_of_heads():
    own_width = {one.name: one.n_heads * one.d_head / one.d_model for one in MODELS.values()}
    other = {name for name, share in own_width.items() if share != 1}
    assert other == {
        "Gemma 2 9B", "Qwen3 0.6B", "Qwen3 4B", "Gemma 3 1B", "DeepSeek-V2", "DeepSeek-V3", "gpt-oss-120b",
    }  # fmt: skip
    assert [own_width[f"Qwen3 {size}"] for size in ("0.6B", "4B", "8B")] == [2, 1.6, 1]  # no law of a year or a family
    assert model("Gemma 2 9B").spans == [(21, None), (21, 4096)]


def test_a_model_of_layers_with_and_without_a_window_keeps_both_kinds_of_cache():
    gemma = model("Gemma 3 1B")
    assert gemma.spans == [(4, None), (22, 512)]  # layers 5, 11, 17 and 23 of 26 see everything
    a_token = 2 * 256 * 2  # key and value, one head of 256, 2 bytes
    for T in (1, 512, 513, 32_768):
        assert gemma.cache_bytes(T, B=3) == 3 * a_token * (4 * T + 22 * min(T, 512))
    assert [one.spans for one in (model("Mistral 7B"), model("LLaMA 7B"))] == [[(32, 4096)], [(32, None)]]


def test_a_latent_cache_holds_576_numbers_a_token_and_layer_for_all_128_heads():
    v3 = model("DeepSeek-V3")
    assert v3.cache_bytes(1) == latent_cache_bytes(61, 512, 64, 1) == 61 * 576 * 2
    full = kv_cache_bytes(v3.layers, v3.n_heads, v3.d_head, 1)
    assert full / v3.cache_bytes(1) == pytest.approx(56.9, abs=0.05)
    with pytest.raises(ValueError, match="DeepSeek-V3 has experts"):
        v3.layer_flops(10)


def test_a_model_counts_as_its_sizes_do():
    llama = model("LLaMA 7B")
    assert llama.crossover_length() == 16_512
    assert llama.layer_flops(100) == layer_flops(100, 4096, **LLAMA)
    assert llama.decode_flops(100) == decode_flops(100, 4096, **LLAMA)
    with pytest.raises(ValueError, match="no model 'LLaMA 8B'; there are GPT-2 small, "):
        model("LLaMA 8B")


# --- roofline -------------------------------------------------------------------------------------------------------

TOY = Machine("toy", flops_per_second=100.0, bytes_per_second=10.0)


def test_the_roof_is_a_slope_up_to_the_ridge_and_flat_beyond():
    assert TOY.ridge_point == 10
    assert [attainable(TOY, x) for x in (1, 5, 10, 20)] == [10, 50, 100, 100]
    for machine in MACHINES.values():
        assert attainable(machine, machine.ridge_point) == pytest.approx(machine.flops_per_second)
        assert machine.source


def test_the_slower_of_arithmetic_and_memory_sets_the_time():
    waiting = Task(flops=100, bytes=100)
    busy = Task(flops=10_000, bytes=100)
    assert (least_seconds(TOY, waiting), waits_for(TOY, waiting)) == (10, "memory")
    assert (least_seconds(TOY, busy), waits_for(TOY, busy)) == (100, "arithmetic")
    assert waiting + busy == Task(10_100, 200)
    assert busy.flops / least_seconds(TOY, busy) == attainable(TOY, busy.intensity)
    assert arithmetic_intensity(100, 50) == 2
    with pytest.raises(ValueError, match="bytes is 0"):
        arithmetic_intensity(1, 0)


@law
@given(B=st.integers(1, 64), group=st.sampled_from([1, 4, 8, 32]), T=st.integers(4096, 100_000))
def test_decode_attention_in_fp16_has_the_intensity_of_its_group_whatever_the_batch(B, group, T):
    step = attention_core(B, 32, 1, T, d_head=128, n_kv_heads=32 // group)
    assert step.intensity == pytest.approx(group, rel=0.01)


def test_a_bigger_batch_helps_the_weights_and_not_the_cache():
    for B in (1, 8, 64):
        assert matrix_product(B, 4096, 4096).intensity == pytest.approx(B, rel=0.04)
    llama = model("LLaMA 7B")
    h200 = MACHINES["NVIDIA H200 SXM"]
    step = [decode_step(llama, 4096, B) for B in (1, 16, 256)]
    assert step[0].intensity < step[1].intensity < step[2].intensity < 10
    assert all(waits_for(h200, one) == "memory" for one in step)
    assert waits_for(h200, prefill(llama, 4096)) == "arithmetic"


def test_a_decode_step_reads_every_weight_once_and_each_cache():
    llama = model("LLaMA 7B")
    one = decode_step(llama, 1000)
    two = decode_step(llama, 1000, B=2)
    assert two.bytes - one.bytes == llama.cache_bytes(1000)
    assert 2 * one.bytes - two.bytes == 2 * (llama.parameters() - llama.vocabulary * llama.d_model)
    assert two.flops == 2 * one.flops


def test_a_window_bounds_the_decode_step_too():
    mistral = model("Mistral 7B")
    assert decode_step(mistral, 4096) == decode_step(mistral, 32_768)


@pytest.mark.parametrize("name", ["Mistral 7B", "LLaMA 7B", "Gemma 3 1B"])
@pytest.mark.parametrize("T", [1, 3, 100])
def test_a_prefill_counts_the_keys_that_each_token_sees(name, T):
    one = dataclasses.replace(model(name), window=7 if model(name).window else None)
    observed = [layers * min(i, window or T) for layers, window in one.spans for i in range(1, T + 1)]  # by brute force
    cores = sum(2 * 2 * one.n_heads * one.d_head * keys for keys in observed)  # two products, two FLOPs a multiply-add
    flops = one.layer_flops(T)
    output_layer = 2 * one.vocabulary * one.d_model
    assert prefill(one, T).flops == one.layers * (flops.projections + flops.feed_forward) + cores + output_layer
    steps = sum(decode_step(one, t).flops for t in range(1, T + 1))
    assert prefill(one, T, B=3).flops == 3 * (steps - (T - 1) * output_layer)  # which every step computes


def test_a_window_makes_a_long_prefill_cheaper():
    mistral = model("Mistral 7B")
    full = dataclasses.replace(mistral, window=None)
    assert prefill(mistral, 4096).flops == prefill(full, 4096).flops
    assert prefill(mistral, 32_768).flops < prefill(full, 32_768).flops


def test_query_heads_share_key_heads_evenly_or_not_at_all():
    assert attention_core(1, 8, 4, d_head=2, n_kv_heads=8) == attention_core(1, 8, 4, d_head=2)
    for wrong in (3, 16):
        with pytest.raises(ValueError, match=f"h is 8 and n_kv_heads {wrong}: the first must be a multiple"):
            attention_core(1, 8, 4, d_head=2, n_kv_heads=wrong)


def test_storing_the_scores_is_what_makes_naive_attention_wait_for_memory():
    h200 = MACHINES["NVIDIA H200 SXM"]
    flash, naive = (attention_core(1, 32, 8192, d_head=128, scores_stored=stored) for stored in (False, True))
    assert flash.flops == naive.flops
    assert naive.bytes - flash.bytes == 4 * score_bytes(1, 32, 8192)
    assert (waits_for(h200, flash), waits_for(h200, naive)) == ("arithmetic", "memory")
    assert flash.bytes == 4 * 32 * 8192 * 128 * 2  # q, k, v and o, once each


# --- baselines ------------------------------------------------------------------------------------------------------

CONTENDERS = {
    "naive": baselines.naive,
    "library": baselines.library,
    "math": partial(baselines.library, backend="math"),
    "flash": partial(baselines.library, backend="flash"),
}


@pytest.mark.parametrize("name", CONTENDERS)
@pytest.mark.parametrize("n, m", [(6, 6), (3, 7), (1, 5)])
@pytest.mark.parametrize("causal", [False, True])
def test_baselines_are_attention_and_so_are_their_gradients(name, n, m, causal):
    made = torch.Generator().manual_seed(0)
    q, k, v, do = (torch.randn(2, 3, size, 4, generator=made, dtype=torch.float64) for size in (n, m, m, n))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    mask = torch.ones(n, m, dtype=torch.bool).tril(m - n) if causal else None
    expected = tensors.attention(*inputs, mask)[0]
    got = CONTENDERS[name](*inputs, causal)
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=0)
    gradients = (torch.autograd.grad(output, inputs, do) for output in (got, expected))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_the_backend_that_is_named_is_the_one_that_runs(monkeypatch):
    used = []
    monkeypatch.setattr(baselines, "sdpa_kernel", lambda backend: used.append(backend.name) or contextlib.nullcontext())
    for backend in ("flash", "cuDNN", "efficient", "math", None):
        baselines.library(*torch.ones(3, 1, 1, 2, 2), backend=backend)
    assert used == ["FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]


@pytest.mark.parametrize("name", ["naive", "library"])
def test_baselines_refuse_what_they_cannot_compare(name):
    x = torch.ones(1, 1, 3, 2)
    attend = CONTENDERS[name]
    with pytest.raises(ValueError, match="3 causal queries and 2 keys: the first 1 would see no key"):
        attend(x, x[:, :, :2], x[:, :, :2], causal=True)
    with pytest.raises(ValueError, match="one value for each key"):
        attend(x, x, x[:, :, :2])
    with pytest.raises(TypeError, match="causal is Tensor, not a bool"):
        attend(x, x, x, torch.ones(3, 3, dtype=torch.bool))
    for wrong in ("FLASH", "cudnn", ""):
        with pytest.raises(ValueError, match=f"backend is '{wrong}': it must be one of flash, cuDNN, efficient, math"):
            baselines.library(x, x, x, backend=wrong)


# --- errors and exactness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: attention_parameters(0, 1), ValueError, "d_model is 0: it must be at least 1"),
        (lambda: attention_parameters(512.0, 8), TypeError, "d_model is 512.0: give a whole number"),
        (lambda: layer_flops(True, 512), TypeError, "T is True: give a whole number"),
        (lambda: attention_parameters(512, 7), ValueError, "d_model is 512 and n_heads 7"),
        (lambda: attention_parameters(512, 8, n_kv_heads=3), ValueError, "n_heads is 8 and n_kv_heads 3"),
        (lambda: layer_flops(-1, 512), ValueError, "T is -1"),
        (lambda: score_bytes(1, 1, 0), ValueError, "n is 0"),
        (lambda: crossover_length(512, "everything"), ValueError, "against is 'everything': it must be one of"),
        (lambda: generation_work(0, cached=True), ValueError, "N is 0"),
    ],
)
def test_sizes_that_nothing_has_are_refused(call, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(")):
        call()


def test_numpy_integers_do_not_overflow():
    T = np.int32(128_000)
    assert score_bytes(1, 32, T) == 1_048_576_000_000
    assert layer_flops(T, np.int32(4096)).core == 4 * 128_000**2 * 4096
    assert type(layer_flops(T, 4096).core) is int


def test_the_counts_need_neither_numpy_nor_torch():
    code = "import sys, course_utils.costs.{}; print([x for x in ('numpy', 'torch') if x in sys.modules])"
    names = ("configurations", "roofline", "generation", "measure", "records")
    together = code.format(", course_utils.costs.".join(names))
    assert subprocess.run([sys.executable, "-c", together], capture_output=True, text=True).stdout == "[]\n"
