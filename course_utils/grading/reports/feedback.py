"""A page of feedback for a student: verdicts, messages, hints and the student's own code, in one file of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_utils.authoring.answer_key import Official
from course_utils.files import write_whole
from course_utils.grading.intake.names import safe_name
from course_utils.grading.reports.tasks import Task, day_title, tasks
from course_utils.grading.results import Graded, Result, ungraded

LONGEST_CODE = 20_000  # characters of an answer that are shown
MOST_LINES = 500
LONGEST_LINE = 400  # the time that colouring takes can grow with the square of a line's length
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


def write_feedback(graded: Graded, official: Official, out: Path) -> Path:
    """Write the page of a graded submission into the folder `out`; returns its path."""
    page = out / feedback_place(graded)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, feedback_page(graded, official))
    return page


def feedback_place(graded: Graded) -> Path:
    """Where a page lies in the folder of grades: `feedback/<student>/<day>.html`; a notebook of no known day is
    `notebook.html`."""
    name = "notebook.html" if graded.day is None else f"day{graded.day}.html"
    return Path("feedback", safe_name(graded.student), name)


def feedback_page(graded: Graded, official: Official) -> str:
    """The page of one graded submission. It needs no script, and a browser fetches nothing for it.

    What is a student's is escaped, and characters that cannot be seen or that turn the text round are spelt out.
    """
    known = {} if graded.day is None else tasks(official, graded.day)
    exercises = [_Exercise.of(each, known, graded.answers.get(each.id)) for each in graded.exercises]
    return _template().render(
        css=Markup(_beside("feedback.css")),
        day="Your notebook" if graded.day is None else day_title(official, graded.day),
        student="" if graded.student == Path(graded.notebook).stem else spell_out(graded.student)[:200],
        notebook=spell_out(graded.notebook)[:200],
        message=spell_out(graded.message),
        score="" if ungraded(graded) else f"{graded.score:g} of {graded.max_score:g} points",
        exercises=exercises,
        next=next((each for each in exercises if each.status != "passed"), None),
    )


def spell_out(text: str) -> str:
    """Text in which every character that does not print, also one that turns the direction round, shows its code."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"⟦U+{ord(c):04X}⟧" for c in text.replace("\r\n", "\n"))


@dataclass(frozen=True)
class _Exercise:
    """What the page says of an exercise."""

    id: str
    title: str
    points: str
    unit: str
    status: str
    sign: str
    verdict: str
    message: str
    misconception: str
    hints: tuple[Markup, ...]
    code: Markup
    cut: str

    @classmethod
    def of(cls, result: Result, known: Mapping[str, Task], answer: str | None) -> _Exercise:
        task = known.get(result.id, Task(result.id, ()))
        status = "ungraded" if result.machine_failed else result.status
        sign, verdict = SIGNS.get(status, ("?", status))
        code, cut = _code(answer or "")
        return cls(
            id=result.id,
            title=task.title,
            points=f"{result.score:g} of {result.max_score:g}",
            unit="point" if result.max_score == 1 else "points",
            status=status,
            sign=sign,
            verdict=verdict,
            message="" if result.status == "missing" else spell_out(result.message),
            misconception=result.misconception or "",
            hints=() if result.status == "passed" else tuple(map(Markup, task.hints)),
            code=code,
            cut=cut,
        )


def _code(source: str) -> tuple[Markup, str]:
    """An answer as coloured lines with numbers, and a note where it had to be cut."""
    spelt = spell_out(source[:LONGEST_CODE])
    lines = spelt[:LONGEST_CODE].split("\n")[:MOST_LINES]
    shown = "\n".join(line[:LONGEST_LINE] for line in lines)
    cut = ""
    if len(source) > LONGEST_CODE or len(shown) < len(spelt):
        what = "lines" if any(len(line) > LONGEST_LINE for line in lines) else "it"
        cut = f"Cut here: the answer has {len(source):,} characters, and only the beginning of {what} is shown."
    if not shown.strip():
        return Markup(""), cut
    formatter = HtmlFormatter(linenos="inline", nowrap=False, cssclass="code", wrapcode=True)
    return Markup(highlight(shown, PythonLexer(stripnl=False), formatter)), cut


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_beside("feedback.html"))


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
