"""The mask painter and the heatmap with a mask, in JupyterLab, by mouse and keyboard."""

import pytest
import torch

from course_utils.views import MaskPainter

SET_UP = """
import numpy as np, torch
from course_utils.views import AttentionHeatmap, MaskPainter
T = ['the', 'cat', 'sat', 'down']
def ignores(q, k, v, mask):
    weights = torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1)
    return weights @ v, weights
def fails(q, k, v, mask):
    if mask.all():
        raise ZeroDivisionError('on purpose')
    weights = torch.softmax((q @ k.T).masked_fill(~mask, -torch.inf), dim=-1)
    return weights @ v, weights
"""
CELLS = [
    SET_UP,
    "painter = MaskPainter(T)\npainter",
    "theirs = MaskPainter(T, attention=ignores)\ntheirs",
    "failing = MaskPainter(T, attention=fails)\nfailing",
    "large = MaskPainter([f't{i}' for i in range(16)])\nlarge",
    "crossed = MaskPainter(T, keys=['die', 'Katze'])\ncrossed",
]
PAINTER, THEIRS, FAILING, LARGE, CROSSED = (f".course-painter >> nth={place}" for place in range(5))
CAUSAL = "1000110011101111"
PAINTED = "''.join(str(int(cell)) for cell in painter.mask.flat)"


@pytest.fixture
def notebook(opened):
    """The notebook with every mask causal again."""
    opened.run("for p in (painter, theirs, failing, large):\n    p.mask = np.tri(len(p.mask)); p.family = 'causal'")
    opened.wait(lambda: mask_on_page(opened, PAINTER) == CAUSAL, "the mask is causal")
    return opened


def box(notebook, selector, row, column):
    return notebook.find(selector).locator(f".course-painter-box[data-row='{row}'][data-column='{column}']")


def mask_on_page(notebook, selector):
    """The mask on the page, as 0 and 1."""
    checked = (
        notebook.find(selector)
        .get_by_role("checkbox")
        .evaluate_all("boxes => boxes.map((box) => box.getAttribute('aria-checked'))")
    )
    return "".join("1" if value == "true" else "0" for value in checked)


def chosen(notebook, selector):
    return notebook.find(selector).locator(".course-painter-family input:checked").get_attribute("value")


def verdict(notebook, selector):
    return notebook.find(selector).get_by_role("status").inner_text()


def weights(notebook, selector):
    return notebook.find(selector).get_by_role("table").get_by_role("cell").all_inner_texts()


def drag(notebook, selector, *cells):
    mouse = notebook.page.mouse
    box(notebook, selector, *cells[0]).scroll_into_view_if_needed()
    areas = [box(notebook, selector, *cell).bounding_box() for cell in cells]
    (x, y), *others = [(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2) for area in areas]
    mouse.move(x, y)
    mouse.down()
    for x, y in others:
        mouse.move(x, y)
    mouse.up()


def test_a_click_paints_a_cell_and_the_weights_and_the_verdict_follow(notebook):
    box(notebook, PAINTER, 0, 3).click()
    assert mask_on_page(notebook, PAINTER) == "1001110011101111"  # at once, before Python answers
    assert chosen(notebook, PAINTER) == "painted"
    notebook.expect("painter.mask[0].tolist(), painter.family", "([True, False, False, True], 'painted')")
    text = "looks ahead: the output of “the” changes when “down” changes"
    notebook.wait(lambda: text in verdict(notebook, PAINTER), "the look ahead is told")
    text = "That is a leak in a causal model, but harmless in an encoder, which only reads."
    assert text in verdict(notebook, PAINTER)
    assert weights(notebook, PAINTER)[1:3] == ["–", "–"] and weights(notebook, PAINTER)[3] != "–"
    box(notebook, PAINTER, 0, 3).click()
    assert chosen(notebook, PAINTER) == "causal"
    notebook.expect("painter.family", "'causal'")
    notebook.wait(lambda: "no leak" in verdict(notebook, PAINTER), "the leak is gone")


def test_a_drag_paints_with_what_its_first_cell_took(notebook):
    drag(notebook, PAINTER, (0, 1), (0, 3), (3, 3))  # opens; (3, 3) is open already and stays so
    assert mask_on_page(notebook, PAINTER) == "1111110111111111"
    notebook.expect(PAINTED, "'1111110111111111'")
    drag(notebook, PAINTER, (3, 0), (3, 3))  # blocks
    assert mask_on_page(notebook, PAINTER) == "1111110111110000"
    notebook.expect(PAINTED, "'1111110111110000'")
    notebook.wait(lambda: "“down” may attend to nothing" in verdict(notebook, PAINTER), "the blocked row is named")
    for table in notebook.find(PAINTER).locator("table").all():
        assert table.locator("th[data-mark=e]").all_inner_texts() == ["down"]


def test_a_drag_that_jumps_leaves_no_gap(notebook):
    drag(notebook, LARGE, (0, 1), (0, 15))
    assert mask_on_page(notebook, LARGE)[:16] == "1" * 16
    notebook.expect("large.mask[0].all()", "np.True_")


def test_after_a_quick_drag_the_last_state_wins(notebook):
    row = [(15, column) for column in range(16)]
    drag(notebook, LARGE, *row)
    drag(notebook, LARGE, *reversed(row))
    drag(notebook, LARGE, *row)
    page = mask_on_page(notebook, LARGE)
    assert page.endswith("0" * 16)
    notebook.expect("large._mask", repr(page))
    notebook.expect("large._result['mask']", repr(page))
    notebook.wait(lambda: "“t15” may attend to nothing" in verdict(notebook, LARGE), "the last verdict shows")
    assert notebook.find(LARGE).locator(".course-painter-waits").count() == 0


def test_the_keyboard_paints_and_stays_out_of_the_notebook(notebook):
    keyboard = notebook.page.keyboard
    box(notebook, PAINTER, 0, 0).focus()
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    keyboard.press("Control+End")
    keyboard.press("Control+Home")
    keyboard.press("ArrowRight")
    keyboard.press("Space")
    assert mask_on_page(notebook, PAINTER) == "1100110011101111"
    keyboard.press("Shift+ArrowRight")
    keyboard.press("Shift+ArrowDown")
    assert mask_on_page(notebook, PAINTER) == "1110111011101111"
    keyboard.press("Enter")
    assert mask_on_page(notebook, PAINTER) == "1110110011101111"
    keyboard.press("End")
    keyboard.press("ArrowRight")  # stays at the edge
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    assert mask_on_page(notebook, PAINTER) == "1111110011101111"
    notebook.expect(PAINTED, "'1111110011101111'")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active
    focused = notebook.page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "the may attend to down"
    assert notebook.find(PAINTER).locator(".course-painter-box[tabindex='0']").count() == 1


def test_a_family_is_chosen_by_click_and_by_arrow_keys(notebook):
    notebook.find(PAINTER).get_by_role("radio", name="bidirectional").check()
    assert mask_on_page(notebook, PAINTER) == "1" * 16
    notebook.expect("painter.family", "'bidirectional'")
    notebook.page.keyboard.press("ArrowRight")
    notebook.expect("painter.family", "'causal'")
    notebook.page.keyboard.press("ArrowRight")
    notebook.expect("painter.family", "'sliding window'")
    assert mask_on_page(notebook, PAINTER) == "1000110011100111"


def test_a_painted_mask_comes_back_after_a_look_at_a_family(notebook):
    painter = notebook.find(PAINTER)
    box(notebook, PAINTER, 2, 0).click()
    painter.get_by_role("radio", name="padding").check()
    notebook.expect("painter.family", "'padding'")
    painter.get_by_role("radio", name="painted").check()
    assert mask_on_page(notebook, PAINTER) == "1000110001101111" and chosen(notebook, PAINTER) == "painted"
    notebook.expect(f"{PAINTED}, painter.family", "('1000110001101111', 'painted')")
    box(notebook, PAINTER, 2, 1).click()
    assert mask_on_page(notebook, PAINTER) == "1000110000101111"
    painter.get_by_role("radio", name="causal").check()
    painter.get_by_role("radio", name="painted").check()
    notebook.expect(PAINTED, "'1000110000101111'")


def test_before_anything_is_painted_there_is_nothing_to_bring_back(alone):
    page = alone(MaskPainter(["a", "b"]))
    painted = page.get_by_role("radio", name="painted")
    assert painted.is_disabled()
    page.get_by_role("checkbox", name="b may attend to a").click()
    page.get_by_role("checkbox", name="a may attend to b").click()
    assert painted.is_enabled() and painted.is_checked()
    page.get_by_role("radio", name="causal").check()
    painted.check()
    assert [box.is_checked() for box in page.get_by_role("checkbox").all()] == [True, True, False, True]


@pytest.mark.parametrize(
    ("family", "label", "name", "mask"),
    [
        ("sliding window", "places in the window", "window", "1000010000100001"),
        ("prefix-LM", "tokens in the prefix", "prefix", CAUSAL),
        ("padding", "real keys", "length", "0" * 16),
    ],
)
def test_each_slider_changes_its_mask(notebook, family, label, name, mask):
    painter = notebook.find(PAINTER)
    painter.get_by_role("radio", name=family).check()
    slider = painter.get_by_role("slider", name=label)
    slider.focus()
    notebook.page.keyboard.press("Home")
    notebook.wait(lambda: mask_on_page(notebook, PAINTER) == mask, "the mask follows the slider")
    notebook.expect(f"{PAINTED}, painter.family", f"({mask!r}, {family!r})")
    notebook.page.keyboard.press("ArrowRight")
    notebook.expect(f"painter.{name}", "2" if name == "window" else "1")
    assert painter.locator(".course-painter-slider output:visible").inner_text() == ("2" if name == "window" else "1")
    assert painter.get_by_role("slider").count() == 1


def test_what_python_sets_shows(notebook):
    notebook.run("painter.window = 1; painter.family = 'sliding window'")
    notebook.wait(lambda: mask_on_page(notebook, PAINTER) == "1000010000100001", "the family set in Python shows")
    assert chosen(notebook, PAINTER) == "sliding window"
    notebook.run("painter.mask = np.eye(4)[::-1]")
    notebook.wait(lambda: mask_on_page(notebook, PAINTER) == "0001001001001000", "the mask set in Python shows")
    assert chosen(notebook, PAINTER) == "painted"
    notebook.wait(lambda: verdict(notebook, PAINTER).startswith("looks ahead"), "its verdict shows")
    assert weights(notebook, PAINTER)[:4] == ["–", "–", "–", "1.00"]


def test_a_function_that_ignores_its_mask_is_caught_under_a_causal_mask(notebook):
    assert chosen(notebook, THEIRS) == "causal"
    assert verdict(notebook, THEIRS).startswith("leak: ")
    assert "it is ignores() that lets it through" in verdict(notebook, THEIRS)
    assert "6 blocked cells have a weight" in verdict(notebook, THEIRS)
    assert notebook.find(THEIRS).locator("td[data-mark=l]").count() == 6


def test_an_exception_is_a_message_and_the_painter_lives_on(notebook):
    assert verdict(notebook, FAILING).startswith("no leak")
    box(notebook, FAILING, 0, 0).focus()
    notebook.find(FAILING).get_by_role("radio", name="bidirectional").check()
    notebook.wait(
        lambda: "fails() raised ZeroDivisionError: on purpose" in verdict(notebook, FAILING), "the exception is told"
    )
    assert set(weights(notebook, FAILING)) == {""}
    box(notebook, FAILING, 3, 3).click()
    notebook.wait(lambda: verdict(notebook, FAILING).startswith("looks ahead"), "the next mask is measured again")


def test_two_sequences_have_no_verdict(notebook):
    assert verdict(notebook, CROSSED).startswith("no verdict: the queries and the keys are two sequences")
    notebook.find(CROSSED).get_by_role("radio", name="causal", exact=True).check()
    notebook.wait(lambda: "may attend to nothing" in verdict(notebook, CROSSED), "two queries have no key")
    assert mask_on_page(notebook, CROSSED) == "00001011"


@pytest.mark.parametrize("width", [1280, 620])
def test_no_change_of_mask_family_or_verdict_moves_what_one_paints_on(notebook, width):
    def places():
        return notebook.find(".course-painter").evaluate_all(
            "roots => roots.flatMap((root) =>"
            " [...root.querySelectorAll('table, th, .course-painter-families')]"
            ".map((node) => { const r = node.getBoundingClientRect(), o = root.getBoundingClientRect();"
            " return [r.x - o.x, r.y - o.y, r.width, r.height]; }))"
        )

    def settled():
        notebook.run("pass")
        notebook.wait(lambda: notebook.find(".course-painter-waits").count() == 0, "all verdicts have arrived")
        notebook.settle()

    notebook.page.set_viewport_size({"width": width, "height": 1000})
    try:
        settled()
        before = places()
        for change in ("p.family = 'bidirectional'", "p.length = 0; p.family = 'padding'", "p.mask = p.mask[::-1] ^ 1"):
            notebook.run(f"for p in (painter, theirs, failing, large):\n    {change}")
            settled()
            assert places() == before
    finally:
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})


def test_it_is_a_grid_of_named_checkboxes(notebook):
    painter = notebook.find(PAINTER)
    grid = painter.get_by_role("grid", name="mask")
    assert grid.get_by_role("row").count() == 5 and grid.get_by_role("gridcell").count() == 16
    assert grid.get_by_role("checkbox", name="cat may attend to the").is_checked()
    assert not grid.get_by_role("checkbox", name="cat may attend to sat").is_checked()
    painter.get_by_role("table", name="weights under this mask").wait_for()
    box(notebook, PAINTER, 1, 1).focus()
    notebook.page.keyboard.press("ArrowRight")
    outline = notebook.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    colour = notebook.page.evaluate("getComputedStyle(document.activeElement).outlineColor")
    legend = painter.locator(".course-painter-swatch[data-mark=l]").evaluate("node => getComputedStyle(node).boxShadow")
    assert not legend.startswith(colour)  # the focus is not taken for a mark


@pytest.mark.parametrize("state", ["p.family = 'causal'", "p.length = 0; p.family = 'padding'", "p.mask = p.mask ^ 1"])
def test_no_axe_violations_in_either_theme(notebook, state):
    notebook.run(f"for p in (painter, theirs, failing, large):\n    {state}")
    notebook.find(LARGE).get_by_role("button", name="Copy as code").click()
    notebook.check_accessible(".course-painter")


def test_where_the_kernel_is_gone_the_weights_are_said_to_be_of_another_mask(alone):
    page = alone(MaskPainter(["the", "cat", "sat", "down"]), waits=True)
    assert "no leak" in page.get_by_role("status").inner_text()
    assert page.get_by_role("table").get_by_role("cell").all_inner_texts()[:3] == ["1.00", "–", "–"]
    late = page.locator(".course-painter-late").last
    assert late.inner_text() == ""
    cell = page.get_by_role("checkbox", name="the may attend to down")
    cell.click()
    assert cell.is_checked()
    page.clock.run_for(400)
    assert "of the mask before" in late.inner_text()
    cell.click()
    assert late.inner_text() == ""
    page.clock.run_for(600)
    assert late.inner_text() == ""
    page.get_by_role("radio", name="padding").check()
    page.get_by_role("slider", name="real keys").fill("1")
    assert page.get_by_role("checkbox", checked=True).count() == 4


def copied(notebook, selector):
    return notebook.find(selector).get_by_role("textbox", name="the mask as code")


def made_by(code):
    """The mask that a copied piece of code makes, as 0 and 1."""
    names = {"torch": torch}
    exec(code, names)
    assert names["mask"].dtype == torch.bool
    return "".join(str(int(may)) for may in names["mask"].flatten())


def test_the_mask_is_shown_as_code_selected_and_follows_what_is_painted(notebook):
    code = copied(notebook, PAINTER)
    button = notebook.find(PAINTER).get_by_role("button", name="Copy as code")
    assert not code.is_visible()
    button.click()
    assert code.input_value() == "mask = torch.ones(4, 4, dtype=torch.bool).tril()"
    assert code.evaluate("node => [node.selectionStart, node.selectionEnd - node.value.length]") == [0, 0]
    assert code.evaluate("node => document.activeElement === node") and code.get_attribute("readonly") == ""
    box(notebook, PAINTER, 0, 3).click()
    notebook.wait(lambda: "torch.tensor" in code.input_value(), "the code follows the mask")
    assert made_by(code.input_value()) == mask_on_page(notebook, PAINTER) == "1001110011101111"
    notebook.find(PAINTER).get_by_role("radio", name="sliding window").check()
    notebook.wait(lambda: ".triu(" in code.input_value(), "a family has its own line")
    assert made_by(code.input_value()) == mask_on_page(notebook, PAINTER)


def test_keys_in_the_code_stay_out_of_the_notebook(notebook):
    button = notebook.find(PAINTER).get_by_role("button", name="Copy as code")
    button.focus()
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    notebook.page.keyboard.press("Enter")
    code = copied(notebook, PAINTER)
    notebook.wait(lambda: code.evaluate("node => document.activeElement === node"), "the code has the focus")
    before = code.input_value()
    for key in ("ArrowDown", "ArrowUp", "b", "Enter", "Delete"):
        notebook.page.keyboard.press(key)
    assert code.input_value() == before
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_the_code_of_two_sequences_has_their_shape(notebook):
    notebook.find(CROSSED).get_by_role("button", name="Copy as code").click()
    notebook.find(CROSSED).get_by_role("radio", name="bidirectional").check()
    code = copied(notebook, CROSSED)
    notebook.wait(
        lambda: code.input_value() == "mask = torch.ones(4, 2, dtype=torch.bool)", "the code is that of 4 by 2"
    )


@pytest.mark.parametrize("clipboard", ["undefined", "{ writeText: () => Promise.reject(new Error('no')) }"])
def test_the_code_can_be_copied_by_hand_where_the_clipboard_is_closed(alone, clipboard):
    page = alone(MaskPainter(["a", "b"], mask=[[1, 1], [0, 1]]))
    page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard}, configurable: true }})")
    page.get_by_role("button", name="Copy as code").click()
    code = page.get_by_role("textbox", name="the mask as code")
    assert code.input_value() == "mask = torch.tensor([\n    [1, 1],\n    [0, 1],\n], dtype=torch.bool)"
    assert code.evaluate("node => node.selectionEnd - node.selectionStart === node.value.length")
    page.get_by_text("Selected: copy it with").wait_for()


def test_where_the_clipboard_is_open_the_code_lies_there(alone):
    page = alone(MaskPainter(["a", "b"]))
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard',"
        " { value: { writeText: async (text) => { window.taken = text; } }, configurable: true })"
    )
    page.get_by_role("button", name="Copy as code").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("window.taken") == "mask = torch.ones(2, 2, dtype=torch.bool).tril()"


def test_nothing_went_wrong_on_the_way(notebook):
    notebook.check_clean()
