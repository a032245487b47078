"""The drawings of day 5 show the counts, times and slots that they are given."""

import numpy as np
import pytest
from drawing_rules import is_whole
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_utils.costs.roofline import Machine, attainable
from course_utils.days.day5 import figures as figures
from course_utils.views import palette
from course_utils.views.picture import png

PREFIXES = [64, 128, 256]
CURVES = {"here": (PREFIXES, [20, 40, 90], [5, 6, 7]), "recorded": ([64, 128], [10, 30], [5, 5])}
MACHINE = Machine("a card", flops_per_second=1000e12, bytes_per_second=5e12)  # ridge point 200
SERIES = {"decode": {"B = 1": 1.0, "B = 8": 5.2}, "shared heads": {"B = 1": 1.1}, "prefill": {"2048": 1900.0}}
TABLES, LENGTHS = [[0, 3], [0, 1], [2]], [6, 7, 1]  # block 0 is shared
ROWS = [
    {"kind": "MHA", "n_kv_heads": 6, "cache_bytes": 600e6, "weight_bytes": 40e6, "seconds": 0.044},
    {"kind": "MQA", "n_kv_heads": 1, "cache_bytes": 100e6, "weight_bytes": 28e6, "seconds": 0.022},
]
RISES = {"8 bits": (0.002, 0.002), "4 bits": (0.25, 0.03), "fp8": (-0.001, 0.004)}

FIGURES = {
    "second": lambda: figures.first_second(0.22, 0.22, 0.01),
    "kinds": lambda: figures.bytes_and_times(ROWS),
    "rises": lambda: figures.rises(RISES),
    "times": lambda: figures.token_times(CURVES),
    "roofline": lambda: figures.roofline(MACHINE, SERIES),
    "pool": lambda: figures.block_pool(TABLES, LENGTHS, block_size=4, n_blocks=6),
}


def squares(ax):
    return {tuple(map(int, patch.get_xy())): patch for patch in ax.patches if isinstance(patch, Rectangle)}


def colour(patch):
    return to_hex(patch.get_facecolor()) if patch.get_facecolor()[3] else "none"


def written(ax):
    return *ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()


def test_times_are_drawn_as_given_and_the_gain_is_their_ratio():
    left, right = FIGURES["times"]().axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), [20, 40, 90])
    np.testing.assert_allclose(left.lines[1].get_ydata(), [5, 6, 7])
    assert [line.get_label() for line in left.lines[:2]] == ["no cache, here", "with cache, here"]
    np.testing.assert_allclose(right.lines[0].get_ydata(), [4, 40 / 6, 90 / 7])
    np.testing.assert_allclose(right.lines[1].get_ydata(), [2, 6])
    assert list(right.lines[-1].get_ydata()) == list(right.lines[-1].get_xdata()) == PREFIXES


def test_words_come_after_the_first_one_at_their_pace():
    ax = FIGURES["second"]().axes[0]
    slow, quick = (marks.get_positions() for marks in ax.collections if hasattr(marks, "get_positions"))
    np.testing.assert_allclose(slow, [0.22, 0.44, 0.66, 0.88])
    np.testing.assert_allclose(quick, np.arange(0.22, 1, 0.01))
    assert [text.get_text() for text in ax.texts] == ["4 words", "78 words"]


def test_bars_show_the_bytes_of_the_record_and_their_times():
    left, right = FIGURES["kinds"]().axes
    assert [round(bar.get_width()) for bar in left.patches] == [600, 100, 40, 28]
    assert [round(bar.get_width()) for bar in right.patches] == [44, 22]


def test_a_rise_is_as_long_as_it_was_measured():
    (ax,) = FIGURES["rises"]().axes
    assert [bar.get_width() for bar in ax.patches] == [0.002, 0.25, -0.001]
    assert [text.get_text() for text in ax.texts] == ["0.002 ± 0.002", "0.250 ± 0.030", "−0.001 ± 0.004"]


def test_every_task_stands_on_the_roof_at_its_intensity():
    (ax,) = FIGURES["roofline"]().axes
    dots = [tuple(point) for group in ax.collections for point in group.get_offsets()]
    expected = [(x, attainable(MACHINE, x) / 1e12) for points in SERIES.values() for x in points.values()]
    np.testing.assert_allclose(dots, expected)
    np.testing.assert_allclose(expected[0], (1.0, 5.0))  # on the slope: 5 TB/s at one FLOP a byte
    np.testing.assert_allclose(expected[-1], (1900.0, 1000.0))  # on the roof
    assert "ridge point 200" in [text.get_text() for text in ax.texts]


def test_a_task_stands_as_high_as_it_was_measured_and_the_words_say_how_far_below_the_roof():
    fig = figures.roofline(MACHINE, {"measured": {"slow": (10.0, 25e12), "best": 10.0}})
    np.testing.assert_allclose(fig.axes[0].collections[0].get_offsets(), [(10, 25), (10, 50)])
    assert "slow at 10, at 50% of the slope, best at 10, on the slope" in fig.get_label()


def test_the_roof_itself_bends_at_the_ridge_point():
    x, y = FIGURES["roofline"]().axes[0].lines[0].get_data()
    np.testing.assert_allclose(y, np.minimum(1000, 5 * np.asarray(x)))


def test_a_slot_has_the_colour_of_its_text_and_its_position_on_it():
    axes = FIGURES["pool"]().axes
    blue = [colour(axes[3].patches[slot]) for slot in range(4)]
    assert blue == [palette.QUERY.lower()] * 2 + ["none"] * 2  # text 0 has 6 tokens: two in its second block
    assert [text.get_text() for text in axes[3].texts] == ["4", "5"]
    assert [text.get_text() for text in axes[1].texts] == ["4", "5", "6"]  # text 1 has 7
    assert colour(axes[1].patches[0]) == palette.OUTPUT.lower()


def test_a_shared_block_has_a_colour_of_its_own_and_names_its_texts():
    axes = FIGURES["pool"]().axes
    texts = {palette.QUERY.lower(), palette.OUTPUT.lower(), palette.VALUE.lower()}
    assert not texts & {colour(patch) for patch in axes[0].patches}
    labels = [ax.get_xlabel() for ax in axes]
    assert labels == ["texts 0, 1", "text 1", "text 2", "text 0", "free", "free"]


def test_a_free_block_is_empty():
    assert {colour(patch) for patch in FIGURES["pool"]().axes[5].patches} == {"none"}


def test_the_key_names_the_texts_and_shared_only_where_a_block_is():
    assert [text.get_text() for text in FIGURES["pool"]().texts] == ["text 0", "text 1", "text 2", "shared"]
    alone = figures.block_pool([[1], [0]], [2, 3], block_size=4, n_blocks=2)
    assert [text.get_text() for text in alone.texts] == ["text 0", "text 1"]


def test_the_key_lies_below_every_grid():
    fig = FIGURES["pool"]()
    fig.canvas.draw()
    top = max(square.get_window_extent().y1 for square in fig.artists)
    assert top < min(ax.get_tightbbox().y0 for ax in fig.axes)


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off(name):
    assert is_whole(FIGURES[name]())


@pytest.mark.parametrize("name", ["roofline", "pool", "second", "kinds", "rises"])
def test_no_label_lies_on_another(name):
    fig = FIGURES[name]()
    fig.canvas.draw()
    texts = [*fig.texts, *(text for ax in fig.axes for text in written(ax))]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.thorough("every figure is drawn twice, to the same bytes")
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_bytes_every_time(name):
    assert png(FIGURES[name]()) == png(FIGURES[name]())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_in_words_what_it_shows(name):
    message = FIGURES[name]().get_label()
    numbers = {
        "times": "90 ms at T = 256",
        "roofline": "ridge point at 200",
        "second": "4 everything again and 78 with a cache",
        "kinds": "MQA reads 100 MB of cache and 28 MB of weights in 22.0 ms",
        "rises": "4 bits 0.250 ± 0.030",
    }
    assert numbers.get(name, "text 0 of 6 tokens in blocks 0 and 3") in message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("times", "3 times as long without a cache and 1.0 times with one (recorded)"),
        (
            "roofline",
            "3 of the 4 marks lie left of the ridge point, where memory sets the pace; the lowest reaches 0.5%",
        ),
        ("second", "Each later one takes as long again without a cache, and 10 ms with one."),
        ("kinds", "a step reads 5.0 times fewer bytes and is 2.0 times faster"),
        ("rises", "The largest: 4 bits."),
        ("pool", "Of the 16 slots in blocks that a text holds 6 are empty, all in its last one; sharing saves 4 more."),
    ],
)
def test_captions_say_the_numbers_that_are_drawn(name, text):
    assert text in FIGURES[name]().get_gid()
