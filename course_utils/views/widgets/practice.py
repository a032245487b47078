"""A problem for a pencil, judged step by step on the page."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.practice import Mark, Problem, problem, read_entry
from course_utils.practice.problem import describe_shape
from course_utils.practice.session import DRAWN_FROM, HOW, SIGNS, write_typed
from course_utils.views.drawing import typeset
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE = 19  # the height of a line of the picture, in pixels
_WIDE = 88  # characters in a line
_ALONE = 10  # so many problems a page without a kernel has


class Practice(CourseWidget):
    """One problem of a kind, to be worked with a pencil; each step is typed in and judged.

    kind: one of `course_utils.practice.KINDS`, such as "attention" or "softmax-gradient". number: which problem, from 0
    to 1,000,000,000; the same number is the same problem for everybody. The page draws another one at a button.
    `.number` and `.entries` (a text a step, empty where nothing is written) can be set; a new number empties the
    entries. `.marks` says for each step whether it is right; the first wrong one is located, and a step that follows
    correctly from a wrong value counts as right. `.shown`: whether the right values stand on the page.
    A page without a kernel has ten problems, with their right values and what follows from each known misstep. What
    follows from another wrong value it cannot judge, and says so.
    Raises practice.kinds.UnknownKind for a kind or a number that there is not, ValueError for entries that do not fit.
    """

    in_gallery = InGallery(
        5, "Work with a pencil", summary="Solve a problem in steps, and see at which step you first went wrong."
    )
    plays = False
    minutes = 3

    _esm = script("practice.js")
    _css = style("practice.css")

    number = traitlets.Int(1).tag(sync=True)
    entries: traitlets.List[Any] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    shown = traitlets.Bool(False).tag(sync=True)
    kind = traitlets.Unicode(read_only=True).tag(sync=True)
    _how = traitlets.Unicode(HOW).tag(sync=True)
    _posed = traitlets.Dict().tag(sync=True)
    _judged: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _summary = traitlets.Unicode().tag(sync=True)
    _another = traitlets.Int(0).tag(sync=True)  # the page counts it up to ask for a problem drawn at random

    def __init__(self, kind: str = "attention", number: int = 1):
        self._problem = problem(kind, number)
        super().__init__(number=number)
        self.set_trait("kind", kind)
        self._pose()

    @property
    def problem(self) -> Problem:
        """The problem on the page."""
        return self._problem

    @property
    def marks(self) -> tuple[Mark, ...]:
        """A mark for each step; what cannot be read counts as empty."""
        return self._problem.judge(self._read_entries()[0])

    @traitlets.validate("number")
    def _number_exists(self, proposal):
        problem(self._problem.kind, proposal.value)
        return proposal.value

    @traitlets.validate("entries")
    def _entries_fit(self, proposal):
        steps = len(self._problem.steps)
        if len(proposal.value) != steps:
            raise ValueError(f"there are {len(proposal.value)} entries to {steps} steps: one each, or an empty text")
        return list(proposal.value)

    @traitlets.observe("number")
    def _on_number(self, change):
        self._problem = problem(self._problem.kind, change.new)
        self._pose()

    @traitlets.observe("_another")
    def _on_another(self, change):
        self.number = random.choice([number for number in range(DRAWN_FROM) if number != self.number])

    @traitlets.observe("entries")
    def _on_entries(self, change):
        self._judge()

    def alone_state(self) -> dict[str, Any]:
        others = [number for number in range(1, _ALONE + 1) if number != self.number]
        problems = [problem(self.kind, number) for number in sorted([self.number, *others[: _ALONE - 1]])]
        return {"_alone": {"problems": [{"number": each.number, **_problem_with_answers(each)} for each in problems]}}

    def as_text(self) -> str:
        lines = [f"{self.kind}, number {self.number}", "", *self._problem.statement.splitlines(), ""]
        for step, judged in zip(self._posed["steps"], self._judged, strict=True):
            lines.append(f"{judged['sign'] or '·'} {step['name']}: {step['asked']} ({step['shape']})")
            lines += [f"    {text}" for text in (judged["said"], self.shown and f"right: {step['right']}") if text]
        return "\n".join([*lines, *([self._summary] if self._summary else [])])

    def alt(self) -> str:
        return f"A problem for a pencil. {' '.join(self.as_text().split())}"

    def figure(self) -> Figure:
        lines = [part for line in self.as_text().splitlines() for part in textwrap.wrap(line, _WIDE) or [""]]
        height = _LINE * len(lines) + 16
        fig = new_figure(720, height)
        for place, line in enumerate(lines):
            y = 1 - (_LINE * place + 22) / height
            weight = "bold" if place == 0 else "normal"
            fig.text(16 / 720, y, typeset(line), fontweight=weight)
        return fig

    def _pose(self):
        self._posed = _problem_state(self._problem)
        self.shown = False
        self.entries = [""] * len(self._problem.steps)
        self._judge()

    def _read_entries(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """What is written, as numbers by step, and why the rest cannot be read."""
        numbers = {}
        unread = {}
        for step, text in zip(self._problem.steps, self.entries, strict=True):
            try:
                value = read_entry(text)
                self._problem.judge({step.name: value})  # has it the shape of this step
            except ValueError as error:
                unread[step.name] = str(error)
            else:
                numbers[step.name] = value
        return numbers, unread

    def _judge(self):
        numbers, unread = self._read_entries()
        marks = self._problem.judge(numbers)
        judged = []
        for mark in marks:
            if mark.step in unread:
                judged.append({"status": "unread", "sign": "?", "said": unread[mark.step]})
            else:
                comment = "" if mark.status == "empty" else str(mark).partition(": ")[2]
                judged.append({"status": mark.status, "sign": SIGNS[mark.status].replace("·", ""), "said": comment})
        wrong = next((mark.step for mark in marks if mark.status == "wrong"), None)
        done = sum(mark.status in ("right", "follows") for mark in marks)
        if wrong is not None:
            self._summary = f"The first wrong step is {wrong}."
        elif done == len(marks):
            self._summary = "All steps are right."
        else:
            empty = sum(judge["status"] == "empty" for judge in judged)
            open_fields = f"; {empty} {'field is' if empty == 1 else 'fields are'} empty" if empty else ""
            self._summary = f"{done} of {len(marks)} steps are right{open_fields}." if done else ""
        self._judged = judged


def _problem_state(posed: Problem) -> dict[str, Any]:
    """Return what the page shows of a problem."""
    right = posed.solution()
    steps = [
        {
            "name": step.name,
            "asked": step.task,
            "shape": describe_shape(right[step.name].shape),
            "right": write_typed(right[step.name], step.count).replace("-", "−"),
        }
        for step in posed.steps
    ]
    return {"statement": posed.statement, "steps": steps}


def _problem_with_answers(posed: Problem) -> dict[str, Any]:
    """Return the same with what the page judges by: right values, known missteps, and what follows from each."""
    page = _problem_state(posed)
    right = posed.solution()
    rounded = posed.worked()
    missteps = posed.known_missteps()
    for entry, step in zip(page["steps"], posed.steps, strict=True):
        name = step.name
        entry |= {"count": step.count, "dims": list(right[name].shape), "slips": []}
        entry["right_ways"] = [_round(values[name]) for values in (right, rounded)]
        for misstep in (misstep for of, misstep in missteps if of is step):
            taken = posed.worked({name: misstep}), posed.worked({name: misstep}, decimals=None)
            later = [each.name for each in posed.steps[posed.steps.index(step) + 1 :]]
            then = {each: [_round(values[each]) for values in taken] for each in later}
            values_here = [_round(values[name]) for values in taken]
            entry["slips"].append({"said": misstep.message, "values": values_here, "then": then})
    return page


def _round(values: np.ndarray) -> Any:
    """Return numbers with six significant figures, more than a pencil writes, as nested lists."""
    return np.array([float(f"{value:.6g}") for value in values.ravel()]).reshape(values.shape).tolist()
