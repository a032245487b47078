"""A learner's lab report: one HTML page of their own, which asks for nothing from elsewhere and is ready to print.

It shows whose each part of the models is, the curves and samples of the learner's trainings, and their answers to three
questions. It reads the learner's notebooks and the folder of their trainings, and changes neither.

A training is a folder below `training/` with the history.json that `train` writes beside its checkpoint. Beside it may
lie samples.json, a list of {"loss": nats a token, "text": what the model wrote then}.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template
from markdown_it import MarkdownIt
from markupsafe import Markup

from course_utils.course import EXERCISES, find_notebook, folder_advice, version
from course_utils.errors import CourseError, spell_out
from course_utils.files import write_whole
from course_utils.models.training import LAST
from course_utils.notebooks import read_notebook, report_cells
from course_utils.parts import collect
from course_utils.views import palette
from course_utils.views.picture import new_figure, png

DAY = 9
FILE = "lab-report.html"
TRAINING = "training"  # the folder of the learner's trainings, in the course's folder
QUESTIONS = {
    "report_1": "With your parts in the real model: by how much did its numbers differ, which part took the most time, "
    "and why?",
    "report_2": "Which heads of the real model did you switch off, what had you predicted, and what did you measure?",
    "report_3": "By how many bits per byte do two runs of your own differ, and how do you know whether that is chance?",
}
STUB = "Write your answer here."  # what an answer's cell holds at first
UNANSWERED = "not answered yet"
POINTS = 200  # of a curve; each is the mean of as many steps as it takes
LONGEST_SAMPLE = 2000  # characters


@dataclass(frozen=True)
class Training:
    """What the report shows of one training.

    Attributes:
        facts: what it came to, by name, in words.
        picture: the curve as the bytes of a PNG; empty if there are fewer than two steps.
        alt: the curve in words.
        samples: what the model wrote, each with a line above it.
    """

    name: str
    facts: dict[str, str]
    picture: bytes
    alt: str
    samples: tuple[tuple[str, str], ...]

    @property
    def source(self) -> str:
        """The picture as an address that holds it."""
        return "data:image/png;base64," + base64.b64encode(self.picture).decode()


def write_lab_report(root: Path, out: Path, name: str = "", today: date | None = None) -> Path:
    """Write the report on the course in `root` to the file `out`, and return its path.

    Args:
        name: the learner's name; without it the page has a line to write it on.
        today: the date on the page.

    Raises:
        CourseError: a notebook, a history or samples cannot be read, or the page cannot be written.
    """
    write_whole(out, lab_report(root, name, today or date.today()))
    return out


def lab_report(root: Path, name: str, today: date) -> str:
    """Return the report on the course in `root` as HTML. All text of the learner's is escaped."""
    if not (root / EXERCISES).is_dir():
        raise CourseError(f"there is no folder {EXERCISES} here; {folder_advice()}")
    collected = collect(root / EXERCISES)
    rows = collected.table()
    answers = read_answers(root / EXERCISES)
    return _template().render(
        css=Markup(_read_beside("lab_report.css")),
        name=spell_out(name),
        today=f"{today:%d %B %Y}".lstrip("0"),
        version=version(),
        rows=[[spell_out(word) for word in row] for row in rows],
        yours=sum(row[2] == "yours" for row in rows),
        trainings=read_trainings(root / TRAINING),
        answers=[(question, _as_html(answers[each])) for each, question in QUESTIONS.items()],
        unanswered=UNANSWERED,
    )


def _as_html(markdown: str) -> Markup:
    """Return an answer as HTML that loads nothing; HTML in it is shown as text."""
    reader = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])
    return Markup(reader.render(spell_out(markdown)))


def read_answers(folder: Path) -> dict[str, str]:
    """Return what the learner wrote in the cells of QUESTIONS, by name; empty where nothing is written.

    Raises:
        CourseError: the notebook of the day cannot be read.
    """
    answers = dict.fromkeys(QUESTIONS, "")
    path = find_notebook(folder, DAY)
    if path is None:
        return answers
    notebook, trouble = read_notebook(path)
    if notebook is None:
        raise CourseError(f"{path}: {trouble}")
    for name, cell in report_cells(notebook).items():
        if name in answers:
            answers[name] = cell.source.strip().removeprefix(f"*{STUB}*").strip()
    return answers


def read_trainings(folder: Path) -> list[Training]:
    """Return the trainings whose history lies in this folder or below, by the name of their folder.

    Raises:
        CourseError: a history or samples are not as `train` and a notebook write them.
    """
    return [_training(path, folder) for path in sorted(folder.rglob("history.json"))]


def _training(path: Path, folder: Path) -> Training:
    history = _read(path, dict)
    try:
        losses = [float(loss) for loss in history["losses"]]
        facts = {"steps": f"{len(losses):,}", "tokens a second": f"{float(history['tokens_per_second']):,.0f}"}
        if losses:
            last = losses[-LAST:]
            facts[f"mean loss of the last {len(last)} steps, nats a token"] = f"{np.mean(last):.3f}"
        bits = history["bits_per_byte"]
        facts["bits per byte on held-out text"] = "not finished" if bits is None else f"{float(bits):.3f}"
    except (KeyError, TypeError, ValueError) as error:
        raise CourseError(f"{path}: not the history of a training ({type(error).__name__}: {error})") from None
    name = "" if path.parent == folder else path.parent.relative_to(folder).as_posix()
    picture, alt = _curve(losses)
    return Training(spell_out(name), facts, picture, alt, _samples(path.with_name("samples.json")))


def _samples(path: Path) -> tuple[tuple[str, str], ...]:
    if not path.exists():
        return ()
    try:
        return tuple(
            (f"at a loss of {float(each['loss']):.2f} nats a token", spell_out(str(each["text"]))[:LONGEST_SAMPLE])
            for each in _read(path, list)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CourseError(f"{path}: not the samples of a training ({type(error).__name__}: {error})") from None


def _read(path: Path, kind: type) -> Any:
    """Return what a JSON file holds. Raises CourseError where it is not JSON, or of another kind."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CourseError(f"{path}: cannot be read ({type(error).__name__})") from None
    if not isinstance(value, kind):
        raise CourseError(f"{path}: not what a training writes")
    return value


def _curve(losses: Sequence[float]) -> tuple[bytes, str]:
    """Return the curve of a training as a PNG, and in words."""
    finite = [loss for loss in losses if math.isfinite(loss)]
    if len(losses) < 2 or not finite:
        return b"", ""
    width = math.ceil(len(losses) / POINTS)
    means = [np.mean(losses[start : start + width]) for start in range(0, len(losses), width)]
    figure = new_figure(620, 260)
    axes = figure.add_axes((0.1, 0.2, 0.87, 0.74))
    axes.plot(np.arange(len(means)) * width, means, color=palette.BLUE)
    axes.set(xlabel="step", ylabel="loss, nats a token")
    axes.grid(True)
    return png(figure), f"The loss is {losses[0]:.2f} nats a token at first and {means[-1]:.2f} at the end."


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_read_beside("lab_report.html"))


def _read_beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def main() -> None:
    """Write the report on the course in this folder, as `course lab-report` does; a class's edition has no `course`."""
    parser = ArgumentParser(description="Write your lab report, a page to print.")
    parser.add_argument("--out", type=Path, default=Path(FILE), help=f"the page to write ({FILE})")
    parser.add_argument("--name", default="", help="your name on the page")
    arguments = parser.parse_args()
    try:
        print(f"your lab report: {write_lab_report(Path(), arguments.out, arguments.name)}")
    except CourseError as error:
        sys.exit(f"course: {error}")


if __name__ == "__main__":
    main()
