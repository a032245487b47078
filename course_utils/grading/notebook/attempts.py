"""Try the answer to an exercise, twice where that is fair, and decide what its message may say.

If an exercise fails after an earlier one failed, it gets a second try in a fresh kernel, where reference answers stand
in for the earlier answers that failed, so that nobody loses points twice for one mistake.

A message may quote text only from a kernel with nothing to hide: no lent reference answer, and no class's seed. The
seed of an exercise comes and goes with its hidden check, but the answer to that exercise, or an earlier answer that
patched `draw_rungs`, can keep what it saw. So an exercise that fails after that runs again in a kernel that had no
seed, for its message alone. Beside a lent answer, a message has no text from the kernel (see `redact`). A student can
still learn of each exercise whether it passes and, beside a lent answer (which is there in compiled form), a number or
a shape. The known relation of wrong results to the right ones also shows what the hidden inputs were like.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from nbformat import NotebookNode

from course_utils.checks.cells import used_names
from course_utils.checks.judge.duel_server import Arena
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.checks.kernel.outcome import Evidence, evidence_of
from course_utils.errors import KernelLost
from course_utils.grading.notebook.notebook_kernels import KernelSlot, NotebookKernels
from course_utils.grading.redact import kind_of, stopped_at, with_answer_error, without_text
from course_utils.sandbox.grading_kernel import GradingKernel
from course_utils.sandbox.limits import exclude_from_limit
from course_utils.time_limits import DUEL_SECONDS, MAX_DUEL_SECONDS

USUAL = '__import__("course_utils.checks.kernel.settings", fromlist=["settings"]).use_usual_settings()'
LOST_HELPER = " No cell of the notebook defines it by that name."
UNSTEADY = "It fails here, but without what earlier answers left behind it fails differently or passes."


@dataclass(frozen=True)
class Judgement:
    """What the judge made of one run of a check.

    Attributes:
        verdict: the verdict. Its message quotes no text from the kernel.
        with_quotes: the same verdict. Its message quotes the kernel if that tells more.
        depends_on_kernel: whether the message with quotes depends on what the kernel says.
    """

    verdict: Verdict
    with_quotes: Verdict
    depends_on_kernel: bool = False

    @classmethod
    def plain(cls, status: str, message: str) -> Judgement:
        """Return a judgement without points, in the course's own words."""
        verdict = Verdict(status, 0.0, message)
        return cls(verdict, verdict)


@dataclass(frozen=True)
class Run:
    """One run of an answer and its check.

    Attributes:
        judgement: what the judge made of it.
        clean: whether the kernel had nothing to hide before the answer ran: no lent answer and no class's seed.
        seeded: whether the kernel had had a class's seed before the answer ran.
    """

    judgement: Judgement
    clean: bool = False
    seeded: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict whose message quotes no text from the kernel."""
        return self.judgement.verdict

    @property
    def is_seed_in_message(self) -> bool:
        """Whether the message might tell something of the seed, because it depends on a kernel that has had it."""
        return self.seeded and self.judgement.depends_on_kernel


class Attempt:
    """The attempt at one exercise, which may take up to three runs of its answer and its check.

    Args:
        kernels: those of the notebook.
        grade_id: the exercise.
        parts: of the official check: the visible part, then the hidden tests.
        run_part: runs a part in the kernel in use, and returns its outputs, which an error of the part is one of.
        seed: a class's seed of the hidden tests; "" if it has none.
    """

    def __init__(
        self,
        kernels: NotebookKernels,
        grade_id: str,
        parts: Sequence[NotebookNode],
        run_part: Callable[[NotebookNode], Sequence[NotebookNode]],
        seed: str,
    ):
        self.kernels = kernels
        self.grade_id = grade_id
        self.parts = parts
        self.run_part = run_part
        self.seed = seed
        self.ladder = find_ladder(kernels.day, grade_id)
        self.arena: Arena | None = None  # the implementations, once the check of a duel has begun
        self.runs: list[Run] = []

    def decide(self) -> Verdict:
        """Return the verdict on the exercise. Its message quotes no kernel that had something to hide."""
        with exclude_from_limit(MAX_DUEL_SECONDS) if self.ladder.duel else nullcontext():
            run = self.run_twice()
        public = self.with_quotes(run)
        if run.is_seed_in_message and public is run.verdict:
            # once more for the message alone, in a kernel without a seed; the points are those of the first verdict
            self.kernels.drop_all()
            again = self.run_once()
            if again.verdict.status == run.verdict.status:
                public = self.with_quotes(again)
            else:
                public = replace(run.verdict, message=UNSTEADY, mistake=None)
        return replace(public, status=run.verdict.status, share=run.verdict.share)

    def with_quotes(self, run: Run) -> Verdict:
        """Return the verdict with quotes from a kernel that had nothing to hide, if one gave the same message."""
        clean = [each for each in self.runs if each.clean and each.verdict.message == run.verdict.message]
        return clean[-1].judgement.with_quotes if clean else run.verdict

    def run_twice(self) -> Run:
        """Run the exercise, run it again in a fresh kernel if it fails, and return the better run.

        There is no second run if the mistake was clearly made in this exercise. If the kernel was lost or a call was
        forbidden, the fresh kernel runs only the answers that this exercise needs, because a thread or an alarm that
        another answer left behind may have been the cause. If a call was forbidden, references also stand in for the
        earlier answers, because one of them may have made the call. A duel is repeated if it failed in the student's
        own kernel; a kernel that ran one can ask questions, so it is not used again.
        """
        kernels = self.kernels
        first = self.run_once()
        if self.arena:
            return self.repeat_duel(first)
        status = first.verdict.status
        is_forbidden = status == "forbidden"
        needs_clean_kernel = is_forbidden or status in ("timeout", "killed")
        may_be_others_fault = kernels.stumbled or needs_clean_kernel
        if status == "passed" or not may_be_others_fault:
            return first
        needed = kernels.needs(self.grade_id, lent=is_forbidden)
        if self.is_own_fault(first.verdict, needed):
            return first
        if not needs_clean_kernel:
            second = self.run_once(fresh=True)
        else:
            # no other kernel may run beside the fresh one, which is not used again
            kernels.drop_all()
            second = self.run_once(fresh=True, only=needed)
            kernels.drop_all()
        # of equal runs the second counts, but not after a lost kernel: there the first tells where the answer was
        runs = (first, second) if status in ("timeout", "killed") else (second, first)
        return max(runs, key=lambda run: run.verdict.share)

    def repeat_duel(self, first: Run) -> Run:
        """Return the run of a duel that counts: another one in a fresh kernel if it failed in the student's own."""
        kernels = self.kernels
        was_in_own = kernels.slot is not kernels.dueling
        kernels.drop(kernels.slot)
        if first.verdict.status == "passed" or not was_in_own:
            return first
        second = self.run_once(fresh=True)
        kernels.drop(kernels.slot)
        return second

    def is_own_fault(self, verdict: Verdict, needed: Collection[str]) -> bool:
        """Return whether a failure is clearly the answer's own: another run would say the same.

        Args:
            verdict: that of the first run.
            needed: exercises whose answers a second run would have.
        """
        failed = [each for each in needed if each not in self.kernels.passed]
        if verdict.status not in ("forbidden", "timeout", "killed"):
            return self.is_own_mistake(verdict, failed)
        # after a forbidden call, references stand in for all that is needed, so these answers are left out too
        kept = set() if verdict.status == "forbidden" else set(needed)
        left_out = self.kernels.slot.ran - {self.grade_id} - kept
        return self.is_own_mistake(verdict, failed) or not (left_out or failed)

    def is_own_mistake(self, verdict: Verdict, failed: list[str]) -> bool:
        """Return whether this is a known mistake or a wrong number by hand, without calls to failed earlier answers."""
        day = self.kernels.day
        used = used_names(self.kernels.answers[self.grade_id])
        calls = any(name in used for each in failed for name in find_ladder(day, each).names)
        by_hand = self.ladder.by_hand and verdict.status == "failed"
        known = {mistake.name for mistake in all_exercises(day)[self.grade_id].mistakes}
        return bool(verdict.mistake in known or by_hand) and not calls

    def run_once(self, fresh: bool = False, only: dict[str, str] | None = None) -> Run:
        """Run answer and check, and judge the evidence. Nothing that a student wrote makes this raise.

        Args:
            fresh: as for `NotebookKernels.prepare`.
            only: as for `NotebookKernels.prepare`.
        """
        kernels = self.kernels
        answer = kernels.answers[self.grade_id]
        raised: str | None = None  # the error of the answer cell
        seeded = False  # whether the kernel had had a seed before the answer ran
        clean = False  # whether it had nothing to hide then: no seed, no lent answer
        try:
            # the kernel, with all that the exercise builds on
            kernel = kernels.prepare(self.grade_id, fresh, only)
            slot = kernels.slot
            slot.ran.add(self.grade_id)
            seeded = slot.seeded
            clean = not (slot.lent or slot.seeded)
            # the answer, which may raise and still pass, and then the check
            raised = kernel.run(answer)
            judgement = self.run_check(slot, kernel)
        except KernelLost as lost:
            kernels.drop(kernels.slot)
            return Run(Judgement.plain(lost.status, f"{lost}.{stopped_at(lost.trace, answer)}"))
        except Exception as error:  # which a hostile kernel causes, in nbval or in the judge
            judgement = Judgement.plain("error", f"The check ended with {kind_of(type(error).__name__)}.")
        # later exercises use a kernel with lent answers again: no failed answer may stay in it
        if kernels.slot.lent and judgement.verdict.status != "passed":
            kernels.drop(kernels.slot)
        self.runs.append(Run(_with_causes(judgement, raised), clean, seeded))
        return self.runs[-1]

    def run_check(self, slot: KernelSlot, kernel: GradingKernel) -> Judgement:
        """Run the parts of the check until one does not pass, and return what was made of the last one that ran.

        Raises:
            KernelLost: if a part loses the kernel.
        """
        if self.ladder.duel:
            # the check asks the arena outside of the kernel, which has the other implementations
            self.arena = Arena(self.kernels.day)
            kernel.allow_questions(self.arena.answer, DUEL_SECONDS, self.arena.more_seconds)
        for number, part in enumerate(self.parts):
            kernel.run(USUAL)
            # the class's seed goes to the hidden part alone, which reads it once
            if number and self.seed:
                kernel.answer_once(self.seed)
                slot.seeded = True
            outputs = self.run_part(part)
            if errors := [each.ename for each in outputs if each.output_type == "error"]:
                return Judgement.plain("error", f"The check ended with {kind_of(str(errors[0]))}.")
            judgement = self.judge(evidence_in(outputs), evidence_in(part.outputs), may_quote=number == 0)
            if judgement.verdict.status != "passed":
                break
        return judgement

    def judge(self, submitted: list[Evidence], expected: list[Evidence], may_quote: bool) -> Judgement:
        """Compare the evidence of one part of the check with that of the official notebook.

        Args:
            may_quote: whether a message may have text from the kernel; that on a hidden test may not.
        """
        # both must be of the same parts of the same checks, in the same order
        labels = [(each.exercise, each.hidden) for each in submitted]
        if labels != [(each.exercise, each.hidden) for each in expected] or not expected:
            return Judgement.plain("error", "The check did not give the evidence that it should.")
        judge = judge_of(self.kernels.day, self.grade_id, self.seed)
        known = {mistake.name for mistake in judge.exercise.mistakes}
        for evidence, right in zip(submitted, expected, strict=True):
            evidence = self.arena.by_name(evidence) if self.arena else evidence
            plain = without_text(evidence, self.kernels.answers.values(), judge.ladder.forbidden)
            verdict = judge.judge(plain, right)
            if verdict.status == "passed":
                continue
            # the message on a known mistake has no need to quote
            if not may_quote or verdict.mistake in known:
                return Judgement(verdict, verdict)
            with_quotes = verdict if plain == evidence else judge.judge(evidence, right)
            return Judgement(verdict, with_quotes, depends_on_kernel=True)
        return Judgement(verdict, verdict)


def evidence_in(outputs: Iterable[Any]) -> list[Evidence]:
    """Return the evidence among a cell's outputs."""
    return [
        evidence for each in outputs if each.get("output_type") == "display_data" and (evidence := evidence_of(each))
    ]


def _with_causes(judgement: Judgement, raised: str | None) -> Judgement:
    """Return what was judged, with the answer cell's own error in place of the check's, and a note on a lost helper."""
    verdict = judgement.verdict
    with_quotes = judgement.with_quotes
    depends_on_kernel = judgement.depends_on_kernel
    if raised and verdict.status == "error":
        verdict = with_answer_error(verdict, f"{kind_of(raised)}.")
        with_quotes = with_answer_error(with_quotes, raised)
        depends_on_kernel = True
    if verdict.unknown_name:
        verdict = replace(verdict, message=verdict.message + LOST_HELPER)
    if with_quotes.unknown_name:
        with_quotes = replace(with_quotes, message=with_quotes.message + LOST_HELPER)
    return Judgement(verdict, with_quotes, depends_on_kernel)
