"""A memory of fixed size on which one writes, overwrites and reads: linear attention's sum, or the delta rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import Numbers, as_labels
from course_utils.views.shared.number_text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULES = {"add": "S + kᵀv", "delta": "S + kᵀ(v − kS)"}
_MAX_PAIRS = 6
_MAX_SIZE = 4
_MAX_WRITES = 40


class Read(NamedTuple):
    """What a pair's key reads. wanted is the value that its key was last written with, None before any."""

    read: tuple[float, ...]
    wanted: tuple[float, ...] | None
    error: float


class MemoryBoard(CourseWidget):
    """A state S (d_k, d_v) to which pairs of a key and a value are written, and what each key reads from it.

    keys (n, d_k) and values (n, d_v), 1 to 6 pairs of 1 to 4 numbers; lists, NumPy or torch. Two pairs may share a key:
    the one written last is the one to be read. words: what the pairs are called. `.rule` is "add" (linear
    attention) or "delta"; `.writes` lists the pairs written, by place. Both can be read and set, and buttons set them.
    `.state` and `.reads` follow. Raises ValueError for what does not fit.
    """

    in_gallery = InGallery(
        82, "Write into a fixed state", question="What does a second value for one key leave of the first?"
    )

    _esm = script("memory_board.js")
    _css = style("memory_board.css")

    rule = traitlets.Enum(list(RULES), "add").tag(sync=True)
    writes = traitlets.List(traitlets.Int()).tag(sync=True)
    words = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    _pairs = traitlets.Dict().tag(sync=True)
    _rules = traitlets.Dict(RULES).tag(sync=True)
    _most = traitlets.Int(_MAX_WRITES).tag(sync=True)

    def __init__(
        self,
        keys: Numbers,
        values: Numbers,
        words: Sequence[str] | None = None,
        writes: Sequence[int] = (),
        rule: str = "add",
    ):
        pairs = {"keys": _vectors("keys", keys), "values": _vectors("values", values)}
        n = len(pairs["keys"])
        if len(pairs["values"]) != n:
            raise ValueError(f"there are {n} keys and {len(pairs['values'])} values: one each")
        labels = [f"pair {i}" for i in range(n)] if words is None else as_labels("words", words)
        if len(labels) != n:
            raise ValueError(f"there are {len(labels)} words and {n} pairs: one each")
        self.set_trait("words", labels)
        super().__init__(_pairs=pairs, rule=rule, writes=list(writes))

    @property
    def state(self) -> np.ndarray:
        """S after all writes: (d_k, d_v) float64."""
        return np.array(state_of(self._pairs, self.writes, self.rule)["S"])

    @property
    def reads(self) -> list[Read]:
        """What each pair's key reads."""
        return [Read(*each) for each in state_of(self._pairs, self.writes, self.rule)["reads"]]

    @traitlets.validate("writes")
    def _pairs_exist(self, proposal):
        n = len(self._pairs["keys"])
        if unknown := [pair for pair in proposal.value if not 0 <= pair < n]:
            raise ValueError(f"writes has {unknown[0]}: the pairs are 0 to {n - 1}")
        if len(proposal.value) > _MAX_WRITES:
            raise ValueError(f"writes has {len(proposal.value)} entries: at most {_MAX_WRITES}")
        return proposal.value

    def describe(self) -> str:
        """Say what was written last and whether each key reads what it should."""
        if not self.writes:
            return "Nothing is written yet: every key reads zeros."
        wrong = [word for word, read in zip(self.words, self.reads, strict=True) if read.wanted and read.error > 0.005]
        judged = f"Not read back as written: {', '.join(wrong)}." if wrong else "Every key reads what it last wrote."
        return f"Written last: {self.words[self.writes[-1]]}. {judged}"

    def as_text(self) -> str:
        wide = max(4, *map(len, self.words))
        lines = [f"S ← {RULES[self.rule]}", "S = " + "; ".join(_row(row) for row in self.state)]
        for word, key, value, read in zip(
            self.words, self._pairs["keys"], self._pairs["values"], self.reads, strict=True
        ):
            error = "not written" if read.wanted is None else f"error {short(read.error)}"
            lines.append(f"{word:{wide}}  key {_row(key)}  value {_row(value)}  read {_row(read.read)}  {error}")
        return "\n".join([*lines, self.describe()])

    def alt(self) -> str:
        return f"A state of {self.state.size} numbers, written by S ← {RULES[self.rule]}. {self.describe()}"

    def figure(self) -> Figure:
        fig = new_figure(680, 80 + 34 * len(self.words))
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 680), ylim=(80 + 34 * len(self.words), 0))
        ax.axis("off")
        text: dict[str, Any] = {"va": "center", "parse_math": False}
        ax.text(10, 18, f"S ← {RULES[self.rule]}", fontweight="bold", **text)
        ax.text(10, 42, "S = " + "; ".join(_row(row) for row in self.state), **text)
        for i, (word, read) in enumerate(zip(self.words, self.reads, strict=True)):
            y = 76 + 34 * i
            wrong = read.wanted is not None and read.error > 0.005
            ax.text(10, y, word, fontweight="bold", **text)
            ax.text(150, y, f"key {_row(self._pairs['keys'][i])}", **text)
            ax.text(320, y, f"reads {_row(read.read)}", color=palette.WRONG if wrong else palette.INK, **text)
            says = "not written" if read.wanted is None else f"wanted {_row(read.wanted)}"
            ax.text(500, y, says, **text)
        return fig


# --- the arithmetic, which memory_board_state.js does too -------------------------------------------------------------


def state_of(pairs: dict[str, Any], writes: Sequence[int], rule: str) -> dict[str, Any]:
    """Return {"S": the state, "reads": [read, wanted, error] of each pair}."""
    keys, values = pairs["keys"], pairs["values"]
    d_k, d_v = len(keys[0]), len(values[0])
    S = [[0.0] * d_v for _ in range(d_k)]

    def read(key: Sequence[float]) -> list[float]:
        return [sum(key[i] * S[i][j] for i in range(d_k)) for j in range(d_v)]

    last: dict[tuple[float, ...], int] = {}
    for pair in writes:
        there = read(keys[pair]) if rule == "delta" else [0.0] * d_v
        for i in range(d_k):
            for j in range(d_v):
                S[i][j] += keys[pair][i] * (values[pair][j] - there[j])
        last[tuple(keys[pair])] = pair
    reads = []
    for key in keys:
        found = read(key)
        written = last.get(tuple(key))
        wanted = None if written is None else values[written]
        errors = [] if wanted is None else [abs(a - b) for a, b in zip(found, wanted, strict=True)]
        reads.append([tuple(found), None if wanted is None else tuple(wanted), max(errors, default=0.0)])
    return {"S": S, "reads": reads}


def _row(numbers: Sequence[float]) -> str:
    return f"({', '.join(short(number) for number in numbers)})"


def _vectors(name: str, given: Numbers) -> list[list[float]]:
    rows = np.asarray(given, dtype=float)
    if rows.ndim != 2 or not 1 <= len(rows) <= _MAX_PAIRS or not 1 <= rows.shape[1] <= _MAX_SIZE:
        raise ValueError(f"{name} is {rows.shape}: give 1 to {_MAX_PAIRS} rows of 1 to {_MAX_SIZE} numbers")
    if not np.isfinite(rows).all() or abs(rows).max() > 100:
        raise ValueError(f"{name} has a number that cannot be shown: give finite ones, at most 100 in size")
    return rows.tolist()
