"""How small inputs are drawn for an exercise: the axes of its arguments by name, so that what must agree agrees.

A failed check looks among these for the smallest input on which an answer is wrong (`checks.examples.smallest`). They
are like one of the ladder's own rungs in all but size: as many axes, the same dtype, −∞ or large numbers only where it
has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Choose = Callable[[int, int], int]  # choose(least, most): a whole number from least to most, rather a small one
MOST = 4  # of an axis
MOST_LEADING = 2  # of an axis in front of the named ones
ORDINARY = 10  # numbers up to this size come by themselves
EXACT = 1e4  # float32 still tells this apart from a half more
FEW = 6  # numbers of an array that are drawn one by one; more would take the search too long
PATTERNS = 7
SIGNED = (0, 1, -1, 2, -2)
LEADING = "…"


@dataclass(frozen=True)
class Small:
    """The small inputs of some of a ladder's rungs.

    args: for each argument in order its axes by name, as "n d_k". "…" stands for axes in front that all such arguments
    share, "h*d" for a product, "1" for itself. "=h*d" is that number itself; "mask B h n m" is a mask that may spread
    over these, as the rung's does. A function is given the `Draft` and returns the argument; KEPT leaves the rung's.
    Arguments behind these stay as they are. measures: what the rungs are measured by, None for nothing; a spec for all
    rungs that no other is for has None in place of the tuple.
    fits: whether arguments that were drawn are inputs of the exercise. names: what the arguments are called in the
    code that is shown, where they are not the function's own. code: what is run with them, by default one call; {f}
    stands for the answer's name. Or a function that is given this name and the arguments and writes all of the code.
    tensors: whether the measure makes tensors of the arrays. kept_sizes: axes that keep the rung's size.
    """

    args: tuple[Any, ...]
    measures: tuple[Callable | None, ...] | None = None
    fits: Callable[..., bool] | None = None
    names: tuple[str, ...] = ()
    code: str | Callable[..., str] = ""
    tensors: bool = False
    kept_sizes: tuple[str, ...] = ()


@dataclass
class Draft:
    """An input that is being drawn. rung: the arguments that it is to be like. sizes: of the axes, by name."""

    choose: Choose
    rung: tuple
    cut: bool
    sizes: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    args: list = field(default_factory=list)

    def size(self, axes: str) -> int:
        """The size of an axis, of a product of several, or a number itself."""
        return math.prod(int(name) if name.isdigit() else self.sizes[name] for name in axes.split("*"))

    def whole(self, least: int, most: int) -> int:
        """A whole number, rather a small one."""
        return self.choose(least, max(least, most))

    def numbers(self, shape: Sequence[int], like: np.ndarray) -> np.ndarray:
        """Numbers of this shape such as another array holds: whole ones or halves, and extremes where it has any."""
        return draw_numbers(self.choose, tuple(shape), like)


@dataclass(frozen=True)
class Drawn:
    """An argument that a function draws. axes: those that it has in the rung, so that their sizes are known."""

    axes: str
    draw: Callable[[Draft], Any]

    def __call__(self, draft: Draft) -> Any:
        return self.draw(draft)


def KEPT(draft: Draft) -> Any:
    """The argument as the rung has it."""
    return draft.rung[len(draft.args)]


def BLANK(draft: Draft) -> Any:
    """Zeros in place of the rung's numbers, where only their sizes matter."""
    return _blank(draft.rung[len(draft.args)])


def _blank(own: Any) -> Any:
    if isinstance(own, np.ndarray):
        return np.zeros_like(own)
    if isinstance(own, tuple):
        return tuple(map(_blank, own))
    return [0.0] * len(own)


def whole(least: int = 1) -> Callable[[Draft], int | None]:
    """A whole number from `least` to that of the rung; None where the rung has that."""

    def draw(draft: Draft) -> int | None:
        own = draft.rung[len(draft.args)]
        return None if own is None else draft.whole(least, int(own))

    return draw


def one_of(*values: Any) -> Callable[[Draft], Any]:
    """One of these, or what the rung has; rather the first."""

    def pick(draft: Draft) -> Any:
        known = (*values, draft.rung[len(draft.args)])
        return known[draft.choose(0, len(known) - 1)]

    return pick


def up_to(axes: str, most: str) -> Drawn:
    """Whole numbers with these axes, each from 0 to the size of another axis."""

    def draw(draft: Draft) -> np.ndarray:
        shape, most_of_all = _shape(axes, draft), draft.size(most)
        entries = [draft.choose(0, most_of_all) for _ in range(math.prod(shape))]
        return np.array(entries, dtype=np.int64).reshape(shape)

    return Drawn(axes, draw)


def shares(axes: str) -> Drawn:
    """Numbers from 0 to 1 that sum to 1 along the last axis, in quarters."""

    def draw(draft: Draft) -> np.ndarray:
        like = np.asarray(draft.rung[len(draft.args)])
        *rows, m = _shape(axes, draft, like)
        drawn = np.zeros((math.prod(rows), m))
        for row in drawn:
            for _ in range(4):
                row[draft.choose(0, m - 1)] += 0.25
        return drawn.reshape(*rows, m).astype(like.dtype)

    return Drawn(axes, draw)


def draw_args(small: Small, rung: tuple, choose: Choose, most: int = MOST, cut: bool = False) -> tuple:
    """Arguments like those of a rung, with axes as long as its own or `most`; cut: out of its own numbers."""
    draft = Draft(choose, rung, cut)
    bounds = _bounds(small, rung)
    for name, own in bounds.items():
        if name in small.kept_sizes:
            draft.sizes[name] = own
        else:
            cap = min(most, MOST_LEADING) if name.startswith(LEADING) else most
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
    """Numbers of this shape such as `like` holds."""
    count = math.prod(shape)
    if like.dtype.kind == "b":
        return _mask(choose, shape, like)
    finite = np.abs(like[np.isfinite(like)].astype(float)) if like.size else np.zeros(0)
    big = float(finite.max()) if finite.size else 0.0
    extremes = [-math.inf] if like.size and np.isneginf(like.astype(float)).any() else []
    if like.dtype.kind in "iu":
        most = int(big)
        return np.array([choose(0, most) for _ in range(count)], dtype=like.dtype).reshape(shape)
    units, bases = [1.0, 0.5], [0.0]
    if big > ORDINARY:
        units.append(float(f"{big:.0e}"))
    unit = units[choose(0, len(units) - 1)]
    if ORDINARY < big <= EXACT and unit <= 1:
        bases += [units[-1], -units[-1]]
    base = bases[choose(0, len(bases) - 1)]
    values = [base + unit * k for k in SIGNED] + extremes
    entries = [values[i] for i in _choices(choose, count, len(values))]
    return np.array(entries).reshape(shape).astype(like.dtype if like.dtype.kind == "f" else float)


def _choices(choose: Choose, count: int, kinds: int) -> list[int]:
    """So many whole numbers below `kinds`: one by one where they are few, else one of some patterns."""
    if count <= FEW:
        return [choose(0, kinds - 1) for _ in range(count)]
    pattern = choose(0, PATTERNS)
    if pattern == 0:
        return [0] * count
    return np.random.default_rng([pattern, count]).integers(0, kinds, count).tolist()


def _mask(choose: Choose, shape: tuple[int, ...], like: np.ndarray) -> np.ndarray:
    """Booleans, True at first; in each row one at least, unless `like` has a row without."""
    drawn = np.array(_choices(choose, math.prod(shape), 2), dtype=int).reshape(shape) == 0
    _open_a_key(drawn, like)
    return drawn


def _open_a_key(mask: np.ndarray, like: np.ndarray) -> None:
    """Let each row of a mask see a key, where each row of another does."""
    if like.ndim and like.any(axis=-1).all() and mask.shape[-1]:
        mask[..., 0] |= ~mask.any(axis=-1)


def _axes(spec: str, ndim: int) -> list[str]:
    """The names of the axes, those in front numbered from the end."""
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
    """The size that each axis has in the rung; of a name that is only part of a product, as much as fits."""
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
