"""Measures of a function other than its result: whether it writes into its arguments, whether it loops."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from copy import deepcopy  # bound here, before an answer runs that may replace it in its module
from functools import cache, partial
from types import CodeType
from typing import Any

import numpy as np

from course_utils.checks.kernel.asserts import Span, harmless_asserts, is_within, span_of
from course_utils.checks.kernel.steps import StepCounter

COURSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + os.sep
INSTALLED = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib")})


def changes(function: Callable, *args: Any) -> float:
    """Return 0.0 if `function` leaves its arguments as they are, else the sum of 2^i over the places i of changed ones.

    NaN counts as equal to itself.
    """
    before = deepcopy(args)
    function(*args)
    return float(sum(2**i for i, each in enumerate(before) if not _is_alike(each, args[i])))


def bytecodes_grow(function: Callable, few: tuple, many: tuple) -> float:
    """Return 1.0 if `function` runs clearly more Python instructions on `many` than on `few`, as a loop does; else 0.0.

    Instructions of installed packages do not count, because NumPy takes more steps to print a larger array. Those of
    assert statements do not count either, except where an assert computes a product. A function that turns the counting
    off is taken to loop.
    """
    counts = []
    for args in (few, many):
        arguments = deepcopy(args)
        with StepCounter(partial(_counted_offsets, asserts={})) as steps:
            function(*arguments)
        if steps.stopped:
            return 1.0
        counts.append(steps.count)
    return float(counts[1] - counts[0] > min(counts[0] / 2, 200))  # a margin for everything else that it runs


@cache
def is_installed(filename: str) -> bool:
    """Return whether a file belongs to an installed package other than the course."""
    path = os.path.realpath(filename)
    return path.startswith(INSTALLED) and not path.startswith(COURSE)


def _counted_offsets(code: CodeType, asserts: dict[str, list[Span]]) -> frozenset[int]:
    """Return the offsets of the instructions that count, and add the asserts of `code` to those of its file.

    A generator within an assert has a code object of its own, which runs after the one that contains the assert.
    """
    if is_installed(code.co_filename):
        return frozenset()
    harmless = asserts.setdefault(code.co_filename, [])
    harmless += harmless_asserts(code)
    spans = map(span_of, code.co_positions())
    return frozenset(2 * i for i, span in enumerate(spans) if not any(is_within(span, each) for each in harmless))


def _is_alike(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_is_alike, a, b))
    if not hasattr(a, "dtype"):
        return a is b or bool(a == b)
    a, b = (x.detach().cpu().numpy() if hasattr(x, "detach") else x for x in (a, b))
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
