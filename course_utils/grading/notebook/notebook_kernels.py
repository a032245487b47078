"""The kernels in which the answers of one notebook run, and what each of them has seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from course_utils.answer_key.key import provided_cells, reference_answers
from course_utils.checks.cells import used_names
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.errors import KernelLost
from course_utils.grading.intake.collect import Submission
from course_utils.grading.redact import lent_cell
from course_utils.grading.results import Settings
from course_utils.sandbox.grading_kernel import GradingKernel
from course_utils.sandbox.log import KernelLog
from course_utils.time_limits import HURRIED

PATIENT = 2  # after so many timeouts the others of a class come first, and each exercise left has less time


@dataclass
class KernelSlot:
    """A place for a kernel: the kernel, if one runs, and what it has seen.

    Attributes:
        ran: exercises whose answers it has run.
        lent: exercises whose answer in this kernel is not the student's.
        seeded: whether it has had a class's seed.
    """

    kernel: GradingKernel | None = None
    ran: set[str] = field(default_factory=set)
    lent: set[str] = field(default_factory=set)
    seeded: bool = False

    def begin(self, kernel: GradingKernel, lent: Iterable[str] = ()) -> None:
        """Take over a kernel that has run nothing yet."""
        self.kernel = kernel
        self.ran = set()
        self.lent = set(lent)
        self.seeded = False


class NotebookKernels:
    """The kernels of one notebook. What a new one runs depends on how the exercises before went: see `note`.

    Args:
        submission: with its answers.
        day: its day.
        settings: how to grade.
        timeouts: exercises that ran out of time before the notebook was put off.
    """

    def __init__(self, submission: Submission, day: int, settings: Settings, timeouts: Iterable[str]):
        self.submission = submission
        self.day = day
        self.settings = settings
        self.answers = submission.answers
        self.notebook = settings.answer_key.notebook(day)
        self.passed: dict[str, str] = {}
        self.harmless: dict[str, str] = {}  # answers that ran without losing their kernel
        self.timeouts = set(timeouts)
        self.stumbled = False  # whether an exercise did not pass
        self.own = KernelSlot()  # with the student's answers alone
        self.lending = KernelSlot()  # with lent answers
        self.dueling = KernelSlot()  # of a duel, unless it passes in the student's own: with the answers that it names
        self.slot = self.own  # the one of these three that is in use
        self.worked = 0.0  # seconds of work in the kernels that have ended, without those of duels

    def note(self, grade_id: str, verdict: Verdict) -> None:
        """Remember how an exercise went."""
        if verdict.status == "timeout":
            self.timeouts.add(grade_id)
        if verdict.status not in ("missing", "timeout", "killed"):
            self.harmless[grade_id] = self.answers[grade_id]
        if verdict.status == "passed":
            self.passed[grade_id] = self.answers[grade_id]
        else:
            self.stumbled = True

    def launch(self) -> GradingKernel:
        """Return a kernel that is ready; a cold one if the server that forks warm kernels is gone."""
        settings = self.settings
        limits = settings.limits
        seconds = self.remaining_seconds()
        if len(self.timeouts) >= PATIENT:
            cell_seconds = HURRIED * limits.cell_seconds
            idle_seconds = HURRIED * limits.idle_seconds
            limits = replace(limits, cell_seconds=cell_seconds, idle_seconds=idle_seconds)
        log = KernelLog(settings.log, self.submission.student)
        try:
            kernel = GradingKernel(limits, seconds, settings.start, log)
        except OSError:
            kernel = GradingKernel(limits, seconds, replace(settings.start, warm=False), log)
        kernel.wait_until_ready()
        return kernel

    def remaining_seconds(self) -> float:
        """Return the seconds that the kernel in use may work in all, including what it has worked already."""
        others = (each.kernel for each in (self.own, self.lending, self.dueling) if each is not self.slot)
        worked = self.worked + sum(kernel.charged for kernel in others if kernel is not None)
        return self.settings.seconds - worked

    def drop(self, slot: KernelSlot) -> None:
        """Stop this kernel, if it runs, and add its work to the notebook's."""
        if slot.kernel is not None:
            self.worked += slot.kernel.charged
            slot.kernel.stop()
            slot.kernel = None

    def drop_all(self) -> None:
        """Stop all kernels; the next exercise starts a fresh one."""
        for slot in (self.own, self.lending, self.dueling):
            self.drop(slot)

    def needs(self, grade_id: str, lent: bool = False) -> dict[str, str]:
        """Return the answers that an exercise needs, in order: those in its `uses`, and those whose names it uses.

        The reference answer stands in for a declared answer that did not pass.

        Args:
            lent: take the reference for every declared answer.
        """
        references = reference_answers(self.notebook)
        passed = {} if lent else self.passed
        # the answers that the exercise declares
        uses = all_exercises(self.day)[grade_id].uses
        needed = {each: passed.get(each, references[each]) for each in uses}
        # the student's other answers whose names occur in one of these, and so on for the names in those
        names_of = {each: set(find_ladder(self.day, each).names) for each in self.harmless if each != grade_id}
        unread = [self.answers[grade_id], *needed.values()]
        while unread:
            used = used_names(unread.pop())
            called = {each: self.harmless[each] for each, names in names_of.items() if names & used}
            unread += [source for each, source in called.items() if each not in needed]
            needed = called | needed
        # in the order of the notebook
        return {each: needed[each] for each in references if each in needed}

    def prepare(self, grade_id: str, fresh: bool = False, only: dict[str, str] | None = None) -> GradingKernel:
        """Return the kernel for an exercise, with all that it builds on: the student's own if it runs, or a new one.

        No answer has failed in a new kernel: it runs the given cells, the student's answers that passed, and the
        answers that this exercise needs. If some of these are lent, it is a kernel beside the student's own, because
        messages may quote the student's own kernel, so that kernel must hold no other answers. The next exercise that
        needs the same lent answers uses the kernel beside it again.

        Args:
            fresh: start a new kernel even if the student's own runs.
            only: answers by grade_id that a new kernel runs in place of those that passed or are needed.

        Raises:
            KernelLost: if a cell loses the kernel, or the notebook's time is used up.
        """
        needed = self.needs(grade_id) if only is None else only
        lent = {each for each, source in needed.items() if source != self.answers.get(each)}
        is_duel_alone = find_ladder(self.day, grade_id).duel and (fresh or self.stumbled)
        self.slot = self.choose_slot(bool(lent), fresh, is_duel_alone)
        has_same_lent = self.slot is self.lending and self.slot.lent == lent
        may_go_on = self.slot is not self.lending and not fresh and not is_duel_alone
        if not (has_same_lent or may_go_on):
            self.drop(self.slot)
        if self.remaining_seconds() < 0:
            raise KernelLost("timeout", "The time for the whole notebook was used up")
        kernel = self.slot.kernel
        if kernel is None:
            kernel = self.launch()
            self.slot.begin(kernel, lent)
            for cell in provided_cells(self.notebook):
                kernel.run(cell.source, provided=True)
            runs_needed_only = is_duel_alone or only is not None
            answers = needed if runs_needed_only else needed | self.passed
        else:
            kernel.granted = self.remaining_seconds()
            # the student's own kernel has run the student's answers already
            answers = needed if self.slot.lent else {}
        self.run_new_answers(kernel, answers, lent)
        return kernel

    def choose_slot(self, lends: bool, fresh: bool, is_duel_alone: bool) -> KernelSlot:
        """Return the place whose kernel an exercise gets; the student's own needs no lent answers while it runs.

        Args:
            lends: whether the exercise needs lent answers.
            fresh: as for `prepare`.
            is_duel_alone: whether it is a duel after a failure, which runs with no answers but those that it names.
        """
        if is_duel_alone:
            return self.dueling
        if lends and (fresh or self.own.kernel is None):
            return self.lending
        return self.own

    def run_new_answers(self, kernel: GradingKernel, answers: dict[str, str], lent: set[str]) -> None:
        """Run those of the answers that the kernel in use has not run, in the order of the notebook.

        Raises:
            KernelLost: if one of them loses the kernel.
        """
        new = answers.keys() - self.slot.ran
        for each in reference_answers(self.notebook):
            if each in new:
                kernel.run(lent_cell(answers[each]) if each in lent else answers[each])
                self.slot.ran.add(each)
