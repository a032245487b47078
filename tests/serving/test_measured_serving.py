"""What is measured on the course's decoder: the steps that are timed, and a target that answers in one pass."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

from course_utils.models import characters
from course_utils.models.decoder import Decoder
from course_utils.serving.measured import measure_acceptance, measure_steps, one_pass, own_text
from course_utils.serving.speculative import Bigrams, expected_tokens


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return Decoder(11, d_model=16, n_layers=2, n_heads=2).eval()


class Watched(Decoder):
    """A decoder that remembers how many tokens it was given and how many its first cache held before."""

    seen: list

    def forward(self, tokens, caches=None, *rest, **options):
        self.seen.append((tuple(tokens.shape), int(caches[0].lengths.max())))
        return super().forward(tokens, caches, *rest, **options)


def test_what_reckons_and_simulates_loads_without_torch():
    """So that it can run in a browser."""
    names = ("costs", "traffic", "simulate", "latency", "speculative", "machines", "measured")
    lines = [f"import course_utils.serving.{name}" for name in names] + [
        "import sys",
        "assert 'torch' not in sys.modules",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_rows_are_the_steps_that_were_run():
    torch.manual_seed(0)
    watched = Watched(11, d_model=16, n_layers=1, n_heads=2).eval()
    watched.seen = []
    ticks = itertools.count()
    rows = measure_steps(watched, [1, 3], [5, 40], [7], repeats=3, clock=lambda: float(next(ticks)))
    decodes = [(row["batch"], row["T"], row["tokens"], row["context"]) for row in rows if row["kind"] == "decode"]
    assert sorted(decodes) == [(1, 5, 1, 5), (1, 40, 1, 40), (3, 5, 3, 15), (3, 40, 3, 120)]
    assert [(row["tokens"], row["context"]) for row in rows if row["kind"] == "prompt"] == [(7, 0)]
    assert all(row["seconds"] == row["low"] == row["high"] == 1 for row in rows)
    for batch, T in itertools.product([1, 3], [5, 40]):
        held = [cached for shape, cached in watched.seen if shape == (batch, 1) and T <= cached < T + 5]
        assert held == [T, T + 1, T + 2, T + 3, T + 4]  # two to warm up, three that count
    assert watched.seen.count(((1, 7), 0)) == 5
    with pytest.raises(ValueError, match="batch is 0"):
        measure_steps(watched, [0], [4])


def test_one_pass_tells_what_follows_each_prefix(small):
    p_of = one_pass(small, temperature=0.7)
    tokens = [3, 1, 4, 1, 5, 9]
    result = p_of(tokens, 4)
    for row, length in zip(result, (3, 4, 5, 6), strict=True):
        logits = small(torch.tensor([tokens[:length]]))[0, -1]
        np.testing.assert_allclose(row, torch.softmax(logits.detach().double() / 0.7, dim=-1), atol=1e-6)
    with pytest.raises(ValueError, match="ask for 1 to 6"):
        p_of(tokens, 7)
    with pytest.raises(ValueError, match="above 0"):
        one_pass(small, temperature=0)


def test_own_text_goes_on_from_the_prompts_and_is_the_same_for_a_seed(small):
    text = own_text(small, [[1, 2], [3, 4], [5, 6]], 9, seed=1)
    assert text.shape == (3, 11) and text[:, :2].tolist() == [[1, 2], [3, 4], [5, 6]]
    np.testing.assert_array_equal(text, own_text(small, [[1, 2], [3, 4], [5, 6]], 9, seed=1))
    assert (text != own_text(small, [[1, 2], [3, 4], [5, 6]], 9, seed=2)).any()


def test_a_drafter_that_is_the_model_is_always_kept(small):
    p_of = one_pass(small)
    result = measure_acceptance(p_of, lambda tokens: p_of(tokens, 1)[0], [[1], [2, 3]], 3, 8)
    assert result["alpha"] == pytest.approx(1) and result["accepted_share"] == 1 and result["survival"] == [1, 1, 1]
    assert (result["rounds"], result["tokens"], result["tokens_a_pass"]) == (4, 16, 4)


@pytest.mark.thorough("the stored model writes text and drafts it")
def test_with_bigrams_of_its_own_text_the_trained_model_writes_more_than_a_token_a_pass():
    model = characters.load("causal")
    text = characters.encode(characters.training_text()).tolist()
    drafter = Bigrams(own_text(model, [text[97 * i : 97 * i + 12] for i in range(32)], 80), len(characters.alphabet()))
    result = measure_acceptance(one_pass(model), drafter, [text[:12], text[500:512], text[900:912]], 2, 60)
    assert 0.2 < result["alpha"] < 0.45
    assert result["tokens_a_pass"] > 1.2
    assert result["tokens_a_pass"] == pytest.approx(expected_tokens(result["alpha"], 2), abs=0.15)
    assert result["survival"][0] > 2 * result["survival"][1]
    assert sum(result["survival"]) * result["rounds"] == pytest.approx(result["accepted"])
