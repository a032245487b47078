"""The merges of byte pairs and the ladder of losses without a browser: what they refuse, say, compute and draw."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from as_page import on_page, send
from drawing_rules import is_whole

from course_utils.models.byte_pairs import BytePairs, train_merges
from course_utils.views import LossLadder, MergeStepper

CAFÉ = "the cat, the hat, the café"
LOSSES = [(1, 5.6), (20, 3.4), (60, 2.6), (200, 2.1), (400, 1.7)]
FLOORS = [5.55, 3.31, 2.45]
SAMPLES = [(20, 3.4, "eo t\n nh$a"), (80, 2.5, "thend ore"), (200, 2.1, "the kind sore"), (400, 1.7, "the king")]


class TestMergeStepper:
    def test_overlapping_pairs_are_counted_but_merged_from_the_left(self):
        widget = MergeStepper("aaa", 1)
        assert widget.tokens == [256, 97] and widget.merges == [(97, 97)] and widget.last == 1
        assert widget.describe() == (
            "Merge 1: “a” + “a” became token 256, at 1 place. No pair occurs twice now, so merging ends."
        )

    def test_of_pairs_that_are_as_frequent_the_smallest_is_merged(self):
        widget = MergeStepper("zyzybaba")  # ab once; ba, yz and zy: ba and zy twice
        assert "“b” + “a”, 2 times, the smallest in a tie" in widget.describe()

    @pytest.mark.parametrize("word", ["banana", "aaaaabaaaab", "mississippimississippi", "ZürichZürichzürich"])
    def test_a_word_is_merged_as_the_tokenizer_of_the_course_learns_it(self, word):
        widget = MergeStepper(word)
        widget.step = widget.last
        assert widget.merges == train_merges(word.encode(), 256 + widget.last) and widget.merges
        assert BytePairs(widget.merges).decode(widget.tokens) == word.encode()

    def test_words_are_not_cut(self):
        widget = MergeStepper("a b a b a b a b")
        widget.step = widget.last
        assert b" " in BytePairs(widget.merges).bytes_of(widget.tokens[0])[1:]

    def test_its_text_has_tokens_pairs_and_merges_of_the_step(self):
        assert MergeStepper(CAFÉ, 2).as_text().splitlines() == [
            "byte-pair encoding, 2 of 7 merges",
            "t he␣ c a t , ␣ t he␣ h a t , ␣ t he␣ c a f <C3> <A9>",
            "27 bytes in 21 tokens, 1.29 bytes per token, vocabulary 258",
            "most frequent pairs",
            "    3 × t he␣  (116, 257)",
            "    2 × ␣ t  (32, 116)",
            "    2 × , ␣  (44, 32)",
            "    2 × a t  (97, 116)",
            "    2 × c a  (99, 97)",
            "    2 × t ,  (116, 44)",
            "merges",
            "256 = e + ␣",
            "257 = h + e␣",
            "Merge 2: “h” + “e␣” became token 257, at 3 places. Most frequent now: “t” + “he␣”, 3 times.",
        ]

    def test_bytes_that_are_no_letters_can_be_seen(self):
        assert MergeStepper(" \n\t\r\x7f~é").as_text().splitlines()[1] == "␣ ⏎ ⇥ <0D> <7F> ~ <C3> <A9>"

    def test_a_new_text_begins_at_the_start_and_a_page_may_send_one(self):
        widget = MergeStepper(CAFÉ, 3)
        widget.text = "banana"
        assert widget.step == 0 and widget.tokens == [*b"banana"]
        widget.step = 1
        send(widget, text="aaaa", step=0)
        assert (on_page(widget).text, widget.step, widget.last) == ("aaaa", 0, 1)

    @pytest.mark.parametrize(
        ("text", "message"),
        [("", "0 characters"), ("é" * 201, "201 characters: give 1 to 200"), ("ab\ud800", r"text\[2\] is half")],
    )
    def test_it_refuses_texts_that_do_not_fit(self, text, message):
        with pytest.raises(ValueError, match=message):
            MergeStepper(text)

    def test_it_refuses_a_step_that_is_not_there(self):
        with pytest.raises(ValueError, match="step is 2: give 0 to 1"):
            MergeStepper("aaa", 2)

    @pytest.mark.parametrize("text", [CAFÉ, "x", "🌍" * 200, "a" * 200, "⏎ $\\alpha$ <b> " * 9])
    def test_its_picture_is_whole_and_has_all_signs(self, text):
        widget = MergeStepper(text)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step in {0, widget.last // 2, widget.last}:
                widget.step = step
                assert is_whole(widget.figure())


class TestLossLadder:
    @pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
    def test_it_says_between_which_floors_a_loss_lies(self, kind):
        ladder = LossLadder(kind(LOSSES), kind(FLOORS), SAMPLES, rung=1)
        assert ladder.describe() == (
            "Step 80: loss 2.50 nats per character, below the unigram floor (3.31) and above the bigram floor (2.45)."
        )
        ladder.rung = 3
        assert ladder.describe().endswith("character, below the bigram floor (2.45).")

    def test_a_loss_above_all_floors_is_said_to_be(self):
        ladder = LossLadder(LOSSES, FLOORS, [(1, 5.6, "#"), *SAMPLES])
        assert ladder.describe() == "Step 1: loss 5.60 nats per character, above ln V (5.55)."

    def test_text_and_alt_have_what_was_written(self):
        ladder = LossLadder(LOSSES, FLOORS, SAMPLES)
        assert "step 20, loss 3.40\n    eo t\n     nh$a\nstep 80" in ladder.as_text()
        assert ladder.alt().startswith("Training loss in nats per character from 5.60 at step 1 to 1.70 at step 400")
        assert ladder.alt().endswith("There the model wrote: eo t nh$a")

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"losses": [1.0, 2.0]}, "two dimensions"),
            ({"losses": [(1, 2, 3), (4, 5, 6)]}, r"losses is \(2, 3\)"),
            ({"losses": [(i, 1) for i in range(1, 2002)]}, "2 to 2000 points"),
            ({"losses": [(1, 2), (1, 1)]}, "steps have to rise"),
            ({"losses": [(1, -2), (2, 1)]}, "negative"),
            ({"floors": [5.55, 3.31]}, "3 to 3 numbers"),
            ({"floors": [5.55, 2.45, 3.31]}, "which fall"),
            ({"floors": [float("nan"), 3, 2]}, "which fall"),
            ({"samples": SAMPLES[:3]}, "3 samples: give 4 to 8"),
            ({"samples": SAMPLES[::-1]}, "have to rise"),
            ({"samples": [*SAMPLES, (401, 1.7, "")]}, "within the steps of the losses"),
            ({"samples": [*SAMPLES[:3], (400, float("inf"), "")]}, "step 400 has a loss of inf"),
            ({"samples": [*SAMPLES[:3], (400, 1.7, "x" * 601)]}, "601 characters"),
            ({"rung": 4}, "rung is 4: give 0 to 3"),
        ],
    )
    def test_it_refuses_what_does_not_fit(self, changed, message):
        with pytest.raises(ValueError, match=message):
            LossLadder(**{"losses": LOSSES, "floors": FLOORS, "samples": SAMPLES} | changed)

    @pytest.mark.parametrize(("rung", "many"), [*itertools.product((0, 3), (4, 8))])
    def test_its_picture_has_the_curve_all_floors_and_all_samples(self, rung, many):
        more = [(400 + i, 1.7, "ha " * 200) for i in range(1, many - 3)]
        ladder = LossLadder([*LOSSES, (500, 1.6)], FLOORS, [*SAMPLES, *more], rung)
        fig = ladder.figure()
        assert len(fig.axes[0].lines) == 1 + len(FLOORS) + many and is_whole(fig)
