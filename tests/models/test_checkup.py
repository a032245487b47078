"""The loss doctor: it names each planted illness with its place, and raises no alarm on a healthy model."""

import math
from dataclasses import replace
from functools import cache as remember

import pytest
import torch

from course_utils.models import checkup, small_gpt
from course_utils.models.illnesses import ILLNESSES, IN_A_LAYER, Patient, plant
from course_utils.models.training import History, Recipe, train

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 48}
MORE = pytest.mark.thorough("more healthy and sick models are examined")
PLACES = {"shifted targets": "batches", "learning rate × 100": "learning rate", "data leak": "data"}
CASES = [(illness, PLACES.get(illness, "layer 0"), 0) for illness in ILLNESSES]
CASES += [pytest.param(illness, "layer 1", 1, marks=MORE) for illness in IN_A_LAYER]


@remember
def data(vocabulary=300):
    return small_gpt.data_of(small_gpt.TEXT.read_bytes()[:30_000], vocabulary)


@remember
def patient(seed=0):
    return Patient(small_gpt.new_model(300, seed=seed, **SMALL), data(), context=16)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=MORE) for seed in range(2, 10))])
def test_a_healthy_model_raises_no_alarm(seed):
    report = checkup.checkup(patient(seed).model, data(), context=16, seed=seed)
    assert report.illnesses == []
    assert str(report).endswith("no alarm") and "✗" not in str(report)


@pytest.mark.parametrize("illness, place, layer", CASES)
def test_each_planted_illness_is_named_with_its_place_and_no_other(illness, place, layer):
    report = plant(illness, patient(), layer).checkup()
    assert report.illnesses == [illness]
    assert {finding.place.split(",")[0] for finding in report.alarms} == {place}
    assert f"{illness} ({report.alarms[0].place}): " in str(report)


def test_planting_leaves_the_healthy_one_as_it_is():
    model = patient().model
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    for illness in ILLNESSES:
        plant(illness, patient(), 1)
    patient().checkup()
    assert all(torch.equal(weights, before[name]) for name, weights in model.state_dict().items())
    assert all(list(block.attention.own) == ["grouped_attention"] for block in model.blocks)
    assert all(weights.requires_grad and weights.grad is None for weights in model.parameters())


@MORE
def test_two_illnesses_are_both_named():
    both = plant("no scale", plant("frozen layer", patient(), 1), 0).checkup()
    assert set(both.illnesses) == {"no scale", "frozen layer"}


@MORE
@pytest.mark.parametrize("sizes", [{"n_kv_heads": 1}, {"rope_base": 500.0}, {"d_model": 64, "n_layers": 1}])
def test_models_of_other_sizes_are_told_apart_too(sizes):
    healthy = Patient(small_gpt.new_model(300, **(SMALL | sizes)), data(), context=16)
    assert healthy.checkup().illnesses == []
    for illness in ILLNESSES:
        assert plant(illness, healthy).checkup().illnesses == [illness]


@MORE
@pytest.mark.parametrize("seed", range(10))
def test_a_healthy_model_of_the_capstones_size_raises_no_alarm(seed):
    both = small_gpt.data()
    assert checkup.checkup(small_gpt.new_model(seed=seed), both, seed=seed).illnesses == []


def alarm(model, both=None, **options):
    (found,) = checkup.checkup(model, both or data(), context=16, **options).alarms
    return found


def test_a_first_loss_of_ln_50304_on_characters_is_the_wrong_vocabulary():
    model = small_gpt.new_model(50304, d_model=8, n_layers=1, n_heads=1, d_ff=8)
    (found,) = checkup.checkup(model, data(256), context=4).alarms
    assert (found.illness, found.expected) == ("wrong vocabulary", "5.55")
    assert found.found == pytest.approx(math.log(50304), abs=0.05)
    assert "50,304, and the tokenizer has 256 tokens" in found.meaning
    history = History(losses=[10.82, 9.0], norms=[1.0, 1.0], rates=[0.1, 0.1])
    assert checkup.checkup_training(history, data(256)).illnesses[0] == "wrong vocabulary"


def test_pytorchs_own_initialisation_is_a_large_start():
    model = small_gpt.new_model(300, **SMALL)
    torch.nn.init.normal_(model.embedding.weight)
    report = checkup.checkup(model, data(), context=16)
    assert "large start" in report.illnesses and report.alarms[0].found > 7


def test_a_dead_head_and_layers_that_turn_at_other_speeds_are_found():
    model = small_gpt.new_model(300, **SMALL)
    with torch.no_grad():
        model.blocks[1].attention.v_proj.weight[16:] *= 1e-6
    found = alarm(model)
    assert (found.illness, found.place) == ("dead head", "layer 1, head 1")
    other = small_gpt.new_model(300, **(SMALL | {"n_layers": 3}))
    rope = other.blocks[2].attention.rope
    other.blocks[2].attention.rope = replace(rope, base=rope.base * 50)
    found = alarm(other)
    assert (found.illness, found.place) == ("untied positions", "layer 2, positions")


@MORE
def test_one_frozen_matrix_is_named():
    model = small_gpt.new_model(300, **SMALL)
    model.blocks[1].attention.k_proj.weight.requires_grad_(False)
    found = alarm(model)
    assert (found.illness, found.place) == ("frozen layer", "layer 1, attention.k_proj.weight")


@MORE
def test_a_model_that_mixes_rows_or_looks_ahead_elsewhere_is_found():
    class MixesRows(torch.nn.Module):
        def forward(self, x):
            return x + 0.1 * x.mean(0, keepdim=True)

    class LooksAhead(torch.nn.Module):
        def forward(self, x):
            return x + 0.1 * x.mean(1, keepdim=True)

    for module, illness in ((MixesRows(), "rows mixed"), (LooksAhead(), "no mask")):
        model = small_gpt.new_model(300, **SMALL)
        model.norm = torch.nn.Sequential(model.norm, module)
        assert [each.illness for each in checkup.checkup(model, data(), context=16).alarms] == [illness]


def test_a_tiny_rate_learns_nothing():
    assert alarm(patient().model, rate=1e-6).illness == "does not learn"


def test_targets_that_are_the_inputs_are_shifted():
    def draw(*arguments):
        inputs, _ = small_gpt.batches(*arguments)
        return inputs, inputs

    found = checkup.checkup(patient().model, data(), context=16, draw=draw).alarms[0]
    assert (found.illness, found.found) == ("shifted targets", 0)


def test_on_held_out_text_counting_costs_what_its_smoothed_shares_say():
    tokens = torch.tensor([0, 1, 0, 1, 0, 1, 0, 2])
    text = replace(data(), train=tokens, held_out=torch.tensor([0, 1, 3]))
    seen = torch.ones(300).index_add(0, tokens, torch.ones(8))
    single = seen / seen.sum()
    pair = (3 + checkup.SMOOTHING * single[1]) / (4 + checkup.SMOOTHING)  # 0 is followed by 1 in three of four places
    unseen = checkup.SMOOTHING * single[3] / (3 + checkup.SMOOTHING)
    expected = -(single[1] * single[3]).log() / 2, -(pair * unseen).log() / 2
    assert checkup.floors_on_held_out(text) == pytest.approx([number.item() for number in expected], rel=1e-5)


def test_the_floors_are_the_entropies_of_counting():
    same = small_gpt.data_of(b"ab" * 500, 256)
    assert checkup.floors(same) == pytest.approx((math.log(2), 0.0), abs=1e-2)
    text = small_gpt.data(256)
    single, pairs = checkup.floors(text)
    assert single == pytest.approx(3.31, abs=0.02) and pairs == pytest.approx(2.45, abs=0.02)


def losses(*ends, steps=250):
    """A history that falls in a straight line through these losses."""
    at = torch.linspace(0, len(ends) - 1, steps)
    lower = at.long().clamp(max=len(ends) - 2)
    ends = torch.tensor(ends)
    fallen = (ends[lower] + (ends[lower + 1] - ends[lower]) * (at - lower)).tolist()
    return History(losses=fallen, norms=[1.0] * steps, rates=[1e-3] * steps)


def test_twelve_layers_that_stay_at_3_1_are_stuck():
    """nanoGPT's issue 211: the loss of characters stays around 3.1, so nothing of the context is used."""
    text = small_gpt.data(256)
    report = checkup.checkup_training(losses(5.5, 3.1, 3.1), text)
    assert report.illnesses == ["stuck at frequencies"]
    assert "counting tokens alone gives 3.31, counting pairs 2.45" in report.alarms[0].meaning
    assert checkup.checkup_training(losses(5.5, 3.1, 2.2), text).illnesses == []
    assert checkup.checkup_training(losses(5.5, 3.1, steps=100), text).illnesses == []


def test_a_training_that_goes_wrong_is_named():
    assert checkup.checkup_training(losses(5.7, 9.0, 3.0), data()).illnesses == ["learning rate × 100"]
    assert (
        checkup.checkup_training(History([5.7, math.nan], [1.0, math.nan]), data()).illnesses[0]
        == "learning rate × 100"
    )
    assert checkup.checkup_training(losses(5.7, 0.2, 0.1), data()).illnesses == ["answers in sight"]
    growing = replace(losses(5.7, 3.0), norms=[1.0] * 125 + [40.0] * 125)
    (found,) = checkup.checkup_training(growing, data()).alarms
    assert (found.illness, found.found) == ("learning rate × 100", 40)
    assert checkup.checkup_training(losses(40.0, 4.0, 3.0), data()).illnesses == ["large start"]


def test_a_real_training_raises_no_alarm_and_a_sick_one_does():
    options = {"steps": 25, "progress": None, "batch": 4, "context": 16, "warm_up": 5}
    healthy = train(small_gpt.new_model(300, **SMALL), data(), **options)
    assert checkup.checkup_training(healthy, data()).illnesses == []
    wide = small_gpt.new_model(300, **(SMALL | {"d_model": 96}))
    sick = train(wide, data(), rate=100 * Recipe.rate, **options)
    assert checkup.checkup_training(sick, data()).illnesses == ["learning rate × 100"]
