"""The drawings of budgets, speculation and more machines show what they are given, and say it in words."""

import pytest
from drawn import is_whole

from course_utils.days.day7 import figures

LINES = {"α = 0.3": [1.4, 0.4], "α = 0.9": [4.0, 1.2]}
GAPS = [("32", [0.013, 0.014]), ("none", [0.017, 0.417])]
MOVED = {"heads split": 8e6, "apart": 1e9}
LINKS = {"fast": 4e11, "slow": 4e9}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.gains([1, 256], LINES),
        lambda: figures.gaps(GAPS, ["p95", "largest"]),
        lambda: figures.laws({"p": [0.4, 0.6], "right": [0.5, 0.5], "popular": [0.3, 0.7]}),
        lambda: figures.moving(MOVED, LINKS, 0.014),
    ],
)
def test_nothing_is_cut_off(draw):
    assert is_whole(draw())


def test_a_line_a_name_and_one_where_nothing_is_gained():
    fig = figures.gains([1, 256], LINES)
    assert [line.get_ydata()[0] for line in fig.axes[0].lines] == [1.4, 4.0, 1]
    assert "α = 0.3: from 1.40 to 0.40" in fig.get_label()


def test_each_gap_has_a_line_over_the_budgets():
    fig = figures.gaps(GAPS, ["p95", "largest"])
    p95, largest = fig.axes[0].lines
    assert p95.get_ydata().tolist() == [13.0, 17.0] and largest.get_ydata().tolist() == [14.0, 417.0]
    assert "p95: 13 at 32, 17 at none; largest: 14 at 32, 417 at none" in fig.get_label()


def test_bars_of_the_laws_are_as_high_as_their_probabilities():
    fig = figures.laws({"p": [0.4, 0.6], "right": [0.5, 0.5]})
    assert [bar.get_height() for bar in fig.axes[0].patches] == [0.4, 0.6, 0.5, 0.5]
    assert "p: 0.40, 0.60; right: 0.50, 0.50" in fig.get_label()


def test_what_moves_takes_bytes_over_rate_beside_a_step():
    fig = figures.moving(MOVED, LINKS, 0.014)
    heads, apart, step = (line.get_ydata() for line in fig.axes[0].lines)
    assert list(heads) == pytest.approx([0.02, 2.0]) and list(apart) == pytest.approx([2.5, 250.0])
    assert list(step) == [14.0, 14.0] and "apart: 2.5 over fast, 250 over slow" in fig.get_label()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="0 lines"):
        figures.gains([1], {})
    with pytest.raises(ValueError, match="1 budgets and 4 names"):
        figures.gaps(GAPS[:1], list("abcd"))
    with pytest.raises(ValueError, match="0 laws"):
        figures.laws({})
    with pytest.raises(ValueError, match="2 lines and 0 links"):
        figures.moving(MOVED, {}, 0.014)


def test_captions_say_the_numbers_that_are_drawn():
    assert "above it is 1 (α = 0.3) and 256 (α = 0.9)." in figures.gains([1, 256], LINES).get_gid()
    assert (
        "1.3 times as long (p95) and 29.8 times as long (largest)" in figures.gaps(GAPS, ["p95", "largest"]).get_gid()
    )
    laws = {"p": [0.4, 0.6], "right": [0.5, 0.5], "popular": [0.1, 0.9]}
    assert "0.100 (right) and 0.300 (popular)" in figures.laws(laws).get_gid()
    assert figures.moving(MOVED, LINKS, 0.014).get_gid().endswith("longer than a step: “apart” over slow.")
