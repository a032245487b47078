"""The stored results that the checks of a student's edition compare with, in place of the answers.

`course release` writes one file per day with the results of the reference answer and of each known mistake on the
visible inputs. The hand-worked numbers are among them. They are not secret: a student can open this file, just as they
could brute-force the check.
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
    """Return the days whose results are stored."""
    return sorted(int(path.name.removesuffix(".json.gz").removeprefix("day")) for path in folder.glob("day*.json.gz"))


@cache
def load_stored_results(day: int, folder: Path = FOLDER) -> Mapping[str, Any]:
    """Return the stored results of a day's exercises, by grade_id.

    Raises:
        KeyError: for a day that this edition does not contain.
    """
    path = folder / f"day{day}.json.gz"
    if not path.exists():
        raise KeyError(f"this edition holds no checks of day {day}; it has those of days {stored_days(folder)}")
    return json.loads(gzip.decompress(path.read_bytes()))


def store(exercises: Mapping[str, Any], path: Path) -> None:
    """Write the file that `load_stored_results` reads; the same results give the same bytes."""
    text = json.dumps(exercises, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
