"""What evidence says about an answer: which rungs hold, the share of the points, and the likely mistake."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

from .evidence import NOT_FILLED_IN, UNREADABLE, UNWRITTEN, attempts, draw_rungs, find_ladder, gather, key_of
from .exercise import Exercise, Mistake, all_exercises, parameters
from .expected import has_answers, stored
from .hand_relations import PENCIL, relate_by_hand
from .recording import DOORS
from .relations import Relation, as_array, relate

ERRORS_OF_ARITHMETIC = (
    "OverflowError",
    "ZeroDivisionError",
    "FloatingPointError",
    "ValueError",
    "RuntimeError",
    "IndexError",
)
UNHEARD = "the check hears what an answer calls, and would not hear it so"


@dataclass(frozen=True)
class Verdict:
    """status: passed, failed, error, missing or forbidden; from a grader also timeout or killed.

    share: of the points, 0 to 1. rungs: (name, held).
    """

    status: str
    share: float
    message: str = ""
    misconception: str | None = None
    rungs: tuple[tuple[str, bool], ...] = ()


def judge(day: int, grade_id: str, evidence: Mapping, expected: Mapping | None = None) -> Verdict:
    """Compare evidence with what is expected, by default with what the reference answer gives.

    Both are as `gather` returns them; anything else in `evidence` fails closed. A function earns all its points or
    none; of hand-worked entries each earns its share.
    """
    hidden = bool(evidence.get("hidden"))
    if called := evidence.get("called"):
        return Verdict("forbidden", 0.0, _of_call(day, grade_id, called))
    if expected is None or find_ladder(day, grade_id).entries:  # the stored answers by hand are rounded ones
        expected = reference_evidence(day, grade_id, hidden)
    outcomes = {
        outcome.get("rung"): outcome for outcome in evidence.get("outcomes", ()) if isinstance(outcome, Mapping)
    }
    pairs = [(outcomes.get(wanted["rung"], {"error": "no result"}), wanted) for wanted in expected["outcomes"]]
    held = [_same(given, wanted, _tolerance(day, grade_id, wanted["rung"])) for given, wanted in pairs]
    rungs = tuple((wanted["rung"], ok) for (_, wanted), ok in zip(pairs, held, strict=True))
    if all(held):
        return Verdict("passed", 1.0, rungs=rungs)
    share = sum(held) / len(held) if find_ladder(day, grade_id).entries else 0.0
    given, wanted = pairs[held.index(False)]
    gave = [outcome for outcome, _ in pairs]
    if all("error" in outcome for outcome, _ in pairs):
        if all(_is_unwritten(str(outcome["error"])) for outcome, _ in pairs):
            return Verdict("missing", 0.0, "Not written yet.", rungs=rungs)
        if find_ladder(day, grade_id).entries:
            return Verdict("error", 0.0, _explain(day, grade_id, given, wanted), rungs=rungs)
        raised = str(given["error"]).partition(":")[0] if hidden else given["error"]  # its text may hold the input
        why = "" if hidden else _why(day, grade_id, wanted)
        relation = _relation(day, grade_id, gave, expected, held, hidden)
        message = f"On “{wanted['rung']}” {_failed(raised)} {why}".strip()
        return Verdict("error", 0.0, message, relation.name if relation else None, rungs)
    mistake = recognise(day, grade_id, evidence, expected, held)
    relation = None if mistake else _relation(day, grade_id, gave, expected, held, hidden)
    message = mistake.message if mistake else _explain(day, grade_id, given, wanted)
    if hidden:
        kind = str(given.get("error", UNREADABLE)).partition(":")[0]  # its text may hold the input
        raised = "" if kind == UNREADABLE else f"Here it raised {kind}. "
        message = f"Wrong on hidden inputs (“{wanted['rung']}”): the answer must hold for any input. {raised}"
        message += _why(day, grade_id, wanted)
    elif relation:
        message = f"{relation.message} {message}".strip()
    known = mistake or relation
    return Verdict("failed", share, message.strip(), known.name if known else None, rungs)


def _of_call(day: int, grade_id: str, called: Any) -> str:
    """What to say of the first forbidden call among those that were recorded (see `recording.Recording.found`)."""
    calls = [each for each in called if isinstance(each, Mapping)] if isinstance(called, Sequence) else []
    first = min(calls, key=lambda each: each.get("name") in DOORS, default={})
    name, line = str(first.get("name", "something"))[:60], first.get("line")
    who = f"Line {line} of its cell" if isinstance(line, int) and line > 0 else "The answer"
    forbidden = find_ladder(day, grade_id).forbidden
    if name in DOORS:
        return f"{who} {DOORS[name]}, which is not allowed here: {forbidden.get(name, UNHEARD)}."
    why = next((why for part, why in forbidden.items() if part in name.lower()), "see the statement")
    return f"{who} calls {name}, which is not allowed here: {why}."


def _relation(
    day: int, grade_id: str, given: Sequence[Mapping], expected: Mapping, held: list[bool], hidden: bool
) -> Relation | None:
    """What the wrong numbers have in common."""
    ladder = find_ladder(day, grade_id)
    if ladder.entries:
        names = [wanted["rung"] for wanted in expected["outcomes"]]
        mine, right = (
            [as_array(outcome.get("values", {}).get(name)) for name, outcome in zip(names, outcomes, strict=True)]
            for outcomes in (given, expected["outcomes"])
        )
        return relate_by_hand(names, mine, right, held)
    rungs = draw_rungs(day, grade_id, hidden=hidden)
    if [rung.name for rung in rungs] != [wanted["rung"] for wanted in expected["outcomes"]]:
        return None  # what is expected was stored before the ladder changed
    pairs = zip(given, expected["outcomes"], held, strict=True)
    wrong = [set() if ok else _wrong_parts(day, grade_id, mine, wanted) for mine, wanted, ok in pairs]
    scaled = all_exercises(day)[grade_id].scaled
    return relate(ladder, rungs, given, expected["outcomes"], wrong, parameters(day, grade_id), scaled, hidden=hidden)


def _wrong_parts(day: int, grade_id: str, given: Mapping, wanted: Mapping) -> set[str]:
    """The parts of an outcome that do not hold: never none, for one that does not."""
    tolerance, values = _tolerance(day, grade_id, wanted["rung"]), given.get("values")
    if not isinstance(values, Mapping):
        return set(wanted.get("values", {"result": None}))
    right = wanted.get("values", {}).items()
    return {part for part, array in right if not _close(values.get(part), array, tolerance.of(part))} or {"result"}


def recognise(day: int, grade_id: str, evidence: Mapping, expected: Mapping, held: list[bool]) -> Mistake | None:
    """The known mistake whose evidence is the same as this one, rung by rung.

    Only mistakes that fail on the same rungs are compared, and run no further than to the first rung that tells them
    apart. Hidden inputs are tried after the visible ones hold, which hold for no known mistake: none is found on them.
    """
    if evidence.get("hidden"):
        return None
    outcomes, by_hand = evidence["outcomes"], find_ladder(day, grade_id).entries
    rungs = [outcome["rung"] for outcome in expected["outcomes"]]
    if [isinstance(outcome, Mapping) and outcome.get("rung") for outcome in outcomes] != rungs:
        return None  # no work on rungs that somebody made up
    patterns, own = held_by_mistakes(day, grade_id), as_pattern(held)
    speaks = [i for i, ok in enumerate(held) if not ok] if patterns else sorted(range(len(held)), key=held.__getitem__)
    if by_hand:  # a mistake worked to two decimals is still known, and also while other entries are empty
        speaks = [i for i in speaks if not _is_unwritten(str(outcomes[i].get("error", "")))]
    tolerances = [_tolerance(day, grade_id, rungs[i]) for i in speaks]
    if by_hand:
        tolerances = [replace(tolerance, atol=max(tolerance.atol, PENCIL)) for tolerance in tolerances]
    given, right, held = ([each[i] for i in speaks] for each in (outcomes, expected["outcomes"], held))
    for mistake, known in mistake_evidence(day, grade_id):
        if patterns.get(mistake.name, own) != own:
            continue
        mistaken = _Picked(known["outcomes"], speaks)
        nearer = not by_hand or _gap(given, mistaken, held) < _gap(given, right, held) / 2
        if nearer and _explains(given, mistaken, held, tolerances):
            return mistake
    return None


class _Outcomes(Sequence):
    """The outcomes of `attempts`, worked out when they are first looked at: in order, as a mistake may remember."""

    def __init__(self, attempts: list[Callable[[], dict]]):
        self._attempts, self._found = attempts, []

    def __getitem__(self, i: int) -> dict:
        while len(self._found) <= i < len(self):
            self._found.append(self._attempts[len(self._found)]())
        return self._found[i]

    def __len__(self) -> int:
        return len(self._attempts)


class _Picked(Sequence):
    """Some items of a sequence, in the order of their places; none is looked at before it is asked for."""

    def __init__(self, items: Sequence, places: list[int]):
        self._items, self._places = items, places

    def __getitem__(self, i: int) -> Any:
        return self._items[self._places[i]]

    def __len__(self) -> int:
        return len(self._places)


def passes(day: int, grade_id: str, evidence: Mapping, expected: Mapping) -> bool:
    """Whether all rungs hold; no further rung is looked at after one that does not."""
    pairs = zip(evidence["outcomes"], expected["outcomes"], strict=True)
    return all(_same(given, wanted, _tolerance(day, grade_id, wanted["rung"])) for given, wanted in pairs)


def as_pattern(held: Sequence[bool]) -> str:
    """Which rungs hold, as text: 1101."""
    return "".join("01"[ok] for ok in held)


def held_by_mistakes(day: int, grade_id: str) -> Mapping[str, str]:
    """The patterns of the visible rungs that hold for known mistakes, by name; empty where none were written down.

    `course build` writes them; they spare the naming of a mistake most of its work.
    """
    known = {mistake.name for mistake in all_exercises(day)[grade_id].mistakes}
    found = _patterns(day).get(grade_id, {}) if has_answers() else {}
    return found if found.keys() == known else {}


@cache
def _patterns(day: int) -> Mapping[str, Mapping[str, str]]:
    return {} if patterns_are_old(day) else json.loads(patterns_path(day).read_text(encoding="utf-8"))["held"]


def patterns_path(day: int) -> Path:
    """Where the patterns of a day's mistakes are written down, beside its answers."""
    return Path(__file__).with_name("answers") / f"day{day}.held.json"


def write_patterns(day: int) -> bool:
    """Write down which rungs hold for each known mistake of a day, if its checks changed since; whether they did."""
    if not patterns_are_old(day):
        return False
    held = {grade_id: find_patterns(day, grade_id) for grade_id in all_exercises(day)}
    text = json.dumps({"of": _stamp(day), "held": held}, indent=1, ensure_ascii=False)
    patterns_path(day).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    _patterns.cache_clear()
    return True


def patterns_are_old(day: int) -> bool:
    """Whether a day's checks changed since its patterns were written down."""
    path = patterns_path(day)
    return not path.exists() or json.loads(path.read_text(encoding="utf-8"))["of"] != _stamp(day)


def find_patterns(day: int, grade_id: str) -> dict[str, str]:
    """The pattern of each known mistake, found by running it; none for numbers by hand."""
    if find_ladder(day, grade_id).entries:
        return {}
    right = reference_evidence(day, grade_id)["outcomes"]
    tolerances = [_tolerance(day, grade_id, wanted["rung"]) for wanted in right]
    return {
        mistake.name: as_pattern([_same(*each) for each in zip(known["outcomes"], right, tolerances, strict=True)])
        for mistake, known in mistake_evidence(day, grade_id)
    }


def _stamp(day: int) -> str:
    """A hash of what decides over a day's patterns: its inputs and answers, and the modules beside them it imports."""
    unread, read = [f"day{day}"], {}
    while unread:
        name = unread.pop()
        for room in ("inputs", "answers"):
            path = Path(__file__).with_name(room) / f"{name}.py"
            read[name, room] = path.read_bytes() if path.exists() else b""
        named = {each.decode() for room in ("inputs", "answers") for each in _BESIDE.findall(read[name, room])}
        unread += [other for other in named if (other, "inputs") not in read]
    return hashlib.sha256(b"".join(read[key] for key in sorted(read))).hexdigest()


_BESIDE = re.compile(rb"^from \.+(?:inputs\.)?(\w+) import", re.MULTILINE)


def _once_for_each_key(find: Callable) -> Callable:
    """Remember what was found, for each key that hidden inputs were drawn from."""

    @cache
    def remembered(day, grade_id, hidden, key):
        return find(day, grade_id, hidden)

    @wraps(find)
    def found(day, grade_id, hidden=False):
        return remembered(day, grade_id, hidden, key_of(day, grade_id) if hidden else "")

    found.cache_clear = remembered.cache_clear
    return found


@_once_for_each_key
def reference_evidence(day: int, grade_id: str, hidden: bool = False) -> Mapping:
    """The evidence that the reference answer gives."""
    if not has_answers():
        return _stored(day, grade_id, hidden)["right"]
    return gather(day, grade_id, all_exercises(day)[grade_id].reference, hidden=hidden, arrays=True)


@_once_for_each_key
def mistake_evidence(day: int, grade_id: str, hidden: bool = False) -> list[tuple[Mistake, Mapping]]:
    """The evidence that each known mistake gives. A mistake is run on a rung when that outcome is first asked for."""
    exercise = all_exercises(day)[grade_id]
    if not has_answers():
        kept = _stored(day, grade_id, hidden)["mistakes"]
        return [(m, known["evidence"]) for m, known in zip(exercise.mistakes, kept, strict=True)]
    return [(m, _lazily(day, grade_id, _namespace(exercise, m), hidden)) for m in exercise.mistakes]


def _lazily(day: int, grade_id: str, namespace: Mapping[str, Any], hidden: bool) -> Mapping:
    """What `gather` returns for arrays, each rung run when its outcome is first asked for."""
    outcomes = _Outcomes(attempts(day, grade_id, namespace, hidden=hidden, arrays=True))
    return {"exercise": grade_id, "hidden": hidden, "outcomes": outcomes}


def _stored(day: int, grade_id: str, hidden: bool) -> Mapping:
    """What a student's edition knows of an exercise. Raises LookupError for hidden inputs: nothing is known of them."""
    if hidden and not find_ladder(day, grade_id).entries:
        raise LookupError("hidden inputs are tried where the notebook is graded")
    return stored(day)[grade_id]


@dataclass(frozen=True)
class _Tolerance:
    """A number a holds for b when |a − b| ≤ atol + rtol·|b|; parts: (rtol, atol) of those that have their own."""

    rtol: float
    atol: float
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def of(self, part: str) -> _Tolerance:
        return _Tolerance(*self.parts.get(part, (self.rtol, self.atol)))

    def near(self, a: float, b: float) -> bool:
        if not math.isfinite(b):
            return a == b or (math.isnan(a) and math.isnan(b))
        return abs(a - b) <= self.atol + self.rtol * abs(b)


@cache
def _tolerance(day: int, grade_id: str, rung: str) -> _Tolerance:
    """How near the numbers of a rung must come: as the rung says, else as its exercise does."""
    exercise = all_exercises(day)[grade_id]
    own = {} if find_ladder(day, grade_id).entries else {r.name: r.tolerance for r in draw_rungs(day, grade_id)}
    return _Tolerance(exercise.rtol, exercise.atol, own.get(rung, {}))


def _namespace(exercise: Exercise, mistake: Mistake) -> Mapping[str, Any]:
    if isinstance(mistake.answer, Mapping):
        return mistake.answer
    (name,) = exercise.reference
    return {name: mistake.answer}


def _explains(outcomes: list, known: list, held: list[bool], tolerances: list[_Tolerance]) -> bool:
    """Whether a mistake gives what was given, on the rungs that failed.

    On a rung that raised, the mistake need only fail too: the same slip raises one error in lists, another in NumPy.
    An error that no arithmetic gives, such as NameError, is no known mistake. Where any failing rung has finite values,
    at least one must agree in them.
    """
    agreed = False
    for given, mistaken, ok, tolerance in zip(outcomes, known, held, tolerances, strict=True):
        if "error" in given:
            if _finite(mistaken) or not given["error"].startswith(ERRORS_OF_ARITHMETIC):
                return False
            continue
        if "error" in mistaken and not ok and not _finite(given):
            continue
        if not _same(given, mistaken, tolerance):
            return False
        agreed = agreed or not ok
    return agreed or all(
        "error" in given or not _finite(given) for given, ok in zip(outcomes, held, strict=True) if not ok
    )


def _gap(outcomes: list, others: list, held: list[bool]) -> float:
    """The largest difference between numbers on the rungs that failed and have the same shape."""
    pairs = [
        (float(a), float(b))
        for given, other, ok in zip(outcomes, others, held, strict=True)
        if not ok and "values" in given
        for part, array in other["values"].items()
        if given["values"][part]["shape"] == array["shape"]
        for a, b in zip(given["values"][part]["numbers"], array["numbers"], strict=True)
    ]
    return max((abs(a - b) for a, b in pairs), default=math.inf)


def _same(given: Mapping, wanted: Mapping, tolerance: _Tolerance) -> bool:
    """Same parts, same shapes, same numbers within the tolerance. Never true of an error."""
    if (
        not isinstance(given.get("values"), Mapping)
        or "values" not in wanted
        or set(given["values"]) != set(wanted["values"])
    ):
        return False
    return all(_close(given["values"][part], array, tolerance.of(part)) for part, array in wanted["values"].items())


def _close(given: Mapping, wanted: Mapping, tolerance: _Tolerance) -> bool:
    try:
        if list(given["shape"]) != list(wanted["shape"]) or len(given["numbers"]) != len(wanted["numbers"]):
            return False
        pairs = zip(given["numbers"], wanted["numbers"], strict=True)
        return all(tolerance.near(float(a), float(b)) for a, b in pairs)
    except (TypeError, ValueError, KeyError):
        return False


def _finite(outcome: Mapping) -> bool:
    numbers = [x for array in outcome.get("values", {}).values() for x in array["numbers"]]
    return "values" in outcome and all(math.isfinite(float(x)) for x in numbers)


def _explain(day: int, grade_id: str, given: Mapping, wanted: Mapping) -> str:
    rung = wanted["rung"]
    entries = find_ladder(day, grade_id).entries
    if "error" in given and entries:
        said = given["error"].partition(": ")[2] or given["error"]
        return _ended(said if said.startswith(rung) else f"{rung}: {said}")
    if "error" in given:
        return f"On “{rung}” {_failed(given['error'])} {_why(day, grade_id, wanted)}"
    returns = find_ladder(day, grade_id).returns  # a stored notebook has the parts in another order
    for part in sorted(wanted["values"], key=lambda name: returns.index(name) if name in returns else len(returns)):
        right = wanted["values"][part]
        got = given["values"].get(part) if isinstance(given.get("values"), Mapping) else None
        if got is None:
            return f"On “{rung}” there is no {part}."
        if list(got["shape"]) != list(right["shape"]):
            shapes = f"shape {tuple(got['shape'])}, expected {tuple(right['shape'])}"
            where = "" if entries else f"On “{rung}” "
            return f"{where}{part} has {shapes}. {_why(day, grade_id, wanted)}"
        tolerance = _tolerance(day, grade_id, rung).of(part)
        for i, (a, b) in enumerate(zip(got["numbers"], right["numbers"], strict=True)):
            if not tolerance.near(float(a), float(b)):
                return _differ(day, grade_id, part, i, a, b, wanted)
    return f"On “{rung}” the result differs."


def _differ(day: int, grade_id: str, part: str, i: int, got: Any, right: Any, wanted: Mapping) -> str:
    if find_ladder(day, grade_id).entries:
        where = f"[{i}]" if wanted["values"][part]["shape"] else ""
        return f"{part}{where} is not right. {find_ladder(day, grade_id).advice}"
    if part == "measure":
        return _why(day, grade_id, wanted)
    index = []
    for size in reversed(wanted["values"][part]["shape"]):
        i, position = divmod(i, size)
        index.insert(0, str(position))
    place = f"{part}[{', '.join(index)}]" if index else part
    random = part in _tolerance(day, grade_id, wanted["rung"]).parts
    said, expected = f"{float(got):.5g}", f"{float(right):.5g}"
    if said == expected:  # the difference lies further back
        said, expected = f"{float(got):.8g}", f"{float(right):.8g}"
    if random:
        expected = f"about {float(right):.3g}"
    return f"On “{wanted['rung']}” {place} is {said}, expected {expected}. {_why(day, grade_id, wanted)}"


def _is_unwritten(error: str) -> bool:
    """Whether an error is that of a stub; PyTorch raises NotImplementedError too."""
    kind, _, text = error.partition(": ")
    return kind == "NotImplementedError" and (text in ("", UNWRITTEN) or text.endswith(NOT_FILLED_IN))


def _failed(error: str) -> str:
    """An error as a sentence; what the check could not read was not raised by the learner's code."""
    kind, _, text = error.partition(": ")
    return _ended(text or "the result cannot be read" if kind == UNREADABLE else f"it raised {error}")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _why(day: int, grade_id: str, wanted: Mapping) -> str:
    if find_ladder(day, grade_id).entries:
        return ""
    return next((rung.why for rung in draw_rungs(day, grade_id) if rung.name == wanted["rung"]), "")
