"""A table of contents beside the first lesson that is opened."""

import nbformat

from .lab import Lab

SHOWN = "() => document.querySelector('.jp-TableOfContents')?.offsetParent !== null"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
OPEN = "async (path) => { await window.jupyterapp.commands.execute('docmanager:open', { path }); }"
IS_OPEN = "(path) => window.jupyterapp.shell.currentWidget?.context?.path === path"


def test_a_lesson_opens_beside_its_contents_where_there_is_room(chromium, tmp_path):
    lab = Lab(chromium, tmp_path)  # of its own: in a page that others used before, the first lesson may have come
    try:
        cells = [nbformat.v4.new_markdown_cell("# A lesson"), nbformat.v4.new_markdown_cell("## A part of it")]
        notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
        (lab.folder / "notebooks").mkdir()
        for width in (800, 1280):
            name = f"notebooks/day1_at {width}.ipynb"
            nbformat.write(notebook, lab.folder / name)
            lab.page.set_viewport_size({"width": width, "height": 1000})
            lab.page.evaluate(OPEN, name)
            lab.page.wait_for_function(IS_OPEN, arg=name)
            if width == 800:
                assert not lab.page.evaluate(SHOWN)
        lab.page.wait_for_function(SHOWN)
        lab.page.locator(".jp-TableOfContents").get_by_text("A part of it").wait_for()
    finally:
        lab.close()
