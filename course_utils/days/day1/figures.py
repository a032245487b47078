"""The drawings of day 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Circle, Rectangle

from course_utils.attention import arrays
from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def path_lengths(tokens: Sequence[str]) -> Figure:
    """Draw how news of the first token reaches the last: step by step along a chain, or in one look, with arrows."""
    fig = new_figure(720, 160)
    chain, looks = fig.subplots(1, 2)
    last = len(tokens) - 1
    rim = 0.2
    for ax, title in ((chain, f"passed on: {last} steps"), (looks, "attention: 1 step")):
        ax.set_title(title)
        ax.set(xlim=(-0.5, last + 0.5), ylim=(-0.75, 1.5), aspect="equal", anchor="S")
        ax.axis("off")
        for place, token in enumerate(tokens):
            on_the_way = place in (0, last) or ax is chain
            ax.add_patch(Circle((place, 0), rim, fill=False, linewidth=2.4 if on_the_way else 0.9,
                                edgecolor=palette.INK))  # fmt: skip
            ax.text(place, -0.6, token, ha="center", weight="bold" if place in (0, last) else "normal")
    for place in range(last):
        _arrow(chain, (place + rim, 0), (place + 1 - rim, 0))
        chain.text(place + 0.5, 0.16, f"{place + 1}", ha="center", weight="bold")
    for place in reversed(range(last)):
        turn = math.pi / 2 * (1 + place / last)  # each arrow reaches the last word at a place of its own
        end = (last + rim * math.cos(turn), rim * math.sin(turn))
        _arrow(looks, (place, rim), end, bend=-0.38, width=0.9 if place else 2.4)
    looks.text(last / 2, 0.19 * last + rim + 0.08, "1", ha="center", weight="bold")
    fig.subplots_adjust(left=0.02, right=0.98, top=0.86, bottom=0.02, wspace=0.08)
    return described(
        fig,
        f"The {last + 1} words “{' '.join(tokens)}” twice. Left, passed on: {last} numbered arrows lead from each word "
        "to the next, from the first to the last. Right, attention: each of the other words has its own arrow to the "
        "last, so the first needs only the one with number 1.",
        f"How far is it from “{tokens[0]}” to “{tokens[-1]}”? {last} steps from word to word, or one look.",
    )


def triangle_of_values(values: Any, outputs: Any, names: Sequence[str], cloud: Any = None) -> Figure:
    """Three values as the corners of a triangle, the outputs as dots, and `cloud`, (any, 2), as small dots.

    values: (3, 2); outputs: (n, 2); names: three labels, one per value, and the first n of them per output.
    Raises ValueError when values are not three points in the plane.
    """
    values = np.asarray(values, float)
    outputs = np.asarray(outputs, float)
    if values.shape != (3, 2):
        raise ValueError(f"values is {values.shape} but a triangle needs (3, 2)")
    fig = new_figure(580, 400)
    ax = fig.subplots()
    ax.fill(*values.T, facecolor=palette.VALUE, alpha=0.12, edgecolor=palette.VALUE, linewidth=1.5)
    if cloud is not None:
        x, y = np.asarray(cloud).T
        ax.scatter(x, y, s=3, color=palette.INK, linewidth=0)
        ax.text(0.62, 0.55, "small dots: outputs\nof random queries", transform=ax.transAxes)
    ax.scatter(values[:, 0], values[:, 1], s=60, color=palette.VALUE, zorder=3)
    x, y = outputs.T
    ax.scatter(x, y, s=60, color=palette.OUTPUT, zorder=4)
    for point, name in zip(values, names, strict=True):  # beside the triangle, not on it
        above = point[1] > values[:, 1].mean()
        ax.annotate(f"value of “{name}”", point, (8, 7 if above else -16), textcoords="offset points")
    for point, name in zip(outputs, names, strict=False):  # on the nearer side, where no small dots are
        left = point[0] < outputs[:, 0].mean()
        edge = values[:, 0].min() - 0.04 if left else values[:, 0].max() + 0.04
        stroke = {"arrowstyle": "-", "color": palette.OUTPUT, "linewidth": 1}
        ax.annotate(f"“{name}”", point, (edge, point[1]), ha="right" if left else "left", va="center",
                    weight="bold", arrowprops=stroke)  # fmt: skip
    ax.set(xlabel="first coordinate", ylabel="second coordinate")
    ax.margins(x=0.3, y=0.12)
    ax.set_aspect("equal")
    fig.subplots_adjust(left=0.11, right=0.98, top=0.98, bottom=0.13)
    corners, dots = (", ".join(f"({x:.2f}, {y:.2f})" for x, y in points) for points in (values, outputs))
    many = "" if cloud is None else f", and small dots for {len(cloud)} outputs of random queries"
    every_output = np.concatenate([outputs, np.reshape([] if cloud is None else cloud, (-1, 2))])
    where = "all lie" if _inside(every_output, values) else "not all lie"
    return described(
        fig,
        f"A triangle with the values of {', '.join(names)} at its corners, {corners}. The outputs are at {dots}{many}: "
        f"{where} inside it.",
        "Every output is a blend of the three values, so it cannot leave their triangle.",
    )


def whole_way(x: Any, w_q: Any, w_k: Any, w_v: Any) -> Figure:
    """Self-attention from tokens to output, each array a grid with as many cells, its formula and its size below it.

    x: (T, d_model); w_q, w_k: (d_model, d_k); w_v: (d_model, d_v). The cells are empty: readers fill them.
    """
    x, *made = (np.asarray(array, float) for array in (x, w_q, w_k, w_v))
    q, k, v = (x @ w for w in made)
    output, weights = arrays.attention(q, k, v)
    fig = new_figure(720, 350)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 720), ylim=(350, 0))
    ax.axis("off")
    high, mid, low = rows = 43, 164, 285  # of Q, of K and all that comes from both, of V and the output
    words = 66
    roles = 232
    scores = 376
    scaled = 492
    far = 652
    _grid(ax, words, mid, x, "$X$", palette.INK, head="tokens")
    projected = ("Q", q), ("K", k), ("V", v)
    for (name, array), w, y, colour in zip(projected, made, rows, palette.ROLES.values(), strict=False):
        _grid(ax, roles, y, array, f"${name} = XW_{name}$", colour)
        start = mid + (y - mid) / 12
        side = "top" if y == low else "bottom"
        _step(ax, (words + 36, start), (roles - 24, y), f"$W_{name}$  {_size(w)}", colour, va=side)
    for y, text, colour in ((high, "", palette.QUERY), (mid, f"$K^{{\\!\\top}}$  {_size(k.T)}", palette.KEY)):
        _step(ax, (roles + 24, y), (scores - 30, mid - (mid - y) / 12), text, colour)
    _grid(ax, scores, mid, weights, "$S = QK^{\\!\\top}$", palette.INK, head="1  scores")
    _step(ax, (scores + 30, mid), (scaled - 30, mid), "", palette.INK)
    _grid(ax, scaled, mid, weights, "$S\\,/\\sqrt{d_k}$", palette.INK, head="2  scale")
    _step(ax, (scaled + 30, mid), (far - 30, mid), "softmax", palette.INK)
    _grid(ax, far, mid, weights, "$A$", palette.INK, head="3, 4  weights")
    _step(ax, (far, mid + 64), (far, low - 30), "", palette.INK)
    _step(ax, (roles + 24, low), (far - 24, low), "", palette.VALUE)
    _grid(ax, far, low, output, "$O = AV$", palette.OUTPUT)
    ax.text(far - 14, low - 32, "5  blend", ha="right", weight="bold")
    return described(
        fig,
        f"Every step. X, {_size(x)}, times W_Q, W_K and W_V gives Q, {_size(q)}, K, {_size(k)}, and V, {_size(v)}. "
        f"Q with K transposed, {_size(k.T)}, gives the scores S, {_size(weights)}; these are divided by the root of "
        f"d_k = {k.shape[1]}; the softmax of each row makes the weights A, {_size(weights)}. The "
        f"weights blend V into the output O, {_size(output)}.",
        "From the tokens X to the output O: five matrix products, a division and a softmax.",
    )


def _size(array: Any) -> str:
    return " × ".join(map(str, array.shape))


def _grid(ax, x, y, array, formula, colour, head="", cell=14):
    """An array as a grid of cells around (x, y), with a heading above it, and its formula and size below."""
    rows, columns = array.shape
    left, top = x - columns * cell / 2, y - rows * cell / 2
    for row in range(rows):
        for column in range(columns):
            corner = (left + column * cell, top + row * cell)
            ax.add_patch(Rectangle(corner, cell, cell, facecolor="none", edgecolor=colour, linewidth=1.2))
    below = top + rows * cell
    ax.text(x, top - 10, head, ha="center", weight="bold")
    ax.text(x, below + 18, formula, ha="center", fontsize=12)
    ax.text(x, below + 37, _size(array), ha="center")


def _step(ax, start, end, text, colour, va="bottom"):
    """An arrow, with a text above its middle, or below it where it falls; beside it where it is steep."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.5, "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)
    (x, y) = np.add(start, end) / 2
    level = start[1] == end[1]
    ax.text(x if level else x - 6, y + (4 if va == "top" else -4), text, ha="center" if level else "right", va=va)


def _inside(points, corners):
    """Whether points in the plane lie in a triangle, but for rounding."""
    sides = np.roll(corners, -1, axis=0) - corners
    offsets = points[:, None, :] - corners[None, :, :]
    turns = sides[:, 0] * offsets[..., 1] - sides[:, 1] * offsets[..., 0]  # (points, 3)
    return bool(((turns >= -1e-9).all(axis=1) | (turns <= 1e-9).all(axis=1)).all())


def _arrow(ax, start, end, bend=0.0, width=2.4):
    style = {"arrowstyle": "-|>", "color": palette.INK, "linewidth": width, "mutation_scale": 5 + 4 * width}
    style |= {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)
