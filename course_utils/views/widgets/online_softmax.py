"""The softmax of one row while its scores stream past: m, l and o after each block of keys, with the arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import traitlets

from course_utils.attention.shapes import whole
from course_utils.attention.tensors import softmax
from course_utils.attention.tiled import Partial, finish, nothing, online_attention
from course_utils.views import palette
from course_utils.views.drawing import typeset
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.call_student_code import to_lists
from course_utils.views.shared.coerce import as_labels, as_matrix, as_row, detach
from course_utils.views.shared.number_text import bracket_negative, three_decimals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_KEYS = 32  # more do not fit a page
_MAX_VALUES = 8


class OnlineSoftmaxStepper(CourseWidget):
    """One row of scores, `block` keys at a time: m, the factor e^(m_old − m_new), l and o, compared with softmax last.

    scores: 1 to 32 numbers, −∞ for a masked key. values: (m, d_v) with d_v up to 8, or m numbers; without values there
    is no o. labels: one a key, by default key 0, key 1, … A list, NumPy or torch, each. block: keys read at once.
    Every number on the page tells its arithmetic, and up to 12 keys can be put into another order. `.order`, their
    numbers as they are read, and `.step`, how many blocks have been read, can be read and set; `.last` is the step at
    which all have. `.m`, `.l` and `.o` are the numbers at this step, o an array before it is divided by l.
    A page without a kernel computes the same for another order itself.
    Raises ValueError or TypeError for what cannot be shown.
    Source: Milakov and Gimelshein 2018, algorithm 3.
    """

    in_gallery = InGallery(61, "Softmax in one pass", question="Does the order of the keys matter?")

    _esm = script("online_softmax.js")
    _css = style("player.css", "online_softmax.css")

    step = traitlets.Int(0, help="blocks of keys read so far").tag(sync=True)
    order = traitlets.Any(help="the numbers of the keys, in the order in which they are read").tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    _keys: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _columns = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _frames: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _ends = traitlets.Dict().tag(sync=True)

    def __init__(self, scores, values=None, labels=None, block=1, title="softmax in one pass"):
        scores = _checked_scores(scores)
        values = None if values is None else _checked_values(values, len(scores))
        labels = [f"key {i}" for i in range(len(scores))] if labels is None else as_labels("labels", labels)
        if len(labels) != len(scores):
            raise ValueError(f"there are {len(labels)} labels but {len(scores)} scores: one each")
        block = whole("block", block)
        self._inputs = (scores, values, labels)
        self._block = block
        columns = ["m", "e^(m_old − m_new)", "l", *_names(values)]
        order = list(range(len(scores)))
        super().__init__(title=str(title), order=order, _columns=columns, **self._arranged(order))

    def _arranged(self, order):
        """The keys in this order, and all that the page shows of them."""
        scores, values, labels = self._inputs
        self._scores = [scores[i] for i in order]
        self._values = None if values is None else [values[i] for i in order]
        self._partials = _partials(self._scores, self._values, self._block)
        keys = [{"index": i, "label": labels[i], "score": three_decimals(scores[i])} for i in order]
        frames = self._make_frames([labels[i] for i in order])
        return {"_keys": keys, "_frames": frames, "_ends": self._make_ends()}

    @property
    def last(self) -> int:
        """The step at which every key has been read."""
        return len(self._partials) - 1

    @property
    def m(self) -> float:
        """The largest score so far; −∞ before the first key."""
        return self._partials[self.step].m.item()

    @property
    def l(self) -> float:  # noqa: E743  (the letter of the papers)
        """The sum of e^(score − m) so far."""
        return self._partials[self.step].l.item()

    @property
    def o(self) -> np.ndarray | None:
        """The sum of e^(score − m) · value so far, (d_v,) float64; None without values."""
        return None if self._values is None else self._partials[self.step].o.numpy().copy()

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if not 0 <= proposal.value <= self.last:
            raise ValueError(f"step is {proposal.value}: give a number from 0 to {self.last}")
        return proposal.value

    @traitlets.validate("order")
    def _order_has_every_key(self, proposal):
        order = [whole("a key's number in order", i, least=0) for i in proposal.value]
        if sorted(order) != list(range(len(self._scores))):
            raise ValueError(f"order is {order}: give each number from 0 to {len(self._scores) - 1} once")
        return order

    @traitlets.observe("order")
    def _arrange(self, change):
        with self.hold_sync():
            for name, value in self._arranged(change.new).items():
                setattr(self, name, value)

    def alone_state(self) -> dict[str, Any]:
        scores, values, labels = self._inputs
        return {
            "_alone": {"scores": to_lists(np.array(scores)), "values": values, "labels": labels, "block": self._block}
        }

    def as_text(self) -> str:
        heads = ["keys", "score", *self._columns]
        rows = [["nothing yet", "", *self._frames[0]["cells"]]]
        for frame in self._frames[1:]:
            keys = self._keys[frame["start"] : frame["stop"]]
            rows.append([_name_span(keys), ", ".join(key["score"] for key in keys), *frame["cells"]])
        wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [f"{self.title}: {len(self._keys)} keys, {self._block} at a time"]
        for place, row in enumerate([heads, *rows]):
            mark = ">" if place - 1 == self.step else " "
            cells = [f"{cell:>{width}}" for cell, width in zip(row, wide, strict=True)]
            lines.append(f"{mark} " + "  ".join(cells).rstrip())
        return "\n".join([*lines, *self._ends["lines"]])

    def alt(self) -> str:
        steps = "; ".join(
            f"{_name_span(self._keys[frame['start'] : frame['stop']])}: "
            + ", ".join(f"{name} {cell}" for name, cell in zip(self._columns, frame["cells"], strict=True))
            for frame in self._frames[1:]
        )
        ends = "; ".join(" ".join(line.split()) for line in self._ends["lines"])
        return f"The softmax of {len(self._keys)} scores in one pass. After {steps}. {ends}"

    def figure(self) -> Figure:
        return _draw(self)

    def _make_frames(self, labels):
        """What the page shows at each step: the cells of its row, why they are so, and the bars so far."""
        count = len(self._scores)
        frames = []
        for step, partial in enumerate(self._partials):
            start, stop = max(0, step - 1) * self._block, min(step * self._block, count)
            before = self._partials[max(0, step - 1)]
            factor = _power(before.m.item(), partial.m.item())
            cells = [partial.m.item(), factor, partial.l.item(), *partial.o.tolist()]
            texts = [three_decimals(cell) for cell in cells]
            if step == 0:
                texts[1] = ""
                why = _explain_opening(len(cells) - 3)
                text = "No key has been read: m = −∞, l = 0" + _zero_output(self._values)
            else:
                why = _explain_cells(before, partial, factor, self._scores[start:stop], self._values_at(start, stop))
                text = _describe_step(
                    labels[start:stop], before.m.item(), partial.m.item(), factor, self._values is not None
                )
            bars = [round(_power(score, partial.m.item()), 4) for score in self._scores[:stop]]
            frames.append({"start": start, "stop": stop, "cells": texts, "why": why, "message": text, "bars": bars})
        return frames

    def _values_at(self, start, stop):
        return None if self._values is None else self._values[start:stop]

    def _make_ends(self):
        """The comparison with softmax over all scores at once, as lines of text."""
        partial = self._partials[-1]
        weights = softmax(torch.tensor(self._scores, dtype=torch.float64))  # (m,)
        if partial.l.item() == 0:
            sums = "Every key is masked: l is 0, and the weights and the output are 0 by convention."
        else:
            lse = partial.m + partial.l.log()
            m, l, lse = (three_decimals(number.item()) for number in (partial.m, partial.l, lse))
            sums = f"m = {m}, l = {l}; m + log l = {lse}, the log-sum-exp of the scores, in any order"
        if self._values is None:
            powers = torch.tensor([_power(score, partial.m.item()) for score in self._scores], dtype=torch.float64)
            streamed = powers / (partial.l.item() or 1)
            expected = weights
            names = "e^(score − m) / l", "softmax(scores)"
        else:
            streamed = finish(partial)[0]
            expected = weights @ torch.tensor(self._values, dtype=torch.float64)
            names = "o / l", "softmax(scores) · values"
        wide = max(map(len, names))
        lines = [f"{name:{wide}} = {_format_row(row)}" for name, row in zip(names, (streamed, expected), strict=True)]
        rows = [_cells(streamed), _cells(expected)]
        return {"lines": [sums, *lines], "heads": list(names), "rows": rows, "sums": sums}


# --- the arithmetic -------------------------------------------------------------------------------------------------


def _partials(scores, values, block):
    """The Partial before the first key and after each block; o is empty without values."""
    row = torch.tensor(scores, dtype=torch.float64)  # (m,)
    v = torch.tensor([[]] * len(row) if values is None else values, dtype=row.dtype)  # (m, d_v)
    empty = nothing((1,), v.shape[-1], row)
    partials = [empty, *online_attention(row[None], v, block)]  # each of shapes (1,), (1,) and (1, d_v)
    return [Partial(*(part[0] for part in partial)) for partial in partials]


def _power(x, m):
    """e^(x − m) for x ≤ m; 0 where both are −∞."""
    return 0.0 if x == -math.inf else math.exp(x - m)


def _explain_cells(before, after, factor, scores, values):
    """For each cell of a row, the lines that explain it."""
    m_old, m_new = three_decimals(before.m), three_decimals(after.m)
    powers = [_power(score, after.m.item()) for score in scores]
    largest = f"max({', '.join([m_old, *map(three_decimals, scores)])}) = {m_new}"
    lines = [["m", largest, "the largest score so far"]]
    if before.m.item() == -math.inf:
        note = "nothing was summed before, so there is nothing to keep"
    elif factor == 1:
        note = "no new maximum: what was summed so far stays as it is"
    else:
        note = "a new maximum: what was summed so far is multiplied by this"
    lines.append(["e^(m_old − m_new)", f"e^({m_old} − {bracket_negative(m_new)}) = {three_decimals(factor)}", note])
    terms = " + ".join(f"e^({three_decimals(score)} − {bracket_negative(m_new)})" for score in scores)
    added = " + ".join(map(three_decimals, powers))
    if after.m.item() == -math.inf:
        lines[1][1] = f"e^(−∞ − (−∞)) is not a number; it counts as {three_decimals(0)}"
        terms = added
        note = "every key so far is masked and adds nothing"
    else:
        note = "l was " + f"{three_decimals(before.l)}; the factor times that, and the new powers"
    lines.append(
        ["l", f"{three_decimals(factor)} · {three_decimals(before.l)} + {terms} = {three_decimals(after.l)}", note]
    )
    for column in range(0 if values is None else len(values[0])):
        rescaled = f"{three_decimals(factor)} · {bracket_negative(three_decimals(before.o[column]))}"
        terms = " + ".join(
            f"{three_decimals(power)} · {bracket_negative(three_decimals(value[column]))}"
            for power, value in zip(powers, values, strict=True)
        )
        name = "o" if len(values[0]) == 1 else f"o[{column}]"
        lines.append(
            [name, f"{rescaled} + {terms} = {three_decimals(after.o[column])}", "the factor times o, and power · value"]
        )
    return lines


def _explain_opening(width):
    """The lines that explain the row before the first key."""
    lines = [["m", "−∞", "no score has been read: every score is larger"], ["e^(m_old − m_new)", "", "no step yet"]]
    return [*lines, ["l", "0", "nothing has been summed"], *[["o", "0", "nothing has been summed"]] * width]


def _describe_step(labels, m_old, m_new, factor, has_values):
    """A sentence or two on what this step does."""
    reading = f"Read {labels[0]}." if len(labels) == 1 else f"Read {labels[0]} to {labels[-1]}."
    sums = "l and o" if has_values else "l"
    if m_new == -math.inf:
        return f"{reading} Masked: e^(−∞) = 0, so nothing changes."
    if m_old == -math.inf:
        return f"{reading} The first score that counts sets m. There was nothing to keep: the factor is 0."
    if factor == 1:
        return f"{reading} No new maximum: the factor is 1, and the new terms are added to {sums}."
    return f"{reading} A new maximum: {sums} shrink{'' if has_values else 's'} by {three_decimals(factor)} first."


def _zero_output(values):
    return "." if values is None else ", o = 0."


def _names(values):
    if values is None:
        return []
    return ["o"] if len(values[0]) == 1 else [f"o[{column}]" for column in range(len(values[0]))]


def _name_span(keys):
    return keys[0]["label"] if len(keys) == 1 else f"{keys[0]['label']} to {keys[-1]['label']}"


def _cells(row):
    return [three_decimals(value) for value in row.tolist()]


def _format_row(row):
    return f"({', '.join(_cells(row))})"


# --- the inputs -----------------------------------------------------------------------------------------------------


def _checked_scores(scores):
    row = as_row("scores", scores, 1, _MAX_KEYS)
    wrong = np.flatnonzero(np.isnan(row) | (row == np.inf))
    if len(wrong):
        raise ValueError(f"scores[{wrong[0]}] is {row[wrong[0]]}: give finite numbers, or −inf for a masked key")
    return row.tolist()


def _checked_values(values, count):
    """Rows of floats: (m, d_v)."""
    values = detach(values)
    if hasattr(values, "__len__") and len(values) and np.ndim(values[0]) == 0:
        values = [[value] for value in values]
    matrix = as_matrix("values", values)
    if len(matrix) != count:
        raise ValueError(f"values is {matrix.shape} but there are {count} scores: one row each")
    if matrix.shape[1] > _MAX_VALUES:
        raise ValueError(f"values is {matrix.shape}: the stepper shows up to {_MAX_VALUES} columns; take a slice")
    return matrix.tolist()


# --- the picture ----------------------------------------------------------------------------------------------------


def _draw(widget):
    heads = ["keys", "score", *widget._columns]
    rows = [["nothing yet", "", *widget._frames[0]["cells"]]]
    for frame in widget._frames[1:]:
        keys = widget._keys[frame["start"] : frame["stop"]]
        rows.append([_name_span(keys), ", ".join(key["score"] for key in keys), *frame["cells"]])
    wide = [7.4 * max(map(len, column)) + 18 for column in zip(heads, *rows, strict=True)]
    lines = widget._ends["lines"]
    width = max(sum(wide) + 24, 7.2 * max(map(len, lines)) + 24, 420)
    height = 34 + 24 * (len(rows) + 1) + 12 + 20 * len(lines) + 8
    fig = new_figure(width, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    ax.text(12, 18, widget.title, fontweight="bold", va="center", parse_math=False)
    for place, row in enumerate([map(typeset, heads), *rows]):
        right = 12.0
        middle = 46 + 24 * place
        if place - 1 == widget.step:
            ax.axhspan(middle - 12, middle + 12, color=palette.INK, alpha=0.15, linewidth=0)
        for column, (cell, width_here) in enumerate(zip(row, wide, strict=True)):
            right += width_here
            changed = place > 2 and column == 3 and cell != "1.000"
            style: dict[str, Any] = {"fontweight": "bold" if changed else "normal"}
            ax.text(right - 8, middle, cell, ha="right", va="center", parse_math=place == 0, **style)
    ax.plot([12, 12 + sum(wide)], [58, 58], color=palette.INK, linewidth=1)
    for place, line in enumerate(lines):
        y = 46 + 24 * (len(rows) + 1) + 4 + 20 * place
        ax.text(12, y, line, va="center", parse_math=False)
    return fig
