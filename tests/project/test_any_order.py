"""A lesson's cells can be run again in any order: no name gets another meaning on the way."""

import nbformat
import pytest
from nbclient import NotebookClient

from course_utils.course import ROOT

UNTOLD = "nbval-ignore-output"  # the tag of cells that measure


def output_texts(cell):
    """What a cell shows, as text."""
    outputs = [output.get("text") or output.get("data", {}).get("text/plain") for output in cell.outputs]
    return "".join(text for text in outputs if text)  # one stream may come in several pieces


@pytest.mark.thorough("a lesson's cells are run, and again from the last to the first")
@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("day*.ipynb")), ids=lambda path: path.stem)
def test_after_a_full_run_each_cell_gives_the_same_again(path):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}})
    cells = [(place, cell) for place, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    with client.setup_kernel():
        for place, cell in cells:
            client.execute_cell(cell, place)
        before = {place: output_texts(cell) for place, cell in cells}
        for place, cell in reversed(cells):
            client.execute_cell(cell, place)
            if UNTOLD not in cell.metadata.get("tags", []):
                assert output_texts(cell) == before[place], cell.source
