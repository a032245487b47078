"""What all figures share: no background, the course's own face, names beside lines."""

import base64
import io
import json

import numpy as np
import pytest
from drawing_rules import is_whole
from matplotlib import font_manager, rcParams
from PIL import Image

from course_utils.course import ROOT, TO_LOOK_UP
from course_utils.views import drawing
from course_utils.views.picture import new_figure, png, small_png


def corner(data):
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGBA").getpixel((0, 0))[3]


def test_a_figure_has_no_background_in_either_kind_of_png():
    fig = new_figure(200, 100)
    fig.subplots().plot([0, 1], [0, 1])
    assert corner(png(fig)) == corner(small_png(fig)) == 0
    assert fig.patch.get_facecolor()[3] == fig.axes[0].patch.get_facecolor()[3] == 0


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_picture_in_a_notebook_has_a_background(path):
    outputs = [out for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for out in cell.get("outputs", [])]
    pictures = [out["data"]["image/png"] for out in outputs if "image/png" in out.get("data", {})]
    assert pictures or path.stem in TO_LOOK_UP
    assert {corner(base64.b64decode(data)) for data in pictures} <= {0}


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_texts_have_the_face_that_ships_with_the_course(weight):
    new_figure(10, 10)
    face = font_manager.FontProperties(family=rcParams["font.family"], weight=weight)
    result = font_manager.findfont(face, fallback_to_default=False)
    assert result == str(drawing.FONTS / f"CourseSans-{'Regular' if weight == 'normal' else 'Bold'}.ttf")


def test_a_style_that_somebody_set_does_not_reach_our_figures():
    new_figure(10, 10)
    rcParams["text.color"] = "red"
    fig = new_figure(10, 10)
    assert fig.text(0, 0, "a").get_color() == drawing.STYLE["text.color"]


@pytest.mark.parametrize(
    ("places", "result"),
    [
        ([], []),
        ([1, 5, 9], [1, 5, 9]),
        ([1, 1], [0, 2]),
        ([1, 1, 1, 9], [-1, 1, 3, 9]),
        ([0, 1, 2.5], [-5 / 6, 7 / 6, 19 / 6]),
    ],
)
def test_places_are_moved_apart_no_further_than_needed(places, result):
    np.testing.assert_allclose(drawing.spread(places, 2), result)


def test_each_line_has_its_name_at_its_end_and_names_lie_apart():
    fig = new_figure(600, 300)
    ax = fig.subplots()
    fig.subplots_adjust(right=0.7)
    for name, end in (("low", 0.0), ("high", 1.0), ("almost as high", 0.99)):
        ax.plot([0, 1], [0.5, end], label=name)
    ax.errorbar([0, 0.4], [0, 0.5], [0.1, 0.1], label="short")
    ax.plot([0, 1], [0.2, 0.2])
    drawing.name_lines(ax)
    assert is_whole(fig)
    boxes = {text.get_text(): text.get_window_extent() for text in fig.texts}
    assert set(boxes) == {"low", "high", "almost as high", "short"}
    middle = {name: (box.y0 + box.y1) / 2 for name, box in boxes.items()}
    assert middle["low"] < middle["short"] < middle["almost as high"] < middle["high"]
    assert not boxes["high"].overlaps(boxes["almost as high"])
    edge = ax.get_window_extent().x1
    assert boxes["short"].x1 < edge < min(boxes[name].x0 for name in boxes if name != "short")


def test_an_upright_rule_leaves_out_the_texts_it_would_cross():
    fig = new_figure(300, 300)
    ax = fig.add_axes((0, 0, 1, 1))
    crossed = ax.text(0.4, 0.5, "crossed by it")
    beside = ax.text(0.8, 0.2, "no")
    drawing.rule_between_texts(ax, 0.5)
    boxes = [line.get_window_extent() for line in ax.lines]
    assert len(boxes) == 2
    assert not any(crossed.get_window_extent().overlaps(box) for box in boxes)
    low, high = beside.get_window_extent().get_points()[:, 1]
    assert any(box.y0 < low and high < box.y1 for box in boxes)


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("d_k = 3", "$d_k$ = 3"),
        ("W_q to W_o", "$W_q$ to $W_o$"),
        ("1/√d_k", r"1/$\sqrt{d_k}$"),
        ("GQA, h_kv = 2", r"GQA, $h_{\mathrm{kv}}$ = 2"),
        ("mask_after, n_kv_heads, is_k", "mask_after, n_kv_heads, is_k"),
        ("$5 for d_v", r"\$5 for $d_v$"),
    ],
)
def test_letters_with_a_subscript_are_formulas_and_names_of_code_are_not(text, formulas):
    assert drawing.typeset(text) == formulas
