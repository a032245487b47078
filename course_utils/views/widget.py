"""What every widget of the course shares: text and a picture in the same output, for pages without a kernel."""

import base64
from pathlib import Path

import anywidget
import numpy as np
import traitlets

from course_utils.views import palette
from course_utils.views.picture import natural_width, small_png

FOLDER = Path(__file__).parent


def script(*names):
    """The text of a widget's ES module, made of these files, with what all widgets share before them."""
    return _joined("dom.js", *names)


def style(*names):
    """The text of a widget's CSS, made of these files."""
    return _joined(*names)


class CourseWidget(anywidget.AnyWidget):
    """An anywidget with deterministic text and a picture of itself.

    A subclass gives `as_text()`, `alt()` and `figure()`; its JavaScript sets `_palette` as CSS variables on its root.
    """

    _palette = traitlets.Dict(palette.css_variables()).tag(sync=True)

    def as_text(self):
        """The widget for a terminal: no addresses, the same on every run."""
        raise NotImplementedError

    def alt(self):
        """What the picture shows, in words."""
        raise NotImplementedError

    def figure(self):
        """A matplotlib Figure outside pyplot."""
        raise NotImplementedError

    def __repr__(self):
        return self.as_text()

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        fig = self.figure()
        data = {**data, "text/plain": self.as_text(), "image/png": base64.b64encode(small_png(fig)).decode()}
        return data, {**metadata, "image/png": {"alt": self.alt(), "width": natural_width(fig)}}


def detached(values):
    """A tensor as a float64 array, anything else as it is."""
    return values.detach().cpu().double().numpy() if hasattr(values, "detach") else values


def as_array(values):
    """A new float64 array from NumPy, a tensor, or lists of numbers or tensors.

    Raises TypeError or ValueError when it is ragged or not numeric.
    """
    if isinstance(values, (list, tuple)):
        values = [detached(part) for part in values]
    return np.array(detached(values), dtype=np.float64)


def as_matrix(name, values):
    """A float64 array (rows, columns) from NumPy, torch or nested lists.

    Raises ValueError naming what was given when it is ragged, not numeric, not two-dimensional, empty or not finite.
    """
    try:
        matrix = as_array(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a matrix of numbers: every row needs the same number of numbers") from None
    if matrix.ndim != 2:
        hint = "; pick one batch and head first" if matrix.ndim > 2 else ""
        raise ValueError(f"{name} has shape {matrix.shape}: two dimensions are needed, rows and columns{hint}")
    if 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}: there is nothing to show")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"{name}[{row}, {column}] is {matrix[row, column]}: every number has to be finite")
    return matrix


def as_row(name, values, least, most):
    """A float64 array of `least` to `most` numbers from NumPy, torch or a list; they need not be finite.

    Raises ValueError naming what was given when it is something else.
    """
    try:
        row = as_array(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {values!r}: give a list of numbers") from None
    if row.ndim != 1 or not least <= len(row) <= most:
        raise ValueError(f"{name} has shape {row.shape}: give one row of {least} to {most} numbers")
    return row


def as_mask(mask, n, m):
    """An (n, m) array of booleans from NumPy, torch or nested lists of booleans, 0 and 1.

    Raises ValueError when it holds other numbers or has another shape.
    """
    mask = as_matrix("mask", mask)
    if not np.isin(mask, (0, 1)).all():
        raise ValueError("mask holds other numbers than 0 and 1: give booleans, True means may attend")
    if mask.shape != (n, m):
        which = "one row per query" if mask.shape[0] != n else "one column per key"
        raise ValueError(f"mask is {mask.shape} but there are {n} queries and {m} keys: {which}")
    return mask.astype(bool)


def as_labels(name, labels):
    """A list of strings in which white space can be seen: "\n" becomes ⏎, " " becomes ␣, "" becomes ∅.

    Raises ValueError for a bare string, which is one label and not many.
    """
    if isinstance(labels, str):
        raise ValueError(f"{name} is one string, {labels!r}: give a list with one label each, e.g. {labels.split()!r}")
    try:
        return [_visible(str(label)) for label in labels]
    except TypeError:
        raise ValueError(f"{name} is {labels!r}: give a list with one label each") from None


def _joined(*names):
    return "".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


def _visible(label):
    label = label.replace("\n", "⏎").replace("\t", "⇥")
    return label if label.strip() else label.replace(" ", "␣") or "∅"
