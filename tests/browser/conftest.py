"""One JupyterLab server and one Chromium page for all browser tests. How to add a widget's tests: see `lab.py`."""

import importlib.util
import os
import pathlib
import shutil

import pytest

HERE = pathlib.Path(__file__).parent


def missing():
    """What this machine lacks for browser tests, or an empty string."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install playwright"
    if importlib.util.find_spec("axe_playwright_python") is None:
        return "axe-playwright-python is not installed: pip install axe-playwright-python"
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        return "Chromium is not installed: apt-get install chromium"
    return ""


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in pathlib.Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium; without one the test is skipped, in CI it fails."""
    if reason := missing():
        if os.environ.get("CI"):
            pytest.fail(f"CI skips nothing, and {reason}")
        pytest.skip(reason)
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
