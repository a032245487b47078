"""What the real model made of the recorded sentences: the file that keeps it, and that it is what the model says."""

import json

import numpy as np
import pytest
import torch
from letter_model import of_letters

from course_utils.models import real, real_sentences
from course_utils.models.real_sentences import SENTENCES, read, recorded


def test_what_is_written_is_read_again_and_names_the_model_and_the_versions(tmp_path, monkeypatch):
    model = of_letters()
    readings = [read(model, text, "somebody's") for text in ("one two", "to be or")]
    path = real_sentences.write(readings, "somebody's", tmp_path)
    monkeypatch.setattr(real_sentences, "STORED", tmp_path)
    recorded.cache_clear()
    try:
        for before, after in zip(readings, recorded(), strict=True):
            assert (after.text, after.tokens, after.following) == (before.text, before.tokens, before.following)
            np.testing.assert_array_equal(after.levels, before.levels)
            assert after.source.startswith("recorded from somebody's on 20")
    finally:
        recorded.cache_clear()
    lines = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(lines[1].removeprefix(' "header": ').removesuffix(","))
    assert {*header["versions"]} == {"course", "numpy", "torch"} and header["command"].endswith("--record")
    assert "1/255" in header["weights"] and len(lines) == 2 + 1 + len(readings) + 2, "a line an object"


def test_levels_are_the_models_weights_and_chances_those_of_its_logits():
    model = of_letters()
    with torch.no_grad():
        model.model.unembedding.weight *= 10  # one letter is likely
    result = read(model, "to be")
    (tokens, weights, logits) = model.look("to be")
    assert result.tokens == tokens == ["t", "o", " ", "b", "e"] and result.source == "computed here by tiny"
    np.testing.assert_allclose(result.levels / 255, weights.numpy(), atol=0.5 / 255 + 1e-6)
    likeliest = logits.softmax(-1).max(-1)
    assert [some[0][0] for some in result.following] == model.tokenizer.texts(likeliest.indices.tolist())
    assert likeliest.values.max() > 0.5
    assert [some[0][1] for some in result.following] == [round(1000 * chance) for chance in likeliest.values.tolist()]


def test_the_sentences_that_ship_are_those_of_the_list_in_a_small_file():
    assert tuple(each.text for each in recorded()) == SENTENCES
    for each in recorded():
        assert each.levels.shape == (30, 9, len(each.tokens), len(each.tokens))
        sums = each.levels.astype(int).sum(-1)
        assert abs(sums - 255).max() <= len(each.tokens) / 2, "rows sum to 1, but for the rounding"
    assert (real_sentences.STORED / real_sentences.NAME).stat().st_size < 250_000


@pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")
def test_the_real_model_says_what_is_recorded_of_it(one_thread):
    model, name = real_sentences.here()
    result = read(model, SENTENCES[0], name)
    stored = recorded()[0]
    assert result.tokens == stored.tokens and abs(result.levels.astype(int) - stored.levels).max() <= 1
    assert [some[0][0] for some in result.following] == [some[0][0] for some in stored.following]
