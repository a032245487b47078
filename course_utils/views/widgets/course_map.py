"""The course map: a card a day, with what of its exercises is done and how its guesses came out."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils import guesses, progress
from course_utils.course import WORK_FOLDER, day_numbered, duration, in_sittings
from course_utils.errors import CourseError
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


GRADING = "Grading what changed. Each notebook takes a few seconds."


class ProgressMap(CourseWidget):
    """The nine days as cards: exercises done, points, the time left, the next exercise, links to the notebooks.

    root: the course's folder. Grades are those that `make grade` left in its folder grades/, guesses those in guesses/;
    a button reads both again. Another grades the notebooks of exercises/ as `make grade` does, where this is the whole
    course on a system that can grade. `.progress` is what was read, a `progress.Progress`, and `.guesses` those of
    each day. Text and picture show the course alone, so that a notebook with this widget holds nobody's grades. So does
    a page without a kernel, with links to the days' pages and the guesses that the browser keeps.
    """

    in_gallery = InGallery(7, "The map of the days", summary="See all days, with links to their lessons and exercises.")
    plays = False
    minutes = 0

    _esm = script("course_map.js")
    _css = style("course_map.css")

    _shown = traitlets.Dict().tag(sync=True)
    _asked = traitlets.Int(0).tag(sync=True)
    _gradings = traitlets.Int(0).tag(sync=True)
    _grading = traitlets.Unicode("").tag(sync=True)

    def __init__(self, root=WORK_FOLDER):
        self._root = Path(root)
        super().__init__()
        self.read()

    def read(self) -> None:
        """Read the notebooks, the grades and the guesses again."""
        self.progress = progress.read_progress(self._root)
        self.guesses: dict[int, list[guesses.StoredGuess]] = {}
        trouble = []
        for day in self.progress.days:
            try:
                self.guesses[day.number] = list(guesses.read(day.number, self._root).values())
            except CourseError as error:
                trouble.append(f"{error}.")
        all_guesses = [each for day in self.guesses.values() for each in day]
        guessed = [f"Your guesses: {' '.join(guesses.summed_up(all_guesses))}"] if all_guesses else []
        self._shown = {
            "lines": _summarise(self.progress) + trouble + guessed,
            "cards": [self._card(day) for day in self.progress.days],
            "home": Path.home().as_posix(),
            "grades": can_grade() and any(day.exercises for day in self.progress.days),
        }

    def alone_state(self) -> dict[str, Any]:
        cards = [
            {
                **{"name": f"Day {day.number}", "title": day.title, "planned": not day.name, "part": None, "next": ""},
                "lines": _describe_size(day),
                "links": [[name, Path(path).relative_to(self._root.absolute().as_posix()).as_posix()]
                          for name, path in self._links(day) if name != "feedback"],
            }
            for day in self.progress.days
        ]  # fmt: skip
        return {"_shown": {"lines": [], "cards": cards, "home": "", "grades": False}, "_grading": ""}

    @traitlets.observe("_asked")
    def _read_again(self, change):
        self.read()

    @traitlets.observe("_gradings")
    def _grade(self, change):
        if not self._grading and can_grade():
            self._grading = GRADING
            threading.Thread(target=self._run_grading, daemon=True).start()

    def _run_grading(self):
        """Grade in a process of its own, and show what came of it. The kernel goes on meanwhile."""
        try:
            done = subprocess.run(grading_of(self._root), cwd=self._root, capture_output=True, text=True, check=False)
            trouble = f"Nothing was graded: {_last_line(done.stderr)}" if done.returncode else ""
        except OSError as error:
            trouble = f"Nothing was graded: {error}"
        self.read()
        if trouble:
            self._shown = {**self._shown, "lines": [*self._shown["lines"], trouble]}
        self._grading = ""

    def as_text(self) -> str:
        rows = [(f"day {day.number}", day.title, *_describe_size(day)) for day in self.progress.days]
        width = max(len(title) for _, title, *_ in rows)
        return "\n".join(
            f"{name}  {title:{width}}  {'   '.join(f'{part:<24}' for part in size)}".rstrip()
            for name, title, *size in rows
        )

    def alt(self) -> str:
        days = "; ".join(
            f"day {day.number}, {day.title}: {', '.join(_describe_size(day))}" for day in self.progress.days
        )
        return f"Course map. {days}."

    def figure(self) -> Figure:
        width = 820
        step = 112
        columns = 3
        rows = -(-len(self.progress.days) // columns)
        height = step * rows + 8
        fig = new_figure(width, height)
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        for place, day in enumerate(self.progress.days):
            x, y = 8 + place % columns * 271, 8 + place // columns * step
            edge = palette.QUERY if day.name else palette.INK
            ax.plot([x, x], [y, y + step - 14], color=edge, linewidth=3, solid_capstyle="butt")
            ax.text(x + 14, y + 14, f"Day {day.number}")
            ax.text(x + 14, y + 36, day.title, fontsize=12, fontweight="bold")
            ax.text(x + 14, y + 50, "\n".join(_describe_size(day)), linespacing=1.1, va="top")
        return fig

    def _card(self, day):
        return {
            "name": f"Day {day.number}",
            "title": day.title,
            "planned": not day.name,
            "part": day.done / len(day.exercises) if day.exercises else None,
            "lines": _describe_progress(day)
            + ([line] if (line := guesses.in_a_line(self.guesses.get(day.number, ()))) else []),
            "next": _describe_next(day),
            "links": self._links(day),
        }

    def _links(self, day):
        """Kind and place of the day's notebooks; the page finds them below the folder that JupyterLab serves."""
        links = []
        for folder, name in (("notebooks", "lesson"), ("exercises", "exercises")):
            path = self._root / folder / f"{day.name}.ipynb"
            if day.name and path.exists():
                links.append([name, path.absolute().as_posix()])
        feedback = self._root / "grades" / "feedback" / day.name / f"day{day.number}.html"
        if day.graded and feedback.exists():
            links.append(["feedback", feedback.absolute().as_posix()])
        return links


def can_grade() -> bool:
    """Whether this machine can grade: it has the whole course, not a class's edition of it, on Linux or macOS."""
    return sys.platform != "win32" and importlib.util.find_spec("course_utils.grading") is not None


def grading_of(root: Path) -> list[str]:
    """Return the command that grades a learner's notebooks, as `make grade` does."""
    notebooks = sorted(path.relative_to(root).as_posix() for path in (root / "exercises").glob("*.ipynb"))
    return [sys.executable, "-m", "course_utils", "grade", "--out", "grades", "--", *notebooks]


def _last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason was given; run make grade in a terminal"


def _describe_size(day):
    """How much a day holds, whoever looks at it."""
    if not day.exercises:
        return ["no exercises here" if day.name else "planned"]
    takes = f"lesson {duration(day.lesson)} · exercises {duration(day.minutes)}"
    sittings = day_numbered(day.number).sittings
    if sittings:
        takes = f"{len(sittings)} sittings, lesson {in_sittings(day_numbered(day.number))} min"
        takes += f" · exercises {duration(day.minutes)}"
    return [f"{_count_of(len(day.exercises), 'exercise')} · {_count_of(day.points, 'point')}", takes]


def _describe_progress(day):
    """How far a day is, in words."""
    if not day.exercises:
        return _describe_size(day)
    lines = [f"{day.done} of {len(day.exercises)} exercises · {day.score:g} of {day.points:g} points"]
    lines += _describe_sittings(day)
    lines += [f"{what} {duration(minutes)} left" for what, minutes in day.remaining.items()]
    return [*lines, "changed since it was graded"] if day.changed else lines


def _describe_sittings(day):
    """How many exercises of each sitting are done; nothing for a day without sittings."""
    table = day_numbered(day.number)
    lines = []
    for number, name in enumerate(("first", "second")[: len(table.sittings)], 1):
        exercises = [each for each in day.exercises if table.sitting_of(each.part) == number]
        if not exercises:
            return []
        lines.append(f"{name} sitting: {sum(each.done for each in exercises)} of {len(exercises)}")
    return lines


def _describe_next(day):
    """Say what to do next in a day: to grade it again if every exercise passed and an answer has changed since."""
    if day.next:
        return f"Next: {_name_exercise(day.next)}"
    if not day.exercises:
        return ""
    return "Grade it again." if day.changed else "All done."


def _summarise(current):
    days = [day for day in current.days if day.exercises]
    done = sum(day.done for day in days)
    count = sum(len(day.exercises) for day in days)
    score = sum(day.score for day in days)
    points = sum(day.points for day in days)
    minutes = current.minutes_left
    remaining = f"about {minutes / 60:.0f} hours" if minutes >= 180 else duration(minutes)
    lines = [f"{done} of {count} exercises, {score:g} of {points:g} points, {remaining} left with the lessons."]
    remark = current.remark.replace(progress.BY_HAND, "and press Save and grade") if can_grade() else current.remark
    lines += [line for line in (current.trouble, remark) if line]
    if current.next and not current.trouble:
        day, exercise = current.next
        lines.append(f"Next: day {day.number}, {_name_exercise(exercise)}.")
    return lines


def _name_exercise(exercise):
    return f"{exercise.title} ({_count_of(exercise.minutes, 'minute')})"


def _count_of(number, thing):
    return f"{number:g} {thing}{'' if number == 1 else 's'}"
