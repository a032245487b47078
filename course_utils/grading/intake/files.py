"""Read the files that students send, with limits on their size; zips are read in memory and never extracted."""

from __future__ import annotations

import contextlib
import io
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from course_utils.errors import Unreadable

MAX_FILE_BYTES = 50 * 2**20
MAX_LIST_BYTES = 16 * 2**20  # bytes of a zip's list of members; enough for about 100,000 members
MAX_FOLDERS = 20
MAX_COMPRESSION_RATIO = 200
UNSUSPICIOUS = 16 * 2**20
_PIECE = 2**16
_BROKEN = (zipfile.BadZipFile, RuntimeError, EOFError, OSError, ValueError, OverflowError, struct.error, zlib.error)


@dataclass(frozen=True)
class Member:
    """A file or folder in a zip.

    Attributes:
        parts: the folders and the file of its name, without parts such as `..` that lead elsewhere.
        time: last change in Unix seconds; 0 if the zip gives no valid date.
        problem: reason why the member must not be read; empty if it may be.
        astray: whether the problem is the member's name.
    """

    name: str
    parts: tuple[str, ...]
    time: float
    folder: bool = False
    problem: str = ""
    astray: bool = False


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
    """Raise Unreadable if a file has more than MAX_FILE_BYTES bytes."""
    if size > MAX_FILE_BYTES:
        raise Unreadable(f"{name}: {size / 2**20:.0f} MiB, more than the {MAX_FILE_BYTES >> 20} allowed")


def list_members(source: Path | bytes, title: str, largest_list: int = MAX_LIST_BYTES) -> list[Member]:
    """Return the members of a zip, each name once.

    Args:
        source: the zip file, or its content.
        title: name of the zip for error messages.
        largest_list: most bytes that the zip's list of members may have.

    Raises:
        Unreadable: the source is no zip, or its list of members is too large.
    """
    with _open_zip(source, title, largest_list) as archive:
        named = {_member_name(info): info for info in archive.infolist()}
        times = Counter(_member_name(info) for info in archive.infolist())
    return [_as_member(name, info, times[name]) for name, info in named.items()]


def read_member(source: Path | bytes, name: str, title: str) -> bytes:
    """Return the content of a file in a zip.

    Raises:
        Unreadable: the zip is broken, the file is missing or too large, or `list_members` reports a problem with it.
    """
    with _open_zip(source, title) as archive:
        infos = [info for info in archive.infolist() if _member_name(info) == name]
        if not infos:
            raise Unreadable(f"{title}: {name} is not in it")
        if problem := _as_member(name, infos[0], len(infos)).problem:
            raise Unreadable(f"{title}: {problem}")
        pieces = []
        size = 0
        with archive.open(infos[0]) as file:
            while piece := file.read(_PIECE):
                pieces.append(piece)
                size += len(piece)
                verify_size(name, size)
        return b"".join(pieces)


@contextlib.contextmanager
def _open_zip(source: Path | bytes, title: str, largest_list: int = MAX_LIST_BYTES) -> Iterator[zipfile.ZipFile]:
    try:
        if isinstance(source, Path) and not source.is_file():
            raise Unreadable(f"{title}: {'not a file' if source.exists() else 'no such file'}")
        file = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        with file, zipfile.ZipFile(_Bounded(file, largest_list)) as archive:
            yield archive
    except _BROKEN as error:
        raise Unreadable(f"{title}: not a zip, or a broken one ({str(error)[:80]})") from None


class _Bounded:
    """A file that limits the size of one read, because zipfile reads the whole list of members at once."""

    def __init__(self, file: BinaryIO, largest: int):
        self._file = file
        self._largest = largest

    def read(self, size: int = -1) -> bytes:
        if size > self._largest:
            raise zipfile.BadZipFile("too many members")
        return self._file.read(self._largest if size < 0 else size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _member_name(info: zipfile.ZipInfo) -> str:
    """Return a member's name. Without the UTF-8 flag zipfile decodes it as code page 437, but it may still be UTF-8."""
    name = info.orig_filename if "\0" in info.orig_filename else info.filename
    if not info.flag_bits & 0x800 and not name.isascii():
        with contextlib.suppress(UnicodeError):
            return name.encode("cp437").decode("utf-8")
    return name


def _as_member(name: str, info: zipfile.ZipInfo, times: int) -> Member:
    parts = tuple(part for part in re.split(r"[\\/]", name) if part not in ("", ".", ".."))
    astray = _name_problem(name, parts)
    problem = astray or _content_problem(name, info, times)
    if len(parts) > MAX_FOLDERS:
        parts = (parts[0], parts[-1])
    try:
        time = datetime(*info.date_time).timestamp()
    except (ValueError, OverflowError, OSError):
        time = 0.0
    return Member(name, parts, time, name.endswith("/"), problem, bool(astray))


def _name_problem(name: str, parts: tuple[str, ...]) -> str:
    """Return what is wrong with a member's name; empty if nothing is."""
    short = name[:80]
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in re.split(r"[\\/]", name):
        return f"{short} would lead out of the zip"
    if "\\" in name:
        return f"{short} has a backslash in its name"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return f"{short} has a control character in its name"
    return f"{short} lies more than {MAX_FOLDERS} folders deep" if len(parts) > MAX_FOLDERS else ""


def _content_problem(name: str, info: zipfile.ZipInfo, times: int) -> str:
    """Return why a member whose name is fine must not be read; empty if it may be."""
    if times > 1:
        return f"{name} is in it {times} times"
    if info.flag_bits & 0x1:
        return f"{name} is encrypted; hand it in without a password"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"{name} is compressed in an unusual way; make an ordinary zip"
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return f"{name} is a symbolic link or another special file"
    if info.file_size > MAX_FILE_BYTES:
        return f"{name}: {info.file_size / 2**20:.0f} MiB, more than the {MAX_FILE_BYTES >> 20} allowed"
    if info.file_size > max(UNSUSPICIOUS, MAX_COMPRESSION_RATIO * info.compress_size):
        return f"{name} is {info.file_size / max(1, info.compress_size):.0f} times as large unpacked: a zip bomb"
    return ""
