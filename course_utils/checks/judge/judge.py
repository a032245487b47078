"""Grader-side view of one exercise: test inputs (rungs), reference answer, known mistakes and verdict.

`judge_of(day, grade_id)` judges with the public hidden inputs, `judge_of(day, grade_id, seed)` with those of a class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, overload

import numpy as np

from course_utils.checks.diagnosis.hand_relations import PENCIL, relate_by_hand
from course_utils.checks.diagnosis.relation import Relation
from course_utils.checks.diagnosis.relations import relate
from course_utils.checks.judge.duel_verdict import holds as is_right_about
from course_utils.checks.judge.duel_verdict import judge_duel, standings
from course_utils.checks.judge.exercise import Mistake
from course_utils.checks.judge.exercises import all_exercises, parameters
from course_utils.checks.judge.overflow import Overflow, find_overflow
from course_utils.checks.judge.promise_verdict import broken_on, judge_promises
from course_utils.checks.judge.rungs import evidence_for, implementations, rungs_of, visible_implementations
from course_utils.checks.judge.stored_results import stored
from course_utils.checks.judge.verdict import Tolerance, Verdict, explains, gap, holds, is_finite, is_mask, wrong_parts
from course_utils.checks.kernel.evidence import BAD_RESULT, NOT_FILLED_IN, UNWRITTEN, attempts, find_ladder
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import NO_RESULT, Evidence, ForbiddenCall, Outcome, read_evidence
from course_utils.checks.kernel.result_numbers import Numbers
from course_utils.loader import has_answers

SAME_RESULTS = "These are the results of this mistake, but another mistake may give the same."
SAME_RESULTS_OF_TWO = "These are the results of these two mistakes, but others may give the same."
SECOND = (
    "There is a second mistake: exp overflows where the numbers are large, or gives 0 for a whole row, as on “{rung}”. "
    "Before exp, subtract from each row the largest number that the row uses."
)
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
        self.day = day
        self.grade_id = grade_id
        self.seed = seed
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
            LookupError: for hidden inputs whose results this edition does not store.
        """
        if hidden not in self._reference:
            if not has_answers():
                self._reference[hidden] = read_evidence(self._stored_results(hidden)["right"])
            elif self.ladder.duel:
                verdicts = [
                    Outcome(each.name, {"verdict": Numbers((), (float(each.right),))})
                    for each in implementations(self.day, hidden)
                ]
                self._reference[hidden] = Evidence(self.grade_id, hidden, verdicts)
            else:
                self._reference[hidden] = self._gather(self.exercise.reference, hidden)
        return self._reference[hidden]

    def mistakes(self, hidden: bool = False) -> list[tuple[Mistake, Evidence]]:
        """Return each known mistake with its evidence; the mistake runs on a rung when that outcome is first read."""
        if hidden not in self._mistakes:
            known = self.exercise.mistakes
            if has_answers():
                self._mistakes[hidden] = [(each, self._evidence_of_mistake(each, hidden)) for each in known]
            else:
                records = self._stored_results(hidden)["mistakes"]
                self._mistakes[hidden] = [
                    (mistake, read_evidence(record["evidence"])) for mistake, record in zip(known, records, strict=True)
                ]
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
        if evidence.called:
            return self._verdict_on_calls(evidence.called)
        # Stored hand-worked answers are rounded, so these are always compared with the reference itself.
        if expected is None or self.ladder.by_hand:
            expected = self.reference(evidence.hidden)
        right = expected.outcomes

        # One outcome for each expected rung, in the expected order. A rung without a result counts as an error.
        by_rung = {each.rung: each for each in evidence.outcomes}
        outcomes = [by_rung.get(each.rung, Outcome(each.rung, error=NO_RESULT)) for each in right]
        all_raised = all(outcome.error for outcome in outcomes)
        if not all_raised and (verdict := self._verdict_without_numbers(outcomes, right, by_rung, evidence.hidden)):
            return verdict

        held = [*self._compare(outcomes, right, evidence.hidden)]
        if all(held):
            verdict = Verdict("passed", 1.0)
        elif all_raised:
            verdict = self._verdict_on_errors(outcomes, expected, held, evidence.hidden)
        elif self.ladder.by_hand and not evidence.hidden:
            verdict = self._verdict_by_hand(outcomes, right, held)
        else:
            verdict = self._verdict_on_wrong_numbers(evidence, outcomes, expected, held)
        return replace(verdict, rungs=tuple((each.rung, ok) for each, ok in zip(right, held, strict=True)))

    def _verdict_without_numbers(
        self, outcomes: Sequence[Outcome], right: Sequence[Outcome], submitted: Mapping[str, Outcome], hidden: bool
    ) -> Verdict | None:
        """Return the verdict on a test, on an object with state, or on entries with many right answers; else None.

        Args:
            submitted: the outcomes that the evidence holds, by name of the rung.
        """
        if self.ladder.duel:
            return judge_duel(self.day, outcomes, right, lambda: self._find_weak_test(submitted))
        if self.ladder.machine:
            return judge_promises(self.ladder.machine, self.rungs(hidden), outcomes, self.mistakes(), hidden)
        return self._decide(outcomes, [each.rung for each in right])

    def _verdict_on_wrong_numbers(
        self, evidence: Evidence, outcomes: Sequence[Outcome], expected: Evidence, held: list[bool]
    ) -> Verdict:
        """Return the verdict on an answer that gives results, some of them wrong."""
        hidden = evidence.hidden
        first = held.index(False)
        failed, right = outcomes[first], expected.outcomes[first]

        # The explanation is the most telling one there is: a known mistake, what all wrong numbers have in common,
        # or the first wrong number. An overflow may come on top of any of them.
        mistake, overflow = self._find_slips(evidence, outcomes, expected, held)
        relation = None if mistake else self._find_relation(outcomes, expected, held, hidden, overflow)
        if hidden:
            message = self._message_on_hidden(failed, right)
        elif mistake:
            message = self._describe_mistake(mistake, overflow)
        else:
            sentences = [relation.message if relation else "", self._describe_failure(failed, right)]
            message = " ".join(reversed(sentences) if relation and relation.is_last else sentences).strip()
        if overflow and not mistake:
            message = f"{message} {self._describe_overflow(overflow)}"

        names = [each.name for each in (mistake or relation, overflow and overflow.mistake) if each]
        share = sum(held) / len(held) if self.ladder.by_hand else 0.0
        unknown_name = not hidden and _is_unknown_name(failed, relation)
        return Verdict("failed", share, message.strip(), JOINT.join(names) or None, unknown_name=unknown_name)

    def _verdict_by_hand(self, outcomes: Sequence[Outcome], right: Sequence[Outcome], held: Sequence[bool]) -> Verdict:
        """Return the verdict on hand-worked numbers, which may hold several known mistakes."""
        slips, unexplained = self._find_slips_by_hand(outcomes, right, held)
        messages = [slip.message for slip in slips]
        names = [slip.name for slip in slips]
        if unexplained or not slips:
            # What no mistake explains gets a relation, if there is one and no advice of its own is as good; and in any
            # case the first wrong entry is named.
            entries = [each.rung for each in right]
            mine = [each.array(each.rung) for each in outcomes]
            expected = [each.array(each.rung) for each in right]
            told = [i not in unexplained or name in self.ladder.advice_on for i, name in enumerate(entries)]
            relation = relate_by_hand(entries, mine, expected, told)
            first = unexplained[0] if unexplained else held.index(False)
            messages += [relation.message] if relation else []
            messages.append(self._describe_failure(outcomes[first], right[first]))
            names += [relation.name] if relation else []
        return Verdict("failed", sum(held) / len(held), " ".join(messages).strip(), JOINT.join(names) or None)

    def _find_slips_by_hand(
        self, outcomes: Sequence[Outcome], right: Sequence[Outcome], held: Sequence[bool]
    ) -> tuple[list[Mistake], list[int]]:
        """Return the known mistakes in hand-worked numbers, and the wrong entries that none of them explains.

        Numbers worked to two decimals are recognised. Entries that are not filled in yet prevent no mistake from being
        recognised in the others.
        """
        filled = [i for i, outcome in enumerate(outcomes) if not _is_unwritten(outcome.error)]
        unexplained = [i for i in filled if not held[i]]
        exact = [self.tolerance(each.rung) for each in right]
        tolerances = [replace(tolerance, atol=max(tolerance.atol, PENCIL)) for tolerance in exact]
        slips: list[Mistake] = []
        for mistake, known in self.mistakes():
            # A mistake gives some of the entries only, and is compared on those.
            theirs = known.outcomes
            own = [i for i in filled if not theirs[i].error]
            wrong = [i for i in own if not held[i]]
            fine = [i for i in own if held[i]]
            if not wrong or not set(wrong) <= set(unexplained):
                continue
            # It explains the wrong entries if it gives these numbers, and they are clearly nearer to its numbers than
            # to the right ones. Where the entries are right, it must be right as well.
            mine = [outcomes[i] for i in wrong]
            mistaken = [theirs[i] for i in wrong]
            is_nearer = gap(mine, mistaken) < gap(mine, [right[i] for i in wrong]) / 2
            fits = all(holds(theirs[i], right[i], tolerances[i]) for i in fine)
            if is_nearer and fits and explains(mine, mistaken, [tolerances[i] for i in wrong]):
                slips.append(mistake)
                unexplained = [i for i in unexplained if i not in wrong]
        return slips, unexplained

    def _find_slips(
        self, evidence: Evidence, outcomes: Sequence[Outcome], expected: Evidence, held: list[bool]
    ) -> tuple[Mistake | None, Overflow | None]:
        """Return the known mistake in an answer, and the overflow that comes on top of it or of an unknown one."""
        mistake = self.recognise(evidence, expected, held)
        if mistake or evidence.hidden:
            return mistake, None
        right = expected.outcomes
        tolerances = [self.tolerance(each.rung) for each in right]
        rungs = self.rungs()
        if [rung.name for rung in rungs] != [each.rung for each in right]:
            return None, None  # the expected results were stored before the ladder changed
        overflow = find_overflow(outcomes, rungs, right, held, self.mistakes(), tolerances, self.ladder.returns)
        if overflow is None:
            return None, None
        # With an overflow on some rungs, a known mistake need only agree on the others.
        for counted in (overflow.others, overflow.telling):
            if mistake := self.recognise(evidence, expected, held, counted, overflow.rungs):
                return mistake, overflow
        if not overflow.certain:
            return None, None
        is_all = overflow.telling and all(held[i] for i in overflow.telling)
        return (overflow.mistake, None) if is_all else (None, overflow)

    def _decide(self, outcomes: Sequence[Outcome], names: Sequence[str]) -> Verdict | None:
        """Return the verdict of the ladder's `decide` on all entries; None without one, or if an entry failed."""
        if self.ladder.decide is None or any(outcome.error for outcome in outcomes):
            return None
        entries = [outcome.array(name) for name, outcome in zip(names, outcomes, strict=True)]
        if any(entry is None for entry in entries):
            return Verdict("failed", 0.0, self.ladder.advice)  # no check sends such an outcome
        decided = self.ladder.decide(*entries)
        rungs = tuple((name, decided is None) for name in names)
        if decided is None:
            return Verdict("passed", 1.0, rungs=rungs)
        name, sentence = decided
        why = next((each.message for each in self.exercise.mistakes if each.name == name), self.ladder.advice)
        return Verdict("failed", 0.0, f"{sentence} {why}".strip(), name, rungs)

    def passes(self, evidence: Evidence, expected: Evidence) -> bool:
        """Return whether all rungs hold; stops at the first that does not."""
        return all(self._compare(evidence.outcomes, expected.outcomes, evidence.hidden))

    def _compare(self, outcomes: Sequence[Outcome], right: Sequence[Outcome], hidden: bool = False) -> Iterator[bool]:
        """Yield whether each rung holds; a rung is compared only when it is asked for."""
        if machine := self.ladder.machine:
            rungs = self.rungs(hidden)
            return (broken_on(machine, rung, outcome) is None for rung, outcome in zip(rungs, outcomes, strict=True))
        return (holds(mine, each, self.tolerance(each.rung)) for mine, each in zip(outcomes, right, strict=True))

    def recognise(
        self,
        evidence: Evidence,
        expected: Evidence,
        held: list[bool],
        counted: Sequence[int] | None = None,
        overflowed: Sequence[int] = (),
    ) -> Mistake | None:
        """Return the known mistake that gives the same evidence, rung by rung; None if there is none.

        A mistake must hold where the answer holds, and runs only up to the first rung on which the two differ. On
        hidden inputs no mistake is searched for: they are tried after the visible rungs hold, which none passes.

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
        mine = [outcomes[i] for i in wrong]
        if overflowed and not any(map(is_finite, mine)):
            return None  # errors and infinities alone do not tell a second slip from the overflow
        for mistake, known in self.mistakes():
            theirs = known.outcomes  # one is computed when it is read
            # The cheap comparison comes first: most mistakes differ on the first wrong rung and run no further.
            if not explains(mine, (theirs[i] for i in wrong), [tolerances[i] for i in wrong]):
                continue
            if not all(holds(theirs[i], expected.outcomes[i], tolerances[i]) for i in fine):
                continue
            # A mistake that overflows on all of these rungs would explain the answer without a second slip.
            if not overflowed or any(is_finite(theirs[i]) for i in overflowed):
                return mistake
        return None

    def _find_weak_test(self, outcomes: Mapping[Any, Outcome]) -> tuple[str, str] | None:
        """Return name and message of a known weak test that agrees with this one on every visible implementation."""
        mine = [each.held for each in standings(self.day, outcomes)]
        visible = visible_implementations(self.day)
        for mistake, known in self.mistakes():
            trials = zip(visible, known.outcomes, mine, strict=True)  # an outcome is computed when it is read
            if all(is_right_about(outcome, each.right) == held for each, outcome, held in trials):
                return mistake.name, mistake.message
        return None

    # Messages

    def _verdict_on_errors(
        self, outcomes: Sequence[Outcome], expected: Evidence, held: Sequence[bool], hidden: bool
    ) -> Verdict:
        """Return the verdict where every rung gave an error."""
        if all(_is_unwritten(outcome.error) for outcome in outcomes):
            return Verdict("missing", 0.0, "Not written yet.")
        first = held.index(False)
        failed, right = outcomes[first], expected.outcomes[first]
        if self.ladder.by_hand:
            return Verdict("error", 0.0, self._describe_failure(failed, right))
        is_secret = hidden and not self.ladder.duel  # an error's text may hold the input
        error = failed.error.partition(":")[0] if is_secret else failed.error
        hint = "" if hidden or self.ladder.duel else self._hint(right)
        relation = None if self.ladder.duel else self._find_relation(outcomes, expected, held, hidden)
        message = f"On “{right.rung}” {_error_sentence(error)} {hint}".strip()
        unknown_name = not hidden and _is_unknown_name(failed, relation)
        return Verdict("error", 0.0, message, relation.name if relation else None, unknown_name=unknown_name)

    def _message_on_hidden(self, failed: Outcome, right: Outcome) -> str:
        """Return the message for a failure on hidden inputs, which must not reveal them."""
        kind = (failed.error or BAD_RESULT).partition(":")[0]  # the text may hold the input
        error = "" if kind == BAD_RESULT else f"Here it raised {kind}. "
        message = f"Wrong on hidden inputs (“{right.rung}”): the answer must be right for any input. {error}"
        return message + self._hint(right)

    def _verdict_on_calls(self, called: Sequence[ForbiddenCall]) -> Verdict:
        """Return the verdict on the first of the forbidden calls that were recorded."""
        name = called[0].name[:60] or "something"
        line = called[0].line
        caller = f"Line {line} of its cell" if line else "The answer"
        forbidden = self.ladder.forbidden.items()
        part, reason = next((each for each in forbidden if each[0] in name.lower()), ("", "see the statement"))
        message = f"{caller} calls {name}, which is not allowed here: {reason}."
        return Verdict("forbidden", 0.0, message, f"calls {part}" if part else None)

    def _describe_mistake(self, mistake: Mistake, overflow: Overflow | None = None) -> str:
        """Return the message of a recognised mistake, and what it rests on unless it ends with a question."""
        if overflow:
            return f"{mistake.message} {self._describe_overflow(overflow)} {SAME_RESULTS_OF_TWO}"
        return mistake.message if mistake.message.endswith("?") else f"{mistake.message} {SAME_RESULTS}"

    def _describe_overflow(self, overflow: Overflow) -> str:
        """Return the message for an overflow that comes on top of another slip."""
        return SECOND.format(rung=self.rungs()[overflow.rungs[0]].name)

    def _find_relation(
        self,
        outcomes: Sequence[Outcome],
        expected: Evidence,
        held: Sequence[bool],
        hidden: bool,
        overflow: Overflow | None = None,
    ) -> Relation | None:
        """Return what the wrong numbers have in common, on rungs without an overflow; None if it is nothing."""
        right = expected.outcomes
        rungs = self.rungs(hidden)
        if [rung.name for rung in rungs] != [each.rung for each in right]:
            return None  # the expected results were stored before the ladder changed
        wrong = [
            set() if ok else wrong_parts(mine, each, self.tolerance(each.rung))
            for mine, each, ok in zip(outcomes, right, held, strict=True)
        ]
        if overflow:
            rungs = [rungs[i] for i in overflow.telling]
            outcomes = [outcomes[i] for i in overflow.telling]
            right = [right[i] for i in overflow.telling]
            wrong = [wrong[i] for i in overflow.telling]
        return relate(
            self.ladder,
            rungs,
            outcomes,
            right,
            wrong,
            parameters(self.day, self.grade_id),
            self.exercise.scaled,
            hidden=hidden,
            all_rungs=overflow is None,
        )

    def _describe_failure(self, outcome: Outcome, right: Outcome) -> str:
        """Describe the first difference between an outcome and the right one."""
        rung = right.rung
        by_hand = self.ladder.by_hand
        if outcome.error and by_hand:
            text = outcome.error.partition(": ")[2] or outcome.error
            return _with_full_stop(text if text.startswith(rung) else f"{rung}: {text}")
        if outcome.error:
            return f"On “{rung}” {_error_sentence(outcome.error)} {self._hint(right)}"
        returns = self.ladder.returns  # a stored notebook lists the parts in another order
        for part in sorted(right.values, key=lambda name: returns.index(name) if name in returns else len(returns)):
            expected = right.values[part]
            actual = outcome.values.get(part)
            if actual is None:
                return f"On “{rung}” there is no {part}."
            if actual.shape != expected.shape:
                place = "" if by_hand else f"On “{rung}” "
                shapes = f"shape {actual.shape}, expected {expected.shape}"
                return f"{place}{part} has {shapes}. {self._hint(right)}"
            tolerance = self.tolerance(rung).of(part)
            pairs = [*zip(actual.entries, expected.entries, strict=True)]
            if wrong := [i for i, pair in enumerate(pairs) if not tolerance.near(*pair)]:
                # Of hand-worked decimals the one that is off by most, since the others may be rounded; else the first.
                may_be_rounded = by_hand and any(each != round(each) for each in expected.entries)
                i = max(wrong, key=lambda i: abs(pairs[i][0] - pairs[i][1])) if may_be_rounded else wrong[0]
                return self._describe_difference(part, i, *pairs[i], right)
        return f"On “{rung}” the result differs."

    def _describe_difference(self, part: str, i: int, actual: float, expected: float, right: Outcome) -> str:
        """Describe that the entry `i` of a part, counted in row-major order, is not the expected number."""
        shape = right.values[part].shape
        if self.ladder.by_hand:
            place = f"[{i}]" if shape else ""
            return f"{part}{place} is not right. {self.ladder.advice_on.get(part, self.ladder.advice)}"
        if part == "measure":
            return self._hint(right)
        place = f"{part}[{', '.join(map(str, np.unravel_index(i, shape)))}]" if shape else part
        texts = f"{actual:.5g}", f"{expected:.5g}"
        if is_mask(part, (actual, expected)):
            texts = str(bool(actual)), str(bool(expected))
        if texts[0] == texts[1]:  # they differ in later digits only
            texts = f"{actual:.8g}", f"{expected:.8g}"
        if part in self.tolerance(right.rung).parts:  # the result is random
            texts = texts[0], f"about {expected:.3g}"
        hint = next((rung.why for rung in self.rungs() if rung.name == right.rung), "")  # the shape is right
        return f"On “{right.rung}” {place} is {texts[0]}, expected {texts[1]}. {hint}"

    def _hint(self, right: Outcome) -> str:
        """Return what a failure on this rung hints at."""
        return next((rung.hint for rung in self.rungs() if rung.name == right.rung), "")

    # Evidence of the course's own answers, right and wrong

    def _gather(self, namespace: Mapping[str, Any], hidden: bool) -> Evidence:
        return evidence_for(self.day, self.grade_id, namespace, hidden=hidden, arrays=True, seed=self.seed)

    def _evidence_of_mistake(self, mistake: Mistake, hidden: bool) -> Evidence:
        """Return the evidence of a mistake, tried with arrays; each rung runs when its outcome is first read."""
        answer = mistake.answer
        namespace = answer if isinstance(answer, Mapping) else dict.fromkeys(self.exercise.reference, answer)
        rungs = rungs_of(self.day, self.grade_id, hidden=hidden, seed=self.seed)
        trials = attempts(self.day, self.grade_id, namespace, hidden=hidden, arrays=True, rungs=rungs)
        return Evidence(self.grade_id, hidden, _LazyOutcomes(trials))

    def _stored_results(self, hidden: bool) -> Mapping[str, Any]:
        """Return the results stored in a student's edition. Raises LookupError for hidden inputs, which it lacks."""
        if hidden and not self.ladder.by_hand:
            raise LookupError("hidden inputs are tried when the notebook is graded")
        return stored(self.day)[self.grade_id]


class _LazyOutcomes(Sequence[Outcome]):
    """The outcomes of `attempts`, computed when first read, and in order, because a mistake may keep state.

    That saves up to four processor seconds for each wrong answer, as in `tiled_attention` of day 6.
    """

    def __init__(self, attempts: list[Callable[[], Outcome]]):
        self._attempts = attempts
        self._outcomes: list[Outcome] = []

    @overload
    def __getitem__(self, i: int) -> Outcome: ...

    @overload
    def __getitem__(self, i: slice) -> Sequence[Outcome]: ...

    def __getitem__(self, i: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(i, slice):
            return [self[each] for each in range(*i.indices(len(self)))]
        while len(self._outcomes) <= i < len(self):
            self._outcomes.append(self._attempts[len(self._outcomes)]())
        return self._outcomes[i]

    def __len__(self) -> int:
        return len(self._attempts)


def _is_unwritten(error: str) -> bool:
    """Return whether an error is that of an unwritten stub, since PyTorch raises NotImplementedError too."""
    kind, _, text = error.partition(": ")
    return kind == "NotImplementedError" and (text in ("", UNWRITTEN) or text.endswith(NOT_FILLED_IN))


def _is_unknown_name(failed: Outcome, relation: Relation | None) -> bool:
    """Return whether the reported rung, or at least half of the failing ones, raised that a name is not defined."""
    is_common = bool(relation and relation.name.startswith(f"raises {UNKNOWN_NAME}"))
    return is_common or failed.error.startswith(UNKNOWN_NAME)


def _error_sentence(error: str) -> str:
    """Return an error as a sentence; "it raised" is left out for a result that the check could not read."""
    kind, _, text = error.partition(": ")
    return _with_full_stop(text or "the result cannot be read" if kind == BAD_RESULT else f"it raised {error}")


def _with_full_stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
