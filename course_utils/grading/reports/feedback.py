"""A feedback page for a student: verdicts, messages, hints and the student's own code, in one HTML file.

All pages of a download of Moodle or Canvas go back in one zip, in which each has the name that its platform reads.

Moodle takes folders called as those of its download, name_number_assignsubmission_file_, and gives what lies in one to
the participant of that number. (Source: mod/assign/feedback/file/importziplib.php of moodle/moodle.)

Canvas takes files called as those of its download: the first two numbers in a name are the student's and that of the
file handed in. It shows the student a comment with the file under the name of the file handed in. So the file is of
that kind: a notebook that shows the page, or a zip. (Source: generate_comments_from_files in
app/models/abstract_assignment.rb of instructure/canvas-lms.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_utils.answer_key.key import AnswerKey
from course_utils.errors import spell_out
from course_utils.files import make_zip, write_whole
from course_utils.grading.intake.file_tree import is_notebook, is_zip
from course_utils.grading.intake.names import safe_name
from course_utils.grading.reports.tasks import Task, day_title, tasks
from course_utils.grading.results import Graded, Result, is_ungraded

MAX_CODE_LENGTH = 20_000  # characters of an answer that are shown
MAX_LINES = 500
MAX_NAME_LENGTH = 250  # characters of a name in a zip
MAX_LINE_LENGTH = 400  # the time to colour a line can grow with the square of its length
SIGNS = {
    "passed": ("✓", "passed"),
    "failed": ("✗", "not right yet"),
    "error": ("!", "error"),
    "missing": ("–", "not answered"),
    "forbidden": ("⊘", "not allowed"),
    "timeout": ("…", "out of time"),
    "killed": ("■", "stopped"),
    "ungraded": ("–", "not graded"),
}


def write_feedback(graded: Graded, answer_key: AnswerKey, out: Path) -> Path:
    """Write the feedback page of a graded submission into the folder `out`, and return its path."""
    page = out / feedback_path(graded)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, feedback_page(graded, answer_key))
    return page


def feedback_path(graded: Graded) -> Path:
    """Return the path of a feedback page in the folder of grades: `feedback/<student>/day<number>.html`.

    The page of a notebook whose day is not known is called `notebook.html`.
    """
    name = "notebook.html" if graded.day is None else f"day{graded.day}.html"
    return Path("feedback", safe_name(graded.student), name)


def feedback_zips(graded: Sequence[Graded], folder: Path) -> dict[str, bytes]:
    """Return, by file name, a zip for each download of Moodle or Canvas: `feedback_` and the download's own name.

    Args:
        graded: submissions whose feedback pages were written into `folder`.
    """
    pages: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for each in graded:
        download, _, name = each.back.partition("/")
        page = folder / feedback_path(each)
        if name and _is_plain(name):
            pages[download][name][page.name] = page.read_text(encoding="utf-8")
    return {
        f"feedback_{download}.zip": make_zip(
            {path: data for name, own in names.items() for path, data in _files_for_platform(name, own).items()}
        )
        for download, names in pages.items()
    }


def _is_plain(name: str) -> bool:
    """Return whether a name in a zip is one of a platform's: programs read others as another folder, or show them
    otherwise."""
    return name.isprintable() and len(name) <= MAX_NAME_LENGTH and not set(name) & {"\\", ":"}


def _files_for_platform(name: str, pages: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files that hold a student's pages in a zip for Moodle or Canvas, by their names there."""
    files = {page: text.encode() for page, text in pages.items()}
    if name.endswith("_assignsubmission_file_"):
        return {f"{name}/{page}": data for page, data in files.items()}
    if is_zip(name):
        return {name: make_zip(files)}
    if not is_notebook(name):
        return {}  # Canvas would show the student a page that is called, say, essay.pdf
    outputs = [nbformat.v4.new_output("display_data", {"text/html": page}) for page in pages.values()]
    hidden = {"jupyter": {"source_hidden": True}}
    cell = nbformat.v4.new_code_cell("# Feedback", id="feedback", outputs=outputs, metadata=hidden)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}  # or JupyterLab asks
    return {name: nbformat.writes(nbformat.v4.new_notebook(cells=[cell], metadata=kernel)).encode()}


def feedback_page(graded: Graded, answer_key: AnswerKey) -> str:
    """Return the feedback page of a graded submission as HTML, without scripts and without anything to fetch.

    All text from a student is escaped. Characters that are invisible or that reverse the text are spelt out.
    """
    known = {} if graded.day is None else tasks(answer_key, graded.day)
    exercises = [_ExerciseOnPage.of(each, known, graded.answers.get(each.id)) for each in graded.exercises]
    return _template().render(
        css=Markup(_read_beside("feedback.css")),
        day="Your notebook" if graded.day is None else day_title(answer_key, graded.day),
        student="" if graded.student == Path(graded.notebook).stem else spell_out(graded.student)[:200],
        notebook=spell_out(graded.notebook)[:200],
        message=spell_out(graded.message),
        score="" if is_ungraded(graded) else f"{graded.score:g} of {graded.max_score:g} points",
        exercises=exercises,
        next=next((each for each in exercises if each.status != "passed"), None),
    )


@dataclass(frozen=True)
class _ExerciseOnPage:
    """What the page shows of an exercise, ready for the template."""

    id: str
    title: str
    points: str
    unit: str
    status: str
    sign: str
    verdict: str
    message: str
    mistake: str
    hints: tuple[Markup, ...]
    code: Markup
    cut: str

    @classmethod
    def of(cls, result: Result, known: Mapping[str, Task], answer: str | None) -> _ExerciseOnPage:
        task = known.get(result.id, Task(result.id, ()))
        status = "ungraded" if result.machine_failed else result.status
        sign, verdict = SIGNS.get(status, ("?", status))
        code, cut = _colour_code(answer or "")
        return cls(
            id=result.id,
            title=task.title,
            points=f"{result.score:g} of {result.max_score:g}",
            unit="point" if result.max_score == 1 else "points",
            status=status,
            sign=sign,
            verdict=verdict,
            message="" if result.status == "missing" else spell_out(result.message),
            mistake=spell_out(result.mistake or ""),
            hints=() if result.status == "passed" else tuple(map(Markup, task.hints)),
            code=code,
            cut=cut,
        )


def _colour_code(source: str) -> tuple[Markup, str]:
    """Return an answer as coloured, numbered lines, and a note if it was cut."""
    spelt = spell_out(source[:MAX_CODE_LENGTH])
    lines = spelt[:MAX_CODE_LENGTH].split("\n")[:MAX_LINES]
    text = "\n".join(line[:MAX_LINE_LENGTH] for line in lines)
    cut = ""
    if len(source) > MAX_CODE_LENGTH or len(text) < len(spelt):
        what = "lines" if any(len(line) > MAX_LINE_LENGTH for line in lines) else "it"
        cut = f"Cut here: the answer has {len(source):,} characters, and only the beginning of {what} is shown."
    if not text.strip():
        return Markup(""), cut
    formatter = HtmlFormatter(linenos="inline", nowrap=False, cssclass="code", wrapcode=True)
    return Markup(highlight(text, PythonLexer(stripnl=False), formatter)), cut


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_read_beside("feedback.html"))


def _read_beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
