"""Pencil practice in JupyterLab, by keyboard and mouse."""

import pytest

from course_utils.views import Practice

CELLS = ["from course_utils.views import Practice\nwidget = Practice('softmax', 4)\nwidget"]
HERE = ".course-practice"


@pytest.fixture
def fresh_problem(opened):
    """The widget with problem 4 and nothing written."""
    opened.run("widget.number = 5; widget.number = 4")
    opened.wait(lambda: number(opened).input_value() == "4" and status(opened) == "", "problem 4 is shown")
    return opened


def status(notebook):
    return notebook.find(HERE).get_by_role("status").inner_text()


def number(notebook):
    return notebook.find(HERE).get_by_role("spinbutton")


def step(notebook, place):
    return notebook.find(HERE).locator(".course-practice-step").nth(place)


def entries(notebook):
    return notebook.find(HERE).get_by_role("textbox")


def test_matrices_are_grids_and_can_be_copied_as_text(lab):
    cell = "from course_utils.views import Practice\nwidget = Practice('attention-3x2', 4)\nwidget"
    with lab.open_cells([cell]) as notebook:
        text = notebook.find(f"{HERE}-message")
        assert text.text_content() == eval(notebook.python("widget.problem.statement"))
        for grid, rows in zip(text.locator(f"{HERE}-grid").all(), (2, 3, 3), strict=True):
            boxes = [each.bounding_box() for each in grid.locator("> span").all()]
            assert len({round(box["y"]) for box in boxes}) == rows
            assert len({round(box["x"] + box["width"]) for box in boxes}) == 2  # the numbers end in two columns
        notebook.check_accessible(HERE)


def test_steps_are_typed_and_judged_at_enter_and_stay_out_of_the_notebook(fresh_problem):
    active = fresh_problem.page.evaluate("window.courseNotebook.content.activeCellIndex")
    fresh_problem.run("right = [v.round(2).tolist() for v in widget.problem.solution().values()]")
    entries(fresh_problem).nth(0).focus()
    wrong = "9 9 9"
    fresh_problem.page.keyboard.type(wrong)
    fresh_problem.page.keyboard.press("Tab")
    fresh_problem.page.keyboard.type("dd")  # would delete a cell
    fresh_problem.page.keyboard.press("Enter")
    fresh_problem.wait(
        lambda: step(fresh_problem, 0).get_attribute("data-status") == "wrong", "the first step is wrong"
    )
    assert (
        step(fresh_problem, 1).get_attribute("data-status") == "unread"
        and "'dd' is not a number" in step(fresh_problem, 1).inner_text()
    )
    assert status(fresh_problem) == "The first wrong step is shifted."
    assert entries(fresh_problem).nth(0).get_attribute("aria-invalid") == "true"
    fresh_problem.expect("widget.entries[:2]", "['9 9 9', 'dd']")
    assert fresh_problem.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_with_nothing_written_a_check_says_that_the_fields_are_empty(fresh_problem):
    fresh_problem.find(HERE).get_by_role("button", name="Check", exact=True).click()
    fresh_problem.wait(lambda: status(fresh_problem).startswith("All fields are empty."), "the fields are called empty")
    assert [entry.get_attribute("aria-invalid") for entry in entries(fresh_problem).all()] == ["false"] * 4
    entries(fresh_problem).nth(0).fill("9 9 9")
    entries(fresh_problem).nth(0).press("Enter")
    fresh_problem.wait(lambda: status(fresh_problem) == "The first wrong step is shifted.", "the step is judged")


def test_right_steps_are_right_by_the_button(fresh_problem):
    right = eval(fresh_problem.python("[str(v.round(2).tolist()) for v in widget.problem.solution().values()]"))
    for place, text in enumerate(right):
        entries(fresh_problem).nth(place).fill(text)
    fresh_problem.find(HERE).get_by_role("button", name="Check", exact=True).click()
    fresh_problem.wait(lambda: status(fresh_problem) == "All steps are right.", "all steps are right")


def test_right_values_come_and_go(fresh_problem):
    right = step(fresh_problem, 0).locator(".course-practice-right")
    button = fresh_problem.find(HERE).get_by_role("button", name="Show the right values")
    assert right.is_hidden()
    button.click()
    fresh_problem.wait(
        lambda: right.is_visible() and button.get_attribute("aria-pressed") == "true", "right values are shown"
    )
    button.click()
    fresh_problem.wait(right.is_hidden, "right values are hidden")


def test_another_problem_and_one_by_number(fresh_problem):
    entries(fresh_problem).nth(0).fill("1 2 3")
    fresh_problem.find(HERE).get_by_role("button", name="Another problem").click()
    fresh_problem.wait(lambda: number(fresh_problem).input_value() != "4", "another problem is shown")
    assert entries(fresh_problem).nth(0).input_value() == ""
    number(fresh_problem).fill("17")
    number(fresh_problem).press("Enter")
    fresh_problem.wait(lambda: fresh_problem.python("widget.number") == "17", "problem 17 is posed")
    text = fresh_problem.find(HERE).locator(".course-practice-message")
    fresh_problem.wait(
        lambda: text.text_content() == eval(fresh_problem.python("widget.problem.statement")), "its text is shown"
    )
    number(fresh_problem).fill("-3")
    number(fresh_problem).press("Enter")
    fresh_problem.wait(lambda: number(fresh_problem).input_value() == "17", "a number that none can have is taken back")


def test_no_axe_violations_in_either_theme(fresh_problem):
    entries(fresh_problem).nth(0).fill("9 9 9")
    entries(fresh_problem).nth(0).press("Enter")
    fresh_problem.wait(lambda: status(fresh_problem) != "", "a step is judged")
    fresh_problem.check_accessible(HERE)


def test_a_narrow_page_without_kernel_holds_it_and_shows_the_right_values(alone):
    page = alone(Practice("attention"))
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Show the right values").click()
    assert page.get_by_text("right: −1 −2; 1 −2").is_visible()


def test_every_step_has_its_label(fresh_problem):
    assert entries(fresh_problem).count() == 4
    assert (
        fresh_problem.find(HERE).get_by_label("weights: each exponential over the sum of its row (3 numbers)").count()
        == 1
    )
