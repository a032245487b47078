"""Run student code in a kernel: read its output as it comes, cap and time it, and notice at once when it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import EntryPoint
from itertools import chain, islice
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_core.utils import run_sync
from nbval.kernel import RunningKernel

from course_utils.errors import KernelLost
from course_utils.sandbox.confinement import open_kernels
from course_utils.sandbox.limits import Limits, Start
from course_utils.sandbox.log import KernelLog
from course_utils.sandbox.pipe import Talk
from course_utils.sandbox.provisioner import ConfinedProvisioner
from course_utils.time_limits import LOST_SECONDS, TRACEBACK_SECONDS, WALL

MAX_MESSAGE_BYTES = 16 * 2**20  # bytes; prints come in bundles, and a larger message breaks the connection
WAITING_MESSAGES = 16  # messages of a kernel that can be queued in this process
MAX_GROWTH_BYTES = 2**28  # bytes that this process may grow by during a cell: an endless message is not counted
PAUSE = 0.03  # seconds between two polls of a cell's CPU time; most cells need less
PROVISIONER = "course-confined"
SETTINGS = (
    "--HistoryManager.enabled=False",
    "--IPKernelApp.quiet=True",
    "--Kernel._execute_sleep=0",  # no pause after a cell: the grader waits for its messages anyway
)


class GradingKernel(RunningKernel):
    """nbval's kernel, confined, in a scratch folder of its own, where `course_utils` holds no answers.

    Its `get_message` reads output while the cell still runs, and raises KernelLost if the cell's time is up, if the
    cell prints too much, or if the process is gone.

    Args:
        seconds: seconds of work for all cells together.
        start: a warm kernel comes from the server named here, or else from this process's; a cold one has its own.
        log: records what the kernel is asked and how it ends.

    Raises:
        OSError: if the server is gone.
        NotConfined: as `open_kernels` does.
    """

    def __init__(self, limits: Limits, seconds: float, start: Start, log: KernelLog | None = None):
        self.limits = limits
        self.granted = seconds
        self.log = log or KernelLog()
        self.asking_seconds: Callable[[], float] | None = (
            None  # in place of `limits.cell_seconds`, see `allow_questions`
        )
        self.counted: float | None = None  # `worked` when that limit began
        self.own = None if start.warm else open_kernels(start.confinement, warm=False)
        config = {
            "server": str(self.own.folder) if self.own else start.server,
            "confinement": start.confinement,
            "memory_bytes": limits.memory_bytes,
            "cpu_seconds": limits.cpu_seconds,
        }
        _register_provisioner()
        self.km = KernelManager(kernel_name="course", kernel_spec_manager=CourseKernelspecs(config))
        try:
            self.km.start_kernel(extra_arguments=list(SETTINGS))
            self.buffer: deque[dict[str, Any]] = deque()
            self.processors: set[int] = set()  # this process's own, while it shares one with the kernel
            self.talk = Talk(self._scratch())  # before any cell runs
            self.begin_cell(limits.cell_seconds)
            self._connect()
        except BaseException:  # such as too many open files: the kernel may run, and nothing else would stop it
            if hasattr(self, "talk"):
                self.talk.close()
            if self.km.provisioner is not None:
                run_sync(self._end)()
                self.km.cleanup_resources()
            self._close_own()
            raise
        self.log.note("started", limits=asdict(limits), seconds=seconds, start=asdict(start))

    def _connect(self) -> None:
        self.kc = self.km.client()
        self.kc.context.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self.kc.context.setsockopt(zmq.RCVHWM, WAITING_MESSAGES)
        self.kc.context.setsockopt(zmq.RECONNECT_IVL, 5)  # ms: the kernel's sockets are not there yet
        self.kc.start_channels(stdin=False, hb=False, control=False)  # channels that nobody reads stay closed
        self.lines = [self.kc.shell_channel.socket, self.kc.iopub_channel.socket]
        self.monitors = [line.get_monitor_socket(zmq.EVENT_DISCONNECTED) for line in self.lines]
        self.poller = zmq.Poller()
        for source in (*self.lines, *self.monitors):
            self.poller.register(source, zmq.POLLIN)

    def _scratch(self) -> Path:
        scratch = self.provisioner.scratch
        if scratch is None:
            raise RuntimeError("the kernel has no folder")
        return scratch

    def allow_questions(
        self, answer: Callable[[str], str], seconds: float, more: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Let cells ask questions from now on. Their work does not count towards the notebook's time.

        Kernel and grader take turns, so they share a processor: waking up on another one takes longer than an answer.

        Args:
            answer: returns the answer to a question; both are a line of text.
            seconds: seconds of work for such a cell if other cells have the default of `Limits`, else in proportion.
            more: returns the seconds that it has earned in addition by now, also in proportion.
        """
        share = self.limits.cell_seconds / Limits.cell_seconds
        self.asking_seconds = lambda: share * (seconds + more())
        self.counted = self.worked
        self.talk.answer = answer
        self.poller.register(self.talk, zmq.POLLIN)
        if hasattr(os, "sched_setaffinity"):
            self.processors = os.sched_getaffinity(0)
            shared = processor_of_this()
            os.sched_setaffinity(0, {shared})
            self.provisioner.pin(shared)

    def answer_once(self, line: str) -> None:
        """Answer the next question of a cell with this line of text, and those after it with an empty one."""
        lines = iter([line])
        self.talk.answer = lambda question: next(lines, "")
        self.poller.register(self.talk, zmq.POLLIN)

    def wait_until_ready(self) -> None:
        """Wait until the kernel answers and its output arrives.

        Raises:
            RuntimeError: if the kernel does not start.
        """
        self.begin_cell(self.limits.start_seconds, self.limits.start_seconds)
        try:
            while not self._answers():
                pass
        except KernelLost as lost:
            self.stop()
            raise RuntimeError(f"The kernel does not start: {lost}") from None
        self.buffer.clear()

    def _answers(self) -> bool:
        """Ask for the kernel's info, and return whether its output arrives: a subscriber misses what came before it."""
        request = self.kc.kernel_info()
        while self.get_message("shell")["parent_header"].get("msg_id") != request:
            pass
        patience = time.monotonic() + 0.03
        while time.monotonic() < patience:
            if self.kc.iopub_channel.socket.poll(10):
                self._listen()
            replies = (message for message in self.buffer if message["parent_header"].get("msg_id") == request)
            if any(message["content"].get("execution_state") == "idle" for message in replies):
                return True
        return False

    def run(self, source: str, *, provided: bool = False) -> str | None:
        """Run a cell.

        Args:
            provided: the cell is given to everybody, and has as much time as the start of a kernel.

        Returns:
            the error that the cell raised, as "Name: text", or None.

        Raises:
            KernelLost: if a limit is exceeded, or if the process is gone.
        """
        message_id = self.execute_cell_input(source, allow_stdin=False)
        if provided:
            self.begin_cell(self.limits.start_seconds, self.limits.start_seconds)
        while True:
            reply = self.get_message("shell")
            if reply["parent_header"].get("msg_id") == message_id:
                break
        self.await_idle(message_id, None)
        content = reply["content"]
        return f"{content.get('ename')}: {content.get('evalue')}"[:300] if content.get("status") == "error" else None

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        self.begin_cell(self.limits.cell_seconds)
        self.log.note("cell", source=cell_input)
        return super().execute_cell_input(cell_input, allow_stdin=allow_stdin)

    @property
    def provisioner(self) -> ConfinedProvisioner:
        """The provisioner, which started the process and gets news of it."""
        current = self.km.provisioner
        if not isinstance(current, ConfinedProvisioner):
            raise RuntimeError("the kernel was not started by the course's provisioner, or has been cleared away")
        return current

    def is_alive(self) -> bool:
        """Return whether the process runs, without the event loop that Jupyter's own method starts each time."""
        return self.provisioner.ended() is None

    def begin_cell(self, seconds: float, idle: float | None = None) -> None:
        """Start the clocks and the count of output for a cell.

        Args:
            seconds: seconds that the cell may work.
            idle: seconds that it may be idle; by default those of the limits.
        """
        self.seconds = seconds
        self.idle = idle or self.limits.idle_seconds
        self.received = 0
        self.began = time.monotonic()
        self.weighed = self.began  # time of the last look at the scratch folder
        self.resident = resident()
        self.worked_before: float | None = None
        self.idle_since: tuple[float, float, float] | None = None
        self.provisioner.look()
        self.first_request = self.provisioner.requested

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message on "shell" or "iopub".

        nbval's `timeout` for one message is ignored, because with it dripping output would put off the end for ever.

        Raises:
            KernelLost: if a limit is exceeded, or if the process is gone.
        """
        try:
            message = self._next_message(stream)
        except KernelLost as lost:
            self.log.note("lost", status=lost.status, why=str(lost), worked=self.worked)
            raise
        if message["msg_type"] == "execute_reply":
            content = message["content"]
            took = round(time.monotonic() - self.began, 3)
            raised = {name: str(content[name]) for name in ("ename", "evalue") if name in content}
            self.log.note("answered", status=content.get("status"), seconds=took, received=self.received, **raised)
        return message

    def _next_message(self, stream: str) -> dict[str, Any]:
        while True:
            if stream == "iopub" and self.buffer:
                return self.buffer.popleft()
            ready = dict(self.poller.poll(100))
            if any(monitor in ready for monitor in self.monitors):
                raise KernelLost("killed", self._describe_end())
            # output is read whatever is asked for, because a full queue would stop the cell
            if self.kc.iopub_channel.socket in ready:
                self._listen()
            if stream == "shell" and self.kc.shell_channel.socket in ready:
                return self._receive(self.kc.shell_channel)
            if self.talk.fileno() in ready:
                self._reply_to_question()
            # the limits, on each round: a cell that sends much may never let a round pass without a message
            if resident() > self.resident + MAX_GROWTH_BYTES:
                raise KernelLost("killed", self._describe_flood())
            self._verify_scratch()
            if not ready and not self.is_alive():
                raise KernelLost("killed", self._describe_end())
            self._verify_time()

    def _reply_to_question(self) -> None:
        """Answer the kernel's question. It waits meanwhile, so its clock stands still and its idle time begins anew."""
        began_to_answer = time.monotonic()
        self.talk.go_on()
        self.began += time.monotonic() - began_to_answer
        self.idle_since = None

    def _describe_end(self) -> str:
        """Return why a connection ended: its process ended, or a message was too large to be let in."""
        patience = time.monotonic() + LOST_SECONDS
        while self.is_alive():
            if time.monotonic() > patience:
                return self._describe_flood()
            time.sleep(0.01)
        return "The cell ended the Python process"

    def _describe_flood(self) -> str:
        """Return one text for a large and for many messages, because the machine's load decides which shows first."""
        return f"The cell printed or returned more than {self.limits.output_bytes >> 10} KiB"

    def _listen(self) -> None:
        while self.kc.iopub_channel.socket.poll(0):
            self.buffer.append(self._receive(self.kc.iopub_channel))

    def _verify_volume(self) -> None:
        if self.received > self.limits.output_bytes:
            raise KernelLost("killed", self._describe_flood())

    def _verify_scratch(self) -> None:
        """Check once a second that the kernel's files stay small, in case no file system of its own limits them."""
        if time.monotonic() < self.weighed + 1:
            return
        self.weighed = time.monotonic()
        scratch = self.provisioner.scratch
        if scratch is not None and weigh(scratch) > self.limits.scratch_bytes:
            raise KernelLost("killed", f"The cell wrote more than {self.limits.scratch_bytes >> 20} MiB of files")

    def _receive(self, channel: Any) -> dict[str, Any]:
        frames = channel.socket.recv_multipart()
        self.received += sum(len(frame) for frame in frames)
        self._verify_volume()  # before it is parsed: a few bytes of JSON can become a hundred in memory
        try:
            return channel.session.deserialize(channel.session.feed_identities(frames)[1])
        except Exception as error:
            raise KernelLost(
                "killed", f"The kernel sent a message that cannot be read ({type(error).__name__})"
            ) from error

    @property
    def worked(self) -> float:
        """Seconds of processor time that the kernel has used, as far as this process knows."""
        times = self.provisioner.times
        return times[0] if times else 0.0

    @property
    def charged(self) -> float:
        """Seconds of `worked` that count towards the notebook's."""
        return self.worked if self.counted is None else self.counted

    def _verify_time(self) -> None:
        now = time.monotonic()
        provisioner = self.provisioner
        seconds = self.asking_seconds() if self.asking_seconds else self.seconds
        # by the clock, in case the system does not tell work from waiting for a processor
        if now - self.began > WALL * max(seconds, self.idle):
            raise KernelLost("timeout", f"The cell did not end within {now - self.began:.0f} s", self._interrupt())
        # what the kernel has worked and waited for a processor; an answer from before this cell does not count
        provisioner.look(PAUSE)
        times = provisioner.times
        if times is None or provisioner.answered < self.first_request:
            return
        if self.worked_before is None:
            self.worked_before = times[0]
        if self.idle_since is None:
            self.idle_since = (now, *times)
        # work, of the notebook and of this cell
        if self.charged > self.granted:
            raise KernelLost("timeout", "The time for the whole notebook was used up")
        if times[0] - self.worked_before > seconds:
            raise KernelLost("timeout", f"The cell worked for more than {seconds:g} s", self._interrupt())
        # idleness is the time that is neither work nor waiting
        passed, worked, waited = (a - b for a, b in zip((now, *times), self.idle_since, strict=True))
        if passed - worked - waited > self.idle:
            raise KernelLost(
                "timeout", f"The cell waited for more than {self.idle:g} s and did nothing", self._interrupt()
            )

    def _interrupt(self) -> str:
        """Interrupt the cell and return its traceback, which nobody may trust; "" if none comes in time."""
        run_sync(self.provisioner.send_signal)(signal.SIGINT)
        end = time.monotonic() + TRACEBACK_SECONDS
        replies = self.kc.shell_channel
        with contextlib.suppress(KernelLost):
            while (remaining := end - time.monotonic()) > 0:
                if replies.socket.poll(1000 * remaining):
                    content = self._receive(replies)["content"]
                    if content.get("traceback"):
                        return "\n".join(map(str, content["traceback"]))
        return ""

    def stop(self) -> None:
        """Kill the kernel and all that it started, and delete its scratch folder."""
        self.log.note("stopped", worked=round(self.worked, 3))
        if self.processors:
            os.sched_setaffinity(0, self.processors)
        for line in self.lines:
            line.disable_monitor()
        self.talk.close()
        self.kc.stop_channels()
        run_sync(self._end)()
        self.km.cleanup_resources()
        self._close_own()

    async def _end(self) -> None:
        await self.provisioner.kill()
        await self.provisioner.wait()

    def _close_own(self) -> None:
        if self.own:
            self.own.close()


class CourseKernelspecs(KernelSpecManager):
    """Knows one kernelspec, "course": this Python's kernel, started by our provisioner with a given configuration."""

    def __init__(self, provisioner: dict[str, Any]):
        super().__init__()
        self.provisioner = provisioner

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        stanza = {"provisioner_name": PROVISIONER, "config": self.provisioner}
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name="Course, confined",
            language="python",
            interrupt_mode="message",
            metadata={"kernel_provisioner": stanza},
        )


def _register_provisioner() -> None:
    """Register the provisioner, in case the package is not installed or has old entry points."""
    known = KernelProvisionerFactory.instance().provisioners
    value = "course_utils.sandbox.provisioner:ConfinedProvisioner"
    known.setdefault(PROVISIONER, EntryPoint(PROVISIONER, value, KernelProvisionerFactory.GROUP_NAME))


def weigh(folder: Path, most: int = 10_000) -> int:
    """Return the bytes on disk of all files and folders in a folder, at least a block for each.

    Args:
        most: count only so many folders, and so many entries in each of them.
    """
    weight = 0
    for directory, folders, names in islice(os.walk(folder), most):
        for name in islice(chain(folders, names), most):
            with contextlib.suppress(OSError):
                weight += max(4096, os.lstat(os.path.join(directory, name)).st_blocks * 512)
    return weight


def processor_of_this() -> int:
    """Return the processor that this process runs on; another worker and its kernel keep theirs busy meanwhile."""
    with open("/proc/self/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[36])


def resident() -> int:
    """Return the bytes of memory that this process holds, or 0 if the system does not say."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * PAGESIZE
    except OSError:
        return 0
