"""Files and folders, on the disk or in a zip, seen alike: listed, never extracted, no link followed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from course_utils.errors import Unreadable
from course_utils.grading.intake.archive import MOST_FOLDERS, Member, list_members, read_member
from course_utils.grading.intake.files import read_file, verify_size

MOST_FILES = 2000  # of one student
LARGEST_STUDENT_LIST = 2**20


@dataclass(frozen=True)
class Node:
    """A file, or a folder if it has `children`. time: of its last change, in seconds. size: in bytes, on the disk."""

    name: str
    path: Path
    member: str = ""
    inner: str = ""
    time: float = 0.0
    size: int = 0
    problem: str = ""
    children: Callable[[], Iterable[Node]] | None = None


def open_node(path: Path) -> Node:
    """What a teacher named, a folder or a zip, as a folder."""
    if path.is_dir():
        return Node(path.resolve().name, path, children=lambda: _on_disk(path))
    return Node(path.stem, path, children=lambda: _in_zip(list_members(path, path.name), path))


def student_zip(node: Node) -> Node:
    """A zip that a student handed in, as a folder. It cannot be listed when any name in it leads astray."""
    return replace(node, children=lambda: _in_student_zip(node))


def files_of(folder: Node, zipped: bool = False, above: tuple[str, ...] = ()) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """All files and folders of a student, each with the names of the folders and zips it lies in.

    A folder or zip that cannot be listed comes as a file with a problem. zipped: this lies in a student's zip, in which
    no other is opened.
    """
    try:
        if len(above) > MOST_FOLDERS:
            raise Unreadable(f"{folder.name}: more than {MOST_FOLDERS} folders deep")
        children = children_of(folder, MOST_FILES)
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
    """What is in a folder, by name, without what is passed over. Raises Unreadable, also for more than `most`."""
    listed = folder.children() if folder.children else ()
    children = list(islice(listed, most and most + 1))
    if most and len(children) > most:
        raise Unreadable(f"{folder.name}: more than {most} files")
    return sorted(
        (child for child in children if not passed_over(child.name)),
        key=lambda child: (child.name, child.children is None),
    )


def is_notebook(name: str) -> bool:
    """Whether a file's name is that of a notebook."""
    return name.lower().endswith(".ipynb")


def is_zip(name: str) -> bool:
    """Whether a file's name is that of a zip."""
    return name.lower().endswith(".zip")


def passed_over(*parts: str) -> bool:
    """Whether this is what systems and tools leave, or what a grader, a build or a reset made."""
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
    """The members of a zip as a tree. outer: the name of this zip in the one at `path`, if it lies in one."""
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
    members = list_members(source, node.name, LARGEST_STUDENT_LIST)
    for member in members:
        if member.astray or (member.problem and is_notebook(member.name) and not passed_over(*member.parts)):
            raise Unreadable(f"{node.name}: {member.problem}")
    return _in_zip(members, node.path, node.member)


def _timestamp(path: Path) -> float | None:
    """The time in nbgrader's timestamp.txt, `2026-11-21 16:30:00.000000 UTC`, without its zone."""
    with contextlib.suppress(OSError, ValueError, Unreadable):
        if not path.is_symlink():
            return datetime.fromisoformat(read_file(path).decode()[:19]).timestamp()
    return None
