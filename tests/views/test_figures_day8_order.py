"""Day 8's drawings of its first sitting: what they show is what they are given, and their alt texts say it."""

import numpy as np
import pytest
from drawing_rules import is_whole

from course_utils.attention import positions
from course_utils.days.day8 import order_figures as figures
from course_utils.views.picture import picture

AT = np.arange(4) * 16 + 8.0
LOSSES = {"RoPE": [[2, 2, 3, 4], [2, 2, 3, 5]], "ALiBi": [[2.2, 2.1, 2, 2], [2.2, 2.1, 2, 2.2]]}
FIGURES = {
    "by position": lambda: figures.by_position(AT, LOSSES, 32),
    "within": lambda: figures.within({"none": [2.0, 2.2], "waves": [1.5, 1.5]}),
    "waves": lambda: figures.wave_table(positions.sinusoidal(60, 8)),
    "slopes": lambda: figures.slopes([1 / 4, 1 / 16]),
    "bases": lambda: figures.by_base(AT, {1e4: [3, 3, 3, 4], 1e5: [3, 3, 3, 3], 1e6: [3, 3, 3.5, 3.5]}, 1e5),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off(name):
    assert is_whole(FIGURES[name]())


@pytest.mark.parametrize(
    ("name", "alt", "caption"),
    [
        ("by position", "RoPE 2.00 at 16 and 4.50 at the end; ALiBi 2.20 at 16 and 2.10 at the end", "32 characters"),
        ("within", "none 2.10 (2.00 to 2.20) and waves 1.50 (1.50 to 1.50)", "a ring is the mean"),
        ("waves", "in columns 0 and 1, 2 and 3, 4 and 5 and 6 and 7", "dotted lines cosines"),
        ("slopes", "At distance 16 it is 0.018 with slope 1/4 and 0.37 with slope 1/16", "A gentle one sees nearly"),
        ("bases", "base 10,000: 0.00 at first, 1.00 at last; base 1,000,000: 0.00 at first", "its own base, 100,000"),
    ],
)
def test_a_figure_says_in_words_what_it_shows(name, alt, caption):
    fig = FIGURES[name]()
    assert alt in picture(fig).alt and caption in fig.get_gid()


def test_a_band_reaches_from_the_least_to_the_largest_seed():
    (ax,) = FIGURES["by position"]().axes
    ends = [vertex[1] for vertex in ax.collections[0].get_paths()[0].vertices if vertex[0] == AT[-1]]
    assert (min(ends), max(ends)) == (4, 5)
    assert ax.lines[0].get_ydata().tolist() == [2, 2, 3, 4.5]


def test_what_a_base_costs_is_the_rise_above_the_own_base():
    (ax,) = FIGURES["bases"]().axes
    assert [line.get_ydata()[-1] for line in ax.lines[:2]] == [1, 0.5]
