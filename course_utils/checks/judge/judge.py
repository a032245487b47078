"""Grader-side view of one exercise: test inputs (rungs), reference answer, known mistakes and verdict.

`judge_of(day, grade_id)` judges with the public hidden inputs, `judge_of(day, grade_id, seed)` with those of a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from course_utils.checks.diagnosis.hand_relations import relate_by_hand
from course_utils.checks.diagnosis.relation_types import JudgedRungs, Relation
from course_utils.checks.diagnosis.relations import relate
from course_utils.checks.judge.comparison import Comparison
from course_utils.checks.judge.duel_verdict import judge_duel
from course_utils.checks.judge.exercise import KnownMistakes, Mistake
from course_utils.checks.judge.exercise_tables import all_exercises, parameters
from course_utils.checks.judge.overflow import Overflow
from course_utils.checks.judge.promise_verdict import broken_on, judge_promises
from course_utils.checks.judge.recognition import find_mistakes, find_mistakes_by_hand
from course_utils.checks.judge.rungs import evidence_for, implementations, lazy_evidence_for, rungs_of
from course_utils.checks.judge.stored_results import load_stored_results
from course_utils.checks.judge.verdict import JOINT, UNKNOWN_NAME, Tolerance, Verdict, holds, is_unwritten
from course_utils.checks.judge.wording import (
    NOT_WRITTEN,
    describe_call,
    describe_error,
    describe_failure,
    describe_hidden_failure,
    describe_mistake,
    describe_overflow,
    hint_on,
)
from course_utils.checks.kernel.evidence import BAD_RESULT, find_ladder
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import NO_RESULT, Evidence, ForbiddenCall, Outcome, read_evidence
from course_utils.checks.kernel.result_numbers import Numbers
from course_utils.loader import has_answers


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
        self._mistakes: dict[bool, KnownMistakes] = {}

    # What an answer is tried on, and what it is compared with

    def rungs(self, hidden: bool = False) -> list[Rung]:
        """Return the rungs with their inputs, which must not be changed; hand-worked numbers have none."""
        if hidden not in self._rungs:
            self._rungs[hidden] = rungs_of(self.day, self.grade_id, hidden=hidden, seed=self.seed)
        return self._rungs[hidden]

    def tolerance(self, rung: str) -> Tolerance:
        """Return the tolerance for the numbers of a rung: its own where it sets one, else that of the exercise."""
        return Tolerance(self.exercise.rtol, self.exercise.atol, self._visible_rung(rung).tolerance)

    def reference(self, hidden: bool = False) -> Evidence:
        """Return the evidence that the reference answer gives; in a duel, the right verdicts.

        Raises:
            LookupError: for hidden inputs whose results this edition does not store.
        """
        if hidden not in self._reference:
            self._reference[hidden] = self._find_reference(hidden)
        return self._reference[hidden]

    def mistakes(self, hidden: bool = False) -> KnownMistakes:
        """Return each known mistake with its evidence; the mistake runs on a rung when that outcome is first read."""
        if hidden not in self._mistakes:
            self._mistakes[hidden] = self._find_mistakes(hidden)
        return self._mistakes[hidden]

    def _visible_rung(self, name: str) -> Rung:
        """Return the visible rung of a name; a rung without anything else if there is none."""
        return next((each for each in self.rungs() if each.name == name), Rung(name))

    def _find_reference(self, hidden: bool) -> Evidence:
        if not has_answers():
            return read_evidence(self._stored_results(hidden)["right"])
        if self.ladder.duel:
            verdicts = [
                Outcome(each.name, {"verdict": Numbers((), (float(each.right),))})
                for each in implementations(self.day, hidden)
            ]
            return Evidence(self.grade_id, hidden, verdicts)
        answer = self.exercise.reference
        return evidence_for(self.day, self.grade_id, answer, hidden=hidden, arrays=True, seed=self.seed)

    def _find_mistakes(self, hidden: bool) -> KnownMistakes:
        known = self.exercise.mistakes
        if has_answers():
            return [(mistake, self._evidence_of_mistake(mistake, hidden)) for mistake in known]
        records = self._stored_results(hidden)["mistakes"]
        return [(mistake, read_evidence(each["evidence"])) for mistake, each in zip(known, records, strict=True)]

    def _evidence_of_mistake(self, mistake: Mistake, hidden: bool) -> Evidence:
        answer = mistake.answer
        namespace = answer if isinstance(answer, Mapping) else dict.fromkeys(self.exercise.reference, answer)
        return lazy_evidence_for(self.day, self.grade_id, namespace, hidden=hidden, seed=self.seed)

    def _stored_results(self, hidden: bool) -> Mapping[str, Any]:
        """Return the results stored in a student's edition. Raises LookupError for hidden inputs, which it lacks."""
        if hidden and not self.ladder.by_hand:
            raise LookupError("hidden inputs are tried when the notebook is graded")
        return load_stored_results(self.day)[self.grade_id]

    # The verdict

    def judge(self, evidence: Evidence, expected: Evidence | None = None) -> Verdict:
        """Compare evidence with the expected one, by default that of the reference answer, and return the verdict.

        Missing or malformed results count as wrong. A function earns all its points or none; each hand-worked entry
        earns its share.
        """
        if evidence.called:
            return self._verdict_on_call(evidence.called[0])
        # Stored hand-worked answers are rounded, so these are always compared with the reference itself.
        if expected is None or self.ladder.by_hand:
            expected = self.reference(evidence.hidden)
        comparison = self._compare(evidence, expected.outcomes)

        # A test, an object with state, and entries with many right answers are right in ways of their own.
        if not comparison.all_raised:
            if self.ladder.duel:
                return judge_duel(self.day, comparison, self.mistakes)
            if self.ladder.machine:
                rungs = self.rungs(comparison.hidden)
                known = self.mistakes()
                return judge_promises(self.ladder.machine, rungs, comparison.outcomes, known, comparison.hidden)
            if verdict := self._decide(comparison):
                return verdict

        # All other answers are right if every rung holds.
        if all(comparison.held):
            verdict = Verdict("passed", 1.0)
        elif comparison.all_raised:
            verdict = self._verdict_on_errors(comparison)
        elif self.ladder.by_hand and not comparison.hidden:
            verdict = self._verdict_by_hand(comparison)
        else:
            verdict = self._verdict_on_wrong_numbers(comparison)
        steps = zip(comparison.right, comparison.held, strict=True)
        return replace(verdict, rungs=tuple((each.rung, held) for each, held in steps))

    def passes(self, evidence: Evidence, expected: Evidence) -> bool:
        """Return whether all rungs hold; stops at the first that does not."""
        outcomes = evidence.outcomes  # one is computed when it is read
        if machine := self.ladder.machine:
            pairs = zip(self.rungs(evidence.hidden), outcomes, strict=True)
            return all(broken_on(machine, rung, outcome) is None for rung, outcome in pairs)
        compared = zip(outcomes, expected.outcomes, strict=True)
        return all(holds(mine, right, self.tolerance(right.rung)) for mine, right in compared)

    def _compare(self, evidence: Evidence, right: Sequence[Outcome]) -> Comparison:
        """Compare evidence with the right outcomes, in their order; a rung without a result counts as an error."""
        by_rung = {each.rung: each for each in evidence.outcomes}
        names = [each.rung for each in right]
        outcomes = [by_rung.get(name, Outcome(name, error=NO_RESULT)) for name in names]
        tolerances = [self.tolerance(name) for name in names]
        return Comparison(
            ladder=self.ladder,
            evidence=evidence,
            rungs=[self._visible_rung(name) for name in names],
            outcomes=outcomes,
            right=right,
            tolerances=tolerances,
            held=[holds(*each) for each in zip(outcomes, right, tolerances, strict=True)],
            is_current=names == [rung.name for rung in self.rungs()],
        )

    def _verdict_on_call(self, call: ForbiddenCall) -> Verdict:
        """Return the verdict on an answer that made a forbidden call."""
        name = call.name[:60] or "something"
        forbidden = self.ladder.forbidden.items()
        part, reason = next((each for each in forbidden if each[0] in name.lower()), ("", "see the statement"))
        return Verdict("forbidden", 0.0, describe_call(name, call.line, reason), f"calls {part}" if part else None)

    def _decide(self, comparison: Comparison) -> Verdict | None:
        """Return the verdict of the ladder's `decide` on all entries; None without one, or if an entry failed."""
        if self.ladder.decide is None or any(outcome.error for outcome in comparison.outcomes):
            return None
        names = [each.rung for each in comparison.right]
        entries = [outcome.array(name) for name, outcome in zip(names, comparison.outcomes, strict=True)]
        if any(entry is None for entry in entries):
            return Verdict("failed", 0.0, self.ladder.advice)  # no check sends such an outcome
        decided = self.ladder.decide(*entries)
        rungs = tuple((name, decided is None) for name in names)
        if decided is None:
            return Verdict("passed", 1.0, rungs=rungs)
        name, sentence = decided
        why = next((each.message for each in self.exercise.mistakes if each.name == name), self.ladder.advice)
        return Verdict("failed", 0.0, f"{sentence} {why}".strip(), name, rungs)

    def _verdict_on_errors(self, comparison: Comparison) -> Verdict:
        """Return the verdict where every rung gave an error."""
        if all(map(is_unwritten, comparison.outcomes)):
            return Verdict("missing", 0.0, NOT_WRITTEN)
        first = comparison.first_wrong
        failed = comparison.outcomes[first]
        rung = comparison.rungs[first]
        if self.ladder.by_hand:
            return Verdict("error", 0.0, describe_failure(comparison, first))
        # On hidden inputs the error's text may hold the input. In a duel the rungs are implementations, without hints.
        is_duel = self.ladder.duel
        error = failed.error.partition(":")[0] if comparison.hidden and not is_duel else failed.error
        hint = "" if comparison.hidden or is_duel else hint_on(error, rung)
        relation = None if is_duel else self._find_relation(comparison)
        message = describe_error(rung.name, error, hint).strip()
        unknown_name = not comparison.hidden and _is_unknown_name(failed, relation)
        return Verdict("error", 0.0, message, relation.name if relation else None, unknown_name=unknown_name)

    def _verdict_by_hand(self, comparison: Comparison) -> Verdict:
        """Return the verdict on hand-worked numbers, which may hold several known mistakes."""
        mistakes, unexplained = find_mistakes_by_hand(comparison, self.mistakes())
        messages = [mistake.message for mistake in mistakes]
        names = [mistake.name for mistake in mistakes]
        if unexplained or not mistakes:
            # What no mistake explains gets a relation, unless its name has advice of its own, which says more. In any
            # case the first wrong entry is named.
            entries = [each.rung for each in comparison.right]
            mine = [each.array(each.rung) for each in comparison.outcomes]
            expected = [each.array(each.rung) for each in comparison.right]
            is_advised = [i not in unexplained or name in self.ladder.advice_on for i, name in enumerate(entries)]
            relation = relate_by_hand(entries, mine, expected, is_advised)
            first = unexplained[0] if unexplained else comparison.first_wrong
            messages += [relation.message] if relation else []
            messages.append(describe_failure(comparison, first))
            names += [relation.name] if relation else []
        return Verdict("failed", comparison.share, " ".join(messages).strip(), JOINT.join(names) or None)

    def _verdict_on_wrong_numbers(self, comparison: Comparison) -> Verdict:
        """Return the verdict on an answer that gives results, some of them wrong."""
        # The explanation is the most telling one there is: a known mistake, what all wrong numbers have in common,
        # or the first wrong number. An overflow may come on top of any of them. Hidden inputs are searched for no
        # mistake: they are tried after the visible rungs hold, which no known mistake passes.
        hidden = comparison.hidden
        mistake, overflow = (None, None) if hidden else find_mistakes(comparison, self.mistakes())
        relation = None if mistake else self._find_relation(comparison, overflow)
        if comparison.outcomes[comparison.first_wrong].error.startswith(BAD_RESULT):
            overflow = None  # there are no numbers yet

        # What the learner reads of it.
        first = comparison.first_wrong
        if hidden:
            message = describe_hidden_failure(comparison)
        elif mistake:
            message = describe_mistake(comparison, mistake, overflow)
        else:
            sentences = [relation.message if relation else "", describe_failure(comparison, first)]
            message = " ".join(reversed(sentences) if relation and relation.is_last else sentences).strip()
        if overflow and not mistake:
            message = f"{message} {describe_overflow(comparison, overflow)}"

        # What a class report counts, and what the answer earns.
        names = [each.name for each in (mistake or relation, overflow and overflow.mistake) if each]
        share = comparison.share if self.ladder.by_hand else 0.0
        unknown_name = not hidden and _is_unknown_name(comparison.outcomes[first], relation)
        return Verdict("failed", share, message.strip(), JOINT.join(names) or None, unknown_name=unknown_name)

    def _find_relation(self, comparison: Comparison, overflow: Overflow | None = None) -> Relation | None:
        """Return what the wrong numbers have in common, on rungs without an overflow; None if it is nothing."""
        if not comparison.is_current:
            return None
        rungs = self.rungs(comparison.hidden)
        wrong = comparison.wrong_parts
        places = overflow.telling if overflow else range(len(rungs))
        judged = JudgedRungs(
            [rungs[i] for i in places],
            [comparison.outcomes[i] for i in places],
            [comparison.right[i] for i in places],
            [wrong[i] for i in places],
        )
        return relate(
            self.ladder,
            judged,
            parameters(self.day, self.grade_id),
            self.exercise.scaled,
            hidden=comparison.hidden,
            all_rungs=overflow is None,
        )


def _is_unknown_name(failed: Outcome, relation: Relation | None) -> bool:
    """Return whether the reported rung, or at least half of the failing ones, raised that a name is not defined."""
    is_common = bool(relation and relation.name.startswith(f"raises {UNKNOWN_NAME}"))
    return is_common or failed.error.startswith(UNKNOWN_NAME)
