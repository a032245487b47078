"""The drawings of day 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from course_utils.views import palette
from course_utils.views.picture import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOKENS = [palette.QUERY, palette.KEY, palette.VALUE, palette.OUTPUT]
_PARTS = [(palette.OUTPUT, "-"), (palette.QUERY, "-"), (palette.FAINT, (0, (4, 2))), (palette.VALUE, "-")]


def numbered_grids(groups: Any, cell: float = 34) -> Figure:
    """Grids of numbered entries, side by side in groups: the tens say the token, and so does the colour.

    groups: title of the group -> {title of the grid: (rows, columns) whole numbers, below 40}. cell: the side of one
    square in CSS pixels. Raises ValueError for a number that names no token.
    """
    groups = {title: {name: np.asarray(grid) for name, grid in grids.items()} for title, grids in groups.items()}
    gap, between = 20, 44  # CSS pixels, within a group and between two
    rows = max(len(grid) for grids in groups.values() for grid in grids.values())
    wide = [sum(cell * grid.shape[1] + gap for grid in grids.values()) - gap for grids in groups.values()]
    wide = [max(columns, 7 * len(title)) for columns, title in zip(wide, groups, strict=True)]
    width, height = sum(wide) + between * (len(groups) - 1) + 20, cell * rows + 62
    fig = new_figure(width, height)
    start = 10
    for (title, grids), columns in zip(groups.items(), wide, strict=True):
        fig.text(start / width, 1 - 6 / height, title, fontsize=10, color=palette.INK, va="top")
        left = start
        for name, grid in grids.items():
            size = cell * grid.shape[1] / width, cell * grid.shape[0] / height
            _numbers(fig.add_axes((left / width, 1 - 52 / height - size[1], *size)), name, grid)
            left += cell * grid.shape[1] + gap
        start += columns + between
    return fig


def _numbers(ax, name, grid):
    for (row, column), number in np.ndenumerate(grid):
        token = int(number) // 10
        if not 0 <= token < len(_TOKENS):
            raise ValueError(f"{number} names token {token}: the tens must be 0 to {len(_TOKENS) - 1}")
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor=_TOKENS[token], alpha=0.3, linewidth=0))
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor="none", edgecolor=palette.LINE, linewidth=1))
        ax.text(column + 0.5, row + 0.52, f"{number:02d}", ha="center", va="center", fontsize=11, color=palette.INK)
    ax.set(xlim=(0, grid.shape[1]), ylim=(grid.shape[0], 0), xticks=[], yticks=[])
    ax.spines[:].set_color(palette.FAINT)
    ax.set_title(name, fontsize=9, color=palette.INK, pad=5, loc="left")


def sharing(n_heads: int, kv_heads: Sequence[int]) -> Figure:
    """Which query head reads which key/value head: a row of query heads over a row of key/value heads, with lines.

    kv_heads: title -> number of key/value heads, a divisor of n_heads; neighbours share one.
    """
    fig = new_figure(720, 180)
    for ax, (title, few) in zip(np.atleast_1d(fig.subplots(1, len(kv_heads))), kv_heads.items(), strict=True):
        group = n_heads // few
        for head in range(n_heads):
            shared = head // group
            below = shared * group + (group - 1) / 2
            ax.plot([head, below], [0.75, 0.2], color=palette.FAINT, linewidth=1.2, zorder=1)
            _head(ax, head, 0.75, head, palette.QUERY)
            if head % group == 0:
                _head(ax, below, 0.2, shared, palette.KEY)
        ax.set(xlim=(-0.6, n_heads - 0.4), ylim=(0, 1))
        ax.set_title(title, fontsize=10, color=palette.INK, pad=6)
        ax.axis("off")
    fig.subplots_adjust(left=0.15, right=0.99, top=0.86, bottom=0.02, wspace=0.1)
    box = fig.axes[0].get_position()
    for height, name in ((0.75, "query heads"), (0.2, "key/value heads")):
        fig.text(0.01, box.y0 + height * box.height, name, fontsize=9, color=palette.INK, va="center")
    return fig


def _head(ax, x, y, number, colour):
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
    ax.text(x, y, str(number), ha="center", va="center", fontsize=9, color=palette.INK, bbox=box, zorder=2)


def crossover_lines(lengths: Any, flops: Any, crossings: Any) -> Figure:
    """FLOPs of the parts of a layer against the length, both logarithmic, and where the core meets the others.

    lengths: T in order of size; flops: name -> FLOPs at each length, at most four, the core first; crossings:
    name -> T at which the core meets that part, marked on the core's line.
    """
    fig = new_figure(720, 340)
    ax = fig.subplots()
    for (colour, style), (name, counts) in zip(_PARTS, flops.items(), strict=False):
        ax.plot(lengths, counts, color=colour, linestyle=style, linewidth=2, label=name)
    core = np.asarray(next(iter(flops.values())), dtype=float)
    for name, length in crossings.items():
        height = np.exp(np.interp(np.log(length), np.log(lengths), np.log(core)))
        ax.plot([length], [height], marker="o", color=palette.INK, markersize=6, linestyle="none", zorder=4)
        words = {"fontsize": 9, "color": palette.INK, "va": "top", "textcoords": "offset points", "xytext": (14, -22)}
        ax.annotate(f"equal to the {name} at T = {length:,}", (length, height), **words)
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="FLOPs of one layer", xlim=(lengths[0], lengths[-1]))
    _powers_of_two(ax, lengths)
    _plain(ax)
    ax.legend(loc="upper left", frameon=False, fontsize=9)
    fig.subplots_adjust(left=0.1, right=0.95, top=0.97, bottom=0.15)
    return fig


def measured_ratio(lengths: Any, predicted: Any, measured: Any, against: str) -> Figure:
    """Time of the core over that of another part, as measured, beside what counting FLOPs predicts.

    lengths: T in order of size; predicted: the ratio at each; measured: name -> a Timing of ratios at each length, with
    median, low and high, at most two names; against: the other part, for the label.
    """
    fig = new_figure(720, 320)
    ax = fig.subplots()
    ax.plot(lengths, predicted, color=palette.INK, linewidth=1.6, linestyle=(0, (4, 2)), label="predicted from FLOPs")
    kinds = ((palette.KEY, "o"), (palette.QUERY, "s"))
    for (colour, marker), (name, ratios) in zip(kinds, measured.items(), strict=False):
        median, low, high = (np.array([getattr(ratio, part) for ratio in ratios]) for part in ("median", "low", "high"))
        line = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.4, "capsize": 3}
        ax.errorbar(lengths, median, yerr=[median - low, high - median], label=name, **line)
    ax.axhline(1, color=palette.FAINT, linewidth=1, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel=f"core / {against}")
    _powers_of_two(ax, lengths)
    _plain(ax)
    ax.legend(loc="upper left", frameon=False, fontsize=9)
    fig.subplots_adjust(left=0.1, right=0.97, top=0.97, bottom=0.16)
    return fig


def induction_path(tokens: Sequence[str], period: int) -> Figure:
    """How two layers repeat: layer 0 writes into a token what stood before it, layer 1 finds it there.

    tokens: labels of a text whose second part repeats the first, `period` tokens on. The question is what follows the
    last token; it looks at the token after its first occurrence.
    """
    last, found = len(tokens) - 1, len(tokens) - period
    fig = new_figure(720, 250)
    ax = fig.subplots()
    for place, token in enumerate(tokens):
        asks, answers = place == last, place == found
        edge = palette.QUERY if asks else palette.KEY if answers else palette.LINE
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": edge, "linewidth": 1 + (asks or answers)}
        ax.text(place, 0, token, ha="center", va="center", fontsize=12, color=palette.INK, bbox=box, zorder=3)
    _arc(ax, found - 1, found, 0.9, palette.VALUE)
    _arc(ax, found, last, -0.34, palette.QUERY)
    words = {"ha": "center", "fontsize": 10, "color": palette.INK}
    ax.text(found - 0.5, -0.95, f"layer 0: “before me came {tokens[found - 1]}”", va="top", **words)
    ax.text((found + last) / 2, 1.28, f"layer 1: “who had {tokens[last]} before it?”", va="bottom", **words)
    ax.text(last + 0.62, 0, f"so guess {tokens[found]}", ha="left", va="center", fontsize=10, color=palette.INK)
    ax.set(xlim=(-0.9, last + 2.1), ylim=(-1.6, 1.85))
    ax.axis("off")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    return fig


def _arc(ax, start, end, bend, colour):
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "mutation_scale": 14, "shrinkA": 20, "shrinkB": 20}
    ax.annotate("", xy=(end, 0), xytext=(start, 0), arrowprops={**style, "connectionstyle": f"arc3,rad={bend}"})


def training_curves(steps: Any, losses: Any, scores: Any, floor: float, floor_name: str) -> Figure:
    """Loss over training steps, and below it, on the same steps, the best score of a head of each kind.

    steps: numbers in order; losses and scores: name -> one value a step, at most two names each; floor: a loss drawn as
    a dotted line.
    """
    fig = new_figure(720, 420)
    above, below = fig.subplots(2, 1, sharex=True)
    for ax, curves in ((above, losses), (below, scores)):
        for (colour, style), (name, curve) in zip(
            ((palette.KEY, "-"), (palette.QUERY, "-")), curves.items(), strict=False
        ):
            ax.plot(steps, curve, color=colour, linestyle=style, linewidth=1.8, label=name)
        _plain(ax)
        ax.set(xlim=(0, steps[-1]))
    above.axhline(floor, color=palette.INK, linestyle=":", linewidth=1.2, label=floor_name, zorder=1)
    above.set(ylabel="loss", ylim=(0, None))
    below.set(ylabel="best score", ylim=(0, 1.02), yticks=(0, 0.5, 1), xlabel="training step")
    for ax in (above, below):
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)  # beside the data
    fig.subplots_adjust(left=0.09, right=0.73, top=0.97, bottom=0.12, hspace=0.16)
    return fig


def head_tables(tables: Any) -> Figure:
    """Numbers of every head, layers as rows and heads as columns, one grid for each table, shaded within its table.

    tables: title -> (n_layers, h) numbers; negative ones are white.
    """
    tables = {title: np.asarray(numbers, dtype=float) for title, numbers in tables.items()}
    layers = max(numbers.shape[0] for numbers in tables.values())
    fig = new_figure(720, 44 * layers + 66)
    for ax, (title, numbers) in zip(np.atleast_1d(fig.subplots(1, len(tables))), tables.items(), strict=True):
        largest = max(numbers.max(), 1e-12)
        for (layer, head), number in np.ndenumerate(numbers):
            level = round(235 * min(1.0, max(0.0, number / largest)))
            face = palette.colormap()(level)
            ax.add_patch(Rectangle((head, layer), 1, 1, facecolor=face, edgecolor=palette.LINE, linewidth=1))
            text = f"{round(number, 2) + 0:.2f}".replace("-", "−")
            ax.text(head + 0.5, layer + 0.5, text, ha="center", va="center", fontsize=9.5, color=palette.ink(level))
        ax.set(xlim=(0, numbers.shape[1]), ylim=(numbers.shape[0], 0))
        ax.set_xticks(np.arange(numbers.shape[1]) + 0.5, range(numbers.shape[1]))
        ax.set_yticks(np.arange(numbers.shape[0]) + 0.5, [f"layer {layer}" for layer in range(numbers.shape[0])])
        ax.tick_params(length=0, labelsize=9, colors=palette.INK, pad=3)
        ax.set_xlabel("head", fontsize=9, color=palette.INK, labelpad=2)
        ax.set_title(title, fontsize=10, color=palette.INK, pad=7)
        ax.spines[:].set_visible(False)
    height = 44 * layers + 66
    fig.subplots_adjust(left=0.075, right=0.99, top=1 - 28 / height, bottom=38 / height, wspace=0.3)
    return fig


def _powers_of_two(ax, lengths):
    """Ticks at the lengths that are powers of two, written out, and none between."""
    powers = [2**p for p in range(40) if lengths[0] <= 2**p <= lengths[-1]]
    powers = powers[:: max(1, len(powers) // 6)]
    ax.set_xticks(powers, [f"{power:,}" for power in powers])
    ax.xaxis.set_minor_locator(NullLocator())


def _plain(ax):
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9, colors=palette.INK)
