"""Relate wrong single numbers, which come from a formula, to the right ones: which terms are too many or missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from course_utils.checks.diagnosis.expressions import as_product, is_plain, quantities_of
from course_utils.checks.diagnosis.relation_types import NEAR, NamedRung, Pair, Relation, argument

MAX_QUANTITIES = 6
MAX_PAIRED_TERMS = 120  # terms that are tried in pairs
EXACT = 2e-7  # relative to the right number, which has eight digits
MAX_FACTOR = 16

Term = tuple[tuple[str, float], ...]  # (quantity, power) pairs


def of_terms(pairs: Sequence[Pair]) -> Relation | None:
    """Find one or two terms (a simple number times sizes) by which single numbers are off, or one that they equal."""
    numbers = _single_numbers(pairs)
    if numbers is None or not numbers[0].any() or not quantities_of(pairs):
        return None
    actual, right = numbers
    terms, values = _terms(pairs)
    scale = np.maximum(np.abs(right), np.abs(actual)).clip(1e-9)
    found = _find_term(terms, values, actual - right, scale) or _find_two_terms(terms, values, actual - right, scale)
    if found:
        more = [as_product(c, term) for c, term in found if c > 0]
        less = [as_product(-c, term) for c, term in found if c < 0]
        parts = [f"{' + '.join(each)} too {how}" for each, how in ((more, "much"), (less, "little")) if each]
        return Relation(", ".join(parts), f"Every number has {' and '.join(parts)}.")
    if found := _find_term(terms, values, actual, scale):
        formula = as_product(*found[0])
        return Relation(formula, f"The result is {formula}.")
    return None


def of_a_share(pairs: Sequence[Pair]) -> Relation | None:
    """Find x, made of sizes, for which single numbers are 1 + x times the right ones, or the right ones over 1 + x."""
    numbers = _single_numbers(pairs)
    if numbers is None or not numbers[0].all() or not numbers[1].all():
        return None
    actual, right = numbers
    quantities = dict(list(quantities_of(pairs).items())[:MAX_QUANTITIES])
    if not quantities:
        return None

    # All products and quotients of sizes, the simplest first, and their values on each pair.
    powers = [each for each in product((0, 1, -1), repeat=len(quantities)) if any(each)]
    powers.sort(key=lambda each: sum(map(abs, each)))
    columns = np.array(list(quantities.values()), dtype=float).reshape(len(quantities), len(pairs))
    values = np.prod(columns[None] ** np.array(powers, dtype=float)[..., None], axis=1)
    terms = [tuple((name, n) for name, n in zip(quantities, each, strict=True) if n) for each in powers]

    # The simplest of them that, times a simple factor, is the ratio of both numbers minus 1.
    for ratio, how in ((actual / right, "{} times the right one"), (right / actual, "the right one over {}")):
        if found := _find_term(terms, values, ratio - 1, np.abs(ratio).clip(1)):
            factor, term = found[0]
            share = f"(1 {'+' if factor > 0 else '−'} {as_product(abs(factor), term)})"
            return Relation(how.format(share), f"Every number is {how.format(share)}.")
    return None


def _single_numbers(pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the answer's numbers and the right ones, if there are enough pairs, all of single finite numbers."""
    if len(pairs) < 4 or any(pair.actual.ndim or pair.right.ndim for pair in pairs):
        return None
    actual = np.array([float(pair.actual) for pair in pairs])
    right = np.array([float(pair.right) for pair in pairs])
    return (actual, right) if np.isfinite(actual).all() else None


def find_scatter(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise single numbers that are all near the right ones, some too large and some too small, and none exact."""
    if len(pairs) < 4 or any(pair.actual.ndim or pair.right.ndim for pair in pairs):
        return None
    off = [float(pair.actual - pair.right) for pair in pairs]
    sizes = [
        max(abs(float(each)) for each in (pair.right, *pair.others.values()) if not np.ndim(each)) for pair in pairs
    ]
    are_near = all(math.isfinite(x) and 0 < abs(x) <= 0.1 * size for x, size in zip(off, sizes, strict=True))
    if not are_near or min(off) > 0 or max(off) < 0:
        return None
    message = (
        "Every number is near the right one, but none is exact, as from a simulation. Compute it, and do not round."
    )
    return Relation("near the right numbers", message)


def along_a_diagonal(pairs: Sequence[Pair]) -> Relation | None:
    """Find a line parallel to the diagonal of a square array of which single numbers are the sum or the mean."""
    squares = [each for pair in pairs if (each := _square_and_size(pair.rung)) is not None]
    if len(pairs) < 3 or len(squares) < len(pairs) or any(pair.actual.ndim for pair in pairs):
        return None
    name, size_name = squares[0][2:]
    sizes = [size for _, size, *_ in squares]
    numbers = [float(pair.actual) for pair in pairs]
    # Try lines some sizes and some entries away from the diagonal, without some entries at their ends, whose sum is
    # divided by something.
    for times, more in product((-1, 0, 1, -2, 2), (0, 1, -1, 2, -2)):
        lines = [np.diagonal(array, times * size + more) for array, size, *_ in squares]
        sums = [[0.0, *np.cumsum(line).tolist()] for line in lines]
        for first, last in product(CUTS, repeat=2):
            for over, divisor in DIVISORS:
                triples = zip(sums, sizes, numbers, strict=True)
                if all(_is_cut_sum(*each, first, last, divisor) for each in triples):
                    ends = {"first": first, "last": last}
                    cuts = [f"its {end} {_entries(cut, size_name)}" for end, cut in ends.items() if cut != "0"]
                    without = f" without {' and '.join(cuts)}" if cuts else ""
                    line = f"{name}[i, i{_shift(times, more, size_name)}]{without}"
                    message = f"This is the sum of the entries {line}, {over.format(size_name)}."
                    return Relation(f"{line}, {over.format(size_name)}", message)
    return None


def _entries(cut: str, size_name: str) -> str:
    return "entry" if cut == "1" else f"{cut.format(size_name)} entries"


def _is_cut_sum(
    sums: Sequence[float], size: int, number: float, first: str, last: str, divisor: Callable[[int, int], int]
) -> bool:
    """Return whether a number is the sum of a line without its ends, divided. sums: the line's running sums."""
    start = CUTS[first](size)
    stop = len(sums) - 1 - CUTS[last](size)
    return start < stop and abs((sums[stop] - sums[start]) / divisor(stop - start, size) - number) <= NEAR


CUTS: dict[str, Callable[[int], int]] = {
    "0": lambda size: 0,
    "1": lambda size: 1,
    "2": lambda size: 2,
    "{}": lambda size: size,
    "{} − 1": lambda size: size - 1,
    "{} + 1": lambda size: size + 1,
}
DIVISORS = (
    ("over their number", lambda count, size: count),
    ("over {}", lambda count, size: size),
    ("over 1", lambda count, size: 1),
    ("over 2 · {}", lambda count, size: 2 * size),
    ("over {} − 1", lambda count, size: max(size - 1, 1)),
    ("over {} + 1", lambda count, size: size + 1),
)


def _shift(times: int, more: int, name: str) -> str:
    large = {0: "", 1: f" + {name}", -1: f" − {name}", 2: f" + 2 · {name}", -2: f" − 2 · {name}"}[times]
    return large + (f" {'+' if more > 0 else '−'} {abs(more)}" if more else "")


def _square_and_size(rung: NamedRung) -> tuple[np.ndarray, int, str, str] | None:
    """Return the one square array and the one whole number among the arguments, with their names, or None."""
    arrays = [(array, rung.arg_names[i]) for i in range(len(rung.args)) if (array := argument(rung, i)) is not None]
    squares = [each for each in arrays if each[0].ndim == 2 and len(set(each[0].shape)) == 1]
    sizes = [(arg, rung.arg_names[i]) for i, arg in enumerate(rung.args) if type(arg) is int]
    if len(squares) != 1 or len(sizes) != 1:
        return None
    array, array_name = squares[0]
    size, size_name = sizes[0]
    return array, size, array_name, size_name


def _terms(pairs: Sequence[Pair]) -> tuple[list[Term], np.ndarray]:
    """Return products of quantities, the simplest first, and their values on each pair."""
    quantities = dict(list(quantities_of(pairs).items())[:MAX_QUANTITIES])
    powers = sorted(product((0, 1, 2), repeat=len(quantities)), key=lambda p: (sum(p), max(p, default=0)))
    columns = np.array(list(quantities.values()), dtype=float).reshape(len(quantities), len(pairs))
    values = np.prod(columns[None] ** np.array(powers)[..., None], axis=1)
    return [tuple((name, n) for name, n in zip(quantities, p, strict=True) if n) for p in powers], values


def _find_term(
    terms: Sequence[Term], values: np.ndarray, off: np.ndarray, scale: np.ndarray
) -> list[tuple[float, Term]]:
    """Return the simplest term that, times a plain factor, equals the difference `off`; an empty list without one."""
    # The largest relative difference is the most precise one, because the numbers have eight digits.
    surest = (np.abs(off) / scale).argmax()
    factors = off[surest] / values[:, surest]
    fits = (np.abs(factors[:, None] * values - off) <= EXACT * scale).all(axis=1) & (np.abs(factors) > 1e-9)
    for k in np.flatnonzero(fits).tolist():
        if is_plain(float(factors[k])):
            return [(float(factors[k]), terms[k])]
    return []


def _is_simple(factor: float) -> bool:
    """Return whether a factor is a small whole number or half of one, so that two of them are no accident."""
    twice = round(2 * factor)
    return 0 < abs(twice) <= 2 * MAX_FACTOR and abs(2 * factor - twice) < 1e-4


def _find_two_terms(
    terms: Sequence[Term], values: np.ndarray, off: np.ndarray, scale: np.ndarray
) -> list[tuple[float, Term]]:
    """Return the simplest two terms that, times simple factors, add up to the difference `off`."""
    terms = terms[:MAX_PAIRED_TERMS]
    values = values[:MAX_PAIRED_TERMS] / scale
    off = off / scale
    # For all pairs of terms at once, the two factors by least squares, and the squared distance that remains.
    gram = values @ values.T
    along = values @ off
    size = off @ off
    i, j = np.triu_indices(len(terms), 1)
    with np.errstate(all="ignore"):
        det = gram[i, i] * gram[j, j] - gram[i, j] ** 2
        first = (along[i] * gram[j, j] - along[j] * gram[i, j]) / det
        second = (along[j] * gram[i, i] - along[i] * gram[i, j]) / det
        remaining = size - first * along[i] - second * along[j]
    near = np.flatnonzero((det > 1e-9 * gram[i, i] * gram[j, j]) & (np.abs(remaining) < 1e-6 * size))
    # Of those that fit, the pair with the lowest powers and the smallest factors, if these are simple.
    best = []
    for k in near[:200]:
        one = float(first[k])
        other = float(second[k])
        if not (_is_simple(one) and _is_simple(other)):
            continue
        if np.abs(one * values[i[k]] + other * values[j[k]] - off).max() < EXACT:
            degree = sum(n for _, n in (*terms[i[k]], *terms[j[k]])) + abs(one) + abs(other)
            best.append((degree, [(one, terms[i[k]]), (other, terms[j[k]])]))
    return min(best, key=lambda each: each[0])[1] if best else []
