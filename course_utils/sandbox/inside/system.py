"""The calls of the C library that the walls are made of, with the kernel's own names for its numbers."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
GIB = 2**30
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
_LINUX_CAPABILITY_VERSION_3 = 0x20080522


def call(result: int, what: str) -> int:
    """The result of a call. Raises OSError, with the system's reason, where it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def set_dumpable(value: int) -> None:
    """0: no other process of this user may look into this one, its memory or its open files; 1: as usual.

    Stops "a neighbour's kernel" and "a search of all processes", which belong to the same user.
    """
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_DUMPABLE, value)


def die_with_parent() -> None:
    """The system kills this process when its parent ends, however that ends: "a kernel that will not go"."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def no_new_privileges() -> None:
    """No program started from here gains rights, such as those of a set-user-id bit. Filters need it, too."""
    if sys.platform == "linux":
        call(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def drop_capabilities() -> None:
    """Keep nothing of what root may do, or the owner of a namespace: it could undo every mount of `namespaces`."""
    if sys.platform != "linux":
        return
    header = (ctypes.c_uint32 * 2)(_LINUX_CAPABILITY_VERSION_3, 0)
    call(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def write_text(path: str, text: str) -> None:
    """Write a text to a file that is there or can be made."""
    with open(path, "w") as file:
        file.write(text)
