"""Eight ways to mix tokens: the texts they learn, what each computes, and what the stored runs say."""

import numpy as np
import pytest
import torch

from course_utils.attention import linear
from course_utils.costs import records
from course_utils.models import recall_experiment as recall


def drawn(seed=0, T=9):
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, 2, 1, T, recall.D_HEAD, dtype=torch.float64)
    return q, k, v, torch.randn(2, 1, T, dtype=torch.float64)


@pytest.mark.parametrize("new_values", [False, True])
def test_a_text_asks_for_the_value_that_a_key_was_written_with_last(new_values):
    tokens, told = recall.texts(np.random.default_rng(0), np.array([2, 5, 10]), np.full(3, new_values))
    assert tokens.shape == told.shape == (3, recall.LENGTH)
    for text, asked, pairs in zip(tokens.tolist(), told.tolist(), (2, 5, 10), strict=True):
        written = {}
        for place in range(0, recall.LENGTH, 2):
            key, value = text[place : place + 2]
            assert key < recall.KEYS <= value < 2 * recall.KEYS
            assert asked[place] is False and asked[place + 1] is (place >= 4 * pairs)
            if asked[place + 1]:
                assert written[key] == value
            written[key] = value
        assert len(written) == pairs


def test_each_way_looks_back_only():
    q, k, v, gate = drawn()
    for mixes in recall.VARIANTS.values():
        for mix in mixes:
            before = mix(q, k, v, gate)
            later = mix(*(torch.cat([x[:, :, :5], x[:, :, 5:] + 1], dim=2) for x in (q, k, v)), gate)
            assert torch.allclose(before[:, :, :5], later[:, :, :5])


def test_the_delta_rule_and_the_sum_are_those_of_the_library():
    q, k, v, gate = drawn()
    unit = [torch.nn.functional.normalize(torch.nn.functional.silu(x), dim=-1).numpy() for x in (q, k)]
    expected = linear.delta_recurrent(*unit, v.numpy(), torch.sigmoid(gate).numpy())
    recall_delta = recall.delta(q, k, v, gate)
    assert np.allclose(recall_delta, expected)
    assert np.allclose(recall.plain(q, k, v, gate), linear.recurrent(*unit, v.numpy()))
    positive = [linear.elu_plus_one(x.numpy()) for x in (q, k)]
    assert np.allclose(recall.linear(q, k, v, gate), linear.recurrent(*positive, v.numpy(), normalised=True))


def test_all_variants_have_as_many_parameters():
    counts = {sum(p.numel() for p in recall.Model(mixes).parameters()) for mixes in recall.VARIANTS.values()}
    assert len(counts) == 1 and {row["parameters"] for row in recall.recorded()["rows"]} == counts


def test_the_same_seed_gives_the_same_run():
    (_, first), (_, second) = (recall.train("linear", 1, steps=4) for _ in range(2))
    assert first == second


def test_a_copy_asks_for_all_tokens_of_the_piece_that_comes_again():
    tokens, told = recall.copies(np.random.default_rng(0), np.array([4, 24]))
    for text, asked, length in zip(tokens.tolist(), told.tolist(), (4, 24), strict=True):
        assert len(set(text[:length])) == length
        assert text == (text[:length] * recall.LENGTH)[: recall.LENGTH]
        assert asked == [place > length for place in range(recall.LENGTH)]


def test_what_the_lesson_says_is_in_the_stored_runs():
    found = {task: recall.accuracies(task) for task in recall.TASKS}
    for task, variants in found.items():
        assert set(variants) == set(recall.VARIANTS)
        assert {runs.shape for runs in variants.values()} == {(3, len(recall.MEASURED[task]))}
        last = {name: runs[:, -1] for name, runs in variants.items()}
        assert min(last[name].min() for name in ("full", "delta, then full", "window, then full")) > 0.999
        if task == "copy":
            assert max(last[name].max() for name in ("window", "linear", "sum", "decay", "delta")) < 0.55
            assert np.median(variants["sum"], axis=0).round(2)[[1, 2, 4]].tolist() == [0.98, 0.9, 0.54]
        else:
            ahead = last["delta"] > last["sum"]
            assert ahead.all() if task == "new values" else not ahead.any()
            assert last["decay"].min() > max(last[name].max() for name in ("linear", "sum", "delta"))
            assert min(runs[:, 0].min() for runs in variants.values()) > 0.98
            assert last["window"].max() < 0.75
    assert {row["seed"] for row in recall.recorded()["rows"]} == {0, 1, 2}


@pytest.mark.thorough("experiments are run by their commands")
def test_a_run_is_written_by_the_command_and_can_be_read(tmp_path, capsys):
    recall.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.glob("*.json")
    result = records.read(path)
    assert result["settings"]["quick"] and str(path) in capsys.readouterr().out
