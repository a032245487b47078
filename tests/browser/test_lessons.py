"""Every lesson and every solution, opened in JupyterLab and run from top to bottom."""

import pytest

from .lab import REPOSITORY

NOTEBOOKS = sorted([*REPOSITORY.glob("notebooks/*.ipynb"), *REPOSITORY.glob("solutions/*.ipynb")])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_lessons_open_and_run(lab, path):
    with lab.open_file(path) as notebook:
        notebook.check_clean()
        assert notebook.find(".jp-OutputArea-output:has-text('Error displaying widget')").count() == 0
