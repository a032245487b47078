"""How the width of queries and keys hardens softmax, and what 1/√d_k changes about it."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import traitlets

from course_utils.attention.scaling import entropy, jacobian_trace, mean_estimate
from course_utils.attention.shapes import whole
from course_utils.attention.tensors import softmax
from course_utils.views import palette
from course_utils.views.drawing import typeset
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = [2**power for power in range(13)]  # the positions of the slider for d_k
_SIZES = [2, 4, 8, 16, 32]  # and of the one for the number of keys
_AHEAD = 8  # seeds whose draws are sent at a time, so that drawing again needs no kernel
_BLOCK = 8192  # draws at a time when means are measured
_STORE = Path(__file__).parents[2] / "data" / "saturation.json"
_LAST_SEED = 999_999
_MEASURES = ("largest weight", "entropy (nats)", "trace of Jacobian")


class Means(NamedTuple):
    """Means over many draws: the largest weight, the entropy (nats), the trace of the softmax Jacobian."""

    largest: float
    entropy: float
    trace: float


class _PowerOfTwo(traitlets.TraitType):
    """A whole number out of a list of powers of two."""

    def __init__(self, allowed, default, instead):
        super().__init__(default)
        self.allowed = allowed
        self.instead = instead

    def validate(self, obj, value):
        number = whole(str(self.name), value)
        if number not in self.allowed:
            least, most = self.allowed[0], self.allowed[-1]
            raise ValueError(f"{self.name} is {number}: give a power of two from {least} to {most}{self.instead}")
        return number


class _Seed(traitlets.TraitType):
    def validate(self, obj, value):
        number = whole(str(self.name), value, least=0)
        if number > _LAST_SEED:
            raise ValueError(f"{self.name} is {number}: give a whole number from 0 to {_LAST_SEED}")
        return number


class SaturationExplorer(CourseWidget):
    """One query against n_keys keys, all entries N(0, 1): the softmax of its scores, and how sharp it is.

    d_k: numbers in the query and in each key, a power of two from 1 to 4096. n_keys: a power of two from 2 to 32.
    scaled: whether the scores are divided by √d_k. seed: which draw, 0 to 999999. All can be read and set, and the
    page's controls set them. Beside this draw stand the `.means` over many draws, with the scale and without, so that
    one lucky draw misleads nobody: largest weight, entropy in nats (at most log n_keys), trace of the softmax Jacobian.
    trace: whether the page, the picture and the text tell of the last of these. compare: whether they tell of the
    scale, which is off without that.
    A longer query starts with the numbers of the shorter one, and more keys start with the fewer ones.
    Raises ValueError or TypeError for a setting that is not there.
    """

    in_gallery = InGallery(
        21,
        "Make vectors longer",
        question="From which $d_k$ on does one key take nearly everything, and what changes that?",
    )

    _esm = script("saturation.js")
    _css = style("bars.css", "saturation.css")

    d_k = _PowerOfTwo(_STEPS, 64, "; course_utils.attention.scaling.saturation takes any d_k").tag(sync=True)
    n_keys = _PowerOfTwo(_SIZES, 8, "; course_utils.attention.scaling.saturation takes any number").tag(sync=True)
    scaled = traitlets.Bool(False).tag(sync=True)
    seed = _Seed(0).tag(sync=True)
    trace = traitlets.Bool(False).tag(sync=True)
    compare = traitlets.Bool(True).tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _mean_table = traitlets.Bytes().tag(sync=True)
    _draws = traitlets.Dict().tag(sync=True)

    def __init__(self, d_k=64, n_keys=8, scaled=False, seed=0, trace=False, compare=True):
        if scaled and not compare:
            raise ValueError("scaled=True shows the scale, and compare=False does not: leave one of them out")
        super().__init__(
            d_k=d_k,
            n_keys=n_keys,
            scaled=scaled,
            seed=seed,
            trace=trace,
            compare=compare,
            _layout={"steps": _STEPS, "sizes": _SIZES, "note": _note()},
            _mean_table=_means().astype("<f8").tobytes(),
        )

    @property
    def scores(self) -> np.ndarray:
        """The scores of this draw, divided by √d_k where the scale is on: (n_keys,) float64."""
        scores = _draw(self.seed)[_STEPS.index(self.d_k), : self.n_keys]
        return scores / math.sqrt(self.d_k) if self.scaled else scores.copy()

    @property
    def weights(self) -> np.ndarray:
        """The softmax of `.scores`: (n_keys,) float64."""
        return softmax(torch.from_numpy(self.scores)).numpy()

    @property
    def means(self) -> Any:
        """What many draws give at this d_k and number of keys, as Means: {"no scale": …, "scaled": …}."""
        both = _means()[:, _SIZES.index(self.n_keys), _STEPS.index(self.d_k)]
        return {name: Means(*row.tolist()) for name, row in zip(("no scale", "scaled"), both, strict=True)}

    @traitlets.observe("seed")
    def _send_draws(self, change):
        first = self.seed // _AHEAD * _AHEAD
        if self._draws.get("first") != first:
            scores = np.stack([_draw(seed) for seed in range(first, first + _AHEAD)])
            self._draws = {"first": first, "count": _AHEAD, "scores": scores.astype("<f8").tobytes()}

    def as_text(self) -> str:
        scale = "scores divided by √d_k, " if self.scaled else "scores not scaled, " if self.compare else ""
        lines = [f"saturation explorer: d_k = {self.d_k}, {self.n_keys} keys, {scale}seed {self.seed}"]
        for start in range(0, self.n_keys, 8):
            row = " ".join(f"{weight:.2f}" for weight in self.weights[start : start + 8])
            lines.append(f"{'weights' if start == 0 else '':17}  {row}")
        means = "mean, no scale  mean, scaled" if self.compare else "mean of many draws"
        lines.append(f"{'':17}  this draw  {means}  at most")
        for name, (draw, raw, scaled, most) in zip(_MEASURES, self._readouts(), strict=False):
            both = f"{raw:14.2f}  {scaled:12.2f}" if self.compare else f"{raw:18.2f}"
            lines.append(f"{name:17}  {draw:9.2f}  {both}  {most:7.2f}")
        return "\n".join([*lines, _note()])

    def alt(self) -> str:
        (draw, raw, scaled, _), *_ = self._readouts()
        count = "two"
        falling = "entropy falls"
        if self.trace:
            count = "three"
            falling = "entropy and the trace of the Jacobian fall"
        if not self.compare:
            return (
                f"Softmax weights of {self.n_keys} keys at d_k = {self.d_k}, one draw: the largest is {draw:.2f}. "
                f"Beside it {count} measures over d_k from 1 to 4096, means over many draws. The largest weight rises "
                f"towards 1 while {falling} towards 0. At d_k = {self.d_k} the mean largest weight is {raw:.2f}."
            )
        on = "with" if self.scaled else "without"
        return (
            f"Softmax weights of {self.n_keys} keys at d_k = {self.d_k}, one draw {on} the scale: the largest is "
            f"{draw:.2f}. Beside it {count} measures over d_k from 1 to 4096, means over many draws. Without the scale "
            f"the largest weight rises towards 1 while {falling} towards 0; with it the {count} stay nearly level. At "
            f"d_k = {self.d_k} the mean largest weight is {raw:.2f} without the scale and {scaled:.2f} with it."
        )

    def figure(self) -> Figure:
        count = len(self._readouts())
        fig = new_figure(860, 300)
        bars, *axes = fig.subplots(1, 1 + count, width_ratios=(2.9, *[3 / count] * count))
        self._draw_bars(bars)
        size = _SIZES.index(self.n_keys)
        step = _STEPS.index(self.d_k)
        for ax, name, (draw, *_, most), measure in zip(axes, _MEASURES, self._readouts(), range(3), strict=False):
            both = ((0, palette.WRONG, "no scale" if self.compare else "mean"), (1, palette.WEIGHT, "scaled"))
            for on, colour, label in both if self.compare else both[:1]:
                curve = _means()[on, size, :, measure]
                ax.plot(
                    _STEPS,
                    curve,
                    color=colour,
                    linestyle="-" if on else "--",
                    marker="^" if on else "v",
                    markersize=4,
                    label=label,
                )
            ax.plot(self.d_k, draw, "o", color=palette.INK, markersize=7, label="this draw")
            ax.axvline(_STEPS[step], color=palette.INK, linewidth=1, zorder=0)
            ax.set_xscale("log", base=2)
            ax.set_xticks([1, 64, 4096], ["1", "64", "4096"])
            ax.minorticks_off()
            ax.set(ylim=(0, most * 1.04), xlabel="$d_k$")
            ax.set_title(name)
        fig.legend(*axes[0].get_legend_handles_labels(), loc="lower right", ncols=3, borderaxespad=0)
        fig.subplots_adjust(left=0.045, right=0.985, top=0.9, bottom=0.29, wspace=0.3)
        return fig

    def _draw_bars(self, ax):
        names = range(1, self.n_keys + 1)
        weights = self.weights
        drawn = ax.bar(names, weights, color=palette.WEIGHT if self.scaled else palette.WRONG, width=0.72)
        if self.n_keys <= 8:
            ax.bar_label(drawn, [f"{weight:.2f}" for weight in weights], fontsize=10, padding=2)
            ax.set_xticks(names)
        scale = ", scaled" if self.scaled else ", no scale" if self.compare else ""
        ax.set(ylim=(0, 1.09), xlabel="key", yticks=[0, 0.5, 1])
        ax.set_title(typeset(f"weights of one draw, d_k = {self.d_k}{scale}"))

    def _readouts(self):
        """Per measure shown: this draw, the mean without the scale, the mean with it, the most there can be."""
        weights = torch.from_numpy(self.weights)
        here = weights.max().item(), entropy(weights).item(), jacobian_trace(weights).item()
        most = 1, math.log(self.n_keys), 1 - 1 / self.n_keys
        rows = [list(row) for row in zip(here, *self.means.values(), most, strict=True)]
        return rows if self.trace else rows[:2]


@functools.lru_cache(maxsize=4 * _AHEAD)
def _draw(seed):
    """The scores of one query with 32 keys at every d_k: (13, 32) float64."""
    rng = np.random.default_rng(seed)
    q = rng.standard_normal(_STEPS[-1])
    k = rng.standard_normal((_SIZES[-1], _STEPS[-1]))
    parts = np.add.reduceat(q * k, [0, *_STEPS[:-1]], axis=1)  # the terms up to 1, from there to 2, to 4, …
    return np.cumsum(parts, axis=1).T


@functools.cache
def _means():
    """Mean largest weight, entropy and trace, (2, sizes, steps, 3): first without, then with the scale."""
    return np.array(_stored_means()["means"])


def _note():
    stored = _stored_means()
    return f"Means over {stored['samples']:,} draws; their standard errors are at most {stored['worst_error']:.3f}."


# --- the means, measured beforehand; the main of this module measures them anew, in minutes ---------


@functools.cache
def _stored_means():
    return json.loads(_STORE.read_text(encoding="utf-8"))


def measure_means(samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Means and their standard errors, both (2, sizes, steps, 3), over samples of a query, in blocks of 8192.

    Given q, its scores with normal keys are independent normals of variance |q|², and |q|² has the chi-squared
    distribution with d_k degrees of freedom. So only |q| and 32 normals are drawn, instead of 33 vectors.
    With fewer than 32 keys, the 32 normals serve several softmaxes, and their average is one sample.
    """
    rng = np.random.default_rng(seed)
    blocks = math.ceil(samples / _BLOCK)
    values, errors = np.stack([_estimates(rng) for _ in range(blocks)], axis=1)
    return values.mean(axis=0), np.sqrt((errors**2).sum(axis=0)) / blocks


def _estimates(rng):
    """One block's means and standard errors: (2, 2, sizes, steps, 3), values and errors first."""
    normals = torch.from_numpy(rng.standard_normal((_BLOCK, _SIZES[-1])))
    estimates = np.empty((2, 2, len(_SIZES), len(_STEPS), 3))
    for step, d_k in enumerate(_STEPS):
        norms = torch.from_numpy(np.sqrt(rng.chisquare(d_k, (_BLOCK, 1))))
        for on, scale in enumerate((1.0, 1 / math.sqrt(d_k))):
            scores = scale * norms * normals  # (block, 32)
            for size, n_keys in enumerate(_SIZES):
                weights = softmax(scores.view(_BLOCK, -1, n_keys))  # (block, 32 / n_keys, n_keys)
                measures = weights.amax(dim=-1), entropy(weights), jacobian_trace(weights)
                estimates[:, on, size, step] = np.transpose([mean_estimate(each.mean(dim=1)) for each in measures])
    return estimates


def _store(samples=2**20):
    means, errors = measure_means(samples)
    stored = {
        "command": "python -m course_utils.views.widgets.saturation",
        "samples": samples,
        "worst_error": math.ceil(errors.max() * 1000) / 1000,
        "means": means.round(5).tolist(),
    }
    _STORE.write_text(json.dumps(stored).replace("]], [[", "]],\n[[") + "\n", encoding="utf-8")


if __name__ == "__main__":
    _store()
