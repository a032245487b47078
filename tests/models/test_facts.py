"""Facts of the real model: each function against its definition on a small random model, and what is recorded."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_utils.attention.cache import ContiguousCache, QuantisedCache
from course_utils.costs import records
from course_utils.models import facts, facts_record, fetch, real
from course_utils.models.decoder import Decoder
from course_utils.models.pretrained import store
from course_utils.models.pretrained.tokenizer import Tokenizer, byte_letters
from course_utils.serving.speculative import speculate

pytestmark = pytest.mark.usefixtures("one_thread")

LAYERS = 2
HEADS = 4
KV_HEADS = 2
D_HEAD = 8
WORDS = sorted({" " + w for s in (*facts.PLURAL, *facts.SINGULAR) for w in s.split()[1:]} | {"The", " The"})
WORDS += [" were", " was", " are", " is", " parcel", " that", " we", " sent", " arrived"]
ON_THIS_MACHINE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


def tokenizer():
    """One that has a token for each byte and each of WORDS, and for their beginnings."""
    merges = {}
    for word in WORDS:
        letters = word.replace(" ", "Ġ")
        for end in range(1, len(letters)):
            merges[f"{letters[:end]} {letters[end]}"] = None
    return Tokenizer([*byte_letters().values(), *dict.fromkeys(m.replace(" ", "") for m in merges)], merges)


@pytest.fixture(scope="module")
def tiny():
    words = tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = Decoder(len(words), HEADS * D_HEAD, LAYERS, HEADS, KV_HEADS, 48, 1000.0, gated=True, tied=True)
        for name, weight in model.named_parameters():
            torch.nn.init.normal_(weight, 1.0 if "norm" in name else 0.0, 0.2)
    return real.Real("tiny", model.eval().requires_grad_(False), words, -1, 1024)


@pytest.fixture(scope="module")
def tokens(tiny):
    return facts.opening(tiny, 40)


def by_the_definition(found, tokens, sees=lambda i, j: j <= i, off=(), scaled=True, rotated=True, stored=lambda x: x):
    """(weights (layers, h, T, T), losses (T - 1,)) in float64, written out head by head and query by query."""
    w = {name: weight.double() for name, weight in found.model.state_dict().items()}
    T = tokens.shape[1]
    x = w["embedding.weight"][tokens[0]]
    weights = torch.zeros(LAYERS, HEADS, T, T, dtype=torch.float64)

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * w[name]

    def turned(x):  # (T, D_HEAD), pairs as complex numbers
        angles = torch.arange(T)[:, None] * 1000.0 ** -(torch.arange(0, D_HEAD, 2).double() / D_HEAD)
        z = torch.view_as_complex(x.reshape(T, -1, 2).contiguous()) * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(z).flatten(-2) if rotated else x

    for layer in range(LAYERS):
        part = {name: w[f"blocks.{layer}.attention.{name}_proj.weight"] for name in ("q", "k", "v", "out")}
        y = norm(x, f"blocks.{layer}.attention_norm.weight")
        heads = torch.zeros(T, HEADS * D_HEAD).double()
        for h in range(HEADS):
            mine, shared = (slice(n * D_HEAD, (n + 1) * D_HEAD) for n in (h, h // (HEADS // KV_HEADS)))
            q, k, v = turned(y @ part["q"][mine].T), turned(y @ part["k"][shared].T), y @ part["v"][shared].T
            k, v = stored(k), stored(v)
            for i in range(T):
                observed = [j for j in range(T) if sees(i, j)]
                weights[layer, h, i, observed] = torch.softmax(k[observed] @ q[i] / (D_HEAD**0.5 if scaled else 1), 0)
            if (layer, h) not in off:
                heads[:, mine] = weights[layer, h] @ v
        x = x + heads @ part["out"].T
        z = norm(x, f"blocks.{layer}.feed_forward_norm.weight")
        feed = f"blocks.{layer}.feed_forward"
        gate = z @ w[f"{feed}.gate.weight"].T
        x = x + (gate * torch.sigmoid(gate) * (z @ w[f"{feed}.up.weight"].T)) @ w[f"{feed}.down.weight"].T
    shares = torch.log_softmax(norm(x, "norm.weight") @ w["embedding.weight"].T, -1)
    return weights, -torch.stack([shares[t, tokens[0, t + 1]] for t in range(T - 1)])


def close(ours, expected):
    assert torch.as_tensor(ours).double().numpy() == pytest.approx(torch.as_tensor(expected).numpy(), abs=2e-4)


# --- where heads look -----------------------------------------------------------------------------------------------


def test_scores_are_means_of_the_weights_that_they_name(tiny, tokens):
    weights, _ = by_the_definition(tiny, tokens)
    first = facts.first_token_shares(tiny, tokens, since=10)
    previous = facts.previous_token_scores(tiny, tokens)
    close(first, sum(weights[:, :, i, 0] for i in range(10, 40)) / 30)
    close(previous, sum(weights[:, :, i, i - 1] for i in range(1, 40)) / 39)
    best = facts.best(first, 3)
    assert [first[head] for head in best] == sorted(first.flatten(), reverse=True)[:3]


def test_the_loss_by_copy_is_the_mean_of_the_losses_of_each_copy(tiny):
    random = facts.copies(5, 3, between=(5, 200))
    losses = facts._losses(tiny.model, random)
    expected = [losses[:4].mean(), losses[4:9].mean(), losses[9:].mean()]
    close(torch.tensor(facts.loss_by_copy(tiny, random, 5)), torch.stack(expected))
    with pytest.raises(ValueError, match="no whole number of pieces of 4 tokens"):
        facts.loss_by_copy(tiny, random, 4)


def test_an_induction_score_asks_for_the_token_after_the_last_occurrence(tiny):
    random = facts.copies(7, 3, between=(5, 200))
    assert random.shape == (1, 21) and random[0, :7].tolist() == random[0, 7:14].tolist() == random[0, 14:].tolist()
    assert torch.equal(random, facts.copies(7, 3, between=(5, 200)))
    assert not torch.equal(random, facts.copies(7, 3, seed=1, between=(5, 200)))
    weights, _ = by_the_definition(tiny, random)
    close(facts.induction_scores(tiny, random, 7), sum(weights[:, :, i, i - 7 + 1] for i in range(7, 21)) / 14)


def test_where_reads_from_the_last_such_word_to_the_first(tiny):
    sentence = "The parcel that we sent that parcel arrived"
    weights, _ = by_the_definition(tiny, tiny.encode(sentence))
    close(facts.where(tiny, sentence, "that", "parcel"), weights[:, :, 5, 1])
    with pytest.raises(ValueError, match=r"'letters' is no token of this sentence: \['The', ' parcel'"):
        facts.where(tiny, sentence, "that", "letters")


# --- heads switched off ---------------------------------------------------------------------------------------------


def test_a_head_switched_off_adds_nothing(tiny, tokens):
    for off in ([], [(0, 1)], [(0, 3), (1, 0), (1, 2)]):
        close(facts.loss(tiny, tokens, off), by_the_definition(tiny, tokens, off=off)[1].mean())
    with pytest.raises(ValueError, match=r"\(2, 0\) is no head: the model has 2 layers of 4 heads"):
        facts.loss(tiny, tokens, [(2, 0)])


def test_random_heads_are_different_and_none_that_is_left_out(tiny):
    drawn = facts.random_heads(tiny, 5, 0, without=[(0, 1), (1, 1), (1, 3)])
    assert sorted(drawn) == [(0, 0), (0, 2), (0, 3), (1, 0), (1, 2)]
    assert facts.random_heads(tiny, 4, 1) == facts.random_heads(tiny, 4, 1) != facts.random_heads(tiny, 4, 2)


def test_a_margin_is_that_of_the_right_number_right_after_the_sentence(tiny):
    result = facts.margins(tiny, [(1, 2)])
    off = [(1, 2)]
    for margin, sentence in zip(result, (*facts.PLURAL, *facts.SINGULAR), strict=True):
        were, are, was, is_ = (
            by_the_definition(tiny, tiny.encode(f"{sentence} {word}"), off=off)[1][-1]
            for word in ("were", "are", "was", "is")
        )
        close(margin, (was + is_ - were - are) / 2 * (1 if sentence in facts.PLURAL else -1))
    weights, _ = by_the_definition(tiny, tiny.encode(facts.SINGULAR[0]))
    close(facts.subject_weights(tiny)[..., 6], weights[:, :, -1, 1])
    each = facts.margins_without_each(tiny, [1])
    assert each.shape == (1, HEADS, 12) and torch.equal(each[0, 2], result)
    assert not torch.equal(facts.margins(tiny), result)


# --- the scale, the rotation, windows, caches -----------------------------------------------------------------------


def test_what_is_left_out_is_left_out_of_all_layers_and_only_for_once(tiny, tokens):
    for changed in ({"scaled": False}, {"rotated": False}, {}):
        close(facts.loss_without(tiny, tokens, **changed), by_the_definition(tiny, tokens, **changed)[1].mean())
    assert facts.loss(tiny, tokens) == facts.loss_without(tiny, tokens)


def test_scores_are_divided_by_another_number_in_all_layers_of_a_copy(tiny, tokens):
    for divisor, same in ((D_HEAD**0.5, {}), (1, {"scaled": False})):
        weights, losses = by_the_definition(tiny, tokens, **same)
        changed = facts.divided_by(tiny, divisor)
        close(facts.loss(changed, tokens), losses.mean())
        entropies = torch.special.entr(weights[:, :, 10:]).sum(-1)
        close(facts.effective_keys(changed, tokens, since=10), entropies.exp().mean())
    assert facts.loss(tiny, tokens) == facts.loss_without(tiny, tokens)
    for divisor in (0, -1, float("inf")):
        with pytest.raises(ValueError, match="give a positive, finite number"):
            facts.divided_by(tiny, divisor)
    with pytest.raises(ValueError, match="since is 40 but there are 40 tokens: no query is left"):
        facts.effective_keys(tiny, tokens, since=40)


@pytest.mark.parametrize(("window", "first"), [(None, 0), (6, 0), (4, 2), (None, 3)])
def test_a_window_lets_the_last_and_the_first_tokens_be_seen(tiny, tokens, window, first):
    def sees(i, j):
        return j <= i and (window is None or i - j < window or j < first)

    close(facts.window_loss(tiny, tokens, window, first), by_the_definition(tiny, tokens, sees)[1].mean())


def test_a_model_that_looks_ahead_sees_the_whole_text_and_the_causal_one_no_later_token(tiny, tokens):
    ahead = facts.looking_ahead(tiny)
    close(facts.loss(ahead, tokens), by_the_definition(tiny, tokens, lambda i, j: True)[1].mean())
    assert facts.moved_before(tiny, tokens) == 0 < facts.moved_before(facts.looking_ahead(tiny, [1]), tokens)


def test_float8_rounds_to_three_bits_with_one_scale_a_vector():
    x = torch.randn(50, 16, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 50)[:, None]
    x[7] = 0
    rounded = facts.in_float8(x).double()
    for row, result in zip(x.double(), rounded, strict=True):
        scale = row.abs().max().item() / 448
        for number, ours in zip(row.tolist(), result.tolist(), strict=True):
            size = abs(number) / scale if scale else 0.0
            step = 2.0 ** (max(math.floor(math.log2(size)), -6) - 3) if size else 1.0
            assert abs(ours) == pytest.approx(round(size / step) * step * scale, rel=1e-5) and ours * number >= 0


def eight_bits(x):
    scales = x.abs().amax(-1, keepdim=True) / 127
    return (x / scales).round() * scales


def test_losses_through_caches_are_those_of_keys_and_values_as_stored(tiny, tokens):
    plain = by_the_definition(tiny, tokens)[1].numpy()
    close(facts.cache_losses(tiny, tokens, ContiguousCache), plain)
    for kind, stored in ((QuantisedCache, eight_bits), (facts.Float8Cache, facts.in_float8)):
        expected = by_the_definition(tiny, tokens, stored=stored)[1].numpy()
        near = np.abs(expected - plain).max() / 5  # float32 may round a number at a border the other way
        assert facts.cache_losses(tiny, tokens, kind).numpy() == pytest.approx(expected, abs=near)


def test_a_rounded_cache_of_eight_bits_is_the_int8_cache_and_one_scale_serves_the_whole_layer(tiny, tokens):
    exact = facts.cache_losses(tiny, tokens, ContiguousCache).numpy()
    ours, theirs = (facts.cache_losses(tiny, tokens, kind) for kind in (facts.rounded_cache(8), QuantisedCache))
    close(ours, theirs.numpy())
    k = torch.tensor([[[[1.0, -0.5]], [[127.0, 0.4]]]])  # (B, h, t, d_head)
    rounded = facts.rounded_cache(8, one_scale=True, values=False)(1, 2, 2, capacity=1).update(k, k)
    assert rounded[0].tolist() == [[[[1.0, 0.0]], [[127.0, 0.0]]]] and torch.equal(rounded[1], k)
    coarse = facts.cache_losses(tiny, tokens, facts.rounded_cache(3)).numpy()
    assert {*facts.spikes(tiny, tokens)} == {"keys", "values"} and min(facts.spikes(tiny, tokens).values()) > 1
    assert np.abs(coarse - exact).mean() > 4 * np.abs(ours.numpy() - exact).mean()


# --- drafts ---------------------------------------------------------------------------------------------------------


def test_a_draft_is_what_followed_the_last_two_tokens_the_last_time():
    assert facts.look_up([1, 2, 3, 1, 2, 4, 5, 6, 7, 8, 1, 2]) == [4, 5, 6, 7]
    assert facts.look_up([1, 2, 3, 1, 2], most=2) == [3, 1] and facts.look_up([5, 5, 5]) == [5]
    assert facts.look_up([1, 2, 3, 4]) == facts.look_up([1, 2]) == facts.look_up([1]) == []


@pytest.mark.parametrize("n", [1, 12, 40])
def test_passes_are_those_of_speculation_at_temperature_0(tiny, n):
    prompt = "the the in the the in"
    size = len(tiny.tokenizer)
    text = tiny.encode(prompt)[0].tolist()
    rng = np.random.default_rng(0)
    end = len(text) + n
    expected = []

    def p_of(tokens, rows):
        return np.eye(size)[tiny.model(torch.tensor([tokens]))[0, -rows:].argmax(-1).numpy()]

    while len(text) < end:
        draft = facts.look_up(text)[: end - len(text) - 1]
        q, start = np.eye(size)[draft], len(text)  # q is (γ, V)
        actual = speculate(p_of, lambda now, q=q, start=start: q[len(now) - start], text, len(draft), rng)
        expected.append((len(draft), actual.accepted))
        text += actual.tokens
    passes = facts.draft_passes(tiny, prompt, n)
    assert passes == expected and sum(stored + 1 for _, stored in passes) == n


def test_a_pass_keeps_a_draft_as_far_as_the_text_agrees_and_writes_one_token_more():
    written = [3, 4, 9, 1, 2, 3, 4, 9, 1]
    result = SimpleNamespace(
        encode=lambda prompt: torch.tensor([[1, 2, 3, 4, 5, 6, 1, 2]]), stream=lambda tokens, n: iter(written[:n])
    )
    assert facts.draft_passes(result, "", 9) == [(4, 2), (0, 0), (0, 0), (3, 3)]
    assert facts.draft_passes(result, "", 2) == [(1, 1)]
    assert facts.draft_passes(result, "", 9, most=1) == [(1, 1), (1, 0), (0, 0), (0, 0), (1, 1), (1, 1)]


# --- the record -----------------------------------------------------------------------------------------------------


def test_the_record_tells_what_was_measured_and_of_which_file():
    record = facts_record.recorded()
    assert {"device", "python", "torch", "date"} <= record["environment"].keys()
    model = record["settings"]["model"]
    assert model["file"] == Path(fetch.MODEL).name and model["sha256"] == fetch.HASHES[fetch.MODEL]
    assert model["dtype"] == "float32" and model["get"] == store.GET
    (path,) = facts_record.STORED.glob("smollm2-facts-*.json")
    assert path.stat().st_size < 60_000
    with pytest.raises(KeyError, match="'scale' is not in the record, which has first token, previous token, ind"):
        facts_record.fact("scale")


def test_heads_look_at_the_first_token_at_the_one_before_and_after_the_last_occurrence():
    first, previous, induction = (np.array(fact[name]) for fact, name in (
        (facts_record.fact("first token"), "shares"),
        (facts_record.fact("previous token"), "scores"),
        (facts_record.fact("induction"), "scores"),
    ))  # fmt: skip
    assert first.shape == previous.shape == induction.shape == (30, 9)
    by_layer = facts_record.fact("first token")["by_layer"]
    np.testing.assert_allclose(by_layer, first.mean(1), atol=1e-4)
    assert (first > 0.5).sum() == facts_record.fact("first token")["heads_above_half"] == 56
    assert max(by_layer[:3]) < 0.02 and max(by_layer[10:12]) < 0.02 and min(by_layer[12:]) > 0.24
    assert min(by_layer[3:10]) > 0.1 and max(by_layer[3:10]) < 0.15
    for scores, expected in (
        (previous, {(16, 0): 0.79, (11, 1): 0.66, (2, 1): 0.57}),
        (induction, {(18, 6): 0.76, (17, 4): 0.67, (17, 5): 0.58, (17, 3): 0.57}),
    ):
        best = facts.best(torch.from_numpy(scores), len(expected))
        assert {head: round(float(scores[head]), 2) for head in best} == expected


def test_eight_induction_heads_are_what_copies_and_eight_others_are_not():
    fact = facts_record.fact("induction")
    assert [tuple(head) for head in fact["best"]] == facts.best(torch.tensor(fact["scores"]), 8)
    random = [one["loss"] for one in fact["without_random"]]
    assert len(random) == 5 and all(len(one["heads"]) == 8 for one in fact["without_random"])
    assert round(fact["loss"], 2) == 5.92 and round(fact["without_best"], 2) == 12.58 and max(random) < 8
    for losses, mean in (
        (fact["by_copy"], fact["loss"]),
        (fact["by_copy_without_best"], fact["without_best"]),
        *((one["by_copy"], one["loss"]) for one in fact["without_random"]),
    ):
        assert np.average(losses, weights=[63, 64, 64]) == pytest.approx(mean, abs=1e-3)
    assert [round(each, 2) for each in fact["by_copy"]] == [13.8, 2.96, 1.14]
    assert [round(each, 2) for each in fact["by_copy_without_best"]] == [13.79, 12.36, 11.6]
    text = [one["text_loss"] - fact["text_loss"] for one in fact["without_random"]]
    assert fact["text_without_best"] - fact["text_loss"] < min(
        1, 3 * max(text)
    )  # they are for copies, not for any text


def test_agreement_needs_the_head_that_looks_at_the_subject_where_the_verb_is_told():
    where = facts_record.fact("where")
    agreement = facts_record.fact("agreement")
    layer, head = where["head"]
    observed = [round(look["weights"][layer][head], 2) for look in where["looks"]]
    assert observed == [0.96, 0.59, 0.91, 0.8, 0.45, 0.82, 0.9, 0.76, 0.75, 0.75]
    assert [(look["sentence"], look["from"], look["to"]) for look in where["looks"]] == list(facts.READ)
    tired, wide = (np.array(look["weights"]) for look in where["looks"][-2:])
    assert (tired == wide).all()  # it is the same for all heads: the word comes later
    margins = np.array(agreement["margins"])
    without = np.array(agreement["without_head"])
    assert margins.mean().round(1) == without.mean().round(1) == 2.3
    assert (margins > 0).sum() == 11 and (without > 0).sum() == 12
    each = np.array(agreement["margin_without_each"])
    layers = agreement["layers"]
    assert layers == list(range(30)) and each.shape == (30, 9)
    assert each[layers.index(layer), head] == pytest.approx(without.mean(), abs=1e-3)
    before = np.array(agreement["subject_weights"])
    observed = np.array(agreement["subject_weights_of_head"])
    assert before[layer, head] == pytest.approx(observed.mean(), abs=1e-4)
    assert observed.max() < 0.5 and observed.mean() < 0.2  # where the verb is told, the head looks elsewhere
    worst = facts.best(-torch.from_numpy(each), 3)
    result = {(layers[row], number): round(float(each[row, number]), 2) for row, number in worst}
    assert result == {(1, 3): 0.24, (1, 5): 0.35, (26, 0): 0.52}
    right = np.array(agreement["right_without_each"])
    assert right[26, 0] == right.min() == 8 and right[layer, head] == 12
    assert np.argmax(before) == 26 * 9  # the head that looks at the subject most where the verb is told
    assert round(each[28, 7], 2) == 2.27 and before[28, 7] > 0.4  # a weight there is no effect
    assert round(each[11, 1], 2) == 1.62 and before[11, 1] < 0.01


def test_losses_without_the_scale_the_rotation_the_past_and_the_bits():
    out = facts_record.fact("left out")
    assert [round(out[name], 2) for name in ("loss", "without_scale", "without_rotation")] == [3.8, 6.89, 5.47]
    windows = {(one["window"], one["first"]): round(one["loss"], 3) for one in facts_record.fact("windows")["windows"]}
    assert windows == {(None, 0): 3.569, (128, 0): 4.371, (124, 4): 3.705, (127, 1): 3.723}
    caches = {one["cache"]: one for one in facts_record.fact("caches")["caches"]}
    assert caches.keys() == facts.CACHES.keys() and round(caches["float32"]["loss"], 4) == 3.5855
    for one in caches.values():
        assert abs(one["difference"]) <= 3 * one["standard_error"] < 0.02
        assert one["loss"] - caches["float32"]["loss"] == pytest.approx(one["difference"], abs=1e-4)


def test_fewer_bits_cost_more_and_keys_need_theirs_more_than_values_do():
    fact = facts_record.fact("bits")
    caches = {one["cache"]: one["difference"] for one in fact["caches"]}
    assert tuple(caches) == tuple(name for name, *_ in facts.FEWER_BITS) and fact["loss"] == pytest.approx(3.58553)
    by_bits = [caches[f"{bits} bits"] for bits in (8, 6, 5, 4, 3)]
    assert by_bits == sorted(by_bits) and by_bits[-1] > 1
    assert caches["8 bits"] == pytest.approx(facts_record.fact("caches")["caches"][1]["difference"], abs=1e-6)
    assert caches["4 bits, values alone"] < 0.01 < 0.2 < caches["4 bits, keys alone"]
    assert caches["4 bits, one scale"] > 2 * caches["4 bits"]
    assert 1 < fact["spikes"]["values"] < fact["spikes"]["keys"] < 8  # of 64 numbers one can be 8 times the root


def test_the_model_is_best_with_the_scale_that_it_was_trained_with():
    models = {one["divisor"]: one for one in facts_record.fact("divisors")["models"]}
    assert tuple(models) == facts.DIVISORS and min(models, key=lambda divisor: models[divisor]["loss"]) == 8
    out = facts_record.fact("left out")
    assert (models[8]["loss"], models[1]["loss"]) == (out["loss"], out["without_scale"])
    keys = [one["keys"] for one in models.values()]
    assert keys == sorted(keys) and keys[0] < 1.5 and keys[-1] > 150
    assert len({one["written"] for one in models.values()}) == len(models)


def test_a_layer_that_looks_ahead_lowers_the_loss_and_all_of_them_spoil_what_is_written():
    result = facts_record.fact("looking ahead")
    causal, ahead = result["models"]
    assert causal["loss"] == facts_record.fact("left out")["loss"] and causal["moved"] == 0
    assert ahead["loss"] < causal["loss"] / 2 and ahead["moved"] > 1
    each = np.array(result["loss_by_layer"])
    assert each.shape == (30,) and each.argmin() == 20 and each.argmax() == 1
    assert causal["written"] != ahead["written"]


def test_drafts_help_where_a_text_repeats_itself():
    result = {one["name"]: one for one in facts_record.fact("drafts")["prompts"]}
    assert {name: one["prompt"] for name, one in result.items()} == facts.PROMPTS
    for one in result.values():
        assert one["passes"] + one["kept"] == 60 and one["kept"] <= one["drafted"] <= 4 * one["passes"]
    assert result["a story"]["kept"] < 5 < 15 < result["three alike functions"]["kept"]


def test_the_command_measures_all_facts_and_says_how_to_get_the_model(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    monkeypatch.setattr(facts_record, "load", lambda: tiny)
    for name, value in {"COPYING": 3, "SUBJECT_HEAD": (1, 2), "SWEPT": range(1, 2), "BETWEEN": (5, 200)}.items():
        monkeypatch.setattr(facts, name, value)
    facts_record.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    rows = records.read(path)["rows"]
    stored = facts_record.recorded()["rows"]
    assert [row.keys() for row in rows] == [row.keys() for row in stored]
    assert np.array(rows[0]["shares"]).shape == (LAYERS, HEADS) and "drafts kept" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("COURSE_MODEL", "none")
    real.load.cache_clear()
    with pytest.raises(store.NoModel, match="COURSE_MODEL is none"):
        facts_record.main(quick=True, folder=tmp_path)


@ON_THIS_MACHINE
def test_the_real_model_gives_what_is_recorded():
    result = real.load()
    looks = facts_record.fact("where")["looks"]
    now = facts.where(result, *facts.READ[0])
    np.testing.assert_allclose(now, looks[0]["weights"], atol=5e-3)
    assert facts.best(now, 1) == [facts.SUBJECT_HEAD]
    np.testing.assert_allclose(facts.margins(result), facts_record.fact("agreement")["margins"], atol=5e-2)
