"""Arrays as coloured tables, with names and shapes, for lessons: `show(Q=Q, K=K)` as the last line of a cell."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.views import palette
from course_utils.views.shared.coerce import Numbers, as_array

LONGEST = 16  # rows and columns of a table; more cannot be read
_ROLES = {
    **dict.fromkeys(("q", "query", "queries"), palette.QUERY),
    **dict.fromkeys(("k", "key", "keys"), palette.KEY),
    **dict.fromkeys(("v", "value", "values"), palette.VALUE),
    **dict.fromkeys(("o", "output", "outputs"), palette.OUTPUT),
    **dict.fromkeys(("x", "s", "score", "scores", "scaled", "exponentials", "sums"), palette.INK),
}  # by the first word of an array's name; all others have the colour of weights
NEGATIVE = palette.MOSS  # of numbers with a minus, whatever the role
_LEAST, _MOST = 0.06, 0.5  # how strongly a cell is coloured: text on it stays readable, in light and in dark
_QUIET = "color: var(--jp-content-font-color2, var(--pst-color-text-muted, #6b7280)); font-weight: 400; font-size: 12px"

Place = int | tuple[int | None, int]
Labels = Sequence[str] | Mapping[str, Sequence[str]]


def show(
    *named: Mapping[str, Numbers],
    mark: Mapping[str, Place] | None = None,
    rows: Labels = (),
    columns: Labels = (),
    digits: int = 4,
    **arrays: Numbers,
) -> ArrayTables:
    """Return arrays as tables beside each other, in their order.

    Args:
        named: arrays whose names are no Python names, as in {"QKᵀ": scores}; they come first.
        mark: what the text speaks of, by name: a row 1, a cell (1, 2), or a column (None, 2).
        rows: a label for each row of every array with as many rows; or such labels by name.
        columns: the same for columns.
        digits: the most decimals; those that are 0 everywhere are left out.
        arrays: numbers of up to two axes, or lists of them; ✓ stands for True, – for False. Only finite numbers have a
            colour, and negative ones another than the rest.

    Raises:
        ValueError: an array is too large or has more axes, or `mark` names nothing that is there.
    """
    raw = {name: numbers for each in (*named, arrays) for name, numbers in each.items()}
    inputs = {name: as_array(numbers) for name, numbers in raw.items()}
    tables = {name: _as_table(name, numbers) for name, numbers in inputs.items()}
    if unknown := [name for name in mark or {} if name not in tables]:
        raise ValueError(f"mark names {unknown[0]!r}, and there is {', '.join(tables) or 'no array'}")
    cells = {
        name: _format_mask(each) if _is_mask(raw[name]) else _format_numbers(each, digits)
        for name, each in tables.items()
    }
    return ArrayTables([
        Table(name, numbers, _format_shape(inputs[name]), cells[name], _labels(rows, name, len(numbers)),
            _labels(columns, name, numbers.shape[1]), _checked_mark(name, (mark or {}).get(name), numbers.shape))
        for name, numbers in tables.items()
    ])  # fmt: skip


@dataclass(frozen=True)
class Table:
    """One array of two axes, as it is drawn.

    Attributes:
        shape: the lengths of its axes; a vector is drawn as a row, and has one.
        cells: its numbers as texts.
        rows, columns: labels, or none.
        marked: the row and the column that are marked; None stands for all, (None, None) for nothing.
    """

    name: str
    numbers: np.ndarray
    shape: str
    cells: list[list[str]]
    rows: Sequence[str]
    columns: Sequence[str]
    marked: tuple[int | None, int | None]

    def is_marked(self, row: int, column: int) -> bool:
        return self.marked != (None, None) and self.marked[0] in (row, None) and self.marked[1] in (column, None)

    def as_text(self) -> str:
        """Return the name and the shape, and below them the numbers; what is marked is in brackets."""
        cells = [
            [f"[{text}]" if self.is_marked(i, j) else f" {text} " for j, text in enumerate(row)]
            for i, row in enumerate(self.cells)
        ]
        lines = [[f" {label} " for label in self.columns], *cells] if self.columns else cells
        if self.rows:
            beside = [*([""] if self.columns else []), *self.rows]
            lines = [[label, *row] for label, row in zip(beside, lines, strict=True)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ["".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in lines]
        return "\n".join([f"{self.name} ({self.shape})", *(f"  {line}" for line in texts)])

    def as_html(self) -> str:
        """Return a table with a caption and with headings, for pages and for screen readers."""
        head = ""
        if self.columns:
            corner = "<td style='border:0;background:none'></td>" if self.rows else ""
            head = "".join(_heading(label, "col") for label in self.columns)
            head = f"<thead><tr style='background:none;border:0'>{corner}{head}</tr></thead>"
        body = "".join(self._row(i) for i in range(len(self.cells)))
        caption = f"<b>{html.escape(self.name)}</b> <span style='{_QUIET}'>{self.shape}</span>"
        return (
            "<table style='border-collapse:separate;border-spacing:2px;border:0;width:auto;margin:0;font-size:14px;"
            "font-variant-numeric:tabular-nums;table-layout:auto'>"
            "<caption style='caption-side:top;text-align:left;white-space:nowrap;padding:0 2px 2px;color:inherit'>"
            f"{caption}</caption>{head}<tbody>{body}</tbody></table>"
        )

    def _row(self, i: int) -> str:
        label = _heading(self.rows[i], "row") if self.rows else ""
        cells = "".join(self._cell(i, j, text) for j, text in enumerate(self.cells[i]))
        return f"<tr style='background:none;border:0'>{label}{cells}</tr>"

    def _cell(self, i: int, j: int, text: str) -> str:
        finite = np.abs(self.numbers[np.isfinite(self.numbers)])
        size = abs(self.numbers[i, j]) / (finite.max(initial=0.0) or 1.0)
        strength = _LEAST + (_MOST - _LEAST) * size if np.isfinite(size) else 0.0
        role = _ROLES.get(self.name.lower().split()[0], palette.WEIGHT)
        red, green, blue = palette.rgb(NEGATIVE if strength and text.startswith("−") else role)
        # a border, since JupyterLab's stylesheet hides outlines; a border without a colour has that of the text
        frame = "border:2px solid;font-weight:700;padding:0 4px" if self.is_marked(i, j) else "border:0;padding:0 6px"
        return (
            f"<td style='background:rgba({red},{green},{blue},{strength:.2f});{frame};border-radius:4px;min-width:38px;"
            f"height:30px;text-align:center;vertical-align:middle'>{text}</td>"
        )


class ArrayTables:
    """Tables that Jupyter displays: as HTML, and as text for terminals, nbval and screen readers."""

    def __init__(self, tables: Sequence[Table]):
        self.tables = tables

    def __repr__(self) -> str:
        return "\n".join(table.as_text() for table in self.tables)

    def _repr_html_(self) -> str:
        tables = "".join(table.as_html() for table in self.tables)
        return (
            "<div class='course-tables' style='display:flex;flex-wrap:wrap;gap:12px 28px;align-items:flex-end;"
            f"overflow-x:auto;padding:4px 2px'>{tables}</div>"
        )


def _as_table(name: str, numbers: np.ndarray) -> np.ndarray:
    """An array of two axes; a vector is one row."""
    array = np.atleast_2d(numbers)
    if array.ndim > 2 or max(array.shape) > LONGEST:
        raise ValueError(
            f"{name} is {_format_shape(numbers)}: a table shows two axes of up to {LONGEST}; choose a part of it"
        )
    return array


def _format_shape(array: np.ndarray) -> str:
    return " × ".join(map(str, array.shape))


def _is_mask(values: Any) -> bool:
    """Whether an array, a tensor or nested lists hold True and False."""
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return isinstance(values, bool) or str(getattr(values, "dtype", "")) in ("bool", "torch.bool")


def _format_mask(mask: np.ndarray) -> list[list[str]]:
    return [["✓" if may else "–" for may in row] for row in mask.tolist()]


def _format_numbers(numbers: np.ndarray, digits: int) -> list[list[str]]:
    rounded = np.round(numbers, digits) + 0.0
    finite = rounded[np.isfinite(rounded)]
    fits = (places for places in range(digits) if np.array_equal(np.round(finite, places), finite))
    places = next(fits, digits)
    return [[_format_number(number, places) for number in row] for row in rounded.tolist()]


def _format_number(number: float, places: int) -> str:
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "∞" if number > 0 else "−∞"
    return f"{number:.{places}f}".replace("-", "−")


def _labels(by_name: Labels, name: str, count: int) -> Sequence[str]:
    labels = by_name.get(name, ()) if isinstance(by_name, Mapping) else by_name
    return [str(label) for label in labels] if len(labels) == count else ()


def _checked_mark(name: str, place: Place | None, shape: tuple[int, ...]) -> tuple[int | None, int | None]:
    row, column = place if isinstance(place, tuple) else (place, None)
    for index, size in ((row, shape[0]), (column, shape[1])):
        if index is not None and not 0 <= index < size:
            raise ValueError(f"mark of {name} is {place}, and {name} has {shape[0]} rows and {shape[1]} columns")
    return row, column


def _heading(label: str, scope: str) -> str:
    side = "right" if scope == "row" else "center"
    return (
        f"<th scope='{scope}' style='{_QUIET};border:0;background:none;text-align:{side};padding:0 6px;"
        f"vertical-align:middle'>{html.escape(label)}</th>"
    )
