"""The mask painter without a browser: families, measured verdicts, rows without keys, refusals, text and picture."""

import base64
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from as_page import on_page

from course_utils.attention import masks, tensors
from course_utils.views import MaskPainter
from course_utils.views.static_page import static_page

TOKENS = ["the", "cat", "sat", "down"]
NO_LEAK = "no leak: no output sees a later token"
LOOKS_AHEAD = "That is a leak in a causal model, but harmless in an encoder, which only reads."


def scores_of(q, k):
    return q @ k.T / q.shape[-1] ** 0.5


def before_softmax(fill):
    """Masks the scores, as it should be done; fill is -inf or something that only looks like it."""

    def attention(q, k, v, mask):
        weights = torch.softmax(scores_of(q, k).masked_fill(~mask, fill), dim=-1)
        return weights @ v, weights

    return attention


def ignores(q, k, v, mask):
    weights = torch.softmax(scores_of(q, k), dim=-1)
    return weights @ v, weights


def after_softmax(q, k, v, mask):
    weights = torch.softmax(scores_of(q, k), dim=-1) * mask
    return weights @ v, weights


def renormalised(q, k, v, mask):
    weights = torch.softmax(scores_of(q, k), dim=-1) * mask
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


def upside_down(q, k, v, mask):
    return before_softmax(-torch.inf)(q, k, v, ~mask | torch.eye(len(q), dtype=torch.bool))


def adds_minus_1e4(q, k, v, mask):
    weights = torch.softmax(scores_of(q, k) - 1e4 * ~mask, dim=-1)
    return weights @ v, weights


def hides_its_leak(q, k, v, mask):
    """The weights it tells are right; the output is made with others."""
    return ignores(q, k, v, mask)[0], before_softmax(-torch.inf)(q, k, v, mask)[1]


def by_library(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def in_numpy(q, k, v, mask):
    q, k, v, mask = (np.asarray(x) for x in (q, k, v, mask))
    scores = np.where(mask, q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    weights = powers / powers.sum(1, keepdims=True)
    return weights @ v, weights


class TestFamilies:
    def test_each_family_is_the_one_of_the_library(self):
        painter = MaskPainter(TOKENS, window=2, prefix=3, length=1)
        for family, mask in {
            "bidirectional": torch.ones(4, 4, dtype=torch.bool),
            "causal": masks.causal(4),
            "sliding window": masks.sliding_window(4, 2),
            "prefix-LM": masks.prefix_lm(4, 3),
            "padding": masks.padding([1], 4)[0, 0].expand(4, 4),
        }.items():
            painter.family = family
            assert painter.family == family
            np.testing.assert_array_equal(painter.mask, mask.numpy())
        assert set(painter.families) == {"bidirectional", "causal", "sliding window", "prefix-LM", "padding"}

    @pytest.mark.parametrize(("n", "m"), [(2, 4), (4, 2)])
    def test_where_queries_and_keys_differ_both_alignments_are_there_and_no_prefix(self, n, m):
        painter = MaskPainter(TOKENS[:n], keys=TOKENS[:m])
        assert "prefix-LM" not in painter.families
        for family, mask in {
            "causal": masks.causal(n, m),
            "causal, upper left": masks.causal(n, m, align="upper-left"),
            "sliding window": masks.sliding_window(n, 2, m),
        }.items():
            painter.window = 2
            painter.family = family
            np.testing.assert_array_equal(painter.mask, mask.numpy())

    def test_a_target_is_reported_by_the_cells_that_are_still_to_change(self):
        painter = MaskPainter(TOKENS, family="bidirectional", target=np.tri(4))
        assert painter.to_go == 6 and "goal: 6 cells to go" in painter.as_text()
        painter.family = "causal"
        assert painter.to_go == 0 and "goal reached" in painter.as_text()
        assert MaskPainter(TOKENS).to_go is None
        with pytest.raises(ValueError, match=r"target|mask"):
            MaskPainter(TOKENS, target=np.ones((4, 5)))

    def test_a_slider_moves_the_mask_of_its_own_family_only(self):
        painter = MaskPainter(TOKENS)
        painter.window = 1
        assert painter.family == "causal" and painter.mask.sum() == 10
        painter.family = "sliding window"
        np.testing.assert_array_equal(painter.mask, np.eye(4))
        painter.window = 4  # the same mask as causal, but the family was chosen
        assert painter.family == "sliding window" and painter.mask.sum() == 10

    def test_a_mask_is_painted_until_it_is_a_family_again(self):
        painter = MaskPainter(TOKENS)
        mask = np.tri(4, dtype=bool)
        mask[0, 3] = True
        painter.mask = mask
        assert painter.family == "painted"
        painter.mask = np.eye(4)
        assert (painter.family, painter.window) == ("sliding window", 1)
        painter.mask = [[1, 1, 0, 0]] * 4
        assert (painter.family, painter.length) == ("padding", 2)
        painter.mask = np.tri(4)
        assert painter.family == "causal"

    def test_a_mask_given_goes_before_the_family(self):
        assert MaskPainter(TOKENS, mask=np.ones((4, 4))).family == "bidirectional"
        assert MaskPainter(TOKENS, mask=torch.eye(4, dtype=torch.bool).flip(0)).family == "painted"

    def test_the_mask_is_a_copy(self):
        painter = MaskPainter(TOKENS)
        painter.mask[:] = False
        assert painter.mask.sum() == 10

    def test_one_message_of_the_page_may_bring_mask_family_and_slider_together(self):
        painter = MaskPainter(TOKENS)
        painter.set_state({"_mask": "1000010000100001", "family": "sliding window", "window": 1})
        assert (painter.family, painter.window, painter.mask.sum()) == ("sliding window", 1, 4)
        painter.set_state({"_mask": "0001" * 4, "family": "painted"})
        assert painter.family == "painted" and on_page(painter).result["mask"] == "0001" * 4

    def test_a_change_and_what_follows_from_it_reach_the_page_in_one_message(self, monkeypatch):
        painter = MaskPainter(TOKENS, family="sliding window")
        sent = []
        monkeypatch.setattr(painter, "_send", lambda message, buffers=None: sent.append(message))
        painter.window = 1
        assert [{"window", "_mask", "_result"}] == [set(message["state"]) for message in sent]


class TestCode:
    @pytest.mark.parametrize("keys", [None, ["a"], ["a", "b", "c"], ["a", "b", "c", "d", "e", "f"]])
    def test_the_line_of_each_family_makes_its_mask(self, keys):
        painter = MaskPainter(TOKENS, keys=keys)
        for entry in on_page(painter).catalogue:
            made = {"torch": torch}
            exec(entry["code"], made)
            signs = "".join(str(int(may)) for may in made["mask"].flatten())
            assert made["mask"].shape == painter.mask.shape and made["mask"].dtype == torch.bool
            assert signs == entry["mask"], entry["code"]
            assert len(entry["code"]) <= 79


class TestVerdict:
    @pytest.mark.parametrize(
        "attention", [None, tensors.attention, before_softmax(-torch.inf), before_softmax(-1e9), by_library, in_numpy]
    )
    @pytest.mark.parametrize("family", ["causal", "sliding window"])
    def test_a_right_attention_under_a_causal_mask_does_not_leak(self, attention, family):
        painter = MaskPainter(TOKENS, attention=attention, family=family)
        assert painter.verdict == NO_LEAK and painter.leak == masks.Leak(None, None, 0.0) and not painter.problem
        assert on_page(painter).result["kind"] == "clean"
        assert on_page(painter).result["lines"] == [
            NO_LEAK,
            "The mask blocks every cell above the diagonal.",
            "Every query may attend to at least one key.",
            "",
        ]

    @pytest.mark.parametrize(
        "attention", [ignores, after_softmax, renormalised, upside_down, adds_minus_1e4, hides_its_leak]
    )
    @pytest.mark.parametrize("tokens", [TOKENS, TOKENS[:2], [f"t{i}" for i in range(16)]])
    def test_a_wrong_attention_leaks_even_under_a_causal_mask(self, attention, tokens):
        painter = MaskPainter(tokens, attention=attention)
        assert painter.verdict.startswith("leak: the output of ")
        assert painter.leak.j > painter.leak.i and on_page(painter).result["kind"] == "leak"
        assert f"it is {attention.__name__}() that lets it through" in on_page(painter).result["lines"][1]

    @pytest.mark.parametrize("attention", [None, by_library, in_numpy])
    def test_one_open_cell_above_the_diagonal_looks_ahead_and_is_the_one_told(self, attention):
        painter = MaskPainter(TOKENS, attention=attention)
        for i in range(4):
            for j in range(i + 1, 4):
                mask = np.tri(4, dtype=bool)
                mask[i, j] = True
                painter.mask = mask
                assert painter.verdict == f"looks ahead: the output of “{TOKENS[i]}” changes when “{TOKENS[j]}” changes"
                assert painter.leak[:2] == (i, j) and on_page(painter).result["kind"] == "ahead"
                assert on_page(painter).result["lines"][1] == LOOKS_AHEAD
        painter.family = "causal"
        assert painter.verdict == NO_LEAK

    @pytest.mark.parametrize("family", ["bidirectional", "prefix-LM", "padding"])
    def test_what_an_encoder_may_do_is_not_called_a_leak(self, family):
        painter = MaskPainter(TOKENS, family=family, prefix=3, length=3)
        assert painter.verdict.startswith("looks ahead: ") and on_page(painter).result["kind"] == "ahead"
        assert on_page(painter).result["lines"][1] == LOOKS_AHEAD

    @pytest.mark.parametrize("attention", [ignores, after_softmax])
    def test_a_leak_past_the_mask_is_reported_before_what_the_mask_opens(self, attention):
        for blocked in ((0, 1), (1, 3), (0, 3), (2, 3)):
            mask = np.ones((4, 4), dtype=bool)
            mask[blocked] = False
            painter = MaskPainter(TOKENS, mask=mask, attention=attention)
            assert painter.leak[:2] == blocked and on_page(painter).result["kind"] == "leak"
            assert f"it is {attention.__name__}() that lets it through" in on_page(painter).result["lines"][1]

    def test_nan_after_a_change_is_a_leak_and_called_so(self):
        assert "becomes NaN or infinite when" in MaskPainter(TOKENS, attention=renormalised).verdict

    def test_an_open_mask_that_is_not_used_is_asked_about(self):
        painter = MaskPainter(TOKENS, attention=lambda q, k, v, mask: (v, torch.eye(4)), family="bidirectional")
        assert painter.verdict == NO_LEAK
        asked = "Yet the mask opens 6 cells above the diagonal. Does your function use the mask?"
        assert on_page(painter).result["lines"][1] == asked

    def test_two_sequences_have_no_verdict(self):
        for keys in (["die", "Katze"], ["eins", "zwei", "drei", "vier"]):
            painter = MaskPainter(TOKENS, keys=keys)
            assert painter.verdict == "no verdict: the queries and the keys are two sequences"
            assert painter.leak is None and on_page(painter).result["kind"] == "none"
            assert painter.weights.shape == (4, len(keys))
            assert painter.family == "bidirectional" and "has no meaning" in on_page(painter).result["lines"][1]

    def test_a_single_token_cannot_leak(self):
        assert MaskPainter(["a"], attention=ignores).verdict == NO_LEAK

    def test_tokens_that_come_twice_are_told_apart(self):
        painter = MaskPainter(["the", "cat", "the"], mask=[[1, 0, 1], [1, 1, 0], [1, 1, 1]])
        assert painter.verdict == "looks ahead: the output of “the” (token 0) changes when “the” (token 2) changes"

    def test_the_weights_are_those_of_the_function(self):
        painter = MaskPainter(TOKENS, attention=after_softmax)
        assert not np.allclose(painter.weights.sum(1), 1)
        np.testing.assert_array_equal(painter.weights[~painter.mask], 0)
        assert "The weights of “the” sum to" in on_page(painter).result["lines"][3]
        assert on_page(painter).result["marks"].count("b") == 6

    def test_weights_are_read_off_an_attention_that_returns_the_output_alone(self):
        alone = MaskPainter(TOKENS, attention=by_library)
        np.testing.assert_allclose(alone.weights, MaskPainter(TOKENS).weights, atol=1e-6)

    def test_an_output_alone_that_wants_d_v_like_d_k_has_a_verdict_and_no_weights(self):
        def strict(q, k, v, mask):
            assert v.shape == k.shape
            return by_library(q, k, v, mask)

        painter = MaskPainter(TOKENS, attention=strict)
        assert painter.verdict == NO_LEAK and painter.weights is None
        assert on_page(painter).result["lines"][3] == "No weights were returned to show."

    def test_weight_where_the_mask_blocks_is_marked_and_counted(self):
        painter = MaskPainter(TOKENS, attention=ignores)
        assert [mark == "l" for mark in on_page(painter).result["marks"]] == (~painter.mask).ravel().tolist()
        assert on_page(painter).result["lines"][3] == "6 blocked cells have a weight."

    def test_an_output_that_is_not_weights_times_v_is_named(self):
        painter = MaskPainter(TOKENS, attention=hides_its_leak)
        assert "The output is not weights · v." in on_page(painter).result["lines"][3]

    def test_the_seed_decides_the_numbers(self):
        first = MaskPainter(TOKENS)
        same = MaskPainter(TOKENS, seed=0)
        other = MaskPainter(TOKENS, seed=1)
        np.testing.assert_array_equal(first.weights, same.weights)
        assert not np.allclose(first.weights, other.weights)


class TestRowsWithoutKeys:
    @pytest.mark.parametrize(
        ("attention", "text"),
        [
            (None, "its weights are 0."),
            (by_library, "its weights are 0."),
            (before_softmax(-torch.inf), "its weights are NaN."),
            (before_softmax(-1e9), "its weights are 0.25 each, as a finite fill gives."),
            (ignores, "its weights are not 0."),
        ],
    )
    def test_what_the_function_gives_is_reported(self, attention, text):
        mask = np.tri(4, dtype=bool)
        mask[1] = False
        painter = MaskPainter(TOKENS, mask=mask, attention=attention)
        assert on_page(painter).result["lines"][2] == f"“cat” may attend to nothing: {text}"
        assert on_page(painter).result["rows"] == "-e--"

    def test_nan_where_there_is_no_key_is_no_leak_but_is_shown(self):
        painter = MaskPainter(TOKENS, mask=np.tri(4, k=-1), attention=before_softmax(-torch.inf))
        assert painter.verdict == "no leak, but NaN among the weights" and on_page(painter).result["kind"] == "nan"
        assert on_page(painter).result["text"][:4] == ["NaN"] * 4 and on_page(painter).result["marks"][:4] == "nnnn"

    def test_a_finite_fill_leaks_where_there_is_no_key(self):
        painter = MaskPainter(TOKENS, mask=np.tri(4, k=-1), attention=before_softmax(-1e9))
        assert painter.verdict.startswith("leak: the output of “the” changes")

    def test_many_rows_are_counted(self):
        painter = MaskPainter(TOKENS, family="padding", length=0)
        text = "“the”, “cat” and 2 more may attend to nothing: their weights are 0."
        assert on_page(painter).result["lines"][2] == text
        assert painter.verdict == NO_LEAK

    def test_two_rows_are_named_and_what_only_some_weights_are_is_said_so(self):
        def nan_in_one(q, k, v, mask):
            weights = torch.nan_to_num(before_softmax(-torch.inf)(q, k, v, mask)[1])
            weights[0, 0] = torch.nan
            return weights.nan_to_num() @ v, weights

        mask = np.tri(4, dtype=bool)
        mask[[0, 2]] = False
        text = "“the” and “sat” may attend to nothing: "
        assert on_page(MaskPainter(TOKENS, mask=mask)).result["lines"][2] == text + "their weights are 0."
        painter = MaskPainter(TOKENS, mask=mask, attention=nan_in_one)
        assert on_page(painter).result["lines"][2] == text + "some of their weights are NaN or infinite."

    def test_nan_in_a_row_that_has_keys_is_a_problem(self):
        def zero_over_zero(q, k, v, mask):
            output, weights = by_library(q, k, v, mask), mask.float()
            output[2] = torch.nan
            return output, weights

        painter = MaskPainter(TOKENS, attention=zero_over_zero)
        assert "gives NaN or infinity to a query that has keys" in painter.problem and painter.leak is None


class TestProblems:
    @pytest.mark.parametrize(
        ("attention", "message"),
        [
            (lambda q, k, v, mask: 1 / 0, "your function raised ZeroDivisionError: division by zero"),
            (lambda q, k, v: v, "your function raised TypeError: "),
            (lambda q, k, v, mask: v[:2], "your function returned output of shape (2, 8): (4, 8) was expected"),
            (lambda q, k, v, mask: (v, mask[0]), "your function returned weights of shape (4,): (4, 4) was expected"),
            (lambda q, k, v, mask: None, "your function returned NoneType: (output, weights)"),
            (lambda q, k, v, mask: "no", "your function returned str: (output, weights)"),
            (lambda q, k, v, mask: v + torch.rand(1), "your function gives two answers to one input"),
            (lambda q, k, v, mask: {}["x" * 999], "your function raised KeyError: 'xxx"),
        ],
    )
    def test_a_function_that_fails_becomes_a_message(self, attention, message):
        painter = MaskPainter(TOKENS, attention=attention)
        assert message in painter.problem and len(painter.problem) <= 180
        assert painter.verdict == "no verdict: your function has to be fixed first"
        assert on_page(painter).result["kind"] == "problem" and painter.problem in painter.as_text()
        painter._repr_mimebundle_()

    def test_one_not_written_yet_is_named(self):
        def mine(q, k, v, mask):
            raise NotImplementedError

        assert MaskPainter(TOKENS, attention=mine).problem == "mine() is not written yet"

    def test_after_a_failure_the_next_mask_is_measured(self):
        def moody(q, k, v, mask):
            if mask.all():
                raise RuntimeError("no")
            return by_library(q, k, v, mask)

        painter = MaskPainter(TOKENS, attention=moody, family="bidirectional")
        assert "moody() raised RuntimeError: no" in painter.problem and painter.weights is None
        painter.family = "causal"
        assert painter.verdict == NO_LEAK and painter.problem == ""

    def test_a_function_that_prints_or_writes_into_its_mask_does_no_harm(self, capsys):
        def rude(q, k, v, mask):
            print("called")
            answer = by_library(q, k, v, mask.clone())
            mask[:] = True
            v[:] = 0
            return answer

        painter = MaskPainter(TOKENS, attention=rude)
        assert painter.verdict == NO_LEAK and painter.mask.sum() == 10
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"tokens": "the cat"}, "tokens is one string"),
            ({"tokens": []}, "tokens is empty"),
            ({"tokens": range(17)}, "tokens has 17 labels: the painter shows up to 16"),
            ({"keys": []}, "keys is empty"),
            ({"mask": np.ones((4, 3))}, r"mask is \(4, 3\) but there are 4 queries and 4 keys: one column per key"),
            ({"mask": np.ones((3, 4))}, r"mask is \(3, 4\) but there are 4 queries and 4 keys: one row per query"),
            ({"mask": np.full((4, 4), 0.5)}, "mask holds other numbers than 0 and 1"),
            ({"family": "diagonal"}, "family is 'diagonal': give one of 'bidirectional', 'causal'"),
            ({"family": "prefix-LM", "keys": ["a"]}, "family is 'prefix-LM'"),
            ({"window": 0}, "window is 0: give a whole number from 1 to 4"),
            ({"prefix": 5}, "prefix is 5: give a whole number from 0 to 4"),
            ({"length": True}, "length is True"),
            ({"attention": "causal"}, "attention is str: give a function"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            MaskPainter(**{"tokens": TOKENS, **arguments})

    def test_an_unknown_setting_is_reported(self):
        with pytest.raises(TypeError, match="MaskPainter takes no width"):
            MaskPainter(TOKENS, width=3)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("family", "diagonal", "family is 'diagonal'"),
            ("family", "painted", "a mask becomes painted by being painted"),
            ("window", 9, "window is 9"),
            ("mask", np.ones((2, 2)), "one row per query"),
        ],
    )
    def test_what_is_set_has_to_fit_too_and_changes_nothing_otherwise(self, name, value, message):
        painter = MaskPainter(TOKENS)
        with pytest.raises(ValueError, match=message):
            setattr(painter, name, value)
        assert (painter.family, painter.window, painter.mask.sum()) == ("causal", 3, 10)


class TestWithoutAKernel:
    def test_the_text_holds_mask_weights_and_verdict(self):
        painter = MaskPainter(TOKENS[:3], mask=[[1, 0, 0], [0, 0, 0], [1, 0, 1]])
        assert painter.as_text().splitlines()[:5] == [
            "mask (painted): 3 queries (rows) × 3 keys (columns), ✓ may attend",
            "       the   cat   sat",
            " the     ✓     –     –",
            " cat     –     –     –",
            " sat     ✓     –     ✓",
        ]
        causal = MaskPainter(["a", "b"], window=2, family="sliding window").as_text().splitlines()
        assert causal[0].startswith("mask (sliding window, window 2): ")
        assert causal[6] == "   a  1.00     –" and causal[8:] == [
            NO_LEAK,
            "The mask blocks every cell above the diagonal.",
            "Every query may attend to at least one key.",
        ]

    def test_text_and_picture_are_the_same_on_every_run(self):
        (first, observed), (second, _) = (MaskPainter(TOKENS)._repr_mimebundle_() for _ in range(2))
        assert first["text/plain"] == second["text/plain"] and first["image/png"] == second["image/png"]
        assert base64.b64decode(first["image/png"]).startswith(b"\x89PNG")
        assert "May attend: the to the; cat to the, cat;" in observed["image/png"]["alt"]
        assert NO_LEAK in observed["image/png"]["alt"]

    @pytest.mark.parametrize("family", ["causal", "padding"])
    def test_the_picture_hatches_what_is_blocked_in_both_grids(self, family):
        painter = MaskPainter(TOKENS, family=family, length=1)
        hatched = [sum(patch.get_hatch() is not None for patch in ax.patches) for ax in painter.figure().axes]
        assert hatched == [int((~painter.mask).sum())] * 2

    def test_all_it_sends_is_json_and_its_page_needs_nothing_from_elsewhere(self):
        painter = MaskPainter(TOKENS, mask=np.tri(4, k=-1), attention=before_softmax(-torch.inf))
        json.dumps([on_page(painter).result, on_page(painter).catalogue, on_page(painter).layout], allow_nan=False)
        page = static_page(painter, "a page")
        assert page == static_page(painter, "a page") and "http" not in page
