"""The drawings of the page of variants, which every class gets: what an index finds, and what reads a digit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.models.chosen_keys import Choice

_LOOKS = [
    (palette.INK, ":", None), (palette.QUERY, "-", "o"), (palette.BLUE, "--", "^"), (palette.GREEN, "-.", "s"),
    (palette.OLIVE, "--", "v"),
]  # fmt: skip


def recall_and_weight(choices: Mapping[str, Choice]) -> Figure:
    """Draw recall and the weight that is held against the number of chosen keys, a line for each way to choose."""
    fig = new_figure(740, 330)
    titles = {"recall": "recall of the heaviest keys", "weight": "weight of the chosen keys"}
    for ax, (part, title) in zip(fig.subplots(1, 2), titles.items(), strict=True):
        for (name, choice), (colour, line, mark) in zip(choices.items(), _LOOKS, strict=False):
            ax.plot(choice.counts, getattr(choice, part), color=colour, linestyle=line, marker=mark, label=name)
        ax.set(xlabel="chosen keys", title=title, ylim=(0, 1.04))
    handles, labels = fig.axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="lower center", ncol=3)
    fig.subplots_adjust(left=0.06, right=0.985, top=0.9, bottom=0.34, wspace=0.15)
    points = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{count} keys {recall:.2f} and {weight:.2f}"
            for count, recall, weight in zip(choice.counts, choice.recall, choice.weight, strict=True)
        )
        for name, choice in choices.items()
    )
    return described(
        fig,
        f"Recall of the heaviest keys, and the weight of the chosen keys, by their number. {points}.",
        "An index that misses keys misses mostly light ones.",
    )


def digits(accuracies: Mapping[str, Sequence[float]], images: np.ndarray, attention: np.ndarray) -> Figure:
    """Draw the share of digits that models read right, a dot for each seed, and where a class token looks.

    accuracies: kind of positions -> one for each seed. images: (n, side, side). attention: (n, grid, grid), the weight
    of each patch.
    """
    fig = new_figure(740, 330)
    halves = fig.add_gridspec(1, 2, width_ratios=[1, 1.15], wspace=0.12, left=0.16, right=0.985, bottom=0.17)
    ax = fig.add_subplot(halves[0])
    for place, shares in enumerate(accuracies.values()):
        ax.plot(shares, [place] * len(shares), "o", color=palette.QUERY, alpha=0.6)
        ax.plot(np.median(shares), place, "|", color=palette.INK, markersize=22)
    ax.set_yticks(range(len(accuracies)), list(accuracies))
    ax.set(xlabel="digits read right", title="by positions", ylim=(len(accuracies) - 0.5, -0.5))
    grid = halves[1].subgridspec(2, len(images) // 2, wspace=0.06, hspace=0.06)
    side = images.shape[-1] / attention.shape[-1]  # pixels in a row of a patch
    for place, (image, weights) in enumerate(zip(images, attention, strict=True)):
        panel = fig.add_subplot(grid[place])
        panel.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        rows, columns = np.indices(weights.shape)
        x, y = ((side * each + (side - 1) / 2).ravel() for each in (columns, rows))
        panel.scatter(x, y, s=900 * weights.ravel(), color=palette.QUERY, alpha=0.55, linewidths=0)
        panel.set(xticks=[], yticks=[])
    medians = ", ".join(f"{kind} {np.median(shares):.3f}" for kind, shares in accuracies.items())
    seeds = len(next(iter(accuracies.values())))
    return described(
        fig,
        f"The share of unseen digits read right, for each of {seeds} seeds and their median: {medians}. Beside it "
        f"{len(images)} digits, each with a disc on every patch that grows with the class token's weight on it.",
        "A disc's area is the weight of a patch.",
    )
