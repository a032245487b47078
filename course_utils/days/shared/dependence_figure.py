"""Figure of which output depends on which token, with one map per layer or function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STROKES = ["-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2))]
_MARKS = [None, "o", "s", "^"]  # so that two lines that coincide can both be seen


def dependence_maps(maps: Any, tolerance: float = 1e-12) -> Figure:
    """Draw how strongly each output (row) depends on each token (column), as a grid of numbers per implementation.

    All grids share one colour scale. A number above the diagonal that exceeds the tolerance is a leak; it is framed and
    has the colour of errors.

    Args:
        maps: title -> (T, T) amounts, not negative.
    """
    maps = {title: np.asarray(amounts, dtype=float) for title, amounts in maps.items()}
    height = 84 + 690 / len(maps)
    fig = new_figure(720, height)
    largest = max(tolerance, *(amounts.max() for amounts in maps.values()))  # the darkest square of all maps
    sentences = []
    for ax, (title, amounts) in zip(np.atleast_1d(fig.subplots(1, len(maps))), maps.items(), strict=True):
        T = len(amounts)
        sentences.append(f"{title}: {_describe_leaks(amounts, tolerance)}")
        for (i, j), amount in np.ndenumerate(amounts):
            leak = j > i and amount > tolerance
            level = round(200 * amount / largest)
            # the cell's colour, the colour of its number, and the number
            if leak:
                face, ink = palette.WRONG, palette.ink_on(palette.WRONG)
            elif amount > tolerance:
                face, ink = palette.colormap()(level), palette.ink(level)
            else:
                face, ink = "none", palette.INK
            front = 3 if leak else 2
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor=face, edgecolor=palette.INK, linewidth=1, zorder=front))
            text = "0"
            if amount > tolerance:
                text = "<.01" if amount < 0.01 else f"{amount:.2f}"
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=10, color=ink, zorder=4)
        ax.set(xlim=(0, T), ylim=(T, 0), aspect="equal")
        ax.set_title(title, pad=8)
        ax.set_xlabel("token $j$", labelpad=3)
        ax.xaxis.set_label_position("top")
        ax.set_xticks(np.arange(T) + 0.5, range(T))
        ax.set_yticks(np.arange(T) + 0.5, range(T))
        ax.xaxis.tick_top()
        ax.tick_params(length=0, pad=2)
        ax.spines[:].set_visible(False)
    fig.axes[0].set_ylabel("output $i$", labelpad=3)
    fig.subplots_adjust(left=0.06, right=0.99, top=1 - 56 / height, bottom=30 / height, wspace=0.12)
    fig.add_artist(Rectangle((0.06, 8 / height), 14 / 720, 14 / height, facecolor=palette.WRONG, edgecolor=palette.INK))
    key = "leak: output $i$ depends on token $j$, which comes later"
    fig.text(0.06 + 20 / 720, 15 / height, key, va="center_baseline")
    if len(maps) > 1:
        fig.text(0.99, 15 / height, f"one colour scale: 0 to {largest:.2f}", va="center_baseline", ha="right")
    return described(
        fig,
        f"Grids of slopes, outputs in rows, tokens in columns. {'; '.join(sentences)}.",
        ("All maps share one colour scale. " if len(maps) > 1 else "")
        + "Leaks, slopes above the diagonal: "
        + _count_each(maps, lambda amounts: np.triu(amounts > tolerance, 1))
        + " On the diagonal and below, no slope of causal attention is 0; zeros there: "
        + _count_each(maps, lambda amounts: np.tril(amounts <= tolerance)),
    )


def _count_each(maps, chosen):
    """Count the places that a function chooses in each map, and say the numbers."""
    return ", ".join(f"{title} {chosen(amounts).sum()}" for title, amounts in maps.items()) + "."


def _describe_leaks(amounts, tolerance):
    """Describe the amounts above the diagonal in words."""
    ahead = np.triu(amounts, 1)
    if not (ahead > tolerance).any():
        return "zeros above the diagonal, no leak"
    i, j = np.unravel_index(ahead.argmax(), ahead.shape)
    pairs = len(amounts) * (len(amounts) - 1) // 2
    return (
        f"leaks at {(ahead > tolerance).sum()} of {pairs} places above the diagonal, "
        f"the largest {ahead[i, j]:.2f} at output {i}, token {j}"
    )
