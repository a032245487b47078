"""A mask to paint: the weights follow, and a measured verdict says whether an output sees a later token."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import traitlets

from course_utils.attention import tensors
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, ramp_trait, script, style
from course_utils.views.shared.coerce import as_labels, as_mask
from course_utils.views.shared.number_text import SINGLE, short
from course_utils.views.widgets.painter_families import (
    ABOUT,
    RECTANGLE,
    SETTINGS,
    as_signs,
    families_of,
    family_names,
    find_entry,
    recognise,
)
from course_utils.views.widgets.painter_verdict import (
    all_finite,
    empty_rows,
    measure,
    name_of,
    oddities,
    rows_measured,
    verdict_lines,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 16  # rows or columns; more do not fit a page
_MAX_ALONE = 5000  # numbers that a page without a kernel is given
_WIDTH = 8  # d_model = d_k = d_v of the seeded tokens


class MaskPainter(CourseWidget):
    """A mask to paint by mouse or keyboard, the attention weights under it, and whether an output sees a later token.

    tokens: n labels, the queries. keys: m labels where they are another sequence (cross-attention); else the tokens.
    mask: (n, m) booleans to start from, True means may attend. family: where no mask is given, one of `.families`; by
        default "causal", for cross-attention "bidirectional". window, prefix, length: what the families' sliders say.
    attention: your own `attention(q, k, v, mask)` on tensors (n, d), (m, d), (m, d) and a boolean (n, m); it returns
        (output, weights), or the output alone. By default the course's. It is called with q, k, v made from random
        tokens of this seed, and the leak is measured on it by `masks.future_leak`, each time the mask changes. What
        the mask itself opens of the future is told too, but is a leak only if the model should be causal.
    target: (n, m) booleans to reach; a line then says how many cells are still to change, and so does `.to_go`.
    `.mask`, `.family`, `.window`, `.prefix` and `.length` can be read and set; `.family` is "painted" when the mask is
    none of the families. `.weights`, `.verdict`, `.leak` and `.problem` say what was measured. At most 16 tokens.
    A page without a kernel is given what was measured before of every row that a mask can have, up to about six keys,
    and puts them together, since a query's output depends on its own row of the mask. Where that fails, it says so.
    Raises ValueError when labels, mask, family or settings do not fit.
    """

    in_gallery = InGallery(
        31, "Paint a mask", question="The goal is that no output sees a later token. How many squares can stay open?"
    )

    _esm = script("painter.js")
    _css = style("painter.css")

    family = traitlets.Unicode("causal", help="the family that the mask belongs to, or painted").tag(sync=True)
    window = traitlets.Int(1, help="places that a sliding window shows").tag(sync=True)
    prefix = traitlets.Int(0, help="tokens of the prefix").tag(sync=True)
    length = traitlets.Int(0, help="keys that are not padding").tag(sync=True)
    _mask = traitlets.Unicode().tag(sync=True)  # n·m characters, row by row: 1 may attend, 0 may not
    _target = traitlets.Unicode().tag(sync=True)  # the same, or nothing
    _result = traitlets.Dict().tag(sync=True)
    _tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _keys = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _catalogue: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _ramp = ramp_trait()

    def __init__(self, tokens, keys=None, mask=None, attention=None, family=None, seed=0, target=None, **settings):
        tokens = as_labels("tokens", tokens)
        self._crossed = keys is not None
        keys = as_labels("keys", keys) if self._crossed else tokens
        n, m = _checked_sizes(tokens, keys)
        self._attention = tensors.attention if attention is None else _checked_function(attention)
        self._inputs = _draw_inputs(n, m, seed, self._crossed)
        catalogue = families_of(n, m)
        settings = _checked_settings(settings, catalogue, n, m)
        family = family or ("bidirectional" if self._crossed else "causal")
        names = family_names(catalogue)
        if family not in names:
            raise ValueError(f"family is {family!r}: give one of {', '.join(map(repr, names))}")
        start = find_entry(catalogue, family, settings)["mask"]
        if mask is not None:
            start = as_signs(as_mask(mask, n, m))
            family, settings = recognise(catalogue, start, family, settings)
        super().__init__(
            family=family,
            **settings,
            _mask=start,
            _target="" if target is None else as_signs(as_mask(target, n, m)),
            _tokens=tokens,
            _keys=keys,
            _catalogue=catalogue,
            _layout={
                "cell": _cell_size(max(n, m)),
                "about": {name: ABOUT[name] for name in (*names, "painted")} | (RECTANGLE if n != m else {}),
            },
        )

    @property
    def mask(self) -> np.ndarray:
        """The mask as painted, (n, m) booleans, True means may attend; a copy."""
        return _as_array(self._mask, len(self._tokens), len(self._keys))

    @mask.setter
    def mask(self, mask: Any) -> None:
        self._mask = as_signs(as_mask(mask, len(self._tokens), len(self._keys)))

    @property
    def to_go(self) -> int | None:
        """How many cells of the mask differ from the target; None where there is no target."""
        return sum(map(str.__ne__, self._mask, self._target)) if self._target else None

    @property
    def families(self) -> list[str]:
        """The names of the families that exist for this number of queries and keys."""
        return family_names(self._catalogue)

    @property
    def weights(self) -> np.ndarray | None:
        """The weights that the attention gave under this mask, (n, m) float64, or None where it gave none."""
        return None if self._measured.weights is None else self._measured.weights.copy()

    @property
    def leak(self) -> Any:
        """What `masks.future_leak` measured, Leak(i, j, amount), or None where there was nothing to measure.

        The worst of the pairs that the mask blocks; where none of them leaks, the worst of all.
        """
        return self._measured.leak

    @property
    def problem(self) -> str:
        """What went wrong in your function, or an empty string."""
        return self._measured.problem

    @property
    def verdict(self) -> str:
        """The verdict in one line, as it stands below the mask."""
        return self._result["lines"][0]

    @traitlets.validate("family")
    def _family_exists(self, proposal):
        family = proposal.value
        if family == "painted" and any(entry["mask"] == self._mask for entry in self._catalogue):
            raise ValueError("a mask becomes painted by being painted: set .mask, or click cells")
        if family not in (*self.families, "painted"):
            raise ValueError(f"family is {family!r}: give one of {', '.join(map(repr, self.families))}")
        return family

    @traitlets.validate("window", "prefix", "length")
    def _setting_exists(self, proposal):
        name = proposal.trait.name
        _checked_settings({name: proposal.value}, self._catalogue, len(self._tokens), len(self._keys))
        return proposal.value

    @traitlets.observe("family", "window", "prefix", "length")
    def _follow_family(self, change):
        if self.family != "painted" and change.name in ("family", SETTINGS.get(self.family)):
            self._mask = find_entry(self._catalogue, self.family, self._settings())["mask"]

    @traitlets.observe("_mask")
    def _follow_mask(self, change):
        self._measured = measure(self._attention, self._inputs, self.mask, self._crossed)
        family, settings = recognise(self._catalogue, self._mask, self.family, self._settings())
        for name, value in {**settings, "family": family}.items():
            setattr(self, name, value)
        self._result = {"mask": self._mask, "kind": self._kind(), "lines": self._lines(), **self._cells()}

    def _settings(self):
        return {name: getattr(self, name) for name in SETTINGS.values()}

    def _cells(self):
        """Text, level and mark of each weight, row by row; n letters in `rows`, e where a row may attend to nothing.

        Marks: w a weight, b blocked, l blocked but not 0, n not a number, x no weight there.
        """
        mask = self.mask
        weights = self._measured.weights
        rows = "".join("-" if may.any() else "e" for may in mask)
        if weights is None:
            return {"text": [""] * mask.size, "levels": [0] * mask.size, "marks": "x" * mask.size, "rows": rows}
        texts = []
        marks = []
        for may, weight in zip(mask.ravel(), weights.ravel(), strict=True):
            nothing = not may and weight == 0
            texts.append("–" if nothing else short(weight, SINGLE))
            if not np.isfinite(weight):
                marks.append("n")
            elif may:
                marks.append("w")
            else:
                marks.append("b" if nothing else "l")
        levels = np.rint(np.nan_to_num(weights, posinf=0, neginf=0).clip(0, 1) * 255).astype(int).ravel().tolist()
        return {"text": texts, "levels": levels, "marks": "".join(marks), "rows": rows}

    def _kind(self):
        measured = self._measured
        if measured.problem:
            return "problem"
        if measured.leak is None:
            return "none"
        if measured.leak.i is not None:
            return "ahead" if self.mask[measured.leak.i, measured.leak.j] else "leak"
        return "clean" if all_finite(measured.weights) else "nan"

    def _lines(self):
        """The verdict, why, the rows that may attend to nothing, and what else the weights show."""
        measured = self._measured
        mask = self.mask
        queries, keys = _quote_labels(self._tokens), _quote_labels(self._keys)
        name = "the attention" if self._attention is tensors.attention else name_of(self._attention)
        lines = [f"no verdict: {name} has to be fixed first", measured.problem]
        if not measured.problem:
            lines = verdict_lines(measured, mask, queries, name)
        return [*lines, empty_rows(mask, measured.weights, queries), oddities(mask, measured, queries, keys)]

    def alone_state(self) -> dict[str, Any]:
        n, m = len(self._tokens), len(self._keys)
        theirs = self._attention is not tensors.attention
        name = name_of(self._attention) if theirs else "the attention"
        few = 2**m * n * (n + m) <= _MAX_ALONE
        masks = [_as_array(entry["mask"], n, m) for entry in self._catalogue]
        rows = rows_measured(self._attention, self._inputs, self._crossed, masks) if few else None
        return {"_alone": {"rows": rows, "crossed": self._crossed, "name": name}}

    def as_text(self) -> str:
        n, m = len(self._tokens), len(self._keys)
        side = max(4, *map(len, self._tokens))
        wide = max(4, *map(len, self._keys))
        texts = self._result["text"]
        head = " " * side + "".join(f"  {key:>{wide}}" for key in self._keys)

        def table(cells):
            return [
                f"{token:>{side}}" + "".join(f"  {text:>{wide}}" for text in cells[m * row : m * row + m])
                for row, token in enumerate(self._tokens)
            ]

        lines = [f"mask ({self._name_family()}): {n} queries (rows) × {m} keys (columns), ✓ may attend", head]
        lines += table(["✓" if may == "1" else "–" for may in self._mask])
        lines += ["weights under this mask", head, *table([text or "?" for text in texts])]
        return "\n".join([*lines, *self._all_lines()])

    def alt(self) -> str:
        may = "; ".join(
            f"{token} to {', '.join(np.array(self._keys)[row]) if row.any() else 'nothing'}"
            for token, row in zip(self._tokens[:8], self.mask, strict=False)
        )
        more = "; and so on" if len(self._tokens) > 8 else ""
        verdict = " ".join(map(_sentence, self._all_lines()))
        return f"A mask ({self._name_family()}) beside the weights under it. May attend: {may}{more}. {verdict}"

    def _all_lines(self):
        """How far the goal is, then the lines of the verdict."""
        goal = {None: "", 0: "goal reached: this is the mask"}
        cells = f"goal: {self.to_go} cell{'s' if self.to_go != 1 else ''} to go"
        return [line for line in (goal.get(self.to_go, cells), *self._result["lines"]) if line]

    def _name_family(self):
        setting = SETTINGS.get(self.family)
        return f"{self.family}, {setting} {getattr(self, setting)}" if setting else self.family

    def figure(self) -> Figure:
        n, m = len(self._tokens), len(self._keys)
        cell = self._layout["cell"] * 0.9
        left = 7.5 * max(map(len, self._tokens)) + 26
        turned = 8 * max(map(len, self._keys)) > cell
        top = 40 + (7.5 * max(map(len, self._keys)) if turned else 16)
        gap = max(left + 24, 230 - m * cell)  # the first title has room before the second
        width = max(left + 2 * m * cell + gap + 16, 560)
        lines = [part for line in self._all_lines() for part in _wrap(line, width - 30)]
        height = top + n * cell + 20 + 19 * len(lines)
        fig = new_figure(width, height)
        result = self._result
        painted = ["m" if may == "1" else "b" for may in self._mask]
        for place, title, marks, texts, levels in (
            (left, f"mask: {self._name_family()}", painted, ["✓"] * n * m, [0] * n * m),
            (left + m * cell + gap, "weights", result["marks"], result["text"], result["levels"]),
        ):
            box = (place / width, 1 - (top + n * cell) / height, m * cell / width, n * cell / height)
            _draw(fig.add_axes(box), marks, texts, levels, self._tokens, self._keys, turned, cell)
            fig.text(place / width, 1 - 14 / height, title, fontweight="bold", va="center")
        for row, line in enumerate(lines):
            y = 1 - (top + n * cell + 22 + 19 * row) / height
            fig.text(12 / width, y, line, fontweight="normal" if row else "bold", va="center")
        return fig


def _draw_inputs(n, m, seed, crossed):
    """Tokens (n, d), what the keys and values are made from (m, d), and the three projections (d, d)."""
    generator = torch.Generator().manual_seed(seed)
    projections = torch.randn(3, _WIDTH, _WIDTH, generator=generator) / _WIDTH**0.5
    x = torch.randn(n, _WIDTH, generator=generator)
    memory = torch.randn(m, _WIDTH, generator=generator) if crossed else x
    return x, memory, projections


def _checked_sizes(tokens, keys):
    for name, labels in (("tokens", tokens), ("keys", keys)):
        if not labels:
            raise ValueError(f"{name} is empty: there is nothing to mask")
        if len(labels) > _MOST:
            raise ValueError(f"{name} has {len(labels)} labels: the painter shows up to {_MOST}")
    return len(tokens), len(keys)


def _cell_size(count):
    """CSS pixels of a cell where that many stand in a line."""
    for most, pixels in ((4, 56), (5, 48), (8, 42), (12, 34)):
        if count <= most:
            return pixels
    return 27


def _checked_function(attention):
    if not callable(attention):
        raise ValueError(f"attention is {type(attention).__name__}: give a function attention(q, k, v, mask)")
    return attention


def _checked_settings(chosen, catalogue, n, m):
    """Return window, prefix and length, each within its range; one that is not chosen shows its family well."""
    settings = {"window": min(3, m), "prefix": min(2, n), "length": max(1, m - 2)}
    for name, value in chosen.items():
        if name not in settings:
            raise TypeError(f"MaskPainter takes no {name}")
        allowed = [entry["value"] for entry in catalogue if entry["setting"] == name] or [settings[name]]
        if isinstance(value, bool) or value not in allowed:
            raise ValueError(f"{name} is {value!r}: give a whole number from {allowed[0]} to {allowed[-1]}")
        settings[name] = int(value)
    return settings


def _as_array(text, n, m):
    return np.array([may == "1" for may in text]).reshape(n, m)


def _quote(label):
    return f"“{label if len(label) <= 16 else label[:15] + '…'}”"


def _quote_labels(labels):
    """Labels in quotation marks; those that come twice with their place."""
    return [
        _quote(label) + (f" (token {place})" if labels.count(label) > 1 else "") for place, label in enumerate(labels)
    ]


def _sentence(line):
    return line if line.endswith((".", "?")) else line + "."


def _wrap(line, width):
    """The line in parts that fit a width in CSS pixels."""
    return textwrap.wrap(line, int(width / 6.6), break_long_words=False, break_on_hyphens=False)


def _draw(ax, marks, texts, levels, queries, keys, turned, cell):
    """One grid of cells: hatched where blocked, on the ramp of weights elsewhere."""
    from matplotlib.patches import Rectangle

    n, m = len(queries), len(keys)
    colours = palette.ramp()
    ax.set(xlim=(0, m), ylim=(n, 0))
    for place, (mark, text, level) in enumerate(zip(marks, texts, levels, strict=True)):
        row, column = divmod(place, m)
        face: tuple[float, ...] | str = tuple(part / 255 for part in colours[level])
        ink = palette.ink(level)
        if mark != "w" and mark != "l":
            face, ink = (palette.OPEN, palette.ink_on(palette.OPEN)) if mark == "m" else ("none", palette.INK)
        hatch = "////" if mark == "b" else None
        patches = [Rectangle((column, row), 1, 1, facecolor=face, edgecolor=palette.INK, hatch=hatch, linewidth=0.8)]
        if mark in "ln":
            inner = (column + 0.06, row + 0.06)
            patches.append(Rectangle(inner, 0.88, 0.88, fill=False, edgecolor=palette.WRONG, linewidth=2))
        for patch in patches:
            ax.add_patch(patch)
        if mark != "b":
            size = 8.5 if cell > 30 else 6.5
            ax.text(column + 0.5, row + 0.52, text, ha="center", va="center", fontsize=size, color=ink)
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(m) + 0.5, keys, rotation=90 if turned else 0)
    ax.set_yticks(np.arange(n) + 0.5, queries)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_color(palette.INK)
