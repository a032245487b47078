"""The capstone's record: what each ablation takes away, the ladder of texts, and the weights that ship."""

import runpy
import sys

import pytest
import torch

from course_utils.costs import records
from course_utils.course import ROOT
from course_utils.models import small_gpt
from course_utils.models import small_gpt_record as record

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = pytest.mark.thorough("experiments are run by their commands")
V = record.SMALL_VOCABULARY


def tokens(n=12, seed=0):
    return torch.randint(256, (2, n), generator=torch.Generator().manual_seed(seed))


def randomised(way):
    """A model of an ablation in which every matrix writes something."""
    model = record.ablated(way)
    torch.manual_seed(1)
    for weights in model.parameters():
        if weights.ndim == 2:
            torch.nn.init.normal_(weights, std=weights.shape[1] ** -0.5)
    return model


@pytest.mark.parametrize("way", record.ABLATIONS)
def test_each_ablation_learns_from_the_past_alone(way):
    model = randomised(way)
    given, changed = tokens(), tokens()
    changed[:, -1] = (given[:, -1] + 1) % 256
    with torch.no_grad():
        moved = (model(given) - model(changed)).abs().amax((0, 2))
    assert moved[:-1].max() < 1e-5 < moved[-1]
    small_gpt.loss_of(model, given[:, :-1], given[:, 1:]).backward()
    assert all(weights.grad is not None for weights in model.parameters())


def test_each_ablation_takes_away_what_its_name_says():
    models = {way: record.ablated(way) for way in record.ABLATIONS}
    shipped = models[record.WHOLE]
    names = set(shipped.state_dict())
    assert not [name for name in models["without norm"].state_dict() if "norm" in name]
    assert not [name for name in models["without gate"].state_dict() if "gate" in name]
    assert models["without tying"].unembedding.weight is not models["without tying"].embedding.weight
    assert models["with learned positions"].unembedding.weight is models["with learned positions"].embedding.weight
    assert set(models["with learned positions"].state_dict()) - names == {"embedding.places"}
    assert models["with PyTorch's initialisation"].embedding.weight.std() > 0.9
    counts = {way: sum(weights.numel() for weights in model.parameters()) for way, model in models.items()}
    assert counts["without gate"] == counts["without residual"] == counts[record.WHOLE]
    recipes = {way: dict(ablation.recipe) for way, ablation in record.ABLATIONS.items() if ablation.recipe}
    assert len(recipes) == 5 and all(len(recipe) == 1 for recipe in recipes.values())


def test_models_are_compared_with_the_one_of_the_same_seed():
    runs = {"kind": "ablation", "losses": [5.0]}
    bits = dict.fromkeys(record.ABLATIONS, (1.5, 2.5)) | {record.WHOLE: (1.0, 3.0)}
    rows = [
        {**runs, "way": way, "seed": seed, "bits_per_byte": each[seed]} for way, each in bits.items() for seed in (1, 0)
    ]
    whole, *others = record.ablations({"rows": rows})
    assert whole["worse"] == [0, 0] and all(row["worse"] == [-0.5, 0.5] for row in others)
    assert [row["way"] for row in others if row["recipe"]][:2] == ["without warm-up", "without cosine"]
    (line,) = record.worse_by_seed([whole, others[0]]).splitlines()
    assert line.split("  ")[0] == "without residual" and line.endswith("+0.000 (-0.500 to +0.500)")


def test_a_block_without_residual_adds_nothing():
    with_it, without = randomised(record.WHOLE), randomised("without residual")
    x = torch.randn(1, 5, 64, generator=torch.Generator().manual_seed(2))
    block = with_it.blocks[0]
    bare = record.WithoutResidual(block)
    attended = block.attention(block.attention_norm(x))
    torch.testing.assert_close(bare(x)[0], block.feed_forward(block.feed_forward_norm(attended)))
    assert type(without.blocks[0]) is record.WithoutResidual
    assert record.ablated("without residual").blocks[0].attention.out_proj.weight.any()


def test_learned_positions_tell_places_apart_and_no_layer_turns():
    model = randomised("with learned positions")
    with torch.no_grad():
        logits = model(torch.full((1, 8), 5))[0]
    assert (logits[0] - logits[-1]).abs().max() > 1e-3
    assert [block.attention.rope for block in model.blocks] == [None] * 4


def test_stored_weights_come_back_in_half_precision(tmp_path):
    model = small_gpt.new_model(seed=3)
    stored = record.load(record.save(model, tmp_path).parent)
    assert stored.unembedding.weight is stored.embedding.weight
    for name, weights in stored.state_dict().items():
        torch.testing.assert_close(weights, model.state_dict()[name], rtol=1e-3, atol=1e-6)


@QUICK
def test_the_ladder_goes_down_and_writes():
    rows = list(record.climb(6, rungs=(5.6, 5.0)))
    assert [row["loss"] <= rung for row, rung in zip(rows, (5.6, 5.0), strict=True)] == [True, True]
    assert rows[0]["step"] < rows[1]["step"] and len(rows[0]["text"].encode(errors="replace")) >= record.WRITTEN


@QUICK
def test_a_run_is_written_by_the_command_and_can_be_read(tmp_path, capsys):
    record.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.glob("*.json")
    result = records.read(path)
    assert result["settings"]["quick"] and str(path) in capsys.readouterr().out
    assert [row["way"] for row in record.ablations(result)] == [*record.ABLATIONS]
    assert record.load(tmp_path).embedding.num_embeddings == small_gpt.VOCABULARY


@QUICK
def test_the_benchmark_against_nano_gpt_runs(tmp_path, monkeypatch):
    path = ROOT / "benchmarks" / "training.py"
    monkeypatch.setattr(sys, "argv", [str(path), "--quick", "--out", str(tmp_path)])
    runpy.run_path(str(path), run_name="__main__")
    (written,) = tmp_path.iterdir()
    published, at_best, characters, ours = records.read(written)["rows"]
    assert published["tokens"] == at_best["tokens"] == characters["tokens"]
    assert ours["seconds"] >= at_best["seconds"]


def test_nano_gpts_setting_is_the_published_one():
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "training.py"))
    model = benchmark["nano_gpt"](65)
    blocks, embeddings = 4 * (12 * 128**2 + 2 * 128), 65 * 128 + 64 * 128 + 128
    assert sum(weights.numel() for weights in model.parameters()) == blocks + embeddings
    assert model.unembedding.weight is model.embedding.weight
    given, changed = tokens() % 65, tokens() % 65
    changed[:, -1] = (given[:, -1] + 1) % 65
    with torch.no_grad():
        moved = (model(given) - model(changed)).abs().amax((0, 2))
    assert moved[:-1].max() < 1e-6 < moved[-1]
    nano = benchmark["NANO"]
    assert (nano.rate, nano.rate_at(1999, 1), nano.beta2, nano.warm_up) == (1e-3, pytest.approx(1e-4), 0.99, 100)
    assert (nano.batch, nano.context, nano.weight_decay, nano.clip) == (12, 64, 0.1, 1.0)
