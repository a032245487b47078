"""The drawing of the page of variants: it shows what it is given, and its alt text says it."""

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
