"""Tiled attention one tile at a time: what sits in fast memory, how m, l and o change, how many bytes have moved."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import traitlets

from course_utils.attention.shapes import check_causal, check_shapes, whole
from course_utils.attention.traffic import naive_traffic
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import InGallery, script, style
from course_utils.views.shared.coerce import as_matrix
from course_utils.views.shared.walk import WalkWidget
from course_utils.views.widgets.tile_walk import PARTS, Walk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 32  # queries or keys; more do not fit a page
_MAX_WIDE = 16  # numbers in each of them


class TileWalker(WalkWidget):
    """The loops of FlashAttention walked through: load a block of Q, pass all blocks of K and V by it, store o and lse.

    n queries and m keys (n when left out) of d numbers each, drawn from `seed`; or q (n, d_k), k (m, d_k) and v
    (m, d_v), a list, NumPy or torch each, and then their sizes count. At most 32 queries and keys and 16 numbers.
    block_q, block_k: rows of a block, 1 to 32. causal: blocks above the diagonal are skipped; the last query sees the
    last key. bytes_per_value: 4 for float32. Arithmetic is in float64; scores are scaled by 1/√d_k.
    `.step` (0: nothing has moved), `.causal`, `.block_q` and `.block_k` can be read and set; a change of one of the
    last three starts the walk anew. `.last` is the last step. `.bytes`, {"read": …, "written": …}, is what has moved up
    to this step, `.naive_bytes` the least that attention in three passes moves. `.output` (n, d_v) and `.lse` (n,) are
    what the walk gives in the end. A page without a kernel walks through other tiles itself.
    Raises ValueError or TypeError for what cannot be shown.
    Source: Dao 2023, algorithm 1.
    """

    in_gallery = InGallery(62, "Walk through tiles", question="How much of the square exists at any moment?")

    _SETTINGS = ("causal", "block_q", "block_k")

    _esm = script("tile_walker.js")
    _css = style("player.css", "tile_walker.css")

    causal = traitlets.Any(False, help="whether a query sees no key after its own").tag(sync=True)
    block_q = traitlets.Any(4, help="queries in a block").tag(sync=True)
    block_k = traitlets.Any(4, help="keys in a block").tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)

    def __init__(
        self, n=16, m=None, d=8, block_q=4, block_k=4, causal=False, q=None, k=None, v=None, seed=0,
        title="attention in tiles", bytes_per_value=4,
    ):  # fmt: skip
        self._inputs = (
            _random_inputs(n, m, d, seed) if q is None and k is None and v is None else _checked_inputs(q, k, v)
        )
        self._itemsize = whole("bytes_per_value", bytes_per_value)
        settings = {
            "causal": check_causal(causal),
            "block_q": _checked_block("block_q", block_q),
            "block_k": _checked_block("block_k", block_k),
        }
        n, m = len(self._inputs[0]), len(self._inputs[1])
        layout = {
            "n": n,
            "m": m,
            "cell": max(9, min(30, 288 // max(n, m))),
            "naive": self.naive_bytes,
            "itemsize": self._itemsize,
            "blocks": {"block_q": _sizes(n), "block_k": _sizes(m)},
            "parts": list(PARTS),
        }
        super().__init__(**settings, title=str(title), _layout=layout, _walk=self._walked(**settings))

    @property
    def last(self) -> int:
        """The last step."""
        return len(self._walk["frames"]) - 1

    @property
    def bytes(self) -> dict[str, int]:
        """Bytes moved up to this step: {"read": …, "written": …}; at the last, those of `traffic.tiled_traffic`."""
        frame = self._walk["frames"][self.step]
        return {"read": frame["read"], "written": frame["written"]}

    @property
    def naive_bytes(self) -> dict[str, int]:
        """The least bytes that naive attention moves, {"read": …, "written": …}: `traffic.naive_traffic`."""
        q, k, v = self._inputs
        return naive_traffic(len(q), len(k), q.shape[-1], v.shape[-1], self._itemsize)

    @property
    def inputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, k and v that the walk reads: (n, d), (m, d), (m, d_v) float64, copies."""
        q, k, v = self._inputs
        return q.numpy().copy(), k.numpy().copy(), v.numpy().copy()

    @property
    def output(self) -> np.ndarray:
        """The attention that the walk computes: (n, d_v) float64."""
        return self._result[0].numpy().copy()

    @property
    def lse(self) -> np.ndarray:
        """The log-sum-exp of each query's scores: (n,) float64; −∞ for a query that sees no key."""
        return self._result[1].numpy().copy()

    @traitlets.validate("causal")
    def _causal_is_bool(self, proposal):
        return check_causal(proposal.value)

    @traitlets.validate("block_q", "block_k")
    def _block_fits(self, proposal):
        return _checked_block(proposal.trait.name, proposal.value)

    def _walked(self, causal, block_q, block_k):
        q, k, v = self._inputs
        walk = Walk(q, k, v, causal, block_q, block_k, self._itemsize)
        self._result = walk.o, walk.lse
        return {"settings": {"causal": causal, "block_q": block_q, "block_k": block_k}, **walk.for_the_page()}

    def alone_state(self) -> dict[str, Any]:
        q, k, v = (values.tolist() for values in self._inputs)
        return {"_alone": {"q": q, "k": k, "v": v, "parts": list(PARTS)}}

    # ---- text and picture

    def as_text(self) -> str:
        n, m, d = self._layout["n"], self._layout["m"], self._inputs[0].shape[1]
        frame = self._walk["frames"][self.step]
        naive = self.naive_bytes
        causal = ", causal" if self.causal else ""
        lines = [
            f"{self.title}: {n} queries × {m} keys{causal}, d = {d}, "
            f"blocks of {self.block_q} queries and {self.block_k} keys",
            f"step {self.step} of {self.last}: {frame['message']}",
            "tiles: # done, @ now, . to come, x skipped",
            *self._map(self.step),
        ]
        if frame["rows"]:
            lines += _table(_ROW_HEADS, [_row_texts(row) for row in frame["rows"]])
        lines.append(f"moved so far:   {_describe_traffic(frame)}")
        lines.append(f"tiled in all:   {_describe_traffic(self._walk['frames'][-1])}")
        lines.append(f"naive at least: {_describe_traffic(naive)}")
        return "\n".join(lines)

    def alt(self) -> str:
        step = self._pictured()
        frame = self._walk["frames"][step]
        total = self._walk["frames"][-1]
        skipped = " Tiles above the diagonal are hatched as skipped." if self._walk["skipped"] else ""
        return (
            f"A map of {self._layout['n']} queries by {self._layout['m']} keys in tiles, at step {step} of "
            f"{self.last}: {frame['done']} of {len(self._walk['tiles'])} tiles are done.{skipped} {frame['message']} "
            f"Bytes moved so far: {_describe_traffic(frame)}. Tiled in all: {_describe_traffic(total)}. "
            f"Naive at least: {_describe_traffic(self.naive_bytes)}."
        )

    def figure(self) -> Figure:
        return _draw(self, self._pictured())

    def _pictured(self):
        """The step that the picture shows: the present one, or at the start one in the middle that rescales."""
        if self.step:
            return self.step
        tiles = [step for step, frame in enumerate(self._walk["frames"]) if frame["tile"] is not None]
        rescaled = [step for step in tiles if "shrink" in self._walk["frames"][step]["message"]]
        middle = rescaled or tiles
        return middle[len(middle) // 2]

    def _map(self, step):
        """One character a score."""
        walk = self._walk
        frame = self._walk["frames"][step]
        cells = np.full((self._layout["n"], self._layout["m"]), ".")
        for top, bottom, left, right in walk["skipped"]:
            cells[top:bottom, left:right] = "x"
        for tile, (top, bottom, left, right) in enumerate(walk["tiles"]):
            if tile < frame["done"]:
                cells[top:bottom, left:right] = "#"
            if tile == frame["tile"]:
                cells[top:bottom, left:right] = "@"
        for row, first, end in walk["masked"]:
            cells[row, first:end] = np.where(cells[row, first:end] == ".", ".", "x")
        return ["".join(row) for row in cells]


# --- the walk -------------------------------------------------------------------------------------------------------


_ROW_HEADS = ("query", "m", "new m", "factor", "l", "new l")


def _row_texts(row):
    return [row["query"], row["m"][0], row["m"][1], row["factor"], row["l"][0], row["l"][1]]


def _table(heads, rows):
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, wide, strict=True)).rstrip() for row in (heads, *rows)
    ]


def _describe_traffic(moved):
    loaded = moved["read"]
    stored = moved["written"]
    return f"{loaded:,} loaded + {stored:,} stored = {loaded + stored:,} bytes"


# --- the inputs -----------------------------------------------------------------------------------------------------


def _random_inputs(n, m, d, seed):
    n = _size("n", n, _MOST)
    m = n if m is None else _size("m", m, _MOST)
    d = _size("d", d, _MAX_WIDE)
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.standard_normal((rows, d))) for rows in (n, m, m)]


def _checked_inputs(q, k, v):
    missing = [name for name, x in (("q", q), ("k", k), ("v", v)) if x is None]
    if missing:
        raise ValueError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: give q, k and v")
    arrays = [as_matrix(name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    check_shapes(*(array.shape for array in arrays))
    for name, array in zip("qkv", arrays, strict=True):
        if len(array) > _MOST or array.shape[1] > _MAX_WIDE:
            raise ValueError(
                f"{name} is {array.shape}: the walker shows up to {_MOST} rows of {_MAX_WIDE} numbers; take a slice"
            )
    return [torch.from_numpy(array) for array in arrays]


def _size(name, value, most):
    value = whole(name, value)
    if value > most:
        raise ValueError(f"{name} is {value}: the walker shows up to {most}")
    return value


def _checked_block(name, value):
    value = whole(name, value)
    if value > _MOST:
        raise ValueError(f"{name} is {value}: give 1 to {_MOST} rows")
    return value


def _sizes(count):
    """Sizes of a block that the menu offers: powers of two, and all at once."""
    return [size for size in (1, 2, 4, 8, 16) if size < count] + [count]


# --- the picture ----------------------------------------------------------------------------------------------------


def _draw(walker, step):
    walk = walker._walk
    layout = walker._layout
    frame = walk["frames"][step]
    n = layout["n"]
    m = layout["m"]
    cell = max(7, min(22, 240 // max(n, m)))
    left = 60
    top = 92
    wide = 640
    lines = textwrap.wrap(f"Step {step} of {walker.last}. {frame['message']}", 96)
    table = _table(_ROW_HEADS, [_row_texts(row) for row in frame["rows"][:8]]) if frame["rows"] else []
    below = top + n * cell + 24
    side = top + 20 * (len(PARTS) + 8)
    below = max(below, side)
    height = below + 18 * len(lines) + 17 * len(table) + 14
    fig = new_figure(wide, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, wide), ylim=(height, 0))
    ax.axis("off")
    text: dict[str, Any] = {"va": "center", "parse_math": False}
    ax.text(12, 18, walker.title, fontweight="bold", **text)
    _draw_map(ax, walk, frame, n, m, left, top, cell)
    _draw_side(ax, walker, frame, left + m * cell + 60, top - 40, wide - (left + m * cell + 72), text)
    for place, line in enumerate(lines):
        ax.text(12, below + 18 * place, line, **text)
    for place, line in enumerate(table):
        y = below + 18 * len(lines) + 8 + 17 * place
        ax.text(12, y, line, fontsize=10, family="monospace", **text)
    return fig


def _draw_map(ax, walk, frame, n, m, left, top, cell):
    """The grid of scores with its upper left corner at (left, top), and around it strips for K, V, Q and o."""
    # The strips: a frame for all rows of a matrix, and filled the part that is loaded, or stored.
    _draw_strip(ax, (left, top - 34, m * cell, 12), frame["keys"], cell, palette.KEY, level=True)
    ax.text(left - 6, top - 28, "K", ha="right", va="center")
    _draw_strip(ax, (left, top - 18, m * cell, 12), frame["keys"], cell, palette.VALUE, level=True)
    ax.text(left - 6, top - 12, "V", ha="right", va="center")
    _draw_strip(ax, (left - 18, top, 12, n * cell), frame["queries"], cell, palette.QUERY, level=False)
    ax.text(left - 24, top + n * cell / 2, "Q", ha="right", va="center")
    stored = [0, frame["stored"]] if frame["stored"] else None
    _draw_strip(ax, (left + m * cell + 6, top, 12, n * cell), stored, cell, palette.OUTPUT, level=False)
    ax.text(left + m * cell + 24, top + n * cell / 2, "o", ha="left", va="center")

    def area_of(first_row, end_row, first_key, end_key):
        x, y = left + first_key * cell, top + first_row * cell
        return x, y, (end_key - first_key) * cell, (end_row - first_row) * cell

    # Tiles above the diagonal are hatched: they are never loaded.
    for skipped in walk["skipped"]:
        _draw_box(ax, area_of(*skipped), hatch="////")
    # Tiles that are done are shaded, and the present one stands out before its neighbours.
    for number, tile in enumerate(walk["tiles"]):
        if number == frame["tile"]:
            look = {"facecolor": (palette.KEY, 0.25), "edgecolor": palette.KEY, "linewidth": 2.4, "zorder": 3}
        else:
            look = {"facecolor": (palette.QUERY, 0.2) if number < frame["done"] else "none", "zorder": 1}
        _draw_box(ax, area_of(*tile), **look)
    # Within tiles on the diagonal a cross marks each score that the mask hides.
    for row, first, end in walk["masked"]:
        for key in range(first, end):
            x, y = left + (key + 0.5) * cell, top + (row + 0.5) * cell
            ax.plot(x, y, "x", color=palette.INK, markersize=3.2, markeredgewidth=0.8, zorder=4)


def _draw_strip(ax, area, part, cell, colour, level):
    """A strip along a matrix's rows, with part = [first, end) of them filled; part may be None."""
    x, y, width, height = area
    _draw_box(ax, area)
    if part:
        start = part[0] * cell
        length = (part[1] - part[0]) * cell
        filled = (x + start, y, length, height) if level else (x, y + start, width, length)
        _draw_box(ax, filled, facecolor=colour, edgecolor=colour)


def _draw_box(ax, area, **look):
    from matplotlib.patches import Rectangle

    x, y, width, height = area
    usual: dict[str, Any] = {"facecolor": "none", "edgecolor": palette.INK, "linewidth": 0.8}
    ax.add_patch(Rectangle((x, y), width, height, **(usual | look)))


def _draw_side(ax, walker, frame, x, y, width, text):
    from matplotlib.patches import Rectangle

    ax.text(x, y, f"in fast memory: {frame['held_bytes']:,} bytes", fontweight="bold", **text)
    for place, (part, size) in enumerate(zip(PARTS, frame["held"], strict=True), start=1):
        ax.text(x, y + 20 * place, part, **text)
        ax.text(x + 118, y + 20 * place, size, **text)
    naive = walker.naive_bytes
    total = walker._walk["frames"][-1]
    most = max(sum(naive.values()), total["read"] + total["written"])
    y += 20 * (len(PARTS) + 1) + 10
    for name, moved in (("tiled so far", frame), ("tiled in all", total), ("naive at least", naive)):
        both = moved["read"] + moved["written"]
        ax.text(x, y, f"{name}: {both:,} bytes", **text)
        for start, size, colour in (
            (0, moved["read"], palette.BLUE),
            (moved["read"], moved["written"], palette.OUTPUT),
        ):
            corner = (x + width * start / most, y + 9)
            ax.add_patch(Rectangle(corner, width * size / most, 9, facecolor=colour, linewidth=0))
        y += 38
    ax.text(x, y - 6, "left, blue: loaded; right, pink: stored", fontsize=10, **(text | {"color": palette.INK}))
