"""The drawings of day 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from course_utils.attention import arrays
from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def path_lengths(tokens: Sequence[str]) -> Figure:
    """How the last token hears of the first: from hand to hand along a chain, or at once. Arrows go where news goes."""
    fig = new_figure(720, 215)
    chain, looks = fig.subplots(1, 2)
    last = len(tokens) - 1
    for ax, title in ((chain, f"recurrent: {last} steps"), (looks, "attention: 1 step")):
        ax.set_title(title, fontsize=11, color=palette.INK)
        ax.set(xlim=(-0.5, last + 0.5), ylim=(-0.75, 1.35))
        ax.axis("off")
        ax.scatter(range(last + 1), [0] * (last + 1), s=260, facecolor="white", edgecolor=palette.INK, zorder=3)
        for place, token in enumerate(tokens):
            ax.text(place, -0.38, token, ha="center", va="top", fontsize=10, color=palette.INK)
    for place in range(last):
        _arrow(chain, place + 0.2, place + 0.8, palette.QUERY)
    for place in range(1, last):
        _arrow(looks, place, last - 0.1, palette.FAINT, bend=-0.38, width=1)
    _arrow(looks, 0, last - 0.1, palette.QUERY, bend=-0.38)
    fig.subplots_adjust(left=0.02, right=0.98, top=0.88, bottom=0.02, wspace=0.08)
    return described(
        fig,
        f"The {last + 1} words “{' '.join(tokens)}” twice. Left, recurrent: {last} arrows hand the first word on, "
        "neighbour to neighbour, to the last. Right, attention: each of the others has an arrow of its own straight to "
        "the last, the first among them.",
    )


def temperature_bars(weights: Any, names: Sequence[str], temperatures: Sequence[float]) -> Figure:
    """One bar chart per temperature: weights is (temperatures, names), each row summing to 1."""
    fig = new_figure(180 * len(temperatures), 220)
    axes = np.atleast_1d(fig.subplots(1, len(temperatures), sharey=True))
    for ax, row, temperature in zip(axes, weights, temperatures, strict=True):
        bars = ax.bar(names, row, color=palette.WEIGHT, width=0.7)
        ax.bar_label(bars, [f"{w:.2f}" for w in row], fontsize=9, color=palette.INK, padding=2)
        ax.set_title(f"temperature {temperature:g}", fontsize=10, color=palette.INK)
        ax.set_ylim(0, 1.15)
        ax.set_yticks([0, 0.5, 1])
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9, colors=palette.INK)
    axes[0].set_ylabel("weight", fontsize=10, color=palette.INK)
    fig.subplots_adjust(left=0.28 / len(axes), right=0.99, top=0.86, bottom=0.13, wspace=0.12)
    told = [
        f"at {temperature:g} {', '.join(f'{name} {w:.2f}' for name, w in zip(names, row, strict=True))}"
        for row, temperature in zip(weights, temperatures, strict=True)
    ]
    return described(fig, f"A bar chart of weights for each of {len(told)} temperatures: {'; '.join(told)}.")


def triangle_of_values(values: Any, outputs: Any, names: Sequence[str], cloud: Any = None) -> Figure:
    """Three values as the corners of a triangle, the outputs as dots, and `cloud`, (any, 2), as small dots.

    values: (3, 2); outputs: (n, 2); names: three labels, one per value, and the first n of them per output.
    Raises ValueError when values are not three points in the plane.
    """
    values, outputs = np.asarray(values, float), np.asarray(outputs, float)
    if values.shape != (3, 2):
        raise ValueError(f"values is {values.shape} but a triangle needs (3, 2)")
    fig = new_figure(580, 400)
    ax = fig.subplots()
    ax.fill(*values.T, facecolor=palette.VALUE, alpha=0.12, edgecolor=palette.VALUE, linewidth=1.5)
    if cloud is not None:
        x, y = np.asarray(cloud).T
        ax.scatter(x, y, s=5, color=palette.FAINT, linewidth=0, alpha=0.6, label="outputs of random queries")
    ax.scatter(values[:, 0], values[:, 1], s=70, marker="s", color=palette.VALUE, zorder=3, label="values")
    x, y = outputs.T
    ax.scatter(x, y, s=60, color=palette.OUTPUT, edgecolor="white", zorder=4, label="outputs of the tokens")
    for point, name in zip(values, names, strict=True):  # beside the triangle, not on it
        _label(ax, point, f"value of “{name}”", palette.INK, above=point[1] > values[:, 1].mean())
    for point, name in zip(outputs, names, strict=False):  # away from the other outputs
        _label(ax, point, f"“{name}”", palette.INK, left=point[0] < outputs[:, 0].mean())
    ax.set(xlabel="first coordinate", ylabel="second coordinate")
    ax.margins(x=0.3, y=0.12)
    ax.set_aspect("equal")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    ax.legend(loc="upper right", frameon=False, fontsize=9)
    fig.subplots_adjust(left=0.11, right=0.98, top=0.98, bottom=0.13)
    corners, dots = (", ".join(f"({x:.2f}, {y:.2f})" for x, y in points) for points in (values, outputs))
    many = "" if cloud is None else f", and small dots for {len(cloud)} outputs of random queries"
    found = np.concatenate([outputs, np.reshape([] if cloud is None else cloud, (-1, 2))])
    where = "all lie" if _inside(found, values) else "not all lie"
    return described(
        fig,
        f"A triangle with the values of {', '.join(names)} at its corners, {corners}. The outputs are at {dots}{many}: "
        f"{where} inside it.",
    )


def whole_way(x: Any, w_q: Any, w_k: Any, w_v: Any) -> Figure:
    """Self-attention from tokens to output, each array a grid with as many cells, with its shape on every arrow.

    x: (T, d_model); w_q, w_k: (d_model, d_k); w_v: (d_model, d_v). The cells of the weights are as dark as these.
    """
    x, *made = (np.asarray(array, float) for array in (x, w_q, w_k, w_v))
    q, k, v = (x @ w for w in made)
    output, weights = arrays.attention(q, k, v)
    fig = new_figure(760, 330)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 760), ylim=(330, 0))
    ax.axis("off")
    mid, low, far = 110, 262, 690
    _grid(ax, 50, mid, x, "X", "T × d_model", palette.FAINT)
    roles = (("Q", "n × d_k", q, 45), ("K", "m × d_k", k, 165), ("V", "m × d_v", v, low))
    for (name, letters, array, y), w, colour in zip(roles, made, palette.ROLES.values(), strict=False):
        _grid(ax, 232, y, array, name, letters, colour)
        _step(ax, (88, mid), (205, y), f"$W_{name}$  {_size(w)}", colour)
    _step(ax, (260, 45), (335, mid - 8), _size(q), palette.QUERY)
    _step(ax, (260, 165), (335, mid + 8), f"$K^\\top$  {_size(k.T)}", palette.KEY)
    _grid(ax, 368, mid, weights, "S", "n × m", palette.FAINT)
    ax.text(368, mid - 38, "1  $QK^\\top$", ha="center", fontsize=10, color=palette.INK)
    _step(ax, (399, mid), (454, mid), _size(weights), palette.INK, lift=11)
    _grid(ax, 484, mid, weights, "scaled", "n × m", palette.FAINT)
    ax.text(484, mid - 38, "2  divide by $\\sqrt{d_k}$", ha="center", fontsize=10, color=palette.INK)
    _step(ax, (515, mid), (625, mid), _size(weights), palette.INK, lift=11)
    ax.text(570, mid + 46, "here a mask\nfrom day 3 on", ha="center", va="center", fontsize=9, color=palette.FAINT)
    _grid(ax, 655, mid, weights, "A", "n × m", palette.FAINT, shades=weights)
    ax.text(655, mid - 38, "3, 4  softmax of each row", ha="center", fontsize=10, color=palette.INK)
    _step(ax, (657, mid + 58), (far, low - 30), _size(weights), palette.INK)
    _step(ax, (260, low), (far - 28, low), _size(v), palette.VALUE)
    _grid(ax, far, low, output, "O", "n × d_v", palette.OUTPUT)
    ax.text(far - 52, low + 32, "5  $AV$", ha="right", fontsize=10, color=palette.INK)
    return described(
        fig,
        f"The whole way. X, {_size(x)}, times W_Q, W_K and W_V gives Q, {_size(q)}, K, {_size(k)}, and V, {_size(v)}. "
        f"Q with K transposed, {_size(k.T)}, gives the scores S, {_size(weights)}; these are divided by the root of "
        f"d_k = {k.shape[1]}; the softmax of each row makes the weights A, {_size(weights)}, and a mask will come "
        f"before it from day 3 on. The weights blend V into the output O, {_size(output)}.",
    )


def _size(array: Any) -> str:
    return " × ".join(map(str, array.shape))


def _grid(ax, x, y, array, name, letters, colour, shades=None, cell=14):
    """An array as a grid of cells around (x, y), with its name and its shape in letters below it."""
    rows, columns = array.shape
    left, top = x - columns * cell / 2, y - rows * cell / 2
    for row in range(rows):
        for column in range(columns):
            shade = palette.colormap()(shades[row][column]) if shades is not None else "white"
            corner = (left + column * cell, top + row * cell)
            ax.add_patch(Rectangle(corner, cell, cell, facecolor=shade, edgecolor=colour, linewidth=1.2))
    below = top + rows * cell
    ax.text(x, below + 11, f"{name}  {_size(array)}", ha="center", va="center", fontsize=10, color=palette.INK)
    ax.text(x, below + 26, letters, ha="center", va="center", fontsize=9, color=palette.FAINT)


def _step(ax, start, end, text, colour, lift=0):
    """An arrow with a text on its middle, or `lift` above it."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.5, "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 - lift)
    ax.text(*middle, text, ha="center", va="center", fontsize=9, color=palette.INK, bbox=box)


def _inside(points, corners):
    """Whether points in the plane lie in a triangle, but for rounding."""
    sides = np.roll(corners, -1, axis=0) - corners
    offsets = points[:, None, :] - corners[None, :, :]
    turns = sides[:, 0] * offsets[..., 1] - sides[:, 1] * offsets[..., 0]  # (points, 3)
    return bool(((turns >= -1e-9).all(axis=1) | (turns <= 1e-9).all(axis=1)).all())


def _label(ax, point, text, colour, *, left=False, above=True):
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
    place = {"xytext": (-8 if left else 8, 7 if above else -16), "ha": "right" if left else "left"}
    ax.annotate(text, point, **place, textcoords="offset points", fontsize=9, color=colour, bbox=box, zorder=5)


def _arrow(ax, start, end, colour, bend=0.0, width=2.0):
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "mutation_scale": 13}
    height = 0.16 if bend else 0.0
    ax.annotate(
        "",
        xy=(end, height),
        xytext=(start, height),
        arrowprops={**style, "connectionstyle": f"arc3,rad={bend}", "shrinkA": 0, "shrinkB": 0},
    )
