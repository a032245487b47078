"""The head gallery and the head ablation in JupyterLab, by mouse and keyboard."""

import io

import numpy as np
import pytest
from PIL import Image

from course_utils.models import induction
from course_utils.views import HeadAblation, HeadGallery, palette

SET_UP = """
import numpy as np, torch
from course_utils.models import induction
from course_utils.views import HeadAblation, HeadGallery
model = induction.load()
tokens = induction.repeated(1, 12)
weights = induction.head_weights(model, tokens)
scores = {
    'induction': induction.induction_scores(model, 12), 'previous token': induction.previous_token_scores(model, 12)
}
rng = np.random.default_rng(0)
class Moody:
    blocks, n_heads = (None,), 2
    def parameters(self): return []
    def __call__(self, tokens, head_masks):
        if head_masks[0, 0] == 0: raise RuntimeError('on purpose')
        return torch.zeros(1, tokens.shape[1], 4)
"""
CELLS = [
    SET_UP,
    "gallery = HeadGallery(weights, tokens, scores)\ngallery",
    "large = HeadGallery(rng.dirichlet(np.ones(32), size=(6, 12, 32)), [f't{i}' for i in range(32)])\nlarge",
    "ablation = HeadAblation(model, tokens, from_token=13)\nablation",
    "moody = HeadAblation(Moody(), [1, 2, 3])\nmoody",
    "own = HeadGallery(weights, tokens, read=induction.reader(model), readable=induction.READABLE)\nown",
]
GALLERY, LARGE, OWN = (f".course-gallery >> nth={place}" for place in range(3))
ABLATION, MOODY = (f".course-ablation >> nth={place}" for place in range(2))


@pytest.fixture
def notebook(opened):
    """The notebook with nothing enlarged, pinned or hovered, and every head on."""
    opened.page.mouse.move(2, 2)
    opened.page.evaluate("document.activeElement.blur()")
    opened.run("for g in (gallery, large):\n    g.head = g.row = None")
    opened.run("for a in (ablation, moody):\n    a.off = []\n    a.forget()")
    opened.wait(lambda: current_row(opened) == current_row(opened, LARGE) == "", "no row is shown")
    opened.wait(lambda: opened.find(GALLERY).locator(".course-gallery-panel").is_hidden(), "no head is enlarged")
    opened.wait(lambda: switches(opened) == "11111111", "every head is on")
    return opened


def current_row(notebook, selector=GALLERY):
    return notebook.find(selector).get_attribute("data-row")


def heading(notebook, selector=GALLERY):
    return notebook.find(selector).locator(".course-gallery-heading b").inner_text()


def chip(notebook, r, selector=GALLERY):
    return notebook.find(selector).locator(".course-gallery-strip button").nth(r)


def head(notebook, layer, place):
    return notebook.find(GALLERY).get_by_role("button", name=f"layer {layer}, head {place}")


def bars(notebook, selector=GALLERY):
    """The heights of the bars under each map, in pixels, as drawn."""
    return notebook.find(selector).evaluate(
        """root => [...root.querySelectorAll("button canvas.course-gallery-bars")].map((canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return Array.from({ length: canvas.width }, (_, c) => {
            let height = 0;
            for (let y = 0; y < canvas.height; y++) height += data[4 * (y * canvas.width + c) + 3] / 255;
            return height;
          });
        })"""
    )


def bands(notebook, selector=GALLERY):
    """For each map, the row that the band across its layer leaves bright, or None."""
    return notebook.find(selector).evaluate(
        """root => [...root.querySelectorAll("button .course-gallery-map")].map((map) => {
          const band = map.closest("tr").querySelector(".course-gallery-band");
          const [a, b] = [map, band].map((node) => node.getBoundingClientRect());
          if (band.hidden) return null;
          if (b.left > a.left + 0.1 || b.right < a.right - 0.1) return "not across this map";
          return Math.round(100 * (b.top - a.top) / b.height) / 100;
        })"""
    )


def framed(notebook, selector=GALLERY):
    """For each map, as it is painted: are there pixels in the colour that frames a row?"""
    frame = np.frombuffer(bytes.fromhex(palette.KEY[1:]), np.uint8).astype(int)
    result = []
    for small in notebook.find(selector).locator("button .course-gallery-map").all():
        with Image.open(io.BytesIO(small.screenshot())) as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
        result.append(bool((abs(pixels - frame).max(axis=-1) < 40).sum() > pixels.shape[1]))
    return result


def switches(notebook, selector=ABLATION):
    checked = (
        notebook.find(selector)
        .get_by_role("switch")
        .evaluate_all("all => all.map((each) => each.getAttribute('aria-checked'))")
    )
    return "".join("1" if value == "true" else "0" for value in checked)


def status_text(notebook, selector=ABLATION):
    return notebook.find(selector).get_by_role("status").inner_text()


def means(notebook, selector=ABLATION):
    values = notebook.find(selector).locator(".course-ablation-value").all_inner_texts()
    return [float(value) for value in values[:2]]  # the third is that of a setting that was kept


def test_hovering_a_token_shows_its_row_in_all_heads_and_asks_the_kernel_for_nothing(notebook):
    chip(notebook, 15).hover()
    assert current_row(notebook) == "15" and bands(notebook) == [15] * 8
    drawn = bars(notebook)
    expected = eval(notebook.python("gallery.weights[:, :, 15].reshape(8, 24).round(3).tolist()"))
    for heights, row in zip(drawn, expected, strict=True):
        assert [height / 24 for height in heights] == pytest.approx(row, abs=0.03)
    notebook.expect("gallery.row", "None")
    notebook.page.mouse.move(2, 2)
    assert current_row(notebook) == "" and bands(notebook) == [None] * 8
    assert bars(notebook) == drawn and not any(framed(notebook))


def test_hovering_a_map_shows_the_row_under_the_pointer_and_tells_its_largest_weight(notebook):
    small = head(notebook, 1, 0).locator(".course-gallery-map")
    small.hover(position={"x": 30, "y": small.bounding_box()["height"] * 15.5 / 24})
    assert current_row(notebook) == "15" and bands(notebook) == [15] * 8
    reading = notebook.find(GALLERY).locator(".course-gallery-reading").inner_text()
    most = eval(notebook.python("gallery.weights[1, 0, 15].max().round(3)").replace("np.float64", ""))
    assert reading.startswith("layer 1, head 0: query 15 “8” attends most to key 4 “9”, ")
    assert float(reading.rsplit(" ", 1)[1]) == pytest.approx(most, abs=0.0011)


def test_a_click_or_enter_on_a_token_pins_it_and_escape_unpins(notebook):
    chip(notebook, 3).click()
    notebook.expect("gallery.row", "3")
    chip(notebook, 7).hover()
    assert current_row(notebook) == "7"
    notebook.page.mouse.move(2, 2)
    notebook.page.evaluate("document.activeElement.blur()")
    assert current_row(notebook) == "3"
    assert chip(notebook, 3).get_attribute("aria-pressed") == "true"
    chip(notebook, 3).focus()
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        notebook.page.keyboard.press(key)
    notebook.expect("gallery.row", "4")
    notebook.page.keyboard.press("End")
    assert current_row(notebook) == "23"
    notebook.page.keyboard.press("Escape")
    notebook.expect("gallery.row", "None")
    chip(notebook, 5).click()
    notebook.expect("gallery.row", "5")
    chip(notebook, 5).click()
    notebook.expect("gallery.row", "None")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_a_click_enlarges_another_head_and_nothing_on_the_page_moves(notebook):
    def places():
        return notebook.find(".course-gallery").evaluate_all(
            "roots => roots.flatMap((root) => [root, ...root.querySelectorAll('table, th, canvas,"
            " .course-gallery-panel, .course-gallery-strip button')].map((node) => {"
            " const r = node.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }))"
        )

    notebook.run("gallery.head = (0, 0); gallery.row = 1")
    notebook.wait(lambda: current_row(notebook) == "1", "the row set in Python shows")
    head(notebook, 1, 2).scroll_into_view_if_needed()
    before = places()
    head(notebook, 1, 2).click()
    notebook.expect("gallery.head", "(1, 2)")
    assert heading(notebook) == "layer 1, head 2"
    assert head(notebook, 1, 2).get_attribute("aria-pressed") == "true"
    assert places() == before
    chip(notebook, 14).hover()
    assert places() == before
    listed = notebook.find(GALLERY).locator(".course-gallery-number").all_inner_texts()
    expected = sorted(eval(notebook.python("gallery.weights[1, 2, 14].tolist()")), reverse=True)[:4]
    assert [float(number) for number in listed] == pytest.approx(expected, abs=0.00051)
    head(notebook, 1, 2).click()
    notebook.expect("gallery.head", "None")
    assert notebook.find(GALLERY).locator(".course-gallery-panel").is_hidden()


def test_the_keyboard_walks_through_the_heads_and_enlarges_one(notebook):
    head(notebook, 0, 0).focus()
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "Enter"):
        notebook.page.keyboard.press(key)
    notebook.expect("gallery.head", "(0, 2)")
    for key in ("End", "ArrowRight", "ArrowDown", "ArrowDown", "Space"):
        notebook.page.keyboard.press(key)
    notebook.expect("gallery.head", "(1, 3)")
    assert notebook.find(GALLERY).locator(".course-heads button[tabindex='0']").count() == 1
    notebook.page.keyboard.press("Escape")
    notebook.expect("gallery.head", "None")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_in_the_enlarged_map_hover_reads_a_weight_and_arrows_and_enter_do_as_well(notebook):
    notebook.run("gallery.head = (1, 0)")
    notebook.wait(lambda: heading(notebook) == "layer 1, head 0", "the head set in Python is enlarged")
    grid = notebook.find(GALLERY).get_by_role("grid", name="weights of the enlarged head")
    cell = notebook.python("gallery._layout['cell']")
    grid.hover(position={"x": int(cell) * 4.5, "y": int(cell) * 15.5})
    assert current_row(notebook) == "15"
    last = notebook.find(GALLERY).locator(".course-gallery-numbers .course-gallery-line").last
    message = notebook.python("f'{gallery.weights[1, 0, 15, 4]:.3f}'").strip("'")
    assert last.inner_text() == f"query 15 “8”, key 4 “9”: {message}"
    grid.click(position={"x": int(cell) * 4.5, "y": int(cell) * 15.5})
    notebook.expect("gallery.row", "15")
    notebook.page.mouse.move(2, 2)
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("Control+Home", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        notebook.page.keyboard.press(key)
    notebook.expect("gallery.row", "2")
    assert last.inner_text().startswith("query 2 “16”, key 1 “20”: ")
    assert notebook.find(GALLERY).locator("[role=gridcell][aria-colindex]").inner_text() == last.inner_text()
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_what_python_sets_shows(notebook):
    notebook.run("gallery.head = (0, 3); gallery.row = 5; gallery.title = 'mine'")
    notebook.wait(lambda: heading(notebook) == "layer 0, head 3", "the head shows")
    notebook.wait(lambda: current_row(notebook) == "5", "the row shows")
    assert framed(notebook) == [True] * 8
    before = bars(notebook)
    notebook.run("gallery.weights = weights.flip(0); gallery.scores = {n: s.flip(0) for n, s in scores.items()}")
    notebook.wait(lambda: bars(notebook) == before[4:] + before[:4], "the new weights show")
    message = notebook.find(GALLERY).locator(".course-gallery-score").all_inner_texts()
    assert message[1::2][4:] == [
        f"{value:.2f}" for value in eval(notebook.python("scores['previous token'][0].tolist()"))
    ]
    assert notebook.find(GALLERY).locator(".course-heads-title").inner_text() == "mine"
    notebook.run("gallery.weights = weights; gallery.scores = scores; gallery.title = 'attention heads'")
    notebook.wait(lambda: bars(notebook) == before, "the old weights show again")


def test_a_large_gallery_shows_the_row_in_all_its_heads(notebook):
    chip(notebook, 9, LARGE).hover()
    assert bands(notebook, LARGE) == [9] * 72
    expected = eval(notebook.python("large.weights[5, 11, 9].tolist()"))
    assert [height / 24 for height in bars(notebook, LARGE)[-1]] == pytest.approx(expected, abs=0.03)


def test_a_text_of_ones_own_is_shown_and_what_cannot_be_read_is_said(notebook):
    field = notebook.page.get_by_label("your own text")
    message = notebook.find(".course-gallery-said")
    field.fill("ABRACADABRA")
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    notebook.page.keyboard.press("Enter")
    notebook.wait(lambda: message.inner_text() == "Shown: your text of 11 tokens.", "Python has read the text")
    chips = notebook.find(OWN).locator(".course-gallery-strip button").all_inner_texts()
    assert "".join(chips) == "ABRACADABRA"
    chip(notebook, 10, OWN).hover()
    assert bands(notebook, OWN) == [10] * 8
    expected = eval(notebook.python("own.weights[1, 2, 10].tolist()"))
    assert [height / 24 for height in bars(notebook, OWN)[6]] == pytest.approx(expected, abs=0.03)
    field.fill("Anna")
    notebook.page.keyboard.press("Enter")
    notebook.wait(lambda: message.inner_text().startswith("The model has no token for “n”. It knows the"), "it is said")
    assert field.input_value() == "Anna" and field.evaluate("node => node === document.activeElement")
    assert "".join(notebook.find(OWN).locator(".course-gallery-strip button").all_inner_texts()) == "ABRACADABRA"
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_a_setting_that_was_kept_is_compared_with_the_next(notebook):
    ablation = notebook.find(ABLATION)
    against = ablation.locator(".course-ablation-against")
    assert against.inner_text() == "" and ablation.get_by_role("button", name="forget A").is_disabled()
    ablation.get_by_role("switch", name="layer 1, head 0").click()
    notebook.wait(lambda: status_text(notebook).startswith("1 head off."), "the loss is told")
    there = means(notebook)[0]
    ablation.get_by_role("button", name="keep as A").click()
    notebook.expect("ablation.kept", "[[1, 0]]")
    assert against.inner_text() == f"A: layer 1, head 0 off, {there:.2f} nats. Now 0.00 against A."
    ablation.get_by_role("switch", name="layer 1, head 1").click()
    notebook.wait(lambda: status_text(notebook).startswith("2 heads off."), "the next loss is told")
    rise = notebook.python("f'{ablation.loss - ablation._kept[\"means\"][0]:+.2f}'").strip("'")
    assert against.inner_text().endswith(f"Now {rise} against A.") and rise.startswith("+")
    values = ablation.locator(".course-ablation-value").all_inner_texts()
    assert float(values[2]) == pytest.approx(there)
    ablation.get_by_role("button", name="forget A").click()
    notebook.expect("ablation.kept", "None")
    assert against.inner_text() == ""


def test_a_switch_runs_the_model_without_that_head(notebook):
    whole = means(notebook)[1]
    notebook.find(ABLATION).get_by_role("switch", name="layer 0, head 3").click()
    assert switches(notebook) == "11101111"  # at once, before Python answers
    notebook.expect("ablation.off", "[(0, 3)]")
    notebook.wait(lambda: status_text(notebook).startswith("1 head off."), "the loss is told")
    loss = float(notebook.python("float(ablation.loss)"))
    assert means(notebook) == pytest.approx([loss, whole], abs=0.0051) and loss > whole + 1
    drawn = notebook.find(ABLATION).evaluate(
        "root => [...root.querySelectorAll('.course-ablation-column')].map((column) => ['bar', 'whole'].map((name) =>"
        " column.querySelector(`.course-ablation-${name}`).getBoundingClientRect().height / column.clientHeight))"
    )
    top = float(notebook.python("ablation._result['top']"))
    for place, name in ((0, "losses"), (1, "whole_losses")):
        expected = eval(notebook.python(f"ablation.{name}.tolist()"))
        assert [pair[place] * top for pair in drawn] == pytest.approx(expected, abs=0.15)
    notebook.find(ABLATION).get_by_role("switch", name="layer 0, head 3").click()
    notebook.expect("ablation.off", "[]")


def test_the_keyboard_switches_heads(notebook):
    notebook.find(ABLATION).get_by_role("switch").first.focus()
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowRight", "Enter", "ArrowDown", "Space"):
        notebook.page.keyboard.press(key)
    assert switches(notebook) == "10111011"
    notebook.expect("ablation.off", "[(0, 1), (1, 1)]")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_the_buttons_switch_all_and_try_each_alone(notebook):
    ablation = notebook.find(ABLATION)
    ablation.get_by_role("button", name="all off").click()
    notebook.expect("len(ablation.off)", "8")
    assert switches(notebook) == "00000000"
    ablation.get_by_role("button", name="all on").click()
    notebook.expect("ablation.off", "[]")
    ablation.get_by_role("button", name="each alone").click()
    most = ablation.locator("button .course-ablation-most")
    notebook.wait(lambda: most.count() == 1, "the rises are there and the largest is marked")
    message = ablation.locator("button .course-ablation-rise").all_inner_texts()
    assert message == eval(notebook.python("[f'{r:+.2f}'.replace('-', '−').replace('+0.00', '0.00')"
                                        ".replace('−0.00', '0.00') for r in ablation.rises.ravel()]"))  # fmt: skip
    assert switches(notebook) == "11111111"
    ablation.get_by_role("switch", name=f"layer 0, head 3, loss {message[3]} when it alone is off").wait_for()
    with notebook.hand_clock() as tick:
        ablation.get_by_role("button", name="each alone").click()  # the same rises again are an answer too
        notebook.expect("ablation._asked, ablation._answered", "(2, 2)")
        tick()
        notebook.wait(lambda: ablation.locator(".course-ablation-waits").inner_text() == "", "nothing is waited for")


def test_after_many_quick_switches_the_last_state_wins(notebook):
    with notebook.hand_clock() as tick:
        for place in (0, 1, 2, 3, 4, 5, 6, 7, 1, 5):
            notebook.find(ABLATION).get_by_role("switch").nth(place).click()
        assert switches(notebook) == "01000100"
        notebook.expect("ablation.off", "[(0, 0), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)]")
        notebook.wait(lambda: status_text(notebook).startswith("6 heads off."), "the last losses show")
        assert means(notebook)[0] == pytest.approx(float(notebook.python("float(ablation.loss)")), abs=0.0051)
        tick()  # as after the time that the page waits to tell
        assert notebook.find(".course-ablation-late").count() == 0


def test_a_bar_is_read_by_hover_and_by_keyboard(notebook):
    ablation = notebook.find(ABLATION)
    reading = ablation.locator(".course-ablation-reading")
    ablation.locator(".course-ablation-column[data-place='14']").hover()
    loss = notebook.python("f'{ablation.losses[13]:.2f}'").strip("'")
    assert reading.inner_text() == f"token 14 “16”: {loss} nats, whole model {loss} nats"
    notebook.page.mouse.move(2, 2)
    chart = ablation.get_by_role("listbox", name="loss of each token")
    chart.focus()
    for key in ("Home", "ArrowRight"):
        notebook.page.keyboard.press(key)
    assert reading.inner_text().startswith("token 2 “16”: ") and reading.inner_text().endswith(", not counted")
    option = chart.get_by_role("option", selected=True)
    assert option.get_attribute("aria-label") == reading.inner_text()
    assert option.get_attribute("id") == chart.get_attribute("aria-activedescendant")


def test_what_the_model_raises_is_reported_and_the_switches_live_on(notebook):
    switch = notebook.find(MOODY).get_by_role("switch", name="layer 0, head 0")
    switch.click()
    notebook.wait(
        lambda: status_text(notebook, MOODY) == "the model raised RuntimeError: on purpose", "the error is told"
    )
    assert notebook.find(MOODY).locator(".course-ablation-value").first.inner_text() == "–"
    switch.click()
    notebook.wait(lambda: status_text(notebook, MOODY).startswith("Every head is on."), "the next run is told")


def test_heads_set_in_python_show(notebook):
    notebook.run("ablation.off = [(1, 0), (0, 3)]")
    notebook.wait(lambda: switches(notebook) == "11100111", "the switches follow")
    notebook.wait(lambda: status_text(notebook).startswith("2 heads off."), "the loss follows")


def test_no_two_nodes_of_the_page_share_an_id(notebook):
    ids = notebook.find(".course-heads-root").evaluate_all(
        "roots => roots.flatMap((root) => [...root.querySelectorAll('[id]')].map((node) => node.id))"
    )
    assert len(ids) > 30 and len(ids) == len(set(ids))


@pytest.mark.parametrize("width", [1280, 600])
def test_no_text_is_cut_or_covers_another_and_no_switch_moves_anything(notebook, width):
    def places():
        return notebook.find(".course-ablation").first.evaluate(
            "root => [...root.querySelectorAll('*')].filter((node) => !node.matches('.course-ablation-bar,"
            " .course-ablation-meanbar, .course-ablation-whole') && node.getClientRects().length).map((node) => {"
            " const r = node.getBoundingClientRect(), o = root.getBoundingClientRect();"
            " return [r.x - o.x, r.y - o.y]; })"
        )

    notebook.page.set_viewport_size({"width": width, "height": 1000})
    try:
        notebook.run("gallery.head = (1, 0); gallery.row = 15")
        notebook.wait(lambda: heading(notebook) == "layer 1, head 0", "the head is enlarged")
        notebook.settle()
        assert notebook.find(".course-heads-root").evaluate_all(COVERED) == []
        before = places()
        notebook.run("ablation.off = [(0, 3), (1, 1)]")
        notebook.wait(lambda: status_text(notebook).startswith("2 heads off."), "the loss is told")
        assert places() == before
        assert notebook.find(".course-heads-root").evaluate_all(COVERED) == []
    finally:
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})


def test_what_fits_has_no_scrollbar(notebook):
    """Two layers of four heads fit a page of 1280 pixels; six layers of twelve do not."""
    wider = "nodes => nodes.map((node) => node.scrollWidth > node.clientWidth)"
    assert notebook.find(".course-heads-scroll").evaluate_all(wider) == [False, True, False, False, False]


# Pairs of texts that overlap, and texts that do not fit their box; what only assistive technology reads is left out.
COVERED = """roots => roots.flatMap((root) => {
  const found = [], style = (node) => getComputedStyle(node);
  const leaves = [...root.querySelectorAll("*")].filter((node) => !node.children.length && node.textContent.trim()
    && !node.closest(".course-live") && style(node).visibility === "visible" && node.getClientRects().length);
  const boxes = leaves.map((node) => { // of the text, not of the node around it
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  });
  const shared = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  leaves.forEach((node, i) => {
    const cut = style(node).overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1;
    if (cut) found.push(`cut: ${node.textContent}`);
    for (let j = 0; j < i; j++) {
      if (shared(boxes[i], boxes[j])) found.push(`${node.textContent} over ${leaves[j].textContent}`);
    }
  });
  return found;
})"""


@pytest.mark.parametrize(
    "state",
    [
        "gallery.head = None",
        "gallery.head = (1, 0); gallery.row = 15; ablation.off = [(0, 3)]; ablation.keep(); moody.off = [(0, 0)]",
    ],
)
def test_no_axe_violations_in_either_theme(notebook, state):
    notebook.run(state)
    notebook.settle()
    notebook.check_accessible(".course-heads-root")


def test_the_gallery_works_without_a_kernel(alone):
    model = induction.load()
    tokens = induction.repeated(1, 12)
    widget = HeadGallery(induction.head_weights(model, tokens), tokens, {"x": induction.induction_scores(model, 12)})
    page = alone(widget)
    page.get_by_role("button", name="layer 0, head 0").click()
    page.get_by_role("button", name="query 15: 8").click()
    assert page.locator(".course-gallery-heading b").inner_text() == "layer 0, head 0"
    assert page.locator(".course-gallery-state").inner_text() == "query 15 “8”, pinned"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator(".course-gallery-panel").is_hidden()


def test_the_field_for_ones_own_text_says_that_it_waits_where_the_kernel_is_gone(alone):
    model = induction.load()
    tokens = induction.repeated(1, 12)
    page = alone(HeadGallery(induction.head_weights(model, tokens), tokens, read=induction.reader(model)), waits=True)
    page.get_by_label("your own text").fill("ABAB")
    page.get_by_role("button", name="show").click()
    page.clock.run_for(400)
    page.get_by_text("Waiting for Python, which reads a text while the kernel runs").wait_for()
    assert page.locator(".course-gallery-strip button").count() == 24


def test_where_the_kernel_is_gone_the_losses_are_said_to_be_of_other_heads(alone):
    page = alone(HeadAblation(induction.load(), induction.repeated(1, 12)), waits=True)
    waits = page.locator(".course-ablation-waits")
    assert waits.inner_text() == ""
    page.get_by_role("switch", name="layer 0, head 3").click()
    page.clock.run_for(400)
    assert "of the heads before; waiting for Python" in waits.inner_text()
    page.get_by_role("switch", name="layer 0, head 3").click()
    page.clock.run_for(500)
    assert waits.inner_text() == ""
    page.get_by_role("button", name="each alone").click()
    page.clock.run_for(400)
    page.get_by_text("each alone: waiting for Python, which answers while the kernel runs").wait_for()
    assert page.locator(".course-ablation-late").count() == 0, "the losses shown are right"


def test_nothing_went_wrong_on_the_way(notebook):
    notebook.check_clean()
