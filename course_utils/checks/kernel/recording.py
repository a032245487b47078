"""Record the forbidden library calls that an answer makes while it is checked, however they are written.

Three observers work together: PyTorch reports every function and operation to modes, Python reports every call to a
profile function, and an audit hook, which cannot be removed, sees threads and tools that could hide a call. What
foreign machine code does is not seen.
"""

from __future__ import annotations

import _thread
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from course_utils.checks.kernel.code_files import CHECKS, has_own, is_library, is_of_python, is_own
from course_utils.checks.kernel.measures import at_rest, seconds_of
from course_utils.checks.kernel.outcome import ForbiddenCall

IN_A_CELL = re.compile(r"ipykernel_\d+|<ipython-input")  # the file names that Jupyter gives to cells
MOST_FOUND = 5
MOST_CALLS = 25_000  # Python calls; then only modes and hook go on, because seeing every call is slow
THREAD, HIDDEN, FRAMES, TOOLS = "thread", "hidden", "frames", "tools"
DOORS = {  # what could hide a call, in words that complete "the answer …"
    THREAD: "starts a thread or another program, or leaves a thread running",
    HIDDEN: "uses a part of PyTorch that is private or hides calls",
    FRAMES: "looks into the frames of its caller",
    TOOLS: "uses tracing, profiling, ctypes or the garbage collector's lists",
}
CALLED, HIDES, STARTS = "course.called", "course.hides", "course.starts"  # audit events of our own
EVENTS = {  # audit events of Python, and which of DOORS each may be
    STARTS: THREAD,
    "cpython.PyInterpreterState_New": THREAD,
    "os.fork": THREAD,
    "os.posix_spawn": THREAD,
    "subprocess.Popen": THREAD,
    "sys._getframe": FRAMES,
    "sys._current_frames": FRAMES,
    "object.__getattr__": FRAMES,
    "sys.settrace": TOOLS,
    "sys.setprofile": TOOLS,
    "sys.addaudithook": TOOLS,
    "sys.monitoring.register_callback": TOOLS,
    "gc.get_objects": TOOLS,
    "gc.get_referrers": TOOLS,
    "gc.get_referents": TOOLS,
    "ctypes.dlopen": TOOLS,
    "ctypes.dlsym": TOOLS,
    "ctypes.call_function": TOOLS,
    "ctypes.string_at": TOOLS,
    HIDES: HIDDEN,
    CALLED: "",
}
OWNERS_OF_FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
HIDING_GUARDS = (  # of torch._C: while one of them is active, modes see nothing
    "DisableTorchFunction",
    "ExcludeDispatchKeyGuard",
    "_AutoDispatchBelowADInplaceOrView",
    "_AutoDispatchBelowAutograd",
    "_DisablePythonDispatcher",
    "_DisableTorchDispatch",
    "_ExcludeDispatchKeyGuard",
    "_ForceDispatchKeyGuard",
    "_IncludeDispatchKeyGuard",
    "_PreserveDispatchKeyGuard",
    "_SetExcludeDispatchKeyGuard",
)
HIDING_CALLS = ("_disable_current_modes", "_op_dk", "_pop_mode", "_pop_mode_temporarily", "no_dispatch", "redispatch")
UFUNCS = ("logaddexp", "logaddexp2")  # each does a whole exercise in one call, and no hook sees them
THREAD_STARTERS = {  # they raise no event before Python 3.12
    _thread: ("start_new", "start_new_thread", "start_joinable_thread"),
    threading: ("_start_new_thread", "_start_joinable_thread"),
}
METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")


class Recording(AbstractContextManager):
    """Context manager that records calls of this thread whose name has a forbidden part, or that could hide a call.

    Needs PyTorch.

    Args:
        forbidden: parts of names, in lower case. Calls that could hide others (see DOORS) are recorded in any case.

    Attributes:
        found: the forbidden calls, each name once.
    """

    def __init__(self, forbidden: Mapping[str, str]):
        self.parts = tuple(part for part in forbidden if part not in DOORS)
        self.found: list[ForbiddenCall] = []
        self.thread, self.deaf = threading.get_ident(), False

    def __enter__(self) -> Recording:
        install()
        self._undo = ExitStack()
        self._modes = [self._undo.enter_context(mode(self)) for mode in _modes()] if self.parts else []
        self._probe()
        self._before = sys.getprofile()
        self._on_call = _on_call(self) if self.parts else None
        _active.append(self)
        if _left.reached:
            self.note(TOOLS)
        self._worked = at_rest(_left.worked)
        if _left.runs_own_code():
            self.note(THREAD)
        sys.setprofile(self._on_call)
        return self

    def __exit__(self, *_: object) -> None:
        replaced = sys.getprofile() is not (None if self.deaf else self._on_call)
        sys.setprofile(self._before)
        _active.remove(self)
        if replaced:
            self.note(TOOLS)
        worked = _left.worked()
        if [thread for thread, before in self._worked.items() if worked.get(thread) != before]:
            self.note(THREAD)
        self._probe()
        with suppress(Exception):  # an answer may have removed the modes
            self._undo.close()

    def note(self, name: str, frame: FrameType | None = None) -> None:
        """Add a name to `found`.

        Args:
            frame: where the search for the notebook's cell begins; by default the current frame.
        """
        if len(self.found) < MOST_FOUND and name not in [each.name for each in self.found]:
            self.found.append(ForbiddenCall(name, _line(frame or sys._getframe())))

    def telling(self, name: str) -> str:
        """Return the part of a dotted name that is forbidden or hides calls, or ""."""
        for each in reversed(name.split(".")):
            if each in HIDING_CALLS or [part for part in self.parts if part in each.lower()]:
                return each
        return ""

    def _probe(self) -> None:
        """Make a call that each mode sees if it is still active, and note HIDDEN if one does not."""
        import torch

        before = [mode.heard for mode in self._modes]
        torch.zeros(1)
        if [mode for mode, heard in zip(self._modes, before, strict=True) if mode.heard == heard]:
            self.note(HIDDEN)


@dataclass
class _Left:
    """What the learner's cells have left behind in this process.

    Attributes:
        threads: the number of each thread that still runs.
        reached: whether cells have added an audit hook or used the garbage collector's lists, through which they can
            reach everything here.
    """

    threads: dict[object, int] = field(default_factory=dict)
    reached: bool = False

    def others(self) -> dict[object, int]:
        """Return the learner's threads other than the current one."""
        here = getattr(_here, "thread", None)
        return {each: number for each, number in list(self.threads.items()) if each is not here}

    def runs_own_code(self) -> bool:
        """Return whether another thread has learner code on its stack; an idle thread of a pool has none."""
        stacks = sys._current_frames()
        return bool([each for each in self.others().values() if each not in stacks or has_own(stacks[each])])

    def worked(self) -> dict[object, float]:
        """Return each other thread's seconds of processor time; NaN, never equal to itself, where unknown."""
        return {each: seconds_of(number) for each, number in self.others().items()}


_left = _Left()
_here = threading.local()  # holds the current thread, if it is one of the learner's
_active: list[Recording] = []


@cache
def install() -> None:
    """Install the observers of threads and of tools that hide calls, for the rest of this process.

    A grading kernel calls this before the first answer runs. Needs PyTorch.
    """
    import torch

    busy = threading.local()

    def hear(event: str, args: tuple) -> None:
        if event not in EVENTS or getattr(busy, "now", False):
            return
        busy.now = True  # `_hear` raises audit events itself
        try:
            _hear(event, args, sys._getframe(1))
        finally:
            busy.now = False

    sys.addaudithook(hear)
    for name in UFUNCS:
        setattr(np, name, RecordedUfunc(getattr(np, name)))
    for name in HIDING_GUARDS:
        if hasattr(torch._C, name):
            setattr(torch._C, name, partial(_guard, getattr(torch._C, name)))
    for module, names in THREAD_STARTERS.items():
        for name in names:
            if hasattr(module, name):
                setattr(module, name, partial(_start, getattr(module, name)))


def _guard(guard: Callable, *args: Any) -> Any:
    sys.audit(HIDES)
    return guard(*args)


def _start(start: Callable, run: Callable, *args: Any, **kwargs: Any) -> Any:
    """Start a thread; remember it until it ends if the learner's code started it."""
    sys.audit(STARTS)
    if not _own_behind(sys._getframe()):
        return start(run, *args, **kwargs)
    thread = object()

    def run_to_the_end(*args: Any, **kwargs: Any) -> None:
        _here.thread, _left.threads[thread] = thread, threading.get_ident()
        try:
            run(*args, **kwargs)
        finally:
            _left.threads.pop(thread, None)

    _left.threads[thread] = 0
    return start(run_to_the_end, *args, **kwargs)


def _hear(event: str, args: tuple, frame: FrameType) -> None:
    """Handle an audit event that this frame raised."""
    if frame.f_code.co_filename == __file__ and event not in (CALLED, HIDES, STARTS):
        return
    own = _own_behind(frame)
    _left.reached |= own and (event == "sys.addaudithook" or event.startswith("gc."))
    recording = next((each for each in reversed(_active) if each.thread == threading.get_ident()), None)
    if recording is None:
        return
    if event == CALLED:
        if name := recording.telling(args[0]):
            recording.note(name, frame)
    elif EVENTS[event] == THREAD:
        recording.note(THREAD, frame)
    elif event == "object.__getattr__":
        if args[1] in OWNERS_OF_FRAMES and is_own(frame):
            recording.note(FRAMES, frame)
    elif event == "sys._getframe":
        if is_own(frame) or (own and os.path.basename(frame.f_code.co_filename) == "inspect.py"):
            recording.note(FRAMES, frame)
    elif own:
        recording.note(EVENTS[event], frame)


class RecordedUfunc:
    """A NumPy ufunc that raises an audit event when it, or one of its methods such as reduce, is called."""

    __class__: Any = np.ufunc  # for isinstance

    def __init__(self, ufunc: np.ufunc):
        self._ufunc, self.__doc__, self.__module__ = ufunc, ufunc.__doc__, "numpy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        sys.audit(CALLED, self._ufunc.__name__)
        return self._ufunc(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            sys.audit(CALLED, self._ufunc.__name__)
        return getattr(self._ufunc, name)

    def __reduce__(self) -> str:
        return self._ufunc.__name__  # copied and pickled by name, like NumPy's own ufunc

    def __repr__(self) -> str:
        return repr(self._ufunc)


@cache
def _modes() -> tuple[type, type]:
    """Return two modes: one sees each PyTorch function that is called, one each operation that it runs."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    in_backward = torch._C._current_graph_task_id

    class Listening:
        """Base of both modes.

        Attributes:
            heard: the number of calls seen.
            harmless: functions that are known to be allowed; looking one up by `in` is no call to the profiler.
        """

        def __init__(self, recording: Recording):
            super().__init__()
            self.recording, self.heard = recording, 0
            self.harmless: set[Any] = set()

        def hear(self, function: Any, name: str) -> None:
            if name := self.recording.telling(name):
                self.recording.note(name)
            else:
                self.harmless.add(function)

    class Functions(Listening, TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.heard += 1
            if function not in self.harmless:
                self.hear(function, getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    class Operations(Listening, TorchDispatchMode):
        def __init__(self, recording: Recording):
            super().__init__(recording)
            self.gradients = "backward" in recording.parts

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # otherwise PyTorch loads its compiler first, which takes seconds

        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.heard += 1
            if operation._op not in self.harmless:  # hashing the operation itself would run Python code
                self.hear(operation._op, operation.name().replace("::", "."))
            if self.gradients and in_backward() != -1:
                self.recording.note("backward")
            return operation(*args, **(kwargs or {}))

    return Functions, Operations


def _on_call(recording: Recording) -> Callable[[FrameType, str, Any], None]:
    """Return a profile function that sees library functions written in Python, and those of PyTorch written in C."""
    of_code: dict[CodeType, str] = {}
    of_name: dict[str, str] = {}
    calls = 0

    def on_call(frame: FrameType, event: str, called: Any) -> None:
        nonlocal calls
        if event == "call":
            name = of_code.get(frame.f_code)
            if name is None:
                name = of_code[frame.f_code] = recording.telling(_called(frame.f_code))
            if name in HIDING_CALLS:
                if _own_behind(frame.f_back):
                    recording.note(HIDDEN, frame)
            elif name:
                recording.note(name, frame)
        elif event == "c_call":
            name = called.__name__
            telling = of_name.get(name)
            if telling is None:
                telling = of_name[name] = recording.telling(name) or (HIDDEN if _is_private(name) else "")
            if telling and _of_torch(called) and (telling != HIDDEN or is_own(frame)):
                recording.note(telling, frame)
        else:
            return
        calls += 1
        if calls >= MOST_CALLS:
            recording.deaf = True
            sys.setprofile(None)

    return on_call


def _called(code: CodeType) -> str:
    """Return the dotted name of a library function, without its enclosing functions; "" for other code."""
    library = is_library(code.co_filename) and not is_of_python(code.co_filename)
    a_function = code.co_flags & CO_OPTIMIZED  # false for the body of a class, which runs as a call too
    checks = code.co_filename.startswith(CHECKS)
    return code.co_qualname.rpartition("<locals>.")[2] if library and a_function and not checks else ""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _of_torch(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__.partition(".")[0] == "torch"
    kind = owner if isinstance(owner, type) else type(owner)
    return f"{getattr(function, '__module__', '')} {kind.__module__}".find("torch") != -1


def _own_behind(frame: FrameType | None) -> bool:
    """Return whether a frame runs learner code, or standard-library code or this module called by learner code."""
    while frame and (is_of_python(frame.f_code.co_filename) or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    return frame is not None and is_own(frame)


def _line(frame: FrameType | None) -> int:
    """Return the line of the notebook cell that runs in a frame or called it; 0 where there is none."""
    while frame and not IN_A_CELL.search(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_lineno if frame else 0
