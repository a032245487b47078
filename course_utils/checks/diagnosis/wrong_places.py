"""Say which entries of an array are wrong, such as one row or all above the diagonal, or how its shape is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from course_utils.checks.diagnosis.relation import NEAR, Pair, Relation, same, telling

ALWAYS_THE_SAME = "always the same"


def where_wrong(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise arrays that are right except for some entries, described by their places or by their values."""
    if not all(pair.alike and pair.right.ndim and pair.right.size > 1 for pair in pairs):
        return None
    right = [np.isclose(p.given, p.right, rtol=0, atol=NEAR * max(float(np.abs(p.right).max()), 1e-9)) for p in pairs]
    if not all(ok.any() for ok in right):
        return None
    if all(pair.mask and {*np.unique(pair.right), *np.unique(pair.given)} <= {0.0, 1.0} for pair in pairs) and (
        found := of_a_mask(pairs)
    ):
        return found
    several = sum(len(np.unique(pair.right[~ok].round(9))) for pair, ok in zip(pairs, right, strict=True)) >= 3
    flat = all(pair.right.ndim == 1 for pair in pairs)  # it has no rows
    for name, message, place in PLACES if several else ():
        if all(_only_there(ok, place) for ok in right):
            said = message.replace(" of rows", "").replace(" of each row", "") if flat else message
            return Relation(name.replace("column", "entry") if flat else name, said)
    for name, what, test in (
        ("some entries are 0", "are 0 and should not be", lambda p, ok: (p.given[~ok] == 0).all()),
        ("some entries are not 0", "should be 0 and are not", lambda p, ok: (p.right[~ok] == 0).all()),
        ("some entries are not finite", "are not finite", lambda p, ok: (~np.isfinite(p.given[~ok])).all()),
        ("some signs are wrong", "have the wrong sign", lambda p, ok: np.allclose(p.given[~ok], -p.right[~ok])),
    ):
        if all(test(pair, ok) for pair, ok in zip(pairs, right, strict=True)):
            pair, ok = pairs[0], right[0]
            first = ", ".join(map(str, np.argwhere(~ok)[0]))
            said = f"It is right but for entries that {what}: on “{pair.rung.name}” the first is [{first}]."
            return Relation(name, said)
    return None


def _only_there(ok: np.ndarray, wrong: Callable[[np.ndarray], np.ndarray | None]) -> bool:
    """Return whether all wrong entries are at these places, and other places exist; `ok` marks the right entries."""
    places = wrong(ok)
    return places is not None and bool((~ok[places]).any()) and bool(ok[~places].all()) and bool((~places).any())


def _all_but(axis: int, entries: slice) -> Callable[[np.ndarray], np.ndarray | None]:
    """Return a place test for all rows or columns but one end, which fails if one of them is right as a whole."""

    def places(ok: np.ndarray) -> np.ndarray | None:
        found = _along(axis, entries)(ok)
        if found is None:
            return None
        others = np.moveaxis(ok, axis, 0)[entries]
        return None if others.reshape(len(others), -1).all(axis=1).any() else found

    return places


def _along(axis: int, entries: slice) -> Callable[[np.ndarray], np.ndarray | None]:
    def places(ok: np.ndarray) -> np.ndarray | None:
        if ok.ndim < -axis or ok.shape[axis] < 2:
            return None
        found = np.zeros(ok.shape, bool)
        np.moveaxis(found, axis, 0)[entries] = True
        return found

    return places


def _triangle(upper: bool) -> Callable[[np.ndarray], np.ndarray | None]:
    def places(ok: np.ndarray) -> np.ndarray | None:
        if ok.ndim < 2 or min(ok.shape[-2:]) < 2:
            return None
        every = np.ones(ok.shape, bool)
        return np.triu(every, 1) if upper else np.tril(every, -1)

    return places


def _first_axis(entries: slice) -> Callable[[np.ndarray], np.ndarray | None]:
    def places(ok: np.ndarray) -> np.ndarray | None:
        if ok.ndim < 3 or ok.shape[0] < 2:
            return None
        found = np.zeros(ok.shape, bool)
        found[entries] = True
        return found

    return places


PLACES: tuple[tuple[str, str, Callable], ...] = (
    ("the first row only is wrong", "Only the first row is wrong.", _along(-2, slice(0, 1))),
    ("the last row only is wrong", "Only the last row is wrong.", _along(-2, slice(-1, None))),
    ("the first column only is wrong", "Only the first entry of rows is wrong.", _along(-1, slice(0, 1))),
    ("the last column only is wrong", "Only the last entry of rows is wrong.", _along(-1, slice(-1, None))),
    ("right for the first row only", "Only the first row is right.", _all_but(-2, slice(1, None))),
    ("right for the last row only", "Only the last row is right.", _all_but(-2, slice(None, -1))),
    ("right for the first column only", "Only the first entry of each row is right.", _all_but(-1, slice(1, None))),
    ("right for the last column only", "Only the last entry of each row is right.", _all_but(-1, slice(None, -1))),
    ("right for the first batch only", "Only the first entry of the first axis is right.", _first_axis(slice(1, None))),
    ("right for the last batch only", "Only the last entry of the first axis is right.", _first_axis(slice(None, -1))),
    ("wrong above the diagonal", "Everything is right but for entries above the diagonal.", _triangle(True)),
    ("wrong below the diagonal", "Everything is right but for entries below the diagonal.", _triangle(False)),
)


def of_a_mask(pairs: Sequence[Pair]) -> Relation | None:
    """Describe a wrong mask of 0 and 1: its diagonal edge is shifted, or it has too many or too few ones."""
    for k in (-2, -1, 1, 2):
        if all(p.right.ndim >= 2 and same(p.given, _moved(p.right, k)) for p in pairs):
            how = "later" if k > 0 else "earlier"
            return Relation(
                f"edge {abs(k)} {how}", f"Each row changes from True to False {abs(k)} place(s) {how} than it should."
            )
    more, less = (all((sign * (p.given - p.right) >= 0).all() for p in pairs) for sign in (1, -1))
    if more or less:
        said = (
            "is True where it should be, and elsewhere too"
            if more
            else "is True only where it should be, but too seldom"
        )
        pair = pairs[0]
        first = ", ".join(map(str, np.argwhere(pair.given != pair.right)[0]))
        name = "True too often" if more else "True too seldom"
        return Relation(name, f"The mask {said}: on “{pair.rung.name}” [{first}] is the first entry to differ.")
    return None


def _moved(mask: np.ndarray, k: int) -> np.ndarray:
    """Return a mask whose rows begin with True, with k more True in each row."""
    counts = np.clip(mask.sum(-1) + k, 0, mask.shape[-1])
    return (np.arange(mask.shape[-1]) < counts[..., None]).astype(float)


def same_everywhere(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise a result that does not depend on the input."""
    different = len({pair.right.tobytes() for pair in pairs}) > 1
    if not different and not telling(pairs):
        return None
    if all((pair.given == 0).all() for pair in pairs):
        return Relation("all zeros", "All numbers are 0.")
    first = pairs[0].given
    if different and len(pairs) > 2 and all(same(pair.given, first) for pair in pairs):
        return Relation(ALWAYS_THE_SAME, "The result is the same whatever is passed in.")
    return None


def shaped(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise a wrong shape, on at least half of the rungs and always of the same kind."""
    unlike = [pair for pair in pairs if not pair.alike]
    if len(unlike) * 2 < len(pairs):
        return None
    for name in unlike[0].others:
        if all(name in pair.others and pair.given.shape == pair.others[name].shape for pair in unlike):
            said = f"It has the shape that {name} should have."
            return Relation(f"the shape of {name}", said, len(unlike))
    for name, message, test in SHAPES:
        if all(test(pair.given.shape, pair.right.shape) for pair in unlike):
            return Relation(name, message, len(unlike))
    return None


def _one_axis_differs(given: tuple, right: tuple) -> bool:
    return len(given) == len(right) and sum(a != b for a, b in zip(given, right, strict=True)) == 1


SHAPES: tuple[tuple[str, str, Callable[[tuple, tuple], bool]], ...] = (
    ("shape transposed", "The shape is the right one with its axes in reverse order.", lambda a, b: a == b[::-1]),
    (
        "last two axes swapped in the shape",
        "The last two lengths of the shape are swapped.",
        lambda a, b: _swapped(a, b),
    ),
    (
        "axes of length 1 too many",
        "The shape has axes of length 1 that should not be there.",
        lambda a, b: _no_ones(a, b),
    ),
    ("axes of length 1 missing", "The shape lacks axes of length 1.", lambda a, b: _no_ones(b, a)),
    ("an array for a number", "One number is wanted, and this is an array.", lambda a, b: not b),
    ("a number for an array", "An array is wanted, and this is one number.", lambda a, b: not a),
    ("an axis too many", "The result has an axis too many.", lambda a, b: len(a) == len(b) + 1),
    ("an axis too few", "The result has an axis too few.", lambda a, b: len(a) == len(b) - 1),
    ("another number of axes", "The result has another number of axes.", lambda a, b: len(a) != len(b)),
    ("one axis of another length", "One axis of the result has the wrong length.", _one_axis_differs),
    ("axes of other lengths", "The axes of the result have the wrong lengths.", lambda a, b: len(a) == len(b)),
)


def _swapped(given: tuple, right: tuple) -> bool:
    return len(right) > 1 and given == (*right[:-2], right[-1], right[-2])


def _no_ones(given: tuple, right: tuple) -> bool:
    return [n for n in given if n != 1] == [n for n in right if n != 1] and len(given) > len(right)
