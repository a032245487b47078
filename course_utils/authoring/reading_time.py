"""Estimate by a fixed rule how long a lesson takes, and how far apart its places to stop are.

The rule counts prose at 200 words per minute, half a minute to run and look at a cell, three minutes for an exercise by
pencil or a widget, one for a guess, and eight for the quiz at the end. It is a rule of thumb for a reader who works
through everything, optional parts included; nobody was timed. The cell that installs the course in Colab does not
count.
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
_CALLED = re.compile(r"\b(?:views\.)?([A-Z]\w+|guesses)(?:\.\w+)?\(")
_PENCIL = re.compile(r"\bby pencil\b", re.IGNORECASE)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def stretches(lesson: str) -> list[float]:
    """Return the minutes of each stretch of a lesson; its places to stop divide it into stretches.

    Args:
        lesson: the text of a source. Its references do not count, because readers do not read through them.
    """
    body = _body(lesson).partition("\n## References\n")[0]
    return [_minutes(part) for part in body.split(STOP)]


def minutes(lesson: str) -> int:
    """Return the minutes of a whole lesson, to the nearest ten."""
    return round(sum(stretches(lesson)) / 10) * 10


def words_before_play(lesson: str) -> int:
    """Return how many words of prose come before the first interactive widget; all words where there is none."""
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
    guesses, quizzes, practice = called.count("guesses"), called.count("Quiz"), called.count("Practice")
    plays = sum(name in PLAYS for name in called)
    work = 3 * (len(_PENCIL.findall(prose)) + plays + practice) + guesses + 8 * quizzes
    return _words(prose) / 200 + len(cells) / 2 + work


def _words(prose: str) -> int:
    return len(re.findall(r"\w[\w'’-]*", prose))


def _body(lesson: str) -> str:
    return _FRONT.sub("", lesson)
