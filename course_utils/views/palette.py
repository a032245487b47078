"""One palette for every figure and widget, safe for the common kinds of colour blindness.

Keys, values and outputs take their hues from Okabe and Ito (2008), and a query is violet. Weights run along
ColorBrewer's Blues, whose lightness falls evenly, so that the order survives in grey. One meaning a colour: a bar or
curve of weights has WEIGHT, what goes wrong (a leak, no scale) has WRONG, and a key is the one thing that is KEY.
Further lines take the hues below, after Tol (2021), or BLUE where there are no weights.

Figures have no background: the same picture stands on white and on JupyterLab's dark #111111. So every colour here
reaches 3 to 1 on both, and text and axes have INK, at 4.3 to 1, which no grey exceeds on both.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap

_BLUES = ["#F7FBFF", "#C6DBEF", "#6BAED6", "#2171B5", "#08306B"]

QUERY = "#9141FF"
KEY = "#D55E00"
VALUE = "#009E73"
OUTPUT = "#CC79A7"
WEIGHT = _BLUES[3]
WRONG = "#B33679"
INK = "#757982"
BLUE = "#0072B2"
GREEN = "#117733"
INDIGO = "#6A5ACD"
PURPLE = "#AA4499"
OLIVE = "#8A7A1F"
BROWN = "#A0522D"
TEAL = "#2E9486"
MOSS = "#999933"
ROSE = "#CC6677"

OPEN = OLIVE  # a cell of a mask that a query may attend to
HONEST = TEAL  # a curve of what has seen no answer, beside one that has, in WRONG

ROLES = {"query": QUERY, "key": KEY, "value": VALUE, "output": OUTPUT}


@functools.cache
def ramp() -> tuple[tuple[int, int, int], ...]:
    """Return the 256 colours for weights 0 to 1, as (red, green, blue) tuples of 0 to 255."""
    stops = [rgb(colour) for colour in _BLUES]
    colours = []
    for level in range(256):
        place = level / 255 * (len(stops) - 1)
        left = min(int(place), len(stops) - 2)
        part = place - left
        red, green, blue = (round(a + (b - a) * part) for a, b in zip(stops[left], stops[left + 1], strict=True))
        colours.append((red, green, blue))
    return tuple(colours)


def ramp_bytes() -> bytes:
    """Return the ramp as 768 bytes, red green blue red …, for a canvas."""
    return bytes(part for colour in ramp() for part in colour)


@functools.cache
def light_ink_from() -> int:
    """Return the first level of the ramp on which white text reads better than black."""
    return next(level for level, colour in enumerate(ramp()) if _luminance(colour) < 0.179)


def ink(level: int) -> str:
    """Text colour for a cell at a level 0 to 255: contrast at least 4.5 everywhere on the ramp."""
    return "#FFFFFF" if level >= light_ink_from() else "#000000"


def ink_on(colour: str) -> str:
    """Text colour on a filled shape, black or white, whichever reads better: contrast at least 4.5."""
    return "#FFFFFF" if _luminance(rgb(colour)) < 0.179 else "#000000"


def colormap() -> ListedColormap:
    """Return the ramp as a matplotlib colormap."""
    from matplotlib.colors import ListedColormap

    return ListedColormap([tuple(part / 255 for part in colour) for colour in ramp()], name="weights")


def veil() -> LinearSegmentedColormap:
    """Weights as opacity, for maps without numbers: nothing at 0, WEIGHT at 1, on a page of either theme."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("veil", [(WEIGHT, 0.0), (WEIGHT, 1.0)])


def css_variables() -> dict[str, str]:
    """Return the colours that mean something as CSS custom properties, set on every widget's root."""
    return {
        f"--course-{name}": colour
        for name, colour in (ROLES | {"weight": WEIGHT, "wrong": WRONG, "open": OPEN}).items()
    }


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour such as #D55E00, each 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
