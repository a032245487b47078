"""The lessons' drawings show the numbers that they are given."""

import numpy as np
import pytest

from course_utils.days.day1 import figures as figures
from course_utils.views import palette
from course_utils.views.picture import png

VALUES = [[1, 0], [0, 1], [0, 0]]
NAMES = ["the", "parcel", "arrived"]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def worked_way():
    w = np.ones((4, 2))
    return figures.whole_way(np.eye(3, 4), w, w, w)


def test_the_recurrent_path_has_one_arrow_between_neighbours_and_attention_one_to_each_other_token():
    chain, looks = figures.path_lengths(["a", "b", "c", "d"]).axes
    arrows = [sum(text.get_text() == "" for text in ax.texts) for ax in (chain, looks)]
    assert arrows == [3, 3]
    assert chain.get_title(loc="left") == "passed on: 3 steps"
    assert looks.get_title(loc="left") == "attention: 1 step"


def test_both_halves_show_news_on_its_way_to_the_last_token():
    for ax in figures.path_lengths(["a", "b", "c", "d"]).axes:
        arrows = [text for text in ax.texts if text.get_text() == ""]
        assert all(arrow.xyann[0] < arrow.xy[0] for arrow in arrows)  # from xyann, to xy: from left to right
        assert max(arrow.xy[0] for arrow in arrows) > 2.5


def test_the_triangle_has_the_values_at_its_corners_and_every_output_as_a_dot():
    outputs = [[0.4, 0.2], [0.2, 0.4]]
    (ax,) = figures.triangle_of_values(VALUES, outputs, NAMES, cloud=[[0.1, 0.1]]).axes
    np.testing.assert_allclose(ax.patches[0].get_xy()[:3], VALUES)
    cloud, corners, dots = (collection.get_offsets() for collection in ax.collections)
    np.testing.assert_allclose(cloud, [[0.1, 0.1]])
    np.testing.assert_allclose(corners, VALUES)
    np.testing.assert_allclose(dots, outputs)


def test_the_triangle_refuses_other_than_three_values_in_the_plane():
    with pytest.raises(ValueError, match=r"values is \(2, 2\) but a triangle needs \(3, 2\)"):
        figures.triangle_of_values(VALUES[:2], VALUES[:2], NAMES)


def test_no_label_is_cut_off():
    """Everything drawn lies on the page: the tight box of each figure is inside the figure."""
    drawn = (
        figures.path_lengths(["the", "parcel", "that", "we", "sent", "arrived"]),
        figures.triangle_of_values(VALUES, [[0.4, 0.2]], NAMES),
        worked_way(),
    )
    for fig in drawn:
        fig.canvas.draw()
        box = fig.get_tightbbox()
        width, height = fig.get_size_inches()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width + 1e-9
        assert box.y1 <= height + 1e-9


def test_no_label_of_the_worked_example_lies_on_another():
    outputs = [[0.4011, 0.1978], [0.1978, 0.4011], [0.2483, 0.2483]]
    for fig in (figures.triangle_of_values(VALUES, outputs, NAMES), worked_way()):
        fig.canvas.draw()
        boxes = [text.get_window_extent() for text in fig.axes[0].texts if text.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_figure_is_the_same_bytes_every_time():
    def draw():
        return png(figures.triangle_of_values(VALUES, [[0.4, 0.2]], NAMES))

    assert draw() == draw()


def test_figures_take_their_colours_from_the_palette():
    (ax,) = figures.triangle_of_values(VALUES, [[0.4, 0.2]], NAMES).axes
    corners, dots = ax.collections
    assert palette.VALUE.lower() == _hex(corners.get_facecolor()[0])
    assert palette.OUTPUT.lower() == _hex(dots.get_facecolor()[0])


def _hex(colour):
    from matplotlib.colors import to_hex

    return to_hex(colour)


def test_the_whole_way_has_a_cell_for_each_number_and_the_shapes_of_what_it_is_given():
    x = np.arange(15.0).reshape(5, 3)
    w = np.ones((3, 2))
    fig = figures.whole_way(x, w, w, np.ones((3, 4)))
    (ax,) = fig.axes
    assert len(ax.patches) == 5 * 3 + 5 * 2 + 5 * 2 + 5 * 4 + 3 * 5 * 5 + 5 * 4
    labels = {"$W_V$  3 × 4", "5 × 3", "5 × 2", "5 × 4", "$O = AV$"}
    assert labels <= set(texts(ax))
    assert "K transposed, 2 × 5, gives the scores S, 5 × 5; these are divided by the root of d_k = 2" in fig.get_label()


def test_what_the_drawings_say_in_words_is_what_they_show():
    assert "4 words “a b c d”" in figures.path_lengths(["a", "b", "c", "d"]).get_label()
    inside = figures.triangle_of_values(VALUES, [[0.4, 0.2]], NAMES, cloud=[[0.1, 0.1], [0.5, 0.5]]).get_label()
    assert "(0.40, 0.20)" in inside and "2 outputs of random queries: all lie inside it" in inside
    assert "not all lie inside" in figures.triangle_of_values(VALUES, [[0.7, 0.4]], NAMES).get_label()
