"""The process that kernels are forked from. It only imports what every notebook imports, and forks.

usage: python -m inside FOLDER LEVEL [MODULE...]

It stands alone, because it runs where no answer of the course can be read. It listens at FOLDER/server.sock, with one
connection for each kernel. The request comes as a line of JSON; the server answers {"started": pid}, and in the end
{"exit": status}. A line {"signal": number} is passed on to the kernel. {"times": number} is answered with that number
and the seconds that the kernel has worked and waited for its turn. {"processor": number} binds the kernel to that
processor. When a connection closes, its kernel ends. When standard input closes, the server ends with all its kernels.

LEVEL says how a kernel is confined. bubblewrap: this process already runs in a bubblewrap sandbox, and each kernel gets
namespaces of its own inside it. landlock: the kernel restricts itself to the folders that the request names. limits:
neither. At every level, system calls are filtered and resources limited as far as the system can.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from typing import Any

from .seccomp import filter_known
from .start import COMPLAINTS, become_kernel, try_level
from .system import set_dumpable

REQUEST_SECONDS = 10.0  # for a process to send its request, as in `course_utils/time_limits.py`
KERNEL_MODULES = (  # modules that a kernel loads at its start and at its first cell
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "ipykernel.debugger",
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "matplotlib_inline.backend_inline",
)


def main(folder: str, level: str, modules: list[str]) -> None:
    """Try the confinement, import the modules, report {"ready": true} or {"failed": why} on standard output, and serve.

    Args:
        folder: folder that the server shares with the grader.
        level: how kernels are confined, as above.
        modules: modules to import besides those that every kernel loads; none for cold kernels.
    """
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        try_level(level)
        _import(modules)
        _verify_one_thread()
    except Exception as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), file=report, flush=True)
        return
    set_dumpable(0)  # no other process of this user may look into the server
    server = Server(folder, level, warm=bool(modules))
    print(json.dumps({"ready": True, "filter": filter_known()}), file=report, flush=True)
    report.close()
    server.serve()
    os._exit(0)  # nothing is left to clean up, and unloading all modules takes a while


def _import(modules: list[str]) -> None:
    """Import what kernels use, and exclude it from their garbage collection, which would copy its memory."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # blocks its import: nobody debugs a student's kernel
    # The import hook of an editable installation would let student code import the course's answers.
    sys.meta_path[:] = [each for each in sys.meta_path if "course_utils" not in getattr(each, "__module__", "")]
    gc.disable()  # imports leave almost no garbage, and looking for it takes a third of their time
    for name in (*KERNEL_MODULES, *modules):
        importlib.import_module(name)
    gc.freeze()
    gc.enable()


class Server:
    """Forks a kernel for each connection, and keeps track of both."""

    def __init__(self, folder: str, level: str, warm: bool):
        self.folder = folder
        self.level = level
        self.warm = warm
        self.kernels: dict[int, socket.socket] = {}
        self.inside: dict[int, int] = {}  # forked process -> the kernel itself
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        path = os.path.join(folder, "server.sock")
        self.listener.bind(path + ".new")
        self.listener.listen(64)
        os.rename(path + ".new", path)
        self.wake, woken = socket.socketpair()
        for end in (self.wake, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.woken = woken

    def serve(self) -> None:
        """Serve until standard input closes."""
        lifeline = os.fdopen(0, "rb", buffering=0)
        for source in (lifeline, self.listener, self.wake):
            self.selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is lifeline:
                    return self.end()
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is self.wake:
                    with contextlib.suppress(BlockingIOError):
                        self.wake.recv(4096)
                elif isinstance(key.fileobj, socket.socket):
                    self.obey(key.fileobj, key.data)
            self.reap()

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(REQUEST_SECONDS)
        try:
            line = b""
            while not line.endswith(b"\n"):
                part = connection.recv(65536)
                if not part:
                    return connection.close()
                line += part
            process = self.fork(json.loads(line))
            connection.sendall(json.dumps({"started": process}).encode() + b"\n")
        except (OSError, ValueError):
            return connection.close()
        connection.setblocking(False)
        self.kernels[process] = connection
        self.selector.register(connection, selectors.EVENT_READ, process)

    def fork(self, request: dict[str, Any]) -> int:
        _verify_one_thread()
        process = os.fork()
        if process:
            return process
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            become_kernel(request, self.level, self.warm)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        except BaseException:
            with contextlib.suppress(OSError):
                os.write(COMPLAINTS, traceback.format_exc().encode())
        os._exit(status)

    def obey(self, connection: socket.socket, process: int) -> None:
        """Obey the lines that came through a connection; stop its kernel if the connection was closed."""
        try:
            data = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(connection)
            connection.close()
            self.stop(process)
            return
        for line in data.splitlines():
            order = json.loads(line)
            if "times" in order:
                reply = {"times": self.times(process), "request": order["times"]}
                with contextlib.suppress(OSError):  # the grader is gone, or does not read
                    connection.sendall(json.dumps(reply).encode() + b"\n")
            elif "processor" in order:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(self.kernel_of(process) or process, {order["processor"]})
            elif order["signal"] in (signal.SIGKILL, signal.SIGTERM):
                self.stop(process)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.kernel_of(process) or process, order["signal"])

    def times(self, process: int) -> tuple[float, float] | None:
        """Return a kernel's seconds of processor time, and the seconds that its first thread was ready but had no turn.

        None means that the system does not say.
        """
        kernel = self.kernel_of(process)
        return None if kernel is None else times_of(kernel)

    def kernel_of(self, process: int) -> int | None:
        """Return the kernel behind a process that was forked here; None while it is still starting."""
        if self.level != "bubblewrap":
            return process
        if process not in self.inside:
            family = descendants(process)
            if len(family) < 2:
                return None
            self.inside[process] = family[-1]
        return self.inside[process]

    def stop(self, process: int) -> None:
        """End a kernel; if it is in namespaces, its keeper ends everything in them and then itself."""
        with contextlib.suppress(ProcessLookupError):
            if self.level == "bubblewrap":
                os.kill(process, signal.SIGTERM)
            else:
                os.killpg(process, signal.SIGKILL)

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if not process:
                    return
                with contextlib.suppress(OSError):
                    os.killpg(process, signal.SIGKILL)
                self.inside.pop(process, None)
                connection = self.kernels.pop(process, None)
                if connection is None or connection.fileno() < 0:
                    continue
                self.selector.unregister(connection)
                with contextlib.suppress(OSError):
                    connection.sendall(json.dumps({"exit": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
                connection.close()

    def end(self) -> None:
        for process in self.kernels:
            self.stop(process)
        for process in self.kernels:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        shutil.rmtree(self.folder, ignore_errors=True)  # the grader, which made it, may be gone


def descendants(process: int) -> list[int]:
    """Return the child of a process, its child, and so on; below a keeper, the first process inside and the kernel."""
    children = {}
    family = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat") as stat:
            children[int(stat.read().rpartition(")")[2].split()[1])] = int(name)
    while process in children:
        process = children[process]
        family.append(process)
    return family


def times_of(process: int) -> tuple[float, float] | None:
    """Return for one process what `Server.spent` does. All its threads count as work, even those that have ended."""
    try:
        with open(f"/proc/{process}/schedstat") as schedule:
            waited = int(schedule.read().split()[1]) / 1e9
        return time.clock_gettime(~process << 3 | 2), waited  # how the system numbers the clock of a process
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def _verify_one_thread() -> None:
    """Raise an error if other threads run: a fork does not continue them, and their locks stay locked for ever."""
    with contextlib.suppress(FileNotFoundError):
        threads = os.listdir("/proc/self/task")
        if len(threads) > 1:
            raise RuntimeError(f"{len(threads)} threads run where kernels are to be forked")
