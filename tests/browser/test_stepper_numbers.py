"""The stepper's numbers changed on the page, which computes all that follows; in JupyterLab Python does too."""

import numpy as np
import pytest
from as_page import on_page
from in_node import in_node
from needs import NODE

from course_utils.attention import arrays
from course_utils.views import AttentionStepper

pytestmark = NODE

SET_UP = """
import numpy as np
from course_utils.attention import arrays
from course_utils.views import AttentionStepper
X = np.array([[1, 0], [0, 1], [1, 1]])
def over_queries(q, k, v):
    powers = np.exp(q @ k.T / np.sqrt(2))
    return powers / powers.sum(0) @ v, powers / powers.sum(0)
"""
CELLS = [
    SET_UP,
    "stepper = AttentionStepper(X, np.eye(2), np.eye(2), [[1, 0], [0, 1]], ['a', 'b', 'c'])\nstepper",
    "V = [[1, 0], [0, 1], [0, 0]]\ntheirs = AttentionStepper.from_qkv(X, X, V, list('xyz'), attention=over_queries)\n"
    "theirs",
]
STEPPER, THEIRS = (f".course-stepper >> nth={place}" for place in range(2))

# The matrices of day 1, part 4.
X = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]
W = [[1, 0], [0, 1], [1, 1], [0, 0]], [[0, -1], [-1, 0], [1, 1], [1, 1]], [[1, 0], [0, 1], [0, 0], [0, 0]]

# All that a page shows of a stepper: each matrix of each stage, and what it says to each cell.
ALL = """(root) => [...root.querySelectorAll("[role=tab]")].map((tab) => {
  tab.click();
  const panel = root.querySelector(".course-stepper-current"), tables = [...panel.querySelectorAll("table")];
  return [panel.querySelector(".course-stepper-formula").textContent, tables.map((table) => [table.dataset.matrix,
    [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")].map((cell) => {
      cell.click();
      const why = [...root.querySelector("[role=status]").children].map((line) => line.textContent);
      return [cell.textContent, why, cell.classList.contains("course-stepper-differs")];
    }))])];
})"""


def on_screen(stepper):
    return stepper.evaluate(ALL)


def in_python(widget):
    """What Python knows of each cell, with the arithmetic that JavaScript tells of it."""
    shape = {
        name: (range(len(matrix["rows"])), range(len(matrix["columns"]))) for name, matrix in widget._matrices.items()
    }
    cells = [(name, r, c) for name, (rows, columns) in shape.items() for r in rows for c in columns]
    sent = on_page(widget)
    answers = in_node(
        "stepper_in_node.mjs", "explained", [[sent.numbers, sent.labels, sent.theirs, cell] for cell in cells]
    )
    lines = {cell: answer[0] for cell, answer in zip(cells, answers, strict=True)}

    def matrix(name):
        stored, (rows, columns) = widget._matrices[name], shape[name]
        return [
            name,
            [[[stored["text"][r][c], lines[name, r, c], stored["differs"][r][c]] for c in columns] for r in rows],
        ]

    return [
        [stage["formula"], [matrix(item["matrix"]) for item in stage["line"] if "matrix" in item]]
        for stage in widget._stages
    ]


def drawn(seed, rows, columns, size=1.0):
    return (size * np.random.default_rng(seed).normal(size=(rows, columns))).round(2)


def from_x(size=1.0, **more):
    w = [drawn(seed, 3, 2, size) for seed in (1, 2, 3)]
    return AttentionStepper(drawn(0, 4, 3), *w, list("abcd"), **more)


def some_wrong(q, k, v):
    output, weights = arrays.attention(np.asarray(q), np.asarray(k), np.asarray(v))
    return np.add(output, [[0, 1e-3], [0, 0], [np.nan, np.inf]]), weights.round(3)


MADE = {
    "from X": from_x,
    "with a mask": lambda: from_x(mask=np.tri(4)),
    "with an empty row": lambda: from_x(mask=[[0, 0, 0, 0], *np.tri(4)[1:]]),
    "large scores": lambda: from_x(size=30),
    "tiny numbers": lambda: from_x(size=1e-3),
    "ties and large ones": lambda: AttentionStepper.from_qkv(
        [[0.03125, -0.00125], [123450, 2.5], [0, 1e-14]], [[1 / 3, 4], [-0.5, 1e-5]], [[1000.5], [16.0625]],
        list("xyz"), list("kl"),
    ),
    "a square d_k": lambda: AttentionStepper.from_qkv(
        drawn(4, 2, 4), drawn(5, 3, 4), drawn(6, 3, 1), ["a", "b"], key_tokens=list("cde")
    ),
    "a wrong function": lambda: AttentionStepper.from_qkv(
        drawn(7, 3, 2), drawn(8, 3, 2), drawn(9, 3, 2), list("abc"), attention=some_wrong
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_the_page_and_python_say_the_same(alone, name):
    widget = MADE[name]()
    page = alone(widget)
    assert on_screen(page.locator(".course-stepper")) == in_python(widget)
    steps = sum(stage["steps"] for stage in widget._stages)
    assert page.locator(".course-player input").get_attribute("max") == str(steps - 1)


def player_place(stepper):
    return stepper.locator(".course-player-place").inner_text()


def numbers_on_page(stepper, matrix):
    """The numbers of a matrix in the current stage, "" where none is shown yet."""
    return stepper.locator(f".course-stepper-current [data-matrix='{matrix}'] [role=gridcell]").all_inner_texts()


def status_lines(stepper):
    return stepper.get_by_role("status").inner_text().splitlines()


def test_it_plays_from_x_to_the_output_and_each_step_is_reported(alone):
    page = alone(from_x())
    page.emulate_media(reduced_motion="reduce")
    stepper = page.locator(".course-stepper")
    steps = {}
    play, pause = (stepper.get_by_role("button", name=name) for name in ("play", "pause"))
    page.clock.pause_at("2031-01-01")  # or time also passes by itself, and more of it on a slow machine
    play.click()  # it opened at the weights, and plays from the start
    playing = True
    while playing:
        playing = pause.is_visible()
        steps[player_place(stepper)] = (
            stepper.get_by_role("tab", selected=True).inner_text(),
            tuple(status_lines(stepper)),
        )
        page.clock.run_for(300)  # shorter than a step
    page.clock.resume()
    assert list(steps) == [f"{step} of 40" for step in range(41)]
    stages = dict.fromkeys(stage for stage, _ in steps.values())
    assert list(stages) == ["X", "Q, K, V", "scores", "scaled", "weights", "output"]
    assert len({lines for _, lines in steps.values()}) == 41
    assert "" not in numbers_on_page(stepper, "output")


def test_a_pause_stops_where_it_is(alone):
    page = alone(from_x())
    stepper = page.locator(".course-stepper")
    stepper.get_by_role("button", name="play").click()
    page.clock.run_for(2500)
    stepper.get_by_role("button", name="pause").click()
    place = player_place(stepper)
    page.clock.run_for(9000)
    assert place == player_place(stepper) != "40 of 40"


def test_arrow_keys_fill_scores_cell_by_cell_with_their_dot_products_and_take_them_back(alone):
    stepper = alone(from_x()).locator(".course-stepper")
    stepper.get_by_role("tab", name="Q, K, V").click()
    slider = stepper.locator(".course-player input")
    keys = stepper.page.keyboard
    slider.focus()
    numbers = numbers_on_page(stepper, "Q")
    for filled in (1, 2, 3):
        keys.press("ArrowRight")
        scores = numbers_on_page(stepper, "scores")
        assert "" not in scores[:filled] and set(scores[filled:]) == {""}
        head, sums, _ = status_lines(stepper)
        assert head == f"scores[0, {filled - 1}]" and sums.endswith(f"= {scores[filled - 1]}")
        lit = stepper.locator(".course-stepper-current [data-matrix=Q] .course-stepper-row").all_inner_texts()
        assert lit == numbers[:2]
    keys.press("ArrowLeft")
    assert numbers_on_page(stepper, "scores") == [*scores[:2], *[""] * 14]
    for _ in range(2):
        keys.press("ArrowLeft")
    assert (
        stepper.get_by_role("tab", selected=True).inner_text() == "Q, K, V" and numbers_on_page(stepper, "Q") == numbers
    )


def test_a_row_of_weights_shades_the_values_that_it_blends(alone):
    stepper = alone(from_x()).locator(".course-stepper")
    stepper.get_by_role("tab", name="output").click()
    weights, values = (
        stepper.locator(f".course-stepper-current [data-matrix={name}] [role=gridcell]").evaluate_all(
            "cells => cells.map((cell) => cell.style.backgroundColor)"
        )
        for name in ("weights", "V")
    )
    assert values[::2] == values[1::2] == weights[-4:] and len(set(values)) > 1
    assert status_lines(stepper)[0] == "output[3], the row of “d”" and len(status_lines(stepper)) == 3


def test_a_number_that_is_not_there_yet_comes_when_it_is_chosen(alone):
    stepper = alone(from_x()).locator(".course-stepper")
    stepper.locator(".course-player input").fill("13")  # the first score
    cell(stepper, "scores", 1, 2).click()
    assert player_place(stepper) == "19 of 40" and status_lines(stepper)[0] == "scores[1, 2]"
    assert [text == "" for text in numbers_on_page(stepper, "scores")] == [False] * 7 + [True] * 9


def test_numbers_fly_to_what_they_make_only_where_motion_is_welcome(alone):
    page = alone(from_x())
    stepper = page.locator(".course-stepper")
    running = "document.getAnimations().length"
    for motion in ("reduce", "no-preference"):
        page.emulate_media(reduced_motion=motion)
        stepper.locator(".course-player input").fill("13")
        before = stepper.bounding_box()
        stepper.get_by_role("button", name="step", exact=True).click()
        assert (page.evaluate(running) > 0) == (motion == "no-preference")
        assert stepper.locator(".course-stepper-copy").count() == (4 if motion == "no-preference" else 0)
        assert numbers_on_page(stepper, "scores")[1] != "" and stepper.bounding_box() == before
    page.wait_for_function("document.getAnimations().length === 0")
    assert stepper.locator(".course-stepper-copy").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_no_step_moves_what_one_looks_at_or_makes_the_page_wider(alone, width):
    page = alone(AttentionStepper(X, W[0], W[1], W[2], ["the", "parcel", "arrived"]))
    page.set_viewport_size({"width": width, "height": 800})
    stepper = page.locator(".course-stepper")
    slider = page.locator(".course-player input")
    main = stepper.locator(".course-stepper-main")
    slider.focus()
    tops = set()
    heights = set()
    gaps = set()
    for _ in range(int(slider.get_attribute("max")) + 1):
        tops.add((slider.bounding_box()["y"], main.bounding_box()["y"]))
        heights.add(stepper.bounding_box()["height"])
        panel = main.locator(".course-stepper-current")
        parts = panel.locator(".course-stepper-formula, .course-stepper-line").all()
        gaps.add(main.bounding_box()["height"] - sum(part.bounding_box()["height"] for part in parts))
        page.keyboard.press("ArrowLeft")
    assert len(tops) == 1 and player_place(stepper) == "0 of 27"
    assert max(gaps) < 40 if width == 390 else len(heights) == 1  # on a phone the height is that of the stage
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_matrices_that_are_wider_than_a_phone_scroll_in_their_stage_and_leave_the_page_as_it_is(alone):
    w = [drawn(seed, 6, 4) for seed in (1, 2, 3)]
    page = alone(AttentionStepper(drawn(0, 8, 6), *w, [f"token{i}" for i in range(8)], mask=np.tri(8)))
    page.set_viewport_size({"width": 390, "height": 800})
    for stage in ("Q, K, V", "weights"):
        page.get_by_role("tab", name=stage).click()
        page.locator(".course-stepper-current[data-wide]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def field(stepper):
    return stepper.locator(".course-stepper-change input")


def cell(stepper, matrix, row, column):
    table = stepper.locator(f".course-stepper-current [data-matrix='{matrix}']").first
    return table.locator("tbody tr").nth(row).locator("td").nth(column)


CHANGES = [("X", 3, 1, "−2.5"), ("X", 0, 0, "1e2"), ("W_K", 2, 0, ".03125"), ("W_V", 0, 1, "+7."), ("X", 1, 1, "-0")]


@pytest.mark.parametrize("name", ["from X", "with a mask"])
def test_after_changes_without_a_kernel_both_say_the_same(alone, name):
    widget = MADE[name]()
    page = alone(widget)
    stepper = page.locator(".course-stepper")
    for matrix, row, column, text in CHANGES:
        stepper.get_by_role("tab", name="Q, K, V").click()
        cell(stepper, matrix, row, column).click()
        field(stepper).fill(text)
        field(stepper).press("Enter")
        widget.edit(matrix, row, column, float(text.replace("−", "-")))
        assert on_screen(stepper) == in_python(widget)
    stepper.get_by_role("button", name="all as given").click()
    widget.reset()
    assert on_screen(stepper) == in_python(widget)


def test_it_starts_at_the_weights_with_a_cell_chosen_and_follows_a_change_there(alone):
    stepper = alone(AttentionStepper(drawn(0, 3, 2), np.eye(2), np.eye(2), np.eye(2), list("abc"))).locator(
        ".course-stepper"
    )
    assert stepper.get_by_role("tab", selected=True).inner_text() == "weights"
    assert stepper.get_by_role("status").inner_text().startswith("weights[2, 2]")
    before = stepper.get_by_role("status").inner_text()
    stepper.get_by_role("button", name="X[2, 0] plus 0.5").click()
    assert stepper.get_by_role("tab", selected=True).inner_text() == "weights"
    assert stepper.get_by_role("status").inner_text() != before
    field(stepper).fill("3")
    field(stepper).press("Enter")
    assert stepper.get_by_role("tab", selected=True).inner_text() == "weights"  # to see what follows
    stepper.get_by_role("button", name="X[2, 0]: show where it stands").click()
    assert stepper.get_by_role("tab", selected=True).inner_text() == "X"
    widget = cell(stepper, "X", 2, 0)
    assert (
        widget.get_attribute("aria-label").endswith(", was −0.54") and widget.get_attribute("aria-selected") == "true"
    )


@pytest.mark.parametrize(
    ("typed", "status_lines"),
    [
        ("abc", "“abc” is not a number; 0.5 stays."),
        ("1e999", "1e999 is too large: give a number from −1000 to 1000; 0.5 stays."),
        ("-1001", "-1001 is too large: give a number from −1000 to 1000; 0.5 stays."),
        ("1,5", "“1,5” is not a number; 0.5 stays."),
        ("Infinity", "“Infinity” is not a number; 0.5 stays."),
        ("0x10", "“0x10” is not a number; 0.5 stays."),
        ("", "there is no number; 0.5 stays."),
    ],
)
def test_what_is_no_number_is_refused_with_a_word(alone, typed, status_lines):
    stepper = alone(AttentionStepper.from_qkv([[0.5]], [[1.0], [2.0]], [[1.0], [2.0]], ["a"], ["b", "c"])).locator(
        ".course-stepper"
    )
    before = on_screen(stepper)
    stepper.get_by_role("tab", name="Q, K, V").click()
    cell(stepper, "Q", 0, 0).click()
    field(stepper).fill(typed)
    field(stepper).press("Enter")
    assert stepper.locator(".course-stepper-refused").inner_text() == status_lines
    assert field(stepper).input_value() == "0.5"
    assert on_screen(stepper) == before


def test_by_keyboard_alone_in_jupyterlab(opened):
    stepper = opened.find(STEPPER)
    keyboard = opened.page.keyboard
    opened.run("stepper.stage = 'X'; stepper.cell = None")
    cell(stepper, "X", 0, 0).focus()
    active = opened.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowDown", "ArrowDown", "Enter", "Enter", "Control+a", "2", ".", "5", "Enter"):
        keyboard.press(key)
    opened.expect("stepper._numbers['X'][2]", "[2.5, 1.0]")
    assert cell(stepper, "X", 2, 0).evaluate("cell => cell === document.activeElement")
    for key in ("ArrowRight", "-", "4", "Enter"):  # a digit on a cell begins a number
        keyboard.press(key)
    opened.expect("stepper._numbers['X'][2]", "[2.5, -4.0]")
    keyboard.press("Enter")
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "7", "Escape"):
        keyboard.press(key)
    opened.expect("stepper._numbers['X'][2]", "[2.5, -3.5]")
    assert opened.page.evaluate("window.courseNotebook.content.activeCellIndex") == active
    opened.run("stepper.reset()")
    opened.wait(lambda: cell(stepper, "X", 2, 1).inner_text() == "1", "a reset in Python shows")


def test_a_double_click_opens_the_field(opened):
    stepper = opened.find(STEPPER)
    opened.run("stepper.stage = 'X'")
    cell(stepper, "X", 1, 0).dblclick()
    assert field(stepper).evaluate("field => field === document.activeElement")
    assert field(stepper).get_attribute("aria-label") == "X[1, 0]"


def test_a_function_is_asked_with_new_numbers(opened):
    theirs = opened.find(THEIRS)
    marked = theirs.locator(".course-stepper-panel [data-matrix=weights] .course-stepper-differs")
    assert marked.count() > 0
    stages = theirs.get_by_role("tab", name="Q, K, V")
    for row, column in ((0, 0), (1, 1), (2, 0), (2, 1)):  # without queries it does not matter over what softmax runs
        stages.click()
        cell(theirs, "Q", row, column).click()
        field(theirs).fill("0")
        field(theirs).press("Enter")
    opened.wait(lambda: marked.count() == 0, "it agrees")
    theirs.get_by_role("tab", name="weights").click()
    formula = theirs.locator(".course-stepper-current .course-stepper-formula")
    opened.wait(lambda: formula.inner_text().endswith("from your function"), "what it gives for the new numbers shows")
    assert opened.python("theirs.problem") == "''"
    assert theirs.locator(".course-stepper-silent").is_hidden()
    opened.run("theirs.reset()")


def test_without_a_kernel_a_function_is_said_not_to_answer(alone):
    page = alone(MADE["a wrong function"]())
    stepper = page.locator(".course-stepper")
    silent = stepper.locator(".course-stepper-silent")
    assert silent.is_hidden() and stepper.locator(".course-stepper-differs").count() > 0
    stepper.get_by_role("button", name="Q[2, 0] less 0.5").click()
    page.clock.run_for(2000)
    assert silent.inner_text() == "some_wrong has not answered for these numbers: that needs Python, in JupyterLab."
    assert stepper.locator(".course-stepper-differs").count() == 0
    stepper.get_by_role("button", name="all as given").click()
    assert silent.is_hidden() and stepper.locator(".course-stepper-differs").count() > 0


def test_no_axe_violations_in_either_theme(opened):
    opened.run("stepper.stage = 'X'; stepper.cell = ('X', 0, 0); stepper.edit('X', 0, 0, 3)")
    field(opened.find(STEPPER)).fill("abc")
    field(opened.find(STEPPER)).press("Enter")
    opened.check_accessible(".course-stepper")
