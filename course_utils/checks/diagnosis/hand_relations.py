"""Relate wrong hand-worked numbers to the right ones, with messages that do not give the right ones away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from course_utils.checks.diagnosis.relation_types import Relation

Test = Callable[[np.ndarray, np.ndarray], bool | np.bool]  # test(entry, right entry)
PENCIL = 5.5e-3  # error of numbers worked to two decimals
NEARLY = 0.0115


def relate_by_hand(
    names: Sequence[str],
    entries: Sequence[np.ndarray | None],
    right: Sequence[np.ndarray | None],
    held: Sequence[bool],
) -> Relation | None:
    """Return what can be said about the wrong entries, or None.

    Args:
        entries: the learner's, None for an empty one.
    """
    names_of_facts = []
    messages = []
    for i, name in enumerate(names):
        entry = entries[i]
        expected = right[i]
        if held[i] or entry is None or expected is None:
            continue
        # To name another entry is to give its number away, unless that one is right or the two are exchanged.
        others = {
            other: array
            for j, other in enumerate(names)
            if j != i and (array := right[j]) is not None and (held[j] or _is_same(entries[j], expected))
        }
        if fact := _relate_entry(entry, expected, others):
            names_of_facts.append(f"{name}: {fact[0]}")
            messages.append(f"{name} {fact[1]}")
    return Relation(", ".join(names_of_facts), " ".join(messages)) if messages else None


def _relate_entry(mine: np.ndarray, right: np.ndarray, others: Mapping[str, np.ndarray]) -> tuple[str, str] | None:
    """Return the name of a fact about a wrong entry, and the end of a sentence that states it; None without one."""
    if mine.shape != right.shape:
        return _relate_shape(mine, right)
    if not np.isfinite(mine).all():
        return "no finite number", "holds a number that is not finite."
    for decimals in (1, 2):
        for name, cut in (("rounded", np.round), ("cut off", lambda x, n: np.trunc(x * 10**n) / 10**n)):
            if np.allclose(mine, cut(right, decimals), rtol=0, atol=1e-9):
                to = f"{decimals} decimal{'s' * (decimals > 1)}"
                return f"{name} to {to}", f"is {name} to {to}, which is too few."
    for other, values in others.items():
        if _is_same(mine, values) and not _near(right, values):
            return f"{other} in its place", f"holds what {other} should."
    for name, message, test in FACTS:
        if test(mine, right):
            return name, message
    return None


def _relate_shape(mine: np.ndarray, right: np.ndarray) -> tuple[str, str]:
    if not right.ndim:
        return "a list for a number", "should be one number, but is a list."
    if not mine.ndim:
        return "a number for a list", f"should be a list of {right.size}, but is one number."
    if mine.size == right.size:
        return "another shape", f"should be a list of {right.size} numbers, with no other lists in it."
    how = "few" if mine.size < right.size else "many"
    return f"too {how} numbers", f"holds too {how} numbers."


def _is_same(entry: np.ndarray | None, other: np.ndarray) -> bool:
    return entry is not None and entry.shape == other.shape and _near(entry, other)


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=PENCIL))


def _several(test: Test) -> Test:
    return lambda mine, right: right.ndim > 0 and right.size > 1 and bool(test(mine, right))


def _sums_to_1(x: np.ndarray) -> bool:
    return abs(float(x.sum()) - 1) < 2 * PENCIL


def _factor(mine: np.ndarray, right: np.ndarray) -> float:
    """Return the factor between two arrays or numbers; 0 where there is none."""
    if not right.any() or not mine.any():
        return 0.0
    factor = float((mine * right).sum() / (right * right).sum())
    return factor if np.allclose(mine, factor * right, rtol=0, atol=PENCIL * max(1.0, abs(factor))) else 0.0


def _is_plain(factor: float) -> bool:
    """Return whether a factor is, to the precision of a pencil, a whole number of at least 2, or 1 over one."""
    larger = max(abs(factor), 1 / abs(factor)) if factor else 0.0
    return larger > 1.2 and abs(larger - round(larger)) < 0.006 * larger


FACTS: tuple[tuple[str, str, Test], ...] = (
    ("opposite sign", "has the wrong sign.", lambda a, b: b.any() and _near(a, -b)),
    ("in percent", "is in percent.", lambda a, b: np.allclose(a, 100 * b, rtol=6e-3, atol=0.6) and b.any()),
    (
        "nearly right",
        "is nearly right: off by about 0.01 at most, as when steps are rounded.",
        lambda a, b: np.abs(a - b).max() <= NEARLY,
    ),
    ("backwards", "has its numbers in reverse order.", _several(lambda a, b: _near(a, b[::-1]))),
    ("another order", "has the right numbers in another order.", _several(lambda a, b: _near(np.sort(a), np.sort(b)))),
    (
        "one number wrong",
        "has one number that is clearly off; the others are right, or nearly so.",
        _several(lambda a, b: (np.abs(a - b) > PENCIL).sum() == 1),
    ),
    ("all zero", "is 0 throughout.", _several(lambda a, b: not a.any())),
    (
        "all alike",
        "has the same number everywhere, as if everything counted equally.",
        _several(lambda a, b: np.ptp(a) < PENCIL < np.ptp(b)),
    ),
    (
        "does not sum to 1",
        "should sum to 1, but does not.",
        _several(lambda a, b: _sums_to_1(b) and not _sums_to_1(a)),
    ),
    (
        "the largest too large",
        "sums to 1, but its largest number is too large.",
        _several(lambda a, b: _sums_to_1(b) and _sums_to_1(a) and a.max() > b.max() and a.argmax() == b.argmax()),
    ),
    (
        "the largest too small",
        "sums to 1, but its largest number is too small.",
        _several(lambda a, b: _sums_to_1(b) and _sums_to_1(a) and a.max() < b.max() and a.argmax() == b.argmax()),
    ),
    (
        "the largest at another place",
        "sums to 1, but its largest number is in the wrong place.",
        _several(lambda a, b: _sums_to_1(b) and _sums_to_1(a) and b[a.argmax()] < b.max() - PENCIL),
    ),
    (
        "a factor",
        "is off by a constant factor: is something left out, counted too often, or mistaken for something else?",
        lambda a, b: _is_plain(_factor(a, b)),
    ),
    (
        "a root",
        "is off by the root of a plain number.",
        lambda a, b: _factor(a, b) > 0 and _is_plain(_factor(a, b) ** 2),
    ),
    ("squared", "is the square of the right number.", lambda a, b: _near(a, b**2)),
    ("a little off", "is a little off.", lambda a, b: not b.ndim and abs(abs(float(a - b)) - 1) < 1e-9),
    (
        "a term too much or too little",
        "has all its numbers too large, or too small, by the same amount.",
        _several(lambda a, b: b.size > 2 and np.ptp(a - b) < PENCIL),
    ),
    (
        "some numbers right",
        "has some numbers right and others not.",
        _several(lambda a, b: (np.abs(a - b) <= PENCIL).any()),
    ),
    ("all too large", "has all its numbers too large.", _several(lambda a, b: b.size > 2 and (a > b).all())),
    ("all too small", "has all its numbers too small.", _several(lambda a, b: b.size > 2 and (a < b).all())),
)
