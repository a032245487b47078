"""Heads of a live model to switch off, and what that does to the loss of each token."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import as_head, as_labels
from course_utils.views.shared.heads import table_of_heads
from course_utils.views.shared.number_text import short
from course_utils.views.silence import hide_prints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_TOKENS = 96
_MAX_HEADS = 16
_ALONE = 64  # with more heads than this, switching off each alone is too slow to be a button
_ALL_SETS = 8  # up to so many heads a page without a kernel is given every set of them
_PROBLEM = 180  # characters of a message from the model


class HeadAblation(CourseWidget):
    """Heads of a model to switch off: the model runs again each time, and the loss of each token shows.

    model: a `Decoder`, or another module with `.blocks`, `.n_heads` and `model(tokens, head_masks=…)` that returns
        logits (B, T, vocabulary). It runs in Python on each change, without gradients, and is not changed. A head that
        is off has its output multiplied by 0.
    tokens: (T,) or (1, T) integers, 2 to 96 of them. tokens_as: T labels for them; by default their numbers.
    from_token: the mean loss counts the tokens from this place on; by default 1, since token 0 is never predicted.
    `.off` lists the heads that are off, (layer, head); set it to a new list. `.loss` is the mean loss in nats with
    them off, `.whole_loss` that of the whole model. `.losses` and `.whole_losses` (T − 1,) are those of the tokens from
    1 on. `.rises` is None until the page's button "each alone" or `.each_alone()` has measured it. `.problem` says
    what the model raised, and then `.loss` is NaN.
    `.keep()`, or the page's button "keep as A", keeps the present setting: from then on the difference of the loss from
    it is shown, and its losses are marked beside the present ones. `.kept` is the list of heads that were off in it, or
    None; `.forget()` drops it.
    A page without a kernel is given the losses computed before: of every set of heads where there are at most 8, else
    of each head and each two, and of all off.
    Raises ValueError when tokens, labels or from_token do not fit, or when the model has no heads to switch.
    """

    in_gallery = InGallery(43, "Switch heads off", question="Does a head cost the same whichever others are on?")

    _esm = script("ablation.js")
    _css = style("heads.css", "ablation.css")

    off: traitlets.List[Any] = traitlets.List(help="the heads that are off, (layer, head)").tag(sync=True)
    title = traitlets.Unicode("switch heads off").tag(sync=True)
    _tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _result = traitlets.Dict().tag(sync=True)
    _rises: traitlets.List[Any] = traitlets.List(default_value=None, allow_none=True).tag(sync=True)
    _kept: Any = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)  # a result that was kept, as A
    _asked = traitlets.Int(0).tag(sync=True)  # clicks on "each alone"
    _answered = traitlets.Int(0).tag(sync=True)  # those that the rises answer

    def __init__(self, model, tokens, from_token=None, tokens_as=None, title="switch heads off"):
        self._shape = _checked_model(model)
        self._model = model
        self._ids = _checked_tokens(tokens)
        heads = list(np.ndindex(*self._shape))
        T = self._ids.shape[1]
        labels = as_labels("tokens_as", self._ids[0].tolist() if tokens_as is None else tokens_as)
        if len(labels) != T:
            raise ValueError(f"tokens_as has {len(labels)} labels but there are {T} tokens: give one for each")
        self._from = _checked_from(from_token, T)
        super().__init__(
            title=str(title),
            _tokens=labels,
            _layout={
                "layers": self._shape[0],
                "heads": self._shape[1],
                "from": self._from,
                "alone": math.prod(self._shape) <= _ALONE,
                "vocabulary": _vocabulary(model),
            },
        )
        settings = [[], heads, *([head] for head in heads[:_ALONE])]
        self._top = _axis_end(
            math.ceil(math.log(max(2, _vocabulary(model)))), *(self._run(off).losses for off in settings)
        )
        self._measure()

    @property
    def loss(self) -> float:
        """Mean loss from from_token on with the heads in `.off` off, nats; NaN where the model failed."""
        return self._mean(self._losses)

    @property
    def whole_loss(self) -> float:
        """The same with every head on."""
        return self._mean(self._whole)

    @property
    def losses(self) -> np.ndarray:
        """Loss of each token from 1 on, (T − 1,) float64, nats; a copy."""
        return self._losses.copy()

    @property
    def whole_losses(self) -> np.ndarray:
        """The same with every head on."""
        return self._whole.copy()

    @property
    def rises(self) -> np.ndarray | None:
        """How much the mean loss rises when each head alone is off, (n_layers, h) float64, or None."""
        return None if self._rises is None else np.array(self._measured_rises).reshape(self._shape)

    def each_alone(self) -> np.ndarray | None:
        """Switches each head off alone, one after another, and returns `.rises`."""
        whole = self._mean(self._run([]).losses)
        self._measured_rises = [self._mean(self._run([head]).losses) - whole for head in np.ndindex(*self._shape)]
        self._rises = [_format_rise(rise) for rise in self._measured_rises]
        return self.rises

    @property
    def kept(self) -> list[list[int]] | None:
        """The heads that are off in the setting that is kept as A, [layer, head] each, or None."""
        return None if self._kept is None else [list(head) for head in self._kept["off"]]

    def keep(self) -> None:
        """Keep the present setting as A, to compare others with. Raises ValueError where the model failed on it."""
        if self.problem:
            raise ValueError(f"nothing to keep: {self.problem}")
        self._kept = {name: self._result[name] for name in ("off", "losses", "means")}

    def forget(self) -> None:
        """Compare with nothing."""
        self._kept = None

    @traitlets.validate("off")
    def _heads_exist(self, proposal):
        return sorted({as_head("a head in off", head, self._shape) for head in proposal.value})

    @traitlets.observe("off")
    def _follow(self, change):
        self._measure()

    @traitlets.observe("_asked")
    def _answer(self, change):
        if self._layout["alone"]:
            self.each_alone()
            self._answered = change.new

    def _measure(self):
        """The losses with these heads off, beside those of the whole model as it is now."""
        whole = self._run([])
        here = self._run(self.off)
        self._whole = whole.losses
        self._losses = here.losses
        self.problem = here.problem or whole.problem
        self._top = _axis_end(self._top, here.losses, whole.losses)
        self._result = {
            "off": [list(head) for head in self.off],
            "losses": _as_json(here.losses),
            "whole": _as_json(whole.losses),
            "means": _as_json([self.loss, self.whole_loss]),
            "top": self._top,
            "problem": self.problem,
            "line": self._describe_run(self.off, here, whole),
        }

    def _run(self, off):
        return _Run(self._model, self._ids, self._shape, off)

    def _mean(self, losses):
        return float(losses[self._from - 1 :].mean())

    def _describe_run(self, off, here, whole):
        """Say what these heads do to the loss when they are off; here and whole are runs without and with them."""
        if problem := here.problem or whole.problem:
            return problem
        loss = self._mean(here.losses)
        if not off:
            return f"Every head is on. {self._name_loss()}: {short(loss)} nats."
        rise = loss - self._mean(whole.losses)
        than = f"{short(abs(rise))} {'more' if rise > 0 else 'less'} than the whole model"
        if abs(rise) < 0.005:
            than = "as the whole model"
        count = f"{len(off)} head{'s' if len(off) > 1 else ''} off"
        return f"{count}. {self._name_loss()}: {short(loss)} nats, {than}."

    def _name_loss(self):
        if self._from == len(self._tokens) - 1:
            return f"Loss of token {self._from}"
        return f"Mean loss of tokens {self._from} to {len(self._tokens) - 1}"

    def _describe_difference(self):
        """Compare the loss with that of the setting kept as A; "" if there is none."""
        if self._kept is None or self.problem:
            return ""
        off = ", ".join(f"layer {layer} head {head}" for layer, head in self._kept["off"]) or "no head"
        there = self._kept["means"][0]
        return f"A: {off} off, {short(there)} nats. Now {_format_rise(self.loss - there)} against A."

    def alone_state(self) -> dict[str, Any]:
        heads = list(np.ndindex(*self._shape))
        sizes = range(len(heads) + 1) if len(heads) <= _ALL_SETS else (0, 1, 2, len(heads))
        whole = self._run([])
        answers = {}
        rises = {}
        for off in (off for size in sizes for off in itertools.combinations(heads, size)):
            run = self._run(off)
            rise = self._mean(run.losses) - self._mean(whole.losses)
            means = _as_json([self._mean(run.losses), self._mean(whole.losses)])
            answer = {"losses": _as_json(run.losses), "means": means, "problem": run.problem or whole.problem}
            answers[",".join(str(heads.index(head)) for head in off)] = answer | {
                "line": self._describe_run(off, run, whole)
            }
            rises[off] = _format_rise(rise)
        return {"_alone": {"answers": answers, "rises": [rises[(head,)] for head in heads]}}

    def as_text(self) -> str:
        n_layers, h = self._shape
        words = [["off" if (layer, head) in self.off else "on" for head in range(h)] for layer in range(n_layers)]
        lines = [f"{self.title}: {n_layers} × {h} heads, {len(self._tokens)} tokens", *table_of_heads(words)]
        lines.append(self._result["line"])
        if not self.problem:
            lines.append(f"The whole model: {short(self.whole_loss)} nats.")
        if self._describe_difference():
            lines.append(self._describe_difference())
        if self._rises is not None:
            texts = np.array(self._rises).reshape(n_layers, h).tolist()
            lines += ["", "rise when it alone is off", *table_of_heads(texts)]
        return "\n".join(lines)

    def alt(self) -> str:
        off = ", ".join(f"layer {layer} head {head}" for layer, head in self.off) or "none"
        return (
            f"Switches for {self._shape[0]} × {self._shape[1]} heads, off: {off}. Below, a bar for the loss of each of "
            f"{len(self._tokens) - 1} tokens, with the whole model's loss as an outline. {self._result['line']}"
            + ("" if self.problem else f" The whole model has {short(self.whole_loss)} nats.")
            + (f" {self._describe_difference()}" if self._describe_difference() else "")
        )

    def figure(self) -> Figure:
        width = 760
        top = 52 + 26 * self._shape[0]
        height = top + 262
        fig = new_figure(width, height)
        grid = fig.add_axes((0, 1 - top / height, 1, top / height))
        grid.set(xlim=(0, width), ylim=(top, 0))
        grid.axis("off")
        grid.text(12, 16, self.title, fontweight="bold", va="center")
        self._draw_switches(grid)
        ax = fig.add_axes((48 / width, 44 / height, (width - 64) / width, 160 / height))
        self._draw_bars(ax)
        fig.text(12 / width, 246 / height, self._result["line"], va="center")
        return fig

    def _draw_switches(self, ax):
        from matplotlib.patches import Rectangle

        for layer, head in np.ndindex(*self._shape):
            x = 64 + 42 * head
            y = 46 + 26 * layer
            off = (layer, head) in self.off
            if layer == 0:
                ax.text(x + 19, 36, f"head {head}", fontsize=10, ha="center")
            if head == 0:
                ax.text(56, y + 11, f"layer {layer}", fontsize=10, ha="right", va="center")
            face = "none" if off else palette.QUERY
            ax.add_patch(Rectangle((x, y), 38, 22, facecolor=face, edgecolor=palette.INK if off else palette.QUERY))
            ink = palette.INK if off else palette.ink_on(palette.QUERY)
            ax.text(x + 19, y + 11.5, "off" if off else "on", fontsize=10, ha="center", va="center", color=ink)

    def _draw_bars(self, ax):
        places = np.arange(1, len(self._tokens))
        T = len(self._tokens)
        counted = places >= self._from
        losses = np.nan_to_num(self._losses)
        whole = np.nan_to_num(self._whole)
        kinds = ((counted, palette.QUERY, "with these heads"), (~counted, palette.INK, "not counted"))
        for which, colour, label in kinds:
            if which.any():
                ax.bar(places[which], losses[which], width=0.72, color=colour, label=label)
        outline = {"facecolor": "none", "edgecolor": palette.INK, "linewidth": 1, "label": "whole model"}
        ax.bar(places, whole, width=0.72, **outline)
        if self._kept is not None:
            there = [np.nan if loss is None else loss for loss in self._kept["losses"]]
            ax.plot(places, there, "_", color=palette.OUTPUT, markersize=11, markeredgewidth=2.5, label="A, kept")
        words = self._layout["vocabulary"]
        if words:
            label = f"uniform guess, log {words}"
            ax.axhline(math.log(words), color=palette.INK, linestyle=":", linewidth=1.2, label=label)
        small = T > 40 or max(map(len, self._tokens)) * T > 100
        ax.set_xticks(range(1, T), self._tokens[1:], fontsize=9 if small else 10, rotation=90 if small else 0)
        ax.set(ylim=(0, self._top), xlim=(0.3, T - 0.3))
        ax.set_ylabel("loss, nats", fontsize=10)
        ax.tick_params(length=0)
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, fontsize=10)


class _Run:
    """One pass of the model with some heads off: `.losses` (T − 1,) float64, NaN where it failed, and `.problem`."""

    def __init__(self, model, ids, shape, off):
        self.losses = np.full(ids.shape[1] - 1, np.nan)  # they stay so if the model fails
        self.problem = ""
        like = next(iter(model.parameters()), torch.zeros(()))
        head_masks = torch.ones(shape, dtype=like.dtype, device=like.device)
        for head in off:
            head_masks[tuple(head)] = 0
        ids = ids.to(like.device)
        try:
            with torch.no_grad(), hide_prints():
                logits = model(ids.clone(), head_masks=head_masks)  # (1, T, vocabulary)
                losses = F.cross_entropy(logits[0, :-1].double(), ids[0, 1:].long(), reduction="none")
            self.losses = losses.cpu().numpy()
            if not np.isfinite(self.losses).all():
                place = int(np.argmin(np.isfinite(self.losses))) + 1
                self.problem = f"the loss of token {place} is {self.losses[place - 1]}: no mean can be told"
        except Exception as error:  # anyone's model
            message = f"the model raised {type(error).__name__}: {' '.join(str(error).split())}"
            self.problem = message if len(message) <= _PROBLEM else message[: _PROBLEM - 1] + "…"


def _axis_end(top, *losses):
    """The end of the bars' axis: it never shrinks, so that bars can be compared."""
    highest = max((loss for part in losses for loss in part[np.isfinite(part)].tolist()), default=0)
    return top if highest <= top else float(math.ceil(highest))


def _format_rise(rise):
    return "–" if np.isnan(rise) else f"{'+' if rise >= 0.005 else ''}{short(rise)}"


def _as_json(values):
    return [round(float(value), 4) + 0.0 if np.isfinite(value) else None for value in values]


def _vocabulary(model):
    embedding = getattr(model, "embedding", None)
    return int(getattr(embedding, "num_embeddings", 0))


def _checked_model(model):
    """(n_layers, h) of the model."""
    blocks: Any = getattr(model, "blocks", None)
    h = getattr(model, "n_heads", None)
    if not callable(model) or not hasattr(blocks, "__len__") or not isinstance(h, int):
        raise ValueError(f"model is {type(model).__name__}: a Decoder is needed, with .blocks and .n_heads")
    n_layers = len(blocks)
    if not n_layers:
        raise ValueError("the model has no layers: there is no head to switch off")
    if max(n_layers, h) > _MAX_HEADS:
        raise ValueError(f"the model has {n_layers} layers of {h} heads: up to {_MAX_HEADS} of each fit the page")
    return n_layers, h


def _checked_tokens(tokens):
    """(1, T) integers."""
    try:
        ids = torch.as_tensor(tokens)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError("tokens do not make a tensor: give integers, (T,) or (1, T)") from None
    if ids.ndim == 1:
        ids = ids[None]
    if ids.ndim != 2 or len(ids) != 1:
        raise ValueError(f"tokens is {tuple(ids.shape)}: one sequence is needed, (T,) or (1, T)")
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"tokens is {ids.dtype}: each is a number in the vocabulary, torch.int64 or int32")
    if not 2 <= ids.shape[1] <= _MAX_TOKENS:
        raise ValueError(f"there are {ids.shape[1]} tokens: the widget shows 2 to {_MAX_TOKENS}")
    return ids.detach().clone()


def _checked_from(from_token, T):
    if from_token is None:
        return 1
    if isinstance(from_token, bool) or not hasattr(from_token, "__index__") or not 1 <= from_token < T:
        raise ValueError(f"from_token is {from_token!r}: give a whole number from 1 to {T - 1}, the last token's place")
    return from_token.__index__()
