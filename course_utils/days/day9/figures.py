"""The drawings of day 9: whose part is which, heads by score and switched off, vocabularies, ablations, a training."""

from __future__ import annotations

import statistics
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
    """Draw the score of each head, a panel for each kind, layers in rows. scores: kind -> (layers, heads)."""
    fig = new_figure(720, 330)
    fig.set_layout_engine("constrained")
    axes = fig.subplots(1, len(scores))
    told = []
    for ax, (kind, each) in zip(axes, scores.items(), strict=True):
        numbers = np.asarray(each)
        image = ax.imshow(numbers, cmap=palette.colormap(), vmin=0, vmax=1, aspect="auto")
        ax.set(title=kind, xlabel="head", xticks=range(0, numbers.shape[1], 2))
        layer, head = np.unravel_index(numbers.argmax(), numbers.shape)
        layers = np.unique(np.nonzero(numbers > 0.5)[0])
        told.append(
            f"{kind}: {(numbers > 0.5).sum()} heads above 0.5, in layers {layers.min()} to {layers.max()}, the most "
            f"{numbers.max():.2f}, head {head} of layer {layer}"
        )
    axes[0].set_ylabel("layer")
    fig.colorbar(image, ax=axes, label="score", fraction=0.05, pad=0.02)
    return described(fig, f"The score of each head, 0 to 1, by layer: {'; '.join(told)}.", f"{'; '.join(told)}.")


def switched_off(kinds: Mapping[str, Dissection]) -> Figure:
    """Draw what the best heads of each kind cost on the second copy and on a text, beside as many others."""
    fig = new_figure(720, 260)
    told = []
    panels = (("second copy of random tokens", lambda each: each.by_copy[1]), ("plays", lambda each: each.text))
    for ax, (title, loss) in zip(fig.subplots(1, 2), panels, strict=True):
        for place, (kind, found) in enumerate(kinds.items()):
            rise, *others = (loss(each) - loss(found.whole) for each in (found.without, *found.others))
            bar = ax.bar(place, rise, 0.5, color=palette.WRONG)
            ax.bar_label(bar, fmt="%+.2f", padding=2, color=palette.WRONG)
            ax.plot([place + 0.36] * len(others), others, "_", color=palette.INK, markersize=10)
            told.append(f"{title}, {kind}: {rise:+.2f}, others {min(others):+.2f} to {max(others):+.2f}")
        ax.axhline(0, color=palette.INK, linewidth=1)
        ax.set_xticks(range(len(kinds)), [kind.replace(" ", "\n") for kind in kinds])
        ax.set(title=title, ylabel="rise of the loss (nats)")
        ax.margins(y=0.2)
    fig.tight_layout()
    return described(
        fig,
        f"By how much the loss rises with eight heads of each kind off: {'; '.join(told)}.",
        "Red bars: these eight heads off. A dash beside a bar is one draw of eight other heads.",
    )


def vocabularies(
    sizes: Sequence[int],
    lengths: Sequence[float],
    nats: Sequence[float],
    bits: Sequence[float],
    held_out: Sequence[float],
) -> Figure:
    """Draw against the vocabulary: bytes per token, and what counting pairs costs per token and per byte."""
    fig = new_figure(720, 240)
    axes = fig.subplots(1, 3)
    titles = ("bytes per token", "nats per token, by pairs", "bits per byte, by pairs")
    told = []
    for ax, numbers, title in zip(axes, (lengths, nats, bits), titles, strict=True):
        _by_size(ax, sizes, numbers, title)
        told.append(f"{title}: {_points(sizes, numbers)}")
    axes[2].plot(sizes, held_out, color=palette.BLUE, marker="s", linestyle="--")
    axes[2].set_ylim(0, 1.12 * max(held_out))
    axes[2].text(sizes[-1], held_out[-1] + 0.3, "held out", ha="right", color=palette.BLUE)
    axes[2].text(sizes[-1], bits[-1] - 0.5, "counted", ha="right", color=palette.QUERY)
    fig.tight_layout()
    return described(
        fig,
        f"Against the size of the vocabulary: {'; '.join(told)}; on held-out text: {_points(sizes, held_out)}.",
        "Violet: on the text that was counted. Dashed: the same counts, smoothed, on held-out text.",
    )


def _points(sizes: Sequence[int], numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.2f} at {size:,}" for size, number in zip(sizes, numbers, strict=True))


def _by_size(ax: Axes, sizes: Sequence[int], numbers: Sequence[float], title: str) -> None:
    ax.plot(sizes, numbers, color=palette.QUERY, marker="o")
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(sizes), [f"{size:,}" for size in sizes])
    ax.set(title=title, xlabel="vocabulary", ylim=(0, 1.12 * max(numbers)))


def taken_away(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw by how many bits per byte each ablation is worse, seed by seed.

    rows: as `ablations` gives them, the model with everything first.
    """
    ablations = rows[1:]
    in_rows, below, above = 26 * len(ablations), 54, 8
    height = in_rows + below + above
    fig = new_figure(680, height)
    ax = fig.add_axes((0.36, below / height, 0.6, in_rows / height))
    ax.axvline(0, color=palette.INK, linestyle=":", linewidth=1)
    words = []
    for place, row in enumerate(ablations):
        worse = row["worse"]
        mean = statistics.fmean(worse)
        colour = palette.WRONG if min(worse) > 0 else palette.GREEN if max(worse) < 0 else palette.INK
        ax.plot(worse, [place] * len(worse), "o", color=colour, markersize=5, alpha=0.5, markeredgewidth=0)
        ax.plot(mean, place, "|", color=colour, markersize=16, markeredgewidth=2)
        words.append(f"{row['way']} {mean:+.3f} ({min(worse):+.3f} to {max(worse):+.3f})")
    ax.set_yticks(range(len(ablations)), [row["way"] for row in ablations])
    ax.set_ylim(len(ablations) - 0.5, -0.5)
    ax.set_xlabel("bits per byte more than with everything, on held-out text")
    return described(
        fig,
        "Bits per byte more than with everything, mean of five seeds with the least and the largest: "
        f"{'; '.join(words)}.",
        "A dot is one seed, a tick the mean of five. Red: worse with each seed. Green: better with each.",
    )


def run(
    losses: Sequence[float],
    rates: Sequence[float],
    norms: Sequence[float],
    averaged: int,
    floors: Mapping[str, float],
) -> Figure:
    """Draw a training by step, each point the mean of so many: its loss with some floors, its rate, gradient norms."""
    fig = new_figure(720, 240)
    axes = fig.subplots(1, 3, width_ratios=(1.5, 1, 1))
    steps = averaged * (np.arange(len(losses)) + 0.5)
    panels = (
        (losses, "loss (nats per token)", palette.QUERY),
        (rates, "learning rate", palette.GREEN),
        (norms, "norm of the gradient", palette.BLUE),
    )
    told = []
    for ax, (numbers, title, colour) in zip(axes, panels, strict=True):
        ax.plot(steps, numbers, color=colour)
        ax.set(title=title, xlabel="step", ylim=(0, None))
        told.append(f"{title} {numbers[0]:.3g} at first, {max(numbers):.3g} at most, {numbers[-1]:.3g} at the end")
    axes[0].set_ylim(2, 7.6)
    axes[2].axhline(1, color=palette.INK, linestyle=":", linewidth=1)
    for name, floor in floors.items():
        axes[0].axhline(floor, color=palette.INK, linestyle="--", linewidth=1)
        label = f"{name}: {floor:.2f}"
        if floor == min(floors.values()):  # the curve crosses it on the right
            axes[0].text(0, floor - 0.06, label, ha="left", va="top")
        else:
            axes[0].text(steps[-1], floor + 0.06, label, ha="right", va="bottom")
    fig.tight_layout()
    return described(
        fig,
        f"A training by step, each point the mean of {averaged} steps: {'; '.join(told)}. Dashed beside the loss: "
        f"{listed([f'{name} {floor:.2f}' for name, floor in floors.items()])}.",
        f"Each point is the mean of {averaged} steps. Dotted: the norm to which a gradient is clipped.",
    )


def at_equal_minutes(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the bits per byte of each training of the benchmark, a bar for each."""
    fig = new_figure(680, 220)
    ax = fig.add_axes((0.36, 0.28, 0.56, 0.68))
    colours = [palette.INK, palette.INK, palette.BLUE, palette.QUERY]
    bars = ax.barh([row["model"] for row in rows], [row["bits_per_byte"] for row in rows], color=colours)
    sizes = [f"{row['seconds']:.0f} s, {row['parameters'] / 1e6:.2f} M weights" for row in rows]
    ax.bar_label(
        bars, [f"{row['bits_per_byte']:.2f}: {size}" for row, size in zip(rows, sizes, strict=True)], padding=4
    )
    ax.set_xlim(right=1.8 * max(row["bits_per_byte"] for row in rows))
    ax.invert_yaxis()
    ax.set_xlabel("bits per byte on held-out text")
    told = "; ".join(
        f"{row['model']} {row['bits_per_byte']:.2f} in {size}" for row, size in zip(rows, sizes, strict=True)
    )
    best = min(rows[:2], key=lambda row: row["bits_per_byte"])
    return described(
        fig,
        f"Bits per byte on held-out text: {told}.",
        f"At equal minutes ours has {rows[-1]['bits_per_byte'] / best['bits_per_byte']:.2f} times as many bits.",
    )
