"""The guesses of day 5's lesson: what each asks, what is computed, and why it comes out so."""

from collections.abc import Sequence
from dataclasses import replace

from course_utils.costs import records
from course_utils.costs.configurations import MODELS
from course_utils.models import facts_record
from course_utils.views import Guess


def old_rows_without_a_mask(changes: Sequence[float]) -> Guess:
    changed = [f"layer {i}" for i, change in enumerate(changes) if change > 0.01]
    return Guess.choice(
        5, "old rows without a mask",
        "Without a mask: in which layers do the attention weights of old tokens change when a token is added?",
        choices=["in none", "layer 0", "layer 1", "layer 0, layer 1"],
        truth=", ".join(changed) or "in none",
        why="The lines below the next cell say how a change gets there, and what happens to keys and values.",
    )  # fmt: skip


def how_many_times_faster() -> Guess:
    run = records.recorded("generation-cpu")[0]
    rows = [row for row in run["rows"] if row["measured"] == "prefix"]
    return Guess.curve(
        5, "how many times faster",
        "How many times faster does a cache make the step that writes one token?",
        [row["T"] for row in rows], truth=[row["faster"] for row in rows], low=1, high=1000, scale="log",
        x_label="tokens so far, T", y_label="times faster", x_scale="log",
        why="Six layers, d_model = 384, recorded on one thread of a CPU.",
    )  # fmt: skip


def bytes_of_a_token() -> Guess:
    return Guess.number(
        5, "bytes of a token",
        "How many KiB does one token leave in the KV cache of LLaMA 7B?",
        truth=MODELS["LLaMA 7B"].cache_bytes(1) / 1024, low=0.1, high=100_000, scale="log", unit="KiB",
        why="A text of 4096 tokens takes 4096 times as much.",
    )  # fmt: skip


def texts_on_a_card() -> Guess:
    model = replace(MODELS["LLaMA 7B"], n_kv_heads=8)
    return Guess.number(
        5, "texts on a card",
        "LLaMA 7B with 8 heads of keys and values: how many texts of 2048 tokens fit on a GPU with 24 GiB?",
        truth=(24 * 2**30 - 2 * model.parameters()) // model.cache_bytes(2048), low=1, high=1000, scale="log",
        why="Fewer heads make two of the weight matrices smaller too.",
    )  # fmt: skip


def a_smaller_cache() -> Guess:
    run = records.recorded("generation-cpu")[0]
    kinds = [row for row in run["rows"] if row["measured"] == "kind"]
    (longest,) = (row for row in kinds if (row["T"], row["kind"]) == (4096, "MQA"))
    return Guess.number(
        5, "a smaller cache",
        "The cache is six times smaller: how many times faster is a step at T = 4096?",
        truth=longest["faster"], low=0.5, high=10, scale="log",
        why="Recorded on one thread of a CPU. The picture below shows the other kinds too.",
    )  # fmt: skip


def keys_or_values_in_four_bits() -> Guess:
    rises = {row["cache"]: row["difference"] for row in facts_record.fact("bits")["caches"]}
    keys, values = (rises[f"4 bits, {which} alone"] for which in ("keys", "values"))
    choices = ["keys in 4 bits do more harm", "values in 4 bits do more harm", "about the same"]
    near = max(keys, values) < 2 * min(keys, values)
    return Guess.choice(
        5, "keys or values in four bits",
        "SmolLM2 with only its keys in 4 bits, or only its values: which raises the loss more?",
        choices=choices, truth=choices[2 if near else int(keys < values)],
        why=f"The loss rises by {keys:.3f} with keys in 4 bits and by {values:.3f} with values in 4 bits.",
    )  # fmt: skip
