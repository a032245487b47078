"""The drawings of day 8's second sitting: sinks by layer, products, a full state, recall, and what models keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator

from course_utils.views import palette
from course_utils.views.drawing import listed
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.costs.zoo import Model

_LOOKS = [
    (palette.QUERY, "-", "o"), (palette.KEY, "--", "^"), (palette.WRONG, "-.", "s"), (palette.OLIVE, ":", "v"),
    (palette.BLUE, "-", "D"), (palette.GREEN, "--", "P"), (palette.INK, ":", "X"), (palette.BROWN, "-.", "*"),
]  # fmt: skip


def first_token(shares: Sequence[float], sizes: Sequence[float]) -> Figure:
    """Draw by layer how much attention the first token gets, and how long its values are beside the others'."""
    fig = new_figure(720, 270)
    layers = range(len(shares))
    panels = (
        (shares, palette.WEIGHT, "share of attention on the first token"),
        (sizes, palette.VALUE, "size of its values, others' = 1"),
    )
    for ax, (numbers, colour, title) in zip(fig.subplots(1, 2), panels, strict=True):
        ax.bar(layers, numbers, color=colour)
        ax.set_title(title)
        ax.set_xlabel("layer")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    fig.axes[1].axhline(1, color=palette.INK, linewidth=1, linestyle=":")
    fig.tight_layout()
    high = [layer for layer in layers if shares[layer] > 0.2]
    return described(
        fig,
        "Two panels of bars over the layers. Share on the first token: "
        + ", ".join(f"{share:.2f}" for share in shares)
        + ". Size of its values: "
        + ", ".join(f"{size:.2f}" for size in sizes)
        + ".",
        f"From layer {high[0]} on the first token gets {min(shares[i] for i in high):.2f} to "
        f"{max(shares):.2f} of all attention, and its values are {min(sizes[i] for i in high):.2f} to "
        f"{max(sizes[i] for i in high):.2f} times as long as the others'.",
    )


def products(lengths: Sequence[int], by_scores: Sequence[float], by_state: Sequence[float]) -> Figure:
    """Draw the multiplications of both orders against the length of a text, on logarithmic axes."""
    fig = new_figure(620, 270)
    ax = fig.add_subplot()
    ax.plot(lengths, by_scores, color=palette.WRONG, linestyle="--", marker="s", label=r"$(QK^\top)\,V$")
    ax.plot(lengths, by_state, color=palette.QUERY, marker="o", label=r"$Q\,(K^\top V)$")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(list(lengths), [f"{length:,}" for length in lengths])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="tokens", ylabel="multiplications")
    ax.legend()
    fig.tight_layout()
    points = ", ".join(
        f"{length:,} tokens {first:.2g} and {second:.2g}"
        for length, first, second in zip(lengths, by_scores, by_state, strict=True)
    )
    return described(
        fig,
        f"Multiplications of the two orders against the length: {points}.",
        f"At {lengths[-1]:,} tokens (QKᵀ)V takes {by_scores[-1] / by_state[-1]:.0f} times as many multiplications.",
    )


def full_state(counts: Sequence[int], errors: Mapping[str, Sequence[float]], size: int) -> Figure:
    """Draw the error of what is read against the number of pairs written; size is the length of a key."""
    fig = new_figure(620, 280)
    ax = fig.add_subplot()
    for (name, row), (colour, line, mark) in zip(errors.items(), _LOOKS, strict=False):
        ax.plot(counts, row, color=colour, linestyle=line, marker=mark, label=name)
    ax.axvline(size, color=palette.INK, linewidth=1, linestyle=":")
    ax.set(xlabel="pairs written", ylabel="error of a read, relative to its value", ylim=(0, None))
    ax.legend()
    fig.tight_layout()
    points = "; ".join(
        f"{name}: " + ", ".join(f"{count} pairs {error:.2f}" for count, error in zip(counts, row, strict=True))
        for name, row in errors.items()
    )
    last = listed(f"{row[-1]:.2f} ({name})" for name, row in errors.items())
    return described(
        fig,
        f"The error of what is read, as a share of the value, against the number of pairs in a state: {points}.",
        f"The dotted line is where there are as many pairs as numbers in a key. With {counts[-1]} pairs the errors are "
        f"{last}.",
    )


def recall(tasks: Mapping[str, tuple[Sequence[int], float, Mapping[str, np.ndarray]]]) -> Figure:
    """Draw the share of right answers, a panel for each task: the median of the seeds, and a thin line for each.

    tasks: title -> (sizes, share of who guesses, {variant: (seeds, sizes)}).
    """
    fig = new_figure(760, 350)
    axes = np.atleast_1d(fig.subplots(1, len(tasks)))
    medians, cut = [], []
    for ax, (task, (sizes, chance, variants)) in zip(axes, tasks.items(), strict=True):
        lowest = np.floor(10 * min(runs.min() for runs in variants.values())) / 10
        if lowest >= 0.5:
            ax.set_ylim(lowest, 1.01)
            cut.append(f"at {lowest:.1f} for {task}")
        else:
            ax.set_ylim(0, 1.04)
            ax.axhline(chance, color=palette.INK, linewidth=1, linestyle=":")
        for (name, runs), (colour, line, mark) in zip(variants.items(), _LOOKS, strict=True):
            ax.plot(sizes, runs.T, color=colour, alpha=0.4, linewidth=0.8)
            ax.plot(sizes, np.median(runs, axis=0), color=colour, linestyle=line, marker=mark, markersize=5, label=name)
        ax.set_xlabel("tokens in the piece" if task == "copy" else "pairs in the text")
        ax.set_xticks(list(sizes))
        ax.set_title(task)
        ends = (f"{name} {np.median(runs[:, -1]):.2f}" for name, runs in variants.items())
        medians.append(f"{task}, {sizes[-1]}: {', '.join(ends)}")
    axes[0].set_ylabel("right answers")
    handles, labels = axes[0].get_legend_handles_labels()
    seeds = len(next(iter(next(iter(tasks.values()))[2].values())))
    legend = f"line: median of {seeds} seeds; thin lines: each seed; dotted line on the left: guessing"
    fig.legend(handles, labels, title=legend, loc="lower center", ncol=4)
    fig.subplots_adjust(left=0.075, right=0.985, top=0.92, bottom=0.36, wspace=0.2)
    return described(
        fig,
        f"The share of right answers against the size of the task, median of {seeds} seeds and each seed. "
        f"Medians at the largest size: {'; '.join(medians)}.",
        f"Medians at the largest size. {'; '.join(medians)}." + (f" The axis begins {listed(cut)}." if cut else ""),
    )


def kept(models: Mapping[str, Model], T: int) -> Figure:
    """Draw what models keep of a text of T tokens, and what they read of it for one more token, in GB of two bytes."""
    fig = new_figure(740, 60 + 46 * len(models))
    ax = fig.add_subplot()
    places = np.arange(len(models))
    numbers = {
        "kept": [model.kept_bytes(T) / 1e9 for model in models.values()],
        "read for one more token": [model.step(T).bytes / 1e9 for model in models.values()],
    }
    looks = ((palette.VALUE, "o", -0.2), (palette.QUERY, "^", 0.2))
    for (name, row), (colour, mark, shift) in zip(numbers.items(), looks, strict=True):
        ax.plot(row, places + shift, linestyle="none", color=colour, marker=mark, markersize=7, label=name)
        for place, each in zip(places + shift, row, strict=True):
            ax.annotate(f"{each:.2g}", (each, place), (8, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(places, [f"{name}\n{model.kind}" for name, model in models.items()], fontsize=9)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlim(right=4 * max(max(row) for row in numbers.values()))
    ax.set_xlabel(f"GB for one text of {T:,} tokens")
    ax.legend(loc="lower right")
    fig.tight_layout()
    points = "; ".join(
        f"{name} ({model.kind}) {first:.2g} and {second:.2g}"
        for (name, model), first, second in zip(models.items(), *numbers.values(), strict=True)
    )
    least = min(models, key=lambda name: models[name].kept_bytes(T))
    return described(
        fig,
        f"GB kept of a text of {T:,} tokens, and read for one more token, by model: {points}.",
        f"{least} keeps least, and the axis is logarithmic.",
    )
