"""Express a number as a formula: a constant times powers of the sizes and numbers among the arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from course_utils.checks.diagnosis.relation_types import Pair, argument

POWERS = (1, -1, 0.5, -0.5, 2, -2)
SUPERSCRIPTS: dict[float, str] = {1: "", 2: "²"}


Powers = tuple[tuple[str, float], ...]  # of sizes and arguments, by name


def expression(pairs: Sequence[Pair], values: Sequence[float]) -> str:
    """Return a constant, or a constant times powers of sizes and arguments, that gives all the values; else ""."""
    product_found = product_of(pairs, values)
    return as_product(*product_found) if product_found else ""


def product_of(pairs: Sequence[Pair], values: Sequence[float]) -> tuple[float, Powers] | None:
    """Return a constant and powers of sizes and arguments whose product gives all the values; None if none does.

    If all values are the same there are no powers. Unless the exercise lists its quantities itself, rungs with fewer or
    more arguments than is usual, such as one with a list of inputs, are left out.
    """
    if _near_all(values, [values[0]] * len(values)):
        return values[0], ()
    counts = [len(pair.rung.args) for pair in pairs]
    usual = max(counts, key=counts.count)
    lists_own = all(pair.rung.quantities is not None for pair in pairs)
    chosen = [i for i, count in enumerate(counts) if lists_own or count == usual]
    quantities = quantities_of([pairs[i] for i in chosen])
    values = [values[i] for i in chosen]
    for powers in _exponents(list(quantities)):
        # What remains of the values after division by the powers has to be one plain constant.
        remaining = np.asarray(values) / np.prod([np.power(quantities[name], power) for name, power in powers], axis=0)
        constant = float(remaining[0])
        if _near_all(remaining, [constant] * len(remaining)) and is_plain(constant):
            return constant, powers
    return None


def _exponents(names: Sequence[str]) -> Iterator[Powers]:
    """Yield the powers to try, simple ones first: of one or two quantities, then products of up to four."""
    for count, exponents in ((1, POWERS), (2, POWERS), (3, (1, 2)), (4, (1,))):
        for chosen in combinations(names[:8], count):
            for powers in product(exponents, repeat=count):
                yield tuple(zip(chosen, powers, strict=True))


def is_plain(constant: float) -> bool:
    """Return whether a constant is one that people write, such as 2, 1/4 or 12."""
    near = Fraction(abs(constant)).limit_denominator(16)
    return near.numerator <= 64 and bool(near) and math.isclose(float(near), abs(constant), rel_tol=1e-5)


def _near_all(values: Sequence[float], others: Sequence[float]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(values, others, strict=True))


def as_product(constant: float, powers: Sequence[tuple[str, float]]) -> str:
    """Return a product as people write it, such as 2 · √d / n."""
    above = [_power(name, power) for name, power in powers if power > 0]
    below = [_power(name, -power) for name, power in powers if power < 0]
    if not math.isclose(constant, 1, rel_tol=1e-5) or not above:
        above.insert(0, _number(constant))
    numerator = " · ".join(above)
    if not below:
        return numerator
    return f"{numerator} / {below[0]}" if len(below) == 1 else f"{numerator} / ({' · '.join(below)})"


def _power(name: str, power: float) -> str:
    name = f"({name})" if " " in name else name
    return f"√{name}" if power == 0.5 else f"{name}{SUPERSCRIPTS[power]}"


def _number(x: float) -> str:
    """Return a number as people write it, such as 3, 1/3, √2 or 0.2887."""
    for value, form in ((x, "{}"), (x * abs(x), "√{}")):
        near = Fraction(abs(value)).limit_denominator(64)
        if near and math.isclose(float(near), abs(value), rel_tol=1e-6):
            text = str(near) if form == "{}" or near.denominator == 1 else f"({near})"
            return ("−" if x < 0 else "") + form.format(text)
    return f"{x:.5g}".replace("-", "−")


def quantities_of(pairs: Sequence[Pair]) -> dict[str, list[float]]:
    """Return the numbers and axis lengths that a factor may be made of, by name, with one value per pair."""
    # An exercise may list its quantities itself.
    own = [pair.rung.quantities for pair in pairs if pair.rung.quantities is not None]
    if len(own) == len(pairs):
        names = [name for name in own[0] if all(name in each for each in own)]
        listed = {name: [float(each[name]) for each in own] for name in names}
        return {name: values for name, values in listed.items() if len(set(values)) > 1 and min(values) > 0}

    quantities: dict[str, list[float]] = {}
    for i in range(min(len(pair.rung.args) for pair in pairs)):
        quantities |= _quantities_of_argument(pairs, i)
    # A quantity that is the same on all rungs is part of the constant. Numbers come before lengths of axes, and of
    # several quantities with the same values the first represents all.
    quantities = {name: values for name, values in quantities.items() if len(set(values)) > 1}
    names = sorted(quantities, key=lambda name: ".shape" in name)
    distinct: dict[str, list[float]] = {}
    for name in names:
        if quantities[name] not in distinct.values():
            distinct[name] = quantities[name]
    return distinct


def _quantities_of_argument(pairs: Sequence[Pair], i: int) -> dict[str, list[float]]:
    """Return an argument itself, if it is a positive number on all rungs, else the lengths of the axes that it has."""
    name = pairs[0].rung.arg_names[i]
    args = [pair.rung.args[i] for pair in pairs]
    if all(isinstance(arg, (int, float)) and not isinstance(arg, bool) and arg > 0 for arg in args):
        return {name: [float(arg) for arg in args]}
    arrays = [array for pair in pairs if (array := argument(pair.rung, i)) is not None]
    if len(arrays) < len(pairs):
        return {}
    lengths = {}
    for axis in (-1, -2, -3, -4):
        if all(array.ndim >= -axis and array.shape[axis] for array in arrays):
            lengths[f"{name}.shape[{axis}]".replace("-", "−")] = [float(array.shape[axis]) for array in arrays]
    return lengths
