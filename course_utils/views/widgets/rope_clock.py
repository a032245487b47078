"""RoPE as clocks: each pair of a head is a clock, with one hand for the query and one for the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import traitlets
from matplotlib.patches import Circle, Wedge

from course_utils.attention.rotary import frequencies
from course_utils.attention.shapes import whole
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.number_text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LAST = 200  # position
_BASES = (10, 100, 10_000)
_CHART = 64  # distances in the chart


class RopeClock(CourseWidget):
    """The pairs of a head of d_head numbers as clocks: how far RoPE has rotated a query and a key, and their score.

    query and key are positions, whole numbers from 0 to 200; base is 10, 100 or 10,000; d_head is 4, 6 or 8. Query and
    key are (1, 0) in each pair, so that the score is the sum of cos((i − j)·θ_p) over the pairs. `.query`, `.key` and
    `.base` can be read and set. `.angles` (pairs, 2) are those of the two hands, in radians, and `.score` is the score.
    Raises ValueError or TypeError for what does not fit.
    """

    in_gallery = InGallery(
        81, "Rotate a query and a key", question="What changes when both move, and what changes when only one does?"
    )

    _esm = script("rope_clock.js")
    _css = style("bars.css", "rope_clock.css")

    query = traitlets.Int(9).tag(sync=True)
    key = traitlets.Int(7).tag(sync=True)
    base = traitlets.Any(10_000).tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)

    def __init__(self, query: int = 9, key: int = 7, base: int = 10_000, d_head: int = 8):
        if whole("d_head", d_head) not in (4, 6, 8):
            raise ValueError(f"d_head is {d_head}: give 4, 6 or 8")
        layout = {"last": _LAST, "bases": list(_BASES), "pairs": d_head // 2, "chart": _CHART}
        places = {"query": whole("query", query, least=0), "key": whole("key", key, least=0)}
        super().__init__(**places, base=base, _layout=layout)

    @property
    def speeds(self) -> np.ndarray:
        """Radians per position of each pair: (pairs,) float64."""
        return frequencies(2 * self._layout["pairs"], self.base).numpy()

    @property
    def angles(self) -> np.ndarray:
        """How far each pair of the query and of the key is rotated, in radians: (pairs, 2) float64."""
        return self.speeds[:, None] * np.array([self.query, self.key])

    @property
    def score(self) -> float:
        """The dot product of the rotated query and key, which are 1, 0 in each pair before."""
        return self._score_at(self.query - self.key)

    @traitlets.validate("query", "key")
    def _position_fits(self, proposal):
        if not 0 <= proposal.value <= _LAST:
            raise ValueError(f"{proposal.trait.name} is {proposal.value}: give a position from 0 to {_LAST}")
        return proposal.value

    @traitlets.validate("base")
    def _base_fits(self, proposal):
        if proposal.value not in _BASES:
            raise ValueError(f"base is {proposal.value!r}: give one of {', '.join(f'{base:,}' for base in _BASES)}")
        return int(proposal.value)

    def as_text(self) -> str:
        lines = [f"RoPE at base {self.base:,}, query at {self.query}, key at {self.key}, {self._apart()}"]
        lines.append("pair  speed (°)  query (°)  key (°)  cos of the difference")
        for p, (speed, (of_query, of_key)) in enumerate(zip(self.speeds, self.angles, strict=True)):
            degrees = [_in_degrees(of_query), _in_degrees(of_key)]
            cos = short(math.cos(of_query - of_key))
            lines.append(f"{p:4}  {math.degrees(speed):9.2f}  {degrees[0]:9}  {degrees[1]:7}  {cos:>21}")
        return "\n".join([*lines, f"score, their sum: {short(self.score)}"])

    def alt(self) -> str:
        hands = "; ".join(
            f"pair {p}: query at {_in_degrees(of_query)}°, key at {_in_degrees(of_key)}°"
            for p, (of_query, of_key) in enumerate(self.angles)
        )
        return f"{len(self.speeds)} clocks with two hands, {self._apart()}. {hands}. The score is {short(self.score)}."

    def figure(self) -> Figure:
        pairs = len(self.speeds)
        fig = new_figure(150 * pairs, 320)
        for p, ax in enumerate(np.atleast_1d(fig.subplots(1, pairs))):
            ax.set_position((p / pairs, 0.46, 1 / pairs, 0.46))
            of_query, of_key = self.angles[p]
            first, second = sorted((math.degrees(of_key), math.degrees(of_key) + _difference(of_query, of_key)))
            ax.add_patch(Wedge((0, 0), 0.6, first, second, facecolor=palette.WEIGHT, alpha=0.3))
            ax.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=palette.INK, linewidth=1))
            for angle, colour, width in ((of_key, palette.KEY, 5), (of_query, palette.QUERY, 2.6)):
                ax.plot([0, 0.94 * math.cos(angle)], [0, 0.94 * math.sin(angle)], color=colour, linewidth=width)
            ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            ax.set_title(f"pair {p}: {math.degrees(self.speeds[p]):.3g}°")
        ax = fig.add_axes((0.1, 0.17, 0.87, 0.24))
        ax.plot(range(_CHART + 1), [self._score_at(apart) for apart in range(_CHART + 1)], color=palette.INK)
        if abs(self.query - self.key) <= _CHART:
            ax.plot([abs(self.query - self.key)], [self.score], "o", color=palette.WEIGHT)
        ax.set(xlabel="distance", ylabel="score", xlim=(0, _CHART))
        return fig

    def _score_at(self, apart: int) -> float:
        return float(np.cos(apart * self.speeds).sum())

    def _apart(self) -> str:
        return f"{abs(self.query - self.key)} apart"


def _in_degrees(angle: float) -> int:
    """A whole number of degrees from 0 to 359."""
    return math.floor(math.degrees(angle) + 0.5 + 1e-9) % 360


def _difference(of_query: float, of_key: float) -> float:
    """Degrees from the key's hand to the query's, the short way: above −180 and at most 180."""
    turn = math.degrees(of_query - of_key) % 360
    return turn - 360 if turn > 180 else turn
