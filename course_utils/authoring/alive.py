"""What the widgets of a lesson held when the build executed it: from this the site makes them live without a kernel.

    notebooks/widgets/X.json   for notebooks/X.ipynb

A state is what anywidget sends to a page, without the script, the style and what Jupyter adds. Bytes stand as
`{"base64": "..."}`. A state is that of the moment when its cell ended.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbformat import NotebookNode

from course_utils.course import LESSONS

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
FOLDER = "widgets"
States = dict[str, list[dict[str, Any]]]  # by the id of a cell: its widgets, in the order of its outputs
_CLASS = "_anywidget_id"
_JUPYTER = {"_esm", "_css", _CLASS, "layout", "tabbable", "tooltip"}


def states_path(notebook: Path) -> Path:
    """Where the states of a notebook's widgets lie."""
    return notebook.parent / FOLDER / f"{notebook.stem}.json"


def states_of(client: NotebookClient, cell: NotebookNode) -> list[dict[str, Any]]:
    """The widgets among the outputs of a cell that has just run: `output` (its index), `widget` (class) and `state`."""
    found = []
    for index, output in enumerate(cell.outputs):
        model = output.get("data", {}).get(WIDGET_VIEW, {}).get("model_id")
        state = client.widget_state.get(model, {})
        if _CLASS not in state:
            continue  # no widget, or one of ipywidgets' own
        kept = {name: copy.deepcopy(value) for name, value in state.items() if not _of_jupyter(name)}
        for buffer in client.widget_buffers.get(model, {}).values():
            _put(kept, list(buffer["path"]), {"base64": buffer["data"].strip()})
        found.append({"output": index, "widget": state[_CLASS].rpartition(".")[2], "state": kept})
    return found


def states_text(states: States, target: Path) -> str:
    """The text of the file beside a lesson; what stood there before stays where only far digits differ, as on another
    processor. Empty where there is no widget, and beside solutions."""
    if not states or target.parent.name != LESSONS:
        return ""
    before = read_states(target)
    kept = {cell: before[cell] if _alike(widgets, before.get(cell)) else widgets for cell, widgets in states.items()}
    return "{\n" + ",\n".join(f"{_json(cell)}: {_json(widgets)}" for cell, widgets in kept.items()) + "\n}\n"


def digest(text: str) -> str:
    """What a notebook's metadata says of its states, as `course.widgets`."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_states(notebook: Path) -> States:
    """The states of a notebook's widgets; none where the file is missing or is none."""
    try:
        return json.loads(states_path(notebook).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _of_jupyter(name: str) -> bool:
    return name in _JUPYTER or name.startswith(("_model", "_view", "_dom"))


def _put(state: Any, path: list[Any], value: Any) -> None:
    for name in path[:-1]:
        state = state[name]
    if isinstance(state, dict) or path[-1] < len(state):
        state[path[-1]] = value
    else:
        state.append(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9) or one == other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other
