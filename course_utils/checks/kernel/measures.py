"""Measures of a function other than its result: whether it writes into its arguments, whether it loops."""

from __future__ import annotations

import dis
import os
import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy  # bound here, before an answer runs that may replace it in its module
from functools import cache, partial
from types import CodeType
from typing import Any

import numpy as np

from course_utils.checks.kernel.steps import StepCounter

COURSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + os.sep
INSTALLED = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib")})
PRODUCTS = re.compile(r"mul|mm|dot|einsum|inner|outer|attention|linear|conv|kron")  # parts of functions' names
Span = tuple[tuple[int, int], tuple[int, int]]  # of source: (line, column) of its start and of its end


def changes(function: Callable, *args: Any) -> float:
    """Return 0.0 if `function` leaves its arguments as they are, else the sum of 2^i over the places i of changed ones.

    NaN counts as equal to itself.
    """
    before = deepcopy(args)
    function(*args)
    return float(sum(2**i for i, each in enumerate(before) if not _alike(each, args[i])))


def bytecodes_grow(function: Callable, few: tuple, many: tuple) -> float:
    """Return 1.0 if `function` runs clearly more Python instructions on `many` than on `few`, as a loop does; else 0.0.

    Instructions of installed packages do not count, because NumPy takes more steps to print a larger array. Those of
    assert statements do not count either, except where an assert computes a product. A function that turns the counting
    off is taken to loop.
    """
    counts = []
    for args in (few, many):
        arguments = deepcopy(args)
        with StepCounter(partial(_offsets, asserts={})) as steps:
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


def _offsets(code: CodeType, asserts: dict[str, list[Span]]) -> frozenset[int]:
    """Return the offsets of the instructions that count, and put the asserts of `code` among those of its file.

    A generator within an assert has a code object of its own, which runs after the one that holds the assert.
    """
    if is_installed(code.co_filename):
        return frozenset()
    harmless = asserts.setdefault(code.co_filename, [])
    harmless += _harmless_asserts(code)
    spans = map(_span, code.co_positions())
    return frozenset(2 * i for i, span in enumerate(spans) if not any(_within(span, each) for each in harmless))


def _harmless_asserts(code: CodeType) -> list[Span]:
    """Return where the assert statements of a function lie that compute no product."""
    instructions = list(dis.get_instructions(code))
    spans = [_span(each.positions) for each in instructions if _is_of_an_assert(each)]
    products = [_span(each.positions) for each in _all_instructions(code) if _is_product(each)]
    return [span for span in spans if span and not any(_within(product, span) for product in products)]


def _is_of_an_assert(instruction: dis.Instruction) -> bool:
    """Return whether an instruction loads the error of an assert statement."""
    common = (
        instruction.opname == "LOAD_COMMON_CONSTANT" and instruction.argval is AssertionError
    )  # from Python 3.14 on
    return common or instruction.opname == "LOAD_ASSERTION_ERROR"


def _is_product(instruction: dis.Instruction) -> bool:
    if instruction.opname == "BINARY_OP":
        return instruction.argrepr.removesuffix("=") in ("@", "*")
    return isinstance(instruction.argval, str) and PRODUCTS.search(instruction.argval) is not None


def _all_instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a function and of the functions within it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_instructions(constant)


def _span(place: Sequence[int | None] | None) -> Span | None:
    if place is None or None in place:
        return None
    line, last, column, end = place
    return (line, column), (last, end)  # type: ignore[return-value]


def _within(inner: Span | None, outer: Span) -> bool:
    return inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_alike, a, b))
    if not hasattr(a, "dtype"):
        return a is b or bool(a == b)
    a, b = (x.detach().cpu().numpy() if hasattr(x, "detach") else x for x in (a, b))
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
