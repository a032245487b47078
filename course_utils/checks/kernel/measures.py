"""Measures of a function other than its result: whether it writes into its arguments, whether it loops."""

from __future__ import annotations

import ast
import copy
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

COURSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + os.sep
INSTALLED = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib")})


def changes(function: Callable, *args: Any) -> float:
    """Return 0.0 if `function` leaves its arguments as they are, else the sum of 2^i over the places i of changed ones.

    NaN counts as equal to itself.
    """
    before = copy.deepcopy(args)
    function(*args)
    return float(sum(2**i for i, each in enumerate(before) if not _alike(each, args[i])))


def bytecodes_grow(function: Callable, few: tuple, many: tuple) -> float:
    """Return 1.0 if `function` runs clearly more Python instructions on `many` than on `few`, as a loop does; else 0.0.

    Instructions of installed packages do not count, because NumPy takes more steps to print a larger array. Those of
    assert statements do not count either.
    """
    counts = []
    for args in (few, many):
        count = 0

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal count
            filename = frame.f_code.co_filename
            if is_installed(filename):
                return None
            frame.f_trace_opcodes = True
            count += event == "opcode" and frame.f_lineno not in _asserted(filename)
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
    return float(counts[1] - counts[0] > min(counts[0] / 2, 200))  # a margin for everything else that it runs


@cache
def is_installed(filename: str) -> bool:
    """Return whether a file belongs to an installed package other than the course."""
    path = os.path.realpath(filename)
    return path.startswith(INSTALLED) and not path.startswith(COURSE)


@cache
def _asserted(filename: str) -> frozenset[int]:
    """Return the lines of a file, or of a notebook's cell, that belong to an assert statement."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return frozenset(line for node in asserts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_alike, a, b))
    if not hasattr(a, "dtype"):
        return a is b or bool(a == b)
    a, b = (x.detach().cpu().numpy() if hasattr(x, "detach") else x for x in (a, b))
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
