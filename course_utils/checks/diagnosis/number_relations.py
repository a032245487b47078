"""Relate wrong single numbers, which come from a formula, to the right ones: which terms are too many or missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from course_utils.checks.diagnosis.expressions import as_product, is_plain, quantities_of
from course_utils.checks.diagnosis.relation import NEAR, Pair, Relation, Step, argument

MOST_QUANTITIES, MOST_PAIRED = 6, 120
EXACT = 2e-7  # relative to the right number, which has eight digits
LARGEST_FACTOR = 16

Term = tuple[tuple[str, float], ...]  # (quantity, power) pairs


def of_terms(pairs: Sequence[Pair]) -> Relation | None:
    """Find one or two terms (a simple number times sizes) by which single numbers are off, or one that they equal."""
    if len(pairs) < 4 or any(pair.given.ndim or pair.right.ndim for pair in pairs):
        return None
    given, right = (np.array([float(getattr(pair, side)) for pair in pairs]) for side in ("given", "right"))
    if not np.isfinite(given).all() or not given.any():
        return None
    if not quantities_of(pairs):
        return None
    terms, values = _terms(pairs)
    scale = np.maximum(np.abs(right), np.abs(given)).clip(1e-9)
    found = _of_one(terms, values, given - right, scale) or _of_two(terms, values, given - right, scale)
    if found:
        more = [as_product(c, term) for c, term in found if c > 0]
        less = [as_product(-c, term) for c, term in found if c < 0]
        parts = [f"{' + '.join(each)} too {how}" for each, how in ((more, "much"), (less, "little")) if each]
        return Relation(", ".join(parts), f"Every number has {' and '.join(parts)}.")
    if found := _of_one(terms, values, given, scale):
        made = as_product(*found[0])
        return Relation(f"{made}", f"What comes is {made}.")
    return None


def of_a_share(pairs: Sequence[Pair]) -> Relation | None:
    """Find x, made of sizes, for which single numbers are 1 + x times the right ones, or the right ones over 1 + x."""
    if len(pairs) < 4 or any(pair.given.ndim or pair.right.ndim for pair in pairs):
        return None
    given, right = (np.array([float(getattr(pair, side)) for pair in pairs]) for side in ("given", "right"))
    if not np.isfinite(given).all() or not given.all() or not right.all():
        return None
    known = quantities_of(pairs)
    if not known:
        return None
    powers = [p for p in product((0, 1, -1), repeat=min(len(known), MOST_QUANTITIES)) if any(p)]
    columns = np.array(list(known.values()), dtype=float).reshape(len(known), len(pairs))[:MOST_QUANTITIES]
    values = np.prod(columns[None] ** np.array(powers, dtype=float)[..., None], axis=1)
    terms = [tuple((name, n) for name, n in zip(known, p, strict=False) if n) for p in powers]
    order = sorted(range(len(terms)), key=lambda i: sum(abs(n) for _, n in terms[i]))
    terms, values = [terms[i] for i in order], values[order]
    for ratio, how in ((given / right, "{} times the right one"), (right / given, "the right one over {}")):
        if found := _of_one(terms, values, ratio - 1, np.abs(ratio).clip(1)):
            c, term = found[0]
            made = f"(1 {'+' if c > 0 else '−'} {as_product(abs(c), term)})"
            return Relation(how.format(made), f"Every number is {how.format(made)}.")
    return None


def scattered(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise single numbers that are all near the right ones, some too large and some too small, and none exact."""
    if len(pairs) < 4 or any(pair.given.ndim or pair.right.ndim for pair in pairs):
        return None
    off = [float(pair.given - pair.right) for pair in pairs]
    sizes = [
        max(abs(float(each)) for each in (pair.right, *pair.others.values()) if not np.ndim(each)) for pair in pairs
    ]
    near = all(math.isfinite(x) and 0 < abs(x) <= 0.1 * size for x, size in zip(off, sizes, strict=True))
    if not near or min(off) > 0 or max(off) < 0:
        return None
    said = "Every number is near the right one, and none is exact, as from a simulation. Compute it, and do not round."
    return Relation("near the right numbers", said)


def along_a_diagonal(pairs: Sequence[Pair]) -> Relation | None:
    """Find a line parallel to the diagonal of a square array of which single numbers are the sum or the mean."""
    found = [each for pair in pairs if (each := _square_and_size(pair.rung)) is not None]
    if len(pairs) < 3 or len(found) < len(pairs) or any(pair.given.ndim for pair in pairs):
        return None
    name, size_name = found[0][2:]
    sizes, wanted = [size for _, size, *_ in found], [float(pair.given) for pair in pairs]
    for times, more in product((-1, 0, 1, -2, 2), (0, 1, -1, 2, -2)):
        lines = [np.diagonal(array, times * size + more) for array, size, *_ in found]
        sums = [[0.0, *np.cumsum(line).tolist()] for line in lines]
        for first, last in product(CUTS, repeat=2):
            ends = {"first": first, "last": last}
            for over, counted in DIVISORS:
                if all(map(_is_cut_sum, sums, sizes, wanted, *([each] * len(sums) for each in (first, last, counted)))):
                    cut = [f"its {end} {_entries(cut, size_name)}" for end, cut in ends.items() if cut != "0"]
                    without = f" without {' and '.join(cut)}" if cut else ""
                    line = f"{name}[i, i{_shift(times, more, size_name)}]{without}"
                    said = f"This is the sum of the entries {line}, {over.format(size_name)}."
                    return Relation(f"{line}, {over.format(size_name)}", said)
    return None


def _entries(cut: str, size_name: str) -> str:
    return "entry" if cut == "1" else f"{cut.format(size_name)} entries"


def _is_cut_sum(sums: Sequence[float], size: int, wanted: float, first: str, last: str, counted: Callable) -> bool:
    """Return whether a number is the sum of a line without its ends, over a count. sums: the line's running sums."""
    start, stop = CUTS[first](size), len(sums) - 1 - CUTS[last](size)
    return start < stop and abs((sums[stop] - sums[start]) / counted(stop - start, size) - wanted) <= NEAR


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


def _square_and_size(step: Step) -> tuple[np.ndarray, int, str, str] | None:
    """Return the one square array and the one whole number among the arguments, with their names, or None."""
    arrays = [(array, step.called[i]) for i in range(len(step.args)) if (array := argument(step, i)) is not None]
    squares = [each for each in arrays if each[0].ndim == 2 and len(set(each[0].shape)) == 1]
    sizes = [(arg, step.called[i]) for i, arg in enumerate(step.args) if type(arg) is int]
    return (squares[0][0], sizes[0][0], squares[0][1], sizes[0][1]) if len(squares) == len(sizes) == 1 else None


def _terms(pairs: Sequence[Pair]) -> tuple[list[Term], np.ndarray]:
    """Return products of quantities, the simplest first, and their values on each pair."""
    known = dict(list(quantities_of(pairs).items())[:MOST_QUANTITIES])
    powers = sorted(product((0, 1, 2), repeat=len(known)), key=lambda p: (sum(p), max(p, default=0)))
    columns = np.array(list(known.values()), dtype=float).reshape(len(known), len(pairs))
    values = np.prod(columns[None] ** np.array(powers)[..., None], axis=1)
    return [tuple((name, n) for name, n in zip(known, p, strict=True) if n) for p in powers], values


def _of_one(terms: Sequence[Term], values: np.ndarray, off: np.ndarray, scale: np.ndarray) -> list[tuple[float, Term]]:
    """Return the simplest term that, times a simple factor, equals the difference `off`."""
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
    return 0 < abs(twice) <= 2 * LARGEST_FACTOR and abs(2 * factor - twice) < 1e-4


def _of_two(terms: Sequence[Term], values: np.ndarray, off: np.ndarray, scale: np.ndarray) -> list[tuple[float, Term]]:
    """Return the simplest two terms that, times simple factors, add up to the difference `off`."""
    terms, made, off = terms[:MOST_PAIRED], values[:MOST_PAIRED] / scale, off / scale
    gram, along, size = made @ made.T, made @ off, off @ off
    i, j = np.triu_indices(len(terms), 1)
    with np.errstate(all="ignore"):
        det = gram[i, i] * gram[j, j] - gram[i, j] ** 2
        first = (along[i] * gram[j, j] - along[j] * gram[i, j]) / det
        second = (along[j] * gram[i, i] - along[i] * gram[i, j]) / det
        left = size - first * along[i] - second * along[j]
    near = np.flatnonzero((det > 1e-9 * gram[i, i] * gram[j, j]) & (np.abs(left) < 1e-6 * size))
    best = []
    for k in near[:200]:
        one, other = float(first[k]), float(second[k])
        if not (_is_simple(one) and _is_simple(other)):
            continue
        if np.abs(one * made[i[k]] + other * made[j[k]] - off).max() < EXACT:
            degree = sum(n for _, n in (*terms[i[k]], *terms[j[k]])) + abs(one) + abs(other)
            best.append((degree, [(one, terms[i[k]]), (other, terms[j[k]])]))
    return min(best, key=lambda each: each[0])[1] if best else []
