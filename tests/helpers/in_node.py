"""Functions of the widgets' JavaScript, called in Node: a thousand times in one process, without a browser."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

from needs import node_program

from course_utils.views.shared.base import SHARED, WIDGETS

DRIVER = Path(__file__).with_suffix(".mjs")


def in_node(module: str, name: str, calls: list[list[Any]]) -> list[Any]:
    """What the function of a module of `widgets`, of `shared` or of the tests returns for each list of arguments.

    Where it throws, that is {"error": its message}.
    """
    path = next(folder / module for folder in (WIDGETS, SHARED, DRIVER.parent) if (folder / module).exists())
    asked = {"module": str(path), "name": name, "calls": _plain(calls)}
    ended = subprocess.run(
        [node_program(), str(DRIVER)], input=json.dumps(asked), capture_output=True, text=True, encoding="utf-8"
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout, object_hook=_number)


def _plain(value: Any) -> Any:
    """The same as JSON has it, with {"number": "NaN"} in place of a number that JSON lacks."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    return value


def _number(found: dict[str, Any]) -> Any:
    return float(found["number"]) if found.keys() == {"number"} and isinstance(found["number"], str) else found
