"""A text written token by token: what each forward pass computes, with a KV cache and without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import traitlets

from course_utils.costs.generation import step_work
from course_utils.costs.memory import in_binary_units, kv_cache_bytes
from course_utils.costs.sizes import whole
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import as_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 16  # tokens; more do not fit a page
_LONGEST = 16  # letters of a word that is typed
_COUNTERS = ("tokens through the layers", "scores, a head and layer", "read from the cache", "written to the cache")
_STATES = {  # of a cell: how the key under the picture calls it
    "now": "computed now",
    "masked": "computed now, then masked",
    "read": "read from the cache",
    "past": "not needed any more",
    "blank": "",
}


class Pass(NamedTuple):
    """What one forward pass does: tokens through the layers, entries of the score matrix, bytes of the cache."""

    rows: int
    scores: int
    read: float
    written: float


class DecodeStepper(CourseWidget):
    """Generation one forward pass at a time: rows of Q, K, V and scores that are computed, keys and values read.

    prompt, new: labels of the tokens given and of those written, together at most 16; at least one each.
    cached: whether keys and values of earlier tokens are kept. n_layers, n_heads (of keys and values), d_head,
        bytes_per_value: the sizes that bytes are counted for; LLaMA 7B in fp16 when left out.
    The first pass takes the whole prompt, each later one the token just written. A pass without a cache takes all
    tokens again. Scores are counted as plain attention computes them: all pairs, those above the diagonal too, which
    are then masked. `.step` (0 is the first pass) and `.cached` can be read and set; `.work` says what the pass shown
    does, with and without the cache, and `.total` the same of all passes so far. `.write(prompt, new)` takes other
    words, as the two fields on the page do; without a kernel the page counts itself.
    Raises ValueError or TypeError for labels or sizes that do not fit.
    """

    in_gallery = InGallery(
        51,
        "Write token by token",
        question="Which rows of $Q$, $K$ and $V$ does a pass compute, and which does it only read?",
    )

    _esm = script("decoding.js")
    _css = style("player.css", "decoding.css")

    step = traitlets.Int(0, help="the pass shown, 0 is the first").tag(sync=True)
    cached = traitlets.Bool(True, help="whether keys and values are kept").tag(sync=True)
    title = traitlets.Unicode("writing token by token").tag(sync=True)
    _tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _typed = traitlets.List(traitlets.Unicode()).tag(sync=True)  # what is in the fields: the prompt, what is written
    _answered = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _problem = traitlets.Unicode().tag(sync=True)
    _frames: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)

    def __init__(
        self, prompt, new, cached=True, n_layers=32, n_heads=32, d_head=128, bytes_per_value=2,
        title="writing token by token",
    ):  # fmt: skip
        layers, heads, width = whole(n_layers=n_layers, n_heads=n_heads, d_head=d_head)
        self._a_token = kv_cache_bytes(layers, heads, width, 1, bytes_per_value=bytes_per_value)
        self._prompt_length = 1
        self._n_passes = 1
        layout = {"counters": _COUNTERS, "states": _STATES, "most": _MOST, "longest": _LONGEST, "token": self._a_token}
        super().__init__(title=str(title), _layout=layout)
        self.write(prompt, new)
        self.cached = cached

    def write(self, prompt: Any, new: Any) -> None:
        """Take other words and begin at the prompt. Raises ValueError for what does not fit, and changes nothing."""
        prompt = as_labels("prompt", prompt)
        new = as_labels("new", new)
        if not prompt or not new:
            raise ValueError("prompt and new need at least one token each")
        if len(prompt) + len(new) > _MOST:
            raise ValueError(f"{len(prompt)} + {len(new)} tokens: at most {_MOST} fit a page")
        with self.hold_sync():
            self.step = 0
            self._prompt_length = len(prompt)
            self._n_passes = len(new)
            self._tokens = [*prompt, *new]
            self._frames = [self._frame(step) for step in range(self._n_passes)]
            self._typed = self._answered = [" ".join(prompt), " ".join(new)]
            self._problem = ""

    @property
    def work(self) -> dict[str, Any]:
        """Of the pass shown, as Pass: {"without": …, "with": …}."""
        return {"without": self._pass(self.step, False), "with": self._pass(self.step, True)}

    @property
    def total(self) -> dict[str, Any]:
        """Of all passes up to the one shown, as Pass: {"without": …, "with": …}."""
        return {name: self._sum(self.step, cached) for name, cached in (("without", False), ("with", True))}

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if not 0 <= proposal.value < self._n_passes:
            raise ValueError(f"step is {proposal.value} but there are {self._n_passes}: 0 to {self._n_passes - 1}")
        return proposal.value

    @traitlets.observe("_typed")
    def _write_typed(self, change):
        if change.new == self._answered:
            return
        words = [text.split() for text in change.new]
        long = next((word for part in words for word in part if len(word) > _LONGEST), None)
        try:
            if len(words) != 2 or not all(words):
                raise ValueError("Type at least one word into each field.")
            if long:
                raise ValueError(f"“{long[:_LONGEST]}…” has {len(long)} letters: at most {_LONGEST} fit.")
            if sum(map(len, words)) > _MOST:
                counts = " and ".join(str(len(part)) for part in words)
                raise ValueError(f"These are {counts} words: at most {_MOST} fit in all.")
            self.write(*words)
        except ValueError as error:
            self._problem = str(error)
            self._answered = change.new

    def as_text(self) -> str:
        mode = "with" if self.cached else "without"
        lines = [f"{self.title}, {mode} a cache", self._describe(self.step, mode)]
        lines.append(f"{'':26}  {'this pass':^25}  {'passes so far':^25}")
        lines.append(f"{'':26}  {'without':>12} {'with cache':>12}  {'without':>12} {'with cache':>12}")
        for name, cells in zip(_COUNTERS, self._table(self.step), strict=True):
            lines.append("{:26}  {:>12} {:>12}  {:>12} {:>12}".format(name, *cells))
        return "\n".join(lines)

    def alt(self) -> str:
        here = self.work
        T = self._prompt_length + self.step
        return (
            f"Pass {self.step + 1} of {self._n_passes} over {T} tokens. Without a cache all {T} tokens go through the "
            f"layers and {here['without'].scores} scores are computed. With a cache {here['with'].rows} go through, "
            f"{here['with'].scores} scores are computed, and keys and values of "
            f"{T - here['with'].rows} tokens are read."
        )

    def figure(self) -> Figure:
        n = len(self._tokens)
        label = 8 * max(map(len, self._tokens)) + 16
        cell = 22
        panel = label + (n + 4) * cell
        width, height = max(2 * panel + 40, 760), n * cell + 118
        fig = new_figure(width, height)
        for place, (name, cached) in enumerate((("without a cache", False), ("with a cache", True))):
            box = ((place * (panel + 24) + 8) / width, 74 / height, panel / width, n * cell / height)
            ax = fig.add_axes(box)
            ax.set(xlim=(-label / cell, n + 4), ylim=(n, 0))
            ax.axis("off")
            ax.text(4, -1.35, name, fontweight="bold")
            for i, head in enumerate("QKV"):
                ax.text(i + 0.5, -0.3, head, ha="center")
            ax.text(4, -0.3, "scores (row: query)")
            for i, token in enumerate(self._tokens):
                ax.text(-0.3, i + 0.68, token, ha="right", parse_math=False)
            for i, row in enumerate(self._states(self.step, cached)):
                for j, state in enumerate(row):
                    _draw_cell(ax, j if j < 3 else j + 1, i, state)
        key = fig.add_axes((8 / width, 6 / height, (width - 16) / width, 34 / height))
        key.set(xlim=(0, (width - 16) / 20), ylim=(1.7, 0))  # 20 pixels a unit
        key.axis("off")
        x = 0.0
        for state in ("now", "masked", "read", "past"):
            _draw_cell(key, x, 0.35, state)
            key.text(x + 1.3, 1.05, _STATES[state])
            x += 2.4 + 0.36 * len(_STATES[state])
        return fig

    def _frame(self, step):
        modes = (("without", False), ("with", True))
        return {
            "cells": {name: ["".join(state[0] for state in row) for row in self._states(step, c)] for name, c in modes},
            "message": {name: self._describe(step, name) for name, _ in modes},
            "table": self._table(step),
        }

    def _pass(self, step, cached):
        T = self._prompt_length + step
        rows = 1 if cached and step else T
        scores = step_work(T, cached and step > 0).scores
        if not cached:
            return Pass(rows, scores, 0, 0)
        return Pass(rows, scores, (T - rows) * self._a_token, rows * self._a_token)

    def _sum(self, step, cached):
        return Pass(*map(sum, zip(*(self._pass(i, cached) for i in range(step + 1)), strict=True)))

    def _table(self, step):
        """A row a counter, as text: this pass without and with the cache, then all so far."""
        columns = [self._pass(step, False), self._pass(step, True), self._sum(step, False), self._sum(step, True)]
        counts = [[f"{n:,}" for n in row] for row in list(zip(*columns, strict=True))[:2]]
        return counts + [
            [in_binary_units(n) if n else "–" for n in row] for row in list(zip(*columns, strict=True))[2:]
        ]

    def _states(self, step, cached):
        """What happens to each cell in a pass: n rows of q, k, v and n scores."""
        n, T = len(self._tokens), self._prompt_length + step
        first = T - self._pass(step, cached).rows  # the first token that goes through the layers
        rows = []
        for i in range(n):
            if i >= T:  # not written yet
                rows.append(["blank"] * (n + 3))
            elif i < first:
                rows.append(["past", "read", "read", *["past"] * (i + 1), *["blank"] * (n - i - 1)])
            else:
                rows.append([*["now"] * (i + 4), *["masked"] * (T - i - 1), *["blank"] * (n - T)])
        return rows

    def _describe(self, step, mode):
        T = self._prompt_length + step
        written = self._tokens[self._prompt_length + step]
        place = f"Pass {step + 1} of {self._n_passes}."
        if step == 0:
            stored = " Their keys and values go into the cache." if mode == "with" else ""
            what = "The prompt's token goes" if T == 1 else f"All {T} tokens of the prompt go"
            return f"{place} {what} through the layers.{stored} The last row of scores decides on “{written}”."
        if mode == "with":
            return (
                f"{place} Only “{self._tokens[T - 1]}” goes through the layers. Its query meets {T} keys: {T - 1} from "
                f"the cache and its own. That row decides on “{written}”."
            )
        return (
            f"{place} All {T} tokens go through the layers again, for {T} × {T} scores. Of these only the last row is "
            f"new; it decides on “{written}”."
        )


def _draw_cell(ax, x, y, state):
    from matplotlib.patches import Rectangle

    if state == "blank":
        return
    fill = {"now": palette.QUERY, "masked": "none", "read": palette.VALUE, "past": "none"}[state]
    edge = {"past": palette.INK, "now": palette.QUERY, "masked": palette.QUERY, "read": palette.VALUE}[state]
    hatch = "////" if state == "masked" else None
    ax.add_patch(
        Rectangle((x + 0.09, y + 0.09), 0.82, 0.82, facecolor=fill, edgecolor=edge, hatch=hatch, linewidth=0.8)
    )
