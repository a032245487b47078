"""What a rung measures of a function beside its result: whether it writes into its arguments, whether it loops."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np


def changes(function: Callable, *args: Any) -> float:
    """1.0 if `function` writes into its arguments, else 0.0. NaN counts as equal to itself."""
    before = copy.deepcopy(args)
    function(*args)
    return float(not all(map(_alike, before, args)))


def bytecodes_grow(function: Callable, few: tuple, many: tuple) -> float:
    """1.0 if `function` runs clearly more Python instructions on `many` than on `few`, as a loop does; else 0.0."""
    counts = []
    for args in (few, many):
        count = 0

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal count
            frame.f_trace_opcodes = True
            count += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        threading.settrace(trace)  # a loop may run in a thread
        try:
            function(*copy.deepcopy(args))
        finally:
            sys.settrace(before)
            threading.settrace(None)
        counts.append(count)
    return float(counts[1] - counts[0] > min(counts[0] / 2, 200))  # whatever else it runs besides


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_alike, a, b))
    if not hasattr(a, "dtype"):
        return a is b or bool(a == b)
    a, b = (x.detach().cpu().numpy() if hasattr(x, "detach") else x for x in (a, b))
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
