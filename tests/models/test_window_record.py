"""Windows on the real model: the record that ships, the mask, and that the model still says it."""

import pytest
import torch

from course_utils.attention.masks import causal, sliding_window
from course_utils.costs import records
from course_utils.models import facts, real, window_record

HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


def test_the_mask_is_a_window_and_the_first_tokens():
    assert window_record.sink_window(5, 2, 1).int().tolist() == [
        [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 0, 0, 1, 1],
    ]  # fmt: skip
    assert torch.equal(window_record.sink_window(6, 3, 0), sliding_window(6, 3))
    assert torch.equal(window_record.sink_window(6, 6, 2), causal(6))


def test_a_first_token_is_worth_more_than_twice_the_window():
    loss = window_record.loss
    for room in window_record.ROOMS:
        assert loss(None) < min(loss(room, sinks) for sinks in window_record.SINKS[1:]) < loss(room, 0)
    assert loss(64, 1) < loss(128, 0) and loss(32, 1) < loss(128, 0)


def test_where_the_first_token_gets_most_its_values_are_short():
    shares, values = window_record.shares()
    assert len(shares) == len(values) == 30
    assert min(shares[12:]) > 0.25 and max(values[12:]) < 0.5
    assert all(value < 0.5 for share, value in zip(shares, values, strict=True) if share > 0.05)


def test_the_curves_start_together_and_have_a_point_for_each_bucket():
    positions, everything = window_record.curve(None)
    assert len(positions) == len(everything) == window_record.LENGTH // window_record.BUCKET
    assert everything[:4] == pytest.approx(window_record.curve(128, 0)[1][:4], abs=1e-3)


@HERE
def test_the_real_model_takes_what_is_recorded_of_it(one_thread):
    model = real.load()
    tokens = facts.opening(model, window_record.LENGTH)
    (row,) = [row for row in window_record.rows("window") if (row["room"], row["sinks"]) == (128, 4)]
    found = window_record.token_losses(model, tokens, window_record.sink_window(window_record.LENGTH, 124, 4))
    assert found.mean().item() == pytest.approx(row["by_text"][0], abs=2e-3)


@HERE
def test_a_first_token_with_its_value_is_the_window_with_a_sink():
    model = real.load()
    tokens = facts.opening(model, 140)
    kept = window_record.with_stand_in(model, "kept", torch.zeros(30, 9))
    expected = window_record.token_losses(model, tokens, window_record.sink_window(140, 127, 1))
    assert torch.allclose(window_record.token_losses(kept, tokens), expected, atol=1e-3)


@HERE
@pytest.mark.thorough("experiments are run by their commands")
def test_it_can_be_measured_anew(tmp_path, capsys):
    window_record.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    assert records.read(path)["settings"]["quick"] and path.stem.endswith("-quick")
