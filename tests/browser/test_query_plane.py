"""The plane of a query in JupyterLab by mouse, finger and keyboard, and on a page without a kernel."""

import re

import pytest

from course_utils.views import QueryPlane
from course_utils.views.static_page import static_page

GIVEN = "[1, 0.5], [[1, 0], [0, 1], [-1, 1]], [[0, 0], [2, 0], [1, 2]], ['parcel', 'letter', 'arrived']"
CELLS = [
    "import numpy as np\nfrom course_utils.attention import arrays\nfrom course_utils.views import QueryPlane\n"
    "def unscaled(q, k, v):\n    powers = np.exp(q @ np.array(k).T)\n    weights = powers / powers.sum()\n"
    "    return weights @ v, weights",
    f"plane = QueryPlane({GIVEN})\nplane",
    f"theirs = QueryPlane({GIVEN}, attention=unscaled)\ntheirs",
    f"failing = QueryPlane({GIVEN}, attention=lambda q, k, v: 1 / 0)\nfailing",
    "eight = QueryPlane([0, 0], np.eye(8)[:, :2] + [[0.1, 0.1]], np.arange(16).reshape(8, 2) % 7)\neight",
]  # fmt: skip
PLANE, THEIRS, FAILING, EIGHT = (f".course-plane >> nth={place}" for place in range(4))


@pytest.fixture
def notebook(opened):
    """The notebook with the first two planes at their start, once Python knows where the last test left them."""
    for name, selector in (("plane", PLANE), ("theirs", THEIRS)):
        text = f"'({{:.2f}}, {{:.2f}})'.format(*{name}.query).replace('-', '−')"
        opened.wait(
            lambda text=text, selector=selector: eval(opened.python(text)) in status_text(opened, selector), "it rests"
        )
    opened.run("plane.query = theirs.query = [1, 0.5]")
    for selector in (PLANE, THEIRS):
        opened.wait(
            lambda selector=selector: "(1.00, 0.50)" in status_text(opened, selector), "the query is at its start"
        )
    return opened


def status_text(notebook, selector=PLANE):
    return notebook.find(selector).locator(".course-plane-said").first.inner_text()


def handle(place):
    return place.get_by_role("slider", name="query", exact=True)


def button(notebook, name, selector=PLANE):
    return notebook.find(selector).get_by_role("button", name=name)


def middle(node):
    box = node.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def unit(node):
    """Pixels from 0 to 1 in the plane of the query, which reaches from −3 to 3."""
    return node.locator(".course-plane-queries svg").bounding_box()["width"] / 6


def numbers(node):
    return [float(text) for text in node.locator(".course-plane-number").all_inner_texts()]


def test_the_mouse_drags_the_tip_and_python_hears_of_it(notebook):
    plane = notebook.find(PLANE)
    mouse = notebook.page.mouse
    plane.scroll_into_view_if_needed()
    x, y = middle(handle(plane))
    mouse.move(x + 4, y + 3)  # beside the tip: it does not jump
    mouse.down()
    mouse.move(x + 4 + unit(plane), y + 3 - unit(plane), steps=5)
    mouse.up()
    assert status_text(notebook).startswith("q = (2.00, 1.50)")
    notebook.expect("[round(part, 2) for part in plane.query]", "[2.0, 1.5]")
    assert numbers(plane) == pytest.approx(eval(notebook.python("plane.weights.round(2).tolist()")))
    mouse.move(x, y)
    assert status_text(notebook).startswith("q = (2.00, 1.50)")


def test_a_click_brings_the_query_and_holds_it(notebook):
    plane = notebook.find(PLANE)
    mouse = notebook.page.mouse
    plane.scroll_into_view_if_needed()
    x, y = middle(plane.locator(".course-plane-queries svg"))
    mouse.move(x - unit(plane), y)
    mouse.down()
    assert status_text(notebook).startswith("q = (−1.00, 0.00)")
    mouse.move(x - 2 * unit(plane), y + unit(plane))
    mouse.up()
    assert status_text(notebook).startswith("q = (−2.00, −1.00)")


def test_arrow_keys_move_the_query_and_plus_and_minus_stretch_it(notebook):
    plane = notebook.find(PLANE)
    keyboard = notebook.page.keyboard
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    handle(plane).focus()
    for key, coordinates in (
        ("ArrowRight", "(1.10, 0.50)"), ("ArrowUp", "(1.10, 0.60)"), ("Shift+ArrowLeft", "(0.60, 0.60)"),
        ("ArrowDown", "(0.60, 0.50)"), ("+", "(0.68, 0.56)"), ("-", "(0.60, 0.50)"),
    ):  # fmt: skip
        keyboard.press(key)
        assert f"q = {coordinates}" in status_text(notebook), key
    assert handle(plane).get_attribute("aria-valuetext") == "(0.60, 0.50), length 0.78"
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active
    notebook.expect("np.round(plane.query, 2).tolist()", "[0.6, 0.5]")


def test_sliders_change_the_length_or_the_direction_alone(notebook):
    plane = notebook.find(PLANE)
    plane.get_by_role("slider", name="length of the query").fill("50")
    assert status_text(notebook) == "q = (2.68, 1.34), length 3.00"
    plane.get_by_role("slider", name="direction").fill("270")
    assert status_text(notebook) == "q = (0.00, 3.00), length 3.00"
    plane.get_by_role("slider", name="length of the query").fill("0")
    plane.get_by_role("slider", name="length of the query").fill("100")
    assert status_text(notebook) == "q = (0.00, 6.00), length 6.00, beyond the edge"


def test_a_longer_query_is_sharper_and_one_of_length_zero_takes_the_mean(notebook):
    plane = notebook.find(PLANE)
    button(notebook, "parcel").click()
    before = numbers(plane)
    for _ in range(3):
        button(notebook, "twice as long").click()
    assert numbers(plane)[0] > before[0] + 0.3
    assert "Nearly all the weight is on “parcel”" in plane.inner_text()
    button(notebook, "zero").click()
    assert numbers(plane) == [0.33] * 3 and "the output is the mean of the values" in plane.inner_text()
    assert button(notebook, "twice as long").get_attribute("aria-disabled") == "true"
    button(notebook, "as at first").click()
    assert status_text(notebook).startswith("q = (1.00, 0.50)")
    notebook.expect("plane.query", "[1.0, 0.5]")


def test_a_query_set_in_python_shows_and_moves_nothing_else(notebook):
    plane = notebook.find(PLANE)
    before = plane.bounding_box()
    notebook.run("plane.query = [-1, 2]")
    notebook.wait(lambda: "(−1.00, 2.00)" in status_text(notebook), "the query shows")
    assert plane.bounding_box() == before


def test_weights_and_output_are_said_once_the_query_rests(notebook):
    plane = notebook.find(PLANE)
    live = plane.get_by_role("status")
    button(notebook, "letter").click()
    notebook.wait(lambda: "letter 0.41" in live.inner_text() and "Output" in live.inner_text(), "it is said")


def test_a_function_is_asked_for_each_query_and_compared(notebook):
    theirs = notebook.find(THEIRS)
    compared = theirs.locator(".course-plane-compared")
    mark = theirs.locator(".course-plane-ring")
    assert "unscaled differs: its weight of “parcel” is 0.55" in compared.inner_text() and mark.is_visible()
    button(notebook, "zero", THEIRS).click()
    notebook.wait(lambda: "unscaled agrees" in compared.inner_text(), "at 0 the scale does not matter")
    output = theirs.locator(".course-plane-output")
    notebook.wait(lambda: mark.get_attribute("transform") == output.get_attribute("transform"), "the marks coincide")


def test_a_function_that_raises_is_named(notebook):
    assert "raised ZeroDivisionError" in notebook.find(FAILING).get_by_role("alert").inner_text()


def test_no_axe_violations_in_either_theme(notebook):
    notebook.run("plane.query = [9, 2]")
    notebook.check_accessible(".course-plane")


def made(**more):
    return QueryPlane(*eval(GIVEN), **more)


def test_without_a_kernel_all_follows_and_a_function_is_said_not_to(alone):
    def agreeing(q, k, v):
        from course_utils.attention import lists

        return lists.attention(q, k, v)

    page = alone(made(attention=agreeing))
    plane = page.locator(".course-plane")
    compared = plane.locator(".course-plane-compared")
    assert "agreeing agrees" in compared.inner_text()
    plane.get_by_role("button", name="arrived").click()
    assert page.locator(".course-plane-said").first.inner_text().startswith("q = (−0.79, 0.79)")
    expected = made()
    expected.query = [-0.790569, 0.790569]
    assert numbers(plane) == [round(weight, 2) for weight in expected.weights]
    assert plane.locator(".course-plane-ring").is_hidden()
    page.clock.run_for(2000)
    assert "agreeing has not answered for this query: that needs Python, in JupyterLab." in compared.inner_text()
    plane.get_by_role("button", name="as at first").click()
    assert "agreeing agrees" in compared.inner_text()


def test_keys_are_drawn_on_the_query_and_on_its_ring(alone):
    drawn = alone(made()).locator(".course-plane-queries svg > g")
    order = drawn.evaluate_all("groups => groups.map(group => group.getAttribute('class'))")
    assert order == ["course-plane-query", "course-plane-handle", *["course-plane-key"] * 3]


def test_beyond_the_edge_bars_of_scores_keep_their_proportions(alone):
    plane = alone(made()).locator(".course-plane")
    plane.get_by_role("slider", name="length of the query").press("End")
    rows = plane.locator("tr").filter(has=plane.page.locator(".course-plane-lean"))
    scores = [float(row.locator(".course-plane-digits").inner_text().replace("−", "-")) for row in rows.all()]
    bars = [float(re.search(r"scaleX\((.+)\)", row.locator(".course-plane-lean").get_attribute("style"))[1])
            for row in rows.all()]  # fmt: skip
    largest = max(map(abs, scores))
    assert largest > 4 and max(map(abs, bars)) == 1
    assert bars == pytest.approx([score / largest for score in scores], abs=0.01)


def test_beyond_the_edge_the_tip_stays_in_the_plane_and_its_halo_is_cut_there(alone):
    plane = alone(made()).locator(".course-plane")
    plane.get_by_role("slider", name="length of the query").press("End")
    plane.get_by_role("slider", name="direction").fill("270")
    frame, ring = (plane.locator(f".course-plane-queries {part}").bounding_box()
                   for part in ("svg", ".course-plane-handle > circle"))  # fmt: skip
    assert frame["y"] <= ring["y"]
    cut = plane.locator(".course-plane-halo").evaluate(
        "halo => document.querySelector(halo.parentNode.getAttribute('clip-path').slice(4, -1)).firstChild.outerHTML"
    )
    assert 'width="300" height="300"' in cut


def test_what_is_said_of_a_long_query_is_not_cut(alone):
    page = alone(made())
    page.locator(".course-plane").get_by_role("slider", name="length of the query").press("End")
    for width in (1400, 900, 820, 390):
        page.set_viewport_size({"width": width, "height": 900})
        wide, room = page.locator(".course-plane-said").first.evaluate("said => [said.scrollWidth, said.clientWidth]")
        assert wide <= room, width


@pytest.mark.parametrize("width", [390, 800])
def test_a_finger_drags_the_tip_and_scrolls_beside_it(chromium, tmp_path, width):
    file = tmp_path / "page.html"
    file.write_text(static_page(made(), "A page"), encoding="utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 700}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(file.as_uri())
    plane = page.locator(".course-plane")
    finger = context.new_cdp_session(page)
    plane.wait_for()

    def drag(x, y, dx, dy):
        for kind, share in (
            ("touchStart", 0),
            ("touchMove", 0.3),
            ("touchMove", 0.6),
            ("touchMove", 1),
            ("touchEnd", 1),
        ):
            points = [] if kind == "touchEnd" else [{"x": x + share * dx, "y": y + share * dy}]
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    status_text = page.locator(".course-plane-said").first
    drag(*middle(handle(plane)), unit(plane), -unit(plane))
    assert status_text.inner_text().startswith("q = (2.00, 1.50)") and page.evaluate("scrollY") == 0
    x, y = middle(plane.locator(".course-plane-queries svg"))
    page.touchscreen.tap(x - unit(plane), y)
    page.wait_for_function("document.querySelector('.course-plane-said').textContent.startsWith('q = (−1.00, 0.00)')")
    drag(x, y + 2 * unit(plane), 0, -150)
    page.wait_for_function("scrollY > 50")
    assert status_text.inner_text().startswith("q = (−1.00, 0.00)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
