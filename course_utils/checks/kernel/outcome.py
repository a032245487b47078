"""The results of an answer on the rungs of its exercise, and the line of JSON in which a notebook stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps  # bound here, before an answer runs that may replace it in its module
from typing import Any

import numpy as np

from course_utils.checks.kernel.result_numbers import Numbers

MIME = "application/vnd.course.evidence+json"
NO_RESULT = "no result"


@dataclass(frozen=True)
class Outcome:
    """The result of an answer on one rung.

    Attributes:
        rung: the name of the rung.
        values: the numbers of the result, by part.
        error: the error that the answer raised, or "".
    """

    rung: str
    values: Mapping[str, Numbers] = field(default_factory=dict)
    error: str = ""

    def array(self, part: str) -> np.ndarray | None:
        """Return a part of the result as an array; None where there is no such part."""
        return self.values[part].as_array() if part in self.values else None


@dataclass(frozen=True)
class ForbiddenCall:
    """A forbidden call that an answer made.

    Attributes:
        line: the line of the notebook cell that was running; 0 if there was none.
    """

    name: str = ""
    line: int = 0


@dataclass(frozen=True)
class Evidence:
    """All outcomes of an exercise, on visible or on hidden inputs, and the forbidden calls that were recorded."""

    exercise: str
    hidden: bool
    outcomes: Sequence[Outcome]
    called: Sequence[ForbiddenCall] = ()


def as_json(evidence: Evidence) -> dict[str, Any]:
    """Return evidence as dicts and lists, which `read_evidence` takes."""
    outcomes = [_outcome_as_json(each) for each in evidence.outcomes]
    called = [{"name": each.name, "line": each.line} for each in evidence.called]
    record = {"exercise": evidence.exercise, "hidden": evidence.hidden, "outcomes": outcomes}
    return record | ({"called": called} if called else {})


def as_line(evidence: Evidence) -> str:
    """Return evidence as one line of JSON for an output of a notebook, where an object would take a line per number."""
    return dumps(as_json(evidence), separators=(",", ":"), ensure_ascii=False)


def read_evidence(record: Mapping[str, Any]) -> Evidence:
    """Read what `as_json` wrote. It may come from a learner's kernel, so anything that no check writes is left out."""
    outcomes = [_read_outcome(each) for each in _dicts(record.get("outcomes")) if isinstance(each.get("rung"), str)]
    called = [ForbiddenCall(_text(each.get("name")), _line(each.get("line"))) for each in _dicts(record.get("called"))]
    if record.get("called") and not called:
        called = [ForbiddenCall()]
    return Evidence(_text(record.get("exercise")), record.get("hidden") is True, outcomes, called)


def evidence_of(output: Mapping[str, Any]) -> Evidence | None:
    """Return the evidence in an output of a notebook; None if there is none or it cannot be read."""
    line = output.get("data", {}).get(MIME)
    with suppress(ValueError, RecursionError):
        record = json.loads(line) if isinstance(line, str) else None
        if isinstance(record, Mapping) and record:
            return read_evidence(record)
    return None


def is_hidden(output: Mapping[str, Any]) -> bool:
    """Return whether an output of a notebook holds evidence on hidden inputs."""
    evidence = evidence_of(output)
    return evidence is not None and evidence.hidden


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    if outcome.error:
        return {"rung": outcome.rung, "error": outcome.error}
    return {"rung": outcome.rung, "values": {part: array.as_json() for part, array in outcome.values.items()}}


def _read_outcome(record: Mapping[str, Any]) -> Outcome:
    if "error" in record:
        return Outcome(record["rung"], error=_text(record["error"]) or NO_RESULT)
    parts = record.get("values")
    values = {part: Numbers.read(array) for part, array in parts.items()} if isinstance(parts, Mapping) else {}
    return Outcome(record["rung"], {part: array for part, array in values.items() if array is not None})


def _dicts(data: Any) -> list[Mapping[str, Any]]:
    return [each for each in data if isinstance(each, Mapping)] if isinstance(data, list) else []


def _text(data: Any) -> str:
    return data if isinstance(data, str) else ""


def _line(data: Any) -> int:
    return data if type(data) is int and data > 0 else 0
