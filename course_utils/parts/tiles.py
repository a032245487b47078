"""Count the memory that the learner's tiles take in a layer of the real model, beside attention with all scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course_utils.models import long_text
from course_utils.models.real import Real
from course_utils.parts.adapters import attention_in_tiles
from course_utils.parts.notebook import Parts

EXERCISE = "tiled_attention"
NEAR = 1e-4  # of the largest output; two correct float32 attentions differ by up to about 1e-5


@dataclass(frozen=True)
class TilesMemory:
    """What one layer took on a text of n tokens.

    Attributes:
        naive: bytes of the tensors that the layer made at one time, at most, with all scores.
        tiled: the same in tiles.
        yours: whether the tiles were the learner's.
        equal: whether the outputs agree, up to rounding.
        error: the error that the tiles raised; empty if they raised none.
    """

    n: int
    naive: int
    tiled: int
    yours: bool
    equal: bool
    error: str = ""

    def __str__(self) -> str:
        whose = "your tiles" if self.yours else "the course's tiles"
        naive = f"One layer, {self.n:,} tokens, at most: {long_text.in_units(self.naive)} with all scores"
        if self.error:
            return f"{naive}. In {whose} it raised {self.error}."
        agree = "The outputs agree." if self.equal else "The outputs do not agree: see what the check says."
        return f"{naive}, {long_text.in_units(self.tiled)} in {whose}. {agree}"

    __repr__ = __str__


def memory_of_tiles(
    real: Real, parts: Mapping[str, Callable], n: int = 2000, block_q: int = 64, block_k: int = 64
) -> TilesMemory:
    """Run the first layer of the model on a text of n tokens, with all scores and in tiles, and count the memory.

    parts are those of `mine("tiled_attention")`; where it has no answer, the course's own tiles run, of 64 × 64. If the
    learner's tiles raise an error, the result reports it.
    """
    rows = parts.rows if isinstance(parts, Parts) else ()
    answers = [row.own for row in rows if row.own and row.slot.grade_id == EXERCISE]
    attend = attention_in_tiles(answers[0], block_q, block_k) if answers else long_text.in_tiles
    whole, naive = long_text.of_a_layer(real, n)
    try:
        tiles, tiled = long_text.of_a_layer(real, n, attend)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}".rstrip(": ")
        return TilesMemory(n, naive, 0, bool(answers), False, error)
    equal = bool((whole - tiles).abs().max() <= NEAR * whole.abs().max())
    return TilesMemory(n, naive, tiled, bool(answers), equal)
