"""What the checks of a student's edition compare with: stored results, no answers.

`course release` writes a file a day with what the reference and each known mistake give on the visible inputs. The
numbers that are themselves the answer, those worked by hand, are sealed: a check can tell that a number is right, and
nobody can read it there. Who tries every number finds it, as who asks the check about every number does.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "expected"
ROUNDS = 20_000  # of hashing: about 10 ms, so that trying all numbers takes a while


def has_answers() -> bool:
    """Whether this is the full course; a student's edition holds expected results instead."""
    return find_spec("course_utils.checks.answers") is not None


def stored_days(folder: Path = FOLDER) -> list[int]:
    """The days of which results are stored."""
    return sorted(int(path.name.removesuffix(".json.gz").removeprefix("day")) for path in folder.glob("day*.json.gz"))


@cache
def stored(day: int, folder: Path = FOLDER) -> Mapping[str, Any]:
    """What is stored of a day's exercises, by grade_id. Raises KeyError for a day that this edition does not hold."""
    path = folder / f"day{day}.json.gz"
    if not path.exists():
        raise KeyError(f"this edition holds no checks of day {day}; it has those of days {stored_days(folder)}")
    return json.loads(gzip.decompress(path.read_bytes()), object_hook=_unsealed)


def store(exercises: Mapping[str, Any], path: Path) -> None:
    """Write what `stored` reads; the same results give the same bytes."""
    text = json.dumps(exercises, default=lambda sealed: {"sealed": asdict(sealed)}, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


@dataclass(frozen=True)
class Sealed:
    """A number that can be recognised, not read: any number at most `reach` away from it opens the seal."""

    salt: str
    offset: float
    reach: float
    digest: str

    def opens(self, number: float) -> bool:
        """Whether a number is the sealed one."""
        step = (number - self.offset) / (2 * self.reach)
        return math.isfinite(step) and _digest(self.salt, round(step)) == self.digest


def seal(number: float, reach: float, salt: str) -> Sealed:
    """The seal of a number; `salt` is any text, another one for each number."""
    step = round(number / (2 * reach))
    return Sealed(salt, number - 2 * reach * step, reach, _digest(salt, step))


def seal_outcomes(outcomes: Iterable[Mapping], reach, salt: str) -> list[Mapping]:
    """Outcomes with every number sealed; reach(rung, part, i, number) says how far."""
    return [
        outcome if "error" in outcome else {**outcome, "values": _seal_values(outcome, reach, salt)}
        for outcome in outcomes
    ]


def _seal_values(outcome: Mapping, reach, salt: str) -> dict:
    rung = outcome["rung"]
    return {
        part: {
            "shape": array["shape"],
            "numbers": [
                seal(number, reach(rung, part, i, number), f"{salt}/{part}/{i}")
                for i, number in enumerate(array["numbers"])
            ],
        }
        for part, array in outcome["values"].items()
    }


@lru_cache(maxsize=4096)
def _digest(salt: str, step: int) -> str:
    return hashlib.pbkdf2_hmac("sha256", str(step).encode(), salt.encode(), ROUNDS, 16).hex()


def _unsealed(found: dict) -> Any:
    return Sealed(**found["sealed"]) if found.keys() == {"sealed"} else found
