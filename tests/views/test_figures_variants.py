"""The drawings of the page of variants: they show what they are given, and their alt texts say it."""

import numpy as np
from drawing_rules import is_whole

from course_utils.models.chosen_keys import Choice
from course_utils.views import variants_figure
from course_utils.views.picture import picture

CHOICES = {"exact scores": Choice((4, 8), [1.0, 1.0], [0.9, 1.0]), "an index": Choice((4, 8), [0.25, 0.5], [0.6, 0.8])}


def test_a_line_for_each_way_in_a_panel_for_recall_and_one_for_weight():
    panels = variants_figure.recall_and_weight(CHOICES).axes
    assert [[line.get_ydata().tolist() for line in ax.lines] for ax in panels] == [
        [[1, 1], [0.25, 0.5]],
        [[0.9, 1], [0.6, 0.8]],
    ]
    assert [ax.get_title() or ax.get_title(loc="left") for ax in panels] == [
        "recall of the heaviest keys",
        "weight of the chosen keys",
    ]


def test_it_says_in_words_what_it_shows_and_nothing_is_cut_off():
    fig = variants_figure.recall_and_weight(CHOICES)
    assert is_whole(fig)
    assert "an index: 4 keys 0.25 and 0.60, 8 keys 0.50 and 0.80." in picture(fig).alt


def test_a_dot_for_each_seed_and_a_disc_for_the_weight_of_each_patch():
    attention = np.arange(8).reshape(2, 2, 2) / 28
    fig = variants_figure.digits({"none": [0.5, 0.7, 0.6], "learned": [0.9, 0.8, 1.0]}, np.ones((2, 4, 4)), attention)
    shares, *panels = fig.axes
    assert [line.get_xdata().tolist() for line in shares.lines if len(line.get_xdata()) == 3] == [
        [0.5, 0.7, 0.6],
        [0.9, 0.8, 1.0],
    ]
    for panel, weights in zip(panels, attention, strict=True):
        (discs,) = panel.collections
        assert np.allclose(discs.get_offsets(), [[0.5, 0.5], [2.5, 0.5], [0.5, 2.5], [2.5, 2.5]])
        assert np.allclose(discs.get_sizes() * weights.sum(), discs.get_sizes().sum() * weights.ravel())
    assert is_whole(fig) and "none 0.600, learned 0.900" in picture(fig).alt
