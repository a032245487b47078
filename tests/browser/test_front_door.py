"""A table of contents beside the first lesson that is opened."""

import nbformat
import pytest

SHOWN = "() => document.querySelector('.jp-TableOfContents')?.offsetParent !== null"


@pytest.mark.parametrize("width, contents", [(800, False), (1280, True)])
def test_a_lesson_opens_beside_its_contents_where_there_is_room(lab, width, contents):
    name = f"notebooks/day1_at {width}.ipynb"
    (lab.folder / "notebooks").mkdir(exist_ok=True)
    cells = [nbformat.v4.new_markdown_cell("# A lesson"), nbformat.v4.new_markdown_cell("## A part of it")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), lab.folder / name)
    lab.page.set_viewport_size({"width": width, "height": 1000})
    lab.page.evaluate(
        "async (path) => { await window.jupyterapp.commands.execute('docmanager:open', { path, kernel: null }); }", name
    )
    lab.page.wait_for_function("(path) => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=name)
    if contents:
        lab.page.wait_for_function(SHOWN)
        lab.page.locator(".jp-TableOfContents").get_by_text("A part of it").wait_for()
    else:
        assert not lab.page.evaluate(SHOWN)
    lab.page.set_viewport_size({"width": 1280, "height": 1000})
