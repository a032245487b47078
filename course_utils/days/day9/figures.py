"""The drawings of day 9: whose part is which, heads by score and switched off, vocabularies, ablations, a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.views import palette
from course_utils.views.drawing import listed
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from course_utils.models.dissection import Dissection

_STAGES = ("tokens", "embedding", "norm", "split", "rotate", "mask", "attention", "merge", "feed-forward", "write")
_PARTS = {"split": "split_heads", "rotate": "rotate", "mask": "mask", "attention": "grouped_attention"} | {
    "merge": "merge_heads", "write": "writes", "norm": "block", "feed-forward": "block",
}  # fmt: skip


def whose(days: Mapping[str, int]) -> Figure:
    """Draw the model as a strip of its functions, with the day of the exercise that fills each. days: part -> day."""
    fig = new_figure(720, 120)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, len(_STAGES)), ylim=(0, 1))
    ax.axis("off")
    told = []
    for place, stage in enumerate(_STAGES):
        day = days.get(_PARTS.get(stage, ""))
        colour = palette.QUERY if day else palette.INK
        ax.text(
            place + 0.5, 0.62, stage, ha="center", va="center", color=colour, fontsize=10,
            bbox={"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": colour, "linewidth": 2 if day else 1},
        )  # fmt: skip
        ax.text(place + 0.5, 0.2, f"day {day}" if day else "course", ha="center", va="center", color=colour)
        told.append(f"{stage} ({f'day {day}' if day else 'the course'})")
    return described(
        fig,
        f"The functions of the model from left to right, and whose each is: {listed(told)}.",
        "Violet functions are answers to exercises, with the day. Norm to feed-forward repeat in each of 30 layers.",
    )


def heads(scores: Mapping[str, Any]) -> Figure:
    """Draw the score of each head, a panel for each kind. scores: kind -> (layers, heads)."""
    fig = new_figure(720, 250)
    told = []
    for ax, (kind, each) in zip(fig.subplots(1, len(scores)), scores.items(), strict=True):
        numbers = np.asarray(each)
        ax.imshow(numbers.T, cmap=palette.colormap(), vmin=0, vmax=1, aspect="auto")
        ax.set(title=kind, xlabel="layer", ylabel="head")
        layer, head = np.unravel_index(numbers.argmax(), numbers.shape)
        told.append(f"{kind}: {(numbers > 0.5).sum()} heads above 0.5, the most {numbers.max():.2f}, "
                    f"head {head} of layer {layer}")  # fmt: skip
    fig.tight_layout()
    return described(fig, f"The score of each head, 0 to 1, by layer: {'; '.join(told)}.", f"{listed(told)}.")


def switched_off(kinds: Mapping[str, Dissection]) -> Figure:
    """Draw the loss on the second copy and on a text with the best heads of each kind off, beside as many others."""
    fig = new_figure(720, 260)
    told = []
    panels = (("second copy of random tokens", lambda each: each.by_copy[1]), ("plays", lambda each: each.text))
    for ax, (title, loss) in zip(fig.subplots(1, 2), panels, strict=True):
        for place, (kind, found) in enumerate(kinds.items()):
            others = [loss(each) for each in found.others]
            bar = ax.bar(place, loss(found.without), 0.5, color=palette.WRONG)
            ax.bar_label(bar, fmt="%.2f")
            ax.plot([place + 0.36] * len(others), others, "_", color=palette.INK, markersize=10)
            told.append(f"{title}, {kind}: {loss(found.without):.2f}, others {min(others):.2f} to {max(others):.2f}")
        ax.axhline(loss(found.whole), color=palette.INK, linestyle=":", linewidth=1)
        told.append(f"{title}, all heads on: {loss(found.whole):.2f}")
        ax.set_xticks(range(len(kinds)), [kind.replace(" ", "\n") for kind in kinds])
        ax.set(title=title, ylabel="loss (nats per token)", ylim=(0, 1.12 * ax.get_ylim()[1]))
    fig.tight_layout()
    return described(
        fig,
        f"The loss with eight heads of each kind off: {'; '.join(told)}.",
        "Dotted: all heads on. A dash beside each bar is one draw of eight other heads.",
    )


def vocabularies(
    sizes: Sequence[int], lengths: Sequence[float], nats: Sequence[float], bits: Sequence[float]
) -> Figure:
    """Draw against the vocabulary: bytes per token, and a counting model's loss per token and per byte."""
    fig = new_figure(720, 240)
    titles = ("bytes per token", "nats per token, by pairs", "bits per byte, by pairs")
    told = []
    for ax, numbers, title in zip(fig.subplots(1, 3), (lengths, nats, bits), titles, strict=True):
        _by_size(ax, sizes, numbers, title)
        points = ", ".join(f"{number:.2f} at {size:,}" for size, number in zip(sizes, numbers, strict=True))
        told.append(f"{title}: {points}")
    fig.tight_layout()
    return described(
        fig,
        f"Against the size of the vocabulary: {'; '.join(told)}.",
        "A larger vocabulary has fewer and longer tokens. Each is harder to tell, and each byte easier.",
    )


def _by_size(ax: Axes, sizes: Sequence[int], numbers: Sequence[float], title: str) -> None:
    ax.plot(sizes, numbers, color=palette.QUERY, marker="o")
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(sizes), [f"{size:,}" for size in sizes])
    ax.set(title=title, xlabel="vocabulary", ylim=(0, 1.12 * max(numbers)))


def taken_away(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the bits per byte of each ablation: the mean as a dot, least to largest as a bar. rows as `ablations`."""
    fig = new_figure(680, 40 + 26 * len(rows))
    ax = fig.add_axes((0.36, 0.15, 0.6, 0.83))
    shipped = rows[0]
    ax.axvspan(shipped["low"], shipped["high"], color=palette.INK, alpha=0.2, linewidth=0)
    for place, row in enumerate(rows):
        worse = row["low"] > shipped["high"]
        colour = palette.WRONG if worse else palette.GREEN if row["high"] < shipped["low"] else palette.INK
        ax.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=5, alpha=0.5, solid_capstyle="butt")
        ax.plot(row["mean"], place, "o", color=colour)
    ax.set_yticks(range(len(rows)), [row["way"] for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("bits per byte on held-out text")
    told = "; ".join(f"{row['way']} {row['mean']:.2f} ({row['low']:.2f} to {row['high']:.2f})" for row in rows)
    return described(
        fig,
        f"Bits per byte on held-out text, mean of five seeds with the least and the largest: {told}.",
        "A bar reaches from the least to the largest of five seeds. Grey is the range of the model as it ships.",
    )


def run(losses: Sequence[float], rates: Sequence[float], norms: Sequence[float], averaged: int) -> Figure:
    """Draw a training: its loss, learning rate and gradient norm by step, each the mean of so many steps."""
    fig = new_figure(720, 240)
    steps = averaged * (np.arange(len(losses)) + 0.5)
    panels = ((losses, "loss (nats per token)", palette.QUERY), (rates, "learning rate", palette.GREEN))
    told = []
    for ax, (numbers, title, colour) in zip(
        fig.subplots(1, 3), (*panels, (norms, "norm of the gradient", palette.BLUE)), strict=True
    ):
        ax.plot(steps, numbers, color=colour)
        ax.set(title=title, xlabel="step", ylim=(0, None))
        told.append(f"{title} {numbers[0]:.3g} at first, {max(numbers):.3g} at most, {numbers[-1]:.3g} at the end")
    fig.tight_layout()
    return described(
        fig,
        f"A training by step, each point the mean of {averaged} steps: {'; '.join(told)}.",
        f"Each point is the mean of {averaged} steps.",
    )
