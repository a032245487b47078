"""The tile walker and the online-softmax stepper in JupyterLab, by mouse and keyboard, and without a kernel."""

import pytest

from course_utils.views import OnlineSoftmaxStepper, TileWalker

SCORES = [0.5, 2.0, 1.0, -1.0, 3.0, 2.5, 0.0, 1.5]
VALUES = [[1, 0], [0, 1], [-1, 0], [0, -1]] * 2
CELLS = [
    "from course_utils.views import OnlineSoftmaxStepper, TileWalker\nimport math",
    "walker = TileWalker()\nwalker",
    "large = TileWalker(32, d=16, block_q=8, block_k=4, causal=True)\nlarge",
    f"online = OnlineSoftmaxStepper({SCORES}, {VALUES})\nonline",
    "masked = OnlineSoftmaxStepper([-math.inf, 1, 2, -math.inf] * 8, block=4)\nmasked",
]
WALKER, LARGE = (f".course-tiles >> nth={place}" for place in range(2))
ONLINE, MASKED = (f".course-online >> nth={place}" for place in range(2))
SHOWN = {"walker": WALKER, "large": LARGE, "online": ONLINE, "masked": MASKED}
every = pytest.mark.parametrize("name", SHOWN)


@pytest.fixture
def notebook(opened):
    """The notebook with every widget at its start."""
    opened.run("walker.causal, walker.block_q, walker.block_k = False, 4, 4")
    opened.run("for shown in (walker, large, online, masked):\n    shown.step = 0")
    opened.wait(lambda: all(place(opened, selector) == 0 for selector in SHOWN.values()), "all are at their start")
    opened.run("online.order = list(range(8))")
    opened.wait(lambda: last(opened, WALKER) == 24, "the walk is the first one")
    opened.wait(lambda: names(opened) == [f"key {i}" for i in range(8)], "the keys are in their order")
    opened.find(".course-tiles-numbers").evaluate_all("folded => folded.forEach((part) => { part.open = false; })")
    return opened


def slider(notebook, selector):
    return notebook.find(selector).get_by_role("slider", name="step")


def place(notebook, selector):
    return int(slider(notebook, selector).input_value())


def last(notebook, selector):
    return int(slider(notebook, selector).get_attribute("max"))


def status_text(notebook, selector):
    return notebook.find(selector).get_by_role("status").filter(has_text=".").first.inner_text()


def button(notebook, selector, name):
    return notebook.find(selector).get_by_role("button", name=name, exact=True)


def names(notebook):
    """The keys as they lie under the bars."""
    return notebook.find(ONLINE).locator(".course-online-name").all_text_contents()


def unfold(notebook, selector):
    notebook.find(selector).locator("summary").click()


def tiles(notebook, state):
    return notebook.find(WALKER).locator(f".course-tiles-tile[data-state={state}]").count()


@every
def test_the_buttons_step_back_and_reset(notebook, name):
    selector = SHOWN[name]
    for _ in range(3):
        button(notebook, selector, "step").click()
    assert place(notebook, selector) == 3
    notebook.expect(f"{name}.step", "3")
    button(notebook, selector, "back").click()
    notebook.expect(f"{name}.step", "2")
    button(notebook, selector, "reset").click()
    assert place(notebook, selector) == 0
    notebook.expect(f"{name}.step", "0")
    assert button(notebook, selector, "back").get_attribute("aria-disabled") == "true"
    button(notebook, selector, "back").click(force=True)
    assert place(notebook, selector) == 0


@every
def test_the_keys_step_and_stay_out_of_the_notebook(notebook, name):
    selector = SHOWN[name]
    keyboard = notebook.page.keyboard
    slider(notebook, selector).focus()
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        keyboard.press(key)
    notebook.expect(f"{name}.step", "0")  # in a slider the arrow down goes back
    button(notebook, selector, "step").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft", "Enter"):
        keyboard.press(key)
    notebook.expect(f"{name}.step", "3")
    keyboard.press("End")
    notebook.expect(f"{name}.step == {name}.last", "True")
    keyboard.press("Home")
    notebook.expect(f"{name}.step", "0")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


@every
def test_space_plays_and_pauses_and_playing_ends_at_the_end(notebook, name):
    selector = SHOWN[name]
    keyboard = notebook.page.keyboard
    slider(notebook, selector).focus()
    with notebook.hand_clock() as tick:
        keyboard.press("Space")
        tick()
        assert place(notebook, selector) == 1
        keyboard.press("Space")
        assert button(notebook, selector, "play").count() == 1
        tick(2)
        assert place(notebook, selector) == 1
        notebook.run(f"{name}.step = {name}.last - 1")
        notebook.wait(lambda: place(notebook, selector) == last(notebook, selector) - 1, "it is near the end")
        button(notebook, selector, "play").click()
        assert button(notebook, selector, "pause").count() == 1
        tick()
        assert button(notebook, selector, "play").count() == 1
        tick(2)
    notebook.expect(f"{name}.step == {name}.last", "True")


@every
def test_a_step_by_hand_pauses(notebook, name):
    selector = SHOWN[name]
    button(notebook, selector, "play").click()
    button(notebook, selector, "step").click()
    assert button(notebook, selector, "play").count() == 1 and place(notebook, selector) >= 1


@every
def test_the_slider_goes_anywhere_and_what_python_sets_shows(notebook, name):
    selector = SHOWN[name]
    slider(notebook, selector).fill("2")
    notebook.expect(f"{name}.step", "2")
    before = status_text(notebook, selector)
    notebook.run(f"{name}.step = 3")
    notebook.wait(lambda: place(notebook, selector) == 3, "the step set in Python shows")
    assert status_text(notebook, selector) != before


def test_the_map_marks_the_tile_and_what_is_done(notebook):
    notebook.run("walker.step = 9")  # the second tile of the second block of queries
    notebook.wait(lambda: tiles(notebook, "now") == 1, "the tile is marked")
    assert (tiles(notebook, "done"), tiles(notebook, "todo")) == (5, 10)
    now = (
        notebook.find(WALKER)
        .locator(".course-tiles-now")
        .evaluate("r => ['x', 'y', 'width', 'height'].map((a) => +r.getAttribute(a))")
    )
    assert now == [42 + 4 * 18, 42 + 4 * 18, 72, 72]
    assert status_text(notebook, WALKER).startswith("Load K and V block 1 (keys 4 to 7): 256 bytes. Scores 4×4.")
    memory = notebook.find(WALKER).get_by_role("table", name="in fast memory").get_by_role("cell").all_inner_texts()
    assert memory == ["4×8", "4×8", "4×8", "4×4", "4×2", "4×2", "4×8"]
    side = notebook.find(WALKER).locator(".course-tiles-bars").inner_text()
    assert "moved so far: 1,936 bytes" in side and "naive, at least: 6,144 bytes" in side
    assert notebook.python("sum(walker.bytes.values())") == "1936"
    notebook.run("walker.step = 12")
    notebook.wait(lambda: tiles(notebook, "done") == 8, "the block is done")
    assert tiles(notebook, "now") == 0 and not notebook.find(WALKER).locator(".course-tiles-now").is_visible()


def test_the_rows_show_what_is_rescaled_and_a_query_tells_its_numbers(notebook):
    notebook.run("walker.step = 9")
    notebook.wait(lambda: place(notebook, WALKER) == 9, "it is there")
    unfold(notebook, WALKER)
    rows = notebook.find(WALKER).get_by_role("table", name="the queries of this block").get_by_role("row")
    assert rows.nth(2).get_by_role("cell").all_inner_texts()[:5] == ["−0.119", "0.534", "0.521", "2.117", "3.370"]
    assert notebook.find(WALKER).locator(".course-tiles-shrinks").all_inner_texts() == ["0.521", "0.455", "0.528"]
    button(notebook, WALKER, "query 5").click()
    detail = notebook.find(WALKER).locator(".course-tiles-detail")
    assert "factor = e^(−0.119 − 0.534) = 0.521" in detail.inner_text()
    table = detail.get_by_role("table", name="o in numbers").get_by_role("row")
    old, rescaled, new = (
        [float(t.replace("−", "-")) for t in table.nth(i).get_by_role("cell").all_inner_texts()] for i in range(3)
    )
    assert (
        len(new) == 8
        and all(abs(0.521 * a - b) < 0.012 for a, b in zip(old, rescaled, strict=True))
        and rescaled != new
    )
    lines = [path.get_attribute("d") for path in rows.nth(2).locator("path").all()]
    assert len(set(lines)) == 3 and all(lines)


def test_the_numbers_of_a_block_are_folded_until_asked_for(notebook):
    walker = notebook.find(WALKER)
    rows = walker.get_by_role("table", name="the queries of this block")
    assert not rows.is_visible() and not walker.locator(".course-tiles-detail").is_visible()
    walker.locator("summary").focus()
    notebook.page.keyboard.press("Space")
    assert rows.is_visible() and place(notebook, WALKER) == 0  # it opens, and nothing plays
    assert button(notebook, WALKER, "play").count() == 1
    notebook.page.keyboard.press("Enter")
    assert not rows.is_visible()


def test_a_click_on_a_tile_goes_there(notebook):
    notebook.find(WALKER).locator(".course-tiles-tile").nth(5).click()
    notebook.expect("walker.step", "9")
    assert tiles(notebook, "done") == 5
    notebook.page.keyboard.press("ArrowRight")  # the slider has the focus now
    notebook.expect("walker.step", "10")


def test_causal_skips_tiles_and_blocks_change_the_bytes(notebook):
    walker = notebook.find(WALKER)
    assert walker.locator(".course-tiles-skip").count() == 0
    notebook.run("walker.step = 5")
    walker.get_by_role("checkbox", name="causal").check()
    notebook.wait(lambda: walker.locator(".course-tiles-skip").count() == 3, "the skipped tiles are hatched")
    notebook.expect("walker.causal, walker.step, walker.last", "(True, 0, 18)")
    assert place(notebook, WALKER) == 0 and last(notebook, WALKER) == 18
    assert walker.locator(".course-tiles-tile").count() == 10
    walker.get_by_role("combobox", name="queries in a block").select_option("8")
    notebook.expect("walker.block_q, walker.last", "(8, 10)")
    notebook.wait(lambda: last(notebook, WALKER) == 10, "the walk is shorter")
    walker.get_by_role("combobox", name="keys in a block").select_option("2")
    notebook.expect("walker.block_k", "2")
    notebook.run("walker.block_q = 3")
    notebook.wait(lambda: walker.get_by_role("combobox", name="queries in a block").input_value() == "3", "3 is shown")
    assert walker.locator(".course-tiles-waits").inner_text() == ""


def test_every_number_of_the_softmax_tells_its_arithmetic(notebook):
    online = notebook.find(ONLINE)
    notebook.run("online.step = 2")
    notebook.wait(lambda: place(notebook, ONLINE) == 2, "two keys are read")
    grid = online.get_by_role("grid")
    cells = grid.get_by_role("row").nth(3).get_by_role("gridcell")
    assert cells.all_inner_texts() == ["2.000", "2.000", "0.223", "1.223", "0.223", "1.000"]
    assert grid.get_by_role("row").nth(4).get_by_role("gridcell").all_inner_texts() == ["1.000", *["·"] * 5]
    cells.nth(2).click()
    why = online.locator(".course-online-why")
    assert "e^(m_old − m_new) = e^(0.500 − 2.000) = 0.223" in why.inner_text()
    powers = why.locator("[role=status] sup")
    assert powers.all_text_contents() == ["(m_old − m_new)", "(0.500 − 2.000)"], "set as powers, and read as before"
    assert powers.first.evaluate("power => getComputedStyle(power).verticalAlign") == "super"
    assert why.locator("[role=status] sub").all_text_contents() == ["old", "new"]
    keyboard = notebook.page.keyboard
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    assert "l = 0.223 · 1.000 + e^(2.000 − 2.000) = 1.223" in why.inner_text()
    keyboard.press("ArrowDown")  # nothing is there yet
    keyboard.press("Escape")
    assert why.inner_text().startswith("Click or tap a number")
    notebook.expect("online.step", "2")  # these arrows move in the table, not in time
    assert grid.locator("td[tabindex='0']").count() == 1


def test_at_the_end_the_softmax_is_compared(notebook):
    online = notebook.find(ONLINE)
    result = online.locator(".course-online-result")
    assert not result.is_visible() and online.locator(".course-online-waits").is_visible()
    slider(notebook, ONLINE).fill("8")
    assert result.is_visible() and not online.locator(".course-online-waits").is_visible()
    rows = result.get_by_role("row").all()
    assert [row.get_by_role("cell").all_inner_texts() for row in rows] == [["0.361", "0.295"]] * 2


def test_arrows_move_a_key_and_m_and_l_end_the_same(notebook):
    notebook.run("online.step = 8")
    notebook.wait(lambda: place(notebook, ONLINE) == 8, "all are read")
    end = notebook.find(ONLINE).locator(".course-online-compared > div").first
    message = end.inner_text()
    keyboard = notebook.page.keyboard
    notebook.find(ONLINE).get_by_role("button", name="key 4, place 5 of 8").focus()
    keyboard.press("ArrowLeft")
    notebook.expect("online.order", "[0, 1, 2, 4, 3, 5, 6, 7]")
    notebook.wait(lambda: names(notebook)[3] == "key 4", "it moved")
    keyboard.press("Home")
    notebook.expect("online.order", "[4, 0, 1, 2, 3, 5, 6, 7]")
    notebook.wait(lambda: names(notebook)[0] == "key 4", "it is the first")
    assert notebook.page.evaluate("document.activeElement.textContent") == "key 4"
    rows = notebook.find(ONLINE).get_by_role("grid").get_by_role("row")
    assert rows.nth(2).get_by_role("rowheader").inner_text() == "key 4"
    assert notebook.find(ONLINE).locator(".course-online-shrinks").count() == 0
    assert end.inner_text() == message and message.startswith("m = 3.000, l = 2.483")
    keyboard.press("End")
    notebook.expect("online.order[-1], online.step", "(4, 8)")


@pytest.mark.parametrize(("steps", "order"), [(3, [1, 2, 3, 0]), (1, [1, 0, 2, 3]), (0, [0, 1, 2, 3])])
def test_a_key_is_dragged_to_its_place(notebook, steps, order):
    keys = notebook.find(ONLINE).locator(".course-online-name")
    for key in (keys.nth(steps), keys.first):
        key.scroll_into_view_if_needed()
    boxes = keys.evaluate_all(
        "names => names.map((n) => n.getBoundingClientRect()).map((r) => [r.x + r.width / 2, r.y + r.height / 2])"
    )
    mouse = notebook.page.mouse
    mouse.move(*boxes[0])
    mouse.down()
    mouse.move(boxes[0][0] + 3, boxes[0][1])
    mouse.move(boxes[steps][0] + 3 * bool(steps), boxes[steps][1], steps=4)
    mouse.up()
    notebook.expect("online.order[:4]", str(order))
    notebook.wait(lambda: names(notebook)[:4] == [f"key {i}" for i in order], "they lie as they are read")


def test_many_keys_stay_where_they_are(notebook):
    assert notebook.find(MASKED).locator("button.course-online-name").count() == 0
    assert notebook.find(MASKED).locator(".course-online-name").count() == 32


def test_the_bars_of_the_softmax_shrink_when_m_grows(notebook):
    def heights():
        bars = notebook.find(ONLINE).locator(".course-online-bar")
        return bars.evaluate_all("bars => bars.map((bar) => Math.round(bar.getBoundingClientRect().height))")

    slider(notebook, ONLINE).fill("1")
    assert heights() == [64, 0, 0, 0, 0, 0, 0, 0] or heights()[0] > 60
    before = heights()[0]
    slider(notebook, ONLINE).fill("2")
    assert heights()[0] == pytest.approx(0.223 * before, abs=1.5) and heights()[1] == before


@pytest.mark.parametrize("width", [1280, 970, 700])  # the widget is 916, 606 and 336 wide
@every
def test_no_step_moves_anything_and_nothing_overlaps(notebook, name, width):
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    try:
        for folded in notebook.find(SHOWN[name]).locator("summary").all():
            folded.click()
        notebook.settle()
        first = None
        for step in range(0, last(notebook, SHOWN[name]) + 1, 3 if name != "large" else 5):
            slider(notebook, SHOWN[name]).fill(str(step))
            boxes, wide, over = notebook.find(SHOWN[name]).evaluate(LAID_OUT)
            first = first or boxes
            assert boxes == first and wide and not over, f"step {step}: {over}"
    finally:
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})


# Where the parts of a widget lie, whether they stay within it, and which of them lie upon each other.
LAID_OUT = """(root) => {
  const inner = (part) => part.matches(".course-tiles-middle") ? [...part.children] : [part];
  const parts = [...root.children].flatMap(inner);
  const o = root.getBoundingClientRect();
  const boxes = parts.map((part) => part.getBoundingClientRect()).map((r) => [r.x - o.x, r.y - o.y, r.width, r.height]);
  const over = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
    a[0] + a[2] > b[0] + 1 && b[0] + b[2] > a[0] + 1 && a[1] + a[3] > b[1] + 1 && b[1] + b[3] > a[1] + 1));
  return [boxes, root.scrollWidth <= root.clientWidth && boxes.every((box) => box[0] + box[2] <= o.width + 1), over];
}"""


def test_no_two_widgets_share_an_id(notebook):
    ids = notebook.find(".course-tiles, .course-online").evaluate_all(
        "roots => roots.flatMap((root) => [...root.querySelectorAll('[id]')].map((node) => node.id))"
    )
    assert len(ids) >= 6 and len(ids) == len(set(ids))


def test_roles_and_names(notebook):
    walker = notebook.find(WALKER)
    online = notebook.find(ONLINE)
    assert walker.get_attribute("role") == online.get_attribute("role") == "group"
    walker.get_by_role("img", name="16 queries by 16 keys: 0 of 16 tiles done").wait_for()
    online.get_by_role("grid", name="m, factor, l and o, step by step").wait_for()
    online.get_by_role("img", name="e^(score − m) of the keys read so far: none yet").wait_for()
    for widget in (walker, online):
        for name in ("reset", "back", "play", "step"):
            widget.get_by_role("button", name=name, exact=True).wait_for()


@pytest.mark.parametrize("step", ["0", "3", "shown.last"])
def test_no_axe_violations_in_either_theme(notebook, step):
    notebook.run(f"for shown in (walker, large, online, masked):\n    shown.step = {step}")
    notebook.wait(lambda: place(notebook, MASKED) == int(notebook.python(step.replace("shown", "masked"))), "it shows")
    unfold(notebook, WALKER)
    notebook.check_accessible(".course-tiles", ".course-online")


PAGES = {"walker": lambda: TileWalker(8), "online": lambda: OnlineSoftmaxStepper(SCORES, VALUES)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_without_a_kernel_steps_and_plays(alone, name):
    widget = PAGES[name]()
    page = alone(widget)
    step = page.get_by_role("slider", name="step")
    message = []
    for _ in range(widget.last):
        message.append(page.get_by_role("status").first.inner_text() or page.get_by_role("status").nth(1).inner_text())
        page.get_by_role("button", name="step", exact=True).click()
    assert step.input_value() == str(widget.last) and len(set(message)) > 4
    page.get_by_role("button", name="play").click()  # from the end it starts anew
    assert step.input_value() == "0"
    page.clock.run_for(2500)
    assert int(step.input_value()) >= 2
    page.get_by_role("button", name="pause").click()
    here = step.input_value()
    page.clock.run_for(2500)
    assert step.input_value() == here


def test_where_the_kernel_is_gone_another_walk_is_said_to_wait(alone):
    page = alone(TileWalker(8, block_q=2, block_k=4), waits=True)
    page.get_by_role("checkbox", name="causal").check()
    page.clock.run_for(400)
    page.get_by_text("waiting for Python; still shown: 2 × 4").wait_for()
    page.get_by_role("button", name="step", exact=True).click()
    assert page.get_by_role("slider").input_value() == "1"
    page.get_by_role("checkbox", name="causal").uncheck()
    page.get_by_text("waiting for Python").wait_for(state="detached")


def test_nothing_went_wrong_on_the_way(notebook):
    notebook.check_clean()


def test_where_the_kernel_is_gone_another_order_is_said_to_wait(alone):
    page = alone(OnlineSoftmaxStepper(SCORES, VALUES), waits=True)
    page.get_by_role("button", name="key 1, place 2 of 8").press("ArrowLeft")
    page.clock.run_for(400)
    page.get_by_text("waiting for Python; the order before is still shown").wait_for()
    page.get_by_role("button", name="step", exact=True).click()
    assert page.get_by_role("slider").input_value() == "1"
