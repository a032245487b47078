"""The checks of day 9: what its statements promise, held against other ways to compute the same."""

import inspect
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_utils.answers.day9.exercises import EXERCISES
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, gather
from course_utils.models.decoder import Decoder

SENTENCE = "the parcel that we sent arrived, né"


def reference(grade_id, name=None):
    answers = EXERCISES[grade_id].reference
    return answers[name or next(iter(answers))]


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


# Tokens ---------------------------------------------------------------------------------------------------------------


def trained(text, count):
    """The merges of so many steps, and the tokens after them."""
    tokens, merges = list(text), []
    for number in range(count):
        pair, tokens = reference("merge_step")(tokens, 256 + number)
        merges.append(pair)
    return merges, tokens


def test_encoding_the_training_text_gives_what_training_left():
    text = SENTENCE.encode() * 3
    merges, tokens = trained(text, 20)
    assert reference("encode_decode", "encode")(text, merges) == tokens


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_come_back(seed):
    merges, _ = trained(SENTENCE.encode() * 3, 20)
    text = np.random.default_rng(seed).bytes(50) + SENTENCE.encode()[seed:]
    tokens = reference("encode_decode", "encode")(text, merges)
    assert reference("encode_decode", "decode")(tokens, merges) == text


# The sampler ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.3, 0.8, 0.95, 1.0])
def test_draws_are_spread_as_the_kept_probabilities_are(p):
    logits = drawn(6)
    draws = [reference("top_p")(logits, p, u) for u in (np.arange(10_000) + 0.5) / 10_000]
    kept = draws[0][0]
    shares = np.exp(logits[kept]) / np.exp(logits[kept]).sum()
    found = np.bincount([token for _, token in draws], minlength=6)[kept] / 10_000
    np.testing.assert_allclose(found, shares, atol=2e-4)
    assert np.exp(logits[kept]).sum() >= p * np.exp(logits).sum() * (1 - 1e-12)
    assert np.exp(logits[kept[:-1]]).sum() < p * np.exp(logits).sum()


# Losses and batches ---------------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_pytorch_with_padding_ignored():
    logits, lengths = drawn(4, 6, 5), np.array([6, 1, 3, 2])
    targets = np.random.default_rng(1).integers(0, 5, (4, 6))
    ignored = np.where(np.arange(6) < lengths[:, None], targets, -100)
    expected = F.cross_entropy(torch.tensor(logits).flatten(0, 1), torch.tensor(ignored).flatten())
    assert reference("padded_loss")(logits, ignored, lengths) == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize(("n", "held_out", "context"), [(30, 7, 4), (12, 5, 4), (20, 10, 1)])
def test_no_target_of_a_part_lies_in_the_other(n, held_out, context):
    u = np.linspace(0, 1, 500, endpoint=False)
    tokens = np.arange(n)
    seen = {}
    for part in ("train", "held out"):
        inputs, targets = reference("batch_without_leak")(tokens, held_out, part, context, u)
        assert (targets == inputs + 1).all()
        seen[part] = {*inputs.ravel().tolist(), *targets.ravel().tolist()}
    assert seen == {"train": {*range(n - held_out)}, "held out": {*range(n - held_out, n)}}


# The doctor -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [False, True])
def test_models_are_as_ill_as_the_statement_promises(hidden):
    """What is seen too early changes a logit by more than 1e-3, whatever it is changed to; all else by 1e-6 at most."""
    for rung in draw_rungs(9, "first_checks", hidden=hidden):
        model, tokens, vocabulary = rung.args
        logits, (B, T) = model(tokens), tokens.shape
        loss = F.cross_entropy(torch.tensor(logits[:, :-1]).flatten(0, 1), torch.tensor(tokens[:, 1:]).flatten())
        assert not 0.05 < abs(loss - math.log(vocabulary)) < 0.3, rung.name
        sees = inspect.getclosurevars(model).nonlocals["sees"](B, T) > 0
        for b in range(B):
            for t in range(T):
                for word in set(range(vocabulary)) - {int(tokens[b, t])}:
                    changed = tokens.copy()
                    changed[b, t] = word
                    off = np.abs(model(changed) - logits).max(axis=-1)
                    assert (off[sees[:, :, b, t]] > 1e-3).all() and (off[~sees[:, :, b, t]] <= 1e-6).all(), rung.name


# The model ------------------------------------------------------------------------------------------------------------


PLACES = {"attention_norm": "norm_1", "feed_forward_norm": "norm_2", "q_proj": "q", "k_proj": "k", "v_proj": "v"}
PLACES |= {"out_proj": "o", "gate": "gate", "up": "up", "down": "down"}


def of_the_decoder(name, weights):
    """The weight that a parameter of the course's decoder has this name for; its maps multiply from the left."""
    *where, part, _ = name.split(".")
    if not where:
        return weights[part]
    weight = weights[f"{where[1]}.{PLACES[part]}"]
    return weight.T if weight.ndim == 2 else weight


def test_the_assembled_model_is_the_courses_decoder():
    V, d, f, heads = 7, 8, 12, 2
    model = Decoder(V, d, 2, heads, d_ff=f, gated=True, tied=True).double()
    weights = {"embedding": torch.tensor(drawn(V, d)), "norm": torch.tensor(drawn(d))}
    for layer in "01":
        for name, shape in {"norm_1": (d,), "norm_2": (d,), "gate": (d, f), "up": (d, f), "down": (f, d)}.items():
            weights[f"{layer}.{name}"] = torch.tensor(drawn(*shape, seed=int(layer)))
        for number, name in enumerate("qkvo"):
            weights[f"{layer}.{name}"] = torch.tensor(drawn(d, d, seed=number + 10 * int(layer)))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(of_the_decoder(name, weights))
    tokens = torch.tensor(np.random.default_rng(2).integers(0, V, (3, 6)))
    ours = reference("assemble", "logits_of")(weights, tokens, heads)
    np.testing.assert_allclose(ours.numpy(), model(tokens).detach().numpy(), atol=1e-10)


# What messages say ----------------------------------------------------------------------------------------------------


def test_the_illness_as_it_stands_is_not_given_away():
    given = EXERCISES["find_the_illness"].mistakes[0]
    verdict = judge_of(9, "find_the_illness").judge(gather(9, "find_the_illness", {"ill_step": given.answer}))
    assert verdict.mistake == given.name and verdict.message.rstrip().endswith("?")
    assert "add.at" not in verdict.message and "twice gets" not in verdict.message


def test_the_illness_is_a_gradient_that_differs_from_autograds():
    E, U = drawn(5, 3), drawn(3, 5)
    inputs, targets = np.array([0, 2, 0, 4, 2]), np.array([1, 2, 3, 0, 2])
    leaves = [torch.tensor(each, requires_grad=True) for each in (E, U)]
    loss = F.cross_entropy(leaves[0][torch.tensor(inputs)] @ leaves[1], torch.tensor(targets))
    loss.backward()
    found = reference("find_the_illness")(E, U, inputs, targets, 0.5)
    assert found[0] == pytest.approx(loss.item(), abs=1e-12)
    for new, leaf in zip(found[1:], leaves, strict=True):
        np.testing.assert_allclose(new, (leaf - 0.5 * leaf.grad).detach().numpy(), atol=1e-12)
    ill = EXERCISES["find_the_illness"].mistakes[0].answer(E, U, inputs, targets, 0.5)
    assert not np.allclose(ill[1], found[1]) and np.allclose(ill[2], found[2])
