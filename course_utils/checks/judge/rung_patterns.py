"""The pattern of rungs that each known mistake of a day passes, stored by `course build`.

The patterns make it fast to name a mistake: only those that fail on the same rungs as an answer have to be run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from course_utils import loader
from course_utils.files import code_in, write_whole

Patterns = Mapping[str, Mapping[str, str]]  # by grade_id and the mistake's name, as `as_pattern` writes them


def as_pattern(held: Sequence[bool]) -> str:
    """Return which rungs hold as text, such as 1101."""
    return "".join("01"[ok] for ok in held)


def patterns_path(day: int) -> Path:
    """Return the path of a day's stored patterns, beside its answers."""
    return loader.PACKAGE / "answers" / f"day{day}" / "held.json"


@cache
def read_patterns(day: int) -> Patterns:
    """Return the stored patterns of a day; none where they are out of date or missing."""
    return {} if patterns_are_old(day) else json.loads(patterns_path(day).read_text(encoding="utf-8"))["held"]


def write_patterns(day: int, held: Patterns) -> None:
    """Store the patterns of a day."""
    text = json.dumps({"of": _stamp(day), "held": held}, indent=1, ensure_ascii=False)
    write_whole(patterns_path(day), f"{text}\n")
    read_patterns.cache_clear()


def patterns_are_old(day: int) -> bool:
    """Return whether a day's patterns are missing, or its code changed since they were stored."""
    path = patterns_path(day)
    return not path.exists() or json.loads(path.read_text(encoding="utf-8"))["of"] != _stamp(day)


def _stamp(day: int) -> str:
    """Return a hash of the code that a day's patterns depend on: its ladders, its answers, and the modules of days and
    answers that these import, those of other days included."""
    unread, read = [f"course_utils.days.day{day}.given.ladders", f"course_utils.answers.day{day}.exercises"], {}
    while unread:
        module = unread.pop()
        path = loader.PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
        read[module] = code_in(path.read_text(encoding="utf-8")) if path.exists() else ""
        for package, names in _IMPORTS.findall(read[module]):
            named = [package, *(f"{package}.{name.split()[0]}" for name in names.split(",") if name.strip())]
            unread += [each for each in named if each not in read]
    return hashlib.sha256("".join(read[module] for module in sorted(read)).encode()).hexdigest()


_IMPORTS = re.compile(
    r"^from (course_utils\.(?:days|answers|checks\.kernel\.(?:small|promises))[\w.]*) import \(?([^()\n]*|[^()]*\))",
    re.M,
)
