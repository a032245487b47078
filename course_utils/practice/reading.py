"""Read the numbers that a person types for a step."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
LONGEST = 400
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")  # the commas of 45,097,156,608


def read_entry(text: str) -> list | float | None:
    """Return the numbers in a typed text; None where it is empty.

    Spaces or commas separate numbers, and semicolons separate rows. A short calculation may stand for a number: 1/3,
    2e9, 4*512**2. A minus may be − or -, and 12,345 is one number.

    Raises:
        ValueError: the text cannot be read. The message says which part.
    """
    text = text.strip().strip("[]").replace("−", "-").replace("], [", ";").replace("^", "**")
    text = THOUSANDS.sub("", text)
    if not text:
        return None
    if len(text) > LONGEST:
        raise ValueError(f"{len(text)} characters are more than a step needs")
    rows = [[_number(part) for part in re.split(r"[,\s]+", row.strip(" []")) if part] for row in text.split(";")]
    rows = [row for row in rows if row]
    if not rows:
        raise ValueError(f"{text!r} is not a number")
    if len({len(row) for row in rows}) > 1:
        raise ValueError("the rows have different lengths")
    return rows if len(rows) > 1 else rows[0] if len(rows[0]) > 1 else rows[0][0]


def _number(text: str) -> float:
    try:
        value = _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a number")
    return value


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        value = OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        if isinstance(value, float):
            return value
    raise ValueError
