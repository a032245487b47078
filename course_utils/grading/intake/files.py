"""Read files that students send, with limits on their size."""

from __future__ import annotations

import stat
from pathlib import Path

from course_utils.errors import Unreadable

LARGEST_FILE = 50 * 2**20


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises Unreadable if it is missing, no regular file, or too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path}: not a file")
        verify_size(path.name, status.st_size)
        return path.read_bytes()
    except FileNotFoundError:
        raise Unreadable(f"{path}: no such file") from None
    except OSError as error:
        raise Unreadable(f"{path.name}: {error.strerror}") from None


def verify_size(name: str, size: int) -> None:
    """Raise Unreadable if a file has more than LARGEST_FILE bytes."""
    if size > LARGEST_FILE:
        raise Unreadable(f"{name}: {size / 2**20:.0f} MiB, more than the {LARGEST_FILE >> 20} allowed")
