"""Find the assert statements in a function's bytecode, whose steps do not count where a loop is forbidden."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator, Sequence
from types import CodeType

PRODUCTS = re.compile(r"mul|mm|dot|einsum|inner|outer|attention|linear|conv|kron")  # parts of functions' names
Span = tuple[tuple[int, int], tuple[int, int]]  # of source: (line, column) of its start and of its end


def harmless_asserts(code: CodeType) -> list[Span]:
    """Return the spans of the assert statements of a function that compute no product."""
    spans = [span_of(each.positions) for each in dis.get_instructions(code) if _is_of_an_assert(each)]
    products = [span_of(each.positions) for each in _all_instructions(code) if _is_product(each)]
    return [span for span in spans if span and not any(is_within(product, span) for product in products)]


def span_of(positions: Sequence[int | None] | None) -> Span | None:
    """Return the span of an instruction from its positions as `dis` gives them; None if one of them is unknown."""
    if positions is None or None in positions:
        return None
    line, last, column, end = positions
    return (line, column), (last, end)  # type: ignore[return-value]


def is_within(inner: Span | None, outer: Span) -> bool:
    """Return whether a span is known and lies within another."""
    return inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1]


def _is_of_an_assert(instruction: dis.Instruction) -> bool:
    """Return whether an instruction loads the error of an assert statement."""
    if instruction.opname == "LOAD_COMMON_CONSTANT":  # from Python 3.14 on
        return instruction.argval is AssertionError
    return instruction.opname == "LOAD_ASSERTION_ERROR"


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
