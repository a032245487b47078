"""How wrong numbers relate to the right ones, in general: twice as large, transposed, right for squares only.

A relation is a fact about all that went wrong, true of every such answer. So it may be said where no known mistake is
recognised, and it never names a mistake that was not made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from .array_relations import LOOKS, Pair, Relation, Step, argument, rounding
from .evidence import NOTHING, UNREADABLE, Ladder, Rung

MOST_NAMED = 3  # rungs that are listed by name
SLIPS_OF_THE_PEN = ("NameError", "AttributeError", "ImportError", "ModuleNotFoundError", "NotImplementedError")
LARGE = 80.0  # exp of it is near the end of float32


def relate(
    ladder: Ladder,
    rungs: Sequence[Rung],
    given: Sequence[Mapping],
    right: Sequence[Mapping],
    wrong: Sequence[Container[str]],
    parameters: Sequence[str] = (),
) -> Relation | None:
    """What can be said of all rungs that do not hold, the most telling first; None where there is nothing.

    given, right: an outcome each rung, as `gather` returns them. wrong: the parts of each rung that do not hold.
    parameters: what the arguments are called.
    """
    held = [not parts for parts in wrong]
    failing = [i for i, ok in enumerate(held) if not ok]
    rungs = [_named(rung, parameters) for rung in rungs]
    if found := _unreadable(given, failing):
        return found
    parts = _wrong_pairs(rungs, given, right, wrong)
    alone = len(failing) == 1 and _only_some_rungs(rungs, held)
    with np.errstate(all="ignore"):
        for part in sorted(parts, key=lambda name: (name != "weights", _place(ladder, name))):
            pairs = parts[part]
            for look in (rounding,) if alone else LOOKS:
                if found := look(pairs):
                    return _of_part(_said_where(found, held), part, ladder)
    if any(str(given[i].get("error", "")).startswith(SLIPS_OF_THE_PEN) for i in failing):
        return None
    return (
        _of_errors(parts)
        or _by_condition(rungs, held)
        or _only_some_parts(ladder, rungs, parts, given, right, failing)
        or _only_some_rungs(rungs, held)
        or _from_a_rung_on(rungs, held)
    )


def _wrong_pairs(rungs, given, right, wrong) -> dict[str, list[Pair]]:
    """The pairs of arrays that differ, by part; measured rungs and what has no finite numbers are left out."""
    found: dict[str, list[Pair]] = {}
    for i in range(len(rungs)):
        if (
            "values" not in right[i]
            or not isinstance(given[i].get("values"), Mapping)
            or "measure" in right[i]["values"]
        ):
            continue
        mine = {name: _array(value) for name, value in given[i]["values"].items()}
        wanted = {name: _array(value) for name, value in right[i]["values"].items()}
        for part, array in wanted.items():
            if part not in wrong[i] or mine.get(part) is None:
                continue
            if np.isfinite(array).all() and np.isfinite(mine[part]).any():
                others = {name: value for name, value in wanted.items() if name != part}
                found.setdefault(_kind_of(part), []).append(Pair(rungs[i], mine[part], array, others))
    return found


def _kind_of(part: str) -> str:
    """A part without the numbers in its name: what it is of every step."""
    return re.sub(r"\[?\b\d+\b\]?", "…", part)


def _array(value: Mapping) -> np.ndarray | None:
    try:
        return np.array([float(x) for x in value["numbers"]]).reshape(value["shape"])
    except (TypeError, ValueError, KeyError):
        return None


def _place(ladder: Ladder, part: str) -> int:
    return ladder.returns.index(part) if part in ladder.returns else len(ladder.returns)


def _said_where(found: Relation, held: Sequence[bool]) -> Relation:
    """A relation of what is wrong, where other rungs are right."""
    message = found.message
    return Relation(found.name, f"Where it is wrong, {message[0].lower()}{message[1:]}" if any(held) else message)


def _of_part(found: Relation, part: str, ladder: Ladder) -> Relation:
    """A relation of one part of several says which."""
    if len(ladder.returns) < 2:
        return found
    return Relation(f"{part}: {found.name}", f"{part}: {found.message[0].lower()}{found.message[1:]}")


def _named(rung: Rung, parameters: Sequence[str]) -> Step:
    called = [parameters[i] if i < len(parameters) else f"argument {i + 1}" for i in range(len(rung.args))]
    return Step(rung.name, rung.args, tuple(called), rung.measure is not None)


# Which rungs are wrong ----------------------------------------------------------------------------------------------


def _by_condition(rungs: Sequence[Step], held: Sequence[bool]) -> Relation | None:
    """A property of the inputs that tells the rungs that hold from those that do not."""
    valued = {i for i, rung in enumerate(rungs) if not rung.measured}
    failing = {i for i in valued if not held[i]}
    if len(failing) < 2 or failing == valued:
        return None
    kinds = [(where, else_, {i for i in valued if test(rungs[i])}) for where, else_, test in CONDITIONS]
    for where, elsewhere, found in kinds:
        if found == failing:
            return Relation(f"wrong {where}", f"Right {elsewhere}, and wrong {where}.")
        if found and failing == valued - found:
            return Relation(f"right only {where}", f"Right only {where}.")
    for where, _, found in sorted(kinds, key=lambda kind: len(kind[2])):
        if failing < found and len(found) <= len(valued) / 2 and len(failing) * 2 >= len(found):
            return Relation(f"wrong only {where}", f"Wrong only {where}, in {len(failing)} of {len(found)} such steps.")
    return None


def _unreadable(given: Sequence[Mapping], failing: Sequence[int]) -> Relation | None:
    """A result of another kind than asked for, wherever it is wrong."""
    said = {str(given[i].get("error", "")) for i in failing}
    if not said or not all(each.startswith(UNREADABLE) for each in said):
        return None
    text = min(said).removeprefix(f"{UNREADABLE}: ")
    if text == NOTHING:
        return Relation("nothing returned", "")
    own = re.match(r"(a|the) (mask|weights|tensor|scores)[^:;,]*", text)
    return Relation(own[0][:80] if own else "another kind of result", "")


def _arrays(rung: Step) -> Iterator[np.ndarray]:
    for i in range(len(rung.args)):
        array = argument(rung, i)
        if array is not None:
            yield array


def _axes(rung: Step) -> int:
    return max((array.ndim for array in _arrays(rung)), default=0)


def _largest(rung: Step) -> float:
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in _arrays(rung)), default=0.0)


def _square(rung: Step) -> bool:
    shapes = [array.shape for array in _arrays(rung) if array.ndim >= 2]
    return all(a[-2] == b[-2] for a, b in pairwise(shapes)) and len(shapes) > 1


def _equal_sizes(rung: Step) -> bool:
    sizes = {size for array in _arrays(rung) if array.ndim >= 2 for size in array.shape[-2:]}
    return len(sizes) == 1


def _type_of(rung: Step) -> str:
    kinds = {str(getattr(arg, "dtype", "")).removeprefix("torch.") for arg in rung.args} - {"", "bool"}
    return kinds.pop() if len(kinds) == 1 else ""


CONDITIONS: tuple[tuple[str, str, Callable[[Step], bool]], ...] = (
    ("with a batch or heads", "without a batch", lambda r: _axes(r) > 2),
    ("with two leading axes or more", "with one leading axis or none", lambda r: _axes(r) > 3),
    ("with axes of more than one kind", "with one axis", lambda r: _axes(r) > 1),
    ("where there are as many queries as keys", "where their numbers differ", _square),
    ("where all sizes are equal", "where sizes differ", _equal_sizes),
    ("for large numbers", "for small ones", lambda r: _largest(r) > LARGE),
    ("for numbers above 20", "for smaller ones", lambda r: _largest(r) > 20),
    ("for negative numbers", "where none is negative", lambda r: any((a < 0).any() for a in _arrays(r))),
    ("where something is None", "where nothing is", lambda r: any(arg is None for arg in r.args)),
    ("where an axis has length 1", "elsewhere", lambda r: any(1 in array.shape for array in _arrays(r))),
    ("where there is nothing", "where there is something", lambda r: any(0 in array.shape for array in _arrays(r))),
    ("in float32", "in other types", lambda r: _type_of(r) == "float32"),
    ("in half precision", "in other types", lambda r: _type_of(r) in ("float16", "bfloat16")),
    ("for whole numbers", "for others", lambda r: _type_of(r).startswith(("int", "uint"))),
)


def _only_some_parts(ladder, rungs, parts, given, right, failing) -> Relation | None:
    """Of several parts some are right on every rung."""
    if len(ladder.returns) < 2 or any("error" in given[i] for i in failing) or any(rungs[i].measured for i in failing):
        return None
    wrong = [name for name in ladder.returns if name in parts]
    fine = [name for name in ladder.returns if name not in parts]
    if not wrong or not fine:
        return None
    names, others = " and ".join(wrong), " and ".join(fine)
    return Relation(f"{names} wrong, {others} right", f"Right everywhere: {others}. The slip is in {names}.")


def _only_some_rungs(rungs: Sequence[Step], held: Sequence[bool]) -> Relation | None:
    """A few rungs fail, of one kind, and the others say that all else is right."""
    failing = [rung.name for rung, ok in zip(rungs, held, strict=True) if not ok]
    if len(failing) > MOST_NAMED or len(failing) * 2 > len(rungs) or len(rungs) < 4:
        return None
    names = " and ".join(f"“{name}”" for name in failing)
    return Relation(f"wrong only on {names}", "All other steps hold.")


def _from_a_rung_on(rungs: Sequence[Step], held: Sequence[bool]) -> Relation | None:
    """All is right up to a rung, and nothing after it."""
    first = list(held).index(False)
    if first < 2 or any(held[first:]):
        return None
    name = rungs[first].name
    return Relation(f"wrong from “{name}” on", f"Right up to “{rungs[first - 1].name}”; wrong from “{name}” on.")


def _of_errors(parts: Mapping[str, list[Pair]]) -> Relation | None:
    """Errors that are to be raised, counted as 1 or 0: one is missing, or raised where it should not be."""
    for part, pairs in parts.items():
        if kind := re.match(r"\w+Error", part):
            missing = [pair for pair in pairs if pair.right.sum() > pair.given.sum()]
            if len(missing) == len(pairs):
                return Relation(f"no {kind[0]} where one is due", f"{kind[0]} is to be raised, and is not.")
            if not missing:
                return Relation(f"{kind[0]} where none is due", f"{kind[0]} is raised where it should not be.")
    return None
