"""The drawings of day 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.patches import FancyArrowPatch, Rectangle

from course_utils.days.shared import dependence_figure
from course_utils.models import characters
from course_utils.models.leak_experiment import FLOOR
from course_utils.views import palette
from course_utils.views.drawing import name_lines
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from course_utils.days.day3.patients import VitalSigns

_HONEST = palette.HONEST  # what has seen no later token; what has is drawn in palette.WRONG
_STROKES = ["-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2))]
_TELLING = 0.1  # nats by which looking ahead has to lower the loss to be called a cheat
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


def shifted_targets(tokens: Sequence[str]) -> Figure:
    """Draw a text as the input of a model and, below it, what has to be guessed at each position: the next input."""
    places = len(tokens) - 1
    fig = new_figure(720, 192)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 720), ylim=(192, 0), xticks=[], yticks=[])
    ax.axis("off")
    left, wide = 150, 130
    for name, y in (("position", 22), ("input", 65), ("has to guess", 147)):
        ax.text(left - 14, y, name, ha="right", va="center")
    for place, token in enumerate(tokens):
        x = left + wide * place
        ax.text(x + 50, 22, str(place), ha="center", va="center")
        ax.add_patch(Rectangle((x, 46), 100, 38, facecolor="none", edgecolor=palette.INK, linewidth=1.2))
        ax.text(x + 50, 65, token, ha="center", va="center", style="italic", fontsize=12)
        if place == places:
            break
        ax.add_patch(Rectangle((x, 128), 100, 38, facecolor="none", edgecolor=palette.INK, linewidth=1.2))
        ax.text(x + 50, 147, tokens[place + 1], ha="center", va="center", style="italic", fontsize=12)
        reads: dict[str, Any] = {"color": palette.INK}
        copies: dict[str, Any] = {"color": palette.WRONG, "linestyle": "--", "linewidth": 1.6}
        for (x_from, x_to), look in (((x + 50, x + 50), reads), ((x + wide + 22, x + 92), copies)):
            ax.add_patch(FancyArrowPatch((x_from, 86), (x_to, 126), arrowstyle="->", mutation_scale=12, **look))
    legend = "dashed: where the answer\ncan be copied from"
    ax.text(left + wide * places + 6, 147, legend, va="center", color=palette.WRONG)
    pairs = "; ".join(f"position {i} reads {tokens[i]} and has to guess {tokens[i + 1]}" for i in range(places))
    return described(
        fig,
        f"The text {' '.join(tokens)} as input, with the word to guess below each position. {pairs}. A dashed arrow "
        "leads from each input to the same word in the row below, one position earlier.",
        "Each word to guess is also the input one position further on.",
    )


def nan_spreads(stages: Mapping[str, Sequence[Any]], mask: Any) -> Figure:
    """Draw which rows are NaN before, between and after layers of attention, for each way to treat an empty row.

    stages: name of a way -> outputs (T, d): the tokens, then the output of each layer. mask: (T, T), boolean.
    """
    mask = np.asarray(mask, dtype=bool)
    T = len(mask)
    fig = new_figure(720, 62 + 46 * T)
    high = 62 + 46 * T
    sentences = []
    for panel, (way, outputs) in enumerate(stages.items()):
        ax = fig.add_axes((0.5 * panel, 0, 0.5, 1))
        ax.set(xlim=(0, 360), ylim=(high, 0), xticks=[], yticks=[])
        ax.axis("off")
        ax.text(58, 14, way, weight="bold", va="center")
        lost = [np.isnan(np.asarray(output, dtype=float)).any(axis=-1) for output in outputs]
        zero = [(np.asarray(output, dtype=float) == 0).all(axis=-1) for output in outputs]
        step = 116
        for layer in range(1, len(outputs)):
            for query, key in np.ndindex(T, T):
                spoils = bool(lost[layer - 1][key])
                if not (mask[query, key] or spoils):
                    continue
                xs = (58 + step * (layer - 1) + 58, 58 + step * layer)
                ys = (74 + 46 * key, 74 + 46 * query)
                if spoils:
                    ax.plot(xs, ys, color=palette.WRONG, linestyle="--", linewidth=1.6)
                else:
                    ax.plot(xs, ys, color=palette.INK, linewidth=0.9)
        for stage, rows in enumerate(lost):
            x = 58 + step * stage
            ax.text(x + 29, 40, f"layer {stage}" if stage else "tokens", ha="center", va="center")
            for row in range(T):
                face = palette.WRONG if rows[row] else "none"
                text = "NaN" if rows[row] else "0" if zero[stage][row] else "fine"
                if stage == 0 and not mask[:, row].any():
                    text = "padding"
                ink = palette.ink_on(palette.WRONG) if rows[row] else palette.INK
                ax.add_patch(
                    Rectangle((x, 58 + 46 * row), 58, 32, facecolor=face, edgecolor=palette.INK, linewidth=1, zorder=3)
                )
                ax.text(x + 29, 74 + 46 * row, text, ha="center", va="center", color=ink, zorder=4, fontsize=10.5)
        for row in range(T):
            ax.text(50, 74 + 46 * row, f"row {row}", ha="right", va="center")
        counts = [int(rows.sum()) for rows in lost[1:]]
        by_layer = ", ".join(f"{count} of {T} rows after layer {layer}" for layer, count in enumerate(counts, 1))
        sentences.append(f"{way}: NaN in {by_layer}")
    return described(
        fig,
        f"Rows of a text as they pass through layers, with a line from each key to each query that sees it, and a "
        f"dashed one where the key is NaN. {'; '.join(sentences)}.",
        f"{'; '.join(sentences)}. Each dashed line is 0 · NaN.",
    )


def five_prints(signs: Mapping[str, VitalSigns]) -> Figure:
    """Draw the vital signs of models below each other: loss, scores, mask, one row of weights, gradients."""
    each_high = 208
    high = each_high * len(signs)
    fig = new_figure(720, high)
    titles = ("1 loss", "2 scores", "3 mask", "4 row of weights", "5 gradients")
    lefts, widths = (0.105, 0.23, 0.385, 0.59, 0.81), (0.06, 0.08, 0.155, 0.17, 0.18)
    most = max(norm or 0.0 for each in signs.values() for norm in each.norms.values() if norm == norm)
    sentences = []
    for number, (name, each) in enumerate(signs.items()):
        bottom = 1 - (52 + 112 + each_high * number) / high
        axes = [fig.add_axes((left, bottom, width, 112 / high)) for left, width in zip(lefts, widths, strict=True)]
        fig.text(0.008, 1 - (14 + each_high * number) / high, name, weight="bold", va="center")
        for ax, title in zip(axes, titles, strict=True):
            ax.set_title(title, weight="normal", pad=6)
            ax.tick_params(length=2, pad=2)
        loss, scores, grid, row, norms = axes
        mask = each.mask.numpy()
        T, middle = len(mask), len(mask) // 2
        loss.bar([0], [each.loss], width=0.6, color=palette.INK)
        loss.axhline(FLOOR, color=palette.INK, linestyle=":", linewidth=1.2)
        loss.set(xlim=(-0.6, 0.6), ylim=(0, 1.5 * FLOOR), xticks=[], yticks=[0, FLOOR], yticklabels=["0", "log 8"])
        loss.set_xlabel("nats")
        scores.plot([0, 0], each.scores, color=palette.INK, linewidth=6, solid_capstyle="butt")
        scores.set(xlim=(-1, 1), ylim=(-10, 10), xticks=[], yticks=[-10, 0, 10], yticklabels=["−10", "0", "10"])
        scores.set_xlabel("lowest to\nhighest")
        for (query, key), may in np.ndenumerate(mask):
            ahead = may and key > query
            face = palette.WRONG if ahead else palette.OPEN if may else "none"
            grid.add_patch(
                Rectangle((key, query), 1, 1, facecolor=face, edgecolor=palette.INK, linewidth=0.7, clip_on=False)
            )
        grid.set(xlim=(0, T), ylim=(T, 0), xticks=[], yticks=[middle + 0.5], yticklabels=[str(middle)], aspect="equal")
        grid.set(xlabel="key", ylabel="query")
        grid.spines[:].set_visible(False)
        colours = [palette.WRONG if key > middle and weight else palette.WEIGHT for key, weight in enumerate(each.row)]
        row.bar(range(T), each.row, color=colours)
        row.set(xlim=(-0.6, T - 0.4), ylim=(0, 1), xticks=[0, middle, T - 1], yticks=[0, 1], xlabel="key")
        values = [norm or 0.0 for norm in each.norms.values()]
        norms.bar(range(len(values)), values, color=palette.INK)
        norms.set(
            xlim=(-0.6, len(values) - 0.4), ylim=(0, 1.1 * most), xticks=[], yticks=[0, most], xlabel="as in printout 5"
        )
        norms.set_yticklabels(["0", f"{most:.2f}"])
        opened = int(np.triu(mask, 1).sum())
        weights = ", ".join(f"{weight:.2f}" for weight in each.row)
        sentences.append(
            f"{name}: loss {each.loss:.2f}; scores from {each.scores[0]:.1f} to {each.scores[1]:.1f}; {opened} keys "
            f"open ahead; row {middle} of the weights {weights}; gradients from {min(values):.3f} to {max(values):.3f}"
        )
    return described(
        fig,
        f"Five small drawings per model: its loss, range of scores, mask, a row of weights, and the norm of each "
        f"gradient. {'. '.join(sentences)}.",
        "Only the mask and the row of weights tell the models apart. What lies ahead of its query is magenta.",
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
    if len(losses) - counts[True] > 1:
        _enlarge(ax, floor)
    fig.subplots_adjust(left=0.08, right=0.72, top=0.94, bottom=0.2)
    name_lines(ax)
    return described(
        fig,
        f"Loss against training step; the floor is at {floor:.1f}. {'; '.join(sentences)}.",
        f"{counts[True]} of {len(losses)} layers let the model fall through a floor that honest guessing cannot pass.",
    )


def _enlarge(ax: Axes, level: float, margin: float = 0.02) -> None:
    """Draw the lines near a level once more, enlarged, in an empty part of the axes."""
    strip = ax.inset_axes((0.5, 0.4, 0.48, 0.34))
    for line in ax.lines:
        style: dict[str, Any] = {
            "color": line.get_color(),
            "linestyle": line.get_linestyle(),
            "linewidth": line.get_linewidth(),
        }
        if np.size(line.get_xdata()) > 2:
            strip.plot(*line.get_data(), **style)
        else:
            strip.axhline(level, **style)
    ends = [level - margin, level + margin]
    strip.set(xlim=ax.get_xlim(), ylim=ends, xticks=[], yticks=ends, yticklabels=[f"{end:.2f}" for end in ends])
    strip.set_title("near the floor, enlarged", weight="normal", fontsize=10.5, pad=3)


def dependence_maps(maps: Mapping[str, Any], tolerance: float = 1e-12) -> Figure:
    """Draw how strongly each output depends on each token, and say where a layer leaks. maps: name -> (T, T) slopes."""
    fig = dependence_figure.dependence_maps(maps, tolerance)
    slopes = [np.asarray(amounts, dtype=float) for amounts in maps.values()]
    leaks = ", ".join(str(int((np.triu(each, 1) > tolerance).sum())) for each in slopes)
    zeros = sum(int(np.tril(each <= tolerance).sum()) for each in slopes)
    below = "every slope is above 0, as it should be" if not zeros else f"{zeros} slopes are 0, and none should be"
    return described(fig, str(fig.get_label()), f"Leaks: {leaks}. On the diagonal and below, {below}.")


def loss_by_layer(losses: Sequence[float], causal: float) -> Figure:
    """The loss of a model of which one layer looks ahead, for each layer, above or below that of the causal model."""
    fig = new_figure(720, 240)
    ax = fig.subplots()
    changes = np.asarray(losses) - causal
    ax.bar(range(len(changes)), changes, bottom=causal, width=0.7,
           color=[palette.WRONG if change < -_TELLING else palette.INK for change in changes])  # fmt: skip
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
    alt = f"Bars divided into weights. The part of {names[-1]} is hatched: it is then set to 0. {'; '.join(sentences)}."
    caption = f"What remains for the others depends on {names[-1]}, although its own part is set to 0."
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
            face = palette.OPEN if allowed else "none"
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
