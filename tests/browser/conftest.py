"""One JupyterLab server and one Chromium page for all browser tests. How to add a widget's tests: see `lab.py`."""

import pathlib

import pytest
from needs import CHROMIUM

HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in pathlib.Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(CHROMIUM)


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium."""
    from .lab import launched

    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """JupyterLab open in a page: `lab.open_cells([...])` or `lab.open_file(path)` gives a notebook that has run."""
    from .lab import Lab

    lab = Lab(chromium, tmp_path_factory.mktemp("lab"))
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture(scope="module")
def opened(lab, request):
    """A notebook of the module's CELLS that has run; at the end nothing must have gone wrong in it."""
    with lab.open_cells(request.module.CELLS) as notebook:
        yield notebook
        notebook.check_clean()
