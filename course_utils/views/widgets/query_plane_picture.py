"""The planes of a query and of an output: the places of numbers and labels, for the page and the stored picture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.number_text import number, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 300  # of a plane, in pixels of the picture and units of the page
_LETTER = 7.2  # the width of a letter of a label, in the same
_LINE = 15  # the height of a label
_RIM = 8  # its distance from the edge


def plane_of_queries(query: Sequence[float], keys: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Draw the plane around 0 in which keys (m, 2) and a query (2,) have room, with ticks and the places of labels."""
    longest = max(2 * np.hypot(*keys.T).max(), 1.25 * math.hypot(*query)) or 1.0
    reach = _nice(longest, up=True)
    step = _nice(reach / 2)
    plane = {"low": [-reach, -reach], "span": 2 * reach, "reach": reach, "step": _nice(reach / 20)}
    ticks = [
        [sign * i * step, number(sign * i * step)] for i in range(1, 9) if i * step < 0.95 * reach for sign in (-1, 1)
    ]
    middle = SIDE / 2
    axes = [(0, middle - 2, SIDE, middle + 2), (middle - 2, 0, middle + 2, SIDE)]
    points = [place(plane, key) for key in keys]
    labels = _place_labels(points, names, (middle, middle), axes + _number_boxes(plane, [ticks, ticks]))
    return plane | {"ticks": [ticks, ticks], "labels": labels}


def plane_of_values(values: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Draw the square in which values (m, 2) have room, with ticks, the places of labels and the hull of the values."""
    low, high = values.min(axis=0), values.max(axis=0)
    span = (high - low).max() or max(abs(values).max(), 1.0)
    middle = (low + high) / 2
    plane = {"low": (middle - 0.72 * span).tolist(), "span": 1.44 * span}
    step = _nice(span / 2)
    ticks = []
    for axis in (0, 1):
        first = math.ceil((plane["low"][axis] + 0.06 * span) / step)
        ends = (first + i for i in range(9) if (first + i) * step < plane["low"][axis] + 1.38 * span)
        ticks.append([[i * step, number(i * step)] for i in ends])
    points = [place(plane, value) for value in values]
    labels = _place_labels(points, names, place(plane, values.mean(axis=0)), _number_boxes(plane, ticks))
    return plane | {"ticks": ticks, "labels": labels, "hull": _hull(points)}


def place(plane: dict[str, Any], point: Sequence[float]) -> tuple[float, float]:
    """Where a point of the plane stands on the page, from the left and from the top."""
    x, y = ((part - low) / plane["span"] * SIDE for part, low in zip(point, plane["low"], strict=True))
    return float(x), float(SIDE - y)


def _nice(size, up=False):
    """The largest of 1, 2 and 5 times a power of ten up to a size; or the smallest above it, of more."""
    power = 10.0 ** math.floor(math.log10(size))
    if up:
        return next(float(f * power) for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if f * power >= size * (1 - 1e-9))
    return next(float(f * power) for f in (5, 2, 1) if f * power <= size * (1 + 1e-9))


def _number_boxes(plane, ticks):
    """The boxes of the numbers along the lower and the left edge: (left, top, right, bottom)."""
    below = [(place(plane, (value, 0))[0], len(text) * _LETTER / 2) for value, text in ticks[0]]
    beside = [(place(plane, (0, value))[1], len(text) * _LETTER) for value, text in ticks[1]]
    return [(x - half, SIDE - _LINE, x + half, SIDE) for x, half in below] + [
        (0, y - _LINE / 2, 6 + wide, y + _LINE / 2) for y, wide in beside
    ]


def _place_labels(points, names, centre, taken):
    """For each label [left, baseline]: outside its point, as seen from the centre, on no other and on nothing taken."""
    taken = list(taken)
    spots = []
    for at, ((x, y), name) in enumerate(zip(points, names, strict=True)):
        others = [*points[:at], *points[at + 1 :]]
        width = min(len(name), 14) * _LETTER
        away = math.atan2(y - centre[1], x - centre[0]) if (x, y) != tuple(centre) else -math.pi / 2
        options: list[tuple[float, int, tuple[float, float, float, float]]] = []
        for far, turn in itertools.product((14, 26, 40), (0, 0.6, -0.6, 1.2, -1.2, 2, -2, math.pi)):
            ox, oy = x + far * math.cos(away + turn), y + far * math.sin(away + turn)
            across = math.cos(away + turn)
            left = ox - width if across < -0.4 else ox if across > 0.4 else ox - width / 2
            left = min(max(left, _RIM), SIDE - width - _RIM)
            top = min(max(oy - _LINE / 2, _RIM), SIDE - _LINE - _RIM)
            box = (left, top, left + width, top + _LINE)
            # the overlap with other boxes, and as much as 60 square pixels for each point that the box hides or touches
            bad = sum(_overlap(box, other) for other in taken)
            bad += 60 * _holds(box, (x, y), rim=2)
            bad += sum(60 * _holds(box, other, rim=7) for other in others)
            options.append((round(bad, 3), len(options), box))
        box = min(options)[2]
        taken.append(box)
        spots.append([round(box[0], 1), round(box[1] + _LINE - 3, 1)])
    return spots


def _overlap(a, b):
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return across * down if across > 0 and down > 0 else 0


def _holds(box, point, rim):
    """Whether a point lies in a box or within `rim` of it."""
    x, y = point
    return box[0] - rim < x < box[2] + rim and box[1] - rim < y < box[3] + rim


def _hull(points):
    """The convex hull of points of a plane, in order around it (Andrew, 1979)."""
    ordered = sorted([float(x), float(y)] for x, y in points)

    def half(rising):
        chain: list[list[float]] = []
        for x, y in rising:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], (x, y)) <= 0:
                chain.pop()
            chain.append([x, y])
        return chain[:-1]

    return half(ordered) + half(ordered[::-1]) or ordered[:1]


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


# ---- the stored picture

_GAP = 26
_TOP = 34
_BARS = 250


def draw(
    scene: dict[str, Any],
    query: Sequence[float],
    scores: np.ndarray,
    weights: np.ndarray,
    output: np.ndarray,
    path: list[np.ndarray],
) -> Figure:
    """The two planes with the weights between them. scores, weights: (m,). output: (2,). path: points of the plane."""
    height = _TOP + SIDE + 14
    width = 2 * SIDE + _BARS + 2 * _GAP + 24
    fig = new_figure(width, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    lefts = 12, 12 + SIDE + _GAP, 12 + SIDE + _BARS + 2 * _GAP
    for left, title in zip(lefts, ("query and keys", "weights", "values and output"), strict=True):
        ax.text(left, 17, title, fontweight="bold", va="center")
    _draw_queries(ax, lefts[0], scene, query)
    _draw_bars(ax, lefts[1], scene["names"], scores, weights)
    _draw_values(ax, lefts[2], scene, weights, output, path)
    return fig


def _draw_plane(ax, left, plane, cross):
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((left, _TOP), SIDE, SIDE, fill=False, edgecolor=palette.INK, linewidth=1))
    for axis, ticks in enumerate(plane["ticks"]):
        for value, text in ticks:
            x, y = place(plane, (value, plane["low"][1]) if axis == 0 else (plane["low"][0], value))
            ends = ([left + x] * 2, [_TOP, _TOP + SIDE]) if axis == 0 else ([left, left + SIDE], [_TOP + y] * 2)
            ax.plot(*ends, color=palette.INK, linewidth=0.6, alpha=0.6)
            where = (left + x, _TOP + SIDE - 4) if axis == 0 else (left + 4, _TOP + y)
            ax.text(*where, text, ha="center" if axis == 0 else "left",
                    va="baseline" if axis == 0 else "center")  # fmt: skip
    if cross:
        x, y = place(plane, (0, 0))
        ax.plot([left, left + SIDE], [_TOP + y] * 2, color=palette.INK, linewidth=0.8)
        ax.plot([left + x] * 2, [_TOP, _TOP + SIDE], color=palette.INK, linewidth=0.8)


def _draw_labels(ax, left, plane, names):
    axis = place(plane, (0, 0))[1]
    for (x, y), name in zip(plane["labels"], names, strict=True):
        y -= 8 if abs(y - axis) < 8 else 0  # above the axis, not on it
        ax.text(left + x, _TOP + y, name[:14], va="baseline", parse_math=False)


def _draw_queries(ax, left, scene, query):
    plane = scene["queries"]
    _draw_plane(ax, left, plane, cross=True)
    size = max(1.0, *(abs(part) / plane["reach"] for part in query))
    wide = ([part / size for part in query], palette.QUERY, 5, 19)  # below the keys, so that one along it shows
    middle = place(plane, (0, 0))
    for point, colour, width, tip in [wide, *((key, palette.KEY, 1.6, 11) for key in scene["keys"])]:
        x, y = place(plane, point)
        if math.hypot(x - middle[0], y - middle[1]) < 1:
            ax.plot([left + x], [_TOP + y], "o", color=colour, markersize=5)
            continue
        ax.annotate("", (left + x, _TOP + y), (left + middle[0], _TOP + middle[1]),
                    arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0,
                                "mutation_scale": tip})  # fmt: skip
    _draw_labels(ax, left, plane, scene["names"])
    caption = f"query ({short(query[0])}, {short(query[1])}), length {short(math.hypot(*query))}"
    ax.text(left + SIDE, 17, caption, ha="right", va="center")


def _draw_bars(ax, left, names, scores, weights):
    from matplotlib.patches import Rectangle

    ax.text(left + 130, 17, "q · k / √2", ha="right", va="center")
    row = min(36, SIDE / len(names))
    for i, (name, score, weight) in enumerate(zip(names, scores, weights, strict=True)):
        y = _TOP + 8 + (i + 0.5) * row
        ax.text(left, y, name[:14], va="center", parse_math=False)
        ax.text(left + 130, y, short(score), ha="right", va="center")
        ax.add_patch(Rectangle((left + 142, y - 6), 68 * weight, 12, facecolor=palette.WEIGHT))
        ax.plot([left + 142] * 2, [y - row / 2, y + row / 2], color=palette.INK, linewidth=1)
        ax.text(left + 146 + 68 * weight, y, short(weight), va="center")


def _draw_values(ax, left, scene, weights, output, path):
    from matplotlib.patches import FancyArrowPatch

    plane = scene["outputs"]
    _draw_plane(ax, left, plane, cross=False)
    points = np.array([place(plane, value) for value in scene["values"]]) + np.array((left, _TOP))
    x, y = np.array(place(plane, output)) + np.array((left, _TOP))
    ax.fill(
        *(np.array(plane["hull"]) + np.array((left, _TOP))).T,
        facecolor=palette.VALUE,
        alpha=0.13,
        edgecolor=palette.VALUE,
    )
    for (px, py), weight in zip(points, weights, strict=True):
        ax.plot([x, px], [y, py], color=palette.WEIGHT, linewidth=6 * weight, solid_capstyle="butt", alpha=0.7)
    ax.plot(*points.T, "o", color=palette.VALUE, markersize=7)
    steps = np.array([place(plane, point) for point in path]) + np.array((left, _TOP))
    ax.plot(*steps.T, color=palette.OUTPUT, linewidth=1.4, linestyle=(0, (3, 2)))
    far = np.flatnonzero(np.hypot(*(steps - steps[-1]).T) > 3)
    if far.size:
        ax.add_patch(
            FancyArrowPatch(
                steps[far[-1]], steps[-1], arrowstyle="-|>", color=palette.OUTPUT, linewidth=0, mutation_scale=13,
                shrinkA=0, shrinkB=0,
            )
        )  # fmt: skip
    ax.plot([x], [y], "o", color=palette.OUTPUT, markersize=10)
    _draw_labels(ax, left, plane, scene["names"])
    caption = f"output ({short(output[0])}, {short(output[1])})"
    ax.text(left + SIDE, 17, caption, ha="right", va="center")
