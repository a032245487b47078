"""Read the MyST Markdown sources of notebooks with Jupytext, and report where a source is wrong.

A source is a text file that people edit. It must have the form that Jupytext itself writes, so that opening a notebook
in JupyterLab and saving it leaves an unchanged source as it is, byte for byte.
"""

import ast
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from jupytext.myst import MystMetadataParsingError, myst_to_notebook

from course_utils.answer_key.strip_answers import (
    HIDDEN,
    SETUP,
    SOLUTION,
    find_leaks,
    find_regions,
    is_answer,
    is_check,
    is_setup,
    stub_source,
)
from course_utils.course import day_of
from course_utils.errors import CourseError, RegionError, SourceError
from course_utils.files import code_in
from course_utils.loader import PACKAGE

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
# The header of a source tells Jupytext to leave out its version, which every upgrade would change, and the kernel,
# which JupyterLab spells in its own way when it runs a notebook.
LEFT_OUT = "-kernelspec,-jupytext.text_representation.jupytext_version"
PAIRING = {"default_lexer": "ipython3", "notebook_metadata_filter": LEFT_OUT}
# What decides the outputs of a day's notebooks beside their text, from the package's folder. For exercises it makes the
# inputs and the evidence; for a lesson it is the figures, the guesses and the quiz.
DECIDE_EXERCISES = (
    "checks/kernel/*.py",
    "days/shared/*.py",
    "days/shared/given/*.py",
    "days/day{day}/duel.py",
    "days/day{day}/given/*.py",
    "answers/shared/*.py",
    "answers/day{day}/duel.py",
)
DECIDE_LESSON = ("days/shared/*.py", "days/day{day}/*.py", "days/day{day}/quiz.yaml")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NBGRADER = {"grade": bool, "grade_id": str, "locked": bool, "schema_version": int, "solution": bool, "task": bool}


@dataclass(frozen=True)
class Source:
    """A source file that was read.

    Attributes:
        name: the file's name in messages and metadata.
        notebook: its cells, without outputs.
        lines: for each cell, the line of the file where its text begins, counted from 1.
    """

    path: Path
    name: str
    day: int | None
    text: str
    notebook: nbformat.NotebookNode
    lines: list[int]

    def error(self, cell: int, line: int, what: str, todo: str) -> SourceError:
        """Return a SourceError at a line of a cell; both are counted from 0."""
        return SourceError(self.name, self.lines[cell] + line, what, todo)

    @property
    def sha256(self) -> str:
        """Hash of the text, and of what else decides the outputs of a day's notebook."""
        parts = [self.text]
        patterns = DECIDE_EXERCISES if self.path.parent.name == "exercises" else DECIDE_LESSON
        for pattern in patterns if self.day else ():
            for path in sorted(PACKAGE.glob(pattern.format(day=self.day))):
                text = path.read_text(encoding="utf-8")
                parts.append(code_in(text) if path.suffix == ".py" else text)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_source(path: Path | str, root: Path | str | None = None) -> nbformat.NotebookNode:
    """Return the notebook of a source, with stable cell ids and no outputs. Raises as `load_source`."""
    return load_source(path, root).notebook


def load_source(path: Path | str, root: Path | str | None = None) -> Source:
    """Read and verify a source.

    Args:
        root: the folder that names in messages and metadata are relative to.

    Raises:
        SourceError: the source would make a wrong notebook.
        CourseError: the file cannot be read, or is not text.
    """
    path = Path(path)
    name = path.relative_to(root).as_posix() if root else path.name
    text = _read_text(path, name)
    notebook, lines = _parse(text, name)
    source = Source(path, name, day_of(path.name), text, notebook, lines)
    _verify_form(source)
    _verify_cells(source)
    _verify_exercises(source)
    _name_cells(notebook)
    notebook.metadata = nbformat.from_dict(
        {
            "course": {"sha256": source.sha256, "source": name},
            "jupytext": PAIRING,
            "kernelspec": KERNELSPEC,
            "language_info": LANGUAGE,
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return source


def canonical(text: str) -> str:
    """Return a source in the form in which Jupytext writes it, with the course's header."""
    notebook = jupytext.reads(text, fmt="md:myst")
    notebook.metadata = nbformat.from_dict({"jupytext": PAIRING})
    return jupytext.writes(notebook, fmt="md:myst")


def verify_no_leak(source: Source, solution: nbformat.NotebookNode) -> None:
    """Raise SourceError when the student's edition of `solution` shows a line of an answer."""
    for leak in find_leaks(solution):
        place = (
            f"the output of the cell at line {source.lines[leak.where]}"
            if leak.in_output
            else (f"the cell at line {source.lines[leak.where]}")
        )
        raise source.error(
            leak.answer,
            leak.line,
            f"this line of the answer can be read in {place} of the exercise: {leak.text}",
            "reword one of the two",
        )


def _read_text(path: Path, name: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CourseError(f"{name}: cannot be read ({error.strerror}); give a Markdown file") from None
    except UnicodeDecodeError:
        raise CourseError(f"{name}: is not UTF-8 text; save it as UTF-8") from None


def _parse(text: str, name: str) -> tuple[nbformat.NotebookNode, list[int]]:
    """Return the cells of a source, and the line, counted from 1, where the text of each cell begins."""
    try:
        notebook = myst_to_notebook(text, add_source_map=True)
    except MystMetadataParsingError as error:
        where = re.search(r"at line (\d+)", str(error))
        what = " ".join(str(error).split())
        raise SourceError(name, int(where[1]) if where else 1, what, "fix the YAML between the --- lines") from None
    starts = notebook.metadata.pop("source_map")
    text_lines = text.split("\n")
    lines = []
    for cell, start in zip(notebook.cells, starts, strict=True):
        lines.append(_first_line(cell, start, text_lines))
        if cell.cell_type == "raw":
            raise SourceError(name, start, "a raw cell or a header that is not Jupytext's", "make it Markdown")
    return notebook, lines


def _first_line(cell: nbformat.NotebookNode, start: int, text_lines: list[str]) -> int:
    if cell.cell_type != "code":
        while start < len(text_lines) and not text_lines[start].strip():
            start += 1
        return start + 1
    line = text_lines[start - 1].lstrip()
    fence = line[: len(line) - len(line.lstrip("`"))] or line[: len(line) - len(line.lstrip("~"))]
    close = next((n for n in range(start, len(text_lines)) if text_lines[n].strip() == fence), len(text_lines))
    return close - len(cell.source.split("\n")) + 1


def _verify_form(source: Source) -> None:
    """Raise SourceError unless the text is what Jupytext would write.

    Otherwise saving from JupyterLab would change lines that nobody edited.
    """
    for index, cell in enumerate(source.notebook.cells):
        if cell.cell_type == "code" and "```{code-cell}" in cell.source:
            raise source.error(index, 0, "this cell runs into the next: its ``` is missing", "close it with ```")
    expected = canonical(source.text).split("\n")
    lines = source.text.split("\n")
    for number, line in enumerate(lines, start=1):
        if number > len(expected) or line != expected[number - 1]:
            expected_line = repr(expected[number - 1]) if number <= len(expected) else "the end of the file"
            what = f"not in Jupytext's form, which has {expected_line} here"
            raise SourceError(source.name, number, what, "run `course build --fix`, which rewrites the file so")
    if len(expected) > len(lines):
        raise SourceError(source.name, len(lines), "the file ends too early", "run `course build --fix`")


def _verify_cells(source: Source) -> None:
    """Verify the metadata and the marked regions of each cell by itself."""
    for index, cell in enumerate(source.notebook.cells):
        grading = cell.metadata.get("nbgrader")
        if cell.cell_type != "code":
            if grading is not None:
                raise source.error(index, 0, "nbgrader metadata on a text cell", "graded cells are code cells")
            continue
        tags = cell.metadata.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise source.error(index, 0, f"tags is {tags!r}", "write a list of words, as in tags: [hide-input]")
        try:
            regions = find_regions(cell.source)
        except RegionError as error:
            raise source.error(index, error.line, error.what, error.todo) from None
        if grading is not None:
            _verify_grading(source, index, grading)
        course = cell.metadata.get("course", {})
        if not isinstance(course, dict) or course.get("stub", "given") != "given":
            raise source.error(index, 0, f"course is {course!r}", "write course: {stub: given}, or leave it out")
        if course.get("torch", False) is not False:
            raise source.error(index, 0, f"course.torch is {course['torch']!r}", "write torch: false, or leave it out")
        _verify_regions(source, index, cell, [region.kind for region in regions])


def _verify_grading(source: Source, index: int, grading: Any) -> None:
    if not isinstance(grading, dict):
        raise source.error(index, 0, f"nbgrader is {grading!r}", "write its keys, as in docs/adding.md")
    for key, kind in _NBGRADER.items():
        if type(grading.get(key)) is not kind:
            what = f"nbgrader.{key} is {grading[key]!r}" if key in grading else f"nbgrader.{key} is missing"
            raise source.error(index, 0, what, f"give a {kind.__name__}")
    name = grading["grade_id"]
    if not _ID.fullmatch(name):
        raise source.error(index, 0, f"grade_id {name!r} cannot name a cell", "use 1 to 64 letters, digits, - and _")
    if grading["schema_version"] != 3:
        raise source.error(index, 0, f"nbgrader.schema_version is {grading['schema_version']}", "write 3")
    if grading["task"] or (grading["grade"] and grading["solution"]):
        raise source.error(index, 0, f"{name} is graded by hand", "use an answer cell and a check cell")
    if grading["grade"] and not _is_points(grading.get("points")):
        raise source.error(index, 0, f"the check {name} has no points", "give points: 1 or more")
    if not grading["grade"] and "points" in grading:
        raise source.error(index, 0, f"{name} has points and is no check", "put the points on its check")
    if grading["locked"] == grading["solution"]:
        locked = str(not grading["solution"]).lower()
        raise source.error(index, 0, f"nbgrader.locked of {name} does not fit", f"write locked: {locked}")


def _is_points(points: Any) -> bool:
    return isinstance(points, int | float) and not isinstance(points, bool) and points > 0


def _verify_regions(source: Source, index: int, cell: nbformat.NotebookNode, kinds: list[str]) -> None:
    if is_answer(cell) and SOLUTION not in kinds:
        raise source.error(
            index, 0, "this answer has no region to cut out", "put it between ### BEGIN and END SOLUTION"
        )
    if SOLUTION in kinds and not is_answer(cell):
        raise source.error(
            index, 0, "a SOLUTION region outside an answer cell", "add nbgrader metadata, solution: true"
        )
    if HIDDEN in kinds and not is_check(cell):
        raise source.error(index, 0, "a HIDDEN TESTS region outside a check cell", "move it to the check")
    if is_check(cell) and "raises-exception" not in cell.metadata.get("tags", []):
        todo = "add tags: [raises-exception], so that Run All goes on past a check that fails"
        raise source.error(index, 0, "this check stops Run All when it fails", todo)
    if kinds and _is_python(cell.source) and not _is_python(stub_source(cell)):
        todo = "leave a whole statement outside the region"
        raise source.error(index, 0, "without its region this cell is not valid Python", todo)


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def _verify_exercises(source: Source) -> None:
    """Verify that ids are unique, that each answer is followed by its check, and that no answer shows."""
    index_of: dict[str, int] = {}
    answers: dict[str, int] = {}
    checks: dict[str, int] = {}
    for index, cell in enumerate(source.notebook.cells):
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name is None:
            continue
        if name in index_of:
            what = f"grade_id {name} is also the id of the cell at line {source.lines[index_of[name]]}"
            raise source.error(index, 0, what, "give each cell its own")
        index_of[name] = index
        if is_answer(cell):
            answers[name] = index
        elif is_check(cell):
            checks[name] = index
    for name, index in answers.items():
        if checks.get(f"check_{name}", -1) < index:
            raise source.error(index, 0, f"the answer {name} has no check after it", f"add a check_{name}")
    for name, index in checks.items():
        if name.removeprefix("check_") not in answers or not name.startswith("check_"):
            raise source.error(index, 0, f"the check {name} has no answer", "name it check_ and the id of its answer")
    verify_no_leak(source, source.notebook)


def _name_cells(notebook: nbformat.NotebookNode) -> None:
    """Give each cell an id that stays the same when cells are added elsewhere.

    The id is the grade_id, or else the kind of the cell and a hash of its text. The setup cell's text changes with the
    version, so its id is its tag.
    """
    taken: Counter[str] = Counter(cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in notebook.cells)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if not name:
            text = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
            base = SETUP if is_setup(cell) else f"{cell.cell_type}-{text}"
            taken[base] += 1
            name = base if taken[base] == 1 else f"{base}-{taken[base]}"
        cell.id = name
