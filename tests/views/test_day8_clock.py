"""The clocks of RoPE without a browser: what they refuse, say, draw, and compute."""

import math

import numpy as np
import pytest
import torch

from course_utils.attention.rotary import rotate
from course_utils.views import RopeClock


def test_the_score_is_that_of_rotated_queries_and_keys():
    clock = RopeClock(query=12, key=5, base=100)
    pairs = torch.tensor([[1.0, 0] * 4], dtype=torch.float64)  # (T, d_head)
    expected = (rotate(pairs, [12], 100) * rotate(pairs, [5], 100)).sum().item()
    assert clock.score == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(clock.angles[:, 0] - clock.angles[:, 1], 7 * clock.speeds)


def test_moving_both_changes_no_score():
    clock = RopeClock(query=9, key=7)
    before = clock.score
    clock.query, clock.key = 199, 197
    assert clock.score == pytest.approx(before, abs=1e-12)


def test_its_text_has_a_line_for_each_pair_and_the_sum():
    lines = RopeClock(query=2, key=1).as_text().splitlines()
    assert lines[0] == "RoPE at base 10,000, query at 2, key at 1, 1 apart"
    assert lines[2].split() == ["0", "57.30", "115", "57", "0.54"]
    assert lines[-1] == f"score, their sum: {math.cos(1) + math.cos(0.1) + math.cos(0.01) + math.cos(0.001):.2f}"


def test_its_picture_has_a_clock_for_each_pair_and_the_chart():
    clock = RopeClock(query=2, key=1, d_head=6)
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in clock.figure().axes]
    assert titles[:3] == ["pair 0: 57.3°", "pair 1: 2.66°", "pair 2: 0.123°"] and len(titles) == 4
    assert clock.alt().startswith("3 clocks with two hands, 1 apart. pair 0: query at 115°, key at 57°;")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": 201}, "query is 201: give a position from 0 to 200"),
        ({"key": 300}, "key is 300: give a position"),
        ({"base": 5}, "base is 5: give one of 10, 100, 10,000"),
        ({"d_head": 5}, "d_head is 5: give 4, 6 or 8"),
    ],
)
def test_what_does_not_fit_is_reported(change, message):
    with pytest.raises(ValueError, match=message):
        RopeClock(**change)
