"""A pytest plugin that grades one notebook: nbval's collector and cells, with the verdict taken outside the kernel.

The official notebook supplies every cell but the answers. A check cell prints evidence, nbval hands it over, and it is
compared here with the evidence stored in the official notebook. After a slip, an exercise that fails gets a second try
in a fresh kernel, where reference answers stand in for the earlier ones that failed: nobody pays twice for one slip.
The time of a notebook is what its kernels work; what the judge does is not charged.

A message quotes only a kernel in which there was nothing to tell: no answer that was lent, and no key of a class. The
key of an exercise comes with its hidden check and goes with it, but the answer to it, or an earlier one that patched
`use_keys`, can keep what it saw. So what fails after that is run again in a kernel that had no key, for its message
alone. Beside a lent answer a message has no text of the kernel's (see `quotes`). What a student can still draw from
it for each exercise: whether it passes, and with a lent answer, which is there compiled, a number or a shape too. What
hidden inputs were like shows in which known relation wrong results have to the right ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import nbformat
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from course_utils.checks.cells import used_names
from course_utils.checks.evidence import MIME, find_ladder
from course_utils.checks.exercise import all_exercises
from course_utils.checks.verdict import Verdict, judge

from .errors import CourseError, one_line
from .kernel import GradingKernel, KernelLost, Limits, Start
from .official import check_parts, checks_of, given_cells, reference_answers
from .quotes import keyed_cell, kind_of, lent_cell, without_text

PROPERTY = "course_result"
PATIENT = 2  # so many exercises may run out of time; then a class comes first, and each of the rest has half the time
LOST_HELPER = " No cell of the notebook defines it by that name."
UNSTEADY = "It fails here, and otherwise or not at all without what earlier answers left behind."


@dataclass(frozen=True)
class Result:
    """What became of one exercise."""

    id: str
    status: str
    score: float
    max_score: float
    message: str = ""
    misconception: str | None = None


@dataclass(frozen=True)
class Job:
    """One notebook to grade: the official one, the student's answers by grade_id, and verdicts that need no kernel.

    seconds: of work, for all of it. hurry: grade no more of a notebook in which PATIENT exercises ran out of time.
    """

    day: int
    official: nbformat.NotebookNode
    answers: dict[str, str]
    settled: dict[str, Verdict] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    seconds: float = 300.0
    start: Start = field(default_factory=Start)
    keys: Mapping[str, str] = field(default_factory=dict)
    hurry: bool = False


class GradePlugin:
    """Collects the graded notebook and keeps the results, by grade_id."""

    def __init__(self, job: Job, on_result=None):
        self.job, self.on_result = job, on_result
        self.results: dict[str, Result] = {}

    def pytest_collect_file(self, file_path, parent):
        if file_path.suffix == ".ipynb":
            return GradedNotebook.from_parent(parent, path=file_path, job=self.job)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "call" and getattr(item, "result", None):
            report.user_properties.append((PROPERTY, asdict(item.result)))
        return report

    def pytest_runtest_logreport(self, report):
        for name, value in report.user_properties:
            if name == PROPERTY and value["id"] not in self.results:
                self.results[value["id"]] = Result(**value)
                if self.on_result:
                    self.on_result(self.results[value["id"]])


class GradedNotebook(IPyNbFile):
    """The official notebook with a student's answers in it."""

    def __init__(self, *args, job: Job, **kwargs):
        super().__init__(*args, **kwargs)
        self.job = job
        self.passed: dict[str, str] = {}
        self.harmless: dict[str, str] = {}  # what ran and did not lose its kernel
        self.ran: set[str] = set()  # the answers that the kernel has run
        self.lent: set[str] = set()  # the exercises whose answer in the kernel is not the student's
        self.keyed = False  # whether it has had a key
        self.worked = 0.0  # seconds, in the kernels before this one
        self.timeouts = {grade_id for grade_id, verdict in job.settled.items() if verdict.status == "timeout"}
        self.stumbled = False
        self.trouble = ""  # why nothing can be graded, if a cell that everybody is given fails

    def setup(self) -> None:
        """Start the kernel, unless this goes on where it was put off: then it begins with what passed."""
        if any(verdict.status == "passed" for verdict in self.job.settled.values()):
            return
        try:
            self.kernel = self.launch()
        except (RuntimeError, OSError, CourseError) as error:
            self.trouble = f"Not graded: no kernel starts on this machine. {error}"

    def teardown(self) -> None:
        self.drop_kernel()

    def collect(self) -> Iterator[IPyNbCell]:
        """A given cell or an exercise each: an exercise is its answer cell and its check cell together."""
        for number, cell in enumerate(given_cells(self.job.official)):
            yield GivenCell.from_parent(
                self, name=f"given {number}", cell_num=number, cell=cell, options=defaultdict(bool)
            )
        for number, (grade_id, cell) in enumerate(checks_of(self.job.official).items()):
            options = defaultdict(bool, check=True)
            exercise = ExerciseCell.from_parent(self, name=grade_id, cell_num=number, cell=cell, options=options)
            exercise.parts = list(check_parts(cell))
            for hidden in exercise.parts[1:] if self.job.keys.get(grade_id) else ():
                hidden.source = keyed_cell(hidden.source, self.job.keys[grade_id])
            yield exercise

    def launch(self) -> GradingKernel:
        """A kernel that is ready; a cold one where the process that forks warm ones is gone."""
        job, left = self.job, self.job.seconds - self.worked
        limits = job.limits
        if len(self.timeouts) >= PATIENT:
            limits = replace(limits, cell_seconds=limits.cell_seconds / 2, idle_seconds=limits.idle_seconds / 2)
        try:
            kernel = GradingKernel(limits, left, job.start)
        except OSError:
            kernel = GradingKernel(limits, left, replace(job.start, warm=False))
        kernel.wait_until_ready()
        self.ran, self.lent, self.keyed = set(), set(), False
        return kernel

    def drop_kernel(self) -> None:
        """Stop the kernel, if there is one; the next exercise starts a fresh one."""
        if self.kernel is not None:
            self.worked += self.kernel.worked
            self.kernel.stop()
            self.kernel = None

    def needs(self, grade_id: str, lent: bool = False) -> dict[str, str]:
        """The answers that this one builds on, in order: those that the exercise says, and those that it names.

        Where one that the exercise says did not pass, or lent is given, the reference stands in for it.
        """
        job, uses = self.job, all_exercises(self.job.day)[grade_id].uses
        references = reference_answers(job.official)
        defined = {each: set(find_ladder(job.day, each).names) for each in self.harmless if each != grade_id}
        passed = {} if lent else self.passed
        needed = {each: passed.get(each, references[each]) for each in uses}
        unread = [job.answers[grade_id], *needed.values()]
        while unread:
            named = used_names(unread.pop())
            found = {each: self.harmless[each] for each, names in defined.items() if names & named}
            unread += [source for each, source in found.items() if each not in needed]
            needed = found | needed
        return {each: needed[each] for each in references if each in needed}

    def ensure_kernel(self, grade_id: str, only: dict[str, str] | None = None) -> None:
        """After `drop_kernel`: start a kernel that has run the given cells, the student's answers that passed, and what
        this one needs; or these answers only. Raises KernelLost.

        A kernel that was lent answers goes on only where this exercise would be lent the same: what others are told
        may quote theirs, and that holds no answer but the student's.
        """
        needed = self.needs(grade_id) if only is None else only
        lent = {each for each, source in needed.items() if source != self.job.answers.get(each)}
        if self.lent and (lent != self.lent or not needed.keys() <= self.ran):
            self.drop_kernel()
        if self.kernel is not None:
            return
        if self.worked > self.job.seconds:
            raise KernelLost("timeout", "The time for the whole notebook was used up")
        answers = needed | self.passed if only is None else only
        self.kernel = self.launch()
        for cell in given_cells(self.job.official):
            self.kernel.run(cell.source, given=True)
        for each in (each for each in reference_answers(self.job.official) if each in answers):
            self.kernel.run(lent_cell(answers[each]) if each in lent else answers[each])
            self.ran.add(each)
        self.lent = lent


class GivenCell(IPyNbCell):
    """A cell that everybody is given. It is run and not compared: what it prints is nobody's answer."""

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
    parts: Sequence[nbformat.NotebookNode] = ()  # of the check: what everybody sees, and the hidden tests

    def runtest(self) -> None:
        grade_id, book = self.name, self.parent
        verdict = book.job.settled.get(grade_id)
        if verdict is None:
            if book.job.hurry and len(book.timeouts) >= PATIENT:
                return
            verdict = Verdict("error", 0.0, book.trouble) if book.trouble else self.attempt(grade_id)
        points = float(self.cell.metadata.nbgrader.points)
        score = round(points * min(max(verdict.share, 0.0), 1.0), 4)
        message = one_line(verdict.message)
        self.result = Result(grade_id, verdict.status, score, points, message, verdict.misconception)
        book.timeouts |= {grade_id} if verdict.status == "timeout" else set()
        if verdict.status not in ("missing", "timeout", "killed"):
            book.harmless[grade_id] = book.job.answers[grade_id]
        if verdict.status == "passed":
            book.passed[grade_id] = book.job.answers[grade_id]
        else:
            book.stumbled = True
            raise NbCellError(self.cell_num, message, self.cell.source)

    def attempt(self, grade_id: str) -> Verdict:
        """The verdict on an exercise, with a message that quotes no kernel which had something to hide."""
        book, self.said, self.doubtful = self.parent, {}, set()
        verdict = self.run_twice(grade_id)
        if verdict.message in self.doubtful - self.said.keys():
            book.drop_kernel()
            again = self.run_once()
            told = again if again.status == verdict.status else replace(verdict, message=UNSTEADY, misconception=None)
            verdict = replace(told, share=verdict.share)
        return replace(self.said.get(verdict.message, verdict), status=verdict.status, share=verdict.share)

    def run_twice(self, grade_id: str) -> Verdict:
        """The better of a run in the kernel as it is and, after a slip, one in a fresh kernel.

        There is no second run for a slip that was clearly made here. Where the kernel was lost or a call was forbidden,
        the fresh one has none of the answers that this one does not need: a thread or an alarm left behind by one may
        have been the reason. Where a call was forbidden, references stand in for the earlier answers, which may have
        made it.
        """
        book, verdict = self.parent, self.run_once()
        forbidden = verdict.status == "forbidden"
        lost = forbidden or verdict.status in ("timeout", "killed")
        if verdict.status == "passed" or not (book.stumbled or lost):
            return verdict
        needed = book.needs(grade_id, lent=forbidden)
        failed = [each for each in needed if each not in book.passed]
        others = book.ran - {grade_id} - (set() if forbidden else needed.keys())
        if self.is_own_slip(verdict, failed) or (lost and not others and not failed):
            return verdict
        book.drop_kernel()
        second = self.run_once(only=needed if lost else None)
        if lost:
            book.drop_kernel()
        kept = lost and not forbidden  # the first reason, unless it may be another answer's
        better = second.share > verdict.share if kept else second.share >= verdict.share
        return second if better else verdict

    def is_own_slip(self, verdict: Verdict, failed: list[str]) -> bool:
        """Whether this is a known mistake, or wrong numbers by hand, with no call to an earlier answer that failed."""
        day, named = self.parent.job.day, used_names(self.parent.job.answers[self.name])
        calls = any(name in named for used in failed for name in find_ladder(day, used).names)
        by_hand = find_ladder(day, self.name).entries and verdict.status == "failed"
        known = {mistake.name for mistake in all_exercises(day)[self.name].mistakes}
        return bool(verdict.misconception in known or by_hand) and not calls

    def run_once(self, only: dict[str, str] | None = None) -> Verdict:
        """Run answer and check, and judge what came out. Never raises for what the student wrote.

        only: the answers that a fresh kernel runs before this one. The verdict quotes no text. Where the kernel had
        nothing to hide, `said` has the one that does, by its message; where it has had a key, `doubtful` has the
        message if it tells anything that is the kernel's.
        """
        book, raised, keyed, clean = self.parent, None, False, False
        self.verdict = self.full = None
        self.quotes = False
        try:
            book.ensure_kernel(self.name, only)
            book.ran.add(self.name)
            keyed, clean = book.keyed, not (book.lent or book.keyed)
            raised = book.kernel.run(book.job.answers[self.name])
            for hidden, part in enumerate(self.parts):
                self.hidden, self.cell, self.verdict, self.full = hidden, part, None, None
                book.keyed = book.keyed or bool(hidden and book.job.keys.get(self.name))
                super().runtest()
        except KernelLost as lost:
            book.drop_kernel()
            return Verdict(lost.status, 0.0, f"{lost}.")
        except Exception as error:  # a check that failed, or whatever a hostile kernel makes nbval stumble over
            if self.verdict is None:
                ended = [out.ename for out in self.test_outputs or [] if out.output_type == "error"]
                kind = kind_of(str((ended or [type(error).__name__])[0]))
                self.verdict = Verdict("error", 0.0, f"The check ended with {kind}.")
        verdict = self.verdict or Verdict("error", 0.0, "The check gave no evidence.")
        full = self.full or verdict
        if raised and verdict.status == "error":
            self.quotes = True
            verdict = replace(verdict, message=f"The answer cell raised {kind_of(raised)}.")
            full = replace(full, message=f"The answer cell raised {raised}")
        verdict, full = (
            replace(each, message=each.message + LOST_HELPER) if "NameError: name" in each.message else each
            for each in (verdict, full)
        )
        if clean:
            self.said[verdict.message] = full
        elif keyed and self.quotes:
            self.doubtful.add(verdict.message)
        return verdict

    def compare_outputs(self, test, ref, skip_compare=None) -> bool:
        """nbval's comparison, of evidence only: numbers with a tolerance, and whatever else was printed left alone."""
        given, wanted = evidence_in(test), evidence_in(ref)
        self.comparison_traceback = []
        labels = [[(e.get("exercise"), e.get("hidden")) for e in found] for found in (given, wanted)]
        if labels[0] != labels[1] or not wanted:
            self.verdict = Verdict("error", 0.0, "The check did not give the evidence that it should.")
            return False
        day, known = self.parent.job.day, {each.name for each in all_exercises(self.parent.job.day)[self.name].mistakes}
        for evidence, expected in zip(given, wanted, strict=True):
            forbidden = find_ladder(day, self.name).forbidden
            plain = without_text(evidence, self.parent.job.answers.values(), forbidden)
            self.verdict = self.full = judge(day, self.name, plain, expected)
            if self.verdict.status != "passed":
                self.quotes = not self.hidden and self.verdict.misconception not in known
                if self.quotes and plain != evidence:
                    self.full = judge(day, self.name, evidence, expected)
                return False
        return True


def evidence_in(outputs) -> list[dict]:
    """The evidence among a cell's outputs."""
    found = [output.get("data", {}).get(MIME) for output in outputs if output.get("output_type") == "display_data"]
    return [evidence for evidence in found if isinstance(evidence, dict)]
