"""An answer that never ends: its check is stopped after some processor time, and what it was doing is told."""

from __future__ import annotations

import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, TypeVar

from course_utils.checks.kernel import evidence

# Of processor time, not of the clock: a busy machine must not fail an honest answer. The slowest check takes 3 of them
# (days 1 to 6 run by a learner, November 2026), and grading allows 10 for a whole cell.
SECONDS = 20.0
WALL = 12  # times as long by the clock: an answer that sleeps does not work
AGAIN = 0.1  # seconds until an answer that caught the stop is stopped once more
MOST_PRINTED = 2**20  # characters, as in grading; a page stays usable with that
Function = TypeVar("Function", bound=Callable)
_TRYING = {evidence._outcome.__code__}  # of the functions that try an answer


class TookTooLong(BaseException):
    """Raised inside an answer that is stopped; no Exception, so that few answers catch it."""


class Patience(AbstractContextManager):
    """Bears with the answers tried in its block, then stops them: after some seconds of this thread's processor time,
    WALL times as long by the clock, or when they print without end.

    said: what to tell the learner once an answer was stopped, else empty. What stopped it ends the block and goes no
    further. Only code that `gather` tries on a rung is stopped, or that runs in a function marked `tries_answers`. A
    single call into a library that never returns is not, as with Jupyter's own interrupt. Time is counted in the main
    thread and not on Windows: signals of this kind do not work elsewhere.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds, self.printed, self.said = SECONDS if seconds is None else seconds, 0, ""
        self.timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Patience:
        self.streams, self.tracing = (sys.stdout, sys.stderr), sys.gettrace()
        sys.stdout, sys.stderr = (_Counted(stream, self) for stream in self.streams)
        if self.timed:
            self.began = time.thread_time()
            self.handler = signal.signal(signal.SIGPROF, self._on_tick)
            # It counts all threads of the process: never late, and early where torch uses many.
            self.timer = signal.setitimer(signal.ITIMER_PROF, self.seconds, AGAIN)
            self.alarm_handler = signal.signal(signal.SIGALRM, self._on_alarm)
            self.alarm = signal.setitimer(signal.ITIMER_REAL, WALL * self.seconds, AGAIN)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> bool:
        if self.timed:
            signal.setitimer(signal.ITIMER_PROF, *self.timer)
            signal.signal(signal.SIGPROF, signal.SIG_DFL if self.handler is None else self.handler)
            signal.setitimer(signal.ITIMER_REAL, *self.alarm)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if self.alarm_handler is None else self.alarm_handler)
        if self.said:
            sys.settrace(self.tracing)
        sys.stdout, sys.stderr = self.streams
        return kind is TookTooLong

    def stop(self, frame: FrameType | None, why: str) -> None:
        """Raise TookTooLong if an answer runs in this frame or above it."""
        frames = _of_the_answer(frame)
        if not frames:
            return
        self.said = self.said or f"Stopped after {why} {_where(frames)}"
        # An `except` without a name catches what is raised here; the line that runs then raises again, outside its try.
        sys.settrace(_stop)
        for each in frames:
            each.f_trace = _stop
        raise TookTooLong

    def _on_tick(self, number: int, frame: FrameType | None) -> None:
        if time.thread_time() - self.began >= self.seconds:
            self.stop(frame, f"{self.seconds:g} seconds of work")

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        self.stop(frame, f"{WALL * self.seconds:g} seconds by the clock")


def tries_answers(function: Function) -> Function:
    """Mark a function that runs an answer: what it runs is stopped too."""
    _TRYING.add(function.__code__)
    return function


class _Counted:
    """A stream on which an answer prints so much and no more."""

    def __init__(self, stream: Any, patience: Patience):
        self._stream, self._patience = stream, patience

    def write(self, text: str) -> int:
        self._patience.printed += len(text)
        if self._patience.printed > MOST_PRINTED:
            self._patience.stop(sys._getframe(1), f"printing {MOST_PRINTED:,} characters")
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _stop(frame: FrameType, event: str, arg: Any) -> Any:
    """Traces an answer that was stopped: the next line that it runs is its last."""
    if event == "line" and _of_the_answer(frame):
        raise TookTooLong
    return _stop


def _of_the_answer(frame: FrameType | None) -> list[FrameType]:
    """The frames of an answer that is being tried, the innermost first, and last the one that tries it; none if none
    is."""
    frames = []
    while frame is not None:
        frames.append(frame)
        if frame.f_code in _TRYING:
            return frames
        frame = frame.f_back
    return []


def _where(frames: list[FrameType]) -> str:
    """Where an answer was stopped: on which rung, and at which line of the notebook's cell."""
    rung = frames[-1].f_locals.get("name", "the calls tried")
    where = f"on “{rung}”: look for a loop that does not end."
    for frame in frames:
        if evidence.IN_A_CELL.search(frame.f_code.co_filename):
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            return f"{where} It was at line {frame.f_lineno} of its cell: {line[:100]}"
    return where
