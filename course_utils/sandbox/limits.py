"""What one kernel may use, how many can work at once, and how they start: every default of it stands here."""

from __future__ import annotations

import os
from dataclasses import dataclass

WALL = 12  # times as long by the clock as of work, where work cannot be told from waiting, and behind all else

NOTEBOOK_SECONDS = 300.0  # of work, for all cells of a notebook together


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """Of one kernel.

    Work is processor time of the kernel's own process. A turn that a busy machine does not give is neither work nor
    sleep. Where the system does not tell one from the other, the clock counts, WALL times as long.
    """

    cell_seconds: float = 10.0
    """Of work, for a cell."""
    idle_seconds: float = 20.0
    """That a cell may sleep."""
    start_seconds: float = 60.0
    """Until the kernel answers; also for a cell that everybody is given."""
    output_bytes: int = 2**20
    """That a cell may print, return and display."""
    memory_bytes: int = 4 * 2**30
    """Of data."""
    cpu_seconds: float = 600.0
    """Of processor time in all, which the system itself counts."""
    scratch_bytes: int = 2**28
    """Of files, where no file system of the kernel's own holds them."""


@dataclass(frozen=True)
class Start:
    """How kernels start."""

    confinement: str = "best"
    """As for `confinement.open_kernels`: best, full, or a level."""
    warm: bool = True
    """Forked from a process that has imported what notebooks import."""
    server: str = ""
    """The folder of a server that runs; without it, this process starts its own."""
