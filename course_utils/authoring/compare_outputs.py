"""Decide whether two runs of the same cell, perhaps on different machines, gave the same outputs.

Numbers in evidence may differ within the judge's tolerances, because float32 keeps about seven digits and processors
add in different orders. Colours in pictures may differ by two of their 255 steps. Numbers in widget states may differ
by one part in a million. Everything else must be equal, byte for byte.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.outcome import MIME, Evidence, evidence_of

PNG = "image/png"
STEPS = 2  # of the 255 steps of a colour: rounding may move the edge of a line


def outputs_alike(day: int | None, new: Sequence[Mapping], old: Sequence[Mapping]) -> bool:
    """Return whether two runs of a cell of this day's notebook gave the same outputs."""
    return len(new) == len(old) and all(_output_alike(day, a, b) for a, b in zip(new, old, strict=True))


def evidence_alike(day: int | None, new: Evidence | None, old: Evidence | None) -> bool:
    """Return whether two pieces of evidence belong to the same check and agree by the tolerances of the judge."""
    if not day or not new or not old or (new.exercise, new.hidden) != (old.exercise, old.hidden):
        return False
    rungs, before = ([outcome.rung for outcome in each.outcomes] for each in (new, old))
    if rungs != before:  # the test inputs of the exercise have changed
        return False
    return judge_of(day, old.exercise).judge(new, old).status == "passed"


def states_alike(new: Any, old: Any) -> bool:
    """Whether two widget states, as JSON values, are equal up to float rounding; in an order, since a page shows it."""
    if isinstance(new, float) and isinstance(old, (int, float)):
        return math.isclose(new, old, rel_tol=1e-6, abs_tol=1e-9) or new == old
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return list(new) == list(old) and all(states_alike(new[name], old[name]) for name in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(states_alike, new, old))
    return new == old


def _output_alike(day: int | None, new: Mapping, old: Mapping) -> bool:
    ours, theirs = ({**output, "data": None} for output in (new, old))
    new_data, old_data = (output.get("data", {}) for output in (new, old))
    return (
        ours == theirs
        and new_data.keys() == old_data.keys()
        and all(_data_alike(day, kind, new_data[kind], old_data[kind]) for kind in new_data)
    )


def _data_alike(day: int | None, kind: str, new: Any, old: Any) -> bool:
    if new == old:
        return True
    if kind == MIME:
        one, other = (evidence_of({"data": {MIME: each}}) for each in (new, old))
        return type(new) is type(old) and evidence_alike(day, one, other)
    return kind == PNG and _pictures_alike(new, old)


def _pictures_alike(new: str, old: str) -> bool:
    from matplotlib.image import imread

    one, other = (imread(io.BytesIO(base64.b64decode(text)), format="png") for text in (new, old))
    return one.shape == other.shape and bool(np.abs(one - other).max() < (STEPS + 0.5) / 255)
