"""Widgets on pages of their own, from the file system: no kernel, no server, no network."""

import pytest

from course_utils.views import AttentionHeatmap, AttentionStepper, QueryPlane, Quiz
from course_utils.views.static_page import static_page

WIDGETS = {
    "heatmap": lambda: AttentionHeatmap([[0.75, 0.25], [0.5, 0.5]], ["a", "b"]),
    "canvas": lambda: AttentionHeatmap([[1 / 32] * 32] * 32, [f"t{i}" for i in range(32)]),
    "stepper": lambda: AttentionStepper.from_qkv([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1], [2]], ["a", "b"]),
    "plane": lambda: QueryPlane([1, 0], [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [0, 0]]),
    "quiz": lambda: Quiz(
        [
            {
                "question": "Is </script> harmless here?",
                "choices": [
                    {"text": "yes", "right": True, "why": "It is escaped."},
                    {"text": "no", "right": False, "why": "It would end the script."},
                ],
            }
        ]
    ),
}


@pytest.fixture(scope="module")
def without_scripts(chromium):
    """A page that runs no script and reaches files only, and a list of what it says and asks for."""
    context = chromium.new_context(java_script_enabled=False, offline=True)
    recorded = []
    page = context.new_page()
    page.on("console", lambda message: recorded.append(message.text))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else recorded.append(r.url))
    yield page, recorded
    context.close()


@pytest.mark.parametrize("name", WIDGETS)
def test_a_page_works_from_the_file_system(alone, name):
    page = alone(WIDGETS[name](), "A <page>")
    assert page.title() == "A <page>"
    USES[name](page)


@pytest.mark.parametrize("name", WIDGETS)
def test_without_scripts_a_page_shows_a_picture(without_scripts, tmp_path, name):
    widget = WIDGETS[name]()
    (page, recorded) = without_scripts
    file = tmp_path / "page.html"
    file.write_text(static_page(widget, "A <page>"), encoding="utf-8")
    page.goto(file.as_uri())
    assert page.title() == "A <page>"
    assert page.locator("#widget img").get_attribute("alt") == widget.alt()
    assert page.locator("#widget img").evaluate("image => image.naturalWidth") > 100
    assert recorded == []


def use_heatmap(page):
    assert page.locator(".course-heatmap-side").get_attribute("data-row") == str(
        page.locator("tbody tr[data-row]").count() - 1
    )
    page.get_by_role("gridcell").first.click()
    assert page.locator("tr[aria-selected=true]").count() == 1
    assert "0.750" in page.locator(".course-heatmap-side").inner_text()


def use_canvas(page):
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(".course-heatmap-side").get_attribute("data-row") == "1"
    assert page.locator(".course-heatmap-pin").is_hidden()
    page.keyboard.press("Enter")
    assert page.locator(".course-heatmap-pin").is_visible()


def use_stepper(page):
    page.get_by_role("tab", name="scores").click()
    page.locator(".course-stepper-current [data-matrix=scores] td[role=gridcell]").first.click()
    assert "1·1 + 0·0 = 1" in page.get_by_role("status").inner_text()


def use_plane(page):
    page.get_by_role("button", name="key 2").click()
    assert "q = (0.00, 1.00)" in page.locator(".course-plane-said").first.inner_text()
    assert page.locator(".course-plane-number").all_inner_texts() == ["0.20", "0.40", "0.40"]


def use_quiz(page):
    page.get_by_role("radio", name="yes").check()
    assert "It is escaped." in page.locator(".course-quiz-message").inner_text()
    assert "1 of 1 right" in page.locator(".course-quiz-score").inner_text()


USES = {"heatmap": use_heatmap, "canvas": use_canvas, "stepper": use_stepper, "plane": use_plane, "quiz": use_quiz}
