"""Guess first in JupyterLab and on pages without a kernel: by mouse, by keyboard and by touch."""

import itertools

import pytest
from as_page import on_page

from course_utils.guesses import judge
from course_utils.views import Guess, Guesses

CELLS = [
    "import pathlib, shutil, tempfile\nfrom course_utils.guesses import read\n"
    "from course_utils.views import Guess, Guesses\nroot = pathlib.Path(tempfile.mkdtemp())",
    "number = Guess.number(2, 'n', 'How large?', truth=0.8, low=0, high=1, why='It was measured.', root=root)\nnumber",
    "curve = Guess.curve(2, 'k', 'How does it grow?', [4, 16, 64, 256], truth=[0.2, 0.4, 0.6, 0.8], low=0, high=1,\n"
    "                    x_label='d_k', y_label='weight', x_scale='log', root=root)\ncurve",
    "choice = Guess.choice(2, 'c', 'Which?', choices=['a', 'b', 'c'], truth='b', why='b it is.', root=root)\nchoice",
    "summary = Guesses(2, root=root)\nsummary",
]
NUMBER = 1
CURVE = 2
CHOICE = 3
SUMMARY = 4
PLOT = "svg.course-guess-plot"


@pytest.fixture
def fresh(opened):
    """The notebook with nothing guessed."""

    def begun_anew():
        """What the page sent in the test before may arrive in Python after the first try."""
        opened.run(
            "shutil.rmtree(root / 'guesses', ignore_errors=True)\n"
            "for widget in (number, curve, choice):\n"
            "    widget.guess = []\n    widget.first = []\n    widget.draft = [None] * len(widget.question.truth)\n"
            "summary.read()"
        )
        return opened.find(".course-guess-shown").count() == 0 and opened.find(".course-guess-open").count() == 4

    opened.wait(begun_anew, "nothing is guessed, and no point is set")
    return opened


def button(notebook, cell, name="Guess"):
    return notebook.output(cell).get_by_role("button", name=name, exact=True)


def verdict_text(notebook, cell):
    return notebook.output(cell).locator(".course-guess-message").inner_text()


def stroke(page, box, heights, steps=12):
    """A stroke over a plot from its left to its right, through these shares of its height."""
    left = box["x"] + 52
    wide = box["width"] - 66
    places = [(left + wide * i / (len(heights) - 1), box["y"] + box["height"] * h) for i, h in enumerate(heights)]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=steps)
    page.mouse.up()


def test_what_the_next_cell_shows_is_veiled_until_there_is_a_guess_or_one_asks_for_it(lab):
    with lab.open_cells([CELLS[0], CELLS[NUMBER], CELLS[CHOICE], "print(0.8)", "print('after')"]) as notebook:
        widget = notebook.find(".jp-CodeCell").nth(3).locator(".jp-Cell-outputWrapper")

        def veils():
            return widget.get_attribute("data-course-veils"), widget.evaluate("node => node.inert")

        notebook.wait(lambda: veils() == ("2", True), "both guesses veil it")
        assert notebook.find("[data-course-veils]").count() == 1
        assert "blur" in widget.evaluate("node => getComputedStyle(node).filter")
        button(notebook, 2, "Show without a guess").click()
        notebook.wait(lambda: veils() == ("1", True), "one veil is lifted")
        notebook.output(1).get_by_role("textbox").fill("0.2")
        button(notebook, 1).click()
        notebook.wait(lambda: veils() == (None, False), "a guess lifts the other")
        assert notebook.find(".course-guess-lift:visible").count() == 0
        assert notebook.find(".course-guess-cover").count() == 0


def test_a_veil_has_a_button_that_leads_to_the_guess(lab):
    with lab.open_cells([CELLS[0], CELLS[NUMBER], "print(0.8)"]) as notebook:
        cover = notebook.find(".course-guess-cover button")
        notebook.wait(lambda: cover.count() == 1, "the veil has a button")
        assert cover.inner_text() == "Guess above to see this"
        cover.click()
        assert notebook.page.evaluate("document.activeElement.closest('.course-guess') !== null")
        notebook.check_accessible(".course-guess-cover button")
        notebook.check_clean()


def test_a_number_is_moved_taken_and_kept(fresh):
    assert button(fresh, NUMBER).get_attribute("aria-disabled") == "true"
    slider = fresh.output(NUMBER).get_by_role("slider")
    slider.focus()
    fresh.page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "0.495"
    assert fresh.output(NUMBER).get_by_role("textbox").input_value() == "0.495"
    button(fresh, NUMBER).click()
    fresh.wait(lambda: "Computed: 0.8." in verdict_text(fresh, NUMBER), "the truth is shown")
    assert verdict_text(fresh, NUMBER) == "Computed: 0.8. Your guess is too low by 31% of the range.\nIt was measured."
    fresh.expect("read(2, root)['n'].first", "(0.495,)")
    stored = fresh.output(NUMBER).locator(".course-guess-kept")
    fresh.wait(lambda: stored.inner_text() == "Kept in guesses/day2.json on this machine.", "the page says where")


def test_a_number_is_typed_and_what_is_none_is_reported(fresh):
    field = fresh.output(NUMBER).get_by_role("textbox")
    field.focus()
    active = fresh.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for text, message in (("dd", "is not a number"), ("7", "The range is from 0 to 1."), ("0,5", "is not a number")):
        field.fill(text)
        field.press("Enter")
        assert message in fresh.output(NUMBER).locator(".course-guess-wrong").inner_text()
        assert fresh.find(".course-guess-shown").count() == 0
    wrong = fresh.output(NUMBER).locator(".course-guess-wrong")
    for text, is_said in (("2^-19", True), ("1e-", False), ("1e-4", False), ("−.", False), ("half", True)):
        field.fill(text)  # still in the field
        assert ("give one such as 0.5, 1200, 0.0001 or 1e-4" in wrong.inner_text()) == is_said, text
    field.fill("0.81")
    field.press("Enter")
    fresh.wait(lambda: "near: within 2% of the range" in verdict_text(fresh, NUMBER), "the guess is judged")
    assert fresh.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_guessing_again_hides_the_truth_and_the_first_guess_counts(fresh):
    fresh.output(NUMBER).get_by_role("textbox").fill("0.2")
    button(fresh, NUMBER).click()
    button(fresh, NUMBER, "Guess again").click()
    fresh.wait(lambda: verdict_text(fresh, NUMBER) == "", "the truth is hidden")
    fresh.output(NUMBER).get_by_role("textbox").fill("0.7")
    button(fresh, NUMBER).click()
    first = "Your first guess counts. It was too low by 60% of the range."
    fresh.wait(lambda: first in verdict_text(fresh, NUMBER), "the first guess counts")
    fresh.expect("[(k.first, k.last, k.count) for k in read(2, root).values()]", "[((0.2,), (0.7,), 2)]")


def test_a_curve_is_drawn_with_the_mouse_and_sent_when_the_button_is_released(fresh):
    plot = fresh.output(CURVE).locator(PLOT)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    fresh.run("sent = []\ncurve.observe(lambda change: sent.append(change.new), 'draft')")
    stroke(fresh.page, box, (0.9, 0.5, 0.1))
    fresh.expect("len(sent), None in curve.draft", "(1, False)")
    drawn = eval(fresh.python("curve.draft"))
    assert all(before < after for before, after in itertools.pairwise(drawn)) and drawn[0] < 0.1 and drawn[-1] > 0.9
    button(fresh, CURVE).click()
    fresh.wait(lambda: "of the range away on average" in verdict_text(fresh, CURVE), "the curve is judged")
    assert fresh.output(CURVE).locator(".course-guess-truth .course-guess-path").first.is_visible()
    motion = "node => getComputedStyle(node).animationName"
    assert fresh.output(CURVE).locator("g.course-guess-truth").evaluate(motion) == "none", (
        "this browser wants no motion"
    )
    fresh.output(CURVE).get_by_text("The numbers").click()
    assert fresh.output(CURVE).locator("tr").nth(4).inner_text().split()[-1] == "0.8"
    fresh.expect("tuple(curve.draft) == read(2, root)['k'].first", "True")


def test_a_quick_stroke_sets_every_place_that_it_passes(fresh):
    plot = fresh.output(CURVE).locator(PLOT)
    plot.scroll_into_view_if_needed()
    stroke(fresh.page, plot.bounding_box(), (0.5, 0.5), steps=1)
    fresh.expect("None in curve.draft, max(curve.draft) - min(curve.draft) < 0.01", "(False, True)")


def test_points_move_by_keys_and_say_place_and_value(fresh):
    points = fresh.output(CURVE).get_by_role("slider")
    assert points.count() == 4
    points.nth(0).focus()
    active = fresh.page.evaluate("window.courseNotebook.content.activeCellIndex")
    assert points.nth(0).get_attribute("aria-valuetext") == "4: nothing yet"
    for key in ("ArrowUp", "Shift+ArrowDown", "ArrowRight", "Shift+ArrowUp", "ArrowRight", "Enter"):
        fresh.page.keyboard.press(key)
    message = [points.nth(place).get_attribute("aria-valuetext") for place in range(4)]
    assert message == ["4: 0.41", "16: 0.6", "64: 0.5", "256: nothing yet"]
    assert "1 place left." in fresh.output(CURVE).inner_text()
    button(fresh, CURVE).press("Enter")
    assert points.nth(2).evaluate("point => point === document.activeElement"), "a guess with open places is not taken"
    for key in ("ArrowRight", "End"):
        fresh.page.keyboard.press(key)
    fresh.expect("curve.draft", "[0.41, 0.6, 0.5, 1.0]")
    assert fresh.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def test_a_choice_is_taken_at_the_button_and_the_right_one_is_shown(fresh):
    radios = fresh.output(CHOICE).get_by_role("radio")
    radios.nth(0).check()
    assert verdict_text(fresh, CHOICE) == ""
    button(fresh, CHOICE).click()
    fresh.wait(lambda: verdict_text(fresh, CHOICE) == "Your guess is not right.\nb it is.", "the choice is judged")
    rows = fresh.output(CHOICE).locator(".course-guess-choice")
    assert [rows.nth(place).get_attribute("data-verdict") for place in range(3)] == ["wrong", "right", ""]


def test_the_summary_follows_the_guesses(fresh):
    fresh.wait(lambda: "No guess yet." in fresh.output(SUMMARY).inner_text(), "there is no guess")
    fresh.output(CHOICE).get_by_role("radio").nth(1).check()
    button(fresh, CHOICE).click()
    message = fresh.output(SUMMARY)
    fresh.wait(lambda: "1 of 1 choice right." in message.inner_text(), "the choice is counted")
    assert "b; computed b: right" in message.inner_text()


def test_no_axe_violations_before_and_after_the_guess(fresh):
    fresh.check_accessible(".course-guess", ".course-guesses")
    fresh.run("number.take(0.3)\ncurve.take([0.3, 0.5, 0.5, 0.6])\nchoice.take('a')")
    fresh.wait(lambda: fresh.find(".course-guess-shown").count() == 3, "all are shown")
    fresh.check_accessible(".course-guess", ".course-guesses")


STATIC = {
    "number": (lambda root, **more: Guess.number(1, "n", "How large?", root=root, **more),
               {"truth": 0.8, "low": 0, "high": 1}, [0.25, 0.79, 1]),
    "log": (lambda root, **more: Guess.number(1, "l", "How large?", root=root, scale="log", unit="GB", **more),
            {"truth": 2100, "low": 1, "high": 1e5}, [3000, 12, 2150]),
    "small": (lambda root, **more: Guess.number(1, "s", "How small?", root=root, scale="log", **more),
              {"truth": 2.3e-6, "low": 1e-8, "high": 1}, [1e-5]),
}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
def test_a_page_without_a_kernel_says_what_python_says(alone, tmp_path, name):
    make, more, guesses = STATIC[name]
    for place, guess in enumerate(guesses):
        widget = make(tmp_path / str(place), **more)
        page = alone(widget)
        page.get_by_role("textbox").fill(str(guess))
        page.get_by_role("button", name="Guess", exact=True).click()
        message = page.locator(".course-guess-message").inner_text()
        assert message.endswith(f"Your guess is {judge(widget.question, [guess]).text}.")
    assert not list(tmp_path.rglob("*.json")), "a page keeps guesses in the browser alone"


def test_a_curve_on_a_narrow_page_without_a_kernel(alone, tmp_path):
    widget = Guess.curve(
        1, "k", "How does it fall?", [4, 16, 64, 256, 1024], truth=[1e4, 1e3, 100, 10, 1], low=1, high=1e4,
        scale="log", x_scale="log", x_label="d_k", y_label="bytes", root=tmp_path,
    )  # fmt: skip
    page = alone(widget)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    plot = page.locator(PLOT)
    page.wait_for_function("document.querySelector('svg.course-guess-plot').getBoundingClientRect().width < 390")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    stroke(page, plot.bounding_box(), (0.2, 0.7, 0.8))
    page.get_by_role("button", name="Guess", exact=True).click()
    drawn = [float(point.get_attribute("aria-valuenow")) for point in page.get_by_role("slider").all()]
    assert page.locator(".course-guess-message").inner_text() == f"Your guess is {judge(widget.question, drawn).text}."
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Guess again").click()
    assert page.locator(".course-guess-truth").first.is_hidden()


def test_a_long_number_at_the_end_of_a_range_is_not_cut_off(alone, tmp_path):
    page = alone(Guess.number(1, "m", "How many?", truth=500, low=1, high=1e6, scale="log", root=tmp_path))
    page.set_viewport_size({"width": 390, "height": 800})
    assert "1,000,000" in page.locator(".course-guess-ticks").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_finger_draws(chromium, tmp_path):
    from course_utils.views.static_page import static_page

    widget = Guess.curve(
        1, "k", "How does it grow?", ["a", "b", "c"], truth=[0.1, 0.5, 0.9], low=0, high=1, root=tmp_path / "root"
    )
    file = tmp_path / "page.html"
    file.write_text(static_page(widget, "A page"), encoding="utf-8")
    context = chromium.new_context(has_touch=True, viewport={"width": 390, "height": 800}, offline=True)
    page = context.new_page()
    try:
        page.goto(file.as_uri())
        box = page.locator(PLOT).bounding_box()
        send = context.new_cdp_session(page).send
        for step in range(11):
            x, y = box["x"] + 56 + (box["width"] - 74) * step / 10, box["y"] + 200 - 15 * step
            kind = "touchMove" if step else "touchStart"
            send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        drawn = [float(point.get_attribute("aria-valuenow")) for point in page.get_by_role("slider").all()]
        assert drawn == sorted(drawn) and drawn[2] - drawn[0] > 0.4
        assert page.locator(".course-guess-open").count() == 0
    finally:
        context.close()


def test_a_summary_on_a_page_without_a_kernel_holds_nobodys_guesses(alone, tmp_path):
    Guess.number(1, "n", "How large?", truth=0.8, low=0, high=1, root=tmp_path).take(0.3)
    summary = Guesses(1, root=tmp_path)
    assert on_page(summary).shown["rows"] == []
    page = alone(summary)
    assert page.get_by_role("status").inner_text() == "No guess yet."
    assert page.get_by_role("listitem").count() == 0
