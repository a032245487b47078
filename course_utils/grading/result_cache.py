"""Keep results in a folder, so that nothing is graded twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from course_utils.files import write_whole
from course_utils.grading.results import Graded, Result, Settings, is_ungraded

STORE = ".results"


class StoredResults:
    """A folder of results with the students' code, one file for each, named by its key. Other files are ignored.

    Args:
        ignore_stored: ignore results that are already in the folder.
    """

    def __init__(self, folder: Path, ignore_stored: bool = False):
        self.folder = folder
        self.ignore_stored = ignore_stored
        self.written: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Graded | None:
        """Return the result under a key, or None. With `ignore_stored`, only this object's own results count."""
        if self.ignore_stored and key not in self.written:
            return None
        try:
            stored = json.loads((self.folder / f"{key}.json").read_bytes())
            record = stored["graded"]
            if stored["checksum"] != _checksum(key, record):
                return None
            return Graded(**record | {"exercises": tuple(Result.from_record(each) for each in record["exercises"])})
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None

    def put(self, key: str, graded: Graded) -> None:
        """Write a result, whole or not at all; skip one that `is_ungraded`: it may differ next time."""
        if is_ungraded(graded):
            return
        record = graded.as_record() | {"answers": dict(graded.answers)}
        text = json.dumps({"checksum": _checksum(key, record), "graded": record})
        write_whole(self.folder / f"{key}.json", text)
        self.written.add(key)


def result_key(data: bytes, day: int | None, settings: Settings) -> str:
    """Return a hash of what decides a result: the submission, the answer key of its day, the limits and the time.

    Args:
        data: the submitted file.
        day: None if only the cells tell it; then the answer key of every day counts.

    Raises:
        CourseError: if there are no exercises for the day.
    """
    days = settings.answer_key.days() if day is None else [day]
    answer_key = {each: settings.answer_key.digest(each) for each in days}
    decisive = [hashlib.sha256(data).hexdigest(), day, answer_key, asdict(settings.limits), settings.seconds]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


def _checksum(key: str, record: dict) -> str:
    return hashlib.sha256((key + json.dumps(record, sort_keys=True)).encode()).hexdigest()
