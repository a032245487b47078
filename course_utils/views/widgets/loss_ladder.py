"""A recorded training loss beside what counting alone reaches, and what the model wrote on its way down."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.attention.shapes import whole
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import Numbers, as_matrix, as_row
from course_utils.views.shared.number_text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FLOORS = ("ln V", "the unigram floor", "the bigram floor")
_MOST_LOSSES = 2000
_SAMPLES = (4, 8)
_LONGEST = 600  # characters of a text
_WIDE = 680


class LossLadder(CourseWidget):
    """Training loss by step, with lines at ln V and the floors by counting, and a text written at each of some steps.

    losses: (step, loss) for each point of the curve, 2 to 2,000, in nats per character, at rising steps. floors: ln V,
    the loss of the unigrams and that of the bigrams, falling. samples: (step, loss, text), 4 to 8, at rising steps
    within those of the curve; a text has at most 600 characters. `.rung` is the place of the sample shown; it can be
    read and set, and the page's slider sets it. Raises ValueError or TypeError for what does not fit.
    """

    in_gallery = InGallery(
        92, "Read what a loss writes", summary="Move along a training: what does a model write at each loss?"
    )

    _esm = script("loss_ladder.js")
    _css = style("bars.css", "player.css", "loss_ladder.css")

    rung = traitlets.Int(0).tag(sync=True)
    _losses: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _floors: traitlets.List[Any] = traitlets.List().tag(sync=True)  # [name, loss] each
    _samples: traitlets.List[Any] = traitlets.List().tag(sync=True)  # [step, loss, text] each

    def __init__(self, losses: Numbers, floors: Numbers, samples: Sequence[tuple[int, float, str]], rung: int = 0):
        curve = _curve(losses)
        named = [[name, loss] for name, loss in zip(_FLOORS, _falling(floors), strict=True)]
        super().__init__(_losses=curve, _floors=named, _samples=[*map(list, _rungs(samples, curve))])
        self.rung = rung

    @traitlets.validate("rung")
    def _rung_exists(self, proposal):
        if not 0 <= proposal.value < len(self._samples):
            raise ValueError(f"rung is {proposal.value}: give 0 to {len(self._samples) - 1}")
        return proposal.value

    def describe(self) -> str:
        """Say where the loss of the sample shown lies among the floors."""
        step, loss, _ = self._samples[self.rung]
        return message_of(step, loss, self._floors)

    def as_text(self) -> str:
        floors = ", ".join(f"{name} {short(loss)}" for name, loss in self._floors)
        lines = [f"training loss, nats per character; {floors}"]
        for step, loss, text in self._samples:
            lines += [f"step {step}, loss {short(loss)}", *(f"    {line}" for line in text.splitlines())]
        return "\n".join([*lines, self.describe()])

    def alt(self) -> str:
        (first, high), (last, low) = self._losses[0], self._losses[-1]
        floors = ", ".join(f"{name} {short(loss)}" for name, loss in self._floors)
        return (
            f"Training loss in nats per character from {short(high)} at step {first:.0f} to {short(low)} at step "
            f"{last:.0f}, with lines at {floors}. {self.describe()} There the model wrote: "
            f"{' '.join(self._samples[self.rung][2].split())}"
        )

    def figure(self) -> Figure:
        texts = [textwrap.shorten(text, 84, placeholder=" …") for _, _, text in self._samples]
        height = 300 + 24 * len(texts)
        fig = new_figure(_WIDE, height)
        ax = fig.add_axes((52 / _WIDE, 1 - 244 / height, (_WIDE - 68) / _WIDE, 226 / height))
        ax.plot(*zip(*self._losses, strict=True), color=palette.INK, linewidth=2)
        for name, loss in self._floors:
            ax.axhline(loss, color=palette.INK, linestyle="--", linewidth=1)
            label = f"{name.removeprefix('the ')}  {short(loss)}"
            ax.text(1, loss, label, ha="right", va="bottom", transform=ax.get_yaxis_transform())
        for place, (step, loss, _) in enumerate(self._samples):
            ax.plot(step, loss, "o", color=palette.QUERY, markersize=9 if place == self.rung else 5)
        losses = [loss for _, loss in [*self._losses, *self._floors]]
        ax.set(xlim=(0, self._losses[-1][0] / 0.97), ylim=(np.floor(min(losses)), np.ceil(max(losses)) + 0.2))
        ax.set(xlabel="training step", ylabel="nats per character")
        below = fig.add_axes((0, 0, 1, (height - 296) / height))
        below.set(xlim=(0, _WIDE), ylim=(height - 296, 0))
        below.axis("off")
        for place, ((_, loss, _), text) in enumerate(zip(self._samples, texts, strict=True)):
            chosen = {"color": palette.QUERY, "fontweight": "bold"} if place == self.rung else {}
            look: dict[str, Any] = {"va": "center", "parse_math": False, "fontsize": 10.5, **chosen}
            below.text(8, 12 + 24 * place, f"loss {short(loss)}", **look)
            below.text(88, 12 + 24 * place, text, **look)
        return fig


def message_of(step: int, loss: float, floors: Sequence[tuple[str, float]]) -> str:
    """Say between which floors a loss lies; loss_ladder.js says the same."""
    above = [f"{name} ({short(floor)})" for name, floor in floors if loss < floor]
    below = [f"{name} ({short(floor)})" for name, floor in floors if loss >= floor]
    places = [*(f"below {name}" for name in above[-1:]), *(f"above {name}" for name in below[:1])]
    return f"Step {step}: loss {short(loss)} nats per character, {' and '.join(places)}."


# --- what fits --------------------------------------------------------------------------------------------------------


def _curve(losses: Numbers) -> list[list[float]]:
    points = as_matrix("losses", losses)
    if points.shape[1] != 2 or not 2 <= len(points) <= _MOST_LOSSES:
        raise ValueError(f"losses is {points.shape}: give (step, loss) for 2 to {_MOST_LOSSES} points")
    if (np.diff(points[:, 0]) <= 0).any() or points.min() < 0:
        raise ValueError("losses: steps have to rise from one point to the next, and no number may be negative")
    return points.tolist()


def _falling(floors: Numbers) -> list[float]:
    row = as_row("floors", floors, len(_FLOORS), len(_FLOORS))
    if not np.isfinite(row).all() or (np.diff(row) > 0).any() or row[-1] < 0:
        raise ValueError(f"floors is {row.tolist()}: give ln V, the unigram and the bigram floor, which fall")
    return row.tolist()


def _rungs(samples: Sequence[tuple[int, float, str]], curve: list[list[float]]) -> list[tuple[int, float, str]]:
    least, most = _SAMPLES
    if not least <= len(samples) <= most:
        raise ValueError(f"there are {len(samples)} samples: give {least} to {most}")
    rungs = [(whole("step", step, least=0), float(loss), str(text)) for step, loss, text in samples]
    steps = [step for step, _, _ in rungs]
    if steps != sorted(set(steps)) or not curve[0][0] <= steps[0] <= steps[-1] <= curve[-1][0]:
        raise ValueError(f"samples are of steps {steps}: they have to rise, within the steps of the losses")
    for step, loss, text in rungs:
        if not 0 <= loss < np.inf:
            raise ValueError(f"the sample of step {step} has a loss of {loss}: give nats per character")
        if len(text) > _LONGEST:
            raise ValueError(f"the text of step {step} has {len(text)} characters: at most {_LONGEST} fit")
    return rungs
