"""The two widgets of day 5 without a browser: what they refuse, print, draw and count."""

import math

import numpy as np
import pytest
import torch
from as_page import on_page, send

from course_utils.attention.cache import ContiguousCache
from course_utils.costs.configurations import MODELS
from course_utils.costs.memory import kv_cache_bytes
from course_utils.costs.roofline import MACHINES
from course_utils.models.decoder import Decoder, new_caches
from course_utils.views import DecodeStepper, MemoryCalculator
from course_utils.views.widgets.calculator import CARDS, OWN

PROMPT = ["the", "cat", "sat"]
NEW = ["on", "the", "mat", "."]


def stepper(**more):
    return DecodeStepper(PROMPT, NEW, **more)


class TestStepper:
    @pytest.mark.parametrize("cached", [False, True])
    def test_its_counts_are_those_of_a_decoder_that_generates(self, cached):
        """Tokens through the layers, scores of a head, and the growth of a cache, counted on the real thing."""
        model = Decoder(9, 8, 2, 2, d_ff=0).eval()
        observed = []
        caches = new_caches(model, ContiguousCache, 1, capacity=7) if cached else None
        text = torch.arange(7)[None]
        n_layers = 2
        with torch.no_grad():
            for step in range(4):
                T = 3 + step
                tokens = text[:, T - 1 : T] if cached and step else text[:, :T]
                before = int(caches[0].lengths) if cached else 0
                _, weights = model(tokens, caches, return_weights=True)
                observed.append(
                    (tokens.shape[1], weights[0][0, 0].numel(), before, int(caches[0].lengths) if cached else 0)
                )
        walk = stepper(n_layers=n_layers, n_heads=2, d_head=4, bytes_per_value=4)
        a_token = kv_cache_bytes(n_layers, 2, 4, 1, bytes_per_value=4)
        for step, (rows, scores, before, after) in enumerate(observed):
            walk.step = step
            expected = (rows, scores, before * a_token, (after - before) * a_token)
            assert walk.work["with" if cached else "without"] == expected

    @pytest.mark.parametrize("cached", [False, True])
    def test_the_cells_drawn_are_the_counts(self, cached):
        walk = stepper()
        for step in range(4):
            walk.step = step
            work = walk.work["with" if cached else "without"]
            cells = np.array(
                [list(row) for row in on_page(walk).frames[step]["cells"]["with" if cached else "without"]]
            )
            assert cells.shape == (7, 10)
            for column in range(3):
                assert (cells[:, column] == "n").sum() == work.rows
            assert np.isin(cells[:, 3:], ["n", "m"]).sum() == work.scores
            assert (cells[:, 1] == "r").sum() * work.written == work.read * work.rows
            assert (cells[3 + step :] == "b").all()
            below = np.tril(np.ones((3 + step, 3 + step), dtype=bool))
            assert not np.isin(cells[: 3 + step, 3 : 6 + step][below], ["m", "b"]).any()

    def test_the_total_is_the_sum_of_the_passes(self):
        walk = stepper()
        passes = []
        for step in range(4):
            walk.step = step
            passes.append(walk.work)
            for mode in ("without", "with"):
                assert walk.total[mode] == tuple(map(sum, zip(*(each[mode] for each in passes), strict=True)))
        assert walk.total["with"].rows == 6  # each token but the last once

    def test_the_text_tells_the_pass_and_both_counts(self):
        walk = stepper(cached=False)
        walk.step = 2
        text = walk.as_text()
        assert "without a cache" in text and "Pass 3 of 4." in text
        assert "5 × 5 scores" in text
        assert "Only “the” goes through" in on_page(DecodeStepper(PROMPT, NEW)).frames[2]["message"]["with"]
        assert "The prompt's token goes" in DecodeStepper(["a"], ["b"]).as_text()

    def test_both_caches_and_steps_are_in_the_picture(self):
        walk = stepper()
        first = walk.figure()
        walk.step = 3
        assert len(walk.figure().axes) == len(first.axes) == 3
        assert sum(len(ax.patches) for ax in walk.figure().axes) > sum(len(ax.patches) for ax in first.axes)
        assert "1 go through" in walk.alt()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([], ["a"]), "at least one token each"),
            ((["a"], []), "at least one token each"),
            (("the cat", ["a"]), "one string"),
            ((["a"] * 10, ["b"] * 7), "10 [+] 7 tokens: at most 16"),
        ],
    )
    def test_labels_that_do_not_fit_are_refused(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            DecodeStepper(*arguments)

    def test_other_words_begin_at_the_prompt_with_counts_of_their_own(self):
        walk = stepper()
        walk.step = 3
        walk.write(["hello"], ["dear", "reader"])
        fresh = on_page(DecodeStepper(["hello"], ["dear", "reader"]))
        assert walk.step == 0
        assert (on_page(walk).frames, on_page(walk).tokens) == (fresh.frames, ["hello", "dear", "reader"])

    def test_words_typed_on_the_page_are_taken(self):
        walk = stepper()
        send(walk, typed=["once upon a", "time there was"])
        assert on_page(walk).tokens == ["once", "upon", "a", "time", "there", "was"]
        assert (on_page(walk).problem, on_page(walk).answered) == ("", ["once upon a", "time there was"])

    @pytest.mark.parametrize(
        ("typed", "message"),
        [
            (["", "time"], "Type at least one word into each field."),
            (["a b", "  "], "Type at least one word into each field."),
            (["a " * 10, "b " * 8], "These are 10 and 8 words: at most 16 fit in all."),
            (["antidisestablishmentarianism", "a"], "“antidisestablish…” has 28 letters: at most 16 fit."),
        ],
    )
    def test_what_does_not_fit_is_said_and_nothing_changes(self, typed, message):
        walk = stepper()
        walk.step = 2
        send(walk, typed=typed)
        assert (on_page(walk).problem, on_page(walk).answered) == (message, typed)
        assert (walk.step, on_page(walk).tokens) == (2, [*PROMPT, *NEW])
        send(walk, typed=["a", "b"])
        assert (on_page(walk).problem, on_page(walk).tokens) == ("", ["a", "b"])

    def test_a_step_or_size_that_is_not_there_is_refused(self):
        with pytest.raises(ValueError, match="step is 4 but there are 4: 0 to 3"):
            stepper().step = 4
        with pytest.raises(ValueError, match="n_layers"):
            stepper(n_layers=0)


class TestCalculator:
    @pytest.mark.parametrize("name", list(MODELS))
    def test_its_bytes_are_those_of_the_configuration(self, name):
        calculator = MemoryCalculator(name, context=3000, batch=5, bytes_per_value=1)
        assert calculator.cache_bytes == MODELS[name].cache_bytes(3000, 5, 1)
        if MODELS[name].d_ff is None:
            assert (calculator.weight_bytes, calculator.fits, calculator.longest) == (None, None, None)
        else:
            assert calculator.weight_bytes == 2 * MODELS[name].parameters()

    def test_a_card_holds_as_much_here_as_on_the_roofline(self):
        assert (
            MACHINES["NVIDIA H100 SXM"].memory_bytes == MACHINES["NVIDIA A100 80GB SXM"].memory_bytes == CARDS["80 GiB"]
        )
        assert MACHINES["GeForce RTX 4090"].memory_bytes == CARDS["24 GiB"]

    def test_layers_without_a_window_go_on_growing(self):
        calculator = MemoryCalculator("Gemma 3 1B", context=512)
        assert "2 × 1 heads × 256 × (4 layers × 512 tokens + 22 layers × 512 tokens)" in calculator.as_text()
        calculator.context = 32_768
        message = "(4 layers × 32,768 tokens + 22 layers × 512 tokens (the window keeps the last 512))"
        assert message in calculator.as_text() and calculator.longest < math.inf

    def test_the_figures_that_the_course_quotes(self):
        calculator = MemoryCalculator("LLaMA 7B", context=1)
        assert calculator.cache_bytes == 512 * 2**10
        calculator.context = 4096
        assert calculator.cache_bytes == 2 * 2**30
        calculator.context = 8192
        result = []
        for calculator.n_kv_heads in (32, 8, 1):
            result.append(calculator.cache_bytes / 2**30)
        assert result == [4, 1, 0.125]

    @pytest.mark.parametrize("name", [name for name, each in MODELS.items() if each.d_ff])
    @pytest.mark.parametrize("card", list(CARDS))
    def test_the_longest_context_fits_and_one_more_does_not(self, name, card):
        calculator = MemoryCalculator(name, batch=32, card=card)
        if calculator.longest == math.inf:
            assert MODELS[name].window is not None
            calculator.context = 10**9
            assert calculator.fits
            return
        if calculator.longest:
            calculator.context = calculator.longest
            assert calculator.fits
        calculator.context = calculator.longest + 1
        assert not calculator.fits

    def test_fewer_heads_make_the_matrices_of_keys_and_values_smaller(self):
        calculator = MemoryCalculator("LLaMA 7B")
        full = calculator.weight_bytes
        calculator.n_kv_heads = 8
        assert full - calculator.weight_bytes == 2 * 32 * 2 * 4096 * 24 * 128  # bytes, layers, W_K and W_V, 24 heads

    def test_another_model_has_heads_of_its_own_again(self):
        calculator = MemoryCalculator("LLaMA 7B", n_kv_heads=4)
        calculator.model = "Llama 3 8B"
        assert calculator.n_kv_heads is None
        assert on_page(calculator).shown["heads"] == 8

    def test_a_window_bounds_the_cache(self):
        calculator = MemoryCalculator("Mistral 7B", context=4096)
        full = calculator.cache_bytes
        calculator.context = 100_000
        assert calculator.cache_bytes == full
        assert "the window keeps the last 4,096" in calculator.as_text()
        calculator.n_kv_heads = 1
        assert calculator.cache_bytes == full / 8

    def test_it_says_whether_all_fits(self):
        room = "fits. The card has room for 138,136 tokens a sequence, more than the 2,048 that the model was made for."
        assert room in MemoryCalculator().as_text()
        assert "does not fit" in MemoryCalculator(context=131072, batch=64).as_text()
        assert "The weights alone are more than 24 GiB." in MemoryCalculator("Llama 3 70B", card="24 GiB").as_text()
        assert "does not count the weights" in MemoryCalculator("DeepSeek-V3").as_text()

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"model": "LLaMA 8B"}, ValueError, "no model 'LLaMA 8B'; there are"),
            ({"card": "an abacus"}, ValueError, "no card 'an abacus'; there are 24 GiB"),
            ({"context": 0}, ValueError, "context is 0"),
            ({"batch": 1.5}, TypeError, "batch is 1.5"),
            ({"bytes_per_value": 3}, ValueError, "give one of 1, 2, 4"),
            ({"n_kv_heads": 5}, ValueError, "does not divide 32 query heads"),
            ({"model": "DeepSeek-V2", "n_kv_heads": 8}, ValueError, "keeps a latent"),
        ],
        ids=str,
    )
    def test_what_there_is_not_is_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            MemoryCalculator(**arguments)


class TestOwnSizes:
    def test_they_are_counted_as_a_model_s_are(self):
        own = {"layers": 32, "n_kv_heads": 8, "d_head": 128, "billions": 8.03}
        calculator = MemoryCalculator(context=8192, batch=3, own=own)
        assert calculator.model == OWN
        assert calculator.cache_bytes == MODELS["Llama 3 8B"].cache_bytes(8192, 3)
        assert calculator.weight_bytes == 16_060_000_000
        assert calculator.fits and "Together 18.0 GiB of 80 GiB: fits." in calculator.as_text()

    def test_a_latent_and_a_window_are_kept_as_they_are_in_models(self):
        latent = MemoryCalculator(context=1000, own={"layers": 61, "latent": 512, "rotary": 64})
        assert latent.cache_bytes == MODELS["DeepSeek-V3"].cache_bytes(1000)
        assert (latent.weight_bytes, latent.fits, latent.longest) == (None, None, None)
        assert "Without the number of parameters" in latent.as_text()
        window = MemoryCalculator(context=10**6, own={"layers": 2, "n_kv_heads": 1, "d_head": 4, "window": 10})
        assert window.cache_bytes == kv_cache_bytes(2, 1, 4, 10)

    def test_what_is_typed_on_the_page_is_counted(self):
        calculator = MemoryCalculator(OWN, context=1)
        send(calculator, typed={"layers": "48", "n_kv_heads": "4", "d_head": "64", "window": "", "billions": "7.5"})
        assert calculator.own == {"layers": 48, "n_kv_heads": 4, "d_head": 64, "billions": 7.5}
        assert on_page(calculator).shown["cache"] == kv_cache_bytes(48, 4, 64, 1)
        assert on_page(calculator).shown["heads_told"] == "4"

    @pytest.mark.parametrize(
        ("typed", "message"),
        [
            ({"layers": "many"}, "layers is “many”: give a whole number."),
            ({"layers": "2.5"}, "layers is “2.5”: give a whole number."),
            ({"layers": ""}, "layers is missing."),
            ({"latent": "512"}, "its key for RoPE is missing."),
            ({"billions": "a few"}, "parameters, 10⁹ (or empty) is “a few”: give a number."),
            ({"billions": "nan"}, "parameters, 10⁹ (or empty) is nan: give a number above 0, up to 10,000,000."),
            ({"d_head": "99999999"}, "d_head is 99,999,999: give a number above 0, up to 10,000,000."),
        ],
        ids=str,
    )
    def test_what_is_wrong_is_said_in_words_and_nothing_changes(self, typed, message):
        calculator = MemoryCalculator(OWN)
        before = on_page(calculator).shown
        sizes = on_page(calculator).typed
        send(calculator, typed={**sizes, **typed})
        assert (on_page(calculator).problem, on_page(calculator).shown) == (message, before)
        send(calculator, typed=sizes)
        assert on_page(calculator).problem == ""

    @pytest.mark.parametrize(
        ("own", "message"),
        [
            ({"layers": 3, "heads": 2}, "own has 'heads': it knows layers"),
            ({"layers": 0, "n_kv_heads": 1, "d_head": 1}, "layers is 0"),
            ({"n_kv_heads": 1, "d_head": 1}, "layers is missing"),
        ],
        ids=str,
    )
    def test_sizes_that_make_no_cache_are_refused(self, own, message):
        with pytest.raises(ValueError, match=message):
            MemoryCalculator(own=own)

    def test_heads_of_own_sizes_are_set_in_them(self):
        with pytest.raises(ValueError, match="set that"):
            MemoryCalculator(OWN, n_kv_heads=4)
