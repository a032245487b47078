"""Express a number as a formula: a constant times powers of the sizes and numbers among the arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from course_utils.checks.diagnosis.relation import Pair, argument

POWERS = (1, -1, 0.5, -0.5, 2, -2)
SUPERSCRIPTS: dict[float, str] = {1: "", 2: "²"}


Powers = tuple[tuple[str, float], ...]  # of sizes and arguments, by name


def expression(pairs: Sequence[Pair], values: Sequence[float]) -> str:
    """Return a constant, or a constant times powers of sizes and arguments, that gives all the values; else ""."""
    made = product_of(pairs, values)
    return as_product(*made) if made else ""


def product_of(pairs: Sequence[Pair], values: Sequence[float]) -> tuple[float, Powers] | None:
    """Return a constant and powers of sizes and arguments whose product gives all the values; None where none does.

    Where all values are the same there are no powers. Rungs with fewer or more arguments than is usual, such as one
    with a list of inputs, are left out.
    """
    if _near_all(values, [values[0]] * len(values)):
        return values[0], ()
    counts = [len(pair.rung.args) for pair in pairs]
    usual = max(counts, key=counts.count)
    chosen = [i for i, count in enumerate(counts) if count == usual]
    known, values = quantities_of([pairs[i] for i in chosen]), [values[i] for i in chosen]
    for powers in _exponents(list(known)):
        left = np.asarray(values) / np.prod([np.power(known[name], power) for name, power in powers], axis=0)
        constant = float(left[0])
        if _near_all(left, [constant] * len(left)) and is_plain(constant):
            return constant, powers
    return None


def _exponents(names: Sequence[str]) -> Iterator[Powers]:
    """Yield the powers to try, simple ones first: of one or two quantities, then products of up to four."""
    for many, kinds in ((1, POWERS), (2, POWERS), (3, (1, 2)), (4, (1,))):
        for chosen in combinations(names[:8], many):
            for powers in product(kinds, repeat=many):
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
    text = " · ".join(above)
    return f"{text} / ({' · '.join(below)})" if len(below) > 1 else f"{text} / {below[0]}" if below else text


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
    own = [pair.rung.quantities for pair in pairs if pair.rung.quantities is not None]
    if len(own) == len(pairs):
        names = [name for name in own[0] if all(name in each for each in own)]
        made = {name: [float(each[name]) for each in own] for name in names}
        return {name: values for name, values in made.items() if len(set(values)) > 1 and min(values) > 0}
    found: dict[str, list[float]] = {}
    for i in range(min(len(pair.rung.args) for pair in pairs)):
        args, called = [pair.rung.args[i] for pair in pairs], pairs[0].rung.called[i]
        if all(isinstance(arg, (int, float)) and not isinstance(arg, bool) and arg > 0 for arg in args):
            found[called] = [float(arg) for arg in args]
            continue
        arrays = [array for pair in pairs if (array := argument(pair.rung, i)) is not None]
        if len(arrays) < len(pairs):
            continue
        for axis in (-1, -2, -3, -4):
            if all(array.ndim >= -axis and array.shape[axis] for array in arrays):
                found[f"{called}.shape[{axis}]".replace("-", "−")] = [float(a.shape[axis]) for a in arrays]
    found = {name: values for name, values in found.items() if len(set(values)) > 1}
    found = dict(sorted(found.items(), key=lambda quantity: ".shape" in quantity[0]))
    return {name: found[name] for i, name in enumerate(found) if found[name] not in list(found.values())[:i]}
