"""The provisioner of confined kernels, which Jupyter and nbval can use like any other kernels.

It starts each kernelspec whose metadata say
`"kernel_provisioner": {"provisioner_name": "course-confined", "config": {...}}`. Without a "server" in the config, it
asks this process's own server, which it starts if need be.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Float, Int, Unicode

from course_utils.sandbox.confinement import LIBRARY, kernel_environment, remove, shared_kernels
from course_utils.sandbox.limits import Limits, Start
from course_utils.time_limits import END_SECONDS, FORK_SECONDS


class ConfinedProvisioner(LocalProvisioner):
    """Asks a `KernelServer` for kernels. They use sockets in the file system, because they have no network."""

    server = Unicode(help="The folder of a server; by default that of this process is used.").tag(config=True)
    confinement = Unicode(Start.confinement, help="How to confine where this process has to start the server.").tag(
        config=True
    )
    memory_bytes = Int(Limits.memory_bytes, help="Of data, for the kernel.").tag(config=True)
    cpu_seconds = Float(Limits.cpu_seconds, help="Of processor time, for the kernel.").tag(config=True)

    scratch: Path | None = None
    connection: socket.socket | None = None
    received = b""
    status: int | None = None
    times: tuple[float, float] | None = None
    requested = 0  # number of the last request for `times`
    answered = 0  # number of the last one that was answered
    looked = 0.0  # time of the last request for `times`
    started = False

    @property
    def has_process(self) -> bool:
        return self.connection is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        if not self.server:
            self.server = str(shared_kernels(self.confinement).folder)
        self.settings = json.loads((Path(self.server) / "settings.json").read_text(encoding="utf-8"))
        if self.scratch is None:
            self.scratch = Path(tempfile.mkdtemp(dir=Path(self.server) / "scratch", prefix=""))
            manager: Any = self.parent  # the KernelManager that asked
            manager.transport = "ipc"
            manager.ip = str(self.scratch / "k")
            manager.cache_ports = False
            manager.connection_file = str(self.scratch / "c")
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        library = LIBRARY if self.settings["level"] == "bubblewrap" else str(Path(self.server) / "lib")
        request = {
            "scratch": str(self.scratch),
            "argv": cmd[cmd.index("-m") + 1 :],
            "env": kernel_environment(library, "~"),
            "limits": {"memory": self.memory_bytes, "seconds": self.cpu_seconds},
            "read": self.settings["read"],
        }
        self.status = None
        self.received = b""
        self.times = None
        self.requested = 0
        self.answered = 0
        self.started = False
        connection = self.connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(FORK_SECONDS)
            connection.connect(str(Path(self.server) / "server.sock"))
            connection.sendall(json.dumps(request).encode() + b"\n")
            self._receive(connection)
        except OSError:
            self._hang_up()
            raise
        connection.setblocking(False)
        return self.connection_info

    async def poll(self) -> int | None:
        return self.ended()

    def ended(self) -> int | None:
        """Return None while the kernel runs, else its exit status."""
        if self.connection is None:
            return 0 if self.status is None else self.status
        while self.status is None and select.select([self.connection], [], [], 0)[0]:
            self._receive(self.connection)
        return self.status

    def look(self, pause: float = 0.0) -> None:
        """Read pending server messages and request the kernel's CPU time; the reply updates `times` and `answered`.

        `times` holds the seconds that the kernel has worked and those that it has waited for a turn on a processor; it
        is None if the system does not say.

        Args:
            pause: send no request until so many seconds after the last one.
        """
        connection = self.connection
        if connection is None:
            return
        while self.status is None and select.select([connection], [], [], 0)[0]:
            self._receive(connection)
        if self.status is None and self.requested == self.answered and time.monotonic() >= self.looked + pause:
            self.looked = time.monotonic()
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps({"times": self.requested + 1}).encode() + b"\n")
                self.requested += 1

    def pin(self, processor: int) -> None:
        """Bind the kernel's first thread to this processor, if the system can."""
        if self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.sendall(json.dumps({"processor": processor}).encode() + b"\n")

    async def wait(self) -> int | None:
        """Wait until the kernel and all that it started have ended, at most END_SECONDS, and return its status."""
        end = time.monotonic() + END_SECONDS
        while (status := await self.poll()) is None and time.monotonic() < end:
            await asyncio.sleep(0.005)
        self._hang_up()
        return status

    async def send_signal(self, signum: int) -> None:
        if self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.sendall(json.dumps({"signal": int(signum)}).encode() + b"\n")

    async def kill(self, restart: bool = False) -> None:
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        await self.send_signal(signal.SIGKILL)

    async def cleanup(self, restart: bool = False) -> None:
        if not restart and self.scratch is not None:
            self._hang_up()
            remove(self.scratch)

    def _receive(self, connection: socket.socket) -> None:
        """Read messages from the server; raise ConnectionError if it hangs up before the kernel has started."""
        part = connection.recv(4096)
        *lines, self.received = (self.received + part).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.started = True
            self.status = message.get("exit", self.status)
            if "times" in message:
                self.times = message["times"] and tuple(message["times"])
                self.answered = message["request"]
        if not part and self.status is None:
            self.status = -1  # the server is gone, and the kernel with it
            if not self.started:
                raise ConnectionError("the process that starts kernels closed the connection")

    def _hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
