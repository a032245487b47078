"""Build the notebooks from the Markdown sources that people edit, and verify that both agree.

    sources/lessons/X.md   -> notebooks/X.ipynb                      executed; notebooks/widgets/X.json beside it
    sources/exercises/X.md -> solutions/X.ipynb -> exercises/X.ipynb   executed; answers and hidden tests cut out

A build of the same sources gives the same bytes, and executes only notebooks that disagree with their source. On
another machine, outputs may differ a little (`compare_outputs.py` defines how much); then the build keeps the previous
outputs. The functions take the folder that holds `sources/`, so that tests can build in a folder of their own.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from course_utils.answer_key.strip_answers import is_answer, release_exercise, stub_source
from course_utils.authoring.compare_outputs import outputs_alike
from course_utils.authoring.execute import clean, execute
from course_utils.authoring.generated_tables import write_counts, wrong_counts
from course_utils.authoring.sources import Source, canonical, load_source, verify_no_leak
from course_utils.authoring.timed_cells import IGNORED, take_busy, verify_measured
from course_utils.authoring.widget_states import States, digest, states_path, states_text
from course_utils.course import SOURCES, day_of, folder_advice, is_there
from course_utils.errors import CellFailed, CourseError
from course_utils.files import keep_copy, write_all
from course_utils.notebooks import dump, read_notebook

PARTS = ("id", "cell_type", "source", "metadata")
EXECUTED = {Path(source).name: built for built, source in SOURCES.items()}
OnProgress = Callable[[str, int, int], None]


@dataclass
class Report:
    """Files that a build wrote, and files that were up to date."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


def build(root: Path, days: Iterable[str] = (), force: bool = False, progress: OnProgress = lambda *_: None) -> Report:
    """Build the notebooks of these days, or of all days.

    The build writes a day's files only if all of its notebooks are right. It overwrites a file in exercises/ that
    somebody has solved only with `force`, after copying it to exercises/kept/.

    Args:
        root: folder that holds `sources/`.
        days: numbers of days or names of sources; none means all.
        force: whether to execute unchanged notebooks too, and to overwrite solved exercises.
        progress: called before each cell with the name of the source, the number of the cell, and the number of cells.

    Raises:
        SourceError: a source is wrong.
        CourseError: a day is unknown, or somebody has solved an exercise and `force` is off.
    """
    root = Path(root).resolve()
    days = list(days)
    _days(root, days)  # This raises for an unknown day, before anything is written.
    report = Report(written=write_counts(root))
    counted = [Path(name).stem for name in report.written if name.endswith(".md") and name != "README.md"]
    for paths in _days(root, [*days, *counted] if days else ()):
        built: dict[Path, str] = {}
        sources = [load_source(path, root) for path in paths]
        for source in sources:
            _verify_kind(source)
            built |= _build_source(source, root, force, progress)
        gone = {target for target, text in built.items() if not text}  # states of widgets that a lesson no longer has
        built = {target: text for target, text in built.items() if text}
        changed = {target: text for target, text in built.items() if _read_if_text(target) != text}
        for target, grade_id in _answers_of_somebody(root, changed):
            if not force:
                name = target.relative_to(root).as_posix()
                raise CourseError(
                    f"{name}: somebody has solved {grade_id}; save a copy, or build with --force, which does"
                )
            keep_copy(target)
        write_all(changed)
        for target in gone:
            target.unlink(missing_ok=True)
        for target in built:
            (report.written if target in changed else report.unchanged).append(target.relative_to(root).as_posix())
    return report


def check(root: Path, used: bool = False) -> list[str]:
    """Return each disagreement between sources, notebooks, solutions and exercises in one line, without executing.

    Args:
        root: folder that holds `sources/`.
        used: whether to accept notebooks that a learner has run, saved or solved.

    Raises:
        SourceError: a source itself is wrong.
    """
    root = Path(root).resolve()
    problems: list[str] = []
    expected: set[Path] = set()
    for path in _sources(root):
        source = load_source(path, root)
        _verify_kind(source)
        target = _target(source, root)
        expected.add(target)
        disagreements = _disagreements(source, target, root, used)
        problems += disagreements
        if target.parent.name == "notebooks" and not disagreements and not used:
            verify_measured(source, nbformat.read(target, as_version=4))
        if target.parent.name == "solutions":
            exercise = root / "exercises" / target.name
            expected.add(exercise)
            problems += _exercise_disagreements(target, exercise, root, used)
    for folder in ("notebooks", "solutions", "exercises"):
        for leftover in sorted(set((root / folder).glob("*.ipynb")) - expected):
            problems.append(f"{folder}/{leftover.name}: no source makes it; delete it, or move it elsewhere")
    return problems + wrong_counts(root)


def fix(root: Path, days: Iterable[str] = ()) -> list[str]:
    """Rewrite the sources of these days, or of all, as Jupytext writes them. Return the names of changed files."""
    root = Path(root).resolve()
    changed = []
    for path in [path for paths in _days(root, days) for path in paths]:
        text = path.read_text(encoding="utf-8")
        if canonical(text) != text:
            write_all({path: canonical(text)})
            changed.append(path.relative_to(root).as_posix())
    return changed


def _sources(root: Path) -> list[Path]:
    paths = [path for kind in EXECUTED for path in (root / "sources" / kind).glob("*.md")]
    sources = sorted(path for path in paths if is_there(day_of(path.name)))
    if not sources:
        raise CourseError(f"{root}: no sources in sources/lessons or sources/exercises; {folder_advice()}")
    return sources


def _days(root: Path, requested: Iterable[str]) -> list[list[Path]]:
    """Return the sources of each wanted day, with lessons and exercises of the same name in one list."""
    days: dict[str, list[Path]] = {}
    for path in _sources(root):
        days.setdefault(path.stem, []).append(path)
    chosen = set()
    for day in requested:
        matches = {name for name in days if name == day or re.match(rf"day{re.escape(day)}(_|$)", name)}
        if not matches:
            raise CourseError(f"no day {day!r}; give a number or a name of: {', '.join(sorted(days))}")
        chosen |= matches
    return [paths for name, paths in sorted(days.items()) if not chosen or name in chosen]


def _verify_kind(source: Source) -> None:
    """Raise SourceError if a lesson has a graded cell."""
    if source.path.parent.name == "lessons":
        for index, cell in enumerate(source.notebook.cells):
            if "nbgrader" in cell.metadata:
                raise source.error(index, 0, "a graded cell in a lesson", "move it to sources/exercises")


def _target(source: Source, root: Path) -> Path:
    return root / EXECUTED[source.path.parent.name] / f"{source.path.stem}.ipynb"


def _build_source(source: Source, root: Path, force: bool, progress: OnProgress) -> dict[Path, str]:
    """Return the text of each file that a source makes; an empty text marks a file to delete."""
    target = _target(source, root)
    states: dict[Path, str] = {}  # of the widgets, if the notebook is run
    if force or _disagreements(source, target, root):
        notebook, new_states = _execute(source, root, progress)
        states[states_path(target)] = text = states_text(new_states, target)
        # timings of a busy machine are refused, unless the last build's stay anyway
        busy = take_busy(notebook)
        if not _keep_ignored_outputs(notebook, target) and busy:
            index, wide = busy
            what = f"the machine was busy: the upper quartile of {wide} times the lower one"
            raise source.error(index, 0, what, "build again when nothing else runs")
        # outputs that only rounding changed stay as they are, so that no file changes for that
        _keep_outputs_alike(notebook, target, source.day)
        notebook.metadata.course.outputs = _outputs_sha256(notebook)
        if text:
            notebook.metadata.course.widgets = digest(text)
    else:
        notebook = nbformat.read(target, as_version=4)
    built = {target: dump(notebook)} | states
    if target.parent.name == "solutions":
        verify_no_leak(source, notebook)
        built[root / "exercises" / target.name] = dump(release_exercise(notebook))
    else:
        verify_measured(source, notebook)
    return built


def _execute(source: Source, root: Path, progress: OnProgress) -> tuple[nbformat.NotebookNode, States]:
    total = len(source.notebook.cells)
    try:
        return execute(source.notebook, root, lambda index: progress(source.name, index + 1, total))
    except CellFailed as error:
        raise source.error(error.cell, error.line, error.what, error.todo) from None


def _disagreements(source: Source, target: Path, root: Path, used: bool = False) -> list[str]:
    """Return how an executed notebook disagrees with its source; an empty list if it agrees."""
    name = target.relative_to(root).as_posix()
    todo = "run `course build`"
    # built, and from this source
    notebook, trouble = read_notebook(target)
    if notebook is None:
        return [f"{name}: {trouble}; {todo}"]
    if notebook.metadata.get("course", {}).get("sha256") != source.sha256:
        return [f"{name}: built from another version of {source.name}; {todo}"]
    parts = ("id", "cell_type", "source") if used else PARTS
    difference = _first_difference(source.notebook.cells, notebook.cells, parts)
    if difference:
        return [f"{name}: {difference} as in {source.name}; {todo}"]
    if used:
        return []
    # byte for byte as the build writes it, so nobody ran or saved it since
    tidy = nbformat.from_dict(notebook)
    clean(tidy, root)
    metadata = nbformat.from_dict(source.notebook.metadata)
    metadata.course.outputs = _outputs_sha256(notebook)
    if "widgets" in notebook.metadata.course:
        metadata.course.widgets = notebook.metadata.course.widgets
    if notebook.metadata != metadata or dump(tidy) != _read_if_text(target):
        return [f"{name}: not as the build writes it, so it was run or saved since; {todo} or restore it"]
    states = _read_if_text(states_path(target))
    if notebook.metadata.course.get("widgets") != (digest(states) if states else None):
        return [f"{states_path(target).relative_to(root).as_posix()}: not as the build writes it; {todo}"]
    return []


def _keep_ignored_outputs(notebook: nbformat.NotebookNode, target: Path) -> bool:
    """Reuse timings and other ignored outputs of the previous build, so that unchanged cells keep the same bytes.

    If one such cell is new, all of them come from this run, so that a table and its picture agree. Return whether they
    are those of the previous build.
    """
    before, _ = read_notebook(target)
    known = {cell.id: cell.outputs for cell in _ignored_cells(before)} if before else {}
    ignored = list(_ignored_cells(notebook))
    if not all(cell.id in known for cell in ignored):
        return False
    for cell in ignored:
        cell.outputs = known[cell.id]
        for output in cell.outputs:
            if "execution_count" in output:  # a cell above may be new
                output.execution_count = cell.execution_count
    return True


def _keep_outputs_alike(notebook: nbformat.NotebookNode, target: Path, day: int | None) -> None:
    """Reuse the previous build's outputs of unchanged cells that differ only within the tolerance between machines."""
    before, _ = read_notebook(target)
    known = {cell.id: cell for cell in before.cells if cell.cell_type == "code"} if before else {}
    for cell in notebook.cells:
        old = known.get(cell.id)
        if old and cell.source == old.source and outputs_alike(day, cell.outputs, old.outputs):
            cell.outputs = old.outputs


def _ignored_cells(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    for cell in notebook.cells:
        if cell.cell_type == "code" and IGNORED in cell.metadata.get("tags", []):
            yield cell


def _outputs_sha256(notebook: nbformat.NotebookNode) -> str:
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()


def _exercise_disagreements(solution: Path, exercise: Path, root: Path, used: bool) -> list[str]:
    """Return how a student's edition disagrees with the solution without answers; an empty list if it agrees."""
    name = exercise.relative_to(root).as_posix()
    official, _ = read_notebook(solution)
    present, trouble = read_notebook(exercise)
    if official is None:
        return []  # reported already for the solution
    if present is None:
        return [f"{name}: {trouble}; run `course build`"]
    expected = release_exercise(official)
    if dump(expected) == _read_if_text(exercise) or (
        used and present.metadata.get("course") == expected.metadata.course
    ):
        return []
    difference = _first_difference(expected.cells, present.cells) or "outputs or metadata are not"
    return [f"{name}: {difference} as cut from {solution.relative_to(root).as_posix()}; run `course build`"]


def _first_difference(
    expected: Sequence[nbformat.NotebookNode], actual: Sequence[nbformat.NotebookNode], parts: Iterable[str] = PARTS
) -> str:
    """Return the first difference between two lists of cells as the start of a sentence, or an empty string."""
    if len(expected) != len(actual):
        return f"{len(actual)} cells and not {len(expected)}"
    for number, (expected_cell, cell) in enumerate(zip(expected, actual, strict=True), start=1):
        for part in parts:
            if expected_cell.get(part) != cell.get(part):
                return f"the {part.replace('_', ' ')} of cell {number} ({expected_cell.id}) is not"
    return ""


def _answers_of_somebody(root: Path, changed: dict[Path, str]) -> Iterator[tuple[Path, str]]:
    """Yield the files about to be overwritten that hold somebody's answers, with the grade_id of one answer."""
    for target in changed:
        present, _ = read_notebook(target)
        if target.parent.name != "exercises" or present is None:
            continue
        fresh = nbformat.reads(changed[target], as_version=4)
        old_solution, _ = read_notebook(root / "solutions" / target.name)
        stubs = {cell.source for cell in fresh.cells if is_answer(cell)}
        stubs |= {stub_source(cell) for cell in (old_solution or fresh).cells if is_answer(cell)}
        own = [cell for cell in present.cells if is_answer(cell) and cell.source not in stubs]
        if own:
            yield target, own[0].metadata["nbgrader"].get("grade_id", "an answer")


def _read_if_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
