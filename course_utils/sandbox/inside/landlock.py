"""Restrict the files that a kernel may open, where there is no bubblewrap, with Landlock.

Any process may restrict itself with Landlock.

It stops "a search of the whole disk", "a search of the editable install", "a search of all processes", "files left
outside" and "other submissions changed": a file that is not allowed here cannot be opened under any name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterable

from .system import LIBC, call, no_new_privileges

# The numbers of these system calls are the same on every machine.
SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_ACCESS_FS_EXECUTE, LANDLOCK_ACCESS_FS_WRITE_FILE = 1 << 0, 1 << 1
LANDLOCK_ACCESS_FS_READ_FILE, LANDLOCK_ACCESS_FS_READ_DIR = 1 << 2, 1 << 3
LANDLOCK_ACCESS_FS_TRUNCATE, LANDLOCK_ACCESS_FS_IOCTL_DEV = 1 << 14, 1 << 15
LANDLOCK_ACCESS_NET_BIND_TCP, LANDLOCK_ACCESS_NET_CONNECT_TCP = 1 << 0, 1 << 1
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 1 << 0, 1 << 1

RIGHTS = (13, 14, 15, 15, 16)  # number of file rights in each version of Landlock, from 1; later ones have 16
READ = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR
OF_A_FILE = (  # what a rule on a file may allow; the other rights are on folders
    LANDLOCK_ACCESS_FS_EXECUTE
    | LANDLOCK_ACCESS_FS_WRITE_FILE
    | LANDLOCK_ACCESS_FS_READ_FILE
    | LANDLOCK_ACCESS_FS_TRUNCATE
    | LANDLOCK_ACCESS_FS_IOCTL_DEV
)
USE_DEVICE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def landlock_version() -> int:
    """Return the system's version of Landlock, 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, LIBC.syscall(SYS_landlock_create_ruleset, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION))


def restrict_paths(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Let this process from now on read `readable` and use `writable`, and nothing else of the file system.

    From version 4 on, Landlock also stops TCP ("the answer fetched"), from version 6 on also abstract sockets and
    signals to other processes ("a shot at the parent"). With older versions, only the filter of `seccomp` stops these.

    Raises:
        OSError: if the system has no Landlock, or if it refuses a path.
    """
    version = landlock_version()
    if not version:
        raise OSError("this system has no Landlock")
    every = (1 << RIGHTS[min(version, len(RIGHTS)) - 1]) - 1
    network = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP if version >= 4 else 0
    scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL if version >= 6 else 0
    fields = 1 + (version >= 4) + (version >= 6)  # of the structure in this version
    size = 8 * fields
    handled = struct.pack("QQQ", every, network, scoped)[:size]
    ruleset = call(
        LIBC.syscall(SYS_landlock_create_ruleset, handled, ctypes.c_size_t(size), 0), "landlock_create_ruleset"
    )
    rules = [(path, READ) for path in (*readable, "/proc/self")]
    rules += [(path, every) for path in writable] + [(path, every) for path in USE_DEVICE]
    for path, rights in rules:
        with contextlib.suppress(FileNotFoundError):
            at = os.open(path, os.O_PATH)
            rule = struct.pack("=Qi", rights & (every if os.path.isdir(path) else every & OF_A_FILE), at)
            added = LIBC.syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0)
            call(added, f"landlock_add_rule {path}")
            os.close(at)
    no_new_privileges()
    call(LIBC.syscall(SYS_landlock_restrict_self, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)
