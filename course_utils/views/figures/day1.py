"""The drawings of day 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.views import palette
from course_utils.views.picture import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def path_lengths(tokens: Sequence[str]) -> Figure:
    """How the last token hears of the first: from hand to hand along a chain, or at once. Arrows go where news goes."""
    fig = new_figure(720, 215)
    chain, looks = fig.subplots(1, 2)
    last = len(tokens) - 1
    for ax, title in ((chain, f"recurrent: {last} steps"), (looks, "attention: 1 step")):
        ax.set_title(title, fontsize=11, color=palette.INK)
        ax.set(xlim=(-0.5, last + 0.5), ylim=(-0.75, 1.35))
        ax.axis("off")
        ax.scatter(range(last + 1), [0] * (last + 1), s=260, facecolor="white", edgecolor=palette.INK, zorder=3)
        for place, token in enumerate(tokens):
            ax.text(place, -0.38, token, ha="center", va="top", fontsize=10, color=palette.INK)
    for place in range(last):
        _arrow(chain, place + 0.2, place + 0.8, palette.QUERY)
    for place in range(1, last):
        _arrow(looks, place, last - 0.1, palette.FAINT, bend=-0.38, width=1)
    _arrow(looks, 0, last - 0.1, palette.QUERY, bend=-0.38)
    fig.subplots_adjust(left=0.02, right=0.98, top=0.88, bottom=0.02, wspace=0.08)
    return fig


def temperature_bars(weights: Any, names: Sequence[str], temperatures: Sequence[float]) -> Figure:
    """One bar chart per temperature: weights is (temperatures, names), each row summing to 1."""
    fig = new_figure(180 * len(temperatures), 220)
    axes = np.atleast_1d(fig.subplots(1, len(temperatures), sharey=True))
    for ax, row, temperature in zip(axes, weights, temperatures, strict=True):
        bars = ax.bar(names, row, color=palette.KEY, width=0.7)
        ax.bar_label(bars, [f"{w:.2f}" for w in row], fontsize=9, color=palette.INK, padding=2)
        ax.set_title(f"temperature {temperature:g}", fontsize=10, color=palette.INK)
        ax.set_ylim(0, 1.15)
        ax.set_yticks([0, 0.5, 1])
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9, colors=palette.INK)
    axes[0].set_ylabel("weight", fontsize=10, color=palette.INK)
    fig.subplots_adjust(left=0.28 / len(axes), right=0.99, top=0.86, bottom=0.13, wspace=0.12)
    return fig


def triangle_of_values(values: Any, outputs: Any, names: Sequence[str], cloud: Any = None) -> Figure:
    """Three values as the corners of a triangle, the outputs as dots, and `cloud`, (any, 2), as small dots.

    values: (3, 2); outputs: (n, 2); names: three labels, one per value, and the first n of them per output.
    Raises ValueError when values are not three points in the plane.
    """
    values, outputs = np.asarray(values, float), np.asarray(outputs, float)
    if values.shape != (3, 2):
        raise ValueError(f"values is {values.shape} but a triangle needs (3, 2)")
    fig = new_figure(580, 400)
    ax = fig.subplots()
    ax.fill(*values.T, facecolor=palette.VALUE, alpha=0.12, edgecolor=palette.VALUE, linewidth=1.5)
    if cloud is not None:
        ax.scatter(
            *np.asarray(cloud).T, s=5, color=palette.FAINT, linewidth=0, alpha=0.6, label="outputs of random queries"
        )
    ax.scatter(*values.T, s=70, marker="s", color=palette.VALUE, zorder=3, label="values")
    ax.scatter(*outputs.T, s=60, color=palette.OUTPUT, edgecolor="white", zorder=4, label="outputs of the tokens")
    for point, name in zip(values, names, strict=True):  # beside the triangle, not on it
        _label(ax, point, f"value of “{name}”", palette.INK, above=point[1] > values[:, 1].mean())
    for point, name in zip(outputs, names, strict=False):  # away from the other outputs
        _label(ax, point, f"“{name}”", palette.INK, left=point[0] < outputs[:, 0].mean())
    ax.set(xlabel="first coordinate", ylabel="second coordinate")
    ax.margins(x=0.3, y=0.12)
    ax.set_aspect("equal")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    ax.legend(loc="upper right", frameon=False, fontsize=9)
    fig.subplots_adjust(left=0.11, right=0.98, top=0.98, bottom=0.13)
    return fig


def _label(ax, point, text, colour, *, left=False, above=True):
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
    place = {"xytext": (-8 if left else 8, 7 if above else -16), "ha": "right" if left else "left"}
    ax.annotate(text, point, **place, textcoords="offset points", fontsize=9, color=colour, bbox=box, zorder=5)


def _arrow(ax, start, end, colour, bend=0.0, width=2.0):
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "mutation_scale": 13}
    height = 0.16 if bend else 0.0
    ax.annotate(
        "",
        xy=(end, height),
        xytext=(start, height),
        arrowprops={**style, "connectionstyle": f"arc3,rad={bend}", "shrinkA": 0, "shrinkB": 0},
    )
