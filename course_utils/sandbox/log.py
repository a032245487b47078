"""A log of kernels, to find out why one failed: what each kernel was asked, what came back and how it ended.

Each event is a line of JSON, in order of time: {"time", "process", "student", "kernel", "event", …}. The events of a
kernel are started, cell (its source), answered (seconds, bytes received, the error if it raised one), lost (status,
why) and stopped (seconds worked). The grader's processes write each line at once; student code never sees the file.
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
    """Create an empty log and return its absolute path.

    Raises:
        CourseError: if nothing can be written there.
    """
    try:
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{path}: no log can be written there ({error.strerror})") from None
    return str(path.absolute())


class KernelLog:
    """Writes the events of one kernel to a log, or nowhere if the path is empty."""

    def __init__(self, path: str = "", student: str = ""):
        self.path = path
        self.student = student
        self.kernel = f"{os.getpid()}.{next(_numbers)}" if path else ""

    def note(self, event: str, **facts: Any) -> None:
        """Write an event. If the log can no longer be written, grading goes on."""
        if not self.path:
            return
        about = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "process": os.getpid()}
        facts = {name: _short(value) for name, value in facts.items()}
        line = json.dumps(about | {"student": self.student, "kernel": self.kernel, "event": event} | facts)
        with contextlib.suppress(OSError), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def _short(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value
