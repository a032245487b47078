"""The stored picture of the head explorer: arcs over the sentence, the head's weights, all heads, the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.models.real_sentences import LEVELS, Reading
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.heads import head_name
from course_utils.views.shared.number_text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 900  # of the picture, in CSS pixels like all that follows
_LETTER = 8.6  # the width of a letter in the sentence
_GAP = 14  # between its words
_ARCS = 130  # the most height of an arc
_MAP = 300  # the side of the map
_LISTED = 12  # heads that are listed
_DRAWN = 5  # the least level that has an arc


def draw(
    reading: Reading,
    labels: list[str],
    chosen: tuple[tuple[int, int], int, int],
    measured: str,
    shares: np.ndarray,
    ranked: Sequence[tuple[tuple[int, int], float]],
    following: Sequence[tuple[str, int]],
) -> Figure:
    """chosen: (head, query, key). shares: (layers, heads), what heads are sorted by; ranked: the same, in order.

    measured: what the shares are of, in words. following: the likeliest tokens after the query, in thousandths.
    """
    head, query, _ = chosen
    places, scale = _place_words(labels)
    top = 48 + max(
        (_arc_height(places[query] - places[key]) for key in _drawn_keys(reading.levels[head][query])), default=20
    )
    height = top + 128 + _MAP + 88
    fig = new_figure(_WIDTH, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, _WIDTH), ylim=(height, 0))
    ax.axis("off")
    levels = reading.levels[head]
    _write(ax, 12, 16, f"{head_name(*head)}: where {query} “{labels[query]}” looks", fontweight="bold")
    _draw_arcs(ax, labels, levels[query], query, top, places, scale)
    likeliest = ", ".join(f"“{text}” {short(chance / 1000)}" for text, chance in following)
    _write(ax, 12, top + 56, f"after {query} “{labels[query]}” the model expects: {likeliest}")
    _draw_map(ax, labels, levels, chosen, top + 128)
    _draw_heads(ax, head, measured, shares, top + 128)
    _draw_list(ax, head, ranked, top + 128)
    _write(ax, 12, height - 12, f"{reading.source}; weights are rounded to 1/255")
    return fig


def _write(ax, x, y, text, va="center", **more):
    ax.text(x, y, text, va=va, parse_math=False, **more)


def _place_words(labels):
    """Return the middles of the words on their line, and how small they are written if they are many."""
    wide = np.array([_LETTER * len(label) + _GAP for label in labels])
    scale = min(1, (_WIDTH - 24) / wide.sum())
    return 12 + scale * (wide.cumsum() - wide / 2), scale


def _drawn_keys(row):
    return np.flatnonzero(row >= _DRAWN)


def _arc_height(far):
    return min(_ARCS, 26 + 0.3 * far) if far else 26


def _draw_arcs(ax, labels, row, query, base, places, scale):
    """The words, and above them an arc from the query to each key, as thick as its weight."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for key, (label, place) in enumerate(zip(labels, places, strict=True)):
        bold = "bold" if key == query else "normal"
        _write(ax, place, base + 14, label, fontsize=max(5, 12 * scale), ha="center", fontweight=bold)
        if key not in _drawn_keys(row):
            continue
        _write(ax, place, base + 32, short(row[key] / LEVELS), fontsize=max(6, 11 * scale), ha="center")
        high = _arc_height(places[query] - place) * 4 / 3
        out = 0 if key < query else 8
        ends = place - out, places[query] + out
        points = [(ends[1], base), (ends[1], base - high), (ends[0], base - high), (ends[0], base)]
        path = Path(points, [Path.MOVETO, *[Path.CURVE4] * 3])
        weight = row[key] / LEVELS
        look = {"edgecolor": palette.WEIGHT, "linewidth": 0.8 + 6 * weight, "alpha": 0.3 + 0.7 * weight}
        ax.add_patch(PathPatch(path, facecolor="none", **look))
        ax.plot(ends[0], base - 2, "v", color=palette.WEIGHT, markersize=4 + 6 * weight, alpha=0.3 + 0.7 * weight)


def _draw_map(ax, labels, levels, chosen, top):
    from matplotlib.patches import Rectangle

    _, query, key = chosen
    T = len(labels)
    left = 130
    cell = _MAP / max(T, 8)
    visible = np.ma.masked_where(~np.tri(T, dtype=bool), levels)
    box = (left, left + T * cell, top + T * cell, top)
    ax.imshow(visible, extent=box, aspect="auto", interpolation="nearest", cmap=palette.veil(), vmin=0, vmax=LEVELS)
    ax.add_patch(Rectangle((left, top), T * cell, T * cell, fill=False, edgecolor=palette.INK, linewidth=0.8))
    ax.add_patch(
        Rectangle((left + key * cell, top + query * cell), cell, cell, fill=False, edgecolor=palette.KEY, linewidth=1.6)
    )
    size = min(10, 0.62 * cell)
    for i, label in enumerate(labels):
        _write(ax, left - 6, top + (i + 0.5) * cell, f"{label[:14]} {i}", fontsize=size, ha="right")
        name = {"fontsize": size, "rotation": 90, "ha": "center", "va": "top"}
        _write(ax, left + (i + 0.5) * cell, top + T * cell + 5, f"{label[:14]} {i}", **name)
    _write(ax, left, top - 25, "weights: queries in rows, keys in columns")


def _draw_heads(ax, head, measured, shares, top):
    """All heads, layers in rows, darker the larger their share."""
    from matplotlib.patches import Rectangle

    layers, heads = shares.shape
    left = 486
    wide = min(20, 180 / heads)
    tall = min(30, (_MAP + 40) / layers)
    box = (left, left + heads * wide, top + layers * tall, top)
    ax.imshow(shares, extent=box, aspect="auto", interpolation="nearest", cmap=palette.veil(), vmin=0, vmax=1)
    ax.add_patch(Rectangle((left, top), heads * wide, layers * tall, fill=False, edgecolor=palette.INK, linewidth=0.8))
    frame = (left + head[1] * wide, top + head[0] * tall)
    ax.add_patch(Rectangle(frame, wide, tall, fill=False, edgecolor=palette.KEY, linewidth=1.6))
    for layer in range(0, layers, 5):
        _write(ax, left - 5, top + (layer + 0.5) * tall, str(layer), ha="right")
    for each in range(heads):
        _write(ax, left + (each + 0.5) * wide, top - 7, str(each), ha="center")
    _write(ax, left - 26, top - 44, f"all heads by the {measured}", fontweight="bold")
    _write(ax, left - 26, top - 25, "layers in rows, heads in columns")


def _draw_list(ax, head, ranked, top):
    from matplotlib.patches import Rectangle

    for rank, (each, share) in enumerate(ranked[:_LISTED]):
        y = top + 12 + 26 * rank
        bold = "bold" if each == head else "normal"
        _write(ax, 694, y, head_name(*each), fontweight=bold)
        ax.add_patch(Rectangle((800, y - 6), 54 * share, 12, facecolor=palette.WEIGHT))
        _write(ax, 886, y, short(share), ha="right", fontweight=bold)
