"""A pytest plugin that grades one notebook: nbval collects and runs its cells, and the judge works outside the kernel.

The official notebook supplies every cell except the answers. A check cell prints evidence, nbval passes it on, and
this module compares it with the evidence stored in the official notebook. If an exercise fails after an earlier one
failed, it gets a second try in a fresh kernel, where reference answers stand in for the earlier answers that failed, so
that nobody loses points twice for one mistake. A notebook's time is the work of its kernels, without the judge's.

A message may quote text only from a kernel with nothing to hide: no lent reference answer, and no class's seed. The
seed of an exercise comes and goes with its hidden check, but the answer to that exercise, or an earlier answer that
patched `draw_rungs`, can keep what it saw. So an exercise that fails after that runs again in a kernel that had no
seed, for its message alone. Beside a lent answer, a message has no text from the kernel (see `redact`). A student can
still learn of each exercise whether it passes and, beside a lent answer (which is there in compiled form), a number or
a shape. The known relation of wrong results to the right ones also shows what the hidden inputs were like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from course_utils.answer_key.key import check_parts, checks_of, provided_cells, reference_answers, with_seed
from course_utils.checks.cells import used_names
from course_utils.checks.judge.duel_server import Arena
from course_utils.checks.judge.exercises import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.checks.kernel.outcome import Evidence, evidence_of
from course_utils.errors import CourseError, KernelLost, one_line
from course_utils.grading.intake.collect import Submission
from course_utils.grading.redact import kind_of, lent_cell, stopped_at, with_answer_error, without_text
from course_utils.grading.results import Result, Settings
from course_utils.sandbox.kernel import GradingKernel
from course_utils.sandbox.limits import uncounted
from course_utils.sandbox.log import KernelLog
from course_utils.time_limits import DUEL_SECONDS, HURRIED, MOST_DUEL_SECONDS

PROPERTY = "course_result"
PATIENT = 2  # after so many timeouts the others of a class come first, and each exercise left has less time
USUAL = '__import__("course_utils.checks.kernel.settings", fromlist=["settings"]).use_usual_settings()'
LOST_HELPER = " No cell of the notebook defines it by that name."
UNSTEADY = "It fails here, and otherwise or not at all without what earlier answers left behind."


class GradePlugin:
    """Collects the graded notebook and keeps the results, by grade_id.

    Args:
        submission: With its day and its answers.
        settled: Verdicts that need no kernel, by grade_id.
        on_result: Called with each result as it comes.

    Raises:
        CourseError: If the submission's day is not known.
    """

    def __init__(
        self,
        submission: Submission,
        settings: Settings,
        settled: Mapping[str, Verdict],
        on_result: Callable[[Result], None] | None = None,
    ):
        if submission.day is None:
            raise CourseError(f"{submission.name}: its day is not known")
        self.submission = submission
        self.settings = settings
        self.settled = settled
        self.on_result = on_result
        self.day = submission.day
        self.answers = submission.answers
        self.answer_key = settings.answer_key.notebook(self.day)
        self.seeds = settings.answer_key.seeds(self.day)
        self.results: dict[str, Result] = {}

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GradedNotebook | None:
        if file_path.suffix != ".ipynb":
            return None
        return GradedNotebook.from_parent(parent, path=file_path, plugin=self)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call" and isinstance(item, ExerciseCell) and item.result:
            report.user_properties.append((PROPERTY, asdict(item.result)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, dict) and value["id"] not in self.results:
                self.results[value["id"]] = Result(**value)
                if self.on_result:
                    self.on_result(self.results[value["id"]])


@dataclass
class KernelSlot:
    """A place for a kernel: the kernel, if one runs, and what it has seen.

    Attributes:
        ran: Exercises whose answers it has run.
        lent: Exercises whose answer in this kernel is not the student's.
        seeded: Whether it has had a class's seed.
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


@dataclass(frozen=True)
class Judgement:
    """What the judge made of one run of a check.

    Attributes:
        verdict: The verdict. Its message quotes no text from the kernel.
        quoting: The same verdict. Its message quotes the kernel if that tells more.
        quotes: Whether the message that quotes depends on what the kernel says.
    """

    verdict: Verdict
    quoting: Verdict
    quotes: bool = False

    @classmethod
    def error(cls, message: str) -> Judgement:
        """Return an error in the course's own words."""
        verdict = Verdict("error", 0.0, message)
        return cls(verdict, verdict)


class GradedNotebook(IPyNbFile):
    """The official notebook with a student's answers in it."""

    def __init__(self, *args: Any, plugin: GradePlugin, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.plugin = plugin
        self.passed: dict[str, str] = {}
        self.harmless: dict[str, str] = {}  # answers that ran without losing their kernel
        self.own = KernelSlot()  # with the student's answers alone
        self.lending = KernelSlot()  # with lent answers
        self.dueling = KernelSlot()  # of a duel, unless it passes in the student's own: with the answers that it names
        self.slot = self.own  # the one of these three that is in use
        self.worked = 0.0  # seconds of work in the kernels that have ended, without those of duels
        self.timeouts = {grade_id for grade_id, verdict in plugin.settled.items() if verdict.status == "timeout"}
        self.stumbled = False
        self.trouble = ""  # why nothing can be graded: no kernel starts, or a given cell fails

    @property
    def kernel(self) -> GradingKernel | None:
        """The kernel in which nbval runs its cells."""
        return self.slot.kernel

    def setup(self) -> None:
        """Start the student's kernel; if a notebook was put off, its first exercise starts one instead."""
        if any(verdict.status == "passed" for verdict in self.plugin.settled.values()):
            return
        try:
            self.own.begin(self.launch())
        except (RuntimeError, OSError, CourseError) as error:
            self.trouble = f"Not graded: no kernel starts on this machine. {error}"

    def teardown(self) -> None:
        self.drop_kernels()

    def collect(self) -> Iterator[IPyNbCell]:
        """Yield the given cells, then the exercises; an exercise is its answer cell and its check cell together."""
        for number, cell in enumerate(provided_cells(self.plugin.answer_key)):
            yield ProvidedCell.from_parent(
                self, name=f"given {number}", cell_num=number, cell=cell, options=defaultdict(bool)
            )
        for number, (grade_id, cell) in enumerate(checks_of(self.plugin.answer_key).items()):
            options = defaultdict(bool, check=True)
            exercise = ExerciseCell.from_parent(self, name=grade_id, cell_num=number, cell=cell, options=options)
            exercise.parts = list(check_parts(cell))
            if find_ladder(self.plugin.day, grade_id).duel:
                exercise.parts = exercise.parts[1:]  # the hidden part has all implementations
            for hidden in exercise.parts[1:] if self.plugin.seeds.get(grade_id) else ():
                hidden.source = with_seed(hidden.source, ...)
            yield exercise

    def launch(self) -> GradingKernel:
        """Return a kernel that is ready; a cold one if the server that forks warm kernels is gone."""
        settings = self.plugin.settings
        limits = settings.limits
        seconds = self.remaining_seconds()
        if len(self.timeouts) >= PATIENT:
            cell_seconds = HURRIED * limits.cell_seconds
            idle_seconds = HURRIED * limits.idle_seconds
            limits = replace(limits, cell_seconds=cell_seconds, idle_seconds=idle_seconds)
        log = KernelLog(settings.log, self.plugin.submission.student)
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
        return self.plugin.settings.seconds - worked

    def drop_kernel(self, slot: KernelSlot) -> None:
        """Stop this kernel, if it runs, and add its work to the notebook's."""
        if slot.kernel is not None:
            self.worked += slot.kernel.charged
            slot.kernel.stop()
            slot.kernel = None

    def drop_kernels(self) -> None:
        """Stop all kernels; the next exercise starts a fresh one."""
        for slot in (self.own, self.lending, self.dueling):
            self.drop_kernel(slot)

    def needs(self, grade_id: str, lent: bool = False) -> dict[str, str]:
        """Return the answers that an exercise needs, in order: those in its `uses`, and those whose names it uses.

        The reference answer stands in for a declared answer that did not pass.

        Args:
            lent: Take the reference for every declared answer.
        """
        plugin = self.plugin
        references = reference_answers(plugin.answer_key)
        passed = {} if lent else self.passed
        # the answers that the exercise declares
        uses = all_exercises(plugin.day)[grade_id].uses
        needed = {each: passed.get(each, references[each]) for each in uses}
        # the student's other answers whose names occur in one of these, and so on for the names in those
        names_of = {each: set(find_ladder(plugin.day, each).names) for each in self.harmless if each != grade_id}
        unread = [plugin.answers[grade_id], *needed.values()]
        while unread:
            used = used_names(unread.pop())
            called = {each: self.harmless[each] for each, names in names_of.items() if names & used}
            unread += [source for each, source in called.items() if each not in needed]
            needed = called | needed
        # in the order of the notebook
        return {each: needed[each] for each in references if each in needed}

    def ensure_kernel(self, grade_id: str, fresh: bool = False, only: dict[str, str] | None = None) -> None:
        """Make the kernel for an exercise the one in use: the student's own if it runs, or else a new one.

        No answer has failed in a new kernel: it runs the given cells, the student's answers that passed, and the
        answers that this exercise needs. If some of these are lent, it is a kernel beside the student's own, because
        messages may quote the student's own kernel, so that kernel must hold no other answers. The next exercise that
        needs the same lent answers uses the kernel beside it again.

        Args:
            fresh: Start a new kernel even if the student's own runs.
            only: Answers by grade_id that a new kernel runs in place of those that passed or are needed.

        Raises:
            KernelLost: If a cell loses the kernel, or the notebook's time is used up.
        """
        needed = self.needs(grade_id) if only is None else only
        # after a failure, a duel gets a kernel of its own, with no answers but those that it names
        alone = find_ladder(self.plugin.day, grade_id).duel and (fresh or self.stumbled)
        if alone:
            only = needed
            fresh = True
        lent = {each for each, source in needed.items() if source != self.plugin.answers.get(each)}
        self.slot = self.slot_for(alone, lent, fresh)
        # a kernel with lent answers serves again for the same ones; any other one serves unless a fresh one is required
        serves = self.slot.lent == lent if self.slot is self.lending else not fresh
        if not serves:
            self.drop_kernel(self.slot)
        if self.remaining_seconds() < 0:
            raise KernelLost("timeout", "The time for the whole notebook was used up")
        kernel = self.kernel
        if kernel is None:
            answers = needed | self.passed if only is None else only
            kernel = self.launch()
            self.slot.begin(kernel, lent)
            for cell in provided_cells(self.plugin.answer_key):
                kernel.run(cell.source, provided=True)
        else:
            kernel.granted = self.remaining_seconds()
            # the student's own kernel has run the student's answers already
            answers = needed if self.slot.lent else {}
        # the answers that are new to this kernel, in the order of the notebook
        new = answers.keys() - self.slot.ran
        for each in reference_answers(self.plugin.answer_key):
            if each in new:
                kernel.run(lent_cell(answers[each]) if each in lent else answers[each])
                self.slot.ran.add(each)

    def slot_for(self, alone: bool, lent: set[str], fresh: bool) -> KernelSlot:
        """Return the slot of the kernel for an exercise: a duel's own, the one for lent answers, or the student's.

        Args:
            alone: Whether it is a duel that needs a kernel to itself.
            lent: The answers that must be lent. The student's own kernel, if it may be used, needs none of them.
            fresh: As for `ensure_kernel`.
        """
        if alone:
            return self.dueling
        if lent and (fresh or self.own.kernel is None):
            return self.lending
        return self.own


class ProvidedCell(IPyNbCell):
    """A cell that everybody is given. It is run but not compared, because its output is nobody's answer."""

    def runtest(self) -> None:
        book = self.parent
        if not book.trouble and book.kernel is not None:
            try:
                raised = book.kernel.run(self.cell.source, provided=True)
            except KernelLost as lost:
                raised = str(lost)
            if raised:
                book.trouble = f"Not graded: a cell that everybody is given fails on this machine. {raised}"
        if book.trouble:
            raise NbCellError(self.cell_num, book.trouble, self.cell.source)


class ExerciseCell(IPyNbCell):
    """The check of one exercise, run after the student's answer to it."""

    result: Result | None = None
    parts: Sequence[nbformat.NotebookNode] = ()  # of the check: the visible part, then the hidden tests
    arena: Arena | None = None  # the implementations, if the exercise is a duel

    def runtest(self) -> None:
        grade_id = self.name
        book = self.parent
        verdict = book.plugin.settled.get(grade_id)
        if verdict is None:
            if book.plugin.settings.hurry and len(book.timeouts) >= PATIENT:
                return
            verdict = Verdict("error", 0.0, book.trouble) if book.trouble else self.attempt(grade_id)
        points = float(self.cell.metadata.nbgrader.points)
        score = round(points * min(max(verdict.share, 0.0), 1.0), 2)
        message = one_line(verdict.message)
        failed = bool(book.trouble) and grade_id not in book.plugin.settled
        self.result = Result(
            grade_id, verdict.status, score, points, message, verdict.misconception, machine_failed=failed
        )
        book.timeouts |= {grade_id} if verdict.status == "timeout" else set()
        if verdict.status not in ("missing", "timeout", "killed"):
            book.harmless[grade_id] = book.plugin.answers[grade_id]
        if verdict.status == "passed":
            book.passed[grade_id] = book.plugin.answers[grade_id]
        else:
            book.stumbled = True
            raise NbCellError(self.cell_num, message, self.cell.source)

    def attempt(self, grade_id: str) -> Verdict:
        """Return the verdict on an exercise. Its message quotes no kernel that had something to hide."""
        book = self.parent
        # by the message of a verdict that quotes no kernel: the same verdict, if its kernel may be quoted
        self.quotable: dict[str, Verdict] = {}
        # the messages of verdicts that depend on a kernel that has had a seed
        self.doubtful: set[str] = set()
        duel = find_ladder(book.plugin.day, grade_id).duel
        with uncounted(MOST_DUEL_SECONDS) if duel else nullcontext():
            verdict = self.run_twice(grade_id)
        self.arena = None  # with all calls that it recorded
        if verdict.message in self.doubtful - self.quotable.keys():
            # once more for the message alone, in a kernel without a seed; the points are those of the first verdict
            book.drop_kernels()
            again = self.run_once()
            if again.status == verdict.status:
                verdict = replace(again, share=verdict.share)
            else:
                verdict = replace(verdict, message=UNSTEADY, misconception=None)
        quoting = self.quotable.get(verdict.message, verdict)
        return replace(quoting, status=verdict.status, share=verdict.share)

    def run_twice(self, grade_id: str) -> Verdict:
        """Run the exercise, run it again in a fresh kernel if it fails, and return the better verdict.

        There is no second run if the mistake was clearly made in this exercise. If the kernel was lost or a call was
        forbidden, the fresh kernel runs only the answers that this exercise needs, because a thread or an alarm that
        another answer left behind may have been the cause. If a call was forbidden, references also stand in for the
        earlier answers, because one of them may have made the call.
        """
        book = self.parent
        first = self.run_once()
        if self.arena:
            return self.end_duel(first)
        forbidden = first.status == "forbidden"
        lost = forbidden or first.status in ("timeout", "killed")
        # if no earlier exercise failed, the failure is this answer's own
        if first.status == "passed" or not (book.stumbled or lost):
            return first
        needed = book.needs(grade_id, lent=forbidden)
        failed = [each for each in needed if each not in book.passed]
        if self.is_own_slip(first, failed):
            return first
        # a lost kernel is no other answer's doing if the second one would run the same answers
        others = book.slot.ran - {grade_id} - (set() if forbidden else needed.keys())
        if lost and not others and not failed:
            return first
        # the second run; after a lost kernel, no other kernel may run beside the fresh one, which is not used again
        if lost:
            book.drop_kernels()
        second = self.run_once(fresh=True, only=needed if lost else None)
        if lost:
            book.drop_kernels()
        # of equal verdicts the second counts, but not after a timeout: there the first tells where the answer was
        if lost and not forbidden:
            return second if second.share > first.share else first
        return second if second.share >= first.share else first

    def end_duel(self, verdict: Verdict) -> Verdict:
        """Drop the kernel of a duel, which can ask questions now; repeat the duel if it failed in the student's own."""
        book = self.parent
        in_own = book.slot is not book.dueling
        book.drop_kernel(book.slot)
        if verdict.status != "passed" and in_own:
            verdict = self.run_once(fresh=True)
            book.drop_kernel(book.slot)
        return verdict

    def is_own_slip(self, verdict: Verdict, failed: list[str]) -> bool:
        """Return whether this is a known mistake or a wrong number by hand, without calls to failed earlier answers."""
        day = self.parent.plugin.day
        used = used_names(self.parent.plugin.answers[self.name])
        calls = any(name in used for each in failed for name in find_ladder(day, each).names)
        by_hand = find_ladder(day, self.name).by_hand and verdict.status == "failed"
        known = {mistake.name for mistake in all_exercises(day)[self.name].mistakes}
        return bool(verdict.misconception in known or by_hand) and not calls

    def run_once(self, fresh: bool = False, only: dict[str, str] | None = None) -> Verdict:
        """Run answer and check, and judge the evidence. Nothing that a student wrote makes this raise.

        The verdict quotes no text from the kernel. If the kernel had nothing to hide, `quotable` maps its message to
        the verdict that does quote. If the kernel has had a seed, `doubtful` gets a message that depends on the kernel.

        Args:
            fresh: As for `ensure_kernel`.
            only: As for `ensure_kernel`.
        """
        book = self.parent
        answer = book.plugin.answers[self.name]
        raised: str | None = None  # the error of the answer cell
        seeded = False  # whether the kernel had had a seed before the answer ran
        clean = False  # whether it had nothing to hide then: no seed, no lent answer
        self.judgement: Judgement | None = None
        try:
            # the kernel, with all that the exercise builds on
            book.ensure_kernel(self.name, fresh, only)
            slot = book.slot
            slot.ran.add(self.name)
            seeded = slot.seeded
            clean = not (slot.lent or slot.seeded)
            # the answer, which may raise and still pass, and then the check
            raised = book.kernel.run(answer)
            self.run_check(slot)
        except KernelLost as lost:
            book.drop_kernel(book.slot)
            return Verdict(lost.status, 0.0, f"{lost}.{stopped_at(lost.trace, answer)}")
        except Exception as error:  # a failed check, or an error that a hostile kernel causes in nbval
            if self.judgement is None:
                names = [out.ename for out in self.test_outputs or [] if out.output_type == "error"]
                kind = kind_of(str((names or [type(error).__name__])[0]))
                self.judgement = Judgement.error(f"The check ended with {kind}.")
        judgement = self.judgement or Judgement.error("The check gave no evidence.")
        # later exercises use a kernel with lent answers again: no failed answer may stay in it
        if book.slot.lent and judgement.verdict.status != "passed":
            book.drop_kernel(book.slot)
        judgement = _with_causes(judgement, raised)
        # whether the message may quote this kernel, or needs a run without the seed for that
        if clean:
            self.quotable[judgement.verdict.message] = judgement.quoting
        elif seeded and judgement.quotes:
            self.doubtful.add(judgement.verdict.message)
        return judgement.verdict

    def run_check(self, slot: KernelSlot) -> None:
        """Run the parts of the check, until one fails; each leaves its verdict in `judgement`.

        Raises:
            KernelLost: If a part loses the kernel.
            NbCellError: If a part fails.
        """
        book = self.parent
        if find_ladder(book.plugin.day, self.name).duel:
            # the check asks the arena outside of the kernel, which has the other implementations
            self.arena = arena = Arena(book.plugin.day)
            book.kernel.allow_questions(arena.answer, DUEL_SECONDS, arena.more_seconds)
        for hidden, part in enumerate(self.parts):
            self.hidden = hidden
            self.cell = part
            self.judgement = None
            book.kernel.run(USUAL)
            # the class's seed goes to the hidden part alone, which reads it once
            if hidden and (seed := book.plugin.seeds.get(self.name)):
                book.kernel.answer_once(seed)
                slot.seeded = True
            super().runtest()

    def compare_outputs(self, test: Sequence[Any], ref: Sequence[Any], skip_compare: Any = None) -> bool:
        """Judge the evidence in place of nbval's comparison: numbers have a tolerance, and other output is ignored."""
        submitted = evidence_in(test)
        expected = evidence_in(ref)
        self.comparison_traceback: list[str] = []
        # both must be of the same parts of the same checks, in the same order
        labels = [(each.exercise, each.hidden) for each in submitted]
        if labels != [(each.exercise, each.hidden) for each in expected] or not expected:
            self.judgement = Judgement.error("The check did not give the evidence that it should.")
            return False
        plugin = self.parent.plugin
        judge = judge_of(plugin.day, self.name, plugin.seeds.get(self.name, ""))
        known = {mistake.name for mistake in judge.exercise.mistakes}
        for evidence, right in zip(submitted, expected, strict=True):
            evidence = self.arena.by_name(evidence) if self.arena else evidence
            plain = without_text(evidence, plugin.answers.values(), judge.ladder.forbidden)
            verdict = judge.judge(plain, right)
            self.judgement = Judgement(verdict, verdict)
            if verdict.status != "passed":
                # a hidden test never quotes, and the message on a known mistake has no need to
                if not self.hidden and verdict.misconception not in known:
                    self.judgement = Judgement(verdict, verdict, quotes=True)
                    if plain != evidence:
                        self.judgement = Judgement(verdict, judge.judge(evidence, right), quotes=True)
                return False
        return True


def _with_causes(judgement: Judgement, raised: str | None) -> Judgement:
    """Return what was judged, with the answer cell's own error in place of the check's, and a note on a lost helper."""
    verdict = judgement.verdict
    quoting = judgement.quoting
    quotes = judgement.quotes
    if raised and verdict.status == "error":
        verdict = with_answer_error(verdict, f"{kind_of(raised)}.")
        quoting = with_answer_error(quoting, raised)
        quotes = True
    return Judgement(_with_helper_note(verdict), _with_helper_note(quoting), quotes)


def _with_helper_note(verdict: Verdict) -> Verdict:
    """Return the verdict; if a name was unknown, its message says that no cell of the notebook defines it."""
    return replace(verdict, message=verdict.message + LOST_HELPER) if verdict.unknown_name else verdict


def evidence_in(outputs: Iterable[Any]) -> list[Evidence]:
    """Return the evidence among a cell's outputs."""
    return [
        evidence for each in outputs if each.get("output_type") == "display_data" and (evidence := evidence_of(each))
    ]
