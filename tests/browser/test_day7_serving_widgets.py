"""The timeline of a scheduler and the table of pages in JupyterLab, by mouse and keyboard, and without a kernel."""

import pytest

from course_utils.answers.day7.exercises import Scheduler
from course_utils.views import PageTable, ServingTimeline

CELLS = [
    "from course_utils.answers.day7.exercises import Scheduler\n"
    "from course_utils.views import PageTable, ServingTimeline",
    "timeline = ServingTimeline()\ntimeline",
    "class Broken(Scheduler):\n"
    "    def step(self):\n"
    "        if self.requests['B'].generated == 2:\n"
    "            while True:\n"
    "                pass\n"
    "        return super().step()\n"
    "mine = ServingTimeline(Broken)\nmine",
    "pages = PageTable()\npages",
]
LIBRARY = ".course-timeline >> nth=0"
MINE = ".course-timeline >> nth=1"
PAGES = ".course-pages"
SAID = ".course-timeline-message [role=status]"


class Unlucky(Scheduler):
    """Fails in its third step."""

    def step(self):
        if self.requests["B"].generated == 2:
            raise KeyError("B")
        return super().step()


@pytest.fixture
def notebook(opened):
    """The notebook with both timelines at their start."""
    opened.run(
        "for each in (timeline, mine):\n"
        "    with each.hold_trait_notifications():\n"
        "        each.step, each.budget, each.blocks, each.arrivals = 0, 4, 5, 'three at once'\n"
        "timeline.rule, mine.rule = 'continuous', 'yours'"
    )
    for selector, last in ((LIBRARY, 5), (MINE, 2)):
        opened.wait(lambda at=selector, n=last: place(opened.find(at)) == f"0 of {n}", "both are at their start")
    return opened


def place(widget):
    return widget.locator(".course-player-place").inner_text()


def status_text(widget):
    return widget.locator(SAID).inner_text()


def slider(widget):
    return widget.locator(".course-player input")


def menu(widget, name):
    return widget.get_by_role("combobox", name=name)


def cell(widget, row, column):
    """A cell: row 0 has the tokens, row 1 the blocks, and requests follow."""
    return widget.locator(f"td[data-row='{row}'][data-column='{column}']")


def did(widget):
    """What stands in the rows of the requests."""
    rows = widget.locator("tbody tr, table > tr").all()
    return [" ".join(row.locator("td").all_inner_texts()).strip() for row in rows if row.locator("td").count()][2:]


def test_buttons_and_keys_step_and_python_hears_of_it(notebook):
    widget = notebook.find(LIBRARY)
    assert status_text(widget) == "3 requests, no step yet." and did(widget) == ["", "", ""]
    widget.get_by_role("button", name="step", exact=True).click()
    notebook.expect("timeline.step", "1")
    assert status_text(widget) == "Step 1: prefill A, B; waiting C. 4 of 4 tokens and 2 of 5 blocks are used."
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        notebook.page.keyboard.press(key)
    notebook.expect("timeline.step", "2")
    notebook.page.keyboard.press("End")
    notebook.expect("timeline.step == timeline.last == 5", "True")
    assert did(widget) == ["P2 D ✓", "P2 D D D D", "· P2 D D ✓"]
    widget.get_by_role("button", name="reset").click()
    notebook.expect("timeline.step", "0")
    notebook.run("timeline.step = 2")
    notebook.wait(lambda: place(widget) == "2 of 5", "what Python sets shows")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_space_runs_to_the_end(notebook):
    widget = notebook.find(LIBRARY)
    slider(widget).focus()
    with notebook.hand_clock() as tick:
        notebook.page.keyboard.press("Space")
        tick()
        assert place(widget) == "1 of 5"
        tick(5)
        assert widget.get_by_role("button", name="play").count() == 1
    notebook.expect("timeline.step", "5")


def test_menus_begin_anew_with_what_python_schedules(notebook):
    widget = notebook.find(LIBRARY)
    slider(widget).fill("5")
    menu(widget, "scheduler").select_option("static")
    notebook.wait(lambda: place(widget) == "0 of 8", "static batches take 8 steps")
    notebook.expect("timeline.rule, timeline.last", "('static', 8)")
    menu(widget, "requests").select_option("too few blocks")
    notebook.wait(lambda: place(widget) == "0 of 19", "other requests come")
    notebook.expect("timeline.arrivals, timeline.blocks", "('too few blocks', 6)")
    menu(widget, "scheduler").select_option("continuous")
    menu(widget, "budget").select_option("1")
    menu(widget, "blocks").select_option("8")
    notebook.expect("timeline.budget, timeline.blocks, timeline.step", "(1, 8, 0)")
    notebook.run("timeline.budget = 7")
    notebook.wait(lambda: menu(widget, "budget").input_value() == "7", "a size that is not in the menu shows there")
    assert widget.locator(".course-timeline-waits").inner_text() == ""


def test_a_cell_says_what_ran_and_why_by_mouse_and_by_keyboard(notebook):
    widget = notebook.find(LIBRARY)
    keyboard = notebook.page.keyboard
    slider(widget).fill("3")
    summary = status_text(widget)
    cell(widget, 4, 0).hover()
    assert status_text(widget) == "Step 1: C waits: the budget of 4 tokens is used."
    cell(widget, 1, 1).hover()
    assert status_text(widget) == "Step 2: 5 of 5 blocks are held."
    cell(widget, 4, 4).hover()
    assert status_text(widget) == summary, "a step that is not yet made is not told"
    cell(widget, 4, 0).hover()
    widget.locator(".course-timeline-title").hover()
    assert status_text(widget) == summary
    widget.locator("td[tabindex='0']").focus()
    for key in ("End", "ArrowLeft", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowDown"):
        keyboard.press(key)
    assert status_text(widget) == "Step 3: C computes 1 token, decode: decodes go first. It gets token 2 of 3."
    assert cell(widget, 4, 2).get_attribute("aria-label") == status_text(widget)
    for key in ("Home", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp"):
        keyboard.press(key)
    assert status_text(widget) == "Step 1: 4 of 4 tokens of the budget are used."
    assert widget.locator("td[tabindex='0']").count() == 1
    notebook.expect("timeline.step", "3")


def test_a_scheduler_that_hangs_is_shown_up_to_there_and_said(notebook):
    widget = notebook.find(MINE)
    problem = widget.locator(".course-timeline-problem")
    assert menu(widget, "scheduler").locator("option").all_inner_texts() == ["Broken", "continuous", "static batches"]
    assert problem.inner_text() == ""
    slider(widget).fill("2")
    assert problem.inner_text() == "Broken.step does not come to an end, in step 3."
    assert did(widget) == ["P2 D", "P2 D", "· P2"]
    menu(widget, "scheduler").select_option("continuous")
    notebook.wait(lambda: place(widget) == "0 of 5", "the library goes on in its place")
    slider(widget).fill("5")
    assert problem.inner_text() == ""


def test_both_are_accessible_in_both_themes(notebook):
    notebook.run("timeline.step, mine.step = timeline.last, mine.last")
    notebook.wait(lambda: notebook.find(MINE).locator(".course-timeline-problem").inner_text() != "", "all is shown")
    notebook.check_accessible(".course-timeline")


def test_buttons_on_pages_are_heard_in_python(opened):
    widget = opened.find(PAGES)
    text = widget.locator(".course-pages-message")
    widget.get_by_role("button", name="fork a").click()
    opened.expect("pages.tables", "{'a': [0, 1], 'b': [0, 1]}")
    active = opened.page.evaluate("window.courseNotebook.content.activeCellIndex")
    widget.get_by_role("button", name="append a token to b").focus()
    for _ in range(3):
        opened.page.keyboard.press("Enter")  # the button keeps the focus
    opened.expect("pages.tables", "{'a': [0, 1], 'b': [0, 2, 3]}")
    assert opened.page.evaluate("window.courseNotebook.content.activeCellIndex") == active
    widget.get_by_role("button", name="back").click()
    opened.expect("pages.message", repr(text.inner_text()))
    opened.run("pages.calls = [('append', 'f')]")
    opened.wait(lambda: widget.locator("tbody th:visible").all_inner_texts() == ["f"], "what Python sets shows")
    opened.check_accessible(PAGES)
    opened.run("pages.calls = [('append', 'a')] * 6")


# ---- without a kernel


def test_bars_and_measures_follow_the_step(alone):
    page = alone(ServingTimeline())
    full = "node => getComputedStyle(node).getPropertyValue('--full')"

    def at(step):
        slider(page).fill(str(step))
        return {
            each: page.locator(f"[data-sum={each}] b").inner_text() for each in ("steps", "budget", "blocks", "first")
        }

    assert at(0) == {"steps": "0", "budget": "–", "blocks": "–", "first": "–"}
    assert at(1) == {"steps": "1", "budget": "100%", "blocks": "40%", "first": "1.00"}
    assert at(5) == {"steps": "5", "budget": "65%", "blocks": "76%", "first": "1.33"}
    assert page.locator("[data-sum=first] span").inner_text().endswith("A 1, B 1, C 2")
    assert [float(cell(page, 1, column).evaluate(full)) for column in (0, 1)] == [0.4, 1]
    at(1)
    assert cell(page, 0, 1).inner_text() == "" and float(cell(page, 0, 1).evaluate(full)) == 0


def test_what_was_done_is_told_apart_without_colours(alone):
    page = alone(ServingTimeline())
    page.get_by_role("combobox", name="requests").select_option("too few blocks")
    slider(page).fill("12")
    assert did(page) == ["P2 D D D D D D ✓", "P2 D D D D ↺ · P4 P3 D ✓", "P2 D ↺ · · · · P1 P3 D D"]
    assert cell(page, 3, 8).get_attribute("data-got") == "true", "the last chunk gives a token"
    assert cell(page, 3, 7).get_attribute("data-got") == "false"
    page.get_by_role("combobox", name="blocks").select_option("3")
    slider(page).fill("1")
    assert did(page)[:2] == ["×", "×"]


def test_somebodys_own_scheduler_needs_python_for_other_settings(alone):
    page = alone(ServingTimeline(Unlucky))
    problem = page.locator(".course-timeline-problem")
    slider(page).fill("2")
    assert problem.inner_text() == "Unlucky.step raised KeyError: 'B', in step 3."
    page.get_by_role("combobox", name="budget").select_option("8")
    assert problem.inner_text() == "Unlucky has not planned this: that needs Python, in JupyterLab."
    assert status_text(page) == "There is no step." and page.locator("td").count() == 0
    page.get_by_role("combobox", name="scheduler").select_option("static")
    slider(page).fill("8")
    assert problem.inner_text() == "" and place(page) == "8 of 8"
    page.get_by_role("combobox", name="scheduler").select_option("yours")
    page.get_by_role("combobox", name="budget").select_option("4")
    assert place(page) == "0 of 2", "what it came with is still there"


def test_where_the_kernel_is_gone_it_says_that_it_waits(alone):
    page = alone(ServingTimeline(), waits=True)
    page.get_by_role("combobox", name="budget").select_option("8")
    page.clock.run_for(500)
    waits = page.locator(".course-timeline-waits")
    assert waits.inner_text() == "waiting for Python; still shown: continuous, three at once, budget 4, 5 blocks"
    page.get_by_role("combobox", name="budget").select_option("4")
    assert waits.inner_text() == ""


def test_nothing_moves_between_steps(alone):
    widget = ServingTimeline(blocks=16)
    widget.arrivals = "one after another"
    page = alone(widget)
    heights = set()
    for step in range(widget.last + 1):
        slider(page).fill(str(step))
        heights.add(page.locator(".course-timeline").bounding_box()["height"])
    assert len(heights) == 1


def test_a_narrow_page_holds_it_and_the_present_step_stays_in_view(alone):
    rows = [(f"request {name}", 0, 20, 30) for name in "abcdefgh"]
    widget = ServingTimeline(requests=rows, budget=8, blocks=64)
    page = alone(widget)
    page.set_viewport_size({"width": 390, "height": 800})
    for step in (0, 1, widget.last // 2, widget.last, widget.last // 3):
        slider(page).fill(str(step))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = cell(page, 2, max(0, step - 1)).bounding_box()
        around = page.locator(".course-timeline-scroll").bounding_box()
        name = page.locator("th[scope=row]").first.bounding_box()
        assert name["x"] + name["width"] <= box["x"] and box["x"] + box["width"] <= around["x"] + around["width"]


def blocks(page):
    """Who holds each block that somebody holds, and its tokens."""
    result = []
    for block in page.locator(".course-pages-block:not([data-held='0'])").all():
        owners = "".join(block.locator(".course-pages-tag").all_inner_texts())
        result.append((owners, " ".join(block.locator(".course-pages-slot:not(:empty)").all_inner_texts())))
    return result


def test_a_shared_block_is_copied_when_one_of_its_holders_writes(alone):
    page = alone(PageTable(4, 2, [("append", "a")] * 3))
    page.get_by_role("button", name="fork a").click()
    assert blocks(page) == [("ab", "a0 a1"), ("ab", "a2")]
    assert page.locator(".course-pages-changed").count() == 2
    page.get_by_role("button", name="append a token to b").click()
    assert blocks(page) == [("ab", "a0 a1"), ("a", "a2"), ("b", "a2 b3")]
    assert page.locator(".course-pages-changed b").all_inner_texts() == ["block 2"]
    assert page.locator(".course-pages-message").inner_text().endswith("also hold: copy on write.")
    assert page.locator("[data-sum] b").all_inner_texts() == ["3 of 4", "4", "1"]


def test_what_is_not_possible_has_no_effect_on_pages(alone):
    page = alone(PageTable(6, 1, [("append", name) for name in "abcdef"]))
    page.get_by_role("button", name="append a token to c").click()
    text = page.locator(".course-pages-message")
    assert text.inner_text() == "append c: no block is free. Nothing changes."
    for name in ("new sequence", "fork a"):
        node = page.get_by_role("button", name=name)
        assert node.get_attribute("aria-disabled") == "true"
        node.dispatch_event("click")
    assert text.inner_text() == "append c: no block is free. Nothing changes."
    page.get_by_role("button", name="free c").click()
    assert page.get_by_role("button", name="new sequence").evaluate("node => node === document.activeElement")
    page.get_by_role("button", name="fork a").click()
    assert page.locator("tbody tr:visible").all_inner_texts()[2].split()[:3] == ["c", "0", "1"]


def test_after_the_most_calls_one_can_only_go_back(alone):
    page = alone(PageTable(4, 4, [*(("append", "a"), ("free", "a")) * 99, ("append", "a")]))
    append = page.get_by_role("button", name="append a token to a")
    text = page.locator(".course-pages-message")
    append.click()
    assert text.inner_text().endswith("These are 200 calls, and no more are possible: go back.")
    before = text.inner_text()
    append.dispatch_event("click")
    assert text.inner_text() == before and append.get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="back").click()
    assert append.get_attribute("aria-disabled") == "false"


def test_pages_fit_a_narrow_page(alone):
    page = alone(PageTable(24, 8, [*(("append", "a"),) * 160, *(("fork", "a", name) for name in "bcdef")]))
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
