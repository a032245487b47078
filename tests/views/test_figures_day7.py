"""Day 7's drawings of its first half: what they show is what they are given, and their alt texts say it."""

import pytest

from course_utils.days.day7 import figures as day7
from course_utils.serving.latency import Mean
from course_utils.views.picture import picture


def lines_of(ax):
    return [[*line.get_ydata()] for line in ax.get_lines()]


def test_a_step_and_a_rate_are_drawn_against_the_batch():
    fig = day7.batches([1, 2, 8], [0.01, 0.0125, 0.02])
    left, right = fig.axes
    assert lines_of(left) == [[10, 12.5, 20]] and lines_of(right) == [[100, 160, 400]]
    assert "from 10.0 to 20.0 ms" in picture(fig).alt and "from 100 to 400" in picture(fig).alt


def test_the_knee_shows_waits_goodput_and_what_is_borne():
    waits = [Mean(0.1, 0.01), Mean(2.0, 0.5)]
    goods = [Mean(4.0, 0.1), Mean(3.0, 0.2)]
    fig = day7.knee([4, 9], waits, goods, 8.5)
    left, right = fig.axes
    assert lines_of(left)[0] == [0.1, 2.0] and lines_of(right)[0] == [4.0, 3.0]
    assert all([8.5, 8.5] in [list(line.get_xdata()) for line in ax.get_lines()] for ax in fig.axes)
    assert "4: 0.10 s and 4.0, 9: 2.00 s and 3.0" in picture(fig).alt and "8.5" in picture(fig).alt


def test_waste_is_drawn_for_each_size_and_for_the_reservation():
    fig = day7.waste([1, 16], [0.0, 0.019], 0.872)
    (ax,) = fig.axes
    assert [round(bar.get_height(), 6) for bar in ax.patches] == [0, 1.9, 87.2]
    assert "16: 1.9%" in picture(fig).alt and "87.2%" in picture(fig).alt


def test_hits_stand_side_by_side():
    fig = day7.hit_rates({"chat": (0.683, 0.729), "unrelated": (0.0, 0.0)})
    (ax,) = fig.axes
    assert [round(bar.get_height(), 6) for bar in ax.patches] == [68.3, 0, 72.9, 0]
    assert "chat 68.3% and 72.9%" in picture(fig).alt


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="2 places and 1 values"):
        day7.batches([1, 2], [0.1])
    with pytest.raises(ValueError, match="at least one"):
        day7.waste([], [], 0.5)
    with pytest.raises(ValueError, match="kinds is empty"):
        day7.hit_rates({})


def test_captions_say_the_numbers_that_are_drawn():
    text = day7.batches([1, 2, 8], [0.01, 0.0125, 0.02]).get_gid()
    assert text.startswith("8 times as many requests make a step only 2.0 times as long") and "4 times as many" in text
    waits = [Mean(0.1, 0), Mean(0.5, 0), Mean(2.0, 0)]
    goods = [Mean(4.0, 0), Mean(6.0, 0), Mean(3.0, 0)]
    text = day7.knee([4, 7, 9], waits, goods, 8.5).get_gid()
    assert "highest at 7 requests a second, where the p95 has grown from 0.10 to 0.50 s" in text
    assert "to 2% at 16; a reservation leaves 87%" in day7.waste([1, 16], [0.0, 0.019], 0.872).get_gid()
    assert "at most 4.6 points" in day7.hit_rates({"chat": (0.683, 0.729), "unrelated": (0.0, 0.0)}).get_gid()
