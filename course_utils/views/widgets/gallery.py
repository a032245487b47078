"""A gallery of attention heads: one row of every head at once, one head enlarged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, ramp_trait, script, style
from course_utils.views.shared.coerce import as_head, as_labels, as_numbers
from course_utils.views.shared.heads import head_name, table_of_heads
from course_utils.views.shared.number_text import short
from course_utils.views.silence import hide_prints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.views.shared.coerce import Numbers

_MAX_TOKENS = 64
_MAX_HEADS = 16
_PROBLEM = 200  # characters of a message about a text
_LISTED = 4  # so many of the largest weights of a row are given as numbers


class HeadGallery(CourseWidget):
    """All heads of a model as small maps: hover a token and every head shows its row; click a map to enlarge it.

    weights: (n_layers, h, n, n) numbers from 0 to 1, rows are queries, columns are keys; NumPy, torch, nested lists, or
        the list of (1, h, n, n) that a Decoder returns with return_weights. Set `.weights` again to redraw in place.
    tokens: n labels, at most 64; at most 16 layers and 16 heads.
    scores: name -> (n_layers, h) finite numbers, shown under each head to two decimals, the largest in bold; `.scores`
        can be set again, with the same names.
    read: a function that is given a text and returns (tokens, weights) of it, as many layers and heads; it raises
        ValueError that says what it cannot read. With it the page has a field for a text of one's own, which Python
        reads, so while the kernel runs; `.read(text)` does the same. readable: what a text may be made of, for the
        field's label. A page without a kernel offers `read.examples` in its place, texts that were read before, where
        there are some. scores stay as they are: they belong to the heads, not to a text.
    `.head` is the enlarged head, (layer, head) or None: at first that of the largest first score, or the sharpest of
        the last layer; `.row` the pinned row or None. Both can be set.
    Raises ValueError when weights, tokens and scores do not fit, or when weights are not weights.
    """

    in_gallery = InGallery(42, "Look at all heads", question="Which head always looks at the letter just before?")

    _esm = script("gallery.js")
    _css = style("heads.css", "gallery.css")

    head = traitlets.Any(None, allow_none=True, help="the enlarged head, (layer, head)").tag(sync=True)
    row = traitlets.Int(None, allow_none=True, help="the pinned row").tag(sync=True)
    title = traitlets.Unicode("attention heads").tag(sync=True)
    _tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _thousandths = traitlets.Bytes().tag(sync=True)
    _scores: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _own = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)  # the field for one's own text, if any
    _typed = traitlets.Dict({"text": "", "number": 0}).tag(sync=True)  # what was sent from it, counted
    _said = traitlets.Dict({"text": "", "number": 0}).tag(sync=True)  # what there is to say, and to which
    _ramp = ramp_trait()

    def __init__(self, weights, tokens, scores=None, title="attention heads", read=None, readable=""):
        tokens = as_labels("tokens", _as_list(tokens))
        if read is not None and not callable(read):
            raise ValueError(f"read is {type(read).__name__}: give a function, text -> (tokens, weights)")
        self._reader = read
        self._weights = _verify_weights(weights, len(tokens))
        self._numbers = _checked_scores({} if scores is None else scores, self._weights.shape[:2])
        super().__init__(
            title=str(title),
            _tokens=tokens,
            _thousandths=_thousandths(self._weights),
            _scores=_score_state(self._numbers),
            _layout=_layout(*self._weights.shape[:3]),
            _own=None if read is None else {"readable": str(readable), "most": _MAX_TOKENS},
            head=_starting_head(self._weights, self._numbers),
        )

    def read(self, text: str) -> None:
        """Show the heads on another text. Raises ValueError without a reader, and as the reader does."""
        if self._reader is None:
            raise ValueError("this gallery reads no text: give it read, a function text -> (tokens, weights)")
        tokens, weights = self._reader(text)
        tokens = as_labels("tokens", _as_list(tokens))
        checked = _verify_weights(weights, len(tokens))
        _same_heads("weights", checked.shape[:2], self._weights.shape[:2])
        with self.hold_sync():
            self.row = None
            self._weights = checked
            self._tokens = tokens
            self._thousandths = _thousandths(checked)
            self._layout = _layout(*checked.shape[:3])

    def alone_state(self) -> dict[str, Any]:
        if self._reader is None:
            return {}
        readings = [(text, *self._reader(text)) for text in getattr(self._reader, "examples", ())]
        texts = [{"text": text, **_text_state(as_labels("tokens", _as_list(tokens)), as_numbers("weights", weights))}
                 for text, tokens, weights in readings]  # fmt: skip
        return {"_alone": {"texts": [{"text": "", **_text_state(self._tokens, self._weights)}, *texts]}}

    @traitlets.observe("_typed")
    def _read_typed(self, change):
        try:
            with hide_prints():
                self.read(change.new["text"])
            message = f"Shown: your text of {len(self._tokens)} tokens."
        except Exception as error:  # anyone's reader
            message = " ".join(str(error).split()) or type(error).__name__
        self._said = {"text": message[:_PROBLEM], "number": change.new["number"]}

    @property
    def weights(self) -> np.ndarray:
        """The weights shown, (n_layers, h, n, n) float64; a copy."""
        return self._weights.copy()

    @weights.setter
    def weights(self, weights: Numbers) -> None:
        checked = _verify_weights(weights, len(self._tokens))
        _same_heads("weights", checked.shape[:2], self._weights.shape[:2])
        self._weights = checked
        self._thousandths = _thousandths(checked)

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """The scores shown, name -> (n_layers, h) float64; copies."""
        return {name: values.copy() for name, values in self._numbers.items()}

    @scores.setter
    def scores(self, scores: Mapping[str, Any]) -> None:
        checked = _checked_scores(scores, self._weights.shape[:2])
        if list(checked) != list(self._numbers):
            present = ", ".join(self._numbers) or "none"
            raise ValueError(f"scores are named {', '.join(checked) or 'none'} but those shown are {present}")
        self._numbers = checked
        self._scores = _score_state(checked)

    @traitlets.validate("head")
    def _head_exists(self, proposal):
        return None if proposal.value is None else as_head("head", proposal.value, self._weights.shape[:2])

    @traitlets.validate("row")
    def _row_exists(self, proposal):
        row = proposal.value
        n = len(self._tokens)
        if row is not None and not 0 <= row < n:
            raise ValueError(f"row is {row} but there are {n} tokens: 0 to {n - 1}, or None to unpin")
        return row

    def as_text(self) -> str:
        n_layers, h, n, _ = self._weights.shape
        lines = [f"{self.title}: {n_layers} {_plural('layer', n_layers)} × {h} {_plural('head', h)}, {n} tokens"]
        for name, values in self._scores_or_sharpness().items():
            lines += ["", name, *table_of_heads(values)]
        if self.head is not None:
            lines += ["", f"enlarged: {head_name(*self.head)}"]
        if self.row is not None:
            lines += ["", f"row {self.row}, the query “{self._tokens[self.row]}”, attends most to"]
            heads = [self.head] if self.head is not None else list(np.ndindex(n_layers, h))
            lines += [f"{head_name(*head)}: {self._describe_strongest(*head)}" for head in heads[:16]]
            lines += ["…"] * (len(heads) > 16)
        return "\n".join(lines)

    def alt(self) -> str:
        n_layers, h, n, _ = self._weights.shape
        sentences = [f"A map of the attention weights of each of {n_layers} × {h} heads over {n} tokens: {self.title}."]
        for name, values in self._scores_or_sharpness().items():
            place = np.unravel_index(values.argmax(), values.shape)
            sentences.append(f"{name[0].upper()}{name[1:]} is largest in {head_name(*place)}, {short(values[place])}.")
        if self.head is not None:
            sentences.append(f"Enlarged: {head_name(*self.head)}.")
        if self.row is not None:
            target = " as each map shows"
            if self.head is not None:
                target = f" in {head_name(*self.head)} most to {self._describe_strongest(*self.head)}"
            sentences.append(f"Row {self.row} is marked: “{self._tokens[self.row]}” attends{target}.")
        return " ".join(sentences)

    def _scores_or_sharpness(self):
        """The scores; without any, how sharp each head is."""
        return self._numbers or {"largest weight of a row, mean over the rows": self._weights.max(-1).mean(-1)}

    def _describe_strongest(self, layer, head):
        weights = self._weights[layer, head, self.row]
        return f"key {weights.argmax()} “{self._tokens[weights.argmax()]}”, {short(weights.max())}"

    def figure(self) -> Figure:
        n_layers, h = self._weights.shape[:2]
        side = self._layout["wide"]
        lines = 1 + len(self._numbers)
        left = 20 + 6.2 * max([7, *map(len, self._numbers)])
        top = 58
        column = side + 16
        line = side + 15 * lines + 14
        large = 0 if self.head is None else 324
        below = top + n_layers * line + 28
        width = max(left + h * column, left + large + 20, 380)
        height = below + large + 24 if large else below - 20
        fig = new_figure(width, height)
        ax = fig.add_axes((0, 0, 1, 1))  # in CSS pixels, from the top
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        ax.text(12, 18, self.title, fontweight="bold", va="center")
        for layer, head in np.ndindex(n_layers, h):
            x, y = left + head * column, top + layer * line
            if layer == 0:
                ax.text(x + side / 2, y - 12, f"head {head}", fontsize=10, ha="center")
            self._draw(ax, x, y, side, layer, head)
            if head == 0:
                ax.text(x - 10, y + 9, f"layer {layer}", ha="right", va="center")
            for place, (name, values) in enumerate(self._numbers.items()):
                at = y + side + 11 + 15 * place
                if head == 0:
                    ax.text(x - 10, at, name, fontsize=10, ha="right", va="center")
                weight = "bold" if values.argmax() == layer * h + head else "normal"
                text = short(values[layer, head])
                ax.text(x + side / 2, at, text, fontsize=10, fontweight=weight, ha="center", va="center")
        if large:
            ax.text(left, below - 12, head_name(*self.head), fontweight="bold")
            self._draw(ax, left, below, large, *self.head)
            self._label(ax, left, below, large)
        return fig

    def _label(self, ax, x, y, side):
        """Name the rows and columns of a map with its upper left corner at (x, y) by their tokens, where these fit."""
        cell = side / len(self._tokens)
        if cell < 10 or 7 * max(map(len, self._tokens)) > cell:
            return
        for place, token in enumerate(self._tokens):
            at = (place + 0.5) * cell
            ax.text(x - 8, y + at, token, fontsize=9, ha="center", va="center_baseline")
            ax.text(x + at, y + side + 12, token, fontsize=9, ha="center", va="baseline")

    def _draw(self, ax, x, y, side, layer, head):
        """One map with its upper left corner at (x, y); the pinned row is framed."""
        from matplotlib.patches import Rectangle

        n = len(self._tokens)
        box = (x, x + side, y + side, y)
        colours = {"cmap": palette.veil(), "vmin": 0, "vmax": 1}
        ax.imshow(self._weights[layer, head], extent=box, aspect="auto", interpolation="nearest", **colours)
        chosen = self.head == (layer, head)
        colour, width = (palette.QUERY, 2) if chosen else (palette.INK, 0.8)
        ax.add_patch(Rectangle((x, y), side, side, fill=False, edgecolor=colour, linewidth=width))
        if self.row is not None:
            frame = (x, y + self.row * side / n)
            ax.add_patch(Rectangle(frame, side, side / n, fill=False, edgecolor=palette.KEY, linewidth=1.2))


def _starting_head(weights, scores):
    """The head to begin with: that of the largest first score, or the one with the sharpest rows in the last layer."""
    for values in scores.values():
        return tuple(int(place) for place in np.unravel_index(values.argmax(), values.shape))
    return len(weights) - 1, int(weights[-1].max(-1).mean(-1).argmax())


def _layout(n_layers, h, n):
    """Sizes in CSS pixels, so that each weight of a map has a whole number of them."""

    def side(most):
        return n * max(1, most // n)

    if h <= 4:
        wide, small = side(132), side(60)
    elif h <= 8:
        wide, small = side(96), side(52)
    else:
        wide, small = side(64), side(48)
    cell = max(1, min(56, 324 // n))
    return {
        "layers": n_layers,
        "heads": h,
        "wide": wide,
        "small": small,
        "cell": cell,
        "listed": min(n, _LISTED),
    }


def _verify_weights(weights, n):
    """(n_layers, h, n, n) float64 from 0 to 1."""
    weights = as_numbers("weights", weights)
    if weights.ndim == 5 and weights.shape[1] == 1:
        weights = weights[:, 0]  # a batch of one sequence
    if weights.ndim != 4 or 0 in weights.shape:
        hint = "; pick one sequence of the batch first" if weights.ndim == 5 else ""
        raise ValueError(f"weights has shape {weights.shape}: (n_layers, h, n, n) is needed{hint}")
    if weights.shape[2:] != (n, n):
        raise ValueError(f"weights is {weights.shape} but there are {n} tokens: the last two sizes have to be {n}")
    if n > _MAX_TOKENS or max(weights.shape[:2]) > _MAX_HEADS:
        raise ValueError(
            f"weights is {weights.shape}: the gallery shows up to {_MAX_HEADS} layers, {_MAX_HEADS} heads and "
            f"{_MAX_TOKENS} tokens"
        )
    outside = np.argwhere((weights < -1e-6) | (weights > 1 + 1e-6))
    if len(outside):
        place = tuple(outside[0].tolist())
        raise ValueError(
            f"weights{list(place)} is {weights[place]:.4g}: a weight lies between 0 and 1. "
            "Are these scores, from before the softmax?"
        )
    return weights.clip(0, 1)


def _checked_scores(scores, shape):
    if not hasattr(scores, "items"):
        raise ValueError(f"scores is {type(scores).__name__}: give a dict, name -> (n_layers, h) numbers")
    checked = {str(name): as_numbers(f"scores[{name!r}]", values) for name, values in scores.items()}
    for name, values in checked.items():
        _same_heads(f"scores[{name!r}]", values.shape, shape)
    return checked


def _same_heads(name, shape, expected):
    if tuple(shape) != tuple(expected):
        n_layers, h = expected
        raise ValueError(f"{name} is for {tuple(shape)} but there are {n_layers} layers of {h} heads: {(n_layers, h)}")


def _as_list(tokens):
    """The tokens of a tensor or array as plain numbers; one sequence in a batch of one is taken out of it."""
    if not hasattr(tokens, "tolist"):
        return tokens
    tokens = tokens.tolist()
    return tokens[0] if isinstance(tokens, list) and len(tokens) == 1 and isinstance(tokens[0], list) else tokens


def _text_state(tokens, weights):
    return {"tokens": tokens, "thousandths": _thousandths(weights), "layout": _layout(*weights.shape[:3])}


def _thousandths(weights):
    return np.rint(weights * 1000 + 1e-6).astype("<u2").tobytes()


def _score_state(scores):
    """For each score its name, a text for each head and the place of the largest."""
    return [
        {"name": name, "values": [short(value) for value in values.ravel()], "most": int(values.argmax())}
        for name, values in scores.items()
    ]


def _plural(name, count):
    return name if count == 1 else f"{name}s"
