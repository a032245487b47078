"""Worker processes of this machine: each grades one submission at a time, and one that dies costs no result."""

from __future__ import annotations

import contextlib
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
LARGEST_WORKER = 3 * 2**30  # bytes of data; one that wants more is at fault, and ends
LABORIOUS = "it takes too much of the grader's own time, beside that of its answers"
FATAL = "it ends the process that grades it, each time that it is tried"


@dataclass(frozen=True)
class Watcher:
    """Who hears what is done: that a submission is begun, each of its results, that it is put off, and its grade.

    On a cluster only the last is heard.
    """

    on_begin: Callable[[Submission], None] = lambda submission: None
    on_result: Callable[[Submission, Result], None] = lambda submission, result: None
    on_put_off: Callable[[Submission], None] = lambda submission: None
    on_graded: Callable[[Graded], None] = lambda graded: None


def grade_safely(
    submission: Submission, settings: Settings, on_result: Callable[[Result], None] | None = None
) -> Graded:
    """Grade one submission; whatever goes wrong with it is its result. Raises PutOff as grade_submission does."""
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
    """The result of a submission that cannot be graded; its day is None where there are no exercises for it."""
    day, full = submission.day, 0.0
    try:
        full = sum(question.points for question in settings.official.questions(day)) if day is not None else 0.0
    except CourseError:
        day = None
    about = (submission.student, submission.name, day, "unreadable", 0.0, full, 0.0)
    return Graded(*about, message=one_line(why), lms_id=submission.lms_id)


class Kernels:
    """Where the kernels of all workers come from: one process of this machine, started when it is first needed, and
    again for the next submission when it has ended. Without warm kernels there is none."""

    def __init__(self, settings: Settings):
        self.plain = settings
        self.server: KernelServer | None = None

    def settings(self) -> Settings:
        """How to grade, with a server that is alive. Raises NotConfined."""
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
        """How far they were confined, once one was started."""
        return self.server.confinement if self.server else None

    @property
    def alive(self) -> bool:
        """Whether there is one that runs."""
        return self.server is not None and self.server.alive

    def close(self) -> None:
        """End it, if it was started."""
        if self.server is not None:
            self.server.close()


def grade_here(queue: Iterator[Submission], kernels: Kernels, processes: int, watcher: Watcher = Watcher()) -> Finished:
    """Grade in some worker processes.

    One is taken when a worker is free, so no more are held than there are workers. What takes long is put off until
    the others are graded. When a worker dies, those at work finish, and then what it had is tried again with nothing
    beside it, twice; what still ends its worker is unreadable.

    Args:
        queue: Submissions that were read.
        kernels: Where the workers' kernels come from.
        processes: How many workers.
        watcher: Hears what they do.

    Yields:
        Each submission with its result, as they finish.
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
        doubtful, late = deque[Submission](), deque[Submission]()
        while True:
            while idle and not doubtful and (following := _following(queue, late, kernels)):
                worker = idle.pop()
                watcher.on_begin(following[0])
                busy[worker.give(*following)] = worker
            if busy:
                for connection in wait(list(busy)):
                    if not isinstance(connection, Connection):
                        continue  # none but these are waited for
                    worker = busy[connection]
                    submission, said = worker.submission, worker.take()
                    if isinstance(said, Result):
                        watcher.on_result(submission, said)
                        continue
                    idle.append(busy.pop(connection))
                    if said is None:
                        doubtful.append(submission)
                    elif isinstance(said, PutOff):
                        late.append(replace(submission, known=said.results))
                        watcher.on_put_off(submission)
                    else:
                        yield submission, said
            elif doubtful:
                submission = doubtful.popleft()
                yield submission, _grade_alone(submission, idle[0], kernels)
            else:
                return


def _following(
    queue: Iterator[Submission], late: deque[Submission], kernels: Kernels
) -> tuple[Submission, Settings] | None:
    """What to grade next, and how: what was put off comes last."""
    if submission := next(queue, None):
        return submission, replace(kernels.settings(), hurry=True)
    return (late.popleft(), kernels.settings()) if late else None


def _grade_alone(submission: Submission, worker: Worker, kernels: Kernels) -> Graded:
    for _ in range(LONE_TRIES):
        worker.give(submission, kernels.settings())
        while isinstance(said := worker.take(), Result):
            pass
        if isinstance(said, Graded):  # nothing is put off here: there is no hurry
            return said
    return as_unreadable(submission, kernels.plain, f"{submission.name}: {FATAL}")


class Worker:
    """A process that grades, with a temporary folder of its own; another takes its place when it dies.

    It has none of this process's open files, is in a session of its own, so that Ctrl-C does not reach it, and looks
    for modules in no folder of submissions. It ends when this process does.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def start(self) -> None:
        """Start the process."""
        self.folder.mkdir()
        self.connection, theirs = Pipe()
        command = f"from course_utils.grading.workers import work; work({theirs.fileno()}, {str(self.folder)!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", command],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [PACKAGES, os.environ.get("PYTHONPATH")]))},
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
        """Hand over what is to be graded, and how; what is returned can be waited for."""
        self.submission, self.settings = submission, settings
        with contextlib.suppress(OSError):  # it just died, as `take` will see
            self.connection.send((submission, settings))
        return self.connection

    def take(self) -> Graded | PutOff | Result | None:
        """What the process says: the result of an exercise on the way, in the end that of the submission, or that it is
        put off. None when the process died, and then another stands by; but it is unreadable where it worked too long.
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
    """Grade what comes through a connection, until it is closed. This is what a worker process runs."""
    import resource  # only POSIX systems have it, and only they come here

    connection, tempfile.tempdir = Connection(descriptor), folder
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (LARGEST_WORKER, LARGEST_WORKER))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # none is left where the time is up
    threading.Thread(target=_end_with_parent, args=[Path(folder)], daemon=True).start()
    with contextlib.suppress(EOFError):
        while True:
            submission, settings = connection.recv()
            with contextlib.suppress(ValueError, OSError):
                most = resource.getrlimit(resource.RLIMIT_CPU)[1]
                resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + settings.work, most))
            graded: Graded | PutOff
            try:
                graded = grade_safely(submission, settings, connection.send)
            except PutOff as late:
                graded = late
            connection.send(graded)


def _end_with_parent(folder: Path) -> None:
    """Its end of our standard input closes when it ends, however it ends."""
    os.read(sys.stdin.fileno(), 1)
    _sweep(folder)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()  # unless other workers have theirs there
    os._exit(1)


def _sweep(folder: Path) -> None:
    """Kill the kernels that have their files in a folder, and delete it."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"={folder}/".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)
    remove(folder)
