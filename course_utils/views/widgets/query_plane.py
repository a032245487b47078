"""A query to drag among keys in the plane, and the output that moves among the values as the weights change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.call_student_code import call_attention, kind_of, name_of, to_lists
from course_utils.views.shared.coerce import as_labels, as_matrix, as_row
from course_utils.views.shared.number_text import short
from course_utils.views.widgets.query_plane_picture import draw, plane_of_queries, plane_of_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.views.shared.coerce import Numbers

_KEYS = (3, 8)
_LARGEST = 1000
_BEYOND = 4  # a query may be so many times as long as the plane reaches


class QueryPlane(CourseWidget):
    """A query to drag among keys, its scores and weights, and the output among the values: softmax(q · k / √2) · V.

    query: 2 numbers. keys: (m, 2). values: (m, 2). m is 3 to 8; NumPy, torch or nested lists. names: m labels.
    attention: your own `attention(q, k, v)`, which returns (output, weights). It is asked for each query, with q (1, 2)
        and the kind of container that keys is, and what it returns is set beside the arithmetic.
    `.query` can be read and set, and the page sets it. `.weights` (m,) and `.output` (2,) follow by arithmetic.
    `.verdict` says whether your function agrees; `.problem` says what was wrong with it, or is empty.
    Raises ValueError for shapes, labels or numbers that cannot be shown.
    """

    in_gallery = InGallery(
        11, "Drag a query", question="When does the output sit on one value, and when in the middle of all three?"
    )

    _esm = script("query_plane.js")
    _css = style("bars.css", "query_plane.css")

    query = traitlets.Any().tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
    _scene = traitlets.Dict().tag(sync=True)
    _theirs = traitlets.Any(None, allow_none=True).tag(sync=True)

    def __init__(
        self,
        query: Numbers,
        keys: Numbers,
        values: Numbers,
        names: Iterable[Any] | None = None,
        attention: Callable[..., Any] | None = None,
    ) -> None:
        self._keys, self._values = _pairs("keys", keys), _pairs("values", values)
        m = len(self._keys)
        if not _KEYS[0] <= m <= _KEYS[1]:
            raise ValueError(f"there are {m} keys: the plane shows {_KEYS[0]} to {_KEYS[1]}")
        if len(self._values) != m:
            raise ValueError(f"values is {self._values.shape} but keys is {self._keys.shape}: one value per key")
        labels = [f"key {i}" for i in range(1, m + 1)] if names is None else as_labels("names", names)
        if len(labels) != m:
            raise ValueError(f"there are {len(labels)} names but {m} keys: one each")
        if attention is not None and not callable(attention):
            raise ValueError(f"attention is {type(attention).__name__}: give a function attention(q, k, v)")
        start = _pair("query", query)
        self.names = labels
        self._attention = attention
        self._kind = kind_of(keys)
        plane = plane_of_queries(start, self._keys, labels)
        self._most = _BEYOND * plane["reach"]
        scene = {
            "keys": self._keys.tolist(),
            "values": self._values.tolist(),
            "names": labels,
            "start": start,
            "most": self._most,
            "function": "" if attention is None else name_of(attention),
            "queries": plane,
            "outputs": plane_of_values(self._values, labels),
        }
        super().__init__(query=start, _scene=scene)

    @property
    def weights(self) -> np.ndarray:
        """softmax(keys · query / √2): (m,) float64."""
        return self._attend(self.query)[1]

    @property
    def output(self) -> np.ndarray:
        """weights · values: (2,) float64."""
        return self.weights @ self._values

    @property
    def verdict(self) -> str:
        """Whether your function agrees with the arithmetic for this query, or "" where none was given."""
        return self.problem or ("" if self._theirs is None else self._theirs["message"])

    @traitlets.validate("query")
    def _query_fits(self, proposal):
        query = _pair("query", proposal.value)
        if math.hypot(*query) > self._most * (1 + 1e-9):
            raise ValueError(f"query is {math.hypot(*query):.4g} long: here it may be up to {self._most:g}")
        return query

    @traitlets.observe("query")
    def _ask(self, change):
        if self._attention is None:
            return
        q = np.array([change.new])
        theirs, self.problem = call_attention(self._attention, q, self._keys, self._values, None, self._kind)
        if theirs is None:
            self._theirs = None
            return
        output, weights = theirs[0][0], theirs[1][0]
        self._theirs = {
            "query": change.new,
            "output": to_lists(output),
            "weights": to_lists(weights),
            "message": self._compare(output, weights),
        }

    def _compare(self, output, weights):
        assert self._attention is not None  # or nothing would have been returned
        name = name_of(self._attention)
        near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
        if not np.allclose(weights, self.weights, **near):
            m = int(np.nanargmax(np.where(np.isfinite(weights), abs(weights - self.weights), np.inf)))
            return (
                f"{name} differs: its weight of “{self.names[m]}” is {short(weights[m])}, "
                f"the arithmetic gives {short(self.weights[m])}."
            )
        if not np.allclose(output, self.output, **near):
            pairs = f"{_format_pair(output)}, not {_format_pair(self.output)}"
            return f"{name} differs: its weights are right, but its output is {pairs}."
        return f"{name} agrees with the arithmetic for this query."

    def _attend(self, query):
        scores = self._keys @ np.array(query) / math.sqrt(2)
        powers = np.exp(scores - scores.max())
        return scores, powers / powers.sum()

    def as_text(self) -> str:
        scores, weights = self._attend(self.query)
        width = max(3, *map(len, self.names))
        lines = [
            f"query {_format_pair(self.query)}, length {short(math.hypot(*self.query))}",
            f"{'key':{width}}  q·k/√2  weight",
        ]
        for name, score, weight in zip(self.names, scores, weights, strict=True):
            lines.append(f"{name:{width}}  {short(score):>6}  {short(weight):>6}")
        lines.append(f"output {_format_pair(self.output)}")
        return "\n".join(lines + ([self.verdict] if self.verdict else []))

    def alt(self) -> str:
        weights = ", ".join(f"{name} {short(weight)}" for name, weight in zip(self.names, self.weights, strict=True))
        verdict = f" {self.verdict}" if self.verdict else ""
        return (
            f"Left, the query {_format_pair(self.query)} as an arrow among {len(self.names)} keys. Middle, its "
            f"weights: {weights}. Right, the values, and the output at {_format_pair(self.output)} within their hull; "
            f"a dashed arrow leads from their mean, where a query of length 0 puts it, to where a long one would."
            f"{verdict}"
        )

    def figure(self) -> Figure:
        scores, weights = self._attend(self.query)
        lengths = np.linspace(0, 1, 41) ** 2 * self._most
        direction = np.array(self.query) / (math.hypot(*self.query) or 1)
        path = [self._attend(length * direction)[1] @ self._values for length in lengths]
        return draw(self._scene, self.query, scores, weights, self.output, path)


def _format_pair(pair):
    return f"({short(pair[0])}, {short(pair[1])})"


def _pair(name, value):
    row = as_row(name, value, 2, 2)
    if not np.isfinite(row).all():
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        raise ValueError(f"{name}[{place}] is {row[place]}: every number has to be finite")
    if abs(row).max() > _LARGEST:
        raise ValueError(f"{name} is {row.tolist()}: give numbers from -{_LARGEST} to {_LARGEST}")
    return row.tolist()


def _pairs(name, values):
    matrix = as_matrix(name, values)
    if matrix.shape[1] != 2:
        raise ValueError(f"{name} is {matrix.shape}: give two numbers for each, so that a plane can show them")
    if abs(matrix).max() > _LARGEST:
        raise ValueError(f"{name} holds {matrix.flat[abs(matrix).argmax()]:g}: give numbers up to {_LARGEST}")
    return matrix
