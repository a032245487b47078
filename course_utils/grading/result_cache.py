"""Results kept in a folder, so that nothing is graded twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from course_utils.files import write_whole
from course_utils.grading.results import Graded, Result, Settings, ungraded

KEPT = ".results"


class KeptResults:
    """Results with the students' code, in a folder: a file each, named by its key. What else lies there is ignored."""

    def __init__(self, folder: Path, again: bool = False):
        self.folder, self.again = folder, again
        self.written: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Graded | None:
        """The result under a key, or None. With `again`, only what was put here since."""
        if self.again and key not in self.written:
            return None
        try:
            kept = json.loads((self.folder / f"{key}.json").read_bytes())
            record = kept["graded"]
            if kept["checksum"] != _checksum(key, record):
                return None
            return Graded(**record | {"exercises": tuple(Result(**each) for each in record["exercises"])})
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None

    def put(self, key: str, graded: Graded) -> None:
        """Keep a result, whole or not at all; but none that may be different next time."""
        if ungraded(graded):
            return
        record = graded.as_record() | {"answers": dict(graded.answers)}
        text = json.dumps({"checksum": _checksum(key, record), "graded": record})
        write_whole(self.folder / f"{key}.json", text)
        self.written.add(key)


def result_key(data: bytes, day: int | None, settings: Settings) -> str:
    """What decides over a result, as a hash: the submission, the official side of its day, the limits and the time.

    day: None when only the cells tell it; then every day's official side counts. Raises CourseError when there are no
    exercises for the day.
    """
    days = settings.official.days() if day is None else [day]
    official = {each: settings.official.digest(each) for each in days}
    decisive = [hashlib.sha256(data).hexdigest(), day, official, asdict(settings.limits), settings.seconds]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


def _checksum(key: str, record: dict) -> str:
    return hashlib.sha256((key + json.dumps(record, sort_keys=True)).encode()).hexdigest()
