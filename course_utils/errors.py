"""All exceptions of the course, except those that are raised beside the learner's code.

    CourseError           the user gave something wrong: one line on stderr, exit status 2
    ├── SourceError         the source of a notebook is wrong
    ├── NotConfined         kernels cannot be confined on this machine as required
    ├── Unreadable          a submission is not a notebook of its day
    └── TooFewPoints        the grades stay below --fail-under; exit status 1
    Signal                one part of the course tells another, which handles it; no user sees it
    ├── CellFailed          to the build: a cell does not do what a built notebook needs
    ├── RegionError         to a reader of sources: a mark around a solution or hidden tests is wrong
    ├── KernelLost          to the grader: the kernel can run no more cells
    └── PutOff              to the grading of a class: this submission waits until the others are graded

In a learner's notebook, `checks.interactive` raises NotYet, and `checks.judge.time_limit` stops an answer with
TookTooLong. A grading kernel does not hold this module; its own exception is `checks.kernel.result_numbers.BadResult`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# What GitHub Actions and Azure Pipelines read as a command in the output of a job: ::name …:: at the start of a line,
# even of a wrapped one, and ##[name] or ##vso[name] anywhere.
_COMMAND_OF_CI = re.compile(r"([:#])(?=:[A-Za-z][\w-]*(?: .*?)?::|#\w*\[)")


def one_line(text: str, longest: int = 600) -> str:
    """Return text from a submission as one line, cut to `longest` characters.

    Control and formatting characters and unpaired surrogates become spaces. A space also breaks up whatever a CI
    workflow would read as a command, because the line may be printed in the output of one.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * longest]).split())
    line = _COMMAND_OF_CI.sub(r"\1 ", line)
    return line if len(line) <= longest else f"{line[:longest]}…"


def spell_out(text: str) -> str:
    """Return text in which each unprintable character, such as one that reverses the text, is replaced by its code."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"⟦U+{ord(c):04X}⟧" for c in text.replace("\r\n", "\n"))


class CourseError(Exception):
    """The user gave something wrong. The message says what was given, what was expected and what to do.

    Attributes:
        exit_code: exit status of a command that ends with this error.
    """

    exit_code = 2


class SourceError(CourseError):
    """The source of a notebook is wrong. The message reads `file:line: what is wrong; what to do`."""

    def __init__(self, path: Path | str, line: int, what: str, todo: str):
        super().__init__(f"{path}:{line}: {what}; {todo}")


class NotConfined(CourseError):
    """Kernels cannot be confined on this machine as required."""


class Unreadable(CourseError):
    """A submission is not a notebook of the day it should be. The message is one line."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


class TooFewPoints(CourseError):
    """The graded notebooks reach a smaller share of the points than --fail-under asks for."""

    exit_code = 1


class Signal(Exception):
    """A message from one part of the course to another, which handles it; no user sees it."""


class CellFailed(Signal):
    """A cell did not do what a built notebook needs.

    Attributes:
        cell: index of the cell.
        line: index of the line in the cell, from 0.
        what: what happened.
        todo: what to do.
    """

    def __init__(self, cell: int, line: int, what: str, todo: str):
        super().__init__(f"{what}; {todo}")
        self.cell = cell
        self.line = line
        self.what = what
        self.todo = todo


class RegionError(Signal):
    """A mark around a solution or hidden tests is wrong.

    Attributes:
        line: index of the mark's line in the cell.
        what: what is wrong.
        todo: what to do.
    """

    def __init__(self, line: int, what: str, todo: str):
        super().__init__(f"{what}; {todo}")
        self.line = line
        self.what = what
        self.todo = todo


class KernelLost(Signal):
    """The kernel can run no more cells. The message says why.

    Attributes:
        status: "timeout" or "killed".
        trace: the traceback that the kernel sent when its cell was interrupted; "" if none came.
    """

    def __init__(self, status: str, reason: str, trace: str = ""):
        super().__init__(reason)
        self.status = status
        self.trace = trace


class PutOff(Signal):
    """A submission must wait until the others are graded, because several of its exercises ran out of time.

    Attributes:
        results: the `grading.results.Result`s of the exercises that are graded so far.
    """

    def __init__(self, results: tuple[Any, ...]):
        super().__init__(results)  # so that it can be pickled and sent from a worker
        self.results = results
