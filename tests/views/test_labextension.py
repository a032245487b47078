"""The extension of JupyterLab that gives pictures their alt texts is where JupyterLab looks for it.

That the alt texts are on the page is tested with every lesson, in `browser/test_lessons.py`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "labconfig" / "labextension"
INSTALLED = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "course_utils"


@pytest.mark.parametrize("name", ["package.json", "static/remoteEntry.js"])
def test_it_is_installed_as_it_is_written(name):
    """`make` and `pip install -e .` put the files there; set the environment up again where one is missing or old."""
    assert (INSTALLED / name).read_text() == (SOURCE / name).read_text()


@pytest.mark.thorough("JupyterLab is asked for its extensions")
def test_this_jupyterlab_lists_it_as_enabled_and_ok():
    listed = subprocess.run([sys.executable, "-m", "jupyter", "labextension", "list"], capture_output=True, text=True)
    (line,) = [line for line in (listed.stdout + listed.stderr).splitlines() if "course_utils" in line]
    assert "enabled" in line and "OK" in line, line
