"""The model that repeats: what its measures mean on made-up weights, what training gives, and what is stored."""

import numpy as np
import pytest
import torch

from course_utils.models import induction
from course_utils.models.decoder import Decoder

pytestmark = pytest.mark.usefixtures("one_thread")


class Attending(Decoder):
    """A decoder of one layer with four heads whose weights are given: a function from T to (4, T, T)."""

    def __init__(self, weights):
        super().__init__(induction.VOCABULARY, 8, 1, 4, d_ff=0)
        self.given = weights

    def forward(self, tokens, return_weights=False, **options):
        logits = super().forward(tokens, **options)
        B, T = tokens.shape
        return (logits, [self.given(T).expand(B, 4, T, T)]) if return_weights else logits


def looks(back):
    """Weights (T, T) of a head that gives all its weight to the token `back` places before, if there is one."""
    return lambda T: torch.zeros(T, T).diagonal_scatter(torch.ones(T - back), -back)


# --- measures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [1, 2, 5])
def test_the_scores_single_out_the_head_they_are_named_after(period):
    heads = [looks(back) for back in (0, 1, period - 1, period)]
    model = Attending(lambda T: torch.stack([head(T) for head in heads]))
    expected = [float(back == period - 1) for back in (0, 1, period - 1, period)]
    assert induction.induction_scores(model, period, batch=3).tolist() == [expected]
    expected = [float(back == 1) for back in (0, 1, period - 1, period)]
    assert induction.previous_token_scores(model, period, batch=3).tolist() == [expected]


def test_the_induction_score_is_the_mean_over_the_second_copy_alone():
    weights = torch.zeros(4, 6, 6)
    weights[0, 3, 1], weights[0, 4, 2], weights[0, 5, 3] = 0.25, 0.5, 0.75  # period 3: row i, column i − 2
    weights[1, 2, 0] = 1.0  # a row of the first copy
    model = Attending(lambda T: weights)
    assert induction.induction_scores(model, 3, batch=1).tolist() == [[0.5, 0, 0, 0]]


def test_a_piece_is_written_again_and_again():
    tokens = induction.repeated(4, 5, repeats=3, seed=2)
    assert tokens.shape == (4, 15)
    assert torch.equal(tokens[:, :5], tokens[:, 5:10])
    assert torch.equal(tokens[:, :5], tokens[:, 10:])
    assert torch.equal(tokens, induction.repeated(4, 5, repeats=3, seed=2))
    assert not torch.equal(tokens, induction.repeated(4, 5, repeats=3, seed=3))
    with pytest.raises(ValueError, match="period"):
        induction.repeated(4, 0)


def test_the_repeat_loss_is_of_the_tokens_that_could_be_known():
    model = Decoder(induction.VOCABULARY, 8, 1, 2, d_ff=0)
    tokens = induction.repeated(3, 4)
    losses = torch.nn.CrossEntropyLoss(reduction="none")(model(tokens).transpose(1, 2)[:, :, :-1], tokens[:, 1:])
    assert induction.repeat_loss(model, tokens, 4) == pytest.approx(losses[:, [4, 5, 6]].mean().item())  # tokens 5 to 7
    torch.testing.assert_close(induction.token_losses(model, tokens), losses)
    with pytest.raises(ValueError, match="a piece of 5 tokens, twice, takes 10"):
        induction.repeat_loss(model, tokens, 5)


def test_ablation_is_the_rise_in_loss_without_one_head():
    model = induction.load()
    tokens = induction.repeated(8, 10)
    rises = induction.ablation(model, tokens, 10)
    off = torch.ones(2, 4)
    off[1, 2] = 0
    alone = induction.repeat_loss(model, tokens, 10, off) - induction.repeat_loss(model, tokens, 10)
    assert rises[1, 2].item() == pytest.approx(alone)
    assert rises.shape == (2, 4)


# --- what is stored -------------------------------------------------------------------------------------------------


def test_the_stored_model_has_one_head_that_feeds_the_others():
    model = induction.load()
    period = 20
    previous = induction.previous_token_scores(model, period)
    after_first = induction.induction_scores(model, period)
    rises = induction.ablation(model, induction.repeated(64, period), period)
    assert np.unravel_index(previous.argmax().item(), (2, 4)) == (0, 3)
    assert (previous > 0.9).sum() == 1
    assert (after_first[1] > 0.85).all()
    assert (after_first[0] < 0.1).all()
    assert rises.argmax().item() == 3  # layer 0, head 3
    assert rises[0, 3] > 3
    assert (rises[0, :3] < 0.1).all()


def test_the_record_is_of_the_stored_model():
    record = induction.recorded()
    first = record["rows"][0]
    model = induction.load()
    assert [row["name"] for row in record["rows"]] == [run["name"] for run in induction.RUNS]
    assert record["settings"]["parameters"] == sum(p.numel() for p in model.parameters())
    np.testing.assert_allclose(first["induction"], induction.induction_scores(model, 20), atol=1e-3)
    np.testing.assert_allclose(first["previous_token"], induction.previous_token_scores(model, 20), atol=1e-3)
    assert first["repeat_loss"] == pytest.approx(induction.repeat_loss(model, induction.repeated(64, 20), 20), abs=1e-3)
    assert first["curve"][-1]["step"] == record["settings"]["steps"] == induction.STEPS


def test_two_layers_learn_it_from_any_seed_and_one_layer_does_not():
    rows = {row["name"]: row for row in induction.recorded()["rows"]}
    assert all(rows[name]["repeat_loss"] < 0.3 for name in rows if name.startswith("two layers"))
    assert rows["one layer"]["repeat_loss"] > 2
    assert np.max(rows["one layer"]["induction"]) < 0.1


# --- training -------------------------------------------------------------------------------------------------------


def test_the_same_seed_trains_the_same_model(monkeypatch):
    monkeypatch.setattr(induction, "EVERY", 3)
    curves = [induction.train(n_layers=1, seed=3, steps=3)[1] for _ in range(2)]
    assert curves[0] == curves[1]
    assert [row["step"] for row in curves[0]] == [0, 3]
    others = induction.train(n_layers=1, seed=4, steps=3)[1]
    assert all(other["loss"] != row["loss"] for other, row in zip(others, curves[0], strict=True))


def test_training_begins_as_that_of_the_stored_model_did():
    """The curve of the whole training, which is left at its second row: there rounding has not grown yet."""
    began = []

    def leave_at_the_second(row):
        began.append(row)
        if len(began) == 2:
            raise StopIteration

    with pytest.raises(StopIteration):
        induction.train(progress=leave_at_the_second)
    assert [row["step"] for row in began] == [0, 20]
    for row, stored in zip(began, induction.recorded()["rows"][0]["curve"], strict=False):
        assert row == pytest.approx(stored, abs=5e-4)


@pytest.mark.thorough("the model that repeats is trained again")
def test_training_again_gives_the_stored_model_within_the_stated_tolerance():
    model, curve = induction.train()
    stored = induction.recorded()["rows"][0]["curve"][-1]
    for name, tolerance in induction.TOLERANCE.items():
        assert curve[-1][name] == pytest.approx(stored[name], abs=tolerance)
    assert not model.training


def test_a_model_is_stored_and_loaded_in_half_precision(tmp_path):
    model, _ = induction.train(steps=1)
    assert not model.training
    loaded = induction.load(induction.save(model, tmp_path).parent)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], value.half().float(), rtol=0, atol=0)
    with pytest.raises(FileNotFoundError):
        induction.load(tmp_path / "elsewhere")


def test_windows_hold_a_piece_of_an_allowed_length_to_their_end():
    windows = induction._windows(np.random.default_rng(0))
    assert windows.shape == (induction.BATCH, induction.LENGTH)
    for window in windows:
        periods = [p for p in range(1, 33) if torch.equal(window[p:], window[:-p])]
        assert periods[0] <= induction.LONGEST
