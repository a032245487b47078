"""Where our grader's time goes: the same class in this process, with a clock on the steps. The package has none."""

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nbval.plugin import IPyNbCell

from course_utils.grading import grade
from course_utils.grading.intake.collect import Submission
from course_utils.grading.notebook.attempts import Attempt
from course_utils.grading.notebook.notebook_kernels import NotebookKernels
from course_utils.grading.notebook.plugin import ProvidedCell
from course_utils.grading.reports import report
from course_utils.sandbox.grading_kernel import GradingKernel
from peers.graders import DAY

# A step's seconds are its own: those of a step inside it are not counted twice. Inside a closed step no other begins.
STEPS = {
    "reading the submission": (grade, ("read_answers",)),
    "pytest and nbval": (grade, ("run_notebook",)),
    "starting the kernel": (NotebookKernels, ("launch",)),
    "given cells": (ProvidedCell, ("runtest",)),
    "fresh kernels after a slip": (NotebookKernels, ("prepare",)),
    "answer cells": (GradingKernel, ("run",)),
    "checks": (IPyNbCell, ("runtest",)),
    "comparing": (Attempt, ("judge",)),
    "stopping the kernel": (NotebookKernels, ("drop",)),
    "reports": (report, ("write_reports",)),
}
OPEN = {"pytest and nbval", "checks"}
REST = "the rest"


class Clock:
    """Seconds by step."""

    def __init__(self):
        self.seconds: Counter[str] = Counter()
        self.steps: list[str] = [REST]

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the time of this block for a step, and not for the one it lies in."""
        if self.steps[-1] not in OPEN | {REST}:
            yield
            return
        began = time.perf_counter()
        outer = self.steps[-1]
        self.steps.append(name)
        try:
            yield
        finally:
            self.steps.pop()
            taken = time.perf_counter() - began
            self.seconds[name] += taken
            self.seconds[outer] -= taken


def where_time_goes(files: dict[str, Path], out: Path) -> dict[str, float]:
    """Seconds a submission by step, of grading these files one after the other and writing the reports to `out`."""
    clock = Clock()
    began = time.perf_counter()
    with contextlib.ExitStack() as undo:
        for name, (owner, functions) in STEPS.items():
            for function in functions:
                _put_clock_on(owner, function, clock, name, undo)
        graded = [grade.grade_submission(Submission(student, path, DAY)) for student, path in files.items()]
        report.write_reports(graded, out)
    clock.seconds[REST] += time.perf_counter() - began
    return {name: clock.seconds[name] / len(files) for name in (*STEPS, REST)}


def _put_clock_on(owner, function: str, clock: Clock, name: str, undo: contextlib.ExitStack) -> None:
    original = getattr(owner, function)

    @functools.wraps(original)
    def timed(*args, **kwargs):
        with clock.step(name):
            return original(*args, **kwargs)

    undo.callback(setattr, owner, function, original)
    setattr(owner, function, timed)
