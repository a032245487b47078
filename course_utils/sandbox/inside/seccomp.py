"""Refuse student code the system calls that start a process, reach another process, or open a socket.

A filter is a program that the system runs before each call. This module makes it from three tables: calls that are
refused, calls that are refused with certain arguments, and calls that a process may make only about itself.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from .system import LIBC, call, no_new_privileges

SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOSYS = 1, 38
BPF_LD_W_ABS = 0x20  # BPF_LD | BPF_W | BPF_ABS: load 4 bytes of struct seccomp_data
BPF_JEQ, BPF_JGE, BPF_JSET = 0x15, 0x35, 0x45  # with BPF_JMP and BPF_K: compare what was loaded with a constant
BPF_RET = 0x06
NR, ARCH, ARGS = 0, 4, 16  # offsets of the call's number, machine and first argument in struct seccomp_data
AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 = 0xC000003E, 0xC00000B7
X32_SYSCALL_BIT = 0x40000000  # other numbers for the same calls, on x86-64
CLONE_THREAD = 0x10000
MACHINES = {"x86_64": (0, AUDIT_ARCH_X86_64), "aarch64": (1, AUDIT_ARCH_AARCH64)}
SYS_clone, SYS_clone3, SYS_prlimit64, SYS_seccomp = (56, 220), 435, (302, 261), (317, 277)


@dataclass(frozen=True)
class Refused:
    """System calls that no exercise needs.

    Attributes:
        calls: (number on x86-64, number on ARM64) by name; None if ARM64 has no such call.
    """

    why: str
    tested_by: str  # the entry of tests/hostile that tries it, or the test where none does
    calls: dict[str, tuple[int, int | None]]


IN_CONFINEMENT = "tests/sandbox/test_confinement.py"
REFUSED = (
    Refused(
        "A new process outlives its kernel, or does what the kernel may not.",
        "a fork bomb; a background process; the course asked in another process",
        {"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)},
    ),
    Refused(
        "A socket reaches the network, or another kernel.",
        "the answer fetched; the questions sent away; a neighbour's kernel",
        {"socket": (41, 198), "connect": (42, 203), "bind": (49, 200)},
    ),
    Refused(
        "Another process's memory can be read and written, and its files taken over.",
        IN_CONFINEMENT,
        {
            "ptrace": (101, 117),
            "process_vm_readv": (310, 270),
            "process_vm_writev": (311, 271),
            "tkill": (200, 130),
            "pidfd_open": (434, 434),
            "pidfd_getfd": (438, 438),
            "pidfd_send_signal": (424, 424),
        },
    ),
    Refused(
        "Memory that no limit counts, or that stays when the kernel has ended.",
        "shared memory left behind",
        {
            "memfd_create": (319, 279),
            "memfd_secret": (447, 447),
            "shmget": (29, 194),
            "msgget": (68, 186),
            "semget": (64, 190),
            "mq_open": (240, 180),
        },
    ),
    Refused(
        "Ways into the system that its holes are often found in, or that make other calls past this filter.",
        IN_CONFINEMENT,
        {
            "io_uring_setup": (425, 425),
            "userfaultfd": (323, 282),
            "perf_event_open": (298, 241),
            "bpf": (321, 280),
            "add_key": (248, 217),
            "request_key": (249, 218),
            "keyctl": (250, 219),
        },
    ),
    Refused(
        "New mounts and namespaces undo the walls of `namespaces`.",
        IN_CONFINEMENT,
        {
            "mount": (165, 40),
            "umount2": (166, 39),
            "pivot_root": (155, 41),
            "chroot": (161, 51),
            "unshare": (272, 97),
            "setns": (308, 268),
            "open_tree": (428, 428),
            "move_mount": (429, 429),
            "fsopen": (430, 430),
            "mount_setattr": (442, 442),
            "open_by_handle_at": (304, 265),
        },
    ),
    Refused(
        "A session or a group of its own escapes the signal that ends the kernel; a priority slows its neighbours.",
        "a background process; a daemon by the book",
        {"setsid": (112, 157), "setpgid": (109, 154), "setpriority": (141, 140), "personality": (135, 92)},
    ),
    Refused(
        "Landlock lets everybody change the modes, owners and times of files that they own.",
        "files left outside; folders that cannot be deleted",
        {
            "chmod": (90, None),
            "fchmod": (91, 52),
            "fchmodat": (268, 53),
            "fchmodat2": (452, 452),
            "chown": (92, None),
            "fchown": (93, 55),
            "lchown": (94, None),
            "fchownat": (260, 54),
            "setxattr": (188, 5),
            "lsetxattr": (189, 6),
            "fsetxattr": (190, 7),
            "removexattr": (197, 14),
            "lremovexattr": (198, 15),
            "fremovexattr": (199, 16),
            "utime": (132, None),
            "utimes": (235, None),
            "futimesat": (261, None),
            "utimensat": (280, 88),
        },
    ),
    Refused(
        "The schedule of another process of this user can be changed.",
        IN_CONFINEMENT,
        {"sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30)},
    ),
)


@dataclass(frozen=True)
class RefusedWith:
    """A system call that is refused with certain values of one argument.

    Attributes:
        numbers: the call's numbers on x86-64 and on ARM64.
        argument: index of the argument, from 0.
    """

    why: str
    tested_by: str
    name: str
    numbers: tuple[int, int]
    argument: int
    values: tuple[int, ...]


F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 8, 10, 15, 1024, 1026
FIOASYNC, FIOSETOWN, SIOCSPGRP = 0x5452, 0x8901, 0x8902
PR_SET_PDEATHSIG = 1
SCHED_BATCH, SCHED_IDLE, SCHED_RESET_ON_FORK = 3, 5, 0x40000000
REFUSED_WITH = (
    RefusedWith(
        "Signals about a file can be sent to any process; a lease bars a file that others open.",
        "a lease on a shared file",
        "fcntl",
        (72, 25),
        1,
        (F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY),
    ),
    RefusedWith("The same.", IN_CONFINEMENT, "ioctl", (16, 29), 1, (FIOASYNC, FIOSETOWN, SIOCSPGRP)),
    RefusedWith(
        "A kernel ends with its parent.", "a kernel that will not go", "prctl", (157, 167), 0, (PR_SET_PDEATHSIG,)
    ),
    RefusedWith(
        "Another process gets a low priority; ZeroMQ sets the usual one for its threads.",
        IN_CONFINEMENT,
        "sched_setscheduler",
        (144, 119),
        1,
        (SCHED_BATCH, SCHED_IDLE, SCHED_RESET_ON_FORK | SCHED_BATCH, SCHED_RESET_ON_FORK | SCHED_IDLE),
    ),
)
ONLY_SELF = {  # "a shot at the parent": signals go to this process alone
    "kill": (62, 129),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}


def filter_calls() -> None:
    """Refuse the calls of the tables in every thread; student code then gets the error EPERM.

    Nothing is filtered unless the machine is x86-64 or ARM64 with Linux.

    Raises:
        OSError: if the filter cannot be set in every thread.
    """
    if not filter_known():
        return
    column, machine = MACHINES[platform.machine()]
    program = list(filter_program(column, machine, os.getpid()))
    code = ctypes.create_string_buffer(b"".join(program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    no_new_privileges()
    made = LIBC.syscall(SYS_seccomp[column], SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, filters)
    if call(made, "seccomp"):
        raise OSError("seccomp: a thread could not be filtered")


def filter_known() -> bool:
    """Return whether calls can be filtered on this machine."""
    return sys.platform == "linux" and platform.machine() in MACHINES


def filter_program(column: int, machine: int, process: int) -> Iterator[bytes]:
    """Yield the instructions of the filter.

    Args:
        column: 0 on x86-64, 1 on ARM64.
        machine: the machine's number in AUDIT_ARCH.
        process: the process, which may signal only itself.
    """
    deny = _return(SECCOMP_RET_ERRNO | EPERM)
    allow = _return(SECCOMP_RET_ALLOW)
    yield from (_load(ARCH), _jump(BPF_JEQ, machine, 1, 0), _return(SECCOMP_RET_KILL_PROCESS))
    yield from (_load(NR), _jump(BPF_JGE, X32_SYSCALL_BIT, 0, 1), deny)
    for refused in REFUSED:
        for of_call in refused.calls.values():
            if (number := of_call[column]) is not None:
                yield from (_jump(BPF_JEQ, number, 0, 1), deny)
    # A filter cannot see the flags of clone3, which lie in memory; without clone3 the C library uses clone.
    yield from (_jump(BPF_JEQ, SYS_clone3, 0, 1), _return(SECCOMP_RET_ERRNO | ENOSYS))
    yield from (_jump(BPF_JEQ, SYS_clone[column], 0, 4), _load(ARGS), _jump(BPF_JSET, CLONE_THREAD, 1, 0), deny, allow)
    for rule in REFUSED_WITH:
        tests = [part for value in rule.values for part in (_jump(BPF_JEQ, value, 0, 1), deny)]
        body = [_load(ARGS + 8 * rule.argument), *tests, allow]
        yield from (_jump(BPF_JEQ, rule.numbers[column], 0, len(body)), *body)
    for numbers in ONLY_SELF.values():
        mine = [_load(ARGS), _jump(BPF_JEQ, process, 1, 0), deny, allow]
        yield from (_jump(BPF_JEQ, numbers[column], 0, len(mine)), *mine)
    # Low limits would end another process; 0 stands for this one.
    mine = [_load(ARGS), _jump(BPF_JEQ, 0, 2, 0), _jump(BPF_JEQ, process, 1, 0), deny, allow]
    yield from (_jump(BPF_JEQ, SYS_prlimit64[column], 0, len(mine)), *mine, allow)


def _load(offset: int) -> bytes:
    return struct.pack("HBBI", BPF_LD_W_ABS, 0, 0, offset)


def _jump(test: int, value: int, then: int, otherwise: int) -> bytes:
    return struct.pack("HBBI", test, then, otherwise, value)


def _return(result: int) -> bytes:
    return struct.pack("HBBI", BPF_RET, 0, 0, result)
