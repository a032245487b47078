"""Attention from X to the output, played or step by step: every number can be asked where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, ramp_trait, script, style
from course_utils.views.shared.call_student_code import kind_of, name_of, to_lists
from course_utils.views.shared.coerce import as_labels, as_mask, as_matrix
from course_utils.views.widgets.stepper_story import tell_story

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.views.shared.coerce import Numbers

_MOST = 16  # rows or columns; more do not fit a page
_LARGEST = 1000  # of a number that is put in


class AttentionStepper(CourseWidget):
    """X → Q, K, V → scores → scaled → masked → weights → output, as an animation; click a cell to see its arithmetic.

    x: (n, d_model). w_q, w_k: (d_model, d_k). w_v: (d_model, d_v). tokens: n labels.
    mask: (n, n) booleans, True means may attend; without one there is no masked stage.
    attention: your own `attention(q, k, v, mask=None)` or `attention(q, k, v)`, returning (output, weights). The last
        two stages show what it returns and mark where that differs from the arithmetic. It is called with the kind of
        container that x is, then, if that fails, with arrays, lists and tensors.
    NumPy, torch or nested lists. `.stage` (a number; a name may be set), `.step` (0 is what is given; then one for each
    score and for each row of the other matrices) and `.cell` (matrix, row, column) or None can be read and set. A stage
    that is set is shown complete. The page, and `.edit`, change given numbers, and all that follows from them; `.reset`
    takes them back. `.problem` says what was wrong with your function, or is empty.
    Raises ValueError when shapes, labels or the mask do not fit.
    """

    in_gallery = InGallery(13, "Play attention", question="Which numbers made one weight, all the way back to $X$?")

    _esm = script("stepper.js")
    _css = style("player.css", "stepper.css")

    stage = traitlets.Union([traitlets.Int(), traitlets.Unicode()], default_value=0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    cell = traitlets.Any(None, allow_none=True).tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
    _numbers = traitlets.Dict().tag(sync=True)  # those given: X, W_Q, W_K and W_V, or Q, K and V
    _labels = traitlets.Dict().tag(sync=True)
    _theirs = traitlets.Any(None, allow_none=True).tag(sync=True)
    _ramp = ramp_trait()

    def __init__(self, x, w_q, w_k, w_v, tokens, mask=None, attention=None):
        inputs = {"X": as_matrix("x", x)}
        inputs |= {name: as_matrix(name.lower(), w) for name, w in (("W_Q", w_q), ("W_K", w_k), ("W_V", w_v))}
        d_model = inputs["X"].shape[1]
        for name in ("W_Q", "W_K", "W_V"):
            if inputs[name].shape[0] != d_model:
                raise ValueError(
                    f"{name.lower()} is {inputs[name].shape} but x is {inputs['X'].shape}: "
                    f"{name.lower()} needs {d_model} rows, one per column of x"
                )
        q, k, v = (inputs["X"] @ inputs[name] for name in ("W_Q", "W_K", "W_V"))
        self._open(q, k, v, tokens, tokens, mask, attention, kind_of(x), inputs, ("w_q", "w_k"))

    @classmethod
    def from_qkv(
        cls,
        q: Numbers,
        k: Numbers,
        v: Numbers,
        tokens: Iterable[Any],
        key_tokens: Iterable[Any] | None = None,
        mask: Any = None,
        attention: Callable[..., Any] | None = None,
    ) -> AttentionStepper:
        """The same from queries (n, d_k), keys (m, d_k) and values (m, d_v); tokens label queries, key_tokens keys.

        mask: (n, m) booleans. key_tokens is by default tokens.
        """
        stepper = cls.__new__(cls)
        matrices = as_matrix("q", q), as_matrix("k", k), as_matrix("v", v)
        stepper._open(*matrices, tokens, key_tokens, mask, attention, kind_of(q), {}, ("q", "k"))
        return stepper

    def _open(self, q, k, v, tokens, key_tokens, mask, attention, kind, inputs, names):
        tokens = as_labels("tokens", tokens)
        key_tokens = tokens if key_tokens is None else as_labels("key_tokens", key_tokens)
        mask = _fitting_mask(q, k, v, tokens, key_tokens, mask, inputs, names)
        self._attention = attention
        self._kind = kind
        self._mask = mask
        self._tokens = tokens, key_tokens
        numbers = {name: values.tolist() for name, values in (inputs or {"Q": q, "K": k, "V": v}).items()}
        self._start = numbers
        problem, theirs = self._work_out(numbers)
        labels = {
            "tokens": tokens,
            "key_tokens": key_tokens,
            "mask": None if mask is None else mask.tolist(),
            "start": numbers,
            "most": self._most(),
            "function": "" if attention is None else name_of(attention),
        }
        super().__init__(
            _numbers=numbers,
            _labels=labels,
            _theirs=theirs,
            problem=problem,
            stage=(weights := self.stage_names.index("weights")),
            step=self._last_step(weights),
            cell=("weights", min(2, len(q) - 1), min(2, len(k) - 1)),
        )
        self.observe(self._follow, "_numbers")

    def _work_out(self, numbers):
        """Work everything out; return the problem, and what the learner's function returned, as the page has it."""
        inputs = {name: np.array(values, dtype=np.float64) for name, values in numbers.items()}
        if "X" in inputs:
            q, k, v = (inputs["X"] @ inputs[name] for name in ("W_Q", "W_K", "W_V"))
        else:
            q, k, v = inputs.pop("Q"), inputs.pop("K"), inputs.pop("V")
        story = tell_story(q, k, v, *self._tokens, self._mask, self._attention, self._kind, inputs)
        self._stages = story.stages
        self._matrices = story.matrices
        theirs = None
        if story.theirs is not None:
            theirs = {"numbers": numbers, "output": to_lists(story.theirs[0]), "weights": to_lists(story.theirs[1])}
        return story.problem, theirs

    def _most(self):
        """The largest number that may be put in."""
        return float(max(_LARGEST, *(abs(part) for matrix in self._start.values() for row in matrix for part in row)))

    def edit(self, matrix: str, row: int, column: int, value: float) -> None:
        """Put a number in place of a given one, of X or W_Q, W_K, W_V, or of Q, K, V where these were given.

        Raises ValueError where there is no such number, or where the new one is not finite or too large.
        """
        if matrix not in self._numbers:
            raise ValueError(f"{matrix!r} is not given: numbers of {', '.join(self._numbers)} can be changed")
        numbers = {name: [list(line) for line in lines] for name, lines in self._numbers.items()}
        try:
            numbers[matrix][row][column] = value
        except IndexError:
            n, m = np.shape(numbers[matrix])
            raise ValueError(f"{matrix}[{row}, {column}] is not there: {matrix} is ({n}, {m})") from None
        self._numbers = numbers

    def reset(self) -> None:
        """Take all changes of given numbers back."""
        self._numbers = self._start

    @traitlets.validate("_numbers")
    def _numbers_fit(self, proposal):
        numbers = {name: as_matrix(name, values) for name, values in proposal.value.items()}
        if {name: values.shape for name, values in numbers.items()} != {
            name: np.shape(values) for name, values in self._start.items()
        }:
            raise ValueError("the given numbers keep their shapes")
        for name, values in numbers.items():
            if abs(values).max() > self._most():
                raise ValueError(f"{name} holds {values.flat[abs(values).argmax()]:g}: give up to {self._most():g}")
        return {name: values.tolist() for name, values in numbers.items()}

    def _follow(self, change):
        self.problem, self._theirs = self._work_out(change.new)

    @property
    def stage_names(self) -> list[str]:
        """The names of the stages, in order."""
        return [stage["name"] for stage in self._stages]

    @traitlets.validate("stage")
    def _stage_exists(self, proposal):
        stage = proposal.value
        names = self.stage_names
        if isinstance(stage, str) and stage in names:
            return names.index(stage)
        if isinstance(stage, str) or not 0 <= stage < len(names):
            raise ValueError(f"stage is {stage!r}: give a number from 0 to {len(names) - 1} or one of {names}")
        return stage

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        last = self._last_step(len(self._stages) - 1)
        if not 0 <= proposal.value <= last:
            raise ValueError(f"step is {proposal.value}: give a number from 0 to {last}")
        return proposal.value

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        if proposal.value is None:
            return None
        try:
            name, row, column = proposal.value
        except (TypeError, ValueError):
            raise ValueError(f"cell is {proposal.value!r}: give (matrix, row, column) or None") from None
        if name not in self._matrices:
            raise ValueError(f"cell names the matrix {name!r}: there are {', '.join(self._matrices)}")
        text = self._matrices[name]["text"]
        if not (0 <= row < len(text) and 0 <= column < len(text[0])):
            raise ValueError(f"cell is {name}[{row}, {column}] but {name} is ({len(text)}, {len(text[0])})")
        return (name, int(row), int(column))

    @traitlets.observe("cell")
    def _go_to_cell(self, change):
        if change.new is not None and change.new[0] not in self._matrix_names(self.stage):
            self.stage = next(index for index in range(len(self._stages)) if change.new[0] in self._matrix_names(index))

    @traitlets.observe("step")
    def _go_to_stage_of_step(self, change):
        self.stage = next(stage for stage in range(len(self._stages)) if change.new <= self._last_step(stage))

    @traitlets.observe("stage")
    def _complete_stage(self, change):
        if not self._last_step(self.stage - 1) < self.step <= self._last_step(self.stage):
            self.step = self._last_step(self.stage)
        if self.cell is not None and self.cell[0] not in self._matrix_names(self.stage):
            self.cell = None

    def _matrix_names(self, stage):
        return [item["matrix"] for item in self._stages[stage]["line"] if "matrix" in item]

    def _last_step(self, stage):
        """The step at which a stage is complete; −1 before the first."""
        return sum(each["steps"] for each in self._stages[: stage + 1]) - 1

    def as_text(self) -> str:
        lines = [f"attention, stage by stage: {' → '.join(self.stage_names)}"]
        if self.problem:
            lines.append(self.problem)
        for name in self._result_names():
            matrix = self._matrices[name]
            width = max(5, *(len(text) for row in matrix["text"] for text in row), *map(len, matrix["columns"]))
            side = max(map(len, matrix["rows"]))
            lines.append(f"{name} ({matrix['shape']})")
            lines.append(" " * (side + 2) + "".join(f"  {label:>{width}}" for label in matrix["columns"]))
            for label, row, marks in zip(matrix["rows"], matrix["text"], matrix["differs"], strict=True):
                numbers = "".join(
                    f"{'!' if marked else ' '} {text:>{width}}" for text, marked in zip(row, marks, strict=True)
                )
                lines.append(f"  {label:>{side}}{numbers}")
        if any(marked for name in self._result_names() for row in self._matrices[name]["differs"] for marked in row):
            lines.append("! where your function differs from the arithmetic")
        return "\n".join(lines)

    def alt(self) -> str:
        sizes = ", ".join(f"{name} {self._matrices[name]['shape']}" for name in self._result_names())
        differs = sum(marked for m in self._matrices.values() for row in m["differs"] for marked in row)
        remark = f" {differs} numbers from your function differ from the arithmetic and are marked." if differs else ""
        output = "; ".join(
            f"{label}: {', '.join(row)}"
            for label, row in zip(self._matrices["output"]["rows"], self._matrices["output"]["text"], strict=True)
        )
        return f"Attention stage by stage, side by side: {sizes}. Output, {output}.{remark}"

    def figure(self) -> Figure:
        return _draw([self._matrices[name] for name in self._result_names()])

    def _result_names(self):
        return [name for stage in self._stages for name in stage["results"]]


def _fitting_mask(q, k, v, tokens, key_tokens, mask, inputs, names):
    n, m = len(q), len(k)
    if q.shape[1] != k.shape[1]:
        raise ValueError(
            f"{names[0]} is {inputs.get('W_Q', q).shape} but {names[1]} is {inputs.get('W_K', k).shape}: "
            "both need the same number of columns, d_k"
        )
    if len(v) != m:
        raise ValueError(f"v is {v.shape} but k is {k.shape}: one row of v per row of k")
    if len(tokens) != n:
        raise ValueError(f"there are {len(tokens)} tokens but {'x' if inputs else 'q'} has {n} rows: one token per row")
    if len(key_tokens) != m:
        which = "key_tokens" if key_tokens is not tokens else "tokens for the keys (give key_tokens)"
        raise ValueError(f"there are {len(key_tokens)} {which} but k has {m} rows: one per row")
    longest = max(n, m, *(size for matrix in (q, v, *inputs.values()) for size in matrix.shape))
    if longest > _MOST:
        raise ValueError(f"a matrix has {longest} rows or columns: the stepper shows up to {_MOST}; take a slice")
    return None if mask is None else as_mask(mask, n, m)


def _draw(matrices):
    """All matrices as small tables, side by side, in lines of at most 900 CSS pixels."""
    cell_height = 24
    head = 44
    gap = 34
    blocks = []
    y = 10
    tallest = 0
    x: float = 16
    right: float = 0
    for matrix in matrices:
        side = 7.4 * max(map(len, matrix["rows"])) + 12
        widest = max(len(text) for row in [*matrix["text"], matrix["columns"]] for text in row)
        cell = max(34, 7.6 * widest + 10)
        width = side + cell * len(matrix["columns"])
        height = head + cell_height * len(matrix["rows"])
        if x > 16 and x + width > 900:
            x = 16
            y = y + tallest + 16
            tallest = 0
        blocks.append((matrix, x, y, side, cell))
        right = max(right, x + width)
        tallest = max(tallest, height)
        x += width + gap
    width, height = right + 16, y + tallest + 12
    fig = new_figure(width, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    for matrix, x, y, side, cell in blocks:
        _draw_matrix(ax, matrix, x, y, side, cell, cell_height, head)
    return fig


def _draw_matrix(ax, matrix, x, y, side, cell, cell_height, head):
    from matplotlib.patches import Rectangle

    colour = palette.ROLES.get(matrix["role"], palette.INK)
    across = x + side
    ax.text(across, y + 12, matrix["name"], fontweight="bold", va="center")
    shape = f"({matrix['shape']})"
    ax.text(
        across + cell * len(matrix["columns"]),
        y + 12,
        shape,
        fontsize=10,
        va="center",
        ha="right",
    )
    for c, label in enumerate(matrix["columns"]):
        ax.text(across + (c + 0.5) * cell, y + 32, label, fontsize=10, ha="center", va="center")
    for r, label in enumerate(matrix["rows"]):
        middle = y + head + (r + 0.5) * cell_height
        ax.text(across - 6, middle, label, fontsize=10, ha="right", va="center")
        for c, text in enumerate(matrix["text"][r]):
            corner = (across + c * cell, y + head + r * cell_height)
            level = matrix["levels"][r][c] if matrix["levels"] else None
            fill = "none" if level is None else tuple(part / 255 for part in palette.ramp()[level])
            ax.add_patch(Rectangle(corner, cell, cell_height, facecolor=fill, edgecolor=palette.INK, linewidth=0.5))
            ink = palette.INK if level is None else palette.ink(level)
            ax.text(corner[0] + cell / 2, middle, text, fontsize=10, color=ink, ha="center", va="center")
            if matrix["differs"][r][c]:
                box = Rectangle((corner[0] + 1.5, corner[1] + 1.5), cell - 3, cell_height - 3, fill=False)
                box.set(edgecolor=palette.WRONG, linewidth=1.6, linestyle=(0, (3, 2)))
                ax.add_patch(box)
    edge = y + head - 2
    ax.plot(
        [across, across + cell * len(matrix["columns"])], [edge, edge], color=colour, linewidth=2, solid_capstyle="butt"
    )
