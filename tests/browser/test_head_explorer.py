"""The head explorer in JupyterLab and on pages of its own, by mouse and keyboard."""

import pytest
from letter_model import of_letters

from course_utils.views import HeadExplorer, palette
from course_utils.views.shared.heads import head_name
from course_utils.views.shared.number_text import short

CELLS = [
    """
import torch
from course_utils.models.decoder import Decoder
from course_utils.models.pretrained.tokenizer import Tokenizer, byte_letters
from course_utils.models.real import Real
from course_utils.views import HeadExplorer
torch.manual_seed(0)
letters = [*byte_letters().values()]
tiny = Real("tiny", Decoder(len(letters), 24, 2, 3, d_ff=0).eval(), Tokenizer(letters, []), 0, 64)
w = HeadExplorer("abcab", head=(0, 1), model=tiny)
w
"""
]
LINE = ".course-explorer-line"
UNDER_TIPS = """([from, to]) => { // the words that the tips of arrows point to
  const box = (node) => node.getBoundingClientRect();
  const words = [...document.querySelectorAll(".course-explorer-word")].map(box);
  const tips = [...document.querySelectorAll(".course-explorer-arcs path:not([stroke])")].map(box);
  return tips.map((tip) => words.findIndex((word) => tip[from] < word[to] && tip[to] > word[from]));
}"""


@pytest.fixture
def notebook(opened):
    opened.run("w.look('abcab'); w.head, w.query, w.key, w.measure = (0, 1), 4, 1, 'pair'")
    opened.wait(lambda: opened.find(".course-explorer-word").count() == 5, "five letters are shown")
    return opened


def test_enter_lets_python_read_a_sentence_and_what_is_wrong_with_it_is_said(notebook):
    field = notebook.find(".course-explorer-form input")
    message = notebook.find(".course-explorer-said")
    field.fill("to be or not")
    notebook.page.keyboard.press("Enter")
    notebook.wait(lambda: notebook.find(".course-explorer-word").count() == 12, "twelve letters are shown")
    assert notebook.python("(w.query, w.tokens[-1])") == "(11, 't')" and message.inner_text() == ""
    field.fill("a" * 30)
    notebook.find(".course-explorer-form button").click()
    notebook.wait(lambda: "30 tokens long: at most 24 fit" in message.inner_text(), "it is said to be too long")
    assert notebook.find(".course-explorer-word").count() == 12


def test_what_is_chosen_by_mouse_or_keyboard_reaches_python(notebook):
    page = notebook.page
    active = page.evaluate("window.courseNotebook.content.activeCellIndex")
    notebook.find(".course-explorer-word").nth(2).click()
    notebook.expect("w.query", "2")
    notebook.expect("bool(w.key == w.weights[0, 1, 2].argmax())", "True")
    page.keyboard.press("ArrowRight")
    notebook.expect("w.query", "3")
    notebook.find("td[role=gridcell]:not(:has(button))").nth(4 * 5 + 2).click()
    notebook.expect("(w.query, w.key)", "(4, 2)")
    for key in ("ArrowUp", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    notebook.expect("(w.query, w.key)", "(3, 3)")
    notebook.find(LINE).first.click()
    notebook.expect("w.head == w.ranked()[0][0]", "True")
    page.keyboard.press("End")
    notebook.expect("w.head == w.ranked()[-1][0]", "True")
    notebook.find("button.course-explorer-head").nth(5).click()
    notebook.expect("w.head", "(1, 2)")
    for key, head in (("ArrowLeft", "(1, 1)"), ("ArrowUp", "(0, 1)"), ("ArrowDown", "(1, 1)"), ("Home", "(1, 0)")):
        page.keyboard.press(key)
        notebook.expect("w.head", head)
    notebook.find(".course-explorer select").select_option("again")
    notebook.expect("w.measure", "'again'")
    assert page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_no_axe_violations_in_either_theme(notebook):
    notebook.check_accessible(".course-explorer")


def test_nothing_went_wrong_on_the_way(notebook):
    notebook.check_clean()


@pytest.mark.parametrize("measure", ["pair", "before", "first", "itself", "again"])
def test_a_page_sorts_heads_as_python_does(alone, measure):
    widget = HeadExplorer("abcab abc", model=of_letters())
    widget.query = 6
    widget.key = 3
    widget.measure = measure
    page = alone(widget)
    assert page.locator(LINE).all_inner_texts() == [
        f"{head_name(*head)}\n{short(share)}" for head, share in widget.ranked()
    ]
    assert page.locator("select").input_value() == measure


def test_the_map_has_every_head_of_the_model_and_marks_the_place_of_the_one_shown(alone):
    widget = HeadExplorer()
    page = alone(widget)
    buttons = page.locator(".course-explorer-head")
    pressed = page.locator(".course-explorer-head[aria-pressed=true]")
    assert buttons.count() == 270 and page.locator(".course-heads tbody tr").count() == 30
    assert pressed.get_attribute("aria-label") == f"{head_name(*widget.head)}: {short(widget.shares()[widget.head])}"
    page.locator(LINE).nth(5).click()
    layer, head = widget.ranked()[5][0]
    assert pressed.get_attribute("aria-label").startswith(f"{head_name(layer, head)}:")
    assert page.locator(".course-heads :is(.course-explorer-here th, th.course-explorer-here)").all_inner_texts() == [
        str(head),
        str(layer),
    ]
    assert page.locator(".course-explorer-head[tabindex='0']").get_attribute("aria-pressed") == "true"


def test_arrows_go_from_the_query_to_its_keys_as_thick_as_the_weights(alone):
    widget = HeadExplorer(HeadExplorer.recorded()[1])
    page = alone(widget)
    for width in (1000, 300):  # in a line, and in a column
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_role("radio", name="9 were").click()
        upright = page.locator(".course-explorer-upright").count()
        assert upright == (width == 300)
        paths = page.locator(".course-explorer-arcs path[stroke-width]")
        row = widget.weights[(*widget.head, 9)]
        assert [float(path.get_attribute("stroke-width")) for path in paths.all()] == pytest.approx(
            [1 + 8 * weight for weight in row if weight >= 5 / 255]
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        tips = page.evaluate(UNDER_TIPS, ["top", "bottom"] if upright else ["left", "right"])
        assert tips == [key for key, weight in enumerate(row) if weight >= 5 / 255]


def test_on_a_dark_ground_a_larger_share_is_brighter_and_weights_can_be_read(alone):
    page = alone(HeadExplorer())
    lights = []
    for light in ("true", "false"):
        page.evaluate("(light) => { document.body.dataset.jpThemeLight = light; }", light)
        words = page.locator(".course-when-light:visible, .course-when-dark:visible").all_inner_texts()
        assert words == ["darker" if light == "true" else "brighter"]
        shades = page.locator("button.course-explorer-head").evaluate_all(
            "(all) => all.map((one) => [Number(one.title.split(': ')[1]), getComputedStyle(one).backgroundColor])"
        )
        shares, lightness = zip(*sorted((share, luminance(colour)) for share, colour in shades), strict=True)
        assert shares[0] < 0.01 and shares[-1] > 0.9
        lights.append((lightness[0], lightness[-1]))
        cells = page.locator("td[role=gridcell]:not([data-later=true]):not(:has(button))").evaluate_all(
            "(all) => all.map((one) => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color])"
        )
        for ground, ink in cells:
            dim, bright = sorted(map(luminance, (ground, ink)))
            assert (bright + 0.05) / (dim + 0.05) >= 4.5
    (nothing, much), (nothing_dark, much_dark) = lights
    assert nothing > 0.9 and much < 0.1 and nothing_dark < 0.01 and much_dark > 0.5


def luminance(colour):
    """Of a computed colour such as rgb(8, 48, 107), as WCAG 2 defines it."""
    return palette._luminance([int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")])


def test_a_page_shows_the_sentences_that_ask_about_it_from_it(alone):
    page = alone(HeadExplorer(head=(13, 8)))
    for text in HeadExplorer.recorded():
        page.get_by_role("button", name=text, exact=True).click()
        chosen = page.locator(".course-explorer-word[aria-checked=true]").get_attribute("aria-label")
        assert chosen.split()[1] == ("it" if "because it" in text else text.rstrip(".").split()[-1])
        message = page.locator(".course-explorer-message").inner_text()
        assert "because it" not in text or "looks most at 1 “animal”" in message


def test_the_field_says_that_it_waits_where_the_kernel_is_gone(alone):
    page = alone(HeadExplorer("abc", model=of_letters()), waits=True)
    page.evaluate("0")
    page.get_by_role("button", name="look").click()
    page.clock.run_for(400)
    assert "Waiting for Python" in page.locator(".course-explorer-said").inner_text()
