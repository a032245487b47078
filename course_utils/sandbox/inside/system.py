"""The C library calls that confine a process, with Linux's own names for the numbers that they take."""

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
    """Return the result of a call; raise OSError with the system's reason if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def set_dumpable(value: int) -> None:
    """Set whether other processes of this user may look into this one.

    This stops "a neighbour's kernel" and "a search of all processes", which belong to the same user.

    Args:
        value: 0 closes the memory and open files of this process to them; 1 is the usual state.
    """
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_DUMPABLE, value)


def die_with_parent() -> None:
    """Let the system kill this process when its parent ends, however it ends: "a kernel that will not go"."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def no_new_privileges() -> None:
    """Stop programs started from here from gaining rights, as by a set-user-id bit. Filters need this, too."""
    if sys.platform == "linux":
        call(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def drop_capabilities() -> None:
    """Give up all rights of root or of a namespace's owner, which could undo every mount of `namespaces`."""
    if sys.platform != "linux":
        return
    header = (ctypes.c_uint32 * 2)(_LINUX_CAPABILITY_VERSION_3, 0)
    call(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def write_text(path: str, text: str) -> None:
    """Write a text to a file, and make the file if it does not exist."""
    with open(path, "w") as file:
        file.write(text)
