"""What one kernel may use, how many kernels can work at once, and how they start, with all defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass

WALL = 12  # times a limit on work, by the clock: where work cannot be told from waiting, and as a last limit

NOTEBOOK_SECONDS = 300.0  # of work, for all cells of a notebook together


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """The limits of one kernel.

    Work is processor time of the kernel's own process. Time in which a busy machine gives the kernel no turn counts
    neither as work nor as sleep. If the system does not tell these apart, a limit is WALL times as long by the clock.
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
