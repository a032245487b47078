"""Draw small inputs for an exercise. Each argument's axes have names, so that sizes that must agree do agree.

A failed check searches them for the smallest input on which an answer is wrong (`checks.examples.smallest`). Except in
size they resemble a rung of the ladder: they have as many axes and the same dtype, and −∞ or large numbers only where
the rung has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Choose = Callable[[int, int], int]  # choose(least, most): a whole number from least to most, preferably small
MOST = 4  # largest size of an axis
MAX_LEADING_SIZE = 2  # largest size of an axis in front of the named ones
ORDINARY = 10  # larger numbers are drawn only where the rung has some
EXACT = 1e4  # float32 still tells this number from itself plus 0.5
FEW = 6  # most numbers of an array that are drawn one by one; more would make the search too slow
PATTERNS = 7
SIGNED = (0, 1, -1, 2, -2)
LEADING = "…"


@dataclass(frozen=True)
class Small:
    """How to draw small inputs like some rungs of a ladder.

    Attributes:
        args: for each argument in order, the names of its axes, such as "n d_k". "…" stands for leading axes that all
            such arguments share, "h*d" for an axis of that product, "1" for size 1. "=h*d" is that number itself.
            "mask B h n m" is a mask that broadcasts over these axes as the rung's does. A function receives the `Draft`
            and returns the argument; FROM_RUNG takes the rung's. Arguments after these stay as in the rung.
        measures: the measures of the rungs that this is for, None for no measure. None in place of the tuple means all
            rungs that no other `Small` is for.
        fits: tells whether drawn arguments are valid inputs of the exercise.
        names: names of the arguments in the code shown, where they differ from the function's own.
        code: the code that runs with the arguments, by default one call, with {f} for the answer's name, {args} for
            the arguments and {mask} for those that are masks; or a function that receives the name and the arguments
            and returns all of the code.
        tensors: whether the measure turns the arrays into tensors.
        fixed_sizes: axes that keep the rung's size.
    """

    args: tuple[Any, ...]
    measures: tuple[Callable | None, ...] | None = None
    fits: Callable[..., bool] | None = None
    names: tuple[str, ...] = ()
    code: str | Callable[..., str] = ""
    tensors: bool = False
    fixed_sizes: tuple[str, ...] = ()


@dataclass
class Draft:
    """An input while it is being drawn.

    Attributes:
        rung: the arguments of the rung that it resembles.
        cut: whether numbers are cut out of the rung's arrays.
        sizes: the size of each axis, by name.
        starts: where the cut begins along each axis, by name.
        args: the arguments drawn so far.
    """

    choose: Choose
    rung: tuple
    cut: bool
    sizes: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    args: list = field(default_factory=list)

    def size(self, axes: str) -> int:
        """Return the size of an axis, of a product of several, or of a number itself."""
        return math.prod(int(name) if name.isdigit() else self.sizes[name] for name in axes.split("*"))

    def whole(self, least: int, most: int) -> int:
        """Draw a whole number, preferably a small one."""
        return self.choose(least, max(least, most))

    def numbers(self, shape: Sequence[int], like: np.ndarray) -> np.ndarray:
        """Draw an array of whole numbers and halves, with extreme values if the array `like` has some."""
        return draw_numbers(self.choose, tuple(shape), like)


@dataclass(frozen=True)
class Drawn:
    """An argument that a function draws; `axes` names its axes in the rung, so that their sizes are known."""

    axes: str
    draw: Callable[[Draft], Any]

    def __call__(self, draft: Draft) -> Any:
        return self.draw(draft)


def FROM_RUNG(draft: Draft) -> Any:
    """Return the argument of the rung itself."""
    return draft.rung[len(draft.args)]


def BLANK(draft: Draft) -> Any:
    """Return zeros in place of the rung's numbers, for an argument whose size alone matters."""
    return _blank(draft.rung[len(draft.args)])


def _blank(own: Any) -> Any:
    if isinstance(own, np.ndarray):
        return np.zeros_like(own)
    if isinstance(own, tuple):
        return tuple(map(_blank, own))
    return [0.0] * len(own)


def whole(least: int = 1) -> Callable[[Draft], int | None]:
    """Return a function that draws a whole number from `least` to the rung's, or None where the rung has None."""

    def draw(draft: Draft) -> int | None:
        own = draft.rung[len(draft.args)]
        return None if own is None else draft.whole(least, int(own))

    return draw


def one_of(*values: Any) -> Callable[[Draft], Any]:
    """Return a function that draws one of these values or the rung's, preferably the first."""

    def pick(draft: Draft) -> Any:
        choices = (*values, draft.rung[len(draft.args)])
        return choices[draft.choose(0, len(choices) - 1)]

    return pick


def up_to(axes: str, most: str) -> Drawn:
    """Return an argument of whole numbers with these axes, each from 0 to the size of the axis `most`."""

    def draw(draft: Draft) -> np.ndarray:
        shape = _shape(axes, draft)
        largest = draft.size(most)
        entries = [draft.choose(0, largest) for _ in range(math.prod(shape))]
        like = np.asarray(draft.rung[len(draft.args)])
        return np.array(entries, dtype=like.dtype).reshape(shape)

    return Drawn(axes, draw)


def shares(axes: str) -> Drawn:
    """Return an argument of multiples of 1/4 that sum to 1 along the last axis."""

    def draw(draft: Draft) -> np.ndarray | list:
        like = np.asarray(draft.rung[len(draft.args)])
        *rows, m = _shape(axes, draft, like)
        drawn = np.zeros((math.prod(rows), m))
        for row in drawn:
            for _ in range(4):
                row[draft.choose(0, m - 1)] += 0.25
        drawn = drawn.reshape(*rows, m).astype(like.dtype)
        return drawn.tolist() if isinstance(draft.rung[len(draft.args)], list) else drawn

    return Drawn(axes, draw)


def draw_args(small: Small, rung: tuple, choose: Choose, most: int = MOST, cut: bool = False) -> tuple:
    """Draw arguments like those of a rung.

    Args:
        most: the longest axis to draw; no axis is longer than the rung's.
        cut: whether to cut the numbers out of the rung's own arrays.
    """
    draft = Draft(choose, rung, cut)
    bounds = _bounds(small, rung)
    for name, own in bounds.items():
        if name in small.fixed_sizes:
            draft.sizes[name] = own
        else:
            cap = min(most, MAX_LEADING_SIZE) if name.startswith(LEADING) else most
            draft.sizes[name] = choose(min(1, own), min(own, cap))
        if cut:
            draft.starts[name] = choose(0, own - draft.sizes[name])
    for spec in small.args[: len(rung)]:
        draft.args.append(_argument(spec, draft))
    return (*draft.args, *rung[len(small.args) :])


def _argument(spec: Any, draft: Draft) -> Any:
    own = draft.rung[len(draft.args)]
    if not isinstance(spec, str):
        return spec(draft)
    if own is None:
        return None
    if spec.startswith("="):
        return draft.size(spec[1:])
    is_list = isinstance(own, list)
    like = np.asarray(own)
    if spec.startswith("mask "):
        spread = spec.split()[1:][-like.ndim :] if like.ndim else []
        axes = ["1" if have == 1 else name for name, have in zip(spread, like.shape, strict=True)]
    else:
        axes = _axes(spec, like.ndim)
    shape = tuple(draft.size(name) for name in axes)
    if draft.cut and all(name in draft.starts or name.isdigit() for name in axes):
        where = tuple(
            slice(0, 1) if name.isdigit() else slice(draft.starts[name], draft.starts[name] + size)
            for name, size in zip(axes, shape, strict=True)
        )
        drawn = like[where].copy()
        if drawn.dtype.kind == "b":
            _open_a_key(drawn, like)
    else:
        drawn = draft.numbers(shape, like)
    return drawn.tolist() if is_list else drawn


def draw_numbers(choose: Choose, shape: tuple[int, ...], like: np.ndarray) -> np.ndarray:
    """Draw an array of this shape, with numbers of the kind that `like` holds."""
    count = math.prod(shape)
    if like.dtype.kind == "b":
        return _mask(choose, shape, like)
    finite = np.abs(like[np.isfinite(like)].astype(float)) if like.size else np.zeros(0)
    big = float(finite.max()) if finite.size else 0.0
    extremes = [-math.inf] if like.size and np.isneginf(like.astype(float)).any() else []
    if like.dtype.kind in "iu":
        most = int(big)
        return np.array([choose(0, most) for _ in range(count)], dtype=like.dtype).reshape(shape)
    units = [1.0, 0.5]
    bases = [0.0]
    if big > ORDINARY:
        units.append(float(f"{big:.0e}"))
    unit = units[choose(0, len(units) - 1)]
    if ORDINARY < big <= EXACT and unit <= 1:
        bases += [units[-1], -units[-1]]
    base = bases[choose(0, len(bases) - 1)]
    largest = float(np.finfo(like.dtype).max) if like.dtype.kind == "f" else math.inf
    values = [x for k in SIGNED if abs(x := base + unit * k) <= largest] + extremes
    entries = [values[i] for i in _choices(choose, count, len(values))]
    return np.array(entries).reshape(shape).astype(like.dtype if like.dtype.kind == "f" else float)


def _choices(choose: Choose, count: int, kinds: int) -> list[int]:
    """Draw `count` whole numbers below `kinds`: one by one where they are few, else as one of a few patterns."""
    if count <= FEW:
        return [choose(0, kinds - 1) for _ in range(count)]
    pattern = choose(0, PATTERNS)
    if pattern == 0:
        return [0] * count
    return np.random.default_rng([pattern, count]).integers(0, kinds, count).tolist()


def _mask(choose: Choose, shape: tuple[int, ...], like: np.ndarray) -> np.ndarray:
    """Draw a mask, preferably all True, with at least one True per row unless `like` has a row without."""
    drawn = np.array(_choices(choose, math.prod(shape), 2), dtype=int).reshape(shape) == 0
    _open_a_key(drawn, like)
    return drawn


def _open_a_key(mask: np.ndarray, like: np.ndarray) -> None:
    """Let each row of `mask` see a key, if each row of `like` does."""
    if like.ndim and like.any(axis=-1).all() and mask.shape[-1]:
        mask[..., 0] |= ~mask.any(axis=-1)


def _axes(spec: str, ndim: int) -> list[str]:
    """Return the names of the axes; leading ones are numbered from the last."""
    names = spec.split()
    if names[:1] != [LEADING]:
        return names
    named = names[1:]
    lead = ndim - len(named)
    return [f"{LEADING}{lead - i}" for i in range(lead)] + named


def _shape(axes: str, draft: Draft, like: np.ndarray | None = None) -> tuple[int, ...]:
    ndim = like.ndim if like is not None else len(axes.split())
    return tuple(draft.size(name) for name in _axes(axes, ndim))


def _bounds(small: Small, rung: tuple) -> Mapping[str, int]:
    """Return the size of each axis in the rung; for a name that occurs only in a product, the most that fits."""
    bounds: dict[str, int] = {}
    parts: dict[str, int] = {}
    for each, own in zip(small.args, rung, strict=False):
        spec = each.axes if isinstance(each, Drawn) else each
        if own is None or not isinstance(spec, str) or spec.startswith("mask "):
            continue
        if spec.startswith("="):
            axes, shape = [spec[1:]], (int(own),)
        else:
            shape = np.asarray(own).shape
            axes = _axes(spec, len(shape))
        for name, size in zip(axes, shape, strict=True):
            if "*" in name:
                parts |= {part: max(1, min(size, MOST)) for part in name.split("*") if not part.isdigit()}
            elif not name.isdigit():
                bounds[name] = min(bounds.get(name, size), size)
    return parts | bounds
