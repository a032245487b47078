"""Day 3's checks: what is particular to masks, gradients and leaks. Its variants run in test_checks.py."""

import json
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right
from variants import day3

from course_utils.answers.day3.exercises import by_hand, sat
from course_utils.attention import masks
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather
from course_utils.days.day3.given.ladders import no_leak_or_pair
from course_utils.days.day3.patients import D_HEAD, CausalHead, SayTheTokenBefore, look, patients
from course_utils.models.leak_experiment import D_MODEL, random_tokens

HIDDEN = pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
MASKS = ["causal_mask", "padding_mask", "causal_and_padding", "lower_right", "convert_mask"]
LEAKS = {  # written down here by hand, from the names of the rungs
    "a layer that keeps later tokens out": None,
    "one token": None,
    "two tokens, the first sees the second": (0, 1),
    "every token sees every token": (0, 1),
    "only the last two tokens leak": (2, 3),
    "the first token sees the last": (0, 4),
    "two leaks": (0, 4),
    "three leaks into one output, the middle one strongest": (1, 2),
    "each token sees the next only": (0, 1),
    "a layer that looks at earlier tokens only": None,
    "a layer that reads only the last feature": (1, 3),
    "a layer that reads only the first feature": (0, 2),
    "a leak into the last output feature only": (1, 2),
    "a leak into the first output feature only": (2, 3),
    "one feature in, one out": (0, 3),
    "a leak that lowers the output": (1, 2),
    "a leak whose effects add up to 0": (1, 3),
    "a weak leak": (0, 2),
    "a weak leak into one number of four": (1, 3),
    "a layer that takes zeros for padding": (1, 3),
    "a layer that multiplies later tokens by 0": None,
    "norm_first: a layer that normalises each token first": (1, 3),
    "a layer that reads the squares of numbers": (0, 3),
    "a layer that reads negative numbers only": (1, 2),
    "a layer whose rows have length 2": (1, 3),
}


def expected(grade_id, hidden, measured=False):
    """The rungs of an exercise that compare results, or all, with the values that the reference gives, as arrays."""
    outcomes = judge_of(3, grade_id).reference(hidden).outcomes
    for rung, outcome in zip(draw_rungs(3, grade_id, hidden=hidden), outcomes, strict=True):
        values = {part: outcome.array(part) for part in outcome.values}
        if rung.measure and not measured:
            continue
        yield (
            rung,
            values,
        )


def pair_of(right):
    """What the reference says of a layer: (i, j), or None."""
    return (int(right["i"]), int(right["j"])) if right["number of leaks found"] else None


def answer(grade_id, function):
    return judge_of(3, grade_id).judge(gather(3, grade_id, {find_ladder(3, grade_id).names[0]: function}))


# References against the library --------------------------------------------------------------------------------------


@HIDDEN
def test_causal_attention_is_that_of_the_library(hidden):
    for rung, right in expected("causal_attention", hidden):
        x, W_q, W_k, W_v = map(torch.as_tensor, rung.args)
        theirs = F.scaled_dot_product_attention(x @ W_q, x @ W_k, x @ W_v, is_causal=True)
        np.testing.assert_allclose(right["output"], theirs, atol=1e-5 if x.dtype == torch.float32 else 1e-6)
        np.testing.assert_array_equal(np.triu(right["weights"], 1), 0)


@HIDDEN
def test_cross_attention_is_that_of_the_library(hidden):
    for rung, right in expected("cross_attention", hidden):
        x, memory, W_q, W_k, W_v, *mask = (None if a is None else torch.as_tensor(a) for a in rung.args)
        theirs = F.scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v, *mask)
        np.testing.assert_allclose(right["output"], theirs, atol=1e-5 if x.dtype == torch.float32 else 1e-6)


@HIDDEN
def test_the_mended_attention_is_that_of_the_library(hidden):
    for rung, right in expected("find_the_bug", hidden):
        theirs = F.scaled_dot_product_attention(*map(torch.as_tensor, rung.args))
        np.testing.assert_allclose(right["output"], theirs, atol=1e-6)


@HIDDEN
def test_the_converted_mask_makes_both_functions_of_pytorch_agree(hidden):
    for rung, right in expected("convert_mask", hidden):
        allowed, ignored = torch.as_tensor(rung.args[0]), torch.as_tensor(right["mask"]).bool()
        if allowed.ndim != 2 or not allowed.any(dim=-1).all():  # PyTorch gives NaN or zeros for an empty row
            continue
        n, m = allowed.shape
        layer = torch.nn.MultiheadAttention(4, 1, bias=False, dtype=torch.float64)
        x, memory = (
            torch.linspace(-1, 1, 4 * n, dtype=torch.float64).reshape(n, 4),
            torch.eye(m, 4, dtype=torch.float64),
        )
        q, k, v = (a @ W.T for a, W in zip((x, memory, memory), layer.in_proj_weight.chunk(3), strict=True))
        ours = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed) @ layer.out_proj.weight.T
        torch.testing.assert_close(layer(x, memory, memory, attn_mask=ignored)[0], ours)


@HIDDEN
def test_a_mask_of_three_axes_is_one_for_each_sequence_and_head_as_multihead_attention_takes_it(hidden):
    batch, heads = 2, 2
    (mask,) = (right["mask"] for _, right in expected("convert_mask", hidden) if right["mask"].ndim == 3)
    ignored = torch.as_tensor(mask).bool()
    _, n, m = ignored.shape
    layer = torch.nn.MultiheadAttention(4, heads, batch_first=True)
    x, memory = torch.ones(batch, n, 4), torch.ones(batch, m, 4)
    _, weights = layer(x, memory, memory, attn_mask=ignored, average_attn_weights=False)  # (B, h, n, m)
    torch.testing.assert_close(weights.reshape(batch * heads, n, m) > 0, ~ignored)


@HIDDEN
def test_the_decoding_mask_is_the_lower_right_one_of_pytorch(hidden):
    for rung, right in expected("lower_right", hidden):
        n, m = rung.args
        v = torch.eye(m)  # so the output is the weights
        bias = causal_lower_right(n, m)
        weights = F.scaled_dot_product_attention(torch.zeros(1, 1, n, m), v[None, None], v[None, None], attn_mask=bias)
        np.testing.assert_array_equal(weights[0, 0] > 0, right["mask"])


@HIDDEN
def test_the_masked_softmax_and_its_gradient_are_those_of_one_row_at_a_time(hidden):
    for rung, right in expected("masked_softmax", hidden, measured=True):
        if "measure" in right:
            assert right["measure"] == 0
            continue
        scores, mask = rung.args[0].astype(np.float64), np.broadcast_to(rung.args[1], rung.args[0].shape)
        weights = np.zeros_like(scores)
        for place in np.ndindex(scores.shape[:-1]):
            keys = mask[place]
            if keys.any():
                weights[(*place, keys)] = torch.softmax(torch.from_numpy(scores[place][keys]), dim=0).numpy()
        near = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-7}[rung.args[0].dtype.type]
        np.testing.assert_allclose(right["weights"], weights, atol=near)
        if rung.measure:
            wanted = rung.args[2].astype(np.float64)
            slopes = weights * (wanted - (weights * wanted).sum(axis=-1, keepdims=True))
            np.testing.assert_allclose(right["gradient"], slopes, atol=near)


# The layers of first_leak keep what the exercise promises -----------------------------------------------------------


@HIDDEN
def test_the_first_leak_is_the_one_that_was_put_in(hidden):
    for rung, right in expected("first_leak", hidden, measured=True):
        if rung.name in LEAKS:
            assert pair_of(right) == LEAKS[rung.name], rung.name
        else:
            assert rung.name == "one leak in the middle"
            assert pair_of(right) in ((0, 3), (1, 3), (2, 3))


@HIDDEN
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_each_dependence_shows_in_a_step_and_in_the_gradient_and_no_other_does(hidden, dtype):
    for rung, right in expected("first_leak", hidden, measured=True):
        fn, n, d = rung.args
        depends = dependences(fn, n, d, dtype)
        first = np.argwhere(np.triu(depends, 1)).tolist()
        assert (tuple(first[0]) if first else None) == pair_of(right), rung.name


def dependences(fn, n, d, dtype):
    """(n, n), True where output i depends on token j, with both ways asserted to agree."""
    x, (change,) = (
        torch.randn(rows, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)
        for seed, rows in ((0, n), (1, 1))
    )
    before, depends = fn(x), np.zeros((n, n), dtype=bool)
    kept = x.clone()
    for j in range(n):
        moved = []
        for step in (1.0, -1e6):
            changed = x.clone()
            changed[j] += step * change
            moved.append((fn(changed) - before).abs().amax(dim=1))
        slopes = torch.autograd.functional.jacobian(lambda x: fn(x).sum(dim=1), x)[:, j].abs().amax(dim=1)
        for i in range(n):
            depends[i, j] = moved[0][i] > 0
            assert moved[0][i] > 1e-4 if depends[i, j] else moved[0][i] == moved[1][i] == slopes[i] == 0
            assert (slopes[i] > 0.1) == depends[i, j]
    assert torch.equal(x, kept)
    assert torch.equal(fn(x), before)
    return depends


def test_the_leak_tests_of_the_library_come_to_the_same():
    for rung, right in expected("first_leak", False, measured=True):
        fn, n, d = rung.args
        x = torch.randn(n, d, generator=torch.Generator().manual_seed(1))
        for test in (masks.future_leak, masks.jacobian_leak):
            assert (test(fn, x).i is None) == (pair_of(right) is None), rung.name


@pytest.mark.parametrize(
    ("result", "read"),
    [
        (None, None),
        ((0, 2), [0, 2]),
        ([1, 3], [1, 3]),
        (torch.tensor([1, 2]), [1, 2]),
        (np.array([1, 2]), [1, 2]),
        ((np.int64(0), torch.tensor(4)), [0, 4]),
    ],
)
def test_none_and_any_kind_of_pair_is_read(result, read):
    assert no_leak_or_pair(result) == read


@pytest.mark.parametrize(
    "result", [False, 3, (), (1,), (0, 1, 2), (-1, -1), (0.5, 1), "(0, 1)", [(0, 1)], {"i": 0}, torch.eye(2), (1, None)]
)
def test_what_is_neither_none_nor_a_pair_is_refused_with_what_to_return(result):
    with pytest.raises(TypeError, match=r"return None, or the pair \(i, j\)"):
        no_leak_or_pair(result)


# What is accepted and what is said ----------------------------------------------------------------------------------


@pytest.mark.parametrize("grade_id", MASKS)
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (torch.Tensor.tolist, "this is a list, not a tensor"),
        (torch.Tensor.numpy, "this is a NumPy array, not a tensor"),
        (torch.Tensor.float, "True and False"),
        (lambda mask: None, "Did you forget the return statement?"),
    ],
)
def test_a_mask_is_a_tensor_of_true_and_false(grade_id, made, said):
    (reference,) = all_exercises(3)[grade_id].reference.values()
    assert answer(grade_id, lambda *args: reference(*args)).status == "passed"
    verdict = answer(grade_id, lambda *args: made(reference(*args)))
    assert verdict.status in ("error", "failed")
    assert said in verdict.message


@pytest.mark.parametrize("grade_id", ["causal_attention", "cross_attention"])
def test_a_word_on_dtypes_comes_with_the_error_that_speaks_of_them_and_with_no_other(grade_id):
    (reference,) = all_exercises(3)[grade_id].reference.values()

    def with_a_new_tensor(x, *others):
        return x @ torch.zeros(x.shape[1], 1), x

    def transposed(*args):
        output, weights = reference(*args)
        return output.T, weights

    assert "need the dtype of x" in answer(grade_id, with_a_new_tensor).message
    for other in (transposed, lambda *args: reference(*args)[0], lambda *args: 1 / 0):
        assert "dtype" not in answer(grade_id, other).message


def test_the_row_by_pencil_is_that_of_the_library():
    X = torch.tensor([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]])
    output = F.scaled_dot_product_attention(X[None], X[None], X[None], is_causal=True)[0, 1]
    assert sat()["output_sat"] == pytest.approx(output.tolist())
    assert sat()["weights_sat"] == pytest.approx([output[2].item(), output[1].item(), 0.0])


@pytest.mark.parametrize(
    ("weights", "name"),
    [([0.274, 0.452, 0.274], "no mask"), ([0.274, 0.274, 0.452], "the order of the lesson")],
)
def test_a_row_without_the_mask_and_the_row_of_the_lesson_are_told_apart(weights, name):
    assert judge_of(3, "by_hand_row").judge(gather(3, "by_hand_row", by_hand(weights))).mistake == name


@pytest.mark.parametrize(
    ("weights", "output", "share"),
    [
        ([0.378, 0.622, 0.0], [1.0, 0.622, 0.378, 0.0], 1.0),
        (np.array([0.37754, 0.62246, 0.0]), (1, 0.62246, 0.37754, 0), 1.0),
        ([0.378, 0.622, 0.0], [1.0, 0.6, 0.4, 0.0], 0.5),
        ([0.378, 0.622, 0.0], None, 0.5),
        ([0.38, 0.62, 0.0], [1.0, 0.622, 0.378, 0.0], 0.5),
        ([0.622, 0.378, 0.0], [1.0, 0.378, 0.622, 0.0], 0.0),
    ],
)
def test_each_entry_of_the_row_earns_its_share(weights, output, share):
    entries = {"weights_sat": weights, "output_sat": output}
    assert judge_of(3, "by_hand_row").judge(gather(3, "by_hand_row", entries)).share == share


# The models of diagnose ---------------------------------------------------------------------------------------------

TEXTS = random_tokens(64, torch.Generator().manual_seed(1))


def healthy(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SayTheTokenBefore(CausalHead(D_MODEL, D_HEAD))


def first_that_tells(printed):
    """The number of the first line of `look` that is not healthy by the statement's rules; None where all are."""
    lines = {number: re.findall(rf"^{number} .*", printed, re.MULTILINE) for number in range(1, 6)}
    (loss, blind), scores, mask = (
        [float(found) for found in re.findall(r"(?<!\w)-?[\d.]+", lines[number][0][2:])] for number in (1, 2, 3)
    )
    row = json.loads(lines[4][0].partition("row 4")[2])
    norms = [float("nan" if (last := line.split()[-1]) == "none" else last) for line in lines[5]]
    well = {
        1: abs(loss - blind) <= 0.5,
        2: -10 <= scores[0] < scores[1] <= 10,
        3: mask == [0, 0],
        4: abs(sum(row) - 1) <= 0.02 and sum(weight > 0 for weight in row[:5]) > 1 and not any(row[5:]),
        5: all(norm > 0 for norm in norms),
    }
    return next((number for number, so in well.items() if not so), None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["as given", "other rounding"])
@pytest.mark.parametrize("seed", range(5))
def test_the_printed_lines_decide_which_is_the_first_that_tells(seed, dtype, capsys):
    for model, line in zip(patients(seed), all_exercises(3)["diagnose"].reference["first_lines"], strict=True):
        look(model.to(dtype), TEXTS)
        assert first_that_tells(capsys.readouterr().out) == line


@pytest.mark.parametrize("seed", range(5))
def test_no_line_tells_of_a_model_without_a_slip(seed, capsys):
    look(healthy(seed), TEXTS)
    assert first_that_tells(capsys.readouterr().out) is None


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([4, 2, 5, 3], "passed"),
        (torch.tensor([4, 2, 5, 3]), "passed"),
        ((4.0, 2.0, 5.0, 3.0), "passed"),
        ([4, 2, 5, 4], "failed"),
        ([4, 2, 5], "failed"),
        ([[4, 2, 5, 3]], "failed"),
        ("4253", "error"),
        (None, "missing"),
    ],
)
def test_all_four_lines_have_to_be_right(lines, status):
    assert judge_of(3, "diagnose").judge(gather(3, "diagnose", {"first_lines": lines})).status == status


def loss_after(model, steps=60):
    optimiser, texts = torch.optim.Adam(model.parameters(), lr=1e-2), torch.Generator().manual_seed(1)
    for _ in range(steps):
        loss = model.loss(random_tokens(64, texts))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


def test_the_model_without_a_slip_learns_and_the_four_do_not():
    assert loss_after(healthy()) < 0.2
    for model in patients():
        assert not loss_after(model) < 1


def test_patients_leave_the_generator_of_the_caller_where_it_was():
    before = torch.random.get_rng_state()
    patients()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_earlier_slip_costs_a_later_exercise_nothing():
    own = {
        "causal_mask": lambda n: torch.ones(n, n).triu(),
        "masked_softmax": lambda scores, mask: scores,
        "padding_mask": lambda lengths, m: None,
    }
    own["causal_attention"] = day3.attention_under(lambda n: own["causal_mask"](n))  # masked_softmax comes later
    own["causal_padding_mask"] = lambda lengths, n: own["causal_mask"](n) & own["padding_mask"](lengths, n)
    own["cross_attention"] = day3.cross_under(lambda s, m: own["masked_softmax"](s, m))
    own["decoding_mask"] = lambda n, m: own["causal_mask"](m)[-n:]
    for grade_id in ("causal_attention", "causal_and_padding", "cross_attention", "lower_right"):
        assert examine(3, grade_id, own)[1].status == "passed", grade_id


def test_the_bug_as_it_stands_is_not_given_away():
    mistake = all_exercises(3)["find_the_bug"].mistakes[0]
    message = answer("find_the_bug", mistake.answer).message
    assert message == mistake.message
    assert not {"before", "after", "softmax", "mask"} & set(message.lower().replace(",", " ").split())


def test_a_gradient_that_is_lost_is_told_in_words():
    assert "changed in place" in answer("masked_softmax", day3.softmax_written_into).message
    assert "no gradient back" in answer("masked_softmax", day3.softmax_detached).message


def advice(grade_id, answers):
    return judge_of(3, grade_id).judge(gather(3, grade_id, answers)).message


def test_a_wrong_mask_is_told_as_true_and_false_with_the_rule_first():
    def packed_mask(text_of):
        same = text_of[..., :, None] == text_of[..., None, :]
        return same & masks.causal(text_of.shape[-1])

    message = advice("packed_texts", {"packed_mask": packed_mask})
    assert "is True, expected False. −1 is padding" in message
    assert message.index("−1 is padding") < message.index("the mask is True where it should be, and elsewhere too")


def test_an_edge_that_is_one_place_off_is_told_in_the_singular():
    def padding_mask(lengths, m):
        return (torch.arange(m) <= lengths[:, None])[:, None, None, :]

    message = advice("padding_mask", {"padding_mask": padding_mask})
    assert "from True to False 1 place later than it should" in message


def test_of_several_wrong_lines_the_first_is_named():
    message = advice("diagnose", {"first_lines": [1, 2, 5, 1]})
    assert "first_lines[0] is not right" in message
