"""Say which entries of an array are wrong, such as one row or all above the diagonal, or how its shape is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from course_utils.checks.diagnosis.relation_types import NEAR, Pair, Relation, same, telling

ALWAYS_THE_SAME = "always the same"


def where_wrong(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise arrays that are right except for some entries, described by their places or by their values."""
    if not all(pair.alike and pair.right.ndim and pair.right.size > 1 for pair in pairs):
        return None
    right_entries = [_right_entries(pair) for pair in pairs]
    if not all(ok.any() for ok in right_entries):
        return None

    # Masks of 0 and 1 have relations of their own.
    are_masks = all(pair.mask and {*np.unique(pair.right), *np.unique(pair.actual)} <= {0.0, 1.0} for pair in pairs)
    if are_masks and (found := of_a_mask(pairs)):
        return found

    # The places of the wrong entries, if their right numbers differ enough for the places to be no accident.
    wrong_numbers = [pair.right[~ok].round(9) for pair, ok in zip(pairs, right_entries, strict=True)]
    if sum(len(np.unique(each)) for each in wrong_numbers) >= 3:
        have_no_rows = all(pair.right.ndim == 1 for pair in pairs)
        for name, message, place in PLACES:
            if all(_only_there(ok, place) for ok in right_entries):
                if have_no_rows:
                    name = name.replace("column", "entry")
                    message = message.replace(" of rows", "").replace(" of each row", "")
                return Relation(name, message)

    # Else what the wrong entries have in common.
    for name, description, test in VALUES:
        if all(test(pair, ok) for pair, ok in zip(pairs, right_entries, strict=True)):
            first = ", ".join(map(str, np.argwhere(~right_entries[0])[0]))
            message = (
                f"It is right except for entries that {description}: on “{pairs[0].rung.name}” the first is [{first}]."
            )
            return Relation(name, message)
    return None


def _right_entries(pair: Pair) -> np.ndarray:
    """Return which entries of the answer's array are right."""
    near = NEAR * max(float(np.abs(pair.right).max()), 1e-9)
    return np.isclose(pair.actual, pair.right, rtol=0, atol=near)


VALUES: tuple[tuple[str, str, Callable], ...] = (
    ("some entries are 0", "are 0 and should not be", lambda p, ok: (p.actual[~ok] == 0).all()),
    ("some entries are not 0", "should be 0 and are not", lambda p, ok: (p.right[~ok] == 0).all()),
    ("some entries are not finite", "are not finite", lambda p, ok: (~np.isfinite(p.actual[~ok])).all()),
    ("some signs are wrong", "have the wrong sign", lambda p, ok: np.allclose(p.actual[~ok], -p.right[~ok])),
)


def _only_there(ok: np.ndarray, wrong: Callable[[np.ndarray], np.ndarray | None]) -> bool:
    """Return whether all wrong entries are at these places, and other places exist; `ok` marks the right entries."""
    places = wrong(ok)
    return places is not None and bool((~ok[places]).any()) and bool(ok[~places].all()) and bool((~places).any())


def _all_but(axis: int, entries: slice) -> Callable[[np.ndarray], np.ndarray | None]:
    """Return a place test for all rows or columns but one end, which fails if one of them is right as a whole."""

    def places(ok: np.ndarray) -> np.ndarray | None:
        marked = _along(axis, entries)(ok)
        if marked is None:
            return None
        others = np.moveaxis(ok, axis, 0)[entries]
        return None if others.reshape(len(others), -1).all(axis=1).any() else marked

    return places


def _along(axis: int, entries: slice) -> Callable[[np.ndarray], np.ndarray | None]:
    def places(ok: np.ndarray) -> np.ndarray | None:
        if ok.ndim < -axis or ok.shape[axis] < 2:
            return None
        marked = np.zeros(ok.shape, bool)
        np.moveaxis(marked, axis, 0)[entries] = True
        return marked

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
        marked = np.zeros(ok.shape, bool)
        marked[entries] = True
        return marked

    return places


PLACES: tuple[tuple[str, str, Callable], ...] = (
    ("the first row only is wrong", "Only the first row is wrong.", _along(-2, slice(0, 1))),
    ("the last row only is wrong", "Only the last row is wrong.", _along(-2, slice(-1, None))),
    ("the first column only is wrong", "Only the first entry of each row is wrong.", _along(-1, slice(0, 1))),
    ("the last column only is wrong", "Only the last entry of each row is wrong.", _along(-1, slice(-1, None))),
    ("right for the first row only", "Only the first row is right.", _all_but(-2, slice(1, None))),
    ("right for the last row only", "Only the last row is right.", _all_but(-2, slice(None, -1))),
    ("right for the first column only", "Only the first entry of each row is right.", _all_but(-1, slice(1, None))),
    ("right for the last column only", "Only the last entry of each row is right.", _all_but(-1, slice(None, -1))),
    ("right for the first batch only", "Only the first entry of the first axis is right.", _first_axis(slice(1, None))),
    ("right for the last batch only", "Only the last entry of the first axis is right.", _first_axis(slice(None, -1))),
    ("wrong above the diagonal", "Everything is right except entries above the diagonal.", _triangle(True)),
    ("wrong below the diagonal", "Everything is right except entries below the diagonal.", _triangle(False)),
)


def of_a_mask(pairs: Sequence[Pair]) -> Relation | None:
    """Describe a wrong mask of 0 and 1: its diagonal edge is shifted, or it has too many or too few ones."""
    for k in (-2, -1, 1, 2):
        if all(p.right.ndim >= 2 and same(p.actual, _with_moved_edge(p.right, k)) for p in pairs):
            how = "later" if k > 0 else "earlier"
            places = "1 place" if abs(k) == 1 else f"{abs(k)} places"
            return Relation(
                f"edge {abs(k)} {how}", f"Each row changes from True to False {places} {how} than it should."
            )
    has_more = all((pair.actual >= pair.right).all() for pair in pairs)
    has_less = all((pair.actual <= pair.right).all() for pair in pairs)
    if not (has_more or has_less):
        return None
    name = "True too often" if has_more else "True too seldom"
    description = "where it should be, and elsewhere too" if has_more else "only where it should be, but not everywhere"
    return Relation(name, f"The mask is True {description}.", is_last=True)


def _with_moved_edge(mask: np.ndarray, k: int) -> np.ndarray:
    """Return a mask whose rows begin with True, with k more True in each row."""
    counts = np.clip(mask.sum(-1) + k, 0, mask.shape[-1])
    return (np.arange(mask.shape[-1]) < counts[..., None]).astype(float)


def same_everywhere(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise a result that does not depend on the input."""
    differ = len({pair.right.tobytes() for pair in pairs}) > 1
    if not differ and not telling(pairs):
        return None
    if all((pair.actual == 0).all() for pair in pairs):
        return Relation("all zeros", "All numbers are 0.")
    first = pairs[0].actual
    if differ and len(pairs) > 2 and all(same(pair.actual, first) for pair in pairs):
        return Relation(ALWAYS_THE_SAME, "The result is the same whatever is passed in.")
    return None


def find_wrong_shape(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise a wrong shape, on at least half of the rungs and always of the same kind."""
    differing = [pair for pair in pairs if not pair.alike]
    if len(differing) * 2 < len(pairs):
        return None
    for name in differing[0].others:
        if all(name in pair.others and pair.actual.shape == pair.others[name].shape for pair in differing):
            message = f"It has the shape that {name} should have."
            return Relation(f"the shape of {name}", message, len(differing))
    for name, message, test in SHAPES:
        if all(test(pair.actual.shape, pair.right.shape) for pair in differing):
            return Relation(name, message, len(differing))
    return None


def _one_axis_differs(actual: tuple, right: tuple) -> bool:
    return len(actual) == len(right) and sum(a != b for a, b in zip(actual, right, strict=True)) == 1


def _is_swapped(actual: tuple, right: tuple) -> bool:
    return len(right) > 1 and actual == (*right[:-2], right[-1], right[-2])


def _has_more_ones(actual: tuple, right: tuple) -> bool:
    """Return whether a shape is the right one but for more axes of length 1."""
    return [n for n in actual if n != 1] == [n for n in right if n != 1] and len(actual) > len(right)


SHAPES: tuple[tuple[str, str, Callable[[tuple, tuple], bool]], ...] = (
    ("shape transposed", "The shape is the right one with its axes in reverse order.", lambda a, b: a == b[::-1]),
    (
        "last two axes swapped in the shape",
        "The last two lengths of the shape are swapped.",
        _is_swapped,
    ),
    (
        "axes of length 1 too many",
        "The shape has axes of length 1 that should not be there.",
        _has_more_ones,
    ),
    ("axes of length 1 missing", "The shape lacks axes of length 1.", lambda a, b: _has_more_ones(b, a)),
    ("an array for a number", "The result should be a single number, but it is an array.", lambda a, b: not b),
    ("a number for an array", "The result should be an array, but it is a single number.", lambda a, b: not a),
    ("an axis too many", "The result has one axis too many.", lambda a, b: len(a) == len(b) + 1),
    ("an axis too few", "The result lacks an axis.", lambda a, b: len(a) == len(b) - 1),
    ("another number of axes", "The result has the wrong number of axes.", lambda a, b: len(a) != len(b)),
    ("one axis of another length", "One axis of the result has the wrong length.", _one_axis_differs),
    ("axes of other lengths", "The axes of the result have the wrong lengths.", lambda a, b: len(a) == len(b)),
)
