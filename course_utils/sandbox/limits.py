"""What one kernel may use, how many kernels can work at once, and how they start, with all defaults."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from course_utils.time_limits import GRADED_SECONDS, IDLE_SECONDS, KERNEL_SECONDS, START_SECONDS


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """The limits of one kernel.

    Work is processor time of the kernel's own process. Time in which a busy machine gives the kernel no turn counts
    neither as work nor as sleep. If the system does not tell these apart, a limit is WALL times as long by the clock.

    Attributes:
        cell_seconds: work of one cell.
        idle_seconds: time that a cell may sleep.
        start_seconds: time until the kernel answers, and the work of a cell that everybody is given.
        output_bytes: what a cell may print, return and display.
        memory_bytes: data of the kernel.
        cpu_seconds: processor time of the kernel in all, which the system itself counts.
        scratch_bytes: files of the kernel, if it has no file system of its own for them.
    """

    cell_seconds: float = GRADED_SECONDS
    idle_seconds: float = IDLE_SECONDS
    start_seconds: float = START_SECONDS
    output_bytes: int = 2**20
    memory_bytes: int = 4 * 2**30
    cpu_seconds: float = KERNEL_SECONDS
    scratch_bytes: int = 2**28


@dataclass(frozen=True)
class Start:
    """How kernels start.

    Attributes:
        confinement: "best", "full" or a level, as for `confinement.open_kernels`.
        warm: whether kernels are forked from a process that has imported what notebooks import.
        server: the folder of a running server; without one, this process starts its own.
    """

    confinement: str = "best"
    warm: bool = True
    server: str = ""


@contextmanager
def exclude_from_limit(most: float) -> Iterator[None]:
    """Do not count the processor time of a block towards the limit of this process, up to `most` seconds."""
    import resource  # exists only on POSIX systems, and only there is a process limited

    limit, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if limit == resource.RLIM_INFINITY:
        yield
        return

    def allow(more: float) -> None:
        seconds = limit + math.ceil(more)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard < 0 else min(seconds, hard), hard))

    began = time.process_time()
    allow(most)
    try:
        yield
    finally:
        allow(time.process_time() - began)
