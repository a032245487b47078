"""Estimate by a fixed rule how long a lesson takes, and how far apart its places to stop are.

The rule counts prose at 90 words per minute, code that is shown at 7 lines per minute, four minutes for a task by
pencil, three for a widget, one and a half for a guess, and eight for a quiz, half of that for the quiz of a sitting.
Two readers of days 1 and 3 in November 2026 reckoned 165 and 180 minutes; for the same texts the rule gave 172 and 170.
What is in a fold or in an appendix counts half, because it is for those who want more. It is a rule of thumb for a
reader who works through everything, optional parts included. A cell whose code is folded shows no lines: that of the
setup is one.
"""

from __future__ import annotations

import re

from course_utils import views
from course_utils.views.shared.base import CourseWidget

STOP = "**A place to stop.**"
MOST = 45  # minutes between two places to stop, in a lesson of two sittings
MAX_SITTING_MINUTES = 75  # minutes
WORDS = 90  # of prose that one reads per minute
LINES = 7  # of shown code
PENCIL = 4  # minutes for a task by pencil
GUESS = 1.5  # minutes
SITTING = re.compile(r"^## (?:First|Second) sitting: (.+)$", re.MULTILINE)
_CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r"\A```[^\n]*\n(?:---\n.*?^---\n|(?::[^\n]*\n)+)?", re.MULTILINE | re.DOTALL)
_HIDDEN = "source_hidden: true"
_CALLED = re.compile(r"\b(?:views\.)?([A-Z]\w+)(?:\.\w+)?\(")
_NAMED = re.compile(r"^(\w+) = [A-Z]\w+\(.*\)$", re.MULTILINE)
_GUESSES = re.compile(r"\bguesses(?:\.\w+)?\(")
_PENCIL = re.compile(r"(?i:\bby pencil\b)|\bOn paper[:,]")
_TIMES = re.compile(r"^\*\*(?:Time\*\*|A place to stop\.).*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)  # asks for nothing
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_MORE = re.compile(r"^## Appendix.*?(?=^## |\Z)|^<details>.*?</details>", re.MULTILINE | re.DOTALL)


def stretches(lesson: str) -> list[float]:
    """Return the minutes of each stretch of a lesson; its places to stop divide it into stretches.

    Args:
        lesson: the text of a source. Its references do not count, because readers do not read through them.
    """
    body = _body(lesson)
    return _minutes_between(body, [match.start() for match in re.finditer(re.escape(STOP), body)])


def minutes(lesson: str) -> int:
    """Return the minutes of a whole lesson, to the nearest ten."""
    return round(sum(stretches(lesson)) / 10) * 10


def sittings(lesson: str) -> list[float]:
    """Return the minutes of each sitting of a lesson; one for a lesson that is not divided into sittings.

    The opening belongs to the first sitting, and so does the appendix to the last.
    """
    body = _body(lesson)
    return _minutes_between(body, [match.start() for match in SITTING.finditer(body)][1:])


def widgets_in(code: str) -> list[type[CourseWidget]]:
    """Return the widgets that code shows; one that gets a name is shown if a line is that name alone."""
    shown = _NAMED.sub(lambda line: line[0] if f"\n{line[1]}\n" in code else "", code)
    return [getattr(views, name) for name in _CALLED.findall(shown) if name in views.__all__]


def _minutes_between(body: str, places: list[int]) -> list[float]:
    """Return the minutes of each piece of a lesson that is divided at some places."""
    return [_minutes(body[start:end]) for start, end in zip([0, *places], [*places, len(body)], strict=True)]


def _minutes(text: str) -> float:
    return _unfolded_minutes(text) - sum(_unfolded_minutes(more) / 2 for more in _MORE.findall(text))


def _unfolded_minutes(text: str) -> float:
    """Return the minutes of a text, as if none of it was in a fold."""
    cells = _CELL.findall(text)
    prose = _CELL.sub("", text)
    guesses = sum(len(_GUESSES.findall(cell)) for cell in cells)
    pencil = len(_PENCIL.findall(_TIMES.sub("", prose)))
    work = PENCIL * pencil + GUESS * guesses + sum(map(_play, cells))
    return _words(prose) / WORDS + sum(map(_lines, cells)) / LINES + work


def _play(cell: str) -> float:
    """Return the minutes that one plays with the widgets of a cell; the quiz of a sitting takes half of a day's."""
    minutes = sum(widget.minutes for widget in widgets_in(cell))
    return minutes / 2 if "sitting=" in cell else minutes


def _lines(cell: str) -> int:
    """Return how many lines of code a cell shows; empty lines do not count."""
    return 0 if _HIDDEN in cell else sum(line.strip() not in ("", "```") for line in _HEADER.sub("", cell).splitlines())


def _words(prose: str) -> int:
    return len(re.findall(r"\w[\w'’-]*", prose))


def _body(lesson: str) -> str:
    return _FRONT.sub("", lesson).partition("\n## References\n")[0]
