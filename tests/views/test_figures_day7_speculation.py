"""The drawings of limits, budgets and speculation show what they are given, and say it in words."""

import pytest
from drawing_rules import is_whole

from course_utils.days.day7 import figures
from course_utils.serving.costs import A100, PUBLISHED

LINES = {"α = 0.3": [1.4, 0.4], "α = 0.9": [4.0, 1.2]}
NAMES, GAPS, KEPT = ["64", "none"], {"largest": [0.014, 0.417], "p95": [0.013, 0.017]}, {"model": [0.025, 0.955]}
LAWS = {"p": [0.4, 0.6], "right": [0.5, 0.5], "popular": [0.1, 0.9]}
WORDS = ["cat", "dog"]
FIGURES = {
    "limits": lambda: figures.limits(A100, PUBLISHED),
    "budgets": lambda: figures.budgets(NAMES, GAPS, KEPT, 0.1),
    "laws": lambda: figures.laws(LAWS, WORDS),
    "gains": lambda: figures.gains([1, 256], LINES),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off(name):
    assert is_whole(FIGURES[name]())


@pytest.mark.parametrize(
    ("name", "alt", "caption"),
    [
        ("limits", "17 measured decode steps", "With empty caches that is memory up to 185 tokens"),
        ("budgets", "largest: 14 at 64, 417 at none; p95: 13 at 64, 17 at none", "for at most 95.5% (model). With"),
        ("laws", "p: 0.40, 0.60; right: 0.50, 0.50", "0.100 (right) and 0.300 (popular)"),
        ("gains", "α = 0.3: from 1.40 to 0.40", "above the line is 1 (α = 0.3) and 256 (α = 0.9)."),
    ],
)
def test_a_figure_says_in_words_what_it_shows(name, alt, caption):
    fig = FIGURES[name]()
    assert alt in fig.get_label() and caption in fig.get_gid()


def test_the_lines_of_the_limits_are_those_of_the_cost():
    empty, long, arithmetic, crossing = FIGURES["limits"]().axes[0].lines
    for T, line in ((0, empty), (500, long)):
        tokens, ms = line.get_data()
        assert ms == pytest.approx([1e3 * A100.memory(n, n * T) for n in tokens])
    assert arithmetic.get_ydata()[0] == pytest.approx(1e3 * A100.per_token)
    assert crossing.get_xdata()[0] == pytest.approx(A100.hidden())


def test_measured_decodes_are_darker_the_longer_their_caches():
    *decodes, prompts = FIGURES["limits"]().axes[0].collections
    assert [len(each.get_offsets()) for each in decodes] == [4, 4, 4, 3, 2] and len(prompts.get_offsets()) == 3
    levels = [sum(each.get_facecolor()[0][:3]) for each in decodes]
    assert levels == sorted(levels, reverse=True)


def test_gaps_are_marks_without_a_line_and_shares_are_bars():
    left, right = FIGURES["budgets"]().axes
    largest, p95, promised = left.lines
    assert (largest.get_linestyle(), p95.get_linestyle(), promised.get_linestyle()) == ("None", "None", ":")
    assert largest.get_ydata() == pytest.approx([14.0, 417.0]) and set(promised.get_ydata()) == {100}
    assert [bar.get_height() for bar in right.patches] == [2.5, 95.5]


def test_a_line_a_name_and_one_where_nothing_is_gained():
    assert [line.get_ydata()[0] for line in FIGURES["gains"]().axes[0].lines] == [1.4, 4.0, 1]


def test_bars_of_the_laws_are_as_high_as_their_probabilities_and_named_by_words():
    (ax,) = FIGURES["laws"]().axes
    assert [bar.get_height() for bar in ax.patches] == [0.4, 0.6, 0.5, 0.5, 0.1, 0.9]
    assert [label.get_text() for label in ax.get_xticklabels()] == WORDS


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="0 lines"):
        figures.gains([1], {})
    with pytest.raises(ValueError, match="1 places and 2 values"):
        figures.budgets(["64"], GAPS, KEPT, 0.1)
    with pytest.raises(ValueError, match="3 ways"):
        figures.budgets(NAMES, GAPS, dict.fromkeys("abc", KEPT["model"]), 0.1)
    with pytest.raises(ValueError, match="0 laws"):
        figures.laws({}, WORDS)
    with pytest.raises(ValueError, match="0 contexts"):
        figures.limits(A100, PUBLISHED, ())
