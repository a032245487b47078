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


@pytest.fixture(scope="session")
def offline(chromium):
    """A page that reaches files only and whose clock tests may turn, and a list of what it says and asks for."""
    context = chromium.new_context(offline=True)
    recorded = []
    page = context.new_page()
    page.clock.install()
    page.on("console", lambda message: recorded.append(message.text))
    page.on("pageerror", lambda error: recorded.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else recorded.append(r.url))
    yield page, recorded
    context.close()


@pytest.fixture
def alone(offline, tmp_path):
    """`alone(widget)` shows a widget on a page of its own, without a kernel; nothing must go wrong on it.

    keep: whether what a page before kept in the browser stays. waits: as in JupyterLab where the kernel is gone.
    """
    from course_utils.views.static_page import static_page

    page, recorded = offline
    recorded.clear()

    def displayed_widget(widget, title="A page", keep=False, waits=False):
        if not keep:  # what a page before kept in the browser
            page.evaluate("try { localStorage.clear() } catch {}")
        file = tmp_path / "page.html"
        text = static_page(widget, title)
        assert text.count("alone: true") == 1
        file.write_text(text.replace("alone: true", "alone: false") if waits else text, encoding="utf-8")
        page.set_viewport_size({"width": 1280, "height": 720})  # a test before may have made it narrow
        page.emulate_media(reduced_motion="no-preference")
        page.goto(file.as_uri())
        page.locator("#widget > :not(img)").first.wait_for()
        return page

    yield displayed_widget
    assert page.locator("#widget > img").count() == 0 and recorded == []


@pytest.fixture(scope="module")
def opened(lab, request):
    """A notebook of the module's CELLS that has run; at the end nothing must have gone wrong in it."""
    with lab.open_cells(request.module.CELLS) as notebook:
        yield notebook
        notebook.check_clean()
