"""Train a small language model: AdamW, a rate that rises and falls, clipped gradients, and checkpoints to go on from.

    history = train(model, data, minutes=3, checkpoint="my-model.pt")

While it runs, a line says how far it is. Interrupted, it writes the checkpoint; the same call then goes on from there.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_utils import files
from course_utils.attention.shapes import whole
from course_utils.models import small_gpt
from course_utils.models.decoder import Decoder

SAVE_EVERY = 250  # steps between checkpoints, for a process that ends without a word
TELL_EVERY = 10  # steps between two lines of progress
LAST = 50  # steps whose mean loss stands for the last one
Draw = Callable[[Tensor, int, int, int, int], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. The rate rises over warm_up steps, then falls along a cosine to the share `final` of it.

    clip is the largest norm of a step's gradient; beta1 and beta2 are AdamW's, and weight_decay is for matrices only.
    batch windows of `context` tokens make a step, drawn by seed. Source: Loshchilov and Hutter 2019 (AdamW); Brown et
    al. 2020 (GPT-3), appendix B, for the schedule and the clipping.
    """

    rate: float = 2e-3
    final: float = 0.1
    warm_up: int = 50
    clip: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.1
    batch: int = small_gpt.BATCH
    context: int = small_gpt.CONTEXT
    seed: int = 0

    def rate_at(self, step: int, share: float) -> float:
        """The rate of a step, counted from 0, when that share of the training is done, 0 to 1."""
        rising = min(1.0, (step + 1) / max(1, self.warm_up))
        return self.rate * rising * (self.final + (1 - self.final) * (1 + math.cos(math.pi * min(1.0, share))) / 2)


@dataclass
class History:
    """What was measured in training: by step losses (nats a token), norms (of the gradient, unclipped) and rates.

    seconds are those of the steps. bits_per_byte on held-out text is None until the end of the training.
    """

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    seconds: float = 0.0
    tokens_per_second: float = 0.0
    bits_per_byte: float | None = None

    @classmethod
    def read(cls, path: Path | str) -> History:
        """Return the history that `train` wrote beside its checkpoint, history.json."""
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))


class Progress(NamedTuple):
    """How far a training is after a step, counted from 1: share from 0 to 1, loss in nats a token, seconds left."""

    step: int
    share: float
    loss: float
    tokens_per_second: float
    seconds_left: float

    def __str__(self) -> str:
        minutes, seconds = divmod(math.ceil(self.seconds_left), 60)
        return (
            f"step {self.step:,} ({self.share:.0%}), loss {self.loss:.3f}, "
            f"{self.tokens_per_second:,.0f} tokens/s, {minutes}:{seconds:02d} left"
        )


def print_progress(now: Progress) -> None:
    """Write one line over the last one, every ten steps and at the end."""
    if now.step % TELL_EVERY == 0 or now.share >= 1:
        print(f"\r{now!s:<72}", end="\n" if now.share >= 1 else "", flush=True)


def train(
    model: Decoder,
    data: small_gpt.Data,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    progress: Callable[[Progress], object] | None = print_progress,
    checkpoint: Path | str | None = None,
    draw: Draw = small_gpt.batches,
    windows: int | None = None,
    **recipe: Any,
) -> History:
    """Train the model in place for so many steps, or minutes, and return what was measured.

    recipe names what differs from `Recipe()`. progress is called after each step; None is silent. draw gives the
    batches; so many windows of the held-out text are measured at the end, all when left out.
    With a checkpoint, a path, the state is written there now and then, at the end, and on an interrupt
    (KeyboardInterrupt, which is raised again after the step), together with history.json in the same folder. The same
    call, given the path again, goes on from there: with `steps` to the same numbers as without the interrupt.
    Raises ValueError unless one of steps and minutes is given, and for a checkpoint of another model or recipe.
    """
    if (steps is None) == (minutes is None):
        raise ValueError("give either steps or minutes, to say how long to train")
    run = Run(model, replace(Recipe(), **recipe), steps and whole("steps", steps), minutes)
    if checkpoint is not None:
        run.load(Path(checkpoint))
    if progress and run.done and run.share >= 1:
        progress(run.progress)  # it was trained before
    with _interrupts_held() as interrupts:
        while run.share < 1 and not interrupts:
            run.step(draw, data.train)
            try:
                if progress:
                    progress(run.progress)
            except KeyboardInterrupt as interrupt:
                interrupts.append(interrupt)
            if checkpoint is not None and (interrupts or run.share >= 1 or run.done % SAVE_EVERY == 0):
                run.save(Path(checkpoint))
    if interrupts:
        raise KeyboardInterrupt(f"interrupted after step {run.done}")
    if run.history.bits_per_byte is None:
        run.history.bits_per_byte = small_gpt.bits_per_byte(model.eval(), data, run.recipe.context, windows)
        if checkpoint is not None:
            run.save(Path(checkpoint))
    return run.history


def save_sample(checkpoint: Path | str, text: str) -> None:
    """Write a text that a trained model wrote beside its checkpoint, as samples.json, for the lab report.

    Its loss is the mean of the last steps in history.json. Raises OSError where there is no history to read.
    """
    losses = History.read(Path(checkpoint).with_name("history.json")).losses[-LAST:]
    samples = [{"loss": statistics.fmean(losses), "text": text}]
    files.write_whole(Path(checkpoint).with_name("samples.json"), json.dumps(samples) + "\n")


class Run:
    """A training under way, step by step: the model, its optimiser, and what was measured so far.

    It ends after so many steps or minutes, whichever is given.
    """

    def __init__(self, model: Decoder, recipe: Recipe, steps: int | None, minutes: float | None) -> None:
        self.model, self.recipe, self.steps, self.minutes = model.train(), recipe, steps, minutes
        self.history = History()
        self.optimiser = new_optimiser(model, recipe)

    @property
    def done(self) -> int:
        """The number of steps so far."""
        return len(self.history.losses)

    @property
    def share(self) -> float:
        """How much of the training is done, 0 to 1 or a little more."""
        return self.done / self.steps if self.steps else self.history.seconds / (60 * (self.minutes or 0))

    @property
    def progress(self) -> Progress:
        """How far it is. There must have been a step."""
        left = self.history.seconds * (1 / self.share - 1)
        history = self.history
        return Progress(self.done, min(1.0, self.share), history.losses[-1], history.tokens_per_second, max(0.0, left))

    def step(self, draw: Draw, tokens: Tensor) -> None:
        """Draw a batch of the tokens, and train on it."""
        began = time.perf_counter()
        recipe = self.recipe
        rate = recipe.rate_at(self.done, self.share)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = small_gpt.loss_of(self.model, *draw(tokens, recipe.context, recipe.batch, recipe.seed, self.done))
        self.optimiser.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimiser.step()
        history = self.history
        history.seconds += time.perf_counter() - began
        for numbers, newest in ((history.losses, loss.item()), (history.norms, norm.item()), (history.rates, rate)):
            numbers.append(newest)
        history.tokens_per_second = self.done * recipe.batch * recipe.context / history.seconds

    @property
    def settings(self) -> dict[str, Any]:
        """What a checkpoint must have been trained with."""
        return asdict(self.recipe) | {"steps": self.steps, "minutes": self.minutes}

    def save(self, path: Path) -> None:
        """Write the checkpoint and the history beside it; whoever reads them finds both whole."""
        state = {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}
        data = io.BytesIO()
        torch.save(state | {"history": asdict(self.history), "settings": self.settings}, data)
        history = json.dumps(asdict(self.history)) + "\n"
        files.write_all({path: data.getvalue(), path.with_name("history.json"): history})

    def load(self, path: Path) -> None:
        """Take over the state in a checkpoint if it is there."""
        if not path.exists():
            return
        other = f"{path.name} is a checkpoint of another training"
        state = torch.load(path, weights_only=True)
        for name, value in self.settings.items():
            if state["settings"][name] != value:
                raise ValueError(f"{other}, with {name} {state['settings'][name]}, not {value}: give another path")
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError:
            raise ValueError(f"{other}, of a model of another size: give another path") from None
        self.optimiser.load_state_dict(state["optimiser"])
        self.history = History(**state["history"])


def new_optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """Return AdamW for all weights that take a gradient, with weight decay for matrices only."""
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    groups = [
        {"params": [weights for weights in trained if weights.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [weights for weights in trained if weights.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(recipe.beta1, recipe.beta2), fused=True)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[list[KeyboardInterrupt]]:
    """Keep an interrupt until the step is done, so that no checkpoint holds half of one. Yields those that came."""
    came: list[KeyboardInterrupt] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: came.append(KeyboardInterrupt()))
    except ValueError:  # only the main thread may ask for signals
        yield came
        return
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)
