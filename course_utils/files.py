"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from course_utils.errors import CourseError

ROOM = "make room or give access"


def write_whole(path: Path, text: str, todo: str = ROOM) -> None:
    """Write a text as UTF-8 beside its place, and move it there. A full disk leaves what was there before.

    todo: what to do when that cannot be done. Raises CourseError, with the path, when nothing can be written.
    """
    write_all({path: text}, todo)


def write_all(files: Mapping[Path, str | bytes], todo: str = ROOM) -> None:
    """Write every text as UTF-8, or bytes as they are, beside its place, then move all into place; folders are made.

    Characters that UTF-8 cannot hold are spelt out. Raises CourseError as `write_whole`, and leaves nothing unfinished.
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            waiting.append((beside, path))
            if isinstance(content, bytes):
                beside.write_bytes(content)
            else:
                beside.write_text(content, encoding="utf-8", errors="backslashreplace", newline="\n")
        for beside, path in waiting:
            os.replace(beside, path)
    except OSError as error:
        raise CourseError(f"{path}: cannot be written ({error.strerror}); {todo}") from None
    finally:
        for beside, _ in waiting:
            with contextlib.suppress(OSError):
                beside.unlink()


def keep_copy(path: Path) -> Path:
    """Copy a file into the folder kept/ beside it, under the first free name; the place of the copy.

    Raises CourseError when nothing can be written there.
    """
    folder = path.parent / "kept"
    try:
        content = path.read_bytes()
        folder.mkdir(exist_ok=True)
        for number in count(1):
            copy = folder / f"{path.stem}-{number}{path.suffix}"
            with contextlib.suppress(FileExistsError), copy.open("xb") as file:
                file.write(content)
                return copy
    except OSError as error:
        raise CourseError(f"{error.filename}: cannot be written ({error.strerror}); {ROOM}") from None
    raise AssertionError("there is always a free name")
