"""How much memory one layer of the real model takes on a long text, with all scores and in tiles: `recorded()`.

    python -m course_utils.models.long_text --record

measures all of it again, a minute on a quiet core, and writes what `recorded` reads. Bytes are those of the tensors
that the attention layer makes, as `live_memory` counts them, and so the same on every machine. Weights of the model and
the input of the layer do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention import tiled
from course_utils.attention.masks import causal
from course_utils.costs import memory, records
from course_utils.costs.live_memory import peak_of_tensors
from course_utils.costs.measure import environment
from course_utils.models import facts
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load

BENCHMARK = "smollm2-long-text"
STORED = Path(__file__).parents[1] / "data" / "models"
LENGTHS = (250, 500, 1000, 2000)
BLOCK = 64  # queries, and keys, of a tile
Attend = Callable[..., tuple[Tensor, None]]


def in_tiles(q: Tensor, k: Tensor, v: Tensor, *_: object) -> tuple[Tensor, None]:
    """The course's own tiles, in the form in which a layer calls its attention."""
    return tiled.forward(q, k, v, causal=True, block_q=BLOCK, block_k=BLOCK)[0], None


@torch.no_grad()
def of_a_layer(real: Real, n: int, attend: Attend | None = None) -> tuple[Tensor, int]:
    """Return what attention in the first layer gives for a text of n tokens, (1, n, d_model), and its peak in bytes.

    attend stands in the place of the model's attention, which makes all scores.
    """
    own = real if attend is None else real.with_parts({"grouped_attention": attend}, layers=[0])
    block = cast(Any, own.model.blocks[0])
    x = block.attention_norm(own.model.embedding(facts.opening(real, n)))  # (1, n, d_model)
    block.attention.rope(torch.zeros(1, 1, n, block.attention.d_head), torch.arange(n))  # its tables are made once
    return peak_of_tensors(lambda: block.attention(x, mask=causal(n)))


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured of SmolLM2-135M-Instruct, as `records.read` gives it."""
    return records.recorded(BENCHMARK, STORED)[0]


def lines() -> dict[str, tuple[list[int], list[int]]]:
    """Return the recorded bytes for a chart: name -> (lengths, bytes)."""
    rows = _rows("memory")
    lengths = [row["T"] for row in rows]
    return {"naive": (lengths, [row["naive"] for row in rows]), "tiled": (lengths, [row["tiled"] for row in rows])}


def summary() -> str:
    """The longest text of the record in three lines."""
    longest = _rows("memory")[-1]
    (whole,) = _rows("whole model")
    T = longest["T"]
    return "\n".join(
        [
            f"{T:,} tokens, one table of scores of {longest['heads']} heads: "
            f"{in_units(memory.score_bytes(1, longest['heads'], T, bytes_per_value=4))}",
            f"the layer, at most: {in_units(longest['naive'])} with all scores, {in_units(longest['tiled'])} in tiles",
            f"the whole model: loss {whole['loss_naive']:.4f} and {whole['loss_tiled']:.4f} per token, "
            f"the same next token at {whole['same_guesses']:,} of {whole['T']:,} places",
        ]
    )


def in_units(n_bytes: float) -> str:
    """Return a number of bytes as people read it: 480 MB."""
    return memory.in_decimal_units(n_bytes)


def _rows(measured: str) -> list[dict[str, Any]]:
    return [row for row in recorded()["rows"] if row["measured"] == measured]


def measure(real: Real, quick: bool = False) -> list[dict[str, Any]]:
    """Return the bytes at each length, and what the whole model makes of the longest text. quick takes short ones."""
    lengths = LENGTHS[:1] if quick else LENGTHS
    rows: list[dict[str, Any]] = []
    for n in lengths:
        (whole, naive), (tiles, small) = of_a_layer(real, n), of_a_layer(real, n, in_tiles)
        difference = (whole - tiles).abs().max().item()
        rows.append({
            "measured": "memory", "T": n, "heads": cast(Any, real.model.blocks[0]).attention.n_heads, "naive": naive,
            "tiled": small, "largest_difference": difference,
        })  # fmt: skip
    return [*rows, _whole_model(real, lengths[-1])]


@torch.no_grad()
def _whole_model(real: Real, n: int) -> dict[str, Any]:
    tokens = facts.opening(real, n)
    naive = real.model(tokens)[0]
    tiles = real.with_parts({"grouped_attention": in_tiles}).model(tokens)[0]
    losses = [F.cross_entropy(logits[:-1], tokens[0, 1:]).item() for logits in (naive, tiles)]
    row = {"measured": "whole model", "T": n, "loss_naive": losses[0], "loss_tiled": losses[1]}
    row["largest_difference"] = (naive - tiles).abs().max().item()
    return row | {"same_guesses": int((naive.argmax(-1) == tiles.argmax(-1)).sum())}


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Measure it and write it to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    real = load()
    rows = measure(real, quick)
    settings = {
        "quick": quick, "command": "python -m course_utils.models.long_text --record", "block": BLOCK, "layer": 0,
        "model": {"name": real.name, "dtype": "float32", "get": store.GET}, "text": facts.TEXT.name,
    }  # fmt: skip
    findings = [
        f"T = {row['T']:,}: {in_units(row['naive'])} with all scores, {in_units(row['tiled'])} in tiles."
        for row in rows
        if row["measured"] == "memory"
    ]
    print("\n".join(findings))
    print(f"written: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
