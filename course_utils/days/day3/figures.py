"""The drawings of day 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.patches import Rectangle

from course_utils.days.shared.dependence_figure import dependence_maps as dependence_maps
from course_utils.models import characters
from course_utils.views import palette
from course_utils.views.drawing import name_lines
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HONEST = palette.INDIGO  # what has seen no later token; what has is drawn in palette.WRONG
_STROKES = ["-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2))]
_MARKS = [None, "o", "s", "^"]  # two lines that coincide can both be seen


def where_models_look(models: Mapping[str, Any], text: str, layer: int, head: int) -> Figure:
    """Draw the weights of one head of each model as it reads a text of characters, side by side.

    models: name -> model that takes tokens (1, T) and returns its weights, a tensor (1, h, T, T) for each layer.
    """
    tokens = torch.tensor([[characters.alphabet().index(each) for each in text]])
    fig = new_figure(720, 330)
    sentences = []
    for place, (name, model) in enumerate(models.items()):
        with torch.no_grad():
            weights = model(tokens, return_weights=True)[1][layer][0, head].numpy()  # (T, T)
        ax = fig.add_axes((0.08 + 0.5 * place, 0.04, 0.38, 0.83))
        ax.imshow(weights, cmap=palette.colormap(), vmin=0, vmax=1)
        labels = [each.replace(" ", "␣") for each in text]
        ax.set_xticks(range(len(text)), labels)
        ax.set_yticks(range(len(text)), labels)
        ax.xaxis.tick_top()
        ax.tick_params(length=0, pad=2)
        ax.spines[:].set_color(palette.INK)
        ax.set_title(f"model {name}", weight="bold", pad=8)
        least = np.diagonal(weights, 1).min()  # of the weights on the next character
        sentences.append(
            f"model {name} gives no weight to a later character"
            if np.triu(weights, 1).max() == 0
            else f"model {name} gives the next character a weight of {least:.2f} or more in every row but the last"
        )
    return described(
        fig,
        f"Attention weights of two models on {text!r}, with a row for each character that looks: "
        f"{'; '.join(sentences)}.",
        "Rows look at columns. One model looks back, and the other looks at the character that it has to guess.",
    )


def loss_curves(losses: Any, floor: float, floor_name: str, smooth: int = 1) -> Figure:
    """Loss against training step, one line per model, over a dotted line for the loss that nobody can beat honestly.

    A line that ends below half the floor has seen answers, and is drawn in the colour of what goes wrong.
    losses: name -> losses, one a step, at most four names; smooth: how many neighbouring steps to average, at most the
    number of steps. Raises ValueError for more than four names.
    """
    if len(losses) > len(_STROKES):
        raise ValueError(f"losses has {len(losses)} models: there are {len(_STROKES)} kinds of line")
    fig = new_figure(720, 300)
    ax = fig.subplots()
    sentences = []
    counts = {True: 0, False: 0}
    for name, curve in losses.items():
        mean = np.convolve(curve, np.ones(smooth) / smooth, mode="valid")
        cheats = bool(mean[-1] < floor / 2)
        colour = palette.WRONG if cheats else _HONEST
        place = counts[cheats]
        style: dict[str, Any] = {
            "linestyle": _STROKES[place],
            "marker": _MARKS[place],
            "markevery": max(1, len(mean) // 12),
        }
        counts[cheats] += 1
        steps = np.arange(len(mean)) + smooth
        ax.plot(steps, mean, color=colour, linewidth=1.8, markersize=5, markerfacecolor="none", label=name, **style)
        sentences.append(
            f"{name} {'falls through the floor to' if cheats else 'ends near the floor, at'} {mean[-1]:.1f}"
        )
    ax.axhline(floor, color=palette.INK, linestyle=":", linewidth=1.2, label=floor_name, zorder=1)
    ax.set(xlabel="training step", ylabel="loss, nats", ylim=(0, None), xlim=(0, len(mean) + smooth - 1))
    fig.subplots_adjust(left=0.08, right=0.72, top=0.94, bottom=0.2)
    name_lines(ax)
    return described(
        fig,
        f"Loss against training step; the floor is at {floor:.1f}. {'; '.join(sentences)}.",
        f"{counts[True]} of {len(losses)} layers let the model fall through a floor that honest guessing cannot pass.",
    )


def loss_by_layer(losses: Sequence[float], causal: float) -> Figure:
    """The loss of a model of which one layer looks ahead, for each layer, above or below that of the causal model."""
    fig = new_figure(720, 240)
    ax = fig.subplots()
    changes = np.asarray(losses) - causal
    ax.bar(range(len(changes)), changes, bottom=causal, width=0.7,
           color=[palette.WRONG if change < 0 else palette.INK for change in changes])  # fmt: skip
    ax.axhline(causal, color=palette.INK, linestyle=":", linewidth=1.2)
    ax.text(len(changes) - 0.4, causal, f"all causal, {causal:.2f}", va="center")
    low, high = int(np.argmin(losses)), int(np.argmax(losses))
    ax.text(low + 0.6, losses[low], f"layer {low} cheats, {losses[low]:.2f}", va="bottom")
    ax.text(high + 0.6, losses[high], f"layer {high} confuses, {losses[high]:.2f}", va="top")
    ax.set(xlabel="layer that looks ahead", ylabel="loss, nats per token", xlim=(-0.8, len(changes) - 0.4))
    fig.subplots_adjust(left=0.09, right=0.85, top=0.96, bottom=0.22)
    return described(
        fig,
        f"A bar for each of {len(losses)} layers, from {causal:.2f}, the loss of the causal model, to the loss when "
        f"only that layer looks ahead. Layer {low} is lowest with {losses[low]:.2f}, and layer {high} is highest with "
        f"{losses[high]:.2f}.",
        f"Looking ahead in layer {low} lets the model cheat, in layer {high} it confuses the model, and in most others "
        "it changes little.",
    )


def shares(rows: Any, names: Sequence[str], labels: Sequence[str]) -> Figure:
    """Weights of one query, one bar per case, before the mask throws the hatched part away.

    rows: (cases, m) weights that sum to 1, the last key of each the blocked one; names: m keys; labels: one a case.
    """
    rows = np.asarray(rows, dtype=float)
    height = 54 * len(rows) + 76
    fig = new_figure(720, height)
    ax = fig.subplots()
    for place, row in enumerate(rows):
        start = 0.0
        narrow = []
        for key, weight in enumerate(row):
            blocked = key == len(row) - 1
            level = round(255 * (0.25 + 0.2 * key))
            fill = "none" if blocked else palette.colormap()(level)
            ax.barh(
                place, weight, left=start, height=0.66, color=fill, edgecolor=palette.INK, hatch="///" * blocked, lw=0.8
            )
            text = f"{names[key]} {weight:.3f}"
            if blocked:  # no text on hatches
                ax.text(1, place - 0.37, text, ha="right", va="bottom")
            elif weight >= 0.14:
                ax.text(start + weight / 2, place, text, ha="center", va="center", color=palette.ink(level))
            else:
                narrow.append((start, text))
            start += weight
        if narrow:  # no room within: above the bar, from the first of them on
            ax.text(narrow[0][0] + 0.006, place - 0.37, ", ".join(text for _, text in narrow), va="bottom")
        ax.text(1.015, place, f"remains {sum(row[:-1]):.3f}", ha="left", va="center")
    ax.set_yticks(range(len(rows)), labels)
    ax.set(xlim=(0, 1), ylim=(len(rows) - 0.55, -0.75), xlabel="weight; the hatched part is then set to 0")
    fig.subplots_adjust(left=0.17, right=0.86, top=0.99, bottom=54 / height)
    sentences = [
        f"{label}: {', '.join(f'{name} {weight:.3f}' for name, weight in zip(names, row, strict=True))}, "
        f"so {sum(row[:-1]):.3f} remains"
        for label, row in zip(labels, rows, strict=True)
    ]
    alt = f"Bars divided into weights. The part of {names[-1]} is hatched: it is thrown away. {'; '.join(sentences)}."
    caption = f"What remains for the others depends on {names[-1]}, although its own part is thrown away."
    return described(fig, alt, caption)


def mask_grids(masks: Any, cell: float = 18) -> Figure:
    """Masks side by side: filled where the query (row) may attend to the key (column), empty where it may not.

    masks: title -> (n, m) boolean. cell: the side of one square in CSS pixels.
    """
    masks = {title: np.asarray(mask, dtype=bool) for title, mask in masks.items()}
    widths = [max(cell * mask.shape[1], 6.3 * len(title)) + 42 for title, mask in masks.items()]
    tall = max(mask.shape[0] for mask in masks.values())
    width, height = sum(widths) + 10, cell * tall + 58
    fig = new_figure(width, height)
    left = 10
    for (title, mask), wide in zip(masks.items(), widths, strict=True):
        n, m = mask.shape
        ax = fig.add_axes(((left + 30) / width, 1 - (50 + cell * n) / height, cell * m / width, cell * n / height))
        for (row, column), allowed in np.ndenumerate(mask):
            face = palette.QUERY if allowed else "none"
            ax.add_patch(Rectangle((column, row), 1, 1, facecolor=face, edgecolor=palette.INK, linewidth=0.8))
        ax.set(xlim=(0, m), ylim=(n, 0))
        step = 1 if cell >= 16 else 2  # so that numbers have room
        ax.set_xticks(np.arange(0, m, step) + 0.5, [str(key) for key in range(0, m, step)])
        ax.set_yticks(np.arange(0, n, step) + 0.5, [str(query) for query in range(0, n, step)])
        ax.xaxis.tick_top()
        ax.tick_params(length=0, pad=2)
        ax.spines[:].set_color(palette.INK)
        fig.text((left + 30) / width, 1 - 8 / height, title, weight="bold", va="top")
        left += wide
    sentences = ". ".join(f"{title}: {_in_words(mask)}" for title, mask in masks.items())
    return described(
        fig,
        f"Masks, filled where a row may attend to a column. {sentences}.",
        "Rows are queries, columns are keys; a query may attend to the keys whose squares are filled.",
    )


def _in_words(mask):
    """A mask as "row 0 sees 0; row 1 sees 0 to 1"; rows that are all alike are told once."""
    runs = [_runs(np.flatnonzero(row)) for row in mask]
    if len(set(runs)) == 1:
        return f"every row sees {runs[0]}"
    return "; ".join(f"row {number} sees {columns}" for number, columns in enumerate(runs))


def _runs(columns):
    """Numbers as "0 to 2 and 4", or "nothing"."""
    runs = np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1)
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs if len(run)]
    return " and ".join(texts) or "nothing"
