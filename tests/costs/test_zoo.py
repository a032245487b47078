"""What models of 2024 to 2026 keep of a text, and the laws behind it."""

import pytest

from course_utils.costs.configurations import MODELS
from course_utils.costs.memory import kv_cache_bytes
from course_utils.costs.roofline import MACHINES, attention_core
from course_utils.costs.zoo import ZOO, Layers, compressed_layers, grouped_layers, latent, recurrent

LONG = 2**17


@pytest.mark.parametrize(("here", "there"), [("DeepSeek-V3", "DeepSeek-V3"), ("Llama 3.1 8B", "Llama 3 8B")])
@pytest.mark.parametrize("T", [1, 1000, LONG])
def test_plain_layers_keep_what_a_configuration_does(here, there, T):
    assert ZOO[here].kept_bytes(T) == MODELS[there].cache_bytes(T)


def test_windows_keep_what_a_configuration_with_windows_does():
    layers = grouped_layers(4, 4, 1, 256), grouped_layers(22, 4, 1, 256, window=512)
    for T in (1, 511, 512, 513, LONG):
        assert 2 * sum(kind.numbers_kept(T) for kind in layers) == MODELS["Gemma 3 1B"].cache_bytes(T)


@pytest.mark.parametrize("n_kv_heads", [1, 8, 32])
def test_a_step_of_grouped_heads_is_that_of_the_roofline(n_kv_heads):
    flops, numbers = grouped_layers(1, 32, n_kv_heads, 128).step(4096)
    core = attention_core(1, 32, 1, 4096, d_head=128, n_kv_heads=n_kv_heads)
    assert flops == core.flops
    assert 2 * numbers == core.bytes - 2 * 2 * 32 * 128  # without the query and the output


def test_absorbed_decoding_of_deepseek_v3_is_the_course_s_figure():
    flops, numbers = latent(1, 128, 512, 64).step(1)
    assert (flops, 2 * numbers) == (278_528, 1152)
    assert ZOO["DeepSeek-V3"].step(LONG).intensity == pytest.approx(241.8, abs=0.05)
    assert MACHINES["NVIDIA H200 SXM"].ridge_point < 241.8 < MACHINES["NVIDIA H100 SXM"].ridge_point


def test_only_deepseek_v3_waits_for_arithmetic_on_an_h200():
    ridge = MACHINES["NVIDIA H200 SXM"].ridge_point
    assert [name for name, model in ZOO.items() if model.step(LONG).intensity > ridge] == ["DeepSeek-V3"]


def test_layers_that_share_keep_nothing_and_read_all_the_same():
    alone = grouped_layers(7, 8, 2, 512)
    sharing = grouped_layers(7, 8, 2, 512, shared=3)
    assert sharing.numbers_kept(100) * 7 == alone.numbers_kept(100) * 4
    assert sharing.step(100) == alone.step(100)


def test_chosen_entries_cost_an_index_and_save_reading():
    """DeepSeek-V3.2 keeps an index key of 128 numbers for each latent, and reads 2048 latents."""
    plain = ZOO["DeepSeek-V3"]
    choosing = ZOO["DeepSeek-V3.2"]
    assert choosing.kept_bytes(LONG) - plain.kept_bytes(LONG) == 61 * 128 * LONG * 2
    assert choosing.step(LONG).bytes == 61 * 2 * (2048 * 576 + 128 * LONG)
    assert choosing.step(1000).bytes > plain.step(1000).bytes


def test_compressed_entries_come_once_for_so_many_tokens():
    assert [compressed_layers(1, 1, 10, 4).entries(T) for T in (3, 4, 7, 8)] == [0, 1, 1, 2]
    assert compressed_layers(1, 1, 10, 1, window=128).entries(1000) == 128


def test_a_state_does_not_grow_and_is_read_and_written():
    state = recurrent(36, 32, 128)
    assert state.numbers_kept(1) == state.numbers_kept(LONG) == 36 * 32 * 128 * 128
    assert state.step(5) == (36 * 2 * 3 * 32 * 128 * 128, 2 * state.numbers_kept(1))


def test_the_hybrids_keep_a_fraction_of_what_full_layers_would():
    full = kv_cache_bytes(48, 2, 256, LONG)
    assert 0.25 < ZOO["Qwen3-Next 80B"].kept_bytes(LONG) / full < 0.26


def test_layers_add_up_to_those_of_the_models():
    counts = {name: sum(kind.count for kind in model.layers) for name, model in ZOO.items()}
    assert counts == {
        "Phi-3 mini 128k": 32, "Llama 3.1 8B": 32, "Gemma 3 27B": 62, "DeepSeek-V3": 61, "DeepSeek-V3.2": 61,
        "gpt-oss-120b": 36, "Qwen3-Next 80B": 48, "Gemma 4 E4B": 42, "Kimi Linear 48B": 27,
        "DeepSeek-V4 Flash": 43 + 41,  # each has a window, and all but two something compressed beside it
    }  # fmt: skip


def test_ten_models_of_three_years_each_with_a_source():
    assert len(ZOO) == 10 and {model.year for model in ZOO.values()} == {2024, 2025, 2026}
    assert all(model.source for model in ZOO.values())
    kept = {name: model.kept_bytes(2**17) for name, model in ZOO.items()}
    ratio = kept["Phi-3 mini 128k"] / min(kept.values())
    assert round(ratio) == 57


def test_bytes_follow_the_width_and_sizes_are_checked():
    model = ZOO["gpt-oss-120b"]
    assert model.kept_bytes(1000, "fp8") * 2 == model.kept_bytes(1000)
    assert model.step(1000, 1).intensity == 2 * model.step(1000).intensity
    with pytest.raises(ValueError, match="T is 0"):
        model.kept_bytes(0)
    assert Layers(3).numbers_kept(10) == 0
