"""The window's losses and the memory board without a browser: what they refuse, say, compute and draw."""

import numpy as np
import pytest
import torch
from drawing_rules import is_whole

from course_utils.models import window_record
from course_utils.views import MemoryBoard, WindowLoss

KEYS = [[1, 0], [0, 1], [0.6, 0.8], [1, 0]]
VALUES = [[2, 0], [0, 3], [1, 1], [0, 1]]
WORDS = ["lamp", "desk", "door", "lamp moved"]


class TestWindowLoss:
    def test_it_says_what_the_last_query_sees_and_what_that_costs(self):
        widget = WindowLoss(128, 4)
        said = widget.as_text().splitlines()[-1]
        assert said == (
            f"Room for 128 keys: the first 4, and the last 124. Loss {window_record.loss(128, 4):.2f} nats per token; "
            f"with all tokens {window_record.loss(None):.2f}."
        )
        widget.sinks = 1
        assert "the first, and the last 127" in widget.describe()
        widget.sinks = 0
        assert "none of the first, and the last 128" in widget.alt()

    @pytest.mark.parametrize("given", [{"room": 100}, {"sinks": 3}])
    def test_it_refuses_what_was_not_recorded(self, given):
        with pytest.raises(ValueError, match="recorded are"):
            WindowLoss(**given)

    @pytest.mark.parametrize("sinks", window_record.SINKS)
    def test_its_picture_has_all_curves(self, sinks):
        fig = WindowLoss(64, sinks).figure()
        assert len(fig.axes[0].lines) == (3 if sinks else 2) and is_whole(fig)


class TestMemoryBoard:
    def test_the_sum_adds_and_the_delta_rule_replaces(self):
        board = MemoryBoard(KEYS, VALUES, WORDS, writes=[0, 3])
        assert board.state.tolist() == [[2, 1], [0, 0]]
        board.rule = "delta"
        assert board.state.tolist() == [[0, 1], [0, 0]]
        assert board.describe() == "Written last: lamp moved. Every key reads what it last wrote."

    def test_the_newest_pair_is_right_and_keys_not_at_right_angles_disturb_each_other(self):
        board = MemoryBoard(KEYS, VALUES, WORDS, writes=[0, 1, 2], rule="delta")
        lamp, desk, door, moved = board.reads
        assert np.allclose(door.read, (1, 1)) and door.error == pytest.approx(0)
        assert lamp.error > 0.1 and desk.error > 0.1 and moved.read == lamp.read
        assert board.describe() == "Written last: door. Not read back as written: lamp, desk, lamp moved."

    def test_it_starts_empty_and_takes_tensors(self):
        board = MemoryBoard(torch.eye(2), torch.ones(2, 1))
        assert "Nothing is written yet" in board.as_text() and [read.wanted for read in board.reads] == [None, None]

    @pytest.mark.parametrize(
        ("keys", "values", "more", "message"),
        [
            ([[1, 0]], [[1], [2]], {}, "1 keys and 2 values"),
            ([[1] * 5], [[1]], {}, "keys is"),
            ([[float("nan")]], [[1]], {}, "cannot be shown"),
            ([[1]], [[1]], {"words": ["a", "b"]}, "2 words and 1 pairs"),
            ([[1]], [[1]], {"writes": [1]}, "writes has 1"),
        ],
    )
    def test_it_refuses_what_does_not_fit(self, keys, values, more, message):
        with pytest.raises(ValueError, match=message):
            MemoryBoard(keys, values, **more)

    @pytest.mark.parametrize("rule", ["add", "delta"])
    def test_its_picture_is_whole(self, rule):
        assert is_whole(MemoryBoard(KEYS, VALUES, WORDS, [0, 1, 2, 3], rule).figure())
