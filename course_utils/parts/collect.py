"""Collect a learner's answers of days 1 to 8, and assemble two models from them: the real one, and one to train."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch

from course_utils.checks.judge.wording import NOT_WRITTEN
from course_utils.costs import records
from course_utils.course import EXERCISES, WORK_FOLDER
from course_utils.errors import CourseError
from course_utils.models.decoder import Decoder, put_parts
from course_utils.models.real import Real, load
from course_utils.parts.notebook import PASSED, Parts, Row, html_table, take
from course_utils.parts.slots import ATTENTION, SLOTS, Slot, excludes, slot_of

REFERENCE = "reference"
SWAPPED = "swapped"
NEAR = 1e-4  # of the largest number; two correct float32 models differ by up to about 1e-6
COLUMNS = ("answer", "day", "whose", "real model", "small model", "why")
Swap = Callable | str  # a function, or REFERENCE


@dataclass(frozen=True, repr=False)
class Collected:
    """A learner's answers that can be parts of a model. A notebook shows them as a table.

    Attributes:
        rows: the answer to each exercise, in the order of the days.
        preferred: exercises whose answers go before others that fill the same part.
        swapped: what stands in the place of an answer, by grade_id: a function, or REFERENCE.
    """

    rows: tuple[Row, ...]
    preferred: tuple[Slot, ...] = ()
    swapped: Mapping[str, Swap] = field(default_factory=dict)

    def real(self, model: Real | None = None, share_layers: bool = False) -> Real:
        """Return the real model with the learner's parts, or `model` with them.

        Args:
            share_layers: whether all answers that are an attention work in it, one after the other in turn in the
                layers, in place of the one that was chosen. Then a mask is at work in some layers only.

        Raises:
            store.NoModel: no model is given, and the real one is not on this machine.
        """
        model = (load() if model is None else model).with_parts(self.parts)
        if share_layers:
            sharing = [row for row in self.passed if row.slot.part == ATTENTION and not row.slot.compared]
            for place, row in enumerate(sharing):
                layers = range(place, len(model.model.blocks), len(sharing))
                model = model.with_parts(Parts((row,)), layers)
        return model

    def trainable(self) -> dict[str, Callable]:
        """Return the parts of a model to train, by their names in `decoder.PARTS`: answers that let gradients pass."""
        return dict(self._trained)

    @cached_property
    def parts(self) -> Parts:
        """The parts at work in the real model, for `Real.with_parts` and `compare`."""
        return self._at_work(self._chosen)

    @cached_property
    def passed(self) -> tuple[Row, ...]:
        """The answers that pass, and functions in the place of answers; not those swapped for the reference."""
        return self._at_work(self._candidates).rows

    def __str__(self) -> str:
        return records.table([dict(zip(COLUMNS, row, strict=True)) for row in self.table()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(COLUMNS, self.table())

    def table(self) -> list[tuple[str, ...]]:
        """Return a row of words for each exercise, with the columns of COLUMNS."""
        real, small = ({row.slot.grade_id for row in parts.rows} for parts in (self.parts, self._trained))
        rows = []
        for row in self.rows:
            works = ("at work" if row.slot.grade_id in those else "–" for those in (real, small))
            rows.append((row.slot.name, str(row.slot.day), self._whose(row), *works, self._why(row)))
        return rows

    @cached_property
    def _trained(self) -> Parts:
        return self._at_work(self._choose(row for row in self._candidates if not self._hindrances[row.slot.grade_id]))

    @cached_property
    def _candidates(self) -> tuple[Row, ...]:
        """The answers that pass, swapped for the reference or not, and functions in the place of answers."""
        rows = []
        for row in self.rows:
            swap = self.swapped.get(row.slot.grade_id)
            if callable(swap):
                rows.append(replace(row, own=swap, report=SWAPPED, outcome=SWAPPED))
            elif row.outcome == PASSED:
                rows.append(row)
        return tuple(rows)

    @cached_property
    def _chosen(self) -> tuple[Row, ...]:
        return self._choose(self._candidates)

    def _at_work(self, rows: Iterable[Row]) -> Parts:
        return Parts(tuple(row for row in rows if self.swapped.get(row.slot.grade_id) != REFERENCE))

    def _choose(self, candidates: Iterable[Row]) -> tuple[Row, ...]:
        """The answers that go together, by the rule of `collect`, those that are swapped for the reference too."""

        def rank(row: Row) -> tuple[bool, bool, int]:
            return self._is_asked_for(row.slot), not row.slot.hides, SLOTS.index(row.slot)

        chosen: list[Row] = []
        for row in sorted(candidates, key=rank, reverse=True):
            fits = not any(excludes(row.slot, other.slot) for other in chosen)
            if fits and (self._is_asked_for(row.slot) or not row.slot.compared):
                chosen.append(row)
        return tuple(reversed(chosen))

    def _is_asked_for(self, slot: Slot) -> bool:
        return slot in self.preferred or callable(self.swapped.get(slot.grade_id))

    @cached_property
    def _hindrances(self) -> dict[str, str]:
        """Why a model cannot be trained with an answer, by grade_id; empty where it can."""
        return {row.slot.grade_id: find_hindrance(row) for row in self._candidates}

    def _whose(self, row: Row) -> str:
        swap = self.swapped.get(row.slot.grade_id)
        if callable(swap):
            return SWAPPED
        return "yours" if row.outcome == PASSED and swap is None else REFERENCE

    def _why(self, row: Row) -> str:
        slot = row.slot
        swap = self.swapped.get(slot.grade_id)
        if swap is not None:
            return "you swapped it for a function" if callable(swap) else "you swapped it for the reference"
        if row.outcome != PASSED:
            return row.outcome if row.report == NOT_WRITTEN else f"{row.outcome}: {_first_sentence(row)}"
        others = [other.slot for other in self._chosen if excludes(slot, other.slot)]
        others.sort(key=lambda other: other.part != slot.part)
        why = [PASSED]
        if others:
            why.append(f"{others[0].name} was chosen in its place")
        elif slot.compared and slot not in self.preferred:
            why.append("it changes what the model computes, so only prefer= takes it")
        if slot.trains and self._hindrances[slot.grade_id]:
            why.append(self._hindrances[slot.grade_id])
        return "; ".join(why)


def collect(
    folder: Path = WORK_FOLDER / EXERCISES, swap: Mapping[str, Swap] | None = None, prefer: Collection[str] | str = ()
) -> Collected:
    """Read the learner's notebooks of days 1 to 8 and take the answers that pass; nothing is written.

    Where two answers exclude each other (see `slots.excludes`), one works in the model. Answers that `prefer` names go
    first. Then those that hide later keys by themselves come after all others, so that the mask has work, and last,
    later exercises go before earlier ones. RingCache and sink_window_mask change what the model computes,
    so they work in it only if `prefer` names them.

    Args:
        swap: what to put in the place of an answer, by the exercise's grade_id or the name of its answer: "reference",
            or a function with the signature of the answer.
        prefer: exercises whose answers go first, by the same names; one name may come without a list.

    Raises:
        KeyError: a name is unknown.
        TypeError: a swap is neither a function nor "reference".
        CourseError: two exercises that are preferred or swapped for functions exclude each other, or a file is no
            notebook.
    """
    swapped = {slot_of(name).grade_id: each for name, each in (swap or {}).items()}
    if strange := [name for name, each in swapped.items() if not (callable(each) or each == REFERENCE)]:
        raise TypeError(f"{strange[0]} is swapped for {swapped[strange[0]]!r}: give a function, or {REFERENCE!r}")
    preferred = tuple(slot_of(name) for name in ([prefer] if isinstance(prefer, str) else prefer))
    asked = [slot for slot in SLOTS if slot in preferred or callable(swapped.get(slot.grade_id))]
    for place, slot in enumerate(asked):
        if others := [other for other in asked[:place] if excludes(slot, other)]:
            raise CourseError(f"{others[0].name} and {slot.name} cannot work in one model: take one of them")
    return Collected(tuple(take(slot, folder) for slot in SLOTS), preferred, swapped)


def find_hindrance(row: Row) -> str:
    """Return why a model cannot be trained with an answer, or "" if it can.

    A small model reads a batch with the answer and without. The logits and the gradients of all weights have to agree.
    """
    if not row.slot.trains or row.own is None:
        return "it is not made for training"
    try:
        own = _logits_and_gradients(Parts((row,)))
    except Exception as problem:
        return f"in training it raises {type(problem).__name__}: {problem}".rstrip(": ")
    for numbers, right in zip(own, _logits_and_gradients({}), strict=True):
        if not bool((numbers - right).abs().max() <= NEAR * right.abs().max()):
            return "the right gradients do not pass through it"
    return ""


def _logits_and_gradients(parts: Mapping[str, Callable]) -> Iterator[torch.Tensor]:
    """What a small model with these parts gives on a batch: the logits, and the gradients of all weights."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        model = Decoder(16, d_model=16, n_layers=1, n_heads=4, n_kv_heads=2, d_ff=24, gated=True)
        put_parts(model, parts)
        logits = model(torch.arange(16).view(2, 8))  # (2, 8, 16)
        gradients = torch.autograd.grad(logits.square().sum(), list(model.parameters()), materialize_grads=True)
    return iter((logits.detach(), *gradients))


def _first_sentence(row: Row) -> str:
    """The beginning of a report; where it begins with the status of a verdict, what follows that."""
    message = row.report.partition(": ")[2] if row.own else row.report
    return message.split("\n")[0].partition(". ")[0].rstrip(".")
