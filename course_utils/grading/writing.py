"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .errors import CourseError


def write_whole(path: Path, text: str) -> None:
    """Write a text as UTF-8 beside its place, and move it there. A full disk leaves what was there before.

    Characters that UTF-8 cannot hold are spelt out. Raises CourseError, with the path, when nothing can be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        todo = "make room or give access, and run the same command again: what is graded is kept"
        raise CourseError(f"{path}: cannot be written ({error.strerror}); {todo}") from None
