"""The widgets in JupyterLab, used by mouse and keyboard."""

import pytest

from .checks import check_arrow_keys, check_click_pins, check_enter_pins, check_hover, current_row

SET_UP = """
import numpy as np
from course_utils.views import AttentionHeatmap, AttentionStepper, Quiz
weights = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0, 0.5, 0.5, 0]]
large = np.random.default_rng(0).dirichlet(np.full(128, 0.1), 128)
Q = K = [[1, 0], [0, 1], [1, 1]]
V = [[1, 0], [0, 1], [0, 0]]
def over_queries(q, k, v, mask=None):
    scores = np.asarray(q) @ np.asarray(k).T / np.sqrt(2)
    weights = np.exp(scores) / np.exp(scores).sum(0)
    return weights @ np.asarray(v), weights
"""
CELLS = [
    SET_UP,
    "heatmap = AttentionHeatmap(weights, ['the', 'cat', 'sat'], ['der', 'Kater', 'saß', 'da'], title='small')\nheatmap",
    "big = AttentionHeatmap(large, [f'q{i}' for i in range(128)], [f'k{i}' for i in range(128)], title='large')\nbig",
    "medium = AttentionHeatmap(large[:24, :24], [f'token{i}' for i in range(24)], title='medium')\nmedium",
    "stepper = AttentionStepper([[1, 0], [0, 1], [1, 1]], np.eye(2), np.eye(2), [[1, 0], [0, 1]], ['a', 'b', 'c'],"
    " mask=[[1, 0, 0], [1, 1, 0], [1, 1, 1]])\nstepper",
    "theirs = AttentionStepper.from_qkv(Q, K, V, ['x', 'y', 'z'], attention=over_queries)\ntheirs",
    "def broken(q, k, v): return 1 / 0\nfailing = AttentionStepper.from_qkv(Q, K, V, ['x', 'y', 'z'], attention=broken)"
    "\nfailing",
    "quiz = Quiz([{'question': 'Over what does `softmax` run?', 'choices': ["
    "{'text': 'the keys', 'right': True, 'why': 'Each row sums to 1.'},"
    "{'text': 'the queries', 'right': False, 'why': 'Then the columns would sum to 1.'}]},"
    "{'question': 'What is QKᵀ for 3 queries and 5 keys?', 'choices': ["
    "{'text': '5×3', 'right': False, 'why': 'Rows are queries.'},"
    "{'text': '3×5', 'right': True, 'why': 'One row per query.'}]}])\nquiz",
    "other_quiz = Quiz([{'question': 'Is this another one?', 'choices': ["
    "{'text': 'yes', 'right': True, 'why': 'It is.'}, {'text': 'no', 'right': False, 'why': 'It is.'}]}])\nother_quiz",
    "masked = AttentionHeatmap([[1, 0, 0], [0.2, 0.5, 0.3], [0, 0, 0]], ['x', 'y', 'z'],"
    " mask=[[1, 0, 0], [1, 1, 0], [0, 0, 0]], title='masked')\nmasked",
    "wide = AttentionHeatmap(np.tri(24) / np.arange(1, 25)[:, None], range(24), mask=np.tri(24), title='wide')\nwide",
]
SMALL, BIG, MEDIUM = (f".course-heatmap >> nth={place}" for place in range(3))
MASKED, WIDE = (f".course-heatmap >> nth={place}" for place in (3, 4))
STEPPER, THEIRS, FAILING = (f".course-stepper >> nth={place}" for place in range(3))
QUIZ, OTHER_QUIZ = (f".course-quiz >> nth={place}" for place in range(2))


@pytest.fixture(scope="module")
def notebook(opened):
    return opened


def box(notebook, selector):
    return notebook.find(selector).bounding_box()


def stepper_cell(notebook, stepper, matrix, row, column):
    table = notebook.find(stepper).locator(f".course-stepper-current [data-matrix='{matrix}']").first
    return table.locator("tbody tr").nth(row).locator("td").nth(column)


@pytest.mark.parametrize(("selector", "name"), [(SMALL, "heatmap"), (BIG, "big")], ids=["table", "canvas"])
class TestHeatmap:
    def test_hover_shows_the_row_and_moves_nothing(self, notebook, selector, name):
        before = box(notebook, selector)
        check_hover(notebook, selector)
        assert box(notebook, selector) == before

    def test_arrow_keys_move_and_stay_out_of_the_notebook(self, notebook, selector, name):
        check_arrow_keys(notebook, selector)

    def test_enter_pins_and_unpins_in_python(self, notebook, selector, name):
        check_enter_pins(notebook, selector, name)

    def test_click_pins_in_python(self, notebook, selector, name):
        check_click_pins(notebook, selector, name)

    def test_a_row_pinned_in_python_shows(self, notebook, selector, name):
        notebook.page.mouse.move(2, 2)
        notebook.page.evaluate("document.activeElement.blur()")
        notebook.run(f"{name}.row = 2")
        notebook.wait(lambda: current_row(notebook, selector) == "2", "the row pinned in Python shows")
        state = notebook.find(selector).locator(".course-heatmap-state")
        assert state.inner_text() == "row 2, pinned"
        notebook.run(f"{name}.row = None")
        notebook.wait(lambda: state.inner_text() == "row 2", "the row is unpinned, and still there to read")

    def test_new_weights_keep_pin_focus_and_place(self, notebook, selector, name):
        notebook.run(f"{name}.row = 1")
        notebook.find(selector).locator("[tabindex='0']").focus()
        notebook.page.keyboard.press("Control+Home")
        before = box(notebook, selector)
        focused = notebook.page.evaluate("document.activeElement.className")
        number = notebook.find(selector).locator(".course-heatmap-number").first
        old = number.inner_text()
        notebook.run(f"old = {name}.weights; {name}.weights = old[::-1]")
        notebook.wait(lambda: number.inner_text() != old, "new weights show")
        assert notebook.page.evaluate("document.activeElement.className") == focused
        assert box(notebook, selector) == before
        notebook.expect(f"{name}.row", "1")
        notebook.run(f"{name}.weights = old; {name}.row = None")


def test_a_small_heatmap_is_a_grid_with_names(notebook):
    grid = notebook.find(SMALL).get_by_role("grid", name="small")
    assert grid.get_by_role("row").count() == 4
    assert grid.get_by_role("gridcell").first.inner_text() == "0.70"


def test_a_pinned_row_is_selected_for_assistive_technology(notebook):
    notebook.run("heatmap.row = 2")
    selected = notebook.find(SMALL).locator("[role=grid] [aria-selected=true]")
    notebook.wait(lambda: selected.count() == 1, "one row is selected")
    assert "sat" in selected.inner_text()
    notebook.run("heatmap.row = None")


def test_blocked_cells_are_hatched_named_and_explained(notebook):
    heatmap = notebook.find(MASKED)
    cells = heatmap.get_by_role("gridcell")
    assert cells.all_inner_texts() == ["1.00", "–", "–", "0.20", "0.50", "0.30", "–", "–", "–"]
    assert heatmap.get_by_role("gridcell", name="blocked", exact=True).count() == 5
    assert heatmap.get_by_role("gridcell", name="0.300, though blocked").count() == 1
    assert "gradient" in cells.nth(1).evaluate("cell => getComputedStyle(cell).backgroundImage")
    assert cells.nth(3).evaluate("cell => getComputedStyle(cell).backgroundImage") == "none"
    assert heatmap.get_by_text("blocked: may not attend").is_visible()
    assert heatmap.get_by_text("blocked, but has a weight: a leak").is_visible()
    cells.nth(4).hover()
    side = heatmap.locator(".course-heatmap-side")
    assert "a leak, 0.30 of the weight is on blocked keys" in side.inner_text()
    cells.nth(7).hover()
    assert "“z” may attend to nothing" in side.inner_text()
    assert "query z, key y: blocked" in side.inner_text()


def test_a_mask_set_in_python_shows_and_goes(notebook):
    heatmap = notebook.find(SMALL)
    legend = notebook.find(SMALL).locator(".course-heatmap-legend")
    assert legend.is_hidden()
    notebook.run("heatmap.mask = [[1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]")
    notebook.wait(lambda: heatmap.get_by_role("gridcell", name="blocked").count() == 2, "two cells are blocked")
    assert legend.is_visible() and heatmap.get_by_text("but has a weight").is_hidden()
    notebook.run("heatmap.mask = None")
    notebook.wait(lambda: heatmap.get_by_role("gridcell", name="blocked").count() == 0, "no cell is blocked")
    assert legend.is_hidden() and heatmap.get_by_role("gridcell").last.inner_text() == "0.00"


def test_a_canvas_leaves_blocked_cells_to_the_hatching_and_names_them(notebook):
    canvas = notebook.find(WIDE).locator(".course-heatmap-canvas canvas")
    alpha = "canvas => [...canvas.getContext('2d').getImageData(0, 0, 24, 2).data].filter((_, i) => i % 4 === 3)"
    assert canvas.evaluate(alpha) == [255] + [0] * 23 + [255] * 2 + [0] * 22
    assert "gradient" in canvas.evaluate("canvas => getComputedStyle(canvas).backgroundImage")
    notebook.find(WIDE).get_by_role("grid").focus()
    for key in ("Control+Home", "ArrowRight"):
        notebook.page.keyboard.press(key)
    assert notebook.find(WIDE).get_by_role("status").inner_text() == "query 0, key 1: blocked"
    notebook.run("old = wide.weights; new = old.copy(); new[0, 1] = 0.5; wide.weights = new")
    first = "canvas => [...canvas.getContext('2d').getImageData(1, 0, 1, 1).data]"
    notebook.wait(lambda: canvas.evaluate(first) == [0xD5, 0x5E, 0, 255], "the leak has the colour of keys")
    notebook.run("wide.weights = old")


def test_tabs_jump_to_stages_and_buttons_step_within_and_between_them(notebook):
    stepper = notebook.find(STEPPER)
    stepper.get_by_role("tab", name="scores").click()
    notebook.expect("stepper.stage, stepper.step", "(2, 18)")
    stepper.get_by_role("button", name="step", exact=True).click()
    notebook.expect("stepper.stage, stepper.step", "(3, 19)")
    stepper.get_by_role("button", name="back").click()
    stepper.get_by_role("tab", name="scores").focus()
    notebook.page.keyboard.press("ArrowRight")
    notebook.expect("stepper.stage, stepper.step", "(3, 21)")
    assert stepper.get_by_role("tab", selected=True).inner_text() == "scaled"


def test_all_stages_share_one_room_which_is_that_of_the_tallest(notebook):
    main = notebook.find(STEPPER).locator(".course-stepper-main")
    rooms = []
    for stage in ("X", "Q, K, V", "scores"):
        notebook.find(STEPPER).get_by_role("tab", name=stage, exact=True).click()
        bottoms = main.locator("table:visible").evaluate_all(
            "nodes => nodes.map((node) => node.getBoundingClientRect().bottom)"
        )
        whole = main.bounding_box()
        rooms.append((whole["height"], whole["y"] + whole["height"] - max(bottoms)))
    assert len({height for height, _ in rooms}) == 1 and 0 <= min(below for _, below in rooms) < 40


def test_a_narrow_page_breaks_a_line_of_matrices_before_a_sign(notebook):
    notebook.run("stepper.stage = 'Q, K, V'")
    current = notebook.find(STEPPER).locator(".course-stepper-current .course-stepper-part")
    notebook.wait(lambda: current.count() == 3, "the stage shows in three parts")
    assert [current.nth(i).inner_text()[0] for i in range(3)] == ["X", "·", "="]
    notebook.page.set_viewport_size({"width": 600, "height": 1000})
    try:
        notebook.wait(
            lambda: current.nth(2).bounding_box()["y"] > current.nth(0).bounding_box()["y"] + 100, "the result wraps"
        )
    finally:
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})


def test_a_clicked_cell_shows_its_arithmetic_and_lights_its_sources(notebook):
    notebook.run("stepper.stage = 'scores'")
    cell = stepper_cell(notebook, STEPPER, "scores", 2, 2)
    cell.wait_for()
    before = cell.bounding_box()
    cell.click()
    why = notebook.find(STEPPER).get_by_role("status")
    notebook.wait(lambda: "1·1 + 1·1 = 2" in why.inner_text(), "the arithmetic shows")
    current = notebook.find(STEPPER).locator(".course-stepper-current")
    assert current.locator("[data-matrix=Q] .course-stepper-row").all_inner_texts() == ["1", "1"]
    assert current.locator("[data-matrix='Kᵀ'] .course-stepper-column").all_inner_texts() == ["1", "1"]
    notebook.expect("stepper.cell", "('scores', 2, 2)")
    assert cell.bounding_box() == before


def test_a_chosen_pair_stays_chosen_in_the_next_stage(notebook):
    notebook.run("stepper.cell = ('scores', 2, 1)")
    notebook.find(STEPPER).get_by_role("tab", name="scaled").click()
    notebook.expect("stepper.cell", "('scaled', 2, 1)")


def test_arrow_keys_and_enter_choose_a_cell(notebook):
    notebook.run("stepper.cell = None; stepper.stage = 'output'")
    cell = stepper_cell(notebook, STEPPER, "weights", 0, 0)
    cell.wait_for()
    cell.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        notebook.page.keyboard.press(key)
    notebook.expect("stepper.cell", "('weights', 1, 1)")
    assert "softmax along row 1" in notebook.find(STEPPER).get_by_role("status").inner_text()


def test_a_cell_set_in_python_brings_its_stage(notebook):
    notebook.run("stepper.stage = 0; stepper.cell = ('V', 1, 1)")
    selected = notebook.find(STEPPER).get_by_role("tab", selected=True)
    notebook.wait(lambda: selected.inner_text() == "Q, K, V", "the stage of V shows")


def test_the_learners_numbers_are_shown_and_marked(notebook):
    notebook.run("theirs.cell = ('weights', 2, 0)")
    why = notebook.find(THEIRS).get_by_role("status")
    notebook.wait(lambda: "your function gives" in why.inner_text(), "the difference is told")
    assert notebook.find(THEIRS).locator(".course-stepper-current .course-stepper-differs").count() > 0


def test_an_exception_in_the_learners_function_is_a_message(notebook):
    assert "ZeroDivisionError" in notebook.find(FAILING).get_by_role("alert").inner_text()


def test_the_quiz_by_keyboard(notebook):
    quiz = notebook.find(QUIZ)
    keyboard = notebook.page.keyboard
    quiz.get_by_role("radio").first.focus()
    keyboard.press("Enter")
    assert "Each row sums to 1." in quiz.locator(".course-quiz-message").first.inner_text()
    keyboard.press("ArrowDown")
    assert "the columns would sum to 1" in quiz.locator(".course-quiz-message").first.inner_text()
    notebook.expect("quiz.answers", "[1, None]")
    keyboard.press("ArrowUp")
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    notebook.expect("quiz.answers, quiz.score", "([0, 1], 2)")
    assert "2 of 2 right" in quiz.locator(".course-quiz-score").inner_text()
    quiz.get_by_role("button", name="Start again").press("Enter")
    notebook.expect("quiz.answers", "[None, None]")


def test_two_quizzes_on_a_page_leave_each_other_alone(notebook):
    first = notebook.find(QUIZ)
    second = notebook.find(OTHER_QUIZ)
    first.get_by_role("radio").nth(1).check()
    second.get_by_role("radio").first.check()
    notebook.expect("quiz.answers[0], other_quiz.answers", "(1, [0])")
    assert first.get_by_role("radio").nth(1).is_checked() and second.get_by_role("radio").first.is_checked()


def test_no_axe_violations_in_either_theme(notebook):
    notebook.run(
        "heatmap.row = 1; masked.row = 1; wide.row = 2;"
        "stepper.cell = ('weights', 1, 0); theirs.cell = ('output', 1, 0); quiz.answers = [0, 0]"
    )
    notebook.check_accessible(".course-heatmap", ".course-stepper", ".course-quiz")


def test_nothing_went_wrong_on_the_way(notebook):
    notebook.check_clean()
