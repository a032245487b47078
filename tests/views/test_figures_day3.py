"""The drawings of day 3 show the masks and numbers that they are given, and mark what leaks."""

import numpy as np
import pytest
import torch
from drawing_rules import is_whole
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_utils.attention import masks
from course_utils.days.day3 import figures as figures
from course_utils.days.day3.patients import VitalSigns
from course_utils.models import characters
from course_utils.views import palette
from course_utils.views.picture import png

CAUSAL = np.tril(np.ones((4, 4), dtype=bool))
LOSSES = {"no mask": [2.1, 1.0, 0.1, 0.0], "mask before": [2.1, 2.2, 2.0, 2.1]}
SHARES = [[0.24, 0.65, 0.11], [0.19, 0.51, 0.30], [0.05, 0.15, 0.80]]  # two narrow ones
WORDS = ["the", "cat", "sat"]
MODELS = {"A": characters.load("causal"), "B": characters.load("leaking")}


TOKENS = np.ones((3, 2))
LOST = [TOKENS, [[np.nan] * 2, [1, 1], [1, 1]], np.full((3, 2), np.nan)]
KEPT = [TOKENS, [[0, 0], [1, 1], [1, 1]], [[0, 0], [1, 1], [1, 1]]]


def signs(mask):
    mask = torch.tensor(mask, dtype=torch.bool)
    row = (mask[2] / mask[2].sum()).tolist()
    return VitalSigns(2.1, (-2.0, 2.0), mask, row, {"W_q": 0.1, "read": None})


def squares(ax):
    return {tuple(map(int, patch.get_xy())): patch for patch in ax.patches if isinstance(patch, Rectangle)}


def colour(patch):
    return to_hex(patch.get_facecolor()) if patch.get_facecolor()[3] else "none"


def written(ax):
    return *ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()


def drawn(name):
    leaking = np.full((5, 5), 0.25)
    drawings = {
        "losses": lambda: figures.loss_curves(LOSSES, 2.079, "floor, log 8"),
        "shares": lambda: figures.shares(SHARES, WORDS, [f"score of sat {s}" for s in (-1, 0.5, 3)]),
        "looks": lambda: figures.where_models_look(MODELS, "If the class", layer=1, head=0),
        "masks": lambda: figures.mask_grids(
            {"bidirectional": np.ones((6, 6)), "cross": np.ones((4, 6)), "causal": CAUSAL}
        ),
        "enlarged": lambda: figures.loss_curves(LOSSES | {"mask after": [2.1, 2.1, 2.1, 2.1]}, 2.079, "floor, log 8"),
        "shifted": lambda: figures.shifted_targets(["the", "cat", "sat", "down"]),
        "nan": lambda: figures.nan_spreads({"plain softmax": LOST, "zero rows": KEPT}, np.tri(3) * [0, 1, 1]),
        "signs": lambda: figures.five_prints({"healthy": signs(np.tri(4)), "sick": signs(np.tri(4).T)}),
        "maps": lambda: figures.dependence_maps(
            {"mask_before": np.tril(leaking), "mask_after": leaking, "no_mask": leaking}
        ),
    }
    return drawings[name]()


DRAWINGS = ["losses", "enlarged", "shares", "looks", "masks", "maps", "shifted", "nan", "signs"]


def test_a_square_is_filled_where_the_query_may_attend_and_empty_where_it_may_not():
    (ax,) = figures.mask_grids({"causal": CAUSAL}).axes
    for (column, row), patch in squares(ax).items():
        assert colour(patch) == (palette.OPEN.lower() if CAUSAL[row, column] else "none")
    assert ax.yaxis_inverted()  # row 0 on top


def test_masks_may_be_tensors_and_need_not_be_square():
    wide, tall = figures.mask_grids({"wide": masks.causal(2, 5), "tall": masks.padding([1], 3)[0, 0].expand(4, 3)}).axes
    assert len(squares(wide)) == 10
    assert len(squares(tall)) == 12


def test_squares_are_equally_large_in_every_mask():
    fig = figures.mask_grids({"a": CAUSAL, "b": np.ones((2, 7), dtype=bool)}, cell=20)
    for ax, (n, m) in zip(fig.axes, ((4, 4), (2, 7)), strict=True):
        box = ax.get_window_extent()
        assert box.width * 96 / fig.dpi == pytest.approx(20 * m)
        assert box.height * 96 / fig.dpi == pytest.approx(20 * n)


def test_a_slope_above_the_diagonal_has_the_colour_of_what_is_wrong_and_one_below_has_not():
    (ax,) = figures.dependence_maps({"leaking": np.full((3, 3), 0.5)}).axes
    for (token, output), patch in squares(ax).items():
        assert (colour(patch) == palette.WRONG.lower()) == (token > output)


def test_zeros_and_rounding_above_the_diagonal_are_no_leak():
    amounts = np.tril(np.ones((3, 3))) + 1e-15
    (ax,) = figures.dependence_maps({"clean": amounts}).axes
    assert palette.WRONG.lower() not in {colour(patch) for patch in squares(ax).values()}
    assert [text.get_text() for text in ax.texts] == ["1.00", "0", "0", "1.00", "1.00", "0", "1.00", "1.00", "1.00"]


def test_a_slope_too_small_for_two_decimals_is_not_written_as_zero():
    (ax,) = figures.dependence_maps({"faint": [[1.0, 0.004], [1.0, 1.0]]}).axes
    assert ax.texts[1].get_text() == "<.01"


def test_every_loss_curve_is_drawn_over_its_floor():
    (ax,) = figures.loss_curves(LOSSES, 2.079, "floor, log 8").axes
    *curves, floor = ax.lines
    for line, losses in zip(curves, LOSSES.values(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), losses)
        assert line.get_xdata().tolist() == [1, 2, 3, 4]
    assert set(floor.get_ydata()) == {2.079}
    assert {text.get_text() for text in ax.figure.texts} == {*LOSSES, "floor, log 8"}


def test_smoothing_averages_neighbouring_steps_and_ends_on_the_last():
    line = figures.loss_curves({"a": [4.0, 2.0, 0.0]}, 1, "floor", smooth=2).axes[0].lines[0]
    assert line.get_ydata().tolist() == [3.0, 1.0]
    assert line.get_xdata().tolist() == [2, 3]


def test_names_lie_beside_the_curves_not_on_them():
    fig = drawn("losses")
    fig.canvas.draw()
    (ax,) = fig.axes
    assert min(text.get_window_extent().x0 for text in fig.texts) >= ax.get_window_extent().x1


def test_more_models_than_kinds_of_line_are_refused():
    with pytest.raises(ValueError, match="losses has 5 models: there are 4 kinds of line"):
        figures.loss_curves({str(number): [1.0] for number in range(5)}, 1, "floor")


def test_bars_are_as_long_as_the_weights_and_only_the_blocked_key_is_hatched():
    (ax,) = figures.shares(SHARES, WORDS, ["a", "b", "c"]).axes
    bars = [patch for patch in ax.patches if patch.get_height() == pytest.approx(0.66)]
    np.testing.assert_allclose([bar.get_width() for bar in bars], np.ravel(SHARES))
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True] * 3
    np.testing.assert_allclose([bar.get_x() for bar in bars[2::3]], [0.89, 0.70, 0.20])


@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_cut_off(name):
    assert is_whole(drawn(name))


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_label_lies_on_another(name):
    fig = drawn(name)
    fig.canvas.draw()
    texts = [*fig.texts, *(text for ax in fig.axes for text in written(ax))]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.thorough("every figure is drawn twice, to the same bytes")
@pytest.mark.parametrize("name", DRAWINGS)
def test_a_figure_is_the_same_bytes_every_time(name):
    assert png(drawn(name)) == png(drawn(name))


def test_what_is_left_beside_each_bar_is_the_sum_of_the_keys_that_stay():
    (ax,) = figures.shares(SHARES, WORDS, ["a", "b", "c"]).axes
    remainders = [text.get_text() for text in ax.texts if text.get_text().startswith("remains")]
    assert remainders == ["remains 0.890", "remains 0.700", "remains 0.200"]


def test_every_weight_is_written_where_a_bar_is_too_narrow_above_it():
    (ax,) = figures.shares([*SHARES, [0.042, 0.114, 0.844]], WORDS, ["a", "b", "c", "d"]).axes
    written = " ".join(text.get_text() for text in ax.texts)
    for row in (*SHARES, [0.042, 0.114, 0.844]):
        for word, weight in zip(WORDS, row, strict=True):
            assert f"{word} {weight:.3f}" in written


def test_the_maps_say_which_way_they_are_read_and_what_the_colour_means():
    fig = drawn("maps")
    assert fig.axes[0].get_ylabel() == "output $i$"
    assert [ax.get_xlabel() for ax in fig.axes] == ["token $j$"] * 3
    leak, scale = (text.get_text() for text in fig.texts)
    assert leak == "leak: output $i$ depends on token $j$, which comes later"
    assert scale.startswith("one colour scale: 0 to ")


def test_a_line_that_falls_through_the_floor_has_the_colour_of_what_is_wrong():
    (ax,) = figures.loss_curves(LOSSES, 2.079, "floor, log 8").axes
    assert [line.get_color() == palette.WRONG for line in ax.lines[:2]] == [True, False]


def test_each_figure_tells_what_it_shows():
    descriptions = {name: drawn(name).get_label() for name in ("losses", "shares", "masks", "maps")}
    assert descriptions["losses"] == (
        "Loss against training step; the floor is at 2.1. no mask falls through the floor to 0.0; "
        "mask before ends near the floor, at 2.1."
    )
    assert "score of sat 3: the 0.050, cat 0.150, sat 0.800, so 0.200 remains." in descriptions["shares"]
    assert "bidirectional: every row sees 0 to 5. " in descriptions["masks"]
    assert "causal: row 0 sees 0; row 1 sees 0 to 1; row 2 sees 0 to 2; row 3 sees 0 to 3." in descriptions["masks"]
    assert "mask_before: zeros above the diagonal, no leak; " in descriptions["maps"]
    assert (
        "mask_after: leaks at 10 of 10 places above the diagonal, the largest 0.25 at output 0, token 1"
        in descriptions["maps"]
    )


def test_gaps_and_empty_rows_of_a_mask_are_reported():
    text = figures.mask_grids({"odd": [[1, 1, 0, 1], [0, 0, 0, 0]]}).get_label()
    assert text.endswith("odd: row 0 sees 0 to 1 and 3; row 1 sees nothing.")


def test_the_two_models_are_said_to_look_where_their_weights_lie():
    fig = drawn("looks")
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["model A", "model B"]
    past, ahead = (np.asarray(ax.images[0].get_array()) for ax in fig.axes)
    assert not np.triu(past, 1).any() and np.diagonal(ahead, 1).min() > 0.9
    assert "model A gives no weight to a later character" in fig.get_label()


def test_two_honest_curves_are_drawn_once_more_enlarged_around_the_floor():
    (ax,) = drawn("enlarged").axes
    (strip,) = ax.child_axes
    low, high = strip.get_ylim()
    assert low < 2.079 < high and high - low < 0.1
    assert not drawn("losses").axes[0].child_axes  # a single one needs none


def test_each_word_to_guess_stands_below_the_word_before_it():
    texts = [text.get_text() for text in drawn("shifted").axes[0].texts]
    assert [text for text in texts if text in {"the", "cat", "sat", "down"}] == [
        "the", "cat", "cat", "sat", "sat", "down", "down"
    ]  # fmt: skip


def test_rows_that_are_nan_are_marked_and_a_nan_reaches_every_query_of_the_next_layer():
    plain, zeros = drawn("nan").axes
    assert [text.get_text() for text in plain.texts].count("NaN") == 4
    assert sum(line.get_linestyle() == "--" for line in plain.lines) == 3
    assert "NaN" not in [text.get_text() for text in zeros.texts]
    assert all(line.get_linestyle() == "-" for line in zeros.lines)


def test_what_a_mask_opens_ahead_has_the_colour_of_what_is_wrong():
    grids = [ax for ax in drawn("signs").axes if ax.get_title(loc="left") == "3 mask"]
    healthy, sick = ([colour(patch) for patch in squares(ax).values()] for ax in grids)
    assert healthy.count(palette.WRONG.lower()) == 0
    assert sick.count(palette.WRONG.lower()) == 6


def test_a_gain_too_small_to_see_is_not_called_a_cheat():
    bars = figures.loss_by_layer([3.8, 3.79, 3.2], 3.8).axes[0].patches
    assert [colour(bar) for bar in bars] == [palette.INK.lower(), palette.INK.lower(), palette.WRONG.lower()]
