"""Table of the exercises whose answers can be parts of the real model.

The answer to an exercise fills a slot, and an adapter makes the answer fit. Two answers for the same part exclude each
other, because a layer has only one attention.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.parts import adapters

HIDDEN = Path(__file__).with_name("hidden.toml")


@dataclass(frozen=True)
class Slot:
    """An exercise whose answer can be a part of the real model.

    Attributes:
        grade_id: the exercise's id.
        part: the part that the answer fills, one of `real.OWN`.
        answer: the signature of the answer.
        takes: the container and dtype of the answer's arguments.
        fits: the adapter.
        compared: parts of the model that the answer is compared with, if they differ from the model's usual ones.
        trains: whether a model can be trained with the answer: it takes batches, and gradients pass through it.
        hides: whether the answer, or its adapter, hides later keys by itself, so that a mask has nothing to do.
    """

    day: int
    grade_id: str
    part: str
    answer: str
    takes: str
    fits: Callable[[Callable], Callable]
    compared: Mapping[str, Callable] = field(default_factory=dict)
    trains: bool = False
    hides: bool = False

    @property
    def name(self) -> str:
        """The name of the exercise's answer."""
        return self.answer.partition("(")[0]

    @property
    def hidden(self) -> dict[str, str]:
        """The reason why a mistake cannot show in this model, by the name of the known mistake or of the relation."""
        reasons = tomllib.loads(HIDDEN.read_text(encoding="utf-8")).get(self.grade_id, {})
        return {name: reason for reason, names in reasons.items() for name in names}


def excludes(slot: Slot, other: Slot) -> bool:
    """Return whether two answers cannot work in the same model: they fill one part, or one leaves the other nothing."""
    if slot is other:
        return False
    parts = {slot.part, other.part}
    return len(parts) == 1 or (parts == {ATTENTION, "mask"} and (slot.hides or other.hides))


LISTS, ARRAYS, TENSORS, TOKENS = "lists of floats", "NumPy float32", "float32 tensors", "int64 tensors"
ATTENTION = "grouped_attention"
IN_A_WINDOW = {ATTENTION: adapters.attention_over_a_window}
SLOTS = (
    Slot(1, "softmax_row", ATTENTION, "softmax_row(row)", LISTS, adapters.softmax_of_rows, hides=True),
    Slot(1, "attention_lists", ATTENTION, "attention_lists(q, k, v)", LISTS, adapters.attention_of_lists, hides=True),
    Slot(
        1, "attention_batched", ATTENTION, "attention_batched(q, k, v)", ARRAYS, adapters.attention_of_arrays,
        hides=True,
    ),
    Slot(2, "stable_softmax", ATTENTION, "softmax(x, axis)", ARRAYS, adapters.softmax_of_arrays, hides=True),
    Slot(3, "causal_mask", "mask", "causal_mask(n)", "a whole number", adapters.mask, trains=True),
    Slot(
        3, "masked_softmax", ATTENTION, "masked_softmax(scores, mask)", TENSORS, adapters.softmax_under_mask,
        trains=True,
    ),
    Slot(4, "split_heads", "split_heads", "split_heads(x, n_heads)", TENSORS, adapters.split, trains=True),
    Slot(4, "merge_heads", "merge_heads", "merge_heads(x)", TENSORS, adapters.merge, trains=True),
    Slot(4, "block", "block", "Block(attention, d_model, d_ff)", TENSORS, adapters.block, trains=True),
    Slot(4, "rotation", "rotate", "rotate(x, positions, base)", TENSORS, adapters.rotate, trains=True),
    Slot(
        4, "grouped_query", ATTENTION, "grouped_query_attention(q, k, v, mask)", TENSORS, adapters.attention_of_groups,
        trains=True,
    ),
    Slot(
        5, "cached_step", ATTENTION, "cached_step(q_t, k_t, v_t, cache)", TENSORS, adapters.attention_in_steps,
        hides=True,
    ),
    Slot(5, "generate_cached", "writes", "generate_cached(model, prompt, steps)", TOKENS, adapters.writes),
    Slot(
        5, "ring_cache", ATTENTION, "RingCache(window)", TENSORS, adapters.attention_over_a_ring, IN_A_WINDOW,
        hides=True,
    ),
    Slot(
        5, "paged_cache", ATTENTION, "PagedCache(n_blocks, block_size, d)", TENSORS, adapters.attention_over_pages,
        hides=True,
    ),
    Slot(
        6, "tiled_attention", ATTENTION, "tiled_attention(q, k, v, block_q, block_k, causal)", TENSORS,
        adapters.attention_in_tiles, hides=True,
    ),
    Slot(
        7, "paged_attention", ATTENTION, "paged_attention(q, keys, values, table, length)", ARRAYS,
        adapters.attention_through_a_table, hides=True,
    ),
    Slot(
        7, "batch_scheduler", "writes", "BatchScheduler(n_slots, n_blocks, block_size)", "names and counts",
        adapters.serves_in_slots,
    ),
    Slot(7, "scheduler", "writes", "Scheduler(n_blocks, block_size, budget)", "names and counts", adapters.serves),
    Slot(
        8, "sink_window_mask", "mask", "sink_window_mask(queries, keys, window, sinks)", "whole numbers",
        adapters.mask_of_sinks, {"mask": adapters.window_with_sinks},
    ),
)  # fmt: skip


def slot_of(name: str) -> Slot:
    """Return the slot of an exercise, by its grade_id or the name of its answer.

    Raises:
        KeyError: no slot has this name. The message lists all names.
    """
    for slot in SLOTS:
        if name in (slot.grade_id, slot.name):
            return slot
    raise KeyError(f"no part of the real model is called {name!r}; there are {', '.join(slot.name for slot in SLOTS)}")
