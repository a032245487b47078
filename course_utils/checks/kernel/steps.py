"""Count the Python instructions that an answer runs, in the same way on every version of Python."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import Any

Offsets = frozenset[int]
monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
TOOLS = (4, 3)  # ids of sys.monitoring that no debugger, profiler or coverage tool takes by custom


class StepCounter(AbstractContextManager):
    """Counts the instructions that run while its block runs, in this thread and in those that it starts.

    Nothing is collected as garbage meanwhile: finalizers of earlier objects would count as steps of the block.
    Python 3.12 and later count by `sys.monitoring`, because a trace function there misses the first run of a function.

    Attributes:
        count: the instructions so far.
        stopped: whether the block turned the counting off, as only code does that wants to hide its steps.
    """

    def __init__(self, counted: Callable[[CodeType], Offsets]):
        """Count the instructions at the offsets that `counted` returns for a code object."""
        self.count = 0
        self.stopped = False
        self._offsets_to_count = counted
        self._offsets: dict[CodeType, Offsets] = {}
        here = threading.current_thread()
        self._others = {thread.ident: thread for thread in threading.enumerate() if thread is not here}
        self._counting: _Monitoring | _Tracing = _Monitoring(self) if monitoring else _Tracing(self)

    def __enter__(self) -> StepCounter:
        self._collects = gc.isenabled()
        gc.disable()
        self._counting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = self._counting.stop()
        if self._collects:
            gc.enable()

    @property
    def available(self) -> bool:
        """Whether instructions are counted; False if others have taken the tool ids of `sys.monitoring`."""
        return self._counting.available

    def offsets(self, code: CodeType) -> Offsets:
        """Return the offsets of the instructions of `code` that count."""
        if code not in self._offsets:
            self._offsets[code] = self._offsets_to_count(code)
        return self._offsets[code]

    def step(self, code: CodeType, offset: int) -> None:
        """Count the instruction at an offset, unless it is one that does not count."""
        if offset not in self.offsets(code):
            return
        other = self._others.get(threading.get_ident())
        if other is None or not other.is_alive():  # a new thread may get the number of one that has ended
            self.count += 1


class _Monitoring:
    """Counts by `sys.monitoring`, for Python 3.12 and later."""

    def __init__(self, counter: StepCounter):
        self.counter = counter
        self.tool: int | None = None

    @property
    def available(self) -> bool:
        return self.tool is not None

    def start(self) -> None:
        self.tool = next((tool for tool in TOOLS if monitoring.get_tool(tool) is None), None)
        if self.tool is not None:
            monitoring.use_tool_id(self.tool, "steps of an answer")
            monitoring.register_callback(self.tool, monitoring.events.INSTRUCTION, self.step)
            monitoring.restart_events()
            monitoring.set_events(self.tool, monitoring.events.INSTRUCTION)

    def stop(self) -> bool:
        if self.tool is None:
            return False
        if monitoring.get_tool(self.tool) is None:
            return True
        stopped = monitoring.get_events(self.tool) != monitoring.events.INSTRUCTION
        monitoring.set_events(self.tool, monitoring.events.NO_EVENTS)
        ours = monitoring.register_callback(self.tool, monitoring.events.INSTRUCTION, None)
        monitoring.free_tool_id(self.tool)
        return stopped or ours != self.step

    def step(self, code: CodeType, offset: int) -> Any:
        if not self.counter.offsets(code):
            return monitoring.DISABLE
        return self.counter.step(code, offset)


class _Tracing:
    """Counts by a trace function, for Python 3.11."""

    available = True

    def __init__(self, counter: StepCounter):
        self.counter = counter

    def start(self) -> None:
        self.before = sys.gettrace()
        threading.settrace(self.trace)  # a loop may run in a thread
        sys.settrace(self.trace)

    def stop(self) -> bool:
        stopped = sys.gettrace() != self.trace
        sys.settrace(self.before)
        threading.settrace(None)
        return stopped

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not self.counter.offsets(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.counter.step(frame.f_code, frame.f_lasti)
        return self.trace
