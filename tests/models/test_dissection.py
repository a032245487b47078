"""The dissection of the real model: what its record says, and that heads are scored and switched off as told."""

import pytest
import torch
from letter_model import of_letters

from course_utils.costs import records
from course_utils.models import dissection, facts, real
from course_utils.models.dissection import COUNTS, KINDS, dissect, scores, switch_off

HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


# --- the record -----------------------------------------------------------------------------------------------------


def test_without_the_model_all_is_told_from_the_record():
    for kind in KINDS:
        assert scores(kind).shape == (30, 9) and 0 <= scores(kind).min() <= scores(kind).max() <= 1
        for n in COUNTS:
            found = dissect(kind, n)
            assert list(found.heads) == facts.best(scores(kind), n)
            assert len(found.others) == dissection.DRAWS and len(found.without.by_copy) == facts.COPIES
    with pytest.raises(ValueError, match="n is 3: without the model it is one of 1, 4, 8, 16"):
        dissect("induction", 3)
    with pytest.raises(ValueError, match="a score of your own needs the model"):
        dissect("induction", own=lambda weights, period: 0)
    with pytest.raises(ValueError, match="kind is 'copy': it is one of previous token, induction, first token"):
        scores("copy")


def test_without_induction_heads_the_second_copy_is_as_new_and_without_others_it_is_not():
    found = dissect("induction", 8)
    assert found.without.by_copy[1] > found.whole.by_copy[0] - 2
    assert max(other.by_copy[1] for other in found.others) < found.whole.by_copy[1] + 2
    assert found.without.text < found.whole.text + 0.3  # a text needs them less


def test_one_previous_token_head_is_what_the_induction_heads_need():
    found = dissect("previous token", 1)
    assert found.heads == ((16, 0),)
    assert found.without.looking < found.whole.looking / 3
    assert found.without.by_copy[1] > found.whole.by_copy[1] + 5
    assert all(other.looking > found.whole.looking - 0.1 for other in found.others)


def test_first_token_heads_cost_little_but_for_induction_heads_among_them():
    resting = {*dissect("first token", 8).heads}
    assert len(resting & {*dissect("induction", 8).heads}) >= 3  # they rest where there is nothing to copy
    apart = dissection.apart_from_induction()
    assert not {*apart.heads} & {*dissect("induction", 16).heads}
    assert apart.without.by_copy[1] < dissect("first token", 8).without.by_copy[1] - 3


def test_a_head_that_no_score_finds_is_among_those_that_cost_most_alone():
    _, *rows = dissection.each_alone().splitlines()
    assert len(rows) == dissection.SHOWN and rows[0].startswith("(16, 0)")
    assert any(row.startswith("(1, 3)") for row in rows)
    assert max(scores(kind)[1, 3] for kind in KINDS) < 0.1
    alone = torch.tensor(dissection.fact("each alone")["second"])
    for kind in KINDS:
        assert alone[dissect(kind, 1).heads[0]].item() == pytest.approx(dissect(kind, 1).without.by_copy[1], abs=1e-2)


def test_a_dissection_is_told_as_a_table():
    lines = str(dissect("induction", 8)).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "all heads on",
        "8 induction heads off",
        "8 others off, 3 draws",
    ]
    assert str(dissect("first token", 1)).splitlines()[2].startswith("1 first token head off")
    assert repr(dissect("induction", 8)) == str(dissect("induction", 8))


# --- with a model ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch):
    """A small model, and shorter texts, which it can read."""
    monkeypatch.setattr(dissection, "TOKENS", 40)
    monkeypatch.setattr(dissection, "SINCE", 8)
    monkeypatch.setattr(facts, "copies", lambda times=3: torch.arange(64).repeat(1, times))
    return of_letters(layers=3, heads=3, d_ff=16)


def induction_score(weights, period):
    """As day 4 asks for it: of the weights (2 · period, 2 · period) of one head."""
    assert weights.shape == (2 * period, 2 * period)
    queries = torch.arange(period, 2 * period)
    return weights[queries, queries - period + 1].mean()


def test_a_score_of_ones_own_counts_in_the_place_of_the_courses(tiny):
    own = scores("previous token", tiny, lambda weights: weights.diagonal(-1).mean())
    assert torch.allclose(own, scores("previous token", tiny))
    own = scores("first token", tiny, lambda weights: weights[8:, 0].mean())
    assert torch.allclose(own, scores("first token", tiny))
    expected = facts.induction_scores(tiny, facts.copies(times=2))
    assert torch.allclose(scores("induction", tiny, induction_score), expected)
    places = iter(range(9))
    assert dissect("first token", 2, tiny, own=lambda weights: next(places)).heads == ((2, 2), (2, 1))


def test_heads_that_are_off_are_off_and_the_others_are_drawn_without_them(tiny, monkeypatch):
    measured = []
    losses = dissection._losses
    monkeypatch.setattr(dissection, "_losses", lambda *args: measured.append(tuple(args[1])) or losses(*args))
    found = switch_off([(0, 1), (2, 0)], tiny, draws=4)
    assert measured[:2] == [(), ((0, 1), (2, 0))] and len(measured) == 6
    assert all(len({*other}) == 2 and not {*other} & {*found.heads} for other in measured[2:])
    text = facts.opening(tiny, 40)
    assert found.whole.text == facts.loss(tiny, text) != found.without.text == facts.loss(tiny, text, found.heads)


def test_a_head_that_is_off_looks_and_nobody_learns_what_it_found(tiny):
    tokens = facts.copies()
    whole = facts.induction_scores(tiny, tokens)
    without = facts.induction_scores(tiny, tokens, off=[(1, 0)])
    assert torch.equal(whole[:2], without[:2]) and not torch.equal(whole[2], without[2])


@HERE
@pytest.mark.thorough("the real model is measured with heads switched off")
def test_the_real_model_does_what_is_recorded_of_it(one_thread):
    found = dissect("previous token", 1, real.load())
    recorded = dissect("previous token", 1)
    assert found.heads == recorded.heads
    assert found.without.by_copy == pytest.approx(recorded.without.by_copy, abs=1e-2)
    assert found.others[0].text == pytest.approx(recorded.others[0].text, abs=1e-2)


@HERE
@pytest.mark.thorough("experiments are run by their commands")
def test_it_can_be_measured_anew(tmp_path, capsys):
    dissection.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    assert records.read(path)["settings"]["quick"] and path.stem.endswith("-quick")
