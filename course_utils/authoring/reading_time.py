"""How long a lesson takes, by a rule that its text can be held against, and how far apart its places to stop are.

Prose is read at 200 words a minute. A cell takes half a minute to run and to look at, a piece of work by pencil and a
widget three, a guess one, the quiz at the end eight. That is a rule of thumb for a reader who works through all of it,
parts marked optional included; nobody was timed. The cell that installs the course in Colab counts nothing.
"""

from __future__ import annotations

import re
from itertools import accumulate

from course_utils.authoring.strip_answers import SETUP

STOP = "**A place to stop.**"
MOST = 45  # minutes between two places to stop
PLAYS = (
    "AttentionHeatmap",
    "AttentionStepper",
    "DecodeStepper",
    "HeadAblation",
    "HeadExplorer",
    "HeadGallery",
    "MaskPainter",
    "MemoryCalculator",
    "OnlineSoftmaxStepper",
    "PageTable",
    "QueryPlane",
    "SaturationExplorer",
    "ServingTimeline",
    "SpeculativeStepper",
    "TemperatureExplorer",
    "TileWalker",
    "TracePlayer",
)
_CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.MULTILINE | re.DOTALL)
_CALLED = re.compile(r"\b(?:views\.)?([A-Z]\w+)(?:\.\w+)?\(")
_PENCIL = re.compile(r"\bby pencil\b", re.IGNORECASE)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def stretches(lesson: str) -> list[float]:
    """Minutes of each stretch of a lesson, from its beginning to the first place to stop, and so on to its end.

    lesson: the text of a source. References are not read through, and count nothing.
    """
    body = _body(lesson).partition("\n## References\n")[0]
    return [_minutes(part) for part in body.split(STOP)]


def minutes(lesson: str) -> int:
    """Minutes of a whole lesson, to the nearest ten."""
    return round(sum(stretches(lesson)) / 10) * 10


def words_before_play(lesson: str) -> int:
    """How many words stand before the first widget that one explores; all of them where there is none."""
    body, read = _body(lesson), 0
    ends = [*(found.span() for found in _CELL.finditer(body)), (len(body), len(body))]
    starts = [0, *accumulate((end for _, end in ends), max)]
    for (start, end), before in zip(ends, starts, strict=False):
        read += _words(body[before:start])
        if set(_CALLED.findall(body[start:end])) & set(PLAYS):
            return read
    return read


def _minutes(text: str) -> float:
    cells = [cell for cell in _CELL.findall(text) if f"tags: [{SETUP}" not in cell]
    prose = _CELL.sub("", text)
    called = [name for cell in cells for name in _CALLED.findall(cell)]
    guesses, quizzes, practice = called.count("Guess"), called.count("Quiz"), called.count("Practice")
    plays = sum(name in PLAYS for name in called)
    work = 3 * (len(_PENCIL.findall(prose)) + plays + practice) + guesses + 8 * quizzes
    return _words(prose) / 200 + len(cells) / 2 + work


def _words(prose: str) -> int:
    return len(re.findall(r"\w[\w'’-]*", prose))


def _body(lesson: str) -> str:
    return _FRONT.sub("", lesson)
