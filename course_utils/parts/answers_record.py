"""A record of the real model with the course's own answers as its parts, for machines that do not have the model.

    python -m course_utils.parts.answers_record --record

takes the answers of solutions/ as `collect` takes a learner's, writes a text with them and without, measures the share
of each, plants a fault in one of them and finds it by swapping; a few minutes on a quiet core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.course import ROOT
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load
from course_utils.parts.collect import REFERENCE, Collected, collect
from course_utils.parts.shares import Share, Shares, shares

BENCHMARK = "smollm2-answers"
STORED = Path(__file__).parents[1] / "data" / "models"
PROMPT = "The parcel that we sent"
WRITTEN = 12  # tokens
FAULTY = "merge_heads"  # the part in which the fault is planted
# read for the shares: so long that a cache and a mask with windows of 8 tokens drop some
TEXT = "The parcel that we sent to the old doctor in the village by the sea arrived on Monday."
NAMES = ("Juliet", "Cleopatra", "Capulet", "Siobhán", "Przemysław")  # read by the model's tokenizer


def merge_without_moving(x: Tensor) -> Tensor:
    """Merge heads with a fault: (B, h, T, d_head) -> (B, T, h · d_head) without moving the axis of heads back."""
    batch, heads, length, width = x.shape
    return x.reshape(batch, length, heads * width)


def leave_unrotated(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """A rotation that does not rotate: (B, h, T, d_head) -> the same."""
    return x


def find_fault(names: Sequence[str], is_well: Callable[[Sequence[str]], bool]) -> list[dict[str, Any]]:
    """Find the one faulty part by halving: a row for each test, with the parts swapped for the reference, and `well`.

    is_well(swapped) says whether the model is right with those parts swapped. The last row's `left` is the fault.
    """
    left = list(names)
    rows = []
    while len(left) > 1:
        half = left[: len(left) // 2]
        well = is_well(half)
        left = half if well else left[len(half) :]
        rows.append({"swapped": half, "well": well, "left": list(left)})
    return rows


def pieces(real: Real, text: str) -> list[str]:
    """Return the tokens of a text as texts."""
    return real.tokenizer.texts(real.encode(text)[0].tolist())


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured with the answers of the course, as `records.read` gives it."""
    return records.recorded(BENCHMARK, STORED)[0]


def fact(name: str) -> dict[str, Any]:
    """One row of the record: "table", "written", "shares" or "fault". Raises KeyError for another."""
    return records.fact(recorded(), name)


def shares_table() -> str:
    """Return the shares of all answers as text, as `shares` shows them."""
    return str(Shares(tuple(Share(**row) for row in fact("shares")["rows"])))


@torch.no_grad()
def measure(real: Real, collected: Collected, most: int = WRITTEN) -> list[dict[str, Any]]:
    """Return the rows of the record."""
    tokens = real.encode(PROMPT)[0].tolist()
    unrotated = replace(collected, swapped={"rotation": leave_unrotated})
    written = {
        "reference": real.tokenizer.decode(real.stream(tokens, most)),
        "answers": real.tokenizer.decode(collected.real(real).stream(tokens, most)),
        "unrotated": real.tokenizer.decode(unrotated.real(real).stream(tokens, most)),
    }
    rows: list[dict[str, Any]] = [
        {"fact": "table", "rows": [list(row) for row in collected.table()]},
        {"fact": "written", "prompt": PROMPT, **written},
        {
            "fact": "names",
            "pieces": [pieces(real, name) for name in NAMES],
            "after a space": [pieces(real, f" {name}") for name in NAMES],
            "vocabulary": real.model.embedding.num_embeddings,
        },
        {
            "fact": "shares",
            "text": TEXT,
            "tokens": real.encode(TEXT).shape[1],
            "rows": [asdict(share) for share in shares(collected, real, TEXT)],
        },
    ]
    return [*rows, _fault(real, replace(collected, swapped={FAULTY: merge_without_moving}), most)]


def _fault(real: Real, sick: Collected, most: int) -> dict[str, Any]:
    whole = real.encode(PROMPT)
    expected = real.model(whole)
    names = [row.slot.name for row in sick.parts.rows]

    def largest(collected: Collected, tokens: Tensor, right: Tensor) -> float:
        return (collected.real(real).model(tokens) - right).abs().max().item()

    def is_well(swapped: Sequence[str]) -> bool:
        others = {row.slot.grade_id: REFERENCE for row in sick.parts.rows if row.slot.name in swapped}
        return largest(replace(sick, swapped=dict(sick.swapped) | others), whole, expected) < 1e-2

    model = sick.real(real)
    by_token = (model.model(whole) - expected).abs().amax(-1)[0].tolist()
    return {
        "fact": "fault", "part": FAULTY, "names": names, "tests": find_fault(names, is_well),
        "written": real.tokenizer.decode(model.stream(whole[0].tolist(), most)),
        "alone": largest(sick, whole[:, :1], real.model(whole[:, :1])), "by_token": by_token,
    }  # fmt: skip


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Measure all of it and write it to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    real = load()
    rows = measure(real, collect(ROOT / "solutions"), 2 if quick else WRITTEN)
    settings = {
        "quick": quick, "command": "python -m course_utils.parts.answers_record --record", "threads": 1,
        "model": {"name": real.name, "dtype": "float32", "get": store.GET},
    }  # fmt: skip
    findings = [f"{row['name']}: largest difference of a logit {row['difference']:.1g}" for row in rows[3]["rows"]]
    print("\n".join(findings))
    print(f"written: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
