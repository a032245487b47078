"""What the widgets of a lesson held when the build executed it: from this the site makes them live without a kernel.

    notebooks/widgets/X.json   for notebooks/X.ipynb

A state is that of the moment when the widget was shown, as `views/shared/state.py` gives it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from course_utils.authoring.compare_outputs import states_alike
from course_utils.course import LESSONS
from course_utils.views.shared.state import MIME

FOLDER = "widgets"
States = dict[str, list[dict[str, Any]]]  # by the id of a cell: its widgets, in the order of its outputs


def states_path(notebook: Path) -> Path:
    """Where the states of a notebook's widgets lie."""
    return notebook.parent / FOLDER / f"{notebook.stem}.json"


def take_states(notebook: NotebookNode) -> States:
    """The widgets that a notebook shows, whose entries are taken out of its outputs: `output` (its index among those of
    the cell), `widget` (its class) and `state`."""
    states: States = {}
    for cell in notebook.cells:
        for index, output in enumerate(cell.get("outputs", ())):
            if kept := output.get("data", {}).pop(MIME, None):
                states.setdefault(cell.id, []).append({"output": index, **kept})
    return states


def states_text(states: States, target: Path) -> str:
    """The text of the file beside a lesson; what stood there before stays where only far digits differ, as on another
    processor. Empty where there is no widget, and beside solutions."""
    if not states or target.parent.name != LESSONS:
        return ""
    before = read_states(target)
    kept = {
        cell: before[cell] if states_alike(widgets, before.get(cell)) else widgets for cell, widgets in states.items()
    }
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


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
