"""From a notebook with answers to the one that a student opens: cut out answers and hidden tests.

The marks are nbgrader's: a region between `### BEGIN SOLUTION` and `### END SOLUTION` in an answer cell becomes a stub,
one between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` in a check cell disappears.
"""

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from course_utils.checks.kernel.evidence import UNWRITTEN
from course_utils.errors import RegionError

SOLUTION, HIDDEN = "SOLUTION", "HIDDEN TESTS"
SETUP = "setup"  # the tag of the cell that installs the course where a notebook is opened alone
TO_COME, EXPECTED = "Not run yet. The check will try:", "Not run yet. A right answer shows:"
STUB = f'raise NotImplementedError("{UNWRITTEN}")'
_MARK = re.compile(r"^(\s*)### (BEGIN|END) (SOLUTION|HIDDEN TESTS)\s*$")
_NEARLY = re.compile(r"^\s*#+\s*(BEGIN|END)\s+(SOLUTION|HIDDEN\s+TEST)S?\b", re.IGNORECASE)
_PRIVATE_MIME = "application/vnd.course."


def release_exercise(solution: NotebookNode) -> NotebookNode:
    """The student's edition of a solution notebook: a new notebook, nothing executed, the argument left as it is.

    Solution regions become stubs and hidden tests go. Answer cells lose their outputs; other cells keep the visible
    ones as the expected result. Raises RegionError when a region is not closed or not opened.
    """
    exercise = copy.deepcopy(solution)
    exercise.metadata.pop("jupytext", None)  # a student's notebook is paired with no text
    for cell in exercise.cells:
        if cell.cell_type != "code":
            continue
        cell.source = stub_source(cell)
        cell.execution_count = None
        cell.outputs = [] if is_answer(cell) else _visible(cell.outputs)
        if is_check(cell) and cell.outputs:
            _announce(cell.outputs[0])
    return exercise


def stub_source(cell: NotebookNode) -> str:
    """The source of a cell as a student sees it.

    A solution region becomes `raise NotImplementedError` at the region's indentation, or nothing where the cell's
    metadata says `course: {stub: given}`, since the code above the region is what the student starts from.
    Raises RegionError when a region is not closed or not opened.
    """
    lines = cell.source.split("\n")
    for region in reversed(find_regions(cell.source)):
        stands_in = [region.indent + STUB] if region.kind == SOLUTION and not is_given(cell) else []
        lines[region.begin : region.end + 1] = stands_in
    return "\n".join(lines).rstrip("\n")


def is_answer(cell: NotebookNode) -> bool:
    """Whether a student writes in this cell."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_check(cell: NotebookNode) -> bool:
    """Whether this cell earns points."""
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def is_setup(cell: NotebookNode) -> bool:
    """Whether this cell installs the course, which no edition with a library of its own needs."""
    return SETUP in cell.metadata.get("tags", [])


def is_given(cell: NotebookNode) -> bool:
    """Whether the code above this cell's region is what a student starts from."""
    return cell.metadata.get("course", {}).get("stub") == "given"


@dataclass(frozen=True)
class Region:
    """A marked part of a cell; `begin` and `end` are the indices of the lines with the marks."""

    kind: str
    begin: int
    end: int
    indent: str


def find_regions(source: str) -> list[Region]:
    """The regions of a cell, from top to bottom; RegionError for an unclosed, unopened, nested or misspelt one."""
    found, opened = [], None
    for number, line in enumerate(source.split("\n")):
        mark = _MARK.match(line)
        if mark is None:
            if _NEARLY.match(line):
                raise RegionError(number, f"{line.strip()!r} is not a mark", "write ### BEGIN SOLUTION, in this form")
            continue
        indent, side, kind = mark.groups()
        if side == "BEGIN":
            if opened:
                raise RegionError(number, f"a region begins inside the {opened[0]} region", "end that one first")
            opened = (kind, number, indent)
        elif opened is None or opened[0] != kind:
            raise RegionError(number, f"### END {kind} without its BEGIN", f"add ### BEGIN {kind} above it")
        else:
            found.append(Region(kind, opened[1], number, opened[2]))
            opened = None
    if opened:
        raise RegionError(opened[1], f"this {opened[0]} region is not closed", f"add ### END {opened[0]} below it")
    return found


@dataclass(frozen=True)
class Leak:
    """A line of an answer that a student could read: in cell `where` of the exercise, its source or its output."""

    answer: int
    line: int
    text: str
    where: int
    in_output: bool


def find_leaks(solution: NotebookNode) -> list[Leak]:
    """The lines of solution regions that can be read in the student's edition, spaces and comments aside.

    Left out are lines too common to give anything away (see `_tells`), lines that the same cell gives anyway, and the
    code of cells marked `stub: given`: code to mend resembles an answer on purpose.
    """
    visible = [(squeeze(cell.source), squeeze(_text_of(cell))) for cell in release_exercise(solution).cells]
    shown = [
        ("" if is_given(cell) else source, output)
        for cell, (source, output) in zip(solution.cells, visible, strict=True)
    ]
    leaks = []
    for index, number, line in telling_lines(solution):
        needle = squeeze(line)
        for where, (source, output) in enumerate(shown):
            if needle in source or needle in output:
                text = solution.cells[index].source.split("\n")[number].strip()
                leaks.append(Leak(index, number, text, where, needle not in source))
                break
    return leaks


def telling_lines(solution: NotebookNode) -> Iterator[tuple[int, int, str]]:
    """The lines of solution regions that say something about the answer and that their own cell does not give anyway:
    the index of the cell, that of the line in it, and the line without its comment."""
    for index, cell in enumerate(solution.cells):
        if cell.cell_type != "code" or not is_answer(cell):
            continue
        given, lines = squeeze(stub_source(cell)), cell.source.split("\n")
        for region in find_regions(cell.source):
            for number in range(region.begin + 1, region.end):
                line = lines[number].split("  #")[0].strip()
                if _tells(lines[number], squeeze(line)) and squeeze(line) not in given:
                    yield index, number, line


def _tells(line: str, squeezed: str) -> bool:
    """Whether a line says something about the answer: not an import, a comment, the head of a block or loop, a return
    of bare names, or fewer than 12 characters."""
    head = re.match(r"\s*(#|import |from |def |class |for |while |if |elif |else\b|with |try\b|except\b|@|[\"'])", line)
    bare_return = re.fullmatch(r"\s*return \(?[\w, ]*\)?", line)
    return not head and not bare_return and len(squeezed) >= 12


def squeeze(text: str) -> str:
    """Text without spaces, so that its lines are found however they are laid out."""
    return re.sub(r"\s+", "", text)


def _text_of(cell: NotebookNode) -> str:
    """All text in a cell's outputs."""
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.get("text", ""))
        parts += [
            body for mime, body in output.get("data", {}).items() if isinstance(body, str) and "image/" not in mime
        ]
    return "\n".join(parts)


def _announce(output: NotebookNode) -> None:
    """Say above the stored result of a check that it is not the student's own."""
    if "text/plain" in output.get("data", {}):
        output.data["text/plain"] = _to_come(output.data["text/plain"])
    elif output.get("name") == "stdout":
        output.text = _to_come(output.text)


def _to_come(text: str) -> str:
    rungs = [line.replace("✓", "○", 1) for line in text.splitlines() if line.startswith("  ✓")]
    return "\n".join([TO_COME, *rungs]) if rungs else f"{EXPECTED}\n{text}"


def _visible(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Outputs without those that are marked hidden, and without the grader's own mime types."""
    kept = []
    for output in outputs:
        if output.get("metadata", {}).get("course", {}).get("hidden"):
            continue
        if output.output_type in ("display_data", "execute_result"):
            output.data = {mime: body for mime, body in output.data.items() if not mime.startswith(_PRIVATE_MIME)}
            if not output.data:
                continue
        if "execution_count" in output:
            output.execution_count = None
        kept.append(output)
    return kept
