"""How figures look: their face, their ink, and names beside lines."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.views import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONTS = Path(__file__).with_name("fonts")
STYLE: dict[Any, Any] = {
    "font.family": ["Course Sans", "DejaVu Sans"],  # the second for signs that the first lacks
    "font.size": 11,
    "mathtext.fontset": "stix",
    "text.color": palette.INK,
    "axes.edgecolor": palette.INK,
    "axes.labelcolor": palette.INK,
    "axes.facecolor": "none",
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "none",
    "grid.alpha": 0.35,
    "grid.color": palette.INK,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "patch.edgecolor": palette.INK,
    "xtick.color": palette.INK,
    "xtick.labelsize": 10.5,
    "ytick.color": palette.INK,
    "ytick.labelsize": 10.5,
}


def use_style() -> None:
    """Set matplotlib's defaults for text and axes. They stay set, so a learner's own plots are legible on dark too."""
    import matplotlib

    _register_fonts()
    matplotlib.rcParams.update(STYLE)


def name_lines(ax: Axes) -> None:
    """Write the name of each line beside its last point, after a sample of it, in place of a legend.

    Call it last: names stand where limits and margins put the points. Those that would collide are moved apart, and a
    thin stroke leads to each.
    """
    from matplotlib.lines import Line2D

    fig = _laid_out(ax)
    inches = fig.dpi_scale_trans.inverted()
    (right, bottom), (_, top) = inches.transform(ax.transAxes.transform([(1, 0), (1, 1)]))
    columns: dict[float, list[tuple[float, float, Line2D, str]]] = {}
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        line: Any = handle[0] if isinstance(handle, tuple) else handle  # of error bars the first is the line
        x, y = inches.transform(line.get_transform().transform(line.get_xydata()[-1]))
        at = max(x, right) if right - x < 0.5 else x  # what ends near the edge has its name in one column
        columns.setdefault(at, []).append((min(max(y, bottom), top), x, line, name))
    for at, ends in columns.items():
        ends.sort(key=lambda end: end[0])
        for (y, x, line, name), level in zip(ends, spread([end[0] for end in ends], 0.19), strict=True):
            sample = Line2D([at + 0.12, at + 0.22, at + 0.32], [level] * 3)
            sample.update_from(line)
            sample.set(transform=fig.dpi_scale_trans, clip_on=False, markevery=[1])
            stroke = Line2D([x + 0.05, at + 0.1], [y, level], color=line.get_color(), linewidth=0.7)
            stroke.set_transform(fig.dpi_scale_trans)
            fig.add_artist(sample)
            fig.add_artist(stroke)
            fig.text(at + 0.39, level, name, fontsize=10.5, va="center_baseline", transform=fig.dpi_scale_trans)


def rule_between_texts(ax: Axes, x: float) -> None:
    """Draw an upright dotted line at x, with gaps where it would cross texts; call it when these have their places."""
    _laid_out(ax)
    at = ax.transData.transform((x, 1))[0]
    boxes = [text.get_window_extent() for text in ax.texts]
    to_axes = ax.transAxes.inverted().transform
    gaps = sorted(tuple(to_axes(box.padded(2))[:, 1]) for box in boxes if box.x0 < at < box.x1)
    starts, ends = [0, *(high for _, high in gaps)], [*(low for low, _ in gaps), 1]
    for start, end in zip(starts, ends, strict=True):
        ax.axvline(x, start, end, color=palette.INK, linestyle=":", linewidth=1)


def typeset(text: str) -> str:
    """Words with d_k, √d_k, h_kv and their like as formulas; a subscript that is a word stands upright.

    A dollar in them stays a dollar.
    """
    return re.sub(r"(√?)\b([a-zA-Z])_([kvqoKVQO]|kv|ff|head|model|old|new)\b", _as_formula, text.replace("$", r"\$"))


def listed(words: Iterable[object]) -> str:
    """Words as a sentence has them: "a", "a and b", "a, b and c"."""
    *before, last = map(str, words)
    return f"{', '.join(before)} and {last}" if before else last


def _laid_out(ax):
    """Return the figure of axes, with limits and places as they will be drawn."""
    fig = ax.get_figure(root=True)
    fig.draw_without_rendering()
    return fig


def _as_formula(match):
    root, letter, below = match.groups()
    symbol = f"{letter}_{below}" if len(below) == 1 else rf"{letter}_{{\mathrm{{{below}}}}}"
    return rf"$\sqrt{{{symbol}}}$" if root else f"${symbol}$"


def spread(places: list[float], apart: float) -> list[float]:
    """Places in rising order, moved as little as needed to lie `apart` or more from each other."""
    groups: list[list[float]] = []  # of neighbours that touch: where each wants the first of its group to be
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _mean(groups[-1]) < _mean(groups[-2]) + len(groups[-2]) * apart:
            last = groups.pop()
            groups[-1] += [wish - len(groups[-1]) * apart for wish in last]
    return list(itertools.chain.from_iterable([_mean(g) + i * apart for i in range(len(g))] for g in groups))


def _mean(wishes):
    return sum(wishes) / len(wishes)


@functools.cache
def _register_fonts():
    from matplotlib.font_manager import fontManager

    for path in sorted(FONTS.glob("*.ttf")):
        fontManager.addfont(path)
