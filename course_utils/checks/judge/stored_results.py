"""What the checks of a student's edition compare with: stored results, no answers.

`course release` writes a file a day with what the reference and each known mistake give on the visible inputs. Among
them are the numbers that are worked by hand. Who looks for them there finds them, as who asks the check about one
number after the other does: nothing here pretends to hide what fits into a notebook's memory.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "expected"


def stored_days(folder: Path = FOLDER) -> list[int]:
    """The days of which results are stored."""
    return sorted(int(path.name.removesuffix(".json.gz").removeprefix("day")) for path in folder.glob("day*.json.gz"))


@cache
def stored(day: int, folder: Path = FOLDER) -> Mapping[str, Any]:
    """What is stored of a day's exercises, by grade_id. Raises KeyError for a day that this edition does not hold."""
    path = folder / f"day{day}.json.gz"
    if not path.exists():
        raise KeyError(f"this edition holds no checks of day {day}; it has those of days {stored_days(folder)}")
    return json.loads(gzip.decompress(path.read_bytes()))


def store(exercises: Mapping[str, Any], path: Path) -> None:
    """Write what `stored` reads; the same results give the same bytes."""
    text = json.dumps(exercises, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
