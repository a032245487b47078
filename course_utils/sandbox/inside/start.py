"""Turn a fork of the server into a kernel that student code may run in."""

from __future__ import annotations

import os
import random
import signal
import sys
from typing import Any

from .landlock import restrict_paths
from .namespaces import SCRATCH, enter_namespaces, hide_processes, unshare
from .rlimits import set_limits
from .seccomp import filter_calls
from .system import die_with_parent, drop_capabilities, no_new_privileges, set_dumpable

COMPLAINTS = 3  # file descriptor on which a kernel says why it cannot start: the server's log


def become_kernel(request: dict[str, Any], level: str, warm: bool) -> None:
    """Confine this process as the request says, and run a kernel in it until it ends.

    The order matters: files come first, while mounts may still be made; then limits and privileges. The filter of
    system calls comes last, because the kernel's own start needs some of the calls that it refuses.

    Args:
        request: "scratch": the kernel's own folder, with the connection file in it; "argv": of the kernel; "env": its
            environment; "limits": for `set_limits`; "read": the paths that it may read under Landlock.
        level: how the kernel is confined: bubblewrap, landlock or limits.
        warm: as for `set_limits`.
    """
    # a session, signals and streams of its own
    os.setsid()
    die_with_parent()
    set_dumpable(1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(2, COMPLAINTS)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.closerange(COMPLAINTS + 1, 4096)
    scratch = request["scratch"]
    home = os.path.join(scratch, "home")
    close_scratch = _nothing
    if level == "bubblewrap":
        home = f"{SCRATCH}/home"
        close_scratch = enter_namespaces(scratch)
    os.makedirs(home, exist_ok=True)
    os.environ.clear()
    os.environ.update(request["env"] | {"HOME": home, "TMPDIR": home})
    os.chdir(home)
    if level == "landlock":
        restrict_paths(request["read"], [scratch])
    set_limits(request["limits"], warm, level)
    no_new_privileges()
    drop_capabilities()
    # random numbers of its own, since the server's state came with the fork
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    from ipykernel.kernelapp import IPKernelApp

    sys.argv = request["argv"]
    app = IPKernelApp.instance()
    app.initialize(request["argv"][1:])
    close_scratch()
    filter_calls()
    os.close(COMPLAINTS)
    app.start()


def _nothing() -> None:
    """Do nothing once the sockets exist, because no namespaces were entered."""


def try_level(level: str) -> None:
    """Raise OSError if this system does not let a kernel be confined at this level."""
    if level == "limits":
        return
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            if level == "bubblewrap":
                unshare()
                hide_processes()
            else:
                restrict_paths(["/"], [])
        except OSError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading) as stream:
        why = stream.read()
    if why:
        raise OSError(why)
