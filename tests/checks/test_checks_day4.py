"""Day 4's checks: what is particular to heads, layers, counts and ablation. Its variants run in test_checks.py."""

import itertools
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from variants import RIGHT, day4

from course_utils.answers.day4.exercises import layer, worst
from course_utils.attention import multihead
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather
from course_utils.costs import counts
from course_utils.days.day4.given.ladders import (
    attended,
    attended_by_name,
    attended_each,
    grouped_changes,
    grouped_each,
    layer_gradients,
    left_behind,
    pair,
    shared_gradients,
    table_model,
)
from course_utils.models import induction
from course_utils.models.decoder import Decoder

LARGEST = "the largest of all scores subtracted"
HIDDEN = pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])


def expected(grade_id, hidden):
    """The rungs of an exercise with the values that the reference gives, as arrays."""
    for rung, outcome in zip(
        draw_rungs(4, grade_id, hidden=hidden), judge_of(4, grade_id).reference(hidden).outcomes, strict=True
    ):
        values = {part: outcome.array(part) for part in outcome.values}
        yield rung, values


def answer(grade_id, given, hidden=False):
    return judge_of(4, grade_id).judge(gather(4, grade_id, {find_ladder(4, grade_id).names[0]: given}, hidden=hidden))


def near(array):
    return 1e-5 if getattr(array, "dtype", None) == np.float32 else 1e-6


# References against the library --------------------------------------------------------------------------------------


@HIDDEN
def test_each_number_of_a_token_stands_in_the_head_that_its_place_says(hidden):
    for rung, right in expected("split_heads", hidden):
        if rung.measure:
            continue
        x, h = rung.args
        d_head = x.shape[2] // h
        for b, head, t, c in np.ndindex(right["heads"].shape):
            assert right["heads"][b, head, t, c] == x[b, t, head * d_head + c], rung.name


@HIDDEN
def test_merging_puts_each_number_back(hidden):
    for rung, right in expected("merge_heads", hidden):
        if rung.measure:
            continue
        (x,) = rung.args
        for b, head, t, c in np.ndindex(x.shape):
            assert right["merged"][b, t, head * x.shape[3] + c] == x[b, head, t, c], rung.name


def theirs(d_model, n_heads, W_qkv, W_o):
    """PyTorch's layer with these weights."""
    made = nn.MultiheadAttention(d_model, n_heads, bias=False, batch_first=True, dtype=torch.as_tensor(W_qkv).dtype)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.as_tensor(W_qkv))
        made.out_proj.weight.copy_(torch.as_tensor(W_o))
    return made


def through(made, x, mask):
    """The output of PyTorch's layer under a mask in which True means may attend."""
    (B, T, _), h = x.shape, made.num_heads
    ignored = None if mask is None else ~torch.as_tensor(mask).expand(B, h, T, T).reshape(B * h, T, T)
    return made(x, x, x, attn_mask=ignored, need_weights=True)[0]


@HIDDEN
def test_the_layer_is_pytorchs_with_the_same_weights(hidden):
    tried = 0
    for rung, right in expected("multi_head", hidden):
        if rung.measure not in (attended, attended_by_name, attended_each):
            continue
        *made_of, x = rung.args[:5]
        for mask, given in zip(rung.args[5:] or (None,), right.values(), strict=True):
            output = through(theirs(*made_of), torch.as_tensor(x), mask).detach()
            np.testing.assert_allclose(given, output, rtol=near(x), atol=near(x), err_msg=rung.name)
            tried += 1
    assert tried >= 24


@HIDDEN
def test_the_layers_gradients_are_those_of_pytorchs(hidden):
    found = [pair for pair in expected("multi_head", hidden) if pair[0].measure is layer_gradients]
    assert [rung.args[-2] is None for rung, _ in found] == [False, True]
    for rung, right in found:
        *made_of, x, mask, wanted = rung.args
        made, x = theirs(*made_of), torch.as_tensor(x).requires_grad_()
        (through(made, x, mask) * torch.as_tensor(wanted)).sum().backward()
        np.testing.assert_allclose(right["gradient of x"], x.grad, atol=1e-6)
        np.testing.assert_allclose(right["gradient of W_qkv"], made.in_proj_weight.grad, atol=1e-6)
        np.testing.assert_allclose(right["gradient of W_o"], made.out_proj.weight.grad, atol=1e-6)


@pytest.mark.parametrize("kind", [layer(), day4.AsInTheLesson], ids=["reference", "as in the lesson"])
def test_the_layer_is_the_courses_own_too(kind):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(24, 4, bias=False, batch_first=True)
    course, mine = multihead.MultiHeadAttention.from_torch(theirs), kind(24, 4)
    mine.load_state_dict({"W_qkv.weight": theirs.in_proj_weight, "W_o.weight": theirs.out_proj.weight})
    x, mask = torch.randn(2, 7, 24), torch.ones(7, 7, dtype=torch.bool).tril()
    torch.testing.assert_close(mine(x, mask), course(x, mask=mask))


@HIDDEN
def test_grouped_attention_is_that_of_the_library(hidden):
    for rung, right in expected("grouped_query", hidden):
        if rung.measure is shared_gradients:
            *qkv, wanted = map(torch.as_tensor, rung.args[:4])
            q, k, v = (a.clone().requires_grad_() for a in qkv)
            mask = map(torch.as_tensor, rung.args[4:])
            (F.scaled_dot_product_attention(q, k, v, *mask, enable_gqa=True) * wanted).sum().backward()
            for name, leaf in zip("qkv", (q, k, v), strict=True):
                np.testing.assert_allclose(right[f"gradient of {name}"], leaf.grad, atol=1e-6)
        elif rung.measure is not grouped_changes:
            q, k, v, *masks = (None if a is None else torch.as_tensor(a) for a in rung.args)
            assert len(masks) < 2 or rung.measure is grouped_each
            for mask, given in zip(masks or (None,), right.values(), strict=True):
                mask = mask if mask is None else mask.expand(*q.shape[:3], k.shape[2])
                output = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
                np.testing.assert_allclose(given, output, atol=near(rung.args[0]), err_msg=rung.name)


@HIDDEN
def test_the_mended_attention_is_the_grouped_one_of_the_library(hidden):
    for rung, right in expected("find_the_bug", hidden):
        if rung.measure:
            continue
        h, h_kv = rung.args[3:]
        parts = ((torch.as_tensor(a), count) for a, count in zip(rung.args[:3], (h, h_kv, h_kv), strict=True))
        q, k, v = (a.unflatten(-1, (count, -1)).transpose(1, 2) for a, count in parts)
        heads = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        np.testing.assert_allclose(right["output"], heads.transpose(1, 2).flatten(2), atol=1e-6)


@HIDDEN
def test_the_parameters_are_those_of_a_real_layer(hidden):
    for rung, right in expected("count_parameters", hidden):
        if rung.args[0] < 1000:
            sizes = dict(zip(("d_model", "n_heads", "n_kv_heads", "d_head"), rung.args, strict=False))
            made = multihead.MultiHeadAttention(**sizes)
            assert right["parameters"] == sum(p.numel() for p in made.parameters()), rung.name


@HIDDEN
def test_the_flops_are_those_that_pytorch_counts(hidden):
    for rung, right in expected("count_flops", hidden):
        T, d_model, d_ff = rung.args
        x, W, up = torch.empty(T, d_model), torch.empty(d_model, d_model), torch.empty(d_model, d_ff)
        if T > 10_000:
            continue
        for part, products in (
            ("projections", lambda x=x, W=W: [x @ W for _ in range(4)]),
            ("core", lambda x=x: (x @ x.T) @ x),
            ("feed_forward", lambda x=x, up=up: (x @ up) @ up.T),
        ):
            with FlopCounterMode(display=False) as counter:
                products()
            assert right[part] == pytest.approx(counter.get_total_flops(), rel=1e-7), rung.name


@HIDDEN
def test_at_the_crossover_the_two_counts_are_equal(hidden):
    for rung, right in expected("crossover", hidden):
        d_model, d_ff = rung.args
        flops = counts.layer_flops(int(right["T"]), d_model, d_ff=d_ff)
        assert flops.core == flops.feed_forward


def test_the_induction_scores_of_the_trained_model_are_those_of_the_course():
    model, pieces = induction.load(), induction.repeated(8, 12)
    (score,) = all_exercises(4)["induction_score"].reference.values()
    mine = [[[score(w, 12) for w in heads] for heads in layer] for layer in induction.head_weights(model, pieces)]
    torch.testing.assert_close(torch.tensor(mine).mean(dim=1), induction.induction_scores(model, 12, batch=8))


# What the exercises promise ------------------------------------------------------------------------------------------


@HIDDEN
@pytest.mark.parametrize("grade_id", ["multi_head", "grouped_query"])
def test_every_query_may_attend_to_some_key(grade_id, hidden):
    for rung in draw_rungs(4, grade_id, hidden=hidden):
        for mask in (a for a in rung.args if str(getattr(a, "dtype", "")) == "bool"):
            assert mask.any(axis=-1).all(), rung.name


@HIDDEN
def test_a_wrong_reshape_of_the_right_shape_shows_on_all_rungs_but_where_it_is_right(hidden):
    known = dict((m.name, evidence) for m, evidence in judge_of(4, "split_heads").mistakes(hidden))
    rungs = dict(judge_of(4, "split_heads").judge(known["viewed at once"]).rungs)
    agrees = {"one token, two heads", "one head", "what it is given stays as it was"}
    assert {name for name, held in rungs.items() if held} == agrees


def by_hand(votes, backup, reads, tokens, off=None):
    """The mean next-token loss of a table model, computed apart from it, with one head off."""
    on = np.ones(votes.shape[:2])
    if off is not None:
        on[off] = 0
    if reads:
        source, readers = reads
        on[1, list(readers)] *= on[0, source]
    losses = []
    for row in tokens.tolist():
        for now, after in itertools.pairwise(row):
            given = votes[:, :, now] * on[:, :, None]
            logits = given.sum(axis=(0, 1))
            if backup:
                logits = logits - np.minimum(given[backup[0]], given[backup[1]])
            losses.append(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[after])
    return np.mean(losses)


@HIDDEN
def test_one_head_is_clearly_ahead_and_it_is_the_one_expected(hidden):
    for rung, right in expected("head_ablation", hidden):
        sizes = rung.args[0].shape[:2]
        rises = {place: by_hand(*rung.args, off=place) - by_hand(*rung.args) for place in np.ndindex(sizes)}
        best, second = sorted(rises.values(), reverse=True)[:2]
        assert best - second > 0.05, rung.name
        if rung.measure is not left_behind:
            assert rises[int(right["layer"]), int(right["head"])] == best, rung.name


@HIDDEN
def test_the_models_of_head_ablation_are_what_their_names_say(hidden):
    rungs = {rung.name: rung for rung in draw_rungs(4, "head_ablation", hidden=hidden)}

    def rises(name):
        args = rungs[name].args
        return np.array([by_hand(*args, off=place) - by_hand(*args) for place in np.ndindex(args[0].shape[:2])])

    harm = rises("a head that does harm")
    assert -harm.min() > harm.max() > 0
    assert rises("no head helps").max() < 0
    assert rises("no head helps").argmax() > 0
    votes, backup, _, _ = rungs["two heads that stand in for each other"].args
    twins = [place[0] * votes.shape[1] + place[1] for place in backup]
    assert not set(twins) & {int(rises("two heads that stand in for each other").argmax())}
    _, _, (source, _), _ = rungs["a head that others read"].args
    assert rises("a head that others read").argmax() == source
    assert rungs["a head that others read"].args[0][0, source].max() == 0


def test_a_model_of_head_ablation_speaks_as_a_decoder_does():
    votes, backup, reads, tokens = draw_rungs(4, "head_ablation")[1].args
    model, tokens = table_model(votes, backup, reads), torch.as_tensor(tokens)
    decoder = Decoder(vocabulary=6, d_model=12, n_layers=2, n_heads=3, d_ff=0)
    assert not hasattr(model, "n_layers") and not hasattr(decoder, "n_layers")
    assert (len(model.blocks), model.n_heads) == (len(decoder.blocks), decoder.n_heads)
    assert model(tokens).shape == decoder(tokens).shape
    assert torch.equal(model(tokens), model(tokens, head_masks=torch.ones(2, 3)))
    for each in (model, decoder):
        with pytest.raises(ValueError, match="head_masks"):
            each(tokens, head_masks=torch.ones(3, 2))
        with pytest.raises(TypeError):
            each(tokens, torch.ones(2, 3))
    with pytest.raises(ValueError, match="other numbers than 0 and 1"):
        model(tokens, head_masks=torch.full((2, 3), 0.5))


@pytest.mark.parametrize("function", [worst(), *RIGHT[4, "head_ablation"]], ids=lambda f: f.__name__)
@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
def test_a_right_answer_works_on_the_trained_decoder_as_it_is(function, training):
    model, tokens = induction.load().train(training), induction.repeated(2, 12)
    layer, head = function(model, tokens)
    rises = torch.full((2, 4), -1.0)
    for place in itertools.product(range(2), range(4)):
        masks = torch.ones(2, 4)
        masks[place] = 0
        rises[place] = induction.token_losses(model, tokens, masks).mean()
    assert divmod(int(rises.argmax()), 4) == (int(layer), int(head))
    assert model.training == training


@pytest.mark.parametrize(
    ("result", "read"),
    [((0, 2), [0, 2]), ([1, 0], [1, 0]), (torch.tensor([1, 2]), [1, 2]), ((np.int64(1), torch.tensor(3)), [1, 3])],
)
def test_any_kind_of_pair_is_read(result, read):
    assert pair(result, (2, 4)) == read


@pytest.mark.parametrize(
    "result",
    [None, 5, torch.tensor(5), (1,), (0, 1, 2), (0.5, 1), "01", {0: 1, 2: 3}, [(0, 1)], torch.eye(2), (0, None)],
)
def test_what_is_no_pair_is_refused_with_what_to_return(result):
    with pytest.raises(TypeError, match=r"return the pair \(layer, head\)"):
        pair(result, (2, 4))


@pytest.mark.parametrize(
    "form",
    [float, torch.tensor, np.float64, lambda x: np.array(x)],
    ids=["float", "tensor", "NumPy number", "NumPy array"],
)
def test_a_score_is_taken_in_any_form(form):
    assert (
        answer("induction_score", lambda w, period: form(float(day4.induction_by_a_loop(w, period)))).status == "passed"
    )


# What is said --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (day4.WithBiases, "W_qkv has a bias: write bias=False."),
        (day4.BiasAtTheEnd, "W_o has a bias: write bias=False."),
        (day4.OtherNames, "the layer has no nn.Linear called W_qkv"),
        (day4.ThreeMaps, "the layer has no nn.Linear called W_qkv"),
        (day4.NoModule, "MultiHead is not a module: write class MultiHead(nn.Module)"),
        (day4.a_function_in_place_of_a_class, "MultiHead is not a class"),
        (day4.AnotherMapToo, "the number of parameters is 180, expected 144."),
        (day4.AFrozenParameterMore, "the number of parameters is 145, expected 144."),
        (day4.WeightsThatDoNotLearn, "the number of parameters to train is 108, expected 144."),
        (day4.altered("P", *day4.ALTERED["WeightsToo"]), "forward returned a tuple; it should return the output alone"),
        (day4.altered("N", *day4.ALTERED["NothingReturned"]), "forward returned None. Did you forget the return"),
        (day4.altered("X", *day4.ALTERED["WritesIntoX"]), "forward writes into x"),
        (day4.altered("U", *day4.ALTERED["WritesIntoItsWeightsUnderAMask"]), "or into the layer's weights"),
        (day4.altered("O", *day4.ALTERED["OutOfTrainingMode"]), "or changes its mode (layer.training)"),
        (
            day4.altered("F", *day4.ALTERED["ReturnsFloat32"]),
            "forward returned torch.float32 for an x of torch.float64",
        ),
        (day4.HeadsOfTheClass, "as attributes of self, not of the class"),
        (day4.WithoutInit, "cannot assign module before Module.__init__() call"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_class_that_is_not_the_layer_is_told_so_in_words(kind, said):
    assert said in answer("multi_head", kind).message


@pytest.mark.parametrize(
    ("grade_id", "given", "name"),
    [
        ("split_heads", day4.split_by_a_view_to_the_shape, "viewed at once"),
        ("multi_head", day4.altered("E", *day4.ALTERED["ExpShiftedByTheLargestOfAll"]), LARGEST),
        ("grouped_query", day4.grouped_by_repeat, "repeat for repeat_interleave"),
        ("induction_score", day4.induction_on_the_previous_token, "the previous token, everywhere"),
        ("head_ablation", day4.ablation_by_cross_entropy_of_shares, "probabilities in place of losses"),
        ("find_the_bug", day4.bug_with_groups_and_key_heads_exchanged, "repeat for repeat_interleave"),
    ],
    ids=lambda case: getattr(case, "__name__", case),
)
def test_a_slip_that_people_make_is_recognised_in_their_own_code(grade_id, given, name):
    assert answer(grade_id, given).mistake == name


def test_an_argmax_that_was_not_unravelled_is_told_how():
    message = answer("head_ablation", day4.ablation_without_unravelling).message
    assert "return the pair (layer, head)" in message
    assert "divmod by the number of heads" in message


@pytest.mark.parametrize(
    ("grade_id", "given", "said"),
    [
        ("split_heads", day4.split_into_a_list, "the function returned a list of 1: return one tensor alone."),
        ("split_heads", day4.split_that_doubles_x, "writes into its arguments"),
        ("split_heads", day4.split_in_float32, "the result is torch.float32, but what it is made from is"),
        ("merge_heads", day4.merge_into_a_list, "the function returned a list of 1: return one tensor alone."),
        (
            "grouped_query",
            day4.grouped_with_weights_too,
            "the function returned a tuple of 2: return one tensor alone.",
        ),
        ("grouped_query", lambda q, k, v, mask=None: q.numpy(), "the result is of type ndarray: return a tensor."),
        ("grouped_query", lambda q, k, v, mask=None: None, "the function returned None. Did you forget the return"),
        (
            "head_ablation",
            day4.ablation_by_cross_entropy_of_shares,
            "F.cross_entropy takes logits and does the softmax itself",
        ),
        ("head_ablation", day4.ablation_with_a_head_turned_to(0.5), "holds other numbers than 0 and 1"),
        ("head_ablation", day4.ablation_that_freezes_the_model, "requires_grad"),
        ("head_ablation", day4.ablation_that_leaves_gradients, ".grad"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_is_wrong_is_said_in_words(grade_id, given, said):
    assert said in answer(grade_id, given).message


def test_large_scores_catch_a_shift_by_the_largest_of_all():
    rungs = answer("multi_head", day4.altered("E", *day4.ALTERED["ExpShiftedByTheLargestOfAll"])).rungs
    assert next(name for name, held in rungs if not held) == "large scores"


def test_a_view_that_cannot_be_is_explained():
    message = answer("merge_heads", day4.merge_by_a_view_that_cannot_be).message
    assert "reshape and flatten do" in message


def test_a_mended_bug_that_writes_into_its_arguments_is_told_so():
    message = answer("find_the_bug", day4.bug_mended_by_one_who_scales_the_queries_in_place).message
    assert "writes into its arguments" in message


def test_the_bug_as_it_stands_is_not_given_away():
    message = answer("find_the_bug", day4.bug_as_it_stands).message
    assert message == all_exercises(4)["find_the_bug"].mistakes[0].message
    assert not {"root", "scale", "scaled", "divided", "width"} & set(re.findall(r"\w+", message.lower()))


def test_an_earlier_slip_costs_a_later_exercise_nothing():
    own = {"split_heads": day4.split_by_a_view_to_the_shape, "merge_heads": lambda x: None}

    class MultiHead(day4.AsInTheLesson):
        def forward(self, x, mask=None):
            q, k, v = (own["split_heads"](part, self.n_heads) for part in self.W_qkv(x).chunk(3, -1))
            scores = q @ k.mT / self.d_head**0.5
            weights = torch.softmax(scores if mask is None else scores.masked_fill(~mask, -torch.inf), dim=-1)
            return self.W_o(own["merge_heads"](weights @ v))

    own |= {"MultiHead": MultiHead, "layer_flops": lambda T, d_model, d_ff: (1, 1, 1)}
    own["crossover_length"] = lambda d_model, d_ff: (lambda _, core, rest: rest / core)(
        *own["layer_flops"](1, d_model, d_ff)
    )
    for grade_id in ("multi_head", "crossover"):
        assert examine(4, grade_id, own)[1].status == "passed", grade_id


def test_pytorchs_layer_inside_the_class_is_no_answer():
    class MultiHead(day4.AsInTheLesson):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.inside = torch.nn.MultiheadAttention(d_model, n_heads)

        def forward(self, x, mask=None):
            self.inside.double()(x.double(), x.double(), x.double())
            return super().forward(x, mask)

    _, verdict = examine(4, "multi_head", {"MultiHead": MultiHead})
    assert verdict.status == "forbidden"
    assert "MultiheadAttention" in verdict.message or "multi_head_attention_forward" in verdict.message
