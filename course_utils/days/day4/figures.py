"""The drawings of day 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Circle, Rectangle
from matplotlib.ticker import NullLocator

from course_utils.costs.configurations import Configuration
from course_utils.days.shared.block_figure import decoder_block as decoder_block
from course_utils.days.shared.dependence_figure import dependence_maps as dependence_maps
from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines, typeset
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOLLM2 = Configuration(
    "SmolLM2 135M", layers=30, d_model=576, n_heads=9, n_kv_heads=3, d_head=64, d_ff=1536, gated=True,
    vocabulary=49152, context=8192, tied=True, source="Allal et al. 2025 (SmolLM2); sizes: config.json",
)  # fmt: skip
_TOKENS = [palette.INDIGO, palette.OLIVE, palette.BROWN, palette.INK]
_CORE = palette.PURPLE  # scores and blend, beside the other parts of a block
_PARTS = [(_CORE, "-"), (palette.INK, (0, (7, 2))), (palette.INK, (0, (2, 2)))]


def looks_of_a_word(tokens: Sequence[str], looks: Mapping[str, Any]) -> Figure:
    """Draw where the last token looks, in a strip for each head: a square for each token, the darker the more weight.

    looks: name of the head -> the weights of the last token, one for each token.
    """
    looks = {name: np.asarray(weights, dtype=float) for name, weights in looks.items()}
    height = 46 * len(looks) + 44
    fig = new_figure(640, height)
    ax = fig.add_axes((0.22, 0.01, 0.77, 1 - 40 / height))
    for row, weights in enumerate(looks.values()):
        for column, weight in enumerate(weights):
            level = round(255 * min(1.0, weight))
            ax.add_patch(
                Rectangle((column, row + 0.08), 1, 0.84, facecolor=palette.colormap()(level), edgecolor=palette.INK)
            )
            ax.text(column + 0.5, row + 0.5, f"{weight:.2f}", ha="center", va="center", color=palette.ink(level))
    ax.set(xlim=(0, len(tokens)), ylim=(len(looks), 0))
    ax.set_xticks(np.arange(len(tokens)) + 0.5, tokens)
    ax.set_yticks(np.arange(len(looks)) + 0.5, list(looks))
    ax.xaxis.tick_top()
    ax.tick_params(length=0, pad=4)
    ax.spines[:].set_visible(False)
    most = [f"{name} gives {weights.max():.2f} to {tokens[weights.argmax()]}" for name, weights in looks.items()]
    return described(
        fig,
        f"Weights of {tokens[-1]} on the words of a sentence, a strip for each head: {'; '.join(most)}.",
        f"Each strip is one row of weights and sums to 1. All the rows belong to {tokens[-1]}.",
    )


def numbered_grids(groups: Any, cell: float = 34) -> Figure:
    """Grids of numbered entries, side by side in groups: the tens say the token, and so does the colour.

    groups: title of the group -> {title of the grid: (rows, columns) whole numbers, below 40}. cell: the side of one
    square in CSS pixels. Raises ValueError for a number that names no token.
    """
    groups = {title: {name: np.asarray(grid) for name, grid in grids.items()} for title, grids in groups.items()}
    gap, between = 20, 44  # CSS pixels, within a group and between two
    rows = max(len(grid) for grids in groups.values() for grid in grids.values())
    wide = [sum(cell * grid.shape[1] + gap for grid in grids.values()) - gap for grids in groups.values()]
    wide = [max(columns, 6.5 * len(title)) for columns, title in zip(wide, groups, strict=True)]
    width, height = sum(wide) + between * (len(groups) - 1) + 20, cell * rows + 62
    fig = new_figure(width, height)
    start = 10
    for (title, grids), columns in zip(groups.items(), wide, strict=True):
        fig.text(start / width, 1 - 6 / height, title, weight="bold", va="top")
        left = start
        for name, grid in grids.items():
            size = cell * grid.shape[1] / width, cell * grid.shape[0] / height
            _numbers(fig.add_axes((left / width, 1 - 52 / height - size[1], *size)), name, grid)
            left += cell * grid.shape[1] + gap
        start += columns + between
    sentences = [
        f"{title}: {'; '.join(map(_rows_by_token, grids, grids.values()))}." for title, grids in groups.items()
    ]
    mixed = [
        title
        for title, grids in groups.items()
        if any((grid // 10 != np.arange(len(grid))[:, None]).any() for grid in grids.values())
    ]
    return described(
        fig,
        "Grids of numbers, coloured by token. " + " ".join(sentences),
        "Row i of a head should have the colour of token i alone, as in x"
        + (
            f"; {listed(mixed)} breaks this, because it cuts the numbers in the order in which they lie in memory."
            if mixed
            else "."
        ),
    )


def _rows_by_token(name, grid):
    """Which tokens' numbers stand in each row: "head 0 has rows of token 0, 0, 1 and 1"."""
    rows = [" and ".join(str(token) for token in sorted(set(row // 10))) for row in grid]
    return f"{name} has rows of token {', '.join(rows)}"


def _numbers(ax, name, grid):
    for (row, column), number in np.ndenumerate(grid):
        token = int(number) // 10
        if not 0 <= token < len(_TOKENS):
            raise ValueError(f"{number} names token {token}: the tens must be 0 to {len(_TOKENS) - 1}")
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor=_TOKENS[token], linewidth=0))
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor="none", edgecolor=palette.INK, linewidth=1))
        ax.text(
            column + 0.5, row + 0.52, f"{number:02d}", ha="center", va="center", color=palette.ink_on(_TOKENS[token])
        )
    ax.set(xlim=(0, grid.shape[1]), ylim=(grid.shape[0], 0), xticks=[], yticks=[])
    ax.spines[:].set_color(palette.INK)
    ax.set_title(name, pad=5, weight="normal")


def sharing(n_heads: int, kv_heads: Mapping[str, int]) -> Figure:
    """Draw which query head reads which key/value head: a row of query heads over a row of key/value heads, with lines.

    kv_heads: title -> number of key/value heads, a divisor of n_heads; neighbours share one.
    """
    fig = new_figure(720, 180)
    for ax, (title, few) in zip(np.atleast_1d(fig.subplots(1, len(kv_heads))), kv_heads.items(), strict=True):
        group = n_heads // few
        for head in range(n_heads):
            shared = head // group
            below = shared * group + (group - 1) / 2
            ax.plot([head, below], [0.65, 0.3], color=palette.INK, linewidth=1.2, zorder=1)
            _head(ax, head, 0.75, head, palette.QUERY)
            if head % group == 0:
                _head(ax, below, 0.2, shared, palette.KEY)
        ax.set(xlim=(-0.6, n_heads - 0.4), ylim=(0, 1))
        ax.set_title(typeset(title), pad=6)
        ax.axis("off")
    fig.subplots_adjust(left=0.15, right=0.99, top=0.86, bottom=0.02, wspace=0.1)
    box = fig.axes[0].get_position()
    for height, name in ((0.75, "query heads"), (0.2, "key/value heads")):
        fig.text(0.01, box.y0 + height * box.height, name, va="center")
    sentences = [
        f"{title}: {few} key/value head{'s' if few > 1 else ''}, each read by {n_heads // few}"
        for title, few in kv_heads.items()
    ]
    return described(
        fig,
        f"{n_heads} query heads over their key/value heads; neighbours share. {'; '.join(sentences)}.",
        f"Each has {n_heads} query heads and therefore {n_heads} tables of weights. Only the key/value heads become "
        f"fewer: {listed(kv_heads.values())}.",
    )


def _head(ax, x, y, number, colour):
    box = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": colour, "linewidth": 1.6}
    ax.text(x, y, str(number), ha="center", va="center", bbox=box, zorder=2)


def crossover_lines(lengths: Any, flops: Any, crossings: Any) -> Figure:
    """FLOPs of the parts of a block against the length, both logarithmic, and where the core meets the others.

    lengths: T in order of size; flops: name -> FLOPs at each length, at most four, the core first; crossings:
    name -> T at which the core meets that part, marked on the core's line.
    """
    fig = new_figure(720, 340)
    ax = fig.subplots()
    for (colour, style), (name, counts) in zip(_PARTS, flops.items(), strict=False):
        ax.plot(lengths, counts, color=colour, linestyle=style, linewidth=2, label=name)
    core = np.asarray(next(iter(flops.values())), dtype=float)
    first = min(crossings.values())
    for name, length in crossings.items():
        height = np.exp(np.interp(np.log(length), np.log(lengths), np.log(core)))
        ax.plot([length], [height], marker="o", color=palette.INK, markersize=6, linestyle="none", zorder=4)
        at, ha, va = ((6, -5), "left", "top") if length == first else ((-8, 3), "right", "bottom")  # clear of all lines
        words = f"equal to the {name} at T = {length:,}"
        ax.annotate(words, (length, height), at, textcoords="offset points", ha=ha, va=va)
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="FLOPs of one block", xlim=(lengths[0], lengths[-1]))
    _powers_of_two(ax, lengths)
    fig.subplots_adjust(left=0.1, right=0.83, top=0.97, bottom=0.17)
    name_lines(ax)
    steep = np.log(core[-1] / core[0]) / np.log(lengths[-1] / lengths[0])
    alt = f"FLOPs of a block against the length, {lengths[0]:,} to {lengths[-1]:,} tokens: {', '.join(flops)}. "
    alt += f"The core grows like T to the power {steep:.1f}. "
    alt += "It meets " + " and ".join(f"the {name} at {length:,} tokens" for name, length in crossings.items()) + "."
    doubled = {name: (counts[-1] / counts[0]) ** (np.log(2) / np.log(lengths[-1] / lengths[0]))
               for name, counts in flops.items()}  # fmt: skip
    return described(
        fig,
        alt,
        "Twice the tokens make the FLOPs grow "
        + listed(f"{times:.1f} times ({name})" for name, times in doubled.items())
        + ". So the core is cheap to the left of the marks and expensive to the right of them.",
    )


def induction_path(tokens: Sequence[str], period: int) -> Figure:
    """Draw how two layers repeat: layer 0 writes into a token what stood before it, layer 1 finds it there.

    tokens: labels of a text whose second part repeats the first, `period` tokens on. The question is what follows the
    last token; it looks at the token after its earlier occurrence.
    """
    last = len(tokens) - 1
    match = len(tokens) - period
    fig = new_figure(720, 190)
    ax = fig.subplots()
    for place, token in enumerate(tokens):
        asks = place == last
        answers = place == match
        edge = palette.INK
        if asks:
            edge = palette.QUERY
        elif answers:
            edge = palette.KEY
        box = {"boxstyle": "round,pad=0.5", "facecolor": "none", "edgecolor": edge, "linewidth": 1 + (asks or answers)}
        ax.text(place, 0, token, ha="center", va="center", fontsize=12, bbox=box, zorder=3)
    _arc(ax, match - 1, match, 0.9, palette.VALUE)
    _arc(ax, match, last, -0.34, palette.VALUE)
    words: dict[str, Any] = {"ha": "center", "va": "center"}
    ax.text(match - 0.5, -0.75, f"layer 0: “before me came {tokens[match - 1]}”", **words)
    ax.text((match + last) / 2, 0.85, f"layer 1: “who had {tokens[last]} before it?”", **words)
    ax.text(last + 0.62, 0, f"so guess {tokens[match]}", ha="left", va="center")
    ax.set(xlim=(-0.9, last + 2.1), ylim=(-1.2, 1.35))
    ax.axis("off")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    before = tokens[match - 1]
    here = tokens[match]
    alt = f"The tokens {' '.join(tokens)}. Arrows show what flows. "
    alt += f"Layer 0: an arrow from token {match - 1}, {before}, to the {here} after it, "
    alt += f"which learns that {before} came before. Layer 1: an arrow from this {here} to the last token, "
    return described(
        fig,
        alt + f"{tokens[last]}, which asks who had {tokens[last]} before it, so the guess is {here}.",
        f"Layer 1 finds this {here} only because layer 0 has written into it that {before} came before.",
    )


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
    of_losses = ((palette.INK, "-"), (palette.INK, (0, (7, 2))))
    of_scores = ((palette.WEIGHT, "-"), (palette.WEIGHT, (0, (4, 2))))  # scores are means of weights
    for ax, curves, styles in ((above, losses, of_losses), (below, scores, of_scores)):
        for (colour, style), (name, curve) in zip(styles, curves.items(), strict=False):
            ax.plot(steps, curve, color=colour, linestyle=style, linewidth=1.8, label=name)
        ax.set(xlim=(0, steps[-1]))
    above.axhline(floor, color=palette.INK, linestyle=":", linewidth=1.2, label=floor_name, zorder=1)
    above.set(ylabel="loss", ylim=(0, None))
    below.set(ylabel="best score", ylim=(0, 1.02), yticks=(0, 0.5, 1), xlabel="training step")
    fig.subplots_adjust(left=0.09, right=0.73, top=0.97, bottom=0.14, hspace=0.16)
    for ax in (above, below):
        name_lines(ax)
    alt = f"Above: loss against the training step, 0 to {steps[-1]}, with a dotted line at {floor:.2f}, {floor_name}. "
    alt += f"Loss {_from_to(losses)}. Below: the best score of a head, {_from_to(scores)}"
    first = {name: next((t for t, y in zip(steps, c, strict=True) if y > 0.5), None) for name, c in scores.items()}
    passed = [f"that of {name} passes one half by step {step}" for name, step in first.items() if step is not None]
    falls = {name: int(np.argmin(np.diff(curve))) for name, curve in losses.items()}
    steepest = [f"{name} between steps {steps[at]} and {steps[at + 1]}" for name, at in falls.items()]
    return described(
        fig,
        alt + "".join(f"; {words}" for words in passed) + ".",
        f"Both plots share their steps, so look at the scores where each loss falls fastest: {listed(steepest)}.",
    )


def _from_to(curves):
    return ", ".join(f"{name} from {curve[0]:.2f} to {curve[-1]:.2f}" for name, curve in curves.items())


def turned_pairs(query: Any, key: Any, angle: float, places: Sequence[tuple[int, int]]) -> Figure:
    """Draw a query and a key as arrows, turned by angle radians for each place, in one plane for each pair of places.

    query, key: two numbers each, before they are turned; places: (of the query, of the key), with equal differences.
    """
    fig = new_figure(240 * len(places), 250)
    between = []
    for ax, (i, j) in zip(np.atleast_1d(fig.subplots(1, len(places))), places, strict=True):
        ends = []
        for name, arrow, place, colour in (("query", query, i, palette.QUERY), ("key", key, j, palette.KEY)):
            turn = place * angle
            x, y = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ np.asarray(arrow)
            style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.2, "mutation_scale": 14, "shrinkA": 0,
                     "shrinkB": 0}  # fmt: skip
            ax.annotate("", xy=(x, y), xytext=(0, 0), arrowprops=style)
            ax.text(1.28 * x, 1.28 * y, name, ha="center", va="center", color=colour)
            ends.append(np.degrees(np.arctan2(y, x)))
        between.append(round((ends[0] - ends[1]) % 360))
        ax.add_patch(Circle((0, 0), np.hypot(*query), facecolor="none", edgecolor=palette.INK, linewidth=0.8))
        ax.set(xlim=(-1.75, 1.75), ylim=(-1.6, 1.6), aspect="equal")
        ax.set_title(f"query at {i}, key at {j}", pad=4)
        ax.axis("off")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.88, bottom=0.02, wspace=0.05)
    pairs = listed([f"query at position {i} and key at position {j}" for i, j in places])
    return described(
        fig,
        f"A query and a key as arrows, rotated by their positions: {pairs}. The angle from the key to the query is "
        f"{listed(sorted({f'{each}°' for each in between}))} in every plane.",
        "Both arrows rotate, and the angle between them stays the same.",
    )


def clock_hands(frequencies: Any, places: Sequence[int]) -> Figure:
    """Draw how far each pair of a head has turned at some places: a row of clock hands for each pair.

    frequencies: radians per place of each pair.
    """
    frequencies = np.asarray(frequencies, dtype=float)
    fig = new_figure(460, 58 * len(frequencies) + 34)
    ax = fig.add_axes((0.25, 0.02, 0.74, 0.86))
    for row, speed in enumerate(frequencies):
        for column, place in enumerate(places):
            ax.add_patch(Circle((column, row), 0.36, facecolor="none", edgecolor=palette.INK, linewidth=0.7))
            turn = place * speed
            ax.plot([column, column + 0.33 * np.cos(turn)], [row, row - 0.33 * np.sin(turn)], color=palette.INK,
                    linewidth=2.6)  # fmt: skip
    ax.set(xlim=(-0.5, len(places) - 0.5), ylim=(len(frequencies) - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(len(places)), [f"position {places[0]}", *map(str, places[1:])])
    ax.set_yticks(range(len(frequencies)), [f"pair {row}: {np.degrees(speed):.2g}°"
                  for row, speed in enumerate(frequencies)])  # fmt: skip
    ax.xaxis.tick_top()
    ax.tick_params(length=0, pad=3)
    ax.spines[:].set_visible(False)
    rows = [f"pair {row} rotates by {np.degrees(speed):.2g}° per position" for row, speed in enumerate(frequencies)]
    return described(
        fig,
        f"Clock hands for positions {listed(map(str, places))}: {'; '.join(rows)}.",
        "Pair 0 tells one position from the next. The last pair moves only over long distances.",
    )


def heads_of_a_model(scores: Any, best: Sequence[tuple[int, int]], score: str) -> Figure:
    """Draw a score of every head of a large model, layers as columns and heads as rows, with some heads framed.

    scores: (n_layers, h) numbers from 0 to 1; best: the heads with a frame, (layer, head).
    """
    scores = np.asarray(scores, dtype=float)
    layers, heads = scores.shape
    height = 24 * heads + 78
    fig = new_figure(720, height)
    ax = fig.add_axes((0.07, 46 / height, 0.92, 24 * heads / height))
    ax.imshow(scores.T, cmap=palette.colormap(), vmin=0, vmax=1, aspect="auto")
    for layer, head in best:
        ax.add_patch(
            Rectangle((layer - 0.5, head - 0.5), 1, 1, facecolor="none", edgecolor=palette.ROSE, linewidth=2.4)
        )
    ax.set(xlabel="layer", ylabel="head")
    ax.set_xticks(range(0, layers, 3))
    ax.set_yticks(range(0, heads, 2))
    ax.tick_params(length=0, pad=3)
    ax.set_title(score, pad=6)
    ax.spines[:].set_color(palette.INK)
    framed = ", ".join(f"({layer}, {head}) {scores[layer, head]:.2f}" for layer, head in best)
    return described(
        fig,
        f"{score[0].upper()}{score[1:]} of {layers * heads} heads, {layers} layers of {heads}. "
        f"The {len(best)} largest, as (layer, head), are framed: {framed}.",
        f"Each column holds the heads of one layer. The darker a square, the higher its {score}.",
    )


def margins_without(margins: Mapping[str, Any]) -> Figure:
    """Bars of the mean margin by which the right form of a verb is preferred, with heads switched off one at a time.

    margins: what is switched off -> the mean margin; the first is the whole model, and a dotted line repeats it.
    """
    fig = new_figure(640, 38 * len(margins) + 70)
    ax = fig.add_axes((0.36, 0.26, 0.56, 0.7))
    rows = range(len(margins))
    ax.barh(rows, list(margins.values()), color=palette.INK, height=0.6)
    whole = next(iter(margins.values()))
    for row, margin in zip(rows, margins.values(), strict=True):
        beside = whole if margin < whole < margin + 0.3 else margin  # no number lies on the dotted line
        ax.text(beside + 0.04, row, f"{margin:.2f}", va="center")
    ax.axvline(whole, color=palette.INK, linestyle=":", linewidth=1.2)
    ax.set(
        xlabel="mean margin of the right verb", xlim=(0, 1.2 * max(margins.values())), ylim=(len(margins) - 0.5, -0.5)
    )
    ax.set_yticks(rows, list(margins))
    ax.tick_params(axis="y", length=0)
    bars = [f"{name} {margin:.2f}" for name, margin in margins.items()]
    least = min(margins, key=lambda name: margins[name])
    return described(
        fig,
        f"Mean margin of the right form of the verb: {'; '.join(bars)}.",
        f"The shorter the bar, the less the model prefers the right verb. The shortest: {least}.",
    )


def head_tables(tables: Any) -> Figure:
    """Numbers of every head, layers as rows and heads as columns, one grid for each table, shaded within its table.

    tables: title -> (n_layers, h) numbers; negative ones are white.
    """
    tables = {title: np.asarray(numbers, dtype=float) for title, numbers in tables.items()}
    layers = max(numbers.shape[0] for numbers in tables.values())
    fig = new_figure(720, 44 * layers + 72)
    for ax, (title, numbers) in zip(np.atleast_1d(fig.subplots(1, len(tables))), tables.items(), strict=True):
        largest = max(numbers.max(), 1e-12)
        for (layer, head), number in np.ndenumerate(numbers):
            level = round(235 * min(1.0, max(0.0, number / largest)))
            face = palette.colormap()(level)
            ax.add_patch(Rectangle((head, layer), 1, 1, facecolor=face, edgecolor=palette.INK, linewidth=1))
            ax.text(
                head + 0.5,
                layer + 0.5,
                _to_two(number),
                ha="center",
                va="center",
                color=palette.ink(level),
            )
        ax.set(xlim=(0, numbers.shape[1]), ylim=(numbers.shape[0], 0))
        ax.set_xticks(np.arange(numbers.shape[1]) + 0.5, range(numbers.shape[1]))
        ax.set_yticks(np.arange(numbers.shape[0]) + 0.5, [f"layer {layer}" for layer in range(numbers.shape[0])])
        ax.tick_params(length=0, pad=3)
        ax.set_xlabel("head", labelpad=2)
        ax.set_title(title, pad=7)
        ax.spines[:].set_visible(False)
    height = 44 * layers + 72
    fig.subplots_adjust(left=0.085, right=0.99, top=1 - 28 / height, bottom=44 / height, wspace=0.3)
    sentences = []
    darkest = []
    for title, numbers in tables.items():
        layer, head = np.unravel_index(numbers.argmax(), numbers.shape)
        darkest.append(f"{title}, {_to_two(numbers[layer, head])} in layer {layer}, head {head}")
        rows = ("; ".join(f"{_to_two(number)}" for number in row) for row in numbers)
        sentences.append(f"{title}: " + ", ".join(f"layer {layer} has {row}" for layer, row in enumerate(rows)))
    return described(
        fig,
        f"{len(tables)} tables of {layers} layers by heads. {'. '.join(sentences)}.",
        f"The same place in each table is the same head. The largest numbers: {'; '.join(darkest)}.",
    )


def _to_two(number):
    return f"{round(number, 2) + 0:.2f}".replace("-", "−")


def _powers_of_two(ax, lengths):
    """Ticks at the lengths that are powers of two, written out, and none between."""
    powers = [2**p for p in range(40) if lengths[0] <= 2**p <= lengths[-1]]
    powers = powers[:: max(1, len(powers) // 6)]
    ax.set_xticks(powers, [f"{power:,}" for power in powers])
    ax.xaxis.set_minor_locator(NullLocator())
