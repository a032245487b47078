"""The small models of day 8 by how they know positions, and the record of the real model's rotation."""

import numpy as np
import pytest
import torch

from course_utils.attention import rotary
from course_utils.models import facts, positions_record, real
from course_utils.models import position_experiment as experiment

pytestmark = pytest.mark.usefixtures("one_thread")
HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


def tokens(n, seed=0):
    return torch.randint(len(experiment.alphabet()), (1, n), generator=torch.Generator().manual_seed(seed))


def test_one_seed_gives_all_ways_the_same_weights_where_they_have_the_same():
    first, second = (experiment.new_model(way, seed=3).blocks.state_dict() for way in ("RoPE", "ALiBi"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("way", experiment.WAYS)
def test_every_way_is_causal_and_knows_512_positions(way):
    model = experiment.new_model(way).eval()
    text = tokens(experiment.TESTED)
    changed = text.clone()
    changed[0, -1] = (text[0, -1] + 1) % len(experiment.alphabet())
    with torch.no_grad():
        moved = (model(text) - model(changed)).abs().amax(-1)[0]
    assert moved[:-1].max() == 0 and moved[-1] > 0


@pytest.mark.parametrize("way", ["RoPE", "ALiBi", "none"])
def test_without_rows_for_positions_nothing_depends_on_where_a_text_begins(way):
    """The second layer sees what comes before; so the same token all along gives the same logits everywhere."""
    model = experiment.new_model(way).eval()
    with torch.no_grad():
        logits = model(torch.full((1, 40), 5))[0]
    torch.testing.assert_close(logits[0], logits[-1], rtol=0, atol=1e-4)


def test_plain_rope_is_the_courses_own():
    x = torch.randn(1, 2, 9, 16, generator=torch.Generator().manual_seed(0))
    found = experiment.rotation(None)(x, torch.arange(9), experiment.BASE)
    torch.testing.assert_close(found, rotary.rotate(x, range(9), pairs="halves"))


def test_training_makes_the_loss_small_and_the_same_seed_gives_the_same_numbers():
    (_, losses), (_, again) = (experiment.train("none", seed=1, steps=12) for _ in range(2))
    assert losses == again and losses[-1] < losses[0] - 0.1


def test_the_record_has_every_way_with_five_seeds():
    at, losses = experiment.curves()
    assert [*losses] == [*experiment.WAYS, *experiment.STRETCHED]
    assert {each.shape for each in losses.values()} == {(5, len(at))}
    assert (at[0], at[-1]) == (8, 504)


def test_the_record_says_what_the_lesson_says():
    rows = {row["way"]: row for row in experiment.summary()}
    for way in ("learned", "waves", "RoPE"):
        assert rows[way]["far_low"] > rows[way]["within_high"] + 0.5  # fails beyond the trained length
    assert 0.1 < rows["none"]["far"] - rows["none"]["within"] < 0.4
    assert abs(rows["ALiBi"]["far"] - rows["ALiBi"]["within"]) < 0.1
    within = {way: rows[way]["within"] for way in experiment.WAYS}
    assert sorted(within, key=within.__getitem__)[0] == "RoPE" and max(within, key=within.__getitem__) == "none"
    assert rows["YaRN"]["far_high"] < min(rows[way]["far_low"] for way in ("interpolation", "NTK-aware", "RoPE"))
    assert rows["interpolation"]["within_low"] > rows["YaRN"]["within_high"]


def test_it_can_be_trained_anew(tmp_path, capsys):
    experiment.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("position-experiment-") and path.stem.endswith("-quick")
    assert "YaRN: " in capsys.readouterr().out


def test_the_real_models_record_says_what_the_lesson_says():
    pairs = positions_record.fact("pairs")
    assert pairs["largest_difference"][0] == 0 < min(pairs["largest_difference"][1:])
    neighbours, halves = pairs["ways"]
    assert neighbours["answer"] == "The capital of France is Paris." and halves["answer"] == ""
    assert "Paris" in neighbours["written"] and "Paris" in halves["written"]  # one prompt is no test
    assert neighbours["loss"] < halves["loss"] - 1
    moved = positions_record.fact("moved")
    assert max(moved["largest_difference"]) < 1e-3 * moved["standard_deviation"]
    bases = positions_record.fact("bases")
    losses = {row["base"]: row["loss"] for row in bases["bases"]}
    assert min(losses, key=losses.__getitem__) == bases["own"] == 1e5
    with pytest.raises(KeyError, match="'paris' is not in the record, which has pairs, moved, bases"):
        positions_record.fact("paris")


@HERE
def test_the_real_model_gives_what_is_recorded_of_it():
    model = real.load()
    text = model.encode("The capital of France is")
    own = facts.token_losses(model, text)
    later = facts.token_losses(positions_record.rotated_by(model, positions_record.moved_by(500)), text)
    mixed = facts.token_losses(positions_record.rotated_by(model, positions_record.in_pairs("halves")), text)
    torch.testing.assert_close(own, later, rtol=0, atol=1e-3)
    assert own[0] == mixed[0] and np.abs((own - mixed)[1:].numpy()).max() > 0.1
