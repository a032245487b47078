"""Record which library functions an answer calls while it is checked.

The rule against such calls keeps honest learners honest: it finds who calls `torch.softmax` if the exercise asks for
softmax itself. PyTorch reports every function and every operation to modes, so it does not matter how the call is
written. Code that wants to hide a call can, because it runs in the same process. A grader therefore lists answers that
name such machinery (`checks.judge.review`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cache
from importlib.util import find_spec
from types import FrameType
from typing import Any

import numpy as np

from course_utils.checks.kernel.outcome import ForbiddenCall

IN_A_CELL = re.compile(r"ipykernel_\d+|<ipython-input")  # the file names that Jupyter gives to cells
MAX_RECORDED_NAMES = 5  # names
UFUNCS = ("logaddexp", "logaddexp2")  # of NumPy: they do the whole of an exercise, and no mode records them
METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")
_ACTIVE: list[Recording] = []


class Recording(AbstractContextManager):
    """Records the calls, while its block runs, whose name has a forbidden part; where there is PyTorch, its calls too.

    Attributes:
        parts: parts of names, in lower case.
        calls: what was called, each name once.
    """

    def __init__(self, forbidden: Iterable[str]):
        self.parts = tuple(forbidden)
        self.calls: list[ForbiddenCall] = []
        self._harmless: set[Any] = set()
        self._entered: list[Any] = []

    def __enter__(self) -> Recording:
        install()
        for mode in _modes():
            entered = mode(self)
            entered.__enter__()
            self._entered.append(entered)
        _ACTIVE.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _ACTIVE.remove(self)
        while self._entered:
            self._entered.pop().__exit__(None, None, None)

    def examine(self, function: Any, name: str) -> None:
        """Record a call if a part of its dotted name is forbidden, with the last such part as its name."""
        if function in self._harmless:
            return
        for each in reversed(name.split(".")):
            for part in self.parts:  # no function of Python is called, since an answer may replace it
                if part in each.lower():
                    return self.record(each)
        self._harmless.add(function)

    def record(self, name: str) -> None:
        """Add a name to the calls, with the line of the notebook's cell that is running."""
        if len(self.calls) < MAX_RECORDED_NAMES and name not in [each.name for each in self.calls]:
            self.calls.append(ForbiddenCall(name, _line_of_cell(sys._getframe())))


@cache
def install() -> None:
    """Replace NumPy's UFUNCS by objects that report their calls, for as long as this process lives.

    In a grading kernel this happens before the first answer, which may bind one of them to another name.
    """
    for name in UFUNCS:
        setattr(np, name, RecordedUfunc(getattr(np, name)))


class RecordedUfunc:
    """A ufunc of NumPy that reports its calls, and those of methods such as reduce; otherwise it is the same."""

    __class__: Any = np.ufunc  # to isinstance

    def __init__(self, ufunc: np.ufunc):
        self._ufunc = ufunc
        self.__doc__ = ufunc.__doc__
        self.__module__ = "numpy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._report()
        return self._ufunc(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            self._report()
        return getattr(self._ufunc, name)

    def __reduce__(self) -> str:
        return self._ufunc.__name__  # copied and pickled as numpy's object of that name

    def __repr__(self) -> str:
        return repr(self._ufunc)

    def _report(self) -> None:
        for recording in _ACTIVE:
            recording.examine(self._ufunc, self._ufunc.__name__)


@cache
def _modes() -> tuple[type, ...]:
    """Return the modes that examine each function and operation of PyTorch; none where it is not installed."""
    if find_spec("torch") is None:
        return ()
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    in_backward = torch._C._current_graph_task_id

    class Functions(TorchFunctionMode):
        def __init__(self, recording: Recording):
            super().__init__()
            self.examine = recording.examine

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.examine(function, getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    class Operations(TorchDispatchMode):
        def __init__(self, recording: Recording):
            super().__init__()
            self.recording = recording
            self.forbids_gradients = "backward" in recording.parts

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else PyTorch loads its compiler first, which takes seconds

        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.recording.examine(operation._op, operation.name().replace("::", "."))
            if self.forbids_gradients and in_backward() != -1:
                self.recording.record("backward")
            return operation(*args, **(kwargs or {}))

    return Functions, Operations


def _line_of_cell(frame: FrameType | None) -> int:
    """Return the line of the notebook's cell that runs in a frame or called it; 0 if there is none."""
    while frame and not IN_A_CELL.search(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_lineno if frame else 0
