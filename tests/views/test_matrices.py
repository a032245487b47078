"""Arrays as tables: what is written, what is marked, and what is refused."""

import math
import re

import numpy as np
import pytest
import torch

from course_utils.views import matrices, palette
from course_utils.views.matrices import show

WORDS = ["the", "parcel", "arrived"]
K = [[1, 0], [0, 1], [1, -1.25]]
WEIGHT, KEY, NEGATIVE = (
    ",".join(map(str, palette.rgb(colour))) for colour in (palette.WEIGHT, palette.KEY, matrices.NEGATIVE)
)


def test_as_text_it_has_names_shapes_labels_and_marks():
    tables = show({"Q Kᵀ": [[1.0, 2.0]]}, K=K, rows=WORDS, columns={"Q Kᵀ": ["a", "b"]}, mark={"K": (2, 1)})
    assert repr(tables) == (
        "Q Kᵀ (1 × 2)\n   a  b\n   1  2\n"
        "K (3 × 2)\n      the 1.00   0.00\n   parcel 0.00   1.00\n  arrived 1.00 [−1.25]"
    )


def test_arrays_tensors_lists_and_vectors_read_alike():
    texts = {repr(show(row=each)) for each in ([0.5, 2], np.array([0.5, 2]), torch.tensor([0.5, 2.0]))}
    assert texts == {"row (2)\n   0.5  2.0"}


def test_decimals_that_are_0_everywhere_are_left_out_and_rounding_shows_no_minus_0():
    assert repr(show(a=[1e-9 - 1, -1e-9])) == "a (2)\n   −1  0"
    assert repr(show(a=[1 / 3, math.inf, -math.inf, math.nan], digits=2)) == "a (4)\n   0.33  ∞  −∞  NaN"


@pytest.mark.parametrize("form", [list, np.array, torch.tensor], ids=["lists", "NumPy", "torch"])
def test_a_mask_has_ticks_and_numbers_have_none(form):
    tables = show(mask=form([[True, False]]), row=form([True, True]), numbers=form([[1, 0]]), mark={"mask": (0, 1)})
    assert repr(tables) == "mask (1 × 2)\n   ✓ [–]\nrow (2)\n   ✓  ✓\nnumbers (1 × 2)\n   1  0"


def test_what_is_no_finite_number_has_no_colour():
    page = show(M=[0.0, -math.inf, math.nan, 2.0])._repr_html_()
    assert re.findall(rf"rgba\({WEIGHT},([\d.]+)\)", page) == ["0.06", "0.00", "0.00", "0.50"]


def test_what_has_a_minus_has_a_colour_of_its_own_as_strong_as_its_size():
    page = show(K=[1.0, -1.0, -0.5, -1e-9], mask=[False])._repr_html_()
    assert re.findall(r"rgba\(([\d,.]+)\)", page) == [
        f"{KEY},0.50", f"{NEGATIVE},0.50", f"{NEGATIVE},0.28", f"{KEY},0.06", f"{WEIGHT},0.06"
    ]  # fmt: skip


@pytest.mark.parametrize(("place", "count"), [(1, 2), ((1, 0), 1), ((None, 1), 3), (None, 0)])
def test_a_row_a_cell_or_a_column_is_marked(place, count):
    tables = show(K=K, mark={"K": place})
    assert tables._repr_html_().count("border:2px") == count == repr(tables).count("[")


def test_the_page_has_headings_a_caption_and_the_colour_of_the_role():
    page = show(K=K, weights=[[0.2, 0.8]], rows=WORDS)._repr_html_()
    assert page.count("<caption") == 2 and re.findall(r"scope='row'[^>]*>(\w+)", page) == WORDS
    assert f"rgba({KEY},0.41)" in page and f"rgba({WEIGHT},0.50)" in page
    assert "<b>&lt;x&gt;</b>" in show({"<x>": [1]})._repr_html_()


@pytest.mark.parametrize(
    ("named", "options", "message"),
    [
        ({"K": np.zeros((2, 2, 2))}, {}, "K is 2 × 2 × 2: a table shows two axes of up to 16"),
        ({"K": np.zeros(17)}, {}, "K is 17: a table"),
        ({"K": K}, {"mark": {"Q": 0}}, "mark names 'Q', and there is K"),
        ({"K": K}, {"mark": {"K": (0, 2)}}, r"mark of K is \(0, 2\), and K has 3 rows and 2 columns"),
    ],
)
def test_what_cannot_be_drawn_is_refused(named, options, message):
    with pytest.raises(ValueError, match=message):
        show(named, **options)
