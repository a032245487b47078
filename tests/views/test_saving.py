"""Saving a notebook leaves out what would hide a widget's picture, and nothing else."""

import copy
import json
import sys
from pathlib import Path

import nbformat
import pytest

from course_utils.views.saving import without_lost_widgets, without_python_version

ROOT = Path(__file__).parents[2]
BUILT = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*.ipynb"), *ROOT.glob("exercises/*.ipynb")])
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def model(*outputs, metadata=None):
    """Jupyter's model of a notebook with one cell that gave these outputs."""
    cell = nbformat.v4.new_code_cell("x", outputs=list(outputs))
    return {"type": "notebook", "content": nbformat.v4.new_notebook(cells=[cell], metadata=metadata or {})}


def display_output(**data):
    return nbformat.v4.new_output("display_data", {VIEW: {"model_id": "m1"}, "text/plain": "a widget", **data})


def data(saved):
    return saved["content"].cells[0].outputs[0].data


@pytest.mark.parametrize("path", BUILT, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_notebook_that_was_run_is_saved_as_it_was_built(path):
    built = nbformat.read(path, as_version=4)
    run = copy.deepcopy(built)
    for cell in run.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data[VIEW] = {"model_id": "m1", "version_major": 2, "version_minor": 1}
    run.metadata.language_info |= {"version": "3.11.7", "file_extension": ".py", "codemirror_mode": {"name": "ipython"}}
    for hook in (without_lost_widgets, without_python_version):
        hook({"type": "notebook", "content": run}, path=path.name, contents_manager=None)
    assert run == built


def test_another_notebook_keeps_what_its_kernel_is():
    own = model(metadata={"language_info": {"name": "python", "version": "3.11.7"}})
    without_python_version(own)
    assert own["content"].metadata.language_info.version == "3.11.7"


def test_a_widget_without_a_picture_keeps_its_name():
    saved = model(display_output())
    without_lost_widgets(saved)
    assert VIEW in data(saved)


def test_a_widget_whose_state_is_saved_keeps_its_name():
    saved = model(display_output(**{"image/png": "AA=="}), metadata={"widgets": {STATE: {"state": {"m1": {}}}}})
    without_lost_widgets(saved)
    assert VIEW in data(saved)
    del saved["content"].metadata["widgets"]
    without_lost_widgets(saved)
    assert set(data(saved)) == {"text/plain", "image/png"}


@pytest.mark.parametrize(
    "other", [{"type": "directory"}, {"type": "file", "content": "text"}, {"type": "notebook", "content": None}]
)
def test_what_is_no_notebook_is_let_through(other):
    before = copy.deepcopy(other)
    for hook in (without_lost_widgets, without_python_version):
        hook(other)
    assert other == before


def test_every_server_of_this_environment_loads_it():
    """`make` and `pip install -e .` put the file there; set the environment up again where it is missing."""
    installed = Path(sys.prefix) / "etc" / "jupyter" / "jupyter_server_config.d" / "course_utils.json"
    enabled = json.loads(installed.read_text())["ServerApp"]["jpserver_extensions"]
    assert enabled == {without_lost_widgets.__module__: True}
