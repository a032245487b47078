"""What any heatmap must do in the browser: used on the real one, and on broken ones to see that it notices."""

from .lab import PATIENCE


def check_hover(notebook, selector, patience=PATIENCE):
    """Hovering a row shows it beside the grid."""
    _grid(notebook, selector, patience).hover(position={"x": 160, "y": 70})
    first = current_row(notebook, selector)
    _grid(notebook, selector, patience).hover(position={"x": 160, "y": 130})
    notebook.wait(lambda: current_row(notebook, selector) != first, "hovering another row shows it", patience)


def check_arrow_keys(notebook, selector, patience=PATIENCE):
    """Arrow keys move the row, and JupyterLab does not move to another cell."""
    _focus(notebook, selector, patience)
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("Control+Home", "ArrowDown", "ArrowDown", "ArrowRight"):
        notebook.page.keyboard.press(key)
    notebook.wait(lambda: current_row(notebook, selector) == "2", "arrow keys show row 2", patience)
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def check_enter_pins(notebook, selector, name, patience=PATIENCE):
    """Enter pins the row in Python, Enter again unpins it."""
    _focus(notebook, selector, patience)
    for key in ("Control+Home", "ArrowDown", "Enter"):
        notebook.page.keyboard.press(key)
    notebook.wait(lambda: notebook.python(f"{name}.row") == "1", "Enter pins row 1 in Python", patience)
    notebook.page.keyboard.press("Enter")
    notebook.wait(lambda: notebook.python(f"{name}.row") == "None", "Enter unpins", patience)


def check_click_pins(notebook, selector, name, patience=PATIENCE):
    """A click pins the row in Python; a second click unpins it."""
    grid = _grid(notebook, selector, patience)
    grid.click(position={"x": 160, "y": 70})
    notebook.wait(lambda: notebook.python(f"{name}.row") == current_row(notebook, selector), "a click pins", patience)
    grid.click(position={"x": 160, "y": 70})
    notebook.wait(lambda: notebook.python(f"{name}.row") == "None", "a second click unpins", patience)


def current_row(notebook, selector):
    """The row shown beside the grid."""
    return notebook.find(selector).locator(".course-heatmap-side").get_attribute("data-row")


def _grid(notebook, selector, patience):
    grid = notebook.find(selector).get_by_role("grid")
    notebook.wait(lambda: grid.count() == 1, "the heatmap is drawn", patience)
    return grid


def _focus(notebook, selector, patience):
    _grid(notebook, selector, patience)
    notebook.page.mouse.move(2, 2)
    notebook.find(selector).locator("[tabindex='0']").focus()
