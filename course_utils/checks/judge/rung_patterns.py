"""Which rungs hold for each known mistake of a day, written down by `course build`.

They spare the naming of a mistake most of its work: only mistakes that fail on the same rungs as an answer are run.
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
    """Which rungs hold, as text: 1101."""
    return "".join("01"[ok] for ok in held)


def patterns_path(day: int) -> Path:
    """Where the patterns of a day's mistakes are written down, beside its answers."""
    return loader.PACKAGE / "answers" / f"day{day}" / "held.json"


@cache
def read_patterns(day: int) -> Patterns:
    """What is written down of a day; nothing where that is old or was never done."""
    return {} if patterns_are_old(day) else json.loads(patterns_path(day).read_text(encoding="utf-8"))["held"]


def write_patterns(day: int, held: Patterns) -> None:
    """Write down the patterns of a day."""
    text = json.dumps({"of": _stamp(day), "held": held}, indent=1, ensure_ascii=False)
    write_whole(patterns_path(day), f"{text}\n")
    read_patterns.cache_clear()


def patterns_are_old(day: int) -> bool:
    """Whether a day's checks changed since its patterns were written down."""
    path = patterns_path(day)
    return not path.exists() or json.loads(path.read_text(encoding="utf-8"))["of"] != _stamp(day)


def _stamp(day: int) -> str:
    """A hash of the code that decides over a day's patterns: what its checks try, its answers, and the modules of days
    and answers that these import, other days' among them."""
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
