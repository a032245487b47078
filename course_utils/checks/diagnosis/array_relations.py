"""Relate wrong arrays to the right ones: a factor, a transpose, rows that do not sum to 1, one wrong corner."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from course_utils.checks.diagnosis.expressions import Powers, as_product, expression, product_of
from course_utils.checks.diagnosis.relation_types import Pair, Relation, argument, same, telling
from course_utils.checks.diagnosis.wrong_places import find_wrong_shape, same_everywhere, where_wrong

FLOAT32, FLOAT16, BFLOAT16 = 2.0**-24, 2.0**-11, 2.0**-8  # halves of a unit in the last place


# Whole arrays: what turns the right one into it ---------------------------------------------------------------------


def _all_same(pairs: Sequence[Pair], make: Callable[[Pair], np.ndarray | None]) -> bool:
    """Return whether the answer's array is, for each pair, the one that `make` makes of it."""
    arrays = [make(pair) for pair in pairs]
    return all(array is not None and same(pair.actual, array) for pair, array in zip(pairs, arrays, strict=True))


def rounding(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise numbers that are right to the precision of a narrower type, or to some decimals."""
    if not all(pair.alike and np.isfinite(pair.actual).all() for pair in pairs):
        return None
    distance = max(_distance(pair) for pair in pairs)
    # The most precise explanation first: all digits of float32, then some decimals, then the digits of 16-bit types.
    if distance <= 40 * FLOAT32:
        message = "It is right only to the precision of float32: some number on the way is kept in float32."
        return Relation("computed in float32", message)
    if found := _to_decimals(pairs):
        return found
    are_whole = all((pair.actual == np.round(pair.actual)).all() for pair in pairs)
    for name, narrow, unit in (("bfloat16", _as_bfloat16, BFLOAT16), ("float16", _as_float16, FLOAT16)):
        is_narrow = all(same(narrow(pair.actual), pair.actual, 1e-7) for pair in pairs)
        if not are_whole and distance <= 10 * unit and is_narrow:
            return Relation(f"rounded to {name}", f"Every number was rounded to {name}.")
    if distance <= 2e-3 and telling(pairs):
        return Relation("nearly right", "It is nearly right: no number is off by more than 0.2 % of the largest.")
    return None


def _to_decimals(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise the right numbers, rounded or cut off to some decimals."""
    # Where all numbers are 0 or 1, these were more likely chosen than rounded to whole numbers.
    are_binary = all(np.isin(pair.actual, (0.0, 1.0)).all() for pair in pairs)
    for decimals in range(1 if are_binary else 0, 7):
        for name, cut in (("rounded", np.round), ("cut off", lambda x, n: np.trunc(x * 10**n) / 10**n)):
            arrays = [cut(pair.right, decimals) for pair in pairs]
            fits = all(same(pair.actual, array, 1e-7) for pair, array in zip(pairs, arrays, strict=True))
            if fits and telling(pairs) and any(array.any() for array in arrays):
                to = f"to {decimals} decimals" if decimals else "to whole numbers"
                return Relation(f"{name} {to}", f"The numbers are right, but {name} {to}. Return them as they are.")
    return None


def _distance(pair: Pair) -> float:
    scale = max(float(np.abs(pair.right).max(initial=0.0)), 1e-30)
    return float(np.abs(pair.actual - pair.right).max(initial=0.0)) / scale


def _as_float16(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(float)


def _as_bfloat16(x: np.ndarray) -> np.ndarray:
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


def _find_copy(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise an argument, or another part of the result, in the place of this part."""
    for i in range(max((len(pair.rung.args) for pair in pairs), default=0)):
        if _all_same(pairs, partial(_argument, i=i)) and telling(pairs):
            argument = pairs[0].rung.arg_names[i]
            return Relation(f"{argument} returned unchanged", f"The result is the argument {argument}, unchanged.")
    for name in pairs[0].others:
        if _all_same(pairs, partial(_other, name=name)) and telling(pairs):
            return Relation(f"{name} in its place", f"This is what {name} should be.")
    return None


def _argument(pair: Pair, i: int) -> np.ndarray | None:
    return argument(pair.rung, i)


def _other(pair: Pair, name: str) -> np.ndarray | None:
    return pair.others.get(name)


def _transform(pair: Pair, function: Callable[[np.ndarray], np.ndarray | None]) -> np.ndarray | None:
    return function(pair.right)


def _monotone(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise the right numbers after one of FUNCTIONS, such as a square root."""
    for name, function, message in FUNCTIONS:
        if _all_same(pairs, partial(_transform, function=function)) and telling(pairs):
            return Relation(name, message)
    return None


def _one_hot(x: np.ndarray) -> np.ndarray | None:
    if x.ndim == 0 or x.shape[-1] < 2:
        return None
    best = np.zeros_like(x)
    np.put_along_axis(best, x.argmax(-1)[..., None], 1.0, -1)
    return best


FUNCTIONS: tuple[tuple[str, Callable, str], ...] = (
    ("opposite sign", lambda x: -x, "Every number has the opposite sign."),
    ("the other way round", lambda x: 1 - x, "Every number x comes out as 1 − x: what should be 1 is 0."),
    ("squared", np.square, "Every number is the square of the right one."),
    ("square root taken", np.sqrt, "Every number is the square root of the right one."),
    (
        "not squared, or a root too much",
        lambda x: np.sign(x) * np.sqrt(np.abs(x)),
        "Every number is the root of the right one.",
    ),
    ("reciprocal", lambda x: 1 / x, "Every number is 1 over the right one."),
    ("logarithm taken", np.log, "Every number is the natural logarithm of the right one."),
    ("logarithm to base 2", np.log2, "Every number is the logarithm to base 2 of the right one."),
    ("exponential taken", np.exp, "Every number is e to the power of the right one."),
    ("absolute value taken", np.abs, "Every number is right except for its sign: all are positive."),
    ("negatives set to 0", lambda x: np.maximum(x, 0), "Negative numbers have become 0; the others are right."),
    ("all weight on the best", _one_hot, "The largest entry of each row has become 1 and all others 0."),
)


def _find_arrangement(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise the right numbers at other places, summed, or in another shape (see ARRANGEMENTS)."""
    for name, rearrange, message in ARRANGEMENTS:
        if _all_same(pairs, partial(_rearrange, rearrange)) and telling(pairs):
            return Relation(name, message)
    return None


def _rearrange(rearrange: Callable[[Pair], np.ndarray], pair: Pair) -> np.ndarray | None:
    """Return what an arrangement makes of the right array; None if it does not apply."""
    try:
        return rearrange(pair)
    except (ValueError, IndexError):
        return None


ARRANGEMENTS: tuple[tuple[str, Callable, str], ...] = (
    (
        "transposed",
        lambda p: np.swapaxes(p.right, -1, -2),
        "This is the right result transposed: rows and columns have changed places.",
    ),
    (
        "all axes reversed",
        lambda p: np.transpose(p.right),
        "This is the right result with all axes reversed, as .T does.",
    ),
    ("first two axes swapped", lambda p: np.swapaxes(p.right, 0, 1), "The first two axes have changed places."),
    (
        "second and third axis swapped",
        lambda p: np.swapaxes(p.right, 1, 2),
        "The second and the third axis have changed places.",
    ),
    (
        "an axis of length 1 too many",
        lambda p: p.right.reshape(p.actual.shape) if p.actual.ndim > p.right.ndim else None,
        "The numbers are right, but there is one axis too many.",
    ),
    (
        "an axis too few",
        lambda p: p.right.reshape(p.actual.shape) if p.actual.ndim < p.right.ndim else None,
        "The numbers are right, but an axis is missing.",
    ),
    (
        "another shape",
        lambda p: p.right.reshape(p.actual.shape) if not p.alike else None,
        "The numbers are right and in order, but in another shape.",
    ),
    ("rows backwards", lambda p: np.flip(p.right, -1), "Every row is reversed."),
    ("rows in reverse order", lambda p: np.flip(p.right, -2), "The rows are right, but in reverse order."),
    ("first axis backwards", lambda p: np.flip(p.right, 0), "Everything is reversed along the first axis."),
    (
        "shifted by one to the right",
        lambda p: np.roll(p.right, 1, -1),
        "Every row is shifted one place to the right, and its last entry comes first.",
    ),
    (
        "shifted by one to the left",
        lambda p: np.roll(p.right, -1, -1),
        "Every row is shifted one place to the left, and its first entry comes last.",
    ),
    ("rows shifted by one", lambda p: np.roll(p.right, 1, -2), "All rows are one place too low."),
    ("rows shifted back by one", lambda p: np.roll(p.right, -1, -2), "All rows are one place too high."),
    (
        "first one for all",
        lambda p: np.broadcast_to(p.right[:1], p.right.shape),
        "Every entry along the first axis equals the first one.",
    ),
    (
        "last one for all",
        lambda p: np.broadcast_to(p.right[-1:], p.right.shape),
        "Every entry along the first axis equals the last one.",
    ),
    (
        "first row for all",
        lambda p: np.broadcast_to(p.right[..., :1, :], p.right.shape),
        "Every row equals the first one.",
    ),
    (
        "last row for all",
        lambda p: np.broadcast_to(p.right[..., -1:, :], p.right.shape),
        "Every row equals the last one.",
    ),
    ("only the first", lambda p: p.right[0], "Only the first entry of the first axis is there."),
    ("only the last", lambda p: p.right[-1], "Only the last entry of the first axis is there."),
    ("the last row only", lambda p: p.right[..., -1:, :], "Only the last row is there."),
    ("the first row only", lambda p: p.right[..., :1, :], "Only the first row is there."),
    ("the last entry missing", lambda p: p.right[..., :-1], "The last entry of each row is missing."),
    ("the first entry missing", lambda p: p.right[..., 1:], "The first entry of each row is missing."),
    ("the last row missing", lambda p: p.right[..., :-1, :], "The last row is missing."),
    ("the first row missing", lambda p: p.right[..., 1:, :], "The first row is missing."),
    ("the last of all missing", lambda p: p.right[:-1], "The last entry is missing."),
    ("the first of all missing", lambda p: p.right[1:], "The first entry is missing."),
    ("summed over the first axis", lambda p: p.right.sum(0), "This is the right result added up over its first axis."),
    (
        "averaged over the first axis",
        lambda p: p.right.mean(0),
        "This is the mean of the right result over its first axis.",
    ),
    ("summed over the last axis", lambda p: p.right.sum(-1), "This is the right result added up over its last axis."),
    (
        "averaged over the last axis",
        lambda p: p.right.mean(-1),
        "This is the mean of the right result over its last axis.",
    ),
    ("summed over all", lambda p: np.asarray(p.right.sum()), "This is the sum of the right result."),
    ("averaged over all", lambda p: np.asarray(p.right.mean()), "This is the mean of the right result."),
    ("a running sum", lambda p: np.cumsum(p.right, -1), "Every entry is the sum of the right ones up to it."),
    ("a running sum of rows", lambda p: np.cumsum(p.right, -2), "Every row is the sum of the right ones up to it."),
    ("another order", lambda p: _sorted_as(p), "These are the right numbers in another order."),
)


def _sorted_as(pair: Pair) -> np.ndarray | None:
    """Return the answer's array if it holds the right numbers in another order, else None."""
    if pair.actual.size != pair.right.size or pair.actual.size < 2:
        return None
    return pair.actual if same(np.sort(pair.actual, axis=None), np.sort(pair.right, axis=None)) else None


# Numbers: a factor, a term ------------------------------------------------------------------------------------------


def _by_a_factor(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise numbers that are all off by one factor: a constant, or one made of sizes and arguments."""
    factors = _ratios(pairs)
    formula = expression(pairs, factors) if factors and telling(pairs) else ""
    return Relation(f"times {formula}", f"Every number is {formula} times the right one.") if formula else None


def _by_another_factor_each(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise numbers that are off by a factor which differs from rung to rung."""
    factors = _ratios(pairs)
    if not factors or 2 * sum(telling([pair]) for pair in pairs) < len(pairs):
        return None
    worst = max(factors, key=lambda factor: abs(math.log(abs(factor))))
    message = "Every number is the right one times a factor, which differs from step to step: it is"
    return Relation("a factor", f"{message} {worst:.4g} on “{pairs[factors.index(worst)].rung.name}”.")


def _ratios(pairs: Sequence[Pair]) -> list[float]:
    """Return the factor of each pair; none if one of them has no factor."""
    factors = [factor for pair in pairs if (factor := _ratio(pair)) is not None]
    return factors if len(factors) == len(pairs) else []


def _ratio(pair: Pair) -> float | None:
    if not pair.alike or not pair.right.size:
        return None
    place = np.unravel_index(np.abs(pair.right).argmax(), pair.right.shape) if pair.right.ndim else ()
    factor = float(pair.actual[place] / pair.right[place])
    fits = math.isfinite(factor) and factor != 0 and same(pair.actual, factor * pair.right)
    return factor if fits else None


def _by_a_term(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise numbers that are all too large or too small by the same term."""
    terms = [term for pair in pairs if (term := _difference(pair)) is not None]
    if len(terms) < len(pairs) or len(pairs) < 2 or not telling(pairs):
        return None
    how, sign = ("too large", 1) if terms[0] > 0 else ("too small", -1)
    formula = expression(pairs, [sign * term for term in terms])
    return Relation(f"{how} by {formula}", f"Every number is {how} by {formula}.") if formula else None


def _difference(pair: Pair) -> float | None:
    if not pair.alike or not pair.right.size:
        return None
    term = float((pair.actual - pair.right).reshape(-1)[0])
    fits = math.isfinite(term) and term != 0 and same(pair.actual, pair.right + term)
    return term if fits else None


# Rows ---------------------------------------------------------------------------------------------------------------


def _rows(pairs: Sequence[Pair]) -> Relation | None:
    """Describe rows that should sum to 1, or that are off by a factor or a term of their own."""
    if not all(pair.alike and pair.right.ndim for pair in pairs):
        return None
    # Rows of weights first, since a row that does not sum to 1 is off by a factor, too.
    are_weights = all(np.allclose(pair.right.sum(-1), 1, atol=1e-6) for pair in pairs)
    are_weights &= any(pair.right.shape[-1] > 1 for pair in pairs)
    if are_weights and not any(np.allclose(pair.actual.sum(-1), 1, atol=1e-5) for pair in pairs):
        return _rows_that_do_not_sum(pairs)
    if are_weights and all((pair.actual >= 0).all() for pair in pairs):
        if found := _sharper(pairs):
            return found
        if all(np.allclose(pair.actual, 1 / pair.actual.shape[-1], atol=1e-6) for pair in pairs) and telling(pairs):
            return Relation("uniform rows", "All entries of a row are equal, whatever goes in.")
    for name, message, find_number in (
        ("a factor for each row", "Every row is a multiple of the right one, each with a factor of its own.", _ratio),
        ("a term for each row", "Every row is the right one plus a number of its own.", _difference),
    ):
        if _row_by_row(pairs, find_number):
            return Relation(name, message)
    return None


def _rows_that_do_not_sum(pairs: Sequence[Pair]) -> Relation:
    """Say along what else than its rows an array sums to 1; else what one of its rows sums to."""
    matrices = [pair for pair in pairs if pair.actual.ndim >= 2]
    if matrices and all(np.allclose(pair.actual.sum(-2), 1, atol=1e-5) for pair in matrices):
        message = "The columns sum to 1, but the rows should: the normalising runs along the wrong axis."
        return Relation("columns sum to 1, not rows", message)
    if matrices and all(np.allclose(pair.actual.sum(), 1, atol=1e-5) for pair in matrices):
        message = "All rows together sum to 1, but each row should: the sum runs over the whole array."
        return Relation("everything sums to 1, not each row", message)
    if unknown := next((pair for pair in pairs if np.isnan(pair.actual).any()), None):
        return Relation("rows do not sum to 1", f"Rows do not sum to 1: on “{unknown.rung.name}” one holds NaN.")
    worst = max(pairs, key=lambda pair: np.nan_to_num(np.abs(pair.actual.sum(-1) - 1)).max())
    sums = worst.actual.sum(-1).reshape(-1)
    worst_sum = sums[np.nan_to_num(np.abs(sums - 1)).argmax()]
    message = f"Rows do not sum to 1: on “{worst.rung.name}” one sums to {worst_sum:.4g}."
    return Relation("rows do not sum to 1", message)


def _sharper(pairs: Sequence[Pair]) -> Relation | None:
    """Recognise rows that are the softmax of the right scores times a factor, by their scaled logarithms."""
    factors: list[tuple[Pair, float]] = []
    zeros_differ = False  # whether other entries than the right ones are 0
    rows_tell = False  # whether some row has three different numbers: two fit some factor in any case
    for pair in pairs:
        right = pair.right.reshape(-1, pair.right.shape[-1])
        actual = pair.actual.reshape(-1, pair.right.shape[-1])
        zeros_differ = zeros_differ or bool(((right > 1e-12) != (actual > 1e-12)).any())

        # Up to a number for each row, which centring removes, scores are the logarithms of their softmax. Entries that
        # are 0 on either side are left out.
        positive = (right > 1e-12) & (actual > 1e-12)
        right_scores = _centred_logarithms(right, positive)
        scores = _centred_logarithms(actual, positive)
        usable = np.isfinite(right_scores) & np.isfinite(scores)
        rows = (row[each].round(9) for row, each in zip(right_scores, usable, strict=True))
        rows_tell = rows_tell or any(len(np.unique(row)) > 2 for row in rows)

        # The factor by least squares, which must then fit all scores.
        x = right_scores[usable]
        y = scores[usable]
        if (x**2).sum() < 1e-12:
            continue  # equal scores stay equal under any factor
        factor = float((x * y).sum() / (x**2).sum())
        if not np.allclose(y, factor * x, atol=1e-4 * max(1.0, float(np.abs(y).max()))):
            return None
        factors.append((pair, factor))
    if not factors or sum(pair.right.size for pair, _ in factors) < 4 or any(factor <= 0 for _, factor in factors):
        return None

    # With the right scores only the mask can be wrong. Else the factor may be a formula, or just some number.
    if all(abs(factor - 1) < 1e-4 for _, factor in factors):
        message = "Where neither is 0, the weights of a row are in the right ratio, but the wrong entries are 0."
        return Relation("other entries are 0", message) if zeros_differ else None
    if found := scores_times([pair for pair, _ in factors], [factor for _, factor in factors]):
        return found
    if not rows_tell:
        return None
    pair, factor = max(factors, key=lambda each: abs(math.log(each[1])))
    message = f"These are the rows for scores times some factor, {factor:.4g} on “{pair.rung.name}”."
    return Relation("scores times a factor", message)


def _centred_logarithms(weights: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Return the logarithms of the marked weights, minus their mean in each row; NaN for the others."""
    logarithms = np.where(positive, np.log(np.where(positive, weights, 1.0)), np.nan)
    counts = np.isfinite(logarithms).sum(axis=-1, keepdims=True)
    return logarithms - np.nansum(logarithms, axis=-1, keepdims=True) / counts.clip(1)


def scores_times(pairs: Sequence[Pair], factors: Sequence[float]) -> Relation | None:
    """Say what scores were divided by if they are the right ones times these factors; None without a formula."""
    product = product_of(pairs, factors)
    if not product:
        return None
    constant, powers = product
    if math.isclose(constant, 1, rel_tol=1e-5) and (divisor := _as_divisor(powers)):
        name, message = divisor
        return Relation(_as_called(pairs, name), _as_called(pairs, message), of_part=False)
    formula = _as_called(pairs, as_product(constant, powers))
    return Relation(f"scores times {formula}", f"These are the numbers for scores {formula} times the right ones.")


def _as_called(pairs: Sequence[Pair], text: str) -> str:
    """Return a text that names lengths of axes, with len(K[0]) in place of K.shape[−1] where arguments are lists."""
    if not all(isinstance(each, list) for pair in pairs for each in pair.rung.args):
        return text
    return re.sub(r"(\w+)\.shape\[−([12])\]", lambda axis: f"len({axis[1]}{'[0]' * (axis[2] == '1')})", text)


def _as_divisor(powers: Powers) -> tuple[str, str] | None:
    """Return name and message for scores off by powers of sizes, one of them d_k; None for other powers."""
    if not any(D_K.fullmatch(name) for name, _ in powers):
        return None
    (own, power), *others = sorted(powers, key=lambda each: not D_K.fullmatch(each[0]))
    if any(".shape" not in name for name, _ in others):
        return None
    if not others and power == 0.5:
        return "no scaling", f"The scores are not divided by √d_k, which is √{own} here."
    if not others and power == 1:
        return "multiplied by √d_k", f"The scores are multiplied by √d_k, √{own}. Divide by it."
    if not others and power == -0.5:
        return "divided by d_k", f"The scores are divided by d_k, or by √d_k twice. Divide them once by √{own}."
    if power == 0.5 and [each for _, each in others] == [-0.5]:
        name = others[0][0]
        return f"divided by √{name}", f"The scores are divided by √{name}. Divide by √d_k, which is √{own} here."
    return None


# The length of a query and of a key, as an axis of an argument.
D_K = re.compile(r"(W_)?[qk]\.shape\[−1\]", re.IGNORECASE)


def _row_by_row(pairs: Sequence[Pair], find_number: Callable[[Pair], float | None]) -> bool:
    """Return whether each row is right or off by a number of its own, and on some rung these numbers differ."""
    all_rows: list[Pair] = []
    differ = False
    for pair in pairs:
        if pair.right.ndim < 2 or pair.right.shape[-1] < 2:
            continue
        actual, right = (array.reshape(-1, array.shape[-1]) for array in (pair.actual, pair.right))
        rows = [Pair(pair.rung, mine, theirs) for mine, theirs in zip(actual, right, strict=True)]
        if find_number is _difference and all(len(np.unique(np.diff(row.right).round(6))) < 2 for row in rows):
            return False  # evenly spaced numbers that stand some places too far are off by a number, too
        if find_number is _ratio:
            rows = [row for row in rows if row.right.any()]  # a row of zeros has any factor
        numbers = [0.0 if same(row.actual, row.right) else find_number(row) for row in rows]
        if None in numbers:
            return False
        differ |= len({f"{each:.5g}" for each in numbers}) > 1
        all_rows += rows
    return len(all_rows) > 2 and telling(all_rows) and differ


# All relations, in the order in which they are tried ----------------------------------------------------------------


LOOKS: tuple[Callable[[Sequence[Pair]], Relation | None], ...] = (
    rounding,
    same_everywhere,
    _find_copy,
    _monotone,
    _by_a_factor,
    _find_arrangement,
    _by_a_term,
    where_wrong,
    _rows,
    _by_another_factor_each,
    find_wrong_shape,
)
