"""Limit how much a kernel may use; the system itself counts it."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Mapping

from .system import GIB

MAX_FILE_BYTES = 16 * 2**20
MAX_FILES = 256
MAX_PROCESSES = 512


def set_limits(limits: Mapping[str, float], warm: bool, level: str) -> None:
    """Set the limits of this process and of all that it starts.

    Args:
        limits: "memory" in bytes, "seconds" of CPU time.
        warm: whether libraries are loaded already; a cold kernel gets more address space for them.
        level: at "bubblewrap", processes are limited, too.
    """
    memory = int(limits["memory"])
    values = {
        "DATA": memory,  # "a memory bomb step by step"
        # "a memory bomb at once"; this bounds shared memory too, which does not count as data
        "AS": memory + _mapped_bytes() + (0 if warm else 8 * GIB),
        "CPU": int(limits["seconds"]),  # "a computation that holds the interpreter", should the grader die
        "FSIZE": MAX_FILE_BYTES,  # "a file without end"
        "NOFILE": MAX_FILES,  # "a flood of comms" cannot end the server by its open files
        "CORE": 0,  # "a crash in C" leaves no core on the disk
    }
    if level == "bubblewrap":  # "a fork bomb"; it counts threads too, and outside a user namespace all that a user runs
        values["NPROC"] = MAX_PROCESSES
    for name, value in values.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        with contextlib.suppress(ValueError, OSError):  # some systems do not know all of them
            resource.setrlimit(kind, (value, value))


def _mapped_bytes() -> int:
    """Return the bytes of address space in use."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 8 * GIB
