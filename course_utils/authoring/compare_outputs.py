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


def outputs_alike(day: int | None, given: Sequence[Mapping], wanted: Sequence[Mapping]) -> bool:
    """Whether two runs of a cell of this day's notebook gave the same outputs."""
    return len(given) == len(wanted) and all(_alike(day, a, b) for a, b in zip(given, wanted, strict=True))


def evidence_alike(day: int | None, given: Evidence | None, wanted: Evidence | None) -> bool:
    """Whether two pieces of evidence belong to the same check and agree by the tolerances of the judge."""
    if not day or not given or not wanted or (given.exercise, given.hidden) != (wanted.exercise, wanted.hidden):
        return False
    rungs, before = ([outcome.rung for outcome in each.outcomes] for each in (given, wanted))
    if rungs != before:  # the test inputs of the exercise have changed
        return False
    return judge_of(day, wanted.exercise).judge(given, wanted).status == "passed"


def states_alike(given: Any, wanted: Any) -> bool:
    """Whether two widget states, as JSON values, are equal up to float rounding; in an order, since a page shows it."""
    if isinstance(given, float) and isinstance(wanted, (int, float)):
        return math.isclose(given, wanted, rel_tol=1e-6, abs_tol=1e-9) or given == wanted
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return list(given) == list(wanted) and all(states_alike(given[name], wanted[name]) for name in given)
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(states_alike, given, wanted))
    return given == wanted


def _alike(day: int | None, given: Mapping, wanted: Mapping) -> bool:
    ours, theirs = ({**output, "data": None} for output in (given, wanted))
    shown, expected = (output.get("data", {}) for output in (given, wanted))
    return (
        ours == theirs
        and shown.keys() == expected.keys()
        and all(_same(day, kind, shown[kind], expected[kind]) for kind in shown)
    )


def _same(day: int | None, kind: str, given: Any, wanted: Any) -> bool:
    if given == wanted:
        return True
    if kind == MIME:
        one, other = (evidence_of({"data": {MIME: each}}) for each in (given, wanted))
        return type(given) is type(wanted) and evidence_alike(day, one, other)
    return kind == PNG and _pictures_alike(given, wanted)


def _pictures_alike(given: str, wanted: str) -> bool:
    from matplotlib.image import imread

    one, other = (imread(io.BytesIO(base64.b64decode(text)), format="png") for text in (given, wanted))
    return one.shape == other.shape and bool(np.abs(one - other).max() < (STEPS + 0.5) / 255)
