"""A table of contents beside the first lesson that is opened."""

import nbformat

SHOWN = "() => document.querySelector('.jp-TableOfContents')?.offsetParent !== null"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
OPEN = "async (path) => { await window.jupyterapp.commands.execute('docmanager:open', { path }); }"
SHUT_DOWN = """async () => {  // the kernels of these notebooks; the others are in use
  const { sessions } = window.jupyterapp.serviceManager;
  const mine = [...sessions.running()].filter(({ path }) => path.startsWith("notebooks/day1_at"));
  await Promise.all(mine.map(({ id }) => sessions.shutdown(id)));
}"""
IS_OPEN = "(path) => window.jupyterapp.shell.currentWidget?.context?.path === path"


def test_a_lesson_opens_beside_its_contents_where_there_is_room(chromium, lab):
    context, page = lab.opened_in(chromium)  # of its own: in a page that others used before, the first lesson has come
    try:
        cells = [nbformat.v4.new_markdown_cell("# A lesson"), nbformat.v4.new_markdown_cell("## A part of it")]
        notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
        (lab.folder / "notebooks").mkdir()
        for width in (800, 1280):
            name = f"notebooks/day1_at {width}.ipynb"
            nbformat.write(notebook, lab.folder / name)
            page.set_viewport_size({"width": width, "height": 1000})
            page.evaluate(OPEN, name)
            page.wait_for_function(IS_OPEN, arg=name)
            if width == 800:
                assert not page.evaluate(SHOWN)
        page.wait_for_function(SHOWN)
        page.locator(".jp-TableOfContents").get_by_text("A part of it").wait_for()
        page.evaluate(SHUT_DOWN)
    finally:
        context.close()
