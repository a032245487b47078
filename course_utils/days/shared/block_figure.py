"""Figure of a decoder block with the shapes on its arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.costs.configurations import Configuration


def decoder_block(sizes: Configuration, qk_norm: bool = False, rope: bool = False) -> Figure:
    """Draw a decoder block with the shapes on its arrows: the residual stream on top, and two branches that add to it.

    The left branch is the whole attention layer, from the projections to W_O; the right one is the feed-forward part.

    Args:
        sizes: a model whose layers have heads and a feed-forward network.
        qk_norm: whether the model normalises the queries and keys of each head.
        rope: whether it rotates them by their positions.

    Raises:
        ValueError: for a model without a feed-forward width.
    """
    if sizes.d_ff is None:
        raise ValueError(f"{sizes.name} has experts in place of one feed-forward network")
    width, height = 770, 400
    fig = new_figure(720, 375)
    ax = fig.add_axes((0, 0, 1, 1))  # in units of 0.94 CSS pixels from the top
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    _stream(ax, f"(T, {sizes.d_model:,})", (500, 730))
    _draw_attention(ax, sizes, qk_norm, rope)
    _draw_feed_forward(ax, sizes)
    return described(
        fig,
        _describe(sizes, qk_norm, rope),
        f"Each branch reads a normalised copy of the stream and adds what it finds, so a token has {sizes.d_model:,} "
        "numbers all along the top.",
    )


def _draw_attention(ax, sizes, qk_norm, rope):
    """Draw the left branch: norm, projections, attention of the heads, merge and W_O, within a frame."""
    h = sizes.n_heads
    h_kv = sizes.n_kv_heads
    d_head = sizes.d_head
    x = f"(T, {sizes.d_model:,})"
    joined = f"(T, {h * d_head:,})"
    # from the stream down through the norm, and the frame around all that follows
    _box(ax, 60, 110, 74, 26, _norm(sizes))
    ax.add_patch(Rectangle((10, 150), 482, 240, facecolor="none", edgecolor=palette.INK, linewidth=0.7))
    ax.text(482, 166, f"attention, {h} heads", ha="right", va="center", weight="bold")
    _arrow(ax, (60, 44), (60, 97))
    _arrow(ax, (60, 123), (60, 190), x)
    # a row each for q, k and v: the projection, then what changes it on its way to the scores
    projections = (
        ("$W_Q$", "q", h, palette.QUERY),
        ("$W_K$", "k", h_kv, palette.KEY),
        ("$W_V$", "v", h_kv, palette.VALUE),
    )
    changes = [name for name, has in (("norm", qk_norm), ("RoPE", rope)) if has]  # of queries and keys
    for row, (matrix, name, heads, colour) in enumerate(projections):
        y = 205 + 66 * row
        _box(ax, 60, y, 54, 28, matrix, colour)
        if row:
            _arrow(ax, (22, 180), (33, y), bend=(22, y))
        start = 87
        for place, change in enumerate(changes if name != "v" else ()):
            _box(ax, 121 + 61 * place, y, 46, 22, change, colour)
            _arrow(ax, (start, y), (98 + 61 * place, y))
            start = 144 + 61 * place
        _arrow(ax, (start, y), (220, y))
        above = 17 if start > 87 else 5
        ax.text(154, y - above, f"{name} ({heads}, T, {d_head})", fontsize=10, ha="center")
    ax.plot([60, 22, 22], [180, 180, 200], color=palette.INK, linewidth=1.2)
    if rope:
        ax.text(22, 376, "RoPE turns q and k by their positions", fontsize=10, va="center")
    # the heads, merged, and up through W_O to the first plus sign
    _box(ax, 270, 271, 100, 160, f"scores $/\\sqrt{{{d_head}}}$\n\nmask\n\nsoftmax\n\ntimes v")
    _arrow(ax, (320, 271), (396, 271), f"({h}, T,\n{d_head})")
    _box(ax, 426, 271, 60, 28, "merge")
    _arrow(ax, (426, 257), (426, 219), joined, beside=True)
    _box(ax, 426, 205, 54, 28, "$W_O$")
    _arrow(ax, (453, 205), (500, 56), x, bend=(500, 205))


def _draw_feed_forward(ax, sizes):
    """Draw the right branch: norm, up (and gate), activation and down, and up to the second plus sign."""
    x = f"(T, {sizes.d_model:,})"
    wide = f"(T, {sizes.d_ff:,})"
    _box(ax, 610, 110, 74, 26, _norm(sizes))
    _arrow(ax, (610, 44), (610, 97))
    if sizes.gated:
        _gated(ax, x, wide)
    else:
        _arrow(ax, (610, 123), (610, 176), x, beside=True)
        _box(ax, 610, 190, 54, 28, "up")
        _arrow(ax, (610, 204), (610, 246), wide, beside=True)
        _box(ax, 610, 260, 92, 28, "activation")
        _arrow(ax, (610, 274), (610, 316), wide, beside=True)
    _box(ax, 610, 330, 54, 28, "down")
    ax.text(610, 376, "feed-forward network", ha="center", va="center", weight="bold")
    _arrow(ax, (637, 330), (730, 56), bend=(730, 330))
    ax.text(685, 326, x, fontsize=10, ha="center", va="bottom")


def _norm(sizes):
    """Return the name of the norm before each branch: models with a gate have RMSNorm."""
    return "RMSNorm" if sizes.gated else "norm"


def _describe(sizes, qk_norm, rope):
    """Return the alt text of the figure."""
    h = sizes.n_heads
    d_head = sizes.d_head
    x = f"(T, {sizes.d_model:,})"
    wide = f"(T, {sizes.d_ff:,})"
    changes = {
        (False, False): "",
        (True, False): "q and k are normalised; ",
        (False, True): "q and k are turned by position; ",
        (True, True): "q and k are normalised and turned by position; ",
    }[bool(qk_norm), bool(rope)]
    if sizes.gated:
        widening = (
            f"forks: up and gate each widen it to {wide}, gate goes through SiLU, and the two are multiplied, number "
            "by number. Down leads the product "
        )
    else:
        widening = f"widened to {wide} by up, goes through an activation, and is led by down "
    return (
        f"A block of {sizes.name}. The residual stream x, {x}, runs along the top from left to right, through two plus "
        f"signs. The first branch leaves it, is normalised and goes through attention: W_Q gives q, ({h}, T, "
        f"{d_head}), W_K and W_V give k and v, ({sizes.n_kv_heads}, T, {d_head}) each; {changes}"
        f"{h} heads, {sizes.group} to a key head, "
        f"give ({h}, T, {d_head}), merged to (T, {h * d_head:,}); W_O leads back to {x}, which is added to the stream. "
        f"The second branch is normalised and {widening}back to {x}, which is added."
    )


def _gated(ax, narrow, wide):
    """Draw up and gate side by side, gate with SiLU, and their product, from the norm at (610, 110) down to y = 316."""
    ax.plot([610, 610], [123, 152], color=palette.INK, linewidth=1.2, zorder=1)
    ax.text(617, 138, narrow, fontsize=10, va="center")
    for x, name in ((565, "up"), (655, "gate")):
        _arrow(ax, (610, 152), (x, 168), bend=(x, 152))
        _box(ax, x, 181, 54, 26, name)
    _arrow(ax, (655, 194), (655, 222), wide, beside=True)
    _box(ax, 655, 234, 54, 24, "SiLU")
    ax.text(572, 214, wide, fontsize=10, va="center")
    _arrow(ax, (565, 194), (599, 271), bend=(565, 271))
    _arrow(ax, (655, 246), (621, 271), bend=(655, 271))
    ring = {"boxstyle": "circle,pad=0.15", "facecolor": "none", "edgecolor": palette.INK, "linewidth": 1.5}
    ax.text(610, 271, "×", fontsize=12, ha="center", va="center", zorder=4, bbox=ring)
    _arrow(ax, (610, 281), (610, 316), wide, beside=True)


def _stream(ax, shape, added):
    """Draw the residual stream along the top, with the two places where a branch is added."""
    ax.annotate(
        "", xy=(762, 44), xytext=(8, 44), arrowprops={"arrowstyle": "-|>", "linewidth": 3, "color": palette.INK}
    )
    ax.text(8, 20, f"residual stream x {shape}", va="center", weight="bold")
    ring = {"boxstyle": "circle,pad=0.15", "facecolor": palette.INK, "edgecolor": palette.INK, "linewidth": 1.6}
    for place in added:
        ax.text(place, 44, "+", fontsize=14, ha="center", va="center", color=palette.ink_on(palette.INK), zorder=4,
                bbox=ring)  # fmt: skip
        ax.text(place, 14, "x + Δ", va="center", ha="center")


def _box(ax, x, y, width, height, words, colour=None):
    box = (x - width / 2, y - height / 2)
    ax.add_patch(Rectangle(box, width, height, facecolor="none", edgecolor=colour or palette.INK, linewidth=1.5))
    ax.text(x, y, words, ha="center", va="center", linespacing=0.9)


def _arrow(ax, start, end, words="", bend=None, beside=False):
    """Draw an arrow from start to end, by way of `bend` if given, with the shape of its tensor beside it."""
    if bend:
        ax.plot([start[0], bend[0]], [start[1], bend[1]], color=palette.INK, linewidth=1.2, zorder=1)
    arrow = {"arrowstyle": "-|>", "linewidth": 1.2, "color": palette.INK, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=bend or start, arrowprops=arrow, zorder=1)
    middle = ((bend or start)[0] + end[0]) / 2, ((bend or start)[1] + end[1]) / 2
    across = middle[1] != end[1]  # an upright arrow has its text on the right
    x, y = (middle[0] + 7, middle[1]) if across or beside else (middle[0], middle[1] - 5)
    align = {"ha": "left", "va": "center"} if across or beside else {"ha": "center", "va": "bottom"}
    ax.text(x, y, words, fontsize=10, **align)
