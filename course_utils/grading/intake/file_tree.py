"""One view of files and folders on the disk and in zips. Nothing is extracted, and no link is followed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from course_utils.errors import Unreadable
from course_utils.grading.intake.files import (
    MAX_FOLDERS,
    Member,
    list_members,
    read_file,
    read_member,
    verify_size,
)

MAX_FILES = 2000  # per student
MAX_STUDENT_LIST_BYTES = 2**20  # bytes of the list of members of a student's zip


@dataclass(frozen=True)
class Node:
    """A file, or a folder if it has `children`.

    Attributes:
        path: the file or folder on the disk, or the zip that holds it.
        member: name of the file in the zip at `path`.
        inner: name of the file in the zip `member`.
        time: last change in Unix seconds; 0 if unknown.
        size: bytes on the disk; 0 for a member of a zip.
        problem: why the file cannot be read; empty if no reason is known.
        children: lists a folder when called; None for a file.
    """

    name: str
    path: Path
    member: str = ""
    inner: str = ""
    time: float = 0.0
    size: int = 0
    problem: str = ""
    children: Callable[[], Iterable[Node]] | None = None


def open_node(path: Path) -> Node:
    """Return a folder or zip that a teacher named, as a folder."""
    if path.is_dir():
        return Node(path.resolve().name, path, children=lambda: _on_disk(path))
    return Node(path.stem, path, children=lambda: _in_zip(list_members(path, path.name), path))


def student_zip(node: Node) -> Node:
    """Return a zip that a student handed in, as a folder.

    Listing it raises Unreadable if any member has an unsafe name, or if a notebook in it must not be read.
    """
    return replace(node, children=lambda: _in_student_zip(node))


def files_of(folder: Node, zipped: bool = False, above: tuple[str, ...] = ()) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Yield all files and folders of a student, each with the names of the folders and zips above it.

    A folder or zip that cannot be listed is yielded as a file with a `problem`.

    Args:
        zipped: whether the folder lies in a student's zip, where further zips are not opened.
        above: names of the folders and zips above the folder's entries.
    """
    try:
        if len(above) > MAX_FOLDERS:
            raise Unreadable(f"{folder.name}: more than {MAX_FOLDERS} folders deep")
        children = children_of(folder, MAX_FILES)
    except Unreadable as why:
        yield replace(folder, problem=str(why), children=None), above
        return
    stamp = next(
        (_timestamp(child.path) for child in children if child.name == "timestamp.txt" and not child.member), None
    )
    for child in children:
        if child.children is not None:
            yield child, above
            yield from files_of(child, zipped, (*above, child.name))
        elif is_zip(child.name) and not zipped:
            yield student_zip(child), above
            yield from files_of(student_zip(child), True, (*above, child.name))
        else:
            yield replace(child, time=stamp or child.time), above


def children_of(folder: Node, most: int | None = None) -> list[Node]:
    """Return a folder's entries, sorted by name and without those that `passed_over` rejects.

    Raises:
        Unreadable: the folder cannot be listed, or has more than `most` entries.
    """
    listed = folder.children() if folder.children else ()
    children = list(islice(listed, most and most + 1))
    if most and len(children) > most:
        raise Unreadable(f"{folder.name}: more than {most} files")
    return sorted(
        (child for child in children if not passed_over(child.name)),
        key=lambda child: (child.name, child.children is None),
    )


def is_notebook(name: str) -> bool:
    """Return whether a file name ends as a notebook's does."""
    return name.lower().endswith(".ipynb")


def is_zip(name: str) -> bool:
    """Return whether a file name ends as a zip's does."""
    return name.lower().endswith(".zip")


def passed_over(*parts: str) -> bool:
    """Return whether any part of a path is hidden, or was made by an operating system, a grader, a build or a reset."""
    return any(part.startswith(".") or part in ("__MACOSX", "feedback", "release", "kept") for part in parts)


def _on_disk(folder: Path) -> Iterator[Node]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield _entry(entry)
    except OSError as error:
        raise Unreadable(f"{folder.name}: {error.strerror}") from None


def _entry(entry: os.DirEntry) -> Node:
    path = Path(entry.path)
    if entry.is_symlink():
        return Node(entry.name, path, problem=f"{entry.name}: a symbolic link, which is not followed")
    if entry.is_dir(follow_symlinks=False):
        return Node(entry.name, path, children=lambda: _on_disk(path))
    problem = "" if entry.is_file(follow_symlinks=False) else f"{entry.name}: not a file"
    status = entry.stat(follow_symlinks=False)
    return Node(entry.name, path, time=status.st_mtime, size=status.st_size, problem=problem)


def _in_zip(members: list[Member], path: Path, outer: str = "") -> list[Node]:
    """Return the members of a zip as a tree. `outer` is the zip's own name in the zip at `path`, if it lies in one."""
    folders: dict[tuple[str, ...], list[Node]] = {(): []}
    for member in members:
        parts = member.parts if member.folder else member.parts[:-1]
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in folders:
                children = folders[parts[:depth]] = []
                folders[parts[: depth - 1]].append(Node(parts[depth - 1], path, children=children.copy))
        if not member.folder and member.parts:
            names = (outer, member.name) if outer else (member.name, "")
            folders[parts].append(Node(member.parts[-1], path, *names, time=member.time, problem=member.problem))
    return folders[()]


def _in_student_zip(node: Node) -> list[Node]:
    if node.problem:
        raise Unreadable(node.problem)
    if not node.member:
        verify_size(node.name, node.size)
    source = read_member(node.path, node.member, node.name) if node.member else node.path
    members = list_members(source, node.name, MAX_STUDENT_LIST_BYTES)
    for member in members:
        if member.astray or (member.problem and is_notebook(member.name) and not passed_over(*member.parts)):
            raise Unreadable(f"{node.name}: {member.problem}")
    return _in_zip(members, node.path, node.member)


def _timestamp(path: Path) -> float | None:
    """Return the time in nbgrader's timestamp.txt, `2026-11-21 16:30:00.000000 UTC`; its time zone is ignored."""
    with contextlib.suppress(OSError, ValueError, Unreadable):
        if not path.is_symlink():
            return datetime.fromisoformat(read_file(path).decode()[:19]).timestamp()
    return None
