"""A pytest plugin that grades one notebook: nbval runs its cells, and the judge works outside the kernel.

The official notebook supplies every cell except the answers. A check cell prints evidence, nbval passes it on, and an
`Attempt` compares it with the evidence stored in the official notebook. A notebook's time is the work of its kernels,
without the judge's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from course_utils.answer_key.key import check_parts, checks_of, provided_cells, with_seed
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.errors import CourseError, KernelLost
from course_utils.grading.intake.collect import Submission
from course_utils.grading.notebook.attempts import Attempt
from course_utils.grading.notebook.notebook_kernels import PATIENT, NotebookKernels
from course_utils.grading.results import Result, Settings
from course_utils.sandbox.grading_kernel import GradingKernel


class GradePlugin:
    """Collects the graded notebook and keeps the results, by grade_id.

    Args:
        submission: with its day and its answers.
        settled: verdicts that need no kernel, by grade_id.
        on_result: called with each result as it comes.

    Raises:
        CourseError: if the submission's day is not known.
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
        self.notebook = settings.answer_key.notebook(self.day)
        self.seeds = settings.answer_key.seeds(self.day)
        self.results: dict[str, Result] = {}

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GradedNotebook | None:
        if file_path.suffix != ".ipynb":
            return None
        return GradedNotebook.from_parent(parent, path=file_path, plugin=self)


class GradedNotebook(IPyNbFile):
    """The official notebook with a student's answers in it."""

    def __init__(self, *args: Any, plugin: GradePlugin, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.plugin = plugin
        timeouts = [grade_id for grade_id, verdict in plugin.settled.items() if verdict.status == "timeout"]
        self.kernels = NotebookKernels(plugin.submission, plugin.day, plugin.settings, timeouts)
        self.trouble = ""  # why nothing can be graded: no kernel starts, or a given cell fails

    @property
    def kernel(self) -> GradingKernel | None:
        """The kernel in which nbval runs its cells."""
        return self.kernels.slot.kernel

    def setup(self) -> None:
        """Start the student's kernel; if a notebook was put off, its first exercise starts one instead."""
        if any(verdict.status == "passed" for verdict in self.plugin.settled.values()):
            return
        try:
            self.kernels.own.begin(self.kernels.launch())
        except (RuntimeError, OSError, CourseError) as error:
            self.trouble = f"Not graded: no kernel starts on this machine. {error}"

    def teardown(self) -> None:
        self.kernels.drop_all()

    def collect(self) -> Iterator[IPyNbCell]:
        """Yield the given cells, then the exercises; an exercise is its answer cell and its check cell together."""
        notebook = self.plugin.notebook
        for number, cell in enumerate(provided_cells(notebook)):
            yield ProvidedCell.from_parent(
                self, name=f"given {number}", cell_num=number, cell=cell, options=defaultdict(bool)
            )
        for number, (grade_id, cell) in enumerate(checks_of(notebook).items()):
            exercise = ExerciseCell.from_parent(
                self, name=grade_id, cell_num=number, cell=cell, options=defaultdict(bool)
            )
            exercise.parts = list(check_parts(cell))
            if find_ladder(self.plugin.day, grade_id).duel:
                exercise.parts = exercise.parts[1:]  # the hidden part has all implementations
            for hidden in exercise.parts[1:] if self.plugin.seeds.get(grade_id) else ():
                hidden.source = with_seed(hidden.source, ...)
            yield exercise


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
                book.trouble = f"Not graded: a cell that every student gets fails on this machine. {raised}"
        if book.trouble:
            raise NbCellError(self.cell_num, book.trouble, self.cell.source)


class ExerciseCell(IPyNbCell):
    """The check of one exercise, run after the student's answer to it."""

    parts: Sequence[nbformat.NotebookNode] = ()  # of the check: the visible part, then the hidden tests

    def runtest(self) -> None:
        grade_id = self.name
        book = self.parent
        plugin = book.plugin
        settled = plugin.settled.get(grade_id)
        if settled is None and plugin.settings.defer_slow and len(book.kernels.timeouts) >= PATIENT:
            return
        failed = bool(book.trouble) and settled is None
        if settled is not None:
            verdict = settled
        elif failed:
            verdict = Verdict("error", 0.0, book.trouble)
        else:
            seed = plugin.seeds.get(grade_id, "")
            verdict = Attempt(book.kernels, grade_id, self.parts, self.run_part, seed).decide()
        result = Result.of(grade_id, float(self.cell.metadata.nbgrader.points), verdict, machine_failed=failed)
        book.kernels.note(grade_id, verdict)
        plugin.results[grade_id] = result
        if plugin.on_result:
            plugin.on_result(result)
        if verdict.status != "passed":
            raise NbCellError(self.cell_num, result.message, self.cell.source)

    def run_part(self, part: nbformat.NotebookNode) -> Sequence[nbformat.NotebookNode]:
        """Run a part of the check with nbval and return its outputs, the last of which may be an error."""
        self.cell = part
        try:
            super().runtest()  # compares nothing, because the options do not say `check`
        except NbCellError:
            if not any(each.output_type == "error" for each in self.test_outputs):
                raise
        return self.test_outputs
