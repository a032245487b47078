"""Stop the check of an answer that never ends, and say what the answer was doing."""

from __future__ import annotations

import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import Any, ClassVar, TypeVar

from course_utils.checks.kernel import evidence
from course_utils.time_limits import ANSWER_SECONDS, STOP_AGAIN_SECONDS, WALL

monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
seconds_of_work = getattr(time, "thread_time", time.perf_counter)  # a web page has one clock
TOOL = 1  # an id for coverage tools there; debuggers have 0, profilers 2, and StepCounter takes 3 or 4
MAX_PRINTED_CHARS = 2**20  # characters, as in grading; the page stays usable
Function = TypeVar("Function", bound=Callable)
# The code of the functions that run an answer, and what they run, in words; None for the rung in `PROGRESS`.
_RUNNERS: dict[CodeType, str | None] = {evidence._outcome.__code__: None}


class TookTooLong(BaseException):
    """Raised inside an answer to stop it. It is not an Exception, so that few answers catch it."""


class TimeLimit(AbstractContextManager):
    """Context manager that stops student code after a CPU-time or output limit.

    The limits are seconds of this thread's processor time, so that a busy machine fails no honest answer, WALL times as
    many by the clock, and MAX_PRINTED_CHARS of output. The exception that stops an answer ends the block and goes no
    further. Only code that `gather` runs on a rung, or that runs in a function marked `runs_answer`, is stopped. A
    single library call that never returns is not stopped, as with Jupyter's own interrupt. Signals keep the time in the
    main thread, and not on Windows or in a web page. There `sys.monitoring` does, from Python 3.12 on.

    Attributes:
        message: the text for the learner once an answer was stopped, else "".
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = ANSWER_SECONDS if seconds is None else seconds
        self.printed = 0  # characters
        self.message = ""
        self.is_timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        self.is_watched = not self.is_timed and monitoring is not None

    def __enter__(self) -> TimeLimit:
        self.streams = (sys.stdout, sys.stderr)
        self.tracing = sys.gettrace()
        sys.stdout, sys.stderr = (_Counted(stream, self) for stream in self.streams)
        self.began = seconds_of_work()
        if self.is_watched:
            _ClockMonitor.add(self)
        if self.is_timed:
            self.handler = signal.signal(signal.SIGPROF, self._on_tick)
            # This timer counts all threads of the process: it is never late, and early where torch uses many.
            self.timer = signal.setitimer(signal.ITIMER_PROF, self.seconds, STOP_AGAIN_SECONDS)
            self.alarm_handler = signal.signal(signal.SIGALRM, self._on_alarm)
            self.alarm = signal.setitimer(signal.ITIMER_REAL, WALL * self.seconds, STOP_AGAIN_SECONDS)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> bool:
        if self.is_watched:
            _ClockMonitor.remove(self)
        if self.is_timed:
            signal.setitimer(signal.ITIMER_PROF, *self.timer)
            signal.signal(signal.SIGPROF, signal.SIG_DFL if self.handler is None else self.handler)
            signal.setitimer(signal.ITIMER_REAL, *self.alarm)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if self.alarm_handler is None else self.alarm_handler)
        if self.message:
            sys.settrace(self.tracing)
        sys.stdout, sys.stderr = self.streams
        return kind is TookTooLong

    def stop(self, frame: FrameType | None, limit: str) -> None:
        """Raise TookTooLong if an answer runs in this frame or in a caller of it."""
        frames = _frames_of_answer(frame)
        if not frames:
            return
        self.message = self.message or f"Stopped after {limit} {_describe_place(frames)}"
        # A bare `except` catches what is raised here; the line that runs next raises again, outside that `try`.
        sys.settrace(_stop)
        for each in frames:
            each.f_trace = _stop
        raise TookTooLong

    def look(self, frame: FrameType | None) -> None:
        """Stop the answer that runs in this frame if its seconds of work are over."""
        if seconds_of_work() - self.began >= self.seconds:
            self.stop(frame, f"{self.seconds:.3g} seconds of work")

    def _on_tick(self, number: int, frame: FrameType | None) -> None:
        self.look(frame)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        self.stop(frame, f"{WALL * self.seconds:g} seconds by the clock")


def runs_answer(what: str) -> Callable[[Function], Function]:
    """Return a decorator for a function that runs an answer, so that `TimeLimit` also stops the code that it runs.

    Args:
        what: what the function runs, in the words of the message, as in: Stopped on “its cell”.
    """

    def mark(function: Function) -> Function:
        _RUNNERS[function.__code__] = what
        return function

    return mark


class _ClockMonitor:
    """Looks at the clock at each jump and each call in the code of a cell, by `sys.monitoring`, for all time limits."""

    limits: ClassVar[list[TimeLimit]] = []

    @classmethod
    def add(cls, limit: TimeLimit) -> None:
        """Look at the clock for this limit too."""
        cls.limits.append(limit)
        if monitoring.get_tool(TOOL) is None:
            monitoring.use_tool_id(TOOL, "time limit of an answer")
            monitoring.register_callback(TOOL, monitoring.events.PY_START, cls.on_start)
            monitoring.register_callback(TOOL, monitoring.events.JUMP, cls.on_jump)
        monitoring.set_events(TOOL, monitoring.events.PY_START)

    @classmethod
    def remove(cls, limit: TimeLimit) -> None:
        """Look no more for this limit, and for none if it was the last one."""
        cls.limits.remove(limit)
        if not cls.limits:
            monitoring.set_events(TOOL, monitoring.events.NO_EVENTS)

    @classmethod
    def on_start(cls, code: CodeType, offset: int) -> Any:
        """Watch the jumps of a function that was defined in a cell; of others, not even their start."""
        if not evidence.IN_A_CELL.search(code.co_filename):
            return monitoring.DISABLE
        monitoring.set_local_events(TOOL, code, monitoring.events.JUMP)
        return cls.on_jump()

    @classmethod
    def on_jump(cls, *where: Any) -> None:
        """Stop the answer if the time of one of the limits is over."""
        for limit in cls.limits:
            limit.look(sys._getframe(1))


class _Counted:
    """A stream that stops an answer which prints more than MAX_PRINTED_CHARS characters."""

    def __init__(self, stream: Any, limit: TimeLimit):
        self._stream = stream
        self._limit = limit

    def write(self, text: str) -> int:
        self._limit.printed += len(text)
        if self._limit.printed > MAX_PRINTED_CHARS:
            self._limit.stop(sys._getframe(1), f"printing {MAX_PRINTED_CHARS:,} characters")
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _stop(frame: FrameType, event: str, arg: Any) -> Any:
    """Trace function for a stopped answer: raise TookTooLong at the next line that it runs."""
    if event == "line" and _frames_of_answer(frame):
        raise TookTooLong
    return _stop


def _frames_of_answer(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of a running answer, innermost first and last the frame that runs it; none if none runs."""
    frames = []
    while frame is not None:
        frames.append(frame)
        if frame.f_code in _RUNNERS:
            return frames
        frame = frame.f_back
    return []


def _describe_place(frames: list[FrameType]) -> str:
    """Describe where an answer was stopped: on which rung, and at which line of the notebook cell."""
    what = _RUNNERS[frames[-1].f_code]
    place = f"on “{evidence.PROGRESS.rung if what is None else what}”: look for a loop that never ends."
    for frame in frames:
        if evidence.IN_A_CELL.search(frame.f_code.co_filename):
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            return f"{place} It was at line {frame.f_lineno}{evidence.IN_ITS_CELL}: {line[:100]}"
    return place
