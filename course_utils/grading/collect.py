"""Find the submissions in what a teacher has: notebooks, folders and zips."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .submission import read_file


@dataclass(frozen=True)
class Submission:
    """One notebook of one student. Nothing of it was read yet.

    day: as its place tells, None when only its cells can. member: its name inside the zip at `path`, if it lies in one.
    """

    student: str
    path: Path
    day: int | None = None
    member: str = ""

    @property
    def name(self) -> str:
        """The file's own name, without folders."""
        return Path(self.member).name or self.path.name

    def read(self) -> bytes:
        """The bytes of the notebook. Raises Unreadable."""
        return read_file(self.path)
