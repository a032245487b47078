"""Find cells whose outputs show a measured time: it differs from run to run, so nbval must not compare these outputs.

A predicted time is the same in every run and a measured one is not, but both read "5.02 ms". So the source decides: a
cell measures when it uses a clock, the module `costs.measure`, or a name that was made earlier with one of these.
Its output counts when it shows a number or a picture.
"""

import ast
import dis
import re
from collections.abc import Iterable, Iterator
from types import CodeType

from nbformat import NotebookNode

from course_utils.authoring.sources import Source
from course_utils.costs.measure import MIME

CLOCKS = {"time", "timeit", "course_utils.costs.measure"}
IGNORED = "nbval-ignore-output"
_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)
_TIMING_MAGIC = re.compile(r"^\s*%%?time(it)?\b", re.MULTILINE)
_GROWS = {"append", "extend", "insert", "add", "update"}  # methods that add something to their object


def verify_measured(source: Source, notebook: NotebookNode) -> None:
    """Raise SourceError for a cell whose stored output shows a measurement and is not excluded from nbval's comparison.

    Args:
        notebook: the executed notebook, with the cells of `source`.
    """
    for index, line in _measuring(notebook):
        cell = notebook.cells[index]
        kind = _kind_of_output(cell.outputs)
        if kind and IGNORED not in cell.metadata.get("tags", []):
            what = f"the output shows {kind} that was measured, which differs in every run"
            raise source.error(index, line, what, f"tag the cell {IGNORED}, or show what was recorded")


def take_busy(notebook: NotebookNode) -> tuple[int, str] | None:
    """Remove, in place, the outputs that tell of a busy machine. Return the first one's cell and what was wide there.

    What was wide: "NAME is 2.4", with the ratio of the upper quartile to the lower one. None on a quiet machine.
    """
    first = None
    for index, cell in enumerate(notebook.cells):
        measured = [output.data[MIME] for output in cell.get("outputs", ()) if MIME in output.get("data", {})]
        if measured:
            cell.outputs = [output for output in cell.outputs if MIME not in output.get("data", {})]
            first = first or (
                index,
                ", ".join(f"{name or 'the call'} is {ratio}" for name, ratio in measured[0].items()),
            )
    return first


def _measuring(notebook: NotebookNode) -> Iterator[tuple[int, int]]:
    """Yield, for each cell that uses a measurement, its index and the first line that does so, counted from 0."""
    measured: set[str] = set()
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        lines = [cell.source[: match.start()].count("\n") for match in _TIMING_MAGIC.finditer(cell.source)]
        for statement in _statements(cell.source):
            uses = _uses_measured(statement, measured)
            if uses and not isinstance(statement, ast.FunctionDef | ast.ClassDef):  # a definition has no output
                lines.append(statement.lineno - 1)
        if lines:
            yield index, min(lines)


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(_MAGIC.sub("pass", source)).body
    except SyntaxError:  # the cell is in another language, or wrong on purpose
        return []


def _uses_measured(statement: ast.stmt, measured: set[str]) -> bool:
    """Return whether the statement uses one of the measured names.

    Updates `measured` in place: adds the names that the statement makes from measured ones, drops those it redefines.
    """
    if isinstance(statement, ast.Import | ast.ImportFrom):
        measured -= {alias.asname or alias.name for alias in statement.names}
        measured |= set(_clocks(statement))
        return False
    code = compile(ast.Module([statement], []), "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    used, made = names(code)
    if not measured & used:
        measured -= made
        return False
    measured |= made | set(_names_filled(statement))
    return True


def _clocks(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the names under which an import brings in a clock."""
    for alias in statement.names:
        whole = f"{statement.module}.{alias.name}" if isinstance(statement, ast.ImportFrom) else alias.name
        if whole in CLOCKS or (isinstance(statement, ast.ImportFrom) and statement.module in CLOCKS):
            yield alias.asname or alias.name


def names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the notebook's names that the code reads before it sets them, functions included, and those it sets."""
    used: set[str] = set()
    made: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            made.add(step.argval)
        elif step.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            used |= {step.argval} - made
        elif isinstance(step.argval, CodeType):
            used |= names(step.argval)[0] - made
    return used, made


def _names_filled(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of the objects that the statement adds something to: `name[…] = …`, `name.append(…)`."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            owner = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            owner = node.func.value
        else:
            continue
        if isinstance(owner, ast.Name):
            yield owner.id


def _kind_of_output(outputs: Iterable[NotebookNode]) -> str:
    """Return which kind of output could show a measurement, "a picture" or "a number"; "" where there is neither."""
    for output in outputs:
        data = output.get("data", {})
        if any(mime.startswith("image/") for mime in data):
            return "a picture"
        if re.search(r"\d", output.get("text", "") + data.get("text/plain", "")):
            return "a number"
    return ""
