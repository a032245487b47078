"""Give a kernel its own users, mounts and processes, inside the sandbox that bubblewrap has made for all kernels.

bubblewrap keeps the kernels away from the machine; this module keeps them away from each other. It stops
"a neighbour's kernel", "a search of all processes", "files left in the temporary folder" and
"shared memory left behind": a kernel does not see the files and processes of others, and what it leaves ends with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

from .system import LIBC, call, die_with_parent, write_text

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
ASIDE = "/mnt"  # an empty folder of the sandbox
SCRATCH = "/scratch"  # another one
ABOUT_THE_MACHINE = ("cpuinfo", "meminfo", "stat")  # files of /proc that libraries read


def enter_namespaces(scratch: str) -> Callable[[], None]:
    """Continue in a process with its own users, mounts and processes, which sees only `scratch` of the shared folder.

    This makes three processes. The keeper, outside, kills the first process inside when it gets SIGTERM. That process
    ends when the kernel ends, and with it everything that the kernel started ("a daemon by the book"). The third is the
    kernel, in which this function returns.

    Returns:
        a function to call once the kernel's sockets exist; from then on, `scratch` is read-only.
    """
    unshare()
    _mount_scratch(scratch)
    # the keeper, which stays outside
    first = os.fork()
    if first:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 255)
    die_with_parent()
    # the first process inside: only it may make the folder read-only, so the kernel asks it to, by one pipe each way
    request_end, kernel_request_end = os.pipe()
    kernel_reply_end, reply_end = os.pipe()
    kernel = os.fork()
    if kernel:
        os.close(kernel_request_end)
        if os.read(request_end, 1):
            _mount(None, scratch, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
            os.write(reply_end, b"!")
        while True:
            process, status = os.wait()
            if process == kernel:
                os._exit(os.waitstatus_to_exitcode(status) & 255)
    # the kernel
    os.close(request_end)
    os.close(reply_end)
    os.setsid()
    hide_processes()

    def close_scratch() -> None:
        os.write(kernel_request_end, b"!")
        if not os.read(kernel_reply_end, 1):
            raise OSError("the kernel's folder could not be closed")
        os.close(kernel_request_end)
        os.close(kernel_reply_end)

    return close_scratch


def unshare() -> None:
    """Put this process into namespaces of its own, in which the user keeps their number."""
    user, group = os.getuid(), os.getgid()
    call(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC), "unshare")
    write_text("/proc/self/setgroups", "deny")
    write_text("/proc/self/uid_map", f"{user} {user} 1")
    write_text("/proc/self/gid_map", f"{group} {group} 1")


def _mount_scratch(scratch: str) -> None:
    """Mount the kernel's own files in memory, which is limited and ends with it; make the rest read-only or hide it."""
    shared = os.path.dirname(os.path.dirname(scratch))
    _mount(None, "/", None, MS_REC | MS_PRIVATE)  # what is mounted here shows nowhere else
    _mount(scratch, ASIDE, None, MS_BIND)
    _mount("tmpfs", shared, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m")  # "a neighbour's kernel": its folder is covered
    _mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,mode=1777")  # "folders that cannot be deleted"
    _mount(None, "/tmp", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)  # "files left outside"
    _mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=1777")  # "shared memory left behind"
    os.makedirs(scratch, exist_ok=True)
    _mount(ASIDE, scratch, None, MS_BIND)
    call(LIBC.umount2(ASIDE.encode(), MNT_DETACH), "umount")
    _mount("tmpfs", "/dev/pts", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k")  # no terminal to type into
    _mount(None, "/proc", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _mount(None, "/dev", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def hide_processes() -> None:
    """Leave in /proc only this process and what libraries read about the machine: "a search of all processes".

    The sandbox's /proc shows all its processes with their command lines, and the system allows no new /proc inside.
    """
    _mount("tmpfs", ASIDE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=755")
    os.mkdir(f"{ASIDE}/self")
    _mount(f"/proc/{os.readlink('/proc/self')}", f"{ASIDE}/self", None, MS_BIND)
    for name in ABOUT_THE_MACHINE:
        write_text(f"{ASIDE}/{name}", "")
        _mount(f"/proc/{name}", f"{ASIDE}/{name}", None, MS_BIND)
    _mount(None, ASIDE, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _mount(ASIDE, "/proc", None, MS_BIND | MS_REC)
    call(LIBC.umount2(ASIDE.encode(), MNT_DETACH), "umount")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [part and part.encode() for part in (source, target, kind)]
    call(LIBC.mount(*encoded, ctypes.c_ulong(flags), data and data.encode()), f"mount {target}")
