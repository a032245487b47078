"""What positions are worth to SmolLM2-135M-Instruct: pairs mixed up, all positions moved, other bases of its rotation.

    python -m course_utils.models.positions_record --record

measures all of it again, less than 15 minutes on a quiet core, and writes what `recorded` reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from course_utils.attention import rotary
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import facts
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load

BENCHMARK = "smollm2-positions"
STORED = Path(__file__).parents[1] / "data" / "models"
QUESTION = "What is the capital of France?"
BEGINNING = "The capital of France is"
MOST = 24  # tokens that the model writes
WINDOW = 1024  # tokens in which the loss is measured by position
WINDOWS = 4
BIN = 64  # neighbouring positions whose losses are averaged
BASES = (1e3, 1e4, 1e5, 1e6, 1e7)  # 1e5 is the model's own
MOVED = (1, 100, 1000)
Rotation = Callable[[Tensor, Tensor, float], Tensor]


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured of SmolLM2-135M-Instruct, as `records.read` gives it: a row for each fact."""
    return records.recorded(BENCHMARK, STORED)[0]


def fact(name: str) -> dict[str, Any]:
    """One row of the record. Raises KeyError, with all names, for a fact that it does not have."""
    return records.fact(recorded(), name)


def rotated_by(real: Real, rotation: Rotation) -> Real:
    """Return the model with this rotation in all layers, a function of x, positions and base; weights are shared."""
    return real.with_parts({"rotate": rotation})


def in_pairs(pairs: str) -> Rotation:
    """Return RoPE that pairs numbers in this way: "neighbours", as this model was stored, or "halves"."""
    return lambda x, positions, base: rotary.rotate(x, positions, base, pairs)


def at_base(base: float) -> Rotation:
    """Return RoPE with this base in place of the model's own."""
    return lambda x, positions, _: rotary.rotate(x, positions, base)


def moved_by(n: int) -> Rotation:
    """Return RoPE in which every token stands n positions later."""
    return lambda x, positions, base: rotary.rotate(x, positions + n, base)


def measure(real: Real, quick: bool = False) -> list[dict[str, Any]]:
    """Return all facts, as rows of the record. quick takes a few tokens."""
    text = facts.opening(real, 96 if quick else 256)
    windows = facts.opening(real, 128 if quick else WINDOWS * WINDOW).view(1 if quick else WINDOWS, -1)
    return [_pairs(real, text, 4 if quick else MOST), _moved(real, text), _bases(real, windows)]


@torch.no_grad()
def _pairs(real: Real, text: Tensor, most: int) -> dict[str, Any]:
    """What the model answers with each way to pair, the losses, and by how much the logits of each token differ."""
    ways, logits = [], []
    for pairs in rotary.PAIRS:
        model = rotated_by(real, in_pairs(pairs))
        written = real.tokenizer.decode(model.stream(real.encode(BEGINNING)[0].tolist(), most))
        answer = {"pairs": pairs, "answer": model.answer(QUESTION, most), "written": written}
        ways.append(answer | {"loss": facts.loss(model, text)})
        logits.append(model.model(text)[0])  # (T, vocabulary)
    differences = (logits[0] - logits[1]).abs().amax(-1)  # (T,)
    row: dict[str, Any] = {
        "fact": "pairs",
        "question": QUESTION,
        "beginning": BEGINNING,
        "tokens": text.shape[1],
        "ways": ways,
    }
    return row | {"largest_difference": np.round(differences[:8].tolist(), 4).tolist()}


@torch.no_grad()
def _moved(real: Real, text: Tensor) -> dict[str, Any]:
    """How far the logits move at most when every token stands so many positions later."""
    own = real.model(text)
    moved = [(rotated_by(real, moved_by(n)).model(text) - own).abs().max().item() for n in MOVED]
    row = {"fact": "moved", "tokens": text.shape[1], "by": list(MOVED), "largest_difference": moved}
    return row | {"standard_deviation": own.std().item()}


def _bases(real: Real, windows: Tensor) -> dict[str, Any]:
    """The loss by position in windows (n, T) with other bases, the mean over the windows."""
    rows = []
    for base in BASES:
        model = rotated_by(real, at_base(base))
        losses = np.mean([facts.token_losses(model, window[None]).tolist() for window in windows], axis=0)  # (T - 1,)
        bins = [losses[start : start + BIN].mean() for start in range(0, len(losses), BIN)]
        rows.append({"base": base, "loss": losses.mean(), "by_position": np.round(bins, 4).tolist()})
        print(f"base {base:,.0f}: loss {losses.mean():.3f}", flush=True)
    own = cast(Any, real.model.blocks[0]).attention.rope.base
    return {"fact": "bases", "own": own, "windows": len(windows), "tokens": windows.shape[1], "bin": BIN, "bases": rows}


def _findings(rows: list[dict[str, Any]]) -> list[str]:
    pairs, moved, bases = rows
    return [
        *(f"pairs {way['pairs']}: loss {way['loss']:.2f}, {way['answer']!r}" for way in pairs["ways"]),
        f"all positions {moved['by'][-1]} later: logits move by {moved['largest_difference'][-1]:.1g} at most",
        *(f"base {row['base']:,.0f}: loss {row['loss']:.3f}" for row in bases["bases"]),
    ]


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Measure all facts and write them to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    loaded = load()
    settings = {
        "quick": quick, "command": "python -m course_utils.models.positions_record --record",
        "model": {"name": loaded.name, "dtype": "float32", "get": store.GET}, "text": facts.TEXT.name,
    }  # fmt: skip
    rows = measure(loaded, quick)
    findings = _findings(rows)
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
