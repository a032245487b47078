"""The drawings of day 2 show the numbers that they are given."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from drawing_rules import is_whole
from matplotlib.colors import to_hex

from course_utils.days.day2 import figures as figures
from course_utils.views import palette
from course_utils.views.drawing import typeset
from course_utils.views.picture import png


class Estimate(NamedTuple):
    value: float
    error: float


ESTIMATES = {25: [1.0, -2.0, 0.5], 100: [0.4, -0.6]}
WIDTHS = [4, 16, 64]
RAW = [Estimate(2.1, 0.1), Estimate(3.9, 0.1), Estimate(8.1, 0.2)]
UNIT = [Estimate(1.05, 0.03), Estimate(0.98, 0.02), Estimate(1.01, 0.02)]
LENGTHS = {
    kind: {width: np.geomspace(width, factor * width, 101) for width in WIDTHS}
    for kind, factor in (("raw", 1e-3), ("scaled", 2))
}
STEPS = np.array([5.0, 15.0, 25.0])
LOSSES = {
    name: np.array([[2.7, 2.0, last], [2.6, 1.9, 0.4], [2.8, 1.5, 0.1]])
    for name, last in (("1", 2.5), ("1/√d_k", 0.2), ("1/d_k", 0.3))
}


GAPS = np.linspace(0, 12, 25)
SLOPES = np.exp(-GAPS) / (1 + np.exp(-GAPS)) ** 2
MAPS = {"layer A": np.full((3, 4), 0.25), "divided by √d_k": np.eye(3, 4)}
BROKEN = {"nothing broken": np.linspace(-10, 10, 101), "1 added": np.linspace(90, 110, 101)}
DIVIDED = [{"divisor": 2**power, "loss": loss} for power, loss in enumerate((6.5, 4.25, 3.75, 5.5))]
FORMATS = {"float16": (65504.0, 2.0**-14, 2.0**-10), "bfloat16": (3.39e38, 2.0**-126, 2.0**-7),
           "float32": (3.4e38, 2.0**-126, 2.0**-23)}  # fmt: skip
DRAWINGS = {
    "layers": lambda: figures.layers(MAPS),
    "coins": lambda: figures.coins([1, 4, 16]),
    "broken": lambda: figures.broken(BROKEN),
    "divisors": lambda: figures.loss_by_divisor(DIVIDED, own=4),
    "estimates": lambda: figures.repeated_estimates(ESTIMATES, spread=8, truth=0),
    "spread": lambda: figures.spread_against_width(WIDTHS, RAW, UNIT),
    "formats": lambda: figures.number_formats(FORMATS, std=16.0),
    "runner-up": lambda: figures.runner_up(GAPS, SLOPES, marked=10),
    "paths": figures.gradient_paths,
    "model": lambda: figures.look_up_model(64, 256, 16, 12),
    "gradients": lambda: figures.gradient_spread(LENGTHS),
    "losses": lambda: figures.loss_curves({0.001: (STEPS, LOSSES), 0.01: (STEPS, LOSSES)}, chance=2.77),
}


def line(ax, label):
    (result,) = [one for one in ax.lines if one.get_label() == label]
    return result.get_ydata()


def levels(ax):
    """Heights of the lines that run across the whole panel."""
    return [one.get_ydata()[0] for one in ax.lines if list(one.get_xdata()) == [0, 1]]


def test_layers_have_one_scale_from_no_weight_to_all():
    for ax, each in zip(DRAWINGS["layers"]().axes, MAPS.values(), strict=True):
        (image,) = ax.images
        np.testing.assert_allclose(image.get_array(), each)
        assert image.get_clim() == (0, 1)


def test_formats_reach_as_far_as_their_logarithms_and_lose_a_one_from_where_numbers_lie_two_apart():
    left, right = DRAWINGS["formats"]().axes
    reach = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in left.patches]
    assert reach == [pytest.approx((math.log(tiny), math.log(largest))) for largest, tiny, _ in FORMATS.values()]
    sizes, apart = right.lines[0].get_data()
    assert dict(zip(sizes, apart, strict=True))[2048] == 2 and max(sizes) == 65536


def test_coins_are_counted_exactly_and_the_band_reaches_to_the_root():
    for ax, d_k in zip(DRAWINGS["coins"]().axes, (1, 4, 16), strict=True):
        band, *bars = ax.patches
        assert band.get_x() == -math.sqrt(d_k) and band.get_width() == 2 * math.sqrt(d_k)
        heights = [bar.get_height() for bar in bars]
        places = np.array([bar.get_x() + bar.get_width() / 2 for bar in bars])
        assert len(bars) == d_k + 1 and math.isclose(sum(heights), 1)
        assert math.isclose((heights * places**2).sum(), d_k)  # the variance


def test_each_broken_assumption_lies_over_the_outline_of_none():
    nothing, added = DRAWINGS["broken"]().axes[:2]
    assert [ax.texts[0].get_text() for ax in (nothing, added)] == ["mean 0\nstd 5.8", "mean 100\nstd 5.8"]
    assert nothing.get_xlim() == added.get_xlim() and nothing.get_xlim()[1] > 110
    outlines = [next(patch for patch in ax.patches if not patch.get_fill()) for ax in (nothing, added)]
    np.testing.assert_allclose(outlines[0].get_xy(), outlines[1].get_xy())


def test_the_models_own_divisor_has_the_colour_of_the_scale_and_others_have_not():
    (ax,) = DRAWINGS["divisors"]().axes
    colours = [to_hex(one.get_color()).upper() for one in ax.lines[1:]]
    assert colours == [palette.WRONG, palette.WRONG, palette.WEIGHT, palette.OLIVE]
    assert [text.get_text() for text in ax.texts] == ["6.50", "4.25", "3.75", "5.50"]


def test_every_estimate_is_a_dot_and_the_band_is_1_96_standard_errors_wide():
    (ax,) = DRAWINGS["estimates"]().axes
    clouds = ax.collections[::2]
    bands = ax.collections[1::2]
    for (size, numbers), cloud, band in zip(ESTIMATES.items(), clouds, bands, strict=True):
        np.testing.assert_allclose(cloud.get_offsets()[:, 1], numbers)
        low, high = (segment[0][1] for segment in band.get_segments())
        np.testing.assert_allclose([low, high], [-1.96 * 8 / math.sqrt(size), 1.96 * 8 / math.sqrt(size)])


def test_measured_spreads_stand_beside_theory_with_95_percent_intervals():
    left, right = DRAWINGS["spread"]().axes
    np.testing.assert_allclose(line(left, "$\\sqrt{d_k}$"), [2, 4, 8])
    assert levels(right) == [1]
    for ax, estimates in ((left, RAW), (right, UNIT)):
        points, _, (bars,) = ax.containers[0]
        np.testing.assert_allclose(points.get_ydata(), [one.value for one in estimates])
        for segment, one in zip(bars.get_segments(), estimates, strict=True):
            np.testing.assert_allclose(segment[:, 1], [one.value - 1.96 * one.error, one.value + 1.96 * one.error])


def test_no_interval_leaves_the_scaled_panel():
    far = [Estimate(1.3, 0.05), Estimate(1.0, 0.01), Estimate(0.9, 0.3)]
    _, right = figures.spread_against_width(WIDTHS, RAW, far).axes
    low, high = right.get_ylim()
    assert low < min(one.value - 1.96 * one.error for one in far)
    assert high > max(one.value + 1.96 * one.error for one in far)


def test_the_marked_gap_lies_on_the_slope_and_says_its_value():
    (ax,) = DRAWINGS["runner-up"]().axes
    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[10, 4.54e-5]], rtol=1e-3)
    assert "Δ = 10: 4.5e-05" in [text.get_text() for text in ax.texts]
    np.testing.assert_allclose(line(ax, "$e^{-Δ}$")[[0, -1]], [1, math.exp(-12)])


def test_every_arrow_of_the_gradient_runs_beside_one_of_the_forward_pass():
    (ax,) = DRAWINGS["paths"]().axes
    arrows = [text for text in ax.texts if text.get_text() == ""]
    to_query, to_key, to_value, *arrows = arrows
    places = {text.get_text(): text.get_position() for text in ax.texts}
    for arrow in (to_query, to_key, to_value):  # from X, and no gradient goes back there
        np.testing.assert_allclose(arrow.xyann, places["X"])
    forward = arrows[::2]
    back = arrows[1::2]
    assert len(forward) == len(back) == 8
    for there, again in zip(forward, back, strict=True):
        np.testing.assert_allclose(there.xy, again.xyann, atol=0.15)
        np.testing.assert_allclose(there.xyann, again.xy, atol=0.15)
    boxed = [text for text in ax.texts if text.get_bbox_patch()]
    names = {text.get_position(): text.get_text().strip("$") for text in boxed}
    ends = [tuple(_nearest(names, place) for place in (arrow.xyann, arrow.xy)) for arrow in back]
    assert ends == [
        *(("O", "V"), ("O", "A"), ("A", "S"), ("S", "Q"), ("S", "K")),
        *(("Q", "W_Q"), ("K", "W_K"), ("V", "W_V")),
    ]
    numbered = sorted(text.get_text()[0] for text in ax.texts if text.get_text()[:1].isdigit())
    assert numbered == ["1", "2", "3"]


def _nearest(names, place):
    return names[min(names, key=lambda there: math.dist(there, place))]


def test_gradients_show_median_mean_and_the_middle_eighty_percent():
    for ax, by_width in zip(DRAWINGS["gradients"]().axes, LENGTHS.values(), strict=True):
        rows = list(by_width.values())
        np.testing.assert_allclose(line(ax, "median"), [np.median(row) for row in rows])
        np.testing.assert_allclose(line(ax, "mean"), [np.mean(row) for row in rows])
        heights = ax.collections[0].get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose(heights.min(), min(np.quantile(row, 0.1) for row in rows))
        np.testing.assert_allclose(heights.max(), max(np.quantile(row, 0.9) for row in rows))


def test_losses_show_the_median_of_the_seeds_and_the_band_from_least_to_largest():
    axes = DRAWINGS["losses"]().axes
    assert [ax.get_title(loc="left") for ax in axes] == ["rate 0.001", "rate 0.01"]
    for ax in axes:
        assert levels(ax) == [2.77]
        for (name, runs), band in zip(LOSSES.items(), ax.collections, strict=True):
            np.testing.assert_allclose(line(ax, typeset(f"scale {name}")), np.median(runs, axis=0))
            heights = band.get_paths()[0].vertices[:, 1]
            np.testing.assert_allclose([heights.min(), heights.max()], [runs.min(), runs.max()])


def test_losses_say_how_to_read_lines_and_bands():
    (legend,) = DRAWINGS["losses"]().legends
    assert legend.get_title().get_text() == "line: median of 3 seeds; band: lowest to highest"


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_figure_brings_its_alt_text(name):
    assert len(DRAWINGS[name]().get_label()) > 80


def test_alt_texts_tell_what_is_drawn():
    assert "divided by √d_k: the largest weight of a row is 1.00 on average" in label("layers")
    assert "at d_k = 4 88% of the cases lie within 2 of 0" in label("coins")
    assert "1 added: mean 100, standard deviation 5.8" in label("broken")
    assert "6.50 at 1, 4.25 at 2, 3.75 at 4 and 5.50 at 8" in label("divisors")
    assert "scatter less the more samples there are, with a standard deviation of 1.31 for 25" in label("estimates")
    assert "climbs from 2.10 at 4 to 8.1 at 64" in label("spread")
    assert "4.5e-05 at 10" in label("runner-up")
    assert "raw: from d_k = 4 to 64 the median goes from 0.13" in label("gradients")
    assert "half of the loss of guessing: 1 after 25 steps, 1/√d_k after 25 steps, 1/d_k after 25 steps" in label(
        "losses"
    )
    assert "embedded in 64 numbers and makes a query of 256" in label("model")


def label(name):
    return DRAWINGS[name]().get_label()


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_label_is_cut_off(name):
    assert is_whole(DRAWINGS[name]())


def test_no_label_of_the_gradient_paths_lies_on_another_or_on_an_arrow():
    fig = DRAWINGS["paths"]()
    fig.canvas.draw()
    labels = [text for text in fig.axes[0].texts if text.get_text()]
    assert len(labels) == 19
    boxes = [text.get_window_extent() for text in labels]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    arrows = [text.arrow_patch for text in fig.axes[0].texts if not text.get_text()]
    for arrow in arrows:
        path = arrow.get_path().transformed(arrow.get_transform())
        on_way = path.interpolated(50).vertices
        assert not any(box.contains(*point) for box in boxes for point in on_way)


@pytest.mark.parametrize("name", ["estimates", "gradients", "losses"])
def test_no_legend_or_note_lies_over_data(name):
    fig = DRAWINGS[name]()
    fig.canvas.draw()
    boxes = [legend.get_window_extent() for legend in (*fig.legends, *(ax.get_legend() for ax in fig.axes)) if legend]
    for ax in fig.axes:
        panel = ax.get_window_extent()
        assert not any(box.overlaps(panel) for box in boxes)


@pytest.mark.thorough("every figure is drawn twice, to the same bytes")
@pytest.mark.parametrize("name", DRAWINGS)
def test_a_figure_is_the_same_bytes_every_time(name):
    assert png(DRAWINGS[name]()) == png(DRAWINGS[name]())


def test_raw_and_scaled_keep_their_colours_from_one_drawing_to_the_next():
    lines = [one for ax in DRAWINGS["gradients"]().axes for one in ax.lines]
    assert {palette.WRONG, palette.WEIGHT} <= {to_hex(one.get_color()).upper() for one in lines}
    left, right = DRAWINGS["spread"]().axes
    assert to_hex(left.containers[0][0].get_color()).upper() == palette.WRONG
    assert to_hex(right.containers[0][0].get_color()).upper() == palette.WEIGHT


def test_captions_count_what_is_drawn():
    text = DRAWINGS["estimates"]().get_gid()
    assert text.startswith("With 4 times as many samples the bars are 2 times closer") and "100% of the dots" in text
    outside = [*UNIT[:2], Estimate(1.05, 0.02)]
    assert "2 of 3 intervals" in figures.spread_against_width(WIDTHS, RAW, outside).get_gid()
    lengths = {"raw": {4: [1, 1, 1], 16: [1, 1, 1e5]}, "scaled": {4: [1, 1, 1], 16: [2, 2, 2]}}
    assert "at dₖ = 16 it is 33,000 times the median (raw) and 1 times" in figures.gradient_spread(lengths).get_gid()
    faster = LOSSES | {"1/√d_k": LOSSES["1/√d_k"] / 3}
    text = figures.loss_curves({0.001: (STEPS, faster), 0.01: (STEPS, faster)}, chance=2.77).get_gid()
    assert text.endswith("is that with 1/√dₖ at every rate.")
