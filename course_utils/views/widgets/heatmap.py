"""A heatmap of attention weights whose rows can be read one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, ramp_trait, script, style
from course_utils.views.shared.coerce import as_labels, as_mask, as_matrix
from course_utils.views.shared.number_text import round_to_two

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.views.shared.coerce import Numbers

_DOM_CELLS = 400  # above this many cells one canvas is drawn instead of a table
_LISTED_KEYS = 20  # up to this many keys each gets a bar of its own
_LARGEST = 8


class AttentionHeatmap(CourseWidget):
    """Weights as a grid: hover or arrow keys show a row's distribution, click or Enter pins it.

    weights: (n, m) numbers from 0 to 1, one row per query, one column per key; NumPy, torch or nested lists.
        Set `.weights` again to redraw in place; the pinned row and the focus stay.
    queries: n labels. keys: m labels; by default the queries.
    mask: (n, m) booleans, True means may attend; blocked cells are hatched, and flagged where they have a weight all
        the same, which is a leak. `.mask` can be set like `.weights`; None takes it away.
    `.row` is the pinned row, None when there is none; it can be set.
    Raises ValueError when weights, queries, keys and mask do not fit, or when weights are not weights.
    """

    in_gallery = InGallery(
        1, "Read the weights", summary="Go along the rows, and see how each query shares its weights."
    )

    _esm = script("heatmap.js")
    _css = style("heatmap.css")

    row = traitlets.Int(None, allow_none=True, help="the pinned row").tag(sync=True)
    title = traitlets.Unicode("attention weights").tag(sync=True)
    _queries = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _keys = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _frame = traitlets.Dict().tag(sync=True)
    _ramp = ramp_trait()

    def __init__(self, weights, queries, keys=None, title="attention weights", mask=None):
        queries = as_labels("queries", queries)
        keys = queries if keys is None else as_labels("keys", keys)
        self._weights = _verify_weights(weights, len(queries), len(keys))
        self._mask = None if mask is None else as_mask(mask, len(queries), len(keys))
        super().__init__(
            title=str(title),
            _queries=queries,
            _keys=keys,
            _layout={
                "canvas": len(queries) * len(keys) > _DOM_CELLS,
                "listed": len(keys) <= _LISTED_KEYS,
                "bars": len(keys) if len(keys) <= _LISTED_KEYS else _LARGEST,
            },
            _frame=_frame(self._weights, self._mask, queries, keys),
        )

    @property
    def weights(self) -> np.ndarray:
        """The weights shown, (n, m) float64; a copy."""
        return self._weights.copy()

    @weights.setter
    def weights(self, weights: Numbers) -> None:
        self._weights = _verify_weights(weights, len(self._queries), len(self._keys))
        self._frame = _frame(self._weights, self._mask, self._queries, self._keys)

    @property
    def mask(self) -> np.ndarray | None:
        """The mask, (n, m) booleans, True means may attend, or None; a copy."""
        return None if self._mask is None else self._mask.copy()

    @mask.setter
    def mask(self, mask: Any) -> None:
        self._mask = None if mask is None else as_mask(mask, len(self._queries), len(self._keys))
        self._frame = _frame(self._weights, self._mask, self._queries, self._keys)

    @traitlets.validate("row")
    def _row_exists(self, proposal):
        row = proposal.value
        n = len(self._queries)
        if row is not None and not 0 <= row < n:
            raise ValueError(f"row is {row} but there are {n} queries: 0 to {n - 1}, or None to unpin")
        return row

    def as_text(self) -> str:
        n, m = self._weights.shape
        listed_n = min(n, 12)
        listed_m = min(m, 12)
        leaks = self._leaks()
        least = 5 if leaks.any() else 4
        width = max(least, *(len(label) for label in (*self._queries[:listed_n], *self._keys[:listed_m])))
        more = "  …" if listed_m < m else ""
        lines = [f"{self.title}: {n} queries (rows) × {m} keys (columns)"]
        lines.append(" " * width + "".join(f"  {key:>{width}}" for key in self._keys[:listed_m]) + more)
        texts = np.array(_texts(self._weights, self._mask)).reshape(n, m)
        for query, row, flags in zip(self._queries[:listed_n], texts, leaks, strict=False):
            cells = [f"!{text}" if flag else text for text, flag in zip(row, flags, strict=True)]
            lines.append(f"{query:>{width}}" + "".join(f"  {cell:>{width}}" for cell in cells[:listed_m]) + more)
        if listed_n < n:
            lines.append("…")
        if self._mask is not None:
            lines.append("– blocked: may not attend")
        if leaks.any():
            lines.append(f"! blocked, but has a weight: {_count_cells(leaks)}")
        return "\n".join(lines)

    def alt(self) -> str:
        n, m = self._weights.shape
        rows = []
        for r, query in enumerate(self._queries[:6]):
            row = self._weights[r] if self._mask is None else self._weights[r] * self._mask[r]
            if row.any():
                rows.append(f"{query} attends most to {self._keys[row.argmax()]} ({round_to_two(row.max()):.2f})")
            else:
                blocked = self._mask is not None and not self._mask[r].any()
                rows.append(f"{query} may attend to nothing" if blocked else f"{query} attends to nothing")
        more = "; and so on" if n > 6 else ""
        masked = "" if self._mask is None else f", {int((~self._mask).sum())} of {n * m} cells blocked"
        leaks = self._leaks()
        leak = f" A leak: {_count_cells(leaks)}." if leaks.any() else ""
        return f"Heatmap of {self.title}, {n} queries by {m} keys{masked}: {'; '.join(rows)}{more}.{leak}"

    def _leaks(self):
        """Where a blocked cell has a weight, (n, m) booleans."""
        if self._mask is None:
            return np.zeros(self._weights.shape, bool)
        return ~self._mask & (self._weights > 0)

    def figure(self) -> Figure:
        n, m = self._weights.shape
        labelled = max(n, m) <= 40
        cell = max(3.0, min(44.0, 480 / max(n, m)))
        left = 8 * max(map(len, self._queries)) + 34 if labelled else 62
        names = max(map(len, self._keys))
        turned = labelled and names * 8 > cell
        top = (7.5 * names if turned else 14) + 54 if labelled else 62
        width, height = left + max(m * cell, 180) + 20, top + n * cell + 16
        fig = new_figure(width, height)
        ax = fig.add_axes((left / width, 16 / height, m * cell / width, n * cell / height))
        drawn = self._weights
        leaks = self._leaks()
        if self._mask is not None:
            drawn = np.ma.masked_where(~self._mask & ~leaks, drawn)
            ax.patch.set(facecolor="none", edgecolor=palette.INK, hatch="////")  # seen where a cell is blocked
        plain = cell < 30 and self._mask is None  # no numbers on it, and no hatches below
        colours = palette.veil() if plain else palette.colormap()
        ax.imshow(drawn, cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        _frame_leaks(ax, leaks, cell)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        size = max(6, min(10, cell * 0.6))
        if labelled:
            ax.set_xticks(range(m), self._keys, rotation=90 if turned else 0, fontsize=size)
            ax.set_yticks(range(n), self._queries, fontsize=size)
        ax.tick_params(length=0)
        ax.set_xlabel("keys")
        ax.set_ylabel("queries")
        fig.text(0.01, 1 - 4 / height, self.title, fontweight="bold", va="top")
        for side in ax.spines.values():
            side.set_color(palette.INK)
        if cell >= 30:
            texts = np.array(_texts(self._weights, self._mask)).reshape(n, m)
            for (row, column), level in np.ndenumerate(_levels(self._weights)):
                ax.text(column, row, str(texts[row, column]), ha="center", va="center", color=palette.ink(level))
        return fig


def _verify_weights(weights, n, m):
    weights = as_matrix("weights", weights)
    if weights.shape != (n, m):
        which = "one row per query" if weights.shape[0] != n else "one column per key"
        raise ValueError(f"weights is {weights.shape} but there are {n} queries and {m} keys: {which}")
    outside = np.argwhere((weights < -1e-6) | (weights > 1 + 1e-6))
    if len(outside):
        row, column = outside[0]
        raise ValueError(
            f"weights[{row}, {column}] is {weights[row, column]:.4g}: a weight lies between 0 and 1. "
            "Are these scores, from before the softmax?"
        )
    return weights.clip(0, 1)


def _frame(weights, mask, queries, keys):
    """All that changes: colour levels, rounded numbers, marks of a mask, the largest keys and a caption per row.

    Marks are a letter a cell, "" without a mask: w a weight, b blocked, l blocked but not 0.
    """
    n, m = weights.shape
    may = np.ones((n, m), bool) if mask is None else mask
    largest = np.argsort(np.where(may, -weights, 1), axis=1, kind="stable")[:, :_LARGEST]
    marks = "" if mask is None else "".join(np.where(mask, "w", np.where(weights > 0, "l", "b")).ravel().tolist())
    return {
        "levels": _levels(weights).tobytes(),
        "thousandths": np.rint(weights * 1000 + 1e-6).astype("<u2").tobytes(),
        "marks": marks,
        "short": _texts(weights, mask) if n * m <= _DOM_CELLS else [],
        "largest": largest.astype("<u2").tobytes(),
        "captions": [
            _caption(query, weights[r], top, keys, None if mask is None else mask[r])
            for r, (query, top) in enumerate(zip(queries, largest.tolist(), strict=True))
        ],
    }


def _texts(weights, mask):
    """Each weight to two decimals, row by row; – where it is blocked and 0."""
    may = np.ones(weights.shape, bool) if mask is None else mask
    return [
        f"{round_to_two(weight):.2f}" if here or weight else "–"
        for weight, here in zip(weights.ravel().tolist(), may.ravel(), strict=True)
    ]


def _caption(query, row, largest, keys, may):
    total = round_to_two(row.sum())
    if may is not None and not may.any():
        reason = f"yet its weights sum to {total:.2f}, a leak" if row.any() else "every key is blocked"
        return [f"“{query}” may attend to nothing: {reason}"]
    if total == 0 and may is None:
        return [f"“{query}” attends to nothing: every weight is 0"]
    which = "the weights"
    if may is not None:
        which = "the weights of the keys it may attend to"
        through = row[~may].sum()
        row = row * may
    sums = f"{which} sum to 1" if total == 1 else f"{which} sum to {total:.2f}, not 1"
    if may is not None and through > 0:
        sums = f"a leak, {round_to_two(through):.2f} of the weight is on blocked keys"
    most = ", ".join(f"{keys[k]} {row[k]:.2f}" for k in largest[:3] if row[k] >= 0.005)
    return [f"“{query}”: {sums}", f"most to {most}" if most else "no weight reaches 0.01"]


def _count_cells(leaks):
    count = int(leaks.sum())
    return f"{count} cell{'s' if count > 1 else ''}"


def _frame_leaks(ax, leaks, cell):
    """Frame each cell that leaks in the colour of keys; fill it with that colour if cells are small."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Rectangle

    if cell < 12 and leaks.any():
        colour = ListedColormap([palette.KEY])
        ax.imshow(np.ma.masked_where(~leaks, leaks), cmap=colour, aspect="auto", interpolation="nearest")
        return
    for row, column in np.argwhere(leaks):
        inner = (column - 0.44, row - 0.44)
        ax.add_patch(Rectangle(inner, 0.88, 0.88, fill=False, edgecolor=palette.KEY, linewidth=2))


def _levels(weights):
    return np.rint(weights * 255).astype(np.uint8)
