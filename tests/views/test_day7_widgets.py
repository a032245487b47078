"""The player of calls and the speculative stepper without a browser: what they refuse, say, compute and draw."""

import copy

import numpy as np
import pytest
import torch
from as_page import on_page, send
from drawing_rules import is_whole

from course_utils.views import SpeculativeStepper, TracePlayer
from course_utils.views.static_page import page_state

BLOCKS = {
    "name": "PrefixCache",
    "made": "cache = PrefixCache(3, 2)",
    "calls": [
        {"code": "cache.admit('a', (0, 1, 0))", "gave": "(0, [0, 1])"},
        {"code": "cache.commit('a')", "gave": ""},
        {"code": "cache.admit('b', (0, 1, 1))", "gave": "(2, [0, 1])"},
    ],
    "pictures": [
        {"n_blocks": 3, "block_size": 2, "tables": held, "texts": texts, "prompts": {each: [0, 1, 0] for each in held}}
        for held, texts in (({}, {}), ({"a": (0, 1)}, {}), ({"a": (0, 1)}, {"0": (0, 1)}))
    ],
    "promise": "a block has one owner",
    "said": "block 1 was handed to b to be written, and a has it",
}  # fmt: skip
LENGTHS = {"n_blocks": 2, "block_size": 2, "tables": {"a": [0], "b": [0]}, "lengths": {"a": 1, "b": 1}}
SCHEDULER = {
    "name": "Scheduler",
    "made": "scheduler = Scheduler(4, 2, 3)",
    "calls": [{"code": "scheduler.step()", "gave": "({}, [])"}],
    "pictures": [
        {
            "n_blocks": 4,
            "block_size": 2,
            "budget": 3,
            "requests": {
                "a": {"prompt": 3, "new": 2, "computed": 3, "generated": 1},
                "b": {"prompt": 5, "new": 1, "computed": 0, "generated": 0},
            },
        }
    ],
    "promise": "no starvation",
    "said": "nothing is planned, and a waits",
}
P = [0.4, 0.3, 0.2, 0.1]
Q = [0.1, 0.2, 0.4, 0.3]
WORDS = ["the", "cat", "sat", "down"]
INF = float("inf")


def with_picture(trace, **picture):
    return {**trace, "pictures": [*trace["pictures"][:-1], picture]}


def holds_its_texts(fig):
    """Whether every text lies within a figure whose axes fill it."""
    fig.canvas.draw()
    width, height = fig.get_size_inches() * fig.dpi
    boxes = [text.get_window_extent() for text in fig.axes[0].texts]
    return all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes)


class TestTracePlayer:
    def test_it_says_the_calls_what_they_gave_and_the_promise(self):
        assert TracePlayer(BLOCKS).as_text().splitlines() == [
            "PrefixCache: 3 calls to a broken promise",
            "    cache = PrefixCache(3, 2)",
            "    cache.admit('a', (0, 1, 0))  # (0, [0, 1])",
            "    cache.commit('a')",
            "  ✗ cache.admit('b', (0, 1, 1))  # (2, [0, 1])",
            "Before the last call:",
            "    block 0: a, holds 0 1",
            "    block 1: a",
            "    block 2: free",
            "    table of a: 0, 1 (for 0 1 0)",
            f"Broken promise: “a block has one owner”. At the last call: {BLOCKS['said']}.",
        ]

    def test_several_owners_lengths_and_requests_are_said(self):
        assert (
            "block 0: a and b; block 1: free; table of a: 0 (1 token)"
            in TracePlayer(with_picture(BLOCKS, **LENGTHS)).alt()
        )
        message = TracePlayer(SCHEDULER).alt()
        assert (
            "Before the last: 2 blocks of 4 in use; a: 3 of 4 tokens computed, 1 of 2 generated; b: 0 of 5" in message
        )
        assert message.endswith("“no starvation”. At the last call: nothing is planned, and a waits.")

    def test_a_picture_of_something_else_is_left_out(self):
        widget = TracePlayer(with_picture(SCHEDULER))
        assert "Before" not in widget.as_text() + widget.alt()
        assert holds_its_texts(widget.figure())

    def test_all_that_a_page_needs_is_in_its_state_which_is_small(self):
        widget = TracePlayer(BLOCKS)
        state = page_state(widget)["_trace"]
        assert state["pictures"][2]["tables"] == {"a": [0, 1]} and state["calls"] == BLOCKS["calls"]
        assert len(str(page_state(widget))) < 20_000

    def test_the_step_goes_from_the_object_to_the_last_call(self):
        widget = TracePlayer(BLOCKS)
        assert (widget.step, widget.last) == (0, 3)
        widget.step = 3
        send(widget, step=2)
        assert widget.step == 2
        for wrong in (-1, 4):
            with pytest.raises(ValueError, match=f"step is {wrong}: give 0 to 3"):
                widget.step = wrong

    @pytest.mark.parametrize("picture", [BLOCKS["pictures"][2], LENGTHS, SCHEDULER["pictures"][0], {}])
    def test_the_picture_is_whole_and_marks_the_last_call(self, picture):
        fig = TracePlayer(with_picture(BLOCKS, **picture)).figure()
        assert holds_its_texts(fig)
        texts = [text.get_text() for text in fig.axes[0].texts]
        assert texts.count("✗") == 1 and any(text.startswith("✗ Broken promise") for text in texts)
        boxes = {"tables": picture.get("n_blocks"), "requests": 4 + 5, "": 0}
        kind = next((name for name in ("tables", "requests") if name in picture), "")
        assert len(fig.axes[0].patches) == boxes[kind]

    def test_many_blocks_and_long_calls_fit_the_picture(self):
        trace = copy.deepcopy(BLOCKS)
        trace["calls"][0]["code"] = f"cache.admit('a', {tuple(range(40))})"
        trace["pictures"][2]["n_blocks"] = 10
        assert holds_its_texts(TracePlayer(trace).figure())

    @pytest.mark.parametrize(
        ("trace", "message"),
        [
            ("PrefixCache", "trace is str: give the dict that checks.examples.adversary.as_data makes"),
            ({**BLOCKS, "said": None}, r'trace\["said"\] has to be text'),
            ({**BLOCKS, "calls": []}, "a list of at least one call"),
            ({**BLOCKS, "calls": ["append"]}, r'trace\["calls"\]\[0\] has to be'),
            ({**BLOCKS, "pictures": BLOCKS["pictures"][:2]}, "one before each of the 3 calls"),
            ({**SCHEDULER, "pictures": [1]}, r'trace\["pictures"\]\[0\] has to be a dict'),
            (with_picture(BLOCKS, tables={}, n_blocks=1), r'\["pictures"\]\[2\] lacks "block_size"'),
            (with_picture(SCHEDULER, requests={}, n_blocks=1, block_size=1), 'lacks "budget"'),
        ],
    )
    def test_what_is_no_trace_is_refused(self, trace, message):
        with pytest.raises(ValueError, match=message):
            TracePlayer(trace)


def stepper(drafted=(1, 2, 0), coins=(0.5, 0.7, 0.2, 0.8), p=P, q=Q, words=WORDS):
    return SpeculativeStepper(p, q, drafted, coins, words)


class TestSpeculativeStepper:
    def test_a_token_is_kept_below_p_over_q_and_the_first_other_one_ends_the_round(self):
        result = stepper().round
        assert [(coin.token, coin.kept) for coin in result.coins] == [(1, True), (2, False)]
        assert [coin.ratio for coin in result.coins] == pytest.approx([1.5, 0.5])
        assert result.source == "remainder" and result.tokens == (1, 1)  # the coin 0.8 falls behind 0.75
        assert stepper(coins=(0.5, 0.7, 0.2, 0.7)).round.tokens == (1, 0)

    def test_a_coin_on_the_bound_rejects(self):
        p, q = [0.25, 0.75], [0.5, 0.5]
        for u, kept in ((0.5, False), (np.nextafter(0.5, 0), True)):
            assert stepper([0], [u, 0], p, q, None).round.coins[0].kept is kept

    def test_after_all_are_kept_one_more_comes_from_p(self):
        result = stepper(coins=(0.9, 0.4, 0.9, 0.95)).round
        assert result.source == "p" and result.tokens == (1, 2, 0, 3)
        assert stepper(coins=(0.9, 0.4, 0.9, 0.0)).round.tokens[-1] == 0

    def test_the_remainder_is_what_p_has_more_than_q(self):
        np.testing.assert_allclose(stepper().remainder, [0.75, 0.25, 0, 0])
        assert stepper(q=P).remainder is None
        assert all(coin.kept for coin in stepper(q=P, coins=(0.99999,) * 4).round.coins)

    def test_alpha_and_the_expected_tokens(self):
        widget = stepper()
        assert widget.alpha == pytest.approx(0.6)
        assert widget.expected == pytest.approx((1 - 0.6**4) / (1 - 0.6))
        widget.nearness = 1.0
        assert (widget.alpha, widget.expected) == pytest.approx((1, 4))

    def test_q_moves_towards_p_in_a_straight_line_and_the_remainder_stays(self):
        widget = stepper()
        rest = stepper().remainder
        for nearness in (0.25, 0.5, 0.95):
            widget.nearness = nearness
            np.testing.assert_allclose(widget.q, (1 - nearness) * np.array(Q) + nearness * np.array(P))
            assert widget.alpha == pytest.approx(1 - (1 - nearness) * 0.4)
            left = np.maximum(0, np.array(P) - widget.q)
            np.testing.assert_allclose(widget.remainder, left / left.sum())
            np.testing.assert_allclose(widget.remainder, rest)

    def test_rounds_of_many_seeds_give_p_and_as_many_tokens_as_expected(self):
        widget = stepper()
        first = np.zeros(4)
        count_kept = 0
        count = 4000
        lengths = []
        for seed in range(count):
            widget.seed = seed
            result = widget.round
            first[result.tokens[0]] += 1
            count_kept += result.coins[0].kept
            lengths.append(len(result.tokens))
        np.testing.assert_allclose(first / count, P, atol=0.03)
        assert count_kept / count == pytest.approx(widget.alpha, abs=0.03)
        assert np.mean(lengths) == pytest.approx(widget.expected, abs=0.08)

    def test_a_seed_gives_the_same_round_again_and_none_the_given_one(self):
        widget = stepper()
        first = stepper().round
        widget.step = 2
        widget.seed = 7
        again = widget.round
        assert widget.step == 0 and again != first
        widget.seed = 8
        assert widget.round != again
        widget.seed = 7
        assert widget.round == again
        widget.seed = None
        assert widget.round == first

    def test_the_step_stays_within_a_shorter_round(self):
        widget = stepper(coins=(0.5, 0.7, 0.2, 0.8))
        send(widget, nearness=1.0)
        widget.step = widget.last
        assert widget.last == 4
        send(widget, nearness=0.0)
        assert widget.step == widget.last == 3
        with pytest.raises(ValueError, match="step is 4: give 0 to 3"):
            widget.step = 4

    def test_it_says_each_step(self):
        widget = stepper()
        lines = widget.as_text().splitlines()
        assert lines[0] == "Speculative decoding, γ = 3: α = Σ min(p, q) = 0.60, 2.18 tokens a round expected."
        assert lines[2].split() == ["the", "0.40", "0.10", "0.10", "0.75"]
        assert [widget.describe(step) for step in range(4)] == [
            "The drafter drew 3 tokens from q: “cat”, “sat”, “the”.",
            "Token 1, “cat”: p/q = 1.50, which is at least 1: always kept, and the coin 0.50 is not needed.",
            "Token 2, “sat”: p/q = 0.50, and the coin 0.70 is not below it: rejected. The one after it is dropped.",
            "Its replacement comes from the remainder (p − q)₊, scaled to sum to 1: the coin 0.80 draws “cat”. "
            "This round gives 2 tokens.",
        ]
        assert all(widget.describe(step) in widget.alt() for step in range(4))
        assert "The 2 after it are dropped." in stepper(drafted=(2, 1, 0), coins=(0.6,) * 4).alt()
        every_kept = stepper(drafted=[1], coins=(0.9, 0.95))
        assert (
            every_kept.describe(2)
            == "It is kept, so one more comes from p: the coin 0.95 draws “down”. This round gives 2 tokens."
        )

    def test_arrays_and_tensors_are_taken(self):
        for kind in (np.asarray, torch.tensor):
            assert stepper(p=kind(P), q=kind(Q), coins=kind([0.5, 0.7, 0.2, 0.8])).round.tokens == (1, 1)
        assert on_page(stepper(words=None)).words == ["token 0", "token 1", "token 2", "token 3"]

    @pytest.mark.parametrize("q", [Q, P])
    def test_the_picture_is_whole(self, q):
        for seed in (None, 3):
            widget = stepper(drafted=[0] * 8, coins=[0.5] * 9, q=q)
            widget.seed = seed
            fig = widget.figure()
            assert is_whole(fig) and len(fig.axes[0].patches) == 8 and len(fig.axes[1].patches) == (4 if q == Q else 0)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"p": [0.5, 0.6]}, ValueError, "which sum to 1"),
            ({"q": [-0.5, 0.5, 0.5, 0.5]}, ValueError, "none below 0"),
            ({"q": [INF, 0, 0, 0]}, ValueError, "give probabilities"),
            ({"q": [0.5, 0.5]}, ValueError, "p has 4 numbers and q has 2"),
            ({"words": ["a"]}, ValueError, "there are 1 words and 4 probabilities"),
            ({"drafted": []}, ValueError, "0 tokens are drafted"),
            ({"drafted": [0] * 9}, ValueError, "9 tokens are drafted: give 1 to 8"),
            ({"drafted": [4]}, ValueError, "token 4 is drafted, and the vocabulary has tokens 0 to 3"),
            ({"drafted": [0], "q": [0, 0.2, 0.4, 0.4]}, ValueError, "its q is 0"),
            ({"drafted": [0.5]}, TypeError, "whole number"),
            ({"coins": [0.5] * 3}, ValueError, "4 to 4 numbers|4 numbers"),
            ({"coins": [0.5, 0.5, 0.5, 1.0]}, ValueError, "but not including, 1"),
        ],
    )
    def test_what_is_no_round_is_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            stepper(**arguments)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("nearness", 1.5, "nearness is 1.5: give a number from 0 to 1"),
            ("nearness", "near", "nearness is 'near'"),
            ("seed", -1, "seed is -1"),
            ("seed", 10**6, "give None or 0 to 999999"),
        ],
    )
    def test_what_cannot_be_set_is_refused(self, name, value, message):
        with pytest.raises(ValueError, match=message):
            setattr(stepper(), name, value)
