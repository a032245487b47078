"""The drawing of the page of variants, which every class gets: what an index finds of the keys of a head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

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
