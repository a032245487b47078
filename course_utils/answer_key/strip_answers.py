"""Turn a notebook with answers into the one that a student opens, by cutting out answers and hidden tests.

The marks are nbgrader's: a region between `### BEGIN SOLUTION` and `### END SOLUTION` in an answer cell becomes a stub,
and a region between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` in a check cell disappears.
"""

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from course_utils.checks.kernel.evidence import UNWRITTEN
from course_utils.errors import RegionError

SOLUTION = "SOLUTION"
HIDDEN = "HIDDEN TESTS"
UNGRADED = "ungraded"  # tag of a given cell that grading does not run
ASKED = "asked"  # tag of an ungraded cell whose output is the answer to the question above it
SETUP = "setup"  # tag of the cell that installs the course where a notebook is opened alone
TO_COME = "Not run yet. The check will try:"
EXPECTED = "Not run yet. A right answer shows:"
STUB = f'raise NotImplementedError("{UNWRITTEN}")'
_MARK = re.compile(r"^(\s*)### (BEGIN|END) (SOLUTION|HIDDEN TESTS)\s*$")
_NEARLY = re.compile(r"^\s*#+\s*(BEGIN|END)\s+(SOLUTION|HIDDEN\s+TEST)S?\b", re.IGNORECASE)
_PRIVATE_MIME = "application/vnd.course."


def release_exercise(solution: NotebookNode) -> NotebookNode:
    """Return the student's edition of a solution notebook, as a new notebook; nothing is executed.

    Solution regions become stubs and hidden tests disappear. Answer cells lose their outputs, and so do cells tagged
    `asked`; other cells keep their visible outputs as the expected result.

    Raises:
        RegionError: a region is not closed or not opened.
    """
    exercise = copy.deepcopy(solution)
    exercise.metadata.pop("jupytext", None)  # a student's notebook has no paired text source
    for cell in exercise.cells:
        if cell.cell_type != "code":
            continue
        cell.source = stub_source(cell)
        cell.execution_count = None
        cell.outputs = [] if is_answer(cell) or is_asked(cell) else _visible(cell.outputs)
        if is_check(cell) and cell.outputs:
            _announce(cell.outputs[0])
    return exercise


def stub_source(cell: NotebookNode) -> str:
    """Return the source of a cell as a student sees it.

    A solution region becomes `raise NotImplementedError` at the region's indentation. In a cell whose metadata says
    `course: {stub: given}` it becomes nothing, because the student starts from the code above the region.

    Raises:
        RegionError: a region is not closed or not opened.
    """
    lines = cell.source.split("\n")
    for region in reversed(find_regions(cell.source)):
        stands_in = [region.indent + STUB] if region.kind == SOLUTION and not is_given(cell) else []
        lines[region.begin : region.end + 1] = stands_in
    return "\n".join(lines).rstrip("\n")


def is_answer(cell: NotebookNode) -> bool:
    """Return whether a student writes in this cell."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_check(cell: NotebookNode) -> bool:
    """Return whether this cell earns points."""
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def is_setup(cell: NotebookNode) -> bool:
    """Return whether this cell installs the course; an edition with its own copy of the library does not need it."""
    return SETUP in cell.metadata.get("tags", [])


def is_asked(cell: NotebookNode) -> bool:
    """Return whether the text above this cell asks what it will show, so that its output is the answer."""
    return ASKED in cell.metadata.get("tags", [])


def needs_torch(cell: NotebookNode) -> bool:
    """Return whether the exercise of an answer cell needs PyTorch, in its statement or in its check."""
    return cell.metadata.get("course", {}).get("torch") is not False


def is_given(cell: NotebookNode) -> bool:
    """Return whether a student starts from the code above this cell's region."""
    return cell.metadata.get("course", {}).get("stub") == "given"


@dataclass(frozen=True)
class Region:
    """A marked part of a cell; `begin` and `end` are the indices of the lines with the marks."""

    kind: str
    begin: int
    end: int
    indent: str


def find_regions(source: str) -> list[Region]:
    """Return the marked regions of a cell, from top to bottom.

    Raises:
        RegionError: a region is unclosed, unopened, nested or misspelt.
    """
    regions = []
    opened = None
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
            regions.append(Region(kind, opened[1], number, opened[2]))
            opened = None
    if opened:
        raise RegionError(opened[1], f"this {opened[0]} region is not closed", f"add ### END {opened[0]} below it")
    return regions


@dataclass(frozen=True)
class Leak:
    """A line of an answer that a student can read in the exercise.

    Attributes:
        answer: index of the answer's cell.
        line: index of the line in that cell.
        where: index of the cell that shows the line.
        in_output: whether that cell shows it in its output, not in its source.
    """

    answer: int
    line: int
    text: str
    where: int
    in_output: bool


def find_leaks(solution: NotebookNode) -> list[Leak]:
    """Return the lines of solution regions that the student's edition shows, ignoring white space and comments.

    Three kinds of lines do not count: lines too common to give anything away (see `_tells`), lines that the stub of the
    same cell shows anyway, and the code of cells marked `stub: given`, which resembles an answer on purpose.
    """
    visible = [(squeeze(cell.source), squeeze(_text_of(cell))) for cell in release_exercise(solution).cells]
    readable = [
        ("" if is_given(cell) else source, output)
        for cell, (source, output) in zip(solution.cells, visible, strict=True)
    ]
    leaks = []
    for index, number, line in telling_lines(solution):
        needle = squeeze(line)
        for where, (source, output) in enumerate(readable):
            if needle in source or needle in output:
                text = solution.cells[index].source.split("\n")[number].strip()
                leaks.append(Leak(index, number, text, where, needle not in source))
                break
    return leaks


def telling_lines(solution: NotebookNode) -> Iterator[tuple[int, int, str]]:
    """Yield the lines of solution regions that reveal something about the answer and that are not in their cell's stub.

    Each comes as the index of its cell, its index in the cell, and its text without comment.
    """
    for index, cell in enumerate(solution.cells):
        if cell.cell_type != "code" or not is_answer(cell):
            continue
        stub = squeeze(stub_source(cell))
        lines = cell.source.split("\n")
        for region in find_regions(cell.source):
            for number in range(region.begin + 1, region.end):
                line = lines[number].split("  #")[0].strip()
                if _tells(lines[number], squeeze(line)) and squeeze(line) not in stub:
                    yield index, number, line


def _tells(line: str, squeezed: str) -> bool:
    """Return whether a line reveals something about the answer.

    An import, a comment, the head of a block or loop, a return of bare names, or fewer than 12 characters do not.
    """
    head = re.match(r"\s*(#|import |from |def |class |for |while |if |elif |else\b|with |try\b|except\b|@|[\"'])", line)
    bare_return = re.fullmatch(r"\s*return \(?[\w, ]*\)?", line)
    return not head and not bare_return and len(squeezed) >= 12


def squeeze(text: str) -> str:
    """Return text without white space, so that a search finds its lines however they are laid out."""
    return re.sub(r"\s+", "", text)


def _text_of(cell: NotebookNode) -> str:
    """Return all text in a cell's outputs."""
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.get("text", ""))
        parts += [
            body for mime, body in output.get("data", {}).items() if isinstance(body, str) and "image/" not in mime
        ]
    return "\n".join(parts)


def _announce(output: NotebookNode) -> None:
    """Write above a check's stored result that it is not the student's own."""
    if "text/plain" in output.get("data", {}):
        output.data["text/plain"] = _to_come(output.data["text/plain"])
        output.data.pop("text/html", None)
    elif output.get("name") == "stdout":
        output.text = _to_come(output.text)


def _to_come(text: str) -> str:
    rungs = [line.replace("✓", "○", 1) for line in text.splitlines() if line.startswith("  ✓")]
    return "\n".join([TO_COME, *rungs]) if rungs else f"{EXPECTED}\n{text}"


def _visible(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return the outputs that are not marked hidden, without the grader's own MIME types."""
    lines = []
    for output in outputs:
        if output.get("metadata", {}).get("course", {}).get("hidden"):
            continue
        if output.output_type in ("display_data", "execute_result"):
            output.data = {mime: body for mime, body in output.data.items() if not mime.startswith(_PRIVATE_MIME)}
            if not output.data:
                continue
        if "execution_count" in output:
            output.execution_count = None
        lines.append(output)
    return lines
