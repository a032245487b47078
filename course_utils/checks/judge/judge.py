"""Grader-side view of one exercise: test inputs (rungs), reference answer, known mistakes and verdict.

`judge_of(day, grade_id)` judges with the public hidden inputs, `judge_of(day, grade_id, seed)` with those of a class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, overload

from course_utils.checks.diagnosis.hand_relations import PENCIL, relate_by_hand
from course_utils.checks.diagnosis.relation import Relation
from course_utils.checks.diagnosis.relations import relate
from course_utils.checks.judge.duel_verdict import holds as is_right_about
from course_utils.checks.judge.duel_verdict import judge_duel, standings
from course_utils.checks.judge.exercise import Mistake
from course_utils.checks.judge.exercises import all_exercises, parameters
from course_utils.checks.judge.overflow import Overflow, find_overflow
from course_utils.checks.judge.promise_verdict import broken_on, judge_promises
from course_utils.checks.judge.rungs import evidence_for, implementations, rungs_of, shown
from course_utils.checks.judge.stored_results import stored
from course_utils.checks.judge.verdict import Tolerance, Verdict, explains, gap, holds, is_finite, wrong_parts
from course_utils.checks.kernel.evidence import BAD_RESULT, NOT_FILLED_IN, UNWRITTEN, attempts, find_ladder
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import NO_RESULT, Evidence, ForbiddenCall, Outcome, read
from course_utils.checks.kernel.result_numbers import Numbers
from course_utils.loader import has_answers

Item = TypeVar("Item")
SAME_RESULTS = "These are the results of this slip; another may give the same."
SAME_RESULTS_OF_TWO = "These are the results of these two slips; others may give the same."
SECOND = (
    "There is a second slip: exp overflows where the numbers are large, or gives 0 for a whole row, as on “{rung}”. "
    "Before exp, subtract from each row the largest number that the row uses."
)
# Sentences of a hint on the shape of a result, which are no help where the shape is right.
FORM = re.compile(
    r"^Return (\(|the pair|them|.*\bof (the same )?shape)|^The shape is|\bhas (the shape of|a row for each)\b"
)
SENTENCE = re.compile(r"(?<=[.?]) ")
JOINT = "; "  # between the names of two slips
UNKNOWN_NAME = "NameError: name"  # the beginning of Python's error for an undefined name


@cache
def judge_of(day: int, grade_id: str, seed: str = "") -> JudgedExercise:
    """Return the judge of an exercise, which caches all that it computes.

    Args:
        seed: hex text that the hidden inputs are drawn from.

    Raises:
        KeyError: for an unknown exercise.
    """
    return JudgedExercise(day, grade_id, seed)


class JudgedExercise:
    """One exercise with everything that the verdict on an answer depends on.

    The argument `hidden` of its methods selects the hidden inputs in place of the visible ones.
    """

    def __init__(self, day: int, grade_id: str, seed: str = ""):
        self.day, self.grade_id, self.seed = day, grade_id, seed
        self.ladder = find_ladder(day, grade_id)
        self.exercise = all_exercises(day)[grade_id]
        self._rungs: dict[bool, list[Rung]] = {}
        self._reference: dict[bool, Evidence] = {}
        self._mistakes: dict[bool, list[tuple[Mistake, Evidence]]] = {}

    # Test inputs, and the results to compare with

    def rungs(self, hidden: bool = False) -> list[Rung]:
        """Return the rungs with their inputs, which must not be changed; hand-worked numbers have none."""
        if hidden not in self._rungs:
            self._rungs[hidden] = rungs_of(self.day, self.grade_id, hidden=hidden, seed=self.seed)
        return self._rungs[hidden]

    def reference(self, hidden: bool = False) -> Evidence:
        """Return the evidence that the reference answer gives; in a duel, the right verdicts.

        Raises:
            LookupError: for hidden inputs of which this edition stores no results.
        """
        if hidden not in self._reference:
            if not has_answers():
                self._reference[hidden] = read(self._stored(hidden)["right"])
            elif self.ladder.duel:
                tried = implementations(self.day, hidden)
                verdicts = [Outcome(each.name, {"verdict": Numbers((), (float(each.right),))}) for each in tried]
                self._reference[hidden] = Evidence(self.grade_id, hidden, verdicts)
            else:
                self._reference[hidden] = self._gather(self.exercise.reference, hidden)
        return self._reference[hidden]

    def mistakes(self, hidden: bool = False) -> list[tuple[Mistake, Evidence]]:
        """Return each known mistake with its evidence; the mistake runs on a rung when that outcome is first read."""
        if hidden not in self._mistakes:
            known = self.exercise.mistakes
            if has_answers():
                self._mistakes[hidden] = [(each, self._lazily(each, hidden)) for each in known]
            else:
                kept = self._stored(hidden)["mistakes"]
                self._mistakes[hidden] = [(m, read(found["evidence"])) for m, found in zip(known, kept, strict=True)]
        return self._mistakes[hidden]

    def tolerance(self, rung: str) -> Tolerance:
        """Return the tolerance for the numbers of a rung: its own where it sets one, else that of the exercise."""
        own = next((each.tolerance for each in self.rungs() if each.name == rung), {})
        return Tolerance(self.exercise.rtol, self.exercise.atol, own)

    # The verdict

    def judge(self, evidence: Evidence, expected: Evidence | None = None) -> Verdict:
        """Compare evidence with the expected one, by default that of the reference answer, and return the verdict.

        Missing or malformed results count as wrong. A function earns all its points or none; each hand-worked entry
        earns its share.
        """
        hidden, by_hand = evidence.hidden, self.ladder.by_hand
        if evidence.called:
            return self._of_call(evidence.called)
        if expected is None or by_hand:  # stored hand-worked answers are rounded
            expected = self.reference(hidden)
        outcomes = {each.rung: each for each in evidence.outcomes}
        wanted = expected.outcomes
        gave = [outcomes.get(each.rung, Outcome(each.rung, error=NO_RESULT)) for each in wanted]
        raised = all(outcome.error for outcome in gave)
        if self.ladder.duel and not raised:
            return judge_duel(self.day, gave, wanted, lambda: self._weak_test(outcomes))
        if self.ladder.machine and not raised:
            return judge_promises(self.ladder.machine, self.rungs(hidden), gave, self.mistakes(), hidden)
        if self.ladder.decide and (decided := self._decide(gave, [each.rung for each in wanted])):
            return decided
        held = [*self._held(gave, wanted)]
        rungs = tuple((each.rung, ok) for each, ok in zip(wanted, held, strict=True))
        if all(held):
            return Verdict("passed", 1.0, rungs=rungs)
        first = held.index(False)
        if raised:
            return replace(self._all_raised(gave, expected, held, hidden), rungs=rungs)
        if by_hand and not hidden:
            return replace(self._by_hand(gave, wanted, held), rungs=rungs)
        mistake, overflow = self._slips(evidence, gave, expected, held)
        relation = None if mistake else self._relation(gave, expected, held, hidden, overflow)
        message = self._named(mistake, overflow) if mistake else self._explain(gave[first], wanted[first])
        if hidden:
            message = self._on_hidden(gave[first], wanted[first])
        elif relation:
            message = f"{relation.message} {message}".strip()
        if overflow and not mistake:
            message = f"{message} {self._second(overflow)}"
        names = [each.name for each in (mistake or relation, overflow and overflow.mistake) if each]
        share = sum(held) / len(held) if by_hand else 0.0
        unknown = not hidden and _is_unknown_name(gave[first], relation)
        return Verdict("failed", share, message.strip(), JOINT.join(names) or None, rungs, unknown)

    def _by_hand(self, gave: Sequence[Outcome], right: Sequence[Outcome], held: Sequence[bool]) -> Verdict:
        """Return the verdict on hand-worked numbers; each known mistake is compared on the entries that it gives.

        Numbers worked to two decimals are recognised, and entries that are not filled in yet keep none from it.
        """
        filled = [i for i, outcome in enumerate(gave) if not _is_unwritten(outcome.error)]
        left = [i for i in filled if not held[i]]  # the wrong entries that no mistake explains so far
        plain = [self.tolerance(each.rung) for each in right]
        tolerances = [replace(tolerance, atol=max(tolerance.atol, PENCIL)) for tolerance in plain]
        slips: list[Mistake] = []
        for mistake, known in self.mistakes():
            theirs = known.outcomes
            own = [i for i in filled if not theirs[i].error]
            wrong = [i for i in own if not held[i]]
            fine = [i for i in own if held[i]]
            if not wrong or not set(wrong) <= set(left):
                continue
            mine = [gave[i] for i in wrong]
            others = [theirs[i] for i in wrong]
            nearer = gap(mine, others) < gap(mine, [right[i] for i in wrong]) / 2
            fits = all(holds(theirs[i], right[i], tolerances[i]) for i in fine)
            if nearer and fits and explains(mine, others, [tolerances[i] for i in wrong]):
                slips.append(mistake)
                left = [i for i in left if i not in wrong]
        messages = [slip.message for slip in slips]
        names = [slip.name for slip in slips]
        if left or not slips:
            entries = [each.rung for each in right]
            numbers, wanted = ([each.array(each.rung) for each in outcomes] for outcomes in (gave, right))
            relation = relate_by_hand(entries, numbers, wanted, [i not in left for i in range(len(held))])
            first = left[0] if left else held.index(False)
            messages += [relation.message] if relation else []
            messages.append(self._explain(gave[first], right[first]))
            names += [relation.name] if relation else []
        return Verdict("failed", sum(held) / len(held), " ".join(messages).strip(), JOINT.join(names) or None)

    def _slips(
        self, evidence: Evidence, gave: Sequence[Outcome], expected: Evidence, held: list[bool]
    ) -> tuple[Mistake | None, Overflow | None]:
        """Return the known mistake in an answer, and the overflow that comes on top of it or of an unknown one."""
        mistake = self.recognise(evidence, expected, held)
        if mistake or evidence.hidden:
            return mistake, None
        tolerances = [self.tolerance(each.rung) for each in expected.outcomes]
        rungs, right = self.rungs(), expected.outcomes
        if [rung.name for rung in rungs] != [each.rung for each in right]:
            return None, None  # the expected results were stored before the ladder changed
        overflow = find_overflow(gave, rungs, right, held, self.mistakes(), tolerances, self.ladder.returns)
        if overflow is None:
            return None, None
        for counted in (overflow.others, overflow.telling):
            if mistake := self.recognise(evidence, expected, held, counted, overflow.seen):
                return mistake, overflow
        if not overflow.certain:
            return None, None
        alone = overflow.telling and all(held[i] for i in overflow.telling)
        return (overflow.mistake, None) if alone else (None, overflow)

    def _named(self, mistake: Mistake, overflow: Overflow | None = None) -> str:
        """Return the message of a recognised mistake, and what it rests on, unless it asks."""
        if overflow:
            return f"{mistake.message} {self._second(overflow)} {SAME_RESULTS_OF_TWO}"
        return mistake.message if mistake.message.endswith("?") else f"{mistake.message} {SAME_RESULTS}"

    def _second(self, overflow: Overflow) -> str:
        """Return what is said of an overflow beside another slip."""
        return SECOND.format(rung=self.rungs()[overflow.seen[0]].name)

    def _decide(self, gave: Sequence[Outcome], names: Sequence[str]) -> Verdict | None:
        """Return the verdict of the ladder's `decide` on all entries; None without one, or where an entry failed."""
        if self.ladder.decide is None or any(outcome.error for outcome in gave):
            return None
        entries = [outcome.array(name) for name, outcome in zip(names, gave, strict=True)]
        if any(entry is None for entry in entries):
            return Verdict("failed", 0.0, self.ladder.advice)  # no check sends such an outcome
        found = self.ladder.decide(*entries)
        rungs = tuple((name, found is None) for name in names)
        if found is None:
            return Verdict("passed", 1.0, rungs=rungs)
        name, said = found
        why = next((each.message for each in self.exercise.mistakes if each.name == name), self.ladder.advice)
        return Verdict("failed", 0.0, f"{said} {why}".strip(), name, rungs)

    def passes(self, evidence: Evidence, expected: Evidence) -> bool:
        """Return whether all rungs hold; stops at the first that does not."""
        return all(self._held(evidence.outcomes, expected.outcomes, evidence.hidden))

    def _held(self, gave: Sequence[Outcome], right: Sequence[Outcome], hidden: bool = False) -> Iterator[bool]:
        """Yield whether each rung holds; a rung is compared only when it is asked for."""
        if machine := self.ladder.machine:
            rungs = self.rungs(hidden)
            return (broken_on(machine, rung, mine) is None for rung, mine in zip(rungs, gave, strict=True))
        return (holds(mine, each, self.tolerance(each.rung)) for mine, each in zip(gave, right, strict=True))

    def recognise(
        self,
        evidence: Evidence,
        expected: Evidence,
        held: list[bool],
        counted: Sequence[int] | None = None,
        overflowed: Sequence[int] = (),
    ) -> Mistake | None:
        """Return the known mistake that gives the same evidence, rung by rung; None where there is none.

        A mistake must hold where the answer holds, and runs only up to the first rung on which the two differ. On
        hidden inputs no mistake is looked for: they are tried after the visible rungs hold, which none passes.

        Args:
            counted: the rungs that are compared; all by default.
            overflowed: rungs on which the answer overflows, and the mistake does not overflow on all of them.
        """
        if evidence.hidden:
            return None
        outcomes = evidence.outcomes
        rungs = [outcome.rung for outcome in expected.outcomes]
        if [outcome.rung for outcome in outcomes] != rungs:
            return None  # forged rungs: spend no work on them
        counted = range(len(held)) if counted is None else counted
        tolerances = [self.tolerance(rung) for rung in rungs]
        wrong = [i for i in counted if not held[i]]
        fine = [i for i in counted if held[i]]
        given = [outcomes[i] for i in wrong]
        if overflowed and not any(map(is_finite, given)):
            return None
        for mistake, known in self.mistakes():
            theirs = known.outcomes  # one is computed when it is read
            if not explains(given, (theirs[i] for i in wrong), [tolerances[i] for i in wrong]):
                continue
            if not all(holds(theirs[i], expected.outcomes[i], tolerances[i]) for i in fine):
                continue
            if not overflowed or any(is_finite(theirs[i]) for i in overflowed):
                return mistake
        return None

    def _weak_test(self, outcomes: Mapping[Any, Outcome]) -> tuple[str, str] | None:
        """Return name and message of a known weak test that agrees with this one on every visible implementation."""
        mine = [each.held for each in standings(self.day, outcomes)]
        for mistake, known in self.mistakes():
            tried = zip(shown(self.day), known.outcomes, mine, strict=True)  # an outcome is computed when it is read
            if all(is_right_about(outcome, each.right) == held for each, outcome, held in tried):
                return mistake.name, mistake.message
        return None

    # Messages

    def _all_raised(self, gave: Sequence[Outcome], expected: Evidence, held: Sequence[bool], hidden: bool) -> Verdict:
        """Return the verdict where every rung gave an error."""
        if all(_is_unwritten(outcome.error) for outcome in gave):
            return Verdict("missing", 0.0, "Not written yet.")
        first = held.index(False)
        given, wanted = gave[first], expected.outcomes[first]
        if self.ladder.by_hand:
            return Verdict("error", 0.0, self._explain(given, wanted))
        secret = hidden and not self.ladder.duel  # an error's text may hold the input
        raised = given.error.partition(":")[0] if secret else given.error
        why = "" if hidden or self.ladder.duel else self._why(wanted)
        relation = None if self.ladder.duel else self._relation(gave, expected, held, hidden)
        message = f"On “{wanted.rung}” {_failed(raised)} {why}".strip()
        unknown = not hidden and _is_unknown_name(given, relation)
        return Verdict("error", 0.0, message, relation.name if relation else None, unknown_name=unknown)

    def _on_hidden(self, given: Outcome, wanted: Outcome) -> str:
        """Return the message for a failure on hidden inputs, which must not reveal them."""
        kind = (given.error or BAD_RESULT).partition(":")[0]  # the text may hold the input
        raised = "" if kind == BAD_RESULT else f"Here it raised {kind}. "
        message = f"Wrong on hidden inputs (“{wanted.rung}”): the answer must hold for any input. {raised}"
        return message + self._why(wanted)

    def _of_call(self, called: Sequence[ForbiddenCall]) -> Verdict:
        """Return the verdict on the first of the forbidden calls that were recorded."""
        name, line = called[0].name[:60] or "something", called[0].line
        who = f"Line {line} of its cell" if line else "The answer"
        forbidden = self.ladder.forbidden.items()
        part, why = next((each for each in forbidden if each[0] in name.lower()), ("", "see the statement"))
        message = f"{who} calls {name}, which is not allowed here: {why}."
        return Verdict("forbidden", 0.0, message, f"calls {part}" if part else None)

    def _relation(
        self,
        given: Sequence[Outcome],
        expected: Evidence,
        held: Sequence[bool],
        hidden: bool,
        overflow: Overflow | None = None,
    ) -> Relation | None:
        """Return what the wrong numbers have in common, on rungs without an overflow; None where it is nothing."""
        right = expected.outcomes
        names = [wanted.rung for wanted in right]
        rungs = self.rungs(hidden)
        if [rung.name for rung in rungs] != names:
            return None  # the expected results were stored before the ladder changed
        wrong = [
            set() if ok else wrong_parts(mine, wanted, self.tolerance(wanted.rung))
            for mine, wanted, ok in zip(given, right, held, strict=True)
        ]
        called = parameters(self.day, self.grade_id)
        if overflow:
            rungs, wrong = [rungs[i] for i in overflow.telling], [wrong[i] for i in overflow.telling]
            given, right = [given[i] for i in overflow.telling], [right[i] for i in overflow.telling]
        scaled, all_rungs = self.exercise.scaled, overflow is None
        return relate(self.ladder, rungs, given, right, wrong, called, scaled, hidden=hidden, all_rungs=all_rungs)

    def _explain(self, given: Outcome, wanted: Outcome) -> str:
        """Describe the first difference between an outcome and the right one."""
        rung, by_hand = wanted.rung, self.ladder.by_hand
        if given.error and by_hand:
            said = given.error.partition(": ")[2] or given.error
            return _ended(said if said.startswith(rung) else f"{rung}: {said}")
        if given.error:
            return f"On “{rung}” {_failed(given.error)} {self._why(wanted)}"
        returns = self.ladder.returns  # a stored notebook lists the parts in another order
        for part in sorted(wanted.values, key=lambda name: returns.index(name) if name in returns else len(returns)):
            right, got = wanted.values[part], given.values.get(part)
            if got is None:
                return f"On “{rung}” there is no {part}."
            if got.shape != right.shape:
                shapes = f"shape {got.shape}, expected {right.shape}"
                return f"{'' if by_hand else f'On “{rung}” '}{part} has {shapes}. {self._why(wanted)}"
            tolerance = self.tolerance(rung).of(part)
            pairs = [*zip(got.entries, right.entries, strict=True)]
            if off := [i for i, pair in enumerate(pairs) if not tolerance.near(*pair)]:
                i = max(off, key=lambda i: abs(pairs[i][0] - pairs[i][1])) if by_hand else off[0]
                return self._differ(part, i, *pairs[i], wanted)
        return f"On “{rung}” the result differs."

    def _differ(self, part: str, i: int, got: float, right: float, wanted: Outcome) -> str:
        if self.ladder.by_hand:
            where = f"[{i}]" if wanted.values[part].shape else ""
            return f"{part}{where} is not right. {self.ladder.advice}"
        if part == "measure":
            return self._why(wanted)
        why = " ".join(each for each in SENTENCE.split(self._why(wanted)) if not FORM.search(each))
        index: list[str] = []
        for size in reversed(wanted.values[part].shape):
            i, position = divmod(i, size)
            index.insert(0, str(position))
        place = f"{part}[{', '.join(index)}]" if index else part
        said, expected = f"{got:.5g}", f"{right:.5g}"
        if said == expected:  # they differ in later digits only
            said, expected = f"{got:.8g}", f"{right:.8g}"
        if part in self.tolerance(wanted.rung).parts:  # the result is random
            expected = f"about {right:.3g}"
        return f"On “{wanted.rung}” {place} is {said}, expected {expected}. {why}"

    def _why(self, wanted: Outcome) -> str:
        """Return what a failure on this rung hints at."""
        return next((rung.why for rung in self.rungs() if rung.name == wanted.rung), "")

    # Evidence of the course's own answers, right and wrong

    def _gather(self, namespace: Mapping[str, Any], hidden: bool) -> Evidence:
        return evidence_for(self.day, self.grade_id, namespace, hidden=hidden, arrays=True, seed=self.seed)

    def _lazily(self, mistake: Mistake, hidden: bool) -> Evidence:
        """Return the evidence of a mistake, tried with arrays; each rung runs when its outcome is first read."""
        answer = mistake.answer
        namespace = answer if isinstance(answer, Mapping) else dict.fromkeys(self.exercise.reference, answer)
        rungs = rungs_of(self.day, self.grade_id, hidden=hidden, seed=self.seed)
        tries = attempts(self.day, self.grade_id, namespace, hidden=hidden, arrays=True, rungs=rungs)
        return Evidence(self.grade_id, hidden, _Outcomes(tries))

    def _stored(self, hidden: bool) -> Mapping[str, Any]:
        """Return the results stored in a student's edition. Raises LookupError for hidden inputs, which it lacks."""
        if hidden and not self.ladder.by_hand:
            raise LookupError("hidden inputs are tried where the notebook is graded")
        return stored(self.day)[self.grade_id]


class _Outcomes(Sequence[Outcome]):
    """The outcomes of `attempts`, computed when first read, and in order, because a mistake may keep state.

    That saves up to four processor seconds for each wrong answer, as in `tiled_attention` of day 6.
    """

    def __init__(self, attempts: list[Callable[[], Outcome]]):
        self._attempts, self._found = attempts, list[Outcome]()

    @overload
    def __getitem__(self, i: int) -> Outcome: ...

    @overload
    def __getitem__(self, i: slice) -> Sequence[Outcome]: ...

    def __getitem__(self, i: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(i, slice):
            return [self[each] for each in range(*i.indices(len(self)))]
        while len(self._found) <= i < len(self):
            self._found.append(self._attempts[len(self._found)]())
        return self._found[i]

    def __len__(self) -> int:
        return len(self._attempts)


def _is_unwritten(error: str) -> bool:
    """Return whether an error is that of an unwritten stub, since PyTorch raises NotImplementedError too."""
    kind, _, text = error.partition(": ")
    return kind == "NotImplementedError" and (text in ("", UNWRITTEN) or text.endswith(NOT_FILLED_IN))


def _is_unknown_name(given: Outcome, relation: Relation | None) -> bool:
    """Return whether the reported rung, or at least half of the failing ones, raised that a name is not defined."""
    named = bool(relation and relation.name.startswith(f"raises {UNKNOWN_NAME}"))
    return named or given.error.startswith(UNKNOWN_NAME)


def _failed(error: str) -> str:
    """Return an error as a sentence; "it raised" is left out for a result that the check could not read."""
    kind, _, text = error.partition(": ")
    return _ended(text or "the result cannot be read" if kind == BAD_RESULT else f"it raised {error}")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
