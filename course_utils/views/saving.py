"""How a notebook with widgets is saved: an extension of Jupyter's server, on in every environment with the course.

A widget that JupyterLab shows lives in the kernel. Its output names it (`widget-view+json`) and holds a picture of it.
JupyterLab prefers the name to the picture, so a notebook that was run, saved and opened again another day would say
"Error displaying widget: model not found". Saved without the name it shows the picture until the cell is run.

JupyterLab also writes into a notebook, as soon as it is opened, which Python its kernel is. In the course's own
notebooks that is left out, so that opening and saving a lesson changes no line of it.
"""

from __future__ import annotations

from typing import Any

_VIEW = "application/vnd.jupyter.widget-view+json"
_STATE = "application/vnd.jupyter.widget-state+json"
BUILT_LANGUAGE = ("name", "pygments_lexer")


def without_lost_widgets(model: dict[str, Any], **_: Any) -> None:
    """Jupyter's pre-save hook: in the notebook to be saved, drop the name of each widget that has a picture.

    model: Jupyter's contents model, changed in place; files and folders are let through, and the page that saves keeps
        its live widgets. A widget without a picture keeps its name, and so does one whose state the notebook saves.
    """
    if model["type"] != "notebook" or not model.get("content"):
        return
    notebook = model["content"]
    saved_states = notebook["metadata"].get("widgets", {}).get(_STATE, {}).get("state", {})
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if _VIEW in data and "image/png" in data and data[_VIEW].get("model_id") not in saved_states:
                del data[_VIEW]


def without_python_version(model: dict[str, Any], **_: Any) -> None:
    """Jupyter's pre-save hook: of the course's notebooks, keep of the kernel's language what the build writes.

    model: Jupyter's contents model, changed in place. Other notebooks, files and folders are let through.
    """
    if model["type"] == "notebook" and model.get("content"):
        metadata = model["content"]["metadata"]
        if "course" in metadata and "language_info" in metadata:
            language = metadata["language_info"]
            metadata["language_info"] = {key: language[key] for key in BUILT_LANGUAGE if key in language}


def _jupyter_server_extension_points():
    return [{"module": __name__}]


def _load_jupyter_server_extension(server):
    """Nothing yet: Jupytext's extension, which loads after this one, puts a contents manager of its own in place."""


async def _start_jupyter_server_extension(server):
    for hook in (without_lost_widgets, without_python_version):
        server.contents_manager.register_pre_save_hook(hook)
