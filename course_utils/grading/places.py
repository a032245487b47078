"""Files and folders, on the disk or in a zip, seen alike: listed, never extracted, no link followed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from .archive import MOST_FOLDERS, Member, list_members, read_member
from .submission import Unreadable, read_file, verify_size

MOST_FILES = 2000  # of one student
LARGEST_STUDENT_LIST = 2**20


@dataclass(frozen=True)
class Place:
    """A file, or a folder if it has `kids`. time: of its last change, in seconds. size: in bytes, on the disk."""

    name: str
    path: Path
    member: str = ""
    inner: str = ""
    time: float = 0.0
    size: int = 0
    problem: str = ""
    kids: Callable[[], Iterable[Place]] | None = None


def open_place(path: Path) -> Place:
    """What a teacher named, a folder or a zip, as a folder."""
    if path.is_dir():
        return Place(path.resolve().name, path, kids=lambda: _on_disk(path))
    return Place(path.stem, path, kids=lambda: _in_zip(list_members(path, path.name), path))


def student_zip(place: Place) -> Place:
    """A zip that a student handed in, as a folder. It cannot be listed when any name in it leads astray."""
    return replace(place, kids=lambda: _in_student_zip(place))


def files_of(
    folder: Place, zipped: bool = False, above: tuple[str, ...] = ()
) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """All files and folders of a student, each with the names of the folders and zips it lies in.

    A folder or zip that cannot be listed comes as a file with a problem. zipped: this lies in a student's zip, in which
    no other is opened.
    """
    try:
        if len(above) > MOST_FOLDERS:
            raise Unreadable(f"{folder.name}: more than {MOST_FOLDERS} folders deep")
        kids = kids_of(folder, MOST_FILES)
    except Unreadable as why:
        yield replace(folder, problem=str(why), kids=None), above
        return
    stamp = next((_timestamp(kid.path) for kid in kids if kid.name == "timestamp.txt" and not kid.member), None)
    for kid in kids:
        if kid.kids is not None:
            yield kid, above
            yield from files_of(kid, zipped, (*above, kid.name))
        elif is_zip(kid.name) and not zipped:
            yield student_zip(kid), above
            yield from files_of(student_zip(kid), True, (*above, kid.name))
        else:
            yield replace(kid, time=stamp or kid.time), above


def kids_of(folder: Place, most: int | None = None) -> list[Place]:
    """What is in a folder, by name, without what is passed over. Raises Unreadable, also for more than `most`."""
    kids = list(islice(folder.kids(), most and most + 1))
    if most and len(kids) > most:
        raise Unreadable(f"{folder.name}: more than {most} files")
    return sorted((kid for kid in kids if not passed_over(kid.name)), key=lambda kid: (kid.name, kid.kids is None))


def is_notebook(name: str) -> bool:
    """Whether a file's name is that of a notebook."""
    return name.lower().endswith(".ipynb")


def is_zip(name: str) -> bool:
    """Whether a file's name is that of a zip."""
    return name.lower().endswith(".zip")


def passed_over(*parts: str) -> bool:
    """Whether this is what systems and tools leave, or what a grader, a build or a reset made."""
    return any(part.startswith(".") or part in ("__MACOSX", "feedback", "release", "kept") for part in parts)


def _on_disk(folder: Path) -> Iterator[Place]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield _entry(entry)
    except OSError as error:
        raise Unreadable(f"{folder.name}: {error.strerror}") from None


def _entry(entry: os.DirEntry) -> Place:
    path = Path(entry.path)
    if entry.is_symlink():
        return Place(entry.name, path, problem=f"{entry.name}: a symbolic link, which is not followed")
    if entry.is_dir(follow_symlinks=False):
        return Place(entry.name, path, kids=lambda: _on_disk(path))
    problem = "" if entry.is_file(follow_symlinks=False) else f"{entry.name}: not a file"
    status = entry.stat(follow_symlinks=False)
    return Place(entry.name, path, time=status.st_mtime, size=status.st_size, problem=problem)


def _in_zip(members: list[Member], path: Path, outer: str = "") -> list[Place]:
    """The members of a zip as a tree. outer: the name of this zip in the one at `path`, if it lies in one."""
    folders: dict[tuple[str, ...], list[Place]] = {(): []}
    for member in members:
        parts = member.parts if member.folder else member.parts[:-1]
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in folders:
                kids = folders[parts[:depth]] = []
                folders[parts[: depth - 1]].append(Place(parts[depth - 1], path, kids=kids.copy))
        if not member.folder and member.parts:
            names = {"member": outer, "inner": member.name} if outer else {"member": member.name}
            folders[parts].append(Place(member.parts[-1], path, **names, time=member.time, problem=member.problem))
    return folders[()]


def _in_student_zip(place: Place) -> list[Place]:
    if place.problem:
        raise Unreadable(place.problem)
    if not place.member:
        verify_size(place.name, place.size)
    source = read_member(place.path, place.member, place.name) if place.member else place.path
    members = list_members(source, place.name, LARGEST_STUDENT_LIST)
    for member in members:
        if member.astray or (member.problem and is_notebook(member.name) and not passed_over(*member.parts)):
            raise Unreadable(f"{place.name}: {member.problem}")
    return _in_zip(members, place.path, place.member)


def _timestamp(path: Path) -> float | None:
    """The time in nbgrader's timestamp.txt, `2026-11-21 16:30:00.000000 UTC`, without its zone."""
    with contextlib.suppress(OSError, ValueError, Unreadable):
        if not path.is_symlink():
            return datetime.fromisoformat(read_file(path).decode()[:19]).timestamp()
    return None
