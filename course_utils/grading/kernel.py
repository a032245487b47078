"""The kernel that runs student code: read while it speaks, capped, timed, and seen at once when it dies."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import zmq
from jupyter_client.manager import KernelManager
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager, RunningKernel

CHECKS = Path(__file__).parents[1] / "checks"
LARGEST_MESSAGE = 64 * 2**20  # a flood of prints comes in bundles; a larger one cuts the line and the cell times out
KERNEL_CHECKS = (
    '"""The checks as a grading kernel sees them: evidence, no answers."""\n\nfrom .evidence import checks_for\n'
)


class KernelLost(Exception):
    """The kernel can run no more cells. status: timeout or killed; the text says why."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Limits:
    """Of one kernel: seconds for a cell, seconds to start, bytes of output for a cell, bytes of memory."""

    cell_seconds: float = 10.0
    start_seconds: float = 60.0
    output_bytes: int = 2**20
    memory_bytes: int = 8 * 2**30


class GradingKernel(RunningKernel):
    """nbval's kernel, started in a private scratch folder where `course_utils` holds no answers.

    Its `get_message` reads output while the cell still runs, and raises KernelLost when the cell's time is up, when it
    prints too much, or when the process is gone.
    """

    def __init__(self, limits: Limits, deadline: float):
        self.limits, self.deadline = limits, deadline
        self.scratch = Path(tempfile.mkdtemp(prefix="course_grade_"))
        library, home = self.scratch / "lib", self.scratch / "home"
        write_kernel_library(library)
        home.mkdir()
        self.km = KernelManager(kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager())
        self.km.connection_file = str(self.scratch / "connection.json")
        self.km.start_kernel(
            cwd=str(home),
            env=kernel_environment(library, home),
            stdout=open(os.devnull, "wb"),  # noqa: SIM115  the kernel process keeps it
            stderr=open(os.devnull, "wb"),  # noqa: SIM115
            preexec_fn=lambda: _set_limits(limits),
            extra_arguments=["--HistoryManager.enabled=False", "--IPKernelApp.quiet=True"],
        )
        self.process_group = self.km.provisioner.pid
        self.buffer: deque = deque()
        self.begin_cell(limits.cell_seconds)
        self._connect()

    def _connect(self) -> None:
        self.kc = self.km.client()
        self.kc.context.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        self.kc.start_channels(stdin=False, hb=False)
        self.poller = zmq.Poller()
        self.poller.register(self.kc.shell_channel.socket, zmq.POLLIN)
        self.poller.register(self.kc.iopub_channel.socket, zmq.POLLIN)

    def wait_until_ready(self) -> None:
        """Block until the kernel answers. Raises RuntimeError when it does not start."""
        try:
            self.kc.wait_for_ready(timeout=self.limits.start_seconds)
        except RuntimeError:
            self.stop()
            raise
        self.buffer.clear()

    def run(self, source: str, seconds: float | None = None) -> str | None:
        """Run a cell and return the error it raised, as "Name: text", or None. Raises KernelLost."""
        message_id = self.execute_cell_input(source, allow_stdin=False)
        self.begin_cell(seconds or self.limits.cell_seconds)
        while True:
            reply = self.get_message("shell")
            if reply["parent_header"].get("msg_id") == message_id:
                break
        self.await_idle(message_id, None)
        content = reply["content"]
        return f"{content.get('ename')}: {content.get('evalue')}"[:300] if content.get("status") == "error" else None

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        self.begin_cell(self.limits.cell_seconds)
        return super().execute_cell_input(cell_input, allow_stdin=allow_stdin)

    def begin_cell(self, seconds: float) -> None:
        """Start the clock and the count of output for a cell."""
        self.seconds, self.heard = seconds, 0
        self.end = min(time.monotonic() + seconds, self.deadline)

    def get_message(self, stream: str, timeout: float | None = None) -> dict:
        """The next message on "shell" or "iopub". Raises KernelLost when the cell's time is up.

        nbval's `timeout` for one message does not count: output that drips would put off the end for ever.
        """
        while True:
            if stream == "iopub" and self.buffer:
                return self.buffer.popleft()
            ready = dict(self.poller.poll(100))
            if self.kc.iopub_channel.socket in ready:
                self._listen()
            if stream == "shell" and self.kc.shell_channel.socket in ready:
                return self._receive(self.kc.shell_channel)
            if not ready and not self.is_alive():
                raise KernelLost("killed", "The cell ended the Python process")
            if time.monotonic() > self.end:
                raise KernelLost("timeout", self._overtime())

    def _listen(self) -> None:
        while self.kc.iopub_channel.socket.poll(0):
            self.buffer.append(self._receive(self.kc.iopub_channel))
            if self.heard > self.limits.output_bytes:
                raise KernelLost("killed", f"The cell printed more than {self.limits.output_bytes >> 10} KiB")

    def _receive(self, channel) -> dict:
        frames = channel.socket.recv_multipart()
        self.heard += sum(len(frame) for frame in frames)
        try:
            return channel.session.deserialize(channel.session.feed_identities(frames)[1])
        except Exception as error:
            raise KernelLost(
                "killed", f"The kernel sent a message that cannot be read ({type(error).__name__})"
            ) from error

    def _overtime(self) -> str:
        if time.monotonic() > self.deadline:
            return "The time for the whole notebook was used up"
        return f"The cell ran longer than {self.seconds:g} s"

    def stop(self) -> None:
        """Kill the kernel and all that it started, and delete its scratch folder."""
        with contextlib.suppress(OSError):
            os.killpg(self.process_group, signal.SIGKILL)
        self.kc.stop_channels()
        self.km.shutdown_kernel(now=True)
        for process in processes_with(f"HOME={self.scratch / 'home'}"):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(self.scratch)], stderr=subprocess.DEVNULL)  # rmtree gives up on deep folders


def kernel_environment(library: Path, home: Path) -> dict[str, str]:
    """The environment of student code: nothing of the grader's own but the path to programs."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(library),
        "HOME": str(home),
        "IPYTHONDIR": str(home / ".ipython"),
        "MPLCONFIGDIR": str(home / ".matplotlib"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def processes_with(setting: str) -> list[int]:
    """The processes that have a setting in their environment, where the system shows it (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if setting.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def write_kernel_library(folder: Path) -> None:
    """Write a `course_utils` that holds the inputs of the checks and no answers."""
    package = folder / "course_utils"
    checks = package / "checks"
    checks.mkdir(parents=True)
    (package / "__init__.py").write_text('"""The part of the course that a grading kernel needs."""\n')
    (checks / "__init__.py").write_text(KERNEL_CHECKS)
    shutil.copy(CHECKS / "evidence.py", checks)
    shutil.copytree(CHECKS / "inputs", checks / "inputs", ignore=shutil.ignore_patterns("__pycache__"))


def _set_limits(limits: Limits) -> None:
    for what, value in (
        (resource.RLIMIT_DATA, limits.memory_bytes),  # not the address space: CUDA's libraries alone map gigabytes
        (resource.RLIMIT_FSIZE, 64 * 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        most = resource.getrlimit(what)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        with contextlib.suppress(ValueError, OSError):  # some systems do not know all of them
            resource.setrlimit(what, (value, value))
