"""The drawings of budgets and speculation show what they are given, and say it in words."""

import pytest
from drawn import is_whole

from course_utils.views.figures import day7_speculation as figures

ROWS = [("32", 150.0, 0.013), ("none", 404.0, 0.103)]
LINES = {"α = 0.3": [1.4, 0.4], "α = 0.9": [4.0, 1.2]}


@pytest.mark.parametrize("fig", [figures.trade(ROWS), figures.gains([1, 256], LINES)])
def test_nothing_is_cut_off(fig):
    assert is_whole(fig)


def test_a_point_stands_where_its_numbers_say():
    fig = figures.trade(ROWS)
    assert fig.axes[0].lines[0].get_xydata().tolist() == [[13.0, 150.0], [103.0, 404.0]]
    assert "budget none: 404 tokens a second, 103 ms" in fig.get_label()


def test_a_line_a_name_and_one_where_nothing_is_gained():
    fig = figures.gains([1, 256], LINES)
    assert [line.get_ydata()[0] for line in fig.axes[0].lines] == [1.4, 4.0, 1]
    assert "α = 0.3: from 1.40 to 0.40" in fig.get_label()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        figures.trade([])
    with pytest.raises(ValueError, match="0 lines"):
        figures.gains([1], {})
