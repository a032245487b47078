"""A log of kernels, to find out why one failed: what each was asked, what came back and how it ended.

Lines of JSON, one an event, by time: {"time", "process", "student", "kernel", "event", …}. The events of a kernel are
started, cell (its source), answered (seconds, bytes heard, the error if it raised one), lost (status, why) and stopped
(seconds worked). Student code never sees the file: the grader's processes write it, each line at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError

LONGEST = 20_000  # characters of a source that are kept
_numbers = itertools.count(1)


def begin_log(path: Path) -> str:
    """Make an empty log and return its absolute path. Raises CourseError when nothing can be written there."""
    try:
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{path}: no log can be written there ({error.strerror})") from None
    return str(path.absolute())


class KernelLog:
    """What one kernel does, written to a log; to none where the path is empty."""

    def __init__(self, path: str = "", student: str = ""):
        self.path, self.student = path, student
        self.kernel = f"{os.getpid()}.{next(_numbers)}" if path else ""

    def note(self, event: str, **facts: Any) -> None:
        """Add an event. A log that can no longer be written stops no grading."""
        if not self.path:
            return
        about = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "process": os.getpid()}
        facts = {name: _short(value) for name, value in facts.items()}
        line = json.dumps(about | {"student": self.student, "kernel": self.kernel, "event": event} | facts)
        with contextlib.suppress(OSError), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def _short(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value
