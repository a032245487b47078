"""Every error of the course's own, but for those inside a kernel.

    CourseError           what was given is not right: one line on stderr, exit status 2
    ├── SourceError         a source of a notebook
    ├── NotConfined         kernels cannot be confined here as they should be
    ├── Unreadable          a submission that is no notebook of its day
    └── TooFewPoints        below --fail-under, exit status 1
    Signal                what one part tells another, which deals with it; no person sees it
    ├── CellFailed          to the build: a cell does not do what a built notebook needs
    ├── RegionError         to who reads sources: a mark around a solution or hidden tests is not right
    ├── KernelLost          to the grader: the kernel can run no more cells
    └── PutOff              to a class: a submission that is to wait until others are graded

In a learner's notebook `checks.interactive` raises NotYet. In a grading kernel, which holds none of this, there is
`checks.kernel.numbers.BadResult`, and `checks.judge.time_limit` stops an answer with TookTooLong.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# What GitHub Actions and Azure Pipelines take for a command in what a job prints: ::name …:: where a line begins, which
# may be a folded one, and ##[name] or ##vso[name] in any place.
_COMMAND_OF_CI = re.compile(r"([:#])(?=:[A-Za-z][\w-]*(?: .*?)?::|#\w*\[)")


def one_line(text: str, longest: int = 600) -> str:
    """Text from a submission as one line, without control and formatting characters and unpaired surrogates.

    What a workflow would take for a command is parted by a space: a line of it may be printed where one runs.
    """
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * longest]).split())
    shown = _COMMAND_OF_CI.sub(r"\1 ", shown)
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


class CourseError(Exception):
    """Something that was given is not right; the message says what, what was expected and what to do.

    exit_code: of the command that ends with it.
    """

    exit_code = 2


class SourceError(CourseError):
    """A source of a notebook is not right: `file:line: what; what to do`."""

    def __init__(self, path: Path | str, line: int, what: str, todo: str):
        super().__init__(f"{path}:{line}: {what}; {todo}")


class NotConfined(CourseError):
    """Kernels cannot be confined on this machine as they should be."""


class Unreadable(CourseError):
    """A submission that is no notebook of the day it should be. Its text is one line for people."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


class TooFewPoints(CourseError):
    """What was graded stays below the share of the points that was asked for."""

    exit_code = 1


class Signal(Exception):
    """What one part of the course tells another, which deals with it."""


class CellFailed(Signal):
    """A cell did not do what a built notebook needs: its index, the line in it from 0, what happened, what to do."""

    def __init__(self, cell: int, line: int, what: str, todo: str):
        super().__init__(f"{what}; {todo}")
        self.cell, self.line, self.what, self.todo = cell, line, what, todo


class RegionError(Signal):
    """A mark of a region is not right; `line` is its index in the cell."""

    def __init__(self, line: int, what: str, todo: str):
        super().__init__(f"{what}; {todo}")
        self.line, self.what, self.todo = line, what, todo


class KernelLost(Signal):
    """The kernel can run no more cells. status: timeout or killed; the text says why."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


class PutOff(Signal):
    """A submission that is to wait until others are graded, since several of its exercises ran out of time.

    results: `grading.results.Result`s of the exercises graded so far.
    """

    def __init__(self, results: tuple[Any, ...]):
        super().__init__(results)  # as it is sent from a worker
        self.results = results
