"""Put reference answers and a class's seed into a kernel, and keep them out of the messages that students read."""

from __future__ import annotations

import base64
import builtins
import marshal
import re
from collections.abc import Iterable
from dataclasses import replace

from course_utils.checks.judge.verdict import UNKNOWN_NAME, Verdict
from course_utils.checks.kernel.evidence import BAD_RESULT, IN_ITS_CELL, NOT_FILLED_IN, UNWRITTEN
from course_utils.checks.kernel.outcome import Evidence, ForbiddenCall, Outcome
from course_utils.checks.kernel.result_numbers import NOTHING

LENT = "<lent>"  # file name of lent code, whose source the kernel does not have
LEFT_OUT = "(its text is not shown)"
OTHER_KIND = "an error of another kind"
KINDS = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)}
KINDS |= {"AxisError", "LinAlgError", "OutOfMemoryError", "UFuncTypeError", "CompilationError", "InterpreterError"}
SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
MAX_AXES = 8
MAX_AXIS_LENGTH = 10**5
_WHERE = re.compile(rf", at line (\d{{1,4}}){IN_ITS_CELL}: ")
_AT_LINE = re.compile(r"^-+> *(\d{1,4}) (.*)$", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_IN_FILE = re.compile(r" \([^()\s]+, line (\d+)\)\Z")  # a temporary file of IPython, whose name tells nothing
_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_UNKNOWN_NAME = re.compile(r"name '(\w+)' is not defined")


def lent_cell(source: str) -> str:
    """Return a cell that runs this source as a compiled code object, so that its text cannot be read in the kernel."""
    code = base64.b85encode(marshal.dumps(compile(source, LENT, "exec"))).decode()
    return f'exec(__import__("marshal").loads(__import__("base64").b85decode({code!r})))'


def kind_of(error: str) -> str:
    """Return the type name in an error's text if it is a known exception type; students can name classes freely."""
    kind = re.split(": |, ", error, maxsplit=1)[0]
    return kind if kind in KINDS else OTHER_KIND


def with_answer_error(verdict: Verdict, raised: str) -> Verdict:
    """Return the verdict on an exercise whose answer cell raised this error; a syntax error names no mistake."""
    name = None if raised.startswith(SYNTAX_ERRORS) else f"raises {raised}".rstrip(".")
    message = "The answer cell raised " + _IN_FILE.sub(r" (line \1)", raised)
    return replace(verdict, message=message, mistake=name, unknown_name=raised.startswith(UNKNOWN_NAME))


def stopped_at(trace: str, source: str) -> str:
    """Return a sentence on the line of an answer at which its cell was interrupted; "" if the traceback names none.

    A line of the traceback counts only if the answer has the same text at that number.
    """
    lines = _EMPTY_LINES.sub("", source).splitlines()
    for match in reversed(_AT_LINE.findall(_COLOURS.sub("", trace))):
        number = int(match[0])
        text = match[1].strip()
        if text and 0 < number <= len(lines) and lines[number - 1].strip() == text:
            return f" It was at line {number}{IN_ITS_CELL}: {text[:100]}"
    return ""


def without_text(evidence: Evidence, sources: Iterable[str], forbidden: Iterable[str] = ()) -> Evidence:
    """Return evidence without text from its kernel; it is judged in the same way as the whole evidence.

    An error keeps its type, and its line if that is a line of the sources. A forbidden call keeps the forbidden part of
    its name. The evidence can still tell numbers, shapes and one name that occurs in the sources.

    Args:
        sources: the student's answer cells.
        forbidden: parts of names that the exercise forbids to call.
    """
    cells = [_EMPTY_LINES.sub("", each).splitlines() for each in sources]  # so that lines count as IPython counts them
    lines = {(i, line.strip()[:100]) for cell in cells for i, line in enumerate(cell, 1)}
    names = set(re.findall(r"\w+", "\n".join(line for _, line in lines)))
    outcomes = [_outcome_without_text(each, lines, names) for each in evidence.outcomes]
    parts = [next((part for part in forbidden if part in each.name.lower()), "") for each in evidence.called]
    return replace(evidence, outcomes=outcomes, called=[ForbiddenCall(part) for part in parts])


def _outcome_without_text(outcome: Outcome, lines: set[tuple[int, str]], names: set[str]) -> Outcome:
    if outcome.error:
        return replace(outcome, error=_error_without_text(outcome.error, outcome.rung, lines, names))
    return replace(outcome, values={part: array for part, array in outcome.values.items() if _is_usual(array.shape)})


def _error_without_text(error: str, rung: str, lines: set[tuple[int, str]], names: set[str]) -> str:
    if error.startswith(BAD_RESULT):
        return error if error == f"{BAD_RESULT}: {NOTHING}" else f"{BAD_RESULT}: "
    message = error
    where = ""
    for match in _WHERE.finditer(error):
        line = error[match.end() :]
        if (int(match[1]), line) in lines:
            message = error[: match.start()]
            where = error[match.start() :]
    kind, _, text = message.partition(": ")
    if kind == "NotImplementedError" and text.endswith(NOT_FILLED_IN):
        text = f"{rung} {NOT_FILLED_IN}"
    elif kind == "NameError" and (unknown := _UNKNOWN_NAME.match(text)) and unknown[1] in names:
        text = unknown[0]
    elif text and text != UNWRITTEN:
        text = LEFT_OUT
    return f"{kind_of(kind)}: {text}".rstrip(": ") + where


def _is_usual(shape: tuple[int, ...]) -> bool:
    """Return whether a right result can have this shape; an odd shape could carry a message."""
    return len(shape) <= MAX_AXES and all(size < MAX_AXIS_LENGTH for size in shape)
