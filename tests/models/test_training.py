"""Training: its rate, its checkpoints, interrupts, and that it goes on to the same numbers."""

import _thread
import dataclasses
import itertools
import json
from functools import cache as remember

import pytest
import torch

from course_utils.models import small_gpt, training
from course_utils.models.training import History, Progress, Recipe, train

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 16}
RECIPE = {"batch": 4, "context": 16, "warm_up": 4}
STEPS = 12


@remember
def data():
    return small_gpt.data_of(small_gpt.TEXT.read_bytes()[:6_000], 256)


def new_model(seed=0, **sizes):
    return small_gpt.new_model(256, seed=seed, **(SMALL | sizes))


def run(model, **options):
    return train(model, data(), **({"steps": STEPS, "progress": None} | RECIPE | options))


def test_the_loss_falls_and_all_is_measured():
    history = run(new_model(), steps=60, rate=1e-2)
    assert history.losses[-1] < history.losses[0] - 1
    assert len(history.losses) == len(history.norms) == len(history.rates) == 60
    assert history.tokens_per_second == pytest.approx(60 * 4 * 16 / history.seconds)
    assert 3 < history.bits_per_byte < 7.5


def test_the_rate_rises_then_falls_along_a_cosine_to_a_share():
    recipe = Recipe(rate=1.0, final=0.1, warm_up=4)
    assert [recipe.rate_at(step, 0) for step in range(5)] == [0.25, 0.5, 0.75, 1, 1]
    assert recipe.rate_at(9, 0.5) == pytest.approx(0.55)
    assert recipe.rate_at(9, 1) == recipe.rate_at(9, 1.2) == pytest.approx(0.1)
    assert run(new_model(), rate=1.0).rates == [
        pytest.approx(Recipe(rate=1.0, **RECIPE).rate_at(i, i / STEPS)) for i in range(STEPS)
    ]


def test_a_step_is_the_arithmetic_of_adamw_with_clipped_gradients():
    model, expected = new_model(), new_model()
    history = run(model, steps=2, rate=1e-2, clip=0.5, weight_decay=0.2)
    recipe = Recipe(rate=1e-2, clip=0.5, weight_decay=0.2, **RECIPE)
    moments = {}
    for step in range(2):
        expected.zero_grad()
        small_gpt.loss_of(expected, *small_gpt.batches(data().train, 16, 4, 0, step)).backward()
        norm = sum(weights.grad.square().sum() for weights in expected.parameters()).sqrt()
        assert history.norms[step] == pytest.approx(norm.item(), rel=1e-5) and norm > 0.5
        rate = recipe.rate_at(step, step / 2)
        with torch.no_grad():
            for weights in expected.parameters():
                gradient = weights.grad * 0.5 / norm
                mean, square = moments.get(weights, (0, 0))
                mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
                moments[weights] = mean, square
                weights -= rate * (0.2 if weights.ndim > 1 else 0) * weights
                corrected = (square / (1 - 0.99 ** (step + 1))).sqrt()
                weights -= rate * mean / (1 - 0.9 ** (step + 1)) / (corrected + 1e-8)
    for weights, wanted in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(weights, wanted, rtol=0, atol=2e-5)


def interrupt_at(step, by=KeyboardInterrupt):
    def progress(now):
        if now.step == step:
            if by is KeyboardInterrupt:
                raise KeyboardInterrupt
            _thread.interrupt_main()

    return progress


@pytest.mark.parametrize("by", [KeyboardInterrupt, "signal"])
def test_after_an_interrupt_the_same_call_goes_on_to_the_same_numbers(tmp_path, by):
    whole_model, model = new_model(), new_model()
    expected = run(whole_model)
    path = tmp_path / "model.pt"
    with pytest.raises(KeyboardInterrupt, match="interrupted after step 5"):
        run(model, checkpoint=path, progress=interrupt_at(5, by))
    assert len(History.read(tmp_path / "history.json").losses) == 5
    model = new_model(seed=9)  # as in a new process: the checkpoint has all
    history = run(model, checkpoint=path)
    assert (history.losses, history.norms, history.rates) == (expected.losses, expected.norms, expected.rates)
    assert history.bits_per_byte == expected.bits_per_byte
    for weights, wanted in zip(model.parameters(), whole_model.parameters(), strict=True):
        assert torch.equal(weights, wanted)


def test_an_interrupt_within_a_step_waits_until_its_end(tmp_path):
    def draw(*arguments):
        if arguments[-1] == 2:
            _thread.interrupt_main()
        return small_gpt.batches(*arguments)

    model, path = new_model(), tmp_path / "model.pt"
    with pytest.raises(KeyboardInterrupt, match="interrupted after step 3"):
        run(model, checkpoint=path, draw=draw)
    assert run(new_model(), checkpoint=path).losses == run(new_model()).losses


def test_what_was_trained_to_the_end_is_not_trained_again(tmp_path):
    path = tmp_path / "model.pt"
    expected = run(new_model(), checkpoint=path)
    model = new_model(seed=4)
    assert run(model, checkpoint=path, draw=None) == expected
    assert History.read(tmp_path / "history.json") == expected
    keys = {"losses", "rates", "norms", "tokens_per_second", "bits_per_byte"}
    assert keys <= json.loads((tmp_path / "history.json").read_text()).keys()


def test_the_line_of_a_finished_training_is_shown_again(tmp_path, capsys):
    path = tmp_path / "model.pt"
    run(new_model(), checkpoint=path)
    run(new_model(), checkpoint=path, draw=None, progress=training.print_progress)
    assert "step 12 (100%)" in capsys.readouterr().out


def test_a_sample_lies_beside_its_checkpoint_with_the_mean_of_the_last_losses(tmp_path):
    history = run(new_model(), checkpoint=tmp_path / "model.pt")
    training.save_sample(tmp_path / "model.pt", "ROMEO:")
    (sample,) = json.loads((tmp_path / "samples.json").read_text())
    assert sample == {"loss": pytest.approx(sum(history.losses) / STEPS), "text": "ROMEO:"}


def test_a_checkpoint_is_whole_though_writing_the_next_one_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SAVE_EVERY", 5)
    path = tmp_path / "model.pt"
    saved = torch.save
    calls = []

    def breaks_at_second(state, file):
        calls.append(state)
        saved(state, file)
        if len(calls) == 2:
            raise MemoryError

    monkeypatch.setattr(torch, "save", breaks_at_second)
    with pytest.raises(MemoryError):
        run(new_model(), checkpoint=path)
    assert {file.name for file in tmp_path.iterdir()} == {"model.pt", "history.json"}
    monkeypatch.setattr(torch, "save", saved)
    assert run(new_model(seed=2), checkpoint=path).losses == run(new_model()).losses


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    run(new_model(), checkpoint=path)
    for options, message in (
        ({"rate": 0.5}, f"with rate {Recipe().rate}, not 0.5: give another path"),
        ({"steps": 3}, "with steps 12, not 3"),
        ({"seed": 1}, "with seed 0, not 1"),
    ):
        with pytest.raises(ValueError, match=message):
            run(new_model(), checkpoint=path, **options)
    with pytest.raises(ValueError, match="of a model of another size"):
        run(new_model(d_model=32), checkpoint=path)


def test_minutes_end_the_training_by_the_clock(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(training.time, "perf_counter", lambda: float(next(ticks)))  # each step takes a second
    seen = []
    history = run(new_model(), steps=None, minutes=0.5, progress=seen.append)
    assert history.seconds == len(history.losses) == 30
    assert history.tokens_per_second == 4 * 16
    assert [now.seconds_left for now in seen] == [pytest.approx(30 - i, abs=1e-6) for i in range(1, 31)]
    assert history.rates == run(new_model(), steps=30).rates


def test_steps_or_minutes_are_given_and_names_are_known():
    for options in ({"steps": None}, {"minutes": 1}):
        with pytest.raises(ValueError, match="give either steps or minutes"):
            run(new_model(), **options)
    with pytest.raises(TypeError, match="lr"):
        run(new_model(), lr=1e-3)


def test_weights_without_gradient_are_left_alone():
    model = new_model()
    model.blocks[0].requires_grad_(False)
    before = {name: weights.clone() for name, weights in model.blocks[0].named_parameters()}
    run(model)
    assert all(torch.equal(weights, before[name]) for name, weights in model.blocks[0].named_parameters())


def test_progress_says_how_far_it_is(capsys):
    seen = []
    run(new_model(), progress=seen.append)
    assert [now.step for now in seen] == list(range(1, STEPS + 1))
    assert seen[-1].share == 1 and seen[-1].seconds_left == 0 and seen[2].seconds_left > 0
    run(new_model(), progress=training.print_progress)
    lines = capsys.readouterr().out.split("\r")
    assert len(lines) == 3 and lines[-1].startswith("step 12 (100%), loss ") and lines[-1].endswith("\n")
    now = Progress(1500, 0.75, 1.23456, 54321.2, 83.2)
    assert str(now) == "step 1,500 (75%), loss 1.235, 54,321 tokens/s, 1:24 left"


def test_a_history_comes_back_from_its_file(tmp_path):
    history = History([1.0, 0.5], [2.0, 1.0], [0.1, 0.1], 3.0, 100.0, None)
    path = tmp_path / "history.json"
    path.write_text(json.dumps(dataclasses.asdict(history)))
    assert History.read(path) == history
