"""How wrong numbers that come from a formula relate to the right ones: which terms are too much, and which missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from .array_relations import Pair, Relation, as_product, is_plain, quantities_of

MOST_QUANTITIES, HIGHEST_DEGREE, MOST_TERMS = 6, 4, 120
EXACT = 1e-6  # relative to the right number

Term = tuple[tuple[str, float], ...]  # quantities and their powers


def too_much_and_too_little(pairs: Sequence[Pair]) -> Relation | None:
    """Numbers that are off by one term or two, each a plain number times sizes."""
    if len(pairs) < 4 or any(pair.given.ndim or pair.right.ndim for pair in pairs):
        return None
    given, right = (np.array([float(getattr(pair, side)) for pair in pairs]) for side in ("given", "right"))
    if not np.isfinite(given).all():
        return None
    terms, values = _terms(pairs)
    scale = np.maximum(np.abs(right), np.abs(given)).clip(1e-9)
    off, made = (given - right) / scale, values / scale
    if found := _of_two(terms, made, off):
        more = [as_product(c, term) for c, term in found if c > 0]
        less = [as_product(-c, term) for c, term in found if c < 0]
        parts = [f"{' + '.join(each)} too {how}" for each, how in ((more, "much"), (less, "little")) if each]
        return Relation(", ".join(parts), f"Every number has {' and '.join(parts)}.")
    return None


def _terms(pairs: Sequence[Pair]) -> tuple[list[Term], np.ndarray]:
    """Products of quantities, the simplest first, and their values on each pair."""
    known = dict(list(quantities_of(pairs).items())[:MOST_QUANTITIES])
    powers = [p for p in product((0, 1, 2), repeat=len(known)) if sum(p) <= HIGHEST_DEGREE]
    powers = sorted(powers, key=lambda p: (sum(p), max(p, default=0)))[:MOST_TERMS]
    columns = np.array(list(known.values()), dtype=float).reshape(len(known), len(pairs))
    values = np.prod(columns[None] ** np.array(powers)[..., None], axis=1)
    return [tuple((name, n) for name, n in zip(known, p, strict=True) if n) for p in powers], values


def _of_two(terms: Sequence[Term], made: np.ndarray, off: np.ndarray) -> list[tuple[float, Term]]:
    """The simplest two terms, with plain factors, that add up to what is off."""
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
        if not (is_plain(one) and is_plain(other) and abs(one) > 1e-3 and abs(other) > 1e-3):
            continue
        if np.abs(one * made[i[k]] + other * made[j[k]] - off).max() < EXACT:
            degree = sum(n for _, n in (*terms[i[k]], *terms[j[k]])) + abs(one) + abs(other)
            best.append((degree, [(one, terms[i[k]]), (other, terms[j[k]])]))
    return min(best, key=lambda each: each[0])[1] if best else []
