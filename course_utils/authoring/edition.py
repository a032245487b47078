"""Write the edition of the course that a class gets: lessons, exercises and checks, but nothing that reveals an answer.

What stays and what goes. The code that the lessons teach with stays: `course_utils/attention`, `course_utils/costs`,
`course_utils/serving` and the lesson notebooks. The lessons build attention step by step in lists, arrays and tensors,
so a student can read some lines of the answers there. An answer that imports this code fails where it is graded, and
its check says so. Everything else that reveals an answer goes: sources, solutions, tests, `course_utils/answers` and
the grader. In place of reference answers, the checks compare with stored results, on visible test inputs only; these
include the numbers of exercises worked by hand (see `checks/judge/stored_results.py`). The messages of known mistakes
are stored as text, because a check shows them anyway.

`find_traces` searches a written edition and reports everything that should not be in it.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.answer_key.strip_answers import is_given, is_setup, release_exercise, squeeze, telling_lines
from course_utils.authoring.widget_states import states_path
from course_utils.checks.judge.exercise_tables import all_exercises, parameters
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.stored_results import FOLDER, store
from course_utils.checks.kernel.outcome import MIME, as_json
from course_utils.course import LESSONS, SOLUTIONS, find_notebook, notebook_paths, pages_to_look_up
from course_utils.errors import CourseError
from course_utils.notebooks import dump

README = Path(__file__).with_name("student_readme.md")
AGENTS = Path(__file__).with_name("student_agents.md")
AS_THEY_ARE = (
    "LICENSE",
    "LICENSE-TEXT",
    "requirements.lock",
    "environment.yml",
    "setup.py",
    ".gitignore",
    "scripts/preflight.py",
    "labconfig",
)
LIBRARY_PARTS = (  # parts of course_utils; of its days only the released ones, and the code that they share
    "__init__.py", "course.py", "errors.py", "files.py", "loader.py", "notebooks.py", "progress.py", "time_limits.py",
    "attention", "checks", "costs", "data", "guesses", "models", "parts", "practice", "serving", "views",
    "days/__init__.py", "days/days.toml", "days/shared",
)  # fmt: skip
OF_A_TEACHER = "worksheet.*"  # files of course_utils/practice that make worksheets with an answer key
LIBRARY = (  # files that may share lines with answers
    "course_utils/attention/", "course_utils/costs/", "course_utils/serving/", "notebooks/",
)  # fmt: skip
TARGETS = ("help", "lab", "model", "lab-report", "clean", "again")
EXTRAS_LEFT_OUT = ("dev", "cards", "cluster", "site", "worksheets")
TABLES_LEFT_OUT = ("project.urls", "project.scripts", "project.entry-points", "tool.ruff", "tool.mypy", "tool.pytest")
NOT_HERE = ("answer_key", "answers", "authoring", "sandbox", "grading", "learner", "solutions", "sources", "tests")
HAND_IN = "Save this notebook and hand it in. It is graded on other inputs too.\n"
MARKS = ("### BEGIN SOLUTION", "### END SOLUTION", "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


def write_student_edition(folder: Path, days: list[int], course: AnswerKey = COURSE, note: str = "") -> None:
    """Write the student's edition of some days into an empty folder.

    Args:
        note: what a teacher wants to say at the top of its README, as Markdown.

    Raises:
        CourseError: a lesson, a solution or another file of the course is missing or cannot be read.
    """
    root = course.folder
    # the files around the notebooks, without what is the grader's or the authors'
    try:
        for name in AS_THEY_ARE:
            _copy(root / name, folder / name)
        (folder / "Makefile").write_text(_makefile((root / "Makefile").read_text(encoding="utf-8")), encoding="utf-8")
        settings = _project((root / "pyproject.toml").read_text(encoding="utf-8"))
        (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
        _copy(AGENTS, folder / "AGENTS.md")
        _copy_library(root / "course_utils", folder / "course_utils", days)
        lessons = {day: _lesson(root, day) for day in days}
        pages = pages_to_look_up(root)
    except OSError as error:
        raise CourseError(
            f"{error.filename}: cannot be read ({error.strerror}); release from a complete course"
        ) from None
    # the notebooks, with links to each other alone, and the results that their checks compare with
    here = {f"notebooks/{path.name}" for path in lessons.values()}
    here |= {f"notebooks/{path.name}" for path in pages}
    here |= {f"exercises/{course.path(day).name}" for day in days}
    for path in pages:
        _write(_without_dead_links(nbformat.read(path, as_version=4), here), folder / "notebooks" / path.name)
    for day, lesson in lessons.items():
        _write(_without_dead_links(nbformat.read(lesson, as_version=4), here), folder / "notebooks" / lesson.name)
        if (states := states_path(lesson)).exists():
            _copy(states, states_path(folder / "notebooks" / lesson.name))
        exercise = _for_a_class(release_exercise(course.notebook(day)))
        _write(_without_dead_links(exercise, here), folder / "exercises" / course.path(day).name)
        store(expected_results(day), folder / FOLDER.relative_to(FOLDER.parents[2]) / f"day{day}.json.gz")
    # the README, with a table of these days and the teacher's note
    rows = "\n".join(_row(day, lessons[day], course.path(day)) for day in days)
    text = README.read_text(encoding="utf-8").replace("{days}", rows)
    of_a_day = r"\s(?:One of day (\d+) needs|Day\s(\d+)\sends)[^.]*\."
    text = re.sub(of_a_day, lambda match: match[0] if int(match[1] or match[2]) in days else "", text)
    text = text.replace("{note}", f"{_below_a_title(note.strip())}\n\n" if note.strip() else "")
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")


def expected_results(day: int) -> dict:
    """Return what the checks of a student's edition need to know of a day, by grade_id.

    Each entry holds the points, the rules of the exercise, and the evidence that the reference answer and each known
    mistake give on the visible test inputs.
    """
    return {
        grade_id: {
            "points": exercise.points,
            "names": list(exercise.reference),
            "parameters": list(parameters(day, grade_id)),
            "uses": list(exercise.uses),
            "rtol": exercise.rtol,
            "atol": exercise.atol,
            "right": as_json(judge_of(day, grade_id).reference()),
            "mistakes": [
                {
                    "name": mistake.name,
                    "message": mistake.message,
                    "overflow": mistake.overflow,
                    "evidence": as_json(evidence),
                }
                for mistake, evidence in judge_of(day, grade_id).mistakes()
            ],
        }
        for grade_id, exercise in all_exercises(day).items()
    }


@dataclass(frozen=True)
class Traces:
    """Lines of answers, and other secrets, that an edition contains.

    Attributes:
        faults: one line for each trace that must not be there.
        shared: the number of lines that the answers share with the lessons and their library.
    """

    faults: tuple[str, ...]
    shared: int


def find_traces(folder: Path, course: AnswerKey = COURSE, secrets: tuple[str, ...] = ()) -> Traces:
    """Search every file of an edition for answers, hidden tests, their results and secrets.

    Args:
        secrets: texts that no file may contain, such as a class's secret and its seeds.
    """
    lines = {squeeze(line): (name, line) for name, line in lines_of_answers(course)}
    faults = []
    shared = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        faults += [f"{name}: does not belong in a student's edition" for part in name.split("/") if part in NOT_HERE]
        text = _text_of(path)
        faults += [f"{name}: holds {mark}" for mark in MARKS if mark in text]
        faults += [f"{name}: holds a key of the class" for secret in secrets if secret in text]
        if path.suffix == ".ipynb":
            faults += [f"{name}: holds {what!r}" for what in (MIME, "hidden=True", "../solutions") if what in text]
            text = _text_to_search(path)
        squeezed = squeeze(text)
        present = {line for line in lines if line in squeezed}
        if name.startswith(LIBRARY):
            shared |= present
        else:
            faults += [
                f"{name}: has a line of the answer {lines[line][0]}: {lines[line][1]}" for line in sorted(present)
            ]
    return Traces(tuple(faults), len(shared))


def lines_of_answers(course: AnswerKey) -> Iterator[tuple[str, str]]:
    """Yield each line by which an answer can be recognised, after the day and the grade_id of its exercise."""
    for _, path in notebook_paths(course.folder / SOLUTIONS):
        solution = nbformat.read(path, as_version=4)
        for cell, _, line in telling_lines(solution):
            yield f"{path.stem.partition('_')[0]} {solution.cells[cell].metadata.nbgrader.grade_id}", line


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def _text_to_search(path: Path) -> str:
    """Return a notebook's text without the cells that hand out code to mend: it resembles an answer on purpose."""
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join([cell.source for cell in cells if not is_given(cell)] + [str(c.get("outputs", "")) for c in cells])


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*", OF_A_TEACHER))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _copy_library(source: Path, target: Path, days: list[int]) -> None:
    """Copy the parts of `course_utils` that a class may have."""
    for name in (*LIBRARY_PARTS, *(f"days/day{day}" for day in days)):
        _copy(source / name, target / name)


def _makefile(text: str) -> str:
    """Return the Makefile with a student's targets only, and a `grade` that says where points come from."""
    blocks = []
    for block in re.split(r"\n{2,}", text.rstrip("\n")):
        target = re.search(r"^([a-z][a-z-]*|\$\(TOOLS\)):(?!=)", block, re.MULTILINE)
        if (target is None and not block.startswith("##@")) or (target and target[1] in TARGETS):
            blocks.append(block)
    text = "\n\n".join(blocks) + "\n"
    text = re.sub(r"^(?:export |override )?(?:SUBMISSIONS|WORKERS|TESTS|TOOLS)\b.*\n", "", text, flags=re.MULTILINE)
    text = text.replace(" $(TOOLS)", "")
    text = text.replace("keeps notebooks, answers and grades", "keeps notebooks and answers")
    text = re.sub(r"^\.PHONY:.*", ".PHONY: " + " ".join((*TARGETS, "grade")), text, flags=re.MULTILINE)
    text = re.sub(r"(--LabApp\.default_url=/lab/tree/)\S+", r"\1README.md", text)
    message = "course: points come from your teacher: save the notebook and hand in the file from exercises/"
    return text + f'\ngrade: ## say where points come from\n\t@echo "{message}" >&2; exit 2\n'


def _project(text: str) -> str:
    """Return pyproject.toml without the grader's commands and the tools of the course's authors."""
    tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    text = "".join(table for table in tables if not table.lstrip("[").startswith(TABLES_LEFT_OUT))
    text = re.sub(rf"^(?:{'|'.join(EXTRAS_LEFT_OUT)}) = \[.*\n(?: .*\n)*\]\n", "", text, flags=re.MULTILINE)
    text = text.replace("widgets, checks and grader of", "widgets and checks of")
    tomllib.loads(text)
    return text


def _lesson(root: Path, day: int) -> Path:
    lesson = find_notebook(root / LESSONS, day)
    if lesson is None:
        raise CourseError(f"no lesson for day {day}: there is no {root}/{LESSONS}/day{day}_*.ipynb")
    return lesson


def _row(day: int, lesson: Path, exercise: Path) -> str:
    heading = nbformat.read(lesson, as_version=4).cells[0].source.partition("\n")[0]
    title = heading.lstrip("# ").removeprefix(f"Day {day}: ")
    return f"| {day} | [{title}](notebooks/{lesson.name}) | [exercises](exercises/{exercise.name}) |"


def _below_a_title(note: str) -> str:
    """Return Markdown with each heading a level lower if one of them is a title, since the README has one already."""
    lines = note.splitlines()
    headings = [token for token in MarkdownIt().parse(note) if token.type == "heading_open" and token.level == 0]
    if all(heading.tag != "h1" for heading in headings):
        return note
    for heading in headings:
        first, end = heading.map or (0, 1)
        if heading.markup == "=":
            lines[end - 1] = "---"
        elif heading.markup == "-":
            lines[first:end] = [f"### {' '.join(lines[first : end - 1])}", *[""] * (end - first - 1)]
        elif heading.tag != "h6":
            lines[first] = f"#{lines[first].lstrip()}"
    return "\n".join(lines)


def _for_a_class(exercise: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Replace, in place, an exercise's text about `make grade` and solutions by text about handing in."""
    for cell in exercise.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"You can check your answers against the \[solutions\]\([^)]*\)\.\s*", "", cell.source)
            cell.source = re.sub(r"^`make grade` in a terminal grades(?:.+\n?)+", HAND_IN, text, flags=re.M).rstrip()
    return exercise


def _without_dead_links(notebook: nbformat.NotebookNode, here: set[str]) -> nbformat.NotebookNode:
    """Remove from a notebook, in place, its source's name, the setup cell, and links to notebooks outside this edition.

    The texts of these links stay.
    """
    for paired in ("jupytext", "course"):
        notebook.metadata.pop(paired, None)
    notebook.cells = [cell for cell in notebook.cells if not is_setup(cell)]

    def link(match: re.Match[str]) -> str:
        name = match[2] if "/" in match[2] else f"notebooks/{match[2]}"
        return match[0] if name in here else match[1]

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^]]+)\]\((?:\.\./)?((?:\w+/)?\w+\.ipynb)(?:#[^)]*)?\)", link, cell.source)
            cell.source = re.sub(r"^\*\*Go to\*\* .*$", _only_links, cell.source, flags=re.MULTILINE).rstrip()
    return notebook


def _only_links(match: re.Match[str]) -> str:
    """Return a line of links to other notebooks without the words whose links are gone."""
    links = re.findall(r"\[[^]]+\]\([^)]+\)", match[0])
    return f"**Go to** {' · '.join(links)}" if links else ""


def _write(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump(notebook), encoding="utf-8", newline="\n")
