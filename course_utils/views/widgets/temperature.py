"""What a temperature does to softmax: the same scores, divided by more or by less."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
import traitlets

from course_utils.attention.scaling import entropy
from course_utils.attention.shapes import whole
from course_utils.attention.tensors import softmax
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import as_labels, as_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RANGE = (0.01, 100.0)  # 1 stands in the middle of the slider, which is logarithmic
_MAX_KEYS = 12
_MAX_SCORE = 1000
_MEASURES = ("largest weight", "entropy H (nats)", "effective keys e^H")


class TemperatureExplorer(CourseWidget):
    """softmax(scores / temperature) as bars, with its largest weight, entropy H and effective number of keys e^H.

    scores: 2 to 12 numbers; a list, NumPy or torch. labels: one per score, by default key 1, key 2, …
    temperature: a number from 0.01 to 100. d_ks: whole numbers from 1 to 10000; for each a button sets the temperature
    √d_k, and one sets 1. `.scores` and `.temperature` can be read and set, and the page's controls
    set them; the number of scores stays. `.weights` are the weights shown.
    Raises ValueError for scores, labels, a temperature or a d_k that cannot be shown, TypeError for a d_k that is not
    whole.
    """

    in_gallery = InGallery(
        12, "Turn the temperature", question="How cold must it be before honey has 0.99 of the weight?"
    )

    _esm = script("temperature.js")
    _css = style("bars.css", "temperature.css")

    scores = traitlets.Any().tag(sync=True)
    temperature = traitlets.Any(1.0).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    _range = traitlets.Dict({"least": _RANGE[0], "largest": _RANGE[1], "most": _MAX_SCORE}).tag(sync=True)
    _jumps = traitlets.Any().tag(sync=True)  # [what a button says, the temperature it sets] each

    def __init__(self, scores, labels=None, temperature=1.0, d_ks=()):
        scores = _verify_scores(scores)
        labels = [f"key {i}" for i in range(1, len(scores) + 1)] if labels is None else as_labels("labels", labels)
        if len(labels) != len(scores):
            raise ValueError(f"there are {len(labels)} labels but {len(scores)} scores: one each")
        self.set_trait("labels", labels)
        jumps = _checked_jumps(d_ks)
        super().__init__(scores=scores, temperature=_checked_temperature(temperature), _jumps=jumps)

    @property
    def weights(self) -> np.ndarray:
        """softmax(scores / temperature): (m,) float64."""
        return _weights(self.scores, self.temperature).numpy()

    @traitlets.validate("scores")
    def _scores_fit(self, proposal):
        scores = _verify_scores(proposal.value)
        if len(scores) != len(self.labels):
            raise ValueError(f"scores holds {len(scores)} numbers but there are {len(self.labels)} keys: one each")
        return scores

    @traitlets.validate("temperature")
    def _temperature_fits(self, proposal):
        return _checked_temperature(proposal.value)

    def as_text(self) -> str:
        width = max(5, *map(len, self.labels))
        lines = [f"softmax at temperature {self.temperature:.3g}", f"{'key':{width}}    score  weight"]
        for label, score, weight in zip(self.labels, self.scores, self.weights, strict=True):
            lines.append(f"{label:{width}}  {round(score, 2) + 0.0:7.2f}  {weight:6.2f}")
        lines.append(f"{'':18}    now  at temperature 1  at most")
        for name, *values in zip(
            _MEASURES, self._measures(self.temperature), self._measures(1), self._most(), strict=True
        ):
            lines.append("{:18}  {:5.2f}  {:16.2f}  {:7.2f}".format(name, *values))
        return "\n".join(lines)

    def alt(self) -> str:
        sharpest = "; ".join(
            f"at {temperature:.3g} “{self.labels[int(weights.argmax())]}” has most, {weights.max():.2f}"
            for temperature in self._pictured()
            for weights in [_weights(self.scores, temperature)]
        )
        return f"Softmax weights of {len(self.labels)} keys at several temperatures: {sharpest}."

    def figure(self) -> Figure:
        temperatures = self._pictured()
        m = len(self.labels)
        left = 7 * max(map(len, self.labels)) + 20
        height = 26 * m + 84
        width = left + 150 * len(temperatures) + 20
        fig = new_figure(width, height)
        for ax, temperature in zip(fig.subplots(1, len(temperatures), sharey=True), temperatures, strict=True):
            weights = _weights(self.scores, temperature).numpy()
            bars = ax.barh(range(m), weights, color=self._colour(temperature), height=0.66)
            ax.bar_label(bars, [f"{weight:.2f}" for weight in weights], fontsize=10, padding=3)
            ax.set(xlim=(0, 1.28), ylim=(m - 0.5, -0.5), xticks=[0, 1])
            ax.set_yticks(range(m), self.labels, parse_math=False)
            weight = "bold" if temperature == self.temperature else "normal"
            ax.set_title(f"temperature {temperature:.3g}", fontweight=weight)
            keys = self._measures(temperature)[2]
            ax.set_xlabel(f"{keys:.2f} effective keys")
            ax.tick_params(length=0)
        fig.subplots_adjust(left=left / width, right=0.99, top=1 - 32 / height, bottom=46 / height, wspace=0.12)
        return fig

    def _pictured(self):
        """The temperature in use among a low one, a plain one and two high ones."""
        return sorted({0.25, 1.0, 4.0, 16.0, self.temperature})

    def _colour(self, temperature):
        """That of weights; beside the roots of some d_k, where it would say "divided by √d_k", only 1 has a colour."""
        if not self._jumps:
            return palette.WEIGHT
        return palette.WRONG if temperature == 1 else palette.INK

    def _measures(self, temperature):
        weights = _weights(self.scores, temperature)
        H = entropy(weights).item()
        return weights.max().item(), H, math.exp(H)

    def _most(self):
        m = len(self.labels)
        return 1, math.log(m), m


def _weights(scores, temperature):
    return softmax(torch.tensor(scores, dtype=torch.float64) / temperature)  # (m,)


def _verify_scores(scores):
    row = as_row("scores", scores, 2, _MAX_KEYS)
    if not np.isfinite(row).all():
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        raise ValueError(f"scores[{place}] is {row[place]}: every score has to be finite")
    if np.abs(row).max() > _MAX_SCORE:
        place = int(np.abs(row).argmax())
        raise ValueError(f"scores[{place}] is {row[place]:g}: give numbers from -{_MAX_SCORE} to {_MAX_SCORE}")
    return row.tolist()


def _checked_jumps(d_ks):
    """What the buttons say, and the temperature that each sets."""
    widths = [whole("d_k", d_k) for d_k in d_ks]
    for d_k in widths:
        if d_k > _RANGE[1] ** 2:
            raise ValueError(f"d_k is {d_k}: give a whole number from 1 to {_RANGE[1] ** 2:.0f}")
    roots = [(f"√{d_k} = {math.sqrt(d_k):.3g}", math.sqrt(d_k)) for d_k in widths]
    return [["1, no scale", 1.0], *map(list, roots)] if roots else []


def _checked_temperature(value):
    least, most = _RANGE
    try:
        temperature = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"temperature is {value!r}: give a number from {least:g} to {most:g}") from None
    if not least <= temperature <= most:
        hint = "; at 0 softmax would divide by 0, and towards 0 it becomes argmax" if temperature == 0 else ""
        raise ValueError(f"temperature is {temperature:g}: give a number from {least:g} to {most:g}{hint}")
    return temperature
