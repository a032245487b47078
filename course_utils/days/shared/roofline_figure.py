"""Roofline figure: the most FLOP/s that a machine reaches at each intensity, and the tasks below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.costs.roofline import attainable
from course_utils.views import palette
from course_utils.views.drawing import rule_between_texts
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SERIES = [palette.QUERY, palette.OUTPUT, palette.VALUE, palette.INK]


def roofline(machine: Any, series: Any) -> Figure:
    """Draw the most FLOP/s that a machine reaches at each intensity, and tasks on or below this roof.

    Args:
        machine: a costs.roofline.Machine.
        series: name -> {label: intensity in FLOPs per byte}, at most four names. A task with a plain intensity lies on
            the roof; (intensity, FLOP/s) gives the speed that it reached.
    """
    fig = new_figure(720, 380)
    ax = fig.subplots()
    ridge = machine.ridge_point
    series = {name: {label: _reached(machine, x) for label, x in points.items()} for name, points in series.items()}
    intensities = [x for points in series.values() for x, _ in points.values()]
    # the roof, over all tasks and some way beyond the ridge point
    span = np.geomspace(min([*intensities, 0.5]) / 1.6, max([*intensities, ridge]) * 4, 400)
    ax.loglog(span, [attainable(machine, x) / 1e12 for x in span], color=palette.INK, linewidth=1.6, zorder=1)
    ax.annotate(
        f"ridge point {ridge:.0f}", (ridge, span[0] * machine.bytes_per_second / 1e12), xytext=(-5, 2), ha="right",
        textcoords="offset points",
    )  # fmt: skip
    # the tasks, a colour and a mark for each series
    for place, ((name, points), colour, mark) in enumerate(zip(series.items(), _SERIES, "osD^", strict=False)):
        widths, heights = zip(*((x, y / 1e12) for x, y in points.values()), strict=True)
        ax.scatter(widths, heights, s=46, color=colour, marker=mark, label=name, zorder=3)
        _label_points(ax, machine, points, above=place % 2 == 0)
    ax.set_xlim(span[0], span[-1])
    ax.set_ylim(top=machine.flops_per_second / 1e12 * 2.2)
    ax.set_xlabel("intensity, FLOPs a byte")
    ax.set_title(f"most that {machine.name} can do, TFLOP/s")
    ax.legend(loc="upper left")
    fig.subplots_adjust(left=0.075, right=0.985, top=0.93, bottom=0.16)
    rule_between_texts(ax, ridge)  # once the texts have their places
    tasks = [
        f"{name}: {', '.join(f'{label} at {x:.3g}, {_side(machine, x, y)}' for label, (x, y) in points.items())}"
        for name, points in series.items()
    ]
    alt = (
        f"Roofline of {machine.name}, both axes logarithmic: a slope up to the ridge point at {ridge:.0f} FLOPs a "
        f"byte, then a flat roof at {machine.flops_per_second / 1e12:.0f} TFLOP/s. {'; '.join(tasks)}."
    )
    slowest = min(y for points in series.values() for _, y in points.values())
    return described(
        fig,
        alt,
        f"{sum(x < ridge for x in intensities)} of the {len(intensities)} marks lie left of the ridge point, where "
        f"memory sets the pace; the lowest reaches {slowest / machine.flops_per_second:.1%} of the roof.",
    )


def _label_points(ax, machine, points, above):
    """Write the labels of a series: above the roof if the series lies on it and `above` says so, else below it."""
    on_roof = all(y == attainable(machine, x) for x, y in points.values())
    previous = 0.0
    for label, (x, y) in points.items():
        crowded = x < 1.6 * previous  # then the label goes beside its dot, because the previous one is below
        if on_roof and above:  # labels above a dot below the roof would cross the roof's line
            offset, side = (-7, 5), "right"
        else:
            offset, side = ((9, -5) if crowded else (8, -12)), "left"
        previous = x
        ax.annotate(label, (x, y / 1e12), xytext=offset, textcoords="offset points", ha=side)


def _reached(machine, point):
    """Return (intensity, FLOP/s) of a point, on the roof if the point is an intensity alone."""
    return point if isinstance(point, tuple) else (point, attainable(machine, point))


def _side(machine, x, y):
    most = attainable(machine, x)
    side = "the slope" if x < machine.ridge_point else "the roof"
    return f"on {side}" if y == most else f"at {y / most:.0%} of {side}"
