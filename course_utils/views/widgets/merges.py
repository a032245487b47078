"""Byte-pair encoding by steps: the pairs of a short text counted, the most frequent merged, and the list that grows."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import traitlets

from course_utils.models.byte_pairs import BYTES, Pair, merge
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.number_text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 200  # characters
_SHOWN = 6  # pairs in the table
_WIDE = 680  # of the picture, which has at most this many rows of tokens, and of merges
_ROWS = 8
_SIGNS = {ord(" "): "␣", ord("\n"): "⏎", ord("\t"): "⇥"}


class State(NamedTuple):
    """The tokens of a text after some merges, and its most frequent pairs with their counts; the first is next."""

    tokens: list[int]
    pairs: list[tuple[int, int, int]]


class MergeStepper(CourseWidget):
    """Byte-pair encoding of a text, one merge at a time, in whole and not word by word.

    text: 1 to 200 characters. At first each byte of its UTF-8 is a token; merge i puts token 256 + i in the place of
    the most frequent pair, from left to right and without overlap. Of pairs that are as frequent the smallest pair of
    numbers is merged, and merging ends where no pair occurs twice. Bytes outside ASCII are written as <C3>.
    `.text` and `.step`, the number of merges done, can be read and set; the page's field and player set them. A new
    text begins at step 0. `.tokens` and `.merges` are those of the step. Raises ValueError for a text or step that does
    not fit.
    """

    in_gallery = InGallery(91, "Merge bytes into tokens", summary="Step through the merges of a text that you type.")

    _esm = script("merges.js")
    _css = style("player.css", "merges.css")

    text = traitlets.Unicode("a").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    _layout = traitlets.Dict({"most": _MOST, "shown": _SHOWN}).tag(sync=True)

    def __init__(self, text: str, step: int = 0):
        super().__init__(text=text)
        self.step = step

    @property
    def last(self) -> int:
        """The number of merges after which no pair occurs twice."""
        return len(states_of(self.text)) - 1

    @property
    def tokens(self) -> list[int]:
        """The tokens of the text at this step."""
        return [*states_of(self.text)[self.step].tokens]

    @property
    def merges(self) -> list[Pair]:
        """The merges up to this step, as `byte_pairs.BytePairs` takes them."""
        return [state.pairs[0][:2] for state in states_of(self.text)[: self.step]]

    @traitlets.validate("text")
    def _text_fits(self, proposal):
        if not 1 <= len(proposal.value) <= _MOST:
            raise ValueError(f"text has {len(proposal.value)} characters: give 1 to {_MOST}")
        try:
            proposal.value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"text[{error.start}] is half a character, which has no bytes in UTF-8") from None
        return proposal.value

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if not 0 <= proposal.value <= self.last:
            raise ValueError(f"step is {proposal.value}: give 0 to {self.last}")
        return proposal.value

    @traitlets.observe("text")
    def _begin(self, _change):
        self.step = 0

    def describe(self) -> str:
        """Say what the last merge did and which pair is next."""
        return message_of(states_of(self.text), self.step)

    def as_text(self) -> str:
        state = states_of(self.text)[self.step]
        name = _names(self.merges)
        lines = [
            f"byte-pair encoding, {self.step} of {self.last} merges", " ".join(map(name, state.tokens)), self._sums(),
            "most frequent pairs",
        ]  # fmt: skip
        lines += [f"{count:5} × {name(left)} {name(right)}  ({left}, {right})" for left, right, count in state.pairs]
        lines += ["merges", *map(self._merge_line, range(self.step))]
        return "\n".join([*lines, self.describe()])

    def alt(self) -> str:
        return f"Byte-pair encoding of a text, {self.step} of {self.last} merges. {self._sums()}. {self.describe()}"

    def _sums(self) -> str:
        n_bytes, n = len(self.text.encode()), len(self.tokens)
        counts = f"{_several(n_bytes, 'byte')} in {_several(n, 'token')}"
        return f"{counts}, {short(n_bytes / n)} bytes per token, vocabulary {BYTES + self.step}"

    def _merge_line(self, number: int) -> str:
        name = _names(self.merges)
        left, right = self.merges[number]
        return f"{BYTES + number} = {name(left)} + {name(right)}"

    def figure(self) -> Figure:
        state = states_of(self.text)[self.step]
        name = _names(self.merges)
        rows = _lay_out([name(token) for token in state.tokens])
        shown = rows[:_ROWS]
        left_out = len(state.tokens) - sum(map(len, shown))
        below = 52 + 28 * len(shown) + 20 * bool(left_out)
        height = below + 30 + 24 * max(_SHOWN, min(_ROWS, self.step) + (self.step > _ROWS)) + 6
        fig = new_figure(_WIDE, height)
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, _WIDE), ylim=(height, 0))
        ax.axis("off")
        text: dict[str, Any] = {"va": "center", "parse_math": False}
        ax.text(8, 20, self._sums(), fontweight="bold", **text)
        place = 0
        for row, chips in enumerate(shown):
            for x, wide, label in chips:
                _draw_chip(ax, x, 40 + 28 * row, wide, label, state.tokens[place] == BYTES + self.step - 1)
                place += 1
        if left_out:
            ax.text(8, below - 14, f"and {left_out} more tokens", **text)
        self._draw_pairs(ax, below + 14, text)
        self._draw_merges(ax, below + 14, text)
        return fig

    def _draw_pairs(self, ax: Axes, top: float, text: dict[str, Any]) -> None:
        pairs = states_of(self.text)[self.step].pairs
        name = _names(self.merges)
        ax.text(8, top, "most frequent pairs" if pairs else "no pair is left", fontweight="bold", **text)
        for place, (left, right, count) in enumerate(pairs):
            y = top + 24 * (place + 1)
            colour = palette.QUERY if place == 0 and count > 1 else palette.INK
            label = _shorten(f"{name(left)} {name(right)}")
            ax.text(8, y, label, family="monospace", fontsize=10, color=colour, **text)
            ax.barh(y, 130 * count / pairs[0][2], left=190, height=12, color=colour)
            ax.text(198 + 130 * count / pairs[0][2], y, str(count), **text)

    def _draw_merges(self, ax: Axes, top: float, text: dict[str, Any]) -> None:
        ax.text(390, top, f"merges: {self.step} of {self.last}", fontweight="bold", **text)
        first = max(0, self.step - _ROWS)
        lines = [*([f"{first} more"] if first else []), *map(self._merge_line, range(first, self.step))]
        for place, line in enumerate(lines):
            ax.text(390, top + 24 * (place + 1), _shorten(line, 34), family="monospace", fontsize=10, **text)


# --- the arithmetic, which merges_steps.js does too -------------------------------------------------------------------


@lru_cache(8)
def states_of(text: str) -> list[State]:
    """Return the state of a text before each merge, and after the last, where no pair occurs twice."""
    tokens = list(text.encode())
    states: list[State] = []
    while True:
        counts = Counter(pairwise(tokens))
        found = sorted((-count, pair) for pair, count in counts.items())[:_SHOWN]
        states.append(State(tokens, [(*pair, -count) for count, pair in found]))
        if not found or -found[0][0] < 2:
            return states
        tokens = merge(tokens, found[0][1], BYTES + len(states) - 1)


def message_of(states: list[State], step: int) -> str:
    """Say what the last merge did and which pair is next."""
    name = _names([state.pairs[0][:2] for state in states[:step]])
    tokens, pairs = states[step]
    if step:
        before = states[step - 1]
        left, right, _ = before.pairs[0]
        places = _several(len(before.tokens) - len(tokens), "place")
        did = f"Merge {step}: “{name(left)}” + “{name(right)}” became token {BYTES + step - 1}, at {places}."
    else:
        did = f"Each byte is a token: {_several(len(tokens), 'token')}."
    if step == len(states) - 1:
        return f"{did} No pair occurs twice now, so merging ends."
    left, right, count = pairs[0]
    tie = ", the smallest in a tie" if len(pairs) > 1 and pairs[1][2] == count else ""
    return f"{did} Most frequent now: “{name(left)}” + “{name(right)}”, {count} times{tie}."


def _names(merges):
    """Return what writes a token: its bytes, with spaces that can be seen, and those outside ASCII as hex."""
    pieces = [_SIGNS.get(byte, chr(byte) if 32 < byte < 127 else f"<{byte:02X}>") for byte in range(BYTES)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    return pieces.__getitem__


def _several(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


# --- the picture ------------------------------------------------------------------------------------------------------


def _lay_out(labels: list[str]) -> list[list[tuple[float, float, str]]]:
    """Return rows of chips for the labels, each its left edge, width and label; one that is too long is shortened."""
    rows: list[list[tuple[float, float, str]]] = []
    x = float(_WIDE)
    for label in labels:
        label = _shorten(label, 70)
        wide = 8.2 * len(label) + 10
        if x + wide > _WIDE - 8:
            rows.append([])
            x = 8
        rows[-1].append((x, wide, label))
        x += wide + 4
    return rows


def _draw_chip(ax: Axes, x: float, y: float, wide: float, label: str, made: bool) -> None:
    """Draw a token; one that the last merge made has a thick edge."""
    from matplotlib.patches import Rectangle

    colour, thick = (palette.QUERY, 2.0) if made else (palette.INK, 0.8)
    ax.add_patch(Rectangle((x, y), wide, 23, facecolor="none", edgecolor=colour, linewidth=thick))
    face: dict[str, Any] = {"family": "monospace", "fontsize": 10, "parse_math": False}
    ax.text(x + wide / 2, y + 12, label, ha="center", va="center", **face)


def _shorten(text: str, most: int = 20) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
