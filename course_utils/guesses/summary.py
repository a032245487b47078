"""Summarise many guesses: how many were right, and whether they lean to one side.

`views/shared/guessing.js` does the same without a kernel.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from course_utils.guesses.nearness import distance
from course_utils.guesses.store import StoredGuess

_FEW = 4  # with fewer misses, no tendency can be told
_MAJORITY = 0.75


def summed_up(guesses: Iterable[StoredGuess]) -> list[str]:
    """Return a few sentences on the first guesses.

    They say how many choices are right, how far off the other guesses are, and to which side.
    """
    guesses = list(guesses)
    if not guesses:
        return ["No guess yet."]
    lines = [f"{_some(len(guesses), 'guess', 'guesses')}."]
    choices = [each.nearness for each in guesses if each.asked.kind == "choice"]
    if choices:
        right = sum(bool(nearness.right) for nearness in choices)
        lines.append(f"{right} of {_some(len(choices), 'choice')} right.")
    measured = [each for each in guesses if each.asked.kind != "choice"]
    if measured:
        leans = [each.nearness.lean for each in measured]
        parts = [f"{leans.count(lean)} {word}" for lean, word in ((1, "too high"), (-1, "too low"), (0, "neither"))]
        lines.append(f"Of {_some(len(measured), 'number or curve', 'numbers and curves')}: {', '.join(parts)}.")
        lines += [_medians(measured), tendency(guesses)]
    return lines


def in_a_line(guesses: Iterable[StoredGuess]) -> str:
    """Return the summary in a few words, such as "5 guesses: 3 too high, 1 too low"; "" without guesses."""
    guesses = list(guesses)
    leans = [each.nearness.lean for each in guesses if each.asked.kind != "choice"]
    parts = [f"{leans.count(lean)} too {side}" for lean, side in ((1, "high"), (-1, "low")) if lean in leans]
    if not guesses:
        return ""
    count = _some(len(guesses), "guess", "guesses")
    return f"{count}: {', '.join(parts)}" if parts else count


def tendency(guesses: Iterable[StoredGuess]) -> str:
    """Return a sentence on whether numbers and curves were guessed too high or too low on the whole."""
    leans = [each.nearness.lean for each in guesses if each.asked.kind != "choice" and each.nearness.lean]
    if len(leans) < _FEW:
        return "That is too few to show a tendency."
    for lean, side in ((1, "high"), (-1, "low")):
        if leans.count(lean) >= _MAJORITY * len(leans):
            return f"Your guesses tend to be too {side}: {leans.count(lean)} of {len(leans)} that missed."
    return "Your guesses lean neither way."


def _medians(measured: list[StoredGuess]) -> str:
    parts = []
    for scale in ("linear", "log"):
        offs = [each.nearness.off for each in measured if each.asked.scale == scale]
        if offs:
            parts.append(distance(statistics.median(offs), scale == "log"))
    scales = " on linear scales, and ".join(parts)
    return f"Their median error is {scales}{' on logarithmic ones' if len(parts) == 2 else ''}."


def _some(number: int, thing: str, things: str = "") -> str:
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"
