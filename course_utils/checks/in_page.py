"""The check of an exercise on a web page, where Python runs in the browser: source text in, a verdict out.

The page sends the cells that its notebook would have run. Nothing here draws or waits: `check` reports what it finds
as it finds it, first the verdict and then the smallest input, and the page shows that.
"""

from __future__ import annotations

import ast
import io
import linecache
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import CodeType
from typing import Any

import numpy as np

from course_utils.checks.cells import PARSE_ERRORS, used_names
from course_utils.checks.examination import examine, put_stage_first, smallest_example
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.time_limit import TimeLimit, runs_answer
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.judge.wording import advise_on, with_full_stop
from course_utils.checks.kernel.evidence import PROGRESS, all_ladders, describe_error, find_ladder
from course_utils.checks.kernel.result_numbers import NOTHING
from course_utils.time_limits import ANSWER_SECONDS

MAX_SECONDS = 4 * ANSWER_SECONDS  # by the clock, of a task that ends by itself; after that the page ends Python
Report = Callable[[Mapping[str, Any]], None]
MAX_SHOWN_CHARS = 500  # characters of what an answer prints while it is checked
MAX_STREAMED_CHARS = 5000  # characters of what a cell prints that the page has before the cell has ended
CELL = "<ipython-input-{}>"  # the file name of a cell, by which the checks tell its lines from the course's own
NO_TORCH = "PyTorch is not on this page. This exercise does not need it: use lists or NumPy, or open it in JupyterLab."
NO_INPUT = "input() does not work here, since the check gives your function its numbers"
ONLY_CHECK_LENDS = "Check lends functions that you have not written yet; Run does not."
NO_SCIPY = "SciPy is not on this page, and no exercise needs it. NumPy and Python's own modules are here."
OLD_NUMPY = "This page has NumPy {page}, which is older than the course's in JupyterLab. Use an older function here."
STILL_RAISES = "The line that raises NotImplementedError is still in your answer, at line {line}. Delete it."
PRINTS = "Your function prints its result. Return it: the check reads what the function returns."

SYNTAX = (  # what Python says with the line itself, and the advice; one that ends in a colon is followed by the line
    ("in line: ```", "Remove the lines with ``` that mark code in a chat:"),
    ("invalid character '[“”„‘’]'", "Write straight quotes, ' or \", in place of the curly ones:"),
    ("U\\+00A0", "One space is not an ordinary one, as in text copied from a web page: delete it and type it again."),
    ("inconsistent use of tabs|unindent does not match|TabError", "Indent with spaces alone, four for each level:"),
    (r"(leading zeros in decimal|invalid).* in line: .*\d,\d", "Write decimals with a point, as in 0.183:"),
    (r"in line: (const|let|var) +(\w+)", r"Python has no \1: write \2 = and the value."),
    (
        r"in line: (int|float|double|bool|auto|string)\b[\w<>*& ]* (\w+) *=",
        r"Python names no type: write \2 = and the value.",
    ),
    (r"in line: (For|While|If|Else|Elif|Def|Return|Import|From)\b", "Python writes this word in small letters:"),
    (r"in line: (//|/\*)|[;\w)\]] *// *[A-Za-z]+ +[A-Za-z]", "A comment begins with # in Python:"),
    ("&&|\\|\\|", "Python writes and, or, not in place of &&, || and !:"),
    (r"\+\+|--;", "Python has no ++: write i += 1."),
    (
        r"in line: (for|while|if|else|def)\b.*{$|in line: }",
        "A block has no braces: it begins after a colon and is indented:",
    ),
    ("unexpected indent", "Remove the spaces before this line, or indent the lines of its block alike:"),
    (r"in line: [A-Z][a-z']*,?( [\w',]+){2,}[.:!?]*$", "This line is no code. Remove it, or put # before it:"),
)


class CellFailed(Exception):
    """Raised when a cell cannot be run to its end. Its text says why, and at which line."""


def check(
    day: int,
    grade_id: str,
    given: Sequence[str],
    earlier: Mapping[str, str],
    answer: str,
    report: Report,
    progress: Callable[[str], None] = lambda at: None,
) -> None:
    """Check an answer and report the verdict, then once more with the smallest input on which the answer is wrong.

    Args:
        given: the cells that everybody is given, in order.
        earlier: the answers to earlier exercises, by grade_id; those run that this answer uses.
        answer: the cell of the answer.
        report: called with a dict: `html` and `text` of the card, `status`, `points` earned, `full` points, `mistake`
            (the name of the one found, or ""), and whether a search for an example follows, `searching`.
        progress: called with words such as "step 3 of 19" before each step.
    """
    unit = "implementation" if find_ladder(day, grade_id).duel else "step"
    PROGRESS.tell = lambda: progress(f"{unit} {PROGRESS.number} of {PROGRESS.count}")
    try:
        namespace = _namespace(day, given, earlier, answer)
        _run_cell(grade_id, answer, namespace)
        missing = [name for name in find_ladder(day, grade_id).names if name not in namespace]
        if missing:
            raise CellFailed(_describe_missing(missing[0], answer))
    except CellFailed as failed:
        report(_as_record(CheckMessage(day, grade_id, Verdict("error", 0.0, str(failed)))))
        return
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        _, verdict = examine(day, grade_id, namespace)
    verdict = replace(verdict, message=_with_advice(_explain(verdict, answer, printed.getvalue())))
    note = f"It printed: {_cut(printed.getvalue().strip(), MAX_SHOWN_CHARS)}" if printed.getvalue().strip() else ""
    message = CheckMessage(day, grade_id, verdict, note=note)
    searching = verdict.status in ("failed", "error")
    report(_as_record(message, searching))
    if searching:
        example = smallest_example(day, grade_id, namespace, verdict, with_widget=False)
        report(_as_record(put_stage_first(replace(message, example=example))))


def run(
    day: int,
    given: Sequence[str],
    earlier: Mapping[str, str],
    cell: str,
    report: Callable[[str], None] = lambda text: None,
) -> str:
    """Run a cell and return what it printed, with the value of its last line, as a notebook shows it.

    Args:
        report: called now and then with what the cell has printed so far; a cell that is stopped returns nothing.
    """
    printed = _StreamedOutput(report)
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            namespace = _namespace(day, given, earlier, cell)
            if value := _run_cell("run", cell, namespace, show_last=True):
                print(value)
        except CellFailed as failed:
            print(_with_advice_on_lending(str(failed), day))
    return printed.getvalue()


def _with_advice_on_lending(message: str, day: int) -> str:
    """Return a message; where a name is not defined that an exercise asks for, with who lends its function."""
    unknown = re.search(r"name '(\w+)' is not defined", message)
    names = {name for ladder in all_ladders(day).values() for name in ladder.names}
    return f"{with_full_stop(message)} {ONLY_CHECK_LENDS}" if unknown and unknown[1] in names else message


class _StreamedOutput(io.StringIO):
    """What a cell prints. `report` gets the beginning of it, at most every tenth of a second."""

    def __init__(self, report: Callable[[str], None]):
        super().__init__()
        self.report = report
        self.n_reported = 0  # characters
        self.next_report = 0.0  # by the monotonic clock

    def write(self, text: str) -> int:
        count = super().write(text)
        if self.n_reported <= MAX_STREAMED_CHARS and (now := time.monotonic()) >= self.next_report:
            text = self.getvalue()
            self.report(_cut(text, MAX_STREAMED_CHARS))
            self.n_reported = len(text)
            self.next_report = now + 0.1
        return count


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, with a mark if it goes on."""
    return text if len(text) <= most else f"{text[:most]} …"


def _namespace(day: int, given: Sequence[str], earlier: Mapping[str, str], cell: str) -> dict[str, Any]:
    """Return what a cell finds: what the given cells define, and the earlier answers that it uses by name."""
    namespace: dict[str, Any] = {"__name__": "__main__", "input": _no_input}
    for source in given:
        with redirect_stdout(io.StringIO()):
            _run_given(source, namespace)
    for grade_id, source in _select_used(day, earlier, cell).items():
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                _run_cell(grade_id, source, namespace)
        except CellFailed:
            continue  # the check lends the course's function in its place
    return namespace


def _run_given(source: str, namespace: dict[str, Any]) -> None:
    """Run the statements of a given cell, without those that need PyTorch."""
    for statement in ast.parse(source).body:
        try:
            exec(compile(ast.Module([statement], []), "<given>", "exec"), namespace)
        except (ImportError, NameError):
            continue


def _select_used(day: int, earlier: Mapping[str, str], cell: str) -> dict[str, str]:
    """Return those of the earlier answers whose names a cell uses, or one of these, in the order of the notebook."""
    names = {grade_id: set(find_ladder(day, grade_id).names) for grade_id in earlier}
    used: set[str] = set()
    unread = [cell]
    while unread:
        referred = used_names(unread.pop())
        more = {grade_id for grade_id in earlier if names[grade_id] & referred} - used
        used |= more
        unread += [earlier[grade_id] for grade_id in more]
    return {grade_id: source for grade_id, source in earlier.items() if grade_id in used}


def _run_cell(name: str, source: str, namespace: dict[str, Any], *, show_last: bool = False) -> str:
    """Run a cell. With `show_last`, return how Python writes the value of its last line; "" if there is none.

    Raises:
        CellFailed: it is not Python, raises an error, prints without end, or does not finish in time.
    """
    file = CELL.format(name)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        programs = _compile_cell(source, file)
    except SyntaxError as error:
        raise CellFailed(_describe_syntax_error(error, source)) from None
    except PARSE_ERRORS as error:
        raise CellFailed(f"Python cannot read this cell: {describe_error(error)}") from None
    value = ""
    try:
        with TimeLimit() as limit:
            value = _run_programs(programs, namespace, show_last)
    except BaseException as error:  # also SystemExit and KeyboardInterrupt, which a cell can raise
        raise CellFailed(_with_advice(describe_error(error))) from None
    if limit.message:
        raise CellFailed(limit.message)
    return value


def _describe_syntax_error(error: SyntaxError, source: str) -> str:
    """Return why a cell is not valid Python, with the line and, where it is plain, what to do."""
    if advice := _advise_on_syntax(error, source):
        return f"This is not valid Python, at line {error.lineno}. {advice}"
    lines = source.splitlines()
    line = lines[error.lineno - 1].strip() if error.lineno and error.lineno <= len(lines) else ""
    where = f", at line {error.lineno}" if error.lineno else ""
    said = f"This is not valid Python: {error.msg}{where}"
    if line.startswith((">>>", "... ")):
        return f"{said}. Remove the >>> and the ... that Python's shell prints before a line: {line}"
    if error.msg == "'return' outside function":
        return f"{said}. A line that begins with def comes first, and the lines of its function are indented: {line}"
    return f"{said}: {line}" if line else said


def _advise_on_syntax(error: SyntaxError, source: str) -> str:
    """Return what to do about text that is no Python but something beginners bring; "" for others."""
    lines = source.splitlines()
    line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
    said = f"{error.msg} in line: {line.strip()}"
    advice = next((match.expand(advice) for of, advice in SYNTAX if (match := re.search(of, said))), "")
    return f"{advice} {line.strip()}" if advice.endswith(":") else advice


def _compile_cell(source: str, file: str) -> list[CodeType]:
    """Return the statements of a cell, and its last line by itself if that is an expression. Raises PARSE_ERRORS."""
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    programs = [compile(tree, file, "exec")]
    if isinstance(last, ast.Expr):
        programs.append(compile(ast.Expression(last.value), file, "eval"))
    return programs


@runs_answer("its cell")
def _run_programs(programs: Sequence[CodeType], namespace: dict[str, Any], show_last: bool) -> str:
    value = None
    for program in programs:
        value = eval(program, namespace)
    return repr(value) if show_last and value is not None else ""  # a class of the cell may define __repr__


def _no_input(prompt: object = "") -> str:
    raise EOFError(NO_INPUT)


def _describe_missing(name: str, answer: str) -> str:
    """Return that a cell does not define a name, and which function it defines instead."""
    defined = [each.name for each in ast.parse(answer).body if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
    renamed = f" It defines {defined[0]}: did you rename it?" if len(defined) == 1 else ""
    return f"Your code does not define {name}.{renamed}"


def _explain(verdict: Verdict, answer: str, printed: str) -> str:
    """Return the message of a verdict, or a plainer one for two things that everybody does first."""
    if verdict.status == "missing" and (line := _line_that_raises(answer)):
        return STILL_RAISES.format(line=line)
    if NOTHING in verdict.message and printed.strip() and "return " not in answer:
        return PRINTS
    return verdict.message


def _line_that_raises(answer: str) -> int:
    """Return the line of the stub's `raise` in a function that does something else as well; 0 if there is none."""
    for function in ast.walk(ast.parse(answer)):
        if not isinstance(function, ast.FunctionDef):
            continue
        lines = [each for each in function.body if not _is_text(each)]
        raised = [each.lineno for each in lines if ast.unparse(each).startswith("raise NotImplementedError")]
        if raised and len(lines) > 1:
            return raised[0]
    return 0


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _with_advice(message: str) -> str:
    """Return a message with what the page has to add to it: it has no PyTorch, and an older NumPy."""
    if "No module named 'torch" in message or "name 'torch' is not defined" in message:
        return f"{with_full_stop(message)} {NO_TORCH}"
    if "No module named 'scipy" in message:
        return f"{with_full_stop(message)} {NO_SCIPY}"
    if "module 'numpy' has no attribute" in message:
        return f"{with_full_stop(message)} {OLD_NUMPY.format(page=np.__version__)}"
    if (advice := advise_on(message)) and advice not in message:
        return f"{with_full_stop(message)} {advice}"
    return message


def _as_record(message: CheckMessage, searching: bool = False) -> Mapping[str, Any]:
    earned, full = message.points
    return {
        "html": message.as_html(),
        "text": str(message),
        "status": message.verdict.status,
        "points": earned,
        "full": full,
        "mistake": message.verdict.mistake or "",
        "searching": searching,
    }
