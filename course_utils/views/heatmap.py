"""A heatmap of attention weights whose rows can be read one at a time."""

import numpy as np
import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.widget import FOLDER, CourseWidget, as_labels, as_matrix, script

_DOM_CELLS = 400  # above this many cells one canvas is drawn instead of a table
_LISTED_KEYS = 20  # up to this many keys each gets a bar of its own
_LARGEST = 8


class AttentionHeatmap(CourseWidget):
    """Weights as a grid: hover or arrow keys show a row's distribution, click or Enter pins it.

    weights: (n, m) numbers from 0 to 1, one row per query, one column per key; NumPy, torch or nested lists.
        Set `.weights` again to redraw in place; the pinned row and the focus stay.
    queries: n labels. keys: m labels; by default the queries.
    `.row` is the pinned row, None when there is none; it can be set.
    Raises ValueError when weights, queries and keys do not fit, or when weights are not weights.
    """

    _esm = script("heatmap.js")
    _css = FOLDER / "heatmap.css"

    row = traitlets.Int(None, allow_none=True, help="the pinned row").tag(sync=True)
    title = traitlets.Unicode("attention weights").tag(sync=True)
    _queries = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _keys = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _frame = traitlets.Dict().tag(sync=True)
    _ramp = traitlets.Bytes(palette.ramp_bytes()).tag(sync=True)

    def __init__(self, weights, queries, keys=None, title="attention weights"):
        queries = as_labels("queries", queries)
        keys = queries if keys is None else as_labels("keys", keys)
        self._weights = _checked(weights, len(queries), len(keys))
        super().__init__(
            title=str(title),
            _queries=queries,
            _keys=keys,
            _layout={
                "canvas": len(queries) * len(keys) > _DOM_CELLS,
                "listed": len(keys) <= _LISTED_KEYS,
                "bars": len(keys) if len(keys) <= _LISTED_KEYS else _LARGEST,
                "light_ink_from": palette.light_ink_from(),
            },
            _frame=_frame(self._weights, queries, keys),
        )

    @property
    def weights(self):
        """The weights shown, (n, m) float64; a copy."""
        return self._weights.copy()

    @weights.setter
    def weights(self, weights):
        self._weights = _checked(weights, len(self._queries), len(self._keys))
        self._frame = _frame(self._weights, self._queries, self._keys)

    @traitlets.validate("row")
    def _row_exists(self, proposal):
        row, n = proposal.value, len(self._queries)
        if row is not None and not 0 <= row < n:
            raise ValueError(f"row is {row} but there are {n} queries: 0 to {n - 1}, or None to unpin")
        return row

    def as_text(self):
        n, m = self._weights.shape
        shown_n, shown_m = min(n, 12), min(m, 12)
        width = max(4, *(len(label) for label in (*self._queries[:shown_n], *self._keys[:shown_m])))
        more = "  …" if shown_m < m else ""
        lines = [f"{self.title}: {n} queries (rows) × {m} keys (columns)"]
        lines.append(" " * width + "".join(f"  {key:>{width}}" for key in self._keys[:shown_m]) + more)
        for query, row in zip(self._queries[:shown_n], self._weights, strict=False):
            lines.append(f"{query:>{width}}" + "".join(f"  {_round(w):{width}.2f}" for w in row[:shown_m]) + more)
        if shown_n < n:
            lines.append("…")
        return "\n".join(lines)

    def alt(self):
        n, m = self._weights.shape
        rows = [
            f"{query} attends most to {self._keys[row.argmax()]} ({_round(row.max()):.2f})"
            if row.any()
            else f"{query} attends to nothing"
            for query, row in zip(self._queries[:6], self._weights, strict=False)
        ]
        more = "; and so on" if n > 6 else ""
        return f"Heatmap of {self.title}, {n} queries by {m} keys: {'; '.join(rows)}{more}."

    def figure(self):
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
        ax.imshow(self._weights, cmap=palette.colormap(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        size = max(6, min(10, cell * 0.6))
        ax.tick_params(labelsize=9)
        if labelled:
            ax.set_xticks(range(m), self._keys, rotation=90 if turned else 0, fontsize=size)
            ax.set_yticks(range(n), self._queries, fontsize=size)
        ax.tick_params(length=0, colors=palette.INK)
        ax.set_xlabel("keys", color=palette.FAINT, fontsize=9)
        ax.set_ylabel("queries", color=palette.FAINT, fontsize=9)
        fig.text(0.01, 1 - 4 / height, self.title, fontsize=10.5, fontweight="bold", color=palette.INK, va="top")
        for side in ax.spines.values():
            side.set_color(palette.LINE)
        if cell >= 30:
            for (row, column), level in np.ndenumerate(_levels(self._weights)):
                text = f"{_round(self._weights[row, column]):.2f}"
                ax.text(column, row, text, ha="center", va="center", fontsize=9, color=palette.ink(level))
        return fig


def _checked(weights, n, m):
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


def _frame(weights, queries, keys):
    """All that changes with the weights: colour levels, rounded numbers, the largest keys and a caption per row."""
    n, m = weights.shape
    largest = np.argsort(-weights, axis=1, kind="stable")[:, :_LARGEST]
    return {
        "levels": _levels(weights).tobytes(),
        "thousandths": np.rint(weights * 1000 + 1e-6).astype("<u2").tobytes(),
        "short": [f"{_round(w):.2f}" for w in weights.ravel().tolist()] if n * m <= _DOM_CELLS else [],
        "largest": largest.astype("<u2").tobytes(),
        "captions": [
            _caption(query, row, top, keys)
            for query, row, top in zip(queries, weights.tolist(), largest.tolist(), strict=True)
        ],
    }


def _caption(query, row, largest, keys):
    total = _round(sum(row))
    if total == 0:
        return [f"“{query}” attends to nothing: every weight is 0"]
    sums = "the weights sum to 1" if total == 1 else f"the weights sum to {total:.2f}, not 1"
    most = ", ".join(f"{keys[k]} {row[k]:.2f}" for k in largest[:3] if row[k] >= 0.005)
    return [f"“{query}”: {sums}", f"most to {most}" if most else "no weight reaches 0.01"]


def _levels(weights):
    return np.rint(weights * 255).astype(np.uint8)


def _round(value):
    """Two decimals; a hair is added so that 0.125 rounds the same way on every platform. Never −0."""
    return round(float(value) + 1e-9, 2) + 0.0
