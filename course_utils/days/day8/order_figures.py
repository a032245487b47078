"""The drawings of day 8's first sitting: waves, slopes, and losses by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES: dict[str, tuple[str, Any]] = {  # one look for each way, in all drawings of the day
    "learned": (palette.OLIVE, "-"),
    "waves": (palette.BROWN, "--"),
    "none": (palette.INK, ":"),
    "RoPE": (palette.QUERY, "-"),
    "ALiBi": (palette.GREEN, "-."),
    "interpolation": (palette.BLUE, "--"),
    "NTK-aware": (palette.TEAL, "-."),
    "YaRN": (palette.ROSE, "-"),
}


def by_position(at: Any, losses: Mapping[str, Any], trained: int, top: float | None = None) -> Figure:
    """Draw the loss of models at each position: the mean over seeds as a line, least to largest as a band.

    at: positions (points,). losses: way -> (seeds, points), nats per character. trained: the length of the training,
    whose end is ruled. top: the largest loss that is shown.
    """
    at = np.asarray(at, dtype=float)
    curves = {way: np.asarray(each, dtype=float) for way, each in losses.items()}
    fig = new_figure(700, 330)
    ax = fig.add_axes((0.09, 0.16, 0.71, 0.8))
    ax.axvspan(0, trained, color=palette.INK, alpha=0.15, linewidth=0)
    for way, each in curves.items():
        colour, line = _STYLES[way]
        ax.fill_between(at, each.min(0), each.max(0), color=colour, alpha=0.25, linewidth=0)
        ax.plot(at, each.mean(0), color=colour, linestyle=line, linewidth=2, label=way)
    ax.set(xlim=(0, at[-1]), xlabel="position in the text", ylabel="loss (nats per character)")
    if top is not None:
        ax.set_ylim(top=top)
    name_lines(ax)
    ends = "; ".join(
        f"{way} {_near(at, each, trained / 2):.2f} at {trained // 2} and {each[:, -1].mean():.2f} at the end"
        for way, each in curves.items()
    )
    return described(
        fig,
        f"The loss at each position up to {at[-1]:.0f}, the mean of {len(next(iter(curves.values())))} seeds: {ends}.",
        f"Grey is the length that the models were trained on, {trained} characters. A band reaches from the least to "
        "the largest of five seeds.",
    )


def within(losses: Mapping[str, Any]) -> Figure:
    """Draw the loss within the trained length: for each way a ring at the mean over seeds, and a dot for each seed.

    losses: way -> (seeds,), nats per character.
    """
    values = {way: np.asarray(each, dtype=float) for way, each in losses.items()}
    height = 36 * len(values) + 62
    fig = new_figure(620, height)
    ax = fig.add_axes((0.14, 52 / height, 0.74, 1 - 60 / height))
    for row, (way, each) in enumerate(values.items()):
        colour = _STYLES[way][0]
        ax.plot(each, np.full(len(each), row), "o", color=colour, markersize=5)
        ax.plot([each.mean()], [row], "o", color=colour, markersize=13, fillstyle="none", markeredgewidth=2)
        ax.text(1.02, row, f"{each.mean():.2f}", transform=ax.get_yaxis_transform(), va="center_baseline")
    ax.set_yticks(range(len(values)), [*values])
    ax.set(ylim=(len(values) - 0.5, -0.5), xlabel="loss (nats per character)")
    ax.margins(x=0.08)
    points = listed(f"{way} {each.mean():.2f} ({each.min():.2f} to {each.max():.2f})" for way, each in values.items())
    return described(
        fig,
        f"The loss within the trained length, the mean over the seeds and their range: {points}.",
        "Each dot is one seed, a ring is the mean of five. The axis does not begin at 0.",
    )


def wave_table(table: Any) -> Figure:
    """Draw the waves: a curve for each of a few columns of the table (n, d_model), one above the other."""
    table = np.asarray(table, dtype=float)
    n, width = table.shape
    columns = list(range(0, width, 2))
    fig = new_figure(620, 50 * len(columns) + 60)
    height = 50 * len(columns) + 60
    ax = fig.add_axes((0.15, 48 / height, 0.83, 1 - 56 / height))
    for row, column in enumerate(columns):
        for offset, colour, line in ((0, palette.BROWN, "-"), (1, palette.INK, ":")):
            ax.plot(range(n), row - 0.42 * table[:, column + offset], color=colour, linestyle=line, linewidth=1.8)
    ax.set_yticks(range(len(columns)), [f"{column}, {column + 1}" for column in columns])
    ax.set(xlim=(0, n - 1), ylim=(len(columns) - 0.5, -0.5), xlabel="position", ylabel="columns")
    return described(
        fig,
        f"Waves over {n} positions: in columns {listed(f'{c} and {c + 1}' for c in columns)} a sine and a cosine, each "
        "pair slower than the one above.",
        "Solid lines are sines, dotted lines cosines. A position is one upright cut through all curves.",
    )


def slopes(each: Sequence[float], most: int = 64) -> Figure:
    """Draw by what factor ALiBi lowers the weight of a key at each distance: a curve for each slope."""
    fig = new_figure(640, 270)
    ax = fig.add_axes((0.1, 0.2, 0.68, 0.75))
    distances = np.arange(most + 1)
    lines = ["-", "--", "-.", ":"]
    for head, slope in enumerate(each):
        name = f"head {head}, 1/{1 / slope:.0f}"
        ax.plot(distances, np.exp(-slope * distances), color=palette.GREEN, linestyle=lines[head % 4], label=name)
    ax.set(xlim=(0, most), ylim=(0, 1.02), xlabel="distance of the key", ylabel="factor of its weight")
    name_lines(ax)
    points = listed(f"{np.exp(-slope * most / 4):.2g} with slope 1/{1 / slope:.0f}" for slope in each)
    return described(
        fig,
        f"The factor by which ALiBi lowers a weight, by distance. At distance {most // 4} it is {points}.",
        "A steep slope sees the last few keys only. A gentle one sees nearly all.",
    )


def by_base(at: Any, losses: Mapping[float, Any], own: float) -> Figure:
    """Draw by how much the loss of a real model rises at each position when the base of its rotation is changed.

    at: positions (points,). losses: base -> (points,), nats per token. own: the model's own base.
    """
    at = np.asarray(at, dtype=float)
    rises = {base: np.asarray(each) - np.asarray(losses[own]) for base, each in losses.items() if base != own}
    fig = new_figure(680, 300)
    ax = fig.add_axes((0.1, 0.18, 0.68, 0.78))
    looks = [(palette.BLUE, ":"), (palette.BROWN, "--"), (palette.TEAL, "-."), (palette.PURPLE, "-")]
    for (colour, line), (base, rise) in zip(looks, rises.items(), strict=False):
        ax.plot(at, rise, color=colour, linestyle=line, label=f"base {base:,.0f}")
    ax.axhline(0, color=palette.INK, linewidth=1)
    ax.set(xlim=(0, at[-1]), xlabel="position in the text", ylabel="rise in loss (nats per token)")
    name_lines(ax)
    points = "; ".join(
        f"base {base:,.0f}: {rise[0]:.2f} at first, {rise[-1]:.2f} at last" for base, rise in rises.items()
    )
    return described(
        fig,
        f"The rise in loss by position when SmolLM2's base of {own:,.0f} is replaced. {points}.",
        f"The line at 0 is the model with its own base, {own:,.0f}.",
    )


def _near(at: np.ndarray, each: np.ndarray, place: float) -> float:
    """The mean over seeds at the position nearest to a place."""
    return float(each[:, np.abs(at - place).argmin()].mean())
