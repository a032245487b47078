"""Store the states of a lesson's widgets as the build executed it; from them the site runs widgets without a kernel.

    notebooks/widgets/X.json   for notebooks/X.ipynb

Each state is taken when the widget is shown, and has the form that `views/shared/state.py` describes.
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
States = dict[str, list[dict[str, Any]]]  # by cell id: the cell's widgets, in the order of its outputs


def states_path(notebook: Path) -> Path:
    """Return the path of the file with the states of a notebook's widgets."""
    return notebook.parent / FOLDER / f"{notebook.stem}.json"


def take_states(notebook: NotebookNode) -> States:
    """Remove the widget states from a notebook's outputs, in place, and return them.

    Each has the keys `output` (index of the output in its cell), `widget` (the class) and `state`.
    """
    states: States = {}
    for cell in notebook.cells:
        for index, output in enumerate(cell.get("outputs", ())):
            if state := output.get("data", {}).pop(MIME, None):
                states.setdefault(cell.id, []).append({"output": index, **state})
    return states


def states_text(states: States, target: Path) -> str:
    """Return the text of the states file beside a lesson, empty where there is no widget, and for solutions.

    A stored state that is equal up to float rounding, as after a build on another processor, is kept.
    """
    if not states or target.parent.name != LESSONS:
        return ""
    before = read_states(target)
    merged = {
        cell: before[cell] if states_alike(widgets, before.get(cell)) else widgets for cell, widgets in states.items()
    }
    return "{\n" + ",\n".join(f"{_json(cell)}: {_json(widgets)}" for cell, widgets in merged.items()) + "\n}\n"


def digest(text: str) -> str:
    """Return the hash of a states file's text, which the notebook's metadata holds as `course.widgets`."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_states(notebook: Path) -> States:
    """Return the states of a notebook's widgets; empty where the file is missing or broken."""
    try:
        return json.loads(states_path(notebook).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
