"""The ladders of day 6: the test inputs (rungs) of each exercise.

Every known mistake fails on some of them: maxima rise and fall along the keys, blocks divide neither n nor m
unless a rung is about that, and d_k, d_v, n, m differ. One head throughout: q is (n, d_k), k (m, d_k), v (m, d_v).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from course_utils.checks.kernel.forbidden import AUTOGRAD, WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.small import BLANK, FROM_RUNG, Draft, Drawn, Small, whole
from course_utils.checks.kernel.steps import StepCounter
from course_utils.days.day6.given.triton_emulation import through_the_kernel, through_the_row_kernel
from course_utils.days.shared.given.call_spy import watch, watch_both
from course_utils.days.shared.given.draws import UNTOUCHED, Array, draw, draw_qkv, named

INFINITY = math.inf
TOO_NEAR = "numbers that float32 cannot tell apart"
NEW_TENSORS = (
    "The answer is right but writes into its arguments, which the caller still needs. Make new tensors, or work on "
    "x.clone(). A slice of a tensor is part of it, not a copy."
)
FLOAT64 = (
    "All tensors are float64 here, and so must be what you return. torch.zeros(…) and torch.full(…) "
    "make float32 unless dtype says otherwise."
)
SINGLE = {part: (1e-4, 1e-4) for part in ("m", "l", "o", "lse", "dq", "dk", "dv")}


def writes(function: Callable, *args: Any) -> float:
    """Return 1.0 if `function` writes into its arguments, even if it restores them, else 0.0."""
    tensors = [x for arg in args for x in (arg if isinstance(arg, tuple) else (arg,)) if hasattr(x, "_version")]
    before = [x._version for x in tensors]
    changed = changes(function, *args)
    return float(changed or before != [x._version for x in tensors])


def of_one_dtype(result: dict[str, Any], example: Array) -> dict[str, Any]:
    """Return the parts of a result, and as "measure" 1.0 if any has another dtype than the example, else 0.0."""
    expected = str(example.dtype).removeprefix("torch.")
    others = (str(getattr(x, "dtype", expected)).removeprefix("torch.") != expected for x in result.values())
    return {"measure": float(any(others))} | result


# A stream of numbers ------------------------------------------------------------------------------------------------


def online_softmax(rng: np.random.Generator) -> list[Rung]:
    def rung(name, numbers, why, measure=of_a_generator):
        return Rung(name, (numbers,), why, measure)

    some = draw(rng, 6).tolist()
    steps = (0.5 + rng.random(7).round(2)).cumsum().tolist()
    return [
        rung("one number", [2.0], "The largest is 2, and l is e^0 = 1: each number counts as e^(x − m)."),
        rung("two equal numbers", [3.0, 3.0], "Each of them counts as e^0 = 1."),
        rung("two numbers, the larger first", [1.0, 0.5],
            "m stays 1 and l is 1 + e^(0.5 − 1). A number counts by how far it is below the maximum."),
        rung("two numbers, the larger last", [0.5, 1.0],
            "When m grows from 0.5 to 1, what was summed so far was relative to the "
            "old m. It shrinks by e^(m_old − m_new)."),
        rung("any six numbers", some, "Each number may raise the maximum: rescale l, then add e^(x − m)."),
        rung("each number larger than the last", steps,
            "Each number is a new maximum, so l is rescaled at every step."),
        rung("each number smaller than the last", steps[::-1], "The first number stays the maximum, and l only grows."),
        rung("negative numbers only", (-1.0 - rng.random(5).round(2)).tolist(),
            "All numbers are below 0, and so is m. What is m before the first number? 0 is too large."),
        rung("whole numbers", [1, 3, 2], "The numbers may be ints."),
        rung("a 0 among others", [-1.0, 0.0, -2.0],
            "0 is a number like any other, and here the largest. `if x` is false for it."),
        rung(TOO_NEAR, (1e6 + 0.01 * rng.permutation(3)).tolist(),
            "The numbers are 1 000 000 and a few hundredths: e^x overflows, and float32, with its seven digits, makes "
            "them all equal. Python's floats, like float64, keep sixteen."),
        rung("large numbers", [1000.0, 1001.0, 999.0],
            "e^1000 overflows. Only differences from the maximum go into exp, and they are never above 0."),
        rung("very negative numbers", [-1000.0, -1001.0, -999.0],
            "e^−1000 is 0, and its logarithm −∞. Only differences from the maximum go into exp. And a start of m = "
            "−1000 or so is a number like any other."),
        rung("below −10 000 000 000", [-4e10, -4e10 - 1.0, -4e10 + 1.0],
            "m starts at −∞. A very negative number instead of −∞ is a number like any other, and here it is the "
            "largest. And at this size m + log l has no digits left for l: carry l itself."),
        rung("below −10^300", [-1e305, -1e305, -2e305],
            "m starts at −∞. Any other start is a number like these, and here it is the largest."),
        rung("−∞ in the middle", [1.0, -INFINITY, 2.0], "−∞ counts as e^−∞ = 0: m and l stay as they are."),
        rung("−∞ first", [-INFINITY, 1.0, 0.0],
            "−∞ − (−∞) is NaN. While m is still −∞, nothing has been summed: l is 0, and there is nothing to rescale."),
        rung("−∞ last", [0.5, 1.5, -INFINITY], "−∞ counts as e^−∞ = 0: m and l stay as they are."),
        rung("three times −∞, then numbers", [-INFINITY] * 3 + [-2.0, 1.0],
            "−∞ − (−∞) is NaN. As long as m is −∞, nothing has been summed: l stays 0."),
        rung("nothing but −∞", [-INFINITY, -INFINITY], "No number counts: the pair is (−∞, 0)."),
        rung("an empty stream", [], "No number at all: the pair is (−∞, 0)."),
        rung("a list", [0.5, 2.0, 1.0],
            "The stream may be any iterable. A list is not an iterator, so next(stream) needs iter(stream) first; a "
            "for loop does that by itself.",
            of_a_list),
        rung("five hundred numbers", (3 * draw(rng, 500)).tolist(),
            "However many come: rescale when the maximum grows, add e^(x − m)."),
        rung("no number is kept", (3 * draw(rng, 400)).tolist(),
            "The result is right, but the numbers are kept: in a list, an array or elsewhere. From a stream that is "
            "longer than memory you can keep only m and l, and at most 64 numbers. Read it with one for loop, and let "
            "each number go.",
            numbers_kept),
        rung("far up, twice", [-1e10, 0.0, 1000.0],
            "The maximum jumps by more than 709. Shrink the sum so far, then add e^(x − m) with the new m: relative to "
            "the old m, the new term overflows."),
    ]  # fmt: skip


def of_a_generator(function: Callable, numbers: Sequence[float]) -> dict[str, Any]:
    """Return m and l of a stream that can be read only once."""
    return named(function(x for x in numbers), ("m", "l"))


def of_a_list(function: Callable, numbers: Sequence[float]) -> dict[str, Any]:
    return named(function(numbers), ("m", "l"))


def numbers_kept(function: Callable, numbers: Sequence[float]) -> dict[str, Any]:
    """Return 1.0 if `function` keeps more than a few numbers of a stream at a time, else 0.0; and its result.

    Because other threads allocate memory too, the function must appear to keep numbers in three runs.
    """
    for _ in range(3):
        stream, result = _watch_reading(function, numbers)
        if not stream.kept:
            break
    return {"measure": float(stream.kept)} | named(result, ("m", "l"))


def _watch_reading(function: Callable, numbers: Sequence[float]) -> tuple:
    with StepCounter(_offsets) as steps:
        stream = WatchedStream(numbers, steps)
        result = function(stream)
    return stream, result


def _offsets(code: CodeType) -> frozenset[int]:
    """Return the offsets of all instructions of a function that is not of this module."""
    return frozenset() if code.co_filename == __file__ else frozenset(range(0, len(code.co_code), 2))


FEW = 64  # most numbers that a reader may hold


class WatchedStream:
    """An iterator over numbers that observes its reader; `kept` says whether the reader keeps them.

    Three signs show it. A list holds a block of memory for each number. If the numbers are copied into an array, a
    variable of a function on the stack grows or holds more than FEW numbers. An array that is filled in C reads many
    numbers without a Python instruction in between.
    """

    def __init__(self, numbers, steps):
        self.numbers = iter(numbers)
        self.count = len(numbers)
        self.steps, self.steps_are_counted = steps, steps.available  # asked once, because asking takes steps
        self.read = self.steps_before = self.in_a_row = 0
        self.kept = False
        self.blocks = None
        self.held = None

    def __iter__(self):
        return self

    def __next__(self):
        self.read += 1
        self.in_a_row = self.in_a_row + 1 if self.steps.count == self.steps_before else 0
        self.steps_before = self.steps.count
        if self.read == 100 or self.read == self.count:
            blocks = sys.getallocatedblocks()
            held = self._held()
            if self.blocks is None:
                self.blocks = blocks
                self.held = held
            many = self.count - 100
            self.kept = self.kept or blocks - self.blocks > 0.9 * many or held - self.held > 4 * many
        in_c = self.steps_are_counted and self.in_a_row > FEW
        self.kept = self.kept or in_c or any(_holds_many(x) for x in self._variables())
        return next(self.numbers) + 0.0  # a new object each time

    def _held(self):
        """Return the size in bytes of the variables of the reading functions."""
        return sum(map(sys.getsizeof, self._variables()))

    def _variables(self):
        frame: FrameType | None = sys._getframe(2)
        while frame and frame.f_code is not _watch_reading.__code__:
            if frame.f_code.co_filename != __file__:
                yield from (value for value in frame.f_locals.values() if value is not self)
            frame = frame.f_back


def _holds_many(value: Any, inside: int = 1) -> bool:
    """Return whether a value, or a part of it, is an array or a sequence of more than FEW numbers."""
    if isinstance(value, (str, bytes, int, float, type)) or callable(value):
        return False
    size = value.numel() if hasattr(value, "numel") else getattr(value, "size", None)
    if not isinstance(size, int):
        size = len(value) if hasattr(value, "__len__") else 0
    if size > FEW or not inside or hasattr(value, "dtype"):
        return size > FEW
    parts = value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ()
    return any(_holds_many(part, inside - 1) for part in (*parts, *getattr(value, "__dict__", {}).values()))


# Partial results ----------------------------------------------------------------------------------------------------

PARTIAL = ("m", "l", "o")


def merge_partials(rng: np.random.Generator) -> list[Rung]:
    def rung(name, a, b, why, measure=merged):
        return Rung(name, (*a, *b), why, measure)

    def of_keys(keys, n, d_v):
        """Draw the partial result of n queries over `keys` keys, which may be 0."""
        return gathered(draw(rng, n, keys), draw(rng, keys, d_v))

    low, high = gathered([[0.5]], draw(rng, 1, 2)), gathered([[2.0]], draw(rng, 1, 2))
    twins = gathered([[1.5, 0.2]], draw(rng, 2, 2)), gathered([[1.5, -1.0, 0.3]], draw(rng, 3, 2))
    crossed = (
        gathered([[3.0, 1.0], [0.0, -1.0], [0.5, 2.5]], draw(rng, 2, 4)),
        gathered([[1.0, 0.5], [2.0, 1.0], [2.5, 0.0]], draw(rng, 2, 4)),
    )
    nobody = of_keys(0, n=2, d_v=3)
    here = of_keys(3, n=2, d_v=3)
    there = of_keys(2, n=2, d_v=3)
    holes = draw(rng, 4, 3), draw(rng, 4, 2)
    holes[0][[0, 3]] = holes[1][[1, 3]] = -INFINITY  # query 0 has keys in b only, 1 in a only, 3 nowhere
    heads = (
        gathered(draw(rng, 2, 3, 4, 5), draw(rng, 2, 3, 5, 2)),
        gathered(draw(rng, 2, 3, 4, 3), draw(rng, 2, 3, 3, 2)),
    )
    square = of_keys(2, n=3, d_v=3), of_keys(4, n=3, d_v=3)
    big = (
        gathered([[1000.0, 1001.0], [-1000.0, -999.0]], draw(rng, 2, 2)),
        gathered([[1001.5], [-1001.0]], draw(rng, 1, 2)),
    )
    close = (
        gathered(1e6 + 0.01 * rng.permutation(3)[:, None], draw(rng, 1, 2)),
        gathered(1e6 + 0.01 * (rng.permutation(3)[:, None] + 0.5), draw(rng, 1, 2)),
    )
    apart = gathered([[900.0], [-900.0]], draw(rng, 1, 2)), gathered([[-900.0], [900.0]], draw(rng, 1, 2))
    three = [gathered(10 * draw(rng, 2, keys), draw(rng, keys, 3)) for keys in (1, 2, 3)]
    many = np.array([-100.0]), np.array([1e9]), np.array([[2e9, -1e9]])
    zeros = np.zeros(1), np.ones(1), np.zeros((1, 2))
    return [
        rung("two keys, the larger score first", high, low,
            "m is the larger maximum. The part with the smaller one was summed relative to it, "
            "so its l and o shrink by e^(m_part − m)."),
        rung("two keys, the larger score last", low, high,
            "m is the larger maximum, here that of b. The l and o of a shrink by e^(m_a − m)."),
        rung("equal maxima", *twins, "Both factors are e^0 = 1: l and o are the sums."),
        rung("several queries, the larger maximum on either side", *crossed,
            "Each query has its own maximum and its own two factors: "
            "torch.maximum works entry by entry, max does not."),
        rung("as many queries as value dimensions", *square,
            "A query's factor belongs to its row of o: factor[..., None] * o. With n = d_v, a wrong axis raises no "
            "error."),
        rung("a batch with heads", *heads,
            "m and l are (…, n), o is (…, n, d_v): the factor gets one more axis at the end, factor[..., None]."),
        rung("one number a value", of_keys(3, n=2, d_v=1), of_keys(2, n=2, d_v=1), "d_v may be 1."),
        rung("b is empty", here, nobody, "An empty part has m = −∞, l = 0 and o = 0. Merging with it changes nothing."),
        rung("a is empty", nobody, here, "An empty part has m = −∞, l = 0 and o = 0. Merging with it changes nothing."),
        Rung("both are empty", (*nobody, *nobody),
            "−∞ − (−∞) is NaN. Two empty parts make an empty part: m = −∞, l = 0, o = 0, and exactly 0.",
            merged, {"l": (1e-6, 1e-11), "o": (1e-6, 1e-11)}),
        rung("some queries have nothing in a, some in b, one nowhere", gathered(holes[0], draw(rng, 3, 2)),
            gathered(holes[1], draw(rng, 2, 2)),
            "Each query may be empty in a, in b, or in both. −∞ − (−∞) is NaN; the factor of an empty part may be any "
            "number, for instance 0."),
        rung("float64 in, float64 out", here, there, FLOAT64, merged_in_dtype),
        rung(TOO_NEAR, *close,
            "The maxima are 1 000 000 and a few hundredths, in float64. float32 keeps about seven digits, and makes "
            "them equal: keep the dtype in every step."),
        rung("maxima of 1000 and of −1000", *big,
            "e^1000 overflows and e^−1000 is 0. Only differences from the new maximum go into exp, and they are never "
            "above 0."),
        rung("maxima 1800 apart", *apart,
            "The smaller part counts as e^−1800, which is 0. The other stays as it was: o is not divided by l, and no "
            "factor is larger than 1."),
        rung("below −10 000 000 000", gathered([[-4e24, -4e24]], draw(rng, 2, 2)),
            gathered([[-4e24]], draw(rng, 1, 2)),
            "A fill such as −1e9 lies far above these maxima. Only −∞ says that a part is empty."),
        rung("the other way round", there, here, "The order does not matter."),
        Rung(UNTOUCHED, (*here, *there), NEW_TENSORS, merge_writes),
        Rung("new tensors each time", (*here, *nobody),
            "What merge returns shares its memory with an argument, or with what an earlier call returned: writing "
            "into one changes the other. Make new tensors, even where a part is empty.",
            shares_memory),
        Rung("three parts, the first two merged first", tuple(x for part in three for x in part),
            "What merge returns must be a part that can be merged again: o not divided by l.",
            first_two_first),
        Rung("three parts, the last two merged first", tuple(x for part in three for x in part),
            "The grouping does not matter either.",
            last_two_first),
        Rung("attention, one key at a time", (2 * draw(rng, 3, 6), draw(rng, 6, 2)),
            "Every key is its own part, with m = score, l = 1 and o = value. Once all are merged, starting with an "
            "empty part, o / l is the attention and m + log l the log-sum-exp.",
            key_by_key),
        Rung("float32", tuple(x.astype(np.float32) for x in (*here, *there)),
            "All tensors are float32 here, and so must be what you return. Tensors that you make need the dtype of m.",
            merged_in_dtype, SINGLE),
        rung("a billion keys, far below", many, gathered([[0.0]], draw(rng, 1, 2)),
            "One part has l = 1 000 000 000 and m = −100. Its factor e^−100 leaves nearly nothing of that, but e^−20 "
            "would leave 2: a factor has no lower bound."),
        rung("values of 0, and maxima of 0", zeros, (*zeros[:2], np.array([[1.0, 2.0]])),
            "A part whose values add up to 0, or whose maximum is 0, is not empty: only m = −∞ says so."),
        rung("an empty part beside negative scores", (np.full(2, -INFINITY), np.zeros(2), np.zeros((2, 2))),
            gathered([[-2.0, -3.0], [-0.5, -1.0]], [[1.0, 2.0], [3.0, 5.0]]),
            "m is the larger maximum, here that of b, below 0. A 0 in place of −∞ would be larger."),
    ]  # fmt: skip


def gathered(scores: Sequence | np.ndarray, values: Any) -> tuple:
    """Return (m, l, o) of scores (…, n, keys) and values (…, keys, d_v), o not divided by l; a row of −∞ is empty."""
    scores = np.asarray(scores, dtype=np.float64)
    m = scores.max(axis=-1, initial=-INFINITY)
    p = np.exp(scores - np.where(np.isinf(m), 0.0, m)[..., None])
    return m, p.sum(axis=-1), p @ values


def merged(function: Callable, *parts: Array) -> dict[str, Any]:
    return named(function(tuple(parts[:3]), tuple(parts[3:])), PARTIAL)


def merged_in_dtype(function: Callable, *parts: Array) -> dict[str, Any]:
    return of_one_dtype(merged(function, *parts), parts[0])


def shares_memory(function: Callable, *parts: Array) -> dict[str, Any]:
    """Return 1.0 if results share memory with arguments or with each other, else 0.0; and the last result."""
    pairs = ((*parts[:3], *parts[3:]), (*parts[3:], *parts[:3]), parts)
    results = [merged(function, *pair).values() for pair in pairs]
    *arrays, last = ([np.asarray(x) for x in group] for group in (parts, *results))
    shared = any(np.may_share_memory(x, y) for x in last for group in arrays for y in group)
    shared = shared or any(np.may_share_memory(x, y) for x in arrays[0] for y in (*arrays[1], *arrays[2]))
    return {"measure": float(shared)} | dict(zip(PARTIAL, results[-1], strict=True))


def first_two_first(function: Callable, *parts: Array) -> dict[str, Any]:
    a, b, c = parts[:3], parts[3:6], parts[6:]
    return named(function(merged_like(a, function, a, b), c), PARTIAL)


def last_two_first(function: Callable, *parts: Array) -> dict[str, Any]:
    a, b, c = parts[:3], parts[3:6], parts[6:]
    return named(function(a, merged_like(a, function, b, c)), PARTIAL)


def merged_like(example: Sequence, function: Callable, a: tuple, b: tuple) -> tuple:
    """Return what merge returns, as arrays if the example consists of arrays, else as tensors."""
    parts = named(function(a, b), PARTIAL).values()
    if isinstance(example[0], np.ndarray):
        return tuple(np.asarray(x) for x in parts)
    import torch

    return tuple(torch.as_tensor(x) for x in parts)


def key_by_key(function: Callable, scores: Array, values: Array) -> dict[str, Any]:
    """Merge keys one after another into an empty part, and return the output and log-sum-exp of the queries."""
    zeros = scores[:, 0] * 0
    part = zeros - INFINITY, zeros, scores[:, :1] * 0 + values[:1] * 0
    for j in range(scores.shape[1]):
        key = scores[:, j], zeros + 1, scores[:, :1] * 0 + values[j]
        part = merged_like(part, function, part, key)
    m, l, o = (np.asarray(x) for x in part)
    return {"o / l": o / l[:, None], "m + log l": m + np.log(l)}


def merge_writes(function: Callable, *parts: Array) -> float:
    return writes(function, tuple(parts[:3]), tuple(parts[3:]))


# Tiles --------------------------------------------------------------------------------------------------------------


def tiled_attention(rng: np.random.Generator) -> list[Rung]:
    arrays = functools.partial(draw_qkv, rng)

    def from_scores(*scores):
        """Return two queries that are 1, keys that equal the scores, and random values."""
        return np.ones((2, 1)), np.array(scores, dtype=float)[:, None], draw(rng, len(scores), 3)

    single = tuple(array.astype(np.float32) for array in arrays(5, 7, 4, 3))
    two_rounds = [*draw(rng, 3).tolist()] * 2
    opposite = draw(rng, 6, 3) + np.repeat([1e4, -1e4], 3)[:, None]  # the second round cancels the first
    plain = arrays(48, 60, 2, 2)
    lower = arrays(48, 48, 2, 2)
    wide = arrays(48, 48, 64, 64)
    open_door = arrays(48, 60, 16, 16)
    thin = arrays(48, 72, 1, 1)
    few = arrays(4, 60, 2, 2)
    long = arrays(16, 300, 1, 1)
    return [
        Rung("one query, one key", (*arrays(1, 1, 2, 3), 4, 4),
            "With one key its weight is 1, so o is its value, and lse is the score itself: q · k / √d_k."),
        Rung("one tile holds everything", (*arrays(3, 4, 5, 2), 8, 8),
            "n = 3 and m = 4 in blocks of 8: a block may be larger than the sequence. o is (n, d_v), lse is (n)."),
        Rung("two blocks of keys", (*arrays(2, 4, 3, 5), 2, 2),
            "For each block of queries, go through all blocks of keys, and carry m, l and acc along."),
        Rung("the largest score in the last block", (*from_scores(0.5, -1.0, 1.0, 0.0, 4.0), 2, 2),
            "When m grows from block to block, l and acc shrink by e^(m_old − m_new) before anything is added."),
        Rung("the largest score in the first block", (*from_scores(4.0, -1.0, 1.0, 0.0, 0.5), 2, 2),
            "Later blocks count relative to the running maximum, not to their own."),
        Rung("two blocks of queries", (*arrays(4, 3, 2, 3), 2, 4),
            "Each block of queries starts again: m = −∞, l = 0, acc = 0. Its rows go to their own places in o and "
            "lse."),
        Rung("blocks that do not divide n and m", (*arrays(5, 7, 3, 2), 2, 3),
            "The last block of queries has one row, the last block of keys one key. Slices stop by themselves where a "
            "tensor ends; rows of zeros that fill a block up would each count as e^0."),
        Rung("blocks of one", (*arrays(3, 4, 2, 2), 1, 1), "One query and one key at a time."),
        Rung("d_k = 9, d_v = 2", (*arrays(4, 5, 9, 2, size=1.5), 3, 2),
            "The scale is 1/√d_k, applied once, and lse is the log-sum-exp of the scaled scores."),
        Rung("9 queries, 4 keys", (*arrays(9, 4, 3, 2), 4, 3), "n may be larger or smaller than m."),
        Rung("all sizes equal", (*arrays(4, 4, 4, 4), 2, 2),
            "With equal sizes, a wrong axis raises no error: m and l have an entry for each query."),
        Rung("float64 in, float64 out", (*arrays(3, 4, 3, 2), 2, 2), FLOAT64, tiled_in_dtype),
        Rung("large scores", (*arrays(5, 6, 3, 2, size=40.0), 2, 2),
            "exp(1000) is infinity. Subtract the running maximum before exp, and lse is m + log l."),
        Rung("scores below −10 000", (*from_scores(-30000.0, -30001.0, -29999.5, -30002.0), 2, 2),
            "m starts at −∞. A number such as −1e4 instead is larger than these scores."),
        Rung("scores that differ in the seventh digit", (*from_scores(*(1000.0 + 0.00137 * rng.permutation(6))), 2, 2),
            "Everything is float64 here, and the scores must be too: float32 keeps about "
            "seven digits, too few to tell these apart."),
        Rung("values that nearly cancel", (*from_scores(*two_rounds)[:2], opposite, 2, 2),
            "Everything is float64 here, and what you carry must be too: a sum in float32 loses what remains when "
            "large values cancel. torch.zeros makes float32, q.new_zeros does not."),
        Rung("causal, 6 tokens", (*arrays(6, 6, 3, 2), 2, 2, True),
            "Query i sees keys 0 to i. In the tile on the diagonal, some scores are masked with −∞, before the maximum "
            "is taken."),
        Rung("causal, blocks of 4 queries and 3 keys", (*arrays(10, 10, 3, 2), 4, 3, True),
            "The diagonal may run through more than one tile of a row of tiles. The mask counts tokens in the whole "
            "sequence, not in the tile."),
        Rung("causal, blocks of 2 queries and 5 keys", (*arrays(9, 9, 3, 2), 2, 5, True),
            "A block of keys is visited if the last query of the block sees its first key."),
        Rung("causal, blocks of 8 queries and 2 keys", (*arrays(9, 9, 3, 2), 8, 2, True),
            "The first queries of a block see nothing of several tiles that its last query sees. Such a tile changes "
            "neither m nor l nor acc of these rows."),
        Rung("causal, 4 queries, 9 keys", (*arrays(4, 9, 3, 2), 3, 2, True),
            "The queries are the last n of m tokens, as in decoding: query i sees keys 0 to i + m − n."),
        Rung("causal, one query, 7 keys", (*arrays(1, 7, 2, 3), 4, 3, True),
            "A single query is the last token: it sees every key."),
        Rung("causal, one tile holds everything", (*arrays(5, 5, 3, 2), 16, 16, True),
            "A block may be larger than the sequence; the mask is still needed."),
        Rung("causal, a later score far above the others", (*from_scores(1.0, 2.0, 0.0, 5e9), 2, 2, True),
            "The first query does not see the last key. A masked score must not reach the maximum, however large it "
            "is: −∞ takes its place, and is not added to it."),
        Rung("causal, scores below −1 000 000 000", (*from_scores(-7e9, -8e9, -6e9, -9e9), 2, 2, True),
            "The first query does not see the last key. Masked scores are −∞: a number such as "
            "−1e4 or −1e9 is larger than these scores."),
        Rung("float32", (*single, 2, 3),
            "All tensors are float32 here, and what you make and return must be too: q.new_zeros(…), or dtype=q.dtype.",
            tiled_in_dtype, SINGLE),
        Rung(UNTOUCHED, (*arrays(4, 5, 3, 2), 2, 2), NEW_TENSORS, writes),
        Rung("the tensors stay in PyTorch", (*open_door, 8, 12),
            "Only PyTorch's tensors can be watched, so compute the products with PyTorch: no .numpy(), .tolist() or "
            ".item() on anything as large as the scores.",
            leaves_pytorch),
        Rung("no tensor of n × m elements", (*plain, 8, 12, False),
            "The answer is right, but a tensor of n × m elements or more is made. At any time there is one tile of "
            "scores, block_q × block_k, and a mask is made for one tile too.",
            makes_all_scores),
        Rung("no row of tiles at once", (*plain, 8, 12),
            "Scores, or a causal mask, are made for a whole row or column of tiles at once. A tile has block_q queries "
            "and block_k keys.",
            makes_stripes),
        Rung("no tile larger than asked for", (*thin, 8, 24),
            "With block_q = 8 and block_k = 24 a tile has 8 × 24 scores, and here a tensor is clearly larger. Take "
            "block_q queries and block_k keys at a time.",
            makes_larger_tiles),
        Rung("no tile smaller than asked for", (*few, (16, 3), (5, 30)),
            "Blocks of 30 keys do not take clearly fewer steps here than blocks of 3, so the loop does not take "
            "block_k keys at a time.",
            ignores_blocks),
        Rung("a tile is let go", (*long, 16, 12),
            "No tensor is too large, but together the tensors that exist at one time hold a third as many numbers as a "
            "row of tiles, or more. Only m, l and acc go on to the next tile.",
            keeps_tiles),
        Rung("no tensor of n × m elements, causal", (*lower, 8, 12, True),
            "The answer is right, but a tensor of n × m elements or more is made: a causal mask for all tokens is one. "
            "Make the mask for one tile, from the positions of its queries and keys.",
            makes_all_scores),
        Rung("causal blocks are skipped", (*wide, 8, 8, True),
            "The answer is right, but the work is hardly less than without a mask. A block of keys that no query in "
            "the block sees should not even be multiplied: end the loop over the keys before it.",
            does_not_skip),
        Rung("each block of queries skips", (*arrays(15, 17, 2, 2), (2, 4), (5, 3)),
            "Here the values that no query of a block sees are NaN, and NaN has come into its output, since 0 · NaN is "
            "NaN. So a tile was made and masked that should be skipped. This may happen only for some block sizes or "
            "some blocks of queries: end each loop over the keys after the last key that the block's last query sees.",
            uses_unseen_tiles),
        Rung("tiles of zeros", (np.zeros((1, 2)), np.zeros((4, 2)), np.array([[0.0], [2.0], [0.0], [0.0]]), 1, 1),
            "A score of 0 and a value of 0 count like any other: e^0 is 1."),
    ]  # fmt: skip


def tiled_in_dtype(function: Callable, q: Array, *args: Any) -> dict[str, Any]:
    return of_one_dtype(named(function(q, *args), ("o", "lse")), q)


def leaves_pytorch(function: Callable, q: Array, k: Array, v: Array, *blocks: Any) -> dict[str, Any]:
    """Return 1.0 if scores are computed outside PyTorch, where they cannot be watched, else 0.0."""
    plain, causal = watch_both(function, q, k, v, *blocks)
    n, m, d_k, d_v = len(q), len(k), q.shape[1], v.shape[1]
    outside = max(plain.taken_out, causal.taken_out) >= n * m / 2 or plain.work < 0.9 * n * m * (d_k + d_v)
    return plain.report(outside, causal=causal)


def makes_all_scores(function: Callable, q: Array, k: Array, v: Array, *options: Any) -> dict[str, Any]:
    """Return 1.0 if some tensor has as many elements as there are scores, else 0.0."""
    observed = watch(function, q, k, v, *options)
    return observed.report(observed.largest >= len(q) * len(k))


def makes_stripes(function: Callable, q: Array, k: Array, v: Array, block_q: int, block_k: int) -> dict[str, Any]:
    """Return 1.0 if some tensor has as many elements as a row or a column of tiles, else 0.0."""
    plain, causal = watch_both(function, q, k, v, block_q, block_k)
    striped = max(plain.largest, causal.largest) >= min(block_q * len(k), len(q) * block_k)
    return plain.report(striped, causal=causal)


def makes_larger_tiles(function: Callable, q: Array, k: Array, v: Array, block_q: int, block_k: int) -> dict[str, Any]:
    """Return 1.0 if some tensor is at least 1.5 times as large as a tile, else 0.0; here q, k and v are smaller."""
    plain, causal = watch_both(function, q, k, v, block_q, block_k)
    return plain.report(max(plain.largest, causal.largest) >= 1.5 * block_q * block_k, causal=causal)


def ignores_blocks(
    function: Callable, q: Array, k: Array, v: Array, small: tuple[int, int], large: tuple[int, int]
) -> dict[str, Any]:
    """Return 1.0 if ten times as many small blocks take less than 3 times the operations of large ones, else 0.0."""
    many = watch(function, q, k, v, *small)
    few = watch(function, q, k, v, *large)
    return many.report(many.operations < 3 * few.operations, **{"in large blocks": few})


def keeps_tiles(function: Callable, q: Array, k: Array, v: Array, *blocks: Any) -> dict[str, Any]:
    """Return 1.0 if the tensors kept at one time hold a third as many elements as there are scores, else 0.0."""
    plain, causal = watch_both(function, q, k, v, *blocks)
    return plain.report(max(plain.most_kept, causal.most_kept) >= len(q) * len(k) / 3, causal=causal)


def does_not_skip(
    function: Callable, q: Array, k: Array, v: Array, block_q: int, block_k: int, causal: bool
) -> dict[str, Any]:
    """Return 1.0 if a causal mask saves less than 0.34 of the work, else 0.0; skipping 15 of 36 tiles saves 0.4."""
    full = watch(function, q, k, v, block_q, block_k, False)
    observed = watch(function, q, k, v, block_q, block_k, causal)
    return observed.report(observed.work > 0.66 * full.work, **{"without causal": full})


def uses_unseen_tiles(function: Callable, q: Array, k: Array, v: Array, *blocks: Any) -> dict[str, Any]:
    """Return 1.0 if a block of queries reads values of tiles that it should skip, else 0.0; and the output."""
    result = named(function(q, k, v, *blocks[0], True), ("o", "lse"))
    used = False
    if np.isnan(np.asarray(result["o"])).any():
        return {"measure": 0.0} | result  # wrong, but for another reason
    for block_q, block_k in blocks:
        for first in range(0, len(q), block_q):
            last = min(first + block_q, len(q))
            n_visible = last + len(k) - len(q)
            marked = v + 0
            marked[math.ceil(n_visible / block_k) * block_k :] = math.nan
            o = named(function(q, k, marked, block_q, block_k, True), ("o", "lse"))["o"]
            used = used or np.isnan(np.asarray(o)[first:last]).any()
    return {"measure": float(used)} | result


# Traffic ------------------------------------------------------------------------------------------------------------


def bytes_moved(rng: np.random.Generator) -> list[Rung]:
    def flash(name, args, why):
        return Rung(name, args, why, of="flash_bytes")

    def naive(name, args, why):
        return Rung(name, args, why, of="naive_bytes")

    T = int(rng.integers(40, 90))
    d = int(rng.integers(1, 4)) * 8
    block = int(rng.integers(2, 6)) * 3
    return [
        naive("naive, one token, d = 1, one byte", (1, 1, 1),
            "q, k, v are read and o is written, one number each: 4. The score is written and read, and so is the "
            "weight: 4 more."),
        naive("naive, T = 64, d = 16", (64, 16),
            "Three passes: S = q kᵀ, P = softmax(S), o = P v. Each reads what it needs and writes what it "
            "makes. bytes_per_value is 2 when left out."),
        naive("naive, T = 60, d = 4, four bytes", (60, 4, 4), "Every number takes bytes_per_value bytes."),
        naive("naive, any T and d", (T, d, 2),
            "S is written by the first pass and read by the second, P written by the second and read by the third."),
        naive("naive, more dimensions than tokens", (8, 128, 1), "q, k, v and o are T × d each, S and P are T × T."),
        flash("flash, one token, d = 1, one byte", (1, 1, 1, 1),
            "q, k and v are read, o and lse are written: 5 numbers."),
        flash("flash, one block holds all queries", (64, 16, 64),
            "With one block k and v are read once. Read: q, k, v. Written: o, and one number of lse for each "
            "query. bytes_per_value is 2 when left out."),
        flash("flash, T = 64, d = 16, blocks of 8", (64, 16, 8),
            "For each of the 8 blocks of queries, all of k and v are read again. q is read once; o and lse are written "
            "once."),
        flash("flash, four bytes", (48, 8, 12, 4), "Every number takes bytes_per_value bytes, including those in lse."),
        flash("flash, blocks that do not divide T", (100, 8, 16, 1),
            "7 blocks: the last one has 4 queries, and it reads all of k and v like the others. Round up."),
        flash("flash, a block larger than T", (30, 8, 64),
            "There is one block, with T queries in it: q and o have T rows, not block_q."),
        flash("flash, blocks of one query", (37, 8, 1), "T blocks, so k and v are read T times."),
        flash("flash, anything", (T, d, block, 2),
            "Read: q once, k and v once for each block of queries. Written: o and lse once."),
        flash("flash, a million tokens", (10**6, 128, 128, 2), "The same for long sequences."),
        naive("naive, a million tokens", (10**6, 128, 2), "32 bits end at 2³¹: count in Python's whole numbers."),
    ]  # fmt: skip


# Backward -----------------------------------------------------------------------------------------------------------


def flash_backward(rng: np.random.Generator) -> list[Rung]:
    def of(n, m, d_k, d_v, size=1.0):
        return with_forward(*draw_qkv(rng, n, m, d_k, d_v, size=size), draw(rng, n, d_v))

    q, k, v = draw_qkv(rng, 3, 7, 4, 2)
    _, _, _, o, lse, do = with_forward(q, k, v, draw(rng, 3, 2))
    flat = with_forward(*draw_qkv(rng, 3, 5, 2, 4), np.zeros((3, 4)))
    even = draw_qkv(rng, 3, 4, 2, 2)
    single = tuple(x.astype(np.float32) for x in of(4, 5, 3, 2))
    one_q, one_k, one_v = draw_qkv(rng, 1, 6, 3, 2)
    return [
        Rung("one key", of(2, 1, 3, 2),
            "With one key the weight is 1, whatever the score: dq and dk are 0. dv is the sum of do over the queries."),
        Rung("two tokens", of(2, 2, 2, 2),
            "Five products: P from q, k and lse; dv = Pᵀ do; dP = do vᵀ; dS = P ∘ (dP − delta); dq = dS "
            "k and dk = dSᵀ q, both times the scale."),
        Rung("equal values", (*even[:2], *with_forward(*even[:2], np.ones((4, 2)), draw(rng, 3, 2))[2:]),
            "All values are equal, so o does not depend on the weights: dq and dk are 0. It is delta, the row sum of "
            "do ∘ o, that takes the common part out of dP."),
        Rung("3 queries, 5 keys, d_k = 4, d_v = 2", of(3, 5, 4, 2),
            "delta has one number for each query.",
            shape_hint="dq has the shape of q, dk that of k, dv that of v."),
        Rung("5 queries, 3 keys, d_k = 2, d_v = 6", of(5, 3, 2, 6),
            "n may be larger or smaller than m, and d_k than d_v."),
        Rung("all sizes equal", of(3, 3, 3, 3),
            "With equal sizes, a wrong transpose raises no error. dv and dk need Pᵀ and dSᵀ: a row for each key."),
        Rung("one query", (*with_forward(one_q, one_k, one_v, draw(rng, 1, 2)),),
            "A single query is one row: delta is one number."),
        Rung("d_k = 9, the scale", of(4, 5, 9, 3, size=1.5),
            "The scores are q · k / √d_k, so the scale enters P, and once more dq and dk. lse is the log-sum-exp of "
            "the scaled scores."),
        Rung("a gradient of zeros", flat, "Where do is 0, all gradients are 0."),
        Rung("float64 in, float64 out", of(3, 4, 2, 3), FLOAT64, gradients_in_dtype),
        Rung(TOO_NEAR,
            with_forward(np.ones((2, 1)), 1000 + 1e-5 * rng.permutation(3)[:, None], draw(rng, 3, 2), draw(rng, 2, 2)),
            "The scores are 1000 and some 0.00001, in float64. e^1000 is ∞, so subtract lse first; and float32, which "
            "keeps about seven digits, makes them all equal: keep the dtype in every step."),
        Rung("large scores", of(4, 6, 3, 2, size=40.0),
            "exp(1000) is infinity: e^(score − lse) is at most 1, with no other maximum needed."),
        Rung("k and v are some of the keys", (q, k[2:5], v[2:5], o, lse, do),
            "o and lse belong to all 7 keys, but k and v to 3 of them. P = e^(score − lse) and delta = rowsum(do ∘ o) "
            "get the share of the missing keys from o and lse; a softmax over the given keys does not.",
            tolerance={}),
        Rung("k and v are one key of many", (q, k[6:], v[6:], o, lse, do),
            "The same with a single key: its weight is e^(score − lse), not 1."),
        Rung("float32", single, "All tensors are float32 here, and what you make and return must be too.",
            gradients_in_dtype, SINGLE),
        Rung(UNTOUCHED, of(3, 4, 2, 3), NEW_TENSORS, writes),
        Rung("a small weight and a large gradient",
            with_forward(np.ones((1, 1)), np.array([[0.0], [-10.0]]), np.array([[1.0], [2.0]]), np.array([[1e6]])),
            "The second key has a weight of e^−10, and do is a million: nothing may be cut off."),
    ]  # fmt: skip


def with_forward(q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return (q, k, v, o, lse, do): what a forward pass keeps, and a gradient of its output."""
    scores = q @ k.T / math.sqrt(q.shape[1])
    m = scores.max(axis=1)
    lse = m + np.log(np.exp(scores - m[:, None]).sum(axis=1))
    return q, k, v, np.exp(scores - lse[:, None]) @ v, lse, do


def gradients_in_dtype(function: Callable, q: Array, *args: Any) -> dict[str, Any]:
    return of_one_dtype(named(function(q, *args), ("dq", "dk", "dv")), q)


# Backward of a block of queries --------------------------------------------------------------------------------------

GRADIENTS = ("dq", "dk", "dv")


def block_backward(rng: np.random.Generator) -> list[Rung]:
    def of(b, m, d_k, d_v, first, block_k, size=1.0):
        q, k, v = draw_qkv(rng, b, m, d_k, d_v, size=size)
        return (*with_causal_forward(q, k, v, draw(rng, b, d_v), first), first, block_k)

    single = of(3, 7, 4, 2, 3, 2)
    single = *(x.astype(np.float32) for x in single[:6]), *single[6:]
    ahead = draw_qkv(rng, 3, 8, 1, 2)
    ahead[0][:], ahead[1][5:] = 1.0, 900.0  # the keys that nobody sees have by far the largest scores
    near = np.ones((2, 1)), 1000 + 1e-5 * rng.permutation(4)[:, None], draw(rng, 4, 2)
    long = of(24, 72, 2, 2, 48, 6)
    early = of(4, 20, 3, 2, 2, 3)
    flat = draw_qkv(rng, 2, 5, 3, 2)
    return [
        Rung("one tile holds everything", of(2, 3, 3, 2, 1, 4),
            "One tile: P = e^(score − lse) where a key is seen and 0 elsewhere; dv = Pᵀ do, dP = do vᵀ, dS = P ∘ (dP − "
            "delta), dq = dS k and dk = dSᵀ q, both divided by √d_k."),
        Rung("the first token", of(1, 4, 2, 3, 0, 2),
            "It sees only its own key, with weight 1: dq and dk are 0, and dv is do in its first row.",
            shape_hint="dq has the shape of q, dk that of k, dv that of v: keys that nobody sees have rows of 0."),
        Rung("the last token", of(1, 6, 3, 2, 5, 2), "A single query that sees every key: no mask is needed."),
        Rung("two tiles of keys", of(2, 4, 3, 5, 2, 2),
            "dq is a sum over the tiles of keys. dk and dv are not: each tile has its own rows in them."),
        Rung("tiles that do not divide the keys", of(3, 7, 4, 2, 4, 3),
            "The last tile of keys is smaller. Slices stop by themselves where a tensor ends."),
        Rung("the block begins in the middle of a tile", of(3, 9, 2, 4, 3, 4),
            "Row r is token first + r of the whole text, and column c of a tile is token j + c: compare these two."),
        Rung("the diagonal runs through several tiles", of(6, 12, 3, 2, 4, 2),
            "The first rows of the block see nothing of tiles that its last row sees: their P is 0 there."),
        Rung("later keys with large scores", (*with_causal_forward(*ahead, draw(rng, 3, 2), 2), 2, 3),
            "Keys that no query of the block sees add nothing, whatever their scores: e^(score − lse) overflows there. "
            "Put −∞ into the scores before the exponential."),
        Rung("blocks of one key", of(3, 6, 2, 2, 2, 1), "One key at a time."),
        Rung("a block of all tokens", of(5, 5, 3, 2, 0, 2), "The block may be the whole text, with first = 0."),
        Rung("all sizes equal", of(3, 3, 3, 3, 0, 2), "With equal sizes, a wrong transpose raises no error."),
        Rung("d_k = 9, the scale", of(4, 6, 9, 3, 2, 4, size=1.5),
            "The scores are q · k / √d_k, so √d_k divides once in P, and once more in dq and in dk."),
        Rung("a gradient of zeros", (*with_causal_forward(*flat, np.zeros((2, 2)), 3), 3, 2),
            "Where do is 0, all gradients are 0."),
        Rung("large scores", of(4, 8, 3, 2, 4, 3, size=40.0),
            "exp(1000) is infinity: subtract lse before the exponential. No other maximum is needed."),
        Rung(TOO_NEAR, (*with_causal_forward(*near, draw(rng, 2, 2), 2), 2, 2),
            "The scores are 1000 and some 0.00001, in float64. float32, which keeps about seven digits, makes them all "
            "equal: keep the dtype in every step."),
        Rung("float64 in, float64 out", of(3, 6, 2, 3, 2, 2), FLOAT64, block_gradients_in_dtype),
        Rung("float32", single, "All tensors are float32 here, and what you make and return must be too.",
            block_gradients_in_dtype, SINGLE),
        Rung(UNTOUCHED, of(3, 6, 2, 3, 2, 2), NEW_TENSORS, writes),
        Rung("one tile at a time", long,
            "The gradients are right, but at some point as many numbers exist as the block has scores: P for all keys, "
            "or all its tiles. Loop over the keys, block_k at a time, and let each tile go. Only PyTorch's tensors can "
            "be watched: no .numpy() or .tolist().",
            keeps_all_scores),
        Rung("unseen tiles are skipped", early,
            "After the last key that the block sees, keys and values are NaN here, and NaN has come into a gradient, "
            "since 0 · NaN is NaN. A tile that should be skipped was made and masked: end the loop before it.",
            touches_unseen_tiles),
        Rung("values of one number", of(2, 3, 3, 1, 1, 4), "dv has the shape of v, (m, 1): an axis of length 1 stays."),
    ]  # fmt: skip


def with_causal_forward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray, first: int
) -> tuple[np.ndarray, ...]:
    """Return (q, k, v, o, lse, do) of a block of queries that are the tokens from `first` on of a causal text."""
    scores = q @ k.T / math.sqrt(q.shape[1])
    scores = np.where(np.tri(len(q), len(k), k=first) > 0, scores, -INFINITY)
    m = scores.max(axis=1)
    lse = m + np.log(np.exp(scores - m[:, None]).sum(axis=1))
    return q, k, v, np.exp(scores - lse[:, None]) @ v, lse, do


def block_gradients_in_dtype(function: Callable, q: Array, *args: Any) -> dict[str, Any]:
    return of_one_dtype(named(function(q, *args), GRADIENTS), q)


def keeps_all_scores(function: Callable, q: Array, k: Array, *args: Any) -> dict[str, Any]:
    """Return 1.0 if the block's scores exist all at a time, or are computed where they cannot be watched, else 0.0."""
    observed = watch(function, q, k, *args)
    first = args[-2]
    seen = len(q) * (first + len(q)) - len(q) * (len(q) - 1) // 2  # pairs of a query and a key that it sees
    outside = observed.taken_out >= seen / 2 or observed.work < 0.9 * seen * q.shape[1]
    whole_block = 2 * observed.largest >= len(q) * len(k) or observed.most_kept >= len(q) * len(k)
    return {"measure": float(outside or whole_block)} | named(observed.result, GRADIENTS)


def touches_unseen_tiles(function: Callable, q: Array, k: Array, v: Array, *args: Any) -> dict[str, Any]:
    """Return 1.0 if keys or values of a tile that no query sees come into a gradient, else 0.0; and the gradients."""
    result = named(function(q, k, v, *args), GRADIENTS)
    first, block_k = args[-2:]
    unseen = math.ceil((first + len(q)) / block_k) * block_k
    marked_k, marked_v = k + 0, v + 0
    marked_k[unseen:] = marked_v[unseen:] = math.nan
    found = named(function(q, marked_k, marked_v, *args), GRADIENTS)
    return {"measure": float(any(np.isnan(np.asarray(x)).any() for x in found.values()))} | result


# A row in blocks, in Triton ------------------------------------------------------------------------------------------


def row_in_blocks(rng: np.random.Generator) -> list[Rung]:
    def rung(name, scores, block, why, shape_hint=""):
        scores = np.atleast_2d(np.asarray(scores, dtype=np.float32))
        values = draw(rng, scores.shape[1]).astype(np.float32)
        return Rung(name, (scores, values, block), why, through_the_row_kernel, shape_hint=shape_hint)

    up = (0.5 + rng.random(8).round(2)).cumsum()
    four = draw(rng, 4)
    return [
        rung("one block, all of it in the row", draw(rng, 4), 4,
            "One turn of the loop: the scores from where `scores` points, their maximum, e^(s − m), their sum into l, "
            "their products with the values, summed, into o.",
            shape_hint="Return (m, l, o)."),
        rung("one number", [1.5], 2,
            "Only one number belongs to the row: l is e^0 = 1, o its value, and lse the score. What lies after it "
            "counts as e^−∞ = 0."),
        rung("two blocks with the same scores in another order", np.append(four, rng.permutation(four)), 4,
            "The maximum stays, so nothing shrinks here: the sums of both blocks add up. Each turn reads its own "
            "numbers, start + tl.arange(0, BLOCK)."),
        rung("the scores rise from block to block", up, 2,
            "When m grows, l and o shrink by e^(m_old − m_new) before the block is added."),
        rung("the scores fall from block to block", up[::-1].copy(), 2,
            "Later blocks count relative to the running maximum, not to their own."),
        rung("a block that does not divide the row", draw(rng, 7), 2,
            "The last block reaches past the end. What stands there must count for nothing, in l and in o."),
        rung("the last number is the largest", [0.5, 1.0, 3.0], 2,
            "The last block is not whole, but it is a block like the others."),
        rung("a block larger than the row", draw(rng, 3), 8, "One block, and most of it lies past the end."),
        rung("all scores are negative", -2.0 - rng.random(5).round(2), 2,
            "All scores are below 0, and so is m. Nothing past the end counts as a score of 0."),
        rung("three rows", draw(rng, 3, 5), 2,
            "Each row has its own program: `scores` already points at its first number."),
        rung("scores of some hundreds", 400.0 + 100.0 * draw(rng, 6), 2,
            "e^400 overflows. Subtract the running maximum first."),
        rung("the scores fall by thousands", -2000.0 * np.arange(6.0), 2,
            "The maximum of the first block stays the maximum: m_new is the larger of m and the block's maximum. If m "
            "falls, the factor e^(m_old − m_new) overflows."),
        rung("below −10 000 000 000", -4e24 * (1.0 + rng.permutation(5) // 2), 2,
            "All scores are far below −10 000 000 000. A start or a fill such as −1e9 is a number like any other, and "
            "larger than these: use −∞."),
        rung("a hundred numbers, blocks of 16", 3 * draw(rng, 2, 100), 16, "The same with larger blocks."),
    ]  # fmt: skip


# The Triton loop ----------------------------------------------------------------------------------------------------


def triton_inner_loop(rng: np.random.Generator) -> list[Rung]:
    def rung(name, shape, blocks, why, causal=False, dtype=np.float32, size=1.0, tolerance=None, shape_hint=""):
        heads, n, m, d = shape
        q, k, v = size * draw(rng, heads, n, d), size * draw(rng, heads, m, d), draw(rng, heads, m, d)
        q, k, v = (x.astype(dtype) for x in (q, k, v))
        args = q, k, v, causal, *blocks
        return Rung(name, args, why, through_the_kernel, tolerance or {}, shape_hint=shape_hint)

    rising: tuple[np.ndarray, ...] = (draw(rng, 1, 4, 16), draw(rng, 1, 48, 16), draw(rng, 1, 48, 16))
    rising[0][..., 0], rising[1][..., 0] = 4.0, np.arange(48) / 8.0  # the scores grow by up to 6 along the keys
    falling: tuple[np.ndarray, ...] = (rising[0], rising[1][:, ::-1].copy(), rising[2])
    rising, falling = (tuple(x.astype(np.float32) for x in arrays) for arrays in (rising, falling))
    q, k, v = draw(rng, 1, 16, 16), draw(rng, 1, 16, 16), draw(rng, 1, 32, 16)
    twins = tuple(x.astype(np.float32) for x in (q, np.concatenate([k, k[:, rng.permutation(16)]], axis=1), v))
    steep: tuple[np.ndarray, ...] = (falling[0], 512.0 * falling[1], falling[2])
    deep: tuple[np.ndarray, ...] = (draw(rng, 1, 20, 16), draw(rng, 1, 20, 16), draw(rng, 1, 20, 16))
    deep[0][..., 0] = 4.0
    deep[0][..., 1:] = 0.0
    deep[1][0, :, 0] = -20000.0 - 500.0 * rng.permutation(20)
    steep, deep = (tuple(x.astype(np.float32) for x in arrays) for arrays in (steep, deep))
    leap = tuple(
        x.astype(np.float32) for x in (0.5 + draw(rng, 1, 20, 16) ** 2, draw(rng, 1, 20, 16), draw(rng, 1, 20, 16))
    )
    leap[1][0, -1] = 1000.0
    abyss = tuple(x.copy() for x in deep)  # pairs of keys share a score, since at this size smaller differences vanish
    abyss[1][0, :, 0] = -1e24 * (1.0 + rng.permutation(20) // 2)
    high = np.zeros((1, 4, 16)), np.zeros((1, 40, 16)), np.full((1, 40, 16), 30_000.0)
    half = {part: (4e-3, 4e-3) for part in ("o", "lse")}
    blocks = 16, 16
    return [
        rung("one block of keys", (1, 16, 16, 16), blocks,
            "One turn of the loop: scores times scale_log2, their maximum along the keys, 2^(s − m), its sum into l, "
            "its product with v into acc. The second call has no key to visit, and returns what it was given.",
            shape_hint="Return (acc, l, m), with the new m."),
        Rung("two blocks with the same keys in another order", (*twins, False, *blocks),
            "The maximum stays, so nothing shrinks here: the sums of both blocks add up. Each turn loads its own keys "
            "and values, starting at row j: [head, j, 0].",
            through_the_kernel),
        rung("one key", (1, 3, 1, 16), blocks,
            "With one key its weight is 1: o is its value, and lse the score. The other columns of the block are "
            "past the last key: MASKED is True, and last is 0 for every query."),
        Rung("the scores rise from block to block", (*rising, False, *blocks),
            "When m grows, l and acc shrink by 2^(m_old − m_new) before the block is added.",
            through_the_kernel),
        Rung("the scores fall from block to block", (*falling, False, *blocks),
            "Later blocks count relative to the running maximum, not to their own.",
            through_the_kernel),
        Rung("the scores fall by thousands", (*steep, False, *blocks),
            "The maximum of the first block stays the maximum: m_new is the larger of m and the block's maximum. If m "
            "falls, the factor 2^(m_old − m_new) overflows.",
            through_the_kernel),
        rung("two heads", (2, 6, 32, 16), blocks, "A descriptor holds all heads: load from [head, j, 0]."),
        rung("5 keys past the last whole block", (1, 8, 37, 16), blocks,
            "The first call has MASKED False and goes through the whole blocks. The second has MASKED True, starts "
            "where the first ended, and finds acc, l and m as the first left them."),
        rung("causal, 34 tokens", (1, 34, 34, 16), blocks,
            "Where MASKED is True, columns beyond last are −∞ before the maximum is taken. Blocks that start at stop "
            "or later are not visited.",
            causal=True),
        rung("causal, 18 queries, 45 keys", (1, 18, 45, 16), blocks,
            "The columns count from j, not from 0, and there are BLOCK_K of them. last has one number "
            "for each query, so it is last[:, None].",
            causal=True),
        rung("causal, d_head = 32, blocks of 16 queries and 32 keys", (1, 10, 40, 32), (16, 32),
            "A tile is BLOCK_Q × BLOCK_K, and acc is BLOCK_Q × D_HEAD. Rows are queries.",
            causal=True),
        rung("scores of some hundreds", (1, 8, 40, 16), blocks,
            "2^s overflows for s of some hundreds: subtract the running maximum first, in the same units. m counts in "
            "powers of two, so it is the maximum of the scores times scale_log2.",
            size=12.0),
        Rung("causal, a later score far above the others", (*leap, True, *blocks),
            "The first queries do not see the last key, whose score is in the thousands. Put −∞ into s before tl.max.",
            through_the_kernel),
        Rung("causal, scores below −10 000", (*deep, True, *blocks),
            "All scores are below −10 000, those of the masked keys too. A fill such as −1e4 is larger than these: use "
            "−∞.",
            through_the_kernel),
        Rung("causal, scores below −10 000 000 000", (*abyss, True, *blocks),
            "All scores are far below −10 000 000 000 here, those of the masked keys too. A fill such as −1e6 or −1e9 "
            "is a number like any other, and larger than these: use −∞.",
            through_the_kernel),
        rung("float16", (1, 10, 40, 16), blocks,
            "q, k and v are float16 here, acc, l and m stay float32. tl.dot takes two blocks of the same dtype: "
            "p.to(v.dtype).",
            dtype=np.float16, tolerance=half),
        Rung("float16, values of 30 000", (*(x.astype(np.float16) for x in high), False, *blocks),
            "q, k and v are float16 here. acc is a sum of values, and exceeds 65 504, where float16 ends: keep it in "
            "float32.",
            through_the_kernel, half),
    ]  # fmt: skip


# Find the bug -------------------------------------------------------------------------------------------------------


def find_the_bug(rng: np.random.Generator) -> list[Rung]:
    arrays = functools.partial(draw_qkv, rng)
    ahead = arrays(3, 8, 2, 3)
    below = arrays(2, 6, 2, 2)
    ahead[1][5:], ahead[0][:] = 900.0, np.abs(ahead[0]) + 0.5  # keys beyond `length` have by far the largest scores
    below[1][:] = -40.0 - np.abs(below[1])
    below[0][:] = np.abs(below[0]) + 0.5
    far_below = (np.ones((2, 1)), rng.permutation(6)[:, None] / 4.0 - 300_000.0, draw(rng, 6, 2))
    return [
        Rung("a cache that is full", (*arrays(2, 5, 3, 2), 5, 2), "All keys count, whatever block_k is."),
        Rung("a block that divides the length", (*arrays(3, 8, 2, 3), 4, 2),
            "The original code is right here: the error comes from your change."),
        Rung("blocks of one key", (*arrays(3, 6, 2, 4), 3, 1), "The original code is right here too."),
        Rung("any length", (*arrays(4, 9, 3, 2), 5, 2),
            "Only the first `length` keys count, for lse and for o."),
        Rung("a block larger than the length", (*arrays(2, 6, 3, 2), 2, 4),
            "One block, and no maximum ever grows. Ask which keys were in the sum."),
        Rung("a block larger than the cache", (*arrays(2, 4, 3, 2), 3, 8),
            "One block, and no maximum ever grows. Ask which keys were in the sum."),
        Rung("as many queries as value dimensions", (*arrays(3, 8, 2, 3), 5, 3),
            "One number for each query: it belongs to a row of the output."),
        Rung("a batch with heads", (*arrays(3, 7, 4, 2, (2, 2)), 5, 4),
            "Queries are the second-to-last axis, value dimensions the last."),
        Rung("what was there before has far the largest scores", (*ahead, 5, 2),
            "Keys that do not count may change nothing: neither the sums nor the maximum."),
        Rung("scores far below 0", (*below, 5, 2),
            "A key that does not count has weight 0, which is not the same as a score of 0."),
        Rung("scores of −300 000", (*far_below, 5, 2),
            "Below any score there is only −∞: a key that does not count must not have a larger score than one that "
            "does, and the maximum must not start above them."),
        Rung("large scores", (*arrays(4, 7, 3, 2, size=40.0), 5, 2),
            "Only differences from the maximum may go into exp."),
        Rung("scores in float32", (*(x.astype(np.float32) for x in arrays(3, 7, 4, 2)), 5, 2),
            "All tensors are float32 here.",
            tolerance=SINGLE),
        Rung(UNTOUCHED, (*arrays(3, 6, 2, 2), 5, 2), NEW_TENSORS, writes),
        Rung("still in blocks", (*arrays(4, 70, 2, 2), (62, 3), (62, 30)),
            "The numbers are right, but blocks of 3 keys take hardly more steps than blocks of 30: the loop no longer "
            "takes block_k keys at a time. Keep the loop, and change only which keys it takes.",
            ignores_blocks),
        Rung("one head, one query", (*arrays(1, 7, 4, 2, (2, 1)), 5, 4),
            "Axes of length 1 stay: o is (2, 1, 1, d_v) and lse is (2, 1, 1)."),
    ]  # fmt: skip


# Kinds of inputs ----------------------------------------------------------------------------------------------------


STREAMS = (
    ("where a later number is larger", "where none is",
        lambda numbers: any(x > max(numbers[:i]) for i, x in enumerate(numbers) if i)),
    ("where a later number is smaller", "where none is",
        lambda numbers: any(x < max(numbers[:i]) for i, x in enumerate(numbers) if i)),
    ("where −∞ comes", "without −∞", lambda numbers: -INFINITY in numbers),
    ("where −∞ comes first", "where it does not", lambda numbers: numbers[0] == -INFINITY),
    ("where all numbers are negative", "where some are not", lambda numbers: max(numbers) < 0),
    ("where there is no number but −∞", "where there is", lambda numbers: not any(x > -INFINITY for x in numbers)),
    ("with more than one number", "with one number at most", lambda numbers: len(numbers) > 1),
    ("for numbers of 1000 and more", "for smaller ones",
        lambda numbers: max(abs(x) for x in numbers if x > -INFINITY) >= 999),
)  # fmt: skip
PARTS = (
    ("where b has the larger maximum", "where it has not", lambda m_a, l_a, o_a, m_b, *_: bool((m_b > m_a).any())),
    ("where a has the larger maximum", "where it has not", lambda m_a, l_a, o_a, m_b, *_: bool((m_a > m_b).any())),
    ("where maxima differ", "where they are equal", lambda m_a, l_a, o_a, m_b, *_: bool((m_a != m_b).any())),
    ("where a part is empty", "where none is",
        lambda m_a, l_a, o_a, m_b, *_: bool(np.isinf(m_a).any() or np.isinf(m_b).any())),
    ("where both are empty", "where one is not",
        lambda m_a, l_a, o_a, m_b, *_: bool((m_a + m_b == -INFINITY).any() and (np.isinf(m_a) & np.isinf(m_b)).any())),
    ("with several queries", "with one query", lambda m_a, *_: m_a.size > 1),
)  # fmt: skip
TILES = (
    ("with causal=True", "without causal", lambda q, k, v, block_q, block_k, causal=False: causal),
    ("with several blocks of keys", "with one block of keys", lambda q, k, v, block_q, block_k, *_: len(k) > block_k),
    ("with several blocks of queries", "with one block of queries", lambda q, k, v, block_q, *_: len(q) > block_q),
    ("where block_k does not divide m", "where it does", lambda q, k, v, block_q, block_k, *_: len(k) % block_k > 0),
    ("where block_q does not divide n", "where it does", lambda q, k, v, block_q, *_: len(q) % block_q > 0),
    ("where a block is larger than the sequence", "where none is",
        lambda q, k, v, block_q, block_k, *_: len(k) < block_k or len(q) < block_q),
    ("where blocks of queries and of keys differ", "where they are equal",
        lambda q, k, v, block_q, block_k, *_: block_q != block_k),
    ("with causal=True and several blocks of keys", "elsewhere",
        lambda q, k, v, block_q, block_k, causal=False: causal and len(k) > block_k),
    ("with causal=True and more keys than queries", "elsewhere",
        lambda q, k, v, block_q, block_k, causal=False: causal and len(k) > len(q)),
)  # fmt: skip
KERNELS = (
    ("with several blocks of keys", "with one block of keys",
        lambda q, k, v, causal, block_q, block_k: k.shape[1] > block_k),
    ("where something is masked", "where nothing is",
        lambda q, k, v, causal, block_q, block_k: causal or k.shape[1] % block_k > 0),
    ("with causal=True", "without causal", lambda q, k, v, causal, *_: causal),
    ("where BLOCK_K does not divide the keys", "where it does",
        lambda q, k, v, causal, block_q, block_k: k.shape[1] % block_k > 0),
    ("with whole blocks of keys before the last", "without",
        lambda q, k, v, causal, block_q, block_k: k.shape[1] >= block_k),
    ("with several heads", "with one head", lambda q, *_: len(q) > 1),
)  # fmt: skip
ROWS = (
    ("with several blocks", "with one block", lambda scores, values, block: scores.shape[1] > block),
    ("where the block does not divide the row", "where it does",
        lambda scores, values, block: scores.shape[1] % block > 0),
    ("where all scores are negative", "where some are not", lambda scores, *_: bool(scores.max() < 0)),
    ("with several rows", "with one row", lambda scores, *_: len(scores) > 1),
)  # fmt: skip
BLOCKS = (
    ("with several blocks of keys", "with one block of keys", lambda q, k, v, length, block_k: length > block_k),
    (
        "where block_k does not divide the length",
        "where it does",
        lambda q, k, v, length, block_k: length % block_k > 0,
    ),
    ("where the cache has room", "where it is full", lambda q, k, v, length, block_k: k.shape[-2] > length),
    ("with leading axes", "without", lambda q, *_: q.ndim > 2),
)


def counted(rung: Rung) -> dict[str, Any]:
    """Return the quantities of which a rung's number of bytes is made."""
    T, d, *rest = rung.args
    if rung.of == "naive_bytes":
        return {"T": T, "d": d, "bytes_per_value": (*rest, 2)[0]}
    block_q, bytes_per_value = (*rest, 2)[:2]
    return {
        "T": T,
        "d": d,
        "⌈T / block_q⌉": math.ceil(T / block_q),
        "bytes_per_value": bytes_per_value,
        "block_q": block_q,
    }


def sums(draft: Draft) -> np.ndarray:
    """Draw l of a partial result, after its m: 0 where m is −∞, else 1 to 3."""
    m = np.asarray(draft.args[-1])
    drawn = np.array([draft.whole(1, 3) for _ in range(m.size)], dtype=m.dtype).reshape(m.shape)
    return np.where(np.isneginf(m), 0.0, drawn).astype(m.dtype)


def blends(draft: Draft) -> np.ndarray:
    """Draw o of a partial result, after its m and l: 0 where there is no key."""
    m = np.asarray(draft.args[-2])
    like = draft.rung[len(draft.args)]
    drawn = draft.numbers((*m.shape, draft.size("e")), like)
    return np.where(np.isneginf(m)[..., None], 0.0, drawn).astype(like.dtype)


def forward(part: int) -> Callable[[Draft], np.ndarray]:
    """Return a function that computes o (part 3) or lse (part 4) of the q, k and v drawn before."""

    def compute(draft: Draft) -> np.ndarray:
        q, k, v = draft.args[:3]
        return with_forward(q, k, v, np.zeros(1))[part].astype(q.dtype)

    return compute


def causal_forward(part: int) -> Callable[[Draft], np.ndarray]:
    """Return a function that computes o (part 3) or lse (part 4) of the last tokens of a causal text."""

    def draw_part(draft: Draft) -> np.ndarray:
        q, k, v = draft.args[:3]
        return with_causal_forward(q, k, v, np.zeros(1), len(k) - len(q))[part].astype(q.dtype)

    return draw_part


def first_of_the_last(draft: Draft) -> int:
    """Return the place of the first query where the block ends with the text."""
    q, k = draft.args[:2]
    return len(k) - len(q)


def ends_with_the_text(q: Array, k: Array, *args: Any) -> bool:
    return len(q) <= len(k)


def within(q: Array, k: Array, v: Array, length: int, block_k: int) -> bool:
    return length <= k.shape[-2]


def sees_a_key(q: Array, k: Array, v: Array, block_q: int, block_k: int, causal: bool = False) -> bool:
    return not causal or len(q) <= len(k)


PART = ("…", sums, Drawn("… e", blends))
THREE_PARTS = tuple(f"{name}_{part}" for part in "abc" for name in "mlo")
SMALL_PARTS = (
    Small(
        ("n m", "m e"),
        measures=(key_by_key,),
        tensors=True,
        names=("scores", "values"),
        code="zeros = scores[:, 0] * 0\npart = zeros - math.inf, zeros, scores[:, :1] * 0 + values[:1] * 0\n"
        "for j in range(scores.shape[1]):\n"
        "    part = {f}(part, (scores[:, j], zeros + 1, scores[:, :1] * 0 + values[j]))\npart",
    ),
    Small(
        3 * PART,
        measures=(first_two_first,),
        names=THREE_PARTS,
        code="{f}({f}((m_a, l_a, o_a), (m_b, l_b, o_b)), (m_c, l_c, o_c))",
    ),
    Small(
        3 * PART,
        measures=(last_two_first,),
        names=THREE_PARTS,
        code="{f}((m_a, l_a, o_a), {f}((m_b, l_b, o_b), (m_c, l_c, o_c)))",
    ),
    Small(2 * PART, names=THREE_PARTS[:6], code="{f}((m_a, l_a, o_a), (m_b, l_b, o_b))"),
)
SMALL_STREAMS = (
    Small(("m",), measures=(of_a_generator, of_a_list), names=("numbers",), code="{f}(iter(numbers))"),
    Small((BLANK,), measures=(numbers_kept,), names=("numbers",), code="{f}(iter(numbers))"),
)
SIZES = (BLANK, BLANK, BLANK)
BY_SIZE = (makes_all_scores, makes_stripes, makes_larger_tiles, keeps_tiles, does_not_skip, leaves_pytorch)
IN_BLOCKS = Small(
    SIZES,
    measures=(ignores_blocks,),
    names=("q", "k", "v", "small", "large"),
    code="{f}(q, k, v, *small)\n{f}(q, k, v, *large)",
)
SMALL_TILES = (
    Small(SIZES, measures=BY_SIZE),
    IN_BLOCKS,
    Small(("n d", "m d", "m e", whole(), whole(), FROM_RUNG), measures=(None, tiled_in_dtype, writes), fits=sees_a_key),
)
SMALL_BACKWARD = (Small(("n d", "m d", "m e", forward(3), forward(4), "n e")),)
SMALL_BLOCK = (
    Small((BLANK,) * 6, measures=(keeps_all_scores, touches_unseen_tiles)),
    Small(
        ("b d", "m d", "m e", causal_forward(3), causal_forward(4), "b e", first_of_the_last, whole()),
        measures=(None, block_gradients_in_dtype, writes),
        fits=ends_with_the_text,
    ),
)
QUERY_BLOCKS = (
    ("with several tiles of keys", "with one tile of keys", lambda q, k, *rest: len(k) > rest[-1]),
    ("where block_k does not divide the keys", "where it does", lambda q, k, *rest: len(k) % rest[-1] > 0),
    ("with several queries", "with one query", lambda q, *_: len(q) > 1),
    ("where keys come after the block", "where none do", lambda q, k, *rest: rest[-2] + len(q) < len(k)),
    ("where the block does not begin with a tile", "where it does", lambda q, k, *rest: rest[-2] % rest[-1] > 0),
)
LADDERS = {
    "by_hand_online": Ladder(
        ("m_after", "l_after", "output"),
        by_hand=True,
        advice="Go through it again, one key at a time: the new maximum, the factor for what was summed so far, then "
        "the new term. Divide once, at the end, and only then round to 3 decimals.",
    ),
    "online_softmax": Ladder(
        ("online_max_sum",),
        ("m", "l"),
        online_softmax,
        cases=STREAMS,
        small=SMALL_STREAMS,
    ),
    "merge_partials": Ladder(
        ("merge",),
        PARTIAL,
        merge_partials,
        tensors=True,
        cases=PARTS,
        small=SMALL_PARTS,
        arg_names=("m_a", "l_a", "o_a", "m_b", "l_b", "o_b"),
    ),
    "tiled_attention": Ladder(
        ("tiled_attention",),
        ("o", "lse"),
        tiled_attention,
        tensors=True,
        cases=TILES,
        forbidden=WHOLE_ATTENTION,
        small=SMALL_TILES,
    ),
    "bytes_moved": Ladder(
        ("flash_bytes", "naive_bytes"), ("bytes",), bytes_moved, quantities=counted, small=(Small((whole(),) * 4),)
    ),
    "find_the_bug": Ladder(
        ("broken_tiled_attention",),
        ("o", "lse"),
        find_the_bug,
        tensors=True,
        cases=BLOCKS,
        forbidden=WHOLE_ATTENTION,
        small=(
            Small(("… n d", "… m d", "… m e", whole(), whole()), measures=(None, writes), fits=within),
            IN_BLOCKS,
        ),
    ),
    "flash_backward": Ladder(
        ("flash_backward",), ("dq", "dk", "dv"), flash_backward, tensors=True, forbidden=AUTOGRAD, small=SMALL_BACKWARD
    ),
    "block_backward": Ladder(
        ("block_backward",),
        GRADIENTS,
        block_backward,
        tensors=True,
        cases=QUERY_BLOCKS,
        forbidden=AUTOGRAD,
        small=SMALL_BLOCK,
    ),
    "row_in_blocks": Ladder(
        ("one_pass",),
        ("o", "lse"),
        row_in_blocks,
        tensors=True,
        cases=ROWS,
        small=(Small(("r n", "n", FROM_RUNG), names=("scores", "values", "block"), code="launch_rows({f}, {args})"),),
        arg_names=("scores", "values", "block"),
    ),
    "triton_inner_loop": Ladder(
        ("attend_to_keys",),
        ("o", "lse"),
        triton_inner_loop,
        tensors=True,
        cases=KERNELS,
        small=(
            Small(
                ("h n d", "h m d", "h m d", FROM_RUNG, FROM_RUNG, FROM_RUNG),
                fixed_sizes=("d",),
                code="launch({f}, {args})",
            ),
        ),
        arg_names=("q", "k", "v", "causal", "block_q", "block_k"),
    ),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
