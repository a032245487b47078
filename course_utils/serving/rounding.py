"""Whether a model writes the same tokens in a batch as alone, in 32 and in 16 bits: `recorded()`.

    python -m course_utils.serving.rounding --record

serves eight prompts to the real model, one by one and in one batch, and writes what `recorded` reads; a few minutes. In
company sums are added in another order. Where two tokens are almost equally likely, rounding then decides between them,
and in 16 bits that happens often. Which tokens these are depends on the machine.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch

from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load
from course_utils.serving import eight_prompts
from course_utils.serving.engine import Engine

BENCHMARK = "smollm2-in-company"
STORED = Path(__file__).parents[1] / "data" / "models"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
PROMPTS = tuple(eight_prompts.PROMPTS)
NEW = 20  # tokens of each


def written(real: Real, prompts: tuple[str, ...], new: int) -> dict[str, list[int]]:
    """Return the tokens that the model writes after each prompt, all of them in one batch."""
    engine = Engine(real.model, 64, 8, 256, prefix_cache=False)
    for prompt in prompts:
        engine.submit(prompt, real.encode(prompt).flatten(), new)
    return engine.run()


def measure(real: Real, dtype: str, prompts: tuple[str, ...] = PROMPTS, new: int = NEW) -> list[dict[str, Any]]:
    """Return a row for each prompt: the first token that differs in a batch, from 0 on, or None, and both texts."""
    together = written(real, prompts, new)
    rows = []
    for prompt in prompts:
        alone = written(real, (prompt,), new)[prompt]
        pairs = enumerate(zip(alone, together[prompt], strict=True))
        differs = next((place for place, (one, other) in pairs if one != other), None)
        rows.append({
            "dtype": dtype, "prompt": prompt, "new": new, "differs": differs, "alone": real.tokenizer.decode(alone),
            "together": real.tokenizer.decode(together[prompt]),
        })  # fmt: skip
    return rows


@cache
def recorded() -> dict[str, Any]:
    """Return what was recorded of SmolLM2-135M-Instruct, as `records.read` gives it."""
    return records.recorded(BENCHMARK, STORED)[0]


def summary() -> str:
    """The record in a line for each dtype, and the first text that differs."""
    lines = []
    for dtype in DTYPES:
        rows = [row for row in recorded()["rows"] if row["dtype"] == dtype]
        lines.append(f"{dtype:8}  {_count_same(rows)} of {len(rows)} texts are the same in a batch as alone")
    first = next(row for row in recorded()["rows"] if row["differs"] is not None)
    return "\n".join(
        [
            *lines,
            f"{first['prompt']!r}, from token {first['differs']} on:",
            f"  alone      {_last_line(first['alone'])!r}",
            f"  in a batch {_last_line(first['together'])!r}",
        ]
    )


def _count_same(rows: list[dict[str, Any]]) -> int:
    return sum(row["differs"] is None for row in rows)


def _last_line(text: str) -> str:
    return text.rsplit("\n", 1)[-1]


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Record it and write it to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for dtype, kind in DTYPES.items():
        real = load(kind)
        rows += measure(real, dtype, PROMPTS[:2] if quick else PROMPTS, 4 if quick else NEW)
    settings = {
        "quick": quick, "command": "python -m course_utils.serving.rounding --record",
        "model": {"name": real.name, "get": store.GET},
    }  # fmt: skip
    findings = [
        f"{dtype}: {_count_same([row for row in rows if row['dtype'] == dtype])} texts are the same."
        for dtype in DTYPES
    ]
    print("\n".join(findings))
    print(f"written: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
