"""Find how wrong results relate to the right ones: twice as large, transposed, right only for square inputs.

A relation is a fact about all failing rungs. It is stated if no known mistake is recognised, and because it is true of
the answer it never names a mistake that was not made.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from course_utils.checks.diagnosis.array_relations import FLOAT32, LOOKS, rounding, scores_times
from course_utils.checks.diagnosis.number_relations import along_a_diagonal, find_scatter, of_a_share, of_terms
from course_utils.checks.diagnosis.relation_types import JudgedRungs, NamedRung, Pair, Relation, argument
from course_utils.checks.diagnosis.wrong_places import ALWAYS_THE_SAME
from course_utils.checks.kernel.evidence import BAD_RESULT
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.result_numbers import NOTHING
from course_utils.views.drawing import listed

MAX_NAMED_RUNGS = 3  # most rungs that are listed by name
MAX_PARTS = 4  # most parts of a result that are examined separately
SLIPS_OF_THE_PEN = ("NameError", "AttributeError", "ImportError", "ModuleNotFoundError", "NotImplementedError")
NEEDS_FLOAT64 = "float32 cannot tell apart"  # occurs in the names of rungs
MAX_ERROR_LENGTH = 90  # characters of an error in the name of a relation
LARGE = 80.0  # exp of it is near the largest float32


def relate(
    ladder: Ladder,
    judged: JudgedRungs,
    parameters: Sequence[str] = (),
    scaled: Callable[[float], Callable] | None = None,
    *,
    hidden: bool = False,
    all_rungs: bool = True,
) -> Relation | None:
    """Return the most telling relation that holds on all failing rungs, or None.

    Args:
        judged: the rungs, at least one of them wrong.
        parameters: the names of the arguments.
        scaled: see `Exercise`.
        hidden: whether the inputs and the texts of errors must not be revealed.
        all_rungs: whether these are all rungs, so that a relation may say about others that they hold.
    """
    outcomes = judged.outcomes
    held = judged.held
    failing = judged.failing
    pairs = zip(judged.rungs, judged.right, strict=True)
    named = [_name_arguments(ladder, rung, right, parameters) for rung, right in pairs]

    # Results that are no numbers, and errors that come before any number, leave nothing to compare.
    error = _find_common_error(named, outcomes, failing, hidden)
    if found := _unreadable(outcomes, failing):
        return found
    if any(outcomes[i].error.startswith(SLIPS_OF_THE_PEN) for i in failing):
        return error
    if found := _changed_arguments(named, outcomes, failing):
        return found

    # The numbers: how the wrong ones come from the right ones.
    parts, counts = _wrong_pairs(ladder, named, judged)
    with np.errstate(all="ignore"):
        found = _in_float32(named, parts, failing) or _relate_numbers(ladder, named, held, parts, counts, scaled)
    if found:
        return found

    # Else which parts or inputs are wrong, and if that has no pattern either, which rungs.
    found = _of_errors(parts) or _both(
        _only_some_parts(ladder, named, judged),
        _by_condition(ladder, named, held) if all_rungs else None,
    )
    if found or error or not all_rungs:
        return found or error or _not_finite(outcomes, failing)
    return (
        _only_some_rungs(named, held)
        or _from_a_rung_on(named, held)
        or _not_finite(outcomes, failing)
        or _right_only_on(named, held)
    )


def _relate_numbers(
    ladder: Ladder,
    rungs: Sequence[NamedRung],
    held: Sequence[bool],
    parts: Mapping[str, list[Pair]],
    counts: Counter[str],
    scaled: Callable[[float], Callable] | None,
) -> Relation | None:
    """Return the first relation between the wrong arrays of a part and the right ones, in the order of `LOOKS`.

    Args:
        parts: the pairs of arrays that differ, by part.
        counts: how often each part is wrong, also without numbers to compare.
    """
    # A single wrong rung among right ones says little: there only rounding is plausible.
    failing = held.count(False)
    is_alone = failing == 1 and _only_some_rungs(rungs, held)
    looks = (rounding,) if is_alone else (*LOOKS, of_terms, of_a_share, along_a_diagonal, find_scatter)
    # Weights come first, because a mistake in them makes the output wrong, too.
    for part in sorted(parts, key=lambda name: (name != "weights", _place(ladder, name)))[:MAX_PARTS]:
        pairs = parts[part]
        is_measured = part not in ladder.returns and len(ladder.names) < 2
        if 2 * len(pairs) < (failing if is_measured else counts[part]):
            continue  # most failing rungs have no numbers to compare
        for look in looks:
            found = look(pairs)
            if found and not (found.name == ALWAYS_THE_SAME and any(held)):
                unit = "steps" if len(ladder.names) < 2 else "results"  # a function may return several on a step
                relation = _with_steps(found, held, found.count or len(pairs), counts[part], unit)
                return _about_part(relation, part, ladder)
    # Attention with other scores is found by fitting a factor, which takes long.
    first = ladder.returns[0] if ladder.returns else ""
    if scaled and (found := _other_scale(parts.get(first, ()), scaled)):
        return _with_steps(found, held, len(parts[first]), counts[first])
    return None


def _both(one: Relation | None, other: Relation | None) -> Relation | None:
    if one and other:
        return Relation(f"{one.name}, {other.name}", f"{one.message} {other.message}")
    return one or other


def _wrong_pairs(
    ladder: Ladder, rungs: Sequence[NamedRung], judged: JudgedRungs
) -> tuple[dict[str, list[Pair]], Counter[str]]:
    """Return the pairs of arrays that differ, by part, or by function if the answer has several functions.

    Measured rungs and arrays without finite numbers are left out; the counts say how often a part is wrong with these.
    """
    pairs: dict[str, list[Pair]] = {}
    counts: Counter[str] = Counter()
    for i, rung in enumerate(rungs):
        if "measure" in judged.right[i].values:
            continue
        expected = {part: array.as_array() for part, array in judged.right[i].values.items()}
        for part, array in expected.items():
            is_measured = len(ladder.returns) > 1 and part not in ladder.returns
            if part not in judged.wrong[i] or is_measured:
                continue
            kind = _kind_of(part) if len(ladder.names) < 2 else rung.of
            counts[kind] += 1
            actual = judged.outcomes[i].array(part)
            if actual is None or not np.isfinite(array).all() or not np.isfinite(actual).any():
                continue
            others = {
                name: each
                for name, each in expected.items()
                if name != part and name in ladder.returns and part in ladder.returns
            }
            pairs.setdefault(kind, []).append(Pair(rung, actual, array, others, "mask" in part))
    return pairs, counts


def _in_float32(rungs: Sequence[NamedRung], parts: Mapping[str, list[Pair]], failing: Sequence[int]) -> Relation | None:
    """Recognise results right to float32 precision, less what large inputs cost, if a rung needs more than that."""
    pairs = [pair for each in parts.values() for pair in each]
    if len(failing) * 2 > len(rungs) or not any(NEEDS_FLOAT64 in pair.rung.name for pair in pairs):
        return None
    for pair in pairs:
        near = 40 * FLOAT32 * min(max(1.0, _largest(pair.rung)), 1e9) ** 2
        if not pair.alike or not np.isfinite(pair.actual).all():
            return None
        if np.abs(pair.actual - pair.right).max(initial=0.0) > near * max(
            1.0, float(np.abs(pair.right).max(initial=0))
        ):
            return None
    message = "It is right only to the precision of float32: some number on the way is kept in float32."
    return Relation("computed in float32", message)


def _kind_of(part: str) -> str:
    """Return the name of a part with its numbers replaced by "…", the same for every step."""
    return re.sub(r"\[?\b\d+\b\]?", "…", part)


def _place(ladder: Ladder, part: str) -> int:
    return ladder.returns.index(part) if part in ladder.returns else len(ladder.returns)


def _with_steps(found: Relation, held: Sequence[bool], count: int, wrong: int, unit: str = "steps") -> Relation:
    """Add to a relation's message where it holds: not on rungs that hold, and on `count` of the wrong ones.

    Args:
        unit: what is counted, in words.
    """
    message = found.message
    if count == wrong and not any(held):
        return found
    where = "the steps where it is wrong"
    if count < wrong:
        where = f"{count} of the {wrong} {unit} {'where it is' if unit == 'steps' else 'that are'} wrong"
    return replace(found, message=f"On {where}, {message[0].lower()}{message[1:]}")


def _about_part(found: Relation, part: str, ladder: Ladder) -> Relation:
    """Add the name of the part or function to a relation about it, if the answer has several."""
    if not found.of_part or (len(ladder.returns) < 2 and len(ladder.names) < 2):
        return found
    message = f"{part}: {found.message[0].lower()}{found.message[1:]}"
    return replace(found, name=f"{part}: {found.name}", message=message)


def _name_arguments(ladder: Ladder, rung: Rung, right: Outcome, parameters: Sequence[str]) -> NamedRung:
    """Return a rung with the names of its arguments."""
    known = ladder.arg_names or parameters
    arg_names = [known[i] if i < len(known) else f"argument {i + 1}" for i in range(len(rung.args))]
    quantities = ladder.quantities(rung) if ladder.quantities else None
    measured = "measure" in right.values
    return NamedRung(
        rung.name, rung.args, tuple(arg_names), measured, rung.of or ladder.names[0], quantities, rung.measure
    )


# Which rungs are wrong ----------------------------------------------------------------------------------------------


def _by_condition(ladder: Ladder, rungs: Sequence[NamedRung], held: Sequence[bool]) -> Relation | None:
    """Find a property of the inputs that separates the failing rungs from those that hold."""
    # Only rungs that call the answer in the usual way are compared: another measure may call it with other arguments.
    usual = rungs[0].measure
    valued = {i for i, rung in enumerate(rungs) if not rung.measured and rung.measure == usual}
    failing = {i for i in valued if not held[i]}
    if len(failing) < 2 or failing == valued:
        return None
    # The properties that the exercise lists, which tell most, and general ones, with the rungs that have each.
    cases = [_Property(on, off, {i for i in valued if _holds(test, rungs[i])}) for on, off, test in ladder.cases]
    general = [_Property(on, off, {i for i in valued if test(rungs[i])}) for on, off, test in CONDITIONS]

    # A property of exactly the failing rungs, or of exactly those that hold.
    others_hold = all(ok or i in failing for i, ok in enumerate(held))
    for each in (*cases, *general):
        if each.rungs == failing:
            right = f", and right on those {each.off}" if others_hold else ""
            return Relation(f"wrong {each.on}", f"Wrong on all steps {each.on}{right}.")
        if each.rungs and failing == valued - each.rungs:
            return Relation(f"right only {each.on}", f"Right only on the steps {each.on}.")
    # Two properties at once, or one of two.
    for one, other in combinations(cases, 2):
        if one.rungs & other.rungs == failing:
            return Relation(f"wrong {one.on} and {other.on}", f"Wrong only {one.on} and at the same time {other.on}.")
        if one.rungs | other.rungs == failing:
            return Relation(
                f"wrong {one.on}, and {other.on}", f"Wrong {one.on}, and wrong {other.on}; right elsewhere."
            )
    # A property that all failing rungs have, if most rungs with it fail; the rarest tells most.
    for each in sorted((*cases, *general), key=lambda each: len(each.rungs)):
        count = len(each.rungs)
        is_rare = count <= len(valued) / 2 or (len(valued - each.rungs) > 1 and each in cases)
        if failing < each.rungs and is_rare and len(failing) * 2 >= count:
            return Relation(f"wrong only {each.on}", f"Wrong only {each.on}, in {len(failing)} of {count} such steps.")
    # A property whose rungs all fail, if it explains most failures; the most frequent explains most.
    for each in sorted(cases, key=lambda each: -len(each.rungs)):
        if each.rungs < failing and len(each.rungs) * 2 >= len(failing):
            return Relation(f"wrong {each.on}, and elsewhere", f"Wrong {each.on}, and not only there.")
    return None


@dataclass(frozen=True)
class _Property:
    """A property of inputs.

    Attributes:
        on: the property in words, such as "with three axes or more".
        off: its opposite in words.
        rungs: those that have it.
    """

    on: str
    off: str
    rungs: set[int]


def _holds(test: Callable[..., bool], rung: NamedRung) -> bool:
    """Return whether a rung passes the test of a case; False if it lacks arguments that the test needs."""
    try:
        return bool(test(*rung.args))
    except (TypeError, AttributeError, IndexError, ValueError):
        return False


def _unreadable(outcomes: Sequence[Outcome], failing: Sequence[int]) -> Relation | None:
    """Recognise results of a kind that the check cannot read, on at least half of the failing rungs."""
    errors = [outcomes[i].error for i in failing]
    unreadable = [error for error in errors if error.startswith(BAD_RESULT)]
    if not unreadable or unreadable[0] != errors[0] or len(unreadable) * 2 < len(errors):
        return None
    text = min(unreadable).removeprefix(f"{BAD_RESULT}: ")
    if text == NOTHING:
        return Relation("nothing returned", "")
    if dtype := re.match(r"\w+ is (\w+), and should be", text):
        return Relation(f"in {dtype[1]}", "")
    kind = re.match(r"(a|the) (mask|weights|tensor|scores)[^:;,]*", text)
    return Relation(kind[0][:80] if kind else "another kind of result", "")


def _arrays(rung: NamedRung) -> Iterator[np.ndarray]:
    for i in range(len(rung.args)):
        array = argument(rung, i)
        if array is not None:
            yield array


def _axes(rung: NamedRung) -> int:
    return max((array.ndim for array in _arrays(rung)), default=0)


def _largest(rung: NamedRung) -> float:
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in _arrays(rung)), default=0.0)


def _square(rung: NamedRung) -> bool:
    shapes = [array.shape for array in _arrays(rung) if array.ndim >= 2]
    return all(a[-2] == b[-2] for a, b in pairwise(shapes)) and len(shapes) > 1


def _equal_sizes(rung: NamedRung) -> bool:
    sizes = {size for array in _arrays(rung) if array.ndim >= 2 for size in array.shape[-2:]}
    return len(sizes) == 1


def _type_of(rung: NamedRung) -> str:
    kinds = {str(getattr(arg, "dtype", "")).removeprefix("torch.") for arg in rung.args} - {"", "bool"}
    return kinds.pop() if len(kinds) == 1 else ""


CONDITIONS: tuple[tuple[str, str, Callable[[NamedRung], bool]], ...] = (
    ("with three axes or more", "with two axes or fewer", lambda r: _axes(r) > 2),
    ("with four axes or more", "with three axes or fewer", lambda r: _axes(r) > 3),
    ("with two axes or more", "with one axis", lambda r: any(isinstance(a, np.ndarray) and a.ndim > 1 for a in r.args)),
    ("where all sizes are equal", "where sizes differ", _equal_sizes),
    ("where the matrices have the same number of rows", "where they do not", _square),
    ("for large numbers", "for small ones", lambda r: _largest(r) > LARGE),
    ("for numbers above 20", "for smaller ones", lambda r: _largest(r) > 20),
    ("for negative numbers", "where none is negative", lambda r: any((a < 0).any() for a in _arrays(r))),
    ("where something is None", "where nothing is", lambda r: any(arg is None for arg in r.args)),
    ("where an axis has length 1", "elsewhere", lambda r: any(1 in array.shape for array in _arrays(r))),
    ("where something is empty", "where nothing is empty", lambda r: any(0 in array.shape for array in _arrays(r))),
    ("in float32", "in other types", lambda r: _type_of(r) == "float32"),
    ("in half precision", "in other types", lambda r: _type_of(r) in ("float16", "bfloat16")),
    ("for whole numbers", "for others", lambda r: _type_of(r).startswith(("int", "uint"))),
)


def _other_scale(pairs: Sequence[Pair], scaled: Callable[[float], Callable]) -> Relation | None:
    """Recognise the result of attention whose scores are multiplied by a factor."""
    pairs = [pair for pair in pairs if pair.rung.measure is None]
    if len(pairs) < 2 or not all(p.alike and np.isfinite(p.actual).all() for p in pairs):
        return None
    factors = []
    for pair in pairs[:MAX_FITTED_RUNGS]:
        factor = _fit_factor(pair, scaled)
        if factor is None:
            return None
        factors.append(factor)
    if found := scores_times(pairs[:MAX_FITTED_RUNGS], factors):
        return found
    on_first = f"on “{pairs[0].rung.name}” {factors[0]:.4g} times the right ones"
    return Relation("scores times a factor", f"This is the result for scores times some factor, {on_first}.")


MAX_FITTED_RUNGS = 5  # most rungs on which a factor is fitted


def _fit_factor(pair: Pair, scaled: Callable[[float], Callable]) -> float | None:
    """Return the factor of the scores that gives the answer's result; None if no factor does."""

    def off(power: float) -> float:
        result = np.asarray(scaled(2.0**power)(*pair.rung.args), dtype=float)
        return float(np.abs(result - pair.actual).max()) if result.shape == pair.actual.shape else math.inf

    # The best whole power of 2, then finer ones around it.
    best = min(np.arange(-6.0, 7.0), key=off)
    step = 1.0
    while step > 1e-7:
        step /= 2
        best = min((best - step, best, best + step), key=off)
    near = 1e-5 * max(float(np.abs(pair.right).max(initial=0)), 1e-9)
    return 2.0**best if abs(best) > 1e-3 and off(best) <= near else None


def _only_some_parts(ladder: Ladder, rungs: Sequence[NamedRung], judged: JudgedRungs) -> Relation | None:
    """Recognise parts of the result that are right on every rung, while others are wrong."""
    if len(ladder.returns) < 2 or any(judged.outcomes[i].error for i in judged.failing):
        return None
    usual = next(rung.measure for rung in rungs)  # other measures combine or process results further
    single = [i for i in judged.failing if rungs[i].measure == usual]
    wrong_parts = {part.partition(",")[0] for i in single for part in judged.wrong[i]}
    wrong_names = [name for name in ladder.returns if name in wrong_parts]
    fine = [name for name in ladder.returns if name not in wrong_parts]
    if not wrong_names or not fine or not all(any(_tells(judged.right[i], name) for i in single) for name in fine):
        return None
    names = " and ".join(wrong_names)
    others = " and ".join(fine)
    return Relation(f"{names} wrong, {others} right", f"Right on these steps: {others}. Not right: {names}.")


def _tells(outcome: Outcome, part: str) -> bool:
    """Return whether a part of a right result has a number other than 0: a mistake leaves zeros as they are."""
    array = outcome.array(part)
    return array is not None and bool(array.any())


def _changed_arguments(
    rungs: Sequence[NamedRung], outcomes: Sequence[Outcome], failing: Sequence[int]
) -> Relation | None:
    """Name the arguments that an answer writes into, if that is all that is wrong."""
    if not all(rungs[i].measure is changes for i in failing):
        return None
    names = []
    for i in failing:
        measured = outcomes[i].array("measure")
        bits = 0 if measured is None or not np.isfinite(measured).all() else int(measured)
        names += [name for place, name in enumerate(rungs[i].arg_names) if bits >> place & 1]
    text = " and ".join(dict.fromkeys(names))
    return Relation(f"{text} changed", f"The answer changes {text}.") if text else None


def _find_common_error(
    rungs: Sequence[NamedRung], outcomes: Sequence[Outcome], failing: Sequence[int], hidden: bool
) -> Relation | None:
    """Recognise one type of error on at least half of the failing rungs."""
    errors = {i: outcomes[i].error for i in failing if outcomes[i].error}
    kinds = [error.partition(":")[0] for error in errors.values() if not error.startswith(BAD_RESULT)]
    usual = max(kinds, key=kinds.count, default="")
    errors = {i: error for i, error in errors.items() if error.partition(":")[0] == usual}
    if not errors or len(errors) * 2 < len(failing):
        return None
    first = min(errors)
    kind, _, text = errors[first].partition(": ")
    if hidden:
        return Relation(f"raises {kind}", "")
    # The verdict shows the error of the first failing rung itself.
    message = "" if first == failing[0] else f"On “{rungs[first].name}” it raised {errors[first]}."
    if match := SHAPES_THAT_MET.search(text):
        one, other = (tuple(map(int, re.findall(r"\d+", shape))) for shape in match.groups())
        message = f"On “{rungs[first].name}” two shapes do not fit together: {one} and {other}. {message}".strip()
        return Relation(f"raises {kind}: shapes that do not fit", message)
    text = _without_numbers(text)
    return Relation(f"raises {kind}: {text}" if text else f"raises {kind}", message)


# The first two shapes in an error of NumPy, whose einsum writes each as (3,4)->(3,newaxis,4), and in one of PyTorch.
SHAPES_THAT_MET = re.compile(
    r"(?:broadcast.*?shapes[^()]*|cannot be multiplied |^shapes )"
    r"\((\d[\dx,]*)\)?(?:->\([^)]*\))?(?: and)? \(?(\d[\dx,]*)\)"
)


def _without_numbers(text: str) -> str:
    """Return the text of an error without its numbers and its line, so that it is the same for all inputs."""
    text = re.sub(r",? at (the )?line .*", "", text)
    text = re.sub(r"-?\b\d+(x\d+)?(\.\d+)?\b", "…", text)
    return textwrap.shorten(text, MAX_ERROR_LENGTH, placeholder=" …").strip(" :.")


def _not_finite(outcomes: Sequence[Outcome], failing: Sequence[int]) -> Relation | None:
    """Recognise NaN or an infinity on every failing rung."""
    kinds = set()
    for i in failing:
        arrays = [each.as_array() for each in outcomes[i].values.values()]
        if not any(np.isnan(array).any() or np.isinf(array).any() for array in arrays):
            return None
        kinds |= {"NaN" if np.isnan(array).any() else "∞" for array in arrays if not np.isfinite(array).all()}
    name = "NaN" if "NaN" in kinds else "an infinity"
    return Relation(f"{name} comes out", f"Wherever it is wrong, the result holds {name}.") if kinds else None


def _only_some_rungs(rungs: Sequence[NamedRung], held: Sequence[bool]) -> Relation | None:
    """Recognise that at most MAX_NAMED_RUNGS rungs fail, and no more than half of all."""
    failing = [rung.name for rung, ok in zip(rungs, held, strict=True) if not ok]
    if len(failing) > MAX_NAMED_RUNGS or len(failing) * 2 > len(rungs) or len(rungs) < 4:
        return None
    names = listed(f"“{name}”" for name in failing)
    message = "All other steps passed." if len(failing) == 1 else f"Only {names} fail; all other steps passed."
    return Relation(f"wrong only on {names}", message)


def _from_a_rung_on(rungs: Sequence[NamedRung], held: Sequence[bool]) -> Relation | None:
    """Recognise that all rungs hold up to one, and none from there on."""
    first = list(held).index(False)
    if first < 2 or any(held[first:]):
        return None
    name = rungs[first].name
    return Relation(f"wrong from “{name}” on", f"Right up to “{rungs[first - 1].name}”; wrong from “{name}” on.")


def _right_only_on(rungs: Sequence[NamedRung], held: Sequence[bool]) -> Relation | None:
    """Recognise that at most MAX_NAMED_RUNGS rungs hold, and no more than half of all."""
    valued = [(rung, ok) for rung, ok in zip(rungs, held, strict=True) if not rung.measured]
    fine = [rung.name for rung, ok in valued if ok]
    if not 0 < len(fine) <= MAX_NAMED_RUNGS or len(fine) * 2 > len(valued) or len(valued) < 4:
        return None
    names = listed(f"“{name}”" for name in fine)
    return Relation(f"right only on {names}", f"Right only on {names}.")


def _of_errors(parts: Mapping[str, list[Pair]]) -> Relation | None:
    """Recognise a required error that is missing, or one where none is due, in parts that count errors as 1 or 0."""
    for part, pairs in parts.items():
        if kind := re.match(r"\w+Error", part):
            missing = [pair for pair in pairs if pair.right.sum() > pair.actual.sum()]
            if len(missing) == len(pairs):
                return Relation(f"no {kind[0]} where one is due", f"{kind[0]} should be raised, but is not.")
            if not missing:
                return Relation(f"{kind[0]} where none is due", f"{kind[0]} is raised where it should not be.")
    return None
