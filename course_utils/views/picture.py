"""Figures as deterministic pictures with alt text."""

from __future__ import annotations

import base64
import io
import sys
from typing import TYPE_CHECKING

from course_utils.views.drawing import use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture(fig: Figure, alt: str | None = None, width: float | None = None) -> Picture:
    """Return a matplotlib figure as the last value of a cell: a PNG with alt text, the same bytes on every run.

    fig: a matplotlib Figure; it is drawn on nothing, in colours that both themes show, and closed.
    alt: what the picture shows, in words, for readers who cannot see it; it is also the output's text. By default what
    `described` gave the figure.
    width: width on the page in CSS pixels; by default that of the figure at 96 pixels an inch.
    Raises ValueError when there is no alt, or an empty one.
    """
    alt = str(fig.get_label()) if alt is None else alt
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt is empty: say in a sentence what the picture shows")
    result = Picture(png(fig), alt.strip(), width or natural_width(fig), fig.get_gid() or "")
    _close(fig)
    return result


def described(fig: Figure, alt: str, caption: str = "") -> Figure:
    """The figure, with what it shows in words: the alt text that `picture` gives it. Numbers in it are those drawn.

    caption: a sentence under the figure that says what to look at, for those who see it; d_k in it has its subscript.
    """
    fig.set_label(alt)
    fig.set_gid(caption.replace("d_k", "dₖ"))
    return fig


class Picture:
    """PNG bytes, alt text, a width in CSS pixels and a caption, which Jupyter displays.

    The course's extension of JupyterLab and its pages show the caption.
    """

    def __init__(self, data, alt, width, caption=""):
        self.data = data
        self.alt = alt
        self.width = width
        self.caption = caption

    def __repr__(self):
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        return (
            {"text/plain": self.alt, "image/png": base64.b64encode(self.data).decode()},
            {"image/png": {"alt": self.alt, "width": self.width} | ({"caption": self.caption} if self.caption else {})},
        )


def png(fig: Figure) -> bytes:
    """PNG bytes of a figure without a background, 1.5 pixels a CSS pixel, without time stamp or software name."""
    return _png_bytes(fig, optimize=True)


def small_png(fig: Figure) -> bytes:
    """The same in 256 colours, a third of the bytes: for tables of numbers, which notebooks carry by the dozen."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(_png_bytes(fig, compress_level=0))) as image:
        image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
            buffer, format="png", optimize=True
        )
    return buffer.getvalue()


def _png_bytes(fig, **options):
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=144, facecolor="none", metadata={"Software": None}, pil_kwargs=options)
    return buffer.getvalue()


def natural_width(fig: Figure) -> int:
    """Width of a figure in CSS pixels."""
    return round(fig.get_figwidth() * 96)


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of width × height CSS pixels, unknown to pyplot, so that no backend shows it a second time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    use_style()
    fig = Figure(figsize=(width / 96, height / 96))
    FigureCanvasAgg(fig)
    return fig


def _close(fig):
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)
