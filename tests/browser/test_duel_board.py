"""The board of a test in JupyterLab: what a check shows, and what a mouse and a keyboard do with it."""

import pytest

from course_utils.views import DuelBoard

CELLS = [
    "import numpy as np\nfrom course_utils.checks import checks_for\ncheck = checks_for(day=1)",
    "def tells_right(f):\n"
    "    weights = f([[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.5], [0.5, 1.0]], np.eye(2))[1]\n"
    "    return np.allclose(weights.sum(-1), 1)",
    "try:\n    check('tells_right')\nexcept Exception as error:\n    said = str(error)",
]
HERE = ".course-duel"


def tiles(page, state):
    return page.locator(f"{HERE} .course-duel-{state}")


def detail(page):
    return page.locator(f"{HERE} .course-duel-detail")


def test_a_check_shows_what_was_caught_and_hints_at_what_got_away(opened):
    board = opened.find(HERE)
    assert tiles(opened.page, "kept").count() == 12
    caught = tiles(opened.page, "caught")
    away = tiles(opened.page, "got-away")
    assert caught.count() + away.count() == 32 and caught.count() > 1 < away.count()
    caught.first.click()
    opened.wait(lambda: ", caught: " in detail(opened.page).inner_text(), "what was wrong is told")
    away.first.click()
    opened.wait(lambda: "got away" in detail(opened.page).inner_text(), "hints are offered")
    assert board.locator(".course-duel-hint").count() == 0
    board.get_by_role("button", name="A hint").click()
    opened.wait(lambda: board.locator(".course-duel-hint").count() == 1, "one hint is shown")
    opened.page.keyboard.press("Enter")  # the button for another one has the focus
    opened.wait(lambda: board.locator(".course-duel-hint").count() == 2, "two hints are shown")
    assert board.locator(".course-duel-more").count() == 0
    away.nth(1).click()
    away.first.click()
    opened.wait(lambda: board.locator(".course-duel-hint").count() == 2, "hints that were asked for stay")


def test_by_keyboard_and_in_both_themes(opened):
    active = opened.page.evaluate("window.courseNotebook.content.activeCellIndex")
    first = tiles(opened.page, "kept").first
    first.focus()
    opened.page.keyboard.press("Enter")
    opened.wait(lambda: first.get_attribute("aria-pressed") == "true", "a tile is chosen")
    assert opened.page.evaluate("window.courseNotebook.content.activeCellIndex") == active
    assert first.get_attribute("aria-label") == "right implementation 1: kept, with matrix products"
    opened.check_accessible(HERE)


@pytest.fixture
def board():
    shared = {"message": "It divides by √d_k twice.", "hints": ["One.", "Two."]}
    return DuelBoard(
        [
            {"right": i < 12, "held": i % 4 != 3, "name": f"implementation number {i} with a long name", **shared}
            for i in range(45)
        ]
    )


def test_a_narrow_page_without_kernel_holds_it(alone, board):
    page = alone(board)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="right implementation 4: condemned").click()
    assert "condemned: implementation number 3" in detail(page).inner_text()
    page.get_by_role("button", name="wrong implementation 4: got away").click()
    page.get_by_role("button", name="A hint").click()
    assert page.locator(".course-duel-hint").all_inner_texts() == ["One."]
