"""The palette as people with the common colour blindnesses see it, and on a page of either theme.

Simulated after G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, "A Physiologically-based Model for Simulation of
Color Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009: their matrices for
severity 1.0, on linear RGB. Distances are those of CIE Lab (1976, white D65), in which a step of 2.3 is just seen.
"""

import ast
import itertools
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

from course_utils.course import ROOT
from course_utils.views import QueryPlane, drawing, matrices, palette

SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
COLOURS = {name: getattr(palette, name) for name in ("QUERY", "KEY", "VALUE", "OUTPUT", "WEIGHT", "WRONG")}
APART = 15


def linear(colour):
    """A colour as linear red, green and blue of 0 to 1, as sRGB (IEC 61966-2-1) defines it."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def as_seen(colour, sight):
    """A colour in CIE Lab, as somebody of this sight sees it."""
    rgb = np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)
    ratios = TO_XYZ @ rgb / (TO_XYZ @ np.ones(3))
    x, y, z = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, sight):
    return float(np.linalg.norm(as_seen(one, sight) - as_seen(other, sight)))


def contrast(one, other):
    """The contrast of two colours as WCAG 2 defines it, 1 to 21."""
    low, high = sorted(palette._luminance(palette.rgb(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def drawing_files():
    return sorted(path for room in ("views", "days") for path in (ROOT / "course_utils" / room).rglob("*.py")
                  if path.name not in ("palette.py", "verdict_card.py"))  # fmt: skip


def test_the_simulation_gives_what_is_known_of_it():
    assert as_seen("#FFFFFF", "normal") == pytest.approx([100, 0, 0], abs=0.01)
    assert as_seen("#FF0000", "normal") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    for sight in SIGHT:
        assert distance("#808080", "#808080", sight) == 0
        assert np.abs(as_seen("#808080", sight)[1:]).max() < 0.1, "grey stays grey"
    for one, other, sight, known in (  # as the package colorspacious 1.1.2 has them
        ("KEY", "VALUE", "protanopia", 37.2),
        ("VALUE", "OUTPUT", "deuteranopia", 17.9),
        ("BLUE", "VALUE", "tritanopia", 17.0),
    ):
        assert distance(getattr(palette, one), getattr(palette, other), sight) == pytest.approx(known, abs=0.1)


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_that_mean_different_things_stay_apart(sight):
    for one, other in itertools.combinations(COLOURS, 2):
        assert distance(COLOURS[one], COLOURS[other], sight) >= APART, (one, other)


@pytest.mark.parametrize("sight", SIGHT)
def test_weights_darken_step_by_step_in_every_sight(sight):
    lightness = [as_seen(to_hex([part / 255 for part in colour]), sight)[0] for colour in palette.ramp()[::16]]
    assert all(above - below > 1 for above, below in itertools.pairwise(lightness))


def test_in_the_plane_the_query_is_an_arrow_and_weights_are_bars_and_springs():
    figure = QueryPlane([2, 0.5], [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [0, 0]]).figure()
    kinds = {palette.QUERY: set(), palette.WEIGHT: set()}
    drawn = figure.findobj()
    for artist in [*drawn, *(each.arrow_patch for each in drawn if getattr(each, "arrow_patch", None))]:
        for name in ("get_facecolor", "get_color"):
            colour = getattr(artist, name, lambda: None)()
            if isinstance(colour, str | tuple) and to_hex(colour).upper() in kinds:
                kinds[to_hex(colour).upper()].add(type(artist).__name__)
    assert kinds == {palette.QUERY: {"FancyArrowPatch"}, palette.WEIGHT: {"Rectangle", "Line2D"}}


@pytest.mark.parametrize("page", ["#FFFFFF", "#111111"])  # JupyterLab's two
def test_shapes_and_texts_stand_out_from_a_white_page_and_from_a_dark_one(page):
    colours = {name: colour for name, colour in vars(palette).items() if name.isupper() and isinstance(colour, str)}
    assert colours.keys() > COLOURS.keys()
    for name, colour in colours.items():
        assert contrast(colour, page) >= 3, name  # WCAG 2.2, 1.4.11
    inks = {name: colour for name, colour in drawing.STYLE.items() if name.endswith("color")}
    assert inks.keys() >= {"text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"}
    for name, colour in inks.items():
        assert colour == "none" if name.endswith("facecolor") else contrast(colour, page) >= 4.3, name


@pytest.mark.parametrize(("page", "text"), [("#FFFFFF", "#212121"), ("#111111", "#E0E0E0")])
def test_in_a_matrix_negative_cells_differ_from_those_of_every_role_and_their_text_reads(page, text):
    """In other sights the minus itself tells them apart."""
    tints = [
        to_hex(
            [
                (matrices._MOST * on + (1 - matrices._MOST) * below) / 255
                for on, below in zip(palette.rgb(colour), palette.rgb(page), strict=True)
            ]
        )
        for colour in (matrices.NEGATIVE, *matrices._ROLES.values(), palette.WEIGHT)
    ]
    assert min(distance(tints[0], tint, "normal") for tint in tints[1:]) >= APART
    assert min(contrast(text, tint) for tint in tints) >= 4.5


def test_text_reads_on_every_filled_shape():
    for name, colour in COLOURS.items():
        assert contrast(palette.ink_on(colour), colour) >= 4.5, name


def test_no_figure_has_a_colour_that_the_palette_does_not_know():
    """So that the contrasts above hold for all that is drawn: white too would be a slab on a dark page."""
    literal = re.compile(r"#[0-9a-fA-F]{3,8}|white|black|gr[ae]y|red|green|blue")
    for path in drawing_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not literal.fullmatch(node.value), f"{path}:{node.lineno}: {node.value}"
