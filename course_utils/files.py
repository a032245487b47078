"""Write files whole or not at all, replace only folders that a command wrote itself, and strip source text to code."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path

from course_utils.errors import CourseError

ROOM = "make room or give access"
_FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)
_STRING = r"(\"{3}|'{3}|[\"'])(?:\\.|(?!\1).)*\1"
_COMMENT = re.compile(rf"(?s){_STRING}|[ \t]*#[^\n]*")  # strings match first, because one may hold a #
_EMPTY_LINES = re.compile(rf"(?s){_STRING}|\n(?:[ \t]*\n)+")


def write_whole(path: Path, text: str, todo: str = ROOM) -> None:
    """Write a text file as UTF-8, whole or not at all: if the disk is full, the old file stays.

    Args:
        todo: end of the error message, which says what to do if the file cannot be written.

    Raises:
        CourseError: if the file cannot be written; the message names its path.
    """
    write_all({path: text}, todo)


def write_all(files: Mapping[Path, str | bytes], todo: str = ROOM) -> None:
    """Write all files under temporary names beside their places, then rename them; missing folders are made.

    Args:
        files: contents by path. Text is written as UTF-8, with backslash escapes for characters that UTF-8 cannot
            encode; bytes are written as they are.
        todo: as for `write_whole`.

    Raises:
        CourseError: if a file cannot be written. No temporary file is left.
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


def make_zip(files: Mapping[str, bytes], compress: bool = True) -> bytes:
    """Return a zip of files, given by the names that they have in it; the same files give the same bytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name, _FIRST_DAY_OF_ZIP)
            member.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return data.getvalue()


@lru_cache(256)
def code_in(source: str) -> str:
    """Return Python source without docstrings, comments and empty lines, so that its hash changes only with the code.

    The function cuts the text, because `ast.dump` writes a different tree in each version of Python.

    Raises:
        SyntaxError: if the source cannot be parsed.
    """
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                lines[first.lineno - 1 : first.end_lineno] = [""] * ((first.end_lineno or 0) - first.lineno + 1)
    code = _COMMENT.sub(lambda match: match[0] if match[1] else "", "\n".join(lines))
    return _EMPTY_LINES.sub(lambda match: match[0] if match[1] else "\n", code).strip()


def keep_copy(path: Path) -> Path:
    """Copy a file into the folder kept/ beside it, under the first free name, and return the copy's path.

    Raises:
        CourseError: if the copy cannot be written. No partial copy is left.
    """
    folder = copy = path.parent / "kept"
    try:
        content = path.read_bytes()
        folder.mkdir(exist_ok=True)
        for number in count(1):
            copy = folder / f"{path.stem}-{number}{path.suffix}"
            with contextlib.suppress(FileExistsError):
                _write_new(copy, content)
                return copy
    except OSError as error:
        raise CourseError(f"{error.filename or copy}: cannot be written ({error.strerror}); {ROOM}") from None
    raise AssertionError("there is always a free name")


def _write_new(path: Path, content: bytes) -> None:
    file = path.open("xb")
    try:
        with file:
            file.write(content)
    except BaseException:
        path.unlink()
        raise


@dataclass(frozen=True)
class Marker:
    """A file that lists the hash of each file in an output folder; only files that still match may be replaced.

    Attributes:
        name: name of the marker file.
        made_by: noun for what writes the folder, used in error messages.
        patterns: patterns for `Path.glob` that match the files written there.
    """

    name: str
    made_by: str
    patterns: tuple[str, ...] = ("**/*",)

    def write(self, folder: Path) -> None:
        """Write the hashes of the files in a finished folder."""
        (folder / self.name).write_text(json.dumps(self._hashes(folder), indent=1) + "\n", encoding="utf-8")

    def verify(self, folder: Path) -> None:
        """Raise CourseError unless `folder` is new, empty or unchanged since it was written, so no work is lost."""
        if folder.exists() and not folder.is_dir():
            raise CourseError(f"{folder}: is a file; give a folder")
        if not folder.exists() or not any(folder.iterdir()):
            return
        try:
            written = dict(json.loads((folder / self.name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            trouble = f"is not empty, and no {self.made_by} made it"
            raise CourseError(f"{folder}: {trouble}; give a new or an empty folder") from None
        for name, digest in self._hashes(folder).items():
            if written.get(name) != digest:
                trouble = f"was changed or added since its {self.made_by}"
                raise CourseError(f"{folder / name}: {trouble}; move it, or give another folder")

    def _hashes(self, folder: Path) -> dict[str, str]:
        paths = {path for pattern in self.patterns for path in folder.glob(pattern) if not path.is_dir()}
        files = sorted(paths - {folder / self.name})
        return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
