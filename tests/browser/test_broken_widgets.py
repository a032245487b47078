"""Broken JavaScript raises nothing in the kernel: the assertions of the other tests have to notice it."""

import pytest

from .checks import check_arrow_keys, check_click_pins, check_enter_pins, check_hover

BREAK = """
from course_utils.views import AttentionHeatmap
def broken(name, old, new):
    code = str(AttentionHeatmap._esm)
    assert code.count(old) >= 1, old
    broken_class = type(name, (AttentionHeatmap,), {"_esm": code.replace(old, new)})
    return broken_class([[0.5, 0.5, 0, 0]] * 3, list("abc"), list("wxyz"))
"""
QUICK = 150  # milliseconds; what is broken never comes, and all that leads to it has come before


def broken(lab, old, new):
    return lab.open_cells([BREAK, f"heatmap = broken('Broken', {old!r}, {new!r})\nheatmap"])


def check_says_and_draws_nothing(notebook, message, last_word):
    # All of it, since what comes later would be taken for the next notebook's.
    notebook.wait(lambda: any(last_word in text for text in notebook.lab.console), "the console tells of it")
    with pytest.raises(AssertionError, match=message):
        notebook.check_clean()
    with pytest.raises(AssertionError, match="drawn"):
        check_hover(notebook, ".course-heatmap", QUICK)


def test_a_syntax_error_is_noticed(lab):
    with broken(lab, "function render(", "function render(((") as notebook:
        check_says_and_draws_nothing(notebook, "console errors", "SyntaxError")


def test_a_throw_in_render_is_noticed(lab):
    with broken(
        lab, "this.read();\n    this.grid = ", "throw new Error('broken on purpose');\n    this.grid = "
    ) as notebook:
        check_says_and_draws_nothing(notebook, "broken on purpose", "broken on purpose")


@pytest.mark.parametrize(
    ("handler", "check", "missed"),
    [
        ("pointermove", check_hover, "hovering another row shows it"),
        ("keydown", check_arrow_keys, "arrow keys show row 2"),
    ],
    ids=["pointermove", "keydown"],
)
def test_a_handler_removed_is_noticed(lab, handler, check, missed):
    with broken(lab, f'addEventListener("{handler}"', f'addEventListener("not-{handler}"') as notebook:
        notebook.find(".course-heatmap [role=grid]").wait_for()
        notebook.check_clean()
        with pytest.raises(AssertionError, match=missed):
            check(notebook, ".course-heatmap", QUICK)


def test_a_pin_that_never_reaches_python_is_noticed(lab):
    with broken(lab, "model.save_changes()", "0") as notebook:
        notebook.find(".course-heatmap [role=grid]").wait_for()
        for check in (check_enter_pins, check_click_pins):
            with pytest.raises(AssertionError, match="pins"):
                check(notebook, ".course-heatmap", "heatmap", QUICK)


def test_an_outside_request_is_noticed(lab):
    asking = "fetch('https://example.org/x').catch(() => 0);\n    this.read();\n    this.grid = "
    with broken(lab, "this.read();\n    this.grid = ", asking) as notebook:
        notebook.wait(lambda: lab.outside, "the request is seen")
        with pytest.raises(AssertionError, match="example"):
            notebook.check_clean()
