"""The memory of a layer on a long text: the record that ships, and that the model still says it."""

import pytest

from course_utils.costs.memory import score_bytes
from course_utils.models import long_text, real

HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


def test_with_all_scores_the_memory_grows_with_the_square_and_in_tiles_with_the_text():
    (lengths, naive), (again, tiled) = long_text.lines().values()
    assert lengths == again == [*long_text.LENGTHS]
    assert 3.8 < naive[-1] / naive[-2] < 4 and 1.9 < tiled[-1] / tiled[-2] < 2.2
    assert naive[-1] > 3 * score_bytes(1, 9, lengths[-1], bytes_per_value=4) > 10 * tiled[-1]


def test_the_record_is_told_in_three_lines():
    table, layer, whole = long_text.summary().splitlines()
    assert table == "2,000 tokens, one table of scores of 9 heads: 144 MB"
    assert layer == "the layer, at most: 480 MB with all scores, 30.1 MB in tiles"
    assert whole.endswith("the same next token at 2,000 of 2,000 places")


@HERE
def test_the_real_model_takes_what_is_recorded_of_it(one_thread):
    n = long_text.LENGTHS[0]
    row = long_text.recorded()["rows"][0]
    model = real.load()
    whole, naive = long_text.of_a_layer(model, n)
    tiles, tiled = long_text.of_a_layer(model, n, long_text.in_tiles)
    assert (row["T"], row["naive"], row["tiled"]) == (n, naive, tiled)
    assert (whole - tiles).abs().max() < 1e-5


@HERE
def test_it_can_be_measured_anew(tmp_path, monkeypatch, capsys):
    long_text.main(quick=True, folder=tmp_path)
    assert "T = 250: 8.36 MB with all scores, 3.33 MB in tiles." in capsys.readouterr().out
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("smollm2-long-text-") and path.stem.endswith("-quick")
