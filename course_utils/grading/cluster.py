"""Grade a class on a Dask cluster. Its workers need the installed course, and get everything else with the work."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from course_utils.answer_key.key import KEYS, AnswerKey, keys_text
from course_utils.errors import CourseError, one_line
from course_utils.grading.intake.collect import Submission
from course_utils.grading.results import Graded, Settings
from course_utils.grading.workers import FATAL, Finished, as_unreadable, grade_safely
from course_utils.time_limits import CONNECT_SECONDS, DISCONNECT_SECONDS, WORKERLESS_SECONDS

TRIES = 3  # how often a submission is tried if its workers die
MAX_UNPACKED_KEYS = 8  # answer keys that a worker keeps: one per day of a class, and one of all days


@dataclass(frozen=True)
class AnswerKeyParcel:
    """The answer key of some days, packed for a worker.

    Attributes:
        files: contents by file name.
        digests: the sender's `AnswerKey.digest` of each day.
        package: the sender's version of the course.
    """

    files: Mapping[str, bytes]
    digests: Mapping[int, str]
    package: str


def grade_there(queue: Iterator[Submission], settings: Settings, address: str) -> Finished:
    """Grade submissions on a Dask cluster.

    A worker process grades one submission at a time, however many threads it has; workers may come and go. When a
    worker dies, its submission is tried twice more on any worker; if it still ends its worker, it counts as unreadable.

    Args:
        queue: submissions that were read.
        address: address of the cluster's scheduler.

    Yields:
        each submission with its result, as they finish.

    Raises:
        CourseError: if dask is not installed, if there is no scheduler or no worker, or if a worker has another
            version of the course.
    """
    waiting = deque(islice(queue, 1))
    deaths = Counter[int]()
    if not waiting:
        return
    parcel_of = cache(lambda day: answer_key_parcel(settings.answer_key, day))
    plain = replace(settings, answer_key=AnswerKey(Path()), log="", out=None)  # workers cannot write a log here
    with _connect(address) as cluster:
        while waiting or cluster.running:
            for worker in cluster.idle():
                if waiting:
                    submission = waiting.popleft()
                    cluster.give(worker, submission, parcel_of(submission.day), plain)
                waiting.extend(islice(queue, not waiting))  # keep one, or the loop ends while all workers are dead
            for submission, graded in cluster.finished():
                if graded is None:
                    deaths[submission.place] += 1
                    if deaths[submission.place] < TRIES:
                        waiting.append(submission)
                        continue
                    graded = as_unreadable(submission, settings, f"{submission.name}: {FATAL}")
                yield submission, graded


class Cluster:
    """The workers of a scheduler, and the submission that each of them grades. Its methods raise CourseError."""

    def __init__(self, client: Any, address: str):
        self.client = client
        self.address = address
        self.running: dict = {}  # future -> (worker's address, submission)
        self.last_with_workers = time.monotonic()

    def idle(self) -> list[str]:
        """Return the workers without a submission. Raise CourseError if the cluster has had no workers for too long."""
        with self._translate_errors():
            workers = set(self.client.nthreads())
        if workers:
            self.last_with_workers = time.monotonic()
        elif time.monotonic() > self.last_with_workers + WORKERLESS_SECONDS:
            raise CourseError(f"{self.address}: the scheduler has no workers; start one: dask worker {self.address}")
        return sorted(workers - {worker for worker, _ in self.running.values()})

    def give(self, worker: str, submission: Submission, parcel: AnswerKeyParcel, settings: Settings) -> None:
        """Start grading a submission on a worker."""
        with self._translate_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the size of what is sent
            future = self.client.submit(grade_parcel, submission, parcel, settings, workers=[worker], pure=False)
        self.running[future] = worker, submission

    def finished(self) -> list[tuple[Submission, Graded | None]]:
        """Wait at most a second for finished submissions, and return them with their results; None if a worker died."""
        from distributed import wait

        with self._translate_errors():
            try:
                ended = wait(list(self.running), timeout=1, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                alive = self.client.nthreads()
                ended = [future for future, (worker, _) in self.running.items() if worker not in alive]
            return [(self.running.pop(future)[1], self._result(future)) for future in ended]

    def _result(self, future: Any) -> Graded | None:
        from distributed import KilledWorker

        try:
            return future.result() if future.done() else None
        except KilledWorker:
            return None
        except CourseError as error:
            raise CourseError(f"{self.address}: {error}") from None
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}")
            raise CourseError(f"{self.address}: a worker cannot grade ({why}); install the same course there") from None
        finally:
            future.cancel()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, CancelledError) as error:
            why = one_line(str(error)) or type(error).__name__
            raise CourseError(f"{self.address}: the Dask scheduler went away ({why})") from None


@contextmanager
def _connect(address: str) -> Iterator[Cluster]:
    try:
        from distributed import Client
    except ImportError:
        raise CourseError("--dask needs packages that are missing: pip install dask distributed") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the course reports what matters in one line
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise CourseError(f"{address}: no Dask scheduler answers there ({one_line(str(error), 200)})") from None
    cluster = Cluster(client, address)
    try:
        yield cluster
    finally:
        with contextlib.suppress(OSError, CancelledError):
            client.cancel(list(cluster.running))
        client.close(timeout=DISCONNECT_SECONDS)


def answer_key_parcel(answer_key: AnswerKey, day: int | None) -> AnswerKeyParcel:
    """Pack the answer key of a day, or of every day for None, for a machine that has only the package."""
    days = answer_key.days() if day is None else [day]
    files = {answer_key.path(each).name: answer_key.path(each).read_bytes() for each in days}
    seeds = {str(each): dict(answer_key.seeds(each)) for each in days}
    digests = {each: answer_key.digest(each) for each in days}
    return AnswerKeyParcel(files | {KEYS: keys_text(seeds).encode()}, digests, version("course_utils"))


def grade_parcel(submission: Submission, parcel: AnswerKeyParcel, settings: Settings) -> Graded:
    """Grade a submission; a Dask worker runs this function.

    Raises:
        CourseError: if the worker's course is not the same as the sender's.
    """
    with _AT_WORK:
        answer_key = _unpack(parcel)
        return grade_safely(submission, replace(settings, answer_key=answer_key))


_AT_WORK = threading.Lock()  # one at a time, because grading redirects sys.stdout
_UNPACKED: dict[tuple, tempfile.TemporaryDirectory] = {}


def _unpack(parcel: AnswerKeyParcel) -> AnswerKey:
    """Write the answer key into a temporary folder, once; it is deleted after MAX_UNPACKED_KEYS newer ones."""
    if parcel.package != version("course_utils"):
        raise CourseError(_describe_mismatch(f"course_utils {version('course_utils')}, not {parcel.package}"))
    known = tuple(parcel.digests.items())
    if known not in _UNPACKED:
        folder = tempfile.TemporaryDirectory(prefix="course_answer_key_")
        Path(folder.name, "solutions").mkdir()
        for name, data in parcel.files.items():
            Path(folder.name, name if name == KEYS else f"solutions/{name}").write_bytes(data)
        answer_key = AnswerKey(Path(folder.name))
        if any(answer_key.digest(day) != digest for day, digest in parcel.digests.items()):
            raise CourseError(_describe_mismatch("other checks or another grader"))
        _UNPACKED[known] = folder
        while len(_UNPACKED) > MAX_UNPACKED_KEYS:
            _UNPACKED.pop(next(iter(_UNPACKED))).cleanup()
    return AnswerKey(Path(_UNPACKED[known].name))


def _describe_mismatch(what: str) -> str:
    from distributed import get_worker

    return f"the worker {get_worker().address} has {what}; install the same version of the course there"
