"""Measure what a learner's parts do in the real model: each one's share of the time, and by how much numbers differ."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from course_utils.costs import records
from course_utils.models.decoder import Block
from course_utils.models.real import Real, load
from course_utils.parts.collect import Collected
from course_utils.parts.notebook import Parts, Row, html_table

TEXT = "The capital of Italy is"
MODEL = "the model itself"
COLUMNS = ("part", "time, together", "time, alone", "largest difference of a logit", "tokens written")


@dataclass(frozen=True)
class Share:
    """What one part does in the model on one text.

    Attributes:
        together: its share of the time when all parts that were chosen are at work, 0 to 1; None if it was not chosen.
        alone: its share when it is the only one.
        difference: the largest difference that it makes to a logit of the text, alone.
        same: whether the model writes the same tokens with it.
        error: the error that it raised; empty if it raised none.
    """

    name: str
    together: float | None
    alone: float | None
    difference: float | None
    same: bool
    error: str = ""

    def words(self) -> tuple[str, ...]:
        """Return the row of a table, with the columns of COLUMNS."""
        shares = ("–" if share is None else f"{share:.1%}" for share in (self.together, self.alone))
        difference = "–" if self.difference is None else f"{self.difference:.1g}"
        return self.name, *shares, difference, self.error or ("the same" if self.same else "others")


@dataclass(frozen=True, repr=False)
class Shares(Sequence[Share]):
    """The shares of all parts, and last of all of them together. A notebook shows them as a table."""

    rows: tuple[Share, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return records.table([dict(zip(COLUMNS, row.words(), strict=True)) for row in self.rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(COLUMNS, (row.words() for row in self.rows))


def shares(collected: Collected, model: Real | None = None, text: str = TEXT, most: int = 3) -> Shares:
    """Let the model read a text and write up to `most` tokens, with each of the learner's parts alone and with all.

    Args:
        model: the model to put the parts into; the real one if it is left out.

    Raises:
        store.NoModel: no model is given, and the real one is not on this machine.
    """
    model = load() if model is None else model
    chosen = collected.parts.rows
    everything = _measure(model, chosen, text, most)
    rows = []
    for row in collected.passed:
        share = _measure(model, (row,), text, most).share(row.slot.name)
        if row in chosen and not everything.error:
            share = replace(share, together=everything.seconds[row.slot.name] / sum(everything.seconds.values()))
        rows.append(share)
    return Shares((*rows, everything.share("all together")))


@dataclass(frozen=True)
class _Measured:
    """One run of the model: the seconds of each part, and what it changed."""

    seconds: Mapping[str, float]
    difference: float | None = None
    same: bool = False
    error: str = ""

    def share(self, name: str) -> Share:
        own = sum(seconds for part, seconds in self.seconds.items() if part != MODEL)
        share = None if self.error else own / sum(self.seconds.values())
        return Share(name, None, share, self.difference, self.same, self.error)


@torch.no_grad()
def _measure(model: Real, rows: Sequence[Row], text: str, most: int) -> _Measured:
    """Run the model with the answers of these rows and without them."""
    plain = model.with_parts({part: f for row in rows for part, f in row.slot.compared.items()})
    numbers = plain.encode(text)
    tokens = numbers[0].tolist()
    expected = list(plain.stream(tokens, most))
    own = _on_the_clock(plain, rows, clock := _Clock())
    try:
        with clock.running(own):
            written = list(own.stream(tokens, most))
        difference = (own.model(numbers) - plain.model(numbers)).abs().max().item()
    except Exception as problem:
        return _Measured(clock.seconds, error=f"{type(problem).__name__}: {problem}".rstrip(": "))
    return _Measured(clock.seconds, difference, written == expected)


def _on_the_clock(model: Real, rows: Sequence[Row], clock: _Clock) -> Real:
    """Return the model with the answers of these rows, whose time the clock takes."""
    parts = Parts(tuple(rows))
    names = {row.slot.part: row.slot.name for row in rows}
    return model.with_parts({part: partial(clock.call, names[part], answer) for part, answer in parts.items()})


class _Clock:
    """Adds up the time of each part by itself: while a part calls the model, the time is the model's."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._parts: list[str] = []
        self._since = 0.0

    def call(self, name: str, function: Callable, *args: Any, **options: Any) -> Any:
        """Call a function, and take its time."""
        with self._within(name):
            return function(*args, **options)

    @contextmanager
    def running(self, model: Real) -> Iterator[None]:
        """Take the time of all that runs in this block; what no part does is the model's."""
        with ExitStack() as stack:
            for module in _modules_of_the_model(model):
                stack.enter_context(self._hooked(module))
            with self._within(MODEL):
                yield

    @contextmanager
    def _hooked(self, module: nn.Module) -> Iterator[None]:
        """Take the time of a module as the model's, within the block."""
        before = module.register_forward_pre_hook(lambda *_: self._enter(MODEL))
        after = module.register_forward_hook(lambda *_: self._leave())
        try:
            yield
        finally:
            before.remove()
            after.remove()

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        self._enter(name)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, name: str) -> None:
        self._note()
        self._parts.append(name)

    def _leave(self) -> None:
        self._note()
        self._parts.pop()

    def _note(self) -> None:
        now = time.perf_counter()
        if self._parts:
            self.seconds[self._parts[-1]] += now - self._since
        self._since = now


def _modules_of_the_model(model: Real) -> list[nn.Module]:
    """What a part may call: the whole model, and the attention of a block."""
    return [model.model, *(block.attention for block in model.model.blocks if isinstance(block, Block))]
