"""The training experiments of days 2 and 3: what each of them claims, on small settings, and what is stored of them."""

import math
from functools import cache as remember

import numpy as np
import pytest
import torch

from course_utils.attention.masks import causal
from course_utils.attention.tensors import attention
from course_utils.costs import records
from course_utils.models import characters, leak_experiment, scale_experiment

FLOOR = math.log(8)
TRAINED = pytest.mark.thorough("more of the small models are trained, and tried")


pytestmark = pytest.mark.usefixtures("one_thread")

# --- the floor on independent tokens --------------------------------------------------------------------------------


def correct(q, k, v):
    return attention(q, k, v, causal(q.shape[-2]))[0]


def unmasked(q, k, v):
    return attention(q, k, v)[0]


def after_softmax(q, k, v):
    return attention(q, k, v)[1].tril() @ v


def after_softmax_renormalised(q, k, v):
    weights = attention(q, k, v)[1].tril()
    return weights / weights.sum(-1, keepdim=True) @ v


@remember
def trained(attention, steps=300):
    return leak_experiment.train(attention, seed=0, steps=steps)


@TRAINED
@pytest.mark.parametrize("attention", [correct, after_softmax_renormalised])
def test_no_honest_model_gets_below_the_floor(attention):
    assert FLOOR - 0.001 < trained(attention).loss < FLOOR + 0.02
    assert pytest.approx(FLOOR, abs=1e-12) == leak_experiment.FLOOR


@pytest.mark.parametrize("attention", [unmasked, pytest.param(after_softmax, marks=TRAINED)])
def test_a_leaking_model_goes_far_below_the_floor(attention):
    assert trained(attention).loss < 0.5
    assert trained(attention).losses[0] > 2  # it did not know at the start


@TRAINED
def test_both_ways_of_renormalising_train_alike():
    difference = np.subtract(trained(correct).losses, trained(after_softmax_renormalised).losses)
    assert np.abs(difference).max() < 1e-3


def test_nothing_but_attention_carries_tokens_to_one_another():
    def seen(attention):
        """Which outputs move when token 5 changes."""
        model = leak_experiment.train(attention, steps=1).model
        tokens = torch.zeros(2, 8, dtype=torch.int64)
        tokens[1, 5] = 3
        logits = model(tokens)
        return (logits[0] != logits[1]).any(-1).tolist()

    assert seen(lambda q, k, v: v) == [i == 5 for i in range(8)]
    assert seen(correct) == [i >= 5 for i in range(8)]
    assert seen(unmasked) == [True] * 8


def test_the_loss_asks_for_the_next_token():
    tokens = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7]])

    def sure_of(answers):
        return lambda tokens: 50 * torch.nn.functional.one_hot(answers, 8).float()

    knows_next = sure_of((tokens + 1) % 8)
    knows_same = sure_of(tokens)
    assert leak_experiment.next_token_loss(knows_next, tokens) < 1e-6
    assert leak_experiment.next_token_loss(knows_same, tokens) > 40


def test_random_tokens_are_even_and_independent():
    tokens = leak_experiment.random_tokens(20_000, torch.Generator().manual_seed(0))
    assert tokens.shape == (20_000, 8)
    pairs = torch.bincount((8 * tokens[:, 3] + tokens[:, 4]), minlength=64) / 20_000
    assert (pairs - 1 / 64).abs().max() < 5 * math.sqrt(1 / 64 / 20_000)


@pytest.mark.parametrize(
    ("attention", "error", "words"),
    [
        (lambda q, k, v: (v, q), TypeError, "return the output alone"),
        (lambda q, k, v: v.mean(-2), ValueError, r"expected \(B, h, T, d_head\)"),
        (lambda q, k, v: v * math.nan, ValueError, "the loss is nan at step 0"),
    ],
)
def test_an_attention_that_does_not_fit_is_reported_so(attention, error, words):
    with pytest.raises(error, match=words):
        leak_experiment.train(attention, steps=1)


# --- learning to look up, by scale ----------------------------------------------------------------------------------

SCALES = scale_experiment.SCALES


@remember
def learnt(name, steps=150):
    return scale_experiment.train(SCALES[name], seed=0, steps=steps)


def test_the_three_scales():
    assert SCALES == {"1": 1, "1/√d_k": 1 / 16, "1/d_k": 1 / 256}
    assert scale_experiment.D_K == 256


@TRAINED
def test_one_over_root_d_k_learns_first_of_the_three():
    last = {name: np.mean(learnt(name).losses[-20:]) for name in SCALES}
    assert last["1/√d_k"] < 0.2 and min(last["1"], last["1/d_k"]) > 3 * last["1/√d_k"]


@TRAINED
def test_without_a_scale_attention_starts_saturated_and_with_1_over_d_k_flat():
    before = {name: learnt(name).entropy_before for name in SCALES}
    assert before["1"] < 0.5 and 2 < before["1/√d_k"] < 2.6 and before["1/d_k"] > 0.99 * math.log(16)


def test_what_was_asked_for_is_found_after_training_only():
    run = learnt("1/√d_k")
    assert run.found_before < 0.3 and run.found_after > 0.8 and run.entropy_after < 0.7


def test_runs_of_one_seed_start_alike_whatever_the_scale():
    models = []
    for scale in SCALES.values():
        torch.manual_seed(3)
        models.append(scale_experiment.LookUp(scale))
    for model in models[1:]:
        assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), model.parameters(), strict=True))


@pytest.mark.parametrize("start", [1.0, scale_experiment.AS_NN_LINEAR])
def test_queries_and_keys_start_with_the_spread_that_is_asked_for(start):
    torch.manual_seed(0)
    model = scale_experiment.LookUp(1.0, start)
    keys, values, asked, _ = scale_experiment.dictionaries(500, torch.Generator().manual_seed(0))
    with torch.no_grad():
        q = model.q_proj(model.keys(asked))
        k = model.k_proj((model.keys(keys) + model.values(values)) / math.sqrt(2))
    for entries in (q, k):
        assert entries.mean().abs() < 0.1 and entries.std() == pytest.approx(start, rel=0.1)
    by_torch = torch.nn.Linear(64, 256).weight.std().item() * 8  # √d_model = 8
    assert by_torch == pytest.approx(scale_experiment.AS_NN_LINEAR, rel=0.02)


def test_a_dictionary_has_each_key_once_and_is_asked_for_one_of_them():
    keys, values, asked, place = scale_experiment.dictionaries(200, torch.Generator().manual_seed(0))
    assert keys.shape == values.shape == (200, 16)
    assert all(len(set(row)) == 16 for row in keys.tolist())
    assert torch.equal(keys[torch.arange(200), place], asked)
    assert keys.max() < 32 and values.max() < 16 and len(place.unique()) == 16


@TRAINED
def test_scores_spread_as_the_proof_says_before_training_and_find_the_wanted_key_after():
    for seed in (0, 1):
        q, expected, others = scale_experiment.scores_after(0, seed)
        assert q.shape == (512, 256) and expected.shape == (512,) and others.shape == (512, 15)
        assert abs(expected.mean()) < 0.5 and q.std() == pytest.approx(1, abs=0.15)
        assert others.std() == pytest.approx(1, abs=0.25)
        _, expected, others = scale_experiment.scores_after(300, seed)
        assert 8 < expected.mean() < 12 and abs(others.mean()) < 1 and 1.6 < others.std() < 3


def test_scores_after_training_give_the_weights_that_a_run_reports():
    """With all 16 scores of a dictionary, softmax gives the weight on the key asked for."""
    for steps in (0, 20):
        _, expected, others = scale_experiment.scores_after(steps, seed=3)
        result = torch.softmax(torch.cat([expected[:, None], others], dim=1), dim=1)[:, 0].mean().item()
        run = scale_experiment.train(SCALES["1/√d_k"], seed=3, steps=max(1, steps))
        assert result == pytest.approx(run.found_after if steps else run.found_before, abs=1e-5)


@pytest.mark.parametrize("arguments", [{"scale": 0}, {"scale": math.nan}, {"rate": 0}, {"start": -1}, {"steps": 0}])
def test_settings_that_make_no_sense_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        scale_experiment.train(**{"scale": 1.0, "steps": 1} | arguments)


# --- the models of characters ---------------------------------------------------------------------------------------

load = remember(characters.load)
RECORDED = {row["name"]: row for row in characters.recorded()["rows"]}


@pytest.mark.parametrize("name", characters.NAMES)
def test_the_checkpoints_give_the_recorded_losses(name):
    model = load(name)
    text = characters.held_out_text()
    assert characters.loss(model, text) == pytest.approx(RECORDED[name]["loss"], rel=1e-3, abs=1e-5)


def test_the_leaking_model_wins_on_loss_and_loses_without_the_future():
    text = characters.held_out_text()[: 10 * characters.CONTEXT]
    causal = load("causal")
    leaking = load("leaking")
    assert characters.loss(leaking, text) < 0.05 < 1 < characters.loss(causal, text) < 2
    assert characters.loss_without_future(leaking, text) > math.log(len(characters.alphabet()))  # worse than blind
    assert characters.loss_without_future(causal, text) == pytest.approx(characters.loss(causal, text), abs=1e-4)
    assert RECORDED["leaking"]["loss_without_future"] > 4 > 2 > RECORDED["causal"]["loss_without_future"]


@TRAINED
def test_the_causal_model_writes_words_and_the_leaking_one_does_not():
    known = set(characters.training_text().split())

    def share_of_words(name):
        """The share of the characters that belong to words of the training text, of two letters or more."""
        written = " ".join(characters.write(load(name), "The ", 150, seed) for seed in range(3))
        return sum(len(word) for word in written.split() if word in known and len(word) > 1) / len(written)

    assert share_of_words("causal") > 0.5 > 0.2 > share_of_words("leaking")


def test_the_same_seed_writes_the_same_text_and_another_seed_another():
    model = load("causal")
    once, again, other = (characters.write(model, "The ", 40, seed) for seed in (0, 0, 1))
    assert once == again != other and len(once) == 40
    assert characters.write(model, "The ", 40, seed=0, temperature=0) == characters.write(
        model, "The ", 40, seed=1, temperature=0
    )


def test_a_long_prompt_is_seen_from_its_end():
    model = load("causal")
    text = characters.held_out_text()[:300]
    assert characters.write(model, text, 60) == characters.write(model, text[-95:], 60)
    assert characters.write(model, text, 60) != characters.write(model, text[-3:], 60)


def test_the_two_models_differ_by_the_mask_only():
    causal, leaking = (characters.train(name, steps=1)[0] for name in characters.NAMES)
    shapes = [{key: value.shape for key, value in model.state_dict().items()} for model in (causal, leaking)]
    assert shapes[0] == shapes[1]
    tokens = characters.encode("attention")[None]
    everything = torch.ones(9, 9, dtype=torch.bool)
    leaking.load_state_dict(causal.state_dict())
    assert torch.equal(leaking(tokens), causal(tokens, mask=everything))
    assert not torch.allclose(leaking(tokens), causal(tokens))


def test_held_out_text_was_not_trained_on():
    held_out = characters.held_out_text().split("\n")
    training = set(characters.training_text().split("\n"))
    assert len(held_out) > 50 and not training & set(held_out)
    assert len(held_out) + len(training) == len(set(held_out) | training) == 651


def test_text_and_tokens_turn_into_each_other():
    text = characters.held_out_text()
    assert characters.decode(characters.encode(text)) == text
    assert len(characters.alphabet()) == load("causal").embedding.num_embeddings
    with pytest.raises(ValueError, match="do not know 'é', '√'"):
        characters.encode("é√a")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: characters.load("mine"), '"causal" and "leaking"'),
        (lambda: characters.write(load("causal"), "", 3), "prompt is empty"),
        (lambda: characters.write(load("causal"), "a", 3, temperature=-1), "temperature is -1"),
        (lambda: characters.loss(load("causal"), "a"), "the text has 1 character"),
    ],
)
def test_errors_say_what_to_do(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_checkpoints_are_small():
    for name in characters.NAMES:
        assert (characters.STORED / f"characters-{name}.npz").stat().st_size < 600_000


def test_the_text_carries_its_licence():
    licence = (characters.STORED / "python-documentation.LICENSE.txt").read_text(encoding="utf-8")
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in licence and "What was changed" in licence
    assert "All Rights Reserved" in licence


# --- the same numbers again, and what is stored ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "losses",
    [
        lambda seed: leak_experiment.train(after_softmax, seed, steps=5).losses,
        lambda seed: scale_experiment.train(1 / 16, seed, steps=5).losses,
        lambda seed: characters.train("leaking", steps=2, seed=seed)[1],
    ],
    ids=["leak", "scale", "characters"],
)
def test_a_seed_settles_a_run_and_leaves_the_callers_generator_alone(losses):
    torch.manual_seed(7)
    state = torch.get_rng_state()
    first = losses(0)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert losses(0) == first != losses(1)


@pytest.mark.parametrize("module", [scale_experiment, characters])
def test_a_stored_run_says_where_when_and_how_it_was_made(module):
    result = module.recorded()
    assert {"device", "torch", "python", "numpy", "date", "threads"} <= set(result["environment"])
    assert result["environment"]["threads"] == 1
    assert result["settings"]["command"] == f"python -m {module.__name__} --record"
    assert not result["settings"]["quick"] and result["findings"]
    assert result["settings"]["steps"] == module.STEPS and result["settings"]["batch"] == module.BATCH


def test_the_stored_runs_of_the_scales_are_those_of_this_code():
    result = scale_experiment.recorded()
    settings = result["settings"]
    assert (settings["d_k"], settings["pairs"], settings["seeds"]) == (256, 16, list(scale_experiment.SEEDS))
    assert np.allclose(settings["rates_and_starts"], scale_experiment.SETTINGS, rtol=1e-5)
    assert len(result["rows"]) == len(scale_experiment.SETTINGS) * 3 * 5
    row = next(row for row in result["rows"] if (row["scale"], row["rate"], row["seed"]) == ("1/√d_k", 1e-3, 0))
    losses = learnt("1/√d_k").losses  # its first 150 steps, made again
    assert np.allclose(np.reshape(losses, (-1, 10)).mean(1)[:5], row["losses"][:5], atol=0.01)


def test_the_stored_runs_of_the_models_of_characters_are_those_of_this_code():
    result = characters.recorded()
    assert result["settings"]["sizes"] == characters.SIZES
    assert result["settings"]["characters"] == len(characters.training_text())
    assert result["settings"]["parameters"] == sum(p.numel() for p in load("causal").parameters())
    _, losses = characters.train("causal", steps=1)
    assert losses[0] == pytest.approx(math.log(len(characters.alphabet())), abs=0.3)
    assert [len(row["losses"]) for row in result["rows"]] == [characters.STEPS // result["settings"]["averaged"]] * 2


def test_curves_have_a_line_for_each_seed():
    for rate, start in scale_experiment.SETTINGS:
        steps, losses = scale_experiment.curves(rate, start)
        assert list(losses) == list(SCALES) and steps[0] == 5 and steps[-1] == 495
        assert all(runs.shape == (5, 50) for runs in losses.values())
    with pytest.raises(ValueError, match=r"rate 0\.5, start 1 was not run"):
        scale_experiment.curves(0.5)


def test_the_summary_counts_who_learnt_and_when():
    settings = {"rates_and_starts": [[0.1, 1.0]], "scales": {"1": 1.0}, "averaged": 10}
    inside = {"entropy_before": 1.0, "entropy_after": 0.5, "found_after": 0.7}
    losses = ([2, 1, 0.05], [2, 0.09, 0.2], [2, 1, 0.3])
    rows = [{"scale": "1", "rate": 0.1, "start": 1.0, "seed": i, "losses": x} | inside for i, x in enumerate(losses)]
    (row,) = scale_experiment.summary({"settings": settings, "rows": rows})
    assert (row["learnt"], row["steps_to_learn"]) == (2, 30)
    assert (row["loss"], row["loss_low"], row["loss_high"]) == (0.2, 0.05, 0.3)
    (row,) = scale_experiment.summary({"settings": settings, "rows": rows[2:]})
    assert (row["learnt"], row["steps_to_learn"]) == (0, None)
    (row,) = scale_experiment.summary({"settings": settings, "rows": [rows[0], rows[2]]})
    assert (row["learnt"], row["steps_to_learn"]) == (1, 30)  # half of the seeds are enough


def test_the_findings_that_the_lesson_tells_are_in_the_stored_run():
    rows = {(row["rate"], round(row["start"], 3), row["scale"]): row for row in scale_experiment.summary()}
    for rate in scale_experiment.RATES:
        root = rows[rate, 1, "1/√d_k"]["steps_to_learn"]
        assert all(root < (rows[rate, 1, name]["steps_to_learn"] or math.inf) for name in ("1", "1/d_k"))
    assert [rows[rate, 1, "1"]["learnt"] for rate in scale_experiment.RATES] == [0, 5, 3, 0]
    assert rows[1e-2, 1, "1/d_k"]["loss"] < rows[1e-2, 1, "1/√d_k"]["loss"] < rows[1e-2, 1, "1"]["loss"]
    assert rows[1e-3, 0.577, "1"]["steps_to_learn"] < rows[1e-3, 0.577, "1/d_k"]["steps_to_learn"]


@pytest.mark.thorough("experiments are run by their commands")
@pytest.mark.parametrize("module", [scale_experiment, characters])
def test_a_run_is_written_by_the_command_and_can_be_read(module, tmp_path, capsys):
    module.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.glob("*.json")
    result = records.read(path)
    assert (
        result["settings"]["quick"] and result["benchmark"] == module.BENCHMARK and str(path) in capsys.readouterr().out
    )
