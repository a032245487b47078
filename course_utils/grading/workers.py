"""Worker processes on this machine. Each grades one submission at a time, and no result is lost if one dies."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

from course_utils.course import ROOT
from course_utils.errors import CourseError, PutOff, one_line
from course_utils.grading.grade import grade_submission
from course_utils.grading.intake.collect import Submission
from course_utils.grading.results import Graded, Result, Settings
from course_utils.sandbox.confinement import Confinement, KernelServer, open_kernels, remove

Finished = Generator[tuple[Submission, Graded], None, None]  # submissions with their results, as they finish
PACKAGES = str(ROOT)
LONE_TRIES = 2
MAX_WORKER_BYTES = 3 * 2**30  # bytes of data; a worker that asks for more ends
LABORIOUS = "it takes too much of the grader's own time, beside that of its answers"
FATAL = "it ends the process that grades it, each time that it is tried"


@dataclass(frozen=True)
class Callbacks:
    """Callbacks that report the progress of grading. On a cluster only `on_graded` is called.

    Attributes:
        on_begin: called when a submission is begun.
        on_result: called with the result of each of its exercises.
        on_put_off: called when it is put off until the others are graded.
        on_graded: called with its grade.
    """

    on_begin: Callable[[Submission], None] = lambda submission: None
    on_result: Callable[[Submission, Result], None] = lambda submission, result: None
    on_put_off: Callable[[Submission], None] = lambda submission: None
    on_graded: Callable[[Graded], None] = lambda graded: None


def grade_safely(
    submission: Submission, settings: Settings, on_result: Callable[[Result], None] | None = None
) -> Graded:
    """Grade one submission; any error but PutOff becomes its result.

    Raises:
        PutOff: as `grade_submission` does.
    """
    try:
        return grade_submission(submission, settings, on_result)
    except PutOff:
        raise
    except CourseError as error:
        return as_unreadable(submission, settings, f"{submission.name}: {error}")
    except Exception as error:
        why = f"the grader fails on it ({type(error).__name__}: {error})"
        return as_unreadable(submission, settings, f"{submission.name}: {why}")


def as_unreadable(submission: Submission, settings: Settings, why: str) -> Graded:
    """Return the result of a submission that cannot be graded. Its day is None if that day has no exercises."""
    day = submission.day
    full = 0.0
    try:
        full = sum(exercise.points for exercise in settings.answer_key.exercises(day)) if day is not None else 0.0
    except CourseError:
        day = None
    return Graded(
        student=submission.student,
        notebook=submission.name,
        day=day,
        status="unreadable",
        score=0.0,
        max_score=full,
        seconds=0.0,
        message=one_line(why),
        lms_id=submission.lms_id,
    )


class SharedKernelServer:
    """The server that forks the kernels of all workers on this machine.

    It starts when it is first needed, and again for the next submission if it has ended. Cold kernels need none.
    """

    def __init__(self, settings: Settings):
        self.plain = settings
        self.server: KernelServer | None = None

    def settings(self) -> Settings:
        """Return the settings for grading, with the folder of a running server.

        Raises:
            NotConfined: if no server can be started with the confinement that the settings ask for.
        """
        start = self.plain.start
        if not start.warm:
            return self.plain
        server = self.server
        if server is None or not server.alive:
            self.close()
            server = self.server = open_kernels(start.confinement, start.warm)
        return replace(self.plain, start=replace(start, server=str(server.folder)))

    @property
    def confinement(self) -> Confinement | None:
        """How far the kernels are confined; None until a server has started."""
        return self.server.confinement if self.server else None

    @property
    def alive(self) -> bool:
        """Whether a server runs."""
        return self.server is not None and self.server.alive

    def close(self) -> None:
        """End the server, if it was started."""
        if self.server is not None:
            self.server.close()


def grade_here(
    queue: Iterator[Submission], kernel_server: SharedKernelServer, processes: int, callbacks: Callbacks = Callbacks()
) -> Finished:
    """Grade submissions in worker processes on this machine.

    A submission is taken from the queue when a worker is free, so no more are held than there are workers. A submission
    that takes long is put off until the others are graded. When a worker dies, the other workers finish; then its
    submission is tried twice more, alone. If it still ends its worker, it counts as unreadable.

    Args:
        queue: submissions that were read.
        kernel_server: server of the workers' kernels.
        processes: number of workers.
        callbacks: callbacks that report the progress.

    Yields:
        each submission with its result, as they finish.
    """
    first = next(queue, None)
    if first is None:
        return
    queue = chain([first], queue)
    with tempfile.TemporaryDirectory(prefix="class_") as folder, contextlib.ExitStack() as stack:
        idle = [Worker(Path(folder, str(number))) for number in range(processes)]
        for worker in idle:
            stack.callback(worker.stop)
            worker.start()
        busy: dict[Connection, Worker] = {}
        doubtful = deque[Submission]()  # those whose worker died: they, or another one's doings, may have ended it
        put_off = deque[Submission]()  # those that were put off
        while True:
            # give a submission to each free worker, but none while a doubtful one waits to be alone
            while idle and not doubtful and (following := _next_submission(queue, put_off, kernel_server)):
                worker = idle.pop()
                callbacks.on_begin(following[0])
                busy[worker.give(*following)] = worker
            if not busy and not doubtful:
                return
            # all others are done: try a doubtful one while nothing else runs
            if not busy:
                submission = doubtful.popleft()
                yield submission, _grade_alone(submission, idle[0], kernel_server)
                continue
            # take what the workers send: results of exercises, and in the end what frees the worker
            for connection in wait(list(busy)):
                if not isinstance(connection, Connection):
                    continue  # for the type checker: nothing else is waited for
                worker = busy[connection]
                submission = worker.submission
                message = worker.take()
                if isinstance(message, Result):
                    callbacks.on_result(submission, message)
                    continue
                idle.append(busy.pop(connection))
                if message is None:
                    doubtful.append(submission)
                elif isinstance(message, PutOff):
                    put_off.append(replace(submission, known=message.results))
                    callbacks.on_put_off(submission)
                else:
                    yield submission, message


def _next_submission(
    queue: Iterator[Submission], put_off: deque[Submission], kernel_server: SharedKernelServer
) -> tuple[Submission, Settings] | None:
    """Return the next submission and the settings for it; submissions that were put off come last."""
    if submission := next(queue, None):
        return submission, replace(kernel_server.settings(), defer_slow=True)
    return (put_off.popleft(), kernel_server.settings()) if put_off else None


def _grade_alone(submission: Submission, worker: Worker, kernel_server: SharedKernelServer) -> Graded:
    for _ in range(LONE_TRIES):
        worker.give(submission, kernel_server.settings())
        while isinstance(message := worker.take(), Result):
            pass
        if isinstance(message, Graded):  # never PutOff, because these settings do not defer slow notebooks
            return message
    return as_unreadable(submission, kernel_server.plain, f"{submission.name}: {FATAL}")


class Worker:
    """A process that grades, with a temporary folder of its own. If it dies, another process takes its place.

    The process inherits no open files from this one and imports nothing from a folder of submissions. It runs in a
    session of its own, so that Ctrl-C does not reach it, and ends when this process ends.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def start(self) -> None:
        """Start the process."""
        self.folder.mkdir()
        self.connection, theirs = Pipe()
        command = f"from course_utils.grading.workers import work; work({theirs.fileno()}, {str(self.folder)!r})"
        usual_path = os.environ.get("PYTHONPATH")
        search_path = [PACKAGES, usual_path] if usual_path else [PACKAGES]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", command],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(search_path)},
            start_new_session=True,
        )
        theirs.close()

    def stop(self) -> None:
        """Kill the process and what it started, and delete its folder."""
        self.process.kill()
        self.ended = self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.connection.close()
        _sweep(self.folder)

    def give(self, submission: Submission, settings: Settings) -> Connection:
        """Send a submission and its settings to the process, and return the connection to wait on."""
        self.submission = submission
        self.settings = settings
        with contextlib.suppress(OSError):  # the process just died; `take` deals with it
            self.connection.send((submission, settings))
        return self.connection

    def take(self) -> Graded | PutOff | Result | None:
        """Receive the next message from the process, and start another process if it died.

        Returns:
            the result of an exercise; in the end that of the submission, or PutOff. If the process died: None, or an
            unreadable result if it used up its processor time.
        """
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.stop()
            self.start()
        if self.ended == -signal.SIGXCPU:
            return as_unreadable(self.submission, self.settings, f"{self.submission.name}: {LABORIOUS}")
        return None


def work(descriptor: int, folder: str) -> None:
    """Grade the submissions that come through a connection until it closes; a worker process runs this function."""
    import resource  # exists only on POSIX systems, and workers run nowhere else

    connection = Connection(descriptor)
    tempfile.tempdir = folder
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_WORKER_BYTES, MAX_WORKER_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dump when the time is up
    threading.Thread(target=_end_with_parent, args=[Path(folder)], daemon=True).start()
    gc.freeze()  # imported modules stay: looking through them for garbage takes a twentieth of the time
    with contextlib.suppress(EOFError):
        while True:
            submission, settings = connection.recv()
            with contextlib.suppress(ValueError, OSError):
                most = resource.getrlimit(resource.RLIMIT_CPU)[1]
                resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + settings.worker_cpu_seconds, most))
            graded: Graded | PutOff
            try:
                graded = grade_safely(submission, settings, connection.send)
            except PutOff as put_off:
                graded = put_off
            connection.send(graded)


def _end_with_parent(folder: Path) -> None:
    """Clean up and exit when the parent ends: its end of our standard input closes then, however it ends."""
    os.read(sys.stdin.fileno(), 1)
    _sweep(folder)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()  # unless other workers have theirs there
    os._exit(1)


def _sweep(folder: Path) -> None:
    """Kill the kernels whose files are in a folder, and delete the folder."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"={folder}/".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)
    remove(folder)
