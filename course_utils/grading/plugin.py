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

from course_utils.answer_key.key import check_parts, checks_of, given_cells, reference_answers, with_seed
from course_utils.checks.judge.cells import used_names
from course_utils.checks.judge.duel_server import Arena
from course_utils.checks.judge.exercises import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.checks.kernel.outcome import Evidence, evidence_of
from course_utils.errors import CourseError, KernelLost, one_line
from course_utils.grading.intake.collect import Submission
from course_utils.grading.redact import kind_of, lent_cell, of_answer_cell, stopped_at, without_text
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
        self.submission, self.settings, self.settled, self.on_result = submission, settings, settled, on_result
        self.day, self.answers = submission.day, submission.answers
        self.answer_key, self.seeds = settings.answer_key.notebook(self.day), settings.answer_key.seeds(self.day)
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
class Held:
    """A kernel, if one runs, and what it has seen.

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
        self.kernel, self.ran, self.lent, self.seeded = kernel, set(), set(lent), False


class GradedNotebook(IPyNbFile):
    """The official notebook with a student's answers in it."""

    def __init__(self, *args: Any, plugin: GradePlugin, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.plugin = plugin
        self.passed: dict[str, str] = {}
        self.harmless: dict[str, str] = {}  # answers that ran without losing their kernel
        self.own, self.lending = Held(), Held()  # with the student's answers alone; with lent ones
        self.dueling = Held()  # of a duel, unless it passes in the student's own: with the answers that it names
        self.held = self.own  # the one of these that is in use
        self.worked = 0.0  # seconds of work in the kernels that have ended, without those of duels
        self.timeouts = {grade_id for grade_id, verdict in plugin.settled.items() if verdict.status == "timeout"}
        self.stumbled = False
        self.trouble = ""  # why nothing can be graded: no kernel starts, or a given cell fails

    @property
    def kernel(self) -> GradingKernel | None:
        """The kernel in which nbval runs its cells."""
        return self.held.kernel

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
        for number, cell in enumerate(given_cells(self.plugin.answer_key)):
            yield GivenCell.from_parent(
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
        settings, left, limits = self.plugin.settings, self.left(), self.plugin.settings.limits
        if len(self.timeouts) >= PATIENT:
            cell, idle = HURRIED * limits.cell_seconds, HURRIED * limits.idle_seconds
            limits = replace(limits, cell_seconds=cell, idle_seconds=idle)
        log = KernelLog(settings.log, self.plugin.submission.student)
        try:
            kernel = GradingKernel(limits, left, settings.start, log)
        except OSError:
            kernel = GradingKernel(limits, left, replace(settings.start, warm=False), log)
        kernel.wait_until_ready()
        return kernel

    def left(self) -> float:
        """Return the seconds that the kernel in use may work in all, including what it has worked already."""
        others = (each.kernel for each in (self.own, self.lending, self.dueling) if each is not self.held)
        worked = self.worked + sum(kernel.charged for kernel in others if kernel is not None)
        return self.plugin.settings.seconds - worked

    def drop_kernel(self, held: Held) -> None:
        """Stop this kernel, if it runs, and add its work to the notebook's."""
        if held.kernel is not None:
            self.worked += held.kernel.charged
            held.kernel.stop()
            held.kernel = None

    def drop_kernels(self) -> None:
        """Stop all kernels; the next exercise starts a fresh one."""
        for held in (self.own, self.lending, self.dueling):
            self.drop_kernel(held)

    def needs(self, grade_id: str, lent: bool = False) -> dict[str, str]:
        """Return the answers that an exercise needs, in order: those in its `uses`, and those whose names it uses.

        The reference answer stands in for a declared answer that did not pass.

        Args:
            lent: Take the reference for every declared answer.
        """
        plugin, uses = self.plugin, all_exercises(self.plugin.day)[grade_id].uses
        references = reference_answers(plugin.answer_key)
        defined = {each: set(find_ladder(plugin.day, each).names) for each in self.harmless if each != grade_id}
        passed = {} if lent else self.passed
        needed = {each: passed.get(each, references[each]) for each in uses}
        unread = [plugin.answers[grade_id], *needed.values()]
        while unread:
            named = used_names(unread.pop())
            found = {each: self.harmless[each] for each, names in defined.items() if names & named}
            unread += [source for each, source in found.items() if each not in needed]
            needed = found | needed
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
        if duel := find_ladder(self.plugin.day, grade_id).duel and (fresh or self.stumbled):
            only, fresh = needed, True
        lent = {each for each, source in needed.items() if source != self.plugin.answers.get(each)}
        beside = self.lending if lent and (fresh or self.own.kernel is None) else self.own
        self.held = self.dueling if duel else beside
        if fresh if self.held is not self.lending else self.held.lent != lent:
            self.drop_kernel(self.held)
        if self.left() < 0:
            raise KernelLost("timeout", "The time for the whole notebook was used up")
        kernel = self.kernel
        if kernel is None:
            answers = needed | self.passed if only is None else only
            kernel = self.launch()
            self.held.begin(kernel, lent)
            for cell in given_cells(self.plugin.answer_key):
                kernel.run(cell.source, given=True)
        else:
            kernel.granted = self.left()
            answers = needed if self.held.lent else {}
        for each in (
            each for each in reference_answers(self.plugin.answer_key) if each in answers.keys() - self.held.ran
        ):
            kernel.run(lent_cell(answers[each]) if each in lent else answers[each])
            self.held.ran.add(each)


class GivenCell(IPyNbCell):
    """A cell that everybody is given. It is run but not compared, because its output is nobody's answer."""

    def runtest(self) -> None:
        book = self.parent
        if not book.trouble and book.kernel is not None:
            try:
                raised = book.kernel.run(self.cell.source, given=True)
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
        grade_id, book = self.name, self.parent
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
        self.said: dict[str, Verdict] = {}
        self.doubtful: set[str] = set()
        duel = find_ladder(book.plugin.day, grade_id).duel
        with uncounted(MOST_DUEL_SECONDS) if duel else nullcontext():
            verdict = self.run_twice(grade_id)
        self.arena = None  # with all calls that it kept
        if verdict.message in self.doubtful - self.said.keys():
            book.drop_kernels()
            again = self.run_once()
            told = again if again.status == verdict.status else replace(verdict, message=UNSTEADY, misconception=None)
            verdict = replace(told, share=verdict.share)
        return replace(self.said.get(verdict.message, verdict), status=verdict.status, share=verdict.share)

    def run_twice(self, grade_id: str) -> Verdict:
        """Run the exercise, after a failure also in a fresh kernel, and return the better verdict.

        There is no second run if the mistake was clearly made in this exercise. If the kernel was lost or a call was
        forbidden, the fresh kernel runs only the answers that this exercise needs, because a thread or an alarm that
        another answer left behind may have been the cause. If a call was forbidden, references also stand in for the
        earlier answers, because one of them may have made the call.
        """
        book, verdict = self.parent, self.run_once()
        if self.arena:  # its kernel can ask questions now: no other exercise runs there
            own = book.held is not book.dueling
            book.drop_kernel(book.held)
            if verdict.status != "passed" and own:
                verdict = self.run_once(fresh=True)
                book.drop_kernel(book.held)
            return verdict
        forbidden = verdict.status == "forbidden"
        lost = forbidden or verdict.status in ("timeout", "killed")
        if verdict.status == "passed" or not (book.stumbled or lost):
            return verdict
        needed = book.needs(grade_id, lent=forbidden)
        failed = [each for each in needed if each not in book.passed]
        others = book.held.ran - {grade_id} - (set() if forbidden else needed.keys())
        if self.is_own_slip(verdict, failed) or (lost and not others and not failed):
            return verdict
        if lost:
            book.drop_kernels()
        second = self.run_once(fresh=True, only=needed if lost else None)
        if lost:
            book.drop_kernels()
        kept = lost and not forbidden  # the first, unless another answer may be its cause
        better = second.share > verdict.share if kept else second.share >= verdict.share
        return second if better else verdict

    def is_own_slip(self, verdict: Verdict, failed: list[str]) -> bool:
        """Return whether this is a known mistake or a wrong number by hand, without calls to failed earlier answers."""
        day, named = self.parent.plugin.day, used_names(self.parent.plugin.answers[self.name])
        calls = any(name in named for used in failed for name in find_ladder(day, used).names)
        by_hand = find_ladder(day, self.name).by_hand and verdict.status == "failed"
        known = {mistake.name for mistake in all_exercises(day)[self.name].mistakes}
        return bool(verdict.misconception in known or by_hand) and not calls

    def run_once(self, fresh: bool = False, only: dict[str, str] | None = None) -> Verdict:
        """Run answer and check, and judge the evidence. Nothing that a student wrote makes this raise.

        The verdict quotes no text from the kernel. If the kernel had nothing to hide, `said` maps its message to the
        verdict that does quote. If the kernel has had a seed, `doubtful` gets a message that depends on the kernel.

        Args:
            fresh: As for `ensure_kernel`.
            only: As for `ensure_kernel`.
        """
        book, raised, seeded, clean = self.parent, None, False, False
        self.verdict: Verdict | None = None
        self.full: Verdict | None = None
        self.quotes = False
        try:
            book.ensure_kernel(self.name, fresh, only)
            held = book.held
            held.ran.add(self.name)
            seeded, clean = held.seeded, not (held.lent or held.seeded)
            raised = book.kernel.run(book.plugin.answers[self.name])
            if find_ladder(book.plugin.day, self.name).duel:
                self.arena = arena = Arena(book.plugin.day)
                book.kernel.let_ask(arena.answer, DUEL_SECONDS, arena.more_seconds)
            for hidden, part in enumerate(self.parts):
                self.hidden, self.cell, self.verdict, self.full = hidden, part, None, None
                book.kernel.run(USUAL)
                if hidden and (seed := book.plugin.seeds.get(self.name)):
                    book.kernel.tell_once(seed)
                    held.seeded = True
                super().runtest()
        except KernelLost as lost:
            book.drop_kernel(book.held)
            return Verdict(lost.status, 0.0, f"{lost}.{stopped_at(lost.trace, book.plugin.answers[self.name])}")
        except Exception as error:  # a failed check, or an error that a hostile kernel causes in nbval
            if self.verdict is None:
                ended = [out.ename for out in self.test_outputs or [] if out.output_type == "error"]
                kind = kind_of(str((ended or [type(error).__name__])[0]))
                self.verdict = Verdict("error", 0.0, f"The check ended with {kind}.")
        verdict = self.verdict or Verdict("error", 0.0, "The check gave no evidence.")
        if book.held.lent and verdict.status != "passed":
            book.drop_kernel(book.held)
        full = self.full or verdict
        if raised and verdict.status == "error":
            self.quotes = True
            verdict, full = (
                of_answer_cell(each, told) for each, told in ((verdict, f"{kind_of(raised)}."), (full, raised))
            )
        verdict, full = (
            replace(each, message=each.message + LOST_HELPER) if each.unknown_name else each for each in (verdict, full)
        )
        if clean:
            self.said[verdict.message] = full
        elif seeded and self.quotes:
            self.doubtful.add(verdict.message)
        return verdict

    def compare_outputs(self, test: Sequence[Any], ref: Sequence[Any], skip_compare: Any = None) -> bool:
        """Judge the evidence in place of nbval's comparison: numbers have a tolerance, and other output is ignored."""
        given, wanted = evidence_in(test), evidence_in(ref)
        self.comparison_traceback: list[str] = []
        labels = [[(e.exercise, e.hidden) for e in found] for found in (given, wanted)]
        if labels[0] != labels[1] or not wanted:
            self.verdict = Verdict("error", 0.0, "The check did not give the evidence that it should.")
            return False
        plugin = self.parent.plugin
        judged = judge_of(plugin.day, self.name, plugin.seeds.get(self.name, ""))
        known = {mistake.name for mistake in judged.exercise.mistakes}
        for evidence, expected in zip(given, wanted, strict=True):
            evidence = self.arena.named(evidence) if self.arena else evidence
            plain = without_text(evidence, plugin.answers.values(), judged.ladder.forbidden)
            verdict = self.verdict = self.full = judged.judge(plain, expected)
            if verdict.status != "passed":
                self.quotes = not self.hidden and verdict.misconception not in known
                if self.quotes and plain != evidence:
                    self.full = judged.judge(evidence, expected)
                return False
        return True


def evidence_in(outputs: Iterable[Any]) -> list[Evidence]:
    """Return the evidence among a cell's outputs."""
    return [
        evidence for each in outputs if each.get("output_type") == "display_data" and (evidence := evidence_of(each))
    ]
